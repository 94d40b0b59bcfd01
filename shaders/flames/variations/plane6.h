// Symmetries, mirrors, roses and sums of many functions.
// Origin: JWildfire

// The fraction of 43758.5453 sin(91.2228 n + more), n whole: turns of n in two floats, as single precision would lose it.
DEVICE real row_hash(real n, real more, float cont) {
    real p = n * 14.518559f, turns = p - nearest(p) + FUSED(n, 14.518559f, -p) + n * 8.681177e-8f + more * (0.5f / PI);
    real a = fraction_of(sine_of(TWO_PI * (turns - nearest(turns))) * 43758.5453f);
    return cont == 1.0f ? (a > 0.5f ? (real)(1.0f) : zero_real()) : a;
}

VARIATION(waves4, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13, cont = 0, yfact = 0.1) {
    real a = row_hash(floor_of(y * freqx * (1.0f / TWO_PI)), 1.0f + y * 0.001f * yfact, cont);
    return scaled(weight, x + sine_of(y * freqx) * a * a * scalex, y + sine_of(x * freqy) * scaley);
}

VARIATION(waves42, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13, cont = 0, yfact = 0.1, freqx2 = 1) {
    real a = row_hash(floor_of(y * freqx2), 1.0f + y * 0.001f * yfact, cont);
    return scaled(weight, x + sine_of(y * freqx) * a * a * scalex, y + sine_of(x * freqy) * scaley);
}

REPLACING(crop_trapezoid, Base_Sup = 0.5, Base_Inf = 0.2, height = 0.5, invert = 0) {
    float k = Base_Inf - Base_Sup, slope = 4.0f * height * height + k * k;
    real u = magnitude(x), v = y, low = v < 0.0f ? (real)(Base_Sup) : (real)(Base_Inf);
    real ax = greatest(u - low, zero_real()), ay = magnitude(v) - height;
    real t = clamped(((Base_Inf - u) * k + (height - v) * 2.0f * height) / slope, zero_real(), (real)(1.0f));
    real bx = u - Base_Inf + k * t, by = v - height + 2.0f * height * t;
    mask inside = bx < 0.0f && ay < 0.0f, outside = invert == 0.0f ? !inside : inside;
    *hidden = outside;
    return scaled(weight, outside ? zero_real() : x, outside ? zero_real() : y);
}

DEVICE real twice_area(real a, real b, real c, real d, real e, real f) {
    return magnitude(a * (d - f) + c * (f - b) + e * (b - d));
}

VARIATION(crop_triangle, x1 = 0, y1 = 0.5, x2 = 0.5, y2 = 0.5, x3 = 0, y3 = -0.5) {
    real a = (real)(x1), b = (real)(y1), c = (real)(x2), d = (real)(y2), e = (real)(x3), f = (real)(y3);
    real all = twice_area(a, b, c, d, e, f);
    real sum = twice_area(x, y, c, d, e, f) + twice_area(a, b, x, y, e, f) + twice_area(a, b, c, d, x, y);
    *hidden = sum > all * 1.000001f;
    return scaled(weight, x, y);
}

VARIATION(phoenix_julia, power = -3, dist = 1, x_distort = -0.5, y_distort = 0) {
    real a = angle_of(y * (y_distort + 1.0f), x * (x_distort + 1.0f)) * (dist / power);
    real u = uniform(random), turn = power == (float)(int)power ? random_index(u, fabs(power)) / power : u;
    real r = weight * power_of(x * x + y * y, (real)(0.5f * dist / power));
    return from_polar(r, a + TWO_PI * (turn - floor_of(turn)));
}

