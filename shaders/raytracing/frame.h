// Local frames around a unit normal, and directions sampled or mirrored in them, for all materials. `to_local` takes
// world space to (tangent, bitangent, normal), `from_local` back. Compiled for one lane (`real` is float, `mask` bool)
// and, on CPUs, again for eight (float8, int8; packets/lanes8.h).
#include "common/vectors.h"

typedef struct {
    real3 normal, tangent, bitangent;
} Frame;

// Returns a frame with arbitrary tangents around the normal.
DEVICE Frame make_frame(real3 normal) {
    Frame f = {normal, local_to_world(normal, 1.0f, 0.0f, 0.0f), local_to_world(normal, 0.0f, 1.0f, 0.0f)};
    return f;
}

// Returns the coordinates of v along tangent, bitangent and normal.
DEVICE real3 to_local(const Frame f, real3 v) {
    return make_real3(dot_fma(v, f.tangent), dot_fma(v, f.bitangent), dot_fma(v, f.normal));
}

// Returns the vector with these coordinates along tangent, bitangent and normal.
DEVICE real3 from_local(const Frame f, real3 v) {
    return madd(f.normal, v.z, madd(f.bitangent, v.y, scale3(f.tangent, v.x)));
}

// Samples a direction around the normal with *pdf = cos(theta) / pi per solid angle.
DEVICE real3 sample_cosine_hemisphere(real3 normal, real u1, real u2, real *pdf) {
    real cosine = sqrt(1.0f - u1), sine = sqrt(u1);
    real2 phi = cos_sin_2pi(u2);
    *pdf = cosine * (1.0f / PI);
    return normalize_fma(local_to_world(normal, sine * phi.x, sine * phi.y, cosine));
}

// Returns the ray direction mirrored at the surface with this unit normal.
DEVICE real3 reflect(real3 ray_direction, real3 normal) {
    return madd(normal, -2.0f * dot_fma(ray_direction, normal), ray_direction);
}
