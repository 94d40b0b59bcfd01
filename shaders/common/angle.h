// fabs, copysign and atan2 with the same bits on every device; common/reproducible_math.h and
// raytracing/packets/shade_simd8.h include it. `real` is a float, or a vector of LANES floats (common/simd.h).
#include "common/simd.h"

// |x|.
DEVICE real magnitude(real x) { return real_of_bits(bits_of(x) & 0x7fffffffu); }

// The magnitude of `size` with the sign of `sign` (copysign).
DEVICE real with_sign_of(real size, real sign) {
    return real_of_bits((bits_of(size) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}

// atan2(y, x): the angle of the point (x, y) from the +x axis in radians, -pi to pi; 0 at the origin. Polynomial of
// Cephes's atanf, for tangents t of at most tan(pi / 8) = 0.414: the point is reflected into the first octant
// (`steep`), and from pi / 8 on (`middle`) turned back by pi / 4.
DEVICE real angle_of(real y, real x) {
    real ax = magnitude(x), ay = magnitude(y);
    mask steep = ay > ax;
    real larger = steep ? ay : ax, smaller = steep ? ax : ay;
    mask middle = smaller > 0.4142135623730950f * larger;
    real numerator = middle ? smaller - larger : smaller;
    real denominator = middle ? smaller + larger : larger;
    real t = numerator / (denominator == 0.0f ? (real)(1.0f) : denominator);
    real z = t * t;
    real p = FUSED(z, 8.05374449538e-2f, -1.38776856032e-1f);
    p = FUSED(p, z, 1.99777106478e-1f);
    p = FUSED(p, z, -3.33329491539e-1f);
    real a = FUSED(p * z, t, t);
    a = middle ? a + 0.785398163397448f : a;
    a = steep ? 1.570796326794897f - a : a;
    a = (bits_of(x) >> 31) != 0u ? 3.141592653589793f - a : a;
    return with_sign_of(a, y);
}
