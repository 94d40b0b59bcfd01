// The slab test's view of a ray (T. Kay and J. Kajiya 1986), and what a BVH2 node tells about its children; for all
// node layouts.
#include "bvh/geometry.h"

// Near planes are moved closer by the rounding error of the origin's term and far planes farther, so that no box is
// missed whose primitive is hit; the boxes themselves are padded for the planes' term.
typedef struct {
    float3 inverse, abs_inverse, near_bias, far_bias;
} SlabRay;

DEVICE float safe_inverse(float d) {
    // at least 2^-60, so that no 0 * infinity follows
    return fast_rcp(as_float((as_uint(d) & 0x80000000u) | as_uint(max_nnan(fabs(d), 8.6736174e-19f))));
}

DEVICE SlabRay slab_ray(float3 origin, float3 direction) {
    SlabRay s;
    s.inverse = make_float3(safe_inverse(direction.x), safe_inverse(direction.y), safe_inverse(direction.z));
    s.abs_inverse = make_float3(fabs(s.inverse.x), fabs(s.inverse.y), fabs(s.inverse.z));
    float origin_error = max_nnan(max_nnan(fabs(origin.x), fabs(origin.y)), fabs(origin.z)) * 2.4e-7f;  // 2^-22
    float3 slack =
        make_float3(s.abs_inverse.x * origin_error, s.abs_inverse.y * origin_error, s.abs_inverse.z * origin_error);
    s.near_bias = make_float3(fma(-origin.x, s.inverse.x, -slack.x), fma(-origin.y, s.inverse.y, -slack.y),
                              fma(-origin.z, s.inverse.z, -slack.z));
    s.far_bias = make_float3(fma(-origin.x, s.inverse.x, slack.x), fma(-origin.y, s.inverse.y, slack.y),
                             fma(-origin.z, s.inverse.z, slack.z));
    return s;
}

// The children of a node: whether the ray meets their boxes before t_max, at which distances it enters them, and their
// references.
typedef struct {
    float near1, near2;
    int left, right;
    bool hit1, hit2;
} Children;
