// Binary trees by binned SAH (I. Wald 2007), built on the device from the root down, a level at a time, with no count read back. A
// range of primitives is cut at the best of 15 planes on each of the axes; one of at most SMALL is finished by a single thread, which
// tries every cut. Every range ends in leaves of one primitive; bvh/reinsertion.cu refits boxes and joins leaves afterwards.
// A node that cuts the sorted primitives before place p has number p - 1, but that the root changes numbers with node 0.
#include "bvh/aabb.h"
#include "common/scan.h"

#define BINS 16
#define BIN_WORDS 7u                      // primitives, lowest and highest corner as ordered integers
#define RANGE_WORDS (3u * BINS * BIN_WORDS)
#define EACH 16u                          // neighbouring primitives of a thread
#define TILE (GROUP_SIZE * EACH)
#define FIRST 0.999999f                   // of costs that are equal but for rounding the first is taken, so that regular scenes get regular trees
#define PENDING 16                        // of a small range's parts, the smaller one of two being taken first

typedef struct {
    uint start, size, slot;  // slot of the parent's, NOTHING for the root
    uint cut;                // primitives on the left
    uint axis, plane;        // the last bin on the left; HALVED: no plane, the first `cut` go left
    uint left, right;        // the parts' numbers among the ranges of the next level, NOTHING for finished or small ones
} Range;
#define HALVED BINS

// counts: ranges of this level and of the next, small ranges, the root's number by its cut.
#define HERE 0
#define NEXT 1
#define SMALLS 2
#define ROOT 3

DEVICE Box stored_box(GLOBAL const float4 *boxes, uint i) {
    Box box;
    box.low = xyz(boxes[2 * i]);
    box.high = xyz(boxes[2 * i + 1]);
    return box;
}

// `boxed`: the boxes are there already.
KERNEL start_ranges(GLOBAL const float4 *primitives, int count, int boxed, GLOBAL float4 *boxes, GLOBAL uint *order, GLOBAL uint *owner,
                    GLOBAL Range *ranges, GLOBAL Range *smalls) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    if (!boxed) {
        Box box = box_of(primitive_at(primitives, i));
        boxes[2 * i] = with_w(box.low, 0.0f);
        boxes[2 * i + 1] = with_w(box.high, 0.0f);
    }
    order[i] = i;
    owner[i] = (uint)count > SMALL ? 0u : NOTHING;
    if (i == 0) {
        Range all = {0, (uint)count, NOTHING, 0, 0, 0, NOTHING, NOTHING};
        ranges[0] = all;
        smalls[0] = all;
    }
}

// Bounds and bins of all ranges that a level may have, as they are before anything is put in.
KERNEL empty_bins(GLOBAL uint *bounds, GLOBAL uint *bins, GLOBAL const uint *counts) {
    uint i = thread_index(), ranges = counts[HERE];
    for (uint k = i; k < ranges * 6u; k += group_count() * GROUP_SIZE) bounds[k] = k % 6u < 3u ? NOTHING : 0u;
    for (uint k = i; k < ranges * RANGE_WORDS; k += group_count() * GROUP_SIZE) {
        uint word = k % BIN_WORDS;
        bins[k] = word >= 1u && word <= 3u ? NOTHING : 0u;
    }
}

// A tile of the sorted primitives mostly lies in one range, whose sums are then made in local memory. `shared` is the owner of the
// whole tile, or NOTHING.
DEVICE uint owner_of_tile(GLOBAL const uint *owner, uint count) {
    uint begin = group_index() * TILE, last = min(begin + TILE, count) - 1u, shared = owner[begin];
    return owner[last] == shared ? shared : NOTHING;
}

#define GROW(into, low, high)          \
    {                                  \
        atomic_min(&(into)[0], low.x); \
        atomic_min(&(into)[1], low.y); \
        atomic_min(&(into)[2], low.z); \
        atomic_max(&(into)[3], high.x); \
        atomic_max(&(into)[4], high.y); \
        atomic_max(&(into)[5], high.z); \
    }

DEVICE uint3 ordered_of(float3 p) { return make_uint3(ordered(p.x), ordered(p.y), ordered(p.z)); }

