// Collapses a finished BVH2 (bvh/traverse_bvh2.h) into the node8 and leaf8 records of bvh/traverse_bvh8.h, which
// defines their 64-byte lines; each launch of collapse_bvh8 makes one level of nodes. A node8 starts with the two
// children of a BVH2 node and replaces the child of the largest area by its two children until it has eight (I. Wald et
// al. 2008). A subtree of up to eight primitives becomes a leaf8, since testing a leaf8 takes the same time however
// full it is. center_nodes.cu is included, so that CPUs compile (130 ms) and load (30 ms) one program less.
// Words of a node8: 48 to 55 are the child references, 56 the largest absolute coordinate. Words of a leaf8: 72 to 79
// are the primitives' indices, 80 to 87 their radii.
#include "bvh/center_nodes.cu"
#include "bvh/geometry.h"

#define MAX_LEAF_PRIMS 8
#define NODE8_LINES 4u
#define LEAF8_LINES 6u
#define EMPTY_LEAF (0x80000000u | NODE8_LINES)  // the reference of unused boxes: a leaf8 right after the root

// The children of a node8 so far: boxes, BVH2 references, numbers of primitives (MAX_LEAF_PRIMS + 1: more).
typedef struct {
    float low[8][3], high[8][3];
    int child_ref[8], prim_count[8], count;
} Children;

// Writes the indices of the primitives below a child to `prims`. Returns their number, or MAX_LEAF_PRIMS + 1 if there
// are more than MAX_LEAF_PRIMS.
DEVICE_NOINLINE_ALWAYS int prims_below(GLOBAL const float4 *nodes, int child_ref, int *prims) {
    // total + top is at most the number of primitives, since each pending subtree has at least one
    int pending[MAX_LEAF_PRIMS + 1], top = 0, total = 0;
    while (true) {
        if (child_ref < 0) {
            int size = (~child_ref & 7) + 1;
            if (total + size + top > MAX_LEAF_PRIMS) return MAX_LEAF_PRIMS + 1;
            for (int k = 0; k < size; k++) prims[total++] = (~child_ref >> 3) + k;
            if (top == 0) return total;
            child_ref = pending[--top];
        } else {
            if (total + top + 2 > MAX_LEAF_PRIMS) return MAX_LEAF_PRIMS + 1;
            pending[top++] = as_int(nodes[4 * child_ref + 1].w);
            child_ref = as_int(nodes[4 * child_ref].w);
        }
    }
}

// Sets child k: its reference, its box, padded for the rounding from center and half extent, and its primitive count.
DEVICE_NOINLINE_ALWAYS void set_child(GLOBAL const float4 *nodes, Children *c, int k, int child_ref, float4 center,
                                      float4 half_extent) {
    int prims[MAX_LEAF_PRIMS];
    float low[3] = {center.x - half_extent.x, center.y - half_extent.y, center.z - half_extent.z};
    float high[3] = {center.x + half_extent.x, center.y + half_extent.y, center.z + half_extent.z};
    for (int axis = 0; axis < 3; axis++) {
        float pad = 1.2e-7f * max_nnan(fabs(low[axis]), fabs(high[axis]));
        c->low[k][axis] = low[axis] - pad;
        c->high[k][axis] = high[axis] + pad;
    }
    c->child_ref[k] = child_ref;
    c->prim_count[k] = prims_below(nodes, child_ref, prims);
}

// True if child k becomes a leaf8: a leaf of the BVH2, or a subtree of at most MAX_LEAF_PRIMS primitives.
DEVICE bool is_leaf8(const Children *c, int k) { return c->child_ref[k] < 0 || c->prim_count[k] <= MAX_LEAF_PRIMS; }

// Half of the surface area of child i's box.
DEVICE float area_of(const Children *c, int i) {
    float x = c->high[i][0] - c->low[i][0], y = c->high[i][1] - c->low[i][1], z = c->high[i][2] - c->low[i][2];
    return x * y + y * z + z * x;
}

// Replaces child k, BVH2 node `node`, by its two children: the first in position k, the second appended. An empty box,
// whose half extent is negative, is left out.
DEVICE void expand_node(GLOBAL const float4 *nodes, int node, Children *c, int k) {
    float4 center1 = nodes[4 * node], half1 = nodes[4 * node + 1], center2 = nodes[4 * node + 2],
           half2 = nodes[4 * node + 3];
    int first = as_int(center1.w), second = as_int(half1.w);
    if (half1.x >= 0) set_child(nodes, c, k, first, center1, half1);
    if (half2.x >= 0) set_child(nodes, c, half1.x >= 0 ? c->count : k, second, center2, half2);
    c->count += (half1.x >= 0 ? 1 : 0) + (half2.x >= 0 ? 1 : 0) - 1;
}

