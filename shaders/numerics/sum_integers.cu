// Sums of integers, and of float16 as such: in units of 2^-24. Sums stand in limbs of weight 2^(32 i).
//   WHOLE         16 for float16, else 1;  SIGNED 1: a limb has a sign;  NARROW 1: numbers of at most 32 bits
//   DOT, ABSOLUTE, tiles_each   as in numerics/sum_tiles.h
#include "numerics/superaccumulator.h"
#define TILE (GROUP_SIZE * 8)

#if WHOLE == 16
#define LONG_LONG long
DEVICE long whole_of(ushort bits, LOCAL uint *flags) {
    if ((bits >> 10 & 31u) == 31u) {
        atomic_or(flags, bits & 1023u ? FLAG_NAN : bits >> 15 ? FLAG_MINUS_INFINITY : FLAG_PLUS_INFINITY);
        return 0;
    }
    if (bits != 0x8000u) flags[1] = 1;
    long units = units_of_half(bits);
#if ABSOLUTE
    return units < 0 ? -units : units;
#else
    return units;
#endif
}
#elif ABSOLUTE && SIGNED
#define LONG_LONG long
#define whole_of(number, flags) ((long)(number) < 0 ? -(long)(number) : (long)(number))
#else
#if SIGNED
#define LONG_LONG long
#else
#define LONG_LONG ulong
#endif
#define whole_of(number, flags) ((LONG_LONG)(number))
#endif

KERNEL whole(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_each,
             GLOBAL uint *out) {
    y += y_start;
    LOCAL_ARRAY(uint, flags, 2);
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0;
    if (local_index() == 0) flags[0] = flags[1] = 0;
    BARRIER();
    ulong sums[4] = {0, 0, 0, 0};
    ulong first = group_index() * tiles_each * TILE, last = min(count, first + tiles_each * TILE);
    for (ulong i = first + local_index(); i < last; i += GROUP_SIZE) {
        LONG_LONG a = whole_of(x[i], flags);
#if DOT
        LONG_LONG b = whole_of(y[i], flags);
        ulong a_low = (ulong)a & 0xfffffffful, b_low = (ulong)b & 0xfffffffful;
        LONG_LONG a_high = a >> 32, b_high = b >> 32;
        ulong least = a_low * b_low;
        LONG_LONG cross = (LONG_LONG)a_low * b_high, other = a_high * (LONG_LONG)b_low, most = a_high * b_high;
        sums[0] += least & 0xfffffffful;
        sums[1] += (least >> 32) + ((ulong)cross & 0xfffffffful) + ((ulong)other & 0xfffffffful);
        sums[2] += (ulong)(cross >> 32) + (ulong)(other >> 32) + ((ulong)most & 0xfffffffful);
        sums[3] += (ulong)(most >> 32);
#elif NARROW
        sums[0] += (ulong)a;  // at most 32 bits: 2^30 of them fit
#else
        sums[0] += (ulong)a & 0xfffffffful;
        sums[1] += (ulong)(a >> 32);
#endif
    }
    for (int s = 0; s < 4; s++)
        if (sums[s]) ADD_LIMB(limbs, s, sums[s])
    BARRIER();
    MERGE_LIMBS(limbs, out)
    if (local_index() == 0 && (flags[0] || flags[1])) atomic_or(&out[2 * LIMBS], flags[0] | (flags[1] ? FLAG_NOT_MINUS_ZERO : 0));
}
