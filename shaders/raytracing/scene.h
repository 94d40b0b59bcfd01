// The geometry of a scene: the BVH of static shapes, instances, distance fields and textures. Its functions intersect
// rays with the scene (scene_closest_hit, scene_any_hit, scene_packet_hits), and return the surface point (surface_at)
// and the material (material_at) of a hit, for all kernels of the ray tracer. SCENE_PARAMS lists the scene's buffers
// among the parameters of kernels and functions, SCENE_ARGS among the arguments; GEOMETRY_PARAMS and GEOMETRY_ARGS
// leave out materials and lights. MAYBE_ macros are items of these lists: they begin with a comma, and are empty if the
// scene lacks the feature. Points, normals and unit ray directions are in world space, unless stated; an `origin` holds
// in w the time in the shutter interval, 0 to 1.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): ALPHA_TEST, ANISOTROPY, BVH8, CLEARCOAT, DEFORMS,
// DISTANCE_FIELDS, GUIDING, INSTANCED_LIGHTS, INSTANCES, SPHERES, SPHERE_TEXTURES, TEXTURED, UV_SETS.
#include "bvh/geometry.h"
#if TEXTURED
#include "raytracing/textures/texture.h"
#define MAYBE_TEXTURE_PARAMS , TEXTURE_PARAMS
#define MAYBE_TEXTURE_ARGS , TEXTURE_ARGS
#else
#define MAYBE_TEXTURE_PARAMS
#define MAYBE_TEXTURE_ARGS
#endif
#if ALPHA_TEST
#include "raytracing/textures/alpha_test.h"
#endif
#include "bvh/traverse_packet.h"
#if INSTANCES
#include "bvh/traverse_instances.h"
#define MAYBE_INSTANCE_PARAMS , INSTANCE_PARAMS
#define MAYBE_INSTANCE_ARGS , INSTANCE_ARGS
#define FLOAT4S_PER_HIT 2
#else
#define MAYBE_INSTANCE_PARAMS
#define MAYBE_INSTANCE_ARGS
#define FLOAT4S_PER_HIT 1
#endif
#if DISTANCE_FIELDS
#define MAYBE_FIELD_PARAMS , GLOBAL const DistanceField *RESTRICT fields
#define MAYBE_FIELD_ARGS , fields
#else
#define MAYBE_FIELD_PARAMS
#define MAYBE_FIELD_ARGS
#endif
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
#define GEOMETRY_PARAMS                                                                                  \
    GLOBAL const float4 *nodes, GLOBAL const float4 *primitives MAYBE_INSTANCE_PARAMS MAYBE_FIELD_PARAMS \
                                    MAYBE_TEXTURE_PARAMS MAYBE_GUIDE_PARAMS
#define GEOMETRY_ARGS nodes, primitives MAYBE_INSTANCE_ARGS MAYBE_FIELD_ARGS MAYBE_TEXTURE_ARGS MAYBE_GUIDE_ARGS
#define SCENE_PARAMS GEOMETRY_PARAMS, GLOBAL const Material *materials, GLOBAL const float4 *lights MAYBE_PASS_PARAMS
#define SCENE_ARGS GEOMETRY_ARGS, materials, lights MAYBE_PASS_ARGS

#define FIELD_PRIM_BASE 0x40000000  // Hit.primitive of distance field k is FIELD_PRIM_BASE + k
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
#if INSTANCES
    if (hit.instance >= 0) return primitive_at(blas_primitives, hit.primitive);
#endif
    return primitive_at(primitives, hit.primitive);
}

#if DEFORMS
DEVICE float3 lerp3(float3 a, float3 b, float weight) { return madd(b - a, weight, a); }

// Returns the index into closing_primitives, the primitives when the shutter closes, of a hit on a shape that deforms;
// else -1.
DEVICE int closing_of(GEOMETRY_PARAMS, const Hit hit) {
    if (hit.instance < 0 || instance_records[hit.instance].closing < 0) return -1;
    InstanceRecord record = instance_records[hit.instance];
    return hit.primitive - record.primitive + record.closing;
}
#endif

