// Variations of the plane.
// Origin: JWildfire

VARIATION(unpolar) { return swapped(from_polar(0.5f / PI * weight * exponential_of(y), x)); }

VARIATION(wdisc) {
    real a = PI / (vnorm(x, y) + 1.0f), r = angle_of(y, x) * (1.0f / PI);
    return from_polar(weight * r, r > 0.0f ? PI - a : a);
}

VARIATION(idisc) { return from_polar(weight / PI * angle_of(y, x), PI / (vnorm(x, y) + 1.0f)); }

VARIATION(epispiral, n = 6, thickness = 0, holes = 1) {
    real theta = angle_of(y, x), d = 1.0f / cosine_of(n * theta);
    real t = thickness != 0.0f ? uniform(random) * thickness * d : d;
    return from_polar(weight * (t - holes), theta);
}

VARIATION(epispiral_wf, waves = 4) {
    real a = atan_xy(y, x);
    return swapped(from_polar(weight * 0.5f / cosine_of(waves * a), a));
}

VARIATION(chunk, a = 1, b = 0, c = 1, d = 0, e = 0, f = -1, mode = 0) {
    real r = weight * (a * x * x + b * x * y + c * y * y + d * x + e * y + f);
    mask kept = mode == 0.0f ? r <= 0.0f : r > 0.0f;
    return pair(kept ? x : (real)(0.0f), kept ? y : (real)(0.0f));
}

REPLACING(shredlin, xdistance = 1, xwidth = 0.5, ydistance = 1, ywidth = 0.5) {
    real u = x / xdistance, v = y / ydistance, iu = truncation(u), iv = truncation(v);
    real px = x < 0.0f ? (real)(-0.5f) : (real)(0.5f), py = y < 0.0f ? (real)(-0.5f) : (real)(0.5f);
    return pair(weight * xdistance * ((u - iu) * xwidth + iu + px * (1.0f - xwidth)),
                weight * ydistance * ((v - iv) * ywidth + iv + py * (1.0f - ywidth)));
}

VARIATION(shredrad, n = 4, width = 0.5) {
    float wedge = TWO_PI / n;
    real a = (angle_of(y, x) + 3.0f * PI + 0.5f * wedge) / wedge, row = truncation(a);
    return from_polar(weight * vnorm(x, y), ((a - row) * width + row) * wedge - PI - 0.5f * wedge * width);
}

VARIATION(circlize2, hole = 0) {
    Pair p = square_to_disc(x, y);
    return from_polar(weight * (p.x + hole), p.y);
}

VARIATION(julian2, power = 4, dist = 1, a = 1, b = 0, c = 0, d = 1, e = 0, f = 0) {
    real u = a * x + b * y + e, v = c * x + d * y + f, turn = random_index(uniform(random), fabs(power));
    real angle = (angle_of(v, u) + TWO_PI * turn) / power;
    return from_polar(weight * power_of(u * u + v * v, (real)(dist / power * 0.5f)), angle);
}

VARIATION(juliaq, power = 5, divisor = 2) {
    real turn = random_index(uniform(random), fabs(power));
    real angle = angle_of(y, x) * (divisor / power) + TWO_PI / power * turn;
    return from_polar(weight * power_of(x * x + y * y, (real)(0.5f * divisor / power)), angle);
}

VARIATION(juliac, re = 6, im = 0.5, dist = 1) {
    float inverse = 1.0f / (re + 1e-30f), part = im * 0.01f;
    real turn = random_index(uniform(random), 16777216.0f);
    real angle = angle_of(y, x) + remainder_of(turn, (real)(re)) * TWO_PI;
    real length = dist * 0.5f * logarithm_of(x * x + y * y);
    return complex_exp(weight, length * inverse - angle * part, angle * inverse + length * part);
}

// Joukowski coordinates of a point: (cosh mu - 1, nu) with x + i y = cosh(mu + i nu)
DEVICE Pair elliptic_coordinates(real x, real y) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(greatest(e.y / m * (1.0f + magnitude(a)), (real)(0.0f)));
    real nu = angle_of(b, a);
    return pair(e.x, y < 0.0f ? -nu : nu);
}

