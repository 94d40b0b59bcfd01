// The medium that a path is in, and what it does to radiance. Path.throughput.w is its index of refraction over that
// around the camera: the throughput is one of basic radiance, L / n^2, which refraction keeps, so radiance that arrives
// in the medium is scaled by 1 / n^2. Path.radiance.w holds bits: bit 0, the path is of one wavelength; 1-15 the number
// (index + 1) of the material whose inside it is, 0 for none; 16-30 that of the one around it.
#define MEDIUM_BITS 15u
#define MEDIUM_MASK 0x7fffu

DEVICE uint medium_bits(float4 radiance) { return as_uint(radiance.w); }

// The throughput of radiance that arrives at the path's place.
DEVICE float3 seen_throughput(float4 throughput) {
#if REFRACTION
    return xyz(throughput) * (1.0f / (throughput.w * throughput.w));
#else
    return xyz(throughput);
#endif
}

// Whether the inside of a closed surface of the material is another medium than its outside.
DEVICE bool is_solid(const Material m) {
    bool lets_pass = TRANSMISSION && m.transmission > 0.0f;
    lets_pass = lets_pass || (DIFFUSE_TRANSMISSION && m.diffuse_transmission > 0.0f);
    return m.kind == MATERIAL_GLASS || (m.kind == MATERIAL_PRINCIPLED && lets_pass && m.thickness > 0.0f);
}

// The numbers of the media of a path behind a surface that it crosses.
DEVICE uint media_behind(const Surface s, uint media) {
    uint number = min((uint)s.material + 1u, MEDIUM_MASK), inner = media & MEDIUM_MASK, outer = media >> MEDIUM_BITS;
    if (s.front_face) return number | inner << MEDIUM_BITS;
    if (inner == number) return outer;
    return outer == number ? inner : media;
}

// Takes a path's medium to the other side of the surface. A path's first refraction by a dispersive medium takes it to
// one wavelength.
DEVICE void cross_surface(const Material m, const Surface s, float4 *throughput, float4 *radiance) {
    if (!is_solid(m)) return;
    throughput->w = s.front_face ? throughput->w * m.ior : throughput->w / m.ior;
#if MEDIA || DISPERSION
    uint bits = medium_bits(*radiance), spectral = bits & 1u;
    if (DISPERSION && m.kind == MATERIAL_PRINCIPLED && m.dispersion > 0.0f) spectral = 1u;
    radiance->w = as_float(media_behind(s, bits >> 1) << 1 | spectral);
#endif
}

#if MEDIA
// What the medium of a path leaves of light along a distance (Beer and Lambert).
DEVICE float4 medium_transmittance(GLOBAL const Material *materials, float4 radiance, float distance) {
    uint number = medium_bits(radiance) >> 1 & MEDIUM_MASK;
    if (number == 0u || !(distance < FLT_MAX)) return make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    float4 a = materials[number - 1u].attenuation;
    return make_float4(exp(-a.x * distance), exp(-a.y * distance), exp(-a.z * distance), 1.0f);
}
#endif

// The throughput of a light sample at a surface of the path: of the medium in which the shadow ray runs. ray: its
// direction and length.
DEVICE float3 light_throughput(GLOBAL const Material *materials, const Material m, const Surface s, float4 throughput,
                               float4 radiance, float4 ray) {
#if REFRACTION
    if (dot_fma(xyz(ray), s.normal) < 0.0f) cross_surface(m, s, &throughput, &radiance);
#endif
#if MEDIA
    throughput = throughput * medium_transmittance(materials, radiance, ray.w);
#endif
    return seen_throughput(throughput);
}

#if DISPERSION
// The index of refraction at a path's wavelength, from red (0) to blue (1), and the color of that wavelength, whose
// mean is white. The tents of the three colors have their centers at 1/6, 1/2 and 5/6, where the indices are those of
// KHR_materials_dispersion.
DEVICE void set_wavelength(Material *m, Surface *s, float4 radiance, float wavelength) {
    s->spectral = splat3(1.0f);
    if (!(m->dispersion > 0.0f) || !(m->thickness > 0.0f)) return;
    float half_spread = (m->ior - 1.0f) * 0.025f * m->dispersion;
    m->ior = max_nnan(fma(half_spread, 3.0f * (wavelength - 0.5f), m->ior), 1.0f);
    if (medium_bits(radiance) & 1u) return;
    float from_middle = fabs(wavelength - 0.5f);
    s->spectral = make_float3(8.0f * max_nnan(0.5f - wavelength, 0.0f), fma(-4.0f, from_middle, 2.0f),
                              8.0f * max_nnan(wavelength - 0.5f, 0.0f));
}
#endif
