// Vectors of eight lanes, the paths `begin` to `begin` + 7 of a packet: loads from and stores to the packet's rows
// (PathPacket), gathers from buffers, and common/vectors.h compiled a second time for float8. Included by
// packets/shade_simd8.h.
#include "raytracing/packets/path_packet.h"

// Gathers: the words or floats at eight indices of a buffer or a constant table.
#ifdef __AVX2__
#define GATHER_WORDS8(buffer, i) \
    as_uint8(__builtin_ia32_gatherd_d256((int8)(0), (const int *)(size_t)(buffer), as_int8(i), (int8)(-1), 4))
#define GATHER_FLOATS8(buffer, i) as_float8(GATHER_WORDS8(buffer, i))
#else
#define EIGHT_OF(from, at)                                                                                \
    (from)[(at).s0], (from)[(at).s1], (from)[(at).s2], (from)[(at).s3], (from)[(at).s4], (from)[(at).s5], \
        (from)[(at).s6], (from)[(at).s7]
#define GATHER_WORDS8(from, at) (uint8)(EIGHT_OF((GLOBAL const uint *)(from), at))
#define GATHER_FLOATS8(from, at) (float8)(EIGHT_OF(from, at))
#endif

// Between lanes8.h and lanes1.h, vectors.h defines for example real3 as Float3x8, make_real3 as make_real3_8,
// and an overload of dot_fma for Float3x8.
#include_again "raytracing/packets/lanes8.h"
#include_again "common/vectors.h"

// Returns float4 number `column` of the eight records with indices `at`, each of `stride` float4s, transposed to one
// vector a component.
DEVICE Float4x8 load_rows(GLOBAL const float4 *records, int stride, int column, int8 at) {
#define ROW(i) records[stride * at.s##i + column]
    float8 a = (float8)(ROW(0), ROW(4)), b = (float8)(ROW(1), ROW(5)), c = (float8)(ROW(2), ROW(6)),
           d = (float8)(ROW(3), ROW(7));
#undef ROW
    // ab holds x and y of records 0 and 1, then 4 and 5: x0 x1 y0 y1 x4 x5 y4 y5; cd x and y of 2 and 3, then 6 and 7.
    // ef and gh hold z and w likewise.
    float8 ab = (float8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5),
           cd = (float8)(c.s0, d.s0, c.s1, d.s1, c.s4, d.s4, c.s5, d.s5);
    float8 ef = (float8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7),
           gh = (float8)(c.s2, d.s2, c.s3, d.s3, c.s6, d.s6, c.s7, d.s7);
    Float4x8 rows = {(float8)(ab.s01, cd.s01, ab.s45, cd.s45), (float8)(ab.s23, cd.s23, ab.s67, cd.s67),
                     (float8)(ef.s01, gh.s01, ef.s45, gh.s45), (float8)(ef.s23, gh.s23, ef.s67, gh.s67)};
    return rows;
}

#include_again "raytracing/packets/lanes1.h"

// load8 returns the lanes from `begin` on of three rows of coordinates; store8 stores the lanes in `mask`. They follow
// lanes1.h, because before it `mask` is a macro for the type int8.
DEVICE Float3x8 load8(const Floats32 *rows, uint begin) {
    return make_real3_8(rows[0].v8[begin >> 3], rows[1].v8[begin >> 3], rows[2].v8[begin >> 3]);
}

// Uses the variables `begin` and `mask` of the function that stores.
#define MASKED_STORE(row, value) (row).v8[begin >> 3] = mask ? value : (row).v8[begin >> 3]
DEVICE void store8(Floats32 *rows, uint begin, int8 mask, Float3x8 value) {
    MASKED_STORE(rows[0], value.x);
    MASKED_STORE(rows[1], value.y);
    MASKED_STORE(rows[2], value.z);
}

// Returns a mask with -1 in the lanes whose bit is set.
DEVICE int8 mask_of_bits8(uint bits) { return ((int8)((int)bits) & (int8)(1, 2, 4, 8, 16, 32, 64, 128)) != 0; }

// Sets the shadow rays of the lanes in the bit mask `shadows`. `contribution` is what each adds to its path's radiance
// if it is unoccluded.
DEVICE void set_shadow_rays8(PathPacket *packet, uint begin, uint shadows, Float3x8 origin, Float3x8 direction,
                             float8 t_max, Float3x8 contribution) {
    int8 mask = mask_of_bits8(shadows);
    store8(packet->shadows.origin, begin, mask, origin);
    store8(packet->shadows.direction, begin, mask, direction);
    MASKED_STORE(packet->shadows.t, t_max);
    store8(packet->contribution, begin, mask, contribution);
}
