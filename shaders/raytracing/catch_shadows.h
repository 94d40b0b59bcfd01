// The shadow catcher's ground (materials/shadow_catcher.h): what of the background's irradiance reaches it. Included by
// raytracing/raytrace.cu.
#define CATCHER_CANDIDATES 16u
#define CATCHER_STRIDE 1024u  // dimensions between candidates, beyond those of MAX_DEPTHS bounces

// One of the light samples offered so far, chosen in proportion to its weight: for suns the luminance of the irradiance,
// for the environment an upper bound of it that needs no look at the map (the CDF's cell holds the largest luminance of
// its surroundings). So the map is read once for the sample that is chosen, not for each candidate: reading it took a
// fifth of a default picture on CPUs.
typedef struct {
    float3 direction, chosen;  // chosen: its irradiance over its weight; of the environment, what times its radiance is
    bool of_environment;  // whether the chosen sample is one of the environment
    float choice, sum;  // a uniform number for the next choice; the sum of the weights
} LevelReservoir;

// Offers a light sample of infinite distance to the reservoir.
DEVICE void add_candidate(LevelReservoir *r, float weight, float3 direction, float3 irradiance, bool of_environment) {
    float probability = weight / (r->sum + weight);
    if (!(weight > 0.0f)) return;
    r->sum += weight;
    bool takes = r->choice < probability;
    r->choice = takes ? r->choice / probability : (r->choice - probability) / (1.0f - probability);
    if (!takes) return;
    r->chosen = irradiance * (1.0f / weight);
    r->direction = direction;
    r->of_environment = of_environment;
}

#if NON_AREA_LIGHTS
// Offers a sample of sun number `sun`.
DEVICE void add_sun(LevelReservoir *r, const LaunchParams params, GLOBAL const float4 *lights, int sun, float3 from,
                    float3 normal, float u1, float u2) {
    LightSample light;
    if (!sample_non_area_light(params, lights, sun, from, u1, u2, &light)) return;
    float cosine = dot_fma(light.direction, normal);
    if (!(cosine > 0.0f)) return;
    float3 irradiance = light.radiance * (cosine / light.pdf);
    add_candidate(r, luminance_of(with_w(irradiance, 0.0f)), light.direction, irradiance, false);
}
#endif

#if ENVIRONMENT
// Offers a sample of the environment, whose luminance over its pdf is at most `bound`.
DEVICE void add_environment(LevelReservoir *r, float bound, float3 direction, float cosine, float pdf) {
    float scale = cosine / pdf;
    add_candidate(r, bound * cosine, direction, make_float3(scale, scale, scale), true);
}
#endif

// What a light of the table is: above 0 for suns; as LIGHT_POINT for all that are at a finite distance.
DEVICE float light_kind(const LaunchParams params, GLOBAL const float4 *lights, int id) {
    return id < 0 && id != LIGHT_TREE_ID ? lights[params.non_area_lights + 3 * ~id].w : LIGHT_POINT;
}

// An upper bound of the environment's luminance over its pdf.
DEVICE float environment_bound(const LaunchParams params, GLOBAL const float4 *lights, int id) {
    float4 emitted = lights[params.non_area_lights + 3 * ~id + 1];
    return emitted.x / emitted.w;
}

#define CANDIDATE_DIMENSION(k) (dimension + 4u + (k) * CATCHER_STRIDE)
#if ENVIRONMENT && HAS_MOVEMASK
// Samples of the environment, above the horizon, in structures of arrays.
typedef struct {
    uint count, of[CATCHER_CANDIDATES];  // of: which of the candidates it is
    float pdf[CATCHER_CANDIDATES], cosine[CATCHER_CANDIDATES];
    float3 direction[CATCHER_CANDIDATES];
} EnvironmentSamples;

// Samples the environment `count` times, for candidates `of`, in stages: each is a short loop over all samples, so that
// a core waits for many of its loads from the CDF at once, and computes in vectors.
DEVICE void sample_environments(const LaunchParams params, GLOBAL const float4 *lights, float3 normal, uint count,
                                const uint *of, const float *u1, const float *u2, EnvironmentSamples *s) {
    int line[CATCHER_CANDIDATES];
    float row[CATCHER_CANDIDATES], column[CATCHER_CANDIDATES], probability[CATCHER_CANDIDATES];
    float pdf[CATCHER_CANDIDATES], cosine[CATCHER_CANDIDATES];
    float x[CATCHER_CANDIDATES], y[CATCHER_CANDIDATES], z[CATCHER_CANDIDATES];
    uint vectors = (count + 7u) & ~7u;
    for (uint i = 0; i < vectors; i++) row[i] = column[i] = probability[i] = 0.0f;
    for (uint i = 0; i < count; i++) {
        float within;
        line[i] = sample_environment_row(params, lights, u1[of[i]], &within);
        row[i] = (float)line[i] + within;
    }
    for (uint i = 0; i < count; i++) {
        float within;
        int cell = sample_environment_column(params, lights, line[i], u2[of[i]], &within);
        column[i] = (float)cell + within;
        probability[i] = env_cell_probability(params, lights, cell, line[i]);
    }
    for (uint i = 0; i < vectors; i++) {
        float3 direction = environment_direction(params, column[i], row[i], probability[i], &pdf[i]);
        x[i] = direction.x;
        y[i] = direction.y;
        z[i] = direction.z;
        cosine[i] = dot_fma(direction, normal);
    }
    s->count = 0;
    for (uint i = 0; i < count; i++) {
        uint j = s->count;
        s->of[j] = of[i];
        s->pdf[j] = pdf[i];
        s->cosine[j] = cosine[i];
        s->direction[j] = make_float3(x[i], y[i], z[i]);
        s->count += (pdf[i] > 0.0f) & (cosine[i] > 0.0f);
    }
}

