// Runtime functions of C$, called by the kernels (C of common/portable.h) and the fragment shaders (GLSL) that the
// compiler generates: conversions, integer arithmetic and border modes as the language defines them, and correctly
// rounded division and square root for GLSL under `--strict`.
//
// Integer division by 0 and the remainder of it are 0. float to integer truncates toward zero and saturates; NaN
// becomes 0.
#ifdef GLSL
#define DEVICE
#define INT_OF(x) int(x)
#define UINT_OF(x) uint(x)
#define FLOAT_OF(x) float(x)
#define AS_UINT floatBitsToUint
#define AS_FLOAT uintBitsToFloat
#else
#define INT_OF(x) ((int)(x))
#define UINT_OF(x) ((uint)(x))
#define FLOAT_OF(x) ((float)(x))
#define AS_UINT as_uint
#define AS_FLOAT as_float
#endif

// A C$ `half` value is a float rounded to the nearest IEEE half, ties to even; arrays store the half's 16 bits.
#ifdef HAS_HALF_CONVERSIONS  // common/portable.h has float_to_half and half_to_float
DEVICE float round_to_half(float x) { return half_to_float(float_to_half(x)); }
#else
// Rounds by integer arithmetic: drops the last 13 bits of the mantissa; below 2^-14 (subnormal halves), all bits that
// weigh less than 2^-24.
DEVICE float round_to_half(float x) {
    uint bits = AS_UINT(x), size = bits & 0x7fffffffu, sign = bits & 0x80000000u;
    if (size >= 0x7f800000u) return x;  // infinity or NaN
    if (size < 0x38800000u) {  // below 2^-14: a number of units of 2^-24
        uint shift = 126u - (size >> 23), mantissa = (size & 0x7fffffu) | 0x800000u;
        if (shift > 25u) return AS_FLOAT(sign);  // below half a unit
        uint odd = (mantissa >> shift) & 1u, units = (mantissa + (1u << (shift - 1u)) - 1u + odd) >> shift;
        return AS_FLOAT(sign | AS_UINT(FLOAT_OF(units) * 5.9604644775390625e-8f));  // 2^-24
    }
    size = (size + 0xfffu + ((size >> 13) & 1u)) & ~0x1fffu;
    return AS_FLOAT(sign | (size >= 0x47800000u ? 0x7f800000u : size));  // from 2^16 on, infinity
}
#ifndef GLSL
DEVICE ushort float_to_half(float x) {
    const uint bits = as_uint(round_to_half(x)), size = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
    if (size > 0x7f800000u) return (ushort)(sign | 0x7e00u);  // NaN
    if (size >= 0x47800000u) return (ushort)(sign | 0x7c00u);  // infinity
    if (size < 0x38800000u) return (ushort)(sign | (uint)(as_float(size) * 16777216.0f));  // units of 2^-24
    return (ushort)(sign | ((size >> 13) - 0x1c000u));  // the biases of the exponents, 127 and 15, differ by 112
}
DEVICE float half_to_float(ushort half_bits) {
    const uint size = half_bits & 0x7fffu, sign = ((uint)half_bits & 0x8000u) << 16;
    if (size >= 0x7c00u) return as_float(sign | 0x7f800000u | (size & 0x3ffu) << 13);  // infinity or NaN
    if (size < 0x400u) return as_float(sign | as_uint((float)size * 5.9604644775390625e-8f));  // units of 2^-24
    return as_float(sign | ((size << 13) + 0x38000000u));
}
#endif
#endif

#ifndef GLSL
// Division by -1 negates, as the least number divided by -1 would overflow; it stays the same.
DEVICE int64 divide_long(int64 a, int64 b) { return b == 0 ? 0 : b == -1 ? (int64)(0 - (ulong)a) : a / b; }
DEVICE int64 remainder_long(int64 a, int64 b) { return b == 0 || b == -1 ? 0 : a % b; }
DEVICE int64 float_to_long(float x) {
    const int64 most = 9223372036854775807;
    return x >= 9223372036854775808.0f ? most : x > -9223372036854775808.0f ? (int64)x : x != x ? 0 : -most - 1;
}
#endif

