// SIMD types for kernels in which one work-item computes LANES independent elements (rays, points of a flame). LANES is
// 1 on GPUs, whose hardware runs work-items in lockstep, and 4 to 16 on CPUs, whose compilers do not vectorize
// divergent work-items. `real`, `whole` and `bits` hold a float, an int and a uint per lane; a comparison gives a
// `mask`, -1 (true) or 0 per lane, or a bool if LANES is 1. `condition ? a : b` selects lane by lane, so these kernels
// need no branches. X_of_Y converts Y to X lane by lane: bits_of and real_of_bits reinterpret, truncated and real_of
// convert values.
#ifndef LANES
#define LANES 1
#endif
#define JOIN_WORDS(a, b) a##b
#define JOIN(a, b) JOIN_WORDS(a, b)
#define as_uint1(x) as_uint(x)
#define as_int1(x) as_int(x)
#define as_float1(x) as_float(x)
#define bits_of(x) JOIN(as_uint, LANES)(x)
#define int_bits_of(x) JOIN(as_int, LANES)(x)
#define real_of_bits(x) JOIN(as_float, LANES)(x)
#define truncated1(x) ((int)(x))
#define truncated4(x) convert_int4(x)
#define truncated8(x) convert_int8(x)
#define truncated16(x) convert_int16(x)
#define truncated(x) JOIN(truncated, LANES)(x)
#define truncated_bits1(x) ((uint)(x))
#define truncated_bits8(x) convert_uint8(x)
#define truncated_bits(x) JOIN(truncated_bits, LANES)(x)
#define real_of1(x) ((float)(x))
#define real_of4(x) convert_float4(x)
#define real_of8(x) convert_float8(x)
#define real_of16(x) convert_float16(x)
#define real_of(x) JOIN(real_of, LANES)(x)
#define whole_of_bits1(x) ((int)(x))
#define whole_of_bits4(x) as_int4(x)
#define whole_of_bits8(x) as_int8(x)
#define whole_of_bits16(x) as_int16(x)
#define whole_of_bits(x) JOIN(whole_of_bits, LANES)(x)
#define bits_of_whole1(x) ((uint)(x))
#define bits_of_whole4(x) as_uint4(x)
#define bits_of_whole8(x) as_uint8(x)
#define bits_of_whole16(x) as_uint16(x)
#define bits_of_whole(x) JOIN(bits_of_whole, LANES)(x)
// Gather: from[at[lane]] in every lane, as uint or float. raytracing/packets/vectors8.h defines both for eight lanes.
#define GATHER_WORDS1(from, at) ((GLOBAL const uint *)(from))[at]
#define GATHER_WORDS(from, at) JOIN(GATHER_WORDS, LANES)(from, at)
#define GATHER_FLOATS1(from, at) (from)[at]
#define GATHER_FLOATS(from, at) JOIN(GATHER_FLOATS, LANES)(from, at)
#define ALL_LANES ((mask)(-1))
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

#define FUSED(a, b, c) fma((real)(a), (real)(b), (real)(c))
