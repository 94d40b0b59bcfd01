// Band LU: the whole panel of a block column by one launch, on GPUs whose groups can work together as a cluster of CLUSTER
// groups. Each has REACH rows of the panel. WIDTH columns at a time, a leaf, are factored in registers: for every column each
// group mails its best row to all groups, which then agree without a barrier. Then the leaf is applied to the other columns.
#include "numerics/band_lu/band_lu.h"

#define TEAM 32  // threads that find their best row without a barrier
#define TEAMS (GROUP_SIZE / TEAM)
#define REACH (GROUP_SIZE * ROWS)  // rows of a group
#define CANDIDATES_BYTES (CLUSTER * (sizeof(REAL) + sizeof(uint)))  // that a column brings a group first
#define LINES_BYTES ((CLUSTER + 1) * WIDTH * sizeof(REAL))  // and then
#define BY_MATRIX_UNITS (HAS_MATRIX_UNITS && DOUBLE && WIDTH % 8 == 0)
// Element (row k, column c) of the rows of U: lanes of a warp that take four rows of eight columns find them in all banks.
#define UPPER(c, k) upper[(c) * WIDTH + ((k) ^ (((c) * WIDTH / 16 & (WIDTH / 4 - 1)) << 2))]
#define EACH_ROW(k) for (int k = 0; k < ROWS; k++)
#define EACH_COLUMN(c) for (int c = 0; c < WIDTH; c++)

typedef struct {
    GLOBAL REAL *first;  // element; columns are ld apart
    int ld, rows, rank;  // rows of the panel; rank of this group in the cluster
    int team, lane;  // the warp, the thread within it
    int top;  // this thread's first row; others follow GROUP_SIZE apart
} Panel;

typedef struct {  // in local memory, where other groups write; two or three columns in turn: nobody is further ahead
    LOCAL ulong *boxes;  // two of candidates, two of lines
    LOCAL REAL *lines;  // the groups' best rows, of three columns: the one before is still used while the next arrive
    LOCAL REAL *own_line;  // the row that stands where the pivot's will
    LOCAL REAL *candidates;  // the groups' best elements
    LOCAL uint *places;  // and their rows
} Mail;

typedef struct {  // in local memory, within a group
    LOCAL REAL *best_size;  // of the teams
    LOCAL uint *best_row;
    LOCAL REAL *staged;
    LOCAL int *exchange;  // the leaf's pivots
} Group;

DEVICE GLOBAL REAL *column_of(const Panel *p, int c) { return p->first + c * p->ld; }  // a panel has fewer than 2^31
DEVICE int row_of(const Panel *p, int k) { return p->top + k * GROUP_SIZE; }

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

// The largest element at or below row `least` of the column in value[][0] among the group's rows, and the uppermost row that has it.
DEVICE void best_of_group(const Panel *p, REAL (*value)[WIDTH], int least, int side, Group group, REAL *size, uint *where) {
    *size = 0;
    *where = 0xffffffffu;
    UNROLL
    EACH_ROW(k) {
        int row = row_of(p, k);
        REAL here = fabs(value[k][0]);
        if (row >= least && row < p->rows && (here > *size || *where == 0xffffffffu)) { *size = here; *where = (uint)row; }
    }
    best_of_warp(size, where);
    if (p->lane == 0) { group.best_size[side * TEAM + p->team] = *size; group.best_row[side * TEAM + p->team] = *where; }
    BARRIER();
    *size = p->lane < TEAMS ? group.best_size[side * TEAM + p->lane] : 0;
    *where = p->lane < TEAMS ? group.best_row[side * TEAM + p->lane] : 0xffffffffu;
    best_of_warp(size, where);
}

// What column j - 1 still has to do to the columns behind column j: `factor` of its pivot row `line`. All move up by one place,
// and column j - 1, which waits in value[][1], goes to the end: so no register is needed by a computed number.
DEVICE void eliminate_rest(REAL (*value)[WIDTH], const REAL *factor, LOCAL const REAL *line, int j) {
    UNROLL
    EACH_ROW(k) {
        REAL done = value[k][1];
        UNROLL
        for (int c = 2; c < WIDTH; c++) value[k][c - 1] = c <= WIDTH - j ? value[k][c] - factor[k] * line[c] : value[k][c];
        value[k][WIDTH - 1] = done;
    }
}

