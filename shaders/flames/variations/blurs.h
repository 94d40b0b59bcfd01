// Random displacements, and random points of discs, stars, polygons and balls.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// An item that ends in a semicolon has the body of the item before it.

// Origin: flam3

// A random fraction of x and of y, as cosine and sine of a random angle.
VARIATION(noise) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled(weight * uniform(random), x * c.x, y * c.y);
}

// A random point of a disc, denser in the middle.
VARIATION(blur) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled_pair(weight * uniform(random), c);
}

// A random point around the origin, its radius about Gaussian.
VARIATION(gaussian_blur) {
    Pair c = circle(TWO_PI * uniform(random));
    return scaled_pair(weight * gauss4(random), c);
}

// Blurs along the radius (angle 0) to along the circle (angle 1), by an amount in proportion to the radius.
VARIATION(radial_blur, angle = 0) {
    Pair q = circle((real)(angle * (PI / 2.0f)));
    real g = weight * gauss4(random), r = vnorm(x, y), z = g * q.x - 1.0f;
    Pair c = circle(angle_of(y, x) + g * q.y);
    return pair(r * c.x + z * x, r * c.y + z * y);
}

// A random point of one of `slices` slices, each of the fraction `thickness`.
VARIATION(pie, slices = 6, rotation = 0, thickness = 0.5) {
    real s = truncation(uniform(random) * slices + 0.5f);
    Pair c = circle(rotation + TWO_PI * (s + uniform(random) * thickness) / slices);
    return scaled_pair(weight * uniform(random), c);
}

// A random point of a square of side 1.
VARIATION(square) {
    real u = uniform(random) - 0.5f;
    return scaled(weight, u, uniform(random) - 0.5f);
}

// Random rays: the inverted radius times a tangent of a random angle.
VARIATION(rays) {
    real k = weight * tangent_of(weight * uniform(random) * PI) * weight / (x * x + y * y + EPSILON);
    return scaled(k, cosine_of(x), sine_of(y));
}

// x times the sum and difference of cosine and sine of a random part of the radius.
VARIATION(blade) {
    Pair c = circle(uniform(random) * weight * vnorm(x, y));
    return scaled(weight * x, c.x + c.y, c.x - c.y);
}

// Its result is added to the point (x, y) that all other variations transform.
PRE(pre_blur) {
    real g = weight * gauss4(random);
    return scaled_pair(g, circle(TWO_PI * uniform(random)));
}

// Origin: JWildfire

// blade with a height.
VARIATION_3D(blade3D) {
    Pair c = circle(uniform(random) * weight * vnorm(x, y));
    return triple(weight * x * (c.x + c.y), weight * x * (c.x - c.y), weight * y * (c.y - c.x));
}

// pie with a height: the sine of the radius.
VARIATION_3D(pie3D, slices = 7, rotation = 0, thickness = 0.5) {
    real slice = truncation(uniform(random) * slices + 0.5f);
    Pair c = circle(rotation + TWO_PI * (slice + uniform(random) * thickness) / slices);
    real r = weight * uniform(random);
    return scaled3(r, c.x, c.y, sine_of(r));
}

// A random point of a cube of side 1.
VARIATION_3D(square3D) {
    real u = weight * (uniform(random) - 0.5f), v = weight * (uniform(random) - 0.5f);
    return triple(u, v, weight * (uniform(random) - 0.5f));
}

// A random multiple of a power of the squared distance from (x_origin, -y_origin, z_origin), in the direction from
// there, which varies at random by `r`. The sign of y_origin is the origin's.
VARIATION_3D(exblur, dist = 0.5, r = 0.25, x_origin = 0, y_origin = 0, z_origin = 0) {
    real u = x - x_origin, v = y + y_origin, h = z - z_origin, n = u * u + v * v + h * h;
    real k = weight * power_of(n, (real)(dist)) * gauss4(random);
    Pair t = circle(angle_of(v, u)), a = circle(TWO_PI * uniform(random)), b = circle(TWO_PI * uniform(random));
    real cv = h / sqrt(n), sv = sqrt(greatest(1.0f - cv * cv, (real)(0.0f))), s = r * b.y;
    return scaled3(k, sv * t.x + s * a.x, sv * t.y + s * a.y, cv + r * b.x);
}

