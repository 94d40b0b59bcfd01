// The body of a kernel that multiplies batches of matrices on a GPU, inserted by
// renderer/cdollar/targets/matmul_kernels.py. A group computes a tile of TILE_ROWS x TILE_COLUMNS elements of the
// output, and a thread THREAD_ROWS x THREAD_COLUMNS of these in registers (register blocking, as in CUTLASS's SIMT
// kernels). The loop over k loads the next tiles of the operands, TILE_DEPTH deep, into registers while it multiplies
// the present tiles in local memory.
// The generated text before this file defines:
//     TYPE                           the C type of the elements
//     TILE_ROWS, TILE_COLUMNS, TILE_DEPTH, THREAD_ROWS, THREAD_COLUMNS, BAND_TILES   the schedule, see above and below
//     THREADS_DOWN, THREADS_ACROSS   threads along the rows and the columns of a tile
//     VECTOR_LOADS                   1: operands are float and aligned for loads of four, else 0
//     LEFT_K_CONTIGUOUS, RIGHT_K_CONTIGUOUS   1 if neighbors along k are neighbors in memory, else 0
//     LOAD_LEFT(value)               statements that set `value` to the left operand's element at (batch, row, k)
//     LOAD_RIGHT(value)              the same for the right operand at (batch, k, column)
//     OUTPUT_INDEX                   the index in out0 of the element at (batch, row, column)
// and the arguments `rows`, `columns`, `depth` (the inner dimension) and the output out0.

