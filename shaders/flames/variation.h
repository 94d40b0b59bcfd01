// The interface of a flame's variations: their grammar, the state of a chain, affine maps, shared functions.
//
// A file of variations/ is a group of the flame editor's list and has these items:
//     VARIATION(name, parameter = default [least, greatest], ...) { body }
//                                       returns the terms added to x and y: pair(u, v). Limits are optional.
//     VARIATION_3D(...) { body }        returns the terms added to x, y and z: triple(u, v, w)
//     VARIATION_Z(name) { body }        returns the term that VARIATION(name) adds to z in flames with z
//     REPLACING(...), REPLACING_3D(...) as VARIATION and VARIATION_3D, but x and y replace the sum before them
//     PRE(...)                          as VARIATION, but added to the point before the other variations see it
//     POST_3D(...)                      as VARIATION_3D, but applied to the sum of the others, which it replaces; Point
//                                       unvaried is the point that the others were given
//     STAMP(name, SIDE = 2, ...)        a picture over a square of that side, 1 by default: returns the color, red,
//                                       green and blue from 0 to 1, of its point Pair p. p is random, or with ColorOnly
//                                       the chain's point. catalog.py adds the parameters STAMP_PARAMETERS.
//     PALETTE_STAMP(...)                as STAMP, but with Gradient 1 each color becomes the palette's nearest
//     PIXEL_STAMP(name, SIDE = 2, SHIFT = 1, PRODUCT = 0, ...)
//                                       as STAMP, but p is the center of a random pixel of Density_Pixels^2. The
//                                       square begins at -SHIFT, by default half the side. With Gradient 1 the palette
//                                       coordinate is red times green (PRODUCT 1) or a sine of the fraction of red.
//     ESCAPE(name, ...)                 an escape-time fractal over xmin ... xmax, ymin ... ymax, drawn at `scale`: returns
//                                       gray(steps) of its point Pair p; the steps color and raise the point.
//                                       catalog.py adds the parameters ESCAPE_PARAMETERS.
//     SOLID(name, ...)                  random points of a solid in the cube of side 1: returns if the solid holds a point
//                                       Triple p; u, v and w are the magnitudes of its coordinates, `ring` is its
//                                       distance from the y axis. The point is hidden if none of 50 is in the solid.
//     KIND(name, ...);                  an item that ends in a semicolon has the body of the item before it, which then
//                                       means this item's parameters. A PIXEL_STAMP calls the STAMP before it, with its
//                                       parameters in that stamp's order, and zoom 1 if it has no zoom.
//     stamp_NAME(p, parameters ...)     in a body: the color that an earlier stamp NAME of the file gives a point p
//     // Origin: program                who defines the variations that follow
//     DEVICE and CONSTANT               functions and tables of the file, for all its variations
// renderer/flames/variations/catalog.py reads names, parameters and the count of random numbers from these texts and
// writes each function's head. A new variation needs nothing outside its file.
//
// Given are real x, y (and z in _3D), float weight and parameters, and Random *random. Files call a parameter
// NAME_PARAMETER. The body calls it PARAMETER, as the head does, but NAME_PARAMETER if PARAMETER is x, y, z, weight,
// circle, color or another word of RESERVED_NAMES in catalog.py. AFFINE_B, _C, _D, _E and _F are coefficients of the
// pre-affine: x = A X + B Y + C, y = D X + E Y + F. A body may set the palette coordinate (*color, direct color), hide
// the point from the picture (*hidden = a mask) and give it a color outside the palette
// (*rgb = packed_rgb(red, green, blue)). A variation with a builder (renderer/flames/variations/tables.py) has its
// table as `table`. Without _3D and VARIATION_Z, z passes through if the flame preserves z.
//
// Random numbers come from uniform(random), gauss4(random) and functions that are given `random`, each call written
// out, outside loops and once per statement: catalog.py counts the calls, and C does not order a call's arguments. Use
// no library functions but reproducible_math.h's, so that every device gives the same bits, and select with ?:
// instead of branching on reals, because a work-item may hold a vector of points. Weights and parameters are plain
// floats, on which a body may branch. A parameter that no body reads (seed, reset_z, ...) is there because files have it.
// Angles: atan_xy(y, x) = atan2(x, y), clockwise from +y, in flam3's early variations; angle_of(y, x) = atan2(y, x) in
// the later ones.
#include "common/random_simd.h"
// random_simd.h has Random, uniform() and draw(); common/simd.h real, mask, whole and bits, which are one number or a
// vector of LANES numbers, and FUSED(a, b, c) = a b + c, rounded once; common/reproducible_math.h Pair, pair(x, y),
// circle(t) = (cos t, sin t), hyperbola(t) = (cosh t, sinh t), sine_of, power_of, angle_of(y, x) = atan2(y, x),
// magnitude(t) = |t|, truncation (toward zero), floor_of, nearest, remainder_of (C's fmod), with_sign_of(t, sign).

