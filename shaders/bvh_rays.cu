// Sets of rays against a tree, for tests and benches: two float4 a ray, origin and greatest t, direction and nothing.
#include "bvh_wide.h"

KERNEL closest(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives,
               int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Hit hit = closest_hit(nodes, primitives, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), rays[2 * i].w);
    hits[i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
}

KERNEL occluded(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    hits[i] = any_hit(nodes, primitives, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), rays[2 * i].w) ? 1u : 0u;
}

// Every ray against every primitive: the tree-less witness.
KERNEL brute(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float4 *primitives, int primitive_count, int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Hit best = {rays[2 * i].w, 0.0f, 0.0f, -1};
    int number = 0x7fffffff;
    for (int k = 0; k < primitive_count; k++)
        take_nearer(primitives, k, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), &best, &number);
    hits[i] = make_float4(best.t, best.u, best.v, as_float(best.primitive));
}

KERNEL closest_wide(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const uint4 *nodes, GLOBAL const float4 *primitives,
                    int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Hit hit = closest_hit_wide(nodes, primitives, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), rays[2 * i].w);
    hits[i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
}

KERNEL occluded_wide(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const uint4 *nodes, GLOBAL const float4 *primitives,
                     int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    hits[i] = any_hit_wide(nodes, primitives, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), rays[2 * i].w) ? 1u : 0u;
}
