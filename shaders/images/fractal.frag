// Mandelbrot and Julia sets by escape time (Peitgen and Saupe, The Science of Fractal Images, 1988): one sample of
// every pixel, averaged with the `sample_index` samples in `previous`. The launcher defines REAL and REAL2 (float and
// vec2, or double and dvec2); JULIA: 1 for the Julia set of julia_c; PALETTE: 1 to 4 choose colors, 0 writes the smooth
// iteration count and the distance estimate in pixels instead.
uniform sampler2D previous;
uniform REAL2 center;  // the point of the complex plane at the picture's center
uniform REAL2 right;  // step in the plane of one pixel to the right
uniform REAL2 down;  // step in the plane of one pixel down
uniform REAL2 julia_c;
uniform vec2 resolution;  // width and height of the whole picture
uniform vec2 tile_origin;  // left and top of the tile
uniform vec2 jitter;  // offset of this sample within the pixel, -0.5 to 0.5
uniform float sample_index;  // number of samples in `previous`
uniform int max_iterations;
uniform float color_density;  // palette cycles per doubling of the iteration count
uniform float color_offset;  // added to the palette coordinate, in cycles
uniform float relief;  // shading by the potential's normal, 0 off to 1 full
out vec4 pixel;

#define BAILOUT2 65536.0  // |z|^2, large enough that the smooth count is continuous to 1e-5

// True for points of the main cardioid and the period-2 bulb, which never escape: iterating them would take most of the
// time.
bool in_cardioid_or_bulb(REAL2 c) {
    REAL x = c.x - REAL(0.25), q = x * x + c.y * c.y, y = c.x + REAL(1.0);
    return q * (q + x) < REAL(0.25) * c.y * c.y || y * y + c.y * c.y < REAL(0.0625);
}

// Linear color at palette coordinate t in cycles; six colors per cycle.
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

// The output for a smooth iteration count (below 0: inside the set), an exterior distance estimate and the direction in
// which the potential grows.
vec4 shade(float count, float distance_in_pixels, vec2 normal) {
#if PALETTE == 0
    return vec4(count, distance_in_pixels, 0.0, 1.0);
#else
    if (count < 0.0) return vec4(0.0, 0.0, 0.0, 1.0);
    vec3 color = palette(color_density * log2(1.0 + count) + color_offset);
    float light = clamp(0.5 + 0.5 * dot(normal, vec2(-0.6, 0.8)), 0.0, 1.0);
    color *= mix(1.0, 0.15 + 1.25 * light, relief);
    return vec4(color * min(1.0, sqrt(distance_in_pixels) * 1.2), 1.0);
#endif
}

// Iterates z^2 + c for this pixel's sample, with the derivative dz, and shades the result.
vec4 escape_time() {
    vec2 offset = gl_FragCoord.xy + tile_origin - 0.5 * resolution + jitter;
    REAL2 p = center + right * REAL(offset.x) + down * REAL(offset.y);
    const bool julia = JULIA != 0;  // Julia: z starts at p and c is given; Mandelbrot: z starts at 0 and c is p
    if (!julia && in_cardioid_or_bulb(p)) return shade(-1.0, 0.0, vec2(0.0));
    REAL2 z = julia ? p : REAL2(0.0), c = julia ? julia_c : p;
    vec2 dz = vec2(julia ? 1.0 : 0.0, 0.0);
    const float dc = julia ? 0.0 : 1.0;
    float norm2 = 0.0;
    int n = 0;
    for (; n <= max_iterations; n++) {
        REAL xx = z.x * z.x, yy = z.y * z.y;
        norm2 = float(xx + yy);
        if (norm2 > BAILOUT2 || n == max_iterations) break;
        vec2 zf = vec2(z);
        dz = 2.0 * vec2(zf.x * dz.x - zf.y * dz.y + 0.5 * dc, zf.x * dz.y + zf.y * dz.x);
        z = REAL2(xx - yy + c.x, REAL(2.0) * z.x * z.y + c.y);
    }
    if (norm2 <= BAILOUT2) return shade(-1.0, 0.0, vec2(0.0));
    vec2 zf = vec2(z);
    float dz_norm2 = max(dot(dz, dz), 1e-36);
    // exterior distance estimate, in units of the plane
    float distance_estimate = 0.5 * sqrt(norm2) * log(norm2) / sqrt(dz_norm2);
    vec2 normal = vec2(zf.x * dz.x + zf.y * dz.y, zf.y * dz.x - zf.x * dz.y);
    float count = float(n) - log2(log(norm2) / log(BAILOUT2));  // smooth count (Vepstas 1997)
    return shade(count, distance_estimate / float(length(right)), normalize(normal + 1e-30));
}

void main() {
    vec4 before = texelFetch(previous, ivec2(gl_FragCoord.xy), 0);
    vec4 now = escape_time();
    pixel = sample_index == 0.0 ? now : before + (now - before) / (sample_index + 1.0);
}
