// Maps between discs, squares, polygons, stars and hearts.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// Divides by a power of the radius and multiplies by the distance to the border of a polygon.
VARIATION(ngon, sides = 5, power = 3, circle = 1, corners = 2) {
    float b = TWO_PI / sides;
    real theta = angle_of(y, x), p = theta - b * floor_of(theta / b);
    p = p > 0.5f * b ? p - b : p;
    real k = corners * (1.0f / (cosine_of(p) + EPSILON) - 1.0f) + ngon_circle;
    return scaled(weight * k / (power_of(x * x + y * y, (real)(0.5f * power)) + EPSILON), x, y);
}

// J. Gielis' superformula.
VARIATION(super_shape, rnd = 0, m = 0, n1 = 1, n2 = 1, n3 = 1, holes = 0) {
    real r = vnorm(x, y);
    Pair c = circle(0.25f * m * angle_of(y, x) + 0.25f * PI);
    real sum = power_of(magnitude(c.x), (real)(n2)) + power_of(magnitude(c.y), (real)(n3));
    real k = (rnd * uniform(random) + (1.0f - rnd) * r - holes) * power_of(sum, (real)(-1.0f / n1)) / r;
    return scaled(weight * k, x, y);
}

// Two wings: the direction of (x, 2 y) times a root of |x y|.
VARIATION(butterfly) {
    real y2 = 2.0f * y;
    return scaled(weight * 1.3029400317411197909f * sqrt(magnitude(x * y) / (EPSILON + x * x + y2 * y2)), x, y2);
}

// Origin: JWildfire

// A square to a disc, by perimeters: rings of the maximum norm become circles.
VARIATION(circlize2, hole = 0) {
    Pair p = square_to_disc(x, y);
    return from_polar(weight * (p.x + hole), p.y);
}

// Moves each of `sides` wedges outwards by r.
VARIATION(spligon, sides = 3, r = 1, i = 1) {
    float turns = sides / TWO_PI;
    Pair c = circle(floor_of(angle_of(y, x) * turns) / turns - PI * i / (2.0f * sides));
    return scaled(weight, x + r * c.x, y + r * c.y);
}

// A disc to a square: p is the angle in eighths of a turn, and (u, v) runs around the perimeter.
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

// An ellipse by an inversion, rotated by pi/4 and more, with the left half mirrored: a heart.
DEVICE Pair heart_map(real x, real y, float angle, float ratio) {
    real k = x * x + y * y + 4.0f, u = 4.0f / k * x, v = (6.0f + 2.0f * ratio) / k * y;
    Pair c = circle((real)(0.25f * PI + 0.125f * PI * angle));
    real hx = c.x * u - c.y * v, hy = c.y * u + c.x * v;
    return pair(hx, hx > 0.0f ? hy : -hy);
}

// heart_map() of the point.
VARIATION(xheart, angle = 0, ratio = 0) { return scaled_pair(weight, heart_map(x, y, angle, ratio)); }

// heart_map() of a random point.
VARIATION(xheart_blur_wf, angle = 0, ratio = 0) {
    real u = 2.0f - 4.0f * uniform(random), v = 2.0f - 4.0f * uniform(random);
    return scaled_pair(weight, heart_map(u, v, angle, ratio));
}

// The sum of four polar curves, a hypergon, a star, a lituus and a superformula, each with its weight, squared over r:
// curves_at() of polar.h as JWildfire computes it.
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

// squircular with x and y exchanged, for a weight of 1.
VARIATION(invsquircular) {
    real r = x * x + y * y, root = sqrt(r * (weight * weight * r - 4.0f * x * x * y * y) / weight);
    real k = sqrt(r - root) * 0.70710678118654752f;
    return pair(k / x, k / y);
}

// A disc to a square: C. Fong's FG-squircular map.
VARIATION(squircular) {
    // 1 + (x / y)^2 - ... without cancellation
    real r = x * x + y * y, s = 4.0f / (weight * weight) * x * x * r, t = sqrt(r * r - s * y * y);
    real k = sqrt(0.5f * (weight > 0.0f ? s / (r + t) : (r + t) / (y * y)));
    return pair(x > 0.0f ? k : -k, y / x * k);
}