VARIATION(eJulia, power = 2) {
    real k = power < 0.0f ? 1.0f / (x * x + y * y) : (real)(1.0f);
    Pair e = elliptic_coordinates(k * x, k * y);
    real nu = y < 0.0f ? -magnitude(e.y) : magnitude(e.y);
    nu = nu / power + TWO_PI / power * floor_of(uniform(random) * power);
    Pair c = circle(nu), h = hyperbola(area_cosine_1p(e.x) / power);
    return scaled(weight, h.x * c.x, h.y * c.y);
}

VARIATION(bTransform, rotate = 0, power = 1, move = 0, split = 0) {
    real right = square(x + 1.0f) + y * y, left = square(x - 1.0f) + y * y;
    real tau = 0.5f * logarithm_of(right / left) / power + move;
    real sigma = PI - angle_of(y, x + 1.0f) - angle_of(y, 1.0f - x) + rotate;
    sigma = sigma / power + TWO_PI / power * floor_of(uniform(random) * power);
    tau = x >= 0.0f ? tau + split : tau - split;
    Pair c = circle(sigma), h = hyperbola(tau);
    return scaled(weight / (h.x - c.x), h.y, c.y);
}

VARIATION(npolar, parity = 0, n = 1) {
    float order = n == 0.0f ? 1.0f : n;
    float odd = fabs(parity) - 2.0f * floor(0.5f * fabs(parity));
    real u = odd != 0.0f ? x : 1.0f / PI * weight * atan_xy(y, x);
    real v = odd != 0.0f ? y : 0.5f / PI * weight * logarithm_of(x * x + y * y);
    real angle = (angle_of(v, u) + TWO_PI * random_index(uniform(random), fabs(order))) / order;
    real r = weight * power_of(u * u + v * v, (real)(0.5f / order)) * (odd == 0.0f ? 1.0f : parity);
    Pair p = from_polar(r, angle);
    if (odd != 0.0f) return p;
    return pair(0.5f / PI * weight * logarithm_of(p.x * p.x + p.y * p.y), 1.0f / PI * weight * angle_of(p.x, p.y));
}

VARIATION(vibration2, dir = 0, angle = 1.5708, freq = 1, amp = 0.25, phase = 0, dir2 = 1.5708, angle2 = 1.5708,
          freq2 = 1, amp2 = 0.25, phase2 = 0, dm = 0, dmfreq = 0.1, tm = 0, tmfreq = 0.1, fm = 0, fmfreq = 0.1, am = 0,
          amfreq = 0.1, d2m = 0, d2mfreq = 0.1, t2m = 0, t2mfreq = 0.1, f2m = 0, f2mfreq = 0.1, a2m = 0,
          a2mfreq = 0.1) {
    Pair d = circle((real)(dir)), e = circle((real)(dir2));
    real s = TWO_PI * (x * d.x + y * d.y), t = TWO_PI * (x * e.x + y * e.y);
    real da = dir + dm * cosine_of(s * dmfreq), aa = angle + tm * cosine_of(s * tmfreq);
    real fa = fm * cosine_of(s * fmfreq) / freq, ra = amp + amp * am * cosine_of(s * amfreq);
    real db = dir2 + d2m * cosine_of(t * d2mfreq), ab = angle2 + t2m * cosine_of(t * t2mfreq);
    real fb = f2m * cosine_of(t * f2mfreq) / freq2, rb = amp2 + amp2 * a2m * cosine_of(t * a2mfreq);
    Pair ca = circle(da), cb = circle(db), ta = circle(aa + da), tb = circle(ab + db);
    real pa = ra * sine_of((x * ca.x + y * ca.y) * (freq * TWO_PI) + fa + TWO_PI * phase / freq);
    real pb = rb * sine_of((x * cb.x + y * cb.y) * (freq2 * TWO_PI) + fb + TWO_PI * phase2 / freq2);
    return scaled(weight, x + pa * ta.x + pb * tb.x, y + pa * ta.y + pb * tb.y);
}

VARIATION(flipy) { return scaled(weight, x, x > 0.0f ? -y : y); }

VARIATION(flipcircle) { return scaled(weight, x, x * x + y * y > (real)(weight * weight) ? y : -y); }

VARIATION(twoface) { return scaled(x > 0.0f ? weight / (x * x + y * y) : (real)(weight), x, y); }

VARIATION(invpolar) { return swapped(from_polar(weight * (1.0f + y), PI * x)); }

