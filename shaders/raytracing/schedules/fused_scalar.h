// The kernel `megakernel` on devices without warps, such as CPUs: one thread traces the paths of WORDS_PER_THREAD
// stencil words (stencil.h) from the camera to their ends, so that their state (PathPacket, packets/path_packet.h)
// stays in its cache. At each depth it packs the paths of all its words into packets of 32, and in a packet the paths
// that hit something: together 1.1 to 1.25 times the rate of a packet for each word. Included by
// raytracing/raytrace.cu. Coherent rays are traversed as a packet (bvh/traverse_packet.h), and eight neighboring paths
// are shaded at once (packets/shade_simd8.h): without this, a sample of the Cornell box takes 3.3 times as long. In the
// masks of this file bit j is path j of a packet.
// Macros of other files: FILM_ARGS, FILM_PARAMS (raytracing/film/film.h); ATTACH_PASSES, RECORD_OF
// (raytracing/film/light_passes.h); DIMENSIONS_PER_BOUNCE (raytracing/path.h); MAX_DEPTHS, SHADOW_ORIGIN,
// VECTOR_SHADING (raytracing/raytrace.cu); CACHE_PATHS (raytracing/sampler.h); GEOMETRY_ARGS, SCENE_ARGS, SCENE_PARAMS
// (raytracing/scene.h). Macros of renderer/raytracing/kernels.py and schedules.py (see raytrace.cu): ENVIRONMENT,
// LIGHT_PASSES, VOLUMES, WORDS_PER_THREAD.
#include "raytracing/packets/path_packet.h"

#define THREAD_PATHS (32 * WORDS_PER_THREAD)

#define VECTOR_ESCAPE (ENVIRONMENT && !VOLUMES && !LIGHT_PASSES)
#if VECTOR_SHADING || VECTOR_ESCAPE
#include "raytracing/packets/shade_simd8.h"
#endif

// Returns the mask of the first `count` paths of a packet.
DEVICE uint first_bits(uint count) { return count < 32u ? (1u << count) - 1u : 0xffffffffu; }

// Starts the paths of rays first .. first + 31. Returns the mask of the paths whose pixels take another sample.
DEVICE_NOINLINE_ALWAYS uint start_packet(const LaunchParams params, uint first, PathPacket *packet, FILM_PARAMS) {
    uint active = 0;
    for (uint j = 0; j < 32u; j++) {
        Sampler sampler = sampler_of_ray(params, first + j);
        packet->seeds[j] = sampler.seed;
        packet->ray[j] = first + j;
        packet->sample = sampler.sample;
    }
    cache_samples(packet->seeds, packet->sample, 0, CACHE_PATHS, packet->sample_cache);
    for (uint j = 0; j < 32u; j++) {
        int x, y;
        if (!pixel_of_ray(params, first + j, &x, &y) || !needs_sample(params, x, y, FILM_ARGS)) continue;
        Path path = start_path(params, x, y, packet_sampler(packet, j));
        packet_set_path(packet, j, path);
        set_float3_at(packet->radiance, j, xyz(path.radiance));
        active |= 1u << j;
    }
    return active;
}

