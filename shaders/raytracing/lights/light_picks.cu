// The lights that next-event estimation picks at one pixel: for the first surface of each of the pixel's samples, the
// light sample that the picture takes there, with the same random numbers. renderer/raytracing/lights/light_picks.py
// launches it for its report. Compiled after raytracing/raytrace.cu, with LIGHT_PICKS. Each sample writes four rows of
// float4 to `picks`:
//     light id, selection probability, pdf of the light sample (LightSample in lights.h), outcome (PICK_...)
//     direction to the point on the light, distance
//     contribution to the pixel, 0 if the shadow ray is blocked
//     surface point, in world space
// Macros of other files: LIGHT_TREE_ID (raytracing/lights/light_rows.h); DIMENSIONS_PER_BOUNCE (raytracing/path.h);
// GEOMETRY_ARGS, SCENE_ARGS, SCENE_PARAMS (raytracing/scene.h). Macros of renderer/raytracing/kernels.py (see
// raytrace.cu): WHITTED.
#define PICK_MISSED 0  // the camera ray hits nothing
#define PICK_FAILED 1  // no light was valid, or one that faces away
#define PICK_UNUSED 2  // the surface reflects no light from the light's direction
#define PICK_BLOCKED 3
#define PICK_LIT 4

// Takes light sample number thread_index() of pixel (x, y) and writes its four rows.
KERNEL light_picks(const LaunchParams params, int x, int y, int samples, GLOBAL float4 *picks, SCENE_PARAMS) {
    uint sample = thread_index();
    if (sample >= (uint)samples) return;
    LaunchParams indexed = params;
    indexed.sample_index = (int)sample;
    Sampler sampler = make_sampler((uint)params.seed, (uint)(y * params.width + x), sample);
    Path path = start_path(indexed, x, y, sampler);
    float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    GLOBAL float4 *out = picks + 4 * sample;
    out[0] = out[1] = out[2] = out[3] = zero;
    Hit hit = scene_closest_hit(GEOMETRY_ARGS, path.origin, xyz(path.direction));
    if (hit.primitive < 0 || !(path.throughput.x > 0.0f)) return;
    Surface s = surface_at(GEOMETRY_ARGS, hit, path.origin, xyz(path.direction));
    Material m = material_at(GEOMETRY_ARGS, materials, s);
    uint dimension = DIMENSIONS_PER_BOUNCE;
    BsdfSample bsdf;
    bool continues =
        sample_bsdf(m, s, sampler, dimension, &bsdf) && on_geometric_side(s, bsdf.direction, bsdf.transmits);
    float4 origin = offset_ray_origin(s, continues && bsdf.transmits, path.origin.w);
    LightSample light;  // these fields stay as they are if sample_light finds no light
    light.light_id = LIGHT_TREE_ID;
    light.choice = light.pdf = light.distance = 0.0f;
    light.direction = xyz(zero);
    bool valid = sample_light(indexed, xyz(origin), SCENE_ARGS, sampler, dimension + 4, &light);
    ShadowRay shadow;  // of the same light sample, which sample_direct draws once more
    bool used =
        valid && sample_direct(indexed, m, s, xyz(origin), !WHITTED, SCENE_ARGS, sampler, dimension + 4, &shadow);
    float outcome = (float)(valid ? PICK_UNUSED : PICK_FAILED);
    if (used) {
        float3 throughput = light_throughput(materials, m, s, path.throughput, path.radiance, shadow.direction);
        float4 start = shadow_ray_origin(origin, shadow.direction, shadow.contribution.w);
        bool blocked = scene_any_hit(GEOMETRY_ARGS, start, xyz(shadow.direction), shadow.direction.w);
        outcome = (float)(blocked ? PICK_BLOCKED : PICK_LIT);
        if (!blocked) out[2] = with_w(throughput * xyz(shadow.contribution), 0.0f);
    }
    out[0] = make_float4(as_float(light.light_id), light.choice, valid ? light.pdf : 0.0f, outcome);
    out[1] = with_w(light.direction, light.distance);
    out[3] = with_w(s.point, 0.0f);
}
