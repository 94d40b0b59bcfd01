// A colony: Conway's game of life (Gardner, Scientific American 223, 1970). Drag to add cells.

// ---- Common ----
const float CELLS = 72.0;  // cells in the picture's height
uniform float pace = 12.0;  // generations a second, 1 to 60

// ---- Buffer A ----
// A cell is a texel of the lower left corner. x: alive; y: generations alive; z: warmth, which stays for a while.
// iChannel0: Buffer A nearest
// iChannel1: noise nearest
void mainImage(out vec4 state, in vec2 point) {
    ivec2 p = ivec2(point), size = ivec2(ceil(CELLS * iResolution.xy / iResolution.y));
    if (any(greaterThanEqual(p, size))) discard;
    if (iFrame == 0) {
        float seed = texelFetch(iChannel1, p, 0).x, patch_ = textureLod(iChannel1, (floor(point / 9.0) + 0.5) / 256.0, 0.0).y;
        state = vec4(step(0.62, seed) * step(0.45, patch_), 0, 0, 1);
        return;
    }
    state = texelFetch(iChannel0, p, 0);
    if (floor(iTime * pace) > floor((iTime - iTimeDelta) * pace)) {
        float around = -state.x;
        for (int k = 0; k < 9; k++) around += texelFetch(iChannel0, (p + ivec2(k % 3, k / 3) - 1 + size) % size, 0).x;
        float lives = around == 3.0 || (around == 2.0 && state.x > 0.5) ? 1.0 : 0.0;
        state = vec4(lives, lives * (state.y + 1.0), max(lives, state.z * 0.93), 1.0);
    }
    vec2 brush = iMouse.xy / iResolution.y * CELLS;
    if (iMouse.z > 0.0 && distance(point, brush) < 1.6) state.xz = vec2(1);
}

// ---- Image ----
// iChannel0: Buffer A nearest
vec4 cell(ivec2 p) {
    ivec2 size = ivec2(ceil(CELLS * iResolution.xy / iResolution.y));
    return texelFetch(iChannel0, (p + size) % size, 0);
}

vec3 warmth(float w) { return vec3(1.1, 0.35, 0.1) * pow(w, 2.2) + vec3(0.05, 0.12, 0.4) * w + vec3(0.25, 0.0, 0.25) * w * w; }

void mainImage(out vec4 color, in vec2 point) {
    vec2 q = point / iResolution.y * CELLS, f = fract(q) - 0.5;
    ivec2 p = ivec2(floor(q));
    vec3 glow = vec3(0);
    float soil = 0.0, weights = 0.0;
    for (int y = -3; y <= 3; y++) {
        for (int x = -3; x <= 3; x++) {
            vec2 to = vec2(x, y) - f;
            float weight = exp(-dot(to, to) * 0.35);
            vec4 s = cell(p + ivec2(x, y));
            soil += weight * s.z;
            weights += weight;
            glow += exp(-dot(to, to) * 0.9) * s.x * mix(vec3(1.0, 0.75, 0.3), vec3(0.15, 0.75, 0.9), smoothstep(1.0, 12.0, s.y));
        }
    }
    vec4 s = cell(p);
    float d = length(max(abs(f) - 0.22, 0.0)) - 0.16, pixel = CELLS / iResolution.y;
    vec3 young = vec3(1.0, 0.86, 0.5), old = vec3(0.2, 0.85, 0.95), c = vec3(0.008, 0.01, 0.022);
    c += warmth(soil / weights) * 0.55 + 0.045 * glow;
    float dome = 0.75 + 0.5 * (0.5 - dot(f, f)) + 0.5 * dot(f, vec2(-0.6, 0.8));
    c = mix(c, mix(young, old, smoothstep(1.0, 12.0, s.y)) * dome, s.x * smoothstep(pixel, -pixel, d));
    vec2 uv = point / iResolution.xy - 0.5;
    color = vec4(pow(c / (1.0 + 0.3 * c), vec3(0.4545)) * (1.0 - 0.7 * dot(uv, uv)), 1.0);
}
