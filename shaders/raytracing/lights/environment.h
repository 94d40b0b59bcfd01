// The environment map, an infinite light: its radiance, and directions sampled in proportion to its luminance. Used by
// lights.h and escaped_radiance.h in scenes with one. light_rows.h has the layout of its pixels, CDFs and guide tables
// (cdf.h) in the buffer `lights`. Directions are unit, in world space, y up. Compiled for one lane (`real` is float,
// `mask` bool) and, on CPUs, again for eight (float8, int8; packets/lanes8.h).
#include "raytracing/lights/light_rows.h"
#include "raytracing/lights/cdf.h"
#include "common/vectors.h"

#if LANES == 1
// The positions of guide tables and of the CDF for level surfaces, counted from params.env_cdf: functions with `words`
// in the name return words, the others 16-bit entries. The words: height + 1 of the marginal CDF, width + 1 of each of
// the `height` conditional CDFs, then their guide tables, two entries a word.
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
#endif

// Returns the sine of the angle between the direction and the zenith.
DEVICE real sine_to_zenith(real3 direction) { return sqrt(fma(direction.x, direction.x, direction.z * direction.z)); }

// Returns the texture coordinates, 0 to 1, of a direction in the equirectangular map. angle_of (common/angle.h)
// replaces atan2 and acos, which took a sixth of the time of a mesh's picture on PoCL.
DEVICE real2 environment_uv(const LaunchParams params, real3 direction) {
    real turns = FUSED(angle_of(direction.x, -direction.z), 0.5f / PI, 0.5f + params.environment_rotation);
    return make_real2(turns - floor(turns), angle_of(sine_to_zenith(direction), direction.y) * (1.0f / PI));
}

// Returns the environment's radiance at texture coordinates, interpolated bilinearly; columns wrap around.
DEVICE_NOINLINE_CPU real3 environment_texel(const LaunchParams params, GLOBAL const float4 *lights, real2 uv) {
    int width = params.environment_width, height = params.environment_height;
    real x = FUSED(uv.x, (float)width, -0.5f), y = FUSED(uv.y, (float)height, -0.5f);
    real column = floor(x), row = clamp(floor(y), 0.0f, (float)(height - 1));
    real u = x - column, v = clamp(y - row, 0.0f, 1.0f);
    whole line = clamp(truncated(row), 0, height - 1);
    whole left = column < 0.0f ? width - 1 : clamp(truncated(column), 0, width - 1);
    whole right = left < width - 1 ? left + 1 : 0, upper = params.environment + line * width;
    whole lower = line + 1 < height ? upper + width : upper;
    real3 above = mix3(xyz(load_rows(lights, 1, 0, upper + left)), xyz(load_rows(lights, 1, 0, upper + right)), u);
    real3 below = mix3(xyz(load_rows(lights, 1, 0, lower + left)), xyz(load_rows(lights, 1, 0, lower + right)), u);
    return mix3(above, below, v);
}

// Returns the environment's radiance in a direction.
DEVICE_NOINLINE_CPU real3 environment_radiance(const LaunchParams params, GLOBAL const float4 *lights,
                                               real3 direction) {
    return environment_texel(params, lights, environment_uv(params, direction));
}

// Returns the pdf per solid angle of directions in a cell of the map. `row_width` is the probability of the cell's row,
// `column_width` the probability of the cell within the row, both in units of 2^-32; `sine` is the sine of the angle to
// the zenith.
DEVICE real env_cell_pdf(const LaunchParams params, bits row_width, bits column_width, real sine) {
    real probability = real_of(row_width) * INV_2_32 * (real_of(column_width) * INV_2_32);
    return probability * (float)params.env_cdf_width * (float)params.env_cdf_height /
           (2.0f * PI * PI * max_nnan(sine, 1e-7f));
}

// Returns the pdf per solid angle with which next-event estimation samples a direction with texture coordinates `uv`,
// selection of the environment among the lights included.
DEVICE real environment_pdf(const LaunchParams params, GLOBAL const float4 *lights, real sine, real2 uv) {
    int width = params.env_cdf_width, height = params.env_cdf_height;
    GLOBAL const uint *words = (GLOBAL const uint *)(lights + params.env_cdf);
    whole column = clamp(truncated(uv.x * (float)width), 0, width - 1);
    whole row = clamp(truncated(uv.y * (float)height), 0, height - 1);
    whole cell = height + 1 + row * (width + 1) + column;
    bits row_width = GATHER_WORDS(words, row + 1) - GATHER_WORDS(words, row);
    bits column_width = GATHER_WORDS(words, cell + 1) - GATHER_WORDS(words, cell);
    return env_cell_pdf(params, row_width, column_width, sine) * params.environment_probability;
}

// Samples a direction of the environment by its luminance, or with `level` by luminance times cosine, for level
// surfaces. *pdf becomes the direction's pdf per solid angle, without the probability of selecting the environment.
DEVICE_NOINLINE_CPU real3 sample_environment_map(const LaunchParams params, GLOBAL const float4 *lights, bool level,
                                                 real u1, real u2, real *pdf) {
    GLOBAL const uint *words = (GLOBAL const uint *)(lights + params.env_cdf);
    int width = params.env_cdf_width, height = params.env_cdf_height;
    whole cdf = level ? env_level_words(params) : 0, guide = level ? env_level_guide(params) : env_guides(params);
    real x, y;
    bits row_width, column_width;
    whole row = sample_cdf(words, cdf, guide, height, truncated_bits(u1 * 4294967296.0f), &y, &row_width);
    cdf = height + 1 + row * (width + 1);
    guide = env_column_guides(params) + (row << (int)guide_bits(width));
    whole column = sample_cdf(words, cdf, guide, width, truncated_bits(u2 * 4294967296.0f), &x, &column_width);
    real u = (real_of(column) + x) / (float)width - 0.5f - params.environment_rotation;
    real2 phi = cos_sin_2pi(u - floor(u)), theta = cos_sin_2pi(0.5f * (real_of(row) + y) / (float)height);
    *pdf = env_cell_pdf(params, row_width, column_width, theta.y);
    return make_real3(theta.y * phi.y, theta.x, -theta.y * phi.x);
}

// Samples a direction of the environment; *pdf per solid angle includes the probability of selecting the environment.
DEVICE real3 sample_environment(const LaunchParams params, GLOBAL const float4 *lights, real u1, real u2, real *pdf) {
    real3 direction = sample_environment_map(params, lights, false, u1, u2, pdf);
    *pdf *= params.environment_probability;
    return direction;
}

// Samples *direction for a level surface by luminance times cosine. Returns radiance times cosine over the pdf, if the
// environment is selected with `probability` among the infinite lights; 0 for directions below the surface.
DEVICE real3 sample_level_environment(const LaunchParams params, GLOBAL const float4 *lights, real3 normal, real u1,
                                      real u2, float probability, real3 *direction) {
    real pdf;
    *direction = sample_environment_map(params, lights, true, u1, u2, &pdf);
    real cosine = dot_fma(*direction, normal);
    real scale = (pdf > 0.0f) & (cosine > 0.0f) ? cosine / (pdf * probability) : 0.0f;
    return scale3(environment_radiance(params, lights, *direction), scale);
}
