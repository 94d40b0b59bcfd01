// Shades eight neighboring paths of a packet at once, a path a lane: those that escape to an environment, and those
// that hit triangles of the materials below; shade_path of raytrace.cu and sample_direct of lights.h for these cases,
// with the same roundings and so the same bits. Samples of lights that are neither triangles nor the environment, or
// that need a third dimension (lights.h), or that textures dim, are drawn lane by lane; lanes of other materials, and
// of normal maps, are left to shade_path.
//
// Why the shading stands here a second time: shade_path branches by path (material, light, texture), which eight lanes
// can only do with masks, and OpenCL C has no templates to write both from one text. It is worth it: see
// assets/guides/raytracing.md.
#include "raytracing/vectors8.h"

// Material.color.w (renderer/raytracing/materials.py): materials that emit nothing and are shaded here.
#define VECTOR_DIFFUSE 1.0f
#define VECTOR_METALLIC 2.0f
#define VECTOR_CATCHER 3.0f

typedef struct {
    Float3x8 v0, edge1, edge2;
    float8 radius;
    int8 id, material;
} Triangle8;

DEVICE Triangle8 load_triangles8(GLOBAL const float4 *primitives, int8 at) {
    Triangle8 t;
    t.id = as_int8(columns8(primitives, 3, 0, at, &t.v0));
    t.material = as_int8(columns8(primitives, 3, 1, at, &t.edge1));
    t.radius = columns8(primitives, 3, 2, at, &t.edge2);
    return t;
}

#define FLOAT4S_PER_MATERIAL (int)(sizeof(Material) / 16)

// clamp_contribution of rays that find light which is indirect or not.
DEVICE Float3x8 clamp_contribution8(const LaunchParams params, bool is_indirect, Float3x8 contribution) {
#if CLAMP_INDIRECT
    float8 largest = max_nnan(max_nnan(contribution.x, contribution.y), contribution.z);
    float8 excess = largest > params.clamp_indirect ? params.clamp_indirect / largest : (float8)(1.0f);
    if (is_indirect) contribution = scale8(contribution, excess);
#endif
    return contribution;
}

// choose_light for eight lanes, and the position in the light's interval; is_narrow: this must be drawn in its place.
typedef struct {
    int8 id, is_narrow;
    float8 u1;
} ChosenLight8;

DEVICE ChosenLight8 choose_light8(const LaunchParams params, GLOBAL const float4 *lights, uint8 u32) {
    int8 low = (int8)(0), high = (int8)(params.light_count - 1);
    while (movemask8(low < high)) {
        int8 middle = (low + high) >> 1, is_above = GATHER8(lights, 4 * middle) > u32, search = low < high;
        high = search & is_above ? middle : high;
        low = search & ~is_above ? middle + 1 : low;
    }
    uint8 end = GATHER8(lights, 4 * low), before = GATHER8(lights, 4 * max(low - 1, 0));
    uint8 begin = low > 0 ? before : (uint8)(0), width = end - begin;
    ChosenLight8 chosen = {as_int8(GATHER8(lights, 4 * low + 1)), width <= (1u << 20),
                           min_nnan(convert_float8(u32 - begin) / convert_float8(width), (float8)(0.9999999f))};
    return chosen;
}

// The lanes whose light is the environment.
DEVICE int8 environment_lanes8(const LaunchParams params, GLOBAL const float4 *lights, int8 id) {
#if ENVIRONMENT
    int8 others = (id < 0) & (id != (int)LIGHT_TREE_ID);
    int8 row = 4 * (params.non_area_lights + 3 * (others ? ~id : 0));
    return others & (as_float8(GATHER8(lights, row + 3)) == LIGHT_ENVIRONMENT);
#else
    return (int8)(0);
#endif
}

#if ENVIRONMENT
#include "raytracing/environment_simd8.h"

// Adds the radiance of `lanes`, whose rays leave a scene without suns, at depth `depth`.
DEVICE void escape8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint lanes,
                    GLOBAL const float4 *lights) {
    Float3x8 direction = load8(packet->rays.direction, begin), throughput = load8(packet->throughput, begin);
#if REFRACTION
    float8 index = packet->index.v8[begin >> 3];
    throughput = scale8(throughput, 1.0f / (index * index));
#endif
    Float3x8 found = mul8(throughput, escaped_radiance8(params, lights, direction, packet->bsdf_pdf.v8[begin >> 3]));
    found = clamp_contribution8(params, depth > 1, found);
    store8(packet->radiance, begin, mask_of_bits8(lanes), add8(load8(packet->radiance, begin), found));
}
#endif

