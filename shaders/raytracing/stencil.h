// The stencil of active rays (V. Frolov, "a stencil buffer for CUDA ray tracing"): one bit a ray. A stage tests the
// bits at its start, and all 32 rays of a word gather them at its end. The setting `stencil` chooses the
// representation:
//     bits   one bit a ray: what all schedules use. GPUs list the rays of words in shared memory: packed_stages.h.
//     flags  one int a ray, and
//     off    no test: ended rays are processed without effect. Both are kept as the baselines of the paper's experiment
//            (tests/fps/raytrace.py): without a test, depth 6 of `mirrors` is 2.7 times as slow on an H200.
//     compact  the indices of the active rays one behind the other, after their number: stream compaction, what others
//            do in a stencil's place. Their order depends on the warps' and changes no ray. Kept as a baseline, too.
//
//     KERNEL stage(GLOBAL const uint *before, GLOBAL uint *after, ...) {
//         STENCIL_LOCAL(scratch);
//         FOR_EACH_STENCIL_WORD(slot) {
//             uint i = ray_of(before, slot);
//             bool active = is_active(before, slot);
//             if (active) { ...; active = the path continues; }
//             set_active(after, i, active, scratch);  // all threads of the group call it
//         }
//     }
#define STENCIL_OFF 0
#define STENCIL_FLAGS 1
#define STENCIL_BITS 2
#define STENCIL_COMPACT 3

#if STENCIL == STENCIL_BITS && !HAS_BALLOT
#define STENCIL_LOCAL(name) LOCAL_ARRAY(uint, name, (GROUP_SIZE + 31) / 32)
#else
#define STENCIL_LOCAL(name) LOCAL uint *name = 0
#endif

// The ray of a thread's slot: itself, but for the compacted rays; of a slot that is not active any number.
DEVICE uint ray_of(GLOBAL const uint *stencil, uint slot) {
#if STENCIL == STENCIL_COMPACT
    return stencil[1u + slot];
#else
    return slot;
#endif
}

// Whether ray i, or that of slot i, is active. The 32 threads of a warp read the same word, so a warp whose word is 0
// skips the stage without divergence.
DEVICE bool is_active(GLOBAL const uint *stencil, uint i) {
#if STENCIL == STENCIL_BITS
    return (stencil[i >> 5] >> (i & 31u)) & 1u;
#elif STENCIL == STENCIL_FLAGS
    return stencil[i] != 0;
#elif STENCIL == STENCIL_COMPACT
    return i < stencil[0];
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
#elif STENCIL == STENCIL_COMPACT && HAS_BALLOT
    uint word = ballot(active), first = 0;
    if (lane_index() == 0 && word) first = atomic_add(&stencil[0], popcount(word));
    first = warp_shuffle(first, 0);
    if (active) stencil[1u + first + popcount(word & ((1u << lane_index()) - 1u))] = i;
#elif STENCIL == STENCIL_COMPACT
    if (active) stencil[1u + atomic_add(&stencil[0], 1u)] = i;
#endif
}

// Each warp tests WORDS_PER_WARP words in turn: launching an empty warp costs more.
#define FOR_EACH_STENCIL_WORD(slot)                                                 \
    for (uint slot = group_index() * (GROUP_SIZE * WORDS_PER_WARP) + local_index(), \
              end_ = slot + GROUP_SIZE * WORDS_PER_WARP;                            \
         slot < end_; slot += GROUP_SIZE)
