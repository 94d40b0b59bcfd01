// Inversions in a circle or a sphere, Moebius maps and hyperbolic tilings.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// The inversion in the unit circle.
VARIATION(spherical) { return scaled(weight / (x * x + y * y + EPSILON), x, y); }

// z / (1 + c1 z + c2 z^2).
VARIATION(curl, c1 = 1, c2 = 0) {
    real re = 1.0f + c1 * x + c2 * (x * x - y * y), im = c1 * y + 2.0f * c2 * x * y;
    return scaled(weight / (re * re + im * im), x * re + y * im, y * re - x * im);
}

// Divides by |x^2 - y^2|.
VARIATION(cross) {
    real s = x * x - y * y;
    return scaled(weight * sqrt(1.0f / (s * s + EPSILON)), x, y);
}

// (a z + b) / (c z + d).
VARIATION(mobius, re_a = 0, im_a = 0, re_b = 0, im_b = 0, re_c = 0, im_c = 0, re_d = 0, im_d = 0) {
    real u = re_a * x - im_a * y + re_b, v = re_a * y + im_a * x + im_b;
    real p = re_c * x - im_c * y + re_d, q = re_c * y + im_c * x + im_d;
    return scaled(weight / (p * p + q * q), u * p + v * q, v * p - u * q);
}

// Origin: JWildfire

// The inversion in the unit sphere.
VARIATION_3D(spherical3D) {
    real k = weight / (x * x + y * y + z * z + 1e-30f);
    return scaled3(k, x, y, z);
}

// curl in space: an inversion, a translation and an inversion.
VARIATION_3D(curl3D, cx = 0, cy = 0.05, cz = 0.05) {
    real r2 = x * x + y * y + z * z;
    float c2 = cx * cx + cy * cy + cz * cz;
    real k = weight / (r2 * c2 + 2.0f * cx * x - 2.0f * cy * y + 2.0f * cz * z + 1.0f);
    return scaled3(k, x + cx * r2, y - cy * r2, z + cz * r2);
}

// The distance from the center to which a translation of the ball moves it: hypertile_radius() below, rounded as the
// origin of the 3D variations rounds it.
DEVICE real hypertile3d_radius(float p, float q) {
    real cp = cosine_of((real)(TWO_PI / p)), cq = cosine_of((real)(TWO_PI / q)), r = (1.0f - cp) / (cp + cq);
    return r > 0.0f ? 1.0f / sqrt(1.0f + r) : (real)(1.0f);
}

// The translation of a ball along +x and a random rotation: hypertile2 below, in space.
VARIATION_3D(hypertile3D2, p = 3, q = 7) {
    real c = hypertile3d_radius(p, q), c2 = c * c, r2 = x * x + y * y + z * z;
    real u = x * (1.0f + c2) + c * (r2 + 1.0f), v = y * (1.0f - c2), k = weight / (c2 * r2 + 2.0f * c * x + 1.0f);
    Pair t = circle(TWO_PI / p * random_index(uniform(random), fabs(p)));
    return triple(k * (u * t.x + v * t.y), k * (v * t.x - u * t.y), k * z * (1.0f - c2));
}

// An inversion of the right half plane; the left one is kept.
VARIATION(twoface) { return scaled(x > 0.0f ? weight / (x * x + y * y) : (real)(weight), x, y); }

// An inversion for a random share of the points.
VARIATION(d_spherical, d_spher_weight = 0.5) {
    real k = uniform(random) < d_spher_weight ? 1.0f / (x * x + y * y) : (real)(1.0f);
    return scaled(weight * k, x, y);
}

// Translations of the Poincare disc for the tiling of p-gons, q at each vertex. hypertile moves in the n-th of p
// directions, hypertile1 in a random direction, hypertile2 along +x, followed by a rotation by a random multiple of
// 2 pi / p. The 3D variations move a ball.

// (z + conj(c)) / (c z + 1) for z = x + iy and c = re + i im.
DEVICE Pair disc_translation(real x, real y, real re, real im) {
    return complex_quotient(pair(x + re, y - im), pair(re * x - im * y + 1.0f, re * y + im * x));
}

// How far a translation of the tiling moves the disc's center.
DEVICE real hypertile_radius(float p, float q) {
    real cp = cosine_of((real)(TWO_PI / p)), cq = cosine_of((real)(TWO_PI / q));
    real r2 = 1.0f - (cp - 1.0f) / (cp + cq);
    return r2 > 0.0f ? 1.0f / sqrt(r2) : (real)(1.0f);
}

// The translation in direction n.
VARIATION(hypertile, p = 3, q = 7, n = 1) {
    Pair c = from_polar(hypertile_radius(p, q), (real)(n * TWO_PI / p));
    return scaled_pair(weight, disc_translation(x, y, c.x, c.y));
}

// The translation in a random direction.
VARIATION(hypertile1, p = 3, q = 7) {
    real a = TWO_PI / p * random_index(uniform(random), fabs(p));
    Pair c = from_polar(hypertile_radius(p, q), a);
    return scaled_pair(weight, disc_translation(x, y, c.x, c.y));
}

