// The chaos game. renderer/flames/kernel_source.py writes before this file, for the flame at hand, advance() of its shapes of maps.
// Chains live in blocks of 256 = 8 rows of 32. A row draws one map for all its points, so that nothing diverges; before every
// step each column is turned by a number of rows that is hashed from step and column, so that no two points keep company.
// (Swapped points after M. Schied et al., GPU Computing Gems 18, and S. Robertson's cuburn.) All is a function of seed, chain
// and step: not of the device, the launch or the order of threads. Sums are whole numbers, so that parts merge exactly.
//
// A block of parameters (one a temporal sample): CAMERA floats (6: x = c0 X + c1 Y + c2, y = c3 X + c4 Y + c5 in buckets; in
// space 12: three such rows of four, the last the depth), then the records of the final map (if any) and of the maps.
// A record: affine (6, in space 12), colour, speed, opacity, shape, words; post-affine, then of each variation its number,
// weight and parameters. `words`: twice the variations, one more where there is a post-affine.
//
// The text of a flame's own kernel knows its layout. That of the interpreter (INTERPRETED 1), one for all flames, is given it.
#if INTERPRETED
#define FINAL layout.final
#define XAOS layout.xaos
#define BLENDED layout.blended
#define FRACTIONS layout.fractions
#define RECORD layout.record
#define DRAWS layout.draws
#define MAP_DRAWS layout.map_draws
#define LARGEST_PLANES (4 + SPACE)
#else
#define LARGEST_PLANES PLANES
#endif
#define PLANES (3 + SPACE + XAOS)
#define ROWS 8
#define COLUMNS 32
#define BLOCK 256
#define BAD_VALUE 1e10f
#define AFFINE (6 + 6 * SPACE)

typedef struct {
    int final, xaos, blended, fractions, record;
    uint draws, map_draws;
} Layout;

DEVICE Layout layout_of(int kinds, int record, uint draws, uint map_draws) {
    Layout layout;
    layout.final = kinds & 1;
    layout.xaos = kinds >> 1 & 1;
    layout.blended = kinds >> 2 & 1;
    layout.fractions = kinds >> 3 & 1;
    layout.record = record;
    layout.draws = draws;
    layout.map_draws = map_draws;
    return layout;
}

DEVICE uint mixed_word(uint u) {
    u = (u ^ (u >> 16)) * 0x21f0aaadu;
    u = (u ^ (u >> 15)) * 0x735a2d97u;
    return u ^ (u >> 15);
}

// Rows that column `column` is turned by before a step; `step_word` is its hash.
DEVICE uint turned_rows(uint column, uint step_word) { return ((column + 1u) * (step_word | 1u)) >> 29; }

// The random number by which a row draws its map. The rows of a block take one of each eighth of the range, in random order,
// and within the eighth the blocks lie evenly, moved at random together: each row's numbers are independent from step to step,
// and all rows together draw the maps in nearly exact shares.
DEVICE uint row_number(uint row, uint block_word, uint step_word, uint block) {
    uint eighth = (row * (block_word >> 3 | 1u) + block_word) & 7u;
    return eighth << 29 | (block * 0x9e3779b9u + step_word * 0x85ebca6bu) >> 3;
}

// One of `maps` by Walker's alias method: a table entry is (threshold, alias).
DEVICE int drawn_map(GLOBAL const uint2 *table, int maps, uint u) {
    int i = (int)mul_hi(u, (uint)maps);
    uint2 entry = table[i];
    return u * (uint)maps < entry.x ? i : (int)entry.y;
}

// A bad point gives way to a random one, up to four times in a row; the fifth random one counts as a point (as in flam3), so
// that chains leave maps that are never good. How often, is written into the last bits of the random place: x is
// (32 u + 16 + times) / 2^22 - 1 and y is (32 v + 21) / 2^22 - 1.
#define MARKS 4194304.0f