// The state of a chain: a position, a palette coordinate, and 1 + the index of the last xform (0 at the start).
#ifndef EXTRA_FLOATS
#define EXTRA_FLOATS 0
#endif
typedef struct {
    real x, y, z, color, last_xform, hidden, rgb;
#if EXTRA_FLOATS
    real extra[EXTRA_FLOATS];  // see shaders/flames/point_attributes.h
#endif
} Point;

// Offsets in an xform's `record`, the floats of its affine, color and so on (flame.cu). `affine` in a body is the start
// of that record, the coefficients a to f: AFFINE_B to AFFINE_F, below, are b to f.
#define COLOR (6 + 6 * IS_3D)
#define COLOR_SPEED (COLOR + 1)
#define OPACITY (COLOR + 2)
#define VAR_COLOR (COLOR + 3)  // with DIRECT_COLOR

#define EPSILON 1e-10f
#define TWO_PI 6.283185307179586f
// A row of the affine has three coefficients, in 3D four, whose third is the factor of z.
#define AFFINE_B affine[1]
#define AFFINE_C affine[2 + IS_3D]
#define AFFINE_D affine[3 + IS_3D]
#define AFFINE_E affine[4 + IS_3D]
#define AFFINE_F affine[5 + 2 * IS_3D]

typedef struct {
    real x, y, z;
} Triple;

DEVICE Triple triple(real x, real y, real z) {
    Triple t = {x, y, z};
    return t;
}

// ---- affine maps

// p after the affine of x and y with the 6 coefficients at `a`: a post-affine, or in 2D any affine.
DEVICE Point apply_post(Point p, GLOBAL const float *a) {
    Point q = p;
    q.x = FUSED(a[0], p.x, FUSED(a[1], p.y, a[2]));
    q.y = FUSED(a[3], p.x, FUSED(a[4], p.y, a[5]));
    return q;
}

// p after the affine at `a`, which has 6 coefficients, in 3D 12.
DEVICE Point apply_affine(Point p, GLOBAL const float *a) {
    if (!IS_3D) return apply_post(p, a);
    Point q = p;
    q.x = FUSED(a[0], p.x, FUSED(a[1], p.y, FUSED(a[2], p.z, a[3])));
    q.y = FUSED(a[4], p.x, FUSED(a[5], p.y, FUSED(a[6], p.z, a[7])));
    q.z = FUSED(a[8], p.x, FUSED(a[9], p.y, FUSED(a[10], p.z, a[11])));
    return q;
}

DEVICE Point at_origin(Point p) {
    p.x = p.y = p.z = (real)(0.0f);
    return p;
}

DEVICE Point moved_by(Point p, Pair v) {
    p.x = p.x + v.x;
    p.y = p.y + v.y;
    return p;
}

DEVICE Point moved_to(Point p, Pair v) {
    p.x = v.x;
    p.y = v.y;
    return p;
}

// The palette coordinate of p, blended toward the xform's.
DEVICE real blend_color(Point p, GLOBAL const float *record) {
    real speed = (real)(record[COLOR_SPEED]);
    return speed * record[COLOR] + (1.0f - speed) * p.color;
}

// The blended palette coordinate, moved toward the palette coordinate `color` that the variations set.
DEVICE real direct_color(real blended, real color, GLOBAL const float *record) {
    return blended + record[VAR_COLOR] * (color - blended);
}

// (x, y) of (x, y, z).
DEVICE Pair flat(Triple t) { return pair(t.x, t.y); }

// Red, green and blue, 0 to 255, as 65536 r + 256 g + b. Negative numbers mean the palette's color.
DEVICE real packed_rgb(real red, real green, real blue) {
    return 65536.0f * floor_of(red) + 256.0f * floor_of(green) + floor_of(blue);
}

