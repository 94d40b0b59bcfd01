// Noise: hashed lattices, Perlin's and Worley's noise, as displacements and as direct color.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: JWildfire

// The sum a of the angles around 100 hashed points that move with time, as a color.
STAMP(dc_gabornoise, seed = 10000, time = 0, zoom = 20) {
    real a = zero_real();
    real s = magnitude(p.x * zoom) * 45.0f, t = p.y * zoom * 45.0f;
    for (int k = 0; k < 100; k++) {
        real i = (real)((float)k);
        real hx = 30.0f * (2.0f * wrap_unit(sine_of(63.31f * i) * 43141.59265f) - 1.0f);
        real hy = 30.0f * (2.0f * wrap_unit(sine_of(395.467f * i) * 43141.59265f) - 1.0f);
        real hz = 30.0f * (2.0f * wrap_unit(sine_of(i) * 43141.59265f) - 1.0f), c = cosine_of(hz / 100.0f * time);
        real mx = hx * c + hy * (33.0f + c), my = hx * (11.0f + c) + hy * c;
        a = a + rough_angle(s - mx, t - my);
    }
    return triple(0.6f * cosine_of(a) + 0.6f, 0.6f * cosine_of(a + 23.0f) + 0.6f, 0.6f * cosine_of(a + 21.0f) + 0.6f);
}

// Caustics of water: `level` steps of sines that distort the point; bright where they meet.
STAMP(dc_turbulence, seed = 10000, time = 0 [1, 1000], zoom = 8, level = 3 [1, 5]) {
    real c = (real)(1.0f);
    real a = p.x * zoom - 20.0f, b = p.y * zoom - 20.0f, u = a, v = b;
    for (int i = 0; (float)i < level; i++) {
        float t = time * (1.0f - 3.0f / (float)(i + 1));
        real nu = a + cosine_of(t - u) + sine_of(t + v), nv = b + sine_of(t - v) + cosine_of(t + u);
        u = nu;
        v = nv;
        c = c + 1.0f / vnorm(a / (sine_of(u + t) * 20.0f), b / (cosine_of(v + t) * 20.0f));
    }
    c = 1.5f - sqrt(c / level);
    return gray(square(square(c)));
}

// The fraction of 43758.5453 sin(2 pi (a s + b t)), s and t whole: a and b are floats with their rests, as single
// precision would lose the fraction. They are the origins' constants over 2 pi: 127.1 and 311.7, 269.5 and 183.3, 419.2
// and 371.9.
DEVICE real fraction_of_sine(real s, real t, float a, float a_rest, float b, float b_rest) {
    real p = s * a, q = t * b, rest = FUSED(s, a, -p) + FUSED(t, b, -q) + s * a_rest + t * b_rest;
    real turns = p - nearest(p) + (q - nearest(q)) + rest;
    return wrap_unit(sine_of(TWO_PI * (turns - nearest(turns))) * 43758.5453123f);
}

// Voronoise (I. Quilez): deltaX from a lattice to random cells, deltaY from cells to smooth noise.
STAMP(dc_voronoise, zoom = 8, deltaX = 0.5 [0, 1], deltaY = 0.5 [0, 1]) {
    real sum = zero_real(), weights = zero_real();
    real a = p.x * zoom, b = p.y * zoom, ia = floor_of(a), ib = floor_of(b);
    float w = (1.0f - deltaY) * (1.0f - deltaY), k = 1.0f + 63.0f * w * w;
    for (int j = -2; j <= 2; j++)
        for (int i = -2; i <= 2; i++) {
            real s = ia + (float)i, t = ib + (float)j;
            real ox = fraction_of_sine(s, t, 20.228594f, -5.5931406e-7f, 49.608597f, -1.040014e-6f) * deltaX;
            real oy = fraction_of_sine(s, t, 42.892258f, -5.271639e-7f, 29.173101f, -3.5642648e-7f) * deltaX;
            real oz = fraction_of_sine(s, t, 66.71775f, 1.5948061e-6f, 59.189724f, -6.3262996e-7f);
            real d = vnorm(s - a + ox, t - b + oy);
            real ww = power_of(1.0f - smooth_step(zero_real(), (real)(1.414f), d), (real)(k));
            sum = sum + oz * ww;
            weights = weights + ww;
        }
    return gray(sum / weights);
}

// A hash of the integers x and y, -1 to 1.
DEVICE real warp_hash(real x, real y) {
    return 2.0f * fraction_of_sine(x, y, 20.228594f, -5.5931406e-7f, 49.608597f, -1.040014e-6f) - 1.0f;
}

