// Band LU: the trailing update, which applies a factored panel to the block columns on its right: row interchanges
// (laswp), the rows of U (trsm_rows), and A_jt -= L_ji U_it (gemm_tiles; cuBLAS replaces it where it is installed).
// Launched by device_columns.py. Letters and compile-time inputs: band_lu.h. In all kernels `active` is false for
// groups without a block column, which still reach the barriers.
#include "numerics/band_lu/band_lu.h"

// Interchanges rows by the pivots of panel i in `count` block columns from `first` on, `devices` apart. At most 2 S
// rows of a column change, the first S and the pivot rows: all of them are read before any is written. from[k] is the
// row whose elements row k (k < S) or pivot row k - S receives. One work-group per GROUP_COLUMNS columns.
KERNEL laswp(GLOBAL REAL *matrix, GLOBAL const int *pivots, const int pivots_at, const int i, const int first,
             const int count, STORAGE_PARAMETERS) {
    LOCAL_ARRAY(int, ipiv, S);
    LOCAL_ARRAY(int, from, 2 * S);
    LOCAL_ARRAY(REAL, moved, 2 * S * GROUP_COLUMNS);
    int thread = (int)local_index(), groups = S / GROUP_COLUMNS, block = (int)group_index() / groups;
    int t = first + block * devices, c = ((int)group_index() % groups) * GROUP_COLUMNS;
    bool active = block < count;
    GLOBAL REAL *columns = matrix + (active ? block_offset(i, t, u, ld, devices, slots) + (ulong)c * (ulong)ld : 0);
    for (int k = thread; k < S; k += GROUP_SIZE) ipiv[k] = pivots[pivots_at + k] - 1;
    BARRIER();
    for (int k = thread; k < 2 * S; k += GROUP_SIZE) {
        int row = k < S ? k : ipiv[k - S];
        for (int j = S - 1; j >= 0; j--) row = row_before(row, j, ipiv[j]);
        from[k] = row;
    }
    BARRIER();
    for (int k = thread; active && k < 2 * S * GROUP_COLUMNS; k += GROUP_SIZE)
        moved[k] = columns[(ulong)(k / (2 * S)) * (ulong)ld + (ulong)from[k % (2 * S)]];
    BARRIER();
    for (int k = thread; active && k < 2 * S * GROUP_COLUMNS; k += GROUP_SIZE) {
        int to = k % (2 * S);
        to = to < S ? to : ipiv[to - S];
        columns[(ulong)(k / (2 * S)) * (ulong)ld + (ulong)to] = moved[k];
    }
}

// Computes the rows of U in place: solves with the unit lower triangle of the panel. One work-group per GROUP_COLUMNS
// columns; TILE columns of L at a time are loaded into local memory.
KERNEL trsm_rows(GLOBAL REAL *matrix, PANEL_PARAMETERS, const int i, const int first, const int count,
                 STORAGE_PARAMETERS) {
    LOCAL_ARRAY(REAL, x, S * GROUP_COLUMNS);
    LOCAL_ARRAY(REAL, lower, S * TILE);
    int thread = (int)local_index(), groups = S / GROUP_COLUMNS, block = (int)group_index() / groups;
    int t = first + block * devices, c = ((int)group_index() % groups) * GROUP_COLUMNS;
    bool active = block < count;
    GLOBAL REAL *columns = matrix + (active ? block_offset(i, t, u, ld, devices, slots) + (ulong)c * (ulong)ld : 0);
    for (int k = thread; active && k < S * GROUP_COLUMNS; k += GROUP_SIZE)
        x[k] = columns[(ulong)(k / S) * (ulong)ld + (ulong)(k % S)];
#if HAS_SHUFFLE && TILE % 32 == 0 && GROUP_SIZE >= 32 * GROUP_COLUMNS  // one warp per column, one lane per 32nd row
#define ROWS_PER_LANE (S / 32)
    int lane = thread % 32, column = thread / 32;
    bool has_column = column < GROUP_COLUMNS;
    REAL values[ROWS_PER_LANE];
    BARRIER();
    UNROLL for (int q = 0; q < ROWS_PER_LANE; q++) values[q] = has_column ? x[column * S + q * 32 + lane] : 0;
    UNROLL for (int n = 0; n < ROWS_PER_LANE; n++) {  // solves the rows 32 n to 32 n + 31
        if (n * 32 % TILE == 0) {
            BARRIER();
            for (int k = thread; k < S * TILE; k += GROUP_SIZE)
                lower[k] = panel[at + (ulong)(n * 32 + k / S) * (ulong)panel_ld + (ulong)(k % S)];
            BARRIER();
        }
        for (int k = 0; k < 32; k++) {
            REAL solved = warp_shuffle(values[n], k);
            LOCAL const REAL *factor = lower + (n * 32 % TILE + k) * S + lane;
            if (lane > k) values[n] -= factor[n * 32] * solved;
            UNROLL for (int q = n + 1; q < ROWS_PER_LANE; q++) values[q] -= factor[q * 32] * solved;
        }
    }
    UNROLL for (int q = 0; q < ROWS_PER_LANE; q++) if (has_column) x[column * S + q * 32 + lane] = values[q];
#else
    for (int start = 0; start < S; start += TILE) {
        BARRIER();
        for (int k = thread; k < S * TILE; k += GROUP_SIZE)
            lower[k] = panel[at + (ulong)(start + k / S) * (ulong)panel_ld + (ulong)(k % S)];
        for (int k = start; k < start + TILE; k++) {
            BARRIER();
            for (int e = thread; e < S * GROUP_COLUMNS; e += GROUP_SIZE) {
                int row = e % S;
                if (row > k) x[e] -= lower[(k - start) * S + row] * x[e - row + k];
            }
        }
    }
#endif
    BARRIER();
    for (int k = thread; active && k < S * GROUP_COLUMNS; k += GROUP_SIZE)
        columns[(ulong)(k / S) * (ulong)ld + (ulong)(k % S)] = x[k];
}

