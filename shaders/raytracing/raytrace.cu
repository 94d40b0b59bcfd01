// Path tracing: the main program of the ray tracer. Three schedules of the same work give the same bits;
// renderer/raytracing/schedules.py chooses and launches one of them for each sample of the picture:
//     wavefront   the paths of a depth side by side (S. Laine, T. Karras and T. Aila 2013). GPUs run depth 0 in one
//                 launch (first_bounce.h) and all later depths in another, whose groups pack their active rays before
//                 each stage (bounces.h); other devices, and views of the stages, launch one kernel a stage
//                 (wavefront.h). GPUs run it for large pictures of many primitives.
//     megakernel  one launch runs all stages. A warp traces the 32 paths of a stencil word through all depths with the
//                 paths in registers, and stops when the word is 0. CPUs, where one thread traces the paths of four
//                 words (fused_scalar.h), and GPUs without a ballot run it.
//     regenerate  one launch; threads whose path ends start another (regeneration, V. Frolov and V. Galaktionov 2016).
//                 GPUs run it for small pictures and scenes of few primitives.
// A stencil is the bit mask of active rays (stencil.h). Ray i is pixel i % 32 of block i / 32; blocks are 8 x 4 pixels,
// so a 32-bit word of the stencil is one block of the picture. The path state is Path in path.h. Out of a sample: the
// film (film/film.h), to which every kernel adds the radiance of the paths that end in it.
//
// renderer/raytracing/kernels.py generates the text before this file: the types LaunchParams (LAUNCH_PARAMS there tells
// the fields) and Material (MATERIAL of materials.py), and the dispatch over all materials (surface.h).
//
// It also sets the macros below for the files of this folder, 1 where they hold and 0 where not, unless stated:
//     SPHERES, INSTANCES, DISTANCE_FIELDS   the scene has spheres, instances; the number of its distance fields
//     MOTION, DEFORMS        shapes move while the shutter is open; their vertices do, not only their matrices
//     BVH8                   the BVH has the layout of bvh/traverse_bvh8.h
//     TEXTURED               textures or vertex attributes; with it: SURFACE_TEXTURES (of color, roughness or
//                            metallic), NORMAL_MAPS, FLOAT_TEXTURES (texels of floats), TEXTURE_TRANSFORMS (of
//                            coordinates), SPHERE_TEXTURES, ALPHA_TEST (a material has holes), UV_SETS (the number of
//                            sets of texture coordinates), FLOAT4S_PER_PRIMITIVE (the size of a record of vertex
//                            attributes)
//     CONDUCTOR, GLASS, METALLIC, PRINCIPLED   a material of the scene is of this kind (@optional in surface.h)
//     CLEARCOAT, SHEEN, IRIDESCENCE, ANISOTROPY, TRANSMISSION, DIFFUSE_TRANSMISSION   lobes of a principled material
//     REFRACTION, MEDIA, DISPERSION, SCATTERING   surfaces enclose a medium that refracts, absorbs, disperses, scatters
//     UNLIT, SHADOW_CATCHER  a material declares @unlit, @shadow_catcher
//     SHADOW_RAYS_CROSS      BSDFs transmit light that next-event estimation samples
//     GLASS_TABLE            the albedo table of rough dielectrics is compiled (microfacet.h)
//     VOLUMES, EQUIANGULAR   fog or volumes; points on rays are sampled for point lights too (volumes/equiangular.h)
//     NON_AREA_LIGHTS, ENVIRONMENT, INSTANCED_LIGHTS, LIGHT_TREE, LIGHT_PROFILES   lights/light_rows.h
//     CAUSTICS, CAUSTIC_MESHES, GUIDING   lights/caustics.h, lights/mesh_caustics.h, lights/guide.h
//     LIGHT_PASSES, LIGHT_GROUPS   numbers of passes, 0 for none (film/light_passes.h)
//     DIRECT_LIGHTING        how lights are sampled: DIRECT_BSDF 0, DIRECT_MIS 1 or DIRECT_NEE 2
//     WHITTED                the integrator is Whitted's: paths end at the first surface that is not specular
//     CLAMP_INDIRECT         indirect light is clamped (clamp_contribution.h)
//     FILM                   the film keeps the variance (film/film.h)
//     PROJECTION, LENS_SHIFT the camera's projection (camera.h); the film is shifted
//     SAMPLER                1: Sobol points, 0: independent random numbers (sampler.h)
//     SCHEDULE, STENCIL, PART   which schedule, representation of the stencil and kernels: see below, stencil.h and
//                            wavefront.h. WORDS_PER_WARP: words of the stencil that a warp handles in turn, 1 or 4
//     REGENERATE_AT_MOST     0: active paths of a warp at which it starts new ones (regenerate)
//     SCALAR_THREADS         the device is a CPU: one thread traces packets of 32 paths, from WORDS_PER_THREAD (4)
//                            words of the stencil. VECTOR_MATERIALS: and all materials can be shaded eight at a time
//     SAMPLE_IN_MEMORY       begin_sample.h
//     LIGHT_PICKS            the program is light_picks.cu
// Macros of other files: ATTACH_PASSES, PASSES_OF, PATH_LOBE, SHADOW_LOBE (raytracing/film/light_passes.h); AT_SAMPLE,
// SAMPLE_PARAMS (raytracing/begin_sample.h); ROULETTE_WEIGHT (raytracing/lights/guide.h). Macros of
// renderer/raytracing/kernels.py (at the top of this file): CAUSTICS, DIRECT_BSDF, DIRECT_LIGHTING, DISPERSION,
// DISTANCE_FIELDS, EQUIANGULAR, GUIDING, INSTANCES, MEDIA, NORMAL_MAPS, REFRACTION, REGENERATE_AT_MOST, SCALAR_THREADS,
// SCATTERING, SCHEDULE, SHADOW_CATCHER, SPHERES, TEXTURED, UNLIT, VECTOR_MATERIALS, VOLUMES, WHITTED.
#include "raytracing/bend_normals.h"
#include "raytracing/scene.h"
#include "raytracing/camera.h"
#include "raytracing/lights/lights.h"
#include "raytracing/volumes/media.h"
#include "raytracing/film/film.h"
#include "raytracing/path.h"
#include "raytracing/schedules/stencil.h"

