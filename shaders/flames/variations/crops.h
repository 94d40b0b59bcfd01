// Crops: the points outside a region are hidden, sent to the origin or moved to the region's edge. Also holes, and maps
// of Fractorium that stretch each coordinate (spherivoid to curl_sp).
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: JWildfire

// Keeps the points inside of the conic a x^2 + b x y + c y^2 + d x + e y + f = 0, or with mode 1 those outside.
VARIATION(chunk, a = 1, b = 0, c = 1, d = 0, e = 0, f = -1, mode = 0) {
    real r = weight * (a * x * x + b * x * y + c * y * y + d * x + e * y + f);
    mask kept = mode == 0.0f ? r <= 0.0f : r > 0.0f;
    return pair(kept ? x : (real)(0.0f), kept ? y : (real)(0.0f));
}

// The point times the weight; a point outside is hidden and moved to the origin.
DEVICE Pair cropped(float weight, real x, real y, mask outside, mask *hidden) {
    *hidden = outside;
    return scaled(weight, outside ? (real)(0.0f) : x, outside ? (real)(0.0f) : y);
}

// Points outside of a rectangle move to its edge or, scattered, inside of it; with `zero` they are hidden.
REPLACING(crop, left = -1, right = 1, top = -1, bottom = 1, scatter_area = 0, zero = 0) {
    float x0 = fmin(left, right), x1 = fmax(left, right), y0 = fmin(top, bottom), y1 = fmax(top, bottom);
    mask outside = x < x0 || x > x1 || y < y0 || y > y1;
    real u = uniform(random) * ((x1 - x0) * 0.5f * scatter_area),
         v = uniform(random) * ((y1 - y0) * 0.5f * scatter_area);
    if (zero != 0.0f) return cropped(weight, x, y, outside, hidden);
    return scaled(weight, x < x0 ? x0 + u : x > x1 ? x1 - u : x, y < y0 ? y0 + v : y > y1 ? y1 - v : y);
}

// Points outside of a circle move to the circle, scattered by `scatter_area`; with `zero` they are hidden.
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

// Signed distance from (x, y) to a rectangle of half `width` and half `height`, negative inside (I. Quilez).
DEVICE real distance_to_box(real x, real y, float width, float height) {
    real u = magnitude(x) - width, v = magnitude(y) - height;
    real inside = least(greatest(u, v), (real)(0.0f));
    return vnorm(greatest(u, (real)(0.0f)), greatest(v, (real)(0.0f))) + inside;
}

// Keeps a rectangle.
REPLACING(crop_box, width = 0.5, height = 0.5, invert = 0) {
    real d = distance_to_box(x, y, width, height);
    return cropped(weight, x, y, invert == 0.0f ? d > 0.0f : d <= 0.0f, hidden);
}

// Keeps a rhombus.
REPLACING(crop_rhombus, width = 0.5, height = 0.5, invert = 0) {
    mask outside = magnitude(x) * height + magnitude(y) * width > (real)(width * height);
    return cropped(weight, x, y, invert == 0.0f ? outside : !outside, hidden);
}

// Keeps the lens of two circles.
REPLACING(crop_vesica, width = 0.2, height = 0.1, invert = 0) {
    float r = 1.0f + height, d = 0.8f + width;
    mask outside = square(magnitude(x) + d) + y * y > (real)(r * r);
    return cropped(weight, x, y, invert == 0.0f ? outside : !outside, hidden);
}

// Keeps a cross of two diagonal bars with round ends.
REPLACING(crop_x, radius = 0.1, w = 0.5, invert = 0) {
    real u = magnitude(x), v = magnitude(y), m = 0.5f * least(u + v, (real)(w)), d = vnorm(u - m, v - m) - radius;
    *hidden = invert == 0.0f ? d > 0.0f : d <= 0.0f;
    return scaled(weight, x, y);
}

// Keeps a star of n points.
REPLACING(crop_stars, radius = 0.35, n = 3, r2 = 0.333, invert = 0) {
    float m = 4.0f + r2 * r2 * (n * 2.0f - 4.0f), an = 3.141593f / n;
    Pair a = circle((real)(an)), e = circle((real)(6.283185f / m));
    // 100 sectors are added, so that the angle is positive
    real sector = angle_of(x, y) + 100.0f * (2.0f * an), b = sector - 2.0f * an * floor_of(sector / (2.0f * an)) - an;
    Pair p = from_polar(vnorm(x, y), b);
    real u = p.x - radius * a.x, v = magnitude(p.y) - radius * a.y;
    real k = clamped(-(u * e.x + v * e.y), zero_real(), radius * a.y / e.y);
    real d = vnorm(u + e.x * k, v + e.y * k) * sign_of(u + e.x * k);
    return cropped(weight, x, y, invert == 0.0f ? d > 0.0f : d <= 0.0f, hidden);
}

