// Lambert's reflector whose albedo alternates between `color` and `other` in cubes of `size`.
#include "raytracing/materials/diffuse.h"
DEVICE float3 checker_colour(const Material m, float3 p) {
    float scale = 1.0f / m.size;
    int cell = (int)floor(fma(p.x, scale, 1e-3f)) + (int)floor(fma(p.y, scale, 1e-3f)) + (int)floor(fma(p.z, scale, 1e-3f));
    return (cell & 1) ? make_float3(m.other.x, m.other.y, m.other.z) : colour_of(m);
}

DEVICE bool checker_scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) {
    diffuse_scatter(m, s, key, dimension, out);
    out->weight = checker_colour(m, s.point);
    return true;
}

DEVICE float4 checker_evaluate(const Material m, const Surface s, float3 direction) {
    float density = diffuse_evaluate(m, s, direction).w;
    return with_w(checker_colour(m, s.point) * density, density);
}
