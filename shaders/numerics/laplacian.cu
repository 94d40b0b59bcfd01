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

// Element `place`, every neighbour from global memory.
DEVICE void filter_element(GLOBAL const ELEMENT *image, GLOBAL ELEMENT *out, ulong place, uint width, uint height) {
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

// Plain: a thread an element.
KERNEL plain(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height) {
    ulong place = thread_index_long();
    if (place < (ulong)ROW_LENGTH * height) filter_element(image, out, place, width, height);
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

#ifdef ROWS  // A thread takes 16 bytes of ROWS rows: all are asked for at once, so that many loads are in flight.
#define RUN (16 / (int)sizeof(ELEMENT))

#define COUNT (ROWS + 2)
#if !BYTES
DEVICE void spread(float *to, float4 word) {
    to[0] = word.x;
    to[1] = word.y;
    to[2] = word.z;
    to[3] = word.w;
}
#else
// Bytes are added as pairs in the halves of words: the even ones of a word of four, and the odd ones.
#define EVEN(word) ((word) & 0x00ff00ffu)
#define ODD(word) ((word) >> 8 & 0x00ff00ffu)
#define BETWEEN(a, b) funnel_shift_right(a, b, 16)  // upper half of a, lower half of b
// The pairs CHANNELS bytes before and behind the pairs of a word: p, w and n are of the word before, the word, the next.
#if CHANNELS == 1
#define LEFT_EVEN(p, w, n) BETWEEN(odd[p], odd[w])
#define LEFT_ODD(p, w, n) even[w]
#define RIGHT_EVEN(p, w, n) odd[w]
#define RIGHT_ODD(p, w, n) BETWEEN(even[w], even[n])
#elif CHANNELS == 2
#define LEFT_EVEN(p, w, n) BETWEEN(even[p], even[w])
#define LEFT_ODD(p, w, n) BETWEEN(odd[p], odd[w])
#define RIGHT_EVEN(p, w, n) BETWEEN(even[w], even[n])
#define RIGHT_ODD(p, w, n) BETWEEN(odd[w], odd[n])
#elif CHANNELS == 3
#define LEFT_EVEN(p, w, n) odd[p]
#define LEFT_ODD(p, w, n) BETWEEN(even[p], even[w])
#define RIGHT_EVEN(p, w, n) BETWEEN(odd[w], odd[n])
#define RIGHT_ODD(p, w, n) even[n]
#else
#define LEFT_EVEN(p, w, n) even[p]
#define LEFT_ODD(p, w, n) odd[p]
#define RIGHT_EVEN(p, w, n) even[n]
#define RIGHT_ODD(p, w, n) odd[n]
#endif
#define BIAS 0x80008000u  // keeps halves positive: they lie within 9 * 255 of it
#endif

#if !DRIFTS  // Rows are whole words.
// Where the run begins in row number r of a thread's COUNT rows; rows that do not count are read from some row that is there.
DEVICE GLOBAL const ELEMENT *run_of(GLOBAL const ELEMENT *image, int row, int first, uint width) {
    return image + (ulong)max(row, 0) * ROW_LENGTH + first;
}
#define ROW_OF(r) border_index(min(first_row - 1 + (r), (int)height), (int)height)
#define BESIDE(r, e) at(image, max(ROW_OF(r), 0), e, width)  // of a pixel beside the run, which the border may stand for

#if !BYTES
DEVICE void run_by_words(GLOBAL const float *image, GLOBAL float *out, int first, int first_row, uint width, uint height) {
    int last = (int)ROW_LENGTH - RUN;
    float rows[COUNT][12];  // a row's word between the words beside it, of which CHANNELS numbers count
    UNROLL for (int r = 0; r < COUNT; r++) {
        GLOBAL const float *place = run_of(image, ROW_OF(r), first, width);
        spread(&rows[r][4], *(GLOBAL const float4 *)place);
#if CHANNELS == 1
        rows[r][3] = first > 0 ? place[-1] : BESIDE(r, -1);
        rows[r][8] = first < last ? place[4] : BESIDE(r, first + RUN);
#else
        if (first > 0) spread(&rows[r][0], *(GLOBAL const float4 *)(place - 4));
        else UNROLL for (int i = 4 - CHANNELS; i < 4; i++) rows[r][i] = BESIDE(r, i - 4);
        if (first < last) spread(&rows[r][8], *(GLOBAL const float4 *)(place + 4));
        else UNROLL for (int i = 0; i < CHANNELS; i++) rows[r][8 + i] = BESIDE(r, first + RUN + i);
#endif
    }
#if BORDER == 3
    UNROLL for (int r = 0; r < COUNT; r++)
        if (ROW_OF(r) < 0) UNROLL for (int i = 0; i < 12; i++) rows[r][i] = 0;
#endif
    UNROLL for (int r = 0; r < ROWS; r++) {
        float results[4];
        UNROLL for (int i = 4; i < 8; i++) {
            float sum = TO_OTHERS(rows[r][i - CHANNELS], rows[r][i], rows[r][i + CHANNELS]);
            sum += TO_OWN(rows[r + 1][i - CHANNELS], rows[r + 1][i], rows[r + 1][i + CHANNELS]);
            sum += TO_OTHERS(rows[r + 2][i - CHANNELS], rows[r + 2][i], rows[r + 2][i + CHANNELS]);
            results[i - 4] = sum;
        }
        if (first_row + r < (int)height)
            *(GLOBAL float4 *)(out + (ulong)(first_row + r) * ROW_LENGTH + first) =
                make_float4(results[0], results[1], results[2], results[3]);
    }
}
#else
#if NEIGHBOURS == 8
#define SUM_OF(left, own, right) ((left) + (own) + (right))
#define OWN_OF(beside, own) ((beside) + BIAS - 9 * (own))
#else
#define SUM_OF(left, own, right) ((left) + (right))
#define OWN_OF(beside, own) ((beside) + BIAS - 4 * (own))
#endif

DEVICE void run_by_words(GLOBAL const uchar *image, GLOBAL uchar *out, int first, int first_row, uint width, uint height) {
    int last = (int)ROW_LENGTH - RUN;
    uint rows[COUNT][6];
    UNROLL for (int r = 0; r < COUNT; r++) {
        GLOBAL const uint *place = (GLOBAL const uint *)run_of(image, ROW_OF(r), first, width);
        uint4 word = *(GLOBAL const uint4 *)place;
        uint before = 0, behind = 0;
        if (first > 0) before = place[-1];
        else UNROLL for (int i = 4 - CHANNELS; i < 4; i++) before |= (uint)BESIDE(r, i - 4) << (8 * i);
        if (first < last) behind = place[4];
        else UNROLL for (int i = 0; i < CHANNELS; i++) behind |= (uint)BESIDE(r, first + RUN + i) << (8 * i);
        rows[r][0] = before;
        rows[r][1] = word.x;
        rows[r][2] = word.y;
        rows[r][3] = word.z;
        rows[r][4] = word.w;
        rows[r][5] = behind;
    }
#if BORDER == 3
    UNROLL for (int r = 0; r < COUNT; r++)
        if (ROW_OF(r) < 0) UNROLL for (int i = 0; i < 6; i++) rows[r][i] = 0;
#endif
    uint above[8], own[8];  // pairs of what the row above gives, and of what this row and the one above give
    UNROLL for (int r = 0; r < COUNT; r++) {
        uint even[6], odd[6], results[4];
        UNROLL for (int i = 0; i < 6; i++) { even[i] = EVEN(rows[r][i]); odd[i] = ODD(rows[r][i]); }
        UNROLL for (int i = 0; i < 4; i++) {
            uint beside_even = SUM_OF(LEFT_EVEN(i, i + 1, i + 2), even[i + 1], RIGHT_EVEN(i, i + 1, i + 2));
            uint beside_odd = SUM_OF(LEFT_ODD(i, i + 1, i + 2), odd[i + 1], RIGHT_ODD(i, i + 1, i + 2));
            uint gives_even = NEIGHBOURS == 8 ? beside_even : even[i + 1];
            uint gives_odd = NEIGHBOURS == 8 ? beside_odd : odd[i + 1];
            if (r >= 2) results[i] = clamp_to_u8x2(own[2 * i] + gives_even) | clamp_to_u8x2(own[2 * i + 1] + gives_odd) << 8;
            if (r >= 1) {
                own[2 * i] = OWN_OF(beside_even, even[i + 1]) + above[2 * i];
                own[2 * i + 1] = OWN_OF(beside_odd, odd[i + 1]) + above[2 * i + 1];
            }
            above[2 * i] = gives_even;
            above[2 * i + 1] = gives_odd;
        }
        if (r >= 2 && first_row + r - 2 < (int)height)
            *(GLOBAL uint4 *)(out + (ulong)(first_row + r - 2) * ROW_LENGTH + first) =
                make_uint4(results[0], results[1], results[2], results[3]);
    }
}
#endif

KERNEL rows(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height) {
    uint across = (ROW_LENGTH + RUN - 1) / RUN;
    ulong thread = thread_index_long();
    int first = (int)(thread % across) * RUN, first_row = (int)(thread / across) * ROWS;
    if (first_row < (int)height) run_by_words(image, out, first, first_row, width, height);
}

#else  // A row is a number of words (PITCH_WORDS) and DRIFT elements long: from row to row, words lie DRIFT further left.
// The image is taken as one line of words, which are read and written whole. A word that begins with element f of the line
// needs the elements from f - ROW_LENGTH, f, f + ROW_LENGTH on: they lie -DRIFT, 0 and DRIFT elements beside the first of
// the words PITCH_WORDS before it, of it, and behind it, which are constant distances. A thread has ROWS such words below
// one another, with BESIDE words on both sides. Elements at the edges of the image, where neighbours in the line are none in
// the image, are left to `edges` threads of their own, as are those whose neighbours are not in whole words.
#define PITCH_WORDS (((int)ROW_LENGTH - (DRIFT)) / RUN)
#define SPAN (2 * BESIDE + 1)  // words read of a row

DEVICE void filter_edges(GLOBAL const ELEMENT *image, GLOBAL ELEMENT *out, uint thread, uint width, uint height,
                         uint head, ulong tail) {
    ulong count = (ulong)ROW_LENGTH * height, place = thread;
    if (thread >= head) place = tail + (thread - head);
    if (place >= count) {
        uint i = (uint)(place - count), beside = i % (2 * CHANNELS), row = 1 + i / (2 * CHANNELS);
        place = (ulong)row * ROW_LENGTH + (beside < CHANNELS ? beside : ROW_LENGTH - 2 * CHANNELS + beside);
        if (row + 1 >= height || place < head || place >= tail) return;
    }
    filter_element(image, out, place, width, height);
}

#if BYTES
// The word that begins at byte `at` of a row's words.
#define WORD_AT(row, at) funnel_shift_right(row[(at) / 4], row[(at) / 4 + 1], 8 * ((at) % 4))
#if NEIGHBOURS == 8
#define CENTRE 9  // taken from the sum of all nine
#else
#define CENTRE 4
#endif
#define RESULTS uint results[4]
#define RESULT_AT(i) ((uchar)(results[(i) / 4] >> (8 * ((i) % 4))))
#define RESULT_WORD make_uint4(results[0], results[1], results[2], results[3])
#define WORD uint4
#define NUMBERS uint numbers[COUNT][4 * SPAN]
#define KEEP(r, w, word)                                                                                               \
    {                                                                                                                  \
        numbers[r][4 * (w)] = word.x;                                                                                  \
        numbers[r][4 * (w) + 1] = word.y;                                                                              \
        numbers[r][4 * (w) + 2] = word.z;                                                                              \
        numbers[r][4 * (w) + 3] = word.w;                                                                              \
    }
DEVICE void filter_run(const uint *up, const uint *own, const uint *down, uint *results) {
    uint even[6], odd[6], sums_even[4], sums_odd[4];
    UNROLL for (int n = 0; n < 6; n++) {
        const int at = RUN * BESIDE - 4 + 4 * n;
        uint u = WORD_AT(up, at - (DRIFT)), o = own[at / 4], d = WORD_AT(down, at + (DRIFT));
        uint column_even = EVEN(u) + EVEN(d), column_odd = unpack_odd_bytes(u) + unpack_odd_bytes(d);
        even[n] = EVEN(o);
        odd[n] = unpack_odd_bytes(o);
        if (n > 0 && n < 5) {
            sums_even[n - 1] = BIAS - CENTRE * even[n] + (NEIGHBOURS == 4 ? column_even : 0);
            sums_odd[n - 1] = BIAS - CENTRE * odd[n] + (NEIGHBOURS == 4 ? column_odd : 0);
        }
        if (NEIGHBOURS == 8) {
            even[n] += column_even;
            odd[n] += column_odd;
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        sums_even[i] += LEFT_EVEN(i, i + 1, i + 2) + RIGHT_EVEN(i, i + 1, i + 2) + (NEIGHBOURS == 8 ? even[i + 1] : 0);
        sums_odd[i] += LEFT_ODD(i, i + 1, i + 2) + RIGHT_ODD(i, i + 1, i + 2) + (NEIGHBOURS == 8 ? odd[i + 1] : 0);
        results[i] = clamp_to_u8x2(sums_even[i]) | clamp_to_u8x2(sums_odd[i]) << 8;
    }
}
#else
#define RESULTS float results[4]
#define RESULT_AT(i) results[i]
#define RESULT_WORD make_float4(results[0], results[1], results[2], results[3])
#define WORD float4
#define NUMBERS float numbers[COUNT][RUN *SPAN]
#define KEEP(r, w, word) spread(&numbers[r][RUN * (w)], word);
DEVICE void filter_run(const float *up, const float *own, const float *down, float *results) {
    UNROLL for (int i = 0; i < RUN; i++) {
        const int at = RUN * BESIDE + i, above = at - (DRIFT), below = at + (DRIFT);
        float sum = TO_OTHERS(up[above - CHANNELS], up[above], up[above + CHANNELS]);
        sum += TO_OWN(own[at - CHANNELS], own[at], own[at + CHANNELS]);
        results[i] = sum + TO_OTHERS(down[below - CHANNELS], down[below], down[below + CHANNELS]);
    }
}
#endif

// Elements before `head` and from `tail` on are edges; the words between are [PITCH_WORDS + BESIDE, last_word).
KERNEL drifting_rows(GLOBAL const ELEMENT *RESTRICT image, GLOBAL ELEMENT *RESTRICT out, uint width, uint height, uint head,
                     ulong tail, uint edges) {
    if (thread_index() < edges) {
        filter_edges(image, out, thread_index(), width, height, head, tail);
        return;
    }
    uint thread = thread_index() - edges, along = thread % PITCH_WORDS, down = thread / PITCH_WORDS * ROWS;
    uint last_word = (uint)(tail / RUN), whole = last_word + PITCH_WORDS + BESIDE;  // words of the image that are whole
    uint first_word = PITCH_WORDS * (1 + down) + BESIDE + along;
    if (first_word >= last_word) return;
    GLOBAL const WORD *words = (GLOBAL const WORD *)image;
    NUMBERS;
    UNROLL for (int r = 0; r < COUNT; r++)
        UNROLL for (int w = 0; w < SPAN; w++) {
            WORD word = words[min(first_word + (r - 1) * PITCH_WORDS + (uint)(w - BESIDE), whole - 1)];
            KEEP(r, w, word)
        }
    int length = (int)ROW_LENGTH, column = ((int)(along + BESIDE) * RUN - (int)(1 + down) * (DRIFT)) % length;
    if (column < 0) column += length;
    UNROLL for (int r = 0; r < ROWS; r++) {
        uint place = first_word + r * PITCH_WORDS;
        RESULTS;
        filter_run(numbers[r], numbers[r + 1], numbers[r + 2], results);
        if (place < last_word) {
            if (column >= CHANNELS && column + RUN <= length - CHANNELS)
                ((GLOBAL WORD *)out)[place] = RESULT_WORD;
            else
                UNROLL for (int i = 0; i < RUN; i++) {
                    int e = column + i < length ? column + i : column + i - length;
                    if (e >= CHANNELS && e < length - CHANNELS) out[(ulong)place * RUN + i] = RESULT_AT(i);
                }
        }
        column -= DRIFT;
        if (column < 0) column += length;
        if (column >= length) column -= length;
    }
}
#endif
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
