// Maps of elliptic and bipolar coordinates.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// Bipolar coordinates: half the logarithm of the ratio of distances to (-1, 0) and (1, 0), and the angle between the
// directions to them.
VARIATION(bipolar, shift = 0) {
    real y2 = y * y, left = square(x + 1.0f) + y2, right = square(x - 1.0f) + y2;
    real v = 0.5f * angle_of(2.0f * y, x * x + y2 - 1.0f) - shift * (PI / 2.0f);
    return scaled(weight * (2.0f / PI), 0.25f * logarithm_of(left / right), wrap(v, (real)(0.5f * PI)));
}

// Exchanges the elliptic coordinates mu and nu. The scale is flam3's.
VARIATION(edisc) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(e.y / m * (1.0f + magnitude(a)));
    Pair c = circle(logarithm_of(m + sqrt(e.x))), h = hyperbola(-angle_of(b, a));
    return scaled(weight / 11.57034632f, h.x * c.x, h.y * (y > 0.0f ? -c.y : c.y));
}

// The angle of elliptic coordinates, from the y axis, and the logarithm of the size of the ellipse.
DEVICE Pair elliptic_angle_and_size(real x, real y) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(e.y / m * (1.0f + magnitude(a)));
    return pair(angle_of(a, b), logarithm_of(m + sqrt(e.x)));
}

// Elliptic coordinates, as (angle, logarithm of the size of the ellipse).
VARIATION(elliptic) {
    Pair p = elliptic_angle_and_size(x, y);
    return scaled(weight / (PI / 2.0f), p.x, sign_positive(y) * p.y);
}

// (sinh x, sin y) / (cosh x - cos y).
VARIATION(foci) { return swapped(conjugate_cot(weight, 0.5f * y, 0.5f * x)); }

// The conjugate of sqrt((z + weight) / (z - weight)), times weight (2 + spread).
VARIATION(flux, spread = 0) {
    real a = x + weight, b = x - weight;
    real k = weight * (2.0f + spread) * sqrt(sqrt(y * y + a * a) / sqrt(y * y + b * b));
    return from_polar(k, 0.5f * (angle_of(y, b) - angle_of(y, a)));
}

// Origin: JWildfire

// foci in space; a flat point's height is its angle.
VARIATION_3D(foci_3D) {
    real e = 0.5f * exponential_of(x), n = 0.25f / e, a = z == 0.0f ? angle_of(y, x) : z;
    Pair c = circle(y), s = circle(a);
    real k = weight / (e + n - c.x * s.x);
    return scaled3(k, e - n, c.y, s.y);
}

// Joukowski coordinates of a point: (cosh mu - 1, nu) with x + i y = cosh(mu + i nu)
DEVICE Pair elliptic_coordinates(real x, real y) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, a = x / m, b = sqrt(greatest(e.y / m * (1.0f + magnitude(a)), (real)(0.0f)));
    real nu = angle_of(b, a);
    return pair(e.x, y < 0.0f ? -nu : nu);
}

// The point of elliptic coordinates, times the weight.
DEVICE Pair from_elliptic(float weight, real mu, real nu) {
    Pair h = hyperbola(mu), c = circle(nu);
    return scaled(weight, h.x * c.x, h.y * c.y);
}

// A random root in elliptic coordinates: mu / power, and nu / power on a random branch.
VARIATION(eJulia, power = 2) {
    real k = power < 0.0f ? 1.0f / (x * x + y * y) : (real)(1.0f);
    Pair e = elliptic_coordinates(k * x, k * y);
    real nu = y < 0.0f ? -magnitude(e.y) : magnitude(e.y);
    nu = nu / power + TWO_PI / power * floor_of(uniform(random) * power);
    return from_elliptic(weight, area_cosine_1p(e.x) / power, nu);
}

// Bipolar coordinates (tau, sigma) of a point.
DEVICE Pair bipolar_coordinates(real x, real y) {
    real left = square(x + 1.0f) + y * y, right = square(x - 1.0f) + y * y;
    return pair(0.5f * logarithm_of(left / right), PI - angle_of(y, x + 1.0f) - angle_of(y, 1.0f - x));
}

// The point of bipolar coordinates, times the weight.
DEVICE Pair from_bipolar(float weight, real tau, real sigma) {
    Pair h = hyperbola(tau), c = circle(sigma);
    return scaled(weight / (h.x - c.x), h.y, c.y);
}

