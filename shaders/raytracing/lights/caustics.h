// Caustics of balls: next-event estimation of a light through a ball of smooth glass, by two refractions, or off a
// ball, by one reflection. It is manifold next-event estimation (J. Hanika, M. Droske and L. Fascione 2015) where the
// manifold is known: a ray keeps its distance to the ball's center, so that the points where it meets the ball follow
// from one angle, all solutions are found, and the estimate is unbiased. BSDF sampling finds the same light by chance,
// often where the ball focuses a lamp: chain_weight is the MIS weight of the two (E. Veach 1997).
// shade_hit of raytrace.cu calls add_caustic at every surface that is not specular, chain_pdf where a path goes on, and
// chain_weight_of_hit where a path hits a lamp.
//
// A chain lies in the plane of the surface point x, the ball's center and the light's point y; t is its angle of
// incidence at `first`, the point where the ray from x meets the ball:
//     refraction   x ---> first ~~~> last ---> y     `first` and `last` on the ball, ~~~ inside it
//     reflection   x ---> first = last ---> y
// A path that follows a chain carries it in direction.w, in place of DELTA_PDF: CHAIN - n, where n packs
//     bits 0 to 11    distance_number() of the distance from x to the center, in radii
//     bits 12 to 17   the ball
//     bit 18          CHAIN_REFLECTS: the chain is a reflection
//     bit 19          CHAIN_DONE: the ray has left the ball
//     bits 20 to 23   pdf_number() of the BSDF at x, at most 14: floats hold all integers up to 2^24
// A ball is two rows of the buffer `lights` (renderer/raytracing/lights/caustic_shapes.py): center, radius | color,
// index of refraction, 0 for a mirror. A mesh of glass or of a mirror is two rows too (mesh_caustics.h), and is called
// a ball where the two are treated alike. Included by raytracing/raytrace.cu with CAUSTICS.
#include "raytracing/path.h"
#include "raytracing/volumes/media.h"
#include "raytracing/volumes/scatter.h"

// The words of DIRECTORY (light_rows.h: a row of `lights` that `params` locates, the names of the caller's variables)
// that hold fog and volumes in other scenes: a scene with CAUSTICS has none. Media inside of glass remain (media.h).
#define FIRST_BALL_ROW as_int(DIRECTORY.x)
#define BALL_COUNT as_int(DIRECTORY.y)
#define IS_MESH(row) (CAUSTIC_MESHES && (row).w < 0.0f)  // of a second row (mesh_caustics.h)
#define CHAIN -4.0f  // direction.w from here downwards is a chain; DELTA_PDF is -1
#define CHAIN_REFLECTS (1 << 18)
#define CHAIN_DONE (1 << 19)
#define GLASS_REFLECTS 0.25f  // probability of a reflection off glass, which is dim
// The inverse of the probability with which add_caustic solves a chain of a ball.
#define CHAIN_COUNT(glass, refracts) \
    ((float)BALL_COUNT * ((refracts) || !((glass).w > 0.0f) ? 1.0f : 1.0f / GLASS_REFLECTS))
#define CAUSTIC_PURPOSE 0x20000u  // of volume_stream (volumes/scatter.h)

// A chain between two points outside of a ball: the inverses of their distances to its center, in radii, and of the
// index of refraction; 0 for a reflection.
typedef struct {
    float x, y, n;
} Chain;

// The swept angle of a chain: the angle, seen from the ball's center, from the direction of x to the direction of y,
// less PI for a refraction. A chain reaches y if its swept angle is the angle between the two directions.
typedef struct {
    float cosine, sine;  // of the swept angle
    float rate, cosines;  // rate / cosines is the swept angle's derivative by the angle of incidence
} Swept;

// (cos, sin) of an angle from 0 to PI / 2.
DEVICE Pair quarter_circle(float t) {
    Pair middle = point_near_0(t / PI);  // of t / 2
    return pair(fma(-2.0f * middle.y, middle.y, 1.0f), 2.0f * middle.x * middle.y);
}

