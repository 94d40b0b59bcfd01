// Traversal of instanced scenes: a top-level BVH (TLAS) over the instances' boxes, and for each shape a bottom-level
// BVH (BLAS); all are BVH2s of bvh/traverse_bvh2.h. A leaf of the TLAS transforms the ray into the shape's space
// without normalizing its direction, so t means the same in both spaces. bvh/update_instances.cu writes the records.
// The host defines MOTION (1: instances move while the shutter is open, else 0) and DEFORMS (1: vertices do, else 0).
// traverse_bvh2.h has FILTER_* (the hit filter) and MOTION_ARGS_OF (the arguments of moving vertices).
#include "bvh/traverse_bvh2.h"

// An instance, 64 bytes: the matrix from world space to its shape's space, and the shape's offsets in the BLAS arrays.
typedef struct {
    float4 x, y, z;  // rows of the 3 x 4 matrix
    int node, primitive;  // indices of the shape's first node in blas_nodes and first primitive in blas_primitives
    int material;  // replaces the materials of the shape's primitives; -1 keeps them
    int closing;  // index of its first primitive in closing_primitives; -1 if its vertices do not move
} InstanceRecord;

// A 3 x 4 matrix, by rows.
typedef struct {
    float4 x, y, z;
} Matrix;

DEVICE float3 transform(const Matrix m, float3 p, float w) { return transform_rows(m.x, m.y, m.z, p, w); }

// Transforms a normal by the cofactor matrix. The sign is chosen so that a mirroring matrix does not flip the normal to
// the other side of the surface.
DEVICE float3 transform_normal(const Matrix m, float3 n) {
    float3 a = xyz(m.x), b = xyz(m.y), c = xyz(m.z), bc = cross_fma(b, c);
    float3 out = make_float3(dot_fma(bc, n), dot_fma(cross_fma(c, a), n), dot_fma(cross_fma(a, b), n));
    return dot_fma(a, bc) < 0.0f ? -out : out;
}

// The inverse of an affine matrix, by cofactors.
DEVICE Matrix inverse(const Matrix m) {
    float3 a = xyz(m.x), b = xyz(m.y), c = xyz(m.z);
    float3 bc = cross_fma(b, c), ca = cross_fma(c, a), ab = cross_fma(a, b);
    float scale = 1.0f / dot_fma(a, bc);
    float3 translation = make_float3(m.x.w, m.y.w, m.z.w);
    float3 x = make_float3(bc.x, ca.x, ab.x) * scale, y = make_float3(bc.y, ca.y, ab.y) * scale,
           z = make_float3(bc.z, ca.z, ab.z) * scale;
    Matrix out = {with_w(x, -dot_fma(x, translation)), with_w(y, -dot_fma(y, translation)),
                  with_w(z, -dot_fma(z, translation))};
    return out;
}

DEVICE float4 lerp4(float4 a, float4 b, float weight) {
    return with_w(madd(xyz(b) - xyz(a), weight, xyz(a)), fma(b.w - a.w, weight, a.w));
}

// The matrix from shape to world space of instance `which` at `time` within the shutter interval, 0 to 1: the elements
// are interpolated between shutter open and shutter close.
DEVICE Matrix matrix_at_time(GLOBAL const float4 *RESTRICT matrices_open, GLOBAL const float4 *RESTRICT matrices_close,
                             int which, float time) {
    Matrix m = {matrices_open[3 * which], matrices_open[3 * which + 1], matrices_open[3 * which + 2]};
#if MOTION
    m.x = lerp4(m.x, matrices_close[3 * which], time);
    m.y = lerp4(m.y, matrices_close[3 * which + 1], time);
    m.z = lerp4(m.z, matrices_close[3 * which + 2], time);
#endif
    return m;
}

