// Single-ray traversal of a BVH8 on CPUs, for closest hit and any hit: SIMD tests one ray against eight boxes or eight
// primitives at once, as Embree's BVH8 does. bvh/traverse_packet.h adds packets. bvh/collapse_bvh8.cu writes the BVH as
// one array of 64-byte lines. An inner node (node8) and a leaf (leaf8) are records of several lines, rows of 8 values:
//     node8   4 lines: min x, max x, min y, max y, min z, max z of eight boxes; their child references; the largest
//             absolute coordinate below the node, 7 unused words
//     leaf8   6 lines: rows x, y, z of vertex 0, of edge1 and of edge2 of eight primitives; their indices in the array
//             `primitives`; their radii
// A child reference is the index of a node8's first line, or LEAF_BIT | the index of a leaf8's first line. Unused boxes
// have min > max, unused primitive indices are -1. NaN rays can enter unused boxes, so these refer to an empty leaf.
// Primitives in a leaf are sorted by id. Hits have the same bits as hits of bvh/traverse_bvh2.h.
// The host defines SPHERES (1: the scene has spheres) and TRAVERSAL_COUNTS (bvh/geometry.h).
#include "bvh/traverse_bvh2.h"

#if HAS_MOVEMASK
#define LEAF_BIT 0x80000000u
#define STACK8_SIZE 448  // at most seven pushed children per level; a BVH2 has at most STACK_SIZE = 64 levels
#define NODE_PLANES(offset) (*(GLOBAL const float8 *)(node8 + (offset)))
#define LEAF_ROW(k) (*(GLOBAL const float8 *)(leaf8 + 8 * (k)))
#define LEAF_ROWS3(k) LEAF_ROW(k), LEAF_ROW(k + 1), LEAF_ROW(k + 2)
#define LEAF_PRIM_INDICES 9
#define LEAF_RADII 10

// Loops over the bits of a mask, k being the index of each.
#define FOR_EACH_BIT(k, mask) for (uint left_ = (mask), k = 0; left_ && ((k = ctz(left_)), true); left_ &= left_ - 1u)

typedef GLOBAL const float *Lines;  // a pointer to a line: the BVH, a node8 or a leaf8
typedef GLOBAL const float4 *Primitives;  // the array that primitive_at() reads

// The node8 or leaf8 of a child reference.
DEVICE Lines line_at(Lines nodes, uint child_ref) { return nodes + 16 * (size_t)(child_ref & ~LEAF_BIT); }

// A ray for the slab test of eight boxes.
typedef struct {
    SlabRay slabs;
    // Offsets in a node8 of the row of planes that the ray crosses first on each axis; ^ 8 gives the other row
    uint near_x, near_y, near_z;
} SingleRay;

// Prepares a ray: its slabs, and on each axis the offset of the planes that it enters first.
DEVICE SingleRay single_ray(float3 origin, float3 direction) {
    SingleRay r;
    r.slabs = slab_ray(origin, direction);
    r.near_x = r.slabs.inverse.x < 0.0f ? 8u : 0u;
    r.near_y = r.slabs.inverse.y < 0.0f ? 24u : 16u;
    r.near_z = r.slabs.inverse.z < 0.0f ? 40u : 32u;
    return r;
}

#define SLAB_PLANE8(offset, axis, bias) fma(NODE_PLANES(offset), (float8)(s->inverse.axis), (float8)(s->bias.axis))

// Returns the mask of the boxes that the ray intersects before `t_max`; *t_near becomes the ray parameters at which it
// enters them.
DEVICE uint intersect_boxes8(Lines node8, const SingleRay *r, float t_max, float8 *t_near) {
    const SlabRay *s = &r->slabs;
    float8 near_x = SLAB_PLANE8(r->near_x, x, near_bias), far_x = SLAB_PLANE8(r->near_x ^ 8u, x, far_bias);
    float8 near_y = SLAB_PLANE8(r->near_y, y, near_bias), far_y = SLAB_PLANE8(r->near_y ^ 8u, y, far_bias);
    float8 near_z = SLAB_PLANE8(r->near_z, z, near_bias), far_z = SLAB_PLANE8(r->near_z ^ 8u, z, far_bias);
    *t_near = max_nnan(max_nnan(near_x, near_y), max_nnan(near_z, (float8)(0.0f)));
    float8 t_far = min_nnan(min_nnan(far_x, far_y), min_nnan(far_z, (float8)(t_max)));
    return movemask8(*t_near <= t_far);
}

