// Exact sums by key (Thrust: reduce_by_key): adds numbers[i] to the LIMBS limbs and the word of flags of key keys[i].
//   NUMBER_CLASS  1 floating-point, 2 signed, 3 unsigned;  IS_HALF  1 for float16
#include "numerics/superaccumulator.h"

KERNEL sum_by_key(GLOBAL const ELEMENT *numbers, GLOBAL const uint *keys, ulong count, GLOBAL uint *out) {
    ulong i = thread_index_long();
    if (i >= count) return;
    GLOBAL uint *limbs = out + (ulong)keys[i] * (2 * LIMBS + 2);
#if NUMBER_CLASS == 1
#if IS_HALF
    ushort half_bits = numbers[i];
    bool infinite = (half_bits >> 10 & 31u) == 31u;
    double number = infinite ? as_double((ulong)(half_bits >> 15) << 63 | 0x7ff0000000000000ul | (half_bits & 1023u))
                             : (double)half_to_fixed(half_bits) * 0x1p-24;
    if (half_bits == 0x8000u) number = -0.0;
#else
    double number = numbers[i];
#endif
    ADD_DOUBLE(limbs, limbs[2 * LIMBS], number)
#else
    bool negative = NUMBER_CLASS == 2 && (long)numbers[i] < 0;
    ulong magnitude = negative ? 0 - (ulong)(long)numbers[i] : (ulong)numbers[i];
    ADD_INTEGER(limbs, magnitude, 0, negative)
#endif
}
