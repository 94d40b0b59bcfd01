// Variations that set the color of the point (direct color), or read it.
// Origin: JWildfire

VARIATION(dc_linear, offset = 0, angle = 0.3, scale = 0.8) {
    Pair c = circle((real)(angle));
    real t = (c.x * x * weight + c.y * y * weight + offset) / (scale == 0.0f ? 1e-5f : scale);
    *color = fraction_of(magnitude(0.5f * (t + 1.0f)));
    return scaled(weight, x, y);
}

VARIATION_3D(dc_ztransl, x0 = 0, x1 = 1, factor = 1, overwrite = 1, clamp = 0) {
    float a = fmin(fmax(x0, 0.0f), 1.0f), b = fmin(fmax(x1, 0.0f), 1.0f), low = fmin(a, b), range = fmax(a, b) - low;
    real h = factor * (*color - low) / (range == 0.0f ? 1e-30f : range);
    h = clamp != 0.0f ? clamped(h, zero_real(), (real)(1.0f)) : h;
    return triple(weight * x, weight * y, weight * (overwrite == 0.0f ? z * h : h));
}

VARIATION_3D(lorenz_js, a = 10, b = 28, c = 1.66, h = 0.00001, centerx = 0, centery = 0, scale = 1000) {
    real u = weight * (x + h * a * (y - x)), v = weight * (y + h * (x * (b - z) - y));
    real k = 1.0f / (scale == 0.0f ? 1e-5f : scale);
    *color = fraction_of(magnitude(k * (square(u + centerx) + square(v + centery))));
    return triple(u, v, weight * (z + h * (x * y - c * z)));
}

VARIATION_3D(falloff2, scatter = 1, mindist = 0.5, mul_x = 1, mul_y = 1, mul_z = 0, mul_c = 0, x0 = 0, y0 = 0, z0 = 0,
             invert = 0, type = 0) {
    real d = sqrt(square(x - x0) + square(y - y0) + square(z - z0));
    d = greatest(invert != 0.0f ? 1.0f - d : d, zero_real());
    d = greatest((d - mindist) * (0.04f * scatter), zero_real());
    real u = uniform(random) * d, v = uniform(random) * d, w = uniform(random) * d;
    real moved = *color + mul_c * (uniform(random) * d);
    *color = magnitude(fraction_of(moved));
    if (type == 1.0f) {
        real r = sqrt(x * x + y * y + z * z) + 1e-6f;
        Pair s = circle(arcsine(z / r) + mul_z * u), p = circle(angle_of(y, x) + mul_y * v);
        r = r + mul_x * w;
        return triple(weight * r * s.x * p.x, weight * r * s.x * p.y, weight * s.y);
    }
    if (type == 2.0f) {
        Pair s = circle(TWO_PI * u), p = circle(PI * v);
        return triple(weight * (x + mul_x * w * s.x * p.x), weight * (y + mul_y * w * s.x * p.y),
                      weight * (z + mul_z * w * s.y));
    }
    return triple(weight * (x + mul_x * u), weight * (y + mul_y * v), weight * (z + mul_z * w));
}

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
    return triple(weight * ((a + b) * p.x - c * q.x + u), weight * ((a + b) * p.y - c * q.y + v),
                  weight * (c * q.y + w));
}

VARIATION_3D(mirror_wf, xaxis = 1, yaxis = 0, zaxis = 0, xshift = 0, yshift = 0, zshift = 0, xscale = 1, yscale = 1,
             xcolorshift = 0, ycolorshift = 0, zcolorshift = 0) {
    mask in_x = uniform(random) < 0.5f, in_y = uniform(random) < 0.5f, in_z = uniform(random) < 0.5f;
    real u = x, v = y, w = z;
    if (xaxis > 0.0f) {
        *color = in_x ? fraction_of(*color + xcolorshift) : *color;
        v = in_x ? yscale * v : v;
        u = in_x ? xscale * (-u - xshift) : u;
    }
    if (yaxis > 0.0f) {
        *color = in_y ? fraction_of(*color + ycolorshift) : *color;
        u = in_y ? xscale * u : u;
        v = in_y ? yscale * (-v - yshift) : v;
    }
    if (zaxis > 0.0f) {
        *color = in_z ? fraction_of(*color + zcolorshift) : *color;
        w = in_z ? -w - zshift : w;
    }
    return triple(u, v, w);
}

VARIATION(point_symmetry_wf, centre_x = 0.25, centre_y = 0.5, order = 3, colorshift = 0) {
    real k = random_index(uniform(random), order), u = (x - centre_x) * weight, v = (y - centre_y) * weight;
    Pair c = circle(TWO_PI / order * k);
    *color = fraction_of(*color + k * colorshift);
    return pair(centre_x + u * c.x + v * c.y, centre_y + v * c.x - u * c.y);
}

VARIATION_3D(waveblur_wf, count = 5, phase = 0, amplitude_z = 0.5, damping_z = 0, direct_color = 0, color_scale = 0.5,
             color_offset = 0) {
    Pair c = circle(TWO_PI * uniform(random));
    real u = 1.0f - 2.0f * uniform(random), v = uniform(random) < 0.5f ? u : -u;
    real r = arccosine(v) - (random_index(uniform(random), count) + 1.0f) * PI + phase;
    r = r * (weight / (count * PI));
    if (direct_color == 1.0f) *color = clamped(arccosine(u) * color_scale + color_offset, zero_real(), (real)(1.0f));
    real h = (cosine_of(u) - 0.5f) * amplitude_z;
    h = fabs(damping_z) > 1e-30f ? h * exponential_of(r * damping_z) : h;
    return triple(r * c.x, r * c.y, weight * h);
}

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
