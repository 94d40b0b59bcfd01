// Matrix products out = a b, row-major, by kernels from naive to fast: first the kernels of the thesis "Making parallel
// programs fast on CUDA" (chapter 3), then register tiles and a multistage pipeline (CUTLASS), and one for CPUs. All
// have the same parameters; renderer/numerics/matmul.py defines the variants and launches them.
// `a` is (rows, inner), `b` (inner, columns), `out` (rows, columns). Words as in OpenCL: a group is a thread block,
// local memory is shared memory. Compile-time inputs; each kernel uses the inputs of its variant:
//   REAL   float or double; REAL_VECTOR is a 16-byte vector of VECTOR_LENGTH numbers: 4 floats or 2 doubles
//   TILE, THREAD_TILE, UNROLLED, PREFETCH   the square tiles of the thesis: see shared_tiled
//   BLOCK_M, BLOCK_N, BLOCK_K   a group computes BLOCK_M x BLOCK_N of out, from BLOCK_K columns of a at a time
//   THREAD_TILE_M, THREAD_TILE_N   rows and columns of out per thread
//   WARP_ROWS, WARP_COLUMNS   shape of a warp in threads; the vectors of a thread are WARP_* * VECTOR_LENGTH elements
//                apart, so that a warp reads neighboring 16-byte words. 0: the elements of a thread form one rectangle
//   VECTOR       1: global and local memory are read 16 bytes at a time (rows are multiples of VECTOR_LENGTH)
//   UNGUARDED    1: the block sizes divide rows, columns and inner, so there are no bounds checks
//   BUFFERS      2: the next tiles are loaded during the arithmetic and stored in the other buffer, with one barrier
//                per tile; 1: they replace the tiles in local memory
//   STAGES       adds `multistage`: length of the ring of tiles that asynchronous copies fill
//   A_PAD        numbers of padding after a row of a's tile, so that a warp uses different banks
//   SLICED_K     sets of threads of a group that share the depth of each tile (CUTLASS: sliced-K); their sums are added
//                at the end. 1: one set
//   SWIZZLE_ROWS   block rows whose groups are launched together, so that they share tiles in the L2 cache
//   MIN_GROUPS_PER_SM   groups of a multiprocessor for which the compiler leaves registers (__launch_bounds__)
//   PANEL_K      adds `packed_panels`: rows of b that a CPU packs at a time
// MATMUL_KERNEL(name) begins a kernel with the parameters a, b, out, rows, columns and inner.
#define MATMUL_KERNEL(name) MATMUL_KERNEL_RESIDENT(name, 1)
#define MATMUL_KERNEL_RESIDENT(name, groups)                                                                 \
    KERNEL_MIN_GROUPS(groups)                                                                                \
    name(GLOBAL const REAL *RESTRICT a, GLOBAL const REAL *RESTRICT b, GLOBAL REAL *RESTRICT out, uint rows, \
         uint columns, uint inner)
#define A_AT(i, k) a[(i) * (ulong)inner + (k)]
#define B_AT(k, j) b[(k) * (ulong)columns + (j)]
#define OUT_AT(i, j) out[(i) * (ulong)columns + (j)]

// One thread per row: neighboring threads read addresses that are a row apart, which does not coalesce.
MATMUL_KERNEL(row_per_thread) {
    uint i = thread_index();
    if (i >= rows) return;
    for (uint j = 0; j < columns; j++) {
        REAL sum = 0;
        for (uint k = 0; k < inner; k++) sum += A_AT(i, k) * B_AT(k, j);
        OUT_AT(i, j) = sum;
    }
}

// One thread per element, neighboring threads along a row of out: reads of b and writes of out are coalesced.
MATMUL_KERNEL(element_per_thread) {
    uint across = (columns + TILE - 1) / TILE;
    uint i = group_index() / across * TILE + local_index() / TILE,
         j = group_index() % across * TILE + local_index() % TILE;
    if (i >= rows || j >= columns) return;
    REAL sum = 0;
    for (uint k = 0; k < inner; k++) sum += A_AT(i, k) * B_AT(k, j);
    OUT_AT(i, j) = sum;
}

