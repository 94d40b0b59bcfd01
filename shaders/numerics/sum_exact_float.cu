// Exact sums of floats on GPUs, with the same result as sum_exact.cu; launched by
// renderer/numerics/sums/device_sums.py. Constants: see sum_tiles.h, superaccumulator.h; tiles_per_group is at most
// MAX_TILES_PER_GROUP; y and y_start are not used.
//
// Two ways to add floats exactly in doubles; a thread adds eight numbers of each tile:
// - Window. A double can add MAX_TILES_PER_GROUP floats without rounding if their exponents lie in a window of 20: 24
//   bits of mantissa, 19 of exponent range and 10 of count are 53 bits. So one comparison of the smallest and the
//   largest of eight numbers replaces eight error-free additions. The first tile of a group sets its window.
// - Bins. If any of the eight numbers is outside the window, all eight go to the thread's BINS doubles in local memory,
//   one for each 16 exponents; 24 + 15 bits leave room for 2^14 additions.
// A warp stops testing the window if it misses too often. It starts with a miss budget of MISS_BUDGET, or 0 if its
// first tile misses. A round of four tiles in which any lane misses costs 15, any other round adds 1. When the budget
// is used up the warp bins all further rounds, at one load and one store of local memory per number, so the cost is
// bounded for any data. At the end both kinds of sums are added to the superaccumulator.
// Magnitudes are compared as the bits of the floats shifted left by one, which drops the sign and puts the exponent
// into the top 8 bits.
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"

#define WINDOW (20u << 24)  // 20 exponents
#define MAX_TILES_PER_GROUP 1023u
#define MISS_BUDGET 24
#define NOT_FINITE 0xff000000u
// Where the window of a tile begins: two binades above its highest magnitude are in the window, and 17 below.
#define LOW_FOR(highest) ((min(max((highest) >> 24, 17u), 252u) - 17u) << 24)
#define BINS 16
#define THREADS_PER_BIN (GROUP_SIZE / BINS)  // threads that reduce one bin of all threads
#define IS_NEGATIVE_ZERO(number) (as_ulong(number) == 0x8000000000000000ul)
#if HAS_BALLOT
#define ANY_LANE(flag) (!warp_all(!(flag)))
#else
#define ANY_LANE(flag) (flag)
#endif

// Unpacks a thread's numbers of a tile, with ABSOLUTE their magnitudes; returns the largest magnitude.
DEVICE uint unpack_tile(VECTOR8 tile, float *numbers) {
    uint highest = 0;
    vstore8(tile, 0, numbers);
    UNROLL for (int i = 0; i < WIDTH; i++) {
        numbers[i] = MAGNITUDE(numbers[i]);
        highest = max(highest, 2 * as_uint(numbers[i]));
    }
    return highest;
}

// True if a number is outside of the window that begins at `low`. Zeros are in every window: their magnitude less 1
// wraps around to the largest number. Nothing is below a window that begins at 0.
DEVICE bool is_out_of_window(const float *numbers, uint highest, uint low) {
    uint lowest = 0xffffffffu;  // the smallest magnitude less 1
    UNROLL for (int i = 0; i < WIDTH; i++) lowest = min(lowest, 2 * as_uint(numbers[i]) - 1);
    return highest >= low + WINDOW || (lowest < low - 1 && low);
}

// Adds the numbers to the thread's bins, which are GROUP_SIZE apart from `column` on; NaN and infinities set flags.
DEVICE void bin_numbers(float *numbers, uint highest, LOCAL double *column, LOCAL uint *flags) {
    if (highest >= NOT_FINITE) {
        UNROLL for (int i = 0; i < WIDTH; i++) {
            uint bits = as_uint(numbers[i]);
            if (2 * bits < NOT_FINITE) continue;
            atomic_or(&flags[0], FLAG_OF(2 * bits > NOT_FINITE, bits >> 31));
            numbers[i] = -0.0f;
        }
    }
    UNROLL for (int i = 0; i < WIDTH; i++) {
        uint bin = as_uint(numbers[i]) >> 27 & 15u;  // the upper four bits of the exponent
        column[bin * GROUP_SIZE] += (double)numbers[i];
    }
}

// Adds a tile to the window sums, or to the bins if a number is outside of the window; returns true then.
DEVICE bool add_tile(VECTOR8 tile, uint low, double *sums, LOCAL double *column, LOCAL uint *flags) {
    float numbers[WIDTH];
    uint highest = unpack_tile(tile, numbers);
    bool misses = is_out_of_window(numbers, highest, low);
    if (misses) {
        bin_numbers(numbers, highest, column, flags);
        UNROLL for (int i = 0; i < WIDTH; i++) numbers[i] = -0.0f;
    }
    UNROLL for (int i = 0; i < WIDTH; i++) sums[i] += (double)numbers[i];
    return misses;
}

