// BVH2 builder H-PLOC (C. Benthin et al. 2024), launched by renderer/bvh/hploc.py for scenes and for the TLAS of
// instances. In: `count` primitives (bvh/geometry.h). Out: count - 1 nodes, and the primitives in the order of the
// leaves. The kernels run in the order of this file: Morton codes of the boxes' centroids, sorted by
// common/radix_sort.cu, then merges of nearest neighbors along the curve, from the leaves up through the radix tree of
// the codes (C. Apetrei 2014). Nodes hold min and max corners (bvh/aabb.h) until bvh/center_nodes.cu converts them for
// bvh/traverse_bvh2.h. A warp merges one range of clusters; without warps one thread does the same merges, and the BVH
// is the same.
//
// A cluster is a subtree that is not yet merged. Its number is the index of a sorted primitive, or `count` plus the
// index of an inner node. Buffers besides the nodes:
//     sorted    (count, 3) float4: the primitives in the order of their codes; boxes: (count, 2) float4, their boxes
//     keys      (count): the sorted codes
//     clusters  (count): the clusters of the range of primitives first ... last stand at clusters[first] and after it,
//               INVALID_INDEX behind the last one
//     visits    (count): see hploc_merge
#include "bvh/aabb.h"

#define MERGE_THRESHOLD 16u  // the most clusters of a range that wait for the parent range's merge
#define SEARCH_RADIUS 8u  // neighbors on each side among which a cluster seeks its nearest one

// Merges into `bounds` the min and max corners of the boxes' centroids, encoded by ordered_from_float. The caller sets
// the three minima to all ones and the three maxima to 0.
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

// Spreads the low ten bits of x: two zero bits between each two.
DEVICE uint spread_bits(uint x) {
    x = (x * 0x00010001u) & 0xff0000ffu;
    x = (x * 0x00000101u) & 0x0f00f00fu;
    x = (x * 0x00000011u) & 0xc30c30c3u;
    return (x * 0x00000005u) & 0x49249249u;
}

// The cell 0..1023 of x among 1024 from `low` to `low + extent`.
DEVICE uint grid_cell(float x, float low, float extent) {
    return (uint)clamp((x - low) * (extent > 0.0f ? 1024.0f / extent : 0.0f), 0.0f, 1023.0f);
}

// keys[i]: the 30-bit Morton code of primitive i's centroid within `bounds`. One thread per primitive.
KERNEL morton_codes(GLOBAL const float4 *primitives, int count, GLOBAL const uint *bounds, GLOBAL uint *keys) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    float3 low = float3_from_ordered(bounds), extent = float3_from_ordered(bounds + 3) - low;
    float3 p = centroid(box_of(primitive_at(primitives, i)));
    keys[i] = spread_bits(grid_cell(p.x, low.x, extent.x)) << 2 | spread_bits(grid_cell(p.y, low.y, extent.y)) << 1 |
              spread_bits(grid_cell(p.z, low.z, extent.z));
}

// Writes the primitives in sorted order (rows[i]: index of the i-th) and their boxes, and initializes hploc_merge:
// every primitive is a cluster. One thread per primitive.
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

// The box of a cluster.
DEVICE Box cluster_box(GLOBAL const float4 *boxes, GLOBAL const float4 *nodes, uint count, uint cluster) {
    if (cluster < count) return stored_box(boxes, cluster);
    return box_of_node(nodes, cluster - count);
}

// The key of a pair of clusters (positions lower < upper < 32 in the range): the leading 22 bits of the cost's float,
// then 5 bits of lower xor upper, then 5 bits of lower. Both partners compute the same key, and no other pair has it,
// so at least one pair is mutually nearest. Among equal costs, pairs (2 k, 2 k + 1) have the least keys, so that equal
// boxes do not become a chain.
DEVICE uint pair_key(float cost, uint lower, uint upper) {
    return (as_uint(cost) & ~1023u) | (lower ^ upper) << 5 | lower;
}
DEVICE uint lower_of(uint key) { return key & 31u; }
DEVICE uint upper_of(uint key) { return (key & 31u) ^ (key >> 5 & 31u); }

// The height of a cluster: the number of levels below its root. As soon as a cluster of a range reaches HEIGHT_LIMIT,
// pairs are merged by height instead of area. So no BVH is deeper than HEIGHT_LIMIT plus log2 of the number of
// primitives, whatever their boxes, and the traversal stack (STACK_SIZE) suffices.
#define HEIGHT_LIMIT 40u
DEVICE uint height_of(GLOBAL const float4 *nodes, uint count, uint cluster) {
    return cluster < count ? 0u : as_uint(nodes[4 * (cluster - count) + 3].z);
}

