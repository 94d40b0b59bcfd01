// The last step of every BVH2 build: converts the boxes of nodes in place from min and max corners (bvh/aabb.h) to
// centers and half extents (bvh/traverse_bvh2.h). Half extents are enlarged by 2^-23 of the center and 3e-7 of
// themselves, more than rounding takes away. One thread per node. The kernel has a separate file, so that BVHs built
// on the host need not compile the device builders.
KERNEL center_nodes(GLOBAL float4 *nodes, int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    float4 a = nodes[4 * i], b = nodes[4 * i + 1], z = nodes[4 * i + 2], child_refs = nodes[4 * i + 3];
    float low[6] = {a.x, a.z, z.x, b.x, b.z, z.z}, high[6] = {a.y, a.w, z.y, b.y, b.w, z.w}, center[6], half_extent[6];
    for (int k = 0; k < 6; k++) {
        bool empty = low[k] > high[k];
        center[k] = empty ? 0.0f : fma(0.5f, high[k], 0.5f * low[k]);
        half_extent[k] =
            empty ? -FLT_MAX
                  : fma(fabs(center[k]), 1.2e-7f, max_nnan(high[k] - center[k], center[k] - low[k]) * 1.0000003f);
    }
    nodes[4 * i] = make_float4(center[0], center[1], center[2], child_refs.x);
    nodes[4 * i + 1] = make_float4(half_extent[0], half_extent[1], half_extent[2], child_refs.y);
    nodes[4 * i + 2] = make_float4(center[3], center[4], center[5], 0.0f);
    nodes[4 * i + 3] = make_float4(half_extent[3], half_extent[4], half_extent[5], 0.0f);
}
