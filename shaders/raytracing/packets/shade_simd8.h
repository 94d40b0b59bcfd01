// Shades eight neighboring paths of a packet (PathPacket) at once on CPUs, one path a lane: paths that escape
// (escape8), and paths that hit triangles of the materials below (shade_hits8). Included by fused_scalar.h. Headers for
// vectors, textures, lights and materials are compiled here a second time for eight lanes (packets/lanes8.h). The
// control flow is written a second time, because shade_hit of raytrace.cu branches by path, which eight lanes can only
// do by masks; both must give the same bits. Three kinds of light samples are drawn lane by lane: of lights that are
// neither triangles nor the environment, of lights that need a third dimension (lights.h), and of textured lights.
// Lanes with other materials or with normal maps are left to shade_hit. assets/guides/raytracing.md has the gain.
// In the functions below, lane k is path `begin` + k of the packet, and a `uint` of lanes is a bit mask of them.
// Macros of other files: LIGHT_ENVIRONMENT, LIGHT_TREE_ID (raytracing/lights/light_rows.h); DIMENSIONS_PER_BOUNCE
// (raytracing/path.h); VECTOR_SHADING (raytracing/raytrace.cu); CACHE_DIMENSIONS, CACHE_PATHS (raytracing/sampler.h);
// GEOMETRY_ARGS, GEOMETRY_PARAMS, SCENE_ARGS, SCENE_PARAMS (raytracing/scene.h); VECTOR_ESCAPE
// (raytracing/schedules/fused_scalar.h); DELTA_PDF (raytracing/surface.h); ALPHA_OPAQUE, TEXTURE_ARGS
// (raytracing/textures/texture.h). Macros of renderer/raytracing/kernels.py (see raytrace.cu): DIRECT_BSDF,
// DIRECT_LIGHTING, DIRECT_MIS, ENVIRONMENT, METALLIC, NORMAL_MAPS, REFRACTION, SHADOW_CATCHER, SHADOW_RAYS_CROSS,
// SURFACE_TEXTURES, TEXTURED, UV_SETS.
#include "raytracing/packets/vectors8.h"

// Material.color.w is SIMD8_DIFFUSE, SIMD8_METALLIC or SIMD8_CATCHER, by @simd8 of the material's file (surface.h), for
// materials that do not emit and are shaded here, and 0 for all others.
#define CATCHES_SHADOWS8 (ENVIRONMENT && SHADOW_CATCHER)
#define FLOAT4S_PER_MATERIAL (int)(sizeof(Material) / 16)
#define MATERIAL_FLOAT4(field) (int)(__builtin_offsetof(Material, field) / 16)  // the float4 that holds a field

// BsdfSample (surface.h) and Texcoords for eight lanes.
typedef struct {
    Float3x8 direction, weight;
    float8 pdf;
    int8 transmits;
} BsdfSample8;
#if TEXTURED
typedef struct {
    Float2x8 sets[UV_SETS];
} Texcoords8;
#define TEXTURE_FIELD8(field, material)                                                         \
    as_int8(GATHER_WORDS8(material_textures, (material) * (int)(sizeof(MaterialTextures) / 4) + \
                                                 (int)(__builtin_offsetof(MaterialTextures, field) / 4)))
#endif

#include_again "raytracing/packets/lanes8.h"
#define Frame Frame8
#define GgxLobe GgxLobe8
#define MetallicLobes MetallicLobes8
#define BsdfSample BsdfSample8
#define Texcoords Texcoords8
#include_again "common/angle.h"
#include_again "raytracing/frame.h"
#if METALLIC
#include_again "raytracing/microfacet.h"
#include_again "raytracing/materials/metallic.h"
#endif
#if TEXTURED
#include_again "raytracing/textures/surface_textures.h"
#include_again "raytracing/bend_normals.h"
#endif
#include_again "raytracing/clamp_contribution.h"
#include_again "raytracing/lights/choose_light.h"
#if ENVIRONMENT
#include_again "raytracing/lights/cdf.h"
#include_again "raytracing/lights/environment.h"
#endif
#include_again "raytracing/lights/escaped_radiance.h"
#undef Frame
#undef GgxLobe
#undef MetallicLobes
#undef BsdfSample
#undef Texcoords
#include_again "raytracing/packets/lanes1.h"

