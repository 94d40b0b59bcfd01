// Kernels of whole films (film.h), which renderer/raytracing/film.py launches between samples: merge_films adds two
// ranges of samples, rest_pixels lets pixels rest and wakes them, crop_film copies a rectangle.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): SAMPLE_IN_MEMORY.
#include "common/portable.h"
#include "bvh/geometry.h"

#define BLOCK 16  // side in pixels of the blocks that rest_pixels judges; the same in film.py
#define MIN_LUMINANCE 0.01f  // the error of darker pixels is relative to this luminance

#if SAMPLE_IN_MEMORY
#define COUNT_PARAMS GLOBAL const int *sample
#else
#define COUNT_PARAMS int count_a, int count_b
#endif

// Merges the films of two sample ranges of one picture, pixel by pixel (T. Chan, G. Golub and R. LeVeque 1979): the
// mean radiances and, with M2, the sums of squared deviations. `count_a` and `count_b` are the numbers of samples in
// the ranges; with SAMPLE_IN_MEMORY they follow from sample[0], the last sample drawn, and sample[1], the first of
// range b (begin_sample.h).
KERNEL merge_films(int pixels, COUNT_PARAMS, GLOBAL const float4 *mean_a, GLOBAL const float4 *mean_b,
                   GLOBAL float4 *mean
#if M2
                   ,
                   GLOBAL const float4 *m2_a, GLOBAL const float4 *m2_b, GLOBAL float4 *m2
#endif
) {
    uint i = thread_index();
    if (i >= (uint)pixels) return;
#if SAMPLE_IN_MEMORY
    int count_a = sample[1], count_b = sample[0] + 1 - count_a;
#endif
    float weight = (float)count_b / (float)(count_a + count_b);
    float3 difference = xyz(mean_b[i]) - xyz(mean_a[i]);
    mean[i] = with_w(madd(difference, weight, xyz(mean_a[i])), 1.0f);
#if M2
    float3 sum = xyz(m2_a[i]) + xyz(m2_b[i]);
    m2[i] = with_w(madd(difference * difference, (float)count_a * weight, sum), 0.0f);
#endif
}

// Returns the number of samples of a pixel, after `samples` samples of the picture.
DEVICE float samples_of(float4 m2, int samples) { return m2.w > 0.0f ? m2.w : (float)samples + m2.w; }

// Returns the luminance of a pixel, at least MIN_LUMINANCE, and *error, its standard error: an upper bound, because the
// errors of the channels are taken as fully correlated.
DEVICE float luminance_and_error(float4 mean, float4 m2, int samples, float *error) {
    float count = samples_of(m2, samples), scale = 1.0f / (count * (count - 1.0f));
    *error = fma(0.0722f, sqrt(m2.z * scale), fma(0.7152f, sqrt(m2.y * scale), 0.2126f * sqrt(m2.x * scale)));
    return max_nnan(fma(0.0722f, mean.z, fma(0.7152f, mean.y, 0.2126f * mean.x)), MIN_LUMINANCE);
}

// Lets pixels rest whose relative standard error is at most `threshold`, and wakes others, after `samples` samples. One
// thread judges a block of BLOCK x BLOCK pixels. A pixel's own error is 0 until a sample of it has found the light of a
// caustic, so no pixel of a block rests while the root mean square of the errors of all its pixels is above `threshold`
// of their mean luminance: a few samples of a block tell how rare that light is. Blocks are counted from the whole
// picture's corner and judged one by one, so that tiles of entire blocks draw the same bits. errors[block] becomes the
// largest relative error: of the block, or of one of its pixels.
KERNEL rest_pixels(int width, int height, int samples, float threshold, GLOBAL const float4 *film_mean,
                   GLOBAL float4 *film_m2, GLOBAL float *errors) {
    int block = (int)thread_index(), blocks_x = (width + BLOCK - 1) / BLOCK;
    if (block >= blocks_x * ((height + BLOCK - 1) / BLOCK)) return;
    int left = block % blocks_x * BLOCK, top = block / blocks_x * BLOCK, count = 0;
    int right = left + BLOCK < width ? left + BLOCK : width, bottom = top + BLOCK < height ? top + BLOCK : height;
    float squares = 0.0f, total = 0.0f, error;
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++, count++) {
            total += luminance_and_error(film_mean[y * width + x], film_m2[y * width + x], samples, &error);
            squares = fma(error, error, squares);
        }
    float worst = sqrt(squares * (float)count) / total;
    bool may_rest = worst <= threshold;
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++) {
            float4 m2 = film_m2[y * width + x];
            float luminance = luminance_and_error(film_mean[y * width + x], m2, samples, &error);
            worst = max_nnan(worst, error / luminance);
            float taken = samples_of(m2, samples);
            bool rests = may_rest && error <= threshold * luminance;
            film_m2[y * width + x] = with_w(xyz(m2), rests ? taken : taken - (float)samples);
        }
    errors[block] = worst;
}

// Copies the rectangle of `width` x `height` pixels whose upper left corner is (left, top) from a film into `out`.
KERNEL crop_film(int width, int height, int left, int top, int film_width, GLOBAL const float4 *film_mean,
                 GLOBAL float4 *out) {
    int i = (int)thread_index();
    if (i < width * height) out[i] = film_mean[(i / width + top) * film_width + i % width + left];
}
