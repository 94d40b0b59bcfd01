// More stamps of direct color: tilings, folds and fields.
// Origin: JWildfire

DEVICE Triple kaliset(Pair p, float time, float count, float shift_x, float shift_y) {
    Pair a = circle((real)(time / 603.0f * 7.2f)), b = circle((real)(time / 407.4f * 7.2f));
    float zoom = time / 184.0f + 1.0f;
    real sum = zero_real();
    for (int i = 0; (float)i < count; i++) {
        real r = p.x * p.x + p.y * p.y;
        mask far = r > 1.0f;
        r = far ? 1.0f / r : r;
        p = pair(far ? p.x * r : p.x, far ? p.y * r : p.y);
        sum = sum * 0.99f + r;
        p = pair((a.x * p.x - b.y * p.y) * zoom + shift_x, (b.y * p.x + a.x * p.y) * zoom + shift_y);
    }
    return triple(cosine_of(0.5f * sum), cosine_of(sum), cosine_of(2.0f * sum));
}

VARIATION_3D(dc_kaliset, Seed = 10000, time = 200 [1, 1000], zoom = 0.5 [0.01, 1000], N = 60 [1, 100],
             shiftX = -0.22 [-5, 5], shiftY = -0.21 [-5, 5], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    Triple c = kaliset(scaled((real)(zoom), p.x, p.y), time, N, shiftX, shiftY);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_kaliset, Density_Pixels = 1000000 [100, 10000000], Seed = 10000, time = 200 [1, 1000], N = 60 [1, 100],
          ShiftX = -0.22 [-5, 5], ShiftY = -0.21 [-5, 5], Gradient = 0) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels);
    Triple c = kaliset(pixel_center(p, Density_Pixels, 20.0f, 10.0f), time, N, ShiftX, ShiftY);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}

DEVICE Triple kaliset_2(Pair p, float time, float count, float radius, float shift_x, float shift_y, float red,
                        float green, float blue) {
    Pair a = circle((real)(6.2831853f * shift_x));
    float zoom = 2.0f + 5.0f * shift_y;
    real sum = zero_real(), shift = 2.0f + 2.0f * sine_of((real)(0.03f * time));
    for (int i = 0; (float)i < count; i++) {
        real r = p.x * p.x + p.y * p.y;
        mask far = r > (real)(radius);
        r = far ? radius / r : r;
        p = pair(far ? p.x * r : p.x, far ? p.y * r : p.y);
        sum = greatest(sum, r);
        p = pair((a.x * p.x - a.y * p.y) * zoom, (a.y * p.x + a.x * p.y) * zoom + shift);
    }
    real c = sum * sum * (500.0f / count / radius);
    return triple(cosine_of(c * red), cosine_of(c * green), cosine_of(c * blue));
}

VARIATION_3D(dc_kaliset2, seed = 5000, time = 85.5 [1, 1000], zoom = 20 [1, 1000], N = 100 [1, 100],
             radio = 1 [0.1, 10], shiftX = -0.356 [-1, 1], shiftY = 0.686 [-1, 1], redF = 1.8 [0, 5],
             greenF = 1.9 [0, 5], blueF = 2.2 [0, 5], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v);
    Triple c = kaliset_2(scaled((real)(zoom), p.x, p.y), time, N, radio, shiftX, shiftY, redF, greenF, blueF);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_kaliset2, Density_Pixels = 1000000 [100, 10000000], Seed = 5000, time = 85.5 [1, 1000], N = 100 [1, 100],
          radio = 1 [0.1, 10], ShiftX = -0.356 [-1, 1], ShiftY = 0.686 [-1, 1], Red_Fac = 1.8 [0, 5],
          Green_Fac = 1.9 [0, 5], Blue_Fac = 2.2 [0, 5], Gradient = 0) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 20.0f, 10.0f);
    Triple c = kaliset_2(q, time, N, radio, ShiftX, ShiftY, Red_Fac, Green_Fac, Blue_Fac);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}

