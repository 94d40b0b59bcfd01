// Tone mapping of a linear image in a device buffer to RGBA integers, by images/tone_mapping.h; one thread per pixel.
// The launcher defines LEVELS, the largest value: 255 (PIXEL uchar), 1023 or 65535 (PIXEL ushort). If GRADED is
// defined, the kernel has the parameter `grade`, the table of images/color_grade.h.
#include "images/tone_mapping.h"

// Tone-maps and encodes each pixel.
KERNEL tonemap(GLOBAL const float4 *image, GLOBAL PIXEL *pixels_out, int pixels, float exposure,
               int curve GRADE_PARAMETER) {
    uint i = thread_index();
    if (i >= (uint)pixels) return;
    float4 color = image[i];
    float3 values = tonemap_pixel(color.x, color.y, color.z, exposure, curve, LEVELS GRADE_ARGUMENT);
    pixels_out[4 * i + 0] = (PIXEL)values.x;
    pixels_out[4 * i + 1] = (PIXEL)values.y;
    pixels_out[4 * i + 2] = (PIXEL)values.z;
    pixels_out[4 * i + 3] = (PIXEL)(clamp(color.w, 0.0f, 1.0f) * LEVELS + 0.5f);
}
