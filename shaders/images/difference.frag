// |A - B| of two displayed images times `gain`; B is scaled to A's size by nearest texels.
uniform sampler2D image;
uniform sampler2D reference;
uniform float gain;
out vec4 pixel;

void main() {
    ivec2 texel = ivec2(gl_FragCoord.xy), size = textureSize(image, 0), reference_size = textureSize(reference, 0);
    vec3 a = texelFetch(image, texel, 0).rgb;
    vec3 b = texelFetch(reference, texel * reference_size / size, 0).rgb;
    pixel = vec4(min(abs(a - b) * gain, 1.0), 1.0);
}
