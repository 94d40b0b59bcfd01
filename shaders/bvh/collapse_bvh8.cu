// Collapses a BVH2 into the nodes and leaves of bvh/traverse_bvh8.h, one level of nodes a launch. A node replaces its
// child of the largest area by that one's children until it has eight; a subtree of up to eight primitives becomes a
// leaf, since a leaf costs the same however full it is. center_nodes is here too: CPUs load a program in 30 ms.
#include "bvh/center_nodes.cu"
#include "bvh/geometry.h"

#define MAX_LEAF_PRIMS 8
#define NODE8_LINES 4u
#define LEAF8_LINES 6u
#define EMPTY_LEAF (0x80000000u | NODE8_LINES)  // right after the root

typedef struct {
    float low[8][3], high[8][3];
    int child_ref[8], prim_count[8], count;
} Children;

// Lists the primitives below a child; returns their number, MAX_LEAF_PRIMS + 1 if there are more than MAX_LEAF_PRIMS.
DEVICE_NOINLINE_ALWAYS int prims_below(GLOBAL const float4 *nodes, int child_ref, int *prims) {
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

DEVICE_NOINLINE_ALWAYS void set_child(GLOBAL const float4 *nodes, Children *c, int at, int child_ref, float4 center,
                                      float4 half_extent) {
    int prims[MAX_LEAF_PRIMS];
    float low[3] = {center.x - half_extent.x, center.y - half_extent.y, center.z - half_extent.z};
    float high[3] = {center.x + half_extent.x, center.y + half_extent.y, center.z + half_extent.z};
    for (int axis = 0; axis < 3; axis++) {
        float pad = 1.2e-7f * max_nnan(fabs(low[axis]), fabs(high[axis]));
        c->low[at][axis] = low[axis] - pad;
        c->high[at][axis] = high[axis] + pad;
    }
    c->child_ref[at] = child_ref;
    c->prim_count[at] = prims_below(nodes, child_ref, prims);
}

DEVICE bool is_leaf8(const Children *c, int k) { return c->child_ref[k] < 0 || c->prim_count[k] <= MAX_LEAF_PRIMS; }

DEVICE float area_of(const Children *c, int i) {
    float x = c->high[i][0] - c->low[i][0], y = c->high[i][1] - c->low[i][1], z = c->high[i][2] - c->low[i][2];
    return x * y + y * z + z * x;
}

DEVICE void expand_node(GLOBAL const float4 *nodes, int node, Children *c, int at) {
    float4 center1 = nodes[4 * node], half1 = nodes[4 * node + 1], center2 = nodes[4 * node + 2],
           half2 = nodes[4 * node + 3];
    int first = as_int(center1.w), second = as_int(half1.w);
    if (half1.x >= 0) set_child(nodes, c, at, first, center1, half1);
    if (half2.x >= 0) set_child(nodes, c, half1.x >= 0 ? c->count : at, second, center2, half2);
    c->count += (half1.x >= 0 ? 1 : 0) + (half2.x >= 0 ? 1 : 0) - 1;
}

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

DEVICE_NOINLINE_ALWAYS void write_leaf8(GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, int child_ref,
                                        GLOBAL float *leaf8) {
    int prims[MAX_LEAF_PRIMS], count = prims_below(nodes, child_ref, prims);
    for (int i = 1; i < count; i++) {  // sorted by primitive id
        int prim = prims[i], at = i;
        for (; at > 0 && as_int(primitives[3 * prims[at - 1]].w) > as_int(primitives[3 * prim].w); at--)
            prims[at] = prims[at - 1];
        prims[at] = prim;
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

// queue: BVH2 nodes that become nodes, and their first lines; counts: nodes and lines so far; levels[k]: where level k
// begins in the queue. Beyond `capacity` lines nothing is written, but counts[1] still becomes the number of lines
// needed.
KERNEL collapse_bvh8(GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, GLOBAL uint2 *queue,
                     GLOBAL uint *counts, GLOBAL const uint *levels, int level, GLOBAL float *lines, int capacity) {
    uint begin = levels[level], end = levels[level + 1], stride = group_count() * GROUP_SIZE;
    for (uint i = begin + thread_index(); i < end; i += stride) {
        uint2 own = queue[i];
        Children c;
        gather_children(nodes, (int)own.x, &c);
        uint inner = 0, needed = 0;
        float extent = 0.0f;
        for (int k = 0; k < c.count; k++) {
            inner += is_leaf8(&c, k) ? 0u : 1u;
            needed += is_leaf8(&c, k) ? LEAF8_LINES : NODE8_LINES;
            for (int axis = 0; axis < 3; axis++)
                extent = max_nnan(extent, max_nnan(fabs(c.low[k][axis]), fabs(c.high[k][axis])));
        }
        uint slot = atomic_add(&counts[0], inner), line = atomic_add(&counts[1], needed);
        bool fits = line + needed <= (uint)capacity && own.y + NODE8_LINES <= (uint)capacity;
        GLOBAL float *node8 = lines + 16 * (size_t)own.y;
        if (fits && own.y == 0)
            for (int k = 0; k < 96; k++) node8[16 * NODE8_LINES + k] = as_float(k / 8 == 9 ? -1 : 0);
        for (int k = 0; k < 8; k++) {
            bool used = k < c.count, leaf = used && is_leaf8(&c, k);
            if (fits) {
                for (int axis = 0; axis < 3; axis++) {
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

// Between two levels: the next level begins behind the nodes so far.
KERNEL next_level(GLOBAL const uint *counts, GLOBAL uint *levels, int level) {
    if (thread_index() == 0) levels[level + 2] = counts[0];
}
