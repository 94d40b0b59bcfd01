// Light fields: refocused pictures by shift and add over the views of a camera array, their median, extremes and
// variance (paper 5, chapter 4; Levoy and Hanrahan 1996; Isaksen et al. 2000; Ng 2005).
//
// Views are uint8 sRGB: rows of PITCH bytes (a multiple of 16) with CHANNELS bytes a pixel, `stored` rows a view, the
// first of them row `first` of the picture, and GUARD bytes before and after all of it. A TAP is a view that takes
// part: output pixel (x, y) reads its pixel (x + column + fx, y + row + fy), by exact bilinear interpolation in linear
// light; where that lies outside of the view, its weight does not count (the weight image). WIDTH and HEIGHT are of
// a view. `linear` (256) is the sRGB curve.

#define COLUMNS_PER_THREAD 4
#define SAMPLES (3 * COLUMNS_PER_THREAD)
#define LANES 32

// Whether a lerp at `place` + fraction along an axis of `size` stays in the view.
DEVICE bool lerp_stays(int place, float fraction, int size) {
    return place >= 0 && place + (fraction > 0.0f ? 1 : 0) < size;
}

// The weights of its two taps; zero where it does not.
DEVICE float2 lerp_weights(int place, float fraction, int size) {
    return lerp_stays(place, fraction, size) ? make_float2(1.0f - fraction, fraction) : make_float2(0.0f, 0.0f);
}

// Linear red, green, blue and the weight of one view at output pixel (x, y); weight 0 outside of the view.
DEVICE float4 view_at(GLOBAL const uchar *views, TAP tap, GLOBAL const float *linear, int x, int y, int first,
                      int stored) {
    int left = x + tap.column, top = y + tap.row;
    float2 across = lerp_weights(left, tap.fx, WIDTH), down = lerp_weights(top, tap.fy, HEIGHT);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (across.x + across.y == 0.0f || down.x + down.y == 0.0f) return sum;
    for (int j = 0; j < 2; j++) {
        for (int i = 0; i < 2; i++) {
            float share = (i ? across.y : across.x) * (j ? down.y : down.x);
            if (share > 0.0f) {
                ulong row = (ulong)tap.view * (ulong)stored + (ulong)(top + j - first);
                GLOBAL const uchar *pixel = views + GUARD + row * PITCH + (ulong)((left + i) * CHANNELS);
                float part = CHANNELS == 4 ? share * (float)pixel[CHANNELS - 1] * (1.0f / 255.0f) : share;
                sum.x += part * linear[pixel[0]];
                sum.y += part * linear[pixel[1]];
                sum.z += part * linear[pixel[2]];
                sum.w += part;
            }
        }
    }
    if (CHANNELS == 4 && sum.w > 0.0f) {
        sum.x /= sum.w;
        sum.y /= sum.w;
        sum.z /= sum.w;
    }
    sum.w = CHANNELS == 4 ? sum.w * tap.weight : tap.weight;
    return sum;
}

DEVICE float4 weighted_mean(float red, float green, float blue, float weight) {
    float scale = weight > 0.0f ? 1.0f / weight : 0.0f;
    return make_float4(red * scale, green * scale, blue * scale, 1.0f);
}

// The weighted mean of all taps, one thread a pixel: any CHANNELS; the plain statement of the two kernels after it.
KERNEL refocus(GLOBAL const uchar *views, GLOBAL const TAP *taps, int count, GLOBAL const float *linear,
               GLOBAL float4 *image, int first, int stored, int begin, int end) {
    int x = (int)(thread_index() % WIDTH), y = begin + (int)(thread_index() / WIDTH);
    if (y < end) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int t = 0; t < count; t++) {
            float4 value = view_at(views, taps[t], linear, x, y, first, stored);
            sum += make_float4(value.x * value.w, value.y * value.w, value.z * value.w, value.w);
        }
        image[y * WIDTH + x] = weighted_mean(sum.x, sum.y, sum.z, sum.w);
    }
}

