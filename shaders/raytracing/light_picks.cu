// Which lights next-event estimation picks at one pixel: the first surface of each of its samples, with the numbers
// that the picture's samples take there. Compiled with LIGHT_PICKS behind raytracing/raytrace.cu.
// Four rows a sample: light id, probability of its choice, pdf of the sample, what became of it (PICK_...) | direction
// and distance of the point on the light | contribution, 0 where the shadow ray is blocked | the surface point.
#define PICK_MISSED 0  // the camera ray hits nothing
#define PICK_FAILED 1  // no light, or one that faces away
#define PICK_UNUSED 2  // the surface does not reflect light from there
#define PICK_BLOCKED 3
#define PICK_LIT 4

KERNEL light_picks(const LaunchParams params, int x, int y, int samples, GLOBAL float4 *picks, SCENE_PARAMS,
                   GLOBAL const Material *materials, GLOBAL const float4 *lights) {
    uint sample = thread_index();
    if (sample >= (uint)samples) return;
    LaunchParams of_sample = params;
    of_sample.sample_index = (int)sample;
    Sampler sampler = make_sampler((uint)params.seed, (uint)(y * params.width + x), sample);
    Path path = start_path(of_sample, x, y, sampler);
    float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    GLOBAL float4 *out = picks + 4 * sample;
    out[0] = out[1] = out[2] = out[3] = zero;
    Hit hit = scene_closest_hit(SCENE_ARGS, path.origin, xyz(path.direction));
    if (hit.primitive < 0 || !(path.throughput.x > 0.0f)) return;
    Surface s = surface_at(SCENE_ARGS, hit, path.origin, xyz(path.direction));
    Material m = material_at(SCENE_ARGS, materials, s);
    uint dimension = DIMENSIONS_PER_BOUNCE;
    BsdfSample bsdf;
    bsdf.pdf = DELTA_PDF;
    bool continues =
        sample_bsdf(m, s, sampler, dimension, &bsdf) && on_geometric_side(s, bsdf.direction, bsdf.transmits);
    float4 origin = offset_ray_origin(s, continues && bsdf.transmits, path.origin.w);
    LightSample light;
    light.light_id = LIGHT_TREE_ID;
    light.choice = light.pdf = light.distance = 0.0f;
    light.direction = xyz(zero);
    bool found = sample_light(of_sample, xyz(origin), lights, primitives, materials, sampler, dimension + 4, &light);
    ShadowRay shadow;
    bool used = found && sample_direct(of_sample, m, s, xyz(origin), !WHITTED, lights, SCENE_ARGS, materials, sampler,
                                       dimension + 4, &shadow);
    float outcome = (float)(found ? PICK_UNUSED : PICK_FAILED);
    if (used) {
        float3 throughput = light_throughput(materials, m, s, path.throughput, path.radiance, shadow.direction);
        float4 start = shadow_ray_origin(origin, shadow.direction, shadow.contribution.w);
        bool blocked = scene_any_hit(SCENE_ARGS, start, xyz(shadow.direction), shadow.direction.w);
        outcome = (float)(blocked ? PICK_BLOCKED : PICK_LIT);
        if (!blocked) out[2] = with_w(throughput * xyz(shadow.contribution), 0.0f);
    }
    out[0] = make_float4(as_float(light.light_id), light.choice, found ? light.pdf : 0.0f, outcome);
    out[1] = with_w(light.direction, light.distance);
    out[3] = with_w(s.point, 0.0f);
}
