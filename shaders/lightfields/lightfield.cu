// Light fields: refocused pictures by shift-and-add over the views of a camera array (Levoy and Hanrahan 1996; Isaksen
// et al. 2000; Ng 2005), and their median, minimum, maximum and variance. From the variances follow disparities, drawn
// as colors, and from slices at several disparities a picture that is sharp everywhere. Launched by
// renderer/lightfields/kernels.py and renderer/pictures/lightfield.py. The kernels, in this order:
//     refocus_reference, refocus_gpu, refocus_cpu                 the mean of the shifted views
//     min_max, median                                             other ways to combine them
//     half_variances, keep_min_cost, weigh_disparity, smooth_rows, smooth_columns, shade_disparity   disparities
//     keep_sharpest                                               the picture that is sharp everywhere
//     blit, clear_black, copy_views                               copies
//
// In, for all kernels with FLATTEN_ARGUMENTS and for refocus_gpu and refocus_cpu:
//     views    uint8 sRGB, CHANNELS bytes per pixel, in rows of PITCH bytes. `stored_rows` rows of each view are
//              stored, from row `first_stored_row` on. GUARD_BYTES bytes before and after all views may be read.
//     shifts   (count) VIEW_SHIFT: a view's number, its shift in whole pixels (column, row), the fraction of a pixel
//              (fx, fy, 0 to 1), and its weight. Output pixel (x, y) samples the view at (x + column + fx,
//              y + row + fy), by bilinear interpolation in linear light; a sample outside of the view has weight 0.
//     linear   (256): linear light, 0 to 1, of an sRGB byte
// Out: the rows begin_row to end_row - 1 of `image`, (HEIGHT, WIDTH) float4 in linear light, alpha 1.
//
// The host defines WIDTH and HEIGHT, the size of a view and of the output in pixels; CHANNELS, 3 or 4; PITCH, a
// multiple of 16; GUARD_BYTES, 12 rows; and the type VIEW_SHIFT. ROWS_PER_THREAD (2, 4 or 8) adds refocus_gpu,
// STAGED_VIEWS (3) its bulk copies; CPU_TILE_WIDTH (128) and CPU_TILE_HEIGHT (8), in pixels, add refocus_cpu.
// In loops t numbers the `count` VIEW_SHIFTs, r rows and p columns of a thread's pixels, k bytes or sums, and c
// channels.

#include "common/srgb.h"

#define COLUMNS_PER_THREAD 4  // of refocus_gpu
#define SAMPLES (3 * COLUMNS_PER_THREAD)  // the color channels of these pixels
#define WARP_SIZE 32

// The arguments of the kernels that compute one value of type T per pixel from all views.
#define FLATTEN_ARGUMENTS(T)                                                                           \
    GLOBAL const uchar *views, GLOBAL const VIEW_SHIFT *shifts, int count, GLOBAL const float *linear, \
        GLOBAL T *image, int first_stored_row, int stored_rows, int begin_row, int end_row

// True if the pixels that interpolation at index + fraction reads, one if the fraction is 0 and else two, lie in 0 to
// size - 1.
DEVICE bool lerp_inside(int index, float fraction, int size) {
    return index >= 0 && index + (fraction > 0.0f ? 1 : 0) < size;
}

// Weights of these two pixels; zero if one is outside.
DEVICE float2 lerp_weights(int index, float fraction, int size) {
    return lerp_inside(index, fraction, size) ? make_float2(1.0f - fraction, fraction) : make_float2(0.0f, 0.0f);
}

// Linear red, green, blue and the weight of a view at output pixel (x, y).
DEVICE float4 sample_view(GLOBAL const uchar *views, VIEW_SHIFT shift, GLOBAL const float *linear, int x, int y,
                          int first_stored_row, int stored_rows) {
    int left = x + shift.column, top = y + shift.row;
    float2 across = lerp_weights(left, shift.fx, WIDTH), down = lerp_weights(top, shift.fy, HEIGHT);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (across.x + across.y == 0.0f || down.x + down.y == 0.0f) return sum;
    for (int j = 0; j < 2; j++) {
        for (int i = 0; i < 2; i++) {
            float weight = (i ? across.y : across.x) * (j ? down.y : down.x);
            if (weight > 0.0f) {
                ulong row = (ulong)shift.view * (ulong)stored_rows + (ulong)(top + j - first_stored_row);
                GLOBAL const uchar *pixel = views + GUARD_BYTES + row * PITCH + (ulong)((left + i) * CHANNELS);
                float pixel_weight = CHANNELS == 4 ? weight * (float)pixel[CHANNELS - 1] * (1.0f / 255.0f) : weight;
                sum.x += pixel_weight * linear[pixel[0]];
                sum.y += pixel_weight * linear[pixel[1]];
                sum.z += pixel_weight * linear[pixel[2]];
                sum.w += pixel_weight;
            }
        }
    }
    if (CHANNELS == 4 && sum.w > 0.0f) {
        sum.x /= sum.w;
        sum.y /= sum.w;
        sum.z /= sum.w;
    }
    sum.w = CHANNELS == 4 ? sum.w * shift.weight : shift.weight;
    return sum;
}

