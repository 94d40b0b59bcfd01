// Texture lookups, and vertex attributes interpolated over triangles. Included by texture.h, whose opening comment
// describes the buffers `attributes`, `textures` and `texels`, and by packets/shade_simd8.h. A slot is one use of a
// texture by a material: an index into `textures`; `flags` are the last word of its record. (u, v) at a triangle are
// barycentric coordinates. Compiled for one lane (`real` is float, `mask` bool) and, on CPUs, again for eight (float8,
// int8; packets/lanes8.h).
// Macros of other files: FLOAT_TEXELS, HAS_TRANSFORM, LINEAR_FILTER, TEXTURE_PARAMS, WITH_SLOT, WRAP_CLAMP, WRAP_REPEAT
// (raytracing/textures/texture.h). Macros of renderer/raytracing/kernels.py (see raytrace.cu): FLOAT4S_PER_PRIMITIVE,
// FLOAT_TEXTURES, METALLIC, TEXTURE_TRANSFORMS, UV_SETS.
#include "raytracing/frame.h"

// Maps a texture coordinate of mirrored repetition into [0, 1].
DEVICE real mirror_uv(real x) {
    real in_period = x - 2.0f * floor(0.5f * x);
    return in_period > 1.0f ? 2.0f - in_period : in_period;
}

// Maps a texture coordinate into [0, 1] by the wrap mode, so that its texel's index fits an integer.
DEVICE real wrap_uv(real x, whole wrap) {
    return wrap == WRAP_CLAMP ? clamp(x, 0.0f, 1.0f) : wrap == WRAP_REPEAT ? x - floor(x) : mirror_uv(x);
}

// Maps the index of a neighbor texel for linear filtering, at most one outside of 0 ... count - 1, into that range by
// the wrap mode.
DEVICE whole wrap_texel(whole i, whole count, whole wrap) {
    return (i >= 0) & (i < count) ? i : wrap == WRAP_REPEAT ? (i < 0 ? i + count : i - count) : (i < 0 ? 0 : count - 1);
}

// Returns texel `at` of `texels`, red to alpha from 0 to 1; `srgb` converts its color to linear light by the table at
// the buffer's start. Where `is_float`, the texel is four words: linear floats.
DEVICE real4 texel_at(GLOBAL const uint *texels, bits at, mask is_float, bool srgb) {
    bits word = GATHER_WORDS(texels, at), red = word & 255u, green = word >> 8 & 255u, blue = word >> 16 & 255u;
    GLOBAL const float *curve = (GLOBAL const float *)texels;
    real3 color = srgb ? make_real3(GATHER_FLOATS(curve, red), GATHER_FLOATS(curve, green), GATHER_FLOATS(curve, blue))
                       : scale3(make_real3(real_of(red), real_of(green), real_of(blue)), 1.0f / 255);
    real alpha = real_of(word >> 24) * (1.0f / 255);
    if (FLOAT_TEXTURES && ANY_LANE(is_float)) {
        bits next = is_float ? 1u : 0u;  // other lanes read their own word again
        real3 linear =
            make_real3(GATHER_FLOATS(curve, at), GATHER_FLOATS(curve, at + next), GATHER_FLOATS(curve, at + 2u * next));
        color = select3(is_float, linear, color);
        alpha = is_float ? GATHER_FLOATS(curve, at + 3u * next) : alpha;
    }
    return with_w(color, alpha);
}

// Returns u and v in the slot's set of texture coordinates, bits 5 and 6 of `flags`.
DEVICE real2 texcoords_in_set(const Texcoords texcoords, whole flags) {
    real2 uv = texcoords.sets[0];
    for (int set = 1; set < UV_SETS; set++) {
        uv.x = (flags >> 5 & 3) == set ? texcoords.sets[set].x : uv.x;
        uv.y = (flags >> 5 & 3) == set ? texcoords.sets[set].y : uv.y;
    }
    return uv;
}

// Returns (u, v) times the linear part of the slot's transform, plus `shift` times its translation: `shift` is 1 for
// points and 0 for differences of points.
DEVICE real2 transform_uv(GLOBAL const uint *texels, whole slot, whole flags, real2 uv, float shift) {
    if (!TEXTURE_TRANSFORMS) return uv;
    GLOBAL const float *m = (GLOBAL const float *)(texels + 256);
    whole row = 6 * slot;
    mask is_transformed = (flags & HAS_TRANSFORM) != 0;
    if (!ANY_LANE(is_transformed)) return uv;
    real x = fma(GATHER_FLOATS(m, row), uv.x, fma(GATHER_FLOATS(m, row + 1), uv.y, GATHER_FLOATS(m, row + 2) * shift));
    real y =
        fma(GATHER_FLOATS(m, row + 3), uv.x, fma(GATHER_FLOATS(m, row + 4), uv.y, GATHER_FLOATS(m, row + 5) * shift));
    return make_real2(is_transformed ? x : uv.x, is_transformed ? y : uv.y);
}

