// The words that CUDA C++ (NVRTC) and OpenCL C 1.2 spell differently: the only #ifdef on the back end in this folder.
// Kernels are C99 that both take: `f` on literals, GLOBAL on pointers, no references, no `auto`, no swizzles (use xyz()).
// Every thread reaches BARRIER and gather words: use `bool active`, never an early return above one.
// GROUP_SIZE (threads of a group) is defined by the device's launcher for every kernel.

#ifdef __CUDACC_RTC__  // ---------------------------------------------------------------------------------------- CUDA
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;
#ifdef RESIDENT_GROUPS  // groups that one multiprocessor is to hold at a time, which bounds the registers of a thread
#define KERNEL extern "C" __global__ void __launch_bounds__(GROUP_SIZE, RESIDENT_GROUPS)
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(GROUP_SIZE)
#endif
// A kernel of which `groups` are to be resident on a unit: a limit for its registers. Without effect in OpenCL.
#define KERNEL_RESIDENT(groups) extern "C" __global__ void __launch_bounds__(GROUP_SIZE, groups)
#define DEVICE static __device__ __forceinline__
#define DEVICE_NOINLINE static __device__ __noinline__
#define DEVICE_CALLED static __device__ __noinline__  // a call everywhere: for long texts without LOCAL memory
#define GLOBAL
#define LOCAL
#define CONSTANT const
#define TABLE static __device__ const  // a table at file scope: TABLE float weights[4] = {...};
#define RESTRICT __restrict__
#define LOCAL_ARRAY(type, name, count) __shared__ type name[count]
#define BARRIER() __syncthreads()
#define WARP_BARRIER() __syncwarp()
#define GLOBAL_FENCE() __threadfence()
#define thread_index() (blockIdx.x * GROUP_SIZE + threadIdx.x)
#define thread_index_long() ((ulong)blockIdx.x * GROUP_SIZE + threadIdx.x)
#define local_index() (threadIdx.x)
#define group_index() (blockIdx.x)
#define group_count() (gridDim.x)
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")  // code that runs once is fetched from memory: small loops beat long texts
#define NO_UNROLL _Pragma("unroll 1")
#define IN_ORDER() asm volatile("" : : : "memory")  // loads after it stay there, instead of filling registers early

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
#define smaller(a, b) fminf(a, b)  // min and max of what is never NaN: one instruction each
#define larger(a, b) fmaxf(a, b)
#define mul_hi(a, b) __umulhi(a, b)
#define funnel_shift(low, high, bits) __funnelshift_r(low, high, bits)  // low word of the pair >> bits, bits < 32
// 1/x to a unit in the last place, for |x| from 2^-125 to 2^125: Newton's step on the instruction, with no branch for the rest.
DEVICE float near_inverse(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return fmaf(y, fmaf(-x, y, 1.0f), y);
}
DEVICE uint held(uint x) {  // x in a register, where the compiler would rather make it anew each time
    uint y;
    asm volatile("mov.u32 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}
#define pick_bytes(x, y, four) __byte_perm(x, y, four)  // by hexadecimal digits of `four`: 0 to 3 from x, 4 to 7 from y
#define stream_load(p) __ldcs(p)                         // of what is read once: it stays in no cache
#define native_divide(a, b) __fdividef(a, b)
#define native_sin(x) __sinf(x)
#define native_cos(x) __cosf(x)
#define native_exp(x) __expf(x)
#define native_exp2(x) exp2f(x)
#define native_log(x) __logf(x)
#define native_log2(x) __log2f(x)
#define native_powr(x, y) __powf(x, y)
#define native_rsqrt(x) rsqrtf(x)
DEVICE float clamp(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
DEVICE double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }
DEVICE int clamp(int x, int low, int high) { return min(max(x, low), high); }
DEVICE uint clamp(uint x, uint low, uint high) { return min(max(x, low), high); }
DEVICE float mix(float a, float b, float t) { return fmaf(t, b - a, a); }
DEVICE float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }
DEVICE float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; }
// sincos(x, pointer to the cosine) returns the sine, as in OpenCL.
DEVICE float sincos(float x, float *cosine) { float sine; sincosf(x, &sine, cosine); return sine; }

