// Maps of the radius and the angle: discs, rings, fans, spirals, wedges.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// A body returns the terms that are added to x and y. atan_xy(y, x) is the angle atan2(x, y), clockwise from +y, of
// flam3's early variations; angle_of(y, x) is atan2(y, x). circle(t) is (cos t, sin t), from_polar(r, t) is r circle(t),
// swapped() exchanges x and y.

// Origin: flam3

// Rotation by the squared radius.
VARIATION(swirl) {
    Pair c = circle(x * x + y * y);
    return scaled(weight, c.y * x - c.x * y, c.x * x + c.y * y);
}

// Doubles the angle and keeps the radius.
VARIATION(horseshoe) { return scaled(weight / (vnorm(x, y) + EPSILON), (x - y) * (x + y), 2.0f * x * y); }

// Angle and radius as coordinates.
VARIATION(polar) { return scaled(weight, atan_xy(y, x) * (1.0f / PI), vnorm(x, y) - 1.0f); }

// r sin(phi + r) and r cos(phi - r).
VARIATION(handkerchief) {
    real phi = atan_xy(y, x), r = vnorm(x, y);
    return scaled(weight * r, sine_of(phi + r), cosine_of(phi - r));
}

// r sin(r phi) and -r cos(r phi).
VARIATION(heart) {
    real r = vnorm(x, y);
    Pair c = circle(r * atan_xy(y, x));
    return scaled(weight * r, c.y, -c.x);
}

// The angle as a radius, and pi times the radius as an angle.
VARIATION(disc) { return swapped(from_polar(weight * (atan_xy(y, x) * (1.0f / PI)), PI * vnorm(x, y))); }

// The direction plus (sin r, -cos r), over the radius.
VARIATION(spiral) {
    real r = vnorm(x, y), safe = r + EPSILON;
    Pair c = circle(safe);
    return scaled(weight / safe, y / r + c.y, x / r - c.x);
}

// sin(phi) / r and r cos(phi).
VARIATION(hyperbolic) {
    real r = vnorm(x, y), safe = r + EPSILON;
    return scaled(weight, x / r / safe, y / r * safe);
}

// sin(phi) cos r and cos(phi) sin r.
VARIATION(diamond) {
    real r = vnorm(x, y);
    Pair c = circle(r);
    return scaled(weight, x / r * c.x, y / r * c.y);
}

// r (p^3 + q^3) and r (p^3 - q^3) for p = sin(phi + r), q = cos(phi - r).
VARIATION(ex) {
    real phi = atan_xy(y, x), r = vnorm(x, y);
    real s = sine_of(phi + r), c = cosine_of(phi - r);
    real m0 = r * (s * s * s), m1 = r * (c * c * c);
    return scaled(weight, m0 + m1, m0 - m1);
}

// The radius to the power sin(phi).
VARIATION(power) {
    real r = vnorm(x, y);
    return scaled(weight * power_of(r, x / r), y / r, x / r);
}

// Rings of width 2 d, each with the radii of the innermost one, blended with the plane by the coefficient c.
VARIATION(rings) {
    real r = vnorm(x, y);
    float d = AFFINE_C * AFFINE_C + EPSILON;
    real k = remainder_of(r + d, (real)(2.0f * d)) - d + r * (1.0f - d);
    return scaled(weight * k, y / r, x / r);
}

// Wedges of angle d, whose halves rotate by d / 2 in opposite directions.
VARIATION(fan) {
    float d = PI * (AFFINE_C * AFFINE_C + EPSILON);
    real phi = atan_xy(y, x);
    real over = remainder_of(phi + AFFINE_F, (real)(d));
    return from_polar(weight * vnorm(x, y), phi + (over > 0.5f * d ? (real)(-0.5f * d) : (real)(0.5f * d)));
}

// The radius times a wave of the angle, from `low` to `high`.
VARIATION(blob, low = 0, high = 1, waves = 1) {
    real k = weight * (low + (high - low) * (0.5f + 0.5f * sine_of(waves * atan_xy(y, x))));
    return scaled(k, x, y);
}

