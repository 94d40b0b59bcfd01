// Collapses a binary tree of 64-byte nodes into the 80-byte 8-wide nodes of bvh/traverse_cwbvh.h, one level of wide nodes a launch.
// A node opens its child of the largest area until it has eight (Y. Gu et al. and jbikker's tinybvh do the same); subtrees of up
// to three primitives become leaves; children go to the slots whose octant they lie in, greedily (Ylitie et al. 2017, 3.2).
#include "bvh/geometry.h"

#define LEAF_ROOM 3

typedef struct {
    float low[8][3], high[8][3];
    int code[8];    // as in bvh/traverse_bvh2.h
    int room[8];    // primitives below, LEAF_ROOM + 1 for more than a leaf may hold
    int count;
} Children;

DEVICE int leaf_size(int code) { return (~code & 7) + 1; }

DEVICE int2 child_codes(GLOBAL const float4 *nodes, int node) {
    return make_int2(as_int(nodes[4 * node].w), as_int(nodes[4 * node + 1].w));
}

// Primitives below a child, or LEAF_ROOM + 1 where there are more than LEAF_ROOM.
DEVICE int room_of(GLOBAL const float4 *nodes, int code) {
    int pending[2], top = 0, total = 0, opened = 0;
    while (true) {
        if (code < 0) {
            total += leaf_size(code);
            if (top == 0) break;
            code = pending[--top];
        } else {
            if (++opened >= LEAF_ROOM || total >= LEAF_ROOM || top == 2) return LEAF_ROOM + 1;
            int2 both = child_codes(nodes, code);
            pending[top++] = both.y;
            code = both.x;
        }
    }
    return total <= LEAF_ROOM ? total : LEAF_ROOM + 1;
}

DEVICE void put_child(Children *c, int at, int code, int room, float4 centre, float4 half_size) {
    c->low[at][0] = centre.x - half_size.x;
    c->high[at][0] = centre.x + half_size.x;
    c->low[at][1] = centre.y - half_size.y;
    c->high[at][1] = centre.y + half_size.y;
    c->low[at][2] = centre.z - half_size.z;
    c->high[at][2] = centre.z + half_size.z;
    c->code[at] = code;
    c->room[at] = room;
}

// Puts the two children of a binary node at `at` and at the end; empty halves of a tiny tree are left out.
DEVICE void open_node(GLOBAL const float4 *nodes, int node, Children *c, int at) {
    float4 centre1 = nodes[4 * node], half1 = nodes[4 * node + 1], centre2 = nodes[4 * node + 2], half2 = nodes[4 * node + 3];
    int first = as_int(centre1.w), second = as_int(half1.w);
    if (half1.x >= 0) put_child(c, at, first, room_of(nodes, first), centre1, half1);
    if (half2.x >= 0) put_child(c, half1.x >= 0 ? c->count : at, second, room_of(nodes, second), centre2, half2);
    c->count += (half1.x >= 0 ? 1 : 0) + (half2.x >= 0 ? 1 : 0) - 1;
}

// The inner child of the largest area, among those that fit into a leaf or those that do not; -1 for none.
DEVICE int largest_child(const Children *c, bool fitting) {
    int best = -1;
    float largest = -1.0f;
    for (int i = 0; i < c->count; i++) {
        if (c->code[i] < 0 || (c->room[i] <= LEAF_ROOM) != fitting) continue;
        float x = c->high[i][0] - c->low[i][0], y = c->high[i][1] - c->low[i][1], z = c->high[i][2] - c->low[i][2];
        float area = x * y + y * z + z * x;
        if (area > largest) {
            largest = area;
            best = i;
        }
    }
    return best;
}

DEVICE void gather_children(GLOBAL const float4 *nodes, int node, Children *c) {
    c->count = 1;
    open_node(nodes, node, c, 0);
    for (int fitting = 0; fitting < 2; fitting++) {
        while (c->count < 8) {
            int next = largest_child(c, fitting != 0);
            if (next < 0) break;
            open_node(nodes, c->code[next], c, next);
        }
    }
}

// For each slot the child that takes it, or -1.
DEVICE void fill_slots(const Children *c, const float *low, const float *high, int *child_of) {
    uint children_left = (1u << c->count) - 1u, slots_left = 255u;
    for (int slot = 0; slot < 8; slot++) child_of[slot] = -1;
    while (children_left) {
        float least = INFINITE;
        int best_slot = -1, best_child = -1;
        for (int i = 0; i < c->count; i++) {
            if (!((children_left >> i) & 1u)) continue;
            float x = c->low[i][0] + c->high[i][0] - low[0] - high[0], y = c->low[i][1] + c->high[i][1] - low[1] - high[1],
                  z = c->low[i][2] + c->high[i][2] - low[2] - high[2];
            for (int slot = 0; slot < 8; slot++) {
                if (!((slots_left >> slot) & 1u)) continue;
                float cost = ((slot & 4) ? -x : x) + ((slot & 2) ? -y : y) + ((slot & 1) ? -z : z);
                if (cost < least || best_slot < 0) {
                    least = cost;
                    best_slot = slot;
                    best_child = i;
                }
            }
        }
        child_of[best_slot] = best_child;
        children_left &= ~(1u << best_child);
        slots_left &= ~(1u << best_slot);
    }
}

