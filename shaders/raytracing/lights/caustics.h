// Caustics of balls: next-event estimation of a light through a ball of smooth glass, by two refractions, or off a
// ball, by one reflection. It is manifold next-event estimation (J. Hanika, M. Droske and L. Fascione 2015) where the
// manifold is known: a ray keeps its distance to the ball's center, so that the points where it meets the ball follow
// from one angle, all solutions are found, and the estimate is unbiased. Where the ball focuses a lamp so much that it
// fills FOCUS of the directions, and for all other paths, BSDF sampling finds the light: of each path the same
// function, is_focused, decides which of the two counts.
//
// A chain lies in the plane of the surface point x, the ball's center and the light's point y; t is its angle of
// incidence at `first`:
//     refraction   x ---> first ~~~> last ---> y     `first` and `last` on the ball, ~~~ inside it
//     reflection   x ---> first = last ---> y
// A path that follows a chain carries it in direction.w, in place of DELTA_PDF: CHAIN - n, where n packs
//     bits 0 to 11    distance_number() of the distance from x to the center, in radii
//     bits 12 to 17   the ball
//     bit 18          CHAIN_REFLECTS: the chain is a reflection
//     bit 19          CHAIN_DONE: the ray has left the ball
// A ball is two rows of the buffer `lights` (renderer/raytracing/lights/caustic_balls.py): center, radius | color,
// index of refraction, 0 for a mirror. Included by raytracing/raytrace.cu with CAUSTICS.
#include "raytracing/path.h"
#include "raytracing/volumes/media.h"
#include "raytracing/volumes/scatter.h"

#define FIRST_BALL_ROW as_int(DIRECTORY.x)
#define BALL_COUNT as_int(DIRECTORY.y)
#define CHAIN -4.0f
#define CHAIN_REFLECTS (1 << 18)
#define CHAIN_DONE (1 << 19)
#define FOCUS 0.5f  // steradians
#define CAUSTIC_PURPOSE 0x20000u  // of volume_stream
#define FAR_AWAY 1e15f  // stands for the distance of a sun, in radii

// A chain between two points outside of a ball: their distances to its center, in radii, and the index of refraction; 0
// for a reflection.
typedef struct {
    float x, y, ior;
} Chain;

DEVICE float arc_sine(float sine) { return angle_of(sine, sqrt(max_nnan(fma(-sine, sine, 1.0f), 0.0f))); }

// Returns the angle at the center that the ray sweeps from one point to the other, for an angle of incidence t.
DEVICE float swept_angle(const Chain k, float t) {
    float sine = sine_of(t), swept = 2.0f * t - arc_sine(sine / k.x) - arc_sine(sine / k.y);
    return k.ior > 0.0f ? swept + PI - 2.0f * arc_sine(sine / k.ior) : swept;
}

// Returns the derivative of swept_angle. It rises from t = 0 on and is 0 at most once, by u^3 + v^3 <= u + v for u and
// v up to 1, the inverse distances.
DEVICE float swept_rate(const Chain k, float t) {
    Pair cs = circle(t);
    float s2 = cs.y * cs.y, rate = 2.0f - cs.x / sqrt(fma(k.x, k.x, -s2)) - cs.x / sqrt(fma(k.y, k.y, -s2));
    return k.ior > 0.0f ? rate - 2.0f * cs.x / sqrt(fma(k.ior, k.ior, -s2)) : rate;
}

// Returns t in low ... high with the given swept angle, which `swept_angle - swept` crosses there once, rising or falling.
DEVICE float solve_chain(const Chain k, float swept, bool rises, float low, float high) {
    float t = 0.5f * (low + high);
    NO_UNROLL
    for (int i = 0; i < 24; i++) {
        float difference = swept_angle(k, t) - swept;
        bool is_low = (difference < 0.0f) == rises;
        low = is_low ? t : low;
        high = is_low ? high : t;
        float next = t - difference / swept_rate(k, t);  // Newton's step, or the middle
        if (!(next > low && next < high)) next = 0.5f * (low + high);
        if (fabs(next - t) < 1e-4f) return next;  // its error is about the square of the step
        t = next;
    }
    return t;
}

