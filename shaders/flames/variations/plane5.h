// Cells, crops, bubbles and figures that draw their own places.
// Origin: JWildfire

// How far u is from q toward p: 1 on the line half way.
DEVICE real cell_ratio(Pair p, Pair q, Pair u) {
    real dx = p.x - q.x, dy = p.y - q.y, d = dx * dx + dy * dy;
    return d == 0.0f ? (real)(1.0f) : 2.0f * ((u.x - q.x) * dx + (u.y - q.y) * dy) / d;
}

DEVICE Pair hexagon(real i, real j, float size) {
    return pair(1.5f * (i - j) * size, 0.8660254037844386f * (i + j) * size);
}

DEVICE real hexagon_ratio(real i, real j, float size, Pair u) {
    Pair q = hexagon(i, j, size);
    real l = cell_ratio(hexagon(i, j + 1.0f, size), q, u);
    l = greatest(l, cell_ratio(hexagon(i + 1.0f, j + 1.0f, size), q, u));
    l = greatest(l, cell_ratio(hexagon(i + 1.0f, j, size), q, u));
    l = greatest(l, cell_ratio(hexagon(i, j - 1.0f, size), q, u));
    l = greatest(l, cell_ratio(hexagon(i - 1.0f, j - 1.0f, size), q, u));
    return greatest(l, cell_ratio(hexagon(i - 1.0f, j, size), q, u));
}

VARIATION(hexes, cellsize = 1, power = 1, rotate = 0.166, scale = 1) {
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
    return scaled(weight, vx * r + q.x, vy * r + q.y);
}

// cropmode 0 and 1; cropmode 2 of the origin keeps the place of the point before.
VARIATION_3D(smartcrop, power = 4, radius = 1, roundstr = 0, roundwidth = 1, distortion = 1, edge = 0, scatter = 0,
             offset = 0, cropmode = 1, static = 2) {
    real r1 = uniform(random), r2 = uniform(random), r3 = uniform(random);
    real a = angle_of(y, x), r = vnorm(x, y);
    int mode = (power > 0.0f) == (radius > 0.0f);
    float sides = fabs(power);
    if (sides < 2.0f) {
        real e = edge * (r1 - 0.5f), turn = fraction_of(a * (1.0f / TWO_PI) + 1.0f + e) * TWO_PI;
        mask crops = (turn > sides * PI) == (mode ? r == r : r != r);
        real spread = (r3 * scatter + offset + e) * PI;
        Pair p = from_polar(r, r2 < 0.5f ? -spread : sides * PI + spread);
        return triple(weight * (crops ? p.x : x), weight * (crops ? p.y : y), weight * z);
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
    return triple(weight * (crops ? p.x : x), weight * (crops ? p.y : y), weight * z);
}

// Without stripes and without exactCalc of the origin.
VARIATION(nBlur, numEdges = 3 [3, 1000], numStripes = 0, ratioStripes = 1, ratioHole = 0, circumCircle = 0,
          adjustToLinear = 1, equalBlur = 1, exactCalc = 0, highlightEdges = 1) {
    float edges = (float)(int)numEdges, wedge = TWO_PI / edges, fourth = 0.25f * edges;
    float turn = fourth == (float)(int)fourth ? 0.5f * edges - 1.0f : (float)(int)(0.5f * edges);
    real size = (real)(weight);
    if (adjustToLinear == 1.0f) size = 2.0f * weight / root_safe(2.0f - 2.0f * cosine_of((real)(wedge * turn)));
    real u = uniform(random), side = random_index(uniform(random), edges), far = uniform(random),
         again = uniform(random);
    int round = circumCircle == 1.0f;
    real bend = 13.0f * (round ? 0.1f : fmax(highlightEdges, 0.1f)) / power_of((real)(edges), (real)(1.3f));
    real a = (side + 0.5f - 0.5f * arctangent(bend * (u - 0.5f)) / arctangent(0.5f * bend)) * wedge;
    real t = a - wedge * floor_of(a / wedge), slope = tangent_of((real)(0.5f * PI + 0.5f * wedge));
    real outer = magnitude(slope / (slope - tangent_of(t)) / cosine_of(t)), inner = ratioHole * outer;
    far = equalBlur == 1.0f ? sqrt(far) : far;
    again = equalBlur == 1.0f ? sqrt(again) : again;
    real r = round ? far : far * outer;
    r = r < inner ? inner + again * ((round ? (real)(1.0f) : outer) - inner) : r;
    return swapped(from_polar(size * r, a - 0.5f * wedge));
}

VARIATION_3D(plane_wf, position = 3, size = 10, axis = 2, direct_color = 1, color_mode = 3, blend_colormap = 1,
             displ_amount = 0.1, blend_displ_map = 1, calc_color_idx = 0, receive_only_shadows = 0) {
    real u = 0.5f - uniform(random), v = 0.5f - uniform(random), a = size * u, b = size * v, c = (real)(position);
    if (direct_color > 0.0f && color_mode != 3.0f)
        *color = color_mode == 1.0f ? v + 0.5f : color_mode == 2.0f ? (u + 0.5f) * (v + 0.5f) : u + 0.5f;
    if (axis == 0.0f) return triple(weight * a, weight * b, weight * c);
    if (axis == 1.0f) return triple(weight * c, weight * a, weight * b);
    return triple(weight * a, weight * c, weight * b);
}

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

VARIATION(bwraps, cellsize = 1, space = 0, gain = 2, inner_twist = 0, outer_twist = 0) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    float radius = 0.5f * (cellsize / (1.0f + space * space)), g2 = gain * gain + 1e-6f, bubble = g2 * radius;
    float most = bubble > 2.0f ? 1.0f : bubble / (0.25f * bubble * bubble + 1.0f), r2 = radius * radius;
    real cx = (floor_of(x / cellsize) + 0.5f) * cellsize, cy = (floor_of(y / cellsize) + 0.5f) * cellsize;
    real lx = x - cx, ly = y - cy;
    mask outside = lx * lx + ly * ly > r2;
    lx = lx * g2;
    ly = ly * g2;
    real r = radius / most / (0.25f * (lx * lx + ly * ly) + 1.0f);
    lx = lx * r;
    ly = ly * r;
    r = (lx * lx + ly * ly) / r2;
    Pair c = circle(inner_twist * (1.0f - r) + outer_twist * r);
    real u = cx + c.x * lx + c.y * ly, v = cy - c.y * lx + c.x * ly;
    return scaled(weight, outside ? x : u, outside ? y : v);
}

