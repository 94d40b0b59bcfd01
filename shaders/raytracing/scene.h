// The geometry of a scene: the BVH of static shapes, instances, distance fields and textures. Its functions intersect
// rays with the scene (scene_closest_hit, scene_any_hit, scene_packet_hits), and return the surface point (surface_at)
// and the material (material_at) of a hit, for all kernels of the ray tracer. SCENE_PARAMS lists the scene's buffers
// among the parameters of kernels and functions, SCENE_ARGS among the arguments; GEOMETRY_PARAMS and GEOMETRY_ARGS
// leave out materials and lights. MAYBE_ macros are items of these lists: they begin with a comma, and are empty if the
// scene lacks the feature. Functions that read a feature's buffers stand beside its items; in scenes without the
// feature macros that do nothing stand in for them. FILTER_ARGS_OF(-1), the last argument of traversals, passes the
// buffers of the alpha test, if any (bvh/traverse_bvh2.h). INSTANCE_OF(hit) is the instance of a hit, -1 for none.
// Points, normals and unit ray directions are in world space, unless stated; an `origin` holds in w the time in the
// shutter interval, 0 to 1. edge2.w of a primitive is a sphere's radius, and not above 0 for a triangle.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): ALPHA_TEST, ANISOTROPY, BVH8, DEFORMS, DISTANCE_FIELDS,
// GUIDING, INSTANCED_LIGHTS, INSTANCES, LIGHT_PASSES, SPHERES, TEXTURED, UV_SETS.
#include "bvh/geometry.h"

#define GEOMETRY_PARAMS                                                                                  \
    GLOBAL const float4 *nodes, GLOBAL const float4 *primitives MAYBE_INSTANCE_PARAMS MAYBE_FIELD_PARAMS \
                                    MAYBE_TEXTURE_PARAMS MAYBE_GUIDE_PARAMS
#define GEOMETRY_ARGS nodes, primitives MAYBE_INSTANCE_ARGS MAYBE_FIELD_ARGS MAYBE_TEXTURE_ARGS MAYBE_GUIDE_ARGS
#define SCENE_PARAMS GEOMETRY_PARAMS, GLOBAL const Material *materials, GLOBAL const float4 *lights MAYBE_PASS_PARAMS
#define SCENE_ARGS GEOMETRY_ARGS, materials, lights MAYBE_PASS_ARGS
#define FIELD_PRIM_BASE 0x40000000  // Hit.primitive of distance field k is FIELD_PRIM_BASE + k
#define FLOAT4S_PER_HIT (1 + INSTANCES)  // of a stored hit (store_hit)

#if TEXTURED
#include "raytracing/textures/textured_surface.h"
#define MAYBE_TEXTURE_PARAMS , TEXTURE_PARAMS
#define MAYBE_TEXTURE_ARGS , TEXTURE_ARGS
#else
#define MAYBE_TEXTURE_PARAMS
#define MAYBE_TEXTURE_ARGS
#define set_vertex_attributes(textures, p, closing, hit, time, s, frame)
#define set_globe_frame(textures, p, s, frame)
#define set_shading_normals(textures, frame, s)
#define highlight_tangent(textures, frame, tangent) false
#define apply_textures(textures, m, s) m
#define emission_texture_at(textures, p, u, v, normal) splat3(1.0f)
#endif
#if ALPHA_TEST
#include "raytracing/textures/alpha_test.h"
#endif
#include "bvh/traverse_packet.h"
#if GUIDING
#define MAYBE_GUIDE_PARAMS , GLOBAL const uint *guide
#define MAYBE_GUIDE_ARGS , guide
#else
#define MAYBE_GUIDE_PARAMS
#define MAYBE_GUIDE_ARGS
#endif
#if LIGHT_PASSES
#define MAYBE_PASS_PARAMS , GLOBAL float *passes
#define MAYBE_PASS_ARGS , passes
#else
#define MAYBE_PASS_PARAMS
#define MAYBE_PASS_ARGS
#endif

