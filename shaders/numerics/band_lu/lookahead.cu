// Band LU: the look-ahead step (HPL, MAGMA) applies a panel to the block column of the next panel. It is on the
// critical path of the factorization, so it has two low-latency kernels instead of laswp, trsm_rows and gemm
// of trailing_update.cu. With panel_cluster.cu they raised the rate of the resident factorization with kl = ku = 4,096
// on an H200 from 9,442 to 15,859 GFLOP/s (h200_band_lu.jsonl). For narrow bands they also update the remaining block
// columns, `devices` apart, in place of cuBLAS. double only, GPUs with float64 tensor cores, S a multiple of 64 up to
// 256, groups of 256 threads. Letters and compile-time inputs: band_lu.h. Launched by device_columns.py.
#include "numerics/band_lu/band_lu.h"

#define ROWS_PER_LANE (S / 32)
#define STRIP 16  // columns of L in local memory at a time
#define GROUP_WARPS (GROUP_SIZE / 32)
#define STRIP_LOADS (S * STRIP / GROUP_SIZE)  // elements of a strip that a thread loads

// Loads a thread's elements of STRIP columns and S rows of a panel into its registers `strip`.
DEVICE void load_strip(GLOBAL const REAL *from, int panel_ld, int thread, REAL *strip) {
    UNROLL for (int e = 0; e < STRIP_LOADS; e++) {
        int k = thread + e * GROUP_SIZE;
        strip[e] = from[(ulong)(k / S) * (ulong)panel_ld + (ulong)(k % S)];
    }
}

// The rows of U in block columns first_block, first_block + devices, ... (as many as the launch has groups for):
// interchanges rows by the pivots of panel i and solves with the unit lower triangle of the panel. One warp per column;
// a lane holds every 32nd row: kept[q] is row q * 32 + lane of the S rows of U, moved[q] the element that the panel's
// interchanges move to pivot row ipiv[q * 32 + lane]. `pivots_at`: index of the panel's first pivot.
KERNEL lookahead_swap_trsm(GLOBAL REAL *matrix, GLOBAL const int *pivots, const int pivots_at, PANEL_PARAMETERS,
                           const int i, const int first_block, STORAGE_PARAMETERS) {
    LOCAL_ARRAY(int, ipiv, S);
    LOCAL_ARRAY(int, from, 2 * S);
    LOCAL_ARRAY(REAL, lower, S * STRIP);
    int thread = (int)local_index(), lane = thread % 32, c = (int)group_index() * GROUP_WARPS + thread / 32,
        t = first_block + c / S * devices;
    GLOBAL REAL *column_values = matrix + block_offset(i, t, u, ld, devices, slots) + (ulong)(c % S) * (ulong)ld;
    REAL strip[STRIP_LOADS], kept[ROWS_PER_LANE], moved[ROWS_PER_LANE];
    load_strip(panel + at, panel_ld, thread, strip);
    for (int k = thread; k < S; k += GROUP_SIZE) ipiv[k] = pivots[pivots_at + k] - 1;
    BARRIER();
    // from[k]: the row whose element the interchanges move to row k; from[S + k]: likewise to pivot row ipiv[k].
    for (int k = thread; k < 2 * S; k += GROUP_SIZE) {
        int row = k < S ? k : ipiv[k - S];
        for (int j = S - 1; j >= 0; j--) row = row_before(row, j, ipiv[j]);
        from[k] = row;
    }
    BARRIER();
    UNROLL for (int q = 0; q < ROWS_PER_LANE; q++) {
        kept[q] = column_values[from[q * 32 + lane]];
        moved[q] = column_values[from[S + q * 32 + lane]];
    }
    WARP_BARRIER();
    UNROLL for (int q = 0; q < ROWS_PER_LANE; q++) {
        int to = ipiv[q * 32 + lane];
        if (to >= S) column_values[to] = moved[q];
    }
    // Forward substitution, STRIP columns of L at a time: lane `row` holds the row that is solved in kept[first / 32],
    // and all rows below subtract its product.
    UNROLL for (int first = 0; first < S; first += STRIP) {
        BARRIER();
        UNROLL for (int e = 0; e < STRIP_LOADS; e++) lower[thread + e * GROUP_SIZE] = strip[e];
        BARRIER();
        if (first + STRIP < S)
            load_strip(panel + at + (ulong)(first + STRIP) * (ulong)panel_ld, panel_ld, thread, strip);
        NO_UNROLL for (int start = 0; start < STRIP; start += 4) {
            UNROLL for (int k = start; k < start + 4; k++) {
                int row = first % 32 + k;
                REAL solved = warp_shuffle(kept[first / 32], row);
                LOCAL const REAL *factor = lower + k * S + lane;
                if (lane > row) kept[first / 32] -= factor[first / 32 * 32] * solved;
                UNROLL for (int q = first / 32 + 1; q < ROWS_PER_LANE; q++) kept[q] -= factor[q * 32] * solved;
            }
        }
    }
    UNROLL for (int q = 0; q < ROWS_PER_LANE; q++) column_values[q * 32 + lane] = kept[q];
}

