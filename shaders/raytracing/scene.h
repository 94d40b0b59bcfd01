// What a ray may meet: the shapes of the tree, instances of shapes, distance fields, and pictures on them. SCENE_TAKEN stands
// among the parameters of kernels and functions, SCENE_GIVEN among the arguments; what a scene has not got is neither.
#include "bvh/traverse_bvh8.h"
#if TEXTURED
#include "raytracing/texture.h"
#endif
#if INSTANCES
#include "bvh/traverse_instances.h"
#define INSTANCES_TAKEN , INSTANCE_PARAMS
#define INSTANCES_GIVEN , INSTANCE_ARGS
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
#if TEXTURED
#define PICTURES_TAKEN , TEXTURES_TAKEN
#define PICTURES_GIVEN , TEXTURES_GIVEN
#else
#define PICTURES_TAKEN
#define PICTURES_GIVEN
#endif
#define SCENE_TAKEN GLOBAL const float4 *nodes, GLOBAL const float4 *primitives INSTANCES_TAKEN FIELDS_TAKEN PICTURES_TAKEN
#define SCENE_GIVEN nodes, primitives INSTANCES_GIVEN FIELDS_GIVEN PICTURES_GIVEN

#define USE_BVH8 (BVH8 && HAS_WIDE_REGISTERS)
// The walks of one ray through the tree that the scene has: WALK_BY(closest_hit) and WALK_BY(any_hit) take NODES.
#if USE_BVH8
#define WALK_BY(search) search##_bvh8
#define NODES (GLOBAL const float *)nodes
#else
#define WALK_BY(search) search
#define NODES nodes
#endif

// The primitive that was hit, as it stands in the arrays of its tree; not of distance fields.
DEVICE Primitive primitive_of(SCENE_TAKEN, const Hit hit) {
#if INSTANCES
    if (hit.instance >= 0) return primitive_at(blas_primitives, hit.primitive);
#endif
    return primitive_at(primitives, hit.primitive);
}

DEVICE int material_of(SCENE_TAKEN, const Hit hit) {
#if INSTANCES
    if (hit.instance >= 0 && instance_records[hit.instance].material >= 0) return instance_records[hit.instance].material;
#endif
#if FIELDS
    if (hit.primitive >= FIELD_BASE) return fields[hit.primitive - FIELD_BASE].material;
#endif
    return as_int(primitive_of(SCENE_GIVEN, hit).edge1.w);
}

// What a ray of unit direction meets first. .w of its origin is the moment within the shutter, 0 to 1.
DEVICE Hit nearest_hit(SCENE_TAKEN, float4 origin, float3 direction) {
    Hit hit = WALK_BY(closest_hit)(NODES, primitives, xyz(origin), direction, INFINITE);
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
    closest_instanced_hit(INSTANCE_ARGS, origin, direction, &hit, &hit.instance);
#endif
    return hit;
}

#if CUT_OUT
// The first of what a ray meets that is solid where it is met.
DEVICE Hit find_closest(SCENE_TAKEN, float4 origin, float3 direction) {
    float4 from = origin;
    float passed = 0.0f;
    for (int layer = 0; layer < 256; layer++) {
        Hit hit = nearest_hit(SCENE_GIVEN, from, direction);
        if (hit.primitive < 0) return hit;
        bool solid = true;
#if FIELDS
        if (hit.primitive < FIELD_BASE)
#endif
        {
            Look look = looks[material_of(SCENE_GIVEN, hit)];
            uint number = as_uint(primitive_of(SCENE_GIVEN, hit).corner.w);
            float tint = corners_tint(attributes, number, hit.u, hit.v).w;
            solid = is_solid(TEXTURES_GIVEN, look, coordinates_at(attributes, number, hit.u, hit.v), tint, from, direction);
        }
        float t = hit.t;
        hit.t += passed;
        if (solid) return hit;
        passed = hit.t;
        from = with_w(offset_ray(madd(direction, t, xyz(from)), direction), origin.w);
    }
    Hit none = {INFINITE, 0.0f, 0.0f, -1};
    return none;
}

