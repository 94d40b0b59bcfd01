// Exponentials, logarithms, powers, inverse functions, rational and elliptic functions of a complex number.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// exp(z - 1), with pi y as the angle.
VARIATION(exponential) { return complex_exp(weight, x - 1.0f, PI * y); }

// z to a complex power of real part r / power and imaginary part i / power, on a random branch.
VARIATION(cpow, r = 1, i = 0, power = 1) {
    float c = r / power, d = i / power;
    real theta = angle_of(y, x), l = 0.5f * logarithm_of(x * x + y * y);
    real wedge = TWO_PI / power * floor_of(power * uniform(random));
    return complex_exp(weight, c * l - d * theta, c * theta + d * l + wedge);
}

// M. Escher's map: a complex power of z whose exponent lies on a circle.
VARIATION(escher, beta = 0) {
    Pair b = circle((real)(beta));
    real c = 0.5f * (1.0f + b.x), d = 0.5f * b.y, l = 0.5f * logarithm_of(x * x + y * y), theta = angle_of(y, x);
    return complex_exp(weight, c * l - d * theta, c * theta + d * l);
}

// The exponential of z.
VARIATION(exp) { return complex_exp(weight, x, y); }

// The logarithm of z to a base.
VARIATION(log, base = 2.718281828459045) {
    Pair p = pair(0.5f * logarithm_of(x * x + y * y), angle_of(y, x));
    if (base != 2.718281828459045f) p.x = p.x / logarithm_of((real)(base));  // flam3 knows no other base
    return scaled(weight, p.x, p.y);
}

// Origin: JWildfire

// z to the power numerator / denominator, on a random branch; the radius has another power.
VARIATION(pow_block, numerator = 6.23438210261205, denominator = 1.328007750027768, root = 1, correctn = 1,
          correctd = 1) {
    float d = fabs(denominator) <= 1e-30f ? 1e-30f : denominator;
    float n = denominator * correctn / (fabs(correctd) + 1e-30f),
          power = numerator * 0.5f / (fabs(n) <= 1e-30f ? 1e-30f : n);
    real turn = root * TWO_PI * floor_of(uniform(random) * denominator);
    return from_polar(weight * power_of(x * x + y * y, (real)(power)), (angle_of(y, x) + turn) / d * numerator);
}

// cpow with the exponent r e^(i pi a / 2) / divisor and a random winding among `range`.
VARIATION(cpow2, r = 1, a = 0, divisor = 1, range = 1) {
    Pair t = circle((real)(0.5f * PI * a));
    real c = r / divisor * t.x, d = r / divisor * t.y, angle = angle_of(y, x);
    real turn = random_index(uniform(random), range);
    angle = angle + TWO_PI * (angle < 0.0f ? turn + 1.0f : turn);
    // back by all windings, the more often the farther the angle is from 0, so that no seam shows
    angle = cosine_of(angle * (0.5f / range)) < uniform(random) * 2.0f - 1.0f ? angle - TWO_PI * range : angle;
    real l = 0.5f * logarithm_of(x * x + y * y);
    real wedge = TWO_PI / divisor * floor_of(divisor * uniform(random));
    return complex_exp(weight, c * l - d * angle, c * angle + d * l + wedge);
}

// cpow with an exponent on a spiral and a random winding whose probability falls geometrically with its number.
VARIATION(cpow3, r = 1, d = 1, divisor = 1, spread = 1) {
    real q = d < 0.0f ? -logarithm_of((real)(-d)) : logarithm_of((real)(d));
    Pair t = circle(angle_of(q * r, (real)(TWO_PI)));
    real tc = t.x * r / divisor * t.x, td = t.x * r / divisor * t.y, a = angle_of(y, x);
    real coefficient = td == 0.0f ? (real)(0.0f) : -0.095f * spread / td;
    a = a < 0.0f ? a + TWO_PI : a;
    // back by a turn, as in cpow2
    a = cosine_of(0.5f * a) < uniform(random) * 2.0f - 1.0f ? a - TWO_PI : a;
    real turn = random_sign((real)(TWO_PI), random);
    a = a + turn * floor_of(logarithm_of(uniform(random)) * coefficient + 0.5f);
    real l = 0.5f * logarithm_of(x * x + y * y);
    return complex_exp(weight, tc * l - td * a,
                       tc * a + td * l + TWO_PI / divisor * floor_of(divisor * uniform(random)));
}