// Returns the index of a hit's material; an instance's material replaces its shape's.
DEVICE int material_of(GEOMETRY_PARAMS, const Hit hit) {
#if INSTANCES
    if (hit.instance >= 0 && instance_records[hit.instance].material >= 0)
        return instance_records[hit.instance].material;
#endif
#if DISTANCE_FIELDS
    if (hit.primitive >= FIELD_PRIM_BASE) return fields[hit.primitive - FIELD_PRIM_BASE].material;
#endif
    return as_int(primitive_of(GEOMETRY_ARGS, hit).edge1.w);
}

// Intersects distance fields and instances with a ray; replaces *hit, the closest hit in the static BVH, by a closer
// one.
DEVICE void hit_fields_and_instances(GEOMETRY_PARAMS, float4 origin, float3 direction, Hit *hit) {
#if DISTANCE_FIELDS
    for (int k = 0; k < DISTANCE_FIELDS; k++) {
        float t = sphere_trace(fields[k], xyz(origin), direction, hit->t);
        if (t < hit->t) {
            hit->t = t;
            hit->primitive = FIELD_PRIM_BASE + k;
        }
    }
#endif
#if INSTANCES
    hit->instance = -1;
    traverse_tlas(INSTANCE_ARGS, origin, direction, false, hit, &hit->instance FILTER_ARGS_OF(-1));
#endif
}

// Returns the closest hit of a ray of unit direction; primitive -1 for a miss.
DEVICE Hit scene_closest_hit(GEOMETRY_PARAMS, float4 origin, float3 direction) {
    Hit hit = TRAVERSE(closest_hit)(NODE_POINTER, primitives, xyz(origin), direction, FLT_MAX FILTER_ARGS_OF(-1));
    hit_fields_and_instances(GEOMETRY_ARGS, origin, direction, &hit);
    return hit;
}

// Returns the unit geometric normal at a point of a sphere, or of a triangle, for which the point does not matter.
DEVICE float3 primitive_normal(const Primitive p, float3 point) {
    if (SPHERES && p.edge2.w > 0.0f) return normalize_fma(point - xyz(p.v0));
    return normalize_fma(cross_fma(xyz(p.edge1), xyz(p.edge2)));
}

// True if the ray hits a distance field or an instance before t_max.
DEVICE bool any_field_or_instance(GEOMETRY_PARAMS, float4 origin, float3 direction, float t_max) {
    bool is_hit = false;
#if INSTANCES
    Hit end = {t_max, 0.0f, 0.0f, -1};
    int instance = -1;
    is_hit = traverse_tlas(INSTANCE_ARGS, origin, direction, true, &end, &instance FILTER_ARGS_OF(-1));
#endif
#if DISTANCE_FIELDS
    for (int k = 0; k < DISTANCE_FIELDS && !is_hit; k++)
        is_hit = sphere_trace(fields[k], xyz(origin), direction, t_max) < FLT_MAX;
#endif
    return is_hit;
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
#if USE_BVH8 && !INSTANCES && !DISTANCE_FIELDS
    traverse_packet((GLOBAL const float *)nodes, primitives, packet, active, accept_first_hit FILTER_ARGS_OF(-1));
#else
    FOR_EACH_BIT(j, active) {
        float4 origin = with_w(float3_at(packet->origin, j), packet->time[j]);
        float3 direction = float3_at(packet->direction, j);
        if (!accept_first_hit)
            packet_set_hit(packet, j, scene_closest_hit(GEOMETRY_ARGS, origin, direction));
        else
            packet->prim_index.s[j] = scene_any_hit(GEOMETRY_ARGS, origin, direction, packet->t.s[j]) ? 0 : -1;
    }
#endif
}
#endif

