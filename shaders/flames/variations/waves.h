// Displacements by waves: sines, sawtooths, Minkowski's question mark and sums of waves.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// sin x and sin y.
VARIATION(sinusoidal) { return scaled(weight, sine_of(x), sine_of(y)); }

// Adds to each coordinate a sine of the other, by the affine's coefficients.
VARIATION(waves) {
    real u = y / (AFFINE_C * AFFINE_C + EPSILON), v = x / (AFFINE_F * AFFINE_F + EPSILON);
    return scaled(weight, x + AFFINE_B * sine_of(u), y + AFFINE_E * sine_of(v));
}

// Adds to each coordinate sin(tan(3 t)) of the other, t, by the affine's coefficients.
VARIATION(popcorn) {
    real u = sine_of(tangent_of(3.0f * y)), v = sine_of(tangent_of(3.0f * x));
    return scaled(weight, x + AFFINE_C * u, y + AFFINE_F * v);
}

// Mirrors y where |y| is below a damped cosine wave of x plus `separation`.
VARIATION(oscilloscope, separation = 1, frequency = 3.141592653589793, amplitude = 1, damping = 0) {
    real t = amplitude * exponential_of(-magnitude(x) * damping) * cosine_of(TWO_PI * frequency * x) + separation;
    return scaled(weight, x, magnitude(y) <= t ? -y : y);
}

// popcorn with parameters in place of affine coefficients.
VARIATION(popcorn2, x = 0, y = 0, c = 0) {
    real u = popcorn2_x * sine_of(tangent_of(c * y)), v = popcorn2_y * sine_of(tangent_of(c * x));
    return scaled(weight, x + u, y + v);
}

// Adds to each coordinate a sine of the other.
VARIATION(waves2, scalex = 0, scaley = 0, freqx = 0, freqy = 0) {
    return scaled(weight, x + scalex * sine_of(y * freqx), y + scaley * sine_of(x * freqy));
}

// Shears x and y by sines of each other, which grow with the coordinate's magnitude; `sym` blends in x.
VARIATION(auger, freq = 1, weight = 0.5, sym = 0, scale = 1) {
    real s = sine_of(freq * x), t = sine_of(freq * y);
    real dy = y + auger_weight * (scale * s * 0.5f + magnitude(y) * s);
    real dx = x + auger_weight * (scale * t * 0.5f + magnitude(x) * t);
    return scaled(weight, x + sym * (dx - x), dy);
}

// Origin: JWildfire

// waves2, with a sine of x + y in z.
VARIATION_3D(waves2_3D, freq = 2, scale = 1) {
    real u = x + scale * sine_of(y * freq), v = y + scale * sine_of(x * freq);
    return scaled3(weight, u, v, z + scale * sine_of(0.5f * (x + y) * freq));
}

// Sum of two vibrations (see vibration below), of whose direction, angle, frequency and amplitude each is modulated by
// a cosine along its wave: dm, tm, fm and am are the modulations' amplitudes, NAMEfreq their frequencies.
VARIATION(vibration2, dir = 0, angle = 1.5708, freq = 1, amp = 0.25, phase = 0, dir2 = 1.5708, angle2 = 1.5708,
          freq2 = 1, amp2 = 0.25, phase2 = 0, dm = 0, dmfreq = 0.1, tm = 0, tmfreq = 0.1, fm = 0, fmfreq = 0.1, am = 0,
          amfreq = 0.1, d2m = 0, d2mfreq = 0.1, t2m = 0, t2mfreq = 0.1, f2m = 0, f2mfreq = 0.1, a2m = 0,
          a2mfreq = 0.1) {
    Pair d = circle((real)(dir)), e = circle((real)(dir2));
    real s = TWO_PI * (x * d.x + y * d.y), t = TWO_PI * (x * e.x + y * e.y);
    real da = dir + dm * cosine_of(s * dmfreq), aa = angle + tm * cosine_of(s * tmfreq);
    real fa = fm * cosine_of(s * fmfreq) / freq, ra = amp + amp * am * cosine_of(s * amfreq);
    real db = dir2 + d2m * cosine_of(t * d2mfreq), ab = angle2 + t2m * cosine_of(t * t2mfreq);
    real fb = f2m * cosine_of(t * f2mfreq) / freq2, rb = amp2 + amp2 * a2m * cosine_of(t * a2mfreq);
    Pair ca = circle(da), cb = circle(db), ta = circle(aa + da), tb = circle(ab + db);
    real pa = ra * sine_of((x * ca.x + y * ca.y) * (freq * TWO_PI) + fa + TWO_PI * phase / freq);
    real pb = rb * sine_of((x * cb.x + y * cb.y) * (freq2 * TWO_PI) + fb + TWO_PI * phase2 / freq2);
    return scaled(weight, x + pa * ta.x + pb * tb.x, y + pa * ta.y + pb * tb.y);
}

