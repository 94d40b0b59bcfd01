// Path tracing by four schedules of the same work, which give the same bits:
//     grid        wavefront stages behind the stencil of active rays: generate; for every depth trace, shade, connect; accumulate
//     compact     the same over lists of the living rays, made from the stencil's bits
//     fused       the stages of the grid in one launch: a warp takes its words of the stencil through all depths, its paths
//                 in registers, and is done with a word as soon as that is empty; where threads are ALONE, one does (raytracing/fused_scalar.h)
//     regenerate  one launch in which threads start a new path when theirs ends
// Ray i is pixel i % 32 of tile i / 32; tiles are 8 x 4 pixels, so a word of the stencil is a small piece of the picture.
// The text that includes this file has the types View and Material and the functions scatter() and evaluate().
#include "raytracing/scene.h"
#include "raytracing/lights.h"
#include "raytracing/film.h"
#include "raytracing/stencil.h"
#include "common/scan.h"

#define DIMENSIONS 8u  // random numbers that one depth may use: 0-2 the material, 3 the roulette, 4-6 the light sample

// The pixel of the whole picture that ray i belongs to; false for rays that fill up the last tiles.
DEVICE bool pixel_of(const View view, uint i, int *x, int *y) {
    int tile = (int)(i >> 5);
    int across = (tile % view.tiles) * 8 + (int)(i & 7u), down = (tile / view.tiles) * 4 + (int)((i >> 3) & 3u);
    *x = view.left + across;
    *y = view.top + down;
    return across < view.across && down < view.down;
}

DEVICE Key key_of(const View view, uint i) {
    int x, y;
    pixel_of(view, i, &x, &y);
    return sampler_key((uint)view.seed, (uint)(y * view.width + x), (uint)view.sample);
}

// A path between two stages. direction.w is the density it was picked with, throughput.w is not used.
typedef struct {
    float4 origin, direction, throughput, radiance;
} Path;

// The direction through a point of the picture, each coordinate -1 to 1: as long as its part along the view is 1, or unit in
// a panorama, which is 360 degrees wide and 180 high.
DEVICE float3 view_direction(const View view, float sx, float sy) {
#if PANORAMA
    float2 around = cos_sin_2pi(fma(sx, 0.5f, sx < 0.0f ? 1.0f : 0.0f)), up = cos_sin_2pi(fma(sy, 0.25f, sy < 0.0f ? 1.0f : 0.0f));
    float3 level = madd(normalize_fma(xyz(view.right)), around.y, xyz(view.forward) * around.x);
    return normalize_fma(madd(normalize_fma(xyz(view.up)), up.y, level * up.x));
#else
    return madd(xyz(view.up), sy, madd(xyz(view.right), sx, xyz(view.forward)));
#endif
}

DEVICE Path start_path(const View view, int x, int y, Key key) {
    float sx = fma(2.0f / (float)view.width, (float)x + sample_at(key, 0), -1.0f);
    float sy = fma(-2.0f / (float)view.height, (float)y + sample_at(key, 1), 1.0f);
    float3 origin = xyz(view.eye), direction = view_direction(view, sx, sy);
    if (view.lens_radius > 0.0f) {  // a thin lens: from any of its points, through the same point of the plane in focus
        float radius = sqrt(sample_at(key, 2)) * view.lens_radius;
        float2 around = cos_sin_2pi(sample_at(key, 3));
        float3 still = make_float3(0.0f, 0.0f, 0.0f), across = normalize_fma(xyz(view.right)), upwards = normalize_fma(xyz(view.up));
        float3 offset = madd(upwards, radius * around.y, madd(across, radius * around.x, still));
        origin = madd(offset, 1.0f, origin);
        direction = madd(offset, -1.0f, madd(direction, view.focus_distance, still));
    }
    Path path;
    path.origin = with_w(origin, MOTION ? sample_at(key, 4) : 0.0f);  // the moment within the shutter
    path.direction = with_w(normalize_fma(direction), MIRRORED);
    path.throughput = make_float4(1.0f, 1.0f, 1.0f, 0.0f);
    path.radiance = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return path;
}

DEVICE float4 with_sky(const View view, GLOBAL const float4 *lights, const Path path) {
    float3 light = sky(view, lights, xyz(path.direction), path.direction.w);
    return path.radiance + path.throughput * with_w(light, 0.0f);
}

