// Shades eight neighboring paths of a packet that hit Lambertian triangles at once, a path a lane: shade_path of
// raytrace.cu and sample_direct of lights.h for this one case, with the same roundings and so the same bits. Samples of
// lights that are not triangles, or that need a third dimension (lights.h), are drawn lane by lane.
//
// Why the shading stands here a second time: shade_path branches by path (material, light, texture), which eight lanes
// can only do with masks, and OpenCL C has no templates to write both from one text. It is worth it: a sample of the
// Cornell box, 256 x 256, depth 8, takes 38 ms with this file and 126 ms with shade_path for every path (two AVX-512
// cores, best of 25).
#include "raytracing/path_packet.h"

typedef struct {
    float8 x, y, z;
} Float3x8;

#define float3x8(x, y, z) ((Float3x8){x, y, z})

// The eight lanes from `begin` on of three rows of coordinates; store8 leaves the lanes outside `mask` as they are.
DEVICE Float3x8 load8(const Floats32 *rows, uint begin) {
    return float3x8(rows[0].v8[begin >> 3], rows[1].v8[begin >> 3], rows[2].v8[begin >> 3]);
}

#define MASKED_STORE(row, value) (row).v8[begin >> 3] = mask ? value : (row).v8[begin >> 3]
DEVICE void store8(Floats32 *rows, uint begin, int8 mask, Float3x8 value) {
    MASKED_STORE(rows[0], value.x);
    MASKED_STORE(rows[1], value.y);
    MASKED_STORE(rows[2], value.z);
}

// All ones in the lanes whose bit is set.
DEVICE int8 mask_of_bits8(uint bits) { return ((int8)((int)bits) & (int8)(1, 2, 4, 8, 16, 32, 64, 128)) != 0; }

// Eight lanes of the functions of bvh/geometry.h and lights.h of these names.
DEVICE Float3x8 sub8(Float3x8 a, Float3x8 b) { return float3x8(a.x - b.x, a.y - b.y, a.z - b.z); }

DEVICE Float3x8 mul8(Float3x8 a, Float3x8 b) { return float3x8(a.x * b.x, a.y * b.y, a.z * b.z); }

DEVICE Float3x8 scale8(Float3x8 a, float8 t) { return float3x8(a.x * t, a.y * t, a.z * t); }

DEVICE Float3x8 madd8(Float3x8 b, float8 t, Float3x8 a) {
    return float3x8(fma(b.x, t, a.x), fma(b.y, t, a.y), fma(b.z, t, a.z));
}

DEVICE float8 dot8(Float3x8 a, Float3x8 b) { return fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)); }

DEVICE Float3x8 cross8(Float3x8 a, Float3x8 b) {
    return float3x8(fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x)));
}

DEVICE Float3x8 normalize8(Float3x8 a) { return scale8(a, 1.0f / sqrt(dot8(a, a))); }

DEVICE float8 offset_axis8(float8 p, float8 n) {
    int8 steps = convert_int8(256.0f * n);
    return fabs(p) < 1.0f / 32 ? fma((float8)(1.0f / 65536), n, p)
                               : as_float8(as_int8(p) + (p < 0.0f ? -steps : steps));
}

DEVICE Float3x8 local_to_world8(Float3x8 n, float8 x, float8 y, float8 z) {
    float8 s = n.z < 0.0f ? (float8)(-1.0f) : (float8)(1.0f), one = (float8)(1.0f);
    float8 a = -1.0f / (s + n.z), b = n.x * n.y * a;
    Float3x8 first = float3x8(fma(s * n.x * n.x, a, one), s * b, -s * n.x),
             second = float3x8(b, fma(n.y * n.y, a, s), -n.y);
    return madd8(n, z, madd8(second, y, scale8(first, x)));
}

