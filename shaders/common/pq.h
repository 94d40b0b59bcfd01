// Encodes colors for HDR displays by the PQ transfer curve (SMPTE ST 2084) in Rec. 2020 primaries.
// images/tone_mapping.h includes this file, for kernels and GLSL.
#include "common/shared_function.h"

// The luminance in nits that a pixel value of 1 is displayed at: diffuse white (ITU-R BT.2408).
#define REFERENCE_WHITE 203.0f

// The PQ code, 0 to 1, of a luminance in nits.
SHARED_FUNCTION float pq_encoded(float nits) {
    float y = power_of(clamp(nits * 1e-4f, 0.0f, 1.0f), 0.1593017578125f);
    return power_of((0.8359375f + 18.8515625f * y) / (1.0f + 18.6875f * y), 78.84375f);
}

// The PQ codes, 0 to 1, of a linear sRGB color, after its conversion to Rec. 2020 primaries (ITU-R BT.2087).
SHARED_FUNCTION float3 pq_pixel(float3 c) {
    float r = 0.6274039f * c.x + 0.3292830f * c.y + 0.0433131f * c.z;
    float g = 0.0690973f * c.x + 0.9195404f * c.y + 0.0113623f * c.z;
    float b = 0.0163914f * c.x + 0.0880133f * c.y + 0.8955953f * c.z;
    return make_float3(pq_encoded(r * REFERENCE_WHITE), pq_encoded(g * REFERENCE_WHITE),
                       pq_encoded(b * REFERENCE_WHITE));
}
