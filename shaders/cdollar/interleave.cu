// Planar to interleaved: components of a program's picture, one array each, to a frame (height, width, 4) float32.

// 1 component is gray, 3 are red, green and blue, 4 have opacity; arrays of missing components are not read.
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
