// Grids of cells (squares, hexagons, triangles, strips), whose content is shifted, scaled, turned or mirrored.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// An item that ends in a semicolon has the body of the item before it.

// Origin: flam3

// Turns each cell of size (x, y) by half a turn about its center.
VARIATION(rectangles, x = 1, y = 1) {
    real u = rectangles_x == 0.0f ? x : (2.0f * floor_of(x / rectangles_x) + 1.0f) * rectangles_x - x;
    real v = rectangles_y == 0.0f ? y : (2.0f * floor_of(y / rectangles_y) + 1.0f) * rectangles_y - y;
    return scaled(weight, u, v);
}

// Halves each cell of size 1: one point in four stays around the center, the others move to the border.
VARIATION(boarders) {
    real cx = nearest(x), cy = nearest(y), u = x - cx, v = y - cy;
    mask inner = uniform(random) >= 0.75f, flat = magnitude(u) >= magnitude(v);
    real su = 0.25f * sign_nonnegative(u), sv = 0.25f * sign_nonnegative(v);
    real bx = flat ? su : sv * u / v, by = flat ? su * v / u : sv;
    return scaled(weight, 0.5f * u + cx + (inner ? (real)(0.0f) : bx), 0.5f * v + cy + (inner ? (real)(0.0f) : by));
}

// Origin: Apophysis

// boarders by another name.
VARIATION(dc_boarders);

// Origin: flam3

// Moves the cells apart to every second place; cells below 0 take the places between, and y is mirrored.
VARIATION(cell, size = 1) {
    real cx = floor_of(x / size), cy = floor_of(y / size);
    real gx = cx >= 0.0f ? 2.0f * cx : -(2.0f * cx + 1.0f), gy = cy >= 0.0f ? 2.0f * cy : -(2.0f * cy + 1.0f);
    return pair(weight * (x - cx * size + gx * size), -weight * (y - cy * size + gy * size));
}

// Origin: JWildfire

// Moves x by whole steps: a random logarithm times `spread`, to either side.
VARIATION_3D(tile_log, spread = 1) {
    real s = random_sign((real)(spread), random);
    real step = floor_of(s * logarithm_of(uniform(random)) + 0.5f);
    return scaled3(weight, x + step, y, z);
}

// Mirrors every second cell of an axis; a scale of 0 leaves the axis as it is.
VARIATION_3D(lazysensen, scale_x = 1, scale_y = 1, scale_z = 0) {
    real u = floor_of(x * scale_x), v = floor_of(y * scale_y), w = floor_of(z * scale_z);
    // odd cells are mirrored from 0 on, and below 0 the even ones
    mask mx = is_odd(u) == (u >= 0.0f);
    mask my = is_odd(v) == (v >= 0.0f);
    mask mz = is_odd(w) == (w >= 0.0f);
    real a = mx ? -x : x, b = my ? -y : y, c = mz ? -z : z;
    return scaled3(weight, scale_x != 0.0f ? a : x, scale_y != 0.0f ? b : y, scale_z != 0.0f ? c : z);
}

// Shrinks the cells of size (xdistance, ydistance) by the factors xwidth and ywidth, about their centers.
REPLACING(shredlin, xdistance = 1, xwidth = 0.5, ydistance = 1, ywidth = 0.5) {
    real u = x / xdistance, v = y / ydistance, iu = truncation(u), iv = truncation(v);
    real px = x < 0.0f ? (real)(-0.5f) : (real)(0.5f), py = y < 0.0f ? (real)(-0.5f) : (real)(0.5f);
    return pair(weight * xdistance * ((u - iu) * xwidth + iu + px * (1.0f - xwidth)),
                weight * ydistance * ((v - iv) * ywidth + iv + py * (1.0f - ywidth)));
}

// Narrows n wedges to the fraction `width` of their angles.
VARIATION(shredrad, n = 4, width = 0.5) {
    float wedge = TWO_PI / n;
    real a = (angle_of(y, x) + 3.0f * PI + 0.5f * wedge) / wedge, row = truncation(a);
    return from_polar(weight * vnorm(x, y), ((a - row) * width + row) * wedge - PI - 0.5f * wedge * width);
}

// Moves x back by `width`, more often the farther it lies in its cell: neighboring cells blend.
VARIATION(tile_hlp, width = 1) {
    real u = x / width, c = cosine_of(PI * (u > 0.0f ? u - truncation(u) : u + truncation(u)));
    real step = x > 0.0f ? (real)(-width) : (real)(width);
    return scaled(weight, x + (c < uniform(random) * 2.0f - 1.0f ? step : (real)(0.0f)), y);
}

