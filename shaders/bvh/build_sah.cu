// BVH2 builder by binned SAH (I. Wald 2007) on the device, from the root down. In: the primitives (bvh/geometry.h), and
// their boxes if the caller has them. Out: a BVH2 with one primitive per leaf, and the primitives in the order of the
// leaves. bvh/compact_bvh2.cu refits the boxes and joins leaves afterwards. Launched by renderer/bvh/device_sah.py.
//
// A range is a run of consecutive positions of `order`; one node splits it, at the cheapest of 15 planes on each axis.
// GPUs split all ranges of a level at once, by the kernels empty_bins, bound_centroids, fill_bins, choose_planes,
// count_lefts, scan_tiles and partition_ranges; on CPUs one thread splits a range (split_large_ranges). Ranges of at
// most REST_RANGE primitives are left to the last kernel, split_rest, where one thread finishes a range. It tries every
// split of the primitives of at most SMALL_RANGE.
//
// Buffers for `count` primitives:
//     boxes    (count, 2) float4: min and max corner of a primitive's box; w is unused
//     order    (count): the primitive at each position
//     owner    (count): the index in `ranges` of the range that holds a position; INVALID_INDEX for the ranges in
//              `rest` and for leaves
//     ranges   the ranges of a level (on CPUs: of all levels so far); rest: the ranges that split_rest finishes
//     bounds   (ranges, 6): minima and maxima of the centroids of each range, encoded by ordered_from_float
//     bins     (ranges, 3 axes, BINS, BIN_WORDS)
//     counts   four numbers, see THIS_LEVEL below
//     nodes    (count - 1, 4) float4, see bvh/aabb.h. The node that splits before position p of `order` has index p -
//              1, except that the root, which traversals seek at index 0, and node 0 swap indices.
//
// The host defines:
//     SCALAR_THREADS     1 on CPUs, where one work-item does the work of a group
//     PART               GPUs compile two programs at once, in half the time: 1 has split_rest, 0 the other kernels.
//                        CPUs: 0, with all kernels
//     SMALL_RANGE, MEDIUM_RANGE   numbers of primitives, whose values and meaning device_sah.py has
//     MEDIAN_FROM_LEVEL  the first level whose ranges are split in the middle, which bounds the depth
#include "bvh/aabb.h"
#include "common/scan.h"

#define BINS 16
#define BIN_WORDS 7u  // a bin: number of primitives, min and max corner encoded by ordered_from_float
#define RANGE_WORDS (3u * BINS * BIN_WORDS)
#define ITEMS_PER_THREAD 16u  // consecutive positions of `order` per thread; a tile is a group's positions
#define SCAN_TILE (GROUP_SIZE * ITEMS_PER_THREAD)
#define TIE_FACTOR 0.999999f  // a split must be cheaper by more than rounding, so that regular scenes get regular BVHs
#define MEDIUM_STACK 64  // the most ranges that wait to be split within a medium range
#define REST_RANGE (SCALAR_THREADS ? MEDIUM_RANGE : SMALL_RANGE)  // largest range that one thread finishes
#define PENDING_STACK 16  // the most ranges that wait to be split within a small range

typedef struct {
    uint start, size, slot;  // slot: the parent node's slot for this child (bvh/aabb.h), INVALID_INDEX for the root
    uint left_count;  // before the split: the range's depth; after it: the number of primitives that go left
    uint axis, plane;  // plane: the last bin on the left, or MEDIAN_SPLIT: the first left_count positions go left
    uint left, right;  // indices of both sides among the next level's ranges; INVALID_INDEX: not split by levels
} Range;
#define MEDIAN_SPLIT BINS

// Elements of `counts`: numbers of ranges of this and of the next level (on CPUs: of all levels so far), number of
// ranges that one thread finishes, the root's node index before the swap.
#define THIS_LEVEL 0
#define NEXT_LEVEL 1
#define REST_RANGES 2
#define COUNT_ROOT 3

