// The kernel `bounces` runs all stages of the wavefront's later depths in one launch, on GPUs with a stencil of bits
// (stencil.h). wavefront.h includes this file; renderer/raytracing/schedules.py launches the kernel for the depths from
// 1 on. A group owns WORDS_PER_GROUP words of the stencil, copies them to shared memory, and lists their active rays
// there, so that all lanes of its warps are busy, however few rays a word has. The words of a group are spread over the
// picture (GROUP_WORD), so that no group gets all the long paths. A listed ray is a 16-bit number within the group: 32
// * k + bit for its word k; RAY_OF gives its ray number.
// Macros of other files: AT_SAMPLE, SAMPLE_ARGS, SAMPLE_PARAMS (raytracing/begin_sample.h); GEOMETRY_ARGS, SCENE_ARGS,
// SCENE_PARAMS (raytracing/scene.h); STATE_ARGS, STATE_PARAMS (raytracing/schedules/wavefront.h). Macros of
// renderer/raytracing/kernels.py (see raytrace.cu): DIRECT_BSDF, DIRECT_LIGHTING, INSTANCES.
#define WORDS_PER_GROUP (GROUP_SIZE / 2)
#define GROUP_WORD(k) (group_index() + (k) * group_count())
#define RAY_OF(listed_ray) (32u * GROUP_WORD((listed_ray) >> 5) + ((listed_ray) & 31u))
#define GROUP_LIST                                     \
    LOCAL_ARRAY(ushort, listed, 32 * WORDS_PER_GROUP); \
    LOCAL_ARRAY(uint, counts, 2)  // number of rays in the list, number of rays taken from it

// Lists the active rays of the group's words, half a word a thread, and returns their number. All threads of the group
// call it.
DEVICE uint list_rays(LOCAL const uint *words, LOCAL uint *counts, LOCAL ushort *listed) {
    uint first_ray = 16u * local_index(), bits = words[first_ray >> 5] >> (first_ray & 31u) & 0xffffu;
    if (local_index() < 2) counts[local_index()] = 0;
    BARRIER();
    uint next_index = bits ? atomic_add(&counts[0], popcount(bits)) : 0u;
    for (; bits; bits &= bits - 1u) {
        uint lowest = 31u - (uint)clz(bits & (0u - bits));  // the index of the lowest bit that is set
        listed[next_index++] = (ushort)(first_ray + lowest);
    }
    BARRIER();
    return counts[0];
}

// Sets the bit of a listed ray in the group's words.
DEVICE void set_bit(LOCAL uint *words, uint listed_ray) {
    atomic_or(&words[listed_ray >> 5], 1u << (listed_ray & 31u));
}

#if HAS_BALLOT && !INSTANCES
// Keeps the closest hit of a listed ray in the static BVH, or with `is_shadow` connects the ray if nothing is hit.
DEVICE void finish_listed(SAMPLE_PARAMS, int depth, bool is_shadow, uint listed_ray, float4 origin, float4 direction,
                          Hit best, LOCAL uint *hit_words, STATE_PARAMS, SCENE_PARAMS) {
    uint i = RAY_OF(listed_ray);
    if (is_shadow) {
        if (best.primitive < 0 && !any_field_or_instance(GEOMETRY_ARGS, origin, xyz(direction), direction.w))
            connect_ray(i, STATE_ARGS, SCENE_ARGS);
        return;
    }
    hit_fields_and_instances(GEOMETRY_ARGS, origin, xyz(direction), &best);
    if (!walk_ray(SAMPLE_ARGS, depth, i, &best, STATE_ARGS, SCENE_ARGS))
        collide(params, depth, sampler_of_ray(AT_SAMPLE(params), i), lights, origin, direction, &best);
    if (keep_hit(params, depth, i, best, STATE_ARGS, SCENE_ARGS)) set_bit(hit_words, listed_ray);
}
#endif