// The mean of a sum of weighted colors, with alpha 1; black where the weight is 0.
DEVICE float4 weighted_mean(float red, float green, float blue, float weight) {
    float scale = weight > 0.0f ? 1.0f / weight : 0.0f;
    return make_float4(red * scale, green * scale, blue * scale, 1.0f);
}

// Weighted mean of all views, one thread per pixel, for any CHANNELS: the reference for refocus_gpu and refocus_cpu.
KERNEL refocus_reference(FLATTEN_ARGUMENTS(float4)) {
    int x = (int)(thread_index() % WIDTH), y = begin_row + (int)(thread_index() / WIDTH);
    if (y >= end_row) return;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int t = 0; t < count; t++) {
        float4 value = sample_view(views, shifts[t], linear, x, y, first_stored_row, stored_rows);
        sum += make_float4(value.x * value.w, value.y * value.w, value.z * value.w, value.w);
    }
    image[y * WIDTH + x] = weighted_mean(sum.x, sum.y, sum.z, sum.w);
}

#ifdef ROWS_PER_THREAD
// refocus_gpu: the mean of views with 3 channels, by three ideas:
// 1. A warp computes 128 columns of ROWS_PER_THREAD rows, a thread 4 columns of these: every byte is decoded once for a
//    thread's row, by a table in local memory.
// 2. Cameras of one row of the array have the same vertical shift, and view_shifts() of aperture.py lists them one
//    after another. The rows of such a run of views are interpolated across and added up, and then interpolated down
//    once, not once for each view.
// 3. With STAGED_VIEWS the warps of a group lie side by side, as wide as the views. While they add one view, the rows
//    that they need of the next STAGED_VIEWS - 1 views are copied to local memory (bulk_copy).
#ifdef STAGED_VIEWS
#define WARPS_ACROSS (GROUP_SIZE / WARP_SIZE)
#else
#define WARPS_ACROSS 1
#endif
#define TILE_WIDTH (WARPS_ACROSS * WARP_SIZE * COLUMNS_PER_THREAD)
#define TILE_HEIGHT (GROUP_SIZE / WARP_SIZE / WARPS_ACROSS * ROWS_PER_THREAD)
#define ROWS_READ (ROWS_PER_THREAD + 1)
#define ROW_SUMS (SAMPLES + COLUMNS_PER_THREAD)  // sums of a thread's row: samples, then the weight of each column
#define WORDS ((SAMPLES + 9) / 4)  // words of a row: its bytes, 3 of the next pixel, up to 3 before the first

// Decodes byte k of a word. The table is stored once per lane in local memory, so that lanes have no bank conflicts.
// The byte offset is byte * WARP_SIZE * 4 + lane * 4, computed by one shift and one three-input operation.
DEVICE float decode_byte(const LOCAL uchar *tables, uint word, int k, uint lane_offset) {
    uint offset = k == 0 ? word << 7 : word >> (8 * k - 7);
    return *(const LOCAL float *)(tables + ((offset & 0x7f80u) | lane_offset));
}

// Decodes a thread's pixels of a row and the pixel after them; their bytes begin `bit_shift` bits into the words.
DEVICE void decode_row(const uint *words, uint bit_shift, const LOCAL uchar *tables, uint lane_offset, float *light) {
    UNROLL
    for (int k = 0; k < SAMPLES + 3; k++) {
        uint shifted = funnel_shift_right(words[k / 4], words[k / 4 + 1], bit_shift);
        light[k] = decode_byte(tables, shifted, k % 4, lane_offset);
    }
}

// Sets `seen` to the view's weight for each of a thread's columns, and to 0 where the view does not cover the column.
DEVICE void seen_weights(VIEW_SHIFT shift, int tile_x, int x, float *seen) {
    int last_x = min(tile_x + TILE_WIDTH, WIDTH) - 1;
    bool covers = tile_x + shift.column >= 0 && lerp_inside(last_x + shift.column, shift.fx, WIDTH);
    UNROLL
    for (int p = 0; p < COLUMNS_PER_THREAD; p++) seen[p] = shift.weight;
    if (covers) return;  // the same for all threads of the group
    UNROLL
    for (int p = 0; p < COLUMNS_PER_THREAD; p++)
        if (!lerp_inside(x + p + shift.column, shift.fx, WIDTH)) seen[p] = 0.0f;
}

