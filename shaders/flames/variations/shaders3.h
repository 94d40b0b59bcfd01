// Stamps of direct color: noise, trees, circuits, hyperbolic tilings.
// Origin: JWildfire

// The fraction of 43758.5453 sin(turns of a circle), s and t whole: a and b are turns of one s and one t in two floats,
// as single precision would lose the fraction.
DEVICE real fraction_of_sine(real s, real t, float a, float a_rest, float b, float b_rest) {
    real p = s * a, q = t * b, rest = FUSED(s, a, -p) + FUSED(t, b, -q) + s * a_rest + t * b_rest;
    real turns = p - nearest(p) + (q - nearest(q)) + rest;
    return wrap_unit(sine_of(TWO_PI * (turns - nearest(turns))) * 43758.5453123f);
}

DEVICE real hash_of_two(real x, real y) {
    real a = wrap_unit(x * 451.45f), b = wrap_unit(y * 231.95f), d = a * (a + 78.78f) + b * (b + 78.78f);
    return wrap_unit((a + d) * (b + d));
}

DEVICE Pair hashes_of_two(real x, real y) {
    real a = wrap_unit(x * 451.45f), b = wrap_unit(y * 231.95f), c = wrap_unit(x * 7878.5f);
    real d = a * (a + 78.78f) + b * (b + 78.78f) + c * (c + 78.78f);
    return pair(wrap_unit((a + d) * (b + d)), wrap_unit((c + d) * (b + d)));
}

DEVICE Triple star_field(Pair p, float time, float distance, float glow) {
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
        real d = vnorm((u - iu) * distance - 1.0f - 0.3f * star.x, (v - iv) * distance - 1.0f - 0.3f * star.y);
        real l = smooth_step(0.1f + 0.8f * hash_of_two(iu, iv), (real)(0.01f), d) / d * 0.2f;
        sum = sum + l * f * smooth_step(one, zero, s);
    }
    return gray(sum + glow * hash_of_two(q.x + time, q.y + time));
}

VARIATION_3D(dc_starsfield, seed = 10000, time = 0, zdistance = 2 [2, 150], glow = 1 [0, 1], ColorOnly = 0,
             Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    return stamped(weight, p, star_field(p, time, zdistance, glow), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION(glsl_starsfield, Density_Pixels = 1000000 [100, 10000000], Seed = 10000, time = 0, Z_distance = 2 [2, 150],
          Glow = 2 [0, 1], Gradient = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 1.0f, 0.5f);
    Triple c = star_field(q, time, Z_distance, Glow);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 0.0f);
}

// The distance of p from the segment between the grid's places nearest - d and nearest + d.
DEVICE real near_segment(Pair p, real dx, real dy) {
    real ax = floor_of(p.x + 0.5f) - dx, ay = floor_of(p.y + 0.5f) - dy, px = p.x - ax, py = p.y - ay;
    real h = clamped((px * dx + py * dy) / (2.0f * (dx * dx + dy * dy)), zero_real(), (real)(1.0f));
    return vnorm(px - 2.0f * dx * h, py - 2.0f * dy * h);
}

