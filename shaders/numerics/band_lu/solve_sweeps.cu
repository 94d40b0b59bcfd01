// Band LU: the sweeps L y = P b, U x = y, U^T y = b and L^T z = y, each in one launch: a thread block cluster of
// CLUSTER groups solves for RHS_PER_GROUP right-hand sides (CUDA compute capability 9). Launched by substitution.py.
// The factors of a step are loaded before the cluster barrier that ends the previous step, since they do not depend on
// it. The triangle of a step is multiplied by its inverse (solve_prepare.cu); every group computes the complete
// product, since a second barrier would take longer. S, REAL and letters: band_lu.h; UPPER and windows: solve_rows.h.
// The order of additions is the same for any cluster size and number of devices; with several devices each launches the
// steps first_step to end_step - 1. On an H200 a solve for one right-hand side takes a tenth to a quarter of the time
// of solve_steps.cu (assets/guides/band_lu.md).
#include "numerics/band_lu/band_lu.h"
#include "numerics/band_lu/solve_rows.h"

#define LANES 8  // partial sums per row
#define TERMS (S / LANES)  // terms per partial sum
#define ROWS (GROUP_SIZE / LANES)  // rows that a group updates at a time; a group has 4 S threads

// Inverses are stored in the order of substitution, so both are lower triangular: row r has r + 1 elements. A thread
// holds every LANES-th element, from `lane` on, of the long row S - 1 - `row` and of the short row `row`, row < S / 2,
// which have S + 1 elements together, so all threads have equal work.
typedef struct {
    REAL longer[TERMS], shorter[TERMS / 2];
} InverseRows;

// Loads the rows of an inverse. With `transposed` they come from the transposed inverse with rows and columns reversed:
// an upper triangle read from its last row and column is a lower triangle.
DEVICE void load_inverse(GLOBAL const REAL *inverse, int row, int lane, bool transposed, InverseRows *held) {
    UNROLL for (int e = 0; e < TERMS; e++) {
        int k = lane + LANES * e;
        held->longer[e] = k < S - row ? inverse[transposed ? row * S + S - 1 - k : k * S + S - 1 - row] : 0;
    }
    UNROLL for (int e = 0; e < TERMS / 2; e++) {
        int k = lane + LANES * e;
        held->shorter[e] = k <= row ? inverse[transposed ? (S - 1 - row) * S + S - 1 - k : k * S + row] : 0;
    }
}

// The sum of a row's LANES = 8 partial sums, which are `distance` apart.
DEVICE REAL sum_of_lanes(LOCAL const REAL *partial, int distance) {
    return ((partial[0] + partial[distance]) + (partial[2 * distance] + partial[3 * distance])) +
           ((partial[4 * distance] + partial[5 * distance]) + (partial[6 * distance] + partial[7 * distance]));
}

// solved = inverse times given, both (RHS_PER_GROUP, S) in the order of substitution. Called by all threads of a group.
// partial (RHS_PER_GROUP, LANES, S): the sums by lanes.
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

// Stores in `partial` the sums, by lanes, of the products of a row of factors and the solved block.
DEVICE void multiply_rows(const REAL *factor, LOCAL const REAL *solved, LOCAL REAL *partial) {
    int thread = (int)local_index(), row = thread % ROWS, lane = thread / ROWS;
    UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) {
        REAL sum = 0;
        UNROLL for (int e = 0; e < TERMS; e++) {
            int k = lane + LANES * e;
            sum += factor[e] * solved[m * S + (UPPER ? S - 1 - k : k)];
        }
        partial[(m * LANES + lane) * ROWS + row] = sum;
    }
    BARRIER();
}

// Loads a lane's TERMS elements of row `row` of the factors, from index `at` on; 0 beyond `rows`.
DEVICE void load_rows(GLOBAL const REAL *matrix, ulong at, int ld, int row, int rows, int lane, REAL *factor) {
    UNROLL for (int e = 0; e < TERMS; e++) factor[e] =
        row < rows ? matrix[at + (ulong)(lane + LANES * e) * (ulong)ld + (ulong)row] : 0;
}

// Parameters of both kernels, beside the factors and the vectors: the steps, p, and the sizes of solve_rows.h.
#define SWEEP_PARAMETERS                                                                                        \
    const int first_step, const int end_step, const int p, const int reach, const int padded_n, const int nrhs, \
        STORAGE_PARAMETERS
// Local memory of both kernels, for RHS_PER_GROUP right-hand sides: the S rows of a block before and after its triangle
// is solved, in the order of substitution, and partial sums.
#define SWEEP_ARRAYS                             \
    LOCAL_ARRAY(REAL, given, S *RHS_PER_GROUP);  \
    LOCAL_ARRAY(REAL, solved, S *RHS_PER_GROUP); \
    LOCAL_ARRAY(REAL, partial, S * LANES * RHS_PER_GROUP)

