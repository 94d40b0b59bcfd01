// Walks for processors whose threads have no warp and whose registers are wide: one ray against eight boxes or eight
// primitives, or 32 rays that go the same way as one beam against eight boxes, then 16 of them against a primitive.
// A tree is one array in units of 64 bytes, written by bvh/collapse_bvh8.cu:
//     branch  4 units: low x, high x, low y, high y, low z, high z of eight boxes; their codes; largest coordinate, 7 words left
//     block   6 units: corner, edge1, edge2 of eight primitives, x, y and z apart; their rows of `primitives`; their radii
// A code is the unit where a branch begins, or LEAF_BIT and where a block does. Unused boxes are inside out, unused rows -1;
// numbers that are none may still lead into an unused box, so its code is that of a block without primitives.
// The primitives of a block are in the order of their numbers. Hits have the bits of those of bvh/traverse_bvh2.h.
#include "bvh/traverse_bvh2.h"

#if HAS_WIDE_REGISTERS
#define LEAF_BIT 0x80000000u
#define BRANCH_STACK 448  // seven a level of the binary tree that was collapsed
#define PLANES(at) (*(GLOBAL const float8 *)(branch + (at)))
#define FIELD(k) (*(GLOBAL const float8 *)(block + 8 * (k)))
#define ROWS 9
#define RADII 10

typedef GLOBAL const float *Units;
typedef GLOBAL const float4 *Primitives;

DEVICE Units unit_at(Units nodes, uint code) { return nodes + 16 * (size_t)(code & ~LEAF_BIT); }

// ---- one ray -----------------------------------------------------------------------------------------------------------------
typedef struct {
    float3 origin, direction;
    Slabs slabs;
    uint near_x, near_y, near_z;  // where a branch has the planes that the ray meets first
} LoneRay;

DEVICE LoneRay lone_ray(float3 origin, float3 direction) {
    LoneRay r;
    r.origin = origin;
    r.direction = direction;
    r.slabs = slabs_of(origin, direction);
    r.near_x = r.slabs.inverse.x < 0.0f ? 8u : 0u;
    r.near_y = r.slabs.inverse.y < 0.0f ? 24u : 16u;
    r.near_z = r.slabs.inverse.z < 0.0f ? 40u : 32u;
    return r;
}

DEVICE float8 plane_at(float8 plane, float inverse, float shift) { return fma(plane, (float8)(inverse), (float8)(shift)); }

// The boxes, a bit each, that the ray meets before `longest`, and where it enters them.
DEVICE uint enter_branch(Units branch, const LoneRay *r, float longest, float8 *near) {
    const Slabs *s = &r->slabs;
    float8 near_x = plane_at(PLANES(r->near_x), s->inverse.x, s->near_shift.x), far_x = plane_at(PLANES(r->near_x ^ 8u), s->inverse.x, s->far_shift.x);
    float8 near_y = plane_at(PLANES(r->near_y), s->inverse.y, s->near_shift.y), far_y = plane_at(PLANES(r->near_y ^ 8u), s->inverse.y, s->far_shift.y);
    float8 near_z = plane_at(PLANES(r->near_z), s->inverse.z, s->near_shift.z), far_z = plane_at(PLANES(r->near_z ^ 8u), s->inverse.z, s->far_shift.z);
    *near = larger(larger(near_x, near_y), larger(near_z, (float8)(0.0f)));
    float8 far = smaller(smaller(far_x, far_y), smaller(far_z, (float8)(longest)));
    return bits_of8(*near <= far);
}

// Goes to the nearest of the boxes that were met and keeps the others, each with where it is entered.
DEVICE uint nearest_child(Units branch, uint met, float8 near, uint2 *stack, int *top) {
    GLOBAL const uint *codes = (GLOBAL const uint *)(branch + 48);
    float entered[8];
    vstore8(near, 0, entered);
    uint k = lowest_bit(met), code = codes[k];
    float nearest = entered[k];
    while (met &= met - 1u) {
        k = lowest_bit(met);
        uint other = codes[k];
        float at = entered[k];
        bool swap = at < nearest;
        stack[(*top)++] = make_uint2(swap ? code : other, as_uint(swap ? nearest : at));
        code = swap ? other : code;
        nearest = swap ? at : nearest;
    }
    return code;
}