#ifdef THREAD_TILE  // ------------------------------------------------------------ square tiles in local memory
// TILE x TILE threads; each computes THREAD_TILE elements of a row, TILE apart. UNROLLED 1: the loop over the tile is
// unrolled. PREFETCH 1: the next tiles are loaded into registers while the current tiles are used.
#if UNROLLED
#define UNROLL_TILE UNROLL
#else
#define UNROLL_TILE NO_UNROLL
#endif
MATMUL_KERNEL(shared_tiled) {
    LOCAL_ARRAY(REAL, a_tile, TILE * TILE);
    LOCAL_ARRAY(REAL, b_tile, TILE * TILE * THREAD_TILE);
    uint across = (columns + TILE * THREAD_TILE - 1) / (TILE * THREAD_TILE);
    uint y = local_index() / TILE, x = local_index() % TILE;
    uint i = group_index() / across * TILE + y, j = group_index() % across * (TILE * THREAD_TILE) + x;
    REAL sums[THREAD_TILE], b_next[THREAD_TILE], a_next = 0;
    UNROLL for (int e = 0; e < THREAD_TILE; e++) {
        sums[e] = 0;
        b_next[e] = 0;
    }
#define LOAD_ELEMENTS(first)                                                   \
    {                                                                          \
        uint ka = (first) + x, kb = (first) + y;                               \
        a_next = i < rows && ka < inner ? A_AT(i, ka) : 0;                     \
        UNROLL for (int e = 0; e < THREAD_TILE; e++) b_next[e] =               \
            kb < inner && j + e * TILE < columns ? B_AT(kb, j + e * TILE) : 0; \
    }
    if (PREFETCH) LOAD_ELEMENTS(0)
    for (uint first = 0; first < inner; first += TILE) {
        if (!PREFETCH) LOAD_ELEMENTS(first)
        a_tile[y * TILE + x] = a_next;
        UNROLL for (int e = 0; e < THREAD_TILE; e++) b_tile[y * (TILE * THREAD_TILE) + e * TILE + x] = b_next[e];
        BARRIER();
        if (PREFETCH) LOAD_ELEMENTS(first + TILE)
        UNROLL_TILE for (int k = 0; k < TILE; k++) UNROLL for (int e = 0; e < THREAD_TILE; e++) sums[e] +=
            a_tile[y * TILE + k] * b_tile[k * (TILE * THREAD_TILE) + e * TILE + x];
        BARRIER();
    }
    UNROLL for (int e = 0; e < THREAD_TILE; e++) if (i < rows && j + e * TILE < columns) OUT_AT(i, j + e * TILE) =
        sums[e];
}
#endif

#ifdef BLOCK_M  // ---------------------------------------------------- a block of out in the registers of a group
// Each group computes BLOCK_M x BLOCK_N of out from tiles BLOCK_K deep, each thread THREAD_TILE_M x THREAD_TILE_N. Two
// kernels: register_tiled passes tiles through registers to local memory, multistage copies them asynchronously.
//
// Tiles are loaded and stored by macros, since they use a thread's arrays in registers and both operands differ in
// constants: a tile of a is BLOCK_M lines of BLOCK_K contiguous numbers, a tile of b BLOCK_K lines of BLOCK_N.
#define SET_THREADS (GROUP_SIZE / SLICED_K)
#define SLICE_K (BLOCK_K / SLICED_K)
#define A_PITCH (BLOCK_M + A_PAD)
#define A_LOADS (BLOCK_M * BLOCK_K / GROUP_SIZE)
#define B_LOADS (BLOCK_N * BLOCK_K / GROUP_SIZE)

#define STEP (VECTOR ? VECTOR_LENGTH : 1)

#define UNPACK_VECTOR(array, at, v) \
    UNROLL for (int r = 0; r < VECTOR_LENGTH; r++) array[(at) + r] = ((const REAL *)&v)[r];
#if VECTOR_LENGTH == 4
#define PACK_VECTOR(array, at) make_float4(array[at], array[at + 1], array[at + 2], array[at + 3])
#else
#define PACK_VECTOR(array, at) make_double2(array[at], array[at + 1])
#endif

