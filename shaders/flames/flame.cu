// The chaos game. renderer/flames/kernel_source.py puts constants, variations and apply_xform() before this text: for
// one flame's structure, or for all flames (GENERIC 1), whose features are then arguments instead of constants. Words
// (chain, xform, bucket, temporal sample, fuse steps): renderer/flames/chaos_game.py, which launches it. Feature macros
// (IS_3D, SOLID, FADES, DEFOCUS, ...) are 1 if a flame of the kernel uses the feature.
//
// Chains live in blocks of 256 = 8 rows of 32. A row applies one xform, so a warp does not diverge. Before every step
// each column is rotated by a number of rows hashed from step and column, so that the same points do not share a row
// for long (after M. Schied et al., GPU Computing Gems 18, and S. Robertson's cuburn). Everything is a function of
// seed, chain and step: not of the device, the launch or the order of threads. Sums are integers, so that chunks merge
// exactly.
//
// Parameters of one temporal sample: CAMERA_FLOATS floats (6: x = c0 X + c1 Y + c2, y = c3 X + c4 Y + c5 in buckets; in
// 3D 13: three rows of four for x, y and the depth, and the least depth; then the lens of defocus() and the numbers
// from AT_DEPTH and AT_JITTER on), then the records of the final xforms and of the xforms. A record: affine (6, in 3D
// 12), color, color speed, opacity, with DIRECT_COLOR its factor, signature, packed counts (twice the number of
// variations, plus 1 with a post-affine); then the post-affine (6, in 3D 12), and of each variation its index, weight
// and parameters.
// RANDOM_PER_XFORM: the most random numbers that an xform draws; RANDOM_PER_STEP: the most that a step draws. Each step
// starts at its multiple of RANDOM_PER_STEP, however many numbers were drawn before.
#if GENERIC
#define FINALS layout.finals
#define HAS_XAOS layout.has_xaos
#define LINEAR_PALETTE layout.linear_palette
#define STOCHASTIC_ROUNDING layout.stochastic_rounding
#define RECORD_FLOATS layout.record_floats
#define RANDOM_PER_STEP layout.random_per_step
#define RANDOM_PER_XFORM layout.random_per_xform
#define MAX_STATE_FLOATS (4 + IS_3D)
#else
#define MAX_STATE_FLOATS STATE_FLOATS
#endif
#define STATE_FLOATS (3 + IS_3D + HAS_XAOS + EXTRA_FLOATS)
// Loads and stores of one lane, under the names that common/simd.h uses for several lanes. PUT and GET move one float
// of every point of a work-item. HISTOGRAM: on CPUs RESTRICT, as each work-item adds to a histogram that no other has.
#if LANES == 1
#define STORE_LANES(value, pointer) *(pointer) = value
#define LOAD_LANES(pointer) *(pointer)
#define FIRST_LANE(value) (value)
#define GET(value, from, slot) value = (from)[slot]
#define HISTOGRAM GLOBAL uint4 *
#else
#define FIRST_LANE(value) (value).s0
#define GET(value, from, slots) GATHER_LANES(value, from, slots)
#define HISTOGRAM GLOBAL uint4 *RESTRICT
#endif
#define PUT(value, to, slot) STORE_LANES(value, (to) + (slot))
#define AT_DEPTH (6 + 7 * IS_3D + 27 * DEFOCUS)  // in the camera: the row of z, then strength, start, color of fading
#define AT_JITTER (AT_DEPTH + 4 * (SOLID || FADES) + 5 * FADES)  // its amount and radius
#define CAMERA_FLOATS (AT_JITTER + 2 * JITTERS)  // of the transform from points to buckets
#if RGB  // variations give points colors outside the palette; negative: the palette's color
#define RGB_OF(p) (p).rgb
#else
#define RGB_OF(p) ((real)(-1.0f))
#endif
#define ROWS 8
#define COLUMNS 32
#define BLOCK 256
#define BAD_VALUE_LIMIT 1e10f

typedef struct {
    int finals, has_xaos, linear_palette, stochastic_rounding, record_floats;
    uint random_per_step, random_per_xform;
} RecordLayout;

// The buckets that the histogram covers, out of the picture's whole grid.
typedef struct {
    int left, top, columns, rows;
} BucketRect;

// mixed() of reproducible_math.h for one integer: mixed() itself hashes a vector.
DEVICE uint hash_u32(uint u) {
    u = (u ^ (u >> 16)) * 0x21f0aaadu;
    u = (u ^ (u >> 15)) * 0x735a2d97u;
    return u ^ (u >> 15);
}

DEVICE uint hash_step(int step, uint seed) { return hash_u32((uint)step * 0x9e3779b9u + seed); }

