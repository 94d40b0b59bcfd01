// The stencil: the set of active rays, which each stage of a schedule (raytrace.cu) reads and sets anew (V. Frolov, "a
// stencil buffer for CUDA ray tracing"). Included by raytrace.cu. A word of the stencil holds the bits of 32 rays,
// one warp's. A stage tests the bits at its start, and the 32 threads combine their new bits by a ballot at its end.
// The setting `stencil` chooses the representation:
//     bits     one bit a ray: the default of all schedules. bounces.h lists the active rays in shared memory.
//     flags    one int a ray: a baseline of the paper's experiment (tests/fps/raytrace.py).
//     off      no test: ended rays are processed without effect. The other baseline: without a test, depth 6 of the
//              scene `mirrors` is 2.7 times as slow on an H200.
//     compact  stream compaction, the usual alternative: the number of active rays, then their indices. The order of
//              the indices depends on the order of the warps and changes no ray. Kept as a baseline, too.
//
// Stages overwrite every word of `bits` and `flags`. The counter stencil[0] of `compact` only grows: the host zeroes it
// before the stage that fills the list (Wavefront in renderer/raytracing/schedules.py). The number of rays is padded to
// whole groups (ray_buffers.py), so every slot has a ray and a word; rays beyond the picture are never active.
//
// A thread handles slot numbers: a slot is the ray's index itself, except for `compact`, where it is a position in the
// list of indices. A stage looks like this:
//     KERNEL stage(GLOBAL const uint *before, GLOBAL uint *after, ...) {
//         STENCIL_LOCAL(scratch);
//         FOR_EACH_STENCIL_WORD(slot) {
//             uint i = ray_of(before, slot);
//             bool active = is_active(before, slot);
//             if (active) { ...; active = the path continues; }
//             set_active(after, i, active, scratch);  // all threads of the group call it
//         }
//     }
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): STENCIL, WORDS_PER_WARP.
#define STENCIL_OFF 0
#define STENCIL_FLAGS 1
#define STENCIL_BITS 2
#define STENCIL_COMPACT 3

// Scratch memory of ballot_word(), which a ballot does not need.
#if STENCIL == STENCIL_BITS && !HAS_BALLOT
#define STENCIL_LOCAL(name) LOCAL_ARRAY(uint, name, (GROUP_SIZE + 31) / 32)
#else
#define STENCIL_LOCAL(name) LOCAL uint *name = 0
#endif

// Returns the ray of a slot; of `compact`, an undefined number if the slot is not active.
DEVICE uint ray_of(GLOBAL const uint *stencil, uint slot) {
    return STENCIL == STENCIL_COMPACT ? stencil[1u + slot] : slot;
}

// True if the slot's ray is active. The 32 threads of a warp read the same word, so a warp whose word is 0 skips the
// stage without divergence.
DEVICE bool is_active(GLOBAL const uint *stencil, uint slot) {
    if (STENCIL == STENCIL_BITS) return (stencil[slot >> 5] >> (slot & 31u)) & 1u;
    if (STENCIL == STENCIL_FLAGS) return stencil[slot] != 0;
    return STENCIL == STENCIL_COMPACT ? slot < stencil[0] : true;
}

// Returns in lane 0 the word of the `active` flags of the 32 threads around this one (a warp on GPUs): bit k is the
// flag of lane k. All threads of the group call it.
DEVICE uint ballot_word(bool active, LOCAL uint *scratch) {
    if (STENCIL != STENCIL_BITS) return 0;
#if HAS_BALLOT
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

// Stores whether ray i is active in the next stage. All threads of the group call it.
DEVICE void set_active(GLOBAL uint *stencil, uint i, bool active, LOCAL uint *scratch) {
    if (STENCIL == STENCIL_BITS) {
        uint word = ballot_word(active, scratch);
        if (lane_index() == 0) stencil[i >> 5] = word;
    }
    if (STENCIL == STENCIL_FLAGS) stencil[i] = active ? 1u : 0u;
    if (STENCIL != STENCIL_COMPACT) return;
#if HAS_BALLOT
    uint word = ballot(active), first = 0;
    if (lane_index() == 0 && word) first = atomic_add(&stencil[0], popcount(word));
    first = warp_shuffle(first, 0);
    if (active) stencil[1u + first + popcount(word & ((1u << lane_index()) - 1u))] = i;
#else
    if (active) stencil[1u + atomic_add(&stencil[0], 1u)] = i;
#endif
}

// Loops over the slots of a thread. Each warp tests WORDS_PER_WARP words in turn, because launching an empty warp costs
// more than testing a word.
#define FOR_EACH_STENCIL_WORD(slot)                                                 \
    for (uint slot = group_index() * (GROUP_SIZE * WORDS_PER_WARP) + local_index(), \
              end_ = slot + GROUP_SIZE * WORDS_PER_WARP;                            \
         slot < end_; slot += GROUP_SIZE)
