// The body of a function whose warps trace the rays of a queue (persistent threads; T. Aila and S. Laine 2009): lanes
// without a ray take the next ones once IDLE_LANES lanes of the warp are idle. A turn is at most NODES_PER_QUEUE_TURN
// inner nodes of the BVH2, then at most one leaf. Include it by #include_again in the body of a function with the BVH's
// `nodes` and `primitives`, which whole warps call, after defining
//     QUEUE_COUNT    the number of rays
//     QUEUE_NEXT     pointer to the number of rays that have been taken; the caller sets it to 0
//     QUEUE_ANY_HIT  true: the ray ends at its first hit, where only best.primitive >= 0 is valid
//     QUEUE_LOAD     statements that set float4 origin, direction and best.t (t_max) of the ray number queue_index
//     QUEUE_FINISH   statements that keep `best` of the ray whose origin and direction are these
// On an H200 it traces 1.14 to 1.5 times the diffuse rays of one ray a thread in meshes, and 0.95 in a Menger sponge;
// camera rays, which are coherent, are traced at 0.55 to 0.97 of it (tests/fps/rays.py).
// Macros of other files: AT_REST, FILTER_ARGS_OF, ROOT_NODE, STACK_SENTINEL, STACK_SIZE (bvh/traverse_bvh2.h).
#define IDLE_LANES 20u
#define NODES_PER_QUEUE_TURN 4

// A lane whose node is STACK_SENTINEL has finished its ray; it keeps has_ray until it has run QUEUE_FINISH.
int node = STACK_SENTINEL, prim_id = 0x7fffffff, stack[STACK_SIZE], *top = stack;
Hit best = {0.0f, 0.0f, 0.0f, -1};
bool has_ray = false, rays_left = true;
uint queue_index = 0;
float4 origin = make_float4(0.0f, 0.0f, 0.0f, 0.0f), direction = origin;
SlabRay ray = slab_ray(xyz(origin), xyz(direction));
while (true) {
    if (has_ray && node == STACK_SENTINEL) {
        has_ray = false;
        QUEUE_FINISH
    }
    WARP_BARRIER();  // the lanes come together again: ballot() is called by the whole warp
    uint idle = ballot(!has_ray);
    if (idle == 0xffffffffu && !rays_left) break;
    if (rays_left) {
        uint first = 0;
        if (lane_index() == 0) first = atomic_add(QUEUE_NEXT, popcount(idle));
        first = warp_shuffle(first, 0);
        rays_left = first + popcount(idle) < QUEUE_COUNT;
        uint next_index = first + popcount(idle & ((1u << lane_index()) - 1u));
        if (!has_ray && next_index < QUEUE_COUNT) {
            has_ray = true;
            queue_index = next_index;
            QUEUE_LOAD
            ray = slab_ray(xyz(origin), xyz(direction));
            best.u = best.v = 0.0f;
            best.primitive = -1;
            prim_id = 0x7fffffff;
            node = ROOT_NODE;
            top = stack;
            *top++ = STACK_SENTINEL;
        }
        WARP_BARRIER();
    }
    do {
        NO_UNROLL
        for (int k = 0; k < NODES_PER_QUEUE_TURN && node >= 0; k++) node = next_node(nodes, node, ray, best.t, &top);
        WARP_BARRIER();
        if (node < 0 && node != STACK_SENTINEL) {
            intersect_leaf(primitives, node, xyz(origin), xyz(direction), &best, &prim_id FILTER_ARGS_OF(-1) AT_REST);
            node = QUEUE_ANY_HIT && best.primitive >= 0 ? STACK_SENTINEL : *--top;
        }
        WARP_BARRIER();
        idle = ballot(node == STACK_SENTINEL);
    } while (idle != 0xffffffffu && (!rays_left || popcount(idle) < IDLE_LANES));
}