// Writes inner node `number` with the clusters left (box a) and right (box b); word 14 is its height.
DEVICE void write_node(GLOBAL float4 *nodes, uint count, uint number, uint left, const Box a, uint right, const Box b,
                       uint height) {
    GLOBAL float4 *node = nodes + 4 * number;
    // the child references: a leaf of one primitive, or an inner node (bvh/traverse_bvh2.h)
    int first = left < count ? ~(int)(left * 8u) : (int)(left - count),
        second = right < count ? ~(int)(right * 8u) : (int)(right - count);
    node[0] = make_float4(a.low.x, a.high.x, a.low.y, a.high.y);
    node[1] = make_float4(b.low.x, b.high.x, b.low.y, b.high.y);
    node[2] = make_float4(a.low.z, a.high.z, b.low.z, b.high.z);
    node[3] = make_float4(as_float(first), as_float(second), as_float(height), 0.0f);
}

// Allocates `wanted` node indices and returns the highest. Allocation goes from count - 2 down, so that the root, which
// is made last, is node 0.
DEVICE uint take_nodes(GLOBAL uint *made, uint count, uint wanted) { return count - 2u - atomic_add(made, wanted); }

#if HAS_BALLOT
DEVICE float3 shuffle3(float3 v, uint lane) {
    return make_float3(as_float(warp_shuffle(as_uint(v.x), lane)), as_float(warp_shuffle(as_uint(v.y), lane)),
                       as_float(warp_shuffle(as_uint(v.z), lane)));
}

// The box of lane `lane`. The whole warp must call.
DEVICE Box box_from_lane(const Box box, uint lane) {
    Box other = {shuffle3(box.low, lane), shuffle3(box.high, lane)};
    return other;
}

// The index of the n-th set bit of a word, n from 0 (fns).
DEVICE uint set_bit(uint word, uint n) {
    uint position = 0;
    UNROLL for (uint width = 16; width > 0; width /= 2) {
        uint set_bits = popcount((word >> position) & ((1u << width) - 1u));
        if (n >= set_bits) {
            n -= set_bits;
            position += width;
        }
    }
    return position;
}

#endif