// Points inside of the diamond |x| + |y| = 1 move out, which leaves a square hole.
VARIATION(holesq) {
    real u = weight * x, v = weight * y, au = magnitude(u), av = magnitude(v);
    mask outside = au + av > 1.0f, wide = au > av;
    real s = u < 0.0f ? (u + av - 1.0f) * 0.5f : (u - av + 1.0f) * 0.5f;
    real t = v < 0.0f ? (v + au - 1.0f) * 0.5f : (v - au + 1.0f) * 0.5f;
    return pair(outside || !wide ? u : s, outside || wide ? v : t);
}

// A warp by the terms of the devil's curve.
VARIATION(devil_warp, a = 2, b = 1, effect = 1, warp = 0.5, rmin = -0.24, rmax = 100) {
    real k = 1.0f / (x * x + y * y);
    real r = power_of(x * x + k * b * y * y, (real)(warp)) - power_of(y * y + k * a * x * x, (real)(warp));
    r = 1.0f + effect * clamped(r, (real)(rmin), (real)(rmax));
    return pair(x * r, y * r);
}

// circlize2 with the radius times 4 / pi, and a hole that the weight does not scale.
VARIATION(circlize, hole = 0.4) {
    Pair p = square_to_disc(x, y);
    return from_polar(weight * (4.0f / PI) * p.x + hole, p.y);
}

// The angles of elliptic coordinates along both axes, times one over a sum of cosines: blocks.
VARIATION(blocky, x = 1, y = 1, mp = 4) {
    real r = 1.0f / ((cosine_of(x) + cosine_of(y)) / mp + 1.0f), t = x * x + y * y + 1.0f;
    real u = x / (0.5f * (sqrt(t + 2.0f * x) + root_safe(t - 2.0f * x)));
    real v = y / (0.5f * (sqrt(t + 2.0f * y) + root_safe(t - 2.0f * y)));
    return scaled(weight * weight * (2.0f / PI) * r, arcsine(u) * blocky_x, arcsine(v) * blocky_y);
}

// butterfly with a height.
VARIATION_3D(butterfly3D) {
    real v = 2.0f * y, k = weight * 1.3029400317411197909f * sqrt(magnitude(x * y) / (1e-30f + x * x + v * v));
    return triple(k * x, k * v, k * magnitude(v) * vnorm(x, y) * 0.25f);
}

// A random branch of a root on squares: p is the position along the perimeter of the square of half side s.
VARIATION(squish, power = 2) {
    real ax = magnitude(x), ay = magnitude(y), s = ax > ay ? ax : ay, turn = floor_of(power * uniform(random));
    real p = ax > ay ? (x > 0.0f ? y : 4.0f * s - y) : (y > 0.0f ? 2.0f * s - x : 6.0f * s + x);
    p = (p + 8.0f * s * turn) / power;
    real u = p <= s ? s : p <= 3.0f * s ? 2.0f * s - p : p <= 5.0f * s ? -s : p <= 7.0f * s ? p - 6.0f * s : s;
    real v = p <= s ? p : p <= 3.0f * s ? s : p <= 5.0f * s ? 4.0f * s - p : p <= 7.0f * s ? -s : p - 8.0f * s;
    return scaled(weight, u, v);
}

// Maps the points of the unit circle's asteroid, and 35 % of the circle's other points; keeps the rest.
VARIATION(asteria, alpha = 0) {
    real u = weight * x, v = weight * y, r = u * u + v * v;
    real far = sqrt(square(magnitude(u) - 1.0f) + square(magnitude(v) - 1.0f)), pick = uniform(random);
    mask in1 = r < 1.0f, in2 = far < 1.0f, keeps = in1 && in2 ? pick > 0.35f : !in1;
    Pair c = circle((real)(PI * alpha));
    real a = u * c.x - v * c.y, b = u * c.y + v * c.x;
    real n = a / sqrt(1.0f - b * b) * (1.0f - sqrt(1.0f - square(1.0f - magnitude(b))));
    return pair(keeps ? u : n * c.x + b * c.y, keeps ? v : b * c.x - n * c.y);
}

