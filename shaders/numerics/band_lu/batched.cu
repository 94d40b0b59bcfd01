// P L U with partial pivoting (the algorithm of LAPACK's gbtf2) and substitution for many small band systems, one
// thread per system; launched by renderer/numerics/band_lu/batch.py. The matrices are LAPACK's band arrays of gbtrf,
// transposed: `matrix` is (n columns, LDAB rows of the band, count systems). So the elements of neighboring systems are
// adjacent, and the threads of a warp read adjacent elements. A_AT(i, j) is the index of element (i, j) of system b.
// The first KL rows of the band, room for fill-in, are 0 on entry. `pivots` is (n, count), rows from 0 on.
// The host defines REAL, float or double, and KL and KU, the numbers of sub- and superdiagonals.
#define LDAB (2 * KL + KU + 1)
#define A_AT(i, j) (((ulong)(j) * LDAB + (ulong)(KL + KU + (i) - (j))) * (ulong)count + (ulong)b)

// One thread per system. U replaces the elements on and above the diagonal, the multipliers of L the elements below it.
// infos[b]: the 1-based number of the first zero pivot, 0 if there is none, as LAPACK's info.
KERNEL factor_systems(GLOBAL REAL *matrix, GLOBAL int *pivots, GLOBAL int *infos, const int n, const int count) {
    int b = (int)thread_index();
    if (b >= count) return;
    int info = 0, last_column = 0;  // the last column that the pivot rows so far reach
    for (int j = 0; j < n; j++) {
        int last_row = min(j + KL, n - 1), pivot = j;
        REAL max_size = fabs(matrix[A_AT(j, j)]);
        for (int i = j + 1; i <= last_row; i++) {
            REAL size = fabs(matrix[A_AT(i, j)]);
            if (size > max_size) {
                max_size = size;
                pivot = i;
            }
        }
        pivots[(ulong)j * (ulong)count + (ulong)b] = pivot;
        last_column = max(last_column, min(pivot + KU, n - 1));
        if (max_size == 0) {
            if (info == 0) info = j + 1;
            continue;
        }
        if (pivot != j) {
            for (int c = j; c <= last_column; c++) {
                REAL moved = matrix[A_AT(j, c)];
                matrix[A_AT(j, c)] = matrix[A_AT(pivot, c)];
                matrix[A_AT(pivot, c)] = moved;
            }
        }
        REAL diagonal = matrix[A_AT(j, j)];
        for (int i = j + 1; i <= last_row; i++) {
            REAL factor = matrix[A_AT(i, j)] / diagonal;
            matrix[A_AT(i, j)] = factor;
            for (int c = j + 1; c <= last_column; c++) matrix[A_AT(i, c)] -= factor * matrix[A_AT(j, c)];
        }
    }
    infos[b] = info;
}

// One thread per right-hand side of a system: forward, then back substitution. The solution replaces rhs (n, nrhs,
// count).
KERNEL solve_systems(GLOBAL const REAL *matrix, GLOBAL const int *pivots, GLOBAL REAL *rhs, const int n,
                     const int count, const int nrhs) {
    int b = (int)(thread_index() % (uint)count), m = (int)(thread_index() / (uint)count);
    if (m >= nrhs) return;
#define RHS_AT(i) rhs[((ulong)(i) * (ulong)nrhs + (ulong)m) * (ulong)count + (ulong)b]
    for (int j = 0; j < n; j++) {
        int pivot = pivots[(ulong)j * (ulong)count + (ulong)b], last_row = min(j + KL, n - 1);
        REAL value = RHS_AT(pivot);
        if (pivot != j) {
            RHS_AT(pivot) = RHS_AT(j);
            RHS_AT(j) = value;
        }
        for (int i = j + 1; i <= last_row; i++) RHS_AT(i) -= matrix[A_AT(i, j)] * value;
    }
    for (int j = n - 1; j >= 0; j--) {
        REAL value = RHS_AT(j) / matrix[A_AT(j, j)];
        RHS_AT(j) = value;
        for (int i = max(0, j - KL - KU); i < j; i++) RHS_AT(i) -= matrix[A_AT(i, j)] * value;
    }
}
