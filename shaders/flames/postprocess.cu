// From the histogram of a flame to its picture, as flam3 does it: log-density, density estimation, spatial filter, tone
// curve. Buckets are (columns, rows), pixels (width, height). A bucket's sums are red, green, blue, alpha, each in
// 1/255. Launched by renderer/flames/postprocess.py, which defines ToneCurve. EXTENDED 1 is for flames that use what
// other programs add to flam3's exposure and tone curve; CURVE_ENTRIES is the length of a table of a curve. (column,
// row) is a thread's bucket or the first bucket of its pixel, (u, v) another bucket, in columns and rows. `curves`: the
// tables of the overall curve, then of red, green and blue. Functions named flam3_... are in flam3's source.
#define LANES 1
#include "common/reproducible_math.h"

// ln(1 + x) without the rounding error of 1 + x (W. Kahan's quotient).
DEVICE float vlog1p(float x) {
    float u = 1.0f + x;
    return u == 1.0f ? x : logarithm_of(u) * (x / (u - 1.0f));
}

// scaled = the sums times brightness * ln(1 + alpha * density) / alpha, where density = area / samples plotted.
// `glow` is JWildfire's low_density_brightness: it adds glow / (hits + 1) * 255 / samples.
KERNEL log_density(GLOBAL const ulong *sums, GLOBAL float4 *scaled, int buckets, GLOBAL const ulong *bad_value_total,
                   ulong samples, float area, float brightness, float glow) {
    uint i = thread_index();
    if (i >= (uint)buckets) return;
    float alpha = (float)sums[4 * (size_t)i + 3];
    float density = area / (float)(samples - bad_value_total[0]);
    float light = brightness * vlog1p(alpha * density);
#if EXTENDED
    light = light + 255.0f * glow / (float)(samples - bad_value_total[0]) / (alpha / 255.0f + 1.0f);
#endif
    float factor = alpha > 0.0f ? light / alpha : 0.0f;
    scaled[i] = make_float4((float)sums[4 * (size_t)i] * factor, (float)sums[4 * (size_t)i + 1] * factor,
                            (float)sums[4 * (size_t)i + 2] * factor, alpha * factor);
}

#define TILE 8  // buckets along each side of a tile, for which the largest filter radius is known

// kernel_index[i] = index of bucket i's density estimation filter (fewer hits: wider), or -1 if the bucket is empty or
// within supersample - 1 buckets of the grid's edge. The arrays cover a rectangle of the grid of grid_columns *
// grid_rows. `hit`: mean alpha that one hit adds to a bucket. `last`: the index of the narrowest filter, which buckets
// of more than `max_hits` hits use. `curve`: the exponent by which filters are spaced.
KERNEL choose_density_kernel(GLOBAL const ulong *sums, GLOBAL int *kernel_index, int columns, int rows, int left,
                             int top, int grid_columns, int grid_rows, int supersample, int last, float max_hits,
                             float curve, float hit) {
    uint i = thread_index();
    if (i >= (uint)(columns * rows)) return;
    int column = (int)(i % (uint)columns), row = (int)(i / (uint)columns);
    int edge = supersample - 1, around = supersample / 2;
    bool inside = column + left >= edge && column + left < grid_columns - edge && row + top >= edge &&
                  row + top < grid_rows - edge;
    int chosen = -1;
    if (inside && sums[4 * (size_t)i + 3] != 0) {
        ulong hits = 0;
        for (int v = max(row - around, 0); v <= min(row + around, rows - 1); v++)
            for (int u = max(column - around, 0); u <= min(column + around, columns - 1); u++)
                hits += sums[4 * ((size_t)v * (size_t)columns + (size_t)u) + 3];
        float n = (float)hits / hit;
        float scale = (float)supersample / (float)(supersample + 1);
        if ((supersample & 1) == 0) n *= scale * scale;  // the sum is over one column and one row more
        // up to 100 hits (SINGLE_HIT_KERNELS in filters.py) each count has a filter, beyond them each range of counts
        if (n > max_hits)
            chosen = last;
        else if (n <= 100.0f)
            chosen = (int)floor_of(n) + (n > floor_of(n) ? 1 : 0) - 1;  // n rounded up, counted from 0
        else
            chosen = 100 + (int)floor_of(power_of(n - 100.0f, curve));
        chosen = clamp(chosen, 0, last);
    }
    kernel_index[i] = chosen;
}

