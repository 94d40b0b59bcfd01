// What a ray may meet: the shapes of the tree, instances of shapes, and distance fields. SCENE_TAKEN stands among the parameters
// of kernels and functions, SCENE_GIVEN among the arguments; what a scene has not got is no argument and no instruction.
#include "bvh_processor.h"
#include "bvh_warps.h"
#include "bvh_wide.h"
#if INSTANCES
#include "bvh_instances.h"
#define INSTANCES_TAKEN , PLACED_TAKEN
#define INSTANCES_GIVEN , PLACED_GIVEN
#define ROWS_OF_A_HIT 2
#else
#define INSTANCES_TAKEN
#define INSTANCES_GIVEN
#define ROWS_OF_A_HIT 1
#endif
#if FIELDS
#define FIELDS_TAKEN , GLOBAL const Field *RESTRICT fields
#define FIELDS_GIVEN , fields
#else
#define FIELDS_TAKEN
#define FIELDS_GIVEN
#endif
#define SCENE_TAKEN GLOBAL const float4 *nodes, GLOBAL const float4 *primitives INSTANCES_TAKEN FIELDS_TAKEN
#define SCENE_GIVEN nodes, primitives INSTANCES_GIVEN FIELDS_GIVEN

#define LONE_RAYS (BRANCHES && HAS_WIDE_REGISTERS)
#if WIDE || LONE_RAYS || INSTANCES || FIELDS
#define PACKETS 0
#else
#define PACKETS (HAS_BALLOT && TOGETHER)  // the camera's rays of one tile walk together, and their first shadow rays
#endif

// What a ray of unit direction meets first. .w of its origin is the moment within the shutter, 0 to 1.
DEVICE Hit find_closest(SCENE_TAKEN, float4 origin, float3 direction) {
#if WIDE
    Hit hit = closest_hit_wide((GLOBAL const uint4 *)nodes, primitives, xyz(origin), direction, INFINITE);
#elif LONE_RAYS
    Hit hit = closest_hit_lone((GLOBAL const float *)nodes, primitives, xyz(origin), direction, INFINITE);
#else
    Hit hit = closest_hit(nodes, primitives, xyz(origin), direction, INFINITE);
#endif
#if FIELDS
    for (int k = 0; k < FIELDS; k++) {
        float t = meet_field(fields[k], xyz(origin), direction, hit.t);
        if (t < hit.t) {
            hit.t = t;
            hit.primitive = FIELD_BASE + k;
        }
    }
#endif
#if INSTANCES
    hit.instance = -1;
    closest_placed_hit(PLACED_GIVEN, origin, direction, &hit, &hit.instance);
#endif
    return hit;
}

// Whether anything lies before `longest`.
DEVICE bool find_any(SCENE_TAKEN, float4 origin, float3 direction, float longest) {
#if WIDE
    bool found = any_hit_wide((GLOBAL const uint4 *)nodes, primitives, xyz(origin), direction, longest);
#elif LONE_RAYS
    bool found = any_hit_lone((GLOBAL const float *)nodes, primitives, xyz(origin), direction, longest);
#else
    bool found = any_hit(nodes, primitives, xyz(origin), direction, longest);
#endif
#if INSTANCES
    found = found || any_placed_hit(PLACED_GIVEN, origin, direction, longest);
#endif
#if FIELDS
    for (int k = 0; k < FIELDS && !found; k++) found = meet_field(fields[k], xyz(origin), direction, longest) < INFINITE;
#endif
    return found;
}

#if HAS_WIDE_REGISTERS
// find_closest of the `active` rays of a packet, or find_any, told by the hit's primitive being there.
DEVICE void find_packet(SCENE_TAKEN, Packet *packet, uint active, bool any_will_do, Hit *hits) {
#if LONE_RAYS && !INSTANCES && !FIELDS
    walk_packet((GLOBAL const float *)nodes, primitives, packet, active, any_will_do);
    for (; active; active &= active - 1u) hits[lowest_bit(active)] = packet_hit_of(packet, lowest_bit(active));
#else
    for (; active; active &= active - 1u) {
        uint j = lowest_bit(active);
        float4 origin = with_w(packet_origin(packet, j), packet->moment[j]);
        float3 direction = packet_direction(packet, j);
        if (!any_will_do) hits[j] = find_closest(SCENE_GIVEN, origin, direction);
        else hits[j].primitive = find_any(SCENE_GIVEN, origin, direction, packet->t.at[j]) ? 0 : -1;
    }
#endif
}
#endif

