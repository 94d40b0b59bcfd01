// Shading of the way to a hit by equiangular sampling (equiangular.h). Included by raytracing/raytrace.cu.

// Samples a point light and a point of the segment that a path went to its hit, by equiangular sampling. One shadow ray
// must do for this and for `shadow`: one of both is taken in proportion to its contribution.
DEVICE void sample_segment(const LaunchParams params, int depth, Sampler sampler, const Hit hit, Path path,
                           ShadowRay *shadow, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    if (depth + 1 >= params.max_depth || !(largest_of3(xyz(path.throughput)) > 0.0f)) return;
    float3 origin = xyz(path.origin), direction = xyz(path.direction);
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
    float selected = point_light_row(params, lights, light)[1].w;  // is in sample.pdf, too
    float passed = transmittance(params, lights, origin, direction, t, sampler, dimension) *
                   transmittance(params, lights, point, sample.direction, sample.distance, sampler, dimension + 1u);
    float4 throughput = path.throughput;
#if MEDIA
    throughput = throughput * medium_transmittance(materials, path.radiance, t);
#endif
    float3 scattering = weighted_scattering(params, lights, light, probability, origin, direction, t, pdf,
                                            dot_fma(direction, sample.direction));
    float3 found = seen_throughput(throughput) * scattering * sample.radiance * (passed * selected / sample.pdf);
    float4 contribution = clamp_contribution(params, depth + 1, with_w(found, 0.0f));
    float ours = largest_of3(xyz(contribution)), others = shadow->valid ? largest_of3(xyz(shadow->contribution)) : 0.0f;
    if (!(ours > 0.0f)) return;
    if (get_1d(sampler, dimension + 1u) * (ours + others) < ours) {
        shadow->valid = true;
        shadow->origin = with_w(point, path.origin.w);
        shadow->direction = with_w(sample.direction, sample.distance * 0.9999f);
        shadow->contribution = contribution * ((ours + others) / ours);
    } else {
        float4 kept = shadow->contribution;
        shadow->contribution = with_w(xyz(kept) * ((ours + others) / others), kept.w);
    }
}

// shade_hit, and the light that point lights scatter on the way to the hit.
DEVICE bool shade_path(const LaunchParams params, int depth, Sampler sampler, const Hit hit, Path *path,
                       ShadowRay *shadow, SCENE_PARAMS, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    Path arrived = *path;
    bool continues = false;
    shadow->valid = false;
    if (hit.primitive == ESCAPED)
        path->radiance = add_escaped_radiance(params, depth, lights, arrived);
    else
        continues = shade_hit(params, depth, sampler, hit, path, shadow, SCENE_ARGS, materials, lights);
    shadow->origin = path->origin;
    sample_segment(params, depth, sampler, hit, arrived, shadow, materials, lights);
    return continues;
}
