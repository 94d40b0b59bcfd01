"""Makes the room of scenes/gallery.toml: `python -m assets.makers.museum assets/museum.glb` (a second).

A parquet floor, walls with skirting, a coffered ceiling with a skylight's frame, plinths, a bench, and pictures of this
program in frames. Units are meters; the room is seen towards -z.
"""

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from assets.makers.gltf_builder import Maker
from assets.makers.terrace import REPEAT, Builder, box
from renderer.paths import ROOT

SEED, WIDE, HIGH, BACK, FRONT = 8, 5.2, 4.3, -3.4, 9.0  # half the width
PICTURES = 256  # pixels of the longer side


def parquet(rng: np.random.Generator, boards: int = 5, side: int = 64) -> np.ndarray:
    """A picture (size, size, 3) uint8 of oak laid in squares, which repeats."""
    size = 4 * side
    y, x = np.mgrid[:size, :size]
    block_x, block_y = x // side, y // side
    along, across = (np.where((block_x + block_y) % 2, a, b) for a, b in ((x, y), (y, x)))
    board = across % side * boards // side
    shade = rng.normal(0, 1, (4, 4, boards))[block_y, block_x, board]
    drift = rng.uniform(0, 6, (4, 4, boards))[block_y, block_x, board]
    grain = np.sin(across * 2.3 + 1.5 * np.sin(along * 0.07 + drift) + drift) * 0.5 + 0.5 * np.sin(
        across * 0.9 + drift * 2
    )
    tone = 1 + 0.13 * shade + 0.06 * grain
    color = np.array([134, 88, 50]) * tone[..., None] + np.array([6, 2, -4]) * shade[..., None]
    gap = (across % (side / boards) < 0.9) | (along % side < 0.9)
    color = np.where(gap[..., None], color * 0.45, color)
    return np.clip(color, 0, 255).astype("u1")


def hung(maker: Builder, name: str, center: tuple, width: float, turn_degrees: float, frame: int) -> None:
    """A picture of the gallery with its frame on a wall whose normal is +z, turned about y."""
    picture = Image.open(ROOT / "assets" / "gallery" / f"{name}.png").convert("RGB")
    picture.thumbnail((PICTURES, PICTURES), Image.LANCZOS)
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=82)
    image = maker.add("images", {"bufferView": maker.view(data.getvalue()), "mimeType": "image/jpeg"})
    canvas = maker.add("materials", {"name": name, "pbrMetallicRoughness": {
        "baseColorTexture": {"index": maker.add("textures", {"source": image})}, "metallicFactor": 0,
        "roughnessFactor": 0.5}})  # fmt: skip
    high = width * picture.height / picture.width
    a, b, rim, deep = width / 2, high / 2, 0.09, 0.07
    angle = np.radians(turn_degrees) / 2
    children = []

    def part(points, normals, faces, material):
        children.append(maker.node(root=False, mesh=maker.solid(points, normals, faces, material)))

    corners = np.array([[-a, -b, 0.03], [a, -b, 0.03], [a, b, 0.03], [-a, b, 0.03]], "f4")
    uv = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], "f4")
    children.append(maker.node(root=False, mesh=maker.mesh(corners, [[0, 1, 2], [0, 2, 3]], uv=uv, material=canvas)))
    for low, top in (((-a - rim, -b - rim, 0), (a + rim, -b, deep)), ((-a - rim, b, 0), (a + rim, b + rim, deep)),
                     ((-a - rim, -b, 0), (-a, b, deep)), ((a, -b, 0), (a + rim, b, deep))):  # fmt: skip
        part(*box(low, top), frame)
    maker.node(children=children, translation=list(center), rotation=[0, float(np.sin(angle)), 0, float(np.cos(angle))])


def plinth(maker: Builder, x: float, z: float, half: float, high: float, material: int) -> None:
    """A block with a step below and a plate above."""
    for low, top, more in ((0.0, 0.06, 0.04), (0.06, high - 0.04, 0.0), (high - 0.04, high, 0.025)):
        side = half + more
        maker.node(mesh=maker.solid(*box((x - side, low, z - side), (x + side, top, z + side)), material))