DEVICE whole times_replaced(Point p) {
    mask near = magnitude(p.x) < 1.0f && magnitude(p.y) < 1.0f;
    real s = near ? (p.x + 1.0f) * MARKS : (real)(0.5f), t = near ? (p.y + 1.0f) * MARKS : (real)(0.5f);
    whole a = truncated(s), b = truncated(t), times = (a & 31) - 16;
    mask marked = real_of(a) == s && real_of(b) == t && (b & 31) == 21 && times > 0 && times < 5;
    return marked ? times : (whole)(0);
}

DEVICE real marked(real u, whole mark) {
    return real_of(truncated(u * 262144.0f) * 32 + mark) * (1.0f / MARKS) - 1.0f;
}

// p after its map, with bad points replaced by random ones; `bad` tells which do not count.
DEVICE Point moved(Point p, GLOBAL const float *record, Random *random, mask *bad) {
    real speed = (real)(record[AFFINE + 1]);
    Point q = advance(p, record, random);
    q.colour = speed * record[AFFINE] + (1.0f - speed) * p.colour;
    q.last = p.last;
    mask good = magnitude(q.x) <= BAD_VALUE && magnitude(q.y) <= BAD_VALUE;
#if SPACE
    good = good && magnitude(q.z) <= BAD_VALUE;
#endif
    if (ANY_LANE(!good)) {
        Random spare = *random;
        real u = uniform(&spare), v = uniform(&spare);
        whole times = times_replaced(p);
        mask enough = times == 4;
        q.x = good ? q.x : enough ? 2.0f * u - 1.0f : marked(u, times + 17);
        q.y = good ? q.y : enough ? 2.0f * v - 1.0f : marked(v, (whole)(21));
#if SPACE
        q.z = good ? q.z : (real)(0.0f);
#endif
        good = good || enough;
    }
    random->position = random->position + 2u * random->gamma;
    *bad = !good;
    return q;
}

DEVICE Point selected(mask m, Point a, Point b) {
    Point c;
    c.x = m ? a.x : b.x;
    c.y = m ? a.y : b.y;
    c.z = m ? a.z : b.z;
    c.colour = m ? a.colour : b.colour;
    c.last = m ? a.last : b.last;
    return c;
}

// The bucket of a point in the window of buckets, -1 outside it. The whole grid is placed first, so that every window of it
// sees the same buckets.
typedef struct {
    int left, top, columns, rows;
} Window;

DEVICE whole bucket_of(Point p, const float *camera, Window window) {
#if SPACE
    real depth = FUSED(camera[8], p.x, FUSED(camera[9], p.y, FUSED(camera[10], p.z, camera[11])));
    real fx = FUSED(camera[0], p.x, FUSED(camera[1], p.y, FUSED(camera[2], p.z, camera[3]))) / depth;
    real fy = FUSED(camera[4], p.x, FUSED(camera[5], p.y, FUSED(camera[6], p.z, camera[7]))) / depth;
    mask seen = depth > 1e-6f && fx >= 0.0f && fx < 1e9f && fy >= 0.0f && fy < 1e9f;
#else
    real fx = FUSED(camera[0], p.x, FUSED(camera[1], p.y, camera[2]));
    real fy = FUSED(camera[3], p.x, FUSED(camera[4], p.y, camera[5]));
    mask seen = fx >= 0.0f && fx < 1e9f && fy >= 0.0f && fy < 1e9f;
#endif
    whole column = truncated(seen ? fx : (real)(0.0f)) - window.left, row = truncated(seen ? fy : (real)(0.0f)) - window.top;
    seen = seen && column >= 0 && column < window.columns && row >= 0 && row < window.rows;
    return seen ? row * window.columns + column : (whole)(-1);
}

// The entry of the palette, in 1/256 of an entry where the palette is blended.
DEVICE whole entry_of(Layout layout, real colour) {
    if (BLENDED) {
        whole d = truncated(colour * 65536.0f);
        return d < 0 ? (whole)(0) : d > 65280 ? (whole)(65280) : d;
    }
    whole d = truncated(colour * 256.0f);
    return d < 0 ? (whole)(0) : d > 255 ? (whole)(255) : d;
}

