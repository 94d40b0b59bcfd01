// Rain on a pool: a height field with the wave equation in Buffer A, refracted and lit in Image. Drag to disturb it.

// ---- Common ----
// A number in [0, 1) for each cell and seed.
float hash(vec3 p) {
    p = fract(p * vec3(0.1031, 0.1030, 0.0973));
    p += dot(p, p.yzx + 33.33);
    return fract((p.x + p.y) * p.z);
}

// ---- Buffer A ----
// red: height, green: height one frame ago
// iChannel0: Buffer A
uniform float damping = 0.988;  // 0.9 to 1
uniform float rain = 0.06;      // drops a frame, 0 to 1

void mainImage(out vec4 state, in vec2 point) {
    ivec2 p = ivec2(point), last = ivec2(iResolution.xy) - 1;
    vec2 here = texelFetch(iChannel0, p, 0).xy;
    float around = 0.0;
    for (int k = 0; k < 4; k++) {
        ivec2 to = ivec2(k == 0 ? 1 : k == 1 ? -1 : 0, k == 2 ? 1 : k == 3 ? -1 : 0);
        around += texelFetch(iChannel0, clamp(p + to, ivec2(0), last), 0).x;
    }
    float height = (0.5 * around - here.y) * damping;
    float frame = float(iFrame), unit = iResolution.y / 180.0;
    if (hash(vec3(frame, 1.0, 7.0)) < rain) {
        vec2 drop = vec2(hash(vec3(frame, 2.0, 3.0)), hash(vec3(frame, 5.0, 4.0))) * iResolution.xy;
        float d = distance(point, drop) / unit;
        height -= 0.7 * exp(-d * d / 14.0);
    }
    if (iMouse.z > 0.0) {
        float d = distance(point, iMouse.xy) / unit;
        height -= 0.25 * exp(-d * d / 16.0);
    }
    state = vec4(height, here.x, 0.0, 1.0);
}

// ---- Image ----
// iChannel0: Buffer A linear
uniform vec3 water = vec3(0.05, 0.32, 0.42);  // color

float tiles(vec2 q) {
    vec2 cell = floor(q), inside = abs(fract(q) - 0.5);
    float joint = smoothstep(0.49, 0.455, max(inside.x, inside.y));
    return joint * (0.72 + 0.28 * hash(vec3(cell, 1.0))) + 0.10;
}

void mainImage(out vec4 color, in vec2 point) {
    vec2 texel = 1.0 / iResolution.xy, uv = point * texel;
    float e = iResolution.y / 360.0;
    float x = texture(iChannel0, uv + vec2(e, 0) * texel).x - texture(iChannel0, uv - vec2(e, 0) * texel).x;
    float y = texture(iChannel0, uv + vec2(0, e) * texel).x - texture(iChannel0, uv - vec2(0, e) * texel).x;
    vec3 normal = normalize(vec3(-1.5 * x, -1.5 * y, 1.0));
    vec2 floor_at = (point + normal.xy * iResolution.y * 0.09) / iResolution.y;
    float caustic = 1.0 + 3.0 * (texture(iChannel0, uv).x - 0.25 * (
        texture(iChannel0, uv + 4.0 * e * texel * vec2(1, 0)).x + texture(iChannel0, uv - 4.0 * e * texel * vec2(1, 0)).x +
        texture(iChannel0, uv + 4.0 * e * texel * vec2(0, 1)).x + texture(iChannel0, uv - 4.0 * e * texel * vec2(0, 1)).x));
    vec3 bottom = mix(water, vec3(0.75, 0.92, 0.9), 0.35) * tiles(floor_at * 11.0) * clamp(caustic, 0.3, 2.2);
    vec3 sun = normalize(vec3(-0.45, 0.6, 0.66));
    float glint = pow(max(dot(reflect(vec3(0, 0, -1), normal), sun), 0.0), 60.0);
    float fresnel = 0.04 + 0.96 * pow(1.0 - normal.z, 3.0);
    vec3 c = mix(bottom, vec3(0.62, 0.78, 0.92), fresnel) + glint * vec3(1.0, 0.95, 0.82);
    color = vec4(pow(c, vec3(0.8)) * (1.0 - 0.35 * dot(uv - 0.5, uv - 0.5)), 1.0);
}
