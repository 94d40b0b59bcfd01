// Tone mapping of a linear picture into 8-bit pixels where no GL is wanted: metering in two fixed-order stages, then the map.
#include "tone.h"

// partial[g] = (sum of log2 luminance, pixels that count) of the run of pixels of group g.
KERNEL meter(GLOBAL const float4 *image, GLOBAL float2 *partial, int pixels, int run) {
    LOCAL_ARRAY(float2, sums, GROUP_SIZE);
    int first = (int)group_index() * run;
    int last = min(first + run, pixels);
    float2 sum = make_float2(0.0f, 0.0f);
    for (int i = first + (int)local_index(); i < last; i += GROUP_SIZE) {
        float4 colour = image[i];
        sum = sum + log_luminance(colour.x, colour.y, colour.z);
    }
    sums[local_index()] = sum;
    BARRIER();
    for (int stride = GROUP_SIZE / 2; stride > 0; stride /= 2) {
        if ((int)local_index() < stride) sums[local_index()] = sums[local_index()] + sums[local_index() + stride];
        BARRIER();
    }
    if (local_index() == 0) partial[group_index()] = sums[0];
}

// metered[0] = (mean log2 luminance, whether any pixel counts). One thread: there are at most a few hundred groups.
KERNEL finish_metering(GLOBAL const float2 *partial, GLOBAL float2 *metered, int groups) {
    if (thread_index() == 0) {
        float2 sum = make_float2(0.0f, 0.0f);
        for (int i = 0; i < groups; i++) sum = sum + partial[i];
        metered[0] = make_float2(sum.y > 0.0f ? sum.x / sum.y : 0.0f, sum.y > 0.0f ? 1.0f : 0.0f);
    }
}

KERNEL tonemap(GLOBAL const float4 *image, GLOBAL uint *shown_pixels, GLOBAL const float2 *metered, int pixels, int automatic,
               float ev, int curve) {
    uint i = thread_index();
    if (i < (uint)pixels) {
        float4 colour = image[i];
        float2 light = metered[0];
        float factor = automatic != 0 && light.y > 0.0f ? automatic_exposure(light.x, ev) : exp2(ev);
        float3 shown = displayed(colour.x, colour.y, colour.z, factor, curve);
        uint alpha = (uint)(clamp(colour.w, 0.0f, 1.0f) * 255.0f + 0.5f);
        shown_pixels[i] = (uint)shown.x | (uint)shown.y << 8 | (uint)shown.z << 16 | alpha << 24;
    }
}
