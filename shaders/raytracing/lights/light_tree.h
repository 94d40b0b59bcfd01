// Selection of one of many area and point lights by a tree over them (A. Conty Estevez and C. Kulla 2018; pbrt-v4,
// section 12.6.3): from the root down, a child is chosen with a probability in proportion to its importance for the
// shaded point. Used by lights.h with LIGHT_TREE; renderer/raytracing/lights/light_tree.py builds the tree. From row
// params.light_tree of the buffer `lights` on, a node is 4 rows of float4:
//     lower corner of its box, total intensity
//     upper corner, cosine of the half angle of the cone that bounds the normals
//     axis of the cone, cosine of the largest angle between a normal and an emitted direction
//     three ints: first child (its sibling follows it), 0 for a leaf; parent, below 0 for the root; light id of a leaf
// From row params.light_tree_keys on, a sorted row of three ints for each area light finds its leaf: instance, -1 for
// static geometry; primitive id; leaf. A node's intensity is the sum of its lights' intensities along their normals.

// Returns the importance of a node's lights for a point: their intensity over the squared distance, times the largest
// possible cosine between a normal and the direction to the point. It is 0 only if no light of the node emits towards
// the point. Angles: o, half angle of the cone; b, half angle that the box's bounding sphere subtends from the point;
// w, between the cone's axis and the direction to the point; x, w - o or 0.
DEVICE float light_importance(GLOBAL const float4 *node, float3 point) {
    float4 low = node[0], high = node[1], axis = node[2];
    float3 diagonal = xyz(high) - xyz(low), from_center = point - madd(diagonal, 0.5f, xyz(low));
    float radius2 = 0.25f * dot_fma(diagonal, diagonal), distance2 = dot_fma(from_center, from_center);
    float importance = min_nnan(low.w / max_nnan(max_nnan(distance2, radius2), 1e-30f), 1e30f);
    float cos_o = high.w;
    if (!(cos_o > -1.0f) || distance2 <= radius2 || !(distance2 > 0.0f)) return importance;
    float sine2_b = radius2 / distance2, cos_b = sqrt(1.0f - sine2_b), sin_b = sqrt(sine2_b);
    float cos_w = clamp(dot_fma(xyz(axis), from_center) / sqrt(distance2), -1.0f, 1.0f);
    float sin_w = sqrt(fma(-cos_w, cos_w, 1.0f)), sin_o = sqrt(max_nnan(fma(-cos_o, cos_o, 1.0f), 0.0f));
    bool inside = cos_w >= cos_o;  // the point lies in the cone of the normals
    float cos_x = inside ? 1.0f : fma(cos_w, cos_o, sin_w * sin_o);
    float sin_x = inside ? 0.0f : fma(sin_w, cos_o, -(cos_w * sin_o));
    float cosine = cos_x >= cos_b ? 1.0f : fma(cos_x, cos_b, sin_x * sin_b);
    if (cosine < axis.w - 1e-3f) return 0.0f;
    return importance * max_nnan(cosine, 1e-3f);
}

// Returns the probability of choosing node `child`, a first child, instead of its sibling `child` + 1; below 0 if
// neither has importance.
DEVICE float first_child_probability(GLOBAL const float4 *nodes, int child, float3 point) {
    float first = light_importance(nodes + 4 * child, point), second = light_importance(nodes + 4 * child + 4, point);
    return first + second > 0.0f ? first / (first + second) : -1.0f;
}

// Chooses a light for a point by 32 random `bits`. Returns the light's id; *probability becomes the probability of the
// choice, 0 if no light has importance.
DEVICE int sample_light_tree(const LaunchParams params, GLOBAL const float4 *lights, float3 point, uint bits,
                             float *probability) {
    GLOBAL const float4 *nodes = lights + params.light_tree;
    float chosen = 1.0f, since_draw = 1.0f, u = uniform_float(bits);  // probabilities: of all choices, since `u`
    int node = 0, child = as_int(nodes[3].x);
    while (child > 0) {
        float first = first_child_probability(nodes, child, point);
        if (first < 0.0f) {
            *probability = 0.0f;
            return 0;
        }
        bool is_first = u < first;
        float p = is_first ? first : 1.0f - first;
        u = min_nnan((is_first ? u : u - first) / p, 0.9999999f);
        chosen *= p;
        since_draw *= p;
        if (since_draw < 2.44140625e-4f) {  // below 2^-12 the bits left in u are few: draw fresh ones
            bits = mix_bits(bits);
            u = uniform_float(bits);
            since_draw = 1.0f;
        }
        node = is_first ? child : child + 1;
        child = as_int(nodes[4 * node + 3].x);
    }
    *probability = chosen;
    return as_int(nodes[4 * node + 3].z);
}

// Returns the probability with which sample_light_tree chooses the light of a leaf for a point.
DEVICE float light_tree_probability(const LaunchParams params, GLOBAL const float4 *lights, int leaf, float3 point) {
    GLOBAL const float4 *nodes = lights + params.light_tree;
    float chosen = 1.0f;
    for (int node = leaf, parent = as_int(nodes[4 * leaf + 3].y); parent >= 0;) {
        int child = as_int(nodes[4 * parent + 3].x);
        float first = first_child_probability(nodes, child, point);
        if (first < 0.0f) return 0.0f;
        chosen *= node == child ? first : 1.0f - first;
        node = parent;
        parent = as_int(nodes[4 * node + 3].y);
    }
    return chosen;
}

// Returns the leaf of an emissive primitive, by a binary search of the keys; -1 if the primitive is not in the tree.
DEVICE int light_tree_leaf(const LaunchParams params, GLOBAL const float4 *lights, int instance, int primitive_id) {
    GLOBAL const float4 *keys = lights + params.light_tree_keys;
    int low = 0, high = params.light_tree_key_count;
    while (low < high) {
        int middle = (low + high) / 2, key_instance = as_int(keys[middle].x), id = as_int(keys[middle].y);
        if (key_instance < instance || (key_instance == instance && id < primitive_id))
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= params.light_tree_key_count) return -1;
    float4 key = keys[low];
    return as_int(key.x) == instance && as_int(key.y) == primitive_id ? as_int(key.z) : -1;
}
