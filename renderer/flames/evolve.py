"""Makes random flames, and new flames from given ones by mutation, symmetry and crossover, as flam3-genome does.

The flame editor, renderer.flames.studio and framing.py call these functions with a NumPy generator of random numbers.
"""

import math
from dataclasses import replace

import numpy as np

from renderer.flames import edit, palettes
from renderer.flames.edit import AnyFlame
from renderer.flames.genome import IDENTITY_2D, Flame, Xform, read_only
from renderer.flames.variations.catalog import variation_table
from renderer.flames.xml.read import symmetry_xforms

# Variations of random flames: with their default parameters each forms shapes and does not only blur.
RANDOM_VARIATIONS = (
    "linear", "sinusoidal", "spherical", "swirl", "horseshoe", "polar", "handkerchief", "heart", "disc", "spiral",
    "hyperbolic", "diamond", "ex", "julia", "bent", "waves", "fisheye", "popcorn", "exponential", "power", "cosine",
    "rings", "fan", "eyefish", "bubble", "cylinder", "julian", "juliascope", "ngon", "curl", "cross", "disc2", "bent2",
    "bipolar", "butterfly", "cell", "cpow", "edisc", "elliptic", "escher", "foci", "lazysusan", "loonie", "polar2",
    "scry", "wedge", "wedge_julia", "whorl", "waves2", "auger", "flux", "sinh", "tanh", "mobius",
)  # fmt: skip
MUTATIONS = ("variations", "parameters", "affine", "post", "colors", "weights", "palette", "xforms")


def random_flame(rng: np.random.Generator) -> Flame:
    """A random flame of 2 to 6 xforms; one in four has rotational symmetry, one in four a final xform."""
    count = int(rng.integers(2, 7))
    shared = str(rng.choice(RANDOM_VARIATIONS)) if rng.uniform() < 0.4 else None
    xforms = tuple(random_xform(rng, k / max(count - 1, 1), shared) for k in range(count))
    flame = Flame(xforms, palette=_random_palette(rng), quality=100.0, estimator_radius=7.0)
    if rng.uniform() < 0.25:
        flame = replace(flame, final_xform=replace(random_xform(rng, 0.0, "linear"), color_speed=0.0))
    if rng.uniform() < 0.25:
        flame = add_symmetry(flame, int(rng.choice([-2, -1, 2, 3, 4, 5, 6])))
    return flame


def _random_palette(rng: np.random.Generator) -> str:
    return str(rng.choice(palettes.builtin_names()[:-1]))  # the last one is white


def random_xform(rng: np.random.Generator, color: float, shared: str | None = None) -> Xform:
    """A random xform of 1 to 3 variations, `shared` among them if given."""
    names = [shared] if shared else []
    names += [str(name) for name in rng.choice(RANDOM_VARIATIONS, int(rng.integers(1, 4)) - len(names), replace=False)]
    weights = rng.dirichlet(np.ones(len(names)))
    parameters = {p: value for name in names for p, value in random_parameters(rng, name).items()}
    return Xform(
        affine=random_affine(rng),
        weight=float(rng.uniform(0.3, 1.0)),
        color=float(color),
        post=random_affine(rng, 0.3) if rng.uniform() < 0.2 else IDENTITY_2D,
        variations=read_only({name: float(w) for name, w in zip(names, weights, strict=True)}),
        parameters=read_only(parameters),
    )


def random_affine(rng: np.random.Generator, strength: float = 1.0) -> tuple[float, ...]:
    """A random affine (6,): rotation, scales of 0.4 to 1.1, translation; lower `strength` is nearer to the identity."""
    angle = strength * rng.uniform(-math.pi, math.pi)
    skew = angle + strength * rng.normal(scale=0.3)
    x, y = 1 - strength * rng.uniform(-0.1, 0.6, 2)
    shift = strength * rng.uniform(-1, 1, 2)
    affine = (x * math.cos(angle), -y * math.sin(skew), shift[0], x * math.sin(angle), y * math.cos(skew), shift[1])
    return tuple(map(float, affine))


