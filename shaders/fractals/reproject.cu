// A frame of a zoom from two key pictures of fixed heights, which hold what the colors of samples depend on (KEY of
// sample.h): every cell of a key picture is one sample. A pixel is the mean color of the samples in its square, taken
// from the finer key picture where that covers the pixel. The launcher defines PALETTE (shade.h) and the record dtype
// Reprojection, whose fields are documented in renderer/fractals/reprojection.py.
#include "fractals/shade.h"

KERNEL draw_reprojected(GLOBAL float4 *frame, GLOBAL const float4 *coarse, GLOBAL const float4 *fine, Reprojection p) {
    uint i = thread_index();
    if (i >= (uint)(p.size.x * p.size.y)) return;
    // Distances from the picture's center, in pixels: of the pixel's center, and of its farthest corner.
    double2 center = p.corner + make_double2((double)(i % (uint)p.size.x), (double)(i / (uint)p.size.x));
    double2 half_pixel = make_double2(0.5, 0.5), farthest = make_double2(fabs(center.x), fabs(center.y)) + half_pixel;
    double2 needed = farthest * (2.0 * p.cells_per_pixel.y);  // width and height of a fine picture that has the pixel
    const bool is_fine = needed.x <= p.cells.x && needed.y <= p.cells.y;
    const double scale = is_fine ? p.cells_per_pixel.y : p.cells_per_pixel.x;
    // The pixel's square in samples of the key picture; a sample counts by its area in the square.
    double2 first = (center - half_pixel) * scale + p.cells * 0.5, last = (center + half_pixel) * scale + p.cells * 0.5;
    GLOBAL const float4 *key = is_fine ? fine : coarse;
    const float pixels = is_fine ? p.pixels.y : p.pixels.x;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float area = 0.0f;
    for (int y = max((int)first.y, p.drawn.y); y < min((int)ceil(last.y), p.drawn.y + p.drawn.w); y++) {
        float tall = (float)(fmin(last.y, y + 1.0) - fmax(first.y, (double)y));
        for (int x = max((int)first.x, p.drawn.x); x < min((int)ceil(last.x), p.drawn.x + p.drawn.z); x++) {
            float weight = tall * (float)(fmin(last.x, x + 1.0) - fmax(first.x, (double)x));
            float4 m = key[(y - p.drawn.y) * p.drawn.z + x - p.drawn.x];
            float coordinate = p.color_density * m.x + p.color_offset;  // m: see measure_escape() in sample.h
            sum = sum + shade(m.y, coordinate, m.y * pixels, make_float2(m.z, m.w), p.relief) * weight;
            area += weight;
        }
    }
    frame[i] = sum * (1.0f / area);
}
