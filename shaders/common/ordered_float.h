// Maps floats other than NaN to unsigned integers in the same order, and back: for sorting, and for atomic minima and
// maxima, which devices have for integers only (bvh/aabb.h).
DEVICE uint ordered_from_float(float x) { return as_uint(x) ^ ((as_uint(x) >> 31) ? 0xffffffffu : 0x80000000u); }
DEVICE float float_from_ordered(uint x) { return as_float(x ^ ((x >> 31) ? 0x80000000u : 0xffffffffu)); }