// Loads STEP numbers of an operand, from source[target] on, into kept[at...]; 0 for numbers outside of the matrix: all
// unless `inside`, else those from number `room` on.
#define LOAD_VECTOR(kept, at, source, target, inside, room)                       \
    {                                                                             \
        if (VECTOR && (UNGUARDED || ((inside) && (room) >= VECTOR_LENGTH))) {     \
            REAL_VECTOR word = *(GLOBAL const REAL_VECTOR *)&source[target];      \
            UNPACK_VECTOR(kept, at, word)                                         \
        } else                                                                    \
            UNROLL for (int r = 0; r < STEP; r++) kept[(at) + r] =                \
                UNGUARDED || ((inside) && (room) > r) ? source[(target) + r] : 0; \
    }

// A tile is indexed by its contiguous and its strided direction (CUTLASS: PitchLinear). The coordinates in the tile of
// load number t of this thread; `extent` is the length of a line, the contiguous direction.
#define CONTIGUOUS(t, extent) (((t) / STEP * GROUP_SIZE + local_index()) % ((extent) / STEP) * STEP)
#define STRIDED(t, extent) (((t) / STEP * GROUP_SIZE + local_index()) / ((extent) / STEP))

// Loads a thread's `loads` numbers of a tile into next[]. `load` (a_load, b_load) points to the first load of this
// thread and moves on by one tile; each further load is GROUP_SIZE * STEP / extent lines of `ld` numbers later. A tile
// is BLOCK_K along the inner dimension, from `first` on, and a block along the other dimension, the edge, which is
// contiguous in memory if `edge_first` is 1 (b). The edge begins at `block` and is limited by `size`.
#define LOAD_TILE(next, loads, load, ld, extent, edge_first, block, size, first)                                      \
    {                                                                                                                 \
        UNROLL for (int t = 0; t < loads; t += STEP) {                                                                \
            uint contiguous = CONTIGUOUS(0, extent), strided = STRIDED(t, extent);                                    \
            bool inside = edge_first ? (first) + strided < inner : block + strided < size;                            \
            int room = edge_first ? (int)size - (int)(block + contiguous) : (int)inner - (int)((first) + contiguous); \
            LOAD_VECTOR(next, t, load, (t / STEP) * (GROUP_SIZE * STEP / extent * ld), inside, room)                  \
        }                                                                                                             \
        load += edge_first ? BLOCK_K * ld : BLOCK_K;                                                                  \
    }
#define LOAD_TILES(first)                                                                 \
    {LOAD_TILE(a_next, A_LOADS, a_load, (ulong)inner, BLOCK_K, 0, block_row, rows, first) \
         LOAD_TILE(b_next, B_LOADS, b_load, (ulong)columns, BLOCK_N, 1, block_column, columns, first)}
// Stores next[] as tile number `buffer` in local memory, with the depth k outermost, so that the rows and columns of a
// thread are contiguous: a's tile is transposed, number by number; b's is stored `by_vectors`.
#define STORE_TILE(tile, pitch, next, loads, extent, edge_first, by_vectors, buffer)                                 \
    UNROLL for (int t = 0; t < loads; t += STEP) {                                                                   \
        uint contiguous = CONTIGUOUS(t, extent), strided = STRIDED(t, extent);                                       \
        if (by_vectors)                                                                                              \
            *(LOCAL REAL_VECTOR *)&tile[((buffer) * BLOCK_K + strided) * pitch + contiguous] = PACK_VECTOR(next, t); \
        else                                                                                                         \
            UNROLL for (int r = 0; r < STEP; r++) {                                                                  \
                uint i = edge_first ? contiguous + r : strided, k = edge_first ? strided : contiguous + r;           \
                tile[((buffer) * BLOCK_K + k) * pitch + i] = next[t + r];                                            \
            }                                                                                                        \
    }
#define STORE_TILES(buffer)                                              \
    {STORE_TILE(a_tile, A_PITCH, a_next, A_LOADS, BLOCK_K, 0, 0, buffer) \
         STORE_TILE(b_tile, BLOCK_N, b_next, B_LOADS, BLOCK_N, 1, VECTOR, buffer)}

