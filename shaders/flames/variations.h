// The variations of fractal flames (S. Draves and E. Reckase, "The Fractal Flame Algorithm"; the later ones by the
// community around flam3), in flam3's order.
//
// VARIATION(name, parameter = default, ...) { body } returns the vector that the variation adds for the point (x, y).
// renderer/flames/variations.py reads names, parameters and the count of random numbers from this file and writes each
// function's head:
//     Pair variation_NAME(real x, real y, float weight, GLOBAL const float *affine, Random *random,
//                         float PARAMETER, ...)
// Files call a parameter NAME_PARAMETER; so does the body if it is called x, y, weight or circle. `affine` is the
// pre-affine a b c d e f: x = a X + b Y + c, y = d X + e Y + f.
//
// To add a variation, append one here (its file index is its position) and its formula in float64 to
// tests/flames/reference_variations.py. Only uniform(random) and gauss4(random) draw random numbers, each call written
// out, outside loops: calls are counted in the text. Use no library functions but those of reproducible_math.h, so that
// every device gives the same bits, and select with ?: instead of branching, because a work-item may carry a vector.
// Angles: atan_xy(y, x) = atan2(x, y), clockwise from +y, in the early variations; angle_of(y, x) = atan2(y, x) in the
// later ones.
#include "common/random_simd.h"

// The state of a chain: a position, a palette coordinate, and 1 + the index of the last xform (0 at the start).
typedef struct {
    real x, y, z, color, last_xform;
} Point;

#define EPSILON 1e-10f
#define TWO_PI 6.283185307179586f

// ---- affine maps

// p after an affine of x and y at `a`, 6 coefficients: a post-affine, or in 2D any.
DEVICE Point apply_post(Point p, GLOBAL const float *a) {
    Point q = p;
    q.x = FUSED(a[0], p.x, FUSED(a[1], p.y, a[2]));
    q.y = FUSED(a[3], p.x, FUSED(a[4], p.y, a[5]));
    return q;
}

// p after the affine at `a`: 6 coefficients, in 3D 12.
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

// ---- what variations share

DEVICE Pair scaled(real k, real x, real y) { return pair(k * x, k * y); }
DEVICE Pair swapped(Pair p) { return pair(p.y, p.x); }
DEVICE Pair from_polar(real radius, real angle) {
    Pair c = circle(angle);
    return scaled(radius, c.x, c.y);
}

DEVICE real vnorm(real x, real y) { return sqrt(x * x + y * y); }
DEVICE real atan_xy(real y, real x) { return angle_of(x, y); }
DEVICE real square(real x) { return x * x; }

// 1 or -1; they differ at 0.
DEVICE real sign_nonnegative(real t) { return t >= 0.0f ? (real)(1.0f) : (real)(-1.0f); }
DEVICE real sign_positive(real t) { return t > 0.0f ? (real)(1.0f) : (real)(-1.0f); }

// Sum of four uniform random numbers minus 2: roughly normal, -2 to 2.
DEVICE real gauss4(Random *random) {
    real sum = uniform(random);
    sum = sum + uniform(random);
    sum = sum + uniform(random);
    return sum + uniform(random) - 2.0f;
}

// For h = half the sum of the distances from (1, 0) and (-1, 0): (h - 1, h - |x|), both without cancellation.
DEVICE Pair elliptic_terms(real x, real y) {
    real y2 = y * y, right = magnitude(x - 1.0f), left = magnitude(x + 1.0f), beyond = magnitude(x) - 1.0f;
    real from_right = y2 / (sqrt(right * right + y2) + right + 1e-30f);
    real from_left = y2 / (sqrt(left * left + y2) + left + 1e-30f);
    real over = 0.5f * (from_right + from_left);
    return pair(over + (beyond > 0.0f ? beyond : (real)(0.0f)), over + (beyond < 0.0f ? -beyond : (real)(0.0f)));
}

// t wrapped to -m .. m.
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

// ---- functions of z = x + i y, times k; those of i z swap x and y: sinh z = -i sin(i z)

DEVICE Pair conjugate(Pair z) { return pair(z.x, -z.y); }

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

VARIATION(linear) { return scaled(weight, x, y); }

VARIATION(sinusoidal) { return scaled(weight, sine_of(x), sine_of(y)); }

VARIATION(spherical) { return scaled(weight / (x * x + y * y + EPSILON), x, y); }

