// Path tracing by three schedules of the same work, which give the same bits:
//     wavefront   one launch a stage (S. Laine, T. Karras and T. Aila 2013) behind the stencil of active rays:
//                 generate; for every depth trace, shade, connect; accumulate (wavefront.h). What GPUs run for
//                 large pictures of many primitives: rays are packed anew for each stage.
//     megakernel  one launch runs all stages. A warp traces the 32 paths of a stencil word through all depths with the
//                 paths in registers and stops when the word is 0. On devices without warps (SCALAR_THREADS) one thread
//                 traces the word (fused_scalar.h). What CPUs, and GPUs without a ballot, run.
//     regenerate  one launch; threads that end a path start the next (regeneration, V. Frolov and V. Galaktionov 2016).
//                 What GPUs run for small pictures and scenes of few primitives.
// Ray i is pixel i % 32 of block i / 32; blocks are 8 x 4 pixels, so a word of the stencil is one block of the picture.
// The text that includes this file defines the types LaunchParams and Material, and sample_bsdf and eval_bsdf_pdf
// (kernels.py).
#include "raytracing/scene.h"
#include "raytracing/camera.h"
#include "raytracing/lights.h"
#include "raytracing/media.h"
#if VOLUMES
#include "raytracing/volumes.h"
#endif
#include "raytracing/film.h"
#include "raytracing/stencil.h"

#define SCHEDULE_WAVEFRONT 0
#define SCHEDULE_REGENERATE 1
#define SCHEDULE_MEGAKERNEL 2
#define SCHEDULE_NONE 3  // no kernels: for those of other files, which use the functions
#define DIMENSIONS_PER_BOUNCE 8u  // 0-2: BSDF, 3: Russian roulette, 4-6: light
#define WAVELENGTH_DIMENSION 7u  // of the path
#define MAX_DEPTHS 16

// The pixel of ray i in the whole picture; false for rays that only pad the last blocks.
DEVICE bool pixel_of_ray(const LaunchParams params, uint i, int *x, int *y) {
    int block = (int)(i >> 5);
    int column = (block % params.blocks_x) * 8 + (int)(i & 7u),
        row = (block / params.blocks_x) * 4 + (int)((i >> 3) & 3u);
    *x = params.tile_x + column;
    *y = params.tile_y + row;
    return column < params.tile_width && row < params.tile_height;
}

DEVICE Sampler sampler_of_ray(const LaunchParams params, uint i) {
    int x, y;
    pixel_of_ray(params, i, &x, &y);
    return make_sampler((uint)params.seed, (uint)(y * params.width + x), (uint)params.sample_index);
}

// A path between two stages. origin.w: time in the shutter interval, 0 to 1. direction.w: the pdf with which the
// direction was sampled, or DELTA_PDF. throughput.w and radiance.w: the medium the path is in (raytracing/media.h).
typedef struct {
    float4 origin, direction, throughput, radiance;
} Path;

// What a path adds to its radiance at its ray `depth`, from 0. Emission that ray 2 or a later one finds, and shadow
// rays from the second surface on, are indirect light: their largest channel is at most params.clamp_indirect.
DEVICE float4 clamp_contribution(const LaunchParams params, int depth, float4 contribution) {
#if CLAMP_INDIRECT
    float largest = largest_of3(xyz(contribution));
    if (depth > 1 && largest > params.clamp_indirect)
        return with_w(xyz(contribution) * (params.clamp_indirect / largest), contribution.w);
#endif
    return contribution;
}

// Adds radiance that the path's ray `depth` finds, times a MIS weight.
DEVICE void add_radiance(const LaunchParams params, int depth, Path *path, float3 radiance, float weight) {
    float3 found = seen_throughput(path->throughput) * radiance * weight;
    float4 contribution = clamp_contribution(params, depth, with_w(found, 0.0f));
    path->radiance = with_w(xyz(path->radiance) + xyz(contribution), path->radiance.w);
}

// Adds the contribution of an unoccluded shadow ray.
DEVICE float4 add_contribution(float4 radiance, float4 contribution) {
    return with_w(xyz(radiance) + xyz(contribution), radiance.w);
}

