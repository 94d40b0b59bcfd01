// Eight neighbours of a tile whose paths have hit diffuse triangles, shaded at once, a path a number of each register: shade_path
// of raytracing/raytrace.cu for them, with the same roundings and so the same bits. A light that is no triangle, or one of thousands, is
// aimed at one path after the other.
#include "raytracing/path_packet.h"

#define QUARTER(rows, k) rows[k].v8[begin >> 3]

typedef struct {
    float8 x, y, z;
} Points8;

DEVICE Points8 points8(float8 x, float8 y, float8 z) {
    Points8 p = {x, y, z};
    return p;
}

// All ones in the lanes whose bit is set.
DEVICE int8 lanes_of(uint bits) { return ((int8)((int)bits) & (int8)(1, 2, 4, 8, 16, 32, 64, 128)) != 0; }

// The functions of bvh/geometry.h and raytracing/lights.h of the same names.
DEVICE Points8 minus8(Points8 a, Points8 b) { return points8(a.x - b.x, a.y - b.y, a.z - b.z); }

DEVICE Points8 times8(Points8 a, float8 t) { return points8(a.x * t, a.y * t, a.z * t); }

DEVICE Points8 along8(Points8 a, Points8 b, float8 t) { return points8(fma(b.x, t, a.x), fma(b.y, t, a.y), fma(b.z, t, a.z)); }

DEVICE float8 dot8(Points8 a, Points8 b) { return fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)); }

DEVICE Points8 cross8(Points8 a, Points8 b) {
    return points8(fma(a.y, b.z, -(a.z * b.y)), fma(a.z, b.x, -(a.x * b.z)), fma(a.x, b.y, -(a.y * b.x)));
}

DEVICE Points8 unit8(Points8 a) { return times8(a, 1.0f / sqrt(dot8(a, a))); }

DEVICE float8 off_axis8(float8 p, float8 n) {
    int8 steps = convert_int8(256.0f * n);
    return fabs(p) < 1.0f / 32 ? fma((float8)(1.0f / 65536), n, p) : as_float8(as_int8(p) + (p < 0.0f ? -steps : steps));
}

DEVICE Points8 from_frame8(Points8 n, float8 x, float8 y, float8 z) {
    float8 s = n.z < 0.0f ? (float8)(-1.0f) : (float8)(1.0f), one = (float8)(1.0f);
    float8 a = -1.0f / (s + n.z), b = n.x * n.y * a;
    Points8 first = points8(fma(s * n.x * n.x, a, one), s * b, -s * n.x), second = points8(b, fma(n.y * n.y, a, s), -n.y);
    return along8(along8(times8(first, x), second, y), n, z);
}

DEVICE void turn8(float8 x, float8 *cosine, float8 *sine) {
    float8 eighths = floor(x * 8.0f);
    int8 octant = convert_int8(eighths);
    float8 r = fma(eighths + convert_float8(octant & 1), (float8)(-0.125f), x) * 6.283185307f, r2 = r * r, one = (float8)(1.0f);
    float8 s = r * fma(r2, fma(r2, fma(r2, (float8)(-1.9841270e-4f), (float8)(8.3333333e-3f)), (float8)(-1.6666667e-1f)), one);
    float8 c = fma(r2, fma(r2, fma(r2, fma(r2, (float8)(2.4801587e-5f), (float8)(-1.3888889e-3f)), (float8)(4.1666667e-2f)), (float8)(-0.5f)), one);
    int8 quarter = (octant + 1) >> 1 & 3, odd = (quarter & 1) != 0;
    float8 level = odd ? s : c, upright = odd ? c : s;
    *cosine = (quarter == 1) | (quarter == 2) ? -level : level;
    *sine = quarter >= 2 ? -upright : upright;
}

DEVICE float8 luminance8(Points8 c) { return fma((float8)(0.0722f), c.z, fma((float8)(0.7152f), c.y, 0.2126f * c.x)); }

// Column `column` of eight rows of float4, each `stride` long, as four vectors.
DEVICE float8 columns8(GLOBAL const float4 *rows, int stride, int column, int8 at, Points8 *columns) {
#define ROW(i) rows[stride * at.s##i + column]
    float8 a = (float8)(ROW(0), ROW(4)), b = (float8)(ROW(1), ROW(5)), c = (float8)(ROW(2), ROW(6)), d = (float8)(ROW(3), ROW(7));
#undef ROW
    float8 ab = (float8)(a.s0, b.s0, a.s1, b.s1, a.s4, b.s4, a.s5, b.s5), cd = (float8)(c.s0, d.s0, c.s1, d.s1, c.s4, d.s4, c.s5, d.s5);
    float8 ef = (float8)(a.s2, b.s2, a.s3, b.s3, a.s6, b.s6, a.s7, b.s7), gh = (float8)(c.s2, d.s2, c.s3, d.s3, c.s6, d.s6, c.s7, d.s7);
    columns->x = (float8)(ab.s01, cd.s01, ab.s45, cd.s45);
    columns->y = (float8)(ab.s23, cd.s23, ab.s67, cd.s67);
    columns->z = (float8)(ef.s01, gh.s01, ef.s45, gh.s45);
    return (float8)(ef.s23, gh.s23, ef.s67, gh.s67);
}

