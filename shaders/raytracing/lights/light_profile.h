// Photometric profiles of point lights: luminous intensity in candela by direction, from IES files
// (renderer/formats/ies.py), interpolated bilinearly in degrees. Used by lights.h. From row FIRST_PROFILE_ROW of the
// buffer `lights` on, a profile is 3 rows of float4, whose w are ints:
//     direction of vertical angle 0, first row of the data
//     direction of horizontal angle 0, number of vertical angles
//     direction of horizontal angle 90, number of horizontal angles
// The data are floats: the vertical angles; the horizontal angles, from 0 to 360; the candela, all vertical angles of
// the first horizontal angle, then of the next.
#include "common/reproducible_math.h"
#include "raytracing/lights/light_rows.h"

// Returns the index i of the interval angles[i] ... angles[i + 1] that holds `angle`, of `count` increasing angles.
DEVICE int angle_interval(GLOBAL const float *angles, int count, float angle) {
    int low = 0, high = count - 2;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (angles[middle] <= angle)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// Returns the candela of profile number `profile` towards a unit world-space direction, away from the light; 0 beyond
// the file's vertical angles.
DEVICE float profile_candela(const LaunchParams params, GLOBAL const float4 *lights, int profile, float3 direction) {
    GLOBAL const float4 *record = lights + FIRST_PROFILE_ROW + 3 * profile;
    float4 down = record[0], first = record[1], second = record[2];
    int columns = as_int(first.w), rows = as_int(second.w);
    GLOBAL const float *vertical = (GLOBAL const float *)(lights + as_int(down.w));
    GLOBAL const float *horizontal = vertical + columns, *candela = horizontal + rows;
    float x = dot_fma(direction, xyz(first)), y = dot_fma(direction, xyz(second));
    float theta = angle_of(sqrt(fma(x, x, y * y)), dot_fma(direction, xyz(down))) * (180.0f / PI);
    float phi = angle_of(y, x) * (180.0f / PI);
    phi = clamp(phi < 0.0f ? phi + 360.0f : phi, 0.0f, 360.0f);
    theta = clamp(theta, 0.0f, 180.0f);
    if (theta < vertical[0] - 1e-3f || theta > vertical[columns - 1] + 1e-3f) return 0.0f;
    int i = angle_interval(vertical, columns, theta), j = angle_interval(horizontal, rows, phi);
    float u = clamp((theta - vertical[i]) / (vertical[i + 1] - vertical[i]), 0.0f, 1.0f);
    float v = clamp((phi - horizontal[j]) / (horizontal[j + 1] - horizontal[j]), 0.0f, 1.0f);
    GLOBAL const float *below = candela + j * columns + i, *above = below + columns;
    float low = fma(u, below[1] - below[0], below[0]), high = fma(u, above[1] - above[0], above[0]);
    return fma(v, high - low, low);
}
