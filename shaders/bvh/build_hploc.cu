// H-PLOC on the device (C. Benthin et al. 2024): Morton codes, a radix sort, then merges of nearest neighbors along the
// curve, from the leaves up through the radix tree of the codes (C. Apetrei 2014). Nodes hold min and max corners, as
// host_sah.NODE says, until bvh/center_nodes.cu makes them those of bvh/traverse_bvh2.h. Without warps one thread does
// a warp's merges; the BVH is the same.
#include "bvh/aabb.h"
#include "common/scan.h"

#define MERGE_THRESHOLD 16u  // clusters that a range may keep for the next merge
#define SEARCH_RADIUS 8u  // neighbors on each side
#define DIGITS 256u  // as many as a group has threads
#define SORT_TILE (GROUP_SIZE * 16u)  // keys that one group sorts

// bounds: min and max coordinates of the boxes' centroids, by ordered_from_float; minima start at all ones, maxima at
// 0.
KERNEL find_bounds(GLOBAL const float4 *primitives, int count, GLOBAL uint *bounds) {
    LOCAL_ARRAY(uint, shared, 6);
    empty_bounds(shared);
    uint low[3] = {INVALID_INDEX, INVALID_INDEX, INVALID_INDEX}, high[3] = {0, 0, 0};
    for (uint i = thread_index(); i < (uint)count; i += group_count() * GROUP_SIZE) {
        float3 p = centroid(box_of(primitive_at(primitives, i)));
        uint center[3] = {ordered_from_float(p.x), ordered_from_float(p.y), ordered_from_float(p.z)};
        UNROLL for (int axis = 0; axis < 3; axis++) {
            low[axis] = min(low[axis], center[axis]);
            high[axis] = max(high[axis], center[axis]);
        }
    }
    UNROLL for (int axis = 0; axis < 3; axis++) {
        atomic_min(&shared[axis], low[axis]);
        atomic_max(&shared[axis + 3], high[axis]);
    }
    BARRIER();
    merge_bounds(bounds, shared);
}

// Ten bits with two zeros after each.
DEVICE uint spread_bits(uint x) {
    x = (x * 0x00010001u) & 0xff0000ffu;
    x = (x * 0x00000101u) & 0x0f00f00fu;
    x = (x * 0x00000011u) & 0xc30c30c3u;
    return (x * 0x00000005u) & 0x49249249u;
}

DEVICE uint grid_cell(float x, float low, float extent) {
    return (uint)clamp((x - low) * (extent > 0.0f ? 1024.0f / extent : 0.0f), 0.0f, 1023.0f);
}

KERNEL morton_codes(GLOBAL const float4 *primitives, int count, GLOBAL const uint *bounds, GLOBAL uint *keys,
                    GLOBAL uint *rows) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    float3 low = float3_from_ordered(bounds), extent = float3_from_ordered(bounds + 3) - low;
    float3 p = centroid(box_of(primitive_at(primitives, i)));
    keys[i] = spread_bits(grid_cell(p.x, low.x, extent.x)) << 2 | spread_bits(grid_cell(p.y, low.y, extent.y)) << 1 |
              spread_bits(grid_cell(p.z, low.z, extent.z));
    rows[i] = i;
}

// ---- a stable radix sort by 8 bits: count the digits of each tile, scan, scatter. counts is [digit][tile].
KERNEL count_digits(GLOBAL const uint *keys, int count, int shift, GLOBAL uint *counts) {
    LOCAL_ARRAY(uint, seen, DIGITS);
    uint begin = group_index() * SORT_TILE;
    seen[local_index()] = 0;
    BARRIER();
    for (uint i = begin + local_index(); i < min(begin + SORT_TILE, (uint)count); i += GROUP_SIZE)
        atomic_add(&seen[(keys[i] >> shift) & (DIGITS - 1)], 1u);
    BARRIER();
    counts[local_index() * group_count() + group_index()] = seen[local_index()];
}

// One group a digit: its row of counts becomes their exclusive prefix sums over the tiles, and totals[digit] the sum.
KERNEL scan_tiles(GLOBAL uint *counts, int tiles, GLOBAL uint *totals) {
    LOCAL_ARRAY(uint, sums, GROUP_SIZE);
    uint all = exclusive_scan_row(counts + group_index() * (uint)tiles, (uint)tiles, sums);
    if (local_index() == 0) totals[group_index()] = all;
}

#if HAS_BALLOT
// The mask of the valid lanes with this lane's digit, as CUDA's match_any.
DEVICE uint match_digit(uint digit, bool valid) {
    uint alike = ballot(valid);
    UNROLL for (int bit = 0; bit < 8; bit++) {
        uint set = ballot((digit >> bit) & 1u);
        alike &= (digit >> bit) & 1u ? set : ~set;
    }
    return alike;
}
#endif

