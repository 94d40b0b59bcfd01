// Traversal of BVH8 by up to 32 incoherent rays at once, on CPUs with vectors of eight floats and more. A node that
// many of them enter, as all do near the root and around their origins, is visited once, by groups of up to 16 rays: a
// group is tested against each of its boxes at once. Where few rays are left, each is tested against eight boxes at
// once, from a list of pairs of a ray and a node, generation by generation of the tree. A pair waits for no other, so a
// core works on many at a time, and nothing depends on a branch that it could not foretell: of single rays, most of the
// time passes in waiting for a node's result and in wrong guesses. All boxes along a ray are visited, not the nearest
// first; leaves shorten the rays as soon as they are reached. Hits are bit-identical to those of bvh/traverse_bvh2.h.
#include "bvh/packet.h"

#if HAS_MOVEMASK && defined(__AVX2__) && defined(__FMA__)
#define RAY_STREAMS 1
#if defined(__AVX512VL__) && defined(__AVX512DQ__) && defined(__BMI2__)
#define PICKS_RAYS 1  // a group is any 16 rays of the packet
#else
#define PICKS_RAYS 0  // it is those of a half of the packet
#endif
#define MIN_GROUP_RAYS 12  // from which rays are faster together than as pairs, up to 16
#define MAX_NEW_PAIRS (8 * (MIN_GROUP_RAYS - 1))  // of one node that a group visits
#ifndef STREAM_CAPACITY
#define STREAM_CAPACITY 512  // pairs of a generation, at least MAX_NEW_PAIRS
#endif

// Pairs of a ray and a child reference.
typedef struct {
    uint refs[STREAM_CAPACITY + 16], rays[STREAM_CAPACITY + 16];
    uint count;
} Pairs;

// SingleRay of each ray of a packet.
typedef struct {
    Floats32 inverse[3], near_bias[3], far_bias[3];
    Ints32 near_plane[3];
} PacketSlabs;

typedef struct {
    PacketSlabs slabs;
    Pairs nodes[2], leaves;  // of this generation in nodes[0], of the next in nodes[1], or the other way
} Stream;

DEVICE void set_packet_slabs(const Packet *p, PacketSlabs *s) {
    for (int h = 0; h < 2; h++) {
        float16 x = fabs(p->origin[0].v16[h]), y = fabs(p->origin[1].v16[h]), z = fabs(p->origin[2].v16[h]);
        float16 error = max_nnan(max_nnan(x, y), z) * 2.4e-7f;
        for (int k = 0; k < 3; k++) {
            float16 d = p->direction[k].v16[h], origin = p->origin[k].v16[h];
            uint16 size = as_uint16(max_nnan(fabs(d), (float16)(8.6736174e-19f)));
            float16 inverse = 1.0f / as_float16((as_uint16(d) & 0x80000000u) | size), slack = fabs(inverse) * error;
            s->inverse[k].v16[h] = inverse;
            s->near_bias[k].v16[h] = fma(-origin, inverse, -slack);
            s->far_bias[k].v16[h] = fma(-origin, inverse, slack);
            s->near_plane[k].v16[h] = (int16)(16 * k) + ((inverse < 0.0f) & (int16)(8));
        }
    }
}

#if PICKS_RAYS
#define COMPRESS16(x, mask) __builtin_ia32_compresssi512_mask(x, (int16)(0), (ushort)(mask))
#define EXPAND16(x, mask, others) __builtin_ia32_expandsi512_mask(x, others, (ushort)(mask))

// Adds pairs of one ray and the references that `mask` has behind the `count` that are there; returns their number.
DEVICE uint add_boxes(Pairs *pairs, uint count, uint8 refs, uint mask, uint ray) {
    int8 packed = __builtin_ia32_compresssi256_mask(as_int8(refs), (int8)(0), (uchar)(mask));
    vstore8(as_uint8(packed), 0, pairs->refs + count);
    vstore8((uint8)(ray), 0, pairs->rays + count);
    return popcount(mask);
}

// The first group of a mask of rays.
DEVICE uint first_rays(uint rays) { return __builtin_ia32_pdep_si(0xffffu, rays); }

// Where the rays of a group are in a packet.
typedef int16 Places;
DEVICE Places places_of(uint group) {
    int16 low = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int16 high = COMPRESS16(low + 16, group >> 16);
    return COMPRESS16(low, group) | EXPAND16(high, 0xffffu << popcount(group & 0xffffu), (int16)(0));
}

DEVICE float16 pick16(const Floats32 *row, Places places) {
    return __builtin_ia32_vpermi2varps512(row->v16[0], places, row->v16[1]);
}
DEVICE int16 pick_ints16(const Ints32 *row, Places places) {
    return __builtin_ia32_vpermi2vard512(row->v16[0], places, row->v16[1]);
}

