// Traversal of BVH2 by one thread a ray: closest hit and any hit. A 64-byte node holds the boxes of both children (T.
// Aila and S. Laine 2009) by center and half extent: a plane costs two multiply-adds and no selection by the signs of
// the direction.
//     words 0-2 center, 4-6 half extent of the first child; 8-10 and 12-14 of the second; 3 and 7 their references; 11
//     and 15 unused
// A child reference is the index of an inner node, or ~(first * 8 + count - 1) for a leaf of up to 8 primitives in leaf
// order.
#include "bvh/geometry.h"

// A filter of hits, which the text before may define (raytracing/alpha_test.h): its parameters and arguments, both with
// a comma before, and PASSES_FILTER of a hit within t_max. It may move the hit farther, but not beyond t_max.
#ifndef HIT_FILTER
#define HIT_FILTER 0
#define FILTER_PARAMS
#define FILTER_ARGS
#define FILTER_ARGS_OF(material)
#define PASSES_FILTER(p, origin, direction, t_max, hit) true
#endif

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
    s.abs_inverse = abs3(s.inverse);
    float3 slack = s.abs_inverse * (largest_of3(abs3(origin)) * 2.4e-7f);  // 2^-22
    s.near_bias = fma3(-origin, s.inverse, -slack);
    s.far_bias = fma3(-origin, s.inverse, slack);
    return s;
}

// Whether the ray meets a box before `t_max`, and the distance at which it enters it. An empty box has a negative half
// extent.
DEVICE bool intersect_box(const SlabRay s, float4 center, float4 half_extent, float t_max, float *near) {
    float3 half_size = xyz(half_extent);
    float3 first = fma3(-half_size, s.abs_inverse, fma3(xyz(center), s.inverse, s.near_bias));
    float3 last = fma3(half_size, s.abs_inverse, fma3(xyz(center), s.inverse, s.far_bias));
    *near = max3_relu(first.x, first.y, first.z);
    float far = min3_nonneg(last.x, last.y, last.z);
    return *near <= min_nnan(far, t_max);
}

DEVICE bool intersect_primitive(const Primitive p, float3 origin, float3 direction, float t_max,
                                Hit *hit FILTER_PARAMS) {
#if SPHERES
    if (p.edge2.w > 0.0f)
        return intersect_sphere(p, origin, direction, t_max, hit) && PASSES_FILTER(p, origin, direction, t_max, hit);
#endif
    return intersect_triangle(p, origin, direction, t_max, hit) && PASSES_FILTER(p, origin, direction, t_max, hit);
}

// Replaces `best` if primitive i, which is p, is hit nearer; breaks ties in t by lower primitive id, so that hits are
// bit-identical, independent of traversal order.
DEVICE void update_closest_primitive(const Primitive p, int i, float3 origin, float3 direction, Hit *best,
                                     int *prim_id FILTER_PARAMS) {
    Hit hit;
    COUNT_TESTS(*best, 1);
    KEEP_COUNTS(hit, *best);
    if (intersect_primitive(p, origin, direction, best->t, &hit FILTER_ARGS) &&
        (hit.t < best->t || as_int(p.v0.w) < *prim_id)) {
        *best = hit;
        best->primitive = i;
        *prim_id = as_int(p.v0.w);
    }
}

DEVICE void update_closest(GLOBAL const float4 *RESTRICT primitives, int i, float3 origin, float3 direction, Hit *best,
                           int *prim_id FILTER_PARAMS) {
    update_closest_primitive(primitive_at(primitives, i), i, origin, direction, best, prim_id FILTER_ARGS);
}