// Rows by which a column is rotated before a step: three hashed bits.
DEVICE bits row_rotation(bits column, uint step_hash) { return ((column + 1u) * (step_hash | 1u)) >> 29; }

// The random number by which a row chooses its xform is stratified. The 8 rows of a block take the 8 strata
// [k/8, (k+1)/8) in random order. Within a stratum the blocks follow a Weyl sequence with one random offset per step. A
// row's numbers in different steps are independent, and over all rows the xforms are chosen in nearly exact proportion
// to their weights.
DEVICE uint stratified_row_random(uint row, uint block_hash, uint step_hash, uint place) {
    uint stratum = (row * (block_hash >> 3 | 1u) + block_hash) & 7u;
    return stratum << 29 | (place + step_hash * 0x85ebca6bu) >> 3;
}

// A block's point of a Weyl sequence, in units of 2^-32: it advances by the golden ratio from block to block, and by a
// step of M. Roberts's R2 sequence from one temporal sample to the next. With one point for all temporal samples, in
// most steps no block would take a rare xform, and in the others all at once.
DEVICE uint weyl_place(uint block, int temporal_sample) {
    return block * 0x9e3779b9u + (uint)temporal_sample * 0xc13fa9a9u;
}

// Index of an xform by Walker's alias method: a table entry is (threshold, alias).
DEVICE int choose_xform(GLOBAL const uint2 *table, int xforms, uint u) {
    int i = (int)mul_hi(u, (uint)xforms);
    uint2 entry = table[i];
    return u * (uint)xforms < entry.x ? i : (int)entry.y;
}

// A bad value is replaced by a random point, which is not plotted. After four replacements in a row the fifth random
// point is plotted (as in flam3), so that chains can leave xforms whose results are always bad. The number of
// replacements is stored in the low bits of the random point's coordinates: x is (32 u + 16 + count) / 2^22 - 1, y is
// (32 v + 21) / 2^22 - 1.
#define TAG_SCALE 4194304.0f

// The number of replacements in a row that led to the point; 0 for a point that is no random one.
DEVICE whole replacement_count(Point p) {
    mask in_square = magnitude(p.x) < 1.0f && magnitude(p.y) < 1.0f;
    real s = in_square ? (p.x + 1.0f) * TAG_SCALE : (real)(0.5f),
         t = in_square ? (p.y + 1.0f) * TAG_SCALE : (real)(0.5f);
    whole a = truncated(s), b = truncated(t), count = (a & 31) - 16;
    mask tagged = real_of(a) == s && real_of(b) == t && (b & 31) == 21 && count > 0 && count < 5;
    return tagged ? count : (whole)(0);
}

DEVICE real tagged_random(real u, whole tag) {
    return real_of(truncated(u * 262144.0f) * 32 + tag) * (1.0f / TAG_SCALE) - 1.0f;
}

#include "flames/point_attributes.h"

// p after its xform, with bad values replaced by random points; `bad`: which points are not plotted.
DEVICE Point iterate_point(Point p, GLOBAL const float *record, Random *random, mask *bad) {
    Point q = apply_xform(p, record, random);
    if (!DIRECT_COLOR) q.color = blend_color(p, record);
    q.last_xform = p.last_xform;
#if EXTRA_FLOATS
    update_attributes(p, &q, record + RECORD_FLOATS - EXTRA_RECORD_FLOATS);
#endif
    mask good = magnitude(q.x) <= BAD_VALUE_LIMIT && magnitude(q.y) <= BAD_VALUE_LIMIT;
    if (IS_3D) good = good && magnitude(q.z) <= BAD_VALUE_LIMIT;
    if (ANY_LANE(!good)) {
        Random spare = *random;
        real u = uniform(&spare), v = uniform(&spare);
        whole count = replacement_count(p);
        mask enough = count == 4;
        q.x = good ? q.x : enough ? 2.0f * u - 1.0f : tagged_random(u, count + 17);
        q.y = good ? q.y : enough ? 2.0f * v - 1.0f : tagged_random(v, (whole)(21));
        q.z = good ? q.z : (real)(0.0f);
        good = good || enough;
    }
    random->position = random->position + 2u * random->gamma;  // the two of a replacement, drawn or not
    *bad = !good;
    return q;
}

