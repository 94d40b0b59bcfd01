// Correctly rounded sums, dot products and variances of many lines of numbers, and flags for results that may be wrong;
// launched by renderer/numerics/sums/exact_lines.py, whose caller recomputes flagged results on the host.
//
// The terms of a line, and the rounding errors of its products (TwoProduct by fma), are added to three doubles s, c1
// and c2 (T. Ogita, S. M. Rump, S. Oishi, SumK, 2005). TwoSum adds terms to s and their rounding errors to c1; only the
// rounding errors of c1 are added with rounding, to c2, and `lost` sums their magnitudes. So the error of s + c1 + c2
// has a bound delta, and if both ends of the interval round to the same number, the exact result does too (the rounding
// test of A. Ziv 1991). A certain result has the same bits for any order and device.
//
// A line is one sum's terms. In: line (i, j) of rows x columns has the `length` terms a[i a_row + j a_column + k
// a_step]; products multiply them by b[j b_column + k b_step]. Out: out (rows, columns) double, and doubts (rows,
// columns), 1 where the result may be wrong, else 0. The host compiles with STRICT and defines
//   KIND     SUM (0), PRODUCT (1: of a and b) or VARIANCE (2: of a, around `centers`, any numbers near the means)
//   ELEMENT  float or double
//   TEAM     threads that share a line, a power of two; GROUP_SIZE is a multiple of it
#include "numerics/error_free.h"

#define SUM 0
#define PRODUCT 1
#define VARIANCE 2
#define SMALLEST_PRODUCT 0x1p-960  // the rounding errors of smaller products may underflow
#define EPSILON 0x1p-52

// ADD_HIGH adds a term to (s, c1, c2), ADD_LOW a rounding error to (c1, c2), ADD_PRODUCT the exact product of x and y.
// TWO_SUM(type, total, term, error) of error_free.h: total += term, and the exact rounding error of that.
#define ADD_LOW(term)                   \
    {                                   \
        double rest;                    \
        TWO_SUM(double, c1, term, rest) \
        c2 += rest;                     \
        lost += fabs(rest);             \
    }
#define ADD_HIGH(term)                \
    {                                 \
        double low;                   \
        TWO_SUM(double, s, term, low) \
        ADD_LOW(low)                  \
    }
#define ADD_PRODUCT(x, y)                                                      \
    {                                                                          \
        double product = (x) * (y);                                            \
        uncertain |= fabs(product) < SMALLEST_PRODUCT && (x) != 0 && (y) != 0; \
        ADD_HIGH(product)                                                      \
        ADD_LOW(fma(x, y, -product))                                           \
    }

// (h + l) / divisor rounded once, where h + l has an error of at most delta. *certain is set if the result is proven.
DEVICE double round_once(double h, double l, double delta, double divisor, bool *certain) {
    if (divisor != 1) {
        double quotient = h / divisor, rest = fma(-quotient, divisor, h) + l;
        *certain = fabs(quotient) >= SMALLEST_PRODUCT || (h == 0 && l == 0);
        l = rest / divisor;
        delta = (delta + EPSILON * fabs(rest)) / divisor + EPSILON * fabs(l);
        h = quotient;
    } else
        *certain = true;
    // both ends of the interval, which `wide` extends by the rounding errors of these lines
    double wide = delta == 0 ? 0 : delta * (1 + 16 * EPSILON) + EPSILON * fabs(l);
    double lower = h + (l - wide), upper = h + (l + wide);
    *certain = *certain && lower == upper && isfinite(lower);
    return lower;
}

