// Band LU: index arithmetic of the rows that a step of L y = P b or of U x = y reads and writes, for solve_steps.cu and
// solve_sweeps.cu. UPPER is 1 for U, 0 for L. Step i solves for block i, its rows 0 to S - 1, and subtracts products
// with them from the `outside` rows below (L) or above (U). Rows are counted from the first row of block i.
//
// The changed rows are passed from step to step in windows of `reach` rows for each right-hand side: a step reads `now`
// and writes `next`. For L, the window of step i begins with block i; so row r of step i is row r - S of step i + 1.
// For U it ends with block i, above which it has u - 1 blocks. Example for L with S = 2 and outside = 4:
//     step i reads now[0 .. 3], which step i - 1 changed (changed_rows = 4), and rows 4 and 5 from `source`;
//     it solves rows 0 and 1, and writes the updated rows 2 to 5 to next[0 .. 3].
//
// The macros use these names of the kernel around them: i, outside, changed_rows, window, reach, padded_n, nrhs, u,
// permutations, now, source.
#if UPPER
#define FIRST_OUTSIDE (-outside)
#define SOURCE_ROW(row) (row)
#define IS_CHANGED(row) (S - (row) <= changed_rows)
#define NOW_ROW(row) ((u - 1) * S + (row))
#define NEXT_ROW(row) (u * S + (row))
#else
#define FIRST_OUTSIDE S
// The row that the interchanges of step i bring to `row`; `permutations` is (p, window), from solve_prepare.cu.
#define SOURCE_ROW(row) permutations[(ulong)i * (ulong)window + (ulong)(row)]
#define IS_CHANGED(row) ((row) < changed_rows)
#define NOW_ROW(row) (row)
#define NEXT_ROW(row) ((row) - S)
#endif

// The value of a row of right-hand side `rhs` before the step, 0 if rhs >= nrhs: from `now` if earlier steps changed
// the row, else from `source`, the right-hand sides (nrhs, padded_n).
#define VALUE_BEFORE(rhs, row)                                                  \
    ((rhs) >= nrhs     ? 0                                                      \
     : IS_CHANGED(row) ? now[(ulong)(rhs) * (ulong)reach + (ulong)NOW_ROW(row)] \
                       : source[(ulong)(rhs) * (ulong)padded_n + (ulong)(i * S + (row))])
