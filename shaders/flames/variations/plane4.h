// Variations of the plane with grids, sectors and waves of many shapes.
// Origin: JWildfire

DEVICE Pair grid_step(real x, real y, real rx, real ry, float a, float b, float c, float d) {
    mask low = ry <= 0.0f, right = rx > 0.0f;
    mask along = low ? (right ? -ry >= rx : ry <= rx) : (right ? ry >= rx : ry > -rx);
    real u = low ? (real)(a) : (real)(-c), v = right ? (real)(b) : (real)(-d);
    return pair(along ? x + u : x, along ? y : y + v);
}

VARIATION(gridout) {
    Pair p = grid_step(x, y, nearest(x), nearest(y), 1.0f, 1.0f, 1.0f, 1.0f);
    return scaled(weight, p.x, p.y);
}

VARIATION(gridout2, a = 1, b = 1, c = 1, d = 1) {
    Pair p = grid_step(x, y, nearest(x) * c, nearest(y) * d, a, b, a, b);
    return scaled(weight, p.x, p.y);
}

VARIATION(collideoscope, a = 0.2, num = 1) {
    float wedge = PI / num, over = PI * a / num;
    real t = angle_of(y, x), s = magnitude(t), k = truncation(s * num * (1.0f / PI)), half_k = 0.5f * k;
    mask even = half_k == truncation(half_k), up = t >= 0.0f;
    // even wedges above the axis turn forward, odd ones back; below the axis the other way round
    real turned = k * wedge + remainder_of(even == up ? s + over : s - over, (real)(wedge));
    turned = up ? turned : -(k * wedge + remainder_of(even ? over - t : -over - t, (real)(wedge)));
    return from_polar(weight * vnorm(x, y), turned);
}

VARIATION(sym_ng13, radius = 0, stepx = 0, stepy = 0) {
    float shift = sqrt(0.5f * radius * radius);
    real u = x + shift, v = y + shift, k = random_index(uniform(random), 3.0f);
    real side = uniform(random) < 0.5f ? (real)(-0.5f) : (real)(0.5f);
    real s = k == 0.0f ? zero_real() : k == 1.0f ? (real)(0.866f) : (real)(-0.866f);
    real c = k == 0.0f ? (real)(1.0f) : (real)(-0.5f);
    return scaled(weight, c * u + s * v + side * stepx, s * u - c * v + side * stepy);
}

VARIATION(heart_wf, scale_x = 1, shift_t = 0, scale_r_left = 1, scale_r_right = 1) {
    real a = atan_xy(y, x), r = vnorm(x, y), scale = a < 0.0f ? (real)(scale_r_left) : (real)(scale_r_right);
    real t = least(magnitude(a) * (60.0f / PI) * scale - shift_t, (real)(60.0f));
    Pair c = circle(PI / 180.0f * t);
    real k = 0.001f * (-t * t + 40.0f * t + 1200.0f) * c.y * r * scale_x;
    return scaled(weight, a < 0.0f ? -k : k, -0.001f * (-t * t + 40.0f * t + 400.0f) * c.x * r);
}

VARIATION(hex_modulus, size = 1) {
    float k = 0.86602540378443865f / size;
    real u = x * k, v = y * k, a = 0.57735026918962576f * u - v / 3.0f, c = 2.0f * v / 3.0f, b = -a - c;
    real ra = floor_of(a + 0.5f), rb = floor_of(b + 0.5f), rc = floor_of(c + 0.5f);
    real da = magnitude(ra - a), db = magnitude(rb - b), dc = magnitude(rc - c);
    mask first = da > db && da > dc, second = !first && db > dc, third = !first && db <= dc;
    real qa = first ? -rb - rc : ra, qc = third ? -ra - rb : rc;
    real w = weight / 0.86602540378443865f;
    return scaled(w, u - (1.7320508075688772f * qa + 0.86602540378443865f * qc), v - 1.5f * qc);
}

VARIATION(squish, power = 2) {
    real ax = magnitude(x), ay = magnitude(y), s = ax > ay ? ax : ay, turn = floor_of(power * uniform(random));
    real p = ax > ay ? (x > 0.0f ? y : 4.0f * s - y) : (y > 0.0f ? 2.0f * s - x : 6.0f * s + x);
    p = (p + 8.0f * s * turn) / power;
    real u = p <= s ? s : p <= 3.0f * s ? 2.0f * s - p : p <= 5.0f * s ? -s : p <= 7.0f * s ? p - 6.0f * s : s;
    real v = p <= s ? p : p <= 3.0f * s ? s : p <= 5.0f * s ? 4.0f * s - p : p <= 7.0f * s ? -s : p - 8.0f * s;
    return scaled(weight, u, v);
}

