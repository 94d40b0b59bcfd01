// Ray queries: sets of rays against one BVH, for benches and tests. Two float4 a ray: origin and t_max, direction and a
// spare word. The kernels call the traversals that pictures compile (shaders/bvh); ray_queries.py chooses.
#include "bvh/traverse_packet.h"
#include "bvh/traverse_instances.h"

// One ray a thread.
#define CLOSEST(name, Node, traverse)                                                         \
    KERNEL name(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const Node *nodes,     \
                GLOBAL const float4 *primitives, int count) {                                 \
        uint i = thread_index();                                                              \
        if (i >= (uint)count) return;                                                         \
        float4 origin = rays[2 * i], direction = rays[2 * i + 1]; \
        Hit hit = traverse(nodes, primitives, xyz(origin), xyz(direction), origin.w);         \
        hits[i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));                  \
    }
#define OCCLUDED(name, Node, traverse)                                                                \
    KERNEL name(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const Node *nodes,               \
                GLOBAL const float4 *primitives, int count) {                                         \
        uint i = thread_index();                                                                      \
        if (i >= (uint)count) return;                                                                 \
        float4 origin = rays[2 * i];                                                                  \
        hits[i] = traverse(nodes, primitives, xyz(origin), xyz(rays[2 * i + 1]), origin.w) ? 1u : 0u; \
    }
CLOSEST(closest_bvh2, float4, closest_hit)
OCCLUDED(occluded_bvh2, float4, any_hit)

#if HAS_BALLOT
// The rays of a queue, whose lanes take new rays, as later bounces of pictures trace them. *next is 0 at the start.
#define LOAD_QUERY                      \
    origin = rays[2 * queue_index];     \
    direction = rays[2 * queue_index + 1]; \
    best.t = origin.w;
#define QUEUE_COUNT (uint)count
#define QUEUE_NEXT next
#define QUEUE_LOAD LOAD_QUERY
KERNEL closest_queue(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float4 *nodes,
                     GLOBAL const float4 *primitives, int count, GLOBAL uint *next) {
#define QUEUE_ANY_HIT false
#define QUEUE_FINISH hits[queue_index] = make_float4(best.t, best.u, best.v, as_float(best.primitive));
#include_again "bvh/trace_queue.h"
}
#undef QUEUE_ANY_HIT
#undef QUEUE_FINISH
KERNEL occluded_queue(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const float4 *nodes,
                      GLOBAL const float4 *primitives, int count, GLOBAL uint *next) {
#define QUEUE_ANY_HIT true
#define QUEUE_FINISH hits[queue_index] = best.primitive >= 0 ? 1u : 0u;
#include_again "bvh/trace_queue.h"
}
#endif

// The brute-force reference: every ray against every primitive.
KERNEL brute_force(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float4 *primitives, int primitive_count,
                   int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Hit best = {rays[2 * i].w, 0.0f, 0.0f, -1};
    int prim_id = 0x7fffffff;
    for (int k = 0; k < primitive_count; k++)
        update_closest(primitives, k, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), &best, &prim_id);
    hits[i] = make_float4(best.t, best.u, best.v, as_float(best.primitive));
}

// ---- the baseline of benches: a textbook traversal over the builder's nodes of min and max corners, without STRICT ----
DEVICE float baseline_inverse(float d) {
    return 1.0f / (fabs(d) > 8.6736174e-19f ? d : d < 0.0f ? -8.6736174e-19f : 8.6736174e-19f);
}

// The distance at which the ray enters a box, FLT_MAX where it misses.
DEVICE float baseline_box(float3 inverse, float3 bias, float lox, float hix, float loy, float hiy, float loz, float hiz,
                          float t_max) {
    float ax = fma(lox, inverse.x, bias.x), bx = fma(hix, inverse.x, bias.x), ay = fma(loy, inverse.y, bias.y),
          by = fma(hiy, inverse.y, bias.y), az = fma(loz, inverse.z, bias.z), bz = fma(hiz, inverse.z, bias.z);
    float near = max_nnan(max_nnan(min_nnan(ax, bx), min_nnan(ay, by)), max_nnan(min_nnan(az, bz), 0.0f));
    float far = min_nnan(min_nnan(max_nnan(ax, bx), max_nnan(ay, by)), min_nnan(max_nnan(az, bz), t_max));
    return near <= far ? near : FLT_MAX;
}

DEVICE bool baseline_triangle(const Primitive p, float3 origin, float3 direction, float t_max, Hit *hit) {
    float3 edge1 = xyz(p.edge1), edge2 = xyz(p.edge2), h = cross(direction, edge2), s = origin - xyz(p.v0);
    float inverse = 1.0f / dot(edge1, h);
    float u = inverse * dot(s, h);
    if (u < 0.0f || u > 1.0f) return false;
    float3 q = cross(s, edge1);
    float v = inverse * dot(direction, q);
    if (v < 0.0f || u + v > 1.0f) return false;
    hit->t = inverse * dot(edge2, q);
    hit->u = u;
    hit->v = v;
    return hit->t > 0.0f && hit->t < t_max;
}

