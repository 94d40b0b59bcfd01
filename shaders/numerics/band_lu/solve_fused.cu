// Band LU: each triangular solve in one launch, for blocks of 32 columns and bands so narrow that one group has a
// thread for every row of a step's window. Only group barriers separate the steps then. A group solves RHS_PER_GROUP
// right-hand sides in place. The scene `ink` solves its three colors this way in every frame.
#include "numerics/band_lu/band_lu.h"

#if DOUBLE
#define PACK double2
#define PACKED 2
#else
#define PACK float4
#define PACKED 4
#endif

// sum -= the S factors of this thread's row times the solved block, read from local memory in whole vectors.
DEVICE REAL subtract_product(REAL sum, const REAL *factor, LOCAL const PACK *solved) {
    UNROLL
    for (int k = 0; k < S / PACKED; k++) {
        PACK x = solved[k];
        UNROLL
        for (int q = 0; q < PACKED; q++) sum -= factor[k * PACKED + q] * ((const REAL *)&x)[q];
    }
    return sum;
}

// An S x S triangular solve by S consecutive threads, a row each: row k is final when step k comes. Forward steps go
// from 0 up with a unit diagonal, backward steps from S - 1 down.
#if HAS_SHUFFLE
#define SOLVE_LOOP UNROLL
#define FROM_THREAD(value, k) warp_shuffle(value, k)
#else
#define SOLVE_LOOP NO_UNROLL
#define FROM_THREAD(value, k) (BARRIER(), exchanged[local_index()] = value, BARRIER(), exchanged[first_thread + (k)])
#endif

KERNEL forward_fused(GLOBAL const REAL *matrix, GLOBAL REAL *b, GLOBAL const int *permutations, const int p,
                     const int padded_n, const int nrhs, const int u, const int ld) {
    LOCAL_ARRAY(REAL, now, RHS_PER_GROUP * WINDOW);
    LOCAL_ARRAY(PACK, solved, RHS_PER_GROUP * S / PACKED);
#if !HAS_SHUFFLE
    LOCAL_ARRAY(REAL, exchanged, GROUP_SIZE);
    const int first_thread = 0;
#endif
    int thread = (int)local_index(), first_rhs = (int)group_index() * RHS_PER_GROUP;
    for (int e = thread; e < RHS_PER_GROUP * WINDOW; e += GROUP_SIZE) {
        int m = first_rhs + e / WINDOW, row = e % WINDOW;
        now[e] = m < nrhs && row < padded_n ? b[(ulong)m * (ulong)padded_n + (ulong)row] : 0;
    }
    BARRIER();
    for (int i = 0; i < p; i++) {
        ulong top = (ulong)i * (ulong)S * (ulong)(ld + 1) + (ulong)(u * S);
        int rows = min(WINDOW, (p - i) * S), entering = i * S + WINDOW + thread;
        REAL factor[S], x[RHS_PER_GROUP], next[RHS_PER_GROUP];
        UNROLL
        for (int k = 0; k < S; k++) factor[k] = thread < rows ? matrix[top + (ulong)k * (ulong)ld + (ulong)thread] : 0;
        int from = thread < rows ? permutations[(ulong)i * (ulong)WINDOW + (ulong)thread] : 0;
        UNROLL
        for (int m = 0; m < RHS_PER_GROUP; m++) {
            next[m] = thread < S && entering < padded_n && first_rhs + m < nrhs
                          ? b[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)entering]
                          : 0;
            x[m] = thread < rows ? now[m * WINDOW + from] : 0;
        }
        if (!HAS_SHUFFLE || thread < S) {
            SOLVE_LOOP
            for (int k = 0; k < S; k++) {
                SOLVE_LOOP
                for (int m = 0; m < RHS_PER_GROUP; m++) {
                    REAL ready = FROM_THREAD(x[m], k);
                    if (thread > k && thread < S) x[m] -= factor[k] * ready;
                }
            }
            UNROLL
            for (int m = 0; m < RHS_PER_GROUP; m++) {
                if (thread < S) ((LOCAL REAL *)solved)[m * S + thread] = x[m];
                if (thread < S && first_rhs + m < nrhs)
                    b[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)(i * S + thread)] = x[m];
            }
        }
        BARRIER();
        UNROLL
        for (int m = 0; m < RHS_PER_GROUP; m++) {
            if (thread >= S && thread < WINDOW)
                now[m * WINDOW + thread - S] = subtract_product(x[m], factor, solved + m * (S / PACKED));
            if (thread < S) now[m * WINDOW + WINDOW - S + thread] = next[m];
        }
        BARRIER();
    }
}

