// The wavefront schedule: one kernel for each stage, and the functions for one ray that bounces.h uses too. Where GPUs
// draw by first_bounce.h and bounces.h, the kernels here serve the views of the stages. Included by
// raytracing/raytrace.cu; renderer/raytracing/schedules.py launches the kernels. All kernels take arrays of path states
// by ray (path.h) and a stencil, the mask of the rays that are active in the stage (stencil.h). A GPU's program holds
// only the kernels of its PART, so that programs compile in parallel; a CPU's program holds all.
// Macros of other files: AT_SAMPLE, SAMPLE_ARGS, SAMPLE_PARAMS (raytracing/begin_sample.h); FILM_ARGS, FILM_PARAMS
// (raytracing/film/film.h); ATTACH_PASSES, RECORD_OF (raytracing/film/light_passes.h); GEOMETRY_ARGS, SCENE_ARGS,
// SCENE_PARAMS (raytracing/scene.h); FOR_EACH_STENCIL_WORD, STENCIL_BITS, STENCIL_LOCAL, STENCIL_OFF
// (raytracing/schedules/stencil.h). Macros of renderer/raytracing/kernels.py (see raytrace.cu): DIRECT_BSDF,
// DIRECT_LIGHTING, EQUIANGULAR, SCALAR_THREADS, SCATTERING, STENCIL.
#define PART_ALL 0
#define PART_RAYS 1  // generate, trace, connect
#define PART_SHADE 2  // shade
#define PART_BOUNCES 3  // bounces
#define PART_FIRST 4  // first_bounce, accumulate, begin_sample
#define HAS_PART(part) (PART == PART_ALL || PART == part)
#define FLOAT4S_PER_CONTRIBUTION (1 + EQUIANGULAR)  // a shadow ray's contribution, then its origin
// The states of the paths between two stages, a float4 a ray each: Path (path.h), the hit (store_hit in scene.h; two
// float4 with INSTANCES), and the shadow ray (ShadowRay in lights/lights.h).
#define STATE_PARAMS                                                                                         \
    GLOBAL float4 *origins, GLOBAL float4 *directions, GLOBAL float4 *throughputs, GLOBAL float4 *radiances, \
        GLOBAL float4 *hits, GLOBAL float4 *shadow_directions, GLOBAL float4 *shadow_contributions
#define STATE_ARGS origins, directions, throughputs, radiances, hits, shadow_directions, shadow_contributions

#if HAS_PART(PART_RAYS)
// Stage 1: starts the paths of all rays whose pixel takes another sample, and sets the mask of these rays.
KERNEL generate(SAMPLE_PARAMS, FILM_PARAMS, GLOBAL uint *active_mask, STATE_PARAMS) {
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

// Stores the hit of ray i and returns true. For a miss, adds the background's radiance and returns false; without a
// stencil the path then ends by a throughput of 0.
DEVICE bool keep_hit(const LaunchParams params, int depth, uint i, const Hit hit, STATE_PARAMS, SCENE_PARAMS) {
    store_hit(hits, i, hit);
    if (hit.primitive >= 0) return true;
    Path path = {origins[i], directions[i], throughputs[i], radiances[i]};
    ATTACH_PASSES(path, i, depth);
    radiances[i] = add_escaped_radiance(params, depth, lights, path);
    if (STENCIL == STENCIL_OFF) throughputs[i] = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    return false;
}

#if SCATTERING
// Walks through the medium that ray i's path is in (random_walk.h), and stores the path. Returns true if there was a
// walk.
DEVICE bool walk_ray(SAMPLE_PARAMS, int depth, uint i, Hit *hit, STATE_PARAMS, SCENE_PARAMS) {
    Path path = {origins[i], directions[i], throughputs[i], radiances[i]};
    if (!walk_medium(params, depth, sampler_of_ray(AT_SAMPLE(params), i), &path, hit, SCENE_ARGS)) return false;
    origins[i] = path.origin;
    directions[i] = path.direction;
    throughputs[i] = path.throughput;
    return true;
}
#else
#define walk_ray(sample, depth, i, hit, state, scene) false
#endif

// Finds the closest hit of ray i: a surface, or a collision in a volume. Returns false for a miss.
DEVICE bool trace_ray(SAMPLE_PARAMS, int depth, uint i, STATE_PARAMS, SCENE_PARAMS) {
    Sampler sampler = sampler_of_ray(AT_SAMPLE(params), i);
    Hit hit = scene_closest_hit(GEOMETRY_ARGS, origins[i], xyz(directions[i]));
    if (!walk_ray(SAMPLE_ARGS, depth, i, &hit, STATE_ARGS, SCENE_ARGS))
        collide(params, depth, sampler, lights, origins[i], directions[i], &hit);
    return keep_hit(params, depth, i, hit, STATE_ARGS, SCENE_ARGS);
}

// Shades the hit of ray i and stores the path state and the shadow ray. Returns true if the path continues;
// *has_shadow_ray becomes true if there is a shadow ray to trace.
DEVICE bool shade_ray(SAMPLE_PARAMS, int depth, uint i, bool *has_shadow_ray, STATE_PARAMS, SCENE_PARAMS) {
    Hit hit = stored_hit(hits, i);
    if (STENCIL == STENCIL_OFF && hit.primitive < 0) return false;
    Path path = {origins[i], directions[i], throughputs[i], radiances[i]};
    ATTACH_PASSES(path, i, depth);
    ShadowRay shadow;
    Sampler sampler = sampler_of_ray(AT_SAMPLE(params), i);
    bool active = shade_path(params, depth, sampler, hit, &path, &shadow, SCENE_ARGS);
    *has_shadow_ray = shadow.valid;
    radiances[i] = path.radiance;
    if (active || shadow.valid) origins[i] = path.origin;
    if (active) directions[i] = path.direction;
    if (active) throughputs[i] = path.throughput;
    if (!active && STENCIL == STENCIL_OFF) throughputs[i] = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    if (shadow.valid) shadow_directions[i] = shadow.direction;
    if (shadow.valid) shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i] = shadow.contribution;
    if (EQUIANGULAR && shadow.valid) shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i + 1] = shadow.origin;
    return active;
}

