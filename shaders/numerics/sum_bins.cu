// Exact sums of doubles and of products on GPUs, at the speed of the memory for any exponents; launched by
// renderer/numerics/sums/device_sums.py. In and out, and macros: see sum_tiles.h, superaccumulator.h.
//
// Small superaccumulator (R. Neal, Fast exact summation using small and large superaccumulators, 2015): a thread has
// CHUNKS signed 64-bit integers in local memory; chunk c has the weight 2^(32 c - 1075). A number adds the low 32 bits
// of its shifted mantissa to one chunk and the remaining bits, below 2^53, to the next, in two's complement: two loads,
// two stores and about 40 integer instructions for any data. Carries are propagated before 2^11 numbers could overflow
// a chunk. One group fills the local memory of a multiprocessor, so there are as many groups as multiprocessors.
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"
#include "numerics/spill_products.h"

#define CHUNKS 66  // 64 for the exponents of doubles, one for the upper bits of the highest, one for its carries
#define AHEAD (SINGLE ? 4 : 2)  // tiles that are loaded ahead
#define MAX_ADDITIONS 2000  // between two propagations of carries, below 2^11
#define THREADS_PER_CHUNK (GROUP_SIZE / CHUNKS)  // that add a chunk of all threads at the end
// Chunk c of a thread. `column` points to its chunk 0; neighboring threads have neighboring columns.
#define CHUNK(c) column[(c) * GROUP_SIZE]
// The upper word of a double without its sign, and its least value for infinity and NaN.
#define HIGH_WORD(number) ((uint)(as_ulong(number) >> 32) & 0x7fffffffu)
#define NOT_FINITE 0x7ff00000u

// Adds a finite double m 2^(e - 1075), with an integer mantissa m and a biased exponent e, to the thread's chunks: m is
// shifted left by e % 32 and added to chunks e / 32 and e / 32 + 1.
DEVICE void deposit(double number, LOCAL long *column) {
    uint high = (uint)(as_ulong(number) >> 32), low = (uint)as_ulong(number);
    uint shift = high >> 20, implicit = 0x100000u;  // e, and the leading 1 of m
    if (!(high & NOT_FINITE)) shift = 1, implicit = 0;  // subnormal, or zero
    shift &= 31u;
    long mantissa = (long)((ulong)((high & 0xfffffu) | implicit) << 32 | low), sign = (long)((int)high >> 31);
    mantissa = (mantissa ^ sign) - sign;  // negated if the sign, 0 or -1, is -1
    uint lower = (uint)mantissa, upper = (uint)((ulong)mantissa >> 32), extension = (uint)((int)upper >> 31);
    LOCAL long *chunk = column + (high >> 25 & 63u) * GROUP_SIZE;  // e / 32
    // The 96 bits of `extension`, `upper`, `lower`, shifted: the lowest 32 here, the others in the next chunk.
    chunk[0] += (long)(ulong)(lower << shift);
    chunk[GROUP_SIZE] +=
        (long)((ulong)funnel_shift_left(upper, extension, shift) << 32 | funnel_shift_left(lower, upper, shift));
}
// deposit() for WIDTH numbers that may be NaN or infinite, which set a flag instead.
DEVICE_NOINLINE void deposit_unusual(const double *numbers, LOCAL long *column, LOCAL uint *limbs, LOCAL uint *flags) {
    for (int i = 0; i < WIDTH; i++) {
        if (HIGH_WORD(numbers[i]) < NOT_FINITE)
            deposit(numbers[i], column);
        else
            add_double(limbs, flags, numbers[i]);
    }
}
#if DOT && !SINGLE
// Usual: the product and its rounding error are doubles. Zero: both are 0, since a factor is 0 and the other is finite.
#define IS_USUAL(product) (fabs(product) >= 0x1p-960 && fabs(product) < 0x1p1000)
#define IS_ZERO(x, y, product) ((product) == 0 && ((x) == 0 || (y) == 0))
// Adds WIDTH exact products x y, each as the rounded product and its rounding error (TwoProduct) or, where that is not
// exact or not finite, by spill_product.
DEVICE_NOINLINE void deposit_unusual_products(const double *x, const double *y, LOCAL long *column, LOCAL uint *limbs,
                                              LOCAL uint *flags) {
    for (int i = 0; i < WIDTH; i++) {
        double product = x[i] * y[i];
        if (IS_USUAL(product) || IS_ZERO(x[i], y[i], product)) {
            deposit(product, column);
            deposit(fma(x[i], y[i], -product), column);
        } else {
            spill_product(x[i], y[i], limbs, flags);
        }
    }
}
#endif

// Afterwards all chunks but the highest are in 0 .. 2^32 - 1.
DEVICE void propagate_carries(LOCAL long *column) {
    for (uint c = 0; c + 1 < CHUNKS; c++) {
        long value = CHUNK(c), carry = value >> 32;
        CHUNK(c) = value - (long)((ulong)carry << 32);
        CHUNK(c + 1) += carry;
    }
}

// True if any of WIDTH numbers is not -0.
DEVICE bool any_not_negative_zero(const double *numbers) {
    bool found = false;
    UNROLL for (int i = 0; i < WIDTH; i++) found |= as_ulong(numbers[i]) != 0x8000000000000000ul;
    return found;
}

