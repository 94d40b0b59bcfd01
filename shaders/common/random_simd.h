// Random numbers by counting: draw n of a stream is a hash of key + n * gamma, so that any step of any chain can be
// drawn
// anywhere and in any order. Each stream has its own odd gamma (after G. Steele et al., "SplitMix", 2014); the hash is
// C. Wellons's lowbias32.
#include "common/reproducible_math.h"

typedef struct {
    bits position, gamma;
} Random;

DEVICE bits draw(Random *random) {
    random->position = random->position + random->gamma;
    return mixed(random->position);
}

// 0 to 1 - 2^-24.
DEVICE real uniform(Random *random) { return real_of(whole_of_bits(draw(random) >> 8)) * 5.9604644775390625e-8f; }
