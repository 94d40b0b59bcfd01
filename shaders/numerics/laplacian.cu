// The Laplacian filter: the sum of the neighbors of a pixel minus their number times the pixel. `image` and `out` are
// (height, width, CHANNELS). Four kernels differ in the memory that holds the pixels: naive (global memory) and
// shared_tiles (local memory) are the lesson of the thesis "Making parallel programs fast on CUDA", chapter 4;
// register_rows (registers) is faster, and cpu_rows is for CPUs. Launched by renderer/numerics/laplacian.py.
//   ELEMENT     float, or uchar, whose results are clamped to 0..255; BYTES is 1 for uchar, else 0
//   CHANNELS    interleaved channels per pixel; a row is `width` pixels
//   ROW_LENGTH  elements of a row: CHANNELS * width
//   TILE_ROWS, TILE_COLUMNS   add shared_tiles: the tile of a group, 16 rows of 64 elements
//   ROWS (4), ROW_SKEW, HALO_WORDS   add register_rows: see above PITCH_WORDS
//   FRAME       adds `show`
//   NEIGHBORS   4 or 8: the 5-point or 9-point stencil
//   BORDER      pixels outside the image: 0 the nearest edge pixel, 1 the pixel beside that one (REFLECT_101), 2 from
//               the opposite side, 3 zero
#define ROW_LENGTH (width * CHANNELS)
#if BYTES
#define SUM int
#define RESULT(sum) ((uchar)min(max(sum, 0), 255))
#else
#define SUM float
#define RESULT(sum) (sum)
#endif

// The index of the pixel that replaces position i, or -1 for zero; i is at most one pixel outside of 0 .. size - 1.
DEVICE int border_index(int i, int size) {
    if (i >= 0 && i < size) return i;
    if (BORDER == 3) return -1;
    if (BORDER == 1) return i < 0 ? min(1, size - 1) : max(size - 2, 0);
    bool is_before = i < 0;
    return is_before == (BORDER != 2) ? 0 : size - 1;  // the nearest edge, or for BORDER 2 the opposite one
}

// Element e of a row; e may be up to one pixel outside of the row. Row -1 is zero.
DEVICE SUM at(GLOBAL const ELEMENT *image, int row, int e, uint width) {
    // CHANNELS is added, since e may be negative.
    int x = border_index((e + CHANNELS) / CHANNELS - 1, (int)width), channel = (e + CHANNELS) % CHANNELS;
    return row < 0 || x < 0 ? 0 : (SUM)image[(ulong)row * ROW_LENGTH + x * CHANNELS + channel];
}

// The terms of the stencil from the row above or below the pixel, and from the pixel's row; the pixel weighs
// -NEIGHBORS.
#define OUTER_ROW_TERM(left, center, right) (NEIGHBORS == 8 ? (left) + (center) + (right) : (center))
#define CENTER_ROW_TERM(left, center, right) ((left) + (right) - NEIGHBORS * (center))

// Computes one element of `out`; reads every neighbor from global memory.
DEVICE void filter_element(GLOBAL const ELEMENT *image, GLOBAL ELEMENT *out, ulong index, uint width, uint height) {
    int y = (int)(index / ROW_LENGTH), e = (int)(index % ROW_LENGTH);
    SUM sum = 0;
    UNROLL for (int dy = -1; dy <= 1; dy++) {
        int row = border_index(y + dy, (int)height);
        SUM left = at(image, row, e - CHANNELS, width), center = at(image, row, e, width);
        SUM right = at(image, row, e + CHANNELS, width);
        sum += dy == 0 ? CENTER_ROW_TERM(left, center, right) : OUTER_ROW_TERM(left, center, right);
    }
    out[index] = RESULT(sum);
}

// One thread per element: the first version of the thesis, also used for small images and more than four channels.
KERNEL naive(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height) {
    ulong index = thread_index_long();
    if (index < (ulong)ROW_LENGTH * height) filter_element(image, out, index, width, height);
}

