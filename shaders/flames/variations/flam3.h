// The 99 variations of flam3, in its order (S. Draves and E. Reckase, "The Fractal Flame Algorithm"; the later ones by
// the community around flam3). VARIATION_Z gives the z of a
// variation in space as Apophysis 7X and JWildfire define it.
// Origin: flam3

VARIATION(linear) { return scaled(weight, x, y); }

VARIATION(sinusoidal) { return scaled(weight, sine_of(x), sine_of(y)); }

VARIATION(spherical) { return scaled(weight / (x * x + y * y + EPSILON), x, y); }

VARIATION(swirl) {
    Pair c = circle(x * x + y * y);
    return scaled(weight, c.y * x - c.x * y, c.x * x + c.y * y);
}

VARIATION(horseshoe) { return scaled(weight / (vnorm(x, y) + EPSILON), (x - y) * (x + y), 2.0f * x * y); }

VARIATION(polar) { return scaled(weight, atan_xy(y, x) * (1.0f / PI), vnorm(x, y) - 1.0f); }

VARIATION(handkerchief) {
    real phi = atan_xy(y, x), r = vnorm(x, y);
    return scaled(weight * r, sine_of(phi + r), cosine_of(phi - r));
}

VARIATION(heart) {
    real r = vnorm(x, y);
    Pair c = circle(r * atan_xy(y, x));
    return scaled(weight * r, c.y, -c.x);
}

VARIATION(disc) { return swapped(from_polar(weight * (atan_xy(y, x) * (1.0f / PI)), PI * vnorm(x, y))); }

VARIATION(spiral) {
    real r = vnorm(x, y), safe = r + EPSILON;
    Pair c = circle(safe);
    return scaled(weight / safe, y / r + c.y, x / r - c.x);
}

VARIATION(hyperbolic) {
    real r = vnorm(x, y), safe = r + EPSILON;
    return scaled(weight, x / r / safe, y / r * safe);
}

VARIATION(diamond) {
    real r = vnorm(x, y);
    Pair c = circle(r);
    return scaled(weight, x / r * c.x, y / r * c.y);
}

VARIATION(ex) {
    real phi = atan_xy(y, x), r = vnorm(x, y);
    real s = sine_of(phi + r), c = cosine_of(phi - r);
    real m0 = r * (s * s * s), m1 = r * (c * c * c);
    return scaled(weight, m0 + m1, m0 - m1);
}

VARIATION(julia) {
    real half_turn = uniform(random) < 0.5f ? (real)(0.0f) : (real)(PI);
    return from_polar(weight * sqrt(vnorm(x, y)), 0.5f * atan_xy(y, x) + half_turn);
}

VARIATION(bent) { return scaled(weight, x < 0.0f ? 2.0f * x : x, y < 0.0f ? 0.5f * y : y); }

VARIATION(waves) {
    real u = y / (AFFINE_C * AFFINE_C + EPSILON), v = x / (AFFINE_F * AFFINE_F + EPSILON);
    return scaled(weight, x + AFFINE_B * sine_of(u), y + AFFINE_E * sine_of(v));
}

VARIATION(fisheye) { return scaled(2.0f * weight / (vnorm(x, y) + 1.0f), y, x); }

VARIATION(popcorn) {
    real u = sine_of(tangent_of(3.0f * y)), v = sine_of(tangent_of(3.0f * x));
    return scaled(weight, x + AFFINE_C * u, y + AFFINE_F * v);
}

VARIATION(exponential) { return complex_exp(weight, x - 1.0f, PI * y); }

VARIATION(power) {
    real r = vnorm(x, y);
    return scaled(weight * power_of(r, x / r), y / r, x / r);
}

VARIATION(cosine) { return complex_cos(weight, PI * x, y); }

VARIATION(rings) {
    real r = vnorm(x, y);
    float d = AFFINE_C * AFFINE_C + EPSILON;
    real k = remainder_of(r + d, (real)(2.0f * d)) - d + r * (1.0f - d);
    return scaled(weight * k, y / r, x / r);
}

VARIATION(fan) {
    float d = PI * (AFFINE_C * AFFINE_C + EPSILON);
    real phi = atan_xy(y, x);
    real over = remainder_of(phi + AFFINE_F, (real)(d));
    return from_polar(weight * vnorm(x, y), phi + (over > 0.5f * d ? (real)(-0.5f * d) : (real)(0.5f * d)));
}

VARIATION(blob, low = 0, high = 1, waves = 1) {
    real k = weight * (low + (high - low) * (0.5f + 0.5f * sine_of(waves * atan_xy(y, x))));
    return scaled(k, x, y);
}

