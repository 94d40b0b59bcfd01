// The wavefront's depth 0 in one launch: camera rays, closest hits, shading and shadow rays, with the paths in
// registers. Paths that end go straight to the film; only the states of paths that continue are stored, for the kernel
// `bounces` (bounces.h), after which `accumulate` adds these to the film. wavefront.h includes this file;
// renderer/raytracing/schedules.py launches the kernels. A launch for each stage would store and load the state of
// every ray: at 1920 x 1080 that takes an H200 0.28 ms a sample. Macros of other files: AT_SAMPLE, SAMPLE_PARAMS
// (raytracing/begin_sample.h); FILM_ARGS, FILM_PARAMS (raytracing/film/film.h); GEOMETRY_ARGS, SCENE_ARGS, SCENE_PARAMS
// (raytracing/scene.h); STENCIL_LOCAL (raytracing/schedules/stencil.h); HAS_PART, PART_FIRST, STATE_PARAMS
// (raytracing/schedules/wavefront.h).

#if HAS_PART(PART_FIRST)
// `next_mask` receives the stencil of the paths that continue at depth 1; `first_mask` the stencil of depth 0, which
// the picture's report counts.
KERNEL first_bounce(SAMPLE_PARAMS, FILM_PARAMS, GLOBAL uint *first_mask, GLOBAL uint *next_mask, STATE_PARAMS,
                    SCENE_PARAMS) {
    STENCIL_LOCAL(scratch);
    uint i = thread_index();
    int x, y;
    bool was_active = pixel_of_ray(params, i, &x, &y) && needs_sample(AT_SAMPLE(params), x, y, FILM_ARGS);
    bool continues = false;
    set_active(first_mask, i, was_active, scratch);
    if (was_active) {
        Sampler sampler = sampler_of_ray(AT_SAMPLE(params), i);
        Path path = start_path(params, x, y, sampler);
        ATTACH_PASSES(path, i, 0);
        ShadowRay shadow;
        continues = trace_and_shade(params, 0, sampler, &path, &shadow, SCENE_ARGS);
        connect_path(&path, shadow, GEOMETRY_ARGS);
        if (continues) {
            origins[i] = path.origin;
            directions[i] = path.direction;
            throughputs[i] = path.throughput;
            radiances[i] = path.radiance;
        } else {
            add_sample(AT_SAMPLE(params), x, y, path.radiance, FILM_ARGS);
        }
    }
    set_active(next_mask, i, continues, scratch);
}
#endif