DEVICE void store_hit(GLOBAL float4 *hits, uint i, const Hit hit) {
    hits[ROWS_OF_A_HIT * i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
#if INSTANCES
    hits[ROWS_OF_A_HIT * i + 1].x = as_float(hit.instance);
#endif
}

DEVICE Hit stored_hit(GLOBAL const float4 *hits, uint i) {
    float4 found = hits[ROWS_OF_A_HIT * i];
    Hit hit = {found.x, found.y, found.z, as_int(found.w)};
#if INSTANCES
    hit.instance = as_int(hits[ROWS_OF_A_HIT * i + 1].x);
#endif
    return hit;
}

DEVICE float3 normal_of(const Primitive p, float3 point) {
    if (SPHERES && p.edge2.w > 0.0f) return unit(point - xyz(p.corner));
    return unit(cross_exact(xyz(p.edge1), xyz(p.edge2)));
}

// Point, normal and material of a primitive where a ray of its own space meets it.
DEVICE void primitive_surface(const Primitive p, const Hit hit, float3 origin, float3 direction, Surface *s) {
    float3 corner = xyz(p.corner);
    if (SPHERES && p.edge2.w > 0.0f) {
        s->normal = normal_of(p, along(origin, direction, hit.t));
        s->point = along(corner, s->normal, p.edge2.w);
    } else {
        s->normal = normal_of(p, corner);
        s->point = along(along(corner, xyz(p.edge1), hit.u), xyz(p.edge2), hit.v);
    }
    s->material = as_int(p.edge1.w);
}

DEVICE Surface surface_at(SCENE_TAKEN, const Hit hit, float4 origin, float3 direction) {
    Surface s;
#if FIELDS
    s.lift = 0.0f;
#endif
    s.aimed = true;
#if FIELDS
    if (hit.primitive >= FIELD_BASE) {
        Field f = fields[hit.primitive - FIELD_BASE];
        s.point = along(xyz(origin), direction, hit.t);
        s.normal = field_normal(f, s.point);
        s.material = f.material;
        s.lift = 2.0f * f.detail * f.scale;
        s.aimed = false;
    } else
#endif
#if INSTANCES
        if (hit.instance >= 0) {
        Matrix m = matrix_at(matrices, later, hit.instance, origin.w), in = inverse_of(m);
        primitive_surface(primitive_at(shape_primitives, hit.primitive), hit, times(in, xyz(origin), 1.0f), times(in, direction, 0.0f), &s);
        s.point = times(m, s.point, 1.0f);
        s.normal = unit(times_normal(m, s.normal));
        int other = placed[hit.instance].material;
        s.material = other >= 0 ? other : s.material;
        s.aimed = false;
    } else
#endif
        primitive_surface(primitive_at(primitives, hit.primitive), hit, xyz(origin), direction, &s);
    s.front = dot_exact(s.normal, direction) < 0.0f;
    if (!s.front) s.normal = -s.normal;
    s.incoming = direction;
    return s;
}

// Where a path goes on from a surface, on the side it came from or `through` it.
DEVICE float4 leave_surface(const Surface s, bool through, float moment) {
    float3 side = through ? -s.normal : s.normal;
#if FIELDS
    return with_w(off_surface(along(s.point, side, s.lift), side), moment);
#else
    return with_w(off_surface(s.point, side), moment);
#endif
}

// The number of what was hit, from 1: of a primitive before sorting; instances count as the primitive of their shape.
DEVICE uint number_of(SCENE_TAKEN, const Hit hit) {
#if FIELDS
    if (hit.primitive >= FIELD_BASE) return (uint)hit.primitive + 1u;
#endif
#if INSTANCES
    if (hit.instance >= 0) return as_uint(shape_primitives[3 * hit.primitive].w) + 1u;
#endif
    return as_uint(primitives[3 * hit.primitive].w) + 1u;
}
