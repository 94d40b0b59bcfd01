// Path guiding: some directions of a path are sampled towards where photons came from (H. W. Jensen 1995, "Importance
// Driven Path Tracing using the Photon Map"). Photons are sorted into the leaves of k-d trees. A leaf has GUIDE_LOBES
// lobes of equal weight, each about a place that photons came from, so that the lobes turn as the point moves (L.
// Ruppert et al. 2020, "Robust Fitting of Parallax-Aware Mixtures for Path Guiding"); renderer/raytracing/guiding.py
// makes them. A direction comes from the lobes with probability Surface.guided and from the BSDF else, and counts by
// the pdf of the mixture: whatever the photons did, the estimate stays unbiased.
// Words of `guide`: twelve trees, by the axis nearest to the surface's normal (+x, -x, +y, -y, +z, -z), those of glass
// behind those of other surfaces: 32 times the first leaf, plus the depth, or GUIDE_NONE for a tree without photons;
// the first word of the leaves; three unused; then the nodes.
// Trees are complete: the first of a tree's 2^depth words is unused, the second is the root, and node i has the
// children 2 i and 2 i + 1, of which those at the depth are leaves. A node is the coordinate of its split, with the
// axis in the lowest two bits. A leaf is the x, the y and the z of its lobes' places, and the squares of their sizes.
// A lobe's pdf at the angle theta from its axis is a (a + 2) / (4 pi (a + 1 - cos theta)^2), with a its squared size
// over the squared distance: half of it lies where 1 - cos theta is below about a, and the other half falls slowly.
#include "raytracing/surface.h"
#define GUIDE_LOBES 16  // the same in guiding.py
#define GUIDE_FACES 6
#define GUIDE_LEAVES (2 * GUIDE_FACES)  // the word that says where leaves begin
#define GUIDE_NODES 16
#define GUIDE_DEPTH_BITS 5
#define GUIDE_NONE 0xffffffffu
#define GUIDED_DIFFUSE 0.66f  // 1 would leave no way but that of the photons; 0.5 to 0.75 differ little
#define GUIDED_GLOSSY 0.5f
#define GUIDED_GLASS 0.15f
#define GUIDE_DIMENSION 0x4000u  // from that of the bounce on: of the choice between photons and BSDF
#if GUIDING || PHOTONS
// The probability with which a material's directions come from the photons: narrow lobes of a BSDF
// sample better alone.
DEVICE float guided_fraction(const Material m) {
    switch (m.kind) {
    case MATERIAL_DIFFUSE:
    case MATERIAL_CHECKER:
        return GUIDED_DIFFUSE;
#if METALLIC
    case MATERIAL_METALLIC:
        return m.roughness >= 0.4f ? GUIDED_GLOSSY : GUIDED_GLOSSY * (1.0f - m.metallic);
#endif
#if GLASS
    case MATERIAL_GLASS:
        return m.roughness >= 0.4f && glass_is_rough(m) ? GUIDED_GLASS : 0.0f;
#endif
#if PRINCIPLED
    case MATERIAL_PRINCIPLED:
        return GUIDED_GLOSSY * (1.0f - m.transmission) * (m.roughness >= 0.4f ? 1.0f : 1.0f - m.metallic);
#endif
    }
    return 0.0f;
}

// The number of the tree of photons that reached a surface on the side of a normal. Glass has trees of its own: a leaf
// for a wall and for the glass before it would serve neither.
DEVICE int guide_tree(const Material m, float3 normal) {
    float x = fabs(normal.x), y = fabs(normal.y), z = fabs(normal.z);
    int first = m.kind == MATERIAL_GLASS ? GUIDE_FACES : 0;
    if (x >= y && x >= z) return first + (normal.x < 0.0f ? 1 : 0);
    if (y >= z) return first + (normal.y < 0.0f ? 3 : 2);
    return first + (normal.z < 0.0f ? 5 : 4);
}
#endif

