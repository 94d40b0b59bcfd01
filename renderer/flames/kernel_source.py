"""Generates the source of the chaos game's kernels, which kernel_cache.py compiles.

kernel_arguments.py packs a flame into the arguments of these kernels. A specialized kernel depends only on a flame's
structure: the distinct signatures of its xforms (variations, post-affine) and whether it has a final xform, xaos or 3D
xforms. Weights, coefficients, parameters, the number of xforms and the camera are arguments, so that editing them
compiles nothing. The generic kernel runs every flame that has only flam3's variations and features. Both kernels are
shaders/flames/flame.cu after a generated apply_xform().

An xform's record is its block of floats in the arguments (layout: flame.cu). The header holds the affine, color, speed
and opacity, the direct color if any, the signature, and the packed counts (twice the number of variations, plus 1 with
a post-affine). The payload holds the post-affine, if any, then for each variation its index, weight, parameters and, if
it has a table, the table's offset in floats from the record.

The function of an xform with the variations swirl and blob, whose record is `a` (a header of 11 floats, then index and
weight of swirl, index, weight and three parameters of blob):

    DEVICE Point xform_0(Point p, GLOBAL const float *a, Random *random) {
        Point q = apply_affine(p, a), sum = at_origin(p);
        sum = moved_by(sum, variation_swirl(q.x, q.y, a[12], a, random));
        sum = moved_by(sum, variation_blob(q.x, q.y, a[14], a, random, a[15], a[16], a[17]));
        return sum;
    }
"""

from collections.abc import Mapping, Sequence

from renderer.flames.genome import IDENTITY_2D, IDENTITY_3D, MODIFIERS, Flame, Xform
from renderer.flames.variations.catalog import Variation, header_source, sources, variation_table
from renderer.gpu.kernel_source import GeneratedSource
from renderer.records import dataclass

# The generic kernel on CPUs calls each variation instead of inlining it: compiled in a ninth of the time, and faster.
CALLED = "#if LANES > 1\n#define CALLED DEVICE_NOINLINE_ALWAYS\n#else\n#define CALLED DEVICE\n#endif"
# Macros of flame.cu -> properties of a Specialization. In the generic kernel the SPECIAL_MACROS are not defined, since
# their values are arguments, and the FEATURE_MACROS are 0.
SPECIAL_MACROS = {
    "HAS_XAOS": "xaos", "FINALS": "finals", "LINEAR_PALETTE": "linear_palette",
    "STOCHASTIC_ROUNDING": "stochastic_rounding", "RECORD_FLOATS": "record_floats",
    "EXTRA_RECORD_FLOATS": "extra_record_floats",
}  # fmt: skip
FEATURE_MACROS = {
    "DIRECT_COLOR": "direct_color", "HIDES": "hides", "RGB": "sets_rgb", "DEFOCUS": "defocus", "SHOWN": "shown",
    "FADES": "fades", "SOLID": "solid", "JITTERS": "jitters", "EXTRA_FLOATS": "extra_floats",
}  # fmt: skip
APPLY_XFORM = "Point apply_xform(Point p, GLOBAL const float *a, Random *random) {"


@dataclass(frozen=True)
class XformSignature:
    """The properties of an xform that change its source: variations in the order of application, and post-affine."""

    variations: tuple[str, ...]
    post: bool

    def payload_floats(self, has_z: bool) -> int:
        """Floats of the xform's record after the header."""
        affine = affine_floats(has_z) * self.post
        return affine + sum(2 + payload_numbers(variation_table()[name]) for name in self.variations)


