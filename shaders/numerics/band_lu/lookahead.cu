// Band LU: what a panel does to the one block column that the next panel is made of, while nothing else can be done: exchanges,
// rows of U and update by two launches that wait for little.
#include "numerics/band_lu/band_lu.h"

#define LINES (S / 32)
#define STRIP 16  // columns of L in local memory at a time
#define GROUP_WARPS (GROUP_SIZE / 32)
#define EACH (S * STRIP / GROUP_SIZE)  // elements of a strip that a thread brings

DEVICE void load_strip(GLOBAL const REAL *from, int ld, int lane, REAL *strip) {
    UNROLL
    for (int e = 0; e < EACH; e++) {
        int k = lane + e * GROUP_SIZE;
        strip[e] = from[(ulong)(k / S) * (ulong)ld + (ulong)(k % S)];
    }
}

// Rows of U: exchanges rows of panel i in block column t and solves with the panel's unit lower triangle. A warp to a column, a
// lane to every 32nd row of it.
KERNEL solve_ahead(GLOBAL REAL *matrix, GLOBAL const int *pivots, const int pivots_at, GLOBAL const REAL *panel, const ulong at,
                   const int ld, const int i, const int t, const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(int, exchange, S);
    LOCAL_ARRAY(int, from, 2 * S);
    LOCAL_ARRAY(REAL, lower, S * STRIP);
    int thread = (int)local_index(), lane = thread % 32, c = (int)group_index() * GROUP_WARPS + thread / 32;
    GLOBAL REAL *target = matrix + top_of(i, t, u, height, devices, slots) + (ulong)c * (ulong)height;
    REAL strip[EACH], own[LINES], moved[LINES];
    load_strip(panel + at, ld, thread, strip);
    for (int k = thread; k < S; k += GROUP_SIZE) exchange[k] = pivots[pivots_at + k] - 1;
    BARRIER();
    for (int k = thread; k < 2 * S; k += GROUP_SIZE) {
        int row = k < S ? k : exchange[k - S];
        for (int j = S - 1; j >= 0; j--) row = row == j ? exchange[j] : row == exchange[j] ? j : row;
        from[k] = row;
    }
    BARRIER();
    UNROLL
    for (int q = 0; q < LINES; q++) {
        own[q] = target[from[q * 32 + lane]];
        moved[q] = target[from[S + q * 32 + lane]];
    }
    WARP_BARRIER();
    UNROLL
    for (int q = 0; q < LINES; q++) {
        int to = exchange[q * 32 + lane];
        if (to >= S) target[to] = moved[q];
    }
    UNROLL
    for (int first = 0; first < S; first += STRIP) {
        BARRIER();
        UNROLL
        for (int e = 0; e < EACH; e++) lower[thread + e * GROUP_SIZE] = strip[e];
        BARRIER();
        if (first + STRIP < S) load_strip(panel + at + (ulong)(first + STRIP) * (ulong)ld, ld, thread, strip);
        ROLLED
        for (int start = 0; start < STRIP; start += 4) {
            UNROLL
            for (int k = start; k < start + 4; k++) {
                int row = first % 32 + k;
                REAL solved = broadcast(own[first / 32], row);
                LOCAL const REAL *factor = lower + k * S + lane;
                if (lane > row) own[first / 32] -= factor[first / 32 * 32] * solved;
                UNROLL
                for (int q = first / 32 + 1; q < LINES; q++) own[q] -= factor[q * 32] * solved;
            }
        }
    }
    UNROLL
    for (int q = 0; q < LINES; q++) target[q * 32 + lane] = own[q];
}

#define TILE_SIDE 64
#define DEPTH 32  // columns of L and rows of U in local memory at a time
#define LEFT_LINE (TILE_SIDE + 4)  // lanes of a warp that take four columns of four rows find them in all banks
#define RIGHT_LINE (DEPTH + 4)
#define PIECE (TILE_SIDE * DEPTH / GROUP_SIZE)

// A_jt -= L_ji U_it in block column t by matrix units: 64 x 64 elements a group, 16 x 32 each of its eight warps.
KERNEL update_ahead(GLOBAL REAL *matrix, GLOBAL const REAL *panel, const ulong at, const int ld, const int rows, const int i,
                    const int t, const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(REAL, left, DEPTH * LEFT_LINE);
    LOCAL_ARRAY(REAL, right, TILE_SIDE * RIGHT_LINE);
    int thread = (int)local_index(), lane = thread % 32, warp = thread / 32, below = rows - S;
    int first_row = (int)group_index() / (S / TILE_SIDE) * TILE_SIDE, column = (int)group_index() % (S / TILE_SIDE) * TILE_SIDE;
    GLOBAL REAL *upper = matrix + top_of(i, t, u, height, devices, slots) + (ulong)column * (ulong)height;
    GLOBAL const REAL *lower = panel + at + (ulong)(S + first_row);
    int row = warp % 4 * 16 + lane / 4, side = warp / 4 * 32, across = lane % 4;
    GLOBAL REAL *target = upper + (ulong)(side + across * 2) * (ulong)height + (ulong)(S + first_row + row);
    REAL sum[2][4][2], next_left[PIECE], next_right[PIECE];
    UNROLL
    for (int e = 0; e < 16; e++) {
        int m = e / 8, n = e / 2 % 4;
        sum[m][n][e % 2] = first_row + row + m * 8 < below ? target[(ulong)(n * 8 + e % 2) * (ulong)height + (ulong)(m * 8)] : 0;
    }
    ROLLED
    for (int depth = -DEPTH; depth < S; depth += DEPTH) {
        if (depth >= 0) {
            BARRIER();
            UNROLL
            for (int e = 0; e < PIECE; e++) {
                int k = thread + e * GROUP_SIZE;
                left[k / TILE_SIDE * LEFT_LINE + k % TILE_SIDE] = -next_left[e];
                right[k / DEPTH * RIGHT_LINE + k % DEPTH] = next_right[e];
            }
            BARRIER();
        }
        if (depth + DEPTH < S) {
            UNROLL
            for (int e = 0; e < PIECE; e++) {
                int k = thread + e * GROUP_SIZE, r = k % TILE_SIDE;
                ulong d = (ulong)(depth + DEPTH);
                next_left[e] = first_row + r < below ? lower[(d + (ulong)(k / TILE_SIDE)) * (ulong)ld + (ulong)r] : 0;
                next_right[e] = upper[(ulong)(k / DEPTH) * (ulong)height + d + (ulong)(k % DEPTH)];
            }
        }
        if (depth < 0) continue;
        UNROLL
        for (int k = 0; k < DEPTH; k += 4) {
            REAL a[2], b[4];
            UNROLL
            for (int m = 0; m < 2; m++) a[m] = left[(k + across) * LEFT_LINE + row + m * 8];
            UNROLL
            for (int n = 0; n < 4; n++) b[n] = right[(side + n * 8 + lane / 4) * RIGHT_LINE + k + across];
            UNROLL
            for (int e = 0; e < 8; e++) matrix_add(sum[e / 4][e % 4], a[e / 4], b[e % 4]);
        }
    }
    UNROLL
    for (int e = 0; e < 16; e++) {
        int m = e / 8, n = e / 2 % 4;
        if (first_row + row + m * 8 < below) target[(ulong)(n * 8 + e % 2) * (ulong)height + (ulong)(m * 8)] = sum[m][n][e % 2];
    }
}