// The translation along x and a random rotation.
VARIATION(hypertile2, p = 3, q = 7) {
    Pair t = disc_translation(x, y, hypertile_radius(p, q), zero_real());
    Pair c = circle(TWO_PI / p * random_index(uniform(random), fabs(p)));
    return scaled(weight, t.x * c.x + t.y * c.y, t.y * c.x - t.x * c.y);
}

// An inversion, scaled by (x, y).
VARIATION(ovoid, x = 0.94, y = 0.94) { return scaled(weight / (x * x + y * y + 1e-30f), x * ovoid_x, y * ovoid_y); }

// The radius r becomes r / (1 + (2 r / pi)^2): an inversion for large radii.
VARIATION(roundspher) {
    real d = x * x + y * y;
    return scaled(weight * weight / (1.0f + d * (4.0f / (PI * PI))), x, y);
}

// A projective map of the plane.
VARIATION(projective, A = 0, B = -0.4, C = 1, A1 = 1, B1 = 0.1, C1 = 0, A2 = 0, B2 = 1.2, C2 = 0) {
    return scaled(weight / (A * x + B * y + C), A1 * x + B1 * y + C1, A2 * x + B2 * y + C2);
}

// An inversion, then a translation of the Poincare disc by `shift`.
VARIATION(hypershift, shift = 2, stretch = 1) {
    real k = 1.0f / (x * x + y * y), u = k * x + shift, v = k * y;
    real r = weight * (1.0f - shift * shift) / (u * u + v * v);
    return pair(r * u + shift, r * v * stretch);
}

// Divides by a power of the radius, and rotates by a random multiple of 2 pi / power.
VARIATION(sphericalN, power = 3, dist = 1) {
    real n = floor_of(power * uniform(random)), r = power_of(vnorm(x, y), (real)(dist));
    return from_polar(weight / r, angle_of(y, x) + n * TWO_PI / floor(power));
}

// An inversion in space, scaled by (x, y, z).
VARIATION_3D(ovoid3d, x = 0.92, y = 0.92, z = 0.92) {
    real k = weight / (x * x + y * y + z * z + 1e-30f);
    return triple(k * x * ovoid3d_x, k * y * ovoid3d_y, k * z * ovoid3d_z);
}

// Divides by the squared radius in stretched coordinates. z is stretched by the parameter x too, as in the origin.
VARIATION_3D(sph3D, x = 0.75, y = 1, z = 0.5) {
    real u = sph3D_x * x, v = sph3D_y * y, w = sph3D_x * z, k = weight / (u * u + v * v + w * w + 1e-29f);
    return scaled3(k, x, y, z);
}

// Divides by the radius to the power `exponent`.
VARIATION_3D(spherical3D_wf, invert = 0, exponent = 2) {
    real k = weight * power_of(x * x + y * y + z * z + 1e-30f, (real)(-0.5f * exponent));
    k = invert == 0.0f ? k : -k;
    return scaled3(k, x, y, z);
}

// Moves a point inside the unit circle along a geodesic of the Poincare disc: the arc of the circle through the point
// that is centered on the x axis and meets the unit circle at right angles. `turn` counts half arcs; a point that
// leaves the arc at one end enters at the other.
DEVICE Pair orthogonal_turn(real x, real y, float turn) {
    real u = magnitude(x), center = (x * x + y * y + 1.0f) / (2.0f * u), r = vnorm(u - center, y);
    real theta = angle_of((real)(1.0f), r);
    Pair c = circle(remainder_of(turn * theta + angle_of(y, center - u) + theta, 2.0f * theta) - theta);
    real px = center - c.x * r;
    return pair(x >= 0.0f ? px : -px, c.y * r);
}

// orthogonal_turn by `in` in the unit circle and by `out` outside, where the point is inverted before and after.
VARIATION(ortho, in = 0, out = 0) {
    real r2 = x * x + y * y;
    Pair p = orthogonal_turn(x, y, in), q = orthogonal_turn(x / r2, y / r2, out);
    real k = 1.0f / (q.x * q.x + q.y * q.y);
    mask inside = r2 < 1.0f;
    return scaled(weight, inside ? p.x : k * q.x, inside ? p.y : k * q.y);
}

// disc_translation of a point of the unit ball, by c in the plane z = 0.
DEVICE Triple hypertile_step(float weight, real x, real y, real z, Pair c) {
    real cx2 = c.x * c.x, cy2 = c.y * c.y, r2 = x * x + y * y + z * z, u = 2.0f * c.x * x, v = 2.0f * c.y * y;
    real k = weight / ((cx2 + cy2) * r2 + u - v + 1.0f);
    return triple(k * (x * (1.0f + cx2 - cy2) - c.x * (v - r2 - 1.0f)),
                  k * (y * (1.0f + cy2 - cx2) + c.y * (-u - r2 - 1.0f)), k * z * (1.0f - cx2 - cy2));
}

// The translation of a ball in direction n.
VARIATION_3D(hypertile3D, p = 3, q = 7, n = 0) {
    return hypertile_step(weight, x, y, z, from_polar(hypertile3d_radius(p, q), (real)(n * TWO_PI / p)));
}

// The translation of a ball in a random direction.
VARIATION_3D(hypertile3D1, p = 3, q = 7) {
    real a = TWO_PI / p * random_index(uniform(random), fabs(p));
    return hypertile_step(weight, x, y, z, from_polar(hypertile3d_radius(p, q), a));
}