@dataclass(frozen=True)
class Specialization:
    """The properties of a flame that change its specialized kernel.

    `is_3d`: points have z. `stochastic_rounding`: samples add fractions, because of palette interpolation, opacity or
    weights. `preserves_z`: z passes through variations that do not define it. `defocus`: the camera has depth of field.
    `shown`: points carry a color to plot beside the color they pass on (JWildfire's color_type). `modifiers`: the
    genome.MODIFIERS that points have. `fades`: colors fade with depth. `solid`: the nearest point of each bucket is
    kept. `jitters`: points are plotted at a random distance from their positions.
    """

    signatures: tuple[XformSignature, ...]
    finals: int
    xaos: bool
    is_3d: bool
    linear_palette: bool
    stochastic_rounding: bool
    preserves_z: bool = False
    defocus: bool = False
    shown: bool = False
    modifiers: tuple[str, ...] = ()
    fades: bool = False
    solid: bool = False
    jitters: bool = False

    @property
    def used_variations(self) -> list[Variation]:
        """The variations of all signatures, without pre_ and post_ forms, in the table's order."""
        table = variation_table()
        used = {table[name].function: table[name] for signature in self.signatures for name in signature.variations}
        return sorted(used.values(), key=lambda v: v.index)

    @property
    def direct_color(self) -> bool:
        """True if a variation sets colors."""
        return any(v.sets_color for v in self.used_variations)

    @property
    def hides(self) -> bool:
        """True if a variation hides points."""
        return any(v.hides for v in self.used_variations)

    @property
    def sets_rgb(self) -> bool:
        """True if a variation gives points colors that are not the palette's."""
        return any(v.sets_rgb for v in self.used_variations)

    @property
    def is_generic(self) -> bool:
        """True if the generic kernel can run this flame: it has only flam3's variations and features."""
        names = {name for signature in self.signatures for name in signature.variations}
        others = any(getattr(self, name) for name in FEATURE_MACROS.values())
        return names <= generic_variations().keys() and self.finals < 2 and not (self.preserves_z or others)

    @property
    def record_floats(self) -> int:
        """Floats of an xform's record: the header and the longest payload."""
        longest = max(signature.payload_floats(self.is_3d) for signature in self.signatures)
        return header_floats(self.is_3d, self.direct_color) + longest + self.extra_record_floats

    @property
    def extra_floats(self) -> int:
        """Floats of a point besides position and color."""
        return self.shown + len(self.modifiers)

    @property
    def extra_record_floats(self) -> int:
        """Floats at the end of an xform's record that blend the `extra_floats` of a point."""
        return 3 * self.shown + 2 * len(self.modifiers)

    @property
    def random_per_xform(self) -> int:
        """Upper bound of the random numbers that one xform consumes; 2 of them replace a point that is not finite."""
        return max(sum(variation_table()[name].random_count for name in s.variations) for s in self.signatures) + 2

    @property
    def random_per_step(self) -> int:
        """Upper bound of the random numbers of one step.

        The xform, the final xforms and the decisions to apply these consume them, rounding (1), the lens (2), a solid's
        opacity (1) and the jitter (3).
        """
        finals = max(self.finals, 1)  # without one as with one: another distance of the steps would change pictures
        return (1 + finals) * self.random_per_xform + 1 + finals + 2 * self.defocus + self.solid + 3 * self.jitters

    @property
    def feature_flags(self) -> int:
        """Flags for the generic kernel: bit 0 final xform, 1 xaos, 2 linear palette, 3 stochastic rounding.

        shaders/flames/flame.cu unpacks them.
        """
        return self.finals | self.xaos << 1 | self.linear_palette << 2 | self.stochastic_rounding << 3

    @property
    def state_floats(self) -> int:
        """Floats of a chain's state between launches."""
        return 3 + self.is_3d + self.xaos + self.extra_floats


def xform_signature(xform: Xform) -> XformSignature:
    """The signature of an xform: its variations of weight other than 0, sorted by Variation.order.

    An xform without variations maps every point to the origin, as in flam3.
    """
    table = variation_table()
    names = [name for name, weight in xform.variations.items() if weight != 0]
    names.sort(key=lambda name: table[name].order)
    return XformSignature(tuple(names), xform.post not in (IDENTITY_2D, IDENTITY_3D))


def payload_numbers(v: Variation) -> int:
    """Floats of a variation in a record after its index and weight: parameters, then its table's offset if any."""
    return len(v.parameters) + v.has_table


def affine_floats(has_z: bool) -> int:
    """Coefficients of an affine in a record."""
    return 12 if has_z else 6


def header_floats(is_3d: bool, direct_color: bool = False) -> int:
    """Floats of a record's header: affine, color, speed, opacity, direct color if any, signature, packed counts."""
    return affine_floats(is_3d) + 5 + direct_color


SIGNATURE, COUNTS = -2, -1  # positions from the end of the header
FINAL_PADDING = Xform(opacity=0.0)  # fills up flames with fewer final xforms than another flame of the same picture


def generic_variations() -> dict[str, Variation]:
    """The variations of the generic kernels: flam3's. Flames with others are rare; they get specialized kernels."""
    return {v.name: v for v in variation_table().values() if v.origin == "flam3"}


