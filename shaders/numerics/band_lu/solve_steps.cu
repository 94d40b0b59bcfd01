// Band LU: the solves A x = b and A^T x = b with one or two launches for each block column, on any device. Chosen by
// substitution.py where solve_sweeps.cu, which sweeps over all block columns in one launch, cannot run: without thread
// block clusters, and for triangles whose inverses are too large.
// S, REAL, TILE and letters: band_lu.h.
//   UPPER          1: a step with U; 0: a step with L, whose diagonal is 1, and with its row interchanges
//   RHS_PER_GROUP  right-hand sides per group
// Right-hand sides are (nrhs, padded_n). `top` is the index of the first element of the diagonal block of
// block column i. A step passes changed rows to the next step, which may run on another device, through the windows
// `now` and `next` of solve_rows.h, which explains outside, changed_rows, window and reach too; FIRST_OUTSIDE,
// SOURCE_ROW, VALUE_BEFORE and NEXT_ROW are its macros.
#include "numerics/band_lu/band_lu.h"
#include "numerics/band_lu/solve_rows.h"

#define PREFETCH_DISTANCE (S < 64 ? S : 64)
#define PADDED_PITCH (S + 1)  // pitch of columns in local memory: threads that read one column each use different banks

// Loads TILE columns of a triangle, `pitch` apart, into local memory.
DEVICE void load_columns(GLOBAL const REAL *from, int ld, int pitch, LOCAL REAL *columns) {
    UNROLL for (int e = 0; e < (S * TILE + GROUP_SIZE - 1) / GROUP_SIZE; e++) {
        int k = (int)local_index() + e * GROUP_SIZE;
        if (k < S * TILE) columns[k / S * pitch + k % S] = from[(ulong)(k / S) * (ulong)ld + (ulong)(k % S)];
    }
}

