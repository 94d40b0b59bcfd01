"""Makes the movement of scenes/clockwork.toml: `python -m assets.makers.clockwork assets/clockwork.glb`.

A train of a watch: barrel, center, third and fourth wheel, escape wheel, lever and balance. The wheels have involute
teeth (pressure angle 25 degrees, addendum 0.8 modules, so that pinions of twelve are not undercut). Centers are apart
by half the sum of the teeth in modules, and each wheel is turned so that its teeth are in the gaps of its driver.
Plans are (u, v) seen from above; a plan's point at height y lies at (u, y, -v).
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from assets.makers.glassware import lathe
from assets.makers.gltf_builder import Maker

PRESSURE, ADDENDUM, DEDENDUM, BACKLASH = np.radians(25), 0.8, 1.02, 0.06  # lengths in modules
JEWEL = [(0, 0), (0.9, 0), (1, 0.2), (0.97, 0.4), (0.8, 0.56), (0.5, 0.5), (0.22, 0.24), (0.1, 0.2), (0, 0.2)]


@dataclass
class Wheel:
    """A toothed wheel: its place in the plan, the angle of a tooth's middle, and its heights."""

    teeth: int
    module: float
    place: np.ndarray
    turn: float
    low: float
    high: float

    @property
    def radius(self) -> float:
        """Of the pitch circle."""
        return self.teeth * self.module / 2


def driven(by: Wheel, teeth: int, way: float, low: float, high: float) -> Wheel:
    """The wheel that meshes with `by` in the direction `way`, an angle in degrees."""
    angle = np.radians(way)
    place = by.place + by.module * (by.teeth + teeth) / 2 * np.array([np.cos(angle), np.sin(angle)])
    phase = (angle - by.turn) * by.teeth / (2 * np.pi)
    return Wheel(teeth, by.module, place, angle + np.pi - (0.5 - phase) * 2 * np.pi / teeth, low, high)


def on_arbor(of: Wheel, teeth: int, module: float, low: float, high: float) -> Wheel:
    """A wheel that turns with another."""
    return Wheel(teeth, module, of.place, of.turn, low, high)


def train() -> dict[str, Wheel]:
    """The wheels by name, from the barrel to the escape pinion."""
    barrel = Wheel(84, 0.05, np.array([-2.15, 0.75]), 0.02, 0.2, 0.42)
    wheels = {"barrel": barrel, "center pinion": driven(barrel, 14, -18, 0.1, 0.6)}
    wheels["center"] = on_arbor(wheels["center pinion"], 72, 0.045, 0.62, 0.76)
    wheels["third pinion"] = driven(wheels["center"], 12, -58, 0.5, 0.95)
    wheels["third"] = on_arbor(wheels["third pinion"], 64, 0.04, 0.97, 1.09)
    wheels["fourth pinion"] = driven(wheels["third"], 12, 22, 0.5, 1.2)
    wheels["fourth"] = on_arbor(wheels["fourth pinion"], 60, 0.036, 0.34, 0.46)
    wheels["escape pinion"] = driven(wheels["fourth"], 12, 80, 0.2, 0.66)
    return wheels


def involute(angle: float) -> float:
    return np.tan(angle) - angle


def outline(wheel: Wheel) -> np.ndarray:
    """The teeth in the plan about the wheel's middle, counterclockwise: (8 teeth, 2)."""
    pitch, base = wheel.radius, wheel.radius * np.cos(PRESSURE)
    top, root = pitch + ADDENDUM * wheel.module, pitch - DEDENDUM * wheel.module
    radii = np.linspace(max(base, root + 0.12 * wheel.module), top, 3)
    half = np.pi / (2 * wheel.teeth) - BACKLASH * wheel.module / pitch + involute(PRESSURE)
    halves = [half - involute(np.arccos(base / r)) for r in radii]
    foot = halves[0] + 0.2 * (np.pi / wheel.teeth - halves[0])
    side = [(root, foot), *zip(radii, halves, strict=True)]
    tooth = [(r, -a) for r, a in side] + [(r, a) for r, a in reversed(side)]
    found = [(r, wheel.turn + a + 2 * np.pi * k / wheel.teeth) for k in range(wheel.teeth) for r, a in tooth]
    return polar(*np.array(found).T)


