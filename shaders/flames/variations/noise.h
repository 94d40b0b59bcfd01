// Cells and colors of noise.
// Origin: JWildfire

// Eight unit-size gradients a lattice place: components of a hash, -1 to 1.
DEVICE real noise_corner(bits h, real x, real y, real z) {
    real t = 0.6f - x * x - y * y - z * z;
    real gx = real_of(whole_of_bits(h & 1023u)) * (1.0f / 511.5f) - 1.0f;
    real gy = real_of(whole_of_bits(h >> 10 & 1023u)) * (1.0f / 511.5f) - 1.0f;
    real gz = real_of(whole_of_bits(h >> 20 & 1023u)) * (1.0f / 511.5f) - 1.0f;
    return t > 0.0f ? square(square(t)) * (gx * x + gy * y + gz * z) : zero_real();
}

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
    real k2 = !uw || (!vw && !(uv && uw)) ? one : zero, i2 = uv || (uw && !(!uv && vw)) ? one : zero;
    k2 = u >= v ? (v >= w ? zero : one) : (v < w ? one : (u < w ? one : zero));
    i2 = u >= v ? one : (v < w ? zero : (u < w ? zero : one));
    real j2 = 2.0f - i2 - k2;
    float g = 1.0f / 6.0f;
    real n = noise_corner(lattice_hash(i, j, k), u, v, w);
    n = n + noise_corner(lattice_hash(i + i1, j + j1, k + k1), u - i1 + g, v - j1 + g, w - k1 + g);
    n = n + noise_corner(lattice_hash(i + i2, j + j2, k + k2), u - i2 + 2.0f * g, v - j2 + 2.0f * g, w - k2 + 2.0f * g);
    n = n + noise_corner(lattice_hash(i + one, j + one, k + one), u - 0.5f, v - 0.5f, w - 0.5f);
    return 32.0f * n;
}

// How far u is from q toward p: 1 on the line half way.
DEVICE real cell_ratio(Pair p, Pair q, Pair u) {
    real dx = p.x - q.x, dy = p.y - q.y, d = dx * dx + dy * dy;
    return d == 0.0f ? (real)(1.0f) : 2.0f * ((u.x - q.x) * dx + (u.y - q.y) * dy) / d;
}

DEVICE Pair crackle_place(real i, real j, float z, float size, float distort) {
    if (distort == 0.0f) return pair(i * size, j * size);
    real a = simplex_noise(2.5f * i, 2.5f * j, (real)(2.5f * z));
    real b = simplex_noise(2.5f * j + 30.2f, 2.5f * i - 12.1f, (real)(2.5f * z + 19.8f));
    return pair((i + distort * a) * size, (j + distort * b) * size);
}

VARIATION(crackle, cellsize = 1, power = 0.2, distort = 0, scale = 1, z = 0) {
    real first = uniform(random), second = uniform(random), third = uniform(random), turn = uniform(random);
    real blur = 0.5f * (first + second) + 0.25f * (third - 0.5f);
    Pair u = swapped(from_polar(blur, TWO_PI * turn));
    if (cellsize == 0.0f) return scaled(zero_real(), x, y);
    float size = 0.5f * cellsize;
    real i = floor_of(u.x / size), j = floor_of(u.y / size), ni = i, nj = j, least_d = (real)(1e30f);
    for (int k = 0; k < 9; k++) {
        real a = i + (float)(k / 3 - 1), b = j + (float)(k % 3 - 1);
        Pair p = crackle_place(a, b, crackle_z, size, distort);
        real d = square(p.x - u.x) + square(p.y - u.y);
        mask nearer = d < least_d;
        least_d = nearer ? d : least_d;
        ni = nearer ? a : ni;
        nj = nearer ? b : nj;
    }
    Pair q = crackle_place(ni, nj, crackle_z, size, distort);
    real l = (real)(-1e20f);
    for (int k = 0; k < 9; k++) {
        if (k == 4) continue;
        Pair p = crackle_place(ni + (float)(k / 3 - 1), nj + (float)(k % 3 - 1), crackle_z, size, distort);
        l = greatest(l, cell_ratio(p, q, u));
    }
    l = greatest(l, (real)(1e-30f));
    real r = power_of(l, (real)(power)) * scale / l;
    return scaled(weight, q.x + (u.x - q.x) * r, q.y + (u.y - q.y) * r);
}

// ---- Perlin noise as color

DEVICE Pair perlin_place(float shape, float edge, real u, real v, real w, real *far) {
    real r = (1.0f + edge) * (shape == 2.0f ? u : (u + v > 1.0f ? 2.0f - u - v : u + v));
    Pair p = swapped(from_polar(0.5f * r, TWO_PI * w));
    if (shape == 0.0f) {
        p = pair((1.0f + edge) * (u - 0.5f), (1.0f + edge) * (v - 0.5f));
        r = p.x * p.x > p.y * p.y ? p.x : p.y;
    }
    *far = edge > 0.0f && shape >= 0.0f ? greatest(0.5f * (r - 1.0f + edge) / edge, zero_real()) : zero_real();
    return p;
}

VARIATION(dc_perlin, shape = 0, map = 0, select_centre = 0, select_range = 1, centre = 0.25, range = 0.25, edge = 0,
          scale = 1, octaves = 2 [1, 10], amps = 2, freqs = 2, z = 0, select_bailout = 10 [1, 100], color_only = 0) {
    real r1 = uniform(random), r2 = uniform(random), px = x, py = y, shade = zero_real();
    Random many = stream_of(r1, r2);
    float low = select_centre - select_range, high = select_centre + select_range;
    low = low > 0.75f ? 0.75f : low < -2.0f ? -3.0f : low;
    high = high < -0.75f ? -0.75f : high > 3.0f ? 3.0f : high;
    mask done = px != px;
    for (int k = 0; (float)k <= select_bailout; k++) {
        real u = uniform(&many), v = uniform(&many), w = uniform(&many), far;
        if (color_only > 0.0f && shape == 0.0f) {
            u = x;
            v = y;
        }
        Pair p = perlin_place(shape, edge, u, v, w, &far);
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
