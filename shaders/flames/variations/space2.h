// More variations of space: quaternion functions, maps of x, y and z.
// Origin: JWildfire

VARIATION_3D(cylinder_apo) { return triple(weight * sine_of(x), weight * y, weight * cosine_of(x)); }

VARIATION_3D(tangent3D) {
    return triple(weight * sine_of(x) / cosine_of(y), weight * tangent_of(y), weight * tangent_of(x));
}

VARIATION_3D(whitney_umbrella) { return triple(weight * x * y, weight * x, weight * y * y); }

VARIATION_3D(inflateZ_2) { return triple(zero_real(), zero_real(), weight * (0.25f - 2.0f * (x + y) * 0.333333f)); }

VARIATION_3D(sinusoidal3d) {
    return triple(weight * sine_of(x), weight * sine_of(y), weight * angle_of(x * x, y * y) * cosine_of(z));
}

VARIATION_3D(ovoid3d, x = 0.92, y = 0.92, z = 0.92) {
    real k = weight / (x * x + y * y + z * z + 1e-30f);
    return triple(k * x * ovoid3d_x, k * y * ovoid3d_y, k * z * ovoid3d_z);
}

VARIATION_3D(svf, n = 2) {
    real k = cosine_of(n * y);
    Pair u = circle(x), v = circle(y);
    return triple(weight * v.x * k * u.x, weight * v.x * k * u.y, weight * v.y * k);
}

VARIATION_3D(bubble_wf) {
    real r = 0.25f * (x * x + y * y) + 1.0f, k = weight / r, h = weight * (2.0f / r - 1.0f);
    return triple(k * x, k * y, uniform(random) < 0.5f ? -h : h);
}

// ---- functions of the quaternion x + y j + z k, by zephyrtronium

VARIATION_3D(estiq) {
    real v = vnorm(y, z), e = weight * exponential_of(x);
    Pair c = circle(v);
    real k = e * c.y / v;
    return triple(e * c.x, k * y, k * z);
}

VARIATION_3D(loq, base = 2.718281828459045) {
    real v = vnorm(y, z), k = weight * angle_of(v, x) / v;
    return triple(0.5f * weight / logarithm_of((real)(base)) * logarithm_of(x * x + v * v), k * y, k * z);
}

VARIATION_3D(sinq) {
    real v = vnorm(y, z);
    Pair c = circle(x), h = hyperbola(v);
    real k = weight * c.x * h.y / v;
    return triple(weight * c.y * h.x, k * y, k * z);
}

VARIATION_3D(cosq) {
    real v = vnorm(y, z);
    Pair c = circle(x), h = hyperbola(v);
    real k = -weight * c.y * h.y / v;
    return triple(weight * c.x * h.x, k * y, k * z);
}

VARIATION_3D(sinhq) {
    real v = vnorm(y, z);
    Pair c = circle(v), h = hyperbola(x);
    real k = weight * h.x * c.y / v;
    return triple(weight * h.y * c.x, k * y, k * z);
}

VARIATION_3D(coshq) {
    real v = vnorm(y, z);
    Pair c = circle(v), h = hyperbola(x);
    real k = weight * h.y * c.y / v;
    return triple(weight * h.x * c.x, k * y, k * z);
}

VARIATION_3D(cscq) {
    real v = vnorm(y, z), n = weight / (x * x + y * y + z * z);
    Pair c = circle(x), h = hyperbola(v);
    real k = n * c.x * h.y / v;
    return triple(n * c.y * h.x, -k * y, -k * z);
}

VARIATION_3D(secq) {
    real v = vnorm(y, z), n = weight / (x * x + y * y + z * z);
    Pair c = circle(-x), h = hyperbola(v);
    real k = n * c.y * h.y / v;
    return triple(n * c.x * h.x, -k * y, -k * z);
}

VARIATION_3D(cschq) {
    real v = vnorm(y, z), n = weight / (x * x + y * y + z * z);
    Pair c = circle(v), h = hyperbola(x);
    real k = n * h.x * c.y / v;
    return triple(n * h.y * c.x, -k * y, -k * z);
}

VARIATION_3D(sechq) {
    real v = vnorm(y, z), n = weight / (x * x + y * y + z * z);
    Pair c = circle(v), h = hyperbola(x);
    real k = n * h.y * c.y / v;
    return triple(n * h.x * c.x, -k * y, -k * z);
}

