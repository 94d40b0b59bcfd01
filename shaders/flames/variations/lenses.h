// Lenses: fisheyes, bubbles, and discs whose inside is magnified.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: flam3

// The radius r becomes 2 r / (r + 1), and x and y are exchanged: an old mistake, kept for old flames.
VARIATION(fisheye) { return scaled(2.0f * weight / (vnorm(x, y) + 1.0f), y, x); }

// The radius r becomes 2 r / (r + 1).
VARIATION(eyefish) { return scaled(2.0f * weight / (vnorm(x, y) + 1.0f), x, y); }

// The plane onto a sphere by stereographic projection from a pole; z is its height.
VARIATION(bubble) { return scaled(weight / (0.25f * (x * x + y * y) + 1.0f), x, y); }

// The height of bubble.
VARIATION_Z(bubble) { return weight * (2.0f / (0.25f * (x * x + y * y) + 1.0f) - 1.0f); }

// In the disc of radius w = `weight`, the radius r becomes w sqrt(w^2 - r^2), which turns the disc inside out.
VARIATION(loonie) {
    real r2 = x * x + y * y, w2 = (real)(weight * weight);
    return scaled(r2 < w2 ? weight * sqrt(w2 / r2 - 1.0f) : (real)(weight), x, y);
}

// The radius r becomes 1 / (r^2 + 1 / weight).
VARIATION(scry) {
    real r2 = x * x + y * y;
    return scaled(1.0f / (sqrt(r2) * (r2 + 1.0f / (weight + EPSILON))), x, y);
}

// Origin: JWildfire

// bubble in space, scaled by (x, y, z).
VARIATION_3D(bubble2, x = 1, y = 1, z = 0) {
    real k = weight / ((x * x + y * y + z * z) * 0.25f + 1.0f);
    real shifted = z >= 0.0f ? z + bubble2_z : z - bubble2_z;
    return triple(k * x * bubble2_x, k * y * bubble2_y, weight * shifted + k * z * bubble2_z);
}

// Shrinks the unit disc by `scale`, and enlarges the rest by 1 / scale.
VARIATION(circus, scale = 0.92) {
    real k = vnorm(x, y) <= 1.0f ? (real)(scale) : (real)(1.0f / scale);
    return scaled(weight * k, x, y);
}

// Exchanges two discs on the x axis: radius r1, center r1 + d1, and radius r2, center -(r2 + d2).
VARIATION(trade, r1 = 1, d1 = 1, r2 = 1, d2 = 1) {
    float c1 = r1 + d1, c2 = r2 + d2;
    real u = c1 - x, v = -c2 - x;
    mask right = x > 0.0f;
    mask in1 = u * u + y * y <= (real)(r1 * r1), in2 = v * v + y * y <= (real)(r2 * r2);
    real px = right ? (in1 ? u * (r2 / r1) - c2 : x) : (in2 ? v * (r1 / r2) + c1 : x);
    real py = right ? (in1 ? y * (r2 / r1) : y) : (in2 ? y * (r1 / r2) : y);
    return scaled(weight, px, py);
}

// x becomes x / sqrt(x^2 + 1), the sine of its arc tangent.
VARIATION(cylinder2) { return scaled(weight, x / sqrt(x * x + 1.0f), y); }

// Polar coordinates of k (x, y): the angle over pi, and the radius less 0.5.
DEVICE Pair panorama(float weight, real x, real y, real k) {
    real u = k * x, v = k * y;
    return scaled(weight, atan_xy(v, u) * (1.0f / PI), vnorm(u, v) - 0.5f);
}

// panorama() of the point divided by sqrt(r^2 + 1).
VARIATION(panorama1) { return panorama(weight, x, y, 1.0f / sqrt(x * x + y * y + 1.0f)); }

// panorama() of the point divided by r + 1.
VARIATION(panorama2) { return panorama(weight, x, y, 1.0f / (vnorm(x, y) + 1.0f)); }

// loonie with the radius (x^2 + y^2) / x in place of r; points with x <= 0 stay.
VARIATION(loonie3) {
    float w2 = weight * weight;
    real r2 = x > 1e-30f ? square((x * x + y * y) / x) : (real)(2.0f * w2);
    return scaled(r2 < w2 ? weight * sqrt(w2 / r2 - 1.0f) : (real)(weight), x, y);
}

// Shifts the disc of radius `weight` by a fraction of it; points that leave it enter on the other side.
VARIATION(eclipse, shift = 0.1) {
    real c = sqrt(weight * weight - y * y), u = x + shift * weight;
    mask inside = magnitude(y) <= weight && magnitude(x) <= c;
    return scaled(weight, inside ? (magnitude(u) >= c ? -x : u) : x, y);
}

// bubble on a sphere, at the front or at the back at random.
VARIATION_3D(bubble_wf) {
    real r = 0.25f * (x * x + y * y) + 1.0f, k = weight / r, h = weight * (2.0f / r - 1.0f);
    return triple(k * x, k * y, random_sign(-h, random));
}

// scry in space; a flat point is measured by its radius in the plane, and its angle becomes z.
VARIATION_3D(scry_3D) {
    real r2 = x * x + y * y + z * z, k = 1.0f / (sqrt(r2) * (r2 + 1.0f / (weight + 1e-30f)));
    return scaled3(k, x, y, z != 0.0f ? z : angle_of(y, x));
}

// loonie in space, where a flat point's angle is its height.
VARIATION_3D(loonie_3D) {
    float w2 = weight * weight;
    real h = z == 0.0f ? angle_of(y, x) : z, r2 = x * x + y * y + h * h;
    real k = r2 < 1e-9f ? zero_real() : r2 < w2 ? weight * sqrt(w2 / r2 - 1.0f) : (real)(weight);
    return triple(k * x, k * y, 0.5f * k * h);
}
