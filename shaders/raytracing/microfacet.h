// GGX surfaces: visible normals, shadowing, and the share that single scattering keeps (tables by renderer/raytracing/microfacet.py).
// Directions are in the frame of the normal, z along it, pointing away from the surface.

typedef struct {
    float3 normal, first, second;
} Frame;

DEVICE Frame frame_about(float3 normal) {
    Frame f;
    f.normal = normal;
    f.first = local_to_world(normal, 1.0f, 0.0f, 0.0f);
    f.second = local_to_world(normal, 0.0f, 1.0f, 0.0f);
    return f;
}

DEVICE float3 into_frame(const Frame f, float3 v) {
    return make_float3(dot_fma(v, f.first), dot_fma(v, f.second), dot_fma(v, f.normal));
}

DEVICE float3 out_of_frame(const Frame f, float3 v) {
    return madd(f.normal, v.z, madd(f.second, v.y, f.first * v.x));
}

DEVICE float alpha_of(float roughness) { return larger(roughness * roughness, LEAST_ALPHA); }

// A micro-normal that the viewer at v sees, by its density (J. Dupuy and A. Benyoub 2023).
DEVICE float3 visible_normal(float3 v, float alpha, float first, float second) {
    float3 stretched = normalize_fma(make_float3(alpha * v.x, alpha * v.y, v.z));
    float height = fma(1.0f - second, 1.0f + stretched.z, -stretched.z);
    float radius = sqrt(larger(fma(-height, height, 1.0f), 0.0f));
    float2 around = cos_sin_2pi(first);
    float3 h = make_float3(fma(radius, around.x, stretched.x), fma(radius, around.y, stretched.y), height + stretched.z);
    return normalize_fma(make_float3(alpha * h.x, alpha * h.y, larger(h.z, 1e-6f)));
}

// Smith's auxiliary function of GGX.
DEVICE float smith_lambda(float cosine, float alpha) {
    float c2 = larger(cosine * cosine, 1e-12f);
    return 0.5f * (sqrt(fma(alpha * alpha, larger(1.0f - c2, 0.0f) / c2, 1.0f)) - 1.0f);
}

// The share of what is seen from `seen` that leaves unshadowed towards `out` (both cosines): G2 / G1.
DEVICE float unshadowed(float seen, float out, float alpha) {
    float own = smith_lambda(seen, alpha);
    return (1.0f + own) / (1.0f + own + smith_lambda(out, alpha));
}

// The density per solid angle of micro-normals, times the cosine of h.
DEVICE float ggx_density(float3 h, float alpha) {
    float a2 = alpha * alpha, q = fma(h.z * h.z, a2 - 1.0f, 1.0f);
    return a2 / (PI * q * q);
}

DEVICE float schlick_weight(float cosine) {
    float x = clamp(1.0f - cosine, 0.0f, 1.0f), x2 = x * x;
    return x2 * x2 * x;
}

// (scale, bias): a reflector of Schlick's F0 keeps F0 scale + bias of the light when only single scattering counts.
DEVICE float2 kept_by_reflector(float cosine, float roughness) {
    float x = clamp(cosine, 0.0f, 1.0f) * (COSINES - 1), y = clamp(roughness, 0.0f, 1.0f) * (ROUGHNESSES - 1);
    int i = min((int)x, COSINES - 2), j = min((int)y, ROUGHNESSES - 2);
    float u = x - (float)i, v = y - (float)j;
    float2 kept = make_float2(0.0f, 0.0f);
    for (int k = 0; k < 4; k++) {
        int entry = (i + (k >> 1)) * ROUGHNESSES + j + (k & 1);
        float weight = ((k >> 1) ? u : 1.0f - u) * ((k & 1) ? v : 1.0f - v);
        kept = kept + make_float2(reflector_table[2 * entry], reflector_table[2 * entry + 1]) * weight;
    }
    return kept;
}

// What a rough dielectric of relative index `ratio` (behind over before) reflects and lets through by single scattering.
DEVICE float kept_by_dielectric(float cosine, float roughness, float ratio) {
    float x = clamp(cosine, 0.0f, 1.0f) * (STEPS - 1), y = clamp(roughness, 0.0f, 1.0f) * (COARSE - 1);
    float z = clamp(0.5f + 0.5f * log(ratio) / log(LARGEST_INDEX), 0.0f, 1.0f) * (INDICES - 1);
    int i = min((int)x, STEPS - 2), j = min((int)y, COARSE - 2), l = min((int)z, INDICES - 2);
    float u = x - (float)i, v = y - (float)j, w = z - (float)l, kept = 0.0f;
    for (int k = 0; k < 8; k++) {
        int entry = ((l + (k >> 2)) * STEPS + i + ((k >> 1) & 1)) * COARSE + j + (k & 1);
        float weight = ((k >> 2) ? w : 1.0f - w) * (((k >> 1) & 1) ? u : 1.0f - u) * ((k & 1) ? v : 1.0f - v);
        kept = fma(dielectric_table[entry], weight, kept);
    }
    return kept;
}

// What a reflector does for directions v and l of the upper half, but for its Fresnel term.
typedef struct {
    float value;    // times the outgoing cosine
    float density;  // of l when micro-normals are picked as they are seen
    float weight;   // Schlick's, of white in the Fresnel term
    float more;     // multiple scattering over single, for F0 = 1
} Reflection;

DEVICE float multiple_over_single(float cosine, float roughness) {
    float2 kept = kept_by_reflector(cosine, roughness);
    return 1.0f / larger(kept.x + kept.y, 0.05f) - 1.0f;
}

DEVICE Reflection reflection_of(float roughness, float3 v, float3 l) {
    Reflection r = {0.0f, 0.0f, 0.0f, 0.0f};
    if (!(v.z > 0.0f) || !(l.z > 0.0f)) return r;
    float alpha = alpha_of(roughness), own = smith_lambda(v.z, alpha);
    float3 h = normalize_fma(v + l);
    float shape = ggx_density(h, alpha) / (4.0f * v.z);
    r.value = shape / (1.0f + own + smith_lambda(l.z, alpha));
    r.density = shape / (1.0f + own);
    r.weight = schlick_weight(dot_fma(v, h));
    r.more = multiple_over_single(v.z, roughness);
    return r;
}

// Schlick's Fresnel term with the light that is scattered more than once given back (E. Turquin 2019).
DEVICE float3 compensated_fresnel(float3 f0, float weight, float more) {
    float3 one = make_float3(1.0f, 1.0f, 1.0f);
    return (f0 + (one - f0) * weight) * (one + f0 * more);
}

// What a compensated reflector sends back in all directions together.
DEVICE float3 albedo_of_reflector(float3 f0, float roughness, float cosine) {
    float2 kept = kept_by_reflector(cosine, roughness);
    float3 one = make_float3(1.0f, 1.0f, 1.0f);
    return (f0 * kept.x + one * kept.y) * (one + f0 * multiple_over_single(cosine, roughness));
}