VARIATION(pdj, a = 0, b = 0, c = 0, d = 0) {
    return scaled(weight, sine_of(a * y) - cosine_of(b * x), sine_of(c * x) - cosine_of(d * y));
}

VARIATION(fan2, x = 0, y = 0) {
    float d = PI * (fan2_x * fan2_x + EPSILON);
    real phi = atan_xy(y, x);
    real t = phi + fan2_y - d * truncation((phi + fan2_y) / d);
    return swapped(from_polar(weight * vnorm(x, y), phi + (t > 0.5f * d ? (real)(-0.5f * d) : (real)(0.5f * d))));
}

VARIATION(rings2, val = 0) {
    real r = vnorm(x, y);
    float d = val * val + EPSILON;
    real k = r - 2.0f * d * truncation((r + d) / (2.0f * d)) + r * (1.0f - d);
    return scaled(weight * k, x / r, y / r);
}

VARIATION(eyefish) { return scaled(2.0f * weight / (vnorm(x, y) + 1.0f), x, y); }

VARIATION(bubble) { return scaled(weight / (0.25f * (x * x + y * y) + 1.0f), x, y); }

VARIATION_Z(bubble) { return weight * (2.0f / (0.25f * (x * x + y * y) + 1.0f) - 1.0f); }

VARIATION(cylinder) { return scaled(weight, sine_of(x), y); }

VARIATION_Z(cylinder) { return weight * cosine_of(x); }

VARIATION(perspective, angle = 0, dist = 0) {
    Pair c = circle((real)(angle * (PI / 2.0f)));
    real t = 1.0f / (dist - y * c.y);
    return scaled(weight * t, dist * x, dist * c.x * y);
}

VARIATION(noise) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(weight * uniform(random), x * c.x, y * c.y);
}

VARIATION(julian, power = 1, dist = 1) {
    real t = truncation(fabs(power) * uniform(random));
    Pair c = circle((angle_of(y, x) + TWO_PI * t) / power);
    return scaled(weight * power_of(x * x + y * y, (real)(dist / power / 2.0f)), c.x, c.y);
}

VARIATION(juliascope, power = 1, dist = 1) {
    real t = truncation(fabs(power) * uniform(random)), theta = angle_of(y, x);
    real half_t = floor_of(0.5f * t);
    Pair c = circle((TWO_PI * t + (t - 2.0f * half_t == 0.0f ? theta : -theta)) / power);
    return scaled(weight * power_of(x * x + y * y, (real)(dist / power / 2.0f)), c.x, c.y);
}

VARIATION(blur) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(weight * uniform(random), c.x, c.y);
}

VARIATION(gaussian_blur) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(weight * gauss4(random), c.x, c.y);
}

VARIATION(radial_blur, angle = 0) {
    Pair q = circle((real)(angle * (PI / 2.0f)));
    real g = weight * gauss4(random), r = vnorm(x, y), z = g * q.x - 1.0f;
    Pair c = circle(angle_of(y, x) + g * q.y);
    return pair(r * c.x + z * x, r * c.y + z * y);
}

VARIATION(pie, slices = 6, rotation = 0, thickness = 0.5) {
    real s = truncation(uniform(random) * slices + 0.5f);
    Pair c = circle(rotation + TWO_PI * (s + uniform(random) * thickness) / slices);
    return scaled(weight * uniform(random), c.x, c.y);
}

VARIATION(ngon, sides = 5, power = 3, circle = 1, corners = 2) {
    float b = TWO_PI / sides;
    real theta = angle_of(y, x), p = theta - b * floor_of(theta / b);
    p = p > 0.5f * b ? p - b : p;
    real k = corners * (1.0f / (cosine_of(p) + EPSILON) - 1.0f) + ngon_circle;
    return scaled(weight * k / (power_of(x * x + y * y, (real)(0.5f * power)) + EPSILON), x, y);
}

VARIATION(curl, c1 = 1, c2 = 0) {
    real re = 1.0f + c1 * x + c2 * (x * x - y * y), im = c1 * y + 2.0f * c2 * x * y;
    return scaled(weight / (re * re + im * im), x * re + y * im, y * re - x * im);
}

VARIATION(rectangles, x = 1, y = 1) {
    real u = rectangles_x == 0.0f ? x : (2.0f * floor_of(x / rectangles_x) + 1.0f) * rectangles_x - x;
    real v = rectangles_y == 0.0f ? y : (2.0f * floor_of(y / rectangles_y) + 1.0f) * rectangles_y - y;
    return scaled(weight, u, v);
}

