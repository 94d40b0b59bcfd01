// Escape-time fractals at any depth by perturbation: z = Z_m + d, where Z is a reference orbit that the host computed in
// fixed point, and d is a small difference in double. When |Z_m + d| < |d|, d is rebased to Z_m + d and m to the start
// of a critical orbit (Zhuoran 2021), so one reference serves every pixel without glitches. Bilinear approximation
// (BLA, Zhuoran 2022) skips 4 * 2^k iterations where d' = A d + B c holds to double's precision.
// The launcher defines FORMULA (0: z^DEGREE + c, 1: its conjugate, 2: the burning ship), DEGREE, JULIA (c is fixed and
// the pixel is z_0), BLA, and WIDE: differences below double's range are floatexp (wide.h) until they have grown.
#include "fractals/sample.h"

#define WIDE_BELOW (-700)  // exponent of differences that the double loop leaves to the floatexp loop
#define REBASED(m) ((m) == v.first_end || (m) == v.last)

#if FORMULA == 2
// |S + q| - |S| without cancellation.
DEVICE double difference_of_absolutes(double s, double q) {
    if (s >= 0.0) return s + q >= 0.0 ? q : -(2.0 * s + q);
    return s + q > 0.0 ? 2.0 * s + q : -q;
}
#endif

// Sign by which the formula multiplies the imaginary part of z^DEGREE.
DEVICE double fold(double2 z) {
#if FORMULA == 1
    return -1.0;
#elif FORMULA == 2
    return (z.x < 0.0) == (z.y < 0.0) ? 1.0 : -1.0;
#else
    return 1.0;
#endif
}

// The difference after one iteration, without c: f(Z + d) - f(Z) by Horner's rule.
DEVICE double2 iterate(double2 reference, double2 d) {
    double2 power = reference, sum = d + reference * (double)DEGREE;
    double binomial = DEGREE;
    for (int j = 2; j < DEGREE; j++) {
        binomial = binomial * (DEGREE - j + 1) / j;
        power = complex_multiply(power, reference);
        sum = complex_multiply(sum, d) + power * binomial;
    }
    sum = complex_multiply(sum, d);
#if FORMULA == 2
    sum.y = difference_of_absolutes(2.0 * reference.x * reference.y, sum.y);
#elif FORMULA == 1
    sum.y = -sum.y;
#endif
    return sum;
}

// Derivative of the next iterate, of which `seed` is the derivative of c: DEGREE z^(DEGREE-1) dz + seed.
DEVICE Wide differentiate(Wide dz, double2 slope, double sign, double2 seed) {
    dz.m = complex_multiply(slope, dz.m);
    dz.m.y *= sign;
    if (dz.e >= 0) {
        dz.m = dz.m + seed * power_of_two(-dz.e);
        double size = max_norm(dz.m);
        return size > 1e-90 && size < 1e90 ? dz : wide(dz.m, dz.e);
    }
    return wide_add(wide(dz.m, dz.e), wide(seed, 0));
}
DEVICE double2 slope_at(double2 z) {
    double2 power = z * (double)DEGREE;
    for (int j = 2; j < DEGREE; j++) power = complex_multiply(power, z);
    return power;
}

#if WIDE
DEVICE Wide wide_iterate(Wide reference, Wide d) {
    Wide power = reference, sum = wide_add(d, wide(reference.m * (double)DEGREE, reference.e));
    double binomial = DEGREE;
    for (int j = 2; j < DEGREE; j++) {
        binomial = binomial * (DEGREE - j + 1) / j;
        power = wide_multiply(power, reference);
        sum = wide_add(wide_multiply(sum, d), wide(power.m * binomial, power.e));
    }
    sum = wide_multiply(sum, d);
#if FORMULA == 2
    double s = 2.0 * reference.m.x * reference.m.y * power_of_two(min(2 * reference.e - sum.e, 1000));
    sum.m.y = difference_of_absolutes(s, sum.m.y);
    sum = wide(sum.m, sum.e);
#elif FORMULA == 1
    sum.m.y = -sum.m.y;
#endif
    return sum;
}
DEVICE Wide wide_slope_at(Wide z) {
    Wide power = wide(z.m * (double)DEGREE, z.e);
    for (int j = 2; j < DEGREE; j++) power = wide_multiply(power, z);
    return power;
}
DEVICE Wide wide_differentiate(Wide dz, Wide slope, double sign, double2 seed) {
    dz = wide_multiply(slope, dz);
    dz.m.y *= sign;
    return wide_add(dz, wide(seed, 0));
}
#endif

#if BLA
// The longest step from orbit index m that is valid for a difference of this size and ends within `room` iterations;
// -1 if there is none. Level k has capacity >> k steps, each of 4 << k iterations, beginning at index 1.
DEVICE int find_step(GLOBAL const BlaStep *steps, View v, int m, int room, double size, int exponent, int *length) {
    int best = -1, k = 0, at = m - 1, start = 0;
    for (; m > 0 && k < v.levels && (at & ((4 << k) - 1)) == 0 && 4 << k <= room; k++) {
        int candidate = start + (at >> (2 + k));
        GLOBAL const BlaStep *step = steps + candidate;
        int difference = step->radius_exponent - exponent;
        if (!(difference > 60 || (difference > -900 && size < step->radius * power_of_two(difference)))) break;
        best = candidate;
        *length = 4 << k;
        start += v.capacity >> k;
    }
    return best;
}
#endif

