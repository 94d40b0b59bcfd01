// Sampling of lights by power, and with LIGHT_TREE of area and point lights by a tree (light_tree.h). Layout of
// `lights`, in rows of float4:
//  1. light_count entries. x: CDF of the selection probability up to and including this light, uint32 (2^32 - 1 is 1).
//     y: light id: an index of `primitives`, INSTANCED_LIGHT + index of an emissive instanced triangle, ~index of a
//     non-area light, or LIGHT_TREE_ID.
//  2. Emissive triangles of instances in world space, 3 rows each. Radius -1: the transform has a negative determinant,
//     so the edges are swapped.
//  3. From params.non_area_lights, 3 rows each: position or direction, w = LIGHT_POINT, LIGHT_ENVIRONMENT,
//     LIGHT_PROFILE - index of its photometric profile or, for a sun, 1 - cos(angular radius), 0 for a delta direction
//     | radiance, intensity (point), irradiance (delta sun) or, in x, an upper bound of the environment's luminance,
//     integrated over the sphere, w = selection probability, 1 for point lights of a tree
//     | spot falloff (renderer/raytracing/lights.py).
//  4. From params.environment, one row a pixel: radiance, top row = zenith, -z in the middle.
//  5. From params.env_cdf, words: the marginal CDF over rows, then each row's conditional CDF; then, two to a
//     word, the guides of these (renderer/raytracing/environment.py); then the marginal CDF for level surfaces and its
//     guide.
//  6. With LIGHT_TREE its nodes and keys; with LIGHT_PROFILES and VOLUMES those of
//     light_profile.h and volumes.h.
#define LIGHT_POINT -1.0f
#define LIGHT_ENVIRONMENT -2.0f
#define LIGHT_PROFILE -3.0f
// With LIGHT_PROFILES or VOLUMES the row before the non-area lights says where theirs are; parameters of the launch
// would cost other scenes 2 % on CPUs.
#define DIRECTORY lights[params.non_area_lights - 1]
#define FIRST_VOLUME_ROW as_int(DIRECTORY.x)
#define VOLUME_COUNT as_int(DIRECTORY.y)
#define FIRST_PROFILE_ROW as_int(DIRECTORY.z)
#define INSTANCED_LIGHT (1 << 30)
#define LIGHT_TREE_ID (~(1 << 28))  // the tree's light id among the table's
#define INV_2_32 2.3283064365386963e-10f
#if ENVIRONMENT
#include "raytracing/cdf.h"
#endif
#if LIGHT_TREE
#include "raytracing/light_tree.h"
#endif
#if LIGHT_PROFILES
#include "raytracing/light_profile.h"
#endif

// MIS weight (balance heuristic, E. Veach 1995) of an emitter hit by BSDF sampling, where next-event estimation would
// sample it with `light_pdf` per solid angle. `bsdf_pdf` is the pdf of the ray's direction; 1 for DELTA_PDF (camera and
// specular rays) and with direct_lighting = bsdf; else 0 with nee.
DEVICE float mis_weight_bsdf(float bsdf_pdf, float light_pdf) {
    if (DIRECT_LIGHTING == DIRECT_BSDF || !(bsdf_pdf > 0.0f) || !(light_pdf > 0.0f)) return 1.0f;
    return DIRECT_LIGHTING == DIRECT_NEE ? 0.0f : bsdf_pdf / (bsdf_pdf + light_pdf);
}

DEVICE float luminance_of(float4 c) { return fma(0.0722f, c.z, fma(0.7152f, c.y, 0.2126f * c.x)); }

// 1 - cos(theta_max) of the cone that a sphere fills seen from a point; 0 from inside and from close by.
DEVICE float one_minus_cos_max(float3 center, float radius, float3 from) {
    float3 to_center = center - from;
    float sine2 = radius * radius / dot_fma(to_center, to_center);
    return sine2 < 0.999f ? sine2 / (1.0f + sqrt(1.0f - sine2)) : 0.0f;
}