def specialize(flames: Sequence[Flame], stochastic_rounding: bool) -> Specialization:
    """The specialization that can run all `flames`, the temporal samples of one picture."""
    xforms = [xform for flame in flames for xform in flame.all_xforms]
    signatures = {xform_signature(xform) for xform in xforms}
    counts = {len(flame.final_xforms) for flame in flames}
    if len(counts) > 1:
        signatures.add(xform_signature(FINAL_PADDING))
    linear_palette = flames[0].palette_mode == "linear"
    has_z = any(flame.has_z for flame in flames)
    # Solids alone have "material".
    modifiers = tuple(n for n in MODIFIERS if n != "material" and any(xform.modifiers.get(n) for xform in xforms))
    fades, solid = any(flame.cam_zdimish != 0 for flame in flames), flames[0].solid is not None
    return Specialization(
        signatures=tuple(sorted(signatures, key=lambda signature: (signature.variations, signature.post))),
        finals=max(counts),
        xaos=any(factor != 1 for flame in flames for xform in flame.xforms for factor in xform.xaos),
        is_3d=has_z,
        linear_palette=linear_palette,
        stochastic_rounding=stochastic_rounding or linear_palette or fades or bool(modifiers),
        preserves_z=has_z and flames[0].preserve_z,
        defocus=has_z and not solid and any(flame.cam_dof != 0 for flame in flames),
        shown=any(xform.color_type in ("distance", "cyclic") for xform in xforms),
        modifiers=modifiers + ("material",) * solid,
        fades=fades,
        solid=solid,
        jitters=any(flame.jitters for flame in flames),
    )


def specialized_source(spec: Specialization) -> GeneratedSource:
    """The source of a specialization's kernel."""
    last = len(spec.signatures) - 1
    functions = [
        *sources(spec.used_variations),
        *(_xform_source(k, signature, spec) for k, signature in enumerate(spec.signatures)),
        f"DEVICE {APPLY_XFORM}",
        f"    switch ((int)a[{header_floats(spec.is_3d, spec.direct_color) + SIGNATURE}]) {{" if last else "",
        *(f"    case {k}: return xform_{k}(p, a, random);" for k in range(last)),
        "    }" if last else "",
        f"    return xform_{last}(p, a, random);",
        "}",
    ]
    macros = {macro: int(getattr(spec, name)) for macro, name in (SPECIAL_MACROS | FEATURE_MACROS).items()}
    offsets = {f"AT_{name.upper()}": spec.shown + k for k, name in enumerate(spec.modifiers)}
    randoms = {"RANDOM_PER_STEP": f"{spec.random_per_step}u", "RANDOM_PER_XFORM": f"{spec.random_per_xform}u"}
    head = {"GENERIC": 0, "IS_3D": int(spec.is_3d)}
    return _kernel_source("flame.cu of this flame", functions, {**head, **macros, **randoms, **offsets})


def generic_source(is_3d: bool) -> GeneratedSource:
    """The source of the kernel that runs any 2D (or 3D) flame of flam3's variations, which it chooses by record."""
    header = header_floats(is_3d)
    table = generic_variations()
    (pre_blur,) = (v for v in table.values() if v.stage == "pre_")
    cases = []
    for v in table.values():
        if v is not pre_blur:
            cases.append(f"        case {v.index}: {_application(v, 'v', 0, is_3d, False)}")
            cases.append(f"            v += {2 + len(v.parameters)}; break;")
    apply_post = "apply_affine" if is_3d else "apply_post"
    functions = [
        CALLED,
        *(
            text.replace("DEVICE ", "CALLED ") if text.startswith("DEVICE ") else text
            for text in sources(table.values())
        ),
        f"DEVICE_NOINLINE {APPLY_XFORM}",
        "    Point q = apply_affine(p, a), sum = at_origin(p);",
        f"    int packed_counts = (int)a[{header + COUNTS}], left = packed_counts >> 1, has_post = packed_counts & 1;",
        f"    GLOBAL const float *v = a + {header} + has_post * {affine_floats(is_3d)};",
        f"    if (left > 0 && (int)v[0] == {pre_blur.index}) {{",
        f"        {_application(pre_blur, 'v', 0, is_3d, False)}",
        "        v += 2; left--;",
        "    }",
        "    for (; left > 0; left--) {",
        "        switch ((int)v[0]) {",
        *cases,
        "        default: return p;",
        "        }",
        "    }",
        f"    return has_post ? {apply_post}(sum, a + {header}) : sum;",
        "}",
    ]
    macros = {"GENERIC": 1, "IS_3D": int(is_3d), **dict.fromkeys(FEATURE_MACROS, 0)}
    return _kernel_source("flame.cu of any flame", functions, macros)


def _kernel_source(name: str, functions: list[str], macros: Mapping[str, int | str]) -> GeneratedSource:
    """The text of a kernel: macros, variation.h, generated functions, then flame.cu."""
    defines = (f"#define {macro} {value}" for macro, value in macros.items())
    return GeneratedSource(name, "\n".join([*defines, header_source(), *functions, '#include "flames/flame.cu"']))