def polar(radius, angle) -> np.ndarray:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


def circle(radius: float, sides: int = 72) -> np.ndarray:
    return polar(np.full(sides, radius), np.arange(sides) * 2 * np.pi / sides)


def inset(points: np.ndarray, by: float) -> np.ndarray:
    """A closed counterclockwise outline moved to its left by a length."""
    ahead, behind = np.roll(points, -1, 0) - points, points - np.roll(points, 1, 0)
    left = [np.stack([-e[:, 1], e[:, 0]], 1) / np.linalg.norm(e, axis=1, keepdims=True) for e in (ahead, behind)]
    both = left[0] + left[1]
    return points + by * 2 * both / np.maximum((both**2).sum(1, keepdims=True), 0.8)


Solid = tuple[np.ndarray, np.ndarray]  # points (n, 3) and faces (k, 3)


@dataclass
class Piece:
    """A solid about the origin of the plan, so many times around a place, scaled."""

    material: str
    solid: Solid
    place: np.ndarray
    copies: int = 1
    turn: float = 0.0
    scale: float = 1.0
    height: float = 0.0


def placed(plan: np.ndarray, height: float) -> np.ndarray:
    return np.stack([plan[:, 0], np.full(len(plan), height), -plan[:, 1]], 1)


def strips(rings: list[np.ndarray], copies: int = 1) -> Solid:
    """Points and faces between closed rings of as many points each, or of the first of so many equal parts of them."""
    count = len(rings[0]) // copies
    if copies > 1:
        rings = [r[: count + 1] for r in rings]
    size = len(rings[0])
    first = (np.arange(len(rings) - 1)[:, None] * size + np.arange(count)).ravel()
    beside = (np.arange(len(rings) - 1)[:, None] * size + (np.arange(count) + 1) % size).ravel()
    halves = [(first, beside, beside + size), (first, beside + size, first + size)]
    return np.concatenate(rings), np.concatenate([np.stack(half, 1) for half in halves])


def ring(outer: np.ndarray, hole: float, low: float, high: float, bevel: float, copies: int = 1) -> Solid:
    """A flat ring with chamfered edges, or one of its equal parts."""
    inner = polar(np.full(len(outer), hole), np.arctan2(outer[:, 1], outer[:, 0]))
    return strips([
        placed(outer, low), placed(outer, high - bevel), placed(inset(outer, bevel), high),
        placed(inset(inner, -bevel), high), placed(inner, high - bevel), placed(inner, low), placed(outer, low),
    ], copies)  # fmt: skip


def prism(plan: np.ndarray, low: float, high: float, bevel: float) -> Solid:
    """A block over a convex outline with a chamfered upper edge."""
    top = inset(plan, bevel)
    middle = np.repeat(top.mean(0, keepdims=True), len(plan), 0)
    return strips([placed(plan, low), placed(plan, high - bevel), placed(top, high), placed(middle, high)])


def capsule(a, b, first: float, second: float, sides: int = 20) -> np.ndarray:
    """The convex outline around two circles."""
    a, b = np.array(a, float), np.array(b, float)
    along, gap = np.arctan2(*(b - a)[::-1]), np.linalg.norm(b - a)
    lean = np.arccos((first - second) / gap)
    far = polar(np.full(sides, second), np.linspace(along - lean, along + lean, sides)) + b
    near = polar(np.full(sides, first), np.linspace(along + lean, along + 2 * np.pi - lean, sides)) + a
    return np.concatenate([far, near])


def joined(solids: list[Solid]) -> Solid:
    starts = np.cumsum([0] + [len(points) for points, _ in solids])
    faces = [faces + start for (_, faces), start in zip(solids, starts, strict=False)]
    return np.concatenate([points for points, _ in solids]), np.concatenate(faces)


def bar(near: float, far: float, first: float, second: float, low: float, high: float) -> Solid:
    """A tapered bar along u, from one distance of the origin to another."""
    return prism(capsule((near, 0), (far, 0), first, second, 6), low, high, 0.012)


