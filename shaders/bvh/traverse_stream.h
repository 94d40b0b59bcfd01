// Traversal of a BVH8 by up to 32 incoherent rays at once, on CPUs with vectors of eight floats and more (AVX2);
// bvh/traverse_packet.h calls it for packets whose rays diverge. Two phases, after the ray streams of Embree:
// 1. Groups. A group is up to 16 rays of the packet, as a bit mask of rays. A node that many rays enter, as all rays do
//    near the root, is visited once per group: the group is tested against one box after another, 16 rays at a time.
// 2. Pairs. Where fewer than MIN_GROUP_RAYS rays enter a child, each becomes a pair (ray, child reference) in a list.
//    The list is processed level by level of the tree; each pair tests one ray against eight boxes. Pairs are
//    independent and their loop has no data-dependent branches, so a core overlaps many of them; a single-ray traversal
//    spends most of its time waiting for a node's result and on mispredicted branches.
// Boxes are not visited front to back: all boxes along a ray are visited, but leaves shorten rays as soon as they are
// reached. Hits have the same bits as in bvh/traverse_bvh2.h.
#include "bvh/packet.h"

#if HAS_MOVEMASK && defined(__AVX2__) && defined(__FMA__)
#define RAY_STREAMS 1
#if defined(__AVX512VL__) && defined(__AVX512DQ__) && defined(__BMI2__)
#define PICKS_RAYS 1  // a group is any 16 rays of the packet
#else
#define PICKS_RAYS 0  // a group is half of the packet
#endif
#define MIN_GROUP_RAYS 12  // from this number on, rays are faster as a group than as pairs; at most 16
#define MAX_NEW_PAIRS (8 * (MIN_GROUP_RAYS - 1))  // the most pairs that visiting one node adds
#ifndef STREAM_CAPACITY
#define STREAM_CAPACITY 512  // pairs of one list, at least MAX_NEW_PAIRS
#endif

// Loads a record of a list into the cache before its turn: 1.02 to 1.03 times the rate where the BVH exceeds the cache.
#define PREFETCH_RECORD(record, lines) \
    for (int line_ = 0; line_ < (lines); line_++) __builtin_prefetch((const void *)(size_t)((record) + 16 * line_))

// A list of pairs: the index of a ray in the packet, and the child reference that it must visit. What follows the last
// pair is any word: add_boxes writes whole vectors, and the loops prefetch past the end.
typedef struct {
    uint refs[STREAM_CAPACITY + 16], rays[STREAM_CAPACITY + 16];
    uint count;
} Pairs;

// The fields of SingleRay (bvh/traverse_bvh8.h) for each ray of a packet.
typedef struct {
    Floats32 inverse[3], near_bias[3], far_bias[3];
    Ints32 near_plane[3];
} PacketSlabs;

typedef struct {
    PacketSlabs slabs;
    Pairs nodes[2], leaves;  // pairs with inner nodes of this and of the next level, in either order; pairs with leaves
} Stream;

// slab_ray and the offsets of single_ray for the 32 rays of a packet.
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
// COMPRESS16: the elements in the mask, moved to the front; EXPAND16: the inverse, with `others` outside of the mask.
// pdep moves the low bits of a word to the bits that are set in a mask.
#define COMPRESS16(x, mask) __builtin_ia32_compresssi512_mask(x, (int16)(0), (ushort)(mask))
#define EXPAND16(x, mask, others) __builtin_ia32_expandsi512_mask(x, others, (ushort)(mask))

// Appends pairs of ray `ray` and each of the references `refs` in `mask`, after the first `count` pairs. Returns the
// number of pairs appended; the caller updates pairs->count.
DEVICE uint add_boxes(Pairs *pairs, uint count, uint8 refs, uint mask, uint ray) {
    int8 packed = __builtin_ia32_compresssi256_mask(as_int8(refs), (int8)(0), (uchar)(mask));
    vstore8(as_uint8(packed), 0, pairs->refs + count);
    vstore8((uint8)(ray), 0, pairs->rays + count);
    return popcount(mask);
}

// The first group of a mask of rays: its lowest 16 rays.
DEVICE uint first_group(uint rays) { return __builtin_ia32_pdep_si(0xffffu, rays); }

// The indices in the packet of a group's rays, in increasing order, one per vector lane.
typedef int16 RayIndices;
DEVICE RayIndices ray_indices(uint group) {
    int16 low = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int16 high = COMPRESS16(low + 16, group >> 16);
    return COMPRESS16(low, group) | EXPAND16(high, 0xffffu << popcount(group & 0xffffu), (int16)(0));
}

