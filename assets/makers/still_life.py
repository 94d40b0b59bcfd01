"""Makes assets/still_life.glb: `python -m assets.makers.still_life assets/still_life.glb` (two seconds).

A table by a window: a painted vase with a branch, a copper bowl of fruit on linen, a nautilus, a candle. It uses most
of what is read of glTF: pictures of color, roughness, normals, emission and alpha (cut out and blended), a clear coat,
sheen, iridescence, transmission with absorption, light through leaves, lights, a camera and variants of a material.
"""

import sys
from pathlib import Path

import numpy as np

from assets.makers import painting
from assets.makers.gltf_builder import Maker
from assets.makers.tree import tubes
from assets.makers.turning import Body, grid_body, joined, lathe, nautilus, quaternion, turned

SEED = 29
VASE = [(0, 0), (0.16, 0), (0.21, 0.01), (0.225, 0.035), (0.22, 0.07), (0.29, 0.2), (0.4, 0.42), (0.435, 0.62),
        (0.4, 0.8), (0.3, 0.94), (0.19, 1.06), (0.145, 1.18), (0.15, 1.29), (0.2, 1.38), (0.215, 1.4), (0.2, 1.402),
        (0.135, 1.29), (0.125, 1.18), (0.17, 1.05)]  # fmt: skip
BOWL = [(0, 0.0), (0.2, 0.0), (0.235, 0.012), (0.22, 0.035), (0.2, 0.07), (0.3, 0.115), (0.47, 0.21), (0.6, 0.34),
        (0.655, 0.42), (0.68, 0.44), (0.677, 0.452), (0.655, 0.447), (0.63, 0.42), (0.57, 0.345), (0.44, 0.235),
        (0.28, 0.15), (0, 0.125)]  # fmt: skip
PEAR = [(0, 0.015), (0.05, 0.0), (0.14, 0.015), (0.215, 0.09), (0.235, 0.19), (0.205, 0.3), (0.145, 0.4), (0.11, 0.48),
        (0.085, 0.545), (0.045, 0.575), (0, 0.57)]  # fmt: skip
APPLE = [(0, 0.045), (0.04, 0.03), (0.1, 0.0), (0.18, 0.045), (0.23, 0.15), (0.235, 0.24), (0.2, 0.33), (0.13, 0.385),
         (0.07, 0.38), (0.025, 0.345), (0, 0.33)]  # fmt: skip
LEMON = [(0, -0.28), (0.03, -0.275), (0.05, -0.245), (0.12, -0.19), (0.172, -0.09), (0.182, 0.0), (0.172, 0.09),
         (0.12, 0.19), (0.05, 0.235), (0.035, 0.255), (0, 0.262)]  # fmt: skip
HALF = [(0, -0.28), (0.03, -0.275), (0.05, -0.245), (0.12, -0.19), (0.172, -0.09), (0.182, -0.01), (0.18, 0.0)]
STICK = [(0, 0), (0.2, 0), (0.235, 0.012), (0.23, 0.035), (0.15, 0.06), (0.06, 0.085), (0.04, 0.13), (0.055, 0.17),
         (0.085, 0.2), (0.055, 0.235), (0.036, 0.29), (0.033, 0.42), (0.05, 0.48), (0.075, 0.5), (0.05, 0.525),
         (0.05, 0.56), (0.12, 0.6), (0.165, 0.61), (0.168, 0.622), (0.12, 0.622), (0, 0.615)]  # fmt: skip
CANDLE = [(0, 0), (0.055, 0), (0.06, 0.01), (0.06, 0.3), (0.059, 0.52), (0.053, 0.54), (0.04, 0.532), (0, 0.52)]
FLAME = [(0, 0.0), (0.012, 0.008), (0.024, 0.035), (0.027, 0.07), (0.02, 0.12), (0.008, 0.17), (0, 0.2)]
GROUND = 0.012  # where things stand, on the linen
CLAMPED = {"wrapS": 33071, "wrapT": 33071}


