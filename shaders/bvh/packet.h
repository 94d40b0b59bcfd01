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

#if HIT_FILTER
// The rays in `met`, of half h of a packet, whose hits at t, u and v on a primitive pass the filter.
DEVICE_NOINLINE_ALWAYS int16 filter_packet_half(const Primitive q, const Packet *p, int h, int16 met, float16 *t,
                                                const float16 *u, const float16 *v FILTER_PARAMS) {
    float ts[16], us[16], vs[16];
    int passed[16];
    if (!MAY_FAIL_FILTER(q)) return met;
    vstore16(*t, 0, ts);
    vstore16(*u, 0, us);
    vstore16(*v, 0, vs);
    vstore16(met, 0, passed);
    for (uint left = movemask16(met); left; left &= left - 1u) {
        uint i = ctz(left), j = 16u * (uint)h + i;
        Hit hit = {ts[i], us[i], vs[i], -1};
        if (!PASSES_FILTER(q, float3_at(p->origin, j), float3_at(p->direction, j), p->t.s[j], &hit)) passed[i] = 0;
        ts[i] = hit.t;
    }
    *t = vload16(0, ts);
    return vload16(0, passed);
}
#endif

// 16 rays of a packet against primitive k of a leaf8; whether one of them hits.
DEVICE_NOINLINE_ALWAYS bool intersect_packet_half(Lines leaf8, uint k, Primitives primitives, Packet *p, int h,
                                                  bool accept_first_hit FILTER_PARAMS) {
    float16 t, u = (float16)(0.0f), v = (float16)(0.0f), t_max = p->t.v16[h];
    float16 ox = p->origin[0].v16[h], oy = p->origin[1].v16[h], oz = p->origin[2].v16[h];
    float16 dx = p->direction[0].v16[h], dy = p->direction[1].v16[h], dz = p->direction[2].v16[h];
    float16 cx = (float16)(leaf8[k]), cy = (float16)(leaf8[8 + k]), cz = (float16)(leaf8[16 + k]);
    int16 met;
    if (SPHERES && leaf8[8 * LEAF_RADII + k] > 0.0f)
        met = intersect_spheres16(cx, cy, cz, (float16)(leaf8[8 * LEAF_RADII + k]), ox, oy, oz, dx, dy, dz, t_max, &t);
    else
        met = intersect_triangles16(cx, cy, cz, (float16)(leaf8[24 + k]), (float16)(leaf8[32 + k]),
                                    (float16)(leaf8[40 + k]), (float16)(leaf8[48 + k]), (float16)(leaf8[56 + k]),
                                    (float16)(leaf8[64 + k]), ox, oy, oz, dx, dy, dz, t_max, &t, &u, &v);
    if (!movemask16(met)) return false;
    int prim_index = as_int(leaf8[8 * LEAF_PRIM_INDICES + k]), prim_id = prim_id_at(primitives, prim_index);
    met &= (t < t_max) | (p->prim_id.v16[h] > prim_id);
#if HIT_FILTER
    met = filter_packet_half(primitive_at(primitives, prim_index), p, h, met, &t, &u, &v FILTER_ARGS);
    met &= (t < t_max) | (p->prim_id.v16[h] > prim_id);
#endif
    p->t.v16[h] = met ? (accept_first_hit ? (float16)(-1.0f) : t) : t_max;
    p->u.v16[h] = met ? u : p->u.v16[h];
    p->v.v16[h] = met ? v : p->v.v16[h];
    p->prim_index.v16[h] = met ? (int16)(prim_index) : p->prim_index.v16[h];
    p->prim_id.v16[h] = met ? (int16)(prim_id) : p->prim_id.v16[h];
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
