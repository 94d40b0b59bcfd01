// Improves a finished binary tree by moving subtrees to where they cost less (parallel reinsertion: D. Meister and J. Bittner 2018),
// then turns small subtrees into leaves and writes nodes and primitives depth first.
// Nodes hold lowest and highest corners, as bvh.NODE says. Slot 2 n + side is a child of node n, with its box and its code; up[n] is
// the slot that node n stands in, NOTHING for the root. A move takes a slot's content, together with the node n it is in, out of the
// tree and puts that node between another slot and its content: three slots change and no node changes its number.
#include "bvh/aabb.h"

#define PENDING 32   // subtrees that a search still has to look into
#define VISITS 96    // of one search below one of the node's ancestors
#define CLIMBS 24    // ancestors below which a search looks

// Who stands where, for nodes whose children know only themselves.
KERNEL link_nodes(GLOBAL const float4 *nodes, int count, GLOBAL uint *up) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    if (i == 0) up[0] = NOTHING;
    for (uint side = 0; side < 2; side++) {
        int code = code_of_slot(nodes, 2 * i + side);
        if (code >= 0) up[code] = 2 * i + side;
    }
}

// What a search below `slot` has found. `saved`: what taking the subtree out saves, less what boxes on the way down grow by.
typedef struct {
    float gain;
    uint target, common;
} Move;

DEVICE void search_below(GLOBAL const float4 *nodes, uint slot, const Box in, float least, float saved, uint common, Move *best) {
    uint pending[PENDING], top = 1;
    float saved_there[PENDING];
    pending[0] = slot;
    saved_there[0] = saved;
    for (int visits = 0; top > 0 && visits < VISITS; visits++) {
        top--;
        uint here = pending[top];
        saved = saved_there[top];
        if (saved - least <= best->gain) continue;
        Box box = box_of_slot(nodes, here);
        float joined = area_of(union_of(box, in));
        if (saved - joined > best->gain) {
            best->gain = saved - joined;
            best->target = here;
            best->common = common;
        }
        int code = code_of_slot(nodes, here);
        float below = saved + area_of(box) - joined;
        if (code < 0 || below - least <= best->gain || top + 2 > PENDING) continue;
        float first = area_of(union_of(box_of_slot(nodes, 2 * (uint)code), in)), second = area_of(union_of(box_of_slot(nodes, 2 * (uint)code + 1), in));
        uint nearer = first <= second ? 0u : 1u;  // looked into first, so put down last
        pending[top] = 2 * (uint)code + 1 - nearer;
        saved_there[top++] = below;
        pending[top] = 2 * (uint)code + nearer;
        saved_there[top++] = below;
    }
}

// For every slot the best place for its content: moves holds target and common ancestor, gains what it saves.
KERNEL find_moves(GLOBAL const float4 *nodes, int slots, GLOBAL const uint *up, GLOBAL uint2 *moves, GLOBAL float *gains) {
    uint slot = thread_index();
    if (slot >= (uint)slots) return;
    Move best = {0.0f, NOTHING, NOTHING};
    uint node = slot >> 1, place = up[node];
    if (place != NOTHING) {
        Box in = box_of_slot(nodes, slot), left = box_of_slot(nodes, slot ^ 1u);
        float least = area_of(in), saved = area_of(box_of_slot(nodes, place));
        best.gain = saved * 1e-4f;  // less is rounding
        search_below(nodes, slot ^ 1u, in, least, saved, node, &best);
        for (int climbs = 0; climbs < CLIMBS; climbs++) {
            search_below(nodes, place ^ 1u, in, least, saved, place >> 1, &best);
            uint above = up[place >> 1];
            if (above == NOTHING) break;
            left = union_of(left, box_of_slot(nodes, place ^ 1u));
            saved += area_of(box_of_slot(nodes, above)) - area_of(left);
            place = above;
            float joined = area_of(union_of(left, in));
            if (saved - joined > best.gain) {  // above an ancestor, which has shrunk
                best.gain = saved - joined;
                best.target = place;
                best.common = place >> 1;
            }
        }
    }
    moves[slot] = make_uint2(best.target, best.common);
    gains[slot] = best.target == NOTHING ? 0.0f : best.gain;
}