// fan with parameters in place of affine coefficients.
VARIATION(fan2, x = 0, y = 0) {
    float d = PI * (fan2_x * fan2_x + EPSILON);
    real phi = atan_xy(y, x);
    real t = phi + fan2_y - d * truncation((phi + fan2_y) / d);
    return swapped(from_polar(weight * vnorm(x, y), phi + (t > 0.5f * d ? (real)(-0.5f * d) : (real)(0.5f * d))));
}

// rings with a parameter in place of an affine coefficient.
VARIATION(rings2, val = 0) {
    real r = vnorm(x, y);
    float d = val * val + EPSILON;
    real k = r - 2.0f * d * truncation((r + d) / (2.0f * d)) + r * (1.0f - d);
    return scaled(weight * k, x / r, y / r);
}

// disc with a rotation and a twist.
VARIATION(disc2, rot = 0, twist = 0) {
    Pair t = circle(rot * PI * (x + y)), c = circle((real)(twist));
    float k = twist > TWO_PI ? 1.0f + twist - TWO_PI : twist < -TWO_PI ? 1.0f + twist + TWO_PI : 1.0f;
    return scaled(weight * (atan_xy(y, x) * (1.0f / PI)), t.y + k * (c.x - 1.0f), t.x + k * c.y);
}

// (x, y) after a disc of radius `weight` about (cx, -cy) has spun with a twist; points outside move away by `space`.
DEVICE Pair spun_disc(float weight, real x, real y, float space, float twist, float spin, float cx, float cy) {
    real u = x - cx, v = y + cy, r = vnorm(u, v), k = weight * (1.0f + space / r);
    Pair p = from_polar(weight * r, angle_of(v, u) + spin + twist * (weight - r));
    mask inside = r < weight;
    return pair((inside ? p.x : k * u) + cx, (inside ? p.y : k * v) - cy);
}

// spun_disc() of the point.
VARIATION(lazysusan, space = 0, twist = 0, spin = 0, x = 0, y = 0) {
    return spun_disc(weight, x, y, space, twist, spin, lazysusan_x, lazysusan_y);
}

// The angle and the logarithm of the radius, over pi.
VARIATION(polar2) { return scaled(weight / PI, atan_xy(y, x), 0.5f * logarithm_of(x * x + y * y)); }

// `count` wedges of angle `angle` are cut out and the rest is closed; `hole` adds to the radius.
VARIATION(wedge, angle = 0, hole = 0, count = 1, swirl = 0) {
    return wedge_of_radius(vnorm(x, y), x, y, weight, angle, hole, count, swirl);
}

// wedge after an inversion.
VARIATION(wedge_sph, angle = 0, hole = 0, count = 1, swirl = 0) {
    return wedge_of_radius(1.0f / (vnorm(x, y) + EPSILON), x, y, weight, angle, hole, count, swirl);
}

// Rotation by an angle that grows toward the circle of radius `weight`.
VARIATION(whorl, inside = 0, outside = 0) {
    real r = vnorm(x, y);
    return from_polar(weight * r, angle_of(y, x) + (r < weight ? (real)(inside) : (real)(outside)) / (weight - r));
}

// Origin: JWildfire

// blob, whose wave is also the height.
VARIATION_3D(blob3D, low = 0.3, high = 1.2, waves = 6) {
    real s = sine_of(waves * atan_xy(y, x)), k = weight * (low + (high - low) * (0.5f + 0.5f * s));
    return triple(k * x, k * y, k * s * vnorm(x, y));
}

// disc with a free factor in place of pi, and a height.
VARIATION_3D(disc3d, pi = 3.141592653589793) {
    real r = sqrt(x * x + y * y + 1e-30f), k = weight * atan_xy(y, x) / (pi + 1e-30f);
    return lifted(swapped(from_polar(k, pi * r)), k * r * cosine_of(z));
}

// The exponential of y as the radius, x as the angle: the inverse of polar2.
VARIATION(unpolar) { return swapped(from_polar(0.5f / PI * weight * exponential_of(y), x)); }

