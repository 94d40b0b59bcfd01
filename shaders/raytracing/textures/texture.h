// Textures and the vertex attributes of triangles, for scene.h in scenes with textures or vertex attributes. A slot is
// one use of a texture by a material. Four buffers hold them; renderer/raytracing/textures.py writes them:
//     attributes         FLOAT4S_PER_PRIMITIVE float4 a primitive, by its id. Words 0-11: for each corner, its normal,
//                        (0, 0, 0) for none, and u; 12-14: v of the corners. If there are more than four float4, words
//                        15, 22 and 23 are the corners' tangents; 16-21: the corners' colors, in two words of 16-bit
//                        channels each; from 24 on: u and v of the corners in each further set of texture coordinates
//                        (UV_SETS in all). A tangent is 0 for none, or an octahedral unit vector (Q.
//                        Meyer et al. 2010) of 15 bits a coordinate, with bit 30 set if the bitangent is flipped, and
//                        bit 31 set.
//     material_textures  the texture slots of each material: indices of `textures`, -1 for none
//     textures           a record for each slot: where it begins in `texels`, width, height, and bits: 0-1 wrap of u,
//                        2-3 wrap of v, 4 linear filter, 5-6 set of texture coordinates, 7 has a transform, 8 floats
//     texels             256 floats: the sRGB curve; with TEXTURE_TRANSFORMS, the 2x3 matrices of the slots, by which
//                        (u, v, 1) is multiplied; then 8 bits each of red, green, blue, alpha, or a linear float each
// renderer/raytracing/textures.py generates the struct MaterialTextures. It has a field for each kind of texture, such
// as `roughness`, that any material of the scene uses; HAS_SLOT_roughness is then 1, else 0.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): PRINCIPLED, SPHERE_TEXTURES.

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

#if SPHERE_TEXTURES
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
#endif

// Returns the direction, not unit, in which the slot's u grows along a triangle with these edges. *flip_bitangent
// becomes true if v grows against the cross product of the normal and this direction, as for textures whose v runs
// downwards.
DEVICE float3 tangent_along_u(GLOBAL const float4 *attributes, GLOBAL const int4 *textures, GLOBAL const uint *texels,
                              int slot, uint prim_id, float3 edge1, float3 edge2, bool *flip_bitangent) {
    GLOBAL const float4 *a = attributes + FLOAT4S_PER_PRIMITIVE * (size_t)prim_id;
    float4 vs = a[3];
    float2 side1 = make_float2(a[1].w - a[0].w, vs.y - vs.x), side2 = make_float2(a[2].w - a[0].w, vs.z - vs.x);
#if UV_SETS > 1
    int set = slot < 0 ? 0 : textures[slot].w >> 5 & 3;
    if (set > 0) {
        float2 first = corner_texcoords(attributes, prim_id, set, 0);
        side1 = corner_texcoords(attributes, prim_id, set, 1) - first;
        side2 = corner_texcoords(attributes, prim_id, set, 2) - first;
    }
#endif
#if TEXTURE_TRANSFORMS
    side1 = slot < 0 ? side1 : transform_uv(texels, slot, textures[slot].w, side1, 0.0f);
    side2 = slot < 0 ? side2 : transform_uv(texels, slot, textures[slot].w, side2, 0.0f);
#endif
    float area = fma(side1.x, side2.y, -(side2.x * side1.y));
    *flip_bitangent = area > 0.0f;
    return (edge1 * side2.y + edge2 * -side1.y) * (area < 0.0f ? -1.0f : 1.0f);
}

// Returns the unit vector that an octahedral word encodes; (0, 0, 0) for the word 0.
DEVICE float3 decode_octahedral(uint word) {
    float x = fma((float)(word & 0x7fffu), 2.0f / 32767.0f, -1.0f),
          y = fma((float)(word >> 15 & 0x7fffu), 2.0f / 32767.0f, -1.0f);
    float z = 1.0f - fabs(x) - fabs(y), fold = max_nnan(-z, 0.0f);
    if (word == 0) return make_float3(0.0f, 0.0f, 0.0f);
    return normalize_fma(make_float3(x + (x < 0.0f ? fold : -fold), y + (y < 0.0f ? fold : -fold), z));
}

// Returns the interpolated vertex tangent, not unit; (0, 0, 0) for none. *flip_bitangent becomes the flag of its
// bitangent.
DEVICE float3 interpolated_tangent(GLOBAL const float4 *attributes, uint prim_id, float u, float v,
                                   bool *flip_bitangent) {
#if FLOAT4S_PER_PRIMITIVE > 4
    uint first = attribute_word(attributes, prim_id, 15u);
    float3 second = decode_octahedral(attribute_word(attributes, prim_id, 22u));
    float3 third = decode_octahedral(attribute_word(attributes, prim_id, 23u));
    *flip_bitangent = (first >> 30 & 1u) != 0;
    return madd(third, v, madd(second, u, decode_octahedral(first) * (1.0f - u - v)));
#else
    return make_float3(0.0f, 0.0f, 0.0f);
#endif
}

// The tangent frame of a hit for normal maps: its triangle's id, normal and edges. `tangent` is the interpolated vertex
// tangent, (0, 0, 0) for none.
typedef struct {
    uint prim_id;
    float3 geometric_normal, edge1, edge2, tangent;
    bool flip_bitangent;
} TangentFrame;

