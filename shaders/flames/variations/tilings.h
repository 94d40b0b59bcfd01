// Grids of cells (squares, hexagons, triangles, strips), whose content is shifted, scaled, turned or mirrored.
// Grammar, given names and shared functions: shaders/flames/variation.h.

// Origin: flam3

VARIATION(rectangles, x = 1, y = 1) {
    real u = rectangles_x == 0.0f ? x : (2.0f * floor_of(x / rectangles_x) + 1.0f) * rectangles_x - x;
    real v = rectangles_y == 0.0f ? y : (2.0f * floor_of(y / rectangles_y) + 1.0f) * rectangles_y - y;
    return scaled(weight, u, v);
}

VARIATION(boarders) {
    real cx = nearest(x), cy = nearest(y), u = x - cx, v = y - cy;
    mask inner = uniform(random) >= 0.75f, flat = magnitude(u) >= magnitude(v);
    real su = 0.25f * sign_nonnegative(u), sv = 0.25f * sign_nonnegative(v);
    real bx = flat ? su : sv * u / v, by = flat ? su * v / u : sv;
    return scaled(weight, 0.5f * u + cx + (inner ? (real)(0.0f) : bx), 0.5f * v + cy + (inner ? (real)(0.0f) : by));
}

// Origin: Apophysis

VARIATION(dc_boarders);

// Origin: flam3

VARIATION(cell, size = 1) {
    real cx = floor_of(x / size), cy = floor_of(y / size);
    real gx = cx >= 0.0f ? 2.0f * cx : -(2.0f * cx + 1.0f), gy = cy >= 0.0f ? 2.0f * cy : -(2.0f * cy + 1.0f);
    return pair(weight * (x - cx * size + gx * size), -weight * (y - cy * size + gy * size));
}

// Origin: JWildfire

VARIATION_3D(tile_log, spread = 1) {
    real s = uniform(random) < 0.5f ? (real)(spread) : (real)(-spread);
    real step = floor_of(s * logarithm_of(uniform(random)) + 0.5f);
    return scaled3(weight, x + step, y, z);
}

VARIATION_3D(lazysensen, scale_x = 1, scale_y = 1, scale_z = 0) {
    real u = floor_of(x * scale_x), v = floor_of(y * scale_y), w = floor_of(z * scale_z);
    // odd cells are mirrored from 0 on, and below 0 the even ones
    mask mx = (u - 2.0f * floor_of(0.5f * u) != 0.0f) == (u >= 0.0f);
    mask my = (v - 2.0f * floor_of(0.5f * v) != 0.0f) == (v >= 0.0f);
    mask mz = (w - 2.0f * floor_of(0.5f * w) != 0.0f) == (w >= 0.0f);
    real a = mx ? -x : x, b = my ? -y : y, c = mz ? -z : z;
    return scaled3(weight, scale_x != 0.0f ? a : x, scale_y != 0.0f ? b : y, scale_z != 0.0f ? c : z);
}

REPLACING(shredlin, xdistance = 1, xwidth = 0.5, ydistance = 1, ywidth = 0.5) {
    real u = x / xdistance, v = y / ydistance, iu = truncation(u), iv = truncation(v);
    real px = x < 0.0f ? (real)(-0.5f) : (real)(0.5f), py = y < 0.0f ? (real)(-0.5f) : (real)(0.5f);
    return pair(weight * xdistance * ((u - iu) * xwidth + iu + px * (1.0f - xwidth)),
                weight * ydistance * ((v - iv) * ywidth + iv + py * (1.0f - ywidth)));
}

VARIATION(shredrad, n = 4, width = 0.5) {
    float wedge = TWO_PI / n;
    real a = (angle_of(y, x) + 3.0f * PI + 0.5f * wedge) / wedge, row = truncation(a);
    return from_polar(weight * vnorm(x, y), ((a - row) * width + row) * wedge - PI - 0.5f * wedge * width);
}

VARIATION(tile_hlp, width = 1) {
    real u = x / width, c = cosine_of(PI * (u > 0.0f ? u - truncation(u) : u + truncation(u)));
    real step = x > 0.0f ? (real)(-width) : (real)(width);
    return scaled(weight, x + (c < uniform(random) * 2.0f - 1.0f ? step : (real)(0.0f)), y);
}

