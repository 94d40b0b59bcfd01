// Band LU: the solves U^T y = b and L^T z = y, x = P^T z, in two launches per block column: products of the columns
// with what is solved already, and the triangle. Names as in solve_blocked.cu; every block column needs only its own
// factors.
#include "numerics/band_lu/band_lu.h"

#define PITCH (S + 1)  // of columns in local memory: threads that each read a column use different banks

// out[c] = base[c] minus the product of column c of a part of the factors, `rows` from element `at` on, and `values`.
// A group adds up the products of one column for RHS_PER_GROUP right-hand sides, always in the same order.
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

// Loads TILE columns of a triangle, a pitch apart, into local memory.
DEVICE void load_columns(GLOBAL const REAL *from, int ld, LOCAL REAL *columns) {
    for (int k = (int)local_index(); k < S * TILE; k += GROUP_SIZE)
        columns[k / S * PITCH + k % S] = from[(ulong)(k / S) * (ulong)ld + (ulong)(k % S)];
}

// Loads the right-hand sides (S, nrhs) of a triangle into local memory.
DEVICE void load_sides(GLOBAL const REAL *sides, int first_rhs, int nrhs, LOCAL REAL *solved) {
    for (int e = (int)local_index(); e < S * RHS_PER_GROUP; e += GROUP_SIZE)
        solved[e] = first_rhs + e / S < nrhs ? sides[(ulong)(first_rhs + e / S) * S + (ulong)(e % S)] : 0;
}

// Block i of U^T y = b: `sides` is b minus the products with the solved rows. The last u S solved rows go on to `next`.
KERNEL upper_transposed(GLOBAL const REAL *matrix, const ulong top, GLOBAL const REAL *sides, GLOBAL REAL *y,
                        GLOBAL const REAL *now, GLOBAL REAL *next, const int i, const int reach, const int padded_n,
                        const int nrhs, const int u, const int ld) {
    LOCAL_ARRAY(REAL, solved, S * RHS_PER_GROUP);
    LOCAL_ARRAY(REAL, columns, PITCH * TILE);
    int thread = (int)local_index(), first_rhs = (int)group_index() * RHS_PER_GROUP;
    load_sides(sides, first_rhs, nrhs, solved);
    for (int start = 0; start < S; start += TILE) {
        BARRIER();
        load_columns(matrix + top + (ulong)start * (ulong)ld, ld, columns);
        BARRIER();
        for (int e = thread; e < TILE * RHS_PER_GROUP; e += GROUP_SIZE) {
            LOCAL REAL *x = solved + e / TILE * S;
            REAL sum = x[start + e % TILE];
            for (int row = 0; row < start; row++) sum -= columns[e % TILE * PITCH + row] * x[row];
            x[start + e % TILE] = sum;
        }
        for (int k = 0; k < TILE; k++) {
            BARRIER();
            for (int m = thread; m < RHS_PER_GROUP; m += GROUP_SIZE)
                solved[m * S + start + k] /= columns[k * PITCH + start + k];
            BARRIER();
            for (int e = thread; e < TILE * RHS_PER_GROUP; e += GROUP_SIZE)
                if (e % TILE > k)
                    solved[e / TILE * S + start + e % TILE] -=
                        columns[e % TILE * PITCH + start + k] * solved[e / TILE * S + start + k];
        }
    }
    BARRIER();
    for (int m = 0; m < RHS_PER_GROUP && first_rhs + m < nrhs; m++) {
        ulong row = (ulong)(first_rhs + m) * (ulong)reach;
        for (int e = thread; e < (u - 1) * S; e += GROUP_SIZE)
            next[row + (ulong)e] = (i + 1 - u) * S + e >= 0 ? now[row + (ulong)(e + S)] : 0;
        for (int e = thread; e < S; e += GROUP_SIZE) {
            if (u) next[row + (ulong)((u - 1) * S + e)] = solved[m * S + e];
            y[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(i * S + e)] = solved[m * S + e];
        }
    }
}

// Block i of L^T z = y, and its interchanges undone: `sides` is y minus the products with the rows below, which `now`
// holds. `next` gets what the next step has below it, x the rows from `first_final` on, which no other step
// interchanges.
KERNEL lower_transposed(GLOBAL const REAL *matrix, const ulong top, GLOBAL const REAL *sides, GLOBAL REAL *x,
                        GLOBAL const REAL *now, GLOBAL REAL *next, GLOBAL const int *permutations, const int i,
                        const int rows, const int first_final, const int window, const int reach, const int padded_n,
                        const int nrhs, const int ld) {
    LOCAL_ARRAY(REAL, solved, S * RHS_PER_GROUP);
    LOCAL_ARRAY(REAL, columns, PITCH * TILE);
    int thread = (int)local_index(), first_rhs = (int)group_index() * RHS_PER_GROUP;
    load_sides(sides, first_rhs, nrhs, solved);
    for (int start = S - TILE; start >= 0; start -= TILE) {
        BARRIER();
        load_columns(matrix + top + (ulong)start * (ulong)ld, ld, columns);
        BARRIER();
        for (int e = thread; e < TILE * RHS_PER_GROUP; e += GROUP_SIZE) {
            LOCAL REAL *z = solved + e / TILE * S;
            REAL sum = z[start + e % TILE];
            for (int row = start + TILE; row < S; row++) sum -= columns[e % TILE * PITCH + row] * z[row];
            z[start + e % TILE] = sum;
        }
        for (int k = TILE - 1; k > 0; k--) {
            BARRIER();
            for (int e = thread; e < TILE * RHS_PER_GROUP; e += GROUP_SIZE)
                if (e % TILE < k)
                    solved[e / TILE * S + start + e % TILE] -=
                        columns[e % TILE * PITCH + start + k] * solved[e / TILE * S + start + k];
        }
    }
    BARRIER();
    for (int m = 0; m < RHS_PER_GROUP && first_rhs + m < nrhs; m++)
        for (int row = thread; row < rows; row += GROUP_SIZE) {
            ulong at = (ulong)(first_rhs + m) * (ulong)reach;
            REAL value = row < S ? solved[m * S + row] : now[at + (ulong)(row - S)];
            int target = permutations[(ulong)i * (ulong)window + (ulong)row];
            if (target >= first_final)
                x[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(i * S + target)] = value;
            else
                next[at + (ulong)target] = value;
        }
}
