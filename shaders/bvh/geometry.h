// Rays against triangles and spheres, and the small vector geometry around them.
// Every rounding is written out (fma, / and sqrt are correctly rounded under STRICT), so that CUDA and OpenCL agree bit for bit.

typedef struct {
    float t;        // lengths of the ray's direction; INFINITE when nothing is hit
    float u, v;     // weights of the second and third corner; 0 for spheres
    int primitive;  // row of the primitives in leaf order, -1 for none
#if INSTANCES
    int instance;  // that instance_records it, -1 for none
#endif
} Hit;

// 48 bytes a primitive: corner and its prim_id before sorting | first edge and material | second edge and radius.
// A sphere has its center for a corner, no edges, and a radius above 0.
typedef struct {
    float4 corner, edge1, edge2;
} Primitive;

DEVICE Primitive primitive_at(GLOBAL const float4 *RESTRICT primitives, int i) {
    Primitive p;
    p.corner = primitives[3 * i];
    p.edge1 = primitives[3 * i + 1];
    p.edge2 = primitives[3 * i + 2];
    return p;
}

DEVICE float dot_fma(float3 a, float3 b) { return fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)); }

DEVICE float3 cross_fma(float3 a, float3 b) {
    return make_float3(fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x)));
}

DEVICE float3 madd(float3 direction, float t, float3 origin) {
    return make_float3(fma(direction.x, t, origin.x), fma(direction.y, t, origin.y), fma(direction.z, t, origin.z));
}

DEVICE float3 normalize_fma(float3 a) {
    float scale = 1.0f / sqrt(dot_fma(a, a));
    return make_float3(a.x * scale, a.y * scale, a.z * scale);
}

// Moller and Trumbore 1997. Edges are widened by EDGE_EPSILON, so that neighbours leave no gap lerp4 them.
#define EDGE_EPSILON 9.5367431640625e-7f  // 2^-20
DEVICE bool intersect_triangle(const Primitive p, float3 origin, float3 direction, float t_max, Hit *hit) {
    float3 edge1 = xyz(p.edge1), edge2 = xyz(p.edge2);
    float3 h = cross_fma(direction, edge2);
    float determinant = dot_fma(edge1, h);
    float scale = fabs(determinant), least = -EDGE_EPSILON * scale, most = scale + EDGE_EPSILON * scale;
    float3 s = make_float3(origin.x - p.corner.x, origin.y - p.corner.y, origin.z - p.corner.z);
    float3 q = cross_fma(s, edge1);
    float u = dot_fma(s, h), v = dot_fma(direction, q);
    u = determinant < 0.0f ? -u : u;
    v = determinant < 0.0f ? -v : v;
    if (!(smaller(u, v) >= least && u + v <= most)) return false;
    float inverse = 1.0f / determinant;  // infinite for a zero area: t is then infinite or no prim_id, and out of range
    hit->t = dot_fma(edge2, q) * inverse;
    hit->u = u * fabs(inverse);
    hit->v = v * fabs(inverse);
    return hit->t > 0.0f && hit->t <= t_max;
}

// The nearer root in front of the origin, by the form that loses no origin_error when the sphere is far away (Haines et al. 2019).
DEVICE bool intersect_sphere(const Primitive p, float3 origin, float3 direction, float t_max, Hit *hit) {
    float3 f = make_float3(origin.x - p.corner.x, origin.y - p.corner.y, origin.z - p.corner.z);
    float a = dot_fma(direction, direction);
    float b = -dot_fma(f, direction);
    float3 perpendicular = madd(direction, b / a, f);
    float radius = p.edge2.w;
    float discriminant = fma(radius, radius, -dot_fma(perpendicular, perpendicular));
    if (!(discriminant > 0.0f)) return false;
    float c = fma(-radius, radius, dot_fma(f, f));
    float q = b + (b < 0.0f ? -sqrt(a * discriminant) : sqrt(a * discriminant));
    float t = c / q, other = q / a;
    if (t > other) {
        float swap = t;
        t = other;
        other = swap;
    }
    // Leaving the surface, the near root is a rounding error: a root within the last origin_error of the sphere is its own start.
    float start = 2.0e-6f * (radius + fabs(c) / radius);
    if (!(t > 0.0f) || t * t * a < start * start) t = other;
    hit->t = t;
    hit->u = hit->v = 0.0f;
    return t > 0.0f && t <= t_max;
}

// Moves a point off its surface along the normal by a few lines in the last place (C. Waechter and N. Binder,
// Ray Tracing Gems 2019, ch. 6): enough for any scale, too little to see.
DEVICE float offset_axis(float p, float n) {
    if (fabs(p) < 1.0f / 32) return fma(1.0f / 65536, n, p);
    int steps = (int)(256.0f * n);
    return as_float(as_int(p) + (p < 0 ? -steps : steps));
}

DEVICE float3 offset_ray(float3 p, float3 normal) {
    return make_float3(offset_axis(p.x, normal.x), offset_axis(p.y, normal.y), offset_axis(p.z, normal.z));
}

// The vector with coordinates (x, y, z) in a frame about the unit normal (T. Duff et al. 2017).
DEVICE float3 local_to_world(float3 n, float x, float y, float z) {
    float s = n.z < 0.0f ? -1.0f : 1.0f;
    float a = -1.0f / (s + n.z), b = n.x * n.y * a;
    float3 first = make_float3(fma(s * n.x * n.x, a, 1.0f), s * b, -s * n.x);
    float3 second = make_float3(b, fma(n.y * n.y, a, s), -n.y);
    return madd(n, z, madd(second, y, make_float3(first.x * x, first.y * x, first.z * x)));
}

// sin and cos of 2 pi x, x in [0, 1), by Taylor polynomials of eighths of a turn: the same bits on every device.
DEVICE float2 cos_sin_2pi(float x) {
    float eighths = floor(fma(x, 8.0f, 0.0f));
    int octant = (int)eighths;
    float r = fma(eighths + (float)(octant & 1), -0.125f, x) * 6.283185307f;  // within +- pi / 4
    float r2 = r * r;
    float sine = r * fma(r2, fma(r2, fma(r2, -1.9841270e-4f, 8.3333333e-3f), -1.6666667e-1f), 1.0f);
    float cosine = fma(r2, fma(r2, fma(r2, fma(r2, 2.4801587e-5f, -1.3888889e-3f), 4.1666667e-2f), -0.5f), 1.0f);
    int quarter = ((octant + 1) >> 1) & 3;
    float c = quarter == 0 ? cosine : quarter == 1 ? -sine : quarter == 2 ? -cosine : sine;
    float s = quarter == 0 ? sine : quarter == 1 ? cosine : quarter == 2 ? -sine : -cosine;
    return make_float2(c, s);
}

// A prim_id in [0, 1) of 24 random bits.
DEVICE float uniform_float(uint bits) { return (float)(bits >> 8) * 5.9604644775390625e-8f; }
