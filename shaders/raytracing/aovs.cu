// Arbitrary output variables (AOVs) for compositing and denoising, and picking in the window.
// renderer/raytracing/kernels.py places this file after raytracing/raytrace.cu, whose functions it uses.

#include "raytracing/camera_hit.h"

// Draws the AOVs of every pixel. Albedo and world-space shading normal are means over the first `samples` samples;
// samples that miss count as black. Depth and primitive id belong to the ray through the pixel's center: depth is the
// distance along that ray, infinite for a miss; the id counts from 1, and is 0 for a miss.
KERNEL draw_aovs(const LaunchParams params, int samples, GLOBAL float4 *albedos, GLOBAL float4 *normals,
                 GLOBAL float *depths, GLOBAL uint *primitive_ids, GEOMETRY_PARAMS, GLOBAL const Material *materials) {
    uint i = thread_index();
    int x, y;
    if (!pixel_of_ray(params, i, &x, &y)) return;
    int pixel = pixel_index(params, x, y);
    float3 albedo = make_float3(0.0f, 0.0f, 0.0f), normal = albedo;
    for (int sample = 0; sample < samples; sample++) {
        LaunchParams sample_params = params;
        sample_params.sample_index = sample;
        Path path = start_path(sample_params, x, y, sampler_of_ray(sample_params, i));
        Hit hit = scene_closest_hit(GEOMETRY_ARGS, path.origin, xyz(path.direction));
        if (hit.primitive < 0 || !(path.throughput.x > 0.0f)) continue;  // throughput 0: the projection has no ray
        Surface s = surface_at(GEOMETRY_ARGS, hit, path.origin, xyz(path.direction));
        albedo = albedo + material_albedo(material_at(GEOMETRY_ARGS, materials, s), s);
        normal = normal + s.normal;
    }
    float cosine;
    Hit hit = camera_hit(params, GEOMETRY_ARGS, (float)x + 0.5f, (float)y + 0.5f, &cosine);
    albedos[pixel] = with_w(albedo * (1.0f / (float)samples), 1.0f);
    normals[pixel] = with_w(normal * (1.0f / (float)samples), 0.0f);
    depths[pixel] = hit.primitive < 0 ? as_float(0x7f800000u) : hit.t;
    primitive_ids[pixel] = hit.primitive < 0 ? 0u : primitive_id(GEOMETRY_ARGS, hit);
}

// Stores the depth of the surface visible at (x, y), in pixels from the upper left corner: the distance along the view
// axis, or along the ray for fisheye and equirectangular; infinite for a miss.
KERNEL pick(const LaunchParams params, float x, float y, GLOBAL float *distance, GEOMETRY_PARAMS) {
    if (thread_index() > 0) return;
    float cosine;  // of the ray's angle to the view axis, 1 without an axis (camera_hit.h)
    Hit hit = camera_hit(params, GEOMETRY_ARGS, x, y, &cosine);
    distance[0] = hit.primitive < 0 ? as_float(0x7f800000u) : hit.t * cosine;
}
