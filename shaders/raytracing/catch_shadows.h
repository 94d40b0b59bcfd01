// Shading of a hit on a shadow catcher (materials/shadow_catcher.h): level ground that shows the background behind it,
// darkened where the scene blocks the light of suns and environment. Included by raytracing/raytrace.cu, whose
// shade_hit calls shade_shadow_catcher.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): ENVIRONMENT, NON_AREA_LIGHTS.
#include "raytracing/path.h"

// Samples the irradiance of a level surface by infinite lights, in world space: chooses a sun or the environment in
// proportion to its irradiance, then a direction of the sun's disk, or of the environment by luminance times cosine.
// Returns radiance times cosine over the pdf of *direction; 0 where there is no light. `normal` is unit; the sampler's
// dimensions are `dimension`, + 4 and + 5.
DEVICE float3 sample_level_irradiance(const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                                      uint dimension, GLOBAL const float4 *lights, float3 *direction) {
    float begin = 0.0f;
    *direction = normal;
#if NON_AREA_LIGHTS
    float choice = get_1d(sampler, dimension), u1 = get_1d(sampler, dimension + 4u);
    float u2 = get_1d(sampler, dimension + 5u);
    for (int sun = 0; sun < params.sun_count; sun++) {
        GLOBAL const float4 *row = lights + params.non_area_lights + 3 * sun;  // part 5 of lights/light_rows.h
        float end = row[2].x, probability = end - begin;
        begin = end;
        if (choice >= end) continue;
        LightSample light;
        if (!sample_non_area_light(params, lights, sun, from, u1, u2, &light)) return splat3(0.0f);
        *direction = light.direction;
        float pdf = light.pdf / row[1].w * probability;  // light.pdf includes row[1].w, the choice among all lights
        return light.radiance * (max_nnan(dot_fma(light.direction, normal), 0.0f) / pdf);
    }
#if ENVIRONMENT  // the suns' CDF ends at `begin`: the rest is the environment's probability
    return sample_level_environment(params, lights, normal, u1, u2, 1.0f - begin, direction);
#endif
#endif
    return splat3(0.0f);
}

// Shades a hit on a shadow catcher. Its radiance is the radiance of the background behind it, times the unoccluded
// fraction of the irradiance by suns and environment. The path gets the background's radiance less one light sample;
// the shadow ray adds the sample again if it is unoccluded. So unshadowed ground shows the background without noise,
// and the mean in full shadow is 0, although single samples may be negative there. Lights at a finite distance are
// ignored. Returns true if the path continues: from below, the ground is invisible, and the ray goes on.
DEVICE bool shade_shadow_catcher(const LaunchParams params, const Surface s, Sampler sampler, uint dimension,
                                 Path *path, ShadowRay *shadow, SCENE_PARAMS) {
    shadow->valid = false;
    path->origin = offset_ray_origin(s, !s.front_face, path->origin.w);
    path->direction.w = DELTA_PDF;  // next-event estimation cannot pass the ground: the background's MIS weight is 1
    if (!s.front_face) return true;
    float3 backdrop = escaped_radiance(params, lights, s.ray_direction, DELTA_PDF, ALL_GROUPS);
    float3 direction = s.normal, irradiance = make_float3(0.0f, 0.0f, 0.0f);
    if (params.light_count > 0)
        irradiance =
            sample_level_irradiance(params, xyz(path->origin), s.normal, sampler, dimension, lights, &direction);
    float4 light_sample = path->throughput * with_w(backdrop * irradiance * xyz(params.inverse_irradiance), 0.0f);
    shadow->valid = irradiance.x + irradiance.y + irradiance.z > 0.0f;
    shadow->direction = with_w(direction, FLT_MAX);
    shadow->contribution = light_sample;
    path->radiance = path->radiance + path->throughput * with_w(backdrop, 0.0f) - light_sample;
    keep_lobe_for_shadow(PASSES_OF(*path), BACKGROUND_GROUP);  // light passes (film/light_passes.h)
    float3 added = xyz(path->throughput) * backdrop - xyz(light_sample);
    add_to_passes(PASSES_OF(*path), PATH_LOBE, added, BACKGROUND_GROUP);
    return false;
}