VARIATION_3D(dc_layers, N = 8 [1, 10], Amplitude = 0.995 [0, 10], seed = 10000, time = 0, zoom = 8, ColorOnly = 0,
             Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), far = zero_real();
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v), a = circle((real)(2.0f * Amplitude * PI));
    Pair b = circle((real)(Amplitude * PI));
    real px = p.x * zoom, py = p.y * zoom, qy = py * b.x - b.y, qz = py * b.y + b.x;
    real rx = px * a.x - qz * a.y, rz = px * a.y + qz * a.x, n = sqrt(rx * rx + qy * qy + rz * rz);
    rx = rx / n;
    qy = qy / n;
    rz = rz / n;
    for (int k = 1; (float)k <= N; k++) {
        float f = 4.0f * (float)k;
        real shell = magnitude(sine_of(rx * f + 0.52f * time) * cosine_of(qy * f) - sine_of(rz * f));
        far = greatest(far, smooth_step((real)(0.25f), (real)(0.2f), shell) * (1.0f - (float)k / 8.0f));
    }
    return stamped_of_palette(weight, p, gray(far), color, rgb, Gradient, scale_z, offset_z, table);
}

DEVICE Pair kaleidoscope(Pair p, float wedge) {
    return from_polar(vnorm(p.x, p.y), magnitude(modulo(rough_angle(p.y, p.x), 2.0f * wedge) - wedge));
}

DEVICE Triple mandala_of(Pair p, float a, float b, float sides, float multiply, float loops, float red, float green,
                         float blue) {
    Pair s = kaleidoscope(p, PI / sides), t = kaleidoscope(s, PI / sides);
    real v = t.x * s.x + t.y * s.y, k = cosine_of(v);
    real ux = blend(s.x, t.x, k), uy = blend(s.y, t.y, k);
    if (multiply > 0.0f) {
        real mx = modulo(uy, multiply), my = modulo(ux, multiply);
        real qx = mx + ux * floor_of(mx / -ux), qy = my + uy * floor_of(my / -uy);
        real wx = uy + qx, wy = ux + qy;
        ux = wy;
        uy = wx;
    }
    Triple c = triple(ux, uy, a * v);
    for (int i = 0; (float)i <= loops && i < 73; i++) {
        real d = dot3(c, c);
        c = triple(1.3f * magnitude(magnitude(c.x) / d - 1.0f),
                   0.678f * magnitude(magnitude(c.z) / d - b * 0.318309886f),
                   0.999f * magnitude(magnitude(c.y) / d - 1.02f));
    }
    return triple(red == 1.0f ? 1.0f - c.x : c.x, green == 1.0f ? 1.0f - c.y : c.y, blue == 1.0f ? 1.0f - c.z : c.z);
}

VARIATION_3D(dc_mandala, mX = 0.025, mY = -0.001245675, scale = 2, sides = 12, multiply = 1, loops = 64, iR = 0 [0, 1],
             iG = 0 [0, 1], iB = 1 [0, 1], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 2.0f, x, y, u, v), q = scaled((real)(5.5f - scale), p.x, p.y);
    Triple c = mandala_of(q, mX, mY, sides, multiply, loops, iR, iG, iB);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_mandala, Density_Pixels = 1000000 [100, 10000000], mX = 0.025, mY = -0.001245675, scale = 2, sides = 12,
          multiply = 1.5, loops = 64, iR = 0 [0, 1], iG = 0 [0, 1], iB = 1 [0, 1], Gradient = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random), k = (real)(5.5f - scale);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 2.0f, 1.0f);
    float times = multiply > 0.001f ? (float)(int)multiply : 0.0f;
    float own = Gradient == 0.0f ? 1.0f : 0.0f;  // the product of channels is that of the channels as they are
    q = scaled(k, q.x, q.y);
    Triple c = mandala_of(q, mX, mY, (float)(int)sides, times, (float)(int)loops, iR * own, iG * own, iB * own);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 1.0f);
}

