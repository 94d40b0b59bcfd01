// Cuts triangles into parts with boxes of their own before a tree is built over them (T. Karras and T. Aila 2013). A part is cut near
// the middle of its longest side, at the coarsest plane of a power-of-two grid over the scene that lies in the middle half, so that
// neighbours are cut at the same planes.
#include "bvh/aabb.h"

#define PENDING 33        // parts that wait while the one with fewer cuts is cut on
#define FINEST 4194304.0f  // planes of the grid
#define EDGE_ROOM (2.0f * EDGE)
#define WORTH_CUTTING 16.0f  // lengths of the room around a part

typedef struct {
    Box box;
    float longest;  // of its sides, 0 where nothing of the triangle is in it
    uint cuts;      // still to make
} Part;

typedef struct {
    float3 a, b, c, room;  // corners, and what a part's box grows by on each side
    Box whole;
} Cutting;

DEVICE void take_point(Box *box, float3 p) {
    Box point = {p, p};
    *box = union_of(*box, point);
}

DEVICE void cut_edge(float3 p, float3 q, uint axis, float plane, Box *below, Box *above) {
    float from = axis_of(p, axis), to = axis_of(q, axis);
    if (from <= plane) take_point(below, p);
    if (from >= plane) take_point(above, p);
    if ((from < plane) == (to < plane)) return;
    float3 between = along(p, q - p, (plane - from) / (to - from));
    take_point(below, between);
    take_point(above, between);
}

DEVICE float3 with_axis(float3 p, uint axis, float value) {
    return make_float3(axis == 0 ? value : p.x, axis == 1 ? value : p.y, axis == 2 ? value : p.z);
}

DEVICE Box overlap_of(const Box a, float3 low, float3 high) {
    Box c;
    c.low = make_float3(larger(a.low.x, low.x), larger(a.low.y, low.y), larger(a.low.z, low.z));
    c.high = make_float3(smaller(a.high.x, high.x), smaller(a.high.y, high.y), smaller(a.high.z, high.z));
    return c;
}

// The longest side of a box; 0 for one that is empty, and not by rounding alone.
DEVICE float length_of(const Box box, float3 room) {
    float3 size = box.high - box.low;
    bool empty = size.x < -room.x || size.y < -room.y || size.z < -room.z;
    return empty ? 0.0f : larger(larger(size.x, size.y), larger(size.z, 0.0f));
}

// Between a part's ends along an axis; `corner` and `size` are the grid's.
DEVICE float plane_between(float low, float high, float corner, float size) {
    float quarter = 0.25f * (high - low), unit = FINEST / size, middle = low + 2.0f * quarter;
    uint first = (uint)ceil(larger((low + quarter - corner) * unit, 1.0f));
    uint last = (uint)larger((high - quarter - corner) * unit, 0.0f);
    if (first > last) return middle;
    uint coarsest = 31u - (uint)clz((first - 1u) ^ last);
    float plane = fma((float)(last >> coarsest << coarsest), size / FINEST, corner);
    return plane > low && plane < high ? plane : middle;
}

// Cuts a part in two, which share the cuts that remain by their lengths. Whether there is anything of the triangle in them.
DEVICE bool cut_part(const Cutting t, const Part part, float4 grid, Part *below, Part *above) {
    float3 low = part.box.low, high = part.box.high, size = high - low;
    uint axis = size.x >= size.y && size.x >= size.z ? 0u : size.y >= size.z ? 1u : 2u;
    float plane = plane_between(axis_of(low, axis), axis_of(high, axis), axis_of(xyz(grid), axis), grid.w);
    Box nothing = {{INFINITE, INFINITE, INFINITE}, {-INFINITE, -INFINITE, -INFINITE}}, first = nothing, second = nothing;
    cut_edge(t.a, t.b, axis, plane, &first, &second);
    cut_edge(t.b, t.c, axis, plane, &first, &second);
    cut_edge(t.c, t.a, axis, plane, &first, &second);
    below->box = overlap_of(first, low, with_axis(high, axis, plane));
    above->box = overlap_of(second, with_axis(low, axis, plane), high);
    below->longest = length_of(below->box, t.room);
    above->longest = length_of(above->box, t.room);
    float both = below->longest + above->longest;
    uint cuts = part.cuts - 1u;
    below->cuts = both > 0.0f ? min((uint)fma((float)cuts, below->longest / both, 0.5f), cuts) : 0u;
    above->cuts = cuts - below->cuts;
    return both > 0.0f;
}

