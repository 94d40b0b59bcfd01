// Sampling of a piecewise constant pdf by its CDF and a guide table (H. Chen and Y. Asau 1974), which
// renderer/raytracing/lights/environment.py makes; used by environment.h. CDFs and random numbers are uint32 fractions
// in units of 2^-32. A guide table holds, for each value of the leading bits of u, the entry at which the search
// starts. Compiled for one lane (`real` is float, `mask` bool) and, on CPUs, again for eight (float8, int8;
// packets/lanes8.h).
#include "common/simd.h"

#if LANES == 1
// Returns the number of leading bits of `u` that index the guide table of a CDF of `count` entries.
DEVICE uint guide_bits(int count) { return 32u - (uint)clz(count); }
#endif

// Returns 16-bit entry `i` of the guide tables that begin at `words`.
DEVICE whole guide_entry(GLOBAL const uint *words, whole i) {
#if LANES == 1
    return (int)((GLOBAL const ushort *)words)[i];
#else  // gathers load words
    bits word = GATHER_WORDS(words, i >> 1);
    return whole_of_bits(word >> bits_of_whole((i & 1) << 4) & 0xffffu);
#endif
}

// Samples an entry of a CDF of `count` entries by u, and returns its index. The CDF begins at words[cdf], its guide
// table at 16-bit entry `guide` of `words`. *remapped_u becomes the position of u within the entry, 0 to 1, and *width
// the entry's probability in units of 2^-32.
DEVICE whole sample_cdf(GLOBAL const uint *words, whole cdf, whole guide, int count, bits u, real *remapped_u,
                        bits *width) {
    whole bucket = guide + whole_of_bits(u >> (32u - guide_bits(count)));
    whole high = guide_entry(words, bucket), low = bucket > guide ? guide_entry(words, bucket - 1) : 0;
    while (ANY_LANE(low < high)) {
        whole middle = (low + high + 1) >> 1;
        mask is_above = GATHER_WORDS(words, cdf + middle) <= u;
        // Selects, because branches would be mispredicted. In lanes that are done, middle is low, and low stays.
        low = is_above ? middle : low;
        high = is_above ? high : middle - 1;
    }
    bits begin = GATHER_WORDS(words, cdf + low);
    *width = GATHER_WORDS(words, cdf + low + 1) - begin;
    *remapped_u = min_nnan(real_of(u - begin) / max_nnan(real_of(*width), 1.0f), 0.9999999f);
    return low;
}
