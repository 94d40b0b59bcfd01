// The sampler: get_1d(sampler, dimension) returns a path's sample value, in [0, 1). Values are Owen-scrambled Sobol
// points, computed without tables or state: a hash shuffles the order of the samples and scrambles each digit by the
// digits above it (B. Burley 2020, Practical Hash-based Owen Scrambling; the hash is N. Vegdahl's of 2021). Dimensions
// come in pairs: each pair is a (0, m, 2)-net in every aligned 2^m samples of a pixel, and pairs are shuffled
// independently. A value depends on (seed, pixel, sample, dimension) alone. With SAMPLER 0 values are independent
// pseudorandom numbers.
#include "bvh/geometry.h"
#include "common/random.h"

// The sampler of one path.
typedef struct {
    uint seed;  // the hash of the picture's seed and the pixel
    uint sample;  // the sample's index with its 32 bits reversed
#if HAS_MOVEMASK
    const float *cached;  // the path's column of the table that cache_samples fills, or 0 for none
#endif
} Sampler;

// Returns the sampler of sample number `sample` of a pixel.
DEVICE Sampler make_sampler(uint seed, uint pixel, uint sample) {
    Sampler sampler = {mix_bits(mix_bits(seed) ^ pixel), reverse_bits(sample)};
    return sampler;
}

// Permutes 32-bit words so that each bit depends on itself and the bits below it: Owen scrambling of reversed digits
// (S. Laine and T. Karras 2011).
DEVICE uint laine_karras_permutation(uint x, uint seed) {
    x ^= x * 0x3d20adeau;
    x += seed;
    x *= (seed >> 16) | 1u;
    x ^= x * 0x05526c56u;
    x ^= x * 0x53a22864u;
    return x;
}

// Returns the path's sample value in a dimension, as an integer in units of 2^-32.
DEVICE uint sample_bits(Sampler sampler, uint dimension) {
    if (!SAMPLER) return random_bits(mix_bits(sampler.seed + sampler.sample), dimension);
    uint pair = mix_bits(sampler.seed + (dimension >> 1) * 0x9e3779b9u);
    uint digits = reverse_bits(laine_karras_permutation(sampler.sample, pair));  // the shuffled index of the sample
    if (dimension & 1u) {  // Sobol's second dimension: Pascal's triangle modulo 2 times the digits, reversed
        digits ^= digits >> 16;
        digits ^= (digits & 0xff00ff00u) >> 8;
        digits ^= (digits & 0xf0f0f0f0u) >> 4;
        digits ^= (digits & 0xccccccccu) >> 2;
        digits ^= (digits & 0xaaaaaaaau) >> 1;
    }
    return reverse_bits(laine_karras_permutation(digits, mix_bits(pair ^ (0x68bc21ebu + (dimension & 1u)))));
}

#if HAS_MOVEMASK
#define CACHE_PATHS 32
#define CACHE_DIMENSIONS 6  // the first dimensions of a bounce, one row each
#define CACHE_BITS_DIMENSION 4  // the dimension whose 32 bits are cached too, in one more row
#define CACHE_ROWS (CACHE_DIMENSIONS + 1)

// Fills `cached`, CACHE_ROWS rows of CACHE_PATHS columns, with the six dimensions from `dimension` on, a multiple of 8,
// of the first `count` paths of one sample, and up to seven more: eight paths at a time, which the compiler vectorizes.
DEVICE_NOINLINE_ALWAYS void cache_samples(const uint *seeds, uint sample, uint dimension, uint count, float *cached) {
    for (uint begin = 0; begin < count; begin += 8u, seeds += 8, cached += 8)
        for (uint k = 0; k < CACHE_DIMENSIONS; k += 2u) {  // the two dimensions of a pair share half of the work
            uint even = (dimension & ~7u) + k;
            for (uint j = 0; j < 8u; j++) {
                Sampler sampler = {seeds[j], sample, 0};
                uint bits = sample_bits(sampler, even);
                cached[CACHE_PATHS * k + j] = uniform_float(bits);
                cached[CACHE_PATHS * k + CACHE_PATHS + j] = uniform_float(sample_bits(sampler, even + 1u));
                if (k == CACHE_BITS_DIMENSION) cached[CACHE_PATHS * CACHE_DIMENSIONS + j] = as_float(bits);
            }
        }
}

// Returns the path's sample value in a dimension, in [0, 1), from the cache if it is there. A bounce has 8 dimensions.
DEVICE float get_1d(Sampler sampler, uint dimension) {
    uint k = dimension & 7u;
    bool is_cached = sampler.cached && k < CACHE_DIMENSIONS;
    return is_cached ? sampler.cached[CACHE_PATHS * k] : uniform_float(sample_bits(sampler, dimension));
}

// Returns sample_bits(sampler, dimension), from the cache if it is there.
DEVICE uint get_1d_bits(Sampler sampler, uint dimension) {
    bool is_cached = sampler.cached && (dimension & 7u) == CACHE_BITS_DIMENSION;
    return is_cached ? as_uint(sampler.cached[CACHE_PATHS * CACHE_DIMENSIONS]) : sample_bits(sampler, dimension);
}
#else
DEVICE float get_1d(Sampler sampler, uint dimension) { return uniform_float(sample_bits(sampler, dimension)); }
#define get_1d_bits sample_bits
#endif
