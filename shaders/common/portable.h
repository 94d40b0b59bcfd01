// One dialect for CUDA C++ (NVRTC) and OpenCL C 1.2: macros and functions for everything that the two languages name
// differently. renderer/gpu/kernel_source.py prepends this file to every kernel; other kernel files do not ask which
// compiler runs. Kernels are C99 that both compile: `f` on literals, GLOBAL on pointers, no references, no `auto`, no
// swizzles (use xyz()). The file has three sections: CUDA, OpenCL C, both. Names of OpenCL C, such as as_uint, clz,
// mul_hi, clamp, vload8 or atom_add (64 bits; atomic_add has 32), mean the same in CUDA, and make_float4 as in CUDA.
// Terms: a group is a CUDA thread block or an OpenCL work-group; the host defines GROUP_SIZE, its number of threads. A
// warp is 32 consecutive threads of a group, and a lane is a thread's index in its warp. LOCAL memory is CUDA's shared
// memory. Every thread of a group must reach BARRIER, and every thread of a warp must reach the warp functions (ballot,
// warp_shuffle, warp_all). Carry a `bool active` flag; never return early above such a call.
//
// How functions are declared:
//     KERNEL                  a kernel; it returns nothing. KERNEL_MIN_GROUPS(n): with n groups per multiprocessor
//     DEVICE                  an inlined function
//     DEVICE_NOINLINE         a call on NVIDIA's devices, inlined on CPUs
//     DEVICE_NOINLINE_ALWAYS  a call everywhere, for long code; it may not use LOCAL memory (a fault of PoCL 3.1)
//     DEVICE_NOINLINE_CPU     a call on CPUs, whose compiler's time grows with each copy; inlined on GPUs
// How threads wait:
//     BARRIER, WARP_BARRIER   for all threads of the group or warp, whose stores are then visible to one another
//     GLOBAL_FENCE            orders this thread's stores to global memory for threads of other groups; waits for none
// What the device has, each 0 or 1:
//     HAS_BALLOT              the warp functions ballot, warp_all and warp_shuffle of uint
//     HAS_SHUFFLE             warp_shuffle of floats and doubles too
//     HAS_WARP_REDUCTION      warp_max and warp_min
//     HAS_MOVEMASK            movemask8 and movemask16 of vectors: OpenCL but NVIDIA's, such as on CPUs
//     HAS_INT64_ATOMICS, HAS_FP64_TENSOR_CORES
//     HAS_FLOAT4_ATOMICS, HAS_ASYNC_COPY, HAS_HALF_CONVERSIONS (not defined instead of 0)
// UNROLL and NO_UNROLL stand before a loop. STRICT, if the host defines it, forbids contraction to fused multiply-adds.

#ifdef __CUDACC_RTC__  // ---------------------------------------------------------------------------------------- CUDA
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;
typedef long long int64;
#ifdef MIN_GROUPS_PER_SM  // of the host: resident groups per multiprocessor, which limit the registers of a thread
#define KERNEL extern "C" __global__ void __launch_bounds__(GROUP_SIZE, MIN_GROUPS_PER_SM)
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(GROUP_SIZE)
#endif
// A kernel with at least `groups` resident groups per multiprocessor (minBlocksPerMultiprocessor). No effect in OpenCL.
#define KERNEL_MIN_GROUPS(groups) extern "C" __global__ void __launch_bounds__(GROUP_SIZE, groups)
#define DEVICE static __device__ __forceinline__
#define DEVICE_NOINLINE static __device__ __noinline__
#define DEVICE_NOINLINE_ALWAYS static __device__ __noinline__
#define DEVICE_NOINLINE_CPU DEVICE
#define GLOBAL
#define LOCAL
#define CONSTANT_ARRAY static __device__ const  // at file scope: CONSTANT_ARRAY float weights[4] = {...};
#define RESTRICT __restrict__
#define LOCAL_ARRAY(type, name, count) __shared__ type name[count]
// A LOCAL array of more than 48 KiB; a kernel may have one. The host reserves its bytes by reserve_local(). Tests that
// emulate CUDA on CPUs define the macro themselves.
#ifndef LARGE_LOCAL_ARRAY
#define LARGE_LOCAL_ARRAY(type, name, count) extern __shared__ __align__(16) type name[]
#endif
#define BARRIER() __syncthreads()
#define WARP_BARRIER() __syncwarp()
#define GLOBAL_FENCE() __threadfence()
#define thread_index() (blockIdx.x * GROUP_SIZE + threadIdx.x)
#define thread_index_long() ((ulong)blockIdx.x * GROUP_SIZE + threadIdx.x)
#define local_index() (threadIdx.x)
#define group_index() (blockIdx.x)
#define group_count() (gridDim.x)
#define UNROLL _Pragma("unroll")
// Code that executes once is bound by instruction fetch, so a small loop is faster than unrolled code.
#define NO_UNROLL _Pragma("unroll 1")
// Keeps the compiler from moving later loads above this line, where their results would occupy registers.
#define COMPILER_BARRIER() asm volatile("" : : : "memory")

