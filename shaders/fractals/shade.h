// Colors of escape-time fractals, for kernels and GLSL. The launcher defines PALETTE: 1 to 4 choose colors, 0 writes
// the smooth iteration count and the distance estimate in pixels instead.
#include "common/shared_function.h"

#define C(r, g, b) make_float3(r, g, b)
#if PALETTE == 1
#define STOPS                                                                                         \
    C(0.002f, 0.004f, 0.03f), C(0.01f, 0.06f, 0.32f), C(0.12f, 0.45f, 0.85f), C(0.95f, 0.93f, 0.80f), \
        C(0.98f, 0.48f, 0.05f), C(0.22f, 0.02f, 0.01f)
#elif PALETTE == 2
#define STOPS                                                                                           \
    C(0.001f, 0.003f, 0.012f), C(0.003f, 0.05f, 0.12f), C(0.02f, 0.28f, 0.38f), C(0.45f, 0.85f, 0.80f), \
        C(0.95f, 0.98f, 1.0f), C(0.06f, 0.12f, 0.40f)
#elif PALETTE == 3
#define STOPS                                                                                         \
    C(0.012f, 0.001f, 0.02f), C(0.17f, 0.008f, 0.16f), C(0.70f, 0.06f, 0.12f), C(1.0f, 0.42f, 0.08f), \
        C(1.0f, 0.92f, 0.55f), C(0.14f, 0.03f, 0.20f)
#else
#define GRAY(x) make_float3(x, x, x)
#define STOPS GRAY(0.003f), GRAY(0.03f), GRAY(0.16f), GRAY(0.6f), GRAY(1.0f), GRAY(0.1f)
#endif

// Linear color at palette coordinate t in cycles; six colors per cycle.
SHARED_FUNCTION float3 palette(float t) {
#ifdef GLSL
    const float3 stops[6] = float3[6](STOPS);
    int i = int((t - floor(t)) * 6.0) % 6;
#else
    const float3 stops[6] = {STOPS};
    int i = (int)((t - floor(t)) * 6.0f) % 6;
#endif
    float x = (t - floor(t)) * 6.0f, f = x - floor(x);
    f = f * f * (3.0f - 2.0f * f);
    return stops[i] * (1.0f - f) + stops[(i + 1) % 6] * f;
}

// The output for a smooth iteration count (below 0: inside the set), a palette coordinate in cycles, an exterior
// distance estimate, the direction of length 1 in which the potential grows, and the strength `relief` of the relief
// shading, 0 to 1.
SHARED_FUNCTION float4 shade(float count, float coordinate, float distance_in_pixels, float2 normal, float relief) {
#if PALETTE == 0
    return make_float4(count, distance_in_pixels, 0.0f, 1.0f);
#else
    if (count < 0.0f) return make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    // relief: a landscape lit from the upper left, and darker where the set is nearer than 0.7 pixels
    float light = min(max(0.5f + 0.5f * (-0.6f * normal.x + 0.8f * normal.y), 0.0f), 1.0f);
    float gain = (1.0f - relief + relief * (0.15f + 1.25f * light)) * min(1.0f, sqrt(distance_in_pixels) * 1.2f);
    float3 color = palette(coordinate) * gain;
    return make_float4(color.x, color.y, color.z, 1.0f);
#endif
}