VARIATION_3D(dc_mandbrot, nIters = 250 [10, 1000], N = 8 [2, 10], Complexity = 0.995 [0, 1], seed = 10000, time = 0,
             zoom = 4, red = 0.0314 [0, 1], green = 0.02 [0, 1], blue = 0.011 [0, 1], ColorOnly = 0, Gradient = 0,
             scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), t = (real)(time / 65.0f * 10.0f);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v), turn = circle(t);
    real k = zoom * (wrap_unit(t * 0.0001f) * 100.0f + 1.0f), px = p.x * k, py = p.y * k;
    float s = 0.5f;
    for (int i = 0; (float)i < N; i++) {
        real d = px * px + py * py;
        Pair q = spun(pair(magnitude(px) / d - s, magnitude(py) / d - s), turn.x, turn.y);
        px = q.x;
        py = q.y;
        s *= Complexity;
    }
    real f = sine_of(t * 0.10f + 99.0f) * 0.5f + 0.5f, m = power_of((real)(1.5f), f * -31.0f);
    px = px * m - 1.002029f;
    py = py * m + 0.303864f;
    real sx = px, sy = py, sum = zero_real();
    mask out = sum > 1.0f;
    for (int i = 0; (float)i < nIters; i++) {
        real nx = sx * sx - sy * sy + px, ny = 2.0f * sx * sy + py, l = vnorm(nx, ny);
        sx = out ? sx : nx;
        sy = out ? sy : ny;
        sum = out ? sum : sum + l + 0.5f;
        out = out || l > 2.0f;
    }
    Triple c =
        triple(1.0f - (out ? sine_of(sum * red) : zero_real()), 1.0f - (out ? sine_of(sum * green) : zero_real()),
               1.0f - (out ? sine_of(sum * blue) : zero_real()));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

DEVICE Triple mandelbox(Pair p, float time) {
    real ox = p.x, oy = p.y, oz = -5.0f * cosine_of((real)(time * 0.1f)), d = (real)(1.0f), one = (real)(1.0f);
    for (int i = 0; i < 20; i++) {
        real qx = 2.0f * clamped(p.x, -one, one) - p.x, qy = 2.0f * clamped(p.y, -one, one) - p.y, l = vnorm(qx, qy);
        real b = l < 0.5f ? (real)(4.0f) : l < 1.0f ? 1.0f / l : one;
        p = pair(qx * oz * b + ox, qy * oz * b + oy);
        d = b * d * magnitude(oz) + 1.0f;
    }
    d = power_of(vnorm(p.x, p.y) / d, (real)(0.1f)) * 5.0f;
    return triple(0.5f * cosine_of(d) + 0.5f, 0.5f * sine_of(10.0f * d + 1.0f) + 0.5f,
                  0.5f * cosine_of(3.0f * d + 1.0f) + 0.5f);
}

VARIATION_3D(dc_mandelbox2D, zoom = 7, seed = 10000, time = 0, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    Triple c = mandelbox(scaled((real)(zoom), p.x, p.y), time);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_mandelbox2D, Density_Pixels = 1000000 [100, 10000000], seed = 10000, time = 0, Gradient = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels);
    Triple c = mandelbox(pixel_center(p, Density_Pixels, 14.0f, 7.0f), time);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 1.0f);
}