#define as_uint(x) __float_as_uint(x)
#define as_int(x) __float_as_int(x)
DEVICE float as_float(uint x) { return __uint_as_float(x); }
DEVICE float as_float(int x) { return __int_as_float(x); }
#define as_ulong(x) ((ulong)__double_as_longlong(x))
#define as_double(x) __longlong_as_double((long long)(x))
#define popcount(x) ((uint)__popc(x))
#define reverse_bits(x) __brev(x)
DEVICE int clz(int x) { return __clz(x); }
DEVICE int clz(uint x) { return __clz((int)x); }
DEVICE int clz(ulong x) { return __clzll((long long)x); }
#define min_nnan(a, b) fminf(a, b)  // minimum and maximum of numbers that are never NaN: one instruction each
#define max_nnan(a, b) fmaxf(a, b)
#define mul_hi(a, b) __umulhi(a, b)
// Low half of (high:low) >> bits, bits < 32
#define funnel_shift_right(low, high, bits) __funnelshift_r(low, high, bits)
// High half of (high:low) << bits, bits < 32
#define funnel_shift_left(low, high, bits) __funnelshift_l(low, high, bits)
// 1 / x within 1 ulp for 2^-125 <= |x| <= 2^125: the approximate instruction and one Newton step, without a branch for
// other x.
DEVICE float fast_rcp(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return fmaf(y, fmaf(-x, y, 1.0f), y);
}
#define HAS_HALF_CONVERSIONS  // between a float and the bits of the nearest IEEE half float, ties to even
DEVICE ushort float_to_half(float x) {
    ushort bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
DEVICE float half_to_float(ushort bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
DEVICE float clamp(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
DEVICE int clamp(int x, int low, int high) { return min(max(x, low), high); }

#define ATOMIC_FUNCTIONS(type)                                          \
    DEVICE type atomic_add(type *p, type v) { return atomicAdd(p, v); } \
    DEVICE type atomic_or(type *p, type v) { return atomicOr(p, v); }   \
    DEVICE type atomic_min(type *p, type v) { return atomicMin(p, v); } \
    DEVICE type atomic_max(type *p, type v) { return atomicMax(p, v); } \
    DEVICE type atomic_xchg(type *p, type v) { return atomicExch(p, v); }
ATOMIC_FUNCTIONS(uint)
ATOMIC_FUNCTIONS(int)
DEVICE ulong atom_add(ulong *p, ulong v) { return atomicAdd(p, v); }
DEVICE ulong atom_max(ulong *p, ulong v) { return atomicMax(p, v); }
DEVICE void atomic_add_float(float *p, float v) { atomicAdd(p, v); }
#if __CUDA_ARCH__ >= 900  // a single 16-byte instruction
DEVICE void atomic_add_float4(float4 *p, float4 v) { atomicAdd(p, v); }
#define HAS_FLOAT4_ATOMICS 1
#endif
#define HAS_INT64_ATOMICS 1

// Elementwise vector operators. EACHn lists `a.x op b.x` and so on for two vectors, EACHn_SCALAR for a vector and a
// scalar.
#define EACH2(a, op, b) a.x op b.x, a.y op b.y
#define EACH3(a, op, b) EACH2(a, op, b), a.z op b.z
#define EACH4(a, op, b) EACH3(a, op, b), a.w op b.w
#define EACH2_SCALAR(a, op, b) a.x op b, a.y op b
#define EACH3_SCALAR(a, op, b) EACH2_SCALAR(a, op, b), a.z op b
#define EACH4_SCALAR(a, op, b) EACH3_SCALAR(a, op, b), a.w op b
#define VECTOR_OPERATORS(T, S, N)                                                \
    DEVICE T operator+(T a, T b) { return make_##T(EACH##N(a, +, b)); }          \
    DEVICE T operator-(T a, T b) { return make_##T(EACH##N(a, -, b)); }          \
    DEVICE T operator*(T a, T b) { return make_##T(EACH##N(a, *, b)); }          \
    DEVICE T operator/(T a, T b) { return make_##T(EACH##N(a, /, b)); }          \
    DEVICE T operator+(T a, S b) { return make_##T(EACH##N##_SCALAR(a, +, b)); } \
    DEVICE T operator-(T a, S b) { return make_##T(EACH##N##_SCALAR(a, -, b)); } \
    DEVICE T operator*(T a, S b) { return make_##T(EACH##N##_SCALAR(a, *, b)); } \
    DEVICE T operator*(S a, T b) { return b * a; }                               \
    DEVICE T operator/(T a, S b) { return make_##T(EACH##N##_SCALAR(a, /, b)); } \
    DEVICE void operator+=(T &a, T b) { a = a + b; }                             \
    DEVICE void operator-=(T &a, T b) { a = a - b; }                             \
    DEVICE void operator*=(T &a, T b) { a = a * b; }                             \
    DEVICE void operator*=(T &a, S b) { a = a * b; }
VECTOR_OPERATORS(float2, float, 2)
VECTOR_OPERATORS(float3, float, 3)
VECTOR_OPERATORS(float4, float, 4)
VECTOR_OPERATORS(double2, double, 2)
DEVICE float3 operator-(float3 a) { return make_float3(-a.x, -a.y, -a.z); }
DEVICE float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE float3 cross(float3 a, float3 b) {
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

// Vectors of 8 and 16 as in OpenCL, which CPUs hold in SIMD registers. SPLAT(type, x) broadcasts x to all elements.
#define WIDE_OPERATOR(T, N, op)                                \
    DEVICE T operator op(T a, T b) {                           \
        for (int i = 0; i < N; i++) a.s[i] = a.s[i] op b.s[i]; \
        return a;                                              \
    }
#define WIDE_VECTOR(T, S, N)                                              \
    typedef struct __align__(sizeof(S) * N / 4) {                         \
        S s[N];                                                           \
    } T;                                                                  \
    DEVICE T splat_##T(S x) {                                             \
        T r;                                                              \
        for (int i = 0; i < N; i++) r.s[i] = x;                           \
        return r;                                                         \
    }                                                                     \
    WIDE_OPERATOR(T, N, +)                                                \
    WIDE_OPERATOR(T, N, -)                                                \
    WIDE_OPERATOR(T, N, *)                                                \
    DEVICE T operator*(S a, T b) { return splat_##T(a) * b; }             \
    DEVICE void operator+=(T &a, T b) { a = a + b; }                      \
    DEVICE T fma(T a, T b, T c) {                                         \
        for (int i = 0; i < N; i++) c.s[i] = fma(a.s[i], b.s[i], c.s[i]); \
        return c;                                                         \
    }                                                                     \
    DEVICE T vload##N(size_t i, const S *p) {                             \
        T r;                                                              \
        for (int j = 0; j < N; j++) r.s[j] = p[i * N + j];                \
        return r;                                                         \
    }                                                                     \
    DEVICE void vstore##N(T a, size_t i, S *p) {                          \
        for (int j = 0; j < N; j++) p[i * N + j] = a.s[j];                \
    }
WIDE_VECTOR(float8, float, 8)
WIDE_VECTOR(float16, float, 16)
WIDE_VECTOR(double8, double, 8)
DEVICE double8 fabs(double8 a) {
    for (int i = 0; i < 8; i++) a.s[i] = fabs(a.s[i]);
    return a;
}
// Tests the bits: comparisons of doubles would occupy the double unit.
DEVICE bool any_nonzero(double8 a) {
    ulong bits = 0;
    for (int i = 0; i < 8; i++) bits |= as_ulong(a.s[i]);
    return (bits & 0x7fffffffffffffffull) != 0;
}
// True if the magnitude of any element is outside [low, high] or NaN.
DEVICE bool any_outside(double8 a, double low, double high) {
    bool r = false;
    for (int i = 0; i < 8; i++) r |= !(fabs(a.s[i]) >= low && fabs(a.s[i]) <= high);
    return r;
}
// Sets the last mantissa bit of every element that is not zero (`bits << 1` drops the sign).
DEVICE double8 or_lsb_nonzero(double8 a) {
    for (int i = 0; i < 8; i++) {
        ulong bits = as_ulong(a.s[i]);
        a.s[i] = as_double(bits | ((bits << 1) != 0 ? 1ull : 0ull));
    }
    return a;
}
DEVICE double8 convert_double8(double8 a) { return a; }
DEVICE double8 convert_double8(float8 a) {
    double8 r;
    for (int i = 0; i < 8; i++) r.s[i] = a.s[i];
    return r;
}
DEVICE float8 make_float8(float4 a, float4 b) {
    float8 r = {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    return r;
}
DEVICE double8 make_double8(double2 a, double2 b, double2 c, double2 d) {
    double8 r = {{a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y}};
    return r;
}
#define SPLAT_WORD(type, x) splat_##type(x)
#define SPLAT(type, x) SPLAT_WORD(type, x)  // two macros, so that `type` may itself be a macro

// Warp functions; all 32 threads of the warp must call. ballot(): mask of the lanes whose flag is true. warp_all():
// true if the flag is true in all lanes. warp_shuffle(x, lane): the value of x in lane `lane`.
#define HAS_BALLOT 1
#define HAS_MOVEMASK 0
DEVICE uint ballot(bool flag) { return __ballot_sync(0xffffffffu, flag); }
DEVICE bool warp_all(bool flag) { return __all_sync(0xffffffffu, flag); }
#define HAS_SHUFFLE 1
DEVICE float warp_shuffle(float x, uint lane) { return __shfl_sync(0xffffffffu, x, lane); }
DEVICE double warp_shuffle(double x, uint lane) { return __shfl_sync(0xffffffffu, x, lane); }
DEVICE uint warp_shuffle(uint x, uint lane) { return __shfl_sync(0xffffffffu, x, lane); }

// Thread block clusters: the groups of a cluster run concurrently and store into one another's shared memory
// (distributed shared memory). KERNEL_CLUSTER(n) declares a kernel that is launched over one cluster of n groups;
// cluster_rank() is this group's index in the cluster. CLUSTER_BARRIER synchronizes all threads of the cluster and
// makes their stores visible; it takes about a microsecond. DSMEM_STORE(p, rank, x, y, barrier) stores x and y, two
// floats or doubles, to p[0] and p[1], aligned as a pair, in the shared memory of group `rank` (st.async) and adds the
// bytes to that group's mbarrier. The receiving group calls mbarrier_init once, followed by CLUSTER_BARRIER. For each
// phase one of its threads calls mbarrier_expect_tx(bytes) and the readers call mbarrier_wait(parity); parity is 0 in
// the first phase, then 1, 0, ...
#if __CUDA_ARCH__ >= 900
#define KERNEL_CLUSTER(groups) extern "C" __global__ void __cluster_dims__(groups, 1, 1) __launch_bounds__(GROUP_SIZE)
#define CLUSTER_ARRIVE() __cluster_barrier_arrive()  // first half of CLUSTER_BARRIER
#define CLUSTER_WAIT() __cluster_barrier_wait()
#define CLUSTER_BARRIER() (__cluster_barrier_arrive(), __cluster_barrier_wait())
#define cluster_rank() (__clusterRelativeBlockRank())
#define LOCAL_ADDRESS(p) ((uint)__cvta_generic_to_shared(p))
DEVICE uint dsmem_address(const void *p, uint rank) {
    uint address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(LOCAL_ADDRESS(p)), "r"(rank));
    return address;
}
DEVICE void dsmem_store(float *p, uint rank, float x, float y, ulong *barrier) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
                 :
                 : "r"(dsmem_address(p, rank)), "r"(as_uint(x)), "r"(as_uint(y)), "r"(dsmem_address(barrier, rank))
                 : "memory");
}
DEVICE void dsmem_store(double *p, uint rank, double x, double y, ulong *barrier) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];"
                 :
                 : "r"(dsmem_address(p, rank)), "l"(as_ulong(x)), "l"(as_ulong(y)), "r"(dsmem_address(barrier, rank))
                 : "memory");
}
#define DSMEM_STORE(p, rank, x, y, barrier) dsmem_store(p, (uint)(rank), x, y, barrier)
DEVICE void mbarrier_init(ulong *barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(LOCAL_ADDRESS(barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}
DEVICE void mbarrier_expect_tx(ulong *barrier, uint bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(LOCAL_ADDRESS(barrier)), "r"(bytes)
                 : "memory");
}
DEVICE void mbarrier_wait(ulong *barrier, uint parity) {
    asm volatile("{ .reg .pred full; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 full, [%0], %1;"
                 " @!full bra AGAIN; }"
                 :
                 : "r"(LOCAL_ADDRESS(barrier)), "r"(parity)
                 : "memory");
}
// Copies `bytes` bytes, a multiple of 16, from global to local memory while threads compute (cp.async.bulk); both begin
// at multiples of 16. The mbarrier counts the bytes, as it does for DSMEM_STORE.
DEVICE void bulk_copy(void *to, const void *from, uint bytes, ulong *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :
                 : "r"(LOCAL_ADDRESS(to)), "l"(from), "r"(bytes), "r"(LOCAL_ADDRESS(barrier))
                 : "memory");
}
#endif

#if __CUDA_ARCH__ >= 800
#define HAS_FP64_TENSOR_CORES 1
// c (8 x 8) += a (8 x 4) b (4 x 8), computed by a whole warp (mma.m8n8k4, f64). Lane k holds a[k / 4][k % 4], b[k %
// 4][k / 4] and c[k / 4][k % 4 * 2 + (0, 1)].
DEVICE void mma_m8n8k4_f64(double *c, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};"
        : "=d"(c[0]), "=d"(c[1])
        : "d"(a), "d"(b), "d"(c[0]), "d"(c[1]));
}
#endif
#if __CUDA_ARCH__ >= 900
// The same product where `a` has 16 rows and 4 or 8 columns. Lane k holds c[k / 4 + (0, 8)][k % 4 * 2 + (0, 1)]
// and, for each block of four columns of `a` in turn, a[k / 4 + (0, 8)][k % 4] and b[k % 4][k / 4].
DEVICE void mma_m16n8k4_f64(double *c, const double *a, const double *b) {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
        : "=d"(c[0]), "=d"(c[1]), "=d"(c[2]), "=d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(b[0]), "d"(c[0]), "d"(c[1]), "d"(c[2]), "d"(c[3]));
}
DEVICE void mma_m16n8k8_f64(double *c, const double *a, const double *b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=d"(c[0]), "=d"(c[1]), "=d"(c[2]), "=d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]), "d"(c[0]), "d"(c[1]), "d"(c[2]), "d"(c[3]));
}
#endif

