// Two films of different samples of one picture to the film of all of them (T. Chan, G. Golub and R. LeVeque 1979): the means,
// and where SPREAD is set the sums of the squared distances from them.
#include "common/portable.h"
#include "bvh/geometry.h"

KERNEL merge_films(int pixels, int before, int more, GLOBAL const float4 *total, GLOBAL const float4 *part,
                   GLOBAL float4 *merged
#if SPREAD
                   , GLOBAL const float4 *spread_total, GLOBAL const float4 *spread_part, GLOBAL float4 *spread_merged
#endif
) {
    uint i = thread_index();
    if (i >= (uint)pixels) return;
    float share = (float)more / (float)(before + more);
    float3 mean = xyz(total[i]), step = xyz(part[i]) - mean;
    merged[i] = with_w(madd(step, share, mean), 1.0f);
#if SPREAD
    float3 far = xyz(spread_total[i]) + xyz(spread_part[i]);
    spread_merged[i] = with_w(madd(step * step, (float)before * share, far), 0.0f);
#endif
}
