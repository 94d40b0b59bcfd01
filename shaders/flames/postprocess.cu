// From the histogram of a flame to its picture: sums, log-density, density estimation, spatial filter, tone curve (flam3's).
// Buckets are (columns, rows); pixels are (width, height); a bucket's sums are red, green, blue, alpha, each in 1/255.
#define LANES 1
#include "common/reproducible_math.h"

// Whether any sum of floats in the histogram has left the whole numbers that floats hold: sums only grow, so one below 2^24
// was exact all along. peak[0] = the largest sum's bits.
KERNEL inspect(GLOBAL const float4 *histogram, int cells, GLOBAL uint *spoiled, int interval, GLOBAL uint *peak) {
    LOCAL_ARRAY(float, largest, GROUP_SIZE);
    float mine = 0.0f;
    for (uint i = thread_index(); i < (uint)cells; i += group_count() * GROUP_SIZE) {
        float4 cell = histogram[i];
        mine = fmax(mine, fmax(fmax(cell.x, cell.y), fmax(cell.z, cell.w)));
    }
    largest[local_index()] = mine;
    BARRIER();
    for (uint stride = GROUP_SIZE / 2; stride > 0u; stride /= 2u) {
        if (local_index() < stride) largest[local_index()] = fmax(largest[local_index()], largest[local_index() + stride]);
        BARRIER();
    }
    if (local_index() == 0u) {
        atomic_max(peak, as_uint(largest[0]));
        if (largest[0] >= 16777216.0f) atomic_or(spoiled + interval, 1u);
    }
}

#define FLUSH_ALWAYS 0
#define FLUSH_UNLESS_SPOILED 1  // zeroes the histogram in any case
#define FLUSH_IF_SPOILED 2

