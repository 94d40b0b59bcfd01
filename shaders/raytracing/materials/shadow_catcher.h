// A level ground that shows the background behind it, darkened where the scene occludes its environment and suns;
// lights at a distance do not count, and from below it is invisible. For quads; shade_shadow_catcher of raytrace.cu
// handles its hits.
DEVICE bool shadow_catcher_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    return false;
}

DEVICE float4 shadow_catcher_eval_pdf(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
