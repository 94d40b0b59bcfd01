// Camera rays of the four projections, for path.h and camera_hit.h. A point of the film is (sx, sy): sx runs from -1 at
// the left edge to 1 at the right, sy from -1 at the bottom to 1 at the top. params.right and params.up lead from the
// film's center to its right and upper edge (renderer/raytracing/kernels.py); params.eye and the unit params.forward
// are the camera's position and view axis, in world space.
//     perspective      from the eye.
//     orthographic     parallel to `forward`, from the plane through the eye.
//     fisheye          equidistant: the angle from `forward` grows in proportion to the distance from the picture's
//                      center (R. Kingslake 1992: r = f theta). params.fisheye_turns is that angle, in turns of 360
//                      degrees, at the circle that touches the picture's shorter sides; beyond it the picture is
//                      black.
//     equirectangular  360 degrees wide and 180 degrees high, `forward` in the middle.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): LENS_SHIFT, PROJECTION.
#include "bvh/geometry.h"

#define PERSPECTIVE 0
#define EQUIRECTANGULAR 1
#define ORTHOGRAPHIC 2
#define FISHEYE 3
#define HAS_VIEW_AXIS (PROJECTION == PERSPECTIVE || PROJECTION == ORTHOGRAPHIC)  // depth is measured along it

// Sets the ray through a point of the film, in world space; returns false if the projection has none. With
// HAS_VIEW_AXIS the direction is scaled so that its component along `forward` is 1; else it is unit.
DEVICE bool camera_ray(const LaunchParams params, float sx, float sy, float3 *origin, float3 *direction) {
    if (LENS_SHIFT) sx = fma(2.0f, params.lens_shift_x, sx);
    if (LENS_SHIFT) sy = fma(2.0f, params.lens_shift_y, sy);
    *origin = xyz(params.eye);
    if (PROJECTION == EQUIRECTANGULAR) {  // both angles in turns, 0 to 1
        float2 azimuth = cos_sin_2pi(fma(sx, 0.5f, sx < 0.0f ? 1.0f : 0.0f));
        float2 elevation = cos_sin_2pi(fma(sy, 0.25f, sy < 0.0f ? 1.0f : 0.0f));
        float3 level = madd(normalize_fma(xyz(params.right)), azimuth.y, xyz(params.forward) * azimuth.x);
        *direction = normalize_fma(madd(normalize_fma(xyz(params.up)), elevation.y, level * elevation.x));
    } else if (PROJECTION == FISHEYE) {
        float shorter = (float)(params.width < params.height ? params.width : params.height);
        float x = sx * ((float)params.width / shorter), y = sy * ((float)params.height / shorter);
        float radius = sqrt(fma(x, x, y * y));
        float2 angle = cos_sin_2pi(min_nnan(radius, 1.0f) * params.fisheye_turns);
        float scale = radius > 1e-6f ? angle.y / radius : 0.0f;  // makes (x, y) as long as the sine
        float3 side = madd(normalize_fma(xyz(params.up)), y, normalize_fma(xyz(params.right)) * x);
        *direction = normalize_fma(madd(side, scale, xyz(params.forward) * angle.x));
        return radius <= 1.0f;
    } else if (PROJECTION == ORTHOGRAPHIC) {
        *origin = madd(xyz(params.up), sy, madd(xyz(params.right), sx, *origin));
        *direction = xyz(params.forward);
    } else {
        *direction = madd(xyz(params.up), sy, madd(xyz(params.right), sx, xyz(params.forward)));
    }
    return true;
}
