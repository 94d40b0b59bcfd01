// A dielectric that reflects or refracts by Fresnel's equations for unpolarized light; `ior` is its index of
// refraction. With `roughness` it is a microfacet surface (GGX), and multiple scattering is compensated (E. Turquin
// 2019).

// For the host; raytracing/surface.h explains these lines:
// @optional
// @maps roughness
// @transmits where ior
// @constant GLASS_TABLE
// @constant REFRACTION
// @constant SHADOW_RAYS_CROSS where roughness

#include "raytracing/microfacet.h"

// True if the microfacet model applies. Where the index of refraction is 1, light passes straight, whatever the
// micro-normals.
DEVICE bool glass_is_rough(const Material m) { return m.roughness > 0.0f && fabs(m.ior - 1.0f) > 1e-3f; }

// Returns the weight of a sample of visible normals: color times G2 / G1 over the albedo of single scattering.
// eta_i_over_t: index of refraction on the viewer's side over the index on the other side.
DEVICE float3 glass_weight(const Material m, float cosine_v, float cosine_l, float eta_i_over_t) {
    float g2_over_g1 = smith_g2_over_g1(cosine_v, fabs(cosine_l), ggx_alpha(m.roughness));
    float albedo = max_nnan(ggx_dielectric_albedo(cosine_v, m.roughness, 1.0f / eta_i_over_t), 0.05f);
    return base_color(m) * (g2_over_g1 / albedo);
}

// Returns the BSDF of rough glass times |cos(theta_l)| and, in w, the pdf of l per solid angle (B. Walter et al. 2007).
// v and l are in the local frame of the normal (z).
DEVICE float4 glass_eval_local(const Material m, float3 v, float3 l, float eta_i_over_t) {
    float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    bool reflects = l.z > 0.0f;
    float3 h = reflects ? v + l : -(v * eta_i_over_t + l);
    float size2 = dot_fma(h, h);
    if (!(v.z > 0.0f) || l.z == 0.0f || !(size2 > 1e-12f)) return zero;
    h = h * ((h.z < 0.0f ? -1.0f : 1.0f) / sqrt(size2));
    float v_dot_h = dot_fma(v, h), l_dot_h = dot_fma(l, h), alpha = ggx_alpha(m.roughness);
    if (!(v_dot_h > 0.0f) || (reflects ? !(l_dot_h > 0.0f) : !(l_dot_h < 0.0f))) return zero;
    float sine2_t = eta_i_over_t * eta_i_over_t * fma(-v_dot_h, v_dot_h, 1.0f);
    float fresnel = sine2_t >= 1.0f ? 1.0f : fresnel_dielectric(v_dot_h, sqrt(1.0f - sine2_t), eta_i_over_t);
    float vndf_pdf = ggx_d(h, alpha) * v_dot_h / (v.z * (1.0f + smith_lambda(v.z, alpha)));
    float jacobian = fma(eta_i_over_t, v_dot_h, l_dot_h);
    float pdf = reflects ? vndf_pdf * fresnel / (4.0f * v_dot_h)
                         : vndf_pdf * (1.0f - fresnel) * -l_dot_h / (jacobian * jacobian);
    if (!(pdf > 0.0f)) return zero;
    return with_w(glass_weight(m, v.z, l.z, eta_i_over_t) * pdf, pdf);
}

// Returns the index of refraction on the ray's side over the index on the other side.
DEVICE float relative_eta(const Material m, const Surface s) { return s.front_face ? 1.0f / m.ior : m.ior; }

DEVICE bool glass_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    float eta = relative_eta(m, s);
    float3 normal = s.normal, view = -s.ray_direction;
    bool rough = glass_is_rough(m);
    Frame f = make_frame(s.normal);
    if (rough) {
        float u1 = get_1d(sampler, dimension), u2 = get_1d(sampler, dimension + 1), alpha = ggx_alpha(m.roughness);
        normal = from_local(f, sample_vndf(to_local(f, view), make_float2(alpha, alpha), u1, u2));
    }
    float cosine_i = min_nnan(dot_fma(view, normal), 1.0f);
    float sine2_t = eta * eta * fma(-cosine_i, cosine_i, 1.0f);
    float cosine_t = sqrt(max_nnan(1.0f - sine2_t, 0.0f));
    bool reflects = sine2_t >= 1.0f || get_1d(sampler, dimension + 2) < fresnel_dielectric(cosine_i, cosine_t, eta);
    float3 refracted = madd(normal, fma(eta, cosine_i, -cosine_t), s.ray_direction * eta);
    out->direction = normalize_fma(reflects ? reflect(s.ray_direction, normal) : refracted);
    out->weight = base_color(m);
    out->pdf = DELTA_PDF;
    out->transmits = !reflects;
    if (rough) {
        float3 v = to_local(f, view), l = to_local(f, out->direction);
        if (reflects ? !(l.z > 0.0f) : !(l.z < 0.0f)) return false;
        if (!WHITTED) out->pdf = glass_eval_local(m, v, l, eta).w;
        out->weight = glass_weight(m, v.z, l.z, eta);
    }
    return true;
}

DEVICE float4 glass_eval_pdf(const Material m, const Surface s, float3 direction) {
    if (WHITTED || !glass_is_rough(m)) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    Frame f = make_frame(s.normal);
    return glass_eval_local(m, to_local(f, -s.ray_direction), to_local(f, direction), relative_eta(m, s));
}

DEVICE float3 glass_albedo(const Material m, const Surface s) { return base_color(m); }

DEVICE bool glass_is_delta(const Material m, const Surface s) { return WHITTED || !glass_is_rough(m); }
DEVICE float glass_mirror_fraction(const Material m, const Surface s) { return 0.0f; }
DEVICE float glass_guided_fraction(const Material m) {
    return m.roughness >= GUIDED_ROUGHNESS && glass_is_rough(m) ? GUIDED_GLASS : 0.0f;
}
DEVICE bool glass_is_lit_from_behind(const Material m) { return true; }
DEVICE bool glass_has_medium(const Material m) { return true; }
DEVICE float glass_dispersion(const Material m) { return 0.0f; }
NO_DIFFUSE(glass)
