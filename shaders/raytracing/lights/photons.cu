// Photon tracing for path guiding (guide.h): paths from the lights, recorded where they hit surfaces;
// renderer/raytracing/lights/guiding.py launches it and sorts the records. Photons only tell path guiding where light
// comes from, so they may be approximate: they sample BSDFs as camera paths do, without the corrections of adjoint
// BSDFs that transported power would need (E. Veach 1997), and ignore volumes.
// `starts`, three rows of float4 a photon: origin, time in the shutter interval | direction | power. `records`,
// PHOTON_RECORDS of two rows a photon: point, luminance of the power, 0 for none | vector to the surface that the
// photon came from, number of the tree (guide_tree). A photon is recorded from its second surface on, because
// next-event estimation samples the light at its first. Points and directions are in world space.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): DISPERSION, MEDIA.
#include "raytracing/bend_normals.h"
#include "raytracing/lights/choose_light.h"
#include "raytracing/scene.h"
#include "raytracing/volumes/media.h"
#define PHOTON_RECORDS 4  // the same in guiding.py
#define PHOTON_DIMENSIONS 8u  // of the sampler, for each bounce

// Traces photon number thread_index() through at most max_depth hits.
KERNEL trace_photons(int photon_count, int seed, int max_depth, GLOBAL const float4 *starts, GLOBAL float4 *records,
                     GEOMETRY_PARAMS, GLOBAL const Material *materials) {
    uint i = thread_index();
    if (i >= (uint)photon_count) return;
    Sampler sampler = make_sampler((uint)seed, 0xffffffffu, i);  // the number of no pixel
    float4 origin = starts[3 * i], medium = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 direction = xyz(starts[3 * i + 1]), power = xyz(starts[3 * i + 2]);
    float4 throughput = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    int recorded = 0;
    for (int depth = 0; depth < max_depth && recorded < PHOTON_RECORDS; depth++) {
        Hit hit = scene_closest_hit(GEOMETRY_ARGS, origin, direction);
        if (hit.primitive < 0) return;
        if (MEDIA) throughput = throughput * medium_transmittance(materials, medium, hit.t);
        Surface s = surface_at(GEOMETRY_ARGS, hit, origin, direction);
        Material m = material_at(GEOMETRY_ARGS, materials, s);
        uint dimension = (uint)(depth + 1) * PHOTON_DIMENSIONS;
        bend_normals(&s, m);
        if (is_shadow_catcher(m)) return;
        if (DISPERSION) set_wavelength(&m, &s, medium, get_1d(sampler, 7u));  // 7: of no bounce
        float3 carried = power * xyz(throughput);
        if (depth > 0 && material_guided_fraction(m) > 0.0f) {
            uint slot = 2u * (PHOTON_RECORDS * i + (uint)recorded++);
            records[slot] = with_w(s.point, rgb_luminance(with_w(carried, 0.0f)));
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
        if (out.transmits) cross_surface(m, s, &throughput, &medium);
    }
}
