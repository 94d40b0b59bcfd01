// The camera ray of a pixel position and its closest hit, for the kernels of aovs.cu and traversal_cost.cu.
#include "raytracing/camera.h"
#include "raytracing/scene.h"

// Returns the closest hit of the camera ray through (x, y), in pixels from the picture's upper left corner;
// hit.primitive is -1 for a miss. *cosine becomes the cosine of the ray's angle to the view axis, 1 for projections
// without an axis. The time is params.eye.w, and no lens blur applies.
DEVICE Hit camera_hit(const LaunchParams params, GEOMETRY_PARAMS, float x, float y, float *cosine) {
    float sx = fma(2.0f / (float)params.width, x, -1.0f), sy = fma(-2.0f / (float)params.height, y, 1.0f);
    float3 origin, direction;
    bool has_ray = camera_ray(params, sx, sy, &origin, &direction);
    direction = normalize_fma(direction);
    *cosine = HAS_VIEW_AXIS ? dot_fma(direction, xyz(params.forward)) : 1.0f;
    Hit hit = scene_closest_hit(GEOMETRY_ARGS, with_w(origin, params.eye.w), direction);
    if (!has_ray) hit.primitive = -1;
    return hit;
}
