// Probes of a device's roofline (S. Williams et al. 2009), launched by renderer/cdollar/runtime/costs.py, which times
// them: `copy` moves `count` 16-byte words and measures bytes a second; `multiply_add` runs CHAINS (8) independent
// chains of multiply-adds and measures operations a second. SCALAR is 1 on CPUs, where a number is a vector of eight
// floats.
#if SCALAR
#define WIDE float8  // the number of a thread; ALL(x) has x in all its lanes
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
// `rounds` multiply-adds x = x a + (1 - a) in each of CHAINS chains, of WIDE numbers; out[thread] keeps the compiler
// from leaving them out.
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