KERNEL scatter_digits(GLOBAL const uint *keys, GLOBAL const uint *rows, int count, int shift, GLOBAL const uint *counts,
                      GLOBAL const uint *totals, GLOBAL uint *keys_out, GLOBAL uint *rows_out) {
    LOCAL_ARRAY(uint, place, DIGITS);  // index of this tile's first key of a digit
    LOCAL_ARRAY(uint, by_warp, DIGITS * (GROUP_SIZE / 32));  // keys of a digit in earlier warps of the tile
    uint begin = group_index() * SORT_TILE, total = totals[local_index()];
    inclusive_scan_group(place, total);
    place[local_index()] += counts[local_index() * group_count() + group_index()] - total;
#if HAS_BALLOT
    uint warp = local_index() >> 5, ranks[16];
    for (uint i = local_index(); i < DIGITS * (GROUP_SIZE / 32); i += GROUP_SIZE) by_warp[i] = 0;
    BARRIER();
    uint first = begin + warp * 512u + lane_index();
    UNROLL for (int round = 0; round < 16; round++) {
        uint i = first + 32u * (uint)round;
        bool valid = i < (uint)count;
        uint digit = valid ? (keys[i] >> shift) & (DIGITS - 1) : 0u;
        uint alike = match_digit(digit, valid), lower = popcount(alike & ((1u << lane_index()) - 1u));
        uint before = valid ? by_warp[warp * DIGITS + digit] : 0u;
        ranks[round] = before + lower;
        WARP_BARRIER();
        if (valid && lower == 0) by_warp[warp * DIGITS + digit] = before + popcount(alike);
        WARP_BARRIER();
    }
    BARRIER();
    uint sum = 0;
    for (uint w = 0; w < GROUP_SIZE / 32; w++) {
        uint here = by_warp[w * DIGITS + local_index()];
        by_warp[w * DIGITS + local_index()] = sum;
        sum += here;
    }
    BARRIER();
    UNROLL for (int round = 0; round < 16; round++) {
        uint i = first + 32u * (uint)round;
        if (i >= (uint)count) continue;
        uint key = keys[i], digit = (key >> shift) & (DIGITS - 1);
        uint into = place[digit] + by_warp[warp * DIGITS + digit] + ranks[round];
        keys_out[into] = key;
        rows_out[into] = rows[i];
    }
#else
    BARRIER();
    if (local_index() == 0) {
        for (uint i = begin; i < min(begin + SORT_TILE, (uint)count); i++) {
            uint into = place[(keys[i] >> shift) & (DIGITS - 1)]++;
            keys_out[into] = keys[i];
            rows_out[into] = rows[i];
        }
    }
#endif
}

// The primitives in sorted order, their boxes, and the initial state of hploc_merge.
KERNEL start_clusters(GLOBAL const float4 *primitives, int count, GLOBAL const uint *rows, GLOBAL float4 *sorted,
                      GLOBAL float4 *boxes, GLOBAL uint *clusters, GLOBAL uint *visits) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Primitive p = primitive_at(primitives, rows[i]);
    sorted[3 * i] = p.v0;
    sorted[3 * i + 1] = p.edge1;
    sorted[3 * i + 2] = p.edge2;
    store_box(boxes, i, box_of(p));
    clusters[i] = i;
    visits[i] = INVALID_INDEX;
}

// A cluster is the index of a sorted primitive, or `count` plus the index of its inner node.
DEVICE Box cluster_box(GLOBAL const float4 *boxes, GLOBAL const float4 *nodes, uint count, uint cluster) {
    if (cluster < count) return stored_box(boxes, cluster);
    return box_of_node(nodes, cluster - count);
}

// The cost's leading bits, then the pair: equal for both partners, different between pairs, so that at least one pair
// is mutual. Among equal costs, pairs (2 k, 2 k + 1) come first, so that equal boxes do not become a chain.
DEVICE uint pair_key(float cost, uint lower, uint upper) {
    return (as_uint(cost) & ~1023u) | (lower ^ upper) << 5 | lower;
}
DEVICE uint lower_of(uint key) { return key & 31u; }
DEVICE uint upper_of(uint key) { return (key & 31u) ^ (key >> 5 & 31u); }

// Levels below a cluster. From HEIGHT_LIMIT on, pairs are merged by height instead of area: no BVH is deeper than
// HEIGHT_LIMIT plus the logarithm of the number of primitives, whatever their boxes, so that the traversal stack
// suffices.
#define HEIGHT_LIMIT 40u
DEVICE uint height_of(GLOBAL const float4 *nodes, uint count, uint cluster) {
    return cluster < count ? 0u : as_uint(nodes[4 * (cluster - count) + 3].z);
}

