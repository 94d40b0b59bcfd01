// Band LU: the solves L y = P b and U x = y, a launch for each block column.
// S x S triangles stand in local memory, TILE columns at a time; right-hand sides are column-major (order, sides).
#include "numerics/band_lu/band_lu.h"

#define AHEAD (S < 64 ? S : 64)

// One step of L y = P b. Row r of the window comes from row sources[i * window + r] of it before the exchanges of step i. The
// window of rows that step i may change comes from `now` where earlier steps changed it, else from b, and goes to `next`; its
// first S rows are done and go to y. Every group solves the triangle for its RIGHT sides by itself: waiting for another group
// would take longer.
KERNEL forward_step(GLOBAL const REAL *matrix, GLOBAL const REAL *b, GLOBAL REAL *y, GLOBAL const REAL *now, GLOBAL REAL *next,
                    GLOBAL const int *sources, const int i, const int rows, const int old, const int order, const int sides,
                    const int u, const int height) {
    LOCAL_ARRAY(REAL, solved, S * RIGHT);
    LOCAL_ARRAY(REAL, lower, S * TILE);
    int lane = (int)local_index(), spans = max((rows - S + GROUP_SIZE - 1) / GROUP_SIZE, 1), window = height - u * S;
    int span = (int)group_index() % spans, side = (int)group_index() / spans * RIGHT;
    ulong top = (ulong)i * (ulong)S * (ulong)(height + 1) + (ulong)(u * S);
    int own = S + span * GROUP_SIZE + lane;
    REAL ahead[AHEAD];  // loads that are on their way while the triangle is solved
    UNROLL
    for (int k = 0; k < AHEAD; k++) ahead[k] = own < rows ? matrix[top + (ulong)k * (ulong)height + (ulong)own] : 0;
    for (int e = lane; e < S * RIGHT; e += GROUP_SIZE) {
        int m = side + e / S, from = sources[(ulong)i * (ulong)window + (ulong)(e % S)];
        solved[e] = m >= sides ? 0 : from < old ? now[(ulong)m * (ulong)window + (ulong)from]
                                                : b[(ulong)m * (ulong)order + (ulong)(i * S + from)];
    }
    for (int start = 0; start < S; start += TILE) {
        BARRIER();
        UNROLL
        for (int e = 0; e < (S * TILE + GROUP_SIZE - 1) / GROUP_SIZE; e++) {
            int k = lane + e * GROUP_SIZE;
            if (k < S * TILE) lower[k] = matrix[top + (ulong)(start + k / S) * (ulong)height + (ulong)(k % S)];
        }
        for (int k = start; k < start + TILE; k++) {
            BARRIER();
            for (int e = lane; e < S * RIGHT; e += GROUP_SIZE) {
                int row = e % S;
                if (row > k) solved[e] -= lower[(k - start) * S + row] * solved[e - row + k];
            }
        }
    }
    BARRIER();
    if (own < rows) {
        int from = sources[(ulong)i * (ulong)window + (ulong)own];
        REAL sum[RIGHT];
        UNROLL
        for (int m = 0; m < RIGHT; m++)
            sum[m] = side + m >= sides ? 0 : from < old ? now[(ulong)(side + m) * (ulong)window + (ulong)from]
                                                        : b[(ulong)(side + m) * (ulong)order + (ulong)(i * S + from)];
        UNROLL
        for (int e = 0; e < AHEAD * RIGHT; e++) sum[e / AHEAD] -= ahead[e % AHEAD] * solved[e / AHEAD * S + e % AHEAD];
        for (int start = AHEAD; start < S; start += 16) {
            REAL factor[16];  // 16 loads in flight
            UNROLL
            for (int k = 0; k < 16; k++) factor[k] = matrix[top + (ulong)(start + k) * (ulong)height + (ulong)own];
            UNROLL
            for (int e = 0; e < 16 * RIGHT; e++) sum[e / 16] -= factor[e % 16] * solved[e / 16 * S + start + e % 16];
        }
        UNROLL
        for (int m = 0; m < RIGHT; m++)
            if (side + m < sides) next[(ulong)(side + m) * (ulong)window + (ulong)(own - S)] = sum[m];
    }
    for (int e = lane; span == 0 && e < S * RIGHT; e += GROUP_SIZE)
        if (side + e / S < sides) y[(ulong)(side + e / S) * (ulong)order + (ulong)(i * S + e % S)] = solved[e];
}