VARIATION(checks, x = 3, y = 3, size = 1, rnd = 0.5) {
    float k = 1.0f / (size + 1e-9f);
    real sum = nearest(x * k) + nearest(y * k), half_sum = 0.5f * sum;
    mask even = half_sum == truncation(half_sum);
    real u = rnd * uniform(random), v = rnd * uniform(random);
    return scaled(weight, x + (even ? u - checks_x : (real)(checks_x)), y + (even ? (real)(-checks_y) : checks_y + v));
}

VARIATION(stripfit, dx = 1) {
    real up = remainder_of(y + 1.0f, (real)(2.0f)), down = remainder_of(1.0f - y, (real)(2.0f));
    mask above = y > 1.0f, below = y < -1.0f;
    real step = above ? y - up + 1.0f : below ? y + down - 1.0f : zero_real();
    return pair(weight * x - 0.5f * dx * step, weight * (above ? up - 1.0f : below ? 1.0f - down : y));
}

VARIATION_3D(log_tile2, spreadx = 2, spready = 2, spreadz = 0) {
    real u = uniform(random) < 0.5f ? (real)(spreadx) : (real)(-spreadx);
    real v = uniform(random) < 0.5f ? (real)(spready) : (real)(-spready);
    real w = uniform(random) < 0.5f ? (real)(spreadz) : (real)(-spreadz);
    return scaled3(weight, x + u * floor_of(logarithm_of(uniform(random)) + 0.5f),
                   y + v * floor_of(logarithm_of(uniform(random)) + 0.5f),
                   z + w * floor_of(logarithm_of(uniform(random)) + 0.5f));
}

// (x, y) moved along the side of the square around (0, 0) that goes through the cell (rx, ry), by a, b, c or d.
DEVICE Pair grid_step(real x, real y, real rx, real ry, float a, float b, float c, float d) {
    mask low = ry <= 0.0f, right = rx > 0.0f;
    mask along = low ? (right ? -ry >= rx : ry <= rx) : (right ? ry >= rx : ry > -rx);
    real u = low ? (real)(a) : (real)(-c), v = right ? (real)(b) : (real)(-d);
    return pair(along ? x + u : x, along ? y : y + v);
}

VARIATION(gridout) { return scaled_pair(weight, grid_step(x, y, nearest(x), nearest(y), 1.0f, 1.0f, 1.0f, 1.0f)); }

VARIATION(gridout2, a = 1, b = 1, c = 1, d = 1) {
    return scaled_pair(weight, grid_step(x, y, nearest(x) * c, nearest(y) * d, a, b, a, b));
}

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

REPLACING(tile_reverse, space = 1, reversal = 1, vertical = 0) {
    float s = reversal == 1.0f ? -1.0f : 1.0f;
    real step = uniform(random) < 0.5f ? (real)(space) : (real)(-space);
    if (vertical == 1.0f) return pair(weight * x, weight * s * y + step);
    return pair(weight * s * x + step, weight * y);
}

// The center of the hexagon (i, j) of a grid.
DEVICE Pair hexagon(real i, real j, float size) {
    return pair(1.5f * (i - j) * size, 0.8660254037844386f * (i + j) * size);
}

// How near u is to the border of the hexagon (i, j): 0 at its center, 1 on the border.
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
    real mixed_r = (target / l1 * (0.8f - l) + target / l2 * (l - 0.5f)) / 0.3f;
    real r = l < 0.5f ? target / l1 : l > 0.8f ? target / l2 : mixed_r;
    *ratio = l;
    return scaled(weight, vx * r + q.x, vy * r + q.y);
}

VARIATION(hexes, cellsize = 1, power = 1, rotate = 0.166, scale = 1) {
    real ratio;
    return in_hexagon(weight, x, y, cellsize, power, rotate, scale, &ratio);
}

VARIATION(dc_hexes_wf, cellsize = 1, power = 1, rotate = 0.166, scale = 1, color_scale = 0.5, color_offset = 0) {
    real ratio;
    Pair p = in_hexagon(weight, x, y, cellsize, power, rotate, scale, &ratio);
    *color = cellsize == 0.0f ? *color : clamped(ratio * color_scale + color_offset, zero_real(), (real)(1.0f));
    return p;
}

// The middle of a coordinate's cell.
DEVICE real cell_middle(real x, float cellsize) { return (floor_of(x / cellsize) + 0.5f) * cellsize; }

