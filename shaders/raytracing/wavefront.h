// The stages of the wavefront: what each does for one ray, and its kernel.
// Programs of GPUs hold a part of the kernels each, so that they compile beside each other; those of CPUs hold all.
#define PART_ALL 0
#define PART_RAYS 1
#define PART_SHADE 2
#define PART_BOUNCES 3
#define HAS_PART(part) (PART == PART_ALL || PART == part)
#define FLOAT4S_PER_CONTRIBUTION (1 + EQUIANGULAR)  // behind a contribution the origin of its shadow ray
// The state of all paths and of their shadow rays between two stages.
#define PATH_PARAMS \
    GLOBAL float4 *origins, GLOBAL float4 *directions, GLOBAL float4 *throughputs, GLOBAL float4 *radiances
#define PATH_ARGS origins, directions, throughputs, radiances
#define SHADOW_PARAMS GLOBAL float4 *shadow_directions, GLOBAL float4 *shadow_contributions
#define SHADOW_ARGS shadow_directions, shadow_contributions

#if HAS_PART(PART_RAYS)
KERNEL generate(SAMPLE_PARAMS, FILM_PARAMS, GLOBAL uint *active_mask, PATH_PARAMS) {
    STENCIL_LOCAL(scratch);
    uint i = thread_index();
    int x, y;
    bool active = pixel_of_ray(params, i, &x, &y) && needs_sample(AT_SAMPLE(params), x, y, FILM_ARGS);
    Path path = start_path(params, x, y, sampler_of_ray(AT_SAMPLE(params), i));
    origins[i] = path.origin;
    directions[i] = path.direction;
    throughputs[i] = active ? path.throughput : make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    radiances[i] = path.radiance;
    set_active(active_mask, i, active, scratch);
}
#endif

// Stores what ray i hits; returns whether it does. If not, adds what it sees.
DEVICE bool keep_hit(const LaunchParams params, int depth, uint i, const Hit hit, PATH_PARAMS, GLOBAL float4 *hits,
                     GLOBAL const float4 *lights) {
    store_hit(hits, i, hit);
    if (hit.primitive >= 0) return true;
    Path path = {origins[i], directions[i], throughputs[i], radiances[i]};
    radiances[i] = add_escaped_radiance(params, depth, lights, path);
    if (STENCIL == STENCIL_OFF) throughputs[i] = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    return false;
}

// Shades hit i. Returns whether the path goes on, and whether it has a shadow ray.
DEVICE bool shade_ray(const LaunchParams params, int depth, Sampler sampler, uint i, bool *has_shadow_ray, PATH_PARAMS,
                      const Hit hit, SHADOW_PARAMS, SCENE_PARAMS, GLOBAL const Material *materials,
                      GLOBAL const float4 *lights) {
    Path path = {origins[i], directions[i], throughputs[i], radiances[i]};
    ShadowRay shadow;
    bool active = shade_path(params, depth, sampler, hit, &path, &shadow, SCENE_ARGS, materials, lights);
    *has_shadow_ray = shadow.valid;
    radiances[i] = path.radiance;
    if (active || shadow.valid) origins[i] = path.origin;
    if (active) directions[i] = path.direction;
    if (active) throughputs[i] = path.throughput;
    if (!active && STENCIL == STENCIL_OFF) throughputs[i] = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    if (shadow.valid) shadow_directions[i] = shadow.direction;
    if (shadow.valid) shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i] = shadow.contribution;
#if EQUIANGULAR
    if (shadow.valid) shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i + 1] = shadow.origin;
#endif
    return active;
}

// The origin and, in w, the time of shadow ray i.
DEVICE float4 origin_of_shadow(uint i, GLOBAL const float4 *origins, SHADOW_PARAMS) {
#if EQUIANGULAR
    float4 start = shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i + 1];
#else
    float4 start = origins[i];
#endif
    return shadow_ray_origin(start, shadow_directions[i], shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i].w);
}

DEVICE void connect_ray(uint i, SHADOW_PARAMS, GLOBAL float4 *radiances) {
    radiances[i] = add_contribution(radiances[i], shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i]);
}

#if HAS_PART(PART_RAYS)
KERNEL trace(SAMPLE_PARAMS, int depth, GLOBAL const uint *active_mask, GLOBAL uint *hit_mask, PATH_PARAMS,
             GLOBAL float4 *hits, SCENE_PARAMS, GLOBAL const float4 *lights) {
    STENCIL_LOCAL(scratch);
    FOR_EACH_STENCIL_WORD(slot) {
        uint i = ray_of(active_mask, slot);
        bool active = is_active(active_mask, slot);
        if (active) {
            Sampler sampler = sampler_of_ray(AT_SAMPLE(params), i);
            Hit hit = path_hit(params, depth, sampler, origins[i], directions[i], SCENE_ARGS, lights);
            active = keep_hit(params, depth, i, hit, PATH_ARGS, hits, lights);
        }
        set_active(hit_mask, i, active, scratch);
    }
}

KERNEL connect(SAMPLE_PARAMS, int depth, GLOBAL const uint *shadow_mask, PATH_PARAMS, SHADOW_PARAMS, SCENE_PARAMS,
               GLOBAL const float4 *lights) {
    FOR_EACH_STENCIL_WORD(slot) {
        if (!is_active(shadow_mask, slot)) continue;
        uint i = ray_of(shadow_mask, slot);
        float4 origin = origin_of_shadow(i, origins, SHADOW_ARGS), direction = shadow_directions[i];
        if (!scene_any_hit(SCENE_ARGS, origin, xyz(direction), direction.w)) connect_ray(i, SHADOW_ARGS, radiances);
    }
}

KERNEL accumulate(SAMPLE_PARAMS, GLOBAL const float4 *radiances, FILM_PARAMS) {
    uint i = thread_index();
    int x, y;
    if (pixel_of_ray(params, i, &x, &y) && needs_sample(AT_SAMPLE(params), x, y, FILM_ARGS))
        add_sample(AT_SAMPLE(params), x, y, radiances[i], FILM_ARGS);
}
#endif

#if HAS_PART(PART_SHADE)
KERNEL shade(SAMPLE_PARAMS, int depth, GLOBAL const uint *hit_mask, GLOBAL uint *active_mask, GLOBAL uint *shadow_mask,
             PATH_PARAMS, GLOBAL const float4 *hits, SHADOW_PARAMS, SCENE_PARAMS, GLOBAL const Material *materials,
             GLOBAL const float4 *lights) {
    STENCIL_LOCAL(scratch);
    FOR_EACH_STENCIL_WORD(slot) {
        uint i = ray_of(hit_mask, slot);
        bool active = is_active(hit_mask, slot), has_shadow_ray = false;
        Hit hit = {0.0f, 0.0f, 0.0f, -1};
        if (active) hit = stored_hit(hits, i);
        if (active && (STENCIL != STENCIL_OFF || hit.primitive >= 0))
            active = shade_ray(params, depth, sampler_of_ray(AT_SAMPLE(params), i), i, &has_shadow_ray, PATH_ARGS, hit,
                               SHADOW_ARGS, SCENE_ARGS, materials, lights);
        if (STENCIL == STENCIL_OFF && !has_shadow_ray)
            shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        set_active(active_mask, i, active, scratch);
        if (DIRECT_LIGHTING != DIRECT_BSDF) set_active(shadow_mask, i, has_shadow_ray, scratch);
    }
}
#endif

#if STENCIL == STENCIL_BITS && !SCALAR_THREADS && HAS_PART(PART_BOUNCES)
#include "raytracing/packed_stages.h"
#endif
