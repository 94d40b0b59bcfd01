// A rose window: cells of Voronoi, folded twelve times, as glass between lead, and the sun behind it. Drag the sun.
uniform float petals = 12.0;  // 4 to 24
uniform float shafts = 1.0;   // 0 to 2

vec2 random(vec2 p) { return fract(sin(vec2(dot(p, vec2(127.1, 311.7)), dot(p, vec2(269.5, 183.3)))) * 43758.5453); }

// The distance to the nearest border of cells, and a number of the cell (Quilez, Voronoi edges).
vec2 voronoi(vec2 q, out vec2 center) {
    vec2 base = floor(q), f = fract(q), nearest = vec2(0);
    float least = 9.0, border = 9.0, number = 0.0;
    for (int k = 0; k < 9; k++) {
        vec2 cell = vec2(k % 3, k / 3) - 1.0, to = cell + 0.15 + 0.7 * random(base + cell) - f;
        if (dot(to, to) < least) { least = dot(to, to); nearest = to; number = random(base + cell + 7.0).x; }
    }
    for (int k = 0; k < 25; k++) {
        vec2 cell = vec2(k % 5, k / 5) - 2.0, to = cell + 0.15 + 0.7 * random(base + cell) - f, apart = to - nearest;
        if (dot(apart, apart) > 1e-4) border = min(border, dot(0.5 * (nearest + to), normalize(apart)));
    }
    center = q + nearest;
    return vec2(border, number);
}

// The glass at a point: color, and the distance to lead in z of `lead`.
vec3 glass(vec2 q, out float lead) {
    float r = length(q), step_ = 6.2831853 / floor(petals), a = atan(q.x, q.y) + 0.5 * step_;
    a = abs(mod(a, step_) - 0.5 * step_);
    vec2 folded = r * vec2(sin(a), cos(a)), center;
    vec2 cells = voronoi(folded * 9.0 + vec2(0.31, 0.2), center);
    float ring = min(abs(r - 0.24), min(abs(r - 0.62), abs(r - 0.93))), spoke = r > 0.24 ? folded.x : 1.0;
    float petal = abs(length(folded - vec2(0.0, 0.62)) - 0.19), far = length(center - vec2(0.31, 0.2)) / 9.0;
    lead = min(min(cells.x / 9.0 - 0.006, ring - 0.014), min(spoke - 0.009, petal - 0.010));
    float inside = length(folded - vec2(0.0, 0.62)) - 0.19, hue = inside < 0.0 ? 0.02 + 0.10 * cells.y : r < 0.24 ? 0.1 + 0.06 * cells.y : far < 0.62 ? 0.58 + 0.12 * cells.y : 0.66 + 0.2 * cells.y;
    vec3 tint = 0.5 + 0.5 * cos(6.2832 * (hue + vec3(0.0, -0.33, 0.33)));
    return r < 0.93 ? pow(tint, vec3(2.2)) * (0.45 + 0.75 * cells.y) + 0.012 : vec3(0);
}

void mainImage(out vec4 color, in vec2 point) {
    vec2 q = (2.0 * point - iResolution.xy) / iResolution.y * 1.04;
    vec2 sun = iMouse.z > 0.0 ? (2.0 * iMouse.xy - iResolution.xy) / iResolution.y : vec2(0.75 * sin(iTime * 0.35 + 0.6), 0.35 + 0.25 * cos(iTime * 0.27));
    float lead, pixel = 2.0 / iResolution.y, far = length(q - sun);
    vec3 pane = glass(q, lead);
    float wavy = 0.85 + 0.15 * sin(q.x * 61.0 + 3.0 * sin(q.y * 23.0)) * sin(q.y * 57.0 + 2.0 * sin(q.x * 31.0));
    vec3 c = pane * wavy * (0.35 + 2.6 * exp(-far * far * 2.2) + 5.0 * exp(-far * far * 30.0));
    float e = 0.004, lead_x, lead_y;
    glass(q + vec2(e, 0), lead_x);
    glass(q + vec2(0, e), lead_y);
    vec2 slope = clamp(vec2(lead_x - lead, lead_y - lead) / e, -1.0, 1.0);
    vec3 stone = vec3(0.020, 0.017, 0.016) + 0.05 * max(dot(slope, normalize(q - sun)), 0.0) * vec3(1.0, 0.8, 0.6) / (0.3 + far);
    c = mix(stone, c, smoothstep(-0.3 * pixel, 0.7 * pixel, lead) * step(length(q), 0.93));
    c *= mix(1.0, smoothstep(0.0, 0.03, lead), 0.55);
    vec3 light = vec3(0);
    for (int k = 0; k < 24; k++) {  // shafts: the glass between here and the sun colors the air
        float t = (float(k) + random(point).x) / 24.0, unused;
        vec2 at = mix(q, sun, t * 0.6);
        light += glass(at, unused) * exp(-3.0 * dot(at - sun, at - sun)) * step(0.0, unused) * (1.0 - t) / 24.0;
    }
    c += shafts * light * 0.55;
    c *= length(q) > 0.93 ? 0.6 + 0.4 * smoothstep(1.3, 0.95, length(q)) : 1.0;
    color = vec4(pow(c / (1.0 + 0.45 * c), vec3(0.4545)), 1.0);
}