typedef struct {
    Points8 corner, edge1, edge2;
    float8 radius;
    int8 material;
} Triangles8;

DEVICE Triangles8 triangles8(GLOBAL const float4 *primitives, int8 rows) {
    Triangles8 t;
    columns8(primitives, 3, 0, rows, &t.corner);
    t.material = as_int8(columns8(primitives, 3, 1, rows, &t.edge1));
    t.radius = columns8(primitives, 3, 2, rows, &t.edge2);
    return t;
}

#define ROWS_OF_A_MATERIAL (int)(sizeof(Material) / 16)

// What the paths have hit, how it reflects, and where they go on.
typedef struct {
    Points8 point, normal, colour, origin;
    int8 front, material;
} Even8;

// sample_light and aim_at_light for the members whose light is a triangle; the others are left in `others`.
DEVICE uint aim_diffuse(const View view, Tile *tile, uint begin, uint members, const Even8 *s, GLOBAL const float4 *primitives,
                        GLOBAL const Material *materials, GLOBAL const float4 *lights, uint *others) {
    const float *numbers = tile->numbers + begin;
    uint8 pick = as_uint8(vload8(0, numbers + DEALT * DEALT_NUMBERS));
    int8 low = (int8)(0), high = (int8)(view.light_count - 1);
    Points8 entry;
    while (bits_of8(low < high)) {
        int8 middle = (low + high) / 2;
        columns8(lights, 1, 0, middle, &entry);
        int8 above = as_uint8(entry.x) > pick, search = low < high;
        high = search & above ? middle : high;
        low = search & ~above ? middle + 1 : low;
    }
    columns8(lights, 1, 0, low, &entry);
    uint8 share = as_uint8(entry.x);
    int8 what = as_int8(entry.y);
    columns8(lights, 1, 0, low > 0 ? low - 1 : low, &entry);
    uint8 first_bits = low > 0 ? as_uint8(entry.x) : (uint8)(0), width = share - first_bits;
    float8 first = convert_float8(pick - first_bits) / convert_float8(width), second = vload8(0, numbers + DEALT * 5);
    first = smaller(first, (float8)(0.9999999f));
    Triangles8 p = triangles8(primitives, what < 0 ? (int8)(0) : what);
    *others = members & ~bits_of8((width > (1u << 20)) & (what >= 0) & (p.radius == 0.0f));
    float8 root = sqrt(first);
    Points8 normal = unit8(cross8(p.edge1, p.edge2));
    Points8 point = along8(along8(p.corner, p.edge1, root * (1.0f - second)), p.edge2, root * second), shines;
    Points8 way = minus8(point, s->origin);
    float8 distance = sqrt(dot8(way, way));
    Points8 direction = times8(way, 1.0f / distance);
    float8 cosine = -dot8(normal, direction);
    columns8((GLOBAL const float4 *)materials, ROWS_OF_A_MATERIAL, 1, p.material, &shines);
    float8 density = luminance8(shines) * view.inverse_light_power * distance * distance / cosine;
    float8 reflects = larger(dot8(s->normal, direction), (float8)(0.0f)) * (1.0f / PI);
    uint lit = members & ~*others & bits_of8((cosine > 0.0f) & (distance > 0.0f) & (reflects > 0.0f));
    float8 weight = 1.0f / (density + (LIGHTS == LIGHTS_SAMPLED ? reflects : (float8)(0.0f)));
    QUARTER(tile->shadows.direction, 0) = direction.x;
    QUARTER(tile->shadows.direction, 1) = direction.y;
    QUARTER(tile->shadows.direction, 2) = direction.z;
    tile->shadows.t.v8[begin >> 3] = distance < INFINITE ? distance * 0.9999f : (float8)(INFINITE);
    QUARTER(tile->shadows.origin, 0) = s->origin.x;
    QUARTER(tile->shadows.origin, 1) = s->origin.y;
    QUARTER(tile->shadows.origin, 2) = s->origin.z;
    QUARTER(tile->brings, 0) = QUARTER(tile->throughput, 0) * (s->colour.x * reflects * shines.x * weight);
    QUARTER(tile->brings, 1) = QUARTER(tile->throughput, 1) * (s->colour.y * reflects * shines.y * weight);
    QUARTER(tile->brings, 2) = QUARTER(tile->throughput, 2) * (s->colour.z * reflects * shines.z * weight);
    return lit;
}

DEVICE float number8(float8 x, uint k) { return ((const float *)&x)[k]; }

DEVICE float3 point8(Points8 p, uint k) { return make_float3(number8(p.x, k), number8(p.y, k), number8(p.z, k)); }

