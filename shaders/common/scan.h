// Sums over what stands before, by the threads of one group (Hillis and Steele, Data Parallel Algorithms, 1986).

// sums[t] becomes the sum of the numbers of threads 0 to t; all threads of the group call it.
DEVICE void add_up_group(LOCAL uint *sums, uint own) {
    sums[local_index()] = own;
    BARRIER();
    for (uint step = 1; step < GROUP_SIZE; step *= 2) {
        uint before = local_index() >= step ? sums[local_index() - step] : 0u;
        BARRIER();
        sums[local_index()] += before;
        BARRIER();
    }
}

// row[i] becomes the sum of all before it; the sum of all is returned. By one group; `sums` has GROUP_SIZE places.
DEVICE uint add_up_row(GLOBAL uint *row, uint count, LOCAL uint *sums) {
    uint carry = 0;
    for (uint begin = 0; begin < count; begin += GROUP_SIZE) {
        uint i = begin + local_index(), own = i < count ? row[i] : 0u;
        add_up_group(sums, own);
        if (i < count) row[i] = carry + sums[local_index()] - own;
        carry += sums[GROUP_SIZE - 1];
        BARRIER();
    }
    return carry;
}
