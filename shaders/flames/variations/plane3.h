// Still more variations of the plane.
// Origin: JWildfire

VARIATION(bi_linear) { return scaled(weight, y, x); }

VARIATION(cylinder2) { return scaled(weight, x / sqrt(x * x + 1.0f), y); }

VARIATION(csin, stretch = 1.5) { return complex_sin(weight, x * stretch, y * stretch); }

VARIATION(ovoid, x = 0.94, y = 0.94) { return scaled(weight / (x * x + y * y + 1e-30f), x * ovoid_x, y * ovoid_y); }

REPLACING(rays1) {
    real t = x * x + y * y, u = 1.0f / tangent_of(sqrt(t)) + weight * square((real)(2.0f / PI));
    return scaled(weight * u * t, 1.0f / x, 1.0f / y);
}

REPLACING(rays2) {
    real t = x * x + y * y, u = 1.0f / cosine_of((t + 1e-30f) * tangent_of(1.0f / t + 1e-30f));
    return scaled(0.1f * weight * u * t, 1.0f / x, 1.0f / y);
}

REPLACING(rays3) {
    real t = x * x + y * y, t2 = t * t;
    real u = 1.0f / sqrt(cosine_of(sine_of(t2 + 1e-30f) * sine_of(1.0f / t2 + 1e-30f)));
    return scaled(0.1f * weight * u * t, cosine_of(t) / x, tangent_of(t) / y);
}

VARIATION(roundspher) {
    real d = x * x + y * y;
    return scaled(weight * weight / (1.0f + d * (4.0f / (PI * PI))), x, y);
}

VARIATION(pressure_wave, x_freq = 1, y_freq = 1) {
    float u = x_freq * TWO_PI, v = y_freq * TWO_PI;
    return scaled(weight, x + sine_of(u * x) / u, y + sine_of(v * y) / v);
}

VARIATION(layered_spiral, radius = 1) { return from_polar(weight * x * radius, x * x + y * y + 1e-9f); }

VARIATION(funnel, effect = 8) {
    return scaled(weight, hyperbolic_tangent(x) * (1.0f / cosine_of(x) + effect * PI),
                  hyperbolic_tangent(y) * (1.0f / cosine_of(y) + effect * PI));
}

REPLACING(ennepers) {
    return pair(weight * (x - cube(x) / 3.0f) + x * y * y, weight * (y - cube(y) / 3.0f) + y * x * x);
}

VARIATION(log_apo, base = 2.71828182845905) {
    real k = 0.5f / logarithm_of((real)(base));
    return scaled(weight, k * logarithm_of(x * x + y * y), angle_of(y, x));
}

REPLACING(sintrange, w = 1) {
    real v = (x * x + y * y) * w;
    return scaled(weight, sine_of(x) * (x * x + w - v), sine_of(y) * (y * y + w - v));
}

VARIATION(tancos) {
    real d = 1e-30f + x * x + y * y;
    return scaled(weight / d, hyperbolic_tangent(d) * 2.0f * x, cosine_of(d) * 2.0f * y);
}

VARIATION(rippled) {
    real d = x * x + y * y + 1e-30f;
    return scaled(weight, hyperbolic_tangent(d) * x, cosine_of(d) * y);
}

VARIATION(pulse, freqx = 2, freqy = 2, scalex = 1, scaley = 1) {
    return scaled(weight, x + scalex * sine_of(x * freqx), y + scaley * sine_of(y * freqy));
}

VARIATION(spiralwing) {
    real u = x * x, v = y * y;
    return from_polar(weight / (u + v + 1e-30f) * sine_of(v), u);
}

REPLACING(squirrel, a = 1, b = 1) {
    Pair c = circle(sqrt((a + 1e-9f) * x * x + (b + 1e-9f) * y * y));
    return scaled(weight, c.x * tangent_of(x), c.y * tangent_of(y));
}