DEVICE void cos_sin_2pi8(float8 x, float8 *cosine, float8 *sine) {
    float8 eighths = floor(x * 8.0f);
    int8 octant = convert_int8(eighths);
    float8 r = fma(eighths + convert_float8(octant & 1), (float8)(-0.125f), x) * 6.283185307f, r2 = r * r,
           one = (float8)(1.0f);
    float8 s =
        r * fma(r2, fma(r2, fma(r2, (float8)(-1.9841270e-4f), (float8)(8.3333333e-3f)), (float8)(-1.6666667e-1f)), one);
    float8 c = fma(r2,
                   fma(r2, fma(r2, fma(r2, (float8)(2.4801587e-5f), (float8)(-1.3888889e-3f)), (float8)(4.1666667e-2f)),
                       (float8)(-0.5f)),
                   one);
    int8 quarter = (octant + 1) >> 1 & 3, odd = (quarter & 1) != 0;
    float8 level = odd ? s : c, upright = odd ? c : s;
    *cosine = (quarter == 1) | (quarter == 2) ? -level : level;
    *sine = quarter >= 2 ? -upright : upright;
}

DEVICE float8 luminance8(Float3x8 c) { return fma((float8)(0.0722f), c.z, fma((float8)(0.7152f), c.y, 0.2126f * c.x)); }

// Transposes float4 number `column` of eight records of `stride` float4s: x, y, z into *columns, w returned.
DEVICE float8 columns8(GLOBAL const float4 *records, int stride, int column, int8 at, Float3x8 *columns) {
#define ROW(i) records[stride * at.s##i + column]
    float8 a = (float8)(ROW(0), ROW(4)), b = (float8)(ROW(1), ROW(5)), c = (float8)(ROW(2), ROW(6)),
           d = (float8)(ROW(3), ROW(7));
#undef ROW
    float8 ab = (float8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5),
           cd = (float8)(c.s0, d.s0, c.s1, d.s1, c.s4, d.s4, c.s5, d.s5);
    float8 ef = (float8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7),
           gh = (float8)(c.s2, d.s2, c.s3, d.s3, c.s6, d.s6, c.s7, d.s7);
    columns->x = (float8)(ab.s01, cd.s01, ab.s45, cd.s45);
    columns->y = (float8)(ab.s23, cd.s23, ab.s67, cd.s67);
    columns->z = (float8)(ef.s01, gh.s01, ef.s45, gh.s45);
    return (float8)(ef.s23, gh.s23, ef.s67, gh.s67);
}

typedef struct {
    Float3x8 v0, edge1, edge2;
    float8 radius;
    int8 material;
} Triangle8;

DEVICE Triangle8 load_triangles8(GLOBAL const float4 *primitives, int8 at) {
    Triangle8 t;
    columns8(primitives, 3, 0, at, &t.v0);
    t.material = as_int8(columns8(primitives, 3, 1, at, &t.edge1));
    t.radius = columns8(primitives, 3, 2, at, &t.edge2);
    return t;
}

#define FLOAT4S_PER_MATERIAL (int)(sizeof(Material) / 16)

// The surface points of eight hits, their albedo, and the origins of the next rays.
typedef struct {
    Float3x8 point, normal, albedo, origin;
    int8 front_face, material;
} DiffuseHit8;

