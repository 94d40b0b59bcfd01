// Stamps of direct color: a picture of red, green and blue over a square, whose places are drawn at random (dc_), or
// over the plane (ColorOnly 1).
// Origin: JWildfire

// The picture's places carry over from channel to channel.
DEVICE Triple acrylic(Pair p, float time, float steps, float p1, float p2, float p3, float p4, float p5, float p6,
                      float red, float green, float blue) {
    real c[3];
    for (int channel = 0; channel < 3; channel++) {
        float j = (float)channel;
        for (int k = 1; (float)k < steps; k++) {
            float i = (float)k, step = 0.1f / (i + j);
            p.x = p.x + step * sine_of(i * p1 * p.y + time + cosine_of((real)(time / p2 + j)));
            p.y = p.y + step * cosine_of(i * p3 * p.x + time + sine_of((real)(time / p4 + j)));
        }
        c[channel] = sine_of(p5 * p.x * p.x) + sine_of(p6 * p.y * p.y);
    }
    return triple(cosine_of(c[0] * red), cosine_of(c[1] * green), cosine_of(c[2] * blue));
}

VARIATION_3D(dc_acrilic, seed = 10000, time = 0, zoom = 0.7, steps = 10 [3, 100], p1 = 12 [1, 100], p2 = 12 [1, 100],
             p3 = 12 [1, 100], p4 = 12 [1, 100], p5 = 75 [1, 100], p6 = 75 [1, 100], redf = 1 [0, 5], greenf = 1 [0, 5],
             bluef = 1 [0, 5], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    Triple c = acrylic(scaled((real)(zoom), p.x, p.y), time, steps, p1, p2, p3, p4, p5, p6, redf, greenf, bluef);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_acrilic, Density_Pixels = 1000000, Seed = 10000, time = 0, Steps = 10 [3, 100], p1 = 12, p2 = 12,
          p3 = 12, p4 = 12, p5 = 75, p6 = 75, Red_Fac = 1, Green_Fac = 1, Blue_Fac = 1, Gradient = 0) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 0.7f, 0.0f);
    Triple c = acrylic(q, time, Steps, p1, p2, p3, p4, p5, p6, Red_Fac, Green_Fac, Blue_Fac);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}

// m v / (v . v), folded
DEVICE Triple apollonian(Pair p, float time) {
    float t = 0.05f * time;
    Pair a = circle((real)(t + 1.0f)), b = circle((real)(t + 2.0f)), c = circle((real)(t + 3.0f));
    Triple one = triple(b.x * c.x, -b.x * c.y, b.y);
    Triple two = triple(a.y * b.y * c.x + a.x * c.y, a.x * c.x - a.y * b.y * c.y, -a.y * b.x);
    Triple three = triple(a.y * c.y - a.x * b.y * c.x, a.x * b.y * c.y + a.y * c.x, a.x * b.x);
    real k = 1.2f + 0.1f * sine_of((real)(0.1f * time)), f = 2.0f + 0.25f * sine_of((real)(0.3f * time));
    real u = 2.0f * f * p.x, v = 2.0f * f * p.y;
    Triple q = triple(one.x * u + two.x * v, one.y * u + two.y * v, one.z * u + two.z * v);
    for (int i = 0; i < 50; i++) {
        real s = 0.5f * k / dot3(q, q);
        Triple r = triple(one.x * q.x + two.x * q.y + three.x * q.z, one.y * q.x + two.y * q.y + three.y * q.z,
                          one.z * q.x + two.z * q.y + three.z * q.z);
        q = triple(2.0f * magnitude(s * r.x - 0.5f) - 1.0f, 2.0f * magnitude(s * r.y - 0.5f) - 1.0f,
                   2.0f * magnitude(s * r.z - 0.5f) - 1.0f);
    }
    return triple(0.6f * sine_of(q.x) + 0.5f, 0.6f * sine_of(q.y) + 0.5f, 0.6f * sine_of(q.z) + 0.5f);
}

VARIATION_3D(dc_apollonian, seed = 10000, time = 0, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    return stamped(weight, p, apollonian(p, time), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_apollonian, Density_Pixels = 1000000, seed = 10000, time = 0, Gradient = 0) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels);
    Triple c = apollonian(pixel_center(p, Density_Pixels, 2.0f, 1.0f), time);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 1.0f);
}