// max3_relu: the maximum of three floats and 0. min3_nonneg: the minimum of three floats; correct if that minimum is
// not negative. Integer instructions serve, because the bits of nonnegative floats have the order of the floats.
DEVICE float max3_relu(float a, float b, float c) {
    return __int_as_float(__vimax3_s32_relu(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
}
DEVICE float min3_nonneg(float a, float b, float c) {
    return __int_as_float(__vimin3_s32(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
}
// Subtracts 2^15 from each unsigned 16-bit half of the word and clamps both differences to 0..255.
DEVICE uint clamp_to_u8x2(uint halves) { return __vimin_s16x2_relu(halves ^ 0x80008000u, 0x00ff00ffu); }
DEVICE uint unpack_odd_bytes(uint word) { return __byte_perm(word, 0, 0x4341); }  // bytes 1 and 3 as two ushort
#define HAS_WARP_REDUCTION 1  // warp_max and warp_min: maximum and minimum of x over the threads of the warp
#if __CUDA_ARCH__ >= 800
DEVICE uint warp_max(uint x) { return __reduce_max_sync(0xffffffffu, x); }
DEVICE uint warp_min(uint x) { return __reduce_min_sync(0xffffffffu, x); }
#else
DEVICE uint warp_max(uint x) {
    for (int mask = 16; mask; mask >>= 1) x = max(x, __shfl_xor_sync(0xffffffffu, x, mask));
    return x;
}
DEVICE uint warp_min(uint x) {
    for (int mask = 16; mask; mask >>= 1) x = min(x, __shfl_xor_sync(0xffffffffu, x, mask));
    return x;
}
#endif

// async_copy4, async_copy8, async_copy16 start a copy of 4, 8 or 16 bytes from global to shared memory, which runs
// while the thread computes (cp.async, sm_80). The first `valid` bytes are copied, the rest become zeros.
// async_commit_group() closes a group of copies; async_wait_group(n), n a literal, waits until at most n are pending.
#if __CUDA_ARCH__ >= 800
#define ASYNC_COPY(bytes, cache)                                            \
    DEVICE void async_copy##bytes(void *to, const void *from, uint valid) { \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes \
                     ", %2;" ::"r"((uint)__cvta_generic_to_shared(to)),     \
                     "l"(from), "r"(valid)                                  \
                     : "memory");                                           \
    }
ASYNC_COPY(4, "ca")
ASYNC_COPY(8, "ca")
ASYNC_COPY(16, "cg")
#define async_commit_group() asm volatile("cp.async.commit_group;" ::: "memory")
#define async_wait_group(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define HAS_ASYNC_COPY 1
#endif

#else  // -------------------------------------------------------------------------------------------------- OpenCL C
#ifdef STRICT
#pragma OPENCL FP_CONTRACT OFF
#endif
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define HAS_INT64_ATOMICS 1
#else
#define HAS_INT64_ATOMICS 0
#endif
#ifdef cl_khr_int64_extended_atomics
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#endif
typedef long int64;
#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void
#define KERNEL_MIN_GROUPS(groups) KERNEL
#define DEVICE static inline __attribute__((always_inline))  // PoCL 3.1 loses stores to LOCAL memory in real calls
#define DEVICE_NOINLINE_ALWAYS static __attribute__((noinline))
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT_ARRAY __constant
#define RESTRICT restrict
#define LOCAL_ARRAY(type, name, count) __local type name[count]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define thread_index() ((uint)get_global_id(0))
#define thread_index_long() ((ulong)get_global_id(0))
#define local_index() ((uint)get_local_id(0))
#define group_index() ((uint)get_group_id(0))
#define group_count() ((uint)get_num_groups(0))
#define min_nnan(a, b) ((a) < (b) ? (a) : (b))
#define max_nnan(a, b) ((a) > (b) ? (a) : (b))
// Two shifts make 32 - bits in all: one shift by 32 is undefined.
#define funnel_shift_right(low, high, bits) (((low) >> (bits)) | ((high) << 1 << (31u - (bits))))
#define funnel_shift_left(low, high, bits) (((high) << (bits)) | ((low) >> 1 >> (31u - (bits))))
// x with its 32 bits in the opposite order.
DEVICE uint reverse_bits(uint x) {
    x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
    x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
    x = (x & 0x00ff00ffu) << 8 | (x >> 8 & 0x00ff00ffu);
    return x << 16 | x >> 16;
}
#define make_float2(x, y) ((float2)(x, y))
#define make_float3(x, y, z) ((float3)(x, y, z))
#define make_float4(x, y, z, w) ((float4)(x, y, z, w))
#define make_double2(x, y) ((double2)(x, y))
#define make_uint2(x, y) ((uint2)(x, y))
#define make_uint3(x, y, z) ((uint3)(x, y, z))
#define make_uint4(x, y, z, w) ((uint4)(x, y, z, w))
#define SPLAT(type, x) ((type)(x))
#define make_float8(a, b) ((float8)(a, b))
#define make_double8(a, b, c, d) ((double8)(a, b, c, d))
#define any_nonzero(x) any((x) != 0)
#define any_outside(x, low, high) any(~((fabs(x) >= (low)) & (fabs(x) <= (high))))
#define or_lsb_nonzero(x) as_double8(as_ulong8(x) | as_ulong8(((x) != 0.0) & 1l))

// Repeats until no other thread has changed *p between the read and the exchange.
DEVICE void atomic_add_float(GLOBAL float *p, float v) {
    uint old = *(GLOBAL volatile uint *)p, seen;
    do {
        seen = old;
        old = atomic_cmpxchg((GLOBAL volatile uint *)p, seen, as_uint(as_float(seen) + v));
    } while (old != seen);
}

#ifdef __NV_CL_C_VERSION  // NVIDIA's OpenCL has no sub-groups, but it compiles PTX
#define DEVICE_NOINLINE static __attribute__((noinline))
#define DEVICE_NOINLINE_CPU DEVICE
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
// OpenCL 1.2 has no fence for memory that other groups read.
#define WARP_BARRIER() __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory")
#define GLOBAL_FENCE() __asm__ volatile("membar.gl;" : : : "memory")
DEVICE float fast_rcp(float x) {
    float y;
    __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return fma(y, fma(-x, y, 1.0f), y);
}
#define HAS_BALLOT 1
DEVICE uint ballot(bool flag) {
    uint mask;
    __asm__ volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                     : "=r"(mask)
                     : "r"((uint)flag));
    return mask;
}
DEVICE bool warp_all(bool flag) { return ballot(flag) == 0xffffffffu; }
DEVICE uint warp_shuffle(uint x, uint lane) {
    uint y;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(y) : "r"(x), "r"(lane));
    return y;
}
#define HAS_MOVEMASK 0
#else
#define DEVICE_NOINLINE DEVICE
#define DEVICE_NOINLINE_CPU DEVICE_NOINLINE_ALWAYS
#define UNROLL
#define NO_UNROLL
#define WARP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define GLOBAL_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define fast_rcp(x) (1.0f / (x))
#define HAS_BALLOT 0
#define HAS_MOVEMASK 1  // movemask8 and movemask16: bit i is the sign bit of element i
#ifdef __AVX__
DEVICE uint movemask8(int8 signs) { return (uint)__builtin_ia32_movmskps256(as_float8(signs)); }
#else
DEVICE uint movemask8(int8 signs) {
    int8 bits = (signs >> 31) & (int8)(1, 2, 4, 8, 16, 32, 64, 128);
    int4 four = bits.lo | bits.hi;
    int2 two = four.lo | four.hi;
    return (uint)(two.x | two.y);
}
#endif
#ifdef __AVX512DQ__
DEVICE uint movemask16(int16 signs) { return (uint)__builtin_ia32_cvtd2mask512(signs); }
#else
DEVICE uint movemask16(int16 signs) { return movemask8(signs.lo) | movemask8(signs.hi) << 8; }
#endif
#endif
#define HAS_SHUFFLE 0  // NVIDIA's OpenCL has warp_shuffle of uint only
DEVICE uint unpack_odd_bytes(uint word) { return word >> 8 & 0x00ff00ffu; }
DEVICE uint clamp_to_u8x2(uint halves) {
    int low = (int)(halves & 0xffffu) - 0x8000, high = (int)(halves >> 16) - 0x8000;
    return (uint)clamp(low, 0, 255) | (uint)clamp(high, 0, 255) << 16;
}
#define HAS_WARP_REDUCTION 0
#define COMPILER_BARRIER()
DEVICE float max3_relu(float a, float b, float c) { return max_nnan(max_nnan(a, b), max_nnan(c, 0.0f)); }
DEVICE float min3_nonneg(float a, float b, float c) { return min_nnan(min_nnan(a, b), c); }
#endif  // -------------------------------------------------------------------------------------------------------- both