// Where a shadow ray begins.
DEVICE float4 light_origin(float4 origin, float4 direction, float skip) {
    return CROSSING ? with_w(madd(xyz(direction), skip, xyz(origin)), origin.w) : origin;
}

// Shades the hit of a path and picks where it goes on; false when it ends here.
DEVICE bool shade_path(const View view, int depth, Key key, const Hit hit, Path *path, LightRay *light,
                       SCENE_TAKEN, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    float4 came = path->direction, throughput = path->throughput;
    Surface s = surface_at(SCENE_GIVEN, hit, path->origin, xyz(came));
    Material m = material_at(SCENE_GIVEN, materials, s);
    light->wanted = false;
    if (s.front && m.emission.w > 0.0f) {
        float by_light = 0.0f;
        if (s.aimed) {
            Primitive p = primitive_of(SCENE_GIVEN, hit);
            by_light = density_of_hit(view, p, materials[s.material], xyz(path->origin), hit.t, -dot_fma(flat_normal(s), s.incoming));
        }
        path->radiance = path->radiance + throughput * m.emission * share_of_hit(came.w, by_light);
    }
    uint dimension = (uint)(depth + 1) * DIMENSIONS;
    Scatter out;
    out.density = MIRRORED;
    bool last = depth + 1 >= view.depth, goes_on = scatter(m, s, key, dimension, &out) && leaves_rightly(s, out.direction, out.through);
    bool rough = out.density >= 0.0f;
    path->origin = leave_surface(s, goes_on && out.through, path->origin.w);
    if (rough && LIGHTS != LIGHTS_HIT && view.light_count > 0 && (WHITTED || !last)) {
        light->wanted = aim_at_light(view, m, s, xyz(path->origin), !WHITTED, lights, SCENE_GIVEN, materials, key, dimension + 4,
                                     light);
        if (light->wanted) light->brings = with_w(xyz(throughput) * xyz(light->brings), light->brings.w);
    }
    if (rough && WHITTED) {  // the indirect light: the sky in the direction of the normal, unoccluded
        if (goes_on) path->radiance = path->radiance + throughput * with_w(out.weight * gradient(view, s.normal), 0.0f);
        goes_on = false;
    }
    if (!goes_on || last) return false;
    path->direction = with_w(out.direction, out.density);
    throughput = throughput * with_w(out.weight, 0.0f);
    if (depth + 1 >= view.roulette) {  // a dim path goes on by chance, and then for those that do not
        float lives = clamp(larger(larger(throughput.x, throughput.y), throughput.z), 0.05f, 1.0f);
        if (sample_at(key, dimension + 3) >= lives) return false;
        throughput = throughput * (1.0f / lives);
    }
    path->throughput = throughput;
    return true;
}

// ---- schedule "grid": every stage over all rays, behind the stencil -----------------------------------------------------
KERNEL generate(const View view, FRAME_TAKEN, GLOBAL uint *living, GLOBAL float4 *origins, GLOBAL float4 *directions,
                GLOBAL float4 *throughputs, GLOBAL float4 *radiances) {
    STENCIL_SCRATCH(scratch);
    uint i = thread_index();
    int x, y;
    bool active = pixel_of(view, i, &x, &y) && is_noisy(view, x, y, FRAME_GIVEN);
    Path path = start_path(view, x, y, key_of(view, i));
    origins[i] = path.origin;
    directions[i] = path.direction;
    throughputs[i] = active ? path.throughput : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    radiances[i] = path.radiance;
    set_active(living, i, active, scratch);
}

// Each warp of a stage looks at WORDS words one after the other, since most are empty after a few reflections and a launch of
// empty warps costs what starting them costs.
#define FOR_EACH_WORD(i) for (uint i = group_index() * (GROUP_SIZE * WORDS) + local_index(), end_ = i + GROUP_SIZE * WORDS; i < end_; i += GROUP_SIZE)

