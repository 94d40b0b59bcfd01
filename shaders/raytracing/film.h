// The film: running statistics of the samples of each pixel of the tile. It covers the samples from params.first_sample
// on; merge_films.cu merges two such ranges. film_mean.xyz is the mean radiance. With FILM, film_m2.xyz is the sum of
// squared deviations (B. Welford 1962), and film_m2.w the sample count at which the pixel reached the noise threshold,
// 0 while it is still sampled.
#include "bvh/geometry.h"

#if FILM
#define FILM_PARAMS GLOBAL float4 *film_mean, GLOBAL float4 *film_m2
#define FILM_ARGS film_mean, film_m2
#else
#define FILM_PARAMS GLOBAL float4 *film_mean
#define FILM_ARGS film_mean
#endif
#define MIN_SAMPLES 32  // the error is estimated at this count and at larger powers of two; the same in film.py
#define MIN_LUMINANCE 0.01f  // the error of darker pixels is relative to this luminance

// Returns the film's index of pixel (x, y) of the whole picture.
DEVICE int pixel_index(const LaunchParams params, int x, int y) {
    return (y - params.tile_y) * params.tile_width + x - params.tile_x;
}

// True if the pixel takes another sample. This depends on the pixel's earlier samples alone, so tiling changes no bit.
DEVICE bool needs_sample(const LaunchParams params, int x, int y, FILM_PARAMS) {
#if FILM
    return params.sample_index == params.first_sample || film_m2[pixel_index(params, x, y)].w == 0.0f;
#else
    return true;
#endif
}

// Adds a sample's radiance to the pixel, and ends its sampling when the relative standard error of its luminance is at
// most params.noise_threshold.
DEVICE void add_sample(const LaunchParams params, int x, int y, float4 radiance, FILM_PARAMS) {
    int pixel = pixel_index(params, x, y), previous = params.sample_index - params.first_sample;
    float3 mean = xyz(radiance), previous_mean = make_float3(0.0f, 0.0f, 0.0f);
    if (previous > 0) {
        previous_mean = xyz(film_mean[pixel]);
        mean = madd(mean - previous_mean, 1.0f / (float)(previous + 1), previous_mean);
    }
    film_mean[pixel] = with_w(mean, 1.0f);
#if FILM
    float3 m2 = make_float3(0.0f, 0.0f, 0.0f);
    if (previous > 0) m2 = xyz(film_m2[pixel]) + (xyz(radiance) - previous_mean) * (xyz(radiance) - mean);
    int samples = previous + 1;
    bool done = false;
    if (params.noise_threshold > 0.0f && samples >= MIN_SAMPLES && (samples & previous) == 0) {
        float scale = 1.0f / ((float)samples * (float)previous);
        // standard error of the luminance, an upper bound: channels' errors taken as fully correlated
        float error = fma(0.0722f, sqrt(m2.z * scale), fma(0.7152f, sqrt(m2.y * scale), 0.2126f * sqrt(m2.x * scale)));
        done = error <= params.noise_threshold * max_nnan(rgb_luminance(with_w(mean, 0.0f)), MIN_LUMINANCE);
    }
    film_m2[pixel] = with_w(m2, done ? (float)samples : 0.0f);
#endif
}