// The cosine, 0 or above, of an angle with this sine; and the angle from -PI / 2 to PI / 2.
DEVICE float cosine_by(float sine) { return sqrt(max_nnan(fma(-sine, sine, 1.0f), 0.0f)); }
DEVICE float arc_sine(float sine) { return angle_of(sine, cosine_by(sine)); }

// Returns the swept angle for an angle of incidence t, `t` given as (cos t, sin t). With s = sin t it is
// 2 t - arc_sine(s x) - arc_sine(s y) - 2 arc_sine(s n), computed as a product of complex numbers. From t = 0 on, the
// rate rises and is 0 at most once (by u^3 + v^3 <= u + v for u and v up to 1): so the swept angle first falls, then
// rises, and has every value at most twice.
DEVICE Swept sweep(const Chain k, Pair t) {
    float x = t.y * k.x, y = t.y * k.y, n = t.y * k.n;
    float cosine_x = cosine_by(x), cosine_y = cosine_by(y), cosine_n = cosine_by(n);
    float a = fma(t.x, cosine_n, t.y * n), b = fma(t.y, cosine_n, -t.x * n);
    float c = fma(a, a, -b * b), d = 2.0f * a * b;
    a = fma(cosine_x, cosine_y, -x * y);
    b = fma(x, cosine_y, cosine_x * y);
    Swept swept = {fma(c, a, d * b), fma(d, a, -c * b), 0.0f, cosine_x * cosine_y * cosine_n};
    float sum = fma(cosine_n, fma(k.x, cosine_y, k.y * cosine_x), 2.0f * k.n * cosine_x * cosine_y);
    swept.rate = fma(-t.x, sum, 2.0f * swept.cosines);
    return swept;
}

// Returns the angle of incidence, between `low` and `high`, at which the swept angle is the angle of the unit vector
// `target`. Between these limits the swept angle only rises (`rises`) or only falls, and passes the target once. `t` is
// the first guess. Newton's method, with bisection where it leaves the limits.
DEVICE float solve_chain(const Chain k, Pair target, bool rises, float low, float high, float t) {
    NO_UNROLL
    for (int i = 0; i < 24; i++) {
        Swept swept = sweep(k, quarter_circle(t));
        float sine = fma(swept.sine, target.x, -swept.cosine * target.y);  // of the difference
        float one_plus_cosine = fma(swept.cosine, target.x, fma(swept.sine, target.y, 1.0f));
        bool is_low = (sine < 0.0f) == rises;
        low = is_low ? t : low;
        high = is_low ? high : t;
        // Newton's step, by twice the tangent of half the difference, or the middle
        float step = 2.0f * sine * swept.cosines / (one_plus_cosine * swept.rate);
        if (fabs(step) < 3e-4f) return clamp(t - step, low, high);  // the error is about the step's square
        t = t - step > low && t - step < high ? t - step : 0.5f * (low + high);
    }
    return t;
}

// A distance to the center, in radii, as an integer of 12 bits in steps of 1 / 128 of its logarithm; and the inverse.
DEVICE int distance_number(float x) { return clamp((int)(logarithm_of(x) * 128.0f), 0, 4095); }
DEVICE float inverse_distance(int number) { return min_nnan(exponential_of((float)number / -128.0f), 0.9999f); }

// Returns how a chain spreads light: the solid angle, at x, of the directions by which a small piece of the light is
// reached, over the area of this piece across the chain's last leg, divided by the square of its distance to the
// ball's center. With the chain's angle to the direction of the center, a at x (sin a = s x) and b at y (sin b = s y),
// and the swept angle w, the ratio is sin a da / (sin w cos b dw).
DEVICE float chain_spread(const Chain k, float t) {
    Pair cs = quarter_circle(t);
    Swept swept = sweep(k, cs);
    return cs.x * cs.y * k.x * k.x * cosine_by(cs.y * k.n) / fabs(swept.sine * swept.rate);
}