// What one sample adds: (red, alpha, blue, green), 0 to 255 each, whole numbers. Fractions (of blended palettes, opacity and
// temporal weights) are rounded up with their own probability, so that sums are right in the mean.
DEVICE uint4 light_of(Layout layout, GLOBAL const uint4 *palette, int entry, uint opacity, uint chance) {
    if (!FRACTIONS) return palette[entry];
    uint4 c;
    if (BLENDED) {
        uint4 a = palette[entry >> 8], b = palette[min((entry >> 8) + 1, 255)];
        uint t = (uint)entry & 255u;
        c = make_uint4((a.x * (256u - t) + b.x * t) >> 8, (a.y * (256u - t) + b.y * t) >> 8,
                       (a.z * (256u - t) + b.z * t) >> 8, (a.w * (256u - t) + b.w * t) >> 8);
    } else {
        c = palette[entry];
    }
    uint up = chance >> 8;  // 24 fractional bits: 8 of the palette, 16 of the opacity; 65280 * 65536 + up fits in 32 bits
    return make_uint4((c.x * opacity + up) >> 24, (c.y * opacity + up) >> 24, (c.z * opacity + up) >> 24,
                      (c.w * opacity + up) >> 24);
}

DEVICE Random stream_of(bits chain, uint seed) {
    Random random;
    random.position = mixed(mixed(chain) + seed);
    random.gamma = mixed(random.position ^ 0x5bf03635u) | 1u;
    return random;
}

DEVICE Point first_point(Random *random) {
    Point p;
    p.x = 2.0f * uniform(random) - 1.0f;
    p.y = 2.0f * uniform(random) - 1.0f;
    p.colour = uniform(random);
    p.z = (real)(0.0f);
    p.last = (real)(0.0f);
    return p;
}

// One step of the points of a row: those before it, `p`, give those after it; `seen` is what is plotted.
DEVICE Point stepped(Layout layout, Point p, GLOBAL const float *parameters, GLOBAL const uint2 *table, int maps, uint row_draw,
                     Random *random, Point *seen, mask *bad, bits *opacity) {
    GLOBAL const float *records = parameters + CAMERA + FINAL * RECORD;
    Point q;
#if LANES > 1
    if (XAOS) {  // each point of the row has its own last map, so a map of its own
        Random start = *random;
        q = p;
        *bad = (mask)(0);
        *opacity = (bits)(0u);
        float last[LANES];
        int choices[LANES];
        STORE_LANES(p.last, last);
        for (int lane = 0; lane < LANES; lane++) choices[lane] = drawn_map(table + (int)last[lane] * maps, maps, row_draw);
        whole choice = LOAD_LANES_WHOLE(choices);
        for (int map = 0; map < maps; map++) {
            mask mine = choice == map;
            if (!ANY_LANE(mine)) continue;
            mask wrong;
            Random own = start;
            Point r = moved(p, records + map * RECORD, &own, &wrong);
            r.last = wrong ? p.last : (real)((float)(map + 1));
            q = selected(mine, r, q);
            *bad = mine ? wrong : *bad;
            *opacity = mine ? (bits)(as_uint(records[map * RECORD + AFFINE + 2])) : *opacity;
        }
        random->position = start.position + MAP_DRAWS * start.gamma;  // whichever map each point went through
    } else
#endif
    {
#if LANES == 1
        bits start = random->position;
        int row = XAOS ? (int)p.last : 0;
        int choice = drawn_map(table + row * maps, maps, row_draw);
#else
        int choice = drawn_map(table, maps, row_draw);
#endif
        q = moved(p, records + choice * RECORD, random, bad);
        *opacity = (bits)(as_uint(records[choice * RECORD + AFFINE + 2]));
#if LANES == 1
        if (XAOS) {
            q.last = *bad ? p.last : (real)(choice + 1);
            random->position = start + MAP_DRAWS * random->gamma;  // whichever map each point went through
        }
#endif
    }
    *seen = q;
    if (FINAL) {
        mask wrong;
        real chance = uniform(random);
        Point f = moved(q, parameters + CAMERA, random, &wrong);
        mask apply = chance < parameters[CAMERA + AFFINE + 2];
        *seen = selected(apply, f, q);
    }
    return q;
}