// The pdf per area with which a point of an emissive primitive is sampled. `probability` is that with which a light
// tree chooses the primitive.
DEVICE float pdf_per_area(const LaunchParams params, const Primitive p, const Material m, float probability) {
#if LIGHT_TREE
    float radius = p.edge2.w;
    float3 normal = cross_fma(xyz(p.edge1), xyz(p.edge2));
    bool is_sphere = SPHERES && radius > 0.0f;
    float area = is_sphere ? 4.0f * PI * radius * radius : 0.5f * sqrt(dot_fma(normal, normal));
    return params.light_tree_probability * probability / area;
#else
    return luminance_of(m.emission) * params.inverse_light_power;
#endif
}

// The pdf per solid angle with which next-event estimation from `from` samples a point at distance t on an emissive
// primitive.
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

#if ENVIRONMENT
#include "raytracing/environment.h"
#endif

// Radiance of the background gradient, which only BSDF sampling finds.
DEVICE float3 background(const LaunchParams params, float3 direction) {
    float3 horizon = xyz(params.horizon);
    return madd(xyz(params.zenith) - horizon, max_nnan(direction.y, 0.0f), horizon);
}

// MIS-weighted radiance of a ray that leaves the scene: background, suns in its direction, environment. `bsdf_pdf`: the
// pdf its direction was sampled with, or DELTA_PDF.
DEVICE float3 escaped_radiance(const LaunchParams params, GLOBAL const float4 *lights, float3 direction,
                               float bsdf_pdf) {
    float3 radiance = background(params, direction);
#if NON_AREA_LIGHTS
    for (int sun = 0; sun < params.sun_count; sun++) {
        float4 axis = lights[params.non_area_lights + 3 * sun], emitted = lights[params.non_area_lights + 3 * sun + 1];
        float3 difference = direction - xyz(axis);
        if (axis.w > 0.0f && dot_fma(difference, difference) <= 2.0f * axis.w)
            radiance = madd(xyz(emitted), mis_weight_bsdf(bsdf_pdf, emitted.w / (2.0f * PI * axis.w)), radiance);
    }
#endif
#if ENVIRONMENT
    bool needs_weight = DIRECT_LIGHTING != DIRECT_BSDF && bsdf_pdf > 0.0f;
    float light_pdf = needs_weight ? environment_pdf(params, lights, direction) : 0.0f;
    radiance = madd(environment_radiance(params, lights, direction), mis_weight_bsdf(bsdf_pdf, light_pdf), radiance);
#endif
    return radiance;
}

// A light sample: direction and distance to the light, its radiance, and its pdf per solid angle. For delta lights
// `pdf` is the selection probability, times distance^2 for a point light (which turns intensity into irradiance).
typedef struct {
    float3 direction, radiance;
    float distance, pdf;
    bool is_delta;
#if EQUIANGULAR
    int point_light;  // its number among the point lights, below 0 for others
#endif
#if TEXTURED || LIGHT_PICKS
    int light_id;  // of an area light, below 0 for others
#endif
#if LIGHT_PICKS
    float choice;  // the probability with which the light was chosen
#endif
#if TEXTURED
    float u, v;  // barycentric coordinates of the point on it
#endif
} LightSample;

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
#if TEXTURED
        light->u = root * (1.0f - u2);
        light->v = root * u2;
#endif
    }
    float3 to_light = point - from;
    light->distance = sqrt(dot_fma(to_light, to_light));
    light->direction = to_light * (1.0f / light->distance);
    float cosine = -dot_fma(normal, light->direction);
    light->pdf = area_light_pdf(params, p, m, probability, from, light->distance, cosine);
    return cosine > 0.0f && light->distance > 0.0f;
}

