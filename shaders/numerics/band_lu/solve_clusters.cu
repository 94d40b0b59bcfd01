// Band LU: the sweeps L y = P b and U x = y, each in one launch: a thread block cluster of CLUSTER groups solves
// RHS_PER_GROUP right-hand sides (CUDA compute capability 9). What a step needs of the factors does not depend on the
// step before it, so it is loaded before the cluster's barrier. The triangle of a step is a product with its inverse,
// which invert_triangles makes once for a factorization; every group computes all of it, for a second barrier would take
// longer. Names and windows are those of solve_blocked.cu; sums have the same order in any cluster and for any number of
// devices, each of which launches the steps first_step to end_step - 1 of its block columns.
#include "numerics/band_lu/band_lu.h"

#define LANES 8  // partial sums of a row
#define TERMS (S / LANES)  // of each
#define ROWS (GROUP_SIZE / LANES)  // of a pass of the update; a group has 4 S threads
#define CHUNK 32  // columns of an inverse that one group computes

#ifdef CLUSTER

// The inverse of a triangle is kept with its rows and columns in the order of substitution, so both are lower
// triangles. A thread holds the elements of one lane of row S - 1 - `row` and of the shorter row `row`.
typedef struct {
    REAL longer[TERMS], shorter[TERMS / 2];
} InverseRows;

DEVICE void load_inverse(GLOBAL const REAL *inverse, int row, int lane, InverseRows *held) {
    UNROLL for (int e = 0; e < TERMS; e++) {
        int k = lane + LANES * e;
        held->longer[e] = k < S - row ? inverse[k * S + S - 1 - row] : 0;
    }
    UNROLL for (int e = 0; e < TERMS / 2; e++) {
        int k = lane + LANES * e;
        held->shorter[e] = k <= row ? inverse[k * S + row] : 0;
    }
}

DEVICE REAL sum_of_lanes(LOCAL const REAL *partial, int distance) {
    return ((partial[0] + partial[distance]) + (partial[2 * distance] + partial[3 * distance])) +
           ((partial[4 * distance] + partial[5 * distance]) + (partial[6 * distance] + partial[7 * distance]));
}

// solved = inverse times `given`, both (RHS_PER_GROUP, S) in the order of substitution, by the whole group.
DEVICE void apply_inverse(const InverseRows *held, LOCAL const REAL *given, LOCAL REAL *partial, LOCAL REAL *solved) {
    int thread = (int)local_index(), row = thread % ROWS, lane = thread / ROWS;
    UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) {
        REAL longer = 0, shorter = 0;
        UNROLL for (int e = 0; e < TERMS; e++) longer += held->longer[e] * given[m * S + lane + LANES * e];
        UNROLL for (int e = 0; e < TERMS / 2; e++) shorter += held->shorter[e] * given[m * S + lane + LANES * e];
        partial[(m * LANES + lane) * S + S - 1 - row] = longer;
        partial[(m * LANES + lane) * S + row] = shorter;
    }
    BARRIER();
    if (thread < S * RHS_PER_GROUP) solved[thread] = sum_of_lanes(partial + thread / S * LANES * S + thread % S, S);
    BARRIER();
}

// partial = the lanes' sums of products of the factors of a row and the solved block, whose element k is at step * k.
DEVICE void multiply_rows(const REAL *factor, LOCAL const REAL *solved, int step, LOCAL REAL *partial) {
    int thread = (int)local_index(), row = thread % ROWS, lane = thread / ROWS;
    UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) {
        REAL sum = 0;
        UNROLL for (int e = 0; e < TERMS; e++) sum += factor[e] * solved[m * S + step * (lane + LANES * e)];
        partial[(m * LANES + lane) * ROWS + row] = sum;
    }
    BARRIER();
}

DEVICE void load_rows(GLOBAL const REAL *matrix, ulong at, int ld, int row, int rows, int lane, REAL *factor) {
    UNROLL for (int e = 0; e < TERMS; e++) factor[e] =
        row < rows ? matrix[at + (ulong)(lane + LANES * e) * (ulong)ld + (ulong)row] : 0;
}

#define SWEEP_PARAMETERS                                                                                        \
    const int first_step, const int end_step, const int p, const int reach, const int padded_n, const int nrhs, \
        STORAGE_PARAMETERS