VARIATION_3D(dc_booleans, randomize = 1000, type = 1, zoom = 1000, ColorOnly = 0, Gradient = 0, scale_z = 0,
             offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    whole a = truncated(p.x * zoom + table[0]), b = truncated(p.y * zoom + table[1]);
    real n = real_of(type == 0.0f ? a ^ b : type == 1.0f ? a & b : type == 2.0f ? a | b : a * 0);
    real hue = sine_of(n), value = cosine_of(n);
    real r = clamped(magnitude(wrap_unit(hue + 1.0f) * 6.0f - 3.0f) - 1.0f, zero_real(), (real)(1.0f));
    real g = clamped(magnitude(wrap_unit(hue + 0.66666667f) * 6.0f - 3.0f) - 1.0f, zero_real(), (real)(1.0f));
    real t = clamped(magnitude(wrap_unit(hue + 0.33333333f) * 6.0f - 3.0f) - 1.0f, zero_real(), (real)(1.0f));
    return stamped(weight, p, triple(r * value, g * value, t * value), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_cairotiles, zoom = 7, seed = 10000, time = 0, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random), th = modulo((real)(time * PI / 5.0f), TWO_PI);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v), c = circle(th);
    real grid = (0.5f + magnitude(sine_of(2.0f * th)) * 0.20710678f) * 2.0f;
    mask flip = wrap_unit(th * (1.0f / PI) + 0.25f) > 0.5f;
    real shift = flip ? (real)(0.5f) : zero_real();
    real a = (p.x * zoom - shift) * grid, b = (p.y * zoom - shift) * grid;
    real ca = floor_of(a / grid), cb = floor_of(b / grid);
    a = (a - grid * ca - 0.5f * grid) * (modulo(ca, 2.0f) * 2.0f - 1.0f);
    b = (b - grid * cb - 0.5f * grid) * (modulo(cb, 2.0f) * 2.0f - 1.0f);
    Pair q = spun(pair(a, b), c.x, c.y);
    float w = zoom / 2000.0f * 1.5f;
    real level = smooth_step((real)(-w), (real)(w), greatest(magnitude(q.x), magnitude(q.y)) - 0.5f);
    level = flip ? 1.0f - level : level;
    real side = (magnitude(q.x) - magnitude(q.y)) * sign_of(wrap_unit(th * (1.0f / PI)) - 0.5f);
    real other = modulo(ca + cb, 2.0f) - 0.5f;
    level = level < 0.5f && (flip ? side : other) > 0.0f ? (real)(0.4f) : level;
    Triple shade = gray(power_of(level, (real)(1.0f / 2.2f)));
    return stamped(weight, p, shade, color, rgb, Gradient, scale_z, offset_z);
}

DEVICE Triple blue_circles(Pair p, float time, float radius, float bubbles) {
    Triple sum = gray(zero_real());
    for (int k = 0; (float)k < bubbles; k++) {
        real i = (real)((float)k), phase = 0.5f * tangent_of(6.0f * i + 1.0f) + 0.5f;
        real size = square(square(cosine_of(2.4f * i + 5.0f) * 0.5f + 0.5f)), place = cosine_of(3.55f * i + 4.1f);
        real r = radius + sine_of(i) * 0.12f + 0.08f;
        real a = place + sine_of(time / 15.0f + phase + size);
        real b = (2.0f + 2.0f * r) * modulo(phase + 0.1f * (time / 5.0f) * (0.2f + 0.8f * size), 1.0f) - 1.0f - r;
        real d = vnorm(p.x - a, p.y - b), t = 0.5f + 0.5f * sine_of(i * sine_of(time * place * 0.03f) + 1.9f);
        real inner = r * (0.65f + 0.20f * sine_of(place * time));
        real k1 = (1.0f - smooth_step(inner, r, d)) * (1.0f - cosine_of(place * time));
        sum =
            triple(sum.x + k1 * blend((real)(0.1f), (real)(0.2f), t), sum.y + k1 * blend((real)(0.2f), (real)(0.8f), t),
                   sum.z + k1 * blend((real)(0.8f), (real)(0.6f), t));
    }
    return triple(0.3f * sum.x, 0.3f * sum.y, 0.3f * sum.z);
}

VARIATION_3D(dc_circlesblue, seed = 10000, time = 1 [1, 1000], zoom = 1 [0.01, 100], radius = 0.04 [0, 1],
             bubles = 40 [1, 100], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    Triple c = blue_circles(scaled((real)(zoom), p.x, p.y), time, radius, bubles);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_circlesblue, Density_Pixels = 1000000, Seed = 10000, time = 1, Radiusy = 0.04, Bubles = 40 [1, 100],
          Gradient = 0) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels);
    Triple c = blue_circles(pixel_center(p, Density_Pixels, 2.0f, 1.0f), time, Radiusy, Bubles);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}