// (x, y) in the bubble of this radius around (cx, cy), which magnifies by g and twists; unchanged outside of it.
DEVICE Pair in_bubble(float weight, real x, real y, real cx, real cy, real radius, float g, float inner, float outer) {
    real u = x - cx, v = y - cy, b = g * radius, most = b > 2.0f ? (real)(1.0f) : b / (b * b * 0.25f + 1.0f);
    real k = g * (radius / most) / ((u * u + v * v) * (0.25f * g * g) + 1.0f), p = u * k, q = v * k;
    real t = (p * p + q * q) / (radius * radius);
    Pair c = circle(inner * (1.0f - t) + outer * t);
    mask outside = u * u + v * v > radius * radius;
    return scaled(weight, outside ? x : cx + c.x * p + c.y * q, outside ? y : cy - c.y * p + c.x * q);
}

VARIATION(bwraps, cellsize = 1, space = 0, gain = 2, inner_twist = 0, outer_twist = 0) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    return in_bubble(weight, x, y, cell_middle(x, cellsize), cell_middle(y, cellsize),
                     (real)(0.5f * cellsize / (1.0f + space * space)), gain * gain + 1e-6f, inner_twist, outer_twist);
}

VARIATION(bwraps7, cellsize = 1, space = 0, gain = 2, inner_twist = 0, outer_twist = 0);

VARIATION(boarders2, c = 0.4, left = 0.65, right = 0.35) {
    float k = fmax(fabs(c), 1e-8f), l = k * fmax(fabs(left), 1e-8f), limit = k + k * fmax(fabs(right), 1e-8f);
    real rx = nearest(x), ry = nearest(y), u = x - rx, v = y - ry;
    mask inside = uniform(random) >= limit, wide = magnitude(u) >= magnitude(v);
    real sx = u >= 0.0f ? (real)(l) : (real)(-l), sy = v >= 0.0f ? (real)(l) : (real)(-l);
    real a = wide ? sx : u / v * sy, b = wide ? sx * v / u : sy;
    return scaled(weight, u * k + rx + (inside ? zero_real() : a), v * k + ry + (inside ? zero_real() : b));
}

VARIATION(scrambly, l = 3, seed = 51, byrows = 0, cellsize = 0.1) {
    float count = table[0], cell = cellsize / count, back = 0.5f * cellsize;
    real u = (x + back) / cell, v = (y + back) / cell, i = floor_of(u), j = floor_of(v);
    mask outside = i < 0.0f || i >= count || j < 0.0f || j >= count;
    real at = outside ? zero_real() : i + count * j, k = table_at(table, 1.0f + at), row = floor_of((k + 0.5f) / count);
    real a = (u - i + (k - count * row)) * cell - back, b = (v - j + row) * cell - back;
    return scaled(weight, outside ? x : a, outside ? y : b);
}

// Noise from 0 to 1 of an integer.
DEVICE real hashed_cell(whole n) {
    bits h = bits_of_whole(n);
    h = (h << 13) ^ h;
    h = (h * (h * h * 15731u + 789221u) + 1376312589u) & 0x7fffffffu;
    return real_of(whole_of_bits(h)) * 4.656612875245797e-10f;
}

DEVICE real lattice_noise(real i, real j) {
    return hashed_cell(whole_of_bits(bits_of_whole(truncated(i)) + bits_of_whole(truncated(j)) * 57u));
}

VARIATION(circleRand, Sc = 1, Dens = 0.5, X = 10, Y = 10, Seed = 0) {
    real seed1 = uniform(random), seed2 = uniform(random), u = x, v = y, a = x, b = y;
    Random many = stream_of(seed1, seed2);
    mask done = x != x;
    for (int k = 0; k < 100; k++) {
        real p = X * (1.0f - 2.0f * uniform(&many)), q = Y * (1.0f - 2.0f * uniform(&many));
        real i = floor_of(0.5f * p / Sc), j = floor_of(0.5f * q / Sc);
        a = p - (2.0f * i + 1.0f) * Sc;
        b = q - (2.0f * j + 1.0f) * Sc;
        mask good = lattice_noise(i + Seed, j) <= Dens &&
                    vnorm(a, b) <= (0.3f + 0.7f * lattice_noise(i + 10.0f, j + 3.0f)) * Sc;
        u = done ? u : p;
        v = done ? v : q;
        done = done || good;
        if (!ANY_LANE(!done)) break;
    }
    return scaled(weight, u, v);
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
    real side = uniform(random) < 0.5f ? (real)(width) : (real)(-width),
         step = nearest(side * logarithm_of(uniform(random)));
    real period = (real)(mod1 * mod2), over = remainder_of(v + mod1, period) - mod1,
         under = mod1 - remainder_of(mod1 - v, period);
    return pair(tilesize * (u + step), height * (v > mod1 ? over : v < -mod1 ? under : v));
}

