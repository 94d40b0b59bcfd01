// Prefix sums, radix sort and sums by key of C$ (renderer/cdollar/targets/primitive_kernels.py). SUM: the type of
// sums. A CPU's work-item takes a whole part; on a GPU a group of 256 threads takes 16 elements each.
// Blelloch 1990 (scans); Satish, Harris, Garland 2009 (radix sort).
#define BLOCK 4096
#define ITEMS 16
#define PADDED(i) ((i) + (i) / ITEMS)

// The inclusive prefix sums of rows, block by block; `offsets` are the prefix sums of the blocks' totals. The order of
// additions is that of numpy_primitives.py. Without WRITES only totals.
#ifdef SCAN
KERNEL scan(int length, int blocks, GLOBAL const SUM *RESTRICT in, GLOBAL const SUM *RESTRICT offsets,
            GLOBAL SUM *RESTRICT out) {
    const uint group = group_index();
    const int block = (int)(group % (uint)blocks), count = min(BLOCK, length - block * BLOCK);
    const ulong start = (ulong)(group / (uint)blocks) * (ulong)length + (ulong)block * BLOCK;
    const SUM base = WRITES && block > 0 ? offsets[group - 1] : (SUM)0;
#if SCALAR
    SUM outer = (SUM)0, middle = (SUM)0;
    for (int first = 0; first < count; first += ITEMS) {
        SUM inner = (SUM)0;
        const int end = min(ITEMS, count - first);
        for (int j = 0; j < end; j++) {
            inner += in[start + (ulong)(first + j)];
            if (WRITES) out[start + (ulong)(first + j)] = base + (outer + (middle + inner));
        }
        middle += inner;
        if ((first / ITEMS) % ITEMS == ITEMS - 1) {
            outer += middle;
            middle = (SUM)0;
        }
    }
    if (!WRITES) out[group] = outer + middle;
#else
    LOCAL_ARRAY(SUM, tile, PADDED(BLOCK));
    LOCAL_ARRAY(SUM, sums, GROUP_SIZE);
    LOCAL_ARRAY(SUM, groups, ITEMS);
    const int t = (int)local_index();
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * GROUP_SIZE + t;
        tile[PADDED(i)] = i < count ? in[start + (ulong)i] : (SUM)0;
    }
    BARRIER();
    SUM items[ITEMS], inner = (SUM)0, middle = (SUM)0, outer = (SUM)0;
    for (int j = 0; j < ITEMS; j++) {
        inner += tile[PADDED(t * ITEMS + j)];
        items[j] = inner;
    }
    sums[t] = inner;
    BARRIER();
    for (int k = t & ~(ITEMS - 1); k < t; k++) middle += sums[k];
    if (t % ITEMS == ITEMS - 1) groups[t / ITEMS] = middle + inner;
    BARRIER();
    for (int k = 0; k < t / ITEMS; k++) outer += groups[k];
    if (WRITES) {
        for (int j = 0; j < ITEMS; j++) tile[PADDED(t * ITEMS + j)] = base + (outer + (middle + items[j]));
        BARRIER();
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * GROUP_SIZE + t;
            if (i < count) out[start + (ulong)i] = tile[PADDED(i)];
        }
    } else if (t == GROUP_SIZE - 1) {
        out[group] = outer + (middle + inner);
    }
#endif
}
#endif

#if KEYED
#define FLOATS 1
#define SIGN 0
#define EQUAL_ZEROS 1
#endif
#if defined(SORT) || KEYED
#include "cdollar/sort_keys.h"
#endif

#ifdef SORT
KERNEL make_keys(int count, GLOBAL const uint *RESTRICT in, GLOBAL uint *RESTRICT keys, GLOBAL uint *RESTRICT order) {
    const int i = (int)thread_index();
    if (i >= count) return;
    keys[i] = key_of(in[i]);
    if (PAIRS) order[i] = (uint)i;
}
KERNEL make_elements(int count, GLOBAL const uint *RESTRICT keys, GLOBAL uint *RESTRICT out) {
    const int i = (int)thread_index();
    if (i < count) out[i] = bits_of(keys[i]);
}
#endif