// Value noise on the integer lattice, -1 to 1.
DEVICE real warp_noise(real x, real y) {
    real ix = floor_of(x), iy = floor_of(y), fx = x - ix, fy = y - iy, ux = fx * fx * fx, uy = fy * fy * fy;
    // the origin's smoothing is f^2 (3 - 2) f
    return blend(blend(warp_hash(ix, iy), warp_hash(ix + 1.0f, iy), ux),
                 blend(warp_hash(ix, iy + 1.0f), warp_hash(ix + 1.0f, iy + 1.0f), ux), uy);
}

// Four octaves of value noise, each turned against the last (fractal Brownian motion).
DEVICE real warp_sum(real x, real y) {
    real f = zero_real();
    for (int k = 0; k < 4; k++) {
        float weight = k == 0 ? 0.5f : k == 1 ? 0.25f : k == 2 ? 0.125f : 0.0625f;
        float zoom = k == 0 ? 2.02f : k == 1 ? 2.03f : 2.01f;
        f = f + weight * warp_noise(x, y);
        real a = x * zoom, b = y * zoom;
        x = 0.8f * a - 0.6f * b;
        y = 0.6f * a + 0.8f * b;
    }
    return f / 0.9375f;
}

// The color at (x, y): noise of points that noise of noise has displaced (domain warping, I. Quilez).
DEVICE Triple warp_map(real x, real y) {
    x = 0.7f * x;
    y = 0.7f * y;
    real a = warp_sum(4.0f * x, 4.0f * y), b = warp_sum(4.0f * y, 4.0f * x);
    real s = 2.0f * (x + a), t = 2.0f * (y + b), u = x + warp_sum(s, t), v = y + warp_sum(t, s);
    real f = warp_sum(u, v) - warp_sum(v, u), k = smooth_step((real)(-0.8f), (real)(0.8f), f);
    real m = smooth_step((real)(-1.0f), (real)(1.0f), warp_sum(x, y));
    return triple(blend(blend((real)(0.5f), (real)(1.0f), m), zero_real(), k),
                  blend(blend(zero_real(), (real)(0.75f), m), zero_real(), k),
                  blend(blend(zero_real(), (real)(0.35f), m), (real)(0.02f), k));
}

// Domain warping, shaded by its gradient: e is the step of the differences, n the height of the unit normal, k a light
// where the differences are large; f darkens the border of the picture.
STAMP(dc_warping, randomize = 0, zoom = 1, x0 = 0) {
    real a = p.x * zoom + x0, b = p.y * zoom + x0, e = (real)(0.0045f);
    Triple c = warp_map(a, b), r = warp_map(a + e, b), s = warp_map(a, b + e);
    real gc = 0.333f * (c.x + c.y + c.z), ga = 0.333f * (r.x + r.y + r.z), gb = 0.333f * (s.x + s.y + s.z);
    real n = e / sqrt(square(ga - gc) + e * e + square(gb - gc)), k = 8.0f * magnitude(2.0f * gc - ga - gb);
    real m = 1.0f + 0.2f * n * n, q = 0.05f * n * n * n, s0 = 0.5f * (p.x + 1.0f), t0 = 0.5f * (p.y + 1.0f);
    real f = power_of(greatest(16.0f * s0 * t0 * (1.0f - s0) * (1.0f - t0), zero_real()), (real)(0.1f));
    return scaled3(f, (c.x + k) * m + q, (c.y + 0.7f * k) * m + q, (c.z + 0.6f * k) * m + q);
}

// Worley noise: lines where the distances `first`, `second` and `third` to the nearest points of nine cells are close.
STAMP(dc_worley, zoom = 7 [0.1, 50], pattern = 70 [0.1, 100], distort = 1 [0, 1]) {
    real first = (real)(1e9f), second = first, third = first;
    real a = p.x * zoom, b = p.y * zoom;
    for (int k = 0; k < 9; k++) {
        real s = -floor_of(-a) + (float)(k % 3) - 2.0f, t = -floor_of(-b) + (float)(k / 3) - 2.0f;
        real h = 1e4f * sine_of(s + t / (pattern * 0.01f));
        real du = wrap_unit(h) * distort * 0.75f + 0.3f + s - a,
             dv = wrap_unit(h + 0.34f) * distort * 0.75f + 0.3f + t - b;
        real l = du * du + dv * dv, f1 = first, f2 = second;
        // the nearest moves the old nearest to both other places, as in the origin
        third = l < f1 ? f1 : l < f2 ? f2 : l < third ? l : third;
        second = l < f1 ? f1 : l < f2 ? l : f2;
        first = l < f1 ? l : f1;
    }
    real s = 5.0f * (sqrt(second) - sqrt(first)), t = 5.0f * (sqrt(third) - sqrt(first));
    return gray(4.0f * (s / (s / t + 1.0f) - 0.5f));
}

