// Pictures on surfaces: what a triangle's corners carry, and how a picture is read there.
//     attributes  ATTRIBUTE_ROWS float4 a primitive, by its number: the corners' normals, (0, 0, 0) for none, with u of each in
//                 .w; then v. Of six rows the last nine words are a tangent, the corners' colours in two words of 16 bits each,
//                 and two tangents; a tangent is 0 for none, or two coordinates of 15 bits on an octahedron, and bit 30 where
//                 the third direction runs against the cross product of normal and tangent
//     looks       which pictures a material has, by its row
//     pictures    where each begins in `texels`, width, height, and bits: 0-1 wrap of u, 2-3 of v, 4 whether texels are blended
//     texels      256 floats: the sRGB curve; then 8 bits of red, green, blue, alpha each
typedef struct {
    int color, surface, normal, emission;  // rows of pictures, -1 for none
    float normal_scale, alpha, cutoff;
    int mode;  // 0 opaque, 1 there where alpha is at least `cutoff`, 2 there with the probability alpha
} Look;

#define TEXTURES_TAKEN GLOBAL const float4 *RESTRICT attributes, GLOBAL const Look *RESTRICT looks, GLOBAL const int4 *RESTRICT pictures, \
        GLOBAL const uint *RESTRICT texels
#define TEXTURES_GIVEN attributes, looks, pictures, texels

// A coordinate brought near [0, 1), so that it may become a whole number: 0 repeats, 1 stays at the edge, 2 mirrors.
DEVICE float wrapped(float x, int wrap) {
    if (wrap == 1) return clamp(x, 0.0f, 1.0f);
    if (wrap == 0) return x - floor(x);
    float twice = x - 2.0f * floor(0.5f * x);
    return twice > 1.0f ? 2.0f - twice : twice;
}

DEVICE int wrapped_texel(int i, int count, int wrap) {
    if (i >= 0 && i < count) return i;
    if (wrap == 0) return i < 0 ? i + count : i - count;
    return i < 0 ? 0 : count - 1;
}

DEVICE float4 texel_at(GLOBAL const uint *texels, int4 picture, int x, int y, bool srgb) {
    uint word = texels[(uint)picture.x + (uint)y * (uint)picture.y + (uint)x];
    float4 c = make_float4((float)(word & 255u), (float)(word >> 8 & 255u), (float)(word >> 16 & 255u), (float)(word >> 24)) * (1.0f / 255);
    if (srgb) {
        c.x = as_float(texels[word & 255u]);
        c.y = as_float(texels[word >> 8 & 255u]);
        c.z = as_float(texels[word >> 16 & 255u]);
    }
    return c;
}

// A picture at (u, v) from its upper left corner, colours in linear light where it is sRGB.
DEVICE float4 picture_at(GLOBAL const int4 *pictures, GLOBAL const uint *texels, int row, float2 uv, bool srgb) {
    int4 p = pictures[row];
    int across = p.w & 3, down = p.w >> 2 & 3;
    float x = wrapped(uv.x, across) * (float)p.y, y = wrapped(uv.y, down) * (float)p.z;
    if (!(p.w & 16)) return texel_at(texels, p, min((int)x, p.y - 1), min((int)y, p.z - 1), srgb);
    float left = floor(x - 0.5f), top = floor(y - 0.5f), part_x = x - 0.5f - left, part_y = y - 0.5f - top;
    int x0 = wrapped_texel((int)left, p.y, across), x1 = wrapped_texel((int)left + 1, p.y, across);
    int y0 = wrapped_texel((int)top, p.z, down), y1 = wrapped_texel((int)top + 1, p.z, down);
    float4 upper = texel_at(texels, p, x0, y0, srgb) * (1.0f - part_x) + texel_at(texels, p, x1, y0, srgb) * part_x;
    float4 lower = texel_at(texels, p, x0, y1, srgb) * (1.0f - part_x) + texel_at(texels, p, x1, y1, srgb) * part_x;
    return upper * (1.0f - part_y) + lower * part_y;
}

