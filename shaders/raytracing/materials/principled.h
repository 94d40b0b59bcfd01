// The surface of glTF 2.0 with its extensions, which most exporters write. Its layers from the outside inwards:
// `clearcoat`; `sheen`; and a base that mixes three reflectors: a metal of normal reflectance `color` (fraction
// `metallic`); a dielectric (`specular`, `specular_color`, `ior`) over a diffuse body, of whose light
// `diffuse_transmission` passes to the other side; and a clear dielectric (`transmission`). With a `thickness` the
// shape is solid: it refracts, with `dispersion`, and attenuates light (`attenuation_color` at `attenuation_distance`).
// With a `multiscatter_color` the inside scatters the light that it takes away, as wax, skin, milk and jade do: a dense
// shape has that color, a thin one lets light through. Let the light in by `diffuse_transmission`, whose surface samples
// lamps, or by `transmission`; `scatter_anisotropy` is forward scattering, up to 1. Without `thickness` it is a thin
// wall that transmits light straight on, or blurred by `roughness`. `anisotropy` stretches the base's highlights;
// `iridescence` is a thin film over the base. Each layer transmits to the layers below the light that it does not
// reflect, by its albedo. Multiple scattering is compensated (ms_factor). Only the lobes that a scene's materials use
// are compiled.

// For the host; raytracing/surface.h explains these lines:
// @optional
// @mirrors where metallic
// @maps roughness, metallic, metallic_roughness, clearcoat, clearcoat_roughness, clearcoat_normal, sheen_color
// @maps sheen_roughness, specular, specular_color, transmission, iridescence, iridescence_thickness, anisotropy
// @maps diffuse_transmission, diffuse_transmission_color
// @transmits where transmission
// @constant CLEARCOAT where clearcoat
// @constant SHEEN where sheen_color
// @constant IRIDESCENCE where iridescence
// @constant ANISOTROPY where anisotropy
// @constant TRANSMISSION where transmission
// @constant DIFFUSE_TRANSMISSION where diffuse_transmission
// @constant DISPERSION where transmission and thickness and dispersion
// @constant MEDIA where transmission and thickness and attenuation or diffuse_transmission and thickness and attenuation
// @constant SCATTERING where thickness and attenuation and color2
// @constant REFRACTION where transmission and thickness or diffuse_transmission and thickness
// @constant SHADOW_RAYS_CROSS where transmission or diffuse_transmission
// @constant GLASS_TABLE where transmission

#include "raytracing/microfacet.h"
#if PRINCIPLED
#include "raytracing/lobes/anisotropic_ggx.h"
#include "raytracing/lobes/lobes.h"
#include "raytracing/lobes/thin_film.h"
#if SHEEN
#include "raytracing/lobes/sheen.h"
#else
#define sheen_albedo(cosine, roughness) 0.0f
#define sheen_f_cos(roughness, v, l) 0.0f
#define sample_sheen(u1, u2) splat3(0.0f)
#endif

#define COAT_F0 0.04f

// Returns the albedo of a half-space of the medium, by its albedo of single scattering and in w the phase function's g
// (H. van de Hulst 1980; renderer/raytracing/materials.py inverts it).
DEVICE float3 multiscatter_albedo(float4 single) {
    float3 a = xyz(single), s = make_float3(sqrt((1.0f - a.x) / fma(-single.w, a.x, 1.0f)),
                                            sqrt((1.0f - a.y) / fma(-single.w, a.y, 1.0f)),
                                            sqrt((1.0f - a.z) / fma(-single.w, a.z, 1.0f)));
    float3 below = splat3(1.0f) + s * 1.17f, above = (splat3(1.0f) - s) * (splat3(1.0f) - s * 0.139f);
    return make_float3(above.x / below.x, above.y / below.y, above.z / below.z);
}

DEVICE float mean_of3(float3 a) { return (a.x + a.y + a.z) * (1.0f / 3.0f); }

// Returns the reflectance at normal incidence of a base of F0 `f0` that a film of F0 `film` covers by the fraction
// `iridescence`.
DEVICE float3 mix_f0(float3 f0, float3 film, float iridescence) { return madd(film - f0, iridescence, f0); }

// Returns the F0 with which Schlick's term has the given reflectance at the cosine.
DEVICE float3 schlick_to_f0(float3 reflectance, float cosine) {
    float x = min_nnan(schlick_weight(cosine), 0.9f);
    return max3((reflectance - splat3(x)) * (1.0f / (1.0f - x)), splat3(0.0f));
}