// TEAM threads per line: each adds every TEAM-th term, a tree adds their sums, and the first thread rounds the result
// to out[line]. doubts[line] becomes 1 if the rounding is not certain. A variance is, with d = x - center, (sum d^2 -
// (sum d)^2 / length) / divisor; offset + offset_low is sum d, offset_lost bounds its error.
KERNEL reduce_lines(GLOBAL const ELEMENT *a, GLOBAL const ELEMENT *b, GLOBAL const double *centers, GLOBAL double *out,
                    GLOBAL uint *doubts, const ulong lines, const ulong columns, const ulong length, const ulong a_row,
                    const ulong a_column, const ulong a_step, const ulong b_column, const ulong b_step,
                    const double divisor) {
    ulong line = thread_index_long() / TEAM, member = local_index() % TEAM;
    bool active = line < lines;
    ulong i = line / columns, j = line % columns;
    GLOBAL const ELEMENT *x = a + i * a_row + j * a_column, *y = b + j * b_column;
    double s = -0.0, c1 = 0, c2 = 0, lost = 0;  // -0.0: the sum of terms that all are -0.0
    bool uncertain = false;
#if KIND == VARIANCE
    double center = active ? centers[line] : 0, offset = 0, offset_low = 0, offset_lost = 0;
#endif
    for (ulong k = active ? member : length; k < length; k += TEAM) {
        double number = (double)x[k * a_step];
#if KIND == SUM
        ADD_HIGH(number)
#elif KIND == PRODUCT
        double other = (double)y[k * b_step];
        ADD_PRODUCT(number, other)
#else
        double away = number, remainder, low;  // away + remainder = number - center, exactly
        TWO_SUM(double, away, -center, remainder)
        ADD_PRODUCT(away, away)
        if (remainder != 0) {
            ADD_PRODUCT(2 * away, remainder)
            ADD_PRODUCT(remainder, remainder)
        }
        TWO_SUM(double, offset, away, low)
        offset_low += low + remainder;
        offset_lost += fabs(low) + fabs(remainder);
#endif
    }
#if TEAM > 1
    // A tree adds the sums of the team's threads. Rows of `parts`: s, c1, c2, lost (-1 - lost if uncertain), then for
    // variances offset, offset_low, offset_lost.
    LOCAL_ARRAY(double, parts, 7 * GROUP_SIZE);
    LOCAL double *thread_parts = parts + local_index();
    for (uint distance = TEAM / 2; distance > 0; distance /= 2) {
        thread_parts[0] = s;
        thread_parts[GROUP_SIZE] = c1;
        thread_parts[2 * GROUP_SIZE] = c2;
        thread_parts[3 * GROUP_SIZE] = uncertain ? -1 - lost : lost;
#if KIND == VARIANCE
        thread_parts[4 * GROUP_SIZE] = offset;
        thread_parts[5 * GROUP_SIZE] = offset_low;
        thread_parts[6 * GROUP_SIZE] = offset_lost;
#endif
        BARRIER();
        if (member < distance) {
            LOCAL const double *other = thread_parts + distance;
            double other_lost = other[3 * GROUP_SIZE];
            uncertain |= other_lost < 0;
            lost += fabs(other_lost) + fabs(other[2 * GROUP_SIZE]);
            ADD_HIGH(other[0])
            ADD_LOW(other[GROUP_SIZE])
            c2 += other[2 * GROUP_SIZE];
#if KIND == VARIANCE
            double low;
            TWO_SUM(double, offset, other[4 * GROUP_SIZE], low)
            offset_low += low + other[5 * GROUP_SIZE];
            offset_lost += fabs(low) + other[6 * GROUP_SIZE];
#endif
        }
        BARRIER();
    }
#endif
    if (!active || member != 0) return;
    // The result is s + low, with an error of at most delta. c2 is the rounded sum of at most `terms` numbers, whose
    // magnitudes add up to `lost`, so its error is at most terms * EPSILON / 2 * lost; the factor 4 in place of 1 / 2
    // allows for the rounding of `lost` itself. A term of a variance gives c2 six numbers, two for each ADD_PRODUCT;
    // 4096 covers the additions of the tree.
    double terms = 6.0 * (double)length + 4096, low, rest;
    double delta = 4 * EPSILON * terms * lost;
    bool is_zero = s == 0 && c1 == 0 && lost == 0, certain;
    double zero = s;  // -0 if all terms are -0
    TWO_SUM(double, s, c1, low)
    TWO_SUM(double, low, c2, rest)
    TWO_SUM(double, s, low, low)
    delta += fabs(rest);
#if KIND == VARIANCE
    // sum d = total, with an error of at most `doubt`, which changes its square by 2 |total| doubt + doubt^2 at most.
    double total = offset + offset_low, correction = total * total / (double)length;
    double doubt = 4 * EPSILON * terms * offset_lost;
    delta += 8 * EPSILON * correction + 3 * (fabs(total) + doubt) * doubt / (double)length;
    is_zero = is_zero && total == 0;
    TWO_SUM(double, s, -correction, rest)
    low += rest;
    delta += 2 * EPSILON * fabs(low);
    TWO_SUM(double, s, low, low)
#endif
    double result = round_once(s, low, delta, divisor, &certain);
    out[line] = is_zero ? zero / divisor : result;
    doubts[line] = uncertain || !(is_zero || certain) ? 1 : 0;
}
