// catch_shadows.h for eight lanes that see the ground from above, in scenes without suns, with the same roundings.

// A level reservoir a lane; the chosen samples are all of the environment.
typedef struct {
    Float3x8 direction;
    float8 chosen, choice, sum;
} LevelReservoir8;

// add_environment for `lanes`.
DEVICE void add_environment8(LevelReservoir8 *r, int8 lanes, float8 bound, Float3x8 direction, float8 cosine,
                             float8 pdf) {
    float8 weight = bound * cosine, probability = weight / (r->sum + weight), choice = r->choice;
    int8 offered = lanes & (pdf > 0.0f) & (cosine > 0.0f) & (weight > 0.0f), takes = offered & (choice < probability);
    float8 next = takes ? choice / probability : (choice - probability) / (1.0f - probability);
    r->choice = offered ? next : choice;
    r->sum = offered ? r->sum + weight : r->sum;
    r->chosen = takes ? cosine / pdf * (1.0f / weight) : r->chosen;
    r->direction = select8(takes, direction, r->direction);
}

// Shades the hits of `lanes` on shadow catchers. Returns the lanes that have a shadow ray.
DEVICE uint catch_shadows8(const LaunchParams params, int depth, PathPacket *packet, uint begin, uint lanes,
                           Float3x8 normal, Float3x8 origin, GLOBAL const float4 *lights) {
    uint first = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE;
    uint8 seeds = vload8(0, packet->seeds + begin);
    float8 zero = (float8)(0.0f), u, v;
    LevelReservoir8 r = {normal, zero, vload8(0, packet->sample_cache + begin), zero};
    for (uint k = 0; k < CATCHER_CANDIDATES && params.light_count > 0; k++) {
        uint dimension = first + 4u + k * CATCHER_STRIDE;
        uint8 u32 = sample_bits8(seeds, packet->sample, dimension);
        ChosenLight8 chosen = choose_light8(params, lights, u32);
        int8 is_environment = environment_lanes8(params, lights, chosen.id);
        if (!movemask8(is_environment)) continue;
        float8 u1 = chosen.u1, u2 = uniform_float8(sample_bits8(seeds, packet->sample, dimension + 1u)), pdf;
        if (movemask8(chosen.is_narrow)) {
            float8 drawn = uniform_float8(sample_bits8(seeds, packet->sample, dimension + 2u));
            u1 = chosen.is_narrow ? drawn : u1;
        }
        Float3x8 direction = sample_environment8(params, lights, u1, u2, &pdf);
        int8 row = 4 * (params.non_area_lights + 3 * (is_environment ? ~chosen.id : 0) + 1);
        float8 bound = as_float8(GATHER8(lights, row)) / as_float8(GATHER8(lights, row + 3));
        add_environment8(&r, is_environment, bound, direction, dot8(direction, normal), pdf);
    }
    Float3x8 seen = load8(packet->rays.direction, begin), throughput = load8(packet->throughput, begin);
    Float3x8 behind = escaped_radiance8(params, lights, seen, (float8)(DELTA_PDF));
    Float3x8 irradiance = environment_radiance8(params, lights, r.direction, sine_to_zenith8(r.direction), &u, &v);
    irradiance = scale8(scale8(irradiance, r.chosen), r.sum * (1.0f / (float)CATCHER_CANDIDATES));
    Float3x8 fraction = mul8(mul8(behind, irradiance), splat3x8(xyz(params.inverse_irradiance)));
    Float3x8 taken = mul8(throughput, fraction);
    Float3x8 radiance = sub8(add8(load8(packet->radiance, begin), mul8(throughput, behind)), taken);
    store8(packet->radiance, begin, mask_of_bits8(lanes), radiance);
    uint shadows = lanes & movemask8(irradiance.x + irradiance.y + irradiance.z > 0.0f);
    set_shadow_rays8(packet, begin, shadows, origin, r.direction, (float8)(FLT_MAX), taken);
    return shadows;
}
