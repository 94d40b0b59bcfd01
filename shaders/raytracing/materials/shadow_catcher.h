// Level ground that shows the background behind it, darkened where the scene blocks the light of the environment and
// suns. Lights at a finite distance are ignored, and from below it is invisible. For quads only; shade_shadow_catcher
// (catch_shadows.h) shades its hits.

// For the host; raytracing/surface.h explains these lines:
// @shadow_catcher
// @simd8 catcher

#include "raytracing/surface.h"

NO_REFLECTION(shadow_catcher)
