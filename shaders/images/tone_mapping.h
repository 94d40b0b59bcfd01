// Tone mapping of linear radiance to display values, for kernels and GLSL (images/tonemap.cu, images/tonemap.frag):
// automatic exposure, tone curves, sRGB or PQ encoding, quantization. GRADED: defined to apply images/color_grade.h;
// HIGH_RANGE: defined to encode for HDR displays (common/pq.h).
#include "common/srgb.h"
#ifdef GRADED
#include "images/color_grade.h"
#else  // no table of grading to pass to functions
#define GRADE_PARAMETER
#define GRADE_ARGUMENT
#endif
#ifdef HIGH_RANGE
#include "common/pq.h"
#endif

#define CURVE_NONE 0
#define CURVE_REINHARD 1
#define CURVE_ACES 2
#define CURVE_AGX 3
// 2^-20: darker pixels, such as black backgrounds, do not count for the automatic exposure
#define MIN_METERED_LUMINANCE 9.5367431640625e-7f

// (log2 luminance, 1) for a pixel that counts for the automatic exposure, (0, 0) for a dark, infinite or NaN pixel.
SHARED_FUNCTION float2 log_luminance(float red, float green, float blue) {
    float y = luminance(red, green, blue);
    bool counts = y >= MIN_METERED_LUMINANCE && y < 1e30f;
    return counts ? make_float2(log2(y), 1.0f) : make_float2(0.0f, 0.0f);
}

// The exposure factor that maps the mean log2 luminance to middle gray, 0.18 (Reinhard et al. 2002), times 2^ev.
// renderer/images/tone_mapping.py states the same for pictures that are metered on the host.
SHARED_FUNCTION float automatic_exposure(float mean_log2_luminance, float ev) {
    return 0.18f * exp2(ev - clamp(mean_log2_luminance, -20.0f, 20.0f));
}

// Fit of the ACES reference and output transforms by K. Narkowicz, "ACES Filmic Tone Mapping Curve", 2016.
SHARED_FUNCTION float aces_curve(float x) {
    return clamp(x * (2.51f * x + 0.03f) / (x * (2.43f * x + 0.59f) + 0.14f), 0.0f, 1.0f);
}

// AgX's base contrast: a polynomial in the log2 value, which is scaled to 0..1 (fit by B. Wrensch, "Minimal AgX", of T.
// Sobotka's AgX).
SHARED_FUNCTION float agx_contrast(float x) {
    float x2 = x * x, x4 = x2 * x2;
    return 15.5f * x4 * x2 - 40.14f * x4 * x + 31.96f * x4 - 6.868f * x2 * x + 0.4298f * x2 + 0.1191f * x - 0.00232f;
}

// The AgX value, 0..1, of a channel's log2 value: 16.5 stops from -12.47393 on.
SHARED_FUNCTION float agx_encoded(float log2_x) {
    return agx_contrast(clamp((log2_x + 12.47393f) / 16.5f, 0.0f, 1.0f));
}

// The AgX tone curve.
SHARED_FUNCTION float3 agx(float3 c) {
    float3 inset = make_float3(0.842479062f * c.x + 0.0784335985f * c.y + 0.0792237451f * c.z,
                               0.0423282422f * c.x + 0.8784686f * c.y + 0.0791661f * c.z,
                               0.0423756886f * c.x + 0.0784336f * c.y + 0.8791421f * c.z);
    inset = log2_each(make_float3(max(inset.x, 1e-10f), max(inset.y, 1e-10f), max(inset.z, 1e-10f)));
    float r = agx_encoded(inset.x), g = agx_encoded(inset.y), b = agx_encoded(inset.z);
    float3 graded = make_float3(1.19687903f * r - 0.0980208963f * g - 0.0990297434f * b,
                                -0.0528968517f * r + 1.1519031f * g - 0.0989611f * b,
                                -0.0529716f * r - 0.0980434f * g + 1.1510736f * b);
    return pow_each(make_float3(max(graded.x, 0.0f), max(graded.y, 0.0f), max(graded.z, 0.0f)), 2.2f);
}

// Applies tone curve `curve` (a CURVE_ constant) to a linear color.
SHARED_FUNCTION float3 apply_tone_curve(float3 c, int curve) {
    if (curve == CURVE_REINHARD) {
        float y = luminance(c.x, c.y, c.z);
        return c * (1.0f / (1.0f + max(y, 0.0f)));
    }
    if (curve == CURVE_ACES) return make_float3(aces_curve(c.x), aces_curve(c.y), aces_curve(c.z));
    if (curve == CURVE_AGX) return agx(c);
    return c;
}

SHARED_FUNCTION float quantize(float x, float levels) { return floor(x * levels + 0.5f); }

SHARED_FUNCTION bool is_finite(float x) { return x > -3e38f && x < 3e38f; }

// Clamps a linear color to 0..1 and encodes it by the sRGB curve.
SHARED_FUNCTION float3 srgb_pixel(float3 c) {
    c = make_float3(clamp(c.x, 0.0f, 1.0f), clamp(c.y, 0.0f, 1.0f), clamp(c.z, 0.0f, 1.0f));
    float3 power = pow_each(c, 1.0f / 2.4f);
    return make_float3(srgb_curve(c.x, power.x), srgb_curve(c.y, power.y), srgb_curve(c.z, power.z));
}

// Converts a linear color to display values, integers 0 to `levels` (255 to 65535): by exposure, tone curve and sRGB,
// or if HIGH_RANGE by exposure and PQ, whose range needs no tone curve. NaN and infinity become magenta, so that they
// are noticed.
SHARED_FUNCTION float3 tonemap_pixel(float red, float green, float blue, float exposure, int curve,
                                     float levels GRADE_PARAMETER) {
    if (!(is_finite(red) && is_finite(green) && is_finite(blue))) return make_float3(levels, 0.0f, levels);
    float3 c = make_float3(red, green, blue) * exposure;
#ifdef GRADED
    c = balanced(c GRADE_ARGUMENT);
#endif
#ifdef HIGH_RANGE
    c = pq_pixel(c);
#else
    c = srgb_pixel(apply_tone_curve(c, curve));
#ifdef GRADED
    c = looked_up(c GRADE_ARGUMENT);
    c = make_float3(clamp(c.x, 0.0f, 1.0f), clamp(c.y, 0.0f, 1.0f), clamp(c.z, 0.0f, 1.0f));
#endif
#endif
    return make_float3(quantize(c.x, levels), quantize(c.y, levels), quantize(c.z, levels));
}
