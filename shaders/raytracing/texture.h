// Textures and the vertex attributes of triangles.
//     attributes         FLOAT4S_PER_PRIMITIVE float4 a primitive, by its id: the corners' normals, (0, 0, 0) for none,
//                        with u of each in .w; then v. If there are more than four, the nine words from 15 on are a
//                        tangent, the corners' colors in two words of 16-bit channels each, and two tangents. A tangent
//                        is 0 for none, or an octahedral unit vector (Q. Meyer et al. 2010) of 15 bits a coordinate,
//                        bit 30 set if the bitangent is flipped, and bit 31 set. Behind them u and v of the corners in
//                        each further set of texture coordinates, of which there are UV_SETS in all.
//     material_textures  the texture slots of each material: indices of `textures`, -1 for none
//     textures           a record for each slot: where it begins in `texels`, width, height, and bits: 0-1 wrap of u,
//                        2-3 wrap of v, 4 linear filter, 5-6 set of texture coordinates, 7 has a transform
//     texels             256 floats: the sRGB curve; if TEXTURE_TRANSFORMS, the 2x3 matrices of the slots, by which
//                        (u, v, 1) is multiplied; then 8 bits each of red, green, blue, alpha
// MaterialTextures and the bits SLOT_... of TEXTURE_SLOTS, the slots that any material of the scene has, are those of
// renderer/raytracing/textures.py.

#define ALPHA_OPAQUE 0
#define ALPHA_MASK 1  // passes where alpha is at least alpha_cutoff
#define ALPHA_BLEND 2  // passes with probability alpha
#define WRAP_REPEAT 0
#define WRAP_CLAMP 1
#define WRAP_MIRROR 2
#define LINEAR_FILTER 16
#define HAS_TRANSFORM 128
#define NO_SLOT -1  // stands for one that takes the first set of texture coordinates as it is

#define TEXTURE_PARAMS                                                                                   \
    GLOBAL const float4 *RESTRICT attributes, GLOBAL const MaterialTextures *RESTRICT material_textures, \
        GLOBAL const int4 *RESTRICT textures, GLOBAL const uint *RESTRICT texels
#define TEXTURE_ARGS attributes, material_textures, textures, texels

// A texture coordinate brought near [0, 1), so that it fits an integer.
DEVICE float wrap_uv(float x, int wrap) {
    if (wrap == WRAP_CLAMP) return clamp(x, 0.0f, 1.0f);
    if (wrap == WRAP_REPEAT) return x - floor(x);
    float in_period = x - 2.0f * floor(0.5f * x);
    return in_period > 1.0f ? 2.0f - in_period : in_period;
}

DEVICE int wrap_texel(int i, int count, int wrap) {
    if (i >= 0 && i < count) return i;
    if (wrap == WRAP_REPEAT) return i < 0 ? i + count : i - count;
    return i < 0 ? 0 : count - 1;
}

DEVICE float4 texel_at(GLOBAL const uint *texels, int4 t, int x, int y, bool srgb) {
    uint word = texels[(uint)t.x + (uint)y * (uint)t.y + (uint)x];
    float4 c =
        make_float4((float)(word & 255u), (float)(word >> 8 & 255u), (float)(word >> 16 & 255u), (float)(word >> 24));
    c = c * (1.0f / 255);
    if (srgb) {
        c.x = as_float(texels[word & 255u]);
        c.y = as_float(texels[word >> 8 & 255u]);
        c.z = as_float(texels[word >> 16 & 255u]);
    }
    return c;
}

// u and v in one set of texture coordinates.
DEVICE float2 texcoords_in_set(const Texcoords texcoords, int bits) {
    float2 uv = texcoords.sets[0];
    for (int set = 1; set < UV_SETS; set++)
        if ((bits >> 5 & 3) == set) uv = texcoords.sets[set];
    return uv;
}

// (u, v) times the linear part of a slot's transform, plus `shift` times its translation.
DEVICE float2 transform_uv(GLOBAL const uint *texels, int index, int bits, float2 uv, float shift) {
#if TEXTURE_TRANSFORMS
    GLOBAL const float *m = (GLOBAL const float *)(texels + 256) + 6 * index;
    if (bits & HAS_TRANSFORM)
        return make_float2(fma(m[0], uv.x, fma(m[1], uv.y, m[2] * shift)),
                           fma(m[3], uv.x, fma(m[4], uv.y, m[5] * shift)));
#endif
    return uv;
}