#if PART == 0
// Makes the root's range and the identity order. has_boxes: 1 if `boxes` are given, 0 if this kernel computes them. One
// thread per primitive.
KERNEL start_ranges(GLOBAL const float4 *primitives, int count, int has_boxes, GLOBAL float4 *boxes, GLOBAL uint *order,
                    GLOBAL uint *owner, GLOBAL Range *ranges, GLOBAL Range *rest) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    if (!has_boxes) store_box(boxes, i, box_of(primitive_at(primitives, i)));
    order[i] = i;
    owner[i] = (uint)count > REST_RANGE ? 0u : INVALID_INDEX;
    if (i == 0) {
        Range all = {0, (uint)count, INVALID_INDEX, 0, 0, 0, INVALID_INDEX, INVALID_INDEX};
        ranges[0] = all;  // the host's `counts` say which of both holds the root
        rest[0] = all;
    }
}
#endif

// Bounds: a box whose union is fast. CPUs hold it in one register of eight floats: the negated min corner and the max
// corner, each with an unused fourth element, so that a union is one maximum instruction. Areas and centers have the
// same bits as half_area() and centroid() of a Box. On GPUs Bounds is Box.
#if SCALAR_THREADS && HAS_MOVEMASK
typedef float8 Bounds;
DEVICE Bounds empty_bounds_of(void) { return SPLAT(float8, -FLT_MAX); }
DEVICE Bounds bounds_of(GLOBAL const float4 *boxes, uint i) {
    float8 box = vload8(i, (GLOBAL const float *)boxes);
    return make_float8(-box.lo, box.hi);
}
DEVICE Bounds bounds_union(const Bounds a, const Bounds b) { return max_nnan(a, b); }
DEVICE float bounds_area(const Bounds b) {
    float4 size = b.hi + b.lo;
    return fma(size.x, size.y, fma(size.y, size.z, size.z * size.x));
}
DEVICE float3 bounds_low(const Bounds b) { return xyz(-b.lo); }
DEVICE float3 bounds_high(const Bounds b) { return xyz(b.hi); }
DEVICE float3 bounds_center(const Bounds b) { return xyz(b.hi * 0.5f - b.lo * 0.5f); }
DEVICE Bounds with_point(const Bounds b, float3 p) {
    float4 corner = with_w(p, 0.0f);
    return max_nnan(b, make_float8(-corner, corner));
}
#else
typedef Box Bounds;
#define empty_bounds_of empty_box
#define bounds_of stored_box
#define bounds_union box_union
#define bounds_area half_area
#define bounds_low(b) (b).low
#define bounds_high(b) (b).high
#define bounds_center centroid
#define with_point box_with_point
#endif

// Bins per unit of length on an axis whose centroids range from `low` to `high`; 0 if all are equal. The factor below 1
// keeps the centroid at `high` in the last bin; 1e-30 bounds the quotient.
DEVICE float bin_scale(float low, float high) {
    return high > low ? BINS * 0.999999f / max_nnan(high - low, 1e-30f) : 0.0f;
}

// The bin, 0..BINS - 1, of a centroid's coordinate.
DEVICE uint bin_within(float low, float scale, float center) {
    return (uint)clamp((center - low) * scale, 0.0f, BINS - 1.0f);
}

// The bin of a centroid's coordinate `center` in a range with these encoded `bounds`.
DEVICE uint bin_of(GLOBAL const uint *bounds, float center, uint axis) {
    float low = float_from_ordered(bounds[axis]), high = float_from_ordered(bounds[axis + 3]);
    return bin_within(low, bin_scale(low, high), center);
}

// Sweeps the planes between the bins of an axis: bins[k] is the box of the sizes[k] primitives in bin k. A plane whose
// SAH cost (half area times number of primitives, of both sides) is less than *best becomes the split of *range.
DEVICE void sweep_planes(const Bounds *bins, const uint *sizes, uint axis, Range *range, float *best) {
    float right_area[BINS];
    Bounds box = empty_bounds_of();
    for (uint k = BINS - 1; k > 0; k--) {
        box = bounds_union(box, bins[k]);
        right_area[k] = bounds_area(box);
    }
    uint lefts = 0;
    box = empty_bounds_of();
    for (uint k = 0; k < BINS - 1; k++) {
        box = bounds_union(box, bins[k]);
        lefts += sizes[k];
        if (sizes[k] == 0 || lefts == range->size) continue;  // the same as the plane before, or nothing on the right
        float cost = bounds_area(box) * (float)lefts + right_area[k + 1] * (float)(range->size - lefts);
        if (cost < *best * TIE_FACTOR) {
            *best = cost;
            range->axis = axis;
            range->plane = k;
            range->left_count = lefts;
        }
    }
}