#if LANES == 1
DEVICE void add_light(GLOBAL uint4 *histogram, int bucket, uint4 light) {
#if SUMS == 2  // one vector sum of whole numbers in floats, exact below 2^24: inspect() tells whether all were
    add_vector((GLOBAL float4 *)histogram + bucket, make_float4((float)light.x, (float)light.y, (float)light.z, (float)light.w));
#elif HAS_LONG_ATOMICS  // two 64-bit sums of two fields each; flushed before a field can overflow
    GLOBAL ulong *cell = (GLOBAL ulong *)(histogram + bucket);
    atom_add(cell, (ulong)light.y << 32 | light.x);
    atom_add(cell + 1, (ulong)light.w << 32 | light.z);
#else  // four 32-bit sums: every OpenCL device has them
    GLOBAL uint *cell = (GLOBAL uint *)(histogram + bucket);
    atomic_add(cell, light.x);
    atomic_add(cell + 1, light.y);
    atomic_add(cell + 2, light.z);
    atomic_add(cell + 3, light.w);
#endif
}

// One thread a chain, one group a block: steps first_step + 1 to first_step + steps of the chains from first_chain on, which
// stand in `before` and go to `after`. With only_spoiled nothing happens unless spoiled[interval] is set.
KERNEL iterate(GLOBAL const float *before, GLOBAL float *after, GLOBAL const float *RESTRICT parameters,
               GLOBAL const uint2 *RESTRICT table, GLOBAL const uint4 *RESTRICT palettes, GLOBAL uint4 *histogram,
               GLOBAL uint *bad_points, GLOBAL const uint *spoiled, int interval, int only_spoiled, int maps, int stride, int moments, int first_chain, int chains,
               int first_step, int steps, int plotted_from, uint seed, int left, int top, int columns, int rows,
               int kinds, int record, uint draws, uint map_draws) {
    Layout layout = layout_of(kinds, record, draws, map_draws);
    if (only_spoiled != 0 && spoiled[interval] == 0u) return;
    Window window;
    window.left = left;
    window.top = top;
    window.columns = columns;
    window.rows = rows;
    LOCAL_ARRAY(float, swap, 2 * LARGEST_PLANES * BLOCK);
    uint place = local_index(), column = place & 31u, row = place >> 5;
    uint slot = thread_index(), chain = (uint)first_chain + slot;
    int moment = (int)((chain / BLOCK) % (uint)moments);
    GLOBAL const float *own = parameters + moment * stride;
    GLOBAL const uint2 *own_table = table + moment * (XAOS * maps + 1) * maps;
    GLOBAL const uint4 *palette = palettes + moment * 256;
    float camera[CAMERA];
    for (int k = 0; k < CAMERA; k++) camera[k] = own[k];
    uint block = chain / BLOCK / (uint)moments;
    Random random = stream_of(chain, seed), block_random = stream_of(0x80000000u | chain / BLOCK, seed);
    Point p;
    if (first_step == 0) {
        p = first_point(&random);
    } else {
        p.x = before[slot];
        p.y = before[chains + slot];
        p.colour = before[2 * chains + slot];
#if SPACE
        p.z = before[3 * chains + slot];
#else
        p.z = 0.0f;
#endif
        p.last = XAOS ? before[(3 + SPACE) * chains + slot] : 0.0f;
    }
    uint start = stream_of(chain, seed).position;
    uint bad_count = 0;
    for (int step = first_step + 1; step <= first_step + steps; step++) {
        LOCAL float *page = swap + (step & 1) * PLANES * BLOCK;
        page[place] = p.x;
        page[BLOCK + place] = p.y;
        page[2 * BLOCK + place] = p.colour;
#if SPACE
        page[3 * BLOCK + place] = p.z;
#endif
        if (XAOS) page[(3 + SPACE) * BLOCK + place] = p.last;
        BARRIER();
        uint step_word = mixed_word((uint)step * 0x9e3779b9u + seed);
        uint from = ((row - turned_rows(column, step_word)) & (ROWS - 1)) * COLUMNS + column;
        p.x = page[from];
        p.y = page[BLOCK + from];
        p.colour = page[2 * BLOCK + from];
#if SPACE
        p.z = page[3 * BLOCK + from];
#endif
        if (XAOS) p.last = page[(3 + SPACE) * BLOCK + from];
        random.position = start + (uint)step * DRAWS * random.gamma;
        uint block_word = mixed(block_random.position + (uint)step * block_random.gamma);
        uint row_draw = row_number(row, block_word, step_word, block);
        Point seen;
        mask bad;
        bits opacity;
        p = stepped(layout, p, own, own_table, maps, row_draw, &random, &seen, &bad, &opacity);
        if (step > plotted_from) {
            bad_count += bad ? 1u : 0u;
            int bucket = bucket_of(seen, camera, window);
            if (bucket >= 0 && !bad && opacity > 0u)
                add_light(histogram, bucket, light_of(layout, palette, entry_of(layout, seen.colour), opacity, FRACTIONS ? draw(&random) : 0u));
        }
    }
    after[slot] = p.x;
    after[chains + slot] = p.y;
    after[2 * chains + slot] = p.colour;
#if SPACE
    after[3 * chains + slot] = p.z;
#endif
    if (XAOS) after[(3 + SPACE) * chains + slot] = p.last;
    if (bad_count > 0u) atomic_add(bad_points, bad_count);
}
#else

