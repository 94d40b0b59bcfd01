// Wavefront path tracing behind the stencil of active rays: generate; for every depth trace, shade, connect; accumulate.
// Ray i is pixel i % 32 of tile i / 32; tiles are 8 x 4 pixels, so a word of the stencil is a small piece of the picture.
// The text that includes this file has the types View and Material and the functions scatter() and evaluate().
#include "bvh_walk.h"
#include "stencil.h"

#define DIMENSIONS 8u  // random numbers that one depth may use: 0-3 the material, 4-6 the light sample

// The pixel of the whole picture that ray i belongs to; false for rays that fill up the last tiles.
DEVICE bool pixel_of(const View view, uint i, int *x, int *y) {
    int tile = (int)(i >> 5);
    int across = (tile % view.tiles) * 8 + (int)(i & 7u), down = (tile / view.tiles) * 4 + (int)((i >> 3) & 3u);
    *x = view.left + across;
    *y = view.top + down;
    return across < view.across && down < view.down;
}

DEVICE uint key_of(const View view, uint i) {
    int x, y;
    pixel_of(view, i, &x, &y);
    return random_key((uint)view.seed, (uint)(y * view.width + x), (uint)view.sample);
}

DEVICE float3 sky(const View view, float3 direction) {
    float3 horizon = xyz(view.horizon);
    return along(horizon, xyz(view.zenith) - horizon, larger(direction.y, 0.0f));
}

