// Circular and hyperbolic functions of complex numbers and quaternions, and maps made of sines and tangents.
// NAME2_bs is the complex function NAME with factors x1, x2, y1, y2 on the arguments of its four real functions.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.
// An item that ends in a semicolon has the body of the item before it.

// Origin: flam3

// The cosine of pi x + iy.
VARIATION(cosine) { return complex_cos(weight, PI * x, y); }

// sin x / cos y and tan y.
VARIATION(tangent) { return scaled(weight, sine_of(x) / cosine_of(y), tangent_of(y)); }

// y becomes the secant of the radius, moved by 1 toward 0.
VARIATION(secant2) {
    real c = cosine_of(weight * vnorm(x, y));
    return scaled(weight, x, 1.0f / c + (c < 0.0f ? (real)(1.0f) : (real)(-1.0f)));
}

// sin to coth: functions of z (complex_sin and so on, variation.h). sinh to coth are sin to cot of i z, by exchanged
// coordinates: sinh z = -i sin(i z).
VARIATION(sin) { return complex_sin(weight, x, y); }

VARIATION(cos) { return complex_cos(weight, x, y); }

VARIATION(tan) { return complex_tan(weight, x, y); }

VARIATION(sec) { return complex_sec(weight, x, y); }

VARIATION(csc) { return conjugate(conjugate_csc(weight, x, y)); }

VARIATION(cot) { return conjugate(conjugate_cot(weight, x, y)); }

VARIATION(sinh) { return swapped(complex_sin(weight, y, x)); }

VARIATION(cosh) { return conjugate(complex_cos(weight, y, x)); }

VARIATION(tanh) { return swapped(complex_tan(weight, y, x)); }

VARIATION(sech) { return conjugate(complex_sec(weight, y, x)); }

VARIATION(csch) { return conjugate(swapped(conjugate_csc(weight, y, x))); }

VARIATION(coth) { return swapped(conjugate_cot(weight, y, x)); }

// Origin: JWildfire

// The complex functions NAME2_bs: see the top of this file.
VARIATION(sin2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    return scaled(weight, sine_of(x * x1) * hyperbolic_cosine(y * y2), cosine_of(x * x2) * hyperbolic_sine(y * y1));
}

VARIATION(cos2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    return scaled(weight, cosine_of(x * x2) * hyperbolic_cosine(y * y2), -sine_of(x * x1) * hyperbolic_sine(y * y1));
}

VARIATION(sinh2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    return scaled(weight, hyperbolic_sine(x * x1) * cosine_of(y * y2), hyperbolic_cosine(x * x2) * sine_of(y * y1));
}

VARIATION(cosh2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    return scaled(weight, hyperbolic_cosine(x * x2) * cosine_of(y * y2), hyperbolic_sine(x * x1) * sine_of(y * y1));
}

VARIATION(tan2_bs, x1 = 2, x2 = 2, y1 = 2, y2 = 2) {
    return scaled(weight / (cosine_of(x2 * x) + hyperbolic_cosine(y2 * y)), sine_of(x1 * x), hyperbolic_sine(y1 * y));
}

VARIATION(cot2_bs, x1 = 2, x2 = 2, y1 = 2, y2 = 2) {
    return scaled(weight / (hyperbolic_cosine(y2 * y) - cosine_of(x2 * x)), sine_of(x1 * x), -hyperbolic_sine(y1 * y));
}

VARIATION(tanh2_bs, x1 = 2, x2 = 2, y1 = 2, y2 = 2) {
    return scaled(weight / (cosine_of(y2 * y) + hyperbolic_cosine(x2 * x)), hyperbolic_sine(x1 * x), sine_of(y1 * y));
}

VARIATION(coth2_bs, x1 = 2, x2 = 2, y1 = 2, y2 = 2) {
    return scaled(weight / (hyperbolic_cosine(x2 * x) - cosine_of(y2 * y)), hyperbolic_sine(x1 * x), sine_of(y1 * y));
}

VARIATION(sec2_bs, x1 = 1.25, x2 = 0.75, y1 = 1.5, y2 = 0.5) {
    real k = 2.0f * weight / (cosine_of(2.0f * x) + hyperbolic_cosine(2.0f * y));
    return scaled(k, cosine_of(x * x2) * hyperbolic_cosine(y * y2), sine_of(x * x1) * hyperbolic_sine(y * y1));
}

