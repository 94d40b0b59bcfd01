// The interface of materials: Surface, the surface point of a hit; BsdfSample, a sampled direction; and the functions
// that every material defines. Included by every file of materials/, by microfacet.h and by scene.h.
//
// A material is one file, materials/NAME.h. The comment at its top is its page of the reference. It defines the
// functions below for a material m (its record, multiplied by its textures) at a surface s;
// renderer/raytracing/kernels.py generates the dispatch over all materials (material_sample calls NAME_sample, and so
// on), so a file that lacks a function does not compile. Directions are unit, in world space, and point away from the
// surface.
//     bool NAME_sample(m, s, sampler, dimension, out)
//         Samples a direction: fills *out. Returns false if the sample failed, which ends the path. It may use the
//         sampler's dimensions `dimension` to `dimension` + 2.
//     float4 NAME_eval_pdf(m, s, direction)
//         xyz: BSDF times |cos(theta)| for light from `direction`. w: the pdf per solid angle with which NAME_sample
//         samples it. All 0 for delta lobes.
//     float3 NAME_diffuse_part(m, s, direction)
//         The diffuse lobes' part, transmission and sheen included, of the xyz of NAME_eval_pdf (light_passes.h).
//     float3 NAME_albedo(m, s)
//         The color of the surface in the `albedo` layer, which guides the denoiser.
//     bool NAME_is_delta(m, s)
//         True if the BSDF has only delta lobes or is black. Next-event estimation is skipped there.
//     float NAME_mirror_fraction(m, s)
//         The fraction, 0 to 1, of the reflected light in mirror-like lobes. The shading normal is bent in proportion,
//         so that the mirrored ray stays above the surface (bend_normals.h).
//     float NAME_guided_fraction(m)
//         The probability with which path guiding, not the BSDF, samples the direction (lights/guide.h): below 1, and 0
//         for lobes so narrow that the BSDF alone samples better.
//     bool NAME_is_lit_from_behind(m)
//         True if most light in the guided directions arrives on the other side of the surface. Path guiding then uses
//         the photons of the other side.
//     bool NAME_has_medium(m)
//         True if a closed surface encloses another medium, with index of refraction m.ior, extinction m.attenuation
//         and albedo m.color2 of single scattering.
//     float NAME_dispersion(m)
//         20 over the Abbe number of the enclosed medium; 0 for no dispersion. The BSDF multiplies transmitted light by
//         s.spectral.
// The macros below define several of them at once. OPAQUE(NAME): the last three, for a surface that transmits no light.
// REFLECTOR(NAME, mirror_fraction, guided_fraction, diffuse_part): all but the first two and NAME_albedo, for a
// reflector without delta lobes. NO_DIFFUSE(NAME): NAME_diffuse_part of a surface without diffuse lobes.
// NO_REFLECTION(NAME): all, for a black surface whose albedo layer shows `color`.
//
// The comment lines that begin with @ declare the material to the host (renderer/raytracing/material_files.py):
//     @optional                       compiled only for scenes that use the material, with the macro NAME set to 1
//     @constant MACRO where FIELDS    sets a macro to 1 in scenes where a material of this file has these fields set;
//                                     without `where`, in scenes that use the material
//     @maps FIELDS                    texture maps besides color, normal, bump, alpha and emission; `none`: emission
//                                     alone. Every material with an alpha map has holes where alpha fails its test.
//     @transmits where FIELDS         materials that transmit most light: exports then propose path guiding
//     @mirrors where FIELDS           materials that, where smooth, throw caustics: pixels take more samples before
//                                     they may rest (sample_floor.py)
//     @simd8 KIND                     CPUs shade eight paths at once by the code of packets/shade_simd8.h for KIND:
//                                     `diffuse`, `metallic` or `catcher`. Without it they shade path by path.
//     @unlit                          the surface shows `color` as radiance on both sides
//     @shadow_catcher                 the surface shows the background and receives shadows (catch_shadows.h)
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): CLEARCOAT, TEXTURED, UV_SETS.
#include "raytracing/frame.h"
#include "raytracing/sampler.h"

#define DELTA_PDF -1.0f  // pdf of a direction that next-event estimation cannot sample: delta BSDFs and camera rays

// The texture coordinates of a surface point, one pair (u, v) for each of the model's sets (glTF TEXCOORD_n).
typedef struct {
    float2 sets[UV_SETS];
} Texcoords;

