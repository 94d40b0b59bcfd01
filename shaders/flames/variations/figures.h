// Figures that variations draw whatever the point: lines, triangles, polygons and dots of a table that
// renderer/flames/stamps.py makes. A row: kind, color, then of a line (0) two places, its thickness and that of dots; of
// a polygon (2) place, size, cosine and sine of its turn, sides and the hole's share of its radius; of dots (3) a place.
// Origin: JWildfire

DEVICE real figure_row(GLOBAL const float *table, real u) { return 1.0f + 9.0f * random_index(u, table[0]); }

DEVICE Pair line_place(GLOBAL const float *table, real row, real u, real v, real w) {
    real ax = table_at(table, row + 2.0f), ay = table_at(table, row + 3.0f), thick = table_at(table, row + 6.0f);
    real dx = table_at(table, row + 4.0f) - ax, dy = table_at(table, row + 5.0f) - ay;
    return pair(ax + u * dx + (v - 0.5f) * thick, ay + u * dy + (w - 0.5f) * thick);
}

// A place of a polygon around the origin, with the origin's density.
DEVICE Pair polygon_place(real sides, real hole, real u, real pick, real far) {
    sides = greatest(sides, (real)(3.0f));
    real wedge = TWO_PI / sides, bend = 13.0f / power_of(sides, (real)(1.3f));
    real side = floor_of(pick * sides);
    real a = (side + 0.5f - 0.5f * arctangent(bend * (u - 0.5f)) / arctangent(0.5f * bend)) * wedge;
    real t = a - wedge * side, slope = tangent_of(0.5f * PI + 0.5f * wedge);
    real outer = magnitude(slope / (slope - tangent_of(t)) / cosine_of(t));
    return swapped(from_polar(outer * (hole + sqrt(far) * (1.0f - hole)), a - 0.5f * wedge));
}

DEVICE Pair turned_polygon(GLOBAL const float *table, real row, real u, real v, real w) {
    Pair p = polygon_place(table_at(table, row + 7.0f), table_at(table, row + 8.0f), u, v, w);
    real size = table_at(table, row + 4.0f), c = table_at(table, row + 5.0f), s = table_at(table, row + 6.0f);
    return pair(size * (p.x * c + p.y * s) + table_at(table, row + 2.0f),
                size * (p.y * c - p.x * s) + table_at(table, row + 3.0f));
}

// A place of a line's beginning, spread over a disc.
DEVICE Pair dot_place(GLOBAL const float *table, real row, real u, real v, float radius) {
    Pair p = from_polar(radius * u, TWO_PI * v);
    return pair(table_at(table, row + 2.0f) + p.x, table_at(table, row + 3.0f) + p.y);
}

VARIATION(dragon_js, level = 2 [0, 13], line_thickness = 0.5) {
    real row = figure_row(table, uniform(random)), u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = line_place(table, row, u, v, w);
    return scaled(weight, p.x, p.y);
}

VARIATION(gosperisland_js, level = 2 [0, 6], line_thickness = 0.5) {
    real row = figure_row(table, uniform(random)), u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = line_place(table, row, u, v, w);
    return scaled(weight, p.x, p.y);
}

// Lines and the dots at their beginnings, in the given shares.
DEVICE Pair lines_or_dots(GLOBAL const float *table, real row, real pick, float lines, float dots, float radius, real u,
                          real v, real w) {
    Pair p = line_place(table, row, u, v, w), q = dot_place(table, row, u, v, 0.01f * radius);
    return choose2(pick * (lines + dots) < (real)(lines), p, q);
}

VARIATION(hilbert_js, level = 2 [0, 7], show_lines = 1, line_thickness = 0.5, show_points = 0, point_thickness = 3) {
    real row = figure_row(table, uniform(random)), pick = uniform(random);
    real u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = lines_or_dots(table, row, pick, show_lines, show_points, point_thickness, u, v, w);
    return scaled(weight, p.x, p.y);
}

VARIATION(htree_js, level = 2 [0, 7], size = 2, show_lines = 1, line_thickness = 0.5, show_points = 0,
          point_thickness = 3) {
    real row = figure_row(table, uniform(random)), pick = uniform(random);
    real u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = lines_or_dots(table, row, pick, show_lines, show_points, point_thickness, u, v, w);
    return scaled(weight, p.x, p.y);
}

VARIATION(koch_js, level = 2 [0, 7], show_lines = 1, line_thickness = 0.5, show_points = 0, point_thickness = 3) {
    real row = figure_row(table, uniform(random)), pick = uniform(random);
    real u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = lines_or_dots(table, row, pick, show_lines, show_points, point_thickness, u, v, w);
    return scaled(weight, p.x, p.y);
}

VARIATION(rsquares_js, level = 2 [0, 7], show_lines = 1, line_thickness = 0.5, show_points = 0, point_thickness = 3) {
    real row = figure_row(table, uniform(random)), pick = uniform(random);
    real u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = lines_or_dots(table, row, pick, show_lines, show_points, point_thickness, u, v, w);
    return scaled(weight, p.x, p.y);
}

