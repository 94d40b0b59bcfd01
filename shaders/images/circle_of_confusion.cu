// Circles of confusion of a scene seen through a thin lens: the depth of the first hit of each pixel's center ray, and
// the diameter to which the lens blurs it. The host defines LaunchParams. For renderer/pictures/focus.py.
#include "bvh/traverse_bvh2.h"

// `scale`: the lens's diameter in pixels of the focal plane. A ray without a hit is infinitely far.
KERNEL coc_diameters(const LaunchParams params, const float distance, const float scale, GLOBAL const float4 *nodes,
                     GLOBAL const float4 *primitives, GLOBAL float *diameters) {
    int p = (int)thread_index();
    if (p >= params.width * params.height) return;
    float sx = 2.0f * ((float)(p % params.width) + 0.5f) / (float)params.width - 1.0f;
    float sy = 1.0f - 2.0f * ((float)(p / params.width) + 0.5f) / (float)params.height;
    float3 direction = normalize_fma(madd(xyz(params.up), sy, madd(xyz(params.right), sx, xyz(params.forward))));
    Hit hit = closest_hit(nodes, primitives, xyz(params.eye), direction, FLT_MAX);
    float depth = hit.t * dot(direction, xyz(params.forward));
    diameters[p] = hit.primitive < 0 ? scale : scale * fabs(depth - distance) / max_nnan(depth, 1e-20f);
}
