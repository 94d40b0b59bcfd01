// Points of Owen-scrambled Sobol sequences without tables or state: a hash shuffles the order of the samples and scrambles each
// digit by the digits before it (B. Burley 2020, Practical Hash-based Owen Scrambling; the hash is N. Vegdahl's of 2021).
// Dimensions come in pairs, each a (0, m, 2)-net of its own in every aligned 2^m samples of a pixel; pairs are shuffled apart.
// A number depends on (seed, pixel, sample, dimension) alone. With SAMPLER 0 the numbers are independent of each other.
#include "bvh/geometry.h"
#include "common/random.h"

typedef struct {
    uint seed;    // of the pixel
    uint sample;  // its number with the bits in reverse
#if HAS_WIDE_REGISTERS
    const float *dealt;  // if not 0: what deal_samples has made for DEALT paths
#endif
} Key;  // the random numbers of one path

DEVICE Key sampler_key(uint seed, uint pixel, uint sample) {
    Key key = {mix_bits(mix_bits(seed) ^ pixel), reverse_bits(sample)};
    return key;
}

// A permutation of words in which each bit depends on itself and the bits below it: Owen's scrambling of reversed digits.
DEVICE uint scramble_upwards(uint x, uint seed) {
    x ^= x * 0x3d20adeau;
    x += seed;
    x *= (seed >> 16) | 1u;
    x ^= x * 0x05526c56u;
    x ^= x * 0x53a22864u;
    return x;
}

// The 32 bits of the sample in a dimension.
DEVICE uint sample_bits(Key key, uint dimension) {
#if SAMPLER
    uint pair = mix_bits(key.seed + (dimension >> 1) * 0x9e3779b9u);
    uint digits = reverse_bits(scramble_upwards(key.sample, pair));  // the shuffled number of the sample
    if (dimension & 1u) {  // Pascal's triangle modulo 2, Sobol's second dimension, with the digits in reverse
        digits ^= digits >> 16;
        digits ^= (digits & 0xff00ff00u) >> 8;
        digits ^= (digits & 0xf0f0f0f0u) >> 4;
        digits ^= (digits & 0xccccccccu) >> 2;
        digits ^= (digits & 0xaaaaaaaau) >> 1;
    }
    return reverse_bits(scramble_upwards(digits, mix_bits(pair ^ (0x68bc21ebu + (dimension & 1u)))));
#else
    return random_bits(mix_bits(key.seed + key.sample), dimension);
#endif
}

#if HAS_WIDE_REGISTERS
#define DEALT 32        // paths
#define DEALT_NUMBERS 6 // of the first dimensions of a depth, a row each
#define DEALT_WORD 4    // the dimension whose 32 bits are one row more
#define DEALT_ROWS (DEALT_NUMBERS + 1)

// The numbers of paths of one sample in six dimensions, the first of which is a multiple of 8: many at once in registers.
DEVICE_CALLED void deal_samples(const uint *seeds, uint sample, uint dimension, float *dealt) {
    for (uint k = 0; k < DEALT_NUMBERS; k += 2u) {  // in pairs, whose two dimensions have half of the work in common
        uint even = (dimension & ~7u) + k;
        for (uint j = 0; j < DEALT; j++) {
            Key key = {seeds[j], sample, 0};
            uint word = sample_bits(key, even);
            dealt[DEALT * k + j] = uniform_float(word);
            dealt[DEALT * k + DEALT + j] = uniform_float(sample_bits(key, even + 1u));
            if (k == DEALT_WORD) dealt[DEALT * DEALT_NUMBERS + j] = as_float(word);
        }
    }
}

DEVICE float sample_at(Key key, uint dimension) {
    uint k = dimension & 7u;
    return key.dealt && k < DEALT_NUMBERS ? key.dealt[DEALT * k] : uniform_float(sample_bits(key, dimension));
}

// The same bits as sample_bits.
DEVICE uint sample_word(Key key, uint dimension) {
    return key.dealt && (dimension & 7u) == DEALT_WORD ? as_uint(key.dealt[DEALT * DEALT_NUMBERS]) : sample_bits(key, dimension);
}
#else
DEVICE float sample_at(Key key, uint dimension) { return uniform_float(sample_bits(key, dimension)); }
#define sample_word sample_bits
#endif
