// Tilings whose cells differ by a hash: noise, bubbles, Voronoi cells, Truchet's tiles, random discs and pixels.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// An item that ends in a semicolon has the body of the item before it.

// Origin: JWildfire

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

// Bubble wrap: a bubble in each square cell; `space` is the gap between bubbles.
VARIATION(bwraps, cellsize = 1, space = 0, gain = 2, inner_twist = 0, outer_twist = 0) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    return in_bubble(weight, x, y, cell_middle(x, cellsize), cell_middle(y, cellsize),
                     (real)(0.5f * cellsize / (1.0f + space * space)), gain * gain + 1e-6f, inner_twist, outer_twist);
}

// bwraps by another name.
VARIATION(bwraps7, cellsize = 1, space = 0, gain = 2, inner_twist = 0, outer_twist = 0);

// Permutes the l x l cells of the square of side `cellsize`. The table holds l, then for each cell the number of the
// cell that its content moves to.
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

// hashed_cell() of the cell (i, j).
DEVICE real lattice_noise(real i, real j) {
    return hashed_cell(whole_of_bits(bits_of_whole(truncated(i)) + bits_of_whole(truncated(j)) * 57u));
}

// A random point of a rectangle that lies in a disc: cells of side 2 Sc have discs of random size, a share Dens of
// them.
VARIATION(circleRand, Sc = 1, Dens = 0.5, X = 10, Y = 10, Seed = 0) {
    real seed1 = uniform(random), seed2 = uniform(random), u = x, v = y, a = x, b = y;
    Random many = stream_of(seed1, seed2);
    mask done = x != x;  // false, except for NaN
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

// Scales by k about the nearest of the cells' hashed points, up to `num` in each: the pieces are Voronoi cells.
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

// Origin: Fractorium

// 43758 sin(x kx + y ky + seed), whose fraction shaders use as noise. The phase is a sum of two floats, and a factor is
// a float and a rest, because the noise magnifies rounding by 43758. `a_rest`, `b_rest`: rounding errors of the products
// and the rests of their factors; `lost` and the last term: errors of both sums (D. Knuth's two-sum).
DEVICE real sine_hash(real x, real y, float kx, float kx_rest, float ky, float ky_rest, float seed) {
    real a = x * kx, b = y * ky, sum = a + b, phase = sum + seed;
    real a_rest = FUSED(x, (real)(kx), -a) + x * kx_rest, b_rest = FUSED(y, (real)(ky), -b) + y * ky_rest;
    real part = sum - a, lost = (a - (sum - part)) + (b - part), of_seed = phase - sum;
    real rest = a_rest + b_rest + lost + ((sum - (phase - of_seed)) + (seed - of_seed));
    Pair c = circle(phase);
    return (c.y + rest * c.x) * 43758.5453f;
}

// sine_hash() with the factors 12.9898 and 78.233, which most shaders use.
DEVICE real usual_hash(real x, real y, float seed) {
    return sine_hash(x, y, 12.9898f, -4.531860e-07f, 78.233f, -1.708984e-06f, seed);
}

// Noise from 0 to 1 of two numbers.
DEVICE real sine_noise(real x, real y, float seed) { return wrap_unit(usual_hash(x, y, seed)); }

// Origin: JWildfire

// 0 or 1 at random for the pixel of (x, y).
DEVICE real pixel_bit(real x, real y) { return step_at((real)(0.5f), sine_noise(floor_of(x), floor_of(y), 0.0f)); }

// Random pixels, 0 or 1, with rounded corners.
DEVICE real rounded_pixels(real x, real y) {
    real u = 2.0f * wrap_unit(x) - 1.0f, v = 2.0f * wrap_unit(y) - 1.0f, d = vnorm(u, v), mine = pixel_bit(x, y);
    real dx = 0.9f * sign_of(u), dy = 0.9f * sign_of(v), beside = pixel_bit(x + dx, y), above = pixel_bit(x, y + dy);
    mask corner = mine == pixel_bit(x + dx, y + dy) && mine != beside;
    real other = beside != above ? mine : corner ? zero_real() : beside;
    return d < 1.0f ? mine : blend(mine, other, smooth_step(d, (real)(1.0f), (real)(1.01f)));
}

// Keeps the white ones of the random pixels: of the chain's point (mode 0) or of a random point of a square. The table
// holds the offsets of the pattern.
REPLACING(cut_fun, seed = 1000, mode = 1 [0, 1], zoom = 10, invert = 0 [0, 1]) {
    real u = uniform(random), v = uniform(random), middle = (real)(mode < 1.0f ? 0.0f : 0.5f);
    u = mode < 1.0f ? x : u;
    v = mode < 1.0f ? y : v;
    real shade = rounded_pixels(u * zoom + table[0], v * zoom + table[1]);
    mask cut = invert < 1.0f ? shade > 0.0f : shade <= 0.0f;
    *hidden = cut;
    return scaled(weight, (cut ? zero_real() : u) - middle, (cut ? zero_real() : v) - middle);
}

// Origin: Fractorium

// bwraps with a bubble of random radius in each cell.
VARIATION(bwraps_rand, cellsize = 1, space = 0, gain = 2, inner_twist = 0, outer_twist = 0, symm = 0, seed = 1) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    real cx = cell_middle(x, cellsize), cy = cell_middle(y, cellsize);
    real radius = 0.5f * cellsize / (1.0f + space * space);
    radius = radius * (symm == 0.0f ? sine_noise(cx, cy, seed) : sine_noise(cx * cx, cy * cy, seed));
    return in_bubble(weight, x, y, cx, cy, radius, gain * gain, inner_twist, outer_twist);
}