#ifdef ROWS
// Byte k of a word in light: the offset is byte * LANES * 4 + lane * 4, made by one shift and one three-input operation.
DEVICE float light_of(const LOCAL uchar *tables, uint word, int k, uint lane_bytes) {
    uint offset = k == 0 ? word << 7 : word >> (8 * k - 7);
    return *(const LOCAL float *)(tables + ((offset & 0x7f80u) | lane_bytes));
}

// The same for 3 channels on processors of many lanes. A warp takes 128 columns, a thread 4 columns of ROWS rows: it
// reads whole words, shifts them to the view's byte offset, which all threads share, and looks each byte up once for
// all the sums that it goes into. The table stands once for every lane in local memory, so lanes never collide.
#define TILE_WIDTH (LANES * COLUMNS_PER_THREAD)
#define TILE_HEIGHT (GROUP_SIZE / LANES * ROWS)

#define WORDS ((SAMPLES + 9) / 4)  // of a row: its bytes, 3 of the next pixel, and up to 3 before the first

typedef struct {
    uint word[WORDS];
} RowWords;

DEVICE RowWords row_words(GLOBAL const uint *source) {
    RowWords row;
    UNROLL
    for (int k = 0; k < WORDS; k++) row.word[k] = source[k];
    return row;
}

// The light of a thread's pixels of a row, and of the one after them, whose bytes begin `shift` bits into its words.
DEVICE void row_light(RowWords row, uint shift, const LOCAL uchar *tables, uint lane_bytes, float *light) {
    UNROLL
    for (int k = 0; k < SAMPLES + 3; k++) {
        uint shifted = funnel_shift(row.word[k / 4], row.word[k / 4 + 1], shift);
        light[k] = light_of(tables, shifted, k % 4, lane_bytes);
    }
}

// Where a view's rows begin for a thread: rows and columns outside of what is stored read anything nearby.
typedef struct {
    GLOBAL const uint *base;
    int row, words;
    uint shift;
} Place;

DEVICE Place place_in(GLOBAL const uint *words, TAP tap, int x, int y, int first, int stored) {
    Place place;
    int byte = clamp(3 * (x + tap.column), -SAMPLES, 3 * WIDTH);
    place.base = words + (ulong)tap.view * (ulong)stored * (PITCH / 4) + GUARD / 4;
    place.row = y + tap.row - first;
    place.words = byte >> 2;
    place.shift = 8u * ((uint)byte & 3u);
    return place;
}

DEVICE RowWords words_at(Place place, int r, int stored) {
    return row_words(place.base + (clamp(place.row + r, 0, stored - 1) * (PITCH / 4) + place.words));
}

// Whether a view reaches all pixels of the tile, and the row below it is stored too.
DEVICE bool reaches_tile(TAP tap, int tile_x, int tile_y, int first, int stored) {
    int last_x = min(tile_x + TILE_WIDTH, WIDTH) - 1, below = tile_y + TILE_HEIGHT + tap.row;
    return tile_x + tap.column >= 0 && last_x + tap.column + (tap.fx > 0.0f ? 1 : 0) < WIDTH &&
           tile_y + tap.row >= first && below < first + stored && below < HEIGHT;
}