// The float of a table at an integer index, which must lie within it.
DEVICE real table_at(GLOBAL const float *table, real index) {
    whole at = truncated(index);
#if LANES == 1
    return table[at];
#else
    real value;
    GATHER_LANES(value, table, at);
    return value;
#endif
}

// ---- real functions

DEVICE Pair scaled(real k, real x, real y) { return pair(k * x, k * y); }
DEVICE Triple scaled3(real k, real x, real y, real z) { return triple(k * x, k * y, k * z); }
DEVICE Pair scaled_pair(real k, Pair p) { return pair(k * p.x, k * p.y); }
DEVICE Pair swapped(Pair p) { return pair(p.y, p.x); }
DEVICE Pair from_polar(real radius, real angle) {
    Pair c = circle(angle);
    return scaled(radius, c.x, c.y);
}

DEVICE Triple lifted(Pair p, real z) { return triple(p.x, p.y, z); }

DEVICE real vnorm(real x, real y) { return sqrt(x * x + y * y); }
DEVICE real atan_xy(real y, real x) { return angle_of(x, y); }
DEVICE real square(real x) { return x * x; }

// 1 or -1; they differ at 0.
DEVICE real sign_nonnegative(real t) { return t >= 0.0f ? (real)(1.0f) : (real)(-1.0f); }
DEVICE real sign_positive(real t) { return t > 0.0f ? (real)(1.0f) : (real)(-1.0f); }

// True for an odd integer n.
DEVICE mask is_odd(real n) { return n - 2.0f * floor_of(0.5f * n) == 1.0f; }

// A random integer 0, 1, ... n - 1 from a uniform random number u; n is an integer.
DEVICE real random_index(real u, float n) { return floor_of(n * u); }

// a or -a at random.
DEVICE real random_sign(real a, Random *random) { return uniform(random) < 0.5f ? a : -a; }

// Sum of four uniform random numbers minus 2: roughly normal, -2 to 2.
DEVICE real gauss4(Random *random) {
    real sum = uniform(random);
    sum = sum + uniform(random);
    sum = sum + uniform(random);
    return sum + uniform(random) - 2.0f;
}

// A random point of a table that holds the number of points, then x and y of each.
DEVICE Pair random_table_point(GLOBAL const float *table, Random *random) {
    real n = random_index(uniform(random), table[0]);
    return pair(table_at(table, 1.0f + 2.0f * n), table_at(table, 2.0f + 2.0f * n));
}

// A new stream of random numbers, seeded by two, for bodies that draw in a loop.
DEVICE Random stream_of(real u, real v) {
    Random many;
    many.position = mixed(bits_of(u) + 0x9e3779b9u * bits_of(v));
    many.gamma = mixed(many.position ^ 0x5bf03635u) | 1u;
    return many;
}

// For h = half the sum of the distances from (1, 0) and (-1, 0): (h - 1, h - |x|), both without cancellation.
DEVICE Pair elliptic_terms(real x, real y) {
    real y2 = y * y, right = magnitude(x - 1.0f), left = magnitude(x + 1.0f), beyond = magnitude(x) - 1.0f;
    real from_right = y2 / (sqrt(right * right + y2) + right + 1e-30f);
    real from_left = y2 / (sqrt(left * left + y2) + left + 1e-30f);
    real over = 0.5f * (from_right + from_left);
    return pair(over + (beyond > 0.0f ? beyond : (real)(0.0f)), over + (beyond < 0.0f ? -beyond : (real)(0.0f)));
}

// t moved by a multiple of 2 m to the range -m to m.
DEVICE real wrap(real t, real m) {
    real above = -m + remainder_of(t + m, 2.0f * m), below = m - remainder_of(m - t, 2.0f * m);
    return t > m ? above : t < -m ? below : t;
}

// The angle a after `count` wedges of `angle` are cut out of the circle.
DEVICE real cut_wedges(real a, float angle, float count) {
    real n = floor_of((count * a + PI) * (1.0f / TWO_PI));
    return a * (1.0f - angle * count * (1.0f / TWO_PI)) + n * angle;
}

// The point at radius r and the angle of (x, y), swirled, with wedges cut out.
DEVICE Pair wedge_of_radius(real r, real x, real y, float weight, float angle, float hole, float count, float swirl) {
    return from_polar(weight * (r + hole), cut_wedges(angle_of(y, x) + swirl * r, angle, count));
}