// Each cell consists of nested square rings, which turn by quarter turns as the ring's number says.
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

// A point whose radius and angle are noise of the point's cell.
VARIATION(dust, density = 5, distortion = 1, power = 1) {
    real u = remainder_of(floor_of(magnitude(x)), (real)(density)) / density;
    real v = remainder_of(floor_of(magnitude(y)), (real)(density)) / density;
    real r = power_of(v + sine_noise(v, u, 2.0f) * distortion, (real)(power));
    return from_polar(weight * r, TWO_PI * (u + sine_noise(u, v, 1.0f) * distortion));
}

// The corner (i, j) of a jittered grid.
DEVICE Pair crackle_corner(real i, real j, float size) {
    return pair(i + sine_noise(i, j, 2.76399582f) / size, j + sine_noise(j, 3.0f * i, 3.48081051f) / size);
}

// A random point of the line between two neighbors of a jittered grid.
VARIATION(crackle2, cellsize = 1 [0.0001, 1e30]) {
    real i = floor_of(x), j = floor_of(y), step = random_sign((real)(1.0f), random);
    mask upward = uniform(random) < 0.5f;
    Pair p = crackle_corner(i, j, cellsize);
    Pair q = crackle_corner(upward ? i : i + step, upward ? j + step : j, cellsize);
    real t = uniform(random);
    return scaled(cellsize, p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t);
}

// The point k, 0 to 6, of the border of a hexagon of radius 1, as its radius and angle: floor(k) chooses the side, and
// the fraction t is the position along it from a corner; `bend` is the angle from that corner, by the law of sines.
DEVICE Pair hexagon_point(real k) {
    real i = floor_of(k), t = k - i, h = sqrt(1.0f + t * t - t), bend = arcsine(0.8660254037844386f * t / h);
    real half_turn = floor_of(0.5f * i);
    return pair(h, TWO_PI / 3.0f * half_turn + (is_odd(i) ? bend : -bend) - 0.5f * PI);
}

// A random point of a random hexagon of the grid; noise decides on its size and whether it is there.
VARIATION(hex_rand, x = 10, y = 10, size = 1, power = 1, density = 1, seed = 1) {
    Pair h = hexagon_point(6.0f * uniform(random));
    real i = floor_of(uniform(random) * (2.0f * hex_rand_x)) - hex_rand_x,
         j = floor_of(uniform(random) * (2.0f * hex_rand_y)) - hex_rand_y;
    real u = i + 0.5f * j, v = 0.8660254037844386f * j, n = power_of(sine_noise(u, v, seed), (real)(power));
    Pair p = from_polar(0.5f * size * h.x * sqrt(uniform(random)) * 1.1547005383792515f * n, h.y);
    real k = sine_noise(v, u, seed) < density ? (real)(weight) : zero_real();
    return scaled(k, p.x + u, p.y + v);
}

// A random point of three arcs in a random hexagon of the grid, which noise turns by 60 degrees.
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

// A random point of a band in the point's cell: upright in even cells, level in odd ones.
VARIATION(truchet_knot) {
    real i = floor_of(x), j = floor_of(y), u = 0.5f * (uniform(random) - 0.5f),
         v = 0.65f * (2.0f * uniform(random) - 1.0f);
    mask odd = is_odd(magnitude(i + j));
    return scaled(weight, i + (odd ? -v : u), j + (odd ? u : v));
}

// In a disc of random size in its cell a point is scaled by K, or moved out into the ring from (1 - K) of the disc's
// radius to its border.
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
    real n = (real)(e), o = (real)(1.0f / e), a = flipped ? 1.0f - u : u, b = 1.0f - a;
    real most = 0.5f * (power_of((real)(2.0f), o) - 1.0f) * width;
    real first = power_of(power_of(a, n) + power_of(v, n), o),
         last = power_of(power_of(b, n) + power_of(1.0f - v, n), o);
    return pair(magnitude(first - 0.5f) / most, magnitude(last - 0.5f) / most);
}

// Whether the tile (i, j) is mirrored: the parity of a step of a linear congruential generator, by floats as in the
// origin; seeds 0 and 1 give all tiles one kind.
DEVICE mask truchet_flips(real i, real j, float seed) {
    float k = sqrt(1.5f * seed) / (0.5f * seed + 1e-30f) * 0.25f;
    real a = i * k, b = j * k, t = (a + b + a * b + seed) * (0.5f * k) * 32747.0f + 12345.0f;
    real kind = remainder_of(remainder_of(t, (real)(65535.0f)), (real)(2.0f));
    if (seed == 0.0f) kind = zero_real();
    return (seed == 1.0f ? (real)(1.0f) : kind) >= 1.0f;
}