#ifdef RADIX
#define DIGITS (1 << BITS)
#define DIGIT(key) ((int)((key) >> shift) & (DIGITS - 1))
// Counts of each digit in each part, digits first; a part is `per_part` keys.
KERNEL radix_count(int count, int parts, int per_part, int shift, GLOBAL const uint *RESTRICT keys,
                   GLOBAL uint *RESTRICT counts) {
    const int part = (int)group_index(), begin = part * per_part, end = min(begin + per_part, count);
#if SCALAR
    uint found[DIGITS];
    for (int d = 0; d < DIGITS; d++) found[d] = 0;
    for (int i = begin; i < end; i++) found[DIGIT(keys[i])]++;
    for (int d = 0; d < DIGITS; d++) counts[d * parts + part] = found[d];
#else
    LOCAL_ARRAY(uint, found, DIGITS * (GROUP_SIZE + 1));
    const int t = (int)local_index();
    for (int d = 0; d < DIGITS; d++) found[d * (GROUP_SIZE + 1) + t] = 0;
    for (int i = begin + t; i < end; i += GROUP_SIZE) found[DIGIT(keys[i]) * (GROUP_SIZE + 1) + t]++;
    BARRIER();
    if (t < DIGITS) {
        uint sum = 0;
        for (int k = 0; k < GROUP_SIZE; k++) sum += found[t * (GROUP_SIZE + 1) + k];
        counts[t * parts + part] = sum;
    }
#endif
}
// Moves keys, and the order with them if PAIRS, to their places by one digit; equal digits keep their order.
KERNEL radix_move(int count, int parts, int per_part, int shift, GLOBAL const uint *RESTRICT counts,
                  GLOBAL const uint *RESTRICT keys, GLOBAL const uint *RESTRICT order, GLOBAL uint *RESTRICT keys_out,
                  GLOBAL uint *RESTRICT order_out) {
    const int part = (int)group_index(), begin = part * per_part, end = min(begin + per_part, count);
#if SCALAR
    uint places[DIGITS];
    for (int d = 0; d < DIGITS; d++) places[d] = d + part == 0 ? 0 : counts[d * parts + part - 1];
    for (int i = begin; i < end; i++) {
        const uint key = keys[i], place = places[DIGIT(key)]++;
        keys_out[place] = key;
        if (PAIRS) order_out[place] = order[i];
    }
#else
    LOCAL_ARRAY(uint, ranks, DIGITS * GROUP_SIZE);
    LOCAL_ARRAY(uint, sums, GROUP_SIZE);
    LOCAL_ARRAY(uint, starts, DIGITS);
    const int t = (int)local_index(), first = begin + t * ITEMS, last = min(first + ITEMS, end);
    for (int d = 0; d < DIGITS; d++) ranks[d * GROUP_SIZE + t] = 0;
    for (int i = first; i < last; i++) ranks[DIGIT(keys[i]) * GROUP_SIZE + t]++;
    BARRIER();
    uint sum = 0;
    for (int k = 0; k < DIGITS; k++) sum += ranks[t * DIGITS + k];
    sums[t] = sum;
    BARRIER();
    for (int step = 1; step < GROUP_SIZE; step *= 2) {
        const uint before = t >= step ? sums[t - step] : 0;
        BARRIER();
        sums[t] += before;
        BARRIER();
    }
    uint rank = sums[t] - sum;
    for (int k = 0; k < DIGITS; k++) {
        const uint own = ranks[t * DIGITS + k];
        ranks[t * DIGITS + k] = rank;
        rank += own;
    }
    BARRIER();
    if (t < DIGITS) starts[t] = (t + part == 0 ? 0 : counts[t * parts + part - 1]) - ranks[t * GROUP_SIZE];
    BARRIER();
    for (int i = first; i < last; i++) {
        const uint key = keys[i];
        const int d = DIGIT(key);
        const uint place = starts[d] + ranks[d * GROUP_SIZE + t]++;
        keys_out[place] = key;
        if (PAIRS) order_out[place] = order[i];
    }
#endif
}
#endif

