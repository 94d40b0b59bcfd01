// Reflectance of a thin film (L. Belcour and P. Barla 2017), with the formulas of KHR_materials_iridescence: an Airy
// sum in Fourier space, whose color-matching curves are Gaussians fitted to the CIE 1931 curves. Included by
// materials/principled.h in scenes with `iridescence`.
#include "raytracing/microfacet.h"

// Returns the linear Rec. 709 color of a spectrum that varies as a cosine, by the optical path difference `difference`
// in nanometers and the phase `shift` of each channel in radians.
DEVICE float3 film_response(float difference, float3 shift) {
    float phase = 2.0f * PI * difference * 1e-9f, p2 = phase * phase;
    // Gaussians in 1 / wavelength that fit the CIE curves; X has two peaks, and the second is added below.
    float3 value = make_float3(5.4856e-13f, 4.4201e-13f, 5.2481e-13f);
    float3 position = make_float3(1.6810e+06f, 1.7953e+06f, 2.2084e+06f);
    float3 variance = make_float3(4.3278e+09f, 9.3046e+09f, 6.6121e+09f);
    float x = value.x * sqrt(2.0f * PI * variance.x) * cosine_of(fma(position.x, phase, shift.x)) *
              exponential_of(-p2 * variance.x);
    float y = value.y * sqrt(2.0f * PI * variance.y) * cosine_of(fma(position.y, phase, shift.y)) *
              exponential_of(-p2 * variance.y);
    float z = value.z * sqrt(2.0f * PI * variance.z) * cosine_of(fma(position.z, phase, shift.z)) *
              exponential_of(-p2 * variance.z);
    x += 9.7470e-14f * sqrt(2.0f * PI * 4.5282e+09f) * cosine_of(fma(2.2399e+06f, phase, shift.x)) *
         exponential_of(-4.5282e+09f * p2);
    x *= 1.0f / 1.0685e-7f;  // the integral of the curve Y: a constant spectrum has Y = 1
    y *= 1.0f / 1.0685e-7f;
    z *= 1.0f / 1.0685e-7f;
    return make_float3(fma(-0.4985314f, z, fma(-1.5371385f, y, 3.2404542f * x)),
                       fma(0.0415560f, z, fma(1.8760108f, y, -0.9692660f * x)),
                       fma(1.0572252f, z, fma(-0.2040259f, y, 0.0556434f * x)));
}

DEVICE float3 sqrt3(float3 a) { return make_float3(sqrt(a.x), sqrt(a.y), sqrt(a.z)); }

// Returns Schlick's reflectance; `weight` is schlick_weight of the cosine.
DEVICE float3 schlick3(float3 f0, float weight) { return madd(splat3(1.0f) - f0, weight, f0); }

// Returns the reflectance at normal incidence between two indices of refraction.
DEVICE float r0_of_indices(float transmitted, float incident) {
    float r = (transmitted - incident) / (transmitted + incident);
    return r * r;
}

// Returns the reflectance, 0 to 1, of a film of index `ior` and `thickness` in nanometers, in air, over a base of
// reflectance base_f0 at normal incidence; `cosine` of the angle of incidence. Numbers in names are the paper's: 1 air,
// 2 film, 3 base; r12 is the reflectance from air to film, t121 the transmittance into the film and out again.
DEVICE float3 thin_film_reflectance(float cosine, float ior, float thickness, float3 base_f0) {
    float t = clamp(thickness / 0.03f, 0.0f, 1.0f);  // a film thinner than 0.03 nm fades out
    float film = fma(t * t * (3.0f - 2.0f * t), ior - 1.0f, 1.0f);
    float cosine2_film = 1.0f - fma(-cosine, cosine, 1.0f) / (film * film);
    if (cosine2_film < 0.0f) return splat3(1.0f);
    float cosine_film = sqrt(cosine2_film);
    float r0 = r0_of_indices(film, 1.0f), r12 = r0 + (1.0f - r0) * schlick_weight(cosine), t121 = 1.0f - r12;
    float phase12 = film < 1.0f ? PI : 0.0f, phase21 = PI - phase12;
    float3 f0 = min3(base_f0, splat3(0.9999f)), root = sqrt3(f0);
    float3 base = make_float3((1.0f + root.x) / (1.0f - root.x), (1.0f + root.y) / (1.0f - root.y),
                              (1.0f + root.z) / (1.0f - root.z));
    float3 r1 = make_float3(r0_of_indices(base.x, film), r0_of_indices(base.y, film), r0_of_indices(base.z, film));
    float3 r23 = schlick3(r1, schlick_weight(cosine_film));
    float3 shift = make_float3(phase21 + (base.x < film ? PI : 0.0f), phase21 + (base.y < film ? PI : 0.0f),
                               phase21 + (base.z < film ? PI : 0.0f));
    float3 r123 = min3(max3(r23 * r12, splat3(1e-5f)), splat3(0.9999f)), amplitude = sqrt3(r123);
    float3 transmitted = splat3(1.0f) - r123;
    float3 rs = r23 * (t121 * t121) * make_float3(1.0f / transmitted.x, 1.0f / transmitted.y, 1.0f / transmitted.z);
    float3 sum = splat3(r12) + rs, order = rs - splat3(t121);
    float difference = 2.0f * film * thickness * cosine_film;
    for (int m = 1; m <= 2; m++) {
        order = order * amplitude;
        sum = sum + order * film_response((float)m * difference, shift * (float)m) * 2.0f;
    }
    return min3(max3(sum, splat3(0.0f)), splat3(1.0f));
}