VARIATION(intersection, xwidth = 5, xtilesize = 0.5, xmod1 = 0.3, xmod2 = 1, xheight = 0.5, yheight = 5,
          ytilesize = 0.5, ymod1 = 0.3, ymod2 = 1, ywidth = 0.5) {
    mask flat = uniform(random) < 0.5f;
    Pair a = strip(x, y, xwidth, xtilesize, xmod1, xmod2, xheight, random);
    Pair b = strip(y, x, yheight, ytilesize, ymod1, ymod2, ywidth, random);
    return choose2(flat, a, swapped(b));
}

VARIATION(parallel, x1width = 5, x1tilesize = 0.5, x1mod1 = 0.3, x1mod2 = 1, x1height = 0.5, x1move = 1, x2width = 5,
          x2tilesize = 0.5, x2mod1 = 0.3, x2mod2 = 1, x2height = 0.5, x2move = 1) {
    mask first = uniform(random) < 0.5f;
    Pair a = strip(x, y, x1width, x1tilesize, x1mod1, x1mod2, x1height, random);
    Pair b = strip(x, y, x2width, x2tilesize, x2mod1, x2mod2, x2height, random);
    return choose2(first, pair(a.x, a.y + weight * x1move), pair(b.x, b.y - weight * x2move));
}

// Origin: Fractorium

VARIATION(gnarly, cellsize = 1, twist = 1) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    real cx = (floor_of(x / cellsize) + 0.5f) * cellsize, cy = (floor_of(y / cellsize) + 0.5f) * cellsize;
    real u = x - cx, v = y - cy, r = (u * u + v * v) / (0.25f * cellsize * cellsize);
    Pair c = circle(twist * logarithm_of(r));
    mask inside = r <= 1.0f;
    return scaled(weight, inside ? cx + c.x * u + c.y * v : x, inside ? cy - c.y * u + c.x * v : y);
}

// 43758 times a sine of two numbers, whose fraction shaders use as noise. The phase is a sum of two floats, and `kx` and
// `ky` are floats with their rests: the noise magnifies their rounding by 43758.
DEVICE real sine_hash(real x, real y, float kx, float kx_rest, float ky, float ky_rest, float seed) {
    real a = x * kx, b = y * ky, sum = a + b, phase = sum + seed;
    real a_rest = FUSED(x, (real)(kx), -a) + x * kx_rest, b_rest = FUSED(y, (real)(ky), -b) + y * ky_rest;
    real part = sum - a, lost = (a - (sum - part)) + (b - part), of_seed = phase - sum;
    real rest = a_rest + b_rest + lost + ((sum - (phase - of_seed)) + (seed - of_seed));
    Pair c = circle(phase);
    return (c.y + rest * c.x) * 43758.5453f;
}
DEVICE real sine_noise(real x, real y, float seed) {
    return wrap_unit(sine_hash(x, y, 12.9898f, -4.531860e-07f, 78.233f, -1.708984e-06f, seed));
}

// Origin: JWildfire

DEVICE real pixel_bit(real x, real y) { return step_at((real)(0.5f), sine_noise(floor_of(x), floor_of(y), 0.0f)); }

// Random pixels, 0 or 1, with rounded corners.
DEVICE real rounded_pixels(real x, real y) {
    real u = 2.0f * wrap_unit(x) - 1.0f, v = 2.0f * wrap_unit(y) - 1.0f, d = vnorm(u, v), mine = pixel_bit(x, y);
    real dx = 0.9f * sign_of(u), dy = 0.9f * sign_of(v), beside = pixel_bit(x + dx, y), above = pixel_bit(x, y + dy);
    mask corner = mine == pixel_bit(x + dx, y + dy) && mine != beside;
    real other = beside != above ? mine : corner ? zero_real() : beside;
    return d < 1.0f ? mine : blend(mine, other, smooth_step(d, (real)(1.0f), (real)(1.01f)));
}

// The table holds the offsets of the pattern.
REPLACING(cut_fun, seed = 1000, mode = 1 [0, 1], zoom = 10, invert = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random), middle = (real)(mode < 1.0f ? 0.0f : 0.5f);
    u = mode < 1.0f ? x : u;
    v = mode < 1.0f ? y : v;
    real shade = rounded_pixels(u * zoom + table[0], v * zoom + table[1]);
    mask cut = invert < 1.0f ? shade > 0.0f : shade <= 0.0f;
    *hidden = cut;
    return scaled(weight, (cut ? zero_real() : u) - middle, (cut ? zero_real() : v) - middle);
}

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