#define SWEEP_VARIABLES                                                                                             \
    LOCAL_ARRAY(REAL, given, S *RHS_PER_GROUP);                                                                     \
    LOCAL_ARRAY(REAL, solved, S *RHS_PER_GROUP);                                                                    \
    LOCAL_ARRAY(REAL, partial, S * LANES * RHS_PER_GROUP);                                                          \
    const int thread = (int)local_index(), rank = (int)cluster_rank(), row = thread % ROWS, lane = thread / ROWS,   \
              first_rhs = (int)group_index() / CLUSTER * RHS_PER_GROUP, /* the one of which this thread loads a */  \
        given_rhs = first_rhs + thread / S, updated_rhs = first_rhs + thread / ROWS; /* value, and a row's */       \
    const bool loads = thread < S * RHS_PER_GROUP && given_rhs < nrhs,                                              \
               updates = thread < ROWS * RHS_PER_GROUP && updated_rhs < nrhs;                                       \
    const ulong given_window = (ulong)given_rhs * (ulong)reach, updated_window = (ulong)updated_rhs * (ulong)reach, \
                given_side = (ulong)given_rhs * (ulong)padded_n, updated_side = (ulong)updated_rhs * (ulong)padded_n

KERNEL_CLUSTER(CLUSTER)
forward_sweep(GLOBAL const REAL *matrix, GLOBAL const REAL *inverses, GLOBAL const REAL *b, GLOBAL REAL *y,
              GLOBAL REAL *now, GLOBAL REAL *next, GLOBAL const int *permutations, const int window, SWEEP_PARAMETERS) {
    SWEEP_VARIABLES;
    for (int i = first_step; i < end_step; i++) {
        ulong top = block_offset(i, i, u, ld, devices, slots);
        int below = min(window, (p - i) * S) - S, changed = i ? min(window, (p - i + 1) * S) - S : 0;
        InverseRows held;
        REAL factor[TERMS];
        load_inverse(inverses + (ulong)(i / devices) * (ulong)(S * S), row, lane, &held);
        load_rows(matrix, top + S, ld, rank * ROWS + row, below, lane, factor);
        GLOBAL const int *from = permutations + (ulong)i * (ulong)window;
        int own = from[thread % S];
        if (i > first_step) CLUSTER_WAIT();
        if (thread < S * RHS_PER_GROUP)
            given[thread] = !loads          ? 0
                            : own < changed ? now[given_window + (ulong)own]
                                            : b[given_side + (ulong)(i * S + own)];
        BARRIER();
        apply_inverse(&held, given, partial, solved);
        if (rank == 0 && loads) y[given_side + (ulong)(i * S + thread % S)] = solved[thread];
        for (int first = rank * ROWS; first < below; first += CLUSTER * ROWS) {
            int target = first + thread % ROWS;
            bool stores = updates && target < below;
            int source = stores ? from[S + target] : 0;
            REAL value = !stores            ? 0
                         : source < changed ? now[updated_window + (ulong)source]
                                            : b[updated_side + (ulong)(i * S + source)];
            if (first != rank * ROWS) load_rows(matrix, top + S, ld, first + row, below, lane, factor);
            multiply_rows(factor, solved, 1, partial);
            if (stores)
                next[updated_window + (ulong)target] =
                    value - sum_of_lanes(partial + thread / ROWS * LANES * ROWS + thread % ROWS, ROWS);
            BARRIER();
        }
        CLUSTER_ARRIVE();
        GLOBAL REAL *read = now;
        now = next;
        next = read;
    }
    CLUSTER_WAIT();
}

KERNEL_CLUSTER(CLUSTER)
backward_sweep(GLOBAL const REAL *matrix, GLOBAL const REAL *inverses, GLOBAL const REAL *y, GLOBAL REAL *x,
               GLOBAL REAL *now, GLOBAL REAL *next, SWEEP_PARAMETERS) {
    SWEEP_VARIABLES;
    for (int i = end_step - 1; i >= first_step; i--) {
        int above = min(i, u) * S, changed = i + 1 < p ? min(i + 1, u) * S : 0;
        ulong at = block_offset(i, i, u, ld, devices, slots) - (ulong)above;
        InverseRows held;
        REAL factor[TERMS];
        load_inverse(inverses + (ulong)(i / devices) * (ulong)(S * S), row, lane, &held);
        load_rows(matrix, at, ld, rank * ROWS + row, above, lane, factor);
        int own = S - 1 - thread % S;  // in the order of substitution
        if (i + 1 < end_step) CLUSTER_WAIT();
        if (thread < S * RHS_PER_GROUP)
            given[thread] = !loads    ? 0
                            : changed ? now[given_window + (ulong)((u - 1) * S + own)]
                                      : y[given_side + (ulong)(i * S + own)];
        BARRIER();
        apply_inverse(&held, given, partial, solved);
        if (rank == 0 && loads) x[given_side + (ulong)(i * S + own)] = solved[thread];
        for (int first = rank * ROWS; first < above; first += CLUSTER * ROWS) {
            int target = first + thread % ROWS;
            bool stores = updates && target < above;
            REAL value = !stores                         ? 0
                         : above - target + S <= changed ? now[updated_window + (ulong)((u - 1) * S - above + target)]
                                                         : y[updated_side + (ulong)(i * S - above + target)];
            if (first != rank * ROWS) load_rows(matrix, at, ld, first + row, above, lane, factor);
            multiply_rows(factor, solved + S - 1, -1, partial);
            if (stores)
                next[updated_window + (ulong)(u * S - above + target)] =
                    value - sum_of_lanes(partial + thread / ROWS * LANES * ROWS + thread % ROWS, ROWS);
            BARRIER();
        }
        CLUSTER_ARRIVE();
        GLOBAL REAL *read = now;
        now = next;
        next = read;
    }
    CLUSTER_WAIT();
}

