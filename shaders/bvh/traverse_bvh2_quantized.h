// BVH2 nodes of 32 bytes, for bvh/traverse_bvh2.h. On a GPU the data pipe of the L1 cache bounds traversal: a load of
// 16 bytes a thread takes it four cycles, even if all threads load the same (82 % of an H200's cycles, for camera rays
// in a Menger sponge). Boxes are in steps of a grid over the scene, rounded outwards (bvh/quantize_bvh2.cu):
//     words 0-2, 4-6   x, y, z of each child's box: min in the low half, max in the high half, each 2^15 + 0 to 2^15 -
//                      1
//     words 3, 7       child references
// Node 0 is the grid: its corner minus its size; the largest coordinate that planes may be computed from; its size. The
// root is node 1.
#include "bvh/slabs.h"

#define ROOT_NODE 1

typedef struct {
    float3 scale, near_bias, far_bias;
    uint near_x, near_y, near_z, far_x, far_y,
        far_z;  // selectors of the bytes that hold the first and the last plane on the ray
} TraversalRay;

// Byte selectors that make a float of half a word and GRID_ONE: 1 + half / 2^15.
#define LOW_HALF 0x7104u
#define HIGH_HALF 0x7324u
#define GRID_ONE 0x3f000000u

DEVICE TraversalRay traversal_ray(GLOBAL const float4 *RESTRICT nodes, float3 origin, float3 direction) {
    float4 corner = nodes[0], size = nodes[1];
    float3 inverse = make_float3(safe_inverse(direction.x), safe_inverse(direction.y), safe_inverse(direction.z));
    float origin_error =
        max_nnan(max_nnan(max_nnan(fabs(origin.x), fabs(origin.y)), fabs(origin.z)), corner.w) * 4.8e-7f;  // 2^-21
    float3 to_corner = make_float3(corner.x - origin.x, corner.y - origin.y, corner.z - origin.z);
    TraversalRay r;
    r.scale = make_float3(size.x * inverse.x, size.y * inverse.y, size.z * inverse.z);
    r.near_bias = make_float3(fma(to_corner.x, inverse.x, -origin_error * fabs(inverse.x)),
                              fma(to_corner.y, inverse.y, -origin_error * fabs(inverse.y)),
                              fma(to_corner.z, inverse.z, -origin_error * fabs(inverse.z)));
    r.far_bias = make_float3(fma(to_corner.x, inverse.x, origin_error * fabs(inverse.x)),
                             fma(to_corner.y, inverse.y, origin_error * fabs(inverse.y)),
                             fma(to_corner.z, inverse.z, origin_error * fabs(inverse.z)));
    r.near_x = keep_in_register(inverse.x < 0.0f ? HIGH_HALF : LOW_HALF);
    r.near_y = keep_in_register(inverse.y < 0.0f ? HIGH_HALF : LOW_HALF);
    r.near_z = keep_in_register(inverse.z < 0.0f ? HIGH_HALF : LOW_HALF);
    r.far_x = keep_in_register(inverse.x < 0.0f ? LOW_HALF : HIGH_HALF);
    r.far_y = keep_in_register(inverse.y < 0.0f ? LOW_HALF : HIGH_HALF);
    r.far_z = keep_in_register(inverse.z < 0.0f ? LOW_HALF : HIGH_HALF);
    return r;
}

#define PLANE(word, half, axis, shift) \
    fma(as_float(byte_perm(word, GRID_ONE, r.half##_##axis)), r.scale.axis, r.shift.axis)

DEVICE bool intersect_box_quantized(const TraversalRay r, uint4 box, float t_max, float *near) {
    *near =
        max3_relu(PLANE(box.x, near, x, near_bias), PLANE(box.y, near, y, near_bias), PLANE(box.z, near, z, near_bias));
    float far =
        min3_nonneg(PLANE(box.x, far, x, far_bias), PLANE(box.y, far, y, far_bias), PLANE(box.z, far, z, far_bias));
    return *near <= min_nnan(far, t_max);
}

DEVICE Children children_of(GLOBAL const float4 *RESTRICT nodes, int node, const TraversalRay r, float t_max) {
    uint4 first = ((GLOBAL const uint4 *)nodes)[2 * node], second = ((GLOBAL const uint4 *)nodes)[2 * node + 1];
    Children c;
    c.hit1 = intersect_box_quantized(r, first, t_max, &c.near1);
    c.hit2 = intersect_box_quantized(r, second, t_max, &c.near2);
    c.left = (int)first.w;
    c.right = (int)second.w;
    return c;
}
