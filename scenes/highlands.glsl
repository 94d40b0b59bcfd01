// Highlands: rays through a terrain of noise whose slopes are eroded, mist in its valleys, a lake. The mouse turns the eye.
// iChannel0: noise linear
uniform float snow = 0.5;  // 0 to 1
uniform float mist = 0.5;  // 0 to 1

const vec3 SUN = normalize(vec3(-0.62, 0.21, 0.55));
const float LAKE = 0.18;

// Value noise of the channel's texels, smooth, with its slope: x, and yz.
vec3 noise(vec2 q) {
    vec2 i = floor(q), f = q - i, u = f * f * f * (f * (f * 6.0 - 15.0) + 10.0), du = 30.0 * f * f * (f * (f - 2.0) + 1.0);
    ivec2 p = ivec2(i);
    float a = texelFetch(iChannel0, p & 255, 0).x, b = texelFetch(iChannel0, (p + ivec2(1, 0)) & 255, 0).x;
    float c = texelFetch(iChannel0, (p + ivec2(0, 1)) & 255, 0).x, d = texelFetch(iChannel0, (p + 1) & 255, 0).x;
    return vec3(mix(mix(a, b, u.x), mix(c, d, u.x), u.y), du * vec2(mix(b - a, d - c, u.y), mix(c - a, d - b, u.x)));
}

// Octaves count less where the sum of the slopes is steep (Quilez, Elevated, 2009).
float ground(vec2 q, int octaves) {
    float sum = 0.0, size = 1.0;
    vec2 slope = vec2(0);
    q *= 0.45;
    for (int k = 0; k < octaves; k++) {
        vec3 n = noise(q);
        slope += n.yz;
        sum += size * n.x / (1.0 + dot(slope, slope));
        size *= 0.5;
        q = mat2(1.6, 1.2, -1.2, 1.6) * q + 17.3;
    }
    return 1.9 * sum - 0.7;
}

vec3 sky(vec3 ray) {
    float near = max(dot(ray, SUN), 0.0), high = max(ray.y, 0.0);
    vec3 c = mix(vec3(0.95, 0.62, 0.42), vec3(0.16, 0.32, 0.62), pow(smoothstep(-0.05, 0.55, ray.y), 0.6));
    vec2 cloud = ray.xz / (high + 0.12) * 0.7 + vec2(0.02 * iTime, 0);
    float wisps = noise(cloud * vec2(1.0, 2.5)).x * 0.5 + noise(cloud * vec2(2.3, 5.1) + 9.0).x * 0.3 + noise(cloud * 7.0).x * 0.2;
    c = mix(c, vec3(1.0, 0.78, 0.66), 0.75 * smoothstep(0.5, 0.8, wisps) * smoothstep(0.0, 0.12, ray.y));
    return c + vec3(1.0, 0.55, 0.25) * (0.35 * pow(near, 6.0) + 0.5 * pow(near, 60.0) + 12.0 * smoothstep(0.9993, 0.9997, near));
}

float march(vec3 eye, vec3 ray, float least, int steps) {
    float t = least, before = 0.0;
    for (int k = 0; k < steps; k++) {
        vec3 p = eye + t * ray;
        float h = p.y - ground(p.xz, 6);
        if (h < 0.0012 * t) return t - before * 0.3;
        if (t > 26.0 || p.y > 2.2 && ray.y > 0.0) break;
        before = max(0.38 * h, 0.004 * t);
        t += before;
    }
    return -1.0;
}

vec3 air(vec3 c, vec3 eye, vec3 ray, float t) {
    float near = max(dot(ray, SUN), 0.0), low = exp(-3.5 * max(eye.y + t * ray.y - LAKE, 0.0));
    vec3 haze = mix(vec3(0.38, 0.45, 0.60), vec3(1.0, 0.62, 0.38), 0.25 + 0.75 * pow(near, 3.0));
    return mix(haze, c, exp(-t * t * 0.006 - t * (0.012 + 0.28 * mist * low * smoothstep(1.0, 6.0, t))));
}

