// One pass of a reduction: each texel of the target takes a BLOCK x BLOCK square of the image. The edge squares are cut at
// the true size, so any size works. BLOCK, OPERATION and LOG_LUMINANCE, DIVIDE (0 or 1) are constants.
#include "images/tone_mapping.h"
#define SUM 0
#define SMALLEST 1
#define LARGEST 2
uniform sampler2D image;
out vec4 texel;

#define INFINITE vec4(uintBitsToFloat(0x7F800000u))

// The comparisons are false for NaN, so the extremes pass NaN over, as numpy.fmin and fmax do; a sum keeps it.
vec4 combined(vec4 total, vec4 c) {
#if OPERATION == SUM
    return total + c;
#elif OPERATION == SMALLEST
    return mix(total, c, lessThan(c, total));
#else
    return mix(total, c, greaterThan(c, total));
#endif
}

vec4 value(ivec2 place) {
    vec4 c = texelFetch(image, place, 0);
#if LOG_LUMINANCE
    return vec4(log_luminance(c.r, c.g, c.b), 0.0, 0.0);
#else
    return c;
#endif
}

void main() {
    const vec4 neutral = OPERATION == SUM ? vec4(0.0) : OPERATION == SMALLEST ? INFINITE : -INFINITE;
    ivec2 corner = ivec2(gl_FragCoord.xy) * BLOCK, end = min(corner + BLOCK, textureSize(image, 0));
    texel = neutral;
    for (int y = corner.y; y < end.y; y++) {
        vec4 row = neutral;  // rows first: two short sums lose fewer bits than one long one
        for (int x = corner.x; x < end.x; x++) row = combined(row, value(ivec2(x, y)));
        texel = combined(texel, row);
    }
#if DIVIDE
    texel = vec4(texel.x / max(texel.y, 1.0), texel.y > 0.0 ? 1.0 : 0.0, 0.0, 0.0);
#endif
}