// The lesson of the thesis: tiles in local memory are 1.4 to 2 times as fast as the naive kernel (h200_numbers.jsonl).
#ifdef TILE_ROWS  // A group reads its tile and a halo into local memory, then every thread computes from there.
#define PITCH (TILE_COLUMNS + 2 * CHANNELS)
KERNEL shared_tiles(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height) {
    LOCAL_ARRAY(SUM, tile, PITCH * (TILE_ROWS + 2));
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
        LOCAL const SUM *center = &tile[(i / TILE_COLUMNS + 1) * PITCH + i % TILE_COLUMNS + CHANNELS];
        SUM sum = CENTER_ROW_TERM(center[-CHANNELS], center[0], center[CHANNELS]);
        sum += OUTER_ROW_TERM(center[-PITCH - CHANNELS], center[-PITCH], center[-PITCH + CHANNELS]);
        sum += OUTER_ROW_TERM(center[PITCH - CHANNELS], center[PITCH], center[PITCH + CHANNELS]);
        out[(ulong)y * ROW_LENGTH + e] = RESULT(sum);
    }
}
#endif

// A thread filters one 16-byte word of each of ROWS rows in registers; all its loads are in flight at once. It is 2
// times as fast as shared_tiles for float32, 5 times for uint8 (h200_numbers.jsonl).
#ifdef ROWS
#define WORD_LENGTH (16 / (int)sizeof(ELEMENT))  // elements of a word of 16 bytes
#define INPUT_ROWS (ROWS + 2)

// The image is processed as one linear array of aligned words of 16 bytes. A row is PITCH_WORDS words and ROW_SKEW
// elements long; ROW_SKEW is 0 if the row's length is a multiple of 16 bytes, and below 0 if it is shorter than
// PITCH_WORDS words. A word that begins at element f needs its neighbors above and below, the elements from f -
// ROW_LENGTH and from f + ROW_LENGTH on. These begin ROW_SKEW elements before the word PITCH_WORDS words earlier, and
// ROW_SKEW elements after the beginning of the word PITCH_WORDS later: the shifts are compile-time constants. A thread
// handles ROWS words, PITCH_WORDS apart, and loads HALO_WORDS more words on either side of each. `edges` further
// threads compute one element each: the pixels at the left and right border, and all elements before `head` and from
// `tail` on.
#define PITCH_WORDS (((int)ROW_LENGTH - (ROW_SKEW)) / WORD_LENGTH)
#define SPAN (2 * HALO_WORDS + 1)  // words read of a row

// Computes the element number `thread` of the elements that filter_run leaves out: before `head`, from `tail` on, and
// at the left and right border.
DEVICE void filter_edges(GLOBAL const ELEMENT *image, GLOBAL ELEMENT *out, uint thread, uint width, uint height,
                         uint head, ulong tail) {
    ulong count = (ulong)ROW_LENGTH * height, index = thread;
    if (thread >= head) index = tail + (thread - head);
    if (index >= count) {
        uint i = (uint)(index - count), edge_column = i % (2 * CHANNELS), row = 1 + i / (2 * CHANNELS);
        index =
            (ulong)row * ROW_LENGTH + (edge_column < CHANNELS ? edge_column : ROW_LENGTH - 2 * CHANNELS + edge_column);
        if (row + 1 >= height || index < head || index >= tail) return;
    }
    filter_element(image, out, index, width, height);
}

#if BYTES
// Bytes are added in pairs, in the halves of a 32-bit word: the even bytes of a word of four, and the odd ones.
#define EVEN(word) ((word) & 0x00ff00ffu)
#define BIAS 0x80008000u  // added so that both halves stay positive: sums are at most 9 * 255 in magnitude

// Bytes `at` and `at` + 2 of a row in the halves of a word; `at` is a constant.
DEVICE uint pair_at(const uint *even, const uint *odd, int at) {
    const uint *pairs = at % 2 ? odd : even;
    return at / 2 % 2 ? funnel_shift_right(pairs[at / 4], pairs[at / 4 + 1], 16) : pairs[at / 4];
}