vec3 land(vec3 eye, vec3 ray, float t) {
    vec3 p = eye + t * ray;
    float e = 0.0015 * t + 0.002, h = ground(p.xz, 10);
    vec3 n = normalize(vec3(h - ground(p.xz + vec2(e, 0), 10), e, h - ground(p.xz + vec2(0, e), 10)));
    float facing = max(dot(n, SUN), 0.0), lit = march(p + 0.02 * n, SUN, 0.04, 40) > 0.0 ? 0.0 : 1.0, rough = noise(p.xz * 60.0).x;
    vec3 rock = mix(vec3(0.16, 0.12, 0.10), vec3(0.30, 0.25, 0.22), noise(vec2(p.y * 24.0, p.x * 2.0)).x) * (0.7 + 0.6 * rough);
    vec3 meadow = mix(vec3(0.07, 0.085, 0.025), vec3(0.16, 0.12, 0.035), rough);
    vec3 c = mix(rock, meadow, smoothstep(0.62, 0.8, n.y) * smoothstep(0.95, 0.55, p.y));
    c = mix(c, vec3(0.85, 0.88, 0.95), smoothstep(0.5, 0.75, n.y + 0.2 * rough) * smoothstep(1.35 - 0.9 * snow, 1.6 - 0.9 * snow, p.y + 0.25 * rough));
    vec3 light = 2.6 * facing * lit * vec3(1.0, 0.66, 0.40) + (0.5 + 0.5 * n.y) * vec3(0.20, 0.28, 0.44) + 0.12 * max(dot(n, -SUN * vec3(1, 0, 1)), 0.0) * vec3(1.0, 0.6, 0.4);
    return c * light;
}

void mainImage(out vec4 color, in vec2 point) {
    vec2 q = (2.0 * point - iResolution.xy) / iResolution.y;
    float a = iMouse.z > 0.0 ? 6.2832 * (iMouse.x / iResolution.x - 0.5) : -0.42 + 0.1 * sin(iTime * 0.1);
    vec3 eye = vec3(4.0, 0.0, 0.16 * iTime), ray = normalize(vec3(q.x, q.y - 0.08, 1.7));
    eye.y = 0.4 + max(LAKE, max(ground(eye.xz, 3), max(ground(eye.xz + vec2(-0.5, 0.9), 3), ground(eye.xz + vec2(0.3, 0.7), 3))));
    ray.xz = mat2(cos(a), sin(a), -sin(a), cos(a)) * ray.xz;
    float t = march(eye, ray, 0.05, 150), lake = (LAKE - eye.y) / ray.y;
    vec3 c = t > 0.0 ? air(land(eye, ray, t), eye, ray, t) : sky(ray);
    if (lake > 0.0 && lake < 26.0 && (t < 0.0 || lake < t)) {
        vec3 p = eye + lake * ray, wave = noise(p.xz * vec2(14.0, 30.0) + iTime * 0.5) - 0.5;
        vec3 n = normalize(vec3(wave.y * 0.006, 1.0, wave.z * 0.006)), mirrored = reflect(ray, n);
        float back = march(p, mirrored, 0.03, 60);
        vec3 seen = back > 0.0 ? air(land(p, mirrored, back), p, mirrored, back) : sky(mirrored);
        c = air(mix(vec3(0.01, 0.03, 0.04), seen, 0.08 + 0.85 * pow(1.0 - max(dot(-ray, n), 0.0), 3.0)), eye, ray, lake);
    }
    c = c * (2.2 * c + 0.03) / (c * (2.1 * c + 0.59) + 0.14);
    vec2 uv = point / iResolution.xy - 0.5;
    color = vec4(pow(c, vec3(0.4545)) * (1.0 - 0.5 * dot(uv, uv)), 1.0);
}
