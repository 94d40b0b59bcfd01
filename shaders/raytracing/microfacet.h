// GGX microfacet reflectors for the materials conductor, glass, metallic and principled: visible normals, Smith's
// shadowing, Fresnel terms, and compensation of multiple scattering by albedo tables (E. Turquin 2019): ggx_table and
// glass_table, constant arrays that renderer/raytracing/microfacet.py writes as kernel source. Directions are unit, in
// the local frame of the shading normal (z), and point away from the surface: v is the view direction, l the light
// direction, h the micro-normal; `cosine` without a subscript is v's z. `roughness` is perceptual, alpha its square.
// Compiled for one lane (`real` is float, `mask` bool) and, on CPUs, again for eight (float8, int8;
// raytracing/packets/lanes8.h). Sizes and limits from microfacet.py: GGX_COSINES, GGX_ROUGHNESSES, GLASS_COSINES,
// GLASS_IORS, GLASS_MAX_IOR, GLASS_ROUGHNESSES, MIN_ALPHA. GLASS_TABLE: 1 if the kernel has glass_table.
#include "raytracing/surface.h"
#include "raytracing/frame.h"

// Returns alpha of a roughness.
DEVICE real ggx_alpha(real roughness) { return max_nnan(roughness * roughness, MIN_ALPHA); }

// Samples a micro-normal in proportion to its area visible from v (J. Dupuy and A. Benyoub 2023), with `alpha` along
// the tangent and the bitangent.
DEVICE real3 sample_vndf(real3 v, real2 alpha, real u1, real u2) {
    real3 stretched = normalize_fma(make_real3(alpha.x * v.x, alpha.y * v.y, v.z));
    real height = fma(1.0f - u2, 1.0f + stretched.z, -stretched.z);
    real radius = sqrt(max_nnan(fma(-height, height, (real)(1.0f)), 0.0f));
    real2 phi = cos_sin_2pi(u1);
    real3 h = make_real3(fma(radius, phi.x, stretched.x), fma(radius, phi.y, stretched.y), height + stretched.z);
    return normalize_fma(make_real3(alpha.x * h.x, alpha.y * h.y, max_nnan(h.z, 1e-6f)));
}

// Returns Smith's Lambda function of GGX for a direction's cosine.
DEVICE real smith_lambda(real cosine, real alpha) {
    real c2 = max_nnan(cosine * cosine, 1e-12f);
    return 0.5f * (sqrt(fma(alpha * alpha, max_nnan(1.0f - c2, 0.0f) / c2, (real)(1.0f))) - 1.0f);
}

// Returns G2 / G1 for the cosines of v and l: the weight of a sample of visible normals.
DEVICE real smith_g2_over_g1(real cosine_v, real cosine_l, real alpha) {
    real lambda_v = smith_lambda(cosine_v, alpha);
    return (1.0f + lambda_v) / (1.0f + lambda_v + smith_lambda(cosine_l, alpha));
}

// Returns the GGX normal distribution D(h). D(h) cos(theta_h) is the pdf of micro-normals per solid angle.
DEVICE real ggx_d(real3 h, real alpha) {
    real a2 = alpha * alpha, q = fma(h.z * h.z, a2 - 1.0f, (real)(1.0f));
    return a2 / (PI * q * q);
}

// Returns Fresnel's reflectance for unpolarized light. cosine_i and cosine_t: of the angles of incidence and of
// refraction; eta_i_over_t: index of refraction on the incident side over the index on the other side.
DEVICE real fresnel_dielectric(real cosine_i, real cosine_t, real eta_i_over_t) {
    real r_perp = fma(eta_i_over_t, cosine_i, -cosine_t) / fma(eta_i_over_t, cosine_i, cosine_t);
    real r_parl = fma(eta_i_over_t, cosine_t, -cosine_i) / fma(eta_i_over_t, cosine_t, cosine_i);
    return 0.5f * fma(r_perp, r_perp, r_parl * r_parl);
}

