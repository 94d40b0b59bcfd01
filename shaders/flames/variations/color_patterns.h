// Direct color: variations that color the points they make, and stamps: patterns and tilings over a square.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// A STAMP dc_NAME colors random points p of a square, or with ColorOnly 1 the chain's point; glsl_NAME colors random
// pixels of a grid: a PIXEL_STAMP that ends in a semicolon calls the formula of the STAMP before it. A stamp's body
// returns red, green and blue, 0 to 1; gray(v) is v for all three. Formulas and their constants are JWildfire's.

// Origin: JWildfire

// Direct color: a gradient in the direction `angle`. The point stays.
VARIATION(dc_linear, offset = 0, angle = 0.3, scale = 0.8) {
    Pair c = circle((real)(angle));
    real t = (c.x * x * weight + c.y * y * weight + offset) / (scale == 0.0f ? 1e-5f : scale);
    *color = fraction_of(magnitude(0.5f * (t + 1.0f)));
    return scaled(weight, x, y);
}

// z becomes, or is multiplied by, the palette coordinate mapped from x0 ... x1 to 0 ... `factor`.
VARIATION_3D(dc_ztransl, x0 = 0, x1 = 1, factor = 1, overwrite = 1, clamp = 0) {
    float a = fmin(fmax(x0, 0.0f), 1.0f), b = fmin(fmax(x1, 0.0f), 1.0f), low = fmin(a, b), range = fmax(a, b) - low;
    real h = factor * (*color - low) / (range == 0.0f ? 1e-30f : range);
    h = clamp != 0.0f ? clamped(h, zero_real(), (real)(1.0f)) : h;
    return scaled3(weight, x, y, overwrite == 0.0f ? z * h : h);
}

// bubble (lenses.h) with its height, colored by the squared distance from a center. The origins color the sum of these
// terms and the terms before them; here the terms before are left out.
VARIATION_3D(dc_bubble, centerx = 0, centery = 0, scale = 1, invert = 0) {
    real r = 0.25f * (x * x + y * y) + 1.0f, t = weight / r, u = t * x, v = t * y;
    *color = fraction_of(magnitude((square(u + centerx) + square(v + centery)) / (scale == 0.0f ? 1e-5f : scale)));
    return triple(u, v, weight * (2.0f / (invert == 1.0f ? t : r) - 1.0f));
}

// A blurred cylinder, colored by a gradient in the direction `angle`.
VARIATION_3D(dc_cylinder, offset = 0, angle = 0, scale = 0.5, x = 0.125, y = 0.125, blur = 1) {
    Pair turn = circle(TWO_PI * uniform(random)), c = circle((real)(angle));
    real r = blur * gauss4(random), u = weight * sine_of(x + r * turn.y) * dc_cylinder_x, v = r + y * dc_cylinder_y;
    real t = (c.x * u + c.y * v + offset) / (scale == 0.0f ? 1e-5f : scale);
    *color = fraction_of(magnitude(0.5f * (t + 1.0f)));
    return triple(u, v, weight * cosine_of(x + r * turn.x));
}

// Random points of the faces of a box; face k has the palette coordinate ck.
VARIATION_3D(dc_cube, c1 = 0, c2 = 0, c3 = 0, c4 = 0, c5 = 0, c6 = 0, x = 1, y = 1, z = 1) {
    real p = 2.0f * uniform(random) - 1.0f, q = 2.0f * uniform(random) - 1.0f, i = random_index(uniform(random), 3.0f);
    mask low = uniform(random) < 0.5f;
    real side = low ? (real)(-1.0f) : (real)(1.0f), first = low ? (real)(c1) : (real)(c2);
    real shade = i == 0.0f ? first : i == 1.0f ? (low ? (real)(c3) : (real)(c4)) : low ? (real)(c5) : (real)(c6);
    *color = clamped(shade, zero_real(), (real)(1.0f));
    return scaled3(weight, dc_cube_x * (i == 0.0f ? side : p),
                   dc_cube_y * (i == 0.0f   ? p
                                : i == 1.0f ? side
                                            : q),
                   dc_cube_z * (i == 2.0f ? side : q));
}

