// Radiance of rays that leave the scene: background gradient, suns and environment, each with the MIS weight of BSDF
// sampling against next-event estimation. Called by add_escaped_radiance of path.h. Compiled for one lane (`real` is
// float, `mask` bool) and, on CPUs, again for eight (float8, int8; packets/lanes8.h).
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): DIRECT_BSDF, DIRECT_LIGHTING, DIRECT_NEE, ENVIRONMENT,
// NON_AREA_LIGHTS.
#include "raytracing/lights/light_rows.h"
#include "common/vectors.h"
#if ENVIRONMENT
#include "raytracing/lights/environment.h"
#endif

// Returns the MIS weight (balance heuristic, E. Veach 1995) of an emitter hit by BSDF sampling. Both pdfs are per solid
// angle: `bsdf_pdf` of the ray's direction, or DELTA_PDF for camera and specular rays; `light_pdf` with which
// next-event estimation would sample the point. The weight is 1 for DELTA_PDF and with direct_lighting = bsdf, and 0
// where both sample with direct_lighting = nee.
DEVICE real mis_weight_bsdf(real bsdf_pdf, real light_pdf) {
    if (DIRECT_LIGHTING == DIRECT_BSDF) return 1.0f;
    mask both_sample = (bsdf_pdf > 0.0f) & (light_pdf > 0.0f);
    if (DIRECT_LIGHTING == DIRECT_NEE) return both_sample ? (real)(0.0f) : 1.0f;
    return both_sample ? bsdf_pdf / (bsdf_pdf + light_pdf) : 1.0f;
}

// Returns the radiance of the background gradient. Next-event estimation does not sample it, so it needs no weight.
DEVICE real3 background(const LaunchParams params, real3 direction) {
    float3 horizon = xyz(params.horizon), rise = xyz(params.zenith) - horizon;
    return madd(broadcast(rise), max_nnan(direction.y, 0.0f), broadcast(horizon));
}

// Returns the MIS-weighted radiance of a ray that leaves the scene: background, suns in its direction, and environment;
// only of lamps of the light group `group`, unless it is ALL_GROUPS.
// `bsdf_pdf` is the pdf per solid angle with which its direction was sampled, or DELTA_PDF.
DEVICE real3 escaped_radiance(const LaunchParams params, GLOBAL const float4 *lights, real3 direction, real bsdf_pdf,
                              int group) {
    real3 radiance = background(params, direction);
    if (!IN_GROUP(group, BACKGROUND_GROUP)) radiance = splat3((real)(0.0f));
#if NON_AREA_LIGHTS
    for (int sun = 0; sun < params.sun_count; sun++) {
        // emitted.w: the sun's selection probability (light_rows.h, part 3)
        float4 axis = lights[params.non_area_lights + 3 * sun], emitted = lights[params.non_area_lights + 3 * sun + 1];
        real3 difference = sub3(direction, broadcast(xyz(axis)));
        // |direction - axis|^2 is 2 (1 - cos), without cancellation; axis.w is 1 - cos of the sun's radius
        mask is_seen = dot_fma(difference, difference) <= 2.0f * axis.w;
        if (!(axis.w > 0.0f) || !ANY_LANE(is_seen) || !IN_GROUP(group, NON_AREA_GROUP(sun))) continue;
        real weight = mis_weight_bsdf(bsdf_pdf, emitted.w / (2.0f * PI * axis.w));  // uniform over the disc
        radiance = select3(is_seen, madd(broadcast(xyz(emitted)), weight, radiance), radiance);
    }
#endif
#if ENVIRONMENT
    if (!IN_GROUP(group, BACKGROUND_GROUP)) return radiance;
    real2 uv = environment_uv(params, direction);
    mask needs_weight = bsdf_pdf > 0.0f;
    real light_pdf = 0.0f;
    if (DIRECT_LIGHTING != DIRECT_BSDF && ANY_LANE(needs_weight))
        light_pdf = environment_pdf(params, lights, sine_to_zenith(direction), uv);
    radiance = madd(environment_texel(params, lights, uv), mis_weight_bsdf(bsdf_pdf, light_pdf), radiance);
#endif
    return radiance;
}
