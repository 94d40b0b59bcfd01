// Ink carried by a velocity field, for renderer/pictures/ink.py: this file adds ink at a source and displays the ink on
// paper; the host solves the transport equation between. The optical densities are an array (3, order) float32: red,
// green, blue. The grid has `major` cells along the picture's longer side and `minor` along the other; cell (a, b), a
// along the longer side, is element a * minor + b. `wide`: 1 if the picture is wider than high.
#include "common/reproducible_math.h"

// The center of cell (a, b) relative to the picture's center, y up, in the units of `spacing`, the side of a cell. a
// counts to the right in a wide picture and down in a high one; b counts down or to the right.
DEVICE float2 cell_center(int a, int b, int major, int minor, int wide, float spacing) {
    float along = ((float)a + 0.5f - 0.5f * (float)major) * spacing;
    float across = (0.5f * (float)minor - (float)b - 0.5f) * spacing;
    return wide ? make_float2(along, across) : make_float2(-across, -along);
}

// Adds a Gaussian drop of ink at (x, y): `amount` times the densities (red, green, blue) at its center. One thread per
// cell.
KERNEL add_source(GLOBAL float *density, const int order, const int major, const int minor, const int wide,
                  const float spacing, const float x, const float y, const float radius, const float amount,
                  const float red, const float green, const float blue) {
    int k = (int)thread_index();
    if (k >= major * minor) return;
    float2 center = cell_center(k / minor, k % minor, major, minor, wide, spacing);
    float dx = center.x - x, dy = center.y - y;
    float added = amount * exponential_of(-(dx * dx + dy * dy) / (radius * radius));
    density[k] += added * red;
    density[order + k] += added * green;
    density[2 * order + k] += added * blue;
}

// The density of cell (a, b), clamped to the grid.
DEVICE float density_at(GLOBAL const float *density, int a, int b, int major, int minor) {
    return density[clamp(a, 0, major - 1) * minor + clamp(b, 0, minor - 1)];
}

// Catmull-Rom weights of the four samples at -1, 0, 1 and 2, for position t in 0..1.
DEVICE float4 catmull_rom(float t) {
    float s = t * t, c = s * t;
    return make_float4(-0.5f * c + s - 0.5f * t, 1.5f * c - 2.5f * s + 1.0f, -1.5f * c + 2.0f * s + 0.5f * t,
                       0.5f * c - 0.5f * s);
}

// The density at fractional cell coordinates (a, b), never negative.
DEVICE float sample_bicubic(GLOBAL const float *density, float a, float b, int major, int minor) {
    int i = (int)floor(a), j = (int)floor(b);
    float4 wa = catmull_rom(a - (float)i), wb = catmull_rom(b - (float)j);
    float sum = 0.0f;
    for (int k = 0; k < 4; k++) {
        float row_value = wb.x * density_at(density, i - 1 + k, j - 1, major, minor) +
                          wb.y * density_at(density, i - 1 + k, j, major, minor) +
                          wb.z * density_at(density, i - 1 + k, j + 1, major, minor) +
                          wb.w * density_at(density, i - 1 + k, j + 2, major, minor);
        sum += row_value * (k == 0 ? wa.x : k == 1 ? wa.y : k == 2 ? wa.z : wa.w);
    }
    return fmax(sum, 0.0f);
}

// Draws solver statistics over the lower sixth of the picture: two rows of bars, one bar per block column of the LU
// factorization. The upper row shows the fraction of rows that pivoting interchanged, the lower row the fraction of
// time that each phase took. `bars`: 8 floats per block column, the fraction of rows, five fractions of time, two
// unused; (x, y): 0..1 from top left. The upper row is 0.838 to 0.908 high in y, the lower 0.915 to 0.995.
DEVICE float4 overlay(float4 color, GLOBAL const float *bars, int count, float x, float y) {
    if (count == 0 || y < 0.83f) return color;
    GLOBAL const float *bar = bars + 8 * min((int)(x * (float)count), count - 1);
    float4 dark = color * 0.25f;
    float4 ink = dark;
    if (y < 0.908f) {
        if (bar[0] > (0.908f - y) / 0.07f) ink = make_float4(0.9f, 0.9f, 0.9f, 1.0f);
    } else {
        float level = (0.995f - y) / 0.08f, sum = 0.0f;
        for (int phase = 4; phase >= 0; phase--) {  // stacked from the bottom up
            float next = sum + bar[1 + phase];
            if (level >= sum && level < next)
                ink = phase == 0   ? make_float4(0.80f, 0.10f, 0.06f, 1.0f)  // panel
                      : phase == 1 ? make_float4(0.85f, 0.55f, 0.05f, 1.0f)  // swap
                      : phase == 2 ? make_float4(0.20f, 0.55f, 0.12f, 1.0f)  // solve
                      : phase == 3 ? make_float4(0.05f, 0.25f, 0.65f, 1.0f)  // update
                                   : make_float4(0.45f, 0.15f, 0.50f, 1.0f);  // copy
            sum = next;
        }
    }
    ink.w = 1.0f;
    return ink;
}

// Displays a tile of the picture: paper color (red, green, blue) attenuated by the densities, exponential_of(-density),
// and the bars. One thread per pixel of the tile.
KERNEL show_density(GLOBAL const float *density, const int order, const int major, const int minor, const int wide,
                    const float spacing, GLOBAL float4 *frame, const int width, const int height, const int left,
                    const int top, const int picture_width, const int picture_height, const float red,
                    const float green, const float blue, GLOBAL const float *bars, const int bar_count) {
    int k = (int)thread_index();
    if (k >= width * height) return;
    float x = ((float)(left + k % width) + 0.5f) / (float)picture_width;
    float y = ((float)(top + k / width) + 0.5f) / (float)picture_height;
    float a = (wide ? x : y) * (float)major - 0.5f, b = (wide ? y : x) * (float)minor - 0.5f;
    float4 color = make_float4(red * exponential_of(-sample_bicubic(density, a, b, major, minor)),
                               green * exponential_of(-sample_bicubic(density + order, a, b, major, minor)),
                               blue * exponential_of(-sample_bicubic(density + 2 * order, a, b, major, minor)), 1.0f);
    frame[k] = overlay(color, bars, bar_count, x, y);
}
