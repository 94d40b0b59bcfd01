// Exact sums of doubles of any exponents on GPUs: what sum_exact.cu leaves. Constants: see sum_tiles.h,
// superaccumulator.h; the same grid as sum_exact.cu's, whose warps say at out[RESUME] how many tiles they have done.
//
// Small superaccumulator (R. Neal, Fast exact summation using small and large superaccumulators, 2015): a thread has
// CHUNKS signed integers of 64 bits in local memory, of weight 2^(32 c - 1074). A number adds 32 bits of its mantissa to
// one and the others, below 2^53, to the next: two loads and two stores for any data. Carries are propagated before
// 2^10 numbers could overflow a chunk.
#include "numerics/superaccumulator.h"
#include "numerics/sum_tiles.h"
#include "numerics/spill_products.h"

#define CHUNKS 66
#define MAX_ADDITIONS 1000
#define THREADS_PER_CHUNK (GROUP_SIZE / CHUNKS)
#define CHUNK(c) chunks[(c) * GROUP_SIZE + local_index()]

#define ADD_BIN(number)                                                                                     \
    {                                                                                                       \
        ulong bits = as_ulong(number), mantissa = bits & 0xffffffffffffful;                                 \
        uint biased = (uint)(bits >> 52) & 0x7ffu;                                                          \
        if (biased == 0x7ffu) {                                                                             \
            ADD_DOUBLE(limbs, flags[0], number)                                                             \
        } else {                                                                                            \
            if (biased) mantissa |= 0x10000000000000ul;                                                     \
            uint position = biased ? biased - 1 : 0, shift = position & 31u;                                \
            long low = (long)((mantissa << shift) & 0xfffffffful), high = (long)(mantissa >> (32 - shift)); \
            bool minus = bits >> 63 != 0;                                                                   \
            position >>= 5;                                                                                 \
            CHUNK(position) += minus ? -low : low;                                                          \
            CHUNK(position + 1) += minus ? -high : high;                                                    \
            not_negative_zero |= bits != 0x8000000000000000ul;                                              \
        }                                                                                                   \
    }
// The chunks but the highest lie in 0 .. 2^32 - 1 then.
#define PROPAGATE                                      \
    for (uint c = 0; c + 1 < CHUNKS; c++) {            \
        long value = CHUNK(c), carry = value >> 32;    \
        CHUNK(c) = value - (long)((ulong)carry << 32); \
        CHUNK(c + 1) += carry;                         \
    }
DEVICE_NOINLINE void add_units(long units, int exponent, LOCAL uint *limbs) {
    bool negative = units < 0;
    ulong size = negative ? 0ul - (ulong)units : (ulong)units;
    ADD_INTEGER(limbs, size, exponent, negative)
}

KERNEL sum_bins(GLOBAL const double *x, GLOBAL const double *y, ulong y_start, ulong count, ulong tiles_per_group,
                GLOBAL uint *out) {
    y += y_start;
    LARGE_LOCAL_ARRAY(long, chunks, CHUNKS *GROUP_SIZE);
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS);
    LOCAL_ARRAY(uint, flags, 2);  // of the superaccumulator; whether any warp has tiles left
    ulong tile = FIRST_TILE + out[RESUME(group_index(), local_index() / 32)], end = END_TILE;
    if (local_index() < 2) flags[local_index()] = 0;
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0;
    BARRIER();
    if (tile < end) atomic_or(&flags[1], 1u);
    BARRIER();
    if (!flags[1]) return;  // the whole group
    for (uint c = 0; c < CHUNKS; c++) CHUNK(c) = 0;
    bool not_negative_zero = false;
    uint additions = 0;
    VECTOR8 next = load_partial_tile(x, min(tile, end - 1), count);
    for (; tile < end; tile++) {
        double numbers[WIDTH];
        vstore8(next, 0, numbers);
        next = load_partial_tile(x, min(tile + 1, end - 1), count);
#if DOT
        double factors[WIDTH], products[WIDTH];
        vstore8(load_partial_tile(y, tile, count), 0, factors);
        bool usual = true;
        UNROLL for (int i = 0; i < WIDTH; i++) {
            products[i] = numbers[i] * factors[i];
            usual = usual && fabs(products[i]) >= 0x1p-960 && fabs(products[i]) < 0x1p1000;
        }
        if (!usual) {
            spill_products(numbers, factors, limbs, &flags[0]);
            continue;
        }
        UNROLL for (int i = 0; i < WIDTH; i++) {
            ADD_BIN(products[i])
            double lost = fma(numbers[i], factors[i], -products[i]);
            ADD_BIN(lost)
        }
        additions += 2 * WIDTH;
#else
        UNROLL for (int i = 0; i < WIDTH; i++) {
            double number = MAGNITUDE(numbers[i]);
            ADD_BIN(number)
        }
        additions += WIDTH;
#endif
        if (additions > MAX_ADDITIONS - 2 * WIDTH) {
            PROPAGATE
            additions = 0;
        }
    }
    PROPAGATE
    if (not_negative_zero) atomic_or(&flags[0], FLAG_NOT_NEGATIVE_ZERO);
    BARRIER();
    uint chunk = local_index() % CHUNKS, part = local_index() / CHUNKS;
    if (part < THREADS_PER_CHUNK) {  // neighbors begin at different threads' chunks, in different banks
        long units = 0;
        for (uint i = part; i < GROUP_SIZE; i += THREADS_PER_CHUNK)
            units += chunks[chunk * GROUP_SIZE + (i + chunk) % GROUP_SIZE];
        add_units(units, 32 * (int)chunk - 1074, limbs);
    }
    BARRIER();
    MERGE_LIMBS(limbs, out)
    if (local_index() == 0 && flags[0]) atomic_or(&out[2 * LIMBS], flags[0]);
}