#define ATOMIC_WORDS(type)                                                                          \
    DEVICE type atomic_add(type *p, type v) { return atomicAdd(p, v); }                             \
    DEVICE type atomic_or(type *p, type v) { return atomicOr(p, v); }                               \
    DEVICE type atomic_and(type *p, type v) { return atomicAnd(p, v); }                             \
    DEVICE type atomic_min(type *p, type v) { return atomicMin(p, v); }                             \
    DEVICE type atomic_max(type *p, type v) { return atomicMax(p, v); }                             \
    DEVICE type atomic_xchg(type *p, type v) { return atomicExch(p, v); }                           \
    DEVICE type atomic_cmpxchg(type *p, type expected, type v) { return atomicCAS(p, expected, v); }
ATOMIC_WORDS(uint)
ATOMIC_WORDS(int)
DEVICE ulong atom_add(ulong *p, ulong v) { return atomicAdd(p, v); }
DEVICE ulong atom_min(ulong *p, ulong v) { return atomicMin(p, v); }
DEVICE void add_float(float *p, float v) { atomicAdd(p, v); }
#if __CUDA_ARCH__ >= 900  // one 16-byte operation where the processor has it
DEVICE void add_vector(float4 *p, float4 v) { atomicAdd(p, v); }
#else
DEVICE void add_vector(float4 *p, float4 v) {
    atomicAdd(&p->x, v.x);
    atomicAdd(&p->y, v.y);
    atomicAdd(&p->z, v.z);
    atomicAdd(&p->w, v.w);
}
#endif
#define HAS_LONG_ATOMICS 1

