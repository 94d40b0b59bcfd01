// Next-event estimation: sampling of a light and of a point or direction on it, by power, and with LIGHT_TREE of area
// and point lights by a tree (light_tree.h); and the pdf of such a sample for MIS weights. Called by raytrace.cu
// (shade_hit), volumes/shade_volume.h and light_picks.cu. light_rows.h has the layout of the buffer `lights`. Points
// and unit directions are in world space; `from` is the shaded point. A delta light is a point light or a sun without
// angular radius.
// u1 and u2 are random numbers in [0, 1). `probability` is the probability with which a light tree chooses the light, 1
// without a tree.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): DIRECT_LIGHTING, DIRECT_MIS, ENVIRONMENT,
// INSTANCED_LIGHTS, LIGHT_PICKS, LIGHT_PROFILES, NON_AREA_LIGHTS, SHADOW_RAYS_CROSS, SPHERES, SPHERE_TEXTURES,
// TEXTURED.
#include "raytracing/lights/light_rows.h"
#include "raytracing/scene.h"
#include "raytracing/lights/choose_light.h"
#include "raytracing/lights/escaped_radiance.h"
#if LIGHT_TREE
#include "raytracing/lights/light_tree.h"
#else
#define sample_light_tree(params, lights, point, bits, probability) 0
#define hit_light_probability(params, lights, primitives, hit, from, primitive) 1.0f
#endif
#if LIGHT_PROFILES
#include "raytracing/lights/light_profile.h"
#else
#define profile_candela(params, lights, profile, direction) 1.0f
#endif

// Returns 1 - cos(theta_max) of the cone that a sphere subtends from a point; 0 from inside and from close by.
DEVICE float one_minus_cos_max(float3 center, float radius, float3 from) {
    float3 to_center = center - from;
    float sine2 = radius * radius / dot_fma(to_center, to_center);
    return sine2 < 0.999f ? sine2 / (1.0f + sqrt(1.0f - sine2)) : 0.0f;
}

// Returns the pdf per area with which a point of an emissive primitive is sampled. `probability` is the probability
// with which a light tree chooses the primitive.
DEVICE float pdf_per_area(const LaunchParams params, const Primitive p, const Material m, float probability) {
    if (!LIGHT_TREE) return rgb_luminance(m.emission) * params.inverse_light_power;
    float radius = p.edge2.w;
    float3 normal = cross_fma(xyz(p.edge1), xyz(p.edge2));
    bool is_sphere = SPHERES && radius > 0.0f;
    float area = is_sphere ? 4.0f * PI * radius * radius : 0.5f * sqrt(dot_fma(normal, normal));
    return params.light_tree_probability * probability / area;
}

// Returns the pdf per solid angle with which next-event estimation from `from` samples the point at distance t on an
// emissive primitive; `cosine` of the angle at the light.
DEVICE float area_light_pdf(const LaunchParams params, const Primitive p, const Material m, float probability,
                            float3 from, float t, float cosine) {
    float area_pdf = pdf_per_area(params, p, m, probability);
    float radius = p.edge2.w;
    if (SPHERES && radius > 0.0f) {
        float cone = one_minus_cos_max(xyz(p.v0), radius, from);
        if (cone > 0.0f)
            return area_pdf * 2.0f * radius * radius / cone;  // selection probability over the cone's solid angle
    }
    return area_pdf * t * t / cosine;
}

// A light sample, seen from the shaded point: unit direction and distance to the light, its radiance, and its pdf per
// solid angle, selection of the light included. For delta lights `pdf` is the selection probability, for point lights
// times distance^2, by which dividing turns intensity into irradiance.
typedef struct {
    float3 direction, radiance;
    float distance, pdf;
    bool is_delta;
    int point_light;  // [EQUIANGULAR] index among the point lights, below 0 for other lights
    int light_id;  // light id (light_rows.h) of an area light, below 0 for other lights
    int group;  // light group (film/light_passes.h)
    float choice;  // [LIGHT_PICKS] the probability with which the light was chosen
    float u, v;  // [TEXTURED] barycentric coordinates of the sampled point on a triangle
} LightSample;