// Collects the up to eight children of the node8 that BVH2 node `node` becomes.
DEVICE void gather_children(GLOBAL const float4 *nodes, int node, Children *c) {
    c->count = 1;
    expand_node(nodes, node, c, 0);
    while (c->count < 8) {
        int next = -1;
        float largest = -1.0f;
        for (int i = 0; i < c->count; i++) {
            if (is_leaf8(c, i)) continue;
            float area = area_of(c, i);
            if (area > largest) {
                largest = area;
                next = i;
            }
        }
        if (next < 0) break;
        expand_node(nodes, c->child_ref[next], c, next);
    }
}

// Writes the leaf8 of the subtree `child_ref`.
DEVICE_NOINLINE_ALWAYS void write_leaf8(GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, int child_ref,
                                        GLOBAL float *leaf8) {
    int prims[MAX_LEAF_PRIMS], count = prims_below(nodes, child_ref, prims);
    for (int i = 1; i < count; i++) {  // insertion sort by primitive id
        int prim = prims[i], j = i;
        for (; j > 0 && as_int(primitives[3 * prims[j - 1]].w) > as_int(primitives[3 * prim].w); j--)
            prims[j] = prims[j - 1];
        prims[j] = prim;
    }
    for (int k = 0; k < 8; k++) {
        float4 nothing = make_float4(0.0f, 0.0f, 0.0f, 0.0f), field = nothing;
        for (int j = 0; j < 3; j++) {
            field = k < count ? primitives[3 * prims[k] + j] : nothing;
            leaf8[24 * j + k] = field.x;
            leaf8[24 * j + 8 + k] = field.y;
            leaf8[24 * j + 16 + k] = field.z;
        }
        leaf8[72 + k] = as_float(k < count ? prims[k] : -1);
        leaf8[80 + k] = field.w;
    }
}

// Writes all node8 of one level and the leaf8 below them, one thread per node8. queue: for each node8, the BVH2 node
// that it replaces and the index of its first line; counts: numbers of node8 and of lines so far; levels[k]: index in
// the queue of level k's first node8. Beyond `capacity` lines nothing is written, but counts[1] still becomes the
// number of lines needed. At the start the root and the empty leaf count: counts 1 and their lines, levels 0 and 1.
KERNEL collapse_bvh8(GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, GLOBAL uint2 *queue,
                     GLOBAL uint *counts, GLOBAL const uint *levels, int level, GLOBAL float *lines, int capacity) {
    uint begin = levels[level], end = levels[level + 1], stride = group_count() * GROUP_SIZE;
    for (uint i = begin + thread_index(); i < end; i += stride) {
        uint2 node_and_line = queue[i];
        Children c;
        gather_children(nodes, (int)node_and_line.x, &c);
        uint inner = 0, needed = 0;
        float extent = 0.0f;
        for (int k = 0; k < c.count; k++) {
            inner += is_leaf8(&c, k) ? 0u : 1u;
            needed += is_leaf8(&c, k) ? LEAF8_LINES : NODE8_LINES;
            for (int axis = 0; axis < 3; axis++)
                extent = max_nnan(extent, max_nnan(fabs(c.low[k][axis]), fabs(c.high[k][axis])));
        }
        uint slot = atomic_add(&counts[0], inner), line = atomic_add(&counts[1], needed);
        bool fits = line + needed <= (uint)capacity && node_and_line.y + NODE8_LINES <= (uint)capacity;
        GLOBAL float *node8 = lines + 16 * (size_t)node_and_line.y;
        if (fits && node_and_line.y == 0)  // behind the root, the empty leaf: zeros, and in row 9 the indices -1
            for (int k = 0; k < 96; k++) node8[16 * NODE8_LINES + k] = as_float(k / 8 == 9 ? -1 : 0);
        for (int k = 0; k < 8; k++) {
            bool used = k < c.count, leaf = used && is_leaf8(&c, k);
            if (fits) {
                for (int axis = 0; axis < 3; axis++) {
                    // an unused box has the min corner infinity and the max corner -infinity
                    node8[16 * axis + k] = used ? c.low[k][axis] : as_float(0x7f800000u);
                    node8[16 * axis + 8 + k] = used ? c.high[k][axis] : as_float(0xff800000u);
                }
                node8[48 + k] = as_float(used ? line | (leaf ? 0x80000000u : 0u) : EMPTY_LEAF);
                node8[56 + k] = k == 0 ? extent : 0.0f;
                if (leaf) write_leaf8(nodes, primitives, c.child_ref[k], lines + 16 * (size_t)line);
            }
            if (used && !leaf) queue[slot++] = make_uint2((uint)c.child_ref[k], line);
            if (used) line += leaf ? LEAF8_LINES : NODE8_LINES;
        }
    }
}

// Launched between two levels: level + 2 begins in the queue after all node8 so far.
KERNEL next_level(GLOBAL const uint *counts, GLOBAL uint *levels, int level) {
    if (thread_index() == 0) levels[level + 2] = counts[0];
}
