// Plots a point: lens, jitter, bucket, color of the palette, opacity, addition to the histogram. Included by flame.cu,
// which describes the floats of `camera` that have numbers below. Formulas and their constants are as in the programs
// named: the same numbers give the same pictures.
#if DEFOCUS
// The offset in buckets, before the division by depth, of a point p seen through a lens (the models of Apophysis 7X and
// JWildfire). `lens`: 0 to 11, three rows of four that map p to its vector from the focus; 12 to 15, the matrix from the
// plane to buckets times the lens's strength; 16, the exponent of the squared distance; 17, the distance inside of
// which points are sharp; 18, 1 if points in front of the focus stay sharp; 19 to 26, two rows of four, the squared
// length of whose vector is a factor on the blur (Fractorium's blur_curve).
DEVICE Pair defocus(Point p, const float *lens, Random *random) {
    real vx = FUSED(lens[0], p.x, FUSED(lens[1], p.y, FUSED(lens[2], p.z, lens[3])));
    real vy = FUSED(lens[4], p.x, FUSED(lens[5], p.y, FUSED(lens[6], p.z, lens[7])));
    real vz = FUSED(lens[8], p.x, FUSED(lens[9], p.y, FUSED(lens[10], p.z, lens[11])));
    real distance = power_of(vx * vx + vy * vy + vz * vz, (real)(lens[16]));
    // from the distance lens[17] inward over `fade`, the blur falls to 0 by the curve 6 t^5 - 15 t^4 + 10 t^3
    float fade = lens[17] * (1.0f / 2.25f) + 1e-12f;
    real t = (distance - (lens[17] - fade)) / fade;
    t = t < 0.0f ? (real)(0.0f) : t > 1.0f ? (real)(1.0f) : t;
    distance = distance * (t * t * t * (t * (6.0f * t - 15.0f) + 10.0f));
    distance = lens[18] != 0.0f && vz <= 0.0f ? (real)(0.0f) : distance;
    real across = FUSED(lens[19], p.x, FUSED(lens[20], p.y, FUSED(lens[21], p.z, lens[22])));
    real down = FUSED(lens[23], p.x, FUSED(lens[24], p.y, FUSED(lens[25], p.z, lens[26])));
    real radius = uniform(random) * distance * (across * across + down * down);
    Pair c = circle(TWO_PI * uniform(random));
    return pair(radius * (lens[12] * c.x + lens[13] * c.y), radius * (lens[14] * c.x + lens[15] * c.y));
}
#endif

#if JITTERS
// JWildfire's antialiasing: moves some points by a random offset, usually a small one.
DEVICE Pair jittered(Pair place, const float *camera, Random *random) {
    real chance = uniform(random), logarithm = logarithm_of(1.0f - uniform(random));
    real radius = exponential_of(camera[AT_JITTER + 1] * sqrt(logarithm < 0.0f ? -logarithm : (real)(0.0f))) - 1.0f;
    Pair c = circle(TWO_PI * uniform(random));
    mask moves = chance < camera[AT_JITTER];
    return pair(moves ? place.x + radius * c.x : place.x, moves ? place.y + radius * c.y : place.y);
}
#endif

