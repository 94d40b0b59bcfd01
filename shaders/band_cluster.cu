// Band LU: the whole panel of a block column by one launch, on GPUs whose groups can work together as a cluster.
#include "band_lu.h"

#if HAS_WARP_REDUCTION
#define TEAM 32  // threads that find their best row without a barrier
#define TEAM_BARRIER() WARP_BARRIER()
#define BESTS 32
#else
#define BESTS ROW_THREADS
#define TEAM ROW_THREADS
#define TEAM_BARRIER() BARRIER()
#endif
#define ROW_THREADS (GROUP_SIZE / HELP)  // which have rows; the others help them when many columns are updated
#define TEAMS (ROW_THREADS / TEAM)
#define REACH (ROW_THREADS * ROWS)  // rows of a group

// A row of a leaf to all groups of the cluster, by one team.
#define LETTERS ((CLUSTER * WIDTH + TEAM - 1) / TEAM)
DEVICE void mail_line(LOCAL const REAL *from, LOCAL REAL *to, LOCAL ulong *box, int lane) {
    REAL word[LETTERS];
    UNROLL
    for (int m = 0; m < LETTERS; m++) word[m] = from[(lane + m * TEAM) % WIDTH];
    UNROLL
    for (int m = 0; m < LETTERS; m++) {
        int e = lane + m * TEAM;
        if (CLUSTER * WIDTH % TEAM == 0 || e < CLUSTER * WIDTH) MAIL(to + e % WIDTH, e / WIDTH, word[m], box);
    }
}

