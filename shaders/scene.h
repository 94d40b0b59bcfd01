// What a ray may meet: the shapes of the tree. SCENE_TAKEN stands among the parameters of kernels and functions, SCENE_GIVEN
// among the arguments; what a scene has not got is no argument and no instruction.
#include "bvh_processor.h"
#include "bvh_warps.h"
#include "bvh_wide.h"

#define SCENE_TAKEN GLOBAL const float4 *nodes, GLOBAL const float4 *primitives
#define SCENE_GIVEN nodes, primitives

#define LONE_RAYS (BRANCHES && HAS_WIDE_REGISTERS)

// Where a ray begins and when: .w is the moment within the shutter, 0 to 1.
DEVICE Hit find_closest(SCENE_TAKEN, float4 origin, float3 direction) {
#if WIDE
    return closest_hit_wide((GLOBAL const uint4 *)nodes, primitives, xyz(origin), direction, INFINITE);
#elif LONE_RAYS
    return closest_hit_lone((GLOBAL const float *)nodes, primitives, xyz(origin), direction, INFINITE);
#else
    return closest_hit(nodes, primitives, xyz(origin), direction, INFINITE);
#endif
}

DEVICE bool find_any(SCENE_TAKEN, float4 origin, float3 direction, float longest) {
#if WIDE
    return any_hit_wide((GLOBAL const uint4 *)nodes, primitives, xyz(origin), direction, longest);
#elif LONE_RAYS
    return any_hit_lone((GLOBAL const float *)nodes, primitives, xyz(origin), direction, longest);
#else
    return any_hit(nodes, primitives, xyz(origin), direction, longest);
#endif
}

#if WIDE || LONE_RAYS
#define PACKETS 0
#else
#define PACKETS (HAS_BALLOT && TOGETHER)  // the camera's rays of one tile walk together, and their first shadow rays
#endif

DEVICE void store_hit(GLOBAL float4 *hits, uint i, const Hit hit) {
    hits[i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
}

DEVICE Hit stored_hit(GLOBAL const float4 *hits, uint i) {
    float4 found = hits[i];
    Hit hit = {found.x, found.y, found.z, as_int(found.w)};
    return hit;
}

DEVICE float3 normal_of(const Primitive p, float3 point) {
    if (SPHERES && p.edge2.w > 0.0f) return unit(point - xyz(p.corner));
    return unit(cross_exact(xyz(p.edge1), xyz(p.edge2)));
}

DEVICE Surface surface_at(SCENE_TAKEN, const Hit hit, float4 origin, float3 direction) {
    Primitive p = primitive_at(primitives, hit.primitive);
    Surface s;
    float3 corner = xyz(p.corner);
    if (SPHERES && p.edge2.w > 0.0f) {
        s.normal = normal_of(p, along(xyz(origin), direction, hit.t));
        s.point = along(corner, s.normal, p.edge2.w);
    } else {
        s.normal = normal_of(p, corner);
        s.point = along(along(corner, xyz(p.edge1), hit.u), xyz(p.edge2), hit.v);
    }
    s.front = dot_exact(s.normal, direction) < 0.0f;
    if (!s.front) s.normal = -s.normal;
    s.incoming = direction;
    s.material = as_int(p.edge1.w);
    return s;
}