DEVICE float16 gather16(const Floats32 *row, RayIndices indices) {
    return __builtin_ia32_vpermi2varps512(row->v16[0], indices, row->v16[1]);
}
DEVICE int16 gather_ints16(const Ints32 *row, RayIndices indices) {
    return __builtin_ia32_vpermi2vard512(row->v16[0], indices, row->v16[1]);
}

// The inverse of gather_ints16: writes one value per lane to the group's rays.
DEVICE void scatter_ints16(Ints32 *row, uint group, int16 values) {
    uint low = group & 0xffffu;
    row->v16[0] = EXPAND16(values, low, row->v16[0]);
    row->v16[1] = EXPAND16(COMPRESS16(values, 0xffffu << popcount(low)), group >> 16, row->v16[1]);
}

// Converts a mask of vector lanes to the mask of the group's rays in these lanes.
DEVICE uint rays_from_lanes(uint lane_mask, uint group) { return __builtin_ia32_pdep_si(lane_mask, group); }

// Appends pairs of one child reference and each ray of a mask of up to 16 rays.
DEVICE void add_rays(Pairs *pairs, uint child_ref, uint rays) {
    vstore16((uint16)(child_ref), 0, pairs->refs + pairs->count);
    vstore16(as_uint16(ray_indices(rays)), 0, pairs->rays + pairs->count);
    pairs->count += popcount(rays);
}
#else
DEVICE uint add_boxes(Pairs *pairs, uint count, uint8 refs, uint mask, uint ray) {
    uint ref_array[8], added = 0;
    vstore8(refs, 0, ref_array);
    vstore8((uint8)(ray), 0, pairs->rays + count);
    for (uint k = 0; k < 8u; k++) {  // branchless, since the branch would be mispredicted
        pairs->refs[count + added] = ref_array[k];
        added += mask >> k & 1u;
    }
    return added;
}

// The first group of a mask of rays: its rays in the lower half of the packet if there are any, else all.
DEVICE uint first_group(uint rays) { return rays & 0xffffu ? rays & 0xffffu : rays; }

// Without these instructions a group lies in one half of the packet, whose number, 0 or 1, stands for its indices.
typedef int RayIndices;
DEVICE RayIndices ray_indices(uint group) { return group & 0xffffu ? 0 : 1; }
DEVICE float16 gather16(const Floats32 *row, RayIndices half_index) { return row->v16[half_index]; }
DEVICE int16 gather_ints16(const Ints32 *row, RayIndices half_index) { return row->v16[half_index]; }
DEVICE void scatter_ints16(Ints32 *row, uint group, int16 values) { row->v16[ray_indices(group)] = values; }
DEVICE uint rays_from_lanes(uint lane_mask, uint group) { return lane_mask << (16 * ray_indices(group)) & group; }

DEVICE void add_rays(Pairs *pairs, uint child_ref, uint rays) {
    for (; rays; rays &= rays - 1u) {
        pairs->refs[pairs->count] = child_ref;
        pairs->rays[pairs->count++] = ctz(rays);
    }
}
#endif

#define PACKET_PLANES8(plane, k, bias) fma(NODE_PLANES(plane), (float8)(s->inverse[k].s[j]), (float8)(s->bias[k].s[j]))

// intersect_boxes8 for ray j of a packet; returns the mask only.
DEVICE uint intersect_packet_boxes8(Lines node8, const Packet *p, const PacketSlabs *s, uint j) {
    uint x = (uint)s->near_plane[0].s[j], y = (uint)s->near_plane[1].s[j], z = (uint)s->near_plane[2].s[j];
    float8 near_x = PACKET_PLANES8(x, 0, near_bias), far_x = PACKET_PLANES8(x ^ 8u, 0, far_bias);
    float8 near_y = PACKET_PLANES8(y, 1, near_bias), far_y = PACKET_PLANES8(y ^ 8u, 1, far_bias);
    float8 near_z = PACKET_PLANES8(z, 2, near_bias), far_z = PACKET_PLANES8(z ^ 8u, 2, far_bias);
    float8 t_near = max_nnan(max_nnan(near_x, near_y), max_nnan(near_z, (float8)(0.0f)));
    float8 t_far = min_nnan(min_nnan(far_x, far_y), min_nnan(far_z, (float8)(p->t.s[j])));
    return movemask8(t_near <= t_far);
}

