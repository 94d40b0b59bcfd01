// The environment of a path: its radiance, and directions sampled in proportion to it. lights.h says where its pixels
// and CDFs lie; scenes without one do not compile it.

// Texture coordinates (0 to 1) of a direction in the equirectangular environment map. The angles are our own: PoCL's
// atan2 and acos took a sixth of a default picture of a mesh.
DEVICE float2 environment_uv(const LaunchParams params, float3 direction) {
    float sine = sqrt(fma(direction.x, direction.x, direction.z * direction.z));
    float u = fma(angle_of(direction.x, -direction.z), 0.5f / PI, 0.5f + params.environment_rotation);
    return make_float2(u - floor(u), angle_of(sine, direction.y) * (1.0f / PI));
}

// The four pixels, as rows of `lights`, and the weights of a bilinear lookup in the environment map.
typedef struct {
    int upper, lower, left, right;
    float u, v;
} EnvironmentTexels;

DEVICE EnvironmentTexels environment_texels(const LaunchParams params, float2 uv) {
    float x = fma(uv.x, (float)params.environment_width, -0.5f), y = fma(uv.y, (float)params.environment_height, -0.5f);
    float column = floor(x), row = clamp(floor(y), 0.0f, (float)(params.environment_height - 1));
    EnvironmentTexels t;
    t.u = x - column;
    t.v = clamp(y - row, 0.0f, 1.0f);
    int last = params.environment_width - 1, line = clamp((int)row, 0, params.environment_height - 1);
    t.left = column < 0.0f ? last : clamp((int)column, 0, last);
    t.right = t.left < last ? t.left + 1 : 0;
    t.upper = params.environment + line * params.environment_width;
    t.lower = line + 1 < params.environment_height ? t.upper + params.environment_width : t.upper;
    return t;
}

DEVICE float3 texels_radiance(GLOBAL const float4 *lights, const EnvironmentTexels t) {
    float4 above = lights[t.upper + t.left] * (1.0f - t.u) + lights[t.upper + t.right] * t.u;
    float4 below = lights[t.lower + t.left] * (1.0f - t.u) + lights[t.lower + t.right] * t.u;
    return xyz(above * (1.0f - t.v) + below * t.v);
}

DEVICE float3 environment_radiance(const LaunchParams params, GLOBAL const float4 *lights, float3 direction) {
    return texels_radiance(lights, environment_texels(params, environment_uv(params, direction)));
}

DEVICE float env_cell_probability(const LaunchParams params, GLOBAL const float4 *lights, int column, int row) {
    GLOBAL const uint *marginal = (GLOBAL const uint *)(lights + params.env_cdf);
    GLOBAL const uint *conditional = marginal + params.env_cdf_height + 1 + row * (params.env_cdf_width + 1);
    return (float)(marginal[row + 1] - marginal[row]) * INV_2_32 *
           ((float)(conditional[column + 1] - conditional[column]) * INV_2_32);
}

// The pdf per solid angle of directions in a cell of a CDF over the environment; `sine` of the angle to the zenith.
DEVICE float env_cell_pdf(const LaunchParams params, float probability, float sine) {
    return probability * (float)params.env_cdf_width * (float)params.env_cdf_height /
           (2.0f * PI * PI * max_nnan(sine, 1e-7f));
}

DEVICE float environment_pdf(const LaunchParams params, GLOBAL const float4 *lights, float3 direction) {
    float2 uv = environment_uv(params, direction);
    int column = clamp((int)(uv.x * (float)params.env_cdf_width), 0, params.env_cdf_width - 1);
    int row = clamp((int)(uv.y * (float)params.env_cdf_height), 0, params.env_cdf_height - 1);
    float sine = sqrt(fma(direction.x, direction.x, direction.z * direction.z));
    float probability = env_cell_probability(params, lights, column, row);
    return env_cell_pdf(params, probability, sine) * params.environment_probability;
}

// Where the words and the 16-bit guides of the environment's CDFs begin, counted in their own units from
// params.env_cdf.
DEVICE int env_guides(const LaunchParams params) {
    return 2 * (params.env_cdf_height + 1 + params.env_cdf_height * (params.env_cdf_width + 1));
}
DEVICE int env_column_guides(const LaunchParams params) {
    return env_guides(params) + (1 << guide_bits(params.env_cdf_height));
}
DEVICE int env_level_words(const LaunchParams params) {
    return (env_column_guides(params) + (params.env_cdf_height << guide_bits(params.env_cdf_width))) / 2;
}
DEVICE int env_level_guide(const LaunchParams params) {
    return 2 * (env_level_words(params) + params.env_cdf_height + 1);
}

// Samples a direction of the environment by its luminance; for a `level` surface by luminance times cosine. *pdf is
// that of the direction where the environment has been chosen among the lights.
DEVICE float3 sample_environment_map(const LaunchParams params, GLOBAL const float4 *lights, bool level, float u1,
                                     float u2, float *pdf) {
    GLOBAL const uint *words = (GLOBAL const uint *)(lights + params.env_cdf);
    GLOBAL const ushort *guides = (GLOBAL const ushort *)words;
    int height = params.env_cdf_height, width = params.env_cdf_width;
    GLOBAL const uint *marginal = words + (level ? env_level_words(params) : 0);
    GLOBAL const ushort *guide = guides + (level ? env_level_guide(params) : env_guides(params));
    float x, y;
    int row = sample_cdf(marginal, guide, height, (uint)(u1 * 4294967296.0f), &y);
    GLOBAL const uint *conditional = words + height + 1 + row * (width + 1);
    guide = guides + env_column_guides(params) + (row << guide_bits(width));
    int column = sample_cdf(conditional, guide, width, (uint)(u2 * 4294967296.0f), &x);
    float probability = (float)(marginal[row + 1] - marginal[row]) * INV_2_32 *
                        ((float)(conditional[column + 1] - conditional[column]) * INV_2_32);
    float u = ((float)column + x) / (float)width - 0.5f - params.environment_rotation;
    float2 phi = cos_sin_2pi(u - floor(u)), theta = cos_sin_2pi(0.5f * ((float)row + y) / (float)height);
    *pdf = env_cell_pdf(params, probability, theta.y);
    return make_float3(theta.y * phi.y, theta.x, -theta.y * phi.x);
}

DEVICE float3 sample_environment(const LaunchParams params, GLOBAL const float4 *lights, float u1, float u2,
                                 float *pdf) {
    float3 direction = sample_environment_map(params, lights, false, u1, u2, pdf);
    *pdf *= params.environment_probability;
    return direction;
}
