// Mirrors, rotations and kaleidoscopes; the symmetry groups of the plane by Jesus Sosa: seven of bands (friezes,
// sym_bg) and seventeen of nets (wallpapers, sym_ng). sym_ maps a point to one of its images, chosen at random.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// An item that ends in a semicolon has the body of the item before it.

// Origin: JWildfire

// The weight times one of two images, chosen by a random number u of 0 to 1.
DEVICE Pair one_of_two(float weight, real u, Pair a, Pair b) { return scaled_pair(weight, choose2(u < 0.5f, a, b)); }

// Translations along x.
VARIATION(sym_bg1, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    return one_of_two(weight, uniform(random), pair(x - u - 1.0f, y - v), pair(x + u, y + v));
}

// Glide reflections: a translation along x, and mirrored in y.
VARIATION(sym_bg2, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    return one_of_two(weight, uniform(random), pair(x - u - 1.0f, y - v), pair(x + u, 1.0f + v - y));
}

// Translations and half turns.
VARIATION(sym_bg3, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    return one_of_two(weight, uniform(random), pair(x - u - 1.0f, y - v - 0.5f), pair(u + 1.0f - x, v + 0.5f - y));
}

// Translations and mirror images of x.
VARIATION(sym_bg4, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    return one_of_two(weight, uniform(random), pair(x - u - 1.0f, y - v - 0.5f), pair(u + 1.0f - x, y + v + 0.5f));
}

// Translations and mirror images of y.
VARIATION(sym_bg5, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    return one_of_two(weight, uniform(random), pair(x - u - 1.0f, y - v - 0.5f), pair(x + u - 1.0f, v + 0.5f - y));
}

// The weight times one of four images, chosen by a random number u of 0 to 1.
DEVICE Pair one_of_four(float weight, real u, Pair a, Pair b, Pair c, Pair d) {
    real v = u < 0.5f ? 2.0f * u : 2.0f * u - 1.0f;
    return one_of_two(weight, u, choose2(v < 0.5f, a, b), choose2(v < 0.5f, c, d));
}

// Translations and mirror images of x, y or both.
VARIATION(sym_bg6, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    return one_of_four(weight, uniform(random), pair(x - u - 1.0f, y - v - 0.5f), pair(u + 1.0f - x, y + v - 0.5f),
                       pair(x - u - 1.0f, 0.5f - v - y), pair(u + 1.0f - x, v + 0.5f - y));
}

// The same with other steps, so that mirror images of y glide.
VARIATION(sym_bg7, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    return one_of_four(weight, uniform(random), pair(x - u - 2.0f, y - v - 0.5f), pair(u + 2.0f - x, y + v - 0.5f),
                       pair(x + u, v + 0.5f - y), pair(-u - x, 0.5f - v - y));
}

// Translations.
VARIATION(sym_ng1, stepx = 0.5, stepy = 0.5) {
    real s = random_sign((real)(-0.5f), random);
    return scaled(weight, x + s * stepx, y + s * stepy);
}

// Translations, one way mirrored in y.
VARIATION(sym_ng2, stepx = 2, stepy = 2) {
    real s = random_sign((real)(-0.5f), random);
    return scaled(weight, x + s * stepx, (s < 0.0f ? y : -y) + s * stepy);
}

// The point, shifted, or its half turn.
VARIATION(sym_ng3, sepx = 0.5, sepy = 0, step = 2) {
    real s = random_sign((real)(1.0f), random);
    return scaled(weight * s, x - sepx - 0.5f * step, y - sepy - 0.5f * step);
}

// Translations, half turns and mirror images, one of four.
VARIATION(sym_ng4, sepx = 0, sepy = 0, stepx = 0, stepy = 0) {
    float u = 0.5f * sepx, v = 0.5f * sepy, su = 0.5f * stepx, sv = 0.5f * stepy;
    return one_of_four(weight, uniform(random), pair(x - u - 2.0f - su, y + v - 1.5f - sv),
                       pair(u - su - x, -v - 0.5f - sv - y), pair(x - u + su, 0.5f - v + sv - y),
                       pair(u + 2.0f + su - x, y + v - 0.5f + sv));
}

