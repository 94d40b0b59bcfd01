"""The kernel text of a flame's structure, and the numbers that it is given.

The structure is what the text depends on: the distinct shapes of maps (their variations, whether there is a
post-affine), whether there is a final map, xaos, space. Weights, coefficients, parameters, the number of maps, and the
camera are data, so that editing them compiles nothing.
"""

from dataclasses import dataclass

import numpy as np

from renderer.errors import InputError
from renderer.flames.genome import IDENTITY, Flame, Map
from renderer.flames.variations import shared_text, table
from renderer.gpu.kernel_source import Generated


@dataclass(frozen=True)
class Shape:
    """What the text of a map depends on."""

    variations: tuple[str, ...]
    post: bool


@dataclass(frozen=True)
class Structure:
    """What the kernel text depends on. `fractions`: samples may add fractions, of colours, opacity or temporal
    weights.
    """

    shapes: tuple[Shape, ...]
    final: bool
    xaos: bool
    space: bool
    blended: bool
    fractions: bool

    @property
    def record(self) -> int:
        """Floats of a map's record: its head, and the longest of the shapes."""
        return head_floats(self.space) + max(map(shape_floats, self.shapes))

    @property
    def camera(self) -> int:
        return 12 if self.space else 6

    @property
    def map_draws(self) -> int:
        """Random numbers that one map may take, with two for a bad point."""
        return max(sum(table()[name].draws for name in shape.variations) for shape in self.shapes) + 2

    @property
    def draws(self) -> int:
        """Random numbers that one step may take: a map's, whether the final map applies and its own, and a
        fraction's.
        """
        return 2 * self.map_draws + 2

    @property
    def kinds(self) -> int:
        """What sets flames apart beside their maps, as the interpreter is told it: bits of layout_of in
        flames/flame.cu."""
        return self.final | self.xaos << 1 | self.blended << 2 | self.fractions << 3

    @property
    def planes(self) -> int:
        """Floats that a chain keeps between launches."""
        return 3 + self.space + self.xaos


def shape_of(m: Map) -> Shape:
    """Variations of weight 0 change nothing; a map without any sends all to the origin, as flam3 does."""
    order = table()
    names = (name for name, weight in m.variations.items() if weight != 0)
    names = sorted(names, key=lambda name: (name != "pre_blur", order[name].number))  # it moves what the others take
    return Shape(tuple(names), m.post != IDENTITY)


def head_floats(space: bool) -> int:
    """Floats before a shape's own: affine, colour, speed, opacity, shape, words."""
    return 11 + 6 * space


def shape_floats(shape: Shape) -> int:
    return 6 * shape.post + sum(2 + len(table()[name].parameters) for name in shape.variations)


def structure_of(flames: tuple[Flame, ...], fractions: bool) -> Structure:
    """The structure that draws all of these moments of one flame."""
    maps = [m for flame in flames for m in (*flame.maps, *([flame.final] if flame.final else []))]
    shapes = sorted({shape_of(m) for m in maps}, key=lambda shape: (shape.variations, shape.post))
    final = any(flame.final is not None for flame in flames)
    xaos = any(factor != 1 for flame in flames for m in flame.maps for factor in m.xaos)
    blended = flames[0].palette_mode == "linear"
    return Structure(tuple(shapes), final, xaos, flames[0].space, blended, fractions or blended)


def text_of(structure: Structure) -> Generated:
    """The kernel file of a structure: its shapes, then flames/flame.cu."""
    names = sorted({name for shape in structure.shapes for name in shape.variations}, key=lambda n: table()[n].number)
    parts = [
        "#define INTERPRETED 0",
        f"#define SPACE {int(structure.space)}",
        f"#define XAOS {int(structure.xaos)}",
        f"#define FINAL {int(structure.final)}",
        f"#define BLENDED {int(structure.blended)}",
        f"#define FRACTIONS {int(structure.fractions)}",
        f"#define RECORD {structure.record}",
        f"#define CAMERA {structure.camera}",
        f"#define DRAWS {structure.draws}u",
        f"#define MAP_DRAWS {structure.map_draws}u",
        shared_text(),
        *(table()[name].text for name in names),
        *(_shape_text(number, shape, structure.space) for number, shape in enumerate(structure.shapes)),
        _advance_text(structure),
        '#include "flames/flame.cu"',
    ]
    return Generated("flame.cu of this flame", "\n".join(parts))


