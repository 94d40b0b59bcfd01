// Nodes of 32 bytes, for bvh/traverse_bvh2.h. On a GPU the data pipe of the first cache bounds walks: a load of 16 bytes a thread takes it
// four cycles, even if all threads want the same ones (82 % of an H200's were taken by the camera's rays in a sponge).
// Boxes are in steps of a grid over the scene, rounded outwards (bvh/quantize_bvh2.cu):
//     words 0-2, 4-6   x, y, z of each child's box: lowest in the low half, highest in the high half, each 2^15 + 0 to 2^15 - 1
//     words 3, 7       their codes
// In place of node 0 are the grid's corner less its size, the largest coordinate that planes may be computed from, and its size.
#define ROOT 1

typedef struct {
    float3 scale, near_shift, far_shift;
    uint near_x, near_y, near_z, far_x, far_y, far_z;  // which bytes of a word are the plane that is met first, and last
} NodeRay;

#define LOW_HALF 0x7104u  // selectors for bytes of the word and of NARROW_ONE: the number 1 + half / 2^15, without its first bit
#define HIGH_HALF 0x7324u
#define NARROW_ONE 0x3f000000u

DEVICE NodeRay node_ray(GLOBAL const float4 *RESTRICT nodes, float3 origin, float3 direction) {
    float4 corner = nodes[0], size = nodes[1];
    float3 inverse = make_float3(safe_inverse(direction.x), safe_inverse(direction.y), safe_inverse(direction.z));
    float digits = larger(larger(larger(fabs(origin.x), fabs(origin.y)), fabs(origin.z)), corner.w) * 4.8e-7f;  // 2^-21
    float3 from = make_float3(corner.x - origin.x, corner.y - origin.y, corner.z - origin.z);
    NodeRay r;
    r.scale = make_float3(size.x * inverse.x, size.y * inverse.y, size.z * inverse.z);
    r.near_shift = make_float3(fma(from.x, inverse.x, -digits * fabs(inverse.x)), fma(from.y, inverse.y, -digits * fabs(inverse.y)),
                               fma(from.z, inverse.z, -digits * fabs(inverse.z)));
    r.far_shift = make_float3(fma(from.x, inverse.x, digits * fabs(inverse.x)), fma(from.y, inverse.y, digits * fabs(inverse.y)),
                              fma(from.z, inverse.z, digits * fabs(inverse.z)));
    r.near_x = held(inverse.x < 0.0f ? HIGH_HALF : LOW_HALF);
    r.near_y = held(inverse.y < 0.0f ? HIGH_HALF : LOW_HALF);
    r.near_z = held(inverse.z < 0.0f ? HIGH_HALF : LOW_HALF);
    r.far_x = held(inverse.x < 0.0f ? LOW_HALF : HIGH_HALF);
    r.far_y = held(inverse.y < 0.0f ? LOW_HALF : HIGH_HALF);
    r.far_z = held(inverse.z < 0.0f ? LOW_HALF : HIGH_HALF);
    return r;
}

#define PLANE(word, half, axis, shift) fma(as_float(pick_bytes(word, NARROW_ONE, r.half##_##axis)), r.scale.axis, r.shift.axis)

DEVICE bool enter_narrow(const NodeRay r, uint4 box, float longest, float *near) {
    *near = largest_or_zero(PLANE(box.x, near, x, near_shift), PLANE(box.y, near, y, near_shift), PLANE(box.z, near, z, near_shift));
    float far = smallest_of(PLANE(box.x, far, x, far_shift), PLANE(box.y, far, y, far_shift), PLANE(box.z, far, z, far_shift));
    return *near <= smaller(far, longest);
}

DEVICE Children children_of(GLOBAL const float4 *RESTRICT nodes, int node, const NodeRay r, float longest) {
    uint4 first = ((GLOBAL const uint4 *)nodes)[2 * node], second = ((GLOBAL const uint4 *)nodes)[2 * node + 1];
    Children c;
    c.hit1 = enter_narrow(r, first, longest, &c.near1);
    c.hit2 = enter_narrow(r, second, longest, &c.near2);
    c.left = (int)first.w;
    c.right = (int)second.w;
    return c;
}
