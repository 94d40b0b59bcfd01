// Roots of a complex number: one of the solutions is chosen at random, as in inverse iteration of Julia sets.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// One of the two square roots, at random.
VARIATION(julia) {
    real half_turn = uniform(random) < 0.5f ? (real)(0.0f) : (real)(PI);
    return from_polar(weight * sqrt(vnorm(x, y)), 0.5f * atan_xy(y, x) + half_turn);
}

// A random one of the values of z^(1 / power), z = x + iy, at the radius |z|^(dist / power); in `angle` its angle.
DEVICE Pair random_root(float weight, real x, real y, float power, float dist, Random *random, real *angle) {
    real turn = random_index(uniform(random), fabs(power));
    *angle = (angle_of(y, x) + TWO_PI * turn) / power;
    return from_polar(weight * power_of(x * x + y * y, (real)(0.5f * (dist / power))), *angle);
}

// A random root of order `power`.
VARIATION(julian, power = 1, dist = 1) {
    real angle;
    return random_root(weight, x, y, power, dist, random, &angle);
}

// julian whose odd branches are mirrored.
VARIATION(juliascope, power = 1, dist = 1) {
    real t = truncation(fabs(power) * uniform(random)), theta = angle_of(y, x);
    real angle = (TWO_PI * t + (is_odd(t) ? -theta : theta)) / power;
    return from_polar(weight * power_of(x * x + y * y, (real)(dist / power / 2.0f)), angle);
}

// julian with `count` wedges of the angle `angle` cut out.
VARIATION(wedge_julia, angle = 0, count = 1, power = 1, dist = 0) {
    real t = truncation(fabs(power) * uniform(random));
    real left = cut_wedges((angle_of(y, x) + TWO_PI * t) / power, angle, count);
    return from_polar(weight * power_of(x * x + y * y, (real)(dist / power / 2.0f)), left);
}

// Origin: JWildfire

// The point of this angle at the height h and at the radius of (x, y), both times the weight and a power of x^2 + y^2 +
// h^2, the squared distance in space.
DEVICE Triple power_in_space(float weight, real x, real y, real h, float exponent, real angle) {
    real r2 = x * x + y * y, k = weight * power_of(r2 + h * h, (real)(exponent));
    return lifted(from_polar(k * sqrt(r2), angle), k * h);
}

// A root of (x, y) whose radius is the root of the distance in space; z is divided by the power.
VARIATION_3D(julia3D, power = -3) {
    float n = fabs(power), exponent = (1.0f / power - 1.0f) * 0.5f;
    real turn = random_index(uniform(random), n);
    if (power == 1.0f || power == -1.0f)
        return scaled3(weight * power_of(x * x + y * y + z * z, (real)(exponent)), x, y, z);
    return power_in_space(weight, x, y, z / n, exponent, (angle_of(y, x) + TWO_PI * turn) / power);
}

// A root of (x, y); z is divided by radius and power.
VARIATION_3D(julia3Dz, power = 4) {
    float n = fabs(power);
    real r2 = x * x + y * y, k = weight * power_of(r2, (real)(1.0f / power * 0.5f));
    real angle = (angle_of(y, x) + TWO_PI * random_index(uniform(random), n)) / power;
    return lifted(from_polar(k, angle), k * z / (sqrt(r2) * n));
}

// julia3D for the power power / divisor.
VARIATION_3D(julia3Dq, power = 2, divisor = 2) {
    float ratio = divisor / power;
    real a = angle_of(y, x) * ratio + TWO_PI / power * random_index(uniform(random), fabs(power));
    return power_in_space(weight, x, y, z * fabs(ratio), 0.5f * ratio - 0.5f, a);
}

// julian after an affine map.
VARIATION(julian2, power = 4, dist = 1, a = 1, b = 0, c = 0, d = 1, e = 0, f = 0) {
    real angle;
    return random_root(weight, a * x + b * y + e, c * x + d * y + f, power, dist, random, &angle);
}

// julian for the power power / divisor.
VARIATION(juliaq, power = 5, divisor = 2) {
    real turn = random_index(uniform(random), fabs(power));
    real angle = angle_of(y, x) * (divisor / power) + TWO_PI / power * turn;
    return from_polar(weight * power_of(x * x + y * y, (real)(0.5f * divisor / power)), angle);
}

// z to the complex power 1 / re + i im / 100, on a random branch: the remainder by re of a random integer below 2^24.
VARIATION(juliac, re = 6, im = 0.5, dist = 1) {
    float inverse = 1.0f / (re + 1e-30f), part = im * 0.01f;
    real turn = random_index(uniform(random), 16777216.0f);
    real angle = angle_of(y, x) + remainder_of(turn, (real)(re)) * TWO_PI;
    real length = dist * 0.5f * logarithm_of(x * x + y * y);
    return complex_exp(weight, length * inverse - angle * part, angle * inverse + length * part);
}

