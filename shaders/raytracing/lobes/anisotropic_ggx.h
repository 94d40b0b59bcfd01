// GGX with different alpha along the tangent (x) and the bitangent (y) (E. Heitz 2014); microfacet.h is the isotropic
// case. Used by the lobes of materials/principled.h. Directions are unit, in the local frame of the shading normal (z)
// and the tangents, and point away from the surface: v is the view direction, l the light direction, h the
// micro-normal.
// Sizes and limits from microfacet.py: FIT_HIDDEN_1, FIT_HIDDEN_2, FIT_INPUTS, MIN_ALPHA.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): ANISOTROPY, TRANSMISSION.
#include "raytracing/microfacet.h"

// Returns alpha along the tangent (x) and the bitangent (y).
DEVICE float2 anisotropic_alpha(float roughness, float anisotropy) {  // as KHR_materials_anisotropy
    float alpha = max_nnan(roughness * roughness, MIN_ALPHA);
    return make_float2(fma(1.0f - alpha, anisotropy * anisotropy, alpha), alpha);
}

// Returns Smith's Lambda function for the direction v.
DEVICE float smith_lambda2(float3 v, float2 alpha) {
    float x = alpha.x * v.x, y = alpha.y * v.y;
    return 0.5f * (sqrt(1.0f + fma(x, x, y * y) / max_nnan(v.z * v.z, 1e-12f)) - 1.0f);
}

// Returns the GGX normal distribution D(h).
DEVICE float ggx_d2(float3 h, float2 alpha) {
    float x = h.x / alpha.x, y = h.y / alpha.y, q = fma(x, x, fma(y, y, h.z * h.z));
    return 1.0f / (PI * alpha.x * alpha.y * q * q);
}

#if ANISOTROPY
// The split sum has four parameters, too many for a table: a small neural network approximates it, which
// tests/raytracing/witnesses/anisotropic_fit.py trained. The tables anisotropic_fit_1 to _3, from microfacet.py, hold a
// layer's weights, then its biases. FIT_LAYER is one layer, y = weights * x + biases; FIT_ACTIVATE is the activation
// x / (1 + |x|).
#define FIT_LAYER(inputs, outputs, x, y, weights)                                        \
    for (int j = 0; j < outputs; j++) {                                                  \
        float sum = weights[inputs * outputs + j];                                       \
        for (int i = 0; i < inputs; i++) sum = fma(weights[i * outputs + j], x[i], sum); \
        y[j] = sum;                                                                      \
    }
#define FIT_ACTIVATE(count, x) \
    for (int j = 0; j < count; j++) x[j] = x[j] / (1.0f + fabs(x[j]));

// Returns the split sum (scale, bias) of ggx_split_sum in microfacet.h; rms error 0.1 %.
DEVICE float2 anisotropic_split_sum(float3 v, float2 alpha) {
    float masking = 1.0f / (1.0f + smith_lambda2(v, alpha));
    float x[FIT_INPUTS] = {fma(2.0f, masking, -1.0f), fma(2.0f, v.z, -1.0f), fma(2.0f, sqrt(alpha.x), -1.0f),
                           fma(2.0f, sqrt(alpha.y), -1.0f), fma(2.0f * v.x, v.x, -1.0f)};
    float first[FIT_HIDDEN_1], second[FIT_HIDDEN_2], out[2];
    FIT_LAYER(FIT_INPUTS, FIT_HIDDEN_1, x, first, anisotropic_fit_1)
    FIT_ACTIVATE(FIT_HIDDEN_1, first)
    FIT_LAYER(FIT_HIDDEN_1, FIT_HIDDEN_2, first, second, anisotropic_fit_2)
    FIT_ACTIVATE(FIT_HIDDEN_2, second)
    FIT_LAYER(FIT_HIDDEN_2, 2, second, out, anisotropic_fit_3)
    float albedo = clamp(out[0], 0.0f, 1.0f), bias = clamp(out[1], 0.0f, albedo);
    return make_float2(albedo - bias, bias);
}
#endif

#if TRANSMISSION
// Numerical integration of albedos over the micro-normals visible from v, at the 89 points of a Fibonacci lattice: a
// table would have four dimensions.
#define LATTICE_POINTS 89
#define LATTICE_STEP 55

// Returns the micro-normal of lattice point i.
DEVICE float3 lattice_normal(float3 v, float2 alpha, int i) {
    float u1 = ((float)i + 0.5f) / LATTICE_POINTS,
          u2 = ((float)(i * LATTICE_STEP % LATTICE_POINTS) + 0.5f) / LATTICE_POINTS;
    return sample_vndf(v, alpha, u1, u2);
}

// Returns G2 / G1, the weight of a sample of visible normals; `lambda_v` is smith_lambda2 of v.
DEVICE float smith_weight2(float lambda_v, float3 l, float2 alpha) {
    return (1.0f + lambda_v) / (1.0f + lambda_v + smith_lambda2(l, alpha));
}
#endif
