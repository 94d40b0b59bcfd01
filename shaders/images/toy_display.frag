// A toy's picture as the frame of a panel: row 0 on top, linear, opaque. Toys draw with row 0 at the bottom, and by
// the convention of shadertoy.com their colors are encoded as sRGB. MODE: 0 decodes them; 1 if they are linear already;
// 2 scales a buffer to the size of the target, and keeps its row 0 at the bottom.
uniform sampler2D image;
uniform ivec2 skipped;  // texels of `image` left of the tile, and above it
uniform vec2 inverse_size;  // 1 / size of the target, for MODE 2
out vec4 pixel;

vec3 decode(vec3 c) {
    c = clamp(mix(c, vec3(0), isnan(c)), 0.0, 1.0);  // NaN becomes black
    return mix(c / 12.92, pow((c + 0.055) / 1.055, vec3(2.4)), greaterThan(c, vec3(0.04045)));
}

void main() {
#if MODE == 2
    pixel = texture(image, gl_FragCoord.xy * inverse_size);
#else
    ivec2 p = ivec2(gl_FragCoord.xy) + skipped;
    vec3 color = texelFetch(image, ivec2(p.x, textureSize(image, 0).y - 1 - p.y), 0).rgb;
    pixel = vec4(MODE == 1 ? color : decode(color), 1.0);
#endif
}
