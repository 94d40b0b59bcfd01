// Variations of space: they define z.
// Origin: JWildfire

VARIATION_3D(spherical3D) {
    real k = weight / (x * x + y * y + z * z + 1e-30f);
    return triple(k * x, k * y, k * z);
}

VARIATION_3D(hemisphere) {
    real k = weight / sqrt(x * x + y * y + 1.0f);
    return triple(k * x, k * y, k);
}

VARIATION_3D(julia3D, power = -3) {
    float n = fabs(power);
    real v = z / n, r2 = x * x + y * y, k = weight * power_of(r2 + v * v, (real)((1.0f / power - 1.0f) * 0.5f));
    real turn = random_index(uniform(random), n);
    Pair c = circle((angle_of(y, x) + TWO_PI * turn) / power);
    real r = k * sqrt(r2);
    if (power == 1.0f || power == -1.0f) return triple(k * x, k * y, k * z);
    return triple(r * c.x, r * c.y, k * v);
}

VARIATION_3D(julia3Dz, power = 4) {
    float n = fabs(power);
    real r2 = x * x + y * y, k = weight * power_of(r2, (real)(1.0f / power * 0.5f));
    Pair c = circle((angle_of(y, x) + TWO_PI * random_index(uniform(random), n)) / power);
    return triple(k * c.x, k * c.y, k * z / (sqrt(r2) * n));
}

VARIATION_3D(curl3D, cx = 0, cy = 0.05, cz = 0.05) {
    real r2 = x * x + y * y + z * z;
    float c2 = cx * cx + cy * cy + cz * cz;
    real k = weight / (r2 * c2 + 2.0f * cx * x - 2.0f * cy * y + 2.0f * cz * z + 1.0f);
    return triple(k * (x + cx * r2), k * (y - cy * r2), k * (z + cz * r2));
}

VARIATION_3D(blade3D) {
    Pair c = circle(uniform(random) * weight * vnorm(x, y));
    return triple(weight * x * (c.x + c.y), weight * x * (c.x - c.y), weight * y * (c.y - c.x));
}

VARIATION_3D(blob3D, low = 0.3, high = 1.2, waves = 6) {
    real s = sine_of(waves * atan_xy(y, x)), k = weight * (low + (high - low) * (0.5f + 0.5f * s));
    return triple(k * x, k * y, k * s * vnorm(x, y));
}

VARIATION_3D(waves2_3D, freq = 2, scale = 1) {
    real u = x + scale * sine_of(y * freq), v = y + scale * sine_of(x * freq);
    return triple(weight * u, weight * v, weight * (z + scale * sine_of(0.5f * (x + y) * freq)));
}

VARIATION_3D(bubble2, x = 1, y = 1, z = 0) {
    real k = weight / ((x * x + y * y + z * z) * 0.25f + 1.0f);
    real shifted = z >= 0.0f ? z + bubble2_z : z - bubble2_z;
    return triple(k * x * bubble2_x, k * y * bubble2_y, weight * shifted + k * z * bubble2_z);
}

VARIATION_3D(pyramid) {
    real u = cube(x), v = cube(y), h = magnitude(cube(z));
    real k = weight / (magnitude(u) + magnitude(v) + h + 1e-9f);
    return triple(k * u, k * v, k * h);
}

VARIATION_3D(disc3d, pi = 3.141592653589793) {
    real r = sqrt(x * x + y * y + 1e-30f), k = weight * atan_xy(y, x) / (pi + 1e-30f);
    Pair c = circle(pi * r);
    return triple(k * c.y, k * c.x, k * r * cosine_of(z));
}

VARIATION_3D(pie3D, slices = 7, rotation = 0, thickness = 0.5) {
    real slice = truncation(uniform(random) * slices + 0.5f);
    Pair c = circle(rotation + TWO_PI * (slice + uniform(random) * thickness) / slices);
    real r = weight * uniform(random);
    return triple(r * c.x, r * c.y, r * sine_of(r));
}

VARIATION_3D(square3D) {
    real u = weight * (uniform(random) - 0.5f), v = weight * (uniform(random) - 0.5f);
    return triple(u, v, weight * (uniform(random) - 0.5f));
}

VARIATION_3D(tile_log, spread = 1) {
    real s = uniform(random) < 0.5f ? (real)(spread) : (real)(-spread);
    real step = floor_of(s * logarithm_of(uniform(random)) + 0.5f);
    return triple(weight * (x + step), weight * y, weight * z);
}