// bounds of each range: lowest and highest middle of its boxes.
KERNEL bound_middles(GLOBAL const float4 *boxes, GLOBAL const uint *order, GLOBAL const uint *owner, int count, GLOBAL uint *bounds) {
    LOCAL_ARRAY(uint, here, 6);
    uint shared = owner_of_tile(owner, (uint)count), begin = group_index() * TILE, end = min(begin + TILE, (uint)count);
    if (local_index() < 6) here[local_index()] = local_index() < 3 ? NOTHING : 0u;
    BARRIER();
    for (uint i = begin + local_index(); i < end; i += GROUP_SIZE) {
        if (owner[i] == NOTHING) continue;
        uint3 middle = ordered_of(middle_of(stored_box(boxes, order[i])));
        if (shared != NOTHING) GROW(here, middle, middle)
        else GROW(bounds + 6 * owner[i], middle, middle)
    }
    BARRIER();
    if (shared == NOTHING) return;
    if (local_index() < 3) atomic_min(&bounds[6 * shared + local_index()], here[local_index()]);
    else if (local_index() < 6) atomic_max(&bounds[6 * shared + local_index()], here[local_index()]);
}

// The bin of a middle on an axis of a range's bounds.
DEVICE uint bin_of(GLOBAL const uint *bounds, float middle, uint axis) {
    float low = unordered(bounds[axis]), high = unordered(bounds[axis + 3]);
    float scale = high > low ? BINS * 0.999999f / larger(high - low, 1e-30f) : 0.0f;
    return (uint)clamp((middle - low) * scale, 0.0f, BINS - 1.0f);
}

KERNEL fill_bins(GLOBAL const float4 *boxes, GLOBAL const uint *order, GLOBAL const uint *owner, int count, GLOBAL const uint *bounds,
                 GLOBAL uint *bins) {
    LOCAL_ARRAY(uint, here, RANGE_WORDS);
    uint shared = owner_of_tile(owner, (uint)count), begin = group_index() * TILE, end = min(begin + TILE, (uint)count);
    for (uint k = local_index(); k < RANGE_WORDS; k += GROUP_SIZE) here[k] = k % BIN_WORDS >= 1u && k % BIN_WORDS <= 3u ? NOTHING : 0u;
    BARRIER();
    for (uint i = begin + local_index(); i < end; i += GROUP_SIZE) {
        if (owner[i] == NOTHING) continue;
        Box box = stored_box(boxes, order[i]);
        float3 middle = middle_of(box);
        uint3 low = ordered_of(box.low), high = ordered_of(box.high);
        for (uint axis = 0; axis < 3; axis++) {
            uint bin = (axis * BINS + bin_of(bounds + 6 * owner[i], axis_of(middle, axis), axis)) * BIN_WORDS;
            if (shared != NOTHING) {
                atomic_add(&here[bin], 1u);
                GROW(here + bin + 1, low, high)
            } else {
                GLOBAL uint *into = bins + owner[i] * RANGE_WORDS + bin;
                atomic_add(&into[0], 1u);
                GROW(into + 1, low, high)
            }
        }
    }
    BARRIER();
    if (shared == NOTHING) return;
    for (uint k = local_index(); k < RANGE_WORDS; k += GROUP_SIZE) {
        GLOBAL uint *into = bins + shared * RANGE_WORDS + k;
        uint word = k % BIN_WORDS;
        if (here[k / BIN_WORDS * BIN_WORDS] == 0u) continue;
        if (word == 0) atomic_add(into, here[k]);
        else if (word <= 3) atomic_min(into, here[k]);
        else atomic_max(into, here[k]);
    }
}

DEVICE Box box_of_bin(GLOBAL const uint *bin) {
    Box box;
    box.low = make_float3(unordered(bin[1]), unordered(bin[2]), unordered(bin[3]));
    box.high = make_float3(unordered(bin[4]), unordered(bin[5]), unordered(bin[6]));
    return box;
}

DEVICE Box nothing_in_it(void) {
    Box box = {{INFINITE, INFINITE, INFINITE}, {-INFINITE, -INFINITE, -INFINITE}};
    return box;
}

DEVICE uint node_number(uint cut_before, uint root) {
    uint number = cut_before - 1u;
    return number == root ? 0u : number == 0u ? root : number;
}

// Names the node of a range that is cut, and the leaves below it; how many primitives the right part has.
DEVICE uint name_node(GLOBAL float4 *nodes, const Range range, uint root) {
    GLOBAL float *words = (GLOBAL float *)nodes;
    uint number = node_number(range.start + range.cut, root), right = range.size - range.cut;
    if (range.slot != NOTHING) words[16 * (range.slot >> 1) + 12 + (range.slot & 1u)] = as_float((int)number);
    if (range.cut == 1) words[16 * number + 12] = as_float(~(int)(range.start * 8u));
    if (right == 1) words[16 * number + 13] = as_float(~(int)((range.start + range.cut) * 8u));
    return right;
}

