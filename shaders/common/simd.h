// A work item carries LANES points: 1 where the hardware joins work items into vectors (GPUs), 4 to 16 on CPUs, whose
// compilers
// do not join divergent work items. `real`, `whole` and `bits` are a float, an int and a uint of every point; `mask`
// tells what
// a comparison of them gives. `condition ? a : b` selects point by point, so kernels over these words have no other
// branches.
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
#define LOAD_LANES_BITS(pointer) JOIN(vload, LANES)(0, pointer)
#define LOAD_LANES_WHOLE(pointer) JOIN(vload, LANES)(0, pointer)
#if LANES == 16
#define LANE_NUMBERS ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define GATHER_LANES(value, from, at)                                                                           \
    value = (float16)((from)[(at)[0]], (from)[(at)[1]], (from)[(at)[2]], (from)[(at)[3]], (from)[(at)[4]],      \
                      (from)[(at)[5]], (from)[(at)[6]], (from)[(at)[7]], (from)[(at)[8]], (from)[(at)[9]],      \
                      (from)[(at)[10]], (from)[(at)[11]], (from)[(at)[12]], (from)[(at)[13]], (from)[(at)[14]], \
                      (from)[(at)[15]])
#elif LANES == 8
#define LANE_NUMBERS ((int8)(0, 1, 2, 3, 4, 5, 6, 7))
#define GATHER_LANES(value, from, at)                                                                     \
    value = (float8)((from)[(at)[0]], (from)[(at)[1]], (from)[(at)[2]], (from)[(at)[3]], (from)[(at)[4]], \
                     (from)[(at)[5]], (from)[(at)[6]], (from)[(at)[7]])
#else
#define LANE_NUMBERS ((int4)(0, 1, 2, 3))
#define GATHER_LANES(value, from, at) \
    value = (float4)((from)[(at)[0]], (from)[(at)[1]], (from)[(at)[2]], (from)[(at)[3]])
#endif
#endif

#define FUSED(a, b, c) fma((real)(a), (real)(b), (real)(c))