def table() -> Body:
    """A board with a round front edge, its picture along x."""
    turn = np.linspace(0, np.pi / 2, 7)
    edge = np.stack([1.5 + 0.04 * np.sin(turn), 0.04 * np.cos(turn) - 0.04], 1)
    line = np.concatenate([[[-2.6, 0.0]], edge, [[1.54, -0.16], [1.4, -0.17]]])
    x = np.linspace(-4, 4, 2)
    points = np.stack(np.broadcast_arrays(x[None, :], line[:, 1:], line[:, :1]), 2)
    vertices, _, uv, faces = grid_body(points)
    out = np.concatenate([[[0.0, 1.0]], np.stack([np.sin(turn), np.cos(turn)], 1), [[1.0, 0.0], [0.0, -1.0]]])
    normals = np.array([[0.0, y, z] for z, y in out for _ in range(2)])
    far = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    uv = np.stack(np.broadcast_arrays(x[None, :] * 0.42, far[:, None] * 0.56), 2).reshape(-1, 2)
    return vertices, normals, uv, faces[:, [0, 2, 1]]


def runner(rng: np.random.Generator) -> Body:
    """A strip of linen over the table and its front edge, with a few folds."""
    columns, rows = 42, 52
    across, along = np.meshgrid(np.linspace(-0.72, 0.72, columns), np.linspace(0.0, 3.0, rows))
    flat = np.clip(along, 0, 2.06)  # from z = -0.55 to the edge, around it, and down
    bend = np.clip((along - 2.06) / 0.094, 0, np.pi / 2)
    down = np.maximum(along - 2.06 - 0.094 * np.pi / 2, 0)
    fall = painting.smooth(down, 0.0, 0.7)
    out = 0.06 * bend / (np.pi / 2)
    z = (
        -0.55
        + flat
        + out * np.sin(bend)
        + (0.012 + 0.075 * fall) * np.sin(6.5 * across + 0.8) * np.minimum(1, 9 * down)
    )
    y = 0.008 - out * (1 - np.cos(bend)) - down
    loose = painting.smooth(along, 0.9, 1.5) * (1 - bend / (np.pi / 2))
    for _ in range(7):
        way, at, width = rng.uniform(-0.5, 0.5), rng.uniform(-0.7, 0.7), rng.uniform(0.03, 0.055)
        ridge = (across - at - way * (along - 1.7)) / width
        y += 0.034 * loose * np.exp(-(ridge**2)) * rng.uniform(0.4, 1.0)
    x = 0.34 + 1.0 * across - 0.2 * (np.minimum(along, 2.1) - 1.1) + 0.02 * np.sin(5 * along) * np.sign(across)
    points, normals, uv, faces = grid_body(np.stack([x, y, z], 2))
    return points, -normals, uv * [10.0, 21.0], faces[:, [0, 2, 1]]


def sprigs(rng: np.random.Generator) -> tuple[Body, Body, np.ndarray]:
    """Twigs, leaves on them, and places of berries (n, 3), about the mouth of the vase at the origin."""
    lines, leaves, berries = [], [], []
    for lean, turn, length in (
        (0.75, 2.7, 1.0),
        (0.5, 0.5, 0.95),
        (0.28, 4.0, 1.1),
        (0.85, 5.9, 0.8),
        (0.62, 3.6, 0.85),
    ):
        t = np.linspace(0, 1, 9)[:, None]
        side = np.array([np.cos(turn), 0, 0.6 * np.sin(turn)])
        line = [0, -0.35, 0] + length * (t * [0, 1.05, 0] + lean * t**1.8 * side - [0, 0.28, 0] * t**3 * lean)
        line[1:] += rng.normal(0, 0.012, line[1:].shape)
        lines.append((line, np.linspace(0.012, 0.004, 9)))
        for k in range(13):
            s = 0.34 + 0.66 * k / 12
            at = np.array([np.interp(s, t[:, 0], line[:, i]) for i in range(3)])
            stem = line[min(8, int(s * 8) + 1)] - line[max(0, int(s * 8) - 1)]
            stem /= np.linalg.norm(stem)
            spread = np.cross(stem, [np.sin(2.4 * k), 0.5, np.cos(2.4 * k)])
            way = 0.55 * stem + spread / np.linalg.norm(spread) + rng.normal(0, 0.12, 3)
            leaves.append(blade(at, way / np.linalg.norm(way), rng.uniform(0.2, 0.3), rng))
            if k in (3, 4, 7, 8) and rng.random() < 0.75:
                berries.append(at + 0.05 * rng.normal(0, 1, 3) - [0, 0.03, 0])
    return tubes(lines), joined(leaves), np.array(berries)


