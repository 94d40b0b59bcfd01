// Variations that Fractorium and Apophysis have beside flam3's and JWildfire's.
// Origin: Fractorium

VARIATION(blob2, mode = 0.5, n = 1, radius = 0, prescale = 1, postscale = 0.5, symmetry = 0, compensation = 0) {
    real r = vnorm(x, y), a = angle_of(y, x), d = sine_of(a * n) + symmetry;
    d = d / (1.0f + compensation * symmetry * (symmetry < 0.0f ? -1.0f : 1.0f));
    real side = d < 0.0f ? (real)(-1.0f) : (real)(1.0f), k = power_of(d * side, (real)(prescale)) * postscale;
    k = mode != 0.0f ? k * mode : k * side;
    Pair p = from_polar(radius + (r - radius) * k, a);
    mask inside = r < radius;
    return scaled(weight, inside ? x : p.x, inside ? y : p.y);
}

VARIATION(wavesn, freqx = 2, freqy = 2, scalex = 1, scaley = 1, incx = 0, incy = 0, power = 1) {
    float n = power == 0.0f ? 2.0f : power, count = (float)(int)fabs(n);
    real a = (angle_of(y, x) + TWO_PI * random_index(uniform(random), count)) / n;
    Pair p = from_polar(weight * power_of(x * x + y * y, (real)(0.5f / n)), a);
    real sy = sine_of(freqx * p.y), sx = sine_of(freqy * p.x);
    return scaled(weight, p.x + 0.5f * (scalex * sy + magnitude(p.x) * incx * sy),
                  p.y + 0.5f * (scaley * sx + magnitude(p.y) * incy * sx));
}

VARIATION_3D(sphereblur, power = 1 [0, 1e6]) {
    real a = TWO_PI * uniform(random), c = 2.0f * uniform(random) - 1.0f, u = uniform(random);
    u = power == 1.0f ? u : power_of(u, (real)(power));
    real r = weight * power_of(arccosine(2.0f * u - 1.0f) * (1.0f / PI), (real)(1.0f / 1.5f)),
         s = root_safe(1.0f - c * c);
    Pair p = from_polar(r * s, a);
    return triple(p.x, p.y, r * c);
}

VARIATION(cropn, power = 5, radius = 1, scatterdist = 0, zero = 0) {
    float wedge = TWO_PI / fmax(2.0f, fabs(power));
    real t = angle_of(y, x) + PI, m = t - wedge * floor_of(t / wedge);
    real c = cosine_of(m < 0.5f * wedge ? m : wedge - m), edge = c > 0.0f ? radius / c : (real)(1.0f), r = vnorm(x, y);
    mask crops = (r > edge) == (power > 0.0f ? r == r : r != r);
    real k = zero == 0.0f ? zero_real() : (edge + uniform(random) * scatterdist) / greatest(r, (real)(1e-20f));
    return scaled(weight, crops ? k * x : x, crops ? k * y : y);
}

VARIATION(depth_blur2, power = 5, range = 0.401623, blur = 1, radius = 1, x0 = 0, y0 = 0, mulx = 1, muly = 1, exp = 1) {
    Pair tip = circle((real)(PI / power));
    real length = sqrt(1.0f + range * range - 2.0f * range * tip.x), alpha = arcsine(tip.y * range / length);
    real far = vnorm((x - x0) / mulx, (y - y0) / muly), u = uniform(random) * (2.0f * power), again = uniform(random);
    real n = floor_of(u), t = (u - n) * length, h = sqrt(1.0f + t * t - 2.0f * t * cosine_of(alpha));
    real side = n - 2.0f * floor_of(0.5f * n), bend = arcsine(sine_of(alpha) * t / h);
    real a = TWO_PI / power * floor_of(0.5f * n) + (side == 1.0f ? bend : -bend) - 0.5f * PI;
    real k = h * sqrt(again) * (0.1f * blur) * power_of(greatest(far - radius, zero_real()), (real)(exp));
    Pair p = from_polar(k, a);
    mask moves = far > radius;
    return scaled(weight, moves ? x + p.x : x, moves ? y + p.y : y);
}

VARIATION(bcircle, scale = 1, borderwidth = 0) {
    real u = x * scale, v = y * scale, drawn = uniform(random);
    Pair p = from_polar(1.0f + 0.2f * fabs(borderwidth) * drawn, angle_of(v, u));
    mask inside = vnorm(u, v) <= 1.0f;
    real k = borderwidth != 0.0f ? (real)(1.0f) : zero_real();
    return scaled(weight, inside ? u : k * p.x, inside ? v : k * p.y);
}

