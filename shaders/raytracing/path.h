// The path state, which all schedules of raytrace.cu pass from stage to stage; the numbering of rays; the camera ray
// that starts a path; and the functions that add radiance to it. Ray i of a launch is the path of one pixel: pixel i %
// 32 of block i / 32, where blocks of 8 x 4 pixels follow each other along the rows of the tile.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): LIGHT_GROUPS, LIGHT_PASSES, MOTION,
// SHADOW_RAYS_CROSS.
#include "raytracing/clamp_contribution.h"
#include "raytracing/camera.h"
#include "raytracing/film/light_passes.h"
#include "raytracing/lights/lights.h"
#include "raytracing/volumes/media.h"

#define DIMENSIONS_PER_BOUNCE 8u  // 0-2: BSDF, 3: Russian roulette, 4-6: light, 7: volumes

// Sets (x, y) to the pixel of ray i, counted from the upper left corner of the whole picture. Returns false for rays
// outside the tile, which only fill up its last blocks.
DEVICE bool pixel_of_ray(const LaunchParams params, uint i, int *x, int *y) {
    int block = (int)(i >> 5);
    int column = (block % params.blocks_x) * 8 + (int)(i & 7u),
        row = (block / params.blocks_x) * 4 + (int)((i >> 3) & 3u);
    *x = params.tile_x + column;
    *y = params.tile_y + row;
    return column < params.tile_width && row < params.tile_height;
}

// Returns the sampler of ray i's pixel and of the launch's sample.
DEVICE Sampler sampler_of_ray(const LaunchParams params, uint i) {
    int x, y;
    pixel_of_ray(params, i, &x, &y);
    return make_sampler((uint)params.seed, (uint)(y * params.width + x), (uint)params.sample_index);
}

// The state of a path between two stages. `origin` and the unit `direction` are its next ray in world space. origin.w:
// time in the shutter interval, 0 to 1. direction.w: pdf per solid angle with which the BSDF sampled the direction, or
// DELTA_PDF. throughput.xyz: product of the weights so far; radiance.xyz: gathered so far. throughput.w and radiance.w
// encode the medium the path is in (raytracing/volumes/media.h).
typedef struct {
    float4 origin, direction, throughput, radiance;
#if LIGHT_PASSES
    GLOBAL float *record;  // the ray's light passes (film/light_passes.h)
#endif
} Path;

// Adds `radiance`, which arrives along the path's ray number `depth` (0: the camera ray), times the throughput and the
// MIS weight `weight`, scaled for the medium (seen_throughput of volumes/media.h). `group` is the light group of the
// radiance (film/light_passes.h). Returns the added radiance.
DEVICE float3 add_radiance(const LaunchParams params, int depth, Path *path, float3 radiance, float weight, int group) {
    float3 unclamped = seen_throughput(path->throughput) * radiance * weight;
    float4 contribution = clamp_contribution(params, depth, with_w(unclamped, 0.0f));
    path->radiance = with_w(xyz(path->radiance) + xyz(contribution), path->radiance.w);
    add_to_passes(PASSES_OF(*path), PATH_LOBE, xyz(contribution), group);
    return xyz(contribution);
}

// Returns a path's radiance plus the contribution of an unoccluded shadow ray; w is kept.
DEVICE float4 add_contribution(float4 radiance, float4 contribution) {
    return with_w(xyz(radiance) + xyz(contribution), radiance.w);
}

// Starts the path of pixel (x, y): samples a point of the pixel (dimensions 0 and 1), of the lens (2 and 3) and, with
// MOTION, the time in the shutter interval (4). Where the projection has no ray, the throughput is 0.
DEVICE Path start_path(const LaunchParams params, int x, int y, Sampler sampler) {
    float sx = fma(2.0f / (float)params.width, (float)x + get_1d(sampler, 0), -1.0f);
    float sy = fma(-2.0f / (float)params.height, (float)y + get_1d(sampler, 1), 1.0f);
    float3 origin, direction;
    bool has_ray = camera_ray(params, sx, sy, &origin, &direction);
    if (params.lens_radius > 0.0f) {  // thin lens: towards the pixel's point on the focal plane
        float radius = sqrt(get_1d(sampler, 2)) * params.lens_radius;
        float2 phi = cos_sin_2pi(get_1d(sampler, 3));
        float3 zero = make_float3(0.0f, 0.0f, 0.0f), right = normalize_fma(xyz(params.right)),
               up = normalize_fma(xyz(params.up));
        float3 offset = madd(up, radius * phi.y, madd(right, radius * phi.x, zero));
        origin = madd(offset, 1.0f, origin);
        direction = madd(offset, -1.0f, madd(direction, params.focus_distance, zero));
    }
    Path path = {with_w(origin, MOTION ? get_1d(sampler, 4) : 0.0f), with_w(normalize_fma(direction), DELTA_PDF),
                 make_float4(1.0f, 1.0f, 1.0f, 1.0f), make_float4(0.0f, 0.0f, 0.0f, 0.0f)};
    if (!has_ray) path.throughput = make_float4(0.0f, 0.0f, 0.0f, 1.0f);  // w: the index of refraction
    return path;
}

// Returns the radiance of a path whose ray number `depth` leaves the scene. A medium does not absorb light there: an
// open mesh encloses none. escaped_radiance has the MIS weight.
DEVICE float4 add_escaped_radiance(const LaunchParams params, int depth, GLOBAL const float4 *lights, Path path) {
    float3 radiance = escaped_radiance(params, lights, xyz(path.direction), path.direction.w, ALL_GROUPS);
    float3 added = add_radiance(params, depth, &path, radiance, 1.0f, ALL_GROUPS);
#if LIGHT_GROUPS  // each group gets its fraction of the clamped radiance
    for (int group = 0; group < LIGHT_GROUPS; group++) {
        float3 part = escaped_radiance(params, lights, xyz(path.direction), path.direction.w, group);
        add_to_pass(path.record, LIGHT_PASSES + group, added * fraction3(part, radiance));
    }
#endif
    return path.radiance;
}

// Russian roulette after a path's ray number `depth`: returns false if the path ends. Else divides *throughput by the
// probability with which it continues, the largest channel of `weight` (ROULETTE_WEIGHT in lights/guide.h), which keeps
// the estimate unbiased.
DEVICE bool survives_roulette(const LaunchParams params, int depth, Sampler sampler, float3 weight,
                              float4 *throughput) {
    if (depth + 1 < params.rr_depth) return true;
    float probability = clamp(largest_of3(weight), 0.05f, 1.0f);
    if (get_1d(sampler, (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 3u) >= probability) return false;
    *throughput = with_w(xyz(*throughput) * (1.0f / probability), throughput->w);
    return true;
}

// Returns the origin of a shadow ray moved by t_min along its direction: beyond the surface, if the ray crosses it
// (ShadowRay in lights/lights.h).
DEVICE float4 shadow_ray_origin(float4 origin, float4 direction, float t_min) {
    return SHADOW_RAYS_CROSS ? with_w(madd(xyz(direction), t_min, xyz(origin)), origin.w) : origin;
}
