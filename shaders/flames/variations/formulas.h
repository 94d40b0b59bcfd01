// Plots of formulas that a .flame file holds as text: renderer/flames/variations/formulas.py compiles them to programs.
// Grammar (VARIATION, REPLACING, ...), given names (x, weight, random, ...), shared functions: flames/variation.h.

// Origin: JWildfire

// The value of the program of a stack machine at index `at` of a table: its length, then codes. Code 0 pushes the
// number that follows it, 1 to 3 push x, y or z; the others, numbered by OPERATORS and FUNCTIONS of formulas.py, replace
// the topmost number b, or from 4 to 10 the two topmost numbers a and b. formulas.py checks that 12 numbers are enough.
DEVICE real formula_value(GLOBAL const float *table, int at, real x, real y, real z) {
    real stack[12];
    int top = 0, end = at + 1 + (int)table[at];
    for (int k = 0; k < 12; k++) stack[k] = zero_real();
    for (int k = at + 1; k < end; k++) {
        int code = (int)table[k];
        if (code < 4) {
            real pushed = x;
            if (code == 0) pushed = (real)(table[++k]);
            if (code == 2) pushed = y;
            if (code == 3) pushed = z;
            stack[top++] = pushed;
            continue;
        }
        real b = stack[top - 1], a = top > 1 ? stack[top - 2] : b, r = b;
        if (code < 11) top--;
        if (code == 4) r = a + b;
        if (code == 5) r = a - b;
        if (code == 6) r = a * b;
        if (code == 7) r = a / b;
        if (code == 8) {  // a negative base has only whole powers
            real p = power_of(magnitude(a), b), odd = b - 2.0f * floor_of(0.5f * b);
            real nan = (a - a) / (a - a);
            r = a >= 0.0f ? p : odd == 0.0f ? p : odd == 1.0f ? -p : nan;
        }
        if (code == 9) r = angle_of(a, b);
        if (code == 10) r = remainder_of(a, b);
        if (code == 11) r = -b;
        if (code == 12) r = sine_of(b);
        if (code == 13) r = cosine_of(b);
        if (code == 14) r = tangent_of(b);
        if (code == 15) r = sqrt(b);
        if (code == 16) r = b * b;
        if (code == 17) r = exponential_of(b);
        if (code == 18) r = logarithm_of(b);
        if (code == 19) r = magnitude(b);
        if (code == 20) r = floor_of(b);
        if (code == 21) r = hyperbolic_tangent(b);
        if (code == 22) r = hyperbola(b).y;
        if (code == 23) r = hyperbola(b).x;
        if (code == 24) r = arcsine(b);
        if (code == 25) r = arccosine(b);
        if (code == 26) r = arctangent(b);
        if (code == 27) r = sign_of(b);
        stack[top - 1] = r;
    }
    return stack[0];
}

// The curve y = f(x) at random x and z. preset_id and displacement maps are ignored here and below.
VARIATION_3D(yplot2d_wf, preset_id = -1, xmin = -1, xmax = 1, ymin = -4, ymax = 4, zmin = -2, zmax = 2,
             direct_color = 1, color_mode = 1, blend_colormap = 1, displ_amount = 0.1, blend_displ_map = 1, param_a = 0,
             param_b = 0, param_c = 0, param_d = 0, param_e = 0, param_f = 0) {
    real u = uniform(random), v = uniform(random), a = xmin + u * (xmax - xmin), c = zmin + v * (zmax - zmin);
    real b = formula_value(table, 0, a, a, a);
    if (direct_color > 0.0f) *color = color_mode == 2.0f ? fraction_of_range(b, ymin, ymax) : u;
    return scaled3(weight, a, b, c);
}

// The curve of radius f(t) at the angle t.
VARIATION_3D(polarplot2d_wf, preset_id = -1, tmin = -3.141592653589793, tmax = 3.141592653589793, rmin = -4, rmax = 4,
             zmin = -2, zmax = 2, direct_color = 1, color_mode = 1, blend_colormap = 1, displ_amount = 0.1,
             blend_displ_map = 1, param_a = 0, param_b = 0, param_c = 0, param_d = 0, param_e = 0, param_f = 0) {
    real u = uniform(random), v = uniform(random), t = tmin + u * (tmax - tmin), c = zmin + v * (zmax - zmin);
    real r = formula_value(table, 0, t, t, t);
    Pair p = from_polar(r, t);
    if (direct_color > 0.0f) *color = color_mode == 2.0f ? fraction_of_range(r, rmin, rmax) : u;
    return scaled3(weight, p.x, p.y, c);
}

