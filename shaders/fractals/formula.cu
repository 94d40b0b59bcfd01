// Escape-time fractals of a formula in text, in double. The generated source that includes this file defines
// START(c) and STEP(z, c), expressions of Dual numbers (dual.h), and the launcher STOP: 0 where z escapes, 1 where it
// converges, as under Newton's method.
#include "fractals/sample.h"

#define CONVERGED2 1e-12  // |difference of two iterates|^2

// Draws a sample of each pixel: iterates z = STEP(z, c) from START(c) until it escapes, or with STOP until it
// converges.
KERNEL draw_formula(GLOBAL float4 *frame, View v) {
    uint i = thread_index();
    if (i >= (uint)(v.width * v.height_in_pixels)) return;
    double2 point = v.center + sample_offset(i, v) * (v.height * power_of_two(v.height_exponent));
    Dual c = dual(point, make_double2(1.0, 0.0)), z = START(c);
    Escape r = start_escape(wide(z.d, 0), wide(z.d, 0));
    double size2 = 0.0;
    for (int n = 1; n <= v.max_iterations && r.n < 0; n++) {
        Dual next = STEP(z, c);
        double2 moved = next.v - z.v;
        z = next;
        color_orbit(&r, z.v);
        size2 = STOP ? moved.x * moved.x + moved.y * moved.y : z.v.x * z.v.x + z.v.y * z.v.y;
        if (STOP ? size2 < CONVERGED2 : !(size2 <= BAILOUT2)) r.n = n;
    }
    double2 none = make_double2(0.0, 0.0);
#if STOP == 1
    // No distance. |z| is set so that the smooth count of escapes (sample.h) fits orbits that converge: log |z|^2 is
    // LOG_UNIT2 where size2 is CONVERGED2, and proportional to log(size2), which doubles with an iteration of Newton's
    // method as log |z|^2 does with one of z^2.
    z = dual(make_double2(exp(0.5 * LOG_UNIT2 * log(fmax(size2, 1e-60)) / log(CONVERGED2)), 0.0), none);
#else
    if (!(size2 < 1e200)) z = dual(make_double2(1e3, 0.0), none);  // a pole, or beyond double's range
#endif
    r.z = z.v;
    r.dx = wide(z.d, 0), r.dy = wide(make_double2(-z.d.y, z.d.x), 0);
    add_sample(frame + i, r, v);
}
