// The interface of materials: the surface point of a hit and the sample of a BSDF. One file a material in materials/,
// with
//     bool NAME_sample(material, surface, sampler, dimension, out)
//         Samples a direction. Returns false if the sample failed, which ends the path; out->pdf is then 0 if the BSDF
//         has a non-delta part, so that next-event estimation still runs at this hit, and DELTA_PDF if not.
//         (At a hit of `principled`, next-event estimation always runs, and the pdfs include the choice of the lobe.)
//     float4 NAME_eval_pdf(material, surface, direction)
//         xyz: BSDF times |cos(theta)| for light from `direction`. w: the pdf with which NAME_sample would sample it,
//         per solid angle; all 0 for delta BSDFs.
// The material may use the sampler's dimensions dimension .. dimension + 2.
#include "raytracing/sampler.h"

#define DELTA_PDF -1.0f  // pdf of a direction that next-event estimation cannot sample: delta BSDFs and camera rays

#if TEXTURED
// The texture coordinates of a surface point in each set that its material takes.
typedef struct {
    float2 sets[UV_SETS];
} Texcoords;
#endif

typedef struct {
    float3 point, normal;  // the shading normal faces the ray; both in world space, the normal unit
    float3 ray_direction;  // unit direction of the ray that hit the surface
    bool front_face;  // whether the ray arrived on the side that the geometric normal points to
    int material;  // index of the materials
#if DISTANCE_FIELDS
    float offset;  // of ray origins along the normal in world units, beside the rounding offset; 0 but for fields
#endif
#if TEXTURED
    float3 geometric_normal;  // on the ray's side; unit
    Texcoords texcoords;
    float4 vertex_color;
#if CLEARCOAT
    float3 clearcoat_normal;  // as `normal`, but bent by the clearcoat's normal map alone
#endif
#endif
#if ANISOTROPY
    float3 tangent;  // along which highlights stretch; neither unit nor perpendicular to the normal
    float bitangent_sign;  // of normal x tangent
#endif
#if DISPERSION
    float3 spectral;  // color of the path's wavelength; white once the path is of one wavelength
#endif
#if GUIDING
    GLOBAL const float *guide;  // where photons came from (guide.h)
    float guided;  // the probability with which a direction is sampled towards there
#endif
    bool in_light_table;  // whether next-event estimation can sample this emitter, so that a hit needs a MIS weight
} Surface;

typedef struct {
    float3 direction;
    float3 weight;  // BSDF times |cos(theta)| over pdf
    float pdf;  // per solid angle, or DELTA_PDF
    bool transmits;  // whether the path continues on the other side of the surface
#if GUIDING
    float3 unguided;  // what `weight` would be if the BSDF alone had sampled the direction
#endif
} BsdfSample;

DEVICE float3 base_color(const Material m) { return make_float3(m.color.x, m.color.y, m.color.z); }

// The shading normal of the clearcoat.
DEVICE float3 clearcoat_normal_of(const Surface s) {
#if TEXTURED && CLEARCOAT
    return s.clearcoat_normal;
#else
    return s.normal;
#endif
}

// A direction about the normal with pdf cos(theta) / pi.
DEVICE float3 sample_cosine_hemisphere(float3 normal, float u1, float u2, float *pdf) {
    float cosine = sqrt(1.0f - u1), sine = sqrt(u1);
    float2 phi = cos_sin_2pi(u2);
    *pdf = cosine * (1.0f / PI);
    return normalize_fma(local_to_world(normal, sine * phi.x, sine * phi.y, cosine));
}

DEVICE float3 reflect(float3 ray_direction, float3 normal) {
    return madd(normal, -2.0f * dot_fma(ray_direction, normal), ray_direction);
}
