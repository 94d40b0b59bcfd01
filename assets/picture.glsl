// A picture file in a panel, a texel a pixel or stretched to the panel.
void mainImage(out vec4 color, in vec2 point) {
    vec2 size = vec2(textureSize(iChannel0, 0));
    color = texelFetch(iChannel0, ivec2(point * size / iResolution.xy), 0);
}
