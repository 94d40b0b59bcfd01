// Maps of x, y and z: rotations, tilts, cylinders, and heights that depend on x and y.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// Rolls the plane around a cylinder: sin x, y and the height cos x.
VARIATION(cylinder) { return scaled(weight, sine_of(x), y); }

// The height of cylinder.
VARIATION_Z(cylinder) { return weight * cosine_of(x); }

// The plane, tilted by angle x 90 degrees, seen from the distance `dist`.
VARIATION(perspective, angle = 0, dist = 0) {
    Pair c = circle((real)(angle * (PI / 2.0f)));
    real t = 1.0f / (dist - y * c.y);
    return scaled(weight * t, dist * x, dist * c.x * y);
}

// Origin: JWildfire

// The height of a cone.
VARIATION_3D(zcone) { return triple(zero_real(), zero_real(), weight * vnorm(x, y)); }

// The inflateZ variations add a height that depends on the angle of (x, y) or on x and y.
VARIATION_3D(inflateZ_1) { return triple(zero_real(), zero_real(), weight * (sine_of(angle_of(y, x)) - 2.0f * y)); }

VARIATION_3D(inflateZ_3) {
    real a = angle_of(y, x);
    return triple(zero_real(), zero_real(), weight * 0.2f * (PI - a) * cosine_of(3.0f * a + (y - x)));
}

VARIATION_3D(inflateZ_4) {
    real a = 0.5f * PI - angle_of(y, x);
    return triple(zero_real(), zero_real(), weight * 0.25f * random_sign(-a, random));
}

VARIATION_3D(inflateZ_5) { return triple(zero_real(), zero_real(), weight * 0.5f * sine_of(angle_of(y, x))); }

VARIATION_3D(inflateZ_6) {
    real a = angle_of(y, x), k = a * sine_of(y - x);
    return triple(zero_real(), zero_real(), weight * (1.5f - arccosine(sine_of(a) * k * 0.5f)));
}

// A rotation about the x axis by `weight` quarter turns. Files write the rotations as post_rotate_x and so on.
VARIATION_3D(rotate_x) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(x, c.y * z + c.x * y, c.x * z - c.y * y);
}

// A rotation about the y axis by `weight` quarter turns.
VARIATION_3D(rotate_y) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(c.x * x - c.y * z, y, c.y * x + c.x * z);
}

// A rotation about the z axis by `weight` quarter turns.
VARIATION_3D(rotate_z) {
    Pair c = circle((real)(weight * (0.5f * PI)));
    return triple(c.y * y + c.x * x, c.x * y - c.y * x, z);
}

// cylinder with its height in any flame.
VARIATION_3D(cylinder_apo) { return scaled3(weight, sine_of(x), y, cosine_of(x)); }

// A height that falls with x + y.
VARIATION_3D(inflateZ_2) { return triple(zero_real(), zero_real(), weight * (0.25f - 2.0f * (x + y) * 0.333333f)); }

// Moves the point on a circle by its height.
VARIATION_3D(helix, frequency = 1, width = 0.5) {
    Pair c = circle(z * (TWO_PI * frequency));
    return scaled3(weight, x + c.x * width, y + c.y * width, z);
}

// Rotates the point about the z axis in proportion to its height.
VARIATION_3D(helicoid, frequency = 1) {
    return lifted(from_polar(weight * vnorm(x, y), z * (TWO_PI * frequency) + angle_of(y, x)), weight * z);
}

// A height by spiral waves, which is the color too.
VARIATION_3D(swirl3D_wf, n = 0) {
    real s = sine_of(6.0f * cosine_of(vnorm(x, y)) - floor(n + 0.5f) * angle_of(y, x));
    *color = magnitude(s);
    return scaled3(weight, x, y, s);
}

// z becomes 0.
POST_3D(flatten) { return triple(x, y, zero_real()); }

// A power of any real; NaN for a negative base and an exponent that is not whole.
DEVICE real power_or_nan(real x, float exponent) {
    real p = power_of(magnitude(x), (real)(exponent)), none = (x - x) / (x - x);  // NaN
    if (exponent != floor(exponent)) return x < 0.0f ? none : p;
    return exponent - 2.0f * floor(0.5f * exponent) == 0.0f ? p : with_sign_of(p, x);
}

