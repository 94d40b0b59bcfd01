// Marbled paper: drops of ink push what floats aside, a comb draws it (Lu, Jaffer et al., Mathematical Marbling, 2012).

// ---- Buffer A ----
// The ink at each point: rgb. A drop falls or a comb passes each `pause` frames; the mouse drops ink too.
// iChannel0: Buffer A linear
// iChannel1: noise nearest
uniform int pause = 5;  // 1 to 60

vec3 ink(float k) {
    float number = fract(k * 0.381966);
    if (number < 0.28) return vec3(0.03, 0.07, 0.16);
    if (number < 0.46) return vec3(0.05, 0.32, 0.38);
    if (number < 0.62) return vec3(0.78, 0.20, 0.10);
    return number < 0.78 ? vec3(0.93, 0.62, 0.18) : vec3(0.95, 0.91, 0.82);
}

// Smooth and sharp: Catmull-Rom's cubic over 4 x 4 texels.
vec3 sample_(vec2 point) {
    vec2 p = floor(point - 0.5), f = point - 0.5 - p;
    vec4 x = vec4(-f.x + 2.0 * f.x * f.x - f.x * f.x * f.x, 2.0 - 5.0 * f.x * f.x + 3.0 * f.x * f.x * f.x, f.x + 4.0 * f.x * f.x - 3.0 * f.x * f.x * f.x, f.x * f.x * f.x - f.x * f.x) * 0.5;
    vec4 y = vec4(-f.y + 2.0 * f.y * f.y - f.y * f.y * f.y, 2.0 - 5.0 * f.y * f.y + 3.0 * f.y * f.y * f.y, f.y + 4.0 * f.y * f.y - 3.0 * f.y * f.y * f.y, f.y * f.y * f.y - f.y * f.y) * 0.5;
    vec3 sum = vec3(0);
    ivec2 last = ivec2(iResolution.xy) - 1;
    for (int k = 0; k < 16; k++) sum += x[k % 4] * y[k / 4] * texelFetch(iChannel0, clamp(ivec2(p) + ivec2(k % 4, k / 4) - 1, ivec2(0), last), 0).rgb;
    return clamp(sum, 0.0, 1.0);
}

void mainImage(out vec4 state, in vec2 point) {
    if (iFrame == 0) {
        state = vec4(0.95, 0.91, 0.82, 1.0);
        return;
    }
    state = texelFetch(iChannel0, ivec2(point), 0);
    int count = iFrame / pause, turn = count % 64;
    bool is_drop = iMouse.z > 0.0;
    if (iFrame % pause != 0 && !is_drop) return;
    vec2 q = point / iResolution.y;
    float wide = iResolution.x / iResolution.y;
    if (turn < 44 || is_drop) {  // a drop of radius r moves what was at distance d to sqrt(d d + r r)
        vec4 random = texelFetch(iChannel1, ivec2(count % 256, count / 256), 0);
        vec2 center = is_drop ? iMouse.xy / iResolution.y : vec2(random.x * wide, random.y) * 0.9 + 0.05 * vec2(wide, 1.0), to = q - center;
        float r = is_drop ? 0.02 : 0.05 + 0.11 * random.z * random.z, d = length(to);
        state.rgb = d < r ? ink(float(count)) : sample_((center + to * sqrt(1.0 - r * r / (d * d))) * iResolution.y);
        if (d > r && d < r + 0.75 / iResolution.y) state.rgb = mix(ink(float(count)), state.rgb, (d - r) * iResolution.y / 0.75);
    } else if (turn < 58) {  // a tine along a line: what is near goes with it
        float k = float(turn - 44), a = k < 7.0 ? 0.0 : 1.5708, way = mod(k, 2.0) * 2.0 - 1.0;
        vec2 along = vec2(cos(a), sin(a)), across = vec2(-along.y, along.x);
        float place = (mod(k, 7.0) + 0.5) / 7.0 * (k < 7.0 ? 1.0 : -wide), d = abs(dot(q, across) - place);
        state.rgb = sample_((q - way * along * 0.10 * exp(-d * 26.0)) * iResolution.y);
    }
}

// ---- Image ----
// iChannel0: Buffer A linear
// iChannel1: noise mipmap
void mainImage(out vec4 color, in vec2 point) {
    vec2 uv = point / iResolution.xy, e = 0.8 / iResolution.xy;
    vec3 c = texture(iChannel0, uv).rgb;
    float edge = dot(texture(iChannel0, uv + e).rgb - texture(iChannel0, uv - e).rgb, vec3(0.4));
    float paper = texture(iChannel1, point / iResolution.y * vec2(1.1, 2.3)).x * 0.5 + texture(iChannel1, point / iResolution.y * 3.7).y * 0.5;
    c *= 0.90 + 0.16 * paper + 0.10 * clamp(edge, -1.0, 1.0);
    color = vec4(pow(max(c, 0.0), vec3(0.4545)) * (1.0 - 0.45 * dot(uv - 0.5, uv - 0.5)), 1.0);
}
