// Band LU: factors a panel by sub-panels of INNER_BLOCK columns (inner blocking, as in PLASMA); one group holds the
// rows of a sub-panel in registers. For devices without thread block clusters, others use panel_cluster.cu. It stays a
// separate text: it synchronizes by launches and barriers only, so it also runs on CPUs. Launched by device_columns.py:
// advance_panel once for each panel, then factor_subpanel and apply_subpanel for each sub-panel.
//
// Compile-time inputs and letters are as in band_lu.h, above all: S columns of a panel; p block columns of the
// matrix; l and u blocks below and above a diagonal block; ld the leading dimension of `matrix`; i the panel. Rows are
// counted from the top of the panel, and `first` is the sub-panel's first column and its first row.
#include "numerics/band_lu/band_lu.h"

// The k-th row of a thread in factor_subpanel, from the diagonal on, and in apply_subpanel, below the diagonal block.
#define ROW_OF(k) (first + thread + (k) * GROUP_SIZE)
#define APPLY_ROW_OF(k) (first + INNER_BLOCK + thread + (k) * GROUP_SIZE)
// False if no thread's k-th row is one of the INNER_BLOCK diagonal rows, so that the compiler drops the test.
#define MAY_BE_DIAGONAL(k) ((k) <= INNER_BLOCK / GROUP_SIZE)
#define FOR_APPLY_ROWS(k) UNROLL for (int k = 0; k < APPLY_ROWS; k++)

// Adds `devices` to the panel's index: block-cyclic, a device factors every devices-th panel. The index is in device
// memory, so that one recorded graph of launches factors every panel; the host sets it before the first one.
KERNEL advance_panel(GLOBAL int *panel_index, const int devices) {
    if (thread_index() == 0) panel_index[0] += devices;
}

// Factors columns first to first + INNER_BLOCK - 1 of a panel as P L U by one group. Each thread holds ROWS rows in
// registers; the pivot row is exchanged through local memory. Of equal magnitudes the uppermost row is the pivot, as in
// LAPACK. In step j, `size` and `where` are the largest magnitude and its row, 0xffffffff if no row is left: first of a
// thread's rows, then of a warp's, then of all. `column` is the panel's first column in the matrix.
KERNEL factor_subpanel(GLOBAL REAL *matrix, GLOBAL const int *panel_index, const int first, GLOBAL int *pivots,
                       GLOBAL int *info, const int p, const int l, STORAGE_PARAMETERS) {
    LOCAL_ARRAY(REAL, best_size, 2 * GROUP_SIZE);
    LOCAL_ARRAY(uint, best_row, 2 * GROUP_SIZE);
    LOCAL_ARRAY(REAL, pivot_row_values, 2 * INNER_BLOCK);
    LOCAL_ARRAY(REAL, diagonal_row_values, 2 * INNER_BLOCK);
    int thread = (int)local_index(), i = panel_index[0], rows = min(l + 1, p - i) * S, column = i * S;
    GLOBAL REAL *corner = matrix + block_offset(i, i, u, ld, devices, slots) + (ulong)first * (ulong)ld;
    REAL value[ROWS][INNER_BLOCK];
    FOR_ROWS(k) {
        int row = ROW_OF(k);
        FOR_COLUMNS(j) value[k][j] = row < rows ? corner[(ulong)j * (ulong)ld + (ulong)row] : 0;
    }
    // The current column is always value[][0]: after its elimination the other columns shift left by one and it moves
    // to the end. So all register indices are constants although the loop is not unrolled, and the code fits the
    // instruction cache.
    NO_UNROLL for (int j = 0; j < INNER_BLOCK; j++) {
        REAL size;
        uint where;
        IAMAX_THREAD(ROW_OF, first + j, rows, value, size, where)
        int buffer_start = (j & 1) * GROUP_SIZE;  // double buffer: one barrier separates writers from readers
        iamax_group(&size, &where, best_size + buffer_start, best_row + buffer_start);
        int pivot_row = where < (uint)rows ? (int)where : first + j;  // no row: no interchange
        buffer_start = (j & 1) * INNER_BLOCK;
        FOR_ROWS(k) {
            int row = ROW_OF(k);
            if (row == pivot_row) {
                FOR_COLUMNS(c) pivot_row_values[buffer_start + c] = value[k][c];
            }
            if (MAY_BE_DIAGONAL(k) && row == first + j) {
                FOR_COLUMNS(c) diagonal_row_values[buffer_start + c] = value[k][c];
            }
        }
        BARRIER();
        REAL pivot = pivot_row_values[buffer_start], factor[ROWS];
        REAL scale = pivot == 0 ? (REAL)0 : (REAL)1 / pivot;
        bool tiny = fabs(pivot) < SFMIN;  // 1 / pivot would overflow: divide, as LAPACK does
        FOR_ROWS(k) {
            int row = ROW_OF(k);
            if (row == pivot_row && pivot_row != first + j) {
                FOR_COLUMNS(c) value[k][c] = diagonal_row_values[buffer_start + c];
            }
            if (MAY_BE_DIAGONAL(k) && row == first + j) {
                FOR_COLUMNS(c) value[k][c] = pivot_row_values[buffer_start + c];
            }
            factor[k] = row > first + j ? value[k][0] * scale : 0;
        }
        if (tiny && pivot != 0) {
            FOR_ROWS(k)
            factor[k] = ROW_OF(k) > first + j ? value[k][0] / pivot : 0;
        }
        FOR_ROWS(k) {
            int row = ROW_OF(k);
            REAL done = row > first + j && pivot != 0 ? factor[k] : value[k][0];  // column j of L and U
            UNROLL for (int c = 1; c < INNER_BLOCK; c++) value[k][c - 1] =
                c < INNER_BLOCK - j ? value[k][c] - factor[k] * pivot_row_values[buffer_start + c] : value[k][c];
            value[k][INNER_BLOCK - 1] = done;
        }
        if (thread == 0) {
            pivots[column + first + j] = pivot_row + 1;
            if (pivot == 0 && info[0] == 0) info[0] = column + first + j + 1;
        }
    }
    FOR_ROWS(k) {
        int row = ROW_OF(k);
        FOR_COLUMNS(j)
        if (row < rows) corner[(ulong)j * (ulong)ld + (ulong)row] = value[k][j];
    }
}