// sample_direct for the lanes whose light is a triangle; the lanes of other lights are returned in *remaining. Returns
// the lanes that have a shadow ray.
DEVICE uint sample_direct8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint lanes,
                           const DiffuseHit8 *s, GLOBAL const float4 *primitives, GLOBAL const Material *materials,
                           GLOBAL const float4 *lights, uint *remaining) {
    const float *cache = packet->sample_cache + begin;
    uint8 u32 = as_uint8(vload8(0, cache + CACHE_PATHS * CACHE_DIMENSIONS));
    int8 low = (int8)(0), high = (int8)(params.light_count - 1);
    Float3x8 entry;
    while (movemask8(low < high)) {
        int8 middle = (low + high) / 2;
        columns8(lights, 1, 0, middle, &entry);
        int8 above = as_uint8(entry.x) > u32, search = low < high;
        high = search & above ? middle : high;
        low = search & ~above ? middle + 1 : low;
    }
    columns8(lights, 1, 0, low, &entry);
    uint8 end = as_uint8(entry.x);
    int8 light_id = as_int8(entry.y);
    columns8(lights, 1, 0, low > 0 ? low - 1 : low, &entry);
    uint8 start = low > 0 ? as_uint8(entry.x) : (uint8)(0), width = end - start;
    float8 u1 = convert_float8(u32 - start) / convert_float8(width), u2 = vload8(0, cache + CACHE_PATHS * 5);
    u1 = min_nnan(u1, (float8)(0.9999999f));
    Triangle8 p = load_triangles8(primitives, light_id < 0 ? (int8)(0) : light_id);
    *remaining = lanes & ~movemask8((width > (1u << 20)) & (light_id >= 0) & (p.radius == 0.0f));
    float8 root = sqrt(u1);
    Float3x8 normal = normalize8(cross8(p.edge1, p.edge2)), emission;
    Float3x8 point = madd8(p.edge2, root * u2, madd8(p.edge1, root * (1.0f - u2), p.v0));
    Float3x8 to_light = sub8(point, s->origin);
    float8 distance = sqrt(dot8(to_light, to_light));
    Float3x8 direction = scale8(to_light, 1.0f / distance);
    float8 cosine = -dot8(normal, direction);
    columns8((GLOBAL const float4 *)materials, FLOAT4S_PER_MATERIAL, 1, p.material, &emission);
    float8 light_pdf = luminance8(emission) * params.inverse_light_power * distance * distance / cosine;
    float8 bsdf_pdf = max_nnan(dot8(s->normal, direction), (float8)(0.0f)) * (1.0f / PI);
    uint shadows = lanes & ~*remaining & movemask8((cosine > 0.0f) & (distance > 0.0f) & (bsdf_pdf > 0.0f));
    float8 weight = 1.0f / (light_pdf + (DIRECT_LIGHTING == DIRECT_MIS ? bsdf_pdf : (float8)(0.0f)));
    int8 mask = (int8)(-1);
    store8(packet->shadows.direction, begin, mask, direction);
    packet->shadows.t.v8[begin >> 3] = distance < FLT_MAX ? distance * 0.9999f : (float8)(FLT_MAX);
    store8(packet->shadows.origin, begin, mask, s->origin);
    Float3x8 reflected = scale8(mul8(scale8(s->albedo, bsdf_pdf), emission), weight);
    Float3x8 contribution = mul8(load8(packet->throughput, begin), reflected);
#if CLAMP_INDIRECT
    float8 largest = max_nnan(max_nnan(contribution.x, contribution.y), contribution.z);
    float8 excess = depth > 0 && largest > params.clamp_indirect ? params.clamp_indirect / largest : (float8)(1.0f);
    contribution = scale8(contribution, excess);
#endif
    store8(packet->contribution, begin, mask, contribution);
    return shadows;
}

DEVICE float lane_of8(float8 x, uint k) { return ((const float *)&x)[k]; }

DEVICE float3 float3_of_lane(Float3x8 p, uint k) {
    return make_float3(lane_of8(p.x, k), lane_of8(p.y, k), lane_of8(p.z, k));
}

// sample_direct for lane k; false if it has no shadow ray.
DEVICE_NOINLINE_ALWAYS bool sample_direct_lane(const LaunchParams params, int depth, PathPacket *packet, uint begin,
                                               uint k, const DiffuseHit8 *s, SCENE_PARAMS,
                                               GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    uint j = begin + k, dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 4u;
    Surface surface;
    surface.point = float3_of_lane(s->point, k);
    surface.normal = float3_of_lane(s->normal, k);
    surface.ray_direction = float3_at(packet->rays.direction, j);
    surface.front_face = ((const int *)&s->front_face)[k] != 0;
    surface.material = ((const int *)&s->material)[k];
    surface.in_light_table = true;
    ShadowRay shadow;
    float3 origin = float3_of_lane(s->origin, k);
    if (!sample_direct(params, materials[surface.material], surface, origin, true, lights, SCENE_ARGS, materials,
                       packet_sampler(packet, j), dimension, &shadow))
        return false;
    float3 throughput = float3_at(packet->throughput, j);
    shadow.contribution =
        clamp_contribution(params, depth + 1, with_w(throughput * xyz(shadow.contribution), shadow.contribution.w));
    packet_set_shadow_ray(packet, j, with_w(origin, 0.0f), shadow);
    return true;
}