// waves2 whose amplitudes are sines of the same coordinate.
VARIATION(waves3, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13, sx_freq = 0, sy_freq = 2) {
    real u = 0.5f * scalex * (1.0f + sine_of(y * sx_freq)), v = 0.5f * scaley * (1.0f + sine_of(x * sy_freq));
    return scaled(weight, x + u * sine_of(y * freqx), y + v * sine_of(x * freqy));
}

// waves2 with amplitudes that grow linearly from 0 at the radius w2r_null to full at w2r_distance.
VARIATION(waves2_radial, w2r_scalex = 0.1, w2r_scaley = 0.1, w2r_freqx = 7, w2r_freqy = 13, w2r_null = 2,
          w2r_distance = 10) {
    real r = vnorm(x, y), k = (r - w2r_null) / (w2r_distance - w2r_null);
    k = r < w2r_null ? (real)(0.0f) : r < w2r_distance ? k : (real)(1.0f);
    return scaled(weight, x + k * w2r_scalex * sine_of(y * w2r_freqx), y + k * w2r_scaley * sine_of(x * w2r_freqy));
}

// A sawtooth of period 1: t near 0, with a jump at 1/2.
DEVICE real sawtooth(real t) {
    real f = wrap_unit(t);
    return f > 0.5f ? 0.5f - f : f;
}

// waves2 with a sawtooth in place of the sine.
VARIATION(waves23, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13) {
    return scaled(weight, x + scalex * sawtooth(y * freqx * (1.0f / TWO_PI)),
                  y + scaley * sawtooth(x * freqy * (1.0f / TWO_PI)));
}

// oscilloscope with a cosine wave whose phase a sine of y perturbs.
VARIATION(oscilloscope2, separation = 1, frequencyx = 3.141592653589793, frequencyy = 3.141592653589793, amplitude = 1,
          perturbation = 1, damping = 0) {
    real wave = cosine_of(TWO_PI * frequencyx * x + perturbation * sine_of(TWO_PI * frequencyy * y));
    real t = amplitude * exponential_of(-magnitude(x) * damping) * wave + separation;
    real k = magnitude(y) <= t ? (real)(-weight) : (real)(weight);
    return scaled(k, x, y);
}

// x plus a wave of y, damped by a constant: the cosine or sine a (order 1), its square (2), or a b a with the other
// function b (3).
DEVICE real damped_wave(real x, real y, float scale, float freq, float use_cos, float damp, int order) {
    real d = fabs(damp) < 1e-9f ? (real)(1.0f) : exponential_of((real)(damp));
    Pair c = circle(y * freq);
    real a = use_cos == 1.0f ? c.x : c.y, b = use_cos == 1.0f ? c.y : c.x;
    real wave = order == 1 ? a : order == 2 ? a * a : a * b * a;
    return (x + d * scale * wave) * d;
}

// damped_wave() of a sine or cosine.
VARIATION(waves2_wf, scalex = 0.25, scaley = 0.5, freqx = 1.5707963267948966, freqy = 0.7853981633974483, use_cos_x = 1,
          use_cos_y = 0, dampx = 0, dampy = 0) {
    return scaled(weight, damped_wave(x, y, scalex, freqx, use_cos_x, dampx, 1),
                  damped_wave(y, x, scaley, freqy, use_cos_y, dampy, 1));
}

// damped_wave() of a squared sine or cosine.
VARIATION(waves3_wf, scalex = 0.25, scaley = 0.5, freqx = 1.5707963267948966, freqy = 0.7853981633974483, use_cos_x = 1,
          use_cos_y = 0, dampx = 0, dampy = 0) {
    return scaled(weight, damped_wave(x, y, scalex, freqx, use_cos_x, dampx, 2),
                  damped_wave(y, x, scaley, freqy, use_cos_y, dampy, 2));
}

// damped_wave() of sin^2 cos or sin cos^2.
VARIATION(waves4_wf, scalex = 0.25, scaley = 0.5, freqx = 1.5707963267948966, freqy = 0.7853981633974483, use_cos_x = 1,
          use_cos_y = 0, dampx = 0, dampy = 0) {
    return scaled(weight, damped_wave(x, y, scalex, freqx, use_cos_x, dampx, 3),
                  damped_wave(y, x, scaley, freqy, use_cos_y, dampy, 3));
}

// x to the truncated exponent, where an odd power keeps the sign of x.
DEVICE real whole_power(real x, float exponent) {
    float n = trunc(exponent);
    real p = power_of(magnitude(x), (real)(n));
    return n - 2.0f * floor(0.5f * n) == 0.0f ? p : with_sign_of(p, x);
}

