// Matrix products out (store)= a b, one kernel an idea, all with one signature: the ladder of the thesis "Making parallel
// programs fast on CUDA" (chapter 3) and the rungs found since. Matrices are rows of `stride` numbers from `start` on.
//   REAL          float or double; REALV is 16 bytes of them, RUN of them in it
//   A_COLUMNS     a is stored (inner, rows), so that element (i, k) stands at k * stride + i; B_COLUMNS: b as (columns, inner)
//   STORE         0 out = a b, 1 out += a b, 2 out -= a b
#define PRODUCT(name) PRODUCT_RESIDENT(name, 1)
#define PRODUCT_RESIDENT(name, groups)                                                                                 \
    KERNEL_MIN_GROUPS(groups)                                                                                            \
    name(GLOBAL const REAL *RESTRICT a, GLOBAL const REAL *RESTRICT b, GLOBAL REAL *RESTRICT out, uint rows,    \
                uint columns, uint inner, ulong a_start, ulong b_start, ulong out_start, ulong a_stride,               \
                ulong b_stride, ulong out_stride)
#define A_AT(i, k) a[a_start + (A_COLUMNS ? (k) * a_stride + (i) : (i) * a_stride + (k))]
#define B_AT(k, j) b[b_start + (B_COLUMNS ? (j) * b_stride + (k) : (k) * b_stride + (j))]
#define OUT_AT(i, j) out[out_start + (i) * out_stride + (j)]

DEVICE void put(GLOBAL REAL *place, REAL value) {
    if (STORE == 0) *place = value;
    if (STORE == 1) *place += value;
    if (STORE == 2) *place -= value;
}

// One thread a row: neighbours read addresses a whole row apart.
PRODUCT(row_per_thread) {
    uint i = thread_index();
    if (i >= rows) return;
    for (uint j = 0; j < columns; j++) {
        REAL sum = 0;
        for (uint k = 0; k < inner; k++) sum += A_AT(i, k) * B_AT(k, j);
        put(&OUT_AT(i, j), sum);
    }
}

// One thread an element, neighbours along a row of out: reads of b and writes of out are coalesced.
PRODUCT(element_per_thread) {
    uint across = (columns + TILE - 1) / TILE;
    uint i = group_index() / across * TILE + local_index() / TILE, j = group_index() % across * TILE + local_index() % TILE;
    if (i >= rows || j >= columns) return;
    REAL sum = 0;
    for (uint k = 0; k < inner; k++) sum += A_AT(i, k) * B_AT(k, j);
    put(&OUT_AT(i, j), sum);
}

#ifdef EACH  // ------------------------------------------------------------------------ square tiles in local memory
// TILE x TILE threads, each EACH elements of a row TILE apart. UNROLLED 1: the loop over the tile has no counter.
// PREFETCH 1: the next tiles travel from global memory to registers while the present ones are used.
#if UNROLLED
#define UNROLL_TILE UNROLL
#else
#define UNROLL_TILE NO_UNROLL
#endif
PRODUCT(tiles) {
    LOCAL_ARRAY(REAL, a_tile, TILE *TILE);
    LOCAL_ARRAY(REAL, b_tile, TILE *TILE *EACH);
    uint across = (columns + TILE * EACH - 1) / (TILE * EACH);
    uint y = local_index() / TILE, x = local_index() % TILE;
    uint i = group_index() / across * TILE + y, j = group_index() % across * (TILE * EACH) + x;
    REAL sums[EACH], b_next[EACH], a_next = 0;
    UNROLL for (int e = 0; e < EACH; e++) { sums[e] = 0; b_next[e] = 0; }
#define FETCH(first)                                                                                                   \
    {                                                                                                                  \
        uint ka = (first) + x, kb = (first) + y;                                                                       \
        a_next = i < rows && ka < inner ? A_AT(i, ka) : 0;                                                             \
        UNROLL for (int e = 0; e < EACH; e++)                                                                          \
            b_next[e] = kb < inner && j + e * TILE < columns ? B_AT(kb, j + e * TILE) : 0;                             \
    }
    if (PREFETCH) FETCH(0)
    for (uint first = 0; first < inner; first += TILE) {
        if (!PREFETCH) FETCH(first)
        a_tile[y * TILE + x] = a_next;
        UNROLL for (int e = 0; e < EACH; e++) b_tile[y * (TILE * EACH) + e * TILE + x] = b_next[e];
        BARRIER();
        if (PREFETCH) FETCH(first + TILE)
        UNROLL_TILE for (int k = 0; k < TILE; k++)
            UNROLL for (int e = 0; e < EACH; e++)
                sums[e] += a_tile[y * TILE + k] * b_tile[k * (TILE * EACH) + e * TILE + x];
        BARRIER();
    }
    UNROLL for (int e = 0; e < EACH; e++)
        if (i < rows && j + e * TILE < columns) put(&OUT_AT(i, j + e * TILE), sums[e]);
}
#endif