#define VECTOR2(T, S)                                                                               \
    DEVICE T operator+(T a, T b) { return make_##T(a.x + b.x, a.y + b.y); }                         \
    DEVICE T operator-(T a, T b) { return make_##T(a.x - b.x, a.y - b.y); }                         \
    DEVICE T operator*(T a, T b) { return make_##T(a.x * b.x, a.y * b.y); }                         \
    DEVICE T operator/(T a, T b) { return make_##T(a.x / b.x, a.y / b.y); }                         \
    DEVICE T operator+(T a, S b) { return make_##T(a.x + b, a.y + b); }                             \
    DEVICE T operator-(T a, S b) { return make_##T(a.x - b, a.y - b); }                             \
    DEVICE T operator*(T a, S b) { return make_##T(a.x * b, a.y * b); }                             \
    DEVICE T operator*(S a, T b) { return make_##T(a * b.x, a * b.y); }                             \
    DEVICE T operator/(T a, S b) { return make_##T(a.x / b, a.y / b); }                             \
    DEVICE void operator+=(T &a, T b) { a = a + b; }                                                \
    DEVICE void operator-=(T &a, T b) { a = a - b; }                                                \
    DEVICE void operator*=(T &a, T b) { a = a * b; }                                                \
    DEVICE void operator*=(T &a, S b) { a = a * b; }
#define VECTOR3(T, S)                                                                               \
    DEVICE T operator+(T a, T b) { return make_##T(a.x + b.x, a.y + b.y, a.z + b.z); }              \
    DEVICE T operator-(T a, T b) { return make_##T(a.x - b.x, a.y - b.y, a.z - b.z); }              \
    DEVICE T operator*(T a, T b) { return make_##T(a.x * b.x, a.y * b.y, a.z * b.z); }              \
    DEVICE T operator/(T a, T b) { return make_##T(a.x / b.x, a.y / b.y, a.z / b.z); }              \
    DEVICE T operator+(T a, S b) { return make_##T(a.x + b, a.y + b, a.z + b); }                    \
    DEVICE T operator-(T a, S b) { return make_##T(a.x - b, a.y - b, a.z - b); }                    \
    DEVICE T operator*(T a, S b) { return make_##T(a.x * b, a.y * b, a.z * b); }                    \
    DEVICE T operator*(S a, T b) { return make_##T(a * b.x, a * b.y, a * b.z); }                    \
    DEVICE T operator/(T a, S b) { return make_##T(a.x / b, a.y / b, a.z / b); }                    \
    DEVICE void operator+=(T &a, T b) { a = a + b; }                                                \
    DEVICE void operator-=(T &a, T b) { a = a - b; }                                                \
    DEVICE void operator*=(T &a, T b) { a = a * b; }                                                \
    DEVICE void operator*=(T &a, S b) { a = a * b; }
#define VECTOR4(T, S)                                                                               \
    DEVICE T operator+(T a, T b) { return make_##T(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }   \
    DEVICE T operator-(T a, T b) { return make_##T(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); }   \
    DEVICE T operator*(T a, T b) { return make_##T(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }   \
    DEVICE T operator/(T a, T b) { return make_##T(a.x / b.x, a.y / b.y, a.z / b.z, a.w / b.w); }   \
    DEVICE T operator+(T a, S b) { return make_##T(a.x + b, a.y + b, a.z + b, a.w + b); }           \
    DEVICE T operator-(T a, S b) { return make_##T(a.x - b, a.y - b, a.z - b, a.w - b); }           \
    DEVICE T operator*(T a, S b) { return make_##T(a.x * b, a.y * b, a.z * b, a.w * b); }           \
    DEVICE T operator*(S a, T b) { return make_##T(a * b.x, a * b.y, a * b.z, a * b.w); }           \
    DEVICE T operator/(T a, S b) { return make_##T(a.x / b, a.y / b, a.z / b, a.w / b); }           \
    DEVICE void operator+=(T &a, T b) { a = a + b; }                                                \
    DEVICE void operator-=(T &a, T b) { a = a - b; }                                                \
    DEVICE void operator*=(T &a, T b) { a = a * b; }                                                \
    DEVICE void operator*=(T &a, S b) { a = a * b; }
VECTOR2(float2, float)
VECTOR3(float3, float)
VECTOR4(float4, float)
VECTOR2(double2, double)
VECTOR4(double4, double)
VECTOR2(int2, int)
VECTOR3(int3, int)
VECTOR4(int4, int)
VECTOR2(uint2, uint)
VECTOR3(uint3, uint)
VECTOR4(uint4, uint)
DEVICE float2 operator-(float2 a) { return make_float2(-a.x, -a.y); }
DEVICE float3 operator-(float3 a) { return make_float3(-a.x, -a.y, -a.z); }
DEVICE float4 operator-(float4 a) { return make_float4(-a.x, -a.y, -a.z, -a.w); }
DEVICE float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
DEVICE float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
DEVICE float3 cross(float3 a, float3 b) {
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
DEVICE float length(float2 a) { return sqrtf(dot(a, a)); }
DEVICE float length(float3 a) { return sqrtf(dot(a, a)); }
DEVICE float2 normalize(float2 a) { return a * rsqrtf(dot(a, a)); }
DEVICE float3 normalize(float3 a) { return a * rsqrtf(dot(a, a)); }
DEVICE float3 mix(float3 a, float3 b, float t) { return a + (b - a) * t; }
DEVICE float4 mix(float4 a, float4 b, float t) { return a + (b - a) * t; }
DEVICE float3 fmin(float3 a, float3 b) { return make_float3(fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z)); }
DEVICE float3 fmax(float3 a, float3 b) { return make_float3(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z)); }
DEVICE float4 fmin(float4 a, float4 b) {
    return make_float4(fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z), fminf(a.w, b.w));
}
DEVICE float4 fmax(float4 a, float4 b) {
    return make_float4(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w));
}

// Runs of 8 and 16 numbers, as OpenCL has them: on a CPU they are its SIMD registers. SPLAT(type, x) fills one.
#define WIDE_VECTOR(T, S, N)                                                                        \
    typedef struct __align__(sizeof(S) * N / 4) { S s[N]; } T;                                      \
    DEVICE T splat_##T(S x) { T r; for (int i = 0; i < N; i++) r.s[i] = x; return r; }              \
    DEVICE T operator+(T a, T b) { for (int i = 0; i < N; i++) a.s[i] += b.s[i]; return a; }        \
    DEVICE T operator-(T a, T b) { for (int i = 0; i < N; i++) a.s[i] -= b.s[i]; return a; }        \
    DEVICE T operator*(T a, T b) { for (int i = 0; i < N; i++) a.s[i] *= b.s[i]; return a; }        \
    DEVICE T operator*(S a, T b) { for (int i = 0; i < N; i++) b.s[i] *= a; return b; }             \
    DEVICE void operator+=(T &a, T b) { for (int i = 0; i < N; i++) a.s[i] += b.s[i]; }             \
    DEVICE T fma(T a, T b, T c) { for (int i = 0; i < N; i++) c.s[i] = fma(a.s[i], b.s[i], c.s[i]); return c; } \
    DEVICE T vload##N(size_t i, const S *p) { T r; for (int j = 0; j < N; j++) r.s[j] = p[i * N + j]; return r; } \
    DEVICE void vstore##N(T a, size_t i, S *p) { for (int j = 0; j < N; j++) p[i * N + j] = a.s[j]; }
WIDE_VECTOR(float8, float, 8)
WIDE_VECTOR(float16, float, 16)
WIDE_VECTOR(double8, double, 8)
// any_nonzero goes by bits, since comparisons of doubles would take the unit that adds them; any_outside tells whether some
// |a| is not in [low, high], and is true of nan; with_odd_bits sets the last bit, but for zeros.
#define WIDE_DOUBLES(T, F, N)                                                                       \
    DEVICE T fabs(T a) { for (int i = 0; i < N; i++) a.s[i] = fabs(a.s[i]); return a; }             \
    DEVICE bool any_nonzero(T a) {                                                                  \
        ulong bits = 0;                                                                             \
        for (int i = 0; i < N; i++) bits |= as_ulong(a.s[i]);                                       \
        return (bits & 0x7fffffffffffffffull) != 0;                                                 \
    }                                                                                               \
    DEVICE bool any_outside(T a, double low, double high) {                                         \
        bool r = false;                                                                             \
        for (int i = 0; i < N; i++) r |= !(fabs(a.s[i]) >= low && fabs(a.s[i]) <= high);            \
        return r;                                                                                   \
    }                                                                                               \
    DEVICE T with_odd_bits(T a) {                                                                   \
        for (int i = 0; i < N; i++) a.s[i] = as_double(as_ulong(a.s[i]) | ((as_ulong(a.s[i]) << 1) != 0 ? 1ull : 0ull)); \
        return a;                                                                                   \
    }                                                                                               \
    DEVICE T T##_of(F a) { T r; for (int i = 0; i < N; i++) r.s[i] = a.s[i]; return r; }            \
    DEVICE T T##_of(T a) { return a; }
WIDE_DOUBLES(double8, float8, 8)
DEVICE float8 join_float4(float4 a, float4 b) { float8 r = {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}}; return r; }
DEVICE double8 join_double2(double2 a, double2 b, double2 c, double2 d) {
    double8 r = {{a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y}};
    return r;
}
#define SPLAT_WORD(type, x) splat_##type(x)
#define SPLAT(type, x) SPLAT_WORD(type, x)  // twice, so that `type` may be a macro

// Warps of 32: ballot() is the mask of lanes that say true, all_lanes() the vote, from_lane() another lane's value; all take
// whole warps.
#define HAS_BALLOT 1
#define HAS_WIDE_REGISTERS 0
DEVICE uint ballot(bool flag) { return __ballot_sync(0xffffffffu, flag); }
DEVICE bool all_lanes(bool flag) { return __all_sync(0xffffffffu, flag); }
#define HAS_SHUFFLE 1  // shuffle_xor(x, mask): the x of the lane whose index differs by the mask; whole warps
DEVICE float shuffle_xor(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE double shuffle_xor(double x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE int shuffle_xor(int x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DEVICE float broadcast(float x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }  // the x of that lane; whole warps
DEVICE double broadcast(double x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
DEVICE uint from_lane(uint x, uint lane) { return __shfl_sync(0xffffffffu, x, lane); }

// Groups that run together and write into one another's local memory: KERNEL_CLUSTER(n) is a kernel launched over one such
// cluster of n groups, of which this is cluster_rank(). CLUSTER_BARRIER is a barrier of all their threads, after which
// all their writes are seen; it takes about a microsecond. MAIL(place, rank, value, box) writes to `place` in the local memory
// of group `rank` and counts the bytes in its mailbox, which that group opens once (then CLUSTER_BARRIER), whose one thread says
// how many bytes it expects, and for which its threads wait; parity is 0 for the first filling, then 1, 0, ..
#if __CUDA_ARCH__ >= 900
#define HAS_CLUSTERS 1
#define KERNEL_CLUSTER(groups) extern "C" __global__ void __cluster_dims__(groups, 1, 1) __launch_bounds__(GROUP_SIZE)
#define CLUSTER_ARRIVE() __cluster_barrier_arrive()  // the halves of CLUSTER_BARRIER
#define CLUSTER_WAIT() __cluster_barrier_wait()
#define CLUSTER_BARRIER() (__cluster_barrier_arrive(), __cluster_barrier_wait())
#define cluster_rank() (__clusterRelativeBlockRank())
#define LOCAL_ADDRESS(p) ((uint)__cvta_generic_to_shared(p))
DEVICE uint address_in(const void *p, uint rank) {
    uint there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(LOCAL_ADDRESS(p)), "r"(rank));
    return there;
}
DEVICE void send_word(const void *p, uint rank, uint x, ulong *box) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                 : : "r"(address_in(p, rank)), "r"(x), "r"(address_in(box, rank)) : "memory");
}
DEVICE void send_word(const void *p, uint rank, ulong x, ulong *box) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
                 : : "r"(address_in(p, rank)), "l"(x), "r"(address_in(box, rank)) : "memory");
}
DEVICE void mail(uint *p, uint rank, uint x, ulong *box) { send_word(p, rank, x, box); }
DEVICE void mail(float *p, uint rank, float x, ulong *box) { send_word(p, rank, as_uint(x), box); }
DEVICE void mail(double *p, uint rank, double x, ulong *box) { send_word(p, rank, as_ulong(x), box); }
#define MAIL(place, rank, value, box) mail(place, (uint)(rank), value, box)
DEVICE void mailbox_open(ulong *box) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(LOCAL_ADDRESS(box)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}
DEVICE void mailbox_expect(ulong *box, uint bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(LOCAL_ADDRESS(box)), "r"(bytes) : "memory");
}
DEVICE void mailbox_wait(ulong *box, uint parity) {
    asm volatile("{ .reg .pred full; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 full, [%0], %1;"
                 " @!full bra AGAIN; }" : : "r"(LOCAL_ADDRESS(box)), "r"(parity) : "memory");
}
#endif

#if __CUDA_ARCH__ >= 800
#define HAS_MATRIX_UNITS 1
// c (8 x 8) += a (8 x 4) b (4 x 8) by a warp. Lane k has a[k / 4][k % 4], b[k % 4][k / 4] and c[k / 4][k % 4 * 2] and its right.
DEVICE void matrix_add(double *c, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};"
        : "=d"(c[0]), "=d"(c[1]) : "d"(a), "d"(b), "d"(c[0]), "d"(c[1]));
}
#endif

// 1 + byte i of the word * 2^-15: a byte as a float without a conversion, which has a quarter of the rate.
// max of three and 0, and min of three, of floats of which the answer matters only where it is not negative: their bits
// are in the order of integers then.
DEVICE float largest_or_zero(float a, float b, float c) {
    return __int_as_float(__vimax3_s32_relu(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
}
DEVICE float smallest_of(float a, float b, float c) {
    return __int_as_float(__vimin3_s32(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
}
// The halves of a word, each 2^15 more than a number, cut to bytes: in the halves of the answer.
DEVICE uint cut_pairs(uint halves) { return __vimin_s16x2_relu(halves ^ 0x80008000u, 0x00ff00ffu); }
DEVICE uint odd_bytes(uint word) { return __byte_perm(word, 0, 0x4341); }  // bytes 1 and 3 in the halves of the answer
#define HAS_WARP_REDUCTION 1  // the largest and the smallest x of a warp; whole warps
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

// Copies of 4, 8 or 16 bytes from global to local memory that run beside the arithmetic (sm_80 on), the first `valid` bytes
// and zeros; async_close() ends a batch, async_wait(n) waits until at most n batches (a literal) are under way.
#if __CUDA_ARCH__ >= 800
#define ASYNC_COPY(bytes, cache)                                                                    \
    DEVICE void async_copy##bytes(void *to, const void *from, uint valid) {                         \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes ", %2;" ::"r"(          \
            (uint)__cvta_generic_to_shared(to)), "l"(from), "r"(valid) : "memory");                 \
    }
ASYNC_COPY(4, "ca")
ASYNC_COPY(8, "ca")
ASYNC_COPY(16, "cg")
#define async_close() asm volatile("cp.async.commit_group;" ::: "memory")
#define async_wait(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define HAS_ASYNC 1
#else
#define HAS_ASYNC 0
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
#define HAS_LONG_ATOMICS 1
#else
#define HAS_LONG_ATOMICS 0
#endif
#ifdef cl_khr_int64_extended_atomics
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#endif
#define KERNEL __kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void
#define KERNEL_RESIDENT(groups) KERNEL
#define DEVICE static inline __attribute__((always_inline))  // PoCL 3.1 loses writes to LOCAL memory in real calls
#ifdef __NV_CL_C_VERSION
#define DEVICE_NOINLINE static __attribute__((noinline))
#else
#define DEVICE_NOINLINE DEVICE
#endif
#define DEVICE_CALLED static __attribute__((noinline))
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT __constant
#define TABLE __constant
#define RESTRICT restrict
#define LOCAL_ARRAY(type, name, count) __local type name[count]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#ifdef __NV_CL_C_VERSION  // OpenCL 1.2 orders memory within a group only: there is no fence for what other groups read
#define WARP_BARRIER() __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory")
#define GLOBAL_FENCE() __asm__ volatile("membar.gl;" : : : "memory")
#else
#define WARP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define GLOBAL_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
#define thread_index() ((uint)get_global_id(0))
#define thread_index_long() ((ulong)get_global_id(0))
#define local_index() ((uint)get_local_id(0))
#define group_index() ((uint)get_group_id(0))
#define group_count() ((uint)get_num_groups(0))
#ifdef __NV_CL_C_VERSION
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define NO_UNROLL _Pragma("unroll 1")
#else
#define UNROLL
#define ROLLED
#define NO_UNROLL
#endif
#define smaller(a, b) ((a) < (b) ? (a) : (b))
#define larger(a, b) ((a) > (b) ? (a) : (b))
#define funnel_shift(low, high, bits) (((low) >> (bits)) | ((high) << 1 << (31u - (bits))))
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
#define make_double4(x, y, z, w) ((double4)(x, y, z, w))
#define make_int2(x, y) ((int2)(x, y))
#define make_int3(x, y, z) ((int3)(x, y, z))
#define make_int4(x, y, z, w) ((int4)(x, y, z, w))
#define make_uint2(x, y) ((uint2)(x, y))
#define make_uint3(x, y, z) ((uint3)(x, y, z))
#define make_uint4(x, y, z, w) ((uint4)(x, y, z, w))
#define make_ulong2(x, y) ((ulong2)(x, y))
#define SPLAT(type, x) ((type)(x))
#define double8_of(x) convert_double8(x)
#define join_float4(a, b) ((float8)(a, b))
#define join_double2(a, b, c, d) ((double8)(a, b, c, d))
#define any_nonzero(x) any((x) != 0)
#define any_outside(x, low, high) any(~((fabs(x) >= (low)) & (fabs(x) <= (high))))
#define with_odd_bits(x) as_double8(as_ulong8(x) | as_ulong8(((x) != 0.0) & 1l))

DEVICE void add_float(GLOBAL float *p, float v) {
    uint old = *(GLOBAL volatile uint *)p, seen;
    do {
        seen = old;
        old = atomic_cmpxchg((GLOBAL volatile uint *)p, seen, as_uint(as_float(seen) + v));
    } while (old != seen);
}
DEVICE void add_vector(GLOBAL float4 *p, float4 v) {
    add_float((GLOBAL float *)p, v.x);
    add_float((GLOBAL float *)p + 1, v.y);
    add_float((GLOBAL float *)p + 2, v.z);
    add_float((GLOBAL float *)p + 3, v.w);
}

#ifdef __NV_CL_C_VERSION
DEVICE float near_inverse(float x) {
    float y;
    __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return fma(y, fma(-x, y, 1.0f), y);
}
DEVICE uint pick_bytes(uint x, uint y, uint four) {
    uint z;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(z) : "r"(x), "r"(y), "r"(four));
    return z;
}
#else
#define near_inverse(x) (1.0f / (x))
DEVICE uint pick_bytes(uint x, uint y, uint four) {
    uint z = 0;
    for (uint k = 0; k < 4; k++) {
        uint byte = four >> 4 * k & 7u;
        z |= ((byte < 4 ? x >> 8 * byte : y >> (8 * byte - 32)) & 255u) << 8 * k;
    }
    return z;
}
#endif
#define stream_load(p) (*(p))
#define held(x) (x)

#ifdef __NV_CL_C_VERSION  // NVIDIA's OpenCL has no sub-groups, but its warps vote in PTX
#define HAS_BALLOT 1
DEVICE uint ballot(bool flag) {
    uint mask;
    __asm__ volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                     : "=r"(mask)
                     : "r"((uint)flag));
    return mask;
}
DEVICE bool all_lanes(bool flag) { return ballot(flag) == 0xffffffffu; }
DEVICE uint from_lane(uint x, uint lane) {
    uint y;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(y) : "r"(x), "r"(lane));
    return y;
}
#define HAS_WIDE_REGISTERS 0
#else
#define HAS_BALLOT 0
#define HAS_WIDE_REGISTERS 1  // bits_of8 and bits_of16: a bit for each number of a vector whose sign bit is set
#ifdef __AVX__
DEVICE uint bits_of8(int8 signs) { return (uint)__builtin_ia32_movmskps256(as_float8(signs)); }
#else
DEVICE uint bits_of8(int8 signs) {
    int8 bits = (signs >> 31) & (int8)(1, 2, 4, 8, 16, 32, 64, 128);
    int4 four = bits.lo | bits.hi;
    int2 two = four.lo | four.hi;
    return (uint)(two.x | two.y);
}
#endif
DEVICE uint bits_of16(int16 signs) { return bits_of8(signs.lo) | bits_of8(signs.hi) << 8; }
#endif
#define HAS_SHUFFLE 0
#define HAS_ASYNC 0
DEVICE uint odd_bytes(uint word) { return word >> 8 & 0x00ff00ffu; }
DEVICE uint cut_pairs(uint halves) {
    int low = (int)(halves & 0xffffu) - 0x8000, high = (int)(halves >> 16) - 0x8000;
    return (uint)clamp(low, 0, 255) | (uint)clamp(high, 0, 255) << 16;
}
#define HAS_WARP_REDUCTION 0
#define IN_ORDER()
DEVICE float largest_or_zero(float a, float b, float c) { return larger(larger(a, b), larger(c, 0.0f)); }
DEVICE float smallest_of(float a, float b, float c) { return smaller(smaller(a, b), c); }
#endif  // -------------------------------------------------------------------------------------------------------- both

#define PI 3.14159265358979323846f
#define INFINITE 3.402823466e38f
#define lane_index() (local_index() & 31u)
#define lowest_bit(word) (31u - (uint)clz((word) & (0u - (word))))

DEVICE float3 xyz(float4 v) { return make_float3(v.x, v.y, v.z); }
DEVICE float4 with_w(float3 v, float w) { return make_float4(v.x, v.y, v.z, w); }

#ifndef HAS_CLUSTERS
#define HAS_CLUSTERS 0
#endif
#ifndef HAS_MATRIX_UNITS
#define HAS_MATRIX_UNITS 0
#endif
#if !HAS_ASYNC
#define ASYNC_COPY(bytes)                                                                           \
    DEVICE void async_copy##bytes(LOCAL void *to, GLOBAL const void *from, uint valid) {            \
        for (uint i = 0; i < bytes / 4; i++)                                                        \
            ((LOCAL uint *)to)[i] = 4 * i < valid ? ((GLOBAL const uint *)from)[i] : 0;             \
    }
ASYNC_COPY(4)
ASYNC_COPY(8)
ASYNC_COPY(16)
#define async_close()
#define async_wait(n)
#endif
