// Inverse functions of a complex number, times 2 / pi, and sums of functions.
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

DEVICE Pair plus_scaled(Pair sum, real k, Pair z) { return pair(sum.x + k * z.x, sum.y + k * z.y); }
DEVICE real hyperbolic_sine(real x) { return hyperbola(x).y; }
DEVICE real hyperbolic_cosine(real x) { return hyperbola(x).x; }
DEVICE Pair scaled_pair(real k, Pair z) { return pair(k * z.x, k * z.y); }

// Reciprocal, log((z + 1) / (z - 1)), root, exp and log follow one another; the others add up what they make of that.
VARIATION(trig, reciprocalpow = 1, log_dividepow = 0, sqrtpow = 0, exppow = 0, logpow = 0, asinhpow = 0, acoshpow = 0,
          atanhpow = 0, asinpow = 0, acospow = 0, atanpow = 0, sinpow = 0, cospow = 0, tanpow = 0, sinhpow = 0,
          coshpow = 0, tanhpow = 0) {
    Pair z = pair(x, y), sum = pair(zero_real(), zero_real()), t;
    real first = uniform(random), second = uniform(random), k = (real)(weight * (2.0f / PI)), w = (real)(weight);
    if (reciprocalpow != 0.0f) z = scaled_pair(w * reciprocalpow, complex_reciprocal(z));
    if (log_dividepow != 0.0f) {
        t = complex_log(complex_quotient(pair(z.x + 1.0f, z.y), pair(z.x - 1.0f, z.y)));
        z = scaled_pair(k * log_dividepow, t);
    }
    if (sqrtpow != 0.0f) z = scaled_pair(sqrtpow * (first < 0.5f ? w : -w), complex_root(z));
    if (exppow != 0.0f) z = complex_exp(w * exppow, z.x, z.y);
    if (logpow != 0.0f) z = scaled_pair(w * logpow, complex_log(z));
    if (asinhpow != 0.0f) sum = plus_scaled(sum, k * asinhpow, complex_area(z, 1.0f));
    if (acoshpow != 0.0f) sum = plus_scaled(sum, acoshpow * (second < 0.5f ? k : -k), complex_area(z, -1.0f));
    if (atanhpow != 0.0f) sum = plus_scaled(sum, k * atanhpow, complex_artanh(z));
    if (asinpow != 0.0f) sum = plus_scaled(sum, k * asinpow, swapped(complex_area(swapped(z), 1.0f)));
    if (acospow != 0.0f) {
        t = swapped(complex_area(swapped(z), 1.0f));
        sum = plus_scaled(sum, k * acospow, pair(0.5f * PI - t.x, -t.y));
    }
    if (atanpow != 0.0f) sum = plus_scaled(sum, k * atanpow, swapped(complex_artanh(swapped(z))));
    Pair cx = circle(z.x), hy = hyperbola(z.y), hx = hyperbola(z.x), cy = circle(z.y);
    Pair sine = pair(cx.y * hy.x, cx.x * hy.y), cosine = pair(cx.y * hy.y, cx.x * hy.x);  // as the origin's
    Pair sinh_of = pair(hx.y * cy.x, hx.x * cy.y), cosh_of = pair(hx.x * cy.x, hx.y * cy.y);
    if (sinpow != 0.0f) sum = plus_scaled(sum, w * sinpow, sine);
    if (cospow != 0.0f) sum = plus_scaled(sum, w * cospow, cosine);
    if (tanpow != 0.0f) sum = plus_scaled(sum, w * tanpow, complex_quotient(sine, cosine));
    if (sinhpow != 0.0f) sum = plus_scaled(sum, w * sinhpow, sinh_of);
    if (coshpow != 0.0f) sum = plus_scaled(sum, w * coshpow, cosh_of);
    if (tanhpow != 0.0f) sum = plus_scaled(sum, w * tanhpow, complex_quotient(sinh_of, cosh_of));
    float inverse = asinhpow + acoshpow + atanhpow + asinpow + acospow + atanpow;
    return inverse + sinpow + cospow + tanpow + sinhpow + coshpow + tanhpow == 0.0f ? z : sum;
}