VARIATION(swirl) {
    Pair c = circle(x * x + y * y);
    return scaled(weight, c.y * x - c.x * y, c.x * x + c.y * y);
}

VARIATION(horseshoe) { return scaled(weight / (vnorm(x, y) + EPSILON), (x - y) * (x + y), 2.0f * x * y); }

VARIATION(polar) { return scaled(weight, atan_xy(y, x) * (1.0f / PI), vnorm(x, y) - 1.0f); }

VARIATION(handkerchief) {
    real phi = atan_xy(y, x), r = vnorm(x, y);
    return scaled(weight * r, sine_of(phi + r), cosine_of(phi - r));
}

VARIATION(heart) {
    real r = vnorm(x, y);
    Pair c = circle(r * atan_xy(y, x));
    return scaled(weight * r, c.y, -c.x);
}

VARIATION(disc) { return swapped(from_polar(weight * (atan_xy(y, x) * (1.0f / PI)), PI * vnorm(x, y))); }

VARIATION(spiral) {
    real r = vnorm(x, y), safe = r + EPSILON;
    Pair c = circle(safe);
    return scaled(weight / safe, y / r + c.y, x / r - c.x);
}

VARIATION(hyperbolic) {
    real r = vnorm(x, y), safe = r + EPSILON;
    return scaled(weight, x / r / safe, y / r * safe);
}

VARIATION(diamond) {
    real r = vnorm(x, y);
    Pair c = circle(r);
    return scaled(weight, x / r * c.x, y / r * c.y);
}

VARIATION(ex) {
    real phi = atan_xy(y, x), r = vnorm(x, y);
    real s = sine_of(phi + r), c = cosine_of(phi - r);
    real m0 = r * (s * s * s), m1 = r * (c * c * c);
    return scaled(weight, m0 + m1, m0 - m1);
}

VARIATION(julia) {
    real half_turn = uniform(random) < 0.5f ? (real)(0.0f) : (real)(PI);
    return from_polar(weight * sqrt(vnorm(x, y)), 0.5f * atan_xy(y, x) + half_turn);
}

VARIATION(bent) { return scaled(weight, x < 0.0f ? 2.0f * x : x, y < 0.0f ? 0.5f * y : y); }

VARIATION(waves) {
    real u = y / (affine[2] * affine[2] + EPSILON), v = x / (affine[5] * affine[5] + EPSILON);
    return scaled(weight, x + affine[1] * sine_of(u), y + affine[4] * sine_of(v));
}

VARIATION(fisheye) { return scaled(2.0f * weight / (vnorm(x, y) + 1.0f), y, x); }

VARIATION(popcorn) {
    real u = sine_of(tangent_of(3.0f * y)), v = sine_of(tangent_of(3.0f * x));
    return scaled(weight, x + affine[2] * u, y + affine[5] * v);
}

VARIATION(exponential) { return complex_exp(weight, x - 1.0f, PI * y); }

VARIATION(power) {
    real r = vnorm(x, y);
    return scaled(weight * power_of(r, x / r), y / r, x / r);
}

VARIATION(cosine) { return complex_cos(weight, PI * x, y); }

VARIATION(rings) {
    real r = vnorm(x, y);
    float d = affine[2] * affine[2] + EPSILON;
    real k = remainder_of(r + d, (real)(2.0f * d)) - d + r * (1.0f - d);
    return scaled(weight * k, y / r, x / r);
}

VARIATION(fan) {
    float d = PI * (affine[2] * affine[2] + EPSILON);
    real phi = atan_xy(y, x);
    real over = remainder_of(phi + affine[5], (real)(d));
    return from_polar(weight * vnorm(x, y), phi + (over > 0.5f * d ? (real)(-0.5f * d) : (real)(0.5f * d)));
}

VARIATION(blob, low = 0, high = 1, waves = 1) {
    real k = weight * (low + (high - low) * (0.5f + 0.5f * sine_of(waves * atan_xy(y, x))));
    return scaled(k, x, y);
}

VARIATION(pdj, a = 0, b = 0, c = 0, d = 0) {
    return scaled(weight, sine_of(a * y) - cosine_of(b * x), sine_of(c * x) - cosine_of(d * y));
}