// sums += the `copies` histograms of `stride` cells each, which are zeroed; the count of bad points likewise.
KERNEL flush(GLOBAL uint4 *histograms, int copies, int stride, GLOBAL ulong *sums, int cells, GLOBAL uint *bad_points,
             GLOBAL ulong *bad_total, GLOBAL const uint *spoiled, int interval, int when) {
    uint i = thread_index();
    bool is_spoiled = when != FLUSH_ALWAYS && spoiled[interval] != 0u;
    if (when == FLUSH_IF_SPOILED && !is_spoiled) return;
    bool counts = when != FLUSH_UNLESS_SPOILED || !is_spoiled;
    if (i == 0u) {
        if (counts) bad_total[0] += bad_points[0];
        bad_points[0] = 0u;
    }
    if (i < (uint)cells) {
        ulong red = 0, green = 0, blue = 0, alpha = 0;
        for (int copy = 0; copy < copies; copy++) {
            uint4 cell = histograms[(size_t)copy * (size_t)stride + i];
            if ((cell.x | cell.y | cell.z | cell.w) == 0u) continue;
            histograms[(size_t)copy * (size_t)stride + i] = make_uint4(0u, 0u, 0u, 0u);
#if SUMS == 2
            cell = make_uint4((uint)as_float(cell.x), (uint)as_float(cell.y), (uint)as_float(cell.z), (uint)as_float(cell.w));
#endif
            red += cell.x;
            alpha += cell.y;
            blue += cell.z;
            green += cell.w;
        }
        if (counts && (red | green | blue | alpha) != 0) {
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

DEVICE float square_of_ratio(int n) {
    float ratio = (float)n / (float)(n + 1);
    return ratio * ratio;
}

#define TILE 8  // buckets that share a bound of how far their kernels reach

// widths[i] = the kernel that bucket i is spread by, fewer hits a wider one; -1 for none. A window of the whole grid. `hit`:
// what one hit adds to a bucket's alpha, in the mean.
KERNEL estimate(GLOBAL const ulong *sums, GLOBAL int *widths, int columns, int rows, int left, int top, int whole_columns,
                int whole_rows, int oversample, int last, float most, float curve, float hit) {
    uint i = thread_index();
    if (i < (uint)(columns * rows)) {
        int column = (int)(i % (uint)columns), row = (int)(i / (uint)columns), edge = oversample - 1, around = oversample / 2;
        bool inside = column + left >= edge && column + left < whole_columns - edge && row + top >= edge &&
                      row + top < whole_rows - edge;
        int width = -1;
        if (inside && sums[4 * (size_t)i + 3] != 0) {
            ulong hits = 0;
            for (int v = max(row - around, 0); v <= min(row + around, rows - 1); v++)
                for (int u = max(column - around, 0); u <= min(column + around, columns - 1); u++)
                    hits += sums[4 * ((size_t)v * (size_t)columns + (size_t)u) + 3];
            float n = (float)hits / hit;
            if ((oversample & 1) == 0) n *= square_of_ratio(oversample);
            if (n > most)
                width = last;
            else if (n <= 100.0f)
                width = (int)floor_of(n) + (n > floor_of(n) ? 1 : 0) - 1;
            else
                width = 100 + (int)floor_of(power_of(n - 100.0f, curve));
            width = clamp(width, 0, last);
        }
        widths[i] = width;
    }
}

// tile_reaches = the farthest reach of the kernels in each tile of TILE x TILE buckets.
KERNEL bound(GLOBAL const int *widths, GLOBAL const int *reaches, GLOBAL int *tile_reaches, int columns, int rows,
             int tile_columns, int tile_rows) {
    uint i = thread_index();
    if (i < (uint)(tile_columns * tile_rows)) {
        int column = (int)(i % (uint)tile_columns) * TILE, row = (int)(i / (uint)tile_columns) * TILE, reach = -1;
        for (int v = row; v < min(row + TILE, rows); v++)
            for (int u = column; u < min(column + TILE, columns); u++) {
                int width = widths[(size_t)v * (size_t)columns + (size_t)u];
                if (width >= 0) reach = max(reach, reaches[width]);
            }
        tile_reaches[i] = reach;
    }
}

// estimated = every bucket's colour spread by its own kernel: gathered here, in the order of rows, so that the sum has one
// order. kernels: (last + 1, side, side), the weights by the distances in columns and rows.
KERNEL spread(GLOBAL const float4 *exposed, GLOBAL float4 *estimated, GLOBAL const int *widths, GLOBAL const int *reaches,
              GLOBAL const int *tile_reaches, GLOBAL const float *kernels, int columns, int rows, int tile_columns,
              int tile_rows, int side) {
    uint i = thread_index();
    if (i < (uint)(columns * rows)) {
        int column = (int)(i % (uint)columns), row = (int)(i / (uint)columns), near = (side + TILE - 2) / TILE, reach = -1;
        for (int v = max(row / TILE - near, 0); v <= min(row / TILE + near, tile_rows - 1); v++)
            for (int u = max(column / TILE - near, 0); u <= min(column / TILE + near, tile_columns - 1); u++)
                reach = max(reach, tile_reaches[v * tile_columns + u]);
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int v = max(row - reach, 0); v <= min(row + reach, rows - 1); v++)
            for (int u = max(column - reach, 0); u <= min(column + reach, columns - 1); u++) {
                size_t from = (size_t)v * (size_t)columns + (size_t)u;
                int width = widths[from];
                if (width < 0) continue;
                int across = u > column ? u - column : column - u, down = v > row ? v - row : row - v;
                if (max(across, down) <= reaches[width])
                    sum = sum + exposed[from] * kernels[((size_t)width * (size_t)side + (size_t)down) * (size_t)side + (size_t)across];
            }
        estimated[i] = sum;
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

// sum = (exposed + kept) * share: what passes have come to together.
KERNEL join(GLOBAL const float4 *exposed, GLOBAL const float4 *kept, GLOBAL float4 *sum, int cells, float share) {
    uint i = thread_index();
    if (i < (uint)cells) sum[i] = (exposed[i] + kept[i]) * share;
}

// How light and density become colour.
typedef struct {
    float gamma, threshold, vibrancy, highlight_power, red, green, blue;
    int transparent;
} Curve;

DEVICE Curve curve_of(float gamma, float threshold, float vibrancy, float highlight_power, float red, float green, float blue,
                      int transparent) {
    Curve curve;
    curve.gamma = gamma;
    curve.threshold = threshold;
    curve.vibrancy = vibrancy;
    curve.highlight_power = highlight_power;
    curve.red = red;
    curve.green = green;
    curve.blue = blue;
    curve.transparent = transparent;
    return curve;
}

// Colour 0 to 255, not yet clamped, and opacity 0 to 1 of an exposed sum (red, green, blue, density).
DEVICE float4 toned(float4 sum, Curve curve) {
    sum = sum * (1.0f / 255.0f);
    float alpha = covered(sum.w, curve.gamma, curve.threshold);
    float scale = alpha > 0.0f ? curve.vibrancy * 256.0f * alpha / sum.w : 0.0f;
    alpha = clamp(alpha, 0.0f, 1.0f);
    float largest = fmax(sum.x, fmax(sum.y, sum.z));
    float3 colour = make_float3(sum.x, sum.y, sum.z);
    if (scale * largest <= 255.0f) {
        colour = colour * scale;
    } else if (curve.highlight_power >= 0.0f) {  // towards white: with value 1, saturation is the distance from 1
        float keep = power_of(255.0f / (largest * scale), curve.highlight_power);
        colour = make_float3(1.0f - (1.0f - colour.x / largest) * keep, 1.0f - (1.0f - colour.y / largest) * keep,
                             1.0f - (1.0f - colour.z / largest) * keep) * 255.0f;
    } else {
        float plain = fmin(1.0f, -curve.highlight_power);
        colour = colour * ((1.0f - plain) * 255.0f / largest + plain * scale);
    }
    float own = (1.0f - curve.vibrancy) * 256.0f, gamma = curve.gamma;
    colour = colour + make_float3(curved(sum.x, gamma), curved(sum.y, gamma), curved(sum.z, gamma)) * own;
    if (curve.transparent != 0) {
        colour = alpha > 0.0f ? colour * (1.0f / alpha) : make_float3(0.0f, 0.0f, 0.0f);
    } else {
        colour = colour + make_float3(curve.red, curve.green, curve.blue) * ((1.0f - alpha) * 256.0f);
    }
    return make_float4(colour.x, colour.y, colour.z, alpha);
}

// clipped = every bucket's colour, 0 to 255, and opacity: toned before the spatial filter.
KERNEL clip(GLOBAL const float4 *exposed, GLOBAL float4 *clipped, int cells, float gamma, float threshold, float vibrancy,
            float highlight_power, float red, float green, float blue, int transparent) {
    uint i = thread_index();
    Curve curve = curve_of(gamma, threshold, vibrancy, highlight_power, red, green, blue, transparent);
    if (i < (uint)cells) {
        float4 t = toned(exposed[i], curve);
        clipped[i] = make_float4(clamp(t.x, 0.0f, 255.0f), clamp(t.y, 0.0f, 255.0f), clamp(t.z, 0.0f, 255.0f), t.w);
    }
}

// picture = the pixels' linear values, of which the sRGB curve makes the 8-bit values that flam3 truncates to. `linear_of` is
// that curve's inverse at 0 to 255. The filter is (taps, taps); that of the first pixel begins at bucket (first_column,
// first_row). `clipped`: the buckets are toned already.
KERNEL finish(GLOBAL const float4 *exposed, GLOBAL float4 *picture, GLOBAL const float *filter, GLOBAL const float *linear_of,
              int columns, int width, int height, int first_column, int first_row, int oversample, int taps, int clipped,
              float gamma, float threshold, float vibrancy, float highlight_power, float red, float green, float blue,
              int transparent) {
    uint i = thread_index();
    Curve curve = curve_of(gamma, threshold, vibrancy, highlight_power, red, green, blue, transparent);
    if (i < (uint)(width * height)) {
        int column = (int)(i % (uint)width) * oversample + first_column, row = (int)(i / (uint)width) * oversample + first_row;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int v = 0; v < taps; v++)
            for (int u = 0; u < taps; u++)
                sum = sum + exposed[(size_t)(row + v) * (size_t)columns + (size_t)(column + u)] * filter[v * taps + u];
        if (clipped == 0) sum = toned(sum, curve);
        picture[i] = make_float4(linear_of[(int)quantised(sum.x)], linear_of[(int)quantised(sum.y)],
                                 linear_of[(int)quantised(sum.z)],
                                 transparent != 0 ? quantised(clamp(sum.w, 0.0f, 1.0f) * 255.0f) / 255.0f : 1.0f);
    }
}
