// The shadow catcher's ground (materials/shadow_catcher.h): what of the background's irradiance reaches it. Included by
// raytracing/raytrace.cu.
#define CATCHER_CANDIDATES 16u
#define CATCHER_STRIDE 1024u  // dimensions between candidates, beyond those of MAX_DEPTHS bounces

// Light samples of the catcher: `candidates` below by irradiance.
typedef struct {
    float3 direction, chosen;  // chosen: irradiance over its luminance
    float choice, sum;
} LevelReservoir;

// Offers a light sample of infinite distance to the reservoir.
DEVICE void add_candidate(LevelReservoir *r, float3 direction, float3 radiance, float cosine, float pdf) {
    float3 irradiance = radiance * (cosine / pdf);
    float target = luminance_of(with_w(irradiance, 0.0f)), probability = target / (r->sum + target);
    if (!(target > 0.0f)) return;
    r->sum += target;
    bool takes = r->choice < probability;
    r->choice = takes ? r->choice / probability : (r->choice - probability) / (1.0f - probability);
    if (takes) r->chosen = irradiance * (1.0f / target);
    if (takes) r->direction = direction;
}

// Samples a light in the dimensions from `dimension` on and offers it to the reservoir.
DEVICE void add_light_sample(LevelReservoir *r, const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                             uint dimension, GLOBAL const float4 *lights, GLOBAL const float4 *primitives,
                             GLOBAL const Material *materials) {
    LightSample light;
    if (!sample_light(params, from, lights, primitives, materials, sampler, dimension, &light)) return;
    float cosine = dot_fma(light.direction, normal);
    if (light.distance < FLT_MAX || !(cosine > 0.0f)) return;
    add_candidate(r, light.direction, light.radiance, cosine, light.pdf);
}

#define CANDIDATE_DIMENSION(k) (dimension + 4u + (k) * CATCHER_STRIDE)
#if ENVIRONMENT && HAS_MOVEMASK
// The candidates on CPUs: the same samples in the same order, but those of the environment in stages. Each is a short
// loop over all of them, so that a core waits for many of its loads from CDF and map at once, and computes in vectors.
DEVICE void add_candidates(LevelReservoir *r, const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                           uint dimension, GLOBAL const float4 *lights, GLOBAL const float4 *primitives,
                           GLOBAL const Material *materials) {
    uint u32[CATCHER_CANDIDATES], kept[CATCHER_CANDIDATES], kept_count = 0;
    float u2[CATCHER_CANDIDATES], column[CATCHER_CANDIDATES], row[CATCHER_CANDIDATES];
    float probability[CATCHER_CANDIDATES], pdf[CATCHER_CANDIDATES], cosine[CATCHER_CANDIDATES];
    float x[CATCHER_CANDIDATES], y[CATCHER_CANDIDATES], z[CATCHER_CANDIDATES];
    int line[CATCHER_CANDIDATES];
    float2 uv[CATCHER_CANDIDATES];
    float3 radiance[CATCHER_CANDIDATES];
    bool is_environment[CATCHER_CANDIDATES];
    for (uint k = 0; k < CATCHER_CANDIDATES; k++) {
        u32[k] = sample_bits(sampler, CANDIDATE_DIMENSION(k));
        u2[k] = uniform_float(sample_bits(sampler, CANDIDATE_DIMENSION(k) + 1u));
    }
    for (uint k = 0; k < CATCHER_CANDIDATES; k++) {
        uint begin, width;
        float within;
        int entry = choose_light(params, lights, u32[k], &begin, &width), id = as_int(lights[entry].y);
        is_environment[k] =
            id < 0 && id != LIGHT_TREE_ID && lights[params.non_area_lights + 3 * ~id].w == LIGHT_ENVIRONMENT;
        float u1 = position_in_interval(sampler, CANDIDATE_DIMENSION(k) + 2u, u32[k], begin, width);
        line[k] = sample_environment_row(params, lights, u1, &within);
        row[k] = (float)line[k] + within;
    }
    for (uint k = 0; k < CATCHER_CANDIDATES; k++) {
        float within;
        int cell = sample_environment_column(params, lights, line[k], u2[k], &within);
        column[k] = (float)cell + within;
        probability[k] = env_cell_probability(params, lights, cell, line[k]);
    }
    for (uint k = 0; k < CATCHER_CANDIDATES; k++) {
        float3 direction = environment_direction(params, column[k], row[k], probability[k], &pdf[k]);
        x[k] = direction.x;
        y[k] = direction.y;
        z[k] = direction.z;
        cosine[k] = dot_fma(direction, normal);
    }
    for (uint k = 0; k < CATCHER_CANDIDATES; k++) {
        kept[kept_count] = k;
        kept_count += !is_environment[k] | ((pdf[k] > 0.0f) & (cosine[k] > 0.0f));
    }
    for (uint i = 0; i < kept_count; i++)
        uv[i] = environment_uv(params, make_float3(x[kept[i]], y[kept[i]], z[kept[i]]));
    for (uint i = 0; i < kept_count; i++) radiance[i] = texels_radiance(lights, environment_texels(params, uv[i]));
    for (uint i = 0; i < kept_count; i++) {
        uint k = kept[i];
        if (is_environment[k])
            add_candidate(r, make_float3(x[k], y[k], z[k]), radiance[i], cosine[k], pdf[k]);
        else
            add_light_sample(r, params, from, normal, sampler, CANDIDATE_DIMENSION(k), lights, primitives, materials);
    }
}
#else
DEVICE void add_candidates(LevelReservoir *r, const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                           uint dimension, GLOBAL const float4 *lights, GLOBAL const float4 *primitives,
                           GLOBAL const Material *materials) {
    for (uint k = 0; k < CATCHER_CANDIDATES; k++)
        add_light_sample(r, params, from, normal, sampler, CANDIDATE_DIMENSION(k), lights, primitives, materials);
}
#endif

