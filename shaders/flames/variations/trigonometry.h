// Functions of a complex number whose four real factors have frequencies of their own (Brad Stefanov's _bs).
// Origin: JWildfire

VARIATION(sin2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    real s = sine_of(x * x1), c = cosine_of(x * x2);
    return scaled(weight, s * hyperbola(y * y2).x, c * hyperbola(y * y1).y);
}

VARIATION(cos2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    real s = sine_of(x * x1), c = cosine_of(x * x2);
    return scaled(weight, c * hyperbola(y * y2).x, -s * hyperbola(y * y1).y);
}

VARIATION(sinh2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    real s = sine_of(y * y1), c = cosine_of(y * y2);
    return scaled(weight, hyperbola(x * x1).y * c, hyperbola(x * x2).x * s);
}

VARIATION(cosh2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    real s = sine_of(y * y1), c = cosine_of(y * y2);
    return scaled(weight, hyperbola(x * x2).x * c, hyperbola(x * x1).y * s);
}

VARIATION(tan2_bs, x1 = 2, x2 = 2, y1 = 2, y2 = 2) {
    real k = weight / (cosine_of(x2 * x) + hyperbola(y2 * y).x);
    return scaled(k, sine_of(x1 * x), hyperbola(y1 * y).y);
}

VARIATION(cot2_bs, x1 = 2, x2 = 2, y1 = 2, y2 = 2) {
    real k = weight / (hyperbola(y2 * y).x - cosine_of(x2 * x));
    return scaled(k, sine_of(x1 * x), -hyperbola(y1 * y).y);
}

VARIATION(tanh2_bs, x1 = 2, x2 = 2, y1 = 2, y2 = 2) {
    real k = weight / (cosine_of(y2 * y) + hyperbola(x2 * x).x);
    return scaled(k, hyperbola(x1 * x).y, sine_of(y1 * y));
}

VARIATION(coth2_bs, x1 = 2, x2 = 2, y1 = 2, y2 = 2) {
    real k = weight / (hyperbola(x2 * x).x - cosine_of(y2 * y));
    return scaled(k, hyperbola(x1 * x).y, sine_of(y1 * y));
}

VARIATION(sec2_bs, x1 = 1.25, x2 = 0.75, y1 = 1.5, y2 = 0.5) {
    real k = 2.0f * weight / (cosine_of(2.0f * x) + hyperbola(2.0f * y).x);
    return scaled(k, cosine_of(x * x2) * hyperbola(y * y2).x, sine_of(x * x1) * hyperbola(y * y1).y);
}

VARIATION(csc2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    real k = 2.0f * weight / (hyperbola(2.0f * y).x - cosine_of(2.0f * x));
    return scaled(k, sine_of(x * x1) * hyperbola(y * y2).x, -cosine_of(x * x2) * hyperbola(y * y1).y);
}

VARIATION(sech2_bs, x1 = 1.25, x2 = 0.75, y1 = 1.5, y2 = 0.75) {
    real k = 2.0f * weight / (cosine_of(2.0f * y) + hyperbola(2.0f * x).x);
    return scaled(k, cosine_of(y * y2) * hyperbola(x * x2).x, -sine_of(y * y1) * hyperbola(x * x1).y);
}

VARIATION(csch2_bs, x1 = 1, x2 = 1, y1 = 1, y2 = 1) {
    real k = 2.0f * weight / (hyperbola(2.0f * x).x - cosine_of(2.0f * y));
    return scaled(k, hyperbola(x * x1).y * cosine_of(y * y2), -hyperbola(x * x2).x * sine_of(y * y1));
}
