// Exact sums by fragment passes (renderer/numerics/sums/gl_sums.py), the OpenGL counterpart of sum_exact.cu: each texel
// adds the 4 * TEXELS floats of TEXELS input texels into an expansion of four floats by TwoSum and, with DOT 1, by
// TwoProduct (Dekker's, since the fma of some drivers rounds twice). The next pass adds the expansions the same way. A
// texel whose four floats cannot hold the sum, or whose inputs could have rounding errors outside the range of normal
// floats, sets `flag` and is zero; the host adds its inputs.
#include "numerics/error_free.h"
precise layout(location = 0) out vec4 expansion;
layout(location = 1) out vec4 flag;
uniform sampler2D numbers;
#if DOT
uniform sampler2D factors;
#endif
uniform int texels;  // input texels that hold numbers
uniform int width;  // width of the target in texels
uniform float min_magnitude;  // magnitudes between which every input but zero must lie
uniform float max_magnitude;

precise float parts[4] = float[4](0.0, 0.0, 0.0, 0.0);
bool flagged = false;

void add(float number) {
    precise float remainder = number;
    for (int i = 0; i < 4; i++) {
        precise float error;
        TWO_SUM(precise float, parts[i], remainder, error)
        remainder = error;
    }
    if (remainder != 0.0) flagged = true;
}

bool outside(float number) {  // by bits: drivers may flush subnormal numbers to zero
    uint magnitude = floatBitsToUint(number) & 0x7fffffffu;
    return magnitude != 0u &&
           (magnitude < floatBitsToUint(min_magnitude) || magnitude > floatBitsToUint(max_magnitude));
}

void add_product(float a, float b) {
    precise float a_big = 4097.0 * a, b_big = 4097.0 * b;  // 2^12 + 1 splits a float into two halves (Dekker)
    precise float a_high = a_big - (a_big - a), b_high = b_big - (b_big - b);
    precise float a_low = a - a_high, b_low = b - b_high;
    precise float product = a * b;
    precise float error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    add(product);
    add(error);
}

void main() {
    int here = int(gl_FragCoord.y) * width + int(gl_FragCoord.x);
    int input_width = textureSize(numbers, 0).x;
    for (int i = here * TEXELS; i < min(texels, (here + 1) * TEXELS); i++) {
        ivec2 texel_index = ivec2(i % input_width, i / input_width);
        vec4 texel = texelFetch(numbers, texel_index, 0);
#if DOT
        vec4 factor = texelFetch(factors, texel_index, 0);
#endif
        for (int c = 0; c < 4; c++) {
            if (outside(texel[c])) flagged = true;
#if DOT
            if (outside(factor[c])) flagged = true;
            add_product(texel[c], factor[c]);
#else
            add(texel[c]);
#endif
        }
    }
    expansion = flagged ? vec4(0.0) : vec4(parts[0], parts[1], parts[2], parts[3]);
    flag = vec4(flagged ? 1.0 : 0.0);
}
