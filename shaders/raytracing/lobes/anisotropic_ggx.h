// GGX whose alpha differs along the tangent (x) and the bitangent (y); microfacet.h is the isotropic case.
DEVICE float2 anisotropic_alpha(float roughness, float anisotropy) {  // as KHR_materials_anisotropy
    float alpha = max_nnan(roughness * roughness, MIN_ALPHA);
    return make_float2(fma(1.0f - alpha, anisotropy * anisotropy, alpha), alpha);
}

DEVICE float3 sample_vndf2(float3 v, float2 alpha, float u1, float u2) {
    float3 stretched = normalize_fma(make_float3(alpha.x * v.x, alpha.y * v.y, v.z));
    float height = fma(1.0f - u2, 1.0f + stretched.z, -stretched.z);
    float radius = sqrt(max_nnan(fma(-height, height, 1.0f), 0.0f));
    float2 phi = cos_sin_2pi(u1);
    float3 h = make_float3(fma(radius, phi.x, stretched.x), fma(radius, phi.y, stretched.y), height + stretched.z);
    return normalize_fma(make_float3(alpha.x * h.x, alpha.y * h.y, max_nnan(h.z, 1e-6f)));
}

DEVICE float smith_lambda2(float3 v, float2 alpha) {
    float x = alpha.x * v.x, y = alpha.y * v.y;
    return 0.5f * (sqrt(1.0f + fma(x, x, y * y) / max_nnan(v.z * v.z, 1e-12f)) - 1.0f);
}

DEVICE float ggx_d2(float3 h, float2 alpha) {
    float x = h.x / alpha.x, y = h.y / alpha.y, q = fma(x, x, fma(y, y, h.z * h.z));
    return 1.0f / (PI * alpha.x * alpha.y * q * q);
}

#if ANISOTROPY || TRANSMISSION
// Albedos for a view direction, by visible normals at the 89 points of a Fibonacci lattice: in place of tables, which
// would have four dimensions. Half a per cent of error, two at most.
#define LATTICE_POINTS 89
#define LATTICE_STEP 55

DEVICE float3 lattice_normal(float3 v, float2 alpha, int i) {
    float u1 = ((float)i + 0.5f) / LATTICE_POINTS,
          u2 = ((float)(i * LATTICE_STEP % LATTICE_POINTS) + 0.5f) / LATTICE_POINTS;
    return sample_vndf2(v, alpha, u1, u2);
}

DEVICE float smith_weight2(float lambda_v, float3 l, float2 alpha) {
    return (1.0f + lambda_v) / (1.0f + lambda_v + smith_lambda2(l, alpha));
}

// As ggx_split_sum of microfacet.h.
DEVICE float2 anisotropic_split_sum(float3 v, float2 alpha) {
    float lambda_v = smith_lambda2(v, alpha);
    float2 sum = make_float2(0.0f, 0.0f);
    NO_UNROLL
    for (int i = 0; i < LATTICE_POINTS; i++) {
        float3 h = lattice_normal(v, alpha, i);
        float v_dot_h = dot_fma(v, h), schlick = schlick_weight(v_dot_h);
        float3 l = madd(h, 2.0f * v_dot_h, -v);
        float weight = l.z > 0.0f ? smith_weight2(lambda_v, l, alpha) * (1.0f / LATTICE_POINTS) : 0.0f;
        sum = sum + make_float2(weight * (1.0f - schlick), weight * schlick);
    }
    return sum;
}
#endif
