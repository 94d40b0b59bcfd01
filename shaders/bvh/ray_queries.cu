// Sets of rays against a tree, for tests and benches: two float4 a ray, origin and greatest t, direction and nothing.
#include "bvh/traverse_bvh8.h"
#include "bvh/traverse_warp.h"
#include "bvh/traverse_cwbvh.h"

// A kernel that walks one ray a thread.
#define CLOSEST(name, Node, walk)                                                                                              \
    KERNEL name(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const Node *nodes, GLOBAL const float4 *primitives, int count) { \
        uint i = thread_index();                                                                                               \
        if (i >= (uint)count) return;                                                                                          \
        float4 start = stream_load(rays + 2 * i);                                                                              \
        Hit hit = walk(nodes, primitives, xyz(start), xyz(stream_load(rays + 2 * i + 1)), start.w);                            \
        hits[i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));                                                   \
    }
#define OCCLUDED(name, Node, walk)                                                                                             \
    KERNEL name(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const Node *nodes, GLOBAL const float4 *primitives, int count) { \
        uint i = thread_index();                                                                                               \
        if (i >= (uint)count) return;                                                                                          \
        hits[i] = walk(nodes, primitives, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), rays[2 * i].w) ? 1u : 0u;                    \
    }
CLOSEST(closest, float4, closest_hit)
OCCLUDED(occluded, float4, any_hit)
CLOSEST(closest_wide, uint4, closest_hit_wide)
OCCLUDED(occluded_wide, uint4, any_hit_wide)

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

// ---- the yardstick: a plain walk as anyone would write it first, over the builder's nodes of lowest and highest corners; -------
// for benches only, compiled without STRICT
DEVICE float plain_inverse(float d) {
    return 1.0f / (fabs(d) > 8.6736174e-19f ? d : d < 0.0f ? -8.6736174e-19f : 8.6736174e-19f);
}

DEVICE float plain_enter(float3 inverse, float3 shift, float lox, float hix, float loy, float hiy, float loz, float hiz, float longest) {
    float ax = fma(lox, inverse.x, shift.x), bx = fma(hix, inverse.x, shift.x), ay = fma(loy, inverse.y, shift.y),
          by = fma(hiy, inverse.y, shift.y), az = fma(loz, inverse.z, shift.z), bz = fma(hiz, inverse.z, shift.z);
    float near = larger(larger(smaller(ax, bx), smaller(ay, by)), larger(smaller(az, bz), 0.0f));
    float far = smaller(smaller(larger(ax, bx), larger(ay, by)), smaller(larger(az, bz), longest));
    return near <= far ? near : INFINITE;
}

DEVICE bool plain_triangle(const Primitive p, float3 origin, float3 direction, float longest, Hit *hit) {
    float3 edge1 = xyz(p.edge1), edge2 = xyz(p.edge2), h = cross(direction, edge2), s = origin - xyz(p.corner);
    float inverse = 1.0f / dot(edge1, h);
    float u = inverse * dot(s, h);
    if (u < 0.0f || u > 1.0f) return false;
    float3 q = cross(s, edge1);
    float v = inverse * dot(direction, q);
    if (v < 0.0f || u + v > 1.0f) return false;
    hit->t = inverse * dot(edge2, q);
    hit->u = u;
    hit->v = v;
    return hit->t > 0.0f && hit->t < longest;
}

DEVICE Hit plain_walk(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin, float3 direction,
                      float longest, bool any_will_do) {
    float3 inverse = make_float3(plain_inverse(direction.x), plain_inverse(direction.y), plain_inverse(direction.z));
    float3 shift = make_float3(-origin.x * inverse.x, -origin.y * inverse.y, -origin.z * inverse.z);
    Hit best = {longest, 0.0f, 0.0f, -1}, hit;
    int stack[WALK_STACK], top = 0, node = 0;
    while (true) {
        if (node >= 0) {
            float4 a = nodes[4 * node], b = nodes[4 * node + 1], c = nodes[4 * node + 2], d = nodes[4 * node + 3];
            float first = plain_enter(inverse, shift, a.x, a.y, a.z, a.w, c.x, c.y, best.t);
            float second = plain_enter(inverse, shift, b.x, b.y, b.z, b.w, c.z, c.w, best.t);
            int left = as_int(d.x), right = as_int(d.y);
            if (first < INFINITE && second < INFINITE) {
                stack[top++] = first < second ? right : left;
                node = first < second ? left : right;
                continue;
            }
            if (first < INFINITE || second < INFINITE) {
                node = first < INFINITE ? left : right;
                continue;
            }
        } else {
            for (int i = ~node >> 3, end = i + (~node & 7); i <= end; i++) {
                if (plain_triangle(primitive_at(primitives, i), origin, direction, best.t, &hit)) {
                    best = hit;
                    best.primitive = i;
                    if (any_will_do) return best;
                }
            }
        }
        if (top == 0) return best;
        node = stack[--top];
    }
}

KERNEL closest_plain(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives,
                     int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Hit hit = plain_walk(nodes, primitives, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), rays[2 * i].w, false);
    hits[i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
}

KERNEL occluded_plain(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives,
                      int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    hits[i] = plain_walk(nodes, primitives, xyz(rays[2 * i]), xyz(rays[2 * i + 1]), rays[2 * i].w, true).primitive >= 0 ? 1u : 0u;
}

