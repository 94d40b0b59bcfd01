// Equiangular sampling of the light that point lights scatter towards a ray in media of constant density (C. Kulla and
// M. Fajardo 2012). A free flight (volumes.h) rarely ends near a light, where the inverse square of the distance makes
// the light brightest; equiangular sampling chooses points of the ray in proportion to that inverse square. Multiple
// importance sampling by the balance heuristic combines two strategies: a point by free flight with a light by
// sample_light, and a light by sample_span_light with a point by sample_equiangular. Included by shade_volume.h;
// shade_segment.h draws the samples of the second strategy. A span is the part of a ray, as two distances from its
// origin, that lies in such media. Directions are unit, in world space.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): LIGHT_TREE.
#include "raytracing/lights/lights.h"
#include "raytracing/volumes/volumes.h"

#define MAX_WEIGHED_LIGHTS 16  // with more point lights, each is equally likely
#define SEGMENT_DIMENSION 518u  // first of two dimensions, beyond the dimensions of 62 bounces: never cached
#define POINT_LIGHT_COUNT as_int(DIRECTORY.w)

// A span seen from a point light. `nearest`: distance along the ray from the span's start to the point of the ray
// nearest to the light; `distance` from that point to the light; `angle` in radians that the span subtends at the
// light.
typedef struct {
    float nearest, distance, angle;
} LightView;

// Returns the view of a span from the position `light`.
DEVICE LightView view_span(float3 light, float3 origin, float3 direction, float2 span) {
    float3 to_light = light - madd(direction, span.x, origin);
    LightView view;
    view.nearest = dot_fma(to_light, direction);
    float3 across = madd(direction, -view.nearest, to_light);
    float d = sqrt(dot_fma(across, across));
    d = max_nnan(max_nnan(d, 1e-4f * fabs(view.nearest)), 1e-12f);  // rays through the light
    view.distance = d;
    float length = span.y - span.x;
    view.angle = angle_of(d * length, fma(d, d, -view.nearest * (length - view.nearest)));
    return view;
}

// Returns the pdf, per length along the ray, with which sample_equiangular samples the distance t; 0 outside the span.
DEVICE float equiangular_pdf(const LightView view, float2 span, float t) {
    if (!(t >= span.x && t <= span.y)) return 0.0f;
    float s = t - span.x - view.nearest;
    return view.distance / (view.angle * fma(view.distance, view.distance, s * s));
}

// Samples a distance from the ray's origin within the span, by `u` in [0, 1): seen from the light, the sample is u
// times view.angle away from the span's start, and the law of sines in their triangle gives `offset`, the distance
// from the start.
DEVICE float sample_equiangular(const LightView view, float2 span, float u) {
    float2 cos_sin = cos_sin_2pi(u * view.angle * (0.5f / PI));
    float denominator = fma(view.distance, cos_sin.x, view.nearest * cos_sin.y);
    float offset = cos_sin.y * fma(view.distance, view.distance, view.nearest * view.nearest) / denominator;
    return denominator > 0.0f ? min_nnan(span.x + offset, span.y) : span.y;
}

// Returns the span from the first entry of a ray into a volume of constant density to its last exit before t_max; empty
// if span.y <= span.x.
DEVICE float2 scattering_span(const LaunchParams params, GLOBAL const float4 *lights, float3 origin, float3 direction,
                              float t_max) {
    float2 hull = make_float2(FLT_MAX, 0.0f), span;
    for (int k = 0; k < VOLUME_COUNT; k++) {
        GLOBAL const float4 *volume = lights + FIRST_VOLUME_ROW + 4 * k;
        if (!is_constant_volume(volume) || !volume_span(volume, origin, direction, t_max, &span)) continue;
        hull = make_float2(min_nnan(hull.x, span.x), max_nnan(hull.y, span.y));
    }
    hull.y = min_nnan(hull.y, 1e12f);  // so that no square overflows; only free flights sample farther points
    return hull;
}

// Returns the rows of point light `light` in `lights` (lights/light_rows.h).
DEVICE GLOBAL const float4 *point_light_row(const LaunchParams params, GLOBAL const float4 *lights, int light) {
    return lights + params.non_area_lights + 3 * (params.sun_count + light);
}

// Returns the light's power times the integral of its inverse squared distance over the span: its contribution if
// nothing absorbed light.
DEVICE float span_importance(const LaunchParams params, GLOBAL const float4 *lights, int light, float3 origin,
                             float3 direction, float2 span) {
    GLOBAL const float4 *row = point_light_row(params, lights, light);
    LightView view = view_span(xyz(row[0]), origin, direction, span);
    float power = LIGHT_TREE ? rgb_luminance(row[1]) : row[1].w;
    return power * view.angle / view.distance;
}

