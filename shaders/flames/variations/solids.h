// Surfaces and solids: spheres, cones, shells, flowers, boards.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: JWildfire

// The plane onto a hemisphere by central projection.
VARIATION_3D(hemisphere) {
    real k = weight / sqrt(x * x + y * y + 1.0f);
    return triple(k * x, k * y, k);
}

// Cubes of the coordinates over the sum of their magnitudes: the plane onto a pyramid.
VARIATION_3D(pyramid) {
    real u = cube(x), v = cube(y), h = magnitude(cube(z));
    real k = weight / (magnitude(u) + magnitude(v) + h + 1e-9f);
    return scaled3(k, u, v, h);
}

// Divides by the radius r or by the norm t, inside and outside of a solid; `mode` chooses.
VARIATION_3D(octagon, x = 0, y = 0, z = 0, mode = 1) {
    real r = square(x * x) + square(y * y) + 2.0f * z * z;
    real t = magnitude(x) + magnitude(y) + 2.0f * sqrt(mode > 1.0f ? magnitude(z) : z);
    r = r == 0.0f ? (real)(1e-30f) : r;
    t = t == 0.0f ? (real)(1e-30f) : t;
    mask small = mode < 5.0f ? r <= 0.5f * weight : t <= 0.5f * weight;
    real inside = 1.0f + 1.0f / t, outside = 1.0f / r;
    mask split = small;
    if (mode == 1.0f) {
        outside = weight >= 0.0f ? 1.0f / r + 1.0f / t : 1.0f + 1.0f / r;
        split = small || !small;  // true
    }
    if (mode == 2.0f) outside = 1.0f + 1.0f / r;
    if (mode == 3.0f || mode == 5.0f) inside = 1.0f / t;
    if (mode == 4.0f) inside = 1.0f / r;
    real k = weight * (small ? inside : outside);
    real u = split ? (x >= 0.0f ? x + octagon_x : x - octagon_x) : (real)(0.0f);
    real v = split ? (y >= 0.0f ? y + octagon_y : y - octagon_y) : (real)(0.0f);
    real h = split ? (z >= 0.0f ? z + octagon_z : z - octagon_z) : (real)(0.0f);
    return triple(k * x + weight * u, k * y + weight * v, k * z + weight * h);
}

// A random point of the surface of J. Gielis' superformula in space, or of a torus of it.
VARIATION_3D(superShape3d, rho = 9.9, phi = 2.5, m1 = 6, m2 = 3, a1 = 1, a2 = 1, b1 = 1, b2 = 1, n1_1 = 1, n1_2 = 1,
             n2_1 = 1, n2_2 = 1, n3_1 = 1, n3_2 = 1, spiral = 0, toroidmap = 0) {
    real rho1 = uniform(random) * (rho * (2.0f / PI)), phi1 = uniform(random) * (phi * (2.0f / PI));
    phi1 = random_sign(phi1, random);
    Pair r = circle(rho1), p = circle(phi1), mr = circle(0.25f * m1 * rho1), mp = circle(0.25f * m2 * phi1);
    real pr1 = power_of((real)(fabs(1.0f / a1)), (real)(n2_1)) * power_of(magnitude(mr.x), (real)(n2_1)) +
               power_of((real)(fabs(1.0f / b1)), (real)(n3_1)) * power_of(magnitude(mr.y), (real)(n3_1));
    real pr2 = power_of((real)(fabs(1.0f / a2)), (real)(n2_2)) * power_of(magnitude(mp.x), (real)(n2_2)) +
               power_of((real)(fabs(1.0f / b2)), (real)(n3_2)) * power_of(magnitude(mp.y), (real)(n3_2));
    real r1 = power_of(pr1, (real)(-1.0f / n1_1)) + spiral * rho1, r2 = power_of(pr2, (real)(-1.0f / n1_2));
    real k = toroidmap == 1.0f ? r1 + r2 * p.x : r1 * r2 * p.x;
    return triple(weight * k * r.x, weight * k * r.y, weight * r2 * p.y);
}

