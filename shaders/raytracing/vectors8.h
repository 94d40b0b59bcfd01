// Vectors of eight lanes for shade_simd8.h: the functions of bvh/geometry.h, sampler.h and common/reproducible_math.h
// of these names, with the same roundings; rows of packets; gathers.
#include "raytracing/path_packet.h"

typedef struct {
    float8 x, y, z;
} Float3x8;

#define float3x8(x, y, z) ((Float3x8){x, y, z})

DEVICE Float3x8 splat3x8(float3 a) { return float3x8((float8)(a.x), (float8)(a.y), (float8)(a.z)); }

// The eight lanes from `begin` on of three rows of coordinates; store8 leaves the lanes outside `mask` as they are.
DEVICE Float3x8 load8(const Floats32 *rows, uint begin) {
    return float3x8(rows[0].v8[begin >> 3], rows[1].v8[begin >> 3], rows[2].v8[begin >> 3]);
}

#define MASKED_STORE(row, value) (row).v8[begin >> 3] = mask ? value : (row).v8[begin >> 3]
DEVICE void store8(Floats32 *rows, uint begin, int8 mask, Float3x8 value) {
    MASKED_STORE(rows[0], value.x);
    MASKED_STORE(rows[1], value.y);
    MASKED_STORE(rows[2], value.z);
}

// All ones in the lanes whose bit is set.
DEVICE int8 mask_of_bits8(uint bits) { return ((int8)((int)bits) & (int8)(1, 2, 4, 8, 16, 32, 64, 128)) != 0; }

// Sets the shadow rays of the lanes of `shadows`, and what they add where nothing is hit.
DEVICE void set_shadow_rays8(PathPacket *packet, uint begin, uint shadows, Float3x8 origin, Float3x8 direction,
                             float8 t_max, Float3x8 contribution) {
    int8 mask = mask_of_bits8(shadows);
    store8(packet->shadows.origin, begin, mask, origin);
    store8(packet->shadows.direction, begin, mask, direction);
    MASKED_STORE(packet->shadows.t, t_max);
    store8(packet->contribution, begin, mask, contribution);
}

// Eight lanes of the functions of bvh/geometry.h and lights.h of these names.
DEVICE Float3x8 sub8(Float3x8 a, Float3x8 b) { return float3x8(a.x - b.x, a.y - b.y, a.z - b.z); }

DEVICE Float3x8 add8(Float3x8 a, Float3x8 b) { return float3x8(a.x + b.x, a.y + b.y, a.z + b.z); }

DEVICE Float3x8 mul8(Float3x8 a, Float3x8 b) { return float3x8(a.x * b.x, a.y * b.y, a.z * b.z); }

DEVICE Float3x8 scale8(Float3x8 a, float8 t) { return float3x8(a.x * t, a.y * t, a.z * t); }

DEVICE Float3x8 select8(int8 mask, Float3x8 a, Float3x8 b) {
    return float3x8(mask ? a.x : b.x, mask ? a.y : b.y, mask ? a.z : b.z);
}

DEVICE Float3x8 madd8(Float3x8 b, float8 t, Float3x8 a) {
    return float3x8(fma(b.x, t, a.x), fma(b.y, t, a.y), fma(b.z, t, a.z));
}

DEVICE float8 dot8(Float3x8 a, Float3x8 b) { return fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)); }

DEVICE Float3x8 cross8(Float3x8 a, Float3x8 b) {
    return float3x8(fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x)));
}

DEVICE Float3x8 normalize8(Float3x8 a) { return scale8(a, 1.0f / sqrt(dot8(a, a))); }

DEVICE float8 offset_axis8(float8 p, float8 n) {
    int8 steps = convert_int8(256.0f * n);
    return fabs(p) < 1.0f / 32 ? fma((float8)(1.0f / 65536), n, p)
                               : as_float8(as_int8(p) + (p < 0.0f ? -steps : steps));
}

DEVICE Float3x8 local_to_world8(Float3x8 n, float8 x, float8 y, float8 z) {
    float8 s = n.z < 0.0f ? (float8)(-1.0f) : (float8)(1.0f), one = (float8)(1.0f);
    float8 a = -1.0f / (s + n.z), b = n.x * n.y * a;
    Float3x8 first = float3x8(fma(s * n.x * n.x, a, one), s * b, -s * n.x),
             second = float3x8(b, fma(n.y * n.y, a, s), -n.y);
    return madd8(n, z, madd8(second, y, scale8(first, x)));
}

DEVICE void cos_sin_2pi8(float8 x, float8 *cosine, float8 *sine) {
    float8 eighths = floor(x * 8.0f);
    int8 octant = convert_int8(eighths);
    float8 r = fma(eighths + convert_float8(octant & 1), (float8)(-0.125f), x) * 6.283185307f, r2 = r * r,
           one = (float8)(1.0f);
    float8 s =
        r * fma(r2, fma(r2, fma(r2, (float8)(-1.9841270e-4f), (float8)(8.3333333e-3f)), (float8)(-1.6666667e-1f)), one);
    float8 c = fma(r2,
                   fma(r2, fma(r2, fma(r2, (float8)(2.4801587e-5f), (float8)(-1.3888889e-3f)), (float8)(4.1666667e-2f)),
                       (float8)(-0.5f)),
                   one);
    int8 quarter = (octant + 1) >> 1 & 3, odd = (quarter & 1) != 0;
    float8 level = odd ? s : c, upright = odd ? c : s;
    *cosine = (quarter == 1) | (quarter == 2) ? -level : level;
    *sine = quarter >= 2 ? -upright : upright;
}

