// Stable LSD radix sort of 32-bit elements, launched by renderer/gpu/radix_sort.py for C$ arrays and for the Morton
// codes of bvh/build_hploc.cu. In: `count` elements, and with PAYLOAD a 32-bit value for each. Out: both in the order
// of the elements. Each pass sorts by one digit of DIGIT_BITS bits of the key (common/sort_keys.h), the lowest digit
// first. A tile is the block of consecutive keys that one group sorts. The host chooses one of two algorithms:
// - ONESWEEP (GPUs with ballots): count_digits counts the digits of all passes in one launch, and scan_digits sums the
//   counts; then each sort_pass reads and writes every key once. A group sorts its tile by the digit and gets the
//   counts of the earlier tiles by decoupled look-back. Fewer than 2^30 keys, because a look-back word holds a 30-bit
//   count. A. Adinets and D. Merrill, Onesweep, 2022; D. Merrill and M. Garland, Single-pass parallel prefix scan,
//   2016.
// - Otherwise three kernels a pass: count_tile_digits counts the digits of every tile, scan_tile_counts sums the
//   counts, and move_tile moves the keys. On CPUs (SCALAR) a tile is one thread's share of the keys; on GPUs without
//   ballots it has GROUP_SIZE * ITEMS keys. N. Satish et al. 2009.
// The host defines ONESWEEP and SCALAR (0 or 1); DIGIT_BITS, 8, or 4 on GPUs without ballots; PAYLOAD, 1 if a value
// moves with each key, else 0; KEEPS_KEYS, 1 if the last pass writes the sorted elements as well as the values, else 0;
// ITEMS, the number of keys per thread: 24 with ONESWEEP, else 16; and the macros of common/sort_keys.h.
#include "common/scan.h"
#include "common/sort_keys.h"

#define DIGITS (1 << DIGIT_BITS)
#define DIGIT(key) ((int)((key) >> shift) & (DIGITS - 1))  // `shift`: of the kernel, the lowest bit of the digit
#define WRITES_KEYS (!(PAYLOAD && last) || KEEPS_KEYS)  // after the last pass keys may be of no use

// Arguments of a pass, each 0 or 1. first: the first pass converts the input elements to keys. last: the last pass
// converts the keys back. numbered: the values are the elements' indices, and the first pass makes them.
DEVICE uint load_key(GLOBAL const uint *keys, int i, int first) { return first ? key_from_bits(keys[i]) : keys[i]; }
DEVICE uint stored_key(uint key, int last) { return last ? bits_from_key(key) : key; }

#if ONESWEEP
#define WARPS (GROUP_SIZE / 32)  // DIGIT_BITS is 8, DIGITS == GROUP_SIZE: thread d accounts for digit d
#define TILE (GROUP_SIZE * ITEMS)
#define MAX_PASSES 4

// Layout of `counters`: for each pass, the output index of the first key of each digit; from TICKETS on, for each pass,
// the number of tiles that groups have taken.
#define TICKETS (MAX_PASSES * DIGITS)
// `status` has one word for each tile and digit: 0 (not yet known), TILE_COUNT | the number of such keys in the tile,
// or TOTAL_COUNT | their number in this tile and all earlier ones.
#define COUNT_MASK 0x3fffffffu
#define TILE_COUNT 0x40000000u
#define TOTAL_COUNT 0x80000000u

KERNEL zero_words(int count, GLOBAL uint *RESTRICT words) {
    for (int i = (int)thread_index(); i < count; i += (int)(group_count() * GROUP_SIZE)) words[i] = 0;
}