// Stores the hit of ray i, which stored_hit returns.
DEVICE void store_hit(GLOBAL float4 *hits, uint i, const Hit hit) {
    hits[FLOAT4S_PER_HIT * i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
#if INSTANCES
    hits[FLOAT4S_PER_HIT * i + 1].x = as_float(hit.instance);
#endif
}

// Returns hit i of a buffer.
DEVICE Hit stored_hit(GLOBAL const float4 *hits, uint i) {
    float4 record = hits[FLOAT4S_PER_HIT * i];
    Hit hit = {record.x, record.y, record.z, as_int(record.w)};
#if INSTANCES
    hit.instance = as_int(hits[FLOAT4S_PER_HIT * i + 1].x);
#endif
    return hit;
}

// Sets the point and the unit geometric normal of a hit; ray, primitive, point and normal are in the primitive's space.
DEVICE void primitive_surface(const Primitive p, const Hit hit, float3 origin, float3 direction, Surface *s) {
    float3 corner = xyz(p.v0);
    if (SPHERES && p.edge2.w > 0.0f) {
        s->normal = primitive_normal(p, madd(direction, hit.t, origin));
        s->point = madd(s->normal, p.edge2.w, corner);
    } else {
        s->normal = primitive_normal(p, corner);
        s->point = madd(xyz(p.edge2), hit.v, madd(xyz(p.edge1), hit.u, corner));
    }
}

#if SPHERE_TEXTURES
// Sets the texture coordinates and tangents of a sphere at its unit normal s->normal, in the sphere's space.
DEVICE void set_sphere_frame(Surface *s, TangentFrame *frame) {
    s->texcoords = sphere_texcoords(s->normal);
    sphere_frame(s->normal, frame);
}
#endif

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
    s.material = material_of(GEOMETRY_ARGS, hit);
    s.in_light_table = true;
    s.offset = 0.0f;
#if TEXTURED
    float3 smooth = make_float3(0.0f, 0.0f, 0.0f);
    TangentFrame frame = {0, smooth, smooth, smooth, smooth, false};
    s.vertex_color = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    for (int set = 0; set < UV_SETS; set++) s.texcoords.sets[set] = make_float2(0.0f, 0.0f);
#endif
#if DISTANCE_FIELDS
    if (hit.primitive >= FIELD_PRIM_BASE) {
        DistanceField f = fields[hit.primitive - FIELD_PRIM_BASE];
        s.point = madd(direction, hit.t, xyz(origin));
        s.normal = field_normal(f, s.point);
        s.offset = 2.0f * f.detail * f.scale;
        s.in_light_table = false;
    } else
#endif
    {
        Primitive p = primitive_of(GEOMETRY_ARGS, hit);
#if DEFORMS
        int closing = closing_of(GEOMETRY_ARGS, hit);
        Primitive end = closing >= 0 ? primitive_at(closing_primitives, closing) : p;
        p = primitive_at_time(p, end, origin.w);
#endif
#if TEXTURED
        frame.prim_id = as_uint(p.v0.w);
        s.texcoords = texcoords_at(attributes, frame.prim_id, hit.u, hit.v);
        smooth = interpolated_normal(attributes, frame.prim_id, hit.u, hit.v);
        frame.tangent = interpolated_tangent(attributes, frame.prim_id, hit.u, hit.v, &frame.flip_bitangent);
        s.vertex_color = interpolated_color(attributes, frame.prim_id, hit.u, hit.v);
#if DEFORMS
        uint end_id = as_uint(end.v0.w);
        smooth = lerp3(smooth, interpolated_normal(attributes, end_id, hit.u, hit.v), origin.w);
        float3 end_tangent = interpolated_tangent(attributes, end_id, hit.u, hit.v, &frame.flip_bitangent);
        frame.tangent = lerp3(frame.tangent, end_tangent, origin.w);
#endif
        frame.edge1 = xyz(p.edge1);
        frame.edge2 = xyz(p.edge2);
#endif
#if INSTANCES
        if (hit.instance >= 0) {
            Matrix m = matrix_at_time(matrices_open, matrices_close, hit.instance, origin.w), in = inverse(m);
            primitive_surface(p, hit, transform(in, xyz(origin), 1.0f), transform(in, direction, 0.0f), &s);
#if SPHERE_TEXTURES
            if (is_globe(attributes, p)) set_sphere_frame(&s, &frame);
#endif
            s.point = transform(m, s.point, 1.0f);
            s.normal = normalize_fma(transform_normal(m, s.normal));
            s.in_light_table = INSTANCED_LIGHTS && !(p.edge2.w > 0.0f);
#if TEXTURED
            smooth = transform_normal(m, smooth);
            frame.tangent = transform(m, frame.tangent, 0.0f);
            frame.edge1 = transform(m, frame.edge1, 0.0f);
            frame.edge2 = transform(m, frame.edge2, 0.0f);
#endif
        } else
#endif
        {
            primitive_surface(p, hit, xyz(origin), direction, &s);
#if SPHERE_TEXTURES
            if (is_globe(attributes, p)) set_sphere_frame(&s, &frame);
#endif
        }
    }
    s.front_face = dot_fma(s.normal, direction) < 0.0f;
    s.ray_direction = direction;
#if TEXTURED
    s.geometric_normal = s.front_face ? s.normal : -s.normal;
    MaterialTextures tex = material_textures[s.material];
    frame.geometric_normal = s.normal;
    float3 normal = smooth_normal(smooth, s.normal);
    if (CLEARCOAT) {
        float3 coat = normal;
        WITH_SLOT(clearcoat_normal, int slot = tex.clearcoat_normal; float scale = tex.clearcoat_normal_scale;
                  if (slot >= 0) coat = perturbed_normal(TEXTURE_ARGS, slot, scale, s.texcoords, normal, frame);)
        s.clearcoat_normal = clamp_shading_normal(s.front_face ? coat : -coat, direction);
    }
    if (tex.normal >= 0)
        normal = perturbed_normal(TEXTURE_ARGS, tex.normal, tex.normal_scale, s.texcoords, normal, frame);
    s.normal = clamp_shading_normal(s.front_face ? normal : -normal, direction);
    set_horizontal_tangent(&s);
    if (ANISOTROPY && highlight_tangent(TEXTURE_ARGS, frame, &s.tangent)) s.bitangent_sign = -s.bitangent_sign;
#else
    if (!s.front_face) s.normal = -s.normal;
    set_horizontal_tangent(&s);
#endif
    return s;
}