// 32 random bits to [0, 1).
DEVICE float8 uniform_float8(uint8 bits) { return convert_float8(bits >> 8) * 5.9604644775390625e-8f; }

DEVICE uint8 mix_bits8(uint8 x) {
    x = x * 747796405u + 2891336453u;
    x = ((x >> ((x >> 28) + 4u)) ^ x) * 277803737u;
    return (x >> 22) ^ x;
}

DEVICE uint8 reverse_bits8(uint8 x) {
    x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
    x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
    x = (x & 0x00ff00ffu) << 8 | (x >> 8 & 0x00ff00ffu);
    return x << 16 | x >> 16;
}

DEVICE uint8 laine_karras_permutation8(uint8 x, uint8 seed) {
    x ^= x * 0x3d20adeau;
    x += seed;
    x *= (seed >> 16) | 1u;
    x ^= x * 0x05526c56u;
    x ^= x * 0x53a22864u;
    return x;
}

// sample_bits of eight paths of one sample.
DEVICE uint8 sample_bits8(uint8 seeds, uint sample, uint dimension) {
#if SAMPLER
    uint8 pair = mix_bits8(seeds + (dimension >> 1) * 0x9e3779b9u);
    uint8 digits = reverse_bits8(laine_karras_permutation8((uint8)(sample), pair));
    if (dimension & 1u) {
        digits ^= digits >> 16;
        digits ^= (digits & 0xff00ff00u) >> 8;
        digits ^= (digits & 0xf0f0f0f0u) >> 4;
        digits ^= (digits & 0xccccccccu) >> 2;
        digits ^= (digits & 0xaaaaaaaau) >> 1;
    }
    return reverse_bits8(laine_karras_permutation8(digits, mix_bits8(pair ^ (0x68bc21ebu + (dimension & 1u)))));
#else
    return mix_bits8(mix_bits8(seeds + sample) ^ (dimension * 0x9e3779b9u));
#endif
}

DEVICE float8 with_sign_of8(float8 size, float8 sign) {
    return as_float8((as_uint8(size) & 0x7fffffffu) | (as_uint8(sign) & 0x80000000u));
}

DEVICE float8 angle_of8(float8 y, float8 x) {
    float8 ax = fabs(x), ay = fabs(y);
    int8 steep = ay > ax;
    float8 large = steep ? ay : ax, little = steep ? ax : ay;
    int8 middle = little > 0.4142135623730950f * large;
    float8 numerator = middle ? little - large : little, denominator = middle ? little + large : large;
    float8 t = numerator / (denominator == 0.0f ? (float8)(1.0f) : denominator), z = t * t;
    float8 p = fma(z, (float8)(8.05374449538e-2f), (float8)(-1.38776856032e-1f));
    p = fma(p, z, (float8)(1.99777106478e-1f));
    p = fma(p, z, (float8)(-3.33329491539e-1f));
    float8 a = fma(p * z, t, t);
    a = middle ? a + 0.785398163397448f : a;
    a = steep ? 1.570796326794897f - a : a;
    a = as_int8(x) < 0 ? 3.141592653589793f - a : a;
    return with_sign_of8(a, y);
}

// The words at eight indices of a buffer or a constant table.
#ifdef __AVX2__
#define GATHER8(from, at) \
    as_uint8(__builtin_ia32_gatherd_d256((int8)(0), (const int *)(size_t)(from), at, (int8)(-1), 4))
#define GATHER_FLOATS8(from, at) as_float8(GATHER8(from, at))
#else
#define EIGHT_OF(from, at)                                                                                \
    (from)[(at).s0], (from)[(at).s1], (from)[(at).s2], (from)[(at).s3], (from)[(at).s4], (from)[(at).s5], \
        (from)[(at).s6], (from)[(at).s7]
#define GATHER8(from, at) (uint8)(EIGHT_OF((GLOBAL const uint *)(from), at))
#define GATHER_FLOATS8(from, at) (float8)(EIGHT_OF(from, at))
#endif

DEVICE float8 luminance8(Float3x8 c) { return fma((float8)(0.0722f), c.z, fma((float8)(0.7152f), c.y, 0.2126f * c.x)); }

// Transposes float4 number `column` of eight records of `stride` float4s: x, y, z into *columns, w returned.
DEVICE float8 columns8(GLOBAL const float4 *records, int stride, int column, int8 at, Float3x8 *columns) {
#define ROW(i) records[stride * at.s##i + column]
    float8 a = (float8)(ROW(0), ROW(4)), b = (float8)(ROW(1), ROW(5)), c = (float8)(ROW(2), ROW(6)),
           d = (float8)(ROW(3), ROW(7));
#undef ROW
    float8 ab = (float8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5),
           cd = (float8)(c.s0, d.s0, c.s1, d.s1, c.s4, d.s4, c.s5, d.s5);
    float8 ef = (float8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7),
           gh = (float8)(c.s2, d.s2, c.s3, d.s3, c.s6, d.s6, c.s7, d.s7);
    columns->x = (float8)(ab.s01, cd.s01, ab.s45, cd.s45);
    columns->y = (float8)(ab.s23, cd.s23, ab.s67, cd.s67);
    columns->z = (float8)(ef.s01, gh.s01, ef.s45, gh.s45);
    return (float8)(ef.s23, gh.s23, ef.s67, gh.s67);
}
