// Elementary functions of floats for C$'s kernels: only IEEE operations and fused multiply-adds in a fixed order, so
// that they give the same bits on every device if built with STRICT=1; no branches and no calls, so that loops on CPUs
// vectorize. tests/cdollar/test_elementary.py has their errors in units in the last place. Special values are IEEE's.
#include "common/reproducible_math.h"

// NAME_float takes any operand. Nine functions have a second version, near_NAME: sin, cos, tan, log, log2, log10, exp,
// exp2 and pow. It is shorter and has the same bits for most operands; the others, such as infinities and very large
// numbers, are called rare. near_NAME raises *rarity to RARE or more if an operand is rare. A loop on CPUs calls
// near_NAME for all its elements, and then, if *rarity has reached RARE, a second loop calls NAME_float for the same
// elements (targets/cpu_kernels.py).
#define RARE 0x7f000000u

// Raises *rarity to RARE or more if |x| >= limit: the bits of positive floats are ordered as the floats are.
DEVICE void near_magnitude(uint *rarity, float x, float limit) {
    *rarity = max(*rarity, (as_uint(x) & 0x7fffffffu) + (RARE - as_uint(limit)));
}

#define INFINITE as_float(0x7f800000u)
#define NOT_A_NUMBER as_float(0x7fc00000u)

// Quarter turns, as in quarter_turns(), of an angle of at least 2^24: the product of its mantissa's 24 bits and the 64
// bits of 1 / pi that, times the mantissa's unit, weigh 1/2 turn and less (Payne and Hanek): higher bits give whole
// turns. The fraction has an absolute error of 2^-32 before it is rounded to float. `first`, `second` and `third` are
// words of the bits of 1 / pi; high and low are shifted from them (a shift by 32 would be undefined).
DEVICE Pair large_quarter_turns(float angle) {
    const uint size = as_uint(angle) & 0x7fffffffu, mantissa = (size & 0x7fffffu) | 0x800000u;
    const uint start = (size >> 23) - 151u, word = start >> 5, shift = start & 31u;
    const uint first = word == 0u ? 0x517cc1b7u : word == 1u ? 0x27220a94u : word == 2u ? 0xfe13abe8u : 0xfa9a6ee0u;
    const uint second = word == 0u ? 0x27220a94u : word == 1u ? 0xfe13abe8u : word == 2u ? 0xfa9a6ee0u : 0x6db14accu;
    const uint third = word == 0u ? 0xfe13abe8u : word == 1u ? 0xfa9a6ee0u : word == 2u ? 0x6db14accu : 0x9e21c820u;
    const uint high = first << shift | second >> 1 >> (31u - shift),
               low = second << shift | third >> 1 >> (31u - shift);
    // The product's word `top` is 2 bits of whole quarter turns and 30 bits of the fraction, which go on in `bottom`.
    const uint top = mantissa * high + (uint)((ulong)mantissa * low >> 32), bottom = mantissa * low;
    const float turns = (float)(int)((top + 0x20000000u) >> 30);
    const float fraction = (float)(int)(top << 2 | bottom >> 30) * 2.3283064365386963e-10f;  // 2^-32
    return pair(angle < 0.0f ? -turns : turns, angle < 0.0f ? -fraction : fraction);
}

// (cos, sin) of quarter turns as in point_at(), by the bits of the integer `turns.x`: odd ones swap cos and sin; cos is
// negative in the quadrants 1 and 2, sin in 2 and 3.
DEVICE Pair point_at_turns(Pair turns) {
    const Pair near = point_near_0(turns.y);
    const uint quadrant = (uint)(int)turns.x;
    const bool odd = (quadrant & 1u) != 0u;
    return pair(as_float(as_uint(odd ? near.y : near.x) ^ ((quadrant + 1u) & 2u) << 30),
                as_float(as_uint(odd ? near.x : near.y) ^ (quadrant & 2u) << 30));
}

// (cos, sin) of an angle in radians: within 2.6 ulp for |angle| <= 100, within 2^-23 for any other.
DEVICE Pair circle_float(float angle) {
    const float size = magnitude(angle);
    const Pair small = quarter_turns(angle), large = large_quarter_turns(angle);
    const bool is_large = size >= 16777216.0f;
    const Pair point = point_at_turns(pair(is_large ? large.x : small.x, is_large ? large.y : small.y));
    const bool is_number = size < INFINITE;
    return pair(is_number ? point.x : NOT_A_NUMBER, is_number ? point.y : NOT_A_NUMBER);
}
// The same for angles below 2^22. Adding 1.5 * 2^23 rounds to an integer; 2 / pi is 0.63661975 + 2.568e-8.
DEVICE Pair near_circle(uint *rarity, float angle) {
    const float product = angle * 0.63661975f, whole = (product + 12582912.0f) - 12582912.0f;
    const float error = FUSED(angle, 2.5682552973194106e-08f, FUSED(angle, 0.63661975f, -product));
    const float fraction = (product - whole) + error, carry = (fraction + 12582912.0f) - 12582912.0f;
    near_magnitude(rarity, angle, 4194304.0f);
    return point_at_turns(pair(whole + carry, fraction - carry));
}
DEVICE float near_sin(uint *rarity, float x) { return x == 0.0f ? x : near_circle(rarity, x).y; }
DEVICE float near_cos(uint *rarity, float x) { return near_circle(rarity, x).x; }
DEVICE float near_tan(uint *rarity, float x) {
    const Pair point = near_circle(rarity, x);
    return x == 0.0f ? x : point.y / point.x;
}
DEVICE float sin_float(float x) { return x == 0.0f ? x : circle_float(x).y; }
DEVICE float cos_float(float x) { return circle_float(x).x; }
DEVICE float tan_float(float x) {
    const Pair point = circle_float(x);
    return x == 0.0f ? x : point.y / point.x;
}

