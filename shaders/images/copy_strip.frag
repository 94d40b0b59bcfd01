// Copies an image into the target from pixel `offset` on, scaled by nearest texels: `texel_step` is the
// number of the image's texels per pixel of the target, across and down.
uniform sampler2D image;
uniform ivec2 offset;
uniform vec2 texel_step;
out vec4 pixel;

void main() {
    ivec2 texel = ivec2((gl_FragCoord.xy - vec2(offset)) * texel_step);
    pixel = texelFetch(image, clamp(texel, ivec2(0), textureSize(image, 0) - 1), 0);
}
