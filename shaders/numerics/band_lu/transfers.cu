// Band LU: copies, unpacks and broadcasts block columns and panels; computes max |a_ij|, max |u_ij| and the diagonal of
// U. Launched by device_columns.py. Letters and compile-time inputs: band_lu.h. Arguments named ..._at are indices of
// the first element.
#include "numerics/band_lu/band_lu.h"

// Copies `count` elements between buffers, for downloads.
KERNEL copy_elements(GLOBAL const REAL *from, GLOBAL REAL *to, const ulong from_at, const ulong to_at,
                     const ulong count) {
    ulong k = thread_index_long();
    if (k < count) to[to_at + k] = from[from_at + k];
}

// Copies the panel at index from_at of a matrix to `to` with leading dimension `rows`, and its S pivots behind it as
// integers: the data that other devices need for a step.
KERNEL broadcast_panel(GLOBAL const REAL *matrix, GLOBAL const int *pivots, GLOBAL REAL *to, const ulong from_at,
                       const int from_ld, const int rows, const int first_pivot, const int pivots_at) {
    uint k = thread_index();
    int column = (int)(k / (uint)rows), row = (int)(k % (uint)rows);
    if (column < S)
        to[(ulong)column * (ulong)rows + (ulong)row] = matrix[from_at + (ulong)column * (ulong)from_ld + (ulong)row];
    if (k < S) ((GLOBAL int *)to)[pivots_at + (int)k] = pivots[first_pivot + (int)k];
}

// Fills the adjacent slots of block columns t to t + count - 1 from their `width` columns of LAPACK's band array,
// (kl + ku + 1, width) row-major.
KERNEL unpack_columns(GLOBAL const REAL *ab, GLOBAL REAL *matrix, const ulong slot_at, const int t, const int width,
                      const int n, const int kl, const int ku, const int u, const int ld, const int count) {
    ulong k = thread_index_long(), stride = (ulong)S * (ulong)(ld + 1), within = k % stride;
    int block = (int)(k / stride), j = (int)(within / (ulong)ld), local_row = (int)(within % (ulong)ld);
    if (block >= count) return;
    int row = (t + block - u) * S + local_row, column = (t + block) * S + j, d = ku + row - column;
    REAL value = row == column ? 1 : 0;  // columns beyond n are the identity's, which keep the factors regular
    if (j >= S)
        value = 0;  // the gap before the next slot
    else if (column < n)
        value =
            row >= 0 && row < n && d >= 0 && d <= kl + ku ? ab[(ulong)d * (ulong)width + (ulong)(block * S + j)] : 0;
    matrix[slot_at + k] = value;
}

// Copies the `width` columns of unpack_columns to column first_column of a band array (rows, n), which residual.cu
// reads.
KERNEL keep_band(GLOBAL const REAL *ab, GLOBAL REAL *band, const ulong n, const ulong first_column, const int width,
                 const int rows) {
    ulong k = thread_index_long();
    if (k < (ulong)rows * (ulong)width) band[k / (ulong)width * n + first_column + k % (ulong)width] = ab[k];
}

// max |a_ij| of `width` columns of LAPACK's band array from block column t on, one for each work-group; infinite if
// they hold NaN.
KERNEL max_abs(GLOBAL const REAL *ab, GLOBAL REAL *out, const int t, const int width, const int n, const int kl,
               const int ku) {
    LOCAL_ARRAY(REAL, best, GROUP_SIZE);
    int thread = (int)local_index();
    REAL size = 0;
    for (uint k = thread_index(); k < (uint)(width * (kl + ku + 1)); k += group_count() * GROUP_SIZE) {
        int d = (int)(k / (uint)width), row = t * S + (int)(k % (uint)width) + d - ku;
        REAL here = fabs(ab[k]);
        if (row >= 0 && row < n) size = here <= REAL_MAX ? fmax(size, here) : REAL_INFINITY;
    }
    best[thread] = size;
    for (int distance = GROUP_SIZE / 2; distance > 0; distance /= 2) {
        BARRIER();
        if (thread < distance) best[thread] = fmax(best[thread], best[thread + distance]);
    }
    if (thread == 0) out[(uint)t * group_count() + group_index()] = best[0];
}

// The maximum |u| of each column and the diagonal of U, for the columns on this device: one thread per column, whose
// element r rows above the diagonal is start[c - r].
KERNEL upper_stats(GLOBAL const REAL *matrix, GLOBAL REAL *column_max, GLOBAL REAL *diagonal, const int n,
                   const int device, STORAGE_PARAMETERS) {
    int local_column = (int)thread_index(), t = local_column / S * devices + device, c = local_column % S;
    int column = t * S + c;
    if (column >= n) return;
    GLOBAL const REAL *start = matrix + block_offset(t, t, u, ld, devices, slots) + (ulong)c * (ulong)ld;
    REAL best = 0;
    int above = min(column, u * S + c);
    for (int r = 0; r <= above; r++) best = fmax(best, fabs(start[c - r]));
    column_max[column] = best;
    diagonal[column] = start[c];
}
