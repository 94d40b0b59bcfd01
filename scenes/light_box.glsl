// A box of light: paths that bounce off walls, a mirror and glass, one a pixel and frame, averaged. Drag to turn it.

// ---- Buffer A ----
// The sum of all paths, and in alpha their number; it starts again where the mouse has moved.
// iChannel0: Buffer A nearest
uniform float lamp = 6.0;  // 1 to 30

uint seed;
float random() {  // PCG (Jarzynski and Olano, Hash Functions for GPU Rendering, 2020)
    seed = seed * 747796405u + 2891336453u;
    uint word = ((seed >> ((seed >> 28u) + 4u)) ^ seed) * 277803737u;
    return float((word >> 22u) ^ word) / 4294967296.0;
}

float sphere(vec3 from, vec3 ray, vec3 center, float radius) {
    vec3 to = from - center;
    float b = dot(to, ray), root = b * b - dot(to, to) + radius * radius;
    if (root < 0.0) return 1e9;
    float near = -b - sqrt(root), far = -b + sqrt(root);
    return near > 1e-3 ? near : far > 1e-3 ? far : 1e9;
}

vec3 path(vec3 from, vec3 ray) {
    vec3 weight = vec3(1), centers[3] = vec3[3](vec3(-0.42, -0.58, -0.3), vec3(0.42, -0.66, 0.25), vec3(-0.12, -0.83, 0.55));
    float radii[3] = float[3](0.42, 0.34, 0.17);
    for (int bounce = 0; bounce < 8; bounce++) {
        vec3 limit = vec3(1.25, 1.0, 1.0), to = (limit * sign(ray) - from) / ray;
        if (ray.z > 0.0) to.z = (3.6 - from.z) / ray.z;  // the box is long: its front is behind the camera
        float t = min(to.x, min(to.y, to.z));
        int hit = -1;
        for (int k = 0; k < 3; k++) {
            float d = sphere(from, ray, centers[k], radii[k]);
            if (d < t) { t = d; hit = k; }
        }
        from += t * ray;
        vec3 n = hit >= 0 ? (from - centers[hit]) / radii[hit] : -sign(ray) * vec3(equal(to, vec3(t))), albedo = vec3(0.78, 0.76, 0.72);
        if (hit < 0 && n.y < 0.0 && abs(from.x) < 0.6 && abs(from.z) < 0.6) return weight * lamp * vec3(1.0, 0.86, 0.66);
        if (hit < 0 && abs(n.x) > 0.5) albedo = n.x > 0.0 ? vec3(0.75, 0.10, 0.06) : vec3(0.06, 0.30, 0.62);
        if (hit == 0) {  // a mirror of gold
            ray = reflect(ray, n);
            weight *= mix(vec3(1.0, 0.76, 0.42), vec3(1), pow(1.0 - abs(dot(ray, n)), 5.0));
        } else if (hit == 1) {  // glass: reflected or refracted by chance, as Fresnel says (Schlick, 1994)
            bool is_in = dot(ray, n) > 0.0;
            vec3 bent = refract(ray, is_in ? -n : n, is_in ? 1.5 : 1.0 / 1.5);
            float facing = is_in ? dot(bent, n) : -dot(ray, n), mirrored = 0.04 + 0.96 * pow(1.0 - max(facing, 0.0), 5.0);
            ray = bent == vec3(0) || random() < mirrored ? reflect(ray, n) : bent;
        } else {
            if (hit == 2) albedo = vec3(0.9, 0.45, 0.1);
            float z = 2.0 * random() - 1.0, a = 6.2831853 * random();
            ray = normalize(n * 1.0001 + vec3(sqrt(1.0 - z * z) * vec2(cos(a), sin(a)), z));
            weight *= albedo;
        }
        from += 1e-3 * ray;
        if (bounce > 2) {
            float alive = max(weight.x, max(weight.y, weight.z));
            if (random() > alive) break;
            weight /= alive;
        }
    }
    return vec3(0);
}

void mainImage(out vec4 state, in vec2 point) {
    seed = uint(point.x) * 1973u + uint(point.y) * 9277u + uint(iFrame) * 26699u;
    random();
    vec4 kept = iFrame == 0 || iMouse.z > 0.0 ? vec4(0) : texelFetch(iChannel0, ivec2(point), 0);
    vec2 q = (2.0 * (point + vec2(random(), random()) - 0.5) - iResolution.xy) / iResolution.y;
    vec2 turn = iMouse.xy == vec2(0) ? vec2(0) : (iMouse.xy / iResolution.xy - 0.5) * vec2(0.9, 0.5);
    vec3 eye = vec3(1.15 * sin(turn.x), 0.9 * sin(turn.y), 3.45), ahead = normalize(-eye), side = normalize(cross(ahead, vec3(0, 1, 0)));
    vec3 ray = normalize(ahead * 2.25 + 0.9 * q.x * side + 0.9 * q.y * cross(side, ahead));
    state = kept + vec4(min(path(eye, ray), 12.0), 1.0);
}

// ---- Image ----
// iChannel0: Buffer A nearest
void mainImage(out vec4 color, in vec2 point) {
    vec4 sum = texelFetch(iChannel0, ivec2(point), 0);
    vec3 c = sum.rgb / max(sum.a, 1.0);
    c = c * (2.51 * c + 0.03) / (c * (2.43 * c + 0.59) + 0.14);
    color = vec4(pow(c, vec3(0.4545)), 1.0);
}
