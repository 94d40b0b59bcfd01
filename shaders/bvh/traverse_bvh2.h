// Traversal of a BVH2, one thread per ray, for closest hit and any hit: the while-while loop of T. Aila and S. Laine
// 2009. Every kernel that traces rays includes this file. A 64-byte node holds the boxes of both children by
// center and half extent: a slab test then costs two multiply-adds per plane, and no selection of near and far planes
// by the signs of the direction.
//     words 0-2: center, 4-6: half extent of the first child's box; 8-10 and 12-14: of the second child's box
//     words 3 and 7: child references of the first and the second child; 11 and 15: unused
// A child reference is the index of an inner node, or ~(first * 8 + count - 1) for a leaf of `count` <= 8 primitives
// from index `first` on.
// The host defines DEFORMS and SPHERES (1: the scene has the feature, 0: it has not), and for the megakernel
// NODES_PER_TURN, 4 (0 where it is not defined; see traverse_bvh2).
#include "bvh/geometry.h"

// The hit filter rejects hits, such as hits on transparent texels. Without one every hit passes. A header that is
// included before this file may define it (raytracing/textures/alpha_test.h does):
//     HIT_FILTER          1
//     FILTER_PARAMS       its further parameters, with a leading comma; FILTER_ARGS: the same names as arguments
//     FILTER_ARGS_OF(m)   the arguments where the material m replaces the primitive's own; -1 keeps it
//     PASSES_FILTER(...)  true if a hit within t_max passes. It may increase hit.t, but not beyond t_max.
#ifndef HIT_FILTER
#define HIT_FILTER 0
#define FILTER_PARAMS
#define FILTER_ARGS
#define FILTER_ARGS_OF(material)
#define PASSES_FILTER(p, origin, direction, t_max, hit) true
#endif

// Vertex motion (S. Woop et al. 2017): in programs with DEFORMS, the vertices of a shape with `closing` move along
// lines while the shutter is open, from the array of primitives at `time` 0 to `closing` at 1. A node's boxes contain
// both. `closing` is 0 for a shape at rest.
#if DEFORMS
#define MOTION_PARAMS , GLOBAL const float4 *RESTRICT closing, float time
#define MOTION_ARGS_OF(closing, time) , closing, time
#else
#define MOTION_PARAMS
#define MOTION_ARGS_OF(closing, time)
#endif
#define MOTION_ARGS MOTION_ARGS_OF(closing, time)
#define AT_REST MOTION_ARGS_OF(0, 0.0f)

#define STACK_SENTINEL ((int)0x80000000)
#define STACK_SIZE 64  // no builder makes a deeper BVH
#define ROOT_NODE 0
#ifndef NODES_PER_TURN
#define NODES_PER_TURN 0
#endif

// A ray for slab tests (T. Kay and J. Kajiya 1986): a plane at coordinate c is crossed at t = c * inverse + bias. The
// biases move near planes closer and far planes farther by the rounding error of origin * inverse, so that no box is
// missed whose primitive is hit. The builders pad boxes for the rounding error of c * inverse.
typedef struct {
    float3 inverse, abs_inverse, near_bias, far_bias;
} SlabRay;

// 1 / d, finite for every d.
DEVICE float safe_inverse(float d) {
    // |d| is raised to at least 2^-60, so that 0 * infinity does not occur
    return fast_rcp(as_float((as_uint(d) & 0x80000000u) | as_uint(max_nnan(fabs(d), 8.6736174e-19f))));
}

// Prepares a ray for slab tests of boxes, whose distances are rounded outwards by `slack`.
DEVICE SlabRay slab_ray(float3 origin, float3 direction) {
    SlabRay s;
    s.inverse = make_float3(safe_inverse(direction.x), safe_inverse(direction.y), safe_inverse(direction.z));
    s.abs_inverse = abs3(s.inverse);
    float3 slack = s.abs_inverse * (largest_of3(abs3(origin)) * 2.4e-7f);  // 2^-22
    s.near_bias = fma3(-origin, s.inverse, -slack);
    s.far_bias = fma3(-origin, s.inverse, slack);
    return s;
}

// Returns true if the ray intersects a box before `t_max`; *t_near becomes the ray parameter at which it enters the
// box. An empty box has a negative half extent. max3_relu: the maximum of three numbers and 0; min3_nonneg: the minimum
// of three, correct if it is not negative (common/portable.h).
DEVICE bool intersect_box(const SlabRay s, float4 center, float4 half_extent, float t_max, float *t_near) {
    float3 half_size = xyz(half_extent);
    float3 first = fma3(-half_size, s.abs_inverse, fma3(xyz(center), s.inverse, s.near_bias));
    float3 last = fma3(half_size, s.abs_inverse, fma3(xyz(center), s.inverse, s.far_bias));
    *t_near = max3_relu(first.x, first.y, first.z);
    float t_far = min3_nonneg(last.x, last.y, last.z);
    return *t_near <= min_nnan(t_far, t_max);
}