DEVICE bool find_any(SCENE_TAKEN, float4 origin, float3 direction, float longest) {
    Hit hit = find_closest(SCENE_GIVEN, origin, direction);
    return hit.primitive >= 0 && hit.t <= longest;
}
#else
#define find_closest nearest_hit

// Whether anything lies before `longest`.
DEVICE bool find_any(SCENE_TAKEN, float4 origin, float3 direction, float longest) {
    bool found = WALK_BY(any_hit)(NODES, primitives, xyz(origin), direction, longest);
#if INSTANCES
    found = found || any_instanced_hit(INSTANCE_ARGS, origin, direction, longest);
#endif
#if FIELDS
    for (int k = 0; k < FIELDS && !found; k++) found = meet_field(fields[k], xyz(origin), direction, longest) < INFINITE;
#endif
    return found;
}
#endif

#if HAS_WIDE_REGISTERS
// find_closest of the `active` rays of a packet, or find_any, told by the hit's row being there; their hits are the packet's.
DEVICE void find_packet(SCENE_TAKEN, Packet *packet, uint active, bool any_will_do) {
#if USE_BVH8 && !INSTANCES && !FIELDS && !CUT_OUT
    traverse_packet((GLOBAL const float *)nodes, primitives, packet, active, any_will_do);
#else
    for (; active; active &= active - 1u) {
        uint j = lowest_bit(active);
        float4 origin = with_w(packet_origin(packet, j), packet->time[j]);
        float3 direction = packet_direction(packet, j);
        if (!any_will_do) packet_set_hit(packet, j, find_closest(SCENE_GIVEN, origin, direction));
        else packet->prim_index.s[j] = find_any(SCENE_GIVEN, origin, direction, packet->t.s[j]) ? 0 : -1;
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
    if (SPHERES && p.edge2.w > 0.0f) return normalize_fma(point - xyz(p.corner));
    return normalize_fma(cross_fma(xyz(p.edge1), xyz(p.edge2)));
}

// Point and normal of a primitive where a ray of its own space meets it.
DEVICE void primitive_surface(const Primitive p, const Hit hit, float3 origin, float3 direction, Surface *s) {
    float3 corner = xyz(p.corner);
    if (SPHERES && p.edge2.w > 0.0f) {
        s->normal = normal_of(p, madd(direction, hit.t, origin));
        s->point = madd(s->normal, p.edge2.w, corner);
    } else {
        s->normal = normal_of(p, corner);
        s->point = madd(xyz(p.edge2), hit.v, madd(xyz(p.edge1), hit.u, corner));
    }
}

DEVICE Surface surface_at(SCENE_TAKEN, const Hit hit, float4 origin, float3 direction) {
    Surface s;
    s.material = material_of(SCENE_GIVEN, hit);
    s.aimed = true;
#if FIELDS
    s.lift = 0.0f;
#endif
#if TEXTURED
    float3 smooth = make_float3(0.0f, 0.0f, 0.0f), edge1 = smooth, edge2 = smooth, tangent = smooth;
    bool against = false;
    s.tint = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    uint number = 0;
    s.uv = make_float2(0.0f, 0.0f);
#endif
#if FIELDS
    if (hit.primitive >= FIELD_BASE) {
        Field f = fields[hit.primitive - FIELD_BASE];
        s.point = madd(direction, hit.t, xyz(origin));
        s.normal = field_normal(f, s.point);
        s.lift = 2.0f * f.detail * f.scale;
        s.aimed = false;
    } else
#endif
    {
        Primitive p = primitive_of(SCENE_GIVEN, hit);
#if TEXTURED
        number = as_uint(p.corner.w);
        s.uv = coordinates_at(attributes, number, hit.u, hit.v);
        smooth = smooth_normal(attributes, number, hit.u, hit.v);
        tangent = corners_tangent(attributes, number, hit.u, hit.v, &against);
        s.tint = corners_tint(attributes, number, hit.u, hit.v);
        edge1 = xyz(p.edge1);
        edge2 = xyz(p.edge2);
#endif
#if INSTANCES
        if (hit.instance >= 0) {
            Matrix m = matrix_at_time(matrices_open, matrices_close, hit.instance, origin.w), in = inverse(m);
            primitive_surface(p, hit, transform(in, xyz(origin), 1.0f), transform(in, direction, 0.0f), &s);
            s.point = transform(m, s.point, 1.0f);
            s.normal = normalize_fma(transform_normal(m, s.normal));
            s.aimed = PLACED_LIGHTS && !(p.edge2.w > 0.0f);
#if TEXTURED
            smooth = transform_normal(m, smooth);
            tangent = transform(m, tangent, 0.0f);
            edge1 = transform(m, edge1, 0.0f);
            edge2 = transform(m, edge2, 0.0f);
#endif
        } else
#endif
            primitive_surface(p, hit, xyz(origin), direction, &s);
    }
    s.front = dot_fma(s.normal, direction) < 0.0f;
    s.incoming = direction;
#if TEXTURED
    s.flat = s.front ? s.normal : -s.normal;
    Look look = looks[s.material];
    s.normal = shading_normal(TEXTURES_GIVEN, look, number, hit.u, hit.v, smooth, s.normal, s.front, edge1, edge2, tangent, against,
                              direction);
#else
    if (!s.front) s.normal = -s.normal;
#endif
    return s;
}

// The material of a surface, as its pictures colour it there.
DEVICE Material material_at(SCENE_TAKEN, GLOBAL const Material *materials, const Surface s) {
    Material m = materials[s.material];
#if TEXTURED
    m = coloured(TEXTURES_GIVEN, m, looks[s.material], s.uv);
    m.color = m.color * s.tint;
#endif
    return m;
}

// The normal as the geometry lies, on the ray's side.
DEVICE float3 flat_normal(const Surface s) {
#if TEXTURED
    return s.flat;
#else
    return s.normal;
#endif
}

#if TEXTURED
// What pictures leave of the radiance of a point of a primitive that shines.
DEVICE float3 picture_of_light(SCENE_TAKEN, const Primitive p, float u, float v) {
    Look look = looks[as_int(p.edge1.w)];
    float2 uv = coordinates_at(attributes, as_uint(p.corner.w), u, v);
    float4 shine = look.emission >= 0 ? picture_at(pictures, texels, look.emission, uv, true) : make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    float tint = corners_tint(attributes, as_uint(p.corner.w), u, v).w;
    float alpha = look.mode == 0 ? 1.0f : look.alpha * tint * (look.color >= 0 ? picture_at(pictures, texels, look.color, uv, true).w : 1.0f);
    if (look.mode == 1) alpha = alpha >= look.cutoff ? 1.0f : 0.0f;
    return xyz(shine) * alpha;
}
#endif

// Whether a direction that leaves a surface as it shades leaves it as it lies, so that no light leaks through.
DEVICE bool leaves_rightly(const Surface s, float3 direction, bool through) {
#if TEXTURED
    return (dot_fma(direction, s.flat) > 0.0f) != through;
#else
    return true;
#endif
}

// Where a path goes on from a surface, on the side it came from or `through` it.
DEVICE float4 leave_surface(const Surface s, bool through, float moment) {
    float3 side = through ? -flat_normal(s) : flat_normal(s);
#if FIELDS
    return with_w(offset_ray(madd(side, s.lift, s.point), side), moment);
#else
    return with_w(offset_ray(s.point, side), moment);
#endif
}

// The number of what was hit, from 1: of a primitive before sorting; instances count as the primitive of their shape.
DEVICE uint number_of(SCENE_TAKEN, const Hit hit) {
#if FIELDS
    if (hit.primitive >= FIELD_BASE) return (uint)hit.primitive + 1u;
#endif
    return as_uint(primitive_of(SCENE_GIVEN, hit).corner.w) + 1u;
}
