"""Source of the chaos game's kernels, and the arguments that describe a flame to them.

A specialized kernel depends only on a flame's structure: the distinct signatures of its xforms (variations,
post-affine) and whether it has a final xform, xaos or 3D xforms. Weights, coefficients, parameters, the number of
xforms and the camera are arguments, so that editing them compiles nothing. The generic kernel runs every flame.
"""

from dataclasses import dataclass

import numpy as np

from renderer.errors import InputError
from renderer.flames.genome import IDENTITY_2D, Flame, Xform
from renderer.flames.variations import header_source, variation_table
from renderer.gpu.kernel_source import GeneratedSource


@dataclass(frozen=True)
class XformSignature:
    """What the text of a map depends on."""

    variations: tuple[str, ...]
    post: bool


@dataclass(frozen=True)
class Specialization:
    """What the kernel text depends on. `fractions`: samples may add fractions, of colors, opacity or temporal
    weights.
    """

    signatures: tuple[XformSignature, ...]
    final: bool
    xaos: bool
    is_3d: bool
    linear_palette: bool
    stochastic_rounding: bool

    @property
    def record_floats(self) -> int:
        """Floats of a map's record: its head, and the longest of the signatures."""
        return header_floats(self.is_3d) + max(map(payload_floats, self.signatures))

    @property
    def camera_floats(self) -> int:
        return 12 if self.is_3d else 6

    @property
    def random_per_xform(self) -> int:
        """Random numbers that one map may take, with two for a bad point."""
        return (
            max(sum(variation_table()[name].draws for name in signature.variations) for signature in self.signatures)
            + 2
        )

    @property
    def random_per_step(self) -> int:
        """Random numbers that one step may take: a map's, whether the final map applies and its own, and a
        fraction's.
        """
        return 2 * self.random_per_xform + 2

    @property
    def feature_flags(self) -> int:
        """What sets flames apart beside their xforms, as the interpreter is told it: bits of layout_of in
        flames/flame.cu."""
        return self.final | self.xaos << 1 | self.linear_palette << 2 | self.stochastic_rounding << 3

    @property
    def state_floats(self) -> int:
        """Floats that a chain keeps between launches."""
        return 3 + self.is_3d + self.xaos


def signature_of(m: Xform) -> XformSignature:
    """Variations of weight 0 change nothing; a map without any sends all to the origin, as flam3 does."""
    order = variation_table()
    names = (name for name, weight in m.variations.items() if weight != 0)
    names = sorted(names, key=lambda name: (name != "pre_blur", order[name].number))  # it moves what the others take
    return XformSignature(tuple(names), m.post != IDENTITY_2D)


def header_floats(space: bool) -> int:
    """Floats before a signature's own: affine, color, speed, opacity, signature, words."""
    return 11 + 6 * space


def payload_floats(signature: XformSignature) -> int:
    return 6 * signature.post + sum(2 + len(variation_table()[name].parameters) for name in signature.variations)


def specialization_of(flames: tuple[Flame, ...], fractions: bool) -> Specialization:
    """The specialization that draws all of these moments of one flame."""
    xforms = [m for flame in flames for m in (*flame.xforms, *([flame.final_xform] if flame.final_xform else []))]
    signatures = sorted({signature_of(m) for m in xforms}, key=lambda signature: (signature.variations, signature.post))
    final = any(flame.final_xform is not None for flame in flames)
    xaos = any(factor != 1 for flame in flames for m in flame.xforms for factor in m.xaos)
    blended = flames[0].palette_mode == "linear"
    return Specialization(tuple(signatures), final, xaos, flames[0].is_3d, blended, fractions or blended)


def specialized_source(specialization: Specialization) -> GeneratedSource:
    """The kernel file of a specialization: its signatures, then flames/flame.cu."""
    names = sorted(
        {name for signature in specialization.signatures for name in signature.variations},
        key=lambda n: variation_table()[n].number,
    )
    parts = [
        "#define INTERPRETED 0",
        f"#define SPACE {int(specialization.is_3d)}",
        f"#define XAOS {int(specialization.xaos)}",
        f"#define FINAL {int(specialization.final)}",
        f"#define BLENDED {int(specialization.linear_palette)}",
        f"#define FRACTIONS {int(specialization.stochastic_rounding)}",
        f"#define RECORD {specialization.record_floats}",
        f"#define CAMERA {specialization.camera_floats}",
        f"#define DRAWS {specialization.random_per_step}u",
        f"#define MAP_DRAWS {specialization.random_per_xform}u",
        header_source(),
        *(variation_table()[name].text for name in names),
        *(
            _shape_text(number, signature, specialization.is_3d)
            for number, signature in enumerate(specialization.signatures)
        ),
        _advance_text(specialization),
        '#include "flames/flame.cu"',
    ]
    return GeneratedSource("flame.cu of this flame", "\n".join(parts))