// idisc whose half of negative angles is not mirrored.
VARIATION(wdisc) {
    real a = PI / (vnorm(x, y) + 1.0f), r = angle_of(y, x) * (1.0f / PI);
    return from_polar(weight * r, r > 0.0f ? PI - a : a);
}

// The angle as a radius, and pi / (r + 1) as an angle.
VARIATION(idisc) { return from_polar(weight / PI * angle_of(y, x), PI / (vnorm(x, y) + 1.0f)); }

// polar, a random branch of a root of order n, and back: for an odd `parity` only the root.
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

// 1 + y as the radius, pi x as the angle: the inverse of polar.
VARIATION(invpolar) { return swapped(from_polar(weight * (1.0f + y), PI * x)); }

// disc with free factors.
VARIATION(disc3, a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1) {
    Pair s = circle(PI * sqrt(x * d * x * e + y * f * y * g));
    real k = weight * atan_xy(y, x) / PI * c * h;
    return scaled(k, a * s.y, b * s.x);
}

// Radii beyond cs_radius - cs_split move away by cs_split.
VARIATION(circlesplit, cs_radius = 1, cs_split = 0.5) {
    real r = vnorm(x, y), k = r < cs_radius - cs_split ? (real)(1.0f) : (r + cs_split) / r;
    return scaled(weight * k, x, y);
}

// The angle as a radius and 2 pi / (r + ashift) as an angle, in four terms.
VARIATION(fdisc, ashift = 1, rshift = 1, xshift = 0, yshift = 0, term1 = 1, term2 = 0, term3 = 0, term4 = 0) {
    real a = TWO_PI / (vnorm(x, y) + ashift), r = weight * (angle_of(y, x) * (1.0f / PI) + rshift) * 0.5f;
    real u = r * cosine_of(a + xshift), v = r * sine_of(a + yshift);
    return pair(term1 * u + term2 * x * u + term3 * x * r + term4 * x,
                term1 * v + term2 * y * v + term3 * y * r + term4 * y);
}

// x as the radius, and the squared radius as the angle.
VARIATION(layered_spiral, radius = 1) { return from_polar(weight * x * radius, x * x + y * y + 1e-9f); }

// x^2 as the angle, sin(y^2) / r^2 as the radius.
VARIATION(spiralwing) {
    real u = x * x, v = y * y;
    return from_polar(weight / (u + v + 1e-30f) * sine_of(v), u);
}

// Adds a sine of the angle and 1 to the squared radius.
VARIATION(cardioid, a = 1) {
    real t = angle_of(y, x);
    return from_polar(weight * sqrt(x * x + y * y + sine_of(a * t) + 1.0f), t);
}

// Rotation by the logarithm of the radius.
VARIATION(swirl3, shift = 0.5) {
    real r = vnorm(x, y);
    return from_polar(weight * r, angle_of(y, x) + shift * logarithm_of(r));
}

// One of n points of Vogel's model of a sunflower, radius sqrt(k) and angle k times the golden angle, plus the point.
VARIATION(vogel, n = 20, scale = 1) {
    real k = random_index(uniform(random), n) + 1.0f;
    Pair c = circle(k * 2.399963229728653f);
    return scaled(weight * (vnorm(x, y) + sqrt(k)), c.x + scale * x, c.y + scale * y);
}

// Scales by the fraction of a multiple of the distance from (x0, y0): rings like a Fresnel lens.
REPLACING(fresnel, x0 = 0, y0 = 0, ring = -2) {
    real k = wrap_unit(ring * vnorm(x - x0, y - y0));
    return scaled(weight * k, x, y);
}

// The image that a mirror in the form of a cylinder shows undistorted.
REPLACING(anamorphcyl, a = 1, b = 1.3, k = 3) { return from_polar(weight * a * (y + b), k * x); }

// The angle times p1, the radius to the power p2.
REPLACING(c_symmetry, p1 = 3, p2 = 3) {
    return from_polar(weight * power_of(vnorm(x, y), (real)(p2)), p1 * angle_of(y, x));
}

// A hole at the origin whose radius depends on the angle.
VARIATION(hole, a = 1, inside = 0) {
    real t = angle_of(y, x), d = power_of(t / PI + 1.0f, (real)(a)), r2 = x * x + y * y;
    return from_polar(weight * (inside != 0.0f ? d / (r2 + d) : sqrt(r2 + d)), t);
}