DEVICE real minkowski_question(real x) {
    real p = zero_real(), q = (real)(1.0f), r = p + 1.0f, s = q, d = q, y = p;
    for (int k = 0; k < 20; k++) {
        d = d * 0.5f;
        real m = p + r, n = q + s;
        mask low = x < m / n;
        r = low ? m : r;
        s = low ? n : s;
        y = low ? y : y + d;
        p = low ? p : m;
        q = low ? q : n;
    }
    return y + d;
}
DEVICE real minkowski_sine(real x, float alternate) {
    real a = magnitude(x), l = a - 4.0f * floor_of(0.25f * a), p = a - 2.0f * floor_of(0.5f * a);
    p = p > 1.0f ? 2.0f - p : p;
    real m = minkowski_question(p) - alternate * p;
    return (l < 2.0f) != (x > 0.0f) ? m : -m;
}

VARIATION(minkowskope, separation = 0.5, frequencyx = -2, frequencyy = 2, amplitude = 0.5, perturbation = 1,
          damping = 0) {
    float alternate = frequencyx <= 0.0f ? 1.0f : 0.0f;
    real shift = perturbation * minkowski_sine(0.5f * frequencyy * y, alternate);
    real t = amplitude * minkowski_sine(0.5f * frequencyx * x + shift - 1.0f, alternate);
    if (fabs(damping) > 1e-8f) t = t * exponential_of(-magnitude(x) * damping);
    real k = magnitude(y) <= t + separation ? (real)(-weight) : (real)(weight);
    return scaled(k, x, y);
}

VARIATION(rosoni, maxiter = 25 [0, 1000], sweetiter = 3, altshapes = 0, cutoff = 1, radius = 0.4, dx = 0.6, dy = 0) {
    real r = cutoff < 0.0f ? greatest(magnitude(x), magnitude(y)) + cutoff : vnorm(x, y) - cutoff;
    Pair c = circle((real)(TWO_PI / maxiter));
    real u = x, v = y, sx = x, sy = y, inside = dx > 0.0f ? (real)(1.0f) : zero_real();
    for (int k = 0; (float)k < maxiter; k++) {
        real a = u - dx, b = v - dy, d = a * a + b * b - radius * radius;
        if (altshapes == 0.0f && radius < 0.0f) d = greatest(magnitude(a), magnitude(b)) + radius;
        if (altshapes != 0.0f)
            d = radius < 0.0f ? magnitude(angle_of(b, a)) * (1.0f / PI) + radius
                              : (a < 0.0f ? -a : b * b - a * a * (radius * radius - a * a));
        inside = d <= 0.0f ? 1.0f - inside : inside;
        if ((float)k == sweetiter) {
            sx = u;
            sy = v;
        }
        real w = u * c.x - v * c.y;
        v = u * c.y + v * c.x;
        u = w;
    }
    mask moves = r <= 0.0f && inside > 0.5f;
    float kx = sweetiter == 0.0f && dy != 0.0f ? -1.0f : 1.0f, ky = sweetiter == 0.0f ? -1.0f : 1.0f;
    return scaled(weight, moves ? kx * sx : x, moves ? ky * sy : y);
}

VARIATION(scrambly, l = 3, seed = 51, byrows = 0, cellsize = 0.1) {
    float count = table[0], cell = cellsize / count, back = 0.5f * cellsize;
    real u = (x + back) / cell, v = (y + back) / cell, i = floor_of(u), j = floor_of(v);
    mask outside = i < 0.0f || i >= count || j < 0.0f || j >= count;
    real at = outside ? zero_real() : i + count * j, k = table_at(table, 1.0f + at), row = floor_of((k + 0.5f) / count);
    real a = (u - i + (k - count * row)) * cell - back, b = (v - j + row) * cell - back;
    return scaled(weight, outside ? x : a, outside ? y : b);
}

