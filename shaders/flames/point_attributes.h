// Attributes of the points of JWildfire's flames besides position and color, and their effects: kinds of color,
// modifiers of the plotted color, fading with depth, nearest points of solid flames. Included by flame.cu. The formulas
// are JWildfire's.
//
// Point.extra: with SHOWN the palette coordinate that is plotted; then the modifiers of genome.MODIFIERS that the flame
// uses, AT_MOD_GAMMA and so on where defined, AT_MATERIAL in solid flames.
#if SHOWN  // the palette coordinate that is plotted differs from the one that is passed on
#define DISPLAYED(p) (p).extra[0]
#else
#define DISPLAYED(p) (p).color
#endif
// RECOLORS: the plotted color differs from the palette's.
#if FADES || defined(AT_MOD_GAMMA) || defined(AT_MOD_CONTRAST) || defined(AT_MOD_SATURATION) || defined(AT_MOD_HUE)
#define RECOLORS 1
#else
#define RECOLORS 0
#endif

#if EXTRA_FLOATS
#define COLOR_NONE 1
#define COLOR_DISTANCE 2
#define COLOR_CYCLIC 3

// Set the attributes of q, the image of p under an xform. `record_end`: the end of the xform's record, (kind of color,
// offset, factor) with SHOWN, then a factor and a term of each modifier.
DEVICE void update_attributes(Point p, Point *q, GLOBAL const float *record_end) {
#if SHOWN
    int kind = (int)record_end[0];
    if (kind == COLOR_CYCLIC) {
        real turned = p.color + record_end[2];
        q->color = turned - floor_of(turned);
    }
    real shown = q->color;
    if (kind == COLOR_NONE) shown = p.extra[0];
    if (kind == COLOR_DISTANCE) {
        real x = p.x - q->x, y = p.y - q->y, z = p.z - q->z;
        real entry = (record_end[1] + sqrt(x * x + y * y + z * z) * record_end[2]) * 254.0f + 0.5f;
        entry = entry < 1e6f ? truncation(entry) : (real)(0.0f);
        shown = remainder_of(entry, (real)(256.0f)) * (1.0f / 254.0f);  // the entry's coordinate, 0 to 1
    }
    q->extra[0] = shown;
#endif
    for (int k = SHOWN; k < EXTRA_FLOATS; k++) {
        GLOBAL const float *modifier = record_end + 3 * SHOWN + 2 * (k - SHOWN);
        q->extra[k] = modifier[0] * p.extra[k] + modifier[1];
    }
}
#endif

#if SOLID || FADES
// The camera's z coordinate of a point.
DEVICE real camera_depth(Point p, const float *camera) {
    const float *row = camera + AT_DEPTH;
    return FUSED(row[0], p.x, FUSED(row[1], p.y, FUSED(row[2], p.z, (real)(row[3]))));
}
#endif

#if RECOLORS
#define PLOTTED (200.0f / 256.0f)  // of a palette's color that JWildfire plots, on which its modifiers work

#ifdef AT_MOD_HUE
// Add `by` to the hue, 0 to 1, of a color 0 to 1; the sum is clamped.
DEVICE void move_hue(real c[3], real by) {
    real high = c[0], low = c[0];
    for (int k = 1; k < 3; k++) {
        high = c[k] > high ? c[k] : high;
        low = c[k] < low ? c[k] : low;
    }
    real room = high - low, middle = 0.5f * (high + low);
    mask gray = room <= 1e-8f || middle <= 1e-8f;
    real over = gray ? (real)(1.0f) : room;
    real red = (high - c[0]) / over, green = (high - c[1]) / over, blue = (high - c[2]) / over;
    real hue = c[0] == high   ? (c[1] == low ? 5.0f + blue : 1.0f - green)
               : c[1] == high ? (c[2] == low ? 1.0f + red : 3.0f - blue)
                              : (c[0] == low ? 3.0f + green : 5.0f - red);
    hue = 6.0f * clamped(hue * (1.0f / 6.0f) + by, zero_real(), (real)(1.0f));
    real sector = truncation(hue), along = hue - sector, rising = low + room * along, falling = high - room * along;
    mask first = sector < 1.0f || sector >= 6.0f;
    real moved[3];
    moved[0] = first || sector == 5.0f ? high : sector == 1.0f ? falling : sector == 4.0f ? rising : low;
    moved[1] = first ? rising : sector == 1.0f || sector == 2.0f ? high : sector == 3.0f ? falling : low;
    moved[2] = sector == 2.0f ? rising : sector == 3.0f || sector == 4.0f ? high : sector == 5.0f ? falling : low;
    for (int k = 0; k < 3; k++) c[k] = gray ? c[k] : moved[k];
}
#endif

