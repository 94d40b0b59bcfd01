// Reproducible sums of floating-point numbers; launched by renderer/numerics/sums/device_sums.py. In and out, and
// macros: see sum_tiles.h, superaccumulator.h; here a bin is two limbs. The host also defines FOLD, the number of
// highest bins that determine the result: 2 for float, 3 for double.
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"

// Binned summation (J. Demmel, H. D. Nguyen; ReproBLAS): each number is split at fixed binary positions into FOLD
// slices, starting at the bin of the largest number so far. Bin j counts units of 2^(BIN_WIDTH j - 1074). The slice of
// a number in a bin does not depend on the starting bin, so the FOLD highest bins at the end have the same bits for any
// order. The cost does not depend on the data.
#define BIN_WIDTH 40
#define HIGHEST_BIN 51  // the last bin for which 1.5 * 2^52 units are a finite double
#define BIN_REFERENCE(j) as_double(((ulong)(BIN_WIDTH * (j) - 1074 + 52 + 1023) << 52) | 0x8000000000000ul)
#define BIN_LIMIT(j) as_double((ulong)(BIN_WIDTH * (j) - 1074 + BIN_WIDTH - 1 + 1023) << 52)
#define ENDURANCE 2048u  // deposits of up to 2^39 units that keep a sum between 2^52 and 2^53 units

// Adds the units that WIDTH sums hold above their start value `reference` to the limbs of bin `bin`.
DEVICE void flush_bins(LOCAL uint *bins, const double *sums, double reference, uint bin) {
    for (int i = 0; i < WIDTH; i++) {
        // Both are in one binade, so the difference of their bits is the number of units.
        long units = (long)as_ulong(sums[i]) - (long)as_ulong(reference);
        ulong low = (ulong)units & 0xfffffffful, high = (ulong)(units >> 32);
        if (low) ADD_LIMB(bins, 2 * bin, low)
        if (high) ADD_LIMB(bins, 2 * bin + 1, high)
    }
}

// Deposits a number of magnitude 2^1005 or more, scaled by 2^-200 before it is split; the scaling is exact.
DEVICE void deposit_scaled(LOCAL uint *bins, double x) {
    double rest = x * 0x1p-200;
    for (int fold = 0; fold < FOLD; fold++) {
        uint bin = HIGHEST_BIN + 1 - fold;
        double reference =
            as_double(((ulong)(BIN_WIDTH * (int)bin - 1074 + 52 - 200 + 1023) << 52) | 0x8000000000000ul);
        double sum = reference + as_double(as_ulong(rest) | 1ul);
        long units = (long)as_ulong(sum) - (long)as_ulong(reference);
        rest -= sum - reference;
        ADD_LIMB(bins, 2 * bin, (ulong)units & 0xfffffffful)
        ADD_LIMB(bins, 2 * bin + 1, (ulong)(units >> 32))
    }
}

// Records NaN and infinity in `flags`, deposits magnitudes of 2^1005 or more with deposit_scaled, and replaces both by
// 0 in `numbers`. Returns the lowest bin, FOLD - 1 or above, whose limit exceeds the remaining magnitudes.
DEVICE_NOINLINE uint required_bin(double *numbers, LOCAL uint *bins, LOCAL uint *flags, LOCAL uint *top) {
    uint needed = FOLD - 1;
    for (int i = 0; i < WIDTH; i++) {
        uint biased = (uint)(as_ulong(numbers[i]) >> 52) & 0x7ffu;
        if (biased == 0x7ffu) {
            bool minus = (as_ulong(numbers[i]) >> 63) != 0;
            bool nan = (as_ulong(numbers[i]) & 0xffffffffffffful) != 0;
            atomic_or(flags, nan ? FLAG_NAN : minus ? FLAG_NEGATIVE_INFINITY : FLAG_POSITIVE_INFINITY);
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

// Each thread keeps FOLD x WIDTH sums in registers, which start at the bins' references. They are flushed to `limbs`
// when a number needs a higher bin or after ENDURANCE deposits. out[2 LIMBS + 1] becomes the highest bin of all groups.
KERNEL sum_reproducible(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count,
                        ulong tiles_per_group, GLOBAL uint *out) {
    y += y_start;
    GROUP_LIMBS;  // two for each bin
    LOCAL_ARRAY(uint, top, 1);
    CLEAR_LIMBS;
    if (local_index() == 0) top[0] = 0;
    BARRIER();
    uint bin = FOLD - 1, deposits = 0;
    double limit = BIN_LIMIT(bin), bin_references[FOLD];
    double8 sums[FOLD];
    double parts[WIDTH];
    UNROLL for (int f = 0; f < FOLD; f++) sums[f] = SPLAT(double8, bin_references[f] = BIN_REFERENCE(bin - f));
#define FLUSH_ALL                                                 \
    {                                                             \
        UNROLL for (int f = 0; f < FOLD; f++) {                   \
            vstore8(sums[f], 0, parts);                           \
            flush_bins(limbs, parts, bin_references[f], bin - f); \
        }                                                         \
        deposits = 0;                                             \
    }
    ulong tile = FIRST_TILE, end = END_TILE, full_end = min(end, count / TILE);
    for (; tile < end; tile++) {
        double8 rest = convert_double8(tile < full_end ? load_full_tile(x, tile) : load_partial_tile(x, tile, count));
        if (any_outside(rest, 0.0, limit * (1 - 0x1p-53)) || deposits == ENDURANCE) {
            FLUSH_ALL
            vstore8(rest, 0, parts);
            uint needed = required_bin(parts, limbs, flags, top);
            rest = vload8(0, parts);
            bin = max(bin, needed);
            limit = BIN_LIMIT(bin);
            UNROLL for (int f = 0; f < FOLD; f++) sums[f] = SPLAT(double8, bin_references[f] = BIN_REFERENCE(bin - f));
        }
        deposits++;
        UNROLL for (int f = 0; f < FOLD; f++) {  // with its last bit set, no number lies halfway between two units
            double8 before = sums[f];
            sums[f] = before + or_lsb_nonzero(rest);
            if (f < FOLD - 1) rest = rest - (sums[f] - before);
        }
    }
    FLUSH_ALL
    atomic_max(&top[0], bin);
    BARRIER();
    MERGE_LIMBS(out);
    if (local_index() == 0) atomic_max(&out[2 * LIMBS + 1], top[0]);
}
