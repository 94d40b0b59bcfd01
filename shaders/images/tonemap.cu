// Tone mapping of a linear picture where no GL is wanted. LEVELS is 255 (PIXEL uchar) or 65535 (PIXEL ushort).
#include "images/tone_mapping.h"

KERNEL tonemap(GLOBAL const float4 *image, GLOBAL PIXEL *shown, int pixels, float exposure, int curve) {
    uint i = thread_index();
    if (i < (uint)pixels) {
        float4 colour = image[i];
        float3 values = displayed(colour.x, colour.y, colour.z, exposure, curve, LEVELS);
        shown[4 * i + 0] = (PIXEL)values.x;
        shown[4 * i + 1] = (PIXEL)values.y;
        shown[4 * i + 2] = (PIXEL)values.z;
        shown[4 * i + 3] = (PIXEL)(clamp(colour.w, 0.0f, 1.0f) * LEVELS + 0.5f);
    }
}