#if GUIDING
// The leaf at a point; 0 if there is none.
DEVICE GLOBAL const float *guide_at(GLOBAL const uint *guide, int number, float3 point) {
    uint tree = guide[number], node = 1u;
    if (tree == GUIDE_NONE) return 0;
    uint first = tree >> GUIDE_DEPTH_BITS, depth = tree & ((1u << GUIDE_DEPTH_BITS) - 1u);
    for (uint level = 0u; level < depth; level++) {
        uint split = guide[GUIDE_NODES + first + node], axis = split & 3u;
        float place = axis == 0u ? point.x : axis == 1u ? point.y : point.z;
        node = 2u * node + (place >= as_float(split) ? 1u : 0u);
    }
    uint leaf = first + node - (1u << depth);
    return (GLOBAL const float *)(guide + guide[GUIDE_LEAVES] + leaf * (4u * GUIDE_LOBES));
}

// The pdf of a lobe times 4 pi, for offsets from the point to the lobe's place. F and U are float and uint or vectors
// of them. 1 - cos theta is half of the squared chord, which loses nothing to cancellation, and the roots and
// reciprocals are Newton's: they have the same bits on every device, and no branches, which IEEE's square root and
// division have on GPUs.
#define LOBE_PDF(F, U, x, y, z, size2, direction, pdf)                                                       \
    {                                                                                                        \
        F distance2_ = max_nnan(fma(z, z, fma(y, y, x * x)), (F)(1e-30f)), half_ = distance2_ * 0.5f;        \
        F root_ = as_##F((U)(0x5f375a86u) - (as_##U(distance2_) >> 1u));                                     \
        for (int k_ = 0; k_ < 2; k_++) root_ = root_ * fma(half_ * root_, -root_, (F)(1.5f));                \
        F dx_ = fma(x, root_, (F)(-direction.x)), dy_ = fma(y, root_, (F)(-direction.y));                    \
        F dz_ = fma(z, root_, (F)(-direction.z));                                                            \
        F from_axis_ = fma(half_, fma(dz_, dz_, fma(dy_, dy_, dx_ * dx_)), size2);                           \
        F reciprocal_ = as_##F((U)(0x7ef311c3u) - as_##U(from_axis_));                                       \
        for (int k_ = 0; k_ < 3; k_++) reciprocal_ = reciprocal_ * fma(from_axis_, -reciprocal_, (F)(2.0f)); \
        pdf = (size2 * reciprocal_) * (fma((F)(2.0f), distance2_, size2) * reciprocal_);                     \
    }

// The pdf per solid angle with which guide_direction samples a direction.
DEVICE float guide_pdf(GLOBAL const float *leaf, float3 point, float3 direction) {
#if HAS_MOVEMASK  // all lobes at once, with the same roundings
    float16 x = vload16(0, leaf) - point.x, y = vload16(1, leaf) - point.y, z = vload16(2, leaf) - point.z;
    float16 size2 = vload16(3, leaf), pdfs;
    LOBE_PDF(float16, uint16, x, y, z, size2, direction, pdfs)
    float8 eight = pdfs.lo + pdfs.hi;
    float4 four = eight.lo + eight.hi;
#else
    GLOBAL const float4 *rows = (GLOBAL const float4 *)leaf;  // a quarter of the loads
    float4 pdfs[GUIDE_LOBES / 4];
    for (int k = 0; k < GUIDE_LOBES / 4; k++) {
        float4 xs = rows[k], ys = rows[k + GUIDE_LOBES / 4], zs = rows[k + GUIDE_LOBES / 2];
        float4 size2 = rows[k + 3 * GUIDE_LOBES / 4];
#define LANE(c)                                                           \
    {                                                                     \
        float x = xs.c - point.x, y = ys.c - point.y, z = zs.c - point.z; \
        LOBE_PDF(float, uint, x, y, z, size2.c, direction, pdfs[k].c)     \
    }
        LANE(x) LANE(y) LANE(z) LANE(w)
#undef LANE
    }
    float4 four = (pdfs[0] + pdfs[2]) + (pdfs[1] + pdfs[3]);
#endif
    return ((four.x + four.z) + (four.y + four.w)) * (1.0f / (4.0f * PI * GUIDE_LOBES));
}

