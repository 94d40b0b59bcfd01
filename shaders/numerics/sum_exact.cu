// Exact sums of floating-point numbers and of their products. Constants: see numerics/sum_tiles.h, numerics/superaccumulator.h.
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"

// Expansions: each lane keeps an expansion of LEVELS doubles by error-free additions (Knuth); what it cannot hold, and what is not
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
#if CONTIGUOUS
#define MISS misses++;
#else
#define MISS
#endif
#if LEVELS == 1
#define ADD_TERM(term)                                                                                                 \
    {                                                                                                                  \
        double8 sums_old = sums, error;                                                                                \
        TWO_SUM(sums, term, error)                                                                                     \
        if (any_nonzero(error)) {                                                                                      \
            MISS                                                                                                       \
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
        if (any_nonzero(error)) {                                                                                      \
            MISS                                                                                                       \
            RESCUE(term)                                                                                               \
        }                                                                                                              \
    }
#endif

#if CONTIGUOUS
// Cells: where the last ROUND tiles had many terms that expansions do not hold, a processor's work item adds the mantissas of
// the rest to a cell for each sign and exponent, without a branch, so that no data are slow (after Neal's large
// superaccumulator). `heads` counts the terms of a cell above 2^40, below which it adds the first bits of mantissas; `tails`
// adds the last 32 bits, which a float does not have.
#define CELLS 4096
#define ROUND 64
#define MOST_MISSES 8
#define COUNTED 40
#define LONGEST_RUN 16384  // tiles of eight terms, whose heads of 23 bits sum up below 2^COUNTED
#if SINGLE && !DOT
#define TAIL_BITS 29
#else
#define TAIL_BITS 32
#endif
#define HEAD_MASK ((1ul << (52 - TAIL_BITS)) - 1)
#define CELL_TERM(term)                                                                                                \
    {                                                                                                                  \
        double numbers[WIDTH];                                                                                         \
        vstore8(term, 0, numbers);                                                                                     \
        if (any_outside(term, 0.0, 0x1.fffffffffffffp1023)) {                                                          \
            for (int i = 0; i < WIDTH; i++) {                                                                          \
                if (isfinite(numbers[i])) continue;                                                                    \
                ADD_DOUBLE(limbs, flags[0], numbers[i])                                                                \
                numbers[i] = -0.0;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL for (int i = 0; i < WIDTH; i++) {                                                                       \
            ulong bits = as_ulong(numbers[i]);                                                                         \
            uint cell = (uint)(bits >> 52);                                                                            \
            heads[cell] += (bits >> TAIL_BITS & HEAD_MASK) | 1ul << COUNTED;                                           \
            if (TAIL_BITS == 32) tails[cell] += bits & 0xfffffffful;                                                   \
        }                                                                                                              \
    }
DEVICE_NOINLINE void empty_cells(ulong *heads, ulong *tails, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (uint cell = 0; cell < CELLS; cell++) {
        if (!heads[cell]) continue;
        uint biased = cell & 0x7ffu;
        bool negative = cell >= 0x800;
        int exponent = (int)max(biased, 1u) - 1075;
        ulong head = heads[cell] & ((1ul << COUNTED) - 1), number = heads[cell] >> COUNTED;
        if (biased) ADD_INTEGER(limbs, number, exponent + 52, negative)
        ADD_INTEGER(limbs, head, exponent + TAIL_BITS, negative)
        ADD_INTEGER(limbs, tails[cell], exponent, negative)
        if (cell != 0x800 || head || tails[cell]) atomic_or(flags, FLAG_NOT_MINUS_ZERO);
        heads[cell] = tails[cell] = 0;
    }
}
#define TAKE_TERM(term) { if (crowded) CELL_TERM(term) else ADD_TERM(term) }
#define JUDGE                                                                                                          \
    if (tile % ROUND == 0) {                                                                                           \
        if (!crowded && misses > MOST_MISSES) {                                                                        \
            crowded = true;                                                                                            \
            for (uint cell = 0; cell < CELLS; cell++) heads[cell] = tails[cell] = 0;                                   \
        } else if (crowded && (held += ROUND * TERMS) > LONGEST_RUN - ROUND * TERMS) {                                 \
            empty_cells(heads, tails, limbs, &flags[0]);                                                               \
            held = 0;                                                                                                  \
        }                                                                                                              \
        misses = 0;                                                                                                    \
    }
#define TERMS (DOT && !SINGLE ? 2 : 1)  // of a tile
#else
#define TAKE_TERM(term) ADD_TERM(term)
#define JUDGE
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
#if CONTIGUOUS
    ulong heads[CELLS], tails[CELLS];
    uint misses = 0, held = 0;
    bool crowded = false;
#endif
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
            TAKE_TERM(term)
            JUDGE
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
        TAKE_TERM(term)
#elif DOT
        double8 head = term * factor;
        if (any_outside(head, 0x1p-960, 0x1p1000)) {
            double xs[WIDTH], ys[WIDTH];
            vstore8(term, 0, xs);
            vstore8(factor, 0, ys);
            rescue_products(xs, ys, limbs, &flags[0]);
        } else {
            double8 tail = fma(term, factor, SPLAT(double8, 0.0) - head);
            TAKE_TERM(head)
            TAKE_TERM(tail)
        }
#else
        term = MAGNITUDE(term);
        TAKE_TERM(term)
#endif
        JUDGE
    }
#if CONTIGUOUS
    if (crowded) empty_cells(heads, tails, limbs, &flags[0]);
#endif
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
