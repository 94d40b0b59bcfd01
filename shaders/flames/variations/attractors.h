// Chaotic maps with an attractor, orbits of such maps, and iterated function systems.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// A REPLACING function's result replaces the sum of the terms before it. mcarpet_x is the parameter x of mcarpet, where x
// is the point's. An item that ends in a semicolon has the body of the item before it.

// Origin: flam3

// P. de Jong's attractor.
VARIATION(pdj, a = 0, b = 0, c = 0, d = 0) {
    return scaled(weight, sine_of(a * y) - cosine_of(b * x), sine_of(c * x) - cosine_of(d * y));
}

// Origin: JWildfire

// C. Pickover's Clifford attractor.
VARIATION(clifford_js, a = -1.4, b = 1.6, c = 1, d = 0.7) {
    return scaled(weight, sine_of(a * y) + c * cosine_of(a * x), sine_of(b * x) + d * cosine_of(b * y));
}

// J. Svensson's attractor.
REPLACING(svensson_js, a = 1.4, b = 1.56, c = 1.4, d = -6.56) {
    return scaled(weight, d * sine_of(a * x) - sine_of(b * y), c * cosine_of(a * x) + cosine_of(b * y));
}

// M. Henon's map.
VARIATION(henon, a = 0.5, b = 1, c = 1) { return scaled(weight, c - a * x * x + y, b * x); }

// R. Lozi's map: Henon's with |x| in place of x^2.
VARIATION(lozi, a = 0.5, b = 1, c = 1) { return scaled(weight, c - a * magnitude(x) + y, b * x); }

// One of m similar copies, moved around the unit circle.
VARIATION(woggle_js, m = 2) {
    float r = sqrt(1.25f) * sqrt(m);
    real n = random_index(uniform(random), m), k = 1.0f / (sqrt(3.0f) * vnorm(x, y));
    Pair c = circle(TWO_PI / m * n);
    real s = is_odd(n) ? (real)(1.0f / r) : (real)(-1.0f / r), t = -k / r;
    return scaled(weight, s * x + k * y / r + c.x, t * x + s * y + c.y);
}

// A step of length h of E. Lorenz' differential equations.
VARIATION_3D(lorenz_js, a = 10, b = 28, c = 1.66, h = 0.00001, centerx = 0, centery = 0, scale = 1000) {
    real u = weight * (x + h * a * (y - x)), v = weight * (y + h * (x * (b - z) - y));
    real k = 1.0f / (scale == 0.0f ? 1e-5f : scale);
    *color = fraction_of(magnitude(k * (square(u + centerx) + square(v + centery))));
    return triple(u, v, weight * (z + h * (x * y - c * z)));
}

// The weight times one of three images by two random numbers, so the probabilities are 0.333, 0.444 and 0.223.
DEVICE Pair one_of_three(float weight, Random *random, Pair a, Pair b, Pair c) {
    real u = uniform(random), v = uniform(random);
    return scaled_pair(weight, choose2(u < 0.333f, a, choose2(v < 0.666f, b, c)));
}

// One of three half-sized copies.
VARIATION(hadamard_js) {
    return one_of_three(weight, random, pair(0.5f * x, 0.5f * y), pair(0.5f * y, -0.5f * x - 0.5f),
                        pair(-0.5f * y - 0.5f, 0.5f * x));
}

// One of three maps: two shrink and rotate, one exchanges x and y.
VARIATION(threepoint_js) {
    Pair first = pair(0.5f * (x - y) + 0.5f, 0.5f - 0.5f * (x + y));
    return one_of_three(weight, random, first, pair(y, x), pair(0.5f - 0.5f * y, 0.5f - 0.5f * x));
}

// One of three maps: halving, or projective maps.
VARIATION(invtree_js) {
    real u = 1.0f / (x + 1.0f), v = 1.0f / (y + 1.0f);
    return one_of_three(weight, random, pair(0.5f * x, 0.5f * y), pair(u, y / (y + 1.0f)), pair(x / (x + 1.0f), v));
}

// bubble with a parabola added.
VARIATION(mcarpet, x = 1, y = 0.75, twist = 0.5, tilt = -0.25) {
    real k = 1.0f / (0.25f * (x * x + y * y) + 1.0f);
    return scaled(weight, k * x * mcarpet_x + 1.0f - twist * x * x + y, k * y * mcarpet_y + tilt * x);
}

// P. de Jong's attractor with a third coordinate.
VARIATION_3D(pdj3D, a = 1, b = 2, c = 3, d = 4, e = 2, f = 0, g = 2, h = 0) {
    real u = sine_of(a * y) - cosine_of(b * x), v = sine_of(c * x) - cosine_of(d * y);
    real w = weight * (sine_of(e * y) - cosine_of(f * z)) * cosine_of(g * x) + sine_of(h * z);
    return triple(weight * u, weight * v, w);
}

// A third of the size, at a random corner of a polygon of m sides or at the middle of a side.
VARIATION(siercarpet_js, m = 3) {
    real l = 1.0f + random_index(uniform(random), 2.0f * m);
    mask odd = is_odd(l);
    real i = odd ? 0.5f * (l + 1.0f) : 0.5f * l;
    Pair a = circle(TWO_PI / m * i), b = circle(TWO_PI / m * (i - 1.0f));
    real u = odd ? a.x : 0.5f * (a.x + b.x), v = odd ? a.y : 0.5f * (a.y + b.y);
    return scaled(weight, x / 3.0f + (u - v) * 0.70710678118654752f, y / 3.0f + (u + v) * 0.70710678118654752f);
}

