// GGX surfaces: visible normals, Smith's shadowing, and multiple-scattering compensation by the albedo tables of
// renderer/raytracing/microfacet.py. Directions are in the local frame of the normal (z), pointing away from the
// surface; v is the view direction, l the light direction, h the micro-normal.

typedef struct {
    float3 normal, tangent, bitangent;
} Frame;

DEVICE Frame make_frame(float3 normal) {
    Frame f = {normal, local_to_world(normal, 1.0f, 0.0f, 0.0f), local_to_world(normal, 0.0f, 1.0f, 0.0f)};
    return f;
}

DEVICE float3 to_local(const Frame f, float3 v) {
    return make_float3(dot_fma(v, f.tangent), dot_fma(v, f.bitangent), dot_fma(v, f.normal));
}

DEVICE float3 from_local(const Frame f, float3 v) {
    return madd(f.normal, v.z, madd(f.bitangent, v.y, f.tangent * v.x));
}

DEVICE float alpha_of(float roughness) { return max_nnan(roughness * roughness, MIN_ALPHA); }

// A micro-normal visible from v, sampled with its pdf (J. Dupuy and A. Benyoub 2023).
DEVICE float3 sample_vndf(float3 v, float alpha, float u1, float u2) {
    float3 stretched = normalize_fma(make_float3(alpha * v.x, alpha * v.y, v.z));
    float height = fma(1.0f - u2, 1.0f + stretched.z, -stretched.z);
    float radius = sqrt(max_nnan(fma(-height, height, 1.0f), 0.0f));
    float2 phi = cos_sin_2pi(u1);
    float3 h = make_float3(fma(radius, phi.x, stretched.x), fma(radius, phi.y, stretched.y), height + stretched.z);
    return normalize_fma(make_float3(alpha * h.x, alpha * h.y, max_nnan(h.z, 1e-6f)));
}

// Smith's Lambda function of GGX.
DEVICE float smith_lambda(float cosine, float alpha) {
    float c2 = max_nnan(cosine * cosine, 1e-12f);
    return 0.5f * (sqrt(fma(alpha * alpha, max_nnan(1.0f - c2, 0.0f) / c2, 1.0f)) - 1.0f);
}

// G2 / G1 for the cosines of v and l: the weight of a sample of visible normals.
DEVICE float smith_g2_over_g1(float cosine_v, float cosine_l, float alpha) {
    float lambda_v = smith_lambda(cosine_v, alpha);
    return (1.0f + lambda_v) / (1.0f + lambda_v + smith_lambda(cosine_l, alpha));
}

// GGX normal distribution D(h). D(h) cos(theta_h) is the pdf of micro-normals per solid angle.
DEVICE float ggx_d(float3 h, float alpha) {
    float a2 = alpha * alpha, q = fma(h.z * h.z, a2 - 1.0f, 1.0f);
    return a2 / (PI * q * q);
}

// Fresnel's equations for unpolarized light; eta_i_over_t is the index before the surface over that behind it.
DEVICE float fresnel_dielectric(float cosine_i, float cosine_t, float eta_i_over_t) {
    float r_perp = fma(eta_i_over_t, cosine_i, -cosine_t) / fma(eta_i_over_t, cosine_i, cosine_t);
    float r_parl = fma(eta_i_over_t, cosine_t, -cosine_i) / fma(eta_i_over_t, cosine_t, cosine_i);
    return 0.5f * fma(r_perp, r_perp, r_parl * r_parl);
}

DEVICE float schlick_weight(float cosine) {
    float x = clamp(1.0f - cosine, 0.0f, 1.0f), x2 = x * x;
    return x2 * x2 * x;
}

// Split sum (scale, bias): the single-scattering albedo of a reflector with Schlick's F0 is F0 scale + bias.
DEVICE float2 ggx_split_sum(float cosine, float roughness) {
    float x = clamp(cosine, 0.0f, 1.0f) * (GGX_COSINES - 1), y = clamp(roughness, 0.0f, 1.0f) * (GGX_ROUGHNESSES - 1);
    int i = min((int)x, GGX_COSINES - 2), j = min((int)y, GGX_ROUGHNESSES - 2);
    float u = x - (float)i, v = y - (float)j;
    float2 sum = make_float2(0.0f, 0.0f);
    for (int k = 0; k < 4; k++) {
        int entry = (i + (k >> 1)) * GGX_ROUGHNESSES + j + (k & 1);
        float weight = ((k >> 1) ? u : 1.0f - u) * ((k & 1) ? v : 1.0f - v);
        sum = sum + make_float2(ggx_table[2 * entry], ggx_table[2 * entry + 1]) * weight;
    }
    return sum;
}

#if GLASS || TRANSMISSION
// Weights of Catmull and Rom's cubic at x, 0 to count - 1, for the entries from the returned index on, clamped to the
// table. At its ends the table continues as a parabola.
DEVICE int cubic_weights(float x, int count, float *w) {
    int i = min((int)x, count - 2);
    float f = x - (float)i;
    w[0] = f * (f * (1.0f - 0.5f * f) - 0.5f);
    w[1] = 1.0f + f * f * (1.5f * f - 2.5f);
    w[2] = f * (f * (2.0f - 1.5f * f) + 0.5f);
    w[3] = f * f * (0.5f * f - 0.5f);
    if (i == 0) {
        w[1] += 3.0f * w[0];
        w[2] -= 3.0f * w[0];
        w[3] += w[0];
        w[0] = 0.0f;
    }
    if (i == count - 2) {
        w[2] += 3.0f * w[3];
        w[1] -= 3.0f * w[3];
        w[0] += w[3];
        w[3] = 0.0f;
    }
    return i - 1;
}

