// The geometry of a scene: the BVH of static shapes, instances, distance fields, and textures on them; intersection of
// rays with all of them, and the surface point of a hit. SCENE_PARAMS stands among the parameters of kernels and
// functions, SCENE_ARGS among the arguments; MAYBE_ macros begin with a comma and are empty if the scene has no such
// part.
#include "bvh/geometry.h"
#if TEXTURED
#include "raytracing/texture.h"
#define MAYBE_TEXTURE_PARAMS , TEXTURE_PARAMS
#define MAYBE_TEXTURE_ARGS , TEXTURE_ARGS
#else
#define MAYBE_TEXTURE_PARAMS
#define MAYBE_TEXTURE_ARGS
#endif
#if ALPHA_TEST
#include "raytracing/alpha_test.h"
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
#define SCENE_PARAMS                                                                                     \
    GLOBAL const float4 *nodes, GLOBAL const float4 *primitives MAYBE_INSTANCE_PARAMS MAYBE_FIELD_PARAMS \
                                    MAYBE_TEXTURE_PARAMS MAYBE_GUIDE_PARAMS
#define SCENE_ARGS nodes, primitives MAYBE_INSTANCE_ARGS MAYBE_FIELD_ARGS MAYBE_TEXTURE_ARGS MAYBE_GUIDE_ARGS

#define USE_BVH8 (BVH8 && HAS_MOVEMASK)
// Traversal of one ray in the scene's BVH layout: TRAVERSE(closest_hit) and TRAVERSE(any_hit) take NODE_POINTER.
#if USE_BVH8
#define TRAVERSE(search) search##_bvh8
#define NODE_POINTER (GLOBAL const float *)nodes
#else
#define TRAVERSE(search) search
#define NODE_POINTER nodes
#endif

// The primitive of a hit, in the space of its BVH; not for distance fields.
DEVICE Primitive primitive_of(SCENE_PARAMS, const Hit hit) {
#if INSTANCES
    if (hit.instance >= 0) return primitive_at(blas_primitives, hit.primitive);
#endif
    return primitive_at(primitives, hit.primitive);
}

#if DEFORMS
// Index of closing_primitives of a hit on a shape that deforms, else -1.
DEVICE int closing_of(SCENE_PARAMS, const Hit hit) {
    if (hit.instance < 0 || instance_records[hit.instance].closing < 0) return -1;
    InstanceRecord record = instance_records[hit.instance];
    return hit.primitive - record.primitive + record.closing;
}
#endif

DEVICE int material_of(SCENE_PARAMS, const Hit hit) {
#if INSTANCES
    if (hit.instance >= 0 && instance_records[hit.instance].material >= 0)
        return instance_records[hit.instance].material;
#endif
#if DISTANCE_FIELDS
    if (hit.primitive >= FIELD_PRIM_BASE) return fields[hit.primitive - FIELD_PRIM_BASE].material;
#endif
    return as_int(primitive_of(SCENE_ARGS, hit).edge1.w);
}