// a in the lanes of m, b in the others.
DEVICE Point select_point(mask m, Point a, Point b) {
    Point c;
    c.x = m ? a.x : b.x;
    c.y = m ? a.y : b.y;
    c.z = m ? a.z : b.z;
    c.color = m ? a.color : b.color;
    c.last_xform = m ? a.last_xform : b.last_xform;
#if HIDES
    c.hidden = m ? a.hidden : b.hidden;
#endif
#if EXTRA_FLOATS
    for (int k = 0; k < EXTRA_FLOATS; k++) c.extra[k] = m ? a.extra[k] : b.extra[k];
#endif
#if RGB
    c.rgb = m ? a.rgb : b.rgb;
#endif
    return c;
}

#include "flames/plot.h"

// The random numbers of a chain, as a position and a step (SplitMix).
DEVICE Random random_stream(bits chain, uint seed) {
    Random random;
    random.position = mixed(mixed(chain) + seed);
    random.gamma = mixed(random.position ^ 0x5bf03635u) | 1u;
    return random;
}

// The random point at which a chain starts.
DEVICE Point first_point(Random *random) {
    Point p;
    p.x = 2.0f * uniform(random) - 1.0f;
    p.y = 2.0f * uniform(random) - 1.0f;
    p.color = uniform(random);
    p.z = p.last_xform = (real)(0.0f);
#if EXTRA_FLOATS
    for (int k = 0; k < EXTRA_FLOATS; k++) p.extra[k] = SHOWN && k == 0 ? p.color : (real)(0.0f);
#endif
    return p;
}

// One step of the points of a row: returns the points after it. `p`: the points before it; `seen`: the points to plot,
// after the final xforms. `row_random` chooses the row's xform, or with xaos the xform of each point by its last xform.
DEVICE Point iterate_row(RecordLayout layout, Point p, GLOBAL const float *parameters, GLOBAL const uint2 *table,
                         int xforms, uint row_random, Random *random, Point *seen, mask *bad, bits *opacity) {
    GLOBAL const float *records = parameters + CAMERA_FLOATS + FINALS * RECORD_FLOATS;
    Random start = *random;
    Point q;
#if LANES > 1
    if (HAS_XAOS) {  // each point of the row has its own last xform, so it chooses its own xform
        q = p;
        *bad = (mask)(0);
        *opacity = (bits)(0u);
        float last[LANES];
        int choices[LANES];
        STORE_LANES(p.last_xform, last);
        for (int lane = 0; lane < LANES; lane++)
            choices[lane] = choose_xform(table + (int)last[lane] * xforms, xforms, row_random);
        whole choice = LOAD_LANES(choices);
        for (int xform = 0; xform < xforms; xform++) {
            mask chose_this = choice == xform;
            if (!ANY_LANE(chose_this)) continue;
            mask wrong;
            Random branch_random = start;
            Point r = iterate_point(p, records + xform * RECORD_FLOATS, &branch_random, &wrong);
            r.last_xform = wrong ? p.last_xform : (real)((float)(xform + 1));
            q = select_point(chose_this, r, q);
            *bad = chose_this ? wrong : *bad;
            *opacity = chose_this ? (bits)(as_uint(records[xform * RECORD_FLOATS + OPACITY])) : *opacity;
        }
    } else
#endif
    {
        int last = HAS_XAOS ? (int)FIRST_LANE(p.last_xform) : 0;
        int choice = choose_xform(table + last * xforms, xforms, row_random);
        q = iterate_point(p, records + choice * RECORD_FLOATS, random, bad);
        *opacity = (bits)(as_uint(records[choice * RECORD_FLOATS + OPACITY]));
        if (HAS_XAOS) q.last_xform = *bad ? p.last_xform : (real)((float)(choice + 1));
    }
    // xforms draw different counts of numbers: go on behind the largest count, so that every choice goes on alike
    if (HAS_XAOS) random->position = start.position + RANDOM_PER_XFORM * start.gamma;
    *seen = q;
    for (int k = 0; k < FINALS; k++) {
        GLOBAL const float *record = parameters + CAMERA_FLOATS + k * RECORD_FLOATS;
        mask wrong;
        real u = uniform(random);
        Point f = iterate_point(*seen, record, random, &wrong);
#if RGB  // a final xform keeps the color of the xform before it unless it sets one
        f.rgb = f.rgb >= 0.0f ? f.rgb : seen->rgb;
#endif
        *seen = select_point(u < record[OPACITY], f, *seen);
    }
    return q;
}

#if EXTRA_FLOATS
#define MOVE_EXTRA(MOVE, p, array, stride, slot) \
    for (int extra = 0; extra < EXTRA_FLOATS; extra++) MOVE(p.extra[extra], (array) + extra * (stride), slot)
