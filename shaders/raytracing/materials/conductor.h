// A rough metal: GGX with Schlick's Fresnel term. `color` is the reflectance at normal incidence, `roughness` is perceptual
// (alpha is its square). Multiple scattering is compensated (E. Turquin 2019).
#include "raytracing/microfacet.h"

DEVICE float4 conductor_eval_local(const Material m, float3 v, float3 l) {
    GgxLobe lobe = eval_ggx(m.roughness, v, l);
    return with_w(fresnel_ms(base_color(m), lobe.schlick, lobe.ms_boost) * lobe.f_cos, lobe.pdf);
}

DEVICE bool conductor_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    Frame f = make_frame(s.normal);
    float3 v = to_local(f, -s.ray_direction);
    float3 h = sample_vndf(v, alpha_of(m.roughness), get_1d(sampler, dimension), get_1d(sampler, dimension + 1));
    float3 l = madd(h, 2.0f * dot_fma(v, h), -v);
    out->transmits = false;
    out->pdf = 0.0f;
    if (!(l.z > 0.0f)) return false;
    float4 value = conductor_eval_local(m, v, l);
    if (!(value.w > 0.0f)) return false;
    out->direction = normalize_fma(from_local(f, l));
    out->pdf = value.w;
    out->weight = xyz(value) * (1.0f / value.w);
    return true;
}

DEVICE float4 conductor_eval_pdf(const Material m, const Surface s, float3 direction) {
    Frame f = make_frame(s.normal);
    return conductor_eval_local(m, to_local(f, -s.ray_direction), to_local(f, direction));
}
