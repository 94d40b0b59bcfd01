// Band LU: what a factored panel does to the block columns on its right: exchange rows, solve for rows of U, update.
#include "numerics/band_lu/band_lu.h"

// Exchanges the rows of panel i in `count` block columns from `first` on, each `devices` further. A group to GROUP_COLUMNS
// columns; 2 S rows change at most.
KERNEL swap_rows(GLOBAL REAL *matrix, GLOBAL const int *pivots, const int pivots_at, const int i, const int first,
                 const int count, const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(int, exchange, S);
    LOCAL_ARRAY(int, from, 2 * S);
    LOCAL_ARRAY(REAL, moved, 2 * S * GROUP_COLUMNS);
    int lane = (int)local_index(), groups = S / GROUP_COLUMNS, block = (int)group_index() / groups;
    int t = first + block * devices, c = ((int)group_index() % groups) * GROUP_COLUMNS;
    bool active = block < count;
    GLOBAL REAL *target = matrix + (active ? top_of(i, t, u, height, devices, slots) + (ulong)c * (ulong)height : 0);
    for (int k = lane; k < S; k += GROUP_SIZE) exchange[k] = pivots[pivots_at + k] - 1;
    BARRIER();
    for (int k = lane; k < 2 * S; k += GROUP_SIZE) {
        int to = k < S ? k : exchange[k - S];
        for (int j = S - 1; j >= 0; j--) to = to == j ? exchange[j] : to == exchange[j] ? j : to;
        from[k] = to;
    }
    BARRIER();
    for (int k = lane; active && k < 2 * S * GROUP_COLUMNS; k += GROUP_SIZE)
        moved[k] = target[(ulong)(k / (2 * S)) * (ulong)height + (ulong)from[k % (2 * S)]];
    BARRIER();
    for (int k = lane; active && k < 2 * S * GROUP_COLUMNS; k += GROUP_SIZE) {
        int to = k % (2 * S);
        to = to < S ? to : exchange[to - S];
        target[(ulong)(k / (2 * S)) * (ulong)height + (ulong)to] = moved[k];
    }
}

// The rows of U: solves with the unit lower triangle of the panel, in place. A group to GROUP_COLUMNS columns; TILE columns
// of L at a time pass through local memory.
KERNEL solve_rows(GLOBAL REAL *matrix, GLOBAL const REAL *panel, const ulong at, const int ld, const int i, const int first,
                  const int count, const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(REAL, x, S * GROUP_COLUMNS);
    LOCAL_ARRAY(REAL, lower, S * TILE);
    int lane = (int)local_index(), groups = S / GROUP_COLUMNS, block = (int)group_index() / groups;
    int t = first + block * devices, c = ((int)group_index() % groups) * GROUP_COLUMNS;
    bool active = block < count;
    GLOBAL REAL *target = matrix + (active ? top_of(i, t, u, height, devices, slots) + (ulong)c * (ulong)height : 0);
    for (int k = lane; active && k < S * GROUP_COLUMNS; k += GROUP_SIZE)
        x[k] = target[(ulong)(k / S) * (ulong)height + (ulong)(k % S)];
#if HAS_SHUFFLE && TILE % 32 == 0 && GROUP_SIZE >= 32 * GROUP_COLUMNS  // a warp has a column, a lane every 32nd row of it
#define LINES (S / 32)
    int line = lane % 32, column = lane / 32;
    bool mine = column < GROUP_COLUMNS;
    REAL own[LINES];
    BARRIER();
    UNROLL
    for (int q = 0; q < LINES; q++) own[q] = mine ? x[column * S + q * 32 + line] : 0;
    UNROLL
    for (int t = 0; t < LINES; t++) {
        if (t * 32 % TILE == 0) {
            BARRIER();
            for (int k = lane; k < S * TILE; k += GROUP_SIZE)
                lower[k] = panel[at + (ulong)(t * 32 + k / S) * (ulong)ld + (ulong)(k % S)];
            BARRIER();
        }
        for (int k = 0; k < 32; k++) {
            REAL solved = broadcast(own[t], k);
            LOCAL const REAL *factor = lower + (t * 32 % TILE + k) * S + line;
            if (line > k) own[t] -= factor[t * 32] * solved;
            UNROLL
            for (int q = t + 1; q < LINES; q++) own[q] -= factor[q * 32] * solved;
        }
    }
    UNROLL
    for (int q = 0; q < LINES; q++)
        if (mine) x[column * S + q * 32 + line] = own[q];
#elif GROUP_SIZE % S == 0  // a thread keeps its row's elements of COUNT columns; the row just solved goes round
#define COUNT (S * GROUP_COLUMNS / GROUP_SIZE)
    int row = lane % S, side = lane / S;
    REAL own[COUNT];
    BARRIER();
    UNROLL
    for (int m = 0; m < COUNT; m++) own[m] = x[lane + m * GROUP_SIZE];
    for (int start = 0; start < S; start += TILE) {
        BARRIER();
        UNROLL
        for (int e = 0; e < S * TILE / GROUP_SIZE; e++) {
            int k = lane + e * GROUP_SIZE;
            lower[k] = panel[at + (ulong)(start + k / S) * (ulong)ld + (ulong)(k % S)];
        }
        for (int k = start; k < start + TILE; k++) {
            if (row == k) {
                UNROLL
                for (int m = 0; m < COUNT; m++) x[lane + m * GROUP_SIZE] = own[m];
            }
            BARRIER();
            if (row > k) {
                REAL factor = lower[(k - start) * S + row];
                UNROLL
                for (int m = 0; m < COUNT; m++) own[m] -= factor * x[(side + m * (GROUP_SIZE / S)) * S + k];
            }
        }
    }
#else
    for (int start = 0; start < S; start += TILE) {
        BARRIER();
        for (int k = lane; k < S * TILE; k += GROUP_SIZE)
            lower[k] = panel[at + (ulong)(start + k / S) * (ulong)ld + (ulong)(k % S)];
        for (int k = start; k < start + TILE; k++) {
            BARRIER();
            for (int e = lane; e < S * GROUP_COLUMNS; e += GROUP_SIZE) {
                int row = e % S;
                if (row > k) x[e] -= lower[(k - start) * S + row] * x[e - row + k];
            }
        }
    }
#endif
    BARRIER();
    for (int k = lane; active && k < S * GROUP_COLUMNS; k += GROUP_SIZE)
        target[(ulong)(k / S) * (ulong)height + (ulong)(k % S)] = x[k];
}