// Returns the origin of ray i's shadow ray; w is its time in the shutter interval.
DEVICE float4 origin_of_shadow(uint i, STATE_PARAMS) {
    float4 origin = EQUIANGULAR ? shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i + 1] : origins[i];
    return shadow_ray_origin(origin, shadow_directions[i], shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i].w);
}

// Adds the contribution of ray i's unoccluded shadow ray to the path's radiance.
DEVICE void connect_ray(uint i, STATE_PARAMS, SCENE_PARAMS) {
    radiances[i] = add_contribution(radiances[i], shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i]);
    // 1 stands for any depth but 0, at which RECORD_OF begins the path's record
    add_shadow_to_passes(RECORD_OF(i, 1), xyz(shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i]));
}

// Traces ray i's shadow ray, and connects it if it is unoccluded.
DEVICE void trace_shadow_ray(uint i, STATE_PARAMS, SCENE_PARAMS) {
    float4 origin = origin_of_shadow(i, STATE_ARGS), direction = shadow_directions[i];
    if (!scene_any_hit(GEOMETRY_ARGS, origin, xyz(direction), direction.w)) connect_ray(i, STATE_ARGS, SCENE_ARGS);
}

#if HAS_PART(PART_RAYS)
// Stage 2 of a depth: traces the active rays; `hit_mask` receives the rays that hit a surface or collide in a volume.
KERNEL trace(SAMPLE_PARAMS, int depth, GLOBAL const uint *active_mask, GLOBAL uint *hit_mask, STATE_PARAMS,
             SCENE_PARAMS) {
    STENCIL_LOCAL(scratch);
    FOR_EACH_STENCIL_WORD(slot) {
        uint i = ray_of(active_mask, slot);
        bool hits_surface = is_active(active_mask, slot) && trace_ray(SAMPLE_ARGS, depth, i, STATE_ARGS, SCENE_ARGS);
        set_active(hit_mask, i, hits_surface, scratch);
    }
}

// Stage 4 of a depth: traces the shadow rays in `shadow_mask` and adds the contributions of the unoccluded ones.
KERNEL connect(SAMPLE_PARAMS, int depth, GLOBAL const uint *shadow_mask, STATE_PARAMS, SCENE_PARAMS) {
    FOR_EACH_STENCIL_WORD(slot) {
        if (is_active(shadow_mask, slot)) trace_shadow_ray(ray_of(shadow_mask, slot), STATE_ARGS, SCENE_ARGS);
    }
}
#endif

#if HAS_PART(PART_FIRST)
// Last stage: adds the radiance of the paths in `mask` to the film; without a stencil the pixels that rest are left out
// here.
KERNEL accumulate(SAMPLE_PARAMS, GLOBAL const uint *mask, GLOBAL const float4 *radiances, FILM_PARAMS) {
    uint slot = thread_index(), i = ray_of(mask, slot);
    int x, y;
    if (is_active(mask, slot) && pixel_of_ray(params, i, &x, &y) &&
        (STENCIL != STENCIL_OFF || needs_sample(AT_SAMPLE(params), x, y, FILM_ARGS)))
        add_sample(AT_SAMPLE(params), x, y, radiances[i], FILM_ARGS);
}
#endif

#if HAS_PART(PART_SHADE)
// Stage 3 of a depth: shades the hits in `hit_mask`. Sets `active_mask` to the paths that continue and `shadow_mask` to
// those with a shadow ray.
KERNEL shade(SAMPLE_PARAMS, int depth, GLOBAL const uint *hit_mask, GLOBAL uint *active_mask, GLOBAL uint *shadow_mask,
             STATE_PARAMS, SCENE_PARAMS) {
    STENCIL_LOCAL(scratch);
    FOR_EACH_STENCIL_WORD(slot) {
        uint i = ray_of(hit_mask, slot);
        bool has_shadow_ray = false;
        bool active =
            is_active(hit_mask, slot) && shade_ray(SAMPLE_ARGS, depth, i, &has_shadow_ray, STATE_ARGS, SCENE_ARGS);
        if (STENCIL == STENCIL_OFF && !has_shadow_ray)  // connect() then traces the shadow rays of all paths
            shadow_contributions[FLOAT4S_PER_CONTRIBUTION * i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        set_active(active_mask, i, active, scratch);
        if (DIRECT_LIGHTING != DIRECT_BSDF) set_active(shadow_mask, i, has_shadow_ray, scratch);
    }
}
#endif

#if STENCIL == STENCIL_BITS && !SCALAR_THREADS  // what GPUs launch by default
#include "raytracing/schedules/first_bounce.h"
#if HAS_PART(PART_BOUNCES)
#include "raytracing/schedules/bounces.h"
#endif
#endif