#if VECTOR_SHADING
#if METALLIC
#include "raytracing/metallic_simd8.h"
#endif
#if ENVIRONMENT && SHADOW_CATCHER
#include "raytracing/catch_shadows_simd8.h"
#endif
#if TEXTURED
#include "raytracing/texture_simd8.h"
#endif

// The surface points of eight hits, their materials, and the origins of the next rays.
typedef struct {
    Float3x8 point, normal, color, origin;
    int8 front_face, material, is_metallic;  // is_metallic: whether the lane's material is `metal`, not Lambertian
#if TEXTURED
    Float3x8 geometric_normal;  // on the ray's side; `normal` is the shading normal
#endif
#if METALLIC
    Metallic8 metal;
    float8 roughness, metallic;
#endif
} SurfaceHit8;

// The lanes whose directions are on the same side of the geometric surface as of the shading normal.
DEVICE int8 on_geometric_side8(const SurfaceHit8 *s, Float3x8 direction, int8 transmits) {
#if TEXTURED
    return (dot8(direction, s->geometric_normal) > 0.0f) ^ transmits;
#else
    return (int8)(-1);
#endif
}

// eval_bsdf_pdf: BSDF times cosine; the pdf, without which the value does not count, in *pdf.
DEVICE Float3x8 eval_bsdf_pdf8(const SurfaceHit8 *s, Float3x8 direction, float8 *pdf) {
    *pdf = max_nnan(dot8(s->normal, direction), (float8)(0.0f)) * (1.0f / PI);
    Float3x8 value = scale8(s->color, *pdf);
#if METALLIC
    if (movemask8(s->is_metallic)) {
        float8 metal_pdf;
        value = select8(s->is_metallic, metallic_eval_pdf8(&s->metal, s->normal, direction, &metal_pdf), value);
        *pdf = s->is_metallic ? metal_pdf : *pdf;
    }
#endif
    return value;
}

// Samples of lights: LightSample of eight lanes.
typedef struct {
    Float3x8 direction, radiance;
    float8 distance, pdf;
} LightSample8;

// sample_primitive for lanes whose light is a triangle. Returns the lanes that see its front.
DEVICE int8 sample_triangle8(const LaunchParams params, const Triangle8 *p, Float3x8 origin, float8 u1, float8 u2,
                             GLOBAL const Material *materials, LightSample8 *light) {
    float8 root = sqrt(u1);
    Float3x8 normal = normalize8(cross8(p->edge1, p->edge2));
    Float3x8 point = madd8(p->edge2, root * u2, madd8(p->edge1, root * (1.0f - u2), p->v0));
    Float3x8 to_light = sub8(point, origin);
    light->distance = sqrt(dot8(to_light, to_light));
    light->direction = scale8(to_light, 1.0f / light->distance);
    float8 cosine = -dot8(normal, light->direction);
    columns8((GLOBAL const float4 *)materials, FLOAT4S_PER_MATERIAL, 1, p->material, &light->radiance);
    light->pdf = luminance8(light->radiance) * params.inverse_light_power * light->distance * light->distance / cosine;
    return (cosine > 0.0f) & (light->distance > 0.0f);
}