VARIATION_3D(dc_menger, zoom = 1, level = 3 [1, 5], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    real px = p.x * zoom * 1.3f, py = p.y * zoom * 1.3f, ax = magnitude(px) - 1.0f, ay = magnitude(py) - 1.0f;
    real d = vnorm(greatest(ax, zero_real()), greatest(ay, zero_real())) + least(greatest(ax, ay), zero_real());
    float s = 1.0f;
    for (int i = 0; (float)i < level; i++) {
        real rx = magnitude(1.0f - 3.0f * magnitude(modulo(px * s, 2.0f) - 1.0f));
        real ry = magnitude(1.0f - 3.0f * magnitude(modulo(py * s, 2.0f) - 1.0f));
        s *= 3.0f;
        d = greatest(d, (least(rx, ry) - 1.0f) / s);
    }
    Triple c = gray(d > 0.0f ? zero_real() : (real)(1.0f));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_moebiuslog, zoom = 7, seed = 10000, time = 0, Log = 1, Moebius = 1, scale = 5, angle = 5, ColorOnly = 0,
             Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    real a = p.x * zoom, b = p.y * zoom, zx = a + 1.0f, zy = b;
    if (Moebius == 1.0f) {
        real s = a - 0.5f, d = s * s + b * b, q = (s * zx + b * zy) / d;
        b = (b * zx - s * zy) / d;
        a = q;
    }
    if (Log == 1.0f) {
        a = a + 0.5f;
        b = b + 0.5f;
        real l = logarithm_of(vnorm(a, b)), t = rough_angle(b, a) / 6.3f;
        a = 0.5f * l + angle * t;
        b = t - 0.5f * l;
    }
    Triple c = gray(vnorm(wrap_unit(a * scale), wrap_unit(b * scale)));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

DEVICE real along_normal(real x, real y, float a, float b) { return (x * a + y * b) / sqrt(a * a + b * b); }

VARIATION_3D(dc_pentatiles, zoom = 20 [1, 100], border = 1 [0, 1], width = 0.1 [0.01, 0.25], ColorOnly = 0,
             Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), zero = zero_real(), one = (real)(1.0f), w = (real)(width);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    float h = 1.3660254038f, c = 0.7320508076f, r = h + 0.5f * c, k = -(0.5f * c - h);
    real a = p.x * zoom, b = p.y * zoom, tx = modulo(a, 2.0f * r) - r, ty = modulo(b, 2.0f * r) - r;
    real vx = magnitude(tx), vy = magnitude(ty);
    real l1 = along_normal(vx, vy - h, k, r), l2 = along_normal(vx - 0.5f * c, vy, -1.7320508076f, 1.0f);
    real red = step_at(l1, zero), green = step_at(l2, zero);
    real ux = 2.0f * floor_of(a / (2.0f * r)), uy = 2.0f * floor_of(b / (2.0f * r));
    ux = red == 0.0f ? ux + sign_of(tx) : ux;
    uy = red == 0.0f ? uy + sign_of(ty) : uy;
    real i = red + 2.0f * green + 4.0f + 8.0f * (ux + 12.0f * uy);
    real f = 0.4f + 0.6f * wrap_unit(1234.0f * sine_of(43.0f * i));
    if (border == 1.0f) {
        real e = smooth_step(w, zero, vx) * step_at((real)(h), vy);
        e = e + smooth_step(w, zero, magnitude(r - vx)) * step_at(vy, (real)(0.5f * c));
        e = e + smooth_step(w, zero, magnitude(l1)) + smooth_step(w, zero, vy) * step_at(vx, (real)(0.5f * c));
        e = e + smooth_step(w, zero, magnitude(r - vy)) * step_at(r - vx, (real)(0.5f * c));
        f = f * (one - e - smooth_step(w, zero, magnitude(l2)));
    }
    Triple shade = triple(f * (0.6f * cosine_of(i) + 0.6f), f * (0.6f * cosine_of(i + 23.0f) + 0.6f),
                          f * (0.6f * cosine_of(i + 21.0f) + 0.6f));
    return stamped(weight, p, shade, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_poincaredisc, zoom = 2, MaxIter = 10 [0, 20], N = 4 [3, 20], P = 5 [3, 20], checkers0 = 1 [0, 1],
             checkers1 = 1 [0, 1], checkers2 = 1 [0, 1], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real ru = uniform(random), rv = uniform(random), zero = zero_real();
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, ru, rv), q = scaled((real)(zoom), p.x, p.y);
    float a = PI / N, b = PI / P;
    b = a + b >= 0.5f * PI ? 0.5f * PI - a - 0.01f : b;
    Pair ca = circle((real)(a)), cb = circle((real)(b));
    real s = cosine_of((real)(a + b)) / root_safe(1.0f - ca.y * ca.y - cb.y * cb.y);
    real sx = (s * s + 1.0f) / (2.0f * s * ca.x), sr = root_safe(sx * sx - 1.0f);
    mask outside = q.x * q.x + q.y * q.y > 1.0f;
    real f0 = zero, f1 = zero, f2 = zero, lx = q.x + 1.0f, ly = q.y + 1.0f;
    for (int i = 0; (float)i < MaxIter; i++) {
        mask still = q.x == lx && q.y == ly;
        real ay = magnitude(q.y), t = 2.0f * least(zero, q.x * ca.y - ay * ca.x);
        real nx = q.x - t * ca.y - sx, ny = ay + t * ca.x, k = greatest(sr * sr / (nx * nx + ny * ny), zero + 1.0f);
        f0 = !still && ay != q.y ? f0 + 1.0f : f0;
        f1 = !still && t < 0.0f ? f1 + 1.0f : f1;
        f2 = !still && k != 1.0f ? f2 + 1.0f : f2;
        lx = still ? lx : q.x;
        ly = still ? ly : q.y;
        q = choose2(still, q, pair(nx * k + sx, ny * k));
    }
    real r = power_of(magnitude(vnorm(q.x - sx, q.y) - sr), (real)(0.25f));
    real k = modulo(checkers0 * f0 + checkers1 * f1 + checkers2 * f2, 2.0f);
    Triple c = gray(outside ? zero : r * (0.5f * k + 0.5f));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_quadtree, zoom = 1 [0.1, 50], seed = 10000 [0, 10000], time = 0, width = 1000 [100, 1000],
             levels = 30 [1, 50], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real ru = uniform(random), rv = uniform(random), shade = zero_real(), id = (real)(1.0f);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, ru, rv);
    real u = p.x / zoom + 0.5f, v = p.y / zoom + 0.5f;
    float r = 1.0f;
    mask done = shade > 1.0f;
    for (int i = 0; (float)i < levels && r <= width; i++) {
        mask edge = !done && least(least(u, 1.0f - u), least(v, 1.0f - v)) < 0.3f * r / width;
        real drawn = 0.5f + 0.5f * sine_of(id + time) * sine_of(id * 2.17f - time) * sine_of(id * 5.7f + time);
        shade = edge ? shade - 1.0f : shade;
        done = done || edge || drawn > 0.7f;
        real fu = step_at((real)(0.5f), u), fv = step_at((real)(0.5f), v);
        id = done ? id : 4.0f * id + 2.0f * fv + fu;
        u = 2.0f * u - fu;
        v = 2.0f * v - fv;
        r *= 2.0f;
        if (r > width) break;
        shade = done ? shade : shade + 0.13f;
    }
    return stamped_of_palette(weight, p, gray(shade), color, rgb, Gradient, scale_z, offset_z, table);
}