// Albedo, and Fresnel term at one micro-normal, of a reflector with these reflectances at normal (f0) and grazing (f90)
// incidence, multiple scattering included. `sum` is the split sum, `boost` as for ms_factor (microfacet.h).
DEVICE float3 albedo_ms(float3 f0, float f90, float2 sum, float boost) {
    return madd(f0, sum.x, splat3(f90 * sum.y)) * ms_factor3(f0, boost);
}
DEVICE float3 fresnel_f90_ms(float3 f0, float f90, float schlick, float boost) {
    return madd(splat3(f90) - f0, schlick, f0) * ms_factor3(f0, boost);
}

// Returns the local frame of the base; with ANISOTROPY its tangent is the direction in which highlights stretch.
DEVICE Frame tangent_frame(const Material m, const Surface s) {
    if (!ANISOTROPY) return make_frame(s.normal);
    Pair cos_sin = circle(m.anisotropy_rotation);
    float3 t = madd(s.normal, -dot_fma(s.tangent, s.normal), s.tangent);
    if (dot_fma(t, t) > 1e-12f) {
        t = normalize_fma(t);
        float3 b = cross_fma(s.normal, t) * s.bitangent_sign;
        Frame f = {s.normal, madd(b, cos_sin.y, t * cos_sin.x), madd(t, -cos_sin.y, b * cos_sin.x)};
        return f;
    }
    return make_frame(s.normal);
}

// Sets the sampling probabilities of all lobes in proportion to their albedos; `specular` and `clear` are the albedos
// of these two lobes, p_coat and p_sheen hold theirs.
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

// Sets the split sum at k->v and the boost of multiple scattering.
DEVICE void set_split_sum(const Material m, Lobes *k) {
    k->sum = ggx_split_sum(k->v.z, m.roughness);
#if ANISOTROPY
    if (m.anisotropy > 0.0f) k->sum = anisotropic_split_sum(k->v, k->alpha);
#endif
    k->boost = ms_boost(k->sum);
}

