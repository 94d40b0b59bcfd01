// Two levels: an upper tree over the boxes of instances and below it the trees of the shapes they place. A ray goes down into a
// shape's own space without being normalised, so that t stays the same.
#include "bvh/traverse_bvh2.h"

// Where an instance's shape lies in the joined arrays, and how world space becomes the shape's: 64 bytes.
typedef struct {
    float4 x, y, z;       // rows of the 3 x 4 matrix
    int node, primitive;  // where the shape's nodes and primitives begin
    int material;         // row of the materials in the place of the shape's own, or -1
    int pad;
} Placed;

// A 3 x 4 matrix by its rows.
typedef struct {
    float4 x, y, z;
} Matrix;

DEVICE float3 row_times(const float4 x, const float4 y, const float4 z, float3 p, float w) {
    return make_float3(fma(x.w, w, dot_exact(xyz(x), p)), fma(y.w, w, dot_exact(xyz(y), p)), fma(z.w, w, dot_exact(xyz(z), p)));
}

DEVICE float3 times(const Matrix m, float3 p, float w) { return row_times(m.x, m.y, m.z, p, w); }

// A normal of the shape's space in the world: by the matrix of cofactors, on the same side where the matrix mirrors.
DEVICE float3 times_normal(const Matrix m, float3 n) {
    float3 a = xyz(m.x), b = xyz(m.y), c = xyz(m.z), bc = cross_exact(b, c);
    float3 out = make_float3(dot_exact(bc, n), dot_exact(cross_exact(c, a), n), dot_exact(cross_exact(a, b), n));
    return dot_exact(a, bc) < 0.0f ? -out : out;
}

DEVICE Matrix inverse_of(const Matrix m) {
    float3 a = xyz(m.x), b = xyz(m.y), c = xyz(m.z);
    float3 bc = cross_exact(b, c), ca = cross_exact(c, a), ab = cross_exact(a, b);
    float scale = 1.0f / dot_exact(a, bc);
    float3 way = make_float3(m.x.w, m.y.w, m.z.w);
    float3 x = make_float3(bc.x, ca.x, ab.x) * scale, y = make_float3(bc.y, ca.y, ab.y) * scale, z = make_float3(bc.z, ca.z, ab.z) * scale;
    Matrix back;
    back.x = with_w(x, -dot_exact(x, way));
    back.y = with_w(y, -dot_exact(y, way));
    back.z = with_w(z, -dot_exact(z, way));
    return back;
}

DEVICE float4 between(float4 a, float4 b, float part) {
    return make_float4(fma(b.x - a.x, part, a.x), fma(b.y - a.y, part, a.y), fma(b.z - a.z, part, a.z), fma(b.w - a.w, part, a.w));
}

// The matrix from shape to world at a moment between the two of each instance (0 to 1), lerped by components.
DEVICE Matrix matrix_at(GLOBAL const float4 *RESTRICT matrices, GLOBAL const float4 *RESTRICT later, int which, float moment) {
    Matrix m = {matrices[3 * which], matrices[3 * which + 1], matrices[3 * which + 2]};
#if MOTION
    m.x = between(m.x, later[3 * which], moment);
    m.y = between(m.y, later[3 * which + 1], moment);
    m.z = between(m.z, later[3 * which + 2], moment);
#endif
    return m;
}

// What the walks take beside the lower nodes and primitives.
#define PLACED_TAKEN GLOBAL const float4 *RESTRICT upper_nodes, GLOBAL const float4 *RESTRICT records, GLOBAL const Placed *RESTRICT placed, \
        GLOBAL const float4 *RESTRICT matrices, GLOBAL const float4 *RESTRICT later, GLOBAL const float4 *RESTRICT shape_nodes, \
        GLOBAL const float4 *RESTRICT shape_primitives
#define PLACED_GIVEN upper_nodes, records, placed, matrices, later, shape_nodes, shape_primitives

// The nearest hit before best->t; `best` and `instance` stay as they are when there is none. With `any` only whether there is one.
// .w of the origin is the moment.
DEVICE bool walk_placed(PLACED_TAKEN, float4 origin, float3 direction, bool any, Hit *best, int *instance) {
    NodeRay ray = node_ray(upper_nodes, xyz(origin), direction);
    int node = ROOT, found = -1, stack[WALK_STACK], *top = stack;
    *top++ = WALK_DONE;
    while (node != WALK_DONE) {
        while (node >= 0) node = next_node(upper_nodes, node, ray, best->t, &top);
        while (node < 0 && node != WALK_DONE) {
            for (int k = ~node >> 3, end = k + (~node & 7); k <= end; k++) {
                int which = as_int(records[3 * k].w);
                Placed p = placed[which];
#if MOTION
                Matrix in = inverse_of(matrix_at(matrices, later, which, origin.w));
#else
                Matrix in = {p.x, p.y, p.z};
#endif
                float3 from = times(in, xyz(origin), 1.0f), way = times(in, direction, 0.0f);
                GLOBAL const float4 *nodes = shape_nodes + 4 * p.node, *primitives = shape_primitives + 3 * p.primitive;
                if (any) {
                    if (any_hit(nodes, primitives, from, way, best->t)) return true;
                    continue;
                }
                Hit hit = closest_hit(nodes, primitives, from, way, best->t);
                if (hit.primitive >= 0 && (hit.t < best->t || (found >= 0 ? which < found : *instance < 0 && best->primitive < 0))) {
                    *best = hit;
                    best->primitive += p.primitive;
                    found = which;
                }
            }
            node = *--top;
        }
    }
    if (found >= 0) *instance = found;
    return found >= 0;
}

DEVICE void closest_placed_hit(PLACED_TAKEN, float4 origin, float3 direction, Hit *best, int *instance) {
    walk_placed(PLACED_GIVEN, origin, direction, false, best, instance);
}

DEVICE bool any_placed_hit(PLACED_TAKEN, float4 origin, float3 direction, float longest) {
    Hit end = {longest, 0.0f, 0.0f, -1};
    int instance = -1;
    return walk_placed(PLACED_GIVEN, origin, direction, true, &end, &instance);
}