// Merges the clusters of the primitive ranges first..split and split + 1..last until at most `wanted` are left, and
// stores these from clusters[first] on. Each round, every cluster finds its nearest neighbor within SEARCH_RADIUS: the
// one with which its box has the least half area. Mutually nearest pairs become nodes, and the remaining clusters move
// together. All lanes of a warp call it with the same arguments and hold one cluster each; without warps (HAS_BALLOT 0)
// one thread calls it and holds all clusters. `made`: the number of nodes made so far.
DEVICE void merge_range(GLOBAL volatile uint *clusters, GLOBAL const float4 *boxes, GLOBAL float4 *nodes,
                        GLOBAL uint *made, uint count, uint first, uint split, uint last, uint wanted) {
#if HAS_BALLOT
    uint lane = lane_index(), cluster = INVALID_INDEX;
    // The left clusters go to the first lanes, the right ones to the lanes behind them
    if (lane < MERGE_THRESHOLD && first + lane <= split) cluster = clusters[first + lane];
    uint left_count = popcount(ballot(cluster != INVALID_INDEX));
    uint right_index = lane - left_count;
    if (lane >= left_count && right_index < MERGE_THRESHOLD && split + 1 + right_index <= last)
        cluster = clusters[split + 1 + right_index];
    else if (lane >= left_count)
        cluster = INVALID_INDEX;
    uint total = popcount(ballot(cluster != INVALID_INDEX)),
         height = cluster != INVALID_INDEX ? height_of(nodes, count, cluster) : 0u;
    Box box = empty_box();
    if (cluster != INVALID_INDEX) box = cluster_box(boxes, nodes, count, cluster);
    while (total > wanted) {
        // Nearest neighbor: the lower lane of a pair computes its key and passes it to the upper lane.
        uint best = INVALID_INDEX;
        bool by_height = ballot(height >= HEIGHT_LIMIT) != 0;
        UNROLL for (uint step = 1; step <= SEARCH_RADIUS; step++) {
            Box other = box_from_lane(box, (lane + step) & 31u);
            float cost = half_area(box_union(box, other));
            if (by_height) cost = (float)max(height, warp_shuffle(height, (lane + step) & 31u));
            uint key = lane + step < total ? pair_key(cost, lane, lane + step) : INVALID_INDEX;
            uint key_below = warp_shuffle(key, (lane - step) & 31u);
            best = min(best, key);
            if (lane >= step) best = min(best, key_below);
        }
        // Merge: the lower lane of each mutually nearest pair writes the node.
        uint lower = lower_of(best), upper = upper_of(best), partner = lane == lower ? upper : lower;
        uint partner_best = warp_shuffle(best, partner);
        bool mutual = lane < total && partner_best == best;
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
        // Compaction: lane k takes the k-th of the clusters that are left.
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
    // also INVALID_INDEX behind the last cluster
    if (lane < MERGE_THRESHOLD && first + lane <= last) clusters[first + lane] = cluster;
#else
    // The same by one thread; merging and compaction are one loop, which moves the clusters that are left to the front.
    uint members[2 * MERGE_THRESHOLD], height[2 * MERGE_THRESHOLD], best[2 * MERGE_THRESHOLD], total = 0;
    Box box[2 * MERGE_THRESHOLD];
    for (uint i = first; i <= split && i < first + MERGE_THRESHOLD && clusters[i] != INVALID_INDEX; i++)
        members[total++] = clusters[i];
    for (uint i = split + 1; i <= last && i < split + 1 + MERGE_THRESHOLD && clusters[i] != INVALID_INDEX; i++)
        members[total++] = clusters[i];
    for (uint i = 0; i < total; i++) {
        box[i] = cluster_box(boxes, nodes, count, members[i]);
        height[i] = height_of(nodes, count, members[i]);
    }
    while (total > wanted) {
        bool by_height = false;
        for (uint i = 0; i < total; i++) {
            best[i] = INVALID_INDEX;
            by_height = by_height || height[i] >= HEIGHT_LIMIT;
        }
        for (uint i = 0; i < total; i++) {
            for (uint j = i + 1; j <= i + SEARCH_RADIUS && j < total; j++) {
                uint key =
                    pair_key(by_height ? (float)max(height[i], height[j]) : half_area(box_union(box[i], box[j])), i, j);
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
            uint cluster = members[i], new_height = height[i];
            Box merged = box[i];
            if (mutual) {
                uint number = base--;
                new_height = 1u + max(height[i], height[upper]);
                write_node(nodes, count, number, members[i], box[i], members[upper], box[upper], new_height);
                cluster = count + number;
                merged = box_union(box[i], box[upper]);
            }
            members[kept] = cluster;
            height[kept] = new_height;
            box[kept] = merged;
            kept++;
        }
        total = kept;
    }
    for (uint i = 0; i < MERGE_THRESHOLD && first + i <= last; i++)
        clusters[first + i] = i < total ? members[i] : INVALID_INDEX;
#endif
    GLOBAL_FENCE();
}

// The distance between leaves i and i + 1 in the radix tree (Apetrei 2014): the xor of their codes, then, to break
// ties, of their indices.
DEVICE ulong morton_delta(GLOBAL const uint *keys, uint i) {
    uint difference = keys[i] ^ keys[i + 1];
    return (ulong)difference << 32 | (i ^ (i + 1));
}

// Builds the BVH. One thread per primitive climbs the radix tree, where first..last is its current range: at a parent,
// the thread of the child that arrives first stops, and the thread of the second continues with both ranges. `visits`
// holds the far end of the range that arrived first, INVALID_INDEX before (start_clusters); state[6] counts the nodes
// made, and the launcher sets it to 0.
KERNEL hploc_merge(GLOBAL const uint *keys, int primitive_count, GLOBAL uint *visits, GLOBAL volatile uint *clusters,
                   GLOBAL const float4 *boxes, GLOBAL float4 *nodes, GLOBAL uint *state) {
    GLOBAL uint *made = state + 6;  // the first six words are the bounds
    uint count = (uint)primitive_count, first = thread_index(), last = thread_index(), split = 0;
    bool active = first < count;
    while (true) {
        bool merges = false;
        if (active) {
            // The parent joins the neighbor whose code is nearer: the range behind `last`, or the one before `first`.
            bool to_right =
                first == 0 || (last != count - 1 && morton_delta(keys, last) < morton_delta(keys, first - 1));
            // visits[k]: of the parent that splits its range between k and k + 1
            uint sibling_end = atomic_xchg(&visits[to_right ? last : first - 1], to_right ? first : last);
            if (sibling_end == INVALID_INDEX)
                active = false;
            else {
                GLOBAL_FENCE();
                split = to_right ? last : first - 1;
                if (to_right)
                    last = sibling_end;
                else
                    first = sibling_end;
                // in a smaller range every primitive is still a cluster, in its place
                merges = last - first + 1 > MERGE_THRESHOLD || last - first + 1 == count;
            }
        }
        bool root = last - first + 1 == count;
#if HAS_BALLOT  // the whole warp merges the range of one lane after another
        uint pending_lanes = ballot(merges);
        while (pending_lanes) {
            uint lane = 31u - (uint)clz(pending_lanes);
            pending_lanes &= ~(1u << lane);
            uint lane_is_root = warp_shuffle(root ? 1u : 0u, lane);
            merge_range(clusters, boxes, nodes, made, count, warp_shuffle(first, lane), warp_shuffle(split, lane),
                        warp_shuffle(last, lane), lane_is_root ? 1u : MERGE_THRESHOLD);
        }
        if (active && root) active = false;
        if (ballot(active) == 0) break;
#else
        if (merges) merge_range(clusters, boxes, nodes, made, count, first, split, last, root ? 1u : MERGE_THRESHOLD);
        if (root) active = false;
        if (!active) break;
#endif
    }
}
