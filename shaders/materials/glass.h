// A smooth dielectric: reflects or refracts by Fresnel's equations for unpolarised light; `refraction` is its index inside.
DEVICE float fresnel_share(float cosine_in, float cosine_out, float ratio) {
    float across = fma(ratio, cosine_in, -cosine_out) / fma(ratio, cosine_in, cosine_out);
    float with = fma(ratio, cosine_out, -cosine_in) / fma(ratio, cosine_out, cosine_in);
    return 0.5f * fma(across, across, with * with);
}

DEVICE bool glass_scatter(const Material m, const Surface s, uint key, uint dimension, Scatter *out) {
    float ratio = s.front ? 1.0f / m.refraction : m.refraction;  // index before over index behind
    float cosine_in = smaller(-dot_exact(s.incoming, s.normal), 1.0f);
    float sine2 = ratio * ratio * fma(-cosine_in, cosine_in, 1.0f);
    float cosine_out = sqrt(larger(1.0f - sine2, 0.0f));
    bool reflects = sine2 >= 1.0f || random_at(key, dimension + 2) < fresnel_share(cosine_in, cosine_out, ratio);
    float3 bent = along(s.incoming * ratio, s.normal, fma(ratio, cosine_in, -cosine_out));
    out->direction = unit(reflects ? reflected(s.incoming, s.normal) : bent);
    out->weight = colour_of(m);
    out->density = MIRRORED;
    out->through = !reflects;
    return true;
}

DEVICE float4 glass_evaluate(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
