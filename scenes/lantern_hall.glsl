// A hall of lanterns: distance fields with soft shadows in Buffer A, a wide blur of its bright parts in B and C.

// ---- Buffer A ----
// The hall: rays march through repeated columns and lanterns (Hart, Sphere Tracing, 1996).
uniform float fog = 0.045;  // 0 to 0.2

vec3 flame_at(vec2 cell) { return vec3(cell.x * 4.0, 1.55 + 0.12 * sin(iTime * 1.3 + cell.x * 2.0 + cell.y), cell.y * 4.0); }

float columns(vec3 p) {
    vec2 q = mod(p.xz + 4.0, 4.0) - 2.0;
    float shaft = length(q) - 0.32 - 0.4 * smoothstep(2.1, 3.1, p.y) + 0.02 * cos(atan(q.y, q.x) * 12.0);
    float hall = min(min(shaft, p.y), 3.0 - p.y + 0.25 * cos(p.x * 1.5708) * cos(p.z * 1.5708));
    return min(hall, max(length(q) - 0.62, abs(p.y - 0.12) - 0.12));
}

vec3 lights(vec3 p, vec3 n) {
    vec2 cell = round(p.xz / 4.0);
    vec3 sum = vec3(0.010, 0.014, 0.03) * (0.6 + 0.4 * n.y);
    for (int k = 0; k < 9; k++) {
        vec2 at = cell + vec2(k % 3 - 1, k / 3 - 1);
        vec3 to = flame_at(at) - p;
        float far = length(to), facing = max(dot(n, to / far), 0.0);
        vec3 tint = mix(vec3(1.0, 0.5, 0.16), vec3(0.95, 0.28, 0.30), 0.5 + 0.5 * sin(at.x * 3.1 + at.y * 1.7));
        sum += tint * facing * 0.9 / (0.3 + far * far);
    }
    return sum;
}

void mainImage(out vec4 color, in vec2 point) {
    vec2 q = (2.0 * point - iResolution.xy) / iResolution.y;
    float turned = 0.35 * sin(iTime * 0.11) + 0.35;
    vec3 eye = vec3(1.0 + 0.4 * sin(iTime * 0.2), 1.15, iTime * 0.5), ray = normalize(vec3(q, 1.5));
    ray.xz *= mat2(cos(turned), -sin(turned), sin(turned), cos(turned));
    float t = 0.0, glow = 0.0;
    vec3 halo = vec3(0);
    for (int k = 0; k < 80; k++) {
        vec3 p = eye + t * ray, lamp = flame_at(round(p.xz / 4.0)) - p;
        float shell = length(lamp) - 0.16, d = min(columns(p), abs(shell) + 0.015);
        halo += vec3(1.0, 0.5, 0.2) * 0.006 / (0.006 + shell * shell) * min(d, 0.4) * exp(-fog * t);
        if (d < 0.0016 * t || t > 40.0) break;
        t += d * 0.85;
    }
    vec3 p = eye + t * ray, e = vec3(0.002, 0, 0);
    vec3 n = normalize(vec3(columns(p + e.xyy) - columns(p - e.xyy), columns(p + e.yxy) - columns(p - e.yxy), columns(p + e.yyx) - columns(p - e.yyx)));
    float tile = p.y < 0.02 ? 0.75 + 0.25 * step(0.0, sin(p.x * 3.1416) * sin(p.z * 3.1416)) : 0.9;
    vec3 c = t < 40.0 ? lights(p, n) * tile * vec3(0.85, 0.78, 0.72) : vec3(0);
    color = vec4(mix(vec3(0.02, 0.018, 0.03), c, exp(-fog * t)) + halo, 1.0);
}

// ---- Buffer B ----
// iChannel0: Buffer A
void mainImage(out vec4 color, in vec2 point) {
    vec3 sum = vec3(0);
    for (int k = -12; k <= 12; k++) {
        float x = float(k), weight = exp(-x * x / 50.0);
        vec3 c = texture(iChannel0, (point + vec2(x * iResolution.y / 400.0, 0)) / iResolution.xy).rgb;
        sum += weight * max(c - 0.5, 0.0);
    }
    color = vec4(sum / 12.5, 1.0);
}

// ---- Image ----
// iChannel0: Buffer A
// iChannel1: Buffer B
void mainImage(out vec4 color, in vec2 point) {
    vec3 bloom = vec3(0);
    for (int k = -12; k <= 12; k++) {
        float y = float(k), weight = exp(-y * y / 50.0);
        bloom += weight * texture(iChannel1, (point + vec2(0, y * iResolution.y / 400.0)) / iResolution.xy).rgb;
    }
    vec2 uv = point / iResolution.xy;
    vec3 c = texture(iChannel0, uv).rgb + 0.9 * bloom / 12.5;
    c = (c * (2.51 * c + 0.03)) / (c * (2.43 * c + 0.59) + 0.14);
    color = vec4(pow(c, vec3(0.4545)) * (1.0 - 0.5 * dot(uv - 0.5, uv - 0.5)), 1.0);
}
