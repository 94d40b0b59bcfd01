// Weaving: threads that a sorting network brings into order, odd and even pairs in turn (Knuth, volume 3, 5.3.4).

// ---- Common ----
const int THREADS = 40;
const int ROUND = 72;  // steps until the threads are mixed again; 40 sort them
const float ROWS = 22.5;  // steps in the picture's height
uniform float pace = 5.0;  // steps a second, 1 to 20

// ---- Buffer A ----
// Row 0: the key at each place. Row k: the keys k steps ago.
// iChannel0: Buffer A nearest
float key(int x, int y) { return texelFetch(iChannel0, ivec2(x, y), 0).x; }

float order(int place, int round_) {  // a permutation: the rank of a hash among the hashes of all places
    float own = fract(sin(float(place) * 12.99 + float(round_) * 78.2) * 43758.5), rank = 0.0;
    for (int k = 0; k < THREADS; k++) rank += step(fract(sin(float(k) * 12.99 + float(round_) * 78.2) * 43758.5), own);
    return rank - 1.0;
}

void mainImage(out vec4 state, in vec2 point) {
    ivec2 p = ivec2(point);
    if (p.x >= THREADS || p.y > int(ROWS) + 2) discard;
    int now = int(floor(iTime * pace)), before = int(floor((iTime - iTimeDelta) * pace));
    state = vec4(iFrame == 0 ? order(p.x, 0) : key(p.x, p.y), 0, 0, 1);
    if (iFrame == 0 || now == before) return;
    state.x = key(p.x, max(p.y - 1, 0));
    if (p.y > 0) return;
    if (now % ROUND > ROUND - 24) {  // mix again: pairs change places by chance
        int side = (p.x + now) % 2 == 0 ? 1 : -1, mate = clamp(p.x + side, 0, THREADS - 1), low = min(p.x, mate);
        if (fract(sin(float(low) * 91.7 + float(now) * 3.1) * 4375.5) < 0.75) state.x = key(mate, 0);
        return;
    }
    int side = (p.x + now) % 2 == 0 ? 1 : -1, mate = p.x + side;
    if (mate < 0 || mate >= THREADS) return;
    float other = key(mate, 0);
    state.x = side > 0 ? min(state.x, other) : max(state.x, other);
}

// ---- Image ----
// iChannel0: Buffer A nearest
void mainImage(out vec4 color, in vec2 point) {
    float x = point.x / iResolution.x * float(THREADS), y = point.y / iResolution.y * ROWS, sunk = fract(iTime * pace);
    float above = ROWS - y - 1.0 + sunk;  // steps since this row's keys
    int row = int(max(floor(above), 0.0)), place = int(floor(x)), top = -1;
    float f = smoothstep(0.0, 1.0, fract(above)), highest = -9.0, shadow = 1.0;
    vec3 c = vec3(0.018, 0.014, 0.022);
    for (int k = -1; k <= 1; k++) {
        int from = place + k;
        if (from < 0 || from >= THREADS) continue;
        float key = texelFetch(iChannel0, ivec2(from, row), 0).x;
        int to = from;
        for (int j = -1; j <= 1; j++) {
            int at = clamp(from + j, 0, THREADS - 1);
            if (texelFetch(iChannel0, ivec2(at, row + 1), 0).x == key) to = at;
        }
        float center = mix(float(from), float(to), f) + 0.5, across = (x - center) / 0.42;
        float lift = float(to - from) * sin(3.14159 * fract(above));  // to the right: over
        vec3 n = vec3(across, 0.0, sqrt(max(0.0, 1.0 - across * across)));
        float fiber = 0.82 + 0.18 * sin(26.0 * across + 9.0 * (y - sunk) + float(to - from) * 3.0 * f);
        vec3 dye = 0.52 + 0.48 * cos(6.2832 * (0.62 * key / float(THREADS) + vec3(0.02, 0.31, 0.58)));
        vec3 silk = dye * dye * (0.12 + 0.9 * max(dot(n, normalize(vec3(-0.5, 0.3, 0.8))), 0.0)) * fiber + 0.35 * pow(max(dot(n, normalize(vec3(-0.3, 0.0, 1.0))), 0.0), 30.0) * fiber;
        if (abs(across) < 1.0 && lift > highest) {
            c = silk;
            highest = lift;
            top = k;
        } else if (lift > highest) shadow *= 1.0;
        if (k != top && lift > highest - 0.001) shadow *= 1.0 - 0.5 * smoothstep(1.9, 1.0, abs(across)) * clamp(lift, 0.0, 1.0);
    }
    vec2 uv = point / iResolution.xy - 0.5;
    color = vec4(pow(c * shadow, vec3(0.4545)) * (1.0 - 0.8 * dot(uv, uv)), 1.0);
}
