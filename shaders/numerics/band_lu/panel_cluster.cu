// Band LU: factors a panel in one launch by a thread block cluster (CUDA compute capability 9) of CLUSTER groups of
// ROWS_PER_GROUP rows. Sub-panels of INNER_BLOCK columns are factored in registers and then applied to
// the other columns. For every column each group stores its pivot candidate, value and row, into the distributed shared
// memory of all groups, which then choose the pivot without a cluster barrier. A narrow panel is factored by one group
// (CLUSTER 1), with group barriers, in local memory if the panel fits there (HELD_PITCH). With lookahead.cu this kernel
// raised the rate of the resident factorization with kl = ku = 4,096 on an H200 from 9,442 GFLOP/s, with panel.cu, to
// 15,859 (h200_band_lu.jsonl). Launched by device_columns.py.
//
// Words as in OpenCL: a group is a thread block, local memory is shared memory. Letters (S, p, l, u, ld) as in
// band_lu.h. Compile-time inputs, chosen by panel_shape() in device_columns.py:
//   REAL, DOUBLE  the type of the elements; DOUBLE is 1 for double
//   S             columns of a panel, the block size
//   INNER_BLOCK   columns of a sub-panel: 16, 8 or 4, a divisor of S
//   GROUP_SIZE    threads of a group, a multiple of the warp size 32, at least 64
//   ROWS          rows of a thread, whose elements of the sub-panel are in its registers
//   CLUSTER       groups of the cluster: 1, 8 or 16; CLUSTER * GROUP_SIZE * ROWS >= rows of the panel
//   BATCH         columns that a thread updates at a time where there are no tensor cores; a divisor of INNER_BLOCK
//   HELD_PITCH    leading dimension of the panel in local memory; 0 if the panel stays in global memory
//
// Step j of factor_columns(), which factors column j of a sub-panel: each group sends its candidate (the largest
// element of its rows and the row) to all groups, and the warps that hold the candidate row and the diagonal row send
// these rows. Each group waits for the CLUSTER candidates, chooses the pivot row among them, waits for the rows and
// eliminates. So no group can be two columns ahead of another: it would need a candidate that the other one has not
// sent. Hence two buffers (column % 2) for the candidates and diagonal rows. A pivot row is still read while the next
// column's candidates are on their way (eliminate_rest), so pivot rows have three (column % 3).
#include "numerics/band_lu/band_lu.h"

#if CLUSTER == 1
#undef KERNEL_CLUSTER
#undef CLUSTER_ARRIVE
#undef CLUSTER_WAIT
#undef CLUSTER_BARRIER
#undef cluster_rank
#define KERNEL_CLUSTER(groups) KERNEL
#define CLUSTER_ARRIVE()
#define CLUSTER_WAIT() BARRIER()
#define CLUSTER_BARRIER() BARRIER()
#define cluster_rank() 0
#endif

#define WARP_SIZE 32
#define ROWS_PER_GROUP (GROUP_SIZE * ROWS)
// Bytes that a group receives for every column: the candidates, then the candidate rows and the diagonal row.
#define CANDIDATES_BYTES (CLUSTER * 2 * sizeof(REAL))  // of each group a value, and the bits of its row
#define ROWS_BYTES ((CLUSTER + 1) * INNER_BLOCK * sizeof(REAL))
// Whether update_columns() multiplies by tensor cores, whose factors have 8 columns.
#define BY_TENSOR_CORES (HAS_FP64_TENSOR_CORES && DOUBLE && INNER_BLOCK % 8 == 0)
#define NO_ROW 0xffffffffu  // the row of a candidate if no row is left: IAMAX_THREAD in band_lu.h
// Element (row k, column c) of the rows of U, swizzled: a warp reads four rows of eight columns from different banks.
#define UPPER(c, k) upper[(c) * INNER_BLOCK + ((k) ^ (((c) * INNER_BLOCK / 16 & (INNER_BLOCK / 4 - 1)) << 2))]

