// Camera rays of the projections. Coordinates on the film are -1 to 1 from left to right (sx) and from below to above
// (sy); params.right and params.up lead from the film's center to its edges (renderer/raytracing/kernels.py).
//     perspective      through the eye.
//     orthographic     parallel to `forward`, from the plane of the eye.
//     fisheye          equidistant: the angle from `forward` grows in proportion to the distance from the picture's
//                      center (R. Kingslake 1992: r = f theta); params.fisheye_turns at the circle that touches the
//                      picture's shorter sides. Outside of the circle there is no ray, and the picture is black.
//     equirectangular  360 degrees wide and 180 high, `forward` in the middle.
#define PERSPECTIVE 0
#define EQUIRECTANGULAR 1
#define ORTHOGRAPHIC 2
#define FISHEYE 3
#define HAS_VIEW_AXIS (PROJECTION == PERSPECTIVE || PROJECTION == ORTHOGRAPHIC)  // so that there is a plane of focus

// The ray through a point of the film; false if there is none. Where HAS_VIEW_AXIS, the direction is not unit but has a
// component of 1 along `forward`; else it is unit.
DEVICE bool camera_ray(const LaunchParams params, float sx, float sy, float3 *origin, float3 *direction) {
#if LENS_SHIFT
    sx = fma(2.0f, params.lens_shift_x, sx);
    sy = fma(2.0f, params.lens_shift_y, sy);
#endif
    *origin = xyz(params.eye);
#if PROJECTION == EQUIRECTANGULAR
    float2 azimuth = cos_sin_2pi(fma(sx, 0.5f, sx < 0.0f ? 1.0f : 0.0f));
    float2 elevation = cos_sin_2pi(fma(sy, 0.25f, sy < 0.0f ? 1.0f : 0.0f));
    float3 level = madd(normalize_fma(xyz(params.right)), azimuth.y, xyz(params.forward) * azimuth.x);
    *direction = normalize_fma(madd(normalize_fma(xyz(params.up)), elevation.y, level * elevation.x));
#elif PROJECTION == FISHEYE
    float shorter = (float)(params.width < params.height ? params.width : params.height);
    float x = sx * ((float)params.width / shorter), y = sy * ((float)params.height / shorter);
    float radius = sqrt(fma(x, x, y * y));
    float2 angle = cos_sin_2pi(min_nnan(radius, 1.0f) * params.fisheye_turns);
    float scale = radius > 1e-6f ? angle.y / radius : 0.0f;
    float3 side = madd(normalize_fma(xyz(params.up)), y, normalize_fma(xyz(params.right)) * x);
    *direction = normalize_fma(madd(side, scale, xyz(params.forward) * angle.x));
    return radius <= 1.0f;
#elif PROJECTION == ORTHOGRAPHIC
    *origin = madd(xyz(params.up), sy, madd(xyz(params.right), sx, *origin));
    *direction = xyz(params.forward);
#else
    *direction = madd(xyz(params.up), sy, madd(xyz(params.right), sx, xyz(params.forward)));
#endif
    return true;
}
