// Pre-splits large triangles before a BVH is built (T. Karras and T. Aila 2013), so that boxes fit long and slanted
// triangles better; bvh/build_sah.cu builds over the result. A triangle becomes several references: copies of its
// primitive, each with the box of a piece of the triangle. A reference is split on its longest axis, at the coarsest
// plane of a power-of-two grid over the scene that lies in the middle half of the reference, so that neighboring
// triangles are split at the same planes. In: primitives, and the number of splits that each may take, which
// renderer/bvh/presplit.py allots. Out: the references' boxes, and a copy of the primitive for each (split_primitives).
#include "bvh/aabb.h"

#define PENDING_STACK 33  // the most references that wait to be split: the half with fewer splits goes first
#define GRID_CELLS 4194304.0f  // 2^22: cells of the grid on each axis
#define EDGE_PADDING (2.0f * EDGE_EPSILON)
#define MIN_SPLIT_SIZE 16.0f  // a reference is split if its longest side is longer than this many paddings

typedef struct {
    Box box;
    float longest_side;  // longest side of the box; 0 if the box contains no point of the triangle
    uint splits;  // number of splits left to make within it
} PrimRef;

typedef struct {
    float3 a, b, c, padding;  // vertices, and the padding of a reference's box on each side
    Box bounds;  // bounds of the triangle, padded
} SplitTriangle;

// Extends `below` and `above` by the parts of the edge p q on either side of a plane.
DEVICE_NOINLINE_CPU void split_edge(float3 p, float3 q, uint axis, float plane, Box *below, Box *above) {
    float p_axis = component(p, axis), q_axis = component(q, axis);
    if (p_axis <= plane) *below = box_with_point(*below, p);
    if (p_axis >= plane) *above = box_with_point(*above, p);
    if ((p_axis < plane) == (q_axis < plane)) return;
    float3 crossing = madd(q - p, (plane - p_axis) / (q_axis - p_axis), p);
    *below = box_with_point(*below, crossing);
    *above = box_with_point(*above, crossing);
}

// p with its coordinate on `axis` replaced by `value`.
DEVICE float3 with_axis(float3 p, uint axis, float value) {
    return make_float3(axis == 0 ? value : p.x, axis == 1 ? value : p.y, axis == 2 ? value : p.z);
}

DEVICE Box box_overlap(const Box a, float3 low, float3 high) {
    Box both = {max3(a.low, low), min3(a.high, high)};
    return both;
}

// The longest side of a box; 0 for a box that is empty by more than the rounding error `padding`.
DEVICE float longest_side_of(const Box box, float3 padding) {
    float3 size = box.high - box.low;
    bool empty = size.x < -padding.x || size.y < -padding.y || size.z < -padding.z;
    return empty ? 0.0f : max_nnan(max_nnan(size.x, size.y), max_nnan(size.z, 0.0f));
}

// The splitting plane of a reference from `low` to `high` on an axis: the coarsest grid plane in its middle half, or
// its middle. `corner` and `size`: where the grid starts on the axis, and its length.
DEVICE float plane_between(float low, float high, float corner, float size) {
    float quarter = 0.25f * (high - low), unit = GRID_CELLS / size, middle = low + 2.0f * quarter;
    // at least 1, so that first - 1 does not wrap
    uint first = (uint)ceil(max_nnan((low + quarter - corner) * unit, 1.0f));
    uint last = (uint)max_nnan((high - quarter - corner) * unit, 0.0f);
    // Grid planes first to last lie in the middle half. In the highest bit in which first - 1 and last differ, last is
    // set: with the bits below it cleared, last is the plane among them that more powers of 2 divide than any other.
    if (first > last) return middle;
    uint coarsest = 31u - (uint)clz((first - 1u) ^ last);
    float plane = fma((float)(last >> coarsest << coarsest), size / GRID_CELLS, corner);
    return plane > low && plane < high ? plane : middle;
}