// The exponent of the BSDF's pdf, a power of two from 2^-8 to 2^6, in bits 20 to 23; and the inverse.
DEVICE int pdf_number(float pdf) { return clamp((int)(as_uint(pdf) >> 23) - 119, 0, 14) << 20; }
DEVICE float numbered_pdf(int number) { return 1.5f * as_float(((uint)(number >> 20) + 119u) << 23); }

// Returns the MIS weight (power heuristic) of a chain whose direction at x has a pdf of 1 / scale.
DEVICE float weight_beside_paths(int number, float scale) {
    float ratio = numbered_pdf(number) * scale;
    return ratio < 1e18f ? 1.0f / fma(ratio, ratio, 1.0f) : 0.0f;
}

// Returns the MIS weight of add_caustic for a chain by way of a ball to a lamp. `number` is pdf_number() and
// distance_number(), which replaces k.x; `scale` the lamp's cosine over its pdf: the pdf of the chain's direction at x
// is 1 / (chain_spread() * scale). Both strategies pass the same numbers, so that their weights sum to 1.
DEVICE float chain_weight(Chain k, int number, float t, float scale) {
    k.x = inverse_distance(number & 4095);
    return weight_beside_paths(number, chain_spread(k, t) * scale);
}

// True if the segment between two points is free, without 1 / 10,000 of its length at both ends.
DEVICE bool sees(float3 from, float3 to, float time, GEOMETRY_PARAMS) {
    float3 segment = to - from;
    float distance = sqrt(dot_fma(segment, segment));
    if (!(distance > 0.0f)) return true;
    float4 origin = with_w(madd(segment, 1e-4f, from), time);
    return !scene_any_hit(GEOMETRY_ARGS, origin, segment * (1.0f / distance), distance * 0.9998f);
}

// True if the path is in no medium (volumes/media.h), for `throughput` and `radiance` of its state.
DEVICE bool outside_media(float4 throughput, float4 radiance) {
    return fabs(throughput.w - 1.0f) < 1e-4f && medium_number(radiance) == 0u;
}

// The end of a chain: a point of a light and its normal; `light` is the light sample as seen from the ball's center.
typedef struct {
    LightSample light;
    float3 point, normal;
} ChainEnd;

#define IS_AREA(end) ((end).light.light_id >= 0)
#define IS_SUN(end) (!((end).light.distance < FLT_MAX))

// A point of a spherical lamp sees the ball only if its direction from the lamp's center has at least this cosine with
// the direction of the ball; the cosine is below 0.
DEVICE float last_cosine(const Primitive p, float4 ball) {
    float3 to_lamp = xyz(p.v0) - xyz(ball);
    return -min_nnan((ball.w + p.edge2.w) / sqrt(dot_fma(to_lamp, to_lamp)), 1.0f);
}

// Returns the ratio of two pdfs of a point of a lamp: sample_chain_end's, whose measure is the lamp's area over the
// square of its distance to the ball's center, over next-event estimation's, per solid angle at the center. The first
// measure has no cosine: add_chain multiplies by the lamp's cosine, which makes its area the area across the last leg.
// 0 or less for points that sample_chain_end does not sample.
DEVICE float chain_end_ratio(const Primitive p, float3 point, float4 ball) {
    float3 to_ball = xyz(ball) - point, normal = primitive_normal(p, point);
    float radius = p.edge2.w, distance2 = dot_fma(to_ball, to_ball), last = last_cosine(p, ball);
    if (!(radius > 0.0f)) return dot_fma(normal, to_ball) / sqrt(distance2);
    float above = dot_fma(normal, normalize_fma(xyz(ball) - xyz(p.v0))) - last, root = radius * (1.0f - last);
    // sample_chain_end: 2 above / (1 - last)^2 is the cosine's pdf, over 2 pi radius^2 the pdf per area; next-event
    // estimation: 1 / (2 pi one_minus_cos_max) per solid angle
    return 2.0f * one_minus_cos_max(xyz(p.v0), radius, xyz(ball)) * above * distance2 / (root * root);
}

