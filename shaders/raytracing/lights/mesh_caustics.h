// Caustics of triangle meshes: next-event estimation of a light through a mesh of smooth glass, by two refractions, or
// off a mesh of glass or a mirror, by one reflection (T. Zeltner, I. Georgiev and W. Jakob 2020, "Specular manifold
// sampling for rendering high-frequency caustics and glints": the unbiased estimate).
// - A seed is a direction towards a random point of the mesh's bounding box. Newton's method turns it until the ray
//   that leaves the mesh meets the light's point: a solution.
// - The probability p with which a seed finds that solution is not known. But the number of trials from further seeds,
//   until one finds the solution again, is 1 / p on average, and the estimate is multiplied by it. With n solutions
//   that makes n + 1 searches on average.
// - The MIS weights beside paths that find the same light by chance take p for 1: any weights that sum to 1 are
//   unbiased.
// - Shading normals are interpolated, and the ray's derivatives by its first direction are exact (H. Igehy 1999,
//   "Tracing ray differentials").
// Included by raytracing/lights/caustics.h with CAUSTIC_MESHES, which declares ChainEnd and the bits of a chain.
//
// A mesh is two rows of float4, where a ball has its two: center and radius of the sphere around its bounding box | its
// material's index, half the box's width, half its height, and minus its index of refraction, above -1 for a mirror.

#include "raytracing/bend_normals.h"

#define MAX_TRIALS 1024  // for one solution: a solution of a lower p gets too little light
#define NEWTON_STEPS 16
#define SAME_DIRECTION 1e-7f  // squared distance of two solutions' unit directions that are one

// A ray of a chain with its differentials.
typedef struct {
    float4 origin;  // w: the time in the shutter interval
    float3 direction, weight;  // unit; the product of the reflectances and transmittances so far
    float3 points[2], directions[2];  // derivatives of origin and direction by two angles of the first direction
} Bundle;

// Traces the ray *b to the first surface and refracts it there, or with `reflects` reflects it; updates the
// differentials and the weight. `ior` is the index of refraction, below 1 for a mirror; `inside`: the ray arrives from
// within the mesh. Returns false if the surface is not of `material`, is met from the other side, or lets no light
// pass.
DEVICE bool cross_mesh(Bundle *b, int material, float ior, bool inside, bool reflects, SCENE_PARAMS) {
    float3 d = b->direction;
    Hit hit = scene_closest_hit(GEOMETRY_ARGS, b->origin, d);
    if (hit.primitive < 0 || hit.primitive >= FIELD_PRIM_BASE || INSTANCE_OF(hit) >= 0) return false;
    Primitive p = primitive_of(GEOMETRY_ARGS, hit);
    if (as_int(p.edge1.w) != material || p.edge2.w > 0.0f) return false;
    Surface s = surface_at(GEOMETRY_ARGS, hit, b->origin, d);
    if (s.front_face == inside) return false;
    Material m = material_at(GEOMETRY_ARGS, materials, s);
    bend_normals(&s, m);
    float eta = inside ? ior : 1.0f / ior, cosine = -dot_fma(d, s.normal), fresnel = 1.0f;
    float cosine2_t = fma(-eta * eta, fma(-cosine, cosine, 1.0f), 1.0f), cosine_t = sqrt(max_nnan(cosine2_t, 0.0f));
    if (ior > 1.0f && cosine2_t > 0.0f) fresnel = fresnel_dielectric(cosine, cosine_t, eta);
    if (reflects) {  // `bend` below becomes 2 cosine
        eta = 1.0f;
        cosine_t = -cosine;
    }
    float weight = reflects ? fresnel : 1.0f - fresnel, bend = fma(eta, cosine, -cosine_t);
    b->direction = normalize_fma(madd(s.normal, bend, d * eta));
    if (!(weight > 0.0f) || !on_geometric_side(s, b->direction, !reflects)) return false;
    b->weight = b->weight * base_color(m) * weight;
    b->origin = offset_ray_origin(s, !reflects, b->origin.w);
    // The differentials (H. Igehy): `moved` is the hit's derivative along the triangle, `turned` the normal's, by the
    // derivatives du, dv of the barycentric coordinates; then the derivative of direction = eta d + bend normal.
    float3 across = cross_fma(xyz(p.edge1), xyz(p.edge2));
    float scale = 1.0f / dot_fma(across, across);
    for (int k = 0; k < 2; k++) {
        float3 moved = madd(b->directions[k], hit.t, b->points[k]), turned = splat3(0.0f);
        moved = madd(d, -dot_fma(moved, across) / dot_fma(d, across), moved);  // along the triangle
#if TEXTURED
        float du = dot_fma(cross_fma(moved, xyz(p.edge2)), across) * scale;
        float dv = dot_fma(cross_fma(xyz(p.edge1), moved), across) * scale;
        float3 normal = interpolated_normal(attributes, as_uint(p.v0.w), hit.u, hit.v);
        float size = sqrt(dot_fma(normal, normal)) * (dot_fma(normal, s.normal) < 0.0f ? -1.0f : 1.0f);
        turned = interpolated_normal(attributes, as_uint(p.v0.w), hit.u + du, hit.v + dv) - normal;
        if (size != 0.0f) turned = turned * (1.0f / size);
        turned = madd(s.normal, -dot_fma(turned, s.normal), turned);
#endif
        float rate = -dot_fma(b->directions[k], s.normal) - dot_fma(d, turned);  // of the cosine
        rate *= eta - eta * eta * cosine / cosine_t;  // of `bend`
        b->directions[k] = madd(s.normal, rate, madd(turned, bend, b->directions[k] * eta));
        b->points[k] = moved;
    }
    return true;
}