DEVICE float3 guide_direction(GLOBAL const float *leaf, float3 point, float u1, float u2) {
    float scaled = u1 * (float)GUIDE_LOBES;
    int k = min((int)scaled, GUIDE_LOBES - 1);
    float u = scaled - (float)k;
    float3 to = make_float3(leaf[k], leaf[k + GUIDE_LOBES], leaf[k + 2 * GUIDE_LOBES]) - point;
    float distance2 = max_nnan(dot_fma(to, to), 1e-30f), a = min_nnan(leaf[k + 3 * GUIDE_LOBES] / distance2, 1e6f);
    float one_minus_cos = 2.0f * a * u / fma(-2.0f, u, a + 2.0f);
    float sine = sqrt(max_nnan(one_minus_cos * (2.0f - one_minus_cos), 0.0f));
    float2 phi = cos_sin_2pi(u2);
    float3 axis = normalize_fma(to);
    return normalize_fma(local_to_world(axis, sine * phi.x, sine * phi.y, 1.0f - one_minus_cos));
}

// Samples a direction of the mixture. out->pdf is that of the BSDF alone: MIS weights sum to 1 with any pdf that both
// sides take, and photons do not lead to lights that next-event estimation sees.
DEVICE bool sample_bsdf(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    if (!(s.guided > 0.0f)) {
        if (!sample_material(m, s, sampler, dimension, out)) return false;
        out->unguided = out->weight;
        return true;
    }
    if (uniform_float(sample_bits(sampler, dimension + GUIDE_DIMENSION)) >= s.guided) {  // get_1d caches others
        if (!sample_material(m, s, sampler, dimension, out)) return false;
        if (out->pdf < 0.0f) {  // a mirror-like lobe, which the lobes never sample
            out->unguided = out->weight;
            out->weight = out->weight * (1.0f / (1.0f - s.guided));
            return true;
        }
    } else {
        float u1 = get_1d(sampler, dimension), u2 = get_1d(sampler, dimension + 1);
        out->direction = guide_direction(s.guide, s.point, u1, u2);
        out->transmits = dot_fma(out->direction, s.normal) < 0.0f;
    }
    float4 bsdf = eval_bsdf_pdf(m, s, out->direction);
    out->pdf = bsdf.w;
    if (!(bsdf.w > 0.0f)) return false;
    out->unguided = xyz(bsdf) * (1.0f / bsdf.w);
    float guide_density = guide_pdf(s.guide, s.point, out->direction);
    out->weight = xyz(bsdf) * (1.0f / fma(s.guided, guide_density - bsdf.w, bsdf.w));
    return true;
}

// Finds the photons near a surface point; of glass those on its other side, from where most of its light is.
DEVICE void find_guide(GLOBAL const uint *guide, const Material m, float3 geometric_normal, Surface *s) {
    s->guided = guided_fraction(m);
    float3 side = m.kind == MATERIAL_GLASS ? -geometric_normal : geometric_normal;
    s->guide = s->guided > 0.0f ? guide_at(guide, guide_tree(m, side), s->point) : 0;
    if (!s->guide) s->guided = 0.0f;
}
// What Russian roulette goes by. A path that turned to where much light comes from has a small throughput, and as much
// to find as any other: with photons it is the bounce's own weight that counts.
#define ROULETTE_WEIGHT(throughput, unguided) (unguided)
#else
#define sample_bsdf sample_material
#define ROULETTE_WEIGHT(throughput, unguided) xyz(throughput)
#endif