// Puts values of a group back to where pick_ints16 takes them.
DEVICE void put_ints16(Ints32 *row, uint group, int16 values) {
    uint low = group & 0xffffu;
    row->v16[0] = EXPAND16(values, low, row->v16[0]);
    row->v16[1] = EXPAND16(COMPRESS16(values, 0xffffu << popcount(low)), group >> 16, row->v16[1]);
}

// The rays of a group whose bits of a mask by places are set.
DEVICE uint rays_at_places(uint mask, uint group) { return __builtin_ia32_pdep_si(mask, group); }

// Adds pairs of one reference and the rays of a mask that has up to 16.
DEVICE void add_rays(Pairs *pairs, uint child_ref, uint rays) {
    vstore16((uint16)(child_ref), 0, pairs->refs + pairs->count);
    vstore16(as_uint16(places_of(rays)), 0, pairs->rays + pairs->count);
    pairs->count += popcount(rays);
}
#else
DEVICE uint add_boxes(Pairs *pairs, uint count, uint8 refs, uint mask, uint ray) {
    uint each[8], added = 0;
    vstore8(refs, 0, each);
    vstore8((uint8)(ray), 0, pairs->rays + count);
    for (uint k = 0; k < 8u; k++) {  // without a branch that no processor foretells
        pairs->refs[count + added] = each[k];
        added += mask >> k & 1u;
    }
    return added;
}

DEVICE uint first_rays(uint rays) { return rays & 0xffffu ? rays & 0xffffu : rays; }

typedef int Places;
DEVICE Places places_of(uint group) { return group & 0xffffu ? 0 : 1; }
DEVICE float16 pick16(const Floats32 *row, Places half_of) { return row->v16[half_of]; }
DEVICE int16 pick_ints16(const Ints32 *row, Places half_of) { return row->v16[half_of]; }
DEVICE void put_ints16(Ints32 *row, uint group, int16 values) { row->v16[places_of(group)] = values; }
DEVICE uint rays_at_places(uint mask, uint group) { return mask << (16 * places_of(group)) & group; }

DEVICE void add_rays(Pairs *pairs, uint child_ref, uint rays) {
    for (; rays; rays &= rays - 1u) {
        pairs->refs[pairs->count] = child_ref;
        pairs->rays[pairs->count++] = ctz(rays);
    }
}
#endif

DEVICE void put16(Floats32 *row, uint group, float16 values) { put_ints16((Ints32 *)row, group, as_int16(values)); }

#define PACKET_PLANES8(plane, k, bias) fma(NODE_PLANES(plane), (float8)(s->inverse[k].s[j]), (float8)(s->bias[k].s[j]))

// intersect_boxes8 for ray j of a packet, without the distances.
DEVICE uint intersect_packet_boxes8(Lines node8, const Packet *p, const PacketSlabs *s, uint j) {
    uint x = (uint)s->near_plane[0].s[j], y = (uint)s->near_plane[1].s[j], z = (uint)s->near_plane[2].s[j];
    float8 near_x = PACKET_PLANES8(x, 0, near_bias), far_x = PACKET_PLANES8(x ^ 8u, 0, far_bias);
    float8 near_y = PACKET_PLANES8(y, 1, near_bias), far_y = PACKET_PLANES8(y ^ 8u, 1, far_bias);
    float8 near_z = PACKET_PLANES8(z, 2, near_bias), far_z = PACKET_PLANES8(z ^ 8u, 2, far_bias);
    float8 near = max_nnan(max_nnan(near_x, near_y), max_nnan(near_z, (float8)(0.0f)));
    float8 far = min_nnan(min_nnan(far_x, far_y), min_nnan(far_z, (float8)(p->t.s[j])));
    return movemask8(near <= far);
}