// The texture of a slot, (u, v) from its upper left corner; if `srgb`, the colors are converted to linear light.
DEVICE float4 sample_texture(GLOBAL const int4 *textures, GLOBAL const uint *texels, int index,
                             const Texcoords texcoords, bool srgb) {
    int4 t = textures[index];
    float2 uv = transform_uv(texels, index, t.w, texcoords_in_set(texcoords, t.w), 1.0f);
    int wrap_u = t.w & 3, wrap_v = t.w >> 2 & 3;
    float x = wrap_uv(uv.x, wrap_u) * (float)t.y, y = wrap_uv(uv.y, wrap_v) * (float)t.z;
    if (!(t.w & LINEAR_FILTER)) return texel_at(texels, t, min((int)x, t.y - 1), min((int)y, t.z - 1), srgb);
    float left = floor(x - 0.5f), top = floor(y - 0.5f), weight_x = x - 0.5f - left, weight_y = y - 0.5f - top;
    int x0 = wrap_texel((int)left, t.y, wrap_u), x1 = wrap_texel((int)left + 1, t.y, wrap_u);
    int y0 = wrap_texel((int)top, t.z, wrap_v), y1 = wrap_texel((int)top + 1, t.z, wrap_v);
    float4 upper = texel_at(texels, t, x0, y0, srgb) * (1.0f - weight_x) + texel_at(texels, t, x1, y0, srgb) * weight_x;
    float4 lower = texel_at(texels, t, x0, y1, srgb) * (1.0f - weight_x) + texel_at(texels, t, x1, y1, srgb) * weight_x;
    return upper * (1.0f - weight_y) + lower * weight_y;
}

// The texture coordinates at barycentric coordinates (u, v) of a triangle.
DEVICE float2 uv_at(GLOBAL const float4 *attributes, uint prim_id, float u, float v) {
    GLOBAL const float4 *a = attributes + FLOAT4S_PER_PRIMITIVE * (size_t)prim_id;
    float4 vs = a[3];
    return make_float2(fma(a[2].w - a[0].w, v, fma(a[1].w - a[0].w, u, a[0].w)),
                       fma(vs.z - vs.x, v, fma(vs.y - vs.x, u, vs.x)));
}

// u and v of a corner, 0 to 2, in a further set of texture coordinates, 1 or more.
DEVICE float2 corner_texcoords(GLOBAL const float4 *attributes, uint prim_id, int set, int corner) {
    GLOBAL const float *uv = (GLOBAL const float *)(attributes + FLOAT4S_PER_PRIMITIVE * (size_t)prim_id);
    return make_float2(uv[18 + 6 * set + 2 * corner], uv[19 + 6 * set + 2 * corner]);
}

DEVICE Texcoords texcoords_at(GLOBAL const float4 *attributes, uint prim_id, float u, float v) {
    Texcoords out;
    out.sets[0] = uv_at(attributes, prim_id, u, v);
    for (int set = 1; set < UV_SETS; set++) {
        float2 a = corner_texcoords(attributes, prim_id, set, 0), b = corner_texcoords(attributes, prim_id, set, 1),
               c = corner_texcoords(attributes, prim_id, set, 2);
        out.sets[set] =
            make_float2(fma(c.x - a.x, v, fma(b.x - a.x, u, a.x)), fma(c.y - a.y, v, fma(b.y - a.y, u, a.y)));
    }
    return out;
}

#if SPHERE_TEXTURES
// Whether a primitive is a sphere that wears pictures as a globe. Balls of a model's points have coordinates of their
// own and a mark: the normal of a corner that no hit of theirs reaches.
DEVICE bool is_globe(GLOBAL const float4 *attributes, const Primitive p) {
    return p.edge2.w > 0.0f && !(attributes[as_uint(p.v0.w) * FLOAT4S_PER_PRIMITIVE + 1u].x > 0.0f);
}

// The texture coordinates of a sphere at its unit normal: u runs eastwards about y, 0.5 at +z; v from +y to -y.
DEVICE Texcoords sphere_texcoords(float3 normal) {
    Texcoords out;
    float2 uv =
        make_float2(fma(atan2(normal.x, normal.z), 0.5f / PI, 0.5f), acos(clamp(normal.y, -1.0f, 1.0f)) * (1.0f / PI));
    for (int set = 0; set < UV_SETS; set++) out.sets[set] = uv;
    return out;
}
#endif

// The interpolated vertex normal, not unit; (0, 0, 0) if the triangle has none.
DEVICE float3 interpolated_normal(GLOBAL const float4 *attributes, uint prim_id, float u, float v) {
    GLOBAL const float4 *a = attributes + FLOAT4S_PER_PRIMITIVE * (size_t)prim_id;
    return madd(xyz(a[2]), v, madd(xyz(a[1]), u, xyz(a[0]) * (1.0f - u - v)));
}

// The direction in which u of a slot grows along a triangle. *flip_bitangent: v grows against the cross product of the
// normal and this direction, as it does for textures whose v runs downwards.
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

