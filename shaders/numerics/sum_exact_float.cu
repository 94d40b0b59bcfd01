// Exact sums of floats on GPUs, with the same result as sum_exact.cu; launched by
// renderer/numerics/sums/device_sums.py. Constants: see sum_tiles.h, superaccumulator.h; tiles_per_group is at most
// MAX_TILES_PER_GROUP.
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
// Magnitudes are compared as the bits of the floats shifted left by one: the exponent is then in the top 8 bits.
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
#define BIN_OF(number) bins[(as_uint(number) >> 27 & 15u) * GROUP_SIZE + local_index()]
#define IS_NEGATIVE_ZERO(number) (as_ulong(number) == 0x8000000000000000ul)
#if HAS_BALLOT
#define ANY_LANE(flag) (!warp_all(!(flag)))
#else
#define ANY_LANE(flag) (flag)
#endif

// Adds units * 2^exponent to the superaccumulator.
DEVICE_NOINLINE void add_units(long units, int exponent, LOCAL uint *limbs){ADD_UNITS(limbs, units, exponent)}

// UNPACK_TILE declares the eight `numbers` of a thread and `highest`, their largest magnitude; BIN_NUMBERS adds them to
// the bins, FIND_LOWEST declares `lowest`, their smallest magnitude less 1.
#define UNPACK_TILE(raw)                                 \
    float numbers[WIDTH];                                \
    uint highest = 0;                                    \
    vstore8(raw, 0, numbers);                            \
    UNROLL for (int i = 0; i < WIDTH; i++) {             \
        numbers[i] = MAGNITUDE(numbers[i]);              \
        highest = max(highest, 2 * as_uint(numbers[i])); \
    }
#define BIN_NUMBERS                                                                           \
    {                                                                                         \
        if (highest >= NOT_FINITE) UNROLL for (int i = 0; i < WIDTH; i++) {                   \
                uint bits = as_uint(numbers[i]);                                              \
                if (2 * bits < NOT_FINITE) continue;                                          \
                uint infinity = bits >> 31 ? FLAG_NEGATIVE_INFINITY : FLAG_POSITIVE_INFINITY; \
                atomic_or(&flags[0], 2 * bits > NOT_FINITE ? FLAG_NAN : infinity);            \
                numbers[i] = -0.0f;                                                           \
            }                                                                                 \
        UNROLL for (int i = 0; i < WIDTH; i++) BIN_OF(numbers[i]) += (double)numbers[i];      \
    }
// low, of the kernel: the exponent, in the top 8 bits, at which the group's window begins.
#define FIND_LOWEST /* zeros do not count: less 1 they wrap to the largest value */ \
    uint lowest = 0xffffffffu;                                                      \
    UNROLL for (int i = 0; i < WIDTH; i++) lowest = min(lowest, 2 * as_uint(numbers[i]) - 1);
#define OUT_OF_WINDOW(highest, lowest) ((highest) >= low + WINDOW || ((lowest) < low - 1 && low))
#define ADD_TILE(raw)                                                         \
    {                                                                         \
        UNPACK_TILE(raw)                                                      \
        FIND_LOWEST                                                           \
        if (OUT_OF_WINDOW(highest, lowest)) {                                 \
            BIN_NUMBERS                                                       \
            UNROLL for (int i = 0; i < WIDTH; i++) numbers[i] = -0.0f;        \
            out_of_window = true;                                             \
        }                                                                     \
        UNROLL for (int i = 0; i < WIDTH; i++) sums[i] += (double)numbers[i]; \
    }
#define BIN_TILE(raw) {UNPACK_TILE(raw) BIN_NUMBERS}

