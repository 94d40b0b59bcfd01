// Distance fields as geometry, for scene.h: rays are sphere traced (J. Hart 1996) within the field's bounding sphere.
// Each field is one file in distance_fields/ that defines
//     float NAME_distance(field, point)   a lower bound of the distance to the surface, in field space
// renderer/raytracing/kernels.py generates field_distance, the dispatch over them. Field space is the fractal's own
// coordinate system, which a DistanceField scales, rotates and moves into the world.
#include "common/simd.h"
#include "common/reproducible_math.h"
#include "bvh/geometry.h"

#define MAX_SPHERE_TRACE_STEPS 512

// A distance field of the scene, 96 bytes: FIELD of renderer/raytracing/distance_fields.py.
typedef struct {
    float4 x, y, z;     // rows of the 3 x 4 matrix from world to field space
    float4 parameters;  // c of the Julia set
    int kind, material, iterations, power;
    float scale;   // world length of a unit of field space
    float radius;  // radius of the bounding sphere about the origin, in field space
    float detail;  // the largest distance that counts as a hit, in field space
    float spare;
} DistanceField;

DEVICE float field_distance(const DistanceField f, float3 p);

// Transforms a point (w = 1) or vector (w = 0) from world to field space.
DEVICE float3 to_field_space(const DistanceField f, float3 p, float w) { return transform_rows(f.x, f.y, f.z, p, w); }

// Returns the distance at which a world-space ray of unit direction hits the field before t_max, or FLT_MAX. A ray that
// starts within `detail` of the surface has just left it, so hits count only once it has been farther away, or after
// ten steps, so that a ray that does not get away ends at the surface.
DEVICE float sphere_trace(const DistanceField f, float3 origin, float3 direction, float t_max) {
    float3 o = to_field_space(f, origin, 1.0f), d = to_field_space(f, direction, 0.0f);
    float a = dot_fma(d, d), t_center = -dot_fma(o, d) / a;
    float3 perpendicular = madd(d, t_center, o);
    float discriminant = fma(f.radius, f.radius, -dot_fma(perpendicular, perpendicular));
    if (!(discriminant > 0.0f)) return FLT_MAX;
    float half_chord = sqrt(discriminant / a), t = max_nnan(t_center - half_chord, 0.0f);
    float t_end = min_nnan(t_center + half_chord, t_max);
    bool left_surface = t > 0.0f;
    for (int step = 0; step < MAX_SPHERE_TRACE_STEPS && t <= t_end; step++) {
        float distance = fabs(field_distance(f, madd(d, t, o)));
        if (distance < f.detail && left_surface) return t;
        left_surface = left_surface || distance >= f.detail || step > 8;
        t += max_nnan(distance, 0.5f * f.detail) * f.scale;
    }
    return FLT_MAX;
}

// Returns the unit normal in world space at a point: the gradient by differences at four corners of a tetrahedron.
DEVICE float3 field_normal(const DistanceField f, float3 point) {
    float3 p = to_field_space(f, point, 1.0f);
    float h = max_nnan(f.detail, 5.0e-5f);
    float a = field_distance(f, make_float3(p.x + h, p.y - h, p.z - h));
    float b = field_distance(f, make_float3(p.x - h, p.y - h, p.z + h));
    float c = field_distance(f, make_float3(p.x - h, p.y + h, p.z - h));
    float d = field_distance(f, make_float3(p.x + h, p.y + h, p.z + h));
    float3 g = make_float3(a - b - c + d, c - a - b + d, b - a - c + d);
    float3 n = madd(xyz(f.z), g.z, madd(xyz(f.y), g.y, xyz(f.x) * g.x));
    return dot_fma(n, n) > 0.0f ? normalize_fma(n) : normalize_fma(xyz(f.z));  // any direction where g is 0
}
