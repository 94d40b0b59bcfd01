// A perfect mirror of reflectance `color`: one delta lobe.
#include "raytracing/surface.h"

// @mirrors

DEVICE bool mirror_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    out->direction = normalize_fma(reflect(s.ray_direction, s.normal));
    out->weight = base_color(m);
    out->pdf = DELTA_PDF;
    out->transmits = false;
    return true;
}

DEVICE float4 mirror_eval_pdf(const Material m, const Surface s, float3 direction) {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

DEVICE float3 mirror_albedo(const Material m, const Surface s) { return base_color(m); }

DEVICE bool mirror_is_delta(const Material m, const Surface s) { return true; }
DEVICE float mirror_mirror_fraction(const Material m, const Surface s) { return 1.0f; }
DEVICE float mirror_guided_fraction(const Material m) { return 0.0f; }
OPAQUE(mirror)
NO_DIFFUSE(mirror)
