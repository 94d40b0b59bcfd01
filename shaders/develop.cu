// From the histogram of a flame to its picture: sums, log-density, density estimation, spatial filter, tone curve (flam3's).
// Buckets are (columns, rows); pixels are (width, height); a bucket's sums are red, green, blue, alpha, each in 1/255.
#define LANES 1
#include "elementary.h"

// sums += the `copies` histograms of `stride` cells each, which are zeroed; the count of bad points likewise.
KERNEL flush(GLOBAL uint4 *histograms, int copies, int stride, GLOBAL ulong *sums, int cells, GLOBAL uint *bad_points,
             GLOBAL ulong *bad_total) {
    uint i = thread_index();
    if (i == 0u) {
        bad_total[0] += bad_points[0];
        bad_points[0] = 0u;
    }
    if (i < (uint)cells) {
        ulong red = 0, green = 0, blue = 0, alpha = 0;
        for (int copy = 0; copy < copies; copy++) {
            uint4 cell = histograms[(size_t)copy * (size_t)stride + i];
#if SUMS == 2
            cell = make_uint4((uint)as_float(cell.x), (uint)as_float(cell.y), (uint)as_float(cell.z), (uint)as_float(cell.w));
#endif
            if ((cell.x | cell.y | cell.z | cell.w) != 0u) histograms[(size_t)copy * (size_t)stride + i] = make_uint4(0u, 0u, 0u, 0u);
            red += cell.x;
            alpha += cell.y;
            blue += cell.z;
            green += cell.w;
        }
        if ((red | green | blue | alpha) != 0) {
            sums[4 * (size_t)i] += red;
            sums[4 * (size_t)i + 1] += green;
            sums[4 * (size_t)i + 2] += blue;
            sums[4 * (size_t)i + 3] += alpha;
        }
    }
}

// ln(1 + x) without the loss of the small x in 1 + x (W. Kahan's quotient).
DEVICE float logarithm_of_one_and(float x) {
    float u = 1.0f + x;
    return u == 1.0f ? x : logarithm_of(u) * (x / (u - 1.0f));
}

// exposed = the sums times brightness * ln(1 + alpha * density) / alpha, where density = area / samples counted.
KERNEL expose(GLOBAL const ulong *sums, GLOBAL float4 *exposed, int cells, GLOBAL const ulong *bad_total, ulong samples,
              float area, float brightness) {
    uint i = thread_index();
    if (i < (uint)cells) {
        float alpha = (float)sums[4 * (size_t)i + 3];
        float density = area / (float)(samples - bad_total[0]);
        float factor = alpha > 0.0f ? brightness * logarithm_of_one_and(alpha * density) / alpha : 0.0f;
        exposed[i] = make_float4((float)sums[4 * (size_t)i] * factor, (float)sums[4 * (size_t)i + 1] * factor,
                                 (float)sums[4 * (size_t)i + 2] * factor, alpha * factor);
    }
}

DEVICE float curved(float x, float gamma) { return x > 0.0f ? power_of(x, gamma) : 0.0f; }

// Opacity of a density: its power, drawn towards a line below the threshold.
DEVICE float covered(float density, float gamma, float threshold) {
    if (!(density > 0.0f)) return 0.0f;
    float curve = power_of(density, gamma);
    if (density >= threshold) return curve;
    float f = density / threshold;
    return (1.0f - f) * density * power_of(threshold, gamma - 1.0f) + f * curve;
}

DEVICE float quantised(float x) { return floor(clamp(x, 0.0f, 255.0f)); }

// picture = the pixels' linear values, of which the sRGB curve makes the 8-bit values that flam3 truncates to. `linear_of` is
// that curve's inverse at 0 to 255. The filter is (taps, taps), its first tap `offset` buckets into the pixel's column and row.
KERNEL finish(GLOBAL const float4 *exposed, GLOBAL float4 *picture, GLOBAL const float *filter, GLOBAL const float *linear_of,
              int columns, int width, int height, int first_row, int oversample, int taps, int offset, float gamma,
              float threshold, float vibrancy, float highlight_power, float background_red, float background_green,
              float background_blue, int transparent) {
    uint i = thread_index();
    if (i < (uint)(width * height)) {
        int column = (int)(i % (uint)width) * oversample + offset, row = ((int)(i / (uint)width) + first_row) * oversample + offset;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int v = 0; v < taps; v++)
            for (int u = 0; u < taps; u++)
                sum = sum + exposed[(size_t)(row + v) * (size_t)columns + (size_t)(column + u)] * filter[v * taps + u];
        sum = sum * (1.0f / 255.0f);
        float alpha = covered(sum.w, gamma, threshold);
        float scale = alpha > 0.0f ? vibrancy * 256.0f * alpha / sum.w : 0.0f;
        alpha = clamp(alpha, 0.0f, 1.0f);
        float largest = fmax(sum.x, fmax(sum.y, sum.z));
        float3 colour = make_float3(sum.x, sum.y, sum.z);
        if (scale * largest <= 255.0f) {
            colour = colour * scale;
        } else if (highlight_power >= 0.0f) {  // towards white: with value 1, saturation is the distance from 1
            float keep = power_of(255.0f / (largest * scale), highlight_power);
            colour = make_float3(1.0f - (1.0f - colour.x / largest) * keep, 1.0f - (1.0f - colour.y / largest) * keep,
                                 1.0f - (1.0f - colour.z / largest) * keep) * 255.0f;
        } else {
            float plain = fmin(1.0f, -highlight_power);
            colour = colour * ((1.0f - plain) * 255.0f / largest + plain * scale);
        }
        float own = (1.0f - vibrancy) * 256.0f;
        colour = colour + make_float3(curved(sum.x, gamma), curved(sum.y, gamma), curved(sum.z, gamma)) * own;
        if (transparent != 0) {
            colour = alpha > 0.0f ? colour * (1.0f / alpha) : make_float3(0.0f, 0.0f, 0.0f);
        } else {
            colour = colour + make_float3(background_red, background_green, background_blue) * ((1.0f - alpha) * 256.0f);
        }
        picture[i] = make_float4(linear_of[(int)quantised(colour.x)], linear_of[(int)quantised(colour.y)],
                                 linear_of[(int)quantised(colour.z)],
                                 transparent != 0 ? quantised(alpha * 255.0f) / 255.0f : 1.0f);
    }
}