// A random point of a triangle.
REPLACING_3D(triangle, x1 = -0.2, y1 = -0.1, z1 = 0, x2 = 0.2, y2 = -0.1, z2 = 0, x3 = 0.2, y3 = 0.1, z3 = 0) {
    real s = sqrt(uniform(random)), t = uniform(random), a = 1.0f - s, b = s * (1.0f - t), c = t * s;
    return scaled3(weight, a * x1 + b * x2 + c * x3, a * y1 + b * y2 + c * y3, a * z1 + b * z2 + c * z3);
}

// A. Enneper's minimal surface, seen from above.
REPLACING(ennepers) {
    return pair(weight * (x - cube(x) / 3.0f) + x * y * y, weight * (y - cube(y) / 3.0f) + y * x * x);
}

// H. Whitney's umbrella.
VARIATION_3D(whitney_umbrella) { return triple(weight * x * y, weight * x, weight * y * y); }

// A sphere of longitude x and latitude y, with n waves of the radius.
VARIATION_3D(svf, n = 2) {
    real k = cosine_of(n * y);
    Pair u = circle(x), v = circle(y);
    return triple(weight * v.x * k * u.x, weight * v.x * k * u.y, weight * v.y * k);
}

// A torus with n waves.
VARIATION_3D(taurus, r = 3, n = 5, inv = 1.5, sor = 1) {
    Pair u = circle(x), v = circle(y);
    real k = inv * r + (1.0f - inv) * (r * cosine_of(n * x)) + v.y;
    return triple(weight * u.x * k, weight * u.y * k, weight * sor * v.x + (1.0f - sor) * y);
}

// U. Dini's surface of constant negative curvature.
VARIATION_3D(dinis_surface_wf, a = 0.8, b = 0.2) {
    Pair u = circle(x), v = circle(y);
    *hidden = magnitude(y) <= 1e-9f;
    real h = a * (v.x + logarithm_of(tangent_of(0.5f * magnitude(y)))) + b * x;
    return triple(weight * a * u.x * v.y, weight * a * u.y * v.y, -weight * h);
}

// A variant of Enneper's surface over an inversion.
VARIATION_3D(ennepers2, a = 1, b = 0.3333, c = 0.075) {
    real k = 1.0f / (x * x + y * y), d = square(a * x) - square(b * y);
    return triple(weight * x * (a * a - d * k - c * sqrt(magnitude(x))),
                  weight * y * (b * b - d * k - c * sqrt(magnitude(y))), weight * d * 0.5f * sqrt(k));
}

// A cone over the plane, turned by a random multiple, below the parameter `weight`, of pi radius2.
VARIATION_3D(cone, radius1 = 0.5, radius2 = 1, size1 = 0.5, size2 = 2, ywave = 1, xwave = 1, height = 1, warp = 1,
             weight = 2) {
    real r = weight / sqrt(x * x * warp + y * y + size1) * size2;
    real a = atan_xy(y, x) * radius1 + PI * truncation(cone_weight * uniform(random)) * radius2;
    return scaled3(r, cosine_of(a * xwave), sine_of(a * ywave), height);
}

// A random point of a spiral tube that narrows to its end.
VARIATION_3D(seashell3D, final_radius = 0.25, height = 3.5, inner_radius = 0.4, nSpirals = 3) {
    real t = uniform(random), r = final_radius * (1.0f - t);
    Pair c = circle(nSpirals * (TWO_PI * t)), s = circle(TWO_PI * uniform(random));
    real k = r * (1.0f + s.x) + inner_radius;
    return triple(weight * k * c.x, weight * k * c.y, weight * (height * t + r * s.y));
}