// Samples a light, and a point on it, for the chains by way of a ball. end->light.pdf of an area light is multiplied by
// chain_end_ratio. Returns false for lights that chains leave to paths: sun discs, the environment, lamps of instances,
// and triangles whose back faces the ball's center. Every point of a spherical lamp that sees the ball can be sampled,
// because a mirror shows more of the lamp than the ball's center sees.
DEVICE bool sample_chain_end(const LaunchParams params, float4 ball, Sampler sampler, uint dimension,
                             RandomStream *stream, SCENE_PARAMS, ChainEnd *end) {
    LightSample *light = &end->light;
    if (!sample_light(params, xyz(ball), SCENE_ARGS, sampler, dimension, light)) return false;
    end->point = madd(light->direction, IS_SUN(*end) ? 0.0f : light->distance, xyz(ball));
    if (!IS_AREA(*end)) return light->is_delta && light->pdf > 0.0f;
    if (light->light_id >= INSTANCED_LIGHT) return false;
    Primitive p = primitive_at(primitives, light->light_id);
    if (p.edge2.w > 0.0f) {  // the cosine's pdf rises from 0 at last_cosine
        float last = last_cosine(p, ball), cosine = fma(1.0f - last, sqrt(next_random(stream)), last);
        float sine = cosine_by(cosine);
        float2 phi = cos_sin_2pi(get_1d(sampler, dimension + 1));
        float3 axis = normalize_fma(xyz(ball) - xyz(p.v0));
        end->point = madd(local_to_world(axis, sine * phi.x, sine * phi.y, cosine), p.edge2.w, xyz(p.v0));
        light->distance = sqrt(dot_fma(end->point - xyz(ball), end->point - xyz(ball)));
        light->direction = (end->point - xyz(ball)) * (1.0f / light->distance);
    }
    end->normal = primitive_normal(p, end->point);
    light->pdf *= chain_end_ratio(p, end->point, ball);
    light->radiance = light->radiance * light_texture_at(params, SCENE_ARGS, *light, xyz(ball));
    return light->pdf > 0.0f;
}

// Returns what a chain receives from its light at `last`, its last point on the ball: the radiance of an area light,
// the intensity of a point light or the irradiance of a sun.
DEVICE float3 end_radiance(const LaunchParams params, const ChainEnd end, float3 last, GLOBAL const float4 *lights) {
    LightSample light = end.light;
#if NON_AREA_LIGHTS
    if (!IS_AREA(end) && !sample_non_area_light(params, lights, ~light.light_id, last, 0.0f, 0.0f, &light))
        return splat3(0.0f);
#endif
    return light.radiance;
}

// True if nothing is between the last point of a chain and its light.
DEVICE bool sees_end(const ChainEnd end, float4 last, GEOMETRY_PARAMS) {
    return IS_SUN(end) ? !scene_any_hit(GEOMETRY_ARGS, last, end.light.direction, FLT_MAX)
                       : sees(xyz(last), end.point, last.w, GEOMETRY_ARGS);
}

// Returns the angle of incidence at which the swept angle is least, by Newton's method for its cosine: there its
// derivative 2 - cos t (x / cos(arcsin(s x)) + y / ... + 2 n / ...) is 0. If it is not below 0 at t = 0, the swept
// angle rises from there, and the angle is 0.
DEVICE float turning_angle(const Chain k) {
    float cosine = 1.0f;
    if (!(k.x + k.y + 2.0f * k.n > 2.0f)) return 0.0f;
    NO_UNROLL
    for (int i = 0; i < 8; i++) {
        float s2 = fma(-cosine, cosine, 1.0f);
        float x = k.x / sqrt(fma(-k.x * k.x, s2, 1.0f)), y = k.y / sqrt(fma(-k.y * k.y, s2, 1.0f));
        float n = k.n / sqrt(fma(-k.n * k.n, s2, 1.0f)), sum = x + y + 2.0f * n;
        float step = fma(cosine, sum, -2.0f) / fma(-cosine * cosine, x * x * x + y * y * y + 2.0f * n * n * n, sum);
        cosine = clamp(cosine - step, 1e-4f, 1.0f);
        if (fabs(step) < 1e-6f) break;
    }
    return angle_of(cosine_by(cosine), cosine);
}

