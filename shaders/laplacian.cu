// The Laplacian filter: sum of the neighbours minus their number times the pixel (thesis, chapter 4), three ways and a fourth.
//   ELEMENT     float, or uchar, whose results are cut to 0..255
//   CHANNELS    of a pixel, side by side; a row is `width` pixels
//   NEIGHBOURS  4 or 8
//   BORDER      0 the edge pixel goes on, 1 mirrored about the edge, 2 from the other side, 3 zero
#define ROW_LENGTH (width * CHANNELS)
#if BYTES
#define SUM int
#define RESULT(sum) ((uchar)min(max(sum, 0), 255))
#else
#define SUM float
#define RESULT(sum) (sum)
#endif

// The index that stands for i; -1 where zero does.
DEVICE int border_index(int i, int size) {
    if (i >= 0 && i < size) return i;
#if BORDER == 0
    return i < 0 ? 0 : size - 1;
#elif BORDER == 1
    return i < 0 ? 0 : size - 1;  // one pixel outside, the mirror shows the edge pixel itself
#elif BORDER == 2
    return i < 0 ? size - 1 : 0;
#else
    return -1;
#endif
}

// Element e of a row, which may lie one pixel outside; row -1 is zero.
DEVICE SUM at(GLOBAL const ELEMENT *image, int row, int e, uint width) {
    int x = border_index((e + CHANNELS) / CHANNELS - 1, (int)width), channel = (e + CHANNELS) % CHANNELS;
    return row < 0 || x < 0 ? 0 : (SUM)image[(ulong)row * ROW_LENGTH + x * CHANNELS + channel];
}

// What a row gives to the results above and below it, and to its own.
#if NEIGHBOURS == 8
#define TO_OTHERS(left, own, right) ((left) + (own) + (right))
#define TO_OWN(left, own, right) ((left) + (right) - 8 * (own))
#else
#define TO_OTHERS(left, own, right) (own)
#define TO_OWN(left, own, right) ((left) + (right) - 4 * (own))
#endif

// Plain: a thread an element, every neighbour from global memory.
KERNEL plain(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height) {
    ulong place = thread_index_long();
    if (place >= (ulong)ROW_LENGTH * height) return;
    int y = (int)(place / ROW_LENGTH), e = (int)(place % ROW_LENGTH);
    SUM sum = 0;
    UNROLL for (int dy = -1; dy <= 1; dy++) {
        int row = border_index(y + dy, (int)height);
        SUM left = at(image, row, e - CHANNELS, width), own = at(image, row, e, width);
        SUM right = at(image, row, e + CHANNELS, width);
        sum += dy == 0 ? TO_OWN(left, own, right) : TO_OTHERS(left, own, right);
    }
    out[place] = RESULT(sum);
}

#ifdef TILE_ROWS  // A group reads its tile and a halo into local memory, then every thread computes from there.
#define PITCH (TILE_COLUMNS + 2 * CHANNELS)
KERNEL tiles(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height) {
    LOCAL_ARRAY(SUM, tile, PITCH *(TILE_ROWS + 2));
    uint across = (ROW_LENGTH + TILE_COLUMNS - 1) / TILE_COLUMNS;
    int first_row = (int)(group_index() / across * TILE_ROWS), first = (int)(group_index() % across * TILE_COLUMNS);
    for (uint i = local_index(); i < PITCH * (TILE_ROWS + 2); i += GROUP_SIZE) {
        int y = first_row + (int)(i / PITCH) - 1, e = first + (int)(i % PITCH) - CHANNELS;
        bool needed = y <= (int)height && e < (int)ROW_LENGTH + CHANNELS;
        tile[i] = needed ? at(image, border_index(y, (int)height), e, width) : 0;
    }
    BARRIER();
    for (uint i = local_index(); i < TILE_COLUMNS * TILE_ROWS; i += GROUP_SIZE) {
        uint y = first_row + i / TILE_COLUMNS, e = first + i % TILE_COLUMNS;
        if (y >= height || e >= ROW_LENGTH) continue;
        LOCAL const SUM *own = &tile[(i / TILE_COLUMNS + 1) * PITCH + i % TILE_COLUMNS + CHANNELS];
        SUM sum = TO_OWN(own[-CHANNELS], own[0], own[CHANNELS]);
        sum += TO_OTHERS(own[-PITCH - CHANNELS], own[-PITCH], own[-PITCH + CHANNELS]);
        sum += TO_OTHERS(own[PITCH - CHANNELS], own[PITCH], own[PITCH + CHANNELS]);
        out[(ulong)y * ROW_LENGTH + e] = RESULT(sum);
    }
}
#endif