def generic_source(space: bool) -> GeneratedSource:
    """The kernel file that draws any flame of the plane, or of space: it reads from the records what to do."""
    offset = header_floats(space)
    cases = []
    for v in variation_table().values():
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
        header_source(),
        *(v.text for v in variation_table().values()),
        "DEVICE_NOINLINE Point advance(Point p, GLOBAL const float *a, Random *random) {",
        *_affine_text(space),
        f"    GLOBAL const float *affine = {'plane' if space else 'a'};",
        f"    int words = (int)a[{offset - 1}], left = words >> 1;",
        f"    GLOBAL const float *post = a + {offset};",
        f"    a += {offset} + (words & 1) * 6;",
        f"    if (left > 0 && (int)a[0] == {variation_table()['pre_blur'].number}) {{",
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
    return GeneratedSource("flame.cu of any flame", "\n".join(parts))


def _shape_text(number: int, signature: XformSignature, space: bool) -> str:
    """The function of a signature: the point (x, y, z) after a map whose record is `a`."""
    lines = [f"DEVICE Point shape_{number}(Point p, GLOBAL const float *a, Random *random) {{", *_affine_text(space)]
    plane = "plane" if space else "a"
    offset = header_floats(space) + 6 * signature.post
    for name in signature.variations:
        count = len(variation_table()[name].parameters)
        arguments = "".join(f", a[{offset + 2 + k}]" for k in range(count))
        call = f"variation_{name}(x, y, a[{offset + 1}], {plane}, random{arguments})"
        if name == "pre_blur":
            lines.append(f"    {{ Pair v = {call}; x = x + v.x; y = y + v.y; }}")
        else:
            lines.append(f"    {{ Pair v = {call}; out_x = out_x + v.x; out_y = out_y + v.y; }}")
        if name == "linear" and space:
            lines.append(f"    out_z = out_z + a[{offset + 1}] * z;")
        offset += 2 + count
    if signature.post:
        lines += _post_text("a", header_floats(space))
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


def _advance_text(specialization: Specialization) -> str:
    """advance(): the signature that the record names."""
    head = "DEVICE Point advance(Point p, GLOBAL const float *a, Random *random) {\n"
    last = len(specialization.signatures) - 1
    cases = "".join(f"    case {k}: return shape_{k}(p, a, random);\n" for k in range(last))
    place = header_floats(specialization.is_3d) - 2
    switch = f"    switch ((int)a[{place}]) {{\n{cases}    }}\n" if last else ""
    return f"{head}{switch}    return shape_{last}(p, a, random);\n}}\n"


def adjusted_opacity(opacity: float) -> float:
    """flam3's curve: 0 unseen, 1 fully seen, a half a tenth."""
    return 0.0 if opacity <= 0 else min(1.0, 10.0 ** np.log2(opacity))


def pack_xform(m: Xform, specialization: Specialization, final: bool) -> np.ndarray:
    """(record,) float32 of one map; the opacity of a map that is drawn stands as a uint of 1/65536 in a float's
    bits.
    """
    signature = signature_of(m)
    words = [
        *m.affine,
        m.color,
        m.color_speed,
        m.opacity if final else 0.0,
        float(specialization.signatures.index(signature)),
    ]
    words.append(2.0 * len(signature.variations) + signature.post)
    if signature.post:
        words += m.post
    for name in signature.variations:
        words += [
            variation_table()[name].number,
            m.variations[name],
            *(m.parameter_value(p) for p in variation_table()[name].parameters),
        ]
    out = np.zeros(specialization.record_floats, "f4")
    out[: len(words)] = np.clip(words, -3e38, 3e38)
    if not final:
        out.view("u4")[len(m.affine) + 2] = round(adjusted_opacity(m.opacity) * 65536)
    return out


def pack_parameters(flame: Flame, camera: np.ndarray, specialization: Specialization) -> np.ndarray:
    """(n,) float32: one block of parameters as flames/flame.cu reads it."""
    parts = [np.asarray(camera, "f4").ravel()]
    if specialization.final:
        parts.append(pack_xform(flame.final_xform or Xform(opacity=0.0), specialization, final=True))
    parts += [pack_xform(m, specialization, final=False) for m in flame.xforms]
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


def xform_distributions(flame: Flame, specialization: Specialization) -> np.ndarray:
    """(1 or 1 + xforms, xforms, 2) uint32: the alias table of the first step, and with xaos that after each map."""
    weights = np.array([m.weight for m in flame.xforms], "f8")
    if not weights.sum() > 0:
        raise InputError("flame: the weights of all xforms are 0, so none can be drawn; at least one must be above 0")
    rows = [alias_table(weights)]
    if specialization.xaos:
        for number, m in enumerate(flame.xforms):
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
