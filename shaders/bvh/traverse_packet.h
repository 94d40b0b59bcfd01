// Traversal of a BVH8 by packets of 32 coherent rays, on CPUs (I. Wald et al. 2001): the packet's bounding frustum is
// tested against eight boxes of a node at once (A. Reshetov et al. 2005), and 16 of its rays at a time against each
// primitive of a leaf. A packet that is incoherent, or whose visits exceed its budget, is traced as a stream
// (bvh/traverse_stream.h) or, where streams do not exist or overflow, ray by ray. The entry point is traverse_packet.
// Hits have the same bits as in bvh/traverse_bvh2.h.
// The host defines SPHERES (1: the scene has spheres). Packet, Floats32: bvh/packet.h; node8, leaf8 and their macros:
// bvh/traverse_bvh8.h.
#include "bvh/traverse_stream.h"

#if HAS_MOVEMASK
// Bounding frustum of a packet. Along the main axis k all rays have the same sign of direction. On each of the other
// axes i two planes bound the rays: every point c of every ray satisfies c_i + lower c_k >= lower_shift and
// c_i + upper c_k <= upper_shift, where lower and upper are the negated extreme slopes dc_i / dc_k.
typedef struct {
    float sign, start, end, slack;  // sign of the direction along k; least and greatest sign * c_k of the rays; padding
    float lower[2], upper[2], lower_shift[2], upper_shift[2];
    uint k, i[2];
    uint near_k, lower_k[2], upper_k[2];  // offsets in a node8: first plane along k; planes that the bounds i test
} Frustum;

// Measured limits: a frustum whose rays spread more, a packet of fewer rays or one with more visits is slower than
// another way to trace these rays.
#define FRUSTUM_SLACK 3.814697265625e-6f  // 2^-18 of the scene's extent: more than rounding and EDGE_EPSILON move a hit
#define MAX_SLOPE_RANGE 0.5f  // a frustum with a wider range of slopes meets too many boxes
#define MIN_PACKET_RAYS 6  // from this number on, a packet is faster than single rays
#define NODES_PER_RAY 4  // visit budget of a packet, in nodes per active ray
#define PRIMITIVE_COST 2  // a primitive's cost in that budget, in nodes

// min32 and max32: minimum and maximum of 32 floats.
#define REDUCTION32(name, op)                                      \
    DEVICE float name(const Floats32 x) {                          \
        float8 a = op(op(x.v8[0], x.v8[1]), op(x.v8[2], x.v8[3])); \
        float4 b = op(a.lo, a.hi);                                 \
        return op(op(b.x, b.y), op(b.z, b.w));                     \
    }
REDUCTION32(min32, min_nnan)
REDUCTION32(max32, max_nnan)

// The greatest sign * c_k that an unfinished ray reaches, padded.
DEVICE float frustum_far(const Frustum *b, const Packet *p) {
    Floats32 ends;
    for (int h = 0; h < 2; h++) {
        float16 end = fma(p->t.v16[h], p->direction[b->k].v16[h], p->origin[b->k].v16[h]) * b->sign;
        ends.v16[h] = p->t.v16[h] >= 0.0f ? end : (float16)(-FLT_MAX);
    }
    return max32(ends) + b->slack;
}