// hit_triangle and hit_sphere of bvh/geometry.h over N pairs of a ray and a primitive in registers F, with the same roundings.
#define VECTOR_TESTS(N, F, I, U)                                                                                          \
    DEVICE I meet_triangles##N(F cx, F cy, F cz, F ax, F ay, F az, F bx, F by, F bz, F ox, F oy, F oz, F dx, F dy, F dz,  \
                               F longest, F *t, F *u, F *v) {                                                             \
        F hx = fma(dy, bz, -(dz * by)), hy = fma(dz, bx, -(dx * bz)), hz = fma(dx, by, -(dy * bx));                       \
        F determinant = fma(az, hz, fma(ay, hy, ax * hx)), scale = fabs(determinant);                                     \
        F least = -EDGE * scale, most = scale + EDGE * scale;                                                             \
        F sx = ox - cx, sy = oy - cy, sz = oz - cz;                                                                       \
        F qx = fma(sy, az, -(sz * ay)), qy = fma(sz, ax, -(sx * az)), qz = fma(sx, ay, -(sy * ax));                       \
        U sign = as_u##I(determinant) & 0x80000000u;                                                                      \
        F first = as_##F(as_u##I(fma(sz, hz, fma(sy, hy, sx * hx))) ^ sign);                                              \
        F second = as_##F(as_u##I(fma(dz, qz, fma(dy, qy, dx * qx))) ^ sign);                                             \
        I inside = (smaller(first, second) >= least) & (first + second <= most);                                          \
        if (!bits_of##N(inside)) return inside;                                                                           \
        F inverse = 1.0f / determinant;                                                                                   \
        *t = fma(bz, qz, fma(by, qy, bx * qx)) * inverse;                                                                 \
        inverse = fabs(inverse);                                                                                          \
        *u = first * inverse;                                                                                             \
        *v = second * inverse;                                                                                            \
        return inside & (*t > 0.0f) & (*t <= longest);                                                                    \
    }                                                                                                                     \
    DEVICE I meet_spheres##N(F cx, F cy, F cz, F radius, F ox, F oy, F oz, F dx, F dy, F dz, F longest, F *t) {           \
        F fx = ox - cx, fy = oy - cy, fz = oz - cz;                                                                       \
        F a = fma(dz, dz, fma(dy, dy, dx * dx)), b = -fma(fz, dz, fma(fy, dy, fx * dx));                                  \
        F far = b / a, rx = fma(dx, far, fx), ry = fma(dy, far, fy), rz = fma(dz, far, fz);                               \
        F discriminant = fma(radius, radius, -fma(rz, rz, fma(ry, ry, rx * rx)));                                         \
        I inside = discriminant > 0.0f;                                                                                   \
        if (!bits_of##N(inside)) return inside;                                                                           \
        F c = fma(-radius, radius, fma(fz, fz, fma(fy, fy, fx * fx))), root = sqrt(a * discriminant);                     \
        F q = b + (b < 0.0f ? -root : root), one = c / q, other = q / a;                                                  \
        I swap = one > other;                                                                                             \
        F nearer = swap ? other : one, farther = swap ? one : other;                                                      \
        F start = 2.0e-6f * (radius + fabs(c) / radius);                                                                  \
        I keeps = (nearer > 0.0f) & ~(nearer * nearer * a < start * start);                                               \
        *t = keeps ? nearer : farther;                                                                                    \
        return inside & (*t > 0.0f) & (*t <= longest);                                                                    \
    }
VECTOR_TESTS(8, float8, int8, uint8)
VECTOR_TESTS(16, float16, int16, uint16)

// The primitives of a block, a bit each, that the ray meets up to `longest`.
DEVICE uint meet_block(Units block, const LoneRay *r, float longest, float8 *t, float8 *u, float8 *v) {
    float8 ox = (float8)(r->origin.x), oy = (float8)(r->origin.y), oz = (float8)(r->origin.z);
    float8 dx = (float8)(r->direction.x), dy = (float8)(r->direction.y), dz = (float8)(r->direction.z), end = (float8)(longest);
#if SPHERES
    int8 round = FIELD(RADII) > 0.0f, met = round;
    uint rounds = bits_of8(round);
    if (rounds) {
        met = meet_spheres8(FIELD(0), FIELD(1), FIELD(2), FIELD(RADII), ox, oy, oz, dx, dy, dz, end, t) & round;
        *u = *v = (float8)(0.0f);
        if (rounds == bits_of8(as_int8(FIELD(ROWS)) >= 0)) return bits_of8(met);
    }
    float8 flat_t, flat_u, flat_v;
    int8 flat = meet_triangles8(FIELD(0), FIELD(1), FIELD(2), FIELD(3), FIELD(4), FIELD(5), FIELD(6), FIELD(7), FIELD(8), ox, oy, oz,
                                dx, dy, dz, end, &flat_t, &flat_u, &flat_v) & ~round;
    if (!rounds) {
        *t = flat_t;
        *u = flat_u;
        *v = flat_v;
        return bits_of8(flat);
    }
    *t = round ? *t : flat_t;
    *u = round ? *u : flat_u;
    *v = round ? *v : flat_v;
    return bits_of8(met | flat);
#else
    return bits_of8(meet_triangles8(FIELD(0), FIELD(1), FIELD(2), FIELD(3), FIELD(4), FIELD(5), FIELD(6), FIELD(7), FIELD(8), ox, oy, oz,
                                    dx, dy, dz, end, t, u, v));
#endif
}

DEVICE int number_at(Primitives primitives, int row) { return row < 0 ? 0x7fffffff : as_int(primitives[3 * row].w); }

DEVICE void take_nearest(Units block, Primitives primitives, uint met, float8 t, float8 u, float8 v, Hit *best) {
    float ts[8], us[8], vs[8];
    vstore8(t, 0, ts);
    vstore8(u, 0, us);
    vstore8(v, 0, vs);
    for (; met; met &= met - 1u) {
        uint k = lowest_bit(met);
        int row = as_int(block[8 * ROWS + k]);
        if (ts[k] > best->t) continue;
        if (ts[k] == best->t && number_at(primitives, row) >= number_at(primitives, best->primitive)) continue;
        Hit hit = {ts[k], us[k], vs[k], row};
        *best = hit;
    }
}

// What is nearer than `best`, which may have been found by another walk.
DEVICE_CALLED Hit lone_hit(Units nodes, Primitives primitives, float3 origin, float3 direction, Hit best, bool any_will_do) {
    LoneRay r = lone_ray(origin, direction);
    uint2 stack[BRANCH_STACK];  // codes, and where the ray enters their boxes
    int top = 0;
    uint code = 0;
    while (true) {
        Units here = unit_at(nodes, code);
        if (code & LEAF_BIT) {
            float8 t, u, v;
            uint met = meet_block(here, &r, best.t, &t, &u, &v);
            if (met && any_will_do) {
                best.primitive = 0;
                return best;
            }
            if (met) take_nearest(here, primitives, met, t, u, v, &best);
        } else {
            float8 near;
            uint met = enter_branch(here, &r, best.t, &near);
            if (met) {
                code = nearest_child(here, met, near, stack, &top);
                continue;
            }
        }
        do {
            if (top == 0) return best;
            top--;
        } while (as_float(stack[top].y) > best.t);
        code = stack[top].x;
    }
}

DEVICE Hit closest_hit_lone(Units nodes, Primitives primitives, float3 origin, float3 direction, float longest) {
    Hit nothing = {longest, 0.0f, 0.0f, -1};
    return lone_hit(nodes, primitives, origin, direction, nothing, false);
}

DEVICE bool any_hit_lone(Units nodes, Primitives primitives, float3 origin, float3 direction, float longest) {
    Hit nothing = {longest, 0.0f, 0.0f, -1};
    return lone_hit(nodes, primitives, origin, direction, nothing, true).primitive >= 0;
}

// ---- 32 rays -----------------------------------------------------------------------------------------------------------------
typedef union {
    float16 part[2];
    float8 quarter[4];
    float at[32];
} Floats32;
typedef union {
    int16 part[2];
    int8 quarter[4];
    int at[32];
} Ints32;

// Rays and what they have hit so far. A ray that takes no part, and one that needs no more, has a negative t.
typedef struct {
    Floats32 origin[3], direction[3], t, u, v;
    Ints32 row, number;
    float moment[32];  // within the shutter
#if INSTANCES
    int instance[32];
#endif
} Packet;

// What is around the rays of a packet: they go the same way along their main axis k, and stay between two planes in each other
// axis i: the coordinates c of their points meet c_i - lower c_k >= lower_shift and c_i - upper c_k <= upper_shift.
typedef struct {
    float sign, start, end, slack;  // of the way along k; how far along it the rays begin, and where the last ends
    float lower[2], upper[2], lower_shift[2], upper_shift[2];
    uint k, i[2];
    uint near_k, lower_k[2], upper_k[2];  // which planes of a box come first along k, and lie farthest inside of the planes
} Beam;

#define BEAM_SLACK 3.814697265625e-6f  // 2^-18 of the scene's extent: more than roundings and EDGE can move a hit
#ifndef WIDEST_BEAM
#define WIDEST_BEAM 0.5f               // slopes of a wider beam meet too many boxes
#endif
#ifndef FEWEST_RAYS
#define FEWEST_RAYS 6                  // that walk faster together than alone
#endif
#ifndef PATIENCE
#define PATIENCE 4  // branches a ray
#endif
#ifndef PRIMITIVE_PATIENCE
#define PRIMITIVE_PATIENCE 2
#endif

DEVICE float least_of32(const Floats32 x) {
    float8 a = smaller(smaller(x.quarter[0], x.quarter[1]), smaller(x.quarter[2], x.quarter[3]));
    float4 b = smaller(a.lo, a.hi);
    return smaller(smaller(b.x, b.y), smaller(b.z, b.w));
}

DEVICE float largest_of32(const Floats32 x) {
    float8 a = larger(larger(x.quarter[0], x.quarter[1]), larger(x.quarter[2], x.quarter[3]));
    float4 b = larger(a.lo, a.hi);
    return larger(larger(b.x, b.y), larger(b.z, b.w));
}

DEVICE float end_of_beam(const Beam *b, const Packet *p) {
    Floats32 ends;
    for (int h = 0; h < 2; h++) {
        float16 end = fma(p->t.part[h], p->direction[b->k].part[h], p->origin[b->k].part[h]) * b->sign;
        ends.part[h] = p->t.part[h] >= 0.0f ? end : (float16)(-INFINITE);
    }
    return largest_of32(ends) + b->slack;
}

// The beam around a packet's rays, of which those that take no part have the place and direction of one that does; false
// where they go apart.
DEVICE_CALLED bool beam_around(Units nodes, const Packet *p, Beam *b) {
    float x = fabs(p->direction[0].at[0]), y = fabs(p->direction[1].at[0]), z = fabs(p->direction[2].at[0]);
    uint k = x >= y && x >= z ? 0u : y >= z ? 1u : 2u;
    float slowest = least_of32(p->direction[k]), fastest = largest_of32(p->direction[k]);
    if (!(slowest > 0.0f || fastest < 0.0f)) return false;
    bool forward = slowest > 0.0f;
    float low[3], high[3], extent = nodes[56];
    int16 numbers = (int16)(-1);
    for (uint axis = 0; axis < 3; axis++) {
        for (int h = 0; h < 2; h++)
            numbers &= (fabs(p->origin[axis].part[h]) <= INFINITE) & (fabs(p->direction[axis].part[h]) <= INFINITE);
        low[axis] = least_of32(p->origin[axis]);
        high[axis] = largest_of32(p->origin[axis]);
        extent = larger(extent, larger(fabs(low[axis]), fabs(high[axis])));
    }
    if (bits_of16(numbers) != 0xffffu) return false;  // one that is none would hide what bounds the others
    float slack = extent * BEAM_SLACK;
    b->sign = forward ? 1.0f : -1.0f;
    b->start = smaller(low[k] * b->sign, high[k] * b->sign) - slack;
    b->k = k;
    b->i[0] = k == 0 ? 1u : 0u;
    b->i[1] = k == 2 ? 1u : 2u;
    b->near_k = 16 * k + (forward ? 0u : 8u);
    for (int side = 0; side < 2; side++) {
        uint i = b->i[side];
        Floats32 slopes;
        for (int h = 0; h < 2; h++) slopes.part[h] = p->direction[i].part[h] / p->direction[k].part[h];
        float least = least_of32(slopes), most = largest_of32(slopes);
        if (!(most - least < WIDEST_BEAM)) return false;
        float lower = forward ? least : most, upper = forward ? most : least;
        float more = slack * (1.0f + larger(fabs(lower), fabs(upper)));
        b->lower[side] = -lower;
        b->upper[side] = -upper;
        b->lower_k[side] = 16 * k + (lower > 0.0f ? 0u : 8u);
        b->upper_k[side] = 16 * k + (upper > 0.0f ? 8u : 0u);
        b->lower_shift[side] = low[i] - larger(lower * low[k], lower * high[k]) - more;
        b->upper_shift[side] = high[i] - smaller(upper * low[k], upper * high[k]) + more;
    }
    b->slack = slack;
    b->end = end_of_beam(b, p);
    return true;
}

DEVICE uint enter_together(Units branch, const Beam *b, float8 *near) {
    *near = PLANES(b->near_k) * b->sign;
    int8 in = (PLANES(b->near_k ^ 8u) * b->sign >= b->start) & (*near <= b->end);
    for (int side = 0; side < 2; side++) {
        uint i = 16 * b->i[side];
        in &= fma((float8)(b->lower[side]), PLANES(b->lower_k[side]), PLANES(i + 8)) >= b->lower_shift[side];
        in &= fma((float8)(b->upper[side]), PLANES(b->upper_k[side]), PLANES(i)) <= b->upper_shift[side];
    }
    return bits_of8(in);
}

// The primitives of a block, a bit each, that reach into the beam.
DEVICE uint primitives_in(Units block, const Beam *b) {
    float8 k0 = FIELD(b->k), k1 = k0 + FIELD(3 + b->k), k2 = k0 + FIELD(6 + b->k);
    int8 in = as_int8(FIELD(ROWS)) >= 0;
    for (int side = 0; side < 2; side++) {
        uint i = b->i[side];
        float8 p0 = FIELD(i), p1 = p0 + FIELD(3 + i), p2 = p0 + FIELD(6 + i);
        float8 lower = (float8)(b->lower[side]), upper = (float8)(b->upper[side]);
        float8 highest = larger(larger(fma(lower, k0, p0), fma(lower, k1, p1)), fma(lower, k2, p2));
        float8 lowest = smaller(smaller(fma(upper, k0, p0), fma(upper, k1, p1)), fma(upper, k2, p2));
#if SPHERES
        highest = fma(FIELD(RADII), (float8)(1.0f + fabs(b->lower[side])), highest);
        lowest = fma(FIELD(RADII), (float8)(-1.0f - fabs(b->upper[side])), lowest);
#endif
        in &= (highest >= b->lower_shift[side]) & (lowest <= b->upper_shift[side]);
    }
    return bits_of8(in);
}

// Half a packet against primitive k of a block; whether some ray is the shorter for it.
DEVICE_CALLED bool meet_primitive(Units block, uint k, Primitives primitives, Packet *p, int h, bool any_will_do) {
    float16 t, u = (float16)(0.0f), v = (float16)(0.0f), longest = p->t.part[h];
    float16 ox = p->origin[0].part[h], oy = p->origin[1].part[h], oz = p->origin[2].part[h];
    float16 dx = p->direction[0].part[h], dy = p->direction[1].part[h], dz = p->direction[2].part[h];
    float16 cx = (float16)(block[k]), cy = (float16)(block[8 + k]), cz = (float16)(block[16 + k]);
    int16 met;
    if (SPHERES && block[8 * RADII + k] > 0.0f)
        met = meet_spheres16(cx, cy, cz, (float16)(block[8 * RADII + k]), ox, oy, oz, dx, dy, dz, longest, &t);
    else
        met = meet_triangles16(cx, cy, cz, (float16)(block[24 + k]), (float16)(block[32 + k]), (float16)(block[40 + k]),
                               (float16)(block[48 + k]), (float16)(block[56 + k]), (float16)(block[64 + k]), ox, oy, oz, dx, dy, dz,
                               longest, &t, &u, &v);
    if (!bits_of16(met)) return false;
    int row = as_int(block[8 * ROWS + k]), number = number_at(primitives, row);
    met &= (t < longest) | (p->number.part[h] > number);
    p->t.part[h] = met ? (any_will_do ? (float16)(-1.0f) : t) : longest;
    p->u.part[h] = met ? u : p->u.part[h];
    p->v.part[h] = met ? v : p->v.part[h];
    p->row.part[h] = met ? (int16)(row) : p->row.part[h];
    p->number.part[h] = met ? (int16)(number) : p->number.part[h];
    return true;
}

// False where the beam meets so much that its rays had better walk alone; what they have hit so far stays.
DEVICE bool walk_beam(Units nodes, Primitives primitives, Packet *p, Beam *b, int patience, bool any_will_do) {
    uint2 stack[BRANCH_STACK];  // codes, and how far along k their boxes begin
    int top = 0;
    uint code = 0;
    while (true) {
        Units here = unit_at(nodes, code);
        if (code & LEAF_BIT) {
            bool nearer = false;
            for (uint in = primitives_in(here, b); in; in &= in - 1u) {
                uint k = lowest_bit(in);
                for (int h = 0; h < 2; h++) nearer |= meet_primitive(here, k, primitives, p, h, any_will_do);
                patience -= PRIMITIVE_PATIENCE;
            }
            if (nearer) b->end = end_of_beam(b, p);
        } else {
            float8 near;
            uint met = enter_together(here, b, &near);
            patience -= 1;
            if (met) {
                code = nearest_child(here, met, near, stack, &top);
                continue;
            }
        }
        if (patience < 0) return false;
        do {
            if (top == 0) return true;
            top--;
        } while (as_float(stack[top].y) > b->end);
        code = stack[top].x;
    }
}

DEVICE Hit packet_hit_of(const Packet *p, uint j) {
    Hit hit = {p->t.at[j], p->u.at[j], p->v.at[j], p->row.at[j]};
#if INSTANCES
    hit.instance = p->instance[j];
#endif
    return hit;
}

DEVICE float3 packet_origin(const Packet *p, uint j) { return make_float3(p->origin[0].at[j], p->origin[1].at[j], p->origin[2].at[j]); }

DEVICE float3 packet_direction(const Packet *p, uint j) {
    return make_float3(p->direction[0].at[j], p->direction[1].at[j], p->direction[2].at[j]);
}

DEVICE void put_ray(Packet *p, uint j, float4 origin, float3 direction, float longest) {
    p->origin[0].at[j] = origin.x;
    p->origin[1].at[j] = origin.y;
    p->origin[2].at[j] = origin.z;
    p->direction[0].at[j] = direction.x;
    p->direction[1].at[j] = direction.y;
    p->direction[2].at[j] = direction.z;
    p->t.at[j] = longest;
    p->moment[j] = origin.w;
}

DEVICE void put_hit(Packet *p, uint j, const Hit hit) {
    p->t.at[j] = hit.t;
    p->u.at[j] = hit.u;
    p->v.at[j] = hit.v;
    p->row.at[j] = hit.primitive;
#if INSTANCES
    p->instance[j] = hit.instance;
#endif
}

// What the rays of `active` hit, which put_ray has put into the packet: row is -1 for nothing. With `any_will_do` only whether.
DEVICE_CALLED void walk_packet(Units nodes, Primitives primitives, Packet *p, uint active, bool any_will_do) {
    Beam beam;
    for (int h = 0; h < 2; h++) {
        p->row.part[h] = (int16)(-1);
        p->number.part[h] = (int16)(0x7fffffff);
        p->u.part[h] = p->v.part[h] = (float16)(0.0f);
    }
    if (popcount(active) >= FEWEST_RAYS) {
        uint some = lowest_bit(active);
        float4 origin = with_w(packet_origin(p, some), 0.0f);
        float3 direction = packet_direction(p, some);
        for (uint rest = ~active; rest; rest &= rest - 1u) put_ray(p, lowest_bit(rest), origin, direction, -1.0f);
        int patience = PATIENCE * (int)popcount(active);
        if (beam_around(nodes, p, &beam) && walk_beam(nodes, primitives, p, &beam, patience, any_will_do)) return;
    }
    for (; active; active &= active - 1u) {
        uint j = lowest_bit(active);
        if (any_will_do && p->row.at[j] >= 0) continue;
        Hit hit = lone_hit(nodes, primitives, packet_origin(p, j), packet_direction(p, j), packet_hit_of(p, j), any_will_do);
        put_hit(p, j, hit);
    }
}
#endif
