void mainImage(out vec4 color, in vec2 point) {
    vec4 before = texelFetch(iChannel0, ivec2(point), 0);
    color = 0.98 * before;  // draw over it: it fades
}
