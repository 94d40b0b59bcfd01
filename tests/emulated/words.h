// The words of CUDA C++ that kernel texts use, for a host compiler. Threads are fibers of fibers.cpp, which says what is exact
// and what is not. compiler.py puts this in front of every text; it includes nothing, since a C library's own `ulong` and kin
// would meet those of common/portable.h.

#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
typedef __SIZE_TYPE__ size_t;

#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
// Words that compiler.py finds in the preprocessed text: entries, their clusters; it also makes references into the local
// memory of the group that runs of __shared__ arrays, and calls of asm.
#define __global__ EMULATED_KERNEL
#define LARGE_LOCAL_ARRAY(type, name, count) __shared__ type name[count]
#define __cluster_dims__(x, y, z) EMULATED_CLUSTER(x)

// ------------------------------------------------------------------------------------------------------- of fibers.cpp
struct EmulatedIndex { unsigned x, y, z; };
struct EmulatedThread {
    EmulatedIndex thread, block, grid;
    unsigned char *local;  // the local memory of its group
};
enum EmulatedCollective { WARP_SYNC, WARP_BALLOT, WARP_SHUFFLE, WARP_MAX, WARP_MIN, WARP_ADD, WARP_AND, WARP_OR, WARP_XOR,
                          WARP_MATCH };