VARIATION(csc2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    real k = 2.0f * weight / (hyperbolic_cosine(2.0f * y) - cosine_of(2.0f * x));
    return scaled(k, sine_of(x * x1) * hyperbolic_cosine(y * y2), -cosine_of(x * x2) * hyperbolic_sine(y * y1));
}

VARIATION(sech2_bs, x1 = 1.25, x2 = 0.75, y1 = 1.5, y2 = 0.75) {
    real k = 2.0f * weight / (cosine_of(2.0f * y) + hyperbolic_cosine(2.0f * x));
    return scaled(k, cosine_of(y * y2) * hyperbolic_cosine(x * x2), -sine_of(y * y1) * hyperbolic_sine(x * x1));
}

VARIATION(csch2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    real k = 2.0f * weight / (hyperbolic_cosine(2.0f * x) - cosine_of(2.0f * y));
    return scaled(k, hyperbolic_sine(x * x1) * cosine_of(y * y2), -hyperbolic_cosine(x * x2) * sine_of(y * y1));
}

// The sine of a multiple of z.
VARIATION(csin, stretch = 1.5) { return complex_sin(weight, x * stretch, y * stretch); }

// The rays: inversions along each axis times an oscillating function of the radius.
REPLACING(rays1) {
    real t = x * x + y * y, u = 1.0f / tangent_of(sqrt(t)) + weight * square((real)(2.0f / PI));
    return scaled(weight * u * t, 1.0f / x, 1.0f / y);
}

// rays1 with other functions of the radius.
REPLACING(rays2) {
    real t = x * x + y * y, u = 1.0f / cosine_of((t + 1e-30f) * tangent_of(1.0f / t + 1e-30f));
    return scaled(0.1f * weight * u * t, 1.0f / x, 1.0f / y);
}

// rays1 with other functions of the radius, which differ in x and y.
REPLACING(rays3) {
    real t = x * x + y * y, t2 = t * t;
    real u = 1.0f / sqrt(cosine_of(sine_of(t2 + 1e-30f) * sine_of(1.0f / t2 + 1e-30f)));
    return scaled(0.1f * weight * u * t, cosine_of(t) / x, tangent_of(t) / y);
}

// tanh(x) (sec(x) + effect pi), and the same of y.
VARIATION(funnel, effect = 8) {
    return scaled(weight, hyperbolic_tangent(x) * (1.0f / cosine_of(x) + effect * PI),
                  hyperbolic_tangent(y) * (1.0f / cosine_of(y) + effect * PI));
}

// 2 x tanh(r^2) / r^2 and 2 y cos(r^2) / r^2.
VARIATION(tancos) {
    real d = 1e-30f + x * x + y * y;
    return scaled(weight / d, hyperbolic_tangent(d) * 2.0f * x, cosine_of(d) * 2.0f * y);
}

// tan x and tan y times cosine and sine of a radius.
REPLACING(squirrel, a = 1, b = 1) {
    Pair c = circle(sqrt((a + 1e-9f) * x * x + (b + 1e-9f) * y * y));
    return scaled(weight, c.x * tangent_of(x), c.y * tangent_of(y));
}

// exp(z) with factors on the arguments of its three real functions.
VARIATION(exp2_bs, x1 = 1, y1 = 1, y2 = 1) {
    return scaled(weight * exponential_of(x * x1), cosine_of(y * y2), sine_of(y * y1));
}

// cot x cos y and -y / sin x, of a shifted point.
VARIATION(bsplit, x = 0, y = 0) {
    Pair c = circle(x + bsplit_x);
    return scaled(weight / c.y, c.x * cosine_of(y + bsplit_y), bsplit_y - y);
}

// cos x times the cubes of cos x cos y and sin x cos y.
VARIATION(petal) {
    Pair u = circle(x), v = circle(y);
    return scaled(weight * u.x, cube(u.x * v.x), cube(u.y * v.x));
}

// The hyperbolic sine of x + i a y.
REPLACING(hyperbolicellipse, a = 1) {
    Pair h = hyperbola(x), c = circle(a * y);
    return scaled(weight, h.y * c.x, h.x * c.y);
}