// Powers of the coordinates of a sphere with latitude y and longitude x, plus multiples of them.
VARIATION_3D(ho, xpow = 3, ypow = 3, zpow = 3) {
    Pair u = circle(x), v = circle(y);
    real a = u.x * v.x, b = u.y * v.x, z2 = z * z;
    real p = power_or_nan(a, xpow) + a * xpow + 0.25f * angle_of(y * y, z2);
    real q = power_or_nan(b, ypow) + b * ypow + 0.25f * angle_of(x * x, z2);
    return scaled3(weight, p, q, power_or_nan(v.y, zpow) + v.y * zpow);
}

// Wraps the plane around a sphere; z is the height above it.
VARIATION_3D(sphere_nja, circle_a = 1, circle_b = 1, shift_x = 0, shift_y = 0, shift_z = 0, stretch = 1) {
    real u = x - shift_x, v = y - shift_y, h = z - shift_z, s = vnorm(u, v);
    Pair c = circle(s / stretch - 0.5f * PI);
    real r = weight * c.x, w = weight * c.y, k = r * (1.0f + h) / s;
    return triple(k * u + shift_x, k * v + shift_y, w + h * w / (r * r + w * w) + shift_z);
}

// A random height up to `weight`, or the end face.
VARIATION_3D(extrude, root_face = 0.5) {
    mask root = uniform(random) < root_face;
    real h = uniform(random);
    return triple(zero_real(), zero_real(), root ? (real)(fmax(weight, 0.0f)) : weight * h);
}

// Origin: Apophysis

// A. Liasotskiy's depth.
DEVICE real depth_of(real z, float power) {
    real k = magnitude(z);
    return power == 1.0f ? k : (k == 0.0f ? k : power_of(k, (real)(power)));
}

// Scales by 1 plus a power of |z|.
VARIATION_3D(depth, power = 1) {
    real k = weight * (1.0f + depth_of(z, power));
    return scaled3(k, x, y, z);
}

// depth as a post-variation.
POST_3D(post_depth, power = 1) {
    real k = 1.0f + weight * depth_of(z, power);
    return triple(k * x + weight * unvaried.x, k * y + weight * unvaried.y, k * z + weight * unvaried.z);
}

// Origin: JWildfire

// A scale, a shear, rotations about the three axes in degrees, and a translation.
VARIATION_3D(affine3D, translateX = 0, translateY = 0, translateZ = 0, scaleX = 1, scaleY = 1, scaleZ = 1, rotateX = 0,
             rotateY = 0, rotateZ = 0, shearXY = 0, shearXZ = 0, shearYX = 0, shearYZ = 0, shearZX = 0, shearZY = 0) {
    float k = PI / 180.0f;
    Pair a = circle((real)(k * rotateX)), b = circle((real)(k * rotateY)), c = circle((real)(k * rotateZ));
    real p = scaleX * x, q = scaleY * y, r = scaleZ * z, u = p + shearXY * q + shearXZ * r;
    real v = q + shearYX * p + shearYZ * r, w = r + shearZX * p + shearZY * q;
    real across = v * a.x - w * a.y, up = v * a.y + w * a.x, along = b.x * u + b.y * up;
    return scaled3((real)(weight), c.x * along - c.y * across + translateX, c.y * along + c.x * across + translateY,
                   b.x * up - b.y * u + translateZ);
}

// Adds a height in proportion to the palette coordinate.
VARIATION_3D(colorscale_wf, scale_x = 0, scale_y = 0, scale_z = 0.5, offset_z = 0, reset_z = 0, sides = 0) {
    real h = *color * scale_z * weight + offset_z, u = uniform(random);
    return triple(weight * scale_x * x, weight * scale_y * y, sides > 0.0f && reset_z <= 0.0f ? h * u : h);
}