#ifdef BLOCK_ROWS  // ---------------------------------------------------- a block of out in the registers of a group
// Each group makes BLOCK_ROWS x BLOCK_COLUMNS of out from tiles BLOCK_INNER deep; each thread EACH_ROWS x EACH_COLUMNS of it.
//   VECTOR        global and local memory are read 16 bytes at a time (starts and strides are multiples of RUN)
//   BUFFERS       2: the next tiles are loaded beside the arithmetic and stored to the other buffer, one barrier a tile
//   WARP_ROWS, WARP_COLUMNS   threads of a warp as a rectangle, each with runs of RUN elements WARP_*  * RUN apart, so that
//                 a warp reads neighbouring 16-byte words; 0: a thread owns one compact rectangle
//   SLICES        the depth of each tile is shared out among so many sets of threads, whose sums are added at the end
//   WHOLE         the block sizes divide the matrix: no bounds are checked
//   RESIDENT      groups that a unit holds at once: the limit of registers
#define SET_THREADS (GROUP_SIZE / SLICES)
#define SLICE_INNER (BLOCK_INNER / SLICES)
#define A_PITCH (BLOCK_ROWS + A_PAD)
#define B_PITCH (BLOCK_COLUMNS + B_PAD)
#define A_LOADS (BLOCK_ROWS * BLOCK_INNER / GROUP_SIZE)
#define B_LOADS (BLOCK_COLUMNS * BLOCK_INNER / GROUP_SIZE)

#if VECTOR
#define STEP RUN
#else
#define STEP 1
#endif

#if RUN == 4
#define SPREAD(array, at, v) { array[at] = v.x; array[at + 1] = v.y; array[at + 2] = v.z; array[at + 3] = v.w; }
#define GATHER(array, at) make_float4(array[at], array[at + 1], array[at + 2], array[at + 3])
#else
#define SPREAD(array, at, v) { array[at] = v.x; array[at + 1] = v.y; }
#define GATHER(array, at) make_double2(array[at], array[at + 1])
#endif

// STEP numbers of an operand into kept[at...]: `along` counts in its contiguous direction, `over` from run to run.
#if VECTOR
#define LOAD(kept, at, source, place, inside, room)                                                                    \
    {                                                                                                                  \
        if (WHOLE || ((inside) && (room) >= RUN)) {                                                                    \
            REALV word = *(GLOBAL const REALV *)&source[place];                                                        \
            SPREAD(kept, at, word)                                                                                     \
        } else                                                                                                         \
            UNROLL for (int r = 0; r < RUN; r++) kept[(at) + r] = (inside) && (room) > r ? source[(place) + r] : 0;    \
    }
#else
#define LOAD(kept, at, source, place, inside, room)                                                                    \
    { kept[at] = WHOLE || ((inside) && (room) > 0) ? source[place] : 0; }
#endif

// The tile element that load number t of this thread begins: along the contiguous direction of length `extent` first.
#define ALONG(t, extent) (((t) / STEP * GROUP_SIZE + local_index()) % ((extent) / STEP) * STEP)
#define OVER(t, extent) (((t) / STEP * GROUP_SIZE + local_index()) / ((extent) / STEP))

