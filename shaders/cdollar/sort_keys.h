// Unsigned keys in the order of 32-bit elements, NaN last. FLOATS: whether they are floats; SIGN: 0x80000000 for int.
// Where EQUAL_ZEROS, -0 and 0 have one key.
DEVICE uint key_of(uint bits) {
#if FLOATS
    if (((bits << 1) >> 24) == 255u && (bits << 9) != 0) return 0xffffffffu;
    if (EQUAL_ZEROS && bits == 0x80000000u) return bits;
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
#else
    return bits ^ (uint)SIGN;
#endif
}
DEVICE uint bits_of(uint key) {
#if FLOATS
    return key == 0xffffffffu ? 0x7fc00000u : (key >> 31) != 0 ? key & 0x7fffffffu : ~key;
#else
    return key ^ (uint)SIGN;
#endif
}
