// Maps of x, y and z: rotations, tilts, cylinders, and heights that depend on x and y.
// Grammar, given names and shared functions: shaders/flames/variation.h.

// Origin: flam3

VARIATION(cylinder) { return scaled(weight, sine_of(x), y); }

VARIATION_Z(cylinder) { return weight * cosine_of(x); }

VARIATION(perspective, angle = 0, dist = 0) {
    Pair c = circle((real)(angle * (PI / 2.0f)));
    real t = 1.0f / (dist - y * c.y);
    return scaled(weight * t, dist * x, dist * c.x * y);
}

// Origin: JWildfire

VARIATION_3D(zcone) { return triple(zero_real(), zero_real(), weight * vnorm(x, y)); }

VARIATION_3D(inflateZ_1) { return triple(zero_real(), zero_real(), weight * (sine_of(angle_of(y, x)) - 2.0f * y)); }

VARIATION_3D(inflateZ_3) {
    real a = angle_of(y, x);
    return triple(zero_real(), zero_real(), weight * 0.2f * (PI - a) * cosine_of(3.0f * a + (y - x)));
}

VARIATION_3D(inflateZ_4) {
    real a = 0.5f * PI - angle_of(y, x);
    return triple(zero_real(), zero_real(), weight * 0.25f * (uniform(random) < 0.5f ? -a : a));
}

VARIATION_3D(inflateZ_5) { return triple(zero_real(), zero_real(), weight * 0.5f * sine_of(angle_of(y, x))); }

VARIATION_3D(inflateZ_6) {
    real a = angle_of(y, x), k = a * sine_of(y - x);
    return triple(zero_real(), zero_real(), weight * (1.5f - arccosine(sine_of(a) * k * 0.5f)));
}

// The maps of z alone below are written as post_ in files.
VARIATION_3D(rotate_x) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(x, c.y * z + c.x * y, c.x * z - c.y * y);
}

VARIATION_3D(rotate_y) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(c.x * x - c.y * z, y, c.y * x + c.x * z);
}

VARIATION_3D(rotate_z) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(c.y * y + c.x * x, c.x * y - c.y * x, z);
}

VARIATION_3D(cylinder_apo) { return scaled3(weight, sine_of(x), y, cosine_of(x)); }

VARIATION_3D(inflateZ_2) { return triple(zero_real(), zero_real(), weight * (0.25f - 2.0f * (x + y) * 0.333333f)); }

VARIATION_3D(helix, frequency = 1, width = 0.5) {
    Pair c = circle(z * (TWO_PI * frequency));
    return scaled3(weight, x + c.x * width, y + c.y * width, z);
}

VARIATION_3D(helicoid, frequency = 1) {
    Pair p = from_polar(weight * vnorm(x, y), z * (TWO_PI * frequency) + angle_of(y, x));
    return triple(p.x, p.y, weight * z);
}

VARIATION_3D(swirl3D_wf, n = 0) {
    real s = sine_of(6.0f * cosine_of(vnorm(x, y)) - floor(n + 0.5f) * angle_of(y, x));
    *color = magnitude(s);
    return scaled3(weight, x, y, s);
}

// z becomes 0.
POST_3D(flatten) { return triple(x, y, zero_real()); }

// A power of any real; NaN for a negative base and an exponent that is not whole.
DEVICE real power_or_nan(real x, float exponent) {
    real p = power_of(magnitude(x), (real)(exponent)), none = (x - x) / (x - x);
    if (exponent != floor(exponent)) return x < 0.0f ? none : p;
    return exponent - 2.0f * floor(0.5f * exponent) == 0.0f ? p : with_sign_of(p, x);
}

VARIATION_3D(ho, xpow = 3, ypow = 3, zpow = 3) {
    Pair u = circle(x), v = circle(y);
    real a = u.x * v.x, b = u.y * v.x, z2 = z * z;
    real p = power_or_nan(a, xpow) + a * xpow + 0.25f * angle_of(y * y, z2);
    real q = power_or_nan(b, ypow) + b * ypow + 0.25f * angle_of(x * x, z2);
    return scaled3(weight, p, q, power_or_nan(v.y, zpow) + v.y * zpow);
}

VARIATION_3D(sphere_nja, circle_a = 1, circle_b = 1, shift_x = 0, shift_y = 0, shift_z = 0, stretch = 1) {
    real u = x - shift_x, v = y - shift_y, h = z - shift_z, s = vnorm(u, v);
    Pair c = circle(s / stretch - 0.5f * PI);
    real r = weight * c.x, w = weight * c.y, k = r * (1.0f + h) / s;
    return triple(k * u + shift_x, k * v + shift_y, w + h * w / (r * r + w * w) + shift_z);
}

VARIATION_3D(extrude, root_face = 0.5) {
    mask root = uniform(random) < root_face;
    real h = uniform(random);
    return triple(zero_real(), zero_real(), root ? (real)(fmax(weight, 0.0f)) : weight * h);
}

// Origin: Apophysis

// A. Liasotskiy's depth: as pre_ and among the others; its post_ needs the point before the variations.
VARIATION_3D(depth, power = 1) {
    real k = magnitude(z);
    if (power != 1.0f) k = k == 0.0f ? k : power_of(k, (real)(power));
    k = weight * (1.0f + k);
    return scaled3(k, x, y, z);
}
