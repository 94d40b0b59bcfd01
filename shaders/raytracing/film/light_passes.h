// Light passes: the light of every pixel, divided by the lobe of the path's first bounce and by the group of the lamp
// that emitted it (renderer/raytracing/light_passes.py). Called by path.h and raytrace.cu wherever a path gains
// radiance, in every schedule, so that the passes add up to the film. Only with LIGHT_PASSES, the number of passes by
// lobe; LIGHT_GROUPS is the number of passes by group.
//
// The buffer `passes` has a record of PASS_FLOATS floats for each ray (path.h):
//     0 to 3   the path's lobe: the diffuse fraction of the first bounce's BSDF (RGB), and the pass of the remainder
//     4 to 7   the same for the path's shadow ray, with 16 times the lamp's group added to the pass
//     8 ...    6 floats a pass: its sum over the samples (RGB), and the rounding errors that the sum lacks (RGB)
// A direct pass has an odd number; the pass of the same lobe's indirect light follows it.
#include "common/vectors.h"

#define PASS_EMISSION 0  // of paths that no surface has scattered
#define PASS_DIFFUSE 1
#define PASS_SPECULAR 3
#define PASS_TRANSMISSION 5
#define PASS_VOLUME 7
#define ALL_GROUPS -1
#define PASS_FLOATS (8 + 6 * (LIGHT_PASSES + LIGHT_GROUPS))

#define PATH_LOBE 0  // where in a record the lobe of the path begins
#define SHADOW_LOBE 4  // and of its shadow ray

// PASSES_OF(path): the path's record. RECORD_OF(ray, depth): the ray's, in the kernel's buffer `passes`. Programs
// without light passes have neither, and the functions below then do nothing.
#if LIGHT_PASSES
#define PASSES_OF(path) (path).record
#define RECORD_OF(ray, depth) pass_record(passes, ray, depth)
#define ATTACH_PASSES(path, ray, depth) (path).record = RECORD_OF(ray, depth)
#else
#define PASSES_OF(path) (GLOBAL float *)0
#define RECORD_OF(ray, depth) (GLOBAL float *)0
#define ATTACH_PASSES(path, ray, depth)
#endif

// Adds x to a sum and its rounding error to the sum of errors, three floats on (D. Knuth's TwoSum).
DEVICE void add_compensated(GLOBAL float *sum, float x) {
    float before = sum[0], after = before + x, added = after - before;
    sum[0] = after;
    sum[3] += (before - (after - added)) + (x - added);
}

// Adds light to a pass of a record.
DEVICE void add_to_pass(GLOBAL float *record, int pass, float3 contribution) {
    GLOBAL float *sum = record + 8 + 6 * pass;
    add_compensated(sum, contribution.x);
    add_compensated(sum + 1, contribution.y);
    add_compensated(sum + 2, contribution.z);
}

DEVICE float3 lobe_diffuse(GLOBAL const float *lobe) { return make_float3(lobe[0], lobe[1], lobe[2]); }
DEVICE int lobe_pass(GLOBAL const float *lobe) { return (int)lobe[3] & 15; }  // without the group
// Stores the lobe of a path or of its shadow ray.
DEVICE void store_lobe(GLOBAL float *lobe, float3 diffuse, int pass, int group) {
    lobe[0] = diffuse.x;
    lobe[1] = diffuse.y;
    lobe[2] = diffuse.z;
    lobe[3] = (float)(pass + 16 * group);
}

// Returns the record of a ray; at depth 0 its path begins.
DEVICE GLOBAL float *pass_record(GLOBAL float *passes, uint ray, int depth) {
    GLOBAL float *record = passes + (size_t)ray * PASS_FLOATS;
    if (depth == 0) store_lobe(record, splat3(0.0f), PASS_EMISSION, 0);
    return record;
}