// A wave around an axis. A file's pre_ or post_wave3D_wf adds the wave to the point, as pre_add_ and post_add_ do.
VARIATION_3D(wave3D_wf, axis = 2, wavelen = 0.5, phase = 0, damping = 0.01, centre_x = 0, centre_y = 0, centre_z = 0) {
    real u = axis == 1.0f ? zero_real() : x - centre_x, v = axis == 2.0f ? zero_real() : y - centre_y;
    real w = axis == 0.0f ? zero_real() : z - centre_z, r = sqrt(u * u + v * v + w * w), l = r / wavelen;
    real up = weight * exponential_of(-damping * l) * sine_of(TWO_PI * l + phase), k = up / r, none = zero_real();
    if (axis == 3.0f) return triple(u * k, v * k, w * k);
    return triple(axis == 1.0f ? up : none, axis == 2.0f ? up : none, axis == 0.0f ? up : none);
}

// Scales and moves z.
POST_3D(post_zscale_wf, ztranslate = 0) { return triple(x, y, weight * z + ztranslate); }

// Moves z.
POST_3D(post_ztranslate_wf) { return triple(x, y, z + weight); }

// petal of trigonometry.h with a third coordinate, folded along x and y.
VARIATION_3D(petal3D_apo, width = 1, Zshape = 0.25, scale1 = 0.25, scale2 = 0.25, style = 0) {
    Pair c = circle(x), d = circle(y);
    real v = weight * c.x * cube(c.y * d.x) * width, fold = -0.5f * sine_of(x * (scale1 * PI));
    if (fabs(scale1) > 1.0f) fold = fold + x * (0.5f * (fabs(scale1) - 1.0f));
    real first = fold + sine_of(magnitude(y * (scale2 * PI))), last = fold + v * (0.5f * scale2);
    float t = 1.0f - 2.0f * style * style, sign = style >= 0.0f ? 1.0f : -1.0f;
    real h = style == 0.0f ? first : fabs(style) > 0.70710678f ? sign * last : t * first + sign * (1.0f - t) * last;
    return triple(weight * c.x * cube(c.x * d.x), v, weight * h * Zshape);
}

// sin(u + a1) cos(v + a2) sin(u + a3) cos(v + a4) sin(u + a5) cos(v + a6); with `even` the sines are cosines.
DEVICE real petal_product(real u, real v, float a1, float a2, float a3, float a4, float a5, float a6, float even) {
    real turn = (real)(even != 0.0f ? 0.5f * PI : 0.0f);
    real s = sine_of(u + a1 + turn) * sine_of(u + a3 + turn) * sine_of(u + a5 + turn);
    return s * cosine_of(v + a2) * cosine_of(v + a4) * cosine_of(v + a6);
}

// Products of six sines and cosines of two coordinates for x, y and, by `mode`, z.
VARIATION_3D(petal3D, mode = 1 [0, 4], x1 = 0, x2 = 0, x3 = 0, x4 = 0, x5 = 0, x6 = 0, y1 = 0, y2 = 0, y3 = 0, y4 = 0,
             y5 = 0, y6 = 0, z1 = 0, z2 = 0, z3 = 0, z4 = 0, z5 = 0, z6 = 0, warp = 1) {
    real k = weight * cosine_of(x * warp), u = mode <= 2.0f ? z : mode == 3.0f ? y : x;
    real v = mode <= 1.0f ? x : mode == 2.0f ? y : z, h = petal_product(u, v, z1, z2, z3, z4, z5, z6, 0.0f);
    return triple(k * petal_product(x, y, x1, x2, x3, x4, x5, x6, 1.0f),
                  k * petal_product(x, y, y1, y2, y3, y4, y5, y6, 0.0f), mode < 1.0f ? weight * z : k * h);
}

// Origin: Apophysis

// Moves points between the radii r_min and r_max: the inverse of a radius that is stretched at random.
POST_3D(post_stun, power = 1, r_min = 0, r_max = 1) {
    real r2 = x * x + y * y, far = square(sqrt(r2) * (1.0f + fabs(power) * uniform(random)));
    real k = 1.0f / (far > fmax(r_min, r_max) ? far : r2) - 1.0f;
    k = r2 > fmin(r_min, r_max) ? k : (real)(1.0f);
    return scaled3(weight, k * x, k * y, z);
}
