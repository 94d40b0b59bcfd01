// The state of the 32 paths of a stencil word that one thread traces (fused_scalar.h): structures of arrays, as the packet
// traversal of bvh/traverse_bvh8.h reads them.

typedef struct {
    Packet rays, shadows;
    Floats32 bsdf_pdf, throughput[3], radiance[3];
    Floats32 contribution[3];  // of the shadow rays, if unoccluded
    uint sample, seeds[32];
    float sample_cache[CACHE_ROWS * CACHE_PATHS];
} PathPacket;

DEVICE Sampler packet_sampler(const PathPacket *packet, uint j) {
    Sampler sampler = {packet->seeds[j], packet->sample, packet->sample_cache + j};
    return sampler;
}

DEVICE Path packet_path(const PathPacket *packet, uint j) {
    const Floats32 *throughput = packet->throughput, *radiance = packet->radiance;
    Path path;
    path.origin = with_w(packet_origin(&packet->rays, j), packet->rays.time[j]);
    path.direction = with_w(packet_direction(&packet->rays, j), packet->bsdf_pdf.s[j]);
    path.throughput = make_float4(throughput[0].s[j], throughput[1].s[j], throughput[2].s[j], 0.0f);
    path.radiance = make_float4(radiance[0].s[j], radiance[1].s[j], radiance[2].s[j], 0.0f);
    return path;
}

DEVICE void packet_set_color(Floats32 *rows, uint j, float4 color) {
    rows[0].s[j] = color.x;
    rows[1].s[j] = color.y;
    rows[2].s[j] = color.z;
}

DEVICE void packet_set_path(PathPacket *packet, uint j, const Path path) {
    packet_set_ray(&packet->rays, j, path.origin, xyz(path.direction), FLT_MAX);
    packet->bsdf_pdf.s[j] = path.direction.w;
    packet_set_color(packet->throughput, j, path.throughput);
}

DEVICE void packet_set_shadow_ray(PathPacket *packet, uint j, float4 origin, const ShadowRay shadow) {
    float4 start = shadow_ray_origin(origin, shadow.direction, shadow.contribution.w);
    packet_set_ray(&packet->shadows, j, start, xyz(shadow.direction), shadow.direction.w);
    packet_set_color(packet->contribution, j, shadow.contribution);
}
