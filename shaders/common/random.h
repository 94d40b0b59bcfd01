// Stateless random numbers for raytracing/sampler.h and GLSL: a number is a hash of (seed, pixel, sample, dimension),
// so the order in which threads work does not change a picture. The hash is PCG's output permutation (M. O'Neill 2014;
// as a hash: M. Jarzynski and M. Olano 2020).
#include "common/shared_function.h"

// The hash of one word.
SHARED_FUNCTION uint mix_bits(uint x) {
    x = x * 747796405u + 2891336453u;
    x = ((x >> ((x >> 28) + 4u)) ^ x) * 277803737u;
    return (x >> 22) ^ x;
}

// The hash of seed, pixel and sample: the key of one path, to which random_bits adds the dimension.
SHARED_FUNCTION uint random_key(uint seed, uint pixel, uint sample) {
    return mix_bits(mix_bits(mix_bits(seed) ^ pixel) + sample);
}

// The 32 random bits of a path in one dimension (one random decision of the path).
SHARED_FUNCTION uint random_bits(uint key, uint dimension) { return mix_bits(key ^ (dimension * 0x9e3779b9u)); }
