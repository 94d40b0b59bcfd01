// Color grading of one pixel, for kernels and GLSL: white balance and contrast before the tone curve (balanced), a
// look-up table (LUT) after it (looked_up). images/tone_mapping.h includes this file if GRADED is defined.
// renderer/images/color_grade.py makes the table `grade`, an array of float4:
//     0 to 2  rows of the white balance matrix; w of row 0: the contrast
//     3       x: dimensions of the LUT (0: no LUT; 1 or 3); y: its entries per dimension
//     4, 5    1 / extent and start of the LUT's domain
//     6 ...   colors of the LUT, red index fastest
// GRADE_PARAMETER and GRADE_ARGUMENT pass the table through functions of kernels; GLSL reads a texture `grade` of the
// same rows. Functions are compiled without it if GRADED is not defined (tone_mapping.h).
#include "common/shared_function.h"
#ifdef GLSL
#define to_int(x) int(x)
#define to_float(x) float(x)
#define GRADE_WIDTH 4096  // width in texels of the texture that holds the table's rows
#define GRADE_PARAMETER
#define GRADE_ARGUMENT
#define GRADE_ROW(i) texelFetch(grade, ivec2((i) % GRADE_WIDTH, (i) / GRADE_WIDTH), 0)
#else
#define to_int(x) ((int)(x))
#define to_float(x) ((float)(x))
#define GRADE_PARAMETER , GLOBAL const float4 *grade
#define GRADE_ARGUMENT , grade
#define GRADE_ROW(i) grade[i]
#endif
#define GRADE_COLORS 6
#define MIDDLE_GRAY 0.18f

// Applies the white balance matrix and then the contrast, a power function about middle gray, to a linear color.
SHARED_FUNCTION float3 balanced(float3 c GRADE_PARAMETER) {
    float4 r = GRADE_ROW(0), g = GRADE_ROW(1), b = GRADE_ROW(2);
    float3 white = make_float3(r.x * c.x + r.y * c.y + r.z * c.z, g.x * c.x + g.y * c.y + g.z * c.z,
                               b.x * c.x + b.y * c.y + b.z * c.z);
    if (r.w == 1.0f) return white;
    float3 power = pow_each(make_float3(max(white.x, 0.0f) / MIDDLE_GRAY, max(white.y, 0.0f) / MIDDLE_GRAY,
                                        max(white.z, 0.0f) / MIDDLE_GRAY),
                            r.w);
    return make_float3(MIDDLE_GRAY * power.x, MIDDLE_GRAY * power.y, MIDDLE_GRAY * power.z);
}

// Tetrahedral interpolation in a 3D LUT of size^3 entries, as OpenColorIO does, so that grays stay gray: x.xyz are the
// red, green and blue coordinates in entries, 0 to size - 1. Interpolates between the four corners of the tetrahedron
// of the cell that contains the color; all six tetrahedra share the cell's gray diagonal.
SHARED_FUNCTION float3 tetrahedral(float3 x, int size GRADE_PARAMETER) {
    int i = min(to_int(x.x), size - 2), j = min(to_int(x.y), size - 2), k = min(to_int(x.z), size - 2);
    float r = x.x - to_float(i), g = x.y - to_float(j), b = x.z - to_float(k);
    int red = 1, green = size, blue = size * size;
    int first = GRADE_COLORS + i * red + j * green + k * blue;
    int most = r >= g && r >= b ? red : g >= b ? green : blue;
    int least = most == red ? (b <= g ? blue : green) : most == green ? (b <= r ? blue : red) : (g <= r ? green : red);
    float high = max(r, max(g, b)), low = min(r, min(g, b)), middle = r + g + b - high - low;
    int diagonal = red + green + blue;
    float4 c = GRADE_ROW(first) * (1.0f - high) + GRADE_ROW(first + most) * (high - middle) +
               GRADE_ROW(first + diagonal - least) * (middle - low) + GRADE_ROW(first + diagonal) * low;
    return make_float3(c.x, c.y, c.z);
}

// Maps a display color, 0 to 1, through the LUT: by three curves (1D) or by tetrahedral interpolation (3D).
SHARED_FUNCTION float3 looked_up(float3 c GRADE_PARAMETER) {
    float4 kind = GRADE_ROW(3), scale = GRADE_ROW(4), start = GRADE_ROW(5);
    if (kind.x == 0.0f) return c;
    int size = to_int(kind.y);
    float top = kind.y - 1.0f;
    float3 x = make_float3(clamp((c.x - start.x) * scale.x, 0.0f, 1.0f) * top,
                           clamp((c.y - start.y) * scale.y, 0.0f, 1.0f) * top,
                           clamp((c.z - start.z) * scale.z, 0.0f, 1.0f) * top);
    if (kind.x == 3.0f) return tetrahedral(x, size GRADE_ARGUMENT);
    int i = min(to_int(x.x), size - 2), j = min(to_int(x.y), size - 2), k = min(to_int(x.z), size - 2);
    float r = x.x - to_float(i), g = x.y - to_float(j), b = x.z - to_float(k);
    return make_float3(GRADE_ROW(GRADE_COLORS + i).x * (1.0f - r) + GRADE_ROW(GRADE_COLORS + i + 1).x * r,
                       GRADE_ROW(GRADE_COLORS + j).y * (1.0f - g) + GRADE_ROW(GRADE_COLORS + j + 1).y * g,
                       GRADE_ROW(GRADE_COLORS + k).z * (1.0f - b) + GRADE_ROW(GRADE_COLORS + k + 1).z * b);
}
