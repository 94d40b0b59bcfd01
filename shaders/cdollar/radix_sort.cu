// Radix sort of 32-bit keys, alone or with 32-bit values, on GPUs with ballots: 8 bits a pass, each pass reads and
// writes every key once (renderer/cdollar/targets/radix_sort.py). One kernel counts the digits of all passes. In a pass
// a group sorts a tile by a digit; where its keys go it learns from the groups before it, by decoupled look-back.
// Adinets and Merrill, Onesweep, 2022; Merrill and Garland, Single-pass parallel prefix scan, 2016. PAYLOAD: whether
// values are moved with the keys; ITEMS: keys of a thread. Less than 2^30 keys: words of the look-back hold 30 bits.
#include "cdollar/sort_keys.h"

#define DIGITS 256  // and GROUP_SIZE: thread d accounts for digit d
#define WARPS (GROUP_SIZE / 32)
#define TILE (GROUP_SIZE * ITEMS)
#define MAX_PASSES 4
#define DIGIT(key) ((key) >> shift & (DIGITS - 1u))

// The words of `counters`: where the keys of each digit begin, by passes, then the tiles that were taken in each pass.
#define TICKETS (MAX_PASSES * DIGITS)
// The words of `status`, of each tile and digit: nothing (0), the count of the tile or that of all tiles up to it.
#define COUNT_MASK 0x3fffffffu
#define TILE_COUNT 0x40000000u
#define TOTAL_COUNT 0x80000000u

KERNEL zero_words(int count, GLOBAL uint *RESTRICT words) {
    for (int i = (int)thread_index(); i < count; i += (int)(group_count() * GROUP_SIZE)) words[i] = 0;
}

KERNEL count_digits(int count, int passes, GLOBAL const uint *RESTRICT elements, GLOBAL uint *counters) {
    LOCAL_ARRAY(uint, counts, MAX_PASSES * DIGITS);
    const int t = (int)local_index(), tiles = (count - 1) / TILE + 1;
    for (int i = t; i < MAX_PASSES * DIGITS; i += GROUP_SIZE) counts[i] = 0;
    BARRIER();
    for (int tile = (int)group_index(); tile < tiles; tile += (int)group_count()) {
        const int first = tile * TILE + t, valid = count - tile * TILE - t;
        uint keys[ITEMS];
        UNROLL for (int k = 0; k < ITEMS; k++) keys[k] = k * GROUP_SIZE < valid ? elements[first + k * GROUP_SIZE] : 0;
        UNROLL for (int k = 0; k < ITEMS; k++) {
            const uint key = key_of(keys[k]);
            if (k * GROUP_SIZE < valid)
                for (int pass = 0; pass < passes; pass++)
                    atomic_add(&counts[pass * DIGITS + (int)(key >> (8 * pass) & (DIGITS - 1u))], 1u);
        }
    }
    BARRIER();
    for (int i = t; i < passes * DIGITS; i += GROUP_SIZE)
        if (counts[i] != 0) atomic_add(&counters[i], counts[i]);
}

#if HAS_BALLOT
// Exclusive prefix sums over the threads of a group.
DEVICE uint exclusive_scan_group(LOCAL uint *sums, uint own) {
    const uint lane = lane_index(), warp = local_index() / 32;
    uint sum = own;
    for (uint step = 1; step < 32; step *= 2) {
        const uint before = warp_shuffle(sum, (lane - step) & 31u);
        if (lane >= step) sum += before;
    }
    if (lane == 31) sums[warp] = sum;
    BARRIER();
    sum -= own;
    for (uint k = 0; k < warp; k++) sum += sums[k];
    return sum;
}

// A group for each pass: counts become the places where the digits begin.
KERNEL begin_digits(GLOBAL uint *counters) {
    LOCAL_ARRAY(uint, sums, WARPS);
    GLOBAL uint *own = counters + group_index() * DIGITS + local_index();
    own[0] = exclusive_scan_group(sums, own[0]);
}

// The lanes of the warp that have the same digit.
DEVICE uint match_digit(uint digit) {
    uint mask = 0xffffffffu;
    UNROLL for (int bit = 0; bit < 8; bit++) {
        const bool is_set = (digit >> bit & 1u) != 0;
        const uint set = ballot(is_set);
        mask &= is_set ? set : ~set;
    }
    return mask;
}