// Traces the `count` listed rays and sets the bits of rays that hit, or with `is_shadow` traces their shadow rays and
// adds the unoccluded contributions.
DEVICE void trace_listed(SAMPLE_PARAMS, int depth, bool is_shadow, uint count, LOCAL uint *counts,
                         LOCAL const ushort *listed, LOCAL uint *hit_words, STATE_PARAMS, SCENE_PARAMS) {
#if HAS_BALLOT && !INSTANCES  // trace_queue.h traces rays in the static BVH; it explains the macros QUEUE_...
#define QUEUE_COUNT count
#define QUEUE_NEXT &counts[1]
#define QUEUE_ANY_HIT is_shadow
#define QUEUE_LOAD                                                     \
    uint i = RAY_OF(listed[queue_index]);                              \
    origin = is_shadow ? origin_of_shadow(i, STATE_ARGS) : origins[i]; \
    direction = is_shadow ? shadow_directions[i] : directions[i];      \
    best.t = is_shadow ? direction.w : FLT_MAX;
#define QUEUE_FINISH                                                                                                  \
    finish_listed(SAMPLE_ARGS, depth, is_shadow, listed[queue_index], origin, direction, best, hit_words, STATE_ARGS, \
                  SCENE_ARGS);
#include_again "bvh/trace_queue.h"
#else
    for (uint k = local_index(); k < count; k += GROUP_SIZE) {
        uint i = RAY_OF(listed[k]);
        if (is_shadow)
            trace_shadow_ray(i, STATE_ARGS, SCENE_ARGS);
        else if (trace_ray(SAMPLE_ARGS, depth, i, STATE_ARGS, SCENE_ARGS))
            set_bit(hit_words, listed[k]);
    }
#endif
}

// Shades the hits of the `count` listed rays; sets the bits of the paths that continue and of those with a shadow ray.
DEVICE void shade_listed(SAMPLE_PARAMS, int depth, uint count, LOCAL const ushort *listed, LOCAL uint *active_words,
                         LOCAL uint *shadow_words, STATE_PARAMS, SCENE_PARAMS) {
    for (uint k = local_index(); k < count; k += GROUP_SIZE) {
        bool has_shadow_ray;
        if (shade_ray(SAMPLE_ARGS, depth, RAY_OF(listed[k]), &has_shadow_ray, STATE_ARGS, SCENE_ARGS))
            set_bit(active_words, listed[k]);
        if (has_shadow_ray) set_bit(shadow_words, listed[k]);
    }
}

// Load, clear and store: copies the group's words from the stencil into shared memory; clears them there; copies them
// back.
DEVICE void load_words(GLOBAL const uint *stencil, LOCAL uint *words) {
    if (local_index() < WORDS_PER_GROUP) words[local_index()] = stencil[GROUP_WORD(local_index())];
    BARRIER();
}
DEVICE void clear_words(LOCAL uint *words) {
    if (local_index() < WORDS_PER_GROUP) words[local_index()] = 0;
}
DEVICE void store_words(LOCAL const uint *words, GLOBAL uint *stencil) {
    if (local_index() < WORDS_PER_GROUP) stencil[GROUP_WORD(local_index())] = words[local_index()];
}

// Runs the stages of all depths from `first_depth` on: no group waits for another one, and no stage is launched for few
// rays. `active_mask` is the stencil of active rays at first_depth; later_masks[depth * words + word] receives the
// stencils of all depths, for the report.
KERNEL bounces(SAMPLE_PARAMS, int first_depth, GLOBAL const uint *active_mask, GLOBAL uint *later_masks, STATE_PARAMS,
               SCENE_PARAMS) {
    GROUP_LIST;
    LOCAL_ARRAY(uint, active_words, WORDS_PER_GROUP);
    LOCAL_ARRAY(uint, hit_words, WORDS_PER_GROUP);
    LOCAL_ARRAY(uint, shadow_words, WORDS_PER_GROUP);
    load_words(active_mask, active_words);
    for (int depth = first_depth; depth < params.max_depth; depth++) {
        uint count = list_rays(active_words, counts, listed);
        store_words(active_words, later_masks + (size_t)depth * WORDS_PER_GROUP * group_count());
        clear_words(active_words);
        clear_words(hit_words);
        clear_words(shadow_words);
        BARRIER();
        trace_listed(SAMPLE_ARGS, depth, false, count, counts, listed, hit_words, STATE_ARGS, SCENE_ARGS);
        BARRIER();
        count = list_rays(hit_words, counts, listed);
        shade_listed(SAMPLE_ARGS, depth, count, listed, active_words, shadow_words, STATE_ARGS, SCENE_ARGS);
        BARRIER();
        if (DIRECT_LIGHTING == DIRECT_BSDF) continue;
        count = list_rays(shadow_words, counts, listed);
        trace_listed(SAMPLE_ARGS, depth, true, count, counts, listed, hit_words, STATE_ARGS, SCENE_ARGS);
        BARRIER();
    }
}