VARIATION(tqmirror, preset = 0, a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 0,
          m = 0, n = 0, o = 0, p = 0, q = 0, r = 1, s = 1, type = 0, mode = 0) {
    mask low = weight * d + x < l || weight * e + y < m, corner = x < n && y < o;
    mask turned = x + q < weight && y < weight * a && x + weight * b > l && y + weight * c > p;
    float sh = mode == 2.0f ? 1.0f : -1.0f, sj = mode == 1.0f ? -1.0f : 1.0f, sk = mode == 0.0f ? 1.0f : -1.0f;
    real u = turned ? sh * h * y : sj * j * x, v = turned ? -i * x : sk * k * y;
    u = corner ? x + weight * f : u;
    v = corner ? y + weight * g : v;
    u = low ? (type != 0.0f ? x * r : y * r) : u;
    v = low ? (type != 0.0f ? y * s : x * s) : v;
    return pair(u, v);
}

VARIATION(lazyTravis, spin_in = 1, spin_out = 0.5, space = 1.5707963267948966) {
    real ax = magnitude(x), ay = magnitude(y), s = greatest(ax, ay);
    mask outside = ax > weight || ay > weight;
    real p = ax > ay ? (x > 0.0f ? s + y : 5.0f * s - y) : (y > 0.0f ? 3.0f * s - x : 7.0f * s + x);
    p = remainder_of(p + s * (outside ? (real)(4.0f * spin_out) : (real)(4.0f * spin_in)), 8.0f * s);
    real gap = outside ? (real)(space) : zero_real(), k = 1.0f + gap / s;
    real u = p <= 2.0f * s   ? s + gap
             : p <= 4.0f * s ? (3.0f * s - p) * k
             : p <= 6.0f * s ? -s - gap
                             : (p - 7.0f * s) * k;
    real v = p <= 2.0f * s ? (p - s) * k : p <= 4.0f * s ? s + gap : p <= 6.0f * s ? (5.0f * s - p) * k : -s - gap;
    return scaled(weight, u, v);
}

VARIATION(yin_yang, radius = 0.5, ang1 = 0, ang2 = 0, dual_t = 1 [0, 1], outside = 0 [0, 1]) {
    mask second = uniform(random) > 0.5f && dual_t == 1.0f, inside = x * x + y * y < 1.0f;
    Pair c = circle(second ? (real)(PI * ang2) : (real)(PI * ang1));
    real side = second ? (real)(-1.0f) : (real)(1.0f), r = second ? (real)(1.0f - radius) : (real)(radius);
    real u = x * c.x - y * c.y, v = x * c.y + y * c.x, t = sqrt(1.0f - v * v), t1 = 2.0f * t - 1.0f;
    real a = 0.5f * (1.0f - u / t), k = a * r + 1.0f - a;
    real p = v > 0.0f ? t1 * k + a * (r - 1.0f) : u * (1.0f - r) + r;
    real q = v > 0.0f ? sqrt(1.0f - t1 * t1) * k : v * (1.0f - r);
    real kept = outside == 1.0f ? (real)(weight) : zero_real();
    return pair(inside ? weight * p * side : kept * x, inside ? weight * q * side : kept * y);
}

DEVICE real lattice_noise(real i, real j) {
    bits n = bits_of_whole(truncated(i)) + bits_of_whole(truncated(j)) * 57u;
    n = (n << 13) ^ n;
    n = (n * (n * n * 15731u + 789221u) + 1376312589u) & 0x7fffffffu;
    return real_of(whole_of_bits(n)) * 4.656612875245797e-10f;
}

VARIATION(circleRand, Sc = 1, Dens = 0.5, X = 10, Y = 10, Seed = 0) {
    real seed1 = uniform(random), seed2 = uniform(random), u = x, v = y, a = x, b = y;
    Random many = stream_of(seed1, seed2);
    mask done = x != x;
    for (int k = 0; k < 100; k++) {
        real p = X * (1.0f - 2.0f * uniform(&many)), q = Y * (1.0f - 2.0f * uniform(&many));
        real i = floor_of(0.5f * p / Sc), j = floor_of(0.5f * q / Sc);
        a = p - (2.0f * i + 1.0f) * Sc;
        b = q - (2.0f * j + 1.0f) * Sc;
        mask good = lattice_noise(i + Seed, j) <= Dens &&
                    vnorm(a, b) <= (0.3f + 0.7f * lattice_noise(i + 10.0f, j + 3.0f)) * Sc;
        u = done ? u : p;
        v = done ? v : q;
        done = done || good;
        if (!ANY_LANE(!done)) break;
    }
    return scaled(weight, u, v);
}

