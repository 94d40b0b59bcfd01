// Band LU: index arithmetic of the rows that a step of L y = P b or of U x = y reads and writes, for solve_steps.cu and
// solve_sweeps.cu. UPPER is 1 for U, 0 for L. Rows are counted from the first row of block i of the step. A step solves
// for the rows 0 to S - 1 and subtracts products with them from the `outside` rows below (L) or above (U). The changed
// rows are passed from step to step in windows of `reach` rows: a step reads `now` and writes `next`.
#if UPPER
#define FIRST_OUTSIDE (-outside)
#define SOURCE_ROW(row) (row)
#define IS_CHANGED(row) (S - (row) <= changed_rows)
#define NOW_ROW(row) ((u - 1) * S + (row))
#define NEXT_ROW(row) (u * S + (row))
#else
#define FIRST_OUTSIDE S
// The row that the interchanges of step i bring to `row`.
#define SOURCE_ROW(row) permutations[(ulong)i * (ulong)window + (ulong)(row)]
#define IS_CHANGED(row) ((row) < changed_rows)
#define NOW_ROW(row) (row)
#define NEXT_ROW(row) ((row) - S)
#endif

// The value of a row of right-hand side `rhs` before the step, 0 if rhs >= nrhs: from `now` if earlier steps changed
// the row, else from `source`, the right-hand sides (padded_n, nrhs).
#define VALUE_BEFORE(rhs, row)                                                  \
    ((rhs) >= nrhs     ? 0                                                      \
     : IS_CHANGED(row) ? now[(ulong)(rhs) * (ulong)reach + (ulong)NOW_ROW(row)] \
                       : source[(ulong)(rhs) * (ulong)padded_n + (ulong)(i * S + (row))])