// Samples a direction of an infinite light at a level surface: resampled importance sampling (J. Talbot, D. Cline and
// P. Egbert 2005) of CATCHER_CANDIDATES light samples by their irradiance. Returns that over its pdf.
DEVICE float3 sample_level_irradiance(const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                                      uint dimension, GLOBAL const float4 *lights, GLOBAL const float4 *primitives,
                                      GLOBAL const Material *materials, float3 *direction) {
    LevelReservoir r = {normal, make_float3(0.0f, 0.0f, 0.0f), get_1d(sampler, dimension), 0.0f};
#if HAS_MOVEMASK
    sampler.cached = 0;  // it holds one bounce alone
#endif
    add_candidates(&r, params, from, normal, sampler, dimension, lights, primitives, materials);
    *direction = r.direction;
    return r.chosen * (r.sum * (1.0f / (float)CATCHER_CANDIDATES));
}

// Shades a hit of the shadow catcher: the radiance of the background behind it, times the fraction of its irradiance by
// suns and environment that the scene leaves unoccluded. A light sample takes away what may be occluded, and its shadow
// ray gives it back where it is not, so that unshadowed ground is the background without noise; where all is occluded
// the mean is 0, but a sample may be negative. Lights at a finite distance neither light it nor cast shadows on it. From
// below it is invisible.
DEVICE bool shade_shadow_catcher(const LaunchParams params, const Surface s, Sampler sampler, uint dimension,
                                 Path *path, ShadowRay *shadow, SCENE_PARAMS, GLOBAL const Material *materials,
                                 GLOBAL const float4 *lights) {
    shadow->valid = false;
    path->origin = offset_ray_origin(s, !s.front_face, path->origin.w);
    path->direction.w = DELTA_PDF;  // next-event estimation does not pass through it, so the background weighs 1
    if (!s.front_face) return true;
    float3 behind = escaped_radiance(params, lights, s.ray_direction, DELTA_PDF);
    float3 direction = s.normal, irradiance = make_float3(0.0f, 0.0f, 0.0f);
    if (params.light_count > 0)
        irradiance = sample_level_irradiance(params, xyz(path->origin), s.normal, sampler, dimension, lights,
                                             primitives, materials, &direction);
    float4 taken = path->throughput * with_w(behind * irradiance * xyz(params.inverse_irradiance), 0.0f);
    shadow->valid = irradiance.x + irradiance.y + irradiance.z > 0.0f;
    shadow->direction = with_w(direction, FLT_MAX);
    shadow->contribution = taken;
    path->radiance = path->radiance + path->throughput * with_w(behind, 0.0f) - taken;
    return false;
}
