// glTF's metallic-roughness surface (glTF 2.0 specification, appendix B): a mixture of metal, with the fraction
// `metallic` and the normal reflectance `color`, and of a dielectric of normal reflectance 0.04 over a diffuse surface,
// which receives the light that the dielectric does not reflect.

// For the host; raytracing/surface.h explains these lines:
// @optional
// @mirrors where metallic
// @maps roughness, metallic, metallic_roughness
// @simd8 metallic

// Compiled for one lane (`real` is float, `mask` bool) and, on CPUs, again for eight (float8, int8; packets/lanes8.h).
#include "raytracing/microfacet.h"

#define DIELECTRIC_F0 (real)(0.04f)

// The lobes of the surface for one view direction, which evaluation and sampling share.
typedef struct {
    Frame frame;
    real3 v, color, body;  // view direction in `frame`; F0 of the metal; albedo of the diffuse lobe
    real metallic, roughness, lambda_v, ms_boost;  // smith_lambda and ms_boost of v (microfacet.h)
    real specular_probability;  // probability to sample the specular lobe
} MetallicLobes;

// Returns the lobes at a surface with this unit shading normal, for a unit ray direction in world space.
DEVICE MetallicLobes metallic_lobes(real3 normal, real3 ray_direction, real3 color, real roughness, real metallic) {
    MetallicLobes k;
    k.frame = make_frame(normal);
    k.v = to_local(k.frame, negate3(ray_direction));
    k.color = color;
    k.metallic = metallic;
    k.roughness = roughness;
    k.lambda_v = smith_lambda(k.v.z, ggx_alpha(roughness));
    real2 split_sum = ggx_split_sum(k.v.z, roughness);
    k.ms_boost = ms_boost(split_sum);
    real dielectric = ggx_albedo(DIELECTRIC_F0, split_sum);
    k.body = scale3(scale3(k.color, 1.0f - dielectric), 1.0f - metallic);
    real3 metal = scale3(ggx_albedo3(k.color, split_sum), metallic);
    real3 specular = add3(splat3(dielectric * (1.0f - metallic)), metal);
    real a = specular.x + specular.y + specular.z, b = k.body.x + k.body.y + k.body.z;
    // Either lobe keeps a tenth of the samples, so that no weight is large.
    k.specular_probability = b > 0.0f ? clamp(a / (a + b), 0.1f, 0.9f) : 1.0f;
    return k;
}

// Returns the BSDF times cos(theta) for light from `l`, in k.frame, and the pdf per solid angle in w.
DEVICE real4 metallic_eval_local(const MetallicLobes k, real3 l) {
    GgxLobe lobe = eval_ggx_lobe(ggx_alpha(k.roughness), k.lambda_v, k.ms_boost, k.v, l);
    real dielectric = fresnel_ms(DIELECTRIC_F0, lobe.schlick, lobe.ms_boost) * (1.0f - k.metallic);
    real3 metal = scale3(fresnel_ms3(k.color, lobe.schlick, lobe.ms_boost), k.metallic);
    real diffuse_pdf = max_nnan(l.z, 0.0f) * (1.0f / PI);
    real3 specular = scale3(add3(splat3(dielectric), metal), lobe.f_cos);
    return with_w(add3(specular, scale3(k.body, diffuse_pdf)),
                  fma(k.specular_probability, lobe.pdf, (1.0f - k.specular_probability) * diffuse_pdf));
}

// Returns the BSDF times cos(theta) for light from the world-space `direction`, and its pdf in w. The pdf is 0 if view
// or light is below the surface; the BSDF is then not 0, and must not be used.
DEVICE real4 eval_metallic_lobes(const MetallicLobes k, real3 direction) {
    real3 l = to_local(k.frame, direction);
    mask above = (k.v.z > 0.0f) & (l.z > 0.0f);
    real4 value = metallic_eval_local(k, l);
    return with_w(xyz(value), above ? value.w : 0.0f);
}

// Samples the specular lobe if u3 < specular_probability, else the diffuse lobe. Returns false if the direction has pdf
// 0.
DEVICE mask sample_metallic_lobes(const MetallicLobes k, real u1, real u2, real u3, BsdfSample *out) {
    mask is_specular = u3 < k.specular_probability;
    real3 l = k.v;
    if (ANY_LANE(is_specular)) l = sample_ggx(k.roughness, k.v, u1, u2);
    if (ANY_LANE(!is_specular)) {
        real pdf;
        real3 diffuse = to_local(k.frame, sample_cosine_hemisphere(k.frame.normal, u1, u2, &pdf));
        l = select3(is_specular, l, diffuse);
    }
    return set_reflection(k.frame, l, metallic_eval_local(k, l), out);
}

#if LANES == 1
DEVICE bool metallic_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    float u1 = get_1d(sampler, dimension), u2 = get_1d(sampler, dimension + 1), u3 = get_1d(sampler, dimension + 2);
    MetallicLobes k = metallic_lobes(s.normal, s.ray_direction, base_color(m), m.roughness, m.metallic);
    return sample_metallic_lobes(k, u1, u2, u3, out);
}

DEVICE float4 metallic_eval_pdf(const Material m, const Surface s, float3 direction) {
    bool above = -dot_fma(s.ray_direction, s.normal) > 0.0f && dot_fma(direction, s.normal) > 0.0f;
    if (!above) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    MetallicLobes k = metallic_lobes(s.normal, s.ray_direction, base_color(m), m.roughness, m.metallic);
    return eval_metallic_lobes(k, direction);
}

DEVICE float3 metallic_albedo(const Material m, const Surface s) { return base_color(m); }

// Returns the diffuse lobe's part of metallic_eval_pdf.
DEVICE float3 metallic_diffuse(const Material m, const Surface s, float3 direction) {
    MetallicLobes k = metallic_lobes(s.normal, s.ray_direction, base_color(m), m.roughness, m.metallic);
    return k.body * (max_nnan(dot_fma(direction, s.normal), 0.0f) * (1.0f / PI));
}

REFLECTOR(metallic, schlick_mirror_fraction(m.metallic, s.normal, s.ray_direction),
          m.roughness >= GUIDED_ROUGHNESS ? GUIDED_GLOSSY : GUIDED_GLOSSY * (1.0f - m.metallic),
          metallic_diffuse(m, s, direction))
#endif
