"""New flames from chance and from other flames: random ones, mutations, symmetry, crosses."""

import math
import types
from dataclasses import replace

import numpy as np

from renderer.flames import edit, palettes
from renderer.flames.genome import IDENTITY_2D, Flame, Xform
from renderer.flames.variations import variation_table
from renderer.flames.xml.read import symmetry_xforms

# Variations whose parameters' defaults draw something, without those that only blur.
RANDOM_VARIATIONS = (
    "linear", "sinusoidal", "spherical", "swirl", "horseshoe", "polar", "handkerchief", "heart", "disc", "spiral",
    "hyperbolic", "diamond", "ex", "julia", "bent", "waves", "fisheye", "popcorn", "exponential", "power", "cosine",
    "rings", "fan", "eyefish", "bubble", "cylinder", "julian", "juliascope", "ngon", "curl", "cross", "disc2", "bent2",
    "bipolar", "butterfly", "cell", "cpow", "edisc", "elliptic", "escher", "foci", "lazysusan", "loonie", "polar2",
    "scry", "wedge", "wedge_julia", "whorl", "waves2", "auger", "flux", "sinh", "tanh", "mobius",
)  # fmt: skip
MUTATIONS = ("variations", "parameters", "affine", "post", "colors", "weights", "palette", "xforms")


def random_flame(rng: np.random.Generator) -> Flame:
    """A flame of 2 to 6 xforms by chance; one in four has rotational symmetry, one in four a final map."""
    count = int(rng.integers(2, 7))
    shared = str(rng.choice(RANDOM_VARIATIONS)) if rng.uniform() < 0.4 else None
    xforms = tuple(random_xform(rng, number / max(count - 1, 1), shared) for number in range(count))
    flame = Flame(xforms, palette=str(rng.choice(palettes.builtin_names()[:-1])), quality=100.0, estimator_radius=7.0)
    if rng.uniform() < 0.25:
        flame = replace(flame, final_xform=replace(random_xform(rng, 0.0, "linear"), color_speed=0.0))
    if rng.uniform() < 0.25:
        flame = add_symmetry(flame, int(rng.choice([-2, -1, 2, 3, 4, 5, 6])))
    return flame


def random_xform(rng: np.random.Generator, color: float, shared: str | None = None) -> Xform:
    """A map of 1 to 3 variations."""
    names = [shared] if shared else []
    names += [str(name) for name in rng.choice(RANDOM_VARIATIONS, int(rng.integers(1, 4)) - len(names), replace=False)]
    weights = rng.dirichlet(np.ones(len(names)))
    parameters = {p: value for name in names for p, value in random_parameters(rng, name).items()}
    return Xform(
        affine=random_affine(rng),
        weight=float(rng.uniform(0.3, 1.0)),
        color=float(color),
        post=random_affine(rng, 0.3) if rng.uniform() < 0.2 else IDENTITY_2D,
        variations=types.MappingProxyType({name: float(w) for name, w in zip(names, weights, strict=True)}),
        parameters=types.MappingProxyType(parameters),
    )


def random_affine(rng: np.random.Generator, change: float = 1.0) -> tuple[float, ...]:
    """A turn, growths of 0.4 to 1.1 and a shift; `change` below 1 draws it towards the identity."""
    angle = change * rng.uniform(-math.pi, math.pi)
    skew = angle + change * rng.normal(scale=0.3)
    x, y = 1 - change * rng.uniform(-0.1, 0.6, 2)
    shift = change * rng.uniform(-1, 1, 2)
    affine = (x * math.cos(angle), -y * math.sin(skew), shift[0], x * math.sin(angle), y * math.cos(skew), shift[1])
    return tuple(map(float, affine))


def random_parameters(rng: np.random.Generator, name: str) -> dict[str, float]:
    """Parameters of a variation near their defaults; whole numbers where they count something."""
    found = {}
    for parameter, default in variation_table()[name].parameters.items():
        word = parameter.removeprefix(f"{name}_")
        if word in ("power", "count", "sides", "petals", "slices", "waves", "m"):
            found[parameter] = float(rng.integers(2, 7)) * (1 if rng.uniform() < 0.8 else -1)
        else:
            found[parameter] = float(default + rng.normal(scale=0.5))
    return found


def mutate(flame: Flame, rng: np.random.Generator, kind: str | None = None, strength: float = 0.3) -> Flame:
    """The flame with one kind of change to one map, or to the palette; any kind by chance when none is told."""
    kind = kind or str(rng.choice(MUTATIONS))
    number = int(rng.integers(len(flame.xforms)))
    m = flame.xforms[number]
    if kind == "variations":
        name = str(rng.choice(RANDOM_VARIATIONS))
        flame = edit.with_variation(flame, number, name, float(rng.uniform(0.2, 1.0)))
        return edit.with_xform(flame, number, parameters={**m.parameters, **random_parameters(rng, name)})
    if kind == "parameters" and any(variation_table()[name].parameters for name in m.variations):
        names = [p for name in m.variations for p in variation_table()[name].parameters]
        parameter = str(rng.choice(names))
        return edit.with_parameter(
            flame, number, parameter, m.parameter_value(parameter) + strength * float(rng.normal())
        )
    if kind == "post" and not flame.is_3d:
        return edit.with_xform(flame, number, post=random_affine(rng, strength))
    if kind == "colors":
        return edit.with_xform(flame, number, color=float(rng.uniform()), color_speed=float(rng.uniform(0.2, 0.8)))
    if kind == "weights":
        return edit.with_xform(flame, number, weight=float(max(m.weight, 1e-3) * math.exp(strength * 3 * rng.normal())))
    if kind == "palette":
        return replace(flame, palette=str(rng.choice(palettes.builtin_names()[:-1])), colors=(), alphas=())
    if kind == "xforms" and not flame.is_3d:
        if len(flame.xforms) > 2 and rng.uniform() < 0.5:
            return edit.delete_xform(flame, number)
        return edit.add_xform(flame, random_xform(rng, float(rng.uniform())))
    moved = np.array(m.affine) + strength * rng.normal(scale=0.4, size=len(m.affine))
    return edit.with_xform(flame, number, affine=tuple(map(float, moved)))


def add_symmetry(flame: Flame, kind: int) -> Flame:
    """The flame with rotations by parts of a turn, and a mirror where kind is negative; half of all draws are
    theirs.
    """
    added = symmetry_xforms(kind)
    if not added:
        return flame
    share = sum(m.weight for m in flame.xforms) / len(added)
    return replace(flame, xforms=(*flame.xforms, *(replace(m, weight=share) for m in added)))


def cross(one: Flame, two: Flame, rng: np.random.Generator) -> Flame:
    """A child: each map from one parent or the other, the rest from the first."""
    count = len(one.xforms) if rng.uniform() < 0.5 else len(two.xforms)
    xforms = []
    for number in range(count):
        parents = [flame.xforms[number] for flame in (one, two) if number < len(flame.xforms)]
        xforms.append(replace(parents[int(rng.integers(len(parents)))], xaos=()))
    return replace(one, xforms=tuple(xforms), final_xform=(one if rng.uniform() < 0.5 else two).final_xform)
