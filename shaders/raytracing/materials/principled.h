// The surface of glTF 2.0 with its extensions, and so of most exporters. From the outside inwards: `clearcoat`;
// `sheen`; a base that is a mixture of metal of F0 `color` (`metallic`), of a dielectric over a diffuse body
// (`specular`, `specular_color`, `ior`), whose light may pass to the other side (`diffuse_transmission`), and of clear
// matter (`transmission`). With a `thickness` the shape is solid: it refracts, with `dispersion`, and absorbs light
// (`attenuation_color` at `attenuation_distance`); without, it is a thin wall that light passes straight, or blurred by
// `roughness`. `anisotropy` stretches the base's highlights; `iridescence` is a thin film over the base. A layer leaves
// to those below what its own albedo does not take. Multiple scattering is compensated (ms_factor). Only the
// lobes that a scene's materials use are compiled.
#include "raytracing/microfacet.h"
#if PRINCIPLED
#include "raytracing/lobes/anisotropic_ggx.h"
#if SHEEN
#include "raytracing/lobes/sheen.h"
#endif
#if IRIDESCENCE
#include "raytracing/lobes/thin_film.h"
#endif

#define COAT_F0 0.04f

// The lobes of a surface for one view direction. Weights include what the layers above leave.
typedef struct {
    Frame frame;
    float3 v;  // the view direction in the frame
    float2 alpha;
    float2 sum;  // split sum at v
    float boost;  // energy of multiple over single scattering for F0 = 1
    float eta;  // of clear matter: the index before the surface over that behind it
    bool thin, refracts;
#if CLEARCOAT
    Frame coat_frame;
    float3 coat_v;  // the view direction in it
#endif
    float3 dielectric_f0, metal_f0;
    float dielectric, metal, clear, coat, sheen;
    float clear_albedo;  // of single scattering
    float3 body, body_behind;  // albedo of the diffuse body by reflection and by transmission
    float p_coat, p_sheen, p_specular, p_clear, p_body, p_behind;  // probabilities of sampling
} Lobes;

DEVICE float mean_of3(float3 a) { return (a.x + a.y + a.z) * (1.0f / 3.0f); }

DEVICE float3 lobes_f0(float3 f0, float3 film, float iridescence) { return madd(film - f0, iridescence, f0); }

// The F0 of Schlick's term that gives `reflectance` at the cosine.
DEVICE float3 schlick_to_f0(float3 reflectance, float cosine) {
    float x = min_nnan(schlick_weight(cosine), 0.9f);
    return max3((reflectance - splat3(x)) * (1.0f / (1.0f - x)), splat3(0.0f));
}

// Albedo with compensation, and the Fresnel term of one micro-normal, of a reflector of given F0 and F90.
DEVICE float3 albedo_of(float3 f0, float f90, float2 sum, float boost) {
    return madd(f0, sum.x, splat3(f90 * sum.y)) * ms_factor(f0, boost);
}
DEVICE float3 fresnel_of(float3 f0, float f90, float schlick, float boost) {
    return madd(splat3(f90) - f0, schlick, f0) * ms_factor(f0, boost);
}

DEVICE Frame tangent_frame(const Material m, const Surface s) {
#if ANISOTROPY
    float2 turn = make_float2(cos(m.anisotropy_rotation), sin(m.anisotropy_rotation));
    float3 t = madd(s.normal, -dot_fma(s.tangent, s.normal), s.tangent);
    if (dot_fma(t, t) > 1e-12f) {
        t = normalize_fma(t);
        float3 b = cross_fma(s.normal, t) * s.bitangent_sign;
        Frame f = {s.normal, madd(b, turn.y, t * turn.x), madd(t, -turn.y, b * turn.x)};
        return f;
    }
#endif
    return make_frame(s.normal);
}

// Sets the probabilities in proportion to the albedos.
DEVICE void set_probabilities(Lobes *k, float specular, float clear) {
    k->p_specular = specular;
    k->p_clear = clear;
    k->p_body = mean_of3(k->body);
    k->p_behind = mean_of3(k->body_behind);
    float sum = k->p_coat + k->p_sheen + specular + clear + k->p_body + k->p_behind;
    float scale = sum > 0.0f ? 1.0f / sum : 0.0f;
    k->p_coat *= scale;
    k->p_sheen *= scale;
    k->p_specular *= scale;
    k->p_clear *= scale;
    k->p_body *= scale;
    k->p_behind *= scale;
}

#if TRANSMISSION
#include "raytracing/lobes/clear.h"
#endif

