// Reproducible sums of floating-point numbers. Constants: see numerics/sum_tiles.h, numerics/superaccumulator.h; FOLDS slices are kept.
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"

// Reproducible: each number is cut at fixed binary places into FOLDS slices (Demmel, Nguyen; ReproBLAS), beginning at the
// bin of the largest number seen. Bin j counts units of 2^(BIN_WIDTH j - 1074). The slices of a number do not depend on the
// bin they begin at, so that keeping the FOLDS highest bins in the end gives the same bits in any order. No data slow it.
#define BIN_WIDTH 40
#define HIGHEST_BIN 51  // the last whose 1.5 * 2^52 units are a finite double
#define UNITS_OF(j) as_double(((ulong)(BIN_WIDTH * (j) - 1074 + 52 + 1023) << 52) | 0x8000000000000ul)
#define LIMIT_OF(j) as_double((ulong)(BIN_WIDTH * (j) - 1074 + BIN_WIDTH - 1 + 1023) << 52)
#define LONGEST_RUN 2048u  // additions of 2^39 units that keep a sum between 2^52 and 2^53 units

DEVICE void leave_slices(LOCAL uint *bins, const double *sums, double start, uint bin) {
    for (int i = 0; i < WIDTH; i++) {
        long units = (long)as_ulong(sums[i]) - (long)as_ulong(start);  // in one binade: a difference of bits
        ulong low = (ulong)units & 0xfffffffful, high = (ulong)(units >> 32);
        if (low) ADD_LIMB(bins, 2 * bin, low)
        if (high) ADD_LIMB(bins, 2 * bin + 1, high)
    }
}

// Numbers of 2^1005 and more, cut after scaling by 2^-200, which is exact.
DEVICE void cut_huge(LOCAL uint *bins, double x) {
    double rest = x * 0x1p-200;
    for (int fold = 0; fold < FOLDS; fold++) {
        uint bin = HIGHEST_BIN + 1 - fold;
        double start = as_double(((ulong)(BIN_WIDTH * (int)bin - 1074 + 52 - 200 + 1023) << 52) | 0x8000000000000ul);
        double sum = start + as_double(as_ulong(rest) | 1ul);
        long units = (long)as_ulong(sum) - (long)as_ulong(start);
        rest -= sum - start;
        ADD_LIMB(bins, 2 * bin, (ulong)units & 0xfffffffful)
        ADD_LIMB(bins, 2 * bin + 1, (ulong)(units >> 32))
    }
}

// The bin that a batch needs; takes what is not finite, and what is huge, out of it.
DEVICE_NOINLINE uint bin_for(double *numbers, LOCAL uint *bins, LOCAL uint *flags, LOCAL uint *top) {
    uint needed = FOLDS - 1;
    for (int i = 0; i < WIDTH; i++) {
        uint biased = (uint)(as_ulong(numbers[i]) >> 52) & 0x7ffu;
        if (biased == 0x7ffu) {
            bool minus = (as_ulong(numbers[i]) >> 63) != 0;
            bool nan = (as_ulong(numbers[i]) & 0xffffffffffffful) != 0;
            atomic_or(flags, nan ? FLAG_NAN : minus ? FLAG_MINUS_INFINITY : FLAG_PLUS_INFINITY);
            numbers[i] = 0;
        } else if (biased >= 1005 + 1023) {
            cut_huge(bins, numbers[i]);
            atomic_max(top, HIGHEST_BIN + 1);
            numbers[i] = 0;
        } else
            while (fabs(numbers[i]) >= LIMIT_OF(needed)) needed++;
    }
    return needed;
}

KERNEL reproducible(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_each,
                    GLOBAL uint *out) {
    y += y_start;
    LOCAL_ARRAY(uint, bins, 2 * LIMBS);
    LOCAL_ARRAY(uint, flags, 1);
    LOCAL_ARRAY(uint, top, 1);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) bins[i] = 0;
    if (local_index() == 0) flags[0] = top[0] = 0;
    BARRIER();
    uint bin = FOLDS - 1, run = 0;
    double limit = LIMIT_OF(bin), starts[FOLDS];
    double8 sums[FOLDS];
    double parts[WIDTH];
    UNROLL for (int f = 0; f < FOLDS; f++) sums[f] = SPLAT(double8, starts[f] = UNITS_OF(bin - f));
#define LEAVE_ALL                                                                                                      \
    {                                                                                                                  \
        UNROLL for (int f = 0; f < FOLDS; f++) {                                                                       \
            vstore8(sums[f], 0, parts);                                                                                \
            leave_slices(bins, parts, starts[f], bin - f);                                                             \
        }                                                                                                              \
        run = 0;                                                                                                       \
    }
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
    for (; tile < last; tile++) {
        double8 rest = double8_of(tile < whole ? load_whole(x, tile) : load(x, tile, count));
        if (any_outside(rest, 0.0, limit * (1 - 0x1p-53)) || run == LONGEST_RUN) {
            LEAVE_ALL
            vstore8(rest, 0, parts);
            uint needed = bin_for(parts, bins, flags, top);
            rest = vload8(0, parts);
            bin = max(bin, needed);
            limit = LIMIT_OF(bin);
            UNROLL for (int f = 0; f < FOLDS; f++) sums[f] = SPLAT(double8, starts[f] = UNITS_OF(bin - f));
        }
        run++;
        UNROLL for (int f = 0; f < FOLDS; f++) {  // the odd bit keeps a number from lying halfway between two units
            double8 before = sums[f];
            sums[f] = before + with_odd_bits(rest);
            if (f < FOLDS - 1) rest = rest - (sums[f] - before);
        }
    }
    LEAVE_ALL
    atomic_max(&top[0], bin);
    BARRIER();
    MERGE_LIMBS(bins, out)
    if (local_index() == 0) {
        if (flags[0]) atomic_or(&out[2 * LIMBS], flags[0]);
        atomic_max(&out[2 * LIMBS + 1], top[0]);
    }
}