// The index of the node that splits before position `split_position`; `root`: the root's index before its swap with 0.
DEVICE uint node_index(uint split_position, uint root) {
    uint number = split_position - 1u;
    return number == root ? 0u : number == 0u ? root : number;
}

// Links the node of a split range: writes its index into the parent's slot and, for a side of one primitive, the leaf's
// reference (bvh/traverse_bvh2.h) into its own slot; words 12 and 13 of a node are its child references. sides[0] and
// sides[1] become the left and the right range, which have this `depth`. The first range sets *root, the root's index
// before its swap with 0.
DEVICE void link_node(GLOBAL float4 *nodes, const Range range, uint depth, uint *root, Range *sides) {
    GLOBAL float *words = (GLOBAL float *)nodes;
    uint middle = range.start + range.left_count, right = range.size - range.left_count;
    if (range.slot == INVALID_INDEX) *root = middle - 1u;
    uint number = node_index(middle, *root);
    if (range.slot != INVALID_INDEX) words[16 * (range.slot >> 1) + 12 + (range.slot & 1u)] = as_float((int)number);
    if (range.left_count == 1) words[16 * number + 12] = as_float(~(int)(range.start * 8u));
    if (right == 1) words[16 * number + 13] = as_float(~(int)(middle * 8u));
    Range first = {range.start, range.left_count, 2 * number, depth, 0, 0, INVALID_INDEX, INVALID_INDEX};
    Range second = {middle, right, 2 * number + 1, depth, 0, 0, INVALID_INDEX, INVALID_INDEX};
    sides[0] = first;
    sides[1] = second;
}

// Appends one side of a split to `ranges`, the next level's, or to `rest` if split_rest will finish it. Returns its
// index in `ranges`, or INVALID_INDEX if it is in `rest` or a leaf.
DEVICE uint queue_range(const Range range, GLOBAL Range *ranges, GLOBAL Range *rest, GLOBAL uint *counts) {
    if (range.size == 1) return INVALID_INDEX;
    if (range.size <= REST_RANGE) {
        rest[atomic_add(&counts[REST_RANGES], 1u)] = range;
        return INVALID_INDEX;
    }
    uint number = atomic_add(&counts[NEXT_LEVEL], 1u);
    ranges[number] = range;
    return number;
}

#if PART == 0 && !SCALAR_THREADS
// Initializes the bounds and bins of all ranges of a level.
KERNEL empty_bins(GLOBAL uint *bounds, GLOBAL uint *bins, GLOBAL const uint *counts) {
    uint i = thread_index(), ranges = counts[THIS_LEVEL];
    for (uint k = i; k < ranges * 6u; k += group_count() * GROUP_SIZE) bounds[k] = k % 6u < 3u ? INVALID_INDEX : 0u;
    for (uint k = i; k < ranges * RANGE_WORDS; k += group_count() * GROUP_SIZE) {
        uint word = k % BIN_WORDS;
        bins[k] = word >= 1u && word <= 3u ? INVALID_INDEX : 0u;
    }
}

// Returns the index of the range that holds all positions of this group's tile, or INVALID_INDEX if there are several.
// Most tiles lie in one range: their bounds and bins are accumulated in local memory first, which is faster.
DEVICE uint owner_of_tile(GLOBAL const uint *owner, uint count) {
    uint begin = group_index() * SCAN_TILE, last = min(begin + SCAN_TILE, count) - 1u, shared = owner[begin];
    return owner[last] == shared ? shared : INVALID_INDEX;
}

