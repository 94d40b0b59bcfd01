// A light source: a surface that reflects nothing. As every material with an `emission`, it emits from its front face.

// For the host; raytracing/surface.h explains these lines:
// @maps none

#include "raytracing/surface.h"

NO_REFLECTION(emitter)