// Mails the group's best element, by its team, before the row is ready.
DEVICE void mail_candidate(const Panel *p, REAL (*value)[WIDTH], uint where, int side, Mail post) {
    REAL best = 0;
    UNROLL
    EACH_ROW(k) {
        if ((uint)row_of(p, k) == where) best = value[k][0];
    }
    best = broadcast(best, (int)where % TEAM);  // rows of a group begin with a multiple of TEAM
    if (p->lane < CLUSTER) {  // a team has more threads than a cluster groups
        MAIL(post.candidates + side * CLUSTER + p->rank, p->lane, where == 0xffffffffu ? 0 : best, post.boxes + side);
        MAIL(post.places + side * CLUSTER + p->rank, p->lane, where, post.boxes + side);
    }
}

// Mails the group's best row, where it has one, by its team, and the row that may go there by that one's.
DEVICE void mail_rows(const Panel *p, REAL (*value)[WIDTH], int target, uint where, bool sends, bool has_target, int side, int turn,
                      Mail post, Group group) {
    UNROLL
    EACH_ROW(k) {
        int row = row_of(p, k);
        if ((uint)row == where) {
            UNROLL
            EACH_COLUMN(c) group.staged[c] = value[k][c];
        }
        if (row == target) {
            UNROLL
            EACH_COLUMN(c) group.staged[WIDTH + c] = value[k][c];
        }
    }
    WARP_BARRIER();
    LOCAL ulong *box = post.boxes + 2 + side;
    if (sends) mail_line(group.staged, post.lines + (turn * CLUSTER + p->rank) * WIDTH, box, p->lane);
    if (has_target) mail_line(group.staged + WIDTH, post.own_line + side * WIDTH, box, p->lane);
}

// The pivot's row among the groups' best, which have arrived, and the reciprocal of the pivot.
DEVICE int choose_pivot(const Panel *p, int target, int side, Mail post, REAL *scale) {
    bool counts = p->lane < CLUSTER;
    REAL candidate = counts ? post.candidates[side * CLUSTER + p->lane] : 0, size = fabs(candidate);
    uint where = counts ? post.places[side * CLUSTER + p->lane] : 0xffffffffu;
    REAL inverse = candidate == 0 ? (REAL)0 : (REAL)1 / candidate;  // of all, while they are compared
    best_of_warp(&size, &where);
    int chosen = where < (uint)p->rows ? (int)where : target;
    *scale = broadcast(inverse, chosen / REACH);
    return chosen;
}

// Exchanges rows `chosen` and `target` in the registers and eliminates from the first two columns: value[][1] is the finished one
// then and value[][0] the next, as far as `last` says that there is one.
DEVICE void eliminate_next(const Panel *p, REAL (*value)[WIDTH], REAL *factor, int target, int chosen, REAL scale, bool last,
                           LOCAL const REAL *line, LOCAL const REAL *own) {
    REAL pivot = line[0];
    bool tiny = fabs(pivot) < SAFE_MINIMUM;  // its reciprocal would overflow: divide, as LAPACK does
    UNROLL
    EACH_ROW(k) {
        int row = row_of(p, k);
        if (row == chosen && chosen != target) {
            UNROLL
            EACH_COLUMN(c) value[k][c] = own[c];
        }
        if (row == target) {
            UNROLL
            EACH_COLUMN(c) value[k][c] = line[c];
        }
        factor[k] = row > target ? value[k][0] * scale : 0;
    }
    if (tiny && pivot != 0) {
        UNROLL
        EACH_ROW(k) factor[k] = row_of(p, k) > target ? value[k][0] / pivot : 0;
    }
    UNROLL
    EACH_ROW(k) {
        REAL done = row_of(p, k) > target && pivot != 0 ? factor[k] : value[k][0];
        value[k][0] = last ? value[k][1] : value[k][1] - factor[k] * line[1];
        value[k][1] = done;
    }
}