REPLACING(cut_tileillusion, time = 0, mode = 1 [0, 1], zoom = 15 [0.1, 50], invert = 0 [0, 1]) {
    real u = uniform(random) - 0.5f, v = uniform(random) - 0.5f;
    u = mode < 1.0f ? x : u;
    v = mode < 1.0f ? y : v;
    real b = v * zoom, row = bent_rows(b), n = floor_of(row);
    real a = u * zoom / (row_border(b, b + 3.0f, n + 1.0f) - row_border(b - 3.0f, b, n));
    real tile = modulo(floor_of(a + time * sign_of(modulo(n, 2.0f) - 0.5f)) + n, 2.0f);
    mask dark = row - n <= 0.05f || tile == 0.0f, cut = (invert < 1.0f) == (dark ? u == u : u != u);
    *hidden = cut;
    return scaled(weight, cut ? zero_real() : u, cut ? zero_real() : v);
}

// Origin: Fractorium

VARIATION(bwraps_rand, cellsize = 1, space = 0, gain = 2, inner_twist = 0, outer_twist = 0, symm = 0, seed = 1) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    real cx = cell_middle(x, cellsize), cy = cell_middle(y, cellsize);
    real radius = 0.5f * cellsize / (1.0f + space * space);
    radius = radius * (symm == 0.0f ? sine_noise(cx, cy, seed) : sine_noise(cx * cx, cy * cy, seed));
    return in_bubble(weight, x, y, cx, cy, radius, gain * gain, inner_twist, outer_twist);
}

VARIATION(squares, cellsize = 0, min = 0, max = 10, num = 10, seed = 1, zero = 0.5, zero_seed = 1) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    real cx = cell_middle(x, cellsize), cy = cell_middle(y, cellsize);
    real u = x - cx, v = y - cy, a = magnitude(floor_of(u * num * 2.0f / cellsize + 0.5f));
    real m = greatest(a, magnitude(floor_of(v * num * 2.0f / cellsize + 0.5f)));
    real most = max + floor_of(sine_noise(cx * cx, cy * cy, seed) * (num - max));
    real level = (m > most || m < min) ? zero_real() : m - min;
    Pair c = circle(sine_noise(cx * cx, cy * cy, zero_seed) < zero ? zero_real() : level * (0.5f * PI));
    return scaled(weight, cx + u * c.x - v * c.y, cy + u * c.y + v * c.x);
}

VARIATION(dust, density = 5, distortion = 1, power = 1) {
    real u = remainder_of(floor_of(magnitude(x)), (real)(density)) / density;
    real v = remainder_of(floor_of(magnitude(y)), (real)(density)) / density;
    real r = power_of(v + sine_noise(v, u, 2.0f) * distortion, (real)(power));
    return from_polar(weight * r, TWO_PI * (u + sine_noise(u, v, 1.0f) * distortion));
}

DEVICE Pair crackle_corner(real i, real j, float size) {
    return pair(i + sine_noise(i, j, 2.76399582f) / size, j + sine_noise(j, 3.0f * i, 3.48081051f) / size);
}

VARIATION(crackle2, cellsize = 1 [0.0001, 1e30]) {
    real i = floor_of(x), j = floor_of(y), step = uniform(random) < 0.5f ? (real)(1.0f) : (real)(-1.0f);
    mask upward = uniform(random) < 0.5f;
    Pair p = crackle_corner(i, j, cellsize);
    Pair q = crackle_corner(upward ? i : i + step, upward ? j + step : j, cellsize);
    real t = uniform(random);
    return scaled(cellsize, p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t);
}

// The offset of a random point in a hexagon of radius 1 from its corner angles: radius and angle.
DEVICE Pair hexagon_point(real k) {
    real i = floor_of(k), t = k - i, h = sqrt(1.0f + t * t - t), bend = arcsine(0.8660254037844386f * t / h);
    real half_turn = floor_of(0.5f * i);
    return pair(h, TWO_PI / 3.0f * half_turn + (i - 2.0f * half_turn == 1.0f ? bend : -bend) - 0.5f * PI);
}

