// What shines: primitives with an emission, lamps (suns, points) and the environment, in one table by power.
//     lights (rows of float4): view.light_count rows of the table: the summed shares of all up to here as bits of 2^32, and
//     what shines: a row of the primitives, or ~ the number of a lamp | from row view.lamps three rows a lamp: its place or direction,
//     and LAMP_POINT, LAMP_ENVIRONMENT or for a sun 1 - the cosine of its radius (0: all its light comes from one direction);
//     its radiance, intensity or irradiance, and its share; its cone (lights.py) | from row view.environment the environment's radiance, a latitude a
//     row, the zenith first, -z in the middle | from row view.cells words: summed shares of the rows of cells, then of each
//     row's cells, of 2^32.
//     Between the table and the lamps are triangles of instances in world space, which the table tells by PLACED_LIGHT + their
//     number; their radius is below 0 where the instance mirrors, so that their edges are exchanged.
#define LAMP_POINT -1.0f
#define LAMP_ENVIRONMENT -2.0f
#define PLACED_LIGHT (1 << 30)
#define OF_WORD 2.3283064365386963e-10f  // 2^-32

// The share of what a path brings that runs into a light by itself, where shadow rays find it with `by_light` per solid angle
// (balance heuristic, E. Veach 1995). `came` is the density of the path's direction, or MIRRORED.
DEVICE float share_of_hit(float came, float by_light) {
    if (LIGHTS == LIGHTS_HIT || !(came > 0.0f) || !(by_light > 0.0f)) return 1.0f;
    return LIGHTS == LIGHTS_AIMED ? 0.0f : came / (came + by_light);
}

DEVICE float luminance_of(float4 colour) { return fma(0.0722f, colour.z, fma(0.7152f, colour.y, 0.2126f * colour.x)); }

// 1 - the cosine of the cone under which a ball is seen, 0 from inside and from too near.
DEVICE float cone_of(float3 centre, float radius, float3 from) {
    float3 way = centre - from;
    float sine2 = radius * radius / dot_fma(way, way);
    return sine2 < 0.999f ? sine2 / (1.0f + sqrt(1.0f - sine2)) : 0.0f;
}

// Density per solid angle with which shadow rays from `from` find a point at distance t on a primitive that shines.
DEVICE float density_of_hit(const View view, const Primitive p, const Material m, float3 from, float t, float cosine) {
    float by_area = luminance_of(m.emission) * view.inverse_light_power;
    float radius = p.edge2.w;
    if (SPHERES && radius > 0.0f) {
        float cone = cone_of(xyz(p.corner), radius, from);
        if (cone > 0.0f) return by_area * 2.0f * radius * radius / cone;  // the ball's share, over the cone's angle
    }
    return by_area * t * t / cosine;
}

#if ENVIRONMENT
// Where the environment's picture shows a direction, each coordinate 0 to 1.
DEVICE float2 environment_place(const View view, float3 direction) {
    float across = fma(atan2(direction.x, -direction.z), 0.5f / PI, 0.5f + view.environment_turn);
    return make_float2(across - floor(across), acos(clamp(direction.y, -1.0f, 1.0f)) * (1.0f / PI));
}

DEVICE float3 environment_at(const View view, GLOBAL const float4 *lights, float3 direction) {
    float2 place = environment_place(view, direction);
    float x = fma(place.x, (float)view.environment_width, -0.5f), y = fma(place.y, (float)view.environment_height, -0.5f);
    float column = floor(x), row = clamp(floor(y), 0.0f, (float)(view.environment_height - 1));
    float u = x - column, v = clamp(y - row, 0.0f, 1.0f);
    int last = view.environment_width - 1, left = column < 0.0f ? last : clamp((int)column, 0, last), right = left < last ? left + 1 : 0;
    int line = clamp((int)row, 0, view.environment_height - 1), upper = view.environment + line * view.environment_width;
    int lower = line + 1 < view.environment_height ? upper + view.environment_width : upper;
    float4 above = lights[upper + left] * (1.0f - u) + lights[upper + right] * u;
    float4 below = lights[lower + left] * (1.0f - u) + lights[lower + right] * u;
    return xyz(above * (1.0f - v) + below * v);
}

