// Escape-time fractals at any depth by perturbation: z = Z_m + d, where Z is a reference orbit that the host computed
// in fixed point (renderer/fractals/reference.py), and d is a small difference in double. When |Z_m + d| < |d|, d is
// rebased to Z_m + d and m to the start of a critical orbit (Zhuoran 2021), so one reference serves every pixel without
// glitches. Bilinear approximation (BLA, Zhuoran 2022) skips 4 * 2^k iterations where d' = A d + B c holds to double's
// precision.
// The launcher defines FORMULA (0: z^DEGREE + c, 1: conj(z)^DEGREE + c, 2: the burning ship), DEGREE, JULIA (1: c is
// fixed and the pixel is z_0, 0: the pixel is c), BLA (1: with steps), and WIDE (1: differences below double's range
// are floatexp, a double2 m times 2^e of wide.h, until they have grown). It defines the record dtypes View
// (renderer/fractals/deep_zoom.py) and BlaStep (bilinear.py beside it), and the macros of sample.h.
#include "fractals/sample.h"

#define WIDE_BELOW (-700)  // exponent of the products that double arithmetic leaves to floatexp

// Sign by which the formula multiplies the imaginary part of z^DEGREE: the burning ship takes |2 x y|.
DEVICE double fold(double2 z) {
#if FORMULA == 2
    return (z.x < 0.0) == (z.y < 0.0) ? 1.0 : -1.0;
#else
    return FORMULA == 1 ? -1.0 : 1.0;
#endif
}

// The difference after one iteration, without c: f(Z + d) - f(Z), where d stands for d * 2^-shift. The result's unit is
// 2^-shift, too: it is linear in the last factor, d.
DEVICE double2 iterate(double2 reference, double2 d, int shift) {
    double2 power = reference, small = d * power_of_two(-shift), sum = small + reference * (double)DEGREE;
    double binomial = DEGREE;
    for (int j = 2; j < DEGREE; j++) {  // Horner's rule for the sum of binomial(n, k) Z^(n-k) d^(k-1)
        binomial = binomial * (DEGREE - j + 1) / j;
        power = complex_multiply(power, reference);
        sum = complex_multiply(sum, small) + power * binomial;
    }
    sum = complex_multiply(sum, d);
#if FORMULA == 2  // |s + q| - |s| without cancellation, for the imaginary parts s of Z^2 and q of the difference
    double s = 2.0 * reference.x * reference.y * power_of_two(shift), q = sum.y;
    if (s >= 0.0) return make_double2(sum.x, s + q >= 0.0 ? q : -(2.0 * s + q));
    return make_double2(sum.x, s + q > 0.0 ? 2.0 * s + q : -q);
#elif FORMULA == 1
    sum.y = -sum.y;
#endif
    return sum;
}
// The same of floatexp: both numbers are taken in units of 2^e, in which the larger one is about 1.
DEVICE Wide wide_iterate(Wide reference, Wide d) {
    int e = max(reference.e, d.e), shift = min(e - d.e, 1000);
    return wide(iterate(reference.m * power_of_two(reference.e - e), d.m, shift), (DEGREE - 1) * e + d.e);
}

// Derivative of the next iterate z^DEGREE + c: DEGREE z^(DEGREE-1) dz + seed, where `seed` is the derivative of c.
DEVICE Wide differentiate(Wide dz, Wide z, double2 seed) {
    double2 slope = z.m * (double)DEGREE;
    for (int j = 2; j < DEGREE; j++) slope = complex_multiply(slope, z.m);
    dz.m = complex_multiply(slope, dz.m);
    dz.m.y *= fold(z.m);
    dz.e += (DEGREE - 1) * z.e;
    // Adds the seed, of size 1 or 0: in floatexp if dz's exponent is negative, else to the mantissa, which is
    // normalized only where it nears the ends of double's range.
    if (dz.e < 0) return wide_add(wide(dz.m, dz.e), wide(seed, 0));
    dz.m = dz.m + seed * power_of_two(-dz.e);
    double size = max_norm(dz.m);
    return size > 1e-90 && size < 1e90 ? dz : wide(dz.m, dz.e);
}

#if BLA
// The longest step from orbit index m that is valid for a difference of size * 2^exponent and ends within `room`
// iterations, as an index of `steps`, and its *length in iterations; -1 if there is none. Level k has capacity >> k
// steps, each of 4 << k iterations, beginning at index 1; its first step is steps[start]. A step is valid if the
// difference is below its radius, radius * 2^radius_exponent. A difference of the
// exponents above 60 or below -900 decides alone: power_of_two() of it, or the product, could leave double's range.
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