// As sym_ng4, with other steps.
VARIATION(sym_ng5, sepx = 0, sepy = 0, stepx = 0) {
    float s = 0.5f * stepx;
    return one_of_four(weight, uniform(random), pair(x - sepx - 2.0f - s, y + sepy - 0.5f),
                       pair(sepx - s - x, -sepy - 0.5f - y), pair(x - sepx + s, -sepy - 0.5f - y),
                       pair(2.0f + sepx + s - x, y + sepy - 0.5f));
}

// Translations and mirror images of y, one of four.
VARIATION(sym_ng6, sepy = 0.1, stepx = 1, stepy = 1) {
    float u = 0.5f * stepx, v = 0.5f * stepy, s = 0.5f * sepy;
    return one_of_four(weight, uniform(random), pair(x - u, y - v + s), pair(x - u, -v - s - y), pair(x + u, y + v + s),
                       pair(x + u, v - s - y));
}

// Translations, one way mirrored in y, without steps.
VARIATION(sym_ng7, sepx = 0, sepy = 0) {
    real s = random_sign((real)(-0.5f), random);
    return scaled(weight, x + s * sepx, (s < 0.0f ? y : -y) - s * sepy);
}

// (x, y) or its mirror images by the bits of k: 1 mirrors x, 2 mirrors y.
DEVICE Pair mirrored(real x, real y, real k) {
    real high = floor_of(0.5f * k), low = k - 2.0f * high;
    return pair(low > 0.5f ? -x : x, high > 0.5f ? -y : y);
}

// A random mirror image p of the point, moved to the side (s, t) by its signs and by half a skew to either side. q is
// never mirrored, as random_index(..., 1) is always 0: JWildfire draws that number, so it is drawn here.
VARIATION(sym_ng8, sepx = 0, sepy = 0, skewx = 0, skewy = 0) {
    Pair p = mirrored(x, y, random_index(uniform(random), 4.0f));
    Pair q = mirrored((real)(1.0f + 0.5f * sepx), (real)(0.5f * sepy), random_index(uniform(random), 1.0f));
    real turned = p.x == x ? (real)(-1.0f) : (real)(1.0f), s = p.x == x && p.y == y ? (real)(-1.0f) : turned;
    real t = p.y == y ? (real)(1.0f) : (real)(-1.0f);
    real skew = random_sign((real)(-0.5f), random);
    return scaled(weight, p.x + s * q.x + skew * skewx, p.y + t * q.y + skew * skewy);
}

// Mirror images of x, y or both.
VARIATION(sym_ng9, sepx = 0, sepy = 0) {
    float u = 0.5f * sepx, v = 0.5f * sepy;
    return one_of_four(weight, uniform(random), pair(x + u, -v - y), pair(-u - x, y + v), pair(-u - x, -v - y),
                       pair(x + u, y + v));
}

// Half turns, quarter turns and mirror images on the diagonals, one of four.
VARIATION(sym_ng10, space = 0, spacex = 0, spacey = 0) {
    x = x + space;
    y = y + space;
    float u = 0.5f * spacex, v = 0.5f * spacey;
    return one_of_four(weight, uniform(random), pair(-u - x, -v - y), pair(y - u, -v - x), pair(u - y, v + x),
                       pair(x + u, y + v));
}

// The weight times one of the eight images of a point by quarter turns and mirrors, apart by twice sx and sy, and moved
// by u and v.
DEVICE Pair one_of_eight(float weight, real x, real y, float sx, float sy, float u, float v, Random *random) {
    real half_turn = uniform(random);
    Pair p = one_of_four(weight, uniform(random), pair(x + sx + u, y + sy + v), pair(u - sx - x, v - sy - y),
                         pair(y + sx + u, v - sy - x), pair(u - sx - y, v + sy + x));
    Pair q = one_of_four(weight, uniform(random), pair(-sx - u - x, y + sy - v), pair(-sx - u - y, -sy - v - x),
                         pair(y + sx - u, x + sy - v), pair(x + sx - u, -sy - v - y));
    return choose2(half_turn < 0.5f, p, q);
}