#if DOUBLE
#define BITS_AS_REAL(bits) as_double((ulong)(bits))
#define REAL_AS_BITS(x) ((uint)as_ulong(x))
#else
#define BITS_AS_REAL(bits) as_float(bits)
#define REAL_AS_BITS(x) as_uint(x)
#endif
typedef struct __align__(2 * sizeof(REAL)) {
    REAL first, second;
} RealPair;

typedef struct {  // a panel, and the rows of it that a thread holds; rows are counted from the top of the panel
    GLOBAL REAL *first;  // the panel's first element; columns are ld elements apart
    int ld, rows, rank;  // rows of the panel; rank of this group in the cluster
    int warp, lane;
    int top;  // this thread's first row; its other rows follow at distances of GROUP_SIZE
} Panel;

// Local memory of a group for the columns of a sub-panel. The other groups of the cluster write the first four arrays
// (DSMEM_STORE). Where an array has one part for even and one for odd columns, the parity is the diagonal row's, since
// `first` is even. An mbarrier and its part are used again two columns later, so the phases of an mbarrier have
// the parity of column / 2.
typedef struct {
    LOCAL ulong *mbarriers;  // (4): of candidates for even and odd columns, of rows for even and odd columns
    LOCAL REAL *pivot_rows;  // (3, CLUSTER, INNER_BLOCK): the candidate row of each group, by column % 3
    LOCAL REAL *diagonal_row_values;  // (2, INNER_BLOCK): the row that the pivot row replaces
    LOCAL REAL *candidates;  // (2, CLUSTER, 2): the largest element of each group, and the bits of its row, or NO_ROW
    LOCAL REAL *best_size;  // (2, WARP_SIZE): the largest magnitude of each warp
    LOCAL uint *best_row;  // (2, WARP_SIZE): the rows of best_size
    LOCAL REAL *staged;  // (2, INNER_BLOCK): the candidate row and the diagonal row before they are sent
    LOCAL int *ipiv;  // (INNER_BLOCK): the pivot rows of the sub-panel's columns
} Exchange;

// Column c of a panel. A panel has fewer than 2^31 elements.
DEVICE GLOBAL REAL *column_of(const Panel *p, int c) { return p->first + c * p->ld; }
// The k-th row of this thread.
DEVICE int row_of(const Panel *p, int k) { return p->top + k * GROUP_SIZE; }

// Stores a row of a sub-panel into the local memory of all groups of the cluster, by one warp.
#define ROW_PAIRS (INNER_BLOCK / 2)  // words travel in pairs: the network, not their bytes, is what takes time
#define STORES_PER_LANE ((CLUSTER * ROW_PAIRS + WARP_SIZE - 1) / WARP_SIZE)
DEVICE void store_row_to_cluster(LOCAL const REAL *from, LOCAL REAL *to, LOCAL ulong *mbarrier, int lane) {
    REAL word[STORES_PER_LANE][2];
    UNROLL for (int m = 0; m < 2 * STORES_PER_LANE; m++) word[m / 2][m % 2] =
        from[(lane + m / 2 * WARP_SIZE) % ROW_PAIRS * 2 + m % 2];
    UNROLL for (int m = 0; m < STORES_PER_LANE; m++) {
        int e = lane + m * WARP_SIZE;
        if (CLUSTER * ROW_PAIRS % WARP_SIZE == 0 || e < CLUSTER * ROW_PAIRS)
            DSMEM_STORE(to + e % ROW_PAIRS * 2, e / ROW_PAIRS, word[m][0], word[m][1], mbarrier);
    }
}

// The largest magnitude at or below the diagonal row of the column in value[][0] among the group's rows, and the
// uppermost row that has it (BLAS: iamax); NO_ROW if the group has no such row.
DEVICE void find_candidate(const Panel *p, REAL (*value)[INNER_BLOCK], int diagonal_row, Exchange exchange, REAL *size,
                           uint *best_row) {
#define ROW_OF(k) row_of(p, k)
    int part = (diagonal_row & 1) * WARP_SIZE;
    IAMAX_THREAD(ROW_OF, diagonal_row, p->rows, value, *size, *best_row)
    iamax_group(size, best_row, exchange.best_size + part, exchange.best_row + part);
}