DEVICE int divide_int(int a, int b) { return b == 0 ? 0 : b == -1 ? INT_OF(0u - UINT_OF(a)) : a / b; }
DEVICE uint divide_uint(uint a, uint b) { return b == 0u ? 0u : a / b; }
// By division, because % with a negative operand is undefined in GLSL.
DEVICE int remainder_int(int a, int b) { return b == 0 || b == -1 ? 0 : a - b * (a / b); }
DEVICE uint remainder_uint(uint a, uint b) { return b == 0u ? 0u : a % b; }
DEVICE int float_to_int(float x) {
    return x >= 2147483648.0f ? 2147483647 : x > -2147483648.0f ? INT_OF(x) : x != x ? 0 : -2147483647 - 1;
}
DEVICE uint float_to_uint(float x) { return x >= 4294967296.0f ? 4294967295u : x > 0.0f ? UINT_OF(x) : 0u; }
#ifdef DOUBLES  // never in GLSL
DEVICE int double_to_int(double x) {
    return x >= 2147483648.0 ? 2147483647 : x > -2147483649.0 ? (int)x : x != x ? 0 : -2147483647 - 1;
}
DEVICE int64 double_to_long(double x) {
    const int64 most = 9223372036854775807;
    return x >= 9223372036854775808.0 ? most : x > -9223372036854775808.0 ? (int64)x : x != x ? 0 : -most - 1;
}
DEVICE uint double_to_uint(double x) { return x >= 4294967296.0 ? 4294967295u : x > 0.0 ? (uint)x : 0u; }
#endif
#ifndef GLSL
// exp(x) / 2^*power, |x| <= 104, as exp(r), |r| <= ln(2) / 2. A polynomial approximates exp(r) (least squares at
// Chebyshev nodes). ln 2 is split into two terms, and n times the first term is exact.
DEVICE float exp_fraction(float x, int *power) {
    const float shifted = x * 1.44269504f + 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer, in the last bits
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    const float p = (((0.00139461f * r + 0.00836908f) * r + 0.04166627f) * r + 0.16666517f) * r + 0.5f;
    *power = as_int(shifted) - 0x4b400000;  // the bits of 1.5 * 2^23
    return (p * r * r + r) + 1.0f;
}
// exp(x) within 1.1 ulp, without branches or calls, so that loops on CPUs vectorize.
DEVICE float exp_float(float x) {
    int power;
    const float exp_r = exp_fraction(x > 89.0f ? 89.0f : x < -104.0f ? -104.0f : x, &power);
    const int low = power >> 1, high = power - low;  // two factors, since 2^power may be no float
    return exp_r * as_float((low + 127) << 23) * as_float((high + 127) << 23);
}
#endif
// Map any index i to 0..size - 1 by border mode: periodic, mirrored or clamped.
DEVICE int wrap_index(int i, int size) {
    int r = i - size * (i / size);
    return r < 0 ? r + size : r;
}
DEVICE int mirror_index(int i, int size) {
    int r = wrap_index(i, 2 * size);
    return r < size ? r : 2 * size - 1 - r;
}
DEVICE int clamp_index(int i, int size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

#if defined(GLSL) && defined(STRICT)
// Correctly rounded / and sqrt for drivers whose operators are not, by residuals that a fused multiply-add computes
// exactly (Markstein 1990). SINGLE_ROUNDING_FMA: 1 if fma() rounds once (cdollar/fma_probe.frag). If it does not, as on
// llvmpipe, the driver's division and square root are assumed to be correctly rounded.
float strict_divide(float a, float b) {
    if (b == 0.0) {  // undefined in GLSL; drivers that fold constants return 0
        uint sign_bit = (floatBitsToUint(a) ^ floatBitsToUint(b)) & 0x80000000u;
        return uintBitsToFloat(a != a || a == 0.0 ? 0x7fc00000u : 0x7f800000u | sign_bit);
    }
    precise float quotient = a / b;
#if SINGLE_ROUNDING_FMA
    float size = abs(quotient);
    if (size > 1e-30 && size < 1e30 && abs(b) > 1e-30 && abs(b) < 1e30 && abs(a) > 1e-30) {
        precise float inverse = 1.0 / b;
        precise float error = fma(-b, inverse, 1.0);
        inverse = fma(error, inverse, inverse);
        precise float remainder = fma(-b, quotient, a);
        quotient = fma(remainder, inverse, quotient);
        remainder = fma(-b, quotient, a);
        quotient = fma(remainder, inverse, quotient);
    }
#endif
    return quotient;
}
float strict_sqrt(float x) {
    precise float root = sqrt(x);
#if SINGLE_ROUNDING_FMA
    if (x > 1e-30 && x < 1e30) {
        precise float half_inverse = 0.5 / root;
        precise float remainder = fma(-root, root, x);
        root = fma(remainder, half_inverse, root);
        remainder = fma(-root, root, x);
        root = fma(remainder, half_inverse, root);
    }
#endif
    return root;
}
#endif
