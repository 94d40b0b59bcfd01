// Distance to the quaternion Julia set of z^2 + c, c = field.parameters, in its 3D slice without the component k. The
// estimate is |z| ln|z| / 2|z'| (J. Hart et al. 1989).
DEVICE float julia_distance(const DistanceField f, float3 p) {
    float4 z = make_float4(p.x, p.y, p.z, 0.0f);
    float size2 = dot_fma(p, p), slope2 = 1.0f;
    for (int i = 0; i < f.iterations && size2 < 256.0f; i++) {
        slope2 *= 4.0f * size2;
        float3 imaginary = make_float3(z.y, z.z, z.w);
        float real_part = fma(z.x, z.x, f.parameters.x - dot_fma(imaginary, imaginary)), twice = 2.0f * z.x;
        z = make_float4(real_part, fma(twice, z.y, f.parameters.y), fma(twice, z.z, f.parameters.z),
                        fma(twice, z.w, f.parameters.w));
        size2 = fma(z.w, z.w, fma(z.z, z.z, fma(z.y, z.y, z.x * z.x)));
    }
    return size2 > 1.0f ? 0.25f * logarithm_of(size2) * sqrt(size2 / slope2) : 0.0f;
}