VARIATION(fan2, x = 0, y = 0) {
    float d = PI * (fan2_x * fan2_x + EPSILON);
    real phi = atan_xy(y, x);
    real t = phi + fan2_y - d * truncation((phi + fan2_y) / d);
    return swapped(from_polar(weight * vnorm(x, y), phi + (t > 0.5f * d ? (real)(-0.5f * d) : (real)(0.5f * d))));
}

VARIATION(rings2, val = 0) {
    real r = vnorm(x, y);
    float d = val * val + EPSILON;
    real k = r - 2.0f * d * truncation((r + d) / (2.0f * d)) + r * (1.0f - d);
    return scaled(weight * k, x / r, y / r);
}

VARIATION(eyefish) { return scaled(2.0f * weight / (vnorm(x, y) + 1.0f), x, y); }

VARIATION(bubble) { return scaled(weight / (0.25f * (x * x + y * y) + 1.0f), x, y); }

VARIATION(cylinder) { return scaled(weight, sine_of(x), y); }

VARIATION(perspective, angle = 0, dist = 0) {
    Pair c = circle((real)(angle * (PI / 2.0f)));
    real t = 1.0f / (dist - y * c.y);
    return scaled(weight * t, dist * x, dist * c.x * y);
}

VARIATION(noise) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(weight * uniform(random), x * c.x, y * c.y);
}

VARIATION(julian, power = 1, dist = 1) {
    real t = truncation(fabs(power) * uniform(random));
    Pair c = circle((angle_of(y, x) + TWO_PI * t) / power);
    return scaled(weight * power_of(x * x + y * y, (real)(dist / power / 2.0f)), c.x, c.y);
}

VARIATION(juliascope, power = 1, dist = 1) {
    real t = truncation(fabs(power) * uniform(random)), theta = angle_of(y, x);
    real half_t = floor_of(0.5f * t);
    Pair c = circle((TWO_PI * t + (t - 2.0f * half_t == 0.0f ? theta : -theta)) / power);
    return scaled(weight * power_of(x * x + y * y, (real)(dist / power / 2.0f)), c.x, c.y);
}

VARIATION(blur) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(weight * uniform(random), c.x, c.y);
}

VARIATION(gaussian_blur) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(weight * gauss4(random), c.x, c.y);
}

VARIATION(radial_blur, angle = 0) {
    Pair q = circle((real)(angle * (PI / 2.0f)));
    real g = weight * gauss4(random), r = vnorm(x, y), z = g * q.x - 1.0f;
    Pair c = circle(angle_of(y, x) + g * q.y);
    return pair(r * c.x + z * x, r * c.y + z * y);
}

VARIATION(pie, slices = 6, rotation = 0, thickness = 0.5) {
    real s = truncation(uniform(random) * slices + 0.5f);
    Pair c = circle(rotation + TWO_PI * (s + uniform(random) * thickness) / slices);
    return scaled(weight * uniform(random), c.x, c.y);
}

VARIATION(ngon, sides = 5, power = 3, circle = 1, corners = 2) {
    float b = TWO_PI / sides;
    real theta = angle_of(y, x), p = theta - b * floor_of(theta / b);
    p = p > 0.5f * b ? p - b : p;
    real k = corners * (1.0f / (cosine_of(p) + EPSILON) - 1.0f) + ngon_circle;
    return scaled(weight * k / (power_of(x * x + y * y, (real)(0.5f * power)) + EPSILON), x, y);
}

VARIATION(curl, c1 = 1, c2 = 0) {
    real re = 1.0f + c1 * x + c2 * (x * x - y * y), im = c1 * y + 2.0f * c2 * x * y;
    return scaled(weight / (re * re + im * im), x * re + y * im, y * re - x * im);
}

VARIATION(rectangles, x = 1, y = 1) {
    real u = rectangles_x == 0.0f ? x : (2.0f * floor_of(x / rectangles_x) + 1.0f) * rectangles_x - x;
    real v = rectangles_y == 0.0f ? y : (2.0f * floor_of(y / rectangles_y) + 1.0f) * rectangles_y - y;
    return scaled(weight, u, v);
}

VARIATION(arch) {
    Pair c = circle(uniform(random) * (weight * PI));
    return scaled(weight, c.y, c.y * c.y / c.x);
}

VARIATION(tangent) { return scaled(weight, sine_of(x) / cosine_of(y), tangent_of(y)); }

