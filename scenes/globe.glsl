// The Earth at dusk: an image file on a sphere, ocean glints, and an atmosphere by distance through the air.
// iChannel0: ../assets/orrery/earth.jpg
// iChannel1: noise
uniform float spin = 0.1;  // radians a second, -1 to 1
uniform float air = 1.0;   // 0 to 2

mat2 turn(float a) { return mat2(cos(a), -sin(a), sin(a), cos(a)); }

void mainImage(out vec4 color, in vec2 point) {
    vec2 q = (2.0 * point - iResolution.xy) / iResolution.y;
    vec2 drag = iMouse.xy / iResolution.xy * vec2(6.2832, 2.0);
    float d = length(q) / 0.82;
    vec3 sun = normalize(vec3(-0.75, 0.35, 0.55));
    vec2 cell = floor(point / iResolution.y * 220.0);
    vec4 star = texture(iChannel1, (cell + 0.5) / 256.0);
    vec3 c = vec3(star.y) * smoothstep(0.985, 1.0, star.x) * smoothstep(0.5, 0.1, length(fract(point / iResolution.y * 220.0) - 0.5));
    if (d < 1.0) {
        vec3 n = vec3(q / 0.82, sqrt(1.0 - d * d)), tilted = n;
        tilted.xy *= turn(0.41);
        tilted.yz *= turn(0.25 - drag.y * 0.3);
        float longitude = atan(tilted.x, tilted.z) + iTime * spin + 3.6 + drag.x, latitude = asin(clamp(tilted.y, -1.0, 1.0));
        vec3 ground = textureLod(iChannel0, vec2(longitude / 6.2832, latitude / 3.1416 + 0.5), 0.0).rgb;
        ground *= ground;
        float day = dot(n, sun), lit = smoothstep(-0.08, 0.35, day);
        float is_water = smoothstep(0.0, 0.08, ground.b - ground.r);
        vec3 halfway = normalize(sun + vec3(0, 0, 1));
        float glint = is_water * pow(max(dot(n, halfway), 0.0), 40.0);
        vec3 dusk = vec3(1.0, 0.42, 0.18) * exp(-pow((day - 0.05) / 0.12, 2.0)) * 0.35;
        c = ground * (1.35 * lit + 0.015) + dusk * ground * 3.0 + glint * lit * vec3(1.0, 0.85, 0.6) * 0.7;
        c += air * vec3(0.25, 0.5, 1.0) * pow(1.0 - n.z, 2.5) * smoothstep(-0.25, 0.5, day);
    } else {
        float halo = exp(-(d - 1.0) * 16.0) * smoothstep(-0.5, 0.8, dot(normalize(vec3(q, 0.0)), sun));
        c += air * halo * vec3(0.3, 0.55, 1.0);
    }
    color = vec4(pow(c / (1.0 + 0.25 * c), vec3(0.4545)), 1.0);
}