#define SCHEDULE_WAVEFRONT 0
#define SCHEDULE_REGENERATE 1
#define SCHEDULE_MEGAKERNEL 2
#define SCHEDULE_NONE 3  // no kernels: only aovs.cu and light_picks.cu call the functions
#define WAVELENGTH_DIMENSION 7u  // the sampler's dimension, one a path
#define MAX_DEPTHS 16  // depths whose active rays are counted for the report; deeper ones are not

#if VOLUMES
#include "raytracing/volumes/shade_volume.h"
#else  // stand-ins for a scene without volumes
#define VOLUME_BASE 0x7fffffff  // above every Hit.primitive
#define collide(params, depth, sampler, lights, origin, direction, hit)
#define attenuate(params, depth, sampler, lights, origin, shadow)
#define shade_volume(params, depth, sampler, hit, path, shadow, scene) false
#endif
#if SCATTERING
#include "raytracing/volumes/random_walk.h"
#else
#define walk_medium(params, depth, sampler, path, hit, scene) false
#endif

// Returns the closest hit of a path's ray number `depth`: a surface, or a collision in a volume before it. A path in a
// medium that scatters light walks through it first.
DEVICE Hit path_hit(const LaunchParams params, int depth, Sampler sampler, Path *path, SCENE_PARAMS) {
    Hit hit = scene_closest_hit(GEOMETRY_ARGS, path->origin, xyz(path->direction));
    if (walk_medium(params, depth, sampler, path, &hit, SCENE_ARGS)) return hit;
    collide(params, depth, sampler, lights, path->origin, path->direction, &hit);
    return hit;
}

#if CAUSTICS
#include "raytracing/lights/caustics.h"
#else
#define add_caustic(params, depth, sampler, m, s, path, scene)
#define chain_pdf(params, lights, path, s, hit, before, out, geometry) (out).pdf
#define chain_weight_of_hit(params, path, s, hit, cosine, scene) 0.0f
#endif

#if SHADOW_CATCHER
#include "raytracing/catch_shadows.h"
#else
#define shade_shadow_catcher(params, s, sampler, dimension, path, shadow, scene) false
#endif

// VECTOR_SHADING: CPUs shade eight neighboring hits at once (packets/shade_simd8.h). LEAVES_CATCHERS: that code leaves
// only shadow catchers to shade_hit, so materials and lights stay out of shade_hit, and the program compiles in a fifth
// less time.
#define VECTOR_SHADING \
    (!WHITTED && !INSTANCES && !DISTANCE_FIELDS && !VOLUMES && !GUIDING && !LIGHT_PASSES && !CAUSTICS)