// P L U of the leaf in the registers. Ties take the uppermost row, as LAPACK's do.
DEVICE void factor_columns(const Panel *p, REAL (*value)[WIDTH], int first, int column, GLOBAL int *pivots,
                           GLOBAL int *info, Mail post, Group group) {
    REAL factor[ROWS];
    UNROLL
    EACH_ROW(k) factor[k] = 0;
    LOCAL const REAL *line = post.lines;
    ROLLED
    for (int j = 0; j < WIDTH; j++) {  // column j stands in value[][0]
        int side = j & 1, turn = (first + j) % 3, target = first + j, own = target - p->rank * REACH;
        if (p->team == 0 && p->lane == 0) {
            mailbox_expect(post.boxes + side, CANDIDATES_BYTES);
            mailbox_expect(post.boxes + 2 + side, LINES_BYTES);
        }
        REAL size, scale;
        uint where, parity = (uint)(target / 2) & 1u;
        best_of_group(p, value, target, side, group, &size, &where);
        bool sends = p->team == (where == 0xffffffffu ? 0 : ((int)where - p->rank * REACH) % GROUP_SIZE / TEAM);
        bool has_target = own >= 0 && own < REACH && own % GROUP_SIZE / TEAM == p->team;
        if (sends) mail_candidate(p, value, where, side, post);
        if (j > 0) eliminate_rest(value, factor, line, j);
        if (sends || has_target) mail_rows(p, value, target, where, sends, has_target, side, turn, post, group);
        mailbox_wait(post.boxes + side, parity);
        int chosen = choose_pivot(p, target, side, post, &scale);
        mailbox_wait(post.boxes + 2 + side, parity);
        line = post.lines + (turn * CLUSTER + chosen / REACH) * WIDTH;
        eliminate_next(p, value, factor, target, chosen, scale, j == WIDTH - 1, line, post.own_line + side * WIDTH);
        if (p->team == 0 && p->lane == 0) {
            group.exchange[j] = chosen;
            if (p->rank == 0) {
                pivots[column + target] = chosen + 1;
                if (line[0] == 0 && info[0] == 0) info[0] = column + target + 1;
            }
        }
    }
    eliminate_rest(value, factor, line, WIDTH);
}

// The leaf's exchanges in the other columns, which are dealt to the groups: all is read before any is written.
DEVICE void exchange_rows(const Panel *p, int first, LOCAL const int *exchange, LOCAL int *to, LOCAL int *from, LOCAL REAL *moved) {
    int thread = (int)local_index();
    for (int e = thread; e < 2 * WIDTH; e += GROUP_SIZE) {
        int goes = e < WIDTH ? first + e : exchange[e - WIDTH], comes = goes;
        ROLLED
        for (int j = WIDTH - 1; j >= 0; j--) comes = comes == first + j ? exchange[j] : comes == exchange[j] ? first + j : comes;
        to[e] = goes;
        from[e] = comes;
    }
    BARRIER();
    int others = (S - WIDTH - p->rank + CLUSTER - 1) / CLUSTER;
    for (int e = thread; e < 2 * WIDTH * others; e += GROUP_SIZE) {
        int c = p->rank + e / (2 * WIDTH) * CLUSTER;
        moved[e] = column_of(p, c < first ? c : c + WIDTH)[from[e % (2 * WIDTH)]];
    }
    BARRIER();
    for (int e = thread; e < 2 * WIDTH * others; e += GROUP_SIZE) {
        int c = p->rank + e / (2 * WIDTH) * CLUSTER;
        column_of(p, c < first ? c : c + WIDTH)[to[e % (2 * WIDTH)]] = moved[e];
    }
}