// sample_direct for the lanes whose light is a triangle or the environment; the others are returned in *remaining.
// Returns the lanes that have a shadow ray.
DEVICE uint sample_direct8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint lanes,
                           const SurfaceHit8 *s, SCENE_PARAMS, GLOBAL const Material *materials,
                           GLOBAL const float4 *lights, uint *remaining) {
    const float *cache = packet->sample_cache + begin;
    ChosenLight8 chosen = choose_light8(params, lights, as_uint8(vload8(0, cache + CACHE_PATHS * CACHE_DIMENSIONS)));
    float8 u2 = vload8(0, cache + CACHE_PATHS * 5);
    LightSample8 light;
    int8 found = (int8)(0), drawn = ~chosen.is_narrow & mask_of_bits8(lanes);
    int8 is_environment = drawn & environment_lanes8(params, lights, chosen.id), is_area = drawn & (chosen.id >= 0);
    if (movemask8(is_area)) {
        Triangle8 p = load_triangles8(primitives, is_area ? chosen.id : (int8)(0));
        is_area &= p.radius == 0.0f;
#if TEXTURED  // lights that textures dim are sampled lane by lane
        is_area &=
            (TEXTURE_FIELD8(emissive, p.material) < 0) & (TEXTURE_FIELD8(alpha_mode, p.material) == ALPHA_OPAQUE);
#endif
        found = is_area & sample_triangle8(params, &p, s->origin, chosen.u1, u2, materials, &light);
    }
#if ENVIRONMENT
    if (movemask8(is_environment)) {
        float8 pdf, u, v;
        Float3x8 direction = sample_environment_map8(params, lights, (int8)(0), chosen.u1, u2, &pdf);
        pdf *= params.environment_probability;
        Float3x8 radiance = environment_radiance8(params, lights, direction, sine_to_zenith8(direction), &u, &v);
        light.direction = select8(is_environment, direction, light.direction);
        light.radiance = select8(is_environment, radiance, light.radiance);
        light.distance = is_environment ? (float8)(FLT_MAX) : light.distance;
        light.pdf = is_environment ? pdf : light.pdf;
        found |= is_environment & (pdf > 0.0f);
    }
#endif
    *remaining = lanes & ~movemask8(is_area | is_environment);
    if (!movemask8(found)) return 0;
    float8 bsdf_pdf;
    Float3x8 reflected = eval_bsdf_pdf8(s, light.direction, &bsdf_pdf);
    found &= on_geometric_side8(s, light.direction, dot8(light.direction, s->normal) < 0.0f);
    uint shadows = movemask8(found & (bsdf_pdf > 0.0f));
    float8 weight = 1.0f / (light.pdf + (DIRECT_LIGHTING == DIRECT_MIS ? bsdf_pdf : (float8)(0.0f)));
    reflected = scale8(mul8(reflected, light.radiance), weight);
    Float3x8 contribution = clamp_contribution8(params, depth > 0, mul8(load8(packet->throughput, begin), reflected));
    float8 t_max = light.distance < FLT_MAX ? light.distance * 0.9999f : (float8)(FLT_MAX);
    set_shadow_rays8(packet, begin, shadows, s->origin, light.direction, t_max, contribution);
    return shadows;
}

DEVICE float lane_of8(float8 x, uint k) { return ((const float *)&x)[k]; }

DEVICE float3 float3_of_lane(Float3x8 p, uint k) {
    return make_float3(lane_of8(p.x, k), lane_of8(p.y, k), lane_of8(p.z, k));
}

// sample_direct for lane k; false if it has no shadow ray.
DEVICE_NOINLINE_ALWAYS bool sample_direct_lane(const LaunchParams params, int depth, PathPacket *packet, uint begin,
                                               uint k, const SurfaceHit8 *s, SCENE_PARAMS,
                                               GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    uint j = begin + k, dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 4u;
    Surface surface;
    surface.point = float3_of_lane(s->point, k);
    surface.normal = float3_of_lane(s->normal, k);
    surface.ray_direction = float3_at(packet->rays.direction, j);
    surface.front_face = ((const int *)&s->front_face)[k] != 0;
    surface.material = ((const int *)&s->material)[k];
    surface.in_light_table = true;
    Material material = materials[surface.material];
#if TEXTURED
    surface.geometric_normal = float3_of_lane(s->geometric_normal, k);
    material.color = with_w(float3_of_lane(s->color, k), material.color.w);
#if METALLIC
    material.roughness = lane_of8(s->roughness, k);
    material.metallic = lane_of8(s->metallic, k);
#endif
#endif
    ShadowRay shadow;
    float3 origin = float3_of_lane(s->origin, k);
    if (!sample_direct(params, material, surface, origin, true, lights, SCENE_ARGS, materials,
                       packet_sampler(packet, j), dimension, &shadow))
        return false;
    float3 throughput = float3_at(packet->throughput, j);
    shadow.contribution =
        clamp_contribution(params, depth + 1, with_w(throughput * xyz(shadow.contribution), shadow.contribution.w));
    packet_set_shadow_ray(packet, j, with_w(origin, 0.0f), shadow);
    return true;
}