// The point at radius r and the angle a, turned by the ring of the spiral t: even and odd rings take turns.
DEVICE Pair turned_rings(real r, real a, real t, float even, float odd, float size) {
    real u = remainder_of(magnitude(t < 0.0f ? t - 0.5f * size : t), (real)(size));
    return from_polar(r, a + (u < 0.5f * size ? (real)(even) : (real)(odd)));
}

// Rings of the logarithm of the radius turn by `even` and by `odd`, one after the other.
VARIATION(target, even = 3.2452232083054136, odd = 3.7073772541315537, size = 1.0395111651700295) {
    real r = vnorm(x, y);
    return turned_rings(r, angle_of(y, x), logarithm_of(r), even, odd, size);
}

// Spiral arms instead of rings turn by half a turn.
VARIATION(target_sp, twist = 0, n_of_sp = 1, size = 3.036394269961722, tightness = 0.6471312300111844) {
    real a = angle_of(y, x), r = vnorm(x, y), t = tightness * logarithm_of(r) + n_of_sp * (a + PI) * (1.0f / PI);
    return turned_rings(r, a + PI * twist, t, 0.0f, -PI, size);
}

// Divides the logarithm of the radius (or the radius) by `power`, and splits the halves x < 0 and x >= 0.
VARIATION(pTransform, rotate = 0.3, power = 2, move = 0.4, split = 0, use_log = 1) {
    real r = (use_log != 0.0f ? logarithm_of(vnorm(x, y)) : vnorm(x, y)) / power + move;
    r = x >= 0.0f ? r + split : r - split;
    return from_polar(weight * (use_log != 0.0f ? exponential_of(r) : r), angle_of(y, x) + rotate);
}

// Arc tangents of powers of the radius along x, and a sine of the angle along y.
VARIATION(atan2_spirals, r_mult = 1.5, r_add = 1, xy2_mult = 1.125, xy2_add = 0.132, x_mult = 2, x_add = 0.25,
          yx_div = 1, yx_add = 0, yy_div = 1.25, yy_add = 0, sin_add = 0, y_mult = 1, r_power = 0.5, x2y2_power = 1) {
    real r2 = x * x + y * y, p = power_of(r2, (real)(x2y2_power)), r = power_of(r2, (real)(r_power));
    real u = x_mult * angle_of(r * r_mult + r_add, p * xy2_mult + xy2_add) + x_add;
    real v = sine_of(angle_of(y / yy_div + yy_add, x / yx_div + yx_add) + sin_add) * y_mult;
    return scaled(weight, x >= 0.0f ? PI - u : u - PI, v);
}

// `hole` with waves of the angle, chosen by `shape`, added to the squared radius.
VARIATION(hole2, a = 1, b = 2, c = 1, d = 1, inside = 0, shape = 0) {
    real t = angle_of(y, x) * d, delta = power_of(t * (1.0f / PI) + 1.0f, (real)(a)) * c, r2 = x * x + y * y;
    real wave = sine_of(b * t);
    real more = shape == 2.0f   ? wave
                : shape == 3.0f ? sine_of(t)
                : shape == 4.0f ? t * t - 2.0f * delta + 1.0f
                : shape == 5.0f ? magnitude(tangent_of(t))
                : shape == 6.0f ? r2 * wave
                : shape == 7.0f ? magnitude(sine_of(0.5f * b * t))
                : shape == 8.0f ? sine_of(PI * wave)
                : shape == 9.0f ? 0.5f * (wave + sine_of(2.0f * b * t + 0.5f * PI))
                                : zero_real();
    real r = shape == 0.0f ? sqrt(r2) + delta : sqrt(r2 + more + delta);
    return from_polar(inside != 0.0f ? weight / r : weight * r, t);
}

// Origin: Fractorium

