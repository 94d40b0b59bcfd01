// What the kernels of the band LU (paper 4) share, in REAL precision (float or double).
//
// Storage: a block column is S columns of `ld` = (u + l + 1) S rows, column-major; block column t holds the rows from
// (t - u) S on. It is stored in slot (t / devices) % slots, and slots are S (ld + 1) elements apart, so that the
// resident block columns of one device form one column-major matrix of leading dimension ld. A panel (S columns of
// block column i from its diagonal block down) has `rows` rows and is stored at element `at` of a buffer with leading
// dimension `panel_ld`. Pivots count from 1 within their panel, as LAPACK's do within a call.

#if DOUBLE
#define SFMIN 2.2250738585072014e-308
#define REAL_MAX 1.7976931348623157e308
#define REAL_INFINITY as_double((ulong)0x7ff0000000000000)
#else
#define SFMIN 1.17549435e-38f
#define REAL_MAX 3.40282347e38f
#define REAL_INFINITY as_float((uint)0x7f800000)
#endif

// Parameters that most kernels share: a panel (above), and the storage of the matrix.
#define PANEL_PARAMETERS GLOBAL const REAL *panel, const ulong at, const int panel_ld
#define STORAGE_PARAMETERS const int u, const int ld, const int devices, const int slots
// Loops over the rows of a thread and the columns of a sub-panel, unrolled so that arrays of them are registers.
#define FOR_ROWS(k) UNROLL for (int k = 0; k < ROWS; k++)
#define FOR_COLUMNS(c) UNROLL for (int c = 0; c < INNER_BLOCK; c++)

// The element at which block (i, t) begins: row i S of block column t.
DEVICE ulong block_offset(int i, int t, int u, int ld, int devices, int slots) {
    return (ulong)((t / devices) % slots) * (ulong)S * (ulong)(ld + 1) + (ulong)((i - t + u) * S);
}

#if HAS_WARP_REDUCTION
// BLAS: iamax over a warp: the largest size >= 0 and the smallest row that has it. Floats >= 0 are ordered as their
// bits are.
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
