// Cells, roses' lines, shreds and sums of complex functions.
// Origin: JWildfire

DEVICE real hashed_cell(whole n) {
    bits h = bits_of_whole(n);
    h = (h << 13) ^ h;
    h = (h * (h * h * 15731u + 789221u) + 1376312589u) & 0x7fffffffu;
    return real_of(whole_of_bits(h)) * 4.656612875245797e-10f;
}

VARIATION(voron, k = 0.99, step = 0.25, num = 1 [1, 25], xseed = 3, yseed = 7) {
    real m = floor_of(x / step), n = floor_of(y / step), nearest_d = (real)(400.0f), px = zero_real(), py = px;
    whole sx = truncated((real)(xseed)), sy = truncated((real)(yseed));
    for (int c = 0; c < 9; c++) {
        real i = m + (float)(c / 3 - 1), j = n + (float)(c % 3 - 1);
        whole a = truncated(i), b = truncated(j);
        real count = 1.0f + floor_of(num * hashed_cell(a * 19 + b * 257 + sx));
        for (int l = 0; (float)l <= num; l++) {
            real u = (hashed_cell(a * 64 + b * 15 + sx + l) + i) * step;
            real v = (hashed_cell(a * 21 + b * 33 + sy + l) + j) * step, d = square(x - u) + square(y - v);
            mask nearer = d < nearest_d && (real)((float)l) < count;
            nearest_d = nearer ? d : nearest_d;
            px = nearer ? u : px;
            py = nearer ? v : py;
        }
    }
    return scaled(weight, k * (x - px) + px, k * (y - py) + py);
}

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

// Exponents within 0.0001 of 0 of the origin, which stand for other functions, are not drawn.
VARIATION(waves2b, freqx = 1.5, freqy = 2.5, pwx = 1, pwy = 1.5, scalex = 2, scaleinfx = 1, scaley = 0.75,
          scaleinfy = 1.5, unity = 1, jacok = 0.25) {
    real kx = unity / (unity + x * x) * (scalex - scaleinfx) + scaleinfx;
    real ky = unity / (unity + y * y) * (scaley - scaleinfy) + scaleinfy;
    real sx = x < 0.0f ? (real)(-1.0f) : (real)(1.0f), sy = y < 0.0f ? (real)(-1.0f) : (real)(1.0f);
    real u = sine_of(sy * power_of(magnitude(y) + 1e-10f, (real)(pwx)) * freqx);
    real v = sine_of(sx * power_of(magnitude(x) + 1e-10f, (real)(pwy)) * freqy);
    return scaled(weight, x + kx * u, y + ky * v);
}

VARIATION_3D(extrude, root_face = 0.5) {
    mask root = uniform(random) < root_face;
    real h = uniform(random);
    return triple(zero_real(), zero_real(), root ? (real)(fmax(weight, 0.0f)) : weight * h);
}

VARIATION_3D(shredded, x1 = 1, x2 = 3, x3 = 1, x_blur_amount = 0.1, y1 = 1, y2 = 3, y3 = 1, y_blur_amount = 0.1, z1 = 1,
             z2 = 3, z3 = 1, z_blur_amount = 0.1, type = 0, blur = 0) {
    real fx = sine_of(x1 * floor_of(x2 * x)), fy = cosine_of(y1 * floor_of(y2 * y)),
         fz = sine_of(z1 * floor_of(z2 * z));
    real u = uniform(random), v = uniform(random), w = uniform(random), a = type == 2.0f ? x : y,
         b = type == 2.0f ? y : x;
    if (type == 0.0f) {
        fx = fx + cosine_of(x1 * floor_of(x2 * y));
        fy = fy + sine_of(y1 * floor_of(y2 * x));
        fz = fz + cosine_of(z1 * floor_of(z2 * z));
    }
    if (type > 2.0f || type < 0.0f) return triple(zero_real(), zero_real(), zero_real());
    if (blur == 0.0f) return triple(weight * x3 * fx * a, weight * y3 * fy * b, weight * z3 * fz * z);
    real c = type == 0.0f ? z : (real)(1.0f);
    return triple(weight * x3 * fx + x_blur_amount * sine_of(TWO_PI * u) * a,
                  weight * y3 * fy + y_blur_amount * sine_of(TWO_PI * v) * b,
                  weight * z3 * fz + z_blur_amount * sine_of(TWO_PI * w) * c);
}