// Returns the material at a surface point: its record, multiplied by textures and vertex colors.
DEVICE Material material_at(GEOMETRY_PARAMS, GLOBAL const Material *materials, const Surface s) {
    Material m = materials[s.material];
#if TEXTURED
    m = apply_textures(TEXTURE_ARGS, m, s.material, s.texcoords);
    m.color = m.color * s.vertex_color;
#endif
    return m;
}

// Returns the unit geometric normal on the ray's side.
DEVICE float3 geometric_normal(const Surface s) { return TEXTURED ? s.geometric_normal : s.normal; }

#if TEXTURED
// Returns the emission texture times alpha at a point of an emitter, by which its radiance is multiplied: at
// barycentric coordinates (u, v) of a triangle, or at the unit normal `normal` of a sphere.
DEVICE float3 emission_texture_at(GEOMETRY_PARAMS, const Primitive p, float u, float v, float3 normal) {
    MaterialTextures tex = material_textures[as_int(p.edge1.w)];
    Texcoords texcoords = texcoords_at(attributes, as_uint(p.v0.w), u, v);
#if SPHERE_TEXTURES
    if (is_globe(attributes, p)) texcoords = sphere_texcoords(normal);
#endif
    float4 white = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    float4 emission = tex.emissive >= 0 ? sample_texture(textures, texels, tex.emissive, texcoords, true) : white;
    float vertex_alpha = interpolated_color(attributes, as_uint(p.v0.w), u, v).w;
    float alpha = tex.alpha_mode == ALPHA_OPAQUE ? 1.0f : alpha_at(TEXTURE_ARGS, tex, texcoords, vertex_alpha);
    if (tex.alpha_mode == ALPHA_MASK) alpha = alpha >= tex.alpha_cutoff ? 1.0f : 0.0f;
    return xyz(emission) * alpha;
}
#endif

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