// Keeps a cross of two bars.
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
DEVICE Pair mirrored_at(Pair p, float a, float b) {
    real t = 2.0f * least(a * p.x + b * p.y, zero_real());
    return pair(p.x - t * a, p.y - t * b);
}

// Signed distance from p to the side y = r of a polygon, which lasts from x = low to x = high.
DEVICE real distance_to_side(Pair p, real low, real high, float r) {
    real u = p.x - clamped(p.x, low, high), v = p.y - r;
    return vnorm(u, v) * sign_of(v);
}

// Keeps a circle (type 0), pentagon (1), hexagon (2), octagon (3) or hexagram (4).
REPLACING(crop_polygon, type = 4, radius = 0.35, invert = 0) {
    Pair p = pair(magnitude(x), type == 1.0f ? -y : magnitude(y));
    float half_side = 0.0f;
    if (type >= 4.0f) {
        p = mirrored_at(mirrored_at(p, -0.5f, 0.86602540378f), 0.86602540378f, -0.5f);
    } else if (type == 3.0f) {
        p = mirrored_at(mirrored_at(p, -0.9238795325f, 0.3826834323f), 0.9238795325f, 0.3826834323f);
        half_side = 0.4142135623f;
    } else if (type == 2.0f) {
        p = mirrored_at(p, -0.866025404f, 0.5f);
        half_side = 0.577350269f;
    } else if (type == 1.0f) {
        p = mirrored_at(mirrored_at(p, -0.809016994f, 0.587785252f), 0.809016994f, 0.587785252f);
        half_side = 0.726542528f;
    }
    real low = (real)(type >= 4.0f ? radius * 0.57735026919f : -half_side * radius);
    real high = (real)(type >= 4.0f ? radius * 1.73205080757f : half_side * radius);
    real d = type == 0.0f ? vnorm(x, y) - radius : distance_to_side(p, low, high, radius);
    return cropped(weight, x, y, invert == 0.0f ? d > 0.0f : d <= 0.0f, hidden);
}

// Removes n discs around the unit circle: their points move to their edge (zero 0), to the origin or to their center.
VARIATION_3D(hypercrop, n = 4, rad = 1, zero = 0) {
    float wedges = 0.5f * n / PI;
    Pair a = circle((real)(PI / n));
    real length = 1.0f / a.x, d = rad * a.y * length;
    Pair c = from_polar(length, floor_of(angle_of(y, x) * wedges) / wedges + PI / n);
    real u = x - c.x, v = y - c.y, r = vnorm(u, v);
    mask inside = r < d;
    real px = zero > 1.5f ? c.x : zero > 0.5f ? zero_real() : c.x + u / r * d;
    real py = zero > 1.5f ? c.y : zero > 0.5f ? zero_real() : c.y + v / r * d;
    return scaled3(weight, inside ? px : x, inside ? py : y, inside ? zero_real() : z);
}

// Keeps a polygon of |power| sides, or for |power| below 2 a sector of |power| / 2 of the circle. Other points move to
// its edge, scattered, or from a polygon with cropmode 0 to the origin. Keeps the outside if power and radius differ in
// sign. cropmode 2 of the origin, which keeps the place of the point before, is as 1.
VARIATION_3D(smartcrop, power = 4, radius = 1, roundstr = 0, roundwidth = 1, distortion = 1, edge = 0, scatter = 0,
             offset = 0, cropmode = 1, static = 2) {
    real r1 = uniform(random), r2 = uniform(random), r3 = uniform(random);
    real a = angle_of(y, x), r = vnorm(x, y);
    int mode = (power > 0.0f) == (radius > 0.0f);  // crops outside; else inside. r == r: true in every lane
    float sides = fabs(power);
    if (sides < 2.0f) {
        real e = edge * (r1 - 0.5f), turn = fraction_of(a * (1.0f / TWO_PI) + 1.0f + e) * TWO_PI;
        mask crops = (turn > sides * PI) == (mode ? r == r : r != r);
        real spread = (r3 * scatter + offset + e) * PI;
        Pair p = from_polar(r, r2 < 0.5f ? -spread : sides * PI + spread);
        return scaled3(weight, crops ? p.x : x, crops ? p.y : y, z);
    }
    float wedge = TWO_PI / sides;
    real k = (real)(1.0f);
    if (distortion != 0.0f) {
        real t = fraction_of((a + PI) / wedge);
        t = t < 0.5f ? t : 1.0f - t;
        k = 1.0f / cosine_of(t * wedge);
        if (roundstr != 0.0f) {
            real wide = roundwidth != 1.0f ? power_of(2.0f * t, (real)(roundwidth)) : 2.0f * t;
            wide = wide * (2.0f * roundstr / sides) / sine_of((real)(0.5f * wedge));
            k = magnitude((1.0f - wide) * k + wide);
        }
        if (distortion != 1.0f) k = power_of(k, (real)(distortion));
    }
    real limit = k * (fabs(radius) + edge * (r1 - 0.5f));
    mask crops = (r > limit) == (mode ? r == r : r != r);
    Pair p = from_polar((cropmode > 0.0f ? limit : zero_real()) + k * (r2 * scatter + offset), a);
    return scaled3(weight, crops ? p.x : x, crops ? p.y : y, z);
}

