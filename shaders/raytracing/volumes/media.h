// The dielectric medium that a path is in: absorption, refraction and dispersion. (Fog and clouds are volumes.h.) The
// path state (Path in path.h) encodes it in two floats. throughput.w is the medium's index of refraction n over the
// index around the camera. The throughput carries basic radiance, L / n^2, which refraction leaves unchanged, so
// radiance that arrives inside the medium is scaled by 1 / n^2. radiance.w holds bits:
//     bit 0       1 if the path carries a single wavelength
//     bits 1-15   the material whose inside is the medium, as its index + 1; 0 for none
//     bits 16-30  the same for the medium that surrounds it
// A medium whose material has an albedo of single scattering, color2, scatters light (random_walk.h); color2.w is g of
// Henyey and Greenstein's phase function.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): DISPERSION, MEDIA, REFRACTION, SCATTERING.
#include "raytracing/surface.h"

#define MEDIUM_BITS 15u
#define MEDIUM_MASK 0x7fffu

// Returns the bits of radiance.w.
DEVICE uint medium_bits(float4 radiance) { return as_uint(radiance.w); }

// Returns 1 + the index of the material whose inside the path is in, 0 for none.
DEVICE uint medium_number(float4 radiance) { return medium_bits(radiance) >> 1 & MEDIUM_MASK; }

// True if the path is in a medium that scatters light.
DEVICE bool in_scattering_medium(GLOBAL const Material *materials, float4 radiance) {
    uint number = medium_number(radiance);
    return SCATTERING && number > 0u && largest_of3(xyz(materials[number - 1u].color2)) > 0.0f;
}

// Returns the factor from radiance that arrives at the path's end to radiance at the camera.
DEVICE float3 seen_throughput(float4 throughput) {
    return REFRACTION ? xyz(throughput) * (1.0f / (throughput.w * throughput.w)) : xyz(throughput);
}

// Returns the bits of the two media (without the wavelength's bit) after the path crosses the surface s. From the front
// the path enters: the material becomes the inner medium and the inner one the outer. From the back it leaves the inner
// medium, or the outer one where the surfaces of two media overlap; leaving a medium that it is not in changes nothing.
DEVICE uint media_behind(const Surface s, uint media) {
    uint number = min((uint)s.material + 1u, MEDIUM_MASK), inner = media & MEDIUM_MASK, outer = media >> MEDIUM_BITS;
    if (s.front_face) return number | inner << MEDIUM_BITS;
    if (inner == number) return outer;
    return outer == number ? inner : media;
}

// Updates the medium of a path that crosses the surface s of material m. The first dispersive surface restricts the
// path to one wavelength.
DEVICE void cross_surface(const Material m, const Surface s, float4 *throughput, float4 *radiance) {
    if (!REFRACTION || !material_has_medium(m)) return;
    throughput->w = s.front_face ? throughput->w * m.ior : throughput->w / m.ior;
    if (!MEDIA && !DISPERSION) return;
    uint bits = medium_bits(*radiance), spectral = bits & 1u;
    if (DISPERSION && material_dispersion(m) > 0.0f) spectral = 1u;
    radiance->w = as_float(media_behind(s, bits >> 1) << 1 | spectral);
}

// Returns the transmittance of the path's medium along `distance` (Beer and Lambert), in xyz; w is 1. In a medium that
// scatters, only the light that does not scatter counts.
DEVICE float4 medium_transmittance(GLOBAL const Material *materials, float4 radiance, float distance) {
    uint number = medium_number(radiance);
    if (!MEDIA || number == 0u || !(distance < FLT_MAX)) return make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    float4 a = materials[number - 1u].attenuation;  // absorption per unit of length of red, green and blue
    return make_float4(exponential_of(-a.x * distance), exponential_of(-a.y * distance),
                       exponential_of(-a.z * distance), 1.0f);
}

// Returns the throughput of a light sample at the surface s of a path, including absorption in the medium that the
// shadow ray crosses. `ray` is the shadow ray's direction and, in w, its length.
DEVICE float3 light_throughput(GLOBAL const Material *materials, const Material m, const Surface s, float4 throughput,
                               float4 radiance, float4 ray) {
    if (dot_fma(xyz(ray), s.normal) < 0.0f) cross_surface(m, s, &throughput, &radiance);
    if (MEDIA) throughput = throughput * medium_transmittance(materials, radiance, ray.w);
    return seen_throughput(throughput);
}

// Sets m->ior to the index of refraction at the path's wavelength, 0 (red) to 1 (blue), and s->spectral to the
// wavelength's color, whose mean is white. Red, green and blue have triangular spectra centered at 1/6, 1/2 and 5/6,
// where the indices agree with KHR_materials_dispersion.
DEVICE void set_wavelength(Material *m, Surface *s, float4 radiance, float wavelength) {
    s->spectral = splat3(1.0f);
    float dispersion = material_dispersion(*m);
    if (!(dispersion > 0.0f)) return;
    float half_spread = (m->ior - 1.0f) * 0.025f * dispersion;
    m->ior = max_nnan(fma(half_spread, 3.0f * (wavelength - 0.5f), m->ior), 1.0f);
    if (medium_bits(radiance) & 1u) return;
    float from_middle = fabs(wavelength - 0.5f);
    s->spectral = make_float3(8.0f * max_nnan(0.5f - wavelength, 0.0f), fma(-4.0f, from_middle, 2.0f),
                              8.0f * max_nnan(wavelength - 0.5f, 0.0f));
}