#if WARP_ROWS
#define WARPS_ACROSS (BLOCK_N / (WARP_COLUMNS * THREAD_TILE_N))
// Lanes are arranged in 2 x 2 squares: a half warp then reads so few different words that a 16-byte load takes half the
// cycles.
#define LANE_ROW ((lane & 1) | (WARP_ROWS == 4 ? lane >> 4 : lane >> 2 & 3) << 1)
#define LANE_COLUMN (WARP_ROWS == 4 ? lane >> 1 & 7 : (lane >> 1 & 1) | (lane >> 4) << 1)
#define FIRST_ROW (warp / WARPS_ACROSS * (WARP_ROWS * THREAD_TILE_M) + LANE_ROW * VECTOR_LENGTH)
#define FIRST_COLUMN (warp % WARPS_ACROSS * (WARP_COLUMNS * THREAD_TILE_N) + LANE_COLUMN * VECTOR_LENGTH)
#define ROW_OF(r) ((r) / VECTOR_LENGTH * (WARP_ROWS * VECTOR_LENGTH) + (r) % VECTOR_LENGTH)
#define COLUMN_OF(c) ((c) / VECTOR_LENGTH * (WARP_COLUMNS * VECTOR_LENGTH) + (c) % VECTOR_LENGTH)
#else
#define FIRST_ROW (member / (BLOCK_N / THREAD_TILE_N) * THREAD_TILE_M)
#define FIRST_COLUMN (member % (BLOCK_N / THREAD_TILE_N) * THREAD_TILE_N)
#define ROW_OF(r) (r)
#define COLUMN_OF(c) (c)
#endif

// Loads a fragment of `count` numbers from local memory, 16 bytes at a time if VECTOR: number f from tile[target +
// OFFSET(f)], OFFSET being ROW_OF or COLUMN_OF.
#define LOAD_FRAGMENT(fragment, count, tile, target, OFFSET)                                   \
    {                                                                                          \
        if (VECTOR && (count) % VECTOR_LENGTH == 0) {                                          \
            UNROLL for (int f = 0; f < (count); f += VECTOR_LENGTH) {                          \
                REAL_VECTOR word = *(LOCAL const REAL_VECTOR *)&tile[(target) + OFFSET(f)];    \
                UNPACK_VECTOR(fragment, f, word)                                               \
            }                                                                                  \
        } else                                                                                 \
            UNROLL for (int f = 0; f < (count); f++) fragment[f] = tile[(target) + OFFSET(f)]; \
    }

// Stores the sums of a thread in out (CUTLASS: epilogue).
DEVICE void store_block(GLOBAL REAL *out, const REAL *sums, uint first_row, uint first_column, uint rows,
                        uint columns) {
    UNROLL for (int r = 0; r < THREAD_TILE_M; r++) {
        uint i = first_row + ROW_OF(r);
        if (!UNGUARDED && i >= rows) continue;
        UNROLL for (int c = 0; c < THREAD_TILE_N; c += STEP) {
            uint j = first_column + COLUMN_OF(c);
            if (VECTOR && (UNGUARDED || j + VECTOR_LENGTH <= columns))
                *(GLOBAL REAL_VECTOR *)&OUT_AT(i, j) = PACK_VECTOR(sums, r * THREAD_TILE_N + c);
            else
                UNROLL for (int f = 0; f < STEP; f++) if (UNGUARDED || j + f < columns) OUT_AT(i, j + f) =
                    sums[r * THREAD_TILE_N + c + f];
        }
    }
}

// Declares block_row and block_column, the first row and column of the group's block of out. Threadblock swizzle
// (CUTLASS): groups take SWIZZLE_ROWS block rows together, so that they share tiles in the second-level cache. `band`
// is the number of these rows' band, `high` its block rows (fewer in the last band), `within` the group's number in it.
#define SWIZZLE_GROUP_INDEX                                                                                          \
    uint down = (rows + BLOCK_M - 1) / BLOCK_M, across = (columns + BLOCK_N - 1) / BLOCK_N;                          \
    uint band = group_index() / (SWIZZLE_ROWS * across), high = min(down - band * SWIZZLE_ROWS, (uint)SWIZZLE_ROWS); \
    uint within = group_index() - band * SWIZZLE_ROWS * across;                                                      \
    uint block_row = (band * SWIZZLE_ROWS + within % high) * BLOCK_M, block_column = within / high * BLOCK_N;

