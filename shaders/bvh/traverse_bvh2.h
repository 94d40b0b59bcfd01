// Traversal of BVH2 by one thread a ray: closest hit and any hit. A 64-byte node holds the boxes of both children (T.
// Aila and S. Laine 2009) by center and half extent: a plane costs two multiply-adds and no selection by the signs of
// the direction.
//     words 0-2 center, 4-6 half extent of the first child; 8-10 and 12-14 of the second; 3 and 7 their references; 11
//     and 15 unused
// A child reference is the index of an inner node, or ~(first * 8 + count - 1) for a leaf of up to 8 primitives in leaf
// order.
#include "bvh/geometry.h"

#define STACK_SENTINEL ((int)0x80000000)
#define STACK_SIZE 64  // no builder makes a deeper BVH
#define ROOT_NODE 0

// A ray for slab tests (T. Kay and J. Kajiya 1986).
// Near planes are moved closer by the rounding error of the origin's term and far planes farther, so that no box is
// missed whose primitive is hit; the boxes themselves are padded for the planes' term.
typedef struct {
    float3 inverse, abs_inverse, near_bias, far_bias;
} SlabRay;

DEVICE float safe_inverse(float d) {
    // at least 2^-60, so that no 0 * infinity follows
    return fast_rcp(as_float((as_uint(d) & 0x80000000u) | as_uint(max_nnan(fabs(d), 8.6736174e-19f))));
}

DEVICE SlabRay slab_ray(float3 origin, float3 direction) {
    SlabRay s;
    s.inverse = make_float3(safe_inverse(direction.x), safe_inverse(direction.y), safe_inverse(direction.z));
    s.abs_inverse = make_float3(fabs(s.inverse.x), fabs(s.inverse.y), fabs(s.inverse.z));
    float origin_error = max_nnan(max_nnan(fabs(origin.x), fabs(origin.y)), fabs(origin.z)) * 2.4e-7f;  // 2^-22
    float3 slack =
        make_float3(s.abs_inverse.x * origin_error, s.abs_inverse.y * origin_error, s.abs_inverse.z * origin_error);
    s.near_bias = make_float3(fma(-origin.x, s.inverse.x, -slack.x), fma(-origin.y, s.inverse.y, -slack.y),
                              fma(-origin.z, s.inverse.z, -slack.z));
    s.far_bias = make_float3(fma(-origin.x, s.inverse.x, slack.x), fma(-origin.y, s.inverse.y, slack.y),
                             fma(-origin.z, s.inverse.z, slack.z));
    return s;
}

// The children of a node: whether the ray meets their boxes before t_max, at which distances it enters them, and their
// references.
typedef struct {
    float near1, near2;
    int left, right;
    bool hit1, hit2;
} Children;

// Whether the ray meets a box before `t_max`, and the distance at which it enters it. An empty box has a negative half
// extent.
DEVICE bool intersect_box(const SlabRay s, float4 center, float4 half_extent, float t_max, float *near) {
    *near = max3_relu(fma(-half_extent.x, s.abs_inverse.x, fma(center.x, s.inverse.x, s.near_bias.x)),
                      fma(-half_extent.y, s.abs_inverse.y, fma(center.y, s.inverse.y, s.near_bias.y)),
                      fma(-half_extent.z, s.abs_inverse.z, fma(center.z, s.inverse.z, s.near_bias.z)));
    float far = min3_nonneg(fma(half_extent.x, s.abs_inverse.x, fma(center.x, s.inverse.x, s.far_bias.x)),
                            fma(half_extent.y, s.abs_inverse.y, fma(center.y, s.inverse.y, s.far_bias.y)),
                            fma(half_extent.z, s.abs_inverse.z, fma(center.z, s.inverse.z, s.far_bias.z)));
    return *near <= min_nnan(far, t_max);
}

