// Band LU: the solves L y = P b and U x = y, each in one launch of independent groups, for blocks of 32 columns and
// narrow bands: one group has a thread for every row that a step reads, and group barriers separate the steps. A group
// solves for RHS_PER_GROUP right-hand sides in place. The scene `ink` solves its three colors this way in every frame.
// Chosen by substitution.py. It stays separate from solve_sweeps.cu, which needs thread block clusters, keeps windows
// in global memory and multiplies by inverted triangles, so that it rounds differently.
// In place: `rhs`, (nrhs, padded_n), holds b or y before and y or x after. S, REAL and letters: band_lu.h.
//   UPPER          1: U x = y, from the last block column to the first; 0: L y = P b, from the first to the last
//   OUTSIDE        number of rows that a step updates, below its block (L) or above it (U)
//   RHS_PER_GROUP  right-hand sides per group: at most 4 for float, 2 for double
#include "numerics/band_lu/band_lu.h"

#if DOUBLE
#define PACK double2
#define PACKED 2
#else
#define PACK float4
#define PACKED 4
#endif
#define HELD (S + OUTSIDE)  // rows in local memory, one for each thread
#define FIRST_SOLVING (UPPER ? OUTSIDE : 0)  // the first of the S threads that solve the triangle

// Returns `sum` minus the product of the S factors of a row and the solved block, read from local memory in vectors.
DEVICE REAL subtract_product(REAL sum, const REAL *factor, LOCAL const PACK *solved) {
    UNROLL
    for (int k = 0; k < S / PACKED; k++) {
        PACK x = solved[k];
        UNROLL
        for (int q = 0; q < PACKED; q++) sum -= factor[k * PACKED + q] * ((const REAL *)&x)[q];
    }
    return sum;
}

// The S x S triangular solve is done by S consecutive threads, one per row; in step k the value of row k is final.
// FROM_THREAD(value, k) is the `value` of the thread of row k: by a shuffle, since S = 32 threads are a warp, or
// through local memory.
#if HAS_SHUFFLE
#define SOLVE_LOOP UNROLL
#define FROM_THREAD(value, k) warp_shuffle(value, k)
#else
#define SOLVE_LOOP NO_UNROLL
#define FROM_THREAD(value, k) (BARRIER(), exchanged[local_index()] = value, BARRIER(), exchanged[FIRST_SOLVING + (k)])
#endif

// Local memory: `now` (RHS_PER_GROUP, HELD) are the rows that the step reads and updates, `solved` (RHS_PER_GROUP, S)
// the block that it solves. For L the rows of `now` move up by S with every step; for U row r is always at index r
// modulo HELD. `permutations` (p, HELD), of solve_prepare.cu, is used for L only.
KERNEL solve_by_one_group(GLOBAL const REAL *matrix, GLOBAL REAL *rhs, GLOBAL const int *permutations, const int p,
                          const int padded_n, const int nrhs, const int u, const int ld) {
    LOCAL_ARRAY(REAL, now, RHS_PER_GROUP * HELD);
    LOCAL_ARRAY(PACK, solved, RHS_PER_GROUP * S / PACKED);
#if !HAS_SHUFFLE
    LOCAL_ARRAY(REAL, exchanged, GROUP_SIZE);  // of FROM_THREAD
#endif
    int thread = (int)local_index(), first_rhs = (int)group_index() * RHS_PER_GROUP,
        local_row = thread - FIRST_SOLVING;  // row in the step's block, negative above it
    bool solves = local_row >= 0 && local_row < S;
    for (int e = thread; e < RHS_PER_GROUP * HELD; e += GROUP_SIZE) {
        int m = first_rhs + e / HELD, row = (UPPER ? padded_n - HELD : 0) + e % HELD;
        if (row >= 0)
            now[e / HELD * HELD + (UPPER ? row % HELD : e % HELD)] =
                m < nrhs && row < padded_n ? rhs[(ulong)m * (ulong)padded_n + (ulong)row] : 0;
    }
    BARRIER();
    for (int step = 0; step < p; step++) {
        int i = UPPER ? p - 1 - step : step, row = i * S + local_row, entering = UPPER ? row - HELD : row + HELD;
        ulong top = (ulong)i * (ulong)S * (ulong)(ld + 1) + (ulong)(u * S);
        bool active = thread < HELD && row >= 0 && row < padded_n,
             enters = solves && entering >= 0 && entering < padded_n;
#if UPPER
        int source = row >= 0 ? row % HELD : 0, target = source;
#else
        int source = active ? permutations[(ulong)i * (ulong)HELD + (ulong)thread] : 0,
            target = solves ? HELD - S + thread : thread - S;
#endif
        // Load the thread's row of the factors and of the right-hand sides (from index `source` of `now`), and the row
        // that enters `now` after this step; both go to index `target`.
        REAL factor[S], x[RHS_PER_GROUP], next[RHS_PER_GROUP];
        UNROLL
        for (int k = 0; k < S; k++)
            factor[k] = active ? matrix[top + (ulong)k * (ulong)ld + (ulong)thread - (ulong)FIRST_SOLVING] : 0;
#if UPPER  // 1 / factor[local_row]; only constant indices keep factor[] in registers
        REAL inverse = 1;
        UNROLL
        for (int k = 0; k < S; k++) inverse = k == local_row ? factor[k] : inverse;
        inverse = (REAL)1 / inverse;
#endif
        UNROLL
        for (int m = 0; m < RHS_PER_GROUP; m++) {
            next[m] =
                enters && first_rhs + m < nrhs ? rhs[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)entering] : 0;
            x[m] = active ? now[m * HELD + source] : 0;
        }
        // Solve the triangle: column k's value is ready when its thread has subtracted all products before it.
        if (!HAS_SHUFFLE || solves) {  // without shuffles, all threads must reach the barriers of FROM_THREAD
            SOLVE_LOOP
            for (int n = 0; n < S; n++) {
                int k = UPPER ? S - 1 - n : n;
                SOLVE_LOOP
                for (int m = 0; m < RHS_PER_GROUP; m++) {
#if UPPER
                    x[m] *= k == local_row ? inverse : 1;
#endif
                    REAL ready = FROM_THREAD(x[m], k);
                    if (solves && (UPPER ? local_row < k : local_row > k)) x[m] -= factor[k] * ready;
                }
            }
            UNROLL
            for (int m = 0; m < RHS_PER_GROUP; m++) {
                if (solves) ((LOCAL REAL *)solved)[m * S + local_row] = x[m];
                if (solves && first_rhs + m < nrhs) rhs[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)row] = x[m];
            }
        }
        BARRIER();
        // Subtract the products with the solved block from the rows outside.
        UNROLL
        for (int m = 0; m < RHS_PER_GROUP; m++) {
            if (active && !solves) now[m * HELD + target] = subtract_product(x[m], factor, solved + m * (S / PACKED));
            if (enters) now[m * HELD + target] = next[m];
        }
        BARRIER();
    }
}
