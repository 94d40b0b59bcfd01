// Walks of binary trees by whole warps, where there are such.
//     packet    32 rays go to the same nodes together: nothing diverges, a node is loaded once, the lanes keep the stack.
//               For rays that begin alike, such as a camera's in 8 x 4 pixel tiles (I. Wald et al. 2001).
//     fetching  every lane walks its own ray; when FETCH lanes have none left, they take new ones (Aila and Laine 2009), and
//               after STEPS inner nodes a lane that waits at a leaf gets its turn. For rays that scatter.
#include "bvh/traverse_bvh2.h"
#include "bvh/traverse_bvh4.h"

#ifndef FETCH
#define FETCH 20  // the table of bvh_walks.py has what was fastest on an H200
#endif
#ifndef STEPS
#define STEPS 6
#endif
#define QUAD_FETCH 4
#define QUAD_STEPS 3
#define QUAD_STACK (WALK_STACK / 2 * 3 + 4)  // two binary levels, one of four-wide nodes, keep three children

#if HAS_BALLOT
// The whole warp calls it; lanes without a ray give a negative `longest`. `any` ends a lane's search at its first hit.
DEVICE Hit packet_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin, float3 direction,
                      float longest, bool any) {
    NodeRay ray = node_ray(nodes, origin, direction);
    Hit best = {longest, 0.0f, 0.0f, -1};
    int number = 0x7fffffff, top = 0, node = ROOT, kept = 0, kept_deep = 0;  // lane k keeps entries k and 32 + k of the stack
    while (true) {
        if (node >= 0) {
            Children c = children_of(nodes, node, ray, best.t);
            uint hits1 = ballot(c.hit1), hits2 = ballot(c.hit2);
            if (hits1 && hits2) {
                uint swaps = ballot(c.hit2 && (!c.hit1 || c.near2 < c.near1));
                bool swap = popcount(swaps) > popcount((hits1 | hits2) & ~swaps);
                int farther = swap ? c.left : c.right;
                if (lane_index() == (uint)(top & 31)) {
                    if (top < 32) kept = farther;
                    else kept_deep = farther;
                }
                top++;
                node = swap ? c.right : c.left;
                continue;
            }
            if (hits1 | hits2) {
                node = hits1 ? c.left : c.right;
                continue;
            }
        } else {
            take_leaf(primitives, node, origin, direction, &best, &number);
            if (any && best.primitive >= 0) best.t = -1.0f;
        }
        if (top == 0) return best;
        top--;
        node = (int)from_lane((uint)(top < 32 ? kept : kept_deep), (uint)top & 31u);
    }
}

// The warp's share of `count` < 2^31 rays (two float4 each), handed out by next[0]. Closest hits go to `hits`, or with `any` 0 and 1
// to `occluded`. `quads` tells four-wide nodes from binary ones.
DEVICE void fetch_and_walk(GLOBAL const float4 *RESTRICT rays, GLOBAL float4 *hits, GLOBAL uint *occluded,
                           GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, uint count, GLOBAL uint *next,
                           bool any, bool quads) {
    float3 origin, direction;
    NodeRay ray;
    Hit best;
    int number = 0, node = WALK_DONE, stack[QUAD_STACK], *top = stack;
    uint i = 0;
    bool alive = false, work_left = true;
    while (true) {
        uint idle = ~ballot(alive);
        if (work_left && popcount(idle) >= (quads ? QUAD_FETCH : FETCH)) {
            uint base = 0;
            if (lane_index() == 0) base = atomic_add(&next[0], popcount(idle));
            base = from_lane(base, 0);
            work_left = base + popcount(idle) < count;
            i = alive ? i : base + popcount(idle & ((1u << lane_index()) - 1u));
            if (!alive && i < count) {
                alive = true;
                float4 start = stream_load(rays + 2 * i);
                origin = xyz(start);
                direction = xyz(stream_load(rays + 2 * i + 1));
                ray = node_ray(nodes, origin, direction);
                best.t = start.w;
                best.u = best.v = 0.0f;
                best.primitive = -1;
                number = 0x7fffffff;
                top = stack;
                *top++ = WALK_DONE;
                node = ROOT;
            }
        }
        if (ballot(alive) == 0) {
            if (!work_left) return;
            continue;
        }
        if (!alive) continue;
#if !NARROW
        if (quads) {
            NO_UNROLL
            for (int k = 0; k < QUAD_STEPS && node >= 0; k++)
                node = next_quad((GLOBAL const uint4 *)nodes, node, ray, best.t, 0x3f800000u | count >> 31, &top);
        } else
#endif
            for (int k = 0; k < STEPS && node >= 0; k++) node = next_node(nodes, node, ray, best.t, &top);
        if (node < 0 && node != WALK_DONE) {
            take_leaf(primitives, node, origin, direction, &best, &number);
            node = any && best.primitive >= 0 ? WALK_DONE : *--top;
        }
        if (node == WALK_DONE) {
            alive = false;
            if (any) occluded[i] = best.primitive >= 0 ? 1u : 0u;
            else hits[i] = make_float4(best.t, best.u, best.v, as_float(best.primitive));
        }
    }
}
#endif
