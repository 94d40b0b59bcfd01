// Schedule "fused" where threads have no warp: one keeps the 32 paths of a word of the stencil from the camera to their ends, so
// that their state never leaves its cache. Rays of a tile that go the same way walk together, and eight neighbours that have hit
// diffuse triangles are shaded at once. Included by raytracing/raytrace.cu.
#include "raytracing/path_packet.h"

#define EVEN_TILES (!WHITTED && !INSTANCES && !FIELDS && !TEXTURED)
#if EVEN_TILES
#include "raytracing/shade_diffuse_simd8.h"
#endif

DEVICE_CALLED uint start_tile(const View view, uint first, Tile *tile, FRAME_TAKEN) {
    uint living = 0;
    for (uint j = 0; j < 32u; j++) {
        Key key = key_of(view, first + j);
        tile->seeds[j] = key.seed;
        tile->sample = key.sample;
    }
    deal_samples(tile->seeds, tile->sample, 0, tile->numbers);
    for (uint j = 0; j < 32u; j++) {
        int x, y;
        if (!pixel_of(view, first + j, &x, &y) || !is_noisy(view, x, y, FRAME_GIVEN)) continue;
        Path path = start_path(view, x, y, dealt_key(tile, j));
        put_path(tile, j, path);
        put_colour(tile->radiance, j, path.radiance);
        living |= 1u << j;
    }
    return living;
}

// Shades what the living paths have hit; those that go on come back, and in `lit` those that ask for light.
DEVICE_CALLED uint shade_tile(const View view, int depth, Tile *tile, uint living, uint *lit, SCENE_TAKEN, GLOBAL const Material *materials,
                       GLOBAL const float4 *lights) {
    uint left = living;
    *lit = 0;
    deal_samples(tile->seeds, tile->sample, (uint)(depth + 1) * DIMENSIONS, tile->numbers);
#if EVEN_TILES
    for (uint begin = 0; begin < 32u; begin += 8u) {
        uint members = living >> begin & 255u, aims = 0;
        if (!members) continue;
        uint goes_on = shade_diffuse(view, depth, tile, begin, &members, &aims, SCENE_GIVEN, materials, lights);
        left &= ~(members << begin);
        living &= ~(members << begin) | goes_on << begin;
        *lit |= aims << begin;
    }
#endif
    for (; left; left &= left - 1u) {
        uint j = lowest_bit(left);
        Hit hit = packet_hit_at(&tile->rays, j);
        Path path = path_of(tile, j);
        bool goes_on = false;
        if (hit.primitive < 0) {
            path.radiance = with_sky(view, lights, path);
        } else {
            LightRay light;
            goes_on = shade_path(view, depth, dealt_key(tile, j), hit, &path, &light, SCENE_GIVEN, materials, lights);
            if (goes_on) put_path(tile, j, path);
            if (light.wanted) put_shadow(tile, j, path.origin, light);
            if (light.wanted) *lit |= 1u << j;
        }
        put_colour(tile->radiance, j, path.radiance);
        if (!goes_on) living &= ~(1u << j);
    }
    return living;
}

// living[16 * word + depth], as with warps.
KERNEL megakernel(const View view, GLOBAL uint *living_words, FRAME_TAKEN, SCENE_TAKEN, GLOBAL const Material *materials,
             GLOBAL const float4 *lights) {
    uint word = thread_index();
    Tile tile;
    uint living = start_tile(view, 32u * word, &tile, FRAME_GIVEN), all = living;
    for (int depth = 0; depth < view.depth; depth++) {
        living_words[16 * word + (uint)depth] = living;
        if (!living) continue;
        uint lit;
        find_packet(SCENE_GIVEN, &tile.rays, living, false);
        living = shade_tile(view, depth, &tile, living, &lit, SCENE_GIVEN, materials, lights);
        if (!lit) continue;
        find_packet(SCENE_GIVEN, &tile.shadows, lit, true);
        for (; lit; lit &= lit - 1u) {
            uint j = lowest_bit(lit);
            if (tile.shadows.prim_index.s[j] >= 0) continue;
            for (int k = 0; k < 3; k++) tile.radiance[k].s[j] += tile.brings[k].s[j];
        }
    }
    for (; all; all &= all - 1u) {
        uint j = lowest_bit(all);
        int x, y;
        pixel_of(view, 32u * word + j, &x, &y);
        add_sample(view, x, y, path_of(&tile, j).radiance, FRAME_GIVEN);
    }
}