// ---- functions of z = x + i y, times k; functions of i z swap x and y: sinh z = -i sin(i z)

DEVICE Pair conjugate(Pair z) { return pair(z.x, -z.y); }

DEVICE Pair complex_quotient(Pair a, Pair b) {
    real k = 1.0f / (b.x * b.x + b.y * b.y);
    return scaled(k, a.x * b.x + a.y * b.y, a.y * b.x - a.x * b.y);
}

DEVICE Pair complex_exp(real k, real x, real y) { return from_polar(k * exponential_of(x), y); }

DEVICE Pair complex_sin(real k, real x, real y) {
    Pair c = circle(x), h = hyperbola(y);
    return scaled(k, c.y * h.x, c.x * h.y);
}

DEVICE Pair complex_cos(real k, real x, real y) {
    Pair c = circle(x), h = hyperbola(y);
    return scaled(k, c.x * h.x, -c.y * h.y);
}

// The functions below divide by sums such as cos 2x + cosh 2y. They use half angles,
// cos 2x + cosh 2y = 2 (cos^2 x + sinh^2 y), because these sums do not cancel. Beyond 40 the squares would overflow,
// and the quotients have reached their limits. Beyond `end`, where flam3's doubles overflow, the result is NaN, as in
// flam3: the point counts as a bad value.
#define DOUBLE_COSH_LIMIT 710.4758f
DEVICE real clamp_cosh_argument(real t, float end) {
    real inside = t > 40.0f ? (real)(40.0f) : t < -40.0f ? (real)(-40.0f) : t;
    return magnitude(t) > end ? (t - t) / (t - t) : inside;
}

DEVICE Pair complex_tan(real k, real x, real y) {
    Pair c = circle(x), h = hyperbola(clamp_cosh_argument(y, 0.5f * DOUBLE_COSH_LIMIT));
    return scaled(k / (c.x * c.x + h.y * h.y), c.x * c.y, h.x * h.y);
}

// conjugate_cot and conjugate_csc are the conjugates of cot z and 1 / sin z.
DEVICE Pair conjugate_cot(real k, real x, real y) {
    Pair c = circle(x), h = hyperbola(clamp_cosh_argument(y, 0.5f * DOUBLE_COSH_LIMIT));
    return scaled(k / (c.y * c.y + h.y * h.y), c.x * c.y, h.x * h.y);
}

DEVICE Pair complex_sec(real k, real x, real y) {
    Pair c = circle(x), h = hyperbola(clamp_cosh_argument(y, DOUBLE_COSH_LIMIT));
    return scaled(k / (c.x * c.x + h.y * h.y), c.x * h.x, c.y * h.y);
}

DEVICE Pair conjugate_csc(real k, real x, real y) {
    Pair c = circle(x), h = hyperbola(clamp_cosh_argument(y, DOUBLE_COSH_LIMIT));
    return scaled(k / (c.y * c.y + h.y * h.y), c.y * h.x, c.x * h.y);
}

// ---- more functions of reals

DEVICE real cube(real x) { return x * x * x; }
DEVICE real fraction_of(real x) { return x - truncation(x); }  // with the sign of x
DEVICE real wrap_unit(real x) { return x - floor_of(x); }
DEVICE real least(real a, real b) { return a < b ? a : b; }
DEVICE real greatest(real a, real b) { return a > b ? a : b; }
DEVICE real clamped(real x, real low, real high) { return least(greatest(x, low), high); }
DEVICE real root_safe(real x) { return sqrt(greatest(x, (real)(0.0f))); }
DEVICE real arcsine(real x) { return angle_of(x, root_safe((1.0f - x) * (1.0f + x))); }
DEVICE real arccosine(real x) { return angle_of(root_safe((1.0f - x) * (1.0f + x)), x); }
DEVICE real arctangent(real x) { return angle_of(x, (real)(1.0f)); }
DEVICE real hyperbolic_sine(real x) { return hyperbola(x).y; }
DEVICE real hyperbolic_cosine(real x) { return hyperbola(x).x; }
DEVICE real hyperbolic_tangent(real x) {
    Pair h = hyperbola(clamped(x, (real)(-20.0f), (real)(20.0f)));
    return h.y / h.x;
}
// arcosh(1 + t), without cancellation
DEVICE real area_cosine_1p(real t) {
    t = greatest(t, (real)(0.0f));
    return logarithm_of(1.0f + t + sqrt(t * (t + 2.0f)));
}
// 1, 0 or -1
DEVICE real sign_of(real x) { return x > 0.0f ? (real)(1.0f) : x < 0.0f ? (real)(-1.0f) : (real)(0.0f); }
DEVICE real zero_real(void) { return (real)(0.0f); }

