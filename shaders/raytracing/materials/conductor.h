// A rough metal: a GGX reflector with Schlick's Fresnel term. `color` is the reflectance at normal incidence;
// `roughness` is perceptual (alpha is its square). Multiple scattering is compensated (ms_factor).

// For the host; raytracing/surface.h explains these lines:
// @optional
// @mirrors
// @maps roughness

#include "raytracing/microfacet.h"

// Returns the BRDF times cos(theta_l), and the pdf of l in w; v and l are in the local frame of the normal.
DEVICE float4 conductor_eval_local(const Material m, float3 v, float3 l) {
    GgxLobe lobe = eval_ggx(m.roughness, v, l);
    return with_w(fresnel_ms3(base_color(m), lobe.schlick, lobe.ms_boost) * lobe.f_cos, lobe.pdf);
}

DEVICE bool conductor_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    Frame f = make_frame(s.normal);
    float3 v = to_local(f, -s.ray_direction);
    float3 l = sample_ggx(m.roughness, v, get_1d(sampler, dimension), get_1d(sampler, dimension + 1));
    return set_reflection(f, l, conductor_eval_local(m, v, l), out);
}

DEVICE float4 conductor_eval_pdf(const Material m, const Surface s, float3 direction) {
    Frame f = make_frame(s.normal);
    return conductor_eval_local(m, to_local(f, -s.ray_direction), to_local(f, direction));
}

DEVICE float3 conductor_albedo(const Material m, const Surface s) { return base_color(m); }

REFLECTOR(conductor, 1.0f, 0.0f, splat3(0.0f))
