// Paths from the lights, whose directions guide those from the camera (guide.h). They only say where light comes from,
// so they may be approximate: a photon takes a BSDF's samples as a path from the camera does, without the corrections
// that carried power would need, and sees no volumes.
// `starts`, three rows a photon: origin, time in the shutter interval | direction | power. `records`, PHOTON_RECORDS of
// two rows a photon: point, power, 0 for none | vector to the surface that the photon came from, number of the tree. A
// photon is recorded from its second surface on: the light at its first is next-event estimation's.
#include "raytracing/scene.h"
#include "raytracing/media.h"
#define PHOTON_RECORDS 4  // the same in guiding.py
#define PHOTON_DIMENSIONS 8u  // of a bounce

KERNEL trace_photons(int photon_count, int seed, int max_depth, GLOBAL const float4 *starts, GLOBAL float4 *records,
                     SCENE_PARAMS, GLOBAL const Material *materials) {
    uint i = thread_index();
    if (i >= (uint)photon_count) return;
    Sampler sampler = make_sampler((uint)seed, 0xffffffffu, i);
    float4 origin = starts[3 * i], medium = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 direction = xyz(starts[3 * i + 1]), power = xyz(starts[3 * i + 2]);
    float4 throughput = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    int recorded = 0;
    for (int depth = 0; depth < max_depth && recorded < PHOTON_RECORDS; depth++) {
        Hit hit = scene_closest_hit(SCENE_ARGS, origin, direction);
        if (hit.primitive < 0) return;
#if MEDIA
        throughput = throughput * medium_transmittance(materials, medium, hit.t);
#endif
        Surface s = surface_at(SCENE_ARGS, hit, origin, direction);
        Material m = material_at(SCENE_ARGS, materials, s);
        uint dimension = (uint)(depth + 1) * PHOTON_DIMENSIONS;
#if TEXTURED
        bend_normals(&s, m);
#endif
#if SHADOW_CATCHER
        if (m.kind == SHADOW_CATCHER) return;
#endif
#if DISPERSION
        set_wavelength(&m, &s, medium, get_1d(sampler, 7u));
#endif
        float3 carried = power * xyz(throughput);
        if (depth > 0 && guided_fraction(m) > 0.0f) {
            uint slot = 2u * (PHOTON_RECORDS * i + (uint)recorded++);
            records[slot] = with_w(s.point, fma(0.0722f, carried.z, fma(0.7152f, carried.y, 0.2126f * carried.x)));
            records[slot + 1] = with_w(direction * -hit.t, (float)guide_tree(m, geometric_normal(s)));
        }
        BsdfSample out;
        if (!sample_bsdf(m, s, sampler, dimension, &out) || !on_geometric_side(s, out.direction, out.transmits)) return;
        throughput = throughput * with_w(out.weight, 1.0f);
        float survival_probability = clamp(largest_of3(xyz(throughput)), 0.05f, 1.0f);
        if (get_1d(sampler, dimension + 3) >= survival_probability) return;
        throughput = with_w(xyz(throughput) * (1.0f / survival_probability), throughput.w);
        origin = offset_ray_origin(s, out.transmits, origin.w);
        direction = out.direction;
#if REFRACTION
        if (out.transmits) cross_surface(m, s, &throughput, &medium);
#endif
    }
}