// Splits a reference in two and distributes the remaining splits in proportion to the halves' longest sides. Returns
// false if neither half contains a point of the triangle. grid: min corner and, in w, size.
DEVICE bool split_ref(const SplitTriangle t, const PrimRef ref, float4 grid, PrimRef *below, PrimRef *above) {
    float3 low = ref.box.low, high = ref.box.high, size = high - low;
    uint axis = size.x >= size.y && size.x >= size.z ? 0u : size.y >= size.z ? 1u : 2u;
    float plane = plane_between(component(low, axis), component(high, axis), component(xyz(grid), axis), grid.w);
    Box first = empty_box(), second = empty_box();
    split_edge(t.a, t.b, axis, plane, &first, &second);
    split_edge(t.b, t.c, axis, plane, &first, &second);
    split_edge(t.c, t.a, axis, plane, &first, &second);
    below->box = box_overlap(first, low, with_axis(high, axis, plane));
    above->box = box_overlap(second, with_axis(low, axis, plane), high);
    below->longest_side = longest_side_of(below->box, t.padding);
    above->longest_side = longest_side_of(above->box, t.padding);
    float both = below->longest_side + above->longest_side;
    uint splits = ref.splits - 1u;
    below->splits = both > 0.0f ? min((uint)fma((float)splits, below->longest_side / both, 0.5f), splits) : 0u;
    above->splits = splits - below->splits;
    return both > 0.0f;
}

// Prepares a triangle for splitting: its vertices, its box and the padding of its references' boxes, which covers the
// rounding of splits and of hits. A hit may be off the triangle by EDGE_EPSILON times its edges plus the rounding error
// of t at `distance`, the distance from which rays come; that error grows with 1 / sin of the angle between the edges.
DEVICE SplitTriangle split_triangle(const Primitive p, float distance) {
    SplitTriangle t;
    float3 edge1 = xyz(p.edge1), edge2 = xyz(p.edge2);
    t.a = xyz(p.v0);
    t.b = t.a + edge1;
    t.c = t.a + edge2;
    t.bounds = box_of(p);
    float extra = fma(distance * sliver_error(edge1, edge2), BOX_PAD, 1e-30f);
    float3 farthest = max3(abs3(t.bounds.low), abs3(t.bounds.high));
    t.padding = madd(abs3(edge1) + abs3(edge2), EDGE_PADDING, madd(farthest, 2.0f * BOX_PAD, splat3(extra)));
    return t;
}

// Writes the padded box of reference i, clipped to the box of the triangle.
DEVICE void write_ref(const SplitTriangle t, const Box box, GLOBAL float4 *boxes, uint i) {
    Box padded = {box.low - t.padding, box.high + t.padding};
    store_box(boxes, i, box_overlap(padded, t.bounds.low, t.bounds.high));
}

// One thread per primitive: splits triangle i at most splits[i] times, less often where references would be mostly
// padding; spheres are not split. The kernel runs twice. Without `emit` it counts: ends[i] becomes the number of
// references. With `emit`, ends holds the inclusive prefix sums of these counts, and the kernel writes the box of every
// reference to `boxes` and a copy of its primitive to `refs`. grid[0]: min corner and, in w, size of the scene;
// grid[1].x: the distance from which rays come.
KERNEL split_primitives(GLOBAL const float4 *primitives, int count, GLOBAL const uint *splits,
                        GLOBAL const float4 *grid, int emit, GLOBAL uint *ends, GLOBAL float4 *boxes,
                        GLOBAL float4 *refs) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Primitive p = primitive_at(primitives, (int)i);
    SplitTriangle t = split_triangle(p, grid[1].x);
    float min_side = MIN_SPLIT_SIZE * largest_of3(t.padding);
    PrimRef pending[PENDING_STACK];
    uint top = 1, made = 0, begin = emit && i > 0 ? ends[i - 1] : 0u;
    pending[0].box = t.bounds;
    pending[0].longest_side = longest_side_of(t.bounds, t.padding);
    pending[0].splits = p.edge2.w > 0.0f ? 0u : splits[i];
    while (top > 0) {
        PrimRef ref = pending[--top];
        PrimRef below, above;
        if (ref.splits > 0 && ref.longest_side > min_side && split_ref(t, ref, grid[0], &below, &above)) {
            bool swap = below.splits <= above.splits;  // the one with fewer splits is popped first, so that few wait
            if (swap && above.longest_side > 0.0f) pending[top++] = above;
            if (below.longest_side > 0.0f) pending[top++] = below;
            if (!swap && above.longest_side > 0.0f) pending[top++] = above;
            continue;
        }
        if (emit) {
            uint index = begin + made;
            write_ref(t, ref.box, boxes, index);
            for (uint k = 0; k < 3; k++) refs[3 * index + k] = primitives[3 * i + k];
        }
        made++;
    }
    if (!emit) ends[i] = made;
}