VARIATION_3D(dc_ducks, seed = 10000, time = 10, zoom = 1, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random), t = (real)(time / 65.0f * 30.0f), c = zero_real();
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v), q = scaled((real)(zoom), p.x, p.y);
    real a = 0.1f * sine_of(t / 3.0f) - 0.1f, b = 5.0f + 0.1f * cosine_of(t / 5.0f);
    for (int i = 0; i < 50; i++) {
        real w = magnitude(q.y);
        q = pair(logarithm_of(vnorm(q.x, w)) + a, rough_angle(w, q.x) - 6.2f + b);
        c = c + vnorm(q.x, q.y);
    }
    real d = log2_of(log2_of(c * 0.05f)) * 6.0f;
    real r = floor_of(0.5f + 1.1f * (0.1f + 0.7f * sine_of(d))) / 1.1f;
    real g = floor_of(0.5f + 1.1f * (0.1f + 0.5f * sine_of(d - 0.7f))) / 1.1f;
    real e = floor_of(0.5f + 1.1f * (0.7f + 0.7f * cosine_of(d - 0.7f))) / 1.1f;
    return stamped(weight, p, triple(e, r, g), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_fingerprint, zoom = 50 [1, 100], seed = 10000, time = 0, width = 0.8 [0, 1], ColorOnly = 0,
             Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v), q = scaled((real)(zoom), p.x, p.y);
    real bounds = smooth_step((real)(9.0f), (real)(10.0f), vnorm(0.7f * q.x, 0.5f * q.y)), a = zero_real();
    real hx = floor_of((real)(7.0f * time)), hy = zero_real();
    for (int i = 0; i < 50; i++) {
        real s = sign_of(hx), m = hx * 63.31f + hy * 127.63f, n = hx * 395.467f + hy * 213.799f;
        hx = 15.0f * (2.0f * wrap_unit(sine_of(m) * 43141.59265f) - 1.0f);
        hy = 20.0f * (2.0f * wrap_unit(sine_of(n) * 43141.59265f) - 1.0f);
        a = a + s * rough_angle(q.x - hx, q.y - hy);
    }
    real m = hx * 63.31f + hy * 127.63f, n = hx * 395.467f + hy * 213.799f;
    q.x = q.x + magnitude(2.0f * wrap_unit(sine_of(m) * 43141.59265f) - 1.0f);
    q.y = q.y + magnitude(2.0f * wrap_unit(sine_of(n) * 43141.59265f) - 1.0f);
    a = a + rough_angle(q.y, q.x);
    real w = (1.0f - bounds) * width, s = least((real)(0.3f), w), l = modulo(vnorm(q.x, q.y) + 0.319f * a, 2.0f);
    Triple c = gray((1.0f - smooth_step(2.0f - s, (real)(2.0f), l)) * smooth_step(w, w + s, l));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

DEVICE Triple fractal_dots(Pair p, float iterations, float size, float limit, float complexity, float pattern,
                           float spacing, float rotate1, float rotate2, float zoom) {
    Pair a = circle((real)(rotate1)), b = circle((real)(rotate2));
    Pair q = pair((p.x * a.x - p.y * a.y) * zoom, (p.y * a.x + p.x * a.y) * zoom);
    for (int i = 0; (float)i < limit && (float)i <= iterations; i++) {
        real u = magnitude(q.x) - spacing - complexity, v = magnitude(q.y) - spacing - complexity;
        q = pair(u * b.x - v * b.y, v * b.x + u * b.y);
        spacing /= pattern;
    }
    return gray(vnorm(q.x, q.y) * (3.0f * power_of((real)(2.0f), (real)(limit))) > size ? zero_real() : (real)(1.0f));
}

VARIATION_3D(dc_fractaldots, iterations = 9 [1, 100], dotsize = 400, maxiterations = 10 [0, 100],
             complexity = 0.001245675, pattern = 2.5, spacing = 12, rotate1 = 1.5, rotate2 = 64, zoom = 64,
             ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    Triple c =
        fractal_dots(p, iterations, dotsize, maxiterations, complexity, pattern, spacing, rotate1, rotate2, zoom);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_fractaldots, Density_Pixels = 1000000, iterations = 9 [1, 100], DotSize = 400,
          MaxIterations = 10 [0, 100], complexity = 0.001245675, pattern = 2.5, spacing = 12, rotate1 = 1.5,
          rotate2 = 64, zoom = 64, Gradient = 0) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 1.0f, 0.5f);
    Triple c =
        fractal_dots(q, iterations, DotSize, MaxIterations, complexity, pattern, spacing, rotate1, rotate2, zoom);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 1.0f);
}

