// Prefix sums by the threads of one group (Hillis and Steele, Data Parallel Algorithms, 1986).

// Inclusive scan: sums[t] becomes the sum of `own` of threads 0 to t. All threads of the group must call it.
DEVICE void inclusive_scan_group(LOCAL uint *sums, uint own) {
    sums[local_index()] = own;
    BARRIER();
    for (uint step = 1; step < GROUP_SIZE; step *= 2) {
        uint before = local_index() >= step ? sums[local_index() - step] : 0u;
        BARRIER();
        sums[local_index()] += before;
        BARRIER();
    }
}

// Exclusive scan of row[0..count) by one group; returns the total. `sums` has GROUP_SIZE elements.
DEVICE uint exclusive_scan_row(GLOBAL uint *row, uint count, LOCAL uint *sums) {
    uint carry = 0;
    for (uint begin = 0; begin < count; begin += GROUP_SIZE) {
        uint i = begin + local_index(), own = i < count ? row[i] : 0u;
        inclusive_scan_group(sums, own);
        if (i < count) row[i] = carry + sums[local_index()] - own;
        carry += sums[GROUP_SIZE - 1];
        BARRIER();
    }
    return carry;
}