// Returns the unit geometric normal at a point of a sphere, or of a triangle, for which the point does not matter.
DEVICE float3 primitive_normal(const Primitive p, float3 point) {
    if (SPHERES && p.edge2.w > 0.0f) return normalize_fma(point - xyz(p.v0));
    return normalize_fma(cross_fma(xyz(p.edge1), xyz(p.edge2)));
}

// Sets the point and the unit geometric normal of a hit; ray, primitive, point and normal are in the primitive's space.
DEVICE void set_primitive_point(const Primitive p, const Hit hit, float3 origin, float3 direction, Surface *s) {
    float3 corner = xyz(p.v0);
    if (SPHERES && p.edge2.w > 0.0f) {
        s->normal = primitive_normal(p, madd(direction, hit.t, origin));
        s->point = madd(s->normal, p.edge2.w, corner);
    } else {
        s->normal = primitive_normal(p, corner);
        s->point = madd(xyz(p.edge2), hit.v, madd(xyz(p.edge1), hit.u, corner));
    }
}

#if DISTANCE_FIELDS
#define MAYBE_FIELD_PARAMS , GLOBAL const DistanceField *RESTRICT fields
#define MAYBE_FIELD_ARGS , fields
#define FIELD_MATERIAL(primitive) fields[(primitive) - FIELD_PRIM_BASE].material

// Replaces *hit by the closest hit of a distance field that is nearer.
DEVICE void hit_fields(GLOBAL const DistanceField *RESTRICT fields, float3 origin, float3 direction, Hit *hit) {
    for (int k = 0; k < DISTANCE_FIELDS; k++) {
        float t = sphere_trace(fields[k], origin, direction, hit->t);
        if (t < hit->t) {
            hit->t = t;
            hit->primitive = FIELD_PRIM_BASE + k;
        }
    }
}

// True if the ray hits a distance field before t_max.
DEVICE bool any_field_hit(GLOBAL const DistanceField *RESTRICT fields, float3 origin, float3 direction, float t_max) {
    bool is_hit = false;
    for (int k = 0; k < DISTANCE_FIELDS && !is_hit; k++)
        is_hit = sphere_trace(fields[k], origin, direction, t_max) < FLT_MAX;
    return is_hit;
}

// Sets the point and the unit normal of a hit on a distance field. The offset moves the origins of the next rays beyond
// the distance that counts as a hit.
DEVICE void set_field_point(GLOBAL const DistanceField *RESTRICT fields, const Hit hit, float3 origin, float3 direction,
                            Surface *s) {
    DistanceField f = fields[hit.primitive - FIELD_PRIM_BASE];
    s->point = madd(direction, hit.t, origin);
    s->normal = field_normal(f, s->point);
    s->offset = 2.0f * f.detail * f.scale;
    s->in_light_table = false;
}
#else
#define MAYBE_FIELD_PARAMS
#define MAYBE_FIELD_ARGS
#define FIELD_MATERIAL(primitive) 0
#define hit_fields(fields, origin, direction, hit)
#define any_field_hit(fields, origin, direction, t_max) false
#define set_field_point(fields, hit, origin, direction, s)
#endif

#if INSTANCES
#include "bvh/traverse_instances.h"
#define MAYBE_INSTANCE_PARAMS , INSTANCE_PARAMS
#define MAYBE_INSTANCE_ARGS , INSTANCE_ARGS
#define BLAS_PRIMITIVES blas_primitives
#define INSTANCE_MATERIAL(hit) instance_records[(hit).instance].material  // -1: the materials of the shape

// Replaces *hit, a hit outside of the instances, by the closest hit of an instance that is nearer.
DEVICE void hit_instances(GEOMETRY_PARAMS, float4 origin, float3 direction, Hit *hit) {
    hit->instance = -1;
    traverse_tlas(INSTANCE_ARGS, origin, direction, false, hit, &hit->instance FILTER_ARGS_OF(-1));
}

