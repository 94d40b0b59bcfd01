// A range of a picture's samples so far: the mean of each pixel's samples from number view.first on, and where FILM asks for it the sum of their squared distances from it
// (B. Welford 1962) with, in .w, the number of samples after which the pixel had little enough noise; 0 while it takes more.
#if FILM
#define FRAME_TAKEN GLOBAL float4 *frame, GLOBAL float4 *spread
#define FRAME_GIVEN frame, spread
#else
#define FRAME_TAKEN GLOBAL float4 *frame
#define FRAME_GIVEN frame
#endif
#define LEAST_SAMPLES 32  // of a pixel before its noise is believed; it is looked at when their number is a power of two
#define DARKEST 0.01f     // luminance below which noise is not relative

DEVICE int frame_index(const View view, int x, int y) { return (y - view.top) * view.across + x - view.left; }

// Whether the pixel takes another sample. It depends on the pixel's own samples alone, so no tile changes it.
DEVICE bool is_noisy(const View view, int x, int y, FRAME_TAKEN) {
#if FILM
    return view.sample == view.first || spread[frame_index(view, x, y)].w == 0.0f;
#else
    return true;
#endif
}

DEVICE void add_sample(const View view, int x, int y, float4 radiance, FRAME_TAKEN) {
    int pixel = frame_index(view, x, y), taken = view.sample - view.first;
    float3 mean = xyz(radiance), before = make_float3(0.0f, 0.0f, 0.0f);
    if (taken > 0) {
        before = xyz(frame[pixel]);
        mean = madd(mean - before, 1.0f / (float)(taken + 1), before);
    }
    frame[pixel] = with_w(mean, 1.0f);
#if FILM
    float3 far = before;
    if (taken > 0) far = xyz(spread[pixel]) + (xyz(radiance) - before) * (xyz(radiance) - mean);
    int samples = taken + 1;
    bool done = false;
    if (view.noise > 0.0f && samples >= LEAST_SAMPLES && (samples & taken) == 0) {
        float scale = 1.0f / ((float)samples * (float)taken);  // the error as if the channels' errors went together
        float error = fma(0.0722f, sqrt(far.z * scale), fma(0.7152f, sqrt(far.y * scale), 0.2126f * sqrt(far.x * scale)));
        done = error <= view.noise * larger(luminance_of(with_w(mean, 0.0f)), DARKEST);
    }
    spread[pixel] = with_w(far, done ? (float)samples : 0.0f);
#endif
}
