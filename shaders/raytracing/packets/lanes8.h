// From here to packets/lanes1.h, headers are compiled for eight lanes on CPUs, one path a lane: `real` is a float8,
// `whole` an int8, `bits` a uint8 and `mask` an int8 with -1 for true (common/simd.h has the types of one lane).
// Functions overload their namesakes of one lane by an attribute of clang, the compiler of all OpenCL drivers for CPUs.
#pragma push_macro("DEVICE")
#undef DEVICE
#define DEVICE static inline __attribute__((always_inline, overloadable))
#pragma push_macro("DEVICE_NOINLINE_CPU")
#undef DEVICE_NOINLINE_CPU
#define DEVICE_NOINLINE_CPU static __attribute__((noinline, overloadable))
#undef LANES
#define LANES 8
#define real float8
#define whole int8
#define bits uint8
#define mask int8
#define real2 Float2x8
#define real3 Float3x8
#define real4 Float4x8