// The keys of this digit in all tiles before this one; those up to this one are published for later tiles.
DEVICE uint look_back(GLOBAL volatile uint *status, int tile, uint own) {
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
    if (tile > 0) status[tile * DIGITS + digit] = TOTAL_COUNT | (before + own);
    return before;
}

// One pass. `first`: keys are elements, and values, if `numbered`, the indices; `last`: elements or values are written.
KERNEL sort_pass(int count, int pass, int first, int numbered, int last, GLOBAL const uint *RESTRICT keys,
                 GLOBAL const uint *RESTRICT values, GLOBAL uint *RESTRICT keys_out, GLOBAL uint *RESTRICT values_out,
                 GLOBAL uint *counters, GLOBAL volatile uint *status) {
    LOCAL_ARRAY(uint, counts, WARPS * DIGITS);
    LOCAL_ARRAY(uint, staged, TILE);
    LOCAL_ARRAY(uint, places, DIGITS);
    LOCAL_ARRAY(uint, sums, WARPS);
    LOCAL_ARRAY(int, ticket, 1);
    const int t = (int)local_index(), lane = (int)lane_index(), warp = t / 32, shift = 8 * pass;
    // Groups start in any order: a group takes the next tile, so that those before it are under way.
    if (t == 0) ticket[0] = (int)atomic_add(&counters[TICKETS + pass], 1u);
    for (int i = t; i < WARPS * DIGITS; i += GROUP_SIZE) counts[i] = 0;
    BARRIER();
    const int tile = ticket[0], begin = tile * TILE, valid = min(TILE, count - begin);
    const int own = warp * 32 * ITEMS + lane;
    uint key[ITEMS], rank[ITEMS];
    UNROLL for (int k = 0; k < ITEMS; k++) key[k] = own + 32 * k < valid ? keys[begin + own + 32 * k] : 0;
    UNROLL for (int k = 0; k < ITEMS; k++) {
        if (first) key[k] = key_of(key[k]);
        if (own + 32 * k >= valid) key[k] = 0xffffffffu;  // behind the last keys of the last tile
    }
    UNROLL for (int k = 0; k < ITEMS; k++) {  // ranks among the equal digits of the warp
        const uint digit = DIGIT(key[k]), mask = match_digit(digit), lower = popcount(mask & ((1u << lane) - 1u));
        LOCAL uint *at = &counts[warp * DIGITS + (int)digit];
        const uint before = *at;
        WARP_BARRIER();
        if (lower == 0) *at = before + popcount(mask);
        WARP_BARRIER();
        rank[k] = before + lower;
    }
    BARRIER();
    uint total = 0;
    UNROLL for (int w = 0; w < WARPS; w++) {
        const uint warp_count = counts[w * DIGITS + t];
        counts[w * DIGITS + t] = total;
        total += warp_count;
    }
    status[tile * DIGITS + t] = total | (tile == 0 ? TOTAL_COUNT : TILE_COUNT);
    const uint begins = exclusive_scan_group(sums, total);
    UNROLL for (int w = 0; w < WARPS; w++) counts[w * DIGITS + t] += begins;
    places[t] = counters[pass * DIGITS + t] + look_back(status, tile, total) - begins;
    BARRIER();
    UNROLL for (int k = 0; k < ITEMS; k++) {
        rank[k] += counts[warp * DIGITS + (int)DIGIT(key[k])];
        staged[rank[k]] = key[k];
    }
    BARRIER();
    uint to[ITEMS];
    UNROLL for (int k = 0; k < ITEMS; k++) {
        const int i = k * GROUP_SIZE + t;
        const uint moved = staged[i];
        to[k] = places[DIGIT(moved)] + (uint)i;
        if (i < valid && !(PAYLOAD && last)) keys_out[to[k]] = last ? bits_of(moved) : moved;
    }
#if PAYLOAD
    BARRIER();
    UNROLL for (int k = 0; k < ITEMS; k++) {
        const int i = begin + own + 32 * k;
        staged[rank[k]] = first && numbered ? (uint)i : own + 32 * k < valid ? values[i] : 0;
    }
    BARRIER();
    UNROLL for (int k = 0; k < ITEMS; k++) if (k * GROUP_SIZE + t < valid) values_out[to[k]] =
        staged[k * GROUP_SIZE + t];
#endif
}
#endif