// In bipolar coordinates: a scale and a shift of tau, a rotation and a random branch of sigma, and a split.
VARIATION(bTransform, rotate = 0, power = 1, move = 0, split = 0) {
    Pair b = bipolar_coordinates(x, y);
    real tau = b.x / power + move, sigma = b.y + rotate;
    sigma = sigma / power + TWO_PI / power * floor_of(uniform(random) * power);
    return from_bipolar(weight, x >= 0.0f ? tau + split : tau - split, sigma);
}

// In elliptic coordinates: mu moves, in opposite directions above and below the axis.
VARIATION(eMotion, move = 0, rotate = 0) {
    Pair e = elliptic_coordinates(x, y);
    real mu = area_cosine_1p(e.x), nu = e.y;
    mu = nu < 0.0f ? mu + move : mu - move;
    Pair h = hyperbola(mu), c = circle((mu <= 0.0f ? -nu : nu) + rotate);
    return scaled(weight, h.x * c.x, magnitude(h.y) * c.y);
}

// The square root of (z - 1) / (z + 1) in the angle, |(z + 1) / (z - 1)| as the radius.
VARIATION(deltaA) {
    real k = weight * sqrt((y * y + square(x + 1.0f)) / (y * y + square(x - 1.0f)));
    return from_polar(k, 0.5f * (angle_of(y, x - 1.0f) - angle_of(y, x + 1.0f)));
}

// In bipolar coordinates: sigma turns in proportion to tau, and to 1 / tau.
VARIATION(bSwirl, in = 0, out = 0) {
    Pair b = bipolar_coordinates(x, y);
    return from_bipolar(weight, b.x, b.y + b.x * out + in / b.x);
}

// In bipolar coordinates: tau below `radius` is shifted and reduced modulo 2 radius.
VARIATION(bMod, radius = 1, distance = 0) {
    Pair b = bipolar_coordinates(x, y);
    real t = remainder_of(b.x + radius + distance * radius, (real)(2.0f * radius)) - radius;
    return from_bipolar(weight, magnitude(b.x) < radius ? t : b.x, b.y);
}

// bipolar with free coefficients.
VARIATION(bipolar2, shift = 0, a = 1, b = 2, c = 0.5, d = 1, e = 2, f1 = 0.25, g1 = 1, h = 1) {
    real r2 = (x * x + y * y) * g1, t = r2 + a, u = b * x;
    real v = wrap(c * angle_of(e * y, r2 - d) - 0.5f * PI * shift, (real)(0.5f * PI));
    mask none = (t + u) / (t - u) <= 0.0f;
    real k = f1 * (2.0f / PI) * logarithm_of((t + u) / (t - u));
    return scaled(weight, none ? zero_real() : k, none ? zero_real() : (2.0f / PI) * v * h);
}

// elliptic, split along both axes, in a random half plane.
VARIATION(spliptic_bs, x = 0.05, y = 0.05) {
    Pair p = elliptic_angle_and_size(x, y);
    real u = weight * (2.0f / PI) * p.x, v = weight * (2.0f / PI) * p.y + spliptic_bs_y;
    return pair(x >= 0.0f ? u + spliptic_bs_x : u - spliptic_bs_x, random_sign(v, random));
}

// elliptic with free coefficients, in a random half plane.
VARIATION(elliptic2, a1 = 1, a2 = 1, a3 = 0, b1 = 2, b2 = 1, c = 0.5, d = 1, e = 0.5, f = 1, g = 1, h = 2) {
    real t = x * x + y * y + a1, m = c * (sqrt(t + b1 * x) + sqrt(t - b1 * x)), a = x / m * a2;
    real b = root_safe(d - a * a) * b2;
    mask up = uniform(random) < e;
    real v = logarithm_of(m + root_safe(m - (up ? (real)(f) : (real)(g))));
    float k = weight * h / PI;
    return pair(k * angle_of(a, b) - 0.5f * PI * a3, k * (up ? v : -v));
}

// In elliptic coordinates: nu rotates.
VARIATION(eRotate, rotate = 0) {
    Pair e = elliptic_coordinates(x, y);
    real m = 1.0f + e.x;
    Pair c = circle(remainder_of(e.y + rotate + PI, (real)(TWO_PI)) - PI);
    return scaled(weight, m * c.x, sqrt(e.x * (m + 1.0f)) * c.y);
}

