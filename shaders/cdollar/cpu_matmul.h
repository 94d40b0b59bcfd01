// The body of a kernel that multiplies batches of matrices on a CPU (Goto, van de Geijn 2008), inserted by
// renderer/cdollar/targets/matmul_kernels.py. A work-item packs a panel of the right operand, PANEL_K x PANEL_WIDTH,
// and multiplies it with blocks of ROWS packed rows of the left operand, one block after another; the sums of a block
// stay in vector registers. `parts` work-items share a panel: each computes a range of the rows.
// The generated text before this file defines:
//     TYPE               the C type of the elements; WIDE: a vector of SIMD_LANES of them
//     SIMD_LANES         16 for floats if the registers hold 16, else 8
//     LOAD_LEFT(value)   statements that set `value` to the left operand's element at (batch, row, k)
//     LOAD_RIGHT(value)  the same for the right operand at (batch, k, column)
//     OUTPUT_INDEX       the index in out0 of the element at (batch, row, column)
// and the arguments `rows`, `columns`, `depth` (the inner dimension), `batches`, `parts` and the output out0.
#define PANEL_K 256
#define PANEL_WIDTH (2 * SIMD_LANES)
// 2 ROWS vector registers hold sums, the others operands: 24 of 32 registers, or 12 of 16. EACH_ROW(DO) writes DO(r)
// for each row r, as the sums must be variables with names to be registers: low0, high0, low1, ...
#if SIMD_LANES == 16
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

// Work-item (batch * parts + part) * panels + panel: its panel begins at column0, its part of the rows is first_row to
// last_row - 1, `span` rows, a multiple of ROWS.
const int panels = (columns + PANEL_WIDTH - 1) / PANEL_WIDTH, item = (int)thread_index();
const int batch = item / (panels * parts), column0 = item % panels * PANEL_WIDTH;
const int span = ((rows + parts - 1) / parts + ROWS - 1) / ROWS * ROWS, first_row = item / panels % parts * span;
const int last_row = min(rows, first_row + span);
TYPE right_panel[PANEL_K * PANEL_WIDTH], left_rows[PANEL_K * ROWS], sums[ROWS * PANEL_WIDTH];
for (int k0 = 0; batch < batches && first_row < last_row && k0 < depth; k0 += PANEL_K) {
    const int panel_depth = min(depth - k0, PANEL_K);
    // Packs the panel. Columns beyond the last one repeat it; their sums are not stored. Rows below alike.
    for (int p = 0; p < panel_depth; p++) {
        const int k = k0 + p;
        if (column0 + PANEL_WIDTH <= columns) {
            for (int j = 0; j < PANEL_WIDTH; j++) {
                const int column = column0 + j;
                LOAD_RIGHT(right_panel[p * PANEL_WIDTH + j])
            }
        } else {
            for (int j = 0; j < PANEL_WIDTH; j++) {
                const int column = min(column0 + j, columns - 1);
                LOAD_RIGHT(right_panel[p * PANEL_WIDTH + j])
            }
        }
    }
    for (int row0 = first_row; row0 < last_row; row0 += ROWS) {
        for (int i = 0; i < ROWS; i++) {
            const int row = min(row0 + i, last_row - 1);
            for (int p = 0; p < panel_depth; p++) {
                const int k = k0 + p;
                LOAD_LEFT(left_rows[i * PANEL_K + p])
            }
        }
#define START(r) WIDE low##r = SPLAT(WIDE, 0), high##r = SPLAT(WIDE, 0);
        EACH_ROW(START)
        for (int p = 0; p < panel_depth; p++) {
            const WIDE right_low = LOAD_WIDE(2 * p, right_panel), right_high = LOAD_WIDE(2 * p + 1, right_panel);
#define MULTIPLY(r)                                         \
    {                                                       \
        low##r += left_rows[r * PANEL_K + p] * right_low;   \
        high##r += left_rows[r * PANEL_K + p] * right_high; \
    }
            EACH_ROW(MULTIPLY)
        }
#define KEEP(r) STORE_WIDE(low##r, 2 * r, sums), STORE_WIDE(high##r, 2 * r + 1, sums);
        EACH_ROW(KEEP)
        for (int i = 0; i < min(ROWS, last_row - row0); i++) {
            const int row = row0 + i;
            for (int j = 0; j < min(PANEL_WIDTH, columns - column0); j++) {
                const int column = column0 + j;
                GLOBAL TYPE *sum = out0 + (OUTPUT_INDEX);
                *sum = (k0 > 0 ? *sum : 0) + sums[i * PANEL_WIDTH + j];  // the first panel starts the sum
            }
        }
    }
}