// The deferred part of the elimination with column j - 1: subtracts `factor`, the multipliers of that column, times
// `pivot_row_values`, its pivot row, from the columns right of column j, which eliminate_next has not updated. These
// columns shift left by one, and column j - 1, finished in value[][1], moves to the end, so that all register indices
// are constants. Columns in value[k][0 .. 3] if INNER_BLOCK is 4 and column 0 is finished:
//     at the start of step 1        1 2 3 0
//     after its eliminate_next      2 1 3 0   column 1 is finished, and column 2 updated with it
//     after step 2's eliminate_rest 2 3 0 1   column 3 is updated with column 1, while candidates of column 2 travel
DEVICE void eliminate_rest(REAL (*value)[INNER_BLOCK], const REAL *factor, LOCAL const REAL *pivot_row_values, int j) {
    FOR_ROWS(k) {
        REAL done = value[k][1];
        UNROLL for (int c = 2; c < INNER_BLOCK; c++) value[k][c - 1] =
            c <= INNER_BLOCK - j ? value[k][c] - factor[k] * pivot_row_values[c] : value[k][c];
        value[k][INNER_BLOCK - 1] = done;
    }
}

#if CLUSTER > 1
// Sends the candidate of the group, its value and row index, to all groups, by the warp that holds it.
DEVICE void store_candidate_to_cluster(const Panel *p, REAL (*value)[INNER_BLOCK], int diagonal_row, uint best_row,
                                       Exchange exchange) {
    int parity = diagonal_row & 1;
    REAL best_value = 0;
    FOR_ROWS(k) {
        if ((uint)row_of(p, k) == best_row) best_value = value[k][0];
    }
    // The lane that holds the row: rows of a group begin at a multiple of WARP_SIZE.
    best_value = warp_shuffle(best_value, (int)best_row % WARP_SIZE);
    if (p->lane < CLUSTER)  // lane k sends to group k
        DSMEM_STORE(exchange.candidates + (parity * CLUSTER + p->rank) * 2, p->lane,
                    best_row == NO_ROW ? 0 : best_value, BITS_AS_REAL(best_row), exchange.mbarriers + parity);
}

// Sends the elements of the candidate row and of the diagonal row to all groups, each by the warp that holds it:
// `has_candidate` and `has_diagonal` are true for all threads of that warp.
DEVICE void store_rows_to_cluster(const Panel *p, REAL (*value)[INNER_BLOCK], int diagonal_row, uint best_row,
                                  bool has_candidate, bool has_diagonal, Exchange exchange) {
    FOR_ROWS(k) {
        int row = row_of(p, k);
        if ((uint)row == best_row) {
            FOR_COLUMNS(c) exchange.staged[c] = value[k][c];
        }
        if (row == diagonal_row) {
            FOR_COLUMNS(c) exchange.staged[INNER_BLOCK + c] = value[k][c];
        }
    }
    WARP_BARRIER();
    int parity = diagonal_row & 1;
    LOCAL ulong *mbarrier = exchange.mbarriers + 2 + parity;
    LOCAL REAL *pivot_row = exchange.pivot_rows + (diagonal_row % 3 * CLUSTER + p->rank) * INNER_BLOCK;
    if (has_candidate) store_row_to_cluster(exchange.staged, pivot_row, mbarrier, p->lane);
    if (has_diagonal)
        store_row_to_cluster(exchange.staged + INNER_BLOCK, exchange.diagonal_row_values + parity * INNER_BLOCK,
                             mbarrier, p->lane);
}

// The pivot row among the candidates of the groups, which must have arrived, and the reciprocal of the pivot.
DEVICE int choose_pivot(const Panel *p, int diagonal_row, Exchange exchange, REAL *inverse_pivot) {
    bool is_group = p->lane < CLUSTER;  // lane k compares the candidate of group k
    LOCAL const REAL *sent = exchange.candidates + ((diagonal_row & 1) * CLUSTER + (is_group ? p->lane : 0)) * 2;
    REAL candidate = is_group ? sent[0] : 0, size = fabs(candidate);
    uint best_row = is_group ? REAL_AS_BITS(sent[1]) : NO_ROW;
    REAL inverse = candidate == 0 ? (REAL)0 : (REAL)1 / candidate;  // every lane computes one, while they are compared
    iamax_warp(&size, &best_row);
    int pivot_row = best_row < (uint)p->rows ? (int)best_row : diagonal_row;
    *inverse_pivot = warp_shuffle(inverse, pivot_row / ROWS_PER_GROUP);
    return pivot_row;
}

