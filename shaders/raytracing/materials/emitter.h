// A surface that reflects nothing; like every material with an `emission` it emits from its front face.
DEVICE bool emitter_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    return false;
}

DEVICE float4 emitter_eval_pdf(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
