// Merges the films (film.h) of two sample ranges of one picture, pixel by pixel (T. Chan, G. Golub and R. LeVeque
// 1979): the mean radiances and, with M2, the sums of squared deviations. `count_a` and `count_b` are the numbers of
// samples in the ranges; with SAMPLE_IN_MEMORY they follow from sample[0], the last sample drawn, and sample[1], the
// first of range b (begin_sample.h). Launched by renderer/raytracing/film.py.
#include "common/portable.h"
#include "bvh/geometry.h"

#if SAMPLE_IN_MEMORY
#define COUNT_PARAMS GLOBAL const int *sample
#else
#define COUNT_PARAMS int count_a, int count_b
#endif

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