// Primitive of bvh/geometry.h for eight lanes.
typedef struct {
    Float3x8 v0, edge1, edge2;
    float8 radius;
    int8 id, material;
} Triangle8;

// Returns the primitives with indices `at`; radius is 0 for triangles.
DEVICE Triangle8 load_triangles8(GLOBAL const float4 *primitives, int8 at) {
    Float4x8 v0 = load_rows(primitives, 3, 0, at), edge1 = load_rows(primitives, 3, 1, at);
    Float4x8 edge2 = load_rows(primitives, 3, 2, at);
    Triangle8 t = {xyz(v0), xyz(edge1), xyz(edge2), edge2.w, as_int8(v0.w), as_int8(edge1.w)};
    return t;
}

// Returns a mask of the lanes whose light `id` (light_rows.h) is the environment.
DEVICE int8 environment_lanes8(const LaunchParams params, GLOBAL const float4 *lights, int8 id) {
#if ENVIRONMENT
    int8 others = (id < 0) & (id != (int)LIGHT_TREE_ID);
    int8 word = 4 * (params.non_area_lights + 3 * (others ? ~id : 0));  // the first of the light's three rows
    return others & (as_float8(GATHER_WORDS8(lights, word + 3)) == LIGHT_ENVIRONMENT);
#else
    return (int8)(0);
#endif
}

#if VECTOR_ESCAPE
// Adds the radiance of infinite lights to the paths in `lanes`, whose rays number `depth` leave the scene.
DEVICE void escape8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint lanes,
                    GLOBAL const float4 *lights) {
    Float3x8 direction = load8(packet->rays.direction, begin), throughput = load8(packet->throughput, begin);
#if REFRACTION
    float8 index = packet->index.v8[begin >> 3];
    throughput = scale3(throughput, 1.0f / (index * index));
#endif
    Float3x8 added =
        mul3(throughput, escaped_radiance(params, lights, direction, packet->bsdf_pdf.v8[begin >> 3], ALL_GROUPS));
    added = xyz(clamp_contribution(params, depth, with_w(added, (float8)(0.0f))));
    store8(packet->radiance, begin, mask_of_bits8(lanes), add3(load8(packet->radiance, begin), added));
}
#endif

#if VECTOR_SHADING
#if CATCHES_SHADOWS8
// Shades the paths in `lanes`, which see a shadow catcher from above, as shade_shadow_catcher does, in scenes without
// suns. Returns the lanes that have a shadow ray.
DEVICE uint catch_shadows8(const LaunchParams params, PathPacket *packet, uint begin, uint lanes, Float3x8 normal,
                           Float3x8 origin, GLOBAL const float4 *lights) {
    const float *cache = packet->sample_cache + begin;  // row d: dimension d of the bounce (cache_samples)
    Float3x8 view = load8(packet->rays.direction, begin), throughput = load8(packet->throughput, begin), direction;
    Float3x8 backdrop = escaped_radiance(params, lights, view, (float8)(DELTA_PDF), ALL_GROUPS),
             irradiance = broadcast8(splat3(0.0f));
    if (params.light_count > 0)
        irradiance = sample_level_environment(params, lights, normal, vload8(0, cache + CACHE_PATHS * 4),
                                              vload8(0, cache + CACHE_PATHS * 5), 1.0f, &direction);
    Float3x8 fraction = mul3(mul3(backdrop, irradiance), broadcast8(xyz(params.inverse_irradiance)));
    Float3x8 light_sample = mul3(throughput, fraction);
    Float3x8 radiance = sub3(add3(load8(packet->radiance, begin), mul3(throughput, backdrop)), light_sample);
    store8(packet->radiance, begin, mask_of_bits8(lanes), radiance);
    uint shadows = lanes & movemask8(irradiance.x + irradiance.y + irradiance.z > 0.0f);
    set_shadow_rays8(packet, begin, shadows, origin, direction, (float8)(FLT_MAX), light_sample);
    return shadows;
}
#endif