// As truchet_flips() by whole numbers, with at most 20 steps of the generator.
DEVICE mask truchet_flips_in_steps(real i, real j, float seed) {
    whole n = truncated(magnitude(i + j + i * j)), r = n + truncated((real)(floor(seed)));
    for (int k = 0; k < 20; k++) r = (whole)(k) < n ? (r * 32747 + 12345) % 65535 : r;
    if (seed == 0.0f || seed == 1.0f) r = truncated((real)(seed));
    return r % 2 != 1;
}

// Points on the arcs of Truchet's tiles; the others move to the origin.
VARIATION(truchet, extended = 1, exponent = 2, arc_width = 0.5, rotation = 0, size = 1, seed = 50) {
    Pair c = circle((real)(rotation));
    real k = (c.x + c.y) / weight, i = nearest(x), j = nearest(y), u = wrap_unit(x * k), v = wrap_unit(y * k);
    mask flipped = extended == 0.0f ? truchet_flips(i, j, fabs(seed)) : truchet_flips_in_steps(i, j, fabs(seed));
    Pair arcs = truchet_arcs(u, v, exponent, arc_width, flipped);
    real count = (arcs.x < 1.0f ? (real)(size) : zero_real()) + (arcs.y < 1.0f ? (real)(size) : zero_real());
    return scaled(count, u + floor_of(x), v + floor_of(y));
}

// Twice the tile's point for each of the two arcs that holds it, minus the point.
VARIATION(truchet_fill, exponent = 2, arc_width = 0.5, seed = 0) {
    real u = wrap_unit(x / weight), v = wrap_unit(y / weight);
    mask flipped = truchet_flips(floor_of(magnitude(x) + 0.5f), floor_of(magnitude(y) + 0.5f), seed);
    Pair arcs = truchet_arcs(u, v, exponent, arc_width, flipped);
    real count = (arcs.x < 1.0f ? (real)(2.0f) : zero_real()) + (arcs.y < 1.0f ? (real)(2.0f) : zero_real());
    return pair(count * (u + floor_of(x)) - x, count * (v + floor_of(y)) - y);
}

// Points off the arcs of Truchet's tiles; the others move to the origin.
VARIATION(Truchet_inv, exponent = 2, arc_width = 0.5, rotation = 0, size = 1, seed = 1) {
    Pair c = circle((real)(rotation));
    real k = (c.x + c.y) / weight, u = wrap_unit(x * k), v = wrap_unit(y * k);
    mask flipped = truchet_flips(floor_of(x + 0.5f), floor_of(y + 0.5f), seed);
    Pair arcs = truchet_arcs(u, v, exponent, arc_width, flipped);
    return scaled((arcs.x > 1.0f && arcs.y > 1.0f) ? (real)(size) : zero_real(), u + floor_of(x), v + floor_of(y));
}

// truchet_fill inside of rotated squares, a grid of side `amp`; the identity outside.
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

// Points on the arcs of Truchet's tiles, whose width and exponent vary along x; others move far out of the picture.
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

// A random point of a disc of random size, one in each cell, near the point turned by its radius.
VARIATION(r_circleblur, n = 1, seed = 0, dist = 0.5, min = 0.1, max = 1) {
    real r = remainder_of(vnorm(x, y), (real)(fabs(n))), a = angle_of(y, x) + r;
    Pair c = from_polar(r, a);
    real u = nearest(c.x), v = nearest(c.y);
    real size = fraction_of(usual_hash(v, u, seed)) * (max - min) + min;
    real down = fraction_of(sine_hash(u, v, 127.1f, 1.525879e-06f, 311.7f, -1.220703e-05f, seed)) * dist + v;
    real across = fraction_of(sine_hash(u, v, 269.5f, 0.000000e+00f, 183.3f, -3.051758e-06f, seed)) * dist + u;
    real far = 0.5f * size * sqrt(uniform(random));
    Pair p = from_polar(far, TWO_PI * uniform(random));
    return scaled(weight, p.x + across, p.y + down);
}

// (x, y) turned by up to `angle` degrees to either side: by a random number u, 0 to 1, and the fraction of a hash.
DEVICE Pair turned_at_random(float weight, real x, real y, float angle, real hash, real u) {
    real turn = 2.0f * (u + fraction_of(hash)) - 2.0f;
    return from_polar(weight * vnorm(x, y), angle_of(y, x) + turn * (angle * (PI / 180.0f)));
}

// Turns the point at random, with noise of given factors.
VARIATION(circular2, angle = 90, seed = 0, xx = 12.9898, yy = 78.233) {
    return turned_at_random(weight, x, y, angle, sine_hash(x, y, xx, 0.0f, yy, 0.0f, seed), uniform(random));
}

// Turns the point at random, with noise of the point.
VARIATION(circular, angle = 90, seed = 0) {
    return turned_at_random(weight, x, y, angle, usual_hash(x, y, seed), uniform(random));
}