VARIATION(murl2, c = 0.1, power = 3) {
    float inverse = power != 0.0f ? 1.0f / power : 1e11f;
    real k =
        weight * (c == -1.0f ? zero_real() : power_of((real)(c + 1.0f), (real)(power != 0.0f ? 2.0f / power : 4.0f)));
    Pair p = from_polar(c * power_of(x * x + y * y, (real)(0.5f * power)), angle_of(y, x) * power);
    real re = p.x + 1.0f, im = p.y, r = power_of(re * re + im * im, (real)(inverse));
    Pair q = from_polar(r, angle_of(im, re) * (2.0f * inverse));
    return scaled(k / (r * r), x * q.x + y * q.y, y * q.x - x * q.y);
}

VARIATION(asteria, alpha = 0) {
    real u = weight * x, v = weight * y, r = u * u + v * v;
    real far = sqrt(square(magnitude(u) - 1.0f) + square(magnitude(v) - 1.0f)), pick = uniform(random);
    mask in1 = r < 1.0f, in2 = far < 1.0f, keeps = in1 && in2 ? pick > 0.35f : !in1;
    Pair c = circle((real)(PI * alpha));
    real a = u * c.x - v * c.y, b = u * c.y + v * c.x;
    real n = a / sqrt(1.0f - b * b) * (1.0f - sqrt(1.0f - square(1.0f - magnitude(b))));
    return pair(keeps ? u : n * c.x + b * c.y, keeps ? v : b * c.x - n * c.y);
}

VARIATION(japanese_maple_leaf, filled = 0.15) {
    real t = 0.5f * atan_xy(y, x) + 0.5f * PI, keep = uniform(random);
    real r = filled > 0.0f && filled > keep ? 0.667f * uniform(random) : (real)(0.667f);
    Pair a = circle(t);
    real c8 = cosine_of(8.0f * t), s8 = sine_of(8.0f * t), c80 = square(cosine_of(80.0f * t)),
         p = c8 * cosine_of(24.0f * t);
    real c3 = cosine_of(3.0f * t), c5 = cosine_of(5.0f * t), s8th = 1.0f - square(square(s8 * s8)) * s8 * s8;
    real c9th = square(square(a.x * a.x)) * a.x, edge = 1.0f - c9th * a.x * c3 * c3, m = a.x * c3;
    real p10 = square(square(p * p)) * p * p, c5th = square(square(c5 * c5)) * c5 * c5,
         m10 = square(square(m * m)) * m * m;
    real fine = c80 / 6.0f + square(c80 * c80) * c80 / 15.0f, base = 4.0f / 15.0f + c8 * c8 + 0.2f * p10;
    real u = (base + fine) * s8th * sine_of(2.0f * t) * (1.0f + a.y) * (edge + c9th * c5th / 30.0f);
    real v = (base + fine * edge * s8th) * cosine_of(2.0f * t) * (1.0f + a.y + m10);
    return scaled(weight * r, u, v);
}

VARIATION(log_db, base = 1, fix_period = 1) {
    real k = 0.5f * weight / (base > 1e-20f ? logarithm_of((real)(2.71828182845905f * base)) : (real)(1.0f)), sum;
    real a = random_index(uniform(random), 10.0f) - 5.0f, b = random_index(uniform(random), 10.0f) - 5.0f;
    real c = random_index(uniform(random), 10.0f) - 5.0f, d = random_index(uniform(random), 10.0f) - 5.0f;
    real e = random_index(uniform(random), 10.0f) - 5.0f, f = random_index(uniform(random), 10.0f) - 5.0f;
    real g = random_index(uniform(random), 10.0f) - 5.0f;
    sum = (magnitude(a) < 3.0f ? a : zero_real()) + (magnitude(b) < 3.0f ? b : zero_real());
    sum = sum + (magnitude(c) < 3.0f ? c : zero_real()) + (magnitude(d) < 3.0f ? d : zero_real());
    sum = sum + (magnitude(e) < 3.0f ? e : zero_real()) + (magnitude(f) < 3.0f ? f : zero_real());
    sum = sum + (magnitude(g) < 3.0f ? g : zero_real());
    float period = fix_period > 1e-20f ? PI * fix_period : PI;
    return pair(k * logarithm_of(x * x + y * y), weight * (angle_of(y, x) + sum * period));
}