// Adds to `counters` the number of keys of each digit in each of the `passes` passes.
KERNEL count_digits(int count, int passes, GLOBAL const uint *RESTRICT elements, GLOBAL uint *counters) {
    LOCAL_ARRAY(uint, counts, MAX_PASSES * DIGITS);
    const int t = (int)local_index(), tiles = (count - 1) / TILE + 1;
    for (int i = t; i < MAX_PASSES * DIGITS; i += GROUP_SIZE) counts[i] = 0;
    BARRIER();
    for (int tile = (int)group_index(); tile < tiles; tile += (int)group_count()) {
        const int begin = tile * TILE + t, valid = count - tile * TILE - t;
        uint keys[ITEMS];
        UNROLL for (int k = 0; k < ITEMS; k++) keys[k] = k * GROUP_SIZE < valid ? elements[begin + k * GROUP_SIZE] : 0;
        UNROLL for (int k = 0; k < ITEMS; k++) {
            const uint key = key_from_bits(keys[k]);
            if (k * GROUP_SIZE < valid)  // a digit has 8 bits here
                for (int pass = 0; pass < passes; pass++)
                    atomic_add(&counts[pass * DIGITS + (int)(key >> (8 * pass) & (DIGITS - 1u))], 1u);
        }
    }
    BARRIER();
    for (int i = t; i < passes * DIGITS; i += GROUP_SIZE)
        if (counts[i] != 0) atomic_add(&counters[i], counts[i]);
}

// One group per pass: replaces the digits' counts by their exclusive prefix sums, the output index of each digit's
// first key.
KERNEL scan_digits(GLOBAL uint *counters) {
    LOCAL_ARRAY(uint, sums, SCAN_WORDS);
    GLOBAL uint *counter = counters + group_index() * DIGITS + local_index();
    uint total;
    *counter = exclusive_scan_group(sums, *counter, &total);
}

// Mask of the lanes of the warp whose digit equals this lane's (match.any). The whole warp must call.
DEVICE uint match_digit(uint digit) {
    uint mask = 0xffffffffu;
    UNROLL for (int bit = 0; bit < DIGIT_BITS; bit++) {
        const bool is_set = (digit >> bit & 1u) != 0;
        const uint set = ballot(is_set);
        mask &= is_set ? set : ~set;
    }
    return mask;
}

// Returns the number of keys of this thread's digit in all tiles before `tile`. Publishes this number plus `tile_keys`,
// the number of such keys in `tile`, for later tiles.
DEVICE uint look_back(GLOBAL volatile uint *status, int tile, uint tile_keys) {
    const int digit = (int)local_index();
    uint before = 0;
    for (int k = tile - 1; k >= 0; k--) {
        uint word = status[k * DIGITS + digit];
        while (word == 0) {
            GLOBAL_FENCE();
            word = status[k * DIGITS + digit];
        }
        before += word & COUNT_MASK;
        if (word >= TOTAL_COUNT) break;
    }
    if (tile > 0) status[tile * DIGITS + digit] = TOTAL_COUNT | (before + tile_keys);
    return before;
}

