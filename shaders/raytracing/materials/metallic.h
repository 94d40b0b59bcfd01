// glTF's metallic-roughness surface (glTF 2.0 specification, appendix B): a fraction `metallic` of metal with F0
// `color`; the rest is a dielectric of F0 0.04 over a diffuse body, which gets the energy that the dielectric does not
// reflect.
#include "raytracing/microfacet.h"

DEVICE float3 dielectric_f0(void) { return make_float3(0.04f, 0.04f, 0.04f); }

// Albedo of the diffuse body for the view direction's cosine.
DEVICE float3 diffuse_albedo(const Material m, float cosine) {
    float3 left = make_float3(1.0f, 1.0f, 1.0f) - ggx_albedo(dielectric_f0(), m.roughness, cosine);
    return base_color(m) * left * (1.0f - m.metallic);
}

// The probability of sampling the specular lobe.
DEVICE float specular_probability(const Material m, float cosine) {
    float3 dielectric = ggx_albedo(dielectric_f0(), m.roughness, cosine) * (1.0f - m.metallic);
    float3 metal = ggx_albedo(base_color(m), m.roughness, cosine) * m.metallic;
    float3 specular = dielectric + metal, diffuse = diffuse_albedo(m, cosine);
    float a = specular.x + specular.y + specular.z, b = diffuse.x + diffuse.y + diffuse.z;
    return b > 0.0f ? clamp(a / (a + b), 0.1f, 0.9f) : 1.0f;
}

DEVICE float4 metallic_eval_local(const Material m, float3 v, float3 l) {
    GgxLobe lobe = eval_ggx(m.roughness, v, l);
    float3 fresnel = fresnel_ms(dielectric_f0(), lobe.schlick, lobe.ms_boost) * (1.0f - m.metallic) +
                     fresnel_ms(base_color(m), lobe.schlick, lobe.ms_boost) * m.metallic;
    float diffuse_pdf = max_nnan(l.z, 0.0f) * (1.0f / PI), specular = specular_probability(m, v.z);
    return with_w(fresnel * lobe.f_cos + diffuse_albedo(m, v.z) * diffuse_pdf,
                  fma(specular, lobe.pdf, (1.0f - specular) * diffuse_pdf));
}

DEVICE bool metallic_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    Frame f = make_frame(s.normal);
    float3 v = to_local(f, -s.ray_direction), l;
    float u1 = get_1d(sampler, dimension), u2 = get_1d(sampler, dimension + 1);
    if (get_1d(sampler, dimension + 2) < specular_probability(m, v.z)) {
        l = sample_ggx(m.roughness, v, u1, u2);
    } else {
        float pdf;
        l = to_local(f, sample_cosine_hemisphere(s.normal, u1, u2, &pdf));
    }
    return set_reflection(f, l, metallic_eval_local(m, v, l), out);
}

DEVICE float4 metallic_eval_pdf(const Material m, const Surface s, float3 direction) {
    Frame f = make_frame(s.normal);
    float3 v = to_local(f, -s.ray_direction), l = to_local(f, direction);
    if (!(v.z > 0.0f) || !(l.z > 0.0f)) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return metallic_eval_local(m, v, l);
}
