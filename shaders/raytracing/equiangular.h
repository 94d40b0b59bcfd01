// Light that point lights scatter towards a ray in media of constant density. A free flight (volumes.h) rarely ends
// near a light, where the light is brightest by the inverse square of the distance; equiangular sampling (C. Kulla and
// M. Fajardo 2012) takes points of the ray in proportion to that. Both are combined by multiple importance sampling
// with the balance heuristic: a point is one of a free flight and a light of sample_light, or one of the functions
// below. Included by raytracing/raytrace.cu.
#define MAX_WEIGHED_LIGHTS 16  // of more lights each is as likely as the others
#define SEGMENT_DIMENSION 518u  // and the next, of a bounce: beyond those of MAX_DEPTHS bounces, never cached
#define POINT_LIGHT_COUNT as_int(DIRECTORY.w)

// A ray's span as a light sees it. `nearest`: the distance along the ray to the point nearest to the light, less the
// span's start; `distance` of that point to the light; `angle` that the span fills, seen from the light.
typedef struct {
    float nearest, distance, angle;
} LightView;

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

DEVICE float equiangular_pdf(const LightView view, float2 span, float t) {
    if (!(t >= span.x && t <= span.y)) return 0.0f;
    float s = t - span.x - view.nearest;
    return view.distance / (view.angle * fma(view.distance, view.distance, s * s));
}

DEVICE float sample_equiangular(const LightView view, float2 span, float u) {
    float2 turn = cos_sin_2pi(u * view.angle * (0.5f / PI));
    float denominator = fma(view.distance, turn.x, view.nearest * turn.y);
    float offset = turn.y * fma(view.distance, view.distance, view.nearest * view.nearest) / denominator;
    return denominator > 0.0f ? min_nnan(span.x + offset, span.y) : span.y;
}

DEVICE bool is_constant_volume(GLOBAL const float4 *volume) { return as_int(volume[1].w) >> 2 == FIELD_CONSTANT; }

// From where to where a ray is in volumes of constant density; empty if span.y <= span.x.
DEVICE float2 scattering_span(const LaunchParams params, GLOBAL const float4 *lights, float3 origin, float3 direction,
                              float t_max) {
    float2 all = make_float2(FLT_MAX, 0.0f), span;
    for (int k = 0; k < VOLUME_COUNT; k++) {
        GLOBAL const float4 *volume = lights + FIRST_VOLUME_ROW + 4 * k;
        if (!is_constant_volume(volume) || !volume_span(volume, origin, direction, t_max, &span)) continue;
        all = make_float2(min_nnan(all.x, span.x), max_nnan(all.y, span.y));
    }
    all.y = min_nnan(all.y, 1e12f);  // so that no square overflows; beyond are free flights alone
    return all;
}

DEVICE GLOBAL const float4 *point_light_row(const LaunchParams params, GLOBAL const float4 *lights, int light) {
    return lights + params.non_area_lights + 3 * (params.sun_count + light);
}

// What a light brings to a span without extinction: its power times the integral of the inverse square.
DEVICE float span_importance(const LaunchParams params, GLOBAL const float4 *lights, int light, float3 origin,
                             float3 direction, float2 span) {
    GLOBAL const float4 *row = point_light_row(params, lights, light);
    LightView view = view_span(xyz(row[0]), origin, direction, span);
    float power = LIGHT_TREE ? luminance_of(row[1]) : row[1].w;
    return power * view.angle / view.distance;
}

// The probability with which sample_span_light chooses a light.
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

// Chooses a point light for a span; *u is uniform again after. Below 0 if none is important.
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
    float rest = *u * total;
    for (int k = 0; k < count; k++) {
        if (!(importances[k] > 0.0f)) continue;
        if (light >= 0) rest -= chosen;
        light = k;
        chosen = importances[k];
        if (rest < chosen) break;
    }
    *u = clamp(rest / max_nnan(chosen, 1e-30f), 0.0f, 0.9999999f);
    *probability = chosen / total;
    return light;
}

// The pdf with which a free flight ends at distance t in a volume of an extinction and sample_light chooses a point
// light there: but for the transmittance of volumes that are not constant and the choice by a light tree, which are not
// known. Any weights that add up to 1 leave the estimate unbiased.
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

// The MIS weight of next-event estimation of a point light at a collision; `t_max`: where the ray would have ended.
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

// The scattering coefficient times phase function over pdf at distance t, summed over the volumes of constant density,
// each with its MIS weight.
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
