// glTF's metallic-roughness surface: a share `metallic` of metal whose F0 is `color`, the rest a dielectric, which is a
// reflector of F0 0.04 over a diffuse body that gets what the reflector leaves over. glTF 2.0 specification, appendix B.
#include "raytracing/microfacet.h"

DEVICE float3 coat_f0(void) { return make_float3(0.04f, 0.04f, 0.04f); }

// The diffuse body's albedo under a viewer at `cosine`.
DEVICE float3 metallic_body(const Material m, float cosine) {
    float3 left = make_float3(1.0f, 1.0f, 1.0f) - albedo_of_reflector(coat_f0(), m.roughness, cosine);
    return colour_of(m) * left * (1.0f - m.metallic);
}

// The probability of picking the reflector.
DEVICE float metallic_share(const Material m, float cosine) {
    float3 coat = albedo_of_reflector(coat_f0(), m.roughness, cosine) * (1.0f - m.metallic);
    float3 metal = albedo_of_reflector(colour_of(m), m.roughness, cosine) * m.metallic;
    float3 surface = coat + metal, body = metallic_body(m, cosine);
    float a = surface.x + surface.y + surface.z, b = body.x + body.y + body.z;
    return b > 0.0f ? clamp(a / (a + b), 0.1f, 0.9f) : 1.0f;
}

DEVICE float4 metallic_value(const Material m, float3 v, float3 l) {
    Reflection r = reflection_of(m.roughness, v, l);
    float3 fresnel = compensated_fresnel(coat_f0(), r.weight, r.more) * (1.0f - m.metallic)
                     + compensated_fresnel(colour_of(m), r.weight, r.more) * m.metallic;
    float cosine = larger(l.z, 0.0f) * (1.0f / PI), share = metallic_share(m, v.z);
    return with_w(fresnel * r.value + metallic_body(m, v.z) * cosine, fma(share, r.density, (1.0f - share) * cosine));
}

DEVICE bool metallic_scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) {
    Frame f = frame_about(s.normal);
    float3 v = into_frame(f, -s.incoming), l;
    float first = sample_at(key, dimension), second = sample_at(key, dimension + 1);
    if (sample_at(key, dimension + 2) < metallic_share(m, v.z)) {
        float3 h = visible_normal(v, alpha_of(m.roughness), first, second);
        l = madd(h, 2.0f * dot_fma(v, h), -v);
    } else {
        float density;
        l = into_frame(f, cosine_direction(s.normal, first, second, &density));
    }
    out->through = false;
    out->density = 0.0f;
    if (!(l.z > 0.0f)) return false;
    float4 value = metallic_value(m, v, l);
    if (!(value.w > 0.0f)) return false;
    out->direction = normalize_fma(out_of_frame(f, l));
    out->density = value.w;
    out->weight = xyz(value) * (1.0f / value.w);
    return true;
}

DEVICE float4 metallic_evaluate(const Material m, const Surface s, float3 direction) {
    Frame f = frame_about(s.normal);
    float3 v = into_frame(f, -s.incoming), l = into_frame(f, direction);
    if (!(v.z > 0.0f) || !(l.z > 0.0f)) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return metallic_value(m, v, l);
}
