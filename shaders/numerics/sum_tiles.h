// Tile loads for the floating-point sum kernels sum_*.cu; "tile" and "arrangement" as in CUB. In: x, `count` numbers,
// and for DOT as many of y. All kernels have the same parameters, since device_sums.py launches them by one call:
// without DOT the host passes x for y. The host defines:
//   ELEMENT              the C type of the numbers; SINGLE 1 for float, 0 for double
//   DOT                  0 sums x, 1 sums x * y; y begins y_start numbers into its buffer, a multiple of 64 bytes
//   ABSOLUTE             1 sums |x|
//   BLOCKED_ARRANGEMENT  1 on CPUs: a work-item reads WIDTH consecutive numbers; 0: neighboring threads read
//                        neighboring 16-byte words
// A group adds `tiles_per_group` tiles of TILE numbers one after another. A partial tile is padded with -0, which
// changes no sum; its factors are padded with 0.
#define WIDTH 8
#define TILE (GROUP_SIZE * WIDTH)
#if SINGLE
#define VECTOR8 float8
#define PAD -0.0f
#else
#define VECTOR8 double8
#define PAD -0.0
#endif

// Eight numbers of a full tile. The sum kernels may add in any order, so a GPU thread reads 16-byte words GROUP_SIZE
// apart.
DEVICE VECTOR8 load_full_tile(GLOBAL const ELEMENT *numbers, ulong tile) {
#if BLOCKED_ARRANGEMENT
    return vload8(tile, numbers);
#elif SINGLE
    GLOBAL const float4 *words = (GLOBAL const float4 *)numbers + tile * (2 * GROUP_SIZE) + local_index();
    return make_float8(words[0], words[GROUP_SIZE]);
#else
    GLOBAL const double2 *words = (GLOBAL const double2 *)numbers + tile * (4 * GROUP_SIZE) + local_index();
    return make_double8(words[0], words[GROUP_SIZE], words[2 * GROUP_SIZE], words[3 * GROUP_SIZE]);
#endif
}

// A thread's numbers of a tile; `pad` beyond the end.
DEVICE VECTOR8 load_padded_tile(GLOBAL const ELEMENT *numbers, ulong tile, ulong count, ELEMENT pad) {
    if ((tile + 1) * TILE <= count) return load_full_tile(numbers, tile);
    ELEMENT padded[WIDTH];
    for (int i = 0; i < WIDTH; i++) {
        ulong at = tile * TILE + i * GROUP_SIZE + local_index();
        padded[i] = at < count ? numbers[at] : pad;
    }
    return vload8(0, padded);
}

#define load_partial_tile(numbers, tile, count) load_padded_tile(numbers, tile, count, PAD)
#define load_partial_factors(numbers, tile, count) load_padded_tile(numbers, tile, count, 0)  // -0 * 0 is -0

// The tiles of this group: FIRST_TILE to END_TILE - 1.
#define FIRST_TILE (group_index() * tiles_per_group)
#define END_TILE min((count + TILE - 1) / TILE, (ulong)(group_index() + 1ul) * tiles_per_group)
#define MAGNITUDE(x) (ABSOLUTE ? fabs(x) : (x))
