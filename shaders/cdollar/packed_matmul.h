// The body of a fragment pass that multiplies matrices: a texel of `left` holds four k, one of `right` and `sum` four
// columns.
int column = int(gl_FragCoord.x), batch = int(gl_FragCoord.y) / rows_;
vec4 sum = vec4(0.0);
for (int k = 0; k < deep_; k++) {
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