// The number of a part among the ranges of the next level, NOTHING when it is small.
DEVICE uint hand_on(uint start, uint size, uint slot, GLOBAL Range *next, GLOBAL Range *smalls, GLOBAL uint *counts) {
    Range part = {start, size, slot, 0, 0, 0, NOTHING, NOTHING};
    if (size == 1) return NOTHING;
    if (size <= SMALL) {
        smalls[atomic_add(&counts[SMALLS], 1u)] = part;
        return NOTHING;
    }
    uint number = atomic_add(&counts[NEXT], 1u);
    next[number] = part;
    return number;
}

// The best plane of every range, its node's number, and its parts. `halve`: cut in the middle, so that no tree grows too deep.
KERNEL choose_planes(GLOBAL const uint *bins, int halve, GLOBAL Range *ranges, GLOBAL Range *next, GLOBAL Range *smalls,
                     GLOBAL uint *counts, GLOBAL float4 *nodes) {
    for (uint r = thread_index(); r < counts[HERE]; r += group_count() * GROUP_SIZE) {
        Range range = ranges[r];
        float best = INFINITE, from_right[BINS];
        range.axis = 0;
        range.plane = HALVED;
        range.cut = range.size / 2;
        for (uint axis = 0; axis < 3 && !halve; axis++) {
            GLOBAL const uint *bin = bins + r * RANGE_WORDS + axis * BINS * BIN_WORDS;
            Box box = nothing_in_it();
            for (uint k = BINS - 1; k > 0; k--) {
                if (bin[k * BIN_WORDS]) box = union_of(box, box_of_bin(bin + k * BIN_WORDS));
                from_right[k] = area_of(box);
            }
            uint lefts = 0;
            box = nothing_in_it();
            for (uint k = 0; k < BINS - 1; k++) {
                uint own = bin[k * BIN_WORDS];
                if (own) box = union_of(box, box_of_bin(bin + k * BIN_WORDS));
                lefts += own;
                if (own == 0 || lefts == range.size) continue;
                float cost = area_of(box) * (float)lefts + from_right[k + 1] * (float)(range.size - lefts);
                if (cost < best * FIRST) {
                    best = cost;
                    range.axis = axis;
                    range.plane = k;
                    range.cut = lefts;
                }
            }
        }
        if (range.slot == NOTHING) counts[ROOT] = range.start + range.cut - 1u;
        uint root = range.slot == NOTHING ? range.start + range.cut - 1u : counts[ROOT];
        uint right = name_node(nodes, range, root), node = node_number(range.start + range.cut, root);
        range.left = hand_on(range.start, range.cut, 2 * node, next, smalls, counts);
        range.right = hand_on(range.start + range.cut, right, 2 * node + 1, next, smalls, counts);
        ranges[r] = range;
    }
}

DEVICE bool goes_left(GLOBAL const float4 *boxes, GLOBAL const uint *bounds, const Range range, uint primitive, uint place, uint owner) {
    if (range.plane == HALVED) return place - range.start < range.cut;
    return bin_of(bounds + 6 * owner, axis_of(middle_of(stored_box(boxes, primitive)), range.axis), range.axis) <= range.plane;
}

// lefts: how many primitives before each one in its tile go left; sums: how many of the tile.
KERNEL mark_lefts(GLOBAL const float4 *boxes, GLOBAL const uint *order, GLOBAL const uint *owner, int count, GLOBAL const uint *bounds,
                  GLOBAL const Range *ranges, GLOBAL uint *lefts, GLOBAL uint *sums) {
    LOCAL_ARRAY(uint, before, GROUP_SIZE);
    uint begin = thread_index() * EACH, end = min(begin + EACH, (uint)count), own = 0;
    for (uint i = begin; i < end; i++) {
        lefts[i] = own;
        if (owner[i] != NOTHING && goes_left(boxes, bounds, ranges[owner[i]], order[i], i, owner[i])) own++;
    }
    add_up_group(before, own);
    uint earlier = before[local_index()] - own;
    for (uint i = begin; i < end; i++) lefts[i] += earlier;
    if (local_index() == GROUP_SIZE - 1) sums[group_index()] = before[local_index()];
}

// sums: of all tiles before each one. One group.
KERNEL add_up(GLOBAL uint *sums, int tiles, GLOBAL uint *counts) {
    LOCAL_ARRAY(uint, before, GROUP_SIZE);
    add_up_row(sums, (uint)tiles, before);
    if (local_index() == 0) {
        counts[HERE] = counts[NEXT];
        counts[NEXT] = 0;
    }
}