def spoked(material: str, wheel: Wheel, rim: float, hub: float, spokes: int) -> list[Piece]:
    """A wheel with a rim so wide, a hub, and tapered spokes a little below the face."""
    inner = wheel.radius - DEDENDUM * wheel.module - rim
    spoke = bar(hub * 0.6, inner + 0.3 * rim, hub * 0.42, hub * 0.26, wheel.low + 0.01, wheel.high - 0.008)
    return [
        Piece(material, ring(outline(wheel), inner, wheel.low, wheel.high, 0.009, 4), wheel.place, 4),
        Piece(material, prism(circle(hub, 48), wheel.low, wheel.high + 0.03, 0.012), wheel.place),
        Piece(material, spoke, wheel.place, spokes, wheel.turn),
    ]


def screw() -> Solid:
    """A slotted head of radius 1, its face at height 0: two segments of a disc over a lower disc."""
    cut = np.arcsin(0.13)
    halves = [polar(np.full(20, 1.0), np.linspace(cut, np.pi - cut, 20) + side) for side in (0, np.pi)]
    return joined([prism(circle(1.0, 40), -0.3, -0.12, 0.001), *(prism(half, -0.3, 0.0, 0.06) for half in halves)])


def escape(wheel: Wheel, radius: float, low: float, high: float) -> list[Piece]:
    """Fifteen clubbed teeth on a thin rim with four spokes."""
    shape = [(0.8, 0.0), (0.8, 0.2), (0.97, 0.3), (1.0, 0.42), (0.96, 0.46), (0.84, 0.4), (0.8, 0.52)]
    teeth = [(radius * r, 2 * np.pi * (k + a) / 15) for k in range(15) for r, a in shape]
    spoke = bar(0.08, 0.73 * radius, 0.06, 0.035, low + 0.01, high - 0.008)
    return [
        Piece("polished", ring(polar(*np.array(teeth).T), 0.7 * radius, low, high, 0.006, 3), wheel.place, 3),
        Piece("polished", prism(circle(0.14, 40), low, high + 0.04, 0.01), wheel.place),
        Piece("polished", spoke, wheel.place, 4, 0.3),
    ]


def hairspring(turns: float, first: float, last: float, low: float, high: float) -> Solid:
    """A ribbon along an Archimedean spiral."""
    angle = np.linspace(0, 2 * np.pi * turns, int(40 * turns))
    radius = first + (last - first) * angle / angle[-1]
    sides = [(0.009, low), (0.009, high), (-0.009, high), (-0.009, low)]
    points = np.stack([placed(polar(radius + side, angle), y) for side, y in sides], 1).reshape(-1, 3)
    a, b = ((4 * np.arange(len(angle) - 1)[:, None] + (np.arange(4) + k) % 4).ravel() for k in (0, 1))
    return points, np.concatenate([np.stack([a, a + 4, b + 4], 1), np.stack([a, b + 4, b], 1)])


BALANCE = np.array([1.5, 1.8])


def barrel_of(wheel: Wheel) -> list[Piece]:
    """The drum of the mainspring with its ratchet wheel and screw."""
    inside = wheel.radius - 0.17
    ratchet = Wheel(56, 0.045, wheel.place, 0.0, 0.56, 0.7)
    return [
        Piece("brass", ring(outline(wheel), inside, wheel.low, wheel.high, 0.01, 4), wheel.place, 4),
        Piece("snailed brass", prism(circle(inside + 0.01, 120), 0.2, 0.5, 0.03), wheel.place),
        Piece("snailed steel", ring(outline(ratchet), 0.35, ratchet.low, ratchet.high, 0.012, 8), wheel.place, 8),
        Piece("polished", ring(circle(0.62), 0.3, 0.68, 0.74, 0.02), wheel.place),
        Piece("blue", screw(), wheel.place, 1, 0.5, 0.34, 0.84),
    ]