// Adds light that arrives by way of the lobe `at` (PATH_LOBE or SHADOW_LOBE), from a lamp of `group`, to its passes:
// the lobe's diffuse fraction to PASS_DIFFUSE or the pass of its indirect light, the remainder to the lobe's pass.
// Rays outside of the picture add 0.
DEVICE void add_to_passes(GLOBAL float *record, int at, float3 contribution, int group) {
    if (!LIGHT_PASSES || (contribution.x == 0.0f && contribution.y == 0.0f && contribution.z == 0.0f)) return;
    int pass = lobe_pass(record + at);
    float3 diffuse = contribution * lobe_diffuse(record + at);
    int is_indirect = (pass & 1) ^ 1;  // passes of indirect light have even numbers
    if (pass != PASS_EMISSION) add_to_pass(record, PASS_DIFFUSE + is_indirect, diffuse);
    add_to_pass(record, pass, contribution - diffuse);
    if (LIGHT_GROUPS && group != ALL_GROUPS) add_to_pass(record, LIGHT_PASSES + group, contribution);
}

// Adds the light of a path's unoccluded shadow ray.
DEVICE void add_shadow_to_passes(GLOBAL float *record, float3 contribution) {
    if (LIGHT_PASSES) add_to_passes(record, SHADOW_LOBE, contribution, (int)record[SHADOW_LOBE + 3] >> 4);
}

// Returns part / whole by channel; 0 where `whole` is 0.
DEVICE float3 fraction3(float3 part, float3 whole) {
    return make_float3(whole.x != 0.0f ? part.x / whole.x : 0.0f, whole.y != 0.0f ? part.y / whole.y : 0.0f,
                       whole.z != 0.0f ? part.z / whole.z : 0.0f);
}

// Stores the lobe of the path or of its shadow ray, by `at`, which a surface turns to `direction`: the BSDF's lobes for
// that direction if no surface has scattered the path before, else the lobe that the path has. `pdf` is DELTA_PDF for a
// delta lobe.
DEVICE void set_lobe(GLOBAL float *record, int at, const Material m, const Surface s, float3 direction, float pdf,
                     int group) {
    if (!LIGHT_PASSES) return;
    int pass = lobe_pass(record);
    float3 diffuse = lobe_diffuse(record);
    if (pass == PASS_EMISSION) {
        pass = dot_fma(direction, s.normal) < 0.0f ? PASS_TRANSMISSION : PASS_SPECULAR;
        if (pdf > 0.0f)
            diffuse = fraction3(material_diffuse_part(m, s, direction), xyz(eval_bsdf_pdf(m, s, direction)));
    } else {
        pass += pass & 1;  // after the first bounce light is indirect: the pass behind a direct one
    }
    store_lobe(record + at, diffuse, pass, group);
}

// Does the same where a volume scatters light.
DEVICE void set_volume_lobe(GLOBAL float *record, int at, int group) {
    if (!LIGHT_PASSES) return;
    int pass = lobe_pass(record);
    store_lobe(record + at, lobe_diffuse(record), pass == PASS_EMISSION ? PASS_VOLUME : pass + (pass & 1), group);
}

// Stores the lobe of the shadow ray from a point in a volume, on the path's ray number `depth`. The ray's hit lies
// behind that point but was shaded before, and may have set the path's lobe. On the camera ray (depth 0) the volume
// scatters the path first, so the lobe is the volume's all the same.
DEVICE void set_segment_lobe(GLOBAL float *record, int depth, int group) {
    if (LIGHT_PASSES && depth == 0)
        store_lobe(record + SHADOW_LOBE, splat3(0.0f), PASS_VOLUME, group);
    else
        set_volume_lobe(record, SHADOW_LOBE, group);
}

// Gives the shadow ray the lobe that the path has.
DEVICE void keep_lobe_for_shadow(GLOBAL float *record, int group) {
    if (LIGHT_PASSES) store_lobe(record + SHADOW_LOBE, lobe_diffuse(record), lobe_pass(record), group);
}
