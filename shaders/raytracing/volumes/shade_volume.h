// Collisions of paths in volumes (volumes.h): `collide` finds them, `shade_volume` shades them, `attenuate` applies the
// volumes' transmittance to shadow rays. Included by raytracing/raytrace.cu in scenes with volumes. A collision is a
// Hit whose `primitive` is VOLUME_BASE + the volume's index.
// Macros of other files: SET_INSTANCE (bvh/geometry.h); ROULETTE_WEIGHT (raytracing/lights/guide.h). Macros of
// renderer/raytracing/kernels.py (see raytrace.cu): DIRECT_BSDF, DIRECT_LIGHTING, DIRECT_MIS, EQUIANGULAR.
#include "raytracing/path.h"
#include "raytracing/volumes/volumes.h"

#define ESCAPED (VOLUME_BASE + 64)  // [EQUIANGULAR] Hit.primitive of a ray that leaves the scene
#if EQUIANGULAR
#include "raytracing/volumes/equiangular.h"
#else
#define mis_weight_free_flight(params, lights, light, volume, origin, direction, t, t_max) 1.0f
#endif

// Replaces the hit of ray number `depth` of a path by the first collision before it, if there is one. With EQUIANGULAR
// a collision's hit->u is the distance of the replaced hit, FLT_MAX for a miss, and a miss becomes ESCAPED before the
// last depth.
DEVICE void collide(const LaunchParams params, int depth, Sampler sampler, GLOBAL const float4 *lights, float4 origin,
                    float4 direction, Hit *hit) {
    int volume = 0;
    uint dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 7u;
    float t_max = hit->primitive < 0 ? FLT_MAX : hit->t;
    float t = sample_collision(params, lights, xyz(origin), xyz(direction), t_max, sampler, dimension, &volume);
    if (EQUIANGULAR) {
        if (hit->primitive < 0) hit->t = FLT_MAX;
        if (hit->primitive < 0 && depth + 1 < params.max_depth) hit->primitive = ESCAPED;
        hit->u = t < t_max ? t_max : hit->u;
    }
    if (!(t < t_max)) return;
    hit->t = t;
    hit->primitive = VOLUME_BASE + volume;
    SET_INSTANCE(*hit, -1);
}

// Multiplies a shadow ray's contribution by the transmittance of the volumes along it. `depth` and `sampler` give the
// random numbers.
DEVICE void attenuate(const LaunchParams params, int depth, Sampler sampler, GLOBAL const float4 *lights, float4 origin,
                      ShadowRay *shadow) {
    uint dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 7u;
    float passed =
        transmittance(params, lights, xyz(origin), xyz(shadow->direction), shadow->direction.w, sampler, dimension);
    shadow->contribution = with_w(xyz(shadow->contribution) * passed, shadow->contribution.w);
    shadow->valid = passed > 0.0f;
}

// Shades a collision as shade_hit of raytrace.cu shades a surface: samples a light by next-event estimation into
// `shadow`, and the next direction by the phase function. Returns true if the path continues.
DEVICE bool shade_volume(const LaunchParams params, int depth, Sampler sampler, const Hit hit, Path *path,
                         ShadowRay *shadow, SCENE_PARAMS) {
    float4 scattering = lights[FIRST_VOLUME_ROW + 4 * (hit.primitive - VOLUME_BASE) + 2];
    float3 from = xyz(path->origin), direction = xyz(path->direction), point = madd(direction, hit.t, from);
    float4 throughput = path->throughput * with_w(xyz(scattering), 1.0f);
    uint dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE;
    bool last_bounce = depth + 1 >= params.max_depth;
    shadow->valid = false;
    path->origin = with_w(point, path->origin.w);
    if (last_bounce || !(largest_of3(xyz(throughput)) > 0.0f)) return false;
    LightSample light;
    if (DIRECT_LIGHTING != DIRECT_BSDF && params.light_count > 0 &&
        sample_light(params, point, SCENE_ARGS, sampler, dimension + 4, &light)) {
        light.radiance = light.radiance * light_texture_at(params, SCENE_ARGS, light, point);
        float pdf = henyey_greenstein(dot_fma(direction, light.direction), scattering.w);
        float other_pdf = DIRECT_LIGHTING == DIRECT_MIS && !light.is_delta ? pdf : 0.0f;
        float weight = pdf / (light.pdf + other_pdf);
        if (EQUIANGULAR && light.point_light >= 0)
            weight *= mis_weight_free_flight(params, lights, light.point_light, hit.primitive - VOLUME_BASE, from,
                                             direction, hit.t, hit.u);
        shadow->valid = true;
        shadow->direction = with_w(light.direction, light.distance < FLT_MAX ? light.distance * 0.9999f : FLT_MAX);
        shadow->contribution = with_w(seen_throughput(throughput) * light.radiance * weight, 0.0f);
        attenuate(params, depth, sampler, lights, path->origin, shadow);
        shadow->contribution = clamp_contribution(params, depth + 1, shadow->contribution);
        set_volume_lobe(PASSES_OF(*path), SHADOW_LOBE, light.group);  // light passes (film/light_passes.h)
    }
    float u1 = get_1d(sampler, dimension), u2 = get_1d(sampler, dimension + 1);
    direction = sample_henyey_greenstein(direction, scattering.w, u1, u2);
    path->direction = with_w(direction, henyey_greenstein(dot_fma(xyz(path->direction), direction), scattering.w));
    float3 weight = ROULETTE_WEIGHT(throughput, xyz(scattering));
    if (!survives_roulette(params, depth, sampler, weight, &throughput)) return false;
    path->throughput = throughput;
    set_volume_lobe(PASSES_OF(*path), PATH_LOBE, 0);
    return true;
}
