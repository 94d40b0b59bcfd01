// One sample of an escape-time fractal, for kernels: its point, and its color from the last iterate and derivative.
// The launcher defines COLORING (0 count, 1 distance, 2 stripe, 3 trap), STRIPES (of coloring 2, in a turn of z),
// DEGREE (the power of z by which iterates grow), PALETTE (shade.h), KEY (1: write what a color depends on, for
// reproject.cu) and the record dtype View, whose fields are documented in renderer/fractals/deep_zoom.py.
#include "fractals/shade.h"
#include "fractals/wide.h"

#define BAILOUT2 1e6  // |z|^2 beyond which z has escaped
#define LOG_UNIT2 11.090354888959125  // log of 65536, the |z|^2 at which the smooth count is n; GLSL has the same

typedef struct {
    double2 z;  // the last iterate
    Wide dx, dy;  // derivative of z by the sample's position, to the right and up in the plane
    int n;  // iterations; -1 if z did not escape
    double color;  // sum of the stripe coloring, or least distance from the trap
    double last;  // last summand of the stripe coloring
} Escape;

// The sample's offset from the view's center, in units of the view's height.
DEVICE double2 sample_offset(uint i, View v) {
    double x = (double)(i % (uint)v.width) + v.corner.x, y = (double)(i / (uint)v.width) + v.corner.y;
    return v.right * x + v.down * y;
}

// The state of a sample before its first iterate; dx and dy: derivatives by the position of the pixel.
DEVICE Escape start_escape(Wide dx, Wide dy) {
    Escape r;
    r.z = make_double2(0.0, 0.0), r.dx = dx, r.dy = dy, r.n = -1;
    r.color = COLORING == 3 ? 1e30 : 0.0, r.last = 0.0;
    return r;
}

// Adds an iterate to the colorings that look at all iterates.
DEVICE void color_orbit(Escape *r, double2 z) {
#if COLORING == 2  // stripe average (J. Harkonen, On smooth fractal coloring techniques, 2007)
    r->last = 0.5 + 0.5 * (double)sin(STRIPES * atan2((float)z.y, (float)z.x));
    r->color += r->last;
#elif COLORING == 3  // distance from the cross of the axes
    r->color = fmin(r->color, fmin(fabs(z.x), fabs(z.y)));
#endif
}

// What the color of a sample depends on: the coloring's coordinate, the distance in pixels (-1 inside the set), and the
// normal, which is the direction of the gradient of |z|. `count`: the smooth count.
DEVICE float4 measure_escape(Escape r, View v, float *count) {
    *count = -1.0f;
    if (r.n < 0) return make_float4(0.0f, -1.0f, 0.0f, 0.0f);
    double norm2 = r.z.x * r.z.x + r.z.y * r.z.y;
    double fraction = log(log(norm2) / LOG_UNIT2) / log((double)DEGREE);  // smooth count (Vepstas 1997): n - fraction
    // Gradient of |z|, times 2^-e; both derivatives have the exponent e.
    int e = max(r.dx.e, r.dy.e);
    double2 a = r.dx.m * power_of_two(r.dx.e - e), b = r.dy.m * power_of_two(r.dy.e - e);
    double gx = r.z.x * a.x + r.z.y * a.y, gy = r.z.x * b.x + r.z.y * b.y;
    if (v.right.x * v.down.y - v.right.y * v.down.x > 0.0) gy = -gy;  // a mirror image, lit from above too
    double length = sqrt(gx * gx + gy * gy) + 1e-300;
    // |z| log|z| / |gradient of |z||, in units of the view's height. The exponents are added before the power is taken,
    // so that neither 2^e nor 2^height_exponent overflows.
    double distance = 0.5 * norm2 * log(norm2) / length;
    int scale = e + v.height_exponent;
    distance = distance / (v.height * power_of_two(max(scale, -1000)));
    *count = (float)((double)r.n - fraction);
    float coordinate = log2(1.0f + max(*count, 0.0f));
#if COLORING == 1
    coordinate = -(float)log2(fmax(distance, 1e-30));
#elif COLORING == 2
    // The averages with and without the last summand blend from one count to the next.
    double blend = fmin(fmax(1.0 - log(log(norm2) / log(BAILOUT2)) / log((double)DEGREE), 0.0), 1.0);
    double before = (r.color - r.last) / (double)max(r.n - 1, 1), after = r.color / (double)r.n;
    coordinate = (float)(8.0 * (before + (after - before) * blend));
#elif COLORING == 3
    coordinate = -(float)log2(r.color + 1e-30);
#endif
    return make_float4(coordinate, (float)(distance * v.pixels), (float)(gx / length), (float)(gy / length));
}

// Averages a sample's color into its pixel.
DEVICE void add_sample(GLOBAL float4 *pixel, Escape r, View v) {
    float count;
    float4 measured = measure_escape(r, v, &count);
#if KEY
    *pixel = measured;
#else
    float4 before = *pixel, now = shade(count, v.color_density * measured.x + v.color_offset, max(measured.y, 0.0f),
                                        make_float2(measured.z, measured.w), v.relief);
#if PALETTE == 0
    if (r.n >= 0) now.z = (float)r.n;  // blue of the raw output: the whole count
#endif
    *pixel = v.samples == 0 ? now : before + (now - before) * (1.0f / (float)(v.samples + 1));
#endif
}