// Adds the light of one chain to the path's radiance: from the surface s, of material m, by way of a ball to `end`. t
// is the chain's angle of incidence. Its plane has the axes `axis`, from the ball's center to s, and `up`; `ball` and
// `glass` are the ball's two rows. Adds nothing if something blocks the chain.
DEVICE void add_chain(const LaunchParams params, int depth, const Material m, const Surface s, const Chain k, float t,
                      float4 ball, float4 glass, float3 axis, float3 up, const ChainEnd end, Path *path, SCENE_PARAMS) {
    float3 center = xyz(ball);
    float radius = ball.w, time = path->origin.w;
    bool refracts = k.n > 0.0f;
    Pair cs = quarter_circle(t);
    float sine_x = cs.y * k.x, cosine_x = cosine_by(sine_x);
    float sine_t = glass.w > 0.0f ? cs.y / glass.w : 0.0f, cosine_t = cosine_by(sine_t);
    // (c1, s1): the angle at the center from `axis` to `first`, t - arcsin(s x). (c, sn): from `first` to `last`, PI
    // minus twice the angle of refraction; 0 for a reflection.
    float c1 = fma(cs.x, cosine_x, cs.y * sine_x), s1 = fma(cs.y, cosine_x, -cs.x * sine_x);
    float c = refracts ? fma(2.0f * sine_t, sine_t, -1.0f) : 1.0f, sn = refracts ? 2.0f * sine_t * cosine_t : 0.0f;
    float3 first = madd(axis * c1 + up * s1, radius, center);
    float3 last = madd(axis * (c1 * c - s1 * sn) + up * (s1 * c + c1 * sn), radius, center);
    float3 direction = normalize_fma(first - s.point);
    float4 bsdf = eval_bsdf_pdf(m, s, direction), throughput = path->throughput, medium = path->radiance;
    float scale = CHAIN_COUNT(glass, refracts) / end.light.pdf;
    if (IS_AREA(end)) scale *= dot_fma(end.normal, normalize_fma(last - end.point));
    if (IS_AREA(end)) scale *= chain_weight(k, distance_number(1.0f / k.x) + pdf_number(bsdf.w), t, scale);
    bool crosses = dot_fma(direction, s.normal) < 0.0f;
    if (crosses) cross_surface(m, s, &throughput, &medium);
    if (!(scale > 0.0f) || !(bsdf.w > 0.0f) || !on_geometric_side(s, direction, crosses) ||
        !outside_media(throughput, medium))
        return;
    float fresnel = glass.w > 0.0f ? fresnel_dielectric(cs.x, cosine_t, 1.0f / glass.w) : 1.0f;
    // both refractions transmit 1 - fresnel
    float3 weight = xyz(glass) * (refracts ? xyz(glass) * ((1.0f - fresnel) * (1.0f - fresnel)) : splat3(fresnel)),
           factor = end_radiance(params, end, last, lights);
    float3 value = xyz(bsdf) * weight * factor * xyz(throughput) * (chain_spread(k, t) * scale);
    float3 from = xyz(offset_ray_origin(s, crosses, time)), away = madd(last - center, 2e-5f, last);
    if (!(largest_of3(value) > 0.0f) || !(largest_of3(value) < FLT_MAX)) return;
    if (!sees(from, first, time, GEOMETRY_ARGS) || !sees(first, last, time, GEOMETRY_ARGS) ||
        !sees_end(end, with_w(away, time), GEOMETRY_ARGS))
        return;
    path->radiance = add_contribution(path->radiance, clamp_contribution(params, depth + 2, with_w(value, 0.0f)));
}

#if CAUSTIC_MESHES
#include "raytracing/lights/mesh_caustics.h"
#else
#define add_mesh_caustic(params, depth, m, s, ball, mesh, end, stream, path, scene)
#define mesh_weight_of_hit(params, chain, mesh, s, time, scale, scene) 0.0f
#endif