VARIATION_3D(exblur, dist = 0.5, r = 0.25, x_origin = 0, y_origin = 0, z_origin = 0) {
    real u = x - x_origin, v = y + y_origin, h = z - z_origin, n = u * u + v * v + h * h;
    real k = weight * power_of(n, (real)(dist)) * gauss4(random);
    Pair t = circle(angle_of(v, u)), a = circle(TWO_PI * uniform(random)), b = circle(TWO_PI * uniform(random));
    real cv = h / sqrt(n), sv = sqrt(greatest(1.0f - cv * cv, (real)(0.0f))), s = r * b.y;
    return triple(k * (sv * t.x + s * a.x), k * (sv * t.y + s * a.y), k * (cv + r * b.x));
}

VARIATION_3D(octagon, x = 0, y = 0, z = 0, mode = 1) {
    real r = square(x * x) + square(y * y) + 2.0f * z * z;
    real t = magnitude(x) + magnitude(y) + 2.0f * sqrt(mode > 1.0f ? magnitude(z) : z);
    r = r == 0.0f ? (real)(1e-30f) : r;
    t = t == 0.0f ? (real)(1e-30f) : t;
    mask small = mode < 5.0f ? r <= 0.5f * weight : t <= 0.5f * weight;
    real inside = 1.0f + 1.0f / t, outside = 1.0f / r;
    mask split = small;
    if (mode == 1.0f) {
        outside = weight >= 0.0f ? 1.0f / r + 1.0f / t : 1.0f + 1.0f / r;
        split = small || !small;
    }
    if (mode == 2.0f) outside = 1.0f + 1.0f / r;
    if (mode == 3.0f || mode == 5.0f) inside = 1.0f / t;
    if (mode == 4.0f) inside = 1.0f / r;
    real k = weight * (small ? inside : outside);
    real u = split ? (x >= 0.0f ? x + octagon_x : x - octagon_x) : (real)(0.0f);
    real v = split ? (y >= 0.0f ? y + octagon_y : y - octagon_y) : (real)(0.0f);
    real h = split ? (z >= 0.0f ? z + octagon_z : z - octagon_z) : (real)(0.0f);
    return triple(k * x + weight * u, k * y + weight * v, k * z + weight * h);
}

VARIATION_3D(superShape3d, rho = 9.9, phi = 2.5, m1 = 6, m2 = 3, a1 = 1, a2 = 1, b1 = 1, b2 = 1, n1_1 = 1, n1_2 = 1,
             n2_1 = 1, n2_2 = 1, n3_1 = 1, n3_2 = 1, spiral = 0, toroidmap = 0) {
    real rho1 = uniform(random) * (rho * (2.0f / PI)), phi1 = uniform(random) * (phi * (2.0f / PI));
    phi1 = uniform(random) < 0.5f ? phi1 : -phi1;
    Pair r = circle(rho1), p = circle(phi1), mr = circle(0.25f * m1 * rho1), mp = circle(0.25f * m2 * phi1);
    real pr1 = power_of((real)(fabs(1.0f / a1)), (real)(n2_1)) * power_of(magnitude(mr.x), (real)(n2_1)) +
               power_of((real)(fabs(1.0f / b1)), (real)(n3_1)) * power_of(magnitude(mr.y), (real)(n3_1));
    real pr2 = power_of((real)(fabs(1.0f / a2)), (real)(n2_2)) * power_of(magnitude(mp.x), (real)(n2_2)) +
               power_of((real)(fabs(1.0f / b2)), (real)(n3_2)) * power_of(magnitude(mp.y), (real)(n3_2));
    real r1 = power_of(pr1, (real)(-1.0f / n1_1)) + spiral * rho1, r2 = power_of(pr2, (real)(-1.0f / n1_2));
    real k = toroidmap == 1.0f ? r1 + r2 * p.x : r1 * r2 * p.x;
    return triple(weight * k * r.x, weight * k * r.y, weight * r2 * p.y);
}

VARIATION_3D(ztranslate) { return triple(zero_real(), zero_real(), (real)(weight)); }

VARIATION_3D(zscale) { return triple(zero_real(), zero_real(), weight * z); }

VARIATION_3D(zcone) { return triple(zero_real(), zero_real(), weight * vnorm(x, y)); }

VARIATION_3D(inflateZ_1) { return triple(zero_real(), zero_real(), weight * (sine_of(angle_of(y, x)) - 2.0f * y)); }

VARIATION_3D(inflateZ_3) {
    real a = angle_of(y, x);
    return triple(zero_real(), zero_real(), weight * 0.2f * (PI - a) * cosine_of(3.0f * a + (y - x)));
}