VARIATION(hex_rand, x = 10, y = 10, size = 1, power = 1, density = 1, seed = 1) {
    Pair h = hexagon_point(6.0f * uniform(random));
    real i = floor_of(uniform(random) * (2.0f * hex_rand_x)) - hex_rand_x,
         j = floor_of(uniform(random) * (2.0f * hex_rand_y)) - hex_rand_y;
    real u = i + 0.5f * j, v = 0.8660254037844386f * j, n = power_of(sine_noise(u, v, seed), (real)(power));
    Pair p = from_polar(0.5f * size * h.x * sqrt(uniform(random)) * 1.1547005383792515f * n, h.y);
    real k = sine_noise(v, u, seed) < density ? (real)(weight) : zero_real();
    return scaled(k, p.x + u, p.y + v);
}

VARIATION(hex_truchet, size = 1, side = 1, seed = 1) {
    float thin = 0.85f * (1.0f - size), low = 0.15f + 0.5f * thin, high = 1.0f - 0.5f * thin;
    real a = TWO_PI * uniform(random), r = sqrt(uniform(random) * (high * high - low * low) + low * low);
    real u = a < 2.0943f   ? (real)(1.0f)
             : a < 4.1887f ? (real)(-1.0f)
                           : zero_real(),
         v = a < 4.1887f ? (real)(0.5773f) : (real)(-1.1547f);
    real i = 2.0f * (floor_of(uniform(random) * (2.0f * side + 1.0f)) - side),
         j = 2.0f * (floor_of(uniform(random) * (2.0f * side + 1.0f)) - side);
    real turn = sine_noise(i, j, seed) < 0.5f ? zero_real() : (real)(1.0471f);
    Pair c = circle(turn), p = from_polar(r, a + 2.6179f - turn);
    return scaled(weight, p.x + u * c.x + v * c.y + i + 0.5f * j, p.y - u * c.y + v * c.x + 0.866f * j);
}

VARIATION(truchet_knot) {
    real i = floor_of(x), j = floor_of(y), u = 0.5f * (uniform(random) - 0.5f),
         v = 0.65f * (2.0f * uniform(random) - 1.0f);
    real d = magnitude(i + j), odd = d - 2.0f * floor_of(0.5f * d);
    return scaled(weight, i + (odd < 0.5f ? u : -v), j + (odd < 0.5f ? v : u));
}

VARIATION(sschecks, x = 0.5, y = 0.5, size = 0.5, rnd = 0) {
    real n = nearest(x / size) + nearest(y / size), r = weight / (x * x + y * y), u = rnd * uniform(random);
    mask odd = n - 2.0f * floor_of(0.5f * n) != 0.0f;
    return scaled(weight, sine_of(x) * r + (odd ? u - sschecks_x : (real)(sschecks_x)),
                  sine_of(y) * r + (odd ? (real)(-sschecks_y) : sschecks_y + u));
}

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

VARIATION(circleLinear, Sc = 1, K = 0.5, Dens1 = 0.5, Dens2 = 0.5, Reverse = 1, X = 10, Y = 10, Seed = 0) {
    real m = floor_of(0.5f * x / Sc), n = floor_of(0.5f * y / Sc), a = (2.0f * m + 1.0f) * Sc,
         b = (2.0f * n + 1.0f) * Sc;
    real u = x - a, v = y - b, r = vnorm(u, v), room = (0.3f + 0.7f * lattice_noise(m + 10.0f, n + 3.0f)) * Sc;
    real noise = lattice_noise(m + Seed, n), out = room / r * (1.0f - K) + K;
    mask shrinks = Reverse > 0.0f ? noise < Dens1 * Dens2 : noise > Dens1 * Dens2;
    real k = (noise < Dens1 && r < room) ? (shrinks ? (real)(K) : out) : (real)(1.0f);
    return scaled(weight, u * k + a, v * k + b);
}