VARIATION_3D(dc_rotations, levels = 20 [1, 50], seed = 10000, time = 0, zoom = 4, ColorOnly = 0, Gradient = 0,
             scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), zero = zero_real(), one = (real)(1.0f);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v), q = scaled((real)(zoom), p.x, p.y);
    Pair c = circle((real)(time * 0.1f));
    float s = 0.5f;
    for (int i = 0; (float)i < levels; i++) {
        real d = q.x * q.x + q.y * q.y;
        q = spun(pair(magnitude(q.x) / d - s, magnitude(q.y) / d - s), c.x, -c.y);
        s *= 0.955f;
    }
    Pair e = circle(time + q.x * 0.05f);
    q = spun(q, e.x, e.y);
    real h = 6.0f * (time * 0.4f + q.y * 0.1f);
    real r = clamped(magnitude(modulo(h, 6.0f) - 3.0f) - 1.0f, zero, one);
    real g = clamped(magnitude(modulo(h + 4.0f, 6.0f) - 3.0f) - 1.0f, zero, one);
    real b = clamped(magnitude(modulo(h + 2.0f, 6.0f) - 3.0f) - 1.0f, zero, one);
    Triple shade = triple(r * r * (3.0f - 2.0f * r), g * g * (3.0f - 2.0f * g), b * b * (3.0f - 2.0f * b));
    return stamped(weight, p, shade, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_spacefold, randomize = 1000, time = 0, zoom = 2.5, ColorOnly = 0, Gradient = 0, scale_z = 0,
             offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v), c = circle((real)(time / 30.0f));
    real a = p.x * zoom, b = p.y * zoom;
    for (int i = 0; i < 64; i++) {
        Pair q = spun(pair(magnitude(a), magnitude(b)), c.x, -c.y);
        a = (q.x - 0.5f) * 1.03f;
        b = (q.y - 0.5f) * 1.03f;
    }
    real t = power_of(magnitude(sine_of(a)), (real)(0.3f)) * power_of(magnitude(sine_of(b)), (real)(0.3f)) * 1.9f;
    Triple shade = triple(0.5f + 0.5f * cosine_of((t + 0.8f) * TWO_PI), 0.5f + 0.5f * cosine_of((t + 0.9f) * TWO_PI),
                          0.5f + 0.5f * cosine_of((0.5f * t + 0.3f) * TWO_PI));
    return stamped(weight, p, shade, color, rgb, Gradient, scale_z, offset_z);
}

