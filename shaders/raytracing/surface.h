// What materials know: the surface that a path hit, and where it goes on. One file a material in materials/, with
//     bool NAME_scatter(material, surface, key, dimension, out)  picks a direction; false ends the path, and a density of 0 then
//                                                                    tells that light may be reflected all the same
//     float4 NAME_evaluate(material, surface, direction)         reflected share times cosine, and its density in .w
// where `key` and `dimension` pick the path's random numbers (dimension .. dimension + 2 belong to the material).
#include "raytracing/sampler.h"

#define MIRRORED -1.0f  // the density of a direction that no light sample could have picked

typedef struct {
    float3 point, normal;  // the normal faces the incoming ray; both unit and in world space
    float3 incoming;       // unit direction of the ray that came
    bool front;            // whether the ray came from the side that the geometry's own normal points to
    int material;          // row of the materials
#if FIELDS
    float lift;            // how far from the surface a path goes on, beside rounding
#endif
#if TEXTURED
    float3 flat;           // the geometry's normal, on the ray's side, where `normal` is the one that shades
    float2 uv;             // on the material's pictures
    float4 tint;           // of the corners' colours
#endif
    bool aimed;            // whether light samples aim at it, if it shines
} Surface;

typedef struct {
    float3 direction;
    float3 weight;   // of the path from here on: reflected share times cosine over density
    float density;   // per unit of solid angle, or MIRRORED
    bool through;    // whether the path goes on behind the surface
} Scatter;

DEVICE float3 colour_of(const Material m) { return make_float3(m.color.x, m.color.y, m.color.z); }

// A direction about the normal with density cosine / pi.
DEVICE float3 cosine_direction(float3 normal, float first, float second, float *density) {
    float height = sqrt(1.0f - first), radius = sqrt(first);
    float2 around = cos_sin_2pi(second);
    *density = height * (1.0f / PI);
    return normalize_fma(local_to_world(normal, radius * around.x, radius * around.y, height));
}

DEVICE float3 reflected(float3 incoming, float3 normal) { return madd(normal, -2.0f * dot_fma(incoming, normal), incoming); }