// Visits an inner node: returns the nearer child that is hit and pushes the farther one; pops where none is hit.
DEVICE int next_node(GLOBAL const float4 *RESTRICT nodes, int node, const SlabRay ray, float t_max, int **top) {
    float4 center1 = nodes[4 * node], half1 = nodes[4 * node + 1], center2 = nodes[4 * node + 2],
           half2 = nodes[4 * node + 3];
    float near1, near2;
    bool hit1 = intersect_box(ray, center1, half1, t_max, &near1),
         hit2 = intersect_box(ray, center2, half2, t_max, &near2);
    int left = as_int(center1.w), right = as_int(half1.w);
    if (hit1 && hit2) {
        bool swap = near2 < near1;
        *(*top)++ = swap ? left : right;
        return swap ? right : left;
    }
    if (hit1 || hit2) return hit1 ? left : right;
    return *--*top;
}

DEVICE void intersect_leaf(GLOBAL const float4 *RESTRICT primitives, int child_ref, float3 origin, float3 direction,
                           Hit *best, int *prim_id FILTER_PARAMS) {
    NO_UNROLL  // fewer registers and instructions are faster than two primitives at a time
        for (int i = ~child_ref >> 3, end = i + (~child_ref & 7); i <= end; i++)
            update_closest(primitives, i, origin, direction, best, prim_id FILTER_ARGS);
}

DEVICE bool leaf_any_hit(GLOBAL const float4 *RESTRICT primitives, int child_ref, float3 origin, float3 direction,
                         float t_max FILTER_PARAMS) {
    Hit hit;
    NO_UNROLL
    for (int i = ~child_ref >> 3, end = i + (~child_ref & 7); i <= end; i++)
        if (intersect_primitive(primitive_at(primitives, i), origin, direction, t_max, &hit FILTER_ARGS)) return true;
    return false;
}

// The closest hit before `t_max`; with accept_first_hit only whether there is one.
DEVICE Hit traverse_bvh2(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                         float3 direction, float t_max, bool accept_first_hit FILTER_PARAMS) {
    SlabRay ray = slab_ray(origin, direction);
    Hit best = {t_max, 0.0f, 0.0f, -1};
    int prim_id = 0x7fffffff, node = ROOT_NODE, stack[STACK_SIZE], *top = stack;
    *top++ = STACK_SENTINEL;
    while (node != STACK_SENTINEL) {
        while (node >= 0) {
            COUNT_NODE(best);
            node = next_node(nodes, node, ray, best.t, &top);
        }
        while (node < 0 && node != STACK_SENTINEL) {
            if (!accept_first_hit) {
                intersect_leaf(primitives, node, origin, direction, &best, &prim_id FILTER_ARGS);
            } else if (leaf_any_hit(primitives, node, origin, direction, t_max FILTER_ARGS)) {
                best.primitive = 0;
                return best;
            }
            node = *--top;
        }
    }
    return best;
}

DEVICE Hit closest_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                       float3 direction, float t_max FILTER_PARAMS) {
    return traverse_bvh2(nodes, primitives, origin, direction, t_max, false FILTER_ARGS);
}

// Whether the ray hits anything before `t_max`.
DEVICE bool any_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                    float3 direction, float t_max FILTER_PARAMS) {
    return traverse_bvh2(nodes, primitives, origin, direction, t_max, true FILTER_ARGS).primitive >= 0;
}

#if HAS_BALLOT
// Goes on with the walk of a ray from `node`, which is STACK_SENTINEL at its end: some nodes, then the leaves where it
// arrived. The whole warp calls it.
#define NODES_BEFORE_LEAVES 4
DEVICE int continue_walk(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, int node,
                         float3 origin, float3 direction, const SlabRay ray, bool accept_first_hit, Hit *best,
                         int *prim_id, int **top FILTER_PARAMS) {
    NO_UNROLL
    for (int k = 0; k < NODES_BEFORE_LEAVES && node >= 0; k++) node = next_node(nodes, node, ray, best->t, top);
    WARP_BARRIER();
    NO_UNROLL
    while (node < 0 && node != STACK_SENTINEL) {
        intersect_leaf(primitives, node, origin, direction, best, prim_id FILTER_ARGS);
        node = accept_first_hit && best->primitive >= 0 ? STACK_SENTINEL : *--*top;
    }
    WARP_BARRIER();
    return node;
}
#endif
