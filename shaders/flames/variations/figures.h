// Random points of figures; the chain's point does not matter. renderer/flames/variations/figures.py makes most
// tables: the number of rows, then rows of 9 floats, each a line or a polygon:
//     0, color, x and y of both ends, thickness, 0, 0
//     2, color, x and y of the center, size, cosine and sine of the rotation, sides, hole (fraction of the radius)
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// An item that ends in a semicolon has the body of the item before it.

// Origin: JWildfire

// H. N. Yeganeh's figures, a table of lines or circles (variations/yeganeh.py): 1 for circles or 0 for lines, their
// number, and of each x1, y1, x2, y2 or x, y, radius, 0. A twentieth of the points of filled circles is on their edges.
VARIATION(hamid_js, presetId = 0, number_lines_circles = 2000, filled_circles = 1, a = 1, b = 1, c = 1, d = 1, e = 1,
          f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1, m = 1, n = 1, o = 1, p = 1) {
    real row = random_index(uniform(random), table[1]) * 4.0f + 2.0f, along = uniform(random);
    real u = table_at(table, row), v = table_at(table, row + 1.0f), s = table_at(table, row + 2.0f),
         t = table_at(table, row + 3.0f), shrinks = uniform(random), shrunk = uniform(random);
    if (table[0] == 0.0f) return scaled(weight, u + along * (s - u), v + along * (t - v));
    Pair q = from_polar(filled_circles == 1.0f && shrinks > 0.05f ? s * shrunk : s, along * TWO_PI);
    return scaled(weight, u + q.x, v + q.y);
}

// A random pair of times at which a function has nearly the same value. The table (variations/recurrence.py) holds the
// number of times, the share of near pairs, and four numbers for each time. A binary search of the first numbers, which
// are cumulative sums, finds a time. The second number to the third are the ranks of its partners: one is chosen, and
// the fourth number of its rank is its time. A point keeps its color with the probability 1 - that share.
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

// The particles of a cluster as spheres, and a tube from each particle to its parent, to which it stuck. Rows of the
// table (variations/clusters.py): x, y, z and depth of a particle, then of its parent; the depth -1 marks the first
// particle, which has no parent. Radii go from inner_blur_radius to outer_blur_radius; parameters of meshes are ignored.
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
    real radius = inner_blur_radius + narrows * deep, next_radius = inner_blur_radius + narrows * last;
    float share = !nodes || !blurs ? -1.0f : tubes ? 0.333f : 2.0f;  // share of the points on the spheres
    mask node = first || shape < share;
    real ball = junction_scale * (first ? (real)(inner_blur_radius) : tubes ? radius : next_radius);
    // a random vector across the tube: the cross product of its axis and (bx, by, bz)
    real cx = dy * bz - dz * by, cy = dz * bx - dx * bz, cz = dx * by - dy * bx;
    real wide = (radius + (next_radius - radius) * along) / sqrt(cx * cx + cy * cy + cz * cz + 1e-20f);
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
    return scaled3(weight, px + u, py + v, pz + w);
}

// The index of a random row of the table, whose rows have 9 floats.
DEVICE real figure_row(GLOBAL const float *table, real u) { return 1.0f + 9.0f * random_index(u, table[0]); }

// The point of the line in `row` at the fractions u of its length and v, w of its thickness.
DEVICE Pair line_point(GLOBAL const float *table, real row, real u, real v, real w) {
    real ax = table_at(table, row + 2.0f), ay = table_at(table, row + 3.0f), thick = table_at(table, row + 6.0f);
    real dx = table_at(table, row + 4.0f) - ax, dy = table_at(table, row + 5.0f) - ay;
    return pair(ax + u * dx + (v - 0.5f) * thick, ay + u * dy + (w - 0.5f) * thick);
}

DEVICE Pair random_line_point(GLOBAL const float *table, Random *random) {
    real row = figure_row(table, uniform(random)), u = uniform(random), v = uniform(random);
    return line_point(table, row, u, v, uniform(random));
}

// The dragon curve.
VARIATION(dragon_js, level = 2 [0, 13], line_thickness = 0.5) {
    return scaled_pair(weight, random_line_point(table, random));
}

// W. Gosper's island.
VARIATION(gosperisland_js, level = 2 [0, 6], line_thickness = 0.5);

// Random points of the lines and of discs at their beginnings, with probabilities in the ratio `lines` to `dots`.
// `thickness`: the radius of a disc in hundredths.
DEVICE Pair lines_or_dots(GLOBAL const float *table, float lines, float dots, float thickness, Random *random) {
    real row = figure_row(table, uniform(random)), pick = uniform(random);
    real u = uniform(random), v = uniform(random), w = uniform(random);
    Pair dot = from_polar(0.01f * thickness * u, TWO_PI * v);
    dot = pair(table_at(table, row + 2.0f) + dot.x, table_at(table, row + 3.0f) + dot.y);
    return choose2(pick * (lines + dots) < (real)(lines), line_point(table, row, u, v, w), dot);
}

