// Distance fields as geometry, one file a field in distance_fields/ with
//     float NAME_distance(field, point)   no more than the distance to the surface, in the field's own space
// found by sphere tracing (J. Hart 1996) within a ball about the field's origin.
#include "common/simd.h"
#include "common/reproducible_math.h"
#include "bvh/geometry.h"

#define FIELD_STEPS 512
#define FIELD_BASE 0x40000000  // hits on field k have this "primitive" and k more

// 96 bytes: the way from the world into the field's space | parameters | kind, material, iterations, power |
// world lengths of a unit of that space, radius of the ball, distance that counts as a hit, nothing
typedef struct {
    float4 x, y, z, parameters;
    int kind, material, iterations, power;
    float scale, radius, detail, spare;
} Field;

DEVICE float field_distance(const Field f, float3 p);

DEVICE float3 into_field(const Field f, float3 p, float w) {
    return make_float3(fma(f.x.w, w, dot_fma(xyz(f.x), p)), fma(f.y.w, w, dot_fma(xyz(f.y), p)), fma(f.z.w, w, dot_fma(xyz(f.z), p)));
}

// Where a ray of unit direction meets the field before `longest`; INFINITE when it does not. A ray that starts within `detail`
// of the surface has just left it, and is let away first.
DEVICE float meet_field(const Field f, float3 origin, float3 direction, float longest) {
    float3 o = into_field(f, origin, 1.0f), d = into_field(f, direction, 0.0f);
    float a = dot_fma(d, d), nearest = -dot_fma(o, d) / a;
    float3 rest = madd(d, nearest, o);
    float discriminant = fma(f.radius, f.radius, -dot_fma(rest, rest));
    if (!(discriminant > 0.0f)) return INFINITE;
    float reach = sqrt(discriminant / a), t = larger(nearest - reach, 0.0f), last = smaller(nearest + reach, longest);
    bool away = t > 0.0f;
    for (int step = 0; step < FIELD_STEPS && t <= last; step++) {
        float distance = fabs(field_distance(f, madd(d, t, o)));
        if (distance < f.detail && away) return t;
        away = away || distance >= f.detail || step > 8;
        t += larger(distance, 0.5f * f.detail) * f.scale;
    }
    return INFINITE;
}

// The gradient at four corners of a tetrahedron, in the world, unit.
DEVICE float3 field_normal(const Field f, float3 point) {
    float3 p = into_field(f, point, 1.0f);
    float h = larger(f.detail, 5.0e-5f);
    float a = field_distance(f, make_float3(p.x + h, p.y - h, p.z - h)), b = field_distance(f, make_float3(p.x - h, p.y - h, p.z + h));
    float c = field_distance(f, make_float3(p.x - h, p.y + h, p.z - h)), e = field_distance(f, make_float3(p.x + h, p.y + h, p.z + h));
    float3 g = make_float3(a - b - c + e, c - a - b + e, b - a - c + e);
    float3 n = madd(xyz(f.z), g.z, madd(xyz(f.y), g.y, xyz(f.x) * g.x));
    return dot_fma(n, n) > 0.0f ? normalize_fma(n) : normalize_fma(xyz(f.z));
}