// Step i of L y = P b or of U x = y: solves for block i of `solution` and subtracts its products from the rows outside
// the block. `permutations` (p, window) is used for L only. Groups that share right-hand sides all solve the triangle,
// since waiting for another group would take longer.
KERNEL solve_step(GLOBAL const REAL *matrix, GLOBAL const REAL *source, GLOBAL REAL *solution, GLOBAL const REAL *now,
                  GLOBAL REAL *next, GLOBAL const int *permutations, const ulong top, const int i, const int outside,
                  const int changed_rows, const int window, const int reach, const int padded_n, const int nrhs,
                  const int u, const int ld) {
    LOCAL_ARRAY(REAL, solved, S * RHS_PER_GROUP);
    LOCAL_ARRAY(REAL, columns, S * TILE);
    // Reciprocals of U's diagonal. For L it has one element, which the index UPPER * ... selects, and is not used.
    LOCAL_ARRAY(REAL, inverse, UPPER ? S : 1);
    int thread = (int)local_index(), spans = max((outside + GROUP_SIZE - 1) / GROUP_SIZE, 1);
    int span = (int)group_index() % spans, first_rhs = (int)group_index() / spans * RHS_PER_GROUP;
    int outside_row = span * GROUP_SIZE + thread, row = FIRST_OUTSIDE + outside_row;
    ulong row_at = top + (ulong)row;
    REAL prefetched[PREFETCH_DISTANCE];  // loads in flight while the triangle is solved
    UNROLL for (int k = 0; k < PREFETCH_DISTANCE; k++) prefetched[k] =
        outside_row < outside ? matrix[row_at + (ulong)k * (ulong)ld] : 0;
    for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE) {
        int from = SOURCE_ROW(e % S);
        solved[e] = VALUE_BEFORE(first_rhs + e / S, from);
    }
    for (int k = thread; UPPER && k < S; k += GROUP_SIZE) inverse[k] = 1 / matrix[top + (ulong)k * (ulong)(ld + 1)];
    // Solve the triangle. For U, `solved` holds the values times U's diagonal until all are known.
    for (int done = 0; done < S; done += TILE) {
        int start = UPPER ? S - TILE - done : done;
        BARRIER();
        load_columns(matrix + top + (ulong)start * (ulong)ld, ld, S, columns);
        for (int n = 0; n < TILE; n++) {
            int k = UPPER ? TILE - 1 - n : n;  // in the order of substitution
            BARRIER();
            for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE) {
                int r = e % S;
                REAL known = solved[e - r + start + k];
                if (UPPER) known *= inverse[UPPER * (start + k)];
                if (UPPER ? r < start + k : r > start + k) solved[e] -= columns[k * S + r] * known;
            }
        }
    }
    BARRIER();
    if (UPPER) {
        for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE) solved[e] *= inverse[UPPER * (e % S)];
        BARRIER();
    }
    // Subtract the products from the rows outside.
    if (outside_row < outside) {
        int from = SOURCE_ROW(row);
        REAL sum[RHS_PER_GROUP];
        UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) sum[m] = VALUE_BEFORE(first_rhs + m, from);
        UNROLL for (int e = 0; e < PREFETCH_DISTANCE * RHS_PER_GROUP; e++) sum[e / PREFETCH_DISTANCE] -=
            prefetched[e % PREFETCH_DISTANCE] * solved[e / PREFETCH_DISTANCE * S + e % PREFETCH_DISTANCE];
        for (int start = PREFETCH_DISTANCE; start < S; start += 16) {  // 16 loads in flight
            REAL factor[16];
            UNROLL for (int k = 0; k < 16; k++) factor[k] = matrix[row_at + (ulong)(start + k) * (ulong)ld];
            UNROLL for (int e = 0; e < 16 * RHS_PER_GROUP; e++) sum[e / 16] -=
                factor[e % 16] * solved[e / 16 * S + start + e % 16];
        }
        UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) if (first_rhs + m < nrhs)
            next[(ulong)(first_rhs + m) * (ulong)reach + (ulong)NEXT_ROW(row)] = sum[m];
    }
    for (int e = thread; span == 0 && e < S * RHS_PER_GROUP; e += GROUP_SIZE)
        if (first_rhs + e / S < nrhs)
            solution[(ulong)(first_rhs + e / S) * (ulong)padded_n + (ulong)(i * S + e % S)] = solved[e];
}

// out[c] = base[c] - (column c of the factors, `rows` rows from index `at` on) . values, for each right-hand side. A
// group computes one column for RHS_PER_GROUP right-hand sides, always in the same order of additions.
KERNEL subtract_column_products(GLOBAL const REAL *matrix, const ulong at, const int rows, const int ld,
                                GLOBAL const REAL *values, const int first_value, const int reach,
                                GLOBAL const REAL *base, const int first_base, const int padded_n, GLOBAL REAL *out,
                                const int nrhs) {
    LOCAL_ARRAY(REAL, partial, RHS_PER_GROUP * GROUP_SIZE);
    int thread = (int)local_index(), column = (int)group_index() % S,
        first_rhs = (int)group_index() / S * RHS_PER_GROUP;
    REAL sum[RHS_PER_GROUP];
    UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) sum[m] = 0;
    for (int row = thread; row < rows; row += GROUP_SIZE) {
        REAL factor = matrix[at + (ulong)column * (ulong)ld + (ulong)row];
        UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) if (first_rhs + m < nrhs) sum[m] +=
            factor * values[(ulong)(first_rhs + m) * (ulong)reach + (ulong)(first_value + row)];
    }
    UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) partial[m * GROUP_SIZE + thread] = sum[m];
    for (int distance = GROUP_SIZE / 2; distance > 0; distance /= 2) {
        BARRIER();
        for (int e = thread; e < distance * RHS_PER_GROUP; e += GROUP_SIZE) {
            int k = e / distance * GROUP_SIZE + e % distance;
            partial[k] += partial[k + distance];
        }
    }
    BARRIER();
    for (int m = thread; m < RHS_PER_GROUP; m += GROUP_SIZE)
        if (first_rhs + m < nrhs)
            out[(ulong)(first_rhs + m) * S + (ulong)column] =
                base[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(first_base + column)] - partial[m * GROUP_SIZE];
}

