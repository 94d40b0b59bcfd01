// Matrix products out = a b in float64 by tensor cores (mma.sync, m16n8 shapes, from sm_90), row-major; variants in
// renderer/numerics/matmul.py. As in CUTLASS's multistage kernels, asynchronous copies fill a ring of STAGES tiles in
// local memory while warps multiply.
// `a` is (rows, inner), `b` (inner, columns), `out` (rows, columns). matmul_variants.toml has the values that the host
// defines:
//   BLOCK_M, BLOCK_N     elements of out per group: 64 or 128 rows and columns; BLOCK_K: depth of a tile, 16
//   WARP_M, WARP_N       elements of out per warp: 32 or 64 rows, 32 columns
//   MMA_K                depth of an instruction, which multiplies 16 x MMA_K by MMA_K x 8: 4 or 8
//   STAGES               tiles in the ring: 3 or 4
//   FRAGMENT_SETS        2: fragments are read one step ahead; 1: right before their use, while other warps multiply
//   VECTOR               1: copies of 16 bytes, since all rows are aligned to 16 bytes; 0: of 8 bytes
//   UNGUARDED            1: no bounds checks, since the sizes are multiples of the blocks; 0: with checks
//   SWIZZLE_ROWS         8: block rows whose groups are launched together, so that they share tiles in the L2 cache
//   MIN_GROUPS_PER_SM    groups of a multiprocessor for which the compiler leaves registers: 1 to 3
#define STEP (VECTOR ? 2 : 1)  // numbers per copy
// Pitches are padded so that the four rows and four columns of a fragment that half a warp reads are in different
// banks.
#define A_PITCH (BLOCK_K + 4)
#define B_PITCH (BLOCK_N + 4)
#define A_STAGE (BLOCK_M * A_PITCH)
#define B_STAGE (BLOCK_K * B_PITCH)
#define WARPS_ACROSS (BLOCK_N / WARP_N)
#define ROW_PARTS (WARP_M / 8)  // fragments of 8 rows of a that a warp multiplies
#define COLUMN_PARTS (WARP_N / 8)  // fragments of 8 columns of b
#define DEPTH_PARTS (MMA_K / 4)  // fragments of depth 4 of an instruction
#define STEPS (BLOCK_K / MMA_K)  // instructions along a tile's depth

#define MMA_M 16  // rows of a of an instruction
#if MMA_K == 4
#define MULTIPLY mma_m16n8k4_f64
#else
#define MULTIPLY mma_m16n8k8_f64
#endif

// Starts this thread's copies of a tile of `lines` lines of `length` numbers. `lines_left` and `length_left` are the
// matrix's from the tile's corner on; numbers beyond become zero. A copy of 0 bytes still needs a legal address:
// source.
#define COPY_TILE(to, pitch, source, from, ld, lines, length, lines_left, length_left)                          \
    UNROLL for (int t = 0; t < (lines) * (length) / STEP / GROUP_SIZE; t++) {                                   \
        const int per_line = (length) / STEP;                                                                   \
        int line = thread / per_line + t * (GROUP_SIZE / per_line), at = thread % per_line * STEP;              \
        int room = line < (lines_left) ? min((length_left) - at, STEP) : 0;                                     \
        uint valid = UNGUARDED ? STEP * 8 : max(room, 0) * 8;                                                   \
        GLOBAL const double *address = UNGUARDED || valid ? (from) + (ulong)line * (ulong)(ld) + at : (source); \
        if (VECTOR)                                                                                             \
            async_copy16((to) + line * (pitch) + at, address, valid);                                           \
        else                                                                                                    \
            async_copy8((to) + line * (pitch) + at, address, valid);                                            \
    }
#define COPY_TILES(stage, first)                                                                                \
    {COPY_TILE(a_tiles + (stage) * A_STAGE, A_PITCH, a, a_block + (first), inner, BLOCK_M, BLOCK_K,             \
               (int)rows - block_row, (int)inner - (int)(first))                                                \
         COPY_TILE(b_tiles + (stage) * B_STAGE, B_PITCH, b, b_block + (ulong)(first) * (ulong)columns, columns, \
                   BLOCK_K, BLOCK_N, (int)inner - (int)(first), (int)columns - block_column)}

// Reads the fragments of a step in the register order of mma.sync: by depth, and for each depth by 8 or 16 rows.
#define LOAD_FRAGMENTS(slot, step)                                                                                   \
    {                                                                                                                \
        UNROLL for (int q = 0; q < DEPTH_PARTS; q++) {                                                               \
            int k = (step) * MMA_K + q * 4;                                                                          \
            UNROLL for (int m = 0; m < ROW_PARTS; m++)                                                               \
                a_fragments[slot][m / (MMA_M / 8)][q * (MMA_M / 8) + m % (MMA_M / 8)] = a_read[m * 8 * A_PITCH + k]; \
            UNROLL for (int n = 0; n < COLUMN_PARTS; n++) b_fragments[slot][n][q] = b_read[k * B_PITCH + n * 8];     \
        }                                                                                                            \
    }