// The leaf's rows of U in the columns from `right` on, which every group solves for itself: WIDTH lanes of a warp have a column,
// and a warp AT_ONCE times as many.
#define AT_ONCE 4
#define SOLVED (GROUP_SIZE / WIDTH)  // columns of all warps
DEVICE void solve_upper(const Panel *p, int first, int right, LOCAL REAL *upper) {
    int k = p->lane % WIDTH;
    REAL factor[WIDTH];
    UNROLL
    for (int m = 0; m < WIDTH - 1; m++) factor[m] = column_of(p, first + m)[first + k];
    ROLLED
    for (int start = right; start < S; start += AT_ONCE * SOLVED) {
        REAL x[AT_ONCE];
        UNROLL
        for (int q = 0; q < AT_ONCE; q++) {
            int c = start + q * SOLVED + (int)local_index() / WIDTH;
            x[q] = c < S ? column_of(p, c)[first + k] : 0;
        }
        UNROLL
        for (int m = 0; m < WIDTH - 1; m++) {
            UNROLL
            for (int q = 0; q < AT_ONCE; q++) {
                REAL solved = broadcast(x[q], p->lane - k + m);
                if (k > m) x[q] -= factor[m] * solved;
            }
        }
        UNROLL
        for (int q = 0; q < AT_ONCE; q++) {
            int c = start + q * SOLVED + (int)local_index() / WIDTH;
            if (c < S) UPPER(c, k) = x[q];
        }
    }
}

// The solved rows into the panel, when no group reads what stood there any more.
DEVICE void write_upper(const Panel *p, int first, int right, LOCAL const REAL *upper) {
    for (int e = (int)local_index(); e < WIDTH * (S - right); e += GROUP_SIZE) {
        int c = right + e / WIDTH;
        if (c % CLUSTER == p->rank) column_of(p, c)[first + e % WIDTH] = UPPER(c, e % WIDTH);
    }
}

#if BY_MATRIX_UNITS
// Takes the leaf's multiples of the rows of U from the group's rows: 32 rows of 8 columns a warp.
DEVICE void update_columns(const Panel *p, REAL (*value)[WIDTH], int first, int right, LOCAL const REAL *upper) {
    int row_lane = p->lane / 4, column_lane = p->lane % 4;
    ROLLED
    EACH_ROW(k) {
        int top = row_of(p, k) - p->lane + row_lane;
        if (top - row_lane >= p->rows || top - row_lane + TEAM <= right) continue;
        REAL left[4][WIDTH / 4];
        UNROLL
        for (int e = 0; e < WIDTH; e++) {
            int row = top + e % 4 * 8;
            left[e % 4][e / 4] = row < p->rows ? -column_of(p, first + e / 4 * 4 + column_lane)[row] : 0;
        }
        ROLLED
        for (int c = right; c < S; c += 8) {
            GLOBAL REAL *target = column_of(p, c + 2 * column_lane) + top;
            REAL sum[4][2];
            UNROLL
            for (int e = 0; e < 8; e++) {
                int down = e / 2 * 8;
                sum[e / 2][e % 2] = top + down < p->rows ? target[e % 2 * p->ld + down] : 0;
            }
            UNROLL
            for (int q = 0; q < WIDTH / 4; q++) {
                REAL factor = UPPER(c + row_lane, q * 4 + column_lane);
                UNROLL
                for (int m = 0; m < 4; m++) matrix_add(sum[m], left[m][q], factor);
            }
            UNROLL
            for (int e = 0; e < 8; e++) {
                int down = e / 2 * 8;
                if (top + down >= right && top + down < p->rows) target[e % 2 * p->ld + down] = sum[e / 2][e % 2];
            }
        }
    }
}
#else
// The same, a thread to its rows.
DEVICE void update_columns(const Panel *p, REAL (*value)[WIDTH], int first, int right, LOCAL const REAL *upper) {
    ROLLED
    for (int c = right; c < S; c += BATCH) {
        REAL sum[BATCH][ROWS];
        UNROLL
        for (int m = 0; m < BATCH; m++) {
            UNROLL
            EACH_ROW(k) {
                int row = row_of(p, k);
                sum[m][k] = row >= right && row < p->rows ? column_of(p, c + m)[row] : 0;
            }
        }
        UNROLL
        for (int m = 0; m < BATCH; m++) {
            UNROLL
            EACH_COLUMN(j) {
                UNROLL
                EACH_ROW(k) sum[m][k] -= value[k][j] * UPPER(c + m, j);
            }
            IN_ORDER();
        }
        UNROLL
        for (int m = 0; m < BATCH; m++) {
            UNROLL
            EACH_ROW(k) {
                int row = row_of(p, k);
                if (row >= right && row < p->rows) column_of(p, c + m)[row] = sum[m][k];
            }
        }
    }
}
#endif