// Moves the black and the white cells of a checkerboard in opposite directions, with noise up to `rnd`.
VARIATION(checks, x = 3, y = 3, size = 1, rnd = 0.5) {
    float k = 1.0f / (size + 1e-9f);
    mask even = !is_odd(nearest(x * k) + nearest(y * k));
    real u = rnd * uniform(random), v = rnd * uniform(random);
    return scaled(weight, x + (even ? u - checks_x : (real)(checks_x)), y + (even ? (real)(-checks_y) : checks_y + v));
}

// Moves the strips of height 2 onto the strip from y = -1 to 1, each dx further along x than the strip before.
VARIATION(stripfit, dx = 1) {
    real up = remainder_of(y + 1.0f, (real)(2.0f)), down = remainder_of(1.0f - y, (real)(2.0f));
    mask above = y > 1.0f, below = y < -1.0f;
    real step = above ? y - up + 1.0f : below ? y + down - 1.0f : zero_real();
    return pair(weight * x - 0.5f * dx * step, weight * (above ? up - 1.0f : below ? 1.0f - down : y));
}

// Moves each coordinate by a random whole logarithm times its spread, to either side.
VARIATION_3D(log_tile2, spreadx = 2, spready = 2, spreadz = 0) {
    real u = random_sign((real)(spreadx), random), v = random_sign((real)(spready), random);
    real w = random_sign((real)(spreadz), random), a = uniform(random), b = uniform(random), c = uniform(random);
    return scaled3(weight, x + u * floor_of(logarithm_of(a) + 0.5f), y + v * floor_of(logarithm_of(b) + 0.5f),
                   z + w * floor_of(logarithm_of(c) + 0.5f));
}

// Whether the side of the square around (0, 0) that goes through the cell (rx, ry) runs along x.
DEVICE mask runs_along_x(real rx, real ry) {
    return ry <= 0.0f ? (rx > 0.0f ? -ry >= rx : ry <= rx) : (rx > 0.0f ? ry >= rx : ry > -rx);
}

// (x, y) moved along the side of the square around (0, 0) that goes through the cell (rx, ry), counterclockwise: by a
// on the lower side, b on the right, c on the upper and d on the left.
DEVICE Pair grid_step(real x, real y, real rx, real ry, float a, float b, float c, float d) {
    mask low = ry <= 0.0f, right = rx > 0.0f, along = runs_along_x(rx, ry);
    real u = low ? (real)(a) : (real)(-c), v = right ? (real)(b) : (real)(-d);
    return pair(along ? x + u : x, along ? y : y + v);
}

// Moves the point by 1 along the square around the origin that goes through its cell.
VARIATION(gridout) { return scaled_pair(weight, grid_step(x, y, nearest(x), nearest(y), 1.0f, 1.0f, 1.0f, 1.0f)); }

// gridout with the steps a and b, in a grid that is scaled by c and d.
VARIATION(gridout2, a = 1, b = 1, c = 1, d = 1) {
    return scaled_pair(weight, grid_step(x, y, nearest(x) * c, nearest(y) * d, a, b, a, b));
}

// The place of the point in its hexagon, as if all hexagons lay at the origin.
VARIATION(hex_modulus, size = 1) {
    float k = 0.86602540378443865f / size;
    real u = x * k, v = y * k, a = 0.57735026918962576f * u - v / 3.0f, c = 2.0f * v / 3.0f, b = -a - c;
    real ra = floor_of(a + 0.5f), rb = floor_of(b + 0.5f), rc = floor_of(c + 0.5f);
    real da = magnitude(ra - a), db = magnitude(rb - b), dc = magnitude(rc - c);
    mask first = da > db && da > dc, second = !first && db > dc, third = !first && db <= dc;
    real qa = first ? -rb - rc : ra, qc = third ? -ra - rb : rc;
    real w = weight / 0.86602540378443865f;
    return scaled(w, u - (1.7320508075688772f * qa + 0.86602540378443865f * qc), v - 1.5f * qc);
}

// Moves the point by `space` to a random side of x, or of y if `vertical`; `reversal` 1 mirrors it first.
REPLACING(tile_reverse, space = 1, reversal = 1, vertical = 0) {
    float s = reversal == 1.0f ? -1.0f : 1.0f;
    real step = random_sign((real)(space), random);
    if (vertical == 1.0f) return pair(weight * x, weight * s * y + step);
    return pair(weight * s * x + step, weight * y);
}

