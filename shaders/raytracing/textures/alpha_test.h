// The alpha test, inside the traversal: hits that fail are ignored, so a ray passes a cutout at the cost of a texture
// lookup. This file defines the hit filter (PASSES_FILTER) that bvh/traverse_bvh2.h and the traversals built on it call
// for every hit that would count. Included by scene.h in scenes with ALPHA_TEST; other scenes compile no filter.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): SPHERES, SPHERE_TEXTURES.
#include "raytracing/textures/texture.h"

#define HIT_FILTER 1
// `instance_material` replaces the materials of an instance's primitives; -1 keeps them.
#define FILTER_PARAMS , TEXTURE_PARAMS, int instance_material
#define FILTER_ARGS_OF(material) , TEXTURE_ARGS, material
#define FILTER_ARGS FILTER_ARGS_OF(instance_material)
#define PASSES_FILTER(p, origin, direction, t_max, hit) accepts_hit(p, origin, direction, t_max, hit FILTER_ARGS)
// False if all hits of the primitive count, so that packets skip the test (bvh/packet.h).
#define MAY_FAIL_FILTER(p) (filter_material(p FILTER_ARGS).alpha_mode != ALPHA_OPAQUE)

// Returns the texture slots of the primitive's material.
DEVICE MaterialTextures filter_material(const Primitive p FILTER_PARAMS) {
    return material_textures[instance_material >= 0 ? instance_material : as_int(p.edge1.w)];
}

// True if the hit counts. ALPHA_MASK compares alpha with the cutoff. ALPHA_BLEND accepts the hit with probability alpha
// (stochastic transparency); the random number is a hash of the ray and the hit, so all schedules and orders of
// traversal agree.
DEVICE bool passes_alpha_test(const Primitive p, float3 origin, float3 direction, const Hit hit FILTER_PARAMS) {
    MaterialTextures tex = filter_material(p FILTER_ARGS);
    if (tex.alpha_mode == ALPHA_OPAQUE) return true;
    uint prim_id = as_uint(p.v0.w);
    Texcoords texcoords = texcoords_at(attributes, prim_id, hit.u, hit.v);
    if (SPHERE_TEXTURES && is_globe(attributes, p))
        texcoords = sphere_texcoords(normalize_fma(madd(direction, hit.t, origin) - xyz(p.v0)));
    float alpha = alpha_at(TEXTURE_ARGS, tex, texcoords, interpolated_color(attributes, prim_id, hit.u, hit.v).w);
    if (tex.alpha_mode == ALPHA_MASK) return alpha >= tex.alpha_cutoff;
    uint key = random_key(as_uint(direction.x) ^ as_uint(origin.x), as_uint(direction.y) ^ as_uint(origin.y),
                          as_uint(direction.z) ^ as_uint(origin.z));
    return uniform_float(random_bits(key, prim_id ^ as_uint(hit.t))) < alpha;
}

// True if a hit on a primitive counts. If the near hit of a sphere fails, `hit` becomes the hit on the far side, which
// is tested in turn.
DEVICE bool accepts_hit(const Primitive p, float3 origin, float3 direction, float t_max, Hit *hit FILTER_PARAMS) {
    if (passes_alpha_test(p, origin, direction, *hit FILTER_ARGS)) return true;
    if (SPHERES && p.edge2.w > 0.0f) {
        float t_middle = -dot_fma(origin - xyz(p.v0), direction) / dot_fma(direction, direction);
        float t_far = fma(2.0f, t_middle, -hit->t);
        if (!(t_far > hit->t && t_far <= t_max)) return false;
        hit->t = t_far;
        return passes_alpha_test(p, origin, direction, *hit FILTER_ARGS);
    }
    return false;
}