DEVICE real damped_wave(real t, float a1, float f1, real p1, float d1, float a2, float f2, real p2, float d2) {
    return a1 * sine_of(t * f1 + p1) * exponential_of(-d1 * t) + a2 * sine_of(t * f2 + p2) * exponential_of(-d2 * t);
}

VARIATION(harmonograph_js, seed = 1234, time = 100, a1 = 100, f1 = 2, p1 = 30, d1 = 0.001, a2 = 100, f2 = 3, p2 = 60,
          d2 = 0.001, a3 = 100, f3 = 3, p3 = 20, d3 = 0.001, a4 = 100, f4 = 2, p4 = 45, d4 = 0.001) {
    real t = uniform(random) * time, k = (real)(PI / 180.0f);
    real u = damped_wave(t, a1, f1, p1 * k, d1, a2, f2, p2 * k, d2);
    real v = damped_wave(t, a3, f3, (p3 + 90.0f) * k, d3, a4, f4, (p4 + 90.0f) * k, d4);
    return scaled(weight / 180.0f, u, v);
}

// Where a rose's place (px, py) lies that the point (x, y) at radius `inside` spreads.
DEVICE Pair spread_place(float mode, float spread, float ratio, real inside, real x, real y, real px, real py) {
    real ax = with_sign_of(x, px), ay = with_sign_of(y, py);
    ax = px < 0.0f ? -magnitude(x) : magnitude(x);
    ay = py < 0.0f ? -magnitude(y) : magnitude(y);
    if (mode == 1.0f) {
        real kx = (inside - 1.0f) * (spread * ratio) + 1.0f, ky = (inside - 1.0f) * spread + 1.0f;
        return pair(kx * px, ky * py);
    }
    if (mode == 2.0f) return pair(px + spread * ratio * (ax - px), py + spread * (ay - py));
    if (mode == 3.0f) return pair(px + spread * ratio * ax, py + spread * ay);
    if (mode == 4.0f) return pair((0.5f * inside + spread * ratio) * px, (0.5f * inside + spread) * py);
    return pair(px, py);
}

VARIATION(butterfly_fay, offset = 0, unified_inner_outer = 1 [0, 1], outer_mode = 1, inner_mode = 1, outer_spread = 0,
          inner_spread = 0, outer_spread_ratio = 1, inner_spread_ratio = 1, spread_split = 1, cycles = 0, fill = 0) {
    float turns = cycles == 0.0f ? PI * PI : cycles;
    real t = turns * angle_of(y, x), inside = spread_split * vnorm(x, y), s = magnitude(sine_of(t / 12.0f));
    real r = 0.5f * (exponential_of(cosine_of(t)) - 2.0f * cosine_of(4.0f * t) - square(square(s)) * s + offset);
    r = r + fill * (uniform(random) - 0.5f);
    Pair c = circle(t);
    real px = r * c.y, py = -r * c.x;
    mask outer = magnitude(inside) > magnitude(r) || unified_inner_outer == 1.0f;
    Pair a = spread_place(outer_mode, outer_spread, outer_spread_ratio, inside, x, y, px, py);
    Pair b = spread_place(inner_mode, inner_spread, inner_spread_ratio, inside, x, y, px, py);
    if (outer_mode == 5.0f) a = pair(px + outer_spread * outer_spread_ratio * x, py + outer_spread * y);
    if (inner_mode == 5.0f) b = pair(px + inner_spread * inner_spread_ratio * x, py + inner_spread * y);
    return scaled(weight, outer ? a.x : b.x, outer ? a.y : b.y);
}