// Scatters. OPERATION: 0 adds, 1 multiplies, 2 takes the maximum, 3 the minimum; START: of a key without values. NaN is
// never greater or less, and -0 counts as 0. KEYED: floats as the integers of sort_keys.h, which have atomic maxima.
#ifdef SCATTER
#define LOWEST_int (-2147483647 - 1)
#define HIGHEST_int 2147483647
#define LOWEST_uint 0u
#define HIGHEST_uint 0xffffffffu
#define HIGHEST_float as_float(0x7f800000u)
#define LOWEST_float (-HIGHEST_float)
#define HIGHEST_double ((double)HIGHEST_float)
#define LOWEST_double (-HIGHEST_double)
#define LOWEST_key 0x007fffffu  // of infinities
#define HIGHEST_key 0xff800000u
#if KEYED
#define ITEM uint
DEVICE uint item_of(float x) { return x != x ? START : key_of(as_uint(x)); }
#define VALUE(i) item_of(values[i])
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
// A work-item of a CPU adds all elements of its own bins, or its own elements to bins of its own.
KERNEL scatter(int count, int bins, int low, int parts, int by_bins, GLOBAL const int *RESTRICT keys,
               GLOBAL const SUM *RESTRICT values, GLOBAL SUM *RESTRICT out) {
    const int part = (int)thread_index();
    if (part >= parts) return;
    const int own_bins = by_bins ? (bins + parts - 1) / parts : bins,
              own_keys = by_bins ? count : (count - 1) / parts + 1;
    const int bin = by_bins ? part * own_bins : 0, size = min(own_bins, bins - bin);
    const int begin = by_bins ? 0 : part * own_keys, end = min(begin + own_keys, count);
    GLOBAL SUM *sums = out + (by_bins ? (ulong)bin : (ulong)part * (ulong)bins);
    for (int i = 0; i < size; i++) sums[i] = START;
    if (size <= 0) return;
    for (int i = begin; i < end; i++) {
        const uint place = (uint)keys[i] - (uint)low - (uint)bin;
        if (place < (uint)size) {
            const SUM x = VALUE(i);
            sums[place] = COMBINE(sums[place], x);
        }
    }
}
KERNEL add_parts(int bins, int parts, GLOBAL const SUM *RESTRICT in, GLOBAL SUM *RESTRICT out) {
    const int bin = (int)thread_index();
    if (bin >= bins) return;
    SUM sum = START;
    for (int part = 0; part < parts; part++) {
        const SUM x = in[(ulong)part * (ulong)bins + (ulong)bin];
        sum = COMBINE(sum, x);
    }
    out[bin] = sum;
}
KERNEL clear(int bins, GLOBAL ITEM *RESTRICT out) {
    if ((int)thread_index() < bins) out[thread_index()] = START;
}
#if KEYED
KERNEL decode(int bins, GLOBAL uint *RESTRICT out) {
    if ((int)thread_index() < bins) out[thread_index()] = bits_of(out[thread_index()]);
}
#endif
// The place of each key: bins for those that are none.
KERNEL make_places(int count, int bins, int low, GLOBAL const int *RESTRICT keys, GLOBAL uint *RESTRICT places,
                   GLOBAL uint *RESTRICT order) {
    const int i = (int)thread_index();
    if (i >= count) return;
    places[i] = min((uint)keys[i] - (uint)low, (uint)bins);
    order[i] = (uint)i;
}
// The sums of elements that are sorted by their bins, which end at `ends`; a thread a bin.
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
// As add_sorted, of values that were moved beside one another; a warp a bin.
KERNEL add_runs(int bins, GLOBAL const uint *RESTRICT ends, GLOBAL const float *RESTRICT values,
                GLOBAL float *RESTRICT out) {
    const uint bin = thread_index() / 32, lane = lane_index();
    if (bin >= (uint)bins) return;
    const uint end = ends[bin];
    uint i = bin == 0 ? 0 : ends[bin - 1];
    float sum = 0.0f, next = i + lane < end ? values[i + lane] : 0.0f;
    for (; i < end; i += 32) {
        const float own = next;
        next = i + 32 + lane < end ? values[i + 32 + lane] : 0.0f;
        if (end - i >= 32) {
            UNROLL for (uint k = 0; k < 32; k++) sum += as_float(warp_shuffle(as_uint(own), k));
        } else {
            for (uint k = 0; k < end - i; k++) sum += as_float(warp_shuffle(as_uint(own), k));
        }
    }
    if (lane == 0) out[bin] = sum;
}
#endif

