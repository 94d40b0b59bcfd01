// Placing instances, whose upper tree bvh/build_hploc.cu then builds, and walking them by one thread a ray.
#include "bvh/traverse_instances.h"

DEVICE float3 reach_of(const Matrix m, float3 half_size) {
    return make_float3(fabs(m.x.x) * half_size.x + fabs(m.x.y) * half_size.y + fabs(m.x.z) * half_size.z,
                       fabs(m.y.x) * half_size.x + fabs(m.y.y) * half_size.y + fabs(m.y.z) * half_size.z,
                       fabs(m.z.x) * half_size.x + fabs(m.z.y) * half_size.y + fabs(m.z.z) * half_size.z);
}

// The box of a placed box, grown for the rounding of the way down.
DEVICE void place_box(const Matrix m, float3 centre, float3 half_size, float3 *low, float3 *high) {
    float3 middle = times(m, centre, 1.0f), reach = reach_of(m, half_size);
    float room = 1e-5f * (larger(larger(fabs(middle.x), fabs(middle.y)), fabs(middle.z)) + larger(larger(reach.x, reach.y), reach.z));
    float3 grown = make_float3(reach.x + room, reach.y + room, reach.z + room);
    *low = middle - grown;
    *high = middle + grown;
}

// From matrices (shape to world, three rows each) at both ends of the shutter and shapes (node, primitive, then low and high
// corner): the records that the upper tree is built over, whose box is corner .. corner + edge1, and the way back at the start.
// While the components of a matrix move evenly, so does every point, and the box of both ends holds it.
KERNEL place_instances(GLOBAL const float4 *matrices, GLOBAL const float4 *later, GLOBAL const int2 *shape_of, GLOBAL const float4 *shapes,
                       int count, GLOBAL float4 *records, GLOBAL Placed *placed) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Matrix m = {matrices[3 * i], matrices[3 * i + 1], matrices[3 * i + 2]}, n = {later[3 * i], later[3 * i + 1], later[3 * i + 2]};
    int2 shape = shape_of[i];
    float4 low = shapes[2 * shape.x], high = shapes[2 * shape.x + 1];
    float3 centre = xyz(low + high) * 0.5f, half_size = xyz(high - low) * 0.5f, corner, far_corner, other, far_other;
    place_box(m, centre, half_size, &corner, &far_corner);
    place_box(n, centre, half_size, &other, &far_other);
    corner = make_float3(smaller(corner.x, other.x), smaller(corner.y, other.y), smaller(corner.z, other.z));
    far_corner = make_float3(larger(far_corner.x, far_other.x), larger(far_corner.y, far_other.y), larger(far_corner.z, far_other.z));
    records[3 * i] = with_w(corner, as_float((int)i));
    records[3 * i + 1] = with_w(far_corner - corner, 0.0f);
    records[3 * i + 2] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    Matrix back = inverse_of(m);
    placed[i].x = back.x;
    placed[i].y = back.y;
    placed[i].z = back.z;
    placed[i].node = as_int(low.w);
    placed[i].primitive = as_int(high.w);
    placed[i].material = shape.y;
}

// hits: t, u, v, row of the joined primitives or -1; instances: which one was hit.
KERNEL closest_placed(GLOBAL const float4 *rays, GLOBAL float4 *hits, GLOBAL int *instances, int count, PLACED_TAKEN) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Hit best = {rays[2 * i].w, 0.0f, 0.0f, -1};
    int instance = -1;
    closest_placed_hit(PLACED_GIVEN, with_w(xyz(rays[2 * i]), 0.0f), xyz(rays[2 * i + 1]), &best, &instance);
    hits[i] = make_float4(best.t, best.u, best.v, as_float(best.primitive));
    instances[i] = instance;
}