// The surface (f(u, v), g(u, v), h(u, v)), or with solid 0 its edges. The table holds the three programs.
VARIATION_3D(parplot2d_wf, preset_id = -1, umin = 0, umax = 6.283185307179586, vmin = 0, vmax = 6.283185307179586,
             direct_color = 1, color_mode = 3, blend_colormap = 1, displ_amount = 0.1, blend_displ_map = 1, solid = 1,
             param_a = 0, param_b = 0, param_c = 0, param_d = 0, param_e = 0, param_f = 0) {
    real s = uniform(random), t = uniform(random), edge = uniform(random);
    if (solid == 0.0f) {
        s = edge < 0.25f ? zero_real() : edge < 0.5f ? (real)(1.0f) : s;
        t = edge < 0.5f ? t : edge < 0.75f ? zero_real() : (real)(1.0f);
    }
    real u = umin + s * (umax - umin), v = vmin + t * (vmax - vmin);
    int second = 1 + (int)table[0], third = second + 1 + (int)table[second];
    real a = formula_value(table, 0, u, v, u), b = formula_value(table, second, u, v, u);
    real c = formula_value(table, third, u, v, u);
    if (direct_color > 0.0f)
        *color = color_mode == 1.0f ? s : color_mode == 2.0f ? t : color_mode == 3.0f ? s * t : *color;
    return scaled3(weight, a, b, c);
}

// The surface of radius f(t, u), in spherical or cylindrical coordinates.
VARIATION_3D(polarplot3d_wf, preset_id = -1, tmin = -3.141592653589793, tmax = 3.141592653589793, umin = -1.570796,
             umax = 1.570796, rmin = -2, rmax = 2, cylindrical = 0, direct_color = 1, color_mode = 3,
             blend_colormap = 1, displ_amount = 0.1, blend_displ_map = 1, param_a = 0, param_b = 0, param_c = 0,
             param_d = 0, param_e = 0, param_f = 0) {
    real s = uniform(random), q = uniform(random), t = tmin + s * (tmax - tmin), u = umin + q * (umax - umin);
    real r = formula_value(table, 0, t, u, t);
    Pair p = circle(t), e = circle(u);
    if (direct_color > 0.0f)
        *color = color_mode == 1.0f   ? s
                 : color_mode == 2.0f ? q
                 : color_mode == 4.0f ? fraction_of_range(r, rmin, rmax)
                                      : s * q;
    if (cylindrical != 0.0f) return triple(weight * r * p.x, weight * r * p.y, weight * u);
    return triple(weight * r * e.x * p.x, weight * r * e.x * p.y, weight * r * e.y);
}

// Random points of a box near the surface f(x, y, z) = 0: the first of max_iter points with |f| at most `thickness`.
VARIATION_3D(isosfplot3d_wf, preset_id = -1, xmin = -1, xmax = 1, ymin = -1, ymax = 1, zmin = -1, zmax = 1,
             thickness = 0.05, max_iter = 160 [1, 1000], direct_color = 1, color_mode = 9, blend_colormap = 1,
             param_a = 0, param_b = 0, param_c = 0, param_d = 0, param_e = 0, param_f = 0) {
    real s = uniform(random), t = uniform(random), a = zero_real(), b = a, c = a;
    Random many = stream_of(s, t);
    mask found = a > 1.0f;  // false
    for (int k = 0; (float)k < max_iter; k++) {
        real u = xmin + uniform(&many) * (xmax - xmin), v = ymin + uniform(&many) * (ymax - ymin);
        real w = zmin + uniform(&many) * (zmax - zmin);
        mask here = !found && magnitude(formula_value(table, 0, u, v, w)) <= thickness;
        a = here ? u : a;
        b = here ? v : b;
        c = here ? w : c;
        found = found || here;
        if (!ANY_LANE(!found)) break;
    }
    *hidden = !found;
    real sx = fraction_of_range(a, xmin, xmax), sy = fraction_of_range(b, ymin, ymax),
         sz = fraction_of_range(c, zmin, zmax), shade = *color;
    if (direct_color > 0.0f) {
        shade = color_mode == 0.0f ? sx : color_mode == 1.0f ? sy : color_mode == 2.0f ? sz : shade;
        shade = color_mode == 6.0f ? sx * sy : color_mode == 7.0f ? sy * sz : color_mode == 8.0f ? sz * sx : shade;
        shade = color_mode == 9.0f ? sx * sy * sz : shade;
        *color = found ? shade : *color;
    }
    return scaled3(weight, a, b, c);
}
