#include "accumulator.h"
#include "sums.h"

#define LIMB_TYPE LOCAL uint
// Exact, for floats on processors of many lanes. A running double takes every float of WINDOW successive exponents without a
// rounding, LONGEST_SUM times: floats of 24 bits times 2^20 in size times 2^10 in number are 54 bits less one. So one test of
// the smallest and the largest of eight takes the place of eight error-free additions. What lies outside goes by error-free
// additions to two doubles in local memory (`spare`) and on to the limbs; after MOST_MISSES tiles with such numbers the
// window moves to where the numbers are. Sizes of floats are compared by their bits, shifted left by one: without the sign.
#define WINDOW (20u << 24)
#define LONGEST_SUM 1023u
#define MOST_MISSES 16u
#define NOT_FINITE 0xff000000u
#define LOW_FOR(highest) ((min(max((highest) >> 24, 17u), 252u) - 17u) << 24)  // two binades above the highest, 17 below
#define SPARE(level, i) spare[((level) * WIDTH + (i)) * GROUP_SIZE + local_index()]

// What two doubles could not keep, and numbers that are not finite, to the limbs.
DEVICE_NOINLINE void leave_outside(const float *numbers, const double *rests, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (int i = 0; i < WIDTH; i++) {
        double number = numbers[i];
        if (isfinite(number)) {
            if (rests[i] != 0) ADD_DOUBLE(limbs, *flags, rests[i])
        } else
            ADD_DOUBLE(limbs, *flags, number)
    }
}

// Sums of numbers of a window, to the limbs: multiples of the window's last bit below 2^54 of it, added up as integers.
DEVICE_NOINLINE void leave_sums(const double *sums, uint low, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    int exponent = (int)max(low >> 24, 1u) - 150;
    double scale = as_double((ulong)(1023 - exponent) << 52);
    long units = 0;
    bool told = false;
    for (int i = 0; i < WIDTH; i++) {
        units += (long)(sums[i] * scale);
        told |= as_ulong(sums[i]) != 0x8000000000000000ul;
    }
    bool negative = units < 0;
    ulong size = negative ? 0ul - (ulong)units : (ulong)units;
    ADD_INTEGER(limbs, size, exponent, negative)
    if (told) atomic_or(flags, FLAG_NOT_MINUS_ZERO);
}
DEVICE_NOINLINE void leave_doubles(const double *sums, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (int i = 0; i < WIDTH; i++)
        if (sums[i] != 0) ADD_DOUBLE(limbs, *flags, sums[i])
}
#define LEAVE_SUMS                                                                                                     \
    {                                                                                                                  \
        double left[WIDTH];                                                                                            \
        UNROLL for (int i = 0; i < WIDTH; i++) { left[i] = sums[i]; sums[i] = -0.0; }                                  \
        leave_sums(left, low, limbs, &flags[0]);                                                                       \
        run = 0;                                                                                                       \
    }
// total + term, and what of the term is lost, which becomes the term.
#define ADD_ERROR_FREE(total, term)                                                                                    \
    {                                                                                                                  \
        double old = total, raised = old + term, part = raised - old;                                                  \
        term = (old - (raised - part)) + (term - part);                                                                \
        total = raised;                                                                                                \
    }
#define ADD_OUTSIDE(numbers)                                                                                           \
    {                                                                                                                  \
        double rests[WIDTH];                                                                                           \
        bool more = false;                                                                                             \
        UNROLL for (int i = 0; i < WIDTH; i++) {                                                                       \
            rests[i] = isfinite(numbers[i]) ? (double)numbers[i] : 0.0;                                                \
            ADD_ERROR_FREE(SPARE(0, i), rests[i])                                                                      \
            more |= rests[i] != 0 || !isfinite(numbers[i]);                                                            \
        }                                                                                                              \
        if (more) {                                                                                                    \
            more = false;                                                                                              \
            UNROLL for (int i = 0; i < WIDTH; i++) {                                                                   \
                ADD_ERROR_FREE(SPARE(1, i), rests[i])                                                                  \
                more |= rests[i] != 0 || !isfinite(numbers[i]);                                                        \
            }                                                                                                          \
            if (more) leave_outside(numbers, rests, limbs, &flags[0]);                                                 \
        }                                                                                                              \
    }