#if DOT && !SINGLE
#define TERMS 2  // deposits per number
#else
#define TERMS 1
#endif
// Adds a thread's WIDTH numbers `x` of a tile; with DOT the products of `x` and `y`. Rare numbers are copied to
// further arrays: arrays that are passed to a function are in memory, and the usual ones shall stay in registers.
DEVICE void add_tile(VECTOR8 x, VECTOR8 y, LOCAL long *column, LOCAL uint *limbs, LOCAL uint *flags,
                     bool *not_negative_zero) {
#if DOT && !SINGLE
    double xs[WIDTH], ys[WIDTH], products[WIDTH];
    bool usual = true;
    vstore8(x, 0, xs);
    vstore8(y, 0, ys);
    UNROLL for (int i = 0; i < WIDTH; i++) {
        products[i] = xs[i] * ys[i];
        usual = usual && IS_USUAL(products[i]);
    }
    if (!usual) {  // zeros are tested apart, so that other tiles pay for one test
        usual = true;
        UNROLL for (int i = 0; i < WIDTH; i++) usual =
            usual && (IS_USUAL(products[i]) || IS_ZERO(xs[i], ys[i], products[i]));
    }
    if (!*not_negative_zero) *not_negative_zero = any_not_negative_zero(products);
    if (usual) {
        UNROLL for (int i = 0; i < WIDTH; i++) {
            deposit(products[i], column);
            deposit(fma(xs[i], ys[i], -products[i]), column);
        }
    } else {
        double unusual[WIDTH], factors[WIDTH];
        UNROLL for (int i = 0; i < WIDTH; i++) unusual[i] = xs[i], factors[i] = ys[i];
        deposit_unusual_products(unusual, factors, column, limbs, flags);
    }
#else
    double numbers[WIDTH], factors[WIDTH];
    uint highest = 0;
    vstore8(convert_double8(x), 0, numbers);
    vstore8(convert_double8(y), 0, factors);
    UNROLL for (int i = 0; i < WIDTH; i++) {
        numbers[i] = DOT ? numbers[i] * factors[i] : MAGNITUDE(numbers[i]);  // products of floats are exact
        highest = max(highest, HIGH_WORD(numbers[i]));
    }
    if (!*not_negative_zero) *not_negative_zero = any_not_negative_zero(numbers);
    if (highest < NOT_FINITE) {
        UNROLL for (int i = 0; i < WIDTH; i++) deposit(numbers[i], column);
    } else {
        double unusual[WIDTH];
        UNROLL for (int i = 0; i < WIDTH; i++) unusual[i] = numbers[i];
        deposit_unusual(unusual, column, limbs, flags);
    }
#endif
}

// Counts the additions of `tiles` tiles, and propagates carries if the next AHEAD tiles could exceed MAX_ADDITIONS.
DEVICE void count_additions(uint tiles, uint *additions, LOCAL long *column) {
    *additions += tiles * WIDTH * TERMS;
    if (*additions > MAX_ADDITIONS - AHEAD * WIDTH * TERMS) {
        propagate_carries(column);
        *additions = 0;
    }
}

// One group sums the tiles from group_index() * tiles_per_group on: each thread fills its chunks, a column of `chunks`;
// then THREADS_PER_CHUNK threads per chunk add that chunk of all threads to the group's limbs, which go to `out`.
KERNEL sum_bins(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_per_group,
                GLOBAL uint *out) {
    y += y_start;
    LARGE_LOCAL_ARRAY(long, chunks, CHUNKS *GROUP_SIZE);
    GROUP_LIMBS;  // declares `limbs` and `flags`
    LOCAL long *column = chunks + local_index();
    ulong tile = FIRST_TILE, end = END_TILE, full_end = min(end, count / TILE);
    CLEAR_LIMBS;
    for (uint c = 0; c < CHUNKS; c++) CHUNK(c) = 0;
    BARRIER();
    bool not_negative_zero = false;
    uint additions = 0;
    if (tile + AHEAD <= full_end) {
        VECTOR8 next[AHEAD], next_y[AHEAD];
        UNROLL for (int a = 0; a < AHEAD; a++) {
            next[a] = load_full_tile(x, tile + a);
            if (DOT) next_y[a] = load_full_tile(y, tile + a);
        }
        for (; tile + AHEAD <= full_end; tile += AHEAD) {
            UNROLL for (int a = 0; a < AHEAD; a++) {
                VECTOR8 now = next[a], now_y = next_y[a];
                ulong later = min(tile + AHEAD + a, full_end - 1);  // the last loads are not used
                next[a] = load_full_tile(x, later);
                if (DOT) next_y[a] = load_full_tile(y, later);
                add_tile(now, now_y, column, limbs, flags, &not_negative_zero);
            }
            count_additions(AHEAD, &additions, column);
        }
    }
    for (; tile < end; tile++) {
        VECTOR8 now = load_partial_tile(x, tile, count), now_y = now;
        if (DOT) now_y = load_partial_factors(y, tile, count);
        add_tile(now, now_y, column, limbs, flags, &not_negative_zero);
        count_additions(1, &additions, column);
    }
    propagate_carries(column);
    if (not_negative_zero) atomic_or(&flags[0], FLAG_NOT_NEGATIVE_ZERO);
    BARRIER();
    uint chunk = local_index() % CHUNKS, part = local_index() / CHUNKS;
    if (part < THREADS_PER_CHUNK) {  // neighboring threads begin with chunks of different threads, in different banks
        long units = 0;
        for (uint i = part; i < GROUP_SIZE; i += THREADS_PER_CHUNK)
            units += chunks[chunk * GROUP_SIZE + (i + chunk) % GROUP_SIZE];
        add_units(limbs, units, 32 * (int)chunk - 1075);
    }
    BARRIER();
    MERGE_LIMBS(out);
}