#ifdef ROWS  // A thread slides down ROWS rows with 16 bytes of each in registers: every row is read once, and added once.
#define RUN (16 / (int)sizeof(ELEMENT))
#define WINDOW (RUN + 2 * CHANNELS)

DEVICE void load_window(GLOBAL const ELEMENT *image, int row, int first, uint width, bool inner, SUM *window) {
#if WORDS
    if (inner && row >= 0) {  // `inner`: the run and the pixels beside it lie in the row
        GLOBAL const ELEMENT *place = image + (ulong)row * ROW_LENGTH + first;
#if BYTES
        uint4 word = *(GLOBAL const uint4 *)place;
        uint parts[4] = {word.x, word.y, word.z, word.w};
        UNROLL for (int i = 0; i < RUN; i++) window[CHANNELS + i] = (SUM)(parts[i / 4] >> (8 * (i % 4)) & 255u);
#else
        float4 word = *(GLOBAL const float4 *)place;
        window[CHANNELS] = word.x;
        window[CHANNELS + 1] = word.y;
        window[CHANNELS + 2] = word.z;
        window[CHANNELS + 3] = word.w;
#endif
        UNROLL for (int i = 0; i < CHANNELS; i++) {
            window[i] = (SUM)place[i - CHANNELS];
            window[CHANNELS + RUN + i] = (SUM)place[RUN + i];
        }
        return;
    }
#endif
    UNROLL for (int i = 0; i < WINDOW; i++) {
        int e = first + i - CHANNELS;
        window[i] = e < (int)ROW_LENGTH + CHANNELS ? at(image, row, e, width) : 0;
    }
}

DEVICE void store_run(GLOBAL ELEMENT *place, const SUM *results, int room, bool inner) {
#if WORDS
    if (inner) {
#if BYTES
        uint parts[4] = {0, 0, 0, 0};
        UNROLL for (int i = 0; i < RUN; i++) parts[i / 4] |= (uint)RESULT(results[i]) << (8 * (i % 4));
        *(GLOBAL uint4 *)place = make_uint4(parts[0], parts[1], parts[2], parts[3]);
#else
        *(GLOBAL float4 *)place = make_float4(results[0], results[1], results[2], results[3]);
#endif
        return;
    }
#endif
    UNROLL for (int i = 0; i < RUN; i++)
        if (i < room) place[i] = RESULT(results[i]);
}

KERNEL rows(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height) {
    uint across = (ROW_LENGTH + RUN - 1) / RUN;
    ulong thread = thread_index_long();
    int first = (int)(thread % across) * RUN, first_row = (int)(thread / across) * ROWS;
    if (first_row >= (int)height) return;
    bool inner = first >= CHANNELS && first + RUN + CHANNELS <= (int)ROW_LENGTH;
    SUM above[RUN], own[RUN], here[RUN], window[WINDOW];
    load_window(image, border_index(first_row - 1, (int)height), first, width, inner, window);
    UNROLL for (int i = 0; i < RUN; i++) above[i] = TO_OTHERS(window[i], window[i + CHANNELS], window[i + 2 * CHANNELS]);
    load_window(image, first_row, first, width, inner, window);
    UNROLL for (int i = 0; i < RUN; i++) {
        here[i] = TO_OTHERS(window[i], window[i + CHANNELS], window[i + 2 * CHANNELS]);
        own[i] = TO_OWN(window[i], window[i + CHANNELS], window[i + 2 * CHANNELS]);
    }
    UNROLL for (int r = 0; r < ROWS; r++) {
        int y = first_row + r;
        if (y < (int)height) {
            SUM results[RUN];
            load_window(image, border_index(y + 1, (int)height), first, width, inner, window);
            UNROLL for (int i = 0; i < RUN; i++) {
                SUM others = TO_OTHERS(window[i], window[i + CHANNELS], window[i + 2 * CHANNELS]);
                results[i] = above[i] + own[i] + others;
                above[i] = here[i];
                here[i] = others;
                own[i] = TO_OWN(window[i], window[i + CHANNELS], window[i + 2 * CHANNELS]);
            }
            store_run(out + (ulong)y * ROW_LENGTH + first, results, (int)ROW_LENGTH - first, inner);
        }
    }
}
#endif