#else
#define MOVE_EXTRA(MOVE, p, array, stride, slot)
#endif
// Stores (MOVE is PUT) or loads (GET) a chain's state in arrays of `stride` floats: x, y, color, z in 3D, last_xform
// with xaos, extra ones. Loading leaves the others as they are.
#define MOVE_STATE(MOVE, p, array, stride, slot)                                        \
    do {                                                                                \
        MOVE(p.x, array, slot);                                                         \
        MOVE(p.y, (array) + (stride), slot);                                            \
        MOVE(p.color, (array) + 2 * (stride), slot);                                    \
        if (IS_3D) MOVE(p.z, (array) + 3 * (stride), slot);                             \
        if (HAS_XAOS) MOVE(p.last_xform, (array) + (3 + IS_3D) * (stride), slot);       \
        MOVE_EXTRA(MOVE, p, (array) + (3 + IS_3D + HAS_XAOS) * (stride), stride, slot); \
    } while (0)

// Steps first_step + 1 to first_step + steps of `chains` chains from first_chain on, whose states are in `before` and
// go to `after`. Steps after `fuse` are plotted. With only_if_inexact nothing happens unless inexact[interval] is set.
// GPUs: one thread per chain, one group per block, one histogram of columns * rows buckets.
// feature_flags: bits 0 to 3 are the first four fields of RecordLayout.
// CPUs: one work-item iterates whole blocks, LANES points at a time, into a private histogram without atomics;
// `histograms` holds columns * rows + 1 buckets per work-item, the last for samples that are not plotted.
KERNEL iterate(GLOBAL const float *before, GLOBAL float *after, GLOBAL const float *RESTRICT parameters,
               GLOBAL const uint2 *RESTRICT table, GLOBAL const uint4 *RESTRICT palettes, HISTOGRAM histograms,
               GLOBAL uint *bad_values, GLOBAL ulong *nearest, GLOBAL const uint *inexact, int interval,
               int only_if_inexact, int xforms, int parameter_stride, int temporal_samples, int first_chain, int chains,
               int first_step, int steps, int fuse, uint seed, int left, int top, int columns, int rows,
               int feature_flags, int record_floats, uint random_per_step, uint random_per_xform) {
    RecordLayout layout = {feature_flags & 1, feature_flags >> 1 & 1, feature_flags >> 2 & 1, feature_flags >> 3 & 1,
                           record_floats,     random_per_step,        random_per_xform};
    BucketRect rect = {left, top, columns, rows};
    uint bad_count = 0;
#if LANES == 1
    if (only_if_inexact != 0 && inexact[interval] == 0u) return;
    LOCAL_ARRAY(float, shared_points, 2 * MAX_STATE_FLOATS * BLOCK);
    uint local_slot = local_index(), column = local_slot & 31u, row = local_slot >> 5;
    uint slot = thread_index(), chain = (uint)first_chain + slot;
    int temporal_sample = (int)((chain / BLOCK) % (uint)temporal_samples);
    GLOBAL const float *sample_parameters = parameters + temporal_sample * parameter_stride;
    GLOBAL const uint2 *sample_table = table + temporal_sample * (HAS_XAOS * xforms + 1) * xforms;
    GLOBAL const uint4 *palette = palettes + temporal_sample * 256;
    float camera[CAMERA_FLOATS];
    for (int k = 0; k < CAMERA_FLOATS; k++) camera[k] = sample_parameters[k];
    uint place = weyl_place(chain / BLOCK / (uint)temporal_samples, temporal_sample);
    // the highest bit is 1 for the streams of blocks, 0 for the streams of chains
    Random random = random_stream(chain, seed), block_random = random_stream(0x80000000u | chain / BLOCK, seed);
    uint start = random.position;
    Point p = first_point(&random);
    if (first_step > 0) MOVE_STATE(GET, p, before, chains, slot);
    for (int step = first_step + 1; step <= first_step + steps; step++) {
        // two buffers in turn, so that one barrier a step suffices
        LOCAL float *points = shared_points + (step & 1) * STATE_FLOATS * BLOCK;
        MOVE_STATE(PUT, p, points, BLOCK, local_slot);
        BARRIER();
        uint step_hash = hash_step(step, seed);
        // the thread takes the point that the rotation of its column moves to its row
        uint from = ((row - row_rotation(column, step_hash)) & (ROWS - 1)) * COLUMNS + column;
        p.z = p.last_xform = (real)(0.0f);
        MOVE_STATE(GET, p, points, BLOCK, from);
        random.position = start + (uint)step * RANDOM_PER_STEP * random.gamma;
        uint block_hash = mixed(block_random.position + (uint)step * block_random.gamma);
        uint row_random = stratified_row_random(row, block_hash, step_hash, place);
        Point seen;
        mask bad;
        bits opacity;
        p = iterate_row(layout, p, sample_parameters, sample_table, xforms, row_random, &random, &seen, &bad, &opacity);
        if (step <= fuse) continue;
        bad_count += bad ? 1u : 0u;
        plot_points(layout, p, seen, bad, opacity, camera, rect, palette, histograms, nearest, &random);
    }
    MOVE_STATE(PUT, p, after, chains, slot);
#else
    GLOBAL uint4 *histogram = histograms + (size_t)group_index() * (size_t)(columns * rows + 1);
    float point_buffers[2 * MAX_STATE_FLOATS * BLOCK];
    whole lane_numbers = LANE_NUMBERS;
    for (int block = (int)group_index(); block * BLOCK < chains; block += (int)group_count()) {
        uint block_chain = (uint)(first_chain + block * BLOCK);
        int temporal_sample = (int)((block_chain / BLOCK) % (uint)temporal_samples);
        GLOBAL const float *sample_parameters = parameters + temporal_sample * parameter_stride;
        GLOBAL const uint2 *sample_table = table + temporal_sample * (HAS_XAOS * xforms + 1) * xforms;
        GLOBAL const uint4 *palette = palettes + temporal_sample * 256;
        float camera[CAMERA_FLOATS];
        for (int k = 0; k < CAMERA_FLOATS; k++) camera[k] = sample_parameters[k];
        uint keys[BLOCK], gammas[BLOCK];
        for (int slot = 0; slot < BLOCK; slot += LANES) {
            Random random = random_stream(bits_of_whole(lane_numbers) + (block_chain + (uint)slot), seed);
            STORE_LANES(random.position, keys + slot);
            STORE_LANES(random.gamma, gammas + slot);
            if (first_step == 0) {
                Point p = first_point(&random);
                MOVE_STATE(PUT, p, point_buffers, BLOCK, slot);
            }
        }
        // random_stream() of the block, in plain integers
        uint block_key = hash_u32(hash_u32(0x80000000u | block_chain / BLOCK) + seed);
        uint block_gamma = hash_u32(block_key ^ 0x5bf03635u) | 1u;
        if (first_step > 0)
            for (int k = 0; k < STATE_FLOATS; k++)
                for (int slot = 0; slot < BLOCK; slot++)
                    point_buffers[k * BLOCK + slot] = before[k * chains + block * BLOCK + slot];
        uint place = weyl_place(block_chain / BLOCK / (uint)temporal_samples, temporal_sample);
        int current = 0;
        for (int step = first_step + 1; step <= first_step + steps; step++) {
            const float *old_points = point_buffers + current * STATE_FLOATS * BLOCK;
            current ^= 1;
            float *new_points = point_buffers + current * STATE_FLOATS * BLOCK;
            uint step_hash = hash_step(step, seed);
            uint block_hash = hash_u32(block_key + (uint)step * block_gamma);
            for (int row = 0; row < ROWS; row++) {
                uint row_random = stratified_row_random((uint)row, block_hash, step_hash, place);
                for (int first_column = 0; first_column < COLUMNS; first_column += LANES) {
                    int slot = row * COLUMNS + first_column;
                    bits column = bits_of_whole(lane_numbers + first_column);
                    bits from = (((uint)row - row_rotation(column, step_hash)) & (ROWS - 1u)) * COLUMNS + column;
                    Point p;
                    p.z = p.last_xform = (real)(0.0f);
                    MOVE_STATE(GET, p, old_points, BLOCK, from);
                    Random random;
                    random.gamma = LOAD_LANES(gammas + slot);
                    random.position = LOAD_LANES(keys + slot) + (uint)step * RANDOM_PER_STEP * random.gamma;
                    Point seen;
                    mask bad;
                    bits opacity;
                    p = iterate_row(layout, p, sample_parameters, sample_table, xforms, row_random, &random, &seen,
                                    &bad, &opacity);
                    MOVE_STATE(PUT, p, new_points, BLOCK, slot);
                    if (step <= fuse) continue;
                    if (ANY_LANE(bad)) {
                        int flags[LANES];
                        STORE_LANES(bad, flags);
                        for (int lane = 0; lane < LANES; lane++) bad_count += flags[lane] != 0 ? 1u : 0u;
                    }
                    plot_points(layout, p, seen, bad, opacity, camera, rect, palette, histogram, nearest, &random);
                }
            }
        }
        for (int k = 0; k < STATE_FLOATS; k++)
            for (int slot = 0; slot < BLOCK; slot++)
                after[k * chains + block * BLOCK + slot] = point_buffers[(current * STATE_FLOATS + k) * BLOCK + slot];
    }
#endif
    if (bad_count > 0u) atomic_add(bad_values, bad_count);
}
