// Neon: letters of distance fields in glass tubes, one of them failing, on a brick wall above a wet street.
uniform vec3 tube = vec3(1.0, 0.16, 0.30);  // color
uniform vec3 sign_ = vec3(0.15, 0.65, 1.0);  // color

float line(vec2 p, float ax, float ay, float bx, float by) {
    vec2 a = vec2(ax, ay), d = vec2(bx, by) - a;
    return length(p - a - d * clamp(dot(p - a, d) / dot(d, d), 0.0, 1.0));
}

// Half a ring of radius r to the right of its center.
float bow(vec2 p, float x, float y, float r) {
    p -= vec2(x, y);
    return p.x > 0.0 ? abs(length(p) - r) : length(vec2(p.x, abs(p.y) - r));
}

// The letters of RAYFOLD in a box of 1 x 2.
float letter(int k, vec2 p) {
    if (k == 0) return min(min(line(p, 0.0, 0.0, 0.0, 2.0), bow(p, 0.45, 1.5, 0.5)), min(min(line(p, 0.0, 2.0, 0.45, 2.0), line(p, 0.0, 1.0, 0.45, 1.0)), line(p, 0.45, 1.0, 0.95, 0.0)));
    if (k == 1) return min(min(line(p, 0.0, 0.0, 0.5, 2.0), line(p, 1.0, 0.0, 0.5, 2.0)), line(p, 0.19, 0.75, 0.81, 0.75));
    if (k == 2) return min(min(line(p, 0.0, 2.0, 0.5, 1.0), line(p, 1.0, 2.0, 0.5, 1.0)), line(p, 0.5, 1.0, 0.5, 0.0));
    if (k == 3) return min(min(line(p, 0.0, 0.0, 0.0, 2.0), line(p, 0.0, 2.0, 0.95, 2.0)), line(p, 0.0, 1.05, 0.75, 1.05));
    if (k == 4) return abs(line(p, 0.5, 0.5, 0.5, 1.5) - 0.5);
    if (k == 5) return min(line(p, 0.0, 0.0, 0.0, 2.0), line(p, 0.0, 0.0, 0.9, 0.0));
    vec2 q = vec2(p.x, abs(p.y - 1.0));
    return min(line(p, 0.0, 0.0, 0.0, 2.0), min(line(q, 0.0, 1.0, 0.35, 1.0), min(line(q, 0.95, 0.0, 0.95, 0.4), p.x > 0.35 && q.y > 0.4 ? abs(length(q - vec2(0.35, 0.4)) - 0.6) : 9.0)));
}

float power(int k, float t) {  // the fourth letter fails now and then
    float hum = 0.96 + 0.04 * sin(t * 120.0 + float(k)), spark = fract(sin(floor(t * 17.0) * 91.3) * 437.5);
    return k == 3 ? hum * mix(1.0, step(0.45, spark), step(0.55, sin(t * 0.9 + 0.8))) : hum;
}

// Light of the tubes at a point of the wall: the glow, and in alpha the glass.
vec4 tubes(vec2 p) {
    vec4 sum = vec4(0);
    for (int k = 0; k < 7; k++) {
        vec2 at = (p - vec2(float(k) * 0.475 - 1.59, 0.08)) / 0.33;
        float d = 0.33 * letter(k, at), on = power(k, iTime), core = smoothstep(0.016, 0.006, d);
        sum.rgb += on * tube * tube * (0.0045 / (d * d + 0.0016) + 0.07 / (d + 0.12));
        sum.rgb = mix(sum.rgb, mix(vec3(0.10, 0.07, 0.07), mix(tube, vec3(1.0), 0.35) * 3.0, on), core);
        sum.a = max(sum.a, core);
    }
    vec2 frame = abs(p - vec2(0.0, 0.41)) - vec2(1.85, 0.50);
    float d = abs(length(max(frame, 0.0)) + min(max(frame.x, frame.y), 0.0) - 0.06), core = smoothstep(0.011, 0.004, d);
    sum.rgb += sign_ * sign_ * (0.0030 / (d * d + 0.0012) + 0.05 / (d + 0.15)) + core * mix(sign_, vec3(1), 0.35) * 2.4;
    return sum;
}

vec3 wall(vec2 p) {
    vec2 b = p * vec2(5.0, 11.0);
    b.x += 0.5 * mod(floor(b.y), 2.0);
    vec2 f = abs(fract(b) - 0.5), cell = floor(b);
    float number = fract(sin(dot(cell, vec2(12.99, 78.2))) * 43758.5), brick = smoothstep(0.5, 0.46, f.x) * smoothstep(0.5, 0.42, f.y);
    float grain = 0.8 + 0.2 * sin(p.x * 91.0 + 5.0 * sin(p.y * 67.0)) * sin(p.y * 113.0 + 4.0 * sin(p.x * 59.0));
    vec3 c = mix(vec3(0.055), mix(vec3(0.22, 0.10, 0.075), vec3(0.34, 0.19, 0.14), number), brick) * grain;
    vec4 light = tubes(p);
    float tilt = 0.75 + 0.5 * (fract(b.y) - 0.3) * brick;
    return mix(c * (light.rgb * tilt * 0.85 + vec3(0.02, 0.025, 0.04)) + light.rgb * 0.10, light.rgb, light.a);
}

void mainImage(out vec4 color, in vec2 point) {
    vec2 p = (2.0 * point - iResolution.xy) / iResolution.y * 1.12;
    float street = -0.33;
    vec3 c;
    if (p.y > street) c = wall(p) * smoothstep(-0.02, 0.3, p.y - street + 0.25);
    else {
        float depth = street - p.y, far = 0.3 / (depth + 0.12);
        vec2 ground = vec2(p.x * far, far * 3.0);
        float wet = 0.5 + 0.5 * sin(ground.x * 4.0 + sin(ground.y * 2.3)) * sin(ground.y * 3.7 + 2.0 * sin(ground.x * 2.0)), ring = 0.0;
        for (int k = 0; k < 6; k++) {  // rain
            float t = iTime * 0.9 + float(k) * 0.37, number = floor(t) * 7.0 + float(k);
            vec2 at = vec2(fract(sin(number * 12.9) * 43758.5) * 4.0 - 2.0, street - 0.06 - 0.5 * fract(sin(number * 78.2) * 43758.5));
            float d = length((p - at) * vec2(1.0, 2.6)) - 0.25 * fract(t);
            ring += sin(d * 90.0) * exp(-d * d * 900.0) * (1.0 - fract(t));
        }
        vec2 bump = vec2(0.02 * sin(p.x * 40.0 + sin(p.y * 90.0) * 2.0) * depth + 0.05 * ring, 0.10 * ring + 0.012 * sin(p.x * 21.0 + p.y * 160.0));
        c = vec3(0);
        for (int k = 0; k < 8; k++) {  // the rougher the street, the longer the streaks
            float j = (float(k) + fract(sin(dot(point, vec2(12.9, 78.2))) * 4375.5)) / 8.0 - 0.3;
            c += wall(vec2(p.x, 2.0 * street - p.y) + bump + vec2(0.02, 0.5) * j * (0.15 + depth) * (1.2 - wet)) / 8.0;
        }
        c = min(c, 3.0) * (0.18 + 0.45 * wet) * exp(-0.6 * depth) + vec3(0.006, 0.007, 0.011);
    }
    c *= 1.0 - 0.12 * dot(p, p) * 0.5;
    color = vec4(pow(c / (1.0 + 0.3 * c), vec3(0.4545)), 1.0);
}