// L y = P b, or U x = y. `permutations` (p, window) is used for L only. In the code `at` is the index of the first row
// outside; block_row is this thread's row of the block, from the last one on for U; FIRST_OUTSIDE, SOURCE_ROW,
// VALUE_BEFORE and NEXT_ROW are macros of solve_rows.h.
KERNEL_CLUSTER(CLUSTER)
sweep(GLOBAL const REAL *matrix, GLOBAL const REAL *inverses, GLOBAL const REAL *source, GLOBAL REAL *solution,
      GLOBAL REAL *now, GLOBAL REAL *next, GLOBAL const int *permutations, const int window, SWEEP_PARAMETERS) {
    SWEEP_ARRAYS;
    const int thread = (int)local_index(), rank = (int)cluster_rank(), row = thread % ROWS, lane = thread / ROWS;
    // This thread loads a row of the block for right-hand side given_rhs, and updates a row outside for updated_rhs.
    const int first_rhs = (int)group_index() / CLUSTER * RHS_PER_GROUP, given_rhs = first_rhs + thread / S,
              updated_rhs = first_rhs + thread / ROWS;
    const bool loads = thread < S * RHS_PER_GROUP && given_rhs < nrhs,
               updates = thread < ROWS * RHS_PER_GROUP && updated_rhs < nrhs;
    const ulong given_side = (ulong)given_rhs * (ulong)padded_n;
    for (int step = first_step; step < end_step; step++) {
#if UPPER
        int i = first_step + end_step - 1 - step, outside = min(i, u) * S,
            changed_rows = i + 1 < p ? min(i + 1, u) * S : 0, block_row = S - 1 - thread % S;
#else
        int i = step, outside = min(window, (p - i) * S) - S, changed_rows = i ? min(window, (p - i + 1) * S) - S : 0,
            block_row = thread % S;
#endif
        ulong at = block_offset(i, i, u, ld, devices, slots) + (ulong)(int64)FIRST_OUTSIDE;  // negative for U
        InverseRows held;
        REAL factor[TERMS];
        load_inverse(inverses + (ulong)(i / devices) * (ulong)(S * S), row, lane, false, &held);
        load_rows(matrix, at, ld, rank * ROWS + row, outside, lane, factor);
        int from = SOURCE_ROW(block_row);
        if (step > first_step) CLUSTER_WAIT();
        if (thread < S * RHS_PER_GROUP) given[thread] = VALUE_BEFORE(given_rhs, from);
        BARRIER();
        apply_inverse(&held, row, lane, given, partial, solved);
        if (rank == 0 && loads) solution[given_side + (ulong)(i * S + block_row)] = solved[thread];
        for (int first = rank * ROWS; first < outside; first += CLUSTER * ROWS) {
            int target = FIRST_OUTSIDE + first + thread % ROWS;
            bool stores = updates && first + thread % ROWS < outside;
            int origin = stores ? SOURCE_ROW(target) : 0;
            REAL value = stores ? VALUE_BEFORE(updated_rhs, origin) : 0;
            if (first != rank * ROWS) load_rows(matrix, at, ld, first + row, outside, lane, factor);
            multiply_rows(factor, solved, partial);
            if (stores)
                next[(ulong)updated_rhs * (ulong)reach + (ulong)NEXT_ROW(target)] =
                    value - sum_of_lanes(partial + thread / ROWS * LANES * ROWS + thread % ROWS, ROWS);
            BARRIER();
        }
        CLUSTER_ARRIVE();
        GLOBAL REAL *read = now;  // the next step reads the window that this step wrote
        now = next;
        next = read;
    }
    CLUSTER_WAIT();
}

// Transposed sweeps. A step subtracts products of complete columns with the solved rows. Each group does this for
// COLUMNS of the S columns and stores the results in `sides` (2, nrhs, S); then every group reads all S of them and
// solves the triangle.
#define COLUMNS (S / CLUSTER)
#define THREADS_PER_COLUMN (GROUP_SIZE / COLUMNS)
#define AHEAD (S < 128 ? 16 : 8)  // rows per thread that are loaded before the cluster barrier

// Loads a thread's elements of a column into its registers `factor`.
DEVICE void load_column(GLOBAL const REAL *column, int rows, REAL *factor) {
    int first = (int)local_index() % THREADS_PER_COLUMN;
    UNROLL for (int e = 0; e < AHEAD; e++) {
        int row = first + THREADS_PER_COLUMN * e;
        factor[e] = row < rows ? column[row] : 0;
    }
}

// out = base minus the product of a column of `rows` rows and the solved values. `factor` holds the first AHEAD factors
// per thread. Values of the rows from `tail` on are in local memory, `solved` (RHS_PER_GROUP, S); other values are in
// `values`, with right-hand sides `pitch` apart.
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

// The column of this thread in the rows outside block i, which the step multiplies by solved values.
#define OUTSIDE_COLUMN(i, outside)                                                                   \
    (matrix + (block_offset(i, i, u, ld, devices, slots) + (ulong)(int64)(UPPER ? -(outside) : S)) + \
     (ulong)column * (ulong)ld)