// Takes a ray through a mesh by two refractions, or off it by one reflection.
DEVICE bool pass_mesh(Bundle *b, int material, float ior, bool reflects, SCENE_PARAMS) {
    return cross_mesh(b, material, ior, false, reflects, SCENE_ARGS) &&
           (reflects || cross_mesh(b, material, ior, true, false, SCENE_ARGS));
}

// The inverse of the probability with which add_mesh_caustic chooses a mesh and one of the two ways.
#define MESH_CHAIN_COUNT(ior, reflects) \
    ((float)BALL_COUNT * ((ior) < 1.0f ? 1.0f : (reflects) ? 1.0f / GLASS_REFLECTS : 1.0f / (1.0f - GLASS_REFLECTS)))

// Returns a ray with its derivatives by two angles of its direction.
DEVICE Bundle make_bundle(float4 origin, float3 direction) {
    Frame f = make_frame(direction);
    Bundle b = {origin, direction, splat3(1.0f), {splat3(0.0f), splat3(0.0f)}, {f.tangent, f.bitangent}};
    return b;
}

// Returns the area, across the ray at `distance`, that a unit solid angle of the chain's first direction covers; for
// suns, the solid angle of the ray's direction. *x and *y become the derivatives of the ray's point there, or of its
// direction.
DEVICE float bundle_area(const Bundle b, float distance, bool is_sun, float3 *x, float3 *y) {
    *x = madd(b.directions[0], is_sun ? 1.0f : distance, is_sun ? splat3(0.0f) : b.points[0]);
    *y = madd(b.directions[1], is_sun ? 1.0f : distance, is_sun ? splat3(0.0f) : b.points[1]);
    return dot_fma(cross_fma(*x, *y), b.direction);
}

// Returns the MIS weight of add_mesh_caustic for a path that has hit a lamp at s, found by tracing its chain backwards
// from there, which covers the same area. The pdf of the chain's first direction is bundle_area() over `scale`.
DEVICE float mesh_weight_of_hit(const LaunchParams params, int chain, float4 mesh, const Surface s, float time,
                                float scale, SCENE_PARAMS) {
    Bundle b = make_bundle(offset_ray_origin(s, false, time), -s.ray_direction);
    bool reflects = (chain & CHAIN_REFLECTS) != 0;
    if (!pass_mesh(&b, as_int(mesh.x), -mesh.w, reflects, SCENE_ARGS)) return 0.0f;
    float3 x, y;
    scale *= MESH_CHAIN_COUNT(-mesh.w, reflects);
    Hit hit = scene_closest_hit(GEOMETRY_ARGS, b.origin, b.direction);
    return weight_beside_paths(chain, scale / fabs(bundle_area(b, hit.t, false, &x, &y)));
}