// Sums the tiles of a group: by windows while the warp's miss budget lasts, then by bins. `sums` are the WIDTH window
// sums of a thread, `bins` its bins.
KERNEL_MIN_GROUPS(EXACT_MIN_GROUPS_PER_SM) sum_exact(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start,
                                                     ulong count, ulong tiles_per_group, GLOBAL uint *out) {
    GROUP_LIMBS;
    LOCAL_ARRAY(uint, first_highest, 1);
    LOCAL_ARRAY(uint, binned, 1);  // whether any number of the group went to a bin
    LOCAL_ARRAY(double, bins, BINS *GROUP_SIZE);
    LOCAL_ARRAY(long, units, GROUP_SIZE);
    CLEAR_LIMBS;
    for (uint bin = 0; bin < BINS; bin++) bins[bin * GROUP_SIZE + local_index()] = -0.0;
    if (local_index() == 0) first_highest[0] = binned[0] = 0;
    BARRIER();
    ulong tile = FIRST_TILE, end = END_TILE, full_end = min(end, count / TILE);
    VECTOR8 first = load_partial_tile(x, tile, count);
    UNPACK_TILE(first)
    FIND_LOWEST
    if (highest < NOT_FINITE) atomic_max(&first_highest[0], highest);
    BARRIER();
    uint low = LOW_FOR(first_highest[0] ? first_highest[0] : 127u << 24);
    bool out_of_window = OUT_OF_WINDOW(highest, lowest), any_out_of_window = out_of_window;
    int miss_budget = ANY_LANE(out_of_window) ? 0 : MISS_BUDGET;
    out_of_window = false;
    double sums[WIDTH];
    UNROLL for (int i = 0; i < WIDTH; i++) sums[i] = -0.0;
#define FOUR_TILES(DO)                                                                                         \
    { /* four loads in flight */                                                                               \
        VECTOR8 a = load_full_tile(x, tile), b = load_full_tile(x, tile + 1), c = load_full_tile(x, tile + 2), \
                d = load_full_tile(x, tile + 3);                                                               \
        DO(a) DO(b) DO(c) DO(d)                                                                                \
    }
    for (; tile + 4 <= full_end && miss_budget > 0; tile += 4) {
        FOUR_TILES(ADD_TILE)
        miss_budget += ANY_LANE(out_of_window) ? -15 : 1;
        any_out_of_window |= out_of_window;
        out_of_window = false;
    }
    any_out_of_window |= miss_budget <= 0;
    for (; tile + 4 <= full_end; tile += 4) FOUR_TILES(BIN_TILE)
    for (; tile < end; tile++) {
        VECTOR8 a = load_partial_tile(x, tile, count);
        ADD_TILE(a)
    }
    if (out_of_window || any_out_of_window) atomic_or(&binned[0], 1u);

    int exponent = (int)max(low >> 24, 1u) - 150;
    double scale = as_double((ulong)(1023 - exponent) << 52);
    long thread_units = 0;  // sum of the thread, or of a bin, in units of 2^exponent
    bool not_negative_zero = false;
    UNROLL for (int i = 0; i < WIDTH; i++) {  // in units of the window's last bit, below 2^53
        thread_units += (long)(sums[i] * scale);
        not_negative_zero |= !IS_NEGATIVE_ZERO(sums[i]);
    }
    units[local_index()] = thread_units;
    BARRIER();
    if (local_index() < THREADS_PER_BIN) {
        thread_units = 0;
        for (uint i = local_index(); i < GROUP_SIZE; i += THREADS_PER_BIN) thread_units += units[i];  // below 2^60
        add_units(thread_units, exponent, limbs);
    }
    if (binned[0]) {
        uint bin = local_index() / THREADS_PER_BIN;
        exponent = (int)max(16 * bin, 1u) - 150;
        scale = as_double((ulong)(1023 - exponent) << 52);
        thread_units = 0;
        for (uint i = local_index() % THREADS_PER_BIN; i < GROUP_SIZE; i += THREADS_PER_BIN) {
            double sum = bins[bin * GROUP_SIZE + i];
            thread_units += (long)(sum * scale);
            not_negative_zero |= !IS_NEGATIVE_ZERO(sum);
        }
        add_units(thread_units, exponent, limbs);
    }
    if (not_negative_zero) atomic_or(&flags[0], FLAG_NOT_NEGATIVE_ZERO);
    BARRIER();
    MERGE_LIMBS(out);
}
