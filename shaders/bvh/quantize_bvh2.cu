// Makes the nodes of bvh/traverse_bvh2_quantized.h from a binary tree's of 64 bytes, and the grid that they are on; tells whether a device has warps
// that walk them quickly.
#include "common/portable.h"

#define LARGEST 32767.0f  // step of the grid
#define COARSE 1.1f       // how much larger a box's surface may become

DEVICE float surface(float3 side) { return side.x * side.y + side.y * side.z + side.z * side.x; }

DEVICE float3 at_least_zero(float3 a) { return make_float3(larger(a.x, 0.0f), larger(a.y, 0.0f), larger(a.z, 0.0f)); }

// The grid over the root's boxes, by one thread: the first row of `narrow`.
KERNEL lay_grid(GLOBAL const float4 *nodes, GLOBAL float4 *narrow, GLOBAL uint *coarse) {
    if (thread_index() > 0) return;
    float3 low = make_float3(INFINITE, INFINITE, INFINITE), high = make_float3(-INFINITE, -INFINITE, -INFINITE);
    for (int child = 0; child < 2; child++) {
        float3 centre = xyz(nodes[2 * child]), half_size = xyz(nodes[2 * child + 1]);
        if (half_size.x < 0.0f) continue;  // nothing there
        low = make_float3(smaller(low.x, centre.x - half_size.x), smaller(low.y, centre.y - half_size.y), smaller(low.z, centre.z - half_size.z));
        high = make_float3(larger(high.x, centre.x + half_size.x), larger(high.y, centre.y + half_size.y), larger(high.z, centre.z + half_size.z));
    }
    float3 most = make_float3(larger(fabs(low.x), fabs(high.x)), larger(fabs(low.y), fabs(high.y)), larger(fabs(low.z), fabs(high.z)));
    // a little larger, so that rounding keeps every plane within; never flat
    float3 size = make_float3((high.x - low.x) * 1.001f + most.x * 1e-6f + 1e-30f, (high.y - low.y) * 1.001f + most.y * 1e-6f + 1e-30f,
                              (high.z - low.z) * 1.001f + most.z * 1e-6f + 1e-30f);
    float3 corner = make_float3(low.x - size.x * 4e-4f - size.x, low.y - size.y * 4e-4f - size.y, low.z - size.z * 4e-4f - size.z);
    float reach = larger(larger(fabs(corner.x) + 2.0f * size.x, fabs(corner.y) + 2.0f * size.y), fabs(corner.z) + 2.0f * size.z);
    narrow[0] = with_w(corner, reach);
    narrow[1] = with_w(size, 0.0f);
    coarse[0] = 0;
}

// A side's planes in steps, rounded outwards by more than the arithmetic here may be off, and what they were.
DEVICE uint halves_of(float centre, float half_size, float corner, float size, float reach, float *wide) {
    float step = size / (LARGEST + 1.0f), room = 0.015625f + reach * 4.8e-7f / step;
    float first = floor((centre - half_size - size - corner) / step - room), last = ceil((centre + half_size - size - corner) / step + room);
    first = smaller(larger(first, 0.0f), LARGEST);
    last = smaller(larger(last, 0.0f), LARGEST);
    *wide = (last - first) * step;
    return 0x80008000u | (uint)first | (uint)last << 16;
}

KERNEL narrow_nodes(GLOBAL const float4 *nodes, int count, GLOBAL float4 *narrow, GLOBAL uint *coarse) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    float4 corner = narrow[0], size = narrow[1];
    uint grown = 0;
    for (int child = 0; child < 2; child++) {
        float4 centre = nodes[4 * i + 2 * child], half_size = nodes[4 * i + 2 * child + 1];
        int code = as_int(child ? nodes[4 * i + 1].w : nodes[4 * i].w);
        float wide[3];
        uint4 box;
        box.x = halves_of(centre.x, half_size.x, corner.x, size.x, corner.w, &wide[0]);
        box.y = halves_of(centre.y, half_size.y, corner.y, size.y, corner.w, &wide[1]);
        box.z = halves_of(centre.z, half_size.z, corner.z, size.z, corner.w, &wide[2]);
        if (half_size.x < 0.0f) box.x = 0x8000ffffu;  // an empty box ends before it begins
        else grown += surface(make_float3(wide[0], wide[1], wide[2])) > COARSE * surface(at_least_zero(xyz(half_size)) * 2.0f) ? 1u : 0u;
        box.w = (uint)(code >= 0 ? code + 1 : code);
        ((GLOBAL uint4 *)narrow)[2 * i + 2 + child] = box;
    }
    if (grown) atomic_add(coarse, grown);
}

KERNEL votes_here(GLOBAL uint *answer) { answer[0] = HAS_BALLOT; }