// True if the ray hits an instance before t_max.
DEVICE bool any_instance_hit(GEOMETRY_PARAMS, float4 origin, float3 direction, float t_max) {
    Hit end = {t_max, 0.0f, 0.0f, -1};
    int instance = -1;
    return traverse_tlas(INSTANCE_ARGS, origin, direction, true, &end, &instance FILTER_ARGS_OF(-1));
}

// Returns the primitive of a hit when the shutter closes; p, the primitive when it opens, if the shape does not deform.
DEVICE Primitive closing_primitive(INSTANCE_PARAMS, const Hit hit, const Primitive p) {
    if (!DEFORMS || hit.instance < 0 || instance_records[hit.instance].closing < 0) return p;
    InstanceRecord record = instance_records[hit.instance];
    return primitive_at(CLOSING_PRIMITIVES, hit.primitive - record.primitive + record.closing);
}

// Sets point, normal and tangent frame of a hit on an instance's primitive p: in the shape's space, then transformed to
// world space. Of emitters in instances, the light table holds the triangles alone.
DEVICE void set_instance_point(GEOMETRY_PARAMS, const Primitive p, const Hit hit, float4 origin, float3 direction,
                               Surface *s, TangentFrame *frame) {
    Matrix m = matrix_at_time(matrices_open, matrices_close, hit.instance, origin.w), in = inverse(m);
    set_primitive_point(p, hit, transform(in, xyz(origin), 1.0f), transform(in, direction, 0.0f), s);
    set_globe_frame(TEXTURE_ARGS, p, s, frame);
    s->point = transform(m, s->point, 1.0f);
    s->normal = normalize_fma(transform_normal(m, s->normal));
    s->in_light_table = INSTANCED_LIGHTS && !(p.edge2.w > 0.0f);
    if (!TEXTURED) return;
    frame->vertex_normal = transform_normal(m, frame->vertex_normal);
    frame->tangent = transform(m, frame->tangent, 0.0f);
    frame->edge1 = transform(m, frame->edge1, 0.0f);
    frame->edge2 = transform(m, frame->edge2, 0.0f);
}
#else
#define MAYBE_INSTANCE_PARAMS
#define MAYBE_INSTANCE_ARGS
#define BLAS_PRIMITIVES primitives
#define INSTANCE_MATERIAL(hit) -1
#define hit_instances(geometry, origin, direction, hit)
#define any_instance_hit(geometry, origin, direction, t_max) false
#define closing_primitive(instances, hit, p) p
#define set_instance_point(geometry, p, hit, origin, direction, s, frame)
#endif

#define USE_BVH8 (BVH8 && HAS_MOVEMASK)
// Traversal of one ray in the scene's BVH layout: the functions TRAVERSE(closest_hit) and TRAVERSE(any_hit) take
// NODE_POINTER.
#if USE_BVH8
#define TRAVERSE(search) search##_bvh8
#define NODE_POINTER (GLOBAL const float *)nodes
#else
#define TRAVERSE(search) search
#define NODE_POINTER nodes
#endif

// Returns the primitive of a hit, in world space or, for an instance, in the space of its shape; not for distance
// fields.
DEVICE Primitive primitive_of(GEOMETRY_PARAMS, const Hit hit) {
    if (INSTANCE_OF(hit) >= 0) return primitive_at(BLAS_PRIMITIVES, hit.primitive);
    return primitive_at(primitives, hit.primitive);
}

// Returns the index of a hit's material; an instance's material replaces its shape's.
DEVICE int material_of(GEOMETRY_PARAMS, const Hit hit) {
    if (INSTANCE_OF(hit) >= 0 && INSTANCE_MATERIAL(hit) >= 0) return INSTANCE_MATERIAL(hit);
    if (DISTANCE_FIELDS && hit.primitive >= FIELD_PRIM_BASE) return FIELD_MATERIAL(hit.primitive);
    return as_int(primitive_of(GEOMETRY_ARGS, hit).edge1.w);
}