// ABOVE rows lie above the block that is solved. Row r is kept in local memory at index r modulo REACHED.
#define REACHED (ABOVE + S)
KERNEL backward_fused(GLOBAL const REAL *matrix, GLOBAL REAL *y, const int p, const int padded_n, const int nrhs,
                      const int u, const int ld) {
    LOCAL_ARRAY(REAL, now, RHS_PER_GROUP * REACHED);
    LOCAL_ARRAY(PACK, solved, RHS_PER_GROUP * S / PACKED);
#if !HAS_SHUFFLE
    LOCAL_ARRAY(REAL, exchanged, GROUP_SIZE);
    const int first_thread = ABOVE;
#endif
    int thread = (int)local_index(), first_rhs = (int)group_index() * RHS_PER_GROUP, solve_row = thread - ABOVE;
    for (int e = thread; e < RHS_PER_GROUP * REACHED; e += GROUP_SIZE) {
        int m = first_rhs + e / REACHED, row = padded_n - REACHED + e % REACHED;
        if (row >= 0)
            now[e / REACHED * REACHED + row % REACHED] = m < nrhs ? y[(ulong)m * (ulong)padded_n + (ulong)row] : 0;
    }
    BARRIER();
    for (int i = p - 1; i >= 0; i--) {
        ulong top = (ulong)i * (ulong)S * (ulong)(ld + 1) + (ulong)(u * S);
        int row = i * S + solve_row, entering = row - REACHED, slot = row >= 0 ? row % REACHED : 0;
        bool active = thread < REACHED && row >= 0, solves = solve_row >= 0 && solve_row < S;
        REAL factor[S], x[RHS_PER_GROUP], next[RHS_PER_GROUP];
        UNROLL
        for (int k = 0; k < S; k++)
            factor[k] = active ? matrix[top + (ulong)k * (ulong)ld + (ulong)thread - (ulong)ABOVE] : 0;
        REAL inverse = 1;
        UNROLL
        for (int k = 0; k < S; k++) inverse = k == solve_row ? factor[k] : inverse;
        inverse = (REAL)1 / inverse;
        UNROLL
        for (int m = 0; m < RHS_PER_GROUP; m++) {
            next[m] = solves && entering >= 0 && first_rhs + m < nrhs
                          ? y[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)entering]
                          : 0;
            x[m] = active ? now[m * REACHED + slot] : 0;
        }
        if (!HAS_SHUFFLE || solves) {
            SOLVE_LOOP
            for (int k = S - 1; k >= 0; k--) {
                SOLVE_LOOP
                for (int m = 0; m < RHS_PER_GROUP; m++) {
                    x[m] *= k == solve_row ? inverse : 1;
                    REAL ready = FROM_THREAD(x[m], k);
                    if (solve_row < k && solve_row >= 0) x[m] -= factor[k] * ready;
                }
            }
            UNROLL
            for (int m = 0; m < RHS_PER_GROUP; m++) {
                if (solves) ((LOCAL REAL *)solved)[m * S + solve_row] = x[m];
                if (solves && first_rhs + m < nrhs) y[(ulong)(first_rhs + m) * (ulong)padded_n + (ulong)row] = x[m];
            }
        }
        BARRIER();
        UNROLL
        for (int m = 0; m < RHS_PER_GROUP; m++) {
            if (active && solve_row < 0)
                now[m * REACHED + slot] = subtract_product(x[m], factor, solved + m * (S / PACKED));
            if (solves && entering >= 0) now[m * REACHED + slot] = next[m];
        }
        BARRIER();
    }
}
