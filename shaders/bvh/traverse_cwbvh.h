// Walks of 8-wide compressed trees (H. Ylitie, T. Karras and S. Laine 2017): 80-byte nodes with the children's boxes in bytes.
//     word 0-2  lowest corner of the node's grid          word 3  three exponents, then the mask of inner children
//     word 4    number of the first inner child           word 5  row of the first primitive
//     word 6-7  a byte a child: 0 empty; inner 001 and 24 + slot; leaf a bit for each of 1-3 primitives (3 bits), then
//               their place after the first primitive (5 bits)
//     word 8-19 bytes of the boxes: low x, y, z and high x, y, z of the 8 children
// Children are in slots so that visiting slot ^ octant in falling order goes roughly from near to far.
#include "bvh/traverse_bvh2.h"

#define WIDE_STACK 32

typedef struct {
    float3 origin, inverse;
    float digits;        // what the rounding of a coordinate of the origin may be
    uint octant;         // 7 minus the ray's octant: the slot that lies farthest back along the ray is 0 ^ octant
} WideRay;

DEVICE WideRay wide_ray(float3 origin, float3 direction) {
    WideRay r;
    r.origin = origin;
    r.inverse = make_float3(safe_inverse(direction.x), safe_inverse(direction.y), safe_inverse(direction.z));
    r.digits = larger(larger(fabs(origin.x), fabs(origin.y)), fabs(origin.z)) * 2.4e-7f;
    r.octant = 7u - (r.inverse.x < 0 ? 4u : 0u) - (r.inverse.y < 0 ? 2u : 0u) - (r.inverse.z < 0 ? 1u : 0u);
    return r;
}

DEVICE float power_of_two(uint word, int byte) { return as_float((word >> (8 * byte) & 255u) << 23); }

#ifndef SCALAR_BOXES
#define SCALAR_BOXES 0  // 1: one child after the other even where there are vectors of bytes, as GPUs do it
#endif

#if HAS_BYTE_VECTORS && !SCALAR_BOXES  // eight children at once in vectors: what reaches a CPU's SIMD units
DEVICE float8 plane_times(uint a, uint b, float scale, float shift) {
    float8 q = convert_float8((uchar8)(as_uchar4(a), as_uchar4(b)));
    return fma(q, (float8)(scale), (float8)(shift));
}

DEVICE uint wide_hits(const WideRay r, uint4 head, uint4 links, uint4 low, uint4 middle, uint4 high, float longest) {
    float3 scale = make_float3(power_of_two(head.w, 0), power_of_two(head.w, 1), power_of_two(head.w, 2)) * r.inverse;
    float3 shift = (make_float3(as_float(head.x), as_float(head.y), as_float(head.z)) - r.origin) * r.inverse;
    float3 slack = fabs(r.inverse) * r.digits;
    float3 near_shift = shift - slack, far_shift = shift + slack;
    bool nx = r.inverse.x < 0, ny = r.inverse.y < 0, nz = r.inverse.z < 0;
    float8 near = plane_times(nx ? middle.z : low.x, nx ? middle.w : low.y, scale.x, near_shift.x);
    float8 far = plane_times(nx ? low.x : middle.z, nx ? low.y : middle.w, scale.x, far_shift.x);
    near = max(near, plane_times(ny ? high.x : low.z, ny ? high.y : low.w, scale.y, near_shift.y));
    far = min(far, plane_times(ny ? low.z : high.x, ny ? low.w : high.y, scale.y, far_shift.y));
    near = max(near, plane_times(nz ? high.z : middle.x, nz ? high.w : middle.y, scale.z, near_shift.z));
    far = min(far, plane_times(nz ? middle.x : high.z, nz ? middle.y : high.w, scale.z, far_shift.z));
    near = max(near, (float8)(0.0f));
    far = min(far, (float8)(longest));
    uint8 meta = convert_uint8((uchar8)(as_uchar4(links.z), as_uchar4(links.w)));
    uint8 inner = (meta & (meta << 1)) >> 4 & 1u;
    uint8 bits = (meta >> 5) << ((meta ^ (inner * r.octant)) & 31u);
    uint8 hit = bits & as_uint8(near <= far);
    uint4 four = hit.lo | hit.hi;
    uint2 two = four.lo | four.hi;
    return two.x | two.y;
}
#else
DEVICE uint wide_half(const WideRay r, float3 scale, float3 near_shift, float3 far_shift, uint meta, uint low_x, uint low_y,
                      uint low_z, uint high_x, uint high_y, uint high_z, float longest) {
    uint near_x = r.inverse.x < 0 ? high_x : low_x, far_x = r.inverse.x < 0 ? low_x : high_x;
    uint near_y = r.inverse.y < 0 ? high_y : low_y, far_y = r.inverse.y < 0 ? low_y : high_y;
    uint near_z = r.inverse.z < 0 ? high_z : low_z, far_z = r.inverse.z < 0 ? low_z : high_z;
    uint inner = ((meta & (meta << 1)) & 0x10101010u) >> 4;
    uint place = (meta ^ (inner * r.octant)) & 0x1f1f1f1fu, bits = (meta >> 5) & 0x07070707u, hits = 0;
    UNROLL for (int i = 0; i < 4; i++) {
        float near = largest_or_zero(fma(byte_float(near_x, i), scale.x, near_shift.x), fma(byte_float(near_y, i), scale.y, near_shift.y),
                                     fma(byte_float(near_z, i), scale.z, near_shift.z));
        float far = smallest_of(fma(byte_float(far_x, i), scale.x, far_shift.x), fma(byte_float(far_y, i), scale.y, far_shift.y),
                                fma(byte_float(far_z, i), scale.z, far_shift.z));
        if (near <= smaller(far, longest)) hits |= (bits >> (8 * i) & 255u) << (place >> (8 * i) & 31u);
    }
    return hits;
}