REPLACING(threeply, a = -55, b = -1, c = -42) {
    // one more step from a place of the orbit that the origin follows
    real n = random_index(uniform(random), table[0]);
    real u = table_at(table, 1.0f + 2.0f * n), v = table_at(table, 2.0f + 2.0f * n);
    return scaled(0.001f * weight, u, v);
}

VARIATION(hopalong, random = 1, a = 0.75, b = 0.5, c = 0.25, startx = 0, starty = 0) {
    real n = random_index(uniform(random), table[0]);
    return scaled(weight, table_at(table, 1.0f + 2.0f * n), table_at(table, 2.0f + 2.0f * n));
}

REPLACING(gingerbread_man) {
    real n = random_index(uniform(random), table[0]);
    return scaled(weight, table_at(table, 1.0f + 2.0f * n), table_at(table, 2.0f + 2.0f * n));
}

REPLACING(gumowski_mira, random = 1, step = 0.001, a = 0.000001, b = 0.05) {
    real n = random_index(uniform(random), table[0]);
    return scaled(weight, table_at(table, 1.0f + 2.0f * n), table_at(table, 2.0f + 2.0f * n));
}

VARIATION(macmillan, a = 1.6, b = 0.4, startx = 0.1, starty = 0.1) {
    real n = random_index(uniform(random), table[0]);
    return scaled(weight, table_at(table, 1.0f + 2.0f * n), table_at(table, 2.0f + 2.0f * n));
}

VARIATION(wallpaper_js, a = 1.156, b = -0.28, c = 21.288) {
    mask moves = uniform(random) < 0.5f;
    real u = y - sign_of(truncation(x)) * sqrt(magnitude(b * x - c));
    return pair(moves ? u : x, moves ? a - x : y);
}

