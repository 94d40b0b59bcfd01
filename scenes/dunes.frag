#version 330
// Dunes under a moon: a plain fragment shader with main() and an output; its uniforms are sliders.
uniform vec2 u_resolution;
uniform float u_time;
uniform float wind = 0.25;                   // 0 to 2
uniform float steepness = 0.55;              // of the ridges, 0 to 1
uniform int layers = 7;                      // 1 to 12
uniform vec3 sky_color = vec3(0.93, 0.55, 0.42);
uniform vec3 sand_color = vec3(0.32, 0.16, 0.22);
uniform bool moon = true;
out vec4 color;

float ridge(float x, float seed) {
    float h = 0.0, weight = 0.5;
    for (int k = 0; k < 5; k++) {
        float wave = sin(x + seed * 7.13 + float(k) * 1.7);
        h += weight * mix(wave, 1.0 - 2.0 * abs(fract(x / 6.2832 + seed) - 0.5), steepness);
        x = x * 2.03 + 1.3;
        weight *= 0.42;
    }
    return h;
}

void main() {
    vec2 q = gl_FragCoord.xy / u_resolution.y;
    vec3 c = mix(sky_color, vec3(0.10, 0.10, 0.26), smoothstep(0.25, 1.05, q.y));
    if (moon) {
        float d = distance(q, vec2(0.72 * u_resolution.x / u_resolution.y, 0.76));
        c += vec3(1.0, 0.9, 0.75) * (smoothstep(0.082, 0.078, d) + 0.18 * exp(-d * 7.0));
    }
    for (int k = 0; k < layers; k++) {
        float depth = float(k + 1) / float(layers), x = q.x * mix(5.0, 1.6, depth) + u_time * wind * depth;
        float top = mix(0.52, 0.06, depth) + mix(0.05, 0.12, depth) * ridge(x, float(k) * 0.37);
        float slope = (ridge(x + 0.02, float(k) * 0.37) - ridge(x - 0.02, float(k) * 0.37)) / 0.04;
        float lit = smoothstep(-1.2, 0.9, slope);
        vec3 sand = mix(mix(sky_color, vec3(0.25, 0.2, 0.35), 0.25), sand_color * (0.45 + 0.9 * lit), depth);
        sand *= 1.0 + 0.25 * smoothstep(0.03, 0.0, top - q.y);
        c = mix(c, sand, smoothstep(-0.0015, 0.0015, top - q.y));
    }
    color = vec4(c, 1.0);
}