KERNEL refocus_tiles(GLOBAL const uint *words, GLOBAL const TAP *taps, int count, GLOBAL const float *linear,
                     GLOBAL float4 *image, int first, int stored, int begin, int end) {
    LOCAL_ARRAY(float, tables, 256 * LANES);
    for (uint i = local_index(); i < 256 * LANES; i += GROUP_SIZE) tables[i] = linear[i / LANES];
    BARRIER();
    const LOCAL uchar *table = (const LOCAL uchar *)tables;
    uint lane_bytes = 4u * lane_index();
    int tiles_across = (WIDTH + TILE_WIDTH - 1) / TILE_WIDTH;
    int tile_x = (int)group_index() % tiles_across * TILE_WIDTH;
    int tile_y = begin + (int)group_index() / tiles_across * TILE_HEIGHT;
    int x = tile_x + (int)lane_index() * COLUMNS_PER_THREAD, y = tile_y + (int)(local_index() / LANES) * ROWS;
    float sums[ROWS * SAMPLES], common = 0.0f;
    bool ragged = false;
    for (int k = 0; k < ROWS * SAMPLES; k++) sums[k] = 0.0f;
    // Words travel two rows ahead of the arithmetic, from one view into the next.
    TAP next = taps[0];
    Place next_place = place_in(words, next, x, y, first, stored);
    RowWords near = words_at(next_place, 0, stored), after = words_at(next_place, 1, stored);
    for (int t = 0; t < count; t++) {
        TAP tap = next;
        Place place = next_place;
        next = taps[min(t + 1, count - 1)];
        next_place = place_in(words, next, x, y, first, stored);
        bool whole = reaches_tile(tap, tile_x, tile_y, first, stored);
        float left = tap.weight * (1.0f - tap.fx), above[SAMPLES];
        float seen_left[COLUMNS_PER_THREAD], seen_right[COLUMNS_PER_THREAD];
        if (whole) common += tap.weight;
        if (!whole) ragged = true;
        UNROLL
        for (int p = 0; p < COLUMNS_PER_THREAD; p++) {  // a pixel that the view does not reach counts nothing
            bool seen = whole || lerp_stays(x + p + tap.column, tap.fx, WIDTH);
            seen_left[p] = seen ? left : 0.0f;
            seen_right[p] = seen ? tap.weight * tap.fx : 0.0f;
        }
        UNROLL
        for (int r = 0; r <= ROWS; r++) {
            RowWords here_words = near;
            near = after;
            after = r + 2 <= ROWS ? words_at(place, r + 2, stored) : words_at(next_place, r + 1 - ROWS, stored);
            float light[SAMPLES + 3];
            row_light(here_words, place.shift, table, lane_bytes, light);
            bool down = whole || lerp_stays(y + r - 1 + tap.row, tap.fy, HEIGHT);
            float upper = down ? 1.0f - tap.fy : 0.0f, lower = down ? tap.fy : 0.0f;
            UNROLL
            for (int k = 0; k < SAMPLES; k++) {
                float here = seen_left[k / 3] * light[k] + seen_right[k / 3] * light[k + 3];
                if (r > 0) sums[(r - 1) * SAMPLES + k] += upper * above[k] + lower * here;
                above[k] = here;
            }
        }
    }
    float weights[ROWS * COLUMNS_PER_THREAD];
    UNROLL
    for (int k = 0; k < ROWS * COLUMNS_PER_THREAD; k++) weights[k] = common;
    for (int t = 0; ragged && t < count; t++) {
        TAP tap = taps[t];
        if (!reaches_tile(tap, tile_x, tile_y, first, stored)) {
            bool down[ROWS];
            UNROLL
            for (int r = 0; r < ROWS; r++) down[r] = lerp_stays(y + r + tap.row, tap.fy, HEIGHT);
            UNROLL
            for (int p = 0; p < COLUMNS_PER_THREAD; p++) {
                float weight = lerp_stays(x + p + tap.column, tap.fx, WIDTH) ? tap.weight : 0.0f;
                UNROLL
                for (int r = 0; r < ROWS; r++) weights[r * COLUMNS_PER_THREAD + p] += down[r] ? weight : 0.0f;
            }
        }
    }
    UNROLL
    for (int r = 0; r < ROWS; r++) {
        UNROLL
        for (int p = 0; p < COLUMNS_PER_THREAD; p++) {
            const float *s = sums + r * SAMPLES + 3 * p;
            if (x + p < WIDTH && y + r < end)
                image[(y + r) * WIDTH + x + p] = weighted_mean(s[0], s[1], s[2], weights[r * COLUMNS_PER_THREAD + p]);
        }
    }
}
#endif