// The coordinates of a point of a triangle, by its number and the weights of its second and third corner.
DEVICE float2 coordinates_at(GLOBAL const float4 *attributes, uint number, float u, float v) {
    GLOBAL const float4 *a = attributes + ATTRIBUTE_ROWS * (size_t)number;
    float4 down = a[3];
    return make_float2(fma(a[2].w - a[0].w, v, fma(a[1].w - a[0].w, u, a[0].w)), fma(down.z - down.x, v, fma(down.y - down.x, u, down.x)));
}

// The corners' normals between them, not unit; (0, 0, 0) where there are none.
DEVICE float3 smooth_normal(GLOBAL const float4 *attributes, uint number, float u, float v) {
    GLOBAL const float4 *a = attributes + ATTRIBUTE_ROWS * (size_t)number;
    return madd(xyz(a[2]), v, madd(xyz(a[1]), u, xyz(a[0]) * (1.0f - u - v)));
}

// The direction in which u grows along a triangle with these edges, and whether v grows against the cross product of normal and
// it, as in pictures whose v runs downwards.
DEVICE float3 tangent_along_u(GLOBAL const float4 *attributes, uint number, float3 edge1, float3 edge2, bool *mirrored) {
    GLOBAL const float4 *a = attributes + ATTRIBUTE_ROWS * (size_t)number;
    float4 down = a[3];
    float u1 = a[1].w - a[0].w, u2 = a[2].w - a[0].w, v1 = down.y - down.x, v2 = down.z - down.x;
    float area = fma(u1, v2, -(u2 * v1));
    *mirrored = area > 0.0f;
    return (edge1 * v2 + edge2 * -v1) * (area < 0.0f ? -1.0f : 1.0f);
}

#if ATTRIBUTE_ROWS > 4
DEVICE uint word_of(GLOBAL const float4 *attributes, uint number, uint word) {
    return ((GLOBAL const uint *)(attributes + ATTRIBUTE_ROWS * (size_t)number))[word];
}

// A corner's tangent, (0, 0, 0) for none.
DEVICE float3 tangent_of(uint word) {
    float x = fma((float)(word & 0x7fffu), 2.0f / 32767.0f, -1.0f), y = fma((float)(word >> 15 & 0x7fffu), 2.0f / 32767.0f, -1.0f);
    float z = 1.0f - fabs(x) - fabs(y), over = larger(-z, 0.0f);
    if (word == 0) return make_float3(0.0f, 0.0f, 0.0f);
    return normalize_fma(make_float3(x + (x < 0.0f ? over : -over), y + (y < 0.0f ? over : -over), z));
}

// The corners' tangents between them, and whether the third direction runs against the cross product.
DEVICE float3 corners_tangent(GLOBAL const float4 *attributes, uint number, float u, float v, bool *against) {
    uint first = word_of(attributes, number, 15u);
    float3 second = tangent_of(word_of(attributes, number, 22u)), third = tangent_of(word_of(attributes, number, 23u));
    *against = (first >> 30 & 1u) != 0;
    return madd(third, v, madd(second, u, tangent_of(first) * (1.0f - u - v)));
}

// The corners' colours between them.
DEVICE float4 corners_tint(GLOBAL const float4 *attributes, uint number, float u, float v) {
    float4 colour = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (uint corner = 0; corner < 3; corner++) {
        uint low = word_of(attributes, number, 16u + 2u * corner), high = word_of(attributes, number, 17u + 2u * corner);
        float4 one = make_float4((float)(low & 65535u), (float)(low >> 16), (float)(high & 65535u), (float)(high >> 16));
        colour = colour + one * ((corner == 0 ? 1.0f - u - v : corner == 1 ? u : v) * (1.0f / 65535));
    }
    return colour;
}
#else
DEVICE float3 corners_tangent(GLOBAL const float4 *attributes, uint number, float u, float v, bool *against) {
    return make_float3(0.0f, 0.0f, 0.0f);
}

