// A perfect mirror: `color` is what it reflects.
DEVICE bool mirror_scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) {
    out->direction = normalize_fma(reflected(s.incoming, s.normal));
    out->weight = colour_of(m);
    out->density = MIRRORED;
    out->through = false;
    return true;
}

DEVICE float4 mirror_evaluate(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
