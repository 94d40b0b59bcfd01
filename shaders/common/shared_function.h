// For headers that kernels and GLSL fragment shaders both include: SHARED_FUNCTION declares a function in either, and
// GLSL (macro GLSL defined) gets the kernels' names of vectors. Powers and logarithms have the same bits in kernels of
// every device, but not in GLSL.
#ifdef GLSL
#define SHARED_FUNCTION
#define float2 vec2
#define float3 vec3
#define float4 vec4
#define make_float2 vec2
#define make_float3 vec3
#define make_float4 vec4
#define pow_each(v, exponent) pow(v, vec3(exponent))
#define log2_each(v) log2(v)
#define power_of(x, exponent) pow(x, exponent)
#else
#include "common/reproducible_math.h"
#define SHARED_FUNCTION DEVICE
DEVICE float3 pow_each(float3 v, float exponent) {
    return make_float3(power_of(v.x, exponent), power_of(v.y, exponent), power_of(v.z, exponent));
}
DEVICE float3 log2_each(float3 v) {
    float scale = 1.44269504f;  // 1 / ln 2
    return make_float3(logarithm_of(v.x) * scale, logarithm_of(v.y) * scale, logarithm_of(v.z) * scale);
}
#endif