// Returns Schlick's weight (1 - cosine)^5.
DEVICE real schlick_weight(real cosine) {
    real x = clamp(1.0f - cosine, 0.0f, 1.0f), x2 = x * x;
    return x2 * x2 * x;
}

// Returns the fraction, 0 to 1, of the reflected light in mirror-like lobes, for a mixture of `metallic` metal and a
// dielectric over a diffuse lobe, by Schlick's term.
DEVICE real schlick_mirror_fraction(real metallic, real3 normal, real3 ray_direction) {
    return fma(1.0f - metallic, schlick_weight(-dot_fma(normal, ray_direction)), metallic);
}

// Returns the split sum (scale, bias) from ggx_table: the single-scattering albedo of a reflector of normal reflectance
// F0, with Schlick's Fresnel term, is F0 * scale + bias.
DEVICE real2 ggx_split_sum(real cosine, real roughness) {
    real x = clamp(cosine, 0.0f, 1.0f) * (float)(GGX_COSINES - 1);
    real y = clamp(roughness, 0.0f, 1.0f) * (float)(GGX_ROUGHNESSES - 1);
    whole i = min(truncated(x), GGX_COSINES - 2), j = min(truncated(y), GGX_ROUGHNESSES - 2);
    real u = x - real_of(i), v = y - real_of(j);
    real2 sum = make_real2(0.0f, 0.0f);
    for (int k = 0; k < 4; k++) {
        whole entry = 2 * ((i + (k >> 1)) * GGX_ROUGHNESSES + j + (k & 1));
        real weight = ((k >> 1) ? u : 1.0f - u) * ((k & 1) ? v : 1.0f - v);
        sum.x = sum.x + GATHER_FLOATS(ggx_table, entry) * weight;
        sum.y = sum.y + GATHER_FLOATS(ggx_table, entry + 1) * weight;
    }
    return sum;
}

#if LANES == 1 && GLASS_TABLE
// Sets w to the four weights of Catmull-Rom interpolation at x, 0 to count - 1, and returns the index of the first
// weight's entry; the caller clamps indices to the table. Beyond its ends the table is extrapolated as a parabola.
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

