// SAMPLE_PARAMS, the first parameters of every kernel of raytrace.cu: LaunchParams, the parameters of a launch, which
// differ between the samples of a picture in the sample's index alone. With SAMPLE_IN_MEMORY kernels read that index
// from memory (AT_SAMPLE), so that a CUDA graph can repeat the same launches; begin_sample then sets it.
// Macros of other files: MAX_DEPTHS (raytracing/raytrace.cu).
#if SAMPLE_IN_MEMORY
#define SAMPLE_PARAMS const LaunchParams params, GLOBAL const int *sample
#define SAMPLE_ARGS params, sample
#define AT_SAMPLE(params) at_sample(params, sample)  // at each use: held in registers from the start, it is slower

// Returns the parameters with the sample's index, and the first index of its range, from memory.
DEVICE LaunchParams at_sample(LaunchParams params, GLOBAL const int *sample) {
    params.sample_index = sample[0];
    params.first_sample = sample[1];
    return params;
}

// Sets sample[0], the sample's index, to `index` and sample[1], the first index of its range, to `first`; if `index` is
// -1, advances to the next sample instead. Clears `counts` for the schedule's report.
KERNEL begin_sample(int index, int first, GLOBAL int *sample, GLOBAL uint *counts) {
    uint i = thread_index();
    if (i <= MAX_DEPTHS) counts[i] = 0;
    if (i > 0) return;
    sample[0] = index < 0 ? sample[0] + 1 : index;
    if (index >= 0) sample[1] = first;
}
#else
#define SAMPLE_PARAMS const LaunchParams params
#define SAMPLE_ARGS params
#define AT_SAMPLE(params) params
#endif