// waves2 with a power of the sine, which with a mode of 1 lies between 0 and 1.
VARIATION(waves22, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13, modex = 0, modey = 0, powerx = 2, powery = 2) {
    real u = sine_of(y * freqx), v = sine_of(x * freqy);
    u = modex < 0.5f ? u : 0.5f * (1.0f + u);
    v = modey < 0.5f ? v : 0.5f * (1.0f + v);
    return scaled(weight, x + scalex * whole_power(u, powerx), y + scaley * whole_power(v, powery));
}

// Adds to each coordinate a sine of itself, with slopes from 0 to 2.
VARIATION(pressure_wave, x_freq = 1, y_freq = 1) {
    float u = x_freq * TWO_PI, v = y_freq * TWO_PI;
    return scaled(weight, x + sine_of(u * x) / u, y + sine_of(v * y) / v);
}

// Sines times polynomials of the coordinates.
REPLACING(sintrange, w = 1) {
    real v = (x * x + y * y) * w;
    return scaled(weight, sine_of(x) * (x * x + w - v), sine_of(y) * (y * y + w - v));
}

// x tanh(r^2) and y cos(r^2).
VARIATION(rippled) {
    real d = x * x + y * y + 1e-30f;
    return scaled(weight, hyperbolic_tangent(d) * x, cosine_of(d) * y);
}

// Adds to each coordinate a sine of itself.
VARIATION(pulse, freqx = 2, freqy = 2, scalex = 1, scaley = 1) {
    return scaled(weight, x + scalex * sine_of(x * freqx), y + scaley * sine_of(y * freqy));
}

// Adds to both coordinates a diagonal sine wave times (x^2 - y^2) / (x^2 + y^2).
VARIATION(stwin, distort = 1, offset_xy = 0, offset_x2 = 0, offset_y2 = 0) {
    real u = 0.05f * weight * x, v = 0.05f * weight * y, u2 = u * u + 0.0001f * offset_x2,
         v2 = v * v + 0.0001f * offset_y2;
    real wave = (u2 - v2) * sine_of(TWO_PI * distort * (u + v + 0.1f * offset_xy)) / (u2 + v2);
    return pair(weight * x + wave, weight * y + wave);
}

// sin x, sin y, and a height by the angle of (y^2, x^2).
VARIATION_3D(sinusoidal3d) {
    return triple(weight * sine_of(x), weight * sine_of(y), weight * angle_of(x * x, y * y) * cosine_of(z));
}

// Blends each coordinate with a cosine of itself.
VARIATION_3D(sinusgrid, ampx = 0.5, ampy = 0.6, freqx = 1.2, freqy = 1) {
    real u = -cosine_of(x * (freqx * TWO_PI)), v = -cosine_of(y * (freqy * TWO_PI));
    return scaled3(weight, x + ampx * (u - x), y + ampy * (v - y), z);
}

// synth, by slobo777: a curve of the angle made of up to five waves. A wave of this type at the fraction y of its period:
// 0 a sine, 1 a cosine, 2 a square, 3 a sawtooth, 4 two ramps, 5 a parabola, 6 a root, 7 and 8 quotients of a cosine.
DEVICE real synth_wave(real y, real frequency, float type) {
    real c = cosine_of((y - 0.5f) * (TWO_PI / frequency));
    if (type == 1.0f) return cosine_of(y * TWO_PI);
    if (type == 2.0f) return y > 0.5f ? (real)(1.0f) : (real)(-1.0f);
    if (type == 3.0f) return 1.0f - 2.0f * y;
    if (type == 4.0f) return y > 0.5f ? 3.0f - 4.0f * y : 2.0f * y - 1.0f;
    if (type == 5.0f) return 8.0f * square(y - 0.5f) - 1.0f;
    if (type == 6.0f) return 2.0f * sqrt(y) - 1.0f;
    if (type == 7.0f) return 1.0f / (c + 1e-10f) - 1.0f;
    if (type == 8.0f) return c / (1.0f + 1e-10f - c);
    return sine_of(y * TWO_PI);
}

// The curve `sum` combined with one wave of amplitude k by `layer`: 0 adds, 1 multiplies, 2 takes the maximum, 3 the
// minimum. `skew` moves the middle of the wave's period.
DEVICE real synth_layer(real sum, real theta, float a, float k, float type, float skew, float frequency, float phase,
                        float layer) {
    if (k == 0.0f) return sum;
    real y = wrap_unit((phase + theta * frequency) * (1.0f / TWO_PI));
    if (skew != 0.0f) {
        float z = 0.5f + 0.5f * skew;
        y = y > z ? 0.5f + 0.5f * (y - z) / (1.0f - z + 1e-10f) : 0.5f - 0.5f * (z - y) / (z + 1e-10f);
    }
    real wave = k * synth_wave(y, (real)(frequency), type), top = a + wave;
    if (layer == 1.0f) return sum * (1.0f + wave);
    if (layer == 2.0f) return greatest(sum, top);
    if (layer == 3.0f) return least(sum, top);
    return sum + wave;
}

