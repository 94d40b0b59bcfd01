// Clamping of indirect light, against fireflies. Called wherever a path adds radiance (path.h, raytrace.cu). Compiled
// for one lane (`real` is float, `mask` bool) and, on CPUs, again for eight (float8, int8; packets/lanes8.h).
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): CLAMP_INDIRECT.
#include "common/vectors.h"

// Returns the radiance xyz that a path adds at its ray `depth` (0: the camera ray), with its largest channel limited to
// params.clamp_indirect if it is indirect light: emission hit by ray 2 or a later one, or a light sample at the second
// surface or a later one (whose callers pass the number of the surface, from 1). w is kept.
DEVICE real4 clamp_contribution(const LaunchParams params, int depth, real4 contribution) {
    if (!CLAMP_INDIRECT || depth <= 1) return contribution;
    real largest = largest_of3(xyz(contribution));
    real scale = largest > params.clamp_indirect ? params.clamp_indirect / largest : 1.0f;
    return with_w(scale3(xyz(contribution), scale), contribution.w);
}
