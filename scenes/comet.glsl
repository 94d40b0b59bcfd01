// A comet that the arrow keys steer: click the picture, then fly. Space sets off sparks; without keys it circles.

// ---- Buffer A ----
// Texel (0, 0): position and velocity, in heights of the picture. All others: the glow that it leaves.
// iChannel0: Buffer A linear
// iChannel1: keyboard
// iChannel2: noise
float held(int key) { return texelFetch(iChannel1, ivec2(key, 0), 0).x; }

void mainImage(out vec4 state, in vec2 point) {
    float aspect = iResolution.x / iResolution.y;
    vec4 ship = texelFetch(iChannel0, ivec2(0), 0);
    if (iFrame == 0) ship = vec4(0.72 * aspect, 0.5, 0.0, 0.006);
    if (ivec2(point) == ivec2(0)) {
        vec2 thrust = vec2(held(39) - held(37), held(38) - held(40)), middle = vec2(0.5 * aspect, 0.5);
        vec2 pull = (middle - ship.xy) * 0.0006 / max(dot(ship.xy - middle, ship.xy - middle), 0.02) * 0.08;
        ship.zw = (ship.zw + 0.0004 * thrust + pull) * mix(1.0, 0.985, step(0.012, length(ship.zw)));
        ship.xy += ship.zw;
        ship.zw *= 1.0 - 2.0 * vec2(step(ship.x, 0.02) + step(aspect - 0.02, ship.x), step(ship.y, 0.02) + step(0.98, ship.y));
        state = vec4(clamp(ship.xy, vec2(0.02), vec2(aspect - 0.02, 0.98)), ship.zw);
        return;
    }
    vec2 q = point / iResolution.y, uv = point / iResolution.xy;
    vec2 swirl = (texture(iChannel2, uv * 0.02 + 0.0005 * iTime).xy - 0.5) * 2.4 / iResolution.xy * iResolution.y / 360.0;
    vec3 glow = max(texture(iChannel0, uv + swirl + vec2(0.0, 0.25) / iResolution.y).rgb, 0.0) * vec3(0.995, 0.991, 0.987);
    vec2 a = ship.xy, b = ship.xy - ship.zw, ab = b - a;
    float t = clamp(dot(q - a, ab) / max(dot(ab, ab), 1e-9), 0.0, 1.0), d = distance(q, a + t * ab);
    vec3 tint = 0.55 + 0.45 * cos(vec3(0.0, 1.4, 2.6) + iTime * 0.9);
    glow += tint * exp(-d * d * 6000.0) * 0.7;
    if (held(32) > 0.0) {
        float spoke = pow(abs(sin(6.0 * atan(q.y - a.y, q.x - a.x) + iTime * 9.0)), 12.0);
        glow += 0.5 * spoke * tint.zxy * exp(-d * 18.0);
    }
    state = vec4(min(glow, 6.0), 1.0);
}

// ---- Image ----
// iChannel0: Buffer A mipmap
void mainImage(out vec4 color, in vec2 point) {
    vec2 uv = point / iResolution.xy;
    vec3 sharp = ivec2(point) == ivec2(0) ? vec3(0) : texture(iChannel0, uv).rgb, soft = vec3(0);
    for (float level = 2.0; level < 6.0; level += 1.0) soft += textureLod(iChannel0, uv, level).rgb / 4.0;
    vec3 c = 1.0 - exp(-(sharp + 0.9 * soft));
    color = vec4(c + vec3(0.012, 0.014, 0.03) * (1.0 - length(uv - 0.5)), 1.0);
}