KERNEL_MIN_GROUPS(MIN_GROUPS_PER_SM)
multiply_tensor_cores(GLOBAL const double *RESTRICT a, GLOBAL const double *RESTRICT b, GLOBAL double *RESTRICT out,
                      uint rows, uint columns, uint inner) {
    LARGE_LOCAL_ARRAY(double, tiles, STAGES *(A_STAGE + B_STAGE));
    LOCAL double *a_tiles = tiles, *b_tiles = tiles + STAGES * A_STAGE;
    // Threadblock swizzle (CUTLASS): groups take a band of SWIZZLE_ROWS block rows together and share tiles in the
    // cache. `within` is the group's number in the band, `high` the band's block rows, fewer in the last band.
    int down = (rows + BLOCK_M - 1) / BLOCK_M, across = (columns + BLOCK_N - 1) / BLOCK_N;
    int band = group_index() / (SWIZZLE_ROWS * across), within = group_index() - band * SWIZZLE_ROWS * across;
    int high = min(down - band * SWIZZLE_ROWS, SWIZZLE_ROWS);
    int block_row = (band * SWIZZLE_ROWS + within % high) * BLOCK_M, block_column = within / high * BLOCK_N;
    int thread = (int)local_index(), lane = thread % 32, warp = thread / 32;
    // In the block: the thread's first row of a, and the first column of its warp (PTX manual: fragments of mma.m16n8).
    int row = warp / WARPS_ACROSS * WARP_M + lane / 4, column = warp % WARPS_ACROSS * WARP_N;
    GLOBAL const double *a_block = a + (ulong)block_row * (ulong)inner, *b_block = b + block_column;
    LOCAL const double *a_first = a_tiles + row * A_PITCH + lane % 4;
    LOCAL const double *b_first = b_tiles + lane % 4 * B_PITCH + column + lane / 4;
    LOCAL const double *a_read = a_first, *b_read = b_first;
    double a_fragments[FRAGMENT_SETS][WARP_M / MMA_M][MMA_M / 8 * DEPTH_PARTS],
        b_fragments[FRAGMENT_SETS][COLUMN_PARTS][DEPTH_PARTS];
    double sums[WARP_M / MMA_M][COLUMN_PARTS][MMA_M / 4];
    UNROLL for (int m = 0; m < WARP_M / MMA_M; m++) UNROLL for (int n = 0; n < COLUMN_PARTS; n++)
        UNROLL for (int e = 0; e < MMA_M / 4; e++) sums[m][n][e] = 0;
    UNROLL for (int s = 0; s < STAGES - 1; s++) {
        if (s * BLOCK_K < inner) COPY_TILES(s, s * BLOCK_K)
        async_commit_group();
    }
    if (FRAGMENT_SETS == 2) {
        async_wait_group(STAGES - 2);
        BARRIER();
        LOAD_FRAGMENTS(0, 0)
    }
    int read = 0, filled = STAGES - 1;  // the stage that is read, the stage that is filled next
    NO_UNROLL for (uint first = 0; first < inner; first += BLOCK_K) {
        UNROLL for (int step = 0; step < STEPS; step++) {
            // With two sets of fragments a tile is entered one step early. After the barrier no warp reads the previous
            // tile.
            bool enters = step == (FRAGMENT_SETS == 2 ? STEPS - 1 : 0);
            if (enters) {
                async_wait_group(STAGES - 2);
                BARRIER();
                if (FRAGMENT_SETS == 2) read = read == STAGES - 1 ? 0 : read + 1;
                a_read = a_first + read * A_STAGE;
                b_read = b_first + read * B_STAGE;
                if (FRAGMENT_SETS == 1) read = read == STAGES - 1 ? 0 : read + 1;
            }
            if (FRAGMENT_SETS == 2)
                LOAD_FRAGMENTS((step + 1) & 1, (step + 1) % STEPS)
            else
                LOAD_FRAGMENTS(0, step)
            if (step == 0) {
                uint next = first + (STAGES - 1) * BLOCK_K;
                if (next < inner) COPY_TILES(filled, next)
                async_commit_group();
                filled = filled == STAGES - 1 ? 0 : filled + 1;
            }
            const int set = FRAGMENT_SETS == 2 ? step & 1 : 0;
            UNROLL for (int m = 0; m < WARP_M / MMA_M; m++) UNROLL for (int n = 0; n < COLUMN_PARTS; n++)
                MULTIPLY(sums[m][n], a_fragments[set][m], b_fragments[set][n]);
        }
    }
    UNROLL for (int m = 0; m < WARP_M / MMA_M; m++) UNROLL for (int half = 0; half < MMA_M / 8; half++) {
        int i = block_row + row + m * MMA_M + half * 8;
        UNROLL for (int n = 0; n < COLUMN_PARTS; n++) {
            int j = block_column + column + n * 8 + lane % 4 * 2;
            double2 pair = make_double2(sums[m][n][half * 2], sums[m][n][half * 2 + 1]);
            GLOBAL double *target = out + (ulong)i * (ulong)columns + j;
            if (UNGUARDED || (VECTOR && i < (int)rows && j + 1 < (int)columns)) {
                *(GLOBAL double2 *)target = pair;
            } else if (i < (int)rows) {
                if (j < (int)columns) target[0] = pair.x;
                if (j + 1 < (int)columns) target[1] = pair.y;
            }
        }
    }
}
