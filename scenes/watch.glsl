// A watch that shows iDate: an engraved dial, polished hands with shadows, the moon as it stands tonight.
uniform vec3 enamel = vec3(0.03, 0.10, 0.24);  // color

float hand(vec2 q, float turns, float from, float to, float width) {
    float a = 6.2831853 * turns, x = dot(q, vec2(sin(a), cos(a))), y = abs(dot(q, vec2(cos(a), -sin(a))));
    float along = clamp((x - from) / (to - from), 0.0, 1.0);
    return max(max(from - x, x - to), y - width * (0.35 + 0.65 * sqrt(1.0 - along) * smoothstep(0.0, 0.3, along + 0.12)));
}

// Draws a hand over a color: its shadow, its steel with one bright side, its edge.
void place(inout vec3 c, vec2 q, float turns, float from, float to, float width, vec3 steel, float pixel) {
    float shadow = hand(q - vec2(0.016, -0.022), turns, from, to, width), d = hand(q, turns, from, to, width);
    c *= 1.0 - 0.6 * smoothstep(0.025, -0.012, shadow);
    float a = 6.2831853 * turns, side = dot(q, vec2(cos(a), -sin(a)));
    float facing = 0.55 + 0.45 * dot(vec2(cos(a), -sin(a)) * sign(side), normalize(vec2(-0.6, 0.8)));
    c = mix(c, steel * (0.25 + 1.1 * facing * facing), smoothstep(pixel, -pixel, d));
}

void mainImage(out vec4 color, in vec2 point) {
    vec2 q = (2.0 * point - iResolution.xy) / iResolution.y * 1.06;
    float r = length(q), a = atan(q.x, q.y) / 6.2831853, pixel = 1.5 / iResolution.y, light = dot(q / max(r, 0.01), normalize(vec2(-0.6, 0.8)));
    vec3 gold = vec3(1.0, 0.78, 0.46), c = vec3(0.05, 0.032, 0.025) * (1.2 - 0.3 * r) * (0.9 + 0.1 * sin(q.y * 90.0 + 3.0 * sin(q.x * 2.0 + q.y)));
    c *= 1.0 - 0.8 * smoothstep(0.25, -0.05, length(q - vec2(0.05, -0.07)) - 0.97);
    // The case: a ring of gold that reflects the room by its slope.
    float bevel = (r - 0.93) / 0.055, shine = 0.5 + 0.5 * sin(bevel * 2.2 + light * 2.6 + sin(a * 25.0) * 0.15);
    c = mix(c, gold * gold * (0.08 + 1.1 * shine * shine), smoothstep(pixel, -pixel, abs(r - 0.93) - 0.055));
    // The dial: waves engraved from the center, under enamel.
    float wave = sin(75.398 * a + 14.0 * sin(r * 22.0)) * sin(r * 120.0 + 6.0 * cos(a * 75.398));
    float sheen = 0.5 + 0.5 * cos(2.0 * (a * 6.2831853 + 0.65));
    vec3 dial = enamel * (0.35 + 1.5 * sheen * sheen * (1.0 - 0.6 * r)) * (1.0 + 0.45 * wave * smoothstep(0.1, 0.3, r) * smoothstep(0.7, 0.6, r));
    dial *= 1.0 - 0.7 * smoothstep(0.78, 0.88, r);
    float minute = abs(fract(a * 60.0 + 0.5) - 0.5) / 60.0 * 6.2831853 * r, hour = abs(fract(a * 12.0 + 0.5) - 0.5) / 12.0 * 6.2831853 * r;
    float marks = min(max(minute - 0.0025, abs(r - 0.83) - 0.018), max(hour - 0.014, abs(r - 0.755) - 0.06));
    dial = mix(dial, gold * (0.55 + 0.5 * light), smoothstep(pixel, -pixel, marks));
    c = mix(c, dial, smoothstep(pixel, -pixel, r - 0.876));
    // The moon: days since the new moon of 6 January 2000 (Meeus, Astronomical Algorithms, 49), months of 30.6 days.
    vec2 m = q - vec2(0.0, -0.4);
    float month = mod(iDate.y + 10.0, 12.0), year = iDate.x - floor(month / 10.0);
    float days = 365.0 * (year - 1999.0) + floor(year / 4.0) - 499.0 + floor(month * 30.6 + 0.5) + iDate.z - 312.8;
    float age = 6.2831853 * days / 29.53059, window = length(m) - 0.15, ball = length(m) - 0.115;
    c = mix(c, vec3(0.004, 0.008, 0.03) + 0.7 * smoothstep(0.012, 0.0, length(fract(m * 17.0) - 0.5) * 0.06) * step(0.7, fract(sin(dot(floor(m * 17.0), vec2(7.1, 31.7))) * 437.5)), smoothstep(pixel, -pixel, window));
    vec3 n = vec3(m / 0.115, sqrt(max(0.0, 1.0 - dot(m, m) / 0.0132)));
    float lit = smoothstep(-0.1, 0.2, dot(n, vec3(sin(age), 0.0, -cos(age))));
    float sea = 0.75 + 0.25 * sin(n.x * 5.0 + sin(n.y * 7.0)) * sin(n.y * 6.0 + 1.0);
    c = mix(c, vec3(0.95, 0.88, 0.72) * (0.05 + lit * sea), smoothstep(pixel, -pixel, ball));
    c = mix(c, gold * (0.4 + 0.4 * dot(m / 0.15, vec2(0.5, -0.7))), smoothstep(pixel, -pixel, abs(window) - 0.008));
    float s = iDate.w;
    place(c, q, s / 43200.0, -0.1, 0.5, 0.042, vec3(0.92, 0.9, 0.86), pixel);
    place(c, q, s / 3600.0, -0.12, 0.74, 0.032, vec3(0.92, 0.9, 0.86), pixel);
    place(c, q, s / 60.0, -0.24, 0.8, 0.008, vec3(1.0, 0.32, 0.16), pixel);
    c = mix(c, gold * (0.5 + 0.5 * light * r / 0.04), smoothstep(pixel, -pixel, r - 0.035));
    c += 0.05 * smoothstep(0.3, -0.4, length(q - vec2(-0.5, 0.75)) - 0.6) * step(r, 0.876);
    color = vec4(pow(c / (1.0 + 0.2 * c), vec3(0.4545)), 1.0);
}