VARIATION(rhodonea, knumer = 3, kdenom = 4, inner_mode = 1, outer_mode = 1, inner_spread = 0, outer_spread = 0,
          inner_spread_ratio = 1, outer_spread_ratio = 1, spread_split = 1, fill = 0, radial_offset = 0, cycles = 0,
          cycle_offset = 0, metacycles = 1, metacycle_expansion = 0) {
    // table: the turns that close the rose
    float closing = table[0], turns = cycles == 0.0f ? closing * metacycles : cycles;
    real inside = spread_split * vnorm(x, y), a = angle_of(y, x), t = turns * (a + cycle_offset * TWO_PI);
    real r = cosine_of(knumer / kdenom * t) + radial_offset + fill * (uniform(random) - 0.5f);
    Pair c = circle(t);
    real px = r * c.x, py = r * c.y;
    real k = weight + floor_of(turns * (a + PI) / (closing * TWO_PI)) * metacycle_expansion;
    mask outer = magnitude(inside) > magnitude(r);
    Pair p = spread_place(outer_mode, outer_spread, outer_spread_ratio, inside, x, y, px, py);
    Pair q = spread_place(inner_mode, inner_spread, inner_spread_ratio, inside, x, y, px, py);
    mask kept = outer ? outer_mode == 5.0f : inner_mode == 6.0f;
    mask gone = outer ? outer_mode == 6.0f : inner_mode == 5.0f;
    *hidden = gone;
    real u = kept ? x : k * (outer ? p.x : q.x), v = kept ? y : k * (outer ? p.y : q.y);
    return pair(gone ? zero_real() : u, gone ? zero_real() : v);
}

VARIATION_3D(pRose3D, l = 1, k = 7.229361817667129, c = 0, z1 = 1, z2 = 1, refSc = 1, opt = 1, optSc = 1, opt3 = 0,
             transp = 0.5, dist = 1, wagsc = 0, srvsc = 0, f = 3, wigsc = 0, offset = 0) {
    real ghost = uniform(random), side = uniform(random), r = vnorm(x, y), th = angle_of(y, x);
    float direction = opt < 0.0f || opt3 < 0.0f ? -1.0f : 1.0f, s12 = fmin(fabs(opt), 2.0f),
          s3 = fmin(fabs(opt3), 1.0f);
    float cycle = TWO_PI / (k == 0.0f ? 0.000001f : k), length = l, scale = fabs(optSc);
    real c1 = r / length, c2 = c1 * c1, c3 = (r - 0.5f * length) / length, c4 = c2 * c2;
    real wig = th / cycle * (f * PI) + offset * cycle;
    real up = 0.5f * srvsc * sine_of(c2 * PI), over = 0.5f * srvsc * cosine_of(c3 * PI);
    real base = wagsc * 0.4f * r, base2 = wagsc * 0.4f * r * r;
    real wag = sine_of(c1 * (PI * scale)) + base + (direction < 0.0f ? up : over);
    real wag3 = sine_of(c4 * (PI * scale)) + base2 + (direction < 0.0f ? over : up);
    real wag2 = sine_of(c2 * (PI * scale)) + base + over;
    float anti = 2.0f - s12;
    real both = s12 <= 1.0f ? wag : wag2 * (1.0f - anti) + wag * anti;
    real waggle = s3 == 0.0f ? both : both * (1.0f - s3) + wag3 * s3;
    real wave = square(0.5f * r) * sine_of(wig) * (0.5f * wigsc), petal = 0.5f * length * cosine_of(k * th + c);
    mask reflected = ghost < (direction > 0.0f ? 0.0f : transp * transp) && side < 0.5f;
    real scale_xy = reflected ? (real)(refSc) : (real)(1.0f);
    real h = reflected ? -0.5f * (z2 * waggle + wave + dist) : 0.5f * (z1 * waggle + wave + dist);
    Pair p = circle(th);
    return triple(weight * scale_xy * petal * p.x, weight * scale_xy * petal * p.y, weight * h);
}
