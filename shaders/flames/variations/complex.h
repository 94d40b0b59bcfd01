// Inverse functions of a complex number, times 2 / pi.
// Origin: JWildfire

DEVICE Pair complex_times(Pair a, Pair b) { return pair(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

DEVICE Pair complex_quotient(Pair a, Pair b) {
    real k = 1.0f / (b.x * b.x + b.y * b.y);
    return pair(k * (a.x * b.x + a.y * b.y), k * (a.y * b.x - a.x * b.y));
}

DEVICE Pair complex_reciprocal(Pair z) {
    real k = 1.0f / (z.x * z.x + z.y * z.y);
    return pair(k * z.x, -k * z.y);
}

DEVICE Pair complex_root(Pair z) {
    real r = vnorm(z.x, z.y), u = root_safe(0.5f * (r + z.x)), v = root_safe(0.5f * (r - z.x));
    return pair(u, z.y < 0.0f ? -v : v);
}

DEVICE Pair complex_log(Pair z) {
    return pair(0.5f * logarithm_of(z.x * z.x + z.y * z.y + 1e-20f), angle_of(z.y, z.x));
}

// log(z + sqrt(z^2 + s)): the area sine for s = 1, the area cosine for s = -1.
DEVICE Pair complex_area(Pair z, float s) {
    Pair square_of = complex_times(z, z), root = complex_root(pair(square_of.x + s, square_of.y));
    return complex_log(pair(z.x + root.x, z.y + root.y));
}

DEVICE Pair complex_artanh(Pair z) {
    Pair l = complex_log(complex_quotient(pair(z.x + 1.0f, z.y), pair(1.0f - z.x, -z.y)));
    return pair(0.5f * l.x, 0.5f * l.y);
}

DEVICE Pair of_either_sign(float weight, Pair z, real u) {
    real k = u < 0.5f ? (real)(weight * (2.0f / PI)) : (real)(-weight * (2.0f / PI));
    return scaled(k, z.x, z.y);
}

VARIATION(arcsinh) {
    Pair z = complex_area(pair(x, y), 1.0f);
    return scaled(weight * (2.0f / PI), z.x, z.y);
}

VARIATION(arctanh) {
    Pair z = complex_artanh(pair(x, y));
    return scaled(weight * (4.0f / PI), z.x, z.y);
}

VARIATION(acoth) {
    Pair z = complex_artanh(complex_reciprocal(pair(x, y)));
    return scaled(weight * (2.0f / PI), z.y, z.x);
}

VARIATION(acosh) { return of_either_sign(weight, complex_area(pair(x, y), -1.0f), uniform(random)); }

VARIATION(acosech) {
    Pair z = complex_area(complex_reciprocal(pair(x, y)), -1.0f);
    return of_either_sign(weight, swapped(z), uniform(random));
}

VARIATION(sqrt_acosh) { return of_either_sign(weight, complex_area(complex_root(pair(x, y)), -1.0f), uniform(random)); }

VARIATION(sqrt_acoth) {
    Pair z = complex_artanh(complex_reciprocal(complex_root(pair(x, y))));
    return of_either_sign(weight, z, uniform(random));
}

VARIATION(sqrt_asech) {
    Pair z = complex_area(complex_reciprocal(complex_root(pair(x, y))), 1.0f);
    return of_either_sign(weight, z, uniform(random));
}

VARIATION(sqrt_acosech) {
    Pair z = complex_area(complex_reciprocal(complex_root(pair(x, y))), -1.0f);
    return of_either_sign(weight, z, uniform(random));
}

VARIATION(sqrt_asinh) { return of_either_sign(weight, complex_area(complex_root(pair(x, y)), 1.0f), uniform(random)); }

VARIATION(sqrt_atanh) { return of_either_sign(weight, complex_artanh(complex_root(pair(x, y))), uniform(random)); }

VARIATION(arcsech2) {
    Pair z = complex_reciprocal(pair(x, y)), a = complex_root(pair(z.x - 1.0f, z.y));
    Pair b = complex_times(complex_root(pair(z.x + 1.0f, z.y)), a), l = complex_log(pair(z.x + b.x, z.y + b.y));
    real u = weight * (2.0f / PI) * l.x, v = weight * (2.0f / PI) * l.y;
    return pair(v < 0.0f ? u : -u, v < 0.0f ? v + 1.0f : v - 1.0f);
}

VARIATION(plusrecip, ar = 4, ai = 0) {
    float size = sqrt(ar * ar + ai * ai + 1e-20f);
    Pair z = pair(x, y), s = complex_times(z, z), k = complex_root(pair(s.x - ar, s.y - ai));
    k = pair(k.x + x, k.y + y);
    Pair q = complex_times(k, k), other = complex_times(pair(k.x, -k.y), pair((real)(-ar / size), (real)(-ai / size)));
    mask inner = sqrt(q.x * q.x + q.y * q.y + 1e-20f) < size;
    real u = inner ? other.x : k.x, v = inner ? other.y : k.y;
    return scaled(u < 0.0f ? (real)(-weight) : (real)(weight), u, v);
}

VARIATION(julia_outside, re_div = 1, im_div = 0, mode = 0) {
    Pair z = pair(x, y), root = complex_root(z);
    if (mode != 1.0f) z = root;
    Pair a = pair(z.x + 1.0f, z.y), b = pair(z.x - 1.0f, z.y);
    if (mode != 1.0f) {
        a = complex_times(a, a);
        b = complex_times(b, b);
    }
    Pair q = complex_quotient(a, b);
    if (mode != 2.0f) q = complex_root(q);
    q = complex_quotient(q, pair((real)(re_div), (real)(im_div)));
    real side = uniform(random) < 0.5f ? (real)(weight) : (real)(-weight);
    return scaled(mode != 2.0f ? side : (real)(weight), q.x, q.y);
}