DEVICE real4 mix4(real4 a, real4 b, real t) { return with_w(mix3(xyz(a), xyz(b), t), a.w * (1.0f - t) + b.w * t); }

// Returns the filtered texture of a slot where `used` and the slot is 0 or more, else (1, 1, 1, 1); (u, v) = (0, 0) is
// the upper left corner. `srgb` converts colors to linear light.
DEVICE real4 texture_or_white(GLOBAL const int4 *textures, GLOBAL const uint *texels, whole slot, mask used,
                              const Texcoords texcoords, bool srgb) {
    real4 white = with_w(splat3((real)(1.0f)), 1.0f);
    used = used & (slot >= 0);
    if (!ANY_LANE(used)) return white;
    slot = used ? slot : 0;
    real4 record = load_rows((GLOBAL const float4 *)textures, 1, 0, slot);
    bits first = bits_of(record.x);
    whole width = int_bits_of(record.y), height = int_bits_of(record.z), flags = int_bits_of(record.w);
    real2 uv = transform_uv(texels, slot, flags, texcoords_in_set(texcoords, flags), 1.0f);
    whole wrap_u = flags & 3, wrap_v = flags >> 2 & 3;
    mask is_linear = (flags & LINEAR_FILTER) != 0, is_float = (flags & (FLOAT_TEXTURES * FLOAT_TEXELS)) != 0;
    bits words = is_float ? 4u : 1u;
    real x = wrap_uv(uv.x, wrap_u) * real_of(width), y = wrap_uv(uv.y, wrap_v) * real_of(height);
    whole nearest_x = min(truncated(x), width - 1), nearest_y = min(truncated(y), height - 1);
#define TEXEL(x, y)                                                                                                    \
    texel_at(texels, used ? first + bits_of_whole(y) * (bits_of_whole(width) * words) + bits_of_whole(x) * words : 0u, \
             is_float, srgb)
    if (!ANY_LANE(is_linear)) {
        real4 nearest = TEXEL(nearest_x, nearest_y);
        return with_w(select3(used, xyz(nearest), xyz(white)), used ? nearest.w : 1.0f);
    }
    real left = floor(x - 0.5f), top = floor(y - 0.5f);
    real weight_x = is_linear ? x - 0.5f - left : 0.0f, weight_y = is_linear ? y - 0.5f - top : 0.0f;
    whole column = truncated(left), row = truncated(top);
    whole x0 = is_linear ? wrap_texel(column, width, wrap_u) : nearest_x;
    whole x1 = is_linear ? wrap_texel(column + 1, width, wrap_u) : nearest_x;
    whole y0 = is_linear ? wrap_texel(row, height, wrap_v) : nearest_y;
    whole y1 = is_linear ? wrap_texel(row + 1, height, wrap_v) : nearest_y;
    real4 upper = mix4(TEXEL(x0, y0), TEXEL(x1, y0), weight_x), lower = mix4(TEXEL(x0, y1), TEXEL(x1, y1), weight_x);
    real4 texel = mix4(upper, lower, weight_y);
#undef TEXEL
    return with_w(select3(used, xyz(texel), xyz(white)), used ? texel.w : 1.0f);
}

#if LANES == 1
#define TEXTURE_FIELD1(field, material) material_textures[material].field  // a field of MaterialTextures
#define TEXTURE_FIELD(field, material) JOIN(TEXTURE_FIELD, LANES)(field, material)
// Returns word `word` of a primitive's vertex attributes.
DEVICE uint attribute_word(GLOBAL const float4 *attributes, uint prim_id, uint word) {
    return ((GLOBAL const uint *)(attributes + FLOAT4S_PER_PRIMITIVE * (size_t)prim_id))[word];
}
#else
DEVICE bits attribute_word(GLOBAL const float4 *attributes, whole prim_id, uint word) {
    return GATHER_WORDS(attributes, prim_id * (4 * FLOAT4S_PER_PRIMITIVE) + (int)word);
}
#endif

// Returns u and v of a corner, 0 to 2, in set `set`, 1 or more, of texture coordinates.
DEVICE real2 corner_texcoords(GLOBAL const float4 *attributes, whole prim_id, int set, int corner) {
    // set 1 begins at word 24 (texture.h), and a set has 6 words
    uint word = (uint)(18 + 6 * set + 2 * corner);
    return make_real2(real_of_bits(attribute_word(attributes, prim_id, word)),
                      real_of_bits(attribute_word(attributes, prim_id, word + 1u)));
}

