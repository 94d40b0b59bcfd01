// Walks of binary trees: closest hit and any hit. 64-byte nodes hold both children's boxes (T. Aila and S. Laine 2009).
// A child is an inner node's number, or ~(first * 8 + count - 1) for a leaf of up to 8 primitives in leaf order.
#include "geometry.h"

#define WALK_DONE ((int)0x80000000)
#define WALK_STACK 64  // the builder promises trees of at most this depth

// What the box tests need of a ray. Near planes are moved closer and far ones farther by what the rounding of
// origin * inverse may be, so that no box is missed whose primitive is hit; boxes are padded by an ulp for the planes' part.
typedef struct {
    float3 inverse, near_shift, far_shift;
} Slabs;

DEVICE float safe_inverse(float d) {
    return 1.0f / (fabs(d) > 8.6736174e-19f ? d : d < 0.0f ? -8.6736174e-19f : 8.6736174e-19f);  // 2^-60: no 0 * inf below
}

DEVICE Slabs slabs_of(float3 origin, float3 direction) {
    Slabs s;
    s.inverse = make_float3(safe_inverse(direction.x), safe_inverse(direction.y), safe_inverse(direction.z));
    float3 shift = make_float3(origin.x * s.inverse.x, origin.y * s.inverse.y, origin.z * s.inverse.z);
    float digits = larger(larger(fabs(origin.x), fabs(origin.y)), fabs(origin.z)) * 2.4e-7f;  // 2^-22
    float3 slack = make_float3(fabs(s.inverse.x) * digits, fabs(s.inverse.y) * digits, fabs(s.inverse.z) * digits);
    s.near_shift = make_float3(-shift.x - slack.x, -shift.y - slack.y, -shift.z - slack.z);
    s.far_shift = make_float3(-shift.x + slack.x, -shift.y + slack.y, -shift.z + slack.z);
    return s;
}

// Where the ray enters a box, or INFINITE when it misses it before `longest`.
DEVICE float enter_box(const Slabs s, float lox, float hix, float loy, float hiy, float loz, float hiz, float longest) {
    float nx = fma(s.inverse.x < 0 ? hix : lox, s.inverse.x, s.near_shift.x);
    float fx = fma(s.inverse.x < 0 ? lox : hix, s.inverse.x, s.far_shift.x);
    float ny = fma(s.inverse.y < 0 ? hiy : loy, s.inverse.y, s.near_shift.y);
    float fy = fma(s.inverse.y < 0 ? loy : hiy, s.inverse.y, s.far_shift.y);
    float nz = fma(s.inverse.z < 0 ? hiz : loz, s.inverse.z, s.near_shift.z);
    float fz = fma(s.inverse.z < 0 ? loz : hiz, s.inverse.z, s.far_shift.z);
    float near = larger(larger(nx, ny), larger(nz, 0.0f));
    float far = smaller(smaller(fx, fy), smaller(fz, longest));
    return near <= far ? near : INFINITE;
}

DEVICE Primitive primitive_at(GLOBAL const float4 *RESTRICT primitives, int i) {
    Primitive p;
    p.corner = primitives[3 * i];
    p.edge1 = primitives[3 * i + 1];
    p.edge2 = primitives[3 * i + 2];
    return p;
}

DEVICE bool hit_primitive(const Primitive p, float3 origin, float3 direction, float longest, Hit *hit) {
#if SPHERES
    if (p.edge2.w > 0.0f) return hit_sphere(p, origin, direction, longest, hit);
#endif
    return hit_triangle(p, origin, direction, longest, hit);
}

// Takes the primitive if it is nearer than `best`, or as near with a lower number: the answer depends on no order of tests.
DEVICE void take_nearer(GLOBAL const float4 *RESTRICT primitives, int i, float3 origin, float3 direction, Hit *best, int *number) {
    Primitive p = primitive_at(primitives, i);
    Hit hit;
    if (hit_primitive(p, origin, direction, best->t, &hit) && (hit.t < best->t || as_int(p.corner.w) < *number)) {
        *best = hit;
        best->primitive = i;
        *number = as_int(p.corner.w);
    }
}

DEVICE Hit closest_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                       float3 direction, float longest) {
    Slabs s = slabs_of(origin, direction);
    Hit best = {longest, 0.0f, 0.0f, -1};
    int number = 0x7fffffff;
    int stack[WALK_STACK];
    int top = 0, node = 0;
    stack[top++] = WALK_DONE;
    while (node != WALK_DONE) {
        while (node >= 0) {
            float4 a = nodes[4 * node], b = nodes[4 * node + 1], c = nodes[4 * node + 2], d = nodes[4 * node + 3];
            float first = enter_box(s, a.x, a.y, a.z, a.w, c.x, c.y, best.t);
            float second = enter_box(s, b.x, b.y, b.z, b.w, c.z, c.w, best.t);
            int left = as_int(d.x), right = as_int(d.y);
            bool swap = second < first;
            int closer = swap ? right : left, farther = swap ? left : right;
            if (larger(first, second) < INFINITE) stack[top++] = farther;
            node = smaller(first, second) < INFINITE ? closer : stack[--top];
        }
        while (node < 0 && node != WALK_DONE) {
            int code = ~node;
            for (int i = code >> 3, end = i + (code & 7); i <= end; i++)
                take_nearer(primitives, i, origin, direction, &best, &number);
            node = stack[--top];
        }
    }
    return best;
}

// Whether anything lies before `longest`.
DEVICE bool any_hit(GLOBAL const float4 *RESTRICT nodes, GLOBAL const float4 *RESTRICT primitives, float3 origin,
                    float3 direction, float longest) {
    Slabs s = slabs_of(origin, direction);
    Hit hit;
    int stack[WALK_STACK];
    int top = 0, node = 0;
    stack[top++] = WALK_DONE;
    while (node != WALK_DONE) {
        while (node >= 0) {
            float4 a = nodes[4 * node], b = nodes[4 * node + 1], c = nodes[4 * node + 2], d = nodes[4 * node + 3];
            bool first = enter_box(s, a.x, a.y, a.z, a.w, c.x, c.y, longest) < INFINITE;
            bool second = enter_box(s, b.x, b.y, b.z, b.w, c.z, c.w, longest) < INFINITE;
            int left = as_int(d.x), right = as_int(d.y);
            if (first && second) stack[top++] = right;
            node = first ? left : second ? right : stack[--top];
        }
        while (node < 0 && node != WALK_DONE) {
            int code = ~node;
            for (int i = code >> 3, end = i + (code & 7); i <= end; i++)
                if (hit_primitive(primitive_at(primitives, i), origin, direction, longest, &hit)) return true;
            node = stack[--top];
        }
    }
    return false;
}
