// The stencil of active rays (V. Frolov, "a stencil buffer for CUDA ray tracing"): one bit a ray. A stage tests the
// bits at its start, and all 32 rays of a word gather them at its end. The setting `stencil` chooses the
// representation:
//     bits   one bit a ray: what all schedules use.
//     flags  one int a ray, and
//     off    no test: ended rays are processed without effect. Both are kept as the baselines of the paper's experiment
//            (tests/fps/raytrace.py): without a test, depth 6 of `mirrors` is 2.7 times as slow on an H200.
//     compact  the indices of the active rays one behind the other, after their number: stream compaction, what others
//            do in a stencil's place. Their order depends on the warps' and changes no ray. Kept as a baseline, too.
//
//     KERNEL stage(GLOBAL const uint *before, GLOBAL uint *after, ...) {
//         STENCIL_LOCAL(scratch);
//         STENCIL_WORDS(before, after, 0);
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

// Whether ray i, or that of slot i, is active. The 32 threads of a warp read the same word, so a warp whose word is 0 skips the stage
// without divergence.
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

// The words of a group. With GATHERED_WORDS, where few rays are left, a group reads so many words at once, far from each
// other, and its warps share those that are not 0: none waits for the load of a word that has no ray, and regions of
// long paths are spread over all groups. The others become 0 in the stencils that the stage writes (or 0 for none). Else
// each warp tests WORDS_PER_WARP words in turn: launching an empty warp costs more.
#if GATHERED_WORDS
#define STENCIL_WORDS(before, after, also_after)        \
    LOCAL_ARRAY(uint, live_words_, 1 + GATHERED_WORDS); \
    gather_words(before, after, also_after, live_words_)
#define FOR_EACH_STENCIL_WORD(slot)          \
    for (uint k_ = local_index() >> 5, slot; \
         k_ < live_words_[0] && (slot = 32u * live_words_[1u + k_] + lane_index(), true); k_ += GROUP_SIZE / 32)

// live: the number of words that are not 0, then the words, in any order.
DEVICE void gather_words(GLOBAL const uint *before, GLOBAL uint *after, GLOBAL uint *also_after, LOCAL uint *live) {
    uint word = group_index() + local_index() * group_count();
    bool is_word = local_index() < GATHERED_WORDS;
    if (local_index() == 0) live[0] = 0;
    bool lives = is_word && before[word] != 0;
    BARRIER();
    if (is_word && !lives) {
        if (after) after[word] = 0;
        if (also_after) also_after[word] = 0;
    }
    uint found = ballot(lives), first = 0;
    if (lane_index() == 0 && found) first = atomic_add(&live[0], popcount(found));
    first = warp_shuffle(first, 0);
    if (lives) live[1u + first + popcount(found & ((1u << lane_index()) - 1u))] = word;
    BARRIER();
}
#else
#define STENCIL_WORDS(before, after, also_after)
#define FOR_EACH_STENCIL_WORD(slot)                                                 \
    for (uint slot = group_index() * (GROUP_SIZE * WORDS_PER_WARP) + local_index(), \
              end_ = slot + GROUP_SIZE * WORDS_PER_WARP;                            \
         slot < end_; slot += GROUP_SIZE)
#endif