// Extends the encoded bounds `into` (three minima, three maxima) by a box's encoded corners, atomically.
#define GROW(into, low, high)           \
    {                                   \
        atomic_min(&(into)[0], low.x);  \
        atomic_min(&(into)[1], low.y);  \
        atomic_min(&(into)[2], low.z);  \
        atomic_max(&(into)[3], high.x); \
        atomic_max(&(into)[4], high.y); \
        atomic_max(&(into)[5], high.z); \
    }

// Encodes a point by ordered_from_float.
DEVICE uint3 ordered_of(float3 p) {
    return make_uint3(ordered_from_float(p.x), ordered_from_float(p.y), ordered_from_float(p.z));
}

// Merges into the bounds of each range the min and max of its boxes' centroids.
KERNEL bound_centroids(GLOBAL const float4 *boxes, GLOBAL const uint *order, GLOBAL const uint *owner, int count,
                       GLOBAL uint *bounds) {
    LOCAL_ARRAY(uint, tile_bounds, 6);
    uint tile_owner = owner_of_tile(owner, (uint)count), begin = group_index() * SCAN_TILE,
         end = min(begin + SCAN_TILE, (uint)count);
    empty_bounds(tile_bounds);
    for (uint i = begin + local_index(); i < end; i += GROUP_SIZE) {
        if (owner[i] == INVALID_INDEX) continue;
        uint3 center = ordered_of(centroid(stored_box(boxes, order[i])));
        if (tile_owner != INVALID_INDEX)
            GROW(tile_bounds, center, center)
        else
            GROW(bounds + 6 * owner[i], center, center)
    }
    BARRIER();
    if (tile_owner != INVALID_INDEX) merge_bounds(bounds + 6 * tile_owner, tile_bounds);
}

// Adds every primitive to the bins of its range, 3 * BINS bins of BIN_WORDS words. One thread per position.
KERNEL fill_bins(GLOBAL const float4 *boxes, GLOBAL const uint *order, GLOBAL const uint *owner, int count,
                 GLOBAL const uint *bounds, GLOBAL uint *bins) {
    LOCAL_ARRAY(uint, tile_bins, RANGE_WORDS);
    uint tile_owner = owner_of_tile(owner, (uint)count), begin = group_index() * SCAN_TILE,
         end = min(begin + SCAN_TILE, (uint)count);
    for (uint k = local_index(); k < RANGE_WORDS; k += GROUP_SIZE)
        tile_bins[k] = k % BIN_WORDS >= 1u && k % BIN_WORDS <= 3u ? INVALID_INDEX : 0u;
    BARRIER();
    for (uint i = begin + local_index(); i < end; i += GROUP_SIZE) {
        if (owner[i] == INVALID_INDEX) continue;
        Box box = stored_box(boxes, order[i]);
        float3 center = centroid(box);
        uint3 low = ordered_of(box.low), high = ordered_of(box.high);
        for (uint axis = 0; axis < 3; axis++) {
            uint bin = (axis * BINS + bin_of(bounds + 6 * owner[i], component(center, axis), axis)) * BIN_WORDS;
            if (tile_owner != INVALID_INDEX) {
                atomic_add(&tile_bins[bin], 1u);
                GROW(tile_bins + bin + 1, low, high)
            } else {
                GLOBAL uint *into = bins + owner[i] * RANGE_WORDS + bin;
                atomic_add(&into[0], 1u);
                GROW(into + 1, low, high)
            }
        }
    }
    BARRIER();
    if (tile_owner == INVALID_INDEX) return;
    for (uint k = local_index(); k < RANGE_WORDS; k += GROUP_SIZE) {
        GLOBAL uint *into = bins + tile_owner * RANGE_WORDS + k;
        uint word = k % BIN_WORDS;
        if (tile_bins[k / BIN_WORDS * BIN_WORDS] == 0u) continue;  // an empty bin: word 0 is its number
        if (word == 0)
            atomic_add(into, tile_bins[k]);
        else if (word <= 3)
            atomic_min(into, tile_bins[k]);
        else
            atomic_max(into, tile_bins[k]);
    }
}

