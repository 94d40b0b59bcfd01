// From the nearest points of a solid flame to the lit colors of its buckets, as JWildfire does it. A key of a bucket is
// as in point_attributes.h, 0 where no point fell. Launched by renderer/flames/solid_pass.py, which defines Camera,
// Light, Material. Buckets are a rectangle (columns, rows) of the picture's grid.
#define LANES 1
#include "common/reproducible_math.h"

#define TWO_PI_F 6.283185307179586f
#define EMPTY_NORMAL 2.0f  // in the normal of a bucket without one

// points = the place in the flame's space of each bucket's nearest point, and its depth in buckets; w of empty ones is
// NOTHING. `camera`: the inverse of the map to (column * depth, row * depth, z), and depth = a + b z.
#define NOTHING -3e38f
KERNEL place_points(GLOBAL const ulong *keys, GLOBAL float4 *points, int columns, int rows, int left, int top,
                    const Camera camera) {
    uint i = thread_index();
    if (i >= (uint)(columns * rows)) return;
    uint depth = (uint)(keys[i] >> 32), low = (uint)keys[i];
    float z = as_float(depth >> 31 != 0u ? depth & 0x7fffffffu : ~depth);
    float column = (float)((int)(i % (uint)columns) + left) + ((float)(low >> 8 & 255u) + 0.5f) * (1.0f / 256.0f);
    float row = (float)((int)(i / (uint)columns) + top) + ((float)(low & 255u) + 0.5f) * (1.0f / 256.0f);
    float w = camera.a + camera.b * z, u = column * w - camera.u, v = row * w - camera.v, t = z - camera.t;
    float4 p =
        make_float4(camera.m00 * u + camera.m01 * v + camera.m02 * t, camera.m10 * u + camera.m11 * v + camera.m12 * t,
                    camera.m20 * u + camera.m21 * v + camera.m22 * t, z * camera.scale);
    points[i] = keys[i] == 0 ? make_float4(0.0f, 0.0f, 0.0f, NOTHING) : p;
}

DEVICE float4 bucket_point(GLOBAL const float4 *points, int columns, int rows, int column, int row) {
    if (column < 0 || column >= columns || row < 0 || row >= rows) return make_float4(0.0f, 0.0f, 0.0f, NOTHING);
    return points[(size_t)row * (size_t)columns + (size_t)column];
}

// The neighbors of a normal's triangles: pairs of (column, row), in JWildfire's order; the first eight that exist
// count.
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
    bool found = count > 0 && length > 1e-30f;
    normals[i] =
        found ? make_float4(nx / length, ny / length, nz / length, 0.0f) : make_float4(EMPTY_NORMAL, 0.0f, 0.0f, 0.0f);
}

DEVICE float jitter(uint *state) {
    *state = *state * 747796405u + 2891336453u;
    return 0.5f - (float)(mixed(*state) >> 8) * (1.0f / 16777216.0f);
}

// occlusion = how much of each bucket's sky its neighbors within a radius of `steps` steps hide (horizon-based, L.
// Bavoil et al. 2008). `left`, `top`: of the rectangle in the grid, so that every rectangle gives the same.
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
            // the tangent in the direction of the place itself, not of the step: so JWildfire has it
            float gx = (float)(column + left) + dx, gy = (float)(row + top) + dy;
            float size = sqrt(gx * gx + gy * gy) + 1e-12f, ux = gx / size, uy = gy / size, t = n.x * ux + n.y * uy;
            float tx = (ux * (n.y * n.y + n.z * n.z) - uy * n.x * n.y),
                  ty = (uy * (n.x * n.x + n.z * n.z) - n.x * ux * n.y);
            float tz = -(uy * n.y * n.z + n.x * ux * n.z), flat = sqrt(tx * tx + ty * ty);
            float tangent = t < 0.0f ? -tz : tz;
            float over = sine_of(horizon) - tangent / sqrt(tangent * tangent + flat * flat + 1e-30f);
            if (over > highest) {
                float part = r / radius;
                highest = over;
                total += 0.5f * over * exponential_of(-part * part * falloff);
            }
        }
    }
    occlusion[i] = total;
}

// blurred = the occlusion after a filter (width, width), times 0.1.
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

DEVICE float diffuse_of(float cosine, float curve) {
    float lifted = 0.5f * cosine + 0.5f;
    return curve < 0.5f ? cosine : curve < 1.5f ? cosine * cosine : curve < 2.5f ? lifted : lifted * lifted;
}

// shaded = the color 0 to 255 that lights and ambience give each bucket's nearest point, and 1; 0 where there is none.
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
    uint low = (uint)keys[i];
    float4 base = palette[low >> 24] * (200.0f / 256.0f / 255.0f);
    float at = (float)(low >> 16 & 255u) * (1.0f / 16.0f), part = at - floor(at);
    int from = min((int)at, material_count - 1), to = from + 1 < material_count ? from + 1 : 0;
    if ((int)at >= material_count) part = 0.0f;
    Material a = materials[from], b = materials[to];
    float keep = 1.0f - part, hidden = occluding * occlusion[i];
    float ambient = fmax(0.0f, keep * a.ambient + part * b.ambient - hidden);
    float diffuse = fmax(0.0f, keep * a.diffuse + part * b.diffuse - hidden * occluding_diffuse);
    float phong = keep * a.phong + part * b.phong, sharpness = keep * a.phong_size + part * b.phong_size;
    float4 gloss =
        make_float4(keep * a.red + part * b.red, keep * a.green + part * b.green, keep * a.blue + part * b.blue, 0.0f);
    float4 color = base * ambient;
    for (int k = 0; k < light_count; k++) {
        Light light = lights[k];
        float cosine = light.x * n.x + light.y * n.y + light.z * n.z;
        if (cosine > 1e-8f) {
            float answer = keep * diffuse_of(cosine, a.curve) + part * diffuse_of(cosine, b.curve);
            float4 tint = make_float4(light.red, light.green, light.blue, 0.0f) + base * (ambient / 3.0f);
            color = color + tint * (answer * diffuse * light.intensity);
        }
        float mirrored = light.gloss * (light.z - 2.0f * cosine * n.z);
        if (phong > 1e-8f && mirrored < 1e-8f) {
            float seen = fmax(-mirrored, 0.0f);
            float answer = fmax(keep * diffuse_of(seen, a.curve) + part * diffuse_of(seen, b.curve), 0.0f);
            float shine = answer > 0.0f ? power_of(answer, sharpness) : 0.0f;
            color = color + gloss * (shine * phong * light.intensity);
        }
    }
    shaded[i] = make_float4(255.0f * color.x, 255.0f * color.y, 255.0f * color.z, 1.0f);
}