VARIATION_3D(dc_sunflower, zoom = 7 [0.1, 50], step = 0.1 [-1, 1], N = 30, Polar = 1 [0, 1], Dots = 1 [0, 1],
             GridX = 1 [0, 1], GridY = 1 [0, 1], ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real ru = uniform(random), rv = uniform(random), zero = zero_real(), one = (real)(1.0f), w = (real)(0.1f);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, ru, rv);
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
    c = triple(c.x + more, c.y + more, c.z + more);
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_tesla, levels = 20 [1, 25], style = 10 [5, 100], seed = 10000, time = 0, zoom = 4, ColorOnly = 0,
             Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), t = (real)(time);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
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
    Triple c = gray(greatest(zero_real(), 6.0f * sum / weights - 2.0f));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_tree, levels = 20 [1, 25], thicknes = 1000 [-1500, 1500], style = 50 [1, 100], shift = 1.5 [-100, 100],
             seed = 10000, time = 0, zoom = 4, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), r = (real)(1e9f), t = (real)(time), sum = zero_real();
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v), q = pair(p.x * zoom, p.y * zoom + shift);
    real lean = 0.3f * (sine_of(2.0f * t) + 0.5f * sine_of(4.53f * t) + 0.1f * cosine_of(12.2f * t));
    real bend = 0.14f + 0.1f * sine_of(0.1f * t);
    for (int i = 1; (float)i < levels; i++) {
        float k = (float)i;
        q = from_polar(vnorm(q.x, q.y), rough_angle(q.y, q.x) + lean);
        real s = clamped(q.y, zero_real(), (real)(1.0f));
        real off = q.x + bend * smooth_step((real)(1.0f), zero_real(), magnitude(2.0f * s - 1.0f)) *
                             sine_of(3.14159f * (s - 4.0f * time));
        r = least(r, (1.0f + 0.5f * s) * vnorm(off, q.y - s));
        real grow = 1.4f + 0.1f * sine_of(t) + 0.05f * sine_of(0.2455f * t) * k;
        real a = magnitude(q.x) * grow, b = (q.y - 1.0f) * grow;
        real turn = rough_angle(b, a) + 1.0f + 0.5f * sine_of(0.553f * t) * sine_of(sine_of(t) * k) +
                    0.1f * sine_of(0.4f * t) + 0.05f * sine_of(0.554f * t);
        q = from_polar(vnorm(a, b), turn);
        sum = sum + sine_of(exponential_of(-thicknes * r * r) * style);
    }
    return stamped(weight, p, gray(sum), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_truchet, type = 0 [0, 2], zoom = 10, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
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
    return stamped(weight, p, gray(shade), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_turbulence, seed = 10000, time = 0 [1, 1000], zoom = 8, level = 3 [1, 5], ColorOnly = 0, Gradient = 0,
             scale_z = 0, offset_z = 0, reset_z = 1) {
    real ru = uniform(random), rv = uniform(random), c = (real)(1.0f);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, ru, rv);
    real a = p.x * zoom - 20.0f, b = p.y * zoom - 20.0f, u = a, v = b;
    for (int i = 0; (float)i < level; i++) {
        float t = time * (1.0f - 3.0f / (float)(i + 1));
        real nu = a + cosine_of(t - u) + sine_of(t + v), nv = b + sine_of(t - v) + cosine_of(t + u);
        u = nu;
        v = nv;
        c = c + 1.0f / vnorm(a / (sine_of(u + t) * 20.0f), b / (cosine_of(v + t) * 20.0f));
    }
    c = 1.5f - sqrt(c / level);
    return stamped(weight, p, gray(square(square(c))), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_voronoise, zoom = 8, deltaX = 0.5 [0, 1], deltaY = 0.5 [0, 1], ColorOnly = 0, Gradient = 0, scale_z = 0,
             offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), sum = zero_real(), weights = zero_real();
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    real a = p.x * zoom, b = p.y * zoom, ia = floor_of(a), ib = floor_of(b);
    float w = (1.0f - deltaY) * (1.0f - deltaY), k = 1.0f + 63.0f * w * w;
    for (int j = -2; j <= 2; j++)
        for (int i = -2; i <= 2; i++) {
            real s = ia + (float)i, t = ib + (float)j;
            real ox = fraction_of_sine(s, t, 20.228594f, -5.5931406e-7f, 49.608597f, -1.040014e-6f) * deltaX;
            real oy = fraction_of_sine(s, t, 42.892258f, -5.271639e-7f, 29.173101f, -3.5642648e-7f) * deltaX;
            real oz = fraction_of_sine(s, t, 66.71775f, 1.5948061e-6f, 59.189724f, -6.3262996e-7f);
            real d = vnorm(s - a + ox, t - b + oy);
            real ww = power_of(1.0f - smooth_step(zero_real(), (real)(1.414f), d), (real)(k));
            sum = sum + oz * ww;
            weights = weights + ww;
        }
    return stamped(weight, p, gray(sum / weights), color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_vortex, randomize = 0, time = 0, flowStrength = 10 [1, 15], Blending = 5 [1, 5], zoom = 1,
             ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0, reset_z = 1) {
    real ru = uniform(random), rv = uniform(random), sum = zero_real();
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, ru, rv), q = scaled((real)(zoom), p.x, p.y);
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
    return stamped(weight, p, gray(0.5f * sum), color, rgb, Gradient, scale_z, offset_z);
}

