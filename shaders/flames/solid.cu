// From the nearest points of a solid flame to the lit colors of its buckets, as JWildfire does it. Launched by
// renderer/flames/solid_pass.py. A bucket is a cell of the flame's histogram; buckets are a rectangle (columns, rows)
// of the picture's grid, whose first bucket lies at (left, top) of the grid. Formulas and unexplained constants are
// JWildfire's: the same numbers give the same pictures.
//
// The 64-bit key of a bucket describes its nearest point (surface_key() in point_attributes.h); 0: no point fell there.
//   bits 63 to 32  z before the camera, as an integer in the same order: bits of the float, inverted if it is negative,
//                  else with the highest bit set
//   bits 31 to 24  entry of the palette
//   bits 23 to 16  material, in 1/16: 24 is halfway between materials 1 and 2
//   bits 15 to 8, 7 to 0  column and row of the point within the bucket, in 1/256 of the bucket
//
// Structs, float fields, defined by solid_pass.py and solid.py:
//   Camera    m00 to m22: inverse of the camera's matrix; u, v, t: its translation; depth = a + b z; scale: buckets per
//             unit
//   Light     x, y, z: unit vector to the light; intensity; red, green, blue 0 to 1; gloss: sign of the highlight
//   Material  diffuse, ambient, phong: factors; phong_size: exponent of the highlight; red, green, blue of the
//             highlight; curve: 0 to 3, the function of the cosine in diffuse_of()
#define LANES 1
#include "common/reproducible_math.h"

#define TWO_PI_F 6.283185307179586f
#define EMPTY_NORMAL 2.0f  // in the normal of a bucket without one

// points = x, y, z in the flame's space of each bucket's nearest point, and w = its z in buckets; w of empty buckets is
// NOTHING. `camera`: the inverse of the map to (column * depth, row * depth, z).
#define NOTHING -3e38f
KERNEL locate_points(GLOBAL const ulong *keys, GLOBAL float4 *points, int columns, int rows, int left, int top,
                     const Camera camera) {
    uint i = thread_index();
    if (i >= (uint)(columns * rows)) return;
    uint ordered_z = (uint)(keys[i] >> 32), surface = (uint)keys[i];
    float z = as_float(ordered_z >> 31 != 0u ? ordered_z & 0x7fffffffu : ~ordered_z);
    float column = (float)((int)(i % (uint)columns) + left) + ((float)(surface >> 8 & 255u) + 0.5f) * (1.0f / 256.0f);
    float row = (float)((int)(i / (uint)columns) + top) + ((float)(surface & 255u) + 0.5f) * (1.0f / 256.0f);
    float w = camera.a + camera.b * z, u = column * w - camera.u, v = row * w - camera.v, t = z - camera.t;
    float4 p =
        make_float4(camera.m00 * u + camera.m01 * v + camera.m02 * t, camera.m10 * u + camera.m11 * v + camera.m12 * t,
                    camera.m20 * u + camera.m21 * v + camera.m22 * t, z * camera.scale);
    points[i] = keys[i] == 0 ? make_float4(0.0f, 0.0f, 0.0f, NOTHING) : p;
}

// The point of a bucket, empty beyond the rectangle.
DEVICE float4 bucket_point(GLOBAL const float4 *points, int columns, int rows, int column, int row) {
    if (column < 0 || column >= columns || row < 0 || row >= rows) return make_float4(0.0f, 0.0f, 0.0f, NOTHING);
    return points[(size_t)row * (size_t)columns + (size_t)column];
}

// The neighbors that form 16 triangles with a bucket: offsets (column, row) of the second and of the third corner, in
// JWildfire's order. A normal is the mean over the first eight triangles whose corners all have points.
CONSTANT_ARRAY int CORNERS[64] = {
    0,  1,  1,  0,  1,  0,  0,  -1, 0,  -1, -1, 0,  -1, 0,  0,  1,  //
    -1, 1,  1,  1,  1,  1,  1,  -1, 1,  -1, -1, -1, -1, -1, -1, 1,  //
    0,  1,  1,  1,  1,  1,  1,  0,  1,  0,  1,  -1, 1,  -1, 0,  -1,  //
    0,  -1, -1, -1, -1, -1, -1, 0,  -1, 0,  -1, 1,  -1, 1,  0,  1,
};