// a_here and b_here are where this thread's first loads begin; each further load lies A_HOP or B_HOP runs on.
#define A_EXTENT (A_COLUMNS ? BLOCK_ROWS : BLOCK_INNER)
#define B_EXTENT (B_COLUMNS ? BLOCK_INNER : BLOCK_COLUMNS)
#define A_HOP (GROUP_SIZE * STEP / A_EXTENT)
#define B_HOP (GROUP_SIZE * STEP / B_EXTENT)
#define FETCH_BLOCK(first)                                                                                             \
    {                                                                                                                  \
        UNROLL for (int t = 0; t < A_LOADS; t += STEP) {                                                               \
            uint along = ALONG(0, A_EXTENT), over = OVER(t, A_EXTENT);                                                 \
            bool inside = A_COLUMNS ? (first) + over < inner : block_row + over < rows;                                \
            int room = A_COLUMNS ? (int)rows - (int)(block_row + along) : (int)inner - (int)((first) + along);         \
            LOAD(a_next, t, a, a_here + (t / STEP) * (A_HOP * a_stride), inside, room)                                 \
        }                                                                                                              \
        UNROLL for (int t = 0; t < B_LOADS; t += STEP) {                                                               \
            uint along = ALONG(0, B_EXTENT), over = OVER(t, B_EXTENT);                                                 \
            bool inside = B_COLUMNS ? block_column + over < columns : (first) + over < inner;                          \
            int room = B_COLUMNS ? (int)inner - (int)((first) + along) : (int)columns - (int)(block_column + along);   \
            LOAD(b_next, t, b, b_here + (t / STEP) * (B_HOP * b_stride), inside, room)                                 \
        }                                                                                                              \
        a_here += A_COLUMNS ? BLOCK_INNER * a_stride : BLOCK_INNER;                                                    \
        b_here += B_COLUMNS ? BLOCK_INNER : BLOCK_INNER * b_stride;                                                    \
    }
// Tiles stand in local memory with the depth outermost, so that a thread's rows and columns are runs.
#define KEEP_BLOCK(buffer)                                                                                             \
    {                                                                                                                  \
        UNROLL for (int t = 0; t < A_LOADS; t += STEP) UNROLL for (int r = 0; r < STEP; r++) {                         \
            uint i = A_COLUMNS ? ALONG(t, BLOCK_ROWS) + r : OVER(t, BLOCK_INNER);                                      \
            uint k = A_COLUMNS ? OVER(t, BLOCK_ROWS) : ALONG(t, BLOCK_INNER) + r;                                      \
            a_tile[((buffer) * BLOCK_INNER + k) * A_PITCH + i] = a_next[t + r];                                        \
        }                                                                                                              \
        UNROLL for (int t = 0; t < B_LOADS; t += STEP) {                                                               \
            if (VECTOR && !B_COLUMNS) {                                                                                \
                uint at = ((buffer) * BLOCK_INNER + OVER(t, BLOCK_COLUMNS)) * B_PITCH + ALONG(t, BLOCK_COLUMNS);       \
                *(LOCAL REALV *)&b_tile[at] = GATHER(b_next, t);                                                       \
            } else UNROLL for (int r = 0; r < STEP; r++) {                                                             \
                uint j = B_COLUMNS ? OVER(t, BLOCK_INNER) : ALONG(t, BLOCK_COLUMNS) + r;                               \
                uint k = B_COLUMNS ? ALONG(t, BLOCK_INNER) + r : OVER(t, BLOCK_COLUMNS);                               \
                b_tile[((buffer) * BLOCK_INNER + k) * B_PITCH + j] = b_next[t + r];                                    \
            }                                                                                                          \
        }                                                                                                              \
    }

