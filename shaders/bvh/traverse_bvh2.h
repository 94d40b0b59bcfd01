// Walks of binary trees by one thread a ray: closest hit and any hit. A 64-byte node holds the boxes of both children, as in
// T. Aila and S. Laine 2009, by centre and half size: a plane costs two multiply-adds and no choice by the ray's signs.
//     words 0-2 centre, 4-6 half size of the first child; 8-10 and 12-14 of the second; 3 and 7 their codes; 11 and 15 nothing
// A code is an inner node's number, or ~(first * 8 + count - 1) for a leaf of up to 8 primitives in leaf order.
// With NARROW nodes are those of bvh/traverse_bvh2_quantized.h.
#include "bvh/geometry.h"

#ifndef NARROW
#define NARROW 0
#endif
#define WALK_DONE ((int)0x80000000)
#define WALK_STACK 64  // the builders promise trees of at most this depth

// A thread goes on to a leaf while the others of its warp wait at theirs; with WALK_STEPS for so many nodes at most, which pays where
// rays part again and again.
#if WALK_STEPS
#define WHILE_INNER(node) for (int k_ = 0; k_ < WALK_STEPS && node >= 0; k_++)
#define WHILE_LEAF(node) if (node < 0 && node != WALK_DONE)
#else
#define WHILE_INNER(node) while (node >= 0)
#define WHILE_LEAF(node) while (node < 0 && node != WALK_DONE)
#endif

// What the box tests need of a ray. Near planes are moved closer and far ones farther by what the rounding of the origin's
// part may be, so that no box is missed whose primitive is hit; boxes are padded by an ulp for the planes' part.
typedef struct {
    float3 inverse, size, near_shift, far_shift;  // size: of inverse
} Slabs;

DEVICE float safe_inverse(float d) {
    return near_inverse(as_float((as_uint(d) & 0x80000000u) | as_uint(larger(fabs(d), 8.6736174e-19f))));  // 2^-60: no 0 * inf below
}

DEVICE Slabs slabs_of(float3 origin, float3 direction) {
    Slabs s;
    s.inverse = make_float3(safe_inverse(direction.x), safe_inverse(direction.y), safe_inverse(direction.z));
    s.size = make_float3(fabs(s.inverse.x), fabs(s.inverse.y), fabs(s.inverse.z));
    float digits = larger(larger(fabs(origin.x), fabs(origin.y)), fabs(origin.z)) * 2.4e-7f;  // 2^-22
    float3 slack = make_float3(s.size.x * digits, s.size.y * digits, s.size.z * digits);
    s.near_shift = make_float3(fma(-origin.x, s.inverse.x, -slack.x), fma(-origin.y, s.inverse.y, -slack.y), fma(-origin.z, s.inverse.z, -slack.z));
    s.far_shift = make_float3(fma(-origin.x, s.inverse.x, slack.x), fma(-origin.y, s.inverse.y, slack.y), fma(-origin.z, s.inverse.z, slack.z));
    return s;
}

// Whether the ray meets a box before `longest`, and where it enters it. An empty box has a negative half size.
DEVICE bool enter_box(const Slabs s, float4 centre, float4 half_size, float longest, float *near) {
    *near = largest_or_zero(fma(-half_size.x, s.size.x, fma(centre.x, s.inverse.x, s.near_shift.x)),
                            fma(-half_size.y, s.size.y, fma(centre.y, s.inverse.y, s.near_shift.y)),
                            fma(-half_size.z, s.size.z, fma(centre.z, s.inverse.z, s.near_shift.z)));
    float far = smallest_of(fma(half_size.x, s.size.x, fma(centre.x, s.inverse.x, s.far_shift.x)),
                            fma(half_size.y, s.size.y, fma(centre.y, s.inverse.y, s.far_shift.y)),
                            fma(half_size.z, s.size.z, fma(centre.z, s.inverse.z, s.far_shift.z)));
    return *near <= smaller(far, longest);
}

// The boxes of both children of a node: which are met before `longest`, where, and their codes.
typedef struct {
    float near1, near2;
    int left, right;
    bool hit1, hit2;
} Children;