// Keeps a trapezoid: half the widths at both ends, and half the height.
REPLACING(crop_trapezoid, Base_Sup = 0.5, Base_Inf = 0.2, height = 0.5, invert = 0) {
    float k = Base_Inf - Base_Sup, slope = 4.0f * height * height + k * k;
    real u = magnitude(x), v = y, low = v < 0.0f ? (real)(Base_Sup) : (real)(Base_Inf);
    real ax = greatest(u - low, zero_real()), ay = magnitude(v) - height;
    real t = clamped(((Base_Inf - u) * k + (height - v) * 2.0f * height) / slope, zero_real(), (real)(1.0f));
    real bx = u - Base_Inf + k * t, by = v - height + 2.0f * height * t;
    mask inside = bx < 0.0f && ay < 0.0f;
    return cropped(weight, x, y, invert == 0.0f ? !inside : inside, hidden);
}

// Twice the area of the triangle of (a, b), (c, d) and (e, f).
DEVICE real twice_area(real a, real b, real c, real d, real e, real f) {
    return magnitude(a * (d - f) + c * (f - b) + e * (b - d));
}

// Keeps a triangle: elsewhere the triangles with the point and two corners have a larger area in sum.
VARIATION(crop_triangle, x1 = 0, y1 = 0.5, x2 = 0.5, y2 = 0.5, x3 = 0, y3 = -0.5) {
    real a = (real)(x1), b = (real)(y1), c = (real)(x2), d = (real)(y2), e = (real)(x3), f = (real)(y3);
    real all = twice_area(a, b, c, d, e, f);
    real sum = twice_area(x, y, c, d, e, f) + twice_area(a, b, x, y, e, f) + twice_area(a, b, c, d, x, y);
    *hidden = sum > all * 1.000001f;
    return scaled(weight, x, y);
}

// Origin: Fractorium

// Points outside of a polygon, or inside if `power` is negative, move to its edge or to the origin.
VARIATION(cropn, power = 5, radius = 1, scatterdist = 0, zero = 0) {
    float wedge = TWO_PI / fmax(2.0f, fabs(power));
    real t = angle_of(y, x) + PI, m = t - wedge * floor_of(t / wedge);
    real c = cosine_of(m < 0.5f * wedge ? m : wedge - m), edge = c > 0.0f ? radius / c : (real)(1.0f), r = vnorm(x, y);
    mask crops = (r > edge) == (power > 0.0f ? r == r : r != r);  // r == r: true in every lane
    real k = zero == 0.0f ? zero_real() : (edge + uniform(random) * scatterdist) / greatest(r, (real)(1e-20f));
    return scaled(weight, crops ? k * x : x, crops ? k * y : y);
}

// Points outside of the unit circle move into a border of random width around it, or without one to the origin.
VARIATION(bcircle, scale = 1, borderwidth = 0) {
    real u = x * scale, v = y * scale, drawn = uniform(random);
    Pair p = from_polar(1.0f + 0.2f * fabs(borderwidth) * drawn, angle_of(v, u));
    mask inside = vnorm(u, v) <= 1.0f;
    real k = borderwidth != 0.0f ? (real)(1.0f) : zero_real();
    return scaled(weight, inside ? u : k * p.x, inside ? v : k * p.y);
}

// Keeps a hexagon; other points move to (dropoff, dropoff), far out of the picture.
REPLACING(hexcrop, scale_x = 1, scale_y = 1, center_x = 0, center_y = 0, dropoff = 1e10) {
    real u = x + center_x, v = y + center_y, a = magnitude(v / scale_y), b = magnitude(u / scale_x);
    mask inside = a < 1.0606601717798212f && b < 1.4142135623730951f - a * 0.8619755f;
    return pair(inside ? weight * u : (real)(dropoff), inside ? weight * v : (real)(dropoff));
}

// A hole of this radius around the origin: each point moves away by it.
VARIATION_3D(spherivoid, radius = 0) {
    real far = sqrt(x * x + y * y + z * z), k = weight * (far + radius) / far;
    return scaled3(k, x, y, z);
}