#if WARP_ROWS
#define WARPS_ACROSS (BLOCK_COLUMNS / (WARP_COLUMNS * EACH_COLUMNS))
// Lanes go in 2 x 2 squares: a half warp then reads few enough words for one 16-byte load to take half the cycles.
#if !SQUARES
#define LANE_ROW (lane / WARP_COLUMNS)
#define LANE_COLUMN (lane % WARP_COLUMNS)
#elif WARP_ROWS == 4
#define LANE_ROW ((lane & 1) | (lane >> 4) << 1)
#define LANE_COLUMN (lane >> 1 & 7)
#else
#define LANE_ROW ((lane & 1) | (lane >> 2 & 3) << 1)
#define LANE_COLUMN ((lane >> 1 & 1) | (lane >> 4) << 1)
#endif
#define FIRST_ROW (warp / WARPS_ACROSS * (WARP_ROWS * EACH_ROWS) + LANE_ROW * RUN)
#define FIRST_COLUMN (warp % WARPS_ACROSS * (WARP_COLUMNS * EACH_COLUMNS) + LANE_COLUMN * RUN)
#define ROW_OF(r) ((r) / RUN * (WARP_ROWS * RUN) + (r) % RUN)
#define COLUMN_OF(c) ((c) / RUN * (WARP_COLUMNS * RUN) + (c) % RUN)
#else
#define FIRST_ROW (member / (BLOCK_COLUMNS / EACH_COLUMNS) * EACH_ROWS)
#define FIRST_COLUMN (member % (BLOCK_COLUMNS / EACH_COLUMNS) * EACH_COLUMNS)
#define ROW_OF(r) (r)
#define COLUMN_OF(c) (c)
#endif

// A fragment of `count` numbers out of local memory, 16 bytes at a time where they are runs.
#define FRAGMENT(fragment, count, tile, place, OFFSET)                                                                 \
    {                                                                                                                  \
        if (VECTOR && (count) % RUN == 0) {                                                                            \
            UNROLL for (int f = 0; f < (count); f += RUN) {                                                            \
                REALV word = *(LOCAL const REALV *)&tile[(place) + OFFSET(f)];                                         \
                SPREAD(fragment, f, word)                                                                              \
            }                                                                                                          \
        } else                                                                                                         \
            UNROLL for (int f = 0; f < (count); f++) fragment[f] = tile[(place) + OFFSET(f)];                          \
    }

// The sums of a thread to their places in out.
DEVICE void leave_block(GLOBAL REAL *out, const REAL *sums, uint first_row, uint first_column, uint rows, uint columns,
                        ulong out_start, ulong out_stride) {
    UNROLL for (int r = 0; r < EACH_ROWS; r++) {
        uint i = first_row + ROW_OF(r);
        if (!WHOLE && i >= rows) continue;
#if VECTOR && STORE == 0
        UNROLL for (int c = 0; c < EACH_COLUMNS; c += RUN) {
            uint j = first_column + COLUMN_OF(c);
            if (WHOLE || j + RUN <= columns)
                *(GLOBAL REALV *)&OUT_AT(i, j) = GATHER(sums, r * EACH_COLUMNS + c);
            else
                UNROLL for (int f = 0; f < RUN; f++)
                    if (j + f < columns) put(&OUT_AT(i, j + f), sums[r * EACH_COLUMNS + c + f]);
        }
#else
        UNROLL for (int c = 0; c < EACH_COLUMNS; c++) {
            uint j = first_column + COLUMN_OF(c);
            if (WHOLE || j < columns) put(&OUT_AT(i, j), sums[r * EACH_COLUMNS + c]);
        }
#endif
    }
}

