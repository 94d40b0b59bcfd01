// For sum_exact.cu and sum_bins.cu: adds products of doubles whose rounding error is not a double, because product or
// error would overflow or underflow. DOT, SINGLE and WIDTH are defined in sum_tiles.h; LIMB_BASE, flags, add_double and
// ADD_LIMB in superaccumulator.h. Local memory is CUDA's shared memory.
#if DOT && !SINGLE
// Adds x y exactly: the 106-bit product of the mantissas a and b, made of four 32 x 32 bit products, goes to five limbs
// of the superaccumulator. p and q are the biased exponents of x and y, so x is a 2^(p - 1075); for a subnormal number,
// where p is 0, the exponent is as for 1 and the leading bit is missing. `power` is the exponent of the product's last
// bit.
DEVICE void spill_product(double x, double y, LOCAL uint *limbs, LOCAL uint *flags) {
    if (!isfinite(x) || !isfinite(y) || x == 0 || y == 0) {
        double product = x * y;
        add_double(limbs, flags, product);
        return;
    }
    ulong a = as_ulong(x), b = as_ulong(y);
    int p = (int)(a >> 52) & 0x7ff, q = (int)(b >> 52) & 0x7ff;
    bool negative = ((a ^ b) >> 63) != 0;
    a = (a & 0xffffffffffffful) | (p ? 0x10000000000000ul : 0);
    b = (b & 0xffffffffffffful) | (q ? 0x10000000000000ul : 0);
    int power = (p ? p : 1) + (q ? q : 1) - 2150;
    ulong a_low = a & 0xfffffffful, a_high = a >> 32, b_low = b & 0xfffffffful, b_high = b >> 32;
    if (!(*flags & FLAG_NOT_NEGATIVE_ZERO)) atomic_or(flags, FLAG_NOT_NEGATIVE_ZERO);  // all threads share the word
    ulong low = a_low * b_low, middle = a_low * b_high + a_high * b_low, high = a_high * b_high;
    ulong second = (low >> 32) + (middle & 0xfffffffful), third = (second >> 32) + (middle >> 32) + high;
    ulong words[4] = {low & 0xfffffffful, second & 0xfffffffful, third & 0xfffffffful, third >> 32}, carry = 0;
    uint position = (uint)(power - LIMB_BASE), shift = position & 31u;
    UNROLL for (int k = 0; k < 5; k++) {  // the 128 bits of `words`, shifted to the limb in which the product begins
        ulong shifted = k < 4 ? words[k] << shift : 0, limb = (shifted & 0xfffffffful) + carry;
        carry = shifted >> 32;
        if (negative) limb = 0 - limb;
        if (limb) ADD_LIMB(limbs, (position >> 5) + k, limb)
    }
}
// The same for WIDTH products; not inlined, since it is rare and takes many registers.
DEVICE_NOINLINE void spill_products(const double *xs, const double *ys, LOCAL uint *limbs, LOCAL uint *flags) {
    for (int i = 0; i < WIDTH; i++) spill_product(xs[i], ys[i], limbs, flags);
}
#endif