extern "C" {
extern EmulatedThread *emulated_now;
unsigned emulated_reserve(const void *module, unsigned bytes, const char *name);
void emulated_barrier();
unsigned long long emulated_warp(int collective, unsigned mask, unsigned long long value, unsigned lane);
void emulated_atomic(void *address, unsigned size);  // another thread may run before an atomic operation
void emulated_fence();
void emulated_cluster_arrive();
void emulated_cluster_wait();
unsigned emulated_cluster_rank();
unsigned emulated_local_address(const void *p);
unsigned emulated_map_address(unsigned address, unsigned rank);
void emulated_send(unsigned to, unsigned long long value, unsigned bytes, unsigned box);
void emulated_box_open(unsigned box, unsigned count);
void emulated_box_expect(unsigned box, unsigned bytes);
void emulated_box_wait(unsigned box, unsigned parity);
void emulated_copy(unsigned to, const void *from, unsigned bytes, unsigned valid);
void emulated_copies_close();
void emulated_copies_wait(unsigned left);
}
static char emulated_module;  // its address tells the texts apart
#define EMULATED_SHARED(type, name, count)                                                          \
    static unsigned name##_at = emulated_reserve(&emulated_module, sizeof(type[count]), #name);     \
    type(&name)[count] = *(type(*)[count])(emulated_now->local + name##_at)

// Calls a kernel with its packed arguments, each where C aligns it.
template <class... A> constexpr unsigned emulated_size(void (*)(A...)) {
    unsigned end = 0;
    ((end = (end + alignof(A) - 1) / alignof(A) * alignof(A) + sizeof(A)), ...);
    return end;
}
template <class T> T emulated_take(const char *packed, unsigned &at) {
    alignas(T) char bytes[sizeof(T)];
    at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
    __builtin_memcpy(bytes, packed + at, sizeof(T));
    at += sizeof(T);
    return *(T *)bytes;
}
template <class... A> struct EmulatedCall {  // braces evaluate their arguments in order
    EmulatedCall(void (*kernel)(A...), A... arguments) { kernel(arguments...); }
};
template <class... A> void emulated_call(void (*kernel)(A...), const char *packed) {
    unsigned at = 0;
    EmulatedCall<A...>{kernel, emulated_take<A>(packed, at)...};
}
#define EMULATED_EXPORT extern "C" __attribute__((visibility("default")))
#define EMULATED_ENTRY(name, groups)                                                                \
    EMULATED_EXPORT void emulated_entry_##name(const char *packed) { emulated_call(name, packed); } \
    EMULATED_EXPORT unsigned emulated_size_##name() { return emulated_size(name); }                 \
    EMULATED_EXPORT unsigned emulated_cluster_##name() { return groups; }
EMULATED_EXPORT const void *emulated_module_address() { return &emulated_module; }

#define threadIdx (emulated_now->thread)
#define blockIdx (emulated_now->block)
#define gridDim (emulated_now->grid)
#define __syncthreads() emulated_barrier()
#define __threadfence() emulated_fence()
#define __cluster_barrier_arrive() emulated_cluster_arrive()
#define __cluster_barrier_wait() emulated_cluster_wait()
#define __clusterRelativeBlockRank() emulated_cluster_rank()
#define __cvta_generic_to_shared(p) emulated_local_address(p)

// ------------------------------------------------------------------------------------------------------ PTX instructions
// asm("op.like.this %0, [%1], 4;" : outputs : inputs) is ptx_op_like_this(output, input, 4).
inline void ptx_mapa_shared_cluster_u32(unsigned &there, unsigned address, unsigned rank) {
    there = emulated_map_address(address, rank);
}
inline void ptx_st_async_weak_shared_cluster_mbarrier_complete_tx_bytes_v2_b32(unsigned to, unsigned x, unsigned y,
                                                                               unsigned box) {
    emulated_send(to, x, 4, box);
    emulated_send(to + 4, y, 4, box);
}
inline void ptx_st_async_weak_shared_cluster_mbarrier_complete_tx_bytes_v2_b64(unsigned to, unsigned long long x,
                                                                               unsigned long long y, unsigned box) {
    emulated_send(to, x, 8, box);
    emulated_send(to + 8, y, 8, box);
}
inline void ptx_mbarrier_init_shared_cta_b64(unsigned box, unsigned count) { emulated_box_open(box, count); }
inline void ptx_fence_mbarrier_init_release_cluster() {}
inline void ptx_mbarrier_arrive_expect_tx_shared_cta_b64(unsigned box, unsigned bytes) { emulated_box_expect(box, bytes); }
inline void ptx_mbarrier_try_wait_parity_shared_cta_b64(unsigned box, unsigned parity) { emulated_box_wait(box, parity); }
inline void ptx_cp_async_ca_shared_global(unsigned to, const void *from, unsigned bytes, unsigned valid) {
    emulated_copy(to, from, bytes, valid);
}
inline void ptx_cp_async_cg_shared_global(unsigned to, const void *from, unsigned bytes, unsigned valid) {
    emulated_copy(to, from, bytes, valid);
}
inline void ptx_cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(unsigned to, const void *from,
                                                                               unsigned bytes, unsigned box) {
    for (unsigned at = 0; at < bytes; at += 8) {
        unsigned long long word;
        __builtin_memcpy(&word, (const char *)from + at, sizeof word);
        emulated_send(to + at, word, sizeof word, box);
    }
}
inline void ptx_mov_u32(unsigned &y, unsigned x) { y = x; }
inline void ptx_rcp_approx_ftz_f32(float &y, float x) { y = 1.0f / x; }
inline void ptx_cvt_rn_f16_f32(unsigned short &y, float x) {
    _Float16 half = (_Float16)x;
    __builtin_memcpy(&y, &half, sizeof half);
}
inline void ptx_cvt_f32_f16(float &y, unsigned short x) {
    _Float16 half;
    __builtin_memcpy(&half, &x, sizeof half);
    y = (float)half;
}
inline void ptx_cp_async_commit_group() { emulated_copies_close(); }
inline void ptx_cp_async_wait_group(unsigned left) { emulated_copies_wait(left); }

// ------------------------------------------------------------------------------------------------------------ vector types
#define EMULATED_VECTOR2(T, S, align)                                                               \
    struct __attribute__((aligned(align))) T { S x, y; };                                           \
    inline T make_##T(S x, S y) { return {x, y}; }
#define EMULATED_VECTOR3(T, S)                                                                      \
    struct T { S x, y, z; };                                                                        \
    inline T make_##T(S x, S y, S z) { return {x, y, z}; }
#define EMULATED_VECTOR4(T, S, align)                                                               \
    struct __attribute__((aligned(align))) T { S x, y, z, w; };                                     \
    inline T make_##T(S x, S y, S z, S w) { return {x, y, z, w}; }
#define EMULATED_VECTORS(name, S, bytes)                                                            \
    EMULATED_VECTOR2(name##2, S, 2 * bytes)                                                         \
    EMULATED_VECTOR3(name##3, S)                                                                    \
    EMULATED_VECTOR4(name##4, S, (4 * bytes < 16 ? 4 * bytes : 16))
EMULATED_VECTORS(char, signed char, 1)
EMULATED_VECTORS(uchar, unsigned char, 1)
EMULATED_VECTORS(short, short, 2)
EMULATED_VECTORS(ushort, unsigned short, 2)
EMULATED_VECTORS(int, int, 4)
EMULATED_VECTORS(uint, unsigned, 4)
EMULATED_VECTORS(float, float, 4)
EMULATED_VECTORS(double, double, 8)
EMULATED_VECTORS(longlong, long long, 8)
EMULATED_VECTORS(ulonglong, unsigned long long, 8)
EMULATED_VECTORS(long, long, 8)
EMULATED_VECTORS(ulong, unsigned long, 8)

// ------------------------------------------------------------------------------------------------------------------ bits
template <class To, class From> inline To emulated_bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "");
    To y;
    __builtin_memcpy(&y, &x, sizeof(To));
    return y;
}
inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
inline int __float_as_int(float x) { return emulated_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
inline float __int_as_float(int x) { return emulated_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1u) << (31 - i);
    return y;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned bits) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (bits & 31u) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (bits & 31u));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    unsigned long long pool = (unsigned long long)b << 32 | a;
    unsigned y = 0;
    for (int i = 0; i < 4; i++) y |= (unsigned)(pool >> 8 * (selector >> 4 * i & 7u) & 255u) << 8 * i;
    return y;
}
inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline long min(long a, long b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
inline long long max(long long a, long long b) { return a > b ? a : b; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
inline long max(long a, long b) { return a > b ? a : b; }
inline int abs(int x) { return __builtin_abs(x); }
inline long abs(long x) { return __builtin_labs(x); }
inline long long abs(long long x) { return __builtin_llabs(x); }
inline int __vimax3_s32_relu(int a, int b, int c) { return max(max(max(a, b), c), 0); }
inline int __vimin3_s32(int a, int b, int c) { return min(min(a, b), c); }
inline unsigned __vimin_s16x2_relu(unsigned a, unsigned b) {
    int low = max(min((int)(short)a, (int)(short)b), 0), high = max(min((int)(short)(a >> 16), (int)(short)(b >> 16)), 0);
    return (unsigned)low | (unsigned)high << 16;
}

// ------------------------------------------------------------------------------------------------------------------ floats
// The C library's, which is within a unit in the last place as CUDA's own are; the fast ones have more digits here than there.
#define EMULATED_MATH1(name)                                                                        \
    extern "C" double name(double) noexcept;                                                        \
    extern "C" float name##f(float) noexcept;                                                       \
    inline float name(float x) { return name##f(x); }
#define EMULATED_MATH2(name)                                                                        \
    extern "C" double name(double, double) noexcept;                                                \
    extern "C" float name##f(float, float) noexcept;                                                \
    inline float name(float x, float y) { return name##f(x, y); }
EMULATED_MATH1(sin) EMULATED_MATH1(cos) EMULATED_MATH1(tan) EMULATED_MATH1(asin) EMULATED_MATH1(acos) EMULATED_MATH1(atan)
EMULATED_MATH1(sinh) EMULATED_MATH1(cosh) EMULATED_MATH1(tanh) EMULATED_MATH1(asinh) EMULATED_MATH1(acosh) EMULATED_MATH1(atanh)
EMULATED_MATH1(exp) EMULATED_MATH1(exp2) EMULATED_MATH1(expm1) EMULATED_MATH1(log) EMULATED_MATH1(log2) EMULATED_MATH1(log10)
EMULATED_MATH1(log1p) EMULATED_MATH1(sqrt) EMULATED_MATH1(cbrt) EMULATED_MATH1(floor) EMULATED_MATH1(ceil) EMULATED_MATH1(trunc)
EMULATED_MATH1(round) EMULATED_MATH1(rint) EMULATED_MATH1(fabs) EMULATED_MATH1(erf) EMULATED_MATH1(tgamma) EMULATED_MATH1(lgamma)
EMULATED_MATH2(pow) EMULATED_MATH2(atan2) EMULATED_MATH2(fmod) EMULATED_MATH2(hypot) EMULATED_MATH2(fmin) EMULATED_MATH2(fmax)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
EMULATED_MATH2(copysign) EMULATED_MATH2(remainder) EMULATED_MATH2(nextafter) EMULATED_MATH2(fdim)
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
inline float ldexp(float x, int n) { return ldexpf(x, n); }
extern "C" double frexp(double, int *) noexcept;
extern "C" float frexpf(float, int *) noexcept;
inline float frexp(float x, int *n) { return frexpf(x, n); }
extern "C" void sincosf(float, float *, float *) noexcept;
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }
inline float __fdividef(float a, float b) { return a / b; }
template <class T>
inline T __ldcs(const T *p) { return *p; }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
// nvcc never joins these with a neighbor into one rounding.
#define EMULATED_ROUNDED(name, T, op)                                                               \
    __attribute__((noinline, optimize("fp-contract=off"))) static T name(T a, T b) { return a op b; }
EMULATED_ROUNDED(__fadd_rn, float, +) EMULATED_ROUNDED(__fsub_rn, float, -) EMULATED_ROUNDED(__fmul_rn, float, *)
EMULATED_ROUNDED(__fdiv_rn, float, /) EMULATED_ROUNDED(__dadd_rn, double, +) EMULATED_ROUNDED(__dsub_rn, double, -)
EMULATED_ROUNDED(__dmul_rn, double, *) EMULATED_ROUNDED(__ddiv_rn, double, /)
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }

// --------------------------------------------------------------------------------------------------------- atomics, warps
#define EMULATED_UNSEEN __attribute__((no_sanitize("thread")))  // emulated_atomic tells of the access
template <class T> struct EmulatedSame { typedef T type; };
template <class T> using EmulatedValue = typename EmulatedSame<T>::type;  // is not deduced: takes what the place takes
#define EMULATED_ATOMIC(name, now)                                                                  \
    template <class T> EMULATED_UNSEEN T name(T *p, EmulatedValue<T> v) {                           \
        emulated_atomic(p, sizeof(T));                                                              \
        T old = *p;                                                                                 \
        *p = now;                                                                                   \
        return old;                                                                                 \
    }
EMULATED_ATOMIC(atomicAdd, old + v)
EMULATED_ATOMIC(atomicSub, old - v)
EMULATED_ATOMIC(atomicOr, old | v)
EMULATED_ATOMIC(atomicAnd, old & v)
EMULATED_ATOMIC(atomicXor, old ^ v)
EMULATED_ATOMIC(atomicMin, (v < old ? v : old))
EMULATED_ATOMIC(atomicMax, (v > old ? v : old))
EMULATED_ATOMIC(atomicExch, v)
inline float4 atomicAdd(float4 *p, float4 v) {
    return make_float4(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w));
}
template <class T> EMULATED_UNSEEN T atomicCAS(T *p, EmulatedValue<T> expected, EmulatedValue<T> v) {
    emulated_atomic(p, sizeof(T));
    T old = *p;
    if (old == expected) *p = v;
    return old;
}
template <class T> inline unsigned long long emulated_word(T x) {
    unsigned long long word = 0;
    __builtin_memcpy(&word, &x, sizeof(T));
    return word;
}
template <class T> inline T emulated_unword(unsigned long long word) {
    T x;
    __builtin_memcpy(&x, &word, sizeof(T));
    return x;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { emulated_warp(WARP_SYNC, mask, 0, 0); }
inline unsigned __ballot_sync(unsigned mask, int flag) { return (unsigned)emulated_warp(WARP_BALLOT, mask, flag != 0, 0); }
inline int __all_sync(unsigned mask, int flag) { return !emulated_warp(WARP_BALLOT, mask, flag == 0, 0); }
inline int __any_sync(unsigned mask, int flag) { return emulated_warp(WARP_BALLOT, mask, flag != 0, 0) != 0; }
template <class T> T __shfl_sync(unsigned mask, T x, int lane) {
    return emulated_unword<T>(emulated_warp(WARP_SHUFFLE, mask, emulated_word(x), (unsigned)lane & 31u));
}
inline void ptx_mma_sync_aligned_m8n8k4_row_col_f64_f64_f64_f64(double &to0, double &to1, double a, double b, double c0, double c1) {
    int lane = threadIdx.x & 31u, row = lane / 4 * 4, column = lane % 4 * 8;  // lanes that hold the row of a, columns of b
    for (int k = 0; k < 4; k++) {
        double left = __shfl_sync(0xffffffffu, a, row + k);
        c0 = __builtin_fma(left, __shfl_sync(0xffffffffu, b, column + k), c0);
        c1 = __builtin_fma(left, __shfl_sync(0xffffffffu, b, column + 4 + k), c1);
    }
    to0 = c0;
    to1 = c1;
}
// m16n8k4, k8: for every four columns of a, its upper and lower eight rows by the product above.
template <int PARTS> void emulated_mma16(double *c, const double *a, const double *b) {
    for (int q = 0; q < PARTS; q++)
        for (int half = 0; half < 2; half++)
            ptx_mma_sync_aligned_m8n8k4_row_col_f64_f64_f64_f64(c[half * 2], c[half * 2 + 1], a[q * 2 + half], b[q],
                                                                c[half * 2], c[half * 2 + 1]);
}
inline void ptx_mma_sync_aligned_m16n8k4_row_col_f64_f64_f64_f64(double &to0, double &to1, double &to2, double &to3, double a0,
                                                                 double a1, double b, double c0, double c1, double c2, double c3) {
    double c[4] = {c0, c1, c2, c3}, a[2] = {a0, a1};
    emulated_mma16<1>(c, a, &b);
    to0 = c[0], to1 = c[1], to2 = c[2], to3 = c[3];
}
inline void ptx_mma_sync_aligned_m16n8k8_row_col_f64_f64_f64_f64(double &to0, double &to1, double &to2, double &to3, double a0,
                                                                 double a1, double a2, double a3, double b0, double b1, double c0,
                                                                 double c1, double c2, double c3) {
    double c[4] = {c0, c1, c2, c3}, a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
    emulated_mma16<2>(c, a, b);
    to0 = c[0], to1 = c[1], to2 = c[2], to3 = c[3];
}
template <class T> T __shfl_xor_sync(unsigned mask, T x, int bits) {
    return emulated_unword<T>(emulated_warp(WARP_SHUFFLE, mask, emulated_word(x), (threadIdx.x ^ (unsigned)bits) & 31u));
}
template <class T> T __shfl_up_sync(unsigned mask, T x, unsigned by) {
    unsigned lane = threadIdx.x & 31u;
    return emulated_unword<T>(emulated_warp(WARP_SHUFFLE, mask, emulated_word(x), lane < by ? lane : lane - by));
}
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned by) {
    unsigned lane = threadIdx.x & 31u;
    return emulated_unword<T>(emulated_warp(WARP_SHUFFLE, mask, emulated_word(x), lane + by > 31u ? lane : lane + by));
}
template <class T> unsigned __match_any_sync(unsigned mask, T x) {
    return (unsigned)emulated_warp(WARP_MATCH, mask, emulated_word(x), 0);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned x) { return (unsigned)emulated_warp(WARP_MAX, mask, x, 0); }
inline unsigned __reduce_min_sync(unsigned mask, unsigned x) { return (unsigned)emulated_warp(WARP_MIN, mask, x, 0); }
inline unsigned __reduce_add_sync(unsigned mask, unsigned x) { return (unsigned)emulated_warp(WARP_ADD, mask, x, 0); }
inline unsigned __reduce_and_sync(unsigned mask, unsigned x) { return (unsigned)emulated_warp(WARP_AND, mask, x, 0); }
inline unsigned __reduce_or_sync(unsigned mask, unsigned x) { return (unsigned)emulated_warp(WARP_OR, mask, x, 0); }
inline unsigned __reduce_xor_sync(unsigned mask, unsigned x) { return (unsigned)emulated_warp(WARP_XOR, mask, x, 0); }
template <class T> T __ldg(const T *p) { return *p; }
