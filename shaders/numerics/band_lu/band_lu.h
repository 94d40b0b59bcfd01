// What the kernels of the band LU (paper 4) share, in REAL precision (float or double).
//
// Memory: a block column is S columns of `height` = (u + l + 1) S rows, column-major; block column t holds the rows from
// (t - u) S on. It lies in slot (t / devices) % slots, and slots are S (height + 1) elements apart, so that resident block
// columns of one device form one column-major matrix of leading dimension height. A panel (S columns of block column i from its
// diagonal block down) has `rows` rows and stands at element `at` of a buffer with leading dimension `ld`.
// Pivots count from 1 within their panel, as LAPACK's do within a call.

#if DOUBLE
#define SAFE_MINIMUM 2.2250738585072014e-308
#define HUGE_NUMBER 1.7976931348623157e308
#define INFINITE_NUMBER as_double((ulong)0x7ff0000000000000)
#else
#define SAFE_MINIMUM 1.17549435e-38f
#define HUGE_NUMBER 3.40282347e38f
#define INFINITE_NUMBER as_float((uint)0x7f800000)
#endif

// Where row i S of block column t begins.
DEVICE ulong top_of(int i, int t, int u, int height, int devices, int slots) {
    return (ulong)((t / devices) % slots) * (ulong)S * (ulong)(height + 1) + (ulong)((i - t + u) * S);
}

#if HAS_WARP_REDUCTION
// The largest size >= 0 of a warp and the smallest row that has it: sizes are compared as integers, which have their order.
DEVICE void best_of_warp(REAL *size, uint *row) {
#if DOUBLE
    ulong bits = as_ulong(*size);
    uint high = (uint)(bits >> 32), best_high = warp_max(high);
#if VOTES  // one lane has it, as a rule
    uint who = ballot(high == best_high);
    if ((who & (who - 1)) == 0) {
        uint lane = lowest_bit(who);
        *row = from_lane(*row, lane);
        *size = as_double(((ulong)best_high << 32) | from_lane((uint)bits, lane));
        return;
    }
#endif
    uint low = high == best_high ? (uint)bits : 0u, best_low = warp_max(low);
    *row = warp_min(high == best_high && (uint)bits == best_low ? *row : 0xffffffffu);
    *size = as_double(((ulong)best_high << 32) | best_low);
#else
    uint bits = as_uint(*size), best = warp_max(bits);
    *row = warp_min(bits == best ? *row : 0xffffffffu);
    *size = as_float(best);
#endif
}
#endif
