// The surface point of a hit in scenes with textures or vertex attributes: interpolated attributes, shading normals,
// and the material's record multiplied by its textures. Called by scene.h; texture.h describes the buffers and
// has TEXTURE_PARAMS, WITH_SLOT and NO_SLOT.
// The order of the calls: set_vertex_attributes, set_globe_frame for a sphere, set_shading_normals, highlight_tangent.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): CLEARCOAT, DEFORMS, FLOAT4S_PER_PRIMITIVE, PRINCIPLED,
// SPHERE_TEXTURES, UV_SETS.
#include "raytracing/textures/texture.h"
#include "bvh/geometry.h"

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
    if (FLOAT4S_PER_PRIMITIVE <= 4) return make_float3(0.0f, 0.0f, 0.0f);
    uint first = attribute_word(attributes, prim_id, 15u);
    float3 second = decode_octahedral(attribute_word(attributes, prim_id, 22u));
    float3 third = decode_octahedral(attribute_word(attributes, prim_id, 23u));
    *flip_bitangent = (first >> 30 & 1u) != 0;
    return madd(third, v, madd(second, u, decode_octahedral(first) * (1.0f - u - v)));
}

// Interpolates the vertex attributes of a hit on primitive p of the shape at `time`; `closing` is the primitive when the
// shutter closes, p if the shape does not deform.
DEVICE void set_vertex_attributes(TEXTURE_PARAMS, const Primitive p, const Primitive closing, const Hit hit, float time,
                                  Surface *s, TangentFrame *frame) {
    frame->prim_id = as_uint(p.v0.w);
    s->texcoords = texcoords_at(attributes, frame->prim_id, hit.u, hit.v);
    frame->vertex_normal = interpolated_normal(attributes, frame->prim_id, hit.u, hit.v);
    frame->tangent = interpolated_tangent(attributes, frame->prim_id, hit.u, hit.v, &frame->flip_bitangent);
    s->vertex_color = interpolated_color(attributes, frame->prim_id, hit.u, hit.v);
    if (DEFORMS) {
        uint id = as_uint(closing.v0.w);
        float3 normal = interpolated_normal(attributes, id, hit.u, hit.v);
        float3 tangent = interpolated_tangent(attributes, id, hit.u, hit.v, &frame->flip_bitangent);
        frame->vertex_normal = madd(normal - frame->vertex_normal, time, frame->vertex_normal);
        frame->tangent = madd(tangent - frame->tangent, time, frame->tangent);
    }
    frame->edge1 = xyz(p.edge1);
    frame->edge2 = xyz(p.edge2);
}

// Sets the texture coordinates and tangents of a sphere at its unit normal s->normal, in the sphere's space: the tangent
// runs eastwards, as u of sphere_texcoords. Leaves other primitives unchanged.
DEVICE void set_globe_frame(TEXTURE_PARAMS, const Primitive p, Surface *s, TangentFrame *frame) {
    if (!SPHERE_TEXTURES || !is_globe(attributes, p)) return;
    s->texcoords = sphere_texcoords(s->normal);
    frame->tangent = frame->edge1 = make_float3(s->normal.z, 0.0f, -s->normal.x);
    frame->edge2 = cross_fma(s->normal, frame->edge1);
}

// Returns the direction, not unit, in which the slot's u grows along a triangle with these edges. *flip_bitangent
// becomes true if v grows against the cross product of the normal and this direction, as for textures whose v runs
// downwards.
DEVICE float3 tangent_along_u(GLOBAL const float4 *attributes, GLOBAL const int4 *textures, GLOBAL const uint *texels,
                              int slot, uint prim_id, float3 edge1, float3 edge2, bool *flip_bitangent) {
    GLOBAL const float4 *a = attributes + FLOAT4S_PER_PRIMITIVE * (size_t)prim_id;
    float4 vs = a[3];
    float2 side1 = make_float2(a[1].w - a[0].w, vs.y - vs.x), side2 = make_float2(a[2].w - a[0].w, vs.z - vs.x);
    int set = UV_SETS > 1 && slot >= 0 ? textures[slot].w >> 5 & 3 : 0;
    if (set > 0) {
        float2 first = corner_texcoords(attributes, prim_id, set, 0);
        side1 = corner_texcoords(attributes, prim_id, set, 1) - first;
        side2 = corner_texcoords(attributes, prim_id, set, 2) - first;
    }
    side1 = slot < 0 ? side1 : transform_uv(texels, slot, textures[slot].w, side1, 0.0f);
    side2 = slot < 0 ? side2 : transform_uv(texels, slot, textures[slot].w, side2, 0.0f);
    float area = fma(side1.x, side2.y, -(side2.x * side1.y));
    *flip_bitangent = area > 0.0f;
    return (edge1 * side2.y + edge2 * -side1.y) * (area < 0.0f ? -1.0f : 1.0f);
}

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
    // flipped once more where an instance mirrors the shape: then the edges turn the other way around the normal
    if (flip != (dot_fma(frame.geometric_normal, cross_fma(frame.edge1, frame.edge2)) < 0.0f)) bitangent = -bitangent;
    float4 c = sample_texture(textures, texels, slot, texcoords, false);
    float3 bend = make_float3(fma(c.x, 2.0f, -1.0f) * scale, fma(c.y, 2.0f, -1.0f) * scale, fma(c.z, 2.0f, -1.0f));
    return normalize_fma(madd(bitangent, bend.y, madd(t, bend.x, normal * max_nnan(bend.z, 1e-3f))));
}