// T. Wang's hash of a 32-bit integer.
DEVICE whole mangled(whole a) {
    a = (a ^ 61) ^ (a >> 16);
    a = a + (a << 3);
    a = a ^ (a >> 4);
    a = whole_of_bits(bits_of_whole(a) * 0x27d4eb2du);
    return a ^ (a >> 15);
}

// The hash as a number from -1 to 1.
DEVICE real mangled_unit(whole a) { return real_of(mangled(a)) * 4.656612875245797e-10f; }

// a b modulo 2^32; overflow of a signed product would be undefined.
DEVICE whole times(whole a, whole b) { return whole_of_bits(bits_of_whole(a) * bits_of_whole(b)); }

// The cell of u, up to 2 cells further by a hash. `one` is 1 in each lane: a vector takes no plain integer.
DEVICE whole jittered_cell(real u, float width, whole key, whole one) {
    real cell = floor_of(u * width);
    return truncated(truncation(cell + 2.0f - 4.0f * mangled_unit(times(truncated(cell), key) + one)));
}

// Moves cells of 1 / width in the direction `angle` by a hash of the cell, with a falling trail.
VARIATION(pixel_flow, angle = 90, len = 0.1, width = 200, seed = 42, enable_dc = 0) {
    Pair c = circle((real)(angle * 0.0174532925f));
    real r = uniform(random);
    whole key = truncated((real)(seed)), one = key * 0 + 1;
    whole a = jittered_cell(x, width, key, one), b = jittered_cell(y, width, key, one), b_seed = times(b, key);
    b_seed = (b_seed + (b_seed < 0 ? one : one * 0)) >> 1;  // b_seed / 2, toward 0
    real far = 0.5f * (mangled_unit(b + times(a, -key)) + mangled_unit(a + b_seed)) * square(square(r));
    if (enable_dc == 1.0f) *color = r;
    return scaled(weight * len * far, c.x, c.y);
}

// x, mirrored at `shift` in every n-th cell.
DEVICE real mirrored_cell(real x, float scale, float shift, float n) {
    real cell = floor_of((x - shift) * scale), rest = cell - n * truncation(cell / n);
    mask mirrored = cell >= 0.0f ? rest == n - 1.0f : rest == 0.0f;
    return scale != 0.0f && mirrored ? 2.0f * shift - x : x;
}

// Mirrors slabs of each axis and scales the point by a hash of its cell.
VARIATION_3D(glitchy1, scale_x = 1, shift_x = 0, n_x = 2 [1, 100], scale_y = 1, shift_y = 0, n_y = 2 [1, 100],
             scale_z = 0, shift_z = 0, n_z = 2 [1, 100], width = 1, seed = 42, angle = 30, u = 1, v = 1, w = 1) {
    Pair c = circle((real)(angle * 0.0174532925f));
    real p = u * x, q = v * (c.x * p + c.y * y), r = w * (c.x * p - c.y * y);
    whole key = truncated((real)(seed)), one = key * 0 + 1;
    whole i = jittered_cell(p, width, key, one), j = jittered_cell(q, width, key, one);
    whole k = jittered_cell(r, width, key, one), scaled_key = times(k, key);
    scaled_key = (scaled_key + (scaled_key < 0 ? one : one * 0)) >> 1;  // scaled_key / 2, toward 0
    real far = weight * (mangled_unit(i + j + times(k, -key)) + mangled_unit(i + j + scaled_key));
    return scaled3(far, mirrored_cell(x, scale_x, shift_x, n_x), mirrored_cell(y, scale_y, shift_y, n_y),
                   mirrored_cell(z, scale_z, shift_z, n_z));
}

