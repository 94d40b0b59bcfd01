// Self-test of a device: renderer/gpu/opening.py runs this kernel on every device before its first use and compares the
// output with the known answer. It exercises arithmetic, a scalar argument, local memory, a barrier and atomics.
// result[i] = 2 values[i] + offset where values[i] > 0, else -values[i]. Bit i % 32 of flags[i / 32]: values[i] > 0.
KERNEL self_test(GLOBAL const float *values, GLOBAL float *result, GLOBAL uint *flags, int count, float offset) {
    LOCAL_ARRAY(uint, words, GROUP_SIZE / 32);
    uint i = thread_index();
    bool inside = i < (uint)count;
    float value = inside ? values[i] : 0.0f;
    if (lane_index() == 0) words[local_index() / 32] = 0;
    BARRIER();
    if (value > 0) atomic_or(&words[local_index() / 32], 1u << lane_index());
    if (inside) result[i] = value > 0 ? value * 2.0f + offset : -value;
    BARRIER();
    if (lane_index() == 0 && inside) flags[i / 32] = words[local_index() / 32];
}