// The power of the magnitude of x, with the sign of x.
DEVICE real signed_power(real x, float exponent) { return with_sign_of(power_of(magnitude(x), (real)(exponent)), x); }

// Twice the fraction of the way from q to p at which u projects: 1 on the border between their cells.
DEVICE real cell_ratio(Pair p, Pair q, Pair u) {
    real dx = p.x - q.x, dy = p.y - q.y, d = dx * dx + dy * dy;
    return d == 0.0f ? (real)(1.0f) : 2.0f * ((u.x - q.x) * dx + (u.y - q.y) * dy) / d;
}

// (radius, angle) of a point on a regular polygon's edge, whose corners are 1 from the center: on side number `side` of
// `sides`, where u is random, 0 to 1. `bend`: how far the arc tangent moves points toward the ends of the side.
DEVICE Pair polygon_edge(real sides, real side, real bend, real u) {
    real wedge = TWO_PI / sides, slope = tangent_of(0.5f * PI + 0.5f * wedge);
    real a = (side + 0.5f - 0.5f * arctangent(bend * (u - 0.5f)) / arctangent(0.5f * bend)) * wedge;
    real t = a - wedge * side;  // the angle from the side's first corner
    return pair(magnitude(slope / (slope - tangent_of(t)) / cosine_of(t)), a - 0.5f * wedge);
}

// Maps a square to a disc: the polar coordinates (radius, angle) on the disc of the square's point (x, y). Concentric
// squares become circles; perimeter / side, 0 to 8, is the way along the square's edge from its corner (1, -1).
DEVICE Pair square_to_disc(real x, real y) {
    real ax = magnitude(x), ay = magnitude(y);
    real wide = x >= ay ? ax + y : 5.0f * ax - y, high = y >= ax ? 3.0f * ay - x : 7.0f * ay + x;
    real side = ax >= ay ? ax : ay, perimeter = ax >= ay ? wide : high;
    return pair(side, 0.25f * PI * perimeter / side - 0.25f * PI);
}

// ---- stamps of direct color: variations that plot points of a square with a color of each, as a picture