// Index of a point's bucket in the rectangle, -1 outside it. Column and row in the picture's grid are computed first,
// so that all rectangles agree. `place`: column and row with fractions.
DEVICE whole bucket_index(Point p, const float *camera, BucketRect rect, Random *random, Pair *place) {
#if IS_3D
    real depth = FUSED(camera[8], p.x, FUSED(camera[9], p.y, FUSED(camera[10], p.z, camera[11])));
    real fx = FUSED(camera[0], p.x, FUSED(camera[1], p.y, FUSED(camera[2], p.z, camera[3])));
    real fy = FUSED(camera[4], p.x, FUSED(camera[5], p.y, FUSED(camera[6], p.z, camera[7])));
#if DEFOCUS
    Pair offset = defocus(p, camera + 13, random);
    fx = fx + offset.x;
    fy = fy + offset.y;
#endif
    fx = fx / depth;
    fy = fy / depth;
#else
    real fx = FUSED(camera[0], p.x, FUSED(camera[1], p.y, camera[2]));
    real fy = FUSED(camera[3], p.x, FUSED(camera[4], p.y, camera[5]));
#endif
#if JITTERS
    Pair moved = jittered(pair(fx, fy), camera, random);
    fx = moved.x;
    fy = moved.y;
#endif
    mask seen = fx >= 0.0f && fx < 1e9f && fy >= 0.0f && fy < 1e9f;
#if IS_3D
    seen = seen && depth > camera[12];
#endif
#if HIDES
    seen = seen && p.hidden == 0.0f;
#endif
    *place = pair(fx, fy);
    whole column = truncated(seen ? fx : (real)(0.0f)) - rect.left;
    whole row = truncated(seen ? fy : (real)(0.0f)) - rect.top;
    seen = seen && column >= 0 && column < rect.columns && row >= 0 && row < rect.rows;
    return seen ? row * rect.columns + column : (whole)(-1);
}

// Index into the palette, in 1/256 of an entry if the palette is interpolated.
DEVICE whole palette_index(RecordLayout layout, real color) {
    int end = LINEAR_PALETTE ? 65280 : 255;
    whole d = truncated(color * (LINEAR_PALETTE ? 65536.0f : 256.0f));
    return d < 0 ? (whole)(0) : d > end ? (whole)(end) : d;
}

// A palette entry (red, alpha, blue, green) of the color `packed`, with the alpha of the entry `like`.
DEVICE uint4 rgb_entry(uint4 like, float packed) {
    uint c = (uint)packed, red = c >> 16, green = c >> 8 & 255u, blue = c & 255u;
    return make_uint4(red * like.y / 255u, like.y, blue * like.y / 255u, green * like.y / 255u);
}

// The color that one sample adds: (red, alpha, blue, green), integers 0 to 255. Fractions (of interpolated palettes,
// opacity and temporal weights) are rounded up with a probability equal to the fraction, so that the sums are exact on
// average; palette colors are in units of 1/256 then. rgb >= 0 replaces the palette's color.
DEVICE uint4 palette_color(RecordLayout layout, GLOBAL const uint4 *palette, int entry, float rgb) {
    if (RGB && rgb >= 0.0f) return rgb_entry(palette[LINEAR_PALETTE ? entry >> 8 : entry], rgb);
    if (!LINEAR_PALETTE) return palette[entry];
    uint4 a = palette[entry >> 8], b = palette[min((entry >> 8) + 1, 255)];
    uint t = (uint)entry & 255u;
    return make_uint4((a.x * (256u - t) + b.x * t) >> 8, (a.y * (256u - t) + b.y * t) >> 8,
                      (a.z * (256u - t) + b.z * t) >> 8, (a.w * (256u - t) + b.w * t) >> 8);
}

// The color times the opacity, rounded up with a probability equal to the fraction.
DEVICE uint4 rounded_color(uint4 c, uint opacity, uint random) {
    // 24 fractional bits: 8 of the palette, 16 of the opacity; 65280 * 65536 + up fits in 32 bits
    uint up = random >> 8;
    return make_uint4((c.x * opacity + up) >> 24, (c.y * opacity + up) >> 24, (c.z * opacity + up) >> 24,
                      (c.w * opacity + up) >> 24);
}

