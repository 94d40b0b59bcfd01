// Band LU: the sweeps L y = P b and U x = y, and U^T y = b and L^T z = y, each in one launch: a thread block cluster of
// CLUSTER groups solves RHS_PER_GROUP right-hand sides (CUDA compute capability 9). What a step needs of the factors
// does not depend on the step before it, so it is loaded before the cluster's barrier. The triangle of a step is a
// product with its inverse, which invert_triangles makes once for a factorization; every group computes all of it, for
// a second barrier would take longer. Names and windows are those of solve_blocked.cu; sums have the same order in any
// cluster and for any number of devices, each of which launches the steps first_step to end_step - 1 of its block
// columns.
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

// The same of the inverse transposed and turned around: an upper triangle, read from its last row and column on, is a
// lower one.
DEVICE void load_transposed_inverse(GLOBAL const REAL *inverse, int row, int lane, InverseRows *held) {
    UNROLL for (int e = 0; e < TERMS; e++) {
        int k = lane + LANES * e;
        held->longer[e] = k < S - row ? inverse[row * S + S - 1 - k] : 0;
    }
    UNROLL for (int e = 0; e < TERMS / 2; e++) {
        int k = lane + LANES * e;
        held->shorter[e] = k <= row ? inverse[(S - 1 - row) * S + S - 1 - k] : 0;
    }
}

// solved = inverse times `given`, both (RHS_PER_GROUP, S) in the order of substitution, by the whole group.
DEVICE void apply_inverse(const InverseRows *held, int row, int lane, LOCAL const REAL *given, LOCAL REAL *partial,
                          LOCAL REAL *solved) {
    int thread = (int)local_index();
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
        apply_inverse(&held, row, lane, given, partial, solved);
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
        apply_inverse(&held, row, lane, given, partial, solved);
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

// Transposed sweeps. A step has products of whole columns with what is solved: a group has COLUMNS of the S, then all
// groups have all sums, from `sides` (2, nrhs, S), and solve the triangle.
#define COLUMNS (S / CLUSTER)
#define THREADS_PER_COLUMN (GROUP_SIZE / COLUMNS)
#define AHEAD (S < 128 ? 16 : 8)  // rows of a thread that are loaded before the cluster's barrier

DEVICE void load_column(GLOBAL const REAL *column, int rows, REAL *factor) {
    int first = (int)local_index() % THREADS_PER_COLUMN;
    UNROLL for (int e = 0; e < AHEAD; e++) {
        int row = first + THREADS_PER_COLUMN * e;
        factor[e] = row < rows ? column[row] : 0;
    }
}

// out = base minus the product of a column of `rows` rows, the first of which are in `factor`, and the values: the last
// rows from `tail` on are in local memory (RHS_PER_GROUP, S), others in `values`, right-hand sides `pitch` apart.
DEVICE void subtract_column_product(GLOBAL const REAL *column, const REAL *factor, int rows, GLOBAL const REAL *values,
                                    ulong pitch, LOCAL const REAL *solved, int tail, int first_rhs, int nrhs,
                                    LOCAL REAL *partial, GLOBAL const REAL *base, ulong base_pitch, GLOBAL REAL *out) {
    int thread = (int)local_index(), c = thread / THREADS_PER_COLUMN, part = thread % THREADS_PER_COLUMN;
    UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) {
        bool exists = first_rhs + m < nrhs;
        GLOBAL const REAL *value = values + (exists ? (ulong)(first_rhs + m) * pitch : 0);
        REAL sum = 0;
        UNROLL for (int e = 0; e < AHEAD; e++) {
            int row = part + THREADS_PER_COLUMN * e;
            if (row < rows) sum += factor[e] * (row >= tail ? solved[m * S + row - tail] : value[row]);
        }
        for (int row = part + THREADS_PER_COLUMN * AHEAD; row < rows; row += THREADS_PER_COLUMN)
            sum += column[row] * (row >= tail ? solved[m * S + row - tail] : value[row]);
        partial[m * GROUP_SIZE + thread] = sum;
    }
    for (int distance = THREADS_PER_COLUMN / 2; distance > 0; distance /= 2) {
        BARRIER();
        UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) if (part < distance) partial[m * GROUP_SIZE + thread] +=
            partial[m * GROUP_SIZE + thread + distance];
    }
    UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) if (part == 0 && first_rhs + m < nrhs)
        out[(ulong)(first_rhs + m) * S + (ulong)c] =
            base[(ulong)(first_rhs + m) * base_pitch + (ulong)c] - partial[m * GROUP_SIZE + thread];
}

#define TRANSPOSED_VARIABLES                                                                                    \
    SWEEP_VARIABLES;                                                                                            \
    const int column = rank * COLUMNS + thread / THREADS_PER_COLUMN, pair = thread / LANES, k = thread % LANES; \
    const ulong sums = (ulong)nrhs * S, given_sum = (ulong)given_rhs * S