DEVICE real modulo(real x, float y) { return x - y * floor_of(x / y); }
DEVICE real blend(real a, real b, real t) { return a * (1.0f - t) + b * t; }
DEVICE real step_at(real edge, real x) { return x < edge ? zero_real() : (real)(1.0f); }
// x as a fraction of the range from low to high, clamped to 0 to 1.
DEVICE real fraction_of_range(real x, real low, real high) {
    return clamped((x - low) / (high - low), zero_real(), (real)(1.0f));
}
DEVICE real smooth_step(real low, real high, real x) {
    real t = fraction_of_range(x, low, high);
    return t * t * (3.0f - 2.0f * t);
}
// Red of a hue in sixths of the circle, 0 to 6; green and blue are the red of hues 4 and 2 sixths further.
DEVICE real red_of_hue(real hue) { return clamped(magnitude(hue - 3.0f) - 1.0f, zero_real(), (real)(1.0f)); }
// k times red_of_hue() of three hues in turns of the circle.
DEVICE Triple scaled_hue(real k, real r, real g, real b) {
    return triple(red_of_hue(wrap_unit(r) * 6.0f) * k, red_of_hue(wrap_unit(g) * 6.0f) * k,
                  red_of_hue(wrap_unit(b) * 6.0f) * k);
}
DEVICE Triple gray(real v) { return triple(v, v, v); }
DEVICE real dot3(Triple a, Triple b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE Triple choose3(mask m, Triple a, Triple b) { return triple(m ? a.x : b.x, m ? a.y : b.y, m ? a.z : b.z); }
DEVICE Pair choose2(mask m, Pair a, Pair b) { return pair(m ? a.x : b.x, m ? a.y : b.y); }
DEVICE real log2_of(real x) { return logarithm_of(x) * 1.44269504088896341f; }

// atan2(y, x) by the rational approximation that the origin uses; its error is up to 0.07.
DEVICE real rough_angle(real y, real x) {
    real a = magnitude(y), up = 0.25f * PI - 0.25f * PI * (x - a) / (x + a);
    real down = 0.75f * PI - 0.25f * PI * (x + a) / (a - x), angle = x >= 0.0f ? up : down;
    return y < 0.0f ? -angle : angle;
}

// p turned clockwise by the angle of cosine c and sine s: the matrix has the rows (c, s) and (-s, c).
DEVICE Pair spun(Pair p, real c, real s) { return pair(c * p.x + s * p.y, c * p.y - s * p.x); }

// A color 0 to 1 as whole numbers 0 to 255.
DEVICE Triple as_bytes(Triple c) {
    real low = zero_real(), high = (real)(255.0f);
    return triple(clamped(floor_of(c.x * 256.0f), low, high), clamped(floor_of(c.y * 256.0f), low, high),
                  clamped(floor_of(c.z * 256.0f), low, high));
}

// The point of a stamp: the chain's (x, y), or a point of a square by the random numbers u and v.
DEVICE Pair stamp_point(float color_only, float size, real x, real y, real u, real v) {
    if (color_only == 1.0f) return pair(x, y);
    return pair(size * (u - 0.5f), size * (v - 0.5f));
}

// Sets the color c of a stamp's point p: c itself, or its luminance as the palette coordinate. z is the luminance.
DEVICE Triple stamped(float weight, Pair p, Triple c, real *color, real *rgb, float gradient, float scale_z,
                      float offset_z) {
    c = as_bytes(c);
    real gray = (floor_of(c.x * 0.299f) + floor_of(c.y * 0.587f) + floor_of(c.z * 0.114f)) * (1.0f / 255.0f);
    if (gradient == 0.0f)
        *rgb = packed_rgb(c.x, c.y, c.z);
    else
        *color = gray;
    return triple(weight * p.x, weight * p.y, gray * scale_z + offset_z);
}

// As stamped(), but gradient 1 takes the palette's nearest color: `table` holds 1, then 256 times red, green, blue.
DEVICE Triple stamped_of_palette(float weight, Pair p, Triple c, real *color, real *rgb, float gradient, float scale_z,
                                 float offset_z, GLOBAL const float *table) {
    if (gradient != 1.0f) return stamped(weight, p, c, color, rgb, gradient, scale_z, offset_z);
    Triple at = stamped(weight, p, c, color, rgb, 0.0f, scale_z, offset_z);
    real best = (real)(1e9f);
    c = as_bytes(c);
    for (int k = 0; k < 256; k++) {
        float red = table[1 + 3 * k], green = table[2 + 3 * k], blue = table[3 + 3 * k];
        real distance2 = square(c.x - red) + square(c.y - green) + square(c.z - blue);
        *rgb = distance2 < best ? packed_rgb((real)(red), (real)(green), (real)(blue)) : *rgb;
        best = least(best, distance2);
    }
    return at;
}

// (column, row) of the pixel that the random numbers u and v choose.
DEVICE Pair pixel_of(real u, real v, float pixels) { return pair(floor_of(u * pixels), floor_of(v * pixels)); }
// The center of a pixel in a square of `pixels` x `pixels` and side `size`, whose corner is at -shift.
DEVICE Pair pixel_center(Pair pixel, float pixels, float size, float shift) {
    float k = size / pixels;
    return pair((pixel.x + 0.5f) * k - shift, (pixel.y + 0.5f) * k - shift);
}
// Sets the color c, 0 to 1, of a pixel, as stamped() does, and returns the pixel's point. The palette coordinate is
// red times green with `product`, else the sine of red over the sum of the channels.
DEVICE Pair pixel_stamped(float weight, Pair pixel, float pixels, Triple c, real *color, real *rgb, float gradient,
                          float product) {
    Triple b = as_bytes(c);
    if (gradient == 0.0f)
        *rgb = packed_rgb(b.x, b.y, b.z);
    else
        *color = product != 0.0f ? c.x * c.y : sine_of(c.x / (c.x + c.y + c.z));
    return pair(weight * (pixel.x / pixels - 0.5f), weight * (pixel.y / pixels - 0.5f));
}