DEVICE void set_split_sum(const Material m, Lobes *k) {
    k->sum = ggx_split_sum(k->v.z, m.roughness);
#if ANISOTROPY
    if (m.anisotropy > 0.0f) k->sum = anisotropic_split_sum(k->v, k->alpha);
#endif
    k->boost = 1.0f / max_nnan(k->sum.x + k->sum.y, 0.05f) - 1.0f;
}

DEVICE Lobes make_lobes(const Material m, const Surface s) {
    Lobes k;
    k.frame = tangent_frame(m, s);
    k.v = to_local(k.frame, -s.ray_direction);
    k.alpha = anisotropic_alpha(m.roughness, ANISOTROPY ? m.anisotropy : 0.0f);
    k.thin = !(m.thickness > 0.0f);
    k.refracts = !k.thin && fabs(m.ior - 1.0f) > 1e-3f;
    k.eta = s.front_face || k.thin ? 1.0f / m.ior : m.ior;
    float cosine = k.v.z, under = 1.0f;
    bool outside = s.front_face || k.thin || !(m.transmission + m.diffuse_transmission > 0.0f);
    k.coat = k.p_coat = k.sheen = k.p_sheen = 0.0f;
#if CLEARCOAT
    k.coat = outside ? m.clearcoat : 0.0f;
    k.coat_frame = make_frame(clearcoat_normal_of(s));
    k.coat_v = to_local(k.coat_frame, -s.ray_direction);
    k.p_coat = k.coat * ggx_albedo(splat3(COAT_F0), m.clearcoat_roughness, k.coat_v.z).x;
    under = 1.0f - k.p_coat;
#endif
#if SHEEN
    k.sheen = outside ? under / max_nnan(sheen_albedo(cosine, m.sheen_roughness), 1.0f) : 0.0f;
    float sheen = k.sheen * sheen_albedo(cosine, m.sheen_roughness);
    k.p_sheen = mean_of3(xyz(m.sheen_color)) * sheen;
    under = max_nnan(under - largest_of3(xyz(m.sheen_color)) * sheen, 0.0f);  // rounding may make it negative
#endif
    float r0 = (m.ior - 1.0f) / (m.ior + 1.0f);
    k.dielectric_f0 = min3(xyz(m.specular_color) * (r0 * r0), splat3(1.0f)) * m.specular;
    k.metal_f0 = base_color(m);
#if IRIDESCENCE
    if (m.iridescence > 0.0f && outside) {
        float3 film = thin_film_reflectance(cosine, m.iridescence_ior, m.iridescence_thickness, k.dielectric_f0);
        k.dielectric_f0 = lobes_f0(k.dielectric_f0, schlick_to_f0(film, cosine), m.iridescence);
        film = thin_film_reflectance(cosine, m.iridescence_ior, m.iridescence_thickness, k.metal_f0);
        k.metal_f0 = lobes_f0(k.metal_f0, schlick_to_f0(film, cosine), m.iridescence);
    }
#endif
    set_split_sum(m, &k);
    float transmission = TRANSMISSION ? m.transmission : 0.0f;
    k.metal = m.metallic * under;
    k.dielectric = (1.0f - m.metallic) * (1.0f - transmission) * under;
    k.clear = (1.0f - m.metallic) * transmission * under;
    float3 albedo = albedo_of(k.dielectric_f0, m.specular, k.sum, k.boost);
    float below = k.dielectric * (1.0f - min_nnan(largest_of3(albedo), 1.0f));
    float behind = DIFFUSE_TRANSMISSION ? m.diffuse_transmission : 0.0f;
    k.body = base_color(m) * (below * (1.0f - behind));
    k.body_behind = DIFFUSE_TRANSMISSION ? xyz(m.diffuse_transmission_color) * (below * behind) : splat3(0.0f);
    float3 metal = albedo_of(k.metal_f0, 1.0f, k.sum, k.boost);
    float tint = clamp(max_nnan(mean_of3(base_color(m)), mean_of3(k.dielectric_f0)), 0.05f, 1.0f);
    set_probabilities(&k, fma(mean_of3(albedo), k.dielectric, mean_of3(metal) * k.metal),
                      WHITTED ? 0.0f : k.clear * tint);
#if TRANSMISSION
    k.clear_albedo = k.clear > 0.0f && !clear_is_smooth(k) ? clear_single_scattering(m, s, k) : 1.0f;
#endif
    return k;
}

