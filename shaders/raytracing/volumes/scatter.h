// Functions for fog and volumes (volumes.h) and for media inside of surfaces (random_walk.h): streams of random numbers
// for free paths, and the phase function.
#include "common/reproducible_math.h"
#include "raytracing/frame.h"
#include "raytracing/sampler.h"

// A stream of pseudorandom numbers: one for each ray, volume and purpose.
typedef struct {
    uint key, count;
} RandomStream;

// Returns the next number of the stream, in [0, 1).
DEVICE float next_random(RandomStream *stream) { return uniform_float(random_bits(stream->key, stream->count++)); }

// Starts the stream of a path's dimension. `purpose` is 2 k for collisions in volume k, and 2 k + 1 for its
// transmittance.
DEVICE RandomStream volume_stream(Sampler sampler, uint dimension, uint purpose) {
    RandomStream stream = {mix_bits(sample_bits(sampler, dimension) + purpose * 0x9e3779b9u), 0u};
    return stream;
}

// Returns the phase function of L. Henyey and J. Greenstein (1941), which is also its pdf, per solid angle; `cosine` is
// the cosine between the directions of the light before and after scattering.
DEVICE float henyey_greenstein(float cosine, float g) {
    float base = fma(-2.0f * g, cosine, fma(g, g, 1.0f));
    return fma(-g, g, 1.0f) / (4.0f * PI * base * sqrt(base));
}

// Samples the direction in which a ray of unit `direction` scatters, with the pdf henyey_greenstein.
DEVICE float3 sample_henyey_greenstein(float3 direction, float g, float u1, float u2) {
    float ratio = fma(-g, g, 1.0f) / fma(2.0f * g, u1, 1.0f - g);
    float cosine = fabs(g) < 1e-3f ? fma(2.0f, u1, -1.0f) : (fma(g, g, 1.0f) - ratio * ratio) / (2.0f * g);
    cosine = clamp(cosine, -1.0f, 1.0f);
    float sine = sqrt(fma(-cosine, cosine, 1.0f));
    float2 phi = cos_sin_2pi(u2);
    return normalize_fma(local_to_world(direction, sine * phi.x, sine * phi.y, cosine));
}
