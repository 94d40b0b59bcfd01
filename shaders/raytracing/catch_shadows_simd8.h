// catch_shadows.h for eight lanes that see the ground from above, in scenes without suns, with the same roundings.

// Shades the hits of `lanes` on shadow catchers. Returns the lanes that have a shadow ray.
DEVICE uint catch_shadows8(const LaunchParams params, PathPacket *packet, uint begin, uint lanes, Float3x8 normal,
                           Float3x8 origin, GLOBAL const float4 *lights) {
    const float *cache = packet->sample_cache + begin;
    float8 zero = (float8)(0.0f), pdf, u, v;
    Float3x8 direction = sample_environment_map8(params, lights, (int8)(-1), vload8(0, cache + CACHE_PATHS * 4),
                                                 vload8(0, cache + CACHE_PATHS * 5), &pdf);
    float8 cosine = dot8(direction, normal), scale = cosine / pdf;
    scale = (pdf > 0.0f) & (cosine > 0.0f) & (params.light_count > 0 ? -1 : 0) ? scale : zero;
    Float3x8 seen = load8(packet->rays.direction, begin), throughput = load8(packet->throughput, begin);
    Float3x8 behind = escaped_radiance8(params, lights, seen, (float8)(DELTA_PDF));
    Float3x8 irradiance = environment_radiance8(params, lights, direction, sine_to_zenith8(direction), &u, &v);
    irradiance = scale8(irradiance, scale);
    Float3x8 fraction = mul8(mul8(behind, irradiance), splat3x8(xyz(params.inverse_irradiance)));
    Float3x8 taken = mul8(throughput, fraction);
    Float3x8 radiance = sub8(add8(load8(packet->radiance, begin), mul8(throughput, behind)), taken);
    store8(packet->radiance, begin, mask_of_bits8(lanes), radiance);
    uint shadows = lanes & movemask8(irradiance.x + irradiance.y + irradiance.z > 0.0f);
    set_shadow_rays8(packet, begin, shadows, origin, direction, (float8)(FLT_MAX), taken);
    return shadows;
}
