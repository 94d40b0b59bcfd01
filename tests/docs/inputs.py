"""The files that README.md's commands read, made small."""

from pathlib import Path

import numpy as np

from assets.makers.gltf_builder import Maker, ball
from renderer.paths import SCENES
from tests.formats.test_gltf_animation import animate


def write_inputs(folder: Path) -> None:
    """Writes program.cb, teapot.obj, lantern.glb, fox.glb, sheep.flame, pack.flame, box.png, arrays into `folder`."""
    (folder / "program.cb").write_text("float main()=>1;\n")
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    faces = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {} {} {}".format(*corner) for corner in corners] + ["f {} {} {} {}".format(*face) for face in faces]
    (folder / "teapot.obj").write_text("\n".join(lines) + "\n")
    fox = Maker()
    fox.node(mesh=ball(fox, 4))
    (folder / "lantern.glb").write_bytes(fox.glb())
    animation = animate(fox, 0, "translation", (0.0, 0.1), [[0, 0, 0], [1, 0, 0]])
    fox.tree["animations"][animation]["name"] = "Run"
    (folder / "fox.glb").write_bytes(fox.glb())
    (folder / "sheep.flame").write_bytes((SCENES / "orb.flame").read_bytes())
    (folder / "pack.flame").write_bytes((SCENES / "voyage.flame").read_bytes())
    rng = np.random.default_rng(5)
    np.save(folder / "huge.npy", rng.standard_normal(1000).astype("f4"))
    band = rng.standard_normal((5, 50)) + 8 * (np.arange(5) == 2)[:, None]
    np.savez(folder / "band.npz", ab=band, kl=2, ku=2)
    np.save(folder / "rhs.npy", rng.standard_normal(50))
    for name in "ab":
        np.save(folder / f"{name}.npy", rng.random((8, 8), "f4"))
    _write_picture(folder / "box.png")


def _write_picture(path: Path) -> None:
    """A picture with a recipe, as `rayfold export` writes it."""
    from renderer import cli

    assert cli.main(["export", "cornell", "-o", str(path), "--size", "16x12", "--samples", "1"]) == 0
