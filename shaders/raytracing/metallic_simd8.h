// materials/metallic.h for eight lanes, with the same roundings.

// What the surface does for the ray's direction v, which is in the frame of the normal.
typedef struct {
    Float3x8 tangent, bitangent, v;
    Float3x8 color, body;  // F0 of the metal; albedo of the diffuse body
    float8 metallic, alpha, lambda_v, boost, p_specular;
} Metallic8;

DEVICE float8 smith_lambda8(float8 cosine, float8 alpha) {
    float8 c2 = max_nnan(cosine * cosine, (float8)(1e-12f)), zero = (float8)(0.0f), one = (float8)(1.0f);
    return 0.5f * (sqrt(fma(alpha * alpha, max_nnan(1.0f - c2, zero) / c2, one)) - 1.0f);
}

DEVICE void ggx_split_sum8(float8 cosine, float8 roughness, float8 *scale, float8 *bias) {
    float8 x = clamp(cosine, (float8)(0.0f), (float8)(1.0f)) * (float)(GGX_COSINES - 1);
    float8 y = clamp(roughness, (float8)(0.0f), (float8)(1.0f)) * (float)(GGX_ROUGHNESSES - 1);
    int8 i = min(convert_int8(x), GGX_COSINES - 2), j = min(convert_int8(y), GGX_ROUGHNESSES - 2);
    float8 u = x - convert_float8(i), v = y - convert_float8(j);
    *scale = *bias = (float8)(0.0f);
    for (int k = 0; k < 4; k++) {
        int8 entry = 2 * ((i + (k >> 1)) * GGX_ROUGHNESSES + j + (k & 1));
        float8 weight = ((k >> 1) ? u : 1.0f - u) * ((k & 1) ? v : 1.0f - v);
        *scale = *scale + GATHER_FLOATS8(ggx_table, entry) * weight;
        *bias = *bias + GATHER_FLOATS8(ggx_table, entry + 1) * weight;
    }
}

DEVICE float8 ms_factor_of8(float8 f0, float8 boost) {
    return 1.0f + f0 * boost / (1.0f + MS_SATURATION * boost * (1.0f - f0));
}

DEVICE float8 sum_of8(Float3x8 a) { return a.x + a.y + a.z; }

DEVICE float8 ggx_albedo8(float8 f0, float8 scale, float8 bias, float8 boost) {
    return (f0 * scale + bias) * ms_factor_of8(f0, boost);
}

DEVICE Metallic8 make_metallic8(Float3x8 normal, Float3x8 ray_direction, Float3x8 color, float8 roughness,
                                float8 metallic) {
    Metallic8 k;
    float8 zero = (float8)(0.0f), one = (float8)(1.0f), scale, bias;
    k.tangent = local_to_world8(normal, one, zero, zero);
    k.bitangent = local_to_world8(normal, zero, one, zero);
    Float3x8 back = float3x8(-ray_direction.x, -ray_direction.y, -ray_direction.z);
    k.v = float3x8(dot8(back, k.tangent), dot8(back, k.bitangent), dot8(back, normal));
    k.color = color;
    k.metallic = metallic;
    k.alpha = max_nnan(roughness * roughness, (float8)(MIN_ALPHA));
    k.lambda_v = smith_lambda8(k.v.z, k.alpha);
    ggx_split_sum8(k.v.z, roughness, &scale, &bias);
    k.boost = 1.0f / max_nnan(scale + bias, (float8)(0.05f)) - 1.0f;
    float8 dielectric = ggx_albedo8((float8)(0.04f), scale, bias, k.boost), left = 1.0f - dielectric;
    k.body = scale8(scale8(color, left), 1.0f - metallic);
    float8 f = dielectric * (1.0f - metallic);
    float8 a = f + ggx_albedo8(color.x, scale, bias, k.boost) * metallic;
    a = a + (f + ggx_albedo8(color.y, scale, bias, k.boost) * metallic);
    a = a + (f + ggx_albedo8(color.z, scale, bias, k.boost) * metallic);
    float8 b = sum_of8(k.body);
    k.p_specular = b > 0.0f ? clamp(a / (a + b), (float8)(0.1f), (float8)(0.9f)) : (float8)(1.0f);
    return k;
}

DEVICE float8 fresnel_ms8(float8 f0, float8 schlick, float8 boost) {
    return (f0 + (1.0f - f0) * schlick) * ms_factor_of8(f0, boost);
}

