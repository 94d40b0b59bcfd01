// Textures, vertex normals and vertex colors for eight lanes: the functions of texture.h and scene.h of these names,
// with the same roundings. Normal maps are not here: their lanes are shaded alone.

// The texture coordinates of eight surface points in each set that their materials take.
typedef struct {
    float8 u[UV_SETS], v[UV_SETS];
} Texcoords8;

// A field of the records MaterialTextures of eight materials.
#define TEXTURE_FIELD8(field, material)                                                                    \
    as_int8(                                                                                               \
        GATHER8((GLOBAL const uint *)material_textures, (material) * (int)(sizeof(MaterialTextures) / 4) + \
                                                            (int)(__builtin_offsetof(MaterialTextures, field) / 4)))

DEVICE Float3x8 negated8(Float3x8 a) { return float3x8(-a.x, -a.y, -a.z); }

DEVICE Float3x8 clamp_shading_normal8(Float3x8 normal, Float3x8 ray_direction) {
    float8 cosine = -dot8(normal, ray_direction);
    return select8(cosine < 0.02f, normalize8(madd8(ray_direction, cosine - 0.02f, normal)), normal);
}

DEVICE Float3x8 smooth_normal8(Float3x8 normal, Float3x8 geometric_normal) {
    normal = select8(dot8(normal, normal) > 0.0f, normalize8(normal), geometric_normal);
    return select8(dot8(normal, geometric_normal) < 0.0f, negated8(normal), normal);
}

// bend_normals for surfaces that are `metallic`.
DEVICE Float3x8 bend_normals8(Float3x8 normal, Float3x8 geometric_normal, Float3x8 ray_direction, float8 metallic) {
    float8 x = clamp(1.0f - -dot8(normal, ray_direction), (float8)(0.0f), (float8)(1.0f)), x2 = x * x;
    float8 weight = fma(1.0f - metallic, x2 * x2 * x, metallic);
    Float3x8 mirrored = madd8(normal, -2.0f * dot8(ray_direction, normal), ray_direction);
    float8 height = dot8(mirrored, geometric_normal);
    float8 least = min_nnan(-0.5f * dot8(ray_direction, geometric_normal), (float8)(0.01f));
    Float3x8 bent = normalize8(madd8(geometric_normal, least - height, mirrored));
    bent = select8(height >= least, normal, normalize8(sub8(bent, ray_direction)));
    return select8(weight > 0.0f, normalize8(madd8(sub8(bent, normal), weight, normal)), normal);
}

#if FLOAT4S_PER_PRIMITIVE > 4
DEVICE Float3x8 interpolated_color8(GLOBAL const float4 *attributes, int8 prim_id, float8 u, float8 v) {
    Float3x8 sum = splat3x8(make_float3(0.0f, 0.0f, 0.0f));
    for (int corner = 0; corner < 3; corner++) {
        int8 word = prim_id * (4 * FLOAT4S_PER_PRIMITIVE) + (16 + 2 * corner);
        uint8 low = GATHER8(attributes, word), high = GATHER8(attributes, word + 1);
        float8 weight = (corner == 0 ? 1.0f - u - v : corner == 1 ? u : v) * (1.0f / 65535);
        Float3x8 color =
            float3x8(convert_float8(low & 65535u), convert_float8(low >> 16), convert_float8(high & 65535u));
        sum = add8(sum, scale8(color, weight));
    }
    return sum;
}
#endif

#if SURFACE_TEXTURES
DEVICE float8 wrap_uv8(float8 x, int8 wrap) {
    float8 in_period = x - 2.0f * floor(0.5f * x);
    float8 mirrored = in_period > 1.0f ? 2.0f - in_period : in_period;
    float8 clamped = clamp(x, (float8)(0.0f), (float8)(1.0f)), repeated = x - floor(x);
    return wrap == WRAP_CLAMP ? clamped : wrap == WRAP_REPEAT ? repeated : mirrored;
}

DEVICE int8 wrap_texel8(int8 i, int8 count, int8 wrap) {
    int8 repeated = i < 0 ? i + count : i - count, clamped = i < 0 ? (int8)(0) : count - 1;
    return (i >= 0) & (i < count) ? i : wrap == WRAP_REPEAT ? repeated : clamped;
}

// Red, green and blue of the texels at eight indices.
DEVICE Float3x8 texel_at8(GLOBAL const uint *texels, int8 at, bool srgb) {
    uint8 word = GATHER8(texels, at), red = word & 255u, green = word >> 8 & 255u, blue = word >> 16 & 255u;
    GLOBAL const float *curve = (GLOBAL const float *)texels;
    if (srgb)
        return float3x8(GATHER_FLOATS8(curve, as_int8(red)), GATHER_FLOATS8(curve, as_int8(green)),
                        GATHER_FLOATS8(curve, as_int8(blue)));
    return scale8(float3x8(convert_float8(red), convert_float8(green), convert_float8(blue)), (float8)(1.0f / 255));
}