// D. Hilbert's curve.
VARIATION(hilbert_js, level = 2 [0, 7], show_lines = 1, line_thickness = 0.5, show_points = 0, point_thickness = 3) {
    return scaled_pair(weight, lines_or_dots(table, show_lines, show_points, point_thickness, random));
}

// The H tree.
VARIATION(htree_js, level = 2 [0, 7], size = 2, show_lines = 1, line_thickness = 0.5, show_points = 0,
          point_thickness = 3);

// H. von Koch's snowflake.
VARIATION(koch_js, level = 2 [0, 7], show_lines = 1, line_thickness = 0.5, show_points = 0, point_thickness = 3);

// Recursive squares.
VARIATION(rsquares_js, level = 2 [0, 7], show_lines = 1, line_thickness = 0.5, show_points = 0, point_thickness = 3);

// A tree that branches at `branch_angle`.
VARIATION(tree_js, level = 2 [0, 9], show_lines = 1, line_thickness = 0.5, bend_angle = 15, branch_angle = 37,
          branch_ratio = 0.65, show_points = 0, point_thickness = 3) {
    return scaled_pair(2.0f * weight, lines_or_dots(table, show_lines, show_points, point_thickness, random));
}

// A point of a polygon around (0, 0), by three random numbers; JWildfire's density.
DEVICE Pair polygon_point(real sides, real hole, real u, real pick, real far) {
    sides = greatest(sides, (real)(3.0f));
    Pair edge = polygon_edge(sides, floor_of(pick * sides), 13.0f / power_of(sides, (real)(1.3f)), u);
    return swapped(from_polar(edge.x * (hole + sqrt(far) * (1.0f - hole)), edge.y));
}

// A random point of a random polygon of the table, and in `color` the polygon's.
DEVICE Pair random_polygon_point(GLOBAL const float *table, Random *random, real *color) {
    real row = figure_row(table, uniform(random)), u = uniform(random), v = uniform(random), w = uniform(random);
    *color = table_at(table, row + 1.0f);
    Pair p = polygon_point(table_at(table, row + 7.0f), table_at(table, row + 8.0f), u, v, w);
    real size = table_at(table, row + 4.0f), c = table_at(table, row + 5.0f), s = table_at(table, row + 6.0f);
    return pair(size * (p.x * c + p.y * s) + table_at(table, row + 2.0f),
                size * (p.y * c - p.x * s) + table_at(table, row + 3.0f));
}

// The seeds of a sunflower, as polygons.
VARIATION(sunflower, nPoints = 500 [1, 20000], shape = 10, scale = 0.02, angle = 180, color = 0, F_filling = 0,
          invert = 0) {
    return scaled_pair(weight, random_polygon_point(table, random, color));
}

// A Latin square, as polygons.
VARIATION(nsudoku, Level = 5 [1, 9], thickness = 0.5, size = 0.5, angle = 0, type = 4);

// A grid of dots, colored by bit operations on their coordinates.
VARIATION(szubieta, width = 128 [1, 256], height = 128 [1, 256], type = 0, scale = 0.5) {
    real i = random_index(uniform(random), width), j = random_index(uniform(random), height);
    real u = uniform(random), v = uniform(random), w = uniform(random);
    whole a = truncated(i), b = truncated(j), n = a * a - 2 * (a | b) + b * b, m = a & (2 * b - 2 * (a ^ b)) & a;
    real t = real_of(type == 0.0f ? n : m), turns = type == 0.0f ? (real)(255.0f) : (real)(256.0f);
    *color = magnitude(remainder_of(t, turns)) * (1.0f / 255.0f);
    Pair p = polygon_point((real)(20.0f), zero_real(), u, v, w);
    return scaled(0.1f * weight, p.x * scale + i - 0.5f * width, p.y * scale + j - 0.5f * height);
}

// A pattern of random figures, as polygons.
VARIATION(gpattern, seed = 10000, width = 4, height = 2, lineheight = 0.15 [0.01, 100], angle = 0, randPos = 0,
          randSize = 0, fill = 1 [0, 1], ouline = 0 [0, 1], fill_color = 0, fill_color_speed = 1, outline_color = 0) {
    return random_polygon_point(table, random, color);
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

// A cluster of diffusion-limited aggregation.
VARIATION(dla_wf, buffer_size = 800 [10, 1000], max_iter = 6000 [1, 10000], seed = 666, scale = 10, jitter = 0.01) {
    return scaled_pair(weight, random_table_point(table, random));
}

// A snowflake that grew by diffusion.
VARIATION(snowflake_wf, buffer_size = 128 [8, 160], max_iter = 500 [1, 600], bg_freeze_level = 0.5,
          fg_freeze_speed = 0.0005, diffusion_speed = 0.01, diffusion_asymmetry = 1, rnd_bg_noise = 0.25,
          threshold = 0.65, seed = 12345, scale = 1, jitter = 0.001, dc_color = 1, dc_color_scale = 2,
          dc_color_offset = 0.1) {
    real n = random_index(uniform(random), table[0]), row = 1.0f + 3.0f * n;
    if (dc_color > 0.0f) *color = table_at(table, row + 2.0f) * dc_color_scale + dc_color_offset;
    return scaled(weight, table_at(table, row), table_at(table, row + 1.0f));
}