// cpow2 with `spread` windings and a product in place of the sum in the angle.
VARIATION(cpow3_wf, r = 1, a = 0.1, divisor = 1, spread = 1, discrete_spread = 1, spread2 = 0, offset2 = 1) {
    Pair t = circle((real)(0.5f * PI * a));
    real c = r / divisor * t.x, d = r / divisor * t.y, angle = angle_of(y, x), n = uniform(random) * spread;
    n = discrete_spread >= 1.0f ? truncation(n) : n;
    angle = angle + TWO_PI * (angle < 0.0f ? n + 1.0f : n);
    angle = cosine_of(angle * (0.5f / spread)) < uniform(random) * 2.0f - 1.0f ? angle - TWO_PI * spread : angle;
    real l = 0.5f * logarithm_of(x * x + y * y);
    real out = c * angle * d * l * (TWO_PI / divisor) * (uniform(random) * spread2 + offset2);
    return complex_exp(weight, c * l - d * angle, out);
}

// The logarithm of z, whose base acts on the real part alone.
VARIATION(log_apo, base = 2.71828182845905) {
    real k = 0.5f / logarithm_of((real)(base));
    return scaled(weight, k * logarithm_of(x * x + y * y), angle_of(y, x));
}

// z (1 + k) / (1 + k z^power), k = c / (power - 1).
VARIATION(murl, c = 0.1, power = 1) {
    float k = power != 1.0f ? c / (power - 1.0f) : c;
    Pair p = from_polar(k * power_of(x * x + y * y, (real)(0.5f * power)), angle_of(y, x) * power);
    real re = p.x + 1.0f, im = p.y;
    return scaled(weight * (k + 1.0f) / (re * re + im * im), x * re + y * im, y * re - x * im);
}

// Binet's formula of the Fibonacci numbers for a complex index: k = log(golden ratio), s = 1 / sqrt(5).
VARIATION(fibonacci2, sc = 1, sc2 = 1) {
    float k = 0.48121182505960347f, s = 0.4472135954999579f;
    Pair a = circle(y * k), b = circle(-(x * PI + y * k));
    real r = sc * exponential_of(sc2 * (x * k)), q = sc * exponential_of(-sc2 * (x * k - y * PI));
    return scaled(weight * s, r * a.x - q * b.x, r * a.y - q * b.y);
}

// (a z^3 + b z^2 + c z + d) / (e z^3 + f z^2 + g z + h).
VARIATION(rational3, a = 0.5, b = 0, c = 0.25, d = 1, e = 0, f = 0.9, g = 0, h = 1) {
    real x2 = x * x, y2 = y * y, t3 = x * (x2 - 3.0f * y2), t2 = x2 - y2, b3 = y * (3.0f * x2 - y2), b2 = 2.0f * x * y;
    real tr = a * t3 + b * t2 + c * x + d, ti = a * b3 + b * b2 + c * y;
    real br = e * t3 + f * t2 + g * x + h, bi = e * b3 + f * b2 + g * y;
    return scaled(weight / (br * br + bi * bi), tr * br + ti * bi, ti * br - tr * bi);
}