// Surface and Material of eight hits. `origin` is the offset origin of the next rays.
typedef struct {
    Float3x8 point, normal, color, origin;
    int8 front_face, material, is_metallic;  // the lanes on the front; indices; the lanes that are not Lambertian
#if TEXTURED
    Float3x8 geometric_normal;  // on the ray's side; `normal` is the shading normal
#endif
    float8 roughness, metallic;  // set with METALLIC, in the lanes of is_metallic
#if METALLIC
    MetallicLobes8 metal;
#endif
} SurfaceHit8;

// Returns a mask of the lanes whose directions are on the same side of the geometric as of the shading normal
// (on_geometric_side of scene.h).
DEVICE int8 on_geometric_side8(const SurfaceHit8 *s, Float3x8 direction, int8 transmits) {
#if TEXTURED
    return (dot_fma(direction, s->geometric_normal) > 0.0f) ^ transmits;
#else
    return (int8)(-1);
#endif
}

// Returns the BSDF times the cosine for light from `direction`, and in *pdf its pdf per solid angle, as eval_bsdf_pdf
// does. Where the pdf is 0, the BSDF is not valid.
DEVICE Float3x8 eval_bsdf_pdf8(const SurfaceHit8 *s, Float3x8 direction, float8 *pdf) {
    *pdf = max_nnan(dot_fma(s->normal, direction), (float8)(0.0f)) * (1.0f / PI);
    Float3x8 value = scale3(s->color, *pdf);
#if METALLIC
    if (movemask8(s->is_metallic)) {
        Float4x8 metal = eval_metallic_lobes(s->metal, direction);
        value = select3_8(s->is_metallic, xyz(metal), value);
        *pdf = s->is_metallic ? metal.w : *pdf;
    }
#endif
    return value;
}

// Light samples: LightSample of lights.h for eight lanes.
typedef struct {
    Float3x8 direction, radiance;
    float8 distance, pdf;
} LightSample8;

// Samples points of triangle lights, as sample_primitive does. Returns a mask of the lanes that see the lights' fronts.
DEVICE int8 sample_triangle8(const LaunchParams params, const Triangle8 *p, Float3x8 origin, float8 u1, float8 u2,
                             GLOBAL const Material *materials, LightSample8 *light) {
    float8 root = sqrt(u1);
    Float3x8 normal = normalize_fma(cross_fma(p->edge1, p->edge2));
    Float3x8 point = madd(p->edge2, root * u2, madd(p->edge1, root * (1.0f - u2), p->v0));
    Float3x8 to_light = sub3(point, origin);
    light->distance = sqrt(dot_fma(to_light, to_light));
    light->direction = scale3(to_light, 1.0f / light->distance);
    float8 cosine = -dot_fma(normal, light->direction);
    Float4x8 emission =
        load_rows((GLOBAL const float4 *)materials, FLOAT4S_PER_MATERIAL, MATERIAL_FLOAT4(emission), p->material);
    light->radiance = xyz(emission);
    light->pdf = rgb_luminance(emission) * params.inverse_light_power * light->distance * light->distance / cosine;
    return (cosine > 0.0f) & (light->distance > 0.0f);
}