#define ADD_TILE(raw)                                                                                                  \
    {                                                                                                                  \
        float numbers[WIDTH];                                                                                          \
        vstore8(raw, 0, numbers);                                                                                      \
        uint highest = 0, lowest = 0xffffffffu; /* a zero is no lowest: one less, it is the largest there is */        \
        UNROLL for (int i = 0; i < WIDTH; i++) {                                                                       \
            uint bits = 2 * as_uint(numbers[i]);                                                                       \
            highest = max(highest, bits);                                                                              \
            lowest = min(lowest, bits - 1);                                                                            \
        }                                                                                                              \
        if (highest >= low + WINDOW || (lowest < low - 1 && low)) {                                                    \
            bool moves = ++misses >= MOST_MISSES && highest < NOT_FINITE;                                              \
            if (moves) {                                                                                               \
                misses = 0;                                                                                            \
                LEAVE_SUMS                                                                                             \
                low = LOW_FOR(highest);                                                                                \
            }                                                                                                          \
            float outside[WIDTH];                                                                                      \
            UNROLL for (int i = 0; i < WIDTH; i++) {                                                                   \
                uint bits = 2 * as_uint(numbers[i]);                                                                   \
                bool inside = bits - low < WINDOW || bits == 0;                                                        \
                outside[i] = inside ? 0.0f : MAGNITUDE(numbers[i]);                                                    \
                numbers[i] = inside ? numbers[i] : -0.0f;                                                              \
            }                                                                                                          \
            missed = true;                                                                                             \
            UNROLL for (int i = 0; i < WIDTH; i++) any_finite |= outside[i] != 0 && isfinite(outside[i]);              \
            ADD_OUTSIDE(outside)                                                                                       \
        }                                                                                                              \
        UNROLL for (int i = 0; i < WIDTH; i++) sums[i] += (double)MAGNITUDE(numbers[i]);                               \
        if (++run >= LONGEST_SUM) LEAVE_SUMS                                                                           \
    }

KERNEL_RESIDENT(EXACT_RESIDENT) exact(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count,
                                      ulong tiles_each, GLOBAL uint *out) {
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS);
    LOCAL_ARRAY(uint, flags, 1);
    LOCAL_ARRAY(double, spare, 2 * GROUP_SIZE *WIDTH);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0;
    for (uint i = local_index(); i < 2 * GROUP_SIZE * WIDTH; i += GROUP_SIZE) spare[i] = 0.0;
    if (local_index() == 0) flags[0] = 0;
    BARRIER();
    double sums[WIDTH];
    UNROLL for (int i = 0; i < WIDTH; i++) sums[i] = -0.0;
    uint low = 0, misses = 0, run = 0, first_highest = 0;
    bool missed = false, any_finite = false;  // whether some number lay outside, and a finite one
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
    float firsts[WIDTH];
    vstore8(load(x, tile, count), 0, firsts);
    UNROLL for (int i = 0; i < WIDTH; i++) first_highest = max(first_highest, 2 * as_uint(firsts[i]));
    low = LOW_FOR(first_highest < NOT_FINITE && first_highest ? first_highest : 127u << 24);
    for (; tile + 4 <= whole; tile += 4) {  // four loads in flight
        RAW a = load_whole(x, tile), b = load_whole(x, tile + 1), c = load_whole(x, tile + 2), d = load_whole(x, tile + 3);
        ADD_TILE(a)
        ADD_TILE(b)
        ADD_TILE(c)
        ADD_TILE(d)
    }
    for (; tile < last; tile++) {
        RAW a = load(x, tile, count);
        ADD_TILE(a)
    }
    LEAVE_SUMS
    if (missed) {
        for (int level = 0; level < 2; level++) {
            UNROLL for (int i = 0; i < WIDTH; i++) sums[i] = SPARE(level, i);
            leave_doubles(sums, limbs, &flags[0]);
        }
        atomic_or(&flags[0], any_finite ? FLAG_NOT_MINUS_ZERO : 0);
    }
    BARRIER();
    MERGE_LIMBS(limbs, out)
    if (local_index() == 0 && flags[0]) atomic_or(&out[2 * LIMBS], flags[0]);
}