// A distance to the center, in radii, as an integer of 12 bits in steps of 1 / 128 of its logarithm; and the inverse.
DEVICE int distance_number(float x) { return clamp((int)(logarithm_of(x) * 128.0f), 0, 4095); }
DEVICE float numbered_distance(int number) { return max_nnan(exponential_of((float)number / 128.0f), 1.0001f); }

// Returns d(solid angle at x) / d(solid angle at the ball's center) of the same piece of the light.
DEVICE float chain_spread(const Chain k, float t) {
    Pair cs = circle(t);
    float sine_x = cs.y / k.x, sine_y = cs.y / k.y, turned = fabs(sine_of(swept_angle(k, t)) * swept_rate(k, t));
    return cs.x * cs.y / (k.x * k.x * turned * sqrt(fma(-sine_x, sine_x, 1.0f) * fma(-sine_y, sine_y, 1.0f)));
}

// True if BSDF sampling, not add_caustic, samples a lamp by a chain. `number` replaces k.x; `scale` is the lamp's over
// chain_spread.
DEVICE bool is_focused(Chain k, int number, float t, float scale) {
    k.x = numbered_distance(number);
    return !(chain_spread(k, t) * scale < FOCUS);
}

// True if the segment between two points is free, without 1 / 10,000 of its length at both ends.
DEVICE bool sees(float3 from, float3 to, float time, GEOMETRY_PARAMS) {
    float3 segment = to - from;
    float distance = sqrt(dot_fma(segment, segment));
    if (!(distance > 0.0f)) return true;
    float4 origin = with_w(madd(segment, 1e-4f, from), time);
    return !scene_any_hit(GEOMETRY_ARGS, origin, segment * (1.0f / distance), distance * 0.9998f);
}

// True if the path is in no medium, for `throughput` and `radiance` of its state.
DEVICE bool outside_media(float4 throughput, float4 radiance) {
    return fabs(throughput.w - 1.0f) < 1e-4f && medium_number(radiance) == 0u;
}

// Returns the cosine, at the center of a spherical lamp, beyond which its surface does not see a ball; below 0.
DEVICE float last_cosine(const Primitive p, float4 ball) {
    float3 to_lamp = xyz(p.v0) - xyz(ball);
    return -min_nnan((ball.w + p.edge2.w) / sqrt(dot_fma(to_lamp, to_lamp)), 1.0f);
}

// Returns the pdf with which add_caustic samples a point of a lamp, per solid angle that the center of the ball sees
// across the ray; 0 for points that it does not sample. `area_pdf`: pdf_per_area of the lamp.
DEVICE float chain_light_pdf(const Primitive p, float3 point, float4 ball, float area_pdf) {
    float3 to_ball = xyz(ball) - point, normal = primitive_normal(p, point);
    if (SPHERES && p.edge2.w > 0.0f) {
        float last = last_cosine(p, ball), width = 1.0f - last;
        float z = dot_fma(normal, normalize_fma(xyz(ball) - xyz(p.v0)));
        bool is_sampled = one_minus_cos_max(xyz(p.v0), p.edge2.w, xyz(ball)) > 0.0f;
        area_pdf *= is_sampled ? 4.0f * max_nnan(z - last, 0.0f) / (width * width) : 0.0f;
    } else if (!(dot_fma(normal, to_ball) > 0.0f))
        return 0.0f;
    return area_pdf * dot_fma(to_ball, to_ball);
}

// A point of a light and its normal, as a ball sees it: `light` from the ball's center.
typedef struct {
    LightSample light;
    float3 point, normal;
} ChainEnd;

#define IS_AREA(end) ((end).light.light_id >= 0)
#define IS_SUN(end) (!((end).light.distance < FLT_MAX))

