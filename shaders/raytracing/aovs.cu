// What the camera sees first, for compositing and denoising: the means over the first samples of albedo and normal, and the
// depth and the primitive's number through the pixel's middle. Included behind raytracing/raytrace.cu, whose rays it follows.
// (x, y) in pixels from the picture's upper left corner.
DEVICE float3 direction_through(const View view, float x, float y) {
    return view_direction(view, fma(2.0f / (float)view.width, x, -1.0f), fma(-2.0f / (float)view.height, y, 1.0f));
}

KERNEL draw_layers(const View view, int samples, GLOBAL float4 *albedos, GLOBAL float4 *normals, GLOBAL float *depths,
                   GLOBAL uint *numbers, SCENE_TAKEN, GLOBAL const Material *materials) {
    uint i = thread_index();
    int x, y;
    if (!pixel_of(view, i, &x, &y)) return;
    int pixel = (y - view.top) * view.across + x - view.left;
    float3 albedo = make_float3(0.0f, 0.0f, 0.0f), normal = albedo;
    for (int sample = 0; sample < samples; sample++) {
        View seen = view;
        seen.sample = sample;
        Path path = start_path(seen, x, y, key_of(seen, i));
        Hit hit = find_closest(SCENE_GIVEN, path.origin, xyz(path.direction));
        if (hit.primitive < 0) continue;
        Surface s = surface_at(SCENE_GIVEN, hit, path.origin, xyz(path.direction));
        albedo = albedo + material_colour(material_at(SCENE_GIVEN, materials, s), s);
        normal = normal + s.normal;
    }
    float3 middle = normalize_fma(direction_through(view, (float)x + 0.5f, (float)y + 0.5f));
    Hit hit = find_closest(SCENE_GIVEN, view.eye, middle);
    albedos[pixel] = with_w(albedo * (1.0f / (float)samples), 1.0f);
    normals[pixel] = with_w(normal * (1.0f / (float)samples), 0.0f);
    depths[pixel] = hit.primitive < 0 ? as_float(0x7f800000u) : hit.t;
    numbers[pixel] = hit.primitive < 0 ? 0u : number_of(SCENE_GIVEN, hit);
}

// How far along the view (in a panorama, along the ray) lies what is seen at a point of the picture; infinite for nothing.
KERNEL pick(const View view, float x, float y, GLOBAL float *distance, SCENE_TAKEN) {
    if (thread_index() > 0) return;
    float3 direction = direction_through(view, x, y), towards = normalize_fma(direction);
    Hit hit = find_closest(SCENE_GIVEN, view.eye, towards);
    float share = PANORAMA ? 1.0f : dot_fma(towards, xyz(view.forward));
    distance[0] = hit.primitive < 0 ? as_float(0x7f800000u) : hit.t * share;
}
