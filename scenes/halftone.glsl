// Halftone: a picture printed in four inks, each on a screen of dots of its own angle. Hold the mouse for a loupe.
// iChannel0: ../assets/gallery/jewels.png mipmap clamp
uniform float dots = 90.0;  // in the picture's height, 20 to 200
uniform float slip = 0.3;   // of the inks' plates, 0 to 2

// The picture at a point, cropped to this frame: iChannelResolution says its shape. Mipmaps average under a dot.
vec3 picture(vec2 point) {
    vec2 shape = iChannelResolution[0].xy, ratio = iResolution.xy / shape;
    vec2 uv = 0.5 + (point - 0.5 * iResolution.xy) / (shape * max(ratio.x, ratio.y) * (1.02 + 0.02 * sin(iTime * 0.4)));
    float texels = iResolution.y / dots / max(ratio.x, ratio.y);
    return textureLod(iChannel0, uv, max(log2(texels) - 0.7, 0.0)).rgb;
}

vec4 inks(vec3 c) {  // cyan, magenta, yellow, black: gray is replaced by black
    vec3 paper = 1.0 - c;
    float black = pow(min(paper.x, min(paper.y, paper.z)), 2.2);
    return vec4((paper - black) / max(1.0 - black, 0.001), black);
}

// How much of the paper an ink covers at a point: dots that grow into each other.
float cover(vec2 point, float angle, int plate, float pixel) {
    float size = iResolution.y / dots;
    mat2 turn = mat2(cos(angle), -sin(angle), sin(angle), cos(angle));
    vec2 q = turn * point / size, cell = floor(q);
    float least = 9.0;
    for (int k = 0; k < 9; k++) {
        vec2 center = cell + vec2(k % 3, k / 3) - 0.5;
        float ink = inks(picture(center * size * turn))[plate], radius = sqrt(pow(ink, 1.5)) * 0.70;
        least = min(least, length(q - center) - radius);
    }
    return smoothstep(pixel, -pixel, least * size);
}

void mainImage(out vec4 color, in vec2 point) {
    vec2 at = point, glass = iMouse.z > 0.0 ? iMouse.xy : iResolution.xy * (0.5 + 0.3 * vec2(sin(iTime * 0.31), sin(iTime * 0.47 + 1.0)));
    float radius = 0.24 * iResolution.y, far = length(point - glass) / radius, pixel = 0.7;
    if (far < 1.0) {
        float zoom = 4.0 - 1.2 * far * far * far;
        at = glass + (point - glass) / zoom;
        pixel /= zoom;
    }
    float off = slip * iResolution.y / 360.0;
    float cyan = cover(at + off * vec2(0.9, 0.2), 0.2618, 0, pixel), magenta = cover(at - off * vec2(0.3, 0.8), 1.309, 1, pixel);
    float yellow = cover(at + off * vec2(-0.5, 0.6), 0.0, 2, pixel), black = cover(at, 0.7854, 3, pixel);
    float fiber = 0.97 + 0.03 * sin(at.x * 1.9 + 3.0 * sin(at.y * 0.7)) * sin(at.y * 2.3 + 2.0 * sin(at.x * 0.5));
    vec3 c = vec3(0.97, 0.945, 0.89) * fiber;
    c *= mix(vec3(1), vec3(0.05, 0.62, 0.87), cyan);
    c *= mix(vec3(1), vec3(0.89, 0.10, 0.48), magenta);
    c *= mix(vec3(1), vec3(1.0, 0.90, 0.08), yellow);
    c *= mix(vec3(1), vec3(0.12, 0.11, 0.13), black);
    float rim = abs(far - 1.0) * radius, shine = smoothstep(0.25, 0.0, length((point - glass) / radius - vec2(-0.45, 0.5)));
    c = far < 1.0 ? c * (1.05 - 0.35 * pow(far, 6.0)) + 0.12 * shine : c * (1.0 - 0.45 * smoothstep(1.35, 1.0, length(point - glass - vec2(5.0, -8.0) * iResolution.y / 360.0) / radius));
    c = mix(c, vec3(0.10, 0.09, 0.085) + 0.5 * max(0.0, dot(normalize(point - glass), vec2(-0.6, 0.8))), smoothstep(0.014, 0.010, rim / iResolution.y));
    color = vec4(c, 1.0);
}
