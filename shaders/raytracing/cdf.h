// Sampling of a piecewise constant density by its CDF, which renderer/raytracing/environment.py makes.

// The number of bits of `u` that index the guide of a CDF of count entries.
DEVICE uint guide_bits(int count) { return 32u - (uint)clz(count); }

// The entry that a CDF of count entries assigns to `u`; *remapped_u is where u lies within it, 0 to 1. `guide` narrows
// the search to the entries of its bucket of u (H. Chen and Y. Asau 1974).
DEVICE int sample_cdf(GLOBAL const uint *cdf, GLOBAL const ushort *guide, int count, uint u, float *remapped_u) {
    uint bucket = u >> (32u - guide_bits(count));
    int low = bucket ? (int)guide[bucket - 1u] : 0, high = (int)guide[bucket];
    while (low < high) {
        int middle = (low + high + 1) / 2;
        bool is_above = cdf[middle] <= u;  // selects, not branches, which no processor could foretell
        low = is_above ? middle : low;
        high = is_above ? high : middle - 1;
    }
    uint begin = cdf[low], width = cdf[low + 1] - begin;
    *remapped_u = min_nnan((float)(u - begin) / max_nnan((float)width, 1.0f), 0.9999999f);
    return low;
}
