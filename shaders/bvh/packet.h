// Packets: 32 rays and their hits so far in structures of arrays, 16 of which are tested against one primitive at once.
#include "bvh/traverse_bvh8.h"

#if HAS_MOVEMASK
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

typedef union {
    float16 v16;
    float s[16];
} Floats16;
typedef union {
    int16 v16;
    int s[16];
} Ints16;

// 32 rays and their hits so far. Inactive rays and rays that are done have a negative t.
typedef struct {
    Floats32 origin[3], direction[3], t, u, v;
    Ints32 prim_index, prim_id;
    float time[32];  // within the shutter, 0 to 1
#if INSTANCES
    int instance[32];
#endif
} Packet;

// Ray j of three rows of coordinates.
DEVICE float3 float3_at(const Floats32 *rows, uint j) { return make_float3(rows[0].s[j], rows[1].s[j], rows[2].s[j]); }

// 16 rays of a packet and their hits so far, in registers.
typedef struct {
    float16 origin[3], direction[3], t, u, v;
    int16 prim_index, prim_id;
} Rays16;

#if HIT_FILTER
// The rays in `met` whose hits at t, u and v on a primitive pass the filter. A hit may move farther.
DEVICE_NOINLINE_ALWAYS int16 filter_hits16(const Primitive q, const Rays16 *rays, int16 met, float16 *t,
                                           const float16 *u, const float16 *v FILTER_PARAMS) {
    Floats16 rows[6], ends, ts, us, vs;
    Ints16 passed;
    if (!MAY_FAIL_FILTER(q)) return met;
    for (int k = 0; k < 3; k++) {
        rows[k].v16 = rays->origin[k];
        rows[3 + k].v16 = rays->direction[k];
    }
    ends.v16 = rays->t;
    ts.v16 = *t;
    us.v16 = *u;
    vs.v16 = *v;
    passed.v16 = met;
    for (uint left = movemask16(met); left; left &= left - 1u) {
        uint i = ctz(left);
        float3 origin = make_float3(rows[0].s[i], rows[1].s[i], rows[2].s[i]);
        float3 direction = make_float3(rows[3].s[i], rows[4].s[i], rows[5].s[i]);
        Hit hit = {ts.s[i], us.s[i], vs.s[i], -1};
        if (!PASSES_FILTER(q, origin, direction, ends.s[i], &hit)) passed.s[i] = 0;
        ts.s[i] = hit.t;
    }
    *t = ts.v16;
    return passed.v16;
}
#endif

// The rays against the `prims` of a leaf8; whether one of them hits.
DEVICE bool intersect_leaf16(Lines leaf8, uint prims, Primitives primitives, Rays16 *r,
                             bool accept_first_hit FILTER_PARAMS) {
    float16 ox = r->origin[0], oy = r->origin[1], oz = r->origin[2];
    float16 dx = r->direction[0], dy = r->direction[1], dz = r->direction[2];
    bool nearer = false;
    for (; prims; prims &= prims - 1u) {
        Lines q = leaf8 + ctz(prims);
        float16 t, u = (float16)(0.0f), v = (float16)(0.0f), cx = (float16)(q[0]), cy = (float16)(q[8]),
                   cz = (float16)(q[16]);
        int16 met;
        if (SPHERES && q[8 * LEAF_RADII] > 0.0f)
            met = intersect_spheres16(cx, cy, cz, (float16)(q[8 * LEAF_RADII]), ox, oy, oz, dx, dy, dz, r->t, &t);
        else
            met = intersect_triangles16(cx, cy, cz, (float16)(q[24]), (float16)(q[32]), (float16)(q[40]),
                                        (float16)(q[48]), (float16)(q[56]), (float16)(q[64]), ox, oy, oz, dx, dy, dz,
                                        r->t, &t, &u, &v);
        if (!movemask16(met)) continue;
        int prim_index = as_int(q[8 * LEAF_PRIM_INDICES]), prim_id = prim_id_at(primitives, prim_index);
        met &= (t < r->t) | (r->prim_id > prim_id);
#if HIT_FILTER
        met = filter_hits16(primitive_at(primitives, prim_index), r, met, &t, &u, &v FILTER_ARGS);
        met &= (t < r->t) | (r->prim_id > prim_id);
#endif
        r->t = met ? (accept_first_hit ? (float16)(-1.0f) : t) : r->t;
        r->u = met ? u : r->u;
        r->v = met ? v : r->v;
        r->prim_index = met ? (int16)(prim_index) : r->prim_index;
        r->prim_id = met ? (int16)(prim_id) : r->prim_id;
        nearer = true;
    }
    return nearer;
}

// The 16 rays of half h of a packet against the `prims` of a leaf8; whether one of them hits.
DEVICE_NOINLINE_ALWAYS bool intersect_packet_half(Lines leaf8, uint prims, Primitives primitives, Packet *p, int h,
                                                  bool accept_first_hit FILTER_PARAMS) {
    Rays16 r;
    for (int k = 0; k < 3; k++) {
        r.origin[k] = p->origin[k].v16[h];
        r.direction[k] = p->direction[k].v16[h];
    }
    r.t = p->t.v16[h];
    r.u = p->u.v16[h];
    r.v = p->v.v16[h];
    r.prim_index = p->prim_index.v16[h];
    r.prim_id = p->prim_id.v16[h];
    if (!intersect_leaf16(leaf8, prims, primitives, &r, accept_first_hit FILTER_ARGS)) return false;
    p->t.v16[h] = r.t;
    p->u.v16[h] = r.u;
    p->v.v16[h] = r.v;
    p->prim_index.v16[h] = r.prim_index;
    p->prim_id.v16[h] = r.prim_id;
    return true;
}

DEVICE Hit packet_hit_at(const Packet *p, uint j) {
    Hit hit = {p->t.s[j], p->u.s[j], p->v.s[j], p->prim_index.s[j]};
#if INSTANCES
    hit.instance = p->instance[j];
#endif
    return hit;
}

DEVICE void set_float3_at(Floats32 *rows, uint j, float3 value) {
    rows[0].s[j] = value.x;
    rows[1].s[j] = value.y;
    rows[2].s[j] = value.z;
}

DEVICE void packet_set_ray(Packet *p, uint j, float4 origin, float3 direction, float t_max) {
    set_float3_at(p->origin, j, xyz(origin));
    set_float3_at(p->direction, j, direction);
    p->t.s[j] = t_max;
    p->time[j] = origin.w;
}

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
