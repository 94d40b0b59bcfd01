// Interleaves the components of a C$ picture, one array per component, into a frame (height, width, 4) float32, for
// renderer/pictures/cdollar.py.

// One thread per pixel. `components`: 1 (gray), 3 (red, green, blue) or 4 (with alpha). Arrays of missing components
// are not read.
KERNEL interleave(int count, int components, GLOBAL const float *RESTRICT first, GLOBAL const float *RESTRICT second,
                  GLOBAL const float *RESTRICT third, GLOBAL const float *RESTRICT fourth,
                  GLOBAL float4 *RESTRICT frame) {
    const int pixel = (int)thread_index();
    if (pixel < count) {
        const float red = first[pixel];
        if (components == 1)
            frame[pixel] = make_float4(red, red, red, 1.0f);
        else
            frame[pixel] = make_float4(red, second[pixel], third[pixel], components == 4 ? fourth[pixel] : 1.0f);
    }
}
