// The kernel `megakernel` on devices without warps, such as CPUs: one thread traces the 32 paths of a stencil word
// (stencil.h) from the camera to their ends, so that their state (PathPacket, packets/path_packet.h) stays in its
// cache. Included by raytracing/raytrace.cu. Coherent rays are traversed as a packet (bvh/traverse_packet.h), and eight
// neighboring paths are shaded at once (packets/shade_simd8.h): without this, a sample of the Cornell box takes 3.3
// times as long. In the masks of this file bit j is path j.
// Macros of other files: FILM_ARGS, FILM_PARAMS (raytracing/film/film.h); DIMENSIONS_PER_BOUNCE (raytracing/path.h);
// MAX_DEPTHS, SHADOW_ORIGIN, VECTOR_SHADING (raytracing/raytrace.cu); GEOMETRY_ARGS, SCENE_ARGS, SCENE_PARAMS
// (raytracing/scene.h). Macros of renderer/raytracing/kernels.py (a feature is 1 if the scene uses it, else 0):
// ENVIRONMENT, VOLUMES.
#include "raytracing/packets/path_packet.h"

#define VECTOR_ESCAPE (ENVIRONMENT && !VOLUMES && !LIGHT_PASSES)
#if VECTOR_SHADING || VECTOR_ESCAPE
#include "raytracing/packets/shade_simd8.h"
#endif

// Starts the paths of rays first .. first + 31. Returns the mask of the paths whose pixels take another sample.
DEVICE_NOINLINE_ALWAYS uint start_packet(const LaunchParams params, uint first, PathPacket *packet, FILM_PARAMS) {
    uint active = 0;
    for (uint j = 0; j < 32u; j++) {
        Sampler sampler = sampler_of_ray(params, first + j);
        packet->seeds[j] = sampler.seed;
        packet->sample = sampler.sample;
    }
    cache_samples(packet->seeds, packet->sample, 0, packet->sample_cache);
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

// Shades the hits of the paths in `active`, and adds the background to the paths that miss. Returns the mask of the
// paths that continue; *shadow_mask becomes the mask of the paths with a shadow ray.
DEVICE_NOINLINE_ALWAYS uint shade_packet(const LaunchParams params, int depth, uint first, PathPacket *packet,
                                         uint active, uint *shadow_mask, SCENE_PARAMS) {
    uint remaining = active;
    *shadow_mask = 0;
    cache_samples(packet->seeds, packet->sample, (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE, packet->sample_cache);
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
        remaining &= ~(hits << begin);
        active &= ~(hits << begin) | continues << begin;
        *shadow_mask |= shadows << begin;
#endif
    }
#endif
    for (; remaining; remaining &= remaining - 1u) {
        uint j = ctz(remaining);
        Hit hit = packet_hit_at(&packet->rays, j);
        Path path = packet_path(packet, j);
        ATTACH_PASSES(path, first + j, depth);
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

// Traces one sample of the 32 pixels of a stencil word. active_masks[16 * word + depth] receives the mask of the active
// paths at each depth, for the report.
KERNEL megakernel(const LaunchParams params, GLOBAL uint *active_masks, FILM_PARAMS, SCENE_PARAMS) {
    uint word = thread_index();
    PathPacket packet;
    uint active = start_packet(params, 32u * word, &packet, FILM_ARGS), started = active;
    for (int depth = 0; depth < params.max_depth; depth++) {
        if (depth < MAX_DEPTHS) active_masks[MAX_DEPTHS * word + (uint)depth] = active;
        if (!active && depth >= MAX_DEPTHS) break;
        if (!active) continue;
        uint shadow_mask;
        scene_packet_hits(GEOMETRY_ARGS, &packet.rays, active, false);
        active = shade_packet(params, depth, 32u * word, &packet, active, &shadow_mask, SCENE_ARGS);
        if (!shadow_mask) continue;
        scene_packet_hits(GEOMETRY_ARGS, &packet.shadows, shadow_mask, true);
        for (; shadow_mask; shadow_mask &= shadow_mask - 1u) {
            uint j = ctz(shadow_mask);
            if (packet.shadows.prim_index.s[j] >= 0) continue;
            for (int k = 0; k < 3; k++) packet.radiance[k].s[j] += packet.contribution[k].s[j];
#if LIGHT_PASSES
            add_shadow_to_passes(pass_record(passes, 32u * word + j, 1), float3_at(packet.contribution, j));
#endif
        }
    }
    for (; started; started &= started - 1u) {
        uint j = ctz(started);
        int x, y;
        pixel_of_ray(params, 32u * word + j, &x, &y);
        add_sample(params, x, y, packet_path(&packet, j).radiance, FILM_ARGS);
    }
}