VARIATION(siercarpet_js, m = 3) {
    real l = 1.0f + random_index(uniform(random), 2.0f * m), half_l = floor_of(0.5f * l);
    mask odd = l != 2.0f * half_l;
    real i = odd ? 0.5f * (l + 1.0f) : half_l;
    Pair a = circle(TWO_PI / m * i), b = circle(TWO_PI / m * (i - 1.0f));
    real u = odd ? a.x : 0.5f * (a.x + b.x), v = odd ? a.y : 0.5f * (a.y + b.y);
    return scaled(weight, x / 3.0f + (u - v) * 0.70710678118654752f, y / 3.0f + (u + v) * 0.70710678118654752f);
}

VARIATION(sattractor_js, m = 10) {
    Pair c = circle(TWO_PI / m * (random_index(uniform(random), m) + 1.0f));
    mask first = uniform(random) < 0.5f;
    real u = first ? 0.5f * x + c.x : x * c.x + y * c.y + x * x * c.y;
    real v = first ? 0.5f * y + c.y : y * c.x - x * c.y + x * x * c.x;
    return scaled(0.5f * weight, u, v);
}

// ---- synth, by slobo777: a curve of the angle made of up to five waves

DEVICE real synth_wave(real y, real frequency, float type) {
    real c = cosine_of((y - 0.5f) * (TWO_PI / frequency));
    if (type == 1.0f) return cosine_of(y * TWO_PI);
    if (type == 2.0f) return y > 0.5f ? (real)(1.0f) : (real)(-1.0f);
    if (type == 3.0f) return 1.0f - 2.0f * y;
    if (type == 4.0f) return y > 0.5f ? 3.0f - 4.0f * y : 2.0f * y - 1.0f;
    if (type == 5.0f) return 8.0f * square(y - 0.5f) - 1.0f;
    if (type == 6.0f) return 2.0f * sqrt(y) - 1.0f;
    if (type == 7.0f) return 1.0f / (c + 1e-10f) - 1.0f;
    if (type == 8.0f) return c / (1.0f + 1e-10f - c);
    return sine_of(y * TWO_PI);
}

DEVICE real synth_layer(real sum, real theta, float a, float k, float type, float skew, float frequency, float phase,
                        float layer) {
    if (k == 0.0f) return sum;
    real y = wrap_unit((phase + theta * frequency) * (1.0f / TWO_PI));
    if (skew != 0.0f) {
        float z = 0.5f + 0.5f * skew;
        y = y > z ? 0.5f + 0.5f * (y - z) / (1.0f - z + 1e-10f) : 0.5f - 0.5f * (z - y) / (z + 1e-10f);
    }
    real wave = k * synth_wave(y, (real)(frequency), type), top = a + wave;
    if (layer == 1.0f) return sum * (1.0f + wave);
    if (layer == 2.0f) return greatest(sum, top);
    if (layer == 3.0f) return least(sum, top);
    return sum + wave;
}

DEVICE real synth_value(real theta, const float *waves) {
    real sum = (real)(waves[0]);
    for (int k = 1; k < 31; k += 6)
        sum = synth_layer(sum, theta, waves[0], waves[k], waves[k + 1], waves[k + 2], waves[k + 3], waves[k + 4],
                          waves[k + 5]);
    return sum * waves[31] + (1.0f - waves[31]);
}

