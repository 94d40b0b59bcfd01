// Stores the traversal cost of the camera ray through each pixel's center: the numbers of BVH nodes visited and of
// primitives tested (Hit in bvh/geometry.h, with TRAVERSAL_COUNTS). Launched by renderer/raytracing/traversal_cost.py.
// The traversal equals the picture's, except that CPUs trace single rays here, but packets of 32 camera rays for the
// picture.
#include "raytracing/scene.h"
#include "raytracing/camera.h"
#include "raytracing/camera_hit.h"

// Writes the counts of pixel thread_index(), counted in rows from the top.
KERNEL traversal_cost(const LaunchParams params, GLOBAL uint *nodes_visited, GLOBAL uint *primitives_tested,
                      GEOMETRY_PARAMS) {
    uint i = thread_index();
    if (i >= (uint)(params.width * params.height)) return;
    float x = (float)(i % (uint)params.width) + 0.5f, y = (float)(i / (uint)params.width) + 0.5f, cosine;
    Hit hit = camera_hit(params, GEOMETRY_ARGS, x, y, &cosine);
    nodes_visited[i] = hit.nodes_visited;
    primitives_tested[i] = hit.primitives_tested;
}
