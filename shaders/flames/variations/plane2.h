// More variations of the plane.
// Origin: JWildfire

VARIATION(corners, x = 1, y = 1, mult_x = 1, mult_y = 1, x_power = 0.75, y_power = 0.75, xy_power_add = 0, log_mode = 0,
          log_base = 2.71828) {
    real xs = x * x, ys = y * y, u, v;
    if (log_mode == 0.0f) {
        u = power_of(xs, (real)(x_power + xy_power_add)) * mult_x;
        v = power_of(ys, (real)(y_power + xy_power_add)) * mult_y;
    } else {
        real k = 1.0f / logarithm_of((real)(log_base));
        u = power_of(logarithm_of(xs * mult_x + 3.0f) * k, (real)(x_power + 2.25f + xy_power_add)) - 1.33f;
        v = power_of(logarithm_of(ys * mult_y + 3.0f) * k, (real)(y_power + 2.25f + xy_power_add)) - 1.33f;
    }
    u = weight * u + corners_x;
    v = weight * v + corners_y;
    return pair(x > 0.0f ? u : -u, y > 0.0f ? v : -v);
}

// A wave of one axis by the other: the cosine or the sine, times a power of both.
DEVICE real damped_wave(real x, real y, float scale, float freq, float use_cos, float damp, int order) {
    real d = fabs(damp) < 1e-9f ? (real)(1.0f) : exponential_of((real)(damp));
    Pair c = circle(y * freq);
    real a = use_cos == 1.0f ? c.x : c.y, b = use_cos == 1.0f ? c.y : c.x;
    real wave = order == 1 ? a : order == 2 ? a * a : a * b * a;
    return (x + d * scale * wave) * d;
}

VARIATION(waves2_wf, scalex = 0.25, scaley = 0.5, freqx = 1.5707963267948966, freqy = 0.7853981633974483, use_cos_x = 1,
          use_cos_y = 0, dampx = 0, dampy = 0) {
    return scaled(weight, damped_wave(x, y, scalex, freqx, use_cos_x, dampx, 1),
                  damped_wave(y, x, scaley, freqy, use_cos_y, dampy, 1));
}

VARIATION(waves3_wf, scalex = 0.25, scaley = 0.5, freqx = 1.5707963267948966, freqy = 0.7853981633974483, use_cos_x = 1,
          use_cos_y = 0, dampx = 0, dampy = 0) {
    return scaled(weight, damped_wave(x, y, scalex, freqx, use_cos_x, dampx, 2),
                  damped_wave(y, x, scaley, freqy, use_cos_y, dampy, 2));
}

VARIATION(waves4_wf, scalex = 0.25, scaley = 0.5, freqx = 1.5707963267948966, freqy = 0.7853981633974483, use_cos_x = 1,
          use_cos_y = 0, dampx = 0, dampy = 0) {
    return scaled(weight, damped_wave(x, y, scalex, freqx, use_cos_x, dampx, 3),
                  damped_wave(y, x, scaley, freqy, use_cos_y, dampy, 3));
}

DEVICE real whole_power(real x, float exponent) {
    float n = trunc(exponent);
    real p = power_of(magnitude(x), (real)(n));
    return n - 2.0f * floor(0.5f * n) == 0.0f ? p : with_sign_of(p, x);
}

VARIATION(waves22, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13, modex = 0, modey = 0, powerx = 2, powery = 2) {
    real u = sine_of(y * freqx), v = sine_of(x * freqy);
    u = modex < 0.5f ? u : 0.5f * (1.0f + u);
    v = modey < 0.5f ? v : 0.5f * (1.0f + v);
    return scaled(weight, x + scalex * whole_power(u, powerx), y + scaley * whole_power(v, powery));
}

VARIATION(pow_block, numerator = 6.23438210261205, denominator = 1.328007750027768, root = 1, correctn = 1,
          correctd = 1) {
    float d = fabs(denominator) <= 1e-30f ? 1e-30f : denominator;
    float n = denominator * correctn / (fabs(correctd) + 1e-30f),
          power = numerator * 0.5f / (fabs(n) <= 1e-30f ? 1e-30f : n);
    real turn = root * TWO_PI * floor_of(uniform(random) * denominator);
    return from_polar(weight * power_of(x * x + y * y, (real)(power)), (angle_of(y, x) + turn) / d * numerator);
}

