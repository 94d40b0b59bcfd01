// The stencil of active rays (V. Frolov; shared papers call it "a stencil buffer for CUDA ray tracing"): one bit a ray, tested at
// the start of a stage and gathered at its end by all 32 rays of a word. STENCIL and GATHER are constants of the kernel.
//     KERNEL stage(GLOBAL const uint *before, GLOBAL uint *after, ...) {
//         STENCIL_SCRATCH(scratch);
//         bool active = is_active(before, i);
//         if (active) { ...; active = it lives on; }
//         set_active(after, i, active, scratch);     // every thread comes here
//     }
#define STENCIL_OFF 0    // no test: dead rays do the work of living ones, without effect
#define STENCIL_FLAGS 1  // one int a ray
#define STENCIL_BITS 2   // one bit a ray
#define GATHER_AUTO 0
#define GATHER_BALLOT 1  // the vote that returns a mask
#define GATHER_VOTES 2   // all dead or all alive by votes where there are such, else an atomic OR into the group's memory
#define GATHER_TREE 3    // a tree of ORs in the group's memory

#if GATHER == GATHER_AUTO
#undef GATHER
#if HAS_BALLOT
#define GATHER GATHER_BALLOT
#else
#define GATHER GATHER_VOTES
#endif
#endif

#if STENCIL == STENCIL_BITS && GATHER == GATHER_TREE
#define STENCIL_SCRATCH(name) LOCAL_ARRAY(uint, name, GROUP_SIZE)
#elif STENCIL == STENCIL_BITS && GATHER == GATHER_VOTES
#define STENCIL_SCRATCH(name) LOCAL_ARRAY(uint, name, (GROUP_SIZE + 31) / 32)
#else
#define STENCIL_SCRATCH(name) LOCAL uint *name = 0
#endif

// Whether any ray of this thread's word is alive: a whole warp leaves at once where none is.
DEVICE bool is_active(GLOBAL const uint *stencil, uint i) {
#if STENCIL == STENCIL_BITS
    return (stencil[i >> 5] >> (i & 31u)) & 1u;
#elif STENCIL == STENCIL_FLAGS
    return stencil[i] != 0;
#else
    return true;
#endif
}

// The word of the 32 flags of this thread's slice of 32 threads; all threads of the group call it. Valid in lane 0.
DEVICE uint gather_flags(bool active, LOCAL uint *scratch) {
#if STENCIL != STENCIL_BITS
    return 0;
#elif GATHER == GATHER_BALLOT
    return ballot(active);
#elif GATHER == GATHER_VOTES
    uint slice = local_index() >> 5;
#if HAS_BALLOT
    bool all_dead = all_lanes(!active), all_alive = all_lanes(active);
#else
    bool all_dead = false, all_alive = false;
#endif
    if (lane_index() == 0) scratch[slice] = all_alive ? 0xffffffffu : 0u;
    BARRIER();
    if (active && !all_dead && !all_alive) atomic_or(&scratch[slice], 1u << lane_index());
    BARRIER();
    uint word = scratch[slice];
    BARRIER();  // the scratch may be used again at once
    return word;
#else
    scratch[local_index()] = active ? 1u << lane_index() : 0u;
    BARRIER();
    for (uint half_width = 16; half_width > 0; half_width /= 2) {
        if (lane_index() < half_width) scratch[local_index()] |= scratch[local_index() + half_width];
        BARRIER();
    }
    uint word = scratch[local_index() & ~31u];
    BARRIER();
    return word;
#endif
}

DEVICE void set_active(GLOBAL uint *stencil, uint i, bool active, LOCAL uint *scratch) {
#if STENCIL == STENCIL_BITS
    uint word = gather_flags(active, scratch);
    if (lane_index() == 0) stencil[i >> 5] = word;
#elif STENCIL == STENCIL_FLAGS
    stencil[i] = active ? 1u : 0u;
#endif
}