#if FLOAT4S_PER_PRIMITIVE > 4
DEVICE uint attribute_word(GLOBAL const float4 *attributes, uint prim_id, uint word) {
    return ((GLOBAL const uint *)(attributes + FLOAT4S_PER_PRIMITIVE * (size_t)prim_id))[word];
}

// A unit vector; (0, 0, 0) for the word 0.
DEVICE float3 decode_octahedral(uint word) {
    float x = fma((float)(word & 0x7fffu), 2.0f / 32767.0f, -1.0f),
          y = fma((float)(word >> 15 & 0x7fffu), 2.0f / 32767.0f, -1.0f);
    float z = 1.0f - fabs(x) - fabs(y), fold = max_nnan(-z, 0.0f);
    if (word == 0) return make_float3(0.0f, 0.0f, 0.0f);
    return normalize_fma(make_float3(x + (x < 0.0f ? fold : -fold), y + (y < 0.0f ? fold : -fold), z));
}

// The interpolated vertex tangent, not unit, and the sign of its bitangent.
DEVICE float3 interpolated_tangent(GLOBAL const float4 *attributes, uint prim_id, float u, float v,
                                   bool *flip_bitangent) {
    uint first = attribute_word(attributes, prim_id, 15u);
    float3 second = decode_octahedral(attribute_word(attributes, prim_id, 22u));
    float3 third = decode_octahedral(attribute_word(attributes, prim_id, 23u));
    *flip_bitangent = (first >> 30 & 1u) != 0;
    return madd(third, v, madd(second, u, decode_octahedral(first) * (1.0f - u - v)));
}

// The interpolated vertex color.
DEVICE float4 interpolated_color(GLOBAL const float4 *attributes, uint prim_id, float u, float v) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (uint corner = 0; corner < 3; corner++) {
        uint low = attribute_word(attributes, prim_id, 16u + 2u * corner);
        uint high = attribute_word(attributes, prim_id, 17u + 2u * corner);
        float4 color =
            make_float4((float)(low & 65535u), (float)(low >> 16), (float)(high & 65535u), (float)(high >> 16));
        sum = sum + color * ((corner == 0 ? 1.0f - u - v : corner == 1 ? u : v) * (1.0f / 65535));
    }
    return sum;
}
#else
DEVICE float3 interpolated_tangent(GLOBAL const float4 *attributes, uint prim_id, float u, float v,
                                   bool *flip_bitangent) {
    return make_float3(0.0f, 0.0f, 0.0f);
}

DEVICE float4 interpolated_color(GLOBAL const float4 *attributes, uint prim_id, float u, float v) {
    return make_float4(1.0f, 1.0f, 1.0f, 1.0f);
}
#endif

// The shading normal bent towards the viewer if it faces away.
DEVICE float3 clamp_shading_normal(float3 normal, float3 ray_direction) {
    float cosine = -dot_fma(normal, ray_direction);
    return cosine < 0.02f ? normalize_fma(madd(ray_direction, cosine - 0.02f, normal)) : normal;
}

// What the normal map of a slot needs of a hit. `tangent` is the interpolated vertex tangent, (0, 0, 0) for none.
typedef struct {
    uint prim_id;
    float3 geometric_normal, edge1, edge2, tangent;
    bool flip_bitangent;
} TangentFrame;

#if SPHERE_TEXTURES
// The frame of a sphere at its unit normal: the tangent runs eastwards, as u of sphere_texcoords.
DEVICE void sphere_frame(float3 normal, TangentFrame *frame) {
    frame->tangent = frame->edge1 = make_float3(normal.z, 0.0f, -normal.x);
    frame->edge2 = cross_fma(normal, frame->edge1);
}
#endif

// A unit normal perturbed by the normal map of a slot.
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

// The unit interpolated normal on the side of the geometric normal, which it is if `normal` is (0, 0, 0).
DEVICE float3 smooth_normal(float3 normal, float3 geometric_normal) {
    normal = dot_fma(normal, normal) > 0.0f ? normalize_fma(normal) : geometric_normal;
    return dot_fma(normal, geometric_normal) < 0.0f ? -normal : normal;
}

// Sets the tangent of anisotropic highlights, unless the surface has neither tangents nor texture coordinates. Returns
// whether the bitangent is flipped on the front.
DEVICE bool highlight_tangent(TEXTURE_PARAMS, const TangentFrame frame, float3 *tangent) {
    bool flip = frame.flip_bitangent;
    float3 t = frame.tangent;
    if (!(dot_fma(t, t) > 0.0f))
        t = tangent_along_u(attributes, textures, texels, NO_SLOT, frame.prim_id, frame.edge1, frame.edge2, &flip);
    if (!(dot_fma(t, t) > 0.0f)) return false;
    *tangent = t;
    return flip != (dot_fma(frame.geometric_normal, cross_fma(frame.edge1, frame.edge2)) < 0.0f);
}

