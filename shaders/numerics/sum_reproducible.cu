// Reproducible sums of floating-point numbers: the same bits for any order. Launched by
// renderer/numerics/sums/device_sums.py, which sums products and magnitudes exactly instead (DOT and ABSOLUTE are 0).
// In and out, and macros: see sum_tiles.h, superaccumulator.h, where a bin of this file is two limbs; out[2 LIMBS + 1]
// becomes the highest bin of all groups. The host also defines FOLD, the number of highest bins that determine the
// result: 2 for float, 3 for double.
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"

// Binned summation (J. Demmel, H. D. Nguyen; ReproBLAS): each number is split at fixed binary positions into FOLD
// slices, starting at the bin of the largest number so far. Bin j counts units of 2^(BIN_WIDTH j - 1074). The slice of
// a number in a bin does not depend on the starting bin, so the FOLD highest bins at the end have the same bits for any
// order. The cost does not depend on the data.
//
// A slice is split off by one addition: a sum that starts at BIN_REFERENCE, 1.5 * 2^52 units, stays between 2^52 and
// 2^53 units, where doubles are whole units. So `sum + number` rounds the number to units, and what was lost goes to
// the next lower bin. Example with units of 1: 1.5 * 2^52 + 3.4 is 1.5 * 2^52 + 3, and 0.4 is left.
#define BIN_WIDTH 40
#define HIGHEST_BIN 51  // the last bin whose reference is a finite double
// The reference of bin j, times 2^-scale: its exponent field, and the mantissa of 1.5.
#define SCALED_REFERENCE(j, scale) \
    as_double(((ulong)(BIN_WIDTH * (int)(j) - 1074 + 52 - (scale) + 1023) << 52) | 0x8000000000000ul)
#define BIN_REFERENCE(j) SCALED_REFERENCE(j, 0)
// Magnitudes below this, 2^(BIN_WIDTH - 1) units of bin j, fit bin j and lower bins.
#define BIN_LIMIT(j) as_double((ulong)(BIN_WIDTH * (j) - 1074 + BIN_WIDTH - 1 + 1023) << 52)
#define ENDURANCE 2048u  // deposits of up to 2^39 units that keep a sum between 2^52 and 2^53 units

// Adds whole units to bin `bin`, whose limbs have the weights 1 and 2^32 units.
DEVICE void add_to_bin(LOCAL uint *bins, uint bin, long units) {
    ulong low = (ulong)units & 0xfffffffful, high = (ulong)(units >> 32);  // with the sign
    if (low) ADD_LIMB(bins, 2 * bin, low)
    if (high) ADD_LIMB(bins, 2 * bin + 1, high)
}

// Adds the units that WIDTH sums hold above their start value `reference` to bin `bin`.
DEVICE void flush_bins(LOCAL uint *bins, const double *sums, double reference, uint bin) {
    for (int i = 0; i < WIDTH; i++) {
        // Both are in one binade, so the difference of their bits is the number of units.
        long units = (long)as_ulong(sums[i]) - (long)as_ulong(reference);
        add_to_bin(bins, bin, units);
    }
}

// Deposits a number of magnitude 2^1005 or more, whose references would overflow: number and references are scaled by
// 2^-200, which is exact.
DEVICE void deposit_scaled(LOCAL uint *bins, double x) {
    double rest = x * 0x1p-200;
    for (int fold = 0; fold < FOLD; fold++) {
        uint bin = HIGHEST_BIN + 1 - fold;
        double reference = SCALED_REFERENCE(bin, 200);
        double sum = reference + as_double(as_ulong(rest) | 1ul);  // the last bit: see sum_reproducible
        long units = (long)as_ulong(sum) - (long)as_ulong(reference);
        rest -= sum - reference;
        add_to_bin(bins, bin, units);
    }
}

// Records NaN and infinity in `flags`, deposits magnitudes of 2^1005 or more with deposit_scaled, and replaces both by
// 0 in `numbers`. Returns the lowest bin, FOLD - 1 or above, whose limit exceeds the remaining magnitudes.
DEVICE_NOINLINE uint required_bin(double *numbers, LOCAL uint *bins, LOCAL uint *flags, LOCAL uint *top) {
    uint needed = FOLD - 1;
    for (int i = 0; i < WIDTH; i++) {
        uint biased = (uint)(as_ulong(numbers[i]) >> 52) & 0x7ffu;
        if (biased == 0x7ffu) {
            atomic_or(flags, FLAG_OF(as_ulong(numbers[i]) & 0xffffffffffffful, as_ulong(numbers[i]) >> 63));
            numbers[i] = 0;
        } else if (biased >= 1005 + 1023) {
            deposit_scaled(bins, numbers[i]);
            atomic_max(top, HIGHEST_BIN + 1);
            numbers[i] = 0;
        } else
            while (fabs(numbers[i]) >= BIN_LIMIT(needed)) needed++;
    }
    return needed;
}

// Each thread keeps FOLD x WIDTH sums in registers: START_SUMS sets them to the references of the bins from `bin` down,
// FLUSH_SUMS adds them to the group's bins. Both happen when a number needs a higher bin or after ENDURANCE deposits.
#define START_SUMS                                   \
    UNROLL for (int f = 0; f < FOLD; f++) {          \
        bin_references[f] = BIN_REFERENCE(bin - f);  \
        sums[f] = SPLAT(double8, bin_references[f]); \
    }
#define FLUSH_SUMS                                            \
    UNROLL for (int f = 0; f < FOLD; f++) {                   \
        vstore8(sums[f], 0, parts);                           \
        flush_bins(limbs, parts, bin_references[f], bin - f); \
    }
// y and y_start are parameters of all kernels sum_*.cu and not used here.
KERNEL sum_reproducible(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count,
                        ulong tiles_per_group, GLOBAL uint *out) {
    GROUP_LIMBS;  // declares `limbs`, two for each bin, and `flags`
    LOCAL_ARRAY(uint, top, 1);  // the highest bin of the group
    CLEAR_LIMBS;
    if (local_index() == 0) top[0] = 0;
    BARRIER();
    uint bin = FOLD - 1, deposits = 0;
    double limit = BIN_LIMIT(bin), bin_references[FOLD];
    double8 sums[FOLD];
    double parts[WIDTH];
    START_SUMS
    ulong tile = FIRST_TILE, end = END_TILE, full_end = min(end, count / TILE);
    for (; tile < end; tile++) {
        double8 rest = convert_double8(tile < full_end ? load_full_tile(x, tile) : load_partial_tile(x, tile, count));
        // If any magnitude is not below `limit`, or is NaN: limit * (1 - 2^-53) is the double before it.
        if (any_outside(rest, 0.0, limit * (1 - 0x1p-53)) || deposits == ENDURANCE) {
            FLUSH_SUMS
            deposits = 0;
            vstore8(rest, 0, parts);
            uint needed = required_bin(parts, limbs, flags, top);
            rest = vload8(0, parts);
            bin = max(bin, needed);
            limit = BIN_LIMIT(bin);
            START_SUMS
        }
        deposits++;
        UNROLL for (int f = 0; f < FOLD; f++) {  // with its last bit set, no number lies halfway between two units
            double8 before = sums[f];
            sums[f] = before + or_lsb_nonzero(rest);
            if (f < FOLD - 1) rest = rest - (sums[f] - before);
        }
    }
    FLUSH_SUMS
    atomic_max(&top[0], bin);
    BARRIER();
    MERGE_LIMBS(out);
    if (local_index() == 0) atomic_max(&out[2 * LIMBS + 1], top[0]);
}
