// Collapses a binary tree of 64-byte nodes into the branches and blocks of bvh/traverse_bvh8.h, one level of branches a launch. A branch
// opens its child of the largest area until it has eight; subtrees of up to eight primitives become blocks, since a block costs
// the same however full it is.
#include "bvh/geometry.h"

#define BLOCK_ROOM 8
#define BRANCH_UNITS 4u
#define BLOCK_UNITS 6u
#define EMPTY_BLOCK (0x80000000u | BRANCH_UNITS)  // right after the root

typedef struct {
    float low[8][3], high[8][3];
    int code[8], room[8], count;
} Children;

DEVICE int leaf_size(int code) { return (~code & 7) + 1; }

DEVICE int2 child_codes(GLOBAL const float4 *nodes, int node) {
    return make_int2(as_int(nodes[4 * node].w), as_int(nodes[4 * node + 1].w));
}

// Rows of the primitives below a child, at most BLOCK_ROOM; BLOCK_ROOM + 1 where there are more.
DEVICE int rows_below(GLOBAL const float4 *nodes, int code, int *rows) {
    int pending[BLOCK_ROOM + 1], top = 0, total = 0;
    while (true) {
        if (code < 0) {
            int size = leaf_size(code);
            if (total + size + top > BLOCK_ROOM) return BLOCK_ROOM + 1;
            for (int k = 0; k < size; k++) rows[total++] = (~code >> 3) + k;
            if (top == 0) return total;
            code = pending[--top];
        } else {
            if (total + top + 2 > BLOCK_ROOM) return BLOCK_ROOM + 1;
            int2 both = child_codes(nodes, code);
            pending[top++] = both.y;
            code = both.x;
        }
    }
}

DEVICE void put_child(GLOBAL const float4 *nodes, Children *c, int at, int code, float4 centre, float4 half_size) {
    int rows[BLOCK_ROOM];
    float low[3] = {centre.x - half_size.x, centre.y - half_size.y, centre.z - half_size.z};
    float high[3] = {centre.x + half_size.x, centre.y + half_size.y, centre.z + half_size.z};
    for (int axis = 0; axis < 3; axis++) {
        float pad = 1.2e-7f * larger(fabs(low[axis]), fabs(high[axis]));
        c->low[at][axis] = low[axis] - pad;
        c->high[at][axis] = high[axis] + pad;
    }
    c->code[at] = code;
    c->room[at] = rows_below(nodes, code, rows);
}

DEVICE bool is_block(const Children *c, int k) { return c->code[k] < 0 || c->room[k] <= BLOCK_ROOM; }

DEVICE float area_of(const Children *c, int i) {
    float x = c->high[i][0] - c->low[i][0], y = c->high[i][1] - c->low[i][1], z = c->high[i][2] - c->low[i][2];
    return x * y + y * z + z * x;
}

DEVICE void open_node(GLOBAL const float4 *nodes, int node, Children *c, int at) {
    float4 centre1 = nodes[4 * node], half1 = nodes[4 * node + 1], centre2 = nodes[4 * node + 2], half2 = nodes[4 * node + 3];
    int first = as_int(centre1.w), second = as_int(half1.w);
    if (half1.x >= 0) put_child(nodes, c, at, first, centre1, half1);
    if (half2.x >= 0) put_child(nodes, c, half1.x >= 0 ? c->count : at, second, centre2, half2);
    c->count += (half1.x >= 0 ? 1 : 0) + (half2.x >= 0 ? 1 : 0) - 1;
}

DEVICE void gather_children(GLOBAL const float4 *nodes, int node, Children *c) {
    c->count = 1;
    open_node(nodes, node, c, 0);
    while (c->count < 8) {
        int next = -1;
        float largest = -1.0f;
        for (int i = 0; i < c->count; i++) {
            if (is_block(c, i)) continue;
            float area = area_of(c, i);
            if (area > largest) {
                largest = area;
                next = i;
            }
        }
        if (next < 0) break;
        open_node(nodes, c->code[next], c, next);
    }
}

DEVICE void write_block(GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, int code, GLOBAL float *block) {
    int rows[BLOCK_ROOM], count = rows_below(nodes, code, rows);
    for (int i = 1; i < count; i++) {  // in the order of their numbers
        int row = rows[i], at = i;
        for (; at > 0 && as_int(primitives[3 * rows[at - 1]].w) > as_int(primitives[3 * row].w); at--) rows[at] = rows[at - 1];
        rows[at] = row;
    }
    for (int k = 0; k < 8; k++) {
        float4 nothing = make_float4(0.0f, 0.0f, 0.0f, 0.0f), field = nothing;
        for (int j = 0; j < 3; j++) {
            field = k < count ? primitives[3 * rows[k] + j] : nothing;
            block[24 * j + k] = field.x;
            block[24 * j + 8 + k] = field.y;
            block[24 * j + 16 + k] = field.z;
        }
        block[72 + k] = as_float(k < count ? rows[k] : -1);
        block[80 + k] = field.w;
    }
}

// queue: binary nodes that become branches, and where; counts: branches and units so far; levels[k]: where level k begins in
// the queue. Where `capacity` units are too few, nothing is written beyond them, but counts[1] tells how many it takes.
KERNEL collapse_branches(GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, GLOBAL uint2 *queue, GLOBAL uint *counts,
                         GLOBAL const uint *levels, int level, GLOBAL float *units, int capacity) {
    uint begin = levels[level], end = levels[level + 1], stride = group_count() * GROUP_SIZE;
    for (uint i = begin + thread_index(); i < end; i += stride) {
        uint2 own = queue[i];
        Children c;
        gather_children(nodes, (int)own.x, &c);
        uint inner = 0, taken = 0;
        float extent = 0.0f;
        for (int k = 0; k < c.count; k++) {
            inner += is_block(&c, k) ? 0u : 1u;
            taken += is_block(&c, k) ? BLOCK_UNITS : BRANCH_UNITS;
            for (int axis = 0; axis < 3; axis++) extent = larger(extent, larger(fabs(c.low[k][axis]), fabs(c.high[k][axis])));
        }
        uint slot = atomic_add(&counts[0], inner), place = atomic_add(&counts[1], taken);
        bool fits = place + taken <= (uint)capacity && own.y + BRANCH_UNITS <= (uint)capacity;
        GLOBAL float *branch = units + 16 * (size_t)own.y;
        if (fits && own.y == 0)
            for (int k = 0; k < 96; k++) branch[16 * BRANCH_UNITS + k] = as_float(k / 8 == 9 ? -1 : 0);
        for (int k = 0; k < 8; k++) {
            bool used = k < c.count, leaf = used && is_block(&c, k);
            if (fits) {
                for (int axis = 0; axis < 3; axis++) {
                    branch[16 * axis + k] = used ? c.low[k][axis] : as_float(0x7f800000u);
                    branch[16 * axis + 8 + k] = used ? c.high[k][axis] : as_float(0xff800000u);
                }
                branch[48 + k] = as_float(used ? place | (leaf ? 0x80000000u : 0u) : EMPTY_BLOCK);
                branch[56 + k] = k == 0 ? extent : 0.0f;
                if (leaf) write_block(nodes, primitives, c.code[k], units + 16 * (size_t)place);
            }
            if (used && !leaf) queue[slot++] = make_uint2((uint)c.code[k], place);
            if (used) place += leaf ? BLOCK_UNITS : BRANCH_UNITS;
        }
    }
}

// Between two levels: the branches so far are where the next level's will begin.
KERNEL next_level(GLOBAL const uint *counts, GLOBAL uint *levels, int level) {
    if (thread_index() == 0) levels[level + 2] = counts[0];
}
