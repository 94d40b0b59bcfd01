// The shadow catcher's ground (materials/shadow_catcher.h): what of the background's irradiance reaches it. Included by
// raytracing/raytrace.cu.

// Samples a direction of an infinite light at a level surface, which all shadow catchers are: suns and environment by
// their irradiance, and the environment by luminance times cosine. Returns the irradiance over its pdf.
DEVICE float3 sample_level_irradiance(const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                                      uint dimension, GLOBAL const float4 *lights, float3 *direction) {
    float begin = 0.0f;
    *direction = normal;
#if NON_AREA_LIGHTS
    float choice = get_1d(sampler, dimension), u1 = get_1d(sampler, dimension + 4u);
    float u2 = get_1d(sampler, dimension + 5u);
    for (int sun = 0; sun < params.sun_count; sun++) {
        GLOBAL const float4 *row = lights + params.non_area_lights + 3 * sun;
        float end = row[2].x, probability = end - begin;
        begin = end;
        if (choice >= end) continue;
        LightSample light;
        if (!sample_non_area_light(params, lights, sun, from, u1, u2, &light)) return splat3(0.0f);
        *direction = light.direction;
        float pdf = light.pdf / row[1].w * probability;
        return light.radiance * (max_nnan(dot_fma(light.direction, normal), 0.0f) / pdf);
    }
#if ENVIRONMENT
    float pdf;
    float3 sampled = sample_environment_map(params, lights, true, u1, u2, &pdf);
    float cosine = dot_fma(sampled, normal);
    if (pdf > 0.0f && cosine > 0.0f) {
        *direction = sampled;
        return environment_radiance(params, lights, sampled) * (cosine / (pdf * (1.0f - begin)));
    }
#endif
#endif
    return splat3(0.0f);
}

// Shades a hit of the shadow catcher: the radiance of the background behind it, times the fraction of its irradiance by
// suns and environment that the scene leaves unoccluded. A light sample takes away what may be occluded, and its shadow
// ray gives it back where it is not, so that unshadowed ground is the background without noise; where all is occluded
// the mean is 0, but a sample may be negative. Lights at a finite distance neither light it nor cast shadows on it.
// From below it is invisible.
DEVICE bool shade_shadow_catcher(const LaunchParams params, const Surface s, Sampler sampler, uint dimension,
                                 Path *path, ShadowRay *shadow, SCENE_PARAMS, GLOBAL const Material *materials,
                                 GLOBAL const float4 *lights) {
    shadow->valid = false;
    path->origin = offset_ray_origin(s, !s.front_face, path->origin.w);
    path->direction.w = DELTA_PDF;  // next-event estimation does not pass through it, so the background weighs 1
    if (!s.front_face) return true;
    float3 behind = escaped_radiance(params, lights, s.ray_direction, DELTA_PDF);
    float3 direction = s.normal, irradiance = make_float3(0.0f, 0.0f, 0.0f);
    if (params.light_count > 0)
        irradiance =
            sample_level_irradiance(params, xyz(path->origin), s.normal, sampler, dimension, lights, &direction);
    float4 taken = path->throughput * with_w(behind * irradiance * xyz(params.inverse_irradiance), 0.0f);
    shadow->valid = irradiance.x + irradiance.y + irradiance.z > 0.0f;
    shadow->direction = with_w(direction, FLT_MAX);
    shadow->contribution = taken;
    path->radiance = path->radiance + path->throughput * with_w(behind, 0.0f) - taken;
    return false;
}
