// Scales one level of a reduction to a rectangle of the target, with outlines around large texels. Pixels outside the
// rectangle keep their value or get the background color. `weighted` divides by alpha, which turns sums over opaque
// pixels into means.
uniform sampler2D image;
uniform ivec4 rectangle;  // left, top, width, height
uniform int weighted;
uniform int background;   // 1: fill pixels outside
out vec4 pixel;

void main() {
    ivec2 size = textureSize(image, 0), offset = ivec2(gl_FragCoord.xy) - rectangle.xy;
    if (any(lessThan(offset, ivec2(0))) || any(greaterThanEqual(offset, rectangle.zw))) {
        if (background == 0) discard;
        pixel = vec4(0.006, 0.007, 0.010, 1.0);
        return;
    }
    ivec2 texel = offset * size / rectangle.zw;
    vec4 c = texelFetch(image, texel, 0);
    pixel = vec4(weighted != 0 ? c.rgb / max(c.a, 1e-30) : c.rgb, 1.0);
    ivec2 first = (texel * rectangle.zw + size - 1) / size;  // the texel's first pixel
    bool outlined = rectangle.z >= 6 * size.x && rectangle.w >= 6 * size.y;
    if (outlined && any(equal(offset, first))) pixel.rgb *= 0.45;
}