#if HAS_BALLOT
KERNEL closest_packet(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives,
                      int count) {
    uint i = thread_index(), ray = min(i, (uint)count - 1u);
    float longest = i < (uint)count ? rays[2 * ray].w : -1.0f;
    Hit hit = packet_hit(nodes, primitives, xyz(rays[2 * ray]), xyz(rays[2 * ray + 1]), longest, false);
    if (i < (uint)count) hits[i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
}

KERNEL occluded_packet(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives,
                       int count) {
    uint i = thread_index(), ray = min(i, (uint)count - 1u);
    float longest = i < (uint)count ? rays[2 * ray].w : -1.0f;
    Hit hit = packet_hit(nodes, primitives, xyz(rays[2 * ray]), xyz(rays[2 * ray + 1]), longest, true);
    if (i < (uint)count) hits[i] = hit.primitive >= 0 ? 1u : 0u;
}

// next[0] is 0 at the start; any number of threads will do.
#define FETCHING(name, Found, closest_hits, any_hits, any, quads)                                                              \
    KERNEL name(GLOBAL const float4 *rays, GLOBAL Found *hits, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, int count, \
                GLOBAL uint *next) {                                                                                           \
        fetch_and_walk(rays, closest_hits, any_hits, nodes, primitives, (uint)count, next, any, quads);                        \
    }
FETCHING(closest_fetching, float4, hits, 0, false, false)
FETCHING(occluded_fetching, uint, 0, hits, true, false)
#if !NARROW
FETCHING(closest_quads, float4, hits, 0, false, true)
FETCHING(occluded_quads, uint, 0, hits, true, true)
#endif
#endif

#if HAS_WIDE_REGISTERS
CLOSEST(closest_lone, float, closest_hit_lone)
OCCLUDED(occluded_lone, float, any_hit_lone)

// The packet of 32 rays that begins at `first`, and its mask of rays that are there.
DEVICE uint load_packet(GLOBAL const float4 *rays, uint first, uint count, Packet *p) {
    uint own = min(count - first, 32u);
    for (uint j = 0; j < own; j++) {
        float4 origin = rays[2 * (first + j)], direction = rays[2 * (first + j) + 1];
        put_ray(p, j, origin, xyz(direction), origin.w);
    }
    return own == 32u ? 0xffffffffu : (1u << own) - 1u;
}

// A thread walks 32 rays.
KERNEL closest_beam(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float *nodes, GLOBAL const float4 *primitives, int count) {
    uint first = 32u * thread_index();
    if (first >= (uint)count) return;
    Packet p;
    uint active = load_packet(rays, first, (uint)count, &p);
    walk_packet(nodes, primitives, &p, active, false);
    for (uint j = 0; j < popcount(active); j++) hits[first + j] = make_float4(p.t.at[j], p.u.at[j], p.v.at[j], as_float(p.row.at[j]));
}

KERNEL occluded_beam(GLOBAL const float4 *rays, GLOBAL uint *hits, GLOBAL const float *nodes, GLOBAL const float4 *primitives, int count) {
    uint first = 32u * thread_index();
    if (first >= (uint)count) return;
    Packet p;
    uint active = load_packet(rays, first, (uint)count, &p);
    walk_packet(nodes, primitives, &p, active, true);
    for (uint j = 0; j < popcount(active); j++) hits[first + j] = p.row.at[j] >= 0 ? 1u : 0u;
}
#endif

// The four-wide walk by one thread a ray: for devices without warps, and tests there.
KERNEL closest_quad(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives,
                    int count) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    float3 origin = xyz(rays[2 * i]), direction = xyz(rays[2 * i + 1]);
    Slabs s = slabs_of(origin, direction);
    Hit best = {rays[2 * i].w, 0.0f, 0.0f, -1};
    int number = 0x7fffffff, node = 0, stack[QUAD_STACK], *top = stack;
    *top++ = WALK_DONE;
    while (node != WALK_DONE) {
        if (node >= 0) node = next_quad((GLOBAL const uint4 *)nodes, node, s, best.t, 0x3f800000u, &top);
        else {
            take_leaf(primitives, node, origin, direction, &best, &number);
            node = *--top;
        }
    }
    hits[i] = make_float4(best.t, best.u, best.v, as_float(best.primitive));
}

// The nodes that rays meet: what kind of tree this is. A ray's row is its direction and the primitive near whose middle it begins.
KERNEL count_steps(GLOBAL const float4 *ways, GLOBAL const float4 *nodes, GLOBAL const float4 *primitives, int count, GLOBAL uint *total) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Primitive p = primitive_at(primitives, as_int(ways[i].w));
    float3 direction = xyz(ways[i]), middle = xyz(p.corner) + (xyz(p.edge1) + xyz(p.edge2)) * 0.33333333f;
    float3 origin = along(middle, direction, 1e-3f * (length(xyz(p.edge1)) + length(xyz(p.edge2)) + p.edge2.w));
    NodeRay ray = node_ray(nodes, origin, direction);
    Hit best = {INFINITE, 0.0f, 0.0f, -1};
    int number = 0x7fffffff, node = ROOT, stack[WALK_STACK], *top = stack;
    uint steps = 0;
    *top++ = WALK_DONE;
    while (node != WALK_DONE) {
        if (node >= 0) {
            node = next_node(nodes, node, ray, best.t, &top);
            steps++;
        } else {
            take_leaf(primitives, node, origin, direction, &best, &number);
            node = *--top;
        }
    }
    atomic_add(total, steps);
}