// Step i of U^T y = b, or of L^T z = y and x = P^T z: solves the triangle for block i. `sides` (S, nrhs) is the
// right-hand side minus the products with the solved rows, which `now` holds: for U the last u S rows, for L the rows
// below the block (`rows` counts them and the block). `next` receives the solved rows for the next step. For L the
// interchanges of step i are undone; rows from `first_final` on, which no later step interchanges, are stored in x.
KERNEL solve_transposed_step(GLOBAL const REAL *matrix, const ulong top, GLOBAL const REAL *sides,
                             GLOBAL REAL *solution, GLOBAL const REAL *now, GLOBAL REAL *next,
                             GLOBAL const int *permutations, const int i, const int rows, const int first_final,
                             const int window, const int reach, const int padded_n, const int nrhs, const int u,
                             const int ld) {
    LOCAL_ARRAY(REAL, solved, S * RHS_PER_GROUP);
    LOCAL_ARRAY(REAL, columns, PADDED_PITCH * TILE);
    int thread = (int)local_index(), first_rhs = (int)group_index() * RHS_PER_GROUP;
    for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE)
        solved[e] = first_rhs + e / S < nrhs ? sides[(ulong)(first_rhs + e / S) * S + (ulong)(e % S)] : 0;
    for (int done = 0; done < S; done += TILE) {
        int start = UPPER ? done : S - TILE - done, first_known = UPPER ? 0 : start + TILE;
        BARRIER();
        load_columns(matrix + top + (ulong)start * (ulong)ld, ld, PADDED_PITCH, columns);
        BARRIER();
        for (int e = thread; e < TILE * RHS_PER_GROUP; e += GROUP_SIZE) {  // the rows that are known before this tile
            LOCAL REAL *x = solved + e / TILE * S;
            REAL sum = x[start + e % TILE];
            for (int row = first_known; row < first_known + done; row++)
                sum -= columns[e % TILE * PADDED_PITCH + row] * x[row];
            x[start + e % TILE] = sum;
        }
        for (int n = 0; n < TILE; n++) {
            int k = UPPER ? n : TILE - 1 - n;  // in the order of substitution
#if UPPER
            BARRIER();
            for (int m = thread; m < RHS_PER_GROUP; m += GROUP_SIZE)
                solved[m * S + start + k] /= columns[k * PADDED_PITCH + start + k];
#endif
            BARRIER();
            for (int e = thread; e < TILE * RHS_PER_GROUP; e += GROUP_SIZE)
                if (UPPER ? e % TILE > k : e % TILE < k)
                    solved[e / TILE * S + start + e % TILE] -=
                        columns[e % TILE * PADDED_PITCH + start + k] * solved[e / TILE * S + start + k];
        }
    }
    BARRIER();
    for (int m = 0; m < RHS_PER_GROUP && first_rhs + m < nrhs; m++) {
        GLOBAL const REAL *before = now + (ulong)(first_rhs + m) * (ulong)reach;
        GLOBAL REAL *after = next + (ulong)(first_rhs + m) * (ulong)reach;
        GLOBAL REAL *x = solution + (ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(i * S);
#if UPPER
        for (int e = thread; e < (u - 1) * S; e += GROUP_SIZE) after[e] = (i + 1 - u) * S + e >= 0 ? before[e + S] : 0;
        for (int e = thread; e < S; e += GROUP_SIZE) {
            if (u) after[(u - 1) * S + e] = solved[m * S + e];
            x[e] = solved[m * S + e];
        }
#else
        for (int row = thread; row < rows; row += GROUP_SIZE) {
            REAL value = row < S ? solved[m * S + row] : before[row - S];
            int target = SOURCE_ROW(row);
            if (target >= first_final)
                x[target] = value;
            else
                after[target] = value;
        }
#endif
    }
}
