// Bends shading normals towards the geometric normal, so that mirrored rays stay above the geometric surface.
// raytrace.cu and lights/photons.cu call bend_normals for each hit, packets/shade_simd8.h bent_normal. Normals and
// directions are unit, in world space. Compiled for one lane (`real` is float, `mask` bool) and, on CPUs, again for
// eight (float8, int8; packets/lanes8.h).
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): CLEARCOAT, TEXTURED.
#include "raytracing/scene.h"

#if TEXTURED
// Returns the normal bent until the mirrored ray is above the geometric surface (A. Keller et al. 2017, "The Iray Light
// Transport Simulation and Rendering System", appendix A). Without it the rims of smooth metals would be black.
DEVICE real3 normal_that_reflects(real3 normal, real3 geometric_normal, real3 ray_direction) {
    real3 mirrored = reflect(ray_direction, normal);
    real height = dot_fma(mirrored, geometric_normal);
    real limit = min_nnan(-0.5f * dot_fma(ray_direction, geometric_normal), 0.01f);
    return select3(height >= limit, normal,
                   normalize_fma(sub3(normalize_fma(madd(geometric_normal, limit - height, mirrored)), ray_direction)));
}

// Returns the normal bent by the fraction `weight`, 0 to 1, of the way to normal_that_reflects.
DEVICE real3 bent_normal(real3 normal, real3 geometric_normal, real3 ray_direction, real weight) {
    if (!ANY_LANE(weight > 0.0f)) return normal;
    real3 full_bend = sub3(normal_that_reflects(normal, geometric_normal, ray_direction), normal);
    return select3(weight > 0.0f, normalize_fma(madd(full_bend, weight, normal)), normal);
}
#endif

#if LANES == 1
// Bends the shading normals of s by the fraction of reflected light in mirror-like lobes, so that a diffuse surface
// keeps its normal except at rims. The clearcoat's normal is bent fully. Without TEXTURED there are no shading normals.
DEVICE void bend_normals(Surface *s, const Material m) {
#if TEXTURED
    if (CLEARCOAT)
        s->clearcoat_normal = normal_that_reflects(s->clearcoat_normal, s->geometric_normal, s->ray_direction);
    float weight = material_mirror_fraction(m, *s);
    s->normal = bent_normal(s->normal, s->geometric_normal, s->ray_direction, weight);
#endif
}
#endif