#if NARROW
#include "bvh/traverse_bvh2_quantized.h"
#else
#define ROOT 0
#define NodeRay Slabs
#define node_ray(nodes, origin, direction) slabs_of(origin, direction)

DEVICE Children children_of(GLOBAL const float4 *RESTRICT nodes, int node, const Slabs s, float longest) {
    float4 centre1 = nodes[4 * node], half1 = nodes[4 * node + 1], centre2 = nodes[4 * node + 2], half2 = nodes[4 * node + 3];
    Children c;
    c.hit1 = enter_box(s, centre1, half1, longest, &c.near1);
    c.hit2 = enter_box(s, centre2, half2, longest, &c.near2);
    c.left = as_int(centre1.w);
    c.right = as_int(half1.w);
    return c;
}
#endif

DEVICE bool hit_primitive(const Primitive p, float3 origin, float3 direction, float longest, Hit *hit) {
#if SPHERES
    if (p.edge2.w > 0.0f) return hit_sphere(p, origin, direction, longest, hit);
#endif
    return hit_triangle(p, origin, direction, longest, hit);
}

// Takes the primitive if it is nearer than `best`, or as near with a lower number: the answer depends on no order of tests.
DEVICE void take_nearer(GLOBAL const float4 *RESTRICT primitives, int i, float3 origin, float3 direction, Hit *best, int *number) {
    Primitive p = primitive_at(primitives, i);
    Hit hit;
    if (hit_primitive(p, origin, direction, best->t, &hit) && (hit.t < best->t || as_int(p.corner.w) < *number)) {
        *best = hit;
        best->primitive = i;
        *number = as_int(p.corner.w);
    }
}

// From an inner node to the nearer child that is hit, keeping the farther one; to what was kept last when none is.
DEVICE int next_node(GLOBAL const float4 *RESTRICT nodes, int node, const NodeRay ray, float longest, int **top) {
    Children c = children_of(nodes, node, ray, longest);
    if (c.hit1 && c.hit2) {
        bool swap = c.near2 < c.near1;
        *(*top)++ = swap ? c.left : c.right;
        return swap ? c.right : c.left;
    }
    if (c.hit1 || c.hit2) return c.hit1 ? c.left : c.right;
    return *--*top;
}

DEVICE void take_leaf(GLOBAL const float4 *RESTRICT primitives, int code, float3 origin, float3 direction, Hit *best, int *number) {
    ROLLED  // fewer registers and less text are faster than two primitives at a time
    for (int i = ~code >> 3, end = i + (~code & 7); i <= end; i++) take_nearer(primitives, i, origin, direction, best, number);
}

DEVICE bool leaf_occludes(GLOBAL const float4 *RESTRICT primitives, int code, float3 origin, float3 direction, float longest) {
    Hit hit;
    ROLLED
    for (int i = ~code >> 3, end = i + (~code & 7); i <= end; i++)
        if (hit_primitive(primitive_at(primitives, i), origin, direction, longest, &hit)) return true;
    return false;
}

DEVICE Hit closest_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                       float3 direction, float longest) {
    NodeRay ray = node_ray(nodes, origin, direction);
    Hit best = {longest, 0.0f, 0.0f, -1};
    int number = 0x7fffffff, node = ROOT, stack[WALK_STACK], *top = stack;
    *top++ = WALK_DONE;
    while (node != WALK_DONE) {
        WHILE_INNER(node) node = next_node(nodes, node, ray, best.t, &top);
        WHILE_LEAF(node) {
            take_leaf(primitives, node, origin, direction, &best, &number);
            node = *--top;
        }
    }
    return best;
}

// Whether anything lies before `longest`.
DEVICE bool any_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                    float3 direction, float longest) {
    NodeRay ray = node_ray(nodes, origin, direction);
    int node = ROOT, stack[WALK_STACK], *top = stack;
    *top++ = WALK_DONE;
    while (node != WALK_DONE) {
        WHILE_INNER(node) node = next_node(nodes, node, ray, longest, &top);
        WHILE_LEAF(node) {
            if (leaf_occludes(primitives, node, origin, direction, longest)) return true;
            node = *--top;
        }
    }
    return false;
}