def museum() -> Maker:
    """The room as a glTF file."""
    rng, maker = np.random.default_rng(SEED), Builder()
    oak = maker.add("materials", {"name": "parquet", "pbrMetallicRoughness": {
        "baseColorTexture": {"index": maker.texture(parquet(rng), **REPEAT)}, "metallicFactor": 0,
        "roughnessFactor": 0.28}})  # fmt: skip
    corners = np.array([[-WIDE, 0, FRONT], [WIDE, 0, FRONT], [WIDE, 0, BACK], [-WIDE, 0, BACK]], "f4")
    maker.node(mesh=maker.mesh(corners, [[0, 1, 2], [0, 2, 3]], uv=corners[:, [0, 2]] / 1.9, material=oak))
    wall, white = maker.paint("wall", (0.17, 0.2, 0.21), 0.85), maker.paint("white", (0.78, 0.76, 0.72), 0.7)
    gold, walnut = maker.paint("gold", (0.85, 0.62, 0.3), 0.35, 1.0), maker.paint("walnut", (0.14, 0.075, 0.04), 0.35)
    thick = 0.2
    for low, high in (((-WIDE, 0, BACK - thick), (WIDE, HIGH, BACK)), ((-WIDE - thick, 0, BACK), (-WIDE, HIGH, FRONT)),
                      ((WIDE, 0, BACK), (WIDE + thick, HIGH, FRONT)),
                      ((-WIDE, 0, FRONT), (WIDE, HIGH, FRONT + thick))):  # fmt: skip
        maker.node(mesh=maker.solid(*box(low, high), wall))
    for low, high in ((0, 0.16), (HIGH - 0.12, HIGH)):  # skirting and cornice
        deep = 0.03 if low == 0 else 0.12
        for a, b in (((-WIDE, low, BACK), (WIDE, high, BACK + deep)), ((-WIDE, low, BACK), (-WIDE + deep, high, FRONT)),
                     ((WIDE - deep, low, BACK), (WIDE, high, FRONT))):  # fmt: skip
            maker.node(mesh=maker.solid(*box(a, b), white))
    around = (
        ((-WIDE, FRONT), (-2.6, BACK)),
        ((2.6, FRONT), (WIDE, BACK)),
        ((-2.6, FRONT), (2.6, 3.0)),
        ((-2.6, -1.4), (2.6, BACK)),
    )
    for low, high in around:  # of the skylight: the ceiling
        maker.node(mesh=maker.solid(*box((low[0], HIGH, high[1]), (high[0], HIGH + 0.3, low[1])), white))
    plinth(maker, -2.15, -0.6, 0.62, 0.62, white)
    plinth(maker, 0.0, -1.0, 0.62, 0.5, white)
    plinth(maker, 2.15, -0.6, 0.42, 0.72, white)
    plinth(maker, -4.1, -1.9, 0.4, 0.8, white)
    plinth(maker, 4.1, -1.9, 0.55, 0.62, white)
    hung(maker, "filigree", (-2.35, 2.58, BACK), 1.7, 0, gold)
    hung(maker, "serpent", (2.35, 2.58, BACK), 1.7, 0, gold)
    hung(maker, "petals", (-WIDE, 2.4, -1.9), 1.4, 90, gold)
    hung(maker, "anemone", (WIDE, 2.4, -1.9), 1.4, -90, gold)
    for x, z in ((-0.75, 1.5), (0.65, 1.5)):  # a bench
        maker.node(mesh=maker.solid(*box((x, 0, z), (x + 0.1, 0.36, z + 0.44)), walnut))
    maker.node(mesh=maker.solid(*box((-0.95, 0.36, 1.45), (0.95, 0.43, 1.99)), walnut))
    maker.node(mesh=maker.solid(*box((-0.006, 3.3, -1.006), (0.006, HIGH + 0.15, -0.994)), gold))  # the lamp hangs
    return maker


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(museum().glb())
