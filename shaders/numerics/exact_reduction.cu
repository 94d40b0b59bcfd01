// Sums, dot products and variances of many lines of numbers, each rounded once, and whether that is certain.
//
// A line's terms, and the exact errors of its products (TwoProduct by fma), are added to three doubles by error-free
// additions (T. Ogita, S. M. Rump, S. Oishi, SumK, 2005): s + c1 + all that was rounded off is the exact sum. Only what
// c1 loses is added with rounding, to c2, and `lost` adds its magnitudes. So the error of s + c1 + c2 has a bound, and
// if the ends of that interval round to one number, the sum does (the rounding test of Ziv 1991). The few lines where
// they do not are left to the host. A result has the same bits in any order, on any device.
//   KIND     SUM, PRODUCT (of a and b) or VARIANCE (of a, around any numbers near the means)
//   ELEMENT  float or double
//   TEAM     threads that share a line; GROUP_SIZE is a multiple of it
// Compile with STRICT. Line (i, j) of rows x columns has the terms a[i a_row + j a_column + k a_step], b likewise.
#define SUM 0
#define PRODUCT 1
#define VARIANCE 2
#define SMALLEST_PRODUCT 0x1p-960  // smaller ones may lose bits of their error
#define EPSILON 0x1p-52

#define TWO_SUM(total, term, error)                                \
    {                                                              \
        double raised = (total) + (term), part = raised - (total); \
        error = ((total) - (raised - part)) + ((term) - part);     \
        total = raised;                                            \
    }
#define ADD_LOW(term)           \
    {                           \
        double rest;            \
        TWO_SUM(c1, term, rest) \
        c2 += rest;             \
        lost += fabs(rest);     \
    }
#define ADD_HIGH(term)        \
    {                         \
        double low;           \
        TWO_SUM(s, term, low) \
        ADD_LOW(low)          \
    }
#define ADD_PRODUCT(x, y)                                                      \
    {                                                                          \
        double product = (x) * (y);                                            \
        uncertain |= fabs(product) < SMALLEST_PRODUCT && (x) != 0 && (y) != 0; \
        ADD_HIGH(product)                                                      \
        ADD_LOW(fma(x, y, -product))                                           \
    }

// h + l, give or take delta, over the divisor, rounded once; *certain: whether it is the right number.
DEVICE double round_once(double h, double l, double delta, double divisor, bool *certain) {
    if (divisor != 1) {
        double quotient = h / divisor, rest = fma(-quotient, divisor, h) + l;
        *certain = fabs(quotient) >= SMALLEST_PRODUCT || (h == 0 && l == 0);
        l = rest / divisor;
        delta = (delta + EPSILON * fabs(rest)) / divisor + EPSILON * fabs(l);
        h = quotient;
    } else
        *certain = true;
    double wide = delta == 0 ? 0 : delta * (1 + 16 * EPSILON) + EPSILON * fabs(l);
    double lower = h + (l - wide), upper = h + (l + wide);
    *certain = *certain && lower == upper && isfinite(lower);
    return lower;
}

KERNEL reduce_lines(GLOBAL const ELEMENT *a, GLOBAL const ELEMENT *b, GLOBAL const double *centers, GLOBAL double *out,
                    GLOBAL uint *doubts, const ulong lines, const ulong columns, const ulong length, const ulong a_row,
                    const ulong a_column, const ulong a_step, const ulong b_column, const ulong b_step,
                    const double divisor) {
    ulong line = thread_index_long() / TEAM, member = local_index() % TEAM;
    bool active = line < lines;
    ulong i = line / columns, j = line % columns;
    GLOBAL const ELEMENT *x = a + i * a_row + j * a_column, *y = b + j * b_column;
    double s = -0.0, c1 = 0, c2 = 0, lost = 0;
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
        double away = number, remainder, low;
        TWO_SUM(away, -center, remainder)
        ADD_PRODUCT(away, away)
        if (remainder != 0) {
            ADD_PRODUCT(2 * away, remainder)
            ADD_PRODUCT(remainder, remainder)
        }
        TWO_SUM(offset, away, low)
        offset_low += low + remainder;
        offset_lost += fabs(low) + fabs(remainder);
#endif
    }
#if TEAM > 1
    LOCAL_ARRAY(double, parts, 7 * GROUP_SIZE);
    LOCAL double *own = parts + local_index();
    for (uint distance = TEAM / 2; distance > 0; distance /= 2) {
        own[0] = s;
        own[GROUP_SIZE] = c1;
        own[2 * GROUP_SIZE] = c2;
        own[3 * GROUP_SIZE] = uncertain ? -1 - lost : lost;
#if KIND == VARIANCE
        own[4 * GROUP_SIZE] = offset;
        own[5 * GROUP_SIZE] = offset_low;
        own[6 * GROUP_SIZE] = offset_lost;
#endif
        BARRIER();
        if (member < distance) {
            LOCAL const double *other = own + distance;
            double found = other[3 * GROUP_SIZE];
            uncertain |= found < 0;
            lost += fabs(found) + fabs(other[2 * GROUP_SIZE]);
            ADD_HIGH(other[0])
            ADD_LOW(other[GROUP_SIZE])
            c2 += other[2 * GROUP_SIZE];
#if KIND == VARIANCE
            double low;
            TWO_SUM(offset, other[4 * GROUP_SIZE], low)
            offset_low += low + other[5 * GROUP_SIZE];
            offset_lost += fabs(low) + other[6 * GROUP_SIZE];
#endif
        }
        BARRIER();
    }
#endif
    if (!active || member != 0) return;
    double terms = 6.0 * (double)length + 4096, low, rest;  // additions, at most
    double delta = 4 * EPSILON * terms * lost;
    bool is_zero = s == 0 && c1 == 0 && lost == 0, certain;
    double zero = s;
    TWO_SUM(s, c1, low)
    TWO_SUM(low, c2, rest)
    TWO_SUM(s, low, low)
    delta += fabs(rest);
#if KIND == VARIANCE
    double total = offset + offset_low, correction = total * total / (double)length;
    double doubt = 4 * EPSILON * terms * offset_lost;
    delta += 8 * EPSILON * correction + 3 * (fabs(total) + doubt) * doubt / (double)length;
    is_zero = is_zero && total == 0;
    TWO_SUM(s, -correction, rest)
    low += rest;
    delta += 2 * EPSILON * fabs(low);
    TWO_SUM(s, low, low)
#endif
    double result = round_once(s, low, delta, divisor, &certain);
    out[line] = is_zero ? zero / divisor : result;
    doubts[line] = uncertain || !(is_zero || certain) ? 1 : 0;
}