// Chooses the pivot row of column j among the rows of all groups, finishes the elimination with column j - 1, and
// brings the pivot row and the diagonal row into `exchange`: every group gets the candidates of all groups, and their
// rows. Returns the pivot row; *inverse_pivot becomes the reciprocal of the pivot.
DEVICE int exchange_rows(const Panel *p, REAL (*value)[INNER_BLOCK], const REAL *factor,
                         LOCAL const REAL *pivot_row_values, int j, int diagonal_row, Exchange exchange,
                         REAL *inverse_pivot) {
    LOCAL ulong *candidates_arrive = exchange.mbarriers + (diagonal_row & 1), *rows_arrive = candidates_arrive + 2;
    uint phase = (uint)(diagonal_row / 2) & 1u, best_row;
    REAL size;
    if (p->warp == 0 && p->lane == 0) {
        mbarrier_expect_tx(candidates_arrive, CANDIDATES_BYTES);
        mbarrier_expect_tx(rows_arrive, ROWS_BYTES);
    }
    find_candidate(p, value, diagonal_row, exchange, &size, &best_row);
    int group_row = (int)best_row - p->rank * ROWS_PER_GROUP;  // both rows counted from the group's first row
    int group_diagonal = diagonal_row - p->rank * ROWS_PER_GROUP;
    bool has_candidate = p->warp == (best_row == NO_ROW ? 0 : group_row % GROUP_SIZE / WARP_SIZE);
    bool has_diagonal =
        group_diagonal >= 0 && group_diagonal < ROWS_PER_GROUP && group_diagonal % GROUP_SIZE / WARP_SIZE == p->warp;
    if (has_candidate) store_candidate_to_cluster(p, value, diagonal_row, best_row, exchange);
    if (j > 0) eliminate_rest(value, factor, pivot_row_values, j);
    if (has_candidate || has_diagonal)
        store_rows_to_cluster(p, value, diagonal_row, best_row, has_candidate, has_diagonal, exchange);
    mbarrier_wait(candidates_arrive, phase);
    int pivot_row = choose_pivot(p, diagonal_row, exchange, inverse_pivot);
    mbarrier_wait(rows_arrive, phase);
    return pivot_row;
}
#else
// The same by the only group, which copies the two rows into `exchange` itself.
DEVICE int exchange_rows(const Panel *p, REAL (*value)[INNER_BLOCK], const REAL *factor,
                         LOCAL const REAL *pivot_row_values, int j, int diagonal_row, Exchange exchange,
                         REAL *inverse_pivot) {
    LOCAL REAL *pivot_copy = exchange.pivot_rows + diagonal_row % 3 * INNER_BLOCK;
    LOCAL REAL *diagonal_copy = exchange.diagonal_row_values + (diagonal_row & 1) * INNER_BLOCK;
    REAL size;
    uint best_row;
    find_candidate(p, value, diagonal_row, exchange, &size, &best_row);
    int pivot_row = best_row < (uint)p->rows ? (int)best_row : diagonal_row;
    REAL inverse_size = size == 0 ? (REAL)0 : (REAL)1 / size;  // while rows are stored and waited for
    if (j > 0) eliminate_rest(value, factor, pivot_row_values, j);
    FOR_ROWS(k) {
        if (row_of(p, k) == pivot_row) {
            FOR_COLUMNS(c) pivot_copy[c] = value[k][c];
        }
        if (row_of(p, k) == diagonal_row) {
            FOR_COLUMNS(c) diagonal_copy[c] = value[k][c];
        }
    }
    BARRIER();
    *inverse_pivot = pivot_copy[0] < 0 ? -inverse_size : inverse_size;  // `size` is the pivot's magnitude
    return pivot_row;
}
#endif