// Adds to the path's radiance the light of all chains from the surface s, by way of one ball chosen at random, to one
// sampled point of a light.
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
    if (IS_MESH(glass)) {
        add_mesh_caustic(params, depth, m, s, ball, glass, end, &stream, path, SCENE_ARGS);
        return;
    }
    float distance_x = sqrt(dot_fma(to_x, to_x));
    Chain k = {ball.w / distance_x, IS_SUN(end) ? 0.0f : ball.w / end.light.distance, 0.0f};
    float3 axis = to_x * (1.0f / distance_x), across = cross_fma(axis, end.light.direction);
    float sine_xy = sqrt(dot_fma(across, across)), cosine_xy = dot_fma(axis, end.light.direction);
    // no chain from a point on the ball or in it; in line with the center, x and y define no plane
    if (!(k.x < 0.9999f) || !(k.y < 0.9999f) || !(sine_xy > 1e-6f)) return;
    float3 side = madd(axis, -cosine_xy, end.light.direction) * (1.0f / sine_xy);
    float swept = angle_of(sine_xy, cosine_xy);
    // The swept angles that chains reach (PI added for refractions). Reflections: 0 to PI - arcs. Refractions: PI at
    // t = 0, from there down to `least`, which is above PI - arcs, at t = `turn`, then up to `most`.
    bool is_glass = glass.w > 0.0f && depth + 3 < params.max_depth;
    float arcs = arc_sine(k.x) + arc_sine(k.y), turn = 0.0f, least = PI, most = 0.0f, end_t = 0.5f * PI;
    if (is_glass) {
        k.n = 1.0f / glass.w;
        most = 2.0f * (PI - arc_sine(k.n)) - arcs;
        if (swept > PI - arcs || 2.0f * PI - swept < most) {
            turn = turning_angle(k);
            Swept at_turn = sweep(k, quarter_circle(turn));
            least = PI + angle_of(at_turn.sine, at_turn.cosine);
        }
    }
    //     solution                      target        t             swept angle at these two t
    //     0  refraction below `turn`    swept         turn, 0       least, PI
    //     1  refraction above `turn`    swept         turn, end_t   least, most
    //     2  around the far side        2 PI - swept  turn, end_t   least, most
    //     3  reflection                 swept         0, end_t      0, PI - arcs
    NO_UNROLL
    for (int solution = 0; solution < 4; solution++) {
        bool refracts = solution < 3, far_side = solution == 2;
        float target = far_side ? 2.0f * PI - swept : swept, low = solution == 0 || !refracts ? 0.0f : turn;
        float first = refracts ? least : 0.0f, last = solution == 0 ? PI : refracts ? most : PI - arcs;
        if (!refracts && glass.w > 0.0f && next_random(&stream) >= GLASS_REFLECTS) continue;
        if (refracts && !is_glass || !(target > first && target < last)) continue;
        float high = solution == 0 ? turn : end_t, fraction = (target - first) / (last - first);
        // near `turn` the swept angle is a parabola: the first guess is a root
        if (refracts && turn > 0.0f) fraction = solution == 0 ? 1.0f - sqrt(fraction) : sqrt(fraction);
        k.n = refracts ? 1.0f / glass.w : 0.0f;
        Pair aim = {refracts ? -cosine_xy : cosine_xy, refracts && !far_side ? -sine_xy : sine_xy};
        float t = solve_chain(k, aim, solution > 0, low, high, fma(fraction, high - low, low));
        add_chain(params, depth, m, s, k, t, ball, glass, axis, far_side ? -side : side, end, path, SCENE_ARGS);
    }
}