// Density per solid angle of a cell's directions, where `sine` is that of the angle from the zenith.
DEVICE float cell_density(const View view, GLOBAL const float4 *lights, int column, int row, float sine) {
    GLOBAL const uint *rows = (GLOBAL const uint *)(lights + view.cells);
    GLOBAL const uint *cells = rows + view.cells_down + 1 + row * (view.cells_across + 1);
    float share = (float)(rows[row + 1] - rows[row]) * OF_WORD * ((float)(cells[column + 1] - cells[column]) * OF_WORD);
    return share * (float)view.cells_across * (float)view.cells_down / (2.0f * PI * PI * larger(sine, 1e-7f)) * view.environment_share;
}

DEVICE float environment_density(const View view, GLOBAL const float4 *lights, float3 direction) {
    float2 place = environment_place(view, direction);
    int column = clamp((int)(place.x * (float)view.cells_across), 0, view.cells_across - 1);
    int row = clamp((int)(place.y * (float)view.cells_down), 0, view.cells_down - 1);
    return cell_density(view, lights, column, row, sqrt(fma(direction.x, direction.x, direction.z * direction.z)));
}

// The last of count entries whose summed share is not above `pick`; *within is where the pick lies in it, 0 to 1.
DEVICE int find_share(GLOBAL const uint *summed, int count, uint pick, float *within) {
    int low = 0, high = count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (summed[middle] <= pick) low = middle;
        else high = middle - 1;
    }
    uint begin = summed[low], width = summed[low + 1] - begin;
    *within = smaller((float)(pick - begin) / larger((float)width, 1.0f), 0.9999999f);
    return low;
}

DEVICE float3 sample_environment(const View view, GLOBAL const float4 *lights, float first, float second, float *density) {
    GLOBAL const uint *rows = (GLOBAL const uint *)(lights + view.cells);
    float x, y;
    int row = find_share(rows, view.cells_down, (uint)(first * 4294967296.0f), &y);
    GLOBAL const uint *cells = rows + view.cells_down + 1 + row * (view.cells_across + 1);
    int column = find_share(cells, view.cells_across, (uint)(second * 4294967296.0f), &x);
    float across = ((float)column + x) / (float)view.cells_across - 0.5f - view.environment_turn;
    float2 around = cos_sin_2pi(across - floor(across)), down = cos_sin_2pi(0.5f * ((float)row + y) / (float)view.cells_down);
    *density = cell_density(view, lights, column, row, down.y);
    return make_float3(down.y * around.y, down.x, -down.y * around.x);
}
#endif

// The sky that no shadow ray aims at.
DEVICE float3 gradient(const View view, float3 direction) {
    float3 horizon = xyz(view.horizon);
    return madd(xyz(view.zenith) - horizon, larger(direction.y, 0.0f), horizon);
}

// The radiance from where no shape is, of a path that came there with density `came`.
DEVICE float3 sky(const View view, GLOBAL const float4 *lights, float3 direction, float came) {
    float3 light = gradient(view, direction);
#if LAMPS
    for (int sun = 0; sun < view.sun_count; sun++) {
        float4 place = lights[view.lamps + 3 * sun], shine = lights[view.lamps + 3 * sun + 1];
        float3 apart = direction - xyz(place);
        if (place.w > 0.0f && dot_fma(apart, apart) <= 2.0f * place.w)
            light = madd(xyz(shine), share_of_hit(came, shine.w / (2.0f * PI * place.w)), light);
    }
#endif
#if ENVIRONMENT
    float by_light = LIGHTS != LIGHTS_HIT && came > 0.0f ? environment_density(view, lights, direction) : 0.0f;
    light = madd(environment_at(view, lights, direction), share_of_hit(came, by_light), light);
#endif
    return light;
}