// The binary logarithm of 2^-shift x, x finite and at least 2^-126, as a sum of two floats with a relative error of
// 2^-30, by the series of the inverse hyperbolic tangent of (m - 1) / (m + 1) for a mantissa m between sqrt(1/2) and
// sqrt(2).
DEVICE Pair log2_of_normal(float x, float shift) {
    const uint b = as_uint(x) - 0x3f3504f3u;  // the exponent counts from sqrt(1/2) on, as m does
    const float exponent = (float)((int)b >> 23) - shift;
    const float m = as_float((b & 0x7fffffu) + 0x3f3504f3u), numerator = m - 1.0f, denominator = m + 1.0f;
    const float s = numerator / denominator, z = s * s;  // rounded: s lacks `error` / denominator
    const float error = FUSED(-s, m - (denominator - 1.0f), FUSED(-s, denominator, numerator));
    float p = FUSED(z, 0.3366038f, 0.41190058f);
    p = FUSED(p, z, 0.5770798f);
    p = FUSED(p, z, 0.9617967f) * z;
    const float scaled = s * 2.88539f;  // 2 / ln 2
    float low = FUSED(s, 2.88539f, -scaled) + FUSED(s, 3.851926e-8f, error / denominator * 2.88539f);
    low = FUSED(s, p, low);
    const float sum = exponent + scaled;
    low += scaled - (sum - exponent);
    const float high = sum + low;
    return pair(high, low - (high - sum));
}
// The same of x > 0; infinite for 0 and infinity.
DEVICE Pair log2_sum(float x) {
    const bool is_subnormal = x < 1.17549435e-38f;
    const Pair log = log2_of_normal(is_subnormal ? x * 8388608.0f : x, is_subnormal ? 23.0f : 0.0f);
    const float limit = x == 0.0f ? -INFINITE : x < INFINITE ? 0.0f : x;  // x: infinity or NaN
    return pair(limit == 0.0f ? log.x : limit, limit == 0.0f ? log.y : 0.0f);
}
DEVICE float log2_float(float x) {
    const Pair log = log2_sum(x);
    return x < 0.0f ? NOT_A_NUMBER : log.x + log.y;
}
// log10 from the two floats of log2: log10(2) is 0.30103 - 1.4320989e-8.
DEVICE float log10_float(float x) {
    const Pair log = log2_sum(x);
    const float small = FUSED(log.y, 0.30103f, log.x * -1.4320989e-8f);
    return x < 0.0f ? NOT_A_NUMBER : magnitude(log.x) < INFINITE ? FUSED(log.x, 0.30103f, small) : log.x;
}
DEVICE float log_float(float x) {
    const float y = logarithm_of(x);
    return x < INFINITE ? y : x;
}

// Returns x, the operand of a logarithm; raises *rarity to RARE or more unless x is finite and at least 2^-126, whose
// bits are 0x00800000: for smaller numbers the difference wraps; for infinity, NaN and negative numbers it is large.
DEVICE float near_normal(uint *rarity, float x) {
    *rarity = max(*rarity, as_uint(x) - 0x00800000u);
    return x;
}
DEVICE float near_log(uint *rarity, float x) { return logarithm_of_normal(near_normal(rarity, x), 0.0f); }
DEVICE float near_log2(uint *rarity, float x) {
    const Pair log = log2_of_normal(near_normal(rarity, x), 0.0f);
    return log.x + log.y;
}
DEVICE float near_log10(uint *rarity, float x) {
    const Pair log = log2_of_normal(near_normal(rarity, x), 0.0f);
    return FUSED(log.x, 0.30103f, FUSED(log.y, 0.30103f, log.x * -1.4320989e-8f));
}

