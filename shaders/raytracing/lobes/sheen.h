// Sheen of fibers that stand on a surface (A. Estevez and C. Kulla 2017, as in KHR_materials_sheen). Single scattering;
// sheen_table of renderer/raytracing/microfacet.py holds its albedo.
#define MIN_SHEEN_ROUGHNESS 0.07f

DEVICE float sheen_alpha(float roughness) {
    float r = max_nnan(roughness, MIN_SHEEN_ROUGHNESS);
    return r * r;
}

// The fitted exponent of the shadowing function.
DEVICE float sheen_exponent(float x, float t) {
    float a = fma(25.3245f - 21.5473f, t, 21.5473f), b = fma(3.32435f - 3.82987f, t, 3.82987f);
    float c = fma(0.16801f - 0.19823f, t, 0.19823f), d = fma(-1.27393f + 1.97760f, t, -1.97760f);
    float e = fma(-4.85967f + 4.32054f, t, -4.32054f);
    return a / (1.0f + b * pow(x, c)) + d * x + e;
}

DEVICE float sheen_lambda(float cosine, float alpha) {
    float t = (1.0f - alpha) * (1.0f - alpha);
    if (cosine < 0.5f) return exp(sheen_exponent(cosine, t));
    float x = max_nnan(1.0f - cosine, 0.0f);  // rounding may make the cosine greater than 1
    return exp(2.0f * sheen_exponent(0.5f, t) - sheen_exponent(x, t));
}

// Albedo of white sheen.
DEVICE float sheen_albedo(float cosine, float roughness) {
    float x = sqrt(clamp(cosine, 0.0f, 1.0f)) * (SHEEN_COSINES - 1);
    float y = clamp(roughness, MIN_SHEEN_ROUGHNESS, 1.0f) * (SHEEN_ROUGHNESSES - 1);
    int i = min((int)x, SHEEN_COSINES - 2), j = min((int)y, SHEEN_ROUGHNESSES - 2);
    float u = x - (float)i, v = y - (float)j;
    int entry = i * SHEEN_ROUGHNESSES + j;
    float near = fma(v, sheen_table[entry + 1] - sheen_table[entry], sheen_table[entry]);
    entry += SHEEN_ROUGHNESSES;
    float far = fma(v, sheen_table[entry + 1] - sheen_table[entry], sheen_table[entry]);
    return fma(u, far - near, near);
}

// White sheen times cos(theta_l).
DEVICE float sheen_f_cos(float roughness, float3 v, float3 l) {
    float alpha = sheen_alpha(roughness);
    float3 h = normalize_fma(v + l);
    float sine = sqrt(max_nnan(fma(h.x, h.x, h.y * h.y), 1e-12f));
    float d = (2.0f + 1.0f / alpha) * pow(min_nnan(sine, 1.0f), 1.0f / alpha) / (2.0f * PI);
    return d / ((1.0f + sheen_lambda(v.z, alpha) + sheen_lambda(l.z, alpha)) * 4.0f * v.z);
}

// Directions are sampled uniformly: the lobe is wide.
DEVICE float3 sample_sheen(float u1, float u2) {
    float sine = sqrt(max_nnan(fma(-u1, u1, 1.0f), 0.0f));
    float2 phi = cos_sin_2pi(u2);
    return make_float3(sine * phi.x, sine * phi.y, u1);
}