// Single-scattering albedo, reflection and transmission together, of a rough dielectric; eta is the index behind over
// before. The table's cosines are squares of even steps; its indices are finest near 1, where refraction begins to
// bend.
DEVICE float ggx_dielectric_albedo(float cosine, float roughness, float eta) {
    float x = sqrt(clamp(cosine, 0.0f, 1.0f)) * (GLASS_COSINES - 1);
    float z = sqrt(clamp(fabs(log(eta)) / log(GLASS_MAX_IOR), 0.0f, 1.0f)) * (GLASS_IORS - 1);
    float by_ior[4], by_roughness[4], albedo = 0.0f;
    int first_ior = cubic_weights(z, GLASS_IORS, by_ior), i = min((int)x, GLASS_COSINES - 2);
    int first = cubic_weights(clamp(roughness, 0.0f, 1.0f) * (GLASS_ROUGHNESSES - 1), GLASS_ROUGHNESSES, by_roughness);
    float u = x - (float)i;
    for (int l = 0; l < 4; l++) {
        int ior = clamp(first_ior + l, 0, GLASS_IORS - 1) + (eta < 1.0f ? GLASS_IORS : 0);
        int row = (ior * GLASS_COSINES + i) * GLASS_ROUGHNESSES;
        for (int k = 0; k < 4; k++) {
            int entry = row + clamp(first + k, 0, GLASS_ROUGHNESSES - 1);
            float at_cosine = fma(u, glass_table[entry + GLASS_ROUGHNESSES] - glass_table[entry], glass_table[entry]);
            albedo = fma(by_ior[l] * by_roughness[k], at_cosine, albedo);
        }
    }
    return albedo;
}
#endif

// A GGX reflector for v and l, without its Fresnel term.
typedef struct {
    float f_cos;  // BRDF times cos(theta_l)
    float pdf;  // of l when visible normals are sampled
    float schlick;  // Schlick's weight of white in the Fresnel term
    float ms_boost;
} GgxLobe;

// Energy of multiple over single scattering for F0 = 1: (1 - E) / E.
DEVICE float ms_boost(float cosine, float roughness) {
    float2 sum = ggx_split_sum(cosine, roughness);
    return 1.0f / max_nnan(sum.x + sum.y, 0.05f) - 1.0f;
}

DEVICE GgxLobe eval_ggx(float roughness, float3 v, float3 l) {
    GgxLobe lobe = {0.0f, 0.0f, 0.0f, 0.0f};
    if (!(v.z > 0.0f) || !(l.z > 0.0f)) return lobe;
    float alpha = alpha_of(roughness), lambda_v = smith_lambda(v.z, alpha);
    float3 h = normalize_fma(v + l);
    float d = ggx_d(h, alpha) / (4.0f * v.z);
    lobe.f_cos = d / (1.0f + lambda_v + smith_lambda(l.z, alpha));
    lobe.pdf = d / (1.0f + lambda_v);
    lobe.schlick = schlick_weight(dot_fma(v, h));
    lobe.ms_boost = ms_boost(v.z, roughness);
    return lobe;
}

// v reflected at a micro-normal visible from it.
DEVICE float3 sample_ggx(float roughness, float3 v, float u1, float u2) {
    float3 h = sample_vndf(v, alpha_of(roughness), u1, u2);
    return madd(h, 2.0f * dot_fma(v, h), -v);
}

// Ends the sample of a reflector: direction l, where `value` is the BSDF times cos(theta_l), and the pdf. False where
// the pdf is 0.
DEVICE bool set_reflection(const Frame f, float3 l, float4 value, BsdfSample *out) {
    out->transmits = false;
    out->pdf = value.w > 0.0f ? value.w : 0.0f;
    out->direction = normalize_fma(from_local(f, l));
    out->weight = xyz(value) * (1.0f / value.w);
    return value.w > 0.0f;
}

// All scattering over single scattering for F0, where `boost` is that of white less 1. With MS_SATURATION 0 this is the
// factor of E. Turquin 2019, up to 14 % too bright for colored metals of roughness 1, because light that bounces more
// often is colored more often; 1 is a geometric series, up to 16 % too dark. 0.3 keeps within 5 % of random walks on
// the microsurface (E. Heitz et al. 2016; tests/raytracing/smith_walk.py).
#define MS_SATURATION 0.3f
DEVICE float ms_factor_of(float f0, float boost) {
    return 1.0f + f0 * boost / (1.0f + MS_SATURATION * boost * (1.0f - f0));
}
DEVICE float3 ms_factor(float3 f0, float boost) {
    return make_float3(ms_factor_of(f0.x, boost), ms_factor_of(f0.y, boost), ms_factor_of(f0.z, boost));
}

// Schlick's Fresnel term with multiple-scattering compensation.
DEVICE float3 fresnel_ms(float3 f0, float schlick, float boost) {
    return (f0 + (splat3(1.0f) - f0) * schlick) * ms_factor(f0, boost);
}

// Directional albedo of a reflector with compensation.
DEVICE float3 ggx_albedo(float3 f0, float roughness, float cosine) {
    float2 sum = ggx_split_sum(cosine, roughness);
    return (f0 * sum.x + splat3(sum.y)) * ms_factor(f0, ms_boost(cosine, roughness));
}
