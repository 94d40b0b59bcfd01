// The body of a kernel that multiplies matrices on a CPU: a work-item computes THREAD_ROWS x THREAD_COLUMNS elements.
// Its inner loops run along the columns, so that the compiler vectorizes them. The generated text before it defines
// TYPE, LOAD_LEFT(value) at (batch, row, k), LOAD_RIGHT(value) at (batch, k, column), and OUTPUT_INDEX of (batch, row,
// column).
const int blocks_across = (columns + THREAD_COLUMNS - 1) / THREAD_COLUMNS;
const int blocks_down = (rows + THREAD_ROWS - 1) / THREAD_ROWS, blocks = blocks_across * blocks_down;
const int block = (int)thread_index() % blocks, batch = (int)thread_index() / blocks;
const int row0 = (block % blocks_down) * THREAD_ROWS, column0 = (block / blocks_down) * THREAD_COLUMNS;
if (batch < batches) {
    TYPE sum[THREAD_ROWS][THREAD_COLUMNS];
    for (int i = 0; i < THREAD_ROWS; i++)
        for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] = 0;
    for (int k = 0; k < depth; k++) {
        TYPE left_line[THREAD_ROWS], right_line[THREAD_COLUMNS];
        for (int i = 0; i < THREAD_ROWS; i++) {
            const int row = min(row0 + i, rows - 1);
            LOAD_LEFT(left_line[i])
        }
        if (column0 + THREAD_COLUMNS <= columns) {
            for (int j = 0; j < THREAD_COLUMNS; j++) {
                const int column = column0 + j;
                LOAD_RIGHT(right_line[j])
            }
        } else {
            for (int j = 0; j < THREAD_COLUMNS; j++) {
                const int column = min(column0 + j, columns - 1);
                LOAD_RIGHT(right_line[j])
            }
        }
        for (int i = 0; i < THREAD_ROWS; i++)
            for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] += left_line[i] * right_line[j];
    }
    for (int i = 0; i < THREAD_ROWS; i++) {
        for (int j = 0; j < THREAD_COLUMNS; j++) {
            const int row = row0 + i, column = column0 + j;
            if (row < rows && column < columns) out0[OUTPUT_INDEX] = sum[i][j];
        }
    }
}
