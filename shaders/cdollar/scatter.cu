// Scatter reductions of C$ arrays (histograms and the like), launched by
// renderer/cdollar/targets/primitive_kernels.py. In: `count` elements, each an int key and a value. Out: `bins`
// results, the sum, product, maximum or minimum of the values of each key low, low + 1, ..., low + bins - 1. A bin is a
// key minus `low`; elements with other keys are ignored. The host chooses one of three algorithms:
//     CPUs                                    scatter, then add_rows
//     where the order of additions is fixed   find_bins, a sort by bin (common/radix_sort.cu), add_sorted or add_runs
//     otherwise                               clear, scatter_atomic, and decode if KEYED
//
// The host defines:
//     SUM         type of the values and results: int, uint, float or double. IS_FLOAT: 1 for float, else 0
//     COUNTS      1 if every value is 1, so that `values` is not read, else 0
//     OPERATION   0 adds, 1 multiplies, 2 takes the maximum, 3 the minimum. For the last two -0 counts as 0, and NaN is
//                 never greater or less.
//     START       the result for a key without values: 0, 1, or LOWEST_ or HIGHEST_ of the type (below) for extrema
//     KEYED       1 if floats are represented by the integer keys of common/sort_keys.h, since devices have atomic
//                 maxima and minima of integers only, else 0
//     ATOMICS     1 if the device has the atomic operation, else 0
//     LOCAL_BINS  4,096: up to as many bins a group first combines results in local memory
// ITEM is the type in which results are accumulated: SUM, or uint for keys. HAS_BALLOT: the device has warp functions
// (common/portable.h).
#if KEYED
// Settings of sort_keys.h: keys of floats, and one key for -0 and 0. SIGN is for integers, which need no keys here.
#define FLOATS 1
#define SIGN 0
#define EQUAL_ZEROS 1
#include "common/sort_keys.h"
#endif
#define LOWEST_int (-2147483647 - 1)
#define HIGHEST_int 2147483647
#define LOWEST_uint 0u
#define HIGHEST_uint 0xffffffffu
#define HIGHEST_float as_float(0x7f800000u)
#define LOWEST_float (-HIGHEST_float)
#define HIGHEST_double ((double)HIGHEST_float)
#define LOWEST_double (-HIGHEST_double)
#define LOWEST_key 0x007fffffu  // the key of -infinity
#define HIGHEST_key 0xff800000u  // the key of infinity
// VALUE(i): the value of element i as ITEM. COMBINE(a, x): the result `a` combined with one more value x.
#if KEYED
#define ITEM uint
DEVICE uint key_or_start(float x) { return x != x ? START : key_from_bits(as_uint(x)); }  // NaN changes no result
#define VALUE(i) key_or_start(values[i])
#elif COUNTS
#define ITEM SUM
#define VALUE(i) ((SUM)1)
#elif OPERATION >= 2
#define ITEM SUM
#define VALUE(i) (values[i] == (SUM)0 ? (SUM)0 : values[i])
#else
#define ITEM SUM
#define VALUE(i) values[i]
#endif
#if OPERATION == 0
#define COMBINE(a, x) ((a) + (x))
#elif OPERATION == 1
#define COMBINE(a, x) ((a) * (x))
#elif OPERATION == 2
#define COMBINE(a, x) ((x) > (a) ? (x) : (a))
#else
#define COMBINE(a, x) ((x) < (a) ? (x) : (a))
#endif
// For CPUs, with `items` work-items. by_bins 1, for many bins: a work-item reads all elements and combines those whose
// bin is in its range of bins; `out` is (bins). by_bins 0: a work-item combines its range of elements into its row of
// `out`, (items, bins); add_rows then combines the rows.
KERNEL scatter(int count, int bins, int low, int items, int by_bins, GLOBAL const int *RESTRICT keys,
               GLOBAL const SUM *RESTRICT values, GLOBAL SUM *RESTRICT out) {
    const int item = (int)thread_index();
    if (item >= items) return;
    const int bins_per_item = by_bins ? (bins + items - 1) / items : bins,
              keys_per_item = by_bins ? count : (count - 1) / items + 1;
    const int first_bin = by_bins ? item * bins_per_item : 0, size = min(bins_per_item, bins - first_bin);
    const int begin = by_bins ? 0 : item * keys_per_item, end = min(begin + keys_per_item, count);
    GLOBAL SUM *sums = out + (by_bins ? (ulong)first_bin : (ulong)item * (ulong)bins);
    for (int i = 0; i < size; i++) sums[i] = START;
    if (size <= 0) return;
    for (int i = begin; i < end; i++) {
        const uint bin = (uint)keys[i] - (uint)low - (uint)first_bin;  // a key below the first one wraps: too large
        if (bin < (uint)size) {
            const SUM x = VALUE(i);
            sums[bin] = COMBINE(sums[bin], x);
        }
    }
}
// Combines `rows` rows of results; one thread per bin.
KERNEL add_rows(int bins, int rows, GLOBAL const SUM *RESTRICT in, GLOBAL SUM *RESTRICT out) {
    const int bin = (int)thread_index();
    if (bin >= bins) return;
    SUM sum = START;
    for (int row = 0; row < rows; row++) {
        const SUM x = in[(ulong)row * (ulong)bins + (ulong)bin];
        sum = COMBINE(sum, x);
    }
    out[bin] = sum;
}
// Initializes the results for scatter_atomic.
KERNEL clear(int bins, GLOBAL ITEM *RESTRICT out) {
    if ((int)thread_index() < bins) out[thread_index()] = START;
}
#if KEYED
// Converts the results from keys to floats.
KERNEL decode(int bins, GLOBAL uint *RESTRICT out) {
    if ((int)thread_index() < bins) out[thread_index()] = bits_from_key(out[thread_index()]);
}
#endif
// Writes the bin of each element, `bins` for keys outside of the range: the keys of the sort before add_sorted.
KERNEL find_bins(int count, int bins, int low, GLOBAL const int *RESTRICT keys, GLOBAL uint *RESTRICT out) {
    const int i = (int)thread_index();
    if (i < count) out[i] = min((uint)keys[i] - (uint)low, (uint)bins);  // a key below `low` wraps to a large number
}
// Combines the elements of each bin in order, one thread per bin. `order`: the indices of the elements sorted by bin;
// ends[bin]: the position after the bin's last element.
KERNEL add_sorted(int bins, GLOBAL const uint *RESTRICT ends, GLOBAL const uint *RESTRICT order,
                  GLOBAL const SUM *RESTRICT values, GLOBAL SUM *RESTRICT out) {
    const int bin = (int)thread_index();
    if (bin >= bins) return;
    SUM sum = START;
    for (uint i = bin == 0 ? 0 : ends[bin - 1]; i < ends[bin]; i++) {
        const SUM x = VALUE(order[i]);
        sum = COMBINE(sum, x);
    }
    out[bin] = sum;
}
#if HAS_BALLOT && IS_FLOAT
// Like add_sorted for sums of values that are already sorted by bin, one warp per bin: the lanes load 32 values at a
// time, one iteration ahead of their use, and all lanes add the 32 values in order, taken from lane after lane.
KERNEL add_runs(int bins, GLOBAL const uint *RESTRICT ends, GLOBAL const float *RESTRICT values,
                GLOBAL float *RESTRICT out) {
    const uint bin = thread_index() / 32, lane = lane_index();
    if (bin >= (uint)bins) return;
    const uint end = ends[bin];
    uint i = bin == 0 ? 0 : ends[bin - 1];
    float sum = 0.0f, next = i + lane < end ? values[i + lane] : 0.0f;
    for (; i < end; i += 32) {
        const float x = next;
        next = i + 32 + lane < end ? values[i + 32 + lane] : 0.0f;
        if (end - i >= 32) {
            UNROLL for (uint k = 0; k < 32; k++) sum += as_float(warp_shuffle(as_uint(x), k));
        } else {
            for (uint k = 0; k < end - i; k++) sum += as_float(warp_shuffle(as_uint(x), k));
        }
    }
    if (lane == 0) out[bin] = sum;
}
#endif