// Quarter turns and mirrors, one of eight images, in steps.
VARIATION(sym_ng11, space = 0, spacex = 0, spacey = 0, stepx = 1.5, stepy = 1.5) {
    return one_of_eight(weight, x + space, y + space, spacex, spacey, 0.5f * stepx, 0.5f * stepy, random);
}

// sym_ng11 without steps.
VARIATION(sym_ng12, space = 0, spacex = 0, spacey = 0) {
    return one_of_eight(weight, x + space, y + space, spacex, spacey, 0.0f, 0.0f, random);
}

// Mirrors each axis that is on with probability 1/2, and shifts the colors of the mirror images.
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

// A random rotation of `order` about the center; the color shifts with it.
VARIATION(point_symmetry_wf, centre_x = 0.25, centre_y = 0.5, order = 3, colorshift = 0) {
    real k = random_index(uniform(random), order), u = (x - centre_x) * weight, v = (y - centre_y) * weight;
    Pair c = circle(TWO_PI / order * k);
    *color = fraction_of(*color + k * colorshift);
    return pair(centre_x + u * c.x + v * c.y, centre_y + v * c.x - u * c.y);
}

// A rotation whose upper and lower halves are pulled apart. 45 is an angle in radians, as JWildfire has it.
// kaleidoscope_x and kaleidoscope_y are the parameters x and y.
VARIATION(kaleidoscope, pull = 0, rotate = 1, line_up = 1, x = 0, y = 0) {
    Pair c = circle((real)(45.0f));
    real u = rotate * x * c.x - y * c.y + line_up + kaleidoscope_x, v = rotate * y * c.x + x * c.y;
    return pair(u, y > 0.0f ? v + pull + line_up + kaleidoscope_y : v - pull - line_up);
}

// Rotates the points in each of 2 num wedges inside of the wedge, alternately forward and back.
VARIATION(collideoscope, a = 0.2, num = 1) {
    float wedge = PI / num, over = PI * a / num;
    real t = angle_of(y, x), s = magnitude(t), k = truncation(s * num * (1.0f / PI));
    mask even = !is_odd(k), up = t >= 0.0f;
    // even wedges above the axis turn forward, odd ones back; below the axis the other way round
    real turned = k * wedge + remainder_of(even == up ? s + over : s - over, (real)(wedge));
    turned = up ? turned : -(k * wedge + remainder_of(even ? over - t : -over - t, (real)(wedge)));
    return from_polar(weight * vnorm(x, y), turned);
}

// Rotates the point maxiter times and counts how often it lies in the shape at (dx, dy). A point with an odd count (for
// dx <= 0 an even one) moves to its image after sweetiter rotations.
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

// Mirrors x and y, or exchanges them, by region of the plane; later lines take precedence.
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

// The image of (x, y) under a random 2x2 matrix of the table, shifted by half a step to a random side. The table
// (renderer/flames/variations/figures.py) holds the number of matrices, then their 4 entries each; sym_ng13
// to 17 differ by the table alone.
DEVICE Pair symmetric_copy(GLOBAL const float *table, real x, real y, float radius, float stepx, float stepy,
                           Random *random) {
    real k = 1.0f + 4.0f * random_index(uniform(random), table[0]);
    real side = random_sign((real)(-0.5f), random);
    float shift = sqrt(0.5f * radius * radius);
    real a = x + shift, b = y + shift;
    return pair(table_at(table, k) * a + table_at(table, k + 1.0f) * b + side * stepx,
                table_at(table, k + 2.0f) * a + table_at(table, k + 3.0f) * b + side * stepy);
}

// One of the three mirror images of an equilateral triangle.
VARIATION(sym_ng13, radius = 0, stepx = 0, stepy = 0) {
    return scaled_pair(weight, symmetric_copy(table, x, y, radius, stepx, stepy, random));
}

// Its three rotations and three mirror images.
VARIATION(sym_ng14, radius = 0, stepx = 0, stepy = 0);

