// What it costs to trace the camera ray through each pixel's center: nodes visited and primitives tested. The traversal
// is that of the picture, compiled with TRAVERSAL_COUNTS; a ray alone, where CPUs trace the camera rays of a stencil
// word as a packet.
#include "raytracing/scene.h"
#include "raytracing/camera.h"
#include "raytracing/camera_hit.h"

KERNEL traversal_cost(const LaunchParams params, GLOBAL uint *nodes_visited, GLOBAL uint *primitives_tested,
                      SCENE_PARAMS) {
    uint i = thread_index();
    if (i >= (uint)(params.width * params.height)) return;
    float x = (float)(i % (uint)params.width) + 0.5f, y = (float)(i / (uint)params.width) + 0.5f, cosine;
    Hit hit = camera_hit(params, SCENE_ARGS, x, y, &cosine);
    nodes_visited[i] = hit.nodes_visited;
    primitives_tested[i] = hit.primitives_tested;
}
