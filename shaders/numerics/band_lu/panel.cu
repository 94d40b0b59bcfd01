// Band LU: the panel of a block column, leaf by leaf: a leaf is WIDTH columns that one group factors, its rows in registers.
#include "numerics/band_lu/band_lu.h"

// Which panel is to be factored stands in memory, so that the launches of a panel are the same for every panel (a graph).
KERNEL next_panel(GLOBAL int *step, const int devices) {
    if (thread_index() == 0) step[0] += devices;
}

// P L U of columns first .. first + WIDTH - 1 of a panel by one group. Each thread keeps ROWS rows in registers; the row of
// the pivot goes round through local memory. Ties take the uppermost row, as LAPACK's do.
KERNEL factor_leaf(GLOBAL REAL *matrix, GLOBAL const int *step, const int first, GLOBAL int *pivots, GLOBAL int *info,
                   const int p, const int l, const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(REAL, best_size, 2 * GROUP_SIZE);
    LOCAL_ARRAY(uint, best_row, 2 * GROUP_SIZE);
    LOCAL_ARRAY(REAL, pivot_line, 2 * WIDTH);
    LOCAL_ARRAY(REAL, own_line, 2 * WIDTH);
    int lane = (int)local_index(), i = step[0], ld = height, rows = min(l + 1, p - i) * S, column = i * S;
    GLOBAL REAL *corner = matrix + top_of(i, i, u, height, devices, slots) + (ulong)first * (ulong)ld;
    REAL value[ROWS][WIDTH];
    UNROLL
    for (int k = 0; k < ROWS; k++) {
        int row = first + lane + k * GROUP_SIZE;
        UNROLL
        for (int j = 0; j < WIDTH; j++) value[k][j] = row < rows ? corner[(ulong)j * (ulong)ld + (ulong)row] : 0;
    }
    // Column j stands in value[][0]: after it is eliminated the others move up and it goes to the end, so that this loop needs no
    // register by a computed number and its text stays small enough for the instruction cache.
    ROLLED
    for (int j = 0; j < WIDTH; j++) {
        REAL size = 0;
        uint where = 0xffffffffu;
        UNROLL
        for (int k = 0; k < ROWS; k++) {
            int row = first + lane + k * GROUP_SIZE;
            REAL here = fabs(value[k][0]);
            if (row >= first + j && row < rows && (here > size || where == 0xffffffffu)) { size = here; where = (uint)row; }
        }
        int side = (j & 1) * GROUP_SIZE;  // two sets in turn, so that one barrier parts writers from readers
#if HAS_WARP_REDUCTION
        best_of_warp(&size, &where);
        if ((lane & 31) == 0) { best_size[side + (lane >> 5)] = size; best_row[side + (lane >> 5)] = where; }
        BARRIER();
        size = (lane & 31) < GROUP_SIZE / 32 ? best_size[side + (lane & 31)] : 0;
        where = (lane & 31) < GROUP_SIZE / 32 ? best_row[side + (lane & 31)] : 0xffffffffu;
        best_of_warp(&size, &where);
#else
        best_size[side + lane] = size;
        best_row[side + lane] = where;
        for (int reach = GROUP_SIZE / 2; reach > 0; reach /= 2) {
            BARRIER();
            if (lane < reach) {
                int a = side + lane, b = a + reach;
                if (best_size[b] > best_size[a] || (best_size[b] == best_size[a] && best_row[b] < best_row[a])) {
                    best_size[a] = best_size[b];
                    best_row[a] = best_row[b];
                }
            }
        }
        BARRIER();
        where = best_row[side];
#endif
        int chosen = where < (uint)rows ? (int)where : first + j;
        side = (j & 1) * WIDTH;
        UNROLL
        for (int k = 0; k < ROWS; k++) {
            int row = first + lane + k * GROUP_SIZE;
            if (row == chosen) {
                UNROLL
                for (int c = 0; c < WIDTH; c++) pivot_line[side + c] = value[k][c];
            }
            if (k <= WIDTH / GROUP_SIZE && row == first + j) {
                UNROLL
                for (int c = 0; c < WIDTH; c++) own_line[side + c] = value[k][c];
            }
        }
        BARRIER();
        REAL pivot = pivot_line[side], factor[ROWS];
        REAL scale = pivot == 0 ? (REAL)0 : (REAL)1 / pivot;
        bool tiny = fabs(pivot) < SAFE_MINIMUM;  // its reciprocal would overflow: divide, as LAPACK does
        UNROLL
        for (int k = 0; k < ROWS; k++) {
            int row = first + lane + k * GROUP_SIZE;
            if (row == chosen && chosen != first + j) {
                UNROLL
                for (int c = 0; c < WIDTH; c++) value[k][c] = own_line[side + c];
            }
            if (k <= WIDTH / GROUP_SIZE && row == first + j) {
                UNROLL
                for (int c = 0; c < WIDTH; c++) value[k][c] = pivot_line[side + c];
            }
            factor[k] = row > first + j ? value[k][0] * scale : 0;
        }
        if (tiny && pivot != 0) {
            UNROLL
            for (int k = 0; k < ROWS; k++) factor[k] = first + lane + k * GROUP_SIZE > first + j ? value[k][0] / pivot : 0;
        }
        UNROLL
        for (int k = 0; k < ROWS; k++) {
            int row = first + lane + k * GROUP_SIZE;
            REAL done = row > first + j && pivot != 0 ? factor[k] : value[k][0];
            UNROLL
            for (int c = 1; c < WIDTH; c++)
                value[k][c - 1] = c < WIDTH - j ? value[k][c] - factor[k] * pivot_line[side + c] : value[k][c];
            value[k][WIDTH - 1] = done;
        }
        if (lane == 0) {
            pivots[column + first + j] = chosen + 1;
            if (pivot == 0 && info[0] == 0) info[0] = column + first + j + 1;
        }
    }
    UNROLL
    for (int k = 0; k < ROWS; k++) {
        int row = first + lane + k * GROUP_SIZE;
        UNROLL
        for (int j = 0; j < WIDTH; j++)
            if (row < rows) corner[(ulong)j * (ulong)ld + (ulong)row] = value[k][j];
    }
}

