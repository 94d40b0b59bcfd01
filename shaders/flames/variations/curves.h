// Random points of plane and space curves, roses and leaves.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// (sin t, sin^2 t / cos t) for random t.
VARIATION(arch) {
    Pair c = circle(uniform(random) * (weight * PI));
    return scaled(weight, c.y, c.y * c.y / c.x);
}

// A logarithm of sines of a random part of the radius, along x and y.
VARIATION(twintrian) {
    Pair c = circle(uniform(random) * weight * vnorm(x, y));
    real d = 0.434294481903252f * logarithm_of(c.y * c.y) + c.x;
    d = magnitude(d) <= 1e10f ? d : (real)(-30.0f);
    return scaled(weight * x, d, d - PI * c.y);
}

// Random points of a rose with `petals` petals; `holes` moves them away from the center.
VARIATION(flower, petals = 0, holes = 0) {
    real k = (uniform(random) - holes) * cosine_of(petals * angle_of(y, x)) / vnorm(x, y);
    return scaled(weight * k, x, y);
}

// A conic section of this eccentricity with its focus at the origin, filled at random.
VARIATION(conic, eccentricity = 1, holes = 0) {
    real r = vnorm(x, y);
    real k = (uniform(random) - holes) * eccentricity / (1.0f + eccentricity * (x / r)) / r;
    return scaled(weight * k, x, y);
}

// Random points between a parabola's axes: sin^2 r and cos r, each times a random number.
VARIATION(parabola, height = 0, width = 0) {
    Pair c = circle(vnorm(x, y));
    real u = height * (c.y * c.y) * uniform(random);
    return scaled(weight, u, width * c.x * uniform(random));
}

// Origin: JWildfire

// A random point of a line of length `weight` in the direction of both angles, in half turns.
VARIATION_3D(line, delta = 0, phi = 0) {
    Pair d = circle((real)(delta * PI)), p = circle((real)(phi * PI));
    real r = weight * uniform(random);
    return triple(r * d.x * p.x, r * d.y * p.x, r * p.y);
}

// A random point of an epicycloid: circle b rolls around circle a, with the pen at c1 and c2.
VARIATION(spirograph, a = 3, b = 2, d = 0, tmin = -1, tmax = 1, ymin = -1, ymax = 1, c1 = 0, c2 = 0) {
    real t = (tmax - tmin) * uniform(random) + tmin, v = (ymax - ymin) * uniform(random) + ymin;
    Pair c = circle(t), s = circle((a + b) / b * t);
    return scaled(weight, (a + b + d) * c.x - c1 * s.x + v, (a + b + d) * c.y - c2 * s.y + v);
}

// A random point of a Lissajous curve of frequencies a and b.
VARIATION(lissajous, tmin = -3.141592653589793, tmax = 3.141592653589793, a = 3, b = 2, c = 0, d = 0, e = 0) {
    real t = (tmax - tmin) * uniform(random) + tmin, v = e * (uniform(random) - 0.5f) + c * t;
    return scaled(weight, sine_of(a * t + d) + v, sine_of(b * t) + v);
}

// T. Fay's curve of the chrysanthemum.
VARIATION(chrysanthemum) {
    real u = 21.0f * PI * uniform(random), p4 = sine_of(17.0f / 3.0f * u);
    real p8 = square(square(sine_of(2.0f * cosine_of(3.0f * u) - 28.0f * u)));
    real r = 5.0f * (1.0f + sine_of(2.2f * u)) - 4.0f * square(square(p4)) * p8 * p8;
    return from_polar(0.1f * weight * r, u);
}

// A factor on the distance of a leaf's edge: with the probability `filled` a random one, 0 to 1, else 1. Both numbers
// are drawn in any case, so that all devices draw the same numbers afterwards.
DEVICE real leaf_fill(float filled, Random *random) {
    real pick = uniform(random), inner = uniform(random);
    return pick < filled ? inner : (real)(1.0f);
}