// Tests a group against the eight boxes of a node8. Returns the mask of boxes that any ray enters; ORs into
// entering_rays[k] the mask of rays that enter box k.
DEVICE_NOINLINE_ALWAYS uint intersect_boxes16(Lines node8, const Packet *p, const PacketSlabs *s, uint group,
                                              uint *entering_rays) {
    RayIndices indices = ray_indices(group);
    float16 inverse_x = gather16(&s->inverse[0], indices), inverse_y = gather16(&s->inverse[1], indices),
            inverse_z = gather16(&s->inverse[2], indices);
    float16 near_bias_x = gather16(&s->near_bias[0], indices), near_bias_y = gather16(&s->near_bias[1], indices),
            near_bias_z = gather16(&s->near_bias[2], indices);
    float16 far_bias_x = gather16(&s->far_bias[0], indices), far_bias_y = gather16(&s->far_bias[1], indices),
            far_bias_z = gather16(&s->far_bias[2], indices);
    int16 back_x = inverse_x < 0.0f, back_y = inverse_y < 0.0f, back_z = inverse_z < 0.0f;
    float16 t_max = gather16(&p->t, indices);
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
        float16 t_near = max_nnan(max_nnan(near_x, near_y), max_nnan(near_z, (float16)(0.0f)));
        uint lanes = movemask16(t_near <= min_nnan(min_nnan(far_x, far_y), min_nnan(far_z, t_max)));
        entering_rays[k] |= rays_from_lanes(lanes, group);
        boxes |= lanes ? 1u << k : 0u;
    }
    return boxes;
}

// Tests all pairs of a ray and a leaf, updates the rays' closest hits, and empties the list.
DEVICE_NOINLINE_ALWAYS void intersect_leaf_pairs(Lines nodes, Primitives primitives, Packet *p, Pairs *leaves,
                                                 bool accept_first_hit FILTER_PARAMS) {
    for (uint i = 0, end = leaves->count; i < end; i++) {
        uint j = leaves->rays[i];
        PREFETCH_RECORD(line_at(nodes, leaves->refs[i + 3]), 5);  // all rows but the radii
        if (accept_first_hit && p->t.s[j] < 0.0f) continue;
        Lines leaf8 = line_at(nodes, leaves->refs[i]);
        float3 origin = float3_at(p->origin, j), direction = float3_at(p->direction, j);
        float8 t, u, v;
        uint hit_mask = intersect_leaf8(leaf8, origin, direction, p->t.s[j], &t, &u, &v);
#if HIT_FILTER
        if (hit_mask)
            hit_mask = filter_leaf8(leaf8, primitives, origin, direction, p->t.s[j], hit_mask, &t, &u, &v,
                                    accept_first_hit FILTER_ARGS);
#endif
        if (!hit_mask) continue;
        if (accept_first_hit) {
            p->prim_index.s[j] = 0;
            p->t.s[j] = -1.0f;
        } else {
            Hit best = packet_hit_at(p, j);
            update_closest8(leaf8, primitives, hit_mask, t, u, v, &best);
            packet_set_hit(p, j, best);
            p->prim_id.s[j] = prim_id_at(primitives, best.primitive);
        }
    }
    leaves->count = 0;
}

// Phase 2: processes the pairs of a stream level by level until none are left. Returns false, unfinished, if the pairs
// of a level exceed STREAM_CAPACITY.
DEVICE_NOINLINE_ALWAYS bool traverse_pairs(Lines nodes, Primitives primitives, Packet *p, Stream *s,
                                           bool accept_first_hit FILTER_PARAMS) {
    Pairs *leaves = &s->leaves;  // first, because hits shorten the rays
    intersect_leaf_pairs(nodes, primitives, p, leaves, accept_first_hit FILTER_ARGS);
    for (uint level = 0; s->nodes[level].count; level ^= 1u) {
        Pairs *current = &s->nodes[level], *next = &s->nodes[level ^ 1u];
        uint node_count = 0, leaf_count = 0;
        for (uint i = 0, end = current->count; i < end; i++) {
            uint j = current->rays[i];
            PREFETCH_RECORD(line_at(nodes, current->refs[i + 4]), 4);
            Lines node8 = line_at(nodes, current->refs[i]);
            uint hit_mask = intersect_packet_boxes8(node8, p, &s->slabs, j);
            uint8 child_refs = *(GLOBAL const uint8 *)(node8 + 48);
            uint are_leaves = movemask8(as_int8(child_refs));
            node_count += add_boxes(next, node_count, child_refs, hit_mask & ~are_leaves, j);
            leaf_count += add_boxes(leaves, leaf_count, child_refs, hit_mask & are_leaves, j);
            if (node_count > STREAM_CAPACITY - 8u) return false;
            if (leaf_count > STREAM_CAPACITY - 8u) {
                leaves->count = leaf_count;
                intersect_leaf_pairs(nodes, primitives, p, leaves, accept_first_hit FILTER_ARGS);
                leaf_count = 0;
            }
        }
        current->count = 0;
        next->count = node_count;
        leaves->count = leaf_count;
        intersect_leaf_pairs(nodes, primitives, p, leaves, accept_first_hit FILTER_ARGS);
    }
    return true;
}

