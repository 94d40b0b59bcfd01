// What one thread keeps of the 32 paths of a word of the stencil (raytracing/fused_scalar.h), in the walk's own layout: a row for each number.

typedef struct {
    Packet rays, shadows;  // of the paths, and from their ends to lights
    Floats32 came, throughput[3], radiance[3];
    Floats32 brings[3];  // what shadow rays bring if nothing is in between
    uint sample, seeds[32];
    float numbers[DEALT_ROWS * DEALT];
} Tile;

DEVICE Key dealt_key(const Tile *tile, uint j) {
    Key key = {tile->seeds[j], tile->sample, tile->numbers + j};
    return key;
}

DEVICE Path path_of(const Tile *tile, uint j) {
    Path path;
    path.origin = with_w(packet_origin(&tile->rays, j), tile->rays.time[j]);
    path.direction = with_w(packet_direction(&tile->rays, j), tile->came.s[j]);
    path.throughput = make_float4(tile->throughput[0].s[j], tile->throughput[1].s[j], tile->throughput[2].s[j], 0.0f);
    path.radiance = make_float4(tile->radiance[0].s[j], tile->radiance[1].s[j], tile->radiance[2].s[j], 0.0f);
    return path;
}

DEVICE void put_colour(Floats32 *rows, uint j, float4 colour) {
    rows[0].s[j] = colour.x;
    rows[1].s[j] = colour.y;
    rows[2].s[j] = colour.z;
}

DEVICE void put_path(Tile *tile, uint j, const Path path) {
    packet_set_ray(&tile->rays, j, path.origin, xyz(path.direction), INFINITE);
    tile->came.s[j] = path.direction.w;
    put_colour(tile->throughput, j, path.throughput);
}

DEVICE void put_shadow(Tile *tile, uint j, float4 origin, const LightRay light) {
    packet_set_ray(&tile->shadows, j, light_origin(origin, light.direction, light.brings.w), xyz(light.direction), light.direction.w);
    put_colour(tile->brings, j, light.brings);
}