VARIATION_3D(falloff, scatter = 1, mindist = 0.5, mul_x = 1, mul_y = 1, mul_z = 0, x0 = 0, y0 = 0, z0 = 0, invert = 0,
             type = 0, boxpow = 2) {
    real a = uniform(random) - 0.5f, b = uniform(random) - 0.5f, c = uniform(random) - 0.5f;
    real r = sqrt(square(x - x0) + square(y - y0) + square(z - z0)), zero = zero_real();
    real d = greatest((greatest(invert != 0.0f ? 1.0f - r : r, zero) - mindist) * (0.04f * scatter), zero);
    if (type == 0.0f)
        return triple(weight * (x + mul_x * a * d), weight * (y + mul_y * b * d), weight * (z + mul_z * c * d));
    if (type == 1.0f) {
        Pair s = circle((r == 0.0f ? zero : arcsine(clamped(z / r, (real)(-1.0f), (real)(1.0f)))) + mul_z * c * d);
        Pair p = circle(angle_of(y, x) + mul_y * b * d);
        r = weight * (r + mul_x * a * d);
        return triple(r * s.x * p.x, r * s.x * p.y, r * s.y);
    }
    real size = clamped(d, zero, (real)(0.9f)) + 0.1f, k = 1.0f / size, ta = mul_x * d, tb = mul_y * d, tc = mul_z * d;
    real pa = signed_power(a, boxpow), pb = signed_power(b, boxpow), pc = signed_power(c, boxpow);
    if (boxpow == 2.0f * (float)(int)(0.5f * boxpow)) {
        pa = magnitude(pa);
        pb = magnitude(pb);
        pc = magnitude(pc);
    }
    return triple(weight * blend(x, floor_of(x * k) + size * a, ta) + ta * pa * k,
                  weight * blend(y, floor_of(y * k) + size * b, tb) + tb * pb * k,
                  weight * blend(z, floor_of(z * k) + size * c, tc) + tc * pc * k);
}

REPLACING_3D(mirror_x) {
    real a = magnitude(x);
    return triple(uniform(random) < 0.5f ? a : -a, y, z);
}

VARIATION(smartshape, power = 4 [2, 1e6], roundstr = 0, roundwidth = 1, distortion = 1, compensation = 0 [0, 1]) {
    float wedge = TWO_PI / power;
    Pair c = circle((real)(0.5f * wedge));
    real a = (angle_of(y, x) + PI) / wedge, low = floor_of(a), t = a - low;
    mask upper = t > 0.5f;
    real s = upper ? 1.0f - t : t, corner = upper ? low + 1.0f : low;
    if (compensation > 0.0f && distortion >= 1.0f) s = arctangent(s * 2.0f * c.y / c.x) / wedge;
    real k = (real)(1.0f);
    if (distortion != 0.0f) {
        k = 1.0f / cosine_of(s * wedge);
        if (roundstr != 0.0f) {
            real wide = roundwidth != 1.0f ? power_of(2.0f * s, (real)(roundwidth)) : 2.0f * s;
            wide = wide * (2.0f * roundstr / power) / c.y;
            k = magnitude((1.0f - wide) * k + wide);
        }
    }
    if (distortion != 1.0f) k = power_of(k, (real)(distortion));
    return from_polar(weight * k * vnorm(x, y), (corner + (upper ? -s : s)) * wedge - PI);
}

VARIATION(gnarly, cellsize = 1, twist = 1) {
    if (cellsize == 0.0f) return scaled(weight, x, y);
    real cx = (floor_of(x / cellsize) + 0.5f) * cellsize, cy = (floor_of(y / cellsize) + 0.5f) * cellsize;
    real u = x - cx, v = y - cy, r = (u * u + v * v) / (0.25f * cellsize * cellsize);
    Pair c = circle(twist * logarithm_of(r));
    mask inside = r <= 1.0f;
    return scaled(weight, inside ? cx + c.x * u + c.y * v : x, inside ? cy - c.y * u + c.x * v : y);
}

REPLACING_3D(juliaNab, n = 1, a = 1, b = 1, separ = 1) {
    float count = fmax(fabs(n), 1e-6f);
    real t =
        (angle_of(y, power_of(magnitude(x), (real)(separ))) + TWO_PI * floor_of(uniform(random) * fabs(n))) / count;
    Pair p = from_polar(weight * power_of(x * x + y * y, (real)(0.5f * a / count)), t);
    return triple(p.x + b, p.y + b, z);
}

VARIATION(blur_heart, p = 0.5, a = -0.6, b = 0.7) {
    real u = 2.0f * uniform(random) - 1.0f, v = 2.0f * uniform(random) - 1.0f;
    real side = v < 0.0f ? (real)(-1.0f) : (real)(1.0f);
    real top = a * power_of(magnitude(u), (real)(p)) + side * b * sqrt(magnitude(1.0f - u * u)) - a;
    top = top / (fabs(a) + fabs(b));
    return scaled(weight, u, v > 0.0f ? least(v, top) : greatest(v, top));
}
