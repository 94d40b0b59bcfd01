// A surface of radiance `color` that no light changes (KHR_materials_unlit). It is seen from both sides and reflects
// nothing; only rays that hit it find it.
DEVICE bool unlit_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    return false;
}

DEVICE float4 unlit_eval_pdf(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
