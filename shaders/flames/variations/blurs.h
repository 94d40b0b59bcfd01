// Variations that place points at random: blurs and curves.
// Origin: JWildfire

VARIATION(sineblur, power = 1) {
    Pair c = circle(TWO_PI * uniform(random));
    real u = uniform(random), v = power_of(u, (real)(fmax(power, 0.0f)));
    return scaled(weight / PI * arccosine(2.0f * v - 1.0f), c.x, c.y);
}

VARIATION_3D(blur3D) {
    Pair a = circle(TWO_PI * uniform(random)), b = circle(PI * uniform(random));
    real r = weight * gauss4(random);
    return triple(r * b.y * a.x, r * b.y * a.y, r * b.x);
}

VARIATION(blur_linear, length = 1, angle = 0.5) {
    real r = length * uniform(random);
    Pair c = circle((real)(angle));
    return scaled(weight, x + r * c.x, y + r * c.y);
}

VARIATION(blur_zoom, length = 0.24, x = 0.2, y = -0.1) {
    real k = 1.0f + length * uniform(random);
    return scaled(weight, (x - blur_zoom_x) * k + blur_zoom_x, (y + blur_zoom_y) * k - blur_zoom_y);
}

VARIATION(spirograph, a = 3, b = 2, d = 0, tmin = -1, tmax = 1, ymin = -1, ymax = 1, c1 = 0, c2 = 0) {
    real t = (tmax - tmin) * uniform(random) + tmin, v = (ymax - ymin) * uniform(random) + ymin;
    Pair c = circle(t), s = circle((a + b) / b * t);
    return scaled(weight, (a + b + d) * c.x - c1 * s.x + v, (a + b + d) * c.y - c2 * s.y + v);
}

VARIATION(blur_circle) {
    real u = 2.0f * uniform(random) - 1.0f, v = 2.0f * uniform(random) - 1.0f;
    Pair p = square_to_disc(u, v);
    return from_polar(weight * p.x, p.y);
}

VARIATION(circleblur) {
    real r = sqrt(uniform(random));
    return from_polar(weight * r, TWO_PI * uniform(random));
}

VARIATION(starblur, power = 5, range = 0.40162283177245456) {
    Pair a = circle((real)(PI / power));
    real length = sqrt(1.0f + range * range - 2.0f * range * a.x), sine = a.y * range / length;
    real cosine = sqrt(1.0f - sine * sine);
    real f = uniform(random) * power * 2.0f, n = truncation(f), u = (f - n) * length;
    real r = sqrt(1.0f + u * u - 2.0f * u * cosine), over = arcsine(sine * u / r), half_n = truncation(0.5f * n);
    real angle = TWO_PI / power * half_n + (n - 2.0f * half_n == 0.0f ? over : -over);
    return from_polar(weight * r * sqrt(uniform(random)), angle - 0.5f * PI);
}

VARIATION(lissajous, tmin = -3.141592653589793, tmax = 3.141592653589793, a = 3, b = 2, c = 0, d = 0, e = 0) {
    real t = (tmax - tmin) * uniform(random) + tmin, v = e * (uniform(random) - 0.5f) + c * t;
    return scaled(weight, sine_of(a * t + d) + v, sine_of(b * t) + v);
}

VARIATION(chrysanthemum) {
    real u = 21.0f * PI * uniform(random), p4 = sine_of(17.0f / 3.0f * u);
    real p8 = square(square(sine_of(2.0f * cosine_of(3.0f * u) - 28.0f * u)));
    real r = 5.0f * (1.0f + sine_of(2.2f * u)) - 4.0f * square(square(p4)) * p8 * p8;
    return from_polar(0.1f * weight * r, u);
}

VARIATION(blur_pixelize, size = 0.1, scale = 1) {
    real u = scale * (uniform(random) - 0.5f) + 0.5f, v = scale * (uniform(random) - 0.5f) + 0.5f;
    return scaled(weight * size, floor_of(x / size) + u, floor_of(y / size) + v);
}

VARIATION(rose_wf, amp = 0.5, waves = 4, filled = 0.85) {
    real a = atan_xy(y, x), r = amp * cosine_of(waves * a);
    real fill = uniform(random) < filled ? uniform(random) : (real)(1.0f);
    return swapped(from_polar(weight * r * fill, a));
}

VARIATION(cloverleaf_wf, filled = 0.85) {
    real a = atan_xy(y, x), r = sine_of(2.0f * a) + 0.25f * sine_of(6.0f * a);
    real fill = uniform(random) < filled ? uniform(random) : (real)(1.0f);
    return swapped(from_polar(weight * r * fill, a));
}

VARIATION(cannabiscurve_wf, filled = 0.85) {
    real a = atan_xy(y, x);
    real r = (1.0f + 0.9f * cosine_of(8.0f * a)) * (1.0f + 0.1f * cosine_of(24.0f * a)) *
             (0.9f + 0.1f * cosine_of(200.0f * a)) * (1.0f + sine_of(a));
    a = a + 0.5f * PI;
    real fill = uniform(random) < filled ? uniform(random) : (real)(1.0f);
    return swapped(from_polar(weight * r * fill, a));
}