DEVICE Children children_of(GLOBAL const float4 *RESTRICT nodes, int node, const SlabRay s, float t_max) {
    float4 center1 = nodes[4 * node], half1 = nodes[4 * node + 1], center2 = nodes[4 * node + 2],
           half2 = nodes[4 * node + 3];
    Children c;
    c.hit1 = intersect_box(s, center1, half1, t_max, &c.near1);
    c.hit2 = intersect_box(s, center2, half2, t_max, &c.near2);
    c.left = as_int(center1.w);
    c.right = as_int(half1.w);
    return c;
}

DEVICE bool intersect_primitive(const Primitive p, float3 origin, float3 direction, float t_max, Hit *hit) {
#if SPHERES
    if (p.edge2.w > 0.0f) return intersect_sphere(p, origin, direction, t_max, hit);
#endif
    return intersect_triangle(p, origin, direction, t_max, hit);
}

// Replaces `best` if primitive i is hit nearer; breaks ties in t by lower primitive id, so that hits are bit-identical,
// independent of traversal order.
DEVICE void update_closest(GLOBAL const float4 *RESTRICT primitives, int i, float3 origin, float3 direction, Hit *best,
                           int *prim_id) {
    Primitive p = primitive_at(primitives, i);
    Hit hit;
    if (intersect_primitive(p, origin, direction, best->t, &hit) && (hit.t < best->t || as_int(p.v0.w) < *prim_id)) {
        *best = hit;
        best->primitive = i;
        *prim_id = as_int(p.v0.w);
    }
}

// Visits an inner node: returns the nearer child that is hit and pushes the farther one; pops where none is hit.
DEVICE int next_node(GLOBAL const float4 *RESTRICT nodes, int node, const SlabRay ray, float t_max, int **top) {
    Children c = children_of(nodes, node, ray, t_max);
    if (c.hit1 && c.hit2) {
        bool swap = c.near2 < c.near1;
        *(*top)++ = swap ? c.left : c.right;
        return swap ? c.right : c.left;
    }
    if (c.hit1 || c.hit2) return c.hit1 ? c.left : c.right;
    return *--*top;
}

DEVICE void intersect_leaf(GLOBAL const float4 *RESTRICT primitives, int child_ref, float3 origin, float3 direction,
                           Hit *best, int *prim_id) {
    NO_UNROLL  // fewer registers and instructions are faster than two primitives at a time
        for (int i = ~child_ref >> 3, end = i + (~child_ref & 7); i <= end; i++)
            update_closest(primitives, i, origin, direction, best, prim_id);
}

DEVICE bool leaf_any_hit(GLOBAL const float4 *RESTRICT primitives, int child_ref, float3 origin, float3 direction,
                         float t_max) {
    Hit hit;
    NO_UNROLL
    for (int i = ~child_ref >> 3, end = i + (~child_ref & 7); i <= end; i++)
        if (intersect_primitive(primitive_at(primitives, i), origin, direction, t_max, &hit)) return true;
    return false;
}

DEVICE Hit closest_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                       float3 direction, float t_max) {
    SlabRay ray = slab_ray(origin, direction);
    Hit best = {t_max, 0.0f, 0.0f, -1};
    int prim_id = 0x7fffffff, node = ROOT_NODE, stack[STACK_SIZE], *top = stack;
    *top++ = STACK_SENTINEL;
    while (node != STACK_SENTINEL) {
        while (node >= 0) node = next_node(nodes, node, ray, best.t, &top);
        while (node < 0 && node != STACK_SENTINEL) {
            intersect_leaf(primitives, node, origin, direction, &best, &prim_id);
            node = *--top;
        }
    }
    return best;
}

// Whether the ray hits anything before `t_max`.
DEVICE bool any_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                    float3 direction, float t_max) {
    SlabRay ray = slab_ray(origin, direction);
    int node = ROOT_NODE, stack[STACK_SIZE], *top = stack;
    *top++ = STACK_SENTINEL;
    while (node != STACK_SENTINEL) {
        while (node >= 0) node = next_node(nodes, node, ray, t_max, &top);
        while (node < 0 && node != STACK_SENTINEL) {
            if (leaf_any_hit(primitives, node, origin, direction, t_max)) return true;
            node = *--top;
        }
    }
    return false;
}
