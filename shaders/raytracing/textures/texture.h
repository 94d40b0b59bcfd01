// Textures and the vertex attributes of triangles, in scenes that have either: lookups for textured_surface.h, which
// builds the surface of a hit, and for alpha_test.h. A slot is one use of a texture by a material. Four buffers hold
// them; renderer/raytracing/textures.py writes them:
//     attributes         FLOAT4S_PER_PRIMITIVE float4 a primitive, by its id. Words 0-11: for each corner, its normal,
//                        (0, 0, 0) for none, and u; 12-14: v of the corners. If there are more than four float4, words
//                        15, 22 and 23 are the corners' tangents; 16-21: the corners' colors, in two words of 16-bit
//                        channels each; from 24 on: u and v of the corners in each further set of texture coordinates
//                        (UV_SETS in all). A tangent is 0 for none, or an octahedral unit vector (Q. Meyer et al.
//                        2010) of 15 bits a coordinate, with bit 30 set if the bitangent is flipped, and bit 31 set.
//     material_textures  the texture slots of each material: indices of `textures`, -1 for none
//     textures           a record for each slot: where it begins in `texels`, width, height, and bits: 0-1 wrap of u,
//                        2-3 wrap of v, 4 linear filter, 5-6 set of texture coordinates, 7 has a transform, 8 floats
//     texels             256 floats: the sRGB curve; with TEXTURE_TRANSFORMS, the 2x3 matrices of the slots, by which
//                        (u, v, 1) is multiplied; then 8 bits each of red, green, blue, alpha, or a linear float each
// renderer/raytracing/textures.py generates the struct MaterialTextures. It has a field for each kind of texture, such
// as `roughness`, that any material of the scene uses; HAS_SLOT_roughness is then 1, else 0.

#define ALPHA_OPAQUE 0
#define ALPHA_MASK 1  // passes where alpha is at least alpha_cutoff
#define ALPHA_BLEND 2  // passes with probability alpha
#define WRAP_REPEAT 0
#define WRAP_CLAMP 1
#define WRAP_MIRROR 2
#define LINEAR_FILTER 16
#define HAS_TRANSFORM 128
#define FLOAT_TEXELS 256
#define NO_SLOT -1  // stands for a slot with the first set of texture coordinates, untransformed
// WITH_SLOT(name, statements) expands to the statements if MaterialTextures has the field `name`, else nothing.
#define WITH_SLOT_0(statements)
#define WITH_SLOT_1(statements) statements
#define WITH_SLOT(slot, statements) JOIN(WITH_SLOT_, HAS_SLOT_##slot)(statements)

#define TEXTURE_PARAMS                                                                                   \
    GLOBAL const float4 *RESTRICT attributes, GLOBAL const MaterialTextures *RESTRICT material_textures, \
        GLOBAL const int4 *RESTRICT textures, GLOBAL const uint *RESTRICT texels
#define TEXTURE_ARGS attributes, material_textures, textures, texels

#include "raytracing/textures/surface_textures.h"

// Returns the filtered texture of a slot that the material has; `srgb` converts colors to linear light.
DEVICE float4 sample_texture(GLOBAL const int4 *textures, GLOBAL const uint *texels, int slot,
                             const Texcoords texcoords, bool srgb) {
    return texture_or_white(textures, texels, slot, true, texcoords, srgb);
}

// True if a primitive is a sphere whose texture coordinates follow its normal, as on a globe. Spheres that draw a
// model's points have given texture coordinates instead; they are marked by a positive x of the second corner's normal,
// which is otherwise unused on spheres.
DEVICE bool is_globe(GLOBAL const float4 *attributes, const Primitive p) {
    return p.edge2.w > 0.0f && !(attributes[as_uint(p.v0.w) * FLOAT4S_PER_PRIMITIVE + 1u].x > 0.0f);
}

// Returns the texture coordinates of a sphere at its unit normal: u runs eastwards about y, 0.5 at +z; v from 0 at +y
// to 1 at -y.
DEVICE Texcoords sphere_texcoords(float3 normal) {
    Texcoords out;
    float2 uv = make_float2(fma(angle_of(normal.x, normal.z), 0.5f / PI, 0.5f),
                            angle_of(sqrt(fma(normal.x, normal.x, normal.z * normal.z)), normal.y) * (1.0f / PI));
    for (int set = 0; set < UV_SETS; set++) out.sets[set] = uv;
    return out;
}

// Returns the alpha of a surface point, which the alpha mode then compares or uses as a probability.
DEVICE float alpha_at(TEXTURE_PARAMS, const MaterialTextures tex, const Texcoords texcoords, float vertex_alpha) {
    float alpha = tex.alpha_factor * vertex_alpha;
    if (tex.base_color >= 0) alpha *= sample_texture(textures, texels, tex.base_color, texcoords, true).w;
    WITH_SLOT(alpha, if (tex.alpha >= 0) alpha *= sample_texture(textures, texels, tex.alpha, texcoords, false).w;)
    return alpha;
}