DEVICE void write_node(GLOBAL float4 *nodes, uint count, uint number, uint left, const Box a, uint right, const Box b,
                       uint height) {
    GLOBAL float4 *node = nodes + 4 * number;
    int first = left < count ? ~(int)(left * 8u) : (int)(left - count),
        second = right < count ? ~(int)(right * 8u) : (int)(right - count);
    node[0] = make_float4(a.low.x, a.high.x, a.low.y, a.high.y);
    node[1] = make_float4(b.low.x, b.high.x, b.low.y, b.high.y);
    node[2] = make_float4(a.low.z, a.high.z, b.low.z, b.high.z);
    node[3] = make_float4(as_float(first), as_float(second), as_float(height), 0.0f);
}

// Node indices are allocated from the last one down, so that the root, made last, is 0.
DEVICE uint take_nodes(GLOBAL uint *made, uint count, uint wanted) { return count - 2u - atomic_add(made, wanted); }

#if HAS_BALLOT
DEVICE float3 shuffle3(float3 v, uint lane) {
    return make_float3(as_float(warp_shuffle(as_uint(v.x), lane)), as_float(warp_shuffle(as_uint(v.y), lane)),
                       as_float(warp_shuffle(as_uint(v.z), lane)));
}

DEVICE Box box_from_lane(const Box box, uint lane) {
    Box other = {shuffle3(box.low, lane), shuffle3(box.high, lane)};
    return other;
}

// The index of the n-th set bit.
DEVICE uint set_bit(uint word, uint n) {
    uint at = 0;
    UNROLL for (uint width = 16; width > 0; width /= 2) {
        uint below = popcount((word >> at) & ((1u << width) - 1u));
        if (n >= below) {
            n -= below;
            at += width;
        }
    }
    return at;
}

#endif

// The warp, or the thread, merges the clusters of first..split and split + 1..last until `wanted` are left.
DEVICE void merge_range(GLOBAL volatile uint *clusters, GLOBAL const float4 *boxes, GLOBAL float4 *nodes,
                        GLOBAL uint *made, uint count, uint first, uint split, uint last, uint wanted) {
#if HAS_BALLOT
    uint lane = lane_index(), cluster = INVALID_INDEX;
    if (lane < MERGE_THRESHOLD && first + lane <= split) cluster = clusters[first + lane];
    uint lefts = popcount(ballot(cluster != INVALID_INDEX));
    uint from_right = lane - lefts;
    if (lane >= lefts && from_right < MERGE_THRESHOLD && split + 1 + from_right <= last)
        cluster = clusters[split + 1 + from_right];
    else if (lane >= lefts)
        cluster = INVALID_INDEX;
    uint total = popcount(ballot(cluster != INVALID_INDEX)),
         height = cluster != INVALID_INDEX ? height_of(nodes, count, cluster) : 0u;
    Box box = empty_box();
    if (cluster != INVALID_INDEX) box = cluster_box(boxes, nodes, count, cluster);
    while (total > wanted) {
        uint best = INVALID_INDEX;
        bool tall = ballot(height >= HEIGHT_LIMIT) != 0;
        UNROLL for (uint step = 1; step <= SEARCH_RADIUS; step++) {
            Box other = box_from_lane(box, (lane + step) & 31u);
            float cost = half_area(box_union(box, other));
            if (tall) cost = (float)max(height, warp_shuffle(height, (lane + step) & 31u));
            uint key = lane + step < total ? pair_key(cost, lane, lane + step) : INVALID_INDEX;
            uint key_below = warp_shuffle(key, (lane - step) & 31u);
            best = min(best, key);
            if (lane >= step) best = min(best, key_below);
        }
        uint lower = lower_of(best), upper = upper_of(best), partner = lane == lower ? upper : lower;
        uint best_there = warp_shuffle(best, partner);
        bool mutual = lane < total && best_there == best;
        bool merges = mutual && lane == lower;
        uint merging = ballot(merges), base = 0;
        Box other = box_from_lane(box, partner);
        uint other_cluster = warp_shuffle(cluster, partner), other_height = warp_shuffle(height, partner);
        if (lane == 0) base = take_nodes(made, count, popcount(merging));
        base = warp_shuffle(base, 0);
        if (merges) {
            uint number = base - popcount(merging & ((1u << lane) - 1u));
            height = 1u + max(height, other_height);
            write_node(nodes, count, number, cluster, box, other_cluster, other, height);
            cluster = count + number;
            box = box_union(box, other);
        }
        uint kept = ballot(lane < total && (merges || !mutual));
        uint source = set_bit(kept, lane) & 31u;
        total = popcount(kept);
        cluster = warp_shuffle(cluster, source);
        height = warp_shuffle(height, source);
        box = box_from_lane(box, source);
        if (lane >= total) {
            cluster = INVALID_INDEX;
            height = 0u;
        }
    }
    if (lane < MERGE_THRESHOLD && first + lane <= last) clusters[first + lane] = cluster;
#else
    uint held[2 * MERGE_THRESHOLD], height[2 * MERGE_THRESHOLD], best[2 * MERGE_THRESHOLD], total = 0;
    Box box[2 * MERGE_THRESHOLD];
    for (uint i = first; i <= split && i < first + MERGE_THRESHOLD && clusters[i] != INVALID_INDEX; i++)
        held[total++] = clusters[i];
    for (uint i = split + 1; i <= last && i < split + 1 + MERGE_THRESHOLD && clusters[i] != INVALID_INDEX; i++)
        held[total++] = clusters[i];
    for (uint i = 0; i < total; i++) {
        box[i] = cluster_box(boxes, nodes, count, held[i]);
        height[i] = height_of(nodes, count, held[i]);
    }
    while (total > wanted) {
        bool tall = false;
        for (uint i = 0; i < total; i++) {
            best[i] = INVALID_INDEX;
            tall = tall || height[i] >= HEIGHT_LIMIT;
        }
        for (uint i = 0; i < total; i++) {
            for (uint j = i + 1; j <= i + SEARCH_RADIUS && j < total; j++) {
                uint key =
                    pair_key(tall ? (float)max(height[i], height[j]) : half_area(box_union(box[i], box[j])), i, j);
                best[i] = min(best[i], key);
                best[j] = min(best[j], key);
            }
        }
        uint kept = 0, merging = 0, base;
        for (uint i = 0; i < total; i++) {
            if (lower_of(best[i]) == i && best[upper_of(best[i])] == best[i]) merging++;
        }
        base = take_nodes(made, count, merging);
        for (uint i = 0; i < total; i++) {
            uint lower = lower_of(best[i]), upper = upper_of(best[i]), partner = lower == i ? upper : lower;
            bool mutual = best[partner] == best[i];
            if (mutual && i == upper) continue;
            uint cluster = held[i], new_height = height[i];
            Box whole = box[i];
            if (mutual) {
                uint number = base--;
                new_height = 1u + max(height[i], height[upper]);
                write_node(nodes, count, number, held[i], box[i], held[upper], box[upper], new_height);
                cluster = count + number;
                whole = box_union(box[i], box[upper]);
            }
            held[kept] = cluster;
            height[kept] = new_height;
            box[kept] = whole;
            kept++;
        }
        total = kept;
    }
    for (uint i = 0; i < MERGE_THRESHOLD && first + i <= last; i++)
        clusters[first + i] = i < total ? held[i] : INVALID_INDEX;
#endif
    GLOBAL_FENCE();
}