VARIATION(cardioid, a = 1) {
    real t = angle_of(y, x);
    return from_polar(weight * sqrt(x * x + y * y + sine_of(a * t) + 1.0f), t);
}

VARIATION(exp2_bs, x1 = 1, y1 = 1, y2 = 1) {
    return scaled(weight * exponential_of(x * x1), cosine_of(y * y2), sine_of(y * y1));
}

VARIATION(swirl3, shift = 0.5) {
    real r = vnorm(x, y);
    return from_polar(weight * r, angle_of(y, x) + shift * logarithm_of(r));
}

DEVICE Pair panorama(float weight, real x, real y, real k) {
    real u = k * x, v = k * y;
    return scaled(weight, atan_xy(v, u) * (1.0f / PI), vnorm(u, v) - 0.5f);
}

VARIATION(panorama1) { return panorama(weight, x, y, 1.0f / sqrt(x * x + y * y + 1.0f)); }

VARIATION(panorama2) { return panorama(weight, x, y, 1.0f / (vnorm(x, y) + 1.0f)); }

VARIATION(invsquircular) {
    real r = x * x + y * y, root = sqrt(r * (weight * weight * r - 4.0f * x * x * y * y) / weight);
    real k = sqrt(r - root) * 0.70710678118654752f;
    return pair(k / x, k / y);
}

VARIATION(squircular) {
    // 1 + (x / y)^2 - ... without cancellation
    real r = x * x + y * y, s = 4.0f / (weight * weight) * x * x * r, t = sqrt(r * r - s * y * y);
    real k = sqrt(0.5f * (weight > 0.0f ? s / (r + t) : (r + t) / (y * y)));
    return pair(x > 0.0f ? k : -k, y / x * k);
}

VARIATION(bsplit, x = 0, y = 0) {
    Pair c = circle(x + bsplit_x);
    return scaled(weight / c.y, c.x * cosine_of(y + bsplit_y), bsplit_y - y);
}

VARIATION(projective, A = 0, B = -0.4, C = 1, A1 = 1, B1 = 0.1, C1 = 0, A2 = 0, B2 = 1.2, C2 = 0) {
    return scaled(weight / (A * x + B * y + C), A1 * x + B1 * y + C1, A2 * x + B2 * y + C2);
}

VARIATION(shift, shift_x = 0.1, shift_y = 0.06, angle = 12.25) {
    Pair c = circle((real)(angle * (PI / 180.0f)));
    return scaled(weight, x + c.x * shift_x - c.y * shift_y, y - c.x * shift_y - c.y * shift_x);
}

VARIATION(hadamard_js) {
    real u = uniform(random), v = uniform(random);
    mask first = u < 0.333f, second = v < 0.666f;
    return scaled(weight,
                  first    ? 0.5f * x
                  : second ? 0.5f * y
                           : -0.5f * y - 0.5f,
                  first    ? 0.5f * y
                  : second ? -0.5f * x - 0.5f
                           : 0.5f * x);
}

VARIATION(threepoint_js) {
    real u = uniform(random), v = uniform(random), a = 0.5f * (x - y) + 0.5f, b = 0.5f - 0.5f * (x + y);
    mask first = u < 0.333f, second = v < 0.666f;
    return scaled(weight, first ? a : second ? y : 0.5f - 0.5f * y, first ? b : second ? x : 0.5f - 0.5f * x);
}

VARIATION(invtree_js) {
    real u = uniform(random), v = uniform(random);
    mask first = u < 0.333f, second = v < 0.666f;
    return scaled(weight, first ? 0.5f * x : (second ? (real)(1.0f) : x) / (x + 1.0f),
                  first ? 0.5f * y : (second ? y : (real)(1.0f)) / (y + 1.0f));
}

VARIATION(mcarpet, x = 1, y = 0.75, twist = 0.5, tilt = -0.25) {
    real k = 1.0f / (0.25f * (x * x + y * y) + 1.0f);
    return scaled(weight, k * x * mcarpet_x + 1.0f - twist * x * x + y, k * y * mcarpet_y + tilt * x);
}

