// Axis-aligned bounding boxes, for builders. Until a build is finished, nodes hold min and max corners, as
// host_sah.NODE says. Slot 2 n + side is a child of node n: its box and its reference.
#include "bvh/geometry.h"

#define INVALID_INDEX 0xffffffffu
#define BOX_PAD 2.384185791015625e-7f  // 2^-22, of the coordinates

// Unsigned integers in the order of the floats, for atomic minima and maxima.
DEVICE uint ordered_from_float(float x) { return as_uint(x) ^ ((as_uint(x) >> 31) ? 0xffffffffu : 0x80000000u); }
DEVICE float float_from_ordered(uint x) { return as_float(x ^ ((x >> 31) ? 0x80000000u : 0xffffffffu)); }

typedef struct {
    float3 low, high;
} Box;

// The growth of t's rounding error by nearly parallel edges: 1 / sin of the angle between them, rounded up to at least
// the host's value.
DEVICE float sliver_error(float3 edge1, float3 edge2) {
    float longest1 = max_nnan(max_nnan(fabs(edge1.x), fabs(edge1.y)), fabs(edge1.z));
    float longest2 = max_nnan(max_nnan(fabs(edge2.x), fabs(edge2.y)), fabs(edge2.z));
    if (longest1 == 0.0f || longest2 == 0.0f) return 1.0f;
    float3 a = make_float3(edge1.x / longest1, edge1.y / longest1, edge1.z / longest1);  // at any scale
    float3 b = make_float3(edge2.x / longest2, edge2.y / longest2, edge2.z / longest2);
    float3 normal = cross_fma(a, b);
    float size = sqrt(dot_fma(a, a) * dot_fma(b, b)), area = sqrt(dot_fma(normal, normal));
    float error = area > size * BOX_PAD ? size / area : 1.0f;
    return max_nnan(1.0f, error * fma(error, 4.0e-7f, 1.001f));
}

// As host_sah.primitive_boxes: padded for the rounding of hits.
DEVICE Box box_of(const Primitive p) {
    float3 a = xyz(p.v0), b = a + xyz(p.edge1), c = a + xyz(p.edge2);
    float radius = p.edge2.w;
    Box box;
    box.low = make_float3(min_nnan(min_nnan(a.x, b.x), c.x) - radius, min_nnan(min_nnan(a.y, b.y), c.y) - radius,
                          min_nnan(min_nnan(a.z, b.z), c.z) - radius);
    box.high = make_float3(max_nnan(max_nnan(a.x, b.x), c.x) + radius, max_nnan(max_nnan(a.y, b.y), c.y) + radius,
                           max_nnan(max_nnan(a.z, b.z), c.z) + radius);
    float3 extent =
        make_float3(max_nnan(fabs(box.low.x), fabs(box.high.x)), max_nnan(fabs(box.low.y), fabs(box.high.y)),
                    max_nnan(fabs(box.low.z), fabs(box.high.z)));
    float more =
        fma((sliver_error(xyz(p.edge1), xyz(p.edge2)) - 1.0f) * max_nnan(max_nnan(extent.x, extent.y), extent.z),
            BOX_PAD, 1e-30f);
    float3 pad = make_float3(fma(extent.x, BOX_PAD, more), fma(extent.y, BOX_PAD, more), fma(extent.z, BOX_PAD, more));
    box.low = box.low - pad;
    box.high = box.high + pad;
    return box;
}

DEVICE float3 centroid(const Box box) {
    return make_float3(0.5f * box.low.x + 0.5f * box.high.x, 0.5f * box.low.y + 0.5f * box.high.y,
                       0.5f * box.low.z + 0.5f * box.high.z);
}

DEVICE float component(float3 p, uint axis) { return axis == 0 ? p.x : axis == 1 ? p.y : p.z; }

DEVICE Box box_union(const Box a, const Box b) {
    Box c;
    c.low = make_float3(min_nnan(a.low.x, b.low.x), min_nnan(a.low.y, b.low.y), min_nnan(a.low.z, b.low.z));
    c.high = make_float3(max_nnan(a.high.x, b.high.x), max_nnan(a.high.y, b.high.y), max_nnan(a.high.z, b.high.z));
    return c;
}

DEVICE float half_area(const Box box) {
    float x = box.high.x - box.low.x, y = box.high.y - box.low.y, z = box.high.z - box.low.z;
    return fma(x, y, fma(y, z, z * x));
}

DEVICE Box box_of_slot(GLOBAL const float4 *nodes, uint slot) {
    GLOBAL const float4 *node = nodes + 4 * (slot >> 1);
    float4 xy = node[slot & 1u], z = node[2];
    Box box;
    box.low = make_float3(xy.x, xy.z, (slot & 1u) ? z.z : z.x);
    box.high = make_float3(xy.y, xy.w, (slot & 1u) ? z.w : z.y);
    return box;
}

// The child reference of a slot, as in bvh/traverse_bvh2.h.
DEVICE int ref_of_slot(GLOBAL const float4 *nodes, uint slot) {
    return as_int(((GLOBAL const float *)nodes)[16 * (slot >> 1) + 12 + (slot & 1u)]);
}

DEVICE void write_slot(GLOBAL float4 *nodes, uint slot, const Box box, int child_ref) {
    GLOBAL float *node = (GLOBAL float *)(nodes + 4 * (slot >> 1));
    uint side = slot & 1u;
    node[4 * side] = box.low.x;
    node[4 * side + 1] = box.high.x;
    node[4 * side + 2] = box.low.y;
    node[4 * side + 3] = box.high.y;
    node[8 + 2 * side] = box.low.z;
    node[9 + 2 * side] = box.high.z;
    node[12 + side] = as_float(child_ref);
}
