// Band LU: the solves L y = P b and U x = y, one launch per block column.
// The S x S triangles are loaded into local memory, TILE columns at a time; right-hand sides are column-major
// (padded_n, nrhs). `top` is the element at which the diagonal block of block column i begins. What a step changes
// beyond its own block goes from window to window, each (reach, nrhs), so that the next block column may be on another
// device.
#include "numerics/band_lu/band_lu.h"

#define PREFETCH_DISTANCE (S < 64 ? S : 64)

// Loads TILE columns of a triangle into local memory.
DEVICE void load_columns(GLOBAL const REAL *from, int ld, LOCAL REAL *columns) {
    UNROLL for (int e = 0; e < (S * TILE + GROUP_SIZE - 1) / GROUP_SIZE; e++) {
        int k = (int)local_index() + e * GROUP_SIZE;
        if (k < S * TILE) columns[k] = from[(ulong)(k / S) * (ulong)ld + (ulong)(k % S)];
    }
}

// Subtracts from `sum` the products of the row at row_at, whose first elements are prefetched, and the solved block: 16
// loads in flight.
#define SUBTRACT_ROW_PRODUCTS                                                                            \
    UNROLL for (int e = 0; e < PREFETCH_DISTANCE * RHS_PER_GROUP; e++) {                                 \
        int k = e % PREFETCH_DISTANCE, m = e / PREFETCH_DISTANCE;                                        \
        sum[m] -= prefetched[k] * solved[m * S + k];                                                     \
    }                                                                                                    \
    for (int start = PREFETCH_DISTANCE; start < S; start += 16) {                                        \
        REAL factor[16];                                                                                 \
        UNROLL for (int k = 0; k < 16; k++) factor[k] = matrix[row_at + (ulong)(start + k) * (ulong)ld]; \
        UNROLL for (int e = 0; e < 16 * RHS_PER_GROUP; e++) {                                            \
            sum[e / 16] -= factor[e % 16] * solved[e / 16 * S + start + e % 16];                         \
        }                                                                                                \
    }

// Step i of L y = P b. The step may change `window` rows: row r of them comes from row permutations[i * window + r]
// before the interchanges. The first `changed_rows` rows, which earlier steps changed, are read from `now`,
// the others from b; the result is written to `next`, except for its first S rows, which are final and go to y. Every
// group solves the triangle for its RHS_PER_GROUP right-hand sides by itself: waiting for another group would take
// longer.
KERNEL forward_step(GLOBAL const REAL *matrix, GLOBAL const REAL *b, GLOBAL REAL *y, GLOBAL const REAL *now,
                    GLOBAL REAL *next, GLOBAL const int *permutations, const ulong top, const int i, const int rows,
                    const int changed_rows, const int window, const int reach, const int padded_n, const int nrhs,
                    const int ld) {
    LOCAL_ARRAY(REAL, solved, S * RHS_PER_GROUP);
    LOCAL_ARRAY(REAL, lower, S * TILE);
    int thread = (int)local_index(), spans = max((rows - S + GROUP_SIZE - 1) / GROUP_SIZE, 1);
    int span = (int)group_index() % spans, first_rhs = (int)group_index() / spans * RHS_PER_GROUP;
    int row_index = S + span * GROUP_SIZE + thread;
    ulong row_at = top + (ulong)row_index;
    REAL prefetched[PREFETCH_DISTANCE];  // loads in flight while the triangle is solved
    UNROLL for (int k = 0; k < PREFETCH_DISTANCE; k++) prefetched[k] =
        row_index < rows ? matrix[row_at + (ulong)k * (ulong)ld] : 0;
    for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE) {
        int m = first_rhs + e / S, from = permutations[(ulong)i * (ulong)window + (ulong)(e % S)];
        solved[e] = m >= nrhs             ? 0
                    : from < changed_rows ? now[(ulong)m * (ulong)reach + (ulong)from]
                                          : b[(ulong)m * (ulong)padded_n + (ulong)(i * S + from)];
    }
    for (int start = 0; start < S; start += TILE) {
        BARRIER();
        load_columns(matrix + top + (ulong)start * (ulong)ld, ld, lower);
        for (int k = start; k < start + TILE; k++) {
            BARRIER();
            for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE) {
                int row = e % S;
                if (row > k) solved[e] -= lower[(k - start) * S + row] * solved[e - row + k];
            }
        }
    }
    BARRIER();
    if (row_index < rows) {
        int from = permutations[(ulong)i * (ulong)window + (ulong)row_index];
        REAL sum[RHS_PER_GROUP];
        UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) sum[m] =
            first_rhs + m >= nrhs ? 0
            : from < changed_rows ? now[(ulong)(first_rhs + m) * (ulong)reach + (ulong)from]
                                  : b[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(i * S + from)];
        SUBTRACT_ROW_PRODUCTS
        UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) if (first_rhs + m < nrhs)
            next[(ulong)(first_rhs + m) * (ulong)reach + (ulong)(row_index - S)] = sum[m];
    }
    for (int e = thread; span == 0 && e < S * RHS_PER_GROUP; e += GROUP_SIZE)
        if (first_rhs + e / S < nrhs)
            y[(ulong)(first_rhs + e / S) * (ulong)padded_n + (ulong)(i * S + e % S)] = solved[e];
}