VARIATION(arch) {
    Pair c = circle(uniform(random) * (weight * PI));
    return scaled(weight, c.y, c.y * c.y / c.x);
}

VARIATION(tangent) { return scaled(weight, sine_of(x) / cosine_of(y), tangent_of(y)); }

VARIATION(square) {
    real u = uniform(random) - 0.5f;
    return scaled(weight, u, uniform(random) - 0.5f);
}

VARIATION(rays) {
    real k = weight * tangent_of(weight * uniform(random) * PI) * weight / (x * x + y * y + EPSILON);
    return scaled(k, cosine_of(x), sine_of(y));
}

VARIATION(blade) {
    Pair c = circle(uniform(random) * weight * vnorm(x, y));
    return scaled(weight * x, c.x + c.y, c.x - c.y);
}

VARIATION(secant2) {
    real c = cosine_of(weight * vnorm(x, y));
    return scaled(weight, x, 1.0f / c + (c < 0.0f ? (real)(1.0f) : (real)(-1.0f)));
}

VARIATION(twintrian) {
    Pair c = circle(uniform(random) * weight * vnorm(x, y));
    real d = 0.434294481903252f * logarithm_of(c.y * c.y) + c.x;
    d = magnitude(d) <= 1e10f ? d : (real)(-30.0f);
    return scaled(weight * x, d, d - PI * c.y);
}

VARIATION(cross) {
    real s = x * x - y * y;
    return scaled(weight * sqrt(1.0f / (s * s + EPSILON)), x, y);
}

VARIATION(disc2, rot = 0, twist = 0) {
    Pair t = circle(rot * PI * (x + y)), c = circle((real)(twist));
    float k = twist > TWO_PI ? 1.0f + twist - TWO_PI : twist < -TWO_PI ? 1.0f + twist + TWO_PI : 1.0f;
    return scaled(weight * (atan_xy(y, x) * (1.0f / PI)), t.y + k * (c.x - 1.0f), t.x + k * c.y);
}

VARIATION(super_shape, rnd = 0, m = 0, n1 = 1, n2 = 1, n3 = 1, holes = 0) {
    real r = vnorm(x, y);
    Pair c = circle(0.25f * m * angle_of(y, x) + 0.25f * PI);
    real sum = power_of(magnitude(c.x), (real)(n2)) + power_of(magnitude(c.y), (real)(n3));
    real k = (rnd * uniform(random) + (1.0f - rnd) * r - holes) * power_of(sum, (real)(-1.0f / n1)) / r;
    return scaled(weight * k, x, y);
}

VARIATION(flower, petals = 0, holes = 0) {
    real k = (uniform(random) - holes) * cosine_of(petals * angle_of(y, x)) / vnorm(x, y);
    return scaled(weight * k, x, y);
}

VARIATION(conic, eccentricity = 1, holes = 0) {
    real r = vnorm(x, y);
    real k = (uniform(random) - holes) * eccentricity / (1.0f + eccentricity * (x / r)) / r;
    return scaled(weight * k, x, y);
}

VARIATION(parabola, height = 0, width = 0) {
    Pair c = circle(vnorm(x, y));
    real u = height * (c.y * c.y) * uniform(random);
    return scaled(weight, u, width * c.x * uniform(random));
}

VARIATION(bent2, x = 1, y = 1) { return scaled(weight, x < 0.0f ? bent2_x * x : x, y < 0.0f ? bent2_y * y : y); }

VARIATION(bipolar, shift = 0) {
    real y2 = y * y, left = square(x + 1.0f) + y2, right = square(x - 1.0f) + y2;
    real v = 0.5f * angle_of(2.0f * y, x * x + y2 - 1.0f) - shift * (PI / 2.0f);
    return scaled(weight * (2.0f / PI), 0.25f * logarithm_of(left / right), wrap(v, (real)(0.5f * PI)));
}

VARIATION(boarders) {
    real cx = nearest(x), cy = nearest(y), u = x - cx, v = y - cy;
    mask inner = uniform(random) >= 0.75f, flat = magnitude(u) >= magnitude(v);
    real su = 0.25f * sign_nonnegative(u), sv = 0.25f * sign_nonnegative(v);
    real bx = flat ? su : sv * u / v, by = flat ? su * v / u : sv;
    return scaled(weight, 0.5f * u + cx + (inner ? (real)(0.0f) : bx), 0.5f * v + cy + (inner ? (real)(0.0f) : by));
}