// A random point of a disc, its radius spread by an arc cosine.
VARIATION(sineblur, power = 1) {
    Pair c = circle(TWO_PI * uniform(random));
    real u = uniform(random), v = power_of(u, (real)(fmax(power, 0.0f)));
    return scaled(weight / PI * arccosine(2.0f * v - 1.0f), c.x, c.y);
}

// A random point around the origin of space.
VARIATION_3D(blur3D) {
    Pair a = circle(TWO_PI * uniform(random)), b = circle(PI * uniform(random));
    real r = weight * gauss4(random);
    return triple(r * b.y * a.x, r * b.y * a.y, r * b.x);
}

// Moves the point by a random part of `length` in the direction `angle`.
VARIATION(blur_linear, length = 1, angle = 0.5) {
    real r = length * uniform(random);
    Pair c = circle((real)(angle));
    return scaled(weight, x + r * c.x, y + r * c.y);
}

// Scales by a random factor from 1 to 1 + length about (x, -y).
VARIATION(blur_zoom, length = 0.24, x = 0.2, y = -0.1) {
    real k = 1.0f + length * uniform(random);
    return scaled(weight, (x - blur_zoom_x) * k + blur_zoom_x, (y + blur_zoom_y) * k - blur_zoom_y);
}

// A random point of a disc, evenly, from a point of a square: square_to_disc() maps concentric squares to circles.
VARIATION(blur_circle) {
    real u = 2.0f * uniform(random) - 1.0f, v = 2.0f * uniform(random) - 1.0f;
    Pair p = square_to_disc(u, v);
    return from_polar(weight * p.x, p.y);
}

// A random point of a disc, evenly.
VARIATION(circleblur) {
    real r = sqrt(uniform(random));
    return from_polar(weight * r, TWO_PI * uniform(random));
}

// A random point of a star of `power` tips, whose inner corners have the radius `range`. star_point() below is the same
// edge as Fractorium computes it: by an angle in place of this sine, which rounds otherwise.
VARIATION(starblur, power = 5, range = 0.40162283177245456) {
    Pair a = circle((real)(PI / power));
    real length = sqrt(1.0f + range * range - 2.0f * range * a.x), sine = a.y * range / length;
    real cosine = sqrt(1.0f - sine * sine);
    real f = uniform(random) * power * 2.0f, n = truncation(f), u = (f - n) * length;
    real r = sqrt(1.0f + u * u - 2.0f * u * cosine), over = arcsine(sine * u / r), half_n = truncation(0.5f * n);
    real angle = TWO_PI / power * half_n + (is_odd(n) ? -over : over);
    return from_polar(weight * r * sqrt(uniform(random)), angle - 0.5f * PI);
}

// A random point of the square of side `size` that holds the point.
VARIATION(blur_pixelize, size = 0.1, scale = 1) {
    real u = scale * (uniform(random) - 0.5f) + 0.5f, v = scale * (uniform(random) - 0.5f) + 0.5f;
    return scaled(weight * size, floor_of(x / size) + u, floor_of(y / size) + v);
}

// JWildfire's older and newer (falloff3) falloff and Fractorium's (falloff) are one displacement, but they differ in
// their types, in the range of their random numbers (0 to 1 here, -0.5 to 0.5 in the others) and in color.
//
// A random displacement beyond the distance `mindist` from (x0, y0, z0), which grows with the distance; type 1
// displaces radius and angles, 2 in a ball, 0 along the axes. As in its program, type 1 has the z of a unit sphere.
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
        return scaled3(weight, x + mul_x * w * s.x * p.x, y + mul_y * w * s.x * p.y, z + mul_z * w * s.y);
    }
    return scaled3(weight, x + mul_x * u, y + mul_y * v, z + mul_z * w);
}

// Random points of `count` circular waves around the origin.
VARIATION_3D(waveblur_wf, count = 5, phase = 0, amplitude_z = 0.5, damping_z = 0, direct_color = 0, color_scale = 0.5,
             color_offset = 0) {
    Pair c = circle(TWO_PI * uniform(random));
    real u = 1.0f - 2.0f * uniform(random), v = random_sign(u, random);
    real r = arccosine(v) - (random_index(uniform(random), count) + 1.0f) * PI + phase;
    r = r * (weight / (count * PI));
    if (direct_color == 1.0f) *color = clamped(arccosine(u) * color_scale + color_offset, zero_real(), (real)(1.0f));
    real h = (cosine_of(u) - 0.5f) * amplitude_z;
    h = fabs(damping_z) > 1e-30f ? h * exponential_of(r * damping_z) : h;
    return triple(r * c.x, r * c.y, weight * h);
}