// Scales by a power of a squared cosecant of x.
VARIATION(csc_squared, csc_div = 1, cos_div = 1, tan_div = 1, csc_pow = 0.5, pi_mult = 0.5, csc_add = 0.25,
          scale_y = 1) {
    real c = csc_div / cosine_of(x / cos_div) / tangent_of(x / tan_div);
    real k = power_of(c * c + PI * pi_mult, (real)(csc_pow)) + csc_add;
    return scaled(weight * k, x, y * scale_y);
}

// Draws a mask: a sine of x times a hyperbolic cosine of y over the squared radius.
VARIATION(mask, xshift = 0, yshift = 0, ushift = 1, xscale = 1, yscale = 1) {
    Pair s = circle(xscale * x + xshift);
    real k = (hyperbola(yscale * y + yshift).x + ushift) * s.y * s.y / (x * x + y * y);
    return scaled(weight * k, s.y, s.x);
}

// tangent with the height tan x.
VARIATION_3D(tangent3D) {
    return triple(weight * sine_of(x) / cosine_of(y), weight * tangent_of(y), weight * tangent_of(x));
}

// Functions of the quaternion x + y j + z k, by zephyrtronium: estiq (exp), loq (log) and sinq to cotq. With u the unit
// vector of (y, z) and v their length, a function is the complex function of x + v i, with u in place of i.

VARIATION_3D(estiq) {
    real v = vnorm(y, z), e = weight * exponential_of(x);
    Pair c = circle(v);
    real k = e * c.y / v;
    return triple(e * c.x, k * y, k * z);
}

VARIATION_3D(loq, base = 2.718281828459045) {
    real v = vnorm(y, z), k = weight * angle_of(v, x) / v;
    return triple(0.5f * weight / logarithm_of((real)(base)) * logarithm_of(x * x + v * v), k * y, k * z);
}

// n (s t + a b u) for the unit vector u along (y, z).
DEVICE Triple quaternion(real n, real s, real t, real a, real b, real y, real z) {
    real k = n * a * b / vnorm(y, z);
    return triple(n * s * t, k * y, k * z);
}

// The weight over the squared length of the point. As in their origin, cscq to sechq multiply the conjugate of a
// function by it, where the inverse would divide by the squared length of the function.
DEVICE real quaternion_inverse(float weight, real x, real y, real z) { return weight / (x * x + y * y + z * z); }

// n times sin, cos, sinh and cosh of the quaternion; side 1, or -1 for the conjugate of the result.
DEVICE Triple sine_quaternion(real n, float side, real x, real y, real z) {
    Pair c = circle(x), h = hyperbola(vnorm(y, z));
    return quaternion(n, c.y, h.x, side * c.x, h.y, y, z);
}

DEVICE Triple cosine_quaternion(real n, real x, real y, real z) {
    Pair c = circle(x), h = hyperbola(vnorm(y, z));
    return quaternion(n, c.x, h.x, -c.y, h.y, y, z);
}

DEVICE Triple sinh_quaternion(real n, float side, real x, real y, real z) {
    Pair c = circle(vnorm(y, z)), h = hyperbola(x);
    return quaternion(n, h.y, c.x, side * h.x, c.y, y, z);
}

DEVICE Triple cosh_quaternion(real n, float side, real x, real y, real z) {
    Pair c = circle(vnorm(y, z)), h = hyperbola(x);
    return quaternion(n, h.x, c.x, side * h.y, c.y, y, z);
}

VARIATION_3D(sinq) { return sine_quaternion((real)(weight), 1.0f, x, y, z); }
VARIATION_3D(cosq) { return cosine_quaternion((real)(weight), x, y, z); }
VARIATION_3D(sinhq) { return sinh_quaternion((real)(weight), 1.0f, x, y, z); }
VARIATION_3D(coshq) { return cosh_quaternion((real)(weight), 1.0f, x, y, z); }
VARIATION_3D(cscq) { return sine_quaternion(quaternion_inverse(weight, x, y, z), -1.0f, x, y, z); }
VARIATION_3D(secq) { return cosine_quaternion(quaternion_inverse(weight, x, y, z), -x, y, z); }
VARIATION_3D(cschq) { return sinh_quaternion(quaternion_inverse(weight, x, y, z), -1.0f, x, y, z); }
VARIATION_3D(sechq) { return cosh_quaternion(quaternion_inverse(weight, x, y, z), -1.0f, x, y, z); }