#if SCHEDULE == 0
KERNEL trace(const View view, GLOBAL const uint *living, GLOBAL uint *hitting, GLOBAL const float4 *origins,
             GLOBAL const float4 *directions, GLOBAL float4 *throughputs, GLOBAL float4 *radiances, GLOBAL float4 *hits,
             SCENE_TAKEN, GLOBAL const float4 *lights) {
    STENCIL_SCRATCH(scratch);
    FOR_EACH_WORD(i) {
        bool active = is_active(living, i);
        if (active) {
            Hit hit = find_closest(SCENE_GIVEN, origins[i], xyz(directions[i]));
            store_hit(hits, i, hit);
            if (hit.primitive < 0) {
                Path path = {origins[i], directions[i], throughputs[i], radiances[i]};
                radiances[i] = with_sky(view, lights, path);
                if (STENCIL == STENCIL_OFF) throughputs[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                active = false;
            }
        }
        set_active(hitting, i, active, scratch);
    }
}

KERNEL shade(const View view, int depth, GLOBAL const uint *hitting, GLOBAL uint *living, GLOBAL uint *lit,
             GLOBAL float4 *origins, GLOBAL float4 *directions, GLOBAL float4 *throughputs, GLOBAL float4 *radiances,
             GLOBAL const float4 *hits, GLOBAL float4 *light_directions, GLOBAL float4 *light_brings,
             SCENE_TAKEN, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    STENCIL_SCRATCH(scratch);
    FOR_EACH_WORD(i) {
        bool active = is_active(hitting, i), aims = false;
        Hit hit = {0.0f, 0.0f, 0.0f, -1};
        if (active) hit = stored_hit(hits, i);
        if (active && (STENCIL != STENCIL_OFF || hit.primitive >= 0)) {
            Path path = {origins[i], directions[i], throughputs[i], radiances[i]};
            LightRay light;
            active = shade_path(view, depth, key_of(view, i), hit, &path, &light, SCENE_GIVEN, materials, lights);
            aims = light.wanted;
            radiances[i] = path.radiance;
            if (active || aims) origins[i] = path.origin;
            if (active) directions[i] = path.direction;
            if (active) throughputs[i] = path.throughput;
            if (!active && STENCIL == STENCIL_OFF) throughputs[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (aims) light_directions[i] = light.direction;
            if (aims) light_brings[i] = light.brings;
        }
        if (STENCIL == STENCIL_OFF && !aims) light_brings[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        set_active(living, i, active, scratch);
        if (LIGHTS != LIGHTS_HIT) set_active(lit, i, aims, scratch);
    }
}

KERNEL connect(GLOBAL const uint *lit, GLOBAL const float4 *origins, GLOBAL const float4 *light_directions,
               GLOBAL const float4 *light_brings, GLOBAL float4 *radiances, SCENE_TAKEN) {
    FOR_EACH_WORD(i) {
        bool active = is_active(lit, i);
        float4 to_light = active ? light_directions[i] : make_float4(0.0f, 0.0f, 0.0f, -1.0f);
        float4 origin = light_origin(origins[i], to_light, CROSSING && active ? light_brings[i].w : 0.0f);
        if (active && !find_any(SCENE_GIVEN, origin, xyz(to_light), to_light.w)) radiances[i] = radiances[i] + light_brings[i];
    }
}

#elif SCHEDULE == 1
// ---- schedule "compact": the numbers of living rays, listed from the bits of the stencil -----------------------------------
// Living rays of each group's words.
KERNEL count_words(GLOBAL const uint *row, int words, GLOBAL uint *sums) {
    LOCAL_ARRAY(uint, total, 1);
    if (local_index() == 0) total[0] = 0;
    BARRIER();
    uint i = thread_index();
    uint bits = i < (uint)words ? popcount(row[i]) : 0u;
    if (bits) atomic_add(&total[0], bits);
    BARRIER();
    if (local_index() == 0) sums[group_index()] = total[0];
}

// The list of living rays in ascending order, and their number; one word a thread, the groups as in count_words.
KERNEL list_rays(GLOBAL const uint *row, int words, GLOBAL const uint *sums, GLOBAL uint *list, GLOBAL uint *count) {
    LOCAL_ARRAY(uint, before, GROUP_SIZE);
    LOCAL_ARRAY(uint, base, 1);
    if (local_index() == 0) base[0] = 0;
    BARRIER();
    uint i = thread_index(), own = i < (uint)words ? row[i] : 0u, earlier = 0;
    for (uint group = local_index(); group < group_index(); group += GROUP_SIZE) earlier += sums[group];
    if (earlier) atomic_add(&base[0], earlier);
    add_up_group(before, popcount(own));
    uint place = base[0] + before[local_index()] - popcount(own);
    if (group_index() == group_count() - 1 && local_index() == GROUP_SIZE - 1) count[0] = base[0] + before[local_index()];
    while (own) {
        uint bit = 31u - (uint)clz(own & (0u - own));
        list[place++] = i * 32u + bit;
        own &= own - 1u;
    }
}

// trace and shade of the listed rays; those that live on set their bits in rows that start out clear.
KERNEL bounce_listed(const View view, int depth, GLOBAL const uint *list, GLOBAL const uint *count, GLOBAL uint *living,
                     GLOBAL uint *lit, GLOBAL float4 *origins, GLOBAL float4 *directions, GLOBAL float4 *throughputs,
                     GLOBAL float4 *radiances, GLOBAL float4 *light_directions, GLOBAL float4 *light_brings,
                     SCENE_TAKEN, GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    for (uint k = thread_index(); k < count[0]; k += group_count() * GROUP_SIZE) {
        uint i = list[k];
        Path path = {origins[i], directions[i], throughputs[i], radiances[i]};
        Hit hit = find_closest(SCENE_GIVEN, path.origin, xyz(path.direction));
        if (hit.primitive < 0) {
            radiances[i] = with_sky(view, lights, path);
            continue;
        }
        LightRay light;
        bool active = shade_path(view, depth, key_of(view, i), hit, &path, &light, SCENE_GIVEN, materials, lights);
        radiances[i] = path.radiance;
        if (active || light.wanted) origins[i] = path.origin;
        if (active) {
            directions[i] = path.direction;
            throughputs[i] = path.throughput;
            atomic_or(&living[i >> 5], 1u << (i & 31u));
        }
        if (light.wanted) {
            light_directions[i] = light.direction;
            light_brings[i] = light.brings;
            atomic_or(&lit[i >> 5], 1u << (i & 31u));
        }
    }
}

KERNEL connect_listed(GLOBAL const uint *list, GLOBAL const uint *count, GLOBAL const float4 *origins,
                      GLOBAL const float4 *light_directions, GLOBAL const float4 *light_brings, GLOBAL float4 *radiances,
                      SCENE_TAKEN) {
    for (uint k = thread_index(); k < count[0]; k += group_count() * GROUP_SIZE) {
        uint i = list[k];
        float4 to_light = light_directions[i];
        float4 origin = light_origin(origins[i], to_light, light_brings[i].w);
        if (!find_any(SCENE_GIVEN, origin, xyz(to_light), to_light.w)) radiances[i] = radiances[i] + light_brings[i];
    }
}

#endif

KERNEL accumulate(const View view, GLOBAL const float4 *radiances, FRAME_TAKEN) {
    uint i = thread_index();
    int x, y;
    if (pixel_of(view, i, &x, &y) && is_noisy(view, x, y, FRAME_GIVEN)) add_sample(view, x, y, radiances[i], FRAME_GIVEN);
}

#if SCHEDULE == 2
// ---- schedule "regenerate": a thread keeps its path in registers and starts the next pixel's when it ends (Frolov and -------
// Galaktionov 2016). A warp takes new pixels when at most REFILL of its paths live. counts: the next ray, then rays by depth.
KERNEL regenerate(const View view, GLOBAL uint *counts, FRAME_TAKEN, SCENE_TAKEN, GLOBAL const Material *materials,
                  GLOBAL const float4 *lights) {
    LOCAL_ARRAY(uint, by_depth, 16);
    if (local_index() < 16) by_depth[local_index()] = 0;
    BARRIER();
    bool alive = false, work_left = true;
    int x = 0, y = 0, depth = 0;
    Key key = {0, 0};
    Path path;
    while (true) {
        uint i = 0;
        bool starts = false;
#if HAS_BALLOT
        uint dead = ~ballot(alive);
        if (work_left && 32u - popcount(dead) <= REFILL) {
            uint base = 0;
            if (lane_index() == 0) base = atomic_add(&counts[0], popcount(dead));
            base = from_lane(base, 0);
            i = base + popcount(dead & ((1u << lane_index()) - 1u));
            work_left = base + popcount(dead) < (uint)view.rays;
            starts = !alive && i < (uint)view.rays;
        }
#else
        if (!alive) {
            i = atomic_add(&counts[0], 1u);
            work_left = i < (uint)view.rays;
            starts = work_left;
        }
#endif
        if (starts && pixel_of(view, i, &x, &y) && is_noisy(view, x, y, FRAME_GIVEN)) {
            key = key_of(view, i);
            path = start_path(view, x, y, key);
            depth = 0;
            alive = true;
        }
#if HAS_BALLOT
        if (ballot(alive) == 0 && !work_left) break;
#else
        if (!alive && !work_left) break;
#endif
        if (!alive) continue;
        atomic_add(&by_depth[depth], 1u);
        Hit hit = find_closest(SCENE_GIVEN, path.origin, xyz(path.direction));
        if (hit.primitive < 0) {
            path.radiance = with_sky(view, lights, path);
            alive = false;
        } else {
            LightRay light;
            alive = shade_path(view, depth, key, hit, &path, &light, SCENE_GIVEN, materials, lights);
            float4 origin = light_origin(path.origin, light.direction, light.wanted ? light.brings.w : 0.0f);
            if (light.wanted && !find_any(SCENE_GIVEN, origin, xyz(light.direction), light.direction.w))
                path.radiance = path.radiance + light.brings;
            depth++;
        }
        if (!alive) add_sample(view, x, y, path.radiance, FRAME_GIVEN);
    }
    BARRIER();
    if (local_index() < 16 && by_depth[local_index()]) atomic_add(&counts[1 + local_index()], by_depth[local_index()]);
}

#endif

#if SCHEDULE == 3 && ALONE && HAS_WIDE_REGISTERS
#include "raytracing/fused_scalar.h"
#elif SCHEDULE == 3
// ---- schedule "fused": the grid's stages for one word after the other ----------------------------------------------------------
// living[16 * word + depth] is told to those who ask; the stages themselves hand the word on in a register.
KERNEL megakernel(const View view, GLOBAL uint *living, FRAME_TAKEN, SCENE_TAKEN, GLOBAL const Material *materials,
             GLOBAL const float4 *lights) {
    STENCIL_SCRATCH(scratch);
    FOR_EACH_WORD(i) {
        int x, y;
        bool active = pixel_of(view, i, &x, &y) && is_noisy(view, x, y, FRAME_GIVEN), inside = active;
        Key key = key_of(view, i);
        uint word = gather_flags(active, scratch), kept = 0;
        Path path = start_path(view, x, y, key);
        for (int depth = 0; depth < view.depth; depth++) {
#if GATHER == GATHER_BALLOT
            if (word == 0) break;
            if (lane_index() == (uint)depth) kept = word;  // lane k keeps the word of depth k, for one store at the end
#else
            if (lane_index() == 0) living[16 * (i >> 5) + (uint)depth] = word;
#endif
            LightRay light;
            light.wanted = false;
            if (active) {
                Hit hit = find_closest(SCENE_GIVEN, path.origin, xyz(path.direction));
                active = hit.primitive >= 0;
                if (active) active = shade_path(view, depth, key, hit, &path, &light, SCENE_GIVEN, materials, lights);
                else path.radiance = with_sky(view, lights, path);
            }
            float4 origin = light_origin(path.origin, light.direction, light.wanted ? light.brings.w : 0.0f);
            if (light.wanted && !find_any(SCENE_GIVEN, origin, xyz(light.direction), light.direction.w))
                path.radiance = path.radiance + light.brings;
            word = gather_flags(active, scratch);
        }
#if GATHER == GATHER_BALLOT
        if (lane_index() < 16) living[16 * (i >> 5) + lane_index()] = kept;
#endif
        if (inside) add_sample(view, x, y, path.radiance, FRAME_GIVEN);
    }
}

#endif

// Rays that every `step`-th word holds from the `first` on, and words that hold none.
KERNEL count_rays(GLOBAL const uint *row, int first, int step, int words, GLOBAL uint *counts) {
    uint i = thread_index();
    if (i >= (uint)words) return;
    uint word = row[(uint)first + i * (uint)step];
    if (word) atomic_add(&counts[0], popcount(word));
    else atomic_add(&counts[1], 1u);
}