// As sym_ng14, turned by 30 degrees.
VARIATION(sym_ng15, radius = 0, stepx = 0, stepy = 0);

// One of the six rotations of a hexagon.
VARIATION(sym_ng16, radius = 0, stepx = 0, stepy = 0);

// One of its six rotations or six mirror images.
VARIATION(sym_ng17, radius = 0, stepx = 0, stepy = 0);

// The point or its mirror image along an axis, which may be rotated about the center.
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

// Mirrors x (v), y (h), z (z) and both x and y (p), each at random with its probability.
REPLACING_3D(combimirror, vmirror = 1, vmove = 0.05, hmirror = 0.5, hmove = 0.35, zmirror = 0, zmove = 0, pmirror = 0,
             pmovex = 0.05, pmovey = 0, vcolorshift = 0, hcolorshift = 0, zcolorshift = 0, pcolorshift = 0) {
    mask p = uniform(random) > 0.5f * pmirror, v = uniform(random) < 0.5f * vmirror;
    mask h = uniform(random) < 0.5f * hmirror, d = uniform(random) < 0.5f * zmirror;
    real a = p ? pmovex - weight * x : weight * x, b = p ? pmovey - weight * y : weight * y, c = weight * z;
    real shift = (p ? (real)(pcolorshift) : zero_real()) + (v ? (real)(vcolorshift) : zero_real());
    shift = shift + (h ? (real)(hcolorshift) : zero_real()) + (d ? (real)(zcolorshift) : zero_real());
    *color = fraction_of(*color + shift);
    return triple(v ? vmove - a : a, h ? hmove - b : b, d ? zmove - c : c);
}

// Origin: Fractorium

// mirror_x, mirror_y, mirror_z: a random sign of one coordinate.
REPLACING_3D(mirror_x) { return triple(random_sign(magnitude(x), random), y, z); }

REPLACING_3D(mirror_y) { return triple(x, random_sign(magnitude(y), random), z); }

REPLACING_3D(mirror_z) { return triple(x, y, random_sign(magnitude(z), random)); }

// Mirrors x where y is positive.
VARIATION(flipx) { return scaled(weight, y > 0.0f ? -x : x, y); }

// A rotation by an angle in degrees.
VARIATION(rotate, angle = 0) {
    Pair c = circle((real)(PI / 180.0f * angle));
    return scaled(weight, x * c.x - y * c.y, x * c.y + y * c.x);
}

// point_symmetry_wf without color.
VARIATION(point_symmetry, centre_x = 0.15, centre_y = 0.5, order = 3) {
    Pair c = circle(random_index(uniform(random), order) * (TWO_PI / order));
    real u = (x - centre_x) * weight, v = (y - centre_y) * weight;
    return pair(centre_x + u * c.x + v * c.y, centre_y + v * c.x - u * c.y);
}

// A translation of the ball model of hyperbolic space by c, at radius r and the angles a and b.
VARIATION_3D(poincare3D, r = 0, a = 0, b = 0) {
    Pair p = circle((real)(0.5f * PI * a)), q = circle((real)(0.5f * PI * b));
    Triple c = triple(-r * p.x * q.x, r * p.y * q.x, -r * q.y), u = triple(x, y, z);
    real c2 = dot3(c, c), r2 = dot3(u, u), cu = 2.0f * dot3(c, u), k = weight / (c2 * r2 - cu + 1.0f);
    real back = cu - r2 - 1.0f;
    return scaled3(k, x * (1.0f - c2) + c.x * back, y * (1.0f - c2) + c.y * back, z * (1.0f - c2) + c.z * back);
}

// Inversions in two circles that are orthogonal to the unit circle, with radii c1r, c2r and centers at the angles c1a,
// c2a.
VARIATION(poincare, c1r = 1, c1a = -1, c2r = 1, c2a = 1) {
    Pair c = from_polar(sqrt((real)(1.0f + c1r * c1r)), (real)(fmod(c1a, PI)));
    Pair d = from_polar(sqrt((real)(1.0f + c2r * c2r)), (real)(fmod(c2a, PI)));
    real u = x - c.x, v = y - c.y, k = c1r * c1r / (u * u + v * v);
    real p = c.x + k * u - d.x, q = c.y + k * v - d.y, l = c2r * c2r / (p * p + q * q);
    return pair(d.x + l * p, d.y + l * q);
}