DEVICE Box box_of_bin(GLOBAL const uint *bin) {
    Box box = {float3_from_ordered(bin + 1), float3_from_ordered(bin + 4)};
    return box;
}

// For every range of the level: finds the best plane by the SAH, links the node and queues both sides. force_median: 1
// to split all ranges in the middle instead, which bounds the depth. One thread per range.
KERNEL choose_planes(GLOBAL const uint *bins, int force_median, GLOBAL Range *ranges, GLOBAL Range *next,
                     GLOBAL Range *rest, GLOBAL uint *counts, GLOBAL float4 *nodes) {
    for (uint r = thread_index(); r < counts[THIS_LEVEL]; r += group_count() * GROUP_SIZE) {
        Range range = ranges[r];
        uint depth = range.left_count + 1u;  // of both sides
        float best = FLT_MAX;
        range.plane = MEDIAN_SPLIT;
        range.left_count = range.size / 2;
        for (uint axis = 0; axis < 3 && !force_median; axis++) {
            GLOBAL const uint *bin = bins + r * RANGE_WORDS + axis * BINS * BIN_WORDS;
            Box boxes[BINS];
            uint sizes[BINS];
            for (uint k = 0; k < BINS; k++) {
                sizes[k] = bin[k * BIN_WORDS];
                boxes[k] = sizes[k] ? box_of_bin(bin + k * BIN_WORDS) : empty_box();
            }
            sweep_planes(boxes, sizes, axis, &range, &best);
        }
        uint root = counts[COUNT_ROOT];
        Range sides[2];
        link_node(nodes, range, depth, &root, sides);
        if (range.slot == INVALID_INDEX) counts[COUNT_ROOT] = root;
        range.left = queue_range(sides[0], next, rest, counts);
        range.right = queue_range(sides[1], next, rest, counts);
        ranges[r] = range;
    }
}

// True if a primitive, at `position` of the order in range number `owner`, goes to the left side.
DEVICE bool goes_left(GLOBAL const float4 *boxes, GLOBAL const uint *bounds, const Range range, uint primitive,
                      uint position, uint owner) {
    if (range.plane == MEDIAN_SPLIT) return position - range.start < range.left_count;
    return bin_of(bounds + 6 * owner, component(centroid(stored_box(boxes, primitive)), range.axis), range.axis) <=
           range.plane;
}

// lefts[i] becomes the number of positions before i in its tile that go left, sums[tile] the number in the tile.
KERNEL count_lefts(GLOBAL const float4 *boxes, GLOBAL const uint *order, GLOBAL const uint *owner, int count,
                   GLOBAL const uint *bounds, GLOBAL const Range *ranges, GLOBAL uint *lefts, GLOBAL uint *sums) {
    LOCAL_ARRAY(uint, scan_words, SCAN_WORDS);
    uint begin = thread_index() * ITEMS_PER_THREAD, end = min(begin + ITEMS_PER_THREAD, (uint)count), n_left = 0, total;
    for (uint i = begin; i < end; i++) {
        lefts[i] = n_left;
        if (owner[i] != INVALID_INDEX && goes_left(boxes, bounds, ranges[owner[i]], order[i], i, owner[i])) n_left++;
    }
    const uint earlier = exclusive_scan_group(scan_words, n_left, &total);
    for (uint i = begin; i < end; i++) lefts[i] += earlier;
    if (local_index() == 0) sums[group_index()] = total;
}

// Replaces `sums` by its exclusive prefix sums, and makes the next level the current one. One group.
KERNEL scan_tiles(GLOBAL uint *sums, int tiles, GLOBAL uint *counts) {
    LOCAL_ARRAY(uint, scan_words, SCAN_WORDS);
    exclusive_scan_row(sums, (uint)tiles, scan_words);
    if (local_index() == 0) {
        counts[THIS_LEVEL] = counts[NEXT_LEVEL];
        counts[NEXT_LEVEL] = 0;
    }
}