def blade(at: np.ndarray, way: np.ndarray, length: float, rng: np.random.Generator) -> Body:
    """A leaf from `at` along `way`, bent down at its tip and folded along its middle."""
    right = np.cross(way, [0.1, 1.0, 0.05] + rng.normal(0, 0.45, 3))
    right /= np.linalg.norm(right)
    up = np.cross(right, way)
    t, s = np.linspace(0, 1, 5)[:, None, None], np.array([-1.0, 0.0, 1.0])[None, :, None]
    lift = 0.12 * np.abs(s) - 0.3 * t**2
    points, normals, uv, faces = grid_body(at + length * (t * way + 0.22 * s * right + lift * up))
    return points, normals, uv * [1, -1] + [0, 1], faces


def fruit(maker: Maker, body: Body, material: int, places: list) -> None:
    """A body at (x, y, z, degrees about x, y and z, scale)."""
    mesh = add(maker, body, material)
    for x, y, z, *turn, scale in places:
        maker.node(mesh=mesh, translation=[x, y, z], rotation=quaternion(turned(*turn)), scale=[scale] * 3)


def add(maker: Maker, body: Body, material: int, variants: tuple[int, ...] = (), rough: bool = False) -> int:
    """A mesh of the body, and the materials of the file's variants. Normals take 8 bits a number on rough surfaces and
    16 on those that mirror; texture coordinates 16 where they do not repeat.
    """
    points, normals, uv, faces = body
    bits, stride = (8, 4) if rough else (16, 8)
    words = {"NORMAL": maker.array(np.round(normals * (2 ** (bits - 1) - 1)), f"i{bits // 8}", stride, normalized=True)}
    if 0 <= uv.min() and uv.max() <= 1:
        words["TEXCOORD_0"] = maker.array(np.round(uv * 65535), "u2", normalized=True)
    else:
        words["TEXCOORD_0"] = maker.array(uv)
    mesh = maker.mesh(points.astype("f4"), faces, material=material, others=words)
    if variants:
        named = {"mappings": [{"material": row, "variants": [k]} for k, row in enumerate(variants)]}
        maker.tree["meshes"][mesh]["primitives"][0]["extensions"] = {"KHR_materials_variants": named}
    return mesh


def surface(maker: Maker, name: str, color: tuple = (1, 1, 1), rough: float = 0.5, metal: float = 0.0,
            picture: int = -1, normal: int = -1, shine: int = -1, more: dict | None = None,
            **extensions: dict) -> int:  # fmt: skip
    """A material; `extensions` without their prefix, and `more` keys of the material."""
    base: dict = {"baseColorFactor": [*color, 1.0], "metallicFactor": metal, "roughnessFactor": rough}
    entry = {"name": name, "pbrMetallicRoughness": base} | (more or {})
    if picture >= 0:
        base["baseColorTexture"] = {"index": picture}
    if shine >= 0:
        base["metallicRoughnessTexture"] = {"index": shine}
    if normal >= 0:
        entry["normalTexture"] = {"index": normal}
    if extensions:
        entry["extensions"] = {f"KHR_materials_{key}": value for key, value in extensions.items()}
    return maker.add("materials", entry)


