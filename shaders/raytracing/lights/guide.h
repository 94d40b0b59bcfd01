// Path guiding: some directions of a path are sampled towards the origins of photons (H. W. Jensen 1995, "Importance
// Driven Path Tracing using the Photon Map"). renderer/raytracing/lights/guiding.py traces the photons (photons.cu),
// sorts them into the leaves of k-d trees and fits GUIDE_LOBES lobes of equal weight to each leaf. A lobe is a position
// in world space and a size, not a direction, so its direction changes with the shaded point (L. Ruppert et al. 2020,
// "Robust Fitting of Parallax-Aware Mixtures for Path Guiding"). sample_bsdf samples a direction from the lobes with
// probability Surface.guided, else from the BSDF, and weights it by the BSDF over the pdf of this mixture. So the
// estimate is unbiased, whatever the photons are.
//
// Words of the buffer `guide`:
//     0-11   twelve trees: six for the axis nearest to the surface's normal (+x, -x, +y, -y, +z, -z), six for glass.
//            A word is 32 times the tree's first leaf, plus the tree's depth; GUIDE_NONE for a tree without photons.
//     12     the first word of the leaves
//     16-    the nodes of all trees
// Trees are complete. Of a tree's 2^depth words the first is unused, the second is the root, and node i has the
// children 2 i and 2 i + 1; the children of the last level's nodes are leaves. A node is the coordinate of its
// splitting plane, a float whose lowest two bits hold the axis. A leaf is four arrays of GUIDE_LOBES floats: x, y and z
// of the lobes' positions, and their squared sizes.
//
// The pdf of a lobe at the angle theta from its axis is a (a + 2) / (4 pi (a + 1 - cos theta)^2) per solid angle, where
// a is the squared size over the squared distance to the lobe. Half of the lobe lies where 1 - cos theta is below about
// a; the rest falls off slowly.
// Macros of renderer/raytracing/kernels.py (see raytrace.cu): GUIDING.
#include "raytracing/surface.h"
#define GUIDE_LOBES 16  // the same in guiding.py
#define GUIDE_FACES 6
#define GUIDE_LEAVES (2 * GUIDE_FACES)  // the word that holds the first word of the leaves
#define GUIDE_NODES 16
#define GUIDE_DEPTH_BITS 5
#define GUIDE_NONE 0xffffffffu
#define GUIDE_DIMENSION 0x4000u  // added to the bounce's first dimension: the choice between lobes and BSDF

// Returns the number, 0 to 11, of the tree for a surface with this unit normal. Glass has separate trees, because lobes
// fitted to a wall together with the glass before it would suit neither.
DEVICE int guide_tree(const Material m, float3 normal) {
    float x = fabs(normal.x), y = fabs(normal.y), z = fabs(normal.z);
    int first = material_is_lit_from_behind(m) ? GUIDE_FACES : 0;
    if (x >= y && x >= z) return first + (normal.x < 0.0f ? 1 : 0);
    if (y >= z) return first + (normal.y < 0.0f ? 3 : 2);
    return first + (normal.z < 0.0f ? 5 : 4);
}

#if GUIDING
// Returns the leaf of tree `number` at a world-space point; 0 if the tree has no photons.
DEVICE GLOBAL const float *guide_at(GLOBAL const uint *guide, int number, float3 point) {
    uint tree = guide[number], node = 1u;
    if (tree == GUIDE_NONE) return 0;
    uint first = tree >> GUIDE_DEPTH_BITS, depth = tree & ((1u << GUIDE_DEPTH_BITS) - 1u);
    for (uint level = 0u; level < depth; level++) {
        uint split = guide[GUIDE_NODES + first + node], axis = split & 3u;
        float coordinate = axis == 0u ? point.x : axis == 1u ? point.y : point.z;
        node = 2u * node + (coordinate >= as_float(split) ? 1u : 0u);
    }
    uint leaf = first + node - (1u << depth);
    return (GLOBAL const float *)(guide + guide[GUIDE_LEAVES] + leaf * (4u * GUIDE_LOBES));
}

// Sets `pdf` to 4 pi times the pdf of a lobe. (x, y, z) is the vector from the point to the lobe's position, size2 the
// lobe's squared size. F and U are float and uint, or vectors of them. 1 - cos theta is computed as half of the squared
// chord, which avoids cancellation. Roots and reciprocals are Newton's: they have the same bits on every device, and no
// branches, unlike IEEE's square root and division on GPUs. Their first guesses come from the bits of the float.
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

// Returns the pdf per solid angle with which guide_direction samples `direction` at `point`.
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

// Samples a unit direction from the lobes of a leaf: u1 chooses the lobe and the angle to its axis, u2 the azimuth.
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

// Samples a direction of the mixture of BSDF and lobes. out->pdf is nevertheless the pdf of the BSDF alone: MIS weights
// still sum to 1, because both strategies use the same pdf, and no photon leads to a light that next-event estimation
// samples.
DEVICE bool sample_bsdf(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    if (!(s.guided > 0.0f)) {
        if (!material_sample(m, s, sampler, dimension, out)) return false;
        out->unguided = out->weight;
        return true;
    }
    if (uniform_float(sample_bits(sampler, dimension + GUIDE_DIMENSION)) >= s.guided) {  // not cached by get_1d
        if (!material_sample(m, s, sampler, dimension, out)) return false;
        if (out->pdf < 0.0f) {  // a delta lobe, which the guide's lobes never sample
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
    float lobes_pdf = guide_pdf(s.guide, s.point, out->direction);
    out->weight = xyz(bsdf) * (1.0f / fma(s.guided, lobes_pdf - bsdf.w, bsdf.w));
    return true;
}

// Sets s->guide to the lobes near the surface point, and s->guided. For a material lit from behind, such as glass, the
// lobes of the other side are used, from where most of its light comes.
DEVICE void find_guide(GLOBAL const uint *guide, const Material m, float3 geometric_normal, Surface *s) {
    s->guided = material_guided_fraction(m);
    float3 side = material_is_lit_from_behind(m) ? -geometric_normal : geometric_normal;
    s->guide = s->guided > 0.0f ? guide_at(guide, guide_tree(m, side), s->point) : 0;
    if (!s->guide) s->guided = 0.0f;
}
// The color whose largest channel is the survival probability of Russian roulette. Guiding makes the throughput of
// directions towards bright regions small, although their contribution is large; so the BSDF's weight of this bounce
// takes the throughput's place.
#define ROULETTE_WEIGHT(throughput, unguided) (unguided)
#else
#define find_guide(guide, material, normal, surface)
#define sample_bsdf material_sample
#define ROULETTE_WEIGHT(throughput, unguided) xyz(throughput)
#endif