VARIATION_3D(inflateZ_4) {
    real a = 0.5f * PI - angle_of(y, x);
    return triple(zero_real(), zero_real(), weight * 0.25f * (uniform(random) < 0.5f ? -a : a));
}

VARIATION_3D(inflateZ_5) { return triple(zero_real(), zero_real(), weight * 0.5f * sine_of(angle_of(y, x))); }

VARIATION_3D(inflateZ_6) {
    real a = angle_of(y, x), k = a * sine_of(y - x);
    return triple(zero_real(), zero_real(), weight * (1.5f - arccosine(sine_of(a) * k * 0.5f)));
}

// The maps of z alone below are written as post_ in files.
VARIATION_3D(rotate_x) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(x, c.y * z + c.x * y, c.x * z - c.y * y);
}

VARIATION_3D(rotate_y) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(c.x * x - c.y * z, y, c.y * x + c.x * z);
}

VARIATION_3D(rotate_z) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(c.y * y + c.x * x, c.x * y - c.y * x, z);
}

VARIATION_3D(line, delta = 0, phi = 0) {
    Pair d = circle((real)(delta * PI)), p = circle((real)(phi * PI));
    real r = weight * uniform(random);
    return triple(r * d.x * p.x, r * d.y * p.x, r * p.y);
}

VARIATION_3D(foci_3D) {
    real e = 0.5f * exponential_of(x), n = 0.25f / e, a = z == 0.0f ? angle_of(y, x) : z;
    Pair c = circle(y), s = circle(a);
    real k = weight / (e + n - c.x * s.x);
    return triple(k * (e - n), k * c.y, k * s.y);
}

VARIATION_3D(hypertile3D2, p = 3, q = 7) {
    real cp = cosine_of((real)(TWO_PI / p)), cq = cosine_of((real)(TWO_PI / q)), r = (1.0f - cp) / (cp + cq);
    real c = r > 0.0f ? 1.0f / sqrt(1.0f + r) : (real)(1.0f), c2 = c * c, r2 = x * x + y * y + z * z;
    real u = x * (1.0f + c2) + c * (r2 + 1.0f), v = y * (1.0f - c2), k = weight / (c2 * r2 + 2.0f * c * x + 1.0f);
    Pair t = circle(TWO_PI / p * random_index(uniform(random), fabs(p)));
    return triple(k * (u * t.x + v * t.y), k * (v * t.x - u * t.y), k * z * (1.0f - c2));
}

VARIATION_3D(julia3Dq, power = 2, divisor = 2) {
    float ratio = divisor / power;
    real a = angle_of(y, x) * ratio + TWO_PI / power * random_index(uniform(random), fabs(power));
    real h = z * fabs(ratio), r2 = x * x + y * y, k = weight * power_of(r2 + h * h, (real)(0.5f * ratio - 0.5f));
    Pair c = circle(a);
    real r = k * sqrt(r2);
    return triple(r * c.x, r * c.y, k * h);
}

VARIATION_3D(lazysensen, scale_x = 1, scale_y = 1, scale_z = 0) {
    real u = floor_of(x * scale_x), v = floor_of(y * scale_y), w = floor_of(z * scale_z);
    // odd cells are mirrored from 0 on, and below 0 the even ones
    mask mx = (u - 2.0f * floor_of(0.5f * u) != 0.0f) == (u >= 0.0f);
    mask my = (v - 2.0f * floor_of(0.5f * v) != 0.0f) == (v >= 0.0f);
    mask mz = (w - 2.0f * floor_of(0.5f * w) != 0.0f) == (w >= 0.0f);
    real a = mx ? -x : x, b = my ? -y : y, c = mz ? -z : z;
    return triple(weight * (scale_x != 0.0f ? a : x), weight * (scale_y != 0.0f ? b : y),
                  weight * (scale_z != 0.0f ? c : z));
}

REPLACING_3D(triangle, x1 = -0.2, y1 = -0.1, z1 = 0, x2 = 0.2, y2 = -0.1, z2 = 0, x3 = 0.2, y3 = 0.1, z3 = 0) {
    real s = sqrt(uniform(random)), t = uniform(random), a = 1.0f - s, b = s * (1.0f - t), c = t * s;
    return triple(weight * (a * x1 + b * x2 + c * x3), weight * (a * y1 + b * y2 + c * y3),
                  weight * (a * z1 + b * z2 + c * z3));
}
