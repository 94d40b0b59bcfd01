// Distance to the Menger sponge of `iterations` levels, in a cube of side 1 about the origin: d is the largest of the
// distances to the cube and to the complement of each level's crosses, a lower bound of the true distance (after I.
// Quilez).
DEVICE float menger_distance(const DistanceField f, float3 p) {
    float3 q = make_float3(2.0f * p.x, 2.0f * p.y, 2.0f * p.z);
    float3 out = make_float3(fabs(q.x) - 1.0f, fabs(q.y) - 1.0f, fabs(q.z) - 1.0f);
    float3 beyond = make_float3(max_nnan(out.x, 0.0f), max_nnan(out.y, 0.0f), max_nnan(out.z, 0.0f));
    float d = sqrt(dot_fma(beyond, beyond)) + min_nnan(max_nnan(out.x, max_nnan(out.y, out.z)), 0.0f), cells = 1.0f;
    for (int level = 0; level < f.iterations; level++) {
        float3 a = make_float3(q.x * cells, q.y * cells, q.z * cells);
        a = make_float3(fma(floor(a.x * 0.5f), -2.0f, a.x) - 1.0f, fma(floor(a.y * 0.5f), -2.0f, a.y) - 1.0f,
                        fma(floor(a.z * 0.5f), -2.0f, a.z) - 1.0f);
        float x = fabs(fma(fabs(a.x), -3.0f, 1.0f)), y = fabs(fma(fabs(a.y), -3.0f, 1.0f)),
              z = fabs(fma(fabs(a.z), -3.0f, 1.0f));
        cells *= 3.0f;
        d = max_nnan(d, (min_nnan(max_nnan(x, y), min_nnan(max_nnan(y, z), max_nnan(z, x))) - 1.0f) / cells);
    }
    return 0.5f * d;
}