DEVICE real warp_hash(real x, real y) {
    return 2.0f * fraction_of_sine(x, y, 20.228594f, -5.5931406e-7f, 49.608597f, -1.040014e-6f) - 1.0f;
}
DEVICE real warp_noise(real x, real y) {
    real ix = floor_of(x), iy = floor_of(y), fx = x - ix, fy = y - iy, ux = fx * fx * fx, uy = fy * fy * fy;
    // the origin's smoothing is f^2 (3 - 2) f
    return blend(blend(warp_hash(ix, iy), warp_hash(ix + 1.0f, iy), ux),
                 blend(warp_hash(ix, iy + 1.0f), warp_hash(ix + 1.0f, iy + 1.0f), ux), uy);
}
DEVICE real warp_sum(real x, real y) {
    real f = zero_real();
    for (int k = 0; k < 4; k++) {
        float weight = k == 0 ? 0.5f : k == 1 ? 0.25f : k == 2 ? 0.125f : 0.0625f;
        float zoom = k == 0 ? 2.02f : k == 1 ? 2.03f : 2.01f;
        f = f + weight * warp_noise(x, y);
        real a = x * zoom, b = y * zoom;
        x = 0.8f * a - 0.6f * b;
        y = 0.6f * a + 0.8f * b;
    }
    return f / 0.9375f;
}
DEVICE Triple warp_map(real x, real y) {
    x = 0.7f * x;
    y = 0.7f * y;
    real a = warp_sum(4.0f * x, 4.0f * y), b = warp_sum(4.0f * y, 4.0f * x);
    real s = 2.0f * (x + a), t = 2.0f * (y + b), u = x + warp_sum(s, t), v = y + warp_sum(t, s);
    real f = warp_sum(u, v) - warp_sum(v, u), k = smooth_step((real)(-0.8f), (real)(0.8f), f);
    real m = smooth_step((real)(-1.0f), (real)(1.0f), warp_sum(x, y));
    return triple(blend(blend((real)(0.5f), (real)(1.0f), m), zero_real(), k),
                  blend(blend(zero_real(), (real)(0.75f), m), zero_real(), k),
                  blend(blend(zero_real(), (real)(0.35f), m), (real)(0.02f), k));
}

VARIATION_3D(dc_warping, randomize = 0, zoom = 1, x0 = 0, ColorOnly = 0, Gradient = 0, scale_z = 0, offset_z = 0,
             reset_z = 1) {
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    real a = p.x * zoom + x0, b = p.y * zoom + x0, e = (real)(0.0045f);
    Triple c = warp_map(a, b), r = warp_map(a + e, b), s = warp_map(a, b + e);
    real gc = 0.333f * (c.x + c.y + c.z), ga = 0.333f * (r.x + r.y + r.z), gb = 0.333f * (s.x + s.y + s.z);
    real n = e / sqrt(square(ga - gc) + e * e + square(gb - gc)), k = 8.0f * magnitude(2.0f * gc - ga - gb);
    real m = 1.0f + 0.2f * n * n, q = 0.05f * n * n * n, s0 = 0.5f * (p.x + 1.0f), t0 = 0.5f * (p.y + 1.0f);
    real f = power_of(greatest(16.0f * s0 * t0 * (1.0f - s0) * (1.0f - t0), zero_real()), (real)(0.1f));
    c = triple(f * ((c.x + k) * m + q), f * ((c.y + 0.7f * k) * m + q), f * ((c.z + 0.6f * k) * m + q));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}

VARIATION_3D(dc_worley, zoom = 7 [0.1, 50], pattern = 70 [0.1, 100], distort = 1 [0, 1], ColorOnly = 0, Gradient = 0,
             scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), first = (real)(1e9f), second = first, third = first;
    Pair p = stamp_place(ColorOnly, 1.0f, x, y, u, v);
    real a = p.x * zoom, b = p.y * zoom;
    for (int k = 0; k < 9; k++) {
        real s = -floor_of(-a) + (float)(k % 3) - 2.0f, t = -floor_of(-b) + (float)(k / 3) - 2.0f;
        real h = 1e4f * sine_of(s + t / (pattern * 0.01f));
        real du = wrap_unit(h) * distort * 0.75f + 0.3f + s - a,
             dv = wrap_unit(h + 0.34f) * distort * 0.75f + 0.3f + t - b;
        real l = du * du + dv * dv, f1 = first, f2 = second;
        // the nearest moves the old nearest to both other places, as in the origin
        third = l < f1 ? f1 : l < f2 ? f2 : l < third ? l : third;
        second = l < f1 ? f1 : l < f2 ? l : f2;
        first = l < f1 ? l : f1;
    }
    real s = 5.0f * (sqrt(second) - sqrt(first)), t = 5.0f * (sqrt(third) - sqrt(first));
    Triple c = gray(4.0f * (s / (s / t + 1.0f) - 0.5f));
    return stamped(weight, p, c, color, rgb, Gradient, scale_z, offset_z);
}