// The same for 3 channels on processors of one lane: a thread takes RUN columns of RUN_ROWS rows, and its loops over
// bytes in a row are what the compiler turns into vector instructions. A byte is looked up once a row of threads.
#ifdef RUN
KERNEL refocus_runs(GLOBAL const uchar *RESTRICT views, GLOBAL const TAP *RESTRICT taps, int count,
                    GLOBAL const float *RESTRICT linear, GLOBAL float4 *RESTRICT image, int first, int stored,
                    int begin, int end) {
    int runs_across = (WIDTH + RUN - 1) / RUN;
    int x = (int)thread_index() % runs_across * RUN, y = begin + (int)thread_index() / runs_across * RUN_ROWS;
    int rows = min(RUN_ROWS, end - y);
    float sums[RUN_ROWS * RUN * 3], weights[RUN_ROWS * RUN], value[RUN * 3 + 3], above[RUN * 3], here[RUN * 3];
    if (rows > 0) {
        for (int k = 0; k < RUN_ROWS * RUN * 3; k++) sums[k] = 0.0f;
        for (int k = 0; k < RUN_ROWS * RUN; k++) weights[k] = 0.0f;
        for (int t = 0; t < count; t++) {
            TAP tap = taps[t];
            int start = max(x, -tap.column), stop = min(min(x + RUN, WIDTH), WIDTH - tap.column - (tap.fx > 0.0f ? 1 : 0));
            int samples = 3 * (stop - start), offset = 3 * (start - x);
            float left = tap.weight * (1.0f - tap.fx), right = tap.weight * tap.fx;
            for (int r = 0; r <= rows && samples > 0; r++) {
                int row = clamp(y + r + tap.row - first, 0, stored - 1);
                GLOBAL const uchar *source = views + GUARD + ((ulong)tap.view * (ulong)stored + (ulong)row) * PITCH +
                                             (ulong)(3 * (start + tap.column));
                for (int k = 0; k < samples + 3; k++) value[k] = linear[source[k]];
                for (int k = 0; k < samples; k++) here[k] = left * value[k] + right * value[k + 3];
                float2 down = lerp_weights(y + r - 1 + tap.row, tap.fy, HEIGHT);
                if (r > 0 && down.x + down.y > 0.0f) {
                    float *sum = sums + (r - 1) * RUN * 3 + offset, *weight = weights + (r - 1) * RUN + (start - x);
                    for (int k = 0; k < samples; k++) sum[k] += down.x * above[k] + down.y * here[k];
                    for (int k = 0; k < stop - start; k++) weight[k] += tap.weight;
                }
                for (int k = 0; k < samples; k++) above[k] = here[k];
            }
        }
        for (int r = 0; r < rows; r++) {
            for (int p = 0; p < RUN && x + p < WIDTH; p++) {
                const float *s = sums + (r * RUN + p) * 3;
                image[(y + r) * WIDTH + x + p] = weighted_mean(s[0], s[1], s[2], weights[r * RUN + p]);
            }
        }
    }
}
#endif

// The largest (direction 1) or smallest (direction -1) value of each channel over the views that see the pixel.
KERNEL extreme(GLOBAL const uchar *views, GLOBAL const TAP *taps, int count, GLOBAL const float *linear,
               GLOBAL float4 *image, int first, int stored, int begin, int end, float direction) {
    int x = (int)(thread_index() % WIDTH), y = begin + (int)(thread_index() / WIDTH);
    if (y < end) {
        float red = -INFINITE, green = -INFINITE, blue = -INFINITE;
        for (int t = 0; t < count; t++) {
            float4 value = view_at(views, taps[t], linear, x, y, first, stored);
            if (value.w > 0.0f) {
                red = fmax(red, direction * value.x);
                green = fmax(green, direction * value.y);
                blue = fmax(blue, direction * value.z);
            }
        }
        bool seen = red > -INFINITE;
        image[y * WIDTH + x] = seen ? make_float4(direction * red, direction * green, direction * blue, 1.0f)
                                    : make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    }
}

