// The lobes of the principled material at one surface point, for one view direction: the struct that
// materials/principled.h fills by make_lobes, and that it and lobes/clear.h evaluate and sample.
#include "raytracing/microfacet.h"

// The weights `dielectric`, `metal`, `clear`, `coat` and `sheen` include the fraction of light that the layers above
// transmit.
typedef struct {
    Frame frame;
    float3 v;  // the view direction in the frame
    float2 alpha;  // GGX's alpha along the tangent and the bitangent
    float2 sum;  // split sum (scale, bias) of GGX at v (microfacet.h)
    float boost;  // energy of multiple over single scattering for F0 = 1
    float eta;  // relative index of the clear lobe: index on the viewer's side over the index on the other side
    bool thin, refracts;  // thin: a wall without thickness; refracts: solid, with an index other than 1
    Frame coat_frame;  // [CLEARCOAT]
    float3 coat_v;  // [CLEARCOAT] the view direction in coat_frame
    float3 dielectric_f0, metal_f0;  // reflectances at normal incidence
    float dielectric, metal, clear, coat, sheen;
    float clear_albedo;  // albedo of the clear lobe by single scattering
    float3 body, body_behind;  // albedo of the diffuse lobe by reflection and by transmission
    float p_coat, p_sheen, p_specular, p_clear, p_body, p_behind;  // sampling probabilities; sum 1
} Lobes;
