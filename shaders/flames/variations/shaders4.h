// Stamps of direct color: circuits, mirrors of the hyperbolic plane, iterated complex functions, Perlin noise.
// Origin: JWildfire

DEVICE Triple hyperbolic_tile(Pair p) {
    real px = vnorm(p.x, p.y), py = rough_angle(p.y, p.x), count = zero_real();
    mask outside = px > 1.0f, run = px == px;
    float center = 1.5537739740f;  // of the circle of the third mirror
    for (int i = 0; i < 7; i++) {
        mask turn = run;
        for (int j = 1; j < 8; j++) {
            turn = turn && !(py >= 0.5f * PI && py < 0.75f * PI);
            real first = PI - py, second = 0.25f * PI + PI - first;
            count = turn ? count + 1.0f : count;
            py = turn ? second : py;
        }
        Pair c = from_polar(px, py);
        real dx = c.x, dy = c.y - center, k = (center * center - 1.0f) / (dx * dx + dy * dy);
        real qx = dx * k, qy = center + dy * k, r = vnorm(qx, qy), a = rough_angle(qy, qx);
        px = run ? r : px;
        py = run ? a : py;
        run = run && !(a >= 0.5f * PI && a < 0.75f * PI);
    }
    return gray(outside ? zero_real() : modulo(count, 2.0f));
}

VARIATION_3D(dc_hyperbolictile, zoom = 1, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    Triple c = hyperbolic_tile(scaled((real)(zoom), p.x, p.y));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_hyperbolictile, Density_Pixels = 1000000 [100, 10000000], Gradient = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels);
    Triple c = hyperbolic_tile(pixel_center(p, Density_Pixels, 2.0f, 1.0f));
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}

DEVICE Triple kaleido_complex(Pair p, float time, float limit, float factor, float red, float green, float blue) {
    Pair turn = circle((real)(time));
    real zx = magnitude(p.x) * 8.0f, zy = magnitude(p.y) * 8.0f, zero = zero_real(), zz = zero, zw = zero;
    Triple c = gray(zero);
    mask done = zx != zx;
    for (int i = 0; (float)i <= limit; i++) {
        float n = (float)i, shift = (i & 1 ? 1.0f : -1.0f) - 10.5f;
        real ax = zx - zy, ay = zx + zy;
        ax = magnitude(ax) + shift;
        ay = magnitude(ay) + shift;
        real bx = ax * turn.y - ay * turn.x, by = ax * turn.x + ay * turn.y;
        zz = factor * (bx * zz - by * zw);
        zw = factor * (by * zz - bx * zw);
        zx = bx;
        zy = by;
        mask near = i > 0 && (magnitude(zx) < 0.51f || magnitude(zy) < 0.51f);
        real sx = exponential_of(-magnitude(zx * zx * zy)), sy = exponential_of(-magnitude(zy * zx * zy));
        real sz = exponential_of(-magnitude(least(zx, zy))), both = zx + zy;
        real tx = exponential_of(-magnitude(n / zx - zx / n)), ty = exponential_of(-magnitude(n / zy - zy / n));
        real tz = exponential_of(-magnitude(n / both - both / n));
        Triple add = triple(c.x + factor * tx, c.y + factor * ty, c.z + factor * tz);
        c = choose3(done, c, choose3(near, triple(sx, sy, sz), add));
        done = done || near || zx * zx + zy * zy > 1e7f || zz * zz + zw * zw > 1e11f;
    }
    return triple(cosine_of(c.x * red), cosine_of(c.y * green), cosine_of(c.z * blue));
}

VARIATION_3D(dc_kaleidocomplex, seed = 1000000, time = 0, iMax = 12 [1, 50], color = 2, redF = 1 [0, 5],
             greenF = 1 [0, 5], blueF = 1 [0, 5], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    Triple c = kaleido_complex(p, time, iMax, dc_kaleidocomplex_color, redF, greenF, blueF);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_kaleidocomplex, Density_Pixels = 1000000 [100, 10000000], Seed = 10000, time = 0, iMax = 12 [1, 50],
          Color = 2, Red_Fac = 1 [0, 5], Green_Fac = 1 [0, 5], Blue_Fac = 1 [0, 5], Gradient = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 1.0f, 0.5f);
    Triple c = kaleido_complex(q, time, iMax, Color, Red_Fac, Green_Fac, Blue_Fac);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}

// One of the circuits' samples: its color, and in `light` its brightness.
DEVICE Triple circuit(Pair z, float t, float limit, float intensity, float pulse, float zoom, real *light) {
    real most = zero_real(), near = (real)(1000.0f), far = near;
    for (int i = 0; i < 11 && (float)i <= limit; i++) {
        real d = clamped(z.x * z.x + z.y * z.y, (real)(0.1f), (real)(0.5f));
        z = pair(magnitude(z.x) / d - t, magnitude(z.y) / d - t);
        real l = vnorm(z.x, z.y);
        real o = least(greatest(magnitude(least(z.x, z.y)), 0.25f - l), magnitude(l - 0.25f));
        near = least(near, o);
        far = least(l * 0.1f, far);
        most = near == o ? greatest(most, (real)((float)i)) : most;
    }
    most = most + 1.0f;
    real w = intensity * zoom * most, ring = cube(greatest(zero_real(), w - far) / w);
    ring = ring * ring;
    *light = *light + greatest(power_of(greatest(zero_real(), w - near) / w, (real)(0.25f)), ring);
    real b = 0.1f + most * 0.1f, n = sqrt(0.55f * 0.55f + 0.85f * 0.85f + b * b);
    real k = (0.4f + modulo(most / 9.0f - t * pulse + far * 2.0f, 1.0f)) / n, f = ring * (10.0f - most) * 3.0f;
    return triple(0.55f * k + f, 0.85f * k + 0.7f * f, b * k + 0.3f * f);
}