// Computes the frustum of a packet. Its inactive rays must be copies of an active one. Returns false if the rays are
// incoherent or not finite.
DEVICE_NOINLINE_ALWAYS bool bound_packet(Lines nodes, const Packet *p, Frustum *b) {
    float x = fabs(p->direction[0].s[0]), y = fabs(p->direction[1].s[0]), z = fabs(p->direction[2].s[0]);
    uint k = x >= y && x >= z ? 0u : y >= z ? 1u : 2u;
    float least_d = min32(p->direction[k]), greatest_d = max32(p->direction[k]);
    if (!(least_d > 0.0f || greatest_d < 0.0f)) return false;
    bool forward = least_d > 0.0f;
    float low[3], high[3], extent = nodes[56];  // in the root: the scene's largest absolute coordinate
    int16 finite = (int16)(-1);
    for (uint axis = 0; axis < 3; axis++) {
        for (int h = 0; h < 2; h++)
            finite &= (fabs(p->origin[axis].v16[h]) <= FLT_MAX) & (fabs(p->direction[axis].v16[h]) <= FLT_MAX);
        low[axis] = min32(p->origin[axis]);
        high[axis] = max32(p->origin[axis]);
        extent = max_nnan(extent, max_nnan(fabs(low[axis]), fabs(high[axis])));
    }
    if (movemask16(finite) != 0xffffu) return false;  // minima and maxima are undefined with NaN
    float slack = extent * FRUSTUM_SLACK;
    b->sign = forward ? 1.0f : -1.0f;
    b->start = min_nnan(low[k] * b->sign, high[k] * b->sign) - slack;
    b->k = k;
    b->i[0] = k == 0 ? 1u : 0u;
    b->i[1] = k == 2 ? 1u : 2u;
    b->near_k = 16 * k + (forward ? 0u : 8u);
    for (int side = 0; side < 2; side++) {
        uint i = b->i[side];
        Floats32 slopes;
        for (int h = 0; h < 2; h++) slopes.v16[h] = p->direction[i].v16[h] / p->direction[k].v16[h];
        float least = min32(slopes), most = max32(slopes);
        if (!(most - least < MAX_SLOPE_RANGE)) return false;
        // Along rays that run backwards c_k falls, so the greatest slope bounds them from below.
        float lower = forward ? least : most, upper = forward ? most : least;
        float padding = slack * (1.0f + max_nnan(fabs(lower), fabs(upper)));
        b->lower[side] = -lower;
        b->upper[side] = -upper;
        b->lower_k[side] = 16 * k + (lower > 0.0f ? 0u : 8u);
        b->upper_k[side] = 16 * k + (upper > 0.0f ? 8u : 0u);
        // the least c_i - lower c_k of the box of the origins, and the greatest c_i - upper c_k
        b->lower_shift[side] = low[i] - max_nnan(lower * low[k], lower * high[k]) - padding;
        b->upper_shift[side] = high[i] - min_nnan(upper * low[k], upper * high[k]) + padding;
    }
    b->slack = slack;
    b->end = frustum_far(b, p);
    return true;
}

// Returns the mask of the boxes of a node8 that the frustum intersects; *box_start becomes the least sign * c_k of each
// box.
DEVICE uint intersect_frustum8(Lines node8, const Frustum *b, float8 *box_start) {
    *box_start = NODE_PLANES(b->near_k) * b->sign;
    int8 in = (NODE_PLANES(b->near_k ^ 8u) * b->sign >= b->start) & (*box_start <= b->end);
    for (int side = 0; side < 2; side++) {
        uint i = 16 * b->i[side];
        in &= fma((float8)(b->lower[side]), NODE_PLANES(b->lower_k[side]), NODE_PLANES(i + 8)) >= b->lower_shift[side];
        in &= fma((float8)(b->upper[side]), NODE_PLANES(b->upper_k[side]), NODE_PLANES(i)) <= b->upper_shift[side];
    }
    return movemask8(in);
}

// Returns the mask of the primitives of a leaf8 that the planes of the frustum do not cull.
DEVICE uint cull_leaf8(Lines leaf8, const Frustum *b) {
    float8 k0 = LEAF_ROW(b->k), k1 = k0 + LEAF_ROW(3 + b->k), k2 = k0 + LEAF_ROW(6 + b->k);
    int8 in = as_int8(LEAF_ROW(LEAF_PRIM_INDICES)) >= 0;
    for (int side = 0; side < 2; side++) {
        uint i = b->i[side];
        float8 p0 = LEAF_ROW(i), p1 = p0 + LEAF_ROW(3 + i), p2 = p0 + LEAF_ROW(6 + i);
        float8 lower = (float8)(b->lower[side]), upper = (float8)(b->upper[side]);
        float8 highest = max_nnan(max_nnan(fma(lower, k0, p0), fma(lower, k1, p1)), fma(lower, k2, p2));
        float8 lowest = min_nnan(min_nnan(fma(upper, k0, p0), fma(upper, k1, p1)), fma(upper, k2, p2));
#if SPHERES
        highest = fma(LEAF_ROW(LEAF_RADII), (float8)(1.0f + fabs(b->lower[side])), highest);
        lowest = fma(LEAF_ROW(LEAF_RADII), (float8)(-1.0f - fabs(b->upper[side])), lowest);
#endif
        in &= (highest >= b->lower_shift[side]) & (lowest <= b->upper_shift[side]);
    }
    return movemask8(in);
}

