// The Laplacian filter as a pass: NEIGHBOURS 4 or 8; BORDER as in numerics/laplacian.cu; shown as numerics/laplacian.cu's `show` does.
uniform sampler2D image;
uniform float gain;
uniform int is_signed;
out vec4 pixel;

vec4 at(ivec2 place) {
    ivec2 size = textureSize(image, 0);
#if BORDER == 2
    place = (place + size) % size;
#elif BORDER == 3
    if (any(lessThan(place, ivec2(0))) || any(greaterThanEqual(place, size))) return vec4(0.0);
#endif
    return texelFetch(image, clamp(place, ivec2(0), size - 1), 0);
}

void main() {
    ivec2 here = ivec2(gl_FragCoord.xy);
    vec4 sum = at(here + ivec2(-1, 0)) + at(here + ivec2(1, 0)) + at(here + ivec2(0, -1)) + at(here + ivec2(0, 1));
#if NEIGHBOURS == 8
    sum += at(here + ivec2(-1, -1)) + at(here + ivec2(1, -1)) + at(here + ivec2(-1, 1)) + at(here + ivec2(1, 1));
#endif
    vec3 edges = (sum - float(NEIGHBOURS) * at(here)).rgb * gain;
    pixel = vec4(is_signed == 1 ? 0.5 * edges + 0.2140411 : abs(edges), 1.0);
}