// x times m, or on a curve that is x far from 0
DEVICE real synth_scaled(real x, real m, float smooth) {
    real sign = (m < 0.0f) == (x < 0.0f) ? (real)(1.0f) : (real)(-1.0f), plain = x * m, u = magnitude(x);
    if (smooth != 1.0f) return plain;
    m = magnitude(m);
    real inverse = m > 1e-10f ? 1.0f / m : (real)(1e10f), l = greatest(2.0f - m, 2.0f * m);
    real ta = square(m - 0.5f) > 1e-10f ? (sqrt(m * m + (1.0f - 2.0f * m) * u) - m) / (1.0f - 2.0f * m) : u;
    real tb = square(m - 2.0f) > 1e-10f
                  ? (sqrt(inverse * inverse + (1.0f - 2.0f * inverse) * u) - inverse) / (1.0f - 2.0f * inverse)
                  : u;
    real tc = sqrt((u - 1.0f) / (l - 1.0f)), td = 1.0f - m + sqrt(square(m - 1.0f) + u - 1.0f), n = m - 1.0f;
    real near = m < 1.0f ? u + n * ta * ta : u + n * tb * tb;
    real far = m < 1.0f ? u + n * tc * tc - 2.0f * n * tc + n : u + n * td * td - 2.0f * n * td + n;
    return sign * (u > l || m == 1.0f ? u : u <= 1.0f ? near : far);
}

DEVICE Pair synth_circle(real theta, const float *waves, float mix, float type) {
    Pair c = circle(theta);
    if (type > 1.0f) return c;
    real s = synth_value(theta, waves), t = synth_value(theta + 0.5f * PI, waves);
    if (type == 0.0f) return pair(c.x * t, c.y * s);
    return pair((1.0f - mix) * c.x + t - 1.0f, (1.0f - mix) * c.y + s - 1.0f);
}

VARIATION(synth, a = 1, mode = 3, power = -2, mix = 1, smooth = 0, b = 0, b_type = 0, b_skew = 0, b_frq = 1, b_phs = 0,
          b_layer = 0, c = 0, c_type = 0, c_skew = 0, c_frq = 1, c_phs = 0, c_layer = 0, d = 0, d_type = 0, d_skew = 0,
          d_frq = 1, d_phs = 0, d_layer = 0, e = 0, e_type = 0, e_skew = 0, e_frq = 1, e_phs = 0, e_layer = 0, f = 0,
          f_type = 0, f_skew = 0, f_frq = 1, f_phs = 0, f_layer = 0) {
    float waves[32] = {a,     b,       b_type,  b_skew, b_frq,  b_phs,  b_layer, c,       c_type,  c_skew, c_frq,
                       c_phs, c_layer, d,       d_type, d_skew, d_frq,  d_phs,   d_layer, e,       e_type, e_skew,
                       e_frq, e_phs,   e_layer, f,      f_type, f_skew, f_frq,   f_phs,   f_layer, mix};
    real r = vnorm(x, y), r2 = x * x + y * y + 1e-10f, theta = atan_xy(y, x);
    real t1 = uniform(random), t2 = uniform(random), t3 = uniform(random), turn = TWO_PI * uniform(random) - PI;
    real sx = synth_value(x, waves), sy = synth_value(y, waves);
    if (mode >= 6.0f && mode <= 8.0f)
        return scaled(weight, mode == 7.0f ? x : synth_scaled(x, sy, smooth),
                      mode == 6.0f ? y : synth_scaled(y, sx, smooth));
    if (mode >= 9.0f && mode <= 11.0f)
        return scaled(weight, mode == 10.0f ? x : x + sy - 1.0f, mode == 9.0f ? y : y + sx - 1.0f);
    if (mode == 17.0f) return scaled(weight, x, 2.0f * (sx - 1.0f) - y);
    if (mode == 18.0f) return scaled(weight, 2.0f * (sy - 1.0f) - x, 2.0f * (sx - 1.0f) - y);
    if (mode == 14.0f || mode == 16.0f) {
        real p = power_of(r2, (real)(0.5f * power));
        return swapped(from_polar(weight * (mode == 14.0f ? p : r), theta - 1.0f + synth_value(p, waves)));
    }
    if (mode == 15.0f) {
        Pair tangent = circle(theta);
        real mu = synth_value(power_of(r2, (real)(0.5f * power)), waves) - 1.0f;
        return scaled(weight, x + mu * tangent.x, y - mu * tangent.y);
    }
    if (mode == 4.0f) {
        real angle = 2.0f * arcsine((t3 - 0.5f) * 2.0f), high = 1.0f + 0.1f * (t1 + t2 - 1.0f) * power;
        return scaled(weight, angle * (1.0f / PI), synth_scaled(high, synth_value(angle, waves), smooth) - 1.0f);
    }
    if (mode == 1001.0f)
        return scaled(weight, sx - 1.0f + (1.0f - mix) * sine_of(x), sy - 1.0f + (1.0f - mix) * sine_of(y));
    if (mode > 1001.0f) {
        real p = power_of(r2, (real)(0.5f * power)), half_turn = t1 < 0.5f ? (real)(PI) : zero_real();
        real mu = (real)(power * power + 1e-10f),
             ring = r - 2.0f * mu * truncation((r + mu) / (2.0f * mu)) + r * (1.0f - mu);
        real at = mode == 1002.0f   ? p
                  : mode == 1004.0f ? 0.5f * theta + half_turn
                  : mode == 1005.0f ? PI * p
                  : mode == 1007.0f ? x
                                    : theta;
        Pair s = synth_circle(at, waves, mix, smooth);
        if (mode == 1002.0f) return scaled(weight, s.y * x - s.x * y, s.x * x + s.y * y);
        if (mode == 1003.0f) return scaled(weight, s.y / p, s.x * p);
        if (mode == 1004.0f) return scaled(weight * sqrt(p), s.x, s.y);
        if (mode == 1005.0f) return scaled(weight * theta * (1.0f / PI), s.y, s.x);
        if (mode == 1006.0f) return scaled(weight * ring, s.y, s.x);
        return scaled(weight * p, s.y, y);
    }
    if (mode == 0.0f) r = power_of(r2, (real)((power + 1.0f) * 0.5f));
    if (mode == 1.0f) r = r / (0.25f * (x * x + y * y) + 1.0f);
    if (mode == 2.0f) r = (t1 + t2 + 0.002f * t3) / 2.002f;
    if (mode == 3.0f) r = power_of(0.25f * square(t1 + t2) + 1e-10f, (real)(-0.5f * power));
    if (mode == 12.0f) r = 1.0f + 0.1f * (t1 + t2 - 1.0f) * power;
    theta = mode == 2.0f || mode == 3.0f || mode >= 12.0f && mode <= 13.0f ? turn : theta;
    real k = synth_value(theta, waves);
    if (mode == 2.0f)
        r = r * synth_scaled(power_of(r * r + 1e-10f, (real)(0.5f * power)), k, smooth);
    else if (mode == 13.0f)
        r = k + 0.1f * power_of(t1 + 1e-10f, (real)(power));
    else
        r = synth_scaled(r, k, smooth);
    return swapped(from_polar(weight * (mode == 19.0f ? power_of(r, (real)(power)) : r), theta));
}

