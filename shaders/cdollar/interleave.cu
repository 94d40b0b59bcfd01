// Components of a program's picture, one array each, to the pixels of a frame (height, width, 4) float32.

// 1 component is grey, 3 are red, green, blue, 4 have opacity; unused arrays may be any.
KERNEL weave(int count, int components, GLOBAL const float *RESTRICT first, GLOBAL const float *RESTRICT second,
             GLOBAL const float *RESTRICT third, GLOBAL const float *RESTRICT fourth, GLOBAL float4 *RESTRICT frame) {
    const int pixel = (int)thread_index();
    if (pixel < count) {
        const float red = first[pixel];
        if (components == 1)
            frame[pixel] = make_float4(red, red, red, 1.0f);
        else
            frame[pixel] = make_float4(red, second[pixel], third[pixel], components == 4 ? fourth[pixel] : 1.0f);
    }
}
