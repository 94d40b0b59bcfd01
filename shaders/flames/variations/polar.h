// Maps of the radius and the angle: discs, rings, fans, spirals, wedges.
// Grammar, given names and shared functions: shaders/flames/variation.h. A body returns the terms that are added to x
// and y. atan_xy(y, x) is the angle atan2(x, y), clockwise from +y, of flam3's early variations; angle_of(y, x) is
// atan2(y, x). circle(t) is (cos t, sin t), from_polar(r, t) is r circle(t), swapped() exchanges x and y.

// Origin: flam3

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

VARIATION(power) {
    real r = vnorm(x, y);
    return scaled(weight * power_of(r, x / r), y / r, x / r);
}

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

VARIATION(disc2, rot = 0, twist = 0) {
    Pair t = circle(rot * PI * (x + y)), c = circle((real)(twist));
    float k = twist > TWO_PI ? 1.0f + twist - TWO_PI : twist < -TWO_PI ? 1.0f + twist + TWO_PI : 1.0f;
    return scaled(weight * (atan_xy(y, x) * (1.0f / PI)), t.y + k * (c.x - 1.0f), t.x + k * c.y);
}

VARIATION(lazysusan, space = 0, twist = 0, spin = 0, x = 0, y = 0) {
    real u = x - lazysusan_x, v = y + lazysusan_y, r = vnorm(u, v);
    Pair c = circle(angle_of(v, u) + spin + twist * (weight - r));
    real k = weight * (1.0f + space / r);
    mask inside = r < weight;
    return pair((inside ? weight * r * c.x : k * u) + lazysusan_x, (inside ? weight * r * c.y : k * v) - lazysusan_y);
}

VARIATION(polar2) { return scaled(weight / PI, atan_xy(y, x), 0.5f * logarithm_of(x * x + y * y)); }

VARIATION(wedge, angle = 0, hole = 0, count = 1, swirl = 0) {
    return wedge_of_radius(vnorm(x, y), x, y, weight, angle, hole, count, swirl);
}

VARIATION(wedge_sph, angle = 0, hole = 0, count = 1, swirl = 0) {
    return wedge_of_radius(1.0f / (vnorm(x, y) + EPSILON), x, y, weight, angle, hole, count, swirl);
}

VARIATION(whorl, inside = 0, outside = 0) {
    real r = vnorm(x, y);
    return from_polar(weight * r, angle_of(y, x) + (r < weight ? (real)(inside) : (real)(outside)) / (weight - r));
}

// Origin: JWildfire

VARIATION_3D(blob3D, low = 0.3, high = 1.2, waves = 6) {
    real s = sine_of(waves * atan_xy(y, x)), k = weight * (low + (high - low) * (0.5f + 0.5f * s));
    return triple(k * x, k * y, k * s * vnorm(x, y));
}

VARIATION_3D(disc3d, pi = 3.141592653589793) {
    real r = sqrt(x * x + y * y + 1e-30f), k = weight * atan_xy(y, x) / (pi + 1e-30f);
    Pair c = circle(pi * r);
    return triple(k * c.y, k * c.x, k * r * cosine_of(z));
}

VARIATION(unpolar) { return swapped(from_polar(0.5f / PI * weight * exponential_of(y), x)); }

VARIATION(wdisc) {
    real a = PI / (vnorm(x, y) + 1.0f), r = angle_of(y, x) * (1.0f / PI);
    return from_polar(weight * r, r > 0.0f ? PI - a : a);
}

VARIATION(idisc) { return from_polar(weight / PI * angle_of(y, x), PI / (vnorm(x, y) + 1.0f)); }

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

VARIATION(invpolar) { return swapped(from_polar(weight * (1.0f + y), PI * x)); }

VARIATION(disc3, a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1) {
    Pair s = circle(PI * sqrt(x * d * x * e + y * f * y * g));
    real k = weight * atan_xy(y, x) / PI * c * h;
    return scaled(k, a * s.y, b * s.x);
}

VARIATION(circlesplit, cs_radius = 1, cs_split = 0.5) {
    real r = vnorm(x, y), k = r < cs_radius - cs_split ? (real)(1.0f) : (r + cs_split) / r;
    return scaled(weight * k, x, y);
}