VARIATION(barycentroid, a = 1, b = 0, c = 0, d = 1) {
    real d02 = a * x + b * y, d12 = c * x + d * y;
    float d00 = a * a + b * b, d01 = a * c + b * d, d11 = c * c + d * d, k = 1.0f / (d00 * d11 - d01 * d01);
    real u = (d11 * d02 - d01 * d12) * k, v = (d00 * d12 - d01 * d02) * k;
    return scaled(weight, sqrt(u * u + x * x) * sign_of(u), sqrt(v * v + y * y) * sign_of(v));
}

VARIATION(glynnia) {
    real r = vnorm(x, y), d = sqrt(r + x), e = r + x, k = 1.0f / sqrt(r * (y * y + e * e));
    mask first = uniform(random) > 0.5f, outside = r >= 1.0f;
    real u = first ? 0.70710678f * d : k * e, v = first ? -0.70710678f / d * y : k * y;
    return scaled(weight, outside ? u : -u, v);
}

VARIATION(eMotion, move = 0, rotate = 0) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(greatest(e.y / m * (1.0f + magnitude(a)), (real)(0.0f)));
    real mu = area_cosine_1p(e.x), nu = y < 0.0f ? -angle_of(b, a) : angle_of(b, a);
    mu = nu < 0.0f ? mu + move : mu - move;
    Pair h = hyperbola(mu), c = circle((mu <= 0.0f ? -nu : nu) + rotate);
    return scaled(weight, h.x * c.x, magnitude(h.y) * c.y);
}

VARIATION(cpow2, r = 1, a = 0, divisor = 1, range = 1) {
    Pair t = circle((real)(0.5f * PI * a));
    real c = r / divisor * t.x, d = r / divisor * t.y, angle = angle_of(y, x);
    real turn = random_index(uniform(random), range);
    angle = angle + TWO_PI * (angle < 0.0f ? turn + 1.0f : turn);
    angle = cosine_of(angle * (0.5f / range)) < uniform(random) * 2.0f - 1.0f ? angle - TWO_PI * range : angle;
    real l = 0.5f * logarithm_of(x * x + y * y);
    real wedge = TWO_PI / divisor * floor_of(divisor * uniform(random));
    return complex_exp(weight, c * l - d * angle, c * angle + d * l + wedge);
}

VARIATION(cpow3, r = 1, d = 1, divisor = 1, spread = 1) {
    real q = d < 0.0f ? -logarithm_of((real)(-d)) : logarithm_of((real)(d));
    Pair t = circle(angle_of(q * r, (real)(TWO_PI)));
    real tc = t.x * r / divisor * t.x, td = t.x * r / divisor * t.y, a = angle_of(y, x);
    real coefficient = td == 0.0f ? (real)(0.0f) : -0.095f * spread / td;
    a = a < 0.0f ? a + TWO_PI : a;
    a = cosine_of(0.5f * a) < uniform(random) * 2.0f - 1.0f ? a - TWO_PI : a;
    real way = uniform(random) < 0.5f ? (real)(TWO_PI) : (real)(-TWO_PI);
    a = a + way * floor_of(logarithm_of(uniform(random)) * coefficient + 0.5f);
    real l = 0.5f * logarithm_of(x * x + y * y);
    return complex_exp(weight, tc * l - td * a,
                       tc * a + td * l + TWO_PI / divisor * floor_of(divisor * uniform(random)));
}

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

VARIATION(trade, r1 = 1, d1 = 1, r2 = 1, d2 = 1) {
    float c1 = r1 + d1, c2 = r2 + d2;
    real u = c1 - x, v = -c2 - x;
    mask right = x > 0.0f;
    mask in1 = u * u + y * y <= (real)(r1 * r1), in2 = v * v + y * y <= (real)(r2 * r2);
    real px = right ? (in1 ? u * (r2 / r1) - c2 : x) : (in2 ? v * (r1 / r2) + c1 : x);
    real py = right ? (in1 ? y * (r2 / r1) : y) : (in2 ? y * (r1 / r2) : y);
    return scaled(weight, px, py);
}