// A factored leaf applied to the other columns of its panel, a group to a column: exchanges everywhere, elimination to the
// right of it. All rows are read, and the 2 WIDTH exchanged ones put in their places, before any is written.
KERNEL apply_leaf(GLOBAL REAL *matrix, GLOBAL const int *step, const int first, GLOBAL const int *pivots, const int p,
                  const int l, const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(int, exchange, WIDTH);
    LOCAL_ARRAY(int, place, 2 * WIDTH);
    LOCAL_ARRAY(REAL, moved, 2 * WIDTH);
    LOCAL_ARRAY(REAL, lower, WIDTH * WIDTH);
    int lane = (int)local_index(), c = (int)group_index(), i = step[0], ld = height, rows = min(l + 1, p - i) * S;
    if (c >= first) c += WIDTH;
    GLOBAL REAL *panel = matrix + top_of(i, i, u, height, devices, slots);
    GLOBAL REAL *target = panel + (ulong)c * (ulong)ld;
    GLOBAL const REAL *leaf = panel + (ulong)first * (ulong)ld;
    REAL below[APPLY_ROWS];
    UNROLL
    for (int k = 0; k < APPLY_ROWS; k++) {
        int row = first + WIDTH + lane + k * GROUP_SIZE;
        below[k] = row < rows ? target[row] : 0;
    }
    for (int k = lane; k < WIDTH; k += GROUP_SIZE) exchange[k] = pivots[i * S + first + k] - 1;
    for (int k = lane; k < WIDTH * WIDTH; k += GROUP_SIZE)
        lower[k] = leaf[(ulong)(k / WIDTH) * (ulong)ld + (ulong)(first + k % WIDTH)];
    BARRIER();
    if (lane < 2 * WIDTH) {
        int to = lane < WIDTH ? first + lane : exchange[lane - WIDTH], from = to;
        ROLLED
        for (int j = WIDTH - 1; j >= 0; j--) from = from == first + j ? exchange[j] : from == exchange[j] ? first + j : from;
        place[lane] = to;
        moved[lane] = target[from];
    }
    BARRIER();
    ROLLED
    for (int t = WIDTH; t < 2 * WIDTH; t++) {
        UNROLL
        for (int k = 0; k < APPLY_ROWS; k++)
            if (place[t] == first + WIDTH + lane + k * GROUP_SIZE) below[k] = moved[t];
    }
    if (c > first) {
        ROLLED
        for (int k = 0; k < WIDTH; k++) {  // the first WIDTH threads, of one warp
            WARP_BARRIER();
            if (lane > k && lane < WIDTH) moved[lane] -= lower[k * WIDTH + lane] * moved[k];
        }
        BARRIER();
        UNROLL
        for (int k = 0; k < APPLY_ROWS; k++) {
            int row = first + WIDTH + lane + k * GROUP_SIZE;
            if (row < rows) {
                UNROLL
                for (int j = 0; j < WIDTH; j++) below[k] -= leaf[(ulong)j * (ulong)ld + (ulong)row] * moved[j];
            }
        }
    }
    if (lane < WIDTH) target[first + lane] = moved[lane];
    UNROLL
    for (int k = 0; k < APPLY_ROWS; k++) {
        int row = first + WIDTH + lane + k * GROUP_SIZE;
        if (row < rows) target[row] = below[k];
    }
}