// Sets the normals of a surface point, on the ray's side: on entry s->normal is the geometric normal. The base's normal
// map bends s->normal, the clearcoat's map s->clearcoat_normal.
DEVICE void set_shading_normals(TEXTURE_PARAMS, TangentFrame *frame, Surface *s) {
    s->geometric_normal = s->front_face ? s->normal : -s->normal;
    MaterialTextures tex = material_textures[s->material];
    frame->geometric_normal = s->normal;
    float3 normal = smooth_normal(frame->vertex_normal, s->normal);
    if (CLEARCOAT) {
        float3 coat = normal;
        WITH_SLOT(clearcoat_normal, int slot = tex.clearcoat_normal; float scale = tex.clearcoat_normal_scale;
                  if (slot >= 0) coat = perturbed_normal(TEXTURE_ARGS, slot, scale, s->texcoords, normal, *frame);)
        s->clearcoat_normal = clamp_shading_normal(s->front_face ? coat : -coat, s->ray_direction);
    }
    if (tex.normal >= 0)
        normal = perturbed_normal(TEXTURE_ARGS, tex.normal, tex.normal_scale, s->texcoords, normal, *frame);
    s->normal = clamp_shading_normal(s->front_face ? normal : -normal, s->ray_direction);
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
    // an instance that mirrors the shape flips it, as in perturbed_normal
    return flip != (dot_fma(frame.geometric_normal, cross_fma(frame.edge1, frame.edge2)) < 0.0f);
}

// Returns the material record m of a surface point, multiplied by its textures and by the vertex color.
DEVICE Material apply_textures(TEXTURE_PARAMS, Material m, const Surface s) {
    MaterialTextures tex = material_textures[s.material];
#define SAMPLE(slot, srgb) sample_texture(textures, texels, tex.slot, s.texcoords, srgb)
    float3 color = base_color(m);
    scale_by_textures(TEXTURE_ARGS, s.material, true, s.texcoords, &color, &m.roughness, &m.metallic);
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
    m.color = m.color * s.vertex_color;
    return m;
}

// Returns the emission texture times alpha at a point of an emitter, by which its radiance is multiplied: at
// barycentric coordinates (u, v) of a triangle, or at the unit normal `normal` of a sphere.
DEVICE float3 emission_texture_at(TEXTURE_PARAMS, const Primitive p, float u, float v, float3 normal) {
    MaterialTextures tex = material_textures[as_int(p.edge1.w)];
    Texcoords texcoords = texcoords_at(attributes, as_uint(p.v0.w), u, v);
    if (SPHERE_TEXTURES && is_globe(attributes, p)) texcoords = sphere_texcoords(normal);
    float4 white = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    float4 emission = tex.emissive >= 0 ? sample_texture(textures, texels, tex.emissive, texcoords, true) : white;
    float vertex_alpha = interpolated_color(attributes, as_uint(p.v0.w), u, v).w;
    float alpha = tex.alpha_mode == ALPHA_OPAQUE ? 1.0f : alpha_at(TEXTURE_ARGS, tex, texcoords, vertex_alpha);
    if (tex.alpha_mode == ALPHA_MASK) alpha = alpha >= tex.alpha_cutoff ? 1.0f : 0.0f;
    return xyz(emission) * alpha;
}