// Returns what direction.w of a path becomes after a bounce at the surface s: a chain (see the top of the file) if the
// path enters, leaves or is reflected by a ball, after a surface that called add_caustic; else the pdf. `before` was
// direction.w of the ray that hit s.
DEVICE float chain_pdf(const LaunchParams params, GLOBAL const float4 *lights, const Path path, const Surface s,
                       const Hit hit, float before, const BsdfSample out, GEOMETRY_PARAMS) {
    // before > 0: a surface with a pdf, not the camera or a delta lobe, sent the ray, and so called add_caustic
    bool enters = before > 0.0f && s.front_face && outside_media(path.throughput, path.radiance);
    bool leaves = before <= CHAIN && !s.front_face && out.transmits;
    if (out.pdf > 0.0f || !(enters || leaves)) return out.pdf;
    if (INSTANCE_OF(hit) >= 0 || hit.primitive >= FIELD_PRIM_BASE) return DELTA_PDF;
    Primitive p = primitive_of(GEOMETRY_ARGS, hit);
    int chain = leaves ? (int)(CHAIN - before) : 0;
    for (int ball = 0; ball < BALL_COUNT; ball++) {
        float4 sphere = lights[FIRST_BALL_ROW + 2 * ball], glass = lights[FIRST_BALL_ROW + 2 * ball + 1];
        if (IS_MESH(glass)) {
            if (as_int(glass.x) != s.material || p.edge2.w > 0.0f) continue;
        } else if (p.edge2.w != sphere.w || p.v0.x != sphere.x || p.v0.y != sphere.y || p.v0.z != sphere.z)
            continue;
        if (leaves) return (chain >> 12 & 63) == ball ? CHAIN - (float)(chain + CHAIN_DONE) : DELTA_PDF;
        float3 to_x = madd(s.ray_direction, -hit.t, s.point) - xyz(sphere);  // path.origin is already on the ball
        chain = pdf_number(before) | ball << 12 | distance_number(sqrt(dot_fma(to_x, to_x)) / sphere.w);
        return CHAIN - (float)(out.transmits ? chain : chain + CHAIN_REFLECTS + CHAIN_DONE);
    }
    return DELTA_PDF;
}

// Returns the MIS weight of add_caustic for a lamp that a path has hit at s by following a chain; the caller gives the
// path the rest of 1. `cosine` is the cosine of the ray at s. 0 where add_caustic does not sample that light.
DEVICE float chain_weight_of_hit(const LaunchParams params, const Path path, const Surface s, const Hit hit,
                                 float cosine, SCENE_PARAMS) {
    int chain = path.direction.w <= CHAIN ? (int)(CHAIN - path.direction.w) : 0;
    if (!(chain & CHAIN_DONE) || INSTANCE_OF(hit) >= 0) return 0.0f;
    int row = FIRST_BALL_ROW + 2 * (chain >> 12 & 63);
    float4 sphere = lights[row], glass = lights[row + 1];
    float3 to_y = s.point - xyz(sphere), across = cross_fma(to_y, xyz(path.direction));
    // `sine`: of the angle at which the ray left the ball, by its distance from the center; on a ball it is the angle
    // of incidence t, too
    float distance_y = sqrt(dot_fma(to_y, to_y)), sine = min_nnan(sqrt(dot_fma(across, across)) / sphere.w, 1.0f);
    bool refracts = !(chain & CHAIN_REFLECTS);
    Chain k = {0.0f, sphere.w / distance_y, refracts ? 1.0f / glass.w : 0.0f};
    Primitive p = primitive_of(GEOMETRY_ARGS, hit);
    float probability = hit_light_probability(params, lights, primitives, hit, xyz(sphere), &p);
    float pdf = chain_end_ratio(p, s.point, sphere),
          from_center = fabs(dot_fma(geometric_normal(s), to_y)) / distance_y;
    pdf *= area_light_pdf(params, p, materials[s.material], probability, xyz(sphere), distance_y, from_center);
    if (!(pdf > 0.0f)) return 0.0f;
    if (IS_MESH(glass)) {
        float scale = cosine * distance_y * distance_y / pdf;
        return mesh_weight_of_hit(params, chain, glass, s, path.origin.w, scale, SCENE_ARGS);
    }
    if (!(k.y < 0.9999f)) return 0.0f;
    return chain_weight(k, chain, arc_sine(sine), cosine * CHAIN_COUNT(glass, refracts) / pdf);
}
