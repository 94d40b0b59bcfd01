"""Makes what scenes/orrery.toml shows: `python -m assets.makers.orrery assets/orrery` (two seconds).

`stand.glb` is the base with its dial, wheels, column and hoop in brass on walnut; `bar.obj` a cylinder that instances
stretch into arms and posts; `ring.obj` a planet's ring; the JPEGs are maps of planets, equirectangular.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from assets.makers import painting
from assets.makers.gltf_builder import Maker
from assets.makers.painting import bytes_of, mixed, smooth
from assets.makers.still_life import add, surface
from assets.makers.tree import tubes
from assets.makers.turning import Body, grid_body, joined, lathe, moved

SEED, MAP = 41, (192, 384)
BASE = [(0, 0), (1.3, 0), (1.36, 0.02), (1.36, 0.05), (1.3, 0.07), (1.24, 0.09), (1.22, 0.12), (1.18, 0.13), (0, 0.13)]
COLUMN = [(0, 0.13), (0.34, 0.13), (0.36, 0.15), (0.33, 0.18), (0.18, 0.21), (0.1, 0.26), (0.075, 0.31), (0.12, 0.34),
          (0.16, 0.38), (0.12, 0.42), (0.07, 0.45), (0.06, 0.6), (0.06, 1.2), (0.06, 1.35), (0.1, 1.38), (0.06, 1.41),
          (0.045, 1.5), (0.08, 1.56), (0.17, 1.6), (0.2, 1.63), (0.16, 1.64), (0, 1.63)]  # fmt: skip
COLLARS = (0.70, 0.79, 0.88, 0.97, 1.06, 1.15)  # heights of the arms
FOOT = [(0, 0.0), (0.1, 0.0), (0.13, 0.04), (0.1, 0.09), (0.05, 0.12), (0, 0.12)]


def sphere_noise(rng: np.random.Generator, octaves: int = 6, power: float = 1.1, stretch: float = 1.0) -> np.ndarray:
    """Noise (height, width) on the sphere, of mean 0 and deviation 1: plane waves; `stretch` along latitudes."""
    v, u = (np.mgrid[: MAP[0], : MAP[1]] + 0.5) / np.array(MAP)[:, None, None]
    down, turn = np.pi * v, 2 * np.pi * u
    at = np.stack([np.sin(down) * np.cos(turn), stretch * np.cos(down), np.sin(down) * np.sin(turn)], 2).astype("f4")
    out = np.zeros(MAP)
    for octave in range(octaves):
        ways = rng.normal(0, 1, (36, 3)) * 1.6 * 2.0**octave
        phases = rng.uniform(0, 2 * np.pi, 36)
        out += np.cos(at @ ways.T.astype("f4") + phases.astype("f4")).sum(2) * 2.0 ** (-power * octave)
    return out / out.std()


def latitude() -> np.ndarray:
    """From 1 at the north pole to -1 at the south pole, (height, 1)."""
    return np.cos(np.pi * (np.arange(MAP[0])[:, None] + 0.5) / MAP[0])


def craters(rng: np.random.Generator) -> np.ndarray:
    """Mercury and the moon: gray, with maria, pits and rays."""
    v, u = (np.mgrid[: MAP[0], : MAP[1]] + 0.5) / np.array(MAP)[:, None, None]
    at = np.stack(
        [np.sin(np.pi * v) * np.cos(2 * np.pi * u), np.cos(np.pi * v), np.sin(np.pi * v) * np.sin(2 * np.pi * u)]
    )
    tone = 0.55 + 0.13 * sphere_noise(rng) - 0.2 * smooth(sphere_noise(rng, 4, 1.6), 0.3, 1.1)
    for size in rng.pareto(1.6, 160) * 0.025 + 0.02:
        way = rng.normal(0, 1, 3)
        far = np.arccos(np.clip(np.tensordot(way / np.linalg.norm(way), at, 1), -1, 1)) / min(size, 0.2)
        tone += 0.13 * np.exp(-(((far - 1) / 0.18) ** 2)) - 0.1 * smooth(far, 1.0, 0.7)
    return bytes_of(mixed(tone, (52, 47, 43), (205, 192, 178)))


def clouds(rng: np.random.Generator) -> np.ndarray:
    """Venus: swirls of cream."""
    swirl = sphere_noise(rng, 6, 1.0, 2.5) + 1.2 * np.sin(5 * latitude() + sphere_noise(rng, 3))
    return bytes_of(mixed(0.5 + 0.2 * swirl, (176, 116, 58), (246, 222, 168)))


def earth(rng: np.random.Generator) -> np.ndarray:
    """Sea, land from forest to desert by latitude, ice and clouds."""
    height, dry = sphere_noise(rng, 7, 0.95), sphere_noise(rng, 4)
    pole = np.abs(latitude())
    sea = mixed(smooth(height, -1.4, 0.3), (6, 22, 74), (20, 84, 128))
    warm = smooth(np.abs(pole - 0.4) + 0.12 * dry, 0.28, 0.05)
    land = mixed(warm, (46, 84, 34), (186, 150, 92)) * (0.9 + 0.15 * np.clip(height, -1, 1)[..., None])
    shore = smooth(height, 0.28, 0.36)[..., None]
    out = sea * (1 - shore) + land * shore
    ice = smooth(pole + 0.06 * dry, 0.86, 0.92)[..., None]
    out = out * (1 - ice) + np.array([236, 242, 246]) * ice
    cloud = 0.85 * smooth(sphere_noise(rng, 7, 0.8, 2.0) + 0.3 * np.cos(9 * latitude()), 0.6, 1.9)[..., None]
    return bytes_of(out * (1 - cloud) + 246 * cloud)


def rust(rng: np.random.Generator) -> np.ndarray:
    """Mars: rust, dark plains, white poles."""
    tone = 0.55 + 0.15 * sphere_noise(rng, 7) - 0.3 * smooth(sphere_noise(rng, 5, 1.3), 0.5, 1.3)
    color = mixed(tone, (70, 30, 18), (214, 122, 68))
    ice = smooth(np.abs(latitude()) + 0.03 * sphere_noise(rng, 5), 0.93, 0.96)[..., None]
    return bytes_of(color * (1 - ice) + np.array([238, 232, 226]) * ice)


def bands(rng: np.random.Generator, colors: list[tuple], count: float, wild: float, spot: bool) -> np.ndarray:
    """Jupiter or Saturn: belts that are stirred where they meet; with a storm if `spot`."""
    v, u = (np.mgrid[: MAP[0], : MAP[1]] + 0.5) / np.array(MAP)[:, None, None]
    stir = wild * sphere_noise(rng, 6, 1.0, 1.8)
    storm = np.hypot((u - 0.3) * 2 / 1.0, (v - 0.62) / 0.55) / 0.095 if spot else np.full(MAP, 9.0)
    turn = np.exp(-(storm**2) / 2.5)
    at = (v + 0.012 * stir + 0.03 * turn * np.sin(9 * storm)) * count
    rows = rng.permutation(np.arange(int(count) + 3) % len(colors))
    low, part = np.clip(at.astype(int), 0, len(rows) - 2), at % 1
    palette = np.array(colors, "f8")
    blend = smooth(part, 0.72, 1.0)[..., None]
    color = palette[rows[low]] * (1 - blend) + palette[rows[low + 1]] * blend
    color *= 1 + 0.06 * sphere_noise(rng, 5, 0.8, 7.0)[..., None]
    red = smooth(storm, 1.1, 0.6)[..., None]
    return bytes_of(color * (1 - red) + np.array([176, 78, 46]) * red)


def planets() -> dict[str, np.ndarray]:
    """The maps by the name of their file."""
    rng = np.random.default_rng(SEED)
    tan = [(214, 186, 150), (168, 116, 76), (232, 216, 190), (190, 150, 112), (138, 92, 62)]
    gold = [(226, 200, 148), (206, 174, 120), (236, 218, 174), (190, 160, 112)]
    return {"mercury": craters(rng), "venus": clouds(rng), "earth": earth(rng), "mars": rust(rng),
            "jupiter": bands(rng, tan, 15, 1.0, True), "saturn": bands(rng, gold, 12, 0.35, False)}  # fmt: skip


def circle(radius: float | np.ndarray, y: float, turn: np.ndarray) -> np.ndarray:
    """Points (n, 3) at angles (n,) about y."""
    return np.stack([radius * np.cos(turn), np.full(len(turn), y), -radius * np.sin(turn)], 1)


def wheel(radius: float, teeth: int, thick: float = 0.045) -> Body:
    """A toothed wheel about y with six spokes; flat faces."""
    turn = np.linspace(0, 2 * np.pi, teeth * 4 + 1)
    out = radius + 0.022 * np.append(np.tile([-1.0, 1.0, 1.0, -1.0], teeth), -1.0)
    top, low, inner = thick / 2, -thick / 2, 0.8 * radius
    rows = [(inner, top), (inner, low), (out, low), (out, top), (inner, top)]
    bodies = [flat(np.stack([circle(r, y, turn) for r, y in pair])) for pair in zip(rows, rows[1:], strict=False)]
    for angle in np.pi * np.arange(6) / 3:
        along, across = np.array([np.cos(angle), 0, -np.sin(angle)]), np.array([np.sin(angle), 0, np.cos(angle)])
        ends = [0.1 * along, 0.82 * radius * along]
        around = [0.03 * x * across + [0, 0.6 * y, 0] for x, y in ((1, top), (1, low), (-1, low), (-1, top), (1, top))]
        bodies.append(flat(np.array([[end + side for side in around] for end in ends])))
    return joined(bodies)


def flat(points: np.ndarray) -> Body:
    """The cells of a grid of points (rows, columns, 3) as flat quads."""
    corners = np.stack([points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]], 2).reshape(-1, 4, 3)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 3] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    faces = (np.arange(len(corners))[:, None, None] * 4 + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3)
    return corners.reshape(-1, 3), np.repeat(normal, 4, 0), np.zeros((len(corners) * 4, 2)), faces


def hoop(radius: float, y: float, high: float, wide: float) -> Body:
    """A flat band about y, lathe-turned."""
    r, h = radius, high / 2
    return lathe(
        [(r - wide, y - h), (r + wide, y - h), (r + wide, y + h), (r - wide, y + h), (r - wide, y - h)], 120, 1
    )


def dial(size: int = 448) -> tuple[np.ndarray, np.ndarray]:
    """Colors and roughness of a round brass plate with scales of 360 and 12 and a star of 16 points."""
    y, x = (np.mgrid[:size, :size] + 0.5) / size * 2 - 1
    far, turn = np.hypot(x, y), np.arctan2(y, x) / (2 * np.pi) + 0.5
    ink = np.zeros((size, size))
    for count, low, high, wide in ((180, 0.9, 0.94, 0.004), (36, 0.86, 0.94, 0.006), (12, 0.66, 0.94, 0.009)):
        ink = np.maximum(ink, smooth(np.abs((turn * count + 0.5) % 1 - 0.5) / count * 2 * np.pi * far, wide, wide / 2)
                         * (far > low) * (far < high))  # fmt: skip
    for at in (0.95, 0.85, 0.66, 0.645, 0.98):
        ink = np.maximum(ink, smooth(np.abs(far - at), 0.005, 0.002))
    point = np.abs((turn * 16 + 0.5) % 1 - 0.5) * 2
    star = smooth(far - 0.3 - 0.33 * (1 - point) * (1 - 0.35 * (np.round(turn * 16) % 2)), 0.0, -0.012)
    ink = np.maximum(ink, 0.5 * star * (((turn * 32) % 2 < 1) * 0.6 + 0.4))
    ticks = np.sin(turn * 2 * np.pi * 24) * (np.abs(far - 0.755) < 0.05) > 0.93
    ink = np.maximum(ink, 0.8 * ticks)
    shine = np.zeros((size, size, 3))
    shine[..., 1], shine[..., 2] = 60 + 120 * ink, 255 * (1 - 0.6 * ink)
    return bytes_of(mixed(ink, (236, 186, 104), (60, 36, 18))), bytes_of(shine)


def stand() -> Maker:
    """Base, dial, column, wheels, collars, hoop and its four stays."""
    maker, rng = Maker(), np.random.default_rng(SEED)
    color, shine = (painting.jpeg(maker, picture, 80) for picture in painting.wood(rng, (192, 384)))
    walnut = surface(maker, "walnut", rough=0.7, picture=color, shine=shine,
                     clearcoat={"clearcoatFactor": 1.0, "clearcoatRoughnessFactor": 0.06})  # fmt: skip
    brass = surface(maker, "brass", (0.9, 0.66, 0.32), 0.16, 1.0)
    color, shine = dial()
    plate = surface(maker, "dial", rough=1.0, metal=1.0, picture=painting.jpeg(maker, color, 80),
                    shine=painting.jpeg(maker, shine[::2, ::2], 80))  # fmt: skip
    maker.node(mesh=add(maker, lathe(BASE, 72, 2), walnut), translation=[0, 0.1, 0])
    quarters = np.pi * (np.arange(4) / 2 + 0.25)
    feet = [moved(lathe(FOOT, 20, 2), (1.12 * np.cos(a), 0, 1.12 * np.sin(a))) for a in quarters]
    turn = np.linspace(0, 2 * np.pi, 97)
    points, _, _, faces = grid_body(np.stack([circle(r, 0.238, turn) for r in (0.3, 1.14)]))
    level = np.tile([0.0, 1.0, 0.0], (len(points), 1))
    maker.node(mesh=add(maker, (points, level, points[:, [0, 2]] / 2.28 + 0.5, faces[:, [0, 2, 1]]), plate))
    collar = [(0.06, -0.04), (0.095, -0.04), (0.1, -0.035), (0.1, 0.035), (0.095, 0.04), (0.06, 0.04)]
    axle = [(0, 0.24), (0.05, 0.24), (0.03, 0.3), (0.022, 0.6), (0.04, 0.64), (0, 0.66)]
    parts = [moved(lathe(COLUMN, 32, 2), (0, 0.1, 0)), *feet]
    parts += [moved(lathe(collar, 32, 1), (0, y, 0)) for y in COLLARS]
    parts += [moved(body, (x, y, 0)) for body, x, y in
              ((wheel(0.5, 60), 0, 0.585), (wheel(0.2, 24), 0.7, 0.585), (lathe(axle, 20, 2), 0.7, 0))]  # fmt: skip
    parts += [hoop(3.42, 0.8, 0.09, 0.02)]
    maker.node(mesh=add(maker, joined(parts), brass))
    maker.node(mesh=add(maker, joined([stay(a) for a in quarters]), brass))
    maker.tree["extensionsUsed"] = ["KHR_materials_clearcoat", "KHR_mesh_quantization"]
    maker.tree["extensionsRequired"] = ["KHR_mesh_quantization"]
    return maker


def stay(angle: float) -> Body:
    """A curved arm from the base up to the hoop."""
    t = np.linspace(0, 1, 25)[:, None]
    out, up = 1.3 + 2.1 * np.sin(np.pi / 2 * t), 0.16 + 0.6 * (1 - np.cos(np.pi / 2 * t))
    line = np.concatenate([out * np.cos(angle), up, out * np.sin(angle)], 1)
    points, normals, uv, faces = tubes([(line, np.full(25, 0.026))])
    return points, normals, np.clip(uv, 0, 1), faces


def obj(body: Body) -> str:
    """A body as a Wavefront file."""
    points, normals, _, faces = body
    lines = [f"v {x:.5g} {y:.5g} {z:.5g}" for x, y, z in points] + [
        f"vn {x:.4f} {y:.4f} {z:.4f}" for x, y, z in normals
    ]
    return "\n".join([*lines, *(f"f {a}//{a} {b}//{b} {c}//{c}" for a, b, c in faces + 1)]) + "\n"


def bar() -> Body:
    """The side of a cylinder of radius 1 from y = 0 to 1."""
    turn = np.linspace(0, 2 * np.pi, 25)
    points, _, uv, faces = grid_body(np.stack([circle(1.0, y, turn) for y in (0, 1)]))
    return points, points * [1, 0, 1], uv, faces[:, [0, 2, 1]]


def rings() -> Body:
    """Three flat rings about y, for a planet of radius 1."""
    return joined([lathe([(low, -0.004), (high, -0.004), (high, 0.004), (low, 0.004), (low, -0.004)], 96, 1)
                   for low, high in ((1.28, 1.52), (1.56, 1.98), (2.06, 2.2))])  # fmt: skip


def main(folder: Path) -> None:
    """Write all files."""
    folder.mkdir(exist_ok=True)
    (folder / "stand.glb").write_bytes(stand().glb())
    (folder / "bar.obj").write_text(obj(bar()))
    (folder / "ring.obj").write_text(obj(rings()))
    for name, pixels in planets().items():
        Image.fromarray(pixels).save(folder / f"{name}.jpg", quality=85)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