#if ATOMICS
#if OPERATION == 2
#define ADD_LOCAL(p, x) atomic_max((LOCAL ITEM *)(p), x)
#define ADD_GLOBAL(p, x) atomic_max((GLOBAL ITEM *)(p), x)
#elif OPERATION == 3
#define ADD_LOCAL(p, x) atomic_min((LOCAL ITEM *)(p), x)
#define ADD_GLOBAL(p, x) atomic_min((GLOBAL ITEM *)(p), x)
#elif IS_FLOAT
// Takes the sum out, adds and puts it back, until no other thread has put in some of it meanwhile.
DEVICE void add_local(LOCAL uint *sum, float x) {
    while (x != 0.0f) {
        const float whole = as_float(atomic_xchg(sum, 0u)) + x;
        x = as_float(atomic_xchg(sum, as_uint(whole)));
    }
}
#define ADD_LOCAL(p, x) add_local(p, x)
#define ADD_GLOBAL(p, x) atomic_add_float(p, x)
#else
#define ADD_LOCAL(p, x) atomic_add(p, x)
#define ADD_GLOBAL(p, x) atomic_add(p, x)
#endif
// Adds a warp's values first if they have one key: atomic operations on one word take turns. True if it did.
DEVICE bool add_whole_warp(uint place, ITEM *x) {
#if HAS_BALLOT && IS_FLOAT && OPERATION == 0
    if (!warp_all(place == warp_shuffle(place, 0))) return false;
    for (uint step = 16; step > 0; step /= 2) *x += as_float(warp_shuffle(as_uint(*x), lane_index() ^ step));
    return true;
#else
    return false;
#endif
}
#define UNROLLED 4
KERNEL scatter_atomic(int count, int bins, int low, GLOBAL const int *RESTRICT keys, GLOBAL const SUM *RESTRICT values,
                      GLOBAL ITEM *RESTRICT out) {
    LOCAL_ARRAY(uint, own, LOCAL_BINS);
    const bool is_local = bins <= LOCAL_BINS;
    for (int i = (int)local_index(); is_local && i < bins; i += GROUP_SIZE) own[i] = (uint)START;
    BARRIER();
    const int step = GROUP_SIZE * UNROLLED, blocks = (count - 1) / step + 1;
    for (int block = (int)group_index(); block < blocks; block += (int)group_count()) {
        const int first = block * step + (int)local_index(), valid = count - block * step - (int)local_index();
        uint place[UNROLLED];
        ITEM value[UNROLLED];
        UNROLL for (int k = 0; k < UNROLLED; k++) {
            const bool is_valid = k * GROUP_SIZE < valid;
            place[k] = is_valid ? (uint)keys[first + k * GROUP_SIZE] - (uint)low : 0xffffffffu;
            value[k] = is_valid ? VALUE(first + k * GROUP_SIZE) : (ITEM)START;
        }
        UNROLL for (int k = 0; k < UNROLLED; k++) {
            const bool is_added = add_whole_warp(place[k], &value[k]);
            if (place[k] < (uint)bins && !(is_added && lane_index() != 0)) {
                if (is_local)
                    ADD_LOCAL(&own[place[k]], value[k]);
                else
                    ADD_GLOBAL(&out[place[k]], value[k]);
            }
        }
    }
    BARRIER();
#if OPERATION == 0 && IS_FLOAT
    for (int i = (int)local_index(); is_local && i < bins; i += GROUP_SIZE)
        if (own[i] != 0) atomic_add_float(&out[i], as_float(own[i]));
#else
    for (int i = (int)local_index(); is_local && i < bins; i += GROUP_SIZE)
        if (own[i] != (uint)START) ADD_GLOBAL(&out[i], (ITEM)own[i]);
#endif
}
#endif
#endif