// A quotient of two quaternions: s t along the real axis, and (t b - s a) of the imaginary part.
DEVICE Triple quaternion_quotient(float weight, real x, real y, real z, real s, real t, real a, real b, real sign) {
    real yz = y * y + z * z, n = weight / (x * x + yz), k = n * (a * t - s * b) * sign;
    return triple(n * (s * t + a * b * yz), k * y, k * z);
}

VARIATION_3D(tanhq) {
    real v = vnorm(y, z);
    Pair c = circle(v), h = hyperbola(x);
    return quaternion_quotient(weight, x, y, z, h.y * c.x, h.x * c.x, h.x * c.y / v, h.y * c.y / v, (real)(1.0f));
}

VARIATION_3D(cothq) {
    real v = vnorm(y, z);
    Pair c = circle(v), h = hyperbola(x);
    return quaternion_quotient(weight, x, y, z, h.y * c.x, h.x * c.x, h.x * c.y / v, h.y * c.y / v, (real)(1.0f));
}

VARIATION_3D(tanq) {
    real v = vnorm(y, z);
    Pair c = circle(x), h = hyperbola(v);
    return quaternion_quotient(weight, x, y, z, c.y * h.x, c.x * h.x, c.x * h.y / v, -c.y * h.y / v, (real)(1.0f));
}

VARIATION_3D(cotq) {
    real v = vnorm(y, z);
    Pair c = circle(x), h = hyperbola(v);
    return quaternion_quotient(weight, x, y, z, c.y * h.x, c.x * h.x, c.x * h.y / v, -c.y * h.y / v, (real)(-1.0f));
}

// ---- others

VARIATION_3D(helix, frequency = 1, width = 0.5) {
    Pair c = circle(z * (TWO_PI * frequency));
    return triple(weight * (x + c.x * width), weight * (y + c.y * width), weight * z);
}

VARIATION_3D(helicoid, frequency = 1) {
    Pair p = from_polar(weight * vnorm(x, y), z * (TWO_PI * frequency) + angle_of(y, x));
    return triple(p.x, p.y, weight * z);
}

VARIATION_3D(pdj3D, a = 1, b = 2, c = 3, d = 4, e = 2, f = 0, g = 2, h = 0) {
    real u = sine_of(a * y) - cosine_of(b * x), v = sine_of(c * x) - cosine_of(d * y);
    real w = weight * (sine_of(e * y) - cosine_of(f * z)) * cosine_of(g * x) + sine_of(h * z);
    return triple(weight * u, weight * v, w);
}

VARIATION_3D(sph3D, x = 0.75, y = 1, z = 0.5) {
    real u = sph3D_x * x, v = sph3D_y * y, w = sph3D_x * z, k = weight / (u * u + v * v + w * w + 1e-29f);
    return triple(k * x, k * y, k * z);
}

VARIATION_3D(zblur) { return triple(zero_real(), zero_real(), weight * gauss4(random)); }

VARIATION_3D(linearT3D, powX = 1.35, powY = 0.85, powZ = 1.15) {
    real u = power_of(magnitude(x), (real)(powX)), v = power_of(magnitude(y), (real)(powY));
    real w = power_of(magnitude(z), (real)(powZ));
    return triple(weight * (x > 0.0f ? u : -u), weight * (y > 0.0f ? v : -v), weight * (z > 0.0f ? w : -w));
}

VARIATION_3D(butterfly3D) {
    real v = 2.0f * y, k = weight * 1.3029400317411197909f * sqrt(magnitude(x * y) / (1e-30f + x * x + v * v));
    return triple(k * x, k * v, k * magnitude(v) * vnorm(x, y) * 0.25f);
}

VARIATION_3D(splits3D, x = 0.1, y = 0.3, z = 0.2) {
    return triple(weight * (x + sign_nonnegative(x) * splits3D_x), weight * (y + sign_nonnegative(y) * splits3D_y),
                  weight * (z + sign_nonnegative(z) * splits3D_z));
}

VARIATION_3D(taurus, r = 3, n = 5, inv = 1.5, sor = 1) {
    Pair u = circle(x), v = circle(y);
    real k = inv * r + (1.0f - inv) * (r * cosine_of(n * x)) + v.y;
    return triple(weight * u.x * k, weight * u.y * k, weight * sor * v.x + (1.0f - sor) * y);
}