#ifdef STAGED_VIEWS
// The rows of a tile in a view are one range of bytes, from a multiple of 16 bytes on. It may begin ROWS_READ rows
// before the stored rows or end as far behind them: the weight of such rows is 0. GUARD_BYTES are at least 32 bytes
// and ROWS_READ + 1 rows.
#define STAGED_BYTES (ROWS_READ * PITCH + 32)
#define STAGED_WORDS (STAGED_BYTES / 4)
DEVICE void stage_view(LOCAL uint *staged, GLOBAL const uint *words, VIEW_SHIFT shift, int tile_y, int first_stored_row,
                       int stored_rows, LOCAL ulong *arrived) {
    int row = clamp(tile_y + shift.row - first_stored_row, -ROWS_READ, stored_rows);
    int64 first = ((int64)shift.view * stored_rows + row) * PITCH + GUARD_BYTES + ((3 * shift.column) & ~15);
    mbarrier_expect_tx(arrived, STAGED_BYTES);
    bulk_copy(staged, (GLOBAL const uchar *)words + first, STAGED_BYTES, arrived);
}
#else
// The words that hold a thread's pixels of row y, from byte `byte` of the row on. Rows that are not stored are clamped;
// their weight is 0.
DEVICE GLOBAL const uint *stored_words(GLOBAL const uint *words, VIEW_SHIFT shift, int y, int byte,
                                       int first_stored_row, int stored_rows) {
    int row = clamp(y + shift.row - first_stored_row, 0, stored_rows - 1);
    ulong first = ((ulong)shift.view * (ulong)stored_rows + (ulong)row) * (PITCH / 4) + GUARD_BYTES / 4;
    return words + first + (byte >> 2);
}
#endif