// tile_radii = the largest radius of the filters in each tile of TILE x TILE buckets, -1 if all are empty.
KERNEL max_tile_radius(GLOBAL const int *kernel_index, GLOBAL const int *radii, GLOBAL int *tile_radii, int columns,
                       int rows, int tile_columns, int tile_rows) {
    uint i = thread_index();
    if (i >= (uint)(tile_columns * tile_rows)) return;
    int column = (int)(i % (uint)tile_columns) * TILE, row = (int)(i / (uint)tile_columns) * TILE, radius = -1;
    for (int v = row; v < min(row + TILE, rows); v++)
        for (int u = column; u < min(column + TILE, columns); u++) {
            int k = kernel_index[(size_t)v * (size_t)columns + (size_t)u];
            if (k >= 0) radius = max(radius, radii[k]);
        }
    tile_radii[i] = radius;
}

// filtered = every bucket's color distributed by its own filter. Each thread gathers, row by row, so that the order of
// the sum is fixed. kernels: (last + 1, side, side), weights by the distance in columns and rows.
KERNEL filter_density(GLOBAL const float4 *scaled, GLOBAL float4 *filtered, GLOBAL const int *kernel_index,
                      GLOBAL const int *radii, GLOBAL const int *tile_radii, GLOBAL const float *kernels, int columns,
                      int rows, int tile_columns, int tile_rows, int side) {
    uint i = thread_index();
    if (i >= (uint)(columns * rows)) return;
    int column = (int)(i % (uint)columns), row = (int)(i / (uint)columns);
    int reach = (side + TILE - 2) / TILE, radius = -1;  // tiles that a filter of radius side - 1 may span
    for (int v = max(row / TILE - reach, 0); v <= min(row / TILE + reach, tile_rows - 1); v++)
        for (int u = max(column / TILE - reach, 0); u <= min(column / TILE + reach, tile_columns - 1); u++)
            radius = max(radius, tile_radii[v * tile_columns + u]);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int v = max(row - radius, 0); v <= min(row + radius, rows - 1); v++)
        for (int u = max(column - radius, 0); u <= min(column + radius, columns - 1); u++) {
            size_t from = (size_t)v * (size_t)columns + (size_t)u;
            int k = kernel_index[from];
            if (k < 0) continue;
            int across = u > column ? u - column : column - u, down = v > row ? v - row : row - v;
            size_t weight = ((size_t)k * (size_t)side + (size_t)down) * (size_t)side + (size_t)across;
            if (max(across, down) <= radii[k]) sum = sum + scaled[from] * kernels[weight];
        }
    filtered[i] = sum;
}

// A power, 0 for a negative x.
DEVICE float power_or_zero(float x, float gamma) { return x > 0.0f ? power_of(x, gamma) : 0.0f; }

// Opacity of a density (flam3_calc_alpha): its power, blended into a line below the threshold.
DEVICE float alpha_of_density(float density, float gamma, float threshold) {
    if (!(density > 0.0f)) return 0.0f;
    float power = power_of(density, gamma);
    if (density >= threshold) return power;
    float f = density / threshold;
    return (1.0f - f) * density * power_of(threshold, gamma - 1.0f) + f * power;
}

DEVICE float truncate_to_byte(float x) { return floor(clamp(x, 0.0f, 255.0f)); }