// A random height.
VARIATION_3D(zblur) { return triple(zero_real(), zero_real(), weight * gauss4(random)); }

// Moves the point at random, in proportion to the squared distance from an origin.
VARIATION_3D(farblur, x = 1, y = 1, z = 1, x_origin = 0, y_origin = 0, z_origin = 0) {
    real r = weight * (square(x - x_origin) + square(y - y_origin) + square(z - z_origin)) * gauss4(random);
    Pair u = circle(TWO_PI * uniform(random)), v = circle(TWO_PI * uniform(random));
    return triple(x + farblur_x * r * v.y * u.x, y + farblur_y * r * v.y * u.y, z + farblur_z * r * v.x);
}

// Moves the point at random, in proportion to the distance beyond `offset` from a center.
REPLACING(rblur, strength = 1, offset = 1, center_x = 0, center_y = 1) {
    real r = greatest(vnorm(x - center_x, y - center_y) - offset, zero_real()) * (2.0f * strength);
    real u = x + (uniform(random) - 0.5f) * r;
    return scaled(weight, u, y + (uniform(random) - 0.5f) * r);
}

// A random point of a rectangle.
REPLACING(rect_wf, x0 = -0.5, x1 = 0.5, y0 = -0.5, y1 = 0.5) {
    real u = uniform(random);
    return scaled(weight, x0 + (x1 - x0) * u, y0 + (y1 - y0) * uniform(random));
}

// A random point of a regular polygon of numEdges sides, or with circumCircle 1 of its circumscribed circle, with a hole
// of ratioHole. adjustToLinear 1 makes it 2 weight wide, equalBlur 1 spreads the points evenly along the radius, and
// highlightEdges gathers them toward the sides' ends. JWildfire's numStripes, ratioStripes and exactCalc are ignored.
VARIATION(nBlur, numEdges = 3 [3, 1000], numStripes = 0, ratioStripes = 1, ratioHole = 0, circumCircle = 0,
          adjustToLinear = 1, equalBlur = 1, exactCalc = 0, highlightEdges = 1) {
    float edges = (float)(int)numEdges, wedge = TWO_PI / edges, fourth = 0.25f * edges;
    // wedges between the two corners whose distance becomes 2 weight
    float turn = fourth == (float)(int)fourth ? 0.5f * edges - 1.0f : (float)(int)(0.5f * edges);
    real size = (real)(weight);
    if (adjustToLinear == 1.0f) size = 2.0f * weight / root_safe(2.0f - 2.0f * cosine_of((real)(wedge * turn)));
    real u = uniform(random), side = random_index(uniform(random), edges), far = uniform(random),
         again = uniform(random);
    int round = circumCircle == 1.0f;
    real bend = 13.0f * (round ? 0.1f : fmax(highlightEdges, 0.1f)) / power_of((real)(edges), (real)(1.3f));
    Pair edge = polygon_edge((real)(edges), side, bend, u);
    real outer = edge.x, inner = ratioHole * outer;
    far = equalBlur == 1.0f ? sqrt(far) : far;
    again = equalBlur == 1.0f ? sqrt(again) : again;
    real r = round ? far : far * outer;
    r = r < inner ? inner + again * ((round ? (real)(1.0f) : outer) - inner) : r;
    return swapped(from_polar(size * r, edge.y));
}

// JWildfire's two logarithmic maps of falloff3: of a factor, and of a random offset.
DEVICE real mapped_log(real x) {
    real size = (3.718281828459045f + logarithm_of(x)) * 0.25f;
    return x > 0.0f ? size : zero_real();
}

DEVICE real log_offset(real x) {
    return sign_of(x) * (logarithm_of(magnitude(x) + 1.0f) + 1.0f) * (1.0f / 2.718281828459045f);
}

