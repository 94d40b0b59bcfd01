// Lambertian reflector whose albedo alternates between `color` and `color2` in a 3D checkerboard: cubes of side
// `checker_size`, aligned with the world axes.

#include "raytracing/materials/diffuse.h"

// Returns the albedo at the world-space point p; the 1e-3 keeps surfaces on the faces of cubes from flickering between
// two cubes.
DEVICE float3 checker_color(const Material m, float3 p) {
    float scale = 1.0f / m.checker_size;
    int cell =
        (int)floor(fma(p.x, scale, 1e-3f)) + (int)floor(fma(p.y, scale, 1e-3f)) + (int)floor(fma(p.z, scale, 1e-3f));
    return (cell & 1) ? make_float3(m.color2.x, m.color2.y, m.color2.z) : base_color(m);
}

DEVICE bool checker_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    diffuse_sample(m, s, sampler, dimension, out);
    out->weight = checker_color(m, s.point);
    return true;
}

DEVICE float4 checker_eval_pdf(const Material m, const Surface s, float3 direction) {
    float pdf = diffuse_eval_pdf(m, s, direction).w;
    return with_w(checker_color(m, s.point) * pdf, pdf);
}

DEVICE float3 checker_albedo(const Material m, const Surface s) { return checker_color(m, s.point); }

REFLECTOR(checker, 0.0f, GUIDED_DIFFUSE, xyz(checker_eval_pdf(m, s, direction)))
