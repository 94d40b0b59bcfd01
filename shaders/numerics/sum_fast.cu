// Fast sums of huge arrays, and the halving of paper 2 as it stands there. Constants: see numerics/sum_tiles.h.
#include "numerics/sum_tiles.h"

// Fast: eight running sums a thread in the numbers' own precision, then the paper's halving among the threads in double.
KERNEL fast(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_each,
            GLOBAL double *out) {
    y += y_start;
    LOCAL_ARRAY(double, halves, GROUP_SIZE);
    RAW sums = SPLAT(RAW, 0), others = SPLAT(RAW, 0);
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
#if DOT
    for (; tile < whole; tile++) sums += load_whole(x, tile) * load_whole(y, tile);
#else
    for (; tile + 4 <= whole; tile += 4) {  // four loads in flight
        RAW a = load_whole(x, tile), b = load_whole(x, tile + 1), c = load_whole(x, tile + 2), d = load_whole(x, tile + 3);
        sums += a + b;
        others += c + d;
    }
    for (; tile < whole; tile++) sums += load_whole(x, tile);
#endif
    for (; tile < last; tile++) {
#if DOT
        others += load(x, tile, count) * load(y, tile, count);
#else
        others += load(x, tile, count);
#endif
    }
    double8 both = double8_of(sums) + double8_of(others);
    double parts[WIDTH], sum = 0;
    vstore8(both, 0, parts);
    for (int i = 0; i < WIDTH; i++) sum += parts[i];
    halves[local_index()] = sum;
    BARRIER();
    for (uint half_count = GROUP_SIZE / 2; half_count > 0; half_count /= 2) {
        if (local_index() < half_count) halves[local_index()] += halves[local_index() + half_count];
        BARRIER();
    }
    if (local_index() == 0) out[group_index()] += halves[0];
}


// The paper's step: an array of 2 * half_count numbers (the odd one padded) becomes one of half_count.
KERNEL halve(GLOBAL ELEMENT *numbers, uint count, uint half_count) {
    uint i = thread_index();
    if (i < count - half_count) numbers[i] += numbers[i + half_count];
}