// One pass: sorts each tile by digit `pass` in local memory and writes it, coalesced, to its sorted positions.
KERNEL sort_pass(int count, int pass, int first, int numbered, int last, GLOBAL const uint *RESTRICT keys,
                 GLOBAL const uint *RESTRICT values, GLOBAL uint *RESTRICT keys_out, GLOBAL uint *RESTRICT values_out,
                 GLOBAL uint *counters, GLOBAL volatile uint *status) {
    LOCAL_ARRAY(uint, counts, WARPS * DIGITS);
    LOCAL_ARRAY(uint, staged, TILE);
    LOCAL_ARRAY(uint, offsets, DIGITS);  // of a digit: output index minus index in the sorted tile
    LOCAL_ARRAY(uint, sums, SCAN_WORDS);
    LOCAL_ARRAY(int, ticket, 1);
    const int t = (int)local_index(), lane = (int)lane_index(), warp = t / 32, shift = DIGIT_BITS * pass;
    // Groups start in any order. Taking tiles by ticket ensures that the groups of all earlier tiles already run, so
    // look_back ends.
    if (t == 0) ticket[0] = (int)atomic_add(&counters[TICKETS + pass], 1u);
    for (int i = t; i < WARPS * DIGITS; i += GROUP_SIZE) counts[i] = 0;
    BARRIER();
    const int tile = ticket[0], begin = tile * TILE, valid = min(TILE, count - begin);
    const int item = warp * 32 * ITEMS + lane;  // the thread's keys: item, item + 32, ...
    uint key[ITEMS], rank[ITEMS];
    UNROLL for (int k = 0; k < ITEMS; k++) key[k] = item + 32 * k < valid ? keys[begin + item + 32 * k] : 0;
    UNROLL for (int k = 0; k < ITEMS; k++) {
        if (first) key[k] = key_from_bits(key[k]);
        if (item + 32 * k >= valid) key[k] = 0xffffffffu;  // padding of the last tile; sorts last
    }
    UNROLL for (int k = 0; k < ITEMS; k++) {  // rank among the warp's keys of the same digit
        const uint digit = (uint)DIGIT(key[k]), mask = match_digit(digit), lower = popcount(mask & ((1u << lane) - 1u));
        LOCAL uint *warp_count = &counts[warp * DIGITS + (int)digit];
        const uint before = *warp_count;
        WARP_BARRIER();
        if (lower == 0) *warp_count = before + popcount(mask);
        WARP_BARRIER();
        rank[k] = before + lower;
    }
    BARRIER();
    // Thread t sums digit t over the warps: counts become the digit's keys in the warps before, tile_keys in the tile.
    uint tile_keys = 0, all;
    UNROLL for (int w = 0; w < WARPS; w++) {
        const uint warp_keys = counts[w * DIGITS + t];
        counts[w * DIGITS + t] = tile_keys;
        tile_keys += warp_keys;
    }
    status[tile * DIGITS + t] = tile_keys | (tile == 0 ? TOTAL_COUNT : TILE_COUNT);
    const uint smaller = exclusive_scan_group(sums, tile_keys, &all);  // keys of the tile with smaller digits
    UNROLL for (int w = 0; w < WARPS; w++) counts[w * DIGITS + t] += smaller;
    offsets[t] = counters[pass * DIGITS + t] + look_back(status, tile, tile_keys) - smaller;
    BARRIER();
    UNROLL for (int k = 0; k < ITEMS; k++) {
        rank[k] += counts[warp * DIGITS + DIGIT(key[k])];  // now the index in the sorted tile
        staged[rank[k]] = key[k];
    }
    BARRIER();
    uint output_index[ITEMS];
    UNROLL for (int k = 0; k < ITEMS; k++) {
        const int i = k * GROUP_SIZE + t;
        const uint sorted = staged[i];
        output_index[k] = offsets[DIGIT(sorted)] + (uint)i;
        if (i < valid && WRITES_KEYS) keys_out[output_index[k]] = stored_key(sorted, last);
    }
#if PAYLOAD
    BARRIER();
    UNROLL for (int k = 0; k < ITEMS; k++) {
        const int i = begin + item + 32 * k;
        staged[rank[k]] = first && numbered ? (uint)i : item + 32 * k < valid ? values[i] : 0;
    }
    BARRIER();
    UNROLL for (int k = 0; k < ITEMS; k++) if (k * GROUP_SIZE + t < valid) values_out[output_index[k]] =
        staged[k * GROUP_SIZE + t];
#endif
}
#else

// counts[digit][tile] becomes the number of keys of each digit in each tile of `tile_size` keys.
KERNEL count_tile_digits(int count, int tiles, int tile_size, int shift, int first, GLOBAL const uint *RESTRICT keys,
                         GLOBAL uint *RESTRICT counts) {
    const int tile = (int)group_index(), begin = tile * tile_size, end = min(begin + tile_size, count);
#if SCALAR
    uint tile_counts[DIGITS];
    for (int d = 0; d < DIGITS; d++) tile_counts[d] = 0;
    for (int i = begin; i < end; i++) tile_counts[DIGIT(load_key(keys, i, first))]++;
    for (int d = 0; d < DIGITS; d++) counts[d * tiles + tile] = tile_counts[d];
#else
    LOCAL_ARRAY(uint, tile_counts, DIGITS * (GROUP_SIZE + 1));  // [digit][thread], + 1: no bank conflicts of digits
    const int t = (int)local_index();
    for (int d = 0; d < DIGITS; d++) tile_counts[d * (GROUP_SIZE + 1) + t] = 0;
    for (int i = begin + t; i < end; i += GROUP_SIZE)
        tile_counts[DIGIT(load_key(keys, i, first)) * (GROUP_SIZE + 1) + t]++;
    BARRIER();
    if (t < DIGITS) {
        uint sum = 0;
        for (int k = 0; k < GROUP_SIZE; k++) sum += tile_counts[t * (GROUP_SIZE + 1) + k];
        counts[t * tiles + tile] = sum;
    }
#endif
}

