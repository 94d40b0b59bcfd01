// Copies a picture into the part of a larger one that begins at `corner`; `step` texels of it for one of the target's.
uniform sampler2D image;
uniform ivec2 corner;
uniform vec2 step_;
out vec4 pixel;

void main() {
    ivec2 place = ivec2((gl_FragCoord.xy - vec2(corner)) * step_);
    pixel = texelFetch(image, clamp(place, ivec2(0), textureSize(image, 0) - 1), 0);
}
