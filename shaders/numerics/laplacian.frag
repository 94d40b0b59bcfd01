// The Laplacian filter as an OpenGL fragment pass for renderer/pictures/laplacian.py. In: `image`. Out: colors, as the
// kernel `show` of laplacian.cu makes them by `gain` and show_sign. The host defines NEIGHBORS (4 or 8) and BORDER (0
// to 3), as in laplacian.cu.
uniform sampler2D image;
uniform float gain;
uniform int show_sign;
out vec4 pixel;

vec4 at(ivec2 position) {
    ivec2 size = textureSize(image, 0);
#if BORDER == 1
    position = size - 1 - abs(size - 1 - abs(position));
#elif BORDER == 2
    position = (position + size) % size;
#elif BORDER == 3
    if (any(lessThan(position, ivec2(0))) || any(greaterThanEqual(position, size))) return vec4(0.0);
#endif
    return texelFetch(image, clamp(position, ivec2(0), size - 1), 0);
}

void main() {
    ivec2 here = ivec2(gl_FragCoord.xy);
    vec4 sum = at(here + ivec2(-1, 0)) + at(here + ivec2(1, 0)) + at(here + ivec2(0, -1)) + at(here + ivec2(0, 1));
#if NEIGHBORS == 8
    sum += at(here + ivec2(-1, -1)) + at(here + ivec2(1, -1)) + at(here + ivec2(-1, 1)) + at(here + ivec2(1, 1));
#endif
    vec3 edges = (sum - float(NEIGHBORS) * at(here)).rgb * gain;
    pixel = vec4(show_sign == 1 ? 0.5 * edges + 0.2140411 : abs(edges), 1.0);  // middle gray: sRGB 0.5
}