VARIATION(vogel, n = 20, scale = 1) {
    real k = random_index(uniform(random), n) + 1.0f;
    Pair c = circle(k * 2.399963229728653f);
    return scaled(weight * (vnorm(x, y) + sqrt(k)), c.x + scale * x, c.y + scale * y);
}

VARIATION(petal) {
    Pair u = circle(x), v = circle(y);
    return scaled(weight * u.x, cube(u.x * v.x), cube(u.y * v.x));
}

VARIATION(hypershift, shift = 2, stretch = 1) {
    real k = 1.0f / (x * x + y * y), u = k * x + shift, v = k * y;
    real r = weight * (1.0f - shift * shift) / (u * u + v * v);
    return pair(r * u + shift, r * v * stretch);
}

REPLACING(fresnel, x0 = 0, y0 = 0, ring = -2) {
    real k = wrap_unit(ring * vnorm(x - x0, y - y0));
    return scaled(weight * k, x, y);
}

VARIATION(deltaA) {
    real k = weight * sqrt((y * y + square(x + 1.0f)) / (y * y + square(x - 1.0f)));
    return from_polar(k, 0.5f * (angle_of(y, x - 1.0f) - angle_of(y, x + 1.0f)));
}

REPLACING(anamorphcyl, a = 1, b = 1.3, k = 3) { return from_polar(weight * a * (y + b), k * x); }

VARIATION(loonie3) {
    float w2 = weight * weight;
    real r2 = x > 1e-30f ? square((x * x + y * y) / x) : (real)(2.0f * w2);
    return scaled(r2 < w2 ? weight * sqrt(w2 / r2 - 1.0f) : (real)(weight), x, y);
}

VARIATION(sphericalN, power = 3, dist = 1) {
    real n = floor_of(power * uniform(random)), r = power_of(vnorm(x, y), (real)(dist));
    return from_polar(weight / r, angle_of(y, x) + n * TWO_PI / floor(power));
}

REPLACING(hyperbolicellipse, a = 1) {
    Pair h = hyperbola(x), c = circle(a * y);
    return scaled(weight, h.y * c.x, h.x * c.y);
}

VARIATION(holesq) {
    real u = weight * x, v = weight * y, au = magnitude(u), av = magnitude(v);
    mask outside = au + av > 1.0f, wide = au > av;
    real s = u < 0.0f ? (u + av - 1.0f) * 0.5f : (u - av + 1.0f) * 0.5f;
    real t = v < 0.0f ? (v + au - 1.0f) * 0.5f : (v - au + 1.0f) * 0.5f;
    return pair(outside || !wide ? u : s, outside || wide ? v : t);
}

VARIATION(csc_squared, csc_div = 1, cos_div = 1, tan_div = 1, csc_pow = 0.5, pi_mult = 0.5, csc_add = 0.25,
          scale_y = 1) {
    real c = csc_div / cosine_of(x / cos_div) / tangent_of(x / tan_div);
    real k = power_of(c * c + PI * pi_mult, (real)(csc_pow)) + csc_add;
    return scaled(weight * k, x, y * scale_y);
}

REPLACING(c_symmetry, p1 = 3, p2 = 3) {
    return from_polar(weight * power_of(vnorm(x, y), (real)(p2)), p1 * angle_of(y, x));
}

VARIATION(stripfit, dx = 1) {
    real up = remainder_of(y + 1.0f, (real)(2.0f)), down = remainder_of(1.0f - y, (real)(2.0f));
    mask above = y > 1.0f, below = y < -1.0f;
    real step = above ? y - up + 1.0f : below ? y + down - 1.0f : zero_real();
    return pair(weight * x - 0.5f * dx * step, weight * (above ? up - 1.0f : below ? 1.0f - down : y));
}

