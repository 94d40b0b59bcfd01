// A rough metal: GGX with Schlick's Fresnel term, `color` its reflectance at normal incidence, `roughness` perceptual
// (alpha is its square). Light scattered more than once is given back (E. Turquin 2019).
#include "raytracing/microfacet.h"

DEVICE float4 conductor_value(const Material m, float3 v, float3 l) {
    Reflection r = reflection_of(m.roughness, v, l);
    return with_w(compensated_fresnel(colour_of(m), r.weight, r.more) * r.value, r.density);
}

DEVICE bool conductor_scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) {
    Frame f = frame_about(s.normal);
    float3 v = into_frame(f, -s.incoming);
    float3 h = visible_normal(v, alpha_of(m.roughness), sample_at(key, dimension), sample_at(key, dimension + 1));
    float3 l = madd(h, 2.0f * dot_fma(v, h), -v);
    out->through = false;
    out->density = 0.0f;
    if (!(l.z > 0.0f)) return false;
    float4 value = conductor_value(m, v, l);
    if (!(value.w > 0.0f)) return false;
    out->direction = normalize_fma(out_of_frame(f, l));
    out->density = value.w;
    out->weight = xyz(value) * (1.0f / value.w);
    return true;
}

DEVICE float4 conductor_evaluate(const Material m, const Surface s, float3 direction) {
    Frame f = frame_about(s.normal);
    return conductor_value(m, into_frame(f, -s.incoming), into_frame(f, direction));
}