// Groups walk out in bands of BAND block rows, so that those running together share tiles in the second-level cache.
#define PLACE_GROUP                                                                                                    \
    uint down = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, across = (columns + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;          \
    uint band = group_index() / (BAND * across), high = min(down - band * BAND, (uint)BAND);                           \
    uint within = group_index() - band * BAND * across;                                                                \
    uint block_row = (band * BAND + within % high) * BLOCK_ROWS, block_column = within / high * BLOCK_COLUMNS;

#ifndef STAGES
PRODUCT_RESIDENT(blocks, RESIDENT) {
    LOCAL_ARRAY(REALV, a_words, BUFFERS *BLOCK_INNER *A_PITCH / RUN);  // of 16 bytes, so that they are aligned to 16
    LOCAL_ARRAY(REALV, b_words, BUFFERS *BLOCK_INNER *B_PITCH / RUN);
    LOCAL REAL *a_tile = (LOCAL REAL *)a_words, *b_tile = (LOCAL REAL *)b_words;
    PLACE_GROUP
    uint slice = local_index() / SET_THREADS, member = local_index() % SET_THREADS;
    uint warp = member / 32, lane = member % 32;
    uint row = FIRST_ROW, column = FIRST_COLUMN;
    REAL a_next[A_LOADS], b_next[B_LOADS], sums[EACH_ROWS * EACH_COLUMNS];
    UNROLL for (int e = 0; e < EACH_ROWS * EACH_COLUMNS; e++) sums[e] = 0;
    ulong a_over = OVER(0, A_EXTENT), a_along = ALONG(0, A_EXTENT), b_over = OVER(0, B_EXTENT), b_along = ALONG(0, B_EXTENT);
    ulong a_here = a_start + (A_COLUMNS ? a_over * a_stride + block_row + a_along : (block_row + a_over) * a_stride + a_along);
    ulong b_here = b_start + (B_COLUMNS ? (block_column + b_over) * b_stride + b_along
                                        : b_over * b_stride + block_column + b_along);
    FETCH_BLOCK(0)
    KEEP_BLOCK(0)
    BARRIER();
    uint buffer = 0;
    for (uint first = 0; first < inner; first += BLOCK_INNER) {
        bool more = first + BLOCK_INNER < inner;
        if (BUFFERS == 2 && more) FETCH_BLOCK(first + BLOCK_INNER)
        uint depth = buffer * BLOCK_INNER + slice * SLICE_INNER;
        LOCAL const REAL *a_from = a_tile + depth * A_PITCH + row, *b_from = b_tile + depth * B_PITCH + column;
        UNROLL for (int k = 0; k < SLICE_INNER; k++) {
            REAL a_run[EACH_ROWS], b_run[EACH_COLUMNS];
            FRAGMENT(a_run, EACH_ROWS, a_from, k * A_PITCH, ROW_OF)
            FRAGMENT(b_run, EACH_COLUMNS, b_from, k * B_PITCH, COLUMN_OF)
            UNROLL for (int r = 0; r < EACH_ROWS; r++)
                UNROLL for (int c = 0; c < EACH_COLUMNS; c++) sums[r * EACH_COLUMNS + c] += a_run[r] * b_run[c];
        }
        if (BUFFERS == 2) {
            buffer ^= 1;
            if (more) KEEP_BLOCK(buffer)
        } else if (more) {
            FETCH_BLOCK(first + BLOCK_INNER)
            BARRIER();
            KEEP_BLOCK(0)
        }
        BARRIER();
    }
#if SLICES > 1
    // The sets leave their sums in the tiles' memory, one at a time, and the first adds them in order: the same bits always.
    LOCAL_ARRAY(REAL, shared_sums, SET_THREADS *EACH_ROWS *EACH_COLUMNS);
    for (uint turn = 1; turn < SLICES; turn++) {
        if (slice == turn)
            UNROLL for (int e = 0; e < EACH_ROWS * EACH_COLUMNS; e++) shared_sums[e * SET_THREADS + member] = sums[e];
        BARRIER();
        if (slice == 0)
            UNROLL for (int e = 0; e < EACH_ROWS * EACH_COLUMNS; e++) sums[e] += shared_sums[e * SET_THREADS + member];
        BARRIER();
    }
    if (slice != 0) return;
#endif
    leave_block(out, sums, block_row + row, block_column + column, rows, columns, out_start, out_stride);
}
#else
// Staged: tiles travel by asynchronous copies, STAGES - 1 of them under way beside the arithmetic, with no register between;
// the fragments of the next step are read beside the multiplications of this one, over the border of tiles too, so that the
// one barrier a tile finds every thread with work at hand (after CUTLASS' multistage pipeline).
#define A_STEP (VECTOR && A_COLUMNS ? RUN : 1)
#define B_STEP (VECTOR && !B_COLUMNS ? RUN : 1)
#define COPY_ALONG(t, step, extent) (((t) * GROUP_SIZE + local_index()) % ((extent) / (step)) * (step))
#define COPY_OVER(t, step, extent) (((t) * GROUP_SIZE + local_index()) / ((extent) / (step)))
#define A_RUNS (GROUP_SIZE / (A_EXTENT / A_STEP))  // runs of a's tile that one round of copies fetches
#define B_RUNS (GROUP_SIZE / (B_EXTENT / B_STEP))
#define A_STAGE (BLOCK_INNER * A_PITCH)
#define B_STAGE (BLOCK_INNER * B_PITCH)
#if RUN == 4
#define ASYNC_ONE async_copy4
#else
#define ASYNC_ONE async_copy8
#endif
// Tile `first` / BLOCK_INNER into the stage that a_to and b_to begin; a_here and b_here walk on.
#define COPY_TILE(first)                                                                                               \
    {                                                                                                                  \
        UNROLL for (int t = 0; t < BLOCK_ROWS * BLOCK_INNER / GROUP_SIZE / A_STEP; t++) {                              \
            uint along = COPY_ALONG(0, A_STEP, A_EXTENT), over = COPY_OVER(0, A_STEP, A_EXTENT) + t * A_RUNS;          \
            uint i = A_COLUMNS ? along : over, k = A_COLUMNS ? over : along;                                           \
            uint room = block_row + i >= rows || (first) + k >= inner ? 0 : rows - block_row - i;                      \
            uint valid = (WHOLE ? A_STEP : min(room, (uint)A_STEP)) * sizeof(REAL);                                    \
            GLOBAL const REAL *from = WHOLE || valid ? a_here + t * A_RUNS * a_stride : a;                             \
            LOCAL REAL *to = a_to + t * (int)(A_COLUMNS ? A_RUNS * A_PITCH : A_RUNS);                                  \
            if (A_STEP > 1) async_copy16(to, from, valid);                                                             \
            else ASYNC_ONE(to, from, valid);                                                                           \
        }                                                                                                              \
        UNROLL for (int t = 0; t < BLOCK_COLUMNS * BLOCK_INNER / GROUP_SIZE / B_STEP; t++) {                           \
            uint along = COPY_ALONG(0, B_STEP, B_EXTENT), over = COPY_OVER(0, B_STEP, B_EXTENT) + t * B_RUNS;          \
            uint j = B_COLUMNS ? over : along, k = B_COLUMNS ? along : over;                                           \
            uint room = block_column + j >= columns || (first) + k >= inner ? 0 : columns - block_column - j;          \
            uint valid = (WHOLE ? B_STEP : min(room, (uint)B_STEP)) * sizeof(REAL);                                    \
            GLOBAL const REAL *from = WHOLE || valid ? b_here + t * B_RUNS * b_stride : b;                             \
            LOCAL REAL *to = b_to + t * (int)(B_COLUMNS ? B_RUNS : B_RUNS * B_PITCH);                                  \
            if (B_STEP > 1) async_copy16(to, from, valid);                                                             \
            else ASYNC_ONE(to, from, valid);                                                                           \
        }                                                                                                              \
        a_here += A_COLUMNS ? BLOCK_INNER * a_stride : BLOCK_INNER;                                                    \
        b_here += B_COLUMNS ? BLOCK_INNER : BLOCK_INNER * b_stride;                                                    \
    }

// To and fro: a register that is read twice in a row is read once.
#define MULTIPLY_FRAGMENTS                                                                                             \
    UNROLL for (int c = 0; c < EACH_COLUMNS; c++)                                                                      \
        UNROLL for (int r = 0; r < EACH_ROWS; r++) {                                                                   \
            const int s = c & 1 ? EACH_ROWS - 1 - r : r;                                                               \
            sums[s * EACH_COLUMNS + c] += a_run[k & 1][s] * b_run[k & 1][c];                                           \
        }

PRODUCT_RESIDENT(staged, RESIDENT) {
    LOCAL_ARRAY(REALV, a_words, STAGES *A_STAGE / RUN);  // of 16 bytes, so that they are aligned to 16
    LOCAL_ARRAY(REALV, b_words, STAGES *B_STAGE / RUN);
    LOCAL REAL *a_tile = (LOCAL REAL *)a_words, *b_tile = (LOCAL REAL *)b_words;
    PLACE_GROUP
    uint warp = local_index() / 32, lane = local_index() % 32;
    uint row = FIRST_ROW, column = FIRST_COLUMN;
    REAL sums[EACH_ROWS * EACH_COLUMNS], a_run[2][EACH_ROWS], b_run[2][EACH_COLUMNS];
    UNROLL for (int e = 0; e < EACH_ROWS * EACH_COLUMNS; e++) sums[e] = 0;
    uint a_over = COPY_OVER(0, A_STEP, A_EXTENT), a_along = COPY_ALONG(0, A_STEP, A_EXTENT);
    uint b_over = COPY_OVER(0, B_STEP, B_EXTENT), b_along = COPY_ALONG(0, B_STEP, B_EXTENT);
    GLOBAL const REAL *a_here = a + a_start + (A_COLUMNS ? a_over * a_stride + block_row + a_along
                                                         : (block_row + a_over) * a_stride + a_along);
    GLOBAL const REAL *b_here = b + b_start + (B_COLUMNS ? (block_column + b_over) * b_stride + b_along
                                                         : b_over * b_stride + block_column + b_along);
    // Pointers, since constant distances from them stand in the instructions.
    LOCAL REAL *const a_first = a_tile + (A_COLUMNS ? a_over * A_PITCH + a_along : a_along * A_PITCH + a_over);
    LOCAL REAL *const b_first = b_tile + (B_COLUMNS ? b_along * B_PITCH + b_over : b_over * B_PITCH + b_along);
    LOCAL REAL *a_to = a_first, *b_to = b_first;
    LOCAL const REAL *a_from = a_tile + row, *b_from = b_tile + column;
    uint stage = 0, filled = STAGES - 1;  // the one that is read, the one that is filled next
    UNROLL for (uint s = 0; s < STAGES - 1; s++) {
        if (WHOLE ? s * BLOCK_INNER < inner : true) COPY_TILE(s * BLOCK_INNER)
        async_commit_group();
        a_to += A_STAGE;
        b_to += B_STAGE;
    }
    async_wait_group(STAGES - 2);
    BARRIER();
    FRAGMENT(a_run[0], EACH_ROWS, a_from, 0, ROW_OF)
    FRAGMENT(b_run[0], EACH_COLUMNS, b_from, 0, COLUMN_OF)
    NO_UNROLL for (uint first = 0; first < inner; first += BLOCK_INNER) {
        UNROLL for (int k = 0; k < BLOCK_INNER; k++) {
            if (k == BLOCK_INNER - 1) {
                async_wait_group(STAGES - 2);
                BARRIER();
                stage = stage == STAGES - 1 ? 0 : stage + 1;
                a_from = stage ? a_from + A_STAGE : a_tile + row;
                b_from = stage ? b_from + B_STAGE : b_tile + column;
            }
            const int step = (k + 1) % BLOCK_INNER;
            FRAGMENT(a_run[(k + 1) & 1], EACH_ROWS, a_from, step * A_PITCH, ROW_OF)
            FRAGMENT(b_run[(k + 1) & 1], EACH_COLUMNS, b_from, step * B_PITCH, COLUMN_OF)
            if (k == 0) {
                uint next = first + (STAGES - 1) * BLOCK_INNER;
                if (next < inner) COPY_TILE(next)
                async_commit_group();
                filled = filled == STAGES - 1 ? 0 : filled + 1;
                a_to = filled ? a_to + A_STAGE : a_first;
                b_to = filled ? b_to + B_STAGE : b_first;
            }
            MULTIPLY_FRAGMENTS
        }
    }
    leave_block(out, sums, block_row + row, block_column + column, rows, columns, out_start, out_stride);
}
#endif
#endif

#ifdef PANEL_INNER  // --------------------------------------------- for processors whose work items do not run in step
// A work item packs PANEL_INNER x (2 wide vectors) of b into memory of its own, which stays in the first-level caches, and
// multiplies its rows of a by it, six at a time: 12 wide accumulators, 8 loads for 12 multiply-adds (Goto, van de
// Geijn, Anatomy of high-performance matrix multiplication). The items of a column of panels share the rows of out evenly.
#if RUN == 4
#define WIDE float16
#define WIDTH 16
#define VLOAD vload16
#define VSTORE vstore16
#else
#define WIDE double8
#define WIDTH 8
#define VLOAD vload8
#define VSTORE vstore8
#endif
#define PANEL (2 * WIDTH)
#define SIX(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

PRODUCT(panels) {
    REAL packed[PANEL_INNER * PANEL];
    REAL edge[6 * PANEL];
    uint across = (columns + PANEL - 1) / PANEL;
    uint items = group_count() / across, span = ((rows + items - 1) / items + 5) / 6 * 6;
    uint first_column = thread_index() % across * PANEL, first_row = thread_index() / across * span;
    uint wide = min(columns - min(first_column, columns), (uint)PANEL);
    uint last_row = min(rows, first_row + span);
    if (first_row >= rows) return;
    for (uint first = 0; first < inner; first += PANEL_INNER) {
        uint deep = min(inner - first, (uint)PANEL_INNER);
        for (uint k = 0; k < deep; k++) {
            if (!B_COLUMNS && wide == PANEL) {
                VSTORE(VLOAD(0, &B_AT(first + k, first_column)), 2 * k, packed);
                VSTORE(VLOAD(0, &B_AT(first + k, first_column + WIDTH)), 2 * k + 1, packed);
            } else
                for (uint j = 0; j < PANEL; j++)
                    packed[k * PANEL + j] = j < wide ? B_AT(first + k, first_column + j) : 0;
        }
        for (uint i = first_row; i < last_row; i += 6) {
            uint end = last_row - 1;
#define ZERO(r)                                                                                                        \
    WIDE left##r = SPLAT(WIDE, 0), right##r = SPLAT(WIDE, 0);                                                          \
    GLOBAL const REAL *a##r = &A_AT(min(i + r, end), first);
            SIX(ZERO)
            for (uint k = 0; k < deep; k++) {
                WIDE b_left = VLOAD(2 * k, packed), b_right = VLOAD(2 * k + 1, packed);
#define MULTIPLY(r)                                                                                                    \
    {                                                                                                                  \
        REAL x = a##r[A_COLUMNS ? k * a_stride : k];                                                                   \
        left##r += x * b_left;                                                                                         \
        right##r += x * b_right;                                                                                       \
    }
                SIX(MULTIPLY)
            }
#define LEAVE(r)                                                                                                       \
    if (i + r <= end) {                                                                                                \
        if (wide == PANEL) {                                                                                           \
            GLOBAL REAL *place = &OUT_AT(i + r, first_column);                                                         \
            if (STORE == 2) {                                                                                          \
                VSTORE(VLOAD(0, place) - left##r, 0, place);                                                           \
                VSTORE(VLOAD(1, place) - right##r, 1, place);                                                          \
            } else if (STORE == 1 || first > 0) {                                                                      \
                VSTORE(VLOAD(0, place) + left##r, 0, place);                                                           \
                VSTORE(VLOAD(1, place) + right##r, 1, place);                                                          \
            } else {                                                                                                   \
                VSTORE(left##r, 0, place);                                                                             \
                VSTORE(right##r, 1, place);                                                                            \
            }                                                                                                          \
        } else {                                                                                                       \
            VSTORE(left##r, 0, edge);                                                                                  \
            VSTORE(right##r, 1, edge);                                                                                 \
            for (uint j = 0; j < wide; j++) {                                                                          \
                GLOBAL REAL *place = &OUT_AT(i + r, first_column + j);                                                 \
                *place = STORE == 2 ? *place - edge[j] : STORE == 1 || first > 0 ? *place + edge[j] : edge[j];         \
            }                                                                                                          \
        }                                                                                                              \
    }
            SIX(LEAVE)
        }
    }
    if (STORE == 0 && inner == 0)
        for (uint i = first_row; i < last_row; i++)
            for (uint j = 0; j < wide; j++) OUT_AT(i, first_column + j) = 0;
}
#endif
