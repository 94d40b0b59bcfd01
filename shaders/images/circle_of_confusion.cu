// Circles of confusion of a scene seen through a thin lens, for renderer/pictures/focus.py: traces the ray through the
// center of each pixel and computes from the depth of its hit the diameter, in pixels, to which the lens blurs that
// point. The host defines LaunchParams, the camera.
#include "bvh/traverse_bvh2.h"

// One thread per pixel. `distance`: depth of the focal plane; `scale`: the lens's diameter in pixels of the focal
// plane. Without a hit the depth is infinite, and the diameter is `scale`.
KERNEL coc_diameters(const LaunchParams params, const float distance, const float scale, GLOBAL const float4 *nodes,
                     GLOBAL const float4 *primitives, GLOBAL float *diameters) {
    int pixel = (int)thread_index();
    if (pixel >= params.width * params.height) return;
    float sx = 2.0f * ((float)(pixel % params.width) + 0.5f) / (float)params.width - 1.0f;
    float sy = 1.0f - 2.0f * ((float)(pixel / params.width) + 0.5f) / (float)params.height;
    float3 direction = normalize_fma(madd(xyz(params.up), sy, madd(xyz(params.right), sx, xyz(params.forward))));
    Hit hit = closest_hit(nodes, primitives, xyz(params.eye), direction, FLT_MAX);
    float depth = hit.t * dot_fma(direction, xyz(params.forward));
    diameters[pixel] = hit.primitive < 0 ? scale : scale * fabs(depth - distance) / max_nnan(depth, 1e-20f);
}