// Intersects distance fields and instances with a ray; replaces *hit, the closest hit in the static BVH, by a closer
// one.
DEVICE void hit_fields_and_instances(GEOMETRY_PARAMS, float4 origin, float3 direction, Hit *hit) {
    hit_fields(fields, xyz(origin), direction, hit);
    hit_instances(GEOMETRY_ARGS, origin, direction, hit);
}

// Returns the closest hit of a ray of unit direction; primitive -1 for a miss.
DEVICE Hit scene_closest_hit(GEOMETRY_PARAMS, float4 origin, float3 direction) {
    Hit hit = TRAVERSE(closest_hit)(NODE_POINTER, primitives, xyz(origin), direction, FLT_MAX FILTER_ARGS_OF(-1));
    hit_fields_and_instances(GEOMETRY_ARGS, origin, direction, &hit);
    return hit;
}

// True if the ray hits a distance field or an instance before t_max.
DEVICE bool any_field_or_instance(GEOMETRY_PARAMS, float4 origin, float3 direction, float t_max) {
    return any_instance_hit(GEOMETRY_ARGS, origin, direction, t_max) ||
           any_field_hit(fields, xyz(origin), direction, t_max);
}

// True if the ray hits anything before t_max.
DEVICE bool scene_any_hit(GEOMETRY_PARAMS, float4 origin, float3 direction, float t_max) {
    return TRAVERSE(any_hit)(NODE_POINTER, primitives, xyz(origin), direction, t_max FILTER_ARGS_OF(-1)) ||
           any_field_or_instance(GEOMETRY_ARGS, origin, direction, t_max);
}

#if HAS_MOVEMASK
// Intersects a packet's rays in the bit mask `active` with the scene, and stores the hits in the packet (bvh/packet.h):
// the closest ones, or with accept_first_hit any hit, where only prim_index is valid. It is below 0 for a miss.
DEVICE void scene_packet_hits(GEOMETRY_PARAMS, Packet *packet, uint active, bool accept_first_hit) {
    if (USE_BVH8 && !INSTANCES && !DISTANCE_FIELDS) {
        traverse_packet((GLOBAL const float *)nodes, primitives, packet, active, accept_first_hit FILTER_ARGS_OF(-1));
        return;
    }
    FOR_EACH_BIT(j, active) {
        float4 origin = with_w(float3_at(packet->origin, j), packet->time[j]);
        float3 direction = float3_at(packet->direction, j);
        if (!accept_first_hit)
            packet_set_hit(packet, j, scene_closest_hit(GEOMETRY_ARGS, origin, direction));
        else
            packet->prim_index.s[j] = scene_any_hit(GEOMETRY_ARGS, origin, direction, packet->t.s[j]) ? 0 : -1;
    }
}
#endif

