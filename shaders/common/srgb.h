// The sRGB transfer curve (IEC 61966-2-1) and Rec. 709 luminance, for kernels and GLSL.
#include "common/shared_function.h"

// The encoding curve at linear x; `power` is x^(1 / 2.4), which the caller computes, by power_of or faster.
SHARED_FUNCTION float srgb_curve(float x, float power) {
    return x <= 0.0031308f ? 12.92f * x : 1.055f * power - 0.055f;
}

SHARED_FUNCTION float linear_to_srgb(float x) { return srgb_curve(x, power_of(x, 1.0f / 2.4f)); }

SHARED_FUNCTION float srgb_to_linear(float x) {
    return x <= 0.04045f ? x / 12.92f : power_of((x + 0.055f) / 1.055f, 2.4f);
}

// Luminance of a linear sRGB color.
SHARED_FUNCTION float luminance(float red, float green, float blue) {
    return 0.2126f * red + 0.7152f * green + 0.0722f * blue;
}
