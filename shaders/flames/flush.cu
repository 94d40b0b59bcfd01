// From the histogram that the chaos game adds to, to its exact 64-bit sums. Launched by renderer/flames/chaos_game.py,
// which describes flush intervals (_advance_in_floats) and buckets. Compile-time input, as in flame.cu:
//   SUMS  1: a histogram of integers; 2: of integers stored in float32

// inexact[interval] = 1 if a float sum reached 2^24, beyond which float32 does not hold all integers. Sums only grow,
// so smaller ones were always exact. max_sum[0] = the bits of the largest sum.
KERNEL check_exactness(GLOBAL const float4 *histogram, int buckets, GLOBAL uint *inexact, int interval,
                       GLOBAL uint *max_sum) {
    LOCAL_ARRAY(float, largest, GROUP_SIZE);
    float thread_largest = 0.0f;
    for (uint i = thread_index(); i < (uint)buckets; i += group_count() * GROUP_SIZE) {
        float4 bucket = histogram[i];
        thread_largest = fmax(thread_largest, fmax(fmax(bucket.x, bucket.y), fmax(bucket.z, bucket.w)));
    }
    uint k = local_index();
    largest[k] = thread_largest;
    BARRIER();
    for (uint stride = GROUP_SIZE / 2; stride > 0u; stride /= 2u) {
        if (k < stride) largest[k] = fmax(largest[k], largest[k + stride]);
        BARRIER();
    }
    if (k == 0u) {
        atomic_max(max_sum, as_uint(largest[0]));
        if (largest[0] >= 16777216.0f) atomic_or(inexact + interval, 1u);
    }
}

// part = the sums of a rectangle of the grid, `part_columns` wide, whose first bucket is (left, top).
KERNEL crop(GLOBAL const ulong *sums, GLOBAL ulong *part, int columns, int left, int top, int part_columns,
            int part_buckets) {
    uint i = thread_index();
    if (i >= (uint)part_buckets) return;
    size_t from = ((size_t)top + i / (uint)part_columns) * (size_t)columns + (size_t)left + i % (uint)part_columns;
    for (size_t k = 0; k < 4; k++) part[4 * (size_t)i + k] = sums[4 * from + k];
}

#define FLUSH_ALWAYS 0
#define FLUSH_IF_EXACT 1  // after the float kernel; clears the histogram in any case
#define FLUSH_IF_INEXACT 2  // after the integer kernel, which has run an inexact interval again

// sums += the `copies` histograms, `stride` buckets apart, which are cleared; the count of bad values likewise.
KERNEL flush(GLOBAL uint4 *histograms, int copies, int stride, GLOBAL ulong *sums, int buckets, GLOBAL uint *bad_values,
             GLOBAL ulong *bad_value_total, GLOBAL const uint *inexact, int interval, int when) {
    uint i = thread_index();
    bool is_inexact = when != FLUSH_ALWAYS && inexact[interval] != 0u;
    if (when == FLUSH_IF_INEXACT && !is_inexact) return;
    bool counts = when != FLUSH_IF_EXACT || !is_inexact;
    if (i == 0u) {
        if (counts) bad_value_total[0] += bad_values[0];
        bad_values[0] = 0u;
    }
    if (i < (uint)buckets) {
        ulong red = 0, green = 0, blue = 0, alpha = 0;
        for (int copy = 0; copy < copies; copy++) {
            GLOBAL uint4 *bucket = histograms + (size_t)copy * (size_t)stride + i;
            uint4 c = *bucket;
            if ((c.x | c.y | c.z | c.w) == 0u) continue;
            *bucket = make_uint4(0u, 0u, 0u, 0u);
#if SUMS == 2
            c = make_uint4((uint)as_float(c.x), (uint)as_float(c.y), (uint)as_float(c.z), (uint)as_float(c.w));
#endif
            red += c.x;  // the histogram's order: red, alpha, blue, green (palette_color() in plot.h)
            alpha += c.y;
            blue += c.z;
            green += c.w;
        }
        if (counts && (red | green | blue | alpha) != 0) {
            sums[4 * (size_t)i] += red;
            sums[4 * (size_t)i + 1] += green;
            sums[4 * (size_t)i + 2] += blue;
            sums[4 * (size_t)i + 3] += alpha;
        }
    }
}