// Returns the single-scattering albedo, by reflection and transmission together, of a rough dielectric from
// glass_table. `eta`: index of refraction on the far side over the index on the viewer's side. The table's cosines are
// squares of even steps; its steps of the index are finest near 1, where refraction sets in.
DEVICE float ggx_dielectric_albedo(float cosine, float roughness, float eta) {
    float x = sqrt(clamp(cosine, 0.0f, 1.0f)) * (GLASS_COSINES - 1);
    float z = sqrt(clamp(fabs(logarithm_of(eta)) / logarithm_of(GLASS_MAX_IOR), 0.0f, 1.0f)) * (GLASS_IORS - 1);
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

// The terms of a GGX reflector for v and l. fresnel_ms gives the Fresnel factor by which f_cos is multiplied.
typedef struct {
    real f_cos;  // BRDF times cos(theta_l), for a Fresnel factor of 1
    real pdf;  // density of l per solid angle, if visible normals are sampled
    real schlick;  // (1 - v.h)^5
    real ms_boost;  // ms_boost() of v
} GgxLobe;

// Returns the energy of multiple over single scattering for F0 = 1: (1 - E) / E, where the albedo E is scale + bias.
DEVICE real ms_boost(real2 split_sum) { return 1.0f / max_nnan(split_sum.x + split_sum.y, 0.05f) - 1.0f; }

// Evaluates a GGX reflector. `lambda_v` is smith_lambda and `boost` is ms_boost of v. f_cos, pdf and schlick are 0 if v
// or l is below the surface.
DEVICE GgxLobe eval_ggx_lobe(real alpha, real lambda_v, real boost, real3 v, real3 l) {
    mask above = (v.z > 0.0f) & (l.z > 0.0f);
    real3 h = normalize_fma(add3(v, l));
    real d = ggx_d(h, alpha) / (4.0f * v.z);
    GgxLobe lobe;
    lobe.f_cos = above ? d / (1.0f + lambda_v + smith_lambda(l.z, alpha)) : 0.0f;
    lobe.pdf = above ? d / (1.0f + lambda_v) : 0.0f;
    lobe.schlick = above ? schlick_weight(dot_fma(v, h)) : 0.0f;
    lobe.ms_boost = boost;
    return lobe;
}

#if LANES == 1
// Evaluates a GGX reflector of this roughness; all terms are 0 if v or l is below the surface.
DEVICE GgxLobe eval_ggx(float roughness, float3 v, float3 l) {
    GgxLobe lobe = {0.0f, 0.0f, 0.0f, 0.0f};
    if (!(v.z > 0.0f) || !(l.z > 0.0f)) return lobe;
    float alpha = ggx_alpha(roughness);
    return eval_ggx_lobe(alpha, smith_lambda(v.z, alpha), ms_boost(ggx_split_sum(v.z, roughness)), v, l);
}
#endif

// Samples l: v reflected at a sampled visible micro-normal. l may lie below the surface.
DEVICE real3 sample_ggx(real roughness, real3 v, real u1, real u2) {
    real alpha = ggx_alpha(roughness);
    real3 h = sample_vndf(v, make_real2(alpha, alpha), u1, u2);
    return madd(h, 2.0f * dot_fma(v, h), negate3(v));
}

// Fills *out for the sampled direction l of the frame f. `value` holds the BSDF times cos(theta_l) and, in w, the pdf
// per solid angle. Returns false if the pdf is 0.
DEVICE mask set_reflection(const Frame f, real3 l, real4 value, BsdfSample *out) {
    out->transmits = false;
    out->pdf = value.w > 0.0f ? value.w : 0.0f;
    out->direction = normalize_fma(from_local(f, l));
    out->weight = scale3(xyz(value), 1.0f / value.w);
    return value.w > 0.0f;
}

// Returns the ratio of all scattering to single scattering for F0; `boost` is that ratio less 1 for F0 = 1. With
// MS_SATURATION 0 this is the factor of E. Turquin 2019: up to 14 % too bright for colored metals of roughness 1,
// because light that bounces more often is tinted more often. With 1 it is a geometric series: up to 16 % too dark. 0.3
// stays within 5 % of random walks on the microsurface (E. Heitz et al. 2016;
// tests/raytracing/witnesses/smith_walk.py).
#define MS_SATURATION 0.3f
DEVICE real ms_factor(real f0, real boost) { return 1.0f + f0 * boost / (1.0f + MS_SATURATION * boost * (1.0f - f0)); }
DEVICE real3 ms_factor3(real3 f0, real boost) {
    return make_real3(ms_factor(f0.x, boost), ms_factor(f0.y, boost), ms_factor(f0.z, boost));
}

// Returns Schlick's Fresnel term times the factor of multiple scattering; `schlick` is Schlick's weight, `boost` as for
// ms_factor.
DEVICE real fresnel_ms(real f0, real schlick, real boost) {
    return (f0 + (1.0f - f0) * schlick) * ms_factor(f0, boost);
}
DEVICE real3 fresnel_ms3(real3 f0, real schlick, real boost) {
    return make_real3(fresnel_ms(f0.x, schlick, boost), fresnel_ms(f0.y, schlick, boost),
                      fresnel_ms(f0.z, schlick, boost));
}

// Returns the directional albedo of a reflector, multiple scattering included.
DEVICE real ggx_albedo(real f0, real2 split_sum) {
    return (f0 * split_sum.x + split_sum.y) * ms_factor(f0, ms_boost(split_sum));
}
DEVICE real3 ggx_albedo3(real3 f0, real2 split_sum) {
    return make_real3(ggx_albedo(f0.x, split_sum), ggx_albedo(f0.y, split_sum), ggx_albedo(f0.z, split_sum));
}