// The distances of a point (u, v) of a unit tile from the two arcs of Truchet's tiles, over the arcs' half width.
DEVICE Pair truchet_arcs(real u, real v, float exponent, float arc_width, mask flipped) {
    float e = clamp(exponent, 0.001f, 2.0f), width = clamp(arc_width, 0.001f, 1.0f);
    float most = 0.5f * (pow(2.0f, 1.0f / e) - 1.0f) * width;
    real n = (real)(e), o = (real)(1.0f / e), a = flipped ? 1.0f - u : u, b = 1.0f - a;
    real first = power_of(power_of(a, n) + power_of(v, n), o),
         last = power_of(power_of(b, n) + power_of(1.0f - v, n), o);
    return pair(magnitude(first - 0.5f) / most, magnitude(last - 0.5f) / most);
}
DEVICE mask truchet_flips(real i, real j, float seed) {
    float k = sqrt(1.5f * seed) / (0.5f * seed + 1e-30f) * 0.25f;
    real a = i * k, b = j * k, t = (a + b + a * b + seed) * (0.5f * k) * 32747.0f + 12345.0f;
    real kind = remainder_of(remainder_of(t, (real)(65535.0f)), (real)(2.0f));
    if (seed == 0.0f) kind = zero_real();
    return (seed == 1.0f ? (real)(1.0f) : kind) >= 1.0f;
}
// As truchet_flips() by whole numbers, with at most 20 steps of a generator.
DEVICE mask truchet_flips_in_steps(real i, real j, float seed) {
    whole n = truncated(magnitude(i + j + i * j)), r = n + truncated((real)(floor(seed)));
    for (int k = 0; k < 20; k++) r = (whole)(k) < n ? (r * 32747 + 12345) % 65535 : r;
    if (seed == 0.0f || seed == 1.0f) r = truncated((real)(seed));
    return r % 2 != 1;
}

VARIATION(truchet, extended = 1, exponent = 2, arc_width = 0.5, rotation = 0, size = 1, seed = 50) {
    float k = (cos(rotation) + sin(rotation)) / weight;
    real i = nearest(x), j = nearest(y), u = wrap_unit(x * k), v = wrap_unit(y * k);
    mask flipped = extended == 0.0f ? truchet_flips(i, j, fabs(seed)) : truchet_flips_in_steps(i, j, fabs(seed));
    Pair arcs = truchet_arcs(u, v, exponent, arc_width, flipped);
    real count = (arcs.x < 1.0f ? (real)(size) : zero_real()) + (arcs.y < 1.0f ? (real)(size) : zero_real());
    return scaled(count, u + floor_of(x), v + floor_of(y));
}

VARIATION(truchet_fill, exponent = 2, arc_width = 0.5, seed = 0) {
    real u = wrap_unit(x / weight), v = wrap_unit(y / weight);
    mask flipped = truchet_flips(floor_of(magnitude(x) + 0.5f), floor_of(magnitude(y) + 0.5f), seed);
    Pair arcs = truchet_arcs(u, v, exponent, arc_width, flipped);
    real count = (arcs.x < 1.0f ? (real)(2.0f) : zero_real()) + (arcs.y < 1.0f ? (real)(2.0f) : zero_real());
    return pair(count * (u + floor_of(x)) - x, count * (v + floor_of(y)) - y);
}

VARIATION(Truchet_inv, exponent = 2, arc_width = 0.5, rotation = 0, size = 1, seed = 1) {
    float k = (cos(rotation) + sin(rotation)) / weight;
    real u = wrap_unit(x * k), v = wrap_unit(y * k);
    mask flipped = truchet_flips(floor_of(x + 0.5f), floor_of(y + 0.5f), seed);
    Pair arcs = truchet_arcs(u, v, exponent, arc_width, flipped);
    return scaled((arcs.x > 1.0f && arcs.y > 1.0f) ? (real)(size) : zero_real(), u + floor_of(x), v + floor_of(y));
}

VARIATION(Truchet_glyph, exponent = 2, arc_width = 0.5, amp = 6, max = 0.9, angle = 45, seed = 1) {
    real u = wrap_unit(x / weight), v = wrap_unit(y / weight);
    real noise = sine_noise(floor_of(magnitude(x) + 0.5f), floor_of(magnitude(y) + 0.5f), seed);
    real kind = remainder_of(noise * 32747.0f + 12345.0f, (real)(2.0f));
    if (seed == 0.0f || seed == 1.0f) kind = (real)(seed);
    Pair arcs = truchet_arcs(u, v, exponent, arc_width, kind >= 1.0f), c = circle((real)(angle * (PI / 180.0f)));
    real a = x - (floor_of(x / amp) + 0.5f) * amp, b = y - (floor_of(y / amp) + 0.5f) * amp;
    mask inside = magnitude(c.x * a + c.y * b) + magnitude(c.x * b - c.y * a) < 0.5f * amp * max;
    real count = (arcs.x < 1.0f ? (real)(2.0f) : zero_real()) + (arcs.y < 1.0f ? (real)(2.0f) : zero_real());
    return pair(inside ? count * (u + floor_of(x)) - x : x, inside ? count * (v + floor_of(y)) - y : y);
}

