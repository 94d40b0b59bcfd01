// Direct color: fractals. dc_NAME colors random points p of a square, or with ColorOnly 1 the chain's point; glsl_NAME
// colors random pixels of a grid: a PIXEL_STAMP that ends in a semicolon calls the formula of the STAMP before it. A
// body returns red, green and blue, 0 to 1; gray(v) is v for all three. Formulas and their constants are JWildfire's.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: JWildfire

// An orbit of v -> fold(m v / (v . v)) in space, for a rotation m that depends on time.
STAMP(dc_apollonian, SIDE = 2, seed = 10000, time = 0) {
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

// dc_apollonian on random pixels.
PIXEL_STAMP(glsl_apollonian, SIDE = 2, PRODUCT = 1, Density_Pixels = 1000000, seed = 10000, time = 0, Gradient = 0);

// Ducks fractal: an orbit of z -> log(x + i |y|) + constant, colored by the sum c of its radii.
STAMP(dc_ducks, SIDE = 2, seed = 10000, time = 10, zoom = 1) {
    real t = (real)(time / 65.0f * 30.0f), c = zero_real();
    Pair q = scaled((real)(zoom), p.x, p.y);
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
    return triple(e, r, g);
}

// Dots of a fractal: p is folded into a quadrant, shifted and rotated again and again; white where it ends near 0.
STAMP(dc_fractaldots, SIDE = 2, iterations = 9 [1, 100], dotsize = 400, maxiterations = 10 [0, 100],
      complexity = 0.001245675, pattern = 2.5, spacing = 12, rotate1 = 1.5, rotate2 = 64, zoom = 64) {
    Pair a = circle((real)(rotate1)), b = circle((real)(rotate2));
    Pair q = pair((p.x * a.x - p.y * a.y) * zoom, (p.y * a.x + p.x * a.y) * zoom);
    for (int i = 0; (float)i < maxiterations && (float)i <= iterations; i++) {
        real u = magnitude(q.x) - spacing - complexity, v = magnitude(q.y) - spacing - complexity;
        q = pair(u * b.x - v * b.y, v * b.x + u * b.y);
        spacing /= pattern;
    }
    real far = vnorm(q.x, q.y) * (3.0f * power_of((real)(2.0f), (real)(maxiterations)));
    return gray(far > dotsize ? zero_real() : (real)(1.0f));
}

// dc_fractaldots on random pixels.
PIXEL_STAMP(glsl_fractaldots, PRODUCT = 1, Density_Pixels = 1000000, iterations = 9 [1, 100], DotSize = 400,
            MaxIterations = 10 [0, 100], complexity = 0.001245675, pattern = 2.5, spacing = 12, rotate1 = 1.5,
            rotate2 = 64, zoom = 64, Gradient = 0);

// A color that is the last point of an orbit of c -> |c / (c . c) - constant| with permuted axes.
STAMP(dc_fractcolor, randomize = 0, time = 0, xpar = 0.5, ypar = 0.5, iters = 88 [0, 500], zoom = 1) {
    Triple c = triple(p.x * zoom, p.y * zoom, 1.5f - xpar + 0.04f * sine_of((real)(time)));
    for (int i = 0; (float)i < iters; i++) {
        real d = dot3(c, c);
        c = triple(1.3f * magnitude(c.x / d - 1.0f), 0.777f * magnitude(c.z / d - 0.3f * ypar),
                   magnitude(c.y / d - 1.0f));
    }
    return c;
}

// A kaleidoscope: p is folded, scaled and rotated `steps` times; the last angle gives the hue h, the radius the value.
STAMP(dc_hoshi, SIDE = 2, seed = 100000, time = 10, steps = 28 [1, 60], scale = 1.25 [1, 5], translate = 1.5 [0, 5]) {
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
    return scaled_hue(value, (3.0f + h) / 3.0f, (2.0f + h) / 3.0f, (1.0f + h) / 3.0f);
}

// dc_hoshi on random pixels.
PIXEL_STAMP(glsl_hoshi, SIDE = 2, PRODUCT = 1, Density_Pixels = 1000000, Seed = 100000, time = 10, Steps = 28 [1, 60],
            Scale = 1.25 [1, 5], Translate = 1.5 [0, 5], Gradient = 0);

// An orbit of |x|, scaled, shifted and inverted in a circle, colored by its least radius `low` and its last one `l`.
PALETTE_STAMP(dc_inversion, SIDE = 2, seed = 10000, time = 0, iterations = 50 [0, 100], scaleX = 1.5 [1.1, 3],
              scaleY = 1.5 [1.1, 3]) {
    real l = zero_real(), low = (real)(10000.0f);
    real ox = sine_of((real)(time * 0.123f)), oy = arctangent((real)(time * 0.0567f));
    for (int i = 0; (float)i < iterations; i++) {
        real a = magnitude(p.x) * scaleX + ox, b = p.y * scaleY + oy;
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

// A step of the kaleidoscopic fractals: c over its squared length, its axes turned, folded around (1, shift, 1.02).
DEVICE Triple kaleidoscopic_step(Triple c, float shift) {
    real d = dot3(c, c);
    return triple(1.3f * magnitude(magnitude(c.x) / d - 1.0f), 0.678f * magnitude(magnitude(c.z) / d - shift),
                  0.999f * magnitude(magnitude(c.y) / d - 1.02f));
}

// The last point of 44 steps from (p, depth); `radial` 1 mirrors p into one of 2 `sides` wedges first.
DEVICE Triple kaleidoscopic(Pair p, float time, float sides, float depth, float shift, float radial) {
    float wedge = PI / sides;
    if (radial == 1.0f) {
        real t = magnitude(modulo(rough_angle(p.y, p.x), 2.0f * wedge) - wedge) + 0.1f * time;
        p = from_polar(vnorm(p.x, p.y), t);
    }
    Triple c = triple(p.x, p.y, (real)(depth));
    for (int i = 0; i < 44; i++) c = kaleidoscopic_step(c, shift);
    return c;
}

// kaleidoscopic() at the point, with the depth `zoom`.
STAMP(dc_kaleidoscopic, SIDE = 2, seed = 10000, time = 0, sides = 8 [2, 20], zoom = 1 [0, 1], p1 = 0 [0, 1],
      radial = 1 [0, 1]) {
    return kaleidoscopic(scaled((real)(zoom), p.x, p.y), time, sides, zoom, p1 * 0.4f, radial);
}

// dc_kaleidoscopic on random pixels.
PIXEL_STAMP(glsl_kaleidoscopic, SIDE = 2, Density_Pixels = 1000000, Seed = 10000, time = 0, Sides = 8 [2, 20],
            zoom = 0 [0, 1], P1 = 0 [0, 1], Radial = 0, Gradient = 0) {
    p = scaled((real)(12.0f * (0.1f + zoom)), p.x, p.y);
    return kaleidoscopic(p, time, Sides, zoom, P1 * 0.4f, Radial);
}

// Kali set: an orbit that is inverted in the unit circle from outside, then turned, scaled and shifted.
STAMP(dc_kaliset, SIDE = 2, Seed = 10000, time = 200 [1, 1000], zoom = 0.5 [0.01, 1000], N = 60 [1, 100],
      shiftX = -0.22 [-5, 5], shiftY = -0.21 [-5, 5]) {
    p = scaled((real)(zoom), p.x, p.y);
    Pair a = circle((real)(time / 603.0f * 7.2f)), b = circle((real)(time / 407.4f * 7.2f));
    float growth = time / 184.0f + 1.0f;
    real sum = zero_real();
    for (int i = 0; (float)i < N; i++) {
        real r = p.x * p.x + p.y * p.y;
        mask far = r > 1.0f;
        r = far ? 1.0f / r : r;
        p = pair(far ? p.x * r : p.x, far ? p.y * r : p.y);
        sum = sum * 0.99f + r;
        p = pair((a.x * p.x - b.y * p.y) * growth + shiftX, (b.y * p.x + a.x * p.y) * growth + shiftY);
    }
    return triple(cosine_of(0.5f * sum), cosine_of(sum), cosine_of(2.0f * sum));
}

// dc_kaliset on random pixels.
PIXEL_STAMP(glsl_kaliset, SIDE = 20, Density_Pixels = 1000000 [100, 10000000], Seed = 10000, time = 200 [1, 1000],
            N = 60 [1, 100], ShiftX = -0.22 [-5, 5], ShiftY = -0.21 [-5, 5], Gradient = 0);

// As dc_kaliset, with a circle of squared radius `radio`; colored by the largest squared radius.
STAMP(dc_kaliset2, SIDE = 2, seed = 5000, time = 85.5 [1, 1000], zoom = 20 [1, 1000], N = 100 [1, 100],
      radio = 1 [0.1, 10], shiftX = -0.356 [-1, 1], shiftY = 0.686 [-1, 1], redF = 1.8 [0, 5], greenF = 1.9 [0, 5],
      blueF = 2.2 [0, 5]) {
    p = scaled((real)(zoom), p.x, p.y);
    Pair a = circle((real)(6.2831853f * shiftX));
    float growth = 2.0f + 5.0f * shiftY;
    real sum = zero_real(), shift = 2.0f + 2.0f * sine_of((real)(0.03f * time));
    for (int i = 0; (float)i < N; i++) {
        real r = p.x * p.x + p.y * p.y;
        mask far = r > (real)(radio);
        r = far ? radio / r : r;
        p = pair(far ? p.x * r : p.x, far ? p.y * r : p.y);
        sum = greatest(sum, r);
        p = pair((a.x * p.x - a.y * p.y) * growth, (a.y * p.x + a.x * p.y) * growth + shift);
    }
    real c = sum * sum * (500.0f / N / radio);
    return triple(cosine_of(c * redF), cosine_of(c * greenF), cosine_of(c * blueF));
}

// dc_kaliset2 on random pixels.
PIXEL_STAMP(glsl_kaliset2, SIDE = 20, Density_Pixels = 1000000 [100, 10000000], Seed = 5000, time = 85.5 [1, 1000],
            N = 100 [1, 100], radio = 1 [0.1, 10], ShiftX = -0.356 [-1, 1], ShiftY = 0.686 [-1, 1],
            Red_Fac = 1.8 [0, 5], Green_Fac = 1.9 [0, 5], Blue_Fac = 2.2 [0, 5], Gradient = 0);

// p mirrored into the wedge from 0 to `wedge` radians.
DEVICE Pair mirrored_wedge(Pair p, float wedge) {
    return from_polar(vnorm(p.x, p.y), magnitude(modulo(rough_angle(p.y, p.x), 2.0f * wedge) - wedge));
}

// The color of a mandala: p mirrored into wedges twice, then `loops` kaleidoscopic steps.
DEVICE Triple mandala(Pair p, float a, float b, float sides, float multiply, float loops, float red, float green,
                      float blue) {
    Pair s = mirrored_wedge(p, PI / sides), t = mirrored_wedge(s, PI / sides);
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
    for (int i = 0; (float)i <= loops && i < 73; i++) c = kaleidoscopic_step(c, b * 0.318309886f);
    return triple(red == 1.0f ? 1.0f - c.x : c.x, green == 1.0f ? 1.0f - c.y : c.y, blue == 1.0f ? 1.0f - c.z : c.z);
}

// mandala() at the point times 5.5 - scale.
STAMP(dc_mandala, SIDE = 2, mX = 0.025, mY = -0.001245675, scale = 2, sides = 12, multiply = 1, loops = 64,
      iR = 0 [0, 1], iG = 0 [0, 1], iB = 1 [0, 1]) {
    Pair q = scaled((real)(5.5f - scale), p.x, p.y);
    return mandala(q, mX, mY, sides, multiply, loops, iR, iG, iB);
}

// mandala() on random pixels, with whole numbers of sides, steps and multiples.
PIXEL_STAMP(glsl_mandala, SIDE = 2, PRODUCT = 1, Density_Pixels = 1000000 [100, 10000000], mX = 0.025,
            mY = -0.001245675, scale = 2, sides = 12, multiply = 1.5, loops = 64, iR = 0 [0, 1], iG = 0 [0, 1],
            iB = 1 [0, 1], Gradient = 0 [0, 1]) {
    real k = (real)(5.5f - scale);
    float times = multiply > 0.001f ? (float)(int)multiply : 0.0f;
    float inverts = Gradient == 0.0f ? 1.0f : 0.0f;  // the product of red and green is computed before inversion
    p = scaled(k, p.x, p.y);
    return mandala(p, mX, mY, (float)(int)sides, times, (float)(int)loops, iR * inverts, iG * inverts, iB * inverts);
}

// A Mandelbrot set whose plane N inversions have folded; colored by the sum of the radii until the escape.
STAMP(dc_mandbrot, nIters = 250 [10, 1000], N = 8 [2, 10], Complexity = 0.995 [0, 1], seed = 10000, time = 0, zoom = 4,
      red = 0.0314 [0, 1], green = 0.02 [0, 1], blue = 0.011 [0, 1]) {
    real t = (real)(time / 65.0f * 10.0f);
    Pair turn = circle(t);
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
    mask out = sum > 1.0f;  // false
    for (int i = 0; (float)i < nIters; i++) {
        real nx = sx * sx - sy * sy + px, ny = 2.0f * sx * sy + py, l = vnorm(nx, ny);
        sx = out ? sx : nx;
        sy = out ? sy : ny;
        sum = out ? sum : sum + l + 0.5f;
        out = out || l > 2.0f;
    }
    return triple(1.0f - (out ? sine_of(sum * red) : zero_real()), 1.0f - (out ? sine_of(sum * green) : zero_real()),
                  1.0f - (out ? sine_of(sum * blue) : zero_real()));
}

// A slice of the Mandelbox: 20 box and sphere folds with the scale oz; colored by the distance estimate d.
STAMP(dc_mandelbox2D, zoom = 7, seed = 10000, time = 0) {
    p = scaled((real)(zoom), p.x, p.y);
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

// dc_mandelbox2D on random pixels.
PIXEL_STAMP(glsl_mandelbox2D, SIDE = 14, PRODUCT = 1, Density_Pixels = 1000000 [100, 10000000], seed = 10000, time = 0,
            Gradient = 0 [0, 1]);

// A face of the Menger sponge (Sierpinski's carpet) of `level` levels.
STAMP(dc_menger, zoom = 1, level = 3 [1, 5]) {
    real px = p.x * zoom * 1.3f, py = p.y * zoom * 1.3f, ax = magnitude(px) - 1.0f, ay = magnitude(py) - 1.0f;
    real d = vnorm(greatest(ax, zero_real()), greatest(ay, zero_real())) + least(greatest(ax, ay), zero_real());
    float s = 1.0f;
    for (int i = 0; (float)i < level; i++) {
        real rx = magnitude(1.0f - 3.0f * magnitude(modulo(px * s, 2.0f) - 1.0f));
        real ry = magnitude(1.0f - 3.0f * magnitude(modulo(py * s, 2.0f) - 1.0f));
        s *= 3.0f;
        d = greatest(d, (least(rx, ry) - 1.0f) / s);
    }
    return gray(d > 0.0f ? zero_real() : (real)(1.0f));
}

// 64 folds of the plane along both axes, each followed by a rotation, a shift and a scaling.
STAMP(dc_spacefold, randomize = 1000, time = 0, zoom = 2.5) {
    Pair c = circle((real)(time / 30.0f));
    real a = p.x * zoom, b = p.y * zoom;
    for (int i = 0; i < 64; i++) {
        Pair q = spun(pair(magnitude(a), magnitude(b)), c.x, -c.y);
        a = (q.x - 0.5f) * 1.03f;
        b = (q.y - 0.5f) * 1.03f;
    }
    real t = power_of(magnitude(sine_of(a)), (real)(0.3f)) * power_of(magnitude(sine_of(b)), (real)(0.3f)) * 1.9f;
    return triple(0.5f + 0.5f * cosine_of((t + 0.8f) * TWO_PI), 0.5f + 0.5f * cosine_of((t + 0.9f) * TWO_PI),
                  0.5f + 0.5f * cosine_of((0.5f * t + 0.3f) * TWO_PI));
}

// A tree that moves with time: in `levels` levels, p is mirrored and turned into the branch; r is the distance from it.
STAMP(dc_tree, levels = 20 [1, 25], thicknes = 1000 [-1500, 1500], style = 50 [1, 100], shift = 1.5 [-100, 100],
      seed = 10000, time = 0, zoom = 4) {
    real r = (real)(1e9f), t = (real)(time), sum = zero_real();
    Pair q = pair(p.x * zoom, p.y * zoom + shift);
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
    return gray(sum);
}

// An orbit of folds and rotations; it ends near an axis or far outside, and exponentials of its points are the color.
STAMP(dc_kaleidocomplex, seed = 1000000, time = 0, iMax = 12 [1, 50], color = 2, redF = 1 [0, 5], greenF = 1 [0, 5],
      blueF = 1 [0, 5]) {
    Pair turn = circle((real)(time));
    real zx = magnitude(p.x) * 8.0f, zy = magnitude(p.y) * 8.0f, zero = zero_real(), zz = zero, zw = zero;
    Triple c = gray(zero);
    mask done = zx != zx;  // false
    for (int i = 0; (float)i <= iMax; i++) {
        float n = (float)i, shift = (i & 1 ? 1.0f : -1.0f) - 10.5f;
        real ax = zx - zy, ay = zx + zy;
        ax = magnitude(ax) + shift;
        ay = magnitude(ay) + shift;
        real bx = ax * turn.y - ay * turn.x, by = ax * turn.x + ay * turn.y;
        zz = dc_kaleidocomplex_color * (bx * zz - by * zw);
        zw = dc_kaleidocomplex_color * (by * zz - bx * zw);
        zx = bx;
        zy = by;
        mask near = i > 0 && (magnitude(zx) < 0.51f || magnitude(zy) < 0.51f);
        real sx = exponential_of(-magnitude(zx * zx * zy)), sy = exponential_of(-magnitude(zy * zx * zy));
        real sz = exponential_of(-magnitude(least(zx, zy))), both = zx + zy;
        real tx = exponential_of(-magnitude(n / zx - zx / n)), ty = exponential_of(-magnitude(n / zy - zy / n));
        real tz = exponential_of(-magnitude(n / both - both / n));
        Triple add = triple(c.x + dc_kaleidocomplex_color * tx, c.y + dc_kaleidocomplex_color * ty,
                            c.z + dc_kaleidocomplex_color * tz);
        c = choose3(done, c, choose3(near, triple(sx, sy, sz), add));
        done = done || near || zx * zx + zy * zy > 1e7f || zz * zz + zw * zw > 1e11f;
    }
    return triple(cosine_of(c.x * redF), cosine_of(c.y * greenF), cosine_of(c.z * blueF));
}

// dc_kaleidocomplex on random pixels.
PIXEL_STAMP(glsl_kaleidocomplex, Density_Pixels = 1000000 [100, 10000000], Seed = 10000, time = 0, iMax = 12 [1, 50],
            Color = 2, Red_Fac = 1 [0, 5], Green_Fac = 1 [0, 5], Blue_Fac = 1 [0, 5], Gradient = 0 [0, 1]);

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

// The color of p by `loops` samples of circuit() around it: *light becomes their mean brightness; the color is the last
// sample's alone, as in JWildfire.
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
    Triple rgb = gray(zero_real());  // of the last sample
    int rounds = (int)loops < 23 ? (int)loops : 23;
    for (int k = 0; k <= rounds; k++) {
        Pair z = pair(q.x + pixel * (float)(k / 6), q.y + pixel * (float)(k % 6));
        rgb = circuit(z, t, (float)((int)(loops / 4.0f + (float)(int)(5.0f * zoom))), intensity, pulse, zoom, light);
    }
    float each = 1.0f / (float)(int)loops;
    real shade = 1.0f - vnorm(p.x, p.y), l = *light * each;
    *light = l;
    return triple(1.2f * shade * blend((real)(0.15f), rgb.x * each, l),
                  1.1f * shade * blend((real)(0.15f), rgb.y * each, l), shade * blend((real)(0.15f), rgb.z * each, l));
}

// circuits() at the point.
STAMP(dc_circuits, SIDE = 2, Seed = 1000000, time = 0, rate = 0.8, intensity = 0.9, focus = 1.5, pulse = 10, glow = 2,
      loops = 15, zoom = 1) {
    real light = zero_real();
    return circuits(p, time, rate, intensity, focus, pulse, loops, zoom, &light);
}

// circuits() on random pixels.
VARIATION(glsl_circuits, Density_Pixels = 1000000 [100, 10000000], time = 0, rate = 0.8, intensity = 0.9, focus = 1.5,
          pulse = 10, glow = 2, loops = 15, zoom = 1, Gradient = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random);
    real before_u = uniform(random), before_v = uniform(random), light = zero_real();
    // as in the origin, the light of the pixel drawn before adds to this pixel's; a random pixel stands for it
    Pair before = pixel_center(pixel_of(before_u, before_v, Density_Pixels), Density_Pixels, 1.0f, 0.5f);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, 1.0f, 0.5f);
    Triple c = circuits(before, time, rate, intensity, focus, pulse, loops, zoom, &light);
    c = circuits(q, time, rate, intensity, focus, pulse, loops, zoom, &light);
    return pixel_stamped(weight, p, Density_Pixels, c, color, rgb, Gradient, 1.0f);
}

// Newton-like orbits of sin((z + p)^-4) - k z + p, colored by their least squared distance `low` from 1.
REPLACING_3D(dc_butterflies, seed = 1000, time = 0, zoom = 1, red = 1, green = 1, blue = 1, ColorOnly = 0, Gradient = 0,
             scale_z = 0, offset_z = 0, reset_z = 1) {
    real u = uniform(random), v = uniform(random), low = (real)(1e10f);
    Pair p = stamp_point(ColorOnly, 1.0f, x, y, u, v);
    real zx = p.x * zoom, zy = p.y * zoom, px = zx, py = zy;
    real k = 0.9f * (1.0f + 2.0f * sine_of((real)(0.1f * time)));
    mask done = zx != zx;  // false
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

// One step of an orbit: z^power + c (formula 0), c (z - z^2) (1), c (z - 1 / z) (2) or c z^2 - 1 (3).
DEVICE Pair escape_step(int formula, Pair z, Pair c, float power) {
    Pair w = z;
    if (formula == 2) w = scaled(-1.0f / (z.x * z.x + z.y * z.y), z.x, -z.y);
    if (formula == 1 || formula == 3) power = 2.0f;
    for (int k = 1; formula != 2 && (float)k < power; k++) w = pair(w.x * z.x - w.y * z.y, w.x * z.y + w.y * z.x);
    if (formula == 0) return pair(w.x + c.x, w.y + c.y);
    if (formula == 1) w = scaled((real)(-1.0f), w.x, w.y);
    if (formula < 3) w = pair(w.x + z.x, w.y + z.y);
    return pair(w.x * c.x - w.y * c.y - (formula == 3 ? 1.0f : 0.0f), w.x * c.y + w.y * c.x);
}

// 2 + the number of points of the orbit of z within the circle of radius 2, or 1 + `most` if it stays there.
DEVICE Triple escape_count(int formula, Pair z, Pair c, float power, float most) {
    real count = (real)(1.0f);
    mask done = (mask)(0);
    for (int k = 0; (float)k < fmin(most, 1e5f); k++) {
        count = done ? count : count + 1.0f;
        done = done || z.x * z.x + z.y * z.y >= 4.0f;
        if (!ANY_LANE(!done)) break;
        z = escape_step(formula, z, c, power);
    }
    return gray(count);
}

// The Mandelbrot set of z^power + c.
ESCAPE(fract_mandelbrot_wf, xmin = -2.35, xmax = 0.75, ymin = -1.2, ymax = 1.2, clip_iter_min = 3, scale = 4,
       power = 2 [2, 100], offsetx = 0.55) {
    return escape_count(0, p, p, power, max_iter);
}

// A Julia set of z^power + c, with c = xseed + i yseed.
ESCAPE(fract_julia_wf, xmin = -1, xmax = 1, ymin = -1.2, ymax = 1.2, clip_iter_min = 4, scale = 3.8, power = 2 [2, 100],
       xseed = 0.35, yseed = 0.09) {
    return escape_count(0, p, pair((real)(xseed), (real)(yseed)), power, max_iter);
}

// A Julia set of c (z - z^2).
ESCAPE(fract_dragon_wf, xmin = -0.25, xmax = 1.2, ymin = -0.75, ymax = 0.75, clip_iter_min = 4, scale = 5, xseed = 1.4,
       yseed = 0.85, offsetx = -0.5) {
    return escape_count(1, p, pair((real)(xseed), (real)(yseed)), 2.0f, max_iter);
}

// The Mandelbrot set of c (z - 1 / z).
ESCAPE(fract_meteors_wf, xmin = -1.7, xmax = 1.7, ymin = -1.1, ymax = 1.1, clip_iter_min = 3, scale = 5.7) {
    return escape_count(2, p, p, 1.0f, max_iter);
}

// A Julia set of c (z - 1 / z).
ESCAPE(fract_pearls_wf, xmin = -2, xmax = 2, ymin = -2, ymax = 2, clip_iter_min = 1, scale = 2.45, xseed = 0,
       yseed = -0.31) {
    return escape_count(2, p, pair((real)(xseed), (real)(yseed)), 1.0f, max_iter);
}

// A Julia set of c z^2 - 1.
ESCAPE(fract_salamander_wf, xmin = -2, xmax = 2, ymin = -2, ymax = 2, clip_iter_min = 1, scale = 2.45, xseed = 0.8,
       yseed = -0.15) {
    return escape_count(3, p, pair((real)(xseed), (real)(yseed)), 2.0f, max_iter);
}