// Stores the hit of ray i, which stored_hit returns.
DEVICE void store_hit(GLOBAL float4 *hits, uint i, const Hit hit) {
    hits[FLOAT4S_PER_HIT * i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
    if (INSTANCES) hits[FLOAT4S_PER_HIT * i + 1].x = as_float(INSTANCE_OF(hit));
}

// Returns hit i of a buffer.
DEVICE Hit stored_hit(GLOBAL const float4 *hits, uint i) {
    float4 record = hits[FLOAT4S_PER_HIT * i];
    Hit hit = {record.x, record.y, record.z, as_int(record.w)};
    SET_INSTANCE(hit, as_int(hits[FLOAT4S_PER_HIT * i + 1].x));
    return hit;
}

// Sets a horizontal tangent for anisotropic highlights; surfaces with tangents or texture coordinates replace it.
DEVICE void set_horizontal_tangent(Surface *s) {
    if (!ANISOTROPY) return;
    s->tangent = make_float3(s->normal.z, 0.0f, -s->normal.x);
    if (!(dot_fma(s->tangent, s->tangent) > 1e-8f)) s->tangent = make_float3(1.0f, 0.0f, 0.0f);
    s->bitangent_sign = s->front_face ? 1.0f : -1.0f;
}

// Returns the surface point of a hit of the ray (origin, direction): the primitive at the ray's time, interpolated
// vertex attributes, transformed to world space, then normal maps. The normals are flipped to the ray's side.
DEVICE Surface surface_at(GEOMETRY_PARAMS, const Hit hit, float4 origin, float3 direction) {
    Surface s;
    TangentFrame frame = {0};
    s.material = material_of(GEOMETRY_ARGS, hit);
    s.in_light_table = true;
    s.offset = 0.0f;
    if (TEXTURED) {  // what distance fields keep
        s.vertex_color = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        for (int set = 0; set < UV_SETS; set++) s.texcoords.sets[set] = make_float2(0.0f, 0.0f);
    }
    if (DISTANCE_FIELDS && hit.primitive >= FIELD_PRIM_BASE) {
        set_field_point(fields, hit, xyz(origin), direction, &s);
    } else {
        Primitive p = primitive_of(GEOMETRY_ARGS, hit), closing = closing_primitive(INSTANCE_ARGS, hit, p);
        if (DEFORMS) p = primitive_at_time(p, closing, origin.w);
        set_vertex_attributes(TEXTURE_ARGS, p, closing, hit, origin.w, &s, &frame);
        if (INSTANCE_OF(hit) >= 0) {
            set_instance_point(GEOMETRY_ARGS, p, hit, origin, direction, &s, &frame);
        } else {
            set_primitive_point(p, hit, xyz(origin), direction, &s);
            set_globe_frame(TEXTURE_ARGS, p, &s, &frame);
        }
    }
    s.front_face = dot_fma(s.normal, direction) < 0.0f;
    s.ray_direction = direction;
    if (TEXTURED) {
        set_shading_normals(TEXTURE_ARGS, &frame, &s);
    } else if (!s.front_face) {
        s.normal = -s.normal;
    }
    set_horizontal_tangent(&s);
    if (ANISOTROPY && highlight_tangent(TEXTURE_ARGS, frame, &s.tangent)) s.bitangent_sign = -s.bitangent_sign;
    return s;
}

// Returns the material at a surface point: its record, multiplied by textures and vertex colors.
DEVICE Material material_at(GEOMETRY_PARAMS, GLOBAL const Material *materials, const Surface s) {
    return apply_textures(TEXTURE_ARGS, materials[s.material], s);
}

// Returns the unit geometric normal on the ray's side.
DEVICE float3 geometric_normal(const Surface s) { return TEXTURED ? s.geometric_normal : s.normal; }

// True if a direction is on the same side of the geometric as of the shading normal: above both or, if the path
// `transmits`, below both. Other directions would leak light through the surface.
DEVICE bool on_geometric_side(const Surface s, float3 direction, bool transmits) {
    return TEXTURED ? (dot_fma(direction, s.geometric_normal) > 0.0f) != transmits : true;
}

// Returns the origin of the next ray: the surface point, offset to the side that the last ray came from, or to the
// other side if the path `transmits`. w is `time`.
DEVICE float4 offset_ray_origin(const Surface s, bool transmits, float time) {
    float3 side = transmits ? -geometric_normal(s) : geometric_normal(s);
    float3 point = DISTANCE_FIELDS ? madd(side, s.offset, s.point) : s.point;
    return with_w(offset_ray(point, side), time);
}

// Returns the id, from 1, of a hit primitive: its index before the BVH sorted the primitives, plus 1. Instances of a
// shape share its ids.
DEVICE uint primitive_id(GEOMETRY_PARAMS, const Hit hit) {
    if (DISTANCE_FIELDS && hit.primitive >= FIELD_PRIM_BASE) return (uint)hit.primitive + 1u;
    return as_uint(primitive_of(GEOMETRY_ARGS, hit).v0.w) + 1u;
}