// A move may be made when it saves the most of all that touch any of its nodes: those on the way from the slot to the target, the
// last common ancestor, and the parent of the node that is taken along. Two moves of which each puts a subtree below the other's
// would otherwise cut both off. Pass 0: the largest gain; pass 1: the lowest slot with it; pass 2: the moves are made.
DEVICE bool at_node(uint node, uint slot, uint gain, int pass, GLOBAL uint *largest, GLOBAL uint *lowest) {
    if (pass == 0) atomic_max(&largest[node], gain);
    else if (largest[node] != gain) return false;
    else if (pass == 1) atomic_min(&lowest[node], slot);
    else return lowest[node] == slot;
    return true;
}

KERNEL make_moves(int slots, GLOBAL const uint *up, GLOBAL const uint2 *moves, GLOBAL const float *gains, int pass,
                  GLOBAL uint *largest, GLOBAL uint *lowest, GLOBAL uint2 *changes) {
    uint slot = thread_index();
    if (slot >= (uint)slots) return;
    uint target = moves[slot].x, common = moves[slot].y, gain = as_uint(gains[slot]), node = slot >> 1;
    if (pass == 2) changes[slot] = make_uint2(NOTHING, NOTHING);
    if (target == NOTHING) return;
    bool holds = true;
    for (uint n = node; holds; n = up[n] >> 1) {
        holds = at_node(n, slot, gain, pass, largest, lowest);
        if (n == common) break;
    }
    if (common == node) holds = holds && at_node(up[node] >> 1, slot, gain, pass, largest, lowest);
    for (uint n = target >> 1; holds && n != common; n = up[n] >> 1) holds = at_node(n, slot, gain, pass, largest, lowest);
    if (pass == 2 && holds) changes[slot] = make_uint2(target, up[node]);
}

KERNEL apply_moves(GLOBAL float4 *nodes, int slots, GLOBAL uint *up, GLOBAL const uint2 *changes) {
    uint slot = thread_index();
    if (slot >= (uint)slots || changes[slot].x == NOTHING) return;
    uint target = changes[slot].x, place = changes[slot].y, node = slot >> 1;
    Box sibling = box_of_slot(nodes, slot ^ 1u), there = box_of_slot(nodes, target), in = box_of_slot(nodes, slot);
    int sibling_code = code_of_slot(nodes, slot ^ 1u), there_code = code_of_slot(nodes, target);
    put_slot(nodes, place, sibling, sibling_code);
    if (sibling_code >= 0) up[sibling_code] = place;
    put_slot(nodes, slot ^ 1u, there, there_code);
    if (there_code >= 0) up[there_code] = slot ^ 1u;
    put_slot(nodes, target, union_of(there, in), (int)node);
    up[node] = target;
}

// What a subtree weighs: primitives, nodes that stay, and the areas of its primitives' boxes if there are at most three.
typedef struct {
    uint primitives, kept;
    float areas, pad;
} Weight;

DEVICE Weight weight_of_slot(GLOBAL const float4 *nodes, GLOBAL const Weight *weights, uint slot) {
    int code = code_of_slot(nodes, slot);
    if (code >= 0) return weights[code];
    Weight one = {1u, 0u, area_of(box_of_slot(nodes, slot)), 0.0f};
    return one;
}

