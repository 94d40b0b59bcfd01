// Superaccumulator (U. Kulisch; R. Neal 2015) for the kernels of exact sums: LIMBS signed 64-bit integers, limb i of
// weight 2^(32 i + LIMB_BASE). A limb is two 32-bit words that are added with carry, since some devices have no 64-bit
// atomics. An addition changes a limb by less than 2^33, so 2^30 additions cannot overflow it. Each group has limbs and
// a word of flags in local memory (GROUP_LIMBS) and at its end adds them to the launch's (MERGE_LIMBS). Out of a
// launch: `out`, 2 LIMBS words of limbs, to which the launch adds, then a word of flags, FLAG_...
// The host defines LIMBS, 136 for sums and products of doubles, and for kernels that add doubles LIMB_BASE, -2176: the
// exponent of limb 0.
#define FLAG_NAN 1u
#define FLAG_POSITIVE_INFINITY 2u
#define FLAG_NEGATIVE_INFINITY 4u
#define FLAG_NOT_NEGATIVE_ZERO 8u  // some number was not -0: a sum of nothing but -0 is -0
// The flag of a number that is not finite.
#define FLAG_OF(is_nan, is_negative) \
    ((is_nan) ? FLAG_NAN : (is_negative) ? FLAG_NEGATIVE_INFINITY : FLAG_POSITIVE_INFINITY)

// Adds a 64-bit value to limb i. A macro, since `limbs` is in local or in global memory, two address spaces of OpenCL C.
#define ADD_LIMB(limbs, i, value)                                                                   \
    {                                                                                               \
        uint low_word = (uint)(value), old_word = atomic_add(&(limbs)[2 * (i)], low_word);          \
        uint high_word = (uint)((ulong)(value) >> 32) + (old_word + low_word < old_word ? 1u : 0u); \
        if (high_word) atomic_add(&(limbs)[2 * (i) + 1], high_word);                                \
    }

#ifdef LIMB_BASE
// Adds m * 2^exponent, or subtracts it if `negative`. m, of up to 64 bits, is shifted to a limb's first bit, so it
// spreads over three limbs.
DEVICE void add_integer(LOCAL uint *limbs, ulong m, int exponent, bool negative) {
    uint position = (uint)(exponent - LIMB_BASE), limb = position >> 5, shift = position & 31u;
    ulong low = (m & 0xfffffffful) << shift, high = (m >> 32) << shift;
    ulong middle = (low >> 32) + (high & 0xfffffffful);
    low &= 0xfffffffful;
    high >>= 32;
    if (negative) {
        low = 0 - low;
        middle = 0 - middle;
        high = 0 - high;
    }
    if (low) ADD_LIMB(limbs, limb, low)
    if (middle) ADD_LIMB(limbs, limb + 1, middle)
    if (high) ADD_LIMB(limbs, limb + 2, high)
}
// Adds any double; NaN, infinities and "not -0" are recorded in flags[0].
DEVICE void add_double(LOCAL uint *limbs, LOCAL uint *flags, double number) {
    ulong bits = as_ulong(number), mantissa = bits & 0xffffffffffffful;
    int biased = (int)(bits >> 52) & 0x7ff;
    bool minus = (bits >> 63) != 0;
    if (biased == 0x7ff) {
        atomic_or(flags, FLAG_OF(mantissa, minus));
    } else if (biased || mantissa) {
        ulong m = biased ? mantissa | 0x10000000000000ul : mantissa;  // with the leading 1, which subnormals lack
        atomic_or(flags, FLAG_NOT_NEGATIVE_ZERO);
        add_integer(limbs, m, (biased ? biased : 1) - 1075, minus);
    } else if (!minus)
        atomic_or(flags, FLAG_NOT_NEGATIVE_ZERO);
}
// Adds units * 2^exponent.
DEVICE_NOINLINE void add_units(LOCAL uint *limbs, long units, int exponent) {
    bool is_negative = units < 0;
    add_integer(limbs, is_negative ? 0ul - (ulong)units : (ulong)units, exponent, is_negative);
}
#endif

// GROUP_LIMBS declares `limbs` and `flags` of a group. CLEAR_LIMBS must be followed by a barrier. MERGE_LIMBS, after a
// barrier, adds them to the limbs and flags of the launch in `out` (2 LIMBS words, then the flags).
#define GROUP_LIMBS                      \
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS); \
    LOCAL_ARRAY(uint, flags, 1)
#define CLEAR_LIMBS                                                            \
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0; \
    if (local_index() == 0) flags[0] = 0
#define MERGE_LIMBS(out)                                                  \
    for (uint i = local_index(); i < LIMBS; i += GROUP_SIZE) {            \
        ulong limb = (ulong)limbs[2 * i] | (ulong)limbs[2 * i + 1] << 32; \
        if (limb) ADD_LIMB(out, i, limb)                                  \
    }                                                                     \
    if (local_index() == 0 && flags[0]) atomic_or(&out[2 * LIMBS], flags[0])

// A finite float16 as a fixed-point number in units of 2^-24.
DEVICE long half_to_fixed(ushort bits) {
    uint biased = bits >> 10 & 31u, mantissa = bits & 1023u;
    long units = biased ? (long)(mantissa | 1024u) << (biased - 1) : (long)mantissa;
    return bits >> 15 ? -units : units;
}