// The reference's iterate m.
#if WIDE
#define REFERENCE(m) with_exponent(orbit[m], exponents[m])
#else
#define REFERENCE(m) with_exponent(orbit[m], 0)
#endif

// One sample of every pixel, averaged with the v.samples samples in `frame` (height, width). `orbit` are the mantissas
// of the reference, `exponents` their exponents if WIDE.
KERNEL draw_perturbed(GLOBAL float4 *frame, GLOBAL const double2 *orbit, GLOBAL const int *exponents,
                      GLOBAL const BlaStep *steps, View v) {
    uint i = thread_index();
    if (i >= (uint)(v.width * v.height_in_pixels)) return;
    const double2 none = make_double2(0.0, 0.0), right = make_double2(1.0, 0.0), up = make_double2(0.0, 1.0);
    const double seeded = JULIA ? 0.0 : 1.0;  // the derivative of c by the pixel; 1 - seeded is z_0's
    // `offset` is the pixel's difference from the view's center: of c, or of z_0 for Julia sets
    Wide offset = wide(sample_offset(i, v) * v.height, v.height_exponent), zero = wide(none, 0);
    Wide c = JULIA ? zero : offset, d = JULIA ? offset : zero, z = d;
    if (JULIA) z = wide_add(normalized(REFERENCE(0)), offset);
    const double2 narrow_c = narrow(c);
    bool tiny = WIDE;  // d and z are normalized; otherwise their exponents are 0
    if (!tiny) d = with_exponent(narrow(d), 0), z = with_exponent(narrow(z), 0);
    Escape r = start_escape(wide(right * (1.0 - seeded), 0), wide(up * (1.0 - seeded), 0));
    int n = 0, m = 0;
    while (n < v.max_iterations && r.n < 0) {
        int length = 1, found = -1;
#if BLA  // a step of many iterations, if one is valid here
        found = find_step(steps, v, m, v.max_iterations - n, max_norm(d.m), d.e, &length);
        if (found >= 0) {
            BlaStep step = steps[found];
            Wide a = with_exponent(step.a, step.a_exponent), b = with_exponent(step.b, step.b_exponent);
            r.dx = wide_multiply(a, r.dx);  // the derivative of d' = A d + B c
            if (!JULIA) r.dx = wide_add(r.dx, b);
            if (WIDE) d = wide_add(wide_multiply(a, d), wide_multiply(b, c));
            if (WIDE && !tiny) d = with_exponent(narrow(d), 0);  // wide_add normalized it
            if (!WIDE) d.m = complex_multiply(a.m, d.m) + complex_multiply(b.m, narrow_c);
        }
#endif
        if (found < 0) {  // one iteration
            double2 next = none;
            if (!tiny) next = iterate(narrow(REFERENCE(m)), d.m, 0);
            // `next` may have lost digits below double's range: floatexp repeats the iteration
            if (WIDE && !tiny && exponent_of(max_norm(next)) < WIDE_BELOW) tiny = true, d = normalized(d);
            r.dx = differentiate(r.dx, z, right * seeded);
            if (FORMULA) r.dy = differentiate(r.dy, z, up * seeded);
            if (tiny) d = wide_add(wide_iterate(normalized(REFERENCE(m)), d), c);
            if (!tiny) d.m = next + narrow_c;
        }
        m += length, n += length;
        Wide reference = REFERENCE(m);
        z = tiny ? wide_add(normalized(reference), d) : with_exponent(narrow(reference) + d.m, 0);
        r.z = narrow(z);
        color_orbit(&r, r.z);
        if (r.z.x * r.z.x + r.z.y * r.z.y > BAILOUT2) r.n = n;
        // rebasing to index `restart`, where Z is 0: `last` and, for Julia sets, `first_end` end the orbits
        bool smaller = tiny ? wide_less(z, d) : max_norm(z.m) < max_norm(d.m);
        if (smaller || m == v.first_end || m == v.last) d = z, m = v.restart;
        // 100 binades above the limit, so that d does not change to and fro
        if (tiny && d.e > WIDE_BELOW + 100) tiny = false, d = with_exponent(narrow(d), 0), z = with_exponent(r.z, 0);
    }
    if (!FORMULA) r.dy = with_exponent(make_double2(-r.dx.m.y, r.dx.m.x), r.dx.e);  // complex differentiable
    add_sample(frame + i, r, v);
}