// U^T y = b, or L^T z = y and x = P^T z. For U the last u S solved rows are read from `solution`; with several devices
// (`is_handed`) they come from `now` and go to `next`. For L the windows, and the rows of x that a step stores, are as
// in solve_transposed_step of solve_steps.cu. In the code the rows from `tail` on were solved in the step before and
// are still in `solved`; for L there are none (tail = outside). `values` are the other solved rows, `sum` the
// right-hand sides of the block's triangle in `sides`.
KERNEL_CLUSTER(CLUSTER)
transposed_sweep(GLOBAL const REAL *matrix, GLOBAL const REAL *inverses, GLOBAL const REAL *source,
                 GLOBAL REAL *solution, GLOBAL REAL *now, GLOBAL REAL *next, GLOBAL const int *permutations,
                 const int window, GLOBAL REAL *sides, const int is_handed, SWEEP_PARAMETERS) {
    SWEEP_ARRAYS;
    const int thread = (int)local_index(), rank = (int)cluster_rank();
    // This thread loads a row of the block for right-hand side given_rhs, and multiplies a part of a column.
    const int first_rhs = (int)group_index() / CLUSTER * RHS_PER_GROUP, given_rhs = first_rhs + thread / S;
    const bool loads = thread < S * RHS_PER_GROUP && given_rhs < nrhs;
    const ulong given_side = (ulong)given_rhs * (ulong)padded_n;
    const int column = rank * COLUMNS + thread / THREADS_PER_COLUMN;
    REAL factor[AHEAD];
    for (int step = first_step; step < end_step; step++) {
#if UPPER
        int i = step, outside = min(i, u) * S, tail = step > first_step ? outside - S : outside, block_row = thread % S;
        GLOBAL const REAL *values = is_handed ? now + (u * S - outside) : solution + (i * S - outside);
        const int pitch = is_handed ? reach : padded_n;
#else
        int i = first_step + end_step - 1 - step, outside = min(window, (p - i) * S) - S, tail = outside,
            block_row = S - 1 - thread % S;
        GLOBAL const REAL *values = now;
        const int pitch = reach;
#endif
        InverseRows held;
        load_inverse(inverses + (ulong)(i / devices) * (ulong)(S * S), thread / LANES, thread % LANES, true, &held);
        GLOBAL const REAL *outside_column = OUTSIDE_COLUMN(i, outside);
        if (!UPPER || step == first_step) load_column(outside_column, outside, factor);
        if (!UPPER && step > first_step) CLUSTER_WAIT();
        GLOBAL REAL *sum = sides + (ulong)(i % 2) * ((ulong)nrhs * S);
        subtract_column_product(outside_column, factor, outside, values, (ulong)pitch, solved, tail, first_rhs, nrhs,
                                partial, source + (i * S + rank * COLUMNS), (ulong)padded_n, sum + rank * COLUMNS);
        CLUSTER_ARRIVE();
        if (UPPER && step + 1 < end_step) {
            int next_outside = min(i + 1, u) * S;
            load_column(OUTSIDE_COLUMN(i + 1, next_outside), next_outside, factor);
        }
        CLUSTER_WAIT();
        if (thread < S * RHS_PER_GROUP) given[thread] = loads ? sum[(ulong)given_rhs * S + (ulong)block_row] : 0;
        BARRIER();
        apply_inverse(&held, thread / LANES, thread % LANES, given, partial, solved);
#if UPPER
        if (rank == 0 && loads) solution[given_side + (ulong)(i * S + thread % S)] = solved[thread];
        for (int m = 0; is_handed && rank == 0 && m < RHS_PER_GROUP && first_rhs + m < nrhs; m++) {
            ulong at = (ulong)(first_rhs + m) * (ulong)reach;
            for (int e = thread; e < u * S; e += GROUP_SIZE)
                next[at + (ulong)e] = e >= (u - 1) * S           ? solved[m * S + e - (u - 1) * S]
                                      : (i + 1 - u) * S + e >= 0 ? now[at + (ulong)(e + S)]
                                                                 : 0;
        }
#else
        for (int element = rank * GROUP_SIZE + thread; element < S + outside; element += CLUSTER * GROUP_SIZE) {
            int target = SOURCE_ROW(element), first_final = i ? window - S : 0;
            UNROLL for (int m = 0; m < RHS_PER_GROUP; m++) {
                if (first_rhs + m >= nrhs) continue;
                ulong at = (ulong)(first_rhs + m) * (ulong)reach;
                REAL value = element < S ? solved[m * S + S - 1 - element] : now[at + (ulong)(element - S)];
                if (target >= first_final)
                    solution[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(i * S + target)] = value;
                else
                    next[at + (ulong)target] = value;
            }
        }
        CLUSTER_ARRIVE();
        GLOBAL REAL *read = now;
        now = next;
        next = read;
#endif
    }
#if !UPPER
    CLUSTER_WAIT();
#endif
}