// The center of the hexagon (i, j) of a grid.
DEVICE Pair hexagon(real i, real j, float size) {
    return pair(1.5f * (i - j) * size, 0.8660254037844386f * (i + j) * size);
}

// Closeness of u to the border of the hexagon (i, j): 0 at its center, 1 on the border.
DEVICE real hexagon_ratio(real i, real j, float size, Pair u) {
    Pair q = hexagon(i, j, size);
    real l = cell_ratio(hexagon(i, j + 1.0f, size), q, u);
    l = greatest(l, cell_ratio(hexagon(i + 1.0f, j + 1.0f, size), q, u));
    l = greatest(l, cell_ratio(hexagon(i + 1.0f, j, size), q, u));
    l = greatest(l, cell_ratio(hexagon(i, j - 1.0f, size), q, u));
    l = greatest(l, cell_ratio(hexagon(i - 1.0f, j - 1.0f, size), q, u));
    return greatest(l, cell_ratio(hexagon(i - 1.0f, j, size), q, u));
}

// (x, y) in its hexagon, turned and scaled; in `ratio` how near it is to the border.
DEVICE Pair in_hexagon(float weight, real x, real y, float cellsize, float power, float rotate, float scale,
                       real *ratio) {
    *ratio = zero_real();
    if (cellsize == 0.0f) return scaled(zero_real(), x, y);
    real i = floor_of((x + 1.7320508075688773f * y) / (3.0f * cellsize));
    real j = floor_of((1.7320508075688773f * y - x) / (3.0f * cellsize)), ni = i, nj = j, least_d = (real)(1e30f);
    for (int k = 0; k < 9; k++) {
        real a = i + (float)(k / 3 - 1), b = j + (float)(k % 3 - 1);
        Pair p = hexagon(a, b, cellsize);
        real d = square(p.x - x) + square(p.y - y);
        mask nearer = d < least_d;
        least_d = nearer ? d : least_d;
        ni = nearer ? a : ni;
        nj = nearer ? b : nj;
    }
    Pair q = hexagon(ni, nj, cellsize), c = circle((real)(rotate * TWO_PI));
    real l1 = hexagon_ratio(ni, nj, cellsize, pair(x, y)), target = power_of(l1, (real)(power)) * scale;
    real vx = (x - q.x) * c.x + (y - q.y) * c.y, vy = (y - q.y) * c.x - (x - q.x) * c.y;
    real l2 = hexagon_ratio(ni, nj, cellsize, pair(vx + q.x, vy + q.y)), l = greatest(l1, l2);
    // l1, l2: the closeness to the border before and after the turn; from 0.5 to 0.8 their scales are blended
    real mixed_r = (target / l1 * (0.8f - l) + target / l2 * (l - 0.5f)) / 0.3f;
    real r = l < 0.5f ? target / l1 : l > 0.8f ? target / l2 : mixed_r;
    *ratio = l;
    return scaled(weight, vx * r + q.x, vy * r + q.y);
}

// in_hexagon() without a color.
VARIATION(hexes, cellsize = 1, power = 1, rotate = 0.166, scale = 1) {
    real ratio;
    return in_hexagon(weight, x, y, cellsize, power, rotate, scale, &ratio);
}

// in_hexagon(), colored by the closeness to the border.
VARIATION(dc_hexes_wf, cellsize = 1, power = 1, rotate = 0.166, scale = 1, color_scale = 0.5, color_offset = 0) {
    real ratio;
    Pair p = in_hexagon(weight, x, y, cellsize, power, rotate, scale, &ratio);
    *color = cellsize == 0.0f ? *color : clamped(ratio * color_scale + color_offset, zero_real(), (real)(1.0f));
    return p;
}

// boarders with other shares: c is the size of a cell, `left` the way to the border, `right` its share of the points.
VARIATION(boarders2, c = 0.4, left = 0.65, right = 0.35) {
    float k = fmax(fabs(c), 1e-8f), l = k * fmax(fabs(left), 1e-8f), limit = k + k * fmax(fabs(right), 1e-8f);
    real rx = nearest(x), ry = nearest(y), u = x - rx, v = y - ry;
    mask inside = uniform(random) >= limit, wide = magnitude(u) >= magnitude(v);
    real sx = u >= 0.0f ? (real)(l) : (real)(-l), sy = v >= 0.0f ? (real)(l) : (real)(-l);
    real a = wide ? sx : u / v * sy, b = wide ? sx * v / u : sy;
    return scaled(weight, u * k + rx + (inside ? zero_real() : a), v * k + ry + (inside ? zero_real() : b));
}

