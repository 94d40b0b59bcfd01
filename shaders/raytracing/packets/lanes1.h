// Ends the code for eight lanes that packets/lanes8.h begins: restores the macros and types of one lane. Included by
// shade_simd8.h and vectors8.h.
#pragma pop_macro("DEVICE")
#pragma pop_macro("DEVICE_NOINLINE_CPU")
#undef LANES
#define LANES 1
#undef real
#undef whole
#undef bits
#undef mask
#undef real2
#undef real3
#undef real4