// sum = (scaled + passes) * factor: the log-densities of several passes, added or averaged.
KERNEL add_pass(GLOBAL const float4 *scaled, GLOBAL const float4 *passes, GLOBAL float4 *sum, int buckets,
                float factor) {
    uint i = thread_index();
    if (i < (uint)buckets) sum[i] = (scaled[i] + passes[i]) * factor;
}

#if EXTENDED
// The value at x of a table of CURVE_ENTRIES over 0 to 1, linear between entries; x is clamped.
DEVICE float table_at(GLOBAL const float *table, float x) {
    float at = clamp(x, 0.0f, 1.0f) * (float)(CURVE_ENTRIES - 1);
    int k = min((int)at, CURVE_ENTRIES - 2);
    float f = at - (float)k;
    return table[k] * (1.0f - f) + table[k + 1] * f;
}

// A color 0 to 255 after the overall curve and its channel's own, then with `more` added to its saturation in HSL.
DEVICE float4 adjust_color(float4 color, ToneCurve curve, GLOBAL const float *curves) {
    float c[3] = {color.x, color.y, color.z};
    for (int k = 0; k < 3; k++) {
        c[k] = clamp(c[k], 0.0f, 255.0f) / 255.0f;
        if (curve.has_curves != 0) c[k] = table_at(curves + (k + 1) * CURVE_ENTRIES, table_at(curves, c[k]));
    }
    float high = fmax(c[0], fmax(c[1], c[2])), low = fmin(c[0], fmin(c[1], c[2])), middle = 0.5f * (high + low);
    float room = 1.0f - magnitude(2.0f * middle - 1.0f), scale = 1.0f;
    if (curve.more_saturation != 0.0f && high > low)
        scale = clamp((high - low) / room + curve.more_saturation, 0.0f, 1.0f) * room / (high - low);
    for (int k = 0; k < 3; k++) c[k] = middle + (c[k] - middle) * scale;
    return make_float4(c[0] * 255.0f, c[1] * 255.0f, c[2] * 255.0f, color.w);
}
#endif

// Color 0 to 255, not yet clamped, and opacity 0 to 1 of a scaled sum (red, green, blue, density); flam3_calc_newrgb.
DEVICE float4 tone_map(float4 sum, ToneCurve curve, GLOBAL const float *curves) {
    sum = sum * (1.0f / 255.0f);
#if EXTENDED
    sum.x = sum.x * curve.red_scale;
    sum.y = sum.y * curve.green_scale;
    sum.z = sum.z * curve.blue_scale;
#endif
    float alpha = alpha_of_density(sum.w, curve.gamma, curve.threshold);
    float scale = alpha > 0.0f ? curve.vibrancy * 256.0f * alpha / sum.w : 0.0f;
#if EXTENDED
    alpha = alpha * curve.alpha_scale;
#endif
    alpha = clamp(alpha, 0.0f, 1.0f);
    float largest = fmax(sum.x, fmax(sum.y, sum.z));
    float3 color = make_float3(sum.x, sum.y, sum.z);
    if (scale * largest <= 255.0f) {
        color = color * scale;
    } else if (curve.highlight_power >= 0.0f) {  // fade to white: with value 1, saturation is the distance from 1
        float keep = power_of(255.0f / (largest * scale), curve.highlight_power);
        color = make_float3(1.0f - (1.0f - color.x / largest) * keep, 1.0f - (1.0f - color.y / largest) * keep,
                            1.0f - (1.0f - color.z / largest) * keep) *
                255.0f;
    } else {
        float clipped = fmin(1.0f, -curve.highlight_power);
        color = color * ((1.0f - clipped) * 255.0f / largest + clipped * scale);
    }
    float per_channel = (1.0f - curve.vibrancy) * 256.0f, gamma = curve.gamma;
    float3 power = make_float3(power_or_zero(sum.x, gamma), power_or_zero(sum.y, gamma), power_or_zero(sum.z, gamma));
    color = color + power * per_channel;
    if (curve.transparent == 1) {  // no background; 2 (below) keeps the alpha beside the background
        color = alpha > 0.0f ? color * (1.0f / alpha) : make_float3(0.0f, 0.0f, 0.0f);
    } else {
        color = color + make_float3(curve.red, curve.green, curve.blue) * ((1.0f - alpha) * 256.0f);
    }
#if EXTENDED
    return adjust_color(make_float4(color.x, color.y, color.z, alpha), curve, curves);
#else
    return make_float4(color.x, color.y, color.z, alpha);
#endif
}