def room(maker: Maker, rng: np.random.Generator) -> None:
    """The table, the wall and the linen."""
    color, shine = painting.wood(rng)
    walnut = surface(maker, "walnut", rough=1.0, picture=painting.jpeg(maker, color, 72),
                     shine=painting.jpeg(maker, shine[::2, ::2], 75))  # fmt: skip
    plaster = surface(maker, "plaster", rough=0.9, picture=painting.jpeg(maker, painting.plaster(rng), 80))
    color, normal = (painting.jpeg(maker, picture) for picture in painting.linen(rng))
    cloth = surface(maker, "linen", rough=0.85, picture=color, normal=normal,
                    sheen={"sheenColorFactor": [0.16, 0.15, 0.13], "sheenRoughnessFactor": 0.5})  # fmt: skip
    maker.node(mesh=add(maker, table(), walnut))
    wall = np.array([[[x, y, -2.7] for x in (-7.0, 7.0)] for y in (5.0, -2.0)])
    points, normals, uv, faces = grid_body(wall)
    maker.node(mesh=add(maker, (points, -normals, uv * [2, 1], faces[:, [0, 2, 1]]), plaster))
    maker.node(mesh=add(maker, runner(rng), cloth, rough=True))


def vase(maker: Maker, rng: np.random.Generator, at: list[float]) -> None:
    """The vase, in white and blue or, as variants, in other glazes, with twigs, leaves and berries."""
    coat = {"clearcoat": {"clearcoatFactor": 1.0, "clearcoatRoughnessFactor": 0.02}}
    painted = surface(maker, "porcelain", rough=0.35, picture=painting.jpeg(maker, painting.porcelain(rng), 75), **coat)
    celadon = surface(maker, "celadon", (0.35, 0.52, 0.42), 0.3, **coat)
    oxblood = surface(maker, "oxblood", (0.3, 0.02, 0.015), 0.3, **coat)
    maker.tree["extensions"] = {"KHR_materials_variants": {
        "variants": [{"name": "porcelain"}, {"name": "celadon"}, {"name": "oxblood"}]}}  # fmt: skip
    maker.node(mesh=add(maker, lathe(VASE, 52, 2), painted, (painted, celadon, oxblood)), translation=at,
               rotation=quaternion(turned(0, 35, 0)))  # fmt: skip
    bark = surface(maker, "twig", (0.14, 0.09, 0.05), 0.8)
    green = surface(maker, "leaf", rough=0.42, picture=maker.texture(painting.leaf(), **CLAMPED),
                    more={"alphaMode": "MASK", "doubleSided": True},
                    diffuse_transmission={"diffuseTransmissionFactor": 0.3,
                                          "diffuseTransmissionColorFactor": [0.6, 0.75, 0.25]})  # fmt: skip
    red = surface(maker, "berry", (0.5, 0.03, 0.02), 0.3, clearcoat={"clearcoatFactor": 0.6})
    twigs, leaves, berries = sprigs(rng)
    mouth = np.add(at, [0, 1.4, 0]).tolist()
    maker.node(mesh=add(maker, twigs, bark, rough=True), translation=mouth)
    maker.node(mesh=add(maker, leaves, green, rough=True), translation=mouth)
    ball = add(maker, lathe([(0, -1), (0.71, -0.71), (1, 0), (0.71, 0.71), (0, 1)], 16), red)
    for berry in berries:
        maker.node(mesh=ball, translation=(berry + mouth).tolist(), scale=[0.032] * 3)


