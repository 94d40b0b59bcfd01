// Complex numbers with the range of an int exponent (floatexp): m * 2^e, where the larger component of m lies in
// [1, 2). Double has 11 bits of exponent, which end at 1e-308; views are as small as 1e-10000.
typedef struct {
    double2 m;
    int e;
} Wide;
#define ZERO_EXPONENT (-(1 << 26))

DEVICE double2 complex_multiply(double2 a, double2 b) {
    return make_double2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
DEVICE double max_norm(double2 a) { return fmax(fabs(a.x), fabs(a.y)); }
// 2^e, 0 below the normal numbers, and 2^1023 above.
DEVICE double power_of_two(int e) { return e < -1022 ? 0.0 : as_double((ulong)(min(e, 1023) + 1023) << 52); }
DEVICE int exponent_of(double x) { return (int)(as_ulong(x) >> 52 & 0x7ffu) - 1023; }

// m times 2^e, with a mantissa whose larger component is 1 to 2.
DEVICE Wide wide(double2 m, int e) {
    Wide r;
    int k = exponent_of(max_norm(m));
    r.m = m * (k == -1023 ? 0.0 : power_of_two(-k));  // subnormal numbers count as zero
    r.e = k == -1023 ? ZERO_EXPONENT : e + k;
    return r;
}
DEVICE Wide with_exponent(double2 m, int e) {  // m as it is: the exponent of unnormalized numbers must not be large
    Wide r;
    r.m = m, r.e = e;
    return r;
}
DEVICE Wide normalized(Wide a) { return wide(a.m, a.e); }
DEVICE Wide wide_add(Wide a, Wide b) {
    return a.e >= b.e ? wide(a.m + b.m * power_of_two(b.e - a.e), a.e) : wide(b.m + a.m * power_of_two(a.e - b.e), b.e);
}
DEVICE Wide wide_multiply(Wide a, Wide b) { return wide(complex_multiply(a.m, b.m), a.e + b.e); }
DEVICE double2 narrow(Wide a) { return a.m * power_of_two(a.e); }
DEVICE bool wide_less(Wide a, Wide b) { return a.e < b.e || (a.e == b.e && max_norm(a.m) < max_norm(b.m)); }