// A flower of petals on a stem: flowerdb with a height.
VARIATION_3D(flower_db, petals = 6, petal_split = 0, petal_spread = 1, stem_thickness = 1, stem_length = 0,
             petal_fold_strength = 0, petal_fold_radius = 1) {
    real t = angle_of(y, x), r = weight * vnorm(x, y);
    r = r * magnitude((petal_spread + sine_of(petals * t)) * cosine_of(petal_split * petals * t));
    real h = -stem_thickness * (2.0f / r - 1.0f);
    h = r > petal_fold_radius ? h + (r - petal_fold_radius) * petal_fold_strength : h;
    if (stem_length != 0.0f) h = greatest(h, (real)(-stem_length));
    return lifted(swapped(from_polar(r, t)), h);
}

// A hyperboloid, cut at maxheight.
VARIATION_3D(hourglass3D, kx = 1, ky = 1, kz = 1, maxheight = 3.9086825296700543, limit = 1, zero = 0) {
    Pair c = circle(x), h = hyperbola(y);
    float top = sqrt(1.0f + (maxheight / ky) * (maxheight / ky)), side = sqrt(top * top - 1.0f);
    mask low = h.x <= top;
    real wide = low || limit == 0.0f ? h.x : (real)(top), high = low || limit == 0.0f ? h.y : side * sign_of(h.y);
    real kept = limit != 0.0f && zero != 0.0f ? (low ? (real)(1.0f) : zero_real()) : (real)(1.0f);
    return triple(weight * kx * wide * c.y * kept, weight * ky * high * kept, weight * kz * wide * c.x * kept);
}

// A random point of a square, across `axis` (0 z, 1 x, else y); `color_mode` colors it by its place.
VARIATION_3D(plane_wf, position = 3, size = 10, axis = 2, direct_color = 1, color_mode = 3, blend_colormap = 1,
             displ_amount = 0.1, blend_displ_map = 1, calc_color_idx = 0, receive_only_shadows = 0) {
    real u = 0.5f - uniform(random), v = 0.5f - uniform(random), a = size * u, b = size * v, c = (real)(position);
    if (direct_color > 0.0f && color_mode != 3.0f)
        *color = color_mode == 1.0f ? v + 0.5f : color_mode == 2.0f ? (u + 0.5f) * (v + 0.5f) : u + 0.5f;
    if (axis == 0.0f) return scaled3(weight, a, b, c);
    if (axis == 1.0f) return scaled3(weight, c, a, b);
    return scaled3(weight, a, c, b);
}

// A random point of a checkerboard, whose even fields are raised, or of the fields' sides, which get the fraction
// area / (1 + area) of the points.
VARIATION_3D(checkerboard_wf, position = 3, size = 10, axis = 2, checker_size = 0.25, displ_amount = 0.05,
             checker_color1 = 0.25, checker_color2 = 0.75, side_color = 0.5, with_sides = 1) {
    real pick = uniform(random), u = uniform(random), v = uniform(random), h = uniform(random), w = uniform(random);
    float cell = fmax(fabs(checker_size), 1e-6f), area = 4.0f * displ_amount, most = (float)(int)(1.0f / cell + 0.5f);
    if (most * cell >= 1.0f) most -= 1.0f;
    mask side = pick < area / (1.0f + area) && most > 0.0f && with_sides == 1.0f && fabs(displ_amount) >= 1e-8f;
    mask odd = modulo(floor_of(u / cell) + floor_of(v / cell), 2.0f) >= 1.0f;
    real shade = clamped(odd ? (real)(checker_color2) : (real)(checker_color1), zero_real(), (real)(1.0f));
    *color = side ? (real)(side_color) : shade;
    real edge = random_index(w, most + 1.0f) * cell, a = side && h < 0.5f ? edge : u, b = side && h >= 0.5f ? edge : v;
    real c = side ? displ_amount * wrap_unit(h * 2.0f) : odd ? zero_real() : (real)(displ_amount);
    a = weight * (a - 0.5f) * size;
    b = weight * (b - 0.5f) * size;
    c = weight * (c * size + position);
    if (axis == 0.0f) return triple(a, b, c);
    if (axis == 1.0f) return triple(c, a, b);
    return triple(b, c, a);
}