VARIATION_3D(dc_fractcolor, randomize = 0, time = 0, xpar = 0.5, ypar = 0.5, iters = 88 [0, 500], zoom = 1,
             ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    Triple c = triple(p.x * zoom, p.y * zoom, 1.5f - xpar + 0.04f * sine_of((real)(time)));
    for (int i = 0; (float)i < iters; i++) {
        real d = dot3(c, c);
        c = triple(1.3f * magnitude(c.x / d - 1.0f), 0.777f * magnitude(c.z / d - 0.3f * ypar),
                   magnitude(c.y / d - 1.0f));
    }
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_gabornoise, seed = 10000, time = 0, zoom = 20, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random), a = zero_real();
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    real s = magnitude(p.x * zoom) * 45.0f, t = p.y * zoom * 45.0f;
    for (int k = 0; k < 100; k++) {
        real i = (real)((float)k);
        real hx = 30.0f * (2.0f * wrap_unit(sine_of(63.31f * i) * 43141.59265f) - 1.0f);
        real hy = 30.0f * (2.0f * wrap_unit(sine_of(395.467f * i) * 43141.59265f) - 1.0f);
        real hz = 30.0f * (2.0f * wrap_unit(sine_of(i) * 43141.59265f) - 1.0f), c = cosine_of(hz / 100.0f * time);
        real mx = hx * c + hy * (33.0f + c), my = hx * (11.0f + c) + hy * c;
        a = a + rough_angle(s - mx, t - my);
    }
    Triple c =
        triple(0.6f * cosine_of(a) + 0.6f, 0.6f * cosine_of(a + 23.0f) + 0.6f, 0.6f * cosine_of(a + 21.0f) + 0.6f);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_glypho, zoom = 7 [0.1, 50], seed = 10000, time = 0, f1 = 0.115, f2 = 0.75, f3 = 1.5, ColorOnly = 0,
             Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), m = zero_real();
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    for (int k = 0; k < 3; k++) {
        float n = 1.0f + 0.5f * (float)k, t = time * (k == 1 ? -0.3f : 0.3f);
        for (int j = 0; j < 10; j++) {
            Pair c = circle((real)(0.0001f + (float)j * 0.62831853f + n * 0.31415927f + t));
            real l = vnorm(p.x * zoom * n + 0.4f * c.x, p.y * zoom * n + 0.4f * c.y);
            m = m + smooth_step((real)(f1 * n), zero_real(), l) * f3;
        }
    }
    Triple c = gray(step_at((real)(f2), wrap_unit(m * f3)));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

DEVICE Triple grid_field(Triple p) {
    p = triple(0.1f * p.x, 0.1f * p.y, 0.1f * p.z);
    for (int i = 0; i < 3; i++)
        p = triple(2.0f * magnitude(wrap_unit(p.y) - 0.5f), 2.0f * magnitude(wrap_unit(p.z) - 0.5f),
                   2.0f * magnitude(wrap_unit(p.x) - 0.5f));
    p = triple(p.x * p.x, p.y * p.y, p.z * p.z);
    return triple(1.25f * sqrt(p.x + p.y) - 0.05f, 1.25f * sqrt(p.y + p.z) - 0.05f, 1.25f * sqrt(p.z + p.x) - 0.05f);
}

DEVICE Triple grid_3d(Pair p, float time) {
    real n = sqrt(p.x * p.x + p.y * p.y + 1.0f);
    Pair a = circle((real)(time * 0.021f));
    real dx = p.x / n, dy = p.y / n, dz = 1.0f / n;
    real ry = dy * a.x + dz * a.y, rz = dz * a.x - dy * a.y;
    // the matrices' entries are given by columns
    ry = dy * a.x - dz * a.y;
    rz = dy * a.y + dz * a.x;
    real qx = dx * a.x - rz * a.y, qz = dx * a.y + rz * a.x;
    Triple pos = triple(zero_real(), (real)(0.1f * time), zero_real()), sum = gray(zero_real());
    for (int i = 0; i < 30; i++) {
        Triple f = grid_field(pos);
        real s = least(least(f.x, f.y), f.z);
        pos = triple(pos.x + s * qx, pos.y + s * ry, pos.z + s * qz);
        float k = 30.0f - (float)i;
        sum = triple(sum.x + k / (f.x + 0.1f), sum.y + k / (f.y + 0.1f), sum.z + k / (f.z + 0.1f));
    }
    float k = 0.09f / 900.0f;
    real c = 1.0f - 1.0f / (1.0f + k * sum.x) + 1.0f - 1.0f / (1.0f + k * sum.y) + 1.0f - 1.0f / (1.0f + k * sum.z);
    return gray(c);
}