VARIATION(square) {
    real u = uniform(random) - 0.5f;
    return scaled(weight, u, uniform(random) - 0.5f);
}

VARIATION(rays) {
    real k = weight * tangent_of(weight * uniform(random) * PI) * weight / (x * x + y * y + EPSILON);
    return scaled(k, cosine_of(x), sine_of(y));
}

VARIATION(blade) {
    Pair c = circle(uniform(random) * weight * vnorm(x, y));
    return scaled(weight * x, c.x + c.y, c.x - c.y);
}

VARIATION(secant2) {
    real c = cosine_of(weight * vnorm(x, y));
    return scaled(weight, x, 1.0f / c + (c < 0.0f ? (real)(1.0f) : (real)(-1.0f)));
}

VARIATION(twintrian) {
    Pair c = circle(uniform(random) * weight * vnorm(x, y));
    real d = 0.434294481903252f * logarithm_of(c.y * c.y) + c.x;
    d = magnitude(d) <= 1e10f ? d : (real)(-30.0f);
    return scaled(weight * x, d, d - PI * c.y);
}

VARIATION(cross) {
    real s = x * x - y * y;
    return scaled(weight * sqrt(1.0f / (s * s + EPSILON)), x, y);
}

VARIATION(disc2, rot = 0, twist = 0) {
    Pair t = circle(rot * PI * (x + y)), c = circle((real)(twist));
    float k = twist > TWO_PI ? 1.0f + twist - TWO_PI : twist < -TWO_PI ? 1.0f + twist + TWO_PI : 1.0f;
    return scaled(weight * (atan_xy(y, x) * (1.0f / PI)), t.y + k * (c.x - 1.0f), t.x + k * c.y);
}

VARIATION(super_shape, rnd = 0, m = 0, n1 = 1, n2 = 1, n3 = 1, holes = 0) {
    real r = vnorm(x, y);
    Pair c = circle(0.25f * m * angle_of(y, x) + 0.25f * PI);
    real sum = power_of(magnitude(c.x), (real)(n2)) + power_of(magnitude(c.y), (real)(n3));
    real k = (rnd * uniform(random) + (1.0f - rnd) * r - holes) * power_of(sum, (real)(-1.0f / n1)) / r;
    return scaled(weight * k, x, y);
}

VARIATION(flower, petals = 0, holes = 0) {
    real k = (uniform(random) - holes) * cosine_of(petals * angle_of(y, x)) / vnorm(x, y);
    return scaled(weight * k, x, y);
}

VARIATION(conic, eccentricity = 1, holes = 0) {
    real r = vnorm(x, y);
    real k = (uniform(random) - holes) * eccentricity / (1.0f + eccentricity * (x / r)) / r;
    return scaled(weight * k, x, y);
}

VARIATION(parabola, height = 0, width = 0) {
    Pair c = circle(vnorm(x, y));
    real u = height * (c.y * c.y) * uniform(random);
    return scaled(weight, u, width * c.x * uniform(random));
}

VARIATION(bent2, x = 1, y = 1) { return scaled(weight, x < 0.0f ? bent2_x * x : x, y < 0.0f ? bent2_y * y : y); }

VARIATION(bipolar, shift = 0) {
    real y2 = y * y, left = square(x + 1.0f) + y2, right = square(x - 1.0f) + y2;
    real v = 0.5f * angle_of(2.0f * y, x * x + y2 - 1.0f) - shift * (PI / 2.0f);
    return scaled(weight * (2.0f / PI), 0.25f * logarithm_of(left / right), wrap(v, (real)(0.5f * PI)));
}

VARIATION(boarders) {
    real cx = nearest(x), cy = nearest(y), u = x - cx, v = y - cy;
    mask inner = uniform(random) >= 0.75f, flat = magnitude(u) >= magnitude(v);
    real su = 0.25f * sign_nonnegative(u), sv = 0.25f * sign_nonnegative(v);
    real bx = flat ? su : sv * u / v, by = flat ? su * v / u : sv;
    return scaled(weight, 0.5f * u + cx + (inner ? (real)(0.0f) : bx), 0.5f * v + cy + (inner ? (real)(0.0f) : by));
}

VARIATION(butterfly) {
    real y2 = 2.0f * y;
    return scaled(weight * 1.3029400317411197909f * sqrt(magnitude(x * y) / (EPSILON + x * x + y2 * y2)), x, y2);
}