def balance() -> list[Piece]:
    """The balance wheel with its screws, and the hairspring."""
    return [
        Piece("gold", ring(circle(1.15, 120), 1.0, 1.0, 1.2, 0.02, 4), BALANCE, 4),
        Piece("gold", prism(circle(0.16, 48), 0.9, 1.24, 0.02), BALANCE),
        Piece("gold", bar(0.05, 1.03, 0.09, 0.06, 1.03, 1.15), BALANCE, 3, 0.4),
        Piece("gold", bar(1.13, 1.22, 0.05, 0.0501, 1.05, 1.15), BALANCE, 14),
        Piece("blue", hairspring(7.5, 0.2, 0.72, 1.3, 1.4), BALANCE),
    ]


def lever(wheel: Wheel) -> list[Piece]:
    """The lever between the escape wheel and the balance: a fork, two arms, and two stones of ruby."""
    way = BALANCE - wheel.place
    pivot = wheel.place + 0.55 * way
    turn = np.arctan2(way[1], way[0])
    arm = prism(capsule((-0.12, -0.42), (-0.12, 0.42), 0.07, 0.0701, 6), 0.62, 0.7, 0.01)
    return [
        Piece("polished", joined([bar(-0.12, 0.62, 0.11, 0.05, 0.62, 0.7), arm]), pivot, 1, turn),
        Piece("ruby", joined([prism(np.array([(-0.4, v), (-0.1, v), (-0.1, v + 0.1), (-0.4, v + 0.1)]), 0.6, 0.76, 0.01)
                              for v in (-0.46, 0.36)]), pivot, 1, turn),
    ]  # fmt: skip


def movement() -> list[Piece]:
    """All but the bridges."""
    wheels = train()
    pieces = [
        Piece("polished", ring(outline(wheel), 0.02, wheel.low, wheel.high, 0.008, 2), wheel.place, 2)
        for name, wheel in wheels.items()
        if "pinion" in name
    ]
    pieces += barrel_of(wheels["barrel"])
    pieces += spoked("brass", wheels["center"], 0.16, 0.3, 5)
    pieces += spoked("brass", wheels["third"], 0.13, 0.22, 5)
    pieces += spoked("gold", wheels["fourth"], 0.12, 0.19, 4)
    pieces += escape(wheels["escape pinion"], 0.72, 0.62, 0.7)
    return pieces + lever(wheels["escape pinion"]) + balance()


def cocks() -> list[Piece]:
    """Bridges of steel: a jewel in a chaton of gold over a pivot, and a blued screw over the foot."""
    wheels = train()
    third, fourth, last, center = (wheels[name].place for name in ("third", "fourth", "escape pinion", "center"))
    bridges = [  # the pivot's place, the foot from there, radii at both, the heights below and of the face
        (third, (1.15, -1.45), 0.3, 0.4, 1.2, 1.36),
        (fourth, (1.3, -0.8), 0.26, 0.38, 0.75, 0.92),
        (last, (1.3, 0.3), 0.22, 0.34, 0.82, 0.98),
        (center, (-1.05, -1.75), 0.32, 0.42, 0.86, 1.02),
        (BALANCE, (0.75, 1.75), 0.3, 0.5, 1.55, 1.75),
    ]
    pieces = []
    jewel, pivot = lathe(JEWEL), prism(circle(0.1, 24), -0.3, 0.2, 0.03)
    chaton = ring(circle(0.72, 56), 0.45, -0.07, 0.07, 0.04)
    for spot, leg, near, far, low, high in bridges:
        foot = spot + leg
        pieces += [
            Piece("steel", prism(capsule((0, 0), leg, near, far), low, high, 0.035), spot),
            Piece("steel", prism(circle(far * 0.96, 40), 0.0, low + 0.01, 0.001), foot),
            Piece("gold", chaton, spot, 1, 0.0, near, high),
            Piece("polished", pivot, spot, 1, 0.0, near, high),
            Piece("blue", screw(), foot, 1, spot[0] * 3, far * 0.5, high + 0.06),
            Piece("ruby", jewel, spot, 1, 0.0, near * 0.47, high - 0.01),
        ]
    return pieces


