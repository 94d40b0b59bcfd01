// Band P L U by block columns (paper 4) and the solves with its factors, in REAL precision (float or double).
//
// Memory: a block column is S columns of `height` = (u + l + 1) S rows, column-major; block column t holds the rows from
// (t - u) S on. It lies in slot (t / devices) % slots, and slots are S (height + 1) elements apart, so that resident block
// columns of one device form one column-major matrix of leading dimension height. A panel (S columns of block column i from its
// diagonal block down) has `rows` rows and stands at element `at` of a buffer with leading dimension `ld`.
// Pivots count from 1 within their panel, as LAPACK's do within a call.

#if DOUBLE
#define SAFE_MINIMUM 2.2250738585072014e-308
#define HUGE_NUMBER 1.7976931348623157e308
#define INFINITE_NUMBER as_double((ulong)0x7ff0000000000000)
#else
#define SAFE_MINIMUM 1.17549435e-38f
#define HUGE_NUMBER 3.40282347e38f
#define INFINITE_NUMBER as_float((uint)0x7f800000)
#endif

// Where row i S of block column t begins.
DEVICE ulong top_of(int i, int t, int u, int height, int devices, int slots) {
    return (ulong)((t / devices) % slots) * (ulong)S * (ulong)(height + 1) + (ulong)((i - t + u) * S);
}

// Bytes that were uploaded, or that go back, from one buffer to another.
KERNEL copy_elements(GLOBAL const REAL *from, GLOBAL REAL *to, const ulong from_at, const ulong to_at, const ulong count) {
    ulong k = thread_index_long();
    if (k < count) to[to_at + k] = from[from_at + k];
}

// A panel between memories of different leading dimensions: rows x S.
KERNEL copy_panel(GLOBAL const REAL *from, GLOBAL REAL *to, const ulong from_at, const int from_ld, const ulong to_at,
                  const int to_ld, const int rows) {
    uint k = thread_index();
    int column = (int)(k / (uint)rows), row = (int)(k % (uint)rows);
    if (column < S) to[to_at + (ulong)column * (ulong)to_ld + (ulong)row] = from[from_at + (ulong)column * (ulong)from_ld + (ulong)row];
}

// The panel at from_at of the matrix, dense, and behind it, as integers, its S pivots: all that other devices need of a step.
KERNEL publish_panel(GLOBAL const REAL *matrix, GLOBAL const int *pivots, GLOBAL REAL *to, const ulong from_at, const int from_ld,
                     const int rows, const int first_pivot, const int pivots_at) {
    uint k = thread_index();
    int column = (int)(k / (uint)rows), row = (int)(k % (uint)rows);
    if (column < S) to[(ulong)column * (ulong)rows + (ulong)row] = matrix[from_at + (ulong)column * (ulong)from_ld + (ulong)row];
    if (k < S) ((GLOBAL int *)to)[pivots_at + (int)k] = pivots[first_pivot + (int)k];
}

KERNEL copy_pivots(GLOBAL const int *from, GLOBAL int *to, const int at) {
    uint k = thread_index();
    if (k < S) to[at + (int)k] = from[k];
}

// Fills the slot of block column t from `width` columns of LAPACK's band storage, (kl + ku + 1, width) row-major.
KERNEL place_columns(GLOBAL const REAL *ab, GLOBAL REAL *matrix, const ulong slot_at, const int t, const int width, const int n,
                     const int kl, const int ku, const int u, const int height) {
    ulong k = thread_index_long();
    int j = (int)(k / (ulong)height), local_row = (int)(k % (ulong)height);
    if (k >= (ulong)S * (ulong)(height + 1)) return;
    int row = (t - u) * S + local_row, column = t * S + j, d = ku + row - column;
    REAL value = row == column ? 1 : 0;
    if (j >= S) value = 0;  // the gap before the next slot
    else if (column < n) value = row >= 0 && row < n && d >= 0 && d <= kl + ku ? ab[d * width + j] : 0;
    matrix[slot_at + k] = value;
}

// The largest |a| of block column t from LAPACK's band storage, infinite where it holds NaN, one for each of EXTREMES groups.
KERNEL largest_element(GLOBAL const REAL *ab, GLOBAL REAL *largest, const int t, const int width, const int n, const int kl,
                       const int ku) {
    LOCAL_ARRAY(REAL, best, GROUP_SIZE);
    int lane = (int)local_index();
    REAL size = 0;
    for (uint k = thread_index(); k < (uint)(width * (kl + ku + 1)); k += group_count() * GROUP_SIZE) {
        int d = (int)(k / (uint)width), row = t * S + (int)(k % (uint)width) + d - ku;
        REAL here = fabs(ab[k]);
        if (row >= 0 && row < n) size = here <= HUGE_NUMBER ? fmax(size, here) : INFINITE_NUMBER;
    }
    best[lane] = size;
    for (int reach = GROUP_SIZE / 2; reach > 0; reach /= 2) {
        BARRIER();
        if (lane < reach) best[lane] = fmax(best[lane], best[lane + reach]);
    }
    if (lane == 0) largest[(uint)t * group_count() + group_index()] = best[0];
}

// ------------------------------------------------------------------------------------------------------------- panel
// Which panel is to be factored stands in memory, so that the launches of a panel are the same for every panel (a graph).
KERNEL next_panel(GLOBAL int *step, const int devices) {
    if (thread_index() == 0) step[0] += devices;
}

#if HAS_WARP_REDUCTION
// The largest size >= 0 of a warp and the smallest row that has it: sizes are compared as integers, which have their order.
DEVICE void best_of_warp(REAL *size, uint *row) {
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

#if defined(ROWS) && !defined(CLUSTER)
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
#endif

#ifdef CLUSTER
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
#endif

// --------------------------------------------------------------------------------------------- the rest of the matrix
#if !defined(ROWS) && !defined(RIGHT)  // which the kernels of panels and of solves take: they are texts of their own
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

// Facts of U, a thread to a column of the device's block columns: its largest absolute value and its diagonal.
KERNEL upper_facts(GLOBAL const REAL *matrix, GLOBAL REAL *high, GLOBAL REAL *diagonal, const int n, const int device, const int u,
                   const int height, const int devices, const int slots) {
    int local_column = (int)thread_index(), t = local_column / S * devices + device, c = local_column % S;
    int column = t * S + c;
    if (column >= n) return;
    GLOBAL const REAL *start = matrix + top_of(t, t, u, height, devices, slots) + (ulong)c * (ulong)height;
    REAL best = 0;
    int above = min(column, u * S + c);
    for (int r = 0; r <= above; r++) best = fmax(best, fabs(start[c - r]));
    high[column] = best;
    diagonal[column] = start[c];
}

#endif

#ifdef RIGHT
// -------------------------------------------------------------------------------------------------------------- solves
// S x S triangles stand in local memory, TILE columns at a time; right-hand sides are column-major (order, sides).

#define AHEAD (S < 64 ? S : 64)

// One step of L y = P b. Row r of the window comes from row sources[i * window + r] of it before the exchanges of step i. The window of rows that step i may change comes from `now` where earlier steps changed it, else from
// b, and goes to `next`; its first S rows are done and go to y. Every group solves the triangle for its RIGHT sides by itself:
// waiting for another group would take longer.
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

#ifdef WINDOW
// Both substitutions by one launch each, for blocks of 32 and bands so narrow that one group has a thread for every row of a step's
// window: nothing but barriers of a group lies between two steps then. A group takes RIGHT sides; they are replaced in place.
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
#define FROM_ROW(value, k) broadcast(value, k)
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
#endif
#endif