// falloff2 with the distance of a ball or a cube (blur_shape); blur_type 0 displaces in a ball, 1 radius and angles,
// others by logarithms.
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
        return scaled3(weight, x + mul_x * far * s.x * p.x, y + mul_y * far * s.x * p.y, z + mul_z * far * s.y);
    }
    real k = most <= 1e-8f ? d : d + alpha * (mapped_log(d) - d);
    *color = magnitude(fraction_of(*color + mapped_log((real)(mul_c)) * log_offset(rd) * k));
    return scaled3(weight, x + mapped_log((real)(mul_x)) * log_offset(ra) * k,
                   y + mapped_log((real)(mul_y)) * log_offset(rb) * k,
                   z + mapped_log((real)(mul_z)) * log_offset(rc) * k);
}

// Origin: Fractorium

// A random point of a ball.
VARIATION_3D(sphereblur, power = 1 [0, 1e6]) {
    real a = TWO_PI * uniform(random), c = 2.0f * uniform(random) - 1.0f, u = uniform(random);
    u = power == 1.0f ? u : power_of(u, (real)(power));
    real r = weight * power_of(arccosine(2.0f * u - 1.0f) * (1.0f / PI), (real)(1.0f / 1.5f)),
         s = root_safe(1.0f - c * c);
    return lifted(from_polar(r * s, a), r * c);
}

// (x, y) moved by r in the direction a, where `far` from the origin lies beyond the radius.
DEVICE Pair blurred_beyond(float weight, real x, real y, real far, float radius, real r, real a) {
    Pair p = from_polar(r, a);
    mask moves = far > radius;
    return scaled(weight, moves ? x + p.x : x, moves ? y + p.y : y);
}

// Radius and angle of a point on a star's edge: at the fraction f of side n. `way`, 1 or -1: the turn of odd sides.
DEVICE Pair star_point(float power, float range, real n, real f, float way) {
    Pair tip = circle((real)(PI / power));
    real length = sqrt(1.0f + range * range - 2.0f * range * tip.x), alpha = arcsine(tip.y * range / length);
    real t = f * length, h = sqrt(1.0f + t * t - 2.0f * t * cosine_of(alpha)), half_n = floor_of(0.5f * n);
    real bend = way * arcsine(sine_of(alpha) * t / h);
    return pair(h, TWO_PI / power * half_n + (is_odd(n) ? bend : -bend) - 0.5f * PI);
}

// The distance from (x0, y0) in units of the half axes mulx and muly.
DEVICE real ellipse_radius(real x, real y, float x0, float y0, float mulx, float muly) {
    return vnorm((x - x0) / mulx, (y - y0) / muly);
}

// A power of the distance beyond the radius.
DEVICE real power_beyond(real far, float radius, float exponent) {
    return power_of(greatest(far - radius, zero_real()), (real)(exponent));
}

// depth_blur (below) with a center, scales and an exponent.
VARIATION(depth_blur2, power = 5, range = 0.401623, blur = 1, radius = 1, x0 = 0, y0 = 0, mulx = 1, muly = 1, exp = 1) {
    real far = ellipse_radius(x, y, x0, y0, mulx, muly), u = uniform(random) * (2.0f * power), again = uniform(random);
    Pair p = star_point(power, range, floor_of(u), u - floor_of(u), 1.0f);
    real r = p.x * sqrt(again) * (0.1f * blur) * power_beyond(far, radius, exp);
    return blurred_beyond(weight, x, y, far, radius, r, p.y);
}

// A random displacement that grows with the distance from (x0, y0, z0) beyond `mindist`, as falloff2: type 0 along the
// axes, 1 of radius and angles, 2 toward the boxes of a grid.
VARIATION_3D(falloff, scatter = 1, mindist = 0.5, mul_x = 1, mul_y = 1, mul_z = 0, x0 = 0, y0 = 0, z0 = 0, invert = 0,
             type = 0, boxpow = 2) {
    real a = uniform(random) - 0.5f, b = uniform(random) - 0.5f, c = uniform(random) - 0.5f;
    real r = sqrt(square(x - x0) + square(y - y0) + square(z - z0)), zero = zero_real();
    real d = greatest((greatest(invert != 0.0f ? 1.0f - r : r, zero) - mindist) * (0.04f * scatter), zero);
    if (type == 0.0f) return scaled3(weight, x + mul_x * a * d, y + mul_y * b * d, z + mul_z * c * d);
    if (type == 1.0f) {
        Pair s = circle((r == 0.0f ? zero : arcsine(clamped(z / r, (real)(-1.0f), (real)(1.0f)))) + mul_z * c * d);
        Pair p = circle(angle_of(y, x) + mul_y * b * d);
        r = weight * (r + mul_x * a * d);
        return triple(r * s.x * p.x, r * s.x * p.y, r * s.y);
    }
    real size = clamped(d, zero, (real)(0.9f)) + 0.1f, k = 1.0f / size, ta = mul_x * d, tb = mul_y * d, tc = mul_z * d;
    real pa = signed_power(a, boxpow), pb = signed_power(b, boxpow), pc = signed_power(c, boxpow);
    if (boxpow == 2.0f * (float)(int)(0.5f * boxpow)) {
        pa = magnitude(pa);
        pb = magnitude(pb);
        pc = magnitude(pc);
    }
    return triple(weight * blend(x, floor_of(x * k) + size * a, ta) + ta * pa * k,
                  weight * blend(y, floor_of(y * k) + size * b, tb) + tb * pb * k,
                  weight * blend(z, floor_of(z * k) + size * c, tc) + tc * pc * k);
}

