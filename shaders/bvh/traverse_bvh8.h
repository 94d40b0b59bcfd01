// Traversal of BVH8 by one ray, on CPUs, whose threads have no warps but wide vector registers: a ray is tested against
// eight boxes or eight primitives at once. bvh/traverse_packet.h adds packets. bvh/collapse_bvh8.cu writes the BVH as
// one array of 64-byte lines:
//     node8   4 lines: min x, max x, min y, max y, min z, max z of eight boxes; their child references; the largest
//             coordinate below the node, 7 unused words
//     leaf8   6 lines: vertex 0, edge1, edge2 of eight primitives, x, y and z apart; their indices in `primitives`;
//             their radii
// A child reference is the first line of a node8, or LEAF_BIT and the first line of a leaf8. Unused boxes are inside
// out, unused indices -1. NaN rays can enter unused boxes, so those refer to an empty leaf. Primitives in a leaf are
// sorted by their ids. Hits are bit-identical to those of bvh/traverse_bvh2.h.
#include "bvh/traverse_bvh2.h"

#if HAS_MOVEMASK
#define LEAF_BIT 0x80000000u
#define STACK8_SIZE 448  // seven children a level of the BVH2 that was collapsed
#define NODE_PLANES(at) (*(GLOBAL const float8 *)(node8 + (at)))
#define LEAF_ROW(k) (*(GLOBAL const float8 *)(leaf8 + 8 * (k)))
#define LEAF_ROWS3(k) LEAF_ROW(k), LEAF_ROW(k + 1), LEAF_ROW(k + 2)
#define LEAF_PRIM_INDICES 9
#define LEAF_RADII 10

typedef GLOBAL const float *Lines;
typedef GLOBAL const float4 *Primitives;

DEVICE Lines line_at(Lines nodes, uint child_ref) { return nodes + 16 * (size_t)(child_ref & ~LEAF_BIT); }

typedef struct {
    SlabRay slabs;
    uint near_x, near_y, near_z;  // offsets in a node8 of the planes that the ray crosses first
} SingleRay;

DEVICE SingleRay single_ray(float3 origin, float3 direction) {
    SingleRay r;
    r.slabs = slab_ray(origin, direction);
    r.near_x = r.slabs.inverse.x < 0.0f ? 8u : 0u;
    r.near_y = r.slabs.inverse.y < 0.0f ? 24u : 16u;
    r.near_z = r.slabs.inverse.z < 0.0f ? 40u : 32u;
    return r;
}

#define SLAB_PLANE8(offset, axis, bias) fma(NODE_PLANES(offset), (float8)(s->inverse.axis), (float8)(s->bias.axis))

// Mask of the boxes that the ray meets before `t_max`, and the distances at which it enters them.
DEVICE uint intersect_boxes8(Lines node8, const SingleRay *r, float t_max, float8 *near) {
    const SlabRay *s = &r->slabs;
    float8 near_x = SLAB_PLANE8(r->near_x, x, near_bias), far_x = SLAB_PLANE8(r->near_x ^ 8u, x, far_bias);
    float8 near_y = SLAB_PLANE8(r->near_y, y, near_bias), far_y = SLAB_PLANE8(r->near_y ^ 8u, y, far_bias);
    float8 near_z = SLAB_PLANE8(r->near_z, z, near_bias), far_z = SLAB_PLANE8(r->near_z ^ 8u, z, far_bias);
    *near = max_nnan(max_nnan(near_x, near_y), max_nnan(near_z, (float8)(0.0f)));
    float8 far = min_nnan(min_nnan(far_x, far_y), min_nnan(far_z, (float8)(t_max)));
    return movemask8(*near <= far);
}

// The nearest of the boxes in `met`; pushes the others with the distances at which the ray enters them.
DEVICE uint nearest_child(Lines node8, uint met, float8 near, uint2 *stack, int *top) {
    GLOBAL const uint *child_refs = (GLOBAL const uint *)(node8 + 48);
    float entered[8];
    vstore8(near, 0, entered);
    uint k = ctz(met), child_ref = child_refs[k];
    float nearest = entered[k];
    while (met &= met - 1u) {
        k = ctz(met);
        uint other = child_refs[k];
        float at = entered[k];
        bool swap = at < nearest;
        stack[(*top)++] = make_uint2(swap ? child_ref : other, as_uint(swap ? nearest : at));
        child_ref = swap ? other : child_ref;
        nearest = swap ? at : nearest;
    }
    return child_ref;
}

