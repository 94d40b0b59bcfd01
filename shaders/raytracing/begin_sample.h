// What launches of one picture change is the sample: with SAMPLE_IN_MEMORY kernels read it from memory, so that they
// can be recorded once and launched again (a CUDA graph).
#if SAMPLE_IN_MEMORY
#define SAMPLE_PARAMS const LaunchParams params, GLOBAL const int *sample
#define SAMPLE_ARGS params, sample
#define AT_SAMPLE(params) at_sample(params, sample)  // read where it is used: held from the start it costs registers

DEVICE LaunchParams at_sample(LaunchParams params, GLOBAL const int *sample) {
    params.sample_index = sample[0];
    params.first_sample = sample[1];
    return params;
}

// Sets the sample (its index, and the first of its range), or goes to the next where `index` is -1; clears `counts`.
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