// Half of the size at a corner of a polygon of m sides, or a rotation with a parabola.
VARIATION(sattractor_js, m = 10) {
    Pair c = circle(TWO_PI / m * (random_index(uniform(random), m) + 1.0f));
    mask first = uniform(random) < 0.5f;
    real u = first ? 0.5f * x + c.x : x * c.x + y * c.y + x * x * c.y;
    real v = first ? 0.5f * y + c.y : y * c.x - x * c.y + x * x * c.x;
    return scaled(0.5f * weight, u, v);
}

// The circles of Apollonius' gasket: one of three Moebius maps.
VARIATION(apollony) {
    float r = 1.7320508075688772f;
    real u = 1.0f + r - x, k = 1.0f / (u * u + y * y), a = 3.0f * u * k - (1.0f + r) / (2.0f + r), b = 3.0f * y * k;
    real n = 1.0f / (a * a + b * b), fx = a * n, fy = -b * n, pick = random_index(uniform(random), 4.0f);
    mask first = pick == 0.0f || pick == 3.0f, second = pick == 1.0f;
    real px = second ? -0.5f * fx - 0.5f * r * fy : -0.5f * fx + 0.5f * r * fy;
    real py = second ? 0.5f * r * fx - 0.5f * fy : -0.5f * r * fx - 0.5f * fy;
    return scaled(weight, first ? a : px, first ? b : py);
}

// A quadratic map of the plane.
VARIATION(q_ode, q_ode01 = 0, q_ode02 = 1, q_ode03 = 0.9523995871498903, q_ode04 = -0.31231887423801696,
          q_ode05 = -0.7629388627928184, q_ode06 = -0.28208570704629055, q_ode07 = 0, q_ode08 = 1,
          q_ode09 = -0.10781236208010192, q_ode10 = -0.2946873091267135, q_ode11 = 0.8267127787188062,
          q_ode12 = -0.8889241425519017) {
    real u = q_ode01 + weight * q_ode02 * x + q_ode03 * x * x + q_ode04 * x * y + q_ode05 * y + q_ode06 * y * y;
    return pair(u, q_ode07 + q_ode08 * x + q_ode09 * x * x + q_ode10 * x * y + weight * q_ode11 * y + q_ode12 * y * y);
}

// Half of the size about one of four points: the origin, or the corners of a triangle.
VARIATION(lace_js) {
    real pick = uniform(random), half_root = (real)(0.86602540378443865f), r = 0.5f * vnorm(x, y);
    mask first = pick > 0.75f, last = pick <= 0.25f;
    real side = pick > 0.5f ? half_root : -half_root, cx = first ? (real)(1.0f) : last ? zero_real() : (real)(-0.5f);
    real cy = first || last ? zero_real() : side, a = angle_of(y - cy, x - cx);
    return scaled(weight, cy - r * sine_of(a), cx - r * cosine_of(a));
}

// One of six maps: two to the unit circle at twice the angle, or four copies at the corners of a square.
VARIATION(apocarpet_js) {
    float r = 0.41421356237309503f;
    real k = 1.0f / (x * x + y * y), p = 2.0f * x * y * k, q = (x * x - y * y) * k;
    real pick = random_index(uniform(random), 6.0f);
    mask first = pick == 0.0f, last = pick == 5.0f;
    real u = pick == 2.0f || pick == 3.0f ? (real)(r) : (real)(-r),
         v = pick == 2.0f || pick == 4.0f ? (real)(r) : (real)(-r);
    return scaled(weight, first ? p : last ? q : r * x + u, first ? q : last ? p : r * y + v);
}

// A third of the size at one of two places, or the point's direction on a unit circle about (-1, 0), y of random sign.
VARIATION(dustpoint) {
    real side = random_sign((real)(1.0f), random), r = vnorm(x, y), pick = uniform(random);
    mask far = pick < 0.5f, low = pick < 0.75f;
    return scaled(weight, far ? x / r - 1.0f : low ? x / 3.0f : x / 3.0f + 2.0f / 3.0f, far ? side * y / r : y / 3.0f);
}

// Each of the following returns a random point of an orbit, which a builder of renderer/flames/variations/tables.py
// computed on the host from the parameters and passed as `table`.
REPLACING(threeply, a = -55, b = -1, c = -42) {
    return scaled_pair(0.001f * weight, random_table_point(table, random));
}

// B. Martin's hopalong.
VARIATION(hopalong, random = 1, a = 0.75, b = 0.5, c = 0.25, startx = 0, starty = 0) {
    return scaled_pair(weight, random_table_point(table, random));
}

// R. Devaney's gingerbread man map.
REPLACING(gingerbread_man);

// I. Gumowski's and C. Mira's map.
REPLACING(gumowski_mira, random = 1, step = 0.001, a = 0.000001, b = 0.05);

// E. McMillan's map.
VARIATION(macmillan, a = 1.6, b = 0.4, startx = 0.1, starty = 0.1);

// B. Martin's map, as a step or without one; this one has no table.
VARIATION(wallpaper_js, a = 1.156, b = -0.28, c = 21.288) {
    mask moves = uniform(random) < 0.5f;
    real u = y - sign_of(truncation(x)) * sqrt(magnitude(b * x - c));
    return pair(moves ? u : x, moves ? a - x : y);
}

// Points beside the Mandelbrot set, or in it, from a table; z is random.
VARIATION_3D(mandelbrot, iter = 100, xmin = -1.6, xmax = 1.6, ymin = -1.2, ymax = 1.2, invert = 0, skin = 0.012, cx = 0,
             cy = 0, max_points = -1, seed = 1234, rnd_z_range = 0) {
    Pair p = random_table_point(table, random);
    return triple(weight * p.x, weight * p.y, rnd_z_range * uniform(random));
}