VARIATION(complex, cospow = 1, cosx1 = 1, cosx2 = 1, cosy1 = 1, cosy2 = 1, coshpow = 0, coshx1 = 1, coshx2 = 1,
          coshy1 = 1, coshy2 = 1, cotpow = 0, cotx1 = 2, cotx2 = 2, coty1 = 2, coty2 = 2, cothpow = 0, cothx1 = 2,
          cothx2 = 2, cothy1 = 2, cothy2 = 2, cscpow = 0, cscx1 = 1, cscx2 = 1, cscy1 = 1, cscy2 = 1, cschpow = 0,
          cschx1 = 1, cschx2 = 1, cschy1 = 1, cschy2 = 1, exppow = 0, expx1 = 1, expy1 = 1, expy2 = 1, secpow = 0,
          secx1 = 1, secx2 = 1, secy1 = 1, secy2 = 1, sechpow = 0, sechx1 = 1, sechx2 = 1, sechy1 = 1, sechy2 = 1,
          sinpow = 0, sinx1 = 1, sinx2 = 1, siny1 = 1, siny2 = 1, sinhpow = 0, sinhx1 = 1, sinhx2 = 1, sinhy1 = 1,
          sinhy2 = 1, tanpow = 0, tanx1 = 2, tanx2 = 2, tany1 = 2, tany2 = 2, tanhpow = 0, tanhx1 = 2, tanhx2 = 2,
          tanhy1 = 2, tanhy2 = 2) {
    real u = zero_real(), v = zero_real();
    if (cospow != 0.0f) {
        u = u + cospow * cosine_of(x * cosx2) * hyperbolic_cosine(y * cosy2);
        v = v - cospow * sine_of(x * cosx1) * hyperbolic_sine(y * cosy1);
    }
    if (coshpow != 0.0f) {
        u = u + coshpow * hyperbolic_cosine(x * coshx2) * cosine_of(y * coshy2);
        v = v + coshpow * hyperbolic_sine(x * coshx1) * sine_of(y * coshy1);
    }
    if (cotpow != 0.0f) {
        real k = cotpow / (hyperbolic_cosine(coty2 * y) - cosine_of(cotx2 * x));
        u = u + k * sine_of(cotx1 * x);
        v = v - k * hyperbolic_sine(coty1 * y);
    }
    if (cothpow != 0.0f) {
        real k = cothpow / (hyperbolic_cosine(cothx2 * x) - cosine_of(cothy2 * y));
        u = u + k * hyperbolic_sine(cothx1 * x);
        v = v + k * sine_of(cothy1 * y);
    }
    if (cscpow != 0.0f) {
        real k = 2.0f * cscpow / (hyperbolic_cosine(2.0f * y) - cosine_of(2.0f * x));
        u = u + k * sine_of(x * cscx1) * hyperbolic_cosine(y * cscy2);
        v = v - k * cosine_of(x * cscx2) * hyperbolic_sine(y * cscy1);
    }
    if (cschpow != 0.0f) {
        real k = 2.0f * cschpow / (hyperbolic_cosine(2.0f * x) - cosine_of(2.0f * y));
        u = u + k * hyperbolic_sine(x * cschx1) * cosine_of(y * cschy2);
        v = v - k * hyperbolic_cosine(x * cschx2) * sine_of(y * cschy1);
    }
    if (exppow != 0.0f) {
        real k = exppow * exponential_of(x * expx1);
        u = u + k * cosine_of(y * expy2);
        v = v + k * sine_of(y * expy1);
    }
    if (secpow != 0.0f) {
        real k = 2.0f * secpow / (cosine_of(2.0f * x) + hyperbolic_cosine(2.0f * y));
        u = u + k * cosine_of(x * secx2) * hyperbolic_cosine(y * secy2);
        v = v + k * sine_of(x * secx1) * hyperbolic_sine(y * secy1);
    }
    if (sechpow != 0.0f) {
        real k = 2.0f * sechpow / (cosine_of(2.0f * y) + hyperbolic_cosine(2.0f * x));
        u = u + k * hyperbolic_cosine(x * sechx2) * cosine_of(y * sechy2);
        v = v - k * hyperbolic_sine(x * sechx1) * sine_of(y * sechy1);
    }
    if (tanpow != 0.0f) {
        real k = tanpow / (cosine_of(tanx2 * x) + hyperbolic_cosine(tany2 * y));
        u = u + k * sine_of(tanx1 * x);
        v = v + k * hyperbolic_sine(tany1 * y);
    }
    if (tanhpow != 0.0f) {
        real k = tanhpow / (cosine_of(y * tanhy2) + hyperbolic_cosine(x * tanhx2));
        u = u + k * hyperbolic_sine(x * tanhx1);
        v = v + k * sine_of(y * tanhy1);
    }
    if (sinpow != 0.0f) {
        u = u + sinpow * sine_of(x * sinx1) * hyperbolic_cosine(y * siny2);
        v = v + sinpow * cosine_of(x * sinx2) * hyperbolic_sine(y * siny1);
    }
    if (sinhpow != 0.0f) {
        u = u + sinhpow * hyperbolic_sine(x * sinhx1) * cosine_of(y * sinhy2);
        v = v + sinhpow * hyperbolic_cosine(x * sinhx2) * sine_of(y * sinhy1);
    }
    return scaled(weight, u, v);
}