// How far codes i and i + 1 differ (Apetrei 2014): their xor, then that of their indices for equal codes.
DEVICE ulong morton_delta(GLOBAL const uint *keys, uint i) {
    uint difference = keys[i] ^ keys[i + 1];
    return (ulong)difference << 32 | (i ^ (i + 1));
}

// One thread a primitive goes up the radix tree; the first of two children to visit a parent stops, the second
// continues with both.
KERNEL hploc_merge(GLOBAL const uint *keys, int primitive_count, GLOBAL uint *visits, GLOBAL volatile uint *clusters,
                   GLOBAL const float4 *boxes, GLOBAL float4 *nodes, GLOBAL uint *state) {
    GLOBAL uint *made = state + 6;  // behind the bounds
    uint count = (uint)primitive_count, first = thread_index(), last = thread_index(), split = 0;
    bool active = first < count;
    while (true) {
        bool merges = false;
        if (active) {
            bool to_right =
                first == 0 || (last != count - 1 && morton_delta(keys, last) < morton_delta(keys, first - 1));
            uint other = atomic_xchg(&visits[to_right ? last : first - 1], to_right ? first : last);
            if (other == INVALID_INDEX)
                active = false;
            else {
                GLOBAL_FENCE();
                split = to_right ? last : first - 1;
                if (to_right)
                    last = other;
                else
                    first = other;
                merges = last - first + 1 > MERGE_THRESHOLD || last - first + 1 == count;
            }
        }
        bool whole = last - first + 1 == count;
#if HAS_BALLOT
        uint serving = ballot(merges);
        while (serving) {
            uint lane = 31u - (uint)clz(serving);
            serving &= ~(1u << lane);
            uint whole_there = warp_shuffle(whole ? 1u : 0u, lane);
            merge_range(clusters, boxes, nodes, made, count, warp_shuffle(first, lane), warp_shuffle(split, lane),
                        warp_shuffle(last, lane), whole_there ? 1u : MERGE_THRESHOLD);
        }
        if (active && whole) active = false;
        if (ballot(active) == 0) break;
#else
        if (merges) merge_range(clusters, boxes, nodes, made, count, first, split, last, whole ? 1u : MERGE_THRESHOLD);
        if (whole) active = false;
        if (!active) break;
#endif
    }
}
