// The sRGB transfer curve and luminance, for kernels and GLSL alike: scalars only. IEC 61966-2-1; Rec. 709 weights.
#ifdef GLSL
#define SRGB_WORD
#else
#define SRGB_WORD DEVICE
#endif

SRGB_WORD float srgb_of_linear(float x) {
    return x <= 0.0031308f ? 12.92f * x : 1.055f * pow(x, 1.0f / 2.4f) - 0.055f;
}

SRGB_WORD float linear_of_srgb(float x) {
    return x <= 0.04045f ? x / 12.92f : pow((x + 0.055f) / 1.055f, 2.4f);
}

SRGB_WORD float luminance(float red, float green, float blue) {
    return 0.2126f * red + 0.7152f * green + 0.0722f * blue;
}