// `across` holds the rows of a run of views, interpolated across and added up, and `across_weights` their weights;
// after the run both are interpolated down and added to `sums`. These lie in memory (volatile), so that registers
// remain for loads in flight. With STAGED_VIEWS, the rows of view t lie in slot t % STAGED_VIEWS of local memory;
// `parity` is the parity of the phase in which the slot's mbarrier completes (common/portable.h).
KERNEL refocus_gpu(GLOBAL const uint *words, GLOBAL const VIEW_SHIFT *shifts, int count, GLOBAL const float *linear,
                   GLOBAL float4 *image, int first_stored_row, int stored_rows, int begin_row, int end_row) {
    int tiles_across = (WIDTH + TILE_WIDTH - 1) / TILE_WIDTH;
    int tile_x = (int)group_index() % tiles_across * TILE_WIDTH;
    int tile_y = begin_row + (int)group_index() / tiles_across * TILE_HEIGHT;
    int column = (int)local_index() % (WARPS_ACROSS * WARP_SIZE), x = tile_x + column * COLUMNS_PER_THREAD;
    int y = tile_y + (int)local_index() / (WARPS_ACROSS * WARP_SIZE) * ROWS_PER_THREAD;
#ifdef STAGED_VIEWS
    LARGE_LOCAL_ARRAY(float, tables, 256 * WARP_SIZE + STAGED_VIEWS * (STAGED_WORDS + 2));
    LOCAL uint *staged = (LOCAL uint *)(tables + 256 * WARP_SIZE);
    LOCAL ulong *arrived = (LOCAL ulong *)(staged + STAGED_VIEWS * STAGED_WORDS);
    int slot = 0;
    uint parity = 0;
    if (local_index() < STAGED_VIEWS) mbarrier_init(arrived + local_index());
#else
    LOCAL_ARRAY(float, tables, 256 * WARP_SIZE);
#endif
    for (uint i = local_index(); i < 256 * WARP_SIZE; i += GROUP_SIZE) tables[i] = linear[i / WARP_SIZE];
    BARRIER();
#ifdef STAGED_VIEWS
    if (local_index() == 0)
        for (int t = 0; t < min(STAGED_VIEWS - 1, count); t++)
            stage_view(staged + t * STAGED_WORDS, words, shifts[t], tile_y, first_stored_row, stored_rows, arrived + t);
#endif
    volatile float sums[ROWS_PER_THREAD * ROW_SUMS];  // for each row, ROW_SUMS: SAMPLES, then the columns' weights
    for (int k = 0; k < ROWS_PER_THREAD * ROW_SUMS; k++) sums[k] = 0.0f;
    VIEW_SHIFT shift = shifts[0], next = shifts[min(1, count - 1)];
    for (int t = 0; t < count;) {  // one run of views with the same vertical shift in each round
        int run_row = shift.row;
        float run_fy = shift.fy, across[ROWS_READ * SAMPLES], across_weights[COLUMNS_PER_THREAD];
        UNROLL
        for (int k = 0; k < ROWS_READ * SAMPLES; k++) across[k] = 0.0f;
        UNROLL
        for (int p = 0; p < COLUMNS_PER_THREAD; p++) across_weights[p] = 0.0f;
        do {
            VIEW_SHIFT after = shifts[min(t + 2, count - 1)];  // read early
            float seen[COLUMNS_PER_THREAD];
            seen_weights(shift, tile_x, x, seen);
            UNROLL
            for (int p = 0; p < COLUMNS_PER_THREAD; p++) across_weights[p] += seen[p];
#ifdef STAGED_VIEWS
            BARRIER();  // all warps have read the rows of the view before
            int ahead = t + STAGED_VIEWS - 1, freed = slot == 0 ? STAGED_VIEWS - 1 : slot - 1;
            if (local_index() == 0 && ahead < count)
                stage_view(staged + freed * STAGED_WORDS, words, shifts[ahead], tile_y, first_stored_row, stored_rows,
                           arrived + freed);
            // `byte`: the staged bytes before the first column's, since the copy begins at a multiple of 16
            int byte = 3 * shift.column & 15, last = (WIDTH - 1) / COLUMNS_PER_THREAD;
            // Threads beyond the width read the last pixels of the row.
            const LOCAL uint *source = staged + slot * STAGED_WORDS + (byte >> 2) + 3 * min(column, last);
            mbarrier_wait(arrived + slot, parity);
            slot = slot == STAGED_VIEWS - 1 ? 0 : slot + 1;
            parity ^= slot == 0 ? 1u : 0u;
#else
            int byte = clamp(3 * (x + shift.column), -SAMPLES, 3 * WIDTH);  // the weight of clamped columns is 0
#endif
            // Interpolate this view's rows across.
            UNROLL
            for (int r = 0; r < ROWS_READ; r++) {
#ifdef STAGED_VIEWS
                const LOCAL uint *row = source + r * (PITCH / 4);
#else
                GLOBAL const uint *row = stored_words(words, shift, y + r, byte, first_stored_row, stored_rows);
#endif
                uint row_words[WORDS];
                float light[SAMPLES + 3];
                UNROLL
                for (int k = 0; k < WORDS; k++) row_words[k] = row[k];
                decode_row(row_words, 8u * ((uint)byte & 3u), (const LOCAL uchar *)tables, 4u * lane_index(), light);
                UNROLL
                for (int k = 0; k < SAMPLES; k++) {
                    float left = seen[k / 3] * (1.0f - shift.fx), right = seen[k / 3] * shift.fx;
                    across[r * SAMPLES + k] = fma(right, light[k + 3], fma(left, light[k], across[r * SAMPLES + k]));
                }
            }
            shift = next;
            next = after;
            t++;
        } while (t < count && shift.row == run_row && shift.fy == run_fy);
        // Interpolate the run's rows down.
        UNROLL
        for (int r = 0; r < ROWS_PER_THREAD; r++) {
            float2 down = lerp_weights(y + r + run_row, run_fy, HEIGHT);
            volatile float *row_sums = sums + r * ROW_SUMS;
            float sum[ROW_SUMS];  // all are read before the first is written, since volatile accesses keep their order
            UNROLL
            for (int k = 0; k < ROW_SUMS; k++) sum[k] = row_sums[k];
            UNROLL
            for (int k = 0; k < SAMPLES; k++)
                row_sums[k] = sum[k] + (down.x * across[r * SAMPLES + k] + down.y * across[(r + 1) * SAMPLES + k]);
            UNROLL
            for (int k = SAMPLES; k < ROW_SUMS; k++)
                row_sums[k] = sum[k] + (down.x + down.y > 0.0f ? across_weights[k - SAMPLES] : 0.0f);
        }
    }
    UNROLL
    for (int k = 0; k < ROWS_PER_THREAD * COLUMNS_PER_THREAD; k++) {
        int p = k % COLUMNS_PER_THREAD, px = x + p, py = y + k / COLUMNS_PER_THREAD;
        volatile float *row_sums = sums + k / COLUMNS_PER_THREAD * ROW_SUMS, *sum = row_sums + 3 * p;
        if (px < WIDTH && py < end_row)
            image[py * WIDTH + px] = weighted_mean(sum[0], sum[1], sum[2], row_sums[SAMPLES + p]);
    }
}
#endif

