// The residual b - A x of a band system as if computed in twice the precision of double, and |A| |x| + |b|, in one pass
// over the band; launched by accuracy/residuals.py. Products and sums are error-free transformations, and their
// rounding errors are added separately (Dot2 with fused multiply-add: T. Ogita, S. M. Rump, S. Oishi, Accurate Sum and
// Dot Product, 2005). Compile with STRICT.
//   REAL     type of the band: float or double. negated_x (-x), b and the results are double, column-major
//   COLUMNS  right-hand sides per thread
//   ROWS     on CPUs: rows per work-item, a multiple of 8
//   DOUBLE   1 if REAL is double, else 0
// The band is LAPACK's band array: row d, column j holds A[j + d - ku, j]. Its unused corners are not read.
#include "numerics/error_free.h"

// Adds a x to total + error; only the additions to `error` round. Adds |a x| to `size`.
#define ADD_PRODUCT(type, zero, total, error, size, a, x)                  \
    {                                                                      \
        type product = (a) * (x), lost = fma(a, x, (zero) - product), low; \
        TWO_SUM(type, total, product, low)                                 \
        error = error + low;                                               \
        error = error + lost;                                              \
        size = size + fabs(product);                                       \
    }

// The residuals of one row for `columns` <= COLUMNS right-hand sides: values = (b - A x)[row], size = (|A| |x| +
// |b|)[row].
DEVICE void residual_of_row(GLOBAL const REAL *band, GLOBAL const double *negated_x, GLOBAL const double *b,
                            GLOBAL double *values, GLOBAL double *size, long n, int kl, int ku, long row, int columns) {
    double total[COLUMNS], error[COLUMNS], sum[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        total[c] = c < columns ? b[c * n + row] : 0;
        error[c] = 0;
        sum[c] = fabs(total[c]);
    }
    int first = (int)max(0l, row + ku - (n - 1)), last = (int)min((long)(kl + ku), row + ku);
    for (int d = first; d <= last; d++) {
        long j = row + ku - d;
        double a = (double)band[d * n + j];
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            double other = c < columns ? negated_x[c * n + j] : 0;
            ADD_PRODUCT(double, 0.0, total[c], error[c], sum[c], a, other)
        }
    }
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        if (c >= columns) continue;
        values[c * n + row] = total[c] + error[c];
        size[c * n + row] = sum[c];
    }
}

#ifndef ROWS
// Neighboring threads take neighboring rows, so that they read neighboring words of each diagonal.
KERNEL band_residual(GLOBAL const REAL *band, GLOBAL const double *negated_x, GLOBAL const double *b,
                     GLOBAL double *values, GLOBAL double *size, const ulong n, const int kl, const int ku,
                     const int columns) {
    long row = (long)thread_index_long();
    if (row < (long)n) residual_of_row(band, negated_x, b, values, size, (long)n, kl, ku, row, columns);
}
#else
#if DOUBLE
#define LOAD8(p) vload8(0, p)
#else
#define LOAD8(p) convert_double8(vload8(0, p))
#endif
#define VECTORS (ROWS / 8)
// A work-item computes ROWS rows in vectors of eight if every diagonal has elements in all of them, else one by one.
KERNEL band_residual(GLOBAL const REAL *band, GLOBAL const double *negated_x, GLOBAL const double *b,
                     GLOBAL double *values, GLOBAL double *size, const ulong order, const int kl, const int ku,
                     const int columns) {
    long n = (long)order, first = (long)thread_index_long() * ROWS;
    if (first < kl || first + ROWS + ku > n || columns < COLUMNS) {
        for (long row = first; row < min(first + ROWS, n); row++)
            residual_of_row(band, negated_x, b, values, size, n, kl, ku, row, columns);
        return;
    }
    double8 total[COLUMNS][VECTORS], error[COLUMNS][VECTORS], sum[COLUMNS][VECTORS];
    UNROLL for (int c = 0; c < COLUMNS; c++) UNROLL for (int r = 0; r < VECTORS; r++) {
        total[c][r] = vload8(0, b + c * n + first + r * 8);
        error[c][r] = SPLAT(double8, 0);
        sum[c][r] = fabs(total[c][r]);
    }
    for (int d = 0; d <= kl + ku; d++) {
        long j = first + ku - d;
        UNROLL for (int r = 0; r < VECTORS; r++) {
            double8 a = LOAD8(band + d * n + j + r * 8);
            UNROLL for (int c = 0; c < COLUMNS; c++) {
                double8 other = vload8(0, negated_x + c * n + j + r * 8);
                ADD_PRODUCT(double8, SPLAT(double8, 0), total[c][r], error[c][r], sum[c][r], a, other)
            }
        }
    }
    UNROLL for (int c = 0; c < COLUMNS; c++) UNROLL for (int r = 0; r < VECTORS; r++) {
        vstore8(total[c][r] + error[c][r], 0, values + c * n + first + r * 8);
        vstore8(sum[c][r], 0, size + c * n + first + r * 8);
    }
}
#endif