// Interchanges rows `pivot_row` and `diagonal_row` in registers and eliminates in the first two columns: afterwards
// value[][1] is the finished column and value[][0] the next one, unless column j was the `last`. `factor` receives the
// multipliers of the column for the thread's rows. The other columns are eliminated later (eliminate_rest), so that
// the candidate of the next column is on its way as early as possible.
DEVICE void eliminate_next(const Panel *p, REAL (*value)[INNER_BLOCK], REAL *factor, int diagonal_row, int pivot_row,
                           REAL inverse_pivot, bool last, LOCAL const REAL *pivot_row_values,
                           LOCAL const REAL *diagonal_row_values) {
    REAL pivot = pivot_row_values[0];
    bool tiny = fabs(pivot) < SFMIN;  // 1 / pivot would overflow: divide, as LAPACK does
    FOR_ROWS(k) {
        int row = row_of(p, k);
        if (row == pivot_row && pivot_row != diagonal_row) {
            FOR_COLUMNS(c) value[k][c] = diagonal_row_values[c];
        }
        if (row == diagonal_row) {
            FOR_COLUMNS(c) value[k][c] = pivot_row_values[c];
        }
        factor[k] = row > diagonal_row ? value[k][0] * inverse_pivot : 0;
    }
    if (tiny && pivot != 0) {
        FOR_ROWS(k) factor[k] = row_of(p, k) > diagonal_row ? value[k][0] / pivot : 0;
    }
    FOR_ROWS(k) {
        REAL done = row_of(p, k) > diagonal_row && pivot != 0 ? factor[k] : value[k][0];
        value[k][0] = last ? value[k][1] : value[k][1] - factor[k] * pivot_row_values[1];
        value[k][1] = done;
    }
}

// Factors the sub-panel of columns `first` to first + INNER_BLOCK - 1 of the panel, in registers, as P L U. Of equal
// magnitudes the uppermost row is the pivot, as in LAPACK. `panel_column`: the panel's first column in the matrix; it
// indexes `pivots`. info[0] becomes the first column (from 1) with a zero pivot.
DEVICE void factor_columns(const Panel *p, REAL (*value)[INNER_BLOCK], int first, int panel_column, GLOBAL int *pivots,
                           GLOBAL int *info, Exchange exchange) {
    REAL factor[ROWS];
    FOR_ROWS(k) factor[k] = 0;
    LOCAL const REAL *pivot_row_values = exchange.pivot_rows;
    NO_UNROLL for (int j = 0; j < INNER_BLOCK; j++) {  // column j is value[][0]
        int diagonal_row = first + j;
        REAL inverse_pivot;
        int pivot_row = exchange_rows(p, value, factor, pivot_row_values, j, diagonal_row, exchange, &inverse_pivot);
        int sender = pivot_row / ROWS_PER_GROUP;
        pivot_row_values = exchange.pivot_rows + (diagonal_row % 3 * CLUSTER + sender) * INNER_BLOCK;
        eliminate_next(p, value, factor, diagonal_row, pivot_row, inverse_pivot, j == INNER_BLOCK - 1, pivot_row_values,
                       exchange.diagonal_row_values + (diagonal_row & 1) * INNER_BLOCK);
        if (p->warp == 0 && p->lane == 0) {
            exchange.ipiv[j] = pivot_row;
            if (p->rank == 0) {
                pivots[panel_column + diagonal_row] = pivot_row + 1;
                if (pivot_row_values[0] == 0 && info[0] == 0) info[0] = panel_column + diagonal_row + 1;
            }
        }
    }
    eliminate_rest(value, factor, pivot_row_values, INNER_BLOCK);
}