def interpreter_text(space: bool) -> Generated:
    """The kernel file that draws any flame of the plane, or of space: it reads from the records what to do."""
    offset = head_floats(space)
    cases = []
    for v in table().values():
        if v.name == "pre_blur":
            continue
        arguments = "".join(f", a[{k + 2}]" for k in range(len(v.parameters)))
        call = f"variation_{v.name}(x, y, a[1], affine, random{arguments})"
        deep = " out_z = out_z + a[1] * z;" if v.name == "linear" and space else ""
        cases.append(f"        case {v.number}: v = {call};{deep} a += {2 + len(v.parameters)}; break;")
    parts = [
        "#define INTERPRETED 1",
        f"#define SPACE {int(space)}",
        f"#define CAMERA {12 if space else 6}",
        shared_text(),
        *(v.text for v in table().values()),
        "DEVICE_NOINLINE Point advance(Point p, GLOBAL const float *a, Random *random) {",
        *_affine_text(space),
        f"    GLOBAL const float *affine = {'plane' if space else 'a'};",
        f"    int words = (int)a[{offset - 1}], left = words >> 1;",
        f"    GLOBAL const float *post = a + {offset};",
        f"    a += {offset} + (words & 1) * 6;",
        f"    if (left > 0 && (int)a[0] == {table()['pre_blur'].number}) {{",
        "        Pair v = variation_pre_blur(x, y, a[1], affine, random);",
        "        x = x + v.x; y = y + v.y; a += 2; left--;",
        "    }",
        "    for (; left > 0; left--) {",
        "        Pair v;",
        "        switch ((int)a[0]) {",
        *cases,
        "        default: return p;",
        "        }",
        "        out_x = out_x + v.x; out_y = out_y + v.y;",
        "    }",
        "    if (words & 1) {",
        *_post_text("post", 0),
        "    }",
        *_end_text(space),
        '#include "flames/flame.cu"',
    ]
    return Generated("flame.cu of any flame", "\n".join(parts))


def _shape_text(number: int, shape: Shape, space: bool) -> str:
    """The function of a shape: the point (x, y, z) after a map whose record is `a`."""
    lines = [f"DEVICE Point shape_{number}(Point p, GLOBAL const float *a, Random *random) {{", *_affine_text(space)]
    plane = "plane" if space else "a"
    offset = head_floats(space) + 6 * shape.post
    for name in shape.variations:
        count = len(table()[name].parameters)
        arguments = "".join(f", a[{offset + 2 + k}]" for k in range(count))
        call = f"variation_{name}(x, y, a[{offset + 1}], {plane}, random{arguments})"
        if name == "pre_blur":
            lines.append(f"    {{ Pair v = {call}; x = x + v.x; y = y + v.y; }}")
        else:
            lines.append(f"    {{ Pair v = {call}; out_x = out_x + v.x; out_y = out_y + v.y; }}")
        if name == "linear" and space:
            lines.append(f"    out_z = out_z + a[{offset + 1}] * z;")
        offset += 2 + count
    if shape.post:
        lines += _post_text("a", head_floats(space))
    return "\n".join([*lines, *_end_text(space)])


def _affine_text(space: bool) -> list[str]:
    """x, y and in space z: the point p after the affine of the record `a`."""
    lines = []
    if space:
        for axis, k in zip("xyz", (0, 4, 8), strict=True):
            last = f"FUSED(a[{k + 2}], p.z, a[{k + 3}])"
            lines.append(f"    real {axis} = FUSED(a[{k}], p.x, FUSED(a[{k + 1}], p.y, {last}));")
        lines += ["    GLOBAL const float *plane = a;", "    real out_z = (real)(0.0f);"]
    else:
        lines += [
            "    real x = FUSED(a[0], p.x, FUSED(a[1], p.y, a[2])), y = FUSED(a[3], p.x, FUSED(a[4], p.y, a[5]));"
        ]
    return [*lines, "    real out_x = (real)(0.0f), out_y = (real)(0.0f);"]


