// In-scattering along a path's segment, the ray's stretch up to its hit, by equiangular sampling of point lights
// (volumes/equiangular.h). Included by raytracing/raytrace.cu, whose shade_path calls it after shading the hit.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): MEDIA.
#include "raytracing/path.h"
#include "raytracing/volumes/shade_volume.h"

// Samples a point light and a point of the segment from which it scatters light along the path. A path has one shadow
// ray a segment, so this sample and the hit's shadow ray in `shadow` compete: one of the two is kept, with probability
// in proportion to its contribution, which is divided by that probability. `path` is the state before the hit was
// shaded.
DEVICE void sample_segment(const LaunchParams params, int depth, Sampler sampler, const Hit hit, Path path,
                           ShadowRay *shadow, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    if (depth + 1 >= params.max_depth || !(largest_of3(xyz(path.throughput)) > 0.0f)) return;
    if (in_scattering_medium(materials, path.radiance)) return;
    float3 origin = xyz(path.origin), direction = xyz(path.direction);
    // a collision keeps the distance of the hit that it replaced in hit.u (collide in volumes/shade_volume.h)
    bool is_collision = hit.primitive >= VOLUME_BASE && hit.primitive != ESCAPED;
    float2 span = scattering_span(params, lights, origin, direction, is_collision ? hit.u : hit.t);
    if (!(span.y > span.x)) return;
    uint dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + SEGMENT_DIMENSION;
    float u = get_1d(sampler, dimension), probability = 0.0f;
    int light = sample_span_light(params, lights, origin, direction, span, &u, &probability);
    if (light < 0) return;
    LightView view = view_span(xyz(point_light_row(params, lights, light)[0]), origin, direction, span);
    float t = sample_equiangular(view, span, u), pdf = equiangular_pdf(view, span, t) * probability;
    float3 point = madd(direction, t, origin);
    LightSample sample;
    if (!sample_non_area_light(params, lights, params.sun_count + light, point, 0.0f, 0.0f, &sample)) return;
    float selected = point_light_row(params, lights, light)[1].w;  // sample.pdf is this times distance^2
    float passed = transmittance(params, lights, origin, direction, t, sampler, dimension) *
                   transmittance(params, lights, point, sample.direction, sample.distance, sampler, dimension + 1u);
    float4 throughput = path.throughput;
    if (MEDIA) throughput = throughput * medium_transmittance(materials, path.radiance, t);
    float3 scattering = weighted_scattering(params, lights, light, probability, origin, direction, t, pdf,
                                            dot_fma(direction, sample.direction));
    float3 radiance = seen_throughput(throughput) * scattering * sample.radiance * (passed * selected / sample.pdf);
    float4 contribution = clamp_contribution(params, depth + 1, with_w(radiance, 0.0f));
    float value = largest_of3(xyz(contribution)), other = shadow->valid ? largest_of3(xyz(shadow->contribution)) : 0.0f;
    if (!(value > 0.0f)) return;
    if (get_1d(sampler, dimension + 1u) * (value + other) < value) {
        shadow->valid = true;
        shadow->origin = with_w(point, path.origin.w);
        shadow->direction = with_w(sample.direction, sample.distance * 0.9999f);
        shadow->contribution = contribution * ((value + other) / value);
        set_segment_lobe(PASSES_OF(path), depth, NON_AREA_GROUP(params.sun_count + light));
    } else {
        float4 old = shadow->contribution;
        shadow->contribution = with_w(xyz(old) * ((value + other) / other), old.w);
    }
}