VARIATION(atan, Mode = 0, Stretch = 1) {
    float k = 2.0f / PI;
    real u = Mode == 0.0f ? x : k * arctangent(Stretch * x), v = Mode == 1.0f ? y : k * arctangent(Stretch * y);
    return scaled(weight, u, v);
}

VARIATION(hole, a = 1, inside = 0) {
    real t = angle_of(y, x), d = power_of(t / PI + 1.0f, (real)(a)), r2 = x * x + y * y;
    return from_polar(weight * (inside != 0.0f ? d / (r2 + d) : sqrt(r2 + d)), t);
}

VARIATION(devil_warp, a = 2, b = 1, effect = 1, warp = 0.5, rmin = -0.24, rmax = 100) {
    real k = 1.0f / (x * x + y * y);
    real r = power_of(x * x + k * b * y * y, (real)(warp)) - power_of(y * y + k * a * x * x, (real)(warp));
    r = 1.0f + effect * clamped(r, (real)(rmin), (real)(rmax));
    return pair(x * r, y * r);
}

VARIATION(target, even = 3.2452232083054136, odd = 3.7073772541315537, size = 1.0395111651700295) {
    real r = vnorm(x, y), t = logarithm_of(r);
    t = remainder_of(magnitude(t < 0.0f ? t - 0.5f * size : t), (real)(size));
    return from_polar(r, angle_of(y, x) + (t < 0.5f * size ? (real)(even) : (real)(odd)));
}

VARIATION(target_sp, twist = 0, n_of_sp = 1, size = 3.036394269961722, tightness = 0.6471312300111844) {
    real a = angle_of(y, x), r = vnorm(x, y), t = tightness * logarithm_of(r) + n_of_sp * (a + PI) * (1.0f / PI);
    t = remainder_of(magnitude(t < 0.0f ? t - 0.5f * size : t), (real)(size));
    return from_polar(r, a + PI * twist + (t < 0.5f * size ? zero_real() : (real)(-PI)));
}

VARIATION(pTransform, rotate = 0.3, power = 2, move = 0.4, split = 0, use_log = 1) {
    real r = (use_log != 0.0f ? logarithm_of(vnorm(x, y)) : vnorm(x, y)) / power + move;
    r = x >= 0.0f ? r + split : r - split;
    return from_polar(weight * (use_log != 0.0f ? exponential_of(r) : r), angle_of(y, x) + rotate);
}

VARIATION(kaleidoscope, pull = 0, rotate = 1, line_up = 1, x = 0, y = 0) {
    Pair c = circle((real)(45.0f));
    real u = rotate * x * c.x - y * c.y + line_up + kaleidoscope_x, v = rotate * y * c.x + x * c.y;
    return pair(u, y > 0.0f ? v + pull + line_up + kaleidoscope_y : v - pull - line_up);
}

VARIATION(eclipse, shift = 0.1) {
    real c = sqrt(weight * weight - y * y), u = x + shift * weight;
    mask inside = magnitude(y) <= weight && magnitude(x) <= c;
    return scaled(weight, inside ? (magnitude(u) >= c ? -x : u) : x, y);
}

VARIATION(murl, c = 0.1, power = 1) {
    float k = power != 1.0f ? c / (power - 1.0f) : c;
    Pair p = from_polar(k * power_of(x * x + y * y, (real)(0.5f * power)), angle_of(y, x) * power);
    real re = p.x + 1.0f, im = p.y;
    return scaled(weight * (k + 1.0f) / (re * re + im * im), x * re + y * im, y * re - x * im);
}

VARIATION(mask, xshift = 0, yshift = 0, ushift = 1, xscale = 1, yscale = 1) {
    Pair s = circle(xscale * x + xshift);
    real k = (hyperbola(yscale * y + yshift).x + ushift) * s.y * s.y / (x * x + y * y);
    return scaled(weight * k, s.y, s.x);
}

