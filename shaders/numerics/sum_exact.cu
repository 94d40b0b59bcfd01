// Exact sums of floating-point numbers and of their products, on CPUs and on devices with too little local memory for
// sum_bins.cu and sum_exact_float.cu; launched by renderer/numerics/sums/device_sums.py. In and out, and macros: see
// sum_tiles.h, superaccumulator.h.
#include "numerics/error_free.h"
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"

// Floating-point expansions (ExBLAS: Collange, Defour, Graillat, Iakymchuk): each of the eight sums of a thread is an
// expansion of two doubles, `sums` and `sums_low`, updated by error-free additions (TWO_SUM(type, total, term, error)
// of error_free.h: total += term, and the exact rounding error of that). Rounding errors of the second component, terms
// that are not finite, and terms that would overflow spill to the superaccumulator of the group. For floats (SINGLE)
// only `sums` is in registers: floats of similar magnitude have no rounding error in double, and testing for one is the
// only extra cost. `sums_low`, rarely needed, is in local memory (`sums_low_local`), which leaves registers for loads.

// Spills from eight expansions to the superaccumulator: the rounding error or, if a sum is no longer finite, the term,
// after both components of the sum have their `_old` values again.
DEVICE_NOINLINE void spill(double *sums, const double *sums_old, double *sums_low, const double *sums_low_old,
                           const double *terms, const double *errors, LOCAL uint *limbs, LOCAL uint *flags) {
    for (int i = 0; i < WIDTH; i++) {
        if (errors[i] == 0) continue;
        if (isfinite(sums[i]) && isfinite(sums_low[i]) && isfinite(errors[i])) {
            add_double(limbs, flags, errors[i]);
        } else {
            sums[i] = sums_old[i];
            sums_low[i] = sums_low_old[i];
            add_double(limbs, flags, terms[i]);
        }
    }
}

// SPILL calls spill() for the vectors `sums`, `sums_low` and `error`.
#define SPILL(term)                                                                \
    {                                                                              \
        double s[WIDTH], s_old[WIDTH], u[WIDTH], u_old[WIDTH], t[WIDTH], e[WIDTH]; \
        vstore8(sums, 0, s);                                                       \
        vstore8(sums_old, 0, s_old);                                               \
        vstore8(sums_low, 0, u);                                                   \
        vstore8(sums_low_old, 0, u_old);                                           \
        vstore8(term, 0, t);                                                       \
        vstore8(error, 0, e);                                                      \
        spill(s, s_old, u, u_old, t, e, limbs, &flags[0]);                         \
        sums = vload8(0, s);                                                       \
        sums_low = vload8(0, u);                                                   \
    }
#if SINGLE
#define LOAD_SUMS_LOW double8 sums_low = vload8(local_index(), sums_low_local);
#define STORE_SUMS_LOW vstore8(sums_low, local_index(), sums_low_local);
#else
#define LOAD_SUMS_LOW
#define STORE_SUMS_LOW
#endif
// Adds eight terms to the expansions. `spills` counts additions that leave the registers: to `sums_low` for floats, to
// the superaccumulator for doubles.
#define ADD_TERM(term)                              \
    {                                               \
        double8 sums_old = sums, rest;              \
        TWO_SUM(double8, sums, term, rest)          \
        if (!SINGLE || any_nonzero(rest)) {         \
            LOAD_SUMS_LOW                           \
            double8 sums_low_old = sums_low, error; \
            TWO_SUM(double8, sums_low, rest, error) \
            bool is_inexact = any_nonzero(error);   \
            if (SINGLE || is_inexact) spills++;     \
            if (is_inexact) SPILL(term)             \
            STORE_SUMS_LOW                          \
        }                                           \
    }