// Which boxes of a node8 some rays of a group enter; adds to met[k] those that enter box k.
DEVICE_NOINLINE_ALWAYS uint intersect_boxes16(Lines node8, const Packet *p, const PacketSlabs *s, uint group,
                                              uint *met) {
    Places places = places_of(group);
    float16 inverse_x = pick16(&s->inverse[0], places), inverse_y = pick16(&s->inverse[1], places),
            inverse_z = pick16(&s->inverse[2], places);
    float16 near_bias_x = pick16(&s->near_bias[0], places), near_bias_y = pick16(&s->near_bias[1], places),
            near_bias_z = pick16(&s->near_bias[2], places);
    float16 far_bias_x = pick16(&s->far_bias[0], places), far_bias_y = pick16(&s->far_bias[1], places),
            far_bias_z = pick16(&s->far_bias[2], places);
    int16 back_x = inverse_x < 0.0f, back_y = inverse_y < 0.0f, back_z = inverse_z < 0.0f;
    float16 t_max = pick16(&p->t, places);
    uint boxes = 0;
    for (uint k = 0; k < 8u; k++) {
        float16 low_x = (float16)(node8[k]), high_x = (float16)(node8[8 + k]);
        float16 low_y = (float16)(node8[16 + k]), high_y = (float16)(node8[24 + k]);
        float16 low_z = (float16)(node8[32 + k]), high_z = (float16)(node8[40 + k]);
        float16 near_x = fma(back_x ? high_x : low_x, inverse_x, near_bias_x);
        float16 near_y = fma(back_y ? high_y : low_y, inverse_y, near_bias_y);
        float16 near_z = fma(back_z ? high_z : low_z, inverse_z, near_bias_z);
        float16 far_x = fma(back_x ? low_x : high_x, inverse_x, far_bias_x);
        float16 far_y = fma(back_y ? low_y : high_y, inverse_y, far_bias_y);
        float16 far_z = fma(back_z ? low_z : high_z, inverse_z, far_bias_z);
        float16 near = max_nnan(max_nnan(near_x, near_y), max_nnan(near_z, (float16)(0.0f)));
        uint in = movemask16(near <= min_nnan(min_nnan(far_x, far_y), min_nnan(far_z, t_max)));
        met[k] |= rays_at_places(in, group);
        boxes |= in ? 1u << k : 0u;
    }
    return boxes;
}

// update_closest8 for ray j of a packet.
DEVICE void update_packet_closest8(Lines leaf8, Primitives primitives, uint met, float8 t, float8 u, float8 v,
                                   Packet *p, uint j) {
    float ts[8], us[8], vs[8];
    vstore8(t, 0, ts);
    vstore8(u, 0, us);
    vstore8(v, 0, vs);
    for (; met; met &= met - 1u) {
        uint k = ctz(met);
        if (ts[k] > p->t.s[j]) continue;
        int prim_index = as_int(leaf8[8 * LEAF_PRIM_INDICES + k]), prim_id = prim_id_at(primitives, prim_index);
        if (ts[k] == p->t.s[j] && prim_id >= p->prim_id.s[j]) continue;
        p->t.s[j] = ts[k];
        p->u.s[j] = us[k];
        p->v.s[j] = vs[k];
        p->prim_index.s[j] = prim_index;
        p->prim_id.s[j] = prim_id;
    }
}

// Tests the pairs of a ray and a leaf, and removes them.
DEVICE_NOINLINE_ALWAYS void intersect_leaf_pairs(Lines nodes, Primitives primitives, Packet *p, Pairs *leaves,
                                                 bool accept_first_hit FILTER_PARAMS) {
    for (uint i = 0, end = leaves->count; i < end; i++) {
        uint j = leaves->rays[i];
        if (accept_first_hit && p->t.s[j] < 0.0f) continue;
        Lines leaf8 = line_at(nodes, leaves->refs[i]);
        float3 origin = float3_at(p->origin, j), direction = float3_at(p->direction, j);
        float8 t, u, v;
        uint met = intersect_leaf8(leaf8, origin, direction, p->t.s[j], &t, &u, &v);
#if HIT_FILTER
        if (met)
            met = filter_leaf8(leaf8, primitives, origin, direction, p->t.s[j], met, &t, &u, &v,
                               accept_first_hit FILTER_ARGS);
#endif
        if (!met) continue;
        if (accept_first_hit) {
            p->prim_index.s[j] = 0;
            p->t.s[j] = -1.0f;
        } else {
            update_packet_closest8(leaf8, primitives, met, t, u, v, p, j);
        }
    }
    leaves->count = 0;
}

// Traverses from the pairs of a stream on, until there are none; false if a generation has too many.
DEVICE_NOINLINE_ALWAYS bool traverse_pairs(Lines nodes, Primitives primitives, Packet *p, Stream *s,
                                           bool accept_first_hit FILTER_PARAMS) {
    Pairs *leaves = &s->leaves;
    intersect_leaf_pairs(nodes, primitives, p, leaves, accept_first_hit FILTER_ARGS);
    for (uint g = 0; s->nodes[g].count; g ^= 1u) {
        Pairs *now = &s->nodes[g], *next = &s->nodes[g ^ 1u];
        uint node_count = 0, leaf_count = 0;
        for (uint i = 0, end = now->count; i < end; i++) {
            uint j = now->rays[i];
            Lines node8 = line_at(nodes, now->refs[i]);
            uint met = intersect_packet_boxes8(node8, p, &s->slabs, j);
            uint8 child_refs = *(GLOBAL const uint8 *)(node8 + 48);
            uint are_leaves = movemask8(as_int8(child_refs));
            node_count += add_boxes(next, node_count, child_refs, met & ~are_leaves, j);
            leaf_count += add_boxes(leaves, leaf_count, child_refs, met & are_leaves, j);
            if (node_count > STREAM_CAPACITY - 8u) return false;
            if (leaf_count > STREAM_CAPACITY - 8u) {
                leaves->count = leaf_count;
                intersect_leaf_pairs(nodes, primitives, p, leaves, accept_first_hit FILTER_ARGS);
                leaf_count = 0;
            }
        }
        now->count = 0;
        next->count = node_count;
        leaves->count = leaf_count;
        intersect_leaf_pairs(nodes, primitives, p, leaves, accept_first_hit FILTER_ARGS);
    }
    return true;
}