// Samples a point of an emissive triangle (uniformly by area) or sphere (uniformly in its cone; from close by, by
// area). Returns false if the light's back faces `from`.
DEVICE bool sample_primitive(const LaunchParams params, const Primitive p, const Material m, float probability,
                             float3 from, float u1, float u2, LightSample *light) {
    float3 point, normal, corner = xyz(p.v0);
    float radius = p.edge2.w, cone = SPHERES && radius > 0.0f ? one_minus_cos_max(corner, radius, from) : 0.0f;
    light->radiance = xyz(m.emission);
    light->is_delta = false;
    if (SPHERES && cone > 0.0f) {  // uniform over the cone that the sphere fills
        float3 to_center = corner - from;
        float one_minus_cos = u1 * cone, sine2 = one_minus_cos * (2.0f - one_minus_cos);
        float distance2 = dot_fma(to_center, to_center);
        float2 phi = cos_sin_2pi(u2);
        float sine = sqrt(sine2), distance = sqrt(distance2);
        float3 axis = to_center * (1.0f / distance);
        light->direction = normalize_fma(local_to_world(axis, sine * phi.x, sine * phi.y, 1.0f - one_minus_cos));
        light->distance =
            distance * (1.0f - one_minus_cos) - sqrt(max_nnan(fma(radius, radius, -distance2 * sine2), 0.0f));
        light->pdf = pdf_per_area(params, p, m, probability) * 2.0f * radius * radius / cone;
        return true;
    }
    if (SPHERES && radius > 0.0f) {
        float z = fma(-2.0f, u1, 1.0f), r = sqrt(max_nnan(fma(-z, z, 1.0f), 0.0f));
        float2 phi = cos_sin_2pi(u2);
        normal = make_float3(r * phi.x, r * phi.y, z);
        point = madd(normal, radius, corner);
    } else {
        float root = sqrt(u1);
        normal = primitive_normal(p, corner);
        point = madd(xyz(p.edge2), root * u2, madd(xyz(p.edge1), root * (1.0f - u2), corner));
        light->u = root * (1.0f - u2);
        light->v = root * u2;
    }
    float3 to_light = point - from;
    light->distance = sqrt(dot_fma(to_light, to_light));
    light->direction = to_light * (1.0f / light->distance);
    float cosine = -dot_fma(normal, light->direction);
    light->pdf = area_light_pdf(params, p, m, probability, from, light->distance, cosine);
    return cosine > 0.0f && light->distance > 0.0f;
}

#if NON_AREA_LIGHTS
// Samples a point light, sun or the environment, non-area light number `light_index`; returns false if it cannot light
// the point.
DEVICE bool sample_non_area_light(const LaunchParams params, GLOBAL const float4 *lights, int light_index, float3 from,
                                  float u1, float u2, LightSample *light) {
    GLOBAL const float4 *row = lights + params.non_area_lights + 3 * light_index;
    float4 place = row[0], emitted = row[1];  // place: position of a point light or direction of a sun; w: the kind
    light->radiance = xyz(emitted);
    light->pdf = emitted.w;
    light->is_delta = true;
    light->direction = xyz(place);
    light->distance = FLT_MAX;
#if ENVIRONMENT
    if (place.w == LIGHT_ENVIRONMENT) {
        light->direction = sample_environment(params, lights, u1, u2, &light->pdf);
        light->radiance = environment_radiance(params, lights, light->direction);
        light->is_delta = false;
        return light->pdf > 0.0f;
    }
#endif
    if (place.w == LIGHT_POINT || (LIGHT_PROFILES && place.w <= LIGHT_PROFILE)) {
        float3 to_light = xyz(place) - from;
        float distance2 = dot_fma(to_light, to_light);
        light->distance = sqrt(distance2);
        light->direction = to_light * (1.0f / light->distance);
        light->pdf = emitted.w * distance2;
        light->point_light = light_index - params.sun_count;
        float4 spot = row[2];
        // of the spot, 1 for other point lights (light_rows.h, part 3)
        float falloff = clamp(spot.w - dot_fma(xyz(spot), light->direction), 0.0f, 1.0f);
        light->radiance = light->radiance * (falloff * falloff);
        int profile = (int)(LIGHT_PROFILE - place.w);
        if (LIGHT_PROFILES && profile >= 0)
            light->radiance = light->radiance * profile_candela(params, lights, profile, -light->direction);
        return distance2 > 0.0f;
    }
    if (place.w > 0.0f) {  // a sun of a radius: uniform over its disc
        float one_minus_cos = u1 * place.w, sine = sqrt(one_minus_cos * (2.0f - one_minus_cos));
        float2 phi = cos_sin_2pi(u2);
        light->direction = normalize_fma(local_to_world(xyz(place), sine * phi.x, sine * phi.y, 1.0f - one_minus_cos));
        light->pdf = emitted.w / (2.0f * PI * place.w);
        light->is_delta = false;
    }
    return true;
}
#endif

