// The environment for eight lanes: the functions of cdf.h and lights.h of these names, with the same roundings.

// sample_cdf for lanes whose CDFs and guides begin at words `first` and at 16-bit entries `guide` of `words`. *width is
// that of the chosen entries.
DEVICE int8 sample_cdf8(GLOBAL const uint *words, int8 first, int8 guide, int count, uint8 u, float8 *remapped_u,
                        uint8 *width) {
    int8 bucket = guide + as_int8(u >> (32u - guide_bits(count))), before = bucket - 1;
    uint8 upper = GATHER8(words, bucket >> 1), lower = GATHER8(words, before >> 1);
    int8 high = as_int8(upper >> as_uint8((bucket & 1) << 4) & 0xffffu);
    int8 low = as_int8(lower >> as_uint8((before & 1) << 4) & 0xffffu);
    low = bucket > guide ? low : 0;
    while (movemask8(low < high)) {
        int8 middle = (low + high + 1) >> 1, is_above = GATHER8(words, first + middle) <= u;
        low = is_above ? middle : low;  // for lanes that are done middle is low, and its entry is not above u
        high = is_above ? high : middle - 1;
    }
    uint8 begin = GATHER8(words, first + low);
    *width = GATHER8(words, first + low + 1) - begin;
    float8 within = convert_float8(u - begin) / max_nnan(convert_float8(*width), (float8)(1.0f));
    *remapped_u = min_nnan(within, (float8)(0.9999999f));
    return low;
}

DEVICE float8 env_cell_pdf8(const LaunchParams params, float8 probability, float8 sine) {
    return probability * (float)params.env_cdf_width * (float)params.env_cdf_height /
           (2.0f * PI * PI * max_nnan(sine, (float8)(1e-7f)));
}

DEVICE Float3x8 sample_environment_map8(const LaunchParams params, GLOBAL const float4 *lights, int8 level, float8 u1,
                                        float8 u2, float8 *pdf) {
    GLOBAL const uint *words = (GLOBAL const uint *)(lights + params.env_cdf);
    int width = params.env_cdf_width, height = params.env_cdf_height;
    int8 marginal = level ? (int8)(env_level_words(params)) : (int8)(0);
    int8 guide = level ? (int8)(env_level_guide(params)) : (int8)(env_guides(params));
    float8 x, y;
    uint8 row_width, column_width;
    int8 row = sample_cdf8(words, marginal, guide, height, convert_uint8(u1 * 4294967296.0f), &y, &row_width);
    guide = env_column_guides(params) + (row << (int)guide_bits(width));
    int8 column = sample_cdf8(words, height + 1 + row * (width + 1), guide, width, convert_uint8(u2 * 4294967296.0f),
                              &x, &column_width);
    float8 probability = convert_float8(row_width) * INV_2_32 * (convert_float8(column_width) * INV_2_32);
    float8 u = (convert_float8(column) + x) / (float)width - 0.5f - params.environment_rotation;
    float8 around_x, around_y, up, sine;
    cos_sin_2pi8(u - floor(u), &around_x, &around_y);
    cos_sin_2pi8(0.5f * (convert_float8(row) + y) / (float)height, &up, &sine);
    *pdf = env_cell_pdf8(params, probability, sine);
    return float3x8(sine * around_y, up, -sine * around_x);
}

DEVICE void environment_uv8(const LaunchParams params, Float3x8 direction, float8 sine, float8 *u, float8 *v) {
    float8 turns =
        fma(angle_of8(direction.x, -direction.z), (float8)(0.5f / PI), (float8)(0.5f + params.environment_rotation));
    *u = turns - floor(turns);
    *v = angle_of8(sine, direction.y) * (1.0f / PI);
}

// The environment's radiance in eight directions, of which *u and *v become the texture coordinates.
DEVICE Float3x8 environment_radiance8(const LaunchParams params, GLOBAL const float4 *lights, Float3x8 direction,
                                      float8 sine, float8 *u, float8 *v) {
    environment_uv8(params, direction, sine, u, v);
    int width = params.environment_width, height = params.environment_height;
    float8 x = fma(*u, (float8)((float)width), (float8)(-0.5f)), y = fma(*v, (float8)((float)height), (float8)(-0.5f));
    float8 column = floor(x), row = clamp(floor(y), (float8)(0.0f), (float8)((float)(height - 1)));
    float8 along = x - column, down = clamp(y - row, (float8)(0.0f), (float8)(1.0f));
    int8 line = clamp(convert_int8(row), 0, height - 1);
    int8 left = column < 0.0f ? (int8)(width - 1) : clamp(convert_int8(column), 0, width - 1);
    int8 right = left < width - 1 ? left + 1 : (int8)(0), upper = params.environment + line * width;
    int8 lower = line + 1 < height ? upper + width : upper;
    Float3x8 a, b, c, d;
    columns8(lights, 1, 0, upper + left, &a);
    columns8(lights, 1, 0, upper + right, &b);
    columns8(lights, 1, 0, lower + left, &c);
    columns8(lights, 1, 0, lower + right, &d);
    Float3x8 above = add8(scale8(a, 1.0f - along), scale8(b, along));
    Float3x8 below = add8(scale8(c, 1.0f - along), scale8(d, along));
    return add8(scale8(above, 1.0f - down), scale8(below, down));
}

DEVICE float8 sine_to_zenith8(Float3x8 direction) {
    return sqrt(fma(direction.x, direction.x, direction.z * direction.z));
}

// environment_pdf at texture coordinates.
DEVICE float8 environment_pdf8(const LaunchParams params, GLOBAL const float4 *lights, float8 sine, float8 u,
                               float8 v) {
    int width = params.env_cdf_width, height = params.env_cdf_height;
    GLOBAL const uint *words = (GLOBAL const uint *)(lights + params.env_cdf);
    int8 column = clamp(convert_int8(u * (float)width), 0, width - 1);
    int8 row = clamp(convert_int8(v * (float)height), 0, height - 1), at = height + 1 + row * (width + 1) + column;
    uint8 row_width = GATHER8(words, row + 1) - GATHER8(words, row);
    uint8 column_width = GATHER8(words, at + 1) - GATHER8(words, at);
    float8 probability = convert_float8(row_width) * INV_2_32 * (convert_float8(column_width) * INV_2_32);
    return env_cell_pdf8(params, probability, sine) * params.environment_probability;
}

// escaped_radiance of a scene without suns.
DEVICE Float3x8 escaped_radiance8(const LaunchParams params, GLOBAL const float4 *lights, Float3x8 direction,
                                  float8 bsdf_pdf) {
    float8 sine = sine_to_zenith8(direction), u, v, weight = (float8)(1.0f);
    float8 height = max_nnan(direction.y, (float8)(0.0f));
    Float3x8 horizon = splat3x8(xyz(params.horizon)), rise = splat3x8(xyz(params.zenith) - xyz(params.horizon));
    Float3x8 radiance = madd8(rise, height, horizon);
    Float3x8 map = environment_radiance8(params, lights, direction, sine, &u, &v);
    int8 sampled = bsdf_pdf > 0.0f;
    if (DIRECT_LIGHTING != DIRECT_BSDF && movemask8(sampled)) {
        float8 light_pdf = environment_pdf8(params, lights, sine, u, v);
        float8 mis = DIRECT_LIGHTING == DIRECT_NEE ? (float8)(0.0f) : bsdf_pdf / (bsdf_pdf + light_pdf);
        weight = sampled & (light_pdf > 0.0f) ? mis : weight;
    }
    return madd8(map, weight, radiance);
}