// refocus_cpu: the mean of views with 3 channels on CPUs. A work-item computes CPU_TILE_WIDTH x CPU_TILE_HEIGHT
// pixels; the compiler vectorizes its loops over the bytes of a row. Each byte is decoded once per tile. `here` is a
// row of a view interpolated across, times the view's weight, and `above` the row before it.
#ifdef CPU_TILE_WIDTH
KERNEL refocus_cpu(GLOBAL const uchar *RESTRICT views, GLOBAL const VIEW_SHIFT *RESTRICT shifts, int count,
                   GLOBAL const float *RESTRICT linear, GLOBAL float4 *RESTRICT image, int first_stored_row,
                   int stored_rows, int begin_row, int end_row) {
    int tiles_across = (WIDTH + CPU_TILE_WIDTH - 1) / CPU_TILE_WIDTH;
    int x = (int)thread_index() % tiles_across * CPU_TILE_WIDTH,
        y = begin_row + (int)thread_index() / tiles_across * CPU_TILE_HEIGHT;
    int rows = min(CPU_TILE_HEIGHT, end_row - y);
    float sums[CPU_TILE_HEIGHT * CPU_TILE_WIDTH * 3], weights[CPU_TILE_HEIGHT * CPU_TILE_WIDTH],
        value[CPU_TILE_WIDTH * 3 + 3], above[CPU_TILE_WIDTH * 3], here[CPU_TILE_WIDTH * 3];
    if (rows <= 0) return;
    for (int k = 0; k < CPU_TILE_HEIGHT * CPU_TILE_WIDTH * 3; k++) sums[k] = 0.0f;
    for (int k = 0; k < CPU_TILE_HEIGHT * CPU_TILE_WIDTH; k++) weights[k] = 0.0f;
    for (int t = 0; t < count; t++) {
        VIEW_SHIFT shift = shifts[t];
        // the tile's columns, start to stop - 1, that the view covers
        int start = max(x, -shift.column),
            stop = min(min(x + CPU_TILE_WIDTH, WIDTH), WIDTH - shift.column - (shift.fx > 0.0f ? 1 : 0));
        int samples = 3 * (stop - start), offset = 3 * (start - x);
        float left = shift.weight * (1.0f - shift.fx), right = shift.weight * shift.fx;
        for (int r = 0; r <= rows && samples > 0; r++) {
            int row = clamp(y + r + shift.row - first_stored_row, 0, stored_rows - 1);
            GLOBAL const uchar *source = views + GUARD_BYTES +
                                         ((ulong)shift.view * (ulong)stored_rows + (ulong)row) * PITCH +
                                         (ulong)(3 * (start + shift.column));
            for (int k = 0; k < samples + 3; k++) value[k] = linear[source[k]];
            for (int k = 0; k < samples; k++) here[k] = left * value[k] + right * value[k + 3];
            float2 down = lerp_weights(y + r - 1 + shift.row, shift.fy, HEIGHT);
            if (r > 0 && down.x + down.y > 0.0f) {
                float *sum = sums + (r - 1) * CPU_TILE_WIDTH * 3 + offset,
                      *weight = weights + (r - 1) * CPU_TILE_WIDTH + (start - x);
                for (int k = 0; k < samples; k++) sum[k] += down.x * above[k] + down.y * here[k];
                for (int k = 0; k < stop - start; k++) weight[k] += shift.weight;
            }
            for (int k = 0; k < samples; k++) above[k] = here[k];
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int p = 0; p < CPU_TILE_WIDTH && x + p < WIDTH; p++) {
            const float *s = sums + (r * CPU_TILE_WIDTH + p) * 3;
            image[(y + r) * WIDTH + x + p] = weighted_mean(s[0], s[1], s[2], weights[r * CPU_TILE_WIDTH + p]);
        }
    }
}
#endif

// Maximum (direction 1) or minimum (direction -1) of each channel over the views that cover the pixel.
KERNEL min_max(FLATTEN_ARGUMENTS(float4), float direction) {
    int x = (int)(thread_index() % WIDTH), y = begin_row + (int)(thread_index() / WIDTH);
    if (y >= end_row) return;
    float red = -FLT_MAX, green = -FLT_MAX, blue = -FLT_MAX;
    for (int t = 0; t < count; t++) {
        float4 value = sample_view(views, shifts[t], linear, x, y, first_stored_row, stored_rows);
        if (value.w > 0.0f) {
            red = fmax(red, direction * value.x);
            green = fmax(green, direction * value.y);
            blue = fmax(blue, direction * value.z);
        }
    }
    bool seen = red > -FLT_MAX;
    image[y * WIDTH + x] = seen ? make_float4(direction * red, direction * green, direction * blue, 1.0f)
                                : make_float4(0.0f, 0.0f, 0.0f, 1.0f);
}