DEVICE Triple circuits(Pair p, float time, float rate, float intensity, float focus, float pulse, float loops,
                       float zoom, real *light) {
    float n = time * 0.01f * rate, t = 2.0f * rate;
    if (n > 6.0f * rate) n -= 8.0f * rate;
    t = n < 4.0f * rate ? t + n : 8.0f * rate - n;
    float scale = 1.05f - zoom;
    real s = 0.1f * vnorm(p.x, p.y), around = 2.0f * sqrt(1.0f - s * s);
    Pair a = circle((real)(t * PI)), b = circle((real)(t * PI + t)), c = circle(a.x + b.y);
    Pair q = spun(spun(p, b.x, b.y), a.x, -a.y);
    q = pair((q.x - c.y / PI) * scale, (q.y - c.x / PI) * scale);
    real pixel = 0.0005f * scale / around * (zoom * focus + t * 0.25f);
    Triple sum = gray(zero_real());
    int rounds = (int)loops < 23 ? (int)loops : 23;
    for (int k = 0; k <= rounds; k++) {
        Pair z = pair(q.x + pixel * (float)(k / 6), q.y + pixel * (float)(k % 6));
        sum = circuit(z, t, (float)((int)(loops / 4.0f + (float)(int)(5.0f * zoom))), intensity, pulse, zoom, light);
    }
    float each = 1.0f / (float)(int)loops;
    real shade = 1.0f - vnorm(p.x, p.y), l = *light * each;
    *light = l;
    return triple(1.2f * shade * blend((real)(0.15f), sum.x * each, l),
                  1.1f * shade * blend((real)(0.15f), sum.y * each, l), shade * blend((real)(0.15f), sum.z * each, l));
}

VARIATION_3D(dc_circuits, Seed = 1000000, time = 0, rate = 0.8, intensity = 0.9, focus = 1.5, pulse = 10, glow = 2,
             loops = 15, zoom = 1, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), light = zero_real();
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    Triple c = circuits(p, time, rate, intensity, focus, pulse, loops, zoom, &light);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_circuits, Density_Pixels = 1000000 [100, 10000000], time = 0, rate = 0.8, intensity = 0.9, focus = 1.5,
          pulse = 10, glow = 2, loops = 15, zoom = 1, Gradient = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random);
    real before_u = uniform(random), before_v = uniform(random), light = zero_real();
    // some of the light of the pixel drawn before stays, as in the origin
    Pair before = pixel_center(pixel_of(before_u, before_v, Density_Pixels), Density_Pixels, 1.0f, 0.5f);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 1.0f, 0.5f);
    Triple c = circuits(before, time, rate, intensity, focus, pulse, loops, zoom, &light);
    c = circuits(q, time, rate, intensity, focus, pulse, loops, zoom, &light);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 1.0f);
}

REPLACING_3D(dc_butterflies, seed = 1000, time = 0, zoom = 1, red = 1, green = 1, blue = 1, ColorOnly = 0, Gradient = 0,
             scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), low = (real)(1e10f);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    real zx = p.x * zoom, zy = p.y * zoom, px = zx, py = zy;
    real k = 0.9f * (1.0f + 2.0f * sine_of((real)(0.1f * time)));
    mask done = zx != zx;
    for (int i = 0; i < 100; i++) {
        real ax = zx + px, ay = zy + py, a2 = ax * ax + ay * ay, r = 1.0f / (a2 * a2), t = -4.0f * rough_angle(ay, ax);
        Pair c = from_polar(r, t), s = circle(c.x), h = hyperbola(c.y);
        mask huge = magnitude(c.y) > 40.0f && magnitude(c.y) < 709.78f;  // doubles hold sinh: the place stays
        real nx = s.y * h.x - k * zx + px, ny = s.x * h.y - k * zy + py;
        real dx = nx - zx, dy = ny - zy, d = dx * dx + dy * dy, g = square(nx - 1.0f) + square(ny - 1.0f);
        low = done || huge ? low : least(low, g);
        real m = d < 0.00001f ? d * 100000.0f : d > 10000.0f ? 10000.0f / d : (real)(1.0f);
        nx = nx * m + zx * (1.0f - m);
        ny = ny * m + zy * (1.0f - m);
        zx = done || huge ? zx : nx;
        zy = done || huge ? zy : ny;
        done = done || huge || d < 0.00001f || d > 10000.0f;
    }
    real l = 2.3f + logarithm_of(low * magnitude(zx * zy));
    Triple c =
        triple(0.5f * sine_of(red + l) + 0.5f, 0.5f * sine_of(green + l) + 0.5f, 0.5f * sine_of(blue + l) + 0.5f);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}
