// A dielectric: reflects or refracts by Fresnel's equations for unpolarised light; `refraction` is its index inside. With
// `roughness` its micro-normals are GGX's, and light scattered more than once is given back (E. Turquin 2019).
#include "raytracing/microfacet.h"

DEVICE float fresnel_share(float cosine_in, float cosine_out, float ratio) {
    float across = fma(ratio, cosine_in, -cosine_out) / fma(ratio, cosine_in, cosine_out);
    float with = fma(ratio, cosine_out, -cosine_in) / fma(ratio, cosine_out, cosine_in);
    return 0.5f * fma(across, across, with * with);
}

// Whether the surface is taken as rough: near index 1 nothing bends, whatever the micro-normals.
DEVICE bool glass_is_rough(const Material m) { return m.roughness > 0.0f && fabs(m.refraction - 1.0f) > 1e-3f; }

DEVICE float3 glass_weight(const Material m, float cosine_view, float leaves, float ratio) {
    float kept = unshadowed(cosine_view, fabs(leaves), alpha_of(m.roughness));
    return colour_of(m) * (kept / larger(kept_by_dielectric(cosine_view, m.roughness, 1.0f / ratio), 0.05f));
}

// Share and density of direction l, where ratio is the index before the surface over that behind it (B. Walter et al. 2007).
DEVICE float4 glass_value(const Material m, float3 v, float3 l, float ratio) {
    float4 nothing = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    bool reflects = l.z > 0.0f;
    float3 h = reflects ? v + l : -(v * ratio + l);
    float size2 = dot_fma(h, h);
    if (!(v.z > 0.0f) || l.z == 0.0f || !(size2 > 1e-12f)) return nothing;
    h = h * ((h.z < 0.0f ? -1.0f : 1.0f) / sqrt(size2));
    float towards = dot_fma(v, h), leaving = dot_fma(l, h), alpha = alpha_of(m.roughness);
    if (!(towards > 0.0f) || (reflects ? !(leaving > 0.0f) : !(leaving < 0.0f))) return nothing;
    float sine2 = ratio * ratio * fma(-towards, towards, 1.0f);
    float fresnel = sine2 >= 1.0f ? 1.0f : fresnel_share(towards, sqrt(1.0f - sine2), ratio);
    float seen = ggx_density(h, alpha) * towards / (v.z * (1.0f + smith_lambda(v.z, alpha)));
    float across = fma(ratio, towards, leaving);
    float density = reflects ? seen * fresnel / (4.0f * towards) : seen * (1.0f - fresnel) * -leaving / (across * across);
    if (!(density > 0.0f)) return nothing;
    return with_w(glass_weight(m, v.z, l.z, ratio) * density, density);
}

DEVICE float glass_ratio(const Material m, const Surface s) { return s.front ? 1.0f / m.refraction : m.refraction; }

DEVICE bool glass_scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) {
    float ratio = glass_ratio(m, s);
    float3 normal = s.normal, view = -s.incoming;
    bool rough = glass_is_rough(m);
    Frame f = frame_about(s.normal);
    if (rough) {
        float first = sample_at(key, dimension), second = sample_at(key, dimension + 1);
        normal = out_of_frame(f, visible_normal(into_frame(f, view), alpha_of(m.roughness), first, second));
    }
    float cosine_in = smaller(dot_fma(view, normal), 1.0f);
    float sine2 = ratio * ratio * fma(-cosine_in, cosine_in, 1.0f);
    float cosine_out = sqrt(larger(1.0f - sine2, 0.0f));
    bool reflects = sine2 >= 1.0f || sample_at(key, dimension + 2) < fresnel_share(cosine_in, cosine_out, ratio);
    float3 bent = madd(normal, fma(ratio, cosine_in, -cosine_out), s.incoming * ratio);
    out->direction = normalize_fma(reflects ? reflected(s.incoming, normal) : bent);
    out->weight = colour_of(m);
    out->density = MIRRORED;
    out->through = !reflects;
    if (rough) {
        float3 v = into_frame(f, view), l = into_frame(f, out->direction);
        if (!WHITTED) out->density = 0.0f;
        if (reflects ? !(l.z > 0.0f) : !(l.z < 0.0f)) return false;
        if (!WHITTED) out->density = glass_value(m, v, l, ratio).w;
        out->weight = glass_weight(m, v.z, l.z, ratio);
    }
    return true;
}

DEVICE float4 glass_evaluate(const Material m, const Surface s, float3 direction) {
    if (WHITTED || !glass_is_rough(m)) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    Frame f = frame_about(s.normal);
    return glass_value(m, into_frame(f, -s.incoming), into_frame(f, direction), glass_ratio(m, s));
}
