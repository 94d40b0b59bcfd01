// Symmetry groups of the plane: seven of bands (friezes) and seventeen of nets (wallpapers), by Jesus Sosa. Each point
// goes to one of its images, chosen at random.
// Origin: JWildfire

// (x, y) or its mirror images by the bits of k: 1 mirrors x, 2 mirrors y.
DEVICE Pair mirrored(real x, real y, real k) {
    real high = floor_of(0.5f * k), low = k - 2.0f * high;
    return pair(low > 0.5f ? -x : x, high > 0.5f ? -y : y);
}

DEVICE Pair one_of_two(real u, Pair a, Pair b) { return pair(u < 0.5f ? a.x : b.x, u < 0.5f ? a.y : b.y); }

DEVICE Pair one_of_four(real u, Pair a, Pair b, Pair c, Pair d) {
    mask low = u < 0.5f;
    real v = low ? 2.0f * u : 2.0f * u - 1.0f;
    Pair p = one_of_two(v, a, b), q = one_of_two(v, c, d);
    return pair(low ? p.x : q.x, low ? p.y : q.y);
}

VARIATION(sym_bg1, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    Pair p = one_of_two(uniform(random), pair(x - u - 1.0f, y - v), pair(x + u, y + v));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_bg2, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    Pair p = one_of_two(uniform(random), pair(x - u - 1.0f, y - v), pair(x + u, 1.0f + v - y));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_bg3, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    Pair p = one_of_two(uniform(random), pair(x - u - 1.0f, y - v - 0.5f), pair(u + 1.0f - x, v + 0.5f - y));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_bg4, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    Pair p = one_of_two(uniform(random), pair(x - u - 1.0f, y - v - 0.5f), pair(u + 1.0f - x, y + v + 0.5f));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_bg5, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    Pair p = one_of_two(uniform(random), pair(x - u - 1.0f, y - v - 0.5f), pair(x + u - 1.0f, v + 0.5f - y));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_bg6, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    Pair p = one_of_four(uniform(random), pair(x - u - 1.0f, y - v - 0.5f), pair(u + 1.0f - x, y + v - 0.5f),
                         pair(x - u - 1.0f, 0.5f - v - y), pair(u + 1.0f - x, v + 0.5f - y));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_bg7, stepx = 0, stepy = 0) {
    float u = 0.5f * stepx, v = 0.5f * stepy;
    Pair p = one_of_four(uniform(random), pair(x - u - 2.0f, y - v - 0.5f), pair(u + 2.0f - x, y + v - 0.5f),
                         pair(x + u, v + 0.5f - y), pair(-u - x, 0.5f - v - y));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_ng1, stepx = 0.5, stepy = 0.5) {
    real s = uniform(random) < 0.5f ? (real)(-0.5f) : (real)(0.5f);
    return scaled(weight, x + s * stepx, y + s * stepy);
}

VARIATION(sym_ng2, stepx = 2, stepy = 2) {
    real s = uniform(random) < 0.5f ? (real)(-0.5f) : (real)(0.5f);
    return scaled(weight, x + s * stepx, (s < 0.0f ? y : -y) + s * stepy);
}

VARIATION(sym_ng3, sepx = 0.5, sepy = 0, step = 2) {
    real s = uniform(random) < 0.5f ? (real)(1.0f) : (real)(-1.0f);
    return scaled(weight * s, x - sepx - 0.5f * step, y - sepy - 0.5f * step);
}