// Returns a (1 - u - v) + b u + c v.
DEVICE real2 interpolate2(real2 a, real2 b, real2 c, real u, real v) {
    return make_real2(fma(c.x - a.x, v, fma(b.x - a.x, u, a.x)), fma(c.y - a.y, v, fma(b.y - a.y, u, a.y)));
}

// Returns all sets of texture coordinates at barycentric coordinates (u, v) of a triangle.
DEVICE Texcoords texcoords_at(GLOBAL const float4 *attributes, whole prim_id, real u, real v) {
    Texcoords out;
    real4 vs = load_rows(attributes, FLOAT4S_PER_PRIMITIVE, 3, prim_id);
    real2 a = make_real2(load_rows(attributes, FLOAT4S_PER_PRIMITIVE, 0, prim_id).w, vs.x);
    real2 b = make_real2(load_rows(attributes, FLOAT4S_PER_PRIMITIVE, 1, prim_id).w, vs.y);
    real2 c = make_real2(load_rows(attributes, FLOAT4S_PER_PRIMITIVE, 2, prim_id).w, vs.z);
    out.sets[0] = interpolate2(a, b, c, u, v);
    for (int set = 1; set < UV_SETS; set++)
        out.sets[set] =
            interpolate2(corner_texcoords(attributes, prim_id, set, 0), corner_texcoords(attributes, prim_id, set, 1),
                         corner_texcoords(attributes, prim_id, set, 2), u, v);
    return out;
}

// Returns the interpolated vertex normal, not unit; (0, 0, 0) if the triangle has none.
DEVICE real3 interpolated_normal(GLOBAL const float4 *attributes, whole prim_id, real u, real v) {
    real3 a = xyz(load_rows(attributes, FLOAT4S_PER_PRIMITIVE, 0, prim_id));
    real3 b = xyz(load_rows(attributes, FLOAT4S_PER_PRIMITIVE, 1, prim_id));
    real3 c = xyz(load_rows(attributes, FLOAT4S_PER_PRIMITIVE, 2, prim_id));
    return madd(c, v, madd(b, u, scale3(a, 1.0f - u - v)));
}

// Returns the interpolated vertex color; (1, 1, 1, 1) in scenes that have none.
DEVICE real4 interpolated_color(GLOBAL const float4 *attributes, whole prim_id, real u, real v) {
    if (FLOAT4S_PER_PRIMITIVE <= 4) return with_w(splat3((real)(1.0f)), 1.0f);
    real4 sum = with_w(splat3((real)(0.0f)), 0.0f);
    for (uint corner = 0; corner < 3; corner++) {
        bits low = attribute_word(attributes, prim_id, 16u + 2u * corner);
        bits high = attribute_word(attributes, prim_id, 17u + 2u * corner);
        real weight = (corner == 0 ? 1.0f - u - v : corner == 1 ? u : v) * (1.0f / 65535);
        real3 color = make_real3(real_of(low & 65535u), real_of(low >> 16), real_of(high & 65535u));
        sum = with_w(add3(xyz(sum), scale3(color, weight)), sum.w + real_of(high >> 16) * weight);
    }
    return sum;
}

// Returns the shading normal, bent towards the viewer where its cosine with the view direction is below 0.02, so that
// it stays just above grazing.
DEVICE real3 clamp_shading_normal(real3 normal, real3 ray_direction) {
    real cosine = -dot_fma(normal, ray_direction);
    return select3(cosine < 0.02f, normalize_fma(madd(ray_direction, cosine - 0.02f, normal)), normal);
}

// Returns `normal` normalized and flipped to the side of the geometric normal; the geometric normal if `normal` is (0,
// 0, 0).
DEVICE real3 smooth_normal(real3 normal, real3 geometric_normal) {
    normal = select3(dot_fma(normal, normal) > 0.0f, normalize_fma(normal), geometric_normal);
    return select3(dot_fma(normal, geometric_normal) < 0.0f, negate3(normal), normal);
}

// If `used`, multiplies *color by the material's base color texture, *roughness by the green and *metallic by the
// blue channel of its metallic_roughness texture, and the latter two also by its roughness and metallic textures.
DEVICE void scale_by_textures(TEXTURE_PARAMS, whole material, mask used, const Texcoords texcoords, real3 *color,
                              real *roughness, real *metallic) {
#define SAMPLE(slot, srgb) texture_or_white(textures, texels, TEXTURE_FIELD(slot, material), used, texcoords, srgb)
    *color = mul3(*color, xyz(SAMPLE(base_color, true)));
    if (LANES == 1 || METALLIC) {
        real4 packed = SAMPLE(metallic_roughness, false);
        *roughness *= packed.y;
        *metallic *= packed.z;
        WITH_SLOT(roughness, *roughness *= SAMPLE(roughness, false).y;)
        WITH_SLOT(metallic, *metallic *= SAMPLE(metallic, false).z;)
    }
#undef SAMPLE
}
