// Packets for CPU traversal: 32 rays and their closest hits so far as a structure of arrays, and tests of 16 of these
// rays against one primitive at a time. bvh/traverse_stream.h and bvh/traverse_packet.h include this file; node8, leaf8
// and the types Lines and Primitives are defined in bvh/traverse_bvh8.h.
// Macros of other files: MAY_FAIL_FILTER (raytracing/textures/alpha_test.h). The host defines INSTANCES and SPHERES
// (1: the scene has the feature, 0: it has not).
#include "bvh/traverse_bvh8.h"

#if HAS_MOVEMASK
// 32 floats or ints, one per ray of a packet, as vectors and as scalars.
typedef union {
    float16 v16[2];
    float8 v8[4];
    float s[32];
} Floats32;
typedef union {
    int16 v16[2];
    int8 v8[4];
    int s[32];
} Ints32;

// 32 rays and their closest hits so far. t starts at the ray's t_max and shrinks to the closest hit; it is negative for
// inactive rays and for rays whose traversal is finished.
typedef struct {
    Floats32 origin[3], direction[3], t, u, v;
    Ints32 prim_index, prim_id;
    float time[32];  // within the shutter interval, 0 to 1
#if INSTANCES
    int instance[32];
#endif
} Packet;

// The vector of ray j from its three rows x, y and z.
DEVICE float3 float3_at(const Floats32 *rows, uint j) { return make_float3(rows[0].s[j], rows[1].s[j], rows[2].s[j]); }

// 16 rays of a packet and their hits so far, in registers.
typedef struct {
    float16 origin[3], direction[3], t, u, v;
    int16 prim_index, prim_id;
} Rays16;

#if HIT_FILTER
// Applies the hit filter (bvh/traverse_bvh2.h) to the rays of the lane mask `hits`, which hit primitive q at t, u and
// v. Returns the mask of rays whose hits pass. The filter may increase t.
DEVICE_NOINLINE_ALWAYS int16 filter_hits16(const Primitive q, const Rays16 *rays, int16 hits, float16 *t,
                                           const float16 *u, const float16 *v FILTER_PARAMS) {
    float rows[6][16], t_max[16], ts[16], us[16], vs[16];
    int passed[16];
    if (!MAY_FAIL_FILTER(q)) return hits;
    for (int k = 0; k < 3; k++) {
        vstore16(rays->origin[k], 0, rows[k]);
        vstore16(rays->direction[k], 0, rows[3 + k]);
    }
    vstore16(rays->t, 0, t_max);
    vstore16(*t, 0, ts);
    vstore16(*u, 0, us);
    vstore16(*v, 0, vs);
    vstore16(hits, 0, passed);
    FOR_EACH_BIT(i, movemask16(hits)) {
        float3 origin = make_float3(rows[0][i], rows[1][i], rows[2][i]);
        float3 direction = make_float3(rows[3][i], rows[4][i], rows[5][i]);
        Hit hit = {ts[i], us[i], vs[i], -1};
        if (!PASSES_FILTER(q, origin, direction, t_max[i], &hit)) passed[i] = 0;
        ts[i] = hit.t;  // the filter may have moved the hit
    }
    *t = vload16(0, ts);
    return vload16(0, passed);
}
#endif