#if DEFORMS
#define MAYBE_CLOSING_PARAM , GLOBAL const float4 *RESTRICT closing_primitives
#define MAYBE_CLOSING_ARG , closing_primitives
#define CLOSING_PRIMITIVES closing_primitives
#else
#define MAYBE_CLOSING_PARAM
#define MAYBE_CLOSING_ARG
#define CLOSING_PRIMITIVES 0
#endif
// The arrays of the TLAS and the BLASes, as a parameter list and as an argument list.
#define INSTANCE_PARAMS                                                                                      \
    GLOBAL const float4 *RESTRICT tlas_nodes, GLOBAL const float4 *RESTRICT tlas_primitives,                 \
        GLOBAL const InstanceRecord *RESTRICT instance_records, GLOBAL const float4 *RESTRICT matrices_open, \
        GLOBAL const float4 *RESTRICT matrices_close, GLOBAL const float4 *RESTRICT blas_nodes,              \
        GLOBAL const float4 *RESTRICT blas_primitives MAYBE_CLOSING_PARAM
#define INSTANCE_ARGS                                                                         \
    tlas_nodes, tlas_primitives, instance_records, matrices_open, matrices_close, blas_nodes, \
        blas_primitives MAYBE_CLOSING_ARG

// Replaces `best` by `hit`, a hit of instance `which` (primitive -1: none), if it is nearer or wins a tie. `hit` is as
// near if it is not nearer, because traverse_bvh2 finds hits up to best->t. *best_instance: the instance of this
// traversal's closest hit, -1 before its first. After that first hit, the lower instance index wins a tie. Before it, a
// hit at best->t wins only if the ray has no hit at all yet: no primitive in `best`, and instance_before -1 (the
// instance of the hit that was found before this traversal).
DEVICE void update_instance_hit(const InstanceRecord p, int which, const Hit hit, Hit *best, int *best_instance,
                                int instance_before) {
    bool wins_tie = *best_instance >= 0 ? which < *best_instance : instance_before < 0 && best->primitive < 0;
    if (hit.primitive >= 0 && (hit.t < best->t || wins_tie)) {
        *best = hit;
        best->primitive += p.primitive;
        *best_instance = which;
    }
}

// Finds the closest hit before best->t, or at best->t if the ray has no hit yet; sets `best` and `instance`, returns
// true. Without one, returns false and leaves both unchanged. With accept_first_hit, finds any hit up to best->t, and
// only the returned value is valid. origin.w is the time.
DEVICE bool traverse_tlas(INSTANCE_PARAMS, float4 origin, float3 direction, bool accept_first_hit, Hit *best,
                          int *instance FILTER_PARAMS) {
    SlabRay ray = slab_ray(xyz(origin), direction);
    int node = ROOT_NODE, best_instance = -1, stack[STACK_SIZE], *top = stack;
    *top++ = STACK_SENTINEL;
    while (node != STACK_SENTINEL) {
        while (node >= 0) {
            COUNT_NODE(*best);
            node = next_node(tlas_nodes, node, ray, best->t, &top);
        }
        while (node < 0 && node != STACK_SENTINEL) {
            for (int k = ~node >> 3, end = k + (~node & 7); k <= end; k++) {
                int which = as_int(tlas_primitives[3 * k].w);
                InstanceRecord p = instance_records[which];
#if MOTION
                Matrix to_shape = inverse(matrix_at_time(matrices_open, matrices_close, which, origin.w));
#else
                Matrix to_shape = {p.x, p.y, p.z};
#endif
                float3 o = transform(to_shape, xyz(origin), 1.0f), d = transform(to_shape, direction, 0.0f);
                GLOBAL const float4 *nodes = blas_nodes + 4 * p.node, *primitives = blas_primitives + 3 * p.primitive;
#if DEFORMS
                GLOBAL const float4 *closing = p.closing >= 0 ? closing_primitives + 3 * p.closing : 0;
#endif
                Hit hit = traverse_bvh2(nodes, primitives, o, d, best->t,
                                        accept_first_hit FILTER_ARGS_OF(p.material) MOTION_ARGS_OF(closing, origin.w));
                if (accept_first_hit && hit.primitive >= 0) return true;
                ADD_COUNTS(hit, *best);  // sums of traversal statistics (geometry.h), which best keeps without a hit
                KEEP_COUNTS(*best, hit);
                update_instance_hit(p, which, hit, best, &best_instance, *instance);
            }
            node = *--top;
        }
    }
    if (best_instance >= 0) *instance = best_instance;
    return best_instance >= 0;
}
