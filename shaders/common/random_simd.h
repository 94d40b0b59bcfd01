// Counter-based random numbers of the flame kernels (flames/flame.cu, flames/variation.h), one stream per element of
// common/simd.h's vectors. Draw n of a stream is hash(key + n * gamma), so any thread can compute any draw, in any
// order. Each stream has a different odd gamma (after G. Steele et al., "SplitMix", 2014); the hash is C. Wellons's
// lowbias32, `mixed` in common/reproducible_math.h.
#include "common/reproducible_math.h"

typedef struct {
    bits position, gamma;  // key + n * gamma, where n is the number of draws so far
} Random;

// Advances the stream and returns 32 random bits.
DEVICE bits draw(Random *random) {
    random->position = random->position + random->gamma;
    return mixed(random->position);
}

// Advances the stream and returns a number in [0, 1), a multiple of 2^-24.
DEVICE real uniform(Random *random) { return real_of(whole_of_bits(draw(random) >> 8)) * 5.9604644775390625e-8f; }