// Beyond `radius`, the distance to it times a power of a wave of the angle.
VARIATION(blob2, mode = 0.5, n = 1, radius = 0, prescale = 1, postscale = 0.5, symmetry = 0, compensation = 0) {
    real r = vnorm(x, y), a = angle_of(y, x), d = sine_of(a * n) + symmetry;
    d = d / (1.0f + compensation * symmetry * (symmetry < 0.0f ? -1.0f : 1.0f));
    real side = d < 0.0f ? (real)(-1.0f) : (real)(1.0f), k = power_of(d * side, (real)(prescale)) * postscale;
    k = mode != 0.0f ? k * mode : k * side;
    Pair p = from_polar(radius + (r - radius) * k, a);
    mask inside = r < radius;
    return scaled(weight, inside ? x : p.x, inside ? y : p.y);
}

// The ring from `inner` to `outer`; other points move to its edge, or with `zero` to the origin.
VARIATION(circlecrop2, inner = 0.5, outer = 1, zero = 1) {
    float low = fmin(inner, outer), high = fmax(inner, outer), edge = zero != 0.0f ? 0.0f : high * weight;
    real r = vnorm(x, y);
    mask kept = r >= low && r <= high;
    return pair(kept ? weight * x : edge * y / r, kept ? weight * y : edge * x / r);
}

// The radius times waves of the angle: petals.
VARIATION(flowerdb, petals = 6, petal_split = 0, petal_spread = 1) {
    real a = angle_of(y, x), r = weight * vnorm(x, y);
    return from_polar(r * magnitude((petal_spread + sine_of(petals * a)) * cosine_of(petals * petal_split * a)), a);
}

// A drop of radius r at (x, y) displaces the ink around it, so that areas are kept.
VARIATION(inkdrop, r = 0.5 [0, 1e30], x = 0, y = 0) {
    real u = x - inkdrop_x, v = y - inkdrop_y, d = vnorm(u, v), more = sqrt(d * d + r * r) - d;
    real k = d > 0.0f ? more / d : zero_real();
    return scaled(weight, x + u * k, y + v * k);
}

// swirl3 between the radii `min` and `max`; beyond them the rotation is constant.
VARIATION(swirl3r, shift = 0.5, min = 0.5 [0, 1e30], max = 1 [0, 1e30]) {
    float low = fmin(min, max), high = fmax(min, max);
    real r = vnorm(x, y), inside = clamped(r, (real)(low), (real)(high));
    real turn = inside > 0.0f ? logarithm_of(inside) * shift : zero_real();
    return from_polar(weight * r, angle_of(y, x) + turn);
}

// target, which scales the radius by the weight.
VARIATION(target0, even = 0, odd = 0, size = 0 [0, 1e30]) {
    real r = vnorm(x, y);
    return turned_rings(weight * r, angle_of(y, x), logarithm_of(r), even, odd, size);
}

// target with spirals, by the angle, in place of rings.
VARIATION(target2, even = 0, odd = 0, size = 1 [1e-10, 1e30], thightness = 0) {
    real a = angle_of(y, x), r = vnorm(x, y), t = thightness * logarithm_of(r) + (a + PI) * (1.0f / PI);
    return turned_rings(weight * r, a, t, even, odd, size);
}

// The point at this angle and at the radius r, moved from the circle of that radius onto a polygon of n sides.
DEVICE Pair on_polygon(float weight, real r, real angle, float n) {
    float alpha = TWO_PI / n;
    real d = (angle + PI) / alpha, whole_part = floor_of(d), f = d - whole_part;
    mask over = f > 0.5f;
    real side = arctangent((over ? 1.0f - f : f) * (2.0f * tangent_of((real)(0.5f * alpha))));
    real a = (over ? whole_part + 1.0f : whole_part) * alpha + (over ? -side : side) - PI;
    return from_polar(weight * r / cosine_of(side), a);
}

// The radius becomes 1 / (r^2 + 1), on a polygon.
VARIATION(scry2, power = 4) {
    real r2 = x * x + y * y;
    return on_polygon(weight, 1.0f / (r2 + 1.0f), angle_of(y, x), power);
}

