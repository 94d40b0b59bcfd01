// Updates instances that have moved, before a frame: writes their records for bvh/traverse_instances.h and their boxes,
// over which bvh/build_hploc.cu then builds the TLAS.
#include "bvh/aabb.h"
#include "bvh/traverse_instances.h"

// The half extent, along one axis, of a box transformed by a matrix with this row.
DEVICE float sum_of_abs(float4 row, float3 half_extent) {
    return fabs(row.x) * half_extent.x + fabs(row.y) * half_extent.y + fabs(row.z) * half_extent.z;
}

// The AABB of a transformed box, padded for the rounding of transformed rays.
DEVICE Box transform_box(const Matrix m, float3 center, float3 half_extent) {
    float3 moved = transform(m, center, 1.0f);
    float3 extent =
        make_float3(sum_of_abs(m.x, half_extent), sum_of_abs(m.y, half_extent), sum_of_abs(m.z, half_extent));
    float3 padded = extent + splat3(1e-5f * (largest_of3(abs3(moved)) + largest_of3(extent)));
    Box box = {moved - padded, moved + padded};
    return box;
}

// One thread per instance. In:
//     matrices_open, matrices_close   (count, 3) float4: matrices from shape to world space at shutter open and close
//     shape_of                        (count) int2: an instance's shape and material (-1: the materials of the shape)
//     shapes                          (shapes, 3) float4: min corner, first node | max corner, first primitive |
//                                     unused, first closing primitive (-1: none); the numbers are ints, in w
// Out: tlas_primitives, whose boxes from v0 to v0 + edge1 are the instances' boxes; instance_records, with the inverse
// matrix at shutter open. Matrices are interpolated linearly, so every point moves along a line, and the union of the
// boxes at both ends contains it.
KERNEL update_instances(GLOBAL const float4 *matrices_open, GLOBAL const float4 *matrices_close,
                        GLOBAL const int2 *shape_of, GLOBAL const float4 *shapes, int count,
                        GLOBAL float4 *tlas_primitives, GLOBAL InstanceRecord *instance_records) {
    uint i = thread_index();
    if (i >= (uint)count) return;
    Matrix open = {matrices_open[3 * i], matrices_open[3 * i + 1], matrices_open[3 * i + 2]};
    Matrix close = {matrices_close[3 * i], matrices_close[3 * i + 1], matrices_close[3 * i + 2]};
    int2 shape = shape_of[i];
    float4 low = shapes[3 * shape.x], high = shapes[3 * shape.x + 1], closing = shapes[3 * shape.x + 2];
    float3 center = xyz(low + high) * 0.5f, half_extent = xyz(high - low) * 0.5f;
    Box box = box_union(transform_box(open, center, half_extent), transform_box(close, center, half_extent));
    tlas_primitives[3 * i] = with_w(box.low, as_float((int)i));
    tlas_primitives[3 * i + 1] = with_w(box.high - box.low, 0.0f);
    tlas_primitives[3 * i + 2] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    Matrix to_shape = inverse(open);
    InstanceRecord record = {to_shape.x,     to_shape.y, to_shape.z,       as_int(low.w),
                             as_int(high.w), shape.y,    as_int(closing.w)};
    instance_records[i] = record;
}