// Returns the world-space primitive of an area light's id.
DEVICE Primitive light_primitive(const LaunchParams params, GLOBAL const float4 *lights,
                                 GLOBAL const float4 *primitives, int light_id) {
    if (INSTANCED_LIGHTS && light_id >= INSTANCED_LIGHT)
        return primitive_at(lights + params.light_count, light_id - INSTANCED_LIGHT);
    return primitive_at(primitives, light_id);
}

#if LIGHT_TREE
// Returns the probability with which the light tree chooses the emissive primitive of a hit for the point `from`; 0 if
// the primitive is not in the tree. *p becomes the primitive in world space.
DEVICE float hit_light_probability(const LaunchParams params, GLOBAL const float4 *lights,
                                   GLOBAL const float4 *primitives, const Hit hit, float3 from, Primitive *p) {
    int instance = INSTANCE_OF(hit);
    int leaf = light_tree_leaf(params, lights, instance, as_int(p->v0.w));
    if (leaf < 0) return 0.0f;
    if (instance >= 0)
        *p = light_primitive(params, lights, primitives, as_int(lights[params.light_tree + 4 * leaf + 3].z));
    return light_tree_probability(params, lights, leaf, from);
}
#endif

// Samples a light by its selection probability, and a point or direction on it; returns false if the light cannot light
// the point `from`. Uses the dimensions `dimension` and + 1, and + 2 for lights of selection probability below 2^-12
// and for lights of the tree.
DEVICE bool sample_light(const LaunchParams params, float3 from, SCENE_PARAMS, Sampler sampler, uint dimension,
                         LightSample *light) {
    light->point_light = -1;
    uint u32 = get_1d_bits(sampler, dimension), begin, width;
    float u2 = get_1d(sampler, dimension + 1);
    int entry = choose_light(params, lights, u32, &begin, &width);
    float u1 = width > 1u << 20 ? position_in_interval(u32, begin, width) : get_1d(sampler, dimension + 2);
    int light_id = as_int(lights[entry].y);
    float probability = 1.0f;
    bool in_tree = LIGHT_TREE && light_id == LIGHT_TREE_ID;
    if (in_tree) {
        if (width <= (1u << 20)) u1 = uniform_float(mix_bits(u32));  // dimension + 2 chooses the light
        light_id = sample_light_tree(params, lights, from, sample_bits(sampler, dimension + 2), &probability);
        if (!(probability > 0.0f)) return false;
    }
    light->light_id = light_id;
    if (LIGHT_PICKS) light->choice = (float)width * INV_2_32 * probability;
    light->u = light->v = 0.0f;
#if NON_AREA_LIGHTS
    if (light_id < 0) {
        bool valid = sample_non_area_light(params, lights, ~light_id, from, u1, u2, light);
        light->group = NON_AREA_GROUP(~light_id);
        if (LIGHT_TREE && in_tree) light->pdf *= params.light_tree_probability * probability;
        return valid;
    }
#endif
    Primitive p = light_primitive(params, lights, primitives, light_id);
    light->group = materials[as_int(p.edge1.w)].light_group;
    return sample_primitive(params, p, materials[as_int(p.edge1.w)], probability, from, u1, u2, light);
}