#define LEVELS 65535.0f
// Weighted lower median of each channel: the least value that views of at least half of the total weight do not exceed.
// Each of four rounds splits the interval of levels that holds the median, which begins at `level0`, into 16 bins, so
// the median is exact to 1 / LEVELS of linear light. `below` is the weight of the views below that interval.
KERNEL median(FLATTEN_ARGUMENTS(float4)) {
    int x = (int)(thread_index() % WIDTH), y = begin_row + (int)(thread_index() / WIDTH);
    if (y >= end_row) return;
    uint level0[3] = {0u, 0u, 0u};
    float below[3] = {0.0f, 0.0f, 0.0f}, total = 0.0f;
    for (int round = 0; round < 4; round++) {
        uint bin_bits = 12u - 4u * (uint)round;  // a bin is 2^bin_bits levels
        float bins[48];  // weights of the views in 16 bins of each channel
        for (int k = 0; k < 48; k++) bins[k] = 0.0f;
        for (int t = 0; t < count; t++) {
            float4 value = sample_view(views, shifts[t], linear, x, y, first_stored_row, stored_rows);
            float channel[3] = {value.x, value.y, value.z};
            for (int c = 0; c < 3; c++) {
                uint level = (uint)(clamp(channel[c], 0.0f, 1.0f) * LEVELS + 0.5f),
                     bin = (level - level0[c]) >> bin_bits;
                if (level >= level0[c] && bin < 16u) bins[16 * c + (int)bin] += value.w;
            }
            if (round == 0) total += value.w;
        }
        for (int c = 0; c < 3; c++) {
            int bin = 0;
            while (bin < 15 && below[c] + bins[16 * c + bin] < 0.5f * total) {
                below[c] += bins[16 * c + bin];
                bin++;
            }
            level0[c] += (uint)bin << bin_bits;
        }
    }
    image[y * WIDTH + x] = make_float4((float)level0[0] * (1.0f / LEVELS), (float)level0[1] * (1.0f / LEVELS),
                                       (float)level0[2] * (1.0f / LEVELS), 1.0f);
}

// Matching costs of four halves of the array (left, right, above and below of the virtual camera), one in each
// component of `image`: the variance over the views of a half, summed over the channels; FLT_MAX if fewer than two of
// them cover the pixel. Bit k of halves[view] is set if the view belongs to half k. Behind an edge some half sees past
// it (S. Kang, R. Szeliski and J. Chai, "Handling occlusions in dense multi-view stereo", 2001). The host passes a ramp
// as `linear`, since noise and compression are even in sRGB.
KERNEL half_variances(FLATTEN_ARGUMENTS(float4), GLOBAL const int *halves) {
    int x = (int)(thread_index() % WIDTH), y = begin_row + (int)(thread_index() / WIDTH);
    if (y >= end_row) return;
    float4 first = make_float4(0.0f, 0.0f, 0.0f, 0.0f),
           sums[4];  // sums of differences from the first view, which do not cancel
    float squares[4], costs[4];
    int seen[4];
    for (int k = 0; k < 4; k++) {
        sums[k] = first;
        squares[k] = 0.0f;
        seen[k] = 0;
    }
    for (int t = 0; t < count; t++) {
        VIEW_SHIFT shift = shifts[t];
        float4 value = sample_view(views, shift, linear, x, y, first_stored_row, stored_rows);
        if (value.w > 0.0f) {
            if (first.w == 0.0f) first = value;
            float dx = value.x - first.x, dy = value.y - first.y, dz = value.z - first.z;
            float square = dx * dx + dy * dy + dz * dz;
            for (int k = 0; k < 4; k++) {
                int in_half = halves[shift.view] >> k & 1;
                float weight = in_half ? value.w : 0.0f;
                sums[k] += make_float4(weight * dx, weight * dy, weight * dz, weight);
                squares[k] += weight * square;
                seen[k] += in_half;
            }
        }
    }
    for (int k = 0; k < 4; k++) {
        float4 sum = sums[k];
        float scale = seen[k] > 1 ? 1.0f / sum.w : 0.0f;
        float variance = scale * (squares[k] - scale * (sum.x * sum.x + sum.y * sum.y + sum.z * sum.z));
        costs[k] = seen[k] > 1 ? fmax(variance, 0.0f) : FLT_MAX;
    }
    image[y * WIDTH + x] = make_float4(costs[0], costs[1], costs[2], costs[3]);
}

#define MIN_CONFIDENCE 1e-6f
#define COST_NOISE 1e-4f  // variance of views that see the same, by their rounding to 8 bits and compression
#define STEP_PIXELS 200.0f  // distance in pixels for which a step of the guide's color by 1 counts in smooth_line
#define LIKENESS 12.0f  // a window's pixel weighs e^(-LIKENESS d), d: sum of the channels' differences, 0 to 1 each
#define COLOR_COUNT 256  // entries of the table of shade_disparity

