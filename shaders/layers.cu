// What the camera sees first, for compositing and denoising: the means over the first samples of albedo and normal, and the
// depth and the primitive's number through the pixel's middle. Included behind raytrace.cu, whose rays it follows.
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
        albedo = albedo + material_colour(materials[s.material], s);
        normal = normal + s.normal;
    }
    float3 middle = unit(along(along(xyz(view.forward), xyz(view.right), fma(2.0f / (float)view.width, (float)x + 0.5f, -1.0f)),
                               xyz(view.up), fma(-2.0f / (float)view.height, (float)y + 0.5f, 1.0f)));
    Hit hit = find_closest(SCENE_GIVEN, view.eye, middle);
    albedos[pixel] = with_w(albedo * (1.0f / (float)samples), 1.0f);
    normals[pixel] = with_w(normal * (1.0f / (float)samples), 0.0f);
    depths[pixel] = hit.primitive < 0 ? as_float(0x7f800000u) : hit.t;
    numbers[pixel] = hit.primitive < 0 ? 0u : as_uint(primitives[3 * hit.primitive].w) + 1u;
}