// normals = the mean normal of the triangles with neighbors (x, y, z, 0), x = EMPTY_NORMAL where there is none.
KERNEL find_normals(GLOBAL const float4 *points, GLOBAL float4 *normals, int columns, int rows) {
    uint i = thread_index();
    if (i >= (uint)(columns * rows)) return;
    int column = (int)(i % (uint)columns), row = (int)(i / (uint)columns), count = 0;
    float4 p = points[i];
    float nx = 0.0f, ny = 0.0f, nz = 0.0f;
    for (int k = 0; k < 16 && count < 8 && p.w > NOTHING; k++) {
        float4 a = bucket_point(points, columns, rows, column + CORNERS[4 * k], row + CORNERS[4 * k + 1]);
        float4 b = bucket_point(points, columns, rows, column + CORNERS[4 * k + 2], row + CORNERS[4 * k + 3]);
        if (!(a.w > NOTHING && b.w > NOTHING)) continue;
        float ax = p.x - a.x, ay = p.y - a.y, az = p.z - a.z, bx = p.x - b.x, by = p.y - b.y, bz = p.z - b.z;
        nx += ay * bz - az * by;
        ny += az * bx - ax * bz;
        nz += ax * by - ay * bx;
        count++;
    }
    float length = sqrt(nx * nx + ny * ny + nz * nz);
    bool exists = count > 0 && length > 1e-30f;
    normals[i] =
        exists ? make_float4(nx / length, ny / length, nz / length, 0.0f) : make_float4(EMPTY_NORMAL, 0.0f, 0.0f, 0.0f);
}

// A random number from -0.5 to 0.5: PCG's linear congruential step, then 24 bits of a hash.
DEVICE float jitter(uint *state) {
    *state = *state * 747796405u + 2891336453u;
    return 0.5f - (float)(mixed(*state) >> 8) * (1.0f / 16777216.0f);
}

// occlusion = how much of each bucket's sky its neighbors hide (horizon-based, L. Bavoil et al. 2008): in each of
// `azimuths` directions, `steps` steps up to `radius` buckets. Random numbers depend on the position in the grid, so
// that every rectangle gives the same. `falloff`: nearer neighbors count more, by exp(-(distance / radius)^2 falloff).
KERNEL find_occlusion(GLOBAL const float4 *points, GLOBAL const float4 *normals, GLOBAL float *occlusion, int columns,
                      int rows, int left, int top, float radius, int steps, int azimuths, float falloff) {
    uint i = thread_index();
    if (i >= (uint)(columns * rows)) return;
    int column = (int)(i % (uint)columns), row = (int)(i / (uint)columns);
    float4 n = normals[i];
    float z0 = points[i].w, total = 0.0f, step = radius / (float)steps, turn = TWO_PI_F / (float)azimuths;
    uint state = mixed((uint)(column + left) * 0x9e3779b9u + mixed((uint)(row + top) + 32851137u));
    float first = 0.25f * turn * jitter(&state);
    for (int k = 0; k < azimuths && n.x < EMPTY_NORMAL; k++) {
        Pair d = circle(first + turn * (float)k);
        float highest = 0.0f;
        for (int l = 1; l <= steps; l++) {
            float r = step * ((float)l + 0.1f * jitter(&state));
            float dx = r * d.x + 0.1f * step * jitter(&state), dy = r * d.y + 0.1f * step * jitter(&state);
            int x = clamp(column + (int)floor(dx + 0.5f), 0, columns - 1);
            int y = clamp(row + (int)floor(dy + 0.5f), 0, rows - 1);
            float horizon = angle_of(fmax(points[(size_t)y * (size_t)columns + (size_t)x].w, -1e30f) - z0, r) + 0.001f;
            // the tangent in the direction from the grid's corner to the neighbor, not of the step: so JWildfire has it
            float gx = (float)(column + left) + dx, gy = (float)(row + top) + dy;
            float size = sqrt(gx * gx + gy * gy) + 1e-12f, ux = gx / size, uy = gy / size, t = n.x * ux + n.y * uy;
            float tx = (ux * (n.y * n.y + n.z * n.z) - uy * n.x * n.y),
                  ty = (uy * (n.x * n.x + n.z * n.z) - n.x * ux * n.y);
            float tz = -(uy * n.y * n.z + n.x * ux * n.z), flat = sqrt(tx * tx + ty * ty);
            float tangent = t < 0.0f ? -tz : tz;
            float over = sine_of(horizon) - tangent / sqrt(tangent * tangent + flat * flat + 1e-30f);
            if (over > highest) {
                float distance = r / radius;  // 0 to 1
                highest = over;
                total += 0.5f * over * exponential_of(-distance * distance * falloff);
            }
        }
    }
    occlusion[i] = total;
}

