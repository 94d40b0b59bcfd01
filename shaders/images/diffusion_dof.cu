// The picture "focus": tridiagonal systems of rows and columns, and the moves of colours between frames and right-hand sides.
// Batches hold element (i, j) of system b at ((j * TALL) + 2 K + i - j) * count + b with TALL = 3 K + 1, K = 1 (or 0 for a
// line of one pixel); sides are (n, 3, count).

// The conductance between neighbours is the smaller of theirs, so that what is blurred does not run into what is sharp.
DEVICE float conductance(GLOBAL const float *circles, int p, int q, float variance) {
    float c = fmin(circles[p], circles[q]);
    return variance * c * c;
}

// The column of system b at line position j: its own line's entry and those of the neighbours' lines.
DEVICE void fill_column(GLOBAL float *matrix, int b, int j, int n, int count, int k, float before, float after) {
    int tall = 3 * k + 1;
    ulong at = (ulong)j * (ulong)tall * (ulong)count + (ulong)b;
    if (k == 0) {
        matrix[at] = 1.0f;
        return;
    }
    matrix[at] = 0.0f;                                                     // room for the fill
    matrix[at + (ulong)count] = j > 0 ? -before : 0.0f;                    // row j - 1
    matrix[at + 2ul * (ulong)count] = 1.0f + before + after;               // row j
    matrix[at + 3ul * (ulong)count] = j < n - 1 ? -after : 0.0f;           // row j + 1
}

KERNEL fill_rows(GLOBAL const float4 *sharp, GLOBAL const float *circles, GLOBAL float *matrix, GLOBAL float *sides,
                 const float variance, const int width, const int height, const int k) {
    int b = (int)thread_index() % height, j = (int)thread_index() / height;
    if (j >= width) return;
    int p = b * width + j;
    float before = j > 0 ? conductance(circles, p, p - 1, variance) : 0.0f;
    float after = j < width - 1 ? conductance(circles, p, p + 1, variance) : 0.0f;
    fill_column(matrix, b, j, width, height, k, before, after);
    float4 colour = sharp[p];
    sides[(j * 3) * height + b] = colour.x;
    sides[(j * 3 + 1) * height + b] = colour.y;
    sides[(j * 3 + 2) * height + b] = colour.z;
}

KERNEL fill_columns(GLOBAL const float *rows, GLOBAL const float *circles, GLOBAL float *matrix, GLOBAL float *sides,
                    const float variance, const int width, const int height, const int k) {
    int b = (int)thread_index() % width, j = (int)thread_index() / width;
    if (j >= height) return;
    int p = j * width + b;
    float before = j > 0 ? conductance(circles, p, p - width, variance) : 0.0f;
    float after = j < height - 1 ? conductance(circles, p, p + width, variance) : 0.0f;
    fill_column(matrix, b, j, height, width, k, before, after);
    for (int channel = 0; channel < 3; channel++)
        sides[(j * 3 + channel) * width + b] = rows[(b * 3 + channel) * height + j];
}

KERNEL take_columns(GLOBAL const float *sides, GLOBAL float4 *frame, const int width, const int height) {
    int p = (int)thread_index(), b = p % width, j = p / width;
    if (j >= height) return;
    frame[p] = make_float4(sides[(j * 3) * width + b], sides[(j * 3 + 1) * width + b], sides[(j * 3 + 2) * width + b], 1.0f);
}

// Pixel p of the frame is unknown place_of(p): the short side is numbered first.
DEVICE int place_of(int p, int width, int height) { return width >= height ? p % width * height + p / width : p; }

KERNEL fill_whole(GLOBAL const float4 *sharp, GLOBAL float *sides, const int order, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int k = place_of(p, width, height);
    sides[k] = sharp[p].x;
    sides[order + k] = sharp[p].y;
    sides[2 * order + k] = sharp[p].z;
}

KERNEL take_whole(GLOBAL const float *sides, GLOBAL float4 *frame, const int order, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int k = place_of(p, width, height);
    frame[p] = make_float4(sides[k], sides[order + k], sides[2 * order + k], 1.0f);
}

KERNEL show_circles(GLOBAL const float *circles, GLOBAL float4 *frame, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    float grey = circles[p] / 16.0f;
    frame[p] = make_float4(grey, grey, grey, 1.0f);
}

// Copies a frame (size) to column `at` of the picture, as far as the tile shows it.
KERNEL put_part(GLOBAL const float4 *source, const int source_width, const int source_height, const int at,
                GLOBAL float4 *frame, const int width, const int height, const int left, const int top) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int x = left + p % width - at, y = top + p / width;
    if (x >= 0 && x < source_width && y < source_height) frame[p] = source[y * source_width + x];
}