// The curve at the angle theta. `waves`: the constant part, then for each of five waves its amplitude, type, skew,
// frequency, phase and layer, and at last the fraction of the curve to blend with 1.
DEVICE real synth_value(real theta, const float *waves) {
    real sum = (real)(waves[0]);
    for (int k = 1; k < 31; k += 6)
        sum = synth_layer(sum, theta, waves[0], waves[k], waves[k + 1], waves[k + 2], waves[k + 3], waves[k + 4],
                          waves[k + 5]);
    return sum * waves[31] + (1.0f - waves[31]);
}

// x times m; with `smooth` 1 a curve that is m at |x| = 1 and smoothly becomes x for larger |x|: l is where.
DEVICE real synth_scaled(real x, real m, float smooth) {
    real sign = (m < 0.0f) == (x < 0.0f) ? (real)(1.0f) : (real)(-1.0f), plain = x * m, u = magnitude(x);
    if (smooth != 1.0f) return plain;
    m = magnitude(m);
    real inverse = m > 1e-10f ? 1.0f / m : (real)(1e10f), l = greatest(2.0f - m, 2.0f * m);
    real ta = square(m - 0.5f) > 1e-10f ? (sqrt(m * m + (1.0f - 2.0f * m) * u) - m) / (1.0f - 2.0f * m) : u;
    real tb = square(m - 2.0f) > 1e-10f
                  ? (sqrt(inverse * inverse + (1.0f - 2.0f * inverse) * u) - inverse) / (1.0f - 2.0f * inverse)
                  : u;
    real tc = sqrt((u - 1.0f) / (l - 1.0f)), td = 1.0f - m + sqrt(square(m - 1.0f) + u - 1.0f), n = m - 1.0f;
    real near = m < 1.0f ? u + n * ta * ta : u + n * tb * tb;
    real far = m < 1.0f ? u + n * tc * tc - 2.0f * n * tc + n : u + n * td * td - 2.0f * n * td + n;
    return sign * (u > l || m == 1.0f ? u : u <= 1.0f ? near : far);
}

// Cosine and sine of theta, distorted by the curve: type 0 multiplies them by it, 1 adds it, other types leave them.
DEVICE Pair synth_circle(real theta, const float *waves, float mix, float type) {
    Pair c = circle(theta);
    if (type > 1.0f) return c;
    real s = synth_value(theta, waves), t = synth_value(theta + 0.5f * PI, waves);
    if (type == 0.0f) return pair(c.x * t, c.y * s);
    return pair((1.0f - mix) * c.x + t - 1.0f, (1.0f - mix) * c.y + s - 1.0f);
}