VARIATION(maple_leaf, filled = 0.5) {
    real t = atan_xy(y, x) - 0.5f * PI, keep = uniform(random);
    real r = filled > 0.0f && filled > keep ? uniform(random) : (real)(1.0f);
    real c = cosine_of(t), c3 = cosine_of(3.0f * t), c6 = cosine_of(6.0f * t), c30 = cosine_of(30.0f * t);
    real c4th = square(c * c), c10th = square(c4th) * c * c, edge = 1.0f - c10th * c3 * c3;
    real s6 = sine_of(6.0f * t), s6th = 1.0f - square(square(s6 * s6)) * s6 * s6;
    real c30th = square(square(c30 * c30)) * square(c30 * c30);
    real p = c6 * cosine_of(24.0f * t), q = c6 * cosine_of(18.0f * t), m = c * c3;
    real p10 = square(square(p * p)) * p * p, q10 = square(square(q * q)) * q * q, m10 = square(square(m * m)) * m * m;
    real u = (1.0f + c6 * c6 + 0.2f * p10 + (1.0f / 9.0f * c30th) * s6th) * sine_of(2.0f * t) * (1.0f - c4th) * edge;
    real tip = 1.05f * cosine_of(2.0f * t) * (1.0f - c4th + 0.5f * m10);
    real v = tip * (1.0f + c6 * c6 + 0.2f * q10 + (0.25f * square(c30 * c30) + 0.1f * c30th) * edge * s6th);
    return scaled(weight * r, u, v);
}

VARIATION(oak_leaf, filled = 0.25) {
    real t = -0.5f * atan_xy(y, x) - 0.5f * PI, keep = uniform(random);
    real r = filled > 0.0f && filled > keep ? 2.0f * uniform(random) : (real)(2.0f);
    Pair a = circle(t);
    real c5 = cosine_of(5.0f * t), s10 = square(sine_of(10.0f * t)), s2 = sine_of(2.0f * t);
    real c9th = square(square(a.x * a.x)) * a.x, c5th = square(square(c5 * c5)) * c5 * c5;
    real m = square(square(square(a.x * cosine_of(3.0f * t))));
    real u = 0.01f * c9th * c5th + 0.25f * s2 * (1.0f - 0.5f * s10) * (1.0f - m);
    return scaled(weight * r, u, a.y * (1.0f - 0.2f * s10 * (0.5f + s2 * s2)));
}

VARIATION(y, hypergon = 0.20420373068009812, hypergon_n = 4, hypergon_r = 1, star = 0.6332152204001086, star_n = 5,
          star_slope = 2, lituus = 0, lituus_a = 1, super = 0, super_m = 1, super_n1 = 1, super_n2 = 1, super_n3 = 0) {
    real a = angle_of(y, x), total = zero_real(), size = magnitude(a);
    if (hypergon != 0.0f) {
        float d2 = 1.0f + hypergon_r * hypergon_r, d = sqrt(d2);
        real t = square(tangent_of(remainder_of(size, (real)(TWO_PI / hypergon_n)) - PI / hypergon_n)) + 1.0f;
        total = total + (t >= d2 ? (real)(hypergon) : hypergon * (d - root_safe(d2 - t)) / sqrt(t));
    }
    if (star != 0.0f) {
        real t = tangent_of(magnitude(remainder_of(size, (real)(TWO_PI / star_n)) - PI / star_n));
        real slope = tangent_of((real)(star_slope));
        total = total + star * sqrt(slope * slope * (1.0f + t * t) / square(t + slope));
    }
    if (lituus != 0.0f) total = total + lituus * power_of(a / PI + 1.0f, (real)(-lituus_a));
    if (super != 0.0f) {
        Pair c = circle(a * (super_m * 0.25f));
        real sum = power_of(magnitude(c.x), (real)(super_n2)) + power_of(magnitude(c.y), (real)(super_n3));
        total = total + super * power_of(sum, (real)(-1.0f / (super_n1 + 1e-30f)));
    }
    return from_polar(weight * total * total / vnorm(x, y), a);
}

VARIATION(woggle_js, m = 2) {
    float r = sqrt(1.25f) * sqrt(m);
    real n = random_index(uniform(random), m), half_n = floor_of(0.5f * n), k = 1.0f / (sqrt(3.0f) * vnorm(x, y));
    Pair c = circle(TWO_PI / m * n);
    real s = n == 2.0f * half_n ? (real)(-1.0f / r) : (real)(1.0f / r), t = n == 2.0f * half_n ? -k / r : -k / r;
    return scaled(weight, s * x + k * y / r + c.x, t * x + s * y + c.y);
}