// Partitions every range of the level stably into its left and right side. One thread per position.
KERNEL partition_ranges(GLOBAL const float4 *boxes, GLOBAL const uint *order, GLOBAL const uint *owner, int count,
                        GLOBAL const uint *bounds, GLOBAL const Range *ranges, GLOBAL const uint *lefts,
                        GLOBAL const uint *sums, GLOBAL uint *order_out, GLOBAL uint *owner_out) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    uint primitive = order[i], range_index = owner[i], position = i, new_owner = INVALID_INDEX;
    if (range_index != INVALID_INDEX) {
        Range range = ranges[range_index];
        // of the range's positions before i, the number that go left
        uint earlier = lefts[i] + sums[i / SCAN_TILE] - (lefts[range.start] + sums[range.start / SCAN_TILE]);
        bool left = goes_left(boxes, bounds, range, primitive, i, range_index);
        position = range.start + (left ? earlier : range.left_count + (i - range.start) - earlier);
        new_owner = left ? range.left : range.right;
    }
    order_out[position] = primitive;
    owner_out[position] = new_owner;
}
#endif

#if PART == 1 || SCALAR_THREADS
// Finds the best split of the 2 to SMALL_RANGE primitives `members` by their centroids on an axis. Returns its SAH
// cost; `sorted` becomes the members in order of their centroids, *left_count the number that go left.
DEVICE_NOINLINE_CPU float best_split(GLOBAL const float4 *boxes, const uint *members, uint size, uint axis,
                                     uint *sorted, uint *left_count) {
    float centroids[SMALL_RANGE], right_area[SMALL_RANGE], best;
    for (uint i = 0; i < size; i++) {  // insertion sort
        float center = component(centroid(stored_box(boxes, members[i])), axis);
        uint k = i;
        for (; k > 0 && centroids[k - 1] > center; k--) {
            centroids[k] = centroids[k - 1];
            sorted[k] = sorted[k - 1];
        }
        centroids[k] = center;
        sorted[k] = members[i];
    }
    Bounds box = empty_bounds_of();
    for (uint k = size - 1; k > 0; k--) {
        box = bounds_union(box, bounds_of(boxes, sorted[k]));
        right_area[k] = bounds_area(box);
    }
    float costs[SMALL_RANGE];
    box = empty_bounds_of();
    for (uint k = 1; k < size; k++) {
        box = bounds_union(box, bounds_of(boxes, sorted[k - 1]));
        costs[k] = bounds_area(box) * (float)k + right_area[k] * (float)(size - k);
    }
    *left_count = size / 2;  // the middle wins ties, so that equal boxes do not become a chain
    best = costs[*left_count];
    for (uint k = 1; k < size; k++) {
        if (costs[k] < best * TIE_FACTOR) {
            best = costs[k];
            *left_count = k;
        }
    }
    return best;
}

// Splits a range of 2 to SMALL_RANGE primitives down to single primitives; `root`: see node_index.
DEVICE_NOINLINE_CPU void split_small_range(GLOBAL const float4 *boxes, GLOBAL uint *order, const Range first_range,
                                           uint root, GLOBAL float4 *nodes) {
    Range pending[PENDING_STACK];
    uint top = 1;
    pending[0] = first_range;
    while (top > 0) {
        Range range = pending[--top];
        uint members[SMALL_RANGE], sorted[SMALL_RANGE], best_order[SMALL_RANGE];
        for (uint k = 0; k < range.size; k++) best_order[k] = members[k] = order[range.start + k];
        float best = FLT_MAX;
        range.left_count = range.size / 2;
        for (uint axis = 0; axis < 3; axis++) {
            uint left_count = 1;
            float cost = best_split(boxes, members, range.size, axis, sorted, &left_count);
            if (cost < best * TIE_FACTOR) {
                best = cost;
                range.left_count = left_count;
                for (uint k = 0; k < range.size; k++) best_order[k] = sorted[k];
            }
        }
        for (uint k = 0; k < range.size; k++) order[range.start + k] = best_order[k];
        Range sides[2];
        link_node(nodes, range, 0, &root, sides);
        for (uint side = 0; side < 2; side++)
            if (sides[side].size > 1) pending[top++] = sides[side];
    }
}
#endif