// Applies the row interchanges of the sub-panel to the other columns of the panel, which are divided among the groups
// (LAPACK: laswp). The INNER_BLOCK interchanges concern at most 2 INNER_BLOCK rows: the diagonal rows and the pivot
// rows. Entry e of `to` is such a row, and entry e of `from` the row whose elements the interchanges move there. All
// elements are read into `moved` before any is written.
DEVICE void laswp(const Panel *p, int first, LOCAL const int *ipiv, LOCAL int *to, LOCAL int *from, LOCAL REAL *moved) {
    int thread = (int)local_index();
    for (int e = thread; e < 2 * INNER_BLOCK; e += GROUP_SIZE) {
        int new_row = e < INNER_BLOCK ? first + e : ipiv[e - INNER_BLOCK], old_row = new_row;
        NO_UNROLL for (int j = INNER_BLOCK - 1; j >= 0; j--) old_row = row_before(old_row, first + j, ipiv[j]);
        to[e] = new_row;
        from[e] = old_row;
    }
    BARRIER();
    int others = (S - INNER_BLOCK - p->rank + CLUSTER - 1) / CLUSTER;
    for (int e = thread; e < 2 * INNER_BLOCK * others; e += GROUP_SIZE) {
        int c = p->rank + e / (2 * INNER_BLOCK) * CLUSTER;
        moved[e] = column_of(p, c < first ? c : c + INNER_BLOCK)[from[e % (2 * INNER_BLOCK)]];
    }
    BARRIER();
    for (int e = thread; e < 2 * INNER_BLOCK * others; e += GROUP_SIZE) {
        int c = p->rank + e / (2 * INNER_BLOCK) * CLUSTER;
        column_of(p, c < first ? c : c + INNER_BLOCK)[to[e % (2 * INNER_BLOCK)]] = moved[e];
    }
}

#define COLUMNS_AT_ONCE 4  // columns of a lane
#define FOR_COLUMNS_AT_ONCE(q) UNROLL for (int q = 0; q < COLUMNS_AT_ONCE; q++)
#define COLUMNS_PER_PASS (GROUP_SIZE / INNER_BLOCK)  // columns that a group solves at a time, per lane
// Computes the rows of U of the sub-panel in the columns from `right` on, by forward substitution with the sub-panel's
// unit lower triangle (BLAS: trsm). Every group computes all of them into its local memory `upper`, which saves a
// cluster barrier. Lane k of INNER_BLOCK lanes has row k of a column.
DEVICE void solve_upper(const Panel *p, int first, int right, LOCAL REAL *upper) {
    int k = p->lane % INNER_BLOCK;
    REAL factor[INNER_BLOCK];
    UNROLL for (int m = 0; m < INNER_BLOCK - 1; m++) factor[m] = column_of(p, first + m)[first + k];
    NO_UNROLL for (int start = right; start < S; start += COLUMNS_AT_ONCE * COLUMNS_PER_PASS) {
        REAL x[COLUMNS_AT_ONCE];
        FOR_COLUMNS_AT_ONCE(q) {
            int c = start + q * COLUMNS_PER_PASS + (int)local_index() / INNER_BLOCK;
            x[q] = c < S ? column_of(p, c)[first + k] : 0;
        }
        UNROLL for (int m = 0; m < INNER_BLOCK - 1; m++) {
            FOR_COLUMNS_AT_ONCE(q) {
                REAL solved = warp_shuffle(x[q], p->lane - k + m);
                if (k > m) x[q] -= factor[m] * solved;
            }
        }
        FOR_COLUMNS_AT_ONCE(q) {
            int c = start + q * COLUMNS_PER_PASS + (int)local_index() / INNER_BLOCK;
            if (c < S) UPPER(c, k) = x[q];
        }
    }
}

// Stores the rows of U into the panel, each group some columns. To be called after all groups have read the old rows in
// solve_upper(), so after a cluster barrier.
DEVICE void write_upper(const Panel *p, int first, int right, LOCAL const REAL *upper) {
    for (int e = (int)local_index(); e < INNER_BLOCK * (S - right); e += GROUP_SIZE) {
        int c = right + e / INNER_BLOCK;
        if (c % CLUSTER == p->rank) column_of(p, c)[first + e % INNER_BLOCK] = UPPER(c, e % INNER_BLOCK);
    }
}