// A_jt -= L_ji U_it on processors with wide groups: 64 x TILE_COLUMNS elements of A a group, 4 x 4 a thread
// (GROUP_SIZE = 4 TILE_COLUMNS), 8 columns of L at a time in local memory.
#define TILE_ROWS 64
#define DEPTH 8
KERNEL update_tiles(GLOBAL REAL *matrix, GLOBAL const REAL *panel, const ulong at, const int ld, const int rows, const int i,
                    const int first, const int count, const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(REAL, left, TILE_ROWS * DEPTH);
    LOCAL_ARRAY(REAL, right, DEPTH * TILE_COLUMNS);
    int lane = (int)local_index(), below = rows - S, across = (below + TILE_ROWS - 1) / TILE_ROWS;
    int tiles = S / TILE_COLUMNS, group = (int)group_index(), row = (group % across) * TILE_ROWS;
    int block = group / across / tiles, column = (group / across % tiles) * TILE_COLUMNS, t = first + block * devices;
    bool active = block < count;
    ulong top = active ? top_of(i, t, u, height, devices, slots) + (ulong)column * (ulong)height : 0;
    int y = lane % 16, x = lane / 16;
    REAL sum[4][4];
    UNROLL
    for (int k = 0; k < 16; k++) sum[k / 4][k % 4] = 0;
    for (int depth = 0; depth < S; depth += DEPTH) {
        BARRIER();
        for (int k = lane; k < TILE_ROWS * DEPTH; k += GROUP_SIZE) {
            int r = row + k % TILE_ROWS;
            left[k] = r < below ? panel[at + (ulong)(depth + k / TILE_ROWS) * (ulong)ld + (ulong)(S + r)] : 0;
        }
        for (int k = lane; k < DEPTH * TILE_COLUMNS; k += GROUP_SIZE)
            right[k] = active ? matrix[top + (ulong)(k / DEPTH) * (ulong)height + (ulong)(depth + k % DEPTH)] : 0;
        BARRIER();
        UNROLL
        for (int d = 0; d < DEPTH; d++) {
            UNROLL
            for (int k = 0; k < 16; k++)
                sum[k / 4][k % 4] += left[d * TILE_ROWS + y + 16 * (k / 4)] * right[(x * 4 + k % 4) * DEPTH + d];
        }
    }
    if (!active) return;
    for (int k = 0; k < 16; k++) {
        int r = row + y + 16 * (k / 4);
        if (r < below) matrix[top + (ulong)(x * 4 + k % 4) * (ulong)height + (ulong)(S + r)] -= sum[k / 4][k % 4];
    }
}

// The same on a CPU: a work item takes RUN rows of 4 columns, contiguous for its vector unit.
#define RUN 16
KERNEL update_runs(GLOBAL REAL *matrix, GLOBAL const REAL *panel, const ulong at, const int ld, const int rows, const int i,
                   const int first, const int count, const int u, const int height, const int devices, const int slots) {
    int below = rows - S, across = (below + RUN - 1) / RUN, item = (int)thread_index();
    int row = item % across * RUN, column = item / across % (S / 4) * 4, block = item / across / (S / 4);
    if (block >= count) return;
    ulong top = top_of(i, first + block * devices, u, height, devices, slots) + (ulong)column * (ulong)height;
    REAL sum[4][RUN];
    for (int k = 0; k < 4 * RUN; k++) sum[k / RUN][k % RUN] = 0;
    for (int d = 0; d < S; d++) {
        GLOBAL const REAL *line = panel + at + (ulong)d * (ulong)ld + (ulong)(S + row);
        for (int c = 0; c < 4; c++) {
            REAL factor = matrix[top + (ulong)c * (ulong)height + (ulong)d];
            for (int r = 0; r < RUN; r++) sum[c][r] += line[r] * factor;
        }
    }
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < RUN; r++) matrix[top + (ulong)c * (ulong)height + (ulong)(S + row + r)] -= sum[c][r];
}
