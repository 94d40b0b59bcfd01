// The circles of confusion of a scene: the first hit of each pixel's middle, its depth along the camera's axis, and how wide
// a lens spreads it. The text that includes this file has the type View.
#include "bvh/traverse_bvh2.h"

// `scale` is the lens's diameter in pixels of the plane in focus; what nothing hits is infinitely far.
KERNEL find_depth(const LaunchParams params, const float distance, const float scale, GLOBAL const float4 *nodes,
                  GLOBAL const float4 *primitives, GLOBAL float *circles) {
    int p = (int)thread_index();
    if (p >= params.width * params.height) return;
    float sx = 2.0f * ((float)(p % params.width) + 0.5f) / (float)params.width - 1.0f;
    float sy = 1.0f - 2.0f * ((float)(p / params.width) + 0.5f) / (float)params.height;
    float3 direction = normalize_fma(madd(xyz(params.up), sy, madd(xyz(params.right), sx, xyz(params.forward))));
    Hit hit = closest_hit(nodes, primitives, xyz(params.eye), direction, FLT_MAX);
    float depth = hit.t * dot(direction, xyz(params.forward));
    circles[p] = hit.primitive < 0 ? scale : scale * fabs(depth - distance) / max_nnan(depth, 1e-20f);
}