// One of two branches of a square root, after M. Glynn's fractal; x changes its sign inside of the unit circle.
VARIATION(glynnia) {
    real r = vnorm(x, y), d = sqrt(r + x), e = r + x, k = 1.0f / sqrt(r * (y * y + e * e));
    mask first = uniform(random) > 0.5f, outside = r >= 1.0f;
    real u = first ? 0.70710678f * d : k * e, v = first ? -0.70710678f / d * y : k * y;
    return scaled(weight, outside ? u : -u, v);
}

// An inverse of a root, with free factors on x and y in its angle and its radius.
VARIATION(inverted_julia, power = 0.25, y2_mult = 1, a2x_mult = 1, a2y_mult = 1, a2y_add = 0, cos_mult = 0, y_mult = 1,
          center = 3.14, x2y2_add = 0) {
    real h = power_of(x * x + y * y * y2_mult, (real)(power)) + x2y2_add;
    real half_turn = uniform(random) < 0.5f ? zero_real() : (real)(PI);
    Pair c = circle(0.5f * angle_of(x * a2x_mult, y * a2y_mult + a2y_add) + half_turn);
    real k = weight * cosine_of(h * cos_mult) / h / center;
    return pair(k * c.y, k * c.x * y_mult);
}

// julian2 with the height x / power, which enters the radius too.
VARIATION_3D(julian3Dx, power = 4, dist = 1, a = 1, b = 0, c = 0, d = 1, e = 0, f = 0) {
    real turn = random_index(uniform(random), fabs(power));
    real angle = (angle_of(c * x + d * y + f, a * x + b * y + e) + TWO_PI * turn) / power;
    return power_in_space(weight, x, y, x / fabs(power), (dist / power - 1.0f) * 0.5f, angle);
}

// A random root of a stretched plane; if `power` is not whole, turned by any angle.
VARIATION(phoenix_julia, power = -3, dist = 1, x_distort = -0.5, y_distort = 0) {
    real a = angle_of(y * (y_distort + 1.0f), x * (x_distort + 1.0f)) * (dist / power);
    real u = uniform(random), turn = power == (float)(int)power ? random_index(u, fabs(power)) / power : u;
    real r = weight * power_of(x * x + y * y, (real)(0.5f * dist / power));
    return from_polar(r, a + TWO_PI * (turn - floor_of(turn)));
}

// Origin: Apophysis

// G. Kiehne's julian2 with color.
VARIATION(julian2dc, power = 2, dist = 1, col = 0, a = 1, b = 0, c = 0, d = 1, e = 0, f = 0) {
    real u = a * x + b * y + e, v = c * x + d * y + f, angle;
    Pair p = random_root(weight, u, v, power, dist, random, &angle);
    real r = weight * power_of(u * u + v * v, (real)(dist / power * 0.5f));
    *color = wrap_unit(magnitude(r * col + angle / TWO_PI * (1.0f - col)));
    return p;
}

// Origin: Fractorium

// A root of order n of (|x|^separ, y), at a radius to the power a, moved by b.
REPLACING_3D(juliaNab, n = 1, a = 1, b = 1, separ = 1) {
    float count = fmax(fabs(n), 1e-6f);
    real t =
        (angle_of(y, power_of(magnitude(x), (real)(separ))) + TWO_PI * floor_of(uniform(random) * fabs(n))) / count;
    Pair p = from_polar(weight * power_of(x * x + y * y, (real)(0.5f * a / count)), t);
    return triple(p.x + b, p.y + b, z);
}

// Outside of the unit circle the point or its inverse; all points inside become the origin.
VARIATION(spher) {
    real r2 = x * x + y * y, k = uniform(random) < 0.5f ? weight / r2 : (real)(weight);
    return scaled(r2 > 1.0f ? k : zero_real(), x, y);
}

// glynnia whose sign depends on the sign of y in place of the circle.
VARIATION(glynnia2) {
    real r = vnorm(x, y), d = r + x, root = 0.70710678f * weight * sqrt(d), k = weight / sqrt(r * (y * y + d * d));
    mask up = r > 0.0f && y > 0.0f, first = uniform(random) > 0.5f;
    real u = first ? root : k * d;
    return pair(up ? u : -u, first ? -0.70710678f * weight / sqrt(d) * y : k * y);
}

// GlynnSim: inside the radius `within` the point c, outside the point as it is or inverted in the circle of `radius`.
// The random number u, 0 to 1, decides: the nearer to the circle a point lies, the more often it is inverted.
DEVICE Pair glynn(float weight, real x, real y, float within, float radius, float contrast, float power, real u,
                  Pair c) {
    real r = vnorm(x, y), a = magnitude(radius / r);
    real k = u > contrast * power_of(a, (real)(power)) ? (real)(1.0f) : a * a;
    mask inside = r < within;
    return scaled(weight, inside ? c.x : k * x, inside ? c.y : k * y);
}

// glynn with a disc of radius radius1 at the angle phi1 of the circle.
VARIATION(glynnSim1, radius = 1, radius1 = 0.1, phi1 = 0, thickness = 0.1 [0, 1], contrast = 1.5, pow = 0.5) {
    real r = radius1 * (thickness + (1.0f - thickness) * uniform(random));
    Pair middle = from_polar((real)(radius), (real)(PI / 180.0f * phi1)), c = from_polar(r, TWO_PI * uniform(random));
    c = pair(c.x + middle.x, c.y + middle.y);
    Pair p = glynn(1.0f, x, y, radius, radius, contrast, fabs(pow), uniform(random), c);
    mask inner = square(p.x - middle.x) + square(p.y - middle.y) < radius1 * radius1 && vnorm(x, y) >= radius;
    return scaled(weight, inner ? c.x : p.x, inner ? c.y : p.y);
}