DEVICE Triple carpets(Pair p, float time, float count, float direction, float red, float green, float blue) {
    real t = (real)(time), k = power_of((real)(0.5f), modulo((direction == 1.0f ? 0.1f : -1.0f) * t, 1.0f));
    Pair a = circle(t);
    Triple c = triple(a.x, a.y / a.x, a.y);
    real u = wrap_unit(magnitude(p.x)), v = wrap_unit(magnitude(p.y));
    for (int i = 0; i < 4; i++) {
        real q = ((float)i * 0.1f + u) / k, r = ((float)i * 0.1f + v) / k;
        mask hit = q == q;
        for (int j = 0; (float)j < count; j++) {
            real fq = floor_of(q * 3.0f), fr = floor_of(r * 3.0f);
            hit = hit && !(fq == 1.0f && fr == 1.0f);
            q = q * 3.0f - fq;
            r = r * 3.0f - fr;
        }
        c = triple(hit ? 1.0f - c.x : c.x, hit ? 1.0f - c.y : c.y, hit ? 1.0f - c.z : c.z);
    }
    return triple(cosine_of(c.x * red), cosine_of(c.y * green), cosine_of(c.z * blue));
}

VARIATION_3D(dc_squares, seed = 5000, time = 85.5 [0, 1000], N = 3 [1, 20], direction = 1 [0, 1], redF = 1.8 [0, 5],
             greenF = 1.9 [0, 5], blueF = 2.2 [0, 5], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    Triple c = carpets(p, time, N, direction, redF, greenF, blueF);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_squares, Density_Pixels = 1000000 [100, 10000000], Seed = 5000, time = 85.5 [0, 1000], N = 3 [1, 20],
          Direction = 1 [0, 1], Red_Fac = 1.8 [0, 5], Green_Fac = 1.9 [0, 5], Blue_Fac = 2.2 [0, 5],
          Gradient = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 1.0f, 0.5f);
    Triple c = carpets(q, time, N, Direction, Red_Fac, Green_Fac, Blue_Fac);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}