// The candidates on CPUs: the same samples in the same order, but those of the environment drawn together. Lights at a
// finite distance are passed over at once.
DEVICE void add_candidates(LevelReservoir *r, const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                           uint dimension, GLOBAL const float4 *lights, GLOBAL const float4 *primitives,
                           GLOBAL const Material *materials) {
    uint u32[CATCHER_CANDIDATES], of[CATCHER_CANDIDATES], count = 0;
    float u1[CATCHER_CANDIDATES], u2[CATCHER_CANDIDATES];
    int sun[CATCHER_CANDIDATES];  // index among the lights that are no area lights, -1 for others than suns
    float bound = 0.0f;
    for (uint k = 0; k < CATCHER_CANDIDATES; k++) {
        u32[k] = sample_bits(sampler, CANDIDATE_DIMENSION(k));
        u2[k] = uniform_float(sample_bits(sampler, CANDIDATE_DIMENSION(k) + 1u));
    }
    for (uint k = 0; k < CATCHER_CANDIDATES; k++) {
        uint begin, width;
        int entry = choose_light(params, lights, u32[k], &begin, &width), id = as_int(lights[entry].y);
        float kind = light_kind(params, lights, id);
        sun[k] = kind >= 0.0f ? ~id : -1;
        if (kind != LIGHT_ENVIRONMENT && sun[k] < 0) continue;
        u1[k] = position_in_interval(sampler, CANDIDATE_DIMENSION(k) + 2u, u32[k], begin, width);
        if (kind == LIGHT_ENVIRONMENT) bound = environment_bound(params, lights, id);
        of[count] = k;
        count += kind == LIGHT_ENVIRONMENT;
    }
    EnvironmentSamples s;
    sample_environments(params, lights, normal, count, of, u1, u2, &s);
    for (uint k = 0, j = 0; k < CATCHER_CANDIDATES; k++) {
        if (j < s.count && s.of[j] == k) {
            add_environment(r, bound, s.direction[j], s.cosine[j], s.pdf[j]);
            j++;
        } else if (sun[k] >= 0) {
            add_sun(r, params, lights, sun[k], from, normal, u1[k], u2[k]);
        }
    }
}
#else
DEVICE void add_candidates(LevelReservoir *r, const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                           uint dimension, GLOBAL const float4 *lights, GLOBAL const float4 *primitives,
                           GLOBAL const Material *materials) {
#if NON_AREA_LIGHTS
    for (uint k = 0; k < CATCHER_CANDIDATES; k++) {
        uint u32 = sample_bits(sampler, CANDIDATE_DIMENSION(k)), begin, width;
        float u2 = uniform_float(sample_bits(sampler, CANDIDATE_DIMENSION(k) + 1u));
        int id = as_int(lights[choose_light(params, lights, u32, &begin, &width)].y);
        float kind = light_kind(params, lights, id);
        if (kind != LIGHT_ENVIRONMENT && kind < 0.0f) continue;
        float u1 = position_in_interval(sampler, CANDIDATE_DIMENSION(k) + 2u, u32, begin, width);
        if (kind >= 0.0f) add_sun(r, params, lights, ~id, from, normal, u1, u2);
#if ENVIRONMENT
        if (kind == LIGHT_ENVIRONMENT) {
            float pdf;
            float3 direction = sample_environment(params, lights, u1, u2, &pdf);
            float cosine = dot_fma(direction, normal);
            if (pdf > 0.0f && cosine > 0.0f)
                add_environment(r, environment_bound(params, lights, id), direction, cosine, pdf);
        }
#endif
    }
#endif
}
#endif

// Samples a direction of an infinite light at a level surface: resampled importance sampling (J. Talbot, D. Cline and
// P. Egbert 2005) of CATCHER_CANDIDATES light samples by their weight. Returns the irradiance over its pdf.
DEVICE float3 sample_level_irradiance(const LaunchParams params, float3 from, float3 normal, Sampler sampler,
                                      uint dimension, GLOBAL const float4 *lights, GLOBAL const float4 *primitives,
                                      GLOBAL const Material *materials, float3 *direction) {
    LevelReservoir r = {normal, make_float3(0.0f, 0.0f, 0.0f), false, get_1d(sampler, dimension), 0.0f};
#if HAS_MOVEMASK
    sampler.cached = 0;  // it holds one bounce alone
#endif
    add_candidates(&r, params, from, normal, sampler, dimension, lights, primitives, materials);
    *direction = r.direction;
#if ENVIRONMENT
    if (r.of_environment) r.chosen = r.chosen * environment_radiance(params, lights, r.direction);
#endif
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
