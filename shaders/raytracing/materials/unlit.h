// A surface that shows `color` as its radiance from both sides, whatever the lighting (KHR_materials_unlit). It
// reflects nothing, and next-event estimation does not sample it: only rays that hit it see it.

// For the host; raytracing/surface.h explains these lines:
// @unlit

#include "raytracing/surface.h"

NO_REFLECTION(unlit)
