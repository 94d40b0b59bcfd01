// Two levels: an upper tree over the boxes of instances, rebuilt by bvh_build.cu whenever they move, and below it the trees of
// the shapes they place. A ray goes down into a shape's own space without being normalised, so that t stays the same.
#include "bvh_walk.h"

// Where an instance's shape lies in the joined arrays, and how world space becomes the shape's: 64 bytes.
typedef struct {
    float4 x, y, z;     // rows of the 3 x 4 matrix
    int node, primitive;  // where the shape's nodes and primitives begin
    int pad0, pad1;
} Placed;

DEVICE float3 row_times(const float4 x, const float4 y, const float4 z, float3 p, float w) {
    return make_float3(fma(x.w, w, dot_exact(xyz(x), p)), fma(y.w, w, dot_exact(xyz(y), p)), fma(z.w, w, dot_exact(xyz(z), p)));
}

// From matrices (shape to world, three rows each) and shapes (node, primitive, then low and high corner): the records that the
// upper tree is built over, whose box is corner .. corner + edge1, and the way back.
KERNEL place_instances(GLOBAL const float4 *matrices, GLOBAL const int *shape_of, GLOBAL const float4 *shapes, int count,
                       GLOBAL float4 *records, GLOBAL Placed *placed) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    float4 x = matrices[3 * i], y = matrices[3 * i + 1], z = matrices[3 * i + 2];
    float4 low = shapes[2 * shape_of[i]], high = shapes[2 * shape_of[i] + 1];
    float3 centre = xyz(low + high) * 0.5f, half_size = xyz(high - low) * 0.5f;
    float3 middle = row_times(x, y, z, centre, 1.0f);
    float3 reach = make_float3(fabs(x.x) * half_size.x + fabs(x.y) * half_size.y + fabs(x.z) * half_size.z,
                               fabs(y.x) * half_size.x + fabs(y.y) * half_size.y + fabs(y.z) * half_size.z,
                               fabs(z.x) * half_size.x + fabs(z.y) * half_size.y + fabs(z.z) * half_size.z);
    float room = 1e-5f * (larger(larger(fabs(middle.x), fabs(middle.y)), fabs(middle.z)) + larger(larger(reach.x, reach.y), reach.z));
    float3 grown = make_float3(reach.x + room, reach.y + room, reach.z + room);  // for the rounding of the way down
    records[3 * i] = with_w(middle - grown, as_float((int)i));
    records[3 * i + 1] = with_w(grown * 2.0f, 0.0f);
    records[3 * i + 2] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 a = xyz(x), b = xyz(y), c = xyz(z);
    float3 bc = cross_exact(b, c), ca = cross_exact(c, a), ab = cross_exact(a, b);
    float scale = 1.0f / dot_exact(a, bc);
    float3 way = make_float3(x.w, y.w, z.w);
    float3 back_x = make_float3(bc.x, ca.x, ab.x) * scale, back_y = make_float3(bc.y, ca.y, ab.y) * scale,
           back_z = make_float3(bc.z, ca.z, ab.z) * scale;
    placed[i].x = with_w(back_x, -dot_exact(back_x, way));
    placed[i].y = with_w(back_y, -dot_exact(back_y, way));
    placed[i].z = with_w(back_z, -dot_exact(back_z, way));
    placed[i].node = as_int(low.w);
    placed[i].primitive = as_int(high.w);
}

// hits: t, u, v, row of the joined primitives or -1; instances: which one was hit.
KERNEL closest_placed(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL int *instances, int count, GLOBAL const float4 *upper_nodes,
                      GLOBAL const float4 *records, GLOBAL const Placed *placed, GLOBAL const float4 *nodes,
                      GLOBAL const float4 *primitives) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    float3 origin = xyz(rays[2 * i]), direction = xyz(rays[2 * i + 1]);
    Slabs s = slabs_of(origin, direction);
    Hit best = {rays[2 * i].w, 0.0f, 0.0f, -1};
    int instance = -1, top = 1, node = 0, stack[WALK_STACK];
    stack[0] = WALK_DONE;
    while (node != WALK_DONE) {
        while (node >= 0) node = next_node(upper_nodes, node, s, best.t, stack, &top);
        while (node < 0 && node != WALK_DONE) {
            for (int k = ~node >> 3, end = k + (~node & 7); k <= end; k++) {
                int which = as_int(records[3 * k].w);
                Placed p = placed[which];
                Hit hit = closest_hit(nodes + 4 * p.node, primitives + 3 * p.primitive, row_times(p.x, p.y, p.z, origin, 1.0f),
                                      row_times(p.x, p.y, p.z, direction, 0.0f), best.t);
                if (hit.primitive >= 0 && (hit.t < best.t || instance < 0 || which < instance)) {
                    best = hit;
                    best.primitive += p.primitive;
                    instance = which;
                }
            }
            node = stack[--top];
        }
    }
    hits[i] = make_float4(best.t, best.u, best.v, as_float(best.primitive));
    instances[i] = instance;
}
