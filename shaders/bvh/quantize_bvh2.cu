// Quantizes the nodes of a BVH2 to those of bvh/traverse_bvh2_quantized.h: the grid over the scene, then every box.
#include "common/portable.h"

#define MAX_STEP 32767.0f  // of the grid
#define MAX_AREA_GROWTH 1.1f  // a box whose surface grows by more counts as coarse

DEVICE float half_area(float3 side) { return side.x * side.y + side.y * side.z + side.z * side.x; }

DEVICE float3 at_least_zero(float3 a) {
    return make_float3(max_nnan(a.x, 0.0f), max_nnan(a.y, 0.0f), max_nnan(a.z, 0.0f));
}

// The grid over the root's boxes, node 0 of `quantized`; one thread.
KERNEL fit_grid(GLOBAL const float4 *nodes, GLOBAL float4 *quantized, GLOBAL uint *coarse_boxes) {
    if (thread_index() > 0) return;
    float3 low = make_float3(FLT_MAX, FLT_MAX, FLT_MAX), high = make_float3(-FLT_MAX, -FLT_MAX, -FLT_MAX);
    for (int child = 0; child < 2; child++) {
        float3 center = xyz(nodes[2 * child]), half_extent = xyz(nodes[2 * child + 1]);
        if (half_extent.x < 0.0f) continue;  // an empty box
        low = make_float3(min_nnan(low.x, center.x - half_extent.x), min_nnan(low.y, center.y - half_extent.y),
                          min_nnan(low.z, center.z - half_extent.z));
        high = make_float3(max_nnan(high.x, center.x + half_extent.x), max_nnan(high.y, center.y + half_extent.y),
                           max_nnan(high.z, center.z + half_extent.z));
    }
    float3 largest = make_float3(max_nnan(fabs(low.x), fabs(high.x)), max_nnan(fabs(low.y), fabs(high.y)),
                                 max_nnan(fabs(low.z), fabs(high.z)));
    // slightly larger, so that all planes stay inside when rounded; never flat
    float3 size = make_float3((high.x - low.x) * 1.001f + largest.x * 1e-6f + 1e-30f,
                              (high.y - low.y) * 1.001f + largest.y * 1e-6f + 1e-30f,
                              (high.z - low.z) * 1.001f + largest.z * 1e-6f + 1e-30f);
    float3 corner =
        make_float3(low.x - size.x * 4e-4f - size.x, low.y - size.y * 4e-4f - size.y, low.z - size.z * 4e-4f - size.z);
    float extent = max_nnan(max_nnan(fabs(corner.x) + 2.0f * size.x, fabs(corner.y) + 2.0f * size.y),
                            fabs(corner.z) + 2.0f * size.z);
    quantized[0] = with_w(corner, extent);
    quantized[1] = with_w(size, 0.0f);
    coarse_boxes[0] = 0;
}

// The planes of a box on one axis as grid steps, rounded outwards by more than the error of this arithmetic; *side is
// their distance.
DEVICE uint quantize_planes(float center, float half_extent, float corner, float size, float extent, float *side) {
    float step = size / (MAX_STEP + 1.0f), padding = 0.015625f + extent * 4.8e-7f / step;
    float first = floor((center - half_extent - size - corner) / step - padding),
          last = ceil((center + half_extent - size - corner) / step + padding);
    first = min_nnan(max_nnan(first, 0.0f), MAX_STEP);
    last = min_nnan(max_nnan(last, 0.0f), MAX_STEP);
    *side = (last - first) * step;
    return 0x80008000u | (uint)first | (uint)last << 16;
}

KERNEL quantize_nodes(GLOBAL const float4 *nodes, int count, GLOBAL float4 *quantized, GLOBAL uint *coarse_boxes) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    float4 corner = quantized[0], size = quantized[1];
    uint grown = 0;
    for (int child = 0; child < 2; child++) {
        float4 center = nodes[4 * i + 2 * child], half_extent = nodes[4 * i + 2 * child + 1];
        int child_ref = as_int(child ? nodes[4 * i + 1].w : nodes[4 * i].w);
        float sides[3];
        uint4 box;
        box.x = quantize_planes(center.x, half_extent.x, corner.x, size.x, corner.w, &sides[0]);
        box.y = quantize_planes(center.y, half_extent.y, corner.y, size.y, corner.w, &sides[1]);
        box.z = quantize_planes(center.z, half_extent.z, corner.z, size.z, corner.w, &sides[2]);
        if (half_extent.x < 0.0f)
            box.x = 0x8000ffffu;  // an empty box ends before it begins
        else
            grown += half_area(make_float3(sides[0], sides[1], sides[2])) >
                             MAX_AREA_GROWTH * half_area(at_least_zero(xyz(half_extent)) * 2.0f)
                         ? 1u
                         : 0u;
        box.w = (uint)(child_ref >= 0 ? child_ref + 1 : child_ref);
        ((GLOBAL uint4 *)quantized)[2 * i + 2 + child] = box;
    }
    if (grown) atomic_add(coarse_boxes, grown);
}

// Whether the device has warps of 32 with ballots, shuffles and byte permutes.
KERNEL query_ballot(GLOBAL uint *answer) { answer[0] = HAS_BALLOT; }
