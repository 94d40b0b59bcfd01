// Depth of field by simulated heat diffusion (Kass, Lefohn and Owens 2006), for renderer/pictures/focus.py: these
// kernels assemble the linear systems and copy colors between frames and right-hand sides; renderer/numerics/band_lu
// solves the systems. The separable method diffuses along all rows, then along all columns: one tridiagonal system per
// row or column. A batch of `count` band matrices (LAPACK's band layout, bandwidth K = 1, or 0 for lines of one pixel)
// stores element (i, j) of system b at (j * H + 2 K + i - j) * count + b, where the column height H = 3 K + 1 includes
// room for fill-in. Right-hand sides are arrays (n, 3, count). The full method solves one system over all pixels.
// `diameters`: the circle of confusion of each pixel in pixels (images/circle_of_confusion.cu).

// The conductance between neighboring pixels p and q, `scale` times a squared diameter. The smaller circle of confusion
// decides, so that blurred regions do not bleed into sharp ones.
DEVICE float conductance(GLOBAL const float *diameters, int p, int q, float scale) {
    float c = fmin(diameters[p], diameters[q]);
    return scale * c * c;
}

// Writes column j of the matrix of system b, of order n. before, after: the conductances between pixel j and its
// neighbors in the line.
DEVICE void assemble_column(GLOBAL float *matrix, int b, int j, int n, int count, int k, float before, float after) {
    int column_height = 3 * k + 1;
    ulong index = (ulong)j * (ulong)column_height * (ulong)count + (ulong)b;
    if (k == 0) {
        matrix[index] = 1.0f;
        return;
    }
    matrix[index] = 0.0f;  // room for fill-in
    matrix[index + (ulong)count] = j > 0 ? -before : 0.0f;  // row j - 1
    matrix[index + 2ul * (ulong)count] = 1.0f + before + after;  // row j
    matrix[index + 3ul * (ulong)count] = j < n - 1 ? -after : 0.0f;  // row j + 1
}

// The systems of all rows, one thread per pixel: b is the row, j the column. `sides` becomes the colors of `sharp`.
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

// The systems of all columns, one thread per pixel: b is the column, j the row. `sides` becomes the diffused rows, from
// `rows` (width, 3, height), the solution of the rows' systems.
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

// Copies the solution of the columns' systems to the frame.
KERNEL store_separable(GLOBAL const float *sides, GLOBAL float4 *frame, const int width, const int height) {
    int p = (int)thread_index(), b = p % width, j = p / width;
    if (j >= height) return;
    GLOBAL const float *side = sides + j * 3 * width + b;
    frame[p] = make_float4(side[0], side[width], side[2 * width], 1.0f);
}

// The index of pixel p among the unknowns of the full system: along the shorter side first, which keeps the band
// narrow.
DEVICE int unknown_index(int p, int width, int height) { return width >= height ? p % width * height + p / width : p; }

// Copies the colors of `sharp` to the three right-hand sides, of `order` elements each, of the full system.
KERNEL load_full(GLOBAL const float4 *sharp, GLOBAL float *sides, const int order, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int k = unknown_index(p, width, height);
    sides[k] = sharp[p].x;
    sides[order + k] = sharp[p].y;
    sides[2 * order + k] = sharp[p].z;
}

// Copies the solution of the full system to the frame.
KERNEL store_full(GLOBAL const float *sides, GLOBAL float4 *frame, const int order, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int k = unknown_index(p, width, height);
    frame[p] = make_float4(sides[k], sides[order + k], sides[2 * order + k], 1.0f);
}

// Shows the circles of confusion as gray, white from 16 pixels on.
KERNEL show_coc(GLOBAL const float *diameters, GLOBAL float4 *frame, const int width, const int height) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    float gray = diameters[p] / 16.0f;
    frame[p] = make_float4(gray, gray, gray, 1.0f);
}

// Copies the frame `source` to column `first_column` of the picture, clipped to a tile of the picture (left, top,
// width, height), which `frame` holds.
KERNEL blit_frame(GLOBAL const float4 *source, const int source_width, const int source_height, const int first_column,
                  GLOBAL float4 *frame, const int width, const int height, const int left, const int top) {
    int p = (int)thread_index();
    if (p >= width * height) return;
    int x = left + p % width - first_column, y = top + p / width;
    if (x >= 0 && x < source_width && y < source_height) frame[p] = source[y * source_width + x];
}
