// Variations that keep the points of a region and hide the others, or move them to its edge.
// Origin: JWildfire

REPLACING(crop, left = -1, right = 1, top = -1, bottom = 1, scatter_area = 0, zero = 0) {
    float x0 = fmin(left, right), x1 = fmax(left, right), y0 = fmin(top, bottom), y1 = fmax(top, bottom);
    mask outside = x < x0 || x > x1 || y < y0 || y > y1;
    real u = uniform(random) * ((x1 - x0) * 0.5f * scatter_area),
         v = uniform(random) * ((y1 - y0) * 0.5f * scatter_area);
    if (zero != 0.0f) {
        *hidden = outside;
        return scaled(weight, outside ? (real)(0.0f) : x, outside ? (real)(0.0f) : y);
    }
    return scaled(weight, x < x0 ? x0 + u : x > x1 ? x1 - u : x, y < y0 ? y0 + v : y > y1 ? y1 - v : y);
}

VARIATION(circlecrop, radius = 1, x = 0, y = 0, scatter_area = 0, zero = 1) {
    real u = x - circlecrop_x, v = y - circlecrop_y, r = vnorm(u, v);
    real edge = radius + uniform(random) * 0.5f * clamped((real)(scatter_area), (real)(-1.0f), (real)(1.0f));
    mask outside = r > radius;
    if (zero == 1.0f) {
        *hidden = outside;
        return pair(outside ? (real)(0.0f) : weight * u + circlecrop_x,
                    outside ? (real)(0.0f) : weight * v + circlecrop_y);
    }
    real k = outside ? weight * edge / r : (real)(weight);
    return pair(k * u + circlecrop_x, k * v + circlecrop_y);
}

DEVICE Pair cropped(float weight, real x, real y, mask outside, mask *hidden) {
    *hidden = outside;
    return scaled(weight, outside ? (real)(0.0f) : x, outside ? (real)(0.0f) : y);
}

// The signed distances are I. Quilez's.
DEVICE real distance_to_box(real x, real y, float width, float height) {
    real u = magnitude(x) - width, v = magnitude(y) - height;
    real inside = least(greatest(u, v), (real)(0.0f));
    return vnorm(greatest(u, (real)(0.0f)), greatest(v, (real)(0.0f))) + inside;
}

REPLACING(crop_box, width = 0.5, height = 0.5, invert = 0) {
    real d = distance_to_box(x, y, width, height);
    return cropped(weight, x, y, invert == 0.0f ? d > 0.0f : d <= 0.0f, hidden);
}

REPLACING(crop_rhombus, width = 0.5, height = 0.5, invert = 0) {
    mask outside = magnitude(x) * height + magnitude(y) * width > (real)(width * height);
    return cropped(weight, x, y, invert == 0.0f ? outside : !outside, hidden);
}

REPLACING(crop_vesica, width = 0.2, height = 0.1, invert = 0) {
    float r = 1.0f + height, d = 0.8f + width;
    mask outside = square(magnitude(x) + d) + y * y > (real)(r * r);
    return cropped(weight, x, y, invert == 0.0f ? outside : !outside, hidden);
}

REPLACING(crop_x, radius = 0.1, w = 0.5, invert = 0) {
    real u = magnitude(x), v = magnitude(y), m = 0.5f * least(u + v, (real)(w)), d = vnorm(u - m, v - m) - radius;
    *hidden = invert == 0.0f ? d > 0.0f : d <= 0.0f;
    return scaled(weight, x, y);
}

REPLACING(crop_stars, radius = 0.35, n = 3, r2 = 0.333, invert = 0) {
    float m = 4.0f + r2 * r2 * (n * 2.0f - 4.0f), an = 3.141593f / n;
    Pair a = circle((real)(an)), e = circle((real)(6.283185f / m));
    real sector = angle_of(x, y) + 100.0f * (2.0f * an), b = sector - 2.0f * an * floor_of(sector / (2.0f * an)) - an;
    Pair p = from_polar(vnorm(x, y), b);
    real u = p.x - radius * a.x, v = magnitude(p.y) - radius * a.y;
    real k = clamped(-(u * e.x + v * e.y), zero_real(), radius * a.y / e.y);
    real d = vnorm(u + e.x * k, v + e.y * k) * sign_of(u + e.x * k);
    return cropped(weight, x, y, invert == 0.0f ? d > 0.0f : d <= 0.0f, hidden);
}

REPLACING(crop_cross, width = 0.5, Size = 0.5, round = 0.001, invert = 0) {
    float wide = fmax(width, Size), thin = fmin(width, Size);
    real r = 0.1f * sine_of((real)(round * 1.2f)), au = magnitude(x), av = magnitude(y);
    real u = greatest(au, av), v = least(au, av), qx = u - wide, qy = v - thin, k = greatest(qy, qx);
    real wx = k > 0.0f ? qx : thin - u, wy = k > 0.0f ? qy : -k;
    real d = vnorm(greatest(wx, zero_real()), greatest(wy, zero_real()));
    d = (k > 0.0f ? d : -d) + r;
    return cropped(weight, x, y, invert == 0.0f ? d > 0.0f : d <= 0.0f, hidden);
}

// (x, y) mirrored to the positive side of the line through the origin with the normal (a, b).
DEVICE Pair folded(Pair p, float a, float b) {
    real t = 2.0f * least(a * p.x + b * p.y, zero_real());
    return pair(p.x - t * a, p.y - t * b);
}

DEVICE real distance_to_side(Pair p, real low, real high, float r) {
    real u = p.x - clamped(p.x, low, high), v = p.y - r;
    return vnorm(u, v) * sign_of(v);
}

REPLACING(crop_polygon, type = 4, radius = 0.35, invert = 0) {
    Pair p = pair(magnitude(x), type == 1.0f ? -y : magnitude(y));
    float half_side = 0.0f;
    if (type >= 4.0f) {
        p = folded(folded(p, -0.5f, 0.86602540378f), 0.86602540378f, -0.5f);
    } else if (type == 3.0f) {
        p = folded(folded(p, -0.9238795325f, 0.3826834323f), 0.9238795325f, 0.3826834323f);
        half_side = 0.4142135623f;
    } else if (type == 2.0f) {
        p = folded(p, -0.866025404f, 0.5f);
        half_side = 0.577350269f;
    } else if (type == 1.0f) {
        p = folded(folded(p, -0.809016994f, 0.587785252f), 0.809016994f, 0.587785252f);
        half_side = 0.726542528f;
    }
    real low = (real)(type >= 4.0f ? radius * 0.57735026919f : -half_side * radius);
    real high = (real)(type >= 4.0f ? radius * 1.73205080757f : half_side * radius);
    real d = type == 0.0f ? vnorm(x, y) - radius : distance_to_side(p, low, high, radius);
    return cropped(weight, x, y, invert == 0.0f ? d > 0.0f : d <= 0.0f, hidden);
}
