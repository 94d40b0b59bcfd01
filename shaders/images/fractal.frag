// Mandelbrot and Julia sets by escape time (Peitgen and Saupe, The Science of Fractal Images, 1988): one sample of
// every pixel, averaged with the `sample_index` samples in `previous`. The launcher defines REAL and REAL2 (float and
// vec2, or double and dvec2); JULIA: 1 for the Julia set of julia_c; PALETTE: as in fractals/shade.h.
uniform sampler2D previous;
uniform REAL2 center;  // the point of the complex plane at the picture's center
uniform REAL2 right;  // step in the plane of one pixel to the right
uniform REAL2 down;  // step in the plane of one pixel down
uniform REAL2 julia_c;
uniform vec2 resolution;  // width and height of the whole picture
uniform vec2 tile_origin;  // left and top of the tile
uniform vec2 jitter;  // offset of this sample within the pixel, -0.5 to 0.5
uniform float sample_index;  // number of samples in `previous`
uniform int max_iterations;
uniform float color_density;  // palette cycles per doubling of the iteration count
uniform float color_offset;  // added to the palette coordinate, in cycles
uniform float relief;  // shading by the potential's normal, 0 off to 1 full
out vec4 pixel;

#include "fractals/shade.h"

#define BAILOUT2 65536.0  // |z|^2, large enough that the smooth count is continuous to 1e-5

// True for points of the main cardioid and the period-2 bulb, which never escape: iterating them would take most of the
// time.
bool in_cardioid_or_bulb(REAL2 c) {
    REAL x = c.x - REAL(0.25), q = x * x + c.y * c.y, y = c.x + REAL(1.0);
    return q * (q + x) < REAL(0.25) * c.y * c.y || y * y + c.y * c.y < REAL(0.0625);
}

// Iterates z^2 + c for this pixel's sample, with the derivative dz, and shades the result.
vec4 escape_time() {
    vec2 offset = gl_FragCoord.xy + tile_origin - 0.5 * resolution + jitter;
    REAL2 p = center + right * REAL(offset.x) + down * REAL(offset.y);
    const bool julia = JULIA != 0;  // Julia: z starts at p and c is given; Mandelbrot: z starts at 0 and c is p
    if (!julia && in_cardioid_or_bulb(p)) return shade(-1.0, 0.0, 0.0, vec2(0.0), 0.0);  // count -1: inside the set
    REAL2 z = julia ? p : REAL2(0.0), c = julia ? julia_c : p;
    vec2 dz = vec2(julia ? 1.0 : 0.0, 0.0);
    const float dc = julia ? 0.0 : 1.0;
    float norm2 = 0.0;
    int n = 0;
    for (; n <= max_iterations; n++) {
        REAL xx = z.x * z.x, yy = z.y * z.y;
        norm2 = float(xx + yy);
        if (norm2 > BAILOUT2 || n == max_iterations) break;
        vec2 zf = vec2(z);
        // 2 z dz + dc, in floats
        dz = 2.0 * vec2(zf.x * dz.x - zf.y * dz.y + 0.5 * dc, zf.x * dz.y + zf.y * dz.x);
        z = REAL2(xx - yy + c.x, REAL(2.0) * z.x * z.y + c.y);
    }
    if (norm2 <= BAILOUT2) return shade(-1.0, 0.0, 0.0, vec2(0.0), 0.0);
    if (norm2 > 1e30) {  // views of 1e15 and more, whose squares are infinite
        norm2 = 1e30;
        z = REAL2(1e15, 0.0);
        dz = vec2(1.0, 0.0);
    }
    vec2 zf = vec2(z);
    // Heights below 1e-8 have derivatives of 1e16, whose squares, times |z|^2, are infinite. A power of 2 is exact.
    float scale = max(abs(dz.x), abs(dz.y)) > 1e12 ? 1.0 / 1099511627776.0 : 1.0;
    dz *= scale;
    float dz_norm2 = max(dot(dz, dz), 1e-36);
    // exterior distance estimate, in units of the plane; dz is scaled, so `* scale` undoes it
    float distance_estimate = 0.5 * sqrt(norm2) * log(norm2) / sqrt(dz_norm2) * scale;
    vec2 normal = vec2(zf.x * dz.x + zf.y * dz.y, zf.y * dz.x - zf.x * dz.y);
    if (right.x * down.y - right.y * down.x > 0.0) normal.y = -normal.y;  // a mirror image, lit from above too
    float count = float(n) - log2(log(norm2) / log(BAILOUT2));  // smooth count (Vepstas 1997)
    float coordinate = color_density * log2(1.0 + max(count, 0.0)) + color_offset;
    return shade(count, coordinate, distance_estimate / float(length(right)), normalize(normal + 1e-30), relief);
}

void main() {
    vec4 before = texelFetch(previous, ivec2(gl_FragCoord.xy), 0);
    vec4 now = escape_time();
    pixel = sample_index == 0.0 ? now : before + (now - before) / (sample_index + 1.0);
}