// ---- others

VARIATION(apollony) {
    float r = 1.7320508075688772f;
    real u = 1.0f + r - x, k = 1.0f / (u * u + y * y), a = 3.0f * u * k - (1.0f + r) / (2.0f + r), b = 3.0f * y * k;
    real n = 1.0f / (a * a + b * b), fx = a * n, fy = -b * n, pick = random_index(uniform(random), 4.0f);
    mask first = pick == 0.0f || pick == 3.0f, second = pick == 1.0f;
    real px = second ? -0.5f * fx - 0.5f * r * fy : -0.5f * fx + 0.5f * r * fy;
    real py = second ? 0.5f * r * fx - 0.5f * fy : -0.5f * r * fx - 0.5f * fy;
    return scaled(weight, first ? a : px, first ? b : py);
}

VARIATION(atan2_spirals, r_mult = 1.5, r_add = 1, xy2_mult = 1.125, xy2_add = 0.132, x_mult = 2, x_add = 0.25,
          yx_div = 1, yx_add = 0, yy_div = 1.25, yy_add = 0, sin_add = 0, y_mult = 1, r_power = 0.5, x2y2_power = 1) {
    real r2 = x * x + y * y, p = power_of(r2, (real)(x2y2_power)), r = power_of(r2, (real)(r_power));
    real u = x_mult * angle_of(r * r_mult + r_add, p * xy2_mult + xy2_add) + x_add;
    real v = sine_of(angle_of(y / yy_div + yy_add, x / yx_div + yx_add) + sin_add) * y_mult;
    return scaled(weight, x >= 0.0f ? PI - u : u - PI, v);
}