#define FUSED_SCALAR (SCHEDULE == SCHEDULE_MEGAKERNEL && SCALAR_THREADS && HAS_MOVEMASK)
#define LEAVES_CATCHERS \
    (FUSED_SCALAR && VECTOR_SHADING && VECTOR_MATERIALS && !(TEXTURED && NORMAL_MAPS) && !SPHERES && !REFRACTION)

// Adds the emission of the surface s, of material m, that a path's ray number `depth` has hit.
DEVICE void add_emission(const LaunchParams params, int depth, Material m, const Surface s, const Hit hit, Path *path,
                         SCENE_PARAMS) {
    if (UNLIT && is_unlit(m)) add_radiance(params, depth, path, base_color(m), 1.0f, m.light_group);
    if (!s.front_face || !(m.emission.w > 0.0f)) return;
    float bsdf_pdf = path->direction.w, light_pdf = 0.0f;
    if (s.in_light_table) {
        Primitive p = primitive_of(GEOMETRY_ARGS, hit);
        float cosine = -dot_fma(geometric_normal(s), s.ray_direction);
        float probability = hit_light_probability(params, lights, primitives, hit, xyz(path->origin), &p);
        // next-event estimation samples lights by their records without textures, so not by m
        light_pdf = area_light_pdf(params, p, materials[s.material], probability, xyz(path->origin), hit.t, cosine);
        if (CAUSTICS) m.emission = m.emission * (1.0f - chain_weight_of_hit(params, *path, s, hit, cosine, SCENE_ARGS));
    }
    add_radiance(params, depth, path, xyz(m.emission), mis_weight_bsdf(bsdf_pdf, light_pdf), m.light_group);
}

// Samples a light for the surface s, of material m, into `shadow`, whose ray starts at path->origin; `depth` is the
// number of the ray that hit s. With CAUSTICS also adds the light of one chain to the path.
DEVICE void sample_shadow_ray(const LaunchParams params, int depth, Sampler sampler, const Material m, const Surface s,
                              Path *path, ShadowRay *shadow, SCENE_PARAMS) {
    uint dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 4u;
    add_caustic(params, depth, sampler, m, s, path, SCENE_ARGS);
    shadow->valid = sample_direct(params, m, s, xyz(path->origin), !WHITTED, SCENE_ARGS, sampler, dimension, shadow);
    if (!shadow->valid) return;
    float3 throughput = light_throughput(materials, m, s, path->throughput, path->radiance, shadow->direction);
    shadow->contribution = with_w(throughput * xyz(shadow->contribution), shadow->contribution.w);
    attenuate(params, depth, sampler, lights, path->origin, shadow);
    shadow->contribution = clamp_contribution(params, depth + 1, shadow->contribution);
    // the group is set with LIGHT_PASSES alone (film/light_passes.h); the pdf 1 stands for a lobe that is no delta
    if (LIGHT_PASSES) set_lobe(PASSES_OF(*path), SHADOW_LOBE, m, s, xyz(shadow->direction), 1.0f, shadow->group);
}

