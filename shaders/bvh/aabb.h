// Axis-aligned bounding boxes and BVH2 nodes for the builders (build_hploc.cu, build_sah.cu, presplit.cu and others).
// During a build a node, 64 bytes, holds the min and max corners of its two children's boxes (NODE of
// renderer/bvh/host_sah.py); center_nodes.cu converts them at the end. A node is four rows of float4:
//     min x, max x, min y, max y of child 0
//     min x, max x, min y, max y of child 1
//     min z, max z of child 0; min z, max z of child 1
//     child references (ints, defined in traverse_bvh2.h) of child 0 and 1; two unused words
// Slot 2 n + side (side 0 or 1) stands for one child of node n: its box and its child reference.
#include "bvh/geometry.h"
#include "common/ordered_float.h"

#define INVALID_INDEX 0xffffffffu
#define BOX_PAD 2.384185791015625e-7f  // 2^-22: padding of a box relative to its coordinates

// Decodes three words that ordered_from_float encoded.
DEVICE float3 float3_from_ordered(GLOBAL const uint *words) {
    return make_float3(float_from_ordered(words[0]), float_from_ordered(words[1]), float_from_ordered(words[2]));
}

// Initializes a group's bounds in local memory: three minima, then three maxima, encoded by ordered_from_float. All
// threads of the group must call.
DEVICE void empty_bounds(LOCAL uint *shared) {
    if (local_index() < 6) shared[local_index()] = local_index() < 3 ? INVALID_INDEX : 0u;
    BARRIER();
}
// Merges a group's bounds into `bounds`, which are encoded alike, by atomics of the first six threads.
DEVICE void merge_bounds(GLOBAL uint *bounds, LOCAL const uint *shared) {
    if (local_index() < 3)
        atomic_min(&bounds[local_index()], shared[local_index()]);
    else if (local_index() < 6)
        atomic_max(&bounds[local_index()], shared[local_index()]);
}

typedef struct {
    float3 low, high;
} Box;

DEVICE Box empty_box(void) {
    Box box = {splat3(FLT_MAX), splat3(-FLT_MAX)};
    return box;
}

// Box i of an array (count, 2) of float4: min corner, max corner; w is unused.
DEVICE Box stored_box(GLOBAL const float4 *boxes, uint i) {
    Box box = {xyz(boxes[2 * i]), xyz(boxes[2 * i + 1])};
    return box;
}
DEVICE void store_box(GLOBAL float4 *boxes, uint i, const Box box) {
    boxes[2 * i] = with_w(box.low, 0.0f);
    boxes[2 * i + 1] = with_w(box.high, 0.0f);
}

// The factor by which nearly parallel edges increase the rounding error of t: 1 / sin of the angle between the edges,
// rounded up so that it is at least the value that the host computes.
DEVICE float sliver_error(float3 edge1, float3 edge2) {
    float longest1 = largest_of3(abs3(edge1)), longest2 = largest_of3(abs3(edge2));
    if (longest1 == 0.0f || longest2 == 0.0f) return 1.0f;
    float3 a = edge1 / longest1, b = edge2 / longest2, normal = cross_fma(a, b);  // scaled against overflow
    float size = sqrt(dot_fma(a, a) * dot_fma(b, b)), area = sqrt(dot_fma(normal, normal));
    float error = area > size * BOX_PAD ? size / area : 1.0f;  // 1: parallel edges, which no ray hits
    return max_nnan(1.0f, error * fma(error, 4.0e-7f, 1.001f));
}

// The bounding box of a primitive, padded for the rounding of hits; primitive_boxes of renderer/bvh/host_sah.py
// computes the same.
DEVICE Box box_of(const Primitive p) {
    float3 a = xyz(p.v0), b = a + xyz(p.edge1), c = a + xyz(p.edge2);
    float radius = p.edge2.w;
    Box box = {min3(min3(a, b), c) - splat3(radius), max3(max3(a, b), c) + splat3(radius)};
    float3 extent = max3(abs3(box.low), abs3(box.high));
    float extra = fma((sliver_error(xyz(p.edge1), xyz(p.edge2)) - 1.0f) * largest_of3(extent), BOX_PAD, 1e-30f);
    float3 pad = madd(extent, BOX_PAD, splat3(extra));
    box.low = box.low - pad;
    box.high = box.high + pad;
    return box;
}

DEVICE float3 centroid(const Box box) { return box.low * 0.5f + box.high * 0.5f; }

DEVICE float component(float3 p, uint axis) { return axis == 0 ? p.x : axis == 1 ? p.y : p.z; }

DEVICE Box box_union(const Box a, const Box b) {
    Box both = {min3(a.low, b.low), max3(a.high, b.high)};
    return both;
}

// The box around a box and a point.
DEVICE Box box_with_point(const Box box, float3 p) {
    Box point = {p, p};
    return box_union(box, point);
}

// Half of a box's surface area.
DEVICE float half_area(const Box box) {
    float3 size = box.high - box.low;
    return fma(size.x, size.y, fma(size.y, size.z, size.z * size.x));
}

// The box of a slot.
DEVICE Box box_of_slot(GLOBAL const float4 *nodes, uint slot) {
    GLOBAL const float4 *node = nodes + 4 * (slot >> 1);
    float4 xy = node[slot & 1u], z = node[2];
    Box box = {make_float3(xy.x, xy.z, (slot & 1u) ? z.z : z.x), make_float3(xy.y, xy.w, (slot & 1u) ? z.w : z.y)};
    return box;
}

// The box around both children of a node.
DEVICE Box box_of_node(GLOBAL const float4 *nodes, uint node) {
    return box_union(box_of_slot(nodes, 2 * node), box_of_slot(nodes, 2 * node + 1));
}

// The child reference of a slot (bvh/traverse_bvh2.h).
DEVICE int ref_of_slot(GLOBAL const float4 *nodes, uint slot) {
    return as_int(((GLOBAL const float *)nodes)[16 * (slot >> 1) + 12 + (slot & 1u)]);
}

// Writes a child's box and reference into its slot.
DEVICE void write_slot(GLOBAL float4 *nodes, uint slot, const Box box, int child_ref) {
    GLOBAL float *node = (GLOBAL float *)(nodes + 4 * (slot >> 1));
    uint side = slot & 1u;
    nodes[4 * (slot >> 1) + side] = make_float4(box.low.x, box.high.x, box.low.y, box.high.y);
    node[8 + 2 * side] = box.low.z;
    node[9 + 2 * side] = box.high.z;
    node[12 + side] = as_float(child_ref);
}
