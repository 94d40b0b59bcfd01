// The film: running statistics of the samples of each pixel of the tile, float4 arrays (tile_height, tile_width) that
// add_sample updates, by one thread a pixel. It covers the samples from params.first_sample on. film_mean.xyz is the
// mean radiance. With FILM, film_m2.xyz is the sum of squared deviations (B. Welford 1962), and film_m2.w the number of
// samples of a pixel that rests, since it has reached the noise threshold; of other pixels it is minus the number of
// samples that they missed while they rested. films.cu has the kernels of whole films.
#include "bvh/geometry.h"

#if FILM
#define FILM_PARAMS GLOBAL float4 *film_mean, GLOBAL float4 *film_m2
#define FILM_ARGS film_mean, film_m2
#else
#define FILM_PARAMS GLOBAL float4 *film_mean
#define FILM_ARGS film_mean
#endif

// Returns the film's index of pixel (x, y) of the whole picture.
DEVICE int pixel_index(const LaunchParams params, int x, int y) {
    return (y - params.tile_y) * params.tile_width + x - params.tile_x;
}

// True if the pixel takes another sample.
DEVICE bool needs_sample(const LaunchParams params, int x, int y, FILM_PARAMS) {
#if FILM
    return params.sample_index == params.first_sample || film_m2[pixel_index(params, x, y)].w <= 0.0f;
#else
    return true;
#endif
}

// Adds a sample's radiance to the pixel.
DEVICE void add_sample(const LaunchParams params, int x, int y, float4 radiance, FILM_PARAMS) {
    int pixel = pixel_index(params, x, y), previous = params.sample_index - params.first_sample;
    float3 mean = xyz(radiance), previous_mean = make_float3(0.0f, 0.0f, 0.0f);
#if FILM
    float4 previous_m2 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (previous > 0) previous_m2 = film_m2[pixel];
    previous += (int)previous_m2.w;  // the pixel's samples so far, without the samples that it missed
#endif
    if (previous > 0) {
        previous_mean = xyz(film_mean[pixel]);
        mean = madd(mean - previous_mean, 1.0f / (float)(previous + 1), previous_mean);
    }
    film_mean[pixel] = with_w(mean, 1.0f);
#if FILM
    float3 m2 = make_float3(0.0f, 0.0f, 0.0f);
    if (previous > 0) m2 = xyz(previous_m2) + (xyz(radiance) - previous_mean) * (xyz(radiance) - mean);
    film_m2[pixel] = with_w(m2, previous_m2.w);
#endif
}
