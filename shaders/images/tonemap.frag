// Tone mapping of a linear texture for the window, by images/tone_mapping.h. `exposure` is one texel: x is the mean
// log2 luminance of the pixels that count for the automatic exposure, y is 0 if there are none. `automatic`: 1 to use
// it; `ev`: additional exposure in stops. If GRADED is defined, `grade` is the table of images/color_grade.h in rows of
// 4096 texels.
#ifdef GRADED
uniform sampler2D grade;
#endif
#include "images/tone_mapping.h"
uniform sampler2D image;
uniform sampler2D exposure;
uniform int automatic;
uniform float ev;
uniform int curve;
out vec4 pixel;

void main() {
    vec4 color = texelFetch(image, ivec2(gl_FragCoord.xy), 0);
    vec4 metered = texelFetch(exposure, ivec2(0), 0);
    float factor = automatic != 0 && metered.y > 0.0 ? automatic_exposure(metered.x, ev) : exp2(ev);
    vec3 srgb = tonemap_pixel(color.r, color.g, color.b, factor, curve, float(LEVELS) GRADE_ARGUMENT) / float(LEVELS);
    pixel = vec4(srgb, clamp(color.a, 0.0, 1.0));
}
