// Superaccumulator (Kulisch; Neal 2015): a sum as LIMBS signed 64-bit integers of weight 2^(32 i + LIMB_BASE). Each
// limb is stored as two 32-bit words that are added with carry, since 64-bit atomics are not available everywhere. An
// addition changes a limb by less than 2^33, so 2^30 additions cannot overflow it.
#define FLAG_NAN 1u
#define FLAG_POSITIVE_INFINITY 2u
#define FLAG_NEGATIVE_INFINITY 4u
#define FLAG_NOT_NEGATIVE_ZERO 8u

#define ADD_LIMB(limbs, i, value)                                                                   \
    {                                                                                               \
        uint low_word = (uint)(value), old_word = atomic_add(&(limbs)[2 * (i)], low_word);          \
        uint high_word = (uint)((ulong)(value) >> 32) + (old_word + low_word < old_word ? 1u : 0u); \
        if (high_word) atomic_add(&(limbs)[2 * (i) + 1], high_word);                                \
    }
// Adds (or, if negative, subtracts) m * 2^exponent; m has up to 64 bits.
#define ADD_INTEGER(limbs, m, exponent, negative)                                                     \
    {                                                                                                 \
        uint position = (uint)((exponent) - LIMB_BASE), limb = position >> 5, shift = position & 31u; \
        ulong low = ((m) & 0xfffffffful) << shift, high = ((m) >> 32) << shift;                       \
        ulong middle = (low >> 32) + (high & 0xfffffffful);                                           \
        low &= 0xfffffffful;                                                                          \
        high >>= 32;                                                                                  \
        if (negative) {                                                                               \
            low = 0 - low;                                                                            \
            middle = 0 - middle;                                                                      \
            high = 0 - high;                                                                          \
        }                                                                                             \
        if (low) ADD_LIMB(limbs, limb, low)                                                           \
        if (middle) ADD_LIMB(limbs, limb + 1, middle)                                                 \
        if (high) ADD_LIMB(limbs, limb + 2, high)                                                     \
    }
// Adds any double; NaN, infinities and -0 go into `flags`, a word in the same memory.
#define ADD_DOUBLE(limbs, flags, number)                                                                        \
    {                                                                                                           \
        ulong bits = as_ulong(number), mantissa = bits & 0xffffffffffffful;                                     \
        int biased = (int)(bits >> 52) & 0x7ff;                                                                 \
        bool minus = (bits >> 63) != 0;                                                                         \
        if (biased == 0x7ff) {                                                                                  \
            atomic_or(&(flags), mantissa ? FLAG_NAN : minus ? FLAG_NEGATIVE_INFINITY : FLAG_POSITIVE_INFINITY); \
        } else if (biased || mantissa) {                                                                        \
            ulong m = biased ? mantissa | 0x10000000000000ul : mantissa;                                        \
            int exponent = (biased ? biased : 1) - 1075;                                                        \
            atomic_or(&(flags), FLAG_NOT_NEGATIVE_ZERO);                                                        \
            ADD_INTEGER(limbs, m, exponent, minus)                                                              \
        } else if (!minus)                                                                                      \
            atomic_or(&(flags), FLAG_NOT_NEGATIVE_ZERO);                                                        \
    }
// Adds the limbs of a group to those of all groups, after a barrier.
#define MERGE_LIMBS(limbs, out)                                               \
    for (uint i = local_index(); i < LIMBS; i += GROUP_SIZE) {                \
        ulong limb = (ulong)(limbs)[2 * i] | (ulong)(limbs)[2 * i + 1] << 32; \
        if (limb) ADD_LIMB(out, i, limb)                                      \
    }

// A finite float16 as a fixed-point number in units of 2^-24.
DEVICE long half_to_fixed(ushort bits) {
    uint biased = bits >> 10 & 31u, mantissa = bits & 1023u;
    long units = biased ? (long)(mantissa | 1024u) << (biased - 1) : (long)mantissa;
    return bits >> 15 ? -units : units;
}