// Shades the hit of a path's ray number `depth`: adds the emission, samples a light into `shadow`, and samples the next
// ray into *path. Returns true if the path continues. packets/shade_simd8.h does the same for eight paths that hit
// triangles of some materials, and must give the same bits: on CPUs a sample of the Cornell box takes 38 ms with it and
// 126 ms without. Change both together.
DEVICE bool shade_hit(const LaunchParams params, int depth, Sampler sampler, const Hit hit, Path *path,
                      ShadowRay *shadow, SCENE_PARAMS) {
    if (MEDIA && !in_scattering_medium(materials, path->radiance))
        path->throughput = path->throughput * medium_transmittance(materials, path->radiance, hit.t);
    if (VOLUMES && hit.primitive >= VOLUME_BASE)
        return shade_volume(params, depth, sampler, hit, path, shadow, SCENE_ARGS);
    float3 ray_direction = xyz(path->direction);
    float bsdf_pdf = path->direction.w;
    Surface s = surface_at(GEOMETRY_ARGS, hit, path->origin, ray_direction);
    Material m = material_at(GEOMETRY_ARGS, materials, s);
    bend_normals(&s, m);
    find_guide(guide, m, geometric_normal(s), &s);  // sets s.guide, s.guided (lights/guide.h)
    if (SHADOW_CATCHER && is_shadow_catcher(m)) {
        uint first = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE;
        return shade_shadow_catcher(params, s, sampler, first, path, shadow, SCENE_ARGS) &&
               depth + 1 < params.max_depth;
    }
    shadow->valid = false;
#if LEAVES_CATCHERS
    return false;
#else
    if (DISPERSION) set_wavelength(&m, &s, path->radiance, get_1d(sampler, WAVELENGTH_DIMENSION));
    add_emission(params, depth, m, s, hit, path, SCENE_ARGS);
    uint dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE;
    BsdfSample out;
    bool last_bounce = depth + 1 >= params.max_depth;
    bool continues = sample_bsdf(m, s, sampler, dimension, &out) && on_geometric_side(s, out.direction, out.transmits);
    bool non_delta = !material_is_delta(m, s);
    path->origin = offset_ray_origin(s, continues && out.transmits, path->origin.w);
    // A light sample makes the path one ray longer, which max_depth limits; Whitted's integrator does not count it.
    if (non_delta && DIRECT_LIGHTING != DIRECT_BSDF && params.light_count > 0 && (WHITTED || !last_bounce))
        sample_shadow_ray(params, depth, sampler, m, s, path, shadow, SCENE_ARGS);
    if (non_delta && WHITTED) {  // in place of indirect light: the unoccluded background along the normal
        if (continues) add_radiance(params, depth, path, out.weight * background(params, s.normal), 1.0f, ALL_GROUPS);
        continues = false;
    }
    if (!continues || last_bounce) return false;
    // with CAUSTICS, which chain a delta lobe follows; else out.pdf
    out.pdf = chain_pdf(params, lights, *path, s, hit, bsdf_pdf, out, GEOMETRY_ARGS);
    path->direction = with_w(out.direction, out.pdf);
    float4 throughput = path->throughput * with_w(out.weight, 1.0f);
    if (!survives_roulette(params, depth, sampler, ROULETTE_WEIGHT(throughput, out.unguided), &throughput))
        return false;
    path->throughput = throughput;
    set_lobe(PASSES_OF(*path), PATH_LOBE, m, s, out.direction, out.pdf, 0);
    if (out.transmits) cross_surface(m, s, &path->throughput, &path->radiance);
    return true;
#endif
}

#if EQUIANGULAR
#include "raytracing/shade_segment.h"

// Shades a path's hit as shade_hit does, and samples the light that point lights scatter along the ray's segment before
// it.
DEVICE bool shade_path(const LaunchParams params, int depth, Sampler sampler, const Hit hit, Path *path,
                       ShadowRay *shadow, SCENE_PARAMS) {
    Path before_hit = *path;
    bool continues = false;
    shadow->valid = false;
    if (hit.primitive == ESCAPED)
        path->radiance = add_escaped_radiance(params, depth, lights, before_hit);
    else
        continues = shade_hit(params, depth, sampler, hit, path, shadow, SCENE_ARGS);
    shadow->origin = path->origin;
    sample_segment(params, depth, sampler, hit, before_hit, shadow, materials, lights);
    return continues;
}

#define SHADOW_ORIGIN(path, shadow) (shadow).origin
#else
#define shade_path shade_hit
#define SHADOW_ORIGIN(path, shadow) (path).origin
#endif

// Traces a path's ray number `depth` and shades what it hits. Returns true if the path continues; *shadow becomes the
// shadow ray, which is not valid if there is none.
DEVICE bool trace_and_shade(const LaunchParams params, int depth, Sampler sampler, Path *path, ShadowRay *shadow,
                            SCENE_PARAMS) {
    Hit hit = path_hit(params, depth, sampler, path, SCENE_ARGS);
    shadow->valid = false;
    if (hit.primitive >= 0) return shade_path(params, depth, sampler, hit, path, shadow, SCENE_ARGS);
    path->radiance = add_escaped_radiance(params, depth, lights, *path);
    return false;
}

// Traces a shadow ray and adds its contribution to the path's radiance if it is unoccluded.
DEVICE void connect_path(Path *path, const ShadowRay shadow, GEOMETRY_PARAMS) {
    float t_min = shadow.valid ? shadow.contribution.w : 0.0f;
    float4 origin = shadow_ray_origin(SHADOW_ORIGIN(*path, shadow), shadow.direction, t_min);
    if (shadow.valid && !scene_any_hit(GEOMETRY_ARGS, origin, xyz(shadow.direction), shadow.direction.w)) {
        path->radiance = add_contribution(path->radiance, shadow.contribution);
        add_shadow_to_passes(PASSES_OF(*path), xyz(shadow.contribution));
    }
}