// Returns the factor by which textures scale the radiance of a light sample seen from `from`.
DEVICE float3 light_texture_at(const LaunchParams params, SCENE_PARAMS, const LightSample light, float3 from) {
    if (!TEXTURED || light.light_id < 0) return splat3(1.0f);
    Primitive p = light_primitive(params, lights, primitives, light.light_id);
    bool swapped = INSTANCED_LIGHTS && p.edge2.w < 0.0f;
    float u = swapped ? light.v : light.u, v = swapped ? light.u : light.v;
    float3 normal = make_float3(0.0f, 0.0f, 0.0f);
    if (SPHERE_TEXTURES && p.edge2.w > 0.0f) normal = primitive_normal(p, madd(light.direction, light.distance, from));
    return emission_texture_at(TEXTURE_ARGS, p, u, v, normal);
}

// A shadow ray, and the contribution that it adds if it is unoccluded. direction.xyz is unit; direction.w is t_max.
// contribution.xyz is added to the path's radiance. contribution.w is t_min: greater than 0 if the ray crosses the
// surface, because its origin is offset to the other side. With EQUIANGULAR the ray starts at `origin`, else at the
// path's origin.
typedef struct {
    float4 direction, contribution;
    float4 origin;  // [EQUIANGULAR]
    int group;  // [LIGHT_PASSES] light group of the sampled light
    bool valid;
} ShadowRay;

// Next-event estimation at a surface point: samples a light and fills *ray, whose contribution lacks the path's
// throughput. Returns false if the light contributes nothing. `origin` is the ray's offset origin. With `use_mis` the
// contribution has the MIS weight against BSDF sampling.
DEVICE bool sample_direct(const LaunchParams params, const Material m, const Surface s, float3 origin, bool use_mis,
                          SCENE_PARAMS, Sampler sampler, uint dimension, ShadowRay *ray) {
    LightSample light;
    if (!sample_light(params, origin, SCENE_ARGS, sampler, dimension, &light)) return false;
    float4 bsdf = eval_bsdf_pdf(m, s, light.direction);
    float cosine = dot_fma(light.direction, s.normal);
    if (!(bsdf.w > 0.0f) || !on_geometric_side(s, light.direction, cosine < 0.0f)) return false;
    light.radiance = light.radiance * light_texture_at(params, SCENE_ARGS, light, origin);
    bool has_bsdf_pdf = use_mis && DIRECT_LIGHTING == DIRECT_MIS && !light.is_delta;
    float inverse_pdf = 1.0f / (light.pdf + (has_bsdf_pdf ? bsdf.w : 0.0f));  // MIS weight (balance heuristic) over pdf
    // A ray to the other side than the offset origin's crosses the surface at t = -offset / cosine; it begins at 2.5
    // times that.
    float offset = dot_fma(origin - s.point, s.normal);
    float t_min = offset * cosine < 0.0f ? -2.5f * offset / cosine : 0.0f;
    float t_max = light.distance * 0.9999f - (SHADOW_RAYS_CROSS ? t_min : 0.0f);  // the ray begins at t_min
    if (SHADOW_RAYS_CROSS && !(t_max > 0.0f)) return false;  // the shadow ray would begin behind the light
    ray->direction = with_w(light.direction, light.distance < FLT_MAX ? t_max : FLT_MAX);
    ray->contribution = with_w(xyz(bsdf) * light.radiance * inverse_pdf, t_min);
    if (LIGHT_PASSES) ray->group = light.group;
    return true;
}