// Moves the point by (+-1, +-1), then applies the pre-affine; the color depends on the signs.
VARIATION(dc_carpet, origin = 0) {
    real one = (real)(1.0f), i = random_sign(-one, random), j = random_sign(-one, random);
    real both = i == j ? zero_real() : (real)(-2.0f);
    real h = 0.1f * origin * (1.0f - both) - 0.1f * origin, u = x + i, v = y + j;
    *color = fraction_of(magnitude(0.5f * *color * (1.0f + h) + 0.5f * both * (1.0f - h)));
    return scaled(weight, affine[0] * u + AFFINE_B * v + AFFINE_C, AFFINE_D * u + AFFINE_E * v + AFFINE_F);
}

// Each channel starts from the point at which the previous channel ended.
STAMP(dc_acrilic, seed = 10000, time = 0, zoom = 0.7, steps = 10 [3, 100], p1 = 12 [1, 100], p2 = 12 [1, 100],
      p3 = 12 [1, 100], p4 = 12 [1, 100], p5 = 75 [1, 100], p6 = 75 [1, 100], redf = 1 [0, 5], greenf = 1 [0, 5],
      bluef = 1 [0, 5]) {
    p = scaled((real)(zoom), p.x, p.y);
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
    return triple(cosine_of(c[0] * redf), cosine_of(c[1] * greenf), cosine_of(c[2] * bluef));
}

// dc_acrilic on random pixels.
PIXEL_STAMP(glsl_acrilic, SIDE = 0.7, SHIFT = 0, Density_Pixels = 1000000, Seed = 10000, time = 0, Steps = 10 [3, 100],
            p1 = 12, p2 = 12, p3 = 12, p4 = 12, p5 = 75, p6 = 75, Red_Fac = 1, Green_Fac = 1, Blue_Fac = 1,
            Gradient = 0);

// A bitwise operation on the integer coordinates, as a color; `table`: two random offsets of them.
STAMP(dc_booleans, randomize = 1000, type = 1, zoom = 1000) {
    whole a = truncated(p.x * zoom + table[0]), b = truncated(p.y * zoom + table[1]);
    real n = real_of(type == 0.0f ? a ^ b : type == 1.0f ? a & b : type == 2.0f ? a | b : a * 0);
    real hue = sine_of(n);
    return scaled_hue(cosine_of(n), hue + 1.0f, hue + 0.66666667f, hue + 0.33333333f);
}

// The Cairo tiling by pentagons: two grids of squares that turn by the angle th, which grows with time.
STAMP(dc_cairotiles, zoom = 7, seed = 10000, time = 0) {
    real th = modulo((real)(time * PI / 5.0f), TWO_PI);
    Pair c = circle(th);
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
    return gray(power_of(level, (real)(1.0f / 2.2f)));
}

