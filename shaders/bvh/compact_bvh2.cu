// Finishes a BVH2 with one primitive per leaf, which bvh/build_sah.cu builds: refits the boxes from the leaves up,
// joins subtrees of two or three primitives into leaves, and writes the nodes in depth-first order, in which the
// primitives already are. The kernels run in the order of this file. bvh/aabb.h defines nodes and slots; parent_slot[n]
// is the slot that refers to node n, INVALID_INDEX for the root.
#include "bvh/aabb.h"

// Fills parent_slot. One thread per node.
KERNEL link_nodes(GLOBAL const float4 *nodes, int count, GLOBAL uint *parent_slot) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    if (i == 0) parent_slot[0] = INVALID_INDEX;
    for (uint side = 0; side < 2; side++) {
        int child_ref = ref_of_slot(nodes, 2 * i + side);
        if (child_ref >= 0) parent_slot[child_ref] = 2 * i + side;
    }
}

// Statistics of a subtree, 16 bytes.
typedef struct {
    uint primitives, kept;  // numbers of primitives and of nodes that stay inner nodes
    float areas, pad;  // sum of the half areas of the primitives' boxes; unused
} SubtreeStats;

// The statistics of the subtree in a slot: of an inner node as refit stored them, else of one primitive.
DEVICE SubtreeStats stats_of_slot(GLOBAL const float4 *nodes, GLOBAL const SubtreeStats *stats, uint slot) {
    int child_ref = ref_of_slot(nodes, slot);
    if (child_ref >= 0) return stats[child_ref];
    SubtreeStats one = {1u, 0u, half_area(box_of_slot(nodes, slot)), 0.0f};
    return one;
}

// Computes every node's box and statistics from the leaves up. One thread per slot starts at each leaf; at a node the
// first thread to arrive stops, and the second continues (Karras 2012). A node becomes a leaf if it contains two
// primitives, or three whose split would cost more by the SAH. `visits` must be 0 at the start. kept_and_depth[0]
// becomes the number of nodes that stay inner nodes.
KERNEL refit(GLOBAL float4 *nodes, int count, GLOBAL const uint *parent_slot, GLOBAL uint *visits,
             GLOBAL SubtreeStats *stats, GLOBAL uint *kept_and_depth) {
    uint slot = thread_index();
    if (slot >= 2u * (uint)count || ref_of_slot(nodes, slot) >= 0) return;
    for (uint node = slot >> 1;; node = slot >> 1) {
        GLOBAL_FENCE();
        if (atomic_add(&visits[node], 1u) == 0) return;  // the second visitor finds both children finished
        GLOBAL_FENCE();
        SubtreeStats a = stats_of_slot(nodes, stats, 2 * node), b = stats_of_slot(nodes, stats, 2 * node + 1);
        SubtreeStats both = {a.primitives + b.primitives, 0u, a.areas + b.areas, 0.0f};
        Box box = box_of_node(nodes, node);
        bool leaf =
            node != 0 && (both.primitives <= 2 || (both.primitives == 3 && both.areas >= 2.0f * half_area(box)));
        if (!leaf) both.kept = 1u + a.kept + b.kept;
        stats[node] = both;
        slot = parent_slot[node];
        if (slot == INVALID_INDEX) {
            kept_and_depth[0] = both.kept;
            return;
        }
        write_slot(nodes, slot, box, (int)node);
    }
}

// The position of a slot's subtree in depth-first order: indices of its first primitive and its first node, and its
// depth. INVALID_INDEX stands for the root: (0, 0, 0). Before the subtree come its ancestors, one node each, and the
// left siblings of all right children on the way to the root.
DEVICE uint3 begin_of_slot(GLOBAL const float4 *nodes, GLOBAL const SubtreeStats *stats, GLOBAL const uint *parent_slot,
                           uint slot) {
    uint primitive = 0, kept = 0, depth = 0;
    while (slot != INVALID_INDEX) {
        if (slot & 1u) {
            SubtreeStats before = stats_of_slot(nodes, stats, slot ^ 1u);
            primitive += before.primitives;
            kept += before.kept;
        }
        kept++;
        depth++;
        slot = parent_slot[slot >> 1];
    }
    return make_uint3(primitive, kept, depth);
}

// Writes the nodes that stay to `compacted`, in depth-first order. cost[0], 0 at the start, becomes the sum of the half
// areas of all children, a leaf's times its number of primitives, and cost[1] the root's half area: their quotient plus
// 1 is the SAH cost. kept_and_depth[1], 0 at the start, becomes the depth of the BVH.
KERNEL compact_nodes(GLOBAL const float4 *nodes, int count, GLOBAL const SubtreeStats *stats,
                     GLOBAL const uint *parent_slot, GLOBAL float4 *compacted, GLOBAL float *cost,
                     GLOBAL uint *kept_and_depth) {
    float sum = 0.0f;
    for (uint node = thread_index(); node < (uint)count; node += group_count() * GROUP_SIZE) {
        if (node == 0) cost[1] = half_area(box_of_node(nodes, 0));
        if (stats[node].kept == 0) continue;  // it is part of a leaf
        uint3 begin = begin_of_slot(nodes, stats, parent_slot, parent_slot[node]);
        uint child = begin.y + 1;
        if (begin.z + 1u > kept_and_depth[1]) atomic_max(&kept_and_depth[1], begin.z + 1u);
        for (uint side = 0; side < 2; side++) {
            SubtreeStats subtree = stats_of_slot(nodes, stats, 2 * node + side);
            Box box = box_of_slot(nodes, 2 * node + side);
            write_slot(compacted, 2 * begin.y + side, box,
                       subtree.kept ? (int)child : ~(int)(begin.x * 8 + subtree.primitives - 1));
            sum += half_area(box) * (subtree.kept ? 1.0f : (float)subtree.primitives);
            begin.x += subtree.primitives;
            child += subtree.kept;
        }
    }
    atomic_add_float(&cost[0], sum);
}