#ifndef STAGES
// The next tiles are loaded into registers (a_next, b_next) while the current ones multiply, then stored in local
// memory.
MATMUL_KERNEL_RESIDENT(register_tiled, MIN_GROUPS_PER_SM) {
    LOCAL_ARRAY(REAL_VECTOR, a_words,
                BUFFERS * BLOCK_K * A_PITCH / VECTOR_LENGTH);  // vectors, so that they are aligned to 16 bytes
    LOCAL_ARRAY(REAL_VECTOR, b_words, BUFFERS * BLOCK_K * BLOCK_N / VECTOR_LENGTH);
    LOCAL REAL *a_tile = (LOCAL REAL *)a_words, *b_tile = (LOCAL REAL *)b_words;
    SWIZZLE_GROUP_INDEX
    uint slice = local_index() / SET_THREADS, member = local_index() % SET_THREADS;
    uint warp = member / 32, lane = member % 32;
    uint row = FIRST_ROW, column = FIRST_COLUMN;
    REAL a_next[A_LOADS], b_next[B_LOADS], sums[THREAD_TILE_M * THREAD_TILE_N];
    UNROLL for (int e = 0; e < THREAD_TILE_M * THREAD_TILE_N; e++) sums[e] = 0;
    GLOBAL const REAL *a_load = a + (block_row + STRIDED(0, BLOCK_K)) * (ulong)inner + CONTIGUOUS(0, BLOCK_K);
    GLOBAL const REAL *b_load = b + STRIDED(0, BLOCK_N) * (ulong)columns + block_column + CONTIGUOUS(0, BLOCK_N);
    LOAD_TILES(0)
    STORE_TILES(0)
    BARRIER();
    uint buffer = 0;
    for (uint first = 0; first < inner; first += BLOCK_K) {
        bool more = first + BLOCK_K < inner;
        if (BUFFERS == 2 && more) LOAD_TILES(first + BLOCK_K)
        uint depth = buffer * BLOCK_K + slice * SLICE_K;
        LOCAL const REAL *a_read = a_tile + depth * A_PITCH + row, *b_read = b_tile + depth * BLOCK_N + column;
        UNROLL for (int k = 0; k < SLICE_K; k++) {
            REAL a_fragment[THREAD_TILE_M], b_fragment[THREAD_TILE_N];
            LOAD_FRAGMENT(a_fragment, THREAD_TILE_M, a_read, k * A_PITCH, ROW_OF)
            LOAD_FRAGMENT(b_fragment, THREAD_TILE_N, b_read, k * BLOCK_N, COLUMN_OF)
            UNROLL for (int r = 0; r < THREAD_TILE_M; r++) UNROLL for (int c = 0; c < THREAD_TILE_N; c++)
                sums[r * THREAD_TILE_N + c] += a_fragment[r] * b_fragment[c];
        }
        if (BUFFERS == 2) {
            buffer ^= 1;
            if (more) STORE_TILES(buffer)
        } else if (more) {
            LOAD_TILES(first + BLOCK_K)
            BARRIER();
            STORE_TILES(0)
        }
        BARRIER();
    }
#if SLICED_K > 1
    // The sets store their sums in local memory one after another, and set 0 adds them in this fixed order.
    LOCAL_ARRAY(REAL, shared_sums, SET_THREADS * THREAD_TILE_M * THREAD_TILE_N);
    for (uint turn = 1; turn < SLICED_K; turn++) {
        if (slice == turn)
            UNROLL for (int e = 0; e < THREAD_TILE_M * THREAD_TILE_N; e++) shared_sums[e * SET_THREADS + member] =
                sums[e];
        BARRIER();
        if (slice == 0)
            UNROLL for (int e = 0; e < THREAD_TILE_M * THREAD_TILE_N; e++) sums[e] +=
                shared_sums[e * SET_THREADS + member];
        BARRIER();
    }
    if (slice != 0) return;
#endif
    store_block(out, sums, block_row + row, block_column + column, rows, columns);
}
#else
// Multistage (after CUTLASS): asynchronous copies fill a ring of STAGES tiles in local memory without passing through
// registers; up to STAGES - 1 tiles are in flight during the arithmetic. The fragments of step k + 1 are read while
// step k multiplies, across tile boundaries too, so threads still have multiplications to issue after the one barrier
// per tile. A copy moves STEP numbers of b, or one number of a, which is transposed. COPY_CONTIGUOUS and COPY_STRIDED
// are CONTIGUOUS and STRIDED for copies of `step` numbers.
#define COPY_CONTIGUOUS(t, step, extent) (((t) * GROUP_SIZE + local_index()) % ((extent) / (step)) * (step))
#define COPY_STRIDED(t, step, extent) (((t) * GROUP_SIZE + local_index()) / ((extent) / (step)))
#define A_STAGE (BLOCK_K * A_PITCH)
#define B_STAGE (BLOCK_K * BLOCK_N)
// Copies the tile of an operand into the stage at `store` and advances `load`; other arguments are as of LOAD_TILE. A
// copy of `valid` bytes fills the rest with zeros; one of 0 bytes still needs a legal address: `source`, the operand.
#define COPY_TILE_ASYNC(source, load, ld, store, pitch, step, tile_size, extent, edge_first, block, size, first)      \
    {                                                                                                                 \
        UNROLL for (int t = 0; t < tile_size / GROUP_SIZE / step; t++) {                                              \
            const int stride = GROUP_SIZE / (extent / step); /* lines of the tile between two copies of a thread */   \
            uint contiguous = COPY_CONTIGUOUS(0, step, extent), strided = COPY_STRIDED(0, step, extent) + t * stride; \
            uint i = edge_first ? contiguous : strided, k = edge_first ? strided : contiguous;                        \
            uint room = block + i >= size || (first) + k >= inner ? 0 : size - block - i;                             \
            uint valid = (UNGUARDED ? step : min(room, (uint)step)) * sizeof(REAL);                                   \
            GLOBAL const REAL *from = UNGUARDED || valid ? load + t * stride * ld : source;                           \
            LOCAL REAL *to = store + t * (int)(edge_first ? stride * pitch : stride);                                 \
            if (step > 1)                                                                                             \
                async_copy16(to, from, valid);                                                                        \
            else if (VECTOR_LENGTH == 4)                                                                              \
                async_copy4(to, from, valid);                                                                         \
            else                                                                                                      \
                async_copy8(to, from, valid);                                                                         \
        }                                                                                                             \
        load += edge_first ? BLOCK_K * ld : BLOCK_K;                                                                  \
    }