VARIATION(q_ode, q_ode01 = 0, q_ode02 = 1, q_ode03 = 0.9523995871498903, q_ode04 = -0.31231887423801696,
          q_ode05 = -0.7629388627928184, q_ode06 = -0.28208570704629055, q_ode07 = 0, q_ode08 = 1,
          q_ode09 = -0.10781236208010192, q_ode10 = -0.2946873091267135, q_ode11 = 0.8267127787188062,
          q_ode12 = -0.8889241425519017) {
    real u = q_ode01 + weight * q_ode02 * x + q_ode03 * x * x + q_ode04 * x * y + q_ode05 * y + q_ode06 * y * y;
    return pair(u, q_ode07 + q_ode08 * x + q_ode09 * x * x + q_ode10 * x * y + weight * q_ode11 * y + q_ode12 * y * y);
}

VARIATION(apocarpet_js) {
    float r = 0.41421356237309503f;
    real k = 1.0f / (x * x + y * y), p = 2.0f * x * y * k, q = (x * x - y * y) * k;
    real pick = random_index(uniform(random), 6.0f);
    mask first = pick == 0.0f, last = pick == 5.0f;
    real u = pick == 2.0f || pick == 3.0f ? (real)(r) : (real)(-r),
         v = pick == 2.0f || pick == 4.0f ? (real)(r) : (real)(-r);
    return scaled(weight, first ? p : last ? q : r * x + u, first ? q : last ? p : r * y + v);
}

VARIATION(dustpoint) {
    real side = uniform(random) < 0.5f ? (real)(1.0f) : (real)(-1.0f), r = vnorm(x, y), pick = uniform(random);
    mask far = pick < 0.5f, low = pick < 0.75f;
    return scaled(weight, far ? x / r - 1.0f : low ? x / 3.0f : x / 3.0f + 2.0f / 3.0f, far ? side * y / r : y / 3.0f);
}

REPLACING(tile_reverse, space = 1, reversal = 1, vertical = 0) {
    float s = reversal == 1.0f ? -1.0f : 1.0f;
    real step = uniform(random) < 0.5f ? (real)(space) : (real)(-space);
    if (vertical == 1.0f) return pair(weight * x, weight * s * y + step);
    return pair(weight * s * x + step, weight * y);
}

// ---- Jacobi's elliptic functions, by the arithmetic-geometric mean (Bulirsch): (sn, cn, dn) of u for 1 - m = mc

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

VARIATION(jac_cn, k = 0.5) {
    k = fmin(fmax(k, -1.0f), 1.0f);
    Triple u = jacobi(x, k), v = jacobi(y, 1.0f - k);
    real d = weight / (1e-30f + u.x * u.x * v.x * v.x * k + v.y * v.y);
    return scaled(d, u.y * v.y, -u.z * u.x * v.z * v.x);
}

VARIATION(jac_dn, k = 0.5) {
    k = fmin(fmax(k, -1.0f), 1.0f);
    Triple u = jacobi(x, k), v = jacobi(y, 1.0f - k);
    real d = weight / (1e-30f + u.x * u.x * v.x * v.x * k + v.y * v.y);
    return scaled(d, u.z * v.y * v.z, -u.y * u.x * v.x * k);
}

VARIATION(jac_sn, k = 0.5) {
    k = fmin(fmax(k, -1.0f), 1.0f);
    Triple u = jacobi(x, k), v = jacobi(y, 1.0f - k);
    real d = weight / (1e-30f + u.x * u.x * v.x * v.x * k + v.y * v.y);
    return scaled(d, u.x * v.z, u.y * u.z * v.y * v.x);
}

// A point inside the unit circle turned along the circle through it that meets the unit circle at right angles.
DEVICE Pair orthogonal_turn(real x, real y, float turn) {
    real u = magnitude(x), center = (x * x + y * y + 1.0f) / (2.0f * u), r = vnorm(u - center, y);
    real theta = angle_of((real)(1.0f), r);
    Pair c = circle(remainder_of(turn * theta + angle_of(y, center - u) + theta, 2.0f * theta) - theta);
    real px = center - c.x * r;
    return pair(x >= 0.0f ? px : -px, c.y * r);
}

VARIATION(ortho, in = 0, out = 0) {
    real r2 = x * x + y * y;
    Pair p = orthogonal_turn(x, y, in), q = orthogonal_turn(x / r2, y / r2, out);
    real k = 1.0f / (q.x * q.x + q.y * q.y);
    mask inside = r2 < 1.0f;
    return scaled(weight, inside ? p.x : k * q.x, inside ? p.y : k * q.y);
}