// A random point of the square, moved below the edge of a heart.
VARIATION(blur_heart, p = 0.5, a = -0.6, b = 0.7) {
    real u = 2.0f * uniform(random) - 1.0f, v = 2.0f * uniform(random) - 1.0f;
    real side = v < 0.0f ? (real)(-1.0f) : (real)(1.0f);
    real top = a * power_of(magnitude(u), (real)(p)) + side * b * sqrt(magnitude(1.0f - u * u)) - a;
    top = top / (fabs(a) + fabs(b));
    return scaled(weight, u, v > 0.0f ? least(v, top) : greatest(v, top));
}

// A random point of a square of side 2.
VARIATION(blur_square) {
    real u = uniform(random), v = uniform(random);
    return scaled(2.0f * weight, u - 0.5f, v - 0.5f);
}

// A random point of `density` concentric circles; the wider a circle, the lower it lies.
REPLACING_3D(concentric, radius = 1, density = 10, R_blur = 0, Z_blur = 0) {
    real level = floor_of(uniform(random) * density) / density, a = TWO_PI * uniform(random), r = level * radius;
    real u = uniform(random), v = uniform(random);
    r = r + (sqrt(u) * 2.0f - 1.0f) * R_blur;
    return lifted(from_polar(weight * r, a), weight * ((v * 2.0f - 1.0f) * Z_blur - level));
}

// The radius of a polygon of `power` sides about the unit circle, at the angle a.
DEVICE real ngon_edge(real a, float power) {
    float side = TWO_PI / power;
    real phi = a - side * floor_of(a / side);
    return 1.0f / cosine_of(phi > 0.5f * side ? phi - side : phi);
}

// A radius of 0 to 1 whose density is a sine, for a random u. The power 1 takes u, others 1 - u: so Fractorium has it.
DEVICE real sine_radius(real u, float power) {
    return arccosine((power == 1.0f ? u : power_of(1.0f - u, (real)(power))) * 2.0f - 1.0f) * (1.0f / PI);
}

// The radius of a normally distributed point (G. Box and M. Muller), for a random u.
DEVICE real gaussian_radius(real u) { return sqrt(-2.0f * logarithm_of(u)); }

// The variations depth_ blur points beyond `radius`, in proportion to their distance from it, by a Gauss bell, a
// polygon, a sine or a star. Names with 2 have a center (x0, y0) and an exponent.
VARIATION(depth_gaussian, blur = 1, radius = 1) {
    real far = vnorm(x, y), r = gaussian_radius(uniform(random)), a = TWO_PI * uniform(random);
    return blurred_beyond(weight, x, y, far, radius, r * (0.1f * blur) * (far - radius), a);
}

// Fractorium multiplies by mulx and muly twice here, where ellipse_radius() divides by them.
VARIATION(depth_gaussian2, blur = 1, radius = 1, x0 = 0, y0 = 0, mulx = 1, muly = 1, exp = 1) {
    real far = vnorm((x - x0) * mulx * mulx, (y - y0) * muly * muly);
    real r = gaussian_radius(uniform(random)), a = TWO_PI * uniform(random);
    return blurred_beyond(weight, x, y, far, radius, r * (0.1f * blur) * power_beyond(far, radius, exp), a);
}

VARIATION(depth_ngon, power = 5, blur = 1, radius = 1) {
    real far = vnorm(x, y), a = TWO_PI * uniform(random);
    return blurred_beyond(weight, x, y, far, radius, ngon_edge(a, power) * (0.1f * blur) * (far - radius), a);
}