// Winner-take-all: keeps each pixel's disparity of least matching cost. Launched once for each plane, in the order of
// their disparities. The cost of a plane is the least of the halves' costs (`variances`, from half_variances), each
// averaged over a window of `radius` pixels. There pixels count by their likeness to the middle one in the picture
// `guide` (K. Yoon and I. Kweon, "Adaptive support-weight approach", 2006), so that near things do not grow over their
// edges. `best` becomes (least cost, its disparity, cost of the plane before, cost of the plane after), to which
// weigh_disparity fits a parabola. `previous` holds the costs of the plane of the last launch. FLT_MAX stands for the
// cost of a plane that does not exist or has not been launched yet.
KERNEL keep_min_cost(GLOBAL const float4 *variances, GLOBAL const float4 *guide, GLOBAL float4 *best,
                     GLOBAL float *previous, int radius, float disparity, int is_first_plane) {
    int x = (int)(thread_index() % WIDTH), y = (int)(thread_index() / WIDTH);
    if (y >= HEIGHT) return;
    int index = y * WIDTH + x;
    float4 color = guide[index];
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f}, weights[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int j = max(y - radius, 0); j <= min(y + radius, HEIGHT - 1); j++) {
        for (int i = max(x - radius, 0); i <= min(x + radius, WIDTH - 1); i++) {
            float4 other = guide[j * WIDTH + i], variance = variances[j * WIDTH + i];
            float values[4] = {variance.x, variance.y, variance.z, variance.w};
            float weight =
                exp(-LIKENESS * (fabs(other.x - color.x) + fabs(other.y - color.y) + fabs(other.z - color.z)));
            for (int k = 0; k < 4; k++) {
                if (values[k] < FLT_MAX) {
                    sums[k] += weight * values[k];
                    weights[k] += weight;
                }
            }
        }
    }
    float cost = FLT_MAX;
    for (int k = 0; k < 4; k++) {
        if (weights[k] > 0.0f) cost = fmin(cost, sums[k] / weights[k]);
    }
    float4 best_so_far = best[index];
    if (is_first_plane || cost < best_so_far.x) {
        best[index] = make_float4(cost, disparity, is_first_plane ? FLT_MAX : previous[index], FLT_MAX);
    } else if (best_so_far.w == FLT_MAX && previous[index] == best_so_far.x) {  // the plane before is the best one
        best[index] = make_float4(best_so_far.x, best_so_far.y, best_so_far.z, cost);
    }
    previous[index] = cost;
}

// Refines keep_min_cost's disparities by a parabola through three costs, `step` apart in disparity, and writes
// (confidence times disparity, confidence). The confidence is large where the cost has a sharp minimum near zero. It is
// small without texture, where the cost has no minimum, and at occlusions, where the minimum is high.
KERNEL weigh_disparity(GLOBAL const float4 *best, GLOBAL float2 *weighted, float step) {
    int index = (int)thread_index();
    if (index >= WIDTH * HEIGHT) return;
    float4 least = best[index];
    float disparity = least.y, curve = least.z - 2.0f * least.x + least.w, confidence = MIN_CONFIDENCE;
    if (least.z < FLT_MAX && least.w < FLT_MAX && curve > 0.0f) {
        disparity += step * clamp(0.5f * (least.z - least.w) / curve, -0.5f, 0.5f);
        confidence += curve / (least.x + COST_NOISE);
    }
    weighted[index] = make_float2(confidence * disparity, confidence);
}

// The recursive edge-aware filter of E. Gastal and M. Oliveira, "Domain Transform for Edge-Aware Image and Video
// Processing", 2011, along `count` pixels from `start` on, `stride` apart, in place: `decay` is the factor of one pixel
// without an edge in the guide, and a step of the guide's color counts as STEP_PIXELS pixels a unit.
DEVICE void smooth_line(GLOBAL float2 *weighted, GLOBAL const float4 *guide, int start, int stride, int count,
                        float decay) {
    for (int direction = 1; direction >= -1; direction -= 2) {
        int index = direction > 0 ? start : start + (count - 1) * stride;
        float2 sum = weighted[index];  // of confidence times disparity, and of confidences
        float4 color = guide[index];
        for (int k = 1; k < count; k++) {
            index += direction * stride;
            float4 next = guide[index];
            float edge = fabs(next.x - color.x) + fabs(next.y - color.y) + fabs(next.z - color.z);
            float weight = pow(decay, 1.0f + STEP_PIXELS * edge);
            float2 value = weighted[index];
            sum = make_float2(value.x + weight * (sum.x - value.x), value.y + weight * (sum.y - value.y));
            weighted[index] = sum;
            color = next;
        }
    }
}

KERNEL smooth_rows(GLOBAL float2 *weighted, GLOBAL const float4 *guide, float decay) {
    int y = (int)thread_index();
    if (y < HEIGHT) smooth_line(weighted, guide, y * WIDTH, 1, WIDTH, decay);
}

KERNEL smooth_columns(GLOBAL float2 *weighted, GLOBAL const float4 *guide, float decay) {
    int x = (int)thread_index();
    if (x < WIDTH) smooth_line(weighted, guide, x, WIDTH, HEIGHT, decay);
}

