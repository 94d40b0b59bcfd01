// Steps through 4-wide trees whose children's boxes are bytes of a grid (after jbikker's tinybvh and Ylitie et al. 2017): a node of
// 64 bytes does the work of three binary ones, so half as many bytes are read one after the other.
//     words 0-2   the grid's corner minus 2^15 of its steps      word 3  three bytes: the exponents of 2^15 steps
//     words 4-7   the children's codes as in bvh/traverse_bvh2.h, WALK_DONE for an empty one
//     words 8-13  bytes of the four boxes: low x, high x, low y, high y, low z, high z           words 14-15  nothing
#include "bvh/traverse_bvh2.h"

#define NOT_HIT 0xffffffffu

DEVICE uint quad_key(float near_x, float near_y, float near_z, float far_x, float far_y, float far_z, float longest, int code, uint child) {
    float near = largest_or_zero(near_x, near_y, near_z), far = smaller(smallest_of(far_x, far_y, far_z), longest);
    return near <= far && code != WALK_DONE ? (as_uint(near) & ~3u) | child : NOT_HIT;
}

// A child's code; written so that the codes are loaded with the rest of the node and not when they are picked.
DEVICE int quad_code(uint4 codes, uint child) {
    uint low = (child & 1u) ? codes.y : codes.x, high = (child & 1u) ? codes.w : codes.z;
    return (int)((child & 2u) ? high : low);
}

#define ORDER(a, b)          \
    {                        \
        uint least = min(a, b); \
        b = max(a, b);       \
        a = least;           \
    }

// From an inner node to the nearest child that is hit, keeping the others, the nearer ones on top; to what was kept last when none
// is. `base` is 0x3f800000 in a register that the compiler cannot tell from another number: as a constant it would be made anew for
// each of the 24 bytes.
DEVICE int next_quad(GLOBAL const uint4 *RESTRICT nodes, int node, const Slabs s, float longest, uint base, int **top) {
    uint4 head = nodes[4 * node], codes = nodes[4 * node + 1], xy = nodes[4 * node + 2], z = nodes[4 * node + 3];
    float scale_x = as_float((head.w & 255u) << 23) * s.inverse.x, scale_y = as_float((head.w >> 8 & 255u) << 23) * s.inverse.y,
          scale_z = as_float((head.w >> 16 & 255u) << 23) * s.inverse.z;
    float px = as_float(head.x), py = as_float(head.y), pz = as_float(head.z);
    float nsx = fma(px, s.inverse.x, s.near_shift.x), nsy = fma(py, s.inverse.y, s.near_shift.y), nsz = fma(pz, s.inverse.z, s.near_shift.z);
    float fsx = fma(px, s.inverse.x, s.far_shift.x), fsy = fma(py, s.inverse.y, s.far_shift.y), fsz = fma(pz, s.inverse.z, s.far_shift.z);
    uint nx = s.inverse.x < 0 ? xy.y : xy.x, fx = s.inverse.x < 0 ? xy.x : xy.y;
    uint ny = s.inverse.y < 0 ? xy.w : xy.z, fy = s.inverse.y < 0 ? xy.z : xy.w;
    uint nz = s.inverse.z < 0 ? z.y : z.x, fz = s.inverse.z < 0 ? z.x : z.y;
    uint key[4];
    UNROLL for (int i = 0; i < 4; i++)
        key[i] = quad_key(fma(byte_float_on(base, nx, i), scale_x, nsx), fma(byte_float_on(base, ny, i), scale_y, nsy), fma(byte_float_on(base, nz, i), scale_z, nsz),
                          fma(byte_float_on(base, fx, i), scale_x, fsx), fma(byte_float_on(base, fy, i), scale_y, fsy), fma(byte_float_on(base, fz, i), scale_z, fsz),
                          longest, quad_code(codes, (uint)i), (uint)i);
    uint a = key[0], b = key[1], c = key[2], d = key[3];
    ORDER(a, b) ORDER(c, d) ORDER(a, c) ORDER(b, d) ORDER(b, c)
    if (a == NOT_HIT) return *--*top;
    if (d != NOT_HIT) *(*top)++ = quad_code(codes, d);
    if (c != NOT_HIT) *(*top)++ = quad_code(codes, c);
    if (b != NOT_HIT) *(*top)++ = quad_code(codes, b);
    return quad_code(codes, a);
}