// What of the scene is not in the static BVH: replaces the closest hit there by a closer one.
DEVICE void hit_fields_and_instances(SCENE_PARAMS, float4 origin, float3 direction, Hit *hit) {
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

// The closest hit of a ray of unit direction. origin.w is the time in the shutter interval, 0 to 1.
DEVICE Hit scene_closest_hit(SCENE_PARAMS, float4 origin, float3 direction) {
    Hit hit = TRAVERSE(closest_hit)(NODE_POINTER, primitives, xyz(origin), direction, FLT_MAX FILTER_ARGS_OF(-1));
    hit_fields_and_instances(SCENE_ARGS, origin, direction, &hit);
    return hit;
}

DEVICE float3 primitive_normal(const Primitive p, float3 point) {
    if (SPHERES && p.edge2.w > 0.0f) return normalize_fma(point - xyz(p.v0));
    return normalize_fma(cross_fma(xyz(p.edge1), xyz(p.edge2)));
}

// Whether anything that is not in the static BVH is hit before t_max.
DEVICE bool any_field_or_instance(SCENE_PARAMS, float4 origin, float3 direction, float t_max) {
    bool found = false;
#if INSTANCES
    Hit end = {t_max, 0.0f, 0.0f, -1};
    int instance = -1;
    found = traverse_tlas(INSTANCE_ARGS, origin, direction, true, &end, &instance FILTER_ARGS_OF(-1));
#endif
#if DISTANCE_FIELDS
    for (int k = 0; k < DISTANCE_FIELDS && !found; k++)
        found = sphere_trace(fields[k], xyz(origin), direction, t_max) < FLT_MAX;
#endif
    return found;
}

// Whether anything is hit before t_max.
DEVICE bool scene_any_hit(SCENE_PARAMS, float4 origin, float3 direction, float t_max) {
    return TRAVERSE(any_hit)(NODE_POINTER, primitives, xyz(origin), direction, t_max FILTER_ARGS_OF(-1)) ||
           any_field_or_instance(SCENE_ARGS, origin, direction, t_max);
}

#if HAS_MOVEMASK
// scene_closest_hit of the `active` rays of a packet; with accept_first_hit scene_any_hit, which sets the packet's
// primitive index to one of 0 or more, or to -1. The hits are stored in the packet.
DEVICE void scene_packet_hits(SCENE_PARAMS, Packet *packet, uint active, bool accept_first_hit) {
#if USE_BVH8 && !INSTANCES && !DISTANCE_FIELDS
    traverse_packet((GLOBAL const float *)nodes, primitives, packet, active, accept_first_hit FILTER_ARGS_OF(-1));
#else
    for (; active; active &= active - 1u) {
        uint j = ctz(active);
        float4 origin = with_w(float3_at(packet->origin, j), packet->time[j]);
        float3 direction = float3_at(packet->direction, j);
        if (!accept_first_hit)
            packet_set_hit(packet, j, scene_closest_hit(SCENE_ARGS, origin, direction));
        else
            packet->prim_index.s[j] = scene_any_hit(SCENE_ARGS, origin, direction, packet->t.s[j]) ? 0 : -1;
    }
#endif
}
#endif

DEVICE void store_hit(GLOBAL float4 *hits, uint i, const Hit hit) {
    hits[FLOAT4S_PER_HIT * i] = make_float4(hit.t, hit.u, hit.v, as_float(hit.primitive));
#if INSTANCES
    hits[FLOAT4S_PER_HIT * i + 1].x = as_float(hit.instance);
#endif
}

DEVICE Hit stored_hit(GLOBAL const float4 *hits, uint i) {
    float4 found = hits[FLOAT4S_PER_HIT * i];
    Hit hit = {found.x, found.y, found.z, as_int(found.w)};
#if INSTANCES
    hit.instance = as_int(hits[FLOAT4S_PER_HIT * i + 1].x);
#endif
    return hit;
}

// Point and normal of a hit; the ray is in the primitive's own space.
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
// Texture coordinates and tangents of a sphere whose unit normal is s->normal.
DEVICE void wrap_globe(Surface *s, TangentFrame *frame) {
    s->texcoords = sphere_texcoords(s->normal);
    sphere_frame(s->normal, frame);
}
#endif

DEVICE Surface surface_at(SCENE_PARAMS, const Hit hit, float4 origin, float3 direction) {
    Surface s;
    s.material = material_of(SCENE_ARGS, hit);
    s.in_light_table = true;
#if DISTANCE_FIELDS
    s.offset = 0.0f;
#endif
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
        Primitive p = primitive_of(SCENE_ARGS, hit);
#if DEFORMS
        int closing = closing_of(SCENE_ARGS, hit);
        Primitive end = closing >= 0 ? primitive_at(closing_primitives, closing) : p;
        p.v0 = lerp_xyz(p.v0, end.v0, origin.w);
        p.edge1 = lerp_xyz(p.edge1, end.edge1, origin.w);
        p.edge2 = lerp_xyz(p.edge2, end.edge2, origin.w);
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
            if (is_globe(attributes, p)) wrap_globe(&s, &frame);
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
            if (is_globe(attributes, p)) wrap_globe(&s, &frame);
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
#if CLEARCOAT
    float3 coat = normal;
#if TEXTURE_SLOTS & SLOT_CLEARCOAT_NORMAL
    if (tex.clearcoat_normal >= 0)
        coat = perturbed_normal(TEXTURE_ARGS, tex.clearcoat_normal, tex.clearcoat_normal_scale, s.texcoords, normal,
                                frame);
#endif
    s.clearcoat_normal = clamp_shading_normal(s.front_face ? coat : -coat, direction);
#endif
    if (tex.normal >= 0)
        normal = perturbed_normal(TEXTURE_ARGS, tex.normal, tex.normal_scale, s.texcoords, normal, frame);
    s.normal = clamp_shading_normal(s.front_face ? normal : -normal, direction);
#else
    if (!s.front_face) s.normal = -s.normal;
#endif
#if ANISOTROPY
    s.tangent = make_float3(s.normal.z, 0.0f, -s.normal.x);  // horizontal
    if (!(dot_fma(s.tangent, s.tangent) > 1e-8f)) s.tangent = make_float3(1.0f, 0.0f, 0.0f);
    s.bitangent_sign = s.front_face ? 1.0f : -1.0f;
#if TEXTURED
    if (highlight_tangent(TEXTURE_ARGS, frame, &s.tangent)) s.bitangent_sign = -s.bitangent_sign;
#endif
#endif
    return s;
}

// The material at a surface point, with textures and vertex colors applied.
DEVICE Material material_at(SCENE_PARAMS, GLOBAL const Material *materials, const Surface s) {
    Material m = materials[s.material];
#if TEXTURED
    m = apply_textures(TEXTURE_ARGS, m, material_textures[s.material], s.texcoords);
    m.color = m.color * s.vertex_color;
#endif
    return m;
}

// The geometric normal on the ray's side.
DEVICE float3 geometric_normal(const Surface s) {
#if TEXTURED
    return s.geometric_normal;
#else
    return s.normal;
#endif
}

#if TEXTURED
// The normal bent until the mirrored ray is above the geometric surface: without, smooth metals have black rims (A.
// Keller et al. 2017, "The Iray Light Transport Simulation and Rendering System", appendix A).
DEVICE float3 normal_that_reflects(const Surface s, float3 normal) {
    float3 mirrored = reflect(s.ray_direction, normal);
    float height = dot_fma(mirrored, s.geometric_normal),
          least = min_nnan(-0.5f * dot_fma(s.ray_direction, s.geometric_normal), 0.01f);
    if (height >= least) return normal;
    return normalize_fma(normalize_fma(madd(s.geometric_normal, least - height, mirrored)) - s.ray_direction);
}

// Bends the normals by the fraction of light that mirror-like lobes reflect: a diffuse body keeps its normal but at
// rims.
DEVICE void bend_normals(Surface *s, const Material m) {
#if CLEARCOAT
    s->clearcoat_normal = normal_that_reflects(*s, s->clearcoat_normal);
#endif
    float weight = m.kind == MATERIAL_MIRROR || m.kind == MATERIAL_CONDUCTOR ? 1.0f : 0.0f;
    if (m.kind == MATERIAL_METALLIC || m.kind == MATERIAL_PRINCIPLED)
        weight = fma(1.0f - m.metallic, schlick_weight(-dot_fma(s->normal, s->ray_direction)), m.metallic);
    if (weight > 0.0f)
        s->normal = normalize_fma(madd(normal_that_reflects(*s, s->normal) - s->normal, weight, s->normal));
}

// Emission texture times alpha at a point of an emitter, by which its radiance is multiplied: at barycentric
// coordinates (u, v) of a triangle, or where the unit normal of a sphere is `normal`.
DEVICE float3 emission_texture_at(SCENE_PARAMS, const Primitive p, float u, float v, float3 normal) {
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

// Whether a direction on one side of the shading normal lies on the same side of the geometric normal; if not, light
// would leak through the surface.
DEVICE bool on_geometric_side(const Surface s, float3 direction, bool transmits) {
#if TEXTURED
    return (dot_fma(direction, s.geometric_normal) > 0.0f) != transmits;
#else
    return true;
#endif
}

// The origin of the next ray, offset to the side that the last ray came from, or to the other side if the path
// `transmits`.
DEVICE float4 offset_ray_origin(const Surface s, bool transmits, float time) {
    float3 side = transmits ? -geometric_normal(s) : geometric_normal(s);
#if DISTANCE_FIELDS
    return with_w(offset_ray(madd(side, s.offset, s.point), side), time);
#else
    return with_w(offset_ray(s.point, side), time);
#endif
}

// The id of a hit primitive, from 1, in the order before the BVH sorted them; instances have the ids of their shape.
DEVICE uint primitive_id(SCENE_PARAMS, const Hit hit) {
#if DISTANCE_FIELDS
    if (hit.primitive >= FIELD_PRIM_BASE) return (uint)hit.primitive + 1u;
#endif
    return as_uint(primitive_of(SCENE_ARGS, hit).v0.w) + 1u;
}
