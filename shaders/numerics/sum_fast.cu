// Fast sums of huge arrays, which round (renderer/numerics/sums/device_sums.py), and one level of pairwise summation,
// the halving sum (aggregates.py; renderer/numerics/sums/__init__.py names its source). Macros: see sum_tiles.h.
#include "numerics/sum_tiles.h"

// Sixteen running sums per thread in the precision of the numbers, then a tree reduction of the group in double. Adds
// the group's sum to out[group].
KERNEL sum_fast(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_per_group,
                GLOBAL double *out) {
    y += y_start;
    LOCAL_ARRAY(double, partial_sums, GROUP_SIZE);
    VECTOR8 sums = SPLAT(VECTOR8, 0), more_sums = SPLAT(VECTOR8, 0);
    ulong tile = FIRST_TILE, end = END_TILE, full_end = min(end, count / TILE);
#if DOT
    for (; tile < full_end; tile++) sums += load_full_tile(x, tile) * load_full_tile(y, tile);
#else
    for (; tile + 4 <= full_end; tile += 4) {  // four loads in flight
        VECTOR8 a = load_full_tile(x, tile), b = load_full_tile(x, tile + 1), c = load_full_tile(x, tile + 2),
                d = load_full_tile(x, tile + 3);
        sums += a + b;
        more_sums += c + d;
    }
    for (; tile < full_end; tile++) sums += load_full_tile(x, tile);
#endif
    for (; tile < end; tile++) {
        VECTOR8 last = load_partial_tile(x, tile, count);
        more_sums += DOT ? last * load_partial_factors(y, tile, count) : last;
    }
    double8 both = convert_double8(sums) + convert_double8(more_sums);
    double parts[WIDTH], sum = 0;
    vstore8(both, 0, parts);
    for (int i = 0; i < WIDTH; i++) sum += parts[i];
    partial_sums[local_index()] = sum;
    BARRIER();
    for (uint half_count = GROUP_SIZE / 2; half_count > 0; half_count /= 2) {
        if (local_index() < half_count) partial_sums[local_index()] += partial_sums[local_index() + half_count];
        BARRIER();
    }
    if (local_index() == 0) out[group_index()] += partial_sums[0];
}

// Adds the upper half of `count` numbers to the lower half; half_count = ceil(count / 2) numbers remain.
KERNEL pairwise_step(GLOBAL ELEMENT *numbers, uint count, uint half_count) {
    uint i = thread_index();
    if (i < count - half_count) numbers[i] += numbers[i + half_count];
}
