// Exact sums of floating-point numbers and of their products. Constants: see sums.h, accumulator.h.
#include "accumulator.h"
#include "sums.h"

// Exact: each lane keeps an expansion of LEVELS doubles by error-free additions (Knuth); what it cannot hold, and what is not
// finite or would overflow, goes to the group's integer limbs. LEVELS 1 holds floats of similar size without any rest, so
// that the test costs all there is to pay (after Collange, Defour, Graillat, Iakymchuk, and Neal's superaccumulator).
#define TWO_SUM(total, term, error)                                                                                    \
    {                                                                                                                  \
        double8 raised = total + term, part = raised - total;                                                          \
        error = (total - (raised - part)) + (term - part);                                                             \
        total = raised;                                                                                                \
    }
#define LIMB_TYPE LOCAL uint

// What stands in `error` could not be kept: to the limbs with it; where a sum is not finite, back to the old one.
DEVICE_NOINLINE void rescue(double *sums, const double *olds, double *uppers, const double *upper_olds,
                            const double *terms, const double *errors, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (int i = 0; i < WIDTH; i++) {
        if (errors[i] == 0) continue;
        if (isfinite(sums[i]) && isfinite(uppers[i]) && isfinite(errors[i])) {
            ADD_DOUBLE(limbs, *flags, errors[i])
        } else {
            sums[i] = olds[i];
            uppers[i] = upper_olds[i];
            ADD_DOUBLE(limbs, *flags, terms[i])
        }
    }
}

// Level 2 of floats is needed so seldom that it stands in local memory (`spare`), which leaves registers for loads.
#define RESCUE(term)                                                                                                   \
    {                                                                                                                  \
        double s[WIDTH], s_old[WIDTH], u[WIDTH], u_old[WIDTH], t[WIDTH], e[WIDTH];                                     \
        vstore8(sums, 0, s);                                                                                           \
        vstore8(sums_old, 0, s_old);                                                                                   \
        vstore8(uppers, 0, u);                                                                                         \
        vstore8(uppers_old, 0, u_old);                                                                                 \
        vstore8(term, 0, t);                                                                                           \
        vstore8(error, 0, e);                                                                                          \
        rescue(s, s_old, u, u_old, t, e, limbs, &flags[0]);                                                            \
        sums = vload8(0, s);                                                                                           \
        uppers = vload8(0, u);                                                                                         \
    }
#if LEVELS == 1
#define ADD_TERM(term)                                                                                                 \
    {                                                                                                                  \
        double8 sums_old = sums, error;                                                                                \
        TWO_SUM(sums, term, error)                                                                                     \
        if (any_nonzero(error)) {                                                                                      \
            double8 rest = error, uppers = vload8(local_index(), spare), uppers_old = uppers;                          \
            TWO_SUM(uppers, rest, error)                                                                               \
            if (any_nonzero(error)) RESCUE(term)                                                                       \
            vstore8(uppers, local_index(), spare);                                                                     \
        }                                                                                                              \
    }
#else
#define ADD_TERM(term)                                                                                                 \
    {                                                                                                                  \
        double8 sums_old = sums, uppers_old = uppers, error, rest;                                                     \
        TWO_SUM(sums, term, rest)                                                                                      \
        TWO_SUM(uppers, rest, error)                                                                                   \
        if (any_nonzero(error)) RESCUE(term)                                                                           \
    }
#endif

#if DOT && !SINGLE
// Products that leave the range in which head and tail are doubles: by integers, four partial products of 32 bits.
DEVICE_NOINLINE void rescue_products(const double *xs, const double *ys, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (int i = 0; i < WIDTH; i++) {
        double product = xs[i] * ys[i];
        if (!isfinite(xs[i]) || !isfinite(ys[i]) || xs[i] == 0 || ys[i] == 0) {
            ADD_DOUBLE(limbs, *flags, product)
            continue;
        }
        ulong a = as_ulong(xs[i]), b = as_ulong(ys[i]);
        int p = (int)(a >> 52) & 0x7ff, q = (int)(b >> 52) & 0x7ff;
        bool negative = ((a ^ b) >> 63) != 0;
        a = (a & 0xffffffffffffful) | (p ? 0x10000000000000ul : 0);
        b = (b & 0xffffffffffffful) | (q ? 0x10000000000000ul : 0);
        int power = (p ? p : 1) + (q ? q : 1) - 2150;
        ulong a_low = a & 0xfffffffful, a_high = a >> 32, b_low = b & 0xfffffffful, b_high = b >> 32;
        atomic_or(flags, FLAG_NOT_MINUS_ZERO);
        ulong term = a_low * b_low;
        ADD_INTEGER(limbs, term, power, negative)
        term = a_low * b_high + a_high * b_low;  // below 2^54
        ADD_INTEGER(limbs, term, power + 32, negative)
        term = a_high * b_high;
        ADD_INTEGER(limbs, term, power + 64, negative)
    }
}
#endif

#if SINGLE
#define AHEAD 2
#else
#define AHEAD 1
#endif

KERNEL_RESIDENT(2) exact(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_each,
             GLOBAL uint *out) {
    y += y_start;
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS);
    LOCAL_ARRAY(uint, flags, 1);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0;
    if (local_index() == 0) flags[0] = 0;
    BARRIER();
    double8 sums = SPLAT(double8, -0.0);
#if LEVELS == 1
    LOCAL_ARRAY(double, spare, GROUP_SIZE *WIDTH);
    vstore8(SPLAT(double8, 0.0), local_index(), spare);
#else
    double8 uppers = SPLAT(double8, 0.0);
#endif
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
#if !DOT
    if (tile < whole) {  // floats are half as long: two loads of them must be in flight where one of doubles is enough
        RAW next = load_whole(x, tile), after = load_whole(x, min(tile + AHEAD - 1, whole - 1));
        for (; tile < whole; tile++) {
            double8 term = MAGNITUDE(double8_of(next));
#if AHEAD == 2
            next = after;
            after = load_whole(x, min(tile + 2, whole - 1));
#else
            next = load_whole(x, min(tile + 1, whole - 1));
#endif
            ADD_TERM(term)
        }
    }
#endif
    for (; tile < last; tile++) {
        double8 term = double8_of(load(x, tile, count));
#if DOT
        double8 factor = double8_of(load(y, tile, count));
#endif
#if DOT && SINGLE
        term = term * factor;  // 48 bits: no rounding
        ADD_TERM(term)
#elif DOT
        double8 head = term * factor;
        if (any_outside(head, 0x1p-960, 0x1p1000)) {
            double xs[WIDTH], ys[WIDTH];
            vstore8(term, 0, xs);
            vstore8(factor, 0, ys);
            rescue_products(xs, ys, limbs, &flags[0]);
        } else {
            double8 tail = fma(term, factor, SPLAT(double8, 0.0) - head);
            ADD_TERM(head)
            ADD_TERM(tail)
        }
#else
        term = MAGNITUDE(term);
        ADD_TERM(term)
#endif
    }
    double parts[WIDTH];
    vstore8(sums, 0, parts);
    for (int i = 0; i < WIDTH; i++) ADD_DOUBLE(limbs, flags[0], parts[i])
#if LEVELS == 1
    vstore8(vload8(local_index(), spare), 0, parts);
#else
    vstore8(uppers, 0, parts);
#endif
    for (int i = 0; i < WIDTH; i++)
        if (parts[i] != 0) ADD_DOUBLE(limbs, flags[0], parts[i])
    BARRIER();
    MERGE_LIMBS(limbs, out)
    if (local_index() == 0 && flags[0]) atomic_or(&out[2 * LIMBS], flags[0]);
}