// Every primitive goes to its part of its range, the order within a part being kept.
KERNEL part_ranges(GLOBAL const float4 *boxes, GLOBAL const uint *order, GLOBAL const uint *owner, int count, GLOBAL const uint *bounds,
                   GLOBAL const Range *ranges, GLOBAL const uint *lefts, GLOBAL const uint *sums, GLOBAL uint *order_out,
                   GLOBAL uint *owner_out) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    uint primitive = order[i], own = owner[i], place = i, to = NOTHING;
    if (own != NOTHING) {
        Range range = ranges[own];
        uint earlier = lefts[i] + sums[i / TILE] - (lefts[range.start] + sums[range.start / TILE]);
        bool left = goes_left(boxes, bounds, range, primitive, i, own);
        place = range.start + (left ? earlier : range.cut + (i - range.start) - earlier);
        to = left ? range.left : range.right;
    }
    order_out[place] = primitive;
    owner_out[place] = to;
}

// The best cut of 2 to SMALL primitives along an axis, by their middles: its cost, and their order there.
DEVICE float best_cut(GLOBAL const float4 *boxes, const uint *members, uint size, uint axis, uint *sorted, uint *cut) {
    float middles[SMALL], from_right[SMALL], best;
    for (uint i = 0; i < size; i++) {
        float middle = axis_of(middle_of(stored_box(boxes, members[i])), axis);
        uint k = i;
        for (; k > 0 && middles[k - 1] > middle; k--) {
            middles[k] = middles[k - 1];
            sorted[k] = sorted[k - 1];
        }
        middles[k] = middle;
        sorted[k] = members[i];
    }
    Box box = nothing_in_it();
    for (uint k = size - 1; k > 0; k--) {
        box = union_of(box, stored_box(boxes, sorted[k]));
        from_right[k] = area_of(box);
    }
    float costs[SMALL];
    box = nothing_in_it();
    for (uint k = 1; k < size; k++) {
        box = union_of(box, stored_box(boxes, sorted[k - 1]));
        costs[k] = area_of(box) * (float)k + from_right[k] * (float)(size - k);
    }
    *cut = size / 2;  // of equal cuts, so that equal boxes make no chain
    best = costs[*cut];
    for (uint k = 1; k < size; k++) {
        if (costs[k] < best * FIRST) {
            best = costs[k];
            *cut = k;
        }
    }
    return best;
}

// One thread a range of 2 to SMALL primitives.
KERNEL finish_smalls(GLOBAL const float4 *boxes, GLOBAL uint *order, GLOBAL const Range *smalls, GLOBAL uint *counts, GLOBAL float4 *nodes) {
    for (uint s = thread_index(); s < counts[SMALLS]; s += group_count() * GROUP_SIZE) {
        Range pending[PENDING];
        uint top = 1, root = counts[ROOT];
        pending[0] = smalls[s];
        while (top > 0) {
            Range range = pending[--top];
            uint members[SMALL], sorted[SMALL], kept[SMALL];
            for (uint k = 0; k < range.size; k++) kept[k] = members[k] = order[range.start + k];
            float best = INFINITE;
            range.cut = range.size / 2;
            for (uint axis = 0; axis < 3; axis++) {
                uint cut = 1;
                float cost = best_cut(boxes, members, range.size, axis, sorted, &cut);
                if (cost < best * FIRST) {
                    best = cost;
                    range.cut = cut;
                    for (uint k = 0; k < range.size; k++) kept[k] = sorted[k];
                }
            }
            for (uint k = 0; k < range.size; k++) order[range.start + k] = kept[k];
            if (range.slot == NOTHING) root = range.start + range.cut - 1u;
            uint right_size = name_node(nodes, range, root), node = node_number(range.start + range.cut, root);
            Range left = {range.start, range.cut, 2 * node, 0, 0, 0, 0, 0};
            Range right = {range.start + range.cut, right_size, 2 * node + 1, 0, 0, 0, 0, 0};
            if (left.size > 1) pending[top++] = left;
            if (right.size > 1) pending[top++] = right;
        }
    }
}

// The primitives in sorted order, and the boxes of the leaves.
KERNEL lay_leaves(GLOBAL const float4 *primitives, GLOBAL const float4 *boxes, GLOBAL const uint *order, int count, GLOBAL float4 *sorted,
                  GLOBAL float4 *nodes) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    for (uint k = 0; k < 3; k++) sorted[3 * i + k] = primitives[3 * order[i] + k];
    if (i == (uint)count - 1u) return;
    for (uint slot = 2 * i; slot < 2 * i + 2; slot++) {
        int code = code_of_slot(nodes, slot);
        if (code < 0) put_slot(nodes, slot, stored_box(boxes, order[~code >> 3]), code);
    }
}
