// Distance to the Mandelbulb of the integer power field.power (D. White and P. Nylander 2009). The estimate is r ln r /
// 2 r'. Angles are multiplied by powers of complex numbers, because trigonometric functions round differently on
// different devices.
// Returns the complex number a to an integer power, by squaring.
DEVICE float2 complex_power(float2 a, int power) {
    float2 out = make_float2(1.0f, 0.0f);
    for (int exponent = power; exponent > 0; exponent >>= 1) {
        if (exponent & 1) out = make_float2(fma(out.x, a.x, -(out.y * a.y)), fma(out.x, a.y, out.y * a.x));
        a = make_float2(fma(a.x, a.x, -(a.y * a.y)), 2.0f * a.x * a.y);
    }
    return out;
}

// Returns the estimated distance at p, in field space; `around` and `down` are the azimuth and the angle from +z, as
// complex numbers.
DEVICE float mandelbulb_distance(const DistanceField f, float3 p) {
    float3 z = p;
    float radius = sqrt(dot_fma(p, p)), slope = 1.0f;
    for (int i = 0; i < f.iterations && radius < 8.0f && radius > 0.0f; i++) {
        float level = sqrt(fma(z.x, z.x, z.y * z.y)), inverse = 1.0f / radius, size = 1.0f;
        float2 around = level > 0.0f ? make_float2(z.x / level, z.y / level) : make_float2(1.0f, 0.0f);
        around = complex_power(around, f.power);
        float2 down = complex_power(make_float2(z.z * inverse, level * inverse), f.power);
        for (int k = 1; k < f.power; k++) size *= radius;
        slope = fma((float)f.power * size, slope, 1.0f);
        size *= radius;
        z = make_float3(fma(size * down.y, around.x, p.x), fma(size * down.y, around.y, p.y), fma(size, down.x, p.z));
        radius = sqrt(dot_fma(z, z));
    }
    return radius > 1.0f ? 0.5f * logarithm_of(radius) * radius / slope : 0.0f;
}