// Shades those of `lanes`, a bit each, that hit Lambertian triangles, and leaves these in *lanes. Returns the lanes
// whose paths continue, and in *shadows those with a shadow ray.
DEVICE uint shade_diffuse8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint *lanes,
                           uint *shadows, SCENE_PARAMS, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    Packet *rays = &packet->rays;
    const float *cache = packet->sample_cache + begin;
    int8 hit = rays->prim_index.v8[begin >> 3];
    *lanes &= movemask8(hit >= 0);
    if (!*lanes) return 0;
    hit = mask_of_bits8(*lanes) ? hit : 0;  // lanes of ended paths may hold any index: they read the first primitive
    Triangle8 p = load_triangles8(primitives, hit);
    DiffuseHit8 s;
    s.material = p.material;
    float8 is_lambertian = columns8((GLOBAL const float4 *)materials, FLOAT4S_PER_MATERIAL, 0, p.material, &s.albedo);
    *lanes &= movemask8((is_lambertian > 0.0f) & (p.radius == 0.0f));
#if REFRACTION  // paths inside a medium are shaded alone
    *lanes &= movemask8((packet->index.v8[begin >> 3] == 1.0f) & (as_int8(packet->medium.v8[begin >> 3]) < 2));
#endif
    if (!*lanes) return 0;
    Float3x8 ray_direction = load8(rays->direction, begin);
    s.normal = normalize8(cross8(p.edge1, p.edge2));
    s.point = madd8(p.edge2, rays->v.v8[begin >> 3], madd8(p.edge1, rays->u.v8[begin >> 3], p.v0));
    s.front_face = dot8(s.normal, ray_direction) < 0.0f;
    s.normal.x = s.front_face ? s.normal.x : -s.normal.x;
    s.normal.y = s.front_face ? s.normal.y : -s.normal.y;
    s.normal.z = s.front_face ? s.normal.z : -s.normal.z;
    s.origin.x = offset_axis8(s.point.x, s.normal.x);
    s.origin.y = offset_axis8(s.point.y, s.normal.y);
    s.origin.z = offset_axis8(s.point.z, s.normal.z);
    bool last_bounce = depth + 1 >= params.max_depth;
    if (DIRECT_LIGHTING != DIRECT_BSDF && params.light_count > 0 && !last_bounce) {
        uint remaining;
        *shadows = sample_direct8(params, depth, packet, begin, *lanes, &s, primitives, materials, lights, &remaining);
        for (; remaining; remaining &= remaining - 1u)
            if (sample_direct_lane(params, depth, packet, begin, ctz(remaining), &s, SCENE_ARGS, materials, lights))
                *shadows |= 1u << ctz(remaining);
    }
    if (last_bounce) return 0;
    float8 u1 = vload8(0, cache), cosine = sqrt(1.0f - u1), sine = sqrt(u1), x, y;
    cos_sin_2pi8(vload8(0, cache + CACHE_PATHS), &x, &y);
    Float3x8 direction = normalize8(local_to_world8(s.normal, sine * x, sine * y, cosine));
    Float3x8 t = mul8(load8(packet->throughput, begin), s.albedo);
    uint continues = *lanes;
    if (depth + 1 >= params.rr_depth) {
        float8 survival_probability = clamp(max_nnan(max_nnan(t.x, t.y), t.z), (float8)(0.05f), (float8)(1.0f));
        continues &= movemask8(vload8(0, cache + 3 * CACHE_PATHS) < survival_probability);
        t = scale8(t, 1.0f / survival_probability);
    }
    int8 mask = mask_of_bits8(continues);
    store8(rays->origin, begin, mask, s.origin);
    store8(rays->direction, begin, mask, direction);
    MASKED_STORE(rays->t, (float8)(FLT_MAX));
    MASKED_STORE(packet->bsdf_pdf, cosine * (1.0f / PI));
    store8(packet->throughput, begin, mask, t);
    return continues;
}