// Bubbles that rise with time; number i has its size, phase and column from sines of i.
STAMP(dc_circlesblue, SIDE = 2, seed = 10000, time = 1 [1, 1000], zoom = 1 [0.01, 100], radius = 0.04 [0, 1],
      bubles = 40 [1, 100]) {
    p = scaled((real)(zoom), p.x, p.y);
    Triple sum = gray(zero_real());
    for (int k = 0; (float)k < bubles; k++) {
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

// dc_circlesblue on random pixels.
PIXEL_STAMP(glsl_circlesblue, SIDE = 2, Density_Pixels = 1000000, Seed = 10000, time = 1, Radiusy = 0.04,
            Bubles = 40 [1, 100], Gradient = 0);

// A fingerprint: lines of equal distance from the center plus 0.319 times the sum a of the angles around 50 points.
STAMP(dc_fingerprint, zoom = 50 [1, 100], seed = 10000, time = 0, width = 0.8 [0, 1]) {
    Pair q = scaled((real)(zoom), p.x, p.y);
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
    return gray((1.0f - smooth_step(2.0f - s, (real)(2.0f), l)) * smooth_step(w, w + s, l));
}

// Three rings of ten blurred discs, which turn with time; the fractions of their sum above f2 are white.
STAMP(dc_glypho, zoom = 7 [0.1, 50], seed = 10000, time = 0, f1 = 0.115, f2 = 0.75, f3 = 1.5) {
    real m = zero_real();
    for (int k = 0; k < 3; k++) {
        float n = 1.0f + 0.5f * (float)k, t = time * (k == 1 ? -0.3f : 0.3f);
        for (int j = 0; j < 10; j++) {
            Pair c = circle((real)(0.0001f + (float)j * 0.62831853f + n * 0.31415927f + t));
            real l = vnorm(p.x * zoom * n + 0.4f * c.x, p.y * zoom * n + 0.4f * c.y);
            m = m + smooth_step((real)(f1 * n), zero_real(), l) * f3;
        }
    }
    return gray(step_at((real)(f2), wrap_unit(m * f3)));
}

// Distances of p from the bars of dc_grid3D along the three axes.
DEVICE Triple grid_field(Triple p) {
    p = triple(0.1f * p.x, 0.1f * p.y, 0.1f * p.z);
    for (int i = 0; i < 3; i++)
        p = triple(2.0f * magnitude(wrap_unit(p.y) - 0.5f), 2.0f * magnitude(wrap_unit(p.z) - 0.5f),
                   2.0f * magnitude(wrap_unit(p.x) - 0.5f));
    p = triple(p.x * p.x, p.y * p.y, p.z * p.z);
    return triple(1.25f * sqrt(p.x + p.y) - 0.05f, 1.25f * sqrt(p.y + p.z) - 0.05f, 1.25f * sqrt(p.z + p.x) - 0.05f);
}

// A grid of bars in space: the light that a ray through the pixel gathers in 30 steps of ray marching.
STAMP(dc_grid3D, SIDE = 2, zoom = 1, Seed = 10000, time = 200) {
    p = scaled((real)(zoom), p.x, p.y);
    real n = sqrt(p.x * p.x + p.y * p.y + 1.0f);
    Pair a = circle((real)(time * 0.021f));
    real dx = p.x / n, dy = p.y / n, dz = 1.0f / n;
    real ry = dy * a.x - dz * a.y, rz = dy * a.y + dz * a.x;
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

// dc_grid3D on random pixels.
VARIATION(glsl_grid3D, Density_Pixels = 1000000, Seed = 10000, time = 200) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels);
    Triple c = stamp_dc_grid3D(pixel_center(p, Density_Pixels, 1.0f, 0.5f), 1.0f, Seed, time);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, 0.0f, 0.0f);
}