// The surface point of a hit (surface_at of scene.h).
typedef struct {
    float3 point, normal;  // in world space; `normal` is the unit shading normal on the ray's side
    float3 ray_direction;  // unit direction of the ray that hit the surface
    bool front_face;  // true if the ray arrived on the side that the geometric normal points to
    int material;  // index into `materials`
    bool in_light_table;  // true if next-event estimation can sample this emitter: a hit then needs a MIS weight
    // a field below is set only in kernels compiled with the macro in its brackets
    float offset;  // [DISTANCE_FIELDS] of ray origins along the normal, in world units, added to the rounding offset
    float3 geometric_normal;  // [TEXTURED] on the ray's side; unit
    Texcoords texcoords;  // [TEXTURED]
    float4 vertex_color;  // [TEXTURED]
    float3 clearcoat_normal;  // [TEXTURED and CLEARCOAT] as `normal`, but bent by the clearcoat's normal map alone
    float3 tangent;  // [ANISOTROPY] direction in which highlights stretch; neither unit nor perpendicular to `normal`
    float bitangent_sign;  // [ANISOTROPY] bitangent = bitangent_sign * cross(normal, tangent)
    float3 spectral;  // [DISPERSION] color of the path's wavelength; white once the path is of one wavelength
    GLOBAL const float *guide;  // [GUIDING] the lobes fitted to photons near the point (lights/guide.h)
    float guided;  // [GUIDING] the probability with which a direction is sampled from the lobes
} Surface;

// What the shading normals of a textured surface point need of its triangle (textures/textured_surface.h), in the space
// of the shape, then in world space. vertex_normal and tangent are interpolated, not unit; (0, 0, 0) for none.
typedef struct {
    uint prim_id;
    float3 geometric_normal, edge1, edge2, vertex_normal, tangent;
    bool flip_bitangent;  // of the vertex tangent
} TangentFrame;

// A direction sampled from a BSDF: unit, in world space, away from the surface.
typedef struct {
    float3 direction;
    float3 weight;  // BSDF times |cos(theta)| over pdf
    float pdf;  // density of the BSDF per solid angle, or DELTA_PDF
    bool transmits;  // true if the path continues on the other side of the surface
    float3 unguided;  // [GUIDING] `weight` if the BSDF alone had sampled the direction
} BsdfSample;

DEVICE float3 base_color(const Material m) { return make_float3(m.color.x, m.color.y, m.color.z); }

// Values of NAME_guided_fraction by kind of lobe. At 1 the BSDF would never be sampled; on diffuse surfaces, values
// from 0.5 to 0.75 differ little.
#define GUIDED_DIFFUSE 0.66f
#define GUIDED_GLOSSY 0.5f
#define GUIDED_GLASS 0.15f
#define GUIDED_ROUGHNESS 0.4f  // the least roughness of glossy lobes that photons guide

#define OPAQUE(name)                                                          \
    DEVICE bool name##_is_lit_from_behind(const Material m) { return false; } \
    DEVICE bool name##_has_medium(const Material m) { return false; }         \
    DEVICE float name##_dispersion(const Material m) { return 0.0f; }

#define NO_DIFFUSE(name) \
    DEVICE float3 name##_diffuse_part(const Material m, const Surface s, float3 direction) { return splat3(0.0f); }

#define REFLECTOR(name, mirror_fraction, guided_fraction, diffuse_part)                                             \
    DEVICE float3 name##_diffuse_part(const Material m, const Surface s, float3 direction) { return diffuse_part; } \
    DEVICE bool name##_is_delta(const Material m, const Surface s) { return false; }                                \
    DEVICE float name##_mirror_fraction(const Material m, const Surface s) { return mirror_fraction; }              \
    DEVICE float name##_guided_fraction(const Material m) { return guided_fraction; }                               \
    OPAQUE(name)

#define NO_REFLECTION(name)                                                                                          \
    DEVICE bool name##_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) { \
        return false;                                                                                                \
    }                                                                                                                \
    DEVICE float4 name##_eval_pdf(const Material m, const Surface s, float3 direction) {                             \
        return make_float4(0.0f, 0.0f, 0.0f, 0.0f);                                                                  \
    }                                                                                                                \
    DEVICE float3 name##_albedo(const Material m, const Surface s) { return base_color(m); }                         \
    DEVICE bool name##_is_delta(const Material m, const Surface s) { return true; }                                  \
    DEVICE float name##_mirror_fraction(const Material m, const Surface s) { return 0.0f; }                          \
    DEVICE float name##_guided_fraction(const Material m) { return 0.0f; }                                           \
    NO_DIFFUSE(name)                                                                                                 \
    OPAQUE(name)

// Returns the unit shading normal of the clearcoat, which the base's normal map does not bend.
DEVICE float3 clearcoat_normal_of(const Surface s) { return TEXTURED && CLEARCOAT ? s.clearcoat_normal : s.normal; }