// Returns the lobes of the material at the surface, for the ray's direction. `under` is the fraction of light that the
// layers handled so far transmit to the layers below.
// Inlined on CPUs too, as thin film and sheen: as calls they compile 0.2 to 0.6 CPU-s sooner and draw 5 % slower.
DEVICE Lobes make_lobes(const Material m, const Surface s) {
    Lobes k;
    k.frame = tangent_frame(m, s);
    k.v = to_local(k.frame, -s.ray_direction);
    k.alpha = anisotropic_alpha(m.roughness, ANISOTROPY ? m.anisotropy : 0.0f);
    k.thin = !(m.thickness > 0.0f);
    k.refracts = !k.thin && fabs(m.ior - 1.0f) > 1e-3f;
    k.eta = s.front_face || k.thin ? 1.0f / m.ior : m.ior;
    float cosine = k.v.z, under = 1.0f;
    // The layers on top are seen from outside; the inside of an opaque shape counts as outside.
    bool outside = s.front_face || k.thin || !(m.transmission + m.diffuse_transmission > 0.0f);
    k.coat = k.p_coat = k.sheen = k.p_sheen = 0.0f;
    if (CLEARCOAT) {
        k.coat = outside ? m.clearcoat : 0.0f;
        k.coat_frame = make_frame(clearcoat_normal_of(s));
        k.coat_v = to_local(k.coat_frame, -s.ray_direction);
        k.p_coat = k.coat * ggx_albedo(COAT_F0, ggx_split_sum(k.coat_v.z, m.clearcoat_roughness));
        under = 1.0f - k.p_coat;
    }
    if (SHEEN) {
        // divided by an albedo above 1, so that sheen reflects no more than it receives
        k.sheen = outside ? under / max_nnan(sheen_albedo(cosine, m.sheen_roughness), 1.0f) : 0.0f;
        float sheen = k.sheen * sheen_albedo(cosine, m.sheen_roughness);
        k.p_sheen = mean_of3(xyz(m.sheen_color)) * sheen;
        under = max_nnan(under - largest_of3(xyz(m.sheen_color)) * sheen, 0.0f);  // rounding may make it negative
    }
    // Normal reflectances of the base, under the film if there is one.
    float r0 = (m.ior - 1.0f) / (m.ior + 1.0f);
    k.dielectric_f0 = min3(xyz(m.specular_color) * (r0 * r0), splat3(1.0f)) * m.specular;
    k.metal_f0 = base_color(m);
    if (IRIDESCENCE && m.iridescence > 0.0f && outside) {
        float3 film = thin_film_reflectance(cosine, m.iridescence_ior, m.iridescence_thickness, k.dielectric_f0);
        k.dielectric_f0 = mix_f0(k.dielectric_f0, schlick_to_f0(film, cosine), m.iridescence);
        film = thin_film_reflectance(cosine, m.iridescence_ior, m.iridescence_thickness, k.metal_f0);
        k.metal_f0 = mix_f0(k.metal_f0, schlick_to_f0(film, cosine), m.iridescence);
    }
    set_split_sum(m, &k);
    // Weights of the base's reflectors, the diffuse body below the dielectric, and the sampling probabilities.
    float transmission = TRANSMISSION ? m.transmission : 0.0f;
    k.metal = m.metallic * under;
    k.dielectric = (1.0f - m.metallic) * (1.0f - transmission) * under;
    k.clear = (1.0f - m.metallic) * transmission * under;
    float3 albedo = albedo_ms(k.dielectric_f0, m.specular, k.sum, k.boost);
    float below = k.dielectric * (1.0f - min_nnan(largest_of3(albedo), 1.0f));
    float transmitted = DIFFUSE_TRANSMISSION ? m.diffuse_transmission : 0.0f;
    k.body = base_color(m) * (below * (1.0f - transmitted));
    k.body_behind = DIFFUSE_TRANSMISSION ? xyz(m.diffuse_transmission_color) * (below * transmitted) : splat3(0.0f);
    float3 metal = albedo_ms(k.metal_f0, 1.0f, k.sum, k.boost);
    // `tint` estimates the clear lobe's albedo; Whitted's integrator follows that lobe without sampling
    float tint = clamp(max_nnan(mean_of3(base_color(m)), mean_of3(k.dielectric_f0)), 0.05f, 1.0f);
    set_probabilities(&k, fma(mean_of3(albedo), k.dielectric, mean_of3(metal) * k.metal),
                      WHITTED ? 0.0f : k.clear * tint);
#if TRANSMISSION
    k.clear_albedo = k.clear > 0.0f && !clear_is_smooth(k) ? clear_single_scattering(m, s, k) : 1.0f;
#endif
    return k;
}

// Evaluates the coat, sheen, specular and diffuse lobes for light from l, l.z > 0: BSDF times cos(theta_l), and the pdf
// in w.
DEVICE float4 reflected_lobes(const Material m, const Lobes k, float3 l) {
    float lambda_v = smith_lambda2(k.v, k.alpha), cosine_pdf = l.z * (1.0f / PI);
    float3 h = normalize_fma(k.v + l);
    float d = ggx_d2(h, k.alpha) / (4.0f * k.v.z), schlick = schlick_weight(dot_fma(k.v, h));
    float3 fresnel = fresnel_f90_ms(k.dielectric_f0, m.specular, schlick, k.boost) * k.dielectric +
                     fresnel_f90_ms(k.metal_f0, 1.0f, schlick, k.boost) * k.metal;
    float3 value = madd(fresnel, d / (1.0f + lambda_v + smith_lambda2(l, k.alpha)), k.body * cosine_pdf);
    float pdf = fma(k.p_specular, d / (1.0f + lambda_v), k.p_body * cosine_pdf);
    if (CLEARCOAT && k.coat > 0.0f) {
        GgxLobe lobe = eval_ggx(m.clearcoat_roughness, k.coat_v, to_local(k.coat_frame, from_local(k.frame, l)));
        value = madd(fresnel_ms3(splat3(COAT_F0), lobe.schlick, lobe.ms_boost), k.coat * lobe.f_cos, value);
        pdf = fma(k.p_coat, lobe.pdf, pdf);
    }
    if (SHEEN && k.p_sheen > 0.0f) {
        value = madd(xyz(m.sheen_color), k.sheen * sheen_f_cos(m.sheen_roughness, k.v, l), value);
        pdf = fma(k.p_sheen, 0.5f / PI, pdf);
    }
    return with_w(value, pdf);
}