// Scales each coordinate by sines of cell numbers; with `blur` a random sine is added instead.
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

// A random depth in the border of crob, for a uniform random number w: u^p of the root u of
// u - c u^(p + 1) / (p + 1) = w (1 - c / (p + 1)), by Newton's method. Deeper points are rarer, as the sides shorten.
DEVICE real depth_of_border(real w, float c, float p) {
    real u = w, wanted = w * (1.0f - c / (p + 1.0f));
    for (int k = 0; k < 8; k++) {
        real power = power_of(u, (real)(p));
        real slope = greatest(1.0f - c * power, (real)(1e-3f));
        u = clamped(u - (u - c * u * power / (p + 1.0f) - wanted) / slope, (real)(1e-7f), (real)(1.0f));
    }
    return power_of(u, (real)(p));
}

// Moves what lies outside of a rectangle into a band along the rectangle's sides, or to the origin without `blur`.
VARIATION(crob, top = -1, bottom = 1, left = -1, right = 1, blur = 1, ratioBlur = 0.05, directBlur = 2) {
    float t = fmin(top, bottom), b = fmax(top, bottom), l = fmin(left, right), r = fmax(left, right);
    if (t == b) {
        t = -1.0f;
        b = 1.0f;
    }
    if (l == r) {
        l = -1.0f;
        r = 1.0f;
    }
    float hx = 0.5f * (r - l), hy = 0.5f * (b - t), band = blur != 0.0f ? fmin(hx, hy) * ratioBlur : 0.0f;
    float share = hy / (hx + hy), power = fmax(directBlur, 0.0f);
    mask outside = x < l + band || x > r - band || y < t + band || y > b - band;
    real pick = uniform(random), along = uniform(random), deep = uniform(random), side = uniform(random);
    if (blur == 0.0f) return pair(outside ? zero_real() : x, outside ? zero_real() : y);
    mask upright = pick < share, other = side < 0.5f;
    real d = band * (upright ? depth_of_border(deep, band / hy, power) : depth_of_border(deep, band / hx, power));
    real u = upright ? r - d : l + d + along * (2.0f * hx - 2.0f * d);
    real v = upright ? t + d + along * (2.0f * hy - 2.0f * d) : t + d;
    u = upright && other ? l + r - u : u;
    v = !upright && other ? t + b - v : v;
    return pair(outside ? u : x, outside ? v : y);
}

// Triangles with angles of about a and b tile the plane; al, be and ga are the distances from the sides of the point's
// triangle. The point moves toward the middle or the corners of a sixth of the triangle, then a root of order `power`
// is taken.
VARIATION(xtrb, power = 2, radius = 1, width = 0.5, dist = 1, a = 1, b = 1) {
    Pair half_b = circle((real)(0.5f * (0.047f + a))), half_c = circle((real)(0.5f * (0.047f + b)));
    Pair half_a = circle((real)(0.5f * (PI - 0.094f - a - b))), turn = circle((real)(0.047f + b));
    real ta = half_a.y / half_a.x, tb = half_b.y / half_b.x, tc = half_c.y / half_c.x;
    real sa = radius * (tc + tb), sb = radius * (tc + ta), sc = radius * (tb + ta), area = radius * (sa + sb + sc);
    real wide_a = area / sa, wide_b = area / sb, wide_c = area / sc;
    real al = y + radius, be = x * turn.y - y * turn.x + radius;
    real m = floor_of(al / wide_a), n = floor_of(be / wide_b);
    al = al - m * wide_a;
    be = be - n * wide_b;
    real ga = wide_c - sa / sc * al - sb / sc * be;
    mask flipped = ga <= 0.0f;
    al = flipped ? wide_a - al : al;
    be = flipped ? wide_b - be : be;
    ga = magnitude(ga);
    mask be_low = be < al, ga_low = ga < least(al, be), ga_mid = !ga_low && ga < greatest(al, be);
    real low = least(al, be), high = greatest(al, be);
    real small = ga_low ? ga : low, mid = ga_low ? low : ga_mid ? ga : high, ratio = small / mid;
    real sixth = (ga_low ? wide_c : be_low ? wide_b : wide_a) * (1.0f / 6.0f);
    real other = area / (ga_low ? sa + sb : be_low ? sa + sc : sb + sc) * (1.0f / 6.0f);
    mask inner = uniform(random) >= 1.0f - width * width;
    small = inner ? width * small : (1.0f - width) * small + 2.0f * width * sixth * ratio;
    mid = inner ? width * mid : (1.0f - width) * mid + 2.0f * width * other * (3.0f - ratio);
    real lower = ga_low ? mid : small, third = ga_low ? small : mid;
    real from_a = wide_a - sb / sa * lower - sc / sa * third, from_b = wide_b - sa / sb * lower - sc / sb * third;
    real upper = ga_low || ga_mid ? (be_low ? from_a : from_b) : mid;
    al = be_low ? upper : lower;
    be = be_low ? lower : upper;
    al = (flipped ? wide_a - al : al) + m * wide_a - radius;
    be = (flipped ? wide_b - be : be) + n * wide_b - radius;
    real u = (be + al * turn.x) / turn.y;
    real angle = (angle_of(al, u) + TWO_PI * random_index(uniform(random), fabs(power))) / power;
    return from_polar(weight * weight * power_of(u * u + al * al, (real)(0.5f * dist / power)), angle);
}