// The modes: 0 to 3, 12, 13 and 19 scale the radius by the curve at the angle; 4 draws the curve; 6 to 11 scale or move
// x and y by the curve of the other coordinate; 14 to 16 move the angle or the point by the curve at the radius; 17 and
// 18 mirror at the curve; 1001 and more replace sines and cosines of other variations by the curve.
VARIATION(synth, a = 1, mode = 3, power = -2, mix = 1, smooth = 0, b = 0, b_type = 0, b_skew = 0, b_frq = 1, b_phs = 0,
          b_layer = 0, c = 0, c_type = 0, c_skew = 0, c_frq = 1, c_phs = 0, c_layer = 0, d = 0, d_type = 0, d_skew = 0,
          d_frq = 1, d_phs = 0, d_layer = 0, e = 0, e_type = 0, e_skew = 0, e_frq = 1, e_phs = 0, e_layer = 0, f = 0,
          f_type = 0, f_skew = 0, f_frq = 1, f_phs = 0, f_layer = 0) {
    float waves[32] = {a,     b,       b_type,  b_skew, b_frq,  b_phs,  b_layer, c,       c_type,  c_skew, c_frq,
                       c_phs, c_layer, d,       d_type, d_skew, d_frq,  d_phs,   d_layer, e,       e_type, e_skew,
                       e_frq, e_phs,   e_layer, f,      f_type, f_skew, f_frq,   f_phs,   f_layer, mix};
    real r = vnorm(x, y), r2 = x * x + y * y + 1e-10f, theta = atan_xy(y, x);
    real t1 = uniform(random), t2 = uniform(random), t3 = uniform(random), turn = TWO_PI * uniform(random) - PI;
    real sx = synth_value(x, waves), sy = synth_value(y, waves);
    if (mode >= 6.0f && mode <= 8.0f)
        return scaled(weight, mode == 7.0f ? x : synth_scaled(x, sy, smooth),
                      mode == 6.0f ? y : synth_scaled(y, sx, smooth));
    if (mode >= 9.0f && mode <= 11.0f)
        return scaled(weight, mode == 10.0f ? x : x + sy - 1.0f, mode == 9.0f ? y : y + sx - 1.0f);
    if (mode == 17.0f) return scaled(weight, x, 2.0f * (sx - 1.0f) - y);
    if (mode == 18.0f) return scaled(weight, 2.0f * (sy - 1.0f) - x, 2.0f * (sx - 1.0f) - y);
    if (mode == 14.0f || mode == 16.0f) {
        real p = power_of(r2, (real)(0.5f * power));
        return swapped(from_polar(weight * (mode == 14.0f ? p : r), theta - 1.0f + synth_value(p, waves)));
    }
    if (mode == 15.0f) {
        Pair tangent = circle(theta);
        real mu = synth_value(power_of(r2, (real)(0.5f * power)), waves) - 1.0f;
        return scaled(weight, x + mu * tangent.x, y - mu * tangent.y);
    }
    if (mode == 4.0f) {
        real angle = 2.0f * arcsine((t3 - 0.5f) * 2.0f), high = 1.0f + 0.1f * (t1 + t2 - 1.0f) * power;
        return scaled(weight, angle * (1.0f / PI), synth_scaled(high, synth_value(angle, waves), smooth) - 1.0f);
    }
    if (mode == 1001.0f)
        return scaled(weight, sx - 1.0f + (1.0f - mix) * sine_of(x), sy - 1.0f + (1.0f - mix) * sine_of(y));
    if (mode > 1001.0f) {
        real p = power_of(r2, (real)(0.5f * power)), half_turn = t1 < 0.5f ? (real)(PI) : zero_real();
        real mu = (real)(power * power + 1e-10f),
             ring = r - 2.0f * mu * truncation((r + mu) / (2.0f * mu)) + r * (1.0f - mu);
        real at = mode == 1002.0f   ? p
                  : mode == 1004.0f ? 0.5f * theta + half_turn
                  : mode == 1005.0f ? PI * p
                  : mode == 1007.0f ? x
                                    : theta;
        Pair s = synth_circle(at, waves, mix, smooth);
        if (mode == 1002.0f) return scaled(weight, s.y * x - s.x * y, s.x * x + s.y * y);
        if (mode == 1003.0f) return scaled(weight, s.y / p, s.x * p);
        if (mode == 1004.0f) return scaled(weight * sqrt(p), s.x, s.y);
        if (mode == 1005.0f) return scaled(weight * theta * (1.0f / PI), s.y, s.x);
        if (mode == 1006.0f) return scaled(weight * ring, s.y, s.x);
        return scaled(weight * p, s.y, y);
    }
    if (mode == 0.0f) r = power_of(r2, (real)((power + 1.0f) * 0.5f));
    if (mode == 1.0f) r = r / (0.25f * (x * x + y * y) + 1.0f);
    if (mode == 2.0f) r = (t1 + t2 + 0.002f * t3) / 2.002f;
    if (mode == 3.0f) r = power_of(0.25f * square(t1 + t2) + 1e-10f, (real)(-0.5f * power));
    if (mode == 12.0f) r = 1.0f + 0.1f * (t1 + t2 - 1.0f) * power;
    theta = mode == 2.0f || mode == 3.0f || mode >= 12.0f && mode <= 13.0f ? turn : theta;
    real k = synth_value(theta, waves);
    if (mode == 2.0f)
        r = r * synth_scaled(power_of(r * r + 1e-10f, (real)(0.5f * power)), k, smooth);
    else if (mode == 13.0f)
        r = k + 0.1f * power_of(t1 + 1e-10f, (real)(power));
    else
        r = synth_scaled(r, k, smooth);
    return swapped(from_polar(weight * (mode == 19.0f ? power_of(r, (real)(power)) : r), theta));
}

// The fractional part of 43758.5453 sin(91.2228 n + phase) for an integer n; rounded to 0 or 1 if `cont` is 1. The
// turns of 91.2228 n are computed in two floats: one would lose their fraction.
DEVICE real row_hash(real n, real phase, float cont) {
    real p = n * 14.518559f, turns = p - nearest(p) + FUSED(n, 14.518559f, -p) + n * 8.681177e-8f + phase * (0.5f / PI);
    real a = fraction_of(sine_of(TWO_PI * (turns - nearest(turns))) * 43758.5453f);
    return cont == 1.0f ? (a > 0.5f ? (real)(1.0f) : zero_real()) : a;
}

