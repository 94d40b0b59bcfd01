// Elementary functions that give the same bits on every device: only IEEE operations and explicit fused multiply-adds
// in a fixed order (build with STRICT=1). Flames, light profiles, volumes and distance fields include this file, since
// vendors' libraries differ in the last bit and chaotic maps amplify it. Relative error about 2e-7. Polynomials after
// S. Moshier's Cephes; argument reduction after Cody and Waite. common/simd.h defines `real`, `bits` and `whole` (a
// float, uint and int of each lane), `mask` (a truth value of each lane), FUSED(a, b, c) = a b + c, rounded once, and
// `truncated`, the integer toward zero.
#include "common/angle.h"

typedef struct {
    real x, y;
} Pair;

DEVICE Pair pair(real x, real y) {
    Pair p = {x, y};
    return p;
}

// x rounded toward zero. Values from 2^23 (8388608) on have no fraction and are returned as they are.
DEVICE real truncation(real x) {
    real t = real_of(truncated(x));
    return magnitude(x) < 8388608.0f ? t : x;
}

// x rounded down.
DEVICE real floor_of(real x) {
    real t = real_of(truncated(x));
    t = t > x ? t - 1.0f : t;
    return magnitude(x) < 8388608.0f ? t : x;
}

// x rounded to the nearest integer, ties to even: floats from 2^23 to 2^24 are the integers, so the addition rounds.
DEVICE real nearest(real x) {
    real t = (magnitude(x) + 8388608.0f) - 8388608.0f;
    return magnitude(x) < 8388608.0f ? with_sign_of(t, x) : x;
}

// fmod: x - y * truncation(x / y), with the sign of x. y must not be zero. The quotient may be rounded to the next
// integer, so r may be off by one b.
DEVICE real remainder_of(real x, real y) {
    real a = magnitude(x), b = magnitude(y);
    real r = FUSED(-floor_of(a / b), b, a);
    r = r < 0.0f ? r + b : r;
    r = r >= b ? r - b : r;
    return with_sign_of(r, x);
}

// A hash of u, C. Wellons's lowbias32: every bit of u affects every bit of the result.
DEVICE bits mixed(bits u) {
    u = (u ^ (u >> 16)) * 0x21f0aaadu;
    u = (u ^ (u >> 15)) * 0x735a2d97u;
    return u ^ (u >> 15);
}

#define LARGEST_ANGLE 67108864.0f  // 2^26 radians: neighboring floats from here on differ by more than a turn

// An angle in radians as quarter turns: x is the nearest whole number of them, y the fraction from -1/2 to 1/2 beside
// it. 2 / pi is the sum of two floats and the product's rounding error is kept, so the fraction is exact to rounding
// for |angle| < LARGEST_ANGLE.
DEVICE Pair quarter_turns(real angle) {
    real product = angle * 0.63661975f;
    real error = FUSED(angle, 2.5682552973194106e-08f, FUSED(angle, 0.63661975f, -product));
    real whole_quarters = nearest(product), fraction = (product - whole_quarters) + error, carry = nearest(fraction);
    return pair(whole_quarters + carry, fraction - carry);
}

// (cos, sin) of -1/2..1/2 of a quarter turn, by polynomials in the square of the angle.
DEVICE Pair point_near_0(real quarters) {
    real r = quarters * 1.57079637f, r2 = r * r;
    real s = FUSED(r2, -1.9515295891e-4f, 8.3321608736e-3f);
    s = FUSED(s, r2, -1.6666654611e-1f);
    s = FUSED(s * r2, r, r);
    real c = FUSED(r2, 2.443315711809948e-5f, -1.388731625493765e-3f);
    c = FUSED(c, r2, 4.166664568298827e-2f);
    c = FUSED(c * r2, r2, FUSED(r2, -0.5f, 1.0f));
    return pair(c, s);
}

// (cos, sin) of quarter turns: `turns.x` is an integer, `turns.y` the fraction beside it.
DEVICE Pair point_at(Pair turns) {
    const Pair near = point_near_0(turns.y);
    real n = turns.x, quadrant = n - 4.0f * floor_of(n * 0.25f);  // n modulo 4
    mask odd = quadrant == 1.0f || quadrant == 3.0f;
    real cosine = odd ? near.y : near.x, sine = odd ? near.x : near.y;
    cosine = quadrant == 1.0f || quadrant == 2.0f ? -cosine : cosine;
    sine = quadrant >= 2.0f ? -sine : sine;
    return pair(cosine, sine);
}