VARIATION(fdisc, ashift = 1, rshift = 1, xshift = 0, yshift = 0, term1 = 1, term2 = 0, term3 = 0, term4 = 0) {
    real a = TWO_PI / (vnorm(x, y) + ashift), r = weight * (angle_of(y, x) * (1.0f / PI) + rshift) * 0.5f;
    real u = r * cosine_of(a + xshift), v = r * sine_of(a + yshift);
    return pair(term1 * u + term2 * x * u + term3 * x * r + term4 * x,
                term1 * v + term2 * y * v + term3 * y * r + term4 * y);
}

VARIATION(layered_spiral, radius = 1) { return from_polar(weight * x * radius, x * x + y * y + 1e-9f); }

VARIATION(spiralwing) {
    real u = x * x, v = y * y;
    return from_polar(weight / (u + v + 1e-30f) * sine_of(v), u);
}

VARIATION(cardioid, a = 1) {
    real t = angle_of(y, x);
    return from_polar(weight * sqrt(x * x + y * y + sine_of(a * t) + 1.0f), t);
}

VARIATION(swirl3, shift = 0.5) {
    real r = vnorm(x, y);
    return from_polar(weight * r, angle_of(y, x) + shift * logarithm_of(r));
}

VARIATION(vogel, n = 20, scale = 1) {
    real k = random_index(uniform(random), n) + 1.0f;
    Pair c = circle(k * 2.399963229728653f);
    return scaled(weight * (vnorm(x, y) + sqrt(k)), c.x + scale * x, c.y + scale * y);
}

REPLACING(fresnel, x0 = 0, y0 = 0, ring = -2) {
    real k = wrap_unit(ring * vnorm(x - x0, y - y0));
    return scaled(weight * k, x, y);
}

REPLACING(anamorphcyl, a = 1, b = 1.3, k = 3) { return from_polar(weight * a * (y + b), k * x); }

REPLACING(c_symmetry, p1 = 3, p2 = 3) {
    return from_polar(weight * power_of(vnorm(x, y), (real)(p2)), p1 * angle_of(y, x));
}

VARIATION(hole, a = 1, inside = 0) {
    real t = angle_of(y, x), d = power_of(t / PI + 1.0f, (real)(a)), r2 = x * x + y * y;
    return from_polar(weight * (inside != 0.0f ? d / (r2 + d) : sqrt(r2 + d)), t);
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

VARIATION(atan2_spirals, r_mult = 1.5, r_add = 1, xy2_mult = 1.125, xy2_add = 0.132, x_mult = 2, x_add = 0.25,
          yx_div = 1, yx_add = 0, yy_div = 1.25, yy_add = 0, sin_add = 0, y_mult = 1, r_power = 0.5, x2y2_power = 1) {
    real r2 = x * x + y * y, p = power_of(r2, (real)(x2y2_power)), r = power_of(r2, (real)(r_power));
    real u = x_mult * angle_of(r * r_mult + r_add, p * xy2_mult + xy2_add) + x_add;
    real v = sine_of(angle_of(y / yy_div + yy_add, x / yx_div + yx_add) + sin_add) * y_mult;
    return scaled(weight, x >= 0.0f ? PI - u : u - PI, v);
}

// Origin: Fractorium

VARIATION(blob2, mode = 0.5, n = 1, radius = 0, prescale = 1, postscale = 0.5, symmetry = 0, compensation = 0) {
    real r = vnorm(x, y), a = angle_of(y, x), d = sine_of(a * n) + symmetry;
    d = d / (1.0f + compensation * symmetry * (symmetry < 0.0f ? -1.0f : 1.0f));
    real side = d < 0.0f ? (real)(-1.0f) : (real)(1.0f), k = power_of(d * side, (real)(prescale)) * postscale;
    k = mode != 0.0f ? k * mode : k * side;
    Pair p = from_polar(radius + (r - radius) * k, a);
    mask inside = r < radius;
    return scaled(weight, inside ? x : p.x, inside ? y : p.y);
}