// waves with a random amplitude for each period of y.
VARIATION(waves4, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13, cont = 0, yfact = 0.1) {
    real a = row_hash(floor_of(y * freqx * (1.0f / TWO_PI)), 1.0f + y * 0.001f * yfact, cont);
    return scaled(weight, x + sine_of(y * freqx) * a * a * scalex, y + sine_of(x * freqy) * scaley);
}

// waves4 with random amplitudes for rows of height 1 / freqx2.
VARIATION(waves42, scalex = 0.05, scaley = 0.05, freqx = 7, freqy = 13, cont = 0, yfact = 0.1, freqx2 = 1) {
    real a = row_hash(floor_of(y * freqx2), 1.0f + y * 0.001f * yfact, cont);
    return scaled(weight, x + sine_of(y * freqx) * a * a * scalex, y + sine_of(x * freqy) * scaley);
}

// Minkowski's question mark function of x from 0 to 1, by a binary search of f steps among fractions, if a, b, c and
// `step` are 1 and e is 0.5; other numbers distort it.
DEVICE real question_mark(real x, float a, float b, float c, float step, float e, float f) {
    real p = zero_real(), q = (real)(a), r = (real)(b), s = (real)(c), y = p;
    for (int k = 0; k < f; k++) {
        step *= e;
        real m = p + r, n = q + s;
        mask low = x < m / n;
        r = low ? m : r;
        s = low ? n : s;
        p = low ? p : m;
        q = low ? q : n;
        y = low ? y : y + step;
    }
    return y + step;
}

// The function of |t| below 1 with the sign of t; other t stay.
DEVICE real signed_question_mark(real t, float a, float b, float c, float step, float e, float f) {
    real size = magnitude(t);
    return size > 0.0f && size < 1.0f ? with_sign_of(question_mark(size, a, b, c, step, e, f), t) : t;
}

// Minkowski's question mark of each coordinate.
VARIATION(minkQM, a = 1, b = 1, c = 1, dd = 1, e = 0.5, f = 20 [0, 100]) {
    return scaled(weight, signed_question_mark(x, a, b, c, dd, e, f), signed_question_mark(y, a, b, c, dd, e, f));
}

// A wave of period 4 whose quarters are the question mark, less `alternate` times a straight line.
DEVICE real minkowski_sine(real x, float alternate) {
    real a = magnitude(x), l = a - 4.0f * floor_of(0.25f * a), p = a - 2.0f * floor_of(0.5f * a);
    p = p > 1.0f ? 2.0f - p : p;
    real m = question_mark(p, 1.0f, 1.0f, 1.0f, 1.0f, 0.5f, 20.0f) - alternate * p;
    return (l < 2.0f) != (x > 0.0f) ? m : -m;
}

// oscilloscope2 with the waves of minkowski_sine.
VARIATION(minkowskope, separation = 0.5, frequencyx = -2, frequencyy = 2, amplitude = 0.5, perturbation = 1,
          damping = 0) {
    float alternate = frequencyx <= 0.0f ? 1.0f : 0.0f;
    real shift = perturbation * minkowski_sine(0.5f * frequencyy * y, alternate);
    real t = amplitude * minkowski_sine(0.5f * frequencyx * x + shift - 1.0f, alternate);
    if (fabs(damping) > 1e-8f) t = t * exponential_of(-magnitude(x) * damping);
    real k = magnitude(y) <= t + separation ? (real)(-weight) : (real)(weight);
    return scaled(k, x, y);
}

// waves2 with powers of the coordinates in the sines and amplitudes from scalex at x = 0 to scaleinfx far away. The
// origin has other functions for exponents within 0.0001 of 0, which are not drawn.
VARIATION(waves2b, freqx = 1.5, freqy = 2.5, pwx = 1, pwy = 1.5, scalex = 2, scaleinfx = 1, scaley = 0.75,
          scaleinfy = 1.5, unity = 1, jacok = 0.25) {
    real kx = unity / (unity + x * x) * (scalex - scaleinfx) + scaleinfx;
    real ky = unity / (unity + y * y) * (scaley - scaleinfy) + scaleinfy;
    real sx = x < 0.0f ? (real)(-1.0f) : (real)(1.0f), sy = y < 0.0f ? (real)(-1.0f) : (real)(1.0f);
    real u = sine_of(sy * power_of(magnitude(y) + 1e-10f, (real)(pwx)) * freqx);
    real v = sine_of(sx * power_of(magnitude(x) + 1e-10f, (real)(pwy)) * freqy);
    return scaled(weight, x + kx * u, y + ky * v);
}