VARIATION_3D(dc_grid3D, zoom = 1, Seed = 10000, time = 200, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    Triple c = grid_3d(scaled((real)(zoom), p.x, p.y), time);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_grid3D, Density_Pixels = 1000000, Seed = 10000, time = 200) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels);
    Triple c = grid_3d(pixel_center(p, Density_Pixels, 1.0f, 0.5f), time);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, 0.0f, 0.0f);
}

VARIATION_3D(dc_hexagons, shape = 0, seed = 10000, time = 0, zoom = 4, ColorOnly = 0, Gradient = 0, scale_z = 0,
             offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    if (ColorOnly != 1.0f && shape == 1.0f) {
        real r = 2.0f * u + 2.0f * v;
        r = r > 2.0f ? 4.0f - r : r;
        p = swapped(from_polar(0.5f * r, TWO_PI * w));
    }
    real a = p.x * zoom, b = p.y * zoom, s = sine_of((a * a + b * b) / -64.0f + time * 4.0f);
    real r = 0.35f + 0.25f * sqrt(magnitude(s)) * sign_of(s), t = sine_of((real)(time * 4.0f));
    t = 10.25f * power_of(magnitude(t), (real)(0.2f)) * sign_of(t);
    Pair c = circle(t);
    real hx = (a * c.x - b * c.y) * (0.57735f * 2.0f), hy = a * c.y + b * c.x;
    hy = hy + modulo(floor_of(hx), 2.0f) * 0.5f;
    hx = magnitude(wrap_unit(hx) - 0.5f);
    hy = magnitude(wrap_unit(hy) - 0.5f);
    real h = magnitude(greatest(hx * 1.5f + hy, hy * 2.0f) - 1.0f);
    return stamped(weight, p, gray(smooth_step(r - 0.1f, r + 0.1f, h)), color, rgb, Gradient, scale_z, offset_z);
}

DEVICE Triple hoshi(Pair p, float time, float steps, float scale, float translate) {
    real first = 0.182f * p.y;
    Pair q = pair(magnitude(modulo(0.182f * p.x, 4.0f) - 2.0f), magnitude(modulo(0.182f * p.y, 4.0f) - 2.0f));
    for (int k = (int)steps; k > 0; k--) {
        real a = scale * (magnitude(q.x + 0.5f) - 0.5f) - translate,
             b = scale * (magnitude(q.y + 0.5f) - 0.5f) - translate;
        real turn = sine_of((real)(time * 0.0005f + (float)k * 0.5000001f)) * 0.4999f + 0.6f + 10.0f / time +
                    sine_of((real)(time)) / 100.0f;
        Pair c = circle(3.14159f / turn);
        q = pair(a * c.x - b * c.y, a * c.y + b * c.x);
    }
    real i = first * first + rough_angle(q.y, q.x) + time * 0.02f, h = floor_of(i * 4.0f) / 8.0f + 1.107f;
    h = h + smooth_step((real)(-0.1f), (real)(0.8f), modulo(i * 0.4f, 0.25f) * 900.0f) / 0.010f - 0.5f;
    real value = smooth_step((real)(-3.0f), (real)(3.0f), vnorm(q.x, q.y));
    real r = clamped(magnitude(wrap_unit((3.0f + h) / 3.0f) * 6.0f - 3.0f) - 1.0f, zero_real(), (real)(1.0f));
    real g = clamped(magnitude(wrap_unit((2.0f + h) / 3.0f) * 6.0f - 3.0f) - 1.0f, zero_real(), (real)(1.0f));
    real b = clamped(magnitude(wrap_unit((1.0f + h) / 3.0f) * 6.0f - 3.0f) - 1.0f, zero_real(), (real)(1.0f));
    return triple(r * value, g * value, b * value);
}