// The color 0 to 255 that a chain at p plots at `seen`, from the palette's; results beyond 0 to 255 are clamped.
DEVICE void recolor(real c[3], Point p, Point seen, const float *camera) {
    for (int k = 0; k < 3; k++) c[k] = c[k] * PLOTTED;
#ifdef AT_MOD_GAMMA
    {
        real gamma = 4.2f / (4.2f - p.extra[AT_MOD_GAMMA]), light = c[0] * 0.299f + c[1] * 0.588f + c[2] * 0.113f;
        mask acts = light > 1e-8f && magnitude(p.extra[AT_MOD_GAMMA]) > 1e-8f;
        real lit = acts ? light : (real)(1.0f), factor = acts ? power_of(lit, gamma - 1.0f) : (real)(1.0f);
        for (int k = 0; k < 3; k++) c[k] = c[k] * factor;
    }
#endif
#ifdef AT_MOD_CONTRAST
    {
        real gamma = 1.2f / (1.2f - 0.5f * p.extra[AT_MOD_CONTRAST]);
        for (int k = 0; k < 3; k++) c[k] = (c[k] - 127.5f) * gamma + 127.5f;
    }
#endif
#ifdef AT_MOD_SATURATION
    {
        real light = c[0] * 0.299f + c[1] * 0.588f + c[2] * 0.113f;
        for (int k = 0; k < 3; k++) c[k] = c[k] + (c[k] - light) * p.extra[AT_MOD_SATURATION];
    }
#endif
#ifdef AT_MOD_HUE
    {
        real u[3];
        for (int k = 0; k < 3; k++) u[k] = clamped(c[k] * (1.0f / 255.0f), zero_real(), (real)(1.0f));
        move_hue(u, p.extra[AT_MOD_HUE]);
        mask acts = magnitude(p.extra[AT_MOD_HUE]) > 1e-8f;
        for (int k = 0; k < 3; k++) c[k] = acts ? u[k] * 255.0f : c[k];
    }
#endif
#if FADES
    {
        const float *fading = camera + AT_DEPTH + 4;  // strength, start, color (flame.cu)
        real beyond = fading[1] - camera_depth(seen, camera);
        real clear = beyond > 0.0f ? exponential_of(-beyond * beyond * fading[0]) : (real)(1.0f);
        for (int k = 0; k < 3; k++) c[k] = fading[2 + k] + (c[k] - fading[2 + k]) * clear;
    }
#endif
    for (int k = 0; k < 3; k++) c[k] = clamped(c[k] * (1.0f / PLOTTED), zero_real(), (real)(255.0f));
}

// The channels of a palette entry (red, alpha, blue, green; premultiplied) without its alpha, and back.
DEVICE float straight_channel(uint channel, uint alpha) {
    return alpha > 0u ? (float)channel * (255.0f / (float)alpha) : 0.0f;
}
DEVICE uint premultiplied_channel(float channel, uint alpha) {
    return (uint)(channel * (float)alpha * (1.0f / 255.0f) + 0.5f);
}
#endif

#if SOLID
// The nearest point of a bucket is the largest key. Upper half: z before the camera as an ordered integer. Lower half,
// 8 bits each from the highest: palette entry; material in 1/16; column and row in the bucket in 1/256 (solid.cu).
DEVICE bits depth_key(Point seen, const float *camera) {
    bits z = bits_of(camera_depth(seen, camera));
    return z >> 31 != 0u ? ~z : z | 0x80000000u;
}

// The lower half of the key of a bucket's nearest point: palette entry, material, and position within the bucket.
DEVICE bits surface_key(Point p, Pair place, whole entry) {
    real material = p.extra[AT_MATERIAL] * 16.0f;
    whole kind = truncated(material < 0.0f ? (real)(0.0f) : material > 255.0f ? (real)(255.0f) : material);
    whole column = truncated((place.x - truncation(place.x)) * 256.0f);
    whole row = truncated((place.y - truncation(place.y)) * 256.0f);
    whole color = LINEAR_PALETTE ? entry >> 8 : entry;
    return bits_of_whole(color) << 24 | bits_of_whole(kind) << 16 | bits_of_whole(column) << 8 | bits_of_whole(row);
}

DEVICE void keep_nearest(GLOBAL ulong *nearest, int bucket, uint depth, uint surface) {
    ulong key = (ulong)depth << 32 | surface;
    if (key > nearest[bucket]) atom_max(nearest + bucket, key);
}
#endif
