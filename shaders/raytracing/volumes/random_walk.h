// Subsurface scattering: the random walk of a path through the homogeneous medium that it is in (media.h), from the
// surface where it entered to the surface where it leaves, as one ray of the path (M. Chiang, P. Kutz and B. Burley
// 2016). Included by raytracing/raytrace.cu in scenes with such a medium. No light is sampled inside, because the
// surface would occlude it: surfaces sample lights where the walk ends.
#include "raytracing/path.h"
#include "raytracing/volumes/scatter.h"

#define MAX_COLLISIONS 4096  // of a walk, which ends there: it bounds the time in media of any density
#define FIRST_ROULETTE 8  // collisions before Russian roulette may end a walk
#define WALK_PURPOSE 0x10000u  // of volume_stream: beyond the numbers of all volumes

// If the path is in a medium that scatters light, and its ray number `depth` ends at a surface, walks to the last hit
// of the path in the medium: *hit, and in *path the ray to it and the throughput along the walk. *hit is a miss if the
// walk ends inside. Returns true if there was a walk.
DEVICE bool walk_medium(const LaunchParams params, int depth, Sampler sampler, Path *path, Hit *hit, SCENE_PARAMS) {
    if (hit->primitive < 0 || !in_scattering_medium(materials, path->radiance)) return false;
    Material m = materials[medium_number(path->radiance) - 1u];
    float3 extinction = xyz(m.attenuation), albedo = xyz(m.color2), one = splat3(1.0f);
    RandomStream stream = volume_stream(sampler, (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 7u, WALK_PURPOSE);
    float first = largest_of3(xyz(path->throughput));
    for (int count = 0; hit->primitive >= 0; count++) {
        // One color, chosen in proportion to the throughput, gives the free path; weights are for all three together
        // (multiple importance sampling, the balance heuristic).
        float3 before = xyz(path->throughput);
        float sum = before.x + before.y + before.z, choice = next_random(&stream) * sum;
        float chosen = choice < before.x ? extinction.x : choice < before.x + before.y ? extinction.y : extinction.z;
        float t = -logarithm_of(1.0f - next_random(&stream)) / chosen;
        bool collides = t < hit->t;
        if (!collides) t = hit->t;
        float3 passed = make_float3(exponential_of(-extinction.x * t), exponential_of(-extinction.y * t),
                                    exponential_of(-extinction.z * t));
        passed = before * passed * (collides ? extinction : one);
        float3 after = passed * (collides ? albedo : one) * (sum / (passed.x + passed.y + passed.z));
        if (!collides) {
            path->throughput = with_w(after, path->throughput.w);
            return true;
        }
        float probability = clamp(largest_of3(after) / first, 0.0f, 1.0f);
        if (count >= FIRST_ROULETTE && probability < 1.0f) {
            if (next_random(&stream) >= probability) break;
            after = after * (1.0f / probability);
        }
        if (count >= MAX_COLLISIONS || !(probability > 0.0f)) break;
        path->throughput = with_w(after, path->throughput.w);
        path->origin = with_w(madd(xyz(path->direction), t, xyz(path->origin)), path->origin.w);
        float u1 = next_random(&stream), u2 = next_random(&stream);
        float3 direction = sample_henyey_greenstein(xyz(path->direction), m.color2.w, u1, u2);
        path->direction = with_w(direction, DELTA_PDF);  // only the walk finds the lights inside
        *hit = scene_closest_hit(GEOMETRY_ARGS, path->origin, direction);
    }
    // a walk that ended inside carries nothing; one that left an open mesh keeps its throughput
    if (hit->primitive >= 0) path->throughput = make_float4(0.0f, 0.0f, 0.0f, path->throughput.w);
    hit->primitive = -1;
    return true;
}