// The material with its textures applied.
DEVICE Material apply_textures(TEXTURE_PARAMS, Material m, const MaterialTextures tex, const Texcoords texcoords) {
#define SAMPLE(slot, srgb) sample_texture(textures, texels, tex.slot, texcoords, srgb)
    if (tex.base_color >= 0) {
        float4 c = SAMPLE(base_color, true);
        m.color = m.color * make_float4(c.x, c.y, c.z, 1.0f);
    }
    if (tex.metallic_roughness >= 0) {
        float4 c = SAMPLE(metallic_roughness, false);
        m.roughness *= c.y;
        m.metallic *= c.z;
    }
    if (tex.emissive >= 0) {
        float4 c = SAMPLE(emissive, true);
        m.emission = m.emission * make_float4(c.x, c.y, c.z, 1.0f);
    }
#if TEXTURE_SLOTS & SLOT_ROUGHNESS
    if (tex.roughness >= 0) m.roughness *= SAMPLE(roughness, false).y;
#endif
#if TEXTURE_SLOTS & SLOT_METALLIC
    if (tex.metallic >= 0) m.metallic *= SAMPLE(metallic, false).z;
#endif
#if PRINCIPLED
#define SCALE_NUMBER(slot, channel) \
    if (tex.slot >= 0) m.slot *= SAMPLE(slot, false).channel;
#define SCALE_COLOR(slot) \
    if (tex.slot >= 0) m.slot = m.slot * SAMPLE(slot, true);
#if TEXTURE_SLOTS & SLOT_CLEARCOAT
    SCALE_NUMBER(clearcoat, x)
#endif
#if TEXTURE_SLOTS & SLOT_CLEARCOAT_ROUGHNESS
    SCALE_NUMBER(clearcoat_roughness, y)
#endif
#if TEXTURE_SLOTS & SLOT_SHEEN_COLOR
    SCALE_COLOR(sheen_color)
#endif
#if TEXTURE_SLOTS & SLOT_SHEEN_ROUGHNESS
    SCALE_NUMBER(sheen_roughness, w)
#endif
#if TEXTURE_SLOTS & SLOT_SPECULAR
    SCALE_NUMBER(specular, w)
#endif
#if TEXTURE_SLOTS & SLOT_SPECULAR_COLOR
    SCALE_COLOR(specular_color)
#endif
#if TEXTURE_SLOTS & SLOT_TRANSMISSION
    SCALE_NUMBER(transmission, x)
#endif
#if TEXTURE_SLOTS & SLOT_IRIDESCENCE
    SCALE_NUMBER(iridescence, x)
#endif
#if TEXTURE_SLOTS & SLOT_IRIDESCENCE_THICKNESS
    if (tex.iridescence_thickness >= 0)
        m.iridescence_thickness = fma(m.iridescence_thickness - m.iridescence_thickness_minimum,
                                      SAMPLE(iridescence_thickness, false).y, m.iridescence_thickness_minimum);
#endif
#if TEXTURE_SLOTS & SLOT_ANISOTROPY
    if (tex.anisotropy >= 0) {  // red and green: the direction; blue: the strength
        float4 c = SAMPLE(anisotropy, false);
        m.anisotropy *= c.z;
        m.anisotropy_rotation += atan2(fma(c.y, 2.0f, -1.0f), fma(c.x, 2.0f, -1.0f));
    }
#endif
#if TEXTURE_SLOTS & SLOT_DIFFUSE_TRANSMISSION
    SCALE_NUMBER(diffuse_transmission, w)
#endif
#if TEXTURE_SLOTS & SLOT_DIFFUSE_TRANSMISSION_COLOR
    SCALE_COLOR(diffuse_transmission_color)
#endif
#undef SCALE_NUMBER
#undef SCALE_COLOR
#endif
#undef SAMPLE
    return m;
}

// The alpha of a surface point before the mode is applied.
DEVICE float alpha_at(TEXTURE_PARAMS, const MaterialTextures tex, const Texcoords texcoords, float vertex_alpha) {
    float alpha = tex.alpha_factor * vertex_alpha;
    if (tex.base_color >= 0) alpha *= sample_texture(textures, texels, tex.base_color, texcoords, true).w;
#if TEXTURE_SLOTS & SLOT_ALPHA
    if (tex.alpha >= 0) alpha *= sample_texture(textures, texels, tex.alpha, texcoords, false).w;
#endif
    return alpha;
}
