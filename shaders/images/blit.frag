// Copies an 8-bit sRGB image into a rectangle of a linear target, pixel for pixel, for layouts. Pixels outside the
// rectangle keep their value or get the background color.
#include "common/srgb.h"
uniform sampler2D image;
uniform ivec2 offset;    // left and top of the rectangle
uniform int background;  // 1: fill pixels outside
out vec4 pixel;

void main() {
    ivec2 texel = ivec2(gl_FragCoord.xy) - offset;
    if (any(lessThan(texel, ivec2(0))) || any(greaterThanEqual(texel, textureSize(image, 0)))) {
        if (background == 0) discard;
        pixel = vec4(0.004, 0.005, 0.007, 1.0);
        return;
    }
    vec4 c = texelFetch(image, texel, 0);
    pixel = vec4(srgb_to_linear(c.r), srgb_to_linear(c.g), srgb_to_linear(c.b), 1.0);
}