// aim_at_light for one of the paths.
DEVICE_CALLED bool aim_from(const View view, int depth, Tile *tile, uint begin, uint k, const Even8 *s, SCENE_TAKEN,
                            GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    uint j = begin + k;
    Surface surface;
    surface.point = point8(s->point, k);
    surface.normal = point8(s->normal, k);
    surface.incoming = packet_direction(&tile->rays, j);
    surface.front = ((const int *)&s->front)[k] != 0;
    surface.material = ((const int *)&s->material)[k];
    surface.aimed = true;
    LightRay light;
    float3 origin = point8(s->origin, k);
    if (!aim_at_light(view, materials[surface.material], surface, origin, true, lights, SCENE_GIVEN, materials, dealt_key(tile, j),
                      (uint)(depth + 1) * DIMENSIONS + 4u, &light)) return false;
    light.brings = with_w(xyz(path_of(tile, j).throughput) * xyz(light.brings), light.brings.w);
    put_shadow(tile, j, with_w(origin, 0.0f), light);
    return true;
}

// Shades those of the `members`, a bit each, that have hit diffuse triangles, and leaves these in `members`; those that go on come
// back, and in `lit` those that ask for light.
DEVICE uint shade_diffuse(const View view, int depth, Tile *tile, uint begin, uint *members, uint *lit, SCENE_TAKEN,
                          GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    Packet *rays = &tile->rays;
    const float *numbers = tile->numbers + begin;
    int8 row = rays->prim_index.v8[begin >> 3];
    *members &= bits_of8(row >= 0);
    if (!*members) return 0;
    row = lanes_of(*members) ? row : 0;  // paths that have ended hold anything: the first primitive stands in
    Triangles8 p = triangles8(primitives, row);
    Even8 s;
    s.material = p.material;
    float8 even = columns8((GLOBAL const float4 *)materials, ROWS_OF_A_MATERIAL, 0, p.material, &s.colour);
    *members &= bits_of8((even > 0.0f) & (p.radius == 0.0f));
    if (!*members) return 0;
    Points8 came = points8(QUARTER(rays->direction, 0), QUARTER(rays->direction, 1), QUARTER(rays->direction, 2));
    s.normal = unit8(cross8(p.edge1, p.edge2));
    s.point = along8(along8(p.corner, p.edge1, rays->u.v8[begin >> 3]), p.edge2, rays->v.v8[begin >> 3]);
    s.front = dot8(s.normal, came) < 0.0f;
    s.normal.x = s.front ? s.normal.x : -s.normal.x;
    s.normal.y = s.front ? s.normal.y : -s.normal.y;
    s.normal.z = s.front ? s.normal.z : -s.normal.z;
    s.origin.x = off_axis8(s.point.x, s.normal.x);
    s.origin.y = off_axis8(s.point.y, s.normal.y);
    s.origin.z = off_axis8(s.point.z, s.normal.z);
    bool last = depth + 1 >= view.depth;
    if (LIGHTS != LIGHTS_HIT && view.light_count > 0 && !last) {
        uint others;
        *lit = aim_diffuse(view, tile, begin, *members, &s, primitives, materials, lights, &others);
        for (; others; others &= others - 1u)
            if (aim_from(view, depth, tile, begin, lowest_bit(others), &s, SCENE_GIVEN, materials, lights))
                *lit |= 1u << lowest_bit(others);
    }
    if (last) return 0;
    float8 first = vload8(0, numbers), height = sqrt(1.0f - first), radius = sqrt(first), x, y;
    turn8(vload8(0, numbers + DEALT), &x, &y);
    Points8 direction = unit8(from_frame8(s.normal, radius * x, radius * y, height));
    Points8 t = points8(QUARTER(tile->throughput, 0) * s.colour.x, QUARTER(tile->throughput, 1) * s.colour.y,
                        QUARTER(tile->throughput, 2) * s.colour.z);
    uint goes_on = *members;
    if (depth + 1 >= view.roulette) {
        float8 lives = clamp(larger(larger(t.x, t.y), t.z), (float8)(0.05f), (float8)(1.0f));
        goes_on &= bits_of8(vload8(0, numbers + 3 * DEALT) < lives);
        t = times8(t, 1.0f / lives);
    }
    int8 mask = lanes_of(goes_on);
#define PUT(rows, value) rows.v8[begin >> 3] = mask ? value : rows.v8[begin >> 3]
    PUT(rays->origin[0], s.origin.x);
    PUT(rays->origin[1], s.origin.y);
    PUT(rays->origin[2], s.origin.z);
    PUT(rays->direction[0], direction.x);
    PUT(rays->direction[1], direction.y);
    PUT(rays->direction[2], direction.z);
    PUT(rays->t, (float8)(INFINITE));
    PUT(tile->came, height * (1.0f / PI));
    PUT(tile->throughput[0], t.x);
    PUT(tile->throughput[1], t.y);
    PUT(tile->throughput[2], t.z);
#undef PUT
    return goes_on;
}
