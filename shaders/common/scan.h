// Exclusive prefix sums (scans) of unsigned integers, computed by one group (for common/radix_sort.cu and
// bvh/build_sah.cu). All threads of the group must call these functions. `sums` is scratch memory of SCAN_WORDS words
// in local memory; the group must pass a BARRIER before it writes there again.
#if HAS_BALLOT && GROUP_SIZE % 32 == 0
#define SCAN_WORDS (GROUP_SIZE / 32)
#else
#define SCAN_WORDS GROUP_SIZE
#endif

// Returns to thread t the sum of x over threads 0 to t - 1, and in *total the sum over all threads. Warps scan by
// shuffles; without shuffles the group scans in local memory (Hillis and Steele, Data Parallel Algorithms, 1986).
DEVICE uint exclusive_scan_group(LOCAL uint *sums, uint x, uint *total) {
#if HAS_BALLOT && GROUP_SIZE % 32 == 0
    const uint lane = lane_index(), warp = local_index() / 32;
    uint sum = x;
    for (uint step = 1; step < 32; step *= 2) {
        const uint before = warp_shuffle(sum, (lane - step) & 31u);
        if (lane >= step) sum += before;
    }
    if (lane == 31) sums[warp] = sum;
    BARRIER();
    uint before = sum - x, all = 0;
    for (uint k = 0; k < warp; k++) before += sums[k];
    for (uint k = 0; k < GROUP_SIZE / 32; k++) all += sums[k];
    *total = all;
    return before;
#else
    sums[local_index()] = x;
    BARRIER();
    for (uint step = 1; step < GROUP_SIZE; step *= 2) {
        const uint before = local_index() >= step ? sums[local_index() - step] : 0u;
        BARRIER();
        sums[local_index()] += before;
        BARRIER();
    }
    *total = sums[GROUP_SIZE - 1];
    return sums[local_index()] - x;
#endif
}

// Exclusive prefix sums of row[0..count) in place; returns the total.
DEVICE uint exclusive_scan_row(GLOBAL uint *row, uint count, LOCAL uint *sums) {
    uint carry = 0;
    for (uint begin = 0; begin < count; begin += GROUP_SIZE) {
        uint i = begin + local_index(), total;
        const uint before = exclusive_scan_group(sums, i < count ? row[i] : 0u, &total);
        if (i < count) row[i] = carry + before;
        carry += total;
        BARRIER();
    }
    return carry;
}
