// Ray-triangle and ray-sphere intersection, the record of a hit and the layout of primitives; every traversal and
// builder of shaders/bvh includes this file. Every rounding is explicit, as in common/vectors.h, so that CUDA and
// OpenCL give bit-identical results. The host defines, each 0 or 1: INSTANCES (the scene has instances), SPHERES (the
// scene has spheres) and TRAVERSAL_COUNTS (hits carry the traversal's statistics).
#include "common/vectors.h"

typedef struct {
    float t;  // ray parameter: the hit is origin + t direction; FLT_MAX for no hit
    float u, v;  // barycentric coordinates; 0 for spheres
    int primitive;  // index in the array of primitives in leaf order, -1 for none
#if INSTANCES
    int instance;  // index of the instance, -1 for none
#endif
#if TRAVERSAL_COUNTS
    uint nodes_visited, primitives_tested;  // by the traversal of this ray
#endif
} Hit;

// INSTANCE_OF: the instance of a hit, -1 for none. SET_INSTANCE sets it. Without INSTANCES a Hit has no field for it.
#if INSTANCES
#define INSTANCE_OF(hit) (hit).instance
#define SET_INSTANCE(hit, index) (hit).instance = (index)
#else
#define INSTANCE_OF(hit) (-1)
#define SET_INSTANCE(hit, index)
#endif

// Traversal statistics, stored in the hit for raytracing/traversal_cost.cu. In other kernels the macros are empty.
#if TRAVERSAL_COUNTS
#define COUNT_NODE(hit) (hit).nodes_visited++
#define COUNT_TESTS(hit, count) (hit).primitives_tested += (uint)(count)
#define KEEP_COUNTS(to, from)                  \
    (to).nodes_visited = (from).nodes_visited; \
    (to).primitives_tested = (from).primitives_tested
#define ADD_COUNTS(to, from)                    \
    (to).nodes_visited += (from).nodes_visited; \
    (to).primitives_tested += (from).primitives_tested
#else
#define COUNT_NODE(hit)
#define COUNT_TESTS(hit, count)
#define KEEP_COUNTS(to, from)
#define ADD_COUNTS(to, from)
#endif

// A primitive, 48 bytes. v0: vertex 0, and in w the primitive id; edge1: vertex 1 - vertex 0, and the material; edge2:
// vertex 2 - vertex 0, and the radius. The id is the primitive's index before the builder sorted primitives into leaf
// order. A sphere has its center in v0, zero edges, and a radius above 0; a triangle has radius 0.
typedef struct {
    float4 v0, edge1, edge2;
} Primitive;

// Primitive i in leaf order.
DEVICE Primitive primitive_at(GLOBAL const float4 *RESTRICT primitives, int i) {
    Primitive p = {primitives[3 * i], primitives[3 * i + 1], primitives[3 * i + 2]};
    return p;
}

// Componentwise minimum and maximum of vectors without NaN.
DEVICE float3 min3(float3 a, float3 b) {
    return make_float3(min_nnan(a.x, b.x), min_nnan(a.y, b.y), min_nnan(a.z, b.z));
}
DEVICE float3 max3(float3 a, float3 b) {
    return make_float3(max_nnan(a.x, b.x), max_nnan(a.y, b.y), max_nnan(a.z, b.z));
}
DEVICE float3 abs3(float3 a) { return make_float3(fabs(a.x), fabs(a.y), fabs(a.z)); }
DEVICE float3 fma3(float3 a, float3 b, float3 c) {
    return make_float3(fma(a.x, b.x, c.x), fma(a.y, b.y, c.y), fma(a.z, b.z, c.z));
}

// The 3 x 4 matrix of rows x, y, z times the point (w = 1) or vector (w = 0) p.
DEVICE float3 transform_rows(const float4 x, const float4 y, const float4 z, float3 p, float w) {
    return make_float3(fma(x.w, w, dot_fma(xyz(x), p)), fma(y.w, w, dot_fma(xyz(y), p)),
                       fma(z.w, w, dot_fma(xyz(z), p)));
}

#define EDGE_EPSILON 9.5367431640625e-7f  // 2^-20 in barycentric coordinates: triangles are enlarged by it on each side

// Ray-triangle intersection (T. Moeller and B. Trumbore 1997). Returns true for a hit at t in (0, t_max], and then sets
// t, u and v of `hit`. The triangle is enlarged by EDGE_EPSILON, so that no ray passes between two neighbors.
DEVICE bool intersect_triangle(const Primitive p, float3 origin, float3 direction, float t_max, Hit *hit) {
    float3 edge1 = xyz(p.edge1), edge2 = xyz(p.edge2);
    float3 h = cross_fma(direction, edge2);
    float determinant = dot_fma(edge1, h);
    float scale = fabs(determinant), least = -EDGE_EPSILON * scale, most = scale + EDGE_EPSILON * scale;
    float3 s = origin - xyz(p.v0);
    float3 q = cross_fma(s, edge1);
    float u = dot_fma(s, h), v = dot_fma(direction, q);
    u = determinant < 0.0f ? -u : u;
    v = determinant < 0.0f ? -v : v;
    if (!(min_nnan(u, v) >= least && u + v <= most)) return false;
    float inverse = 1.0f / determinant;  // infinite for zero area; t is then infinite or NaN and rejected below
    hit->t = dot_fma(edge2, q) * inverse;
    hit->u = u * fabs(inverse);
    hit->v = v * fabs(inverse);
    return hit->t > 0.0f && hit->t <= t_max;
}

// Ray-sphere intersection: returns true if the nearest root in front of the origin is in (0, t_max], and sets t, u and
// v of `hit`. The quadratic is solved in a form that loses no precision when the sphere is far away (Haines et al., Ray
// Tracing Gems 2019, ch. 7).
DEVICE bool intersect_sphere(const Primitive p, float3 origin, float3 direction, float t_max, Hit *hit) {
    float3 f = origin - xyz(p.v0);
    float a = dot_fma(direction, direction);
    float b = -dot_fma(f, direction);
    float3 closest_point = madd(direction, b / a, f);
    float radius = p.edge2.w;
    float discriminant = fma(radius, radius, -dot_fma(closest_point, closest_point));
    if (!(discriminant > 0.0f)) return false;
    float c = fma(-radius, radius, dot_fma(f, f));
    float q = b + (b < 0.0f ? -sqrt(a * discriminant) : sqrt(a * discriminant));
    float first = c / q, second = q / a, t = first > second ? second : first, other = first > second ? first : second;
    // For a ray that starts on the surface, the nearer root is a rounding error around 0: take the other root.
    float self_hit_distance = 2.0e-6f * (radius + fabs(c) / radius);
    if (!(t > 0.0f) || t * t * a < self_hit_distance * self_hit_distance) t = other;
    hit->t = t;
    hit->u = hit->v = 0.0f;
    return t > 0.0f && t <= t_max;
}

// Converts 32 random bits to a number in [0, 1), a multiple of 2^-24.
DEVICE float uniform_float(uint bits) { return (float)(bits >> 8) * 5.9604644775390625e-8f; }
