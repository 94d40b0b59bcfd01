// |A - B| of two displayed pictures times `gain`; B is stretched to A's size, texel by texel.
uniform sampler2D image;
uniform sampler2D reference;
uniform float gain;
out vec4 pixel;

void main() {
    ivec2 place = ivec2(gl_FragCoord.xy), size = textureSize(image, 0), other = textureSize(reference, 0);
    vec3 a = texelFetch(image, place, 0).rgb, b = texelFetch(reference, place * other / size, 0).rgb;
    pixel = vec4(min(abs(a - b) * gain, 1.0), 1.0);
}