def random_parameters(rng: np.random.Generator, name: str) -> dict[str, float]:
    """Random parameters of a variation, parameter -> value: integers for counts, else values near the defaults."""
    values = {}
    for parameter, default in variation_table()[name].parameters.items():
        word = parameter.removeprefix(f"{name}_")
        if word in ("power", "count", "sides", "petals", "slices", "waves", "m"):
            values[parameter] = float(rng.integers(2, 7)) * (1 if rng.uniform() < 0.8 else -1)
        else:
            values[parameter] = float(default + rng.normal(scale=0.5))
    return values


def mutate(flame: AnyFlame, rng: np.random.Generator, kind: str | None = None, strength: float = 0.3) -> AnyFlame:
    """The flame with one random change to an xform or the palette; `kind`: one of MUTATIONS, None for a random one."""
    kind = kind or str(rng.choice(MUTATIONS))
    index = int(rng.integers(len(flame.xforms)))
    xform, table = flame.xforms[index], variation_table()
    if kind == "variations":
        name = str(rng.choice(RANDOM_VARIATIONS))
        flame = edit.with_variation(flame, index, name, float(rng.uniform(0.2, 1.0)))
        return edit.with_xform(flame, index, parameters={**xform.parameters, **random_parameters(rng, name)})
    if kind == "parameters" and any(table[name].parameters for name in xform.variations):
        parameter = str(rng.choice([p for name in xform.variations for p in table[name].parameters]))
        value = xform.parameter_value(parameter) + strength * float(rng.normal())
        return edit.with_parameter(flame, index, parameter, value)
    if kind == "post" and not flame.is_3d:
        return edit.with_xform(flame, index, post=random_affine(rng, strength))
    if kind == "colors":
        return edit.with_xform(flame, index, color=float(rng.uniform()), color_speed=float(rng.uniform(0.2, 0.8)))
    if kind == "weights":
        weight = float(max(xform.weight, 1e-3) * math.exp(strength * 3 * rng.normal()))
        return edit.with_xform(flame, index, weight=weight)
    if kind == "palette":
        return edit.with_palette(flame, _random_palette(rng))
    if kind == "xforms" and not flame.is_3d:
        if len(flame.xforms) > 2 and rng.uniform() < 0.5:
            return edit.delete_xform(flame, index)
        return edit.add_xform(flame, random_xform(rng, float(rng.uniform())))
    # "affine", and kinds of changes that this flame cannot have
    moved = np.array(xform.affine) + strength * rng.normal(scale=0.4, size=len(xform.affine))
    return edit.with_xform(flame, index, affine=tuple(map(float, moved)))


def add_symmetry(flame: AnyFlame, kind: int) -> AnyFlame:
    """The flame with |kind|-fold rotational symmetry, and a mirror if kind is negative.

    The symmetry xforms get half of the total weight.
    """
    added = symmetry_xforms(kind)
    if not added:
        return flame
    weight = sum(xform.weight for xform in flame.xforms) / len(added)
    return replace(flame, xforms=(*flame.xforms, *(replace(xform, weight=weight) for xform in added)))


def cross(first: AnyFlame, second: Flame, rng: np.random.Generator) -> AnyFlame:
    """A child of two flames: each xform and the final xform come from a random parent, the rest from `first`."""
    count = len(first.xforms) if rng.uniform() < 0.5 else len(second.xforms)
    xforms = []
    for k in range(count):
        parents = [flame.xforms[k] for flame in (first, second) if k < len(flame.xforms)]
        xforms.append(replace(parents[int(rng.integers(len(parents)))], xaos=()))
    return replace(first, xforms=tuple(xforms), final_xform=(first if rng.uniform() < 0.5 else second).final_xform)