// (cos, sin) of an angle in radians. From LARGEST_ANGLE on, a hash of the angle selects a uniformly distributed point
// of the circle; infinities and NaN give NaN.
DEVICE Pair circle(real angle) {
    mask large = magnitude(angle) >= LARGEST_ANGLE && magnitude(angle) <= 3e38f;
    if (ANY_LANE(large)) {
        real random_turn = real_of(whole_of_bits(mixed(bits_of(angle)) >> 8)) * 3.7450704e-7f;  // 2 pi / 2^24
        angle = large ? random_turn : angle;
    }
    return point_at(quarter_turns(angle));
}

DEVICE real sine_of(real x) { return circle(x).y; }
DEVICE real cosine_of(real x) { return circle(x).x; }
DEVICE real tangent_of(real x) {
    Pair c = circle(x);
    return c.y / c.x;
}

// e^x = 2^n e^r; x is clamped to +-120. n ln 2 is subtracted in two parts, 0.693359375 - 2.12194440e-4, the first of
// which has few bits, so that its product with n is exact.
DEVICE real exponential_of(real x) {
    x = x > 120.0f ? 120.0f : x;
    x = x < -120.0f ? -120.0f : x;
    real n = nearest(x * 1.44269504088896341f);
    real r = FUSED(n, -0.693359375f, x);
    r = FUSED(n, 2.12194440e-4f, r);
    real p = FUSED(r, 1.9875691500e-4f, 1.3981999507e-3f);
    p = FUSED(p, r, 8.3334519073e-3f);
    p = FUSED(p, r, 4.1665795894e-2f);
    p = FUSED(p, r, 1.6666665459e-1f);
    p = FUSED(p, r, 5.0000001201e-1f);
    p = FUSED(p * r, r, r) + 1.0f;
    whole power = truncated(n), half_power = power >> 1;  // 2^n by two factors: 2^n itself may be out of range
    whole low = (half_power + 127) << 23, high = (power - half_power + 127) << 23;
    return p * real_of_bits(bits_of_whole(low)) * real_of_bits(bits_of_whole(high));
}

// Natural logarithm of 2^-shift x for a finite x >= 2^-126: x is 2^e (1 + m) with 1 + m from sqrt(1/2) to sqrt(2).
DEVICE real logarithm_of_normal(real x, real shift) {
    bits b = bits_of(x) - 0x3f3504f3u;  // the bits of sqrt(1/2), whose exponent field then counts e
    real e = real_of(whole_of_bits(b) >> 23) - shift;
    real m = real_of_bits((b & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    real z = m * m;
    real p = FUSED(m, 7.0376836292e-2f, -1.1514610310e-1f);
    p = FUSED(p, m, 1.1676998740e-1f);
    p = FUSED(p, m, -1.2420140846e-1f);
    p = FUSED(p, m, 1.4249322787e-1f);
    p = FUSED(p, m, -1.6668057665e-1f);
    p = FUSED(p, m, 2.0000714765e-1f);
    p = FUSED(p, m, -2.4999993993e-1f);
    p = FUSED(p, m, 3.3333331174e-1f);
    p = p * m * z;
    p = FUSED(e, -2.12194440e-4f, p);
    p = FUSED(z, -0.5f, p);
    return FUSED(e, 0.693359375f, m + p);
}

// Natural logarithm of x: minus infinity for 0, NaN for negative x. Subnormal x are scaled by 2^23 before.
DEVICE real logarithm_of(real x) {
    mask small = x < 1.17549435e-38f;
    real y = logarithm_of_normal(small ? x * 8388608.0f : x, small ? (real)(23.0f) : (real)(0.0f));
    real infinity = (real)(1.0f) / (real)(0.0f);
    y = x == 0.0f ? -infinity : y;
    y = x == infinity ? infinity : y;
    return x >= 0.0f ? y : infinity - infinity;
}

// x^y for x >= 0.
DEVICE real power_of(real x, real y) {
    real p = exponential_of(y * logarithm_of(x));
    p = x == 0.0f ? (y > 0.0f ? (real)(0.0f) : (real)(1.0f) / (real)(0.0f)) : p;
    return y == 0.0f ? (real)(1.0f) : p;
}

// (cosh x, sinh x). Near 0, where e^x - e^-x would cancel, sinh is a Taylor polynomial.
DEVICE Pair hyperbola(real x) {
    real e = exponential_of(x), inverse = 1.0f / e, x2 = x * x;
    real s = FUSED(x2, 1.98412698e-4f, 8.33333333e-3f);
    s = FUSED(s, x2, 1.66666667e-1f);
    s = FUSED(s * x2, x, x);
    return pair(0.5f * (e + inverse), magnitude(x) < 0.7f ? s : 0.5f * (e - inverse));
}
