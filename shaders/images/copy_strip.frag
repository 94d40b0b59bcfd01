// Copies an image to the target from `offset` on; `texel_step` texels of the image per pixel of the target.
uniform sampler2D image;
uniform ivec2 offset;
uniform vec2 texel_step;
out vec4 pixel;

void main() {
    ivec2 texel = ivec2((gl_FragCoord.xy - vec2(offset)) * texel_step);
    pixel = texelFetch(image, clamp(texel, ivec2(0), textureSize(image, 0) - 1), 0);
}