VARIATION(clifford_js, a = -1.4, b = 1.6, c = 1, d = 0.7) {
    return scaled(weight, sine_of(a * y) + c * cosine_of(a * x), sine_of(b * x) + d * cosine_of(b * y));
}

REPLACING(svensson_js, a = 1.4, b = 1.56, c = 1.4, d = -6.56) {
    return scaled(weight, d * sine_of(a * x) - sine_of(b * y), c * cosine_of(a * x) + cosine_of(b * y));
}

VARIATION(henon, a = 0.5, b = 1, c = 1) { return scaled(weight, c - a * x * x + y, b * x); }

VARIATION(lozi, a = 0.5, b = 1, c = 1) { return scaled(weight, c - a * magnitude(x) + y, b * x); }

VARIATION(d_spherical, d_spher_weight = 0.5) {
    real k = uniform(random) < d_spher_weight ? 1.0f / (x * x + y * y) : (real)(1.0f);
    return scaled(weight * k, x, y);
}

VARIATION(linearT, powX = 1.2, powY = 0.9) {
    real u = power_of(magnitude(x), (real)(powX)), v = power_of(magnitude(y), (real)(powY));
    return scaled(weight, x > 0.0f ? u : -u, y > 0.0f ? v : -v);
}

VARIATION(circus, scale = 0.92) {
    real k = vnorm(x, y) <= 1.0f ? (real)(scale) : (real)(1.0f / scale);
    return scaled(weight * k, x, y);
}

VARIATION(spligon, sides = 3, r = 1, i = 1) {
    float turns = sides / TWO_PI;
    Pair c = circle(floor_of(angle_of(y, x) * turns) / turns - PI * i / (2.0f * sides));
    return scaled(weight, x + r * c.x, y + r * c.y);
}

VARIATION(disc3, a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1) {
    Pair s = circle(PI * sqrt(x * d * x * e + y * f * y * g));
    real k = weight * atan_xy(y, x) / PI * c * h;
    return scaled(k, a * s.y, b * s.x);
}

VARIATION(circlesplit, cs_radius = 1, cs_split = 0.5) {
    real r = vnorm(x, y), k = r < cs_radius - cs_split ? (real)(1.0f) : (r + cs_split) / r;
    return scaled(weight * k, x, y);
}

VARIATION(tile_hlp, width = 1) {
    real u = x / width, c = cosine_of(PI * (u > 0.0f ? u - truncation(u) : u + truncation(u)));
    real step = x > 0.0f ? (real)(-width) : (real)(width);
    return scaled(weight, x + (c < uniform(random) * 2.0f - 1.0f ? step : (real)(0.0f)), y);
}

VARIATION(checks, x = 3, y = 3, size = 1, rnd = 0.5) {
    float k = 1.0f / (size + 1e-9f);
    real sum = nearest(x * k) + nearest(y * k), half_sum = 0.5f * sum;
    mask even = half_sum == truncation(half_sum);
    real u = rnd * uniform(random), v = rnd * uniform(random);
    return scaled(weight, x + (even ? u - checks_x : (real)(checks_x)), y + (even ? (real)(-checks_y) : checks_y + v));
}

VARIATION(waves3, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13, sx_freq = 0, sy_freq = 2) {
    real u = 0.5f * scalex * (1.0f + sine_of(y * sx_freq)), v = 0.5f * scaley * (1.0f + sine_of(x * sy_freq));
    return scaled(weight, x + u * sine_of(y * freqx), y + v * sine_of(x * freqy));
}

VARIATION(waves2_radial, w2r_scalex = 0.1, w2r_scaley = 0.1, w2r_freqx = 7, w2r_freqy = 13, w2r_null = 2,
          w2r_distance = 10) {
    real r = vnorm(x, y), k = (r - w2r_null) / (w2r_distance - w2r_null);
    k = r < w2r_null ? (real)(0.0f) : r < w2r_distance ? k : (real)(1.0f);
    return scaled(weight, x + k * w2r_scalex * sine_of(y * w2r_freqx), y + k * w2r_scaley * sine_of(x * w2r_freqy));
}

VARIATION(squarize) {
    real s = vnorm(x, y), a = angle_of(y, x), p = (a < 0.0f ? a + TWO_PI : a) * (4.0f / PI), u, v;
    u = p <= 1.0f   ? (real)(1.0f)
        : p <= 3.0f ? 2.0f - p
        : p <= 5.0f ? (real)(-1.0f)
        : p <= 7.0f ? p - 6.0f
                    : (real)(1.0f);
    v = p <= 1.0f ? p : p <= 3.0f ? (real)(1.0f) : p <= 5.0f ? 4.0f - p : p <= 7.0f ? (real)(-1.0f) : p - 8.0f;
    return scaled(weight * s, u, v);
}