// One step of U x = y: block i is solved and goes to x; the `above` rows over it are updated in y.
KERNEL backward_step(GLOBAL const REAL *matrix, GLOBAL REAL *y, GLOBAL REAL *x, const int i, const int above, const int order,
                     const int sides, const int u, const int height) {
    LOCAL_ARRAY(REAL, solved, S * RIGHT);
    LOCAL_ARRAY(REAL, upper, S * TILE);
    LOCAL_ARRAY(REAL, inverse, S);
    int lane = (int)local_index(), spans = max((above + GROUP_SIZE - 1) / GROUP_SIZE, 1);
    int span = (int)group_index() % spans, side = (int)group_index() / spans * RIGHT;
    ulong top = (ulong)i * (ulong)S * (ulong)(height + 1) + (ulong)(u * S);
    int own = span * GROUP_SIZE + lane;
    REAL ahead[AHEAD];
    UNROLL
    for (int k = 0; k < AHEAD; k++)
        ahead[k] = own < above ? matrix[top + (ulong)k * (ulong)height - (ulong)(above - own)] : 0;
    for (int e = lane; e < S * RIGHT; e += GROUP_SIZE)
        solved[e] = side + e / S < sides ? y[(ulong)(side + e / S) * (ulong)order + (ulong)(i * S + e % S)] : 0;
    for (int k = lane; k < S; k += GROUP_SIZE) inverse[k] = 1 / matrix[top + (ulong)k * (ulong)(height + 1)];
    for (int start = S - TILE; start >= 0; start -= TILE) {
        BARRIER();
        UNROLL
        for (int e = 0; e < (S * TILE + GROUP_SIZE - 1) / GROUP_SIZE; e++) {
            int k = lane + e * GROUP_SIZE;
            if (k < S * TILE) upper[k] = matrix[top + (ulong)(start + k / S) * (ulong)height + (ulong)(k % S)];
        }
        for (int k = start + TILE - 1; k >= start; k--) {
            BARRIER();
            for (int e = lane; e < S * RIGHT; e += GROUP_SIZE) {
                int row = e % S;
                if (row < k) solved[e] -= upper[(k - start) * S + row] * (solved[e - row + k] * inverse[k]);
            }
        }
    }
    BARRIER();
    for (int e = lane; e < S * RIGHT; e += GROUP_SIZE) solved[e] *= inverse[e % S];
    BARRIER();
    if (own < above) {
        REAL sum[RIGHT];
        UNROLL
        for (int m = 0; m < RIGHT; m++) sum[m] = 0;
        UNROLL
        for (int e = 0; e < AHEAD * RIGHT; e++) sum[e / AHEAD] += ahead[e % AHEAD] * solved[e / AHEAD * S + e % AHEAD];
        for (int start = AHEAD; start < S; start += 16) {
            REAL factor[16];
            UNROLL
            for (int k = 0; k < 16; k++)
                factor[k] = matrix[top + (ulong)(start + k) * (ulong)height - (ulong)(above - own)];
            UNROLL
            for (int e = 0; e < 16 * RIGHT; e++) sum[e / 16] += factor[e % 16] * solved[e / 16 * S + start + e % 16];
        }
        UNROLL
        for (int m = 0; m < RIGHT; m++)
            if (side + m < sides) y[(ulong)(side + m) * (ulong)order + (ulong)(i * S - above + own)] -= sum[m];
    }
    for (int e = lane; span == 0 && e < S * RIGHT; e += GROUP_SIZE)
        if (side + e / S < sides) x[(ulong)(side + e / S) * (ulong)order + (ulong)(i * S + e % S)] = solved[e];
}