VARIATION(inverted_julia, power = 0.25, y2_mult = 1, a2x_mult = 1, a2y_mult = 1, a2y_add = 0, cos_mult = 0, y_mult = 1,
          center = 3.14, x2y2_add = 0) {
    real h = power_of(x * x + y * y * y2_mult, (real)(power)) + x2y2_add;
    real half_turn = uniform(random) < 0.5f ? zero_real() : (real)(PI);
    Pair c = circle(0.5f * angle_of(x * a2x_mult, y * a2y_mult + a2y_add) + half_turn);
    real k = weight * cosine_of(h * cos_mult) / h / center;
    return pair(k * c.y, k * c.x * y_mult);
}

VARIATION(stwin, distort = 1, offset_xy = 0, offset_x2 = 0, offset_y2 = 0) {
    real u = 0.05f * weight * x, v = 0.05f * weight * y, u2 = u * u + 0.0001f * offset_x2,
         v2 = v * v + 0.0001f * offset_y2;
    real wave = (u2 - v2) * sine_of(TWO_PI * distort * (u + v + 0.1f * offset_xy)) / (u2 + v2);
    return pair(weight * x + wave, weight * y + wave);
}

// Bipolar coordinates (tau, sigma) of a point.
DEVICE Pair bipolar_coordinates(real x, real y) {
    real left = square(x + 1.0f) + y * y, right = square(x - 1.0f) + y * y;
    return pair(0.5f * logarithm_of(left / right), PI - angle_of(y, x + 1.0f) - angle_of(y, 1.0f - x));
}

DEVICE Pair from_bipolar(float weight, real tau, real sigma) {
    Pair h = hyperbola(tau), c = circle(sigma);
    return scaled(weight / (h.x - c.x), h.y, c.y);
}

VARIATION(bSwirl, in = 0, out = 0) {
    Pair b = bipolar_coordinates(x, y);
    return from_bipolar(weight, b.x, b.y + b.x * out + in / b.x);
}

VARIATION(bMod, radius = 1, distance = 0) {
    Pair b = bipolar_coordinates(x, y);
    real t = remainder_of(b.x + radius + distance * radius, (real)(2.0f * radius)) - radius;
    return from_bipolar(weight, magnitude(b.x) < radius ? t : b.x, b.y);
}

VARIATION(fibonacci2, sc = 1, sc2 = 1) {
    float k = 0.48121182505960347f, s = 0.4472135954999579f;
    Pair a = circle(y * k), b = circle(-(x * PI + y * k));
    real r = sc * exponential_of(sc2 * (x * k)), q = sc * exponential_of(-sc2 * (x * k - y * PI));
    return scaled(weight * s, r * a.x - q * b.x, r * a.y - q * b.y);
}

VARIATION(bipolar2, shift = 0, a = 1, b = 2, c = 0.5, d = 1, e = 2, f1 = 0.25, g1 = 1, h = 1) {
    real r2 = (x * x + y * y) * g1, t = r2 + a, u = b * x;
    real v = wrap(c * angle_of(e * y, r2 - d) - 0.5f * PI * shift, (real)(0.5f * PI));
    mask none = (t + u) / (t - u) <= 0.0f;
    real k = f1 * (2.0f / PI) * logarithm_of((t + u) / (t - u));
    return scaled(weight, none ? zero_real() : k, none ? zero_real() : (2.0f / PI) * v * h);
}

VARIATION(circlize, hole = 0.4) {
    Pair p = square_to_disc(x, y);
    return from_polar(weight * (4.0f / PI) * p.x + hole, p.y);
}

VARIATION(spliptic_bs, x = 0.05, y = 0.05) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(greatest(e.y / m * (1.0f + magnitude(a)), zero_real()));
    real u = weight * (2.0f / PI) * angle_of(a, b),
         v = weight * (2.0f / PI) * logarithm_of(m + sqrt(e.x)) + spliptic_bs_y;
    return pair(x >= 0.0f ? u + spliptic_bs_x : u - spliptic_bs_x, uniform(random) < 0.5f ? v : -v);
}