KERNEL generate(const View view, GLOBAL uint *living, GLOBAL float4 *origins, GLOBAL float4 *directions,
                GLOBAL float4 *throughputs, GLOBAL float4 *radiances) {
    STENCIL_SCRATCH(scratch);
    uint i = thread_index();
    int x, y;
    bool active = pixel_of(view, i, &x, &y);
    uint key = key_of(view, i);
    float sx = fma(2.0f / (float)view.width, (float)x + random_at(key, 0), -1.0f);
    float sy = fma(-2.0f / (float)view.height, (float)y + random_at(key, 1), 1.0f);
    float3 direction = unit(along(along(xyz(view.forward), xyz(view.right), sx), xyz(view.up), sy));
    float share = active ? 1.0f : 0.0f;
    origins[i] = view.eye;
    directions[i] = with_w(direction, MIRRORED);
    throughputs[i] = make_float4(share, share, share, 0.0f);
    radiances[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    set_active(living, i, active, scratch);
}

KERNEL trace(const View view, GLOBAL const uint *living, GLOBAL uint *hitting, GLOBAL const float4 *origins,
             GLOBAL const float4 *directions, GLOBAL float4 *throughputs, GLOBAL float4 *radiances, GLOBAL float4 *hits,
             GLOBAL const float4 *nodes, GLOBAL const float4 *primitives) {
    STENCIL_SCRATCH(scratch);
    uint i = thread_index();
    bool active = is_active(living, i);
    if (active) {
        float3 direction = xyz(directions[i]);
        Hit hit = closest_hit(nodes, primitives, xyz(origins[i]), direction, INFINITE);
        hits[i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
        if (hit.primitive < 0) {
            radiances[i] = radiances[i] + throughputs[i] * with_w(sky(view, direction), 0.0f);
            if (STENCIL == STENCIL_OFF) throughputs[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            active = false;
        }
    }
    set_active(hitting, i, active, scratch);
}

DEVICE float3 normal_of(const Primitive p, float3 point) {
    if (SPHERES && p.edge2.w > 0.0f) return unit(point - xyz(p.corner));
    return unit(cross_exact(xyz(p.edge1), xyz(p.edge2)));
}

DEVICE Surface surface_at(const Primitive p, const Hit hit, float3 origin, float3 direction) {
    Surface s;
    float3 corner = xyz(p.corner);
    if (SPHERES && p.edge2.w > 0.0f) {
        s.normal = normal_of(p, along(origin, direction, hit.t));
        s.point = along(corner, s.normal, p.edge2.w);
    } else {
        s.normal = normal_of(p, corner);
        s.point = along(along(corner, xyz(p.edge1), hit.u), xyz(p.edge2), hit.v);
    }
    s.front = dot_exact(s.normal, direction) < 0.0f;
    if (!s.front) s.normal = -s.normal;
    s.incoming = direction;
    return s;
}

// Density per unit of light surface with which sample_light picks points of this material.
DEVICE float light_density(const View view, const Material m) {
    return fma(0.0722f, m.emission.z, fma(0.7152f, m.emission.y, 0.2126f * m.emission.x)) * view.inverse_light_power;
}

typedef struct {
    float3 point, normal;
    int primitive;
} LightPoint;

// A point on a light, picked by power: lights holds (summed share, row of the primitive) in ascending order.
DEVICE LightPoint sample_light(const View view, GLOBAL const float2 *lights, GLOBAL const float4 *primitives, uint key,
                               uint dimension) {
    float pick = random_at(key, dimension), a = random_at(key, dimension + 1), b = random_at(key, dimension + 2);
    int low = 0, high = view.light_count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (lights[middle].x > pick) high = middle;
        else low = middle + 1;
    }
    LightPoint light;
    light.primitive = as_int(lights[low].y);
    Primitive p = primitive_at(primitives, light.primitive);
    if (SPHERES && p.edge2.w > 0.0f) {
        float height = fma(-2.0f, a, 1.0f), radius = sqrt(larger(fma(-height, height, 1.0f), 0.0f));
        float2 around = turn(b);
        light.normal = make_float3(radius * around.x, radius * around.y, height);
        light.point = along(xyz(p.corner), light.normal, p.edge2.w);
    } else {
        float root = sqrt(a);
        light.normal = normal_of(p, xyz(p.corner));
        light.point = along(along(xyz(p.corner), xyz(p.edge1), root * (1.0f - b)), xyz(p.edge2), root * b);
    }
    return light;
}

// The shadow ray of a surface point: its direction and length, and what it brings unless something is in between.
// `weighted` shares the light between this sample and paths that run into the light (balance heuristic, E. Veach 1995).
DEVICE bool aim_at_light(const View view, const Material m, const Surface s, float3 origin, bool weighted,
                         GLOBAL const float2 *lights, GLOBAL const float4 *primitives, GLOBAL const Material *materials,
                         uint key, uint dimension, float4 *direction, float4 *brings) {
    LightPoint light = sample_light(view, lights, primitives, key, dimension);
    float3 way = light.point - origin;
    float distance2 = dot_exact(way, way);
    float distance = sqrt(distance2);
    float3 to_light = way * (1.0f / distance);
    float4 reflects = evaluate(m, s, to_light);
    float cosine = -dot_exact(light.normal, to_light);
    if (!(reflects.w > 0.0f) || !(cosine > 0.0f) || !(distance > 0.0f)) return false;
    Material shines = materials[as_int(primitives[3 * light.primitive + 1].w)];
    float density = light_density(view, shines) * distance2 / cosine;
    float share = 1.0f / (density + (weighted ? reflects.w : 0.0f));
    *direction = with_w(to_light, distance * 0.9999f);
    *brings = reflects * shines.emission * share;
    return true;
}

KERNEL shade(const View view, int depth, GLOBAL const uint *hitting, GLOBAL uint *living, GLOBAL uint *lit,
             GLOBAL float4 *origins, GLOBAL float4 *directions, GLOBAL float4 *throughputs, GLOBAL float4 *radiances,
             GLOBAL const float4 *hits, GLOBAL float4 *light_directions, GLOBAL float4 *light_brings,
             GLOBAL const float4 *primitives, GLOBAL const Material *materials, GLOBAL const float2 *lights) {
    STENCIL_SCRATCH(scratch);
    uint i = thread_index();
    bool active = is_active(hitting, i), aims = false;
    float4 hit_words = make_float4(0.0f, 0.0f, 0.0f, as_float(-1));
    if (active) hit_words = hits[i];
    bool dead = STENCIL == STENCIL_OFF && as_int(hit_words.w) < 0;
    if (active && !dead) {
        Hit hit = {hit_words.x, hit_words.y, hit_words.z, as_int(hit_words.w)};
        Primitive p = primitive_at(primitives, hit.primitive);
        Material m = materials[as_int(p.edge1.w)];
        float4 came = directions[i], throughput = throughputs[i];
        Surface s = surface_at(p, hit, xyz(origins[i]), xyz(came));
        if (s.front && m.emission.w > 0.0f) {
            float by_light = light_density(view, m) * hit.t * hit.t / -dot_exact(s.normal, s.incoming);
            float share = LIGHTS_SAMPLED && came.w > 0.0f ? came.w / (came.w + by_light) : 1.0f;
            radiances[i] = radiances[i] + throughput * m.emission * share;
        }
        uint key = key_of(view, i), dimension = (uint)(depth + 1) * DIMENSIONS;
        Scatter out;
        bool last = depth + 1 >= view.depth;
        bool goes_on = scatter(m, s, key, dimension, &out);
        bool rough = goes_on && out.density >= 0.0f;
        float3 origin = off_surface(s.point, goes_on && out.through ? -s.normal : s.normal);
        if (rough && LIGHTS_SAMPLED && view.light_count > 0 && (WHITTED || !last)) {
            float4 light_direction, brings;
            aims = aim_at_light(view, m, s, origin, !WHITTED, lights, primitives, materials, key, dimension + 4,
                                &light_direction, &brings);
            if (aims) light_directions[i] = light_direction;
            if (aims) light_brings[i] = throughput * brings;
        }
        if (rough && WHITTED) {  // the indirect light: the sky in the direction of the normal, unoccluded
            radiances[i] = radiances[i] + throughput * with_w(out.weight * sky(view, s.normal), 0.0f);
            goes_on = false;
        }
        active = goes_on && !last;
        if (active || aims) origins[i] = with_w(origin, 0.0f);
        if (active) directions[i] = with_w(out.direction, out.density);
        if (active) throughputs[i] = throughput * with_w(out.weight, 0.0f);
        if (!active && STENCIL == STENCIL_OFF) throughputs[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    if (STENCIL == STENCIL_OFF && !aims) light_brings[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    set_active(living, i, active, scratch);
    if (LIGHTS_SAMPLED) set_active(lit, i, aims, scratch);
}

KERNEL connect(GLOBAL const uint *lit, GLOBAL const float4 *origins, GLOBAL const float4 *light_directions,
               GLOBAL const float4 *light_brings, GLOBAL float4 *radiances, GLOBAL const float4 *nodes,
               GLOBAL const float4 *primitives) {
    uint i = thread_index();
    if (!is_active(lit, i)) return;
    float4 to_light = light_directions[i];
    if (!any_hit(nodes, primitives, xyz(origins[i]), xyz(to_light), to_light.w)) radiances[i] = radiances[i] + light_brings[i];
}

// The frame is the mean of all samples so far.
KERNEL accumulate(const View view, GLOBAL const float4 *radiances, GLOBAL float4 *frame) {
    uint i = thread_index();
    int x, y;
    if (!pixel_of(view, i, &x, &y)) return;
    int pixel = (y - view.top) * view.across + x - view.left;
    float3 mean = xyz(radiances[i]);
    if (view.sample > 0) {
        float3 before = xyz(frame[pixel]);
        float share = 1.0f / (float)(view.sample + 1);
        mean = along(before, mean - before, share);
    }
    frame[pixel] = with_w(mean, 1.0f);
}

// Rays that the words of a stencil row hold, and words that hold none.
KERNEL count_rays(GLOBAL const uint *row, int words, GLOBAL uint *counts) {
    uint i = thread_index();
    if (i >= (uint)words) return;
    uint word = row[i];
    if (word) atomic_add(&counts[0], popcount(word));
    else atomic_add(&counts[1], 1u);
}

KERNEL votes_here(GLOBAL uint *answer) { answer[0] = HAS_BALLOT; }