def fruits(maker: Maker, rng: np.random.Generator, x: float, z: float) -> None:
    """A copper bowl around (x, z) with pears, apples and grapes, and lemons before it."""
    hammer = painting.jpeg(maker, painting.hammered(rng), 85)
    copper = surface(maker, "copper", (0.93, 0.52, 0.34), 0.28, 1.0)
    maker.tree["materials"][copper]["normalTexture"] = {
        "index": hammer, "scale": 0.8, "extensions": {"KHR_texture_transform": {"scale": [5, 3]}}}  # fmt: skip
    maker.node(mesh=add(maker, lathe(BOWL, 50, 2), copper), translation=[x, GROUND, z])
    bumps = painting.jpeg(maker, painting.peel(rng), 90)
    wax = {"clearcoat": {"clearcoatFactor": 0.35, "clearcoatRoughnessFactor": 0.25}}
    pear = surface(maker, "pear", rough=0.45, **wax, picture=painting.jpeg(
        maker, painting.skin(rng, (172, 158, 50), (204, 190, 84), (176, 78, 34), (112, 86, 44), 0.0)))  # fmt: skip
    apple = surface(maker, "apple", rough=0.35, **wax, picture=painting.jpeg(
        maker, painting.skin(rng, (196, 160, 52), (214, 186, 84), (140, 16, 14), (222, 184, 130), 0.25)))  # fmt: skip
    lemon = surface(maker, "lemon", (0.86, 0.56, 0.045), 0.4, normal=bumps, **wax)
    stalk = surface(maker, "stalk", (0.1, 0.06, 0.03), 0.8)
    pears = [(x - 0.2, 0.2, z + 0.1, -8, 60, 22, 1.0), (x - 0.06, 0.26, z - 0.26, -20, 200, -6, 1.04),
             (x + 0.84, GROUND + 0.2, z + 0.5, 35, 0, -78, 0.95)]  # fmt: skip
    fruit(maker, lathe(PEAR, 32, 2), pear, pears)
    stem = np.array([[0, 0.55, 0], [0.004, 0.62, 0.004], [0.02, 0.69, 0.01]])
    fruit(maker, tubes([(stem, np.array([0.012, 0.009, 0.013]))]), stalk, pears)
    red = [(x + 0.2, 0.2, z + 0.14, 15, 200, -12, 0.98), (x + 0.24, 0.25, z - 0.26, -15, 90, -15, 0.95)]
    fruit(maker, lathe(APPLE, 32, 2), apple, red)
    short = tubes([(np.array([[0, 0.33, 0], [0.0, 0.4, 0.0], [0.015, 0.45, 0.01]]), np.array([0.009, 0.007, 0.011]))])
    fruit(maker, short, stalk, red)
    fruit(maker, lathe(LEMON, 30, 2), lemon, [(x - 1.02, GROUND + 0.18, z + 0.55, 84, 55, 0, 1.0)])
    cut = surface(maker, "cut lemon", rough=0.25, picture=painting.jpeg(maker, painting.lemon_half()))
    half = [(x - 0.62, GROUND + 0.165, z + 0.9, 72, 22, 0, 0.95)]
    fruit(maker, lathe(HALF, 30, 2), lemon, half)
    turn = np.linspace(0, 2 * np.pi, 37)
    disc = np.stack([np.outer([0, 0.18], np.cos(turn)), np.zeros((2, 37)), np.outer([0, 0.18], np.sin(turn))], 2)
    points, normals, _, faces = grid_body(disc)
    normals[:] = [0, 1, 0]
    fruit(maker, (points, normals, points[:, [0, 2]] / 0.36 + 0.5, faces[:, [0, 2, 1]]), cut, half)
    grapes(maker, rng, x, z)


def grapes(maker: Maker, rng: np.random.Generator, x: float, z: float) -> None:
    """A bunch from the bowl's middle over its rim to the linen."""
    clear = {"transmission": {"transmissionFactor": 0.75}, "ior": {"ior": 1.38}, "volume": {
        "thicknessFactor": 1.0, "attenuationColor": [0.45, 0.07, 0.16], "attenuationDistance": 0.14}}  # fmt: skip
    grape = surface(maker, "grape", (0.5, 0.16, 0.28), 0.22, **clear)
    ball = add(maker, lathe([(0, -1.06), (0.72, -0.72), (1, 0), (0.72, 0.72), (0, 1.06)], 24), grape)
    line = np.array([[0.34, 0.5, 0.28], [0.42, 0.55, 0.42], [0.5, 0.42, 0.6], [0.52, 0.2, 0.74], [0.5, 0.1, 0.9]])
    found: list[np.ndarray] = []
    for _ in range(1400):
        s = rng.uniform(0, 4)
        wide = 0.17 if s < 2.6 else 0.2
        at = np.array([np.interp(s, range(5), line[:, i]) for i in range(3)]) + wide * rng.uniform(-1, 1, 3)
        if at[1] < GROUND + 0.068 or np.hypot(at[0], at[2]) < 0.77 and at[1] < 0.55:
            continue
        if at[1] < 0.62 and all(np.linalg.norm(at - other) > 0.118 for other in found):
            found.append(at)
    for at in found:
        size = rng.uniform(0.056, 0.066)
        maker.node(mesh=ball, translation=[x + at[0], at[1], z + at[2]], scale=[size] * 3,
                   rotation=quaternion(turned(*rng.uniform(-60, 60, 3))))  # fmt: skip


