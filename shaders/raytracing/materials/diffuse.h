// Lambert's reflector: `color` is its albedo.
DEVICE bool diffuse_scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) {
    out->direction = cosine_direction(s.normal, sample_at(key, dimension), sample_at(key, dimension + 1), &out->density);
    out->weight = colour_of(m);
    out->through = false;
    return true;
}

DEVICE float4 diffuse_evaluate(const Material m, const Surface s, float3 direction) {
    float density = larger(dot_fma(s.normal, direction), 0.0f) * (1.0f / PI);
    return with_w(colour_of(m) * density, density);
}