#include "raytracing/begin_sample.h"

#if SCHEDULE == SCHEDULE_WAVEFRONT
#include "raytracing/schedules/wavefront.h"
#elif SCHEDULE == SCHEDULE_REGENERATE
// Each thread keeps its path in registers, and starts the path of another ray when it ends. A warp takes new rays when
// at most REGENERATE_AT_MOST of its paths are active. counts[0] is the next ray; counts[1 + depth] receives the number
// of rays traced at each depth.
KERNEL regenerate(SAMPLE_PARAMS, GLOBAL uint *counts, FILM_PARAMS, SCENE_PARAMS) {
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
#if HAS_BALLOT  // idle lanes take consecutive rays by one atomic addition
        uint idle = ~ballot(active);
        if (rays_left && 32u - popcount(idle) <= REGENERATE_AT_MOST) {
            uint first_ray = 0;
            if (lane_index() == 0) first_ray = atomic_add(&counts[0], popcount(idle));
            first_ray = warp_shuffle(first_ray, 0);
            i = first_ray + popcount(idle & ((1u << lane_index()) - 1u));
            rays_left = first_ray + popcount(idle) < (uint)params.ray_count;
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
            ATTACH_PASSES(path, i, 0);
            depth = 0;
            active = true;
        }
#if HAS_BALLOT
        if (ballot(active) == 0 && !rays_left) break;
#else
        if (!active && !rays_left) break;
#endif
        if (!active) continue;
        if (depth < MAX_DEPTHS) atomic_add(&by_depth[depth], 1u);
        ShadowRay shadow;
        active = trace_and_shade(params, depth++, sampler, &path, &shadow, SCENE_ARGS);
        connect_path(&path, shadow, GEOMETRY_ARGS);
        if (!active) add_sample(AT_SAMPLE(params), x, y, path.radiance, FILM_ARGS);
    }
    BARRIER();
    if (local_index() < MAX_DEPTHS && by_depth[local_index()])
        atomic_add(&counts[1 + local_index()], by_depth[local_index()]);
}

#elif FUSED_SCALAR
#include "raytracing/schedules/fused_scalar.h"
#elif SCHEDULE == SCHEDULE_MEGAKERNEL
// The stencil word stays in a register from stage to stage. active_masks[MAX_DEPTHS * word + depth] receives it for
// each depth below MAX_DEPTHS, for the picture's report of active rays.
KERNEL megakernel(SAMPLE_PARAMS, GLOBAL uint *active_masks, FILM_PARAMS, SCENE_PARAMS) {
    STENCIL_LOCAL(scratch);
    FOR_EACH_STENCIL_WORD(i) {
        int x, y;
        bool was_active = pixel_of_ray(params, i, &x, &y) && needs_sample(AT_SAMPLE(params), x, y, FILM_ARGS);
        bool active = was_active;
        Sampler sampler = sampler_of_ray(AT_SAMPLE(params), i);
        uint word = ballot_word(active, scratch), lane_word = 0;
        Path path = start_path(params, x, y, sampler);
        ATTACH_PASSES(path, i, 0);
        for (int depth = 0; depth < params.max_depth; depth++) {
#if HAS_BALLOT
            if (word == 0) break;
            if (lane_index() == (uint)depth)
                lane_word = word;  // lane k keeps the word of depth k, for one store at the end
#else
            if (lane_index() == 0 && depth < MAX_DEPTHS) active_masks[MAX_DEPTHS * (i >> 5) + (uint)depth] = word;
#endif
            ShadowRay shadow;
            shadow.valid = false;
            active = active && trace_and_shade(params, depth, sampler, &path, &shadow, SCENE_ARGS);
            connect_path(&path, shadow, GEOMETRY_ARGS);
            word = ballot_word(active, scratch);
        }
#if HAS_BALLOT
        if (lane_index() < MAX_DEPTHS) active_masks[MAX_DEPTHS * (i >> 5) + lane_index()] = lane_word;
#endif
        if (was_active) add_sample(AT_SAMPLE(params), x, y, path.radiance, FILM_ARGS);
    }
}

#endif