// One corner's term of simplex noise. Its gradient: three components of -1 to 1, 10 bits each of the hash h.
DEVICE real noise_corner(bits h, real x, real y, real z) {
    real t = 0.6f - x * x - y * y - z * z;
    real gx = real_of(whole_of_bits(h & 1023u)) * (1.0f / 511.5f) - 1.0f;
    real gy = real_of(whole_of_bits(h >> 10 & 1023u)) * (1.0f / 511.5f) - 1.0f;
    real gz = real_of(whole_of_bits(h >> 20 & 1023u)) * (1.0f / 511.5f) - 1.0f;
    return t > 0.0f ? square(square(t)) * (gx * x + gy * y + gz * z) : zero_real();
}

// A hash of the integers i, j and k.
DEVICE bits lattice_hash(real i, real j, real k) {
    bits a = bits_of_whole(truncated(i)), b = bits_of_whole(truncated(j)), c = bits_of_whole(truncated(k));
    return mixed(a + mixed(b + mixed(c + 0x68e31da4u)));
}

// Simplex noise of space (K. Perlin), -1 to 1, with hashed gradients: the origin takes its gradients from a table, so
// that single bumps lie elsewhere.
DEVICE real simplex_noise(real x, real y, real z) {
    real skew = (x + y + z) * (1.0f / 3.0f), i = floor_of(x + skew), j = floor_of(y + skew), k = floor_of(z + skew);
    real back = (i + j + k) * (1.0f / 6.0f), u = x - i + back, v = y - j + back, w = z - k + back;
    real zero = zero_real(), one = (real)(1.0f);
    mask uv = u >= v, vw = v >= w, uw = u >= w;
    real i1 = uv && uw ? one : zero, j1 = !uv && vw ? one : zero, k1 = one - i1 - j1;
    real k2 = u >= v ? (v >= w ? zero : one) : (v < w ? one : (u < w ? one : zero));
    real i2 = u >= v ? one : (v < w ? zero : (u < w ? zero : one));
    real j2 = 2.0f - i2 - k2;
    float g = 1.0f / 6.0f;
    real n = noise_corner(lattice_hash(i, j, k), u, v, w);
    n = n + noise_corner(lattice_hash(i + i1, j + j1, k + k1), u - i1 + g, v - j1 + g, w - k1 + g);
    n = n + noise_corner(lattice_hash(i + i2, j + j2, k + k2), u - i2 + 2.0f * g, v - j2 + 2.0f * g, w - k2 + 2.0f * g);
    n = n + noise_corner(lattice_hash(i + one, j + one, k + one), u - 0.5f, v - 0.5f, w - 0.5f);
    return 32.0f * n;
}

// The center of cell (i, j): on a grid of `size`, displaced by `distort` times noise.
DEVICE Pair crackle_center(real i, real j, float z, float size, float distort) {
    if (distort == 0.0f) return pair(i * size, j * size);
    real a = simplex_noise(2.5f * i, 2.5f * j, (real)(2.5f * z));
    real b = simplex_noise(2.5f * j + 30.2f, 2.5f * i - 12.1f, (real)(2.5f * z + 19.8f));
    return pair((i + distort * a) * size, (j + distort * b) * size);
}

// A random point of a blurred disc, moved toward the center of its Voronoi cell. *ratio: 0 at the center, 1 on the
// border.
DEVICE Pair crackled(float weight, float cellsize, float power, float distort, float scale, float plane, real *ratio,
                     Random *random) {
    real first = uniform(random), second = uniform(random), third = uniform(random), turn = uniform(random);
    real blur = 0.5f * (first + second) + 0.25f * (third - 0.5f);
    Pair u = swapped(from_polar(blur, TWO_PI * turn));
    float size = 0.5f * cellsize;
    real i = floor_of(u.x / size), j = floor_of(u.y / size), ni = i, nj = j, least_d = (real)(1e30f);
    for (int k = 0; k < 9; k++) {
        real a = i + (float)(k / 3 - 1), b = j + (float)(k % 3 - 1);
        Pair p = crackle_center(a, b, plane, size, distort);
        real d = square(p.x - u.x) + square(p.y - u.y);
        mask nearer = d < least_d;
        least_d = nearer ? d : least_d;
        ni = nearer ? a : ni;
        nj = nearer ? b : nj;
    }
    Pair q = crackle_center(ni, nj, plane, size, distort);
    real l = (real)(-1e20f);
    for (int k = 0; k < 9; k++) {
        if (k == 4) continue;
        Pair p = crackle_center(ni + (float)(k / 3 - 1), nj + (float)(k % 3 - 1), plane, size, distort);
        l = greatest(l, cell_ratio(p, q, u));  // 1 on the border with the neighbor p
    }
    l = greatest(l, (real)(1e-30f));
    *ratio = l;
    real r = power_of(l, (real)(power)) * scale / l;
    return scaled(weight, q.x + (u.x - q.x) * r, q.y + (u.y - q.y) * r);
}