// lazysusan on squares: a square of half side `weight` spins, p along its perimeter; outside, `space` moves points
// away.
VARIATION(lazyTravis, spin_in = 1, spin_out = 0.5, space = 1.5707963267948966) {
    real ax = magnitude(x), ay = magnitude(y), s = greatest(ax, ay);
    mask outside = ax > weight || ay > weight;
    real p = ax > ay ? (x > 0.0f ? s + y : 5.0f * s - y) : (y > 0.0f ? 3.0f * s - x : 7.0f * s + x);
    p = remainder_of(p + s * (outside ? (real)(4.0f * spin_out) : (real)(4.0f * spin_in)), 8.0f * s);
    real gap = outside ? (real)(space) : zero_real(), k = 1.0f + gap / s;
    real u = p <= 2.0f * s   ? s + gap
             : p <= 4.0f * s ? (3.0f * s - p) * k
             : p <= 6.0f * s ? -s - gap
                             : (p - 7.0f * s) * k;
    real v = p <= 2.0f * s ? (p - s) * k : p <= 4.0f * s ? s + gap : p <= 6.0f * s ? (5.0f * s - p) * k : -s - gap;
    return scaled(weight, u, v);
}

// The unit disc to one of the two halves of yin and yang.
VARIATION(yin_yang, radius = 0.5, ang1 = 0, ang2 = 0, dual_t = 1 [0, 1], outside = 0 [0, 1]) {
    mask second = uniform(random) > 0.5f && dual_t == 1.0f, inside = x * x + y * y < 1.0f;
    Pair c = circle(second ? (real)(PI * ang2) : (real)(PI * ang1));
    real side = second ? (real)(-1.0f) : (real)(1.0f), r = second ? (real)(1.0f - radius) : (real)(radius);
    real u = x * c.x - y * c.y, v = x * c.y + y * c.x, t = sqrt(1.0f - v * v), t1 = 2.0f * t - 1.0f;
    real a = 0.5f * (1.0f - u / t), k = a * r + 1.0f - a;
    real p = v > 0.0f ? t1 * k + a * (r - 1.0f) : u * (1.0f - r) + r;
    real q = v > 0.0f ? sqrt(1.0f - t1 * t1) * k : v * (1.0f - r);
    real kept = outside == 1.0f ? (real)(weight) : zero_real();
    return pair(inside ? weight * p * side : kept * x, inside ? weight * q * side : kept * y);
}

// A circle to a polygon of n sides, turned by `rotation` degrees, or with `reverse` back, blended with the point by the
// weight. A file's prepost_circlize is both its inverse as pre_ and this variation as post_.
VARIATION(prepost_circlize, n = 4 [3, 50], rotation = 45, reverse = 0 [0, 1]) {
    real angle = angle_of(y, x), r = vnorm(x, y), t = angle - rotation * 0.0174532925f;
    real wedge = floor_of(n * t / TWO_PI), factor = cosine_of(t - PI / n * (2.0f * wedge + 1.0f));
    factor = cosine_of((real)(PI / n)) / factor;
    real other = reverse == 0.0f ? r * factor : r / factor;
    return from_polar((1.0f - weight) * r + weight * other, angle);
}

// Origin: Fractorium

// A disc to a polygon of `power` sides, whose corners are rounded by `roundstr` over `roundwidth`.
VARIATION(smartshape, power = 4 [2, 1e6], roundstr = 0, roundwidth = 1, distortion = 1, compensation = 0 [0, 1]) {
    float wedge = TWO_PI / power;
    Pair c = circle((real)(0.5f * wedge));
    real a = (angle_of(y, x) + PI) / wedge, low = floor_of(a), t = a - low;
    mask upper = t > 0.5f;
    real s = upper ? 1.0f - t : t, corner = upper ? low + 1.0f : low;
    if (compensation > 0.0f && distortion >= 1.0f) s = arctangent(s * 2.0f * c.y / c.x) / wedge;
    real k = (real)(1.0f);
    if (distortion != 0.0f) {
        k = 1.0f / cosine_of(s * wedge);
        if (roundstr != 0.0f) {
            real wide = roundwidth != 1.0f ? power_of(2.0f * s, (real)(roundwidth)) : 2.0f * s;
            wide = wide * (2.0f * roundstr / power) / c.y;
            k = magnitude((1.0f - wide) * k + wide);
        }
    }
    if (distortion != 1.0f) k = power_of(k, (real)(distortion));
    return from_polar(weight * k * vnorm(x, y), (corner + (upper ? -s : s)) * wedge - PI);
}