// A translation of the Poincare disc that belongs to the tiling of p-gons, q at each vertex.
VARIATION(poincare2, p = 3, q = 7) {
    Pair a = circle((real)(TWO_PI / p));
    real d2 = 1.0f - (a.x - 1.0f) / (a.x + cosine_of((real)(TWO_PI / q)));
    real d = 1.0f / p + 1.0f / q < 0.5f ? (d2 > 0.0f ? 1.0f / sqrt(d2) : (real)(1.0f)) : zero_real();
    Pair c = pair(a.x * d, a.y * d), up = pair(x - c.x, y - c.y);
    Pair under = pair(1.0f - c.x * x - c.y * y, c.y * x - c.x * y);
    return scaled_pair(weight, complex_quotient(up, under));
}

// An inversion, a translation of the Poincare disc and one of p rotations: the tiling of p-gons, q at each vertex.
REPLACING_3D(hypershift2, p = 3 [2, 1e6], q = 7 [2, 1e6]) {
    real sq = sine_of((real)(PI / q)), sp = sine_of((real)(PI / p)), cp = cosine_of((real)(PI / p));
    real shift = sine_of((real)(0.5f * PI - PI / q - PI / p)) / sqrt(1.0f - sq * sq - sp * sp);
    real size = (cp / sq - 1.0f) / sqrt(cp * cp / (sq * sq) - 1.0f);
    real k = 1.0f / (size * (x * x + y * y)), u = k * x + shift, v = k * y;
    real l = weight * (1.0f - shift * shift) / (u * u + v * v);
    Pair c = circle((2.0f * random_index(uniform(random), p) + 1.0f) * (PI / p));
    real a = l * u + shift, b = l * v;
    return triple(c.x * a - c.y * b, c.y * a + c.x * b, z * l);
}

// (a q + b) / (c q + d) for the quaternion q = x + y i + z j.
VARIATION_3D(mobiq, at = 1, ax = 0, ay = 0, az = 0, bt = 0, bx = 0, by = 0, bz = 0, ct = 0, cx = 0, cy = 0, cz = 0,
             dt = 1, dx = 0, dy = 0, dz = 0) {
    real nt = at * x - ax * y - ay * z + bt, nx = at * y + ax * x - az * z + bx;
    real ny = at * z + ay * x + az * y + by, nz = az * x + ax * z - ay * y + bz;
    real t = ct * x - cx * y - cy * z + dt, u = ct * y + cx * x - cz * z + dx;
    real v = ct * z + cy * x + cz * y + dy, w = cz * x + cx * z - cy * y + dz;
    real k = weight / (t * t + u * u + v * v + w * w);
    return scaled3(k, nt * t + nx * u + ny * v + nz * w, nx * t - nt * u - ny * w + nz * v,
                   ny * t - nt * v - nz * u + nx * w);
}

// A copy, scaled by `scale`, at one of six or of three corners, for majp beyond 2 on two planes; 3side is the distance
// of the three corners. The origin also reads the sum of the variations before it; here that sum is taken for 0, as it
// is for the first variation of an xform.
VARIATION_3D(hexnix3D, majp = 1, scale = 0.25, zlift = 0, 3side = 0.667) {
    float plane = fabs(majp),
          smooth_part = fmin(fabs(weight) * 2.0f, 1.0f) * (fabs(weight) <= 0.5f && weight < 0.0f ? -1.0f : 1.0f);
    mask six = uniform(random) < 0.5f;
    real turn = uniform(random),
         corner = six ? floor_of(6.0f * turn) * (PI / 3.0f) : floor_of(3.0f * turn) * (TWO_PI / 3.0f) + 0.5f * PI;
    real up = random_sign((real)(-1.0f), random), side = six ? (real)(1.0f) : (real)(hexnix3D_3side);
    Pair c = circle(-corner);
    float boost = plane < 2.0f ? 0.0f : 0.5f * (plane - 2.0f);
    real lift = smooth_part * (z * scale * zlift + (plane <= 1.0f ? zero_real() : up * boost));
    if (plane > 1.0f && plane < 2.0f && majp < 0.0f) lift = zero_real();
    real k = (real)(smooth_part * scale);
    return triple(k * (x * c.x - y * c.y) + smooth_part * weight * side * c.x,
                  k * (y * c.x + x * c.y) + smooth_part * weight * side * c.y, lift);
}

