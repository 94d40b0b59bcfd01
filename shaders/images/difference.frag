// The absolute difference of two sRGB images, |image - reference| * gain, for comparing pictures. `reference` is scaled
// to the size of `image` by nearest texels. `exposure`: stops by which the linear light of both is brightened first,
// so that differences in dark regions become visible.
#include "common/srgb.h"
uniform sampler2D image;
uniform sampler2D reference;
uniform float gain;
uniform float exposure;
out vec4 pixel;

vec3 exposed(vec3 c) {
    if (exposure == 0.0) return c;
    float scale = exp2(exposure);
    return vec3(linear_to_srgb(min(srgb_to_linear(c.r) * scale, 1.0)),
                linear_to_srgb(min(srgb_to_linear(c.g) * scale, 1.0)),
                linear_to_srgb(min(srgb_to_linear(c.b) * scale, 1.0)));
}

void main() {
    ivec2 texel = ivec2(gl_FragCoord.xy), size = textureSize(image, 0), reference_size = textureSize(reference, 0);
    vec3 a = exposed(texelFetch(image, texel, 0).rgb);
    vec3 b = exposed(texelFetch(reference, texel * reference_size / size, 0).rgb);
    pixel = vec4(min(abs(a - b) * gain, 1.0), 1.0);
}