// A sphere up to the radius `weight`, and a tip above it.
VARIATION_3D(onion, centre_x = 0, centre_y = 0) {
    float r = weight == 0.0f ? 1.0f : weight, rim = r / 1.41421356f;
    real u = x - centre_x, v = y - centre_y, d = vnorm(u, v), k = d <= r ? (real)(1.0f) : (2.0f * r - d) / d;
    real top = exponential_of(d - 2.0f * r + rim) - 1.0f + rim,
         high = sqrt(greatest(r * r - square(k * d), zero_real()));
    real h = d <= r ? -high : 2.0f * r - d > rim ? high : top;
    return triple(k * u + centre_x, k * v + centre_y, h + z);
}

// Solids of I. Quilez's distance functions: true for a point p inside; u, v, w and `ring` are named in variation.h.

// A torus around the y axis of the radii r1 and r2.
SOLID(torus3D, r1 = 0.5 [0, 0.5], r2 = 0.5 [0, 0.5]) { return vnorm(ring - r1, p.y) < r2; }

SOLID(box3D, dx = 0.5, dy = 0.5, dz = 0.5) { return u < dx && v < dy && w < dz; }

SOLID(ellipsoid3D, dx = 0.5 [0, 0.5], dy = 0.5 [0, 0.5], dz = 0.5 [0, 0.5]) {
    return square(p.x / dx) + square(p.y / dy) + square(p.z / dz) < 1.0f;
}

// A box with edges rounded by r.
SOLID(rbox3D, dx = 0.5 [0, 0.5], dy = 0.5 [0, 0.5], dz = 0.5 [0, 0.5], r = 0.05 [0, 0.25]) {
    real none = zero_real();
    real over = square(greatest(u - dx, none)) + square(greatest(v - dy, none)) + square(greatest(w - dz, none));
    return over < r * r || u < dx && v < dy && w < dz;
}

SOLID(cylinder3D, d = 0.3 [0, 0.5], h = 0.25 [0, 0.5]) { return ring < d && v < h; }

// A torus of the angle (p1, p2).
SOLID(cappedtorus3D, p1 = 0.866025 [0, 1], p2 = -0.5 [-5, 5], p3 = 0.25 [0, 0.5], p4 = 0.15 [0, 0.5]) {
    real k = p2 * u > p1 * p.y ? u * p1 + p.y * p2 : vnorm(p.x, p.y);
    return u * u + v * v + w * w + p3 * p3 - 2.0f * p3 * k < p4 * p4;
}

// A cone of the slope p1 / p2 with its tip at the origin, cut from a ball of the radius p3.
SOLID(solidangle3D, p1 = 0.25 [0, 0.5], p2 = 0.5 [0, 0.5], p3 = 0.5 [0, 0.5]) {
    return vnorm(ring, p.y) < p3 && p2 * ring < p1 * p.y;
}

// The edges of a box, r thick.
SOLID(bbox3D, dx = 0.3 [0, 0.5], dy = 0.25 [0, 0.5], dz = 0.2 [0, 0.5], r = 0.05 [0, 0.25]) {
    real x = u - dx, y = v - dy, z = w - dz, fx = magnitude(x + r) - r, fy = magnitude(y + r) - r,
         fz = magnitude(z + r) - r;
    return x < 0.0f && fy < 0.0f && fz < 0.0f || fx < 0.0f && y < 0.0f && fz < 0.0f ||
           fx < 0.0f && fy < 0.0f && z < 0.0f;
}

// A cone of the slope p1 / p2 and the height p3 below the origin.
SOLID(cone3D, p1 = 0.25 [0, 1], p2 = 0.25 [0, 1], p3 = 0.1 [-1, 1]) {
    float x = p1 * p3 / p2, side = -p3 > 0.0f ? 1.0f : p3 > 0.0f ? -1.0f : 0.0f;
    return side * (ring * -p3 - p.y * x) < 0.0f && side * (p.y + p3) < 0.0f;
}