// loonie in a polygon, a star or between polygon and circle: r is the greatest distance from the middle toward any of
// the sides, which `star` tilts, mixed with the radius by `circle`.
VARIATION(loonie2, sides = 4 [1, 50], star = 0, circle = 0, power = 4) {
    Pair turn = circle((real)(TWO_PI / sides)), s = circle((real)(-0.5f * PI * star)),
         c = circle((real)(0.5f * PI * loonie2_circle));
    real u = x, v = y, r = x * s.x + magnitude(y) * s.y;
    for (int k = 1; k < (int)sides; k++) {
        real w = u * turn.x - v * turn.y;
        v = u * turn.y + v * turn.x;
        u = w;
        r = greatest(r, u * s.x + magnitude(v) * s.y);
    }
    r = r * c.x + vnorm(x, y) * c.y;
    r = (int)sides > 2 ? r * r : magnitude(r) * r;
    float w2 = weight * weight;
    real inside = sqrt(magnitude(w2 / r - 1.0f)), below = 1.0f / sqrt(magnitude(w2 / r) - 1.0f);
    return scaled((r > 0.0f && r < w2) ? weight * inside : r < 0.0f ? weight * below : (real)(weight), x, y);
}

// A different map in each quadrant: an inversion, loonie, lazysusan and the identity.
VARIATION(fourth, spin = 3.141592653589793, space = 0, twist = 0, x = 0, y = 0) {
    real r2 = x * x + y * y, loonie = sqrt(weight * weight / r2 - 1.0f);
    Pair spun = spun_disc(weight, x, y, space, twist, spin, fourth_x, fourth_y);
    mask right = x > 0.0f, up = y > 0.0f, down = y < 0.0f, left = x < 0.0f && y > 0.0f;
    real f = right && up ? weight / r2 : right && down && r2 < weight * weight ? weight * loonie : (real)(weight);
    return pair(left ? spun.x : f * x, left ? spun.y : f * y);
}

// lazysusan in a polygon of n sides, or with n = 2 in a strip. `edge`: the polygon's radius at the point's angle, by the
// law of sines with half the angle of a corner, `vertex`; `edge2`: at the turned point's.
VARIATION(lazyjess, n = 4 [2, 1e6], spin = 3.141592653589793, space = 0, corner = 1) {
    float vertex = PI * (n - 2.0f) / (2.0f * n), slice = TWO_PI / n;
    real room = weight * 1.41421356f * sine_of((real)(vertex));
    real r = vnorm(x, y), a = angle_of(y, x), far = weight * (1.0f + space / r);
    real edge = room / sine_of(PI - remainder_of(a + (TWO_PI + 0.5f * slice), (real)(slice)) - vertex);
    Pair p = from_polar(weight * r, a + spin);
    real edge2 = room / sine_of(PI - remainder_of(a + (spin + TWO_PI + 0.5f * slice), (real)(slice)) - vertex);
    Pair q = from_polar(weight * vnorm(p.x, p.y), angle_of(p.y, p.x) - spin + (corner - 1.0f) * slice);
    mask inside = n == 2.0f ? magnitude(x) < weight : r < edge;
    mask stays = n == 2.0f ? magnitude(p.x) < weight : vnorm(p.x, p.y) < edge2;
    return pair(inside ? (stays ? p.x : q.x) : far * x, inside ? (stays ? p.y : -q.y) : far * y);
}

// The sum of the four curves of the variations w, x and z below, as a radius at the angle a: hyperbolic polygon, star,
// lituus and superformula, each times its weight (`hypergon`, `star`, `lituus`, `super`).
DEVICE real curves_at(real a, float hypergon, float hypergon_n, float hypergon_r, float star, float star_n,
                      float star_slope, float lituus, float lituus_a, float super, float super_m, float super_n1,
                      float super_n2, float super_n3) {
    float d2 = 1.0f + hypergon_r * hypergon_r, d = sqrt(d2);
    real slope = tangent_of((real)(fabs(star_slope - 0.5f * PI) < 1e-6f ? star_slope - 0.05f : star_slope));
    real sum = zero_real(), b = magnitude(a);
    real t = square(tangent_of(remainder_of(b, (real)(TWO_PI / hypergon_n)) - PI / hypergon_n)) + 1.0f;
    if (hypergon != 0.0f) sum = sum + (t >= d2 ? (real)(hypergon) : hypergon * (d - root_safe(d2 - t)) / sqrt(t));
    real u = tangent_of(magnitude(remainder_of(b, (real)(TWO_PI / star_n)) - PI / star_n));
    if (star != 0.0f) sum = sum + star * sqrt(slope * slope * (1.0f + u * u) / square(u + slope));
    if (lituus != 0.0f) sum = sum + lituus * power_of(magnitude(a * (1.0f / PI) + 1.0f), (real)(-lituus_a));
    Pair c = circle(0.25f * super_m * a);
    real p = power_of(magnitude(c.x), (real)(super_n2)) + power_of(magnitude(c.y), (real)(super_n3));
    return super != 0.0f ? sum + super * power_of(p, (real)(-1.0f / super_n1)) : sum;
}

