// Minimum and maximum of an array; launched by renderer/numerics/sums/aggregates.py.
//   ELEMENT  the C type of the numbers
//   IS_HALF  1: ELEMENT is ushort and holds the bits of a float16, else 0
// A group reduces `tiles_per_group` tiles of TILE numbers.
#include "numerics/superaccumulator.h"
#define TILE (GROUP_SIZE * 8)

#if IS_HALF
#define VALUE float
DEVICE float value_of(ushort bits) {  // infinities and NaN keep their sign and mantissa
    if ((bits >> 10 & 31u) == 31u) return as_float((bits >> 15) << 31 | 0x7f800000u | (uint)(bits & 1023u) << 13);
    return (float)half_to_fixed(bits) * 5.9604644775390625e-8f;  // 2^-24, the unit of half_to_fixed
}
#else
#define VALUE ELEMENT
#define value_of(number) (number)
#endif

// `out` receives the minimum and maximum of each work-group. `nans[0]` is set to 1 if any number is NaN. float16
// numbers are compared as float.
KERNEL minmax(GLOBAL const ELEMENT *x, ulong count, ulong tiles_per_group, GLOBAL VALUE *out, GLOBAL uint *nans) {
    LOCAL_ARRAY(VALUE, lows, GROUP_SIZE);
    LOCAL_ARRAY(VALUE, highs, GROUP_SIZE);
    ulong first = group_index() * tiles_per_group * TILE, end = min(count, first + tiles_per_group * TILE);
    VALUE low = value_of(x[0]), high = low;  // if this is NaN, a thread's first number replaces it
    bool nan = false;
    for (ulong i = first + local_index(); i < end; i += GROUP_SIZE) {
        VALUE value = value_of(x[i]);
        low = value < low || low != low ? value : low;
        high = value > high || high != high ? value : high;
        nan |= value != value;
    }
    lows[local_index()] = low;
    highs[local_index()] = high;
    BARRIER();
    for (uint half_count = GROUP_SIZE / 2; half_count > 0; half_count /= 2) {
        if (local_index() < half_count) {
            VALUE a = lows[local_index() + half_count], b = highs[local_index() + half_count];
            if (a < lows[local_index()]) lows[local_index()] = a;
            if (b > highs[local_index()]) highs[local_index()] = b;
        }
        BARRIER();
    }
    if (local_index() == 0) {
        out[2 * group_index()] = lows[0];
        out[2 * group_index() + 1] = highs[0];
    }
    if (nan) atomic_or(&nans[0], 1u);
}