#if SCALAR_THREADS
// The bounds of the centroids of positions begin to end - 1.
DEVICE Bounds centroid_bounds(GLOBAL const float4 *boxes, GLOBAL const uint *order, uint begin, uint end) {
    Bounds centers = empty_bounds_of();
    for (uint i = begin; i < end; i++) centers = with_point(centers, bounds_center(bounds_of(boxes, order[i])));
    return centers;
}

// Bins the boxes of positions begin to end - 1 on each of the three axes: bins[axis * BINS + k], with sizes alike. The
// centroids range from `low` on; `scale` is bin_scale of each axis.
DEVICE void bin_boxes(GLOBAL const float4 *boxes, GLOBAL const uint *order, uint begin, uint end, float3 low,
                      float3 scale, Bounds *bins, uint *sizes) {
    for (uint bin = 0; bin < 3 * BINS; bin++) {
        sizes[bin] = 0;
        bins[bin] = empty_bounds_of();
    }
    for (uint i = begin; i < end; i++) {
        Bounds box = bounds_of(boxes, order[i]);
        float3 coordinate = (bounds_center(box) - low) * scale;
        uint bin[3] = {(uint)clamp(coordinate.x, 0.0f, BINS - 1.0f), (uint)clamp(coordinate.y, 0.0f, BINS - 1.0f),
                       (uint)clamp(coordinate.z, 0.0f, BINS - 1.0f)};
        UNROLL for (uint axis = 0; axis < 3; axis++) {
            uint k = axis * BINS + bin[axis];
            sizes[k]++;
            bins[k] = bounds_union(bins[k], box);
        }
    }
}

DEVICE float3 bin_scales(float3 low, float3 high) {
    return make_float3(bin_scale(low.x, high.x), bin_scale(low.y, high.y), bin_scale(low.z, high.z));
}

// Finds the best plane of one range by the same bins and costs as choose_planes. *low and *scale become the arguments
// of bin_within on the chosen axis.
DEVICE void choose_plane(GLOBAL const float4 *boxes, GLOBAL const uint *order, Range *range, float *low, float *scale) {
    uint end = range->start + range->size, sizes[3 * BINS];
    Bounds centers = centroid_bounds(boxes, order, range->start, end), bins[3 * BINS];
    float3 lows = bounds_low(centers), scales = bin_scales(lows, bounds_high(centers));
    float best = FLT_MAX;
    bin_boxes(boxes, order, range->start, end, lows, scales, bins, sizes);
    for (uint axis = 0; axis < 3; axis++) sweep_planes(bins + axis * BINS, sizes + axis * BINS, axis, range, &best);
    *low = component(lows, range->axis);
    *scale = component(scales, range->axis);
}

// Splits a range in place, with scratch memory `spare` as large as `order`; its two sides replace it in `sides`. *root
// becomes the root's index before its swap with 0 if this is the first range.
DEVICE_NOINLINE_ALWAYS void split_range(GLOBAL const float4 *boxes, GLOBAL uint *order, GLOBAL uint *spare, Range range,
                                        uint *root, GLOBAL float4 *nodes, Range *sides) {
    uint depth = range.left_count, lefts = 0, rights = 0;
    float low = 0.0f, scale = 0.0f;
    range.plane = MEDIAN_SPLIT;
    range.left_count = range.size / 2;
    if (depth < MEDIAN_FROM_LEVEL) choose_plane(boxes, order, &range, &low, &scale);
    if (range.plane != MEDIAN_SPLIT) {
        for (uint i = range.start; i < range.start + range.size; i++) {
            float center = component(centroid(stored_box(boxes, order[i])), range.axis);
            if (bin_within(low, scale, center) <= range.plane)
                order[range.start + lefts++] = order[i];  // lefts <= i - range.start: what is overwritten was read
            else
                spare[range.start + rights++] = order[i];
        }
        for (uint k = 0; k < rights; k++) order[range.start + lefts + k] = spare[range.start + k];
    }
    link_node(nodes, range, depth + 1, root, sides);
}