// One group per digit: replaces the digit's counts by their exclusive prefix sums over the tiles; totals[digit] becomes
// the sum.
KERNEL scan_tile_counts(int tiles, GLOBAL uint *counts, GLOBAL uint *RESTRICT totals) {
    LOCAL_ARRAY(uint, sums, SCAN_WORDS);
    const uint total = exclusive_scan_row(counts + group_index() * (uint)tiles, (uint)tiles, sums);
    if (local_index() == 0) totals[group_index()] = total;
}

// One group per tile: moves its keys and values to their positions in the order of this pass's digit.
KERNEL move_tile(int count, int tiles, int tile_size, int shift, int first, int numbered, int last,
                 GLOBAL const uint *RESTRICT counts, GLOBAL const uint *RESTRICT totals,
                 GLOBAL const uint *RESTRICT keys, GLOBAL const uint *RESTRICT values, GLOBAL uint *RESTRICT keys_out,
                 GLOBAL uint *RESTRICT values_out) {
    const int tile = (int)group_index(), begin = tile * tile_size, end = min(begin + tile_size, count);
#if SCALAR
    uint next[DIGITS], smaller = 0;  // next[d]: output index of the tile's next key of digit d
    for (int d = 0; d < DIGITS; d++) {
        next[d] = smaller + counts[d * tiles + tile];
        smaller += totals[d];
    }
    for (int i = begin; i < end; i++) {
        const uint key = load_key(keys, i, first), to = next[DIGIT(key)]++;
        if (WRITES_KEYS) keys_out[to] = stored_key(key, last);
        if (PAYLOAD) values_out[to] = first && numbered ? (uint)i : values[i];
    }
#else
    LOCAL_ARRAY(uint, ranks, DIGITS * GROUP_SIZE);  // [digit][thread]; a thread's ITEMS keys are consecutive
    LOCAL_ARRAY(uint, sums, SCAN_WORDS);
    LOCAL_ARRAY(uint, offsets, DIGITS);  // of a digit: output index minus rank in the tile
    const int t = (int)local_index(), items_begin = begin + t * ITEMS, items_end = min(items_begin + ITEMS, end);
    for (int d = 0; d < DIGITS; d++) ranks[d * GROUP_SIZE + t] = 0;
    for (int i = items_begin; i < items_end; i++) ranks[DIGIT(load_key(keys, i, first)) * GROUP_SIZE + t]++;
    BARRIER();
    // Ranks become their exclusive prefix sums in the order of memory, by digit and then by thread: thread t sums
    // DIGITS consecutive ones.
    uint sum = 0, all;
    for (int k = 0; k < DIGITS; k++) sum += ranks[t * DIGITS + k];
    uint rank = exclusive_scan_group(sums, sum, &all);
    for (int k = 0; k < DIGITS; k++) {
        const uint keys_of_thread = ranks[t * DIGITS + k];
        ranks[t * DIGITS + k] = rank;
        rank += keys_of_thread;
    }
    BARRIER();
    const uint smaller = exclusive_scan_group(sums, t < DIGITS ? totals[t] : 0u, &all);
    // ranks[t * GROUP_SIZE]: the rank in the tile of the first key of digit t
    if (t < DIGITS) offsets[t] = smaller + counts[t * tiles + tile] - ranks[t * GROUP_SIZE];
    BARRIER();
    for (int i = items_begin; i < items_end; i++) {
        const uint key = load_key(keys, i, first);
        const int digit = DIGIT(key);
        const uint to = offsets[digit] + ranks[digit * GROUP_SIZE + t]++;
        if (WRITES_KEYS) keys_out[to] = stored_key(key, last);
        if (PAYLOAD) values_out[to] = first && numbered ? (uint)i : values[i];
    }
#endif
}
#endif