// Samples a light for the chains by way of a ball. False without one: paths find by chance sun discs, the environment,
// lamps of instances and triangles whose back faces the ball's center.
DEVICE bool sample_chain_end(const LaunchParams params, float4 ball, Sampler sampler, uint dimension,
                             RandomStream *stream, SCENE_PARAMS, ChainEnd *end) {
    float3 center = xyz(ball);
    LightSample *light = &end->light;
    if (!sample_light(params, center, SCENE_ARGS, sampler, dimension, light)) return false;
    end->point = madd(light->direction, IS_SUN(*end) ? 0.0f : light->distance, center);
    if (!IS_AREA(*end)) return light->is_delta && light->pdf > 0.0f;
    if (light->light_id >= INSTANCED_LIGHT) return false;
    Primitive p = primitive_at(primitives, light->light_id);
    float cone = SPHERES ? one_minus_cos_max(xyz(p.v0), p.edge2.w, center) : 0.0f;
    float area_pdf = light->pdf * -dot_fma(primitive_normal(p, end->point), light->direction);
    area_pdf /= light->distance * light->distance;
    if (SPHERES && p.edge2.w > 0.0f) {  // the cosine's pdf rises from 0 at last_cosine
        float u1 = LIGHT_TREE ? next_random(stream) : get_1d(sampler, dimension + 2);  // no light depends on it
        float last = last_cosine(p, ball), z = fma(1.0f - last, sqrt(u1), last);
        float sine = sqrt(max_nnan(fma(-z, z, 1.0f), 0.0f));
        float2 phi = cos_sin_2pi(get_1d(sampler, dimension + 1));
        float3 away = local_to_world(normalize_fma(center - xyz(p.v0)), sine * phi.x, sine * phi.y, z);
        end->point = madd(away, p.edge2.w, xyz(p.v0));
        area_pdf = light->pdf * cone / (2.0f * p.edge2.w * p.edge2.w);
        light->distance = sqrt(dot_fma(end->point - center, end->point - center));
        light->direction = (end->point - center) * (1.0f / light->distance);
    }
    end->normal = primitive_normal(p, end->point);
    light->pdf = chain_light_pdf(p, end->point, ball, area_pdf);
    light->radiance = light->radiance * light_texture_at(params, SCENE_ARGS, *light, center);
    return light->pdf > 0.0f;
}

// Returns the angle of incidence at which the swept angle is least.
DEVICE float turning_angle(const Chain k) {
    float turn = 0.0f, high = 0.5f * PI;
    if (!(swept_rate(k, 0.0f) < 0.0f)) return turn;
    NO_UNROLL
    for (int i = 0; i < 16; i++) {
        float middle = 0.5f * (turn + high), rate = swept_rate(k, middle);
        turn = rate < 0.0f ? middle : turn;
        high = rate < 0.0f ? high : middle;
    }
    return turn;
}

