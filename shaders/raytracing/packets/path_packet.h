// PathPacket, the states of 32 paths of a depth that a thread of a CPU traces together (fused_scalar.h). It is Path of
// path.h as a structure of arrays, so that the packet traversal (bvh/traverse_packet.h) reads rays directly. A row
// (Floats32) holds one float for each path; path j is number j of every row. Included by fused_scalar.h, after the
// headers that declare Packet, Floats32 (bvh/packet.h), Sampler (sampler.h), Path and ShadowRay (path.h).
// Macros of other files: CACHE_PATHS, CACHE_ROWS (raytracing/sampler.h); PICKS_RAYS (bvh/traverse_stream.h). Macros of
// renderer/raytracing/kernels.py (see raytrace.cu): REFRACTION.

typedef struct {
    Packet rays;  // from here to `ray`: the PATH_ROWS rows that copy_paths moves
    Floats32 bsdf_pdf, throughput[3], radiance[3];
#if REFRACTION
    Floats32 index, medium;  // w of the throughput and of the radiance (raytracing/volumes/media.h)
#endif
    uint seeds[32], ray[32];  // of the samplers; numbers of the rays in the launch
    Packet shadows;
    Floats32 contribution[3];  // radiance that each shadow ray adds if it is unoccluded
    uint sample;  // of all paths (Sampler of sampler.h)
    float sample_cache[CACHE_ROWS * CACHE_PATHS];  // filled by cache_samples for the bounce
} PathPacket;

#define PATH_ROWS (__builtin_offsetof(PathPacket, shadows) / sizeof(Floats32))

// Packs paths to the front of a packet: copies the columns of the mask `first`, in order, and behind them the columns
// of the mask `next`. There are PATH_ROWS rows, whose starts lie from_stride words apart in `from`, to_stride in `to`.
// May write up to 32 columns: whole vectors with PICKS_RAYS, 1 where AVX-512 picks any 16 of 32 words. `from` and `to`
// may be the same, since a row is read before it is written.
DEVICE_NOINLINE_ALWAYS void copy_paths(const void *from, uint from_stride, uint first, uint next, void *to,
                                       uint to_stride) {
    Ints32 order;
    uint count = 0;
    FOR_EACH_BIT(j, first) order.s[count++] = (int)j;
    FOR_EACH_BIT(j, next) order.s[count++] = (int)j;
    for (uint row = 0; row < PATH_ROWS; row++) {
        Floats32 words = *(const Floats32 *)((const float *)from + row * from_stride);
        float *copy = (float *)to + row * to_stride;
#if PICKS_RAYS
        for (int h = 0; h < 2; h++) vstore16(gather16(&words, order.v16[h]), h, copy);
#else
        for (uint k = 0; k < count; k++) copy[k] = words.s[order.s[k]];
#endif
    }
}

// Returns the sampler of path j.
DEVICE Sampler packet_sampler(const PathPacket *packet, uint j) {
    Sampler sampler = {packet->seeds[j], packet->sample, packet->sample_cache + j};
    return sampler;
}

// Returns the state of path j.
DEVICE Path packet_path(const PathPacket *packet, uint j) {
    Path path = {with_w(float3_at(packet->rays.origin, j), packet->rays.time[j]),
                 with_w(float3_at(packet->rays.direction, j), packet->bsdf_pdf.s[j]),
                 with_w(float3_at(packet->throughput, j), 1.0f), with_w(float3_at(packet->radiance, j), 0.0f)};
#if REFRACTION
    path.throughput.w = packet->index.s[j];
    path.radiance.w = packet->medium.s[j];
#endif
    return path;
}

// Stores the state of path j, except for its radiance, and starts its ray.
DEVICE void packet_set_path(PathPacket *packet, uint j, const Path path) {
    packet_set_ray(&packet->rays, j, path.origin, xyz(path.direction), FLT_MAX);
    packet->bsdf_pdf.s[j] = path.direction.w;
    set_float3_at(packet->throughput, j, xyz(path.throughput));
#if REFRACTION
    packet->index.s[j] = path.throughput.w;
    packet->medium.s[j] = path.radiance.w;
#endif
}

// Stores the shadow ray of path j; origin.w is its time in the shutter interval.
DEVICE void packet_set_shadow_ray(PathPacket *packet, uint j, float4 origin, const ShadowRay shadow) {
    float4 start = shadow_ray_origin(origin, shadow.direction, shadow.contribution.w);
    packet_set_ray(&packet->shadows, j, start, xyz(shadow.direction), shadow.direction.w);
    set_float3_at(packet->contribution, j, xyz(shadow.contribution));
}