// P L U of a whole panel by one cluster of CLUSTER groups, each with REACH rows of it, WIDTH columns at a time in registers. For
// every column each group mails its best row to all groups, which then agree without a barrier.
KERNEL_CLUSTER(CLUSTER) factor_panel(GLOBAL REAL *matrix, const int i, GLOBAL int *pivots, GLOBAL int *info, const int p, const int l,
                                     const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(ulong, boxes, 2);  // these three for two columns in turn: nobody is further ahead of another
    LOCAL_ARRAY(REAL, lines, 2 * CLUSTER * WIDTH);
    LOCAL_ARRAY(REAL, own_line, 2 * WIDTH);
    LOCAL_ARRAY(REAL, sizes, 2 * CLUSTER);
    LOCAL_ARRAY(uint, places, 2 * CLUSTER);
    LOCAL_ARRAY(REAL, best_size, 2 * BESTS);  // of the teams
    LOCAL_ARRAY(uint, best_row, 2 * BESTS);
    LOCAL_ARRAY(REAL, staged, 2 * WIDTH);
    LOCAL_ARRAY(REAL, upper, WIDTH * S);
    LOCAL_ARRAY(REAL, lower, WIDTH * (WIDTH + 1));
    LOCAL_ARRAY(REAL, moved, 2 * WIDTH * ((S + CLUSTER - 1) / CLUSTER));
    LOCAL_ARRAY(int, exchange, WIDTH);
    LOCAL_ARRAY(int, moves_to, 2 * WIDTH);
    LOCAL_ARRAY(int, moves_from, 2 * WIDTH);
#if HELP > 1
    LOCAL_ARRAY(REAL, kept, WIDTH * ROW_THREADS);  // the leaf, for the helpers
#endif
    int rank = (int)cluster_rank(), thread = (int)local_index(), part = thread / ROW_THREADS, own_thread = thread % ROW_THREADS;
    int team = own_thread / TEAM, lane = own_thread % TEAM, ld = height, rows = min(l + 1, p - i) * S, column = i * S;
    int top = rank * REACH + own_thread;
    GLOBAL REAL *panel = matrix + top_of(i, i, u, height, devices, slots);
    REAL value[ROWS][WIDTH];
    if (thread == 0) {
        mailbox_open(boxes);
        mailbox_open(boxes + 1);
    }
    CLUSTER_BARRIER();
    CLUSTER_ARRIVE();
    ROLLED
    for (int first = 0; first < S; first += WIDTH) {
        GLOBAL REAL *leaf = panel + (ulong)first * (ulong)ld;
        if (ROWS > 1 || first == 0) {  // one row stays in the registers from the update before
            UNROLL
            for (int k = 0; k < ROWS; k++) {
                int row = top + k * ROW_THREADS;
                UNROLL
                for (int j = 0; j < WIDTH; j++)
                    value[k][j] = row >= first && row < rows ? leaf[(ulong)j * (ulong)ld + (ulong)row] : 0;
            }
        }
        if (part > 0) {
            for (int j = 0; j < WIDTH; j++) BARRIER();  // that of every column
        } else {
        ROLLED
        for (int j = 0; j < WIDTH; j++) {  // column j stands in value[][0]; see factor_leaf
            int side = j & 1;
            if (thread == 0) mailbox_expect(boxes + side, (CLUSTER * (WIDTH + 1) + WIDTH) * sizeof(REAL) + CLUSTER * sizeof(uint));
            REAL size = 0;
            uint where = 0xffffffffu;
            UNROLL
            for (int k = 0; k < ROWS; k++) {
                int row = top + k * ROW_THREADS;
                REAL here = fabs(value[k][0]);
                if (row >= first + j && row < rows && (here > size || where == 0xffffffffu)) { size = here; where = (uint)row; }
            }
#if HAS_WARP_REDUCTION
            best_of_warp(&size, &where);
            if (lane == 0) { best_size[side * BESTS + team] = size; best_row[side * BESTS + team] = where; }
            BARRIER();
            size = lane < TEAMS ? best_size[side * BESTS + lane] : 0;
            where = lane < TEAMS ? best_row[side * BESTS + lane] : 0xffffffffu;
            best_of_warp(&size, &where);
#else
            best_size[thread] = size;
            best_row[thread] = where;
            for (int count = ROW_THREADS; count > 1; count = (count + 1) / 2) {
                int b = thread + (count + 1) / 2;
                BARRIER();
                if (b < count && (best_size[b] > best_size[thread] || (best_size[b] == best_size[thread] && best_row[b] < best_row[thread]))) {
                    best_size[thread] = best_size[b];
                    best_row[thread] = best_row[b];
                }
            }
            BARRIER();
            size = best_size[0];
            where = best_row[0];
#endif
            // The team of the group's best row mails it, and that of row first + j, which may have to go there, mails that one.
            int sender = where == 0xffffffffu ? 0 : ((int)where - rank * REACH) % ROW_THREADS / TEAM;
            int local_own = first + j - rank * REACH, own_team = local_own % ROW_THREADS / TEAM;
            bool has_own = local_own >= 0 && local_own < REACH && own_team == team;
            UNROLL
            for (int k = 0; k < ROWS; k++) {
                int row = top + k * ROW_THREADS;
                if ((uint)row == where) {
                    UNROLL
                    for (int c = 0; c < WIDTH; c++) staged[c] = value[k][c];
                }
                if (row == first + j) {
                    UNROLL
                    for (int c = 0; c < WIDTH; c++) staged[WIDTH + c] = value[k][c];
                }
            }
            TEAM_BARRIER();
            if (has_own) mail_line(staged + WIDTH, own_line + side * WIDTH, &boxes[side], lane);
            if (team == sender) {
                mail_line(staged, lines + (side * CLUSTER + rank) * WIDTH, &boxes[side], lane);
                if (lane < CLUSTER) {  // a team has more threads than a cluster groups
                    MAIL(&sizes[side * CLUSTER + rank], lane, size, &boxes[side]);
                    MAIL(&places[side * CLUSTER + rank], lane, where, &boxes[side]);
                }
            }
            mailbox_wait(boxes + side, (uint)((first + j) / 2) & 1u);
#if HAS_WARP_REDUCTION
            size = lane < CLUSTER ? sizes[side * CLUSTER + lane] : 0;
            where = lane < CLUSTER ? places[side * CLUSTER + lane] : 0xffffffffu;
            REAL candidate = lane < CLUSTER ? lines[(side * CLUSTER + lane) * WIDTH] : 0;
            REAL inverse = candidate == 0 ? (REAL)0 : (REAL)1 / candidate;  // of all, while they are compared
            best_of_warp(&size, &where);
#else
            for (int k = 0; k < CLUSTER; k++) {
                REAL here = sizes[side * CLUSTER + k];
                uint place = places[side * CLUSTER + k];
                if (here > size || (here == size && place < where)) { size = here; where = place; }
            }
#endif
            int chosen = where < (uint)rows ? (int)where : first + j;
            LOCAL const REAL *line = lines + (side * CLUSTER + chosen / REACH) * WIDTH;
            LOCAL const REAL *own = own_line + side * WIDTH;
            REAL pivot = line[0], factor[ROWS];
#if HAS_WARP_REDUCTION
            REAL scale = broadcast(inverse, chosen / REACH);
#else
            REAL scale = pivot == 0 ? (REAL)0 : (REAL)1 / pivot;
#endif
            bool tiny = fabs(pivot) < SAFE_MINIMUM;  // its reciprocal would overflow: divide, as LAPACK does
            UNROLL
            for (int k = 0; k < ROWS; k++) {
                int row = top + k * ROW_THREADS;
                if (row == chosen && chosen != first + j) {
                    UNROLL
                    for (int c = 0; c < WIDTH; c++) value[k][c] = own[c];
                }
                if (row == first + j) {
                    UNROLL
                    for (int c = 0; c < WIDTH; c++) value[k][c] = line[c];
                }
                factor[k] = row > first + j ? value[k][0] * scale : 0;
            }
            if (tiny && pivot != 0) {
                UNROLL
                for (int k = 0; k < ROWS; k++) factor[k] = top + k * ROW_THREADS > first + j ? value[k][0] / pivot : 0;
            }
            UNROLL
            for (int k = 0; k < ROWS; k++) {
                REAL done = top + k * ROW_THREADS > first + j && pivot != 0 ? factor[k] : value[k][0];
                UNROLL
                for (int c = 1; c < WIDTH; c++)
                    value[k][c - 1] = c < WIDTH - j ? value[k][c] - factor[k] * line[c] : value[k][c];
                value[k][WIDTH - 1] = done;
            }
            if (thread == 0) {
                exchange[j] = chosen;
                if (rank == 0) {
                    pivots[column + first + j] = chosen + 1;
                    if (pivot == 0 && info[0] == 0) info[0] = column + first + j + 1;
                }
            }
        }
        }
        CLUSTER_WAIT();  // for the updates with the leaf before this one
        for (int e = thread; first > 0 && e < WIDTH * (S - first); e += GROUP_SIZE) {
            int c = first + e / WIDTH;
            if (c % CLUSTER == rank)
                panel[(ulong)c * (ulong)ld + (ulong)(first - WIDTH + e % WIDTH)] = upper[c * WIDTH + e % WIDTH];
        }
        UNROLL
        for (int k = 0; k < ROWS; k++) {
            int row = top + k * ROW_THREADS;
            UNROLL
            for (int j = 0; j < WIDTH; j++) {
                if (part == 0 && row >= first && row < rows) leaf[(ulong)j * (ulong)ld + (ulong)row] = value[k][j];
#if HELP > 1
                if (part == 0) kept[j * ROW_THREADS + own_thread] = value[k][j];
#endif
            }
        }
        // The exchanges in the other columns, dealt to the groups: all is read before any is written.
        BARRIER();
        for (int e = thread; e < 2 * WIDTH; e += GROUP_SIZE) {
            int to = e < WIDTH ? first + e : exchange[e - WIDTH], from = to;
            for (int j = WIDTH - 1; j >= 0; j--) from = from == first + j ? exchange[j] : from == exchange[j] ? first + j : from;
            moves_to[e] = to;
            moves_from[e] = from;
        }
        BARRIER();
        int others = (S - WIDTH - rank + CLUSTER - 1) / CLUSTER;
        for (int e = thread; e < 2 * WIDTH * others; e += GROUP_SIZE) {
            int c = rank + e / (2 * WIDTH) * CLUSTER;
            moved[e] = panel[(ulong)(c < first ? c : c + WIDTH) * (ulong)ld + (ulong)moves_from[e % (2 * WIDTH)]];
        }
        BARRIER();
        for (int e = thread; e < 2 * WIDTH * others; e += GROUP_SIZE) {
            int c = rank + e / (2 * WIDTH) * CLUSTER;
            panel[(ulong)(c < first ? c : c + WIDTH) * (ulong)ld + (ulong)moves_to[e % (2 * WIDTH)]] = moved[e];
        }
        CLUSTER_BARRIER();
        // The rows of U, solved by every group for itself, and the elimination from each group's rows of the columns to the right.
        int right = first + WIDTH;
        for (int e = thread; e < WIDTH * WIDTH; e += GROUP_SIZE)
            lower[e] = leaf[(ulong)(e / WIDTH) * (ulong)ld + (ulong)(first + e % WIDTH)];
        BARRIER();
        for (int c = right + thread; c < S; c += GROUP_SIZE) {
            REAL x[WIDTH];
            UNROLL
            for (int k = 0; k < WIDTH; k++) x[k] = panel[(ulong)c * (ulong)ld + (ulong)(first + k)];
            ROLLED
            for (int k = 0; k < WIDTH; k++) {  // row k stands in x[0]; what comes up from behind is not used
                REAL done = x[0];
                upper[c * WIDTH + k] = done;
                UNROLL
                for (int r = 1; r < WIDTH; r++) x[r - 1] = x[r] - lower[k * (WIDTH + 1) + r] * done;
            }
        }
        BARRIER();
#if HELP > 1
        UNROLL
        for (int j = 0; j < WIDTH; j++) value[0][j] = kept[j * ROW_THREADS + own_thread];
#endif
        // Part 0 has the columns of the next leaf and, so that all have as many, some of the rest.
        int each = ((S - right) / BATCH + HELP - 1) / HELP * BATCH, start = part == 0 ? right : min(S, right + max(each, WIDTH) + (part - 1) * each);
        int end = part == 0 ? min(S, right + max(each, WIDTH)) : min(S, start + each);
#if ROWS == 1
        REAL next[WIDTH];
        UNROLL
        for (int j = 0; j < WIDTH; j++) next[j] = 0;
        if (part == 0 && right < S) {
            UNROLL
            for (int j = 0; j < WIDTH; j++)
                next[j] = top >= right && top < rows ? panel[(ulong)(right + j) * (ulong)ld + (ulong)top] : 0;
            UNROLL
            for (int j = 0; j < WIDTH; j++) {
                UNROLL
                for (int m = 0; m < WIDTH; m++) next[j] -= value[0][m] * upper[(right + j) * WIDTH + m];
                IN_ORDER();
                if (top < right) next[j] = 0;
            }
            start += WIDTH;
        }
#endif
        ROLLED
        for (int c = start; c < end; c += BATCH) {
            REAL sum[BATCH][ROWS];
            UNROLL
            for (int m = 0; m < BATCH; m++) {
                UNROLL
                for (int k = 0; k < ROWS; k++) {
                    int row = top + k * ROW_THREADS;
                    sum[m][k] = row >= right && row < rows ? panel[(ulong)(c + m) * (ulong)ld + (ulong)row] : 0;
                }
            }
            UNROLL
            for (int m = 0; m < BATCH; m++) {
                UNROLL
                for (int j = 0; j < WIDTH; j++) {
                    UNROLL
                    for (int k = 0; k < ROWS; k++) sum[m][k] -= value[k][j] * upper[(c + m) * WIDTH + j];
                }
                IN_ORDER();
            }
            UNROLL
            for (int m = 0; m < BATCH; m++) {
                UNROLL
                for (int k = 0; k < ROWS; k++) {
                    int row = top + k * ROW_THREADS;
                    if (row >= right && row < rows) panel[(ulong)(c + m) * (ulong)ld + (ulong)row] = sum[m][k];
                }
            }
        }
        CLUSTER_ARRIVE();
#if ROWS == 1
        UNROLL
        for (int j = 0; j < WIDTH; j++) value[0][j] = next[j];
#endif
    }
    CLUSTER_WAIT();
}