// Turns *direction, a unit vector at `origin`, by Newton's method until the ray that leaves the mesh meets the light's
// point `end`. Returns false if it does not get there. *b becomes the ray that leaves the mesh, *area its bundle_area()
// at the light. A step that makes the error larger is halved, at most five times.
DEVICE bool find_chain(float4 origin, int material, float ior, bool reflects, const ChainEnd end, float3 *direction,
                       Bundle *b, float *area, SCENE_PARAMS) {
    float3 before = *direction, step = splat3(0.0f);
    float least = FLT_MAX, fraction = 1.0f;
    NO_UNROLL
    for (int i = 0; i < NEWTON_STEPS; i++) {
        Bundle ray = make_bundle(origin, *direction);
        bool passes = pass_mesh(&ray, material, ior, reflects, SCENE_ARGS);
        float3 to_end = IS_SUN(end) ? end.light.direction : end.point - xyz(ray.origin);
        float distance = dot_fma(to_end, ray.direction);
        float3 error = madd(ray.direction, -distance, to_end);
        float size = dot_fma(error, error);
        if (!passes || !(distance > 0.0f) || !(size < least)) {
            if (!(fraction > 0.05f) || i == 0) return false;
            fraction *= 0.5f;
            *direction = normalize_fma(madd(step, fraction, before));
            continue;
        }
        float3 x, y;
        float determinant = bundle_area(ray, distance, IS_SUN(end), &x, &y);
        if (!(fabs(determinant) > 1e-20f)) return false;
        before = *direction;
        least = size;
        fraction = 1.0f;
        Frame f = make_frame(before);
        // Cramer's rule for a x + b y = error across the ray
        step = (f.tangent * dot_fma(cross_fma(error, y), ray.direction) +
                f.bitangent * dot_fma(cross_fma(x, error), ray.direction)) *
               (1.0f / determinant);
        float length2 = dot_fma(step, step);
        step = step * min_nnan(1.0f, 0.5f / sqrt(max_nnan(length2, 0.25f)));  // at most half a radian
        *direction = normalize_fma(before + step);
        if (length2 < 0.1f * SAME_DIRECTION) {
            *b = ray;
            *area = fabs(determinant);
            return true;
        }
    }
    return false;
}

// Returns the direction from a point to a random point of a mesh's bounding box.
DEVICE float3 chain_seed(float3 from, float4 ball, float4 mesh, RandomStream *stream) {
    // half the box's depth, by the radius of its sphere
    float z = sqrt(max_nnan(fma(ball.w, ball.w, -fma(mesh.y, mesh.y, mesh.z * mesh.z)), 0.0f));
    float a = fma(2.0f, next_random(stream), -1.0f), b = fma(2.0f, next_random(stream), -1.0f);
    float c = fma(2.0f, next_random(stream), -1.0f);
    return normalize_fma(xyz(ball) + make_float3(a * mesh.y, b * mesh.z, c * z) - from);
}

// Adds to the path's radiance the light of one chain, from the surface s by way of a mesh to `end`: finds a solution,
// evaluates it, then counts trials until another seed finds it again.
DEVICE void add_mesh_caustic(const LaunchParams params, int depth, const Material m, const Surface s, float4 ball,
                             float4 mesh, const ChainEnd end, RandomStream *stream, Path *path, SCENE_PARAMS) {
    int material = as_int(mesh.x);
    float ior = -mesh.w, area;
    bool reflects = ior < 1.0f || next_random(stream) < GLASS_REFLECTS;
    if (depth + (reflects ? 2 : 3) >= params.max_depth) return;
    float3 direction = chain_seed(s.point, ball, mesh, stream);
    bool crosses = dot_fma(direction, geometric_normal(s)) < 0.0f;
    float4 origin = offset_ray_origin(s, crosses, path->origin.w), throughput = path->throughput,
           medium = path->radiance;
    Bundle b;
    if (!find_chain(origin, material, ior, reflects, end, &direction, &b, &area, SCENE_ARGS)) return;
    if (crosses) cross_surface(m, s, &throughput, &medium);
    float4 bsdf = eval_bsdf_pdf(m, s, direction);
    if (!(bsdf.w > 0.0f) || !on_geometric_side(s, direction, crosses) || !outside_media(throughput, medium)) return;
    float scale = MESH_CHAIN_COUNT(ior, reflects) / (area * end.light.pdf);
    if (!IS_SUN(end)) scale *= end.light.distance * end.light.distance;
    if (IS_AREA(end)) scale *= -dot_fma(end.normal, b.direction);
    if (IS_AREA(end)) scale *= weight_beside_paths(pdf_number(bsdf.w), scale);
    float3 factor = end_radiance(params, end, xyz(b.origin), lights);
    float3 value = xyz(bsdf) * b.weight * factor * xyz(throughput) * scale;
    if (!(largest_of3(value) > 0.0f) || !(largest_of3(value) < FLT_MAX) || !sees_end(end, b.origin, GEOMETRY_ARGS))
        return;
    int trials = 1;
    NO_UNROLL
    for (; trials < MAX_TRIALS; trials++) {
        float3 other = chain_seed(s.point, ball, mesh, stream);
        if ((dot_fma(other, geometric_normal(s)) < 0.0f) != crosses) continue;
        if (!find_chain(origin, material, ior, reflects, end, &other, &b, &area, SCENE_ARGS)) continue;
        if (dot_fma(other - direction, other - direction) < SAME_DIRECTION) break;
    }
    value = value * (float)trials;
    path->radiance = add_contribution(path->radiance, clamp_contribution(params, depth + 2, with_w(value, 0.0f)));
}
