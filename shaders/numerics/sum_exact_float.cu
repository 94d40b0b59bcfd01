// Exact sums of floats on processors of many lanes. Constants: see numerics/sum_tiles.h, numerics/superaccumulator.h; tiles_each is at most LONGEST_SUM.
//
// Window: a running double takes every float of 20 successive exponents without a rounding, LONGEST_SUM times: floats of 24
// bits times 2^19 in size times 2^10 in number are 53 bits. So one test of the smallest and the largest of eight numbers
// takes the place of eight error-free additions. The window is chosen by the group's first tile.
// Bins: a tile of a thread with numbers outside goes to BINS doubles of the thread's own in local memory, one for each 16
// exponents: 24 bits times 2^15 in size leave room for 2^14 additions. A warp whose patience is at an end takes bins for all
// that is left, so that no data are slow: bins cost a load and a store of local memory a number. It has none where the first
// tile has such numbers already; else each round of four tiles with such numbers takes 15 from it, and each other adds one.
// Sums of both are added as integers in the end. Sizes of floats are compared by their bits, shifted left by one.
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"

#define WINDOW (20u << 24)
#define LONGEST_SUM 1023u
#define PATIENCE 24
#define NOT_FINITE 0xff000000u
#define LOW_FOR(highest) ((min(max((highest) >> 24, 17u), 252u) - 17u) << 24)  // two binades above the highest, 17 below
#define BINS 16
#define SHARE (GROUP_SIZE / BINS)  // threads that empty one bin of all threads
#define BIN_OF(number) bins[(as_uint(number) >> 27 & 15u) * GROUP_SIZE + local_index()]
#define IS_MINUS_ZERO(number) (as_ulong(number) == 0x8000000000000000ul)
#if HAS_BALLOT
#define ANY_LANE(flag) (!all_lanes(!(flag)))
#else
#define ANY_LANE(flag) (flag)
#endif

// Numbers of units 2^exponent to the limbs.
DEVICE_NOINLINE void leave_units(long units, int exponent, LOCAL uint *limbs) {
    bool negative = units < 0;
    ulong size = negative ? 0ul - (ulong)units : (ulong)units;
    ADD_INTEGER(limbs, size, exponent, negative)
}

#define SPREAD_TILE(raw)                                                                                               \
    float numbers[WIDTH];                                                                                              \
    uint highest = 0;                                                                                                  \
    vstore8(raw, 0, numbers);                                                                                          \
    UNROLL for (int i = 0; i < WIDTH; i++) {                                                                           \
        numbers[i] = MAGNITUDE(numbers[i]);                                                                            \
        highest = max(highest, 2 * as_uint(numbers[i]));                                                               \
    }
#define BIN_NUMBERS                                                                                                    \
    {                                                                                                                  \
        if (highest >= NOT_FINITE) UNROLL for (int i = 0; i < WIDTH; i++) {                                            \
            uint bits = as_uint(numbers[i]);                                                                           \
            if (2 * bits < NOT_FINITE) continue;                                                                       \
            uint infinity = bits >> 31 ? FLAG_MINUS_INFINITY : FLAG_PLUS_INFINITY;                                     \
            atomic_or(&flags[0], 2 * bits > NOT_FINITE ? FLAG_NAN : infinity);                                         \
            numbers[i] = -0.0f;                                                                                        \
        }                                                                                                              \
        UNROLL for (int i = 0; i < WIDTH; i++) BIN_OF(numbers[i]) += (double)numbers[i];                               \
    }
#define FIND_LOWEST /* a zero is no lowest: one less, it is the largest there is */                                    \
    uint lowest = 0xffffffffu;                                                                                         \
    UNROLL for (int i = 0; i < WIDTH; i++) lowest = min(lowest, 2 * as_uint(numbers[i]) - 1);
#define OUTSIDE(highest, lowest) ((highest) >= low + WINDOW || ((lowest) < low - 1 && low))
#define ADD_TILE(raw)                                                                                                  \
    {                                                                                                                  \
        SPREAD_TILE(raw)                                                                                               \
        FIND_LOWEST                                                                                                    \
        if (OUTSIDE(highest, lowest)) {                                                                                \
            BIN_NUMBERS                                                                                                \
            UNROLL for (int i = 0; i < WIDTH; i++) numbers[i] = -0.0f;                                                 \
            missed = true;                                                                                             \
        }                                                                                                              \
        UNROLL for (int i = 0; i < WIDTH; i++) sums[i] += (double)numbers[i];                                          \
    }