// crackled() without a color.
VARIATION(crackle, cellsize = 1, power = 0.2, distort = 0, scale = 1, z = 0) {
    real ratio;
    if (cellsize == 0.0f) return scaled(zero_real(), x, y);
    return crackled(weight, cellsize, power, distort, scale, crackle_z, &ratio, random);
}

// crackled(), colored by the closeness to the border.
VARIATION(dc_crackle_wf, cellsize = 1, power = 0.2, distort = 0, scale = 1, z = 0, color_scale = 0.5,
          color_offset = 0) {
    real ratio;
    if (cellsize == 0.0f) return scaled(zero_real(), x, y);
    Pair p = crackled(weight, cellsize, power, distort, scale, dc_crackle_wf_z, &ratio, random);
    *color = clamped(ratio * color_scale + color_offset, zero_real(), (real)(1.0f));
    return p;
}

// A random point of a square (shape 0), a triangle-weighted disc (1) or a disc (2), and in *far how deep it lies in the
// blurred edge, 0 to 1.
DEVICE Pair perlin_point(float shape, float edge, real u, real v, real w, real *far) {
    real r = (1.0f + edge) * (shape == 2.0f ? u : (u + v > 1.0f ? 2.0f - u - v : u + v));
    Pair p = swapped(from_polar(0.5f * r, TWO_PI * w));
    if (shape == 0.0f) {
        p = pair((1.0f + edge) * (u - 0.5f), (1.0f + edge) * (v - 0.5f));
        r = p.x * p.x > p.y * p.y ? p.x : p.y;
    }
    *far = edge > 0.0f && shape >= 0.0f ? greatest(0.5f * (r - 1.0f + edge) / edge, zero_real()) : zero_real();
    return p;
}

// Random points whose noise lies between `low` and `high`, drawn up to select_bailout + 1 times; colored by the noise.
// `far`, the depth in the blurred edge, moves the noise of edge points away from 0, out of an interval around it.
VARIATION(dc_perlin, shape = 0, map = 0, select_centre = 0, select_range = 1, centre = 0.25, range = 0.25, edge = 0,
          scale = 1, octaves = 2 [1, 10], amps = 2, freqs = 2, z = 0, select_bailout = 10 [1, 100], color_only = 0) {
    real r1 = uniform(random), r2 = uniform(random), px = x, py = y, shade = zero_real();
    Random many = stream_of(r1, r2);
    float low = select_centre - select_range, high = select_centre + select_range;
    low = low > 0.75f ? 0.75f : low < -2.0f ? -3.0f : low;
    high = high < -0.75f ? -0.75f : high > 3.0f ? 3.0f : high;
    mask done = px != px;  // false, except for NaN
    for (int k = 0; (float)k <= select_bailout; k++) {
        real u = uniform(&many), v = uniform(&many), w = uniform(&many), far;
        if (color_only > 0.0f && shape == 0.0f) {
            u = x;
            v = y;
        }
        Pair p = perlin_point(shape, edge, u, v, w, &far);
        real d = p.x * p.x + p.y * p.y, m = (real)(scale), h = (real)(dc_perlin_z);
        if (map == 1.0f) m = scale / (d + 1e-8f);
        if (map == 2.0f) m = scale / (d + 0.5f);
        if (map == 3.0f) m = scale / (d + 0.25f);
        if (map > 3.0f) h = h + (map > 4.0f ? 2.0f : 1.0f) * sqrt(magnitude(0.25f - d));
        real a = p.x * m, b = p.y * m, c = h * scale, n = zero_real();
        float size = 1.0f;
        for (int o = 0; (float)o < octaves; o++) {
            n = n + simplex_noise(a, b, c) / size;
            size *= amps;
            a = a * freqs;
            b = b * freqs;
            c = c * freqs;
        }
        real e = n * (1.0f + far * far * 20.0f) + (n > 0.0f ? 2.0f * far : -2.0f * far);
        px = done ? px : p.x;
        py = done ? py : p.y;
        shade = done ? shade : n;
        done = done || (e >= low && e <= high);
        if (!ANY_LANE(!done)) break;
    }
    *color = wrap_unit(centre + range * shade);
    return scaled(weight, px, py);
}