// Origin: Apophysis

// flam3's waves2 with the wave along z that other programs have: files call it waves2.
VARIATION_3D(waves2_z, scalex = 0, scaley = 0, scalez = 0, freqx = 0, freqy = 0, freqz = 0) {
    real u = x + scalex * sine_of(y * freqx), v = y + scaley * sine_of(x * freqy);
    return scaled3(weight, u, v, z + scalez * sine_of(vnorm(x, y) * freqz));
}

// Origin: Fractorium

// A random branch of the root of order n of the point, then waves whose amplitudes grow with the coordinates.
VARIATION(wavesn, freqx = 2, freqy = 2, scalex = 1, scaley = 1, incx = 0, incy = 0, power = 1) {
    float n = power == 0.0f ? 2.0f : power, count = (float)(int)fabs(n);
    real a = (angle_of(y, x) + TWO_PI * random_index(uniform(random), count)) / n;
    Pair p = from_polar(weight * power_of(x * x + y * y, (real)(0.5f / n)), a);
    real sy = sine_of(freqx * p.y), sx = sine_of(freqy * p.x);
    return scaled(weight, p.x + 0.5f * (scalex * sy + magnitude(p.x) * incx * sy),
                  p.y + 0.5f * (scaley * sx + magnitude(p.y) * incy * sx));
}

// Circular ripples around the center, as on water.
VARIATION(ripple, frequency = 2, velocity = 1, amplitude = 0.5, centerx = 0, centery = 0, phase = 0, scale = 1) {
    float p = phase * TWO_PI - PI, a = 0.01f * amplitude;
    real u = x * scale - centerx, v = y * scale + centery, d = greatest(magnitude(u * v), (real)(EPSILON));
    real wave = cosine_of(5.0f * frequency * d - velocity * p),
         r = blend(wave * (p * a) + d, wave * ((PI - p) * a) + d, (real)(p));
    return scaled(weight / scale, centerx + u / d * r, v / d * r - centery);
}

// A wave from 0 to 1 and back, of period 2 pi.
DEVICE real hump(real a) { return 0.5f - 0.5f * cosine_of(a); }

// A wave from 0 to 1 with the frequency `amplitude`.
DEVICE real oscillation(real t, float amplitude) { return hump(TWO_PI * amplitude * t); }

// t blended by `share` toward its oscillation, then by `share` toward the oscillation of `folded`.
DEVICE real wrapped_in_oscillation(real t, real folded, real share) {
    return blend(blend(t, oscillation(t, 4.0f), share), oscillation(folded, 4.0f), share);
}

// The fractional part with the sign of t.
DEVICE real inside_unit(real t) { return t < 0.0f ? -fraction_of(magnitude(t)) : fraction_of(t); }

// Blends each coordinate with a repetition of cells, by oscillations of the parameters.
VARIATION(gdoffs, delta_x = 0, delta_y = 0, area_x = 2, area_y = 2, center_x = 0, center_y = 0, gamma = 1, square = 0) {
    real sx = oscillation((real)(0.1f * delta_x), 1.0f), sy = oscillation((real)(0.1f * delta_y), 1.0f);
    float b = gamma / fmax(fmax(fabs(area_x), 0.1f), fmax(fabs(area_y), 0.1f));
    real u = x + center_x, v = y + center_y;
    return scaled(weight, wrapped_in_oscillation(u, inside_unit(b * u), sx),
                  wrapped_in_oscillation(v, inside_unit(b * v), square != 0.0f ? sx : sy));
}

// x and y blended with their repetitions, where cosines make the transitions smooth.
VARIATION(coswrap, repeat = 1, amount_x = 0, amount_y = 0, phase_x = 0, phase_y = 0) {
    real u = 0.5f * x + 0.5f, v = 0.5f * y + 0.5f, f = fabs(repeat) * u, g = fabs(repeat) * v;
    float px = PI * phase_x, py = PI * phase_y;
    real sx = hump((real)(amount_x + px)), sy = hump((real)(amount_y + py));
    real a = blend(u, hump(4.0f * u + px), sx), b = blend(v, hump(4.0f * v + py), sy);
    real p = hump(4.0f * fraction_of(f) + px), q = hump(4.0f * fraction_of(g) + py);
    return pair(2.0f * weight * blend(a, p, sx) - 1.0f, 2.0f * weight * blend(b, q, sy) - 1.0f);
}

// A wave of kind 1 (triangle), 2 (square) or else sine.
DEVICE real wave_of(real t, float a, float b, float c, float power, float kind) {
    real s = sine_of(b * t + c), height = kind == 1.0f ? magnitude(arcsine(s)) * (1.0f / PI) : magnitude(s);
    if (kind == 2.0f) height = s < 0.0f ? (real)(EPSILON) : (real)(1.0f);
    return (kind == 1.0f ? 2.0f * a : a) * power_of(height, (real)(power));
}