// Returns the probability with which sample_span_light chooses the light `light`.
DEVICE float span_light_probability(const LaunchParams params, GLOBAL const float4 *lights, int light, float3 origin,
                                    float3 direction, float2 span) {
    int count = POINT_LIGHT_COUNT;
    if (count > MAX_WEIGHED_LIGHTS) return 1.0f / (float)count;
    float total = 0.0f, chosen = 0.0f;
    for (int k = 0; k < count; k++) {
        float importance = span_importance(params, lights, k, origin, direction, span);
        total += importance;
        if (k == light) chosen = importance;
    }
    return total > 0.0f ? chosen / total : 0.0f;
}

// Chooses a point light for a span by *u in proportion to span_importance, sets *probability, and remaps *u so that it
// is uniform in [0, 1) again. Returns the light's index, or -1 if no light has importance.
DEVICE int sample_span_light(const LaunchParams params, GLOBAL const float4 *lights, float3 origin, float3 direction,
                             float2 span, float *u, float *probability) {
    int count = POINT_LIGHT_COUNT, light = -1;
    if (count > MAX_WEIGHED_LIGHTS) {
        float scaled = *u * (float)count;
        light = min((int)scaled, count - 1);
        *u = min_nnan(scaled - (float)light, 0.9999999f);
        *probability = 1.0f / (float)count;
        return light;
    }
    float importances[MAX_WEIGHED_LIGHTS], total = 0.0f, chosen = 0.0f;
    for (int k = 0; k < count; k++) {
        importances[k] = span_importance(params, lights, k, origin, direction, span);
        total += importances[k];
    }
    float remaining = *u * total;
    for (int k = 0; k < count; k++) {
        if (!(importances[k] > 0.0f)) continue;
        if (light >= 0) remaining -= chosen;
        light = k;
        chosen = importances[k];
        if (remaining < chosen) break;  // rounding may leave no such light: then the last one is chosen
    }
    *u = clamp(remaining / max_nnan(chosen, 1e-30f), 0.0f, 0.9999999f);
    *probability = chosen / total;
    return light;
}

// Returns the pdf, per length, with which a free flight ends at distance t in a volume of this extinction, times the
// probability with which sample_light then chooses the light. Two factors are approximate, because they are not known:
// volumes of varying density do not attenuate, and a light tree chooses as sample_span_light does. Any MIS weights that
// add up to 1 leave the estimate unbiased.
DEVICE float free_flight_pdf(const LaunchParams params, GLOBAL const float4 *lights, int light, float light_probability,
                             float3 origin, float3 direction, float t, float extinction) {
    float depth = 0.0f;
    float2 span;
    for (int k = 0; k < VOLUME_COUNT; k++) {
        GLOBAL const float4 *volume = lights + FIRST_VOLUME_ROW + 4 * k;
        if (is_constant_volume(volume) && volume_span(volume, origin, direction, t, &span))
            depth = fma(volume[0].w, span.y - span.x, depth);
    }
    float probability = LIGHT_TREE ? light_probability : point_light_row(params, lights, light)[1].w;
    return extinction * exponential_of(-depth) * probability;
}

// Returns the MIS weight of next-event estimation of a point light at a collision of free flight, at distance t in
// volume `volume`. `t_max` is the distance of the surface at which the ray would have ended.
DEVICE float mis_weight_free_flight(const LaunchParams params, GLOBAL const float4 *lights, int light, int volume,
                                    float3 origin, float3 direction, float t, float t_max) {
    GLOBAL const float4 *row = lights + FIRST_VOLUME_ROW + 4 * volume;
    if (!is_constant_volume(row)) return 1.0f;
    float2 span = scattering_span(params, lights, origin, direction, t_max);
    float probability = span_light_probability(params, lights, light, origin, direction, span);
    LightView view = view_span(xyz(point_light_row(params, lights, light)[0]), origin, direction, span);
    float pdf = free_flight_pdf(params, lights, light, probability, origin, direction, t, row[0].w);
    float other_pdf = equiangular_pdf(view, span, t) * probability;
    return pdf > 0.0f ? pdf / (pdf + other_pdf) : 0.0f;
}

// Returns the sum over the constant volumes at distance t of scattering coefficient times phase function over pdf, each
// term with its MIS weight. `pdf` is the pdf of the equiangular sample, `cosine` the cosine of the scattering angle.
DEVICE float3 weighted_scattering(const LaunchParams params, GLOBAL const float4 *lights, int light, float probability,
                                  float3 origin, float3 direction, float t, float pdf, float cosine) {
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    float2 span;
    for (int k = 0; k < VOLUME_COUNT; k++) {
        GLOBAL const float4 *volume = lights + FIRST_VOLUME_ROW + 4 * k;
        if (!is_constant_volume(volume) || !volume_span(volume, origin, direction, FLT_MAX, &span)) continue;
        if (!(t >= span.x && t < span.y)) continue;
        float extinction = volume[0].w;
        float other_pdf = free_flight_pdf(params, lights, light, probability, origin, direction, t, extinction);
        float weight = extinction * henyey_greenstein(cosine, volume[2].w) / (pdf + other_pdf);
        sum = madd(xyz(volume[2]), weight, sum);
    }
    return sum;
}
