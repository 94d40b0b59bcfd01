// Coral: the reaction and diffusion of Gray and Scott (Pearson, Science 261, 1993), lit as a relief.

// ---- Common ----
// One step; red: the substance that is eaten, green: the one that eats. Four buffers are four steps a frame.
uniform float feed = 0.0545;  // 0.01 to 0.1
uniform float kill = 0.062;   // 0.04 to 0.07

vec4 react(sampler2D before, ivec2 p, ivec2 size) {
    vec2 here = texelFetch(before, p, 0).xy, sum = -here;
    for (int y = -1; y <= 1; y++) {
        for (int x = -1; x <= 1; x++) {
            if (x == 0 && y == 0) continue;
            float weight = x == 0 || y == 0 ? 0.2 : 0.05;
            sum += weight * texelFetch(before, (p + ivec2(x, y) + size) % size, 0).xy;
        }
    }
    float eaten = here.x * here.y * here.y;
    vec2 rate = vec2(1.0, 0.5) * sum + vec2(feed * (1.0 - here.x) - eaten, eaten - (feed + kill) * here.y);
    return vec4(clamp(here + rate, 0.0, 1.0), 0.0, 1.0);
}

// ---- Buffer A ----
// iChannel0: Buffer D
// iChannel1: noise
void mainImage(out vec4 state, in vec2 point) {
    if (iFrame == 0) {
        float seed = smoothstep(0.62, 0.66, texture(iChannel1, point / iResolution.y * 0.06).x);
        state = vec4(1.0 - 0.5 * seed, 0.3 * seed, 0.0, 1.0);
        return;
    }
    state = react(iChannel0, ivec2(point), ivec2(iResolution.xy));
    if (iMouse.z > 0.0 && distance(point, iMouse.xy) < 0.02 * iResolution.y) state.y = 0.5;
}

// ---- Buffer B ----
// iChannel0: Buffer A
void mainImage(out vec4 state, in vec2 point) { state = react(iChannel0, ivec2(point), ivec2(iResolution.xy)); }

// ---- Buffer C ----
// iChannel0: Buffer B
void mainImage(out vec4 state, in vec2 point) { state = react(iChannel0, ivec2(point), ivec2(iResolution.xy)); }

// ---- Buffer D ----
// iChannel0: Buffer C
void mainImage(out vec4 state, in vec2 point) { state = react(iChannel0, ivec2(point), ivec2(iResolution.xy)); }

// ---- Image ----
// iChannel0: Buffer D linear repeat
void mainImage(out vec4 color, in vec2 point) {
    vec2 uv = point / iResolution.xy, e = 1.2 / iResolution.xy;
    float h = texture(iChannel0, uv).y;
    vec2 slope = vec2(texture(iChannel0, uv + vec2(e.x, 0)).y - texture(iChannel0, uv - vec2(e.x, 0)).y,
                      texture(iChannel0, uv + vec2(0, e.y)).y - texture(iChannel0, uv - vec2(0, e.y)).y);
    vec3 normal = normalize(vec3(-slope * 5.0, 1.0)), sun = normalize(vec3(-0.5, 0.6, 0.55));
    float light = max(dot(normal, sun), 0.0), shine = pow(max(dot(reflect(-sun, normal), vec3(0, 0, 1)), 0.0), 24.0);
    vec3 deep = vec3(0.02, 0.07, 0.13), reef = vec3(0.98, 0.42, 0.33), tip = vec3(1.0, 0.88, 0.72);
    vec3 base = mix(deep, reef, smoothstep(0.08, 0.24, h));
    base = mix(base, tip, smoothstep(0.26, 0.4, h));
    color = vec4(base * (0.35 + 0.85 * light) + 0.35 * shine * smoothstep(0.05, 0.2, h), 1.0);
}