// Traverses the BVH by the frustum; `budget` is the number of nodes that it may visit. Returns false when the budget is
// spent: the caller then traces the rays in another way. Hits found so far are kept.
DEVICE bool traverse_frustum(Lines nodes, Primitives primitives, Packet *p, Frustum *b, int budget,
                             bool accept_first_hit FILTER_PARAMS) {
    uint2 stack[STACK8_SIZE];  // child references, and the least sign * c_k of their boxes
    int top = 0;
    uint child_ref = 0;
    while (true) {
        Lines record = line_at(nodes, child_ref);
        if (child_ref & LEAF_BIT) {
            bool any_hits = false;
            uint prims = cull_leaf8(record, b);
            for (int h = 0; h < 2 && prims; h++)
                any_hits |= intersect_packet_half(record, prims, primitives, p, h, accept_first_hit FILTER_ARGS);
            budget -= PRIMITIVE_COST * (int)popcount(prims);
            if (any_hits) b->end = frustum_far(b, p);
        } else {
            float8 box_start;
            uint hit_mask = intersect_frustum8(record, b, &box_start);
            budget -= 1;
            if (hit_mask) {
                child_ref = nearest_child(record, hit_mask, box_start, stack, &top);
                continue;
            }
        }
        if (budget < 0) return false;
        do {
            if (top == 0) return true;
            top--;
        } while (as_float(stack[top].y) > b->end);  // skips boxes behind the farthest closest hit
        child_ref = stack[top].x;
    }
}

// Finds the closest hits of the rays of a packet in the mask `active`, which packet_set_ray has set; prim_index is -1
// for a ray without a hit. With accept_first_hit, only prim_index is valid (>= 0: a hit).
DEVICE_NOINLINE_ALWAYS void traverse_packet(Lines nodes, Primitives primitives, Packet *p, uint active,
                                            bool accept_first_hit FILTER_PARAMS) {
    Frustum frustum;
    for (int h = 0; h < 2; h++) {
        p->prim_index.v16[h] = (int16)(-1);
        p->prim_id.v16[h] = (int16)(0x7fffffff);
        p->u.v16[h] = p->v.v16[h] = (float16)(0.0f);
    }
    if (popcount(active) >= MIN_PACKET_RAYS) {
        uint representative = ctz(active);  // inactive rays become copies of it, as bound_packet wants
        float4 origin = with_w(float3_at(p->origin, representative), 0.0f);
        float3 direction = float3_at(p->direction, representative);
        for (uint inactive = ~active; inactive; inactive &= inactive - 1u)
            packet_set_ray(p, ctz(inactive), origin, direction, -1.0f);
        int budget = NODES_PER_RAY * (int)popcount(active);
        if (bound_packet(nodes, p, &frustum) &&
            traverse_frustum(nodes, primitives, p, &frustum, budget, accept_first_hit FILTER_ARGS))
            return;
    }
#if RAY_STREAMS
    if (traverse_stream(nodes, primitives, p, active, accept_first_hit FILTER_ARGS)) return;
#endif
    FOR_EACH_BIT(j, active) {
        if (accept_first_hit && p->prim_index.s[j] >= 0) continue;
        Hit hit = single_ray_hit(nodes, primitives, float3_at(p->origin, j), float3_at(p->direction, j),
                                 packet_hit_at(p, j), accept_first_hit FILTER_ARGS);
        packet_set_hit(p, j, hit);
    }
}
#endif