VARIATION(cell, size = 1) {
    real cx = floor_of(x / size), cy = floor_of(y / size);
    real gx = cx >= 0.0f ? 2.0f * cx : -(2.0f * cx + 1.0f), gy = cy >= 0.0f ? 2.0f * cy : -(2.0f * cy + 1.0f);
    return pair(weight * (x - cx * size + gx * size), -weight * (y - cy * size + gy * size));
}

VARIATION(cpow, r = 1, i = 0, power = 1) {
    float c = r / power, d = i / power;
    real theta = angle_of(y, x), l = 0.5f * logarithm_of(x * x + y * y);
    real wedge = TWO_PI / power * floor_of(power * uniform(random));
    return complex_exp(weight, c * l - d * theta, c * theta + d * l + wedge);
}

VARIATION(curve, xamp = 0, yamp = 0, xlength = 1, ylength = 1) {
    float lx = fmax(xlength * xlength, 1e-20f), ly = fmax(ylength * ylength, 1e-20f);
    return scaled(weight, x + xamp * exponential_of(-y * y / lx), y + yamp * exponential_of(-x * x / ly));
}

VARIATION(edisc) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(e.y / m * (1.0f + magnitude(a)));
    Pair c = circle(logarithm_of(m + sqrt(e.x))), h = hyperbola(-angle_of(b, a));
    return scaled(weight / 11.57034632f, h.x * c.x, h.y * (y > 0.0f ? -c.y : c.y));
}

VARIATION(elliptic) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(e.y / m * (1.0f + magnitude(a)));
    return scaled(weight / (PI / 2.0f), angle_of(a, b), sign_positive(y) * logarithm_of(m + sqrt(e.x)));
}

VARIATION(escher, beta = 0) {
    Pair b = circle((real)(beta));
    real c = 0.5f * (1.0f + b.x), d = 0.5f * b.y, l = 0.5f * logarithm_of(x * x + y * y), theta = angle_of(y, x);
    return complex_exp(weight, c * l - d * theta, c * theta + d * l);
}

VARIATION(foci) { return swapped(conjugate_cot(weight, 0.5f * y, 0.5f * x)); }

VARIATION(lazysusan, space = 0, twist = 0, spin = 0, x = 0, y = 0) {
    real u = x - lazysusan_x, v = y + lazysusan_y, r = vnorm(u, v);
    Pair c = circle(angle_of(v, u) + spin + twist * (weight - r));
    real k = weight * (1.0f + space / r);
    mask inside = r < weight;
    return pair((inside ? weight * r * c.x : k * u) + lazysusan_x, (inside ? weight * r * c.y : k * v) - lazysusan_y);
}

VARIATION(loonie) {
    real r2 = x * x + y * y, w2 = (real)(weight * weight);
    return scaled(r2 < w2 ? weight * sqrt(w2 / r2 - 1.0f) : (real)(weight), x, y);
}

// Applied before all others: its result is added to the point (x, y) that they transform.
VARIATION(pre_blur) {
    real g = weight * gauss4(random);
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(g, c.x, c.y);
}

VARIATION(modulus, x = 0, y = 0) { return scaled(weight, wrap(x, (real)(modulus_x)), wrap(y, (real)(modulus_y))); }

VARIATION(oscilloscope, separation = 1, frequency = 3.141592653589793, amplitude = 1, damping = 0) {
    real t = amplitude * exponential_of(-magnitude(x) * damping) * cosine_of(TWO_PI * frequency * x) + separation;
    return scaled(weight, x, magnitude(y) <= t ? -y : y);
}

VARIATION(polar2) { return scaled(weight / PI, atan_xy(y, x), 0.5f * logarithm_of(x * x + y * y)); }

VARIATION(popcorn2, x = 0, y = 0, c = 0) {
    real u = popcorn2_x * sine_of(tangent_of(c * y)), v = popcorn2_y * sine_of(tangent_of(c * x));
    return scaled(weight, x + u, y + v);
}

VARIATION(scry) {
    real r2 = x * x + y * y;
    return scaled(1.0f / (sqrt(r2) * (r2 + 1.0f / (weight + EPSILON))), x, y);
}

VARIATION(separation, x = 0, xinside = 0, y = 0, yinside = 0) {
    real u = sign_positive(x) * sqrt(x * x + separation_x * separation_x) - x * xinside;
    real v = sign_positive(y) * sqrt(y * y + separation_y * separation_y) - y * yinside;
    return scaled(weight, u, v);
}