// Red, green and blue of the textures `slot`; (1, 1, 1) in lanes outside `shaded` and in those of no texture.
DEVICE Float3x8 sample_texture8(GLOBAL const int4 *textures, GLOBAL const uint *texels, int8 slot, int8 shaded,
                                const Texcoords8 *texcoords, bool srgb) {
    int8 used = shaded & (slot >= 0);
    Float3x8 record, white = splat3x8(make_float3(1.0f, 1.0f, 1.0f));
    if (!movemask8(used)) return white;
    slot = used ? slot : (int8)(0);
    int8 bits = as_int8(columns8((GLOBAL const float4 *)textures, 1, 0, slot, &record));
    int8 first = as_int8(record.x), width = as_int8(record.y), height = as_int8(record.z);
    float8 u = texcoords->u[0], v = texcoords->v[0];
    for (int set = 1; set < UV_SETS; set++) {
        u = (bits >> 5 & 3) == set ? texcoords->u[set] : u;
        v = (bits >> 5 & 3) == set ? texcoords->v[set] : v;
    }
#if TEXTURE_TRANSFORMS
    GLOBAL const float *m = (GLOBAL const float *)(texels + 256);
    int8 row = 6 * slot, moved = (bits & HAS_TRANSFORM) != 0;
    float8 x_moved = fma(GATHER_FLOATS8(m, row), u, fma(GATHER_FLOATS8(m, row + 1), v, GATHER_FLOATS8(m, row + 2)));
    float8 y_moved = fma(GATHER_FLOATS8(m, row + 3), u, fma(GATHER_FLOATS8(m, row + 4), v, GATHER_FLOATS8(m, row + 5)));
    u = moved ? x_moved : u;
    v = moved ? y_moved : v;
#endif
    int8 wrap_u = bits & 3, wrap_v = bits >> 2 & 3, linear = (bits & LINEAR_FILTER) != 0;
    float8 x = wrap_uv8(u, wrap_u) * convert_float8(width), y = wrap_uv8(v, wrap_v) * convert_float8(height);
    float8 left = floor(x - 0.5f), top = floor(y - 0.5f), zero = (float8)(0.0f);
    float8 weight_x = linear ? x - 0.5f - left : zero, weight_y = linear ? y - 0.5f - top : zero;
    int8 column = convert_int8(left), line = convert_int8(top);
    int8 near_x = min(convert_int8(x), width - 1), near_y = min(convert_int8(y), height - 1);
    int8 x0 = linear ? wrap_texel8(column, width, wrap_u) : near_x;
    int8 x1 = linear ? wrap_texel8(column + 1, width, wrap_u) : near_x;
    int8 upper = first + width * (linear ? wrap_texel8(line, height, wrap_v) : near_y);
    int8 lower = first + width * (linear ? wrap_texel8(line + 1, height, wrap_v) : near_y);
#define TEXEL8(at) texel_at8(texels, used ? (at) : (int8)(0), srgb)
    Float3x8 above = add8(scale8(TEXEL8(upper + x0), 1.0f - weight_x), scale8(TEXEL8(upper + x1), weight_x));
    Float3x8 below = add8(scale8(TEXEL8(lower + x0), 1.0f - weight_x), scale8(TEXEL8(lower + x1), weight_x));
#undef TEXEL8
    return select8(used, add8(scale8(above, 1.0f - weight_y), scale8(below, weight_y)), white);
}

// The texture coordinates at barycentric coordinates (u, v); `corners` are the first three float4s' w, `vs` the fourth.
DEVICE Texcoords8 texcoords_at8(GLOBAL const float4 *attributes, int8 prim_id, Float3x8 corners, Float3x8 vs, float8 u,
                                float8 v) {
    Texcoords8 out;
    out.u[0] = fma(corners.z - corners.x, v, fma(corners.y - corners.x, u, corners.x));
    out.v[0] = fma(vs.z - vs.x, v, fma(vs.y - vs.x, u, vs.x));
    GLOBAL const float *numbers = (GLOBAL const float *)attributes;
    for (int set = 1; set < UV_SETS; set++) {
        int8 at = prim_id * (4 * FLOAT4S_PER_PRIMITIVE) + (18 + 6 * set);
        float8 ax = GATHER_FLOATS8(numbers, at), ay = GATHER_FLOATS8(numbers, at + 1);
        float8 bx = GATHER_FLOATS8(numbers, at + 2), by = GATHER_FLOATS8(numbers, at + 3);
        float8 cx = GATHER_FLOATS8(numbers, at + 4), cy = GATHER_FLOATS8(numbers, at + 5);
        out.u[set] = fma(cx - ax, v, fma(bx - ax, u, ax));
        out.v[set] = fma(cy - ay, v, fma(by - ay, u, ay));
    }
    return out;
}
#endif