// The four bytes from byte `at` of a row's words on.
#define WORD_AT(row, at) funnel_shift_right(row[(at) / 4], row[(at) / 4 + 1], 8 * ((at) % 4))
#define CENTER_WEIGHT (NEIGHBORS == 8 ? 9 : 4)  // 9 is subtracted from the sum of all nine
// LANE: a quarter of a WORD of 16 bytes. RESULT_AT: element i of the results; RESULT_WORD: all of them.
#define LANE uint
#define WORD uint4
#define RESULT_AT(i) ((uchar)(results[(i) / 4] >> (8 * ((i) % 4))))
#define RESULT_WORD make_uint4(results[0], results[1], results[2], results[3])
// Filters one 16-byte word: `up`, `middle` and `down` are the SPAN words around it in three rows. results[i] becomes
// four bytes here, one float in the version below.
DEVICE void filter_run(const uint *up, const uint *middle, const uint *down, uint *results) {
    // Words of four bytes: the one before the 16 bytes, their four, the one behind. In pairs, u, o and d are a word of
    // the row above, the row itself and the row below.
    uint even[6], odd[6], sums_even[4], sums_odd[4];
    UNROLL for (int n = 0; n < 6; n++) {
        const int at = WORD_LENGTH * HALO_WORDS - 4 + 4 * n;
        uint u = WORD_AT(up, at - (ROW_SKEW)), o = middle[at / 4], d = WORD_AT(down, at + (ROW_SKEW));
        uint column_even = EVEN(u) + EVEN(d), column_odd = unpack_odd_bytes(u) + unpack_odd_bytes(d);
        even[n] = EVEN(o);
        odd[n] = unpack_odd_bytes(o);
        if (n > 0 && n < 5) {
            sums_even[n - 1] = BIAS - CENTER_WEIGHT * even[n] + (NEIGHBORS == 4 ? column_even : 0);
            sums_odd[n - 1] = BIAS - CENTER_WEIGHT * odd[n] + (NEIGHBORS == 4 ? column_odd : 0);
        }
        if (NEIGHBORS == 8) {
            even[n] += column_even;
            odd[n] += column_odd;
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        const int left = 4 * (i + 1) - CHANNELS, right = 4 * (i + 1) + CHANNELS;
        sums_even[i] += pair_at(even, odd, left) + pair_at(even, odd, right) + (NEIGHBORS == 8 ? even[i + 1] : 0);
        sums_odd[i] += pair_at(even, odd, left + 1) + pair_at(even, odd, right + 1) + (NEIGHBORS == 8 ? odd[i + 1] : 0);
        results[i] = clamp_to_u8x2(sums_even[i]) | clamp_to_u8x2(sums_odd[i]) << 8;
    }
}
#else
#define LANE float
#define WORD float4
#define RESULT_AT(i) results[i]
#define RESULT_WORD make_float4(results[0], results[1], results[2], results[3])
DEVICE void filter_run(const float *up, const float *middle, const float *down, float *results) {
    UNROLL for (int i = 0; i < WORD_LENGTH; i++) {
        const int at = WORD_LENGTH * HALO_WORDS + i, above = at - (ROW_SKEW), below = at + (ROW_SKEW);
        float sum = OUTER_ROW_TERM(up[above - CHANNELS], up[above], up[above + CHANNELS]);
        sum += CENTER_ROW_TERM(middle[at - CHANNELS], middle[at], middle[at + CHANNELS]);
        results[i] = sum + OUTER_ROW_TERM(down[below - CHANNELS], down[below], down[below + CHANNELS]);
    }
}
#endif

// Filters the words PITCH_WORDS + HALO_WORDS to last_word - 1 of the image; filter_edges computes the other elements.
KERNEL register_rows(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height,
                     uint head, ulong tail, uint edges) {
    if (thread_index() < edges) {
        filter_edges(image, out, thread_index(), width, height, head, tail);
        return;
    }
    uint thread = thread_index() - edges, along = thread % PITCH_WORDS, down = thread / PITCH_WORDS * ROWS;
    uint last_word = (uint)(tail / WORD_LENGTH), aligned_words = last_word + PITCH_WORDS + HALO_WORDS;
    uint first_word = PITCH_WORDS * (1 + down) + HALO_WORDS + along;  // of the thread's ROWS words
    if (first_word >= last_word) return;
    GLOBAL const WORD *words = (GLOBAL const WORD *)image;
    LANE elements[INPUT_ROWS][4 * SPAN];  // reads end with the image's words, beyond which the last threads' rows lie
    UNROLL for (int r = 0; r < INPUT_ROWS; r++) UNROLL for (int w = 0; w < SPAN; w++) {
        WORD word = words[min(first_word + (r - 1) * PITCH_WORDS + (uint)(w - HALO_WORDS), aligned_words - 1)];
        UNROLL for (int i = 0; i < 4; i++) elements[r][4 * w + i] = ((const LANE *)&word)[i];
    }
    // `column`: the index in its row of a word's first element. A row is ROW_SKEW elements longer than PITCH_WORDS
    // words, so `column` decreases by ROW_SKEW from row to row.
    int length = (int)ROW_LENGTH,
        column = ((int)(along + HALO_WORDS) * WORD_LENGTH - (int)(1 + down) * (ROW_SKEW)) % length;
    if (column < 0) column += length;
    UNROLL for (int r = 0; r < ROWS; r++) {
        uint index = first_word + r * PITCH_WORDS;
        LANE results[4];
        filter_run(elements[r], elements[r + 1], elements[r + 2], results);
        if (index < last_word) {
            if (column >= CHANNELS && column + WORD_LENGTH <= length - CHANNELS)
                ((GLOBAL WORD *)out)[index] = RESULT_WORD;
            else
                UNROLL for (int i = 0; i < WORD_LENGTH; i++) {
                    int e = column + i < length ? column + i : column + i - length;
                    if (e >= CHANNELS && e < length - CHANNELS) out[(ulong)index * WORD_LENGTH + i] = RESULT_AT(i);
                }
        }
        column -= ROW_SKEW;
        if (column < 0) column += length;
        if (column >= length) column -= length;
    }
}
#endif

// For CPUs: a work-item filters complete rows, in a loop that the compiler vectorizes. `step` equals CHANNELS but is a
// run-time argument: with a constant, the compiler carries neighbors from one iteration to the next in scalar registers
// and does not vectorize the loop. 1.2 to 8 times as fast as OpenCV (cpu_2cores.jsonl).
KERNEL cpu_rows(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height,
                uint rows_per_item, int step) {
    int first_row = (int)(thread_index() * rows_per_item), last_row = min((int)height, first_row + (int)rows_per_item);
    for (int y = first_row; y < last_row; y++) {
        int up = border_index(y - 1, (int)height), down = border_index(y + 1, (int)height);
        SUM up_weight = up < 0 ? 0 : 1, down_weight = down < 0 ? 0 : 1;  // rows -1 are zero (BORDER 3)
        GLOBAL const ELEMENT *RESTRICT u = image + (ulong)max(up, 0) * ROW_LENGTH;
        GLOBAL const ELEMENT *RESTRICT o = image + (ulong)y * ROW_LENGTH;
        GLOBAL const ELEMENT *RESTRICT d = image + (ulong)max(down, 0) * ROW_LENGTH;
        GLOBAL ELEMENT *RESTRICT results = out + (ulong)y * ROW_LENGTH;
        int length = (int)ROW_LENGTH;
        for (int e = CHANNELS; e < length - CHANNELS; e++) {
            SUM sum = CENTER_ROW_TERM((SUM)o[e - step], (SUM)o[e], (SUM)o[e + step]);
            sum += up_weight * OUTER_ROW_TERM((SUM)u[e - step], (SUM)u[e], (SUM)u[e + step]);
            sum += down_weight * OUTER_ROW_TERM((SUM)d[e - step], (SUM)d[e], (SUM)d[e + step]);
            results[e] = RESULT(sum);
        }
        for (int i = 0; i < 2 * CHANNELS; i++) {
            int e = i < CHANNELS ? i : length - 2 * CHANNELS + i;
            if (e < CHANNELS && i >= CHANNELS) continue;  // a row of one pixel has one border
            filter_element(image, out, (ulong)y * ROW_LENGTH + e, width, height);
        }
    }
}

#define MIDDLE_GRAY 0.2140411f  // linear value of sRGB 0.5
#ifdef FRAME
// Turns the filtered values, a float4 per pixel, into colors in place: magnitude times `gain`, or with show_sign 1
// half of the value times `gain` plus middle gray.
KERNEL show(GLOBAL float4 *edges, uint count, float gain, int show_sign) {
    uint i = thread_index();
    if (i >= count) return;
    float4 v = edges[i];
    float3 shown = make_float3(v.x, v.y, v.z) * gain;
    shown = show_sign ? shown * 0.5f + make_float3(MIDDLE_GRAY, MIDDLE_GRAY, MIDDLE_GRAY)
                      : make_float3(fabs(shown.x), fabs(shown.y), fabs(shown.z));
    edges[i] = make_float4(shown.x, shown.y, shown.z, 1.0f);
}
#endif