// Rotates points inside of the curve by `angle`, and fits their radius to the curve there.
VARIATION(w, angle = 0, hypergon = 0, hypergon_n = 4 [3, 1e6], hypergon_r = 1, star = 0, star_n = 5 [3, 1e6],
          star_slope = 2 [1e-10, 1.5707963], lituus = 0, lituus_a = 1, super = 0, super_m = 1, super_n1 = 1,
          super_n2 = 1, super_n3 = 1) {
    real a = angle_of(y, x), b = a + angle, r = vnorm(x, y);
    b = b < -PI ? b + TWO_PI : b;
    b = b > PI ? b - TWO_PI : b;
    real here = curves_at(a, hypergon, hypergon_n, hypergon_r, star, star_n, star_slope, lituus, lituus_a, super,
                          super_m, super_n1, super_n2, super_n3);
    real there = curves_at(b, hypergon, hypergon_n, hypergon_r, star, star_n, star_slope, lituus, lituus_a, super,
                           super_m, super_n1, super_n2, super_n3);
    Pair p = from_polar(r * there / here, b);
    return scaled(weight, r <= here ? p.x : x, r <= here ? p.y : y);
}

// Adds the curve's squared radius to the squared radius.
VARIATION(x, hypergon = 0, hypergon_n = 4 [3, 1e6], hypergon_r = 1, star = 0, star_n = 5 [3, 1e6],
          star_slope = 2 [1e-10, 1.5707963], lituus = 0, lituus_a = 1, super = 0, super_m = 1, super_n1 = 1,
          super_n2 = 1, super_n3 = 1) {
    real a = angle_of(y, x);
    real here = curves_at(a, hypergon, hypergon_n, hypergon_r, star, star_n, star_slope, lituus, lituus_a, super,
                          super_m, super_n1, super_n2, super_n3);
    return from_polar(weight * sqrt(x * x + y * y + here * here), a);
}

// Adds the curve's radius to the radius.
VARIATION(z, hypergon = 0, hypergon_n = 4 [3, 1e6], hypergon_r = 1, star = 0, star_n = 5 [3, 1e6],
          star_slope = 2 [1e-10, 1.5707963], lituus = 0, lituus_a = 1, super = 0, super_m = 1, super_n1 = 1,
          super_n2 = 1, super_n3 = 1) {
    real a = angle_of(y, x);
    real here = curves_at(a, hypergon, hypergon_n, hypergon_r, star, star_n, star_slope, lituus, lituus_a, super,
                          super_m, super_n1, super_n2, super_n3);
    return from_polar(weight * (vnorm(x, y) + here), a);
}

// Origin: JWildfire

// rings2 with a term that grows by the ring's number.
VARIATION(rings3, val = 0.01, n = 0) {
    float d = val * val + 1e-8f, c = 2.0f * (d - d * d);
    real r = vnorm(x, y), k = floor_of(0.5f * truncation(r / d + 1.0f));
    real s = r == 0.0f ? zero_real() : weight * (2.0f - d * (2.0f * k / r + 1.0f) - n * (k * c - 1.0f) / r);
    return scaled(s, x, y);
}

// The radius to the power N.
VARIATION(bulge, N = 2) {
    real r = vnorm(x, y);
    return scaled(weight * power_of(r, (real)(N)) / r, x, y);
}
