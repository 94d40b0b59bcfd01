// Small band systems, a thread to a system: P L U with partial pivoting as LAPACK's gbtf2 does it, and the substitutions.
// Element (row i, column j) of system b stands at matrix[(j * (2 KL + KU + 1) + KL + KU + i - j) * count + b], so that the
// threads of a warp read neighbouring numbers.
#define TALL (2 * KL + KU + 1)
#define PLACE(i, j) (((ulong)(j) * TALL + (ulong)(KL + KU + (i) - (j))) * (ulong)count + (ulong)b)

KERNEL factor_systems(GLOBAL REAL *matrix, GLOBAL int *pivots, GLOBAL int *infos, const int n, const int count) {
    int b = (int)thread_index();
    if (b >= count) return;
    int info = 0, right = 0;
    for (int j = 0; j < n; j++) {
        int last = min(j + KL, n - 1), pivot = j;
        REAL high = fabs(matrix[PLACE(j, j)]);
        for (int i = j + 1; i <= last; i++) {
            REAL size = fabs(matrix[PLACE(i, j)]);
            if (size > high) { high = size; pivot = i; }
        }
        pivots[(ulong)j * (ulong)count + (ulong)b] = pivot;
        right = max(right, min(pivot + KU, n - 1));
        if (high == 0) {
            if (info == 0) info = j + 1;
            continue;
        }
        if (pivot != j) {
            for (int c = j; c <= right; c++) {
                REAL moved = matrix[PLACE(j, c)];
                matrix[PLACE(j, c)] = matrix[PLACE(pivot, c)];
                matrix[PLACE(pivot, c)] = moved;
            }
        }
        REAL diagonal = matrix[PLACE(j, j)];
        for (int i = j + 1; i <= last; i++) {
            REAL factor = matrix[PLACE(i, j)] / diagonal;
            matrix[PLACE(i, j)] = factor;
            for (int c = j + 1; c <= right; c++) matrix[PLACE(i, c)] -= factor * matrix[PLACE(j, c)];
        }
    }
    infos[b] = info;
}

// A thread to a right-hand side of a system; sides (n, many, count).
KERNEL solve_systems(GLOBAL const REAL *matrix, GLOBAL const int *pivots, GLOBAL REAL *sides, const int n, const int count,
                     const int many) {
    int b = (int)(thread_index() % (uint)count), m = (int)(thread_index() / (uint)count);
    if (m >= many) return;
#define SIDE(i) sides[((ulong)(i) * (ulong)many + (ulong)m) * (ulong)count + (ulong)b]
    for (int j = 0; j < n; j++) {
        int pivot = pivots[(ulong)j * (ulong)count + (ulong)b], last = min(j + KL, n - 1);
        REAL value = SIDE(pivot);
        if (pivot != j) {
            SIDE(pivot) = SIDE(j);
            SIDE(j) = value;
        }
        for (int i = j + 1; i <= last; i++) SIDE(i) -= matrix[PLACE(i, j)] * value;
    }
    for (int j = n - 1; j >= 0; j--) {
        REAL value = SIDE(j) / matrix[PLACE(j, j)];
        SIDE(j) = value;
        for (int i = max(0, j - KL - KU); i < j; i++) SIDE(i) -= matrix[PLACE(i, j)] * value;
    }
}