// U^T y = b. Where other devices have the steps before, `is_handed`, the last u S solved rows come from `now` and go to
// `next`; else they are those of y.
KERNEL_CLUSTER(CLUSTER)
upper_transposed_sweep(GLOBAL const REAL *matrix, GLOBAL const REAL *inverses, GLOBAL const REAL *b, GLOBAL REAL *y,
                       GLOBAL REAL *now, GLOBAL REAL *next, GLOBAL REAL *sides, const int is_handed, SWEEP_PARAMETERS) {
    TRANSPOSED_VARIABLES;
    REAL factor[AHEAD];
    for (int i = first_step; i < end_step; i++) {
        int above = min(i, u) * S, tail = i > first_step ? above - S : above;
        GLOBAL const REAL *first =
            matrix + (block_offset(i, i, u, ld, devices, slots) - (ulong)above) + (ulong)column * (ulong)ld;
        InverseRows held;
        load_transposed_inverse(inverses + (ulong)(i / devices) * (ulong)(S * S), pair, k, &held);
        if (i == first_step) load_column(first, above, factor);
        GLOBAL const REAL *values = is_handed ? now + (u * S - above) : y + (i * S - above);
        GLOBAL REAL *sum = sides + (ulong)(i % 2) * sums;
        subtract_column_product(first, factor, above, values, (ulong)(is_handed ? reach : padded_n), solved, tail,
                                first_rhs, nrhs, partial, b + (i * S + rank * COLUMNS), (ulong)padded_n,
                                sum + rank * COLUMNS);
        CLUSTER_ARRIVE();
        if (i + 1 < end_step) {
            int next_above = min(i + 1, u) * S;
            load_column(matrix + (block_offset(i + 1, i + 1, u, ld, devices, slots) - (ulong)next_above) +
                            (ulong)column * (ulong)ld,
                        next_above, factor);
        }
        CLUSTER_WAIT();
        if (thread < S * RHS_PER_GROUP) given[thread] = loads ? sum[given_sum + (ulong)(thread % S)] : 0;
        BARRIER();
        apply_inverse(&held, pair, k, given, partial, solved);
        if (rank == 0 && loads) y[given_side + (ulong)(i * S + thread % S)] = solved[thread];
        for (int m = 0; is_handed && rank == 0 && m < RHS_PER_GROUP && first_rhs + m < nrhs; m++) {
            ulong at = (ulong)(first_rhs + m) * (ulong)reach;
            for (int e = thread; e < u * S; e += GROUP_SIZE)
                next[at + (ulong)e] = e >= (u - 1) * S           ? solved[m * S + e - (u - 1) * S]
                                      : (i + 1 - u) * S + e >= 0 ? now[at + (ulong)(e + S)]
                                                                 : 0;
        }
    }
}

// L^T z = y, x = P^T z. Windows and the rows of x that a step makes are those of lower_transposed in
// solve_transposed.cu.
KERNEL_CLUSTER(CLUSTER)
lower_transposed_sweep(GLOBAL const REAL *matrix, GLOBAL const REAL *inverses, GLOBAL const REAL *y, GLOBAL REAL *x,
                       GLOBAL REAL *now, GLOBAL REAL *next, GLOBAL REAL *sides, GLOBAL const int *permutations,
                       const int window, SWEEP_PARAMETERS) {
    TRANSPOSED_VARIABLES;
    for (int i = end_step - 1; i >= first_step; i--) {
        int rows = min(window, (p - i) * S), first_final = i ? window - S : 0;
        GLOBAL const REAL *first = matrix + (block_offset(i, i, u, ld, devices, slots) + S) + (ulong)column * (ulong)ld;
        REAL factor[AHEAD];
        InverseRows held;
        load_transposed_inverse(inverses + (ulong)(i / devices) * (ulong)(S * S), pair, k, &held);
        load_column(first, rows - S, factor);
        if (i + 1 < end_step) CLUSTER_WAIT();
        GLOBAL REAL *sum = sides + (ulong)(i % 2) * sums;
        subtract_column_product(first, factor, rows - S, now, (ulong)reach, solved, rows, first_rhs, nrhs, partial,
                                y + (i * S + rank * COLUMNS), (ulong)padded_n, sum + rank * COLUMNS);
        CLUSTER_BARRIER();
        if (thread < S * RHS_PER_GROUP) given[thread] = loads ? sum[given_sum + (ulong)(S - 1 - thread % S)] : 0;
        BARRIER();
        apply_inverse(&held, pair, k, given, partial, solved);
        for (int row_index = rank * GROUP_SIZE + thread; row_index < rows; row_index += CLUSTER * GROUP_SIZE) {
            int target = permutations[(ulong)i * (ulong)window + (ulong)row_index];
            UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) {
                if (first_rhs + m >= nrhs) continue;
                ulong at = (ulong)(first_rhs + m) * (ulong)reach;
                REAL value = row_index < S ? solved[m * S + S - 1 - row_index] : now[at + (ulong)(row_index - S)];
                if (target >= first_final)
                    x[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(i * S + target)] = value;
                else
                    next[at + (ulong)target] = value;
            }
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
// the step, from row permutations[i * window + r]; both count from the panel's first row. A group makes those of a
// step.
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
