// For headers that kernels and GLSL fragment shaders both include: SHARED_FUNCTION declares a function in either, and
// GLSL (macro GLSL defined) gets the kernels' names of vectors.
#ifdef GLSL
#define SHARED_FUNCTION
#define float2 vec2
#define float3 vec3
#define float4 vec4
#define make_float2 vec2
#define make_float3 vec3
#define pow_each(v, exponent) pow(v, vec3(exponent))
#define log2_each(v) log2(v)
#else
#define SHARED_FUNCTION DEVICE
#endif