#define TILE_SIDE 64
#define DEPTH 32  // columns of L and rows of U in local memory at a time
#define LEFT_PITCH (TILE_SIDE + 4)  // padded: a warp reads four columns of four rows from different banks
#define RIGHT_PITCH (DEPTH + 4)
#define TILE_LOADS (TILE_SIDE * DEPTH / GROUP_SIZE)

// The update A_jt -= L_ji U_it of the same block columns by tensor cores: 64 x 64 elements per group, 16 x 32 per warp,
// in 2 x 4 products of 8 x 8 each: `row` and `side` are the first row and column of a thread's products in the tile,
// and `across` its column of a left factor (mma.m8n8k4, PTX manual). While DEPTH columns of L and rows of U multiply,
// the next ones are loaded into registers: a software pipeline, whose first round (depth = -DEPTH) only loads.
KERNEL lookahead_gemm(GLOBAL REAL *matrix, PANEL_PARAMETERS, const int rows, const int i, const int first_block,
                      STORAGE_PARAMETERS) {
    LOCAL_ARRAY(REAL, left, DEPTH * LEFT_PITCH);
    LOCAL_ARRAY(REAL, right, TILE_SIDE * RIGHT_PITCH);
    int thread = (int)local_index(), lane = thread % 32, warp = thread / 32, below = rows - S;
    int tiles = (S / TILE_SIDE) * ((below + TILE_SIDE - 1) / TILE_SIDE), tile = (int)group_index() % tiles,
        t = first_block + (int)group_index() / tiles * devices;
    int first_row = tile / (S / TILE_SIDE) * TILE_SIDE, column = tile % (S / TILE_SIDE) * TILE_SIDE;
    GLOBAL REAL *upper = matrix + block_offset(i, t, u, ld, devices, slots) + (ulong)column * (ulong)ld;
    GLOBAL const REAL *lower = panel + at + (ulong)(S + first_row);
    int row = warp % 4 * 16 + lane / 4, side = warp / 4 * 32, across = lane % 4;
    GLOBAL REAL *column_values = upper + (ulong)(side + across * 2) * (ulong)ld + (ulong)(S + first_row + row);
    REAL sum[2][4][2], next_left[TILE_LOADS], next_right[TILE_LOADS];
    UNROLL for (int e = 0; e < 16; e++) {
        int m = e / 8, n = e / 2 % 4;
        sum[m][n][e % 2] =
            first_row + row + m * 8 < below ? column_values[(ulong)(n * 8 + e % 2) * (ulong)ld + (ulong)(m * 8)] : 0;
    }
    NO_UNROLL for (int depth = -DEPTH; depth < S; depth += DEPTH) {
        if (depth >= 0) {
            BARRIER();
            UNROLL for (int e = 0; e < TILE_LOADS; e++) {
                int k = thread + e * GROUP_SIZE;
                left[k / TILE_SIDE * LEFT_PITCH + k % TILE_SIDE] = -next_left[e];
                right[k / DEPTH * RIGHT_PITCH + k % DEPTH] = next_right[e];
            }
            BARRIER();
        }
        if (depth + DEPTH < S) {
            UNROLL for (int e = 0; e < TILE_LOADS; e++) {
                int k = thread + e * GROUP_SIZE, r = k % TILE_SIDE;
                ulong d = (ulong)(depth + DEPTH);
                next_left[e] =
                    first_row + r < below ? lower[(d + (ulong)(k / TILE_SIDE)) * (ulong)panel_ld + (ulong)r] : 0;
                next_right[e] = upper[(ulong)(k / DEPTH) * (ulong)ld + d + (ulong)(k % DEPTH)];
            }
        }
        if (depth < 0) continue;
        UNROLL for (int k = 0; k < DEPTH; k += 4) {
            REAL a[2], b[4];
            UNROLL for (int m = 0; m < 2; m++) a[m] = left[(k + across) * LEFT_PITCH + row + m * 8];
            UNROLL for (int n = 0; n < 4; n++) b[n] = right[(side + n * 8 + lane / 4) * RIGHT_PITCH + k + across];
            UNROLL for (int e = 0; e < 8; e++) mma_m8n8k4_f64(sum[e / 4][e % 4], a[e / 4], b[e % 4]);
        }
    }
    UNROLL for (int e = 0; e < 16; e++) {
        int m = e / 8, n = e / 2 % 4;
        if (first_row + row + m * 8 < below)
            column_values[(ulong)(n * 8 + e % 2) * (ulong)ld + (ulong)(m * 8)] = sum[m][n][e % 2];
    }
}