#define PI 3.14159265358979323846f
#ifndef FLT_MAX  // OpenCL C defines it
#define FLT_MAX 3.402823466e38f
#endif
#define lane_index() (local_index() & 31u)
// Index of the lowest set bit of a word that is not 0: `word & -word` keeps that bit.
#define ctz(word) (31u - (uint)clz((word) & (0u - (word))))

DEVICE float3 xyz(float4 v) { return make_float3(v.x, v.y, v.z); }
DEVICE float4 with_w(float3 v, float w) { return make_float4(v.x, v.y, v.z, w); }

#ifndef HAS_FLOAT4_ATOMICS
DEVICE void atomic_add_float4(GLOBAL float4 *p, float4 v) {
    atomic_add_float((GLOBAL float *)p, v.x);
    atomic_add_float((GLOBAL float *)p + 1, v.y);
    atomic_add_float((GLOBAL float *)p + 2, v.z);
    atomic_add_float((GLOBAL float *)p + 3, v.w);
}
#endif
#ifndef HAS_FP64_TENSOR_CORES
#define HAS_FP64_TENSOR_CORES 0
#endif
#ifndef HAS_ASYNC_COPY  // the thread copies at once
#define ASYNC_COPY(bytes)                                                                \
    DEVICE void async_copy##bytes(LOCAL void *to, GLOBAL const void *from, uint valid) { \
        for (uint i = 0; i < bytes / 4; i++)                                             \
            ((LOCAL uint *)to)[i] = 4 * i < valid ? ((GLOBAL const uint *)from)[i] : 0;  \
    }
ASYNC_COPY(4)
ASYNC_COPY(8)
ASYNC_COPY(16)
#define async_commit_group()
#define async_wait_group(n)
#endif