// A group of rays against the primitives of a leaf8.
DEVICE_NOINLINE_ALWAYS void intersect_leaf_group(Lines leaf8, Primitives primitives, Packet *p, uint group,
                                                 bool accept_first_hit FILTER_PARAMS) {
    Places places = places_of(group);
    Rays16 r;
    for (int k = 0; k < 3; k++) {
        r.origin[k] = pick16(&p->origin[k], places);
        r.direction[k] = pick16(&p->direction[k], places);
    }
    r.t = pick16(&p->t, places);
    r.u = pick16(&p->u, places);
    r.v = pick16(&p->v, places);
    r.prim_index = pick_ints16(&p->prim_index, places);
    r.prim_id = pick_ints16(&p->prim_id, places);
    uint prims = ~movemask8(as_int8(LEAF_ROW(LEAF_PRIM_INDICES))) & 255u;
    if (!intersect_leaf16(leaf8, prims, primitives, &r, accept_first_hit FILTER_ARGS)) return;
    put16(&p->t, group, r.t);
    put16(&p->u, group, r.u);
    put16(&p->v, group, r.v);
    put_ints16(&p->prim_index, group, r.prim_index);
    put_ints16(&p->prim_id, group, r.prim_id);
}

// The `rays` of a packet against the boxes of a node8: pushes the children that many of them enter, and makes pairs of
// those that few enter.
DEVICE void visit_group(Lines node8, const Packet *p, Stream *s, uint rays, uint2 *stack, int *top) {
    uint met[8] = {0, 0, 0, 0, 0, 0, 0, 0}, first = first_rays(rays), rest = rays ^ first;
    uint boxes = intersect_boxes16(node8, p, &s->slabs, first, met);
    if (rest) boxes |= intersect_boxes16(node8, p, &s->slabs, rest, met);
    uint are_leaves = movemask8(*(GLOBAL const int8 *)(node8 + 48));
    for (int leaf = 0; leaf < 2; leaf++) {  // leaves are popped first
        for (uint left = boxes & (leaf ? are_leaves : ~are_leaves); left; left &= left - 1u) {
            uint k = ctz(left), child_ref = as_uint(node8[48 + k]), entering = met[k];
            if (popcount(entering) >= MIN_GROUP_RAYS)
                stack[(*top)++] = make_uint2(child_ref, entering);
            else
                add_rays(leaf ? &s->leaves : &s->nodes[0], child_ref, entering);
        }
    }
}

// Finds the hits of the `active` rays of a packet; false if that stopped before its end. Hits found so far are kept.
DEVICE_NOINLINE_ALWAYS bool traverse_stream(Lines nodes, Primitives primitives, Packet *p, uint active,
                                            bool accept_first_hit FILTER_PARAMS) {
    Stream s;
    uint2 stack[STACK8_SIZE];  // child references, and the rays that enter their boxes
    int top = 1;
    stack[0] = make_uint2(0, active);
#if !PICKS_RAYS  // a group tests its half whole
    for (uint inactive = ~active; inactive; inactive &= inactive - 1u) p->t.s[ctz(inactive)] = -1.0f;
#endif
    set_packet_slabs(p, &s.slabs);
    s.nodes[0].count = s.nodes[1].count = s.leaves.count = 0;
    while (top) {
        uint2 next = stack[--top];
        Lines here = line_at(nodes, next.x);
        if (next.x & LEAF_BIT) {
            while (next.y) {
                uint group = first_rays(next.y);
                intersect_leaf_group(here, primitives, p, group, accept_first_hit FILTER_ARGS);
                next.y ^= group;
            }
            continue;
        }
        visit_group(here, p, &s, next.y, stack, &top);
        if (s.leaves.count > STREAM_CAPACITY - MAX_NEW_PAIRS)
            intersect_leaf_pairs(nodes, primitives, p, &s.leaves, accept_first_hit FILTER_ARGS);
        if (s.nodes[0].count > STREAM_CAPACITY - MAX_NEW_PAIRS &&
            !traverse_pairs(nodes, primitives, p, &s, accept_first_hit FILTER_ARGS))
            return false;
    }
    return traverse_pairs(nodes, primitives, p, &s, accept_first_hit FILTER_ARGS);
}
#else
#define RAY_STREAMS 0
#endif