// blurred = the occlusion after a filter (width, width), times 0.1, JWildfire's scale of occlusion.
KERNEL blur_occlusion(GLOBAL const float *occlusion, GLOBAL float *blurred, GLOBAL const float *filter, int columns,
                      int rows, int width) {
    uint i = thread_index();
    if (i >= (uint)(columns * rows)) return;
    int column = (int)(i % (uint)columns) - width / 2, row = (int)(i / (uint)columns) - width / 2;
    float sum = 0.0f;
    for (int v = max(0, -row); v < width && row + v < rows; v++)
        for (int u = max(0, -column); u < width && column + u < columns; u++)
            sum += occlusion[(size_t)(row + v) * (size_t)columns + (size_t)(column + u)] * filter[v * width + u];
    blurred[i] = 0.1f * sum;
}

// The diffuse reflection at the cosine of incidence, by Material.curve: cos, cos^2, (cos + 1) / 2 or its square
// (DIFFUSE_CURVES in solid.py).
DEVICE float diffuse_of(float cosine, float curve) {
    float lifted = 0.5f * cosine + 0.5f;
    return curve < 0.5f ? cosine : curve < 1.5f ? cosine * cosine : curve < 2.5f ? lifted : lifted * lifted;
}

// shaded = the color 0 to 255 that lights and ambience give each bucket's nearest point, and 1; all 0 in empty buckets.
// `palette` (256): colors 0 to 255; JWildfire plots 200 / 256 of them. Ambient light is reduced by `occluding` times
// the occlusion, diffuse light by that times `occluding_diffuse`. A material number between two integers blends their
// materials, behind the last one the last and the first; from the next integer on it is the last material alone.
KERNEL shade(GLOBAL const ulong *keys, GLOBAL const float4 *normals, GLOBAL const float *occlusion,
             GLOBAL const float4 *palette, GLOBAL const Light *lights, GLOBAL const Material *materials,
             GLOBAL float4 *shaded, int buckets, int light_count, int material_count, float occluding,
             float occluding_diffuse) {
    uint i = thread_index();
    if (i >= (uint)buckets) return;
    float4 n = normals[i];
    if (n.x >= EMPTY_NORMAL) {
        shaded[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        return;
    }
    uint surface = (uint)keys[i];
    float4 base = palette[surface >> 24] * (200.0f / 256.0f / 255.0f);
    float material = (float)(surface >> 16 & 255u) * (1.0f / 16.0f), of_b = material - floor(material);
    int first = min((int)material, material_count - 1), second = first + 1 < material_count ? first + 1 : 0;
    if ((int)material >= material_count) of_b = 0.0f;
    Material a = materials[first], b = materials[second];
    float of_a = 1.0f - of_b, hidden = occluding * occlusion[i];  // weights of materials a and b
    float ambient = fmax(0.0f, of_a * a.ambient + of_b * b.ambient - hidden);
    float diffuse = fmax(0.0f, of_a * a.diffuse + of_b * b.diffuse - hidden * occluding_diffuse);
    float phong = of_a * a.phong + of_b * b.phong, sharpness = of_a * a.phong_size + of_b * b.phong_size;
    float4 gloss =
        make_float4(of_a * a.red + of_b * b.red, of_a * a.green + of_b * b.green, of_a * a.blue + of_b * b.blue, 0.0f);
    float4 color = base * ambient;
    for (int k = 0; k < light_count; k++) {
        Light light = lights[k];
        float cosine = light.x * n.x + light.y * n.y + light.z * n.z;
        if (cosine > 1e-8f) {
            float reflection = of_a * diffuse_of(cosine, a.curve) + of_b * diffuse_of(cosine, b.curve);
            float4 tint = make_float4(light.red, light.green, light.blue, 0.0f) + base * (ambient / 3.0f);
            color = color + tint * (reflection * diffuse * light.intensity);
        }
        float mirrored = light.gloss * (light.z - 2.0f * cosine * n.z);  // z of the mirrored light; the eye is at -z
        if (phong > 1e-8f && mirrored < 1e-8f) {
            float facing = fmax(-mirrored, 0.0f);
            float reflection = fmax(of_a * diffuse_of(facing, a.curve) + of_b * diffuse_of(facing, b.curve), 0.0f);
            float shine = reflection > 0.0f ? power_of(reflection, sharpness) : 0.0f;
            color = color + gloss * (shine * phong * light.intensity);
        }
    }
    shaded[i] = make_float4(255.0f * color.x, 255.0f * color.y, 255.0f * color.z, 1.0f);
}
