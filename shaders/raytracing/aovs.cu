// Arbitrary output variables (AOVs) for compositing and denoising, and picking. Albedo and normal are means over the
// first samples; depth and primitive id are those of the ray through the pixel's center. Included behind
// raytracing/raytrace.cu.

#include "raytracing/camera_hit.h"

KERNEL draw_aovs(const LaunchParams params, int samples, GLOBAL float4 *albedos, GLOBAL float4 *normals,
                 GLOBAL float *depths, GLOBAL uint *primitive_ids, SCENE_PARAMS, GLOBAL const Material *materials) {
    uint i = thread_index();
    int x, y;
    if (!pixel_of_ray(params, i, &x, &y)) return;
    int pixel = pixel_index(params, x, y);
    float3 albedo = make_float3(0.0f, 0.0f, 0.0f), normal = albedo;
    for (int sample = 0; sample < samples; sample++) {
        LaunchParams of_sample = params;
        of_sample.sample_index = sample;
        Path path = start_path(of_sample, x, y, sampler_of_ray(of_sample, i));
        Hit hit = scene_closest_hit(SCENE_ARGS, path.origin, xyz(path.direction));
        if (hit.primitive < 0 || !(path.throughput.x > 0.0f)) continue;
        Surface s = surface_at(SCENE_ARGS, hit, path.origin, xyz(path.direction));
        albedo = albedo + material_color(material_at(SCENE_ARGS, materials, s), s);
        normal = normal + s.normal;
    }
    float cosine;
    Hit hit = camera_hit(params, SCENE_ARGS, (float)x + 0.5f, (float)y + 0.5f, &cosine);
    albedos[pixel] = with_w(albedo * (1.0f / (float)samples), 1.0f);
    normals[pixel] = with_w(normal * (1.0f / (float)samples), 0.0f);
    depths[pixel] = hit.primitive < 0 ? as_float(0x7f800000u) : hit.t;
    primitive_ids[pixel] = hit.primitive < 0 ? 0u : primitive_id(SCENE_ARGS, hit);
}

// The distance of what is visible at (x, y), along the view axis (with fisheye and equirectangular, along the ray);
// infinite for nothing.
KERNEL pick(const LaunchParams params, float x, float y, GLOBAL float *distance, SCENE_PARAMS) {
    if (thread_index() > 0) return;
    float cosine;
    Hit hit = camera_hit(params, SCENE_ARGS, x, y, &cosine);
    distance[0] = hit.primitive < 0 ? as_float(0x7f800000u) : hit.t * cosine;
}