// Light that a shadow ray may bring: from where, how far, and with which density per solid angle it is picked, or with which
// probability where no other ray could find it.
typedef struct {
    float3 direction, radiance;
    float distance, density;
    bool found_by_chance;
#if TEXTURED
    int primitive;  // that shines, -1 for a lamp, and the weights of its second and third corner
    float u, v;
#endif
} LightSample;

DEVICE bool sample_primitive(const View view, const Primitive p, const Material m, float3 from, float first, float second,
                             LightSample *light) {
    float3 point, normal, centre = xyz(p.corner);
    float radius = p.edge2.w, cone = SPHERES && radius > 0.0f ? cone_of(centre, radius, from) : 0.0f;
    light->radiance = xyz(m.emission);
    light->found_by_chance = true;
    if (SPHERES && cone > 0.0f) {  // by the angle under which the ball is seen
        float3 way = centre - from;
        float short_of = first * cone, sine2 = short_of * (2.0f - short_of), distance2 = dot_fma(way, way);
        float2 around = cos_sin_2pi(second);
        float sine = sqrt(sine2), distance = sqrt(distance2);
        light->direction = normalize_fma(local_to_world(way * (1.0f / distance), sine * around.x, sine * around.y, 1.0f - short_of));
        light->distance = distance * (1.0f - short_of) - sqrt(larger(fma(radius, radius, -distance2 * sine2), 0.0f));
        light->density = luminance_of(m.emission) * view.inverse_light_power * 2.0f * radius * radius / cone;
        return true;
    }
    if (SPHERES && radius > 0.0f) {
        float height = fma(-2.0f, first, 1.0f), level = sqrt(larger(fma(-height, height, 1.0f), 0.0f));
        float2 around = cos_sin_2pi(second);
        normal = make_float3(level * around.x, level * around.y, height);
        point = madd(normal, radius, centre);
    } else {
        float root = sqrt(first);
        normal = normal_of(p, centre);
        point = madd(xyz(p.edge2), root * second, madd(xyz(p.edge1), root * (1.0f - second), centre));
#if TEXTURED
        light->u = root * (1.0f - second);
        light->v = root * second;
#endif
    }
    float3 way = point - from;
    light->distance = sqrt(dot_fma(way, way));
    light->direction = way * (1.0f / light->distance);
    float cosine = -dot_fma(normal, light->direction);
    light->density = density_of_hit(view, p, m, from, light->distance, cosine);
    return cosine > 0.0f && light->distance > 0.0f;
}

#if LAMPS
DEVICE bool sample_lamp(const View view, GLOBAL const float4 *lights, int lamp, float3 from, float first, float second,
                        LightSample *light) {
    float4 place = lights[view.lamps + 3 * lamp], shine = lights[view.lamps + 3 * lamp + 1];
    light->radiance = xyz(shine);
    light->density = shine.w;
    light->found_by_chance = false;
    light->direction = xyz(place);
    light->distance = INFINITE;
#if ENVIRONMENT
    if (place.w == LAMP_ENVIRONMENT) {
        light->direction = sample_environment(view, lights, first, second, &light->density);
        light->radiance = environment_at(view, lights, light->direction);
        light->found_by_chance = true;
        return light->density > 0.0f;
    }
#endif
    if (place.w == LAMP_POINT) {
        float3 way = xyz(place) - from;
        float distance2 = dot_fma(way, way);
        light->distance = sqrt(distance2);
        light->direction = way * (1.0f / light->distance);
        light->density = shine.w * distance2;
        float4 cone = lights[view.lamps + 3 * lamp + 2];
        float part = clamp(cone.w - dot_fma(xyz(cone), light->direction), 0.0f, 1.0f);
        light->radiance = light->radiance * (part * part);
        return distance2 > 0.0f;
    }
    if (place.w > 0.0f) {
        float short_of = first * place.w, sine = sqrt(short_of * (2.0f - short_of));
        float2 around = cos_sin_2pi(second);
        light->direction = normalize_fma(local_to_world(xyz(place), sine * around.x, sine * around.y, 1.0f - short_of));
        light->density = shine.w / (2.0f * PI * place.w);
        light->found_by_chance = true;
    }
    return true;
}
#endif