// Returns true for a hit in (0, t_max] that passes the hit filter.
DEVICE bool intersect_primitive(const Primitive p, float3 origin, float3 direction, float t_max,
                                Hit *hit FILTER_PARAMS) {
#if SPHERES
    if (p.edge2.w > 0.0f)
        return intersect_sphere(p, origin, direction, t_max, hit) && PASSES_FILTER(p, origin, direction, t_max, hit);
#endif
    return intersect_triangle(p, origin, direction, t_max, hit) && PASSES_FILTER(p, origin, direction, t_max, hit);
}

// a (1 - weight) + b weight in x, y and z; w is a's.
DEVICE float4 lerp_xyz(float4 a, float4 b, float weight) { return with_w(madd(xyz(b) - xyz(a), weight, xyz(a)), a.w); }

// p, the primitive when the shutter opens, on its way to `end`.
DEVICE Primitive primitive_at_time(Primitive p, const Primitive end, float time) {
    p.v0 = lerp_xyz(p.v0, end.v0, time);
    p.edge1 = lerp_xyz(p.edge1, end.edge1, time);
    p.edge2 = lerp_xyz(p.edge2, end.edge2, time);
    return p;
}

// Primitive i, moved to the ray's time.
DEVICE Primitive moved_primitive(GLOBAL const float4 *RESTRICT primitives, int i MOTION_PARAMS) {
    Primitive p = primitive_at(primitives, i);
#if DEFORMS
    if (closing) return primitive_at_time(p, primitive_at(closing, i), time);
#endif
    return p;
}

// Replaces `best`, whose primitive has id *prim_id, if the ray hits primitive i nearer. The lower primitive id wins
// ties in t, so that hits are bit-identical whatever the traversal order.
DEVICE void update_closest(GLOBAL const float4 *RESTRICT primitives, int i, float3 origin, float3 direction, Hit *best,
                           int *prim_id FILTER_PARAMS MOTION_PARAMS) {
    Primitive p = moved_primitive(primitives, i MOTION_ARGS);
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

// Visits an inner node; *top is the stack's end. Returns the reference of the nearer child that is hit and pushes the
// farther one; if no child is hit, pops a reference from the stack.
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

// Tests all primitives of a leaf and updates the closest hit.
DEVICE void intersect_leaf(GLOBAL const float4 *RESTRICT primitives, int child_ref, float3 origin, float3 direction,
                           Hit *best, int *prim_id FILTER_PARAMS MOTION_PARAMS) {
    NO_UNROLL  // fewer registers and instructions are faster than two primitives at a time
        for (int i = ~child_ref >> 3, end = i + (~child_ref & 7); i <= end; i++)
            update_closest(primitives, i, origin, direction, best, prim_id FILTER_ARGS MOTION_ARGS);
}

// True if any primitive of a leaf is hit before `t_max`.
DEVICE bool leaf_any_hit(GLOBAL const float4 *RESTRICT primitives, int child_ref, float3 origin, float3 direction,
                         float t_max FILTER_PARAMS MOTION_PARAMS) {
    Hit hit;
    NO_UNROLL
    for (int i = ~child_ref >> 3, end = i + (~child_ref & 7); i <= end; i++)
        if (intersect_primitive(moved_primitive(primitives, i MOTION_ARGS), origin, direction, t_max, &hit FILTER_ARGS))
            return true;
    return false;
}

// Returns the closest hit before `t_max`, primitive -1 without one. With accept_first_hit, traversal stops at the first
// hit, and only the result's primitive (>= 0: a hit) is valid. NODES_PER_TURN schedules the lanes of a warp: 0 is
// while-while, where a lane waits at its leaf until all lanes have one; n is if-if, where a turn is at most n inner
// nodes and then at most one leaf.
DEVICE Hit traverse_bvh2(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                         float3 direction, float t_max, bool accept_first_hit FILTER_PARAMS MOTION_PARAMS) {
    SlabRay ray = slab_ray(origin, direction);
    Hit best = {t_max, 0.0f, 0.0f, -1};
    int prim_id = 0x7fffffff, node = ROOT_NODE, stack[STACK_SIZE], *top = stack;
    *top++ = STACK_SENTINEL;
    while (node != STACK_SENTINEL) {
        NO_UNROLL
        for (int k = 0; node >= 0 && (k < NODES_PER_TURN || !NODES_PER_TURN); k++) {
            COUNT_NODE(best);
            node = next_node(nodes, node, ray, best.t, &top);
        }
        for (int k = 0; node < 0 && node != STACK_SENTINEL && (k < 1 || !NODES_PER_TURN); k++) {
            if (!accept_first_hit) {
                intersect_leaf(primitives, node, origin, direction, &best, &prim_id FILTER_ARGS MOTION_ARGS);
            } else if (leaf_any_hit(primitives, node, origin, direction, t_max FILTER_ARGS MOTION_ARGS)) {
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
    return traverse_bvh2(nodes, primitives, origin, direction, t_max, false FILTER_ARGS AT_REST);
}

// True if the ray hits anything before `t_max`.
DEVICE bool any_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                    float3 direction, float t_max FILTER_PARAMS) {
    return traverse_bvh2(nodes, primitives, origin, direction, t_max, true FILTER_ARGS AT_REST).primitive >= 0;
}
