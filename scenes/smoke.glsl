// Colored smoke: an incompressible fluid (Stam, Stable Fluids, 1999) in four buffers. Drag to push it.

// ---- Common ----
const float DT = 1.0;

// The velocity of the jets at a point, in texels a frame; their color in `dye`.
vec2 jets(vec2 point, vec2 size, float time, out vec3 dye) {
    vec2 push = vec2(0);
    dye = vec3(0);
    for (int k = 0; k < 5; k++) {
        float a = float(k) * 1.2566 + 0.35 * time;
        vec2 from = size * 0.5 + 0.33 * size.y * vec2(cos(a), sin(a)), to = vec2(-sin(a + 0.6), cos(a + 0.6));
        float near = exp(-dot(point - from, point - from) / (0.0005 * size.y * size.y));
        push += near * to * size.y * 0.016;
        dye += near * (0.5 + 0.5 * cos(vec3(0.2, 2.1, 4.2) + 1.2566 * float(k)));
    }
    return push;
}

// ---- Buffer A ----
// Velocity, carried by itself, with forces added.
// iChannel0: Buffer C linear
void mainImage(out vec4 state, in vec2 point) {
    vec2 size = iResolution.xy, v = texture(iChannel0, point / size).xy;
    v = texture(iChannel0, (point - DT * v) / size).xy * 0.999;
    vec3 dye;
    v += jets(point, size, iTime, dye) * 0.25;
    if (iMouse.z > 0.0) {
        vec2 pull = (iMouse.xy - abs(iMouse.zw)) * 0.002;
        v += pull * exp(-dot(point - iMouse.xy, point - iMouse.xy) / (0.004 * size.y * size.y));
    }
    state = vec4(v, 0.0, 1.0);
}

// ---- Buffer B ----
// Pressure: one step of Jacobi's iteration a frame, from the pressure of the frame before.
// iChannel0: Buffer A
// iChannel1: Buffer B
void mainImage(out vec4 state, in vec2 point) {
    ivec2 p = ivec2(point), last = ivec2(iResolution.xy) - 1;
    ivec2 r = min(p + ivec2(1, 0), last), l = max(p - ivec2(1, 0), ivec2(0));
    ivec2 u = min(p + ivec2(0, 1), last), d = max(p - ivec2(0, 1), ivec2(0));
    float divergence = 0.5 * (texelFetch(iChannel0, r, 0).x - texelFetch(iChannel0, l, 0).x +
                              texelFetch(iChannel0, u, 0).y - texelFetch(iChannel0, d, 0).y);
    float around = texelFetch(iChannel1, r, 0).x + texelFetch(iChannel1, l, 0).x + texelFetch(iChannel1, u, 0).x +
                   texelFetch(iChannel1, d, 0).x;
    state = vec4(0.25 * (around - divergence), divergence, 0.0, 1.0);
}

// ---- Buffer C ----
// Velocity without the gradient of the pressure: nearly free of divergence.
// iChannel0: Buffer A
// iChannel1: Buffer B
void mainImage(out vec4 state, in vec2 point) {
    ivec2 p = ivec2(point), last = ivec2(iResolution.xy) - 1;
    float x = texelFetch(iChannel1, min(p + ivec2(1, 0), last), 0).x - texelFetch(iChannel1, max(p - ivec2(1, 0), ivec2(0)), 0).x;
    float y = texelFetch(iChannel1, min(p + ivec2(0, 1), last), 0).x - texelFetch(iChannel1, max(p - ivec2(0, 1), ivec2(0)), 0).x;
    vec2 v = texelFetch(iChannel0, p, 0).xy - 0.5 * vec2(x, y);
    bool is_edge = any(equal(p, ivec2(0))) || any(equal(p, last));
    state = vec4(is_edge ? vec2(0) : v, 0.0, 1.0);
}

// ---- Buffer D ----
// Dye, carried by the velocity.
// iChannel0: Buffer C linear
// iChannel1: Buffer D linear
uniform float fading = 0.996;  // 0.9 to 1
void mainImage(out vec4 state, in vec2 point) {
    vec2 size = iResolution.xy, v = texture(iChannel0, point / size).xy;
    vec3 dye, old = texture(iChannel1, (point - DT * v) / size).rgb;
    jets(point, size, iTime, dye);
    state = vec4(min(old * fading + 0.12 * dye, 3.0), 1.0);
}

// ---- Image ----
// iChannel0: Buffer D linear
void mainImage(out vec4 color, in vec2 point) {
    vec2 uv = point / iResolution.xy, e = 1.0 / iResolution.xy;
    vec3 dye = texture(iChannel0, uv).rgb;
    float right = dot(texture(iChannel0, uv + vec2(e.x, 0)).rgb, vec3(0.33)), left = dot(texture(iChannel0, uv - vec2(e.x, 0)).rgb, vec3(0.33));
    float up = dot(texture(iChannel0, uv + vec2(0, e.y)).rgb, vec3(0.33)), down = dot(texture(iChannel0, uv - vec2(0, e.y)).rgb, vec3(0.33));
    float light = 1.0 + 0.8 * clamp(4.0 * (left - right + up - down), -0.7, 0.9);
    vec3 c = 1.0 - exp(-1.5 * dye * light);
    color = vec4(mix(vec3(0.015, 0.018, 0.03), c, smoothstep(0.0, 0.08, max(c.r, max(c.g, c.b)))), 1.0);
}