// The body is depth_ngon's: Fractorium, compatible with flam3, reads neither center nor scales nor exponent.
VARIATION(depth_ngon2, power = 5, blur = 1, radius = 1, x0 = 0, y0 = 0, mulx = 1, muly = 1, exp = 1);

VARIATION(depth_sine, power = 1 [0, 1e6], blur = 1, radius = 1) {
    real far = vnorm(x, y), a = TWO_PI * uniform(random), r = sine_radius(uniform(random), power);
    return blurred_beyond(weight, x, y, far, radius, r * (0.1f * blur) * (far - radius), a);
}

VARIATION(depth_sine2, power = 1 [0, 1e6], blur = 1, radius = 1, x0 = 0, y0 = 0, mulx = 1, muly = 1, exp = 1) {
    real far = ellipse_radius(x, y, x0, y0, mulx, muly), a = TWO_PI * uniform(random);
    real r = sine_radius(uniform(random), power) * (0.1f * blur) * power_beyond(far, radius, exp);
    return blurred_beyond(weight, x, y, far, radius, r, a);
}

VARIATION(depth_blur, power = 5, range = 0.401623, blur = 1, radius = 1) {
    real far = vnorm(x, y), u = uniform(random) * (2.0f * power), again = uniform(random);
    Pair p = star_point(power, range, floor_of(u), u - floor_of(u), -1.0f);
    return blurred_beyond(weight, x, y, far, radius, p.x * sqrt(again) * (0.1f * blur) * (far - radius), p.y);
}

// starblur with a hole and stripes.
VARIATION(starblur2, power = 5, range = 0.40162283177245456, hole = 0.5, stripes = 5, width = 0.2) {
    float n = fmax(fabs(stripes), 1e-6f), inner = fmin(fabs(hole), 1.0f);
    real k = uniform(random) * (2.0f * power), again = uniform(random), i = floor_of(k), f = (k - i) * n;
    real s = truncation(f), part = width * (f - s);
    Pair p = star_point(power, range, i, ((is_odd(i) ? 1.0f - part : part) + s) / n, 1.0f);
    return from_polar(weight * p.x * sqrt(again * (1.0f - inner * inner) + inner * inner), p.y);
}

// Points beyond inner_radius fade: at random, the more likely the farther, they move to the origin; others are blurred.
VARIATION(vignette, posx = 0, posy = 0, inner_radius = 0.5, fade_radius = 0.5, power = 4, blur = 1) {
    real far = vnorm(x - posx, y - posy), t = (far - fabs(inner_radius)) / fabs(fade_radius);
    real fade = 1.0f - power_of(uniform(random), (real)(1.0f / fabs(power)));
    real r = blur * square(t * uniform(random));
    Pair p = from_polar(r, TWO_PI * uniform(random));
    mask inside = far < fabs(inner_radius), lost = fade_radius > 0.0f ? fade < t : 1.0f - fade > t;
    real k = inner_radius < 0.0f ? zero_real() : (real)(weight);
    real u = lost ? zero_real() : x + p.x, v = lost ? zero_real() : y + p.y;
    return pair(inside ? k * x : weight * u, inside ? k * y : weight * v);
}

// A random point of the bars of a waffle: `kind` chooses an edge, or a bar along x or along y.
VARIATION(waffle, slices = 6 [1, 1e6], xthickness = 0.5, ythickness = 0.5, rotation = 0) {
    real kind = random_index(uniform(random), 5.0f), i = random_index(uniform(random), floor(slices));
    real j = random_index(uniform(random), floor(slices)), u = uniform(random), v = uniform(random);
    real a = kind == 0.0f ? i + u * xthickness : kind == 1.0f ? i + u : kind == 2.0f ? i + xthickness : i;
    a = (kind == 4.0f ? i + xthickness + u * (1.0f - xthickness) : a) / slices;
    real r = kind == 0.0f ? j + v * ythickness : kind == 1.0f ? j + ythickness : kind == 2.0f ? j + v : j;
    r = (kind == 3.0f ? j + ythickness + v * (1.0f - ythickness) : r) / slices;
    a = kind == 3.0f ? u : a;
    r = kind == 4.0f ? v : r;
    Pair c = circle((real)(rotation));
    return scaled(weight, c.x * a + c.y * r, c.x * r - c.y * a);
}
