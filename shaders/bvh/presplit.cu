// Splits triangles into references with boxes of their own before a BVH is built (T. Karras and T. Aila 2013). A
// reference is split near the middle of its longest side, at the coarsest plane of a power-of-two grid over the scene
// that lies in the middle half, so that neighbors are split at the same planes.
#include "bvh/aabb.h"

#define PENDING_STACK 33        // references that wait while the one with fewer splits is split on
#define GRID_CELLS 4194304.0f  // planes of the grid
#define EDGE_PADDING (2.0f * EDGE_EPSILON)
#define MIN_SPLIT_SIZE 16.0f  // of a reference's longest side, in lengths of its padding

typedef struct {
    Box box;
    float longest_side;  // of the box; 0 if it contains nothing of the triangle
    uint splits;         // still to make
} PrimRef;

typedef struct {
    float3 a, b, c, padding;  // vertices, and the padding of a reference's box on each side
    Box whole;
} SplitTriangle;

DEVICE void grow_box(Box *box, float3 p) {
    Box point = {p, p};
    *box = box_union(*box, point);
}

DEVICE void split_edge(float3 p, float3 q, uint axis, float plane, Box *below, Box *above) {
    float from = component(p, axis), to = component(q, axis);
    if (from <= plane) grow_box(below, p);
    if (from >= plane) grow_box(above, p);
    if ((from < plane) == (to < plane)) return;
    float3 between = madd(q - p, (plane - from) / (to - from), p);
    grow_box(below, between);
    grow_box(above, between);
}

DEVICE float3 with_axis(float3 p, uint axis, float value) {
    return make_float3(axis == 0 ? value : p.x, axis == 1 ? value : p.y, axis == 2 ? value : p.z);
}

DEVICE Box box_overlap(const Box a, float3 low, float3 high) {
    Box both = {max3(a.low, low), min3(a.high, high)};
    return both;
}

// The longest side of a box; 0 for an empty one, beyond rounding.
DEVICE float longest_side_of(const Box box, float3 padding) {
    float3 size = box.high - box.low;
    bool empty = size.x < -padding.x || size.y < -padding.y || size.z < -padding.z;
    return empty ? 0.0f : max_nnan(max_nnan(size.x, size.y), max_nnan(size.z, 0.0f));
}

// The splitting plane of a reference between its ends on an axis; `corner` and `size` are the grid's.
DEVICE float plane_between(float low, float high, float corner, float size) {
    float quarter = 0.25f * (high - low), unit = GRID_CELLS / size, middle = low + 2.0f * quarter;
    uint first = (uint)ceil(max_nnan((low + quarter - corner) * unit, 1.0f));
    uint last = (uint)max_nnan((high - quarter - corner) * unit, 0.0f);
    if (first > last) return middle;
    uint coarsest = 31u - (uint)clz((first - 1u) ^ last);
    float plane = fma((float)(last >> coarsest << coarsest), size / GRID_CELLS, corner);
    return plane > low && plane < high ? plane : middle;
}

// Splits a reference in two and distributes the remaining splits by their lengths; false if neither contains anything
// of the triangle.
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

// A triangle and the padding of its references' boxes, for the rounding of splits and of traversal: hits may lie off
// the triangle by EDGE_EPSILON times its edges, and by the rounding error of t at `distance`, which grows with 1 / sin
// of the angle between the edges.
DEVICE SplitTriangle split_triangle(const Primitive p, float distance) {
    SplitTriangle t;
    float3 edge1 = xyz(p.edge1), edge2 = xyz(p.edge2);
    t.a = xyz(p.v0);
    t.b = t.a + edge1;
    t.c = t.a + edge2;
    t.whole = box_of(p);
    float more = fma(distance * sliver_error(edge1, edge2), BOX_PAD, 1e-30f);
    float3 farthest = max3(abs3(t.whole.low), abs3(t.whole.high));
    t.padding = madd(abs3(edge1) + abs3(edge2), EDGE_PADDING, madd(farthest, 2.0f * BOX_PAD, splat3(more)));
    return t;
}

DEVICE void write_ref(const SplitTriangle t, const Box box, GLOBAL float4 *boxes, uint i) {
    Box roomy = {box.low - t.padding, box.high + t.padding};
    store_box(boxes, i, box_overlap(roomy, t.whole.low, t.whole.high));
}

// Splits triangle i splits[i] times, less often where references would be mostly padding; never a sphere. Without
// `emit`, ends[i] becomes the number of references. With `emit`, ends holds their inclusive prefix sums, and every
// reference gets its box and a copy of its primitive. grid: min corner and size of the scene, then the distance from
// which rays come.
KERNEL split_primitives(GLOBAL const float4 *primitives, int count, GLOBAL const uint *splits,
                        GLOBAL const float4 *grid, int emit, GLOBAL uint *ends, GLOBAL float4 *boxes,
                        GLOBAL float4 *refs) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Primitive p = primitive_at(primitives, (int)i);
    SplitTriangle t = split_triangle(p, grid[1].x);
    float least = MIN_SPLIT_SIZE * largest_of3(t.padding);
    PrimRef pending[PENDING_STACK];
    uint top = 1, made = 0, begin = emit && i > 0 ? ends[i - 1] : 0u;
    pending[0].box = t.whole;
    pending[0].longest_side = longest_side_of(t.whole, t.padding);
    pending[0].splits = p.edge2.w > 0.0f ? 0u : splits[i];
    while (top > 0) {
        PrimRef ref = pending[--top];
        PrimRef below, above;
        if (ref.splits > 0 && ref.longest_side > least && split_ref(t, ref, grid[0], &below, &above)) {
            bool swap = below.splits <= above.splits;  // the one with fewer splits goes first, so that few wait
            if (swap && above.longest_side > 0.0f) pending[top++] = above;
            if (below.longest_side > 0.0f) pending[top++] = below;
            if (!swap && above.longest_side > 0.0f) pending[top++] = above;
            continue;
        }
        if (emit) {
            uint at = begin + made;
            write_ref(t, ref.box, boxes, at);
            for (uint k = 0; k < 3; k++) refs[3 * at + k] = primitives[3 * i + k];
        }
        made++;
    }
    if (!emit) ends[i] = made;
}
