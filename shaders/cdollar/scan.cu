// Prefix sums (Blelloch 1990) of the rows of C$ arrays, launched by renderer/cdollar/targets/primitive_kernels.py. The
// order of additions is fixed, so that float sums have the same bits on every device and in
// renderer/cdollar/targets/numpy/primitives.py: a block of 4,096 elements is 16 segments of 16 runs of 16 elements. A
// prefix sum is base + (outer + (middle + inner)):
//     base     the sum of the row's blocks before this one
//     outer    the sum of the block's segments before this one
//     middle   the sum of the segment's runs before this one
//     inner    the sum of the run up to the element
// On CPUs a work-item scans a block; on GPUs 256 threads (GROUP_SIZE) scan one run each. The host defines SUM, the type
// of the elements and sums; SCALAR, 1 on CPUs, else 0; and WRITES, 0 or 1, see `scan`.
#define BLOCK 4096
#define ITEMS 16  // elements of a run, runs of a segment, and segments of a block
#define PADDED(i) ((i) + (i) / ITEMS)  // index in local memory, padded so that threads with a run each do not conflict

// Each group processes one block; a row of `length` elements has `blocks` blocks. A row of one block needs one launch
// with WRITES 1. Rows of several blocks need two launches with a scan of the totals between them:
//     WRITES 0   out (rows, blocks) becomes the total of each block
//     WRITES 1   out (rows, length) becomes the inclusive prefix sums of the rows; offsets (rows, blocks) are the
//                inclusive prefix sums of the blocks' totals
KERNEL scan(int length, int blocks, GLOBAL const SUM *RESTRICT in, GLOBAL const SUM *RESTRICT offsets,
            GLOBAL SUM *RESTRICT out) {
    const uint group = group_index();
    const int block = (int)(group % (uint)blocks), count = min(BLOCK, length - block * BLOCK);
    const ulong start = (ulong)(group / (uint)blocks) * (ulong)length + (ulong)block * BLOCK;
    const SUM base = WRITES && block > 0 ? offsets[group - 1] : (SUM)0;
#if SCALAR
    SUM outer = (SUM)0, middle = (SUM)0;
    for (int first = 0; first < count; first += ITEMS) {
        SUM inner = (SUM)0;
        const int end = min(ITEMS, count - first);
        for (int j = 0; j < end; j++) {
            inner += in[start + (ulong)(first + j)];
            if (WRITES) out[start + (ulong)(first + j)] = base + (outer + (middle + inner));
        }
        middle += inner;
        if ((first / ITEMS) % ITEMS == ITEMS - 1) {  // the last run of a segment
            outer += middle;
            middle = (SUM)0;
        }
    }
    if (!WRITES) out[group] = outer + middle;
#else
    LOCAL_ARRAY(SUM, tile, PADDED(BLOCK));
    LOCAL_ARRAY(SUM, run_sums, GROUP_SIZE);
    LOCAL_ARRAY(SUM, segments, ITEMS);
    const int t = (int)local_index();
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * GROUP_SIZE + t;
        tile[PADDED(i)] = i < count ? in[start + (ulong)i] : (SUM)0;
    }
    BARRIER();
    SUM items[ITEMS], inner = (SUM)0, middle = (SUM)0, outer = (SUM)0;
    for (int j = 0; j < ITEMS; j++) {
        inner += tile[PADDED(t * ITEMS + j)];
        items[j] = inner;
    }
    run_sums[t] = inner;
    BARRIER();
    for (int k = t & ~(ITEMS - 1); k < t; k++) middle += run_sums[k];  // from the first run of the thread's segment
    if (t % ITEMS == ITEMS - 1) segments[t / ITEMS] = middle + inner;  // its last run: the sum of the segment
    BARRIER();
    for (int k = 0; k < t / ITEMS; k++) outer += segments[k];
    if (WRITES) {
        for (int j = 0; j < ITEMS; j++) tile[PADDED(t * ITEMS + j)] = base + (outer + (middle + items[j]));
        BARRIER();
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * GROUP_SIZE + t;
            if (i < count) out[start + (ulong)i] = tile[PADDED(i)];
        }
    } else if (t == GROUP_SIZE - 1) {
        out[group] = outer + (middle + inner);
    }
#endif
}