def radial(size: int, middles: list[tuple[float, float]], reach: float) -> np.ndarray:
    """Anisotropy of glTF, repeating: directions away from the middle of the last spot that reaches a texel."""
    y, x = (np.mgrid[:size, :size] + 0.5) / size
    picture = np.full((size, size, 3), 128, "u1")
    for u, v in middles:
        for du, dv in np.ndindex(3, 3):
            across, down = x - u - du + 1, y - v - dv + 1
            away = np.hypot(across, down)
            inside = away < reach
            way = np.stack([across, -down], 2) / np.maximum(away, 1e-6)[..., None]
            picture[inside, :2] = np.round(127.5 * (way[inside] + 1))
            picture[inside, 2] = 255
    return picture


def materials_of(maker: Maker) -> dict[str, int]:
    """The materials by name."""

    def metal(name: str, color: tuple, roughness: float, **more) -> int:
        factors = {"baseColorFactor": [*color, 1], "metallicFactor": 1, "roughnessFactor": roughness}
        return maker.add("materials", {"name": name, "pbrMetallicRoughness": factors, **more})

    def brushed(picture: np.ndarray, strength: float) -> dict:
        texture = {"index": maker.texture(picture)}
        return {"KHR_materials_anisotropy": {"anisotropyStrength": strength, "anisotropyTexture": texture}}

    snail = brushed(radial(64, [(0.5, 0.5)], 0.5), 0.75)  # no further than its tile, which neighbors' spots would cover
    spots = brushed(radial(128, [(0.25 + 0.5 * (k % 2), k / 4) for k in (0, 2, 1, 3)], 0.34), 0.55)
    solid = {"thicknessFactor": 1.0, "attenuationDistance": 0.12, "attenuationColor": [0.9, 0.04, 0.12]}
    ruby = {"KHR_materials_transmission": {"transmissionFactor": 1.0}, "KHR_materials_ior": {"ior": 1.77},
            "KHR_materials_volume": solid}  # fmt: skip
    maker.tree["extensionsUsed"] = [*ruby, "KHR_materials_anisotropy"]
    return {
        "brass": metal("brass", (0.89, 0.63, 0.28), 0.24),
        "snailed brass": metal("snailed brass", (0.89, 0.63, 0.28), 0.26, extensions=snail),
        "gold": metal("gold", (1.0, 0.74, 0.36), 0.16),
        "steel": metal("steel", (0.6, 0.59, 0.57), 0.3),
        "snailed steel": metal("snailed steel", (0.62, 0.61, 0.6), 0.24, extensions=snail),
        "polished": metal("polished steel", (0.72, 0.71, 0.69), 0.14),
        "blue": metal("blued steel", (0.05, 0.12, 0.5), 0.18),
        "plate": metal("perlage", (0.3, 0.29, 0.285), 0.28, extensions=spots),
        "ruby": maker.add("materials", {
            "name": "ruby", "pbrMetallicRoughness": {"metallicFactor": 0, "roughnessFactor": 0}, "extensions": ruby}),
    }  # fmt: skip


def clockwork() -> Maker:
    """The movement on its plate as a glTF file."""
    maker, meshes = Maker(), {}
    materials = materials_of(maker)
    for piece in movement() + cocks():
        key = piece.material, piece.solid[0].tobytes()
        if key not in meshes:
            points = piece.solid[0].astype("f4")
            size = np.abs(points).max()
            uv = 0.5 + points[:, [0, 2]] / (2 * size) if "snailed" in piece.material else None
            normals = piece.solid[1].astype("f4") if len(piece.solid) > 2 else None
            meshes[key] = maker.mesh(points, piece.solid[-1], normals, uv, materials[piece.material])
        for k in range(piece.copies):
            half = piece.turn / 2 + np.pi * k / piece.copies
            place = [float(piece.place[0]), piece.height, -float(piece.place[1])]
            turn = [0, float(np.sin(half)), 0, float(np.cos(half))]
            maker.node(mesh=meshes[key], translation=place, rotation=turn, scale=[piece.scale] * 3)
    corners = np.array([[-40, 0, 40], [40, 0, 40], [40, 0, -40], [-40, 0, -40]], "f4")
    uv = corners[:, [0, 2]] / 0.9
    maker.node(mesh=maker.mesh(corners, [[0, 1, 2], [0, 2, 3]], uv=uv, material=materials["plate"]))
    return maker


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(clockwork().glb())