// The weighted lower median of each channel: the least value that views of at least half of the weight do not exceed.
// Four rounds narrow it by 16 bins each, so it is exact to LEVELS = 65535 steps of linear light.
#define LEVELS 65535.0f
KERNEL median(GLOBAL const uchar *views, GLOBAL const TAP *taps, int count, GLOBAL const float *linear,
              GLOBAL float4 *image, int first, int stored, int begin, int end) {
    int x = (int)(thread_index() % WIDTH), y = begin + (int)(thread_index() / WIDTH);
    if (y < end) {
        uint found[3] = {0u, 0u, 0u};
        float below[3] = {0.0f, 0.0f, 0.0f}, total = 0.0f;
        for (int round = 0; round < 4; round++) {
            uint unit = 12u - 4u * (uint)round;
            float bins[48];
            for (int k = 0; k < 48; k++) bins[k] = 0.0f;
            for (int t = 0; t < count; t++) {
                float4 value = view_at(views, taps[t], linear, x, y, first, stored);
                float channel[3] = {value.x, value.y, value.z};
                for (int c = 0; c < 3; c++) {
                    uint level = (uint)(clamp(channel[c], 0.0f, 1.0f) * LEVELS + 0.5f), bin = (level - found[c]) >> unit;
                    if (level >= found[c] && bin < 16u) bins[16 * c + (int)bin] += value.w;
                }
                if (round == 0) total += value.w;
            }
            for (int c = 0; c < 3; c++) {
                int bin = 0;
                while (bin < 15 && below[c] + bins[16 * c + bin] < 0.5f * total) {
                    below[c] += bins[16 * c + bin];
                    bin++;
                }
                found[c] += (uint)bin << unit;
            }
        }
        image[y * WIDTH + x] = make_float4((float)found[0] * (1.0f / LEVELS), (float)found[1] * (1.0f / LEVELS),
                                           (float)found[2] * (1.0f / LEVELS), 1.0f);
    }
}

// How much the views disagree: the variance over them, summed over the channels; INFINITE where fewer than two see.
KERNEL variance(GLOBAL const uchar *views, GLOBAL const TAP *taps, int count, GLOBAL const float *linear,
                GLOBAL float *spread, int first, int stored, int begin, int end) {
    int x = (int)(thread_index() % WIDTH), y = begin + (int)(thread_index() / WIDTH);
    if (y < end) {
        float4 mean = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float squares = 0.0f;
        int seen = 0;
        for (int t = 0; t < count; t++) {
            float4 value = view_at(views, taps[t], linear, x, y, first, stored);
            if (value.w > 0.0f) {  // West 1979: weighted, in one pass, without cancellation
                mean.w += value.w;
                float share = value.w / mean.w, dx = value.x - mean.x, dy = value.y - mean.y, dz = value.z - mean.z;
                mean.x += share * dx;
                mean.y += share * dy;
                mean.z += share * dz;
                squares += value.w * (dx * (value.x - mean.x) + dy * (value.y - mean.y) + dz * (value.z - mean.z));
                seen++;
            }
        }
        spread[y * WIDTH + x] = seen > 1 ? squares / mean.w : INFINITE;
    }
}

// Keeps the disparity of the least variance, averaged over a window; `best` holds (least, its disparity, before, after).
// The costs of the steps before and after the least one refine it by a parabola.
KERNEL keep_steadiest(GLOBAL const float *spread, GLOBAL float4 *best, GLOBAL float *previous, int window,
                      float disparity, int begins) {
    int x = (int)(thread_index() % WIDTH), y = (int)(thread_index() / WIDTH);
    if (y < HEIGHT) {
        float sum = 0.0f;
        int seen = 0;
        for (int j = max(y - window, 0); j <= min(y + window, HEIGHT - 1); j++) {
            for (int i = max(x - window, 0); i <= min(x + window, WIDTH - 1); i++) {
                float value = spread[j * WIDTH + i];
                if (value < INFINITE) {
                    sum += value;
                    seen++;
                }
            }
        }
        int index = y * WIDTH + x;
        float cost = seen ? sum / (float)seen : INFINITE;
        float4 kept = best[index];
        if (begins || cost < kept.x) {
            best[index] = make_float4(cost, disparity, begins ? INFINITE : previous[index], INFINITE);
        } else if (kept.w == INFINITE && previous[index] == kept.x) {
            best[index] = make_float4(kept.x, kept.y, kept.z, cost);
        }
        previous[index] = cost;
    }
}

// Grey of the disparities that keep_steadiest kept: `far` black to `near` white on the display, hence linear of sRGB.
KERNEL paint_depth(GLOBAL const float4 *best, GLOBAL float4 *image, float far, float near, float step) {
    int index = (int)thread_index();
    if (index < WIDTH * HEIGHT) {
        float4 kept = best[index];
        float disparity = kept.y, curve = kept.z - 2.0f * kept.x + kept.w;
        if (kept.z < INFINITE && kept.w < INFINITE && curve > 0.0f)
            disparity += step * clamp(0.5f * (kept.z - kept.w) / curve, -0.5f, 0.5f);
        float shade = clamp((disparity - far) / (near - far), 0.0f, 1.0f);
        shade = shade <= 0.04045f ? shade / 12.92f : pow((shade + 0.055f) / 1.055f, 2.4f);
        image[index] = make_float4(shade, shade, shade, 1.0f);
    }
}

