// Vectors of two and three reals for the ray tracing kernels. A `real` is one float, or eight floats of eight rays
// where LANES is 8. Every rounding is explicit (fma; / and sqrt are correctly rounded under STRICT), so that CUDA and
// OpenCL, one lane and eight lanes give the same bits. common/simd.h has `real`, `whole` (an int a lane), `mask` (a
// truth value a lane), truncated, real_of, and FUSED: fma of arguments converted to `real`, which literals need.
// common/portable.h has max_nnan, the maximum of numbers that are never NaN, and xyz and with_w for one lane.
// On CPUs packets/vectors8.h includes this file a second time with LANES 8. So macros such as make_real3 append LANES
// to the name of a function or macro, and both widths of it exist beside one another: make_real3_1, make_real3_8.
#include "common/simd.h"

#if LANES == 1
typedef float2 real2;
typedef float3 real3;
typedef float4 real4;
#define make_real2_1 make_float2
#define make_real3_1 make_float3
#define make_real2(x, y) JOIN(make_real2_, LANES)(x, y)
#define make_real3(x, y, z) JOIN(make_real3_, LANES)(x, y, z)
#define select3_1(m, a, b) ((m) ? (a) : (b))
#define select3(m, a, b) JOIN(select3_, LANES)(m, a, b)  // m ? a : b; one lane evaluates the chosen vector only
#define broadcast1(v) (v)
#define broadcast(v) JOIN(broadcast, LANES)(v)  // the same vector in every lane
// Element `column` of record `index`, in an array of records of `stride` float4s each; packets/vectors8.h has it for
// eight indices.
DEVICE float4 load_rows(GLOBAL const float4 *records, int stride, int column, int index) {
    return records[(size_t)stride * index + column];
}
#else
typedef struct {
    real x, y;
} real2;
typedef struct {
    real x, y, z;
} real3;
typedef struct {
    real x, y, z, w;
} real4;
DEVICE real2 make_real2_8(real x, real y) { return (real2){x, y}; }
DEVICE real3 make_real3_8(real x, real y, real z) { return (real3){x, y, z}; }
DEVICE real3 xyz(real4 v) { return make_real3(v.x, v.y, v.z); }
DEVICE real4 with_w(real3 v, real w) { return (real4){v.x, v.y, v.z, w}; }
DEVICE real3 broadcast8(float3 a) { return make_real3(a.x, a.y, a.z); }
DEVICE real3 select3_8(mask m, real3 a, real3 b) { return make_real3(m ? a.x : b.x, m ? a.y : b.y, m ? a.z : b.z); }
#endif

DEVICE real3 splat3(real x) { return make_real3(x, x, x); }

DEVICE real3 add3(real3 a, real3 b) { return make_real3(a.x + b.x, a.y + b.y, a.z + b.z); }

DEVICE real3 sub3(real3 a, real3 b) { return make_real3(a.x - b.x, a.y - b.y, a.z - b.z); }

DEVICE real3 mul3(real3 a, real3 b) { return make_real3(a.x * b.x, a.y * b.y, a.z * b.z); }

DEVICE real3 scale3(real3 a, real t) { return make_real3(a.x * t, a.y * t, a.z * t); }

DEVICE real3 negate3(real3 a) { return make_real3(-a.x, -a.y, -a.z); }

// a (1 - t) + b t.
DEVICE real3 mix3(real3 a, real3 b, real t) { return add3(scale3(a, 1.0f - t), scale3(b, t)); }

DEVICE real dot_fma(real3 a, real3 b) { return fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)); }

DEVICE real3 cross_fma(real3 a, real3 b) {
    return make_real3(fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x)));
}

// direction * t + origin.
DEVICE real3 madd(real3 direction, real t, real3 origin) {
    return make_real3(fma(direction.x, t, origin.x), fma(direction.y, t, origin.y), fma(direction.z, t, origin.z));
}

DEVICE real3 normalize_fma(real3 a) { return scale3(a, 1.0f / sqrt(dot_fma(a, a))); }

DEVICE real largest_of3(real3 a) { return max_nnan(max_nnan(a.x, a.y), a.z); }

// Moves a ray's origin p off the surface along the normal by up to 256 units in the last place, which prevents
// self-intersection at any scale and is too little to see (C. Waechter and N. Binder, Ray Tracing Gems 2019, ch. 6).
// Adding to the bits of a float moves it by such units. Near 0, where they are tiny, p moves by n / 65536 instead.
DEVICE real offset_axis(real p, real n) {
    whole steps = truncated(256.0f * n);
    return fabs(p) < 1.0f / 32 ? fma((real)(1.0f / 65536), n, p)
                               : real_of_bits(int_bits_of(p) + (p < 0.0f ? -steps : steps));
}

DEVICE real3 offset_ray(real3 p, real3 normal) {
    return make_real3(offset_axis(p.x, normal.x), offset_axis(p.y, normal.y), offset_axis(p.z, normal.z));
}

// Transforms (x, y, z) from an orthonormal frame whose z axis is the unit normal n to world space (T. Duff et al.,
// Building an Orthonormal Basis, Revisited, 2017).
DEVICE real3 local_to_world(real3 n, real x, real y, real z) {
    real s = n.z < 0.0f ? (real)(-1.0f) : (real)(1.0f);
    real a = -1.0f / (s + n.z), b = n.x * n.y * a;
    real3 tangent = make_real3(fma(s * n.x * n.x, a, (real)(1.0f)), s * b, -s * n.x);
    real3 bitangent = make_real3(b, fma(n.y * n.y, a, s), -n.y);
    return madd(n, z, madd(bitangent, y, scale3(tangent, x)));
}

// (cos, sin) of 2 pi x for x in [0, 1), by Taylor polynomials within pi / 4 of the nearest quarter turn: octant 0 and 7
// belong to quarter 0, octants 1 and 2 to quarter 1. Shorter than point_at of common/reproducible_math.h, which takes
// angles of any size; recorded pictures have its bits.
DEVICE real2 cos_sin_2pi(real x) {
    real eighths = floor(x * 8.0f);
    whole octant = truncated(eighths);
    real r = FUSED(eighths + real_of(octant & 1), -0.125f, x) * 6.283185307f;  // within +- pi / 4
    real r2 = r * r;
    real sine = r * FUSED(r2, FUSED(r2, FUSED(r2, -1.9841270e-4f, 8.3333333e-3f), -1.6666667e-1f), 1.0f);
    real cosine = FUSED(r2, FUSED(r2, FUSED(r2, FUSED(r2, 2.4801587e-5f, -1.3888889e-3f), 4.1666667e-2f), -0.5f), 1.0f);
    whole quarter = ((octant + 1) >> 1) & 3;
    mask odd = (quarter & 1) != 0;
    real cos_2pi = odd ? sine : cosine, sin_2pi = odd ? cosine : sine;
    return make_real2((quarter == 1) | (quarter == 2) ? -cos_2pi : cos_2pi, quarter >= 2 ? -sin_2pi : sin_2pi);
}
