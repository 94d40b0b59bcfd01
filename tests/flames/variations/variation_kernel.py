"""One kernel that applies any of many variations to any points: a table of cases in, results out."""

import numpy as np

from renderer.flames.variations.catalog import Variation, header_source, sources, variation_table
from renderer.gpu.kernel_source import GeneratedSource

MAX_PARAMETERS = 72
PROGRAMS = 12  # that hold all variations
PADDING = 16  # points of a case are a multiple of this: the most that a work-item carries
KERNEL = """
KERNEL apply(GLOBAL const float *points, GLOBAL const int *cases, GLOBAL const int *variations,
             GLOBAL const float *weights, GLOBAL const float *parameters, GLOBAL const float *affine,
             GLOBAL float *out, int count, GLOBAL const float *tables, GLOBAL const int *places) {
    int i = (int)thread_index() * LANES;
    if (i >= count) return;
    Random rng;
#if LANES == 1
    bits slot = (bits)i;
    real x = points[i], y = points[count + i], z = points[2 * count + i], color = points[3 * count + i];
#else
    bits slot = bits_of_whole(LANE_NUMBERS) + (uint)i;
    real x = LOAD_LANES(points + i), y = LOAD_LANES(points + count + i), z = LOAD_LANES(points + 2 * count + i);
    real color = LOAD_LANES(points + 3 * count + i);
#endif
    rng.position = mixed(slot);
    rng.gamma = mixed(slot + 0x9e3779b9u) | 1u;
    mask hidden = (mask)(0);
    real rgb = (real)(-1.0f);
    GLOBAL const float *p = parameters + 72 * cases[i];
    Triple t = dispatch(variations[cases[i]], x, y, z, weights[cases[i]], affine, &rng, &color, &hidden, &rgb, p,
                        tables + places[cases[i]]);
    real shown = hidden ? (real)(1.0f) : (real)(0.0f);
#if LANES == 1
    out[i] = t.x;
    out[count + i] = t.y;
    out[2 * count + i] = t.z;
    out[3 * count + i] = color;
    out[4 * count + i] = shown;
    out[5 * count + i] = rgb;
#else
    STORE_LANES(t.x, out + i);
    STORE_LANES(t.y, out + count + i);
    STORE_LANES(t.z, out + 2 * count + i);
    STORE_LANES(color, out + 3 * count + i);
    STORE_LANES(shown, out + 4 * count + i);
    STORE_LANES(rgb, out + 5 * count + i);
#endif
}
"""
DISPATCH = (
    "DEVICE Triple dispatch(int which, real x, real y, real z, float weight, GLOBAL const float *affine, "
    "Random *random, real *color, mask *hidden, real *rgb, GLOBAL const float *p, GLOBAL const float *table) {"
)


def kernel_source(variations: list[Variation]) -> GeneratedSource:
    """The kernel's text. Functions are not inlined, because hundreds of variations then compile in seconds."""
    cases = []
    for v in variations:
        arguments = "".join(f", p[{k}]" for k in range(len(v.parameters)))
        if v.has_table:
            arguments += ", table"
        if v.is_plain:
            call = f"variation_{v.function}(x, y, weight, affine, random{arguments})"
        else:
            unvaried = ", beside(x, y, z)" * v.reads_unvaried
            call = f"variation_{v.function}(x, y, z{unvaried}, weight, affine, random, color, hidden, rgb{arguments})"
        if not v.in_space:
            z = f"z_of_{v.function}(x, y, z, weight{arguments})" if v.z_body else "(real)(0.0f)"
            call = f"in_space({call}, {z})"
        cases.append(f"    case {v.index}: return {call};")
    text = "\n".join(
        [
            "#define IS_3D 0",
            '#include "common/portable.h"',
            "#undef DEVICE",
            "#define DEVICE DEVICE_NOINLINE_ALWAYS",
            header_source(),
            "DEVICE Triple in_space(Pair p, real z) { return triple(p.x, p.y, z); }",
            "DEVICE Point beside(real x, real y, real z) {",
            "    Point p;",
            "    p.x = x + 1.0f; p.y = y - 2.0f; p.z = z + 3.0f;",
            "    return p;",
            "}",
            *sources(variations),
            DISPATCH,
            "    switch (which) {",
            *cases,
            "    }",
            "    return triple(x, y, z);",
            "}",
            KERNEL,
        ]
    )
    return GeneratedSource("variations", text)


def program_of(variation: Variation) -> list[Variation]:
    """All variations of the program that holds one. A program for each would take a fifth of the time of 60."""
    program = variation.index % PROGRAMS
    return [v for v in variation_table().values() if v.index % PROGRAMS == program and not v.is_user_defined]


def apply_cases(device, variations, cases, affine, lanes=1) -> list[np.ndarray]:
    """The results (n, 6) of each case: x, y, z, color, hidden, packed color or -1.

    A case is a variation of the list, its weight, its parameters without the variation's name, and points (n, 4) of
    x, y, z, color. Variations of one of the shared programs are applied by it.
    """
    shared = program_of(variations[0])
    if lanes == 1 and all(v in shared for v in variations):
        variations = shared
    kernel = device.kernel(kernel_source(variations), "apply", group_size=64 // lanes, STRICT=1, LANES=lanes)
    lengths = [len(case[3]) for case in cases]
    padded = [-(-length // PADDING) * PADDING for length in lengths]
    points = np.concatenate([np.resize(case[3], (n, 4)) for case, n in zip(cases, padded, strict=True)]).T
    parameters = np.zeros((len(cases), MAX_PARAMETERS), "f4")
    tables, places = [np.zeros(1, "f4")], []
    for row, (variation, _, said, _) in zip(parameters, cases, strict=True):
        values = {p.removeprefix(f"{variation.name}_"): d for p, d in variation.parameters.items()}
        values |= {name: said[name] for name in values.keys() & said.keys()}
        values = {p: variation.limited(f"{variation.name}_{p}", value) for p, value in values.items()}
        row[: len(values)] = list(values.values())
        places.append(sum(map(len, tables)))
        if variation.has_table:
            tables.append(variation.table(values, {}))
    count = sum(padded)

    def upload(values, kind="f4"):
        return device.buffer(np.shape(values), kind).write(np.ascontiguousarray(values, kind))

    out = device.buffer((6, count))
    kernel(
        -(-count // 64) * 64 // lanes, upload(points), upload(np.repeat(np.arange(len(cases)), padded), "i4"),
        upload([case[0].index for case in cases], "i4"), upload([case[1] for case in cases]), upload(parameters),
        upload(affine), out, count, upload(np.concatenate(tables)), upload(places, "i4"),
    )  # fmt: skip
    parts = np.split(out.read().T, np.cumsum(padded)[:-1])
    return [part[:length] for part, length in zip(parts, lengths, strict=True)]
