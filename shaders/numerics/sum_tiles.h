// Floating-point numbers on their way into a sum.
//   ELEMENT       the C type of the numbers; SINGLE 1 for float, 0 for double
//   DOT           0 sums x, 1 sums x * y;  ABSOLUTE 1 sums |x|
//                 y begins y_start numbers into its buffer, a multiple of 64 bytes
//   CONTIGUOUS    1 on processors of one lane: a work item reads a run of its own; 0: neighbours read neighbouring words
// A group takes `tiles_each` tiles of TILE elements one after another; the last tile is padded with -0, which changes no sum.
#define WIDTH 8
#define TILE (GROUP_SIZE * WIDTH)
#if SINGLE
#define RAW float8
#define PAD -0.0f
#else
#define RAW double8
#define PAD -0.0
#endif

// Eight elements of a whole tile. Order is free in every kernel here, so a thread takes 16-byte words GROUP_SIZE apart.
DEVICE RAW load_whole(GLOBAL const ELEMENT *numbers, ulong tile) {
#if CONTIGUOUS
    return vload8(tile, numbers);
#elif SINGLE
    GLOBAL const float4 *words = (GLOBAL const float4 *)numbers + tile * (2 * GROUP_SIZE) + local_index();
    return join_float4(words[0], words[GROUP_SIZE]);
#else
    GLOBAL const double2 *words = (GLOBAL const double2 *)numbers + tile * (4 * GROUP_SIZE) + local_index();
    return join_double2(words[0], words[GROUP_SIZE], words[2 * GROUP_SIZE], words[3 * GROUP_SIZE]);
#endif
}

DEVICE RAW load(GLOBAL const ELEMENT *numbers, ulong tile, ulong count) {
    if ((tile + 1) * TILE <= count) return load_whole(numbers, tile);
    ELEMENT padded[WIDTH];
    for (int i = 0; i < WIDTH; i++) {
        ulong at = tile * TILE + i * GROUP_SIZE + local_index();
        padded[i] = at < count ? numbers[at] : PAD;
    }
    return vload8(0, padded);
}

#define FIRST_TILE (group_index() * tiles_each)
#define LAST_TILE min((count + TILE - 1) / TILE, (ulong)(group_index() + 1ul) * tiles_each)
#if ABSOLUTE
#define MAGNITUDE(x) fabs(x)
#else
#define MAGNITUDE(x) (x)
#endif