VARIATION(tree_js, level = 2 [0, 9], show_lines = 1, line_thickness = 0.5, bend_angle = 15, branch_angle = 37,
          branch_ratio = 0.65, show_points = 0, point_thickness = 3) {
    real row = figure_row(table, uniform(random)), pick = uniform(random);
    real u = uniform(random), v = uniform(random), w = uniform(random);
    Pair p = lines_or_dots(table, row, pick, show_lines, show_points, point_thickness, u, v, w);
    return scaled(2.0f * weight, p.x, p.y);
}

VARIATION(sunflower, nPoints = 500 [1, 20000], shape = 10, scale = 0.02, angle = 180, color = 0, F_filling = 0,
          invert = 0) {
    real row = figure_row(table, uniform(random)), u = uniform(random), v = uniform(random), w = uniform(random);
    *color = table_at(table, row + 1.0f);
    Pair p = turned_polygon(table, row, u, v, w);
    return scaled(weight, p.x, p.y);
}

VARIATION(szubieta, width = 128 [1, 256], height = 128 [1, 256], type = 0, scale = 0.5) {
    real i = random_index(uniform(random), width), j = random_index(uniform(random), height);
    real u = uniform(random), v = uniform(random), w = uniform(random);
    whole a = truncated(i), b = truncated(j), n = a * a - 2 * (a | b) + b * b, m = a & (2 * b - 2 * (a ^ b)) & a;
    real t = real_of(type == 0.0f ? n : m), turns = type == 0.0f ? (real)(255.0f) : (real)(256.0f);
    *color = magnitude(remainder_of(t, turns)) * (1.0f / 255.0f);
    Pair p = polygon_place((real)(20.0f), zero_real(), u, v, w);
    return scaled(0.1f * weight, p.x * scale + i - 0.5f * width, p.y * scale + j - 0.5f * height);
}

VARIATION(gpattern, seed = 10000, width = 4, height = 2, lineheight = 0.15 [0.01, 100], angle = 0, randPos = 0,
          randSize = 0, fill = 1 [0, 1], ouline = 0 [0, 1], fill_color = 0, fill_color_speed = 1, outline_color = 0) {
    real row = figure_row(table, uniform(random)), u = uniform(random), v = uniform(random), w = uniform(random);
    *color = table_at(table, row + 1.0f);
    Pair p = turned_polygon(table, row, u, v, w);
    return pair(p.x, p.y);
}

VARIATION(nsudoku, Level = 5 [1, 9], thickness = 0.5, size = 0.5, angle = 0, type = 4) {
    real row = figure_row(table, uniform(random)), u = uniform(random), v = uniform(random), w = uniform(random);
    *color = table_at(table, row + 1.0f);
    Pair p = turned_polygon(table, row, u, v, w);
    return scaled(weight, p.x, p.y);
}

// Dots: a table of their number and places.
VARIATION(text_wf, font_size = 320 [8, 400], antialias = 0.5, scale_x = 1, scale_y = 1, offset_x = 0, offset_y = 0,
          baseline = 0) {
    real n = random_index(uniform(random), table[0]), u = uniform(random), v = uniform(random);
    real a = table_at(table, 1.0f + 2.0f * n), b = table_at(table, 2.0f + 2.0f * n);
    if (antialias > 0.01f) {
        real r = 0.001f * (exponential_of(antialias * sqrt(-logarithm_of(greatest(u, (real)(1e-9f))))) - 1.0f);
        Pair c = circle(TWO_PI * v);
        a = a + r * c.x;
        b = b + r * c.y;
    }
    return pair(3.0f * (a * scale_x + offset_x), 3.0f * (b * scale_y + offset_y));
}

VARIATION(dla_wf, buffer_size = 800 [10, 1000], max_iter = 6000 [1, 10000], seed = 666, scale = 10, jitter = 0.01) {
    real n = random_index(uniform(random), table[0]);
    return scaled(weight, table_at(table, 1.0f + 2.0f * n), table_at(table, 2.0f + 2.0f * n));
}

VARIATION(snowflake_wf, buffer_size = 128 [8, 160], max_iter = 500 [1, 600], bg_freeze_level = 0.5,
          fg_freeze_speed = 0.0005, diffusion_speed = 0.01, diffusion_asymmetry = 1, rnd_bg_noise = 0.25,
          threshold = 0.65, seed = 12345, scale = 1, jitter = 0.001, dc_color = 1, dc_color_scale = 2,
          dc_color_offset = 0.1) {
    real n = random_index(uniform(random), table[0]), row = 1.0f + 3.0f * n;
    if (dc_color > 0.0f) *color = table_at(table, row + 2.0f) * dc_color_scale + dc_color_offset;
    return scaled(weight, table_at(table, row), table_at(table, row + 1.0f));
}
