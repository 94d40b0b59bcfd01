// A shoal: fish that keep together, keep apart and swim alike (Reynolds, Flocks, Herds and Schools, 1987). Drag to scare them.

// ---- Common ----
const int FISH = 90;
uniform float alike = 1.0;     // 0 to 3
uniform float together = 1.0;  // 0 to 3
uniform float apart = 1.0;     // 0 to 3

// The texel of a fish, for any width: xy place and zw speed, in heights of the picture.
ivec2 texel(int fish, float width) { return ivec2(fish % int(width), fish / int(width)); }

// ---- Buffer A ----
// iChannel0: Buffer A nearest
// iChannel1: noise nearest
void mainImage(out vec4 state, in vec2 point) {
    ivec2 p = ivec2(point);
    int fish = p.x + p.y * int(iResolution.x);
    if (fish >= FISH) discard;
    float wide = iResolution.x / iResolution.y;
    if (iFrame == 0) {
        vec4 random = texelFetch(iChannel1, ivec2(fish % 16, fish / 16) * 7, 0);
        state = vec4(random.x * wide, random.y, 0.25 * cos(6.2832 * random.z), 0.25 * sin(6.2832 * random.z));
        return;
    }
    state = texelFetch(iChannel0, p, 0);
    vec2 middle = vec2(0), course = vec2(0), push = vec2(0);
    float near = 0.0001;
    for (int k = 0; k < FISH; k++) {
        vec4 other = texelFetch(iChannel0, texel(k, iResolution.x), 0);
        vec2 to = other.xy - state.xy;
        float far = length(to), weight = smoothstep(0.22, 0.1, far);
        if (k == fish || weight == 0.0) continue;
        near += weight;
        middle += weight * to;
        course += weight * (other.zw - state.zw);
        push -= to / (far * far + 0.0004) * smoothstep(0.07, 0.02, far);
    }
    vec2 pull = 2.2 * together * middle / near + 2.6 * alike * course / near + 0.03 * apart * push;
    vec2 home = vec2(0.5 * wide, 0.5) - state.xy;
    pull += home * smoothstep(0.25, 0.6, max(abs(home.x) / wide * 1.2, abs(home.y))) * 1.6;
    float a = 6.2832 * texelFetch(iChannel1, ivec2(fish, iFrame / 40) & 255, 0).x;
    pull += 0.12 * vec2(cos(a), sin(a)) + 0.10 * vec2(-home.y, home.x);
    vec2 fled = state.xy - iMouse.xy / iResolution.y;
    if (iMouse.z > 0.0) pull += fled / (dot(fled, fled) + 0.01) * 0.25;
    state.zw += pull * iTimeDelta;
    state.zw *= mix(1.0, clamp(length(state.zw), 0.16, 0.36) / length(state.zw), 0.3);
    state.xy += state.zw * iTimeDelta;
}

// ---- Buffer B ----
// Wakes: light that the fish leave in the water, slowly carried and spread.
// iChannel0: Buffer A nearest
// iChannel1: Buffer B linear
void mainImage(out vec4 state, in vec2 point) {
    vec2 q = point / iResolution.y, e = vec2(1, 0);
    vec2 drift = 0.6 * vec2(sin(q.y * 9.0 + iTime * 0.5), cos(q.x * 8.0 - iTime * 0.4));
    vec4 before = vec4(0);
    for (int k = 0; k < 4; k++) before += 0.25 * texture(iChannel1, (point + drift * 0.5 + 0.7 * vec2(k % 2 * 2 - 1, k / 2 * 2 - 1)) / iResolution.xy);
    float wake = 0.0;
    vec3 body = vec3(0);
    for (int k = 0; k < FISH; k++) {
        vec4 fish = texelFetch(iChannel0, texel(k, iResolution.x), 0);
        vec2 to = q - fish.xy;
        if (dot(to, to) > 0.0016) continue;
        vec2 ahead = normalize(fish.zw + 1e-6);
        float x = dot(to, ahead), y = dot(to, vec2(-ahead.y, ahead.x));
        y += 0.0035 * sin(x * 160.0 + iTime * 14.0 + float(k)) * smoothstep(0.01, -0.03, x);
        float t = clamp((x + 0.026) / 0.044, 0.0, 1.0), half_ = 0.0085 * sqrt(t) * (1.0 - t * t * 0.85) + 0.006 * smoothstep(0.2, 0.0, t);
        float inside = smoothstep(0.6, -0.6, (abs(y) - half_) * iResolution.y) * step(0.0, (x + 0.027) * (0.019 - x));
        vec3 skin = mix(vec3(1.0, 0.45, 0.12), vec3(1.0, 0.95, 0.85), step(0.35, fract(float(k) * 0.618 + 14.0 * x)));
        body = mix(body, skin * (0.55 + 0.6 * smoothstep(-half_, half_, y)), inside);
        wake += 0.045 * exp(-dot(to, to) * 7000.0);
    }
    state = vec4(min(before.x * 0.975 + wake, 2.0), body);
}

// ---- Image ----
// iChannel0: Buffer B linear
void mainImage(out vec4 color, in vec2 point) {
    vec2 uv = point / iResolution.xy, q = point / iResolution.y, e = 1.5 / iResolution.xy;
    vec4 s = texture(iChannel0, uv);
    float slope = texture(iChannel0, uv + e).x - texture(iChannel0, uv - e).x, caustic = 0.0;
    vec2 w = q * 6.0;
    for (int k = 1; k < 5; k++) {
        w += 0.6 * vec2(sin(w.y * 1.3 + iTime * 0.5 + float(k)), cos(w.x * 1.1 - iTime * 0.4 + float(k) * 2.0));
        caustic += 0.25 / (0.25 + abs(sin(w.x + w.y)) * 4.0);
    }
    vec3 water = mix(vec3(0.0, 0.035, 0.075), vec3(0.02, 0.2, 0.24), uv.y) + vec3(0.03, 0.12, 0.11) * caustic * caustic * (0.4 + 0.6 * uv.y);
    float shade = max(max(texture(iChannel0, uv + vec2(-0.006, 0.014)).y, texture(iChannel0, uv + vec2(-0.008, 0.018)).y), 0.0);
    water *= 1.0 - 0.55 * smoothstep(0.0, 0.5, shade);
    water += vec3(0.1, 0.5, 0.5) * s.x * 0.30 + vec3(0.3, 0.7, 0.65) * slope * 0.5;
    vec3 c = mix(water, s.yzw, smoothstep(0.0, 0.3, s.y));
    color = vec4(pow(max(c, 0.0), vec3(0.4545)) * (1.0 - 0.6 * dot(uv - 0.5, uv - 0.5)), 1.0);
}
