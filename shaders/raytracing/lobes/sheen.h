// Sheen of fibers that stand on a surface: the microfacet distribution of A. Estevez and C. Kulla (2017), as in
// KHR_materials_sheen, with single scattering. Included by materials/principled.h in scenes with `sheen_color`.
// sheen_table (renderer/raytracing/microfacet.py) tabulates the albedo by the root of the cosine and by roughness.
// Directions v and l are in the frame of the normal (z).
// Sizes and limits from microfacet.py: SHEEN_COSINES, SHEEN_ROUGHNESSES.
#include "raytracing/microfacet.h"

#define MIN_SHEEN_ROUGHNESS 0.07f

// Returns the distribution's parameter of a roughness.
DEVICE float sheen_alpha(float roughness) {
    float r = max_nnan(roughness, MIN_SHEEN_ROUGHNESS);
    return r * r;
}

// Returns the paper's fit of log Lambda: L(x), whose coefficients are interpolated by t = (1 - alpha)^2.
DEVICE float sheen_exponent(float x, float t) {
    float a = fma(25.3245f - 21.5473f, t, 21.5473f), b = fma(3.32435f - 3.82987f, t, 3.82987f);
    float c = fma(0.16801f - 0.19823f, t, 0.19823f), d = fma(-1.27393f + 1.97760f, t, -1.97760f);
    float e = fma(-4.85967f + 4.32054f, t, -4.32054f);
    return a / (1.0f + b * power_of(x, c)) + d * x + e;
}

// Returns Lambda of the shadowing function for a direction's cosine.
DEVICE float sheen_lambda(float cosine, float alpha) {
    float t = (1.0f - alpha) * (1.0f - alpha);
    if (cosine < 0.5f) return exponential_of(sheen_exponent(cosine, t));
    float x = max_nnan(1.0f - cosine, 0.0f);  // rounding may make the cosine greater than 1
    return exponential_of(2.0f * sheen_exponent(0.5f, t) - sheen_exponent(x, t));
}

// Returns the albedo of white sheen for a view direction's cosine: bilinear in the table.
DEVICE float sheen_albedo(float cosine, float roughness) {
    float x = sqrt(clamp(cosine, 0.0f, 1.0f)) * (SHEEN_COSINES - 1);
    float y = clamp(roughness, MIN_SHEEN_ROUGHNESS, 1.0f) * (SHEEN_ROUGHNESSES - 1);
    int i = min((int)x, SHEEN_COSINES - 2), j = min((int)y, SHEEN_ROUGHNESSES - 2);
    float u = x - (float)i, v = y - (float)j;
    int entry = i * SHEEN_ROUGHNESSES + j;
    float low = fma(v, sheen_table[entry + 1] - sheen_table[entry], sheen_table[entry]);
    entry += SHEEN_ROUGHNESSES;
    float high = fma(v, sheen_table[entry + 1] - sheen_table[entry], sheen_table[entry]);
    return fma(u, high - low, low);
}

// Returns the BRDF of white sheen times cos(theta_l).
DEVICE float sheen_f_cos(float roughness, float3 v, float3 l) {
    float alpha = sheen_alpha(roughness);
    float3 h = normalize_fma(v + l);
    float sine = sqrt(max_nnan(fma(h.x, h.x, h.y * h.y), 1e-12f));
    float d = (2.0f + 1.0f / alpha) * power_of(min_nnan(sine, 1.0f), 1.0f / alpha) / (2.0f * PI);
    return d / ((1.0f + sheen_lambda(v.z, alpha) + sheen_lambda(l.z, alpha)) * 4.0f * v.z);
}

// Samples a direction uniformly on the hemisphere (pdf 1 / 2 pi), because the lobe is wide.
DEVICE float3 sample_sheen(float u1, float u2) {
    float sine = sqrt(max_nnan(fma(-u1, u1, 1.0f), 0.0f));
    float2 phi = cos_sin_2pi(u2);
    return make_float3(sine * phi.x, sine * phi.y, u1);
}