VARIATION(split, xsize = 0, ysize = 0) {
    real u = sign_nonnegative(cosine_of(y * ysize * PI)), v = sign_nonnegative(cosine_of(x * xsize * PI));
    return scaled(weight, x * u, y * v);
}

VARIATION(splits, x = 0, y = 0) {
    return scaled(weight, x + sign_nonnegative(x) * splits_x, y + sign_nonnegative(y) * splits_y);
}

VARIATION(stripes, space = 0, warp = 0) {
    real row = floor_of(x + 0.5f), over = x - row;
    return scaled(weight, over * (1.0f - space) + row, y + over * over * warp);
}

VARIATION(wedge, angle = 0, hole = 0, count = 1, swirl = 0) {
    return wedge_of_radius(vnorm(x, y), x, y, weight, angle, hole, count, swirl);
}

VARIATION(wedge_julia, angle = 0, count = 1, power = 1, dist = 0) {
    real t = truncation(fabs(power) * uniform(random));
    Pair c = circle(cut_wedges((angle_of(y, x) + TWO_PI * t) / power, angle, count));
    return scaled(weight * power_of(x * x + y * y, (real)(dist / power / 2.0f)), c.x, c.y);
}

VARIATION(wedge_sph, angle = 0, hole = 0, count = 1, swirl = 0) {
    return wedge_of_radius(1.0f / (vnorm(x, y) + EPSILON), x, y, weight, angle, hole, count, swirl);
}

VARIATION(whorl, inside = 0, outside = 0) {
    real r = vnorm(x, y);
    return from_polar(weight * r, angle_of(y, x) + (r < weight ? (real)(inside) : (real)(outside)) / (weight - r));
}

VARIATION(waves2, scalex = 0, scaley = 0, freqx = 0, freqy = 0) {
    return scaled(weight, x + scalex * sine_of(y * freqx), y + scaley * sine_of(x * freqy));
}

VARIATION(exp) { return complex_exp(weight, x, y); }

VARIATION(log) { return scaled(weight, 0.5f * logarithm_of(x * x + y * y), angle_of(y, x)); }

VARIATION(sin) { return complex_sin(weight, x, y); }

VARIATION(cos) { return complex_cos(weight, x, y); }

VARIATION(tan) { return complex_tan(weight, x, y); }

VARIATION(sec) { return complex_sec(weight, x, y); }

VARIATION(csc) { return conjugate(conjugate_csc(weight, x, y)); }

VARIATION(cot) { return conjugate(conjugate_cot(weight, x, y)); }

VARIATION(sinh) { return swapped(complex_sin(weight, y, x)); }

VARIATION(cosh) { return conjugate(complex_cos(weight, y, x)); }

VARIATION(tanh) { return swapped(complex_tan(weight, y, x)); }

VARIATION(sech) { return conjugate(complex_sec(weight, y, x)); }

VARIATION(csch) { return conjugate(swapped(conjugate_csc(weight, y, x))); }

VARIATION(coth) { return swapped(conjugate_cot(weight, y, x)); }

VARIATION(auger, freq = 1, weight = 0.5, sym = 0, scale = 1) {
    real s = sine_of(freq * x), t = sine_of(freq * y);
    real dy = y + auger_weight * (scale * s * 0.5f + magnitude(y) * s);
    real dx = x + auger_weight * (scale * t * 0.5f + magnitude(x) * t);
    return scaled(weight, x + sym * (dx - x), dy);
}

VARIATION(flux, spread = 0) {
    real a = x + weight, b = x - weight;
    real k = weight * (2.0f + spread) * sqrt(sqrt(y * y + a * a) / sqrt(y * y + b * b));
    return from_polar(k, 0.5f * (angle_of(y, b) - angle_of(y, a)));
}

VARIATION(mobius, re_a = 0, im_a = 0, re_b = 0, im_b = 0, re_c = 0, im_c = 0, re_d = 0, im_d = 0) {
    real u = re_a * x - im_a * y + re_b, v = re_a * y + im_a * x + im_b;
    real p = re_c * x - im_c * y + re_d, q = re_c * y + im_c * x + im_d;
    return scaled(weight / (p * p + q * q), u * p + v * q, v * p - u * q);
}