// metallic_eval_local: BSDF times cosine, and the pdf; 0 below the surface.
DEVICE Float3x8 metallic_eval8(const Metallic8 *k, Float3x8 l, float8 *pdf) {
    float8 zero = (float8)(0.0f), one = (float8)(1.0f);
    int8 above = (k->v.z > 0.0f) & (l.z > 0.0f);
    Float3x8 h = normalize8(add8(k->v, l));
    float8 a2 = k->alpha * k->alpha, q = fma(h.z * h.z, a2 - 1.0f, one), d = a2 / (PI * q * q) / (4.0f * k->v.z);
    float8 f_cos = above ? d / (1.0f + k->lambda_v + smith_lambda8(l.z, k->alpha)) : zero;
    float8 specular_pdf = above ? d / (1.0f + k->lambda_v) : zero;
    float8 x = clamp(1.0f - dot8(k->v, h), zero, one), x2 = x * x, schlick = above ? x2 * x2 * x : zero;
    float8 boost = above ? k->boost : zero, diffuse_pdf = max_nnan(l.z, zero) * (1.0f / PI);
    float8 dielectric = fresnel_ms8((float8)(0.04f), schlick, boost) * (1.0f - k->metallic);
    Float3x8 value;
    value.x = (dielectric + fresnel_ms8(k->color.x, schlick, boost) * k->metallic) * f_cos + k->body.x * diffuse_pdf;
    value.y = (dielectric + fresnel_ms8(k->color.y, schlick, boost) * k->metallic) * f_cos + k->body.y * diffuse_pdf;
    value.z = (dielectric + fresnel_ms8(k->color.z, schlick, boost) * k->metallic) * f_cos + k->body.z * diffuse_pdf;
    *pdf = fma(k->p_specular, specular_pdf, (1.0f - k->p_specular) * diffuse_pdf);
    return value;
}

// metallic_eval_pdf; the value counts where the pdf is above 0.
DEVICE Float3x8 metallic_eval_pdf8(const Metallic8 *k, Float3x8 normal, Float3x8 direction, float8 *pdf) {
    Float3x8 l = float3x8(dot8(direction, k->tangent), dot8(direction, k->bitangent), dot8(direction, normal));
    Float3x8 value = metallic_eval8(k, l, pdf);
    int8 above = (k->v.z > 0.0f) & (l.z > 0.0f);
    *pdf = above ? *pdf : (float8)(0.0f);
    return value;
}

DEVICE Float3x8 sample_ggx8(const Metallic8 *k, float8 u1, float8 u2) {
    Float3x8 v = k->v, stretched = normalize8(float3x8(k->alpha * v.x, k->alpha * v.y, v.z));
    float8 one = (float8)(1.0f), cosine, sine, height = fma(1.0f - u2, 1.0f + stretched.z, -stretched.z);
    float8 radius = sqrt(max_nnan(fma(-height, height, one), (float8)(0.0f)));
    cos_sin_2pi8(u1, &cosine, &sine);
    Float3x8 h = float3x8(fma(radius, cosine, stretched.x), fma(radius, sine, stretched.y), height + stretched.z);
    h = normalize8(float3x8(k->alpha * h.x, k->alpha * h.y, max_nnan(h.z, (float8)(1e-6f))));
    Float3x8 back = float3x8(-v.x, -v.y, -v.z);
    return madd8(h, 2.0f * dot8(v, h), back);
}

// metallic_sample, where `diffuse_direction` is the sample of the diffuse body. Returns the weight; *pdf is 0 or less
// where the sample is lost.
DEVICE Float3x8 metallic_sample8(const Metallic8 *k, Float3x8 normal, Float3x8 diffuse_direction, float8 u1, float8 u2,
                                 float8 u3, Float3x8 *direction, float8 *pdf) {
    Float3x8 d = diffuse_direction;
    Float3x8 body = float3x8(dot8(d, k->tangent), dot8(d, k->bitangent), dot8(d, normal));
    Float3x8 l = select8(u3 < k->p_specular, sample_ggx8(k, u1, u2), body);
    Float3x8 value = metallic_eval8(k, l, pdf);
    *direction = normalize8(madd8(normal, l.z, madd8(k->bitangent, l.y, scale8(k->tangent, l.x))));
    return scale8(value, 1.0f / *pdf);
}