// The same on CPUs: one work item walks whole blocks, LANES points at a time, and adds to a histogram of its own, without
// atomics. histograms: one of columns * rows + 1 cells a work item; the last cell takes what is not seen.
KERNEL iterate(GLOBAL const float *before, GLOBAL float *after, GLOBAL const float *RESTRICT parameters,
               GLOBAL const uint2 *RESTRICT table, GLOBAL const uint4 *RESTRICT palettes, GLOBAL uint4 *RESTRICT histograms,
               GLOBAL uint *bad_points, GLOBAL const uint *spoiled, int interval, int only_spoiled, int maps, int stride, int moments, int first_chain, int chains,
               int first_step, int steps, int plotted_from, uint seed, int left, int top, int columns, int rows,
               int kinds, int record, uint draws, uint map_draws) {
    Layout layout = layout_of(kinds, record, draws, map_draws);
    Window window;
    window.left = left;
    window.top = top;
    window.columns = columns;
    window.rows = rows;
    GLOBAL uint4 *histogram = histograms + (size_t)group_index() * (size_t)(columns * rows + 1);
    float pages[2 * LARGEST_PLANES * BLOCK];
    uint bad_count = 0;
    whole lane_numbers = LANE_NUMBERS;
    for (int block = (int)group_index(); block * BLOCK < chains; block += (int)group_count()) {
        uint block_chain = (uint)(first_chain + block * BLOCK);
        int moment = (int)((block_chain / BLOCK) % (uint)moments);
        GLOBAL const float *own = parameters + moment * stride;
        GLOBAL const uint2 *own_table = table + moment * (XAOS * maps + 1) * maps;
        GLOBAL const uint4 *palette = palettes + moment * 256;
        float camera[CAMERA];
        for (int k = 0; k < CAMERA; k++) camera[k] = own[k];
        uint keys[BLOCK], gammas[BLOCK];
        for (int slot = 0; slot < BLOCK; slot += LANES) {
            Random random = stream_of(bits_of_whole(lane_numbers) + (block_chain + (uint)slot), seed);
            STORE_LANES(random.position, keys + slot);
            STORE_LANES(random.gamma, gammas + slot);
            if (first_step == 0) {
                float *page = pages;
                Point p = first_point(&random);
                STORE_LANES(p.x, page + slot);
                STORE_LANES(p.y, page + BLOCK + slot);
                STORE_LANES(p.colour, page + 2 * BLOCK + slot);
#if SPACE
                STORE_LANES(p.z, page + 3 * BLOCK + slot);
#endif
                if (XAOS) STORE_LANES(p.last, page + (3 + SPACE) * BLOCK + slot);
            }
        }
        uint block_key = mixed_word(mixed_word(0x80000000u | block_chain / BLOCK) + seed);
        uint block_gamma = mixed_word(block_key ^ 0x5bf03635u) | 1u;
        if (first_step > 0)
            for (int plane = 0; plane < PLANES; plane++)
                for (int slot = 0; slot < BLOCK; slot++)
                    pages[plane * BLOCK + slot] = before[plane * chains + block * BLOCK + slot];
        int current = 0;
        for (int step = first_step + 1; step <= first_step + steps; step++) {
            const float *old = pages + current * PLANES * BLOCK;
            current ^= 1;
            float *fresh = pages + current * PLANES * BLOCK;
            uint step_word = mixed_word((uint)step * 0x9e3779b9u + seed), turns = step_word | 1u;
            uint block_word = mixed_word(block_key + (uint)step * block_gamma);
            for (int row = 0; row < ROWS; row++) {
                uint row_draw = row_number((uint)row, block_word, step_word, block_chain / BLOCK / (uint)moments);
                for (int half_row = 0; half_row < COLUMNS; half_row += LANES) {
                    int slot = row * COLUMNS + half_row;
                    bits columns_here = bits_of_whole(lane_numbers + half_row);
                    bits from = (((uint)row - (((columns_here + 1u) * turns) >> 29)) & (ROWS - 1u)) * COLUMNS + columns_here;
                    uint from_slots[LANES];
                    STORE_LANES(from, from_slots);
                    Point p;
                    GATHER_LANES(p.x, old, from_slots);
                    GATHER_LANES(p.y, old + BLOCK, from_slots);
                    GATHER_LANES(p.colour, old + 2 * BLOCK, from_slots);
#if SPACE
                    GATHER_LANES(p.z, old + 3 * BLOCK, from_slots);
#else
                    p.z = (real)(0.0f);
#endif
                    p.last = (real)(0.0f);
                    if (XAOS) GATHER_LANES(p.last, old + (3 + SPACE) * BLOCK, from_slots);
                    Random random;
                    random.gamma = LOAD_LANES_BITS(gammas + slot);
                    random.position = LOAD_LANES_BITS(keys + slot) + (uint)step * DRAWS * random.gamma;
                    Point seen;
                    mask bad;
                    bits opacity;
                    p = stepped(layout, p, own, own_table, maps, row_draw, &random, &seen, &bad, &opacity);
                    STORE_LANES(p.x, fresh + slot);
                    STORE_LANES(p.y, fresh + BLOCK + slot);
                    STORE_LANES(p.colour, fresh + 2 * BLOCK + slot);
#if SPACE
                    STORE_LANES(p.z, fresh + 3 * BLOCK + slot);
#endif
                    if (XAOS) STORE_LANES(p.last, fresh + (3 + SPACE) * BLOCK + slot);
                    if (step <= plotted_from) continue;
                    if (ANY_LANE(bad)) {
                        int flags[LANES];
                        STORE_LANES(bad, flags);
                        for (int lane = 0; lane < LANES; lane++) bad_count += flags[lane] != 0 ? 1u : 0u;
                    }
                    whole bucket = bucket_of(seen, camera, window), entry = entry_of(layout, seen.colour);
                    bucket = bucket < 0 || bad || opacity == 0u ? (whole)(columns * rows) : bucket;
                    int buckets[LANES], entries[LANES];
                    STORE_LANES(bucket, buckets);
                    STORE_LANES(entry, entries);
                    if (FRACTIONS) {
                        uint opacities[LANES], chances[LANES];
                        STORE_LANES(opacity, opacities);
                        STORE_LANES(draw(&random), chances);
                        for (int lane = 0; lane < LANES; lane++)
                            histogram[buckets[lane]] +=
                                light_of(layout, palette, entries[lane], opacities[lane], chances[lane]);
                    } else {
                        for (int lane = 0; lane < LANES; lane++) histogram[buckets[lane]] += palette[entries[lane]];
                    }
                }
            }
        }
        for (int plane = 0; plane < PLANES; plane++)
            for (int slot = 0; slot < BLOCK; slot++)
                after[plane * chains + block * BLOCK + slot] = pages[current * PLANES * BLOCK + plane * BLOCK + slot];
    }
    if (bad_count > 0u) atomic_add(bad_points, bad_count);
}
#endif