// A_jt -= L_ji U_it on GPUs without cuBLAS: 64 x TILE_COLUMNS elements of A per work-group, 4 x 4 per thread
// (GROUP_SIZE = 4 TILE_COLUMNS), 8 columns of L at a time in local memory. A thread has the rows y, y + 16, y + 32 and
// y + 48 of the tile, and the columns 4 x to 4 x + 3. A panel has `across` tiles of rows below its diagonal block.
#define TILE_ROWS 64
#define DEPTH 8
KERNEL gemm_tiles(GLOBAL REAL *matrix, PANEL_PARAMETERS, const int rows, const int i, const int first, const int count,
                  STORAGE_PARAMETERS) {
    LOCAL_ARRAY(REAL, left, TILE_ROWS * DEPTH);
    LOCAL_ARRAY(REAL, right, DEPTH * TILE_COLUMNS);
    int thread = (int)local_index(), below = rows - S, across = (below + TILE_ROWS - 1) / TILE_ROWS;
    int tiles = S / TILE_COLUMNS, group = (int)group_index(), row = (group % across) * TILE_ROWS;
    int block = group / across / tiles, column = (group / across % tiles) * TILE_COLUMNS, t = first + block * devices;
    bool active = block < count;
    ulong top = active ? block_offset(i, t, u, ld, devices, slots) + (ulong)column * (ulong)ld : 0;
    int y = thread % 16, x = thread / 16;
    REAL sum[4][4];
    UNROLL for (int k = 0; k < 16; k++) sum[k / 4][k % 4] = 0;
    for (int depth = 0; depth < S; depth += DEPTH) {
        BARRIER();
        for (int k = thread; k < TILE_ROWS * DEPTH; k += GROUP_SIZE) {
            int r = row + k % TILE_ROWS;
            left[k] = r < below ? panel[at + (ulong)(depth + k / TILE_ROWS) * (ulong)panel_ld + (ulong)(S + r)] : 0;
        }
        for (int k = thread; k < DEPTH * TILE_COLUMNS; k += GROUP_SIZE)
            right[k] = active ? matrix[top + (ulong)(k / DEPTH) * (ulong)ld + (ulong)(depth + k % DEPTH)] : 0;
        BARRIER();
        UNROLL for (int d = 0; d < DEPTH; d++) {
            UNROLL for (int k = 0; k < 16; k++) sum[k / 4][k % 4] +=
                left[d * TILE_ROWS + y + 16 * (k / 4)] * right[(x * 4 + k % 4) * DEPTH + d];
        }
    }
    if (!active) return;
    for (int k = 0; k < 16; k++) {
        int r = row + y + 16 * (k / 4);
        if (r < below) matrix[top + (ulong)(x * 4 + k % 4) * (ulong)ld + (ulong)(S + r)] -= sum[k / 4][k % 4];
    }
}