SOLID(hexprism3D, d = 0.3 [0, 0.5], h = 0.25 [0, 0.5]) {
    return v - least(v - 1.7320508f * u, zero_real()) * 0.5f < d && w < h;
}

// A capsule from (p1, p2, p3) to (p4, p5, p6) of the radius p7.
SOLID(capsule3D, p1 = 0.1 [-1, 1], p2 = 0 [-1, 1], p3 = 0 [-1, 1], p4 = 0 [-1, 1], p5 = 0 [-1, 1], p6 = 0 [-1, 1],
      p7 = 0.05 [-1, 1]) {
    float bx = p4 - p1, by = p5 - p2, bz = p6 - p3, n = bx * bx + by * by + bz * bz;
    real x = p.x - p1, y = p.y - p2, z = p.z - p3;
    real t = clamped((x * bx + y * by + z * bz) / n, zero_real(), (real)(1.0f));
    return square(x - bx * t) + square(y - by * t) + square(z - bz * t) < p7 * magnitude((real)(p7));
}

SOLID(octahedron3D, h = 0.25 [0, 0.5]) { return u + v + w < h; }

// A triangle of the size p1.
SOLID(triprism3D, p1 = 0.25 [0, 0.5], p2 = 0.5 [0, 0.5]) {
    float k = 0.8660254f * p1;
    real x = u / k - 1.0f, y = p.y / k + 0.57735027f;
    return (x + 1.7320508f * y > 0.0f ? -1.7320508f * x - y : y) > 0.0f && w < p2;
}

SOLID(octogonprism3D, r = 0.25 [0, 0.5], h = 0.5 [0, 0.5]) {
    real t = 2.0f * least(-0.92387953f * u + 0.38268343f * v, zero_real()), x = u + 0.92387953f * t;
    real y = v - 0.38268343f * t, q = 2.0f * least(0.92387953f * x + 0.38268343f * y, zero_real());
    return y - 0.38268343f * q < r && w < h;
}

// A rhombus of the diagonals la and lb, rounded by r.
SOLID(rhombus3D, la = 0.5 [0, 0.5], lb = 0.5 [0, 0.5], h = 0.5 [0, 0.5], r = 0.05 [0, 0.25]) {
    float n = la * la + lb * lb;
    real t = clamped((la * (la - 2.0f * u) - lb * (lb - 2.0f * w)) / n, (real)(-1.0f), (real)(1.0f));
    real far = vnorm(u - 0.5f * la * (1.0f - t), w - 0.5f * lb * (1.0f + t));
    return far * sign_of(u * lb + w * la - la * lb) < r && v < h;
}

// A cone of the half height p1 and the radii p2 below, p3 above.
SOLID(cappedcone3D, p1 = 0.5 [-1, 1], p2 = 0.1 [-1, 1], p3 = 0.3 [-1, 1]) {
    float x = p3 - p2, n = x * x + 4.0f * p1 * p1;
    real t = clamped(((p3 - ring) * x + (p1 - p.y) * 2.0f * p1) / n, zero_real(), (real)(1.0f));
    return ring - p3 + x * t < 0.0f && v < p1;
}

// A cylinder from (p1, p2, p3) to (p4, p5, p6) of the radius p7.
SOLID(ocylinder3D, p1 = 1 [-1, 1], p2 = 0 [-1, 1], p3 = 0 [-1, 1], p4 = 0 [-0.5, 0.5], p5 = 0 [-0.5, 0.5],
      p6 = 0 [-0.5, 0.5], p7 = 0.5 [0, 0.5]) {
    float bx = p4 - p1, by = p5 - p2, bz = p6 - p3, n = bx * bx + by * by + bz * bz;
    real x = p.x - p1, y = p.y - p2, z = p.z - p3, t = x * bx + y * by + z * bz;
    real far = square(x * n - bx * t) + square(y * n - by * t) + square(z * n - bz * t);
    return far < square((real)(p7 * n)) && magnitude(t - 0.5f * n) < 0.5f * n;
}