// Returns the child reference of the nearest box of the mask `hit_mask`, and pushes the other children of the mask with
// the ray parameters at which the ray enters them.
DEVICE uint nearest_child(Lines node8, uint hit_mask, float8 t_near, uint2 *stack, int *top) {
    GLOBAL const uint *child_refs = (GLOBAL const uint *)(node8 + 48);
    float entry[8];
    vstore8(t_near, 0, entry);
    uint k = ctz(hit_mask), child_ref = child_refs[k];
    float nearest = entry[k];
    while (hit_mask &= hit_mask - 1u) {
        k = ctz(hit_mask);
        uint other = child_refs[k];
        float t = entry[k];
        bool swap = t < nearest;
        stack[(*top)++] = make_uint2(swap ? child_ref : other, as_uint(swap ? nearest : t));
        child_ref = swap ? other : child_ref;
        nearest = swap ? t : nearest;
    }
    return child_ref;
}

// intersect_triangle and intersect_sphere of bvh/geometry.h for N pairs of a ray and a primitive, with the same
// roundings. F, I, U: vector types of N floats, ints and uints. c: vertex 0 or center; a, b: edge1, edge2; o, d: origin
// and direction. They return a mask, -1 in the lanes that hit.
#define VECTOR_TESTS(N, F, I, U)                                                                                    \
    DEVICE I intersect_triangles##N(F cx, F cy, F cz, F ax, F ay, F az, F bx, F by, F bz, F ox, F oy, F oz, F dx,   \
                                    F dy, F dz, F t_max, F *t, F *u, F *v) {                                        \
        F hx = fma(dy, bz, -(dz * by)), hy = fma(dz, bx, -(dx * bz)), hz = fma(dx, by, -(dy * bx));                 \
        F determinant = fma(az, hz, fma(ay, hy, ax * hx)), scale = fabs(determinant);                               \
        F least = -EDGE_EPSILON * scale, most = scale + EDGE_EPSILON * scale;                                       \
        F sx = ox - cx, sy = oy - cy, sz = oz - cz;                                                                 \
        F qx = fma(sy, az, -(sz * ay)), qy = fma(sz, ax, -(sx * az)), qz = fma(sx, ay, -(sy * ax));                 \
        U sign = as_u##I(determinant) & 0x80000000u;                                                                \
        F first = as_##F(as_u##I(fma(sz, hz, fma(sy, hy, sx * hx))) ^ sign);                                        \
        F second = as_##F(as_u##I(fma(dz, qz, fma(dy, qy, dx * qx))) ^ sign);                                       \
        I inside = (min_nnan(first, second) >= least) & (first + second <= most);                                   \
        if (!movemask##N(inside)) return inside;                                                                    \
        F inverse = 1.0f / determinant;                                                                             \
        *t = fma(bz, qz, fma(by, qy, bx * qx)) * inverse;                                                           \
        inverse = fabs(inverse);                                                                                    \
        *u = first * inverse;                                                                                       \
        *v = second * inverse;                                                                                      \
        return inside & (*t > 0.0f) & (*t <= t_max);                                                                \
    }                                                                                                               \
    DEVICE I intersect_spheres##N(F cx, F cy, F cz, F radius, F ox, F oy, F oz, F dx, F dy, F dz, F t_max, F *t) {  \
        F fx = ox - cx, fy = oy - cy, fz = oz - cz;                                                                 \
        F a = fma(dz, dz, fma(dy, dy, dx * dx)), b = -fma(fz, dz, fma(fy, dy, fx * dx));                            \
        F t_closest = b / a, rx = fma(dx, t_closest, fx), ry = fma(dy, t_closest, fy), rz = fma(dz, t_closest, fz); \
        F discriminant = fma(radius, radius, -fma(rz, rz, fma(ry, ry, rx * rx)));                                   \
        I inside = discriminant > 0.0f;                                                                             \
        if (!movemask##N(inside)) return inside;                                                                    \
        F c = fma(-radius, radius, fma(fz, fz, fma(fy, fy, fx * fx))), root = sqrt(a * discriminant);               \
        F q = b + (b < 0.0f ? -root : root), first = c / q, second = q / a;                                         \
        I swap = first > second;                                                                                    \
        F nearer = swap ? second : first, farther = swap ? first : second;                                          \
        F self_hit = 2.0e-6f * (radius + fabs(c) / radius);                                                         \
        I is_valid = (nearer > 0.0f) & ~(nearer * nearer * a < self_hit * self_hit);                                \
        *t = is_valid ? nearer : farther;                                                                           \
        return inside & (*t > 0.0f) & (*t <= t_max);                                                                \
    }
VECTOR_TESTS(8, float8, int8, uint8)
VECTOR_TESTS(16, float16, int16, uint16)

// Returns the mask of the primitives of a leaf8 that the ray hits up to `t_max`, and their t, u and v.
DEVICE uint intersect_leaf8(Lines leaf8, float3 origin, float3 direction, float t_max, float8 *t, float8 *u,
                            float8 *v) {
    float8 ox = (float8)(origin.x), oy = (float8)(origin.y), oz = (float8)(origin.z);
    float8 dx = (float8)(direction.x), dy = (float8)(direction.y), dz = (float8)(direction.z), end = (float8)(t_max);
    int8 is_sphere = (int8)(0), hits = is_sphere;
    if (SPHERES) is_sphere = LEAF_ROW(LEAF_RADII) > 0.0f;
    uint sphere_mask = SPHERES ? movemask8(is_sphere) : 0u;
    if (sphere_mask) {
        hits = intersect_spheres8(LEAF_ROWS3(0), LEAF_ROW(LEAF_RADII), ox, oy, oz, dx, dy, dz, end, t) & is_sphere;
        *u = *v = (float8)(0.0f);
        // all primitives of the leaf are spheres
        if (sphere_mask == movemask8(as_int8(LEAF_ROW(LEAF_PRIM_INDICES)) >= 0)) return movemask8(hits);
    }
    float8 tri_t, tri_u, tri_v;
    int8 triangle_hits = intersect_triangles8(LEAF_ROWS3(0), LEAF_ROWS3(3), LEAF_ROWS3(6), ox, oy, oz, dx, dy, dz, end,
                                              &tri_t, &tri_u, &tri_v) &
                         ~is_sphere;
    *t = sphere_mask ? (is_sphere ? *t : tri_t) : tri_t;
    *u = sphere_mask ? (is_sphere ? *u : tri_u) : tri_u;
    *v = sphere_mask ? (is_sphere ? *v : tri_v) : tri_v;
    return movemask8(hits | triangle_hits);
}

// The id of primitive `prim_index`; for no primitive (-1), larger than every id.
DEVICE int prim_id_at(Primitives primitives, int prim_index) {
    return prim_index < 0 ? 0x7fffffff : as_int(primitives[3 * prim_index].w);
}

// Replaces `best` by the nearest hit of the mask `hits`, if that is nearer, or as near with a lower primitive id.
DEVICE void update_closest8(Lines leaf8, Primitives primitives, uint hits, float8 t, float8 u, float8 v, Hit *best) {
    float ts[8], us[8], vs[8];
    vstore8(t, 0, ts);
    vstore8(u, 0, us);
    vstore8(v, 0, vs);
    FOR_EACH_BIT(k, hits) {
        int prim_index = as_int(leaf8[8 * LEAF_PRIM_INDICES + k]);
        if (ts[k] > best->t) continue;
        if (ts[k] == best->t && prim_id_at(primitives, prim_index) >= prim_id_at(primitives, best->primitive)) continue;
        Hit hit = {ts[k], us[k], vs[k], prim_index};
        KEEP_COUNTS(hit, *best);
        *best = hit;
    }
}

#if HIT_FILTER
// Applies the hit filter (bvh/traverse_bvh2.h) to the hits of a leaf8 in the mask `hit_mask`. Returns the mask of hits
// that pass and are not behind a passing hit tested earlier; with accept_first_hit, of the first hit that passes.
DEVICE_NOINLINE_ALWAYS uint filter_leaf8(Lines leaf8, Primitives primitives, float3 origin, float3 direction,
                                         float t_max, uint hit_mask, float8 *t, const float8 *u, const float8 *v,
                                         bool accept_first_hit FILTER_PARAMS) {
    float ts[8], us[8], vs[8];
    uint passed = 0;
    vstore8(*t, 0, ts);
    vstore8(*u, 0, us);
    vstore8(*v, 0, vs);
    FOR_EACH_BIT(k, hit_mask) {
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

// Mask of the used primitives of a leaf8, whose indices are not negative.
DEVICE uint leaf_mask8(Lines leaf8) { return ~movemask8(as_int8(LEAF_ROW(LEAF_PRIM_INDICES))) & 255u; }

// Returns the closest hit nearer than `best`, else `best`, which another traversal may have found. With
// accept_first_hit, traversal stops at the first hit, and only the result's primitive (>= 0: a hit) is valid.
DEVICE_NOINLINE_ALWAYS Hit single_ray_hit(Lines nodes, Primitives primitives, float3 origin, float3 direction, Hit best,
                                          bool accept_first_hit FILTER_PARAMS) {
    SingleRay r = single_ray(origin, direction);
    uint2 stack[STACK8_SIZE];  // child references, and the ray parameters at which the ray enters their boxes
    int top = 0;
    uint child_ref = 0;
    while (true) {
        Lines record = line_at(nodes, child_ref);
        if (child_ref & LEAF_BIT) {
            float8 t, u, v;
            COUNT_TESTS(best, popcount(leaf_mask8(record)));
            uint hit_mask = intersect_leaf8(record, origin, direction, best.t, &t, &u, &v);
#if HIT_FILTER
            if (hit_mask)
                hit_mask = filter_leaf8(record, primitives, origin, direction, best.t, hit_mask, &t, &u, &v,
                                        accept_first_hit FILTER_ARGS);
#endif
            if (hit_mask && accept_first_hit) {
                best.primitive = 0;
                return best;
            }
            if (hit_mask) update_closest8(record, primitives, hit_mask, t, u, v, &best);
        } else {
            float8 t_near;
            COUNT_NODE(best);
            uint hit_mask = intersect_boxes8(record, &r, best.t, &t_near);
            if (hit_mask) {
                child_ref = nearest_child(record, hit_mask, t_near, stack, &top);
                continue;
            }
        }
        do {  // skips boxes that begin behind the closest hit
            if (top == 0) return best;
            top--;
        } while (as_float(stack[top].y) > best.t);
        child_ref = stack[top].x;
    }
}

// The closest hit before `t_max`; its primitive is -1 without a hit.
DEVICE Hit closest_hit_bvh8(Lines nodes, Primitives primitives, float3 origin, float3 direction,
                            float t_max FILTER_PARAMS) {
    Hit nothing = {t_max, 0.0f, 0.0f, -1};
    return single_ray_hit(nodes, primitives, origin, direction, nothing, false FILTER_ARGS);
}

// True if the ray hits anything before `t_max`.
DEVICE bool any_hit_bvh8(Lines nodes, Primitives primitives, float3 origin, float3 direction,
                         float t_max FILTER_PARAMS) {
    Hit nothing = {t_max, 0.0f, 0.0f, -1};
    return single_ray_hit(nodes, primitives, origin, direction, nothing, true FILTER_ARGS).primitive >= 0;
}
#endif