// glynn with an arc of the circle, from phi1 to phi2.
VARIATION(glynnSim2, radius = 1, thickness = 0.1, contrast = 0.5, pow = 1.5, phi1 = 0, phi2 = 360) {
    float gamma = thickness * (2.0f * radius + thickness) / (radius + thickness);
    real r = radius + thickness - gamma * uniform(random);
    Pair c = from_polar(r, PI / 180.0f * (phi1 + (phi2 - phi1) * uniform(random)));
    return glynn(weight, x, y, radius, radius, contrast, fabs(pow), uniform(random), c);
}

// glynn with two circles, which the inversion exchanges.
VARIATION(glynnSim3, radius = 1, thickness = 0.1, thickness2 = 0.1, contrast = 0.5, pow = 1.5) {
    float outer = radius + thickness, inner = radius * radius / outer, gamma = outer / (outer + inner);
    real a = TWO_PI * uniform(random), r = uniform(random) < gamma ? (real)(outer) : (real)(inner);
    return glynn(weight, x, y, outer, radius, contrast, fabs(pow), uniform(random), from_polar(r, a));
}

// glynn whose inside becomes one point.
VARIATION(GlynnSim4, radius = 1, contrast = 0.5, pow = 1.5, X = 0, Y = 0) {
    return glynn(weight, x, y, radius, radius, contrast, pow, uniform(random), pair((real)(X), (real)(Y)));
}

// glynn whose inside becomes the origin; beyond it an inverted point has both coordinates a^2, as in Fractorium.
VARIATION(GlynnSim5, radius = 1, thickness = 0.1, contrast = 0.5, pow = 1.5) {
    real r = vnorm(x, y), a = magnitude(radius / r);
    mask inside = r < radius + thickness;
    mask keeps = uniform(random) > contrast * power_of(a, (real)(pow));
    real u = keeps ? x : a * a, v = keeps ? y : a * a;
    return scaled(weight, inside ? zero_real() : u, inside ? zero_real() : v);
}

// Origin: JWildfire

// juliascope with a height, whose factor is a power of za x^2 + zb y^2 + h^2; type 1 has z in the radius too.
VARIATION_3D(juliascope3Db, power = 3, dist = 1, type = 0, warp = 0, za = 1, zb = 1, zamount = 1, zdist = 1, mode = 0,
             wave1 = 1, wave2 = 1) {
    float n = 0.5f * dist / power;
    real waves = mode == 0.0f ? (real)(1.0f) : sine_of((real)(wave1)) * cosine_of((real)(wave2));
    real t = random_index(uniform(random), fabs(power)), a = angle_of(y, x), h = z / fabs(power) + warp,
         r2 = x * x + y * y;
    real turn = (TWO_PI * t + (is_odd(t) ? -a : a)) / power;
    real up = weight * zamount * power_of(za * x * x + zb * y * y + h * h, (real)(n * zdist));
    return lifted(from_polar(weight * power_of(type == 0.0f ? r2 : r2 + z * z, (real)(n)), turn), up * h * waves);
}

// Origin: Apophysis

// The angle of a random root of the point (u, v) after the affine.
DEVICE real affine_root_angle(GLOBAL const float *affine, real u, real v, float power, Random *random) {
    real a = affine[0] * u + AFFINE_B * v + AFFINE_C, b = AFFINE_D * u + AFFINE_E * v + AFFINE_F;
    return (angle_of(b, a) + TWO_PI * random_index(uniform(random), fabs(power))) / power;
}

// julia3D by the angle of w / (1 + c w) after the affine once more, with w = x + i y and c = real + i imag.
VARIATION_3D(julian3, power = 2, dist = 1, real = 0, imag = 0) {
    Pair m = complex_quotient(pair(x, y), pair(julian3_real * x - imag * y + 1.0f, julian3_real * y + imag * x));
    real angle = affine_root_angle(affine, m.x, m.y, power, random);
    return power_in_space(weight, x, y, z / fabs(power), 0.5f * (dist / power - 1.0f), angle);
}

// julia3D by the angle after the affine once more, within the circle of radius `weight`, or with `invert` beyond it;
// other points keep x and y, times the weight.
VARIATION_3D(juni, power = 2, invert = 0, stretch = 1) {
    real angle = affine_root_angle(affine, x, y, power, random), r2 = x * x + y * y;
    Triple p = power_in_space(weight, x, y, z / fabs(power), 0.5f * (stretch / power - 1.0f), angle);
    mask kept = r2 > weight * weight || r2 == 0.0f;
    if (invert != 0.0f) kept = r2 < weight * weight && r2 != 0.0f;
    return triple(kept ? weight * x : p.x, kept ? weight * y : p.y, p.z);
}