// Divides each coordinate by a power of the squared radius.
VARIATION_3D(sphyp3D, stretchX = 1, stretchY = 1, stretchZ = 1, zOn = 1) {
    real t = x * x + y * y + z * z, k = weight / power_of(t, (real)(stretchZ));
    return triple(x * weight / power_of(t, (real)(stretchX)), y * weight / power_of(t, (real)(stretchY)),
                  zOn == 1.0f ? z * k : zero_real());
}

// An inversion with a limit for small radii; a flat point gets the height cos r.
VARIATION_3D(roundspher3D) {
    real r2 = x * x + y * y, c = cosine_of(sqrt(r2)), t = z == 0.0f ? c : z, d = r2 + t * t,
         k = weight * weight / (d * (1.0f / d + 0.4052847345693511f));
    return triple(k * x, k * y, c + k * t);
}

// A Moebius strip, whose length and width are x and y, rotated and seen along z.
VARIATION(mobius_strip, radius = 2, width = 1, rect_x = 6.283185307179586, rect_y = 1, rotate_x = 0, rotate_y = 0) {
    real t = rect_x == 0.0f ? zero_real() : TWO_PI * wrap_unit((x + rect_x) / (2.0f * rect_x));
    real s = rect_y == 0.0f ? zero_real() : 2.0f * width * wrap_unit((y + rect_y) / (2.0f * rect_y)) - width;
    Pair c = circle(t), h = circle(0.5f * t), a = circle((real)(TWO_PI * rotate_x)),
         b = circle((real)(TWO_PI * rotate_y));
    real r = radius + s * h.x, u = r * c.x, v = r * c.y, w = s * h.y, p = w * b.x - v * b.y;
    return scaled(weight, u * a.x - p * a.y, v * b.x + w * b.y);
}

// A signed power, a multiple and a constant of each coordinate.
VARIATION_3D(polynomial, powx = 1, powy = 1, lcx = 0, lcy = 0, scx = 0, scy = 0) {
    real u = with_sign_of(power_of(fabs(weight) * magnitude(x), (real)(powx)), x),
         v = with_sign_of(power_of(fabs(weight) * magnitude(y), (real)(powy)), y);
    return triple(u + lcx * x + scx, v + lcy * y + scy, weight * z);
}

// The power of the magnitude with the sign of x, which is x itself for the exponent 1.
DEVICE real power_keeping(real x, float exponent) { return exponent == 1.0f ? x : signed_power(x, exponent); }
DEVICE real spread_by(real t, float s) {
    real r = sqrt(t * t + s * s);
    return t > 0.0f ? r : -r;
}

// curl of powers of the coordinates, whose real and imaginary parts keep away from 0 by sx and sy.
VARIATION_3D(curl_sp, pow = 1, c1 = 0, c2 = 0, sx = 0, sy = 0, dc = 0) {
    real u = power_keeping(x, pow), v = power_keeping(y, pow), w = power_keeping(z, pow);
    real re = spread_by(c1 * u + c2 * (u * u - v * v), sx) + 1.0f, im = spread_by(c1 * v + 2.0f * c2 * u * v, sy);
    real c = power_keeping(re * re + im * im, 1.0f / pow);
    *color = clamped(*color + 0.1f * dc * c, zero_real(), (real)(1.0f));
    return scaled3(weight / c, u * re + v * im, v * re - u * im, w);
}

// Origin: JWildfire

// The random point of a square of side 1, or with mode 0 the chain's, if it is kept; `invert` keeps the others.
DEVICE Pair cut_out(float weight, Pair p, mask kept, float invert, mask *hidden) {
    return cropped(weight, p.x, p.y, invert == 0.0f ? !kept : kept, hidden);
}

// Keeps a shape between a square and a circle, by `power`.
REPLACING(cut_sqcir, mode = 1, zoom = 2, power = 2, invert = 0) {
    real u = uniform(random) - 0.5f, v = uniform(random) - 0.5f;
    Pair p = mode == 0.0f ? pair(x, y) : pair(u, v);
    real sum =
        power_of(magnitude(zoom * (p.x - p.y)), (real)(power)) + power_of(magnitude(zoom * (p.x + p.y)), (real)(power));
    return cut_out(weight, p, sum <= 1.0f, invert, hidden);
}

// Keeps all but the two diagonals, `size` wide.
REPLACING(cut_x, mode = 1, zoom = 1, size = 0.1, invert = 0) {
    real u = uniform(random) - 0.5f, v = uniform(random) - 0.5f;
    Pair p = mode == 0.0f ? pair(x, y) : pair(u, v);
    real t = magnitude(zoom * 0.70710678f * (magnitude(p.x) - magnitude(p.y))) - size;
    t = clamped(t / 0.009f, zero_real(), (real)(1.0f));
    return cut_out(weight, p, t * t * (3.0f - 2.0f * t) >= 0.1f, invert, hidden);
}
