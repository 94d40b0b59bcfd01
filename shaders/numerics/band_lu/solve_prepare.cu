// Band LU: data that substitution.py computes once per factorization: the interchanges of each panel as one
// permutation, and, for solve_sweeps.cu, the inverses of the triangles of the diagonal blocks. Letters and compile-time
// inputs: band_lu.h.
#include "numerics/band_lu/band_lu.h"

#define CHUNK 32  // columns of an inverse that one group computes

// The inverses of the triangles of the block columns on this device: `lower` and `upper` (slots, S, S), column-major,
// in the order of substitution; for the upper triangle that is from the last row and column to the first. A group
// computes CHUNK columns of one inverse. `large` is set if an element times the pivot of its column (an element of the
// inverse of the triangle scaled to unit diagonal) exceeds `limit` or is NaN: multiplying by such an inverse would lose
// digits that substitution keeps.
KERNEL invert_triangles(GLOBAL const REAL *matrix, GLOBAL REAL *lower, GLOBAL REAL *upper, GLOBAL uint *large,
                        const REAL limit, const int index, const int p, STORAGE_PARAMETERS) {
    LOCAL_ARRAY(REAL, x, S * (CHUNK + 1));  // rows of CHUNK columns, padded so that a warp uses different banks
    int chunks = S / CHUNK, first_column = (int)group_index() % chunks * CHUNK, slot = (int)group_index() / chunks / 2,
        i = slot * devices + index, thread = (int)local_index(), column = thread % CHUNK;
    bool is_upper = (int)group_index() / chunks % 2 != 0, exists = i < p;  // the last slot may hold no block column
    int direction = is_upper ? -1 : 1;
    // In the order of substitution, element (row, k) of the triangle is first[direction * (row + k ld)]. Column k is
    // `factor` below; the pivot of U is its element `row` = k, L's pivots are 1.
    GLOBAL const REAL *first = matrix + block_offset(exists ? i : index, exists ? i : index, u, ld, devices, slots);
    if (is_upper) first += (ulong)(S - 1) * (ulong)(ld + 1);
    for (int row = thread / CHUNK; row < S; row += GROUP_SIZE / CHUNK)
        x[row * (CHUNK + 1) + column] = row == first_column + column ? 1 : 0;
    for (int k = first_column; k < S; k++) {
        BARRIER();
        GLOBAL const REAL *factor = first + (int64)(direction * k) * ld;
        REAL solved = x[k * (CHUNK + 1) + column] / (is_upper ? factor[-k] : 1);
        for (int row = k + 1 + thread / CHUNK; row < S; row += GROUP_SIZE / CHUNK)
            x[row * (CHUNK + 1) + column] -= factor[direction * row] * solved;
    }
    BARRIER();
    GLOBAL REAL *out = (is_upper ? upper : lower) + (ulong)slot * (ulong)(S * S) + (ulong)(first_column * S);
    bool is_large = false;
    for (int e = thread; e < S * CHUNK; e += GROUP_SIZE) {
        int row = e % S, c = first_column + e / S;
        REAL pivot = is_upper ? first[-(int64)row * (ld + 1)] : 1,
             column_pivot = is_upper ? first[-(int64)c * (ld + 1)] : 1, value = x[row * (CHUNK + 1) + e / S] / pivot;
        is_large |= !(fabs(value * column_pivot) <= limit && fabs(value) <= REAL_MAX);
        if (exists) out[e] = value;
    }
    if (is_large && exists) atomic_or(large, 1u);
}

// Composes the interchanges of each panel into `permutations` (p, window): the interchanges of step i bring row
// permutations[i * window + r] to row r, both counted from the first row of the panel. One group per step.
KERNEL compose_permutations(GLOBAL const int *pivots, GLOBAL int *permutations, const int window) {
    ulong step = group_index();
    GLOBAL int *row = permutations + step * (ulong)window;
    for (int r = (int)local_index(); r < window; r += GROUP_SIZE) row[r] = r;
    BARRIER();
    for (int k = 0; k < S && local_index() == 0; k++) {
        int other = pivots[step * S + (ulong)k] - 1, before = row[k];
        row[k] = row[other];
        row[other] = before;
    }
}
