// Photometric profiles of point lights (renderer/formats/ies.py): candela by direction, bilinear in degrees. From
// FIRST_PROFILE_ROW, 3 rows of float4 a light: direction of vertical angle 0, first row of the data | that of
// horizontal angle 0, number of vertical angles | that of horizontal angle 90, number of horizontal angles (words).
// Data: vertical angles, horizontal angles from 0 to 360, then the candela, the vertical angles of each horizontal one
// together. The text before includes common/reproducible_math.h.

// The interval of `count` increasing angles that holds an angle from the first to the last.
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

// The candela towards a unit direction; 0 beyond the vertical angles of the file.
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