// The point at radius r and the angle a from +y, or with the probability `filled` a random point nearer to (0, 0).
DEVICE Pair leaf_point(float weight, real r, real a, float filled, Random *random) {
    return swapped(from_polar(weight * r * leaf_fill(filled, random), a));
}

DEVICE real power10(real x) { return square(square(x * x)) * x * x; }

// A rose of `waves` waves.
VARIATION(rose_wf, amp = 0.5, waves = 4, filled = 0.85) {
    real a = atan_xy(y, x), r = amp * cosine_of(waves * a);
    return leaf_point(weight, r, a, filled, random);
}

// A clover leaf.
VARIATION(cloverleaf_wf, filled = 0.85) {
    real a = atan_xy(y, x), r = sine_of(2.0f * a) + 0.25f * sine_of(6.0f * a);
    return leaf_point(weight, r, a, filled, random);
}

// A hemp leaf.
VARIATION(cannabiscurve_wf, filled = 0.85) {
    real a = atan_xy(y, x);
    real r = (1.0f + 0.9f * cosine_of(8.0f * a)) * (1.0f + 0.1f * cosine_of(24.0f * a)) *
             (0.9f + 0.1f * cosine_of(200.0f * a)) * (1.0f + sine_of(a));
    a = a + 0.5f * PI;
    return leaf_point(weight, r, a, filled, random);
}

// The epispiral r = 1 / cos(n phi) less `holes`, with a random thickness.
VARIATION(epispiral, n = 6, thickness = 0, holes = 1) {
    real theta = angle_of(y, x), d = 1.0f / cosine_of(n * theta);
    real t = thickness != 0.0f ? uniform(random) * thickness * d : d;
    return from_polar(weight * (t - holes), theta);
}

// The epispiral r = 0.5 / cos(n phi).
VARIATION(epispiral_wf, waves = 4) {
    real a = atan_xy(y, x);
    return swapped(from_polar(weight * 0.5f / cosine_of(waves * a), a));
}

// A polar curve of a maple's leaf: products of powers of cosines of t.
VARIATION(maple_leaf, filled = 0.5) {
    real t = atan_xy(y, x) - 0.5f * PI, r = leaf_fill(filled, random);
    real c = cosine_of(t), c3 = cosine_of(3.0f * t), c6 = cosine_of(6.0f * t), c30 = cosine_of(30.0f * t);
    real far = 1.0f - square(c * c), edge = 1.0f - power10(c) * c3 * c3, veins = 1.0f - power10(sine_of(6.0f * t));
    real coarse = square(c30 * c30), fine = square(coarse) * coarse;
    real p10 = power10(c6 * cosine_of(24.0f * t)), q10 = power10(c6 * cosine_of(18.0f * t));
    real u = (1.0f + c6 * c6 + 0.2f * p10 + (1.0f / 9.0f * fine) * veins) * sine_of(2.0f * t) * far * edge;
    real tip = 1.05f * cosine_of(2.0f * t) * (far + 0.5f * power10(c * c3));
    real v = tip * (1.0f + c6 * c6 + 0.2f * q10 + (0.25f * coarse + 0.1f * fine) * edge * veins);
    return scaled(weight * r, u, v);
}

// A polar curve of an oak's leaf.
VARIATION(oak_leaf, filled = 0.25) {
    real t = -0.5f * atan_xy(y, x) - 0.5f * PI, r = 2.0f * leaf_fill(filled, random);
    Pair a = circle(t);
    real waves = square(sine_of(10.0f * t)), s2 = sine_of(2.0f * t);
    real tip = square(square(a.x * a.x)) * a.x, m = square(square(square(a.x * cosine_of(3.0f * t))));
    real u = 0.01f * tip * power10(cosine_of(5.0f * t)) + 0.25f * s2 * (1.0f - 0.5f * waves) * (1.0f - m);
    return scaled(weight * r, u, a.y * (1.0f - 0.2f * waves * (0.5f + s2 * s2)));
}