// Shows disparities by a table of COLOR_COUNT colors, interpolated: disparity_min is its first, disparity_max its last.
KERNEL shade_disparity(GLOBAL const float2 *weighted, GLOBAL const float4 *colors, GLOBAL float4 *image,
                       float disparity_min, float disparity_max) {
    int index = (int)thread_index();
    if (index >= WIDTH * HEIGHT) return;
    float2 sum = weighted[index];
    float position = clamp((sum.x / sum.y - disparity_min) / (disparity_max - disparity_min), 0.0f, 1.0f);
    float entry = position * (float)(COLOR_COUNT - 1);
    int first = min((int)entry, COLOR_COUNT - 2);
    float fraction = entry - (float)first;
    image[index] = colors[first] * (1.0f - fraction) + colors[first + 1] * fraction;
}

DEVICE float pixel_luminance(float4 c) { return luminance(c.x, c.y, c.z); }

// Keeps each pixel's color of the slice where its local contrast is greatest: the sum of squared deviations of
// luminance in a window of `radius` pixels. Launched once for each slice, a picture refocused at one disparity.
KERNEL keep_sharpest(GLOBAL const float4 *slice, GLOBAL float4 *best, GLOBAL float *sharpest, int radius,
                     int is_first_plane) {
    int x = (int)(thread_index() % WIDTH), y = (int)(thread_index() / WIDTH);
    if (y >= HEIGHT) return;
    float sum = 0.0f, squares = 0.0f, center = pixel_luminance(slice[y * WIDTH + x]);
    int seen = 0;
    for (int j = max(y - radius, 0); j <= min(y + radius, HEIGHT - 1); j++) {
        for (int i = max(x - radius, 0); i <= min(x + radius, WIDTH - 1); i++) {
            float value = pixel_luminance(slice[j * WIDTH + i]) - center;
            sum += value;
            squares += value * value;
            seen++;
        }
    }
    float sharpness = squares - sum * sum / (float)seen;
    int index = y * WIDTH + x;
    if (is_first_plane || sharpness > sharpest[index]) {
        sharpest[index] = sharpness;
        best[index] = slice[index];
    }
}

// Draws a picture of the views' size into a rectangle of a frame, which is `frame_width` pixels wide. Pixel (x, y) of
// the rectangle shows the square of the picture whose corner is (from_x + x step, from_y + y step) and whose side is
// `step`, averaged over samples x samples points. The rectangle is clipped to the frame: width x height of its pixels
// are visible, the first of them is (skip_x, skip_y), and it is drawn at (left, top) of the frame. Pixels that show no
// point of the picture keep their color.
KERNEL blit(GLOBAL const float4 *picture, GLOBAL float4 *frame, int frame_width, int left, int top, int skip_x,
            int skip_y, int width, int height, float from_x, float from_y, float step, int samples) {
    int x = (int)thread_index() % width, y = (int)thread_index() / width;
    if (y >= height) return;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    int seen = 0;
    for (int j = 0; j < samples; j++) {
        for (int i = 0; i < samples; i++) {
            float px = from_x + ((float)(skip_x + x) + ((float)i + 0.5f) / (float)samples) * step - 0.5f;
            float py = from_y + ((float)(skip_y + y) + ((float)j + 0.5f) / (float)samples) * step - 0.5f;
            if (px >= -0.5f && px < (float)WIDTH - 0.5f && py >= -0.5f && py < (float)HEIGHT - 0.5f) {
                px = clamp(px, 0.0f, (float)(WIDTH - 1));
                py = clamp(py, 0.0f, (float)(HEIGHT - 1));
                int ix = (int)px, iy = (int)py;
                float fx = px - (float)ix, fy = py - (float)iy;
                int right = min(ix + 1, WIDTH - 1), below = min(iy + 1, HEIGHT - 1);
                sum += (picture[iy * WIDTH + ix] * (1.0f - fx) + picture[iy * WIDTH + right] * fx) * (1.0f - fy) +
                       (picture[below * WIDTH + ix] * (1.0f - fx) + picture[below * WIDTH + right] * fx) * fy;
                seen++;
            }
        }
    }
    if (seen) frame[(top + y) * frame_width + left + x] = sum * (1.0f / (float)seen);
}

KERNEL clear_black(GLOBAL float4 *frame, int count) {
    int index = (int)thread_index();
    if (index < count) frame[index] = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
}

// Copies `count` 16-byte words of staged views, which follow GUARD_BYTES bytes, to byte `offset` of all views.
KERNEL copy_views(GLOBAL const uint4 *staged, GLOBAL uint4 *views, ulong offset, int count) {
    int index = (int)thread_index();
    if (index < count) views[offset / 16 + (ulong)index] = staged[GUARD_BYTES / 16 + index];
}
