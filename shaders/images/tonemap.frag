// Tone mapping of a linear picture into an 8-bit texture. `exposure` is one texel: x the mean log2 luminance of the pixels
// that count, y whether any does; with automatic 0 only ev counts.
#include "images/tone_mapping.h"
uniform sampler2D image;
uniform sampler2D exposure;
uniform int automatic;
uniform float ev;
uniform int curve;
out vec4 pixel;

void main() {
    vec4 colour = texelFetch(image, ivec2(gl_FragCoord.xy), 0);
    vec4 metered = texelFetch(exposure, ivec2(0), 0);
    float factor = automatic != 0 && metered.y > 0.0 ? automatic_exposure(metered.x, ev) : exp2(ev);
    pixel = vec4(displayed(colour.r, colour.g, colour.b, factor, curve, float(LEVELS)) / float(LEVELS), clamp(colour.a, 0.0, 1.0));
}