VARIATION_3D(axis_symmetry_wf, axis = 0, centre_x = 0.25, centre_y = 0.5, centre_z = 0.5, rotation = 30,
             x1colorshift = 0, y1colorshift = 0, z1colorshift = 0, x2colorshift = 0, y2colorshift = 0,
             z2colorshift = 0) {
    mask first = uniform(random) < 0.5f;
    Pair c = circle((real)(rotation * (PI / 180.0f)));
    float shift = 0.5f * weight;
    real side = first ? (real)(1.0f) : (real)(-1.0f), u = x, v = y, w = z;
    int turns = fabs(rotation) * (PI / 180.0f) > 1e-8f;
    if (axis == 0.0f) u = centre_x + side * (x - centre_x + shift);
    if (axis == 1.0f) v = centre_y + side * (y - centre_y + shift);
    if (axis > 1.0f) w = centre_z + side * (z - centre_z + shift);
    real s = side * c.y, p = u - centre_x, q = axis > 1.0f ? w - centre_z : v - centre_y;
    if (turns) {
        u = centre_x + p * c.x + q * s;
        real turned = centre_y + q * c.x - p * s;
        v = axis > 1.0f ? v : turned;
        w = axis > 1.0f ? turned : w;
    }
    float c1 = axis == 0.0f ? x1colorshift : axis == 1.0f ? y1colorshift : z1colorshift;
    float c2 = axis == 0.0f ? x2colorshift : axis == 1.0f ? (turns ? y2colorshift : 0.0f) : z2colorshift;
    *color = fraction_of(*color + (first ? (real)(c1) : (real)(c2)));
    return triple(u, v, w);
}

DEVICE real mapped_log(real x) {
    real size = (3.718281828459045f + logarithm_of(x)) * 0.25f;
    return x > 0.0f ? size : zero_real();
}
DEVICE real log_offset(real x) {
    return sign_of(x) * (logarithm_of(magnitude(x) + 1.0f) + 1.0f) * (1.0f / 2.718281828459045f);
}

VARIATION_3D(falloff3, blur_type = 0, blur_shape = 0, blur_strength = 1, min_distance = 0.5, invert_distance = 0,
             mul_x = 1, mul_y = 1, mul_z = 0, mul_c = 0, center_x = 0, center_y = 0, center_z = 0, alpha = 0) {
    real ra = uniform(random) - 0.5f, rb = uniform(random) - 0.5f, rc = uniform(random) - 0.5f,
         rd = uniform(random) - 0.5f;
    real a = x - center_x, b = y - center_y, c = z - center_z, zero = zero_real();
    real r =
        blur_shape == 0.0f ? sqrt(a * a + b * b + c * c) : greatest(magnitude(a), greatest(magnitude(b), magnitude(c)));
    float most = 0.04f * blur_strength;
    real d = greatest((greatest(invert_distance != 0.0f ? 1.0f - r : r, zero) - min_distance) * most, zero);
    if (blur_type == 1.0f) {
        real s = sqrt(x * x + y * y + z * z);
        mask center = s == 0.0f;
        Pair up = circle(arcsine(clamped(z / s, (real)(-1.0f), (real)(1.0f))) + mul_z * rc * d);
        Pair around = circle(angle_of(y, x) + mul_y * rb * d);
        real far = s + mul_x * ra * d;
        *color = center ? *color : magnitude(fraction_of(*color + mul_c * rd * d));
        return triple(center ? zero : weight * far * up.x * around.x, center ? zero : weight * far * up.x * around.y,
                      center ? zero : weight * far * up.y);
    }
    if (blur_type == 0.0f) {
        Pair s = circle(d * rb * TWO_PI), p = circle(d * rc * PI);
        real far = d * ra;
        *color = magnitude(fraction_of(*color + mul_c * rd * d));
        return triple(weight * (x + mul_x * far * s.x * p.x), weight * (y + mul_y * far * s.x * p.y),
                      weight * (z + mul_z * far * s.y));
    }
    real k = most <= 1e-8f ? d : d + alpha * (mapped_log(d) - d);
    *color = magnitude(fraction_of(*color + mapped_log((real)(mul_c)) * log_offset(rd) * k));
    return triple(weight * (x + mapped_log((real)(mul_x)) * log_offset(ra) * k),
                  weight * (y + mapped_log((real)(mul_y)) * log_offset(rb) * k),
                  weight * (z + mapped_log((real)(mul_z)) * log_offset(rc) * k));
}