// A grid of hexagons that pulse and turn with time, over a square (shape 0) or a disc (shape 1).
VARIATION_3D(dc_hexagons, shape = 0, seed = 10000, time = 0, zoom = 4, ColorOnly = 0, Gradient = 0, scale_z = 0,
             offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = stamp_point(ColorOnly, 2.0f, x, y, u, v);
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

// Interfering rings: a sine of the square root of the radius, distorted by cos u cos v.
PALETTE_STAMP(dc_portal, seed = 1000, time = 0, waves = 5, zoom = 15) {
    real u = p.x * zoom, v = p.y * zoom;
    float t = 1000.0f + time;
    real s = 3.0f * sine_of((1.0f + sqrt(vnorm(u, v)) / waves) * t + 0.125f * t * cosine_of(u) * cosine_of(v));
    real a = magnitude(s);
    mask up = s > 0.0f;
    return triple(up ? a - 1.0f : a - 1.5f, a - 1.5f, up ? a - 2.0f : a - 1.5f);
}

// N concentric shells around the viewer, each with the holes of a product of sines; nearer shells are brighter.
PALETTE_STAMP(dc_layers, SIDE = 2, N = 8 [1, 10], Amplitude = 0.995 [0, 10], seed = 10000, time = 0, zoom = 8) {
    real far = zero_real();
    Pair a = circle((real)(2.0f * Amplitude * PI));
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
    return gray(far);
}

// A grid seen through a Moebius map and a complex logarithm.
STAMP(dc_moebiuslog, zoom = 7, seed = 10000, time = 0, Log = 1, Moebius = 1, scale = 5, angle = 5) {
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
    return gray(vnorm(wrap_unit(a * scale), wrap_unit(b * scale)));
}

// Distance of (x, y) along the normal (a, b).
DEVICE real along_normal(real x, real y, float a, float b) { return (x * a + y * b) / sqrt(a * a + b * b); }

// A tiling by pentagons, each with a color by its index i; `border` darkens the edges.
STAMP(dc_pentatiles, zoom = 20 [1, 100], border = 1 [0, 1], width = 0.1 [0.01, 0.25]) {
    real zero = zero_real(), one = (real)(1.0f), w = (real)(width);
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
    return scaled3(f, 0.6f * cosine_of(i) + 0.6f, 0.6f * cosine_of(i + 23.0f) + 0.6f,
                   0.6f * cosine_of(i + 21.0f) + 0.6f);
}

// A tiling of the Poincare disc by triangles with the angles pi / N, pi / P and pi / 2: p is reflected in the sides of
// one triangle until it stays, and colored by the parity of the numbers of reflections f0, f1 and f2.
STAMP(dc_poincaredisc, zoom = 2, MaxIter = 10 [0, 20], N = 4 [3, 20], P = 5 [3, 20], checkers0 = 1 [0, 1],
      checkers1 = 1 [0, 1], checkers2 = 1 [0, 1]) {
    real zero = zero_real();
    Pair q = scaled((real)(zoom), p.x, p.y);
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
    return gray(outside ? zero : r * (0.5f * k + 0.5f));
}

// A quadtree whose cells are divided or not by sines of their number `id`.
PALETTE_STAMP(dc_quadtree, zoom = 1 [0.1, 50], seed = 10000 [0, 10000], time = 0, width = 1000 [100, 1000],
              levels = 30 [1, 50]) {
    real shade = zero_real(), id = (real)(1.0f);
    real u = p.x / zoom + 0.5f, v = p.y / zoom + 0.5f;
    float r = 1.0f;
    mask done = shade > 1.0f;  // false
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
    return gray(shade);
}

// An orbit of p -> rotated |p| / (p . p) - s, colored as hues by its last point.
STAMP(dc_rotations, levels = 20 [1, 50], seed = 10000, time = 0, zoom = 4) {
    real zero = zero_real(), one = (real)(1.0f);
    Pair q = scaled((real)(zoom), p.x, p.y);
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
    real r = red_of_hue(modulo(h, 6.0f));
    real g = red_of_hue(modulo(h + 4.0f, 6.0f));
    real b = red_of_hue(modulo(h + 2.0f, 6.0f));
    return triple(r * r * (3.0f - 2.0f * r), g * g * (3.0f - 2.0f * g), b * b * (3.0f - 2.0f * b));
}

// Sierpinski carpets of N levels at four offsets; each inverts the color c where it has points.
STAMP(dc_squares, seed = 5000, time = 85.5 [0, 1000], N = 3 [1, 20], direction = 1 [0, 1], redF = 1.8 [0, 5],
      greenF = 1.9 [0, 5], blueF = 2.2 [0, 5]) {
    real t = (real)(time), k = power_of((real)(0.5f), modulo((direction == 1.0f ? 0.1f : -1.0f) * t, 1.0f));
    Pair a = circle(t);
    Triple c = triple(a.x, a.y / a.x, a.y);
    real u = wrap_unit(magnitude(p.x)), v = wrap_unit(magnitude(p.y));
    for (int i = 0; i < 4; i++) {
        real q = ((float)i * 0.1f + u) / k, r = ((float)i * 0.1f + v) / k;
        mask hit = q == q;  // true
        for (int j = 0; (float)j < N; j++) {
            real fq = floor_of(q * 3.0f), fr = floor_of(r * 3.0f);
            hit = hit && !(fq == 1.0f && fr == 1.0f);
            q = q * 3.0f - fq;
            r = r * 3.0f - fr;
        }
        c = triple(hit ? 1.0f - c.x : c.x, hit ? 1.0f - c.y : c.y, hit ? 1.0f - c.z : c.z);
    }
    return triple(cosine_of(c.x * redF), cosine_of(c.y * greenF), cosine_of(c.z * blueF));
}

// dc_squares on random pixels.
PIXEL_STAMP(glsl_squares, Density_Pixels = 1000000 [100, 10000000], Seed = 5000, time = 85.5 [0, 1000], N = 3 [1, 20],
            Direction = 1 [0, 1], Red_Fac = 1.8 [0, 5], Green_Fac = 1.9 [0, 5], Blue_Fac = 2.2 [0, 5],
            Gradient = 0 [0, 1]);

// Hashes of the numbers x and y, from 0 to 1: one, and a pair.
DEVICE real hash_of_two(real x, real y) {
    real a = wrap_unit(x * 451.45f), b = wrap_unit(y * 231.95f), d = a * (a + 78.78f) + b * (b + 78.78f);
    return wrap_unit((a + d) * (b + d));
}

DEVICE Pair hashes_of_two(real x, real y) {
    real a = wrap_unit(x * 451.45f), b = wrap_unit(y * 231.95f), c = wrap_unit(x * 7878.5f);
    real d = a * (a + 78.78f) + b * (b + 78.78f) + c * (c + 78.78f);
    return pair(wrap_unit((a + d) * (b + d)), wrap_unit((c + d) * (b + d)));
}

// A flight through eleven layers of stars, one in each cell of a layer.
STAMP(dc_starsfield, seed = 10000, time = 0, zdistance = 2 [2, 150], glow = 1 [0, 1]) {
    Pair t = circle((real)(time));
    Pair q = spun(p, t.x, t.y);
    q = pair(q.x + 2.0f * t.x, q.y + 2.0f * t.y);
    real sum = zero_real(), zero = zero_real(), one = (real)(1.0f);
    for (int k = 0; k < 11; k++) {
        real i = (real)(0.1f * (float)k), h = wrap_unit(i * 35.35f);
        if (k == 10) i = (real)(0.9999999f);
        h = h + h * (h + 45.85f);
        Pair turn = circle(wrap_unit(h * 7858.58f) * 6.28f);
        q = spun(q, turn.x, turn.y);
        real s = wrap_unit(i - time), f = smooth_step(zero, one, s);
        Pair o = hashes_of_two(i, i * 5.0f);
        real u = (q.x - 0.1f * o.x) * f * 5.0f, v = (q.y - 0.1f * o.y) * f * 5.0f, iu = floor_of(u), iv = floor_of(v);
        Pair star = hashes_of_two(iu, iv);
        real d = vnorm((u - iu) * zdistance - 1.0f - 0.3f * star.x, (v - iv) * zdistance - 1.0f - 0.3f * star.y);
        real l = smooth_step(0.1f + 0.8f * hash_of_two(iu, iv), (real)(0.01f), d) / d * 0.2f;
        sum = sum + l * f * smooth_step(one, zero, s);
    }
    return gray(sum + glow * hash_of_two(q.x + time, q.y + time));
}

// dc_starsfield on random pixels.
PIXEL_STAMP(glsl_starsfield, Density_Pixels = 1000000 [100, 10000000], Seed = 10000, time = 0, Z_distance = 2 [2, 150],
            Glow = 2 [0, 1], Gradient = 0 [0, 1]);

// The distance of p from the segment from n - d to n + d, where n is the integer point nearest to p.
DEVICE real near_segment(Pair p, real dx, real dy) {
    real ax = floor_of(p.x + 0.5f) - dx, ay = floor_of(p.y + 0.5f) - dy, px = p.x - ax, py = p.y - ay;
    real h = clamped((px * dx + py * dy) / (2.0f * (dx * dx + dy * dy)), zero_real(), (real)(1.0f));
    return vnorm(px - 2.0f * dx * h, py - 2.0f * dy * h);
}

// A spiral grid in polar coordinates (turns N / 2 pi, radius): lines GridX and GridY along it, arcs (Polar) and Dots.
STAMP(dc_sunflower, zoom = 7 [0.1, 50], step = 0.1 [-1, 1], N = 30, Polar = 1 [0, 1], Dots = 1 [0, 1], GridX = 1 [0, 1],
      GridY = 1 [0, 1]) {
    real zero = zero_real(), one = (real)(1.0f), w = (real)(0.1f);
    real a = p.x * zoom, b = p.y * zoom, l = vnorm(a, b);
    Pair q = pair(rough_angle(b, a) / 6.28f * N, l * N);
    q.x = q.x + step * floor_of(q.y + 0.5f);
    float side = step < 0.0f ? -1.0f : 1.0f;
    Triple c = gray(zero);
    if (GridX == 1.0f) c.x = smooth_step(w, zero, near_segment(q, (real)(side - step), one));
    if (GridY == 1.0f) c.y = smooth_step(w, zero, near_segment(q, (real)(-step), one));
    if (GridX == 0.0f && GridY == 0.0f) {
        real s = (real)(0.5f * side - step);
        c.z = smooth_step(w, zero, near_segment(q, s, one)) +
              smooth_step(w, zero, near_segment(pair(q.x + 0.5f, q.y), s, one));
    }
    real more = Polar == 1.0f ? 0.5f * smooth_step(w, zero, near_segment(q, one, zero)) : zero;
    if (Dots == 1.0f) {
        real s = (wrap_unit(q.x + 0.5f) - 0.5f) * l * 6.28f, t = wrap_unit(q.y + 0.5f) - 0.5f;
        more = more + smooth_step((real)(N * 0.001f), zero, vnorm(s, t) - 0.3f);
    }
    return triple(c.x + more, c.y + more, c.z + more);
}

// Lightning: the change of size along an orbit of q -> |q| / (q . q) - constant, summed with falling weights.
STAMP(dc_tesla, levels = 20 [1, 25], style = 10 [5, 100], seed = 10000, time = 0, zoom = 4) {
    real t = (real)(time);
    real strength = 20.0f + 0.03f * logarithm_of(1e-6f + wrap_unit(sine_of(t * 10.0f) * 4500.0f));
    real sum = (real)(1.5f), before = zero_real(), weights = zero_real();
    real k = power_of((real)(0.5f), magnitude(sine_of(t / 8.0f))), shift = -0.23456f * magnitude(sine_of(t));
    Triple q = triple(p.x * zoom, p.y * zoom, (real)(1.0f));
    for (int i = 0; (float)i < levels; i++) {
        real size = dot3(q, q) * k, w = exponential_of((real)(-(float)i / style));
        q = triple(magnitude(q.x) / size - 0.9f, magnitude(q.y) / size + shift, magnitude(q.z) / size - 1.0f);
        real ratio = before == 0.0f ? (real)(1e30f) : magnitude(size / before);
        sum = sum + w * exponential_of(-strength * power_of(ratio, (real)(1.2f)));
        weights = weights + w * w;
        before = size;
    }
    return gray(greatest(zero_real(), 6.0f * sum / weights - 2.0f));
}

// Truchet tiles: each cell shows one motif, mirrored at random.
STAMP(dc_truchet, type = 0 [0, 2], zoom = 10) {
    real a = p.x * zoom, b = p.y * zoom, ia = floor_of(a), ib = floor_of(b), s = a - ia, t = b - ib;
    real index = wrap_unit(2.0f * (wrap_unit(sine_of(ia * 12.9898f + ib * 78.233f) * 43758.5453123f) - 0.5f));
    mask both = index > 0.75f, first = index > 0.5f && !both, second = index > 0.25f && !both && !first;
    real q = both || first ? 1.0f - s : s, r = both || second ? 1.0f - t : t;
    real shade = smooth_step(q - 0.3f, q, r) - smooth_step(q, q + 0.3f, r);
    if (type == 1.0f) {
        real l = vnorm(q, r), m = vnorm(q - 1.0f, r - 1.0f);
        shade =
            step_at(l, (real)(0.6f)) - step_at(l, (real)(0.4f)) + step_at(m, (real)(0.6f)) - step_at(m, (real)(0.4f));
    }
    if (type == 2.0f) shade = step_at(q, r);
    return gray(shade);
}

// Fractal noise at points that 30 vortices in two rows have moved `flowStrength` times.
STAMP(dc_vortex, randomize = 0, time = 0, flowStrength = 10 [1, 15], Blending = 5 [1, 5], zoom = 1) {
    real sum = zero_real();
    Pair q = scaled((real)(zoom), p.x, p.y);
    real first = modulo((real)(time), 10.0f) - 20.0f;
    for (int i = 0; (float)i < flowStrength; i++) {
        real fx = zero_real(), fy = zero_real();
        for (int k = 0; k < 30; k++) {
            float side = k & 1 ? -1.0f : 1.0f;
            real dx = 4.0f * q.x - first - (float)k, dy = 4.0f * q.y - 0.6f * side;
            real s = -0.25f * side / (dx * dx + dy * dy + 0.05f);
            fx = fx + dy * s;
            fy = fy - dx * s;
        }
        q = pair(q.x - 0.03f * fx, q.y - 0.03f * fy);
    }
    real a = q.x * Blending - 0.1f * time, b = q.y * Blending;
    float size = 1.0f;
    for (int i = 0; i < 6; i++) {
        real ia = floor_of(a), ib = floor_of(b), fa = a - ia, fb = b - ib, n = ia + 57.0f * ib;
        fa = fa * fa * (3.0f - 2.0f * fa);
        fb = fb * fb * (3.0f - 2.0f * fb);
        real low = blend(wrap_unit(sine_of(n) * 43758.54f), wrap_unit(sine_of(n + 1.0f) * 43758.54f), fa);
        real high = blend(wrap_unit(sine_of(n + 57.0f) * 43758.54f), wrap_unit(sine_of(n + 58.0f) * 43758.54f), fa);
        sum = sum + size * blend(low, high, fb);
        size *= 0.5f;
        a = 2.0f * a;
        b = 2.0f * b;
    }
    return gray(0.5f * sum);
}

// A tiling of the disc by reflections in eight mirrors, seven of them lines; colored by the parity of the reflections.
STAMP(dc_hyperbolictile, SIDE = 2, zoom = 1) {
    p = scaled((real)(zoom), p.x, p.y);
    real px = vnorm(p.x, p.y), py = rough_angle(p.y, p.x), count = zero_real();
    mask outside = px > 1.0f, run = px == px;  // true
    float center = 1.5537739740f;  // center of the third mirror's circle
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

// dc_hyperbolictile on random pixels.
PIXEL_STAMP(glsl_hyperbolictile, SIDE = 2, Density_Pixels = 1000000 [100, 10000000], Gradient = 0 [0, 1]);
