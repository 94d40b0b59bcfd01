// Bends, shifts, splits and powers along the axes: x and y are mapped nearly independently of each other.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

VARIATION(linear) { return scaled(weight, x, y); }

VARIATION_Z(linear) { return weight * z; }

// Doubles negative x and halves negative y.
VARIATION(bent) { return scaled(weight, x < 0.0f ? 2.0f * x : x, y < 0.0f ? 0.5f * y : y); }

// Scales negative x and negative y.
VARIATION(bent2, x = 1, y = 1) { return scaled(weight, x < 0.0f ? bent2_x * x : x, y < 0.0f ? bent2_y * y : y); }

// Bumps: x moves by a Gaussian of y, y by a Gaussian of x.
VARIATION(curve, xamp = 0, yamp = 0, xlength = 1, ylength = 1) {
    float lx = fmax(xlength * xlength, 1e-20f), ly = fmax(ylength * ylength, 1e-20f);
    return scaled(weight, x + xamp * exponential_of(-y * y / lx), y + yamp * exponential_of(-x * x / ly));
}

// Reduces each coordinate to a period around 0.
VARIATION(modulus, x = 0, y = 0) { return scaled(weight, wrap(x, (real)(modulus_x)), wrap(y, (real)(modulus_y))); }

// Hyperbolas: |x| becomes sqrt(x^2 + separation_x^2) and more, which opens a gap along the axis.
VARIATION(separation, x = 0, xinside = 0, y = 0, yinside = 0) {
    real u = sign_positive(x) * sqrt(x * x + separation_x * separation_x) - x * xinside;
    real v = sign_positive(y) * sqrt(y * y + separation_y * separation_y) - y * yinside;
    return scaled(weight, u, v);
}

// Mirrors x in stripes of y, and y in stripes of x.
VARIATION(split, xsize = 0, ysize = 0) {
    real u = sign_nonnegative(cosine_of(y * ysize * PI)), v = sign_nonnegative(cosine_of(x * xsize * PI));
    return scaled(weight, x * u, y * v);
}

// Moves the halves of each axis apart.
VARIATION(splits, x = 0, y = 0) {
    return scaled(weight, x + sign_nonnegative(x) * splits_x, y + sign_nonnegative(y) * splits_y);
}

// Stripes of width 1 in x, narrowed by `space` and bent by `warp`.
VARIATION(stripes, space = 0, warp = 0) {
    real row = floor_of(x + 0.5f), over = x - row;
    return scaled(weight, over * (1.0f - space) + row, y + over * over * warp);
}

// Origin: JWildfire

VARIATION_3D(ztranslate) { return triple(zero_real(), zero_real(), (real)(weight)); }

VARIATION_3D(zscale) { return triple(zero_real(), zero_real(), weight * z); }

// Mirrors y where x is positive.
VARIATION(flipy) { return scaled(weight, x, x > 0.0f ? -y : y); }

// Mirrors y inside of the circle of radius `weight`.
VARIATION(flipcircle) { return scaled(weight, x, x * x + y * y > (real)(weight * weight) ? y : -y); }

// A signed power of each coordinate.
VARIATION(linearT, powX = 1.2, powY = 0.9) {
    real u = power_of(magnitude(x), (real)(powX)), v = power_of(magnitude(y), (real)(powY));
    return scaled(weight, x > 0.0f ? u : -u, y > 0.0f ? v : -v);
}

// Powers of x^2 and y^2, or in log_mode of their logarithms, moved away from the axes.
VARIATION(corners, x = 1, y = 1, mult_x = 1, mult_y = 1, x_power = 0.75, y_power = 0.75, xy_power_add = 0, log_mode = 0,
          log_base = 2.71828) {
    real xs = x * x, ys = y * y, u, v;
    if (log_mode == 0.0f) {
        u = power_of(xs, (real)(x_power + xy_power_add)) * mult_x;
        v = power_of(ys, (real)(y_power + xy_power_add)) * mult_y;
    } else {
        real k = 1.0f / logarithm_of((real)(log_base));
        u = power_of(logarithm_of(xs * mult_x + 3.0f) * k, (real)(x_power + 2.25f + xy_power_add)) - 1.33f;
        v = power_of(logarithm_of(ys * mult_y + 3.0f) * k, (real)(y_power + 2.25f + xy_power_add)) - 1.33f;
    }
    u = weight * u + corners_x;
    v = weight * v + corners_y;
    return pair(x > 0.0f ? u : -u, y > 0.0f ? v : -v);
}

// Barycentric coordinates (u, v) for the axes (a, b) and (c, d), each joined with x or y as a root of squares.
VARIATION(barycentroid, a = 1, b = 0, c = 0, d = 1) {
    real d02 = a * x + b * y, d12 = c * x + d * y;
    float d00 = a * a + b * b, d01 = a * c + b * d, d11 = c * c + d * d, k = 1.0f / (d00 * d11 - d01 * d01);
    real u = (d11 * d02 - d01 * d12) * k, v = (d00 * d12 - d01 * d02) * k;
    return scaled(weight, sqrt(u * u + x * x) * sign_of(u), sqrt(v * v + y * y) * sign_of(v));
}

// Exchanges x and y.
VARIATION(bi_linear) { return scaled(weight, y, x); }

// A translation in a rotated frame.
VARIATION(shift, shift_x = 0.1, shift_y = 0.06, angle = 12.25) {
    Pair c = circle((real)(angle * (PI / 180.0f)));
    return scaled(weight, x + c.x * shift_x - c.y * shift_y, y - c.x * shift_y - c.y * shift_x);
}

// The arc tangent of y (Mode 0), of x (1) or of both, times 2 / pi.
VARIATION(atan, Mode = 0, Stretch = 1) {
    float k = 2.0f / PI;
    real u = Mode == 0.0f ? x : k * arctangent(Stretch * x), v = Mode == 1.0f ? y : k * arctangent(Stretch * y);
    return scaled(weight, u, v);
}

// A logistic curve of x from -1 to 1; `shift` sets its steepness.
DEVICE real logistic_curve(real x, float shift) {
    float a = shift < 0.0f && shift > -1.0f ? -1.0f : 1.0f;
    float s = shift == 0.0f ? 1e-30f : fabs(shift) < 1.0f ? 1.0f / shift : shift;
    return 2.0f * (a / (1.0f + exponential_of(-5.0f * s * x)) - 0.5f);
}

// logistic_curve() of each coordinate.
VARIATION(sigmoid, shiftx = 1, shifty = 1) {
    return scaled((real)(fabs(weight)), logistic_curve(x, shiftx), logistic_curve(y, shifty));
}

// A signed power of each of three coordinates.
VARIATION_3D(linearT3D, powX = 1.35, powY = 0.85, powZ = 1.15) {
    real u = power_of(magnitude(x), (real)(powX)), v = power_of(magnitude(y), (real)(powY));
    real w = power_of(magnitude(z), (real)(powZ));
    return scaled3(weight, x > 0.0f ? u : -u, y > 0.0f ? v : -v, z > 0.0f ? w : -w);
}

// Moves the halves of each of three axes apart.
VARIATION_3D(splits3D, x = 0.1, y = 0.3, z = 0.2) {
    return scaled3(weight, x + sign_nonnegative(x) * splits3D_x, y + sign_nonnegative(y) * splits3D_y,
                   z + sign_nonnegative(z) * splits3D_z);
}