// In elliptic coordinates: mu is scaled and moved, nu rotates.
VARIATION(ePush, push = 0, dist = 1, rotate = 0) {
    Pair e = elliptic_coordinates(x, y);
    return from_elliptic(weight, area_cosine_1p(e.x) * dist + push, e.y + rotate);
}

// In elliptic coordinates: nu turns in proportion to mu, and to 1 / mu.
VARIATION(eSwirl, in = 1.2, out = 0.2) {
    Pair e = elliptic_coordinates(x, y);
    real mu = area_cosine_1p(e.x);
    return from_elliptic(weight, mu, e.y + mu * out + in / mu);
}

// JWildfire's elliptic of mode 1, where chance chooses the half plane.
VARIATION(elliptic_mirrory) {
    Pair p = elliptic_angle_and_size(x, y);
    return scaled(weight / (PI / 2.0f), p.x, random_sign(p.y, random));
}

// Origin: Fractorium

// The angles nu of elliptic coordinates about the x axis and about the y axis.
VARIATION(block) {
    Pair h = elliptic_terms(x, y), v = elliptic_terms(y, x);
    real m = 1.0f + h.x, n = 1.0f + v.x, a = x / m, b = y / n;
    return scaled(2.0f * weight / PI, angle_of(a, root_safe(1.0f - a * a)), angle_of(b, root_safe(1.0f - b * b)));
}

// nu after num slices of the half circle, turned alternately by the part a of a slice.
DEVICE real collided(real nu, float num, float a) {
    real n = truncation(nu * num * (1.0f / PI)), slice = (real)(PI / num), turn = (real)(PI * a / num);
    return n * slice + remainder_of(is_odd(n) ? nu - turn : nu + turn, slice);
}

// In bipolar coordinates: slices of sigma turn (collided). tau is a difference of logarithms, unlike the logarithm of a
// quotient in bipolar_coordinates(): Fractorium rounds so.
VARIATION(bCollide, num = 1 [1e-10, 1e9], a = 0) {
    real right = (x + 1.0f) * (x + 1.0f) + y * y, left = (x - 1.0f) * (x - 1.0f) + y * y;
    real tau = 0.5f * (logarithm_of(right) - logarithm_of(left));
    real sigma = collided(PI - angle_of(y, x + 1.0f) - angle_of(y, 1.0f - x), num, a);
    return from_bipolar(weight, tau, sigma);
}

// Elliptic coordinates: mu and nu, which has the sign of y.
DEVICE Pair elliptic_mu_nu(real x, real y) {
    Pair e = elliptic_terms(x, y);
    real m = 1.0f + e.x, nu = arccosine(clamped(x / m, (real)(-1.0f), (real)(1.0f)));
    return pair(area_cosine_1p(e.x), y < 0.0f ? -nu : nu);
}

// In elliptic coordinates: slices of nu turn (collided).
VARIATION(eCollide, num = 1 [1, 1e9], a = 0) {
    Pair e = elliptic_mu_nu(x, y);
    real nu = collided(magnitude(e.y), num, a);
    return from_elliptic(weight, e.x, y > 0.0f ? nu : -nu);
}

// In elliptic coordinates: mu below `radius` is shifted and reduced modulo 2 radius, above and below the axis in
// opposite directions.
VARIATION(eMod, radius = 1 [0, 1e30], distance = 0) {
    Pair e = elliptic_mu_nu(x, y);
    real back = remainder_of(e.x + radius + distance * radius, (real)(2.0f * radius)) - radius;
    real forth = remainder_of(e.x - radius - distance * radius, (real)(2.0f * radius)) + radius;
    return from_elliptic(weight, e.x < radius ? (e.y > 0.0f ? back : forth) : e.x, e.y);
}

// In elliptic coordinates: mu and nu are scaled.
VARIATION(eScale, scale = 1 [0, 1], angle = 0) {
    Pair e = elliptic_mu_nu(x, y);
    real nu = remainder_of(scale * (e.y + PI + angle), (real)(TWO_PI * scale)) - angle - scale * PI;
    return from_elliptic(weight, e.x * scale, nu);
}

// deltaA, whose factor Fractorium computes by two roots.
VARIATION(deltaa) {
    real k = sqrt(y * y + (x + 1.0f) * (x + 1.0f)) / sqrt(y * y + (x - 1.0f) * (x - 1.0f));
    return from_polar(weight * k, 0.5f * (angle_of(y, x - 1.0f) - angle_of(y, x + 1.0f)));
}