// Adds the light of one chain, of an angle of incidence t, from the surface s by way of a ball to a point of a light. Its
// plane has the axes `axis`, from the ball's center to s, and `up`; `glass` is the ball's second row.
DEVICE void add_chain(const LaunchParams params, int depth, const Material m, const Surface s, const Chain k, float t,
                      float4 ball, float4 glass, float3 axis, float3 up, const ChainEnd end, Path *path, SCENE_PARAMS) {
    float3 center = xyz(ball);
    float radius = ball.w, time = path->origin.w;
    bool refracts = k.ior > 0.0f;
    Pair cs = circle(t);
    float sine_x = cs.y / k.x, cosine_x = sqrt(fma(-sine_x, sine_x, 1.0f));
    float sine_t = glass.w > 0.0f ? cs.y / glass.w : 0.0f, cosine_t = sqrt(fma(-sine_t, sine_t, 1.0f));
    float c1 = fma(cs.x, cosine_x, cs.y * sine_x), s1 = fma(cs.y, cosine_x, -cs.x * sine_x);
    float c = refracts ? fma(2.0f * sine_t, sine_t, -1.0f) : 1.0f, sn = refracts ? 2.0f * sine_t * cosine_t : 0.0f;
    float3 first = madd(axis * c1 + up * s1, radius, center);
    float3 last = madd(axis * (c1 * c - s1 * sn) + up * (s1 * c + c1 * sn), radius, center);
    float scale = 1.0f / end.light.pdf;
    if (IS_AREA(end)) scale *= dot_fma(end.normal, normalize_fma(last - end.point));
    if (!(scale > 0.0f) || (IS_AREA(end) && is_focused(k, distance_number(k.x), t, scale))) return;
    float3 direction = normalize_fma(first - s.point);
    float4 bsdf = eval_bsdf_pdf(m, s, direction), throughput = path->throughput, medium = path->radiance;
    bool crosses = dot_fma(direction, s.normal) < 0.0f;
    if (crosses) cross_surface(m, s, &throughput, &medium);
    if (!(bsdf.w > 0.0f) || !on_geometric_side(s, direction, crosses) || !outside_media(throughput, medium)) return;
    float fresnel = glass.w > 0.0f ? fresnel_dielectric(cs.x, cosine_t, 1.0f / glass.w) : 1.0f;
    float through = 1.0f - fresnel;
    float3 weight = xyz(glass) * (refracts ? xyz(glass) * (through * through) : splat3(fresnel)),
           factor = end.light.radiance;
#if NON_AREA_LIGHTS
    LightSample lamp;  // as the ball's surface sees it
    if (!IS_AREA(end)) {
        if (!sample_non_area_light(params, lights, ~end.light.light_id, last, 0.0f, 0.0f, &lamp)) return;
        factor = lamp.radiance;
    }
#endif
    float3 value = xyz(bsdf) * weight * factor * xyz(throughput);
    value = value * (chain_spread(k, t) * scale * (float)BALL_COUNT);
    float3 from = xyz(offset_ray_origin(s, crosses, time)), away = madd(last - center, 2e-5f, last);
    if (!(largest_of3(value) > 0.0f) || !(largest_of3(value) < FLT_MAX)) return;
    if (!sees(from, first, time, GEOMETRY_ARGS) || !sees(first, last, time, GEOMETRY_ARGS)) return;
    if (IS_SUN(end) ? scene_any_hit(GEOMETRY_ARGS, with_w(away, time), end.light.direction, FLT_MAX)
                    : !sees(away, end.point, time, GEOMETRY_ARGS))
        return;
    path->radiance = add_contribution(path->radiance, clamp_contribution(params, depth + 2, with_w(value, 0.0f)));
}

// Adds the light of the chains from the surface s by way of a ball, chosen at random, to a point of a light.
DEVICE void add_caustic(const LaunchParams params, int depth, Sampler sampler, const Material m, const Surface s,
                        Path *path, SCENE_PARAMS) {
    uint dimension = (uint)(depth + 1) * DIMENSIONS_PER_BOUNCE + 4u;
    RandomStream stream = volume_stream(sampler, dimension, CAUSTIC_PURPOSE);
    int number = min((int)(next_random(&stream) * (float)BALL_COUNT), BALL_COUNT - 1);
    float4 ball = lights[FIRST_BALL_ROW + 2 * number], glass = lights[FIRST_BALL_ROW + 2 * number + 1];
    float3 to_x = s.point - xyz(ball);
    ChainEnd end;
    if (depth + 2 >= params.max_depth || !sample_chain_end(params, ball, sampler, dimension, &stream, SCENE_ARGS, &end))
        return;
    float distance_x = sqrt(dot_fma(to_x, to_x));
    Chain k = {distance_x / ball.w, IS_SUN(end) ? FAR_AWAY : end.light.distance / ball.w, glass.w};
    float3 axis = to_x * (1.0f / distance_x), across = cross_fma(axis, end.light.direction);
    float sine_xy = sqrt(dot_fma(across, across)), cosine_xy = dot_fma(axis, end.light.direction);
    if (!(k.x > 1.0001f) || !(k.y > 1.0001f) || !(sine_xy > 1e-6f)) return;
    float3 side = madd(axis, -cosine_xy, end.light.direction) * (1.0f / sine_xy);
    float swept = angle_of(sine_xy, cosine_xy);
    // Reflected rays sweep angles from 0 to PI - arcs, refracted ones from PI, at t = 0, down to the angle of
    // `turn`, above PI - arcs, and up to `most`.
    bool is_glass = glass.w > 0.0f && depth + 3 < params.max_depth;
    float arcs = arc_sine(1.0f / k.x) + arc_sine(1.0f / k.y), turn = 0.0f, most = 0.0f, end_t = 0.5f * PI;
    if (is_glass) most = 2.0f * (PI - arc_sine(1.0f / glass.w)) - arcs;
    bool is_near = is_glass && swept > PI - arcs;
    if (is_near) {
        turn = turning_angle(k);
        is_near = swept > swept_angle(k, turn);
    }
    NO_UNROLL
    for (int solution = 0; solution < 4; solution++) {  // two on the near side, one on the far side, the reflection
        bool refracts = solution < 3, far_side = solution == 2;
        float target = far_side ? 2.0f * PI - swept : swept;
        if (solution == 0 ? !is_near : refracts ? !(far_side || is_near) || !(target < most) : !(swept < PI - arcs))
            continue;
        k.ior = refracts ? glass.w : 0.0f;
        float t = solve_chain(k, target, solution > 0, solution == 1 ? turn : 0.0f, solution == 0 ? turn : end_t);
        add_chain(params, depth, m, s, k, t, ball, glass, axis, far_side ? -side : side, end, path, SCENE_ARGS);
    }
}

