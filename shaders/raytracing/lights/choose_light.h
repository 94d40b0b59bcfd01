// Selection of a light by power from the light table, part 1 of the buffer `lights` (light_rows.h); used by lights.h.
// Compiled for one lane (`real` is float, `mask` bool) and, on CPUs, again for eight (float8, int8; packets/lanes8.h).
#include "raytracing/lights/light_rows.h"
#include "common/vectors.h"

// Returns the luminance of a linear Rec. 709 color.
DEVICE real rgb_luminance(real4 c) { return fma((real)(0.0722f), c.z, fma((real)(0.7152f), c.y, 0.2126f * c.x)); }

// Returns the index of the light table's entry that u32, a random number in units of 2^-32, selects: the first word of
// each entry is the CDF. *begin becomes the lower end of the entry's interval of u32, *width the interval's width,
// which is the selection probability in the same units.
DEVICE whole choose_light(const LaunchParams params, GLOBAL const float4 *lights, bits u32, bits *begin, bits *width) {
    whole low = 0, high = params.light_count - 1;
    while (ANY_LANE(low < high)) {
        whole middle = (low + high) >> 1;
        mask is_searching = low < high;
        mask is_above = GATHER_WORDS(lights, 4 * middle) > u32;
        high = is_searching & is_above ? middle : high;
        low = is_searching & !is_above ? middle + 1 : low;
    }
    *begin = low > 0 ? GATHER_WORDS(lights, 4 * max(low - 1, 0)) : 0u;
    *width = GATHER_WORDS(lights, 4 * low) - *begin;
    return low;
}

// Returns the position of u32 within a light's interval, 0 to 1: a random number independent of the selection.
DEVICE real position_in_interval(bits u32, bits begin, bits width) {
    return min_nnan(real_of(u32 - begin) / real_of(width), 0.9999999f);
}