// A strip: u is moved by whole steps of a random logarithm times `width`, v is folded into -period to period.
DEVICE Pair strip(real u, real v, float width, float tilesize, float mod1, float mod2, float height, Random *random) {
    real side = random_sign((real)(width), random), step = nearest(side * logarithm_of(uniform(random)));
    real period = (real)(mod1 * mod2), over = remainder_of(v + mod1, period) - mod1,
         under = mod1 - remainder_of(mod1 - v, period);
    return pair(tilesize * (u + step), height * (v > mod1 ? over : v < -mod1 ? under : v));
}

// A horizontal or a vertical strip, at random.
VARIATION(intersection, xwidth = 5, xtilesize = 0.5, xmod1 = 0.3, xmod2 = 1, xheight = 0.5, yheight = 5,
          ytilesize = 0.5, ymod1 = 0.3, ymod2 = 1, ywidth = 0.5) {
    mask flat = uniform(random) < 0.5f;
    Pair a = strip(x, y, xwidth, xtilesize, xmod1, xmod2, xheight, random);
    Pair b = strip(y, x, yheight, ytilesize, ymod1, ymod2, ywidth, random);
    return choose2(flat, a, swapped(b));
}

// One of two horizontal strips, which are moved apart along y.
VARIATION(parallel, x1width = 5, x1tilesize = 0.5, x1mod1 = 0.3, x1mod2 = 1, x1height = 0.5, x1move = 1, x2width = 5,
          x2tilesize = 0.5, x2mod1 = 0.3, x2mod2 = 1, x2height = 0.5, x2move = 1) {
    mask first = uniform(random) < 0.5f;
    Pair a = strip(x, y, x1width, x1tilesize, x1mod1, x1mod2, x1height, random);
    Pair b = strip(x, y, x2width, x2tilesize, x2mod1, x2mod2, x2height, random);
    return choose2(first, pair(a.x, a.y + weight * x1move), pair(b.x, b.y - weight * x2move));
}

// Origin: Fractorium

// Turns the disc in each cell by the logarithm of the squared radius.
VARIATION(gnarly, cellsize = 1, twist = 1) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    real cx = (floor_of(x / cellsize) + 0.5f) * cellsize, cy = (floor_of(y / cellsize) + 0.5f) * cellsize;
    real u = x - cx, v = y - cy, r = (u * u + v * v) / (0.25f * cellsize * cellsize);
    Pair c = circle(twist * logarithm_of(r));
    mask inside = r <= 1.0f;
    return scaled(weight, inside ? cx + c.x * u + c.y * v : x, inside ? cy - c.y * u + c.x * v : y);
}

// Origin: JWildfire

DEVICE real bent_rows(real x) { return x + 0.1f * sine_of(1.6f * x); }

// The x between low and high at which bent_rows(x) is y, by false position.
DEVICE real row_border(real low, real high, real y) {
    real at_low = bent_rows(low), at_high = bent_rows(high), x = low;
    for (int k = 0; k < 20; k++) {
        x = low + (high - low) / (at_high - at_low) * (y - at_low);
        real at = bent_rows(x);
        mask above = at > y;
        high = above ? x : high;
        at_high = above ? at : at_high;
        low = above ? low : x;
        at_low = above ? at_low : at;
    }
    return x;
}

