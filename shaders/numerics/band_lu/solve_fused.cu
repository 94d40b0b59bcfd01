// Band LU: both substitutions by one launch each, for blocks of 32 and bands so narrow that one group has a thread for every row
// of a step's window: nothing but barriers of a group lies between two steps then. A group takes RIGHT sides; they are replaced
// in place.
#include "numerics/band_lu/band_lu.h"

#if DOUBLE
#define PACK double2
#define PACKED 2
#else
#define PACK float4
#define PACKED 4
#endif

// sum -= the S factors of this thread's row times the block that was solved; whole vectors go through local memory.
DEVICE REAL less_product(REAL sum, const REAL *factor, LOCAL const PACK *solved) {
    UNROLL
    for (int k = 0; k < S / PACKED; k++) {
        PACK x = solved[k];
        sum -= factor[k * PACKED] * x.x;
        sum -= factor[k * PACKED + 1] * x.y;
#if !DOUBLE
        sum -= factor[k * PACKED + 2] * x.z;
        sum -= factor[k * PACKED + 3] * x.w;
#endif
    }
    return sum;
}

// The solution of S equations of which each of S threads, in line, has one: its factors and the right-hand sides x. Row k is ready
// when its turn comes; forward they go upwards from 0, each with 1 on the diagonal, backward downwards from S - 1.
#if HAS_SHUFFLE
#define IN_TURN UNROLL
#define FROM_ROW(value, k) warp_shuffle(value, k)
#else
#define IN_TURN NO_UNROLL
#define FROM_ROW(value, k) (BARRIER(), passed[local_index()] = value, BARRIER(), passed[first_thread + (k)])
#endif

KERNEL forward_all(GLOBAL const REAL *matrix, GLOBAL REAL *b, GLOBAL const int *sources, const int p, const int order, const int sides,
                   const int u, const int height) {
    LOCAL_ARRAY(REAL, now, RIGHT * WINDOW);
    LOCAL_ARRAY(PACK, solved, RIGHT * S / PACKED);
#if !HAS_SHUFFLE
    LOCAL_ARRAY(REAL, passed, GROUP_SIZE);
    const int first_thread = 0;
#endif
    int own = (int)local_index(), side = (int)group_index() * RIGHT;
    for (int e = own; e < RIGHT * WINDOW; e += GROUP_SIZE) {
        int m = side + e / WINDOW, row = e % WINDOW;
        now[e] = m < sides && row < order ? b[(ulong)m * (ulong)order + (ulong)row] : 0;
    }
    BARRIER();
    for (int i = 0; i < p; i++) {
        ulong top = (ulong)i * (ulong)S * (ulong)(height + 1) + (ulong)(u * S);
        int rows = min(WINDOW, (p - i) * S), entering = i * S + WINDOW + own;
        REAL factor[S], x[RIGHT], next[RIGHT];
        UNROLL
        for (int k = 0; k < S; k++) factor[k] = own < rows ? matrix[top + (ulong)k * (ulong)height + (ulong)own] : 0;
        int from = own < rows ? sources[(ulong)i * (ulong)WINDOW + (ulong)own] : 0;
        UNROLL
        for (int m = 0; m < RIGHT; m++) {
            next[m] = own < S && entering < order && side + m < sides ? b[(ulong)(side + m) * (ulong)order + (ulong)entering] : 0;
            x[m] = own < rows ? now[m * WINDOW + from] : 0;
        }
#if HAS_SHUFFLE
        if (own < S)
#endif
        {
            IN_TURN
            for (int k = 0; k < S; k++) {
                IN_TURN
                for (int m = 0; m < RIGHT; m++) {
                    REAL ready = FROM_ROW(x[m], k);
                    if (own > k && own < S) x[m] -= factor[k] * ready;
                }
            }
            UNROLL
            for (int m = 0; m < RIGHT; m++) {
                if (own < S) ((LOCAL REAL *)solved)[m * S + own] = x[m];
                if (own < S && side + m < sides) b[(ulong)(side + m) * (ulong)order + (ulong)(i * S + own)] = x[m];
            }
        }
        BARRIER();
        UNROLL
        for (int m = 0; m < RIGHT; m++) {
            if (own >= S && own < WINDOW) now[m * WINDOW + own - S] = less_product(x[m], factor, solved + m * (S / PACKED));
            if (own < S) now[m * WINDOW + WINDOW - S + own] = next[m];
        }
        BARRIER();
    }
}

// ABOVE rows stand over the block that is solved; a row keeps its place, its number modulo REACHED, in local memory.
#define REACHED (ABOVE + S)
KERNEL backward_all(GLOBAL const REAL *matrix, GLOBAL REAL *y, const int p, const int order, const int sides, const int u,
                    const int height) {
    LOCAL_ARRAY(REAL, now, RIGHT * REACHED);
    LOCAL_ARRAY(PACK, solved, RIGHT * S / PACKED);
#if !HAS_SHUFFLE
    LOCAL_ARRAY(REAL, passed, GROUP_SIZE);
    const int first_thread = ABOVE;
#endif
    int own = (int)local_index(), side = (int)group_index() * RIGHT, line = own - ABOVE;
    for (int e = own; e < RIGHT * REACHED; e += GROUP_SIZE) {
        int m = side + e / REACHED, row = order - REACHED + e % REACHED;
        if (row >= 0) now[e / REACHED * REACHED + row % REACHED] = m < sides ? y[(ulong)m * (ulong)order + (ulong)row] : 0;
    }
    BARRIER();
    for (int i = p - 1; i >= 0; i--) {
        ulong top = (ulong)i * (ulong)S * (ulong)(height + 1) + (ulong)(u * S);
        int row = i * S + line, entering = row - REACHED, place = row >= 0 ? row % REACHED : 0;
        bool active = own < REACHED && row >= 0, solves = line >= 0 && line < S;
        REAL factor[S], x[RIGHT], next[RIGHT];
        UNROLL
        for (int k = 0; k < S; k++) factor[k] = active ? matrix[top + (ulong)k * (ulong)height + (ulong)own - (ulong)ABOVE] : 0;
        REAL inverse = 1;
        UNROLL
        for (int k = 0; k < S; k++) inverse = k == line ? factor[k] : inverse;
        inverse = (REAL)1 / inverse;
        UNROLL
        for (int m = 0; m < RIGHT; m++) {
            next[m] = solves && entering >= 0 && side + m < sides ? y[(ulong)(side + m) * (ulong)order + (ulong)entering] : 0;
            x[m] = active ? now[m * REACHED + place] : 0;
        }
#if HAS_SHUFFLE
        if (solves)
#endif
        {
            IN_TURN
            for (int k = S - 1; k >= 0; k--) {
                IN_TURN
                for (int m = 0; m < RIGHT; m++) {
                    x[m] *= k == line ? inverse : 1;
                    REAL ready = FROM_ROW(x[m], k);
                    if (line < k && line >= 0) x[m] -= factor[k] * ready;
                }
            }
            UNROLL
            for (int m = 0; m < RIGHT; m++) {
                if (solves) ((LOCAL REAL *)solved)[m * S + line] = x[m];
                if (solves && side + m < sides) y[(ulong)(side + m) * (ulong)order + (ulong)row] = x[m];
            }
        }
        BARRIER();
        UNROLL
        for (int m = 0; m < RIGHT; m++) {
            if (active && line < 0) now[m * REACHED + place] = less_product(x[m], factor, solved + m * (S / PACKED));
            if (solves && entering >= 0) now[m * REACHED + place] = next[m];
        }
        BARRIER();
    }
}