DEVICE whole mangled(whole a) {
    a = (a ^ 61) ^ (a >> 16);
    a = a + (a << 3);
    a = a ^ (a >> 4);
    a = whole_of_bits(bits_of_whole(a) * 0x27d4eb2du);
    return a ^ (a >> 15);
}
DEVICE real mangled_unit(whole a) { return real_of(mangled(a)) * 4.656612875245797e-10f; }
DEVICE whole times(whole a, whole b) { return whole_of_bits(bits_of_whole(a) * bits_of_whole(b)); }

VARIATION(pixel_flow, angle = 90, len = 0.1, width = 200, seed = 42, enable_dc = 0) {
    Pair c = circle((real)(angle * 0.0174532925f));
    real i = floor_of(x * width), j = floor_of(y * width), r = uniform(random);
    whole key = truncated((real)(seed)), one = key * 0 + 1;
    i = truncation(i + 2.0f - 4.0f * mangled_unit(times(truncated(i), key) + one));
    j = truncation(j + 2.0f - 4.0f * mangled_unit(times(truncated(j), key) + one));
    whole a = truncated(i), b = truncated(j), b_seed = times(b, key);
    b_seed = (b_seed + (b_seed < 0 ? one : one * 0)) >> 1;
    real far = 0.5f * (mangled_unit(b + times(a, -key)) + mangled_unit(a + b_seed)) * square(square(r));
    if (enable_dc == 1.0f) *color = r;
    return scaled(weight * len * far, c.x, c.y);
}

DEVICE real mirrored_cell(real x, float scale, float shift, float n) {
    real cell = floor_of((x - shift) * scale), rest = cell - n * truncation(cell / n);
    mask mirrored = cell >= 0.0f ? rest == n - 1.0f : rest == 0.0f;
    return scale != 0.0f && mirrored ? 2.0f * shift - x : x;
}
DEVICE real jittered_cell(real u, float width, whole key, whole one) {
    real cell = floor_of(u * width);
    return truncation(cell + 2.0f - 4.0f * mangled_unit(times(truncated(cell), key) + one));
}

VARIATION_3D(glitchy1, scale_x = 1, shift_x = 0, n_x = 2 [1, 100], scale_y = 1, shift_y = 0, n_y = 2 [1, 100],
             scale_z = 0, shift_z = 0, n_z = 2 [1, 100], width = 1, seed = 42, angle = 30, u = 1, v = 1, w = 1) {
    Pair c = circle((real)(angle * 0.0174532925f));
    real p = u * x, q = v * (c.x * p + c.y * y), r = w * (c.x * p - c.y * y);
    whole key = truncated((real)(seed)), one = key * 0 + 1;
    whole i = truncated(jittered_cell(p, width, key, one)), j = truncated(jittered_cell(q, width, key, one));
    whole k = truncated(jittered_cell(r, width, key, one)), scaled_key = times(k, key);
    scaled_key = (scaled_key + (scaled_key < 0 ? one : one * 0)) >> 1;
    real far = weight * (mangled_unit(i + j + times(k, -key)) + mangled_unit(i + j + scaled_key));
    return triple(far * mirrored_cell(x, scale_x, shift_x, n_x), far * mirrored_cell(y, scale_y, shift_y, n_y),
                  far * mirrored_cell(z, scale_z, shift_z, n_z));
}

VARIATION(boarders2, c = 0.4, left = 0.65, right = 0.35) {
    float k = fmax(fabs(c), 1e-8f), l = k * fmax(fabs(left), 1e-8f), limit = k + k * fmax(fabs(right), 1e-8f);
    real rx = nearest(x), ry = nearest(y), u = x - rx, v = y - ry;
    mask inside = uniform(random) >= limit, wide = magnitude(u) >= magnitude(v);
    real sx = u >= 0.0f ? (real)(l) : (real)(-l), sy = v >= 0.0f ? (real)(l) : (real)(-l);
    real a = wide ? sx : u / v * sy, b = wide ? sx * v / u : sy;
    return scaled(weight, u * k + rx + (inside ? zero_real() : a), v * k + ry + (inside ? zero_real() : b));
}
