// Probes of a device's roofline, launched by renderer/cdollar/runtime/costs.py: a copy, whose bytes bound kernels that
// move data, and CHAINS independent chains of multiply-adds of WIDE numbers, which are vectors on CPUs (SCALAR).
#if SCALAR
#define WIDE float8
#define ALL(x) SPLAT(float8, x)
KERNEL copy(int count, GLOBAL const float4 *RESTRICT in, GLOBAL float4 *RESTRICT out) {
    const int each = count / (int)group_count(), begin = (int)thread_index() * each;
    for (int i = begin; i < begin + each; i++) out[i] = in[i];
}
#else
#define WIDE float
#define ALL(x) (x)
KERNEL copy(int count, GLOBAL const float4 *RESTRICT in, GLOBAL float4 *RESTRICT out) {
    for (int i = (int)thread_index(); i < count; i += (int)(group_count() * GROUP_SIZE)) out[i] = in[i];
}
#endif
// Multiplies and adds in CHAINS independent chains, to measure the rate of arithmetic.
KERNEL multiply_add(int rounds, float a, GLOBAL WIDE *out) {
    WIDE x[CHAINS];
    for (int k = 0; k < CHAINS; k++) x[k] = ALL(a + (float)k);
    const WIDE factor = ALL(a), more = ALL(1.0f - a);
    for (int i = 0; i < rounds; i++) {
        UNROLL for (int k = 0; k < CHAINS; k++) x[k] = x[k] * factor + more;
    }
    for (int k = 1; k < CHAINS; k++) x[0] = x[0] + x[k];
    out[thread_index()] = x[0];
}
