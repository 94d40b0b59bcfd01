// Participating media: a fog that fills space or a ball, and boxes and ellipsoids of any density. Each volume is an
// independent Poisson process of collisions, so the first collision of a ray is the nearest of all volumes, and the
// transmittance is the product over the volumes. Free paths are sampled by delta tracking (E. Woodcock et al. 1965),
// transmittance by ratio tracking (J. Novak et al. 2014); both have a closed form for constant density. Used by
// shade_volume.h and equiangular.h.
//
// A volume is 4 rows of float4 in the buffer `lights`, from FIRST_VOLUME_ROW on (renderer/raytracing/volumes.py writes
// them):
//     center, largest extinction
//     1 / half size, kind (an int: shape + 4 * field)
//     scattering albedo, g of Henyey and Greenstein
//     four ints: first row of the density grid in `lights`, and the grid's x, y and z size; for noise the second is the
//     number of noise cells across the volume
// Ray directions are unit, in world space.
#include "raytracing/lights/light_rows.h"
#include "raytracing/scene.h"
#include "raytracing/volumes/scatter.h"

#define VOLUME_BASE 0x7f000000  // Hit.primitive of a collision in volume k is VOLUME_BASE + k
#define SHAPE_ENDLESS 0
#define SHAPE_BOX 1
#define FIELD_CONSTANT 0
#define FIELD_FALLOFF 1
#define FIELD_NOISE 2
#define FIELD_CLOUD 3
#define FIELD_GRID 4

// True if the volume has constant density.
DEVICE bool is_constant_volume(GLOBAL const float4 *volume) { return as_int(volume[1].w) >> 2 == FIELD_CONSTANT; }

// Sets *span to the distances at which the ray enters and leaves the volume, clipped to 0 ... t_max; returns false if
// the ray misses it.
DEVICE bool volume_span(GLOBAL const float4 *volume, float3 origin, float3 direction, float t_max, float2 *span) {
    int shape = as_int(volume[1].w) & 3;
    *span = make_float2(0.0f, t_max);
    if (shape == SHAPE_ENDLESS) return true;
    float3 o = (origin - xyz(volume[0])) * xyz(volume[1]), d = direction * xyz(volume[1]);
    if (shape == SHAPE_BOX) {
        float3 inverse = make_float3(1.0f / d.x, 1.0f / d.y, 1.0f / d.z);
        float3 one = make_float3(1.0f, 1.0f, 1.0f), below = (-one - o) * inverse, above = (one - o) * inverse;
        float3 entry = min3(below, above), exit_t = max3(below, above);
        span->x = max_nnan(max_nnan(entry.x, entry.y), max_nnan(entry.z, 0.0f));
        span->y = min_nnan(min_nnan(exit_t.x, exit_t.y), min_nnan(exit_t.z, t_max));
        return span->y > span->x;
    }
    float a = dot_fma(d, d), b = dot_fma(o, d);
    float3 nearest = madd(d, -b / a, o);
    float inside = 1.0f - dot_fma(nearest, nearest);
    if (!(inside > 0.0f)) return false;
    float half_chord = sqrt(inside / a);
    span->x = max_nnan(-b / a - half_chord, 0.0f);
    span->y = min_nnan(-b / a + half_chord, t_max);
    return span->y > span->x;
}

// Returns the pseudorandom value, in [0, 1), of a lattice point.
DEVICE float lattice_value(int x, int y, int z) {
    return uniform_float(mix_bits((uint)x * 0x8da6b343u ^ (uint)y * 0xd8163841u ^ (uint)z * 0xcb1ab31fu));
}

// Returns value noise of four octaves, 0 to 1, at `p` in units of the first octave's cells. Weights halve with each
// octave and add up to 1. a, b, c, d are the values at a cell's corners, for each of two planes of constant z.
DEVICE float fractal_noise(float3 p) {
    float sum = 0.0f, weight = 8.0f / 15.0f;
    for (int octave = 0; octave < 4; octave++) {
        float fx = floor(p.x), fy = floor(p.y), fz = floor(p.z);
        float u = p.x - fx, v = p.y - fy, w = p.z - fz;
        u = u * u * fma(-2.0f, u, 3.0f);
        v = v * v * fma(-2.0f, v, 3.0f);
        w = w * w * fma(-2.0f, w, 3.0f);
        float planes[2];
        for (int k = 0; k < 2; k++) {
            int x = (int)fx, y = (int)fy, z = (int)fz + k;
            float a = lattice_value(x, y, z), b = lattice_value(x + 1, y, z), c = lattice_value(x, y + 1, z),
                  d = lattice_value(x + 1, y + 1, z);
            float low = fma(u, b - a, a), high = fma(u, d - c, c);
            planes[k] = fma(v, high - low, low);
        }
        sum = fma(weight, fma(w, planes[1] - planes[0], planes[0]), sum);
        weight *= 0.5f;
        p = p * 2.0f;
    }
    return sum;
}

