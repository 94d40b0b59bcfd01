// Schedule "fused" where threads have no warp: one keeps the 32 paths of a word of the stencil from the camera to their ends, so
// that their state never leaves its cache. Rays of a tile that go the same way walk together. Included by raytrace.cu.

typedef struct {
    Path paths[32];
    LightRay lights[32];
    uint sample, seeds[32];
    float numbers[8 * DEALT];
    Hit hits[32];
    Packet packet;
} Tile;

DEVICE Key dealt_key(const Tile *tile, uint j) {
    Key key = {tile->seeds[j], tile->sample, tile->numbers + j};
    return key;
}

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
        tile->paths[j] = start_path(view, x, y, dealt_key(tile, j));
        living |= 1u << j;
    }
    return living;
}

// Shades what the living paths have hit; those that go on come back, and in `lit` those that ask for light.
DEVICE_CALLED uint shade_tile(const View view, int depth, Tile *tile, uint living, uint *lit, SCENE_TAKEN, GLOBAL const Material *materials,
                       GLOBAL const float4 *lights) {
    *lit = 0;
    deal_samples(tile->seeds, tile->sample, (uint)(depth + 1) * DIMENSIONS, tile->numbers);
    for (uint rest = living; rest; rest &= rest - 1u) {
        uint j = lowest_bit(rest);
        Hit hit = tile->hits[j];
        bool goes_on = false;
        if (hit.primitive < 0) {
            tile->paths[j].radiance = with_sky(view, lights, tile->paths[j]);
        } else {
            goes_on = shade_path(view, depth, dealt_key(tile, j), hit, &tile->paths[j], &tile->lights[j], SCENE_GIVEN, materials, lights);
            if (tile->lights[j].wanted) *lit |= 1u << j;
        }
        if (!goes_on) living &= ~(1u << j);
    }
    return living;
}

// living[16 * word + depth], as with warps.
KERNEL fused(const View view, GLOBAL uint *living_words, FRAME_TAKEN, SCENE_TAKEN, GLOBAL const Material *materials,
             GLOBAL const float4 *lights) {
    uint word = thread_index();
    Tile tile;
    uint living = start_tile(view, 32u * word, &tile, FRAME_GIVEN), all = living;
    for (int depth = 0; depth < view.depth; depth++) {
        living_words[16 * word + (uint)depth] = living;
        if (!living) continue;
        uint lit = 0;
        for (int shadows = 0; shadows < 2; shadows++) {
            uint active = shadows ? lit : living;
            for (uint rest = active; rest; rest &= rest - 1u) {
                uint j = lowest_bit(rest);
                float4 direction = shadows ? tile.lights[j].direction : tile.paths[j].direction;
                float4 origin = tile.paths[j].origin;
                if (shadows) origin = light_origin(origin, direction, tile.lights[j].brings.w);
                put_ray(&tile.packet, j, origin, xyz(direction), shadows ? direction.w : INFINITE);
            }
            if (active) find_packet(SCENE_GIVEN, &tile.packet, active, shadows != 0, tile.hits);
            if (!shadows) living = shade_tile(view, depth, &tile, living, &lit, SCENE_GIVEN, materials, lights);
        }
        for (; lit; lit &= lit - 1u) {
            uint j = lowest_bit(lit);
            if (tile.hits[j].primitive < 0) tile.paths[j].radiance = tile.paths[j].radiance + tile.lights[j].brings;
        }
    }
    for (; all; all &= all - 1u) {
        uint j = lowest_bit(all);
        int x, y;
        pixel_of(view, 32u * word + j, &x, &y);
        add_sample(view, x, y, tile.paths[j].radiance, FRAME_GIVEN);
    }
}