#if TEXTURED
// The shading normals of eight triangles, and colors and (with METALLIC) the other numbers of `s` times textures and
// vertex colors. s->normal is the normal of the front, s->geometric_normal that of the ray's side.
DEVICE void texture_surface8(SCENE_PARAMS, const Triangle8 *p, float8 u, float8 v, Float3x8 ray_direction, int8 shaded,
                             SurfaceHit8 *s) {
    Float3x8 a, b, c;
    float8 u0 = columns8(attributes, FLOAT4S_PER_PRIMITIVE, 0, p->id, &a);
    float8 u1 = columns8(attributes, FLOAT4S_PER_PRIMITIVE, 1, p->id, &b);
    float8 u2 = columns8(attributes, FLOAT4S_PER_PRIMITIVE, 2, p->id, &c);
    Float3x8 smooth = smooth_normal8(madd8(c, v, madd8(b, u, scale8(a, 1.0f - u - v))), s->normal);
    s->normal = clamp_shading_normal8(select8(s->front_face, smooth, negated8(smooth)), ray_direction);
#if SURFACE_TEXTURES
    Float3x8 vs;
    columns8(attributes, FLOAT4S_PER_PRIMITIVE, 3, p->id, &vs);
    Texcoords8 texcoords = texcoords_at8(attributes, p->id, float3x8(u0, u1, u2), vs, u, v);
#define SAMPLE8(field, srgb) \
    sample_texture8(textures, texels, TEXTURE_FIELD8(field, p->material), shaded, &texcoords, srgb)
    s->color = mul8(s->color, SAMPLE8(base_color, true));
#if METALLIC
    Float3x8 found = SAMPLE8(metallic_roughness, false);
    s->roughness *= found.y;
    s->metallic *= found.z;
#if TEXTURE_SLOTS & SLOT_ROUGHNESS
    s->roughness *= SAMPLE8(roughness, false).y;
#endif
#if TEXTURE_SLOTS & SLOT_METALLIC
    s->metallic *= SAMPLE8(metallic, false).z;
#endif
#endif
#undef SAMPLE8
#endif
#if FLOAT4S_PER_PRIMITIVE > 4
    s->color = mul8(s->color, interpolated_color8(attributes, p->id, u, v));
#endif
#if METALLIC
    if (movemask8(shaded & s->is_metallic))
        s->normal = select8(s->is_metallic, bend_normals8(s->normal, s->geometric_normal, ray_direction, s->metallic),
                            s->normal);
#endif
}
#endif

// The surfaces that `lanes` hit; leaves those in *lanes that are shaded here, and in *catchers those among them on
// shadow catchers.
DEVICE void surface_at8(PathPacket *packet, uint begin, uint *lanes, uint *catchers, SCENE_PARAMS,
                        GLOBAL const Material *materials, SurfaceHit8 *s) {
    Packet *rays = &packet->rays;
    GLOBAL const float4 *columns = (GLOBAL const float4 *)materials;
    // lanes of ended paths may hold any index: they read the first primitive
    Triangle8 p = load_triangles8(primitives, mask_of_bits8(*lanes) ? rays->prim_index.v8[begin >> 3] : (int8)(0));
    s->material = p.material;
    float8 kind = columns8(columns, FLOAT4S_PER_MATERIAL, 0, p.material, &s->color);
    int8 shaded = (p.radius == 0.0f) & (kind > 0.0f);
    s->is_metallic = kind == VECTOR_METALLIC;
#if REFRACTION  // paths inside a medium are shaded alone
    shaded &= (packet->index.v8[begin >> 3] == 1.0f) & (as_int8(packet->medium.v8[begin >> 3]) < 2);
#endif
    Float3x8 ray_direction = load8(rays->direction, begin);
    s->normal = normalize8(cross8(p.edge1, p.edge2));
    s->point = madd8(p.edge2, rays->v.v8[begin >> 3], madd8(p.edge1, rays->u.v8[begin >> 3], p.v0));
    s->front_face = dot8(s->normal, ray_direction) < 0.0f;
    Float3x8 side = select8(s->front_face, s->normal, float3x8(-s->normal.x, -s->normal.y, -s->normal.z));
    s->origin =
        float3x8(offset_axis8(s->point.x, side.x), offset_axis8(s->point.y, side.y), offset_axis8(s->point.z, side.z));
    *catchers = 0;
#if ENVIRONMENT && SHADOW_CATCHER
    shaded &= (kind != VECTOR_CATCHER) | s->front_face;
    *catchers = *lanes & movemask8(shaded & (kind == VECTOR_CATCHER));
#else
    shaded &= kind != VECTOR_CATCHER;
#endif
#if METALLIC
    s->is_metallic &= shaded;
    int8 metal = mask_of_bits8(*lanes) & s->is_metallic;
    if (movemask8(metal)) {
        Float3x8 numbers;
        s->roughness = columns8(columns, FLOAT4S_PER_MATERIAL, 7, p.material, &numbers);
        columns8(columns, FLOAT4S_PER_MATERIAL, 8, p.material, &numbers);
        s->metallic = numbers.x;
    }
#endif
#if TEXTURED
    shaded &= mask_of_bits8(*lanes);
#if NORMAL_MAPS
    shaded &= TEXTURE_FIELD8(normal, p.material) < 0;
#endif
    s->geometric_normal = side;
    if (movemask8(shaded))
        texture_surface8(SCENE_ARGS, &p, rays->u.v8[begin >> 3], rays->v.v8[begin >> 3], ray_direction, shaded, s);
#if SHADOW_RAYS_CROSS  // such shadow rays cross the surface where the shading normal leans over it
    shaded &= dot8(sub8(s->origin, s->point), s->normal) >= 0.0f;
#endif
#else
    s->normal = side;
#endif
    *lanes &= movemask8(shaded);
#if ENVIRONMENT && SHADOW_CATCHER
    *catchers &= *lanes;
#endif
#if METALLIC
    if (*lanes & movemask8(s->is_metallic))
        s->metal = make_metallic8(s->normal, ray_direction, s->color, s->roughness, s->metallic);
#endif
}