// s + a q times the conjugate of t + b q, for q = y j + z k, over the squared length of the point, as in the origin; a
// quotient would divide by the squared length of t + b q. `sign` multiplies the imaginary part.
DEVICE Triple quaternion_quotient(float weight, real x, real y, real z, real s, real t, real a, real b, real sign) {
    real yz = y * y + z * z, n = weight / (x * x + yz), k = n * (a * t - s * b) * sign;
    return triple(n * (s * t + a * b * yz), k * y, k * z);
}

// The hyperbolic tangent as sinh over cosh.
VARIATION_3D(tanhq) {
    real v = vnorm(y, z);
    Pair c = circle(v), h = hyperbola(x);
    return quaternion_quotient(weight, x, y, z, h.y * c.x, h.x * c.x, h.x * c.y / v, h.y * c.y / v, (real)(1.0f));
}

// JWildfire's cothq is its tanhq.
VARIATION_3D(cothq);

// The tangent as sine over cosine; sign -1 negates the imaginary part, as cotq of the origin has it.
DEVICE Triple quaternion_tan(float weight, real x, real y, real z, real sign) {
    real v = vnorm(y, z);
    Pair c = circle(x), h = hyperbola(v);
    return quaternion_quotient(weight, x, y, z, c.y * h.x, c.x * h.x, c.x * h.y / v, -c.y * h.y / v, sign);
}

VARIATION_3D(tanq) { return quaternion_tan(weight, x, y, z, (real)(1.0f)); }

VARIATION_3D(cotq) { return quaternion_tan(weight, x, y, z, (real)(-1.0f)); }

// Origin: Fractorium

// A tenth of bsplit without shifts.
VARIATION(bisplit) {
    Pair c = circle(x);
    return scaled(0.1f * weight, c.x / c.y * cosine_of(y), -y / c.y);
}

// sin x and cos x times (cosh y + 1) sin^2 x.
VARIATION(crescents) {
    Pair c = circle(x);
    real k = weight * (hyperbolic_cosine(y) + 1.0f) * c.y * c.y;
    return scaled(k, c.y, c.x);
}

// The curvature 1 / r of the circle through the point, and the angle.
VARIATION(curvature) { return pair(weight / vnorm(x, y), angle_of(y, x)); }

// A twisted product of sines and cosines of x and y.
VARIATION_3D(psphere, zscale = 0) {
    Pair a = circle(PI * weight * x), b = circle(PI * weight * y);
    return triple(-a.x * b.y, a.y * b.x, b.x * zscale);
}

// (side sinh t, sin a t) / (cos a t + side cosh t).
DEVICE Pair hyperbolic_spiral(float weight, float side, float a, real t) {
    Pair h = hyperbola(t), c = circle(a * t);
    return scaled(weight / (c.x + side * h.x), side * h.y, c.y);
}

// A random point of the curve coth((t + i a t) / 2).
VARIATION(coth_spiral, a = 4) { return hyperbolic_spiral(weight, -1.0f, a, TWO_PI * (uniform(random) - 0.5f)); }

// A random point of the curve tanh((t + i a t) / 2).
VARIATION(tanh_spiral, a = 4) { return hyperbolic_spiral(weight, 1.0f, a, TWO_PI * (uniform(random) - 0.5f)); }

// The error function by a rational approximation, exact to 1.2e-7 (W. H. Press et al., Numerical Recipes, erfcc).
DEVICE real error_function(real x) {
    real t = 1.0f / (1.0f + 0.5f * magnitude(x)), p = 0.17087277f * t - 0.82215223f;
    p = ((p * t + 1.48851587f) * t - 1.13520398f) * t + 0.27886807f;
    p = (((p * t - 0.18628806f) * t + 0.09678418f) * t + 0.37409196f) * t + 1.00002368f;
    real rest = t * exponential_of(p * t - 1.26551223f - x * x);
    return x >= 0.0f ? 1.0f - rest : rest - 1.0f;
}

// The error function of each coordinate.
VARIATION(erf) { return scaled(weight, error_function(x), error_function(y)); }

// The error function of each of three coordinates.
VARIATION_3D(erf3D) { return scaled3((real)(weight), error_function(x), error_function(y), error_function(z)); }

