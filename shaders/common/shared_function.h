// SHARED_FUNCTION marks a function that kernels and GLSL both use: scalars only.
#ifdef GLSL
#define SHARED_FUNCTION
#else
#define SHARED_FUNCTION DEVICE
#endif