#if BLOCKED_ARRANGEMENT
// Large superaccumulator (Neal 2015), on CPUs: if expansions spilled more than MAX_SPILLS times in the last ROUND
// tiles, a work-item adds the mantissas of all further terms to one cell for each sign and exponent, the upper 12 bits
// of a double, without branches, so that the cost is bounded for any data. The 52 bits of a mantissa are split:
// `cell_low` adds the lower LOW_BITS, which are 0 in a float; bits 0 to 39 of `cell_high` add the others, and its bits
// from COUNT_SHIFT on count the terms.
#define CELLS 4096
#define ROUND 64
#define MAX_SPILLS 8
#define COUNT_SHIFT 40
#define TERMS (DOT && !SINGLE ? 2 : 1)  // vectors of eight terms per tile: product and error, or number
// Vectors of eight terms before a flush: their upper bits, below 2^20 or 2^23, add up to less than 2^COUNT_SHIFT.
#define CELL_ENDURANCE 16384
#define LOW_BITS (SINGLE && !DOT ? 29 : 32)
#define HIGH_MASK ((1ul << (52 - LOW_BITS)) - 1)
#define CELL_TERM(term)                                                             \
    {                                                                               \
        double numbers[WIDTH];                                                      \
        vstore8(term, 0, numbers);                                                  \
        if (any_outside(term, 0.0, 0x1.fffffffffffffp1023)) {                       \
            for (int i = 0; i < WIDTH; i++) {                                       \
                if (isfinite(numbers[i])) continue;                                 \
                add_double(limbs, flags, numbers[i]);                               \
                numbers[i] = -0.0;                                                  \
            }                                                                       \
        }                                                                           \
        UNROLL for (int i = 0; i < WIDTH; i++) {                                    \
            ulong bits = as_ulong(numbers[i]);                                      \
            uint cell = (uint)(bits >> 52);                                         \
            cell_high[cell] += (bits >> LOW_BITS & HIGH_MASK) | 1ul << COUNT_SHIFT; \
            if (LOW_BITS == 32) cell_low[cell] += bits & 0xfffffffful;              \
        }                                                                           \
    }
// Adds the cells, sums by exponent and sign, to the limbs of the group, and clears them.
DEVICE_NOINLINE void flush_cells(ulong *cell_high, ulong *cell_low, LOCAL uint *limbs, LOCAL uint *flags) {
    for (uint cell = 0; cell < CELLS; cell++) {
        if (!cell_high[cell]) continue;
        uint biased = cell & 0x7ffu;
        bool negative = cell >= 0x800;
        int exponent = (int)max(biased, 1u) - 1075;
        ulong upper_bits = cell_high[cell] & ((1ul << COUNT_SHIFT) - 1), number = cell_high[cell] >> COUNT_SHIFT;
        if (biased) add_integer(limbs, number, exponent + 52, negative);  // the leading ones, which are not stored
        add_integer(limbs, upper_bits, exponent + LOW_BITS, negative);
        add_integer(limbs, cell_low[cell], exponent, negative);
        bool is_negative_zero = cell == 0x800 && !upper_bits && !cell_low[cell];
        if (!is_negative_zero) atomic_or(flags, FLAG_NOT_NEGATIVE_ZERO);
        cell_high[cell] = cell_low[cell] = 0;
    }
}
#define ADD_ANY_TERM(term)                                 \
    {                                                      \
        if (use_cells) CELL_TERM(term) else ADD_TERM(term) \
    }
// At the end of each ROUND tiles: switches from expansions to cells if too many spilled, or flushes full cells.
#define MAYBE_SWITCH                                                                        \
    if (tile % ROUND == 0) {                                                                \
        if (!use_cells && spills > MAX_SPILLS) {                                            \
            use_cells = true;                                                               \
            for (uint cell = 0; cell < CELLS; cell++) cell_high[cell] = cell_low[cell] = 0; \
        } else if (use_cells) {                                                             \
            deposits += ROUND * TERMS;                                                      \
            if (deposits > CELL_ENDURANCE - ROUND * TERMS) {                                \
                flush_cells(cell_high, cell_low, limbs, &flags[0]);                         \
                deposits = 0;                                                               \
            }                                                                               \
        }                                                                                   \
        spills = 0;                                                                         \
    }
