// A dielectric: reflects or refracts by Fresnel's equations for unpolarised light; `refraction` is its index inside. With
// `roughness` its micro-normals are GGX's, and light scattered more than once is given back (E. Turquin 2019).
#include "microfacet.h"

DEVICE float fresnel_share(float cosine_in, float cosine_out, float ratio) {
    float across = fma(ratio, cosine_in, -cosine_out) / fma(ratio, cosine_in, cosine_out);
    float with = fma(ratio, cosine_out, -cosine_in) / fma(ratio, cosine_out, cosine_in);
    return 0.5f * fma(across, across, with * with);
}

DEVICE bool glass_scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) {
    float ratio = s.front ? 1.0f / m.refraction : m.refraction;  // index before over index behind
    float3 normal = s.normal, view = -s.incoming;
    float cosine_view = dot_exact(view, s.normal);
    bool rough = m.roughness > 0.0f && m.refraction != 1.0f;
    if (rough) {
        Frame f = frame_about(s.normal);
        float first = sample_at(key, dimension), second = sample_at(key, dimension + 1);
        normal = out_of_frame(f, visible_normal(into_frame(f, view), alpha_of(m.roughness), first, second));
    }
    float cosine_in = smaller(dot_exact(view, normal), 1.0f);
    float sine2 = ratio * ratio * fma(-cosine_in, cosine_in, 1.0f);
    float cosine_out = sqrt(larger(1.0f - sine2, 0.0f));
    bool reflects = sine2 >= 1.0f || sample_at(key, dimension + 2) < fresnel_share(cosine_in, cosine_out, ratio);
    float3 bent = along(s.incoming * ratio, normal, fma(ratio, cosine_in, -cosine_out));
    out->direction = unit(reflects ? reflected(s.incoming, normal) : bent);
    out->weight = colour_of(m);
    out->density = MIRRORED;  // lights are found by running into them: both sides of the surface may see one
    out->through = !reflects;
    if (rough) {
        float leaves = dot_exact(out->direction, s.normal);
        if (reflects ? !(leaves > 0.0f) : !(leaves < 0.0f)) return false;
        float kept = unshadowed(cosine_view, fabs(leaves), alpha_of(m.roughness));
        out->weight = out->weight * (kept / larger(kept_by_dielectric(cosine_view, m.roughness, 1.0f / ratio), 0.05f));
    }
    return true;
}

DEVICE float4 glass_evaluate(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
