// Density estimation of a flame on CPUs: filter_density of postprocess.cu with the same sums in the same order.
#include "common/simd.h"

#define TILE 8     // as in postprocess.cu
#define WIDE 64    // buckets of a block of a work-item: columns, a multiple of LANES
#define TALL 16    // rows
#define PADDING 16 // zeros at each end of a row of a kernel

#if LANES > 1
// Each work-item sums up a block of WIDE x TALL buckets, columns left to right - 1 and rows top to bottom - 1: every
// bucket (u, v) within reach of the block adds its color, times its filter's row of weights, to the rows of the block,
// LANES columns at a time. In:
//     scaled        (rows, columns) colors of the buckets
//     kernel_index  (rows, columns): a bucket's filter, -1 if it is empty
//     radii         of the filters, at most side - 1; tile_radii: the largest radius in each tile of TILE x TILE buckets
//     kernels       (filters, side, pitch): of each filter, which is symmetric, the rows from its middle on, each with
//                   both halves and PADDING zeros at its ends, so that vectors may begin left of it and end right of it
KERNEL filter_density_by_blocks(GLOBAL const float4 *scaled, GLOBAL float4 *filtered, GLOBAL const int *kernel_index,
                                GLOBAL const int *radii, GLOBAL const int *tile_radii, GLOBAL const float *kernels,
                                int columns, int rows, int tile_columns, int side, int blocks_across) {
    int left = (int)thread_index() % blocks_across * WIDE, top = (int)thread_index() / blocks_across * TALL;
    if (top >= rows) return;
    int right = min(left + WIDE, columns), bottom = min(top + TALL, rows), reach = side - 1, plane = TALL * WIDE;
    int pitch = 2 * reach + 1 + 2 * PADDING;
    float sums[4 * TALL * WIDE];  // of the block: a plane each of red, green, blue and alpha
    for (int n = 0; n < 4 * plane; n++) sums[n] = 0.0f;
    for (int v = max(top - reach, 0); v < min(bottom + reach, rows); v++) {
        int down = max(max(top - v, v - bottom + 1), 0);  // rows from v to the block
        // tiles t of the row of tiles, without those whose filters do not reach the block
        for (int t = max(left - reach, 0) / TILE; t <= min(right + reach, columns) / TILE && t < tile_columns; t++) {
            int apart = max(max(left - (t * TILE + TILE - 1), t * TILE - right + 1), 0);  // columns from tile to block
            if (tile_radii[(v / TILE) * tile_columns + t] < max(down, apart)) continue;
            for (int u = t * TILE; u < min(t * TILE + TILE, columns); u++) {
                size_t from = (size_t)v * (size_t)columns + (size_t)u;
                int k = kernel_index[from], r = k < 0 ? -1 : radii[max(k, 0)];
                if (r < max(down, max(left - u, u - right + 1))) continue;
                float4 light = scaled[from];
                // columns of the block, from a multiple of LANES on
                int low = (max(u - r, left) - left) / LANES * LANES, high = min(u + r, right - 1) - left;
                for (int row = max(v - r, top); row <= min(v + r, bottom - 1); row++) {
                    size_t away = (size_t)(row > v ? row - v : v - row) + (size_t)k * (size_t)side;
                    // weights[n]: of the bucket in column left + n; the middle of a filter is at PADDING + reach
                    GLOBAL const float *weights = kernels + away * (size_t)pitch + (PADDING + reach + left - u);
                    for (int n = low; n <= high; n += LANES) {
                        real weight = LOAD_LANES(weights + n);
                        float *at = sums + (row - top) * WIDE + n;
                        STORE_LANES(LOAD_LANES(at) + light.x * weight, at);
                        STORE_LANES(LOAD_LANES(at + plane) + light.y * weight, at + plane);
                        STORE_LANES(LOAD_LANES(at + 2 * plane) + light.z * weight, at + 2 * plane);
                        STORE_LANES(LOAD_LANES(at + 3 * plane) + light.w * weight, at + 3 * plane);
                    }
                }
            }
        }
    }
    for (int row = top; row < bottom; row++)
        for (int column = left; column < right; column++) {
            int n = (row - top) * WIDE + column - left;
            filtered[(size_t)row * (size_t)columns + (size_t)column] =
                make_float4(sums[n], sums[n + plane], sums[n + 2 * plane], sums[n + 3 * plane]);
        }
}
#endif