// The biased exponent of the least power of two of which 254 cover the extent.
DEVICE uint grid_exponent(float extent) {
    uint bits = as_uint(extent * (1.0f / 254.0f));
    return min(max((bits >> 23) + ((bits & 0x7fffffu) ? 1u : 0u), 1u), 254u);
}

DEVICE void copy_primitive(GLOBAL const float4 *from, int row, GLOBAL float4 *into, uint place) {
    for (int k = 0; k < 3; k++) into[3 * place + k] = from[3 * row + k];
}

// Writes the primitives below a child one after another from `place`.
DEVICE void write_leaf(GLOBAL const float4 *nodes, int code, GLOBAL const float4 *from, GLOBAL float4 *into, uint place) {
    int pending[2], top = 0;
    while (true) {
        if (code < 0) {
            for (int k = 0; k < leaf_size(code); k++) copy_primitive(from, (~code >> 3) + k, into, place++);
            if (top == 0) break;
            code = pending[--top];
        } else {
            int2 both = child_codes(nodes, code);
            pending[top++] = both.y;
            code = both.x;
        }
    }
}

// counts: 0 wide nodes so far, 1 primitives so far; levels[k]: where the nodes of level k begin.
KERNEL collapse(GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, GLOBAL int *binary_of, GLOBAL uint *counts,
                GLOBAL const uint *levels, int level, GLOBAL uint *wide, GLOBAL float4 *wide_primitives) {
    LOCAL_ARRAY(uint, taken, 4);
    uint begin = levels[level], end = levels[level + 1], stride = group_count() * GROUP_SIZE;
    for (uint block = begin + group_index() * GROUP_SIZE; block < end; block += stride) {
        uint node = block + local_index();
        bool active = node < end;
        if (local_index() < 2) taken[local_index()] = 0;
        BARRIER();
        Children c;
        int child_of[8];
        uint inner_count = 0, leaf_count = 0, inner_place = 0, leaf_place = 0;
        float low[3] = {INFINITE, INFINITE, INFINITE}, high[3] = {-INFINITE, -INFINITE, -INFINITE};
        if (active) {
            gather_children(nodes, binary_of[node], &c);
            for (int i = 0; i < c.count; i++) {
                for (int axis = 0; axis < 3; axis++) {
                    low[axis] = smaller(low[axis], c.low[i][axis]);
                    high[axis] = larger(high[axis], c.high[i][axis]);
                }
                if (c.room[i] > LEAF_ROOM) inner_count++;
                else leaf_count += (uint)c.room[i];
            }
            fill_slots(&c, low, high, child_of);
            inner_place = atomic_add(&taken[0], inner_count);
            leaf_place = atomic_add(&taken[1], leaf_count);
        }
        BARRIER();
        if (local_index() < 2) taken[local_index() + 2] = atomic_add(&counts[local_index()], taken[local_index()]);
        BARRIER();
        if (active) {
            inner_place += taken[2];
            leaf_place += taken[3];
            uint words[20];
            float step[3];
            uint mask = 0, leaf = 0, inner = 0;
            for (int k = 4; k < 20; k++) words[k] = 0;
            words[3] = 0;
            for (int axis = 0; axis < 3; axis++) {
                uint exponent = c.count ? grid_exponent(high[axis] - low[axis]) : 1u;
                // The corner lies a little lower, so that the lowest boxes have room for the rounding of planes too.
                if (c.count) low[axis] = fma(as_float(exponent << 23), -0.02f, low[axis]);
                words[axis] = as_uint(c.count ? low[axis] : 0.0f);
                words[3] |= exponent << (8 * axis);
                step[axis] = 1.0f / as_float(exponent << 23);
            }
            for (int slot = 0; slot < 8; slot++) {
                int i = c.count ? child_of[slot] : -1;
                if (i < 0) continue;
                uint half_word = (uint)slot >> 2, shift = 8u * ((uint)slot & 3u), meta;
                if (c.room[i] > LEAF_ROOM) {
                    mask |= 1u << slot;
                    meta = 0x20u | (24u + (uint)slot);
                    binary_of[inner_place + inner++] = c.code[i];
                } else {
                    meta = ((1u << c.room[i]) - 1u) << 5 | leaf;
                    write_leaf(nodes, c.code[i], primitives, wide_primitives, leaf_place + leaf);
                    leaf += (uint)c.room[i];
                }
                words[6 + half_word] |= meta << shift;
                for (int axis = 0; axis < 3; axis++) {
                    float first = floor((c.low[i][axis] - low[axis]) * step[axis] - 0.01f);
                    float last = ceil((c.high[i][axis] - low[axis]) * step[axis] + 0.01f);
                    words[8 + 2 * axis + half_word] |= (uint)clamp(first, 0.0f, 255.0f) << shift;
                    words[14 + 2 * axis + half_word] |= (uint)clamp(last, 0.0f, 255.0f) << shift;
                }
            }
            words[3] |= mask << 24;
            words[4] = inner_place;
            words[5] = leaf_place;
            for (int k = 0; k < 20; k++) wide[20 * node + k] = words[k];
        }
        BARRIER();
    }
}

// Between two levels: the nodes so far are where the next level's children will begin.
KERNEL next_level(GLOBAL const uint *counts, GLOBAL uint *levels, int level) {
    if (thread_index() == 0) levels[level + 2] = counts[0];
}