DEVICE Pair heart_of(real x, real y, float angle, float ratio) {
    real k = x * x + y * y + 4.0f, u = 4.0f / k * x, v = (6.0f + 2.0f * ratio) / k * y;
    Pair c = circle((real)(0.25f * PI + 0.125f * PI * angle));
    real hx = c.x * u - c.y * v, hy = c.y * u + c.x * v;
    return pair(hx, hx > 0.0f ? hy : -hy);
}

VARIATION(xheart, angle = 0, ratio = 0) {
    Pair h = heart_of(x, y, angle, ratio);
    return scaled(weight, h.x, h.y);
}

VARIATION(xheart_blur_wf, angle = 0, ratio = 0) {
    real u = 2.0f - 4.0f * uniform(random), v = 2.0f - 4.0f * uniform(random);
    Pair h = heart_of(u, v, angle, ratio);
    return scaled(weight, h.x, h.y);
}

DEVICE real sawtooth(real t) {
    real f = wrap_unit(t);
    return f > 0.5f ? 0.5f - f : f;
}

VARIATION(waves23, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13) {
    return scaled(weight, x + scalex * sawtooth(y * freqx * (1.0f / TWO_PI)),
                  y + scaley * sawtooth(x * freqy * (1.0f / TWO_PI)));
}

VARIATION(fdisc, ashift = 1, rshift = 1, xshift = 0, yshift = 0, term1 = 1, term2 = 0, term3 = 0, term4 = 0) {
    real a = TWO_PI / (vnorm(x, y) + ashift), r = weight * (angle_of(y, x) * (1.0f / PI) + rshift) * 0.5f;
    real u = r * cosine_of(a + xshift), v = r * sine_of(a + yshift);
    return pair(term1 * u + term2 * x * u + term3 * x * r + term4 * x,
                term1 * v + term2 * y * v + term3 * y * r + term4 * y);
}

// ---- hyperbolic tilings

DEVICE Pair disc_translation(real x, real y, real re, real im) {
    real a = x + re, b = y - im, c = re * x - im * y + 1.0f, d = re * y + im * x;
    return scaled(1.0f / (c * c + d * d), a * c + b * d, b * c - a * d);
}

DEVICE real hypertile_radius(float p, float q) {
    real cp = cosine_of((real)(TWO_PI / p)), cq = cosine_of((real)(TWO_PI / q));
    real r2 = 1.0f - (cp - 1.0f) / (cp + cq);
    return r2 > 0.0f ? 1.0f / sqrt(r2) : (real)(1.0f);
}

VARIATION(hypertile, p = 3, q = 7, n = 1) {
    Pair c = from_polar(hypertile_radius(p, q), (real)(n * TWO_PI / p));
    Pair t = disc_translation(x, y, c.x, c.y);
    return scaled(weight, t.x, t.y);
}

VARIATION(hypertile1, p = 3, q = 7) {
    real a = TWO_PI / p * random_index(uniform(random), fabs(p));
    Pair c = from_polar(hypertile_radius(p, q), a);
    Pair t = disc_translation(x, y, c.x, c.y);
    return scaled(weight, t.x, t.y);
}

VARIATION(hypertile2, p = 3, q = 7) {
    Pair t = disc_translation(x, y, hypertile_radius(p, q), zero_real());
    Pair c = circle(TWO_PI / p * random_index(uniform(random), fabs(p)));
    return scaled(weight, t.x * c.x + t.y * c.y, t.y * c.x - t.x * c.y);
}

VARIATION(oscilloscope2, separation = 1, frequencyx = 3.141592653589793, frequencyy = 3.141592653589793, amplitude = 1,
          perturbation = 1, damping = 0) {
    real wave = cosine_of(TWO_PI * frequencyx * x + perturbation * sine_of(TWO_PI * frequencyy * y));
    real t = amplitude * exponential_of(-magnitude(x) * damping) * wave + separation;
    real k = magnitude(y) <= t ? (real)(-weight) : (real)(weight);
    return scaled(k, x, y);
}
