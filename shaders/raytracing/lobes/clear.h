// The transmissive lobe of the principled material (`clear` in Lobes): a rough dielectric (B. Walter et al. 2007), or a
// thin wall, which transmits its reflection lobe mirrored to the other side (KHR_materials_transmission). Included by
// materials/principled.h in scenes with transmission. Directions are unit, in the local frame k.frame, and point away
// from the surface: l is the light direction, k.v the view direction.
// Sizes and limits from microfacet.py: MIN_ALPHA.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): ANISOTROPY, DISPERSION, IRIDESCENCE, WHITTED.
#include "raytracing/lobes/anisotropic_ggx.h"
#include "raytracing/lobes/lobes.h"

// True if reflection and transmission are delta lobes. Where the index of refraction is 1, light passes straight,
// whatever the micro-normals.
DEVICE bool clear_is_smooth(const Lobes k) {
    return WHITTED || !(k.thin || k.refracts) || !(max_nnan(k.alpha.x, k.alpha.y) > MIN_ALPHA);
}

// Returns the reflectance at a micro-normal whose cosine with the view direction is `v_dot_h`. *cosine_t becomes the
// cosine of the refracted direction, 0 for total reflection.
DEVICE float3 clear_fresnel(const Material m, const Surface s, const Lobes k, float v_dot_h, float *cosine_t) {
    float sine2_t = k.eta * k.eta * fma(-v_dot_h, v_dot_h, 1.0f);
    *cosine_t = sqrt(max_nnan(1.0f - sine2_t, 0.0f));
    if (sine2_t >= 1.0f) return splat3(1.0f);
    if (IRIDESCENCE && m.iridescence > 0.0f && (s.front_face || k.thin))
        return min3(madd(splat3(m.specular) - k.dielectric_f0, schlick_weight(v_dot_h), k.dielectric_f0), splat3(1.0f));
    float3 tint = s.front_face || k.thin ? xyz(m.specular_color) * m.specular : splat3(m.specular);
    return min3(tint * fresnel_dielectric(v_dot_h, *cosine_t, k.eta), splat3(1.0f));
}

// Returns the single-scattering albedo, as ggx_dielectric_albedo of microfacet.h, by integration for surfaces outside
// that table: anisotropic ones, and ones whose reflectance is not Fresnel's.
DEVICE float lattice_albedo(const Material m, const Surface s, const Lobes k) {
    float sum = 0.0f;
    NO_UNROLL
    for (int i = 0; i < LATTICE_POINTS; i++) {
        float3 h = lattice_normal(k.v, k.alpha, i);
        float v_dot_h = clamp(dot_fma(k.v, h), 0.0f, 1.0f), cosine_t;
        float reflectance = largest_of3(clear_fresnel(m, s, k, v_dot_h, &cosine_t));
        float3 reflected = madd(h, 2.0f * v_dot_h, -k.v),
               refracted = madd(h, fma(k.eta, v_dot_h, -cosine_t), k.v * -k.eta);
        float lambda_v = smith_lambda2(k.v, k.alpha);
        if (reflected.z > 0.0f) sum = fma(reflectance, smith_weight2(lambda_v, reflected, k.alpha), sum);
        if (refracted.z < 0.0f) sum = fma(1.0f - reflectance, smith_weight2(lambda_v, refracted, k.alpha), sum);
    }
    return sum * (1.0f / LATTICE_POINTS);
}

// Returns the albedo of single scattering, by reflection and transmission together; at least 0.05.
DEVICE float clear_single_scattering(const Material m, const Surface s, const Lobes k) {
    if (k.thin) return max_nnan(k.sum.x + k.sum.y, 0.05f);  // F0 = 1: its two lobes mirror each other
    float3 tint = xyz(m.specular_color);
    bool in_table = m.specular == 1.0f && tint.x == 1.0f && tint.y == 1.0f && tint.z == 1.0f;
    in_table = in_table && !(ANISOTROPY && m.anisotropy > 0.0f) && !(IRIDESCENCE && m.iridescence > 0.0f);
    float albedo = in_table ? ggx_dielectric_albedo(k.v.z, m.roughness, 1.0f / k.eta) : lattice_albedo(m, s, k);
    return max_nnan(albedo, 0.05f);
}