#if NON_AREA_LIGHTS
DEVICE bool sample_non_area_light(const LaunchParams params, GLOBAL const float4 *lights, int light_index, float3 from,
                                  float u1, float u2, LightSample *light) {
    GLOBAL const float4 *row = lights + params.non_area_lights + 3 * light_index;
    float4 place = row[0], emitted = row[1];  // a position or direction
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
#if EQUIANGULAR
        light->point_light = light_index - params.sun_count;
#endif
        float4 spot = row[2];
        float falloff = clamp(spot.w - dot_fma(xyz(spot), light->direction), 0.0f, 1.0f);
        light->radiance = light->radiance * (falloff * falloff);
#if LIGHT_PROFILES
        int profile = (int)(LIGHT_PROFILE - place.w);
        if (profile >= 0)
            light->radiance = light->radiance * profile_candela(params, lights, profile, -light->direction);
#endif
        return distance2 > 0.0f;
    }
    if (place.w > 0.0f) {
        float one_minus_cos = u1 * place.w, sine = sqrt(one_minus_cos * (2.0f - one_minus_cos));
        float2 phi = cos_sin_2pi(u2);
        light->direction = normalize_fma(local_to_world(xyz(place), sine * phi.x, sine * phi.y, 1.0f - one_minus_cos));
        light->pdf = emitted.w / (2.0f * PI * place.w);
        light->is_delta = false;
    }
    return true;
}
#endif

// The primitive of an area light's id.
DEVICE Primitive light_primitive(const LaunchParams params, GLOBAL const float4 *lights,
                                 GLOBAL const float4 *primitives, int light_id) {
#if INSTANCED_LIGHTS
    if (light_id >= INSTANCED_LIGHT) return primitive_at(lights + params.light_count, light_id - INSTANCED_LIGHT);
#endif
    return primitive_at(primitives, light_id);
}

#if LIGHT_TREE
// The probability with which the light tree chooses the emissive primitive of a hit for a point; 0 if it is not in the
// tree. *p becomes the primitive in world space.
DEVICE float hit_light_probability(const LaunchParams params, GLOBAL const float4 *lights,
                                   GLOBAL const float4 *primitives, const Hit hit, float3 from, Primitive *p) {
#if INSTANCES
    int instance = hit.instance;
#else
    int instance = -1;
#endif
    int leaf = light_tree_leaf(params, lights, instance, as_int(p->v0.w));
    if (leaf < 0) return 0.0f;
    if (instance >= 0)
        *p = light_primitive(params, lights, primitives, as_int(lights[params.light_tree + 4 * leaf + 3].z));
    return light_tree_probability(params, lights, leaf, from);
}
#endif

// The entry of the table of lights that u32 selects. *begin is where its interval begins, *width how wide it is.
DEVICE int choose_light(const LaunchParams params, GLOBAL const float4 *lights, uint u32, uint *begin, uint *width) {
    int low = 0, high = params.light_count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (as_uint(lights[middle].x) > u32)
            high = middle;
        else
            low = middle + 1;
    }
    *begin = low > 0 ? as_uint(lights[low - 1].x) : 0u;
    *width = as_uint(lights[low].x) - *begin;
    return low;
}

// The position of u32 within a light's interval: uniform too, if the interval has bits enough; else a dimension's
// value.
DEVICE float position_in_interval(Sampler sampler, uint dimension, uint u32, uint begin, uint width) {
    if (width > (1u << 20)) return min_nnan((float)(u32 - begin) / (float)width, 0.9999999f);
    return get_1d(sampler, dimension);
}

// Samples a light by its selection probability, and a point or direction on it. Uses two dimensions, and a third for
// lights of selection probability below 2^-12 and for those of a tree.
DEVICE bool sample_light(const LaunchParams params, float3 from, GLOBAL const float4 *lights,
                         GLOBAL const float4 *primitives, GLOBAL const Material *materials, Sampler sampler,
                         uint dimension, LightSample *light) {
#if EQUIANGULAR
    light->point_light = -1;
#endif
    uint u32 = get_1d_bits(sampler, dimension), begin, width;
    float u2 = get_1d(sampler, dimension + 1);
    int low = choose_light(params, lights, u32, &begin, &width);
    float u1 = position_in_interval(sampler, dimension + 2, u32, begin, width);
    int light_id = as_int(lights[low].y);
    float probability = 1.0f;
#if LIGHT_TREE
    bool in_tree = light_id == LIGHT_TREE_ID;
    if (in_tree) {
        if (width <= (1u << 20)) u1 = uniform_float(mix_bits(u32));  // the third dimension chooses
        light_id = sample_light_tree(params, lights, from, sample_bits(sampler, dimension + 2), &probability);
        if (!(probability > 0.0f)) return false;
    }
#endif
#if TEXTURED || LIGHT_PICKS
    light->light_id = light_id;
#endif
#if LIGHT_PICKS
    light->choice = (float)width * INV_2_32 * probability;
#endif
#if TEXTURED
    light->u = light->v = 0.0f;
#endif
#if NON_AREA_LIGHTS
    if (light_id < 0) {
        bool found = sample_non_area_light(params, lights, ~light_id, from, u1, u2, light);
#if LIGHT_TREE
        if (in_tree) light->pdf *= params.light_tree_probability * probability;
#endif
        return found;
    }
#endif
    Primitive p = light_primitive(params, lights, primitives, light_id);
    return sample_primitive(params, p, materials[as_int(p.edge1.w)], probability, from, u1, u2, light);
}