// Assigns tiles to groups. Consecutive groups take the tiles of a band of BAND_TILES tile rows, column by column, so
// that the L2 cache serves both operands.
const int tiles_across = (columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
const int tiles_down = (rows + TILE_ROWS - 1) / TILE_ROWS, tiles = tiles_across * tiles_down;
const int tile = (int)group_index() % tiles, batch = (int)group_index() / tiles;
const int band = tile / (BAND_TILES * tiles_across), band_rows = min(BAND_TILES, tiles_down - band * BAND_TILES);
const int in_band = tile - band * BAND_TILES * tiles_across;
const int row0 = (band * BAND_TILES + in_band % band_rows) * TILE_ROWS, column0 = (in_band / band_rows) * TILE_COLUMNS;

// The position of the thread's elements in the tile. If the tile can be divided so, a warp covers 8 x 4 threads, so
// that its 32 threads read only 8 runs of columns and 4 runs of rows from local memory; equal addresses are broadcast.
const int thread = (int)local_index();
#if THREADS_ACROSS % 8 == 0 && THREADS_DOWN % 4 == 0
const int thread_column = thread / 32 % (THREADS_ACROSS / 8) * 8 + thread % 8;
const int thread_row = thread / 32 / (THREADS_ACROSS / 8) * 4 + thread % 32 / 8;
#else
const int thread_column = thread % THREADS_ACROSS, thread_row = thread / THREADS_ACROSS;
#endif

// Double buffering: two stages of each operand's tile in local memory, where k is the slower index and rows are padded
// by 4 elements to avoid bank conflicts. left_next and right_next hold a thread's elements of the next tiles, at most
// SLOTS each. Neighboring threads load along the index that is contiguous in memory. `extent`: TILE_ROWS or
// TILE_COLUMNS. The last three macros read the variable `element`, the number of an element of the tile: IN_TILE is
// true if there is such an element, ALONG_K is its index along k, ACROSS_K its row (left) or column (right).
#define PITCH(extent) ((extent) + 4)
#define TILE_ELEMENTS(extent) ((extent) * TILE_DEPTH)
#define SLOTS(extent) ((TILE_ELEMENTS(extent) + GROUP_SIZE - 1) / GROUP_SIZE)
#define IN_TILE(extent) (TILE_ELEMENTS(extent) % GROUP_SIZE == 0 || element < TILE_ELEMENTS(extent))
#define ALONG_K(extent, k_contiguous) ((k_contiguous) ? element % TILE_DEPTH : element / (extent))
#define ACROSS_K(extent, k_contiguous) ((k_contiguous) ? element / TILE_DEPTH : element % (extent))
// DECLARE_TILE declares the local memory of an operand, TILE_OF a pointer NAME_tile to its elements. LOAD_RUN copies
// four neighbors of a tile, from `run` on, to `line`.
#if VECTOR_LOADS  // floats, aligned for loads of four
// two stages of TILE_DEPTH rows, in float4
#define DECLARE_TILE(name, extent) LOCAL_ARRAY(float4, name##_vectors, TILE_DEPTH *PITCH(extent) / 2)
#define TILE_OF(name) LOCAL float *name##_tile = (LOCAL float *)name##_vectors
#define LOAD_RUN(line, run)                                \
    {                                                      \
        const float4 four = *(LOCAL const float4 *)&(run); \
        (line)[0] = four.x, (line)[1] = four.y;            \
        (line)[2] = four.z, (line)[3] = four.w;            \
    }
#else
#define DECLARE_TILE(name, extent) LOCAL_ARRAY(TYPE, name##_elements, 2 * TILE_DEPTH * PITCH(extent))
#define TILE_OF(name) LOCAL TYPE *name##_tile = name##_elements
#define LOAD_RUN(line, run) UNROLL for (int c = 0; c < 4; c++)(line)[c] = (&(run))[c]
#endif
DECLARE_TILE(left, TILE_ROWS);
DECLARE_TILE(right, TILE_COLUMNS);
TILE_OF(left);
TILE_OF(right);
TYPE left_next[SLOTS(TILE_ROWS)], right_next[SLOTS(TILE_COLUMNS)];

// Loads a thread's elements of the tile at k0 into `next`; elements outside of the matrix become 0. A tile that lies
// inside of the matrix, as most do, is loaded without tests. LOAD is LOAD_LEFT or LOAD_RIGHT, which reads the variables
// k and `index`: row or column. STORE_NEXT stores the elements to the local memory of stage `stage`.
#define LOAD_NEXT(next, LOAD, index, origin, limit, extent, k_contiguous)                                      \
    if (TILE_ELEMENTS(extent) % GROUP_SIZE == 0 && origin + extent <= limit && k0 + TILE_DEPTH <= depth) {     \
        UNROLL for (int slot = 0; slot < SLOTS(extent); slot++) {                                              \
            const int element = thread + slot * GROUP_SIZE;                                                    \
            const int index = origin + ACROSS_K(extent, k_contiguous), k = k0 + ALONG_K(extent, k_contiguous); \
            LOAD(next[slot])                                                                                   \
        }                                                                                                      \
    } else {                                                                                                   \
        UNROLL for (int slot = 0; slot < SLOTS(extent); slot++) {                                              \
            const int element = thread + slot * GROUP_SIZE;                                                    \
            const int index = origin + ACROSS_K(extent, k_contiguous), k = k0 + ALONG_K(extent, k_contiguous); \
            next[slot] = 0;                                                                                    \
            if (index < limit && k < depth && IN_TILE(extent)) LOAD(next[slot])                                \
        }                                                                                                      \
    }
#define LOAD_NEXT_TILES()                                                          \
    LOAD_NEXT(left_next, LOAD_LEFT, row, row0, rows, TILE_ROWS, LEFT_K_CONTIGUOUS) \
    LOAD_NEXT(right_next, LOAD_RIGHT, column, column0, columns, TILE_COLUMNS, RIGHT_K_CONTIGUOUS)
#define STORE_NEXT(tile, next, extent, k_contiguous)                                                            \
    UNROLL for (int slot = 0; slot < SLOTS(extent); slot++) {                                                   \
        const int element = thread + slot * GROUP_SIZE, k = stage * TILE_DEPTH + ALONG_K(extent, k_contiguous); \
        if (IN_TILE(extent)) tile[k * PITCH(extent) + ACROSS_K(extent, k_contiguous)] = next[slot];             \
    }
#define STORE_NEXT_TILES()                                         \
    STORE_NEXT(left_tile, left_next, TILE_ROWS, LEFT_K_CONTIGUOUS) \
    STORE_NEXT(right_tile, right_next, TILE_COLUMNS, RIGHT_K_CONTIGUOUS)

TYPE sum[THREAD_ROWS][THREAD_COLUMNS];
UNROLL for (int i = 0; i < THREAD_ROWS; i++) UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] = 0;
int k0 = 0, stage = 0;
LOAD_NEXT_TILES()
STORE_NEXT_TILES()
BARRIER();
for (; k0 < depth;) {
    k0 += TILE_DEPTH;
    if (k0 < depth) {
        LOAD_NEXT_TILES()
    }
    UNROLL for (int k = 0; k < TILE_DEPTH; k++) {
        const int left_row = (stage * TILE_DEPTH + k) * PITCH(TILE_ROWS) + thread_row * 4;
        const int right_row = (stage * TILE_DEPTH + k) * PITCH(TILE_COLUMNS) + thread_column * 4;
        TYPE left_line[THREAD_ROWS], right_line[THREAD_COLUMNS];
        UNROLL for (int i = 0; i < THREAD_ROWS; i += 4) LOAD_RUN(left_line + i, left_tile[left_row + i * THREADS_DOWN]);
        UNROLL for (int j = 0; j < THREAD_COLUMNS; j += 4)
            LOAD_RUN(right_line + j, right_tile[right_row + j * THREADS_ACROSS]);
        UNROLL for (int i = 0; i < THREAD_ROWS; i++) {
            UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] += left_line[i] * right_line[j];
        }
    }
    stage = 1 - stage;
    if (k0 < depth) {
        STORE_NEXT_TILES()
    }
    BARRIER();
}

// Stores the sums. A thread's rows come in runs of four; the first runs of all threads are side by side, then the
// second runs, and so on, so that vector loads from local memory have no bank conflicts. Columns alike.
UNROLL for (int i = 0; i < THREAD_ROWS; i++) {
    UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) {
        const int row = row0 + i / 4 * (THREADS_DOWN * 4) + thread_row * 4 + i % 4;
        const int column = column0 + j / 4 * (THREADS_ACROSS * 4) + thread_column * 4 + j % 4;
        if (row < rows && column < columns) out0[OUTPUT_INDEX] = sum[i][j];
    }
}