VARIATION(elliptic2, a1 = 1, a2 = 1, a3 = 0, b1 = 2, b2 = 1, c = 0.5, d = 1, e = 0.5, f = 1, g = 1, h = 2) {
    real t = x * x + y * y + a1, m = c * (sqrt(t + b1 * x) + sqrt(t - b1 * x)), a = x / m * a2;
    real b = root_safe(d - a * a) * b2;
    mask up = uniform(random) < e;
    real v = logarithm_of(m + root_safe(m - (up ? (real)(f) : (real)(g))));
    float k = weight * h / PI;
    return pair(k * angle_of(a, b) - 0.5f * PI * a3, k * (up ? v : -v));
}

VARIATION(blocky, x = 1, y = 1, mp = 4) {
    real r = 1.0f / ((cosine_of(x) + cosine_of(y)) / mp + 1.0f), t = x * x + y * y + 1.0f;
    real u = x / (0.5f * (sqrt(t + 2.0f * x) + root_safe(t - 2.0f * x)));
    real v = y / (0.5f * (sqrt(t + 2.0f * y) + root_safe(t - 2.0f * y)));
    return scaled(weight * weight * (2.0f / PI) * r, arcsine(u) * blocky_x, arcsine(v) * blocky_y);
}

DEVICE real sigmoid_of(real x, float shift) {
    float a = shift < 0.0f && shift > -1.0f ? -1.0f : 1.0f;
    float s = shift == 0.0f ? 1e-30f : fabs(shift) < 1.0f ? 1.0f / shift : shift;
    return 2.0f * (a / (1.0f + exponential_of(-5.0f * s * x)) - 0.5f);
}

VARIATION(sigmoid, shiftx = 1, shifty = 1) {
    return scaled((real)(fabs(weight)), sigmoid_of(x, shiftx), sigmoid_of(y, shifty));
}

VARIATION(eRotate, rotate = 0) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(greatest(e.y / m * (1.0f + magnitude(a)), zero_real()));
    real nu = y < 0.0f ? -angle_of(b, a) : angle_of(b, a);
    Pair c = circle(remainder_of(nu + rotate + PI, (real)(TWO_PI)) - PI);
    return scaled(weight, m * c.x, sqrt(e.x * (m + 1.0f)) * c.y);
}

VARIATION(ePush, push = 0, dist = 1, rotate = 0) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(greatest(e.y / m * (1.0f + magnitude(a)), zero_real()));
    Pair h = hyperbola(area_cosine_1p(e.x) * dist + push);
    Pair c = circle((y < 0.0f ? -angle_of(b, a) : angle_of(b, a)) + rotate);
    return scaled(weight, h.x * c.x, h.y * c.y);
}

VARIATION(eSwirl, in = 1.2, out = 0.2) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(greatest(e.y / m * (1.0f + magnitude(a)), zero_real()));
    real mu = area_cosine_1p(e.x), nu = y < 0.0f ? -angle_of(b, a) : angle_of(b, a);
    Pair h = hyperbola(mu), c = circle(nu + mu * out + in / mu);
    return scaled(weight, h.x * c.x, h.y * c.y);
}

VARIATION(rational3, a = 0.5, b = 0, c = 0.25, d = 1, e = 0, f = 0.9, g = 0, h = 1) {
    real x2 = x * x, y2 = y * y, t3 = x * (x2 - 3.0f * y2), t2 = x2 - y2, b3 = y * (3.0f * x2 - y2), b2 = 2.0f * x * y;
    real tr = a * t3 + b * t2 + c * x + d, ti = a * b3 + b * b2 + c * y;
    real br = e * t3 + f * t2 + g * x + h, bi = e * b3 + f * b2 + g * y;
    return scaled(weight / (br * br + bi * bi), tr * br + ti * bi, ti * br - tr * bi);
}