// Adds the lobes that reflect l, of which l.z > 0.
DEVICE float4 reflected_lobes(const Material m, const Lobes k, float3 l) {
    float lambda_v = smith_lambda2(k.v, k.alpha), cosine_pdf = l.z * (1.0f / PI);
    float3 h = normalize_fma(k.v + l);
    float d = ggx_d2(h, k.alpha) / (4.0f * k.v.z), schlick = schlick_weight(dot_fma(k.v, h));
    float3 fresnel = fresnel_of(k.dielectric_f0, m.specular, schlick, k.boost) * k.dielectric +
                     fresnel_of(k.metal_f0, 1.0f, schlick, k.boost) * k.metal;
    float3 value = madd(fresnel, d / (1.0f + lambda_v + smith_lambda2(l, k.alpha)), k.body * cosine_pdf);
    float pdf = fma(k.p_specular, d / (1.0f + lambda_v), k.p_body * cosine_pdf);
#if CLEARCOAT
    if (k.coat > 0.0f) {
        GgxLobe lobe = eval_ggx(m.clearcoat_roughness, k.coat_v, to_local(k.coat_frame, from_local(k.frame, l)));
        value = madd(fresnel_ms(splat3(COAT_F0), lobe.schlick, lobe.ms_boost), k.coat * lobe.f_cos, value);
        pdf = fma(k.p_coat, lobe.pdf, pdf);
    }
#endif
#if SHEEN
    if (k.p_sheen > 0.0f) {
        value = madd(xyz(m.sheen_color), k.sheen * sheen_f_cos(m.sheen_roughness, k.v, l), value);
        pdf = fma(k.p_sheen, 0.5f / PI, pdf);
    }
#endif
    return with_w(value, pdf);
}

// BSDF times |cos(theta_l)|, and the pdf, of all lobes.
DEVICE float4 principled_eval_local(const Material m, const Surface s, const Lobes k, float3 l) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (!(k.v.z > 0.0f) || l.z == 0.0f) return sum;
    if (l.z > 0.0f) sum = reflected_lobes(m, k, l);
#if DIFFUSE_TRANSMISSION
    if (l.z < 0.0f) {
        float pdf = -l.z * (1.0f / PI);
        sum = with_w(k.body_behind * pdf, k.p_behind * pdf);
    }
#endif
#if TRANSMISSION
    if (k.p_clear > 0.0f && !clear_is_smooth(k)) sum = sum + clear_eval(m, s, k, l);
#endif
    return sum;
}

// Samples the lobes but the clear one; `choice` is uniform over their probabilities. False if the sample is lost.
DEVICE bool sample_opaque(const Material m, const Lobes k, float u1, float u2, float choice, float3 *l) {
    if (choice < k.p_specular) {
        float3 h = sample_vndf2(k.v, k.alpha, u1, u2);
        *l = madd(h, 2.0f * dot_fma(k.v, h), -k.v);
        return l->z > 0.0f;
    }
    choice -= k.p_specular;
#if CLEARCOAT
    if (choice < k.p_coat) {
        *l = sample_ggx(m.clearcoat_roughness, k.coat_v, u1, u2);
        bool is_above = l->z > 0.0f;
        *l = to_local(k.frame, from_local(k.coat_frame, *l));
        return is_above && l->z > 0.0f;
    }
    choice -= k.p_coat;
#endif
#if SHEEN
    if (choice < k.p_sheen) {
        *l = sample_sheen(u1, u2);
        return true;
    }
    choice -= k.p_sheen;
#endif
    float cosine = sqrt(1.0f - u1), sine = sqrt(u1);
    float2 phi = cos_sin_2pi(u2);
    *l = make_float3(sine * phi.x, sine * phi.y, DIFFUSE_TRANSMISSION && choice >= k.p_body ? -cosine : cosine);
    return true;
}

DEVICE bool principled_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    Lobes k = make_lobes(m, s);
    float u1 = get_1d(sampler, dimension), u2 = get_1d(sampler, dimension + 1), u3 = get_1d(sampler, dimension + 2);
    float3 l;
    out->transmits = false;
    out->pdf = 0.0f;
#if TRANSMISSION
    if (WHITTED && k.clear > 0.5f) return clear_sample_smooth(m, s, k, u3, k.clear, out);
    bool clear = u3 < k.p_clear;
    if (clear && clear_is_smooth(k)) return clear_sample_smooth(m, s, k, u3 / k.p_clear, k.p_clear, out);
    if (clear && !clear_sample(m, s, k, u1, u2, u3 / k.p_clear, &l)) return false;
    if (!clear && !sample_opaque(m, k, u1, u2, u3 - k.p_clear, &l)) return false;
#else
    if (!sample_opaque(m, k, u1, u2, u3, &l)) return false;
#endif
    bool continues = set_reflection(k.frame, l, principled_eval_local(m, s, k, l), out);
    out->transmits = l.z < 0.0f;
    return continues;
}

DEVICE float4 principled_eval_pdf(const Material m, const Surface s, float3 direction) {
    Lobes k = make_lobes(m, s);
    return principled_eval_local(m, s, k, to_local(k.frame, direction));
}
#endif