// 2^(x + low) / 2^*power for |x| <= 250, |low| < 1; *power is the integer next to x, and the result between 1/2 and 2.
DEVICE float exp2_fraction(float x, float low, int *power) {
    const float shifted = x + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer, in the last bits
    const float r = (x - (shifted - 12582912.0f)) + low;
    float p = FUSED(r, 1.5461494e-4f, 1.3390913e-3f);
    p = FUSED(p, r, 9.618057e-3f);
    p = FUSED(p, r, 5.550357e-2f);
    p = FUSED(p, r, 2.402265e-1f);
    p = FUSED(p, r, 6.931472e-1f);
    *power = as_int(shifted) - 0x4b400000;  // the bits of 1.5 * 2^23
    return FUSED(p, r, 1.0f);
}
// 2^(high + low) for |low| < 1, within 1 ulp and an error of `low`; NaN for a NaN in `high`.
DEVICE float exp2_sum(float high, float low) {
    const float bounded = high > 250.0f ? 250.0f : high < -250.0f ? -250.0f : high;
    int power;
    float p = exp2_fraction(bounded, bounded == high ? low : 0.0f, &power);
    const int half_power = power >> 1;  // two factors, since 2^power may be no float
    p = p * as_float((half_power + 127) << 23) * as_float((power - half_power + 127) << 23);
    return high == high ? p : high;
}
// The same for |high| < 124.
DEVICE float near_exp2_sum(uint *rarity, float high, float low) {
    int power;
    const float p = exp2_fraction(high, low, &power);
    near_magnitude(rarity, high, 124.0f);
    return as_float(as_int(p) + (power << 23));  // adds `power` to the exponent
}
// exp_fraction(x, &power): exp(x) / 2^power (builtins.h).
DEVICE float near_exp(uint *rarity, float x) {
    int power;
    const float exp_r = exp_fraction(x, &power);
    near_magnitude(rarity, x, 85.0f);
    return as_float(as_int(exp_r) + (power << 23));
}
DEVICE float exp2_float(float x) { return exp2_sum(x, 0.0f); }
DEVICE float near_exp2(uint *rarity, float x) { return near_exp2_sum(rarity, x, -0.0f); }  // x + -0 is x: no addition

DEVICE float near_pow(uint *rarity, float x, float y) {
    const Pair log = log2_of_normal(near_normal(rarity, x), 0.0f);
    const float high = y * log.x;
    return near_exp2_sum(rarity, high, FUSED(y, log.x, -high) + y * log.y);
}
// x^y. A negative x has powers for integers y only.
DEVICE float pow_float(float x, float y) {
    const float size = magnitude(x), rounded = truncation(y);
    const Pair log = log2_sum(size);
    const float high = y * log.x, low = FUSED(y, log.x, -high) + y * log.y;
    const float power = exp2_sum(high, low);
    const bool is_odd = rounded == y && (truncated(magnitude(y) < 16777216.0f ? y : 0.0f) & 1) != 0;
    const float result = (as_uint(x) >> 31) != 0u && is_odd ? -power : power;
    const bool has_none = x < 0.0f && size < INFINITE && rounded != y;
    const bool is_one = y == 0.0f || x == 1.0f || (x == -1.0f && magnitude(y) == INFINITE);
    return is_one ? 1.0f : has_none ? NOT_A_NUMBER : result;
}

// tanh: a polynomial below 0.625, else 1 - 2 / (exp(2 x) + 1).
DEVICE float tanh_float(float x) {
    const float size = magnitude(x), z = x * x;
    int power;
    const float e = exp2_fraction((size > 10.0f ? 10.0f : size) * 2.88539f, -0.0f, &power);  // 2 / ln 2
    const float large = 1.0f - 2.0f / (as_float(as_int(e) + (power << 23)) + 1.0f);
    float p = FUSED(z, -6.104473e-3f, 2.1003306e-2f);
    p = FUSED(p, z, -5.3852424e-2f);
    p = FUSED(p, z, 1.3332781e-1f);
    p = FUSED(p, z, -3.3333328e-1f);
    return with_sign_of(size >= 0.625f ? large : FUSED(p * z, size, size), x);  // NaN stays in the polynomial
}
// e^(|x| / 2) is finite where cosh and sinh are.
DEVICE float cosh_float(float x) {
    const float root = exp_float(0.5f * magnitude(x));
    return FUSED(0.5f * root, root, 0.5f / root / root);
}
// sinh: a polynomial below 1, else from exp(x / 2), whose square does not overflow early.
DEVICE float sinh_float(float x) {
    const float size = magnitude(x), root = exp_float(0.5f * size), z = x * x;
    float p = FUSED(z, 2.75573192e-6f, 1.98412698e-4f);
    p = FUSED(p, z, 8.33333333e-3f);
    p = FUSED(p, z, 1.66666667e-1f);
    return with_sign_of(size < 1.0f ? FUSED(p * z, size, size) : FUSED(0.5f * root, root, -0.5f / root / root), x);
}

// atan2, also for infinite arguments.
DEVICE float atan2_float(float y, float x) {
    const bool both = magnitude(x) == INFINITE && magnitude(y) == INFINITE;
    const float scale = magnitude(x) > 1e37f || magnitude(y) > 1e37f ? 0.0625f : 1.0f;  // so that |x| + |y| is finite
    return angle_of(both ? with_sign_of(1.0f, y) : y * scale, both ? with_sign_of(1.0f, x) : x * scale);
}
DEVICE float atan_float(float x) { return angle_of(x, 1.0f); }
DEVICE float asin_float(float x) { return angle_of(x, sqrt((1.0f - x) * (1.0f + x))); }
DEVICE float acos_float(float x) { return angle_of(sqrt((1.0f - x) * (1.0f + x)), x); }