#define COPY_TILES_ASYNC(first)                                                                                    \
    {COPY_TILE_ASYNC(a, a_load, (ulong)inner, a_store, A_PITCH, 1, BLOCK_M * BLOCK_K, BLOCK_K, 0, block_row, rows, \
                     first) COPY_TILE_ASYNC(b, b_load, (ulong)columns, b_store, BLOCK_N, STEP, BLOCK_N * BLOCK_K,  \
                                            BLOCK_N, 1, block_column, columns, first)}

// Serpentine order: consecutive multiply-adds share an operand, so the hardware reads that register once.
#define MULTIPLY_FRAGMENTS                                                                          \
    UNROLL for (int c = 0; c < THREAD_TILE_N; c++) UNROLL for (int r = 0; r < THREAD_TILE_M; r++) { \
        const int s = c & 1 ? THREAD_TILE_M - 1 - r : r;                                            \
        sums[s * THREAD_TILE_N + c] += a_fragment[k & 1][s] * b_fragment[k & 1][c];                 \
    }

MATMUL_KERNEL_RESIDENT(multistage, MIN_GROUPS_PER_SM) {
    LOCAL_ARRAY(REAL_VECTOR, a_words,
                STAGES * A_STAGE / VECTOR_LENGTH);  // vectors, so that they are aligned to 16 bytes
    LOCAL_ARRAY(REAL_VECTOR, b_words, STAGES * B_STAGE / VECTOR_LENGTH);
    LOCAL REAL *a_tile = (LOCAL REAL *)a_words, *b_tile = (LOCAL REAL *)b_words;
    SWIZZLE_GROUP_INDEX
    uint warp = local_index() / 32, lane = local_index() % 32;
    uint row = FIRST_ROW, column = FIRST_COLUMN;
    REAL sums[THREAD_TILE_M * THREAD_TILE_N], a_fragment[2][THREAD_TILE_M], b_fragment[2][THREAD_TILE_N];
    UNROLL for (int e = 0; e < THREAD_TILE_M * THREAD_TILE_N; e++) sums[e] = 0;
    uint a_strided = COPY_STRIDED(0, 1, BLOCK_K), a_contiguous = COPY_CONTIGUOUS(0, 1, BLOCK_K);
    uint b_strided = COPY_STRIDED(0, STEP, BLOCK_N), b_contiguous = COPY_CONTIGUOUS(0, STEP, BLOCK_N);
    GLOBAL const REAL *a_load = a + (block_row + a_strided) * (ulong)inner + a_contiguous;
    GLOBAL const REAL *b_load = b + b_strided * (ulong)columns + block_column + b_contiguous;
    // Pointers, since constant offsets from them are part of the instructions.
    LOCAL REAL *const a_first = a_tile + a_contiguous * A_PITCH + a_strided;
    LOCAL REAL *const b_first = b_tile + b_strided * BLOCK_N + b_contiguous;
    LOCAL REAL *a_store = a_first, *b_store = b_first;
    LOCAL const REAL *a_read = a_tile + row, *b_read = b_tile + column;
    uint stage = 0, filled = STAGES - 1;  // the stage that is read, the stage that is filled next
    UNROLL for (uint s = 0; s < STAGES - 1; s++) {
        if (!UNGUARDED || s * BLOCK_K < inner) COPY_TILES_ASYNC(s * BLOCK_K)  // guarded copies fill tiles with zeros
        async_commit_group();
        a_store += A_STAGE;
        b_store += B_STAGE;
    }
    async_wait_group(STAGES - 2);
    BARRIER();
    LOAD_FRAGMENT(a_fragment[0], THREAD_TILE_M, a_read, 0, ROW_OF)
    LOAD_FRAGMENT(b_fragment[0], THREAD_TILE_N, b_read, 0, COLUMN_OF)
    NO_UNROLL for (uint first = 0; first < inner; first += BLOCK_K) {
        UNROLL for (int k = 0; k < BLOCK_K; k++) {
            if (k == BLOCK_K - 1) {
                async_wait_group(STAGES - 2);
                BARRIER();
                stage = stage == STAGES - 1 ? 0 : stage + 1;
                a_read = stage ? a_read + A_STAGE : a_tile + row;
                b_read = stage ? b_read + B_STAGE : b_tile + column;
            }
            const int step = (k + 1) % BLOCK_K;
            LOAD_FRAGMENT(a_fragment[(k + 1) & 1], THREAD_TILE_M, a_read, step * A_PITCH, ROW_OF)
            LOAD_FRAGMENT(b_fragment[(k + 1) & 1], THREAD_TILE_N, b_read, step * BLOCK_N, COLUMN_OF)
            if (k == 0) {
                uint next = first + (STAGES - 1) * BLOCK_K;
                if (next < inner) COPY_TILES_ASYNC(next)
                async_commit_group();
                filled = filled == STAGES - 1 ? 0 : filled + 1;
                a_store = filled ? a_store + A_STAGE : a_first;
                b_store = filled ? b_store + B_STAGE : b_first;
            }
            MULTIPLY_FRAGMENTS
        }
    }
    store_block(out, sums, block_row + row, block_column + column, rows, columns);
}
#endif
#endif

