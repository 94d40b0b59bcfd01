// Lambertian reflector with albedo `color`.

// For the host; raytracing/surface.h explains these lines:
// @simd8 diffuse

#include "raytracing/surface.h"

DEVICE bool diffuse_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    float u1 = get_1d(sampler, dimension), u2 = get_1d(sampler, dimension + 1);
    out->direction = sample_cosine_hemisphere(s.normal, u1, u2, &out->pdf);
    out->weight = base_color(m);
    out->transmits = false;
    return true;
}

DEVICE float4 diffuse_eval_pdf(const Material m, const Surface s, float3 direction) {
    float pdf = max_nnan(dot_fma(s.normal, direction), 0.0f) * (1.0f / PI);
    return with_w(base_color(m) * pdf, pdf);
}

DEVICE float3 diffuse_albedo(const Material m, const Surface s) { return base_color(m); }

REFLECTOR(diffuse, 0.0f, GUIDED_DIFFUSE, xyz(diffuse_eval_pdf(m, s, direction)))