// The error function of a small coordinate, an inversion of a large one.
VARIATION_3D(xerf) {
    real r2 = x * x + y * y + z * z, a = magnitude(x) >= 2.0f ? x / r2 : error_function(x);
    real b = magnitude(y) >= 2.0f ? y / r2 : error_function(y), c = magnitude(z) >= 2.0f ? z / r2 : error_function(z);
    return scaled3((real)(weight), a, b, c);
}

// The logarithm of the gamma function by Stirling's series.
VARIATION(gamma) {
    real r = vnorm(x, y), low = zero_real();
    for (int k = 0; k < 6; k++) {
        mask small = r < 6.0f;
        low = low + (small ? logarithm_of(r) : zero_real());
        r = small ? r + 1.0f : r;
    }
    real s = 1.0f / (r * r), series = (1.0f / 12.0f - s * (1.0f / 360.0f - s * (1.0f / 1260.0f))) / r;
    return scaled(weight, (r - 0.5f) * logarithm_of(r) - r + 0.9189385332f + series - low, angle_of(y, x));
}

// A curl of sinh, plus noise of four kinds (fuzzyMode), blended by fuzzyInterpolationMode and position.
VARIATION(dragonfire, c1 = 0.5, c2 = 0.25, fuzzyMode = 0, fuzzyRadius = 1, fuzzyInterpolationMode = 0,
          fuzzyInterpolationPosition = 1, logScalarFuzzy = 6.283185307179586, adjustedFuzzyScalar = 0.5) {
    real e = exponential_of(x) * c1, down = c2 / e, k = weight / (e + down - cosine_of(y));
    real u = (e - down) * k, v = sine_of(y) * k;
    if (fuzzyMode < 1.0f) return pair(u, v);
    real a = cosine_of(logScalarFuzzy / logarithm_of(magnitude(u)));
    real b = cosine_of(logScalarFuzzy / logarithm_of(magnitude(v)));
    real da = a < 0.0f ? (real)(-fuzzyRadius) : (real)(fuzzyRadius),
         db = b < 0.0f ? (real)(-fuzzyRadius) : (real)(fuzzyRadius);
    real p = u + exponential_of(sine_of(da)), q = v + exponential_of(cosine_of(db));
    if (fuzzyMode < 2.0f)
        p = u + a, q = v + b;
    else if (fuzzyMode < 3.0f)
        p = u * sine_of(a), q = v * sine_of(b);
    else if (fuzzyMode < 4.0f)
        p = u * exponential_of(sine_of(a)), q = v * exponential_of(sine_of(b));
    else if (fuzzyMode < 5.0f)
        p = u + da, q = v + db;
    else if (fuzzyMode < 6.0f)
        p = u + exponential_of(da), q = v + exponential_of(db);
    if (fuzzyInterpolationMode < 1.0f) return pair(p, q);
    real at = (real)(PI * fuzzyInterpolationPosition), t = (real)(fuzzyInterpolationPosition);
    if (fuzzyInterpolationMode >= 2.0f) {
        real curve = fuzzyInterpolationMode >= 5.0f   ? logarithm_of(at + sqrt(at * at + 1.0f))
                     : fuzzyInterpolationMode >= 4.0f ? hyperbolic_sine(at)
                     : fuzzyInterpolationMode >= 3.0f ? tangent_of(at)
                                                      : cosine_of(at);
        t = (1.0f - curve) * adjustedFuzzyScalar;
    }
    return pair(blend(u, p, t), blend(v, q, t));
}

// Origin: JWildfire

// Cosine or sine of x over the hyperbolic cosine or sine of y; Mode chooses functions and signs.
VARIATION(whirligig, Mode = 0 [0, 15]) {
    Pair c = circle(x), h = hyperbola(y);
    float kind = floor(Mode / 4.0f), signs = Mode - 4.0f * kind;
    real u = kind == 0.0f || kind == 3.0f ? c.x : c.y, v = kind == 0.0f || kind == 3.0f ? c.y : c.x;
    u = kind < 2.0f ? u / h.x : u / h.y;
    v = kind < 2.0f ? v / h.y : v / h.x;
    return scaled(weight, signs == 0.0f || signs == 2.0f ? u : -u, signs == 1.0f || signs == 2.0f ? v : -v);
}
