// One pass of a reduction (renderer/numerics/texture_reduction.py): each texel of the target reduces a square of
// BLOCK x BLOCK texels of the image, clipped at its edges, so any size works.
//   OPERATION      SUM, MIN or MAX
//   LOG_LUMINANCE  1: reduces log2 luminance (x) and count (y, 1 or 0) of each pixel: the first pass of their mean
//   DIVIDE         1: divides the sum in x by the count in y (last pass); y becomes 0 if no pixel counted, else 1
//   BLOCK          side of a square in texels
#include "images/tone_mapping.h"
#define SUM 0
#define MIN 1
#define MAX 2
uniform sampler2D image;
out vec4 texel;

#define INFINITE vec4(uintBitsToFloat(0x7F800000u))

// Comparisons with NaN are false, so minimum and maximum ignore NaN, as numpy.fmin and fmax do; a sum keeps it.
vec4 combine(vec4 total, vec4 c) {
#if OPERATION == SUM
    return total + c;
#elif OPERATION == MIN
    return mix(total, c, lessThan(c, total));
#else
    return mix(total, c, greaterThan(c, total));
#endif
}

vec4 value(ivec2 position) {
    vec4 c = texelFetch(image, position, 0);
#if LOG_LUMINANCE
    return vec4(log_luminance(c.r, c.g, c.b), 0.0, 0.0);
#else
    return c;
#endif
}

void main() {
    const vec4 identity = OPERATION == SUM ? vec4(0.0) : OPERATION == MIN ? INFINITE : -INFINITE;
    ivec2 corner = ivec2(gl_FragCoord.xy) * BLOCK, end = min(corner + BLOCK, textureSize(image, 0));
    texel = identity;
    for (int y = corner.y; y < end.y; y++) {
        vec4 row = identity;  // rows first: short sums round less than one long sum
        for (int x = corner.x; x < end.x; x++) row = combine(row, value(ivec2(x, y)));
        texel = combine(texel, row);
    }
#if DIVIDE
    texel = vec4(texel.x / max(texel.y, 1.0), texel.y > 0.0 ? 1.0 : 0.0, 0.0, 0.0);
#endif
}