// Keeps the light tiles of a wall whose rows vary in height and are shifted against each other.
REPLACING(cut_tileillusion, time = 0, mode = 1 [0, 1], zoom = 15 [0.1, 50], invert = 0 [0, 1]) {
    real u = uniform(random) - 0.5f, v = uniform(random) - 0.5f;
    u = mode < 1.0f ? x : u;
    v = mode < 1.0f ? y : v;
    real b = v * zoom, row = bent_rows(b), n = floor_of(row);
    real a = u * zoom / (row_border(b, b + 3.0f, n + 1.0f) - row_border(b - 3.0f, b, n));
    real tile = modulo(floor_of(a + time * sign_of(modulo(n, 2.0f) - 0.5f)) + n, 2.0f);
    mask dark = row - n <= 0.05f || tile == 0.0f, cut = invert < 1.0f ? dark : !dark;
    *hidden = cut;
    return scaled(weight, cut ? zero_real() : u, cut ? zero_real() : v);
}

// Origin: Fractorium

// (sin x, sin y) / r^2, moved as by checks.
VARIATION(sschecks, x = 0.5, y = 0.5, size = 0.5, rnd = 0) {
    real r = weight / (x * x + y * y), u = rnd * uniform(random);
    mask odd = is_odd(nearest(x / size) + nearest(y / size));
    return scaled(weight, sine_of(x) * r + (odd ? u - sschecks_x : (real)(sschecks_x)),
                  sine_of(y) * r + (odd ? (real)(-sschecks_y) : sschecks_y + u));
}

// boarders with other borders, plus a bubble and the point times (px, py).
VARIATION(splitBrdr, x = 0.25, y = 0.25, px = 0, py = 0) {
    real b = weight / (0.25f * (x * x + y * y) + 1.0f), i = nearest(x), j = nearest(y), u = x - i, v = y - j;
    mask plain = uniform(random) >= 0.75f, wide = magnitude(u) >= magnitude(v), right = u >= 0.0f, up = v >= 0.0f;
    real p = wide ? (right ? (real)(splitBrdr_x) : (real)(-splitBrdr_y))
             : up ? u / v * splitBrdr_y
                  : -u / v * splitBrdr_x;
    real q = wide ? (right ? splitBrdr_y * v / u : -splitBrdr_y * v / u)
             : up ? (real)(splitBrdr_y)
                  : (real)(-splitBrdr_y);
    real s = weight * (0.5f * u + i + (plain ? zero_real() : p)),
         t = weight * (0.5f * v + j + (plain ? zero_real() : q));
    return pair(x * b + s + x * px, y * b + t + y * py);
}

// Origin: Apophysis

// gridout, which adds to the palette coordinate 0.25 for a step along x, 0.75 along y.
VARIATION(dc_gridout) {
    Pair p = grid_step(x, y, nearest(x), nearest(y), 1.0f, 1.0f, 1.0f, 1.0f);
    *color = fraction_of(*color + (p.y == y ? (real)(0.25f) : (real)(0.75f)));
    return scaled_pair(weight, p);
}

// Origin: JWildfire

// One of the numbers of the eight sectors of a grid: a and b right below, c and d left below, e to h above.
DEVICE real of_sector(mask along, mask right, mask low, float a, float b, float c, float d, float e, float f, float g,
                      float h) {
    real below = right ? (along ? (real)(a) : (real)(b)) : along ? (real)(c) : (real)(d);
    real above = right ? (along ? (real)(e) : (real)(f)) : along ? (real)(g) : (real)(h);
    return low ? below : above;
}

// Moves the point by the numbers of its sector of a grid: xa, ya, za to xh, yh, zh.
VARIATION_3D(gridout3D, xx = 1, yy = 1, xa = 1, xb = 0, xc = 1, xd = 0, xe = 1, xf = 0, xg = 1, xh = 0, ya = 0, yb = 1,
             yc = 0, yd = 1, ye = 0, yf = 1, yg = 0, yh = 1, za = 0, zb = 0, zc = 0, zd = 0, ze = 1, zf = 1, zg = 1,
             zh = 1) {
    real rx = nearest(x) * xx, ry = nearest(y) * yy;
    mask low = ry <= 0.0f, right = rx > 0.0f, along = runs_along_x(rx, ry);
    real u = of_sector(along, right, low, xa, xb, xc, xd, -xe, xf, -xg, xh);
    real v = of_sector(along, right, low, ya, yb, yc, -yd, ye, yf, yg, -yh);
    real w = of_sector(along, right, low, za, zb, zc, zd, ze, zf, zg, zh);
    return scaled3(weight, x + u, y + v, low ? z + w : z * w);
}