#if LANES > 1
DEVICE void add_sample(HISTOGRAM histogram, int bucket, uint4 color) { histogram[bucket] += color; }
#else
DEVICE void add_sample(GLOBAL uint4 *histogram, int bucket, uint4 color) {
#if SUMS == 2  // one atomic add of four integers in floats, exact below 2^24: check_exactness() finds whether all were
    float4 sample = make_float4((float)color.x, (float)color.y, (float)color.z, (float)color.w);
    atomic_add_float4((GLOBAL float4 *)histogram + bucket, sample);
#elif HAS_INT64_ATOMICS  // two 64-bit atomic adds of two channels each; flushed before a channel can overflow
    GLOBAL ulong *sums = (GLOBAL ulong *)(histogram + bucket);
    atom_add(sums, (ulong)color.y << 32 | color.x);
    atom_add(sums + 1, (ulong)color.w << 32 | color.z);
#else  // four 32-bit atomic adds: every OpenCL device has them
    GLOBAL uint *sums = (GLOBAL uint *)(histogram + bucket);
    atomic_add(sums, color.x);
    atomic_add(sums + 1, color.y);
    atomic_add(sums + 2, color.z);
    atomic_add(sums + 3, color.w);
#endif
}
#endif

// Plots the points of a work-item: `p` are the chains' points, `seen` the points after the final xforms. GPUs skip a
// point without a bucket; CPUs, whose lanes go together, add it to the last bucket.
DEVICE void plot_points(RecordLayout layout, Point p, Point seen, mask bad, bits opacity, const float *camera,
                        BucketRect rect, GLOBAL const uint4 *palette, HISTOGRAM histogram, GLOBAL ulong *nearest,
                        Random *random) {
    Pair place;
    int nowhere = rect.columns * rect.rows;
    whole bucket = bucket_index(seen, camera, rect, random, &place), entry = palette_index(layout, DISPLAYED(seen));
    bucket = bucket < 0 || bad || opacity == 0u ? (whole)(nowhere) : bucket;
#if LANES == 1
    if (bucket == nowhere) return;
#endif
    int buckets[LANES], entries[LANES];
    uint opacities[LANES], roundings[LANES];
    float rgbs[LANES];
    STORE_LANES(bucket, buckets);
    STORE_LANES(entry, entries);
    STORE_LANES(opacity, opacities);
    STORE_LANES(RGB_OF(seen), rgbs);
#if SOLID
    uint depths[LANES], surfaces[LANES], chances[LANES];
    STORE_LANES(depth_key(seen, camera), depths);
    STORE_LANES(surface_key(p, place, entry), surfaces);
    STORE_LANES(draw(random) >> 16, chances);  // 16 bits, as an opacity in 1/65536
    for (int lane = 0; lane < LANES; lane++)
        if (buckets[lane] < nowhere && chances[lane] < opacities[lane])
            keep_nearest(nearest, buckets[lane], depths[lane], surfaces[lane]);
#endif
    STORE_LANES(STOCHASTIC_ROUNDING ? draw(random) : (bits)(0u), roundings);
#if RECOLORS
    float channels[3][LANES];
    for (int lane = 0; lane < LANES; lane++) {
        uint4 c = palette_color(layout, palette, entries[lane], rgbs[lane]);
        channels[0][lane] = straight_channel(c.x, c.y);
        channels[1][lane] = straight_channel(c.w, c.y);
        channels[2][lane] = straight_channel(c.z, c.y);
    }
    real straight[3];
    for (int k = 0; k < 3; k++) straight[k] = LOAD_LANES(channels[k]);
    recolor(straight, p, seen, camera);
    for (int k = 0; k < 3; k++) STORE_LANES(straight[k], channels[k]);
#endif
    for (int lane = 0; lane < LANES; lane++) {
        uint4 c = palette_color(layout, palette, entries[lane], rgbs[lane]);
#if RECOLORS
        c = make_uint4(premultiplied_channel(channels[0][lane], c.y), c.y,
                       premultiplied_channel(channels[2][lane], c.y), premultiplied_channel(channels[1][lane], c.y));
#endif
        if (STOCHASTIC_ROUNDING) c = rounded_color(c, opacities[lane], roundings[lane]);
        add_sample(histogram, buckets[lane], c);
    }
}