DEVICE float brightness(float4 c) { return 0.2126f * c.x + 0.7152f * c.y + 0.0722f * c.z; }

// Keeps the colours of the slice with the greatest local variance of brightness; `best` holds colour and variance.
KERNEL keep_sharpest(GLOBAL const float4 *slice, GLOBAL float4 *best, GLOBAL float *sharpest, int window, int begins) {
    int x = (int)(thread_index() % WIDTH), y = (int)(thread_index() / WIDTH);
    if (y < HEIGHT) {
        float sum = 0.0f, squares = 0.0f, centre = brightness(slice[y * WIDTH + x]);
        int seen = 0;
        for (int j = max(y - window, 0); j <= min(y + window, HEIGHT - 1); j++) {
            for (int i = max(x - window, 0); i <= min(x + window, WIDTH - 1); i++) {
                float value = brightness(slice[j * WIDTH + i]) - centre;
                sum += value;
                squares += value * value;
                seen++;
            }
        }
        float sharpness = squares - sum * sum / (float)seen;
        int index = y * WIDTH + x;
        if (begins || sharpness > sharpest[index]) {
            sharpest[index] = sharpness;
            best[index] = slice[index];
        }
    }
}

// Draws a view-sized picture into a rectangle of a frame: pixel (x, y) of the rectangle covers the picture from
// from + x * step to from + (x + 1) * step, averaged over `samples` x `samples` places. The part of the rectangle that
// lies in the frame begins at its pixel `skip` and at (left, top) of the frame, which is `frame_width` wide. Pixels
// outside of the picture stay as they are.
KERNEL place_picture(GLOBAL const float4 *picture, GLOBAL float4 *frame, int frame_width, int left, int top,
                     int skip_x, int skip_y, int wide, int high, float from_x, float from_y, float step, int samples) {
    int x = (int)thread_index() % wide, y = (int)thread_index() / wide;
    if (y < high) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        int seen = 0;
        for (int j = 0; j < samples; j++) {
            for (int i = 0; i < samples; i++) {
                float px = from_x + ((float)(skip_x + x) + ((float)i + 0.5f) / (float)samples) * step - 0.5f;
                float py = from_y + ((float)(skip_y + y) + ((float)j + 0.5f) / (float)samples) * step - 0.5f;
                if (px >= -0.5f && px < (float)WIDTH - 0.5f && py >= -0.5f && py < (float)HEIGHT - 0.5f) {
                    px = clamp(px, 0.0f, (float)(WIDTH - 1));
                    py = clamp(py, 0.0f, (float)(HEIGHT - 1));
                    int ix = (int)px, iy = (int)py;
                    float fx = px - (float)ix, fy = py - (float)iy;
                    int right = min(ix + 1, WIDTH - 1), below = min(iy + 1, HEIGHT - 1);
                    sum += (picture[iy * WIDTH + ix] * (1.0f - fx) + picture[iy * WIDTH + right] * fx) * (1.0f - fy) +
                           (picture[below * WIDTH + ix] * (1.0f - fx) + picture[below * WIDTH + right] * fx) * fy;
                    seen++;
                }
            }
        }
        if (seen) frame[(top + y) * frame_width + left + x] = sum * (1.0f / (float)seen);
    }
}

KERNEL blacken(GLOBAL float4 *frame, int count) {
    int index = (int)thread_index();
    if (index < count) frame[index] = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
}

// Copies `count` 16-byte words of staged views, which begin after a GUARD, to byte `offset` of the whole field.
KERNEL keep_views(GLOBAL const uint4 *staged, GLOBAL uint4 *views, ulong offset, int count) {
    int index = (int)thread_index();
    if (index < count) views[offset / 16 + (ulong)index] = staged[GUARD / 16 + index];
}