#if BY_TENSOR_CORES
// Subtracts the product of the sub-panel and the rows of U from the rows of the group, by tensor cores: 32 rows of 8
// columns per warp, as four products of (8 rows, 4) by (4, 8 columns). Of these a lane holds the elements that
// mma.m8n8k4 gives it (PTX manual): row lane / 4, column lane % 4 of the left factor, columns 2 (lane % 4) and the next
// of the sum. `value` is unused: the sub-panel is read from memory, where store_subpanel() wrote it.
DEVICE void update_columns(const Panel *p, REAL (*value)[INNER_BLOCK], int first, int right, LOCAL const REAL *upper) {
    int row_lane = p->lane / 4, column_lane = p->lane % 4;
    NO_UNROLL for (int k = 0; k < ROWS; k++) {
        int top = row_of(p, k) - p->lane + row_lane;
        if (top - row_lane >= p->rows || top - row_lane + WARP_SIZE <= right) continue;
        REAL left[4][INNER_BLOCK / 4];
        UNROLL for (int e = 0; e < INNER_BLOCK; e++) {
            int row = top + e % 4 * 8;
            left[e % 4][e / 4] = row < p->rows ? -column_of(p, first + e / 4 * 4 + column_lane)[row] : 0;
        }
        NO_UNROLL for (int c = right; c < S; c += 8) {
            GLOBAL REAL *target = column_of(p, c + 2 * column_lane) + top;
            REAL sum[4][2];
            UNROLL for (int e = 0; e < 8; e++) {
                int down = e / 2 * 8;
                sum[e / 2][e % 2] = top + down < p->rows ? target[e % 2 * p->ld + down] : 0;
            }
            UNROLL for (int q = 0; q < INNER_BLOCK / 4; q++) {
                REAL factor = UPPER(c + row_lane, q * 4 + column_lane);
                UNROLL for (int m = 0; m < 4; m++) mma_m8n8k4_f64(sum[m], left[m][q], factor);
            }
            UNROLL for (int e = 0; e < 8; e++) {
                int down = e / 2 * 8;
                if (top + down >= right && top + down < p->rows) target[e % 2 * p->ld + down] = sum[e / 2][e % 2];
            }
        }
    }
}
#else
#define FOR_BATCH(m) UNROLL for (int m = 0; m < BATCH; m++)
// update_columns without tensor cores: every thread updates its rows, BATCH columns at a time.
DEVICE void update_columns(const Panel *p, REAL (*value)[INNER_BLOCK], int first, int right, LOCAL const REAL *upper) {
    NO_UNROLL for (int c = right; c < S; c += BATCH) {
        REAL sum[BATCH][ROWS];
        FOR_BATCH(m) {
            FOR_ROWS(k) {
                int row = row_of(p, k);
                sum[m][k] = row >= right && row < p->rows ? column_of(p, c + m)[row] : 0;
            }
        }
        FOR_BATCH(m) {
            FOR_COLUMNS(j) { FOR_ROWS(k) sum[m][k] -= value[k][j] * UPPER(c + m, j); }
            COMPILER_BARRIER();
        }
        FOR_BATCH(m) {
            FOR_ROWS(k) {
                int row = row_of(p, k);
                if (row >= right && row < p->rows) column_of(p, c + m)[row] = sum[m][k];
            }
        }
    }
}
#endif

// Loads the rows of a sub-panel into registers, and stores them.
DEVICE void load_subpanel(const Panel *p, REAL (*value)[INNER_BLOCK], int first) {
    FOR_ROWS(k) {
        int row = row_of(p, k);
        FOR_COLUMNS(c) value[k][c] = row >= first && row < p->rows ? column_of(p, first + c)[row] : 0;
    }
}
// Stores the subpanel from registers, from its row `first` on.
DEVICE void store_subpanel(const Panel *p, REAL (*value)[INNER_BLOCK], int first) {
    FOR_ROWS(k) {
        int row = row_of(p, k);
        FOR_COLUMNS(c) {
            if (row >= first && row < p->rows) column_of(p, first + c)[row] = value[k][c];
        }
    }
}

#if HELD_PITCH
// Copies S columns of a panel to or from the local memory of the one group, where it is factored.
DEVICE void copy_columns(GLOBAL const REAL *from, int from_ld, GLOBAL REAL *to, int to_ld, int rows) {
    for (int row = (int)local_index(); row < rows; row += GROUP_SIZE) {
        for (int c = 0; c < S; c += 16) {
            REAL column[16];
            UNROLL for (int e = 0; e < 16; e++) column[e] = from[(c + e) * from_ld + row];
            UNROLL for (int e = 0; e < 16; e++) to[(c + e) * to_ld + row] = column[e];
        }
    }
}
#endif

