// Variations of space with tilings, blurs and rotations.
// Origin: JWildfire

VARIATION_3D(julian3Dx, power = 4, dist = 1, a = 1, b = 0, c = 0, d = 1, e = 0, f = 0) {
    float n = fabs(power);
    real h = x / n, r2 = x * x + y * y, k = weight * power_of(r2 + h * h, (real)((dist / power - 1.0f) * 0.5f));
    real turn = random_index(uniform(random), n);
    Pair p = from_polar(k * sqrt(r2), (angle_of(c * x + d * y + f, a * x + b * y + e) + TWO_PI * turn) / power);
    return triple(p.x, p.y, k * h);
}

VARIATION_3D(ho, xpow = 3, ypow = 3, zpow = 3) {
    Pair u = circle(x), v = circle(y);
    real a = u.x * v.x, b = u.y * v.x, z2 = z * z;
    real p = whole_or_nan(a, xpow) + a * xpow + 0.25f * angle_of(y * y, z2);
    real q = whole_or_nan(b, ypow) + b * ypow + 0.25f * angle_of(x * x, z2);
    return triple(weight * p, weight * q, weight * (whole_or_nan(v.y, zpow) + v.y * zpow));
}

// A power of any real; NaN for a negative base and an exponent that is not whole.
DEVICE real whole_or_nan(real x, float exponent) {
    real p = power_of(magnitude(x), (real)(exponent)), none = (x - x) / (x - x);
    if (exponent != floor(exponent)) return x < 0.0f ? none : p;
    return exponent - 2.0f * floor(0.5f * exponent) == 0.0f ? p : with_sign_of(p, x);
}

VARIATION_3D(hypertile3D, p = 3, q = 7, n = 0) {
    real cp = cosine_of((real)(TWO_PI / p)), cq = cosine_of((real)(TWO_PI / q)), s = (1.0f - cp) / (cp + cq);
    real r = s > 0.0f ? 1.0f / sqrt(1.0f + s) : (real)(1.0f);
    return hypertile_step(weight, x, y, z, from_polar(r, (real)(n * TWO_PI / p)));
}

VARIATION_3D(hypertile3D1, p = 3, q = 7) {
    real cp = cosine_of((real)(TWO_PI / p)), cq = cosine_of((real)(TWO_PI / q)), s = (1.0f - cp) / (cp + cq);
    real r = s > 0.0f ? 1.0f / sqrt(1.0f + s) : (real)(1.0f);
    return hypertile_step(weight, x, y, z, from_polar(r, TWO_PI / p * random_index(uniform(random), fabs(p))));
}

DEVICE Triple hypertile_step(float weight, real x, real y, real z, Pair c) {
    real cx2 = c.x * c.x, cy2 = c.y * c.y, r2 = x * x + y * y + z * z, u = 2.0f * c.x * x, v = 2.0f * c.y * y;
    real k = weight / ((cx2 + cy2) * r2 + u - v + 1.0f);
    return triple(k * (x * (1.0f + cx2 - cy2) - c.x * (v - r2 - 1.0f)),
                  k * (y * (1.0f + cy2 - cx2) + c.y * (-u - r2 - 1.0f)), k * z * (1.0f - cx2 - cy2));
}

VARIATION_3D(hypercrop, n = 4, rad = 1, zero = 0) {
    float wedges = 0.5f * n / PI;
    Pair a = circle((real)(PI / n));
    real length = 1.0f / a.x, d = rad * a.y * length;
    Pair c = from_polar(length, floor_of(angle_of(y, x) * wedges) / wedges + PI / n);
    real u = x - c.x, v = y - c.y, r = vnorm(u, v);
    mask inside = r < d;
    real px = zero > 1.5f ? c.x : zero > 0.5f ? zero_real() : c.x + u / r * d;
    real py = zero > 1.5f ? c.y : zero > 0.5f ? zero_real() : c.y + v / r * d;
    return triple(weight * (inside ? px : x), weight * (inside ? py : y), weight * (inside ? zero_real() : z));
}

VARIATION_3D(sphere_nja, circle_a = 1, circle_b = 1, shift_x = 0, shift_y = 0, shift_z = 0, stretch = 1) {
    real u = x - shift_x, v = y - shift_y, h = z - shift_z, s = vnorm(u, v);
    Pair c = circle(s / stretch - 0.5f * PI);
    real r = weight * c.x, w = weight * c.y, k = r * (1.0f + h) / s;
    return triple(k * u + shift_x, k * v + shift_y, w + h * w / (r * r + w * w) + shift_z);
}

VARIATION_3D(farblur, x = 1, y = 1, z = 1, x_origin = 0, y_origin = 0, z_origin = 0) {
    real r = weight * (square(x - x_origin) + square(y - y_origin) + square(z - z_origin)) * gauss4(random);
    Pair u = circle(TWO_PI * uniform(random)), v = circle(TWO_PI * uniform(random));
    return triple(x + farblur_x * r * v.y * u.x, y + farblur_y * r * v.y * u.y, z + farblur_z * r * v.x);
}

REPLACING(rblur, strength = 1, offset = 1, center_x = 0, center_y = 1) {
    real r = greatest(vnorm(x - center_x, y - center_y) - offset, zero_real()) * (2.0f * strength);
    real u = x + (uniform(random) - 0.5f) * r;
    return scaled(weight, u, y + (uniform(random) - 0.5f) * r);
}

VARIATION_3D(flower_db, petals = 6, petal_split = 0, petal_spread = 1, stem_thickness = 1, stem_length = 0,
             petal_fold_strength = 0, petal_fold_radius = 1) {
    real t = angle_of(y, x), r = weight * vnorm(x, y);
    r = r * magnitude((petal_spread + sine_of(petals * t)) * cosine_of(petal_split * petals * t));
    real h = -stem_thickness * (2.0f / r - 1.0f);
    h = r > petal_fold_radius ? h + (r - petal_fold_radius) * petal_fold_strength : h;
    if (stem_length != 0.0f) h = greatest(h, (real)(-stem_length));
    Pair c = circle(t);
    return triple(r * c.y, r * c.x, h);
}

VARIATION_3D(hourglass3D, kx = 1, ky = 1, kz = 1, maxheight = 3.9086825296700543, limit = 1, zero = 0) {
    Pair c = circle(x), h = hyperbola(y);
    float top = sqrt(1.0f + (maxheight / ky) * (maxheight / ky)), side = sqrt(top * top - 1.0f);
    mask low = h.x <= top;
    real wide = low || limit == 0.0f ? h.x : (real)(top), high = low || limit == 0.0f ? h.y : side * sign_of(h.y);
    real kept = limit != 0.0f && zero != 0.0f ? (low ? (real)(1.0f) : zero_real()) : (real)(1.0f);
    return triple(weight * kx * wide * c.y * kept, weight * ky * high * kept, weight * kz * wide * c.x * kept);
}