// Returns the weight of a sample of visible normals: G2 / G1 over the albedo of single scattering, which compensates
// multiple scattering.
DEVICE float clear_weight(const Lobes k, float3 l) {
    return smith_weight2(smith_lambda2(k.v, k.alpha), l, k.alpha) / k.clear_albedo;
}

// Returns the BSDF of a rough surface times |cos(theta_l)|, and in w the pdf of l per solid angle times the probability
// of the lobe.
DEVICE float4 clear_eval(const Material m, const Surface s, const Lobes k, float3 l) {
    float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    bool reflects = l.z > 0.0f, refracts = k.refracts && !reflects;
    float3 mirrored = make_float3(l.x, l.y, fabs(l.z)), h = refracts ? -(k.v * k.eta + l) : k.v + mirrored;
    float size2 = dot_fma(h, h), cosine_t;
    if (!(size2 > 1e-12f)) return zero;
    h = h * ((h.z < 0.0f ? -1.0f : 1.0f) / sqrt(size2));
    float v_dot_h = dot_fma(k.v, h), l_dot_h = dot_fma(refracts ? l : mirrored, h);
    if (!(v_dot_h > 0.0f) || (refracts ? !(l_dot_h < 0.0f) : !(l_dot_h > 0.0f))) return zero;
    float3 fresnel = clear_fresnel(m, s, k, v_dot_h, &cosine_t);
    float reflectance = largest_of3(fresnel), jacobian = fma(k.eta, v_dot_h, l_dot_h);
    float pdf = ggx_d2(h, k.alpha) * v_dot_h / (k.v.z * (1.0f + smith_lambda2(k.v, k.alpha)));
    pdf *= refracts ? -l_dot_h / (jacobian * jacobian) : 0.25f / v_dot_h;
    float3 color = reflects ? fresnel : base_color(m) * (1.0f - reflectance);
    if (DISPERSION && !reflects) color = color * s.spectral;
    pdf = pdf > 0.0f ? pdf : 0.0f;
    return with_w(color * (k.clear * clear_weight(k, l) * pdf),
                  k.p_clear * (reflects ? reflectance : 1.0f - reflectance) * pdf);
}

// Samples l on a rough surface: a micro-normal by (u1, u2), then reflection or transmission by u3. Returns false if l
// is on the wrong side of the surface.
DEVICE bool clear_sample(const Material m, const Surface s, const Lobes k, float u1, float u2, float u3, float3 *l) {
    float cosine_t;
    float3 h = sample_vndf(k.v, k.alpha, u1, u2);
    float v_dot_h = clamp(dot_fma(k.v, h), 0.0f, 1.0f);
    bool reflects = u3 < largest_of3(clear_fresnel(m, s, k, v_dot_h, &cosine_t));
    if (reflects || !k.refracts)
        *l = madd(h, 2.0f * v_dot_h, -k.v);
    else
        *l = madd(h, fma(k.eta, v_dot_h, -cosine_t), k.v * -k.eta);
    if (!reflects && !k.refracts) l->z = -l->z;
    return reflects ? l->z > 0.0f : l->z < 0.0f;
}

// Samples the delta lobes by u3; the lobe `clear` was chosen with `probability`.
DEVICE bool clear_sample_smooth(const Material m, const Surface s, const Lobes k, float u3, float probability,
                                BsdfSample *out) {
    float cosine_t;
    float3 fresnel = clear_fresnel(m, s, k, k.v.z, &cosine_t), l = make_float3(-k.v.x, -k.v.y, k.v.z);
    float reflectance = largest_of3(fresnel);
    out->transmits = u3 >= reflectance;
    if (out->transmits && k.refracts) l = make_float3(-k.v.x * k.eta, -k.v.y * k.eta, -cosine_t);
    if (out->transmits && !k.refracts) l.z = -l.z;
    out->direction = normalize_fma(from_local(k.frame, l));
    out->weight = (out->transmits ? base_color(m) : fresnel * (1.0f / reflectance)) * (k.clear / probability);
    if (DISPERSION && out->transmits) out->weight = out->weight * s.spectral;
    out->pdf = DELTA_PDF;
    return true;
}