// The product of two complex numbers.
DEVICE Pair complex_times(Pair a, Pair b) { return pair(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// The square root of z with a real part of 0 or more.
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

// The area sine times 2 / pi.
VARIATION(arcsinh) { return scaled_pair(weight * (2.0f / PI), complex_area(pair(x, y), 1.0f)); }

DEVICE Pair complex_artanh(Pair z) {
    Pair l = complex_log(complex_quotient(pair(z.x + 1.0f, z.y), pair(1.0f - z.x, -z.y)));
    return pair(0.5f * l.x, 0.5f * l.y);
}

// The area tangent times 4 / pi.
VARIATION(arctanh) { return scaled_pair(weight * (4.0f / PI), complex_artanh(pair(x, y))); }

DEVICE Pair complex_reciprocal(Pair z) {
    real k = 1.0f / (z.x * z.x + z.y * z.y);
    return pair(k * z.x, -k * z.y);
}

// The area cotangent times 2 / pi, with real and imaginary part exchanged.
VARIATION(acoth) {
    Pair z = complex_artanh(complex_reciprocal(pair(x, y)));
    return scaled(weight * (2.0f / PI), z.y, z.x);
}

// z times 2 / pi and the weight, or for u of 0.5 and more minus that: both values of an inverse function.
DEVICE Pair of_either_sign(float weight, Pair z, real u) {
    real k = u < 0.5f ? (real)(weight * (2.0f / PI)) : (real)(-weight * (2.0f / PI));
    return scaled(k, z.x, z.y);
}

// Either value of the area cosine.
VARIATION(acosh) { return of_either_sign(weight, complex_area(pair(x, y), -1.0f), uniform(random)); }

// Either value of the area cosine of 1 / z, with real and imaginary part exchanged.
VARIATION(acosech) {
    return of_either_sign(weight, swapped(complex_area(complex_reciprocal(pair(x, y)), -1.0f)), uniform(random));
}

// The sqrt_ variations are either value of an inverse function of the root of z. As in JWildfire, sqrt_asech takes the
// area sine of the reciprocal, and sqrt_acosech the area cosine.
VARIATION(sqrt_acosh) { return of_either_sign(weight, complex_area(complex_root(pair(x, y)), -1.0f), uniform(random)); }

VARIATION(sqrt_acoth) {
    return of_either_sign(weight, complex_artanh(complex_reciprocal(complex_root(pair(x, y)))), uniform(random));
}

VARIATION(sqrt_asech) {
    return of_either_sign(weight, complex_area(complex_reciprocal(complex_root(pair(x, y))), 1.0f), uniform(random));
}

VARIATION(sqrt_acosech) {
    return of_either_sign(weight, complex_area(complex_reciprocal(complex_root(pair(x, y))), -1.0f), uniform(random));
}

VARIATION(sqrt_asinh) { return of_either_sign(weight, complex_area(complex_root(pair(x, y)), 1.0f), uniform(random)); }

VARIATION(sqrt_atanh) { return of_either_sign(weight, complex_artanh(complex_root(pair(x, y))), uniform(random)); }

// The area secant times 2 / pi, moved by 1 toward the axis and mirrored below it.
VARIATION(arcsech2) {
    Pair z = complex_reciprocal(pair(x, y)), a = complex_root(pair(z.x - 1.0f, z.y));
    Pair b = complex_times(complex_root(pair(z.x + 1.0f, z.y)), a), l = complex_log(pair(z.x + b.x, z.y + b.y));
    real u = weight * (2.0f / PI) * l.x, v = weight * (2.0f / PI) * l.y;
    return pair(v < 0.0f ? u : -u, v < 0.0f ? v + 1.0f : v - 1.0f);
}

// k = z + sqrt(z^2 - a), the inverse of k -> (k + a / k) / 2; for |k^2| < |a| its conjugate times -a / |a|.
VARIATION(plusrecip, ar = 4, ai = 0) {
    float size = sqrt(ar * ar + ai * ai + 1e-20f);
    Pair z = pair(x, y), s = complex_times(z, z), k = complex_root(pair(s.x - ar, s.y - ai));
    k = pair(k.x + x, k.y + y);
    Pair q = complex_times(k, k), other = complex_times(pair(k.x, -k.y), pair((real)(-ar / size), (real)(-ai / size)));
    mask inner = sqrt(q.x * q.x + q.y * q.y + 1e-20f) < size;
    real u = inner ? other.x : k.x, v = inner ? other.y : k.y;
    return scaled(u < 0.0f ? (real)(-weight) : (real)(weight), u, v);
}

// sqrt((root + 1)^2 / (root - 1)^2) / (re_div + i im_div), where root = sqrt(z); mode 1 leaves out this root and the
// squares, mode 2 the outer root.
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
    real side = random_sign((real)(weight), random);
    return scaled(mode != 2.0f ? side : (real)(weight), q.x, q.y);
}

DEVICE Pair plus_scaled(Pair sum, real k, Pair z) { return pair(sum.x + k * z.x, sum.y + k * z.y); }

// Reciprocal, log((z + 1) / (z - 1)), root, exp and log are applied to z one after another. The result is the sum of
// the other functions of that z, each with a factor NAMEpow; z itself if all these factors are 0.
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
    Pair sine = pair(cx.y * hy.x, cx.x * hy.y), cosine = pair(cx.y * hy.y, cx.x * hy.x);  // of z
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

// sum + (k a) b + i (k c) d
DEVICE Pair plus_products(Pair sum, real k, real a, real b, real c, real d) {
    return pair(sum.x + k * a * b, sum.y + k * c * d);
}

// A sum of the functions NAME2_bs of trigonometry.h, each with a factor NAMEpow and its parameters NAMEx1, ... NAMEy2.
VARIATION(complex, cospow = 1, cosx1 = 1, cosx2 = 1, cosy1 = 1, cosy2 = 1, coshpow = 0, coshx1 = 1, coshx2 = 1,
          coshy1 = 1, coshy2 = 1, cotpow = 0, cotx1 = 2, cotx2 = 2, coty1 = 2, coty2 = 2, cothpow = 0, cothx1 = 2,
          cothx2 = 2, cothy1 = 2, cothy2 = 2, cscpow = 0, cscx1 = 1, cscx2 = 1, cscy1 = 1, cscy2 = 1, cschpow = 0,
          cschx1 = 1, cschx2 = 1, cschy1 = 1, cschy2 = 1, exppow = 0, expx1 = 1, expy1 = 1, expy2 = 1, secpow = 0,
          secx1 = 1, secx2 = 1, secy1 = 1, secy2 = 1, sechpow = 0, sechx1 = 1, sechx2 = 1, sechy1 = 1, sechy2 = 1,
          sinpow = 0, sinx1 = 1, sinx2 = 1, siny1 = 1, siny2 = 1, sinhpow = 0, sinhx1 = 1, sinhx2 = 1, sinhy1 = 1,
          sinhy2 = 1, tanpow = 0, tanx1 = 2, tanx2 = 2, tany1 = 2, tany2 = 2, tanhpow = 0, tanhx1 = 2, tanhx2 = 2,
          tanhy1 = 2, tanhy2 = 2) {
    Pair sum = pair(zero_real(), zero_real());
    if (cospow != 0.0f)
        sum = plus_products(sum, cospow, cosine_of(x * cosx2), hyperbolic_cosine(y * cosy2), -sine_of(x * cosx1),
                            hyperbolic_sine(y * cosy1));
    if (coshpow != 0.0f)
        sum = plus_products(sum, coshpow, hyperbolic_cosine(x * coshx2), cosine_of(y * coshy2),
                            hyperbolic_sine(x * coshx1), sine_of(y * coshy1));
    if (cotpow != 0.0f)
        sum = plus_scaled(sum, cotpow / (hyperbolic_cosine(coty2 * y) - cosine_of(cotx2 * x)),
                          pair(sine_of(cotx1 * x), -hyperbolic_sine(coty1 * y)));
    if (cothpow != 0.0f)
        sum = plus_scaled(sum, cothpow / (hyperbolic_cosine(cothx2 * x) - cosine_of(cothy2 * y)),
                          pair(hyperbolic_sine(cothx1 * x), sine_of(cothy1 * y)));
    if (cscpow != 0.0f)
        sum =
            plus_products(sum, 2.0f * cscpow / (hyperbolic_cosine(2.0f * y) - cosine_of(2.0f * x)), sine_of(x * cscx1),
                          hyperbolic_cosine(y * cscy2), -cosine_of(x * cscx2), hyperbolic_sine(y * cscy1));
    if (cschpow != 0.0f)
        sum = plus_products(sum, 2.0f * cschpow / (hyperbolic_cosine(2.0f * x) - cosine_of(2.0f * y)),
                            hyperbolic_sine(x * cschx1), cosine_of(y * cschy2), -hyperbolic_cosine(x * cschx2),
                            sine_of(y * cschy1));
    if (exppow != 0.0f)
        sum = plus_scaled(sum, exppow * exponential_of(x * expx1), pair(cosine_of(y * expy2), sine_of(y * expy1)));
    if (secpow != 0.0f)
        sum = plus_products(sum, 2.0f * secpow / (cosine_of(2.0f * x) + hyperbolic_cosine(2.0f * y)),
                            cosine_of(x * secx2), hyperbolic_cosine(y * secy2), sine_of(x * secx1),
                            hyperbolic_sine(y * secy1));
    if (sechpow != 0.0f)
        sum = plus_products(sum, 2.0f * sechpow / (cosine_of(2.0f * y) + hyperbolic_cosine(2.0f * x)),
                            hyperbolic_cosine(x * sechx2), cosine_of(y * sechy2), -hyperbolic_sine(x * sechx1),
                            sine_of(y * sechy1));
    if (tanpow != 0.0f)
        sum = plus_scaled(sum, tanpow / (cosine_of(tanx2 * x) + hyperbolic_cosine(tany2 * y)),
                          pair(sine_of(tanx1 * x), hyperbolic_sine(tany1 * y)));
    if (tanhpow != 0.0f)
        sum = plus_scaled(sum, tanhpow / (cosine_of(y * tanhy2) + hyperbolic_cosine(x * tanhx2)),
                          pair(hyperbolic_sine(x * tanhx1), sine_of(y * tanhy1)));
    if (sinpow != 0.0f)
        sum = plus_products(sum, sinpow, sine_of(x * sinx1), hyperbolic_cosine(y * siny2), cosine_of(x * sinx2),
                            hyperbolic_sine(y * siny1));
    if (sinhpow != 0.0f)
        sum = plus_products(sum, sinhpow, hyperbolic_sine(x * sinhx1), cosine_of(y * sinhy2),
                            hyperbolic_cosine(x * sinhx2), sine_of(y * sinhy1));
    return scaled_pair(weight, sum);
}

// z times (c + 1)^(2 / power), over (1 + c z^power)^(2 / power).
VARIATION(murl2, c = 0.1, power = 3) {
    float inverse = power != 0.0f ? 1.0f / power : 1e11f;
    real k =
        weight * (c == -1.0f ? zero_real() : power_of((real)(c + 1.0f), (real)(power != 0.0f ? 2.0f / power : 4.0f)));
    Pair p = from_polar(c * power_of(x * x + y * y, (real)(0.5f * power)), angle_of(y, x) * power);
    real re = p.x + 1.0f, im = p.y, r = power_of(re * re + im * im, (real)(inverse));
    Pair q = from_polar(r, angle_of(im, re) * (2.0f * inverse));
    return scaled(k / (r * r), x * q.x + y * q.y, y * q.x - x * q.y);
}

// A random integer: -2, -1, 1 or 2, each with probability 0.1, else 0.
DEVICE real random_sheet(Random *random) {
    real k = random_index(uniform(random), 10.0f) - 5.0f;
    return magnitude(k) < 3.0f ? k : zero_real();
}

// The logarithm of z on a random sheet.
VARIATION(log_db, base = 1, fix_period = 1) {
    real k = 0.5f * weight / (base > 1e-20f ? logarithm_of((real)(2.71828182845905f * base)) : (real)(1.0f));
    real a = random_sheet(random), b = random_sheet(random), c = random_sheet(random), d = random_sheet(random);
    real e = random_sheet(random), f = random_sheet(random), g = random_sheet(random);
    float period = fix_period > 1e-20f ? PI * fix_period : PI;
    real sheet = a + b + c + d + e + f + g;
    return pair(k * logarithm_of(x * x + y * y), weight * (angle_of(y, x) + sheet * period));
}

// Jacobi's elliptic functions (sn, cn, dn) of u for the parameter m = 1 - mc, by the arithmetic-geometric mean
// (R. Bulirsch).
DEVICE Triple jacobi(real u, float mc) {
    if (mc == 0.0f) {
        Pair h = hyperbola(u);
        return triple(h.y / h.x, 1.0f / h.x, 1.0f / h.x);
    }
    float em[13], en[13], a = 1.0f, c = 1.0f, root = 1.0f;
    int negative = mc < 0.0f, last = 0;
    if (negative) {
        root = sqrt(1.0f - mc);
        mc = -mc / (1.0f - mc);
        u = root * u;
    }
    for (int k = 0; k < 8; k++) {
        last = k;
        em[k] = a;
        mc = sqrt(mc);
        en[k] = mc;
        c = 0.5f * (a + mc);
        if (fabs(a - mc) <= 0.0003f * a) break;
        mc = a * mc;
        a = c;
    }
    Pair s = circle(c * u);
    real sn = s.y, cn = s.x, dn = (real)(1.0f), p = cn / sn, q = p * c;
    for (int k = last; k >= 0; k--) {
        real b = (real)(em[k]);
        p = q * p;
        q = dn * q;
        dn = (en[k] + p) / (b + p);
        p = q / b;
    }
    real size = 1.0f / sqrt(q * q + 1.0f);
    mask none = sn == 0.0f;
    sn = none ? sn : sn < 0.0f ? -size : size;
    cn = none ? cn : q * sn;
    dn = none ? (real)(1.0f) : dn;
    return negative ? triple(sn / root, dn, cn) : triple(sn, cn, dn);
}

// The common factor of cn, dn and sn of x + iy. u: sn, cn and dn of x; v: of y for the complementary parameter.
DEVICE real jacobi_scale(float weight, Triple u, Triple v, float k) {
    return weight / (1e-30f + u.x * u.x * v.x * v.x * k + v.y * v.y);
}

// The cosine amplitude cn of z for the parameter k.
VARIATION(jac_cn, k = 0.5 [-1, 1]) {
    Triple u = jacobi(x, k), v = jacobi(y, 1.0f - k);
    return scaled(jacobi_scale(weight, u, v, k), u.y * v.y, -u.z * u.x * v.z * v.x);
}

// The delta amplitude dn.
VARIATION(jac_dn, k = 0.5 [-1, 1]) {
    Triple u = jacobi(x, k), v = jacobi(y, 1.0f - k);
    return scaled(jacobi_scale(weight, u, v, k), u.z * v.y * v.z, -u.y * u.x * v.x * k);
}

// The sine amplitude sn.
VARIATION(jac_sn, k = 0.5 [-1, 1]) {
    Triple u = jacobi(x, k), v = jacobi(y, 1.0f - k);
    return scaled(jacobi_scale(weight, u, v, k), u.x * v.z, u.y * u.z * v.y * v.x);
}

// Joukowski's map w + P1^2 / w of a shifted z, or its inverse.
VARIATION(joukowski, P1 = 2.5, P2 = 0, inverse = 0 [0, 1]) {
    float x0 = -P2, y0 = 0.2f;
    Pair z = pair(x + x0, y + y0), r = complex_reciprocal(z), h = complex_times(pair(x, y), pair(x, y));
    if (inverse < 1.0f) return scaled(weight, z.x + P1 * P1 * r.x, z.y + P1 * P1 * r.y);
    Pair root = complex_root(pair(0.25f * h.x - P1 * P1, 0.25f * h.y));
    real u = 0.5f * x - x0, v = 0.5f * y - y0;
    real k = vnorm(u + root.x, v + root.y) > vnorm(u - root.x, v - root.y) ? (real)(1.0f) : (real)(-1.0f);
    return scaled(weight, u + k * root.x, v + k * root.y);
}

// Origin: Fractorium

// The area secant over pi.
VARIATION(arcsech) {
    Pair u = complex_reciprocal(pair(x, y));
    Pair r = complex_times(complex_root(pair(u.x + 1.0f, u.y)), complex_root(pair(u.x - 1.0f, u.y)));
    return scaled_pair(weight / PI, complex_log(pair(u.x + r.x, u.y + r.y)));
}

// exp(pi z).
VARIATION(exp2) { return complex_exp(weight, PI * x, PI * y); }

// The complex number (real, imaginary) to the power z.
VARIATION(expo, real = -1, imaginary = 1) {
    Pair base = complex_log(pair((real)(expo_real), (real)(imaginary))), e = complex_times(pair(x, y), base);
    return complex_exp(weight, e.x, e.y);
}

// Binet's formula of the Fibonacci numbers for the complex index z.
VARIATION(fibonacci) {
    float l = 0.48121182505960347f;  // logarithm of the golden ratio
    Pair a = complex_exp(1.0f, l * x, l * y), b = complex_exp(1.0f, PI * y - l * x, -(PI * x + l * y));
    return scaled(weight * 0.4472135955f, a.x - b.x, a.y - b.y);
}

// (c1 e^x - c2 e^-x, sin y) / (c1 e^x + c2 e^-x - cos y); foci with both factors 0.5.
DEVICE Pair foci_of(float weight, real x, real y, float c1, float c2) {
    real e = exponential_of(x), up = c1 * e, down = c2 / e, k = weight / (up + down - cosine_of(y));
    return scaled(k, up - down, sine_of(y));
}

// foci_of() with given factors of the exponentials.
VARIATION(foci_p, c1 = 0.5, c2 = 0.5) { return foci_of(weight, x, y, c1, c2); }

// z^2 / 2.
VARIATION(lens) { return scaled(weight, 0.5f * (x * x - y * y), x * y); }

// z^2 times a function of the radius, which `radiusFunc` selects.
VARIATION(excinis, lengthscalar = 1, radiusFunc = 0, eps = 0.1) {
    real before = vnorm(x, y) * lengthscalar;
    real near = magnitude(before) > eps ? zero_real() : before >= 0.0f ? (real)(eps) : (real)(-eps);
    real r = weight / (before + near);
    real f = radiusFunc >= 4.0f   ? 1.0f / (r + near)
             : radiusFunc >= 3.0f ? logarithm_of(magnitude(r) + magnitude(near))
             : radiusFunc >= 2.0f ? exponential_of(r)
             : radiusFunc >= 1.0f ? cosine_of(r)
                                  : r;
    return scaled(f, (x - y) * (x + y), 2.0f * x * y);
}

// A Moebius map of z^power, then a random root of that order.
VARIATION(mobiusN, re_a = 1, im_a = 0, re_b = 0, im_b = 0, re_c = 0, im_c = 0, re_d = 1, im_d = 0, power = 2,
          dist = 1) {
    float p = fabs(power) < 1.0f ? 1.0f : power;
    Pair z = from_polar(power_of(vnorm(x, y), (real)(4.0f * dist / p)), angle_of(y, x) * p);
    Pair u = pair(re_a * z.x - im_a * z.y + re_b, re_a * z.y + im_a * z.x + im_b);
    Pair v = pair(re_c * z.x - im_c * z.y + re_d, re_c * z.y + im_c * z.x + im_d), q = complex_quotient(u, v);
    real n = floor_of(uniform(random) * p), r = power_of(vnorm(q.x, q.y), (real)(1.0f / (4.0f * dist / p)));
    return from_polar(weight * r, (angle_of(q.y, q.x) + n * TWO_PI) / floor(p));
}

// Origin: Apophysis

// z / (1 + c1 z + c2 z^2 + c3 z^3), without some of the cubic terms.
VARIATION(curl2, c1 = 0, c2 = 0, c3 = 0) {
    real x2 = x * x, y2 = y * y, re = c3 * x * (x2 - 3.0f * y2) + c2 * (x2 - y2) + c1 * x + 1.0f;
    real im = c3 * y * (x2 - y2) + 2.0f * c2 * x * y + c1 * y;
    return scaled_pair(weight, complex_quotient(pair(x, y), pair(re, im)));
}

// curl2 with other cubic terms.
VARIATION(xcurl2, c1 = 0, c2 = 0, c3 = 0) {
    real re = c3 * x * (x * x - 3.0f) + c2 * (x * x - y * y) + c1 * x + 1.0f;
    real im = c3 * (3.0f * x * y - 1.0f) + 2.0f * c2 * x * y + c1 * y;
    return scaled(weight / (re * re + im * im), x * re + y * im, y * re + x * im);
}

// An inversion, a linear map and a division by the third power of the radius.
REPLACING(xhyperbol, m00 = 1, m01 = 0, m10 = 0, m11 = 1, m20 = 0, m21 = 0) {
    real k = 1.0f / (x * x + y * y), u = k * (m00 * x + m01 * y) + m20, v = k * (m10 * x + m11 * y) + m21;
    real n = u * u + v * v;
    return scaled(weight / (n * sqrt(n)), u, v);
}

// Origin: JWildfire

// glynnia (julia.h) with scales and thresholds.
VARIATION(glynnia3, rscale = 1, dscale = 1, rthresh = 0, ythresh = 0) {
    real r = rscale * vnorm(x, y), side = r > rthresh && y > ythresh ? (real)(1.0f) : (real)(-1.0f);
    real root = dscale * sqrt(r + x), d = dscale * (r + x), n = sqrt(r * (y * y + d * d)), k = 0.70710678f * weight;
    mask first = uniform(random) > 0.5f, none = first ? root == 0.0f : n == 0.0f;
    real u = side * (first ? k * root : weight / n * d), v = first ? -k / root * y : weight / n * y;
    return pair(none ? zero_real() : u, none ? zero_real() : v);
}