VARIATION_3D(dinis_surface_wf, a = 0.8, b = 0.2) {
    Pair u = circle(x), v = circle(y);
    *hidden = magnitude(y) <= 1e-9f;
    real h = a * (v.x + logarithm_of(tangent_of(0.5f * magnitude(y)))) + b * x;
    return triple(weight * a * u.x * v.y, weight * a * u.y * v.y, -weight * h);
}

VARIATION_3D(ennepers2, a = 1, b = 0.3333, c = 0.075) {
    real k = 1.0f / (x * x + y * y), d = square(a * x) - square(b * y);
    return triple(weight * x * (a * a - d * k - c * sqrt(magnitude(x))),
                  weight * y * (b * b - d * k - c * sqrt(magnitude(y))), weight * d * 0.5f * sqrt(k));
}

VARIATION_3D(scry_3D) {
    real r2 = x * x + y * y + z * z, k = 1.0f / (sqrt(r2) * (r2 + 1.0f / (weight + 1e-30f)));
    return triple(k * x, k * y, k * (z != 0.0f ? z : angle_of(y, x)));
}

VARIATION_3D(log_tile2, spreadx = 2, spready = 2, spreadz = 0) {
    real u = uniform(random) < 0.5f ? (real)(spreadx) : (real)(-spreadx);
    real v = uniform(random) < 0.5f ? (real)(spready) : (real)(-spready);
    real w = uniform(random) < 0.5f ? (real)(spreadz) : (real)(-spreadz);
    return triple(weight * (x + u * floor_of(logarithm_of(uniform(random)) + 0.5f)),
                  weight * (y + v * floor_of(logarithm_of(uniform(random)) + 0.5f)),
                  weight * (z + w * floor_of(logarithm_of(uniform(random)) + 0.5f)));
}

VARIATION_3D(cone, radius1 = 0.5, radius2 = 1, size1 = 0.5, size2 = 2, ywave = 1, xwave = 1, height = 1, warp = 1,
             weight = 2) {
    real r = weight / sqrt(x * x * warp + y * y + size1) * size2;
    real a = atan_xy(y, x) * radius1 + PI * truncation(cone_weight * uniform(random)) * radius2;
    return triple(r * cosine_of(a * xwave), r * sine_of(a * ywave), r * height);
}

VARIATION_3D(loonie_3D) {
    float w2 = weight * weight;
    real h = z == 0.0f ? angle_of(y, x) : z, r2 = x * x + y * y + h * h;
    real k = r2 < 1e-9f ? zero_real() : r2 < w2 ? weight * sqrt(w2 / r2 - 1.0f) : (real)(weight);
    return triple(k * x, k * y, 0.5f * k * h);
}

VARIATION_3D(spherical3D_wf, invert = 0, exponent = 2) {
    real k = weight * power_of(x * x + y * y + z * z + 1e-30f, (real)(-0.5f * exponent));
    k = invert == 0.0f ? k : -k;
    return triple(k * x, k * y, k * z);
}

VARIATION_3D(sinusgrid, ampx = 0.5, ampy = 0.6, freqx = 1.2, freqy = 1) {
    real u = -cosine_of(x * (freqx * TWO_PI)), v = -cosine_of(y * (freqy * TWO_PI));
    return triple(weight * (x + ampx * (u - x)), weight * (y + ampy * (v - y)), weight * z);
}

VARIATION_3D(seashell3D, final_radius = 0.25, height = 3.5, inner_radius = 0.4, nSpirals = 3) {
    real t = uniform(random), r = final_radius * (1.0f - t);
    Pair c = circle(nSpirals * (TWO_PI * t)), s = circle(TWO_PI * uniform(random));
    real k = r * (1.0f + s.x) + inner_radius;
    return triple(weight * k * c.x, weight * k * c.y, weight * (height * t + r * s.y));
}

VARIATION_3D(swirl3D_wf, n = 0) {
    real s = sine_of(6.0f * cosine_of(vnorm(x, y)) - floor(n + 0.5f) * angle_of(y, x));
    *color = magnitude(s);
    return triple(weight * x, weight * y, weight * s);
}

// z becomes 0.
POST_3D(flatten) { return triple(x, y, zero_real()); }