#define BIN_TILE(raw)                                                                                                  \
    {                                                                                                                  \
        SPREAD_TILE(raw)                                                                                               \
        BIN_NUMBERS                                                                                                    \
    }

KERNEL_RESIDENT(EXACT_RESIDENT) exact(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count,
                                      ulong tiles_each, GLOBAL uint *out) {
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS);
    LOCAL_ARRAY(uint, flags, 1);
    LOCAL_ARRAY(uint, first_highest, 1);
    LOCAL_ARRAY(uint, binned, 1);  // whether a number of the group went to a bin
    LOCAL_ARRAY(double, bins, BINS *GROUP_SIZE);
    LOCAL_ARRAY(long, units, GROUP_SIZE);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0;
    for (uint bin = 0; bin < BINS; bin++) bins[bin * GROUP_SIZE + local_index()] = -0.0;
    if (local_index() == 0) flags[0] = first_highest[0] = binned[0] = 0;
    BARRIER();
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
    RAW first = load(x, tile, count);
    SPREAD_TILE(first)
    FIND_LOWEST
    if (highest < NOT_FINITE) atomic_max(&first_highest[0], highest);
    BARRIER();
    uint low = LOW_FOR(first_highest[0] ? first_highest[0] : 127u << 24);
    bool missed = OUTSIDE(highest, lowest), any_missed = missed;
    int patience = ANY_LANE(missed) ? 0 : PATIENCE;
    missed = false;
    double sums[WIDTH];
    UNROLL for (int i = 0; i < WIDTH; i++) sums[i] = -0.0;
#define FOUR_TILES(DO)                                                                                                 \
    {  /* four loads in flight */                                                                                      \
        RAW a = load_whole(x, tile), b = load_whole(x, tile + 1), c = load_whole(x, tile + 2), d = load_whole(x, tile + 3); \
        DO(a) DO(b) DO(c) DO(d)                                                                                        \
    }
    for (; tile + 4 <= whole && patience > 0; tile += 4) {
        FOUR_TILES(ADD_TILE)
        patience += ANY_LANE(missed) ? -15 : 1;
        any_missed |= missed;
        missed = false;
    }
    any_missed |= patience <= 0;
    for (; tile + 4 <= whole; tile += 4) FOUR_TILES(BIN_TILE)
    for (; tile < last; tile++) {
        RAW a = load(x, tile, count);
        ADD_TILE(a)
    }
    if (missed || any_missed) atomic_or(&binned[0], 1u);

    int exponent = (int)max(low >> 24, 1u) - 150;
    double scale = as_double((ulong)(1023 - exponent) << 52);
    long own = 0;
    bool told = false;
    UNROLL for (int i = 0; i < WIDTH; i++) {  // multiples of the window's last bit, below 2^53 of it
        own += (long)(sums[i] * scale);
        told |= !IS_MINUS_ZERO(sums[i]);
    }
    units[local_index()] = own;
    BARRIER();
    if (local_index() < SHARE) {
        own = 0;
        for (uint i = local_index(); i < GROUP_SIZE; i += SHARE) own += units[i];  // below 2^60
        leave_units(own, exponent, limbs);
    }
    if (binned[0]) {
        uint bin = local_index() / SHARE;
        exponent = (int)max(16 * bin, 1u) - 150;
        scale = as_double((ulong)(1023 - exponent) << 52);
        own = 0;
        for (uint i = local_index() % SHARE; i < GROUP_SIZE; i += SHARE) {
            double sum = bins[bin * GROUP_SIZE + i];
            own += (long)(sum * scale);
            told |= !IS_MINUS_ZERO(sum);
        }
        leave_units(own, exponent, limbs);
    }
    if (told) atomic_or(&flags[0], FLAG_NOT_MINUS_ZERO);
    BARRIER();
    MERGE_LIMBS(limbs, out)
    if (local_index() == 0 && flags[0]) atomic_or(&out[2 * LIMBS], flags[0]);
}