DEVICE Path start_path(const LaunchParams params, int x, int y, Sampler sampler) {
    float sx = fma(2.0f / (float)params.width, (float)x + get_1d(sampler, 0), -1.0f);
    float sy = fma(-2.0f / (float)params.height, (float)y + get_1d(sampler, 1), 1.0f);
    float3 origin, direction;
    bool has_ray = camera_ray(params, sx, sy, &origin, &direction);
    if (params.lens_radius > 0.0f) {  // thin lens: from a point of the lens to the pixel's point on the plane of focus
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
    if (!has_ray) path.throughput = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    return path;
}

// The radiance of a path whose ray `depth` leaves the scene. No medium absorbs there: a mesh with holes holds none.
DEVICE float4 add_escaped_radiance(const LaunchParams params, int depth, GLOBAL const float4 *lights, Path path) {
    float3 radiance = escaped_radiance(params, lights, xyz(path.direction), path.direction.w);
    add_radiance(params, depth, &path, radiance, 1.0f);
    return path.radiance;
}

#if VOLUMES
#include "raytracing/shade_volume.h"
#endif

// The closest hit of a path's ray: a surface, or a collision in a volume before it.
DEVICE Hit path_hit(const LaunchParams params, int depth, Sampler sampler, float4 origin, float4 direction,
                    SCENE_PARAMS, GLOBAL const float4 *lights) {
    Hit hit = scene_closest_hit(SCENE_ARGS, origin, xyz(direction));
#if VOLUMES
    collide(params, depth, sampler, lights, origin, direction, &hit);
#endif
    return hit;
}

DEVICE float4 shadow_ray_origin(float4 origin, float4 direction, float t_min) {
    return SHADOW_RAYS_CROSS ? with_w(madd(xyz(direction), t_min, xyz(origin)), origin.w) : origin;
}

#if SHADOW_CATCHER
#include "raytracing/catch_shadows.h"
#endif

// Whether CPUs shade eight neighboring hits at once (shade_simd8.h), and whether they leave nothing to shade_hit but
// shadow catchers: its materials and lights then stay out of the program, which takes a fifth less time to compile.
#define VECTOR_SHADING (!WHITTED && !INSTANCES && !DISTANCE_FIELDS && !VOLUMES && !GUIDING)
#define FUSED_SCALAR (SCHEDULE == SCHEDULE_MEGAKERNEL && SCALAR_THREADS && HAS_MOVEMASK)
#define LEAVES_CATCHERS \
    (FUSED_SCALAR && VECTOR_SHADING && VECTOR_MATERIALS && !(TEXTURED && NORMAL_MAPS) && !SPHERES && !REFRACTION)

// Shades the hit of a path: adds emission, samples a light into `shadow`, and continues the path; false if it ends
// here. shade_simd8.h does the same for eight paths on triangles of some materials, and must give the same bits: on
// CPUs a sample of the Cornell box takes 38 ms with it and 126 ms without. Change both together.
DEVICE bool shade_hit(const LaunchParams params, int depth, Sampler sampler, const Hit hit, Path *path,
                      ShadowRay *shadow, SCENE_PARAMS, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
#if MEDIA
    path->throughput = path->throughput * medium_transmittance(materials, path->radiance, hit.t);
#endif
#if VOLUMES
    if (hit.primitive >= VOLUME_BASE)
        return shade_volume(params, depth, sampler, hit, path, shadow, SCENE_ARGS, materials, lights);
#endif
    float3 ray_direction = xyz(path->direction);
    float bsdf_pdf = path->direction.w;
    Surface s = surface_at(SCENE_ARGS, hit, path->origin, ray_direction);
    Material m = material_at(SCENE_ARGS, materials, s);
#if TEXTURED
    bend_normals(&s, m);
#endif
#if GUIDING
    find_guide(guide, m, geometric_normal(s), &s);
#endif
#if SHADOW_CATCHER
    if (m.kind == SHADOW_CATCHER) {
        uint first = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE;
        return shade_shadow_catcher(params, s, sampler, first, path, shadow, SCENE_ARGS, materials, lights) &&
               depth + 1 < params.max_depth;
    }
#endif
    shadow->valid = false;
#if LEAVES_CATCHERS
    return false;
#else
#if DISPERSION
    set_wavelength(&m, &s, path->radiance, get_1d(sampler, WAVELENGTH_DIMENSION));
#endif
#if UNLIT
    if (m.kind == MATERIAL_UNLIT) add_radiance(params, depth, path, base_color(m), 1.0f);
#endif
    if (s.front_face && m.emission.w > 0.0f) {
        float light_pdf = 0.0f;
        if (s.in_light_table) {
            Primitive p = primitive_of(SCENE_ARGS, hit);
            float cosine = -dot_fma(geometric_normal(s), s.ray_direction), probability = 1.0f;
#if LIGHT_TREE
            probability = hit_light_probability(params, lights, primitives, hit, xyz(path->origin), &p);
#endif
            light_pdf = area_light_pdf(params, p, materials[s.material], probability, xyz(path->origin), hit.t, cosine);
        }
        add_radiance(params, depth, path, xyz(m.emission), mis_weight_bsdf(bsdf_pdf, light_pdf));
    }
    uint dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE;
    BsdfSample out;
    out.pdf = DELTA_PDF;
    bool last_bounce = depth + 1 >= params.max_depth;
    bool continues = sample_bsdf(m, s, sampler, dimension, &out) && on_geometric_side(s, out.direction, out.transmits);
    bool non_delta = out.pdf >= 0.0f || (TRANSMISSION && !WHITTED && m.kind == MATERIAL_PRINCIPLED);
    path->origin = offset_ray_origin(s, continues && out.transmits, path->origin.w);
    if (non_delta && DIRECT_LIGHTING != DIRECT_BSDF && params.light_count > 0 && (WHITTED || !last_bounce)) {
        shadow->valid = sample_direct(params, m, s, xyz(path->origin), !WHITTED, lights, SCENE_ARGS, materials, sampler,
                                      dimension + 4, shadow);
        if (shadow->valid) {
            float3 throughput = light_throughput(materials, m, s, path->throughput, path->radiance, shadow->direction);
            shadow->contribution = with_w(throughput * xyz(shadow->contribution), shadow->contribution.w);
#if VOLUMES
            attenuate(params, depth, sampler, lights, path->origin, shadow);
#endif
            shadow->contribution = clamp_contribution(params, depth + 1, shadow->contribution);
        }
    }
    if (non_delta &&
        WHITTED) {  // in the place of indirect light: the background in the direction of the normal, unoccluded
        if (continues) add_radiance(params, depth, path, out.weight * background(params, s.normal), 1.0f);
        continues = false;
    }
    if (!continues || last_bounce) return false;
    path->direction = with_w(out.direction, out.pdf);
    float4 throughput = path->throughput * with_w(out.weight, 1.0f);
    if (depth + 1 >= params.rr_depth) {  // Russian roulette; dividing by the probability keeps the estimate unbiased
        float survival_probability = clamp(largest_of3(ROULETTE_WEIGHT(throughput, out.unguided)), 0.05f, 1.0f);
        if (get_1d(sampler, dimension + 3) >= survival_probability) return false;
        throughput = with_w(xyz(throughput) * (1.0f / survival_probability), throughput.w);
    }
    path->throughput = throughput;
#if REFRACTION
    if (out.transmits) cross_surface(m, s, &path->throughput, &path->radiance);
#endif
    return true;
#endif
}

#if EQUIANGULAR
#include "raytracing/shade_segment.h"
#define SHADOW_ORIGIN(path, shadow) (shadow).origin
#else
#define shade_path shade_hit
#define SHADOW_ORIGIN(path, shadow) (path).origin
#endif

#include "raytracing/begin_sample.h"

#if SCHEDULE == SCHEDULE_WAVEFRONT
#include "raytracing/wavefront.h"
#elif SCHEDULE == SCHEDULE_REGENERATE
// A thread keeps its path in registers and starts the next pixel's when it ends. A warp takes new pixels when at most
// REGENERATE_BELOW of its paths are active. counts: the next ray, then the active rays by depth.
KERNEL regenerate(SAMPLE_PARAMS, GLOBAL uint *counts, FILM_PARAMS, SCENE_PARAMS, GLOBAL const Material *materials,
                  GLOBAL const float4 *lights) {
    LOCAL_ARRAY(uint, by_depth, MAX_DEPTHS);
    if (local_index() < MAX_DEPTHS) by_depth[local_index()] = 0;
    BARRIER();
    bool active = false, rays_left = true;
    int x = 0, y = 0, depth = 0;
    Sampler sampler = {0, 0};
    Path path;
    while (true) {
        uint i = 0;
        bool starts = false;
#if HAS_BALLOT
        uint idle = ~ballot(active);
        if (rays_left && 32u - popcount(idle) <= REGENERATE_BELOW) {
            uint base = 0;
            if (lane_index() == 0) base = atomic_add(&counts[0], popcount(idle));
            base = warp_shuffle(base, 0);
            i = base + popcount(idle & ((1u << lane_index()) - 1u));
            rays_left = base + popcount(idle) < (uint)params.ray_count;
            starts = !active && i < (uint)params.ray_count;
        }
#else
        if (!active) {
            i = atomic_add(&counts[0], 1u);
            rays_left = i < (uint)params.ray_count;
            starts = rays_left;
        }
#endif
        if (starts && pixel_of_ray(params, i, &x, &y) && needs_sample(AT_SAMPLE(params), x, y, FILM_ARGS)) {
            sampler = sampler_of_ray(AT_SAMPLE(params), i);
            path = start_path(params, x, y, sampler);
            depth = 0;
            active = true;
        }
#if HAS_BALLOT
        if (ballot(active) == 0 && !rays_left) break;
#else
        if (!active && !rays_left) break;
#endif
        if (!active) continue;
        atomic_add(&by_depth[depth], 1u);
        Hit hit = path_hit(params, depth, sampler, path.origin, path.direction, SCENE_ARGS, lights);
        if (hit.primitive < 0) {
            path.radiance = add_escaped_radiance(params, depth, lights, path);
            active = false;
        } else {
            ShadowRay shadow;
            active = shade_path(params, depth, sampler, hit, &path, &shadow, SCENE_ARGS, materials, lights);
            float4 origin = shadow_ray_origin(SHADOW_ORIGIN(path, shadow), shadow.direction,
                                              shadow.valid ? shadow.contribution.w : 0.0f);
            if (shadow.valid && !scene_any_hit(SCENE_ARGS, origin, xyz(shadow.direction), shadow.direction.w))
                path.radiance = add_contribution(path.radiance, shadow.contribution);
            depth++;
        }
        if (!active) add_sample(AT_SAMPLE(params), x, y, path.radiance, FILM_ARGS);
    }
    BARRIER();
    if (local_index() < MAX_DEPTHS && by_depth[local_index()])
        atomic_add(&counts[1 + local_index()], by_depth[local_index()]);
}

#elif FUSED_SCALAR
#include "raytracing/fused_scalar.h"
#elif SCHEDULE == SCHEDULE_MEGAKERNEL
// The stencil words go from stage to stage in a register. active_masks[16 * word + depth] is written for the picture's
// report.
KERNEL megakernel(SAMPLE_PARAMS, GLOBAL uint *active_masks, FILM_PARAMS, SCENE_PARAMS, GLOBAL const Material *materials,
                  GLOBAL const float4 *lights) {
    STENCIL_LOCAL(scratch);
    FOR_EACH_STENCIL_WORD(i) {
        int x, y;
        bool was_active = pixel_of_ray(params, i, &x, &y) && needs_sample(AT_SAMPLE(params), x, y, FILM_ARGS);
        bool active = was_active;
        Sampler sampler = sampler_of_ray(AT_SAMPLE(params), i);
        uint word = ballot_word(active, scratch), lane_word = 0;
        Path path = start_path(params, x, y, sampler);
        for (int depth = 0; depth < params.max_depth; depth++) {
#if HAS_BALLOT
            if (word == 0) break;
            if (lane_index() == (uint)depth)
                lane_word = word;  // lane k keeps the word of depth k, for one store at the end
#else
            if (lane_index() == 0) active_masks[MAX_DEPTHS * (i >> 5) + (uint)depth] = word;
#endif
            ShadowRay shadow;
            shadow.valid = false;
            if (active) {
                Hit hit = path_hit(params, depth, sampler, path.origin, path.direction, SCENE_ARGS, lights);
                active = hit.primitive >= 0;
                if (active)
                    active = shade_path(params, depth, sampler, hit, &path, &shadow, SCENE_ARGS, materials, lights);
                else
                    path.radiance = add_escaped_radiance(params, depth, lights, path);
            }
            float4 origin = shadow_ray_origin(SHADOW_ORIGIN(path, shadow), shadow.direction,
                                              shadow.valid ? shadow.contribution.w : 0.0f);
            if (shadow.valid && !scene_any_hit(SCENE_ARGS, origin, xyz(shadow.direction), shadow.direction.w))
                path.radiance = add_contribution(path.radiance, shadow.contribution);
            word = ballot_word(active, scratch);
        }
#if HAS_BALLOT
        if (lane_index() < MAX_DEPTHS) active_masks[MAX_DEPTHS * (i >> 5) + lane_index()] = lane_word;
#endif
        if (was_active) add_sample(AT_SAMPLE(params), x, y, path.radiance, FILM_ARGS);
    }
}

#endif