VARIATION_3D(dc_hoshi, seed = 100000, time = 10, steps = 28 [1, 60], scale = 1.25 [1, 5], translate = 1.5 [0, 5],
             ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    return stamped(weight, p, hoshi(p, time, steps, scale, translate), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_hoshi, Density_Pixels = 1000000, Seed = 100000, time = 10, Steps = 28 [1, 60], Scale = 1.25 [1, 5],
          Translate = 1.5 [0, 5], Gradient = 0) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 2.0f, 1.0f);
    Triple c = hoshi(q, time, Steps, Scale, Translate);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 1.0f);
}

DEVICE Triple inverted_circles(Pair p, float time, float iterations, float scale_x, float scale_y) {
    real l = zero_real(), low = (real)(10000.0f);
    real ox = sine_of((real)(time * 0.123f)), oy = arctangent((real)(time * 0.0567f));
    for (int i = 0; (float)i < iterations; i++) {
        real a = magnitude(p.x) * scale_x + ox, b = p.y * scale_y + oy;
        real da = a - 0.5f, db = b - 0.5f, k = 0.81f / (da * da + db * db), u = 0.5f - da * k, v = 0.5f - db * k;
        u = u + sine_of(u * 0.001f) / cosine_of(v * 0.001f);
        v = v + sine_of(u * 0.001f) * cosine_of(v * 0.001f);
        p = pair(u, v);
        l = vnorm(u * u, v * v);
        low = least(l, low);
    }
    float t = 2.1f + time * 0.025f;
    real r = 0.5f * sine_of((real)(t * 1.790f)) + 0.5f, g = 0.5f * sine_of((real)(t * 1.345f)) + 0.5f;
    real b = 0.5f * sine_of((real)(t * 1.123f)) + 0.5f, n = sqrt(r * r + g * g + b * b);
    real h = 3.0f * low * (1.0f - low), k = l * l * 11.0f * (square(square(h)) * h + 0.14f) / n;
    return triple(1.0f - exponential_of(-r * k), 1.0f - exponential_of(-g * k), 1.0f - exponential_of(-b * k));
}

VARIATION_3D(dc_inversion, seed = 10000, time = 0, iterations = 50 [0, 100], scaleX = 1.5 [1.1, 3],
             scaleY = 1.5 [1.1, 3], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    Triple c = inverted_circles(p, time, iterations, scaleX, scaleY);
    return stamped_of_palette(weight, p, c, color, rgb, Gradient, scale_z, offset_z, table);
}

VARIATION_3D(dc_kaleidoscopic, seed = 10000, time = 0, sides = 8 [2, 20], zoom = 1 [0, 1], p1 = 0 [0, 1],
             radial = 1 [0, 1], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    float wedge = PI / sides;
    real a = p.x * zoom, b = p.y * zoom;
    if (radial == 1.0f) {
        real t = magnitude(modulo(rough_angle(b, a), 2.0f * wedge) - wedge) + 0.1f * time;
        Pair q = from_polar(vnorm(a, b), t);
        a = q.x;
        b = q.y;
    }
    Triple c = triple(a, b, (real)(zoom));
    for (int i = 0; i < 44; i++) {
        real d = dot3(c, c);
        c = triple(1.3f * magnitude(magnitude(c.x) / d - 1.0f), 0.678f * magnitude(magnitude(c.z) / d - p1 * 0.4f),
                   0.999f * magnitude(magnitude(c.y) / d - 1.02f));
    }
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_kaleidoscopic, Density_Pixels = 1000000, Seed = 10000, time = 0, Sides = 8 [2, 20], zoom = 0 [0, 1],
          P1 = 0 [0, 1], Radial = 0, Gradient = 0) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 2.0f, 1.0f);
    float wedge = PI / Sides, size = 12.0f * (0.1f + zoom);
    q = scaled((real)(size), q.x, q.y);
    if (Radial == 1.0f) {
        real t = magnitude(modulo(rough_angle(q.y, q.x), 2.0f * wedge) - wedge) + 0.1f * time;
        q = from_polar(vnorm(q.x, q.y), t);
    }
    Triple c = triple(q.x, q.y, (real)(zoom));
    for (int i = 0; i < 44; i++) {
        real d = dot3(c, c);
        c = triple(1.3f * magnitude(magnitude(c.x) / d - 1.0f), 0.678f * magnitude(magnitude(c.z) / d - P1 * 0.4f),
                   0.999f * magnitude(magnitude(c.y) / d - 1.02f));
    }
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}
