// Pendulums: each pixel is a double pendulum let go at its own two angles; its color is where it swings now.

// ---- Buffer A ----
// xy: angles; zw: their rates. Midpoint steps of the equations of motion; equal rods and masses, gravity 9.8.
// iChannel0: Buffer A nearest
uniform float slowness = 1.0;  // 0.25 to 4
uniform float span = 3.1416;   // angles at the borders, 0.5 to 3.1416

vec4 rates(vec4 s) {
    float d = s.x - s.y, sine = sin(d), cosine = cos(d), below = 3.0 - cos(2.0 * d), g = 9.8;
    float first = -3.0 * g * sin(s.x) - g * sin(s.x - 2.0 * s.y) - 2.0 * sine * (s.w * s.w + s.z * s.z * cosine);
    float second = 2.0 * sine * (2.0 * s.z * s.z + 2.0 * g * cos(s.x) + s.w * s.w * cosine);
    return vec4(s.zw, vec2(first, second) / below);
}

void mainImage(out vec4 state, in vec2 point) {
    vec2 start = (2.0 * point / iResolution.xy - 1.0) * span * vec2(1.0, 1.0);
    state = iFrame == 0 ? vec4(start, 0, 0) : texelFetch(iChannel0, ivec2(point), 0);
    float h = 0.5 * min(iTimeDelta, 0.05) / slowness;
    for (int k = 0; k < 2; k++) {
        vec4 a = rates(state), b = rates(state + 0.5 * h * a);
        state += h * b;
    }
}

// ---- Image ----
// iChannel0: Buffer A nearest
vec3 shade(vec2 angles) {
    vec2 wrapped = mod(angles + 3.14159, 6.28319) - 3.14159;
    float first = 0.5 + 0.5 * sin(wrapped.x), second = 0.5 + 0.5 * cos(wrapped.y), third = 0.5 + 0.5 * sin(wrapped.y);
    vec3 night = vec3(0.01, 0.02, 0.07), sea = vec3(0.02, 0.42, 0.55), ember = vec3(1.0, 0.36, 0.08), cream = vec3(1.0, 0.90, 0.72);
    vec3 c = mix(mix(night, sea, first), mix(ember, cream, first), third * third);
    return c * (0.35 + 0.75 * second);
}

void mainImage(out vec4 color, in vec2 point) {
    ivec2 p = ivec2(point), last = ivec2(iResolution.xy) - 1;
    vec4 here = texelFetch(iChannel0, p, 0), right = texelFetch(iChannel0, min(p + ivec2(1, 0), last), 0), up = texelFetch(iChannel0, min(p + ivec2(0, 1), last), 0);
    vec3 c = shade(here.xy) * 0.5 + 0.25 * (shade(right.xy) + shade(up.xy));
    vec2 slope = clamp(vec2(sin(right.y - here.y), sin(up.y - here.y)), -0.5, 0.5);
    c *= 1.0 + 0.5 * dot(slope, normalize(vec2(-0.6, 0.8)));
    // The pendulum of the middle of a slow path through the picture, drawn over it, and a cross at its pixel.
    vec2 at = iMouse.z > 0.0 ? iMouse.xy : iResolution.xy * (0.5 + 0.32 * vec2(cos(0.2 * iTime + 2.5), sin(0.13 * iTime + 1.0)));
    vec2 a = texelFetch(iChannel0, ivec2(at), 0).xy, q = (point - at) / iResolution.y / 0.075;
    vec2 joint = vec2(sin(a.x), -cos(a.x)), tip = joint + vec2(sin(a.y), -cos(a.y));
    float rod = min(length(q - joint * clamp(dot(q, joint), 0.0, 1.0)), length(q - joint - (tip - joint) * clamp(dot(q - joint, tip - joint), 0.0, 1.0)));
    float d = min(rod - 0.05, min(length(q) - 0.09, min(length(q - joint), length(q - tip)) - 0.17)), pixel = 15.0 / iResolution.y;
    c = mix(c, c * 0.25, smoothstep(0.25, -0.1, d));
    c = mix(c, vec3(1.0, 0.97, 0.9), smoothstep(pixel, -pixel, d));
    color = vec4(pow(c, vec3(0.4545)), 1.0);
}
