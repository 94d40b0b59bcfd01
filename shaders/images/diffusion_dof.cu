// Depth of field by simulated diffusion (Kass, Lefohn and Owens 2006), for renderer/pictures/focus.py: assembly of the
// linear systems, and copies of colors between frames and right-hand sides. Batches store element (i, j) of system b at
// ((j * TALL) + 2 K + i - j) * count + b with TALL = 3 K + 1, K = 1 (or 0 for a line of one pixel); right-hand sides
// are (n, 3, count).

// The conductance between two pixels is that of the smaller circle, so that blurred regions do not bleed into sharp
// ones.
DEVICE float conductance(GLOBAL const float *diameters, int p, int q, float scale) {
    float c = fmin(diameters[p], diameters[q]);
    return scale * c * c;
}

// Column j of system b: its own row's element and those of the rows above and below.
DEVICE void assemble_column(GLOBAL float *matrix, int b, int j, int n, int count, int k, float before, float after) {
    int tall = 3 * k + 1;
    ulong at = (ulong)j * (ulong)tall * (ulong)count + (ulong)b;
    if (k == 0) {
        matrix[at] = 1.0f;
        return;
    }
    matrix[at] = 0.0f;  // room for fill-in
    matrix[at + (ulong)count] = j > 0 ? -before : 0.0f;  // row j - 1
    matrix[at + 2ul * (ulong)count] = 1.0f + before + after;  // row j
    matrix[at + 3ul * (ulong)count] = j < n - 1 ? -after : 0.0f;  // row j + 1
}

KERNEL assemble_rows(GLOBAL const float4 *sharp, GLOBAL const float *diameters, GLOBAL float *matrix,
                     GLOBAL float *sides, const float scale, const int width, const int height, const int k) {
    int b = (int)thread_index() % height, j = (int)thread_index() / height;
    if (j >= width) return;
    int p = b * width + j;
    float before = j > 0 ? conductance(diameters, p, p - 1, scale) : 0.0f;
    float after = j < width - 1 ? conductance(diameters, p, p + 1, scale) : 0.0f;
    assemble_column(matrix, b, j, width, height, k, before, after);
    float4 color = sharp[p];
    sides[(j * 3) * height + b] = color.x;
    sides[(j * 3 + 1) * height + b] = color.y;
    sides[(j * 3 + 2) * height + b] = color.z;
}

KERNEL assemble_columns(GLOBAL const float *rows, GLOBAL const float *diameters, GLOBAL float *matrix,
                        GLOBAL float *sides, const float scale, const int width, const int height, const int k) {
    int b = (int)thread_index() % width, j = (int)thread_index() / width;
    if (j >= height) return;
    int p = j * width + b;
    float before = j > 0 ? conductance(diameters, p, p - width, scale) : 0.0f;
    float after = j < height - 1 ? conductance(diameters, p, p + width, scale) : 0.0f;
    assemble_column(matrix, b, j, height, width, k, before, after);
    for (int channel = 0; channel < 3; channel++)
        sides[(j * 3 + channel) * width + b] = rows[(b * 3 + channel) * height + j];
}

KERNEL store_separable(GLOBAL const float *sides, GLOBAL float4 *frame, const int width, const int height) {
    int p = (int)thread_index(), b = p % width, j = p / width;
    if (j >= height) return;
    GLOBAL const float *side = sides + j * 3 * width + b;
    frame[p] = make_float4(side[0], side[width], side[2 * width], 1.0f);
}

// Index of pixel p among the unknowns: the short side is the fastest index.
DEVICE int unknown_index(int p, int width, int height) { return width >= height ? p % width * height + p / width : p; }

KERNEL load_full(GLOBAL const float4 *sharp, GLOBAL float *sides, const int order, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int k = unknown_index(p, width, height);
    sides[k] = sharp[p].x;
    sides[order + k] = sharp[p].y;
    sides[2 * order + k] = sharp[p].z;
}

KERNEL store_full(GLOBAL const float *sides, GLOBAL float4 *frame, const int order, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int k = unknown_index(p, width, height);
    frame[p] = make_float4(sides[k], sides[order + k], sides[2 * order + k], 1.0f);
}

KERNEL show_coc(GLOBAL const float *diameters, GLOBAL float4 *frame, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    float gray = diameters[p] / 16.0f;
    frame[p] = make_float4(gray, gray, gray, 1.0f);
}

// Copies a frame to column `at` of the picture, clipped to the tile (left, top, width, height).
KERNEL blit_frame(GLOBAL const float4 *source, const int source_width, const int source_height, const int at,
                  GLOBAL float4 *frame, const int width, const int height, const int left, const int top) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int x = left + p % width - at, y = top + p / width;
    if (x >= 0 && x < source_width && y < source_height) frame[p] = source[y * source_width + x];
}