// From the leaves up every node's box and weight. A node becomes a leaf when it holds two primitives, or three in so small a box
// that splitting them costs more. arrivals starts at 0.
KERNEL refit(GLOBAL float4 *nodes, int count, GLOBAL const uint *up, GLOBAL uint *arrivals, GLOBAL Weight *weights) {
    uint slot = thread_index();
    if (slot >= 2u * (uint)count || code_of_slot(nodes, slot) >= 0) return;
    for (uint node = slot >> 1;; node = slot >> 1) {
        GLOBAL_FENCE();
        if (atomic_add(&arrivals[node], 1u) == 0) return;  // the second to come finds both children finished
        GLOBAL_FENCE();
        Weight a = weight_of_slot(nodes, weights, 2 * node), b = weight_of_slot(nodes, weights, 2 * node + 1), both;
        Box box = union_of(box_of_slot(nodes, 2 * node), box_of_slot(nodes, 2 * node + 1));
        both.primitives = a.primitives + b.primitives;
        both.areas = a.areas + b.areas;
        both.pad = 0.0f;
        bool leaf = node != 0 && (both.primitives <= 2 || (both.primitives == 3 && both.areas >= 2.0f * area_of(box)));
        both.kept = leaf ? 0u : 1u + a.kept + b.kept;
        weights[node] = both;
        slot = up[node];
        if (slot == NOTHING) return;
        put_slot(nodes, slot, box, (int)node);
    }
}

// Where a slot's subtree begins: its first primitive, its first node, and its depth.
DEVICE uint3 begin_of_slot(GLOBAL const float4 *nodes, GLOBAL const Weight *weights, GLOBAL const uint *up, uint slot) {
    uint primitive = 0, kept = 0, depth = 0;
    while (slot != NOTHING) {
        if (slot & 1u) {
            Weight before = weight_of_slot(nodes, weights, slot ^ 1u);
            primitive += before.primitives;
            kept += before.kept;
        }
        kept++;
        depth++;
        slot = up[slot >> 1];
    }
    return make_uint3(primitive, kept, depth);
}

// Every primitive goes to its place depth first. told: the greatest depth, and how many nodes stay.
KERNEL lay_primitives(GLOBAL const float4 *nodes, int count, GLOBAL const Weight *weights, GLOBAL const uint *up,
                      GLOBAL const float4 *primitives, GLOBAL float4 *laid, GLOBAL uint *told) {
    uint slot = thread_index();
    if (slot >= 2u * (uint)count) return;
    int code = code_of_slot(nodes, slot);
    if (code >= 0) return;
    uint3 begin = begin_of_slot(nodes, weights, up, slot);
    if (begin.x == 0) told[1] = weights[0].kept;
    for (int k = 0; k < 3; k++) laid[3 * begin.x + k] = primitives[3 * (~code >> 3) + k];
    if (begin.z > told[0]) atomic_max(&told[0], begin.z);
}

// Every node that stays goes to its place depth first. cost[0] gets the areas of all below the root, those of
// leaves times their primitives, and cost[1] the root's.
KERNEL lay_nodes(GLOBAL const float4 *nodes, int count, GLOBAL const Weight *weights, GLOBAL const uint *up, GLOBAL float4 *laid,
                 GLOBAL float *cost) {
    float sum = 0.0f;
    for (uint node = thread_index(); node < (uint)count; node += group_count() * GROUP_SIZE) {
        if (node == 0) cost[1] = area_of(union_of(box_of_slot(nodes, 0), box_of_slot(nodes, 1)));
        if (weights[node].kept == 0) continue;
        uint3 begin = begin_of_slot(nodes, weights, up, up[node]);
        uint child = begin.y + 1;
        for (uint side = 0; side < 2; side++) {
            Weight own = weight_of_slot(nodes, weights, 2 * node + side);
            Box box = box_of_slot(nodes, 2 * node + side);
            put_slot(laid, 2 * begin.y + side, box, own.kept ? (int)child : ~(int)(begin.x * 8 + own.primitives - 1));
            sum += area_of(box) * (own.kept ? 1.0f : (float)own.primitives);
            begin.x += own.primitives;
            child += own.kept;
        }
    }
    add_float(&cost[0], sum);
}