// Returns the BSDF of all lobes but deltas times |cos(theta_l)|, and in w the pdf per solid angle; l is in k.frame.
DEVICE float4 principled_eval_local(const Material m, const Surface s, const Lobes k, float3 l) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (!(k.v.z > 0.0f) || l.z == 0.0f) return sum;
    if (l.z > 0.0f) sum = reflected_lobes(m, k, l);
    if (DIFFUSE_TRANSMISSION && l.z < 0.0f) {
        float pdf = -l.z * (1.0f / PI);
        sum = with_w(k.body_behind * pdf, k.p_behind * pdf);
    }
#if TRANSMISSION
    if (k.p_clear > 0.0f && !clear_is_smooth(k)) sum = sum + clear_eval(m, s, k, l);
#endif
    return sum;
}

// Samples l, in k.frame, from all lobes but the clear one; `choice` is uniform over the sum of their probabilities.
// Returns false if l is below the surface.
DEVICE bool sample_opaque(const Material m, const Lobes k, float u1, float u2, float choice, float3 *l) {
    if (choice < k.p_specular) {
        float3 h = sample_vndf(k.v, k.alpha, u1, u2);
        *l = madd(h, 2.0f * dot_fma(k.v, h), -k.v);
        return l->z > 0.0f;
    }
    choice -= k.p_specular;
    if (CLEARCOAT && choice < k.p_coat) {
        *l = sample_ggx(m.clearcoat_roughness, k.coat_v, u1, u2);
        bool is_above = l->z > 0.0f;
        *l = to_local(k.frame, from_local(k.coat_frame, *l));
        return is_above && l->z > 0.0f;
    }
    if (CLEARCOAT) choice -= k.p_coat;
    if (SHEEN && choice < k.p_sheen) {
        *l = sample_sheen(u1, u2);
        return true;
    }
    if (SHEEN) choice -= k.p_sheen;
    float cosine = sqrt(1.0f - u1), sine = sqrt(u1);
    float2 phi = cos_sin_2pi(u2);
    *l = make_float3(sine * phi.x, sine * phi.y, DIFFUSE_TRANSMISSION && choice >= k.p_body ? -cosine : cosine);
    return true;
}

DEVICE bool principled_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    Lobes k = make_lobes(m, s);
    float u1 = get_1d(sampler, dimension), u2 = get_1d(sampler, dimension + 1), u3 = get_1d(sampler, dimension + 2);
    float3 l;
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

DEVICE float3 principled_diffuse_part(const Material m, const Surface s, float3 direction) {
    Lobes k = make_lobes(m, s);
    float3 l = to_local(k.frame, direction), value = (l.z < 0.0f ? k.body_behind : k.body) * (fabs(l.z) * (1.0f / PI));
    if (SHEEN && k.p_sheen > 0.0f && l.z > 0.0f)
        value = madd(xyz(m.sheen_color), k.sheen * sheen_f_cos(m.sheen_roughness, k.v, l), value);
    return value;
}

DEVICE float3 principled_albedo(const Material m, const Surface s) {
    if (SCATTERING && m.diffuse_transmission > 0.0f && m.thickness > 0.0f && largest_of3(xyz(m.color2)) > 0.0f) {
        float3 inside = xyz(m.diffuse_transmission_color) * multiscatter_albedo(m.color2);
        return madd(inside - base_color(m), m.diffuse_transmission, base_color(m));
    }
    return base_color(m);
}

// True only in Whitted's integrator, at hits where it follows the clear lobe alone (principled_sample).
DEVICE bool principled_is_delta(const Material m, const Surface s) {
    if (!WHITTED || !TRANSMISSION) return false;
    Lobes k = make_lobes(m, s);
    return k.clear > 0.5f;
}
DEVICE float principled_mirror_fraction(const Material m, const Surface s) {
    return schlick_mirror_fraction(m.metallic, s.normal, s.ray_direction);
}
DEVICE float principled_guided_fraction(const Material m) {
    return GUIDED_GLOSSY * (1.0f - m.transmission) * (m.roughness >= GUIDED_ROUGHNESS ? 1.0f : 1.0f - m.metallic);
}
DEVICE bool principled_is_lit_from_behind(const Material m) { return false; }  // the lobes that are guided only reflect
DEVICE bool principled_has_medium(const Material m) {
    bool lets_pass = (TRANSMISSION && m.transmission > 0.0f) || (DIFFUSE_TRANSMISSION && m.diffuse_transmission > 0.0f);
    return lets_pass && m.thickness > 0.0f;
}
DEVICE float principled_dispersion(const Material m) { return m.thickness > 0.0f ? m.dispersion : 0.0f; }
#endif