#if EXTENDED
// Color and opacity of filtered colors of a solid flame; sum.w is the covered fraction (JWildfire).
DEVICE float4 solid_color(float4 sum, ToneCurve curve, GLOBAL const float *curves) {
    float alpha = sum.w > 0.0f ? power_of(fmin(sum.w, 1.0f), 1.0f + curve.gamma) : 0.0f;
    alpha = clamp(alpha * curve.alpha_scale, 0.0f, 1.0f);
    float4 color = make_float4(sum.x, sum.y, sum.z, alpha);
    if (curve.transparent == 1) {
        float over = alpha > 0.0f ? 1.0f / alpha : 0.0f;
        color = make_float4(sum.x * over, sum.y * over, sum.z * over, alpha);
    } else {
        color = color + make_float4(curve.red, curve.green, curve.blue, 0.0f) * ((1.0f - alpha) * 255.0f);
    }
    return adjust_color(color, curve, curves);
}
#endif

// toned = every bucket's color, clamped to 0 .. 255, and opacity: tone mapping before the spatial filter.
KERNEL tone_map_buckets(GLOBAL const float4 *scaled, GLOBAL float4 *toned, int buckets, const ToneCurve curve,
                        GLOBAL const float *curves) {
    uint i = thread_index();
    if (i >= (uint)buckets) return;
    float4 t = tone_map(scaled[i], curve, curves);
    toned[i] = make_float4(clamp(t.x, 0.0f, 255.0f), clamp(t.y, 0.0f, 255.0f), clamp(t.z, 0.0f, 255.0f), t.w);
}

// picture = linear values whose sRGB encoding rounds to the 8-bit values that flam3 truncates to; `srgb_to_linear` is
// the table of that encoding's inverse at 0 to 255. The spatial filter is (filter_width, filter_width); the first
// pixel's begins at bucket (first_column, first_row). `toning`: 0, buckets are log-densities, tone mapped here; 1,
// buckets are tone mapped already; 2 (LIT in postprocess.py), they are colors of a solid flame.
KERNEL resolve(GLOBAL const float4 *buckets, GLOBAL float4 *picture, GLOBAL const float *filter,
               GLOBAL const float *srgb_to_linear, int columns, int width, int height, int first_column, int first_row,
               int supersample, int filter_width, int toning, const ToneCurve curve, GLOBAL const float *curves) {
    uint i = thread_index();
    if (i >= (uint)(width * height)) return;
    int column = (int)(i % (uint)width) * supersample + first_column;
    int row = (int)(i / (uint)width) * supersample + first_row;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int v = 0; v < filter_width; v++)
        for (int u = 0; u < filter_width; u++) {
            size_t from = (size_t)(row + v) * (size_t)columns + (size_t)(column + u);
            sum = sum + buckets[from] * filter[v * filter_width + u];
        }
    if (toning == 0) sum = tone_map(sum, curve, curves);
#if EXTENDED
    if (toning == 2) sum = solid_color(sum, curve, curves);
#endif
    float alpha = curve.transparent != 0 ? truncate_to_byte(clamp(sum.w, 0.0f, 1.0f) * 255.0f) / 255.0f : 1.0f;
    int red_byte = (int)truncate_to_byte(sum.x), green_byte = (int)truncate_to_byte(sum.y);
    int blue_byte = (int)truncate_to_byte(sum.z);
    picture[i] = make_float4(srgb_to_linear[red_byte], srgb_to_linear[green_byte], srgb_to_linear[blue_byte], alpha);
}