#if TEXTURED
// The factor that textures give the radiance of a light sample seen from `from`.
DEVICE float3 light_texture_at(const LaunchParams params, SCENE_PARAMS, GLOBAL const float4 *lights,
                               const LightSample light, float3 from) {
    if (light.light_id < 0) return make_float3(1.0f, 1.0f, 1.0f);
    Primitive p = light_primitive(params, lights, primitives, light.light_id);
    bool swapped = INSTANCED_LIGHTS && p.edge2.w < 0.0f;
    float u = swapped ? light.v : light.u, v = swapped ? light.u : light.v;
    float3 normal = make_float3(0.0f, 0.0f, 0.0f);
#if SPHERE_TEXTURES
    if (p.edge2.w > 0.0f) normal = primitive_normal(p, madd(light.direction, light.distance, from));
#endif
    return emission_texture_at(SCENE_ARGS, p, u, v, normal);
}
#endif

// Shadow ray for the connect stage: direction.xyz, t_max in direction.w. `contribution.xyz` is added to the path's
// radiance if the ray is unoccluded. `contribution.w` is t_min: greater than 0 if the ray crosses the surface, because
// its origin is offset to the other side. With EQUIANGULAR it starts at `origin`, else at the path's origin.
typedef struct {
    float4 direction, contribution;
#if EQUIANGULAR
    float4 origin;
#endif
    bool valid;
} ShadowRay;

// Next-event estimation at a surface point: samples a light and returns the shadow ray, or false if it contributes
// nothing. `use_mis` weighs the sample against BSDF sampling.
DEVICE bool sample_direct(const LaunchParams params, const Material m, const Surface s, float3 origin, bool use_mis,
                          GLOBAL const float4 *lights, SCENE_PARAMS, GLOBAL const Material *materials, Sampler sampler,
                          uint dimension, ShadowRay *ray) {
    LightSample light;
    if (!sample_light(params, origin, lights, primitives, materials, sampler, dimension, &light)) return false;
    float4 bsdf = eval_bsdf_pdf(m, s, light.direction);
    float cosine = dot_fma(light.direction, s.normal);
    if (!(bsdf.w > 0.0f) || !on_geometric_side(s, light.direction, cosine < 0.0f)) return false;
#if TEXTURED
    light.radiance = light.radiance * light_texture_at(params, SCENE_ARGS, lights, light, origin);
#endif
    bool has_bsdf_pdf = use_mis && DIRECT_LIGHTING == DIRECT_MIS && !light.is_delta;
    float inverse_pdf = 1.0f / (light.pdf + (has_bsdf_pdf ? bsdf.w : 0.0f));  // balance heuristic: weight / pdf
    float offset = dot_fma(origin - s.point, s.normal);
    float t_min = offset * cosine < 0.0f ? -2.5f * offset / cosine : 0.0f;
    float t_max = light.distance * 0.9999f - (SHADOW_RAYS_CROSS ? t_min : 0.0f);  // the ray begins at t_min
    if (SHADOW_RAYS_CROSS && !(t_max > 0.0f)) return false;  // it would begin behind the light
    ray->direction = with_w(light.direction, light.distance < FLT_MAX ? t_max : FLT_MAX);
    ray->contribution = with_w(xyz(bsdf) * light.radiance * inverse_pdf, t_min);
    return true;
}