// Intersects 16 rays with the primitives of a leaf8 whose bits are set in `prims`, and updates their closest hits.
// Returns true if any ray hit.
DEVICE bool intersect_leaf16(Lines leaf8, uint prims, Primitives primitives, Rays16 *r,
                             bool accept_first_hit FILTER_PARAMS) {
    float16 ox = r->origin[0], oy = r->origin[1], oz = r->origin[2];
    float16 dx = r->direction[0], dy = r->direction[1], dz = r->direction[2];
    bool any_hits = false;
    for (; prims; prims &= prims - 1u) {
        Lines q = leaf8 + ctz(prims);
        float16 t, u = (float16)(0.0f), v = (float16)(0.0f), cx = (float16)(q[0]), cy = (float16)(q[8]),
                   cz = (float16)(q[16]);
        int16 hits;
        if (SPHERES && q[8 * LEAF_RADII] > 0.0f)
            hits = intersect_spheres16(cx, cy, cz, (float16)(q[8 * LEAF_RADII]), ox, oy, oz, dx, dy, dz, r->t, &t);
        else
            hits = intersect_triangles16(cx, cy, cz, (float16)(q[24]), (float16)(q[32]), (float16)(q[40]),
                                         (float16)(q[48]), (float16)(q[56]), (float16)(q[64]), ox, oy, oz, dx, dy, dz,
                                         r->t, &t, &u, &v);
        if (!movemask16(hits)) continue;
        int prim_index = as_int(q[8 * LEAF_PRIM_INDICES]), prim_id = prim_id_at(primitives, prim_index);
        hits &= (t < r->t) | (r->prim_id > prim_id);  // the lower primitive id wins ties
#if HIT_FILTER  // which may move hits to the far side of a sphere: compare again
        hits = filter_hits16(primitive_at(primitives, prim_index), r, hits, &t, &u, &v FILTER_ARGS);
        hits &= (t < r->t) | (r->prim_id > prim_id);
#endif
        r->t = hits ? (accept_first_hit ? (float16)(-1.0f) : t) : r->t;  // -1: the ray is finished
        r->u = hits ? u : r->u;
        r->v = hits ? v : r->v;
        r->prim_index = hits ? (int16)(prim_index) : r->prim_index;
        r->prim_id = hits ? (int16)(prim_id) : r->prim_id;
        any_hits = true;
    }
    return any_hits;
}

// A function's body: intersect_leaf16 for 16 rays of packet p. READ(row) loads their values, WRITE(row, values) stores
// them, READ_INTS and WRITE_INTS the same for rows of ints. Returns true if any ray hit.
#define INTERSECT_LEAF(READ, READ_INTS, WRITE, WRITE_INTS)                                           \
    Rays16 r = {{READ(p->origin[0]), READ(p->origin[1]), READ(p->origin[2])},                        \
                {READ(p->direction[0]), READ(p->direction[1]), READ(p->direction[2])},               \
                READ(p->t),                                                                          \
                READ(p->u),                                                                          \
                READ(p->v),                                                                          \
                READ_INTS(p->prim_index),                                                            \
                READ_INTS(p->prim_id)};                                                              \
    if (!intersect_leaf16(leaf8, prims, primitives, &r, accept_first_hit FILTER_ARGS)) return false; \
    WRITE(p->t, r.t);                                                                                \
    WRITE(p->u, r.u);                                                                                \
    WRITE(p->v, r.v);                                                                                \
    WRITE_INTS(p->prim_index, r.prim_index);                                                         \
    WRITE_INTS(p->prim_id, r.prim_id);                                                               \
    return true

// intersect_leaf16 for half h (0 or 1) of a packet.
DEVICE_NOINLINE_ALWAYS bool intersect_packet_half(Lines leaf8, uint prims, Primitives primitives, Packet *p, int h,
                                                  bool accept_first_hit FILTER_PARAMS) {
#define READ_HALF(row) (row).v16[h]
#define WRITE_HALF(row, values) (row).v16[h] = values
    INTERSECT_LEAF(READ_HALF, READ_HALF, WRITE_HALF, WRITE_HALF);
}

// The closest hit so far of ray j.
DEVICE Hit packet_hit_at(const Packet *p, uint j) {
    Hit hit = {p->t.s[j], p->u.s[j], p->v.s[j], p->prim_index.s[j]};
    SET_INSTANCE(hit, p->instance[j]);
    return hit;
}

// Stores a vector as item j of three rows.
DEVICE void set_float3_at(Floats32 *rows, uint j, float3 value) {
    rows[0].s[j] = value.x;
    rows[1].s[j] = value.y;
    rows[2].s[j] = value.z;
}

// Sets ray j; origin.w is its time.
DEVICE void packet_set_ray(Packet *p, uint j, float4 origin, float3 direction, float t_max) {
    set_float3_at(p->origin, j, xyz(origin));
    set_float3_at(p->direction, j, direction);
    p->t.s[j] = t_max;
    p->time[j] = origin.w;
}

// Sets the closest hit of ray j.
DEVICE void packet_set_hit(Packet *p, uint j, const Hit hit) {
    p->t.s[j] = hit.t;
    p->u.s[j] = hit.u;
    p->v.s[j] = hit.v;
    p->prim_index.s[j] = hit.primitive;
#if INSTANCES
    p->instance[j] = hit.instance;
#endif
}
#endif