// spirograph in space; `mode` selects the scatter: a line, three waves, a cube, a Gaussian or two lines.
VARIATION_3D(spirograph3D, a = 1, b = -0.3, c = 0.4, tmin = 0, tmax = 1000, width = 0, mode = 0, direct_color = 0) {
    real t = (tmax - tmin) * uniform(random) + tmin, u = width * (uniform(random) - 0.5f), v = u, w = u;
    if (mode == 1.0f) {
        v = u * sine_of(36.0f * t + TWO_PI / 3.0f);
        w = u * sine_of(36.0f * t + 2.0f * TWO_PI / 3.0f);
        u = u * sine_of(36.0f * t);
    }
    if (mode == 2.0f) {
        v = width * (uniform(random) - 0.5f);
        w = width * (uniform(random) - 0.5f);
    }
    if (mode == 3.0f) {
        u = 0.5f * width * gauss4(random);
        v = 0.5f * width * gauss4(random);
        w = 0.5f * width * gauss4(random);
    }
    if (mode == 4.0f) {
        u = u < 0.0f ? (real)(width) : (real)(-width);
        v = w = zero_real();
    }
    if (mode > 4.0f) u = v = w = zero_real();
    Pair p = circle(t), q = circle((a + b) / b * t);
    if (direct_color != 0.0f) *color = fraction_of(t * (1.0f / TWO_PI));
    return scaled3(weight, (a + b) * p.x - c * q.x + u, (a + b) * p.y - c * q.y + v, c * q.y + w);
}

// Weierstrass' curve: 14 terms of frequencies a^k and amplitudes a^(-b k).
VARIATION_3D(crown_js, a = 5, b = 0.6309297535714574) {
    real t = -PI + TWO_PI * uniform(random), u = zero_real(), v = zero_real();
    real denominator = (real)(1.0f), step = power_of((real)(a), (real)(b)), angle = t;
    for (int k = 1; k < 15; k++) {
        denominator = denominator * step;
        angle = angle * a;
        Pair c = circle(angle);
        u = u + (k & 1 ? c.y : -c.y) / denominator;
        v = v + c.x / denominator;
    }
    real r2 = u * u + v * v;
    *color = fraction_of(weight * weight * r2);
    return triple(weight * u, weight * v, weight * r2 * r2);
}

// A heart: the angle becomes the parameter of its curve, the radius its size.
VARIATION(heart_wf, scale_x = 1, shift_t = 0, scale_r_left = 1, scale_r_right = 1) {
    real a = atan_xy(y, x), r = vnorm(x, y), scale = a < 0.0f ? (real)(scale_r_left) : (real)(scale_r_right);
    real t = least(magnitude(a) * (60.0f / PI) * scale - shift_t, (real)(60.0f));
    Pair c = circle(PI / 180.0f * t);
    real k = 0.001f * (-t * t + 40.0f * t + 1200.0f) * c.y * r * scale_x;
    return scaled(weight, a < 0.0f ? -k : k, -0.001f * (-t * t + 40.0f * t + 400.0f) * c.x * r);
}

// A polar curve of a Japanese maple's leaf.
VARIATION(japanese_maple_leaf, filled = 0.15) {
    real t = 0.5f * atan_xy(y, x) + 0.5f * PI, r = 0.667f * leaf_fill(filled, random);
    Pair a = circle(t);
    real c3 = cosine_of(3.0f * t), c8 = cosine_of(8.0f * t), c80 = square(cosine_of(80.0f * t));
    real tip = square(square(a.x * a.x)) * a.x, edge = 1.0f - tip * a.x * c3 * c3;
    real fine = c80 / 6.0f + square(c80 * c80) * c80 / 15.0f, veins = 1.0f - power10(sine_of(8.0f * t));
    real base = 4.0f / 15.0f + c8 * c8 + 0.2f * power10(c8 * cosine_of(24.0f * t));
    real side = edge + tip * power10(cosine_of(5.0f * t)) / 30.0f;
    real u = (base + fine) * veins * sine_of(2.0f * t) * (1.0f + a.y) * side;
    real v = (base + fine * edge * veins) * cosine_of(2.0f * t) * (1.0f + a.y + power10(a.x * c3));
    return scaled(weight * r, u, v);
}