// Tests a group against all primitives of a leaf8 and updates the rays' closest hits. Returns true if any ray hit.
DEVICE_NOINLINE_ALWAYS bool intersect_leaf_group(Lines leaf8, Primitives primitives, Packet *p, uint group,
                                                 bool accept_first_hit FILTER_PARAMS) {
    RayIndices indices = ray_indices(group);
    uint prims = leaf_mask8(leaf8);
#define READ_GROUP(row) gather16(&(row), indices)
#define READ_GROUP_INTS(row) gather_ints16(&(row), indices)
#define WRITE_GROUP(row, values) scatter_ints16((Ints32 *)&(row), group, as_int16(values))
    INTERSECT_LEAF(READ_GROUP, READ_GROUP_INTS, WRITE_GROUP, WRITE_GROUP);
}

// Phase 1 for one node8: tests the mask `rays` of rays against its boxes. Pushes the children that at least
// MIN_GROUP_RAYS rays enter, with these rays; for the other children, appends a pair for each ray that enters.
DEVICE void visit_group(Lines node8, const Packet *p, Stream *s, uint rays, uint2 *stack, int *top) {
    uint entering_rays[8] = {0, 0, 0, 0, 0, 0, 0, 0}, first = first_group(rays), rest = rays ^ first;
    uint boxes = intersect_boxes16(node8, p, &s->slabs, first, entering_rays);
    if (rest) boxes |= intersect_boxes16(node8, p, &s->slabs, rest, entering_rays);
    uint are_leaves = movemask8(*(GLOBAL const int8 *)(node8 + 48));
    for (int leaf = 0; leaf < 2; leaf++) {  // leaves are pushed last, so popped first
        for (uint remaining = boxes & (leaf ? are_leaves : ~are_leaves); remaining; remaining &= remaining - 1u) {
            uint k = ctz(remaining), child_ref = as_uint(node8[48 + k]), entering = entering_rays[k];
            if (popcount(entering) >= MIN_GROUP_RAYS)
                stack[(*top)++] = make_uint2(child_ref, entering);
            else
                add_rays(leaf ? &s->leaves : &s->nodes[0], child_ref, entering);
        }
    }
}

// Finds the hits of the rays of a packet in the mask `active`. Returns false if a list overflowed before the end; the
// hits found so far are kept, and the caller finishes ray by ray.
DEVICE_NOINLINE_ALWAYS bool traverse_stream(Lines nodes, Primitives primitives, Packet *p, uint active,
                                            bool accept_first_hit FILTER_PARAMS) {
    Stream s;
    uint2 stack[STACK8_SIZE];  // child references, and the masks of rays that enter their boxes
    int top = 1;
    stack[0] = make_uint2(0, active);
#if !PICKS_RAYS  // vector tests include the inactive rays of the half
    for (uint inactive = ~active; inactive; inactive &= inactive - 1u) p->t.s[ctz(inactive)] = -1.0f;
#endif
    set_packet_slabs(p, &s.slabs);
    s.nodes[0].count = s.nodes[1].count = s.leaves.count = 0;
    while (top) {
        uint2 next = stack[--top];
        Lines record = line_at(nodes, next.x);
        if (next.x & LEAF_BIT) {
            while (next.y) {
                uint group = first_group(next.y);
                intersect_leaf_group(record, primitives, p, group, accept_first_hit FILTER_ARGS);
                next.y ^= group;
            }
            continue;
        }
        visit_group(record, p, &s, next.y, stack, &top);
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