// Samples lights as sample_direct does, for the lanes whose light is a triangle or the environment; *remaining becomes
// the other lanes. Returns the lanes that have a shadow ray.
DEVICE uint sample_direct8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint lanes,
                           const SurfaceHit8 *s, SCENE_PARAMS, uint *remaining) {
    const float *cache = packet->sample_cache + begin;
    uint8 u32 = as_uint8(vload8(0, cache + CACHE_PATHS * CACHE_DIMENSIONS)), light_begin, width;
    int8 entry = choose_light(params, lights, u32, &light_begin, &width);
    int8 id = as_int8(GATHER_WORDS8(lights, 4 * entry + 1));
    float8 u1 = position_in_interval(u32, light_begin, width), u2 = vload8(0, cache + CACHE_PATHS * 5);
    LightSample8 light;
    // sample_light draws a third dimension for a light of selection probability below 2^-12: left to *remaining
    int8 valid = (int8)(0), drawn = (width > (1u << 20)) & mask_of_bits8(lanes);
    int8 is_environment = drawn & environment_lanes8(params, lights, id), is_area = drawn & (id >= 0);
    if (movemask8(is_area)) {
        Triangle8 p = load_triangles8(primitives, is_area ? id : (int8)(0));
        is_area &= p.radius == 0.0f;
#if TEXTURED  // lights that textures dim are sampled lane by lane
        is_area &=
            (TEXTURE_FIELD8(emissive, p.material) < 0) & (TEXTURE_FIELD8(alpha_mode, p.material) == ALPHA_OPAQUE);
#endif
        valid = is_area & sample_triangle8(params, &p, s->origin, u1, u2, materials, &light);
    }
#if ENVIRONMENT
    if (movemask8(is_environment)) {
        float8 pdf;
        Float3x8 direction = sample_environment(params, lights, u1, u2, &pdf);
        Float3x8 radiance = environment_radiance(params, lights, direction);
        light.direction = select3_8(is_environment, direction, light.direction);
        light.radiance = select3_8(is_environment, radiance, light.radiance);
        light.distance = is_environment ? (float8)(FLT_MAX) : light.distance;
        light.pdf = is_environment ? pdf : light.pdf;
        valid |= is_environment & (pdf > 0.0f);
    }
#endif
    *remaining = lanes & ~movemask8(is_area | is_environment);
    if (!movemask8(valid)) return 0;
    float8 bsdf_pdf;
    Float3x8 reflected = eval_bsdf_pdf8(s, light.direction, &bsdf_pdf);
    valid &= on_geometric_side8(s, light.direction, dot_fma(light.direction, s->normal) < 0.0f);
    uint shadows = movemask8(valid & (bsdf_pdf > 0.0f));
    float8 weight = 1.0f / (light.pdf + (DIRECT_LIGHTING == DIRECT_MIS ? bsdf_pdf : (float8)(0.0f)));
    reflected = scale3(mul3(reflected, light.radiance), weight);
    Float3x8 unclamped = mul3(load8(packet->throughput, begin), reflected);
    Float3x8 contribution = xyz(clamp_contribution(params, depth + 1, with_w(unclamped, (float8)(0.0f))));
    float8 t_max = light.distance < FLT_MAX ? light.distance * 0.9999f : (float8)(FLT_MAX);
    set_shadow_rays8(packet, begin, shadows, s->origin, light.direction, t_max, contribution);
    return shadows;
}

// Returns lane k of a vector.
DEVICE float get_lane(float8 x, uint k) { return ((const float *)&x)[k]; }

DEVICE float3 get_float3(Float3x8 p, uint k) {
    return make_float3(get_lane(p.x, k), get_lane(p.y, k), get_lane(p.z, k));
}

// Samples a light for lane k by sample_direct, as for a single path; false if it has no shadow ray.
DEVICE_NOINLINE_ALWAYS bool sample_direct_lane(const LaunchParams params, int depth, PathPacket *packet, uint begin,
                                               uint k, const SurfaceHit8 *s, SCENE_PARAMS) {
    uint j = begin + k, dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 4u;
    Surface surface;
    surface.point = get_float3(s->point, k);
    surface.normal = get_float3(s->normal, k);
    surface.ray_direction = float3_at(packet->rays.direction, j);
    surface.front_face = ((const int *)&s->front_face)[k] != 0;
    surface.material = ((const int *)&s->material)[k];
    surface.in_light_table = true;
    Material material = materials[surface.material];
#if TEXTURED
    surface.geometric_normal = get_float3(s->geometric_normal, k);
    material.color = with_w(get_float3(s->color, k), material.color.w);
    if (METALLIC) {
        material.roughness = get_lane(s->roughness, k);
        material.metallic = get_lane(s->metallic, k);
    }
#endif
    ShadowRay shadow;
    float3 origin = get_float3(s->origin, k);
    if (!sample_direct(params, material, surface, origin, true, SCENE_ARGS, packet_sampler(packet, j), dimension,
                       &shadow))
        return false;
    float3 throughput = float3_at(packet->throughput, j);
    shadow.contribution =
        clamp_contribution(params, depth + 1, with_w(throughput * xyz(shadow.contribution), shadow.contribution.w));
    packet_set_shadow_ray(packet, j, with_w(origin, 0.0f), shadow);
    return true;
}