#else

// The inverses of the triangles of this device's block columns: `lower` (slots, S, S) and `upper`, column-major, in the
// order of substitution, which for the upper triangle is from the last row and column to the first. A group computes
// CHUNK columns of one. `large` is set where an element times its column's pivot, which are those of a triangle
// of unit diagonal, is beyond `limit` or NaN: products with such an inverse lose digits that substitution keeps.
KERNEL invert_triangles(GLOBAL const REAL *matrix, GLOBAL REAL *lower, GLOBAL REAL *upper, GLOBAL uint *large,
                        const REAL limit, const int index, const int p, STORAGE_PARAMETERS) {
    LOCAL_ARRAY(REAL, x, S * (CHUNK + 1));
    int chunks = S / CHUNK, first_column = (int)group_index() % chunks * CHUNK, slot = (int)group_index() / chunks / 2,
        i = slot * devices + index, thread = (int)local_index(), column = thread % CHUNK;
    bool is_upper = (int)group_index() / chunks % 2 != 0, exists = i < p;
    int way = is_upper ? -1 : 1;
    GLOBAL const REAL *first = matrix + block_offset(exists ? i : index, exists ? i : index, u, ld, devices, slots);
    if (is_upper) first += (ulong)(S - 1) * (ulong)(ld + 1);
    for (int row = thread / CHUNK; row < S; row += GROUP_SIZE / CHUNK)
        x[row * (CHUNK + 1) + column] = row == first_column + column ? 1 : 0;
    for (int k = first_column; k < S; k++) {
        BARRIER();
        GLOBAL const REAL *factor = first + (int64)(way * k) * ld;
        REAL known = x[k * (CHUNK + 1) + column] / (is_upper ? factor[-k] : 1);
        for (int row = k + 1 + thread / CHUNK; row < S; row += GROUP_SIZE / CHUNK)
            x[row * (CHUNK + 1) + column] -= factor[way * row] * known;
    }
    BARRIER();
    GLOBAL REAL *out = (is_upper ? upper : lower) + (ulong)slot * (ulong)(S * S) + (ulong)(first_column * S);
    bool is_large = false;
    for (int e = thread; e < S * CHUNK; e += GROUP_SIZE) {
        int row = e % S, c = first_column + e / S;
        REAL pivot = is_upper ? first[-(int64)row * (ld + 1)] : 1, own = is_upper ? first[-(int64)c * (ld + 1)] : 1,
             value = x[row * (CHUNK + 1) + e / S] / pivot;
        is_large |= !(fabs(value * own) <= limit && fabs(value) <= REAL_MAX);
        if (exists) out[e] = value;
    }
    if (is_large && exists) atomic_or(large, 1u);
}

// permutations (p, window): each panel's interchanges composed. Row r of step i's window comes, by the interchanges of
// the step, from row permutations[i * window + r]; both count from the panel's first row. A group makes those of a step.
KERNEL compose_permutations(GLOBAL const int *pivots, GLOBAL int *permutations, const int window) {
    ulong step = group_index();
    GLOBAL int *row = permutations + step * (ulong)window;
    for (int r = (int)local_index(); r < window; r += GROUP_SIZE) row[r] = r;
    BARRIER();
    for (int k = 0; k < S && local_index() == 0; k++) {
        int other = pivots[step * S + (ulong)k] - 1, before = row[k];
        row[k] = row[other];
        row[other] = before;
    }
}
#endif
