// Stateless random numbers: a hash of (seed, pixel, sample, dimension), so that the order of work does not change a
// picture. The hash is PCG's output permutation (M. O'Neill 2014; as a hash: M. Jarzynski and M. Olano 2020).
#include "common/shared_function.h"

SHARED_FUNCTION uint mix_bits(uint x) {
    x = x * 747796405u + 2891336453u;
    x = ((x >> ((x >> 28) + 4u)) ^ x) * 277803737u;
    return (x >> 22) ^ x;
}

// The key of one path: everything but the dimension.
SHARED_FUNCTION uint random_key(uint seed, uint pixel, uint sample) {
    return mix_bits(mix_bits(mix_bits(seed) ^ pixel) + sample);
}

// 32 random bits of a path's key in a dimension.
SHARED_FUNCTION uint random_bits(uint key, uint dimension) { return mix_bits(key ^ (dimension * 0x9e3779b9u)); }