#if TEXTURED
// Sets the shading normals of eight triangles, and multiplies their colors and, with METALLIC, roughness and metallic
// by textures and vertex colors, in the lanes of the mask `shaded`. On entry s->normal is the geometric normal of the
// front, s->geometric_normal the normal on the ray's side. (u, v) are barycentric coordinates.
DEVICE void texture_surface8(GEOMETRY_PARAMS, const Triangle8 *p, float8 u, float8 v, Float3x8 ray_direction,
                             int8 shaded, SurfaceHit8 *s) {
    Float3x8 smooth = smooth_normal(interpolated_normal(attributes, p->id, u, v), s->normal);
    s->normal = clamp_shading_normal(select3_8(s->front_face, smooth, negate3(smooth)), ray_direction);
    if (SURFACE_TEXTURES)
        scale_by_textures(TEXTURE_ARGS, p->material, shaded, texcoords_at(attributes, p->id, u, v), &s->color,
                          &s->roughness, &s->metallic);
    s->color = mul3(s->color, xyz(interpolated_color(attributes, p->id, u, v)));
#if METALLIC
    if (movemask8(shaded & s->is_metallic)) {
        float8 weight = schlick_mirror_fraction(s->metallic, s->normal, ray_direction);
        s->normal = bent_normal(s->normal, s->geometric_normal, ray_direction, s->is_metallic ? weight : 0.0f);
    }
#endif
}
#endif

// Sets *s to the surfaces that *lanes hit. Removes from *lanes the lanes left to shade_hit; *catchers becomes the
// remaining lanes on shadow catchers.
DEVICE void surface_at8(PathPacket *packet, uint begin, uint *lanes, uint *catchers, SCENE_PARAMS, SurfaceHit8 *s) {
    Packet *rays = &packet->rays;
    GLOBAL const float4 *columns = (GLOBAL const float4 *)materials;
    // lanes of ended paths may hold any index: they read primitive 0
    Triangle8 p = load_triangles8(primitives, mask_of_bits8(*lanes) ? rays->prim_index.v8[begin >> 3] : (int8)(0));
    s->material = p.material;
    Float4x8 color = load_rows(columns, FLOAT4S_PER_MATERIAL, MATERIAL_FLOAT4(color), p.material);
    float8 kind = color.w;
    s->color = xyz(color);
    int8 shaded = (p.radius == 0.0f) & (kind > 0.0f);
    s->is_metallic = kind == SIMD8_METALLIC;
#if REFRACTION  // paths inside a medium are left to shade_hit; bit 0 of `medium` is of the wavelength (volumes/media.h)
    shaded &= (packet->index.v8[begin >> 3] == 1.0f) & (as_int8(packet->medium.v8[begin >> 3]) < 2);
#endif
    Float3x8 ray_direction = load8(rays->direction, begin);
    s->normal = normalize_fma(cross_fma(p.edge1, p.edge2));
    s->point = madd(p.edge2, rays->v.v8[begin >> 3], madd(p.edge1, rays->u.v8[begin >> 3], p.v0));
    s->front_face = dot_fma(s->normal, ray_direction) < 0.0f;
    Float3x8 side = select3_8(s->front_face, s->normal, negate3(s->normal));
    s->origin = offset_ray(s->point, side);
    *catchers = 0;
    int8 is_catcher = kind == SIMD8_CATCHER;
    // a catcher is invisible from below: shade_hit lets the ray pass
    shaded &= ~is_catcher | (CATCHES_SHADOWS8 ? s->front_face : (int8)(0));
    if (CATCHES_SHADOWS8) *catchers = *lanes & movemask8(shaded & is_catcher);
#if METALLIC
    s->is_metallic &= shaded;
    int8 metal = mask_of_bits8(*lanes) & s->is_metallic;
    if (movemask8(metal)) {
        s->roughness = load_rows(columns, FLOAT4S_PER_MATERIAL, MATERIAL_FLOAT4(roughness), p.material).w;
        s->metallic = load_rows(columns, FLOAT4S_PER_MATERIAL, MATERIAL_FLOAT4(metallic), p.material).x;
    }
#endif
#if TEXTURED
    shaded &= mask_of_bits8(*lanes);
#if NORMAL_MAPS
    shaded &= TEXTURE_FIELD8(normal, p.material) < 0;
#endif
    s->geometric_normal = side;
    if (movemask8(shaded))
        texture_surface8(GEOMETRY_ARGS, &p, rays->u.v8[begin >> 3], rays->v.v8[begin >> 3], ray_direction, shaded, s);
#if SHADOW_RAYS_CROSS  // left to shade_hit: the offset origin is below the shading normal's plane
    shaded &= dot_fma(sub3(s->origin, s->point), s->normal) >= 0.0f;
#endif
#else
    s->normal = side;
#endif
    *lanes &= movemask8(shaded);
    *catchers &= *lanes;
#if METALLIC
    if (*lanes & movemask8(s->is_metallic))
        s->metal = metallic_lobes(s->normal, ray_direction, s->color, s->roughness, s->metallic);
#endif
}

