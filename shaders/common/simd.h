// A work item carries LANES points: 1 where the hardware joins work items into vectors (GPUs), 4 to 16 on CPUs, whose
// compilers do not join divergent work items. `real`, `whole` and `bits` are a float, an int and a uint of every point;
// a comparison of them is a `mask`. `condition ? a : b` selects point by point, so kernels over these words have no
// other branches.
#if LANES == 1
typedef float real;
typedef int whole;
typedef uint bits;
typedef bool mask;
#define bits_of(x) as_uint(x)
#define real_of_bits(x) as_float(x)
#define whole_of_bits(x) ((int)(x))
#define bits_of_whole(x) ((uint)(x))
#define truncated(x) ((int)(x))
#define real_of(x) ((float)(x))
#define ANY_LANE(m) (m)
#else
#define JOIN_WORDS(a, b) a##b
#define JOIN(a, b) JOIN_WORDS(a, b)
typedef JOIN(float, LANES) real;
typedef JOIN(int, LANES) whole;
typedef JOIN(uint, LANES) bits;
typedef JOIN(int, LANES) mask;
#define bits_of(x) JOIN(as_uint, LANES)(x)
#define real_of_bits(x) JOIN(as_float, LANES)(x)
#define whole_of_bits(x) JOIN(as_int, LANES)(x)
#define bits_of_whole(x) JOIN(as_uint, LANES)(x)
#define truncated(x) JOIN(convert_int, LANES)(x)
#define real_of(x) JOIN(convert_float, LANES)(x)
#define ANY_LANE(m) any(m)
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
