// The body of a fragment pass that multiplies matrices: renderer/cdollar/targets/glsl/target.py declares the inputs and
// writes `sum`. A texel of `left` holds four neighbors along k, a texel of `right` and of `sum` four neighboring
// columns. The matrices of a batch are stacked along y: rows_ rows of `left` and depth_ rows of `right` each. A row of
// `left` has left_texels_ = ceil(depth_ / 4) texels, zero beyond depth_, so that the clamped reads of `right` add 0.
int column = int(gl_FragCoord.x), batch = int(gl_FragCoord.y) / rows_;
vec4 sum = vec4(0.0);
for (int k = 0; k < left_texels_; k++) {
    vec4 a = texelFetch(left, ivec2(k, int(gl_FragCoord.y)), 0);
    vec4 b0 = texelFetch(right, ivec2(column, batch * depth_ + min(4 * k + 0, depth_ - 1)), 0);
    vec4 b1 = texelFetch(right, ivec2(column, batch * depth_ + min(4 * k + 1, depth_ - 1)), 0);
    vec4 b2 = texelFetch(right, ivec2(column, batch * depth_ + min(4 * k + 2, depth_ - 1)), 0);
    vec4 b3 = texelFetch(right, ivec2(column, batch * depth_ + min(4 * k + 3, depth_ - 1)), 0);
    sum += a.x * b0;
    sum += a.y * b1;
    sum += a.z * b2;
    sum += a.w * b3;
}