// Returns what direction.w of a path becomes after a bounce: the pdf, or the chain that a path from a surface that
// called add_caustic follows. `before` was direction.w of the ray that hit the surface s.
DEVICE float chain_pdf(const LaunchParams params, GLOBAL const float4 *lights, const Path path, const Surface s,
                       const Hit hit, float before, const BsdfSample out, GEOMETRY_PARAMS) {
    bool enters = before > 0.0f && s.front_face && outside_media(path.throughput, path.radiance);
    bool leaves = before <= CHAIN && !s.front_face && out.transmits;
    if (out.pdf > 0.0f || !(enters || leaves)) return out.pdf;
#if INSTANCES
    if (hit.instance >= 0) return DELTA_PDF;
#endif
    if (hit.primitive >= FIELD_PRIM_BASE) return DELTA_PDF;
    Primitive p = primitive_of(GEOMETRY_ARGS, hit);
    int chain = leaves ? (int)(CHAIN - before) : 0;
    for (int ball = 0; ball < BALL_COUNT; ball++) {
        float4 sphere = lights[FIRST_BALL_ROW + 2 * ball];
        if (p.edge2.w != sphere.w || p.v0.x != sphere.x || p.v0.y != sphere.y || p.v0.z != sphere.z) continue;
        if (leaves) return chain >> 12 == ball ? CHAIN - (float)(chain + CHAIN_DONE) : DELTA_PDF;
        float3 to_x = madd(s.ray_direction, -hit.t, s.point) - xyz(sphere);  // path.origin is already on the ball
        chain = ball << 12 | distance_number(sqrt(dot_fma(to_x, to_x)) / sphere.w);
        return CHAIN - (float)(out.transmits ? chain : chain + CHAIN_REFLECTS + CHAIN_DONE);
    }
    return DELTA_PDF;
}

// True if add_caustic samples the light at the surface s of an emissive primitive that a path has hit; `cosine` there.
DEVICE bool chain_sampled(const LaunchParams params, const Path path, const Surface s, const Hit hit, float cosine,
                          SCENE_PARAMS) {
    int chain = path.direction.w <= CHAIN ? (int)(CHAIN - path.direction.w) : 0;
    if (chain < CHAIN_DONE) return false;
#if INSTANCES
    if (hit.instance >= 0) return false;
#endif
    int row = FIRST_BALL_ROW + 2 * (chain >> 12 & 63);
    float4 sphere = lights[row];
    float3 to_y = s.point - xyz(sphere), across = cross_fma(to_y, xyz(path.direction));
    float distance_y = sqrt(dot_fma(to_y, to_y)), sine = min_nnan(sqrt(dot_fma(across, across)) / sphere.w, 1.0f);
    Chain k = {0.0f, distance_y / sphere.w, chain & CHAIN_REFLECTS ? 0.0f : lights[row + 1].w};
    Primitive p = primitive_of(GEOMETRY_ARGS, hit);
    float probability = hit_light_probability(params, lights, primitives, hit, xyz(sphere), &p);
    float pdf = chain_light_pdf(p, s.point, sphere, pdf_per_area(params, p, materials[s.material], probability));
    return k.y > 1.0001f && pdf > 0.0f && !is_focused(k, chain & 4095, arc_sine(sine), cosine / pdf);
}
