// Rays against triangles and spheres, and vector geometry. Every rounding is explicit (fma; / and sqrt are correctly
// rounded under STRICT), so that CUDA and OpenCL give bit-identical results.

typedef struct {
    float t;        // in lengths of the ray's direction; FLT_MAX for no hit
    float u, v;     // barycentric coordinates; 0 for spheres
    int primitive;  // index of the primitives in leaf order, -1 for none
#if INSTANCES
    int instance;  // -1 for none
#endif
#if TRAVERSAL_COUNTS
    uint nodes_visited, primitives_tested;  // by the traversal that found it
#endif
} Hit;

// What a traversal did, kept in the hit for raytracing/traversal_cost.cu. Other kernels have no text of it.
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

// 48 bytes a primitive: vertex 0 and primitive id | edge from vertex 0 to 1 and material | edge from vertex 0 to 2 and
// radius. The id is the index before sorting into leaves. A sphere has its center for vertex 0, zero edges, and a
// radius above 0.
typedef struct {
    float4 v0, edge1, edge2;
} Primitive;

DEVICE Primitive primitive_at(GLOBAL const float4 *RESTRICT primitives, int i) {
    Primitive p = {primitives[3 * i], primitives[3 * i + 1], primitives[3 * i + 2]};
    return p;
}

DEVICE float dot_fma(float3 a, float3 b) { return fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)); }

DEVICE float3 cross_fma(float3 a, float3 b) {
    return make_float3(fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x)));
}

// direction * t + origin.
DEVICE float3 madd(float3 direction, float t, float3 origin) {
    return make_float3(fma(direction.x, t, origin.x), fma(direction.y, t, origin.y), fma(direction.z, t, origin.z));
}

DEVICE float3 normalize_fma(float3 a) { return a * (1.0f / sqrt(dot_fma(a, a))); }

// By components, which are never NaN.
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
DEVICE float3 splat3(float x) { return make_float3(x, x, x); }
DEVICE float largest_of3(float3 a) { return max_nnan(max_nnan(a.x, a.y), a.z); }

// A point (w = 1) or vector (w = 0) times a 3 x 4 matrix of rows x, y, z.
DEVICE float3 transform_rows(const float4 x, const float4 y, const float4 z, float3 p, float w) {
    return make_float3(fma(x.w, w, dot_fma(xyz(x), p)), fma(y.w, w, dot_fma(xyz(y), p)),
                       fma(z.w, w, dot_fma(xyz(z), p)));
}

// Moller and Trumbore 1997. Triangles are widened by EDGE_EPSILON, so that neighbors leave no gap between them.
#define EDGE_EPSILON 9.5367431640625e-7f  // 2^-20
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
    float inverse = 1.0f / determinant;  // infinite for a zero area: t is then infinite or NaN, and out of range
    hit->t = dot_fma(edge2, q) * inverse;
    hit->u = u * fabs(inverse);
    hit->v = v * fabs(inverse);
    return hit->t > 0.0f && hit->t <= t_max;
}

// The nearer root in front of the origin, in the form that loses no precision when the sphere is far away (Haines et
// al., Ray Tracing Gems 2019, ch. 7).
DEVICE bool intersect_sphere(const Primitive p, float3 origin, float3 direction, float t_max, Hit *hit) {
    float3 f = origin - xyz(p.v0);
    float a = dot_fma(direction, direction);
    float b = -dot_fma(f, direction);
    float3 perpendicular = madd(direction, b / a, f);
    float radius = p.edge2.w;
    float discriminant = fma(radius, radius, -dot_fma(perpendicular, perpendicular));
    if (!(discriminant > 0.0f)) return false;
    float c = fma(-radius, radius, dot_fma(f, f));
    float q = b + (b < 0.0f ? -sqrt(a * discriminant) : sqrt(a * discriminant));
    float first = c / q, second = q / a, t = first > second ? second : first, other = first > second ? first : second;
    // A ray that leaves the surface has a near root of about 0, a rounding error.
    float self_hit_distance = 2.0e-6f * (radius + fabs(c) / radius);
    if (!(t > 0.0f) || t * t * a < self_hit_distance * self_hit_distance) t = other;
    hit->t = t;
    hit->u = hit->v = 0.0f;
    return t > 0.0f && t <= t_max;
}

// Moves a ray's origin off its surface along the normal by a few units in the last place (C. Waechter and N. Binder,
// Ray Tracing Gems 2019, ch. 6): enough at any scale, too little to see.
DEVICE float offset_axis(float p, float n) {
    if (fabs(p) < 1.0f / 32) return fma(1.0f / 65536, n, p);
    int steps = (int)(256.0f * n);
    return as_float(as_int(p) + (p < 0 ? -steps : steps));
}

DEVICE float3 offset_ray(float3 p, float3 normal) {
    return make_float3(offset_axis(p.x, normal.x), offset_axis(p.y, normal.y), offset_axis(p.z, normal.z));
}

// From a frame around the unit normal n to world space: (x, y, z) are the coordinates (T. Duff et al. 2017).
DEVICE float3 local_to_world(float3 n, float x, float y, float z) {
    float s = n.z < 0.0f ? -1.0f : 1.0f;
    float a = -1.0f / (s + n.z), b = n.x * n.y * a;
    float3 tangent = make_float3(fma(s * n.x * n.x, a, 1.0f), s * b, -s * n.x);
    float3 bitangent = make_float3(b, fma(n.y * n.y, a, s), -n.y);
    return madd(n, z, madd(bitangent, y, tangent * x));
}

// (cos, sin) of 2 pi x, x in [0, 1), by Taylor polynomials on eighths of a circle: bit-identical on every device.
DEVICE float2 cos_sin_2pi(float x) {
    float eighths = floor(fma(x, 8.0f, 0.0f));
    int octant = (int)eighths;
    float r = fma(eighths + (float)(octant & 1), -0.125f, x) * 6.283185307f;  // within +- pi / 4
    float r2 = r * r;
    float sine = r * fma(r2, fma(r2, fma(r2, -1.9841270e-4f, 8.3333333e-3f), -1.6666667e-1f), 1.0f);
    float cosine = fma(r2, fma(r2, fma(r2, fma(r2, 2.4801587e-5f, -1.3888889e-3f), 4.1666667e-2f), -0.5f), 1.0f);
    int quarter = ((octant + 1) >> 1) & 3;
    bool odd = (quarter & 1) != 0;
    float level = odd ? sine : cosine, upright = odd ? cosine : sine;
    return make_float2((quarter == 1) | (quarter == 2) ? -level : level, quarter >= 2 ? -upright : upright);
}

// 32 random bits to [0, 1), in steps of 2^-24.
DEVICE float uniform_float(uint bits) { return (float)(bits >> 8) * 5.9604644775390625e-8f; }
