// Light in silk: sines that bend each other.
// Type, and the picture follows; Ctrl+S saves it.
// iTime, iResolution, iMouse: as on shadertoy.com.
// A uniform with a range is a slider;
// "Add buffer", above, adds a pass with feedback.
uniform float folds = 5.0;  // 1 to 9
uniform float speed = 0.3;  // 0 to 2

void mainImage(out vec4 color, in vec2 point) {
    vec2 p = (2.0 * point - iResolution.xy) / iResolution.y;
    vec3 light = vec3(0.0);
    for (int k = 0; k < 3; k++) {  // red, green, blue: each bends its own way
        vec2 q = p;
        for (float i = 1.0; i < folds; i++)
            q += 0.6 / i * cos(i * 2.0 * q.yx + speed * iTime
                               + vec2(0.3, 1.1) * i + 0.12 * float(k));
        light[k] = 0.08 / (0.06 + abs(sin(q.x + 0.6 * q.y)));
    }
    light = pow(light * vec3(0.9, 0.75, 1.1), vec3(0.8));
    color = vec4(light * exp(-0.25 * dot(p, p)), 1.0);
}