def _post_text(name: str, o: int) -> list[str]:
    return [
        f"    real post_x = FUSED({name}[{o}], out_x, FUSED({name}[{o + 1}], out_y, {name}[{o + 2}]));",
        f"    out_y = FUSED({name}[{o + 3}], out_x, FUSED({name}[{o + 4}], out_y, {name}[{o + 5}]));",
        "    out_x = post_x;",
    ]


def _end_text(space: bool) -> list[str]:
    return ["    p.x = out_x;", "    p.y = out_y;", "    p.z = out_z;" if space else "", "    return p;", "}"]


def _advance_text(structure: Structure) -> str:
    """advance(): the shape that the record names."""
    head = "DEVICE Point advance(Point p, GLOBAL const float *a, Random *random) {\n"
    last = len(structure.shapes) - 1
    cases = "".join(f"    case {k}: return shape_{k}(p, a, random);\n" for k in range(last))
    place = head_floats(structure.space) - 2
    switch = f"    switch ((int)a[{place}]) {{\n{cases}    }}\n" if last else ""
    return f"{head}{switch}    return shape_{last}(p, a, random);\n}}\n"


def visibility(opacity: float) -> float:
    """flam3's curve: 0 unseen, 1 fully seen, a half a tenth."""
    return 0.0 if opacity <= 0 else min(1.0, 10.0 ** np.log2(opacity))


def record_of(m: Map, structure: Structure, final: bool) -> np.ndarray:
    """(record,) float32 of one map; the opacity of a map that is drawn stands as a uint of 1/65536 in a float's
    bits.
    """
    shape = shape_of(m)
    words = [*m.affine, m.color, m.color_speed, m.opacity if final else 0.0, float(structure.shapes.index(shape))]
    words.append(2.0 * len(shape.variations) + shape.post)
    if shape.post:
        words += m.post
    for name in shape.variations:
        words += [table()[name].number, m.variations[name], *(m.value(p) for p in table()[name].parameters)]
    out = np.zeros(structure.record, "f4")
    out[: len(words)] = np.clip(words, -3e38, 3e38)
    if not final:
        out.view("u4")[len(m.affine) + 2] = round(visibility(m.opacity) * 65536)
    return out


def parameters_of(flame: Flame, camera: np.ndarray, structure: Structure) -> np.ndarray:
    """(n,) float32: one block of parameters as flames/flame.cu reads it."""
    parts = [np.asarray(camera, "f4").ravel()]
    if structure.final:
        parts.append(record_of(flame.final or Map(opacity=0.0), structure, final=True))
    parts += [record_of(m, structure, final=False) for m in flame.maps]
    return np.concatenate(parts)


def alias_table(weights: np.ndarray) -> np.ndarray:
    """(n, 2) uint32 of Walker's alias method for weights (n,): threshold out of 2^32, and who gets what lies above
    it.
    """
    count = len(weights)
    share = weights / weights.sum() * count
    table_, order = np.zeros((count, 2), "u4"), list(range(count))
    small, large = [i for i in order if share[i] < 1], [i for i in order if share[i] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        table_[low] = min(max(round(share[low] * 2**32), 0), 2**32 - 1), high
        share[high] -= 1 - share[low]
        (small if share[high] < 1 else large).append(high)
    for i in small + large:  # what is left is whole but for rounding
        table_[i] = 2**32 - 1, i
    return table_


def choice_tables(flame: Flame, structure: Structure) -> np.ndarray:
    """(1 or 1 + maps, maps, 2) uint32: the alias table of the first step, and with xaos that after each map."""
    weights = np.array([m.weight for m in flame.maps], "f8")
    if not weights.sum() > 0:
        raise InputError("flame: the weights of all maps are 0, so none can be drawn; at least one must be above 0")
    rows = [alias_table(weights)]
    if structure.xaos:
        for number, m in enumerate(flame.maps):
            factors = np.ones(len(weights))
            factors[: len(m.xaos)] = m.xaos[: len(weights)]
            if not (weights * factors).sum() > 0:
                if m.weight > 0:
                    raise InputError(
                        f"flame: the xaos of map {number} forbids every map after it, so chains would end there"
                    )
                factors = np.ones(len(weights))
            rows.append(alias_table(weights * factors))
    return np.array(rows)