// Step i of U x = y: solves for block i of x; updates the `above` rows over it. Row i S + S - 1 is the last of the u S
// rows of `now`, row i S - 1 of those of `next`. Of the rows that the step works on, the last `changed_rows` were
// changed by earlier steps and are read from `now`, the others from y.
KERNEL backward_step(GLOBAL const REAL *matrix, GLOBAL const REAL *y, GLOBAL REAL *x, GLOBAL const REAL *now,
                     GLOBAL REAL *next, const ulong top, const int i, const int above, const int changed_rows,
                     const int reach, const int padded_n, const int nrhs, const int u, const int ld) {
    LOCAL_ARRAY(REAL, solved, S * RHS_PER_GROUP);
    LOCAL_ARRAY(REAL, upper, S * TILE);
    LOCAL_ARRAY(REAL, inverse, S);
    int thread = (int)local_index(), spans = max((above + GROUP_SIZE - 1) / GROUP_SIZE, 1);
    int span = (int)group_index() % spans, first_rhs = (int)group_index() / spans * RHS_PER_GROUP;
    int row_index = span * GROUP_SIZE + thread;
    ulong row_at = top - (ulong)(above - row_index);
    REAL prefetched[PREFETCH_DISTANCE];
    UNROLL for (int k = 0; k < PREFETCH_DISTANCE; k++) prefetched[k] =
        row_index < above ? matrix[row_at + (ulong)k * (ulong)ld] : 0;
    for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE) {
        int m = first_rhs + e / S;
        solved[e] = m >= nrhs      ? 0
                    : changed_rows ? now[(ulong)m * (ulong)reach + (ulong)((u - 1) * S + e % S)]
                                   : y[(ulong)m * (ulong)padded_n + (ulong)(i * S + e % S)];
    }
    for (int k = thread; k < S; k += GROUP_SIZE) inverse[k] = 1 / matrix[top + (ulong)k * (ulong)(ld + 1)];
    for (int start = S - TILE; start >= 0; start -= TILE) {
        BARRIER();
        load_columns(matrix + top + (ulong)start * (ulong)ld, ld, upper);
        for (int k = start + TILE - 1; k >= start; k--) {
            BARRIER();
            for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE) {
                int row = e % S;
                if (row < k) solved[e] -= upper[(k - start) * S + row] * (solved[e - row + k] * inverse[k]);
            }
        }
    }
    BARRIER();
    for (int e = thread; e < S * RHS_PER_GROUP; e += GROUP_SIZE) solved[e] *= inverse[e % S];
    BARRIER();
    if (row_index < above) {
        REAL sum[RHS_PER_GROUP];
        bool changed = above - row_index + S <= changed_rows;
        UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) sum[m] =
            first_rhs + m >= nrhs ? 0
            : changed ? now[(ulong)(first_rhs + m) * (ulong)reach + (ulong)((u - 1) * S - above + row_index)]
                      : y[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(i * S - above + row_index)];
        SUBTRACT_ROW_PRODUCTS
        UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) if (first_rhs + m < nrhs)
            next[(ulong)(first_rhs + m) * (ulong)reach + (ulong)(u * S - above + row_index)] = sum[m];
    }
    for (int e = thread; span == 0 && e < S * RHS_PER_GROUP; e += GROUP_SIZE)
        if (first_rhs + e / S < nrhs)
            x[(ulong)(first_rhs + e / S) * (ulong)padded_n + (ulong)(i * S + e % S)] = solved[e];
}