// Factors panel i of p panels as P L U. `pivots` (p S) receives rows of the panel, from 1 on; `info` (1) the first
// column of the matrix (from 1) whose pivot is 0, unless it is set already. `l`: blocks below the diagonal block.
//
// Barriers of the cluster: every CLUSTER_ARRIVE has its CLUSTER_WAIT in the next round, after factor_columns. The
// wait ends once all groups have updated their rows with the previous sub-panel. Then the rows of U that the update
// read may be overwritten (write_upper), and their elements moved (laswp).
KERNEL_CLUSTER(CLUSTER)
factor_panel(GLOBAL REAL *matrix, const int i, GLOBAL int *pivots, GLOBAL int *info, const int p, const int l,
             STORAGE_PARAMETERS) {
    LOCAL_ARRAY(ulong, mbarriers, 4);
    LOCAL_ARRAY(RealPair, pivot_rows, 3 * CLUSTER * ROW_PAIRS);
    LOCAL_ARRAY(RealPair, diagonal_row_values, INNER_BLOCK);
    LOCAL_ARRAY(RealPair, candidates, 2 * CLUSTER);
    LOCAL_ARRAY(REAL, best_size, 2 * WARP_SIZE);
    LOCAL_ARRAY(uint, best_row, 2 * WARP_SIZE);
    LOCAL_ARRAY(REAL, staged, 2 * INNER_BLOCK);
    LOCAL_ARRAY(int, ipiv, INNER_BLOCK);
    LOCAL_ARRAY(REAL, upper, INNER_BLOCK * S);
    LOCAL_ARRAY(REAL, moved, 2 * INNER_BLOCK * ((S + CLUSTER - 1) / CLUSTER));
    LOCAL_ARRAY(int, moves_to, 2 * INNER_BLOCK);
    LOCAL_ARRAY(int, moves_from, 2 * INNER_BLOCK);
    Exchange exchange = {
        mbarriers, &pivot_rows->first, &diagonal_row_values->first, &candidates->first, best_size, best_row, staged,
        ipiv};
    int thread = (int)local_index(), rank = (int)cluster_rank();
    Panel panel = {matrix + block_offset(i, i, u, ld, devices, slots),
                   ld,
                   min(l + 1, p - i) * S,
                   rank,
                   thread / WARP_SIZE,
                   thread % WARP_SIZE,
                   rank * ROWS_PER_GROUP + thread};
#if HELD_PITCH
    LARGE_LOCAL_ARRAY(REAL, held, HELD_PITCH * S);
    copy_columns(panel.first, ld, held, HELD_PITCH, panel.rows);
    BARRIER();
    panel.first = held;
    panel.ld = HELD_PITCH;
#endif
    REAL value[ROWS][INNER_BLOCK];
    for (int k = thread; k < 4; k += GROUP_SIZE) mbarrier_init(mbarriers + k);
    CLUSTER_BARRIER();
    CLUSTER_ARRIVE();
    NO_UNROLL for (int first = 0; first < S; first += INNER_BLOCK) {
        int right = first + INNER_BLOCK;
        load_subpanel(&panel, value, first);
        factor_columns(&panel, value, first, i * S, pivots, info, exchange);
        CLUSTER_WAIT();  // for the updates with the previous sub-panel
        if (first > 0) write_upper(&panel, first - INNER_BLOCK, first, upper);
        store_subpanel(&panel, value, first);
        BARRIER();
        laswp(&panel, first, ipiv, moves_to, moves_from, moved);
        CLUSTER_BARRIER();
        solve_upper(&panel, first, right, upper);
        BARRIER();
        update_columns(&panel, value, first, right, upper);
        WARP_BARRIER();  // load_subpanel() reads elements that other lanes of this warp have updated
        CLUSTER_ARRIVE();
    }
    CLUSTER_WAIT();
#if HELD_PITCH
    copy_columns(held, HELD_PITCH, matrix + block_offset(i, i, u, ld, devices, slots), ld, panel.rows);
#endif
}
