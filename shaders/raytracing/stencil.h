// The stencil of active rays (V. Frolov, "a stencil buffer for CUDA ray tracing"): one bit a ray. A stage tests the
// bits at its start, and all 32 rays of a word gather them at its end. The setting `stencil` chooses the
// representation:
//     bits   one bit a ray: what all schedules use.
//     flags  one int a ray, and
//     off    no test: ended rays are processed without effect. Both are kept as the baselines of the paper's experiment
//            (tests/fps/raytrace.py): without a test, depth 6 of `mirrors` is 2.4 times as slow on an H200.
//
//     KERNEL stage(GLOBAL const uint *before, GLOBAL uint *after, ...) {
//         STENCIL_LOCAL(scratch);
//         bool active = is_active(before, i);
//         if (active) { ...; active = the path continues; }
//         set_active(after, i, active, scratch);  // all threads of the group call it
//     }
#define STENCIL_OFF 0
#define STENCIL_FLAGS 1
#define STENCIL_BITS 2

#if STENCIL == STENCIL_BITS && !HAS_BALLOT
#define STENCIL_LOCAL(name) LOCAL_ARRAY(uint, name, (GROUP_SIZE + 31) / 32)
#else
#define STENCIL_LOCAL(name) LOCAL uint *name = 0
#endif

// Whether ray i is active. The 32 threads of a warp read the same word, so a warp whose word is 0 skips the stage
// without divergence.
DEVICE bool is_active(GLOBAL const uint *stencil, uint i) {
#if STENCIL == STENCIL_BITS
    return (stencil[i >> 5] >> (i & 31u)) & 1u;
#elif STENCIL == STENCIL_FLAGS
    return stencil[i] != 0;
#else
    return true;
#endif
}

// The word of the 32 flags of this thread's slice of 32 threads, valid in lane 0; all threads of the group call it.
DEVICE uint ballot_word(bool active, LOCAL uint *scratch) {
#if STENCIL != STENCIL_BITS
    return 0;
#elif HAS_BALLOT
    return ballot(active);
#else
    uint slice = local_index() >> 5;
    if (lane_index() == 0) scratch[slice] = 0u;
    BARRIER();
    if (active) atomic_or(&scratch[slice], 1u << lane_index());
    BARRIER();
    uint word = scratch[slice];
    BARRIER();  // the next call may reuse the scratch memory at once
    return word;
#endif
}

DEVICE void set_active(GLOBAL uint *stencil, uint i, bool active, LOCAL uint *scratch) {
#if STENCIL == STENCIL_BITS
    uint word = ballot_word(active, scratch);
    if (lane_index() == 0) stencil[i >> 5] = word;
#elif STENCIL == STENCIL_FLAGS
    stencil[i] = active ? 1u : 0u;
#endif
}