// A primitive that shines, by what the table tells.
DEVICE Primitive shining_primitive(const View view, GLOBAL const float4 *lights, GLOBAL const float4 *primitives, int what) {
#if PLACED_LIGHTS
    if (what >= PLACED_LIGHT) return primitive_at(lights + view.light_count, what - PLACED_LIGHT);
#endif
    return primitive_at(primitives, what);
}

// A light by its share, and on it a point or direction. Dimensions: two, and a third where the light is one of thousands.
DEVICE bool sample_light(const View view, float3 from, GLOBAL const float4 *lights, GLOBAL const float4 *primitives,
                         GLOBAL const Material *materials, Key key, uint dimension, LightSample *light) {
    uint pick = sample_word(key, dimension);
    float second = sample_at(key, dimension + 1);
    int low = 0, high = view.light_count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (as_uint(lights[middle].x) > pick) high = middle;
        else low = middle + 1;
    }
    uint begin = low > 0 ? as_uint(lights[low - 1].x) : 0u, width = as_uint(lights[low].x) - begin;
    float first;  // what the pick leaves over is as even as the pick
    if (width > (1u << 20)) first = smaller((float)(pick - begin) / (float)width, 0.9999999f);
    else first = sample_at(key, dimension + 2);
    int what = as_int(lights[low].y);
#if TEXTURED
    light->primitive = what;
    light->u = light->v = 0.0f;
#endif
#if LAMPS
    if (what < 0) return sample_lamp(view, lights, ~what, from, first, second, light);
#endif
    Primitive p = shining_primitive(view, lights, primitives, what);
    return sample_primitive(view, p, materials[as_int(p.edge1.w)], from, first, second, light);
}

// What a shaded point asks of the next stage: a shadow ray of length direction.w, and what it brings if nothing is in between;
// it begins brings.w along the way, so that it may leave a surface on the other side than the path.
typedef struct {
    float4 direction, brings;
    bool wanted;
} LightRay;

// The shadow ray of a surface point; `weighted` shares the light with paths that run into it.
DEVICE bool aim_at_light(const View view, const Material m, const Surface s, float3 origin, bool weighted,
                         GLOBAL const float4 *lights, SCENE_TAKEN, GLOBAL const Material *materials, Key key, uint dimension,
                         LightRay *ray) {
    LightSample light;
    if (!sample_light(view, origin, lights, primitives, materials, key, dimension, &light)) return false;
    float4 reflects = evaluate(m, s, light.direction);
    if (!(reflects.w > 0.0f) || !leaves_rightly(s, light.direction, dot_fma(light.direction, s.normal) < 0.0f)) return false;
#if TEXTURED
    if (light.primitive >= 0) {
        Primitive p = shining_primitive(view, lights, primitives, light.primitive);
        bool mirrored = PLACED_LIGHTS && p.edge2.w < 0.0f;
        float u = mirrored ? light.v : light.u, v = mirrored ? light.u : light.v;
        light.radiance = light.radiance * picture_of_light(SCENE_GIVEN, p, u, v);
    }
#endif
    bool shared = weighted && LIGHTS == LIGHTS_SAMPLED && light.found_by_chance;
    float share = 1.0f / (light.density + (shared ? reflects.w : 0.0f));
    float off = dot_fma(origin - s.point, s.normal), cosine = dot_fma(light.direction, s.normal);
    float skip = off * cosine < 0.0f ? -2.5f * off / cosine : 0.0f;
    ray->direction = with_w(light.direction, light.distance < INFINITE ? light.distance * 0.9999f : INFINITE);
    ray->brings = with_w(xyz(reflects) * light.radiance * share, skip);
    return true;
}
