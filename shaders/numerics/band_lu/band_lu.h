// Storage and helpers shared by the kernels of the band LU with partial pivoting, in REAL precision (float or double).
// The factorization P L U is right-looking by block columns: factor a panel (panel.cu or panel_cluster.cu), then apply
// it to the block columns on its right (trailing_update.cu, lookahead.cu); solve_*.cu are the triangular solves. The
// host side is renderer/numerics/band_lu/devices/; block_columns.py describes the storage.
//
// A block column is S columns of `ld` = (u + l + 1) S rows, column-major; block column t holds the rows from (t - u) S
// on. It is stored in slot (t / devices) % slots of its device. Slots are S (ld + 1) elements apart, so the resident
// block columns of a single device form one column-major matrix with leading dimension ld. Panel i is the S columns of
// block column i from its diagonal block down: `rows` rows, stored at index `at` of a buffer with leading dimension
// `panel_ld`. Pivots are rows counted from 1 within their panel, as in LAPACK's getrf.
//
// Letters: a matrix of order n with kl sub- and ku superdiagonals has p block columns, with u blocks above and l blocks
// below the diagonal block. i is the number of a panel and of the step that applies it, t of a block column, k of an
// element, c of a column. There are `devices` devices, each with `slots` slots. Words as in OpenCL: a group is a thread
// block, local memory is shared memory. Compile-time inputs (devices/device_columns.py, devices/substitution.py):
//   REAL, DOUBLE   the type of the elements; DOUBLE is 1 for double
//   S              the block size: columns of a block column, a multiple of 16
//   GROUP_SIZE     threads per group
//   GROUP_COLUMNS  columns that a group of trailing_update.cu updates, a divisor of S
//   TILE           columns of a triangle in local memory at a time, a divisor of S
//   TILE_COLUMNS   side of a square tile of gemm_tiles: 64, 48, 32 or 16, a divisor of S
//   INNER_BLOCK    columns of a sub-panel, a divisor of S; ROWS, APPLY_ROWS: rows per thread (panel.cu)
// common/portable.h defines HAS_WARP_REDUCTION: 1 if warp_max and warp_min are there.

#if DOUBLE
#define SFMIN 2.2250738585072014e-308
#define REAL_MAX 1.7976931348623157e308
#define REAL_INFINITY as_double((ulong)0x7ff0000000000000)
#else
#define SFMIN 1.17549435e-38f
#define REAL_MAX 3.40282347e38f
#define REAL_INFINITY as_float((uint)0x7f800000)
#endif

// Parameters of most kernels: a panel, `at` the index of its first element and panel_ld its leading dimension; and the
// storage of the matrix (see above).
#define PANEL_PARAMETERS GLOBAL const REAL *panel, const ulong at, const int panel_ld
#define STORAGE_PARAMETERS const int u, const int ld, const int devices, const int slots
// Loops over the rows of a thread and the columns of a sub-panel, unrolled so that their arrays are in registers.
#define FOR_ROWS(k) UNROLL for (int k = 0; k < ROWS; k++)
#define FOR_COLUMNS(c) UNROLL for (int c = 0; c < INNER_BLOCK; c++)
// BLAS's iamax over the rows row_of(k) of a thread, first_row <= row_of(k) < rows, whose elements of the current column
// are value[k][0]: sets `size` to the largest magnitude and best_row to the uppermost row that has it, or to 0 and
// 0xffffffff if there is no such row.
#define IAMAX_THREAD(row_of, first_row, rows, value, size, best_row)                                      \
    size = 0;                                                                                             \
    best_row = 0xffffffffu;                                                                               \
    FOR_ROWS(k) {                                                                                         \
        int iamax_row = row_of(k);                                                                        \
        REAL here = fabs(value[k][0]);                                                                    \
        if (iamax_row >= (first_row) && iamax_row < (rows) && (here > size || best_row == 0xffffffffu)) { \
            size = here;                                                                                  \
            best_row = (uint)iamax_row;                                                                   \
        }                                                                                                 \
    }

// The index in `matrix` of the first element of block (i, t): row i S of block column t.
DEVICE ulong block_offset(int i, int t, int u, int ld, int devices, int slots) {
    return (ulong)((t / devices) % slots) * (ulong)S * (ulong)(ld + 1) + (ulong)((i - t + u) * S);
}

// The row that was at `row` before rows `one` and `other` were interchanged. To trace several interchanges back, apply
// this from the last to the first.
DEVICE int row_before(int row, int one, int other) { return row == one ? other : row == other ? one : row; }

#if HAS_WARP_REDUCTION
// BLAS's iamax over a warp: the largest size, which must be >= 0, and the smallest row that has it. The bits of floats
// >= 0 are ordered as the floats.
DEVICE void iamax_warp(REAL *size, uint *row) {
#if DOUBLE
    ulong bits = as_ulong(*size);
    uint high = (uint)(bits >> 32), best_high = warp_max(high);
    uint low = high == best_high ? (uint)bits : 0u, best_low = warp_max(low);
    *row = warp_min(high == best_high && (uint)bits == best_low ? *row : 0xffffffffu);
    *size = as_double(((ulong)best_high << 32) | best_low);
#else
    uint bits = as_uint(*size), best = warp_max(bits);
    *row = warp_min(bits == best ? *row : 0xffffffffu);
    *size = as_float(best);
#endif
}

#endif

// BLAS's iamax over a group: *size and *row are the thread's result on entry and the group's on return, in all threads.
// `best_size` and `best_row` (GROUP_SIZE) hold partial results.
// No barrier separates the last readers of the arrays from the next call, which therefore takes other arrays.
DEVICE void iamax_group(REAL *size, uint *row, LOCAL REAL *best_size, LOCAL uint *best_row) {
#if HAS_WARP_REDUCTION
    uint lane = local_index() % 32, warp = local_index() / 32;
    iamax_warp(size, row);
    if (lane == 0) {
        best_size[warp] = *size;
        best_row[warp] = *row;
    }
    BARRIER();
    bool is_warp = lane < GROUP_SIZE / 32;  // every warp compares the results of all warps, one a lane
    *size = is_warp ? best_size[lane] : 0;
    *row = is_warp ? best_row[lane] : 0xffffffffu;
    iamax_warp(size, row);
#else
    int thread = (int)local_index();
    best_size[thread] = *size;
    best_row[thread] = *row;
    for (int distance = GROUP_SIZE / 2; distance > 0; distance /= 2) {
        BARRIER();
        int other = thread + distance;
        if (thread < distance && (best_size[other] > best_size[thread] ||
                                  (best_size[other] == best_size[thread] && best_row[other] < best_row[thread]))) {
            best_size[thread] = best_size[other];
            best_row[thread] = best_row[other];
        }
    }
    BARRIER();
    *size = best_size[0];
    *row = best_row[0];
#endif
}
