// Clouds at sunset: density from the 3D noise in one texture, marched with the light that passes.
// iChannel0: noise
uniform float cover = 0.5;  // 0 to 1

float noise(vec3 x) {
    vec3 cell = floor(x), f = fract(x);
    f = f * f * (3.0 - 2.0 * f);
    vec2 two = textureLod(iChannel0, (cell.xy + vec2(37.0, 239.0) * cell.z + f.xy + 0.5) / 256.0, 0.0).yx;
    return mix(two.x, two.y, f.z);
}

float density(vec3 p, int octaves) {
    vec3 q = p * 0.55 - vec3(0.12, 0.0, 0.35) * iTime;
    float sum = 0.0, weight = 0.5;
    for (int k = 0; k < octaves; k++) {
        sum += weight * noise(q);
        q = q * 2.03 + vec3(3.1, 1.7, 5.3);
        weight *= 0.5;
    }
    float layer = 1.0 - smoothstep(0.1, 1.25, abs(p.y + 1.1));
    return clamp((sum - mix(0.72, 0.32, cover)) * 3.6, 0.0, 1.0) * layer;
}

void mainImage(out vec4 color, in vec2 point) {
    vec2 q = (2.0 * point - iResolution.xy) / iResolution.y;
    vec3 ray = normalize(vec3(q.x, q.y - 0.12, 1.7)), sun = normalize(vec3(-0.35, 0.16, 0.92));
    float toward = max(dot(ray, sun), 0.0);
    vec3 sky = mix(vec3(0.98, 0.56, 0.32), vec3(0.16, 0.27, 0.52), smoothstep(-0.05, 0.55, ray.y));
    sky += vec3(1.0, 0.55, 0.25) * (0.5 * pow(toward, 12.0) + 1.5 * pow(toward, 900.0));
    vec3 sum = vec3(0);
    float passed = 1.0, t = 2.0 + 0.15 * fract(sin(dot(point, vec2(12.9898, 78.233))) * 43758.5453);
    for (int k = 0; k < 72 && passed > 0.02; k++) {
        vec3 p = vec3(0, 0.55, 0) + t * ray;
        float here = density(p, 4), step_length = 0.05 + 0.03 * t;
        if (here > 0.01) {
            float shade = exp(-1.9 * (density(p + 0.35 * sun, 3) + 0.7 * density(p + 0.9 * sun, 2)));
            vec3 lit = mix(vec3(0.23, 0.22, 0.36), vec3(1.25, 0.80, 0.52), shade) + 0.7 * shade * pow(toward, 6.0);
            float taken = 1.0 - exp(-here * step_length * 3.2);
            sum += passed * taken * mix(lit, sky, 1.0 - exp(-0.0018 * t * t));
            passed *= 1.0 - taken;
        }
        t += step_length;
    }
    vec3 c = sum + passed * sky;
    color = vec4(pow(c / (1.0 + 0.22 * c), vec3(0.85)), 1.0);
}