#if SPHERE_TEXTURES
// Sets the tangents of a sphere at its unit normal: the tangent runs eastwards, as u of sphere_texcoords.
DEVICE void sphere_frame(float3 normal, TangentFrame *frame) {
    frame->tangent = frame->edge1 = make_float3(normal.z, 0.0f, -normal.x);
    frame->edge2 = cross_fma(normal, frame->edge1);
}
#endif

// Returns the unit normal `normal` perturbed by the slot's normal map, whose x and y are multiplied by `scale`.
DEVICE float3 perturbed_normal(TEXTURE_PARAMS, int slot, float scale, const Texcoords texcoords, float3 normal,
                               const TangentFrame frame) {
    bool flip;
    float3 t = tangent_along_u(attributes, textures, texels, slot, frame.prim_id, frame.edge1, frame.edge2, &flip);
    if (dot_fma(frame.tangent, frame.tangent) > 0.0f) {
        t = frame.tangent;
        flip = frame.flip_bitangent;
    }
    t = madd(normal, -dot_fma(t, normal), t);
    if (!(dot_fma(t, t) > 0.0f)) return normal;
    t = normalize_fma(t);
    float3 bitangent = cross_fma(normal, t);
    if (flip != (dot_fma(frame.geometric_normal, cross_fma(frame.edge1, frame.edge2)) < 0.0f)) bitangent = -bitangent;
    float4 c = sample_texture(textures, texels, slot, texcoords, false);
    float3 bend = make_float3(fma(c.x, 2.0f, -1.0f) * scale, fma(c.y, 2.0f, -1.0f) * scale, fma(c.z, 2.0f, -1.0f));
    return normalize_fma(madd(bitangent, bend.y, madd(t, bend.x, normal * max_nnan(bend.z, 1e-3f))));
}

// Sets *tangent, the direction of anisotropic highlights, unless the surface has neither tangents nor texture
// coordinates. Returns true if the bitangent is flipped on the front.
DEVICE bool highlight_tangent(TEXTURE_PARAMS, const TangentFrame frame, float3 *tangent) {
    bool flip = frame.flip_bitangent;
    float3 t = frame.tangent;
    if (!(dot_fma(t, t) > 0.0f))
        t = tangent_along_u(attributes, textures, texels, NO_SLOT, frame.prim_id, frame.edge1, frame.edge2, &flip);
    if (!(dot_fma(t, t) > 0.0f)) return false;
    *tangent = t;
    return flip != (dot_fma(frame.geometric_normal, cross_fma(frame.edge1, frame.edge2)) < 0.0f);
}

// Returns the material record m, number `material`, multiplied by its textures.
DEVICE Material apply_textures(TEXTURE_PARAMS, Material m, int material, const Texcoords texcoords) {
    MaterialTextures tex = material_textures[material];
#define SAMPLE(slot, srgb) sample_texture(textures, texels, tex.slot, texcoords, srgb)
    float3 color = base_color(m);
    scale_by_textures(TEXTURE_ARGS, material, true, texcoords, &color, &m.roughness, &m.metallic);
    m.color = with_w(color, m.color.w);
    if (tex.emissive >= 0) {
        float4 c = SAMPLE(emissive, true);
        m.emission = m.emission * make_float4(c.x, c.y, c.z, 1.0f);
    }
#if PRINCIPLED
#define SCALE_NUMBER(slot, channel) WITH_SLOT(slot, if (tex.slot >= 0) m.slot *= SAMPLE(slot, false).channel;)
#define SCALE_COLOR(slot) WITH_SLOT(slot, if (tex.slot >= 0) m.slot = m.slot * SAMPLE(slot, true);)
    SCALE_NUMBER(clearcoat, x)
    SCALE_NUMBER(clearcoat_roughness, y)
    SCALE_COLOR(sheen_color)
    SCALE_NUMBER(sheen_roughness, w)
    SCALE_NUMBER(specular, w)
    SCALE_COLOR(specular_color)
    SCALE_NUMBER(transmission, x)
    SCALE_NUMBER(iridescence, x)
    WITH_SLOT(
        iridescence_thickness, if (tex.iridescence_thickness >= 0) {
            float least = m.iridescence_thickness_minimum;
            m.iridescence_thickness =
                fma(m.iridescence_thickness - least, SAMPLE(iridescence_thickness, false).y, least);
        })
    WITH_SLOT(
        anisotropy, if (tex.anisotropy >= 0) {  // red and green: the direction; blue: the strength
            float4 c = SAMPLE(anisotropy, false);
            m.anisotropy *= c.z;
            m.anisotropy_rotation += angle_of(fma(c.y, 2.0f, -1.0f), fma(c.x, 2.0f, -1.0f));
        })
    SCALE_NUMBER(diffuse_transmission, w)
    SCALE_COLOR(diffuse_transmission_color)
#undef SCALE_NUMBER
#undef SCALE_COLOR
#endif
#undef SAMPLE
    return m;
}

// Returns the alpha of a surface point, which the alpha mode then compares or uses as a probability.
DEVICE float alpha_at(TEXTURE_PARAMS, const MaterialTextures tex, const Texcoords texcoords, float vertex_alpha) {
    float alpha = tex.alpha_factor * vertex_alpha;
    if (tex.base_color >= 0) alpha *= sample_texture(textures, texels, tex.base_color, texcoords, true).w;
    WITH_SLOT(alpha, if (tex.alpha >= 0) alpha *= sample_texture(textures, texels, tex.alpha, texcoords, false).w;)
    return alpha;
}