// With room for the rounding of cuts and walks: hits lie as far off a triangle as its edges are widened, and where these are nearly
// parallel, as their rounding from `reach` away is multiplied.
DEVICE Cutting cutting_of(const Primitive p, float reach) {
    Cutting t;
    float3 edge1 = xyz(p.edge1), edge2 = xyz(p.edge2);
    t.a = xyz(p.corner);
    t.b = t.a + edge1;
    t.c = t.a + edge2;
    t.whole = box_of(p);
    float more = fma(reach * flatness_of(edge1, edge2), ULP, 1e-30f);
    t.room = make_float3(fma(fabs(edge1.x) + fabs(edge2.x), EDGE_ROOM, fma(larger(fabs(t.whole.low.x), fabs(t.whole.high.x)), 2.0f * ULP, more)),
                         fma(fabs(edge1.y) + fabs(edge2.y), EDGE_ROOM, fma(larger(fabs(t.whole.low.y), fabs(t.whole.high.y)), 2.0f * ULP, more)),
                         fma(fabs(edge1.z) + fabs(edge2.z), EDGE_ROOM, fma(larger(fabs(t.whole.low.z), fabs(t.whole.high.z)), 2.0f * ULP, more)));
    return t;
}

DEVICE void put_part(const Cutting t, Box box, GLOBAL float4 *boxes) {
    Box roomy = {box.low - t.room, box.high + t.room};
    box = overlap_of(roomy, t.whole.low, t.whole.high);
    boxes[0] = with_w(box.low, 0.0f);
    boxes[1] = with_w(box.high, 0.0f);
}

// Cuts triangle i as often as cuts[i] says, or less often where parts would be all room; no sphere. `ends` gets how many parts come of it; or,
// with `emit`, it says where the parts of the primitives up to each one end, and every part gets its box and a copy of its primitive.
// grid: lowest corner and size of the scene, and from how far away rays come.
KERNEL cut_primitives(GLOBAL const float4 *primitives, int count, GLOBAL const uint *cuts, GLOBAL const float4 *grid, int emit,
                      GLOBAL uint *ends, GLOBAL float4 *boxes, GLOBAL float4 *parts) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Primitive p = primitive_at(primitives, (int)i);
    Cutting t = cutting_of(p, grid[1].x);
    float least = WORTH_CUTTING * larger(larger(t.room.x, t.room.y), t.room.z);
    Part pending[PENDING];
    uint top = 1, made = 0, begin = emit && i > 0 ? ends[i - 1] : 0u;
    pending[0].box = t.whole;
    pending[0].longest = length_of(t.whole, t.room);
    pending[0].cuts = p.edge2.w > 0.0f ? 0u : cuts[i];
    while (top > 0) {
        Part part = pending[--top];
        Part below, above;
        if (part.cuts > 0 && part.longest > least && cut_part(t, part, grid[0], &below, &above)) {
            bool swap = below.cuts <= above.cuts;  // the one with fewer cuts is cut first, so that few wait
            if (swap && above.longest > 0.0f) pending[top++] = above;
            if (below.longest > 0.0f) pending[top++] = below;
            if (!swap && above.longest > 0.0f) pending[top++] = above;
            continue;
        }
        if (emit) {
            uint at = begin + made;
            put_part(t, part.box, boxes + 2 * at);
            for (uint k = 0; k < 3; k++) parts[3 * at + k] = primitives[3 * i + k];
        }
        made++;
    }
    if (!emit) ends[i] = made;
}