// The sum of two waves of each coordinate.
VARIATION(interference2, a1 = 1, b1 = 1, c1 = 0, p1 = 1, t1 = 0, a2 = 1, b2 = 1, c2 = 0, p2 = 1, t2 = 0) {
    return scaled(weight, wave_of(x, a1, b1, c1, p1, t1) + wave_of(x, a2, b2, c2, p2, t2),
                  wave_of(y, a1, b1, c1, p1, t1) + wave_of(y, a2, b2, c2, p2, t2));
}

// The displacement of (x, y) by a wave that runs in the given direction and oscillates at `angle` to it.
DEVICE Pair vibration(real x, real y, float direction, float angle, float frequency, float amplitude, float phase) {
    Pair c = circle((real)(direction)), t = circle((real)(direction + angle));
    return scaled_pair(amplitude * sine_of(TWO_PI * (frequency * (x * c.x + y * c.y) + phase / frequency)), t);
}

// The sum of two vibration() displacements.
VARIATION(vibration, dir = 0, angle = 1.5707963267948966, freq = 1, amp = 0.25, phase = 0, dir2 = 1.5707963267948966,
          angle2 = 1.5707963267948966, freq2 = 1, amp2 = 0.25, phase2 = 0) {
    Pair a = vibration(x, y, dir, angle, freq, amp, phase), b = vibration(x, y, dir2, angle2, freq2, amp2, phase2);
    return scaled(weight, x + a.x + b.x, y + a.y + b.y);
}

// popcorn2 with a height.
VARIATION_3D(popcorn2_3D, x = 0.1, y = 0.1, z = 0.1, c = 3) {
    float v = fabs(weight) <= 1.0f ? fabs(weight) * weight : weight;
    real s = sine_of(tangent_of((real)(c)));
    real a = v * s * angle_of(y, x), t = z == 0.0f ? a : z;
    return triple(0.5f * weight * (x + popcorn2_3D_x * sine_of(tangent_of(c * y))),
                  0.5f * weight * (y + popcorn2_3D_y * sine_of(tangent_of(c * x))), a + v * (popcorn2_3D_z * s * t));
}

// Spherical coordinates, each moved by a sine of the radius.
VARIATION_3D(heat, theta_period = 1, theta_phase = 0, theta_amp = 1, phi_period = 1, phi_phase = 0, phi_amp = 0,
             r_period = 1, r_phase = 0, r_amp = 0) {
    float t = theta_period == 0.0f ? 0.0f : 1.0f / theta_period, p = phi_period == 0.0f ? 0.0f : 1.0f / phi_period;
    float q = r_period == 0.0f ? 0.0f : 1.0f / r_period;
    real r = sqrt(magnitude(x * x + y * y + z));
    r = r + weight * r_amp * sine_of(q * (TWO_PI * r + r_phase));
    real a = angle_of(y, x) + weight * theta_amp * sine_of(t * (TWO_PI * r + theta_phase));
    real b = arccosine(clamped(z / r, (real)(-1.0f), (real)(1.0f))) +
             weight * phi_amp * sine_of(p * (TWO_PI * r + phi_phase));
    Pair c = circle(a), d = circle(b);
    return scaled3(r, c.x * d.y, c.y * d.y, d.x);
}

// horseshoe with factors, waves and other functions of the coordinates.
VARIATION(unicorngaloshen, mult_x = 1, mult_y = 1, sine = 0, sin_x_amplitude = 1, sin_x_freq = 0.1, sin_y_amplitude = 2,
          sin_y_freq = 0.2, mode = 0) {
    real r = weight / sqrt(y * y * mult_y + mult_x * x * x), u = x, v = y;
    if (mode > 3.0f)
        u = angle_of(x, y), v = angle_of(y, x);
    else if (mode > 2.0f)
        u = logarithm_of(magnitude(x)), v = sin_y_amplitude * logarithm_of(magnitude(y));
    else if (mode > 1.0f)
        u = 1.0f / x, v = 1.0f / y;
    else if (mode > 0.0f)
        u = exponential_of(-x), v = exponential_of(-y);
    real a = (real)(sin_x_amplitude), b = (real)(sin_y_amplitude);
    if (sine > 0.0f) {
        a = 1.0f + sin_x_amplitude * sine_of(PI * sin_x_freq * u);
        b = 2.0f + sin_y_amplitude * sine_of(PI * sin_y_freq * v);
    }
    return scaled(r, a * (x - y) * (x + mult_y * y), b * x * y);
}