// Applies a factored sub-panel to the other columns of its panel, one work-group per column: row interchanges in all of
// them, elimination in the columns on the right. All rows are read before any is written.
//
// The interchanges concern at most 2 INNER_BLOCK rows of the column: entries t < INNER_BLOCK of row_to and moved are
// the sub-panel's diagonal rows, first + t; the others are the pivot rows, ipiv[t - INNER_BLOCK]. moved[t] is the
// element that ends in row row_to[t]. The diagonal rows are then solved in `moved` itself: the column's elements of U.
KERNEL apply_subpanel(GLOBAL REAL *matrix, GLOBAL const int *panel_index, const int first, GLOBAL const int *pivots,
                      const int p, const int l, STORAGE_PARAMETERS) {
    LOCAL_ARRAY(int, ipiv, INNER_BLOCK);
    LOCAL_ARRAY(int, row_to, 2 * INNER_BLOCK);
    LOCAL_ARRAY(REAL, moved, 2 * INNER_BLOCK);
    LOCAL_ARRAY(REAL, lower, INNER_BLOCK * INNER_BLOCK);
    int thread = (int)local_index(), c = (int)group_index(), i = panel_index[0], rows = min(l + 1, p - i) * S;
    if (c >= first) c += INNER_BLOCK;  // skips the sub-panel's columns
    GLOBAL REAL *panel = matrix + block_offset(i, i, u, ld, devices, slots);
    GLOBAL REAL *column_values = panel + (ulong)c * (ulong)ld;
    GLOBAL const REAL *subpanel = panel + (ulong)first * (ulong)ld;
    REAL values[APPLY_ROWS];
    FOR_APPLY_ROWS(k) {
        int row = APPLY_ROW_OF(k);
        values[k] = row < rows ? column_values[row] : 0;
    }
    for (int k = thread; k < INNER_BLOCK; k += GROUP_SIZE) ipiv[k] = pivots[i * S + first + k] - 1;
    for (int k = thread; k < INNER_BLOCK * INNER_BLOCK; k += GROUP_SIZE)
        lower[k] = subpanel[(ulong)(k / INNER_BLOCK) * (ulong)ld + (ulong)(first + k % INNER_BLOCK)];
    BARRIER();
    if (thread < 2 * INNER_BLOCK) {
        int to = thread < INNER_BLOCK ? first + thread : ipiv[thread - INNER_BLOCK], from = to;
        NO_UNROLL for (int j = INNER_BLOCK - 1; j >= 0; j--) from = row_before(from, first + j, ipiv[j]);
        row_to[thread] = to;
        moved[thread] = column_values[from];
    }
    BARRIER();
    NO_UNROLL for (int t = INNER_BLOCK; t < 2 * INNER_BLOCK; t++) {  // pivot rows below the diagonal block
        FOR_APPLY_ROWS(k)
        if (row_to[t] == APPLY_ROW_OF(k)) values[k] = moved[t];
    }
    // All threads agree on is_right, but barriers stay outside of branches: PoCL 3.1 drops the guard `row < rows`
    // behind a barrier in one.
    bool is_right = c > first;
    NO_UNROLL for (int k = 0; k < INNER_BLOCK; k++) {  // the first INNER_BLOCK threads, which belong to one warp
        WARP_BARRIER();
        if (is_right && thread > k && thread < INNER_BLOCK) moved[thread] -= lower[k * INNER_BLOCK + thread] * moved[k];
    }
    BARRIER();
    FOR_APPLY_ROWS(k) {
        int row = APPLY_ROW_OF(k);
        if (is_right && row < rows) {
            FOR_COLUMNS(j)
            values[k] -= subpanel[(ulong)j * (ulong)ld + (ulong)row] * moved[j];
        }
    }
    if (thread < INNER_BLOCK) column_values[first + thread] = moved[thread];
    FOR_APPLY_ROWS(k) {
        int row = APPLY_ROW_OF(k);
        if (row < rows) column_values[row] = values[k];
    }
}