// Splits ranges begin to end - 1, one CPU thread per range, and appends their sides. A range is not shared by threads:
// the levels above MEDIUM_RANGE are few, and atomics, owners and prefix sums for each primitive would cost more than a
// second thread saves.
KERNEL split_large_ranges(GLOBAL const float4 *boxes, GLOBAL uint *order, GLOBAL uint *spare, int begin, int end,
                          GLOBAL Range *ranges, GLOBAL Range *rest, GLOBAL uint *counts, GLOBAL float4 *nodes) {
    if (local_index() > 0) return;  // a group runs on one CPU thread
    for (uint r = (uint)begin + group_index(); r < (uint)end; r += group_count()) {
        Range sides[2];
        uint root = counts[COUNT_ROOT];
        split_range(boxes, order, spare, ranges[r], &root, nodes, sides);
        if (r == 0) counts[COUNT_ROOT] = root;
        for (uint side = 0; side < 2; side++) queue_range(sides[side], ranges, rest, counts);
    }
}

// Splits each range in `rest` down to single primitives, one CPU thread per range, depth first. So the boxes of a range
// stay in the core's cache: 1.05 M triangles need 7 passes over all primitives, one per level above, instead of 22. The
// tree is the same.
KERNEL split_rest(GLOBAL const float4 *boxes, GLOBAL uint *order, GLOBAL uint *spare, GLOBAL const Range *rest,
                  GLOBAL const uint *counts, GLOBAL float4 *nodes) {
    if (local_index() > 0) return;  // a group runs on one CPU thread
    for (uint s = group_index(); s < counts[REST_RANGES]; s += group_count()) {
        Range pending[MEDIUM_STACK];
        uint top = 1, root = counts[COUNT_ROOT];
        pending[0] = rest[s];
        while (top > 0) {
            Range range = pending[--top], sides[2];
            if (range.size <= SMALL_RANGE) {
                if (range.size > 1) split_small_range(boxes, order, range, root, nodes);
                continue;
            }
            split_range(boxes, order, spare, range, &root, nodes, sides);
            uint larger = sides[1].size >= sides[0].size;
            pending[top++] = sides[larger];  // below the smaller, so that the stack's depth is at most log2(size)
            pending[top++] = sides[1 - larger];
        }
    }
}
#elif PART == 1
// Splits the small ranges, one thread per range.
KERNEL split_rest(GLOBAL const float4 *boxes, GLOBAL uint *order, GLOBAL const Range *rest, GLOBAL const uint *counts,
                  GLOBAL float4 *nodes) {
    for (uint s = thread_index(); s < counts[REST_RANGES]; s += group_count() * GROUP_SIZE)
        split_small_range(boxes, order, rest[s], counts[COUNT_ROOT], nodes);
}
#endif

#if PART == 0
// Writes the primitives in sorted order. One thread per primitive.
KERNEL sort_primitives(GLOBAL const float4 *primitives, GLOBAL const uint *order, int count, GLOBAL float4 *sorted) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    for (uint k = 0; k < 3; k++) sorted[3 * i + k] = primitives[3 * order[i] + k];
}

// Writes the boxes of the leaves into their slots: the given boxes, or boxes computed again from the sorted primitives,
// which takes no memory for them. One thread per node.
KERNEL write_leaves(GLOBAL const float4 *sorted, int has_boxes, GLOBAL const float4 *boxes, GLOBAL const uint *order,
                    int count, GLOBAL float4 *nodes) {
    uint i = thread_index();
    if (i >= (uint)count - 1u) return;
    for (uint slot = 2 * i; slot < 2 * i + 2; slot++) {
        int child_ref = ref_of_slot(nodes, slot);
        if (child_ref >= 0) continue;
        uint leaf = (uint)(~child_ref >> 3);
        Box box = has_boxes ? stored_box(boxes, order[leaf]) : box_of(primitive_at(sorted, leaf));
        write_slot(nodes, slot, box, child_ref);
    }
}
#endif
#if SCALAR_THREADS  // one program, since each costs PoCL 0.1 s
#include "bvh/compact_bvh2.cu"
#endif