// One sample of every pixel, averaged with the v.samples samples in `frame` (height, width). `orbit` are the mantissas
// of the reference, `exponents` their exponents if WIDE.
KERNEL draw_perturbed(GLOBAL float4 *frame, GLOBAL const double2 *orbit, GLOBAL const int *exponents,
                      GLOBAL const BlaStep *steps, View v) {
    uint i = thread_index();
    if (i >= (uint)(v.width * v.height_in_pixels)) return;
    double2 offset = sample_offset(i, v), c = offset * (v.height * power_of_two(v.height_exponent));
    Wide wide_c = wide(offset * v.height, v.height_exponent), one;
    one.m = make_double2(1.0, 0.0), one.e = 0;
    const double2 seed_x = make_double2(JULIA ? 0.0 : 1.0, 0.0), seed_y = make_double2(0.0, JULIA ? 0.0 : 1.0);
    Wide d, c_term = wide_c;
    d.m = make_double2(0.0, 0.0), d.e = ZERO_EXPONENT;
    double2 z = make_double2(0.0, 0.0), narrow_d = z;
    Escape r;
    r.n = -1, r.color = COLORING == 3 ? 1e30 : 0.0, r.last = 0.0;
    r.dx = wide(make_double2(JULIA ? 1.0 : 0.0, 0.0), 0), r.dy = wide(make_double2(0.0, JULIA ? 1.0 : 0.0), 0);
    int n = 0, m = 0, length = 0;
    if (JULIA) {
        d = wide_c, narrow_d = c, z = orbit[0] + c;
        c = make_double2(0.0, 0.0), c_term.m = c, c_term.e = ZERO_EXPONENT;
    }
    bool escaped = false;
    while (n < v.max_iterations && !escaped) {
#if WIDE
        bool is_tiny = true;
        Wide wide_z;
        wide_z = wide_add(wide(orbit[m], exponents[m]), d);
        while (n < v.max_iterations && is_tiny) {
#if BLA
            int found = find_step(steps, v, m, v.max_iterations - n, max_norm(d.m), d.e, &length);
            if (found >= 0) {
                Wide a = wide(steps[found].a, steps[found].a_exponent),
                     b = wide(steps[found].b, steps[found].b_exponent);
                d = wide_add(wide_multiply(a, d), wide_multiply(b, c_term));
                r.dx = JULIA ? wide_multiply(a, r.dx) : wide_add(wide_multiply(a, r.dx), b);
            } else
#endif
            {
                length = 1;
                r.dx = wide_differentiate(r.dx, wide_slope_at(wide_z), fold(wide_z.m), seed_x);
                if (FORMULA) r.dy = wide_differentiate(r.dy, wide_slope_at(wide_z), fold(wide_z.m), seed_y);
                d = wide_add(wide_iterate(wide(orbit[m], exponents[m]), d), c_term);
            }
            m += length, n += length;
            wide_z = wide_add(wide(orbit[m], exponents[m]), d);
            z = narrow(wide_z);
            color_orbit(&r, z);
            escaped = z.x * z.x + z.y * z.y > BAILOUT2;
            if (escaped) break;
            if (wide_less(wide_z, d) || REBASED(m)) d = wide_z, m = v.restart;
            is_tiny = d.e < WIDE_BELOW + 100;
        }
        narrow_d = narrow(d);
        if (escaped) break;
#endif
        while (n < v.max_iterations) {
            double2 reference = orbit[m];
#if WIDE
            reference = reference * power_of_two(exponents[m]);
#endif
#if BLA
            int found = find_step(steps, v, m, v.max_iterations - n, max_norm(narrow_d), 0, &length);
            if (found >= 0) {
                BlaStep step = steps[found];
#if WIDE
                Wide b = wide(step.b, step.b_exponent);
                narrow_d = complex_multiply(step.a, narrow_d) * power_of_two(step.a_exponent) +
                           narrow(wide_multiply(b, c_term));
                Wide a = wide(step.a, step.a_exponent);
#else
                narrow_d = complex_multiply(step.a, narrow_d) + complex_multiply(step.b, c);
                Wide a = wide(step.a, 0), b = wide(step.b, 0);
#endif
                r.dx = JULIA ? wide_multiply(a, r.dx) : wide_add(wide_multiply(a, r.dx), b);
            } else
#endif
            {
                double2 next = iterate(reference, narrow_d);
#if WIDE
                if (exponent_of(max_norm(next)) < WIDE_BELOW) break;  // product may have underflowed: redo it above
#endif
                narrow_d = next + c, length = 1;
                double2 slope = slope_at(z);
                r.dx = differentiate(r.dx, slope, fold(z), seed_x);
                if (FORMULA) r.dy = differentiate(r.dy, slope, fold(z), seed_y);
            }
            m += length, n += length;
            reference = orbit[m];
#if WIDE
            reference = reference * power_of_two(exponents[m]);
#endif
            z = reference + narrow_d;
            color_orbit(&r, z);
            escaped = z.x * z.x + z.y * z.y > BAILOUT2;
            if (escaped) break;
            if (max_norm(z) < max_norm(narrow_d) || REBASED(m)) narrow_d = z, m = v.restart;
        }
        d = wide(narrow_d, 0);
    }
    if (!FORMULA) {  // complex differentiable: the derivative upwards is i times the one to the right
        r.dy.m = make_double2(-r.dx.m.y, r.dx.m.x);
        r.dy.e = r.dx.e;
    }
    r.z = z;
    if (escaped) r.n = n;
    add_sample(frame + i, r, v);
}