// The sum of two damped sines at time t: amplitude a, frequency f, phase p, damping d.
DEVICE real damped_sines(real t, float a1, float f1, real p1, float d1, float a2, float f2, real p2, float d2) {
    return a1 * sine_of(t * f1 + p1) * exponential_of(-d1 * t) + a2 * sine_of(t * f2 + p2) * exponential_of(-d2 * t);
}

// A random point of the drawing of two pendulums, each the sum of two damped sines.
VARIATION(harmonograph_js, seed = 1234, time = 100, a1 = 100, f1 = 2, p1 = 30, d1 = 0.001, a2 = 100, f2 = 3, p2 = 60,
          d2 = 0.001, a3 = 100, f3 = 3, p3 = 20, d3 = 0.001, a4 = 100, f4 = 2, p4 = 45, d4 = 0.001) {
    real t = uniform(random) * time, k = (real)(PI / 180.0f);
    real u = damped_sines(t, a1, f1, p1 * k, d1, a2, f2, p2 * k, d2);
    real v = damped_sines(t, a3, f3, (p3 + 90.0f) * k, d3, a4, f4, (p4 + 90.0f) * k, d4);
    return scaled(weight / 180.0f, u, v);
}

// The point (px, py) of a rose after a spread: toward or away from the chain's point (x, y) at radius `inside`.
DEVICE Pair spread_point(float mode, float spread, float ratio, real inside, real x, real y, real px, real py) {
    real ax = px < 0.0f ? -magnitude(x) : magnitude(x), ay = py < 0.0f ? -magnitude(y) : magnitude(y);
    if (mode == 1.0f) {
        real kx = (inside - 1.0f) * (spread * ratio) + 1.0f, ky = (inside - 1.0f) * spread + 1.0f;
        return pair(kx * px, ky * py);
    }
    if (mode == 2.0f) return pair(px + spread * ratio * (ax - px), py + spread * (ay - py));
    if (mode == 3.0f) return pair(px + spread * ratio * ax, py + spread * ay);
    if (mode == 4.0f) return pair((0.5f * inside + spread * ratio) * px, (0.5f * inside + spread) * py);
    return pair(px, py);
}

// T. Fay's butterfly curve; points inside and outside of it spread by two modes (spread_point).
VARIATION(butterfly_fay, offset = 0, unified_inner_outer = 1 [0, 1], outer_mode = 1, inner_mode = 1, outer_spread = 0,
          inner_spread = 0, outer_spread_ratio = 1, inner_spread_ratio = 1, spread_split = 1, cycles = 0, fill = 0) {
    float turns = cycles == 0.0f ? PI * PI : cycles;
    real t = turns * angle_of(y, x), inside = spread_split * vnorm(x, y), s = magnitude(sine_of(t / 12.0f));
    real r = 0.5f * (exponential_of(cosine_of(t)) - 2.0f * cosine_of(4.0f * t) - square(square(s)) * s + offset);
    r = r + fill * (uniform(random) - 0.5f);
    Pair c = circle(t);
    real px = r * c.y, py = -r * c.x;
    mask outer = magnitude(inside) > magnitude(r) || unified_inner_outer == 1.0f;
    Pair a = spread_point(outer_mode, outer_spread, outer_spread_ratio, inside, x, y, px, py);
    Pair b = spread_point(inner_mode, inner_spread, inner_spread_ratio, inside, x, y, px, py);
    if (outer_mode == 5.0f) a = pair(px + outer_spread * outer_spread_ratio * x, py + outer_spread * y);
    if (inner_mode == 5.0f) b = pair(px + inner_spread * inner_spread_ratio * x, py + inner_spread * y);
    return scaled(weight, outer ? a.x : b.x, outer ? a.y : b.y);
}