// Sums the tiles of a group: by windows while the warp's miss budget lasts, then by bins. `sums` are the WIDTH window
// sums of a thread, `bins` the bins of all threads.
KERNEL_MIN_GROUPS(EXACT_MIN_GROUPS_PER_SM)
sum_exact(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_per_group,
          GLOBAL uint *out) {
    GROUP_LIMBS;  // declares `limbs` and `flags`
    LOCAL_ARRAY(uint, first_highest, 1);
    LOCAL_ARRAY(uint, binned, 1);  // whether any number of the group went to a bin
    LOCAL_ARRAY(double, bins, BINS *GROUP_SIZE);
    LOCAL_ARRAY(long, units, GROUP_SIZE);
    LOCAL double *column = bins + local_index();
    CLEAR_LIMBS;
    for (uint bin = 0; bin < BINS; bin++) column[bin * GROUP_SIZE] = -0.0;
    if (local_index() == 0) first_highest[0] = binned[0] = 0;
    BARRIER();
    ulong tile = FIRST_TILE, end = END_TILE, full_end = min(end, count / TILE);
    float numbers[WIDTH];
    uint highest = unpack_tile(load_partial_tile(x, tile, count), numbers);  // of the first tile, which sets the window
    if (highest < NOT_FINITE) atomic_max(&first_highest[0], highest);
    BARRIER();
    uint low = LOW_FOR(first_highest[0] ? first_highest[0] : 127u << 24);  // the window's begin; 127: numbers near 1
    bool any_misses = is_out_of_window(numbers, highest, low);
    int miss_budget = ANY_LANE(any_misses) ? 0 : MISS_BUDGET;
    double sums[WIDTH];
    UNROLL for (int i = 0; i < WIDTH; i++) sums[i] = -0.0;
    for (; tile + 4 <= full_end && miss_budget > 0; tile += 4) {
        VECTOR8 four[4];  // loads in flight at once
        UNROLL for (int k = 0; k < 4; k++) four[k] = load_full_tile(x, tile + k);
        bool misses = false;
        UNROLL for (int k = 0; k < 4; k++) misses |= add_tile(four[k], low, sums, column, flags);
        miss_budget += ANY_LANE(misses) ? -15 : 1;
        any_misses |= misses;
    }
    any_misses |= miss_budget <= 0;
    for (; tile + 4 <= full_end; tile += 4) {
        VECTOR8 four[4];  // loads in flight at once
        UNROLL for (int k = 0; k < 4; k++) four[k] = load_full_tile(x, tile + k);
        UNROLL for (int k = 0; k < 4; k++) {
            highest = unpack_tile(four[k], numbers);
            bin_numbers(numbers, highest, column, flags);
        }
    }
    for (; tile < end; tile++) any_misses |= add_tile(load_partial_tile(x, tile, count), low, sums, column, flags);
    if (any_misses) atomic_or(&binned[0], 1u);

    // The window sums are whole numbers of the last bit of the window's least exponent, 2^exponent, below 2^53.
    int exponent = (int)max(low >> 24, 1u) - 150;
    double scale = as_double((ulong)(1023 - exponent) << 52);
    long thread_units = 0;
    bool not_negative_zero = false;
    UNROLL for (int i = 0; i < WIDTH; i++) {
        thread_units += (long)(sums[i] * scale);
        not_negative_zero |= !IS_NEGATIVE_ZERO(sums[i]);
    }
    units[local_index()] = thread_units;
    BARRIER();
    if (local_index() < THREADS_PER_BIN) {
        long window_units = 0;  // of the sums of GROUP_SIZE / THREADS_PER_BIN threads, below 2^60
        for (uint i = local_index(); i < GROUP_SIZE; i += THREADS_PER_BIN) window_units += units[i];
        add_units(limbs, window_units, exponent);
    }
    if (binned[0]) {  // likewise for the bins: bin b holds numbers of the exponents 16 b to 16 b + 15
        uint bin = local_index() / THREADS_PER_BIN;
        exponent = (int)max(16 * bin, 1u) - 150;
        scale = as_double((ulong)(1023 - exponent) << 52);
        long bin_units = 0;
        for (uint i = local_index() % THREADS_PER_BIN; i < GROUP_SIZE; i += THREADS_PER_BIN) {
            double sum = bins[bin * GROUP_SIZE + i];
            bin_units += (long)(sum * scale);
            not_negative_zero |= !IS_NEGATIVE_ZERO(sum);
        }
        add_units(limbs, bin_units, exponent);
    }
    if (not_negative_zero) atomic_or(&flags[0], FLAG_NOT_NEGATIVE_ZERO);
    BARRIER();
    MERGE_LIMBS(out);
}