// Shades the hits of the paths in *started, and adds the background to the paths that miss. Returns the mask of the
// paths that continue; *shadow_mask becomes the mask of the paths with a shadow ray. Hits are shaded in groups of
// eight; if packing leaves fewer groups with hits, first moves the paths that hit something to the front of the packet,
// the others behind them, and changes *started to their new places.
DEVICE_NOINLINE_ALWAYS uint shade_packet(const LaunchParams params, int depth, PathPacket *packet, uint *started,
                                         uint *shadow_mask, SCENE_PARAMS) {
    uint active = *started, hit_mask = 0, groups = 0;
    for (uint begin = 0; begin < 32u; begin += 8u) {
        uint hits = active >> begin & movemask8(packet->rays.prim_index.v8[begin >> 3] >= 0);
        hit_mask |= hits << begin;
        groups += hits ? 1u : 0u;
    }
    if (VECTOR_SHADING && 8u * groups >= popcount(hit_mask) + 8u) {
        // copy_paths(from, floats from row to row, paths to copy first, paths to copy behind them, to, floats)
        copy_paths(packet, 32, hit_mask, active & ~hit_mask, packet, 32);
        hit_mask = first_bits(popcount(hit_mask));
        *started = active = first_bits(popcount(active));
    }
    // escape8 needs no random numbers: the cache is filled up to the last path of the others
    uint remaining = active, sampled = VECTOR_ESCAPE ? hit_mask : active;
    *shadow_mask = 0;
    cache_samples(packet->seeds, packet->sample, (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE,
                  sampled ? 32u - (uint)clz(sampled) : 0u, packet->sample_cache);
#if VECTOR_SHADING || VECTOR_ESCAPE
    for (uint begin = 0; begin < 32u; begin += 8u) {
        uint lanes = active >> begin & 255u, escaped = lanes & movemask8(packet->rays.prim_index.v8[begin >> 3] < 0);
#if VECTOR_ESCAPE
        if (escaped) {
            escape8(params, depth, packet, begin, escaped, lights);
            remaining &= ~(escaped << begin);
            active &= ~(escaped << begin);
        }
#endif
#if VECTOR_SHADING
        uint hits = lanes & ~escaped, shadows = 0;
        if (!hits) continue;
        uint continues = shade_hits8(params, depth, packet, begin, &hits, &shadows, SCENE_ARGS);
        remaining &= ~(hits << begin);  // `hits` has become those it shaded; the loop below shades the rest
        active &= ~(hits << begin) | continues << begin;
        *shadow_mask |= shadows << begin;
#endif
    }
#endif
    FOR_EACH_BIT(j, remaining) {
        Hit hit = packet_hit_at(&packet->rays, j);
        Path path = packet_path(packet, j);
        ATTACH_PASSES(path, packet->ray[j], depth);
        if (!walk_medium(params, depth, packet_sampler(packet, j), &path, &hit, SCENE_ARGS))
            collide(params, depth, packet_sampler(packet, j), lights, path.origin, path.direction, &hit);
        bool continues = false;
        if (hit.primitive < 0) {
            path.radiance = add_escaped_radiance(params, depth, lights, path);
        } else {
            ShadowRay shadow;
            Sampler sampler = packet_sampler(packet, j);
            continues = shade_path(params, depth, sampler, hit, &path, &shadow, SCENE_ARGS);
            if (continues) packet_set_path(packet, j, path);
            if (shadow.valid) packet_set_shadow_ray(packet, j, SHADOW_ORIGIN(path, shadow), shadow);
            if (shadow.valid) *shadow_mask |= 1u << j;
        }
        set_float3_at(packet->radiance, j, xyz(path.radiance));
        if (!continues) active &= ~(1u << j);
    }
    return active;
}

// Traces one sample of the pixels of WORDS_PER_THREAD stencil words: depth by depth, the paths of all words packed, in
// packets of 32. active_masks[MAX_DEPTHS * word + depth] receives the mask of the active paths of a word at each depth, for the
// report.
KERNEL megakernel(const LaunchParams params, GLOBAL uint *active_masks, FILM_PARAMS, SCENE_PARAMS) {
    uint first_word = thread_index() * WORDS_PER_THREAD, path_count = THREAD_PATHS;
    // The paths that continue, packed: float j of a row of THREAD_PATHS floats is path j's; rows are as in PathPacket.
    Floats32 kept[PATH_ROWS][WORDS_PER_THREAD];
    PathPacket packet;
    for (int depth = 0; depth < params.max_depth; depth++) {
        uint words[WORDS_PER_THREAD] = {0}, continuing = 0;
        for (uint begin = 0; begin < path_count; begin += 32u) {
            uint started, active, shadow_mask;
            if (depth == 0) {
                started = start_packet(params, 32u * first_word + begin, &packet, FILM_ARGS);
            } else {
                started = first_bits(path_count - begin);
                copy_paths(kept[0][0].s + begin, THREAD_PATHS, started, 0, &packet, 32);
                for (int h = 0; h < 2; h++) packet.rays.t.v16[h] = (float16)(FLT_MAX);
            }
            if (!started) continue;
            FOR_EACH_BIT(j, started) words[(packet.ray[j] >> 5) - first_word] |= 1u << (packet.ray[j] & 31u);
            scene_packet_hits(GEOMETRY_ARGS, &packet.rays, started, false);
            active = shade_packet(params, depth, &packet, &started, &shadow_mask, SCENE_ARGS);
            if (shadow_mask) scene_packet_hits(GEOMETRY_ARGS, &packet.shadows, shadow_mask, true);
            FOR_EACH_BIT(j, shadow_mask) {
                if (packet.shadows.prim_index.s[j] >= 0) continue;
                for (int k = 0; k < 3; k++) packet.radiance[k].s[j] += packet.contribution[k].s[j];
                add_shadow_to_passes(RECORD_OF(packet.ray[j], 1), float3_at(packet.contribution, j));
            }
            if (depth + 1 == params.max_depth) active = 0;
            FOR_EACH_BIT(j, started & ~active) {
                int x, y;
                pixel_of_ray(params, packet.ray[j], &x, &y);
                add_sample(params, x, y, packet_path(&packet, j).radiance, FILM_ARGS);
            }
            // As continuing <= begin, only columns that were read at this depth are overwritten.
            if (active) copy_paths(&packet, 32, active, 0, kept[0][0].s + continuing, THREAD_PATHS);
            continuing += popcount(active);
        }
        for (uint w = 0; w < WORDS_PER_THREAD && depth < MAX_DEPTHS; w++)
            active_masks[MAX_DEPTHS * (first_word + w) + (uint)depth] = words[w];
        if (!continuing && depth >= MAX_DEPTHS) break;  // until then the loop stores zeros to active_masks
        path_count = continuing;
    }
}