// Origin: JWildfire

// Beyond the arcs the origin moves points far out of the picture.
VARIATION(truchet2, exponent1 = 1, exponent2 = 2, width1 = 0.5, width2 = 0.5, scale = 10, seed = 50, inverse = 0) {
    real t = 2.0f * magnitude(wrap_unit(x / scale) - 0.5f), one = (real)(1.0f);
    real wide = least(blend((real)(width1), (real)(width2), t), one),
         e = blend((real)(exponent1), (real)(exponent2), t);
    real i = nearest(x), j = nearest(y), u = wrap_unit(x), v = wrap_unit(y), n = least(e, (real)(2.0f)), o = one / e;
    real a = truchet_flips(i, j, fabs(seed)) ? 1.0f - u : u, most = 0.5f * (power_of((real)(2.0f), o) - 1.0f) * wide;
    real near = power_of(power_of(a, n) + power_of(v, n), o) - 0.5f;
    real far = power_of(power_of(1.0f - a, n) + power_of(1.0f - v, n), o) - 0.5f;
    mask on_arc = magnitude(near) < most || magnitude(far) < most, plain = wide <= 0.0f || n <= 0.0f;
    mask kept = inverse == 0.0f ? on_arc : magnitude(near) > most && magnitude(far) > most;
    real away = inverse == 0.0f ? (real)(100.0f) : (real)(10000.0f);
    return pair(plain || kept ? weight * x : away, plain || kept ? weight * y : away);
}

VARIATION(r_circleblur, n = 1, seed = 0, dist = 0.5, min = 0.1, max = 1) {
    real r = remainder_of(vnorm(x, y), (real)(fabs(n))), a = angle_of(y, x) + r;
    Pair c = from_polar(r, a);
    real u = nearest(c.x), v = nearest(c.y);
    real size =
        fraction_of(sine_hash(v, u, 12.9898f, -4.531860e-07f, 78.233f, -1.708984e-06f, seed)) * (max - min) + min;
    real down = fraction_of(sine_hash(u, v, 127.1f, 1.525879e-06f, 311.7f, -1.220703e-05f, seed)) * dist + v;
    real across = fraction_of(sine_hash(u, v, 269.5f, 0.000000e+00f, 183.3f, -3.051758e-06f, seed)) * dist + u;
    real far = 0.5f * size * sqrt(uniform(random));
    Pair p = from_polar(far, TWO_PI * uniform(random));
    return scaled(weight, p.x + across, p.y + down);
}

// Origin: Apophysis

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

VARIATION_3D(gridout3D, xx = 1, yy = 1, xa = 1, xb = 0, xc = 1, xd = 0, xe = 1, xf = 0, xg = 1, xh = 0, ya = 0, yb = 1,
             yc = 0, yd = 1, ye = 0, yf = 1, yg = 0, yh = 1, za = 0, zb = 0, zc = 0, zd = 0, ze = 1, zf = 1, zg = 1,
             zh = 1) {
    real rx = nearest(x) * xx, ry = nearest(y) * yy;
    mask low = ry <= 0.0f, right = rx > 0.0f;
    mask along = low ? (right ? -ry >= rx : ry <= rx) : (right ? ry >= rx : ry > -rx);
    real u = of_sector(along, right, low, xa, xb, xc, xd, -xe, xf, -xg, xh);
    real v = of_sector(along, right, low, ya, yb, yc, -yd, ye, yf, yg, -yh);
    real w = of_sector(along, right, low, za, zb, zc, zd, ze, zf, zg, zh);
    return scaled3(weight, x + u, y + v, low ? z + w : z * w);
}

VARIATION(circular2, angle = 90, seed = 0, xx = 12.9898, yy = 78.233) {
    real aux = fraction_of(sine_hash(x, y, xx, 0.0f, yy, 0.0f, seed));
    real turn = 2.0f * (uniform(random) + aux) - 2.0f;
    return from_polar(weight * vnorm(x, y), angle_of(y, x) + turn * (angle * (PI / 180.0f)));
}

VARIATION(circular, angle = 90, seed = 0) {
    real aux = fraction_of(sine_hash(x, y, 12.9898f, -4.531860e-07f, 78.233f, -1.708984e-06f, seed));
    real turn = 2.0f * (uniform(random) + aux) - 2.0f;
    return from_polar(weight * vnorm(x, y), angle_of(y, x) + turn * (angle * (PI / 180.0f)));
}
