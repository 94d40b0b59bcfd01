// Borders, tiles of triangles, H. N. Yeganeh's lines and circles, polygons as circles.
// Origin: JWildfire

// Where u - c u^(p + 1) / (p + 1) reaches a share of its value at 1: depths whose density falls as sides shorten.
DEVICE real depth_of_border(real share, float c, float p) {
    real u = share, wanted = share * (1.0f - c / (p + 1.0f));
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

// Lines and circles of the table: whether they are circles, how many, and of each x1, y1, x2, y2 or x, y, radius, 0.
VARIATION(hamid_js, presetId = 0, number_lines_circles = 2000, filled_circles = 1, a = 1, b = 1, c = 1, d = 1, e = 1,
          f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1, m = 1, n = 1, o = 1, p = 1) {
    real row = random_index(uniform(random), table[1]) * 4.0f + 2.0f, along = uniform(random);
    real u = table_at(table, row), v = table_at(table, row + 1.0f), s = table_at(table, row + 2.0f),
         t = table_at(table, row + 3.0f), shrinks = uniform(random), shrunk = uniform(random);
    if (table[0] == 0.0f) return scaled(weight, u + along * (s - u), v + along * (t - v));
    Pair q = from_polar(filled_circles == 1.0f && shrinks > 0.05f ? s * shrunk : s, along * TWO_PI);
    return scaled(weight, u + q.x, v + q.y);
}

// The pairs of the table, by a search of the sums for the first time and evenly among its near ones for the other.
REPLACING(recurrenceplot, func_id = 0, a = 0.5, b = 10, k = 5, Density = 700 [1, 10000], dc = 0, scale = 1, angle = 0,
          offset = 0, tolerance = 5) {
    real pick = uniform(random), among = uniform(random), stays = uniform(random);
    real low = zero_real(), high = (real)(table[0] - 1.0f);
    for (int s = 0; s < 14; s++) {
        real middle = floor_of(0.5f * (low + high));
        mask before = table_at(table, 2.0f + 4.0f * middle) <= pick;
        low = before && low < high ? middle + 1.0f : low;
        high = before ? high : middle;
    }
    low = least(low, (real)(table[0] - 1.0f));
    real first = table_at(table, 3.0f + 4.0f * low), end = table_at(table, 4.0f + 4.0f * low);
    real place = clamped(first + floor_of(among * (end - first)), zero_real(), (real)(table[0] - 1.0f));
    real u = weight * (low / table[0] - 0.5f), v = weight * (table_at(table, 5.0f + 4.0f * place) / table[0] - 0.5f);
    float density = 0.5f / (scale == 0.0f ? 1e-5f : scale);
    Pair c = circle((real)(angle));
    real shade = magnitude(density * u * v + offset),
         slanted = magnitude(density * (c.x * u + c.y * v + offset) + 0.5f);
    mask stayed = stays >= table[1];
    if (dc == 1.0f) *color = stayed ? *color : wrap_unit(shade);
    if (dc == 2.0f) *color = stayed ? *color : wrap_unit(slanted);
    return pair(u, v);
}

// The particles of a cluster as spheres, and the tubes between them and those that they stuck to.
VARIATION_3D(dla3d_wf, max_iter = 320 [1, 2000], seed = 666, inner_blur_radius = 0.5, outer_blur_radius = 0.01,
             junction_scale = 1.4, dc_color = 1, glue_radius = 1, force_x = 0, force_y = 0, force_z = 0,
             display_nodes = 1, display_junctions = 1, single_thread = 0, node_sdiv_level = 0,
             node_sdiv_smooth_passes = 12, node_sdiv_smooth_lambda = 0.42, node_sdiv_smooth_mu = -0.45,
             node_blend_colormap = 1, node_mesh_scale = 1, junct_sdiv_level = 0, junct_sdiv_smooth_passes = 12,
             junct_sdiv_smooth_lambda = 0.42, junct_sdiv_smooth_mu = -0.45, junct_blend_colormap = 1,
             junct_mesh_scale = 1) {
    real row = 1.0f + 8.0f * random_index(uniform(random), table[0]), along = uniform(random);
    real px = table_at(table, row), py = table_at(table, row + 1.0f), pz = table_at(table, row + 2.0f);
    real deep = table_at(table, row + 3.0f), dx = table_at(table, row + 4.0f) - px, last = table_at(table, row + 7.0f);
    real dy = table_at(table, row + 5.0f) - py, dz = table_at(table, row + 6.0f) - pz, shape = uniform(random);
    Pair phi = circle(TWO_PI * uniform(random)), theta = circle(TWO_PI * uniform(random));
    real bx = 0.5f - uniform(random), by = 0.5f - uniform(random), bz = 0.5f - uniform(random);
    float narrows = outer_blur_radius - inner_blur_radius;
    int nodes = display_nodes > 0.0f, tubes = display_junctions > 0.0f, blurs = outer_blur_radius > 1e-6f;
    mask first = last < 0.0f;
    real own = inner_blur_radius + narrows * deep, next = inner_blur_radius + narrows * last;
    float share = !nodes || !blurs ? -1.0f : tubes ? 0.333f : 2.0f;  // of the spheres
    mask node = first || shape < share;
    real ball = junction_scale * (first ? (real)(inner_blur_radius) : tubes ? own : next);
    real cx = dy * bz - dz * by, cy = dz * bx - dx * bz, cz = dx * by - dy * bx;
    real wide = (own + (next - own) * along) / sqrt(cx * cx + cy * cy + cz * cz + 1e-20f);
    if (!blurs) wide = zero_real();
    if (!nodes || !blurs) {
        ball = zero_real();
        *hidden = first;
    }
    if (!nodes && !tubes && blurs) {
        *hidden = first || !first;
        return triple(zero_real(), zero_real(), zero_real());
    }
    real shade = first ? zero_real() : node ? deep : deep + (last - deep) * along;
    if (dc_color > 0.0f) *color = clamped(shade, zero_real(), (real)(1.0f));
    real u = node ? ball * theta.y * phi.x : along * dx + wide * cx;
    real v = node ? ball * theta.y * phi.y : along * dy + wide * cy;
    real w = node ? ball * theta.x : along * dz + wide * cz;
    return triple(weight * (px + u), weight * (py + v), weight * (pz + w));
}

// A file's prepost_circlize is this as post_, and as pre_ the other way around.
VARIATION(prepost_circlize, n = 4 [3, 50], rotation = 45, reverse = 0 [0, 1]) {
    real angle = angle_of(y, x), r = vnorm(x, y), t = angle - rotation * 0.0174532925f;
    real wedge = floor_of(n * t / TWO_PI), factor = cosine_of(t - PI / n * (2.0f * wedge + 1.0f));
    factor = cosine_of((real)(PI / n)) / factor;
    real other = reverse == 0.0f ? r * factor : r / factor;
    return from_polar((1.0f - weight) * r + weight * other, angle);
}

// Origin: Apophysis

// G. Kiehne's julian2 with color.
VARIATION(julian2dc, power = 2, dist = 1, col = 0, a = 1, b = 0, c = 0, d = 1, e = 0, f = 0) {
    real u = a * x + b * y + e, v = c * x + d * y + f, turn = random_index(uniform(random), fabs(power));
    real angle = (angle_of(v, u) + TWO_PI * turn) / power;
    real r = weight * power_of(u * u + v * v, (real)(dist / power * 0.5f));
    *color = wrap_unit(magnitude(r * col + angle / TWO_PI * (1.0f - col)));
    return from_polar(r, angle);
}

// A. Liasotskiy's depth: as pre_ and among the others; its post_ needs the point before the variations.
VARIATION_3D(depth, power = 1) {
    real k = magnitude(z);
    if (power != 1.0f) k = k == 0.0f ? k : power_of(k, (real)(power));
    k = weight * (1.0f + k);
    return triple(k * x, k * y, k * z);
}

// flam3's waves2 with the wave along z that other programs have: files call it waves2.
VARIATION_3D(waves2_z, scalex = 0, scaley = 0, scalez = 0, freqx = 0, freqy = 0, freqz = 0) {
    real u = x + scalex * sine_of(y * freqx), v = y + scaley * sine_of(x * freqy);
    return triple(weight * u, weight * v, weight * (z + scalez * sine_of(vnorm(x, y) * freqz)));
}
