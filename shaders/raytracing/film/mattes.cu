// The names that cover each pixel, for renderer/raytracing/cryptomatte.py: the objects and materials that the camera
// rays of the picture's samples hit first. A name is the word that cryptomatte.py hashes it to. `names` are the words
// of the distance fields; of the instances, 0 for one whose primitives have names; of the materials; of the primitives
// by id. `tables` has two tables of MATTE_SLOTS slots for each pixel, of objects and of materials: word 0 of a slot is
// a name, word 1 the number of samples that hit it, 0 in a free slot. A name that finds no free slot is not counted.
// Placed after raytracing/raytrace.cu. Macros of other files: INSTANCE_OF (bvh/geometry.h); DISTANCE_FIELDS,
// FIELD_PRIM_BASE, GEOMETRY_ARGS, GEOMETRY_PARAMS (raytracing/scene.h).
#define MATTE_SLOTS 12

// Counts a sample of an object's name in the pixel's table; names beyond MATTE_SLOTS are dropped.
DEVICE void count_name(GLOBAL uint *table, uint name) {
    int k = 0;
    while (k < MATTE_SLOTS && table[2 * k] != name && table[2 * k + 1] != 0u) k++;
    if (k == MATTE_SLOTS) return;
    table[2 * k] = name;
    table[2 * k + 1]++;
}

// Counts the names of one sample of every pixel.
KERNEL draw_mattes(const LaunchParams params, int first_material, uint first_primitive, GLOBAL const uint *names,
                   GLOBAL uint *tables, GEOMETRY_PARAMS) {
    uint i = thread_index();
    int x, y;
    if (!pixel_of_ray(params, i, &x, &y)) return;
    Path path = start_path(params, x, y, sampler_of_ray(params, i));
    Hit hit = scene_closest_hit(GEOMETRY_ARGS, path.origin, xyz(path.direction));
    if (hit.primitive < 0 || !(path.throughput.x > 0.0f)) return;
    uint index = primitive_id(GEOMETRY_ARGS, hit) - 1u, name = 0u;
    if (INSTANCE_OF(hit) >= 0) name = names[DISTANCE_FIELDS + INSTANCE_OF(hit)];
    if (name == 0u) name = names[index >= (uint)FIELD_PRIM_BASE ? index - FIELD_PRIM_BASE : index + first_primitive];
    GLOBAL uint *table = tables + (size_t)pixel_index(params, x, y) * (4 * MATTE_SLOTS);
    count_name(table, name);
    count_name(table + 2 * MATTE_SLOTS, names[first_material + material_of(GEOMETRY_ARGS, hit)]);
}