#else
#define ADD_ANY_TERM(term) ADD_TERM(term)
#define MAYBE_SWITCH
#endif

#include "numerics/spill_products.h"

// Tiles that are loaded ahead. A float is half as long as a double, so two loads must be in flight: then `next` is the
// following tile and `after` the one behind it; else both are the following tile.
#define PREFETCH_DISTANCE (SINGLE ? 2 : 1)

KERNEL_MIN_GROUPS(EXACT_MIN_GROUPS_PER_SM)
sum_exact(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_per_group,
          GLOBAL uint *out) {
    y += y_start;
    GROUP_LIMBS;  // declares `limbs` and `flags`
    CLEAR_LIMBS;
    BARRIER();
    double8 sums = SPLAT(double8, -0.0);
#if SINGLE
    LOCAL_ARRAY(double, sums_low_local, GROUP_SIZE *WIDTH);
    vstore8(SPLAT(double8, 0.0), local_index(), sums_low_local);
#else
    double8 sums_low = SPLAT(double8, 0.0);
#endif
    ulong tile = FIRST_TILE, end = END_TILE, full_end = min(end, count / TILE);
    uint spills = 0;
#if BLOCKED_ARRANGEMENT
    ulong cell_high[CELLS], cell_low[CELLS];
    uint deposits = 0;
    bool use_cells = false;
#endif
#if !DOT
    if (tile < full_end) {
        VECTOR8 next = load_full_tile(x, tile), after = load_full_tile(x, min(tile + 1, full_end - 1));
        for (; tile < full_end; tile++) {
            double8 term = MAGNITUDE(convert_double8(next));
            if (PREFETCH_DISTANCE == 2) next = after;
            after = load_full_tile(x, min(tile + PREFETCH_DISTANCE, full_end - 1));
            if (PREFETCH_DISTANCE == 1) next = after;
            ADD_ANY_TERM(term)
            MAYBE_SWITCH
        }
    }
#endif
    for (; tile < end; tile++) {
        double8 term = convert_double8(load_partial_tile(x, tile, count)), factor = term;
        if (DOT) factor = convert_double8(load_partial_factors(y, tile, count));
#if DOT && !SINGLE
        double8 product = term * factor;
        if (any_outside(product, 0x1p-960, 0x1p1000)) {  // also zero: the product or its error may be no double
            double xs[WIDTH], ys[WIDTH];
            vstore8(term, 0, xs);
            vstore8(factor, 0, ys);
            spill_products(xs, ys, limbs, &flags[0]);
        } else {
            double8 product_error = fma(term, factor, SPLAT(double8, 0.0) - product);  // double8 has no unary minus
            ADD_ANY_TERM(product)
            ADD_ANY_TERM(product_error)
        }
#else
        term = DOT ? term * factor : MAGNITUDE(term);  // products of floats have 48 bits: no rounding
        ADD_ANY_TERM(term)
#endif
        MAYBE_SWITCH
    }
#if BLOCKED_ARRANGEMENT
    if (use_cells) flush_cells(cell_high, cell_low, limbs, &flags[0]);
#endif
    double parts[WIDTH];  // first `sums`, which are -0 if all terms were; then `sums_low`, whose zeros are no terms
    vstore8(sums, 0, parts);
    for (int i = 0; i < WIDTH; i++) add_double(limbs, flags, parts[i]);
#if SINGLE
    vstore8(vload8(local_index(), sums_low_local), 0, parts);
#else
    vstore8(sums_low, 0, parts);
#endif
    for (int i = 0; i < WIDTH; i++)
        if (parts[i] != 0) add_double(limbs, flags, parts[i]);
    BARRIER();
    MERGE_LIMBS(out);
}