// Returns the volume's density grid at `p`, -1 to 1 in each axis, relative to the grid's largest value: trilinear
// between the centers of the cells, constant outside them.
DEVICE float grid_value(GLOBAL const float4 *lights, GLOBAL const float4 *volume, float3 p) {
    int columns = as_int(volume[3].y), rows = as_int(volume[3].z), layers = as_int(volume[3].w);
    GLOBAL const float *cells = (GLOBAL const float *)(lights + as_int(volume[3].x));
    float x = clamp(fma(fma(p.x, 0.5f, 0.5f), (float)columns, -0.5f), 0.0f, (float)(columns - 1));
    float y = clamp(fma(fma(p.y, 0.5f, 0.5f), (float)rows, -0.5f), 0.0f, (float)(rows - 1));
    float z = clamp(fma(fma(p.z, 0.5f, 0.5f), (float)layers, -0.5f), 0.0f, (float)(layers - 1));
    int x0 = (int)x, y0 = (int)y, z0 = (int)z, x1 = x0 + 1 < columns ? x0 + 1 : x0;
    float u = x - (float)x0, v = y - (float)y0, w = z - (float)z0, planes[2];
    for (int k = 0; k < 2; k++) {
        int plane = (z0 + k < layers ? z0 + k : z0) * rows;
        int low = (plane + y0) * columns, high = (plane + (y0 + 1 < rows ? y0 + 1 : y0)) * columns;
        float a = fma(u, cells[low + x1] - cells[low + x0], cells[low + x0]);
        float b = fma(u, cells[high + x1] - cells[high + x0], cells[high + x0]);
        planes[k] = fma(v, b - a, a);
    }
    return fma(w, planes[1] - planes[0], planes[0]);
}

// Returns the extinction at a world-space point inside the volume, as a fraction of the volume's largest extinction.
DEVICE float relative_density(GLOBAL const float4 *lights, GLOBAL const float4 *volume, float3 point) {
    int field = as_int(volume[1].w) >> 2;
    if (field == FIELD_CONSTANT) return 1.0f;
    float3 p = (point - xyz(volume[0])) * xyz(volume[1]);
    if (field == FIELD_GRID) return grid_value(lights, volume, p);
    float density = 1.0f;
    if (field != FIELD_NOISE) density = max_nnan(1.0f - dot_fma(p, p), 0.0f);
    if (field != FIELD_FALLOFF) {
        float cells = 0.5f * (float)as_int(volume[3].y);
        density *= clamp(fma(3.0f, fractal_noise(p * cells), -1.0f), 0.0f, 1.0f);
    }
    return density;
}

// Samples a free path by delta tracking: returns the distance to the first collision before t_max and sets *which to
// the index of its volume, or returns FLT_MAX.
DEVICE float sample_collision(const LaunchParams params, GLOBAL const float4 *lights, float3 origin, float3 direction,
                              float t_max, Sampler sampler, uint dimension, int *which) {
    float nearest = FLT_MAX;
    for (int k = 0; k < VOLUME_COUNT; k++) {
        GLOBAL const float4 *volume = lights + FIRST_VOLUME_ROW + 4 * k;
        RandomStream stream = volume_stream(sampler, dimension, 2u * (uint)k);  // odd numbers: transmittance()
        float2 span;
        if (!volume_span(volume, origin, direction, min_nnan(t_max, nearest), &span)) continue;
        bool is_constant = is_constant_volume(volume);
        float mean_free_path = 1.0f / volume[0].w, t = span.x;
        float u = k == 0 ? get_1d(sampler, dimension) : next_random(&stream);
        for (;; u = next_random(&stream)) {
            t = fma(-logarithm_of(1.0f - u), mean_free_path, t);
            if (!(t < span.y)) break;
            if (is_constant || next_random(&stream) < relative_density(lights, volume, madd(direction, t, origin))) {
                nearest = t;
                *which = k;
                break;
            }
        }
    }
    return nearest;
}

// Returns an unbiased estimate of the transmittance of all volumes along `distance`.
DEVICE float transmittance(const LaunchParams params, GLOBAL const float4 *lights, float3 origin, float3 direction,
                           float distance, Sampler sampler, uint dimension) {
    float passed = 1.0f;
    for (int k = 0; k < VOLUME_COUNT; k++) {
        GLOBAL const float4 *volume = lights + FIRST_VOLUME_ROW + 4 * k;
        RandomStream stream = volume_stream(sampler, dimension, 2u * (uint)k + 1u);
        float2 span;
        if (!volume_span(volume, origin, direction, distance, &span)) continue;
        if (is_constant_volume(volume)) {
            passed *= exponential_of(-volume[0].w * (span.y - span.x));
            continue;
        }
        float mean_free_path = 1.0f / volume[0].w, t = span.x;
        while (passed > 0.0f) {
            t = fma(-logarithm_of(1.0f - next_random(&stream)), mean_free_path, t);
            if (!(t < span.y)) break;
            passed *= 1.0f - relative_density(lights, volume, madd(direction, t, origin));
        }
    }
    return passed;
}