// intersect_triangle and intersect_sphere of bvh/geometry.h for N pairs of a ray and a primitive, with the same
// roundings. F, I, U: vectors of N floats, ints and uints.
#define VECTOR_TESTS(N, F, I, U)                                                                                   \
    DEVICE I intersect_triangles##N(F cx, F cy, F cz, F ax, F ay, F az, F bx, F by, F bz, F ox, F oy, F oz, F dx,  \
                                    F dy, F dz, F t_max, F *t, F *u, F *v) {                                       \
        F hx = fma(dy, bz, -(dz * by)), hy = fma(dz, bx, -(dx * bz)), hz = fma(dx, by, -(dy * bx));                \
        F determinant = fma(az, hz, fma(ay, hy, ax * hx)), scale = fabs(determinant);                              \
        F least = -EDGE_EPSILON * scale, most = scale + EDGE_EPSILON * scale;                                      \
        F sx = ox - cx, sy = oy - cy, sz = oz - cz;                                                                \
        F qx = fma(sy, az, -(sz * ay)), qy = fma(sz, ax, -(sx * az)), qz = fma(sx, ay, -(sy * ax));                \
        U sign = as_u##I(determinant) & 0x80000000u;                                                               \
        F first = as_##F(as_u##I(fma(sz, hz, fma(sy, hy, sx * hx))) ^ sign);                                       \
        F second = as_##F(as_u##I(fma(dz, qz, fma(dy, qy, dx * qx))) ^ sign);                                      \
        I inside = (min_nnan(first, second) >= least) & (first + second <= most);                                  \
        if (!movemask##N(inside)) return inside;                                                                   \
        F inverse = 1.0f / determinant;                                                                            \
        *t = fma(bz, qz, fma(by, qy, bx * qx)) * inverse;                                                          \
        inverse = fabs(inverse);                                                                                   \
        *u = first * inverse;                                                                                      \
        *v = second * inverse;                                                                                     \
        return inside & (*t > 0.0f) & (*t <= t_max);                                                               \
    }                                                                                                              \
    DEVICE I intersect_spheres##N(F cx, F cy, F cz, F radius, F ox, F oy, F oz, F dx, F dy, F dz, F t_max, F *t) { \
        F fx = ox - cx, fy = oy - cy, fz = oz - cz;                                                                \
        F a = fma(dz, dz, fma(dy, dy, dx * dx)), b = -fma(fz, dz, fma(fy, dy, fx * dx));                           \
        F far = b / a, rx = fma(dx, far, fx), ry = fma(dy, far, fy), rz = fma(dz, far, fz);                        \
        F discriminant = fma(radius, radius, -fma(rz, rz, fma(ry, ry, rx * rx)));                                  \
        I inside = discriminant > 0.0f;                                                                            \
        if (!movemask##N(inside)) return inside;                                                                   \
        F c = fma(-radius, radius, fma(fz, fz, fma(fy, fy, fx * fx))), root = sqrt(a * discriminant);              \
        F q = b + (b < 0.0f ? -root : root), one = c / q, other = q / a;                                           \
        I swap = one > other;                                                                                      \
        F nearer = swap ? other : one, farther = swap ? one : other;                                               \
        F start = 2.0e-6f * (radius + fabs(c) / radius);                                                           \
        I keeps = (nearer > 0.0f) & ~(nearer * nearer * a < start * start);                                        \
        *t = keeps ? nearer : farther;                                                                             \
        return inside & (*t > 0.0f) & (*t <= t_max);                                                               \
    }
VECTOR_TESTS(8, float8, int8, uint8)
VECTOR_TESTS(16, float16, int16, uint16)

// Mask of the primitives of a leaf8 that the ray hits up to `t_max`.
DEVICE uint intersect_leaf8(Lines leaf8, float3 origin, float3 direction, float t_max, float8 *t, float8 *u,
                            float8 *v) {
    float8 ox = (float8)(origin.x), oy = (float8)(origin.y), oz = (float8)(origin.z);
    float8 dx = (float8)(direction.x), dy = (float8)(direction.y), dz = (float8)(direction.z), end = (float8)(t_max);
    int8 round = (int8)(0), met = round;
    if (SPHERES) round = LEAF_ROW(LEAF_RADII) > 0.0f;
    uint rounds = SPHERES ? movemask8(round) : 0u;
    if (rounds) {
        met = intersect_spheres8(LEAF_ROWS3(0), LEAF_ROW(LEAF_RADII), ox, oy, oz, dx, dy, dz, end, t) & round;
        *u = *v = (float8)(0.0f);
        if (rounds == movemask8(as_int8(LEAF_ROW(LEAF_PRIM_INDICES)) >= 0)) return movemask8(met);
    }
    float8 flat_t, flat_u, flat_v;
    int8 flat = intersect_triangles8(LEAF_ROWS3(0), LEAF_ROWS3(3), LEAF_ROWS3(6), ox, oy, oz, dx, dy, dz, end, &flat_t,
                                     &flat_u, &flat_v) &
                ~round;
    *t = rounds ? (round ? *t : flat_t) : flat_t;
    *u = rounds ? (round ? *u : flat_u) : flat_u;
    *v = rounds ? (round ? *v : flat_v) : flat_v;
    return movemask8(met | flat);
}

DEVICE int prim_id_at(Primitives primitives, int prim_index) {
    return prim_index < 0 ? 0x7fffffff : as_int(primitives[3 * prim_index].w);
}

DEVICE void update_closest8(Lines leaf8, Primitives primitives, uint met, float8 t, float8 u, float8 v, Hit *best) {
    float ts[8], us[8], vs[8];
    vstore8(t, 0, ts);
    vstore8(u, 0, us);
    vstore8(v, 0, vs);
    for (; met; met &= met - 1u) {
        uint k = ctz(met);
        int prim_index = as_int(leaf8[8 * LEAF_PRIM_INDICES + k]);
        if (ts[k] > best->t) continue;
        if (ts[k] == best->t && prim_id_at(primitives, prim_index) >= prim_id_at(primitives, best->primitive)) continue;
        Hit hit = {ts[k], us[k], vs[k], prim_index};
        KEEP_COUNTS(hit, *best);
        *best = hit;
    }
}

#if HIT_FILTER
// The hits in `met` of a leaf8 that pass the filter, without those that are behind one; with accept_first_hit one.
DEVICE_NOINLINE_ALWAYS uint filter_leaf8(Lines leaf8, Primitives primitives, float3 origin, float3 direction,
                                         float t_max, uint met, float8 *t, const float8 *u, const float8 *v,
                                         bool accept_first_hit FILTER_PARAMS) {
    float ts[8], us[8], vs[8];
    uint passed = 0;
    vstore8(*t, 0, ts);
    vstore8(*u, 0, us);
    vstore8(*v, 0, vs);
    for (; met; met &= met - 1u) {
        uint k = ctz(met);
        if (ts[k] > t_max) continue;
        Hit hit = {ts[k], us[k], vs[k], -1};
        Primitive p = primitive_at(primitives, as_int(leaf8[8 * LEAF_PRIM_INDICES + k]));
        if (!PASSES_FILTER(p, origin, direction, t_max, &hit)) continue;
        passed |= 1u << k;
        if (accept_first_hit) return passed;
        ts[k] = t_max = hit.t;
    }
    *t = vload8(0, ts);
    return passed;
}
#endif

#if TRAVERSAL_COUNTS
// Mask of the primitives that a leaf8 holds.
DEVICE uint leaf_mask8(Lines leaf8) {
    return movemask8(*(GLOBAL const int8 *)(leaf8 + 8 * LEAF_PRIM_INDICES) >= (int8)(0));
}
#endif

// The closest hit nearer than `best`, which another traversal may have found.
DEVICE_NOINLINE_ALWAYS Hit single_ray_hit(Lines nodes, Primitives primitives, float3 origin, float3 direction, Hit best,
                                          bool accept_first_hit FILTER_PARAMS) {
    SingleRay r = single_ray(origin, direction);
    uint2 stack[STACK8_SIZE];  // child references, and the distances at which the ray enters their boxes
    int top = 0;
    uint child_ref = 0;
    while (true) {
        Lines here = line_at(nodes, child_ref);
        if (child_ref & LEAF_BIT) {
            float8 t, u, v;
            COUNT_TESTS(best, popcount(leaf_mask8(here)));
            uint met = intersect_leaf8(here, origin, direction, best.t, &t, &u, &v);
#if HIT_FILTER
            if (met)
                met = filter_leaf8(here, primitives, origin, direction, best.t, met, &t, &u, &v,
                                   accept_first_hit FILTER_ARGS);
#endif
            if (met && accept_first_hit) {
                best.primitive = 0;
                return best;
            }
            if (met) update_closest8(here, primitives, met, t, u, v, &best);
        } else {
            float8 near;
            COUNT_NODE(best);
            uint met = intersect_boxes8(here, &r, best.t, &near);
            if (met) {
                child_ref = nearest_child(here, met, near, stack, &top);
                continue;
            }
        }
        do {
            if (top == 0) return best;
            top--;
        } while (as_float(stack[top].y) > best.t);
        child_ref = stack[top].x;
    }
}

DEVICE Hit closest_hit_bvh8(Lines nodes, Primitives primitives, float3 origin, float3 direction,
                            float t_max FILTER_PARAMS) {
    Hit nothing = {t_max, 0.0f, 0.0f, -1};
    return single_ray_hit(nodes, primitives, origin, direction, nothing, false FILTER_ARGS);
}

DEVICE bool any_hit_bvh8(Lines nodes, Primitives primitives, float3 origin, float3 direction,
                         float t_max FILTER_PARAMS) {
    Hit nothing = {t_max, 0.0f, 0.0f, -1};
    return single_ray_hit(nodes, primitives, origin, direction, nothing, true FILTER_ARGS).primitive >= 0;
}
#endif
