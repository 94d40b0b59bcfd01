// Ridges: the spectrum of a tune that time alone plays, each moment a line, older ones farther away.

// ---- Common ----
const float LINES = 44.0;
uniform float pace = 15.0;  // lines a second, 5 to 60

// ---- Buffer A ----
// Row 0: levels by pitch, now. Row k: the levels k lines ago.
// iChannel0: Buffer A nearest
float level(float pitch, float t) {
    float sum = 0.0, beat = t * 2.0;
    for (int voice = 0; voice < 5; voice++) {
        float v = float(voice), step_ = floor(beat * (v < 2.0 ? 0.5 : 1.0) + v * 0.25), since = fract(beat * (v < 2.0 ? 0.5 : 1.0) + v * 0.25);
        float note = 0.16 + 0.13 * v + 0.11 * fract(sin(step_ * 12.9 + v * 78.2) * 4375.5), loud = exp(-2.4 * since) * (1.0 - 0.12 * v);
        for (int k = 1; k < 5; k++) {  // the note and its overtones
            float at = note + 0.16 * log2(float(k)), d = (pitch - at) / (0.014 + 0.006 * since);
            sum += loud * exp(-d * d) / float(k);
        }
    }
    float drum = exp(-6.0 * fract(beat * 0.5)) * exp(-pow((pitch - 0.08) * 16.0, 2.0));
    float hiss = 0.14 * exp(-5.0 * fract(beat + 0.5)) * fract(sin(floor(pitch * 160.0) * 91.3 + floor(t * 15.0)) * 437.5) * smoothstep(0.6, 0.9, pitch);
    return (sum + 1.3 * drum + hiss) * smoothstep(0.0, 0.05, pitch) * smoothstep(1.0, 0.93, pitch);
}

void mainImage(out vec4 state, in vec2 point) {
    ivec2 p = ivec2(point);
    if (p.y > int(LINES) + 1) discard;
    bool is_next = floor(iTime * pace) > floor((iTime - iTimeDelta) * pace);
    float kept = iFrame == 0 ? 0.0 : texelFetch(iChannel0, ivec2(p.x, is_next ? max(p.y - 1, 0) : p.y), 0).x;
    state = vec4(p.y == 0 ? level(point.x / iResolution.x, iTime) : kept, 0, 0, 1);
}

// ---- Image ----
// iChannel0: Buffer A linear
void mainImage(out vec4 color, in vec2 point) {
    vec2 uv = point / iResolution.xy;
    float moved = fract(iTime * pace), pixel = 1.0 / iResolution.y;
    vec3 c = mix(vec3(0.03, 0.012, 0.05), vec3(0.002, 0.004, 0.015), smoothstep(0.3, 1.0, uv.y));
    vec2 sun = (uv - vec2(0.5, 0.79)) * vec2(iResolution.x / iResolution.y, 1.0);
    float slats = smoothstep(0.0, 0.003, abs(fract((uv.y - 0.66) * 24.0) - 0.5) / 24.0 - 0.016 * smoothstep(0.9, 0.62, uv.y));
    c += mix(vec3(0.95, 0.12, 0.32), vec3(1.0, 0.7, 0.25), smoothstep(0.64, 0.94, uv.y)) * smoothstep(pixel, -pixel, length(sun) - 0.155) * slats;
    c += vec3(0.5, 0.08, 0.2) * 0.3 * exp(-7.0 * max(length(sun) - 0.155, 0.0));
    for (float k = LINES; k >= 0.0; k--) {  // from far to near: each line hides what lies behind it
        float depth = (k + moved) / LINES, far = 1.0 / (1.0 + 2.2 * depth), base = 0.72 - 0.69 * (far - 0.3125) / 0.6875;
        float x = 0.5 + (uv.x - 0.5) / (0.55 + 0.5 * far);
        if (depth > 1.0 || x < 0.0 || x > 1.0) continue;
        float tall = texture(iChannel0, vec2(x, (k + 0.5) / iResolution.y)).x, top = base + 0.20 * far * tall;
        if (uv.y > top + 3.0 * pixel || uv.y < base - 0.12 * far) continue;
        vec3 tint = mix(vec3(0.12, 0.55, 1.0), mix(vec3(1.0, 0.25, 0.55), vec3(1.0, 0.9, 0.6), smoothstep(0.5, 1.2, tall)), smoothstep(0.05, 0.6, tall));
        tint *= (0.25 + 0.75 * far) * (1.0 - 0.7 * depth * depth);
        float below = (top - uv.y) / (0.20 * far);
        vec3 body = vec3(0.006, 0.004, 0.016) + 0.30 * tint * tall * exp(-5.0 * max(below, 0.0));
        c = mix(c, body, smoothstep(top, top - pixel, uv.y));
        float e = 1.0 / iResolution.x, slope = 0.20 * far * (texture(iChannel0, vec2(x + e, (k + 0.5) / iResolution.y)).x - texture(iChannel0, vec2(x - e, (k + 0.5) / iResolution.y)).x) / (2.0 * e) * iResolution.y / iResolution.x;
        float d = abs(uv.y - top) / sqrt(1.0 + slope * slope);
        c += tint * (smoothstep(0.9 * pixel + 0.0022 * far, 0.0, d) * (0.35 + 1.2 * min(tall, 1.0)) + 0.12 * tall * exp(-d * 90.0));
    }
    color = vec4(pow(c / (1.0 + 0.35 * c), vec3(0.4545)), 1.0);
}