def precious(maker: Maker, rng: np.random.Generator, at: list[float], light: list[float]) -> None:
    """A nautilus at one place, and a candle at the other."""
    pearl = surface(maker, "nautilus", rough=0.3, picture=painting.jpeg(maker, painting.shell(rng)),
                    iridescence={"iridescenceFactor": 1.0, "iridescenceIor": 1.6, "iridescenceThicknessMaximum": 420},
                    clearcoat={"clearcoatFactor": 0.5, "clearcoatRoughnessFactor": 0.1})  # fmt: skip
    maker.node(
        mesh=add(maker, nautilus(), pearl),
        translation=at,
        scale=[0.48] * 3,
        rotation=quaternion(turned(0, 44, 0) @ turned(0, 0, 46)),
    )
    brass = surface(maker, "brass", (0.91, 0.68, 0.32), 0.2, 1.0)
    tallow = surface(maker, "wax", (0.85, 0.78, 0.62), 0.5, diffuse_transmission={
        "diffuseTransmissionFactor": 0.35, "diffuseTransmissionColorFactor": [1.0, 0.72, 0.4]})  # fmt: skip
    glow = maker.texture(painting.flame(), **CLAMPED)
    fire = surface(maker, "flame", (0, 0, 0), 1.0, picture=glow, more={
        "alphaMode": "BLEND", "emissiveFactor": [1, 1, 1], "emissiveTexture": {"index": glow}},
        emissive_strength={"emissiveStrength": 40})  # fmt: skip
    wick = surface(maker, "wick", (0.02, 0.015, 0.01), 0.9)
    top = np.add(light, [0, 0.61, 0]).tolist()
    maker.node(mesh=add(maker, lathe(STICK, 26, 2), brass), translation=light)
    maker.node(mesh=add(maker, lathe(CANDLE, 20, 2), tallow, rough=True), translation=top)
    line = np.array([[0, 0.5, 0], [0.0, 0.57, 0.0], [0.012, 0.6, 0.0]])
    maker.node(mesh=add(maker, tubes([(line, np.full(3, 0.005))]), wick), translation=top)
    maker.node(mesh=add(maker, lathe(FLAME, 16, 2), fire), translation=np.add(top, [0.004, 0.57, 0]).tolist())


def still_life() -> Maker:
    """The whole file."""
    maker, rng = Maker(), np.random.default_rng(SEED)
    room(maker, rng)
    vase(maker, rng, [-0.62, 0.0, -0.75])
    fruits(maker, rng, 0.42, -0.05)
    precious(maker, rng, [-1.42, 0.34, 0.35], [1.5, 0.0, -0.75])
    lens = {"type": "perspective", "perspective": {"yfov": 0.44, "aspectRatio": 1.6}}
    tilt = -0.1
    maker.node(camera=maker.add("cameras", lens), translation=[0.05, 1.3, 6.4],
               rotation=[np.sin(tilt / 2), 0, 0, np.cos(tilt / 2)])  # fmt: skip
    maker.node(extensions=maker.light(type="spot", intensity=260, color=[1, 0.86, 0.68],
                                      spot={"innerConeAngle": 0.3, "outerConeAngle": 0.9}),
               translation=[-4.0, 2.9, 2.2], rotation=quaternion(turned(-22, -62, 0)))  # fmt: skip
    maker.node(extensions=maker.light(type="point", intensity=4, color=[1, 0.6, 0.25]), translation=[1.5, 1.4, -0.5])
    maker.node(extensions=maker.light(type="directional", intensity=0.25, color=[0.6, 0.75, 1]),
               rotation=quaternion(turned(-60, 20, 0)))  # fmt: skip
    used = {key for entry in maker.tree["materials"] for key in entry.get("extensions", {})}
    used |= {"KHR_texture_transform", "KHR_lights_punctual", "KHR_materials_variants", "KHR_mesh_quantization"}
    maker.tree["extensionsUsed"] = sorted(used)
    maker.tree["extensionsRequired"] = ["KHR_mesh_quantization"]
    return maker


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(still_life().glb())
