// The body of a kernel that multiplies matrices on a CPU (Goto, van de Geijn 2008): a work-item packs a panel of the
// right operand, PANEL_K x PANEL_WIDTH, and multiplies it with ROWS packed rows of the left one at a time, whose sums
// stay in vector registers. The generated text before it defines TYPE, SIMD_LANES (8, or 16 floats where registers hold
// them), LOAD_LEFT(value) at (batch, row, k), LOAD_RIGHT(value) at (batch, k, column), and OUTPUT_INDEX of (batch, row,
// column). `parts` work-items share the rows of a panel.
#define PANEL_K 256
#define PANEL_WIDTH (2 * SIMD_LANES)
#if SIMD_LANES == 16  // there are 32 registers
#define ROWS 12
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define LOAD_WIDE vload16
#define STORE_WIDE vstore16
#else
#define ROWS 6
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define LOAD_WIDE vload8
#define STORE_WIDE vstore8
#endif

const int across = (columns + PANEL_WIDTH - 1) / PANEL_WIDTH, item = (int)thread_index();
const int batch = item / (across * parts), column0 = item % across * PANEL_WIDTH;
const int span = ((rows + parts - 1) / parts + ROWS - 1) / ROWS * ROWS, first_row = item / across % parts * span;
const int last_row = min(rows, first_row + span);
TYPE packed[PANEL_K * PANEL_WIDTH], lines[PANEL_K * ROWS], edge[ROWS * PANEL_WIDTH];
for (int k0 = 0; batch < batches && first_row < last_row && k0 < depth; k0 += PANEL_K) {
    const int deep = min(depth - k0, PANEL_K);
    for (int p = 0; p < deep; p++) {
        const int k = k0 + p;
        if (column0 + PANEL_WIDTH <= columns) {
            for (int j = 0; j < PANEL_WIDTH; j++) {
                const int column = column0 + j;
                LOAD_RIGHT(packed[p * PANEL_WIDTH + j])
            }
        } else {
            for (int j = 0; j < PANEL_WIDTH; j++) {
                const int column = min(column0 + j, columns - 1);
                LOAD_RIGHT(packed[p * PANEL_WIDTH + j])
            }
        }
    }
    for (int row0 = first_row; row0 < last_row; row0 += ROWS) {
        for (int i = 0; i < ROWS; i++) {
            const int row = min(row0 + i, last_row - 1);
            for (int p = 0; p < deep; p++) {
                const int k = k0 + p;
                LOAD_LEFT(lines[i * PANEL_K + p])
            }
        }
#define START(r) WIDE low##r = SPLAT(WIDE, 0), high##r = SPLAT(WIDE, 0);
        EACH_ROW(START)
        for (int p = 0; p < deep; p++) {
            const WIDE right_low = LOAD_WIDE(2 * p, packed), right_high = LOAD_WIDE(2 * p + 1, packed);
#define MULTIPLY(r)                                     \
    {                                                   \
        low##r += lines[r * PANEL_K + p] * right_low;   \
        high##r += lines[r * PANEL_K + p] * right_high; \
    }
            EACH_ROW(MULTIPLY)
        }
#define KEEP(r) STORE_WIDE(low##r, 2 * r, edge), STORE_WIDE(high##r, 2 * r + 1, edge);
        EACH_ROW(KEEP)
        for (int i = 0; i < min(ROWS, last_row - row0); i++) {
            const int row = row0 + i;
            for (int j = 0; j < min(PANEL_WIDTH, columns - column0); j++) {
                const int column = column0 + j;
                GLOBAL TYPE *sum = out0 + (OUTPUT_INDEX);
                *sum = (k0 > 0 ? *sum : 0) + edge[i * PANEL_WIDTH + j];
            }
        }
    }
}