#if ATOMICS
// COMBINE_LOCAL, COMBINE_GLOBAL: combine x with the result at p in local or global memory, atomically. Local memory
// holds uints, which are the bits of an ITEM.
#if OPERATION == 2
#define COMBINE_LOCAL(p, x) atomic_max((LOCAL ITEM *)(p), x)
#define COMBINE_GLOBAL(p, x) atomic_max((GLOBAL ITEM *)(p), x)
#elif OPERATION == 3
#define COMBINE_LOCAL(p, x) atomic_min((LOCAL ITEM *)(p), x)
#define COMBINE_GLOBAL(p, x) atomic_min((GLOBAL ITEM *)(p), x)
#elif IS_FLOAT
// Atomic float addition by exchanges: takes the sum, leaving 0, and stores it plus x. The second exchange returns what
// other threads added meanwhile, which the next iteration adds.
DEVICE void add_local(LOCAL uint *sum, float x) {
    while (x != 0.0f) {
        const float new_sum = as_float(atomic_xchg(sum, 0u)) + x;
        x = as_float(atomic_xchg(sum, as_uint(new_sum)));
    }
}
#define COMBINE_LOCAL(p, x) add_local(p, x)
#define COMBINE_GLOBAL(p, x) atomic_add_float(p, x)
#else
#define COMBINE_LOCAL(p, x) atomic_add(p, x)
#define COMBINE_GLOBAL(p, x) atomic_add(p, x)
#endif
// If all lanes have the same bin, *x becomes the sum of the warp's values and the result is true: one lane then adds
// it, because 32 atomic operations on one word would be serialized. The whole warp must call.
DEVICE bool add_warp(uint bin, ITEM *x) {
#if HAS_BALLOT && IS_FLOAT && OPERATION == 0
    if (!warp_all(bin == warp_shuffle(bin, 0))) return false;
    for (uint step = 16; step > 0; step /= 2) *x += as_float(warp_shuffle(as_uint(*x), lane_index() ^ step));
    return true;
#else
    return false;
#endif
}
#define UNROLLED 4  // elements per thread and iteration
// Combines by atomic operations: if the bins fit (LOCAL_BINS), in local memory first, whose results then go to `out`;
// else directly in `out`. An element beyond `count` gets the bin 0xffffffff, which is none.
KERNEL scatter_atomic(int count, int bins, int low, GLOBAL const int *RESTRICT keys, GLOBAL const SUM *RESTRICT values,
                      GLOBAL ITEM *RESTRICT out) {
    LOCAL_ARRAY(uint, sums, LOCAL_BINS);
    const bool is_local = bins <= LOCAL_BINS;
    for (int i = (int)local_index(); is_local && i < bins; i += GROUP_SIZE) sums[i] = (uint)START;
    BARRIER();
    const int step = GROUP_SIZE * UNROLLED, blocks = (count - 1) / step + 1;
    for (int block = (int)group_index(); block < blocks; block += (int)group_count()) {
        const int first = block * step + (int)local_index(), valid = count - block * step - (int)local_index();
        uint bin[UNROLLED];
        ITEM value[UNROLLED];
        UNROLL for (int k = 0; k < UNROLLED; k++) {
            const bool is_valid = k * GROUP_SIZE < valid;
            bin[k] = is_valid ? (uint)keys[first + k * GROUP_SIZE] - (uint)low : 0xffffffffu;
            value[k] = is_valid ? VALUE(first + k * GROUP_SIZE) : (ITEM)START;
        }
        UNROLL for (int k = 0; k < UNROLLED; k++) {
            const bool is_added = add_warp(bin[k], &value[k]);
            if (bin[k] < (uint)bins && !(is_added && lane_index() != 0)) {
                if (is_local)
                    COMBINE_LOCAL(&sums[bin[k]], value[k]);
                else
                    COMBINE_GLOBAL(&out[bin[k]], value[k]);
            }
        }
    }
    BARRIER();
    // A result that is still START changes nothing. Sums start at 0, whose bits are 0 too.
#if OPERATION == 0 && IS_FLOAT
    for (int i = (int)local_index(); is_local && i < bins; i += GROUP_SIZE)
        if (sums[i] != 0) atomic_add_float(&out[i], as_float(sums[i]));
#else
    for (int i = (int)local_index(); is_local && i < bins; i += GROUP_SIZE)
        if (sums[i] != (uint)START) COMBINE_GLOBAL(&out[i], (ITEM)sums[i]);
#endif
}
#endif