// Samples the next rays of the paths in `lanes`. Returns the lanes whose paths continue.
DEVICE uint continue_paths8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint lanes,
                            const SurfaceHit8 *s) {
    const float *cache = packet->sample_cache + begin;
    float8 u1 = vload8(0, cache), u2 = vload8(0, cache + CACHE_PATHS), pdf;
    Float3x8 direction = sample_cosine_hemisphere(s->normal, u1, u2, &pdf), weight = s->color;
#if METALLIC
    if (lanes & movemask8(s->is_metallic)) {
        BsdfSample8 metal;
        int8 valid = sample_metallic_lobes(s->metal, u1, u2, vload8(0, cache + 2 * CACHE_PATHS), &metal);
        direction = select3_8(s->is_metallic, metal.direction, direction);
        weight = select3_8(s->is_metallic, metal.weight, weight);
        pdf = s->is_metallic ? metal.pdf : pdf;
        lanes &= movemask8(~s->is_metallic | valid);
    }
#endif
    lanes &= movemask8(on_geometric_side8(s, direction, (int8)(0)));
    Float3x8 t = mul3(load8(packet->throughput, begin), weight);
    if (depth + 1 >= params.rr_depth) {
        float8 survival_probability = clamp(largest_of3(t), 0.05f, 1.0f);
        lanes &= movemask8(vload8(0, cache + 3 * CACHE_PATHS) < survival_probability);
        t = scale3(t, 1.0f / survival_probability);
    }
    int8 mask = mask_of_bits8(lanes);
    store8(packet->rays.origin, begin, mask, s->origin);
    store8(packet->rays.direction, begin, mask, direction);
    MASKED_STORE(packet->rays.t, (float8)(FLT_MAX));
    MASKED_STORE(packet->bsdf_pdf, pdf);
    store8(packet->throughput, begin, mask, t);
    return lanes;
}

// Shades the paths in *lanes that hit triangles of the materials above; *lanes becomes the mask of the shaded ones, and
// the caller shades the others by shade_hit. Returns the lanes whose paths continue; *shadows, 0 on entry, becomes the
// lanes with a shadow ray.
DEVICE uint shade_hits8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint *lanes,
                        uint *shadows, SCENE_PARAMS) {
    SurfaceHit8 s;
    uint catchers;
    surface_at8(packet, begin, lanes, &catchers, SCENE_ARGS, &s);
    uint shaded = *lanes & ~catchers;
#if CATCHES_SHADOWS8
    if (params.sun_count > 0)  // shade_hit samples suns
        *lanes = shaded;
    else if (catchers)
        *shadows = catch_shadows8(params, packet, begin, catchers, s.normal, s.origin, lights);
#endif
    bool last_bounce = depth + 1 >= params.max_depth;
    if (!shaded || last_bounce) return 0;
    if (DIRECT_LIGHTING != DIRECT_BSDF && params.light_count > 0) {
        uint remaining;
        *shadows |= sample_direct8(params, depth, packet, begin, shaded, &s, SCENE_ARGS, &remaining);
        for (; remaining; remaining &= remaining - 1u)
            if (sample_direct_lane(params, depth, packet, begin, ctz(remaining), &s, SCENE_ARGS))
                *shadows |= 1u << ctz(remaining);
    }
    return continue_paths8(params, depth, packet, begin, shaded, &s);
}
#endif
