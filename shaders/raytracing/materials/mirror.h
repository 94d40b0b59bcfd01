// A perfect mirror of reflectance `color`.
DEVICE bool mirror_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    out->direction = normalize_fma(reflect(s.ray_direction, s.normal));
    out->weight = base_color(m);
    out->pdf = DELTA_PDF;
    out->transmits = false;
    return true;
}

DEVICE float4 mirror_eval_pdf(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