DEVICE float4 corners_tint(GLOBAL const float4 *attributes, uint number, float u, float v) {
    return make_float4(1.0f, 1.0f, 1.0f, 1.0f);
}
#endif

// A shading normal bent so far that the viewer is in front of it.
DEVICE float3 facing(float3 normal, float3 incoming) {
    float front = -dot_fma(normal, incoming);
    return front < 0.02f ? normalize_fma(madd(incoming, front - 0.02f, normal)) : normal;
}

// The normal that shades: the corners' one, then the normal picture's, on the side that `flat` is on; turned to the viewer.
// `tangent` is the corners' one, (0, 0, 0) for none.
DEVICE float3 shading_normal(TEXTURES_TAKEN, const Look look, uint number, float u, float v, float3 normal, float3 flat, bool front,
                             float3 edge1, float3 edge2, float3 tangent, bool against, float3 incoming) {
    normal = dot_fma(normal, normal) > 0.0f ? normalize_fma(normal) : flat;
    if (dot_fma(normal, flat) < 0.0f) normal = -normal;
    if (look.normal >= 0) {
        bool mirrored;
        float3 first = tangent_along_u(attributes, number, edge1, edge2, &mirrored);
        if (dot_fma(tangent, tangent) > 0.0f) {
            first = tangent;
            mirrored = against;
        }
        first = madd(normal, -dot_fma(first, normal), first);
        if (dot_fma(first, first) > 0.0f) {
            first = normalize_fma(first);
            float3 second = cross_fma(normal, first);
            if (mirrored != (dot_fma(flat, cross_fma(edge1, edge2)) < 0.0f)) second = -second;
            float4 c = picture_at(pictures, texels, look.normal, coordinates_at(attributes, number, u, v), false);
            float3 bend = make_float3(fma(c.x, 2.0f, -1.0f) * look.normal_scale, fma(c.y, 2.0f, -1.0f) * look.normal_scale, fma(c.z, 2.0f, -1.0f));
            normal = normalize_fma(madd(second, bend.y, madd(first, bend.x, normal * larger(bend.z, 1e-3f))));
        }
    }
    return facing(front ? normal : -normal, incoming);
}

// The material as its pictures colour it at a point.
DEVICE Material coloured(TEXTURES_TAKEN, Material m, const Look look, float2 uv) {
    if (look.color >= 0) {
        float4 c = picture_at(pictures, texels, look.color, uv, true);
        m.color = m.color * make_float4(c.x, c.y, c.z, 1.0f);
    }
    if (look.surface >= 0) {
        float4 c = picture_at(pictures, texels, look.surface, uv, false);
        m.roughness *= c.y;
        m.metallic *= c.z;
    }
    if (look.emission >= 0) {
        float4 c = picture_at(pictures, texels, look.emission, uv, true);
        m.emission = m.emission * make_float4(c.x, c.y, c.z, 1.0f);
    }
    return m;
}

// Whether a ray stops at a point; where half of it is to pass, chance is a hash of the ray, the same in every schedule.
DEVICE bool is_solid(TEXTURES_TAKEN, const Look look, float2 uv, float tint, float4 origin, float3 direction) {
    if (look.mode == 0) return true;
    float alpha = look.alpha * tint;
    if (look.color >= 0) alpha *= picture_at(pictures, texels, look.color, uv, true).w;
    if (look.mode == 1) return alpha >= look.cutoff;
    uint chance = random_key(as_uint(direction.x) ^ as_uint(origin.x), as_uint(direction.y) ^ as_uint(origin.y), as_uint(direction.z) ^ as_uint(origin.z));
    return uniform_float(random_bits(chance, 0u)) < alpha;
}
