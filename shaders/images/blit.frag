// Copies an 8-bit displayed picture into a rectangle of a linear target, pixel for pixel; outside stays or is background.
#include "common/srgb.h"
uniform sampler2D image;
uniform ivec2 corner;
uniform int background;  // 1: fills what lies outside
out vec4 pixel;

void main() {
    ivec2 place = ivec2(gl_FragCoord.xy) - corner;
    if (any(lessThan(place, ivec2(0))) || any(greaterThanEqual(place, textureSize(image, 0)))) {
        if (background == 0) discard;
        pixel = vec4(0.004, 0.005, 0.007, 1.0);
        return;
    }
    vec4 c = texelFetch(image, place, 0);
    pixel = vec4(srgb_to_linear(c.r), srgb_to_linear(c.g), srgb_to_linear(c.b), 1.0);
}
