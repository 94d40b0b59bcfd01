// Shines (every material with an `emission` does) and reflects nothing.
DEVICE bool emitter_scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) { return false; }

DEVICE float4 emitter_evaluate(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