DEVICE uint wide_hits(const WideRay r, uint4 head, uint4 links, uint4 low, uint4 middle, uint4 high, float longest) {
    float3 step = make_float3(power_of_two(head.w, 0), power_of_two(head.w, 1), power_of_two(head.w, 2));
    // byte_float gives 1 + byte * 2^-15, so planes are scaled by 2^15 steps and moved back by one of these
    float3 scale = make_float3(step.x * r.inverse.x * 32768.0f, step.y * r.inverse.y * 32768.0f, step.z * r.inverse.z * 32768.0f);
    float3 shift = make_float3(fma(as_float(head.x) - r.origin.x, r.inverse.x, -scale.x), fma(as_float(head.y) - r.origin.y, r.inverse.y, -scale.y),
                               fma(as_float(head.z) - r.origin.z, r.inverse.z, -scale.z));
    float3 slack = make_float3(fabs(r.inverse.x) * r.digits, fabs(r.inverse.y) * r.digits, fabs(r.inverse.z) * r.digits);
    float3 near_shift = shift - slack, far_shift = shift + slack;
    return wide_half(r, scale, near_shift, far_shift, links.z, low.x, low.z, middle.x, middle.z, high.x, high.z, longest) |
           wide_half(r, scale, near_shift, far_shift, links.w, low.y, low.w, middle.y, middle.w, high.y, high.w, longest);
}
#endif

// Goes to the nearest node of the group and tests its children: (first child, hit inner slots and inner mask) and
// (first primitive, bits of hit primitives) come back. A group's bit 24 + k is slot k ^ octant.
DEVICE void wide_step(GLOBAL const uint4 *RESTRICT nodes, const WideRay r, float longest, uint2 *group, uint2 *primitives,
                      uint2 *stack, int *top) {
    uint bit = 31u - (uint)clz(group->y);
    group->y &= ~(1u << bit);
    if (group->y & 0xff000000u) stack[(*top)++] = *group;
    uint slot = (bit - 24u) ^ r.octant;
    uint node = group->x + popcount(group->y & ~(0xffffffffu << slot));
    uint4 head = nodes[5 * node], links = nodes[5 * node + 1], low = nodes[5 * node + 2], middle = nodes[5 * node + 3],
          high = nodes[5 * node + 4];
    uint hits = wide_hits(r, head, links, low, middle, high, longest);
    *group = make_uint2(links.x, (hits & 0xff000000u) | head.w >> 24);
    *primitives = make_uint2(links.y, hits & 0x00ffffffu);
}

DEVICE Hit closest_hit_wide(GLOBAL const uint4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                            float3 direction, float longest) {
    WideRay r = wide_ray(origin, direction);
    Hit best = {longest, 0.0f, 0.0f, -1};
    int number = 0x7fffffff;
    uint2 stack[WIDE_STACK];
    int top = 0;
    uint2 group = make_uint2(0u, 0x80000000u), leaves = make_uint2(0u, 0u);
    for (;;) {
        wide_step(nodes, r, best.t, &group, &leaves, stack, &top);
        while (leaves.y) {
            uint bit = 31u - (uint)clz(leaves.y);
            leaves.y &= ~(1u << bit);
            take_nearer(primitives, (int)(leaves.x + bit), origin, direction, &best, &number);
        }
        if (!(group.y & 0xff000000u)) {
            if (top == 0) return best;
            group = stack[--top];
        }
    }
}

DEVICE bool any_hit_wide(GLOBAL const uint4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                         float3 direction, float longest) {
    WideRay r = wide_ray(origin, direction);
    Hit hit;
    uint2 stack[WIDE_STACK];
    int top = 0;
    uint2 group = make_uint2(0u, 0x80000000u), leaves = make_uint2(0u, 0u);
    for (;;) {
        wide_step(nodes, r, longest, &group, &leaves, stack, &top);
        while (leaves.y) {
            uint bit = 31u - (uint)clz(leaves.y);
            leaves.y &= ~(1u << bit);
            if (hit_primitive(primitive_at(primitives, (int)(leaves.x + bit)), origin, direction, longest, &hit)) return true;
        }
        if (!(group.y & 0xff000000u)) {
            if (top == 0) return false;
            group = stack[--top];
        }
    }
}
