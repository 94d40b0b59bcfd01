// Complex numbers with their derivative by the pixel's c, for formulas that renderer/fractals/formula.py compiles. A
// conjugate is not complex differentiable: after dual_conj() d is the derivative along the real axis of c.
#include "fractals/wide.h"

typedef struct {
    double2 v, d;  // value, derivative
} Dual;

DEVICE Dual dual(double2 v, double2 d) {
    Dual r;
    r.v = v, r.d = d;
    return r;
}
DEVICE double2 complex_divide(double2 a, double2 b) {
    double scale = 1.0 / (b.x * b.x + b.y * b.y);
    return make_double2((a.x * b.x + a.y * b.y) * scale, (a.y * b.x - a.x * b.y) * scale);
}
DEVICE Dual dual_constant(double x, double y) { return dual(make_double2(x, y), make_double2(0.0, 0.0)); }
DEVICE Dual dual_add(Dual a, Dual b) { return dual(a.v + b.v, a.d + b.d); }
DEVICE Dual dual_subtract(Dual a, Dual b) { return dual(a.v - b.v, a.d - b.d); }
DEVICE Dual dual_multiply(Dual a, Dual b) {
    return dual(complex_multiply(a.v, b.v), complex_multiply(a.d, b.v) + complex_multiply(a.v, b.d));
}
DEVICE Dual dual_divide(Dual a, Dual b) {
    double2 q = complex_divide(a.v, b.v);
    return dual(q, complex_divide(a.d - complex_multiply(q, b.d), b.v));
}
// The number times i.
DEVICE Dual dual_turn(Dual a) { return dual(make_double2(-a.v.y, a.v.x), make_double2(-a.d.y, a.d.x)); }
DEVICE Dual dual_exp(Dual a) {
    double2 e = make_double2(cos(a.v.y), sin(a.v.y)) * exp(a.v.x);
    return dual(e, complex_multiply(e, a.d));
}
DEVICE Dual dual_log(Dual a) {
    return dual(make_double2(log(sqrt(a.v.x * a.v.x + a.v.y * a.v.y)), atan2(a.v.y, a.v.x)), complex_divide(a.d, a.v));
}
DEVICE double2 complex_cosh(double2 a) { return make_double2(cosh(a.x) * cos(a.y), sinh(a.x) * sin(a.y)); }
DEVICE double2 complex_sinh(double2 a) { return make_double2(sinh(a.x) * cos(a.y), cosh(a.x) * sin(a.y)); }
DEVICE Dual dual_cosh(Dual a) { return dual(complex_cosh(a.v), complex_multiply(complex_sinh(a.v), a.d)); }
DEVICE Dual dual_sinh(Dual a) { return dual(complex_sinh(a.v), complex_multiply(complex_cosh(a.v), a.d)); }
// cos(a) = cosh(i a), sin(a) = i sinh(-i a)
DEVICE Dual dual_cos(Dual a) { return dual_cosh(dual_turn(a)); }
DEVICE Dual dual_sin(Dual a) { return dual_turn(dual_sinh(dual_turn(dual_multiply(a, dual_constant(-1.0, 0.0))))); }
DEVICE Dual dual_real_power(Dual a, double exponent) {
    if (a.v.x == 0.0 && a.v.y == 0.0) return dual_constant(0.0, 0.0);  // 0 has no logarithm
    return dual_exp(dual_multiply(dual_log(a), dual_constant(exponent, 0.0)));
}
DEVICE Dual dual_sqrt(Dual a) { return dual_real_power(a, 0.5); }
// conj has no complex derivative: from here on d is the derivative along the real axis of c.
DEVICE Dual dual_conj(Dual a) { return dual(make_double2(a.v.x, -a.v.y), make_double2(a.d.x, -a.d.y)); }
// a to an integer power, by repeated squaring.
DEVICE Dual dual_power(Dual a, int exponent) {
    Dual r = dual_constant(1.0, 0.0);
    for (int k = exponent < 0 ? -exponent : exponent; k; k >>= 1) {
        if (k & 1) r = dual_multiply(r, a);
        a = dual_multiply(a, a);
    }
    return exponent < 0 ? dual_divide(dual_constant(1.0, 0.0), r) : r;
}
