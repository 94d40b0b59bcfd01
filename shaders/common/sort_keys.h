// Sort keys for radix_sort.cu and cdollar/scatter.cu: maps 32-bit elements to unsigned keys in the same order, and
// back. NaN sorts last. The host defines FLOATS: 1 if the elements are floats, else 0; SIGN: 0x80000000 for int
// elements, 0 for uint; EQUAL_ZEROS: 1 if -0 and 0 get the same key, else 0.
#if FLOATS
// The mapping of common/ordered_float.h, but with a selection where that header uses xor: this text keeps the radix
// sort's machine code, whose rates were measured.
DEVICE uint key_from_bits(uint bits) {
    if (((bits << 1) >> 24) == 255u && (bits << 9) != 0) return 0xffffffffu;
    if (EQUAL_ZEROS && bits == 0x80000000u) return bits;
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
DEVICE uint bits_from_key(uint key) {
    return key == 0xffffffffu ? 0x7fc00000u : (key >> 31) != 0 ? key & 0x7fffffffu : ~key;
}
#else
DEVICE uint key_from_bits(uint bits) { return bits ^ (uint)SIGN; }
DEVICE uint bits_from_key(uint key) { return key ^ (uint)SIGN; }
#endif
