// Mandelbrot and Julia sets by escape time, one sample of every pixel averaged into `previous`. REAL and REAL2 are float
// and vec2, or double and dvec2; JULIA and PALETTE are constants; PALETTE 0 leaves the numbers instead of colours.
uniform sampler2D previous;
uniform REAL2 centre;    // of the picture
uniform REAL2 right;     // one pixel to the right in the plane
uniform REAL2 down;      // one pixel downwards
uniform REAL2 constant;  // c of a Julia set
uniform vec2 pixels;     // width and height of the whole picture
uniform vec2 corner;     // left and top of the tile that is drawn
uniform vec2 jitter;     // of this sample within the pixel
uniform float sample_number;  // samples before this one
uniform int iterations;
uniform float density;   // palette turns for each doubling of the iterations
uniform float phase;
uniform float relief;    // 0 flat, 1 fully lit from the side
out vec4 pixel;

#define ESCAPE 65536.0  // |z|^2; so late that the smooth count is continuous to 1e-5

// The main cardioid and the disc of period 2 never escape; iterating them would take most of the time.
bool surely_inside(REAL2 c) {
    REAL x = c.x - REAL(0.25), q = x * x + c.y * c.y, y = c.x + REAL(1.0);
    return q * (q + x) < REAL(0.25) * c.y * c.y || y * y + c.y * c.y < REAL(0.0625);
}

vec3 palette(float t) {
#if PALETTE == 1
    const vec3 stops[6] = vec3[6](vec3(0.002, 0.004, 0.03), vec3(0.01, 0.06, 0.32), vec3(0.12, 0.45, 0.85),
                                  vec3(0.95, 0.93, 0.80), vec3(0.98, 0.48, 0.05), vec3(0.22, 0.02, 0.01));
#elif PALETTE == 2
    const vec3 stops[6] = vec3[6](vec3(0.001, 0.003, 0.012), vec3(0.003, 0.05, 0.12), vec3(0.02, 0.28, 0.38),
                                  vec3(0.45, 0.85, 0.80), vec3(0.95, 0.98, 1.0), vec3(0.06, 0.12, 0.40));
#elif PALETTE == 3
    const vec3 stops[6] = vec3[6](vec3(0.012, 0.001, 0.02), vec3(0.17, 0.008, 0.16), vec3(0.70, 0.06, 0.12),
                                  vec3(1.0, 0.42, 0.08), vec3(1.0, 0.92, 0.55), vec3(0.14, 0.03, 0.20));
#else
    const vec3 stops[6] = vec3[6](vec3(0.003), vec3(0.03), vec3(0.16), vec3(0.6), vec3(1.0), vec3(0.1));
#endif
    float x = fract(t) * 6.0;
    int i = int(x) % 6;
    float f = x - floor(x);
    return mix(stops[i], stops[(i + 1) % 6], f * f * (3.0 - 2.0 * f));
}

vec4 coloured(float count, float distance_in_pixels, vec2 slope) {
#if PALETTE == 0
    return vec4(count, distance_in_pixels, 0.0, 1.0);
#else
    if (count < 0.0) return vec4(0.0, 0.0, 0.0, 1.0);
    vec3 colour = palette(density * log2(1.0 + count) + phase);
    float light = clamp(0.5 + 0.5 * dot(slope, vec2(-0.6, 0.8)), 0.0, 1.0);
    colour *= mix(1.0, 0.15 + 1.25 * light, relief);
    return vec4(colour * min(1.0, sqrt(distance_in_pixels) * 1.2), 1.0);
#endif
}

vec4 sampled() {
    vec2 place = gl_FragCoord.xy + corner - 0.5 * pixels + jitter;
    REAL2 p = centre + right * REAL(place.x) + down * REAL(place.y);
#if JULIA
    REAL2 z = p, c = constant;
    vec2 dz = vec2(1.0, 0.0);
    const float step = 0.0;
#else
    if (surely_inside(p)) return coloured(-1.0, 0.0, vec2(0.0));
    REAL2 z = REAL2(0.0), c = p;
    vec2 dz = vec2(0.0);
    const float step = 1.0;
#endif
    float radius = 0.0;
    int n = 0;
    for (; n <= iterations; n++) {
        REAL xx = z.x * z.x, yy = z.y * z.y;
        radius = float(xx + yy);
        if (radius > ESCAPE || n == iterations) break;
        vec2 zf = vec2(z);
        dz = 2.0 * vec2(zf.x * dz.x - zf.y * dz.y + 0.5 * step, zf.x * dz.y + zf.y * dz.x);
        z = REAL2(xx - yy + c.x, REAL(2.0) * z.x * z.y + c.y);
    }
    if (radius <= ESCAPE) return coloured(-1.0, 0.0, vec2(0.0));
    vec2 zf = vec2(z);
    float steepness = max(dot(dz, dz), 1e-36);
    float reach = 0.5 * sqrt(radius) * log(radius) / sqrt(steepness);  // exterior distance estimate, units of the plane
    vec2 slope = vec2(zf.x * dz.x + zf.y * dz.y, zf.y * dz.x - zf.x * dz.y);
    return coloured(float(n) - log2(log(radius) / log(ESCAPE)), reach / float(length(right)), normalize(slope + 1e-30));
}

void main() {
    vec4 before = texelFetch(previous, ivec2(gl_FragCoord.xy), 0);
    vec4 now = sampled();
    pixel = sample_number == 0.0 ? now : before + (now - before) / (sample_number + 1.0);
}