VARIATION(sym_ng4, sepx = 0, sepy = 0, stepx = 0, stepy = 0) {
    float u = 0.5f * sepx, v = 0.5f * sepy, su = 0.5f * stepx, sv = 0.5f * stepy;
    Pair p =
        one_of_four(uniform(random), pair(x - u - 2.0f - su, y + v - 1.5f - sv), pair(u - su - x, -v - 0.5f - sv - y),
                    pair(x - u + su, 0.5f - v + sv - y), pair(u + 2.0f + su - x, y + v - 0.5f + sv));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_ng5, sepx = 0, sepy = 0, stepx = 0) {
    float s = 0.5f * stepx;
    Pair p =
        one_of_four(uniform(random), pair(x - sepx - 2.0f - s, y + sepy - 0.5f), pair(sepx - s - x, -sepy - 0.5f - y),
                    pair(x - sepx + s, -sepy - 0.5f - y), pair(2.0f + sepx + s - x, y + sepy - 0.5f));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_ng6, sepy = 0.1, stepx = 1, stepy = 1) {
    float u = 0.5f * stepx, v = 0.5f * stepy, s = 0.5f * sepy;
    Pair p = one_of_four(uniform(random), pair(x - u, y - v + s), pair(x - u, -v - s - y), pair(x + u, y + v + s),
                         pair(x + u, v - s - y));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_ng7, sepx = 0, sepy = 0) {
    real s = uniform(random) < 0.5f ? (real)(-0.5f) : (real)(0.5f);
    return scaled(weight, x + s * sepx, (s < 0.0f ? y : -y) - s * sepy);
}

VARIATION(sym_ng8, sepx = 0, sepy = 0, skewx = 0, skewy = 0) {
    Pair p = mirrored(x, y, random_index(uniform(random), 4.0f));
    Pair q = mirrored((real)(1.0f + 0.5f * sepx), (real)(0.5f * sepy), random_index(uniform(random), 1.0f));
    real turned = p.x == x ? (real)(-1.0f) : (real)(1.0f), s = p.x == x && p.y == y ? (real)(-1.0f) : turned;
    real t = p.y == y ? (real)(1.0f) : (real)(-1.0f);
    real skew = uniform(random) < 0.5f ? (real)(-0.5f) : (real)(0.5f);
    return scaled(weight, p.x + s * q.x + skew * skewx, p.y + t * q.y + skew * skewy);
}

VARIATION(sym_ng9, sepx = 0, sepy = 0) {
    float u = 0.5f * sepx, v = 0.5f * sepy;
    Pair p = one_of_four(uniform(random), pair(x + u, -v - y), pair(-u - x, y + v), pair(-u - x, -v - y),
                         pair(x + u, y + v));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_ng10, space = 0, spacex = 0, spacey = 0) {
    x = x + space;
    y = y + space;
    float u = 0.5f * spacex, v = 0.5f * spacey;
    Pair p =
        one_of_four(uniform(random), pair(-u - x, -v - y), pair(y - u, -v - x), pair(u - y, v + x), pair(x + u, y + v));
    return scaled(weight, p.x, p.y);
}

VARIATION(sym_ng11, space = 0, spacex = 0, spacey = 0, stepx = 1.5, stepy = 1.5) {
    x = x + space;
    y = y + space;
    float u = 0.5f * stepx, v = 0.5f * stepy, sx = spacex, sy = spacey;
    real half_turn = uniform(random);
    Pair p = one_of_four(uniform(random), pair(x + sx + u, y + sy + v), pair(u - sx - x, v - sy - y),
                         pair(y + sx + u, v - sy - x), pair(u - sx - y, v + sy + x));
    Pair q = one_of_four(uniform(random), pair(-sx - u - x, y + sy - v), pair(-sx - u - y, -sy - v - x),
                         pair(y + sx - u, x + sy - v), pair(x + sx - u, -sy - v - y));
    q = one_of_two(half_turn, p, q);
    return scaled(weight, q.x, q.y);
}

VARIATION(sym_ng12, space = 0, spacex = 0, spacey = 0) {
    x = x + space;
    y = y + space;
    float sx = spacex, sy = spacey;
    real half_turn = uniform(random);
    Pair p = one_of_four(uniform(random), pair(x + sx, y + sy), pair(-sx - x, -sy - y), pair(y + sx, -sy - x),
                         pair(-sx - y, sy + x));
    Pair q = one_of_four(uniform(random), pair(-sx - x, y + sy), pair(-sx - y, -sy - x), pair(y + sx, x + sy),
                         pair(x + sx, -sy - y));
    q = one_of_two(half_turn, p, q);
    return scaled(weight, q.x, q.y);
}