def _application(v: Variation, record: str, offset: int, is_3d: bool, preserves_z: bool) -> str:
    """The C statements that apply a variation, whose index, weight and parameters are `record`[`offset`] and following.

    In the statements `a` is the xform's record, which begins with the affine. pre_ variations change the point q, post_
    variations the point `sum`; the others add to `sum`. Three cases follow: variations of x, y and z; 2D variations in
    a pre_ or post_ stage of a 3D flame, which keep z; other 2D variations. `sets`: the result replaces the target's
    coordinates and is not added. Variation (catalog.py) describes `adds`, `replaces`, `is_plain` and `in_space`.
    """
    # A post_ variation reads the sum of the others, a pre_ one changes the point that they read.
    argument, target = ("sum" if v.stage == "post_" else "q"), ("q" if v.stage == "pre_" else "sum")
    weight = f"{record}[{offset + 1}]"
    parameters = "".join(f", {record}[{offset + 2 + k}]" for k in range(len(v.parameters)))
    if v.has_table:
        parameters += f", a + (int){record}[{offset + 2 + len(v.parameters)}]"
    in_stage = v.stage != ""
    sets = not v.adds if in_stage else v.replaces
    move = "moved_to" if sets else "moved_by"
    if v.is_plain:
        call = f"variation_{v.function}({argument}.x, {argument}.y, {weight}, a, random{parameters})"
    else:
        point = f"{argument}.x, {argument}.y, {argument}.z" + ", q" * v.reads_unvaried
        head = f"{point}, {weight}, a, random, &color, &hidden, &rgb"
        call = f"variation_{v.function}({head}{parameters})"
    if v.in_space:
        z = f" {target}.z = {'' if in_stage and sets else f'{target}.z + '}t.z;" if is_3d else ""
        return f"{{ Triple t = {call}; {target} = {move}({target}, flat(t));{z} }}"
    z = _z_of_plain(v, argument, weight, parameters, preserves_z) if is_3d else ""
    if z and in_stage:
        before = f"real z = {z}; "
        return f"{{ {before}{target} = {move}({target}, {call}); {target}.z = {'z' if sets else f'{target}.z + z'}; }}"
    return f"{target} = {move}({target}, {call});" + (f" sum.z = sum.z + {z};" if z else "")


def _z_of_plain(v: Variation, argument: str, weight: str, parameters: str, preserves_z: bool) -> str:
    """The C expression that a 2D variation adds to z (a pre_ or post_ form may set it); empty if z does not change."""
    if v.z_body:
        return f"z_of_{v.function}({argument}.x, {argument}.y, {argument}.z, {weight}{parameters})"
    if preserves_z and v.stage == "":
        return f"{weight} * {argument}.z"
    return ""


def _xform_source(index: int, signature: XformSignature, spec: Specialization) -> str:
    """The C function xform_INDEX(p, a, random): the point p after an xform of this signature; `a` is its record."""
    header = header_floats(spec.is_3d, spec.direct_color)
    offset = header + affine_floats(spec.is_3d) * signature.post
    lines = [
        f"DEVICE Point xform_{index}(Point p, GLOBAL const float *a, Random *random) {{",
        "    Point q = apply_affine(p, a), sum = at_origin(p);",
    ]
    used = [variation_table()[name] for name in signature.variations]
    if not all(v.is_plain for v in used) or spec.direct_color:
        lines.append("    real blended = blend_color(p, a), color = blended;")
        lines.append("    mask hidden = (mask)(0);")
        lines.append("    real rgb = (real)(-1.0f);")
    for v in used:
        lines.append(f"    {_application(v, 'a', offset, spec.is_3d, spec.preserves_z)}")
        offset += 2 + payload_numbers(v)
    if spec.direct_color:
        lines.append("    sum.color = direct_color(blended, color, a);")
    if spec.hides:
        hidden = any(v.hides for v in used)
        lines.append(f"    sum.hidden = {'hidden ? (real)(1.0f) : (real)(0.0f)' if hidden else '(real)(0.0f)'};")
    if spec.sets_rgb:
        lines.append(f"    sum.rgb = {'rgb' if any(v.sets_rgb for v in used) else '(real)(-1.0f)'};")
    apply_post = "apply_affine" if spec.is_3d else "apply_post"
    result = f"{apply_post}(sum, a + {header})" if signature.post else "sum"
    return "\n".join([*lines, f"    return {result};", "}"])
