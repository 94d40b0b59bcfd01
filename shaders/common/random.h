// Random numbers without state: a hash of (seed, pixel, sample, dimension), so that no order of work changes a picture.
// The mixing is PCG's output permutation (M. O'Neill 2014; as a hash: M. Jarzynski and M. Olano 2020).
#ifdef GLSL
#define RANDOM_WORD
#else
#define RANDOM_WORD DEVICE
#endif

RANDOM_WORD uint mix_bits(uint x) {
    x = x * 747796405u + 2891336453u;
    x = ((x >> ((x >> 28) + 4u)) ^ x) * 277803737u;
    return (x >> 22) ^ x;
}

// The key of one path: everything but the dimension.
RANDOM_WORD uint random_key(uint seed, uint pixel, uint sample) {
    return mix_bits(mix_bits(mix_bits(seed) ^ pixel) + sample);
}

// 32 random bits of a path's key in a dimension.
RANDOM_WORD uint random_bits(uint key, uint dimension) {
    return mix_bits(key ^ (dimension * 0x9e3779b9u));
}
