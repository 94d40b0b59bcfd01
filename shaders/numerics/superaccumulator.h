// Integer accumulators: a number is kept as limbs, signed 64-bit integers of weight 2^(32 i + LIMB_BASE), and as a pair of
// 32-bit words that are added with carry, so that 32-bit atomics do. An addition changes a limb by less than 2^33: 2^30 of
// them cannot overflow. LIMBS is their number.
#define FLAG_NAN 1u
#define FLAG_PLUS_INFINITY 2u
#define FLAG_MINUS_INFINITY 4u
#define FLAG_NOT_MINUS_ZERO 8u

#define ADD_LIMB(limbs, i, value)                                                                                      \
    {                                                                                                                  \
        uint low_word = (uint)(value), old_word = atomic_add(&(limbs)[2 * (i)], low_word);                             \
        uint high_word = (uint)((ulong)(value) >> 32) + (old_word + low_word < old_word ? 1u : 0u);                    \
        if (high_word) atomic_add(&(limbs)[2 * (i) + 1], high_word);                                                   \
    }
// Adds (or subtracts) m * 2^exponent; m has up to 64 bits.
#define ADD_INTEGER(limbs, m, exponent, negative)                                                                      \
    {                                                                                                                  \
        uint position = (uint)((exponent) - LIMB_BASE), limb = position >> 5, shift = position & 31u;                  \
        ulong low = ((m) & 0xfffffffful) << shift, high = ((m) >> 32) << shift;                                        \
        ulong middle = (low >> 32) + (high & 0xfffffffful);                                                            \
        low &= 0xfffffffful;                                                                                           \
        high >>= 32;                                                                                                   \
        if (negative) { low = 0 - low; middle = 0 - middle; high = 0 - high; }                                         \
        if (low) ADD_LIMB(limbs, limb, low)                                                                            \
        if (middle) ADD_LIMB(limbs, limb + 1, middle)                                                                  \
        if (high) ADD_LIMB(limbs, limb + 2, high)                                                                      \
    }
// Adds a double, whatever it is; flags is a word in the same memory.
#define ADD_DOUBLE(limbs, flags, number)                                                                               \
    {                                                                                                                  \
        ulong bits = as_ulong(number), mantissa = bits & 0xffffffffffffful;                                            \
        int biased = (int)(bits >> 52) & 0x7ff;                                                                        \
        bool minus = (bits >> 63) != 0;                                                                                \
        if (biased == 0x7ff) {                                                                                         \
            atomic_or(&(flags), mantissa ? FLAG_NAN : minus ? FLAG_MINUS_INFINITY : FLAG_PLUS_INFINITY);               \
        } else if (biased || mantissa) {                                                                               \
            ulong m = biased ? mantissa | 0x10000000000000ul : mantissa;                                               \
            int exponent = (biased ? biased : 1) - 1075;                                                               \
            atomic_or(&(flags), FLAG_NOT_MINUS_ZERO);                                                                  \
            ADD_INTEGER(limbs, m, exponent, minus)                                                                     \
        } else if (!minus)                                                                                             \
            atomic_or(&(flags), FLAG_NOT_MINUS_ZERO);                                                                  \
    }
// The limbs of a group, which all its threads have added to, into those of all groups.
#define MERGE_LIMBS(limbs, out)                                                                                        \
    for (uint i = local_index(); i < LIMBS; i += GROUP_SIZE) {                                                         \
        ulong limb = (ulong)(limbs)[2 * i] | (ulong)(limbs)[2 * i + 1] << 32;                                          \
        if (limb) ADD_LIMB(out, i, limb)                                                                               \
    }

DEVICE long units_of_half(ushort bits) {  // of 2^-24, which every finite float16 is a multiple of
    uint biased = bits >> 10 & 31u, mantissa = bits & 1023u;
    long units = biased ? (long)(mantissa | 1024u) << (biased - 1) : (long)mantissa;
    return bits >> 15 ? -units : units;
}