// Samples the next rays of `lanes`; returns those whose paths continue.
DEVICE uint continue_paths8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint lanes,
                            const SurfaceHit8 *s) {
    const float *cache = packet->sample_cache + begin;
    float8 u1 = vload8(0, cache), u2 = vload8(0, cache + CACHE_PATHS), pdf, x, y;
    float8 cosine = sqrt(1.0f - u1), sine = sqrt(u1);
    cos_sin_2pi8(u2, &x, &y);
    Float3x8 direction = normalize8(local_to_world8(s->normal, sine * x, sine * y, cosine)), weight = s->color;
    pdf = cosine * (1.0f / PI);
#if METALLIC
    if (lanes & movemask8(s->is_metallic)) {
        Float3x8 reflected;
        float8 metal_pdf, u3 = vload8(0, cache + 2 * CACHE_PATHS);
        Float3x8 metal_weight = metallic_sample8(&s->metal, s->normal, direction, u1, u2, u3, &reflected, &metal_pdf);
        direction = select8(s->is_metallic, reflected, direction);
        weight = select8(s->is_metallic, metal_weight, weight);
        pdf = s->is_metallic ? metal_pdf : pdf;
        lanes &= movemask8(~s->is_metallic | (metal_pdf > 0.0f));
    }
#endif
    lanes &= movemask8(on_geometric_side8(s, direction, (int8)(0)));
    Float3x8 t = mul8(load8(packet->throughput, begin), weight);
    if (depth + 1 >= params.rr_depth) {
        float8 survival_probability = clamp(max_nnan(max_nnan(t.x, t.y), t.z), (float8)(0.05f), (float8)(1.0f));
        lanes &= movemask8(vload8(0, cache + 3 * CACHE_PATHS) < survival_probability);
        t = scale8(t, 1.0f / survival_probability);
    }
    int8 mask = mask_of_bits8(lanes);
    store8(packet->rays.origin, begin, mask, s->origin);
    store8(packet->rays.direction, begin, mask, direction);
    MASKED_STORE(packet->rays.t, (float8)(FLT_MAX));
    MASKED_STORE(packet->bsdf_pdf, pdf);
    store8(packet->throughput, begin, mask, t);
    return lanes;
}

// Shades those of `lanes`, a bit each, whose hits are on triangles of the materials above, and leaves these in *lanes.
// Returns the lanes whose paths continue, and in *shadows those with a shadow ray.
DEVICE uint shade_hits8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint *lanes,
                        uint *shadows, SCENE_PARAMS, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    SurfaceHit8 s;
    uint catchers;
    surface_at8(packet, begin, lanes, &catchers, SCENE_ARGS, materials, &s);
    uint shaded = *lanes & ~catchers;
#if ENVIRONMENT && SHADOW_CATCHER
    if (params.sun_count > 0)
        *lanes = shaded;
    else if (catchers)
        *shadows = catch_shadows8(params, packet, begin, catchers, s.normal, s.origin, lights);
#endif
    bool last_bounce = depth + 1 >= params.max_depth;
    if (!shaded || last_bounce) return 0;
    if (DIRECT_LIGHTING != DIRECT_BSDF && params.light_count > 0) {
        uint remaining;
        *shadows |= sample_direct8(params, depth, packet, begin, shaded, &s, SCENE_ARGS, materials, lights, &remaining);
        for (; remaining; remaining &= remaining - 1u)
            if (sample_direct_lane(params, depth, packet, begin, ctz(remaining), &s, SCENE_ARGS, materials, lights))
                *shadows |= 1u << ctz(remaining);
    }
    return continue_paths8(params, depth, packet, begin, shaded, &s);
}
#endif
