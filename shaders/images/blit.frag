// Draws an image into a rectangle of a linear target by nearest-texel scaling. Texels that cover at least 6 x 6 pixels
// get outlines. For the panels of a layout and the levels of a reduction. SRGB (constant): 1 if the image is sRGB
// encoded. `weighted`: 1 to divide the color by alpha, which turns a sum over alpha opaque pixels into their mean.
#include "common/srgb.h"
uniform sampler2D image;
uniform ivec4 rectangle;  // left, top, width, height in pixels of the target
uniform int weighted;
uniform vec4 background;  // color of pixels outside the rectangle; alpha 0: they keep their value
out vec4 pixel;

void main() {
    ivec2 size = textureSize(image, 0), offset = ivec2(gl_FragCoord.xy) - rectangle.xy;
    if (any(lessThan(offset, ivec2(0))) || any(greaterThanEqual(offset, rectangle.zw))) {
        if (background.a == 0.0) discard;
        pixel = background;
        return;
    }
    ivec2 texel = offset * size / rectangle.zw;
    vec4 c = texelFetch(image, texel, 0);
    if (SRGB != 0) c.rgb = vec3(srgb_to_linear(c.r), srgb_to_linear(c.g), srgb_to_linear(c.b));
    pixel = vec4(weighted != 0 ? c.rgb / max(c.a, 1e-30) : c.rgb, 1.0);
    ivec2 first = (texel * rectangle.zw + size - 1) / size;  // the texel's top left pixel in the rectangle
    bool outlined = rectangle.z >= 6 * size.x && rectangle.w >= 6 * size.y;
    if (outlined && any(equal(offset, first))) pixel.rgb *= 0.45;
}