VARIATION(butterfly) {
    real y2 = 2.0f * y;
    return scaled(weight * 1.3029400317411197909f * sqrt(magnitude(x * y) / (EPSILON + x * x + y2 * y2)), x, y2);
}

VARIATION(cell, size = 1) {
    real cx = floor_of(x / size), cy = floor_of(y / size);
    real gx = cx >= 0.0f ? 2.0f * cx : -(2.0f * cx + 1.0f), gy = cy >= 0.0f ? 2.0f * cy : -(2.0f * cy + 1.0f);
    return pair(weight * (x - cx * size + gx * size), -weight * (y - cy * size + gy * size));
}

VARIATION(cpow, r = 1, i = 0, power = 1) {
    float c = r / power, d = i / power;
    real theta = angle_of(y, x), l = 0.5f * logarithm_of(x * x + y * y);
    real wedge = TWO_PI / power * floor_of(power * uniform(random));
    return complex_exp(weight, c * l - d * theta, c * theta + d * l + wedge);
}

VARIATION(curve, xamp = 0, yamp = 0, xlength = 1, ylength = 1) {
    float lx = fmax(xlength * xlength, 1e-20f), ly = fmax(ylength * ylength, 1e-20f);
    return scaled(weight, x + xamp * exponential_of(-y * y / lx), y + yamp * exponential_of(-x * x / ly));
}

VARIATION(edisc) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(e.y / m * (1.0f + magnitude(a)));
    Pair c = circle(logarithm_of(m + sqrt(e.x))), h = hyperbola(-angle_of(b, a));
    return scaled(weight / 11.57034632f, h.x * c.x, h.y * (y > 0.0f ? -c.y : c.y));
}

VARIATION(elliptic) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(e.y / m * (1.0f + magnitude(a)));
    return scaled(weight / (PI / 2.0f), angle_of(a, b), sign_positive(y) * logarithm_of(m + sqrt(e.x)));
}

VARIATION(escher, beta = 0) {
    Pair b = circle((real)(beta));
    real c = 0.5f * (1.0f + b.x), d = 0.5f * b.y, l = 0.5f * logarithm_of(x * x + y * y), theta = angle_of(y, x);
    return complex_exp(weight, c * l - d * theta, c * theta + d * l);
}

VARIATION(foci) { return swapped(conjugate_cot(weight, 0.5f * y, 0.5f * x)); }

VARIATION(lazysusan, space = 0, twist = 0, spin = 0, x = 0, y = 0) {
    real u = x - lazysusan_x, v = y + lazysusan_y, r = vnorm(u, v);
    Pair c = circle(angle_of(v, u) + spin + twist * (weight - r));
    real k = weight * (1.0f + space / r);
    mask inside = r < weight;
    return pair((inside ? weight * r * c.x : k * u) + lazysusan_x, (inside ? weight * r * c.y : k * v) - lazysusan_y);
}

VARIATION(loonie) {
    real r2 = x * x + y * y, w2 = (real)(weight * weight);
    return scaled(r2 < w2 ? weight * sqrt(w2 / r2 - 1.0f) : (real)(weight), x, y);
}

// Applied before all others: its result is added to the point (x, y) that they transform.
VARIATION(pre_blur) {
    real g = weight * gauss4(random);
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(g, c.x, c.y);
}

VARIATION(modulus, x = 0, y = 0) { return scaled(weight, wrap(x, (real)(modulus_x)), wrap(y, (real)(modulus_y))); }

VARIATION(oscilloscope, separation = 1, frequency = 3.141592653589793, amplitude = 1, damping = 0) {
    real t = amplitude * exponential_of(-magnitude(x) * damping) * cosine_of(TWO_PI * frequency * x) + separation;
    return scaled(weight, x, magnitude(y) <= t ? -y : y);
}

VARIATION(polar2) { return scaled(weight / PI, atan_xy(y, x), 0.5f * logarithm_of(x * x + y * y)); }

VARIATION(popcorn2, x = 0, y = 0, c = 0) {
    real u = popcorn2_x * sine_of(tangent_of(c * y)), v = popcorn2_y * sine_of(tangent_of(c * x));
    return scaled(weight, x + u, y + v);
}

VARIATION(scry) {
    real r2 = x * x + y * y;
    return scaled(1.0f / (sqrt(r2) * (r2 + 1.0f / (weight + EPSILON))), x, y);
}

VARIATION(separation, x = 0, xinside = 0, y = 0, yinside = 0) {
    real u = sign_positive(x) * sqrt(x * x + separation_x * separation_x) - x * xinside;
    real v = sign_positive(y) * sqrt(y * y + separation_y * separation_y) - y * yinside;
    return scaled(weight, u, v);
}