// The rose r = cos(knumer / kdenom t); points inside and outside of it spread by two modes (spread_point).
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
    Pair p = spread_point(outer_mode, outer_spread, outer_spread_ratio, inside, x, y, px, py);
    Pair q = spread_point(inner_mode, inner_spread, inner_spread_ratio, inside, x, y, px, py);
    mask kept = outer ? outer_mode == 5.0f : inner_mode == 6.0f;
    mask gone = outer ? outer_mode == 6.0f : inner_mode == 5.0f;
    *hidden = gone;
    real u = kept ? x : k * (outer ? p.x : q.x), v = kept ? y : k * (outer ? p.y : q.y);
    return pair(gone ? zero_real() : u, gone ? zero_real() : v);
}

// A rose of k petals of length l, which bend in z by waves: sines of the radius over l (wag), of its square (wag2) and
// of its fourth power (wag3). |opt| from 1 to 2 blends from wag to wag2, |opt3| from 0 to 1 from these to wag3. If opt
// or opt3 is negative, transp^2 / 2 of the points are mirrored below the plane.
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
    return lifted(from_polar(weight * scale_xy * petal, th), weight * h);
}

// A point of a Maurer rose (lines between points of a rose, at equal steps of the angle), of its points or its rose.
VARIATION(maurer_rose, kn = 2, kd = 1, c = 0, line_offset_degrees = 71, line_count = 360, show_lines = 1,
          show_points = 0, show_curve = 0.05, line_thickness = 0.5, point_thickness = 3, curve_thickness = 1) {
    float k = kn / kd, step = line_offset_degrees * (TWO_PI / 360.0f), all = show_lines + show_points + show_curve;
    real t = line_count * line_offset_degrees / 360.0f * angle_of(y, x), first = floor_of(t / step) * step;
    Pair a = from_polar(cosine_of(k * first) + c, first);
    Pair b = from_polar(cosine_of(k * (first + step)) + c, first + step);
    Pair p = from_polar(cosine_of(k * t) + c, t);
    real pick = uniform(random) * all, u = uniform(random), v = uniform(random), w = uniform(random);
    mask line = pick < (real)(show_lines), dot = !line && pick <= (real)(show_lines + show_points);
    Pair d = from_polar(0.01f * point_thickness * u, TWO_PI * v);
    mask start = pick <= (real)(show_lines + 0.5f * show_points);
    real jx = v - 0.5f, jy = w - 0.5f;
    real lx = a.x + u * (b.x - a.x) + 0.01f * line_thickness * jx,
         ly = a.y + u * (b.y - a.y) + 0.01f * line_thickness * jy;
    real dx = (start ? a.x : b.x) + d.x, dy = (start ? a.y : b.y) + d.y;
    real cx = p.x + 0.01f * curve_thickness * jx, cy = p.y + 0.01f * curve_thickness * jy;
    return scaled(weight, line ? lx : dot ? dx : cx, line ? ly : dot ? dy : cy);
}

// Origin: JWildfire

// A spiral on a cone, around which the point is scaled by `thickness`.
VARIATION_3D(conicalSpiral, turns = 8, radius = 1.2, height = 1, mode = 0, z_wave_freq = 0, z_wave_amp = 0, twist = 0,
             thickness = 0, solid = 0, colorize = 0, colorMode = 0, colorSpeed = 1, colorOffset = 0) {
    real a = uniform(random), b = uniform(random), c = uniform(random);
    real t = wrap_unit(magnitude(mode == 1.0f ? y : mode == 2.0f ? z : x)), angle = TWO_PI * turns * t;
    real h = t * height + z_wave_amp * sine_of(TWO_PI * z_wave_freq * t);
    Pair p = from_polar(t * radius, angle + twist * h);
    float thick = fmax(thickness, 0.0f);
    if (colorize > 0.0f) {
        real by = colorMode == 0.0f ? t : colorMode == 1.0f ? t * radius : h;
        if (colorMode == 2.0f) by = fraction_of(turns * t);
        *color = wrap_unit(magnitude(by * colorSpeed + colorOffset));
    }
    if (solid > 0.0f) return scaled3(weight, p.x + a * thick, p.y + b * thick, h + c * thick);
    return scaled3(weight, p.x + x * thick, p.y + y * thick, h + z * thick);
}
