// Exact sums of integers, and of float16 as fixed-point numbers in units of 2^-24, in limbs of weight 2^(32 i);
// launched by renderer/numerics/sums/device_sums.py.
// In and out: as in sum_tiles.h and superaccumulator.h. The host defines, each 0 or 1:
//   IS_HALF         1: the numbers are float16, as their bits in ushort
//   SIGNED          1: the numbers have a sign
//   FITS_32_BITS    1: integers of at most 32 bits
//   DOT, ABSOLUTE   as in sum_tiles.h
#include "numerics/superaccumulator.h"
#define TILE (GROUP_SIZE * 8)

#if SIGNED
#define WIDE_INTEGER long
#else
#define WIDE_INTEGER ulong
#endif

// to_integer(): a number as WIDE_INTEGER, or its magnitude if ABSOLUTE; a float16 in units of 2^-24, where NaN and
// infinities set a flag and count 0, and any number but -0 sets not_negative_zero[0].
#if IS_HALF
DEVICE long to_integer(ushort bits, LOCAL uint *flags, LOCAL uint *not_negative_zero) {
    if ((bits >> 10 & 31u) == 31u) {
        atomic_or(flags, FLAG_OF(bits & 1023u, bits >> 15));
        return 0;
    }
    if (bits != 0x8000u) not_negative_zero[0] = 1;
    long units = half_to_fixed(bits);
    return ABSOLUTE && units < 0 ? -units : units;
}
#else
#define to_integer(number, flags, not_negative_zero) \
    (ABSOLUTE && SIGNED && (long)(number) < 0 ? -(WIDE_INTEGER)(number) : (WIDE_INTEGER)(number))
#endif

// Each thread adds its numbers, or products of 128 bits, to sums[i] of weight 2^(32 i); at the end the sums are added
// to the group's limbs. 32-bit pieces in 64-bit sums cannot overflow.
KERNEL sum_integers(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_per_group,
                    GLOBAL uint *out) {
    y += y_start;
    GROUP_LIMBS;
    LOCAL_ARRAY(uint, not_negative_zero, 1);  // not a bit of `flags`: threads set a word without an atomic operation
    CLEAR_LIMBS;
    if (local_index() == 0) not_negative_zero[0] = 0;
    BARRIER();
    ulong sums[4] = {0, 0, 0, 0};
    ulong first = group_index() * tiles_per_group * TILE, end = min(count, first + tiles_per_group * TILE);
    for (ulong i = first + local_index(); i < end; i += GROUP_SIZE) {
#if DOT && IS_HALF  // flags of the product: infinity times 0 is NaN, and a product is -0 if only one sign is minus
        uint p = x[i] & 0x7fffu, q = y[i] & 0x7fffu;
        bool is_negative = (x[i] ^ y[i]) >> 15 & 1u;
        if (p >= 0x7c00u || q >= 0x7c00u) {
            bool is_nan = p > 0x7c00u || q > 0x7c00u || p == 0 || q == 0;
            atomic_or(flags, FLAG_OF(is_nan, is_negative));
            continue;
        }
        if (!is_negative || (p && q)) not_negative_zero[0] = 1;
        long a = half_to_fixed(x[i]), b = half_to_fixed(y[i]);
#else
        WIDE_INTEGER a = to_integer(x[i], flags, not_negative_zero);
#if DOT
        WIDE_INTEGER b = to_integer(y[i], flags, not_negative_zero);
#endif
#endif
#if DOT  // schoolbook multiplication of 32-bit halves: a b = most 2^64 + (cross + other) 2^32 + least
        ulong a_low = (ulong)a & 0xfffffffful, b_low = (ulong)b & 0xfffffffful;
        WIDE_INTEGER a_high = a >> 32, b_high = b >> 32;
        ulong least = a_low * b_low;
        WIDE_INTEGER cross = (WIDE_INTEGER)a_low * b_high, other = a_high * (WIDE_INTEGER)b_low, most = a_high * b_high;
        sums[0] += least & 0xfffffffful;
        sums[1] += (least >> 32) + ((ulong)cross & 0xfffffffful) + ((ulong)other & 0xfffffffful);
        sums[2] += (ulong)(cross >> 32) + (ulong)(other >> 32) + ((ulong)most & 0xfffffffful);
        sums[3] += (ulong)(most >> 32);
#elif FITS_32_BITS
        sums[0] += (ulong)a;  // signed or not: the sum of 2^30 numbers of 32 bits fits 64 bits, modulo 2^64
#else
        sums[0] += (ulong)a & 0xfffffffful;
        sums[1] += (ulong)(a >> 32);
#endif
    }
    for (int s = 0; s < 4; s++)
        if (sums[s]) ADD_LIMB(limbs, s, sums[s])
    BARRIER();
    if (local_index() == 0 && not_negative_zero[0]) flags[0] |= FLAG_NOT_NEGATIVE_ZERO;
    MERGE_LIMBS(out);
}