// The rows of a leaf between the panel and the registers.
DEVICE void load_leaf(const Panel *p, REAL (*value)[WIDTH], int first) {
    UNROLL
    EACH_ROW(k) {
        int row = row_of(p, k);
        UNROLL
        EACH_COLUMN(c) value[k][c] = row >= first && row < p->rows ? column_of(p, first + c)[row] : 0;
    }
}
DEVICE void store_leaf(const Panel *p, REAL (*value)[WIDTH], int first) {
    UNROLL
    EACH_ROW(k) {
        int row = row_of(p, k);
        UNROLL
        EACH_COLUMN(c) {
            if (row >= first && row < p->rows) column_of(p, first + c)[row] = value[k][c];
        }
    }
}

// P L U of panel i.
KERNEL_CLUSTER(CLUSTER) factor_panel(GLOBAL REAL *matrix, const int i, GLOBAL int *pivots, GLOBAL int *info, const int p, const int l,
                                     const int u, const int height, const int devices, const int slots) {
    LOCAL_ARRAY(ulong, boxes, 4);
    LOCAL_ARRAY(REAL, lines, 3 * CLUSTER * WIDTH);
    LOCAL_ARRAY(REAL, own_line, 2 * WIDTH);
    LOCAL_ARRAY(REAL, candidates, 2 * CLUSTER);
    LOCAL_ARRAY(uint, places, 2 * CLUSTER);
    LOCAL_ARRAY(REAL, best_size, 2 * TEAM);
    LOCAL_ARRAY(uint, best_row, 2 * TEAM);
    LOCAL_ARRAY(REAL, staged, 2 * WIDTH);
    LOCAL_ARRAY(int, exchange, WIDTH);
    LOCAL_ARRAY(REAL, upper, WIDTH * S);
    LOCAL_ARRAY(REAL, moved, 2 * WIDTH * ((S + CLUSTER - 1) / CLUSTER));
    LOCAL_ARRAY(int, moves_to, 2 * WIDTH);
    LOCAL_ARRAY(int, moves_from, 2 * WIDTH);
    Mail post = {boxes, lines, own_line, candidates, places};
    Group group = {best_size, best_row, staged, exchange};
    int thread = (int)local_index(), rank = (int)cluster_rank();
    Panel panel = {matrix + top_of(i, i, u, height, devices, slots), height, min(l + 1, p - i) * S, rank,
                   thread / TEAM, thread % TEAM, rank * REACH + thread};
    REAL value[ROWS][WIDTH];
    for (int k = thread; k < 4; k += GROUP_SIZE) mailbox_open(boxes + k);
    CLUSTER_BARRIER();
    CLUSTER_ARRIVE();
    ROLLED
    for (int first = 0; first < S; first += WIDTH) {
        int right = first + WIDTH;
        load_leaf(&panel, value, first);
        factor_columns(&panel, value, first, i * S, pivots, info, post, group);
        CLUSTER_WAIT();  // for the updates with the leaf before this one
        if (first > 0) write_upper(&panel, first - WIDTH, first, upper);
        store_leaf(&panel, value, first);
        BARRIER();
        exchange_rows(&panel, first, exchange, moves_to, moves_from, moved);
        CLUSTER_BARRIER();
        solve_upper(&panel, first, right, upper);
        BARRIER();
        update_columns(&panel, value, first, right, upper);
        WARP_BARRIER();  // warps load next what they wrote
        CLUSTER_ARRIVE();
    }
    CLUSTER_WAIT();
}
