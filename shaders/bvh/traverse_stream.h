// Traversal of BVH8 by up to 32 incoherent rays at once, on CPUs whose vectors can be compressed: generation by generation
// of the tree, over one list of pairs of a ray and a node that it enters. A pair waits for no other, so a core works on
// many at a time, and nothing depends on a branch that it could not foretell: of single rays, most of the time passes
// in waiting for a node's result and in wrong guesses. All boxes along a ray are visited, not the nearest first; leaves
// shorten the rays after each generation. Hits are bit-identical to those of bvh/traverse_bvh2.h.
#include "bvh/traverse_bvh8.h"

#if HAS_MOVEMASK && defined(__AVX512VL__)
#define RAY_STREAMS 1
#ifndef STREAM_CAPACITY
#define STREAM_CAPACITY 512  // pairs of a generation
#endif

// Pairs of a ray and a child reference.
typedef struct {
    uint refs[STREAM_CAPACITY + 8], rays[STREAM_CAPACITY + 8];
    uint count;
} Stream;

typedef struct {
    SingleRay rays[32];
    Hit hits[32];
    uint occluded;  // the rays that a search for any hit has done with, whose hits end at -1
} StreamRays;

// Adds the references that `mask` has, for one ray.
DEVICE void push_pairs(Stream *s, uint8 refs, uint mask, uint ray) {
    int8 packed = __builtin_ia32_compresssi256_mask(as_int8(refs), (int8)(0), (uchar)(mask));
    vstore8(as_uint8(packed), 0, s->refs + s->count);
    vstore8((uint8)(ray), 0, s->rays + s->count);
    s->count += popcount(mask);
}

DEVICE void intersect_leaves(Lines nodes, Primitives primitives, StreamRays *r, const Stream *leaves,
                             bool accept_first_hit FILTER_PARAMS) {
    for (uint i = 0; i < leaves->count; i++) {
        uint j = leaves->rays[i];
        Lines leaf8 = line_at(nodes, leaves->refs[i]);
        float8 t, u, v;
        uint met = intersect_leaf8(leaf8, &r->rays[j], r->hits[j].t, &t, &u, &v);
#if HIT_FILTER
        if (met)
            met = filter_leaf8(leaf8, primitives, &r->rays[j], r->hits[j].t, met, &t, &u, &v,
                               accept_first_hit FILTER_ARGS);
#endif
        if (!met) continue;
        if (accept_first_hit) {
            r->occluded |= 1u << j;
            r->hits[j].t = -1.0f;
        } else {
            update_closest8(leaf8, primitives, met, t, u, v, &r->hits[j]);
        }
    }
}

// Traverses from the `active` rays at the root on; false if a generation has too many pairs.
DEVICE bool traverse_stream(Lines nodes, Primitives primitives, StreamRays *r, uint active,
                            bool accept_first_hit FILTER_PARAMS) {
    Stream generations[2], leaves;
    generations[0].count = 0;
    for (; active; active &= active - 1u) {
        generations[0].refs[generations[0].count] = 0;
        generations[0].rays[generations[0].count++] = ctz(active);
    }
    for (uint g = 0; generations[g].count; g ^= 1u) {
        const Stream *now = &generations[g];
        Stream *next = &generations[g ^ 1u];
        next->count = leaves.count = 0;
        for (uint i = 0; i < now->count; i++) {
            uint j = now->rays[i];
            Lines node8 = line_at(nodes, now->refs[i]);
            float8 near;
            uint met = intersect_boxes8(node8, &r->rays[j], r->hits[j].t, &near);
            uint8 child_refs = *(GLOBAL const uint8 *)(node8 + 48);
            uint are_leaves = movemask8(as_int8(child_refs));
            push_pairs(next, child_refs, met & ~are_leaves, j);
            push_pairs(&leaves, child_refs, met & are_leaves, j);
            if (next->count > STREAM_CAPACITY - 8u) return false;
            if (leaves.count > STREAM_CAPACITY - 8u) {
                intersect_leaves(nodes, primitives, r, &leaves, accept_first_hit FILTER_ARGS);
                leaves.count = 0;
            }
        }
        intersect_leaves(nodes, primitives, r, &leaves, accept_first_hit FILTER_ARGS);
    }
    return true;
}
#else
#define RAY_STREAMS 0
#endif