DEVICE Hit baseline_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                        float3 direction, float t_max, bool accept_first_hit) {
    float3 inverse =
        make_float3(baseline_inverse(direction.x), baseline_inverse(direction.y), baseline_inverse(direction.z));
    float3 bias = make_float3(-origin.x * inverse.x, -origin.y * inverse.y, -origin.z * inverse.z);
    Hit best = {t_max, 0.0f, 0.0f, -1}, hit;
    int stack[STACK_SIZE], top = 0, node = 0;
    while (true) {
        if (node >= 0) {
            float4 a = nodes[4 * node], b = nodes[4 * node + 1], c = nodes[4 * node + 2], d = nodes[4 * node + 3];
            float first = baseline_box(inverse, bias, a.x, a.y, a.z, a.w, c.x, c.y, best.t);
            float second = baseline_box(inverse, bias, b.x, b.y, b.z, b.w, c.z, c.w, best.t);
            int left = as_int(d.x), right = as_int(d.y);
            if (first < FLT_MAX && second < FLT_MAX) {
                stack[top++] = first < second ? right : left;
                node = first < second ? left : right;
                continue;
            }
            if (first < FLT_MAX || second < FLT_MAX) {
                node = first < FLT_MAX ? left : right;
                continue;
            }
        } else {
            for (int i = ~node >> 3, end = i + (~node & 7); i <= end; i++) {
                if (baseline_triangle(primitive_at(primitives, i), origin, direction, best.t, &hit)) {
                    best = hit;
                    best.primitive = i;
                    if (accept_first_hit) return best;
                }
            }
        }
        if (top == 0) return best;
        node = stack[--top];
    }
}

DEVICE Hit baseline_closest(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives,
                            float3 origin, float3 direction, float t_max) {
    return baseline_hit(nodes, primitives, origin, direction, t_max, false);
}

DEVICE bool baseline_any(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                         float3 direction, float t_max) {
    return baseline_hit(nodes, primitives, origin, direction, t_max, true).primitive >= 0;
}

CLOSEST(closest_baseline, float4, baseline_closest)
OCCLUDED(occluded_baseline, float4, baseline_any)

#if HAS_MOVEMASK
CLOSEST(closest_bvh8, float, closest_hit_bvh8)
OCCLUDED(occluded_bvh8, float, any_hit_bvh8)

// Loads the packet of up to 32 rays that begins at `first`; returns the mask of its rays.
DEVICE uint load_packet(GLOBAL const float4 *rays, uint first, uint count, Packet *p) {
    uint own = min(count - first, 32u);
    for (uint j = 0; j < own; j++) {
        float4 origin = rays[2 * (first + j)], direction = rays[2 * (first + j) + 1];
        packet_set_ray(p, j, origin, xyz(direction), origin.w);
    }
    return own == 32u ? 0xffffffffu : (1u << own) - 1u;
}

// One packet of 32 rays a thread.
KERNEL closest_packet(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float *nodes,
                      GLOBAL const float4 *primitives, int count) {
    uint first = 32u * thread_index();
    if (first >= (uint)count) return;
    Packet p;
    uint active = load_packet(rays, first, (uint)count, &p);
    traverse_packet(nodes, primitives, &p, active, false);
    for (uint j = 0; j < popcount(active); j++)
        hits[first + j] = make_float4(p.t.s[j], p.u.s[j], p.v.s[j], as_float(p.prim_index.s[j]));
}

KERNEL occluded_packet(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const float *nodes,
                       GLOBAL const float4 *primitives, int count) {
    uint first = 32u * thread_index();
    if (first >= (uint)count) return;
    Packet p;
    uint active = load_packet(rays, first, (uint)count, &p);
    traverse_packet(nodes, primitives, &p, active, true);
    for (uint j = 0; j < popcount(active); j++) hits[first + j] = p.prim_index.s[j] >= 0 ? 1u : 0u;
}
#endif

// One ray a thread. hits: t, u, v, index in the BLAS primitives or -1; instances: which one was hit, or -1.
KERNEL closest_instanced(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL int *instances, int count,
                         INSTANCE_PARAMS) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Hit best = {rays[2 * i].w, 0.0f, 0.0f, -1};
    int instance = -1;
    traverse_tlas(INSTANCE_ARGS, with_w(xyz(rays[2 * i]), 0.0f), xyz(rays[2 * i + 1]), false, &best, &instance);
    hits[i] = make_float4(best.t, best.u, best.v, as_float(best.primitive));
    instances[i] = instance;
}
