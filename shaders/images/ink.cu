// The picture "ink": ink of the source added to the densities, and densities as a picture on paper.
// Densities are (3, order) float32: red, green, blue; the cell (a, b) of the grid is element a * minor + b.

// The cell's centre in heights from the picture's centre, y upwards.
DEVICE float2 centre_of(int a, int b, int major, int minor, int wide, float spacing) {
    float along = ((float)a + 0.5f - 0.5f * (float)major) * spacing;
    float across = (0.5f * (float)minor - (float)b - 0.5f) * spacing;
    return wide ? make_float2(along, across) : make_float2(-across, -along);
}

KERNEL add_source(GLOBAL float *density, const int order, const int major, const int minor, const int wide,
                  const float spacing, const float x, const float y, const float radius, const float amount,
                  const float red, const float green, const float blue) {
    int k = (int)thread_index();
    if (k >= major * minor) return;
    float2 centre = centre_of(k / minor, k % minor, major, minor, wide, spacing);
    float dx = centre.x - x, dy = centre.y - y;
    float added = amount * exp(-(dx * dx + dy * dy) / (radius * radius));
    density[k] += added * red;
    density[order + k] += added * green;
    density[2 * order + k] += added * blue;
}

DEVICE float density_at(GLOBAL const float *density, int a, int b, int major, int minor) {
    return density[clamp(a, 0, major - 1) * minor + clamp(b, 0, minor - 1)];
}

// Catmull-Rom's weights for the four neighbours of t in 0 .. 1.
DEVICE float4 weights_of(float t) {
    float s = t * t, c = s * t;
    return make_float4(-0.5f * c + s - 0.5f * t, 1.5f * c - 2.5f * s + 1.0f, -1.5f * c + 2.0f * s + 0.5f * t, 0.5f * c - 0.5f * s);
}

DEVICE float smooth(GLOBAL const float *density, float a, float b, int major, int minor) {
    int i = (int)floor(a), j = (int)floor(b);
    float4 wa = weights_of(a - (float)i), wb = weights_of(b - (float)j);
    float sum = 0.0f;
    for (int k = 0; k < 4; k++) {
        float line = wb.x * density_at(density, i - 1 + k, j - 1, major, minor)
                     + wb.y * density_at(density, i - 1 + k, j, major, minor)
                     + wb.z * density_at(density, i - 1 + k, j + 1, major, minor)
                     + wb.w * density_at(density, i - 1 + k, j + 2, major, minor);
        sum += line * (k == 0 ? wa.x : k == 1 ? wa.y : k == 2 ? wa.z : wa.w);
    }
    return fmax(sum, 0.0f);
}

// Two rows of bars over the lower sixth of the picture, one bar a block column: exchanged rows, and the step's parts.
DEVICE float4 overlay(float4 colour, GLOBAL const float *bars, int count, float x, float y) {
    if (count == 0 || y < 0.83f) return colour;
    GLOBAL const float *bar = bars + 8 * min((int)(x * (float)count), count - 1);
    float4 dark = colour * 0.25f;
    float4 ink = dark;
    if (y < 0.908f) {
        if (bar[0] > (0.908f - y) / 0.07f) ink = make_float4(0.9f, 0.9f, 0.9f, 1.0f);
    } else {
        float level = (0.995f - y) / 0.08f, sum = 0.0f;
        for (int part = 4; part >= 0; part--) {
            float next = sum + bar[1 + part];
            if (level >= sum && level < next)
                ink = part == 0   ? make_float4(0.80f, 0.10f, 0.06f, 1.0f)   // panel
                      : part == 1 ? make_float4(0.85f, 0.55f, 0.05f, 1.0f)   // swap
                      : part == 2 ? make_float4(0.20f, 0.55f, 0.12f, 1.0f)   // solve
                      : part == 3 ? make_float4(0.05f, 0.25f, 0.65f, 1.0f)   // update
                                  : make_float4(0.45f, 0.15f, 0.50f, 1.0f);  // copy
            sum = next;
        }
    }
    ink.w = 1.0f;
    return ink;
}

KERNEL show_ink(GLOBAL const float *density, const int order, const int major, const int minor, const int wide,
                const float spacing, GLOBAL float4 *frame, const int width, const int height, const int left, const int top,
                const int whole_width, const int whole_height, const float red, const float green, const float blue,
                GLOBAL const float *bars, const int bar_count) {
    int k = (int)thread_index();
    if (k >= width * height) return;
    float x = ((float)(left + k % width) + 0.5f) / (float)whole_width;
    float y = ((float)(top + k / width) + 0.5f) / (float)whole_height;
    float a = (wide ? x : y) * (float)major - 0.5f, b = (wide ? y : x) * (float)minor - 0.5f;
    float4 colour = make_float4(red * exp(-smooth(density, a, b, major, minor)),
                                green * exp(-smooth(density + order, a, b, major, minor)),
                                blue * exp(-smooth(density + 2 * order, a, b, major, minor)), 1.0f);
    frame[k] = overlay(colour, bars, bar_count, x, y);
}