#ifdef PANEL_K  // ------------------------------------------------------------------------------------- for CPUs
// A work-item packs a panel of b, PANEL_K rows of two wide vectors, into private memory, which stays in the first-level
// cache, and multiplies its rows of a by the panel, six rows at a time: 12 wide accumulators and 8 loads for 12
// multiply-adds (K. Goto, R. van de Geijn, Anatomy of High-Performance Matrix Multiplication). The work-items of a
// column of panels divide the rows of out evenly.
#if VECTOR_LENGTH == 4
#define WIDE_VECTOR float16
#define WIDE_LENGTH 16
#define VLOAD vload16
#define VSTORE vstore16
#else
#define WIDE_VECTOR double8
#define WIDE_LENGTH 8
#define VLOAD vload8
#define VSTORE vstore8
#endif
#define PANEL_WIDTH (2 * WIDE_LENGTH)
// Repeats a macro for six rows, whose accumulators are variables, since an array would be in memory.
#define SIX(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

MATMUL_KERNEL(packed_panels) {
    REAL packed[PANEL_K * PANEL_WIDTH];
    REAL edge[6 * PANEL_WIDTH];
    // Panels across, work-items of each panel, and the rows of each, a multiple of six.
    uint across = (columns + PANEL_WIDTH - 1) / PANEL_WIDTH;
    uint items = group_count() / across, span = ((rows + items - 1) / items + 5) / 6 * 6;
    uint first_column = thread_index() % across * PANEL_WIDTH, first_row = thread_index() / across * span;
    uint wide = min(columns - min(first_column, columns), (uint)PANEL_WIDTH);
    uint last_row = min(rows, first_row + span);
    if (first_row >= rows) return;
    for (uint first = 0; first < inner; first += PANEL_K) {
        uint deep = min(inner - first, (uint)PANEL_K);
        for (uint k = 0; k < deep; k++) {
            if (wide == PANEL_WIDTH) {
                VSTORE(VLOAD(0, &B_AT(first + k, first_column)), 2 * k, packed);
                VSTORE(VLOAD(0, &B_AT(first + k, first_column + WIDE_LENGTH)), 2 * k + 1, packed);
            } else
                for (uint j = 0; j < PANEL_WIDTH; j++)
                    packed[k * PANEL_WIDTH + j] = j < wide ? B_AT(first + k, first_column + j) : 0;
        }
        for (uint i = first_row; i < last_row; i += 6) {
            uint end = last_row - 1;
#define ZERO(r)                                                                    \
    WIDE_VECTOR left##r = SPLAT(WIDE_VECTOR, 0), right##r = SPLAT(WIDE_VECTOR, 0); \
    GLOBAL const REAL *a##r = &A_AT(min(i + r, end), first);
            SIX(ZERO)
            for (uint k = 0; k < deep; k++) {
                WIDE_VECTOR b_left = VLOAD(2 * k, packed), b_right = VLOAD(2 * k + 1, packed);
#define MULTIPLY(r)                    \
    {                                  \
        left##r += a##r[k] * b_left;   \
        right##r += a##r[k] * b_right; \
    }
                SIX(MULTIPLY)
            }
#define UPDATED(old, sum) (first > 0 ? (old) + (sum) : (sum))
#define STORE_ROW(r)                                                    \
    if (i + r <= end) {                                                 \
        if (wide == PANEL_WIDTH) {                                      \
            GLOBAL REAL *target = &OUT_AT(i + r, first_column);         \
            VSTORE(UPDATED(VLOAD(0, target), left##r), 0, target);      \
            VSTORE(UPDATED(VLOAD(1, target), right##r), 1, target);     \
        } else {                                                        \
            VSTORE(left##r, 0, edge);                                   \
            VSTORE(right##r, 1, edge);                                  \
            for (uint j = 0; j < wide; j++) {                           \
                GLOBAL REAL *target = &OUT_AT(i + r, first_column + j); \
                *target = UPDATED(*target, edge[j]);                    \
            }                                                           \
        }                                                               \
    }
            SIX(STORE_ROW)
        }
    }
    if (inner == 0)
        for (uint i = first_row; i < last_row; i++)
            for (uint j = 0; j < wide; j++) OUT_AT(i, first_column + j) = 0;
}
#endif