VARIATION(split, xsize = 0, ysize = 0) {
    real u = sign_nonnegative(cosine_of(y * ysize * PI)), v = sign_nonnegative(cosine_of(x * xsize * PI));
    return scaled(weight, x * u, y * v);
}

VARIATION(splits, x = 0, y = 0) {
    return scaled(weight, x + sign_nonnegative(x) * splits_x, y + sign_nonnegative(y) * splits_y);
}

VARIATION(stripes, space = 0, warp = 0) {
    real row = floor_of(x + 0.5f), over = x - row;
    return scaled(weight, over * (1.0f - space) + row, y + over * over * warp);
}

VARIATION(wedge, angle = 0, hole = 0, count = 1, swirl = 0) {
    return wedge_of_radius(vnorm(x, y), x, y, weight, angle, hole, count, swirl);
}

VARIATION(wedge_julia, angle = 0, count = 1, power = 1, dist = 0) {
    real t = truncation(fabs(power) * uniform(random));
    Pair c = circle(cut_wedges((angle_of(y, x) + TWO_PI * t) / power, angle, count));
    return scaled(weight * power_of(x * x + y * y, (real)(dist / power / 2.0f)), c.x, c.y);
}

VARIATION(wedge_sph, angle = 0, hole = 0, count = 1, swirl = 0) {
    return wedge_of_radius(1.0f / (vnorm(x, y) + EPSILON), x, y, weight, angle, hole, count, swirl);
}

VARIATION(whorl, inside = 0, outside = 0) {
    real r = vnorm(x, y);
    return from_polar(weight * r, angle_of(y, x) + (r < weight ? (real)(inside) : (real)(outside)) / (weight - r));
}

VARIATION(waves2, scalex = 0, scaley = 0, freqx = 0, freqy = 0) {
    return scaled(weight, x + scalex * sine_of(y * freqx), y + scaley * sine_of(x * freqy));
}

VARIATION(exp) { return complex_exp(weight, x, y); }

VARIATION(log, base = 2.718281828459045) {
    Pair p = pair(0.5f * logarithm_of(x * x + y * y), angle_of(y, x));
    if (base != 2.718281828459045f) p.x = p.x / logarithm_of((real)(base));  // flam3 knows no other base
    return scaled(weight, p.x, p.y);
}

VARIATION(sin) { return complex_sin(weight, x, y); }

VARIATION(cos) { return complex_cos(weight, x, y); }

VARIATION(tan) { return complex_tan(weight, x, y); }

VARIATION(sec) { return complex_sec(weight, x, y); }

VARIATION(csc) { return conjugate(conjugate_csc(weight, x, y)); }

VARIATION(cot) { return conjugate(conjugate_cot(weight, x, y)); }

VARIATION(sinh) { return swapped(complex_sin(weight, y, x)); }

VARIATION(cosh) { return conjugate(complex_cos(weight, y, x)); }

VARIATION(tanh) { return swapped(complex_tan(weight, y, x)); }

VARIATION(sech) { return conjugate(complex_sec(weight, y, x)); }

VARIATION(csch) { return conjugate(swapped(conjugate_csc(weight, y, x))); }

VARIATION(coth) { return swapped(conjugate_cot(weight, y, x)); }

VARIATION(auger, freq = 1, weight = 0.5, sym = 0, scale = 1) {
    real s = sine_of(freq * x), t = sine_of(freq * y);
    real dy = y + auger_weight * (scale * s * 0.5f + magnitude(y) * s);
    real dx = x + auger_weight * (scale * t * 0.5f + magnitude(x) * t);
    return scaled(weight, x + sym * (dx - x), dy);
}

VARIATION(flux, spread = 0) {
    real a = x + weight, b = x - weight;
    real k = weight * (2.0f + spread) * sqrt(sqrt(y * y + a * a) / sqrt(y * y + b * b));
    return from_polar(k, 0.5f * (angle_of(y, b) - angle_of(y, a)));
}

VARIATION(mobius, re_a = 0, im_a = 0, re_b = 0, im_b = 0, re_c = 0, im_c = 0, re_d = 0, im_d = 0) {
    real u = re_a * x - im_a * y + re_b, v = re_a * y + im_a * x + im_b;
    real p = re_c * x - im_c * y + re_d, q = re_c * y + im_c * x + im_d;
    return scaled(weight / (p * p + q * q), u * p + v * q, v * p - u * q);
}