// A copy at one of six or of three corners, for majp beyond 1 on two planes.
VARIATION_3D(hexaplay3D, majp = 1, scale = 0.25, zlift = 0.25) {
    mask six = uniform(random) < 0.5f;
    real turn = uniform(random),
         a = six ? floor_of(6.0f * turn) * (PI / 3.0f) : floor_of(3.0f * turn) * (TWO_PI / 3.0f);
    real up = random_sign((real)(-1.0f), random);
    Pair c = circle(a);
    float boost = fabs(majp) <= 1.0f ? 0.0f : 0.5f * (fabs(majp) - 1.0f);
    return triple(0.5f * scale * x + weight * c.x, 0.5f * scale * y + weight * c.y, 0.5f * zlift * z + up * boost);
}

// One of the eight corners of a cube of half side h, from three random bits.
DEVICE Triple random_corner(float h, Random *random) {
    real a = uniform(random), b = uniform(random), c = uniform(random), p = (real)(h), n = (real)(-h);
    return triple(a < 0.5f ? p : n, b < 0.5f ? p : n, c < 0.5f ? p : n);
}
// Half of xpand, or beyond 1 half of its root.
DEVICE real cube_fill(float xpand) { return 0.5f * (fabs(xpand) <= 1.0f ? xpand : sqrt(xpand)); }

// A copy at a random corner of a cube, deformed by `style`.
VARIATION_3D(cubic3D, xpand = 0.25, style = 0) {
    float s = fabs(style) <= 1.0f ? style
              : style > 1.0f      ? 1.0f + 0.25f * (style - 1.0f)
                                  : 0.25f * (style + 1.0f) - 1.0f;
    real a = 1.0f - s * (1.0f - cosine_of(angle_of(x, z))), b = 1.0f - s * (1.0f - sine_of(angle_of(y, z)));
    real c = 1.0f - s * (1.0f - 0.5f * (a + b) * (s > 1.0f ? s : 1.0f));
    real k = (fabs(weight) <= 0.5f ? 2.0f * weight : 1.0f) * cube_fill(xpand);
    Triple t = random_corner(0.5f * weight, random);
    return triple(k * x * a + t.x, k * y * b + t.y, k * z * c + t.z);
}

// A copy at a random corner of a cube; style 2 deforms it.
VARIATION_3D(cubicLattice_3D, xpand = 0.2, style = 1) {
    real a = cosine_of(angle_of(x, z)), b = sine_of(angle_of(y, z)), one = (real)(1.0f), k = cube_fill(xpand);
    Triple t = random_corner(weight, random), f = style == 2.0f ? triple(a, b, 0.5f * (a + b)) : triple(one, one, one);
    return triple(x * k * f.x + t.x, y * k * f.y + t.y, z * k * f.z + t.z);
}

// x and z alone.
VARIATION_3D(linearxz) { return triple(weight * x, zero_real(), weight * z); }
// y and z alone.
VARIATION_3D(linearyz) { return triple(zero_real(), weight * y, weight * z); }

// t + shift, reduced to a period of 2 half_period.
DEVICE real folded(real t, float half_period, float shift) {
    real f = remainder_of(t + half_period + shift, (real)(2.0f * half_period));
    return f >= 0.0f ? f - half_period : f + half_period;
}

// Reduces x to a period.
VARIATION(modulusx, x = 1, shift = 0) { return scaled(weight, folded(x, modulusx_x, shift), y); }

// Reduces y to a period.
VARIATION(modulusy, y = 1, shift = 0) { return scaled(weight, x, folded(y, modulusy_y, shift)); }
