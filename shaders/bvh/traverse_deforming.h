// Traversal of the BVH2 of a deforming shape, with linear vertex motion blur as in Embree (S. Woop et al. 2017): while
// the shutter is open, every vertex moves along a line from its position in the array `opening` to its position in
// `closing`. A node's boxes contain both. The loops are copies of bvh/traverse_bvh2.h's, so that the kernels of static
// scenes do not pay for motion. bvh/traverse_instances.h includes this file.
// a (1 - weight) + b weight in x, y and z; w is a's.
DEVICE float4 lerp_xyz(float4 a, float4 b, float weight) {
    return make_float4(fma(b.x - a.x, weight, a.x), fma(b.y - a.y, weight, a.y), fma(b.z - a.z, weight, a.z), a.w);
}

DEVICE float3 lerp3(float3 a, float3 b, float weight) { return madd(b - a, weight, a); }

// Primitive i at `time` within the shutter interval, 0 to 1.
DEVICE Primitive primitive_at_time(GLOBAL const float4 *RESTRICT opening, GLOBAL const float4 *RESTRICT closing, int i,
                                   float time) {
    Primitive p = primitive_at(opening, i), end = primitive_at(closing, i);
    p.v0 = lerp_xyz(p.v0, end.v0, time);
    p.edge1 = lerp_xyz(p.edge1, end.edge1, time);
    p.edge2 = lerp_xyz(p.edge2, end.edge2, time);
    return p;
}

// Returns the closest hit before `t_max`, primitive -1 without one; with accept_first_hit, any hit before `t_max`.
// origin.w is the time.
DEVICE Hit traverse_deforming(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT opening,
                              GLOBAL const float4 *RESTRICT closing, float4 origin, float3 direction, float t_max,
                              bool accept_first_hit FILTER_PARAMS) {
    SlabRay ray = slab_ray(xyz(origin), direction);
    Hit best = {t_max, 0.0f, 0.0f, -1};
    int prim_id = 0x7fffffff, node = ROOT_NODE, stack[STACK_SIZE], *top = stack;
    *top++ = STACK_SENTINEL;
    while (node != STACK_SENTINEL) {
        while (node >= 0) {
            COUNT_NODE(best);
            node = next_node(nodes, node, ray, best.t, &top);
        }
        while (node < 0 && node != STACK_SENTINEL) {
            NO_UNROLL
            for (int i = ~node >> 3, end = i + (~node & 7); i <= end; i++) {
                Primitive p = primitive_at_time(opening, closing, i, origin.w);
                update_closest_primitive(p, i, xyz(origin), direction, &best, &prim_id FILTER_ARGS);
                if (accept_first_hit && best.primitive >= 0) return best;
            }
            node = *--top;
        }
    }
    return best;
}