// For processors of one lane: a work item takes whole rows, and the loop along a row becomes vector instructions. `step` is
// CHANNELS once more, unknown to the compiler: else it keeps neighbours from one turn to the next, in scalars.
KERNEL strips(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height, uint each,
              int step) {
    int first_row = (int)(thread_index() * each), last_row = min((int)height, first_row + (int)each);
    for (int y = first_row; y < last_row; y++) {
        int up = border_index(y - 1, (int)height), down = border_index(y + 1, (int)height);
        SUM up_weight = up < 0 ? 0 : 1, down_weight = down < 0 ? 0 : 1;
        GLOBAL const ELEMENT *RESTRICT u = image + (ulong)max(up, 0) * ROW_LENGTH;
        GLOBAL const ELEMENT *RESTRICT o = image + (ulong)y * ROW_LENGTH;
        GLOBAL const ELEMENT *RESTRICT d = image + (ulong)max(down, 0) * ROW_LENGTH;
        GLOBAL ELEMENT *RESTRICT place = out + (ulong)y * ROW_LENGTH;
        int length = (int)ROW_LENGTH;
        for (int e = CHANNELS; e < length - CHANNELS; e++) {
            SUM sum = TO_OWN((SUM)o[e - step], (SUM)o[e], (SUM)o[e + step]);
            sum += up_weight * TO_OTHERS((SUM)u[e - step], (SUM)u[e], (SUM)u[e + step]);
            sum += down_weight * TO_OTHERS((SUM)d[e - step], (SUM)d[e], (SUM)d[e + step]);
            place[e] = RESULT(sum);
        }
        for (int i = 0; i < 2 * CHANNELS; i++) {
            int e = i < CHANNELS ? i : length - 2 * CHANNELS + i;
            if (e < CHANNELS && i >= CHANNELS) continue;  // a row of one pixel has one edge
            SUM sum = TO_OWN(at(image, y, e - CHANNELS, width), at(image, y, e, width), at(image, y, e + CHANNELS, width));
            sum += TO_OTHERS(at(image, up, e - CHANNELS, width), at(image, up, e, width), at(image, up, e + CHANNELS, width));
            sum += TO_OTHERS(at(image, down, e - CHANNELS, width), at(image, down, e, width),
                             at(image, down, e + CHANNELS, width));
            place[e] = RESULT(sum);
        }
    }
}

#define MIDDLE 0.2140411f  // linear, of the sRGB value one half
#ifdef FRAME  // Edges of a frame of four floats a pixel, made visible: their amount times `gain`, or around middle grey.
KERNEL show(GLOBAL float4 *edges, uint count, float gain, int is_signed) {
    uint i = thread_index();
    if (i >= count) return;
    float4 v = edges[i];
    float3 shown = make_float3(v.x, v.y, v.z) * gain;
    shown = is_signed ? shown * 0.5f + make_float3(MIDDLE, MIDDLE, MIDDLE) : make_float3(fabs(shown.x), fabs(shown.y), fabs(shown.z));
    edges[i] = make_float4(shown.x, shown.y, shown.z, 1.0f);
}
#endif
