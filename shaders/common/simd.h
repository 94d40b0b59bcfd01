// SIMD types for kernels in which one work-item computes LANES independent elements (rays, points of a flame). LANES is
// 1 on GPUs, whose hardware runs work-items in lockstep, and 4 to 16 on CPUs, whose compilers do not vectorize
// divergent work-items. `real`, `whole` and `bits` hold a float, an int and a uint per lane; a comparison gives a
// `mask`, -1 (true) or 0 per lane, or a bool if LANES is 1. `condition ? a : b` selects lane by lane, so these kernels
// need no branches. The host defines LANES: 1 where it does not, else 4, 8 or 16. A macro of several widths joins LANES
// to a name when it is used, since packets/lanes8.h redefines LANES. Conversions, lane by lane:
//     bits_of, int_bits_of      the bits of a real as bits or as whole; real_of_bits: the real with these bits
//     truncated, truncated_bits a real rounded toward zero, as whole or as bits; real_of: a whole or bits as real
//     whole_of_bits, bits_of_whole   between whole and bits, modulo 2^32
// For LANES of 4 to 16 only: LOAD_LANES and STORE_LANES of consecutive floats; LANE_NUMBERS, 0, 1, 2, ...; and
// GATHER_LANES, the floats from[at[lane]] of a table. FUSED(a, b, c) = a b + c, rounded once.
#ifndef LANES
#define LANES 1
#endif
#define JOIN_WORDS(a, b) a##b
#define JOIN(a, b) JOIN_WORDS(a, b)
#define as_uint1(x) as_uint(x)
#define as_int1(x) as_int(x)
#define as_float1(x) as_float(x)
#define convert_int1(x) ((int)(x))
#define convert_uint1(x) ((uint)(x))
#define convert_float1(x) ((float)(x))
#define bits_of(x) JOIN(as_uint, LANES)(x)
#define int_bits_of(x) JOIN(as_int, LANES)(x)
#define real_of_bits(x) JOIN(as_float, LANES)(x)
// Not by JOIN: convert_int is a macro of PoCL, which must not be expanded before the width is appended.
#define CONVERT_WORDS(type, lanes, x) convert_##type##lanes(x)
#define CONVERT(type, lanes, x) CONVERT_WORDS(type, lanes, x)
#define truncated(x) CONVERT(int, LANES, x)
#define truncated_bits(x) CONVERT(uint, LANES, x)
#define real_of(x) CONVERT(float, LANES, x)
#define whole_of_bits(x) CONVERT(int, LANES, x)  // modulo 2^32, as in C
#define bits_of_whole(x) CONVERT(uint, LANES, x)
// Gathers of global memory: from[at[lane]] in every lane, as uint or float; for eight lanes in packets/vectors8.h.
#define GATHER_WORDS1(from, at) ((GLOBAL const uint *)(from))[at]
#define GATHER_WORDS(from, at) JOIN(GATHER_WORDS, LANES)(from, at)
#define GATHER_FLOATS1(from, at) (from)[at]
#define GATHER_FLOATS(from, at) JOIN(GATHER_FLOATS, LANES)(from, at)
// True if any lane of a mask is; movemask8 (common/portable.h) is one instruction.
#define ANY_LANE1(m) (m)
#define ANY_LANE4(m) any(m)
#define ANY_LANE8(m) (movemask8(m) != 0)
#define ANY_LANE16(m) any(m)
#define ANY_LANE(m) JOIN(ANY_LANE, LANES)(m)
#if LANES == 1
typedef float real;
typedef int whole;
typedef uint bits;
typedef bool mask;
#else
typedef JOIN(float, LANES) real;
typedef JOIN(int, LANES) whole;
typedef JOIN(uint, LANES) bits;
typedef JOIN(int, LANES) mask;
#define STORE_LANES(value, pointer) JOIN(vstore, LANES)(value, 0, pointer)
#define LOAD_LANES(pointer) JOIN(vload, LANES)(0, pointer)
#define LANE_NUMBERS4 ((int4)(0, 1, 2, 3))
#define LANE_NUMBERS8 ((int8)(LANE_NUMBERS4, LANE_NUMBERS4 + 4))
#define LANE_NUMBERS16 ((int16)(LANE_NUMBERS8, LANE_NUMBERS8 + 8))
#define LANE_NUMBERS JOIN(LANE_NUMBERS, LANES)
#define GATHER4(from, at) (float4)((from)[(at).x], (from)[(at).y], (from)[(at).z], (from)[(at).w])
#define GATHER8(from, at) (float8)(GATHER4(from, (at).lo), GATHER4(from, (at).hi))
#define GATHER16(from, at) (float16)(GATHER8(from, (at).lo), GATHER8(from, (at).hi))
#define GATHER_LANES(value, from, at) value = JOIN(GATHER, LANES)(from, at)
#endif

#define FUSED(a, b, c) fma((real)(a), (real)(b), (real)(c))  // converted, as literals need where LANES is not 1
