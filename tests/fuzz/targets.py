"""The readers of files from strangers, one fuzz target each: how a file is read, good files to begin with, mutations.

A target reads a path and returns, or raises a UserError; anything else is a finding (run.py). The good files are made
here by the project's own writers; none is copied from elsewhere.
"""

import argparse
import atexit
import base64
import contextlib
import gzip
import importlib
import io
import json
import os
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np

from renderer import host
from renderer.errors import UserError
from tests.fuzz import draws, mutate, structured
from tests.fuzz.mutate import TEXT, Mutator, nested

SCENES = Path(__file__).parents[2] / "scenes"
SCENE_NAMES = sorted(path.name for path in SCENES.glob("*.toml"))
BYTES: tuple[Mutator, ...] = (mutate.bits, mutate.binary, mutate.binary)


@dataclass(frozen=True)
class Target:
    """A reader: `read(path)`; good files by name; mutators; modules that are imported before processes are forked."""

    read: Callable[[Path], object]
    seeds: Callable[[], dict[str, bytes]]
    mutators: tuple[Mutator, ...]
    modules: tuple[str, ...] = ()
    one_line: bool = True  # an error is one line; C$ shows the source line and a caret too
    weight: float = 1.0  # of the inputs of a quick run, 1 for 1,000 inputs a second
    least: int = 8  # inputs of a run over all targets
    generate: Callable[[Random], bytes] | None = None  # makes inputs instead of mutations; their suffix is `suffix`
    suffix: str = ""


TARGETS: dict[str, Target] = {}


def target(name: str, seeds: Callable[[], dict[str, bytes]], mutators: tuple[Mutator, ...], *modules: str, **more):
    """Enters a reader into TARGETS."""

    def enter(read: Callable[[Path], object]) -> Callable[[Path], object]:
        TARGETS[name] = Target(read, seeds, mutators, modules, **more)
        return read

    return enter


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def packed(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def written(name: str, write: Callable[[Path], object]) -> bytes:
    """What a writer of the project puts into a file of this name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def bundled(*patterns: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for pattern in patterns for path in sorted(SCENES.glob(pattern))}


PICTURES = ("cdollar", "flame", "focus", "fractal", "ink", "laplacian", "layout", "lightfield", "raytrace", "reduction")
SCENE_MODULES = tuple(f"renderer.pictures.{name}" for name in PICTURES)

# ---- scenes, sessions, recipes, settings and arguments


@target("scene", lambda: bundled("*.toml"), nested(TEXT), *SCENE_MODULES)
def read_scene(path: Path) -> None:
    from renderer.pictures import load
    from renderer.scene.animation import settings_at
    from renderer.scene.schema import to_table

    scene = load(path)
    for time in (0.0, 1.25, 1e9):
        settings_at(scene, time)
    json.dumps(to_table(scene.settings, path.parent))


def recipe_seeds() -> dict[str, bytes]:
    from renderer.formats.images import write_png
    from renderer.pictures import load, make_recipe

    pixels, out = np.full((2, 3, 3), 90, "u1"), {}
    for name in ("cornell", "koch", "orrery", "mandelbrot", "lightfield"):
        facts = dict(size=[3, 2], samples=4, time=0.5)
        recipe = make_recipe(load(Path(name)), SCENES, **facts)
        out[f"{name}.png"] = written("a.png", lambda path, recipe=recipe: write_png(path, pixels, recipe))
    return out


@target("recipe", recipe_seeds, (mutate.recipe,) * 6 + (mutate.png_chunks, mutate.binary), *SCENE_MODULES)
def read_recipe(path: Path) -> None:
    from renderer.pictures import load
    from renderer.scene.animation import settings_at

    scene = load(path)
    settings_at(scene, scene.time)


def session_seeds() -> dict[str, bytes]:
    from renderer.pictures import expand_layout, load
    from renderer.window.document import scene_text
    from renderer.window.state import layout, session

    scenes = tuple(expand_layout(load(Path("demo"))))
    tree = layout.grid_layout(len(scenes), (1600, 900), 0)
    edited = tuple(load(Path(name)) for name in ("cornell", "orrery"))
    kept = (
        session.Session.of(scenes, layout=tree),
        session.Session(
            tuple(session.SavedPanel(scene, scene_text.opened(scene)) for scene in edited)
        ),  # with the texts of their files
        session.Session.of(
            tuple(load(Path(name)) for name in ("koch", "orrery")), active=1, columns=2, solo=True, clean=False
        ),
    )
    texts = [written("session.json", lambda path, each=each: session.save(each, path)) for each in kept]
    # Absolute paths: inputs lie in other folders, where all were refused for a file that is not there.
    relative = rb'"(\.\./)+(?=' + re.escape(os.fsencode(SCENES.parent)[1:]) + b")"
    return {f"session{n}.json": re.sub(relative, b'"/', text) for n, text in enumerate(texts)}


@target("session", session_seeds, nested((mutate.json_tree, mutate.json_tree, *TEXT)), *SCENE_MODULES,
        "renderer.window.state.session")  # fmt: skip
def read_session(path: Path) -> None:
    from renderer.window.state import layout, session

    found = session.restore(path)
    if found.layout is not None:
        layout.rectangles(found.layout, (0, 0, 800, 600), 4)
    for panel in found.panels:
        if panel.base is not None:
            use_text(panel.scene, panel.base)


def use_text(scene, base) -> None:
    """What the window does with the text of a session's scene: names of its items, and an edit that is written."""
    from renderer.scene.toml_text import TextError
    from renderer.window.document import items
    from renderer.window.document.document import Document

    document = Document(scene, base)
    for item in items.all_items(scene.settings):
        assert document.label(item).isprintable()
    try:
        Document(replace(scene, title="edited"), base).text()
    except TextError as error:  # the window says so, and the scene stays
        raise UserError(str(error)) from error


def recent_seeds() -> dict[str, bytes]:
    names = ["/a/b.toml", "/home/é/flame.flam3", "relative.cb"]
    return {
        "recent.json": json.dumps(names).encode(),
        "many.json": json.dumps([f"/{n}.toml" for n in range(40)]).encode(),
    }


@target(
    "recent", recent_seeds, (mutate.json_tree, mutate.json_tree, *TEXT), "renderer.window.state.session", weight=0.3
)
def read_recent(path: Path) -> None:
    """The list of recent files, as the menu shows it; a damaged one is an empty one."""
    from renderer.window.document.items import shorten
    from renderer.window.state.session import MAX_RECENT, RecentFiles

    files = RecentFiles(path).files
    assert len(files) <= MAX_RECENT and len(set(files)) == len(files)
    for file in files:
        shorten(file.name).encode()
        assert str(file).isprintable()


@cache
def settings_of(name: str):
    from renderer.pictures import load

    scene = load(Path(name))
    return scene.settings, scene.tone


def assignment_seeds() -> dict[str, bytes]:
    texts = (
        "cornell\nview.position=0, 1, 5", "cornell\nmax_depth=3", "cornell\nmaterials[0].color=[1, 0.5, 0]",
        "mirrors\nspheres[1].radius=0.5", "koch\nxforms[0].affine=1,0,0,0,1,0", "koch\npalette=ice", "koch\nquality=50",
        "mandelbrot\nview.center=-0.5, 0.25", "mandelbrot\nmax_iterations=50",
        "orrery\nview={position=[0,1,5],target=[0,0,0]}",
        "cornell\ntone.ev=1.5", "cornell\ntone.curve=agx", "still_life\nmodels[0].scale=2", "ink\ndiffusion=0.5",
        "lightfield\ndisparity=0.25", "reduction\noperation=max",
    )  # fmt: skip
    return {f"{n}.txt": text.encode() for n, text in enumerate(texts)}


@target("set", assignment_seeds, nested(TEXT), *SCENE_MODULES)
def read_assignment(path: Path) -> None:
    from renderer.scene.schema import set_from_text

    name, _, assignment = path.read_bytes().decode("utf-8", "surrogateescape").replace("\0", "").partition("\n")
    settings, tone = settings_of(name if f"{name}.toml" in SCENE_NAMES else "cornell")
    key, equals, text = assignment.partition("=")
    if equals and key.startswith("tone."):
        set_from_text(tone, key[5:], text)
    elif equals:
        set_from_text(settings, key, text)


class Usage(UserError):
    """A mistake in the arguments, as the parser reports it."""


@cache
def command_parser() -> argparse.ArgumentParser:
    from renderer import cli

    def refuse(self: object, status: int = 0, message: str | None = None) -> None:
        raise Usage((message or "").rstrip("\n"))

    cli.Parser.exit = refuse  # type: ignore[assignment]
    return cli.build_parser()


def argument_seeds() -> dict[str, bytes]:
    start = "export cornell -o a.png"
    rows = (
        f"{start} --size 640x480", f"{start} --samples 16", f"{start} --time 1.5", f"{start} --frames 1-48,60",
        f"{start} --fps 24", f"{start} --seed 7", f"{start} --device opencl:0:0", f"{start} --set depth=3",
        f"{start} --bit-depth 16", f"{start} --tile 256", f"{start} --time-limit 2.5", f"{start} --light-field 5x5",
        f"{start} --baseline 0.1", f"{start} --farm local:2", f"{start} --farm tcp://10.0.0.1:8786 --split tiles",
        "view cornell --size 1600x900", "serve cornell --port 8377 --host 127.0.0.1", "sum a.npy --mode exact --json",
        "solve band.npz rhs.npy -o x.npy --block 64", "run product --in a=a.npy --set s=2.5 --target numpy",
        "bench ab --base HEAD --pairs 8 --max-pairs 20 --alpha 0.05 --min-effect 2%", "bench run mirrors --seconds 0.3",
        "bench aa --seed 3 --pairs 4",
    )  # fmt: skip
    return {f"{n}.txt": row.replace(" ", "\n").encode() for n, row in enumerate(rows)}


@target("arguments", argument_seeds, TEXT, "renderer.cli", "renderer.bench", "renderer.export.command",
        "renderer.window.command", "renderer.system.farm", "renderer.numerics.sums.command")  # fmt: skip
def read_arguments(path: Path) -> None:
    from renderer.export.frames import frame_numbers
    from renderer.system.farm import parse_farm

    words = path.read_bytes().decode("utf-8", "surrogateescape").replace("\0", "").split("\n")
    if any(word.startswith(("-h", "--h", "--v")) for word in words):
        return  # help and version
    args = command_parser().parse_args(words[:200])
    if getattr(args, "frames", None):
        frame_numbers(args.frames)
    if getattr(args, "farm", None):
        parse_farm(args.farm, "auto")


# ---- arrays and matrices


def array_seeds() -> dict[str, bytes]:
    rng = np.random.default_rng(1)
    return {
        "f4.npy": npy(rng.standard_normal(60).astype("f4")), "f8.npy": npy(rng.standard_normal((5, 7))),
        "i2.npy": npy(rng.integers(-99, 99, (3, 4, 5)).astype("i2")), "f2.npy": npy(np.ones(9, "f2")),
        "bool.npy": npy(np.ones((2, 3), bool)), "fortran.npy": npy(np.asfortranarray(np.ones((4, 6)))),
        "zero.npy": npy(np.zeros((0, 3))), "one.npy": npy(np.float64(3.0)), "u8.npy": npy(np.arange(5, dtype="u8")),
    }  # fmt: skip


ARRAY_MUTATORS = (mutate.npy_header,) * 4 + BYTES


@target("sum_npy", array_seeds, ARRAY_MUTATORS)
def read_sum_array(path: Path) -> None:
    from renderer.formats.npy import open_npy

    found = open_npy(path)
    count = min(found.count, 1 << 16)
    found.read_into(np.empty(count * found.dtype.itemsize, "u1"), found.count - count)


def table_seeds() -> dict[str, bytes]:
    return {"plain.csv": b"1,2,3\n4,5,6\n", "named.csv": b"x, n\n1.5,2\n-1e9,inf\n\n", "column.csv": b"1\n2\n"}


@target("cdollar_csv", table_seeds, TEXT, "renderer.cdollar.runtime.parameters")
def read_cdollar_table(path: Path) -> None:
    from renderer.cdollar.checker.arrays import array_function
    from renderer.cdollar.ir.dag import Dag
    from renderer.cdollar.ir.types import INT, FunctionType, Scalar
    from renderer.cdollar.runtime.parameters import array_of_table

    for scalar, rank in (("int", 2), ("float", 1)):
        wanted = FunctionType(Scalar(scalar), (INT,) * rank, True)
        array_function(Dag(), array_of_table(path, wanted, "table"), wanted, "table").node.attribute.data.read(())


@target("cdollar_npy", array_seeds, ARRAY_MUTATORS, "renderer.cdollar.checker.arrays")
def read_cdollar_array(path: Path) -> None:
    from renderer.cdollar.checker.arrays import open_array
    from renderer.cdollar.ir.dag import Dag

    value = open_array(Dag(), path, None, str(path))
    data = value.node.attribute.data
    for component in data.read(tuple(slice(0, 64) for _ in range(data.array.ndim))):
        np.array(component)


@target("rhs_npy", array_seeds, ARRAY_MUTATORS)
def read_right_hand_side(path: Path) -> None:
    from renderer.formats.matrices import read_rhs

    for n in (60, 5, 2):
        with contextlib.suppress(UserError):
            read_rhs(path, n)
    read_rhs(path, 4)


def band_seeds() -> dict[str, bytes]:
    rng = np.random.default_rng(2)
    ab = rng.standard_normal((4, 9))
    arrays = {"ab": ab, "kl": np.int64(1), "ku": np.int64(2)}
    small = {"ab": ab.astype("f4"), "kl": np.array([2], "i4"), "ku": np.uint8(1)}
    compressed = dict(shape=np.array([4, 4]), data=rng.standard_normal(4), indices=np.arange(4), indptr=np.arange(5))
    sparse = {
        "csr.npz": npz(format=np.array(b"csr"), **compressed),
        "csc.npz": packed(format=np.array("csc"), **compressed),
        "coo.npz": npz(format=np.array(b"coo"), shape=[3, 3], data=np.ones(2), row=np.array([0, 2]), col=np.arange(2)),
        "dia.npz": npz(format=np.array(b"dia"), shape=[4, 4], data=rng.standard_normal((2, 4)), offsets=[-1, 0]),
    }
    phasors = npz(format=np.array(b"coo"), shape=[3, 3], data=np.ones(2) * 1j, row=np.array([0, 2]), col=np.arange(2))
    sparse |= {"complex.npz": npz(ab=ab * (1 + 1j), kl=1, ku=2), "phasors.npz": phasors}
    return {"stored.npz": npz(**arrays), "packed.npz": packed(**arrays), "small.npz": npz(**small)} | sparse


BAND_MUTATORS = (mutate.zip_members(ARRAY_MUTATORS),) * 3 + BYTES


@target("band_npz", band_seeds, BAND_MUTATORS, "renderer.numerics.band_lu.solver")
def read_band_arrays(path: Path) -> None:
    from renderer.formats.matrices import read_band
    from renderer.numerics.band_lu.solver import checked_max_abs, shaped_band

    band = read_band(path)
    checked_max_abs(shaped_band(band.ab, band.kl, band.ku), band.kl, band.ku)


def npz_seeds() -> dict[str, bytes]:
    numbers = np.random.default_rng(4).standard_normal((4, 3))
    arrays = {"a": numbers, "b": np.asfortranarray(numbers.astype(">f4")), "c": np.zeros((0, 2)), "d": np.arange(5)}
    arrays["e"] = numbers.astype(">c8")
    return {"stored.npz": npz(**arrays), "packed.npz": packed(**arrays)}


@target("sum_npz", npz_seeds, BAND_MUTATORS)
def open_arrays(path: Path) -> None:
    from renderer.formats.npy import COMPLEX, REAL, SUMMABLE, as_reals
    from renderer.formats.npz_arrays import open_npz

    for array in open_npz(path, SUMMABLE, REAL + COMPLEX):
        found = as_reals(array)
        count = min(found.count, 1 << 16)
        found.read_into(np.empty(count * found.dtype.itemsize, "u1"), found.count - count)


@target("sum_pipe", array_seeds, ARRAY_MUTATORS)
def read_pipe(path: Path) -> None:
    from renderer.formats.npy import COMPLEX, REAL, SUMMABLE, open_pipe

    with path.open("rb") as file:
        found = open_pipe(file, "stdin", SUMMABLE, REAL + COMPLEX)
        for start in range(0, min(found.count, 1 << 12), 16):
            found.read_into(np.empty(min(16, found.count - start) * found.dtype.itemsize, "u1"), start)


def matrix_seeds() -> dict[str, bytes]:
    square = np.random.default_rng(3).standard_normal((5, 5))
    arrays = {
        "square.npy": square,
        "fortran.npy": np.asfortranarray(square.astype("f4")),
        "whole.npy": np.eye(4, dtype="i2"),
        "complex.npy": square[:3, :3] * 1j,
    }
    return {name: npy(array) for name, array in arrays.items()}


@target("matrix_npy", matrix_seeds, ARRAY_MUTATORS, "renderer.numerics.band_lu.systems.reordering")
def read_square_array(path: Path) -> None:
    from renderer.formats.matrices import read_band
    from renderer.numerics.band_lu.systems.reordering import narrowing_order

    read_band(path, narrowing_order)


def market_seeds() -> dict[str, bytes]:
    head = "%%MatrixMarket matrix "
    general = head + "coordinate real general\n% a comment\n3 3 4\n1 1 2.5\n2 2 -1e-3\n3 3 4\n3 1 0.5\n"
    symmetric = head + "coordinate integer symmetric\n4 4 5\n1 1 2\n2 1 -1\n2 2 2\n3 3 2\n4 4 7\n"
    pattern = head + "coordinate pattern general\n3 3 3\n1 1\n2 2\n3 3\n"
    dense = head + "array real general\n3 2\n1.0\n2\n3\n4\n5e1\n6\n"
    square = head + "array real symmetric\n2 2\n1\n2\n3\n"
    hermitian = head + "coordinate complex hermitian\n2 2 3\n1 1 2 0\n2 1 -1 0.5\n2 2 3 0\n"
    pairs = head + "array complex general\n2 1\n1 2\n-3 4e0\n"
    texts = {"general": general, "symmetric": symmetric, "pattern": pattern, "dense": dense, "square": square}
    texts |= {"hermitian": hermitian, "pairs": pairs}
    plain = {f"{name}.mtx": text.encode() for name, text in texts.items()}
    return plain | {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in plain.items()}


def market(data: bytes, rng: Random) -> bytes:
    """Changes a Matrix Market file, inside of gzip where it is packed."""
    if data[:2] == b"\x1f\x8b":
        return mutate.gzipped(TEXT)(data, rng)
    return rng.choice((*TEXT, mutate.lines))(data, rng)


@target("mtx_band", market_seeds, (market,) * 5 + (mutate.binary,), "scipy.io", "renderer.numerics.band_lu.solver")
def read_market_band(path: Path) -> None:
    from renderer.formats.matrices import read_band
    from renderer.numerics.band_lu.solver import checked_max_abs, shaped_band

    band = read_band(path)
    checked_max_abs(shaped_band(band.ab, band.kl, band.ku), band.kl, band.ku)


@target("mtx_rhs", market_seeds, (market,) * 5 + (mutate.binary,), "scipy.io")
def read_market_right_hand_side(path: Path) -> None:
    from renderer.formats.matrices import read_rhs

    read_rhs(path, 3)


# ---- images


def image_seeds() -> dict[str, bytes]:
    from PIL import Image

    from renderer.formats.images import write_png

    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (9, 12, 4), "u1")
    out = {
        "rgba.png": written("a.png", lambda path: write_png(path, pixels)),
        "deep.png": written("a.png", lambda path: write_png(path, pixels[..., :3].astype("u2") * 257)),
    }
    kinds = (("P", "PNG"), ("L", "PNG"), ("1", "PNG"), ("RGB", "JPEG"), ("L", "JPEG"), ("RGB", "TIFF"), ("RGB", "BMP"),
             ("RGBA", "WEBP"), ("RGB", "PPM"), ("P", "GIF"))  # fmt: skip
    for mode, kind in kinds:
        file = io.BytesIO()
        Image.fromarray(pixels).convert("RGB").convert(mode).save(file, kind)
        out[f"{mode}.{kind.lower()}"] = file.getvalue()
    return out


@target("image", image_seeds, (mutate.png_chunks, *BYTES, *BYTES), "PIL.Image", "PIL.PngImagePlugin")
def read_picture(path: Path) -> None:
    from renderer.formats.images import read_image

    read_image(path)


def exr_seeds() -> dict[str, bytes]:
    from renderer.formats.images import write_exr

    rng = np.random.default_rng(4)
    rgb, alpha = rng.random((6, 8, 3)).astype("f4"), rng.random((5, 4, 4)).astype("f4")
    files = {
        "rgb.exr": {"RGB": rgb}, "rgba.exr": {"RGBA": alpha},
        "layers.exr": {"RGB": rgb, "depth": rgb[..., 0], "id": rgb[..., 0].astype("u4")},
    }  # fmt: skip
    return {
        name: written("a.exr", lambda path, layers=layers: write_exr(path, layers, {"a": 1}))
        for name, layers in files.items()
    }


@target("exr", exr_seeds, BYTES, "OpenEXR")
def read_exr(path: Path) -> None:
    from renderer.formats.images import read_exr

    read_exr(path)


def hdr_seeds() -> dict[str, bytes]:
    head = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\nEXPOSURE=1.0\n\n-Y 3 +X 9\n"
    flat = bytes([120, 90, 60, 129]) * 27
    line = b"\2\2\0\x09" + b"".join(bytes([128 + 9, value]) for value in (120, 90, 60, 129))
    mixed = b"\2\2\0\x09" + b"".join(bytes([4, 1, 2, 3, value, 128 + 5, value]) for value in (120, 90, 60, 129))
    return {"flat.hdr": head + flat, "runs.hdr": head + line * 3, "mixed.hdr": head + mixed + line + mixed}


@target("hdr", hdr_seeds, (mutate.numbers, mutate.text, *BYTES, *BYTES), "renderer.raytracing.lights.environment")
def read_environment(path: Path) -> None:
    from renderer.raytracing.lights.environment import environment_map
    from renderer.raytracing.settings import Environment, Settings

    environment_map(replace(Settings(), environment=Environment(file=str(path))))


def ies_seeds() -> dict[str, bytes]:
    head = b"IESNA:LM-63-1995\r\n[TEST] made here\r\nTILT=%s\r\n"
    lamp = b"1 1000 1.5 3 %d 1 2 0.1 0.1 0\r\n0.9 1.0 60\r\n0 45 90\r\n"
    tilted = head % b"INCLUDE" + b"1 3\n0 90 180\n1 1 1\n" + lamp % 1 + b"0\n100,50,0\n"
    return {
        "round.ies": head % b"NONE" + lamp % 1 + b"0\r\n100 50 0\r\n",
        "quadrant.ies": head % b"NONE" + lamp % 2 + b"0 90\n100 50 0\n80 40 1e-1\n",
        "half.ies": head % b"NONE" + lamp % 3 + b"90 180 270\n100 50 0\n80 40 0\n60 30 0\n",
        "tilted.ies": tilted,
    }


def cube_seeds() -> dict[str, bytes]:
    """Look-up tables of one and of three dimensions."""
    corners = "".join(f"{r} {g} {b}\n" for b in (0, 1) for g in (0, 1) for r in (0, 1))
    return {
        "three.cube": f'TITLE "a"\nLUT_3D_SIZE 2\nDOMAIN_MIN 0 0 0\nDOMAIN_MAX 1 1 1\n{corners}'.encode(),
        "one.cube": b"# one\nLUT_1D_SIZE 3\nLUT_1D_INPUT_RANGE 0 1\n0 0 0\n.5 .4 .3\n1 1 1e0\n",
    }


@target("cube", cube_seeds, (mutate.numbers, mutate.text, *BYTES), "renderer.formats.cube")
def read_lookup_table(path: Path) -> None:
    """A .cube file to the rows of a grading."""
    from renderer.images.color_grade import grade_rows
    from renderer.scene.scene import ToneMapping

    grade_rows(ToneMapping(lut=str(path)))


@target("ies", ies_seeds, (mutate.numbers, mutate.text, *BYTES), "renderer.raytracing.lights.light_profiles")
def read_ies(path: Path) -> None:
    from renderer.raytracing.lights.light_profiles import profile_rows
    from renderer.raytracing.settings import PointLight

    rows = profile_rows([PointLight(file=str(path))], 0)
    assert all(np.isfinite(array[:, :3]).all() for array in rows)


@target(
    "density_grid", lambda: {"grid.npy": npy(np.ones((2, 3, 4), "f4"))}, ARRAY_MUTATORS, "renderer.raytracing.volumes"
)
def read_grid(path: Path) -> None:
    from renderer.raytracing.volumes import read_grid

    read_grid(path)


# ---- meshes and models


def mesh_seeds() -> dict[str, bytes]:
    import struct

    from tests.formats.test_mesh import CUBE, ply_header, stl

    corners = np.random.default_rng(5).normal(size=(2, 3, 3))
    triangle = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvn 0 0 1\nvt 0 0\nvt 1 0\nvt 0 1\nusemtl a\ng b\nf 1/1/1 2/2/1 3/3/1\n"
    ascii_ply = ply_header("ascii", 3, 1) + "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
    binary_ply = ply_header("binary_little_endian", 3, 1).encode() + struct.pack("<9fB3i", *range(9), 3, 0, 1, 2)
    more = "".join(f"property {kind}\n" for kind in ("uchar red", "uchar green", "uchar blue", "float s", "float t"))
    colored = ply_header("binary_big_endian", 4, 2).replace("float z\n", f"float z\n{more}")
    mixed = colored.encode() + b"".join(struct.pack(">3f3B2f", k, k % 2, 0, 9, 99, 255, 0, 1) for k in range(4))
    mixed += struct.pack(">B3iB4i", 3, 0, 1, 2, 4, 0, 1, 2, 3)
    strips = ply_header("binary_little_endian", 4, 1).replace("face", "tristrips").replace("uchar", "int").encode()
    strips += struct.pack("<12f7i", *range(12), 6, 0, 1, 2, -1, 1, 2)
    facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    return {
        "cube.obj": CUBE.encode(), "normals.obj": triangle.encode(), "binary.ply": binary_ply,
        "colors.obj": b"v 0 0 0 1 0 0\nv 1 0 0 0 1 0\nv 0 1 0 0 0 1\nvt 0 0\n"
        b"f -3/1 -2/1 \\\n -1/1\ns 1\nl 1 2\n",
        "strips.ply": strips, "mixed.ply": mixed, "colors.off": b"COFF\n3 1 0\n0 0 0 1 0 0 1\n1 0 0 0 1 0 1\n"
        b"0 1 0 0 0 1 1\n3 0 1 2 255 0 0\n",
        "plain.off": b"OFF 4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n3 0 1 2\n",
        "ascii.ply": ascii_ply.encode(), "binary.stl": stl(2, corners),
        "ascii.stl": f"solid a\n{facet}{facet}endsolid a\n".encode(),
    }  # fmt: skip


@target("mesh", mesh_seeds, (*TEXT, *BYTES, mutate.binary), "renderer.pictures.raytrace", weight=0.2)
def read_mesh(path: Path) -> None:
    from renderer.formats.mesh import load_part
    from renderer.pictures import load

    load(path)
    load_part(path)


def model_seeds() -> dict[str, bytes]:
    from assets.makers.gltf_builder import Maker, ball, square
    from tests.formats.test_mesh import triangle_glb

    maker = Maker()
    texture = maker.texture(np.full((2, 2, 3), 128, "u1"), wrapS=33071)
    material = maker.add("materials", {
        "name": "a", "alphaMode": "MASK", "normalTexture": {"index": texture}, "emissiveFactor": [1, 0.5, 0],
        "extensions": {"KHR_materials_ior": {"ior": 1.4}, "KHR_materials_transmission": {"transmissionFactor": 1}},
        "pbrMetallicRoughness": {"baseColorTexture": {"index": texture}, "baseColorFactor": [1, 1, 0, 1]}})  # fmt: skip
    maker.node(mesh=square(maker, material=material), rotation=[0, 0, 0.7071, 0.7071], scale=[1, 2, 3])
    camera = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.5, "aspectRatio": 1.6}})
    maker.node(camera=camera, translation=[0, 1, 5])
    maker.node(extensions=maker.light(type="spot", intensity=30, spot={"innerConeAngle": 0.2, "outerConeAngle": 0.5}))
    maker.node(extensions=maker.light(type="directional", color=[1, 0.5, 0.5]))
    round_one = Maker()
    round_one.node(mesh=ball(round_one, 3), matrix=[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 2, 3, 1])
    skinned = skinned_model()
    return {
        "triangle.glb": triangle_glb(), "scene.glb": maker.glb(), "scene.gltf": maker.gltf().encode(),
        "ball.glb": round_one.glb(), "skin.glb": skinned.glb(), "skin.gltf": skinned.gltf().encode(),
        "moved.glb": animated_model(skinned).glb(), "moved.gltf": skinned.gltf().encode(),
    }  # fmt: skip


def animated_model(maker):
    """The skinned model with morph targets and an animation of every path and interpolation."""
    primitive = maker.tree["meshes"][0]["primitives"][0]
    primitive["targets"] = [{"POSITION": maker.array(np.eye(4, 3) * n)} for n in (1, 2)]
    samplers, channels = [], []
    for node, path, width, kind in (
        (0, "translation", 3, "LINEAR"), (1, "rotation", 4, "CUBICSPLINE"), (1, "scale", 3, "STEP"),
        (2, "weights", 2, "LINEAR"),
    ):  # fmt: skip
        values = np.linspace(0.1, 1.0, 2 * width * (3 if kind == "CUBICSPLINE" else 1))
        values = values if path == "weights" else values.reshape(-1, width)
        samplers.append({"input": maker.array([0.5, 1.5]), "output": maker.array(values), "interpolation": kind})
        channels.append({"sampler": len(channels), "target": {"node": node, "path": path}})
    maker.add("animations", {"name": "a", "samplers": samplers, "channels": channels})
    return maker


def skinned_model():
    from assets.makers.gltf_builder import Maker

    maker = Maker()
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], "f4")
    others = {
        "JOINTS_0": maker.array(np.array([[0, 1, 0, 0]] * 4), "u1"),
        "WEIGHTS_0": maker.array(np.array([[0.5, 0.5, 0, 0]] * 4), "f4"),
    }
    mesh = maker.mesh(vertices, [[0, 1, 2], [1, 3, 2]], others=others)
    joints = [maker.node(translation=[0, 0, n]) for n in range(2)]
    inverse = maker.array(np.stack([np.eye(4).ravel()] * 2), "f4")
    skin = maker.add("skins", {"joints": joints, "inverseBindMatrices": inverse})
    maker.node(mesh=mesh, skin=skin)
    return maker


def library_seeds() -> dict[str, bytes]:
    keys = "newmtl a\nKd 1 0.5 0\nKs .5 .5 .5\nNs 100\nillum 2\nd 0.5\nmap_Kd -s 2 2 1 -o .1 0 0 -clamp on a.png\n"
    more = (
        "newmtl b\nPr 0.5\nPm 1\nPc 1\naniso 1\nmap_Pr -imfchan g a.png\nbump -bm 2 a.png\nillum 7\nNi 1.5\nTf 1 1 1\n"
    )
    return {"phong.mtl": keys.encode(), "pbr.mtl": (more + "map_d -mm 0 1 a.png\nmap_Ns a.png\n").encode()}


@target("mtl", library_seeds, (*TEXT, *BYTES), "PIL")
def read_library(path: Path) -> None:
    from renderer.formats.images import write_png
    from renderer.formats.mesh import load_model

    picture, mesh = path.with_name("a.png"), path.with_name("a.obj")
    if not picture.exists():
        write_png(picture, np.arange(48, dtype="u1").reshape(4, 4, 3))
    mesh.write_text(f"mtllib {path.name}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\nusemtl b\nf 1 2 3\n")
    load_model(mesh)


@target("gltf", model_seeds, (mutate.glb_json,) * 6 + BYTES, "renderer.pictures.raytrace")
def read_model(path: Path) -> None:
    from renderer.formats.mesh import load_mesh
    from renderer.pictures import load
    from renderer.raytracing.models.motion import poses_of
    from renderer.scene.animation import settings_at

    scene = load(path)
    for time in (0.0, 0.75, 1e9):
        settings = settings_at(scene, time)
        poses_of(settings.models, (time, time + 0.1))
    if path.suffix == ".glb":
        load_mesh(path)


def extension_seeds() -> dict[str, bytes]:
    """Files with every extension that no native decoder reads."""
    from assets.makers.gltf_builder import Maker, square

    maker = Maker()
    info = {"index": maker.texture(np.full((2, 2, 4), 128, "u1"))}
    moved = {**info, "extensions": {"KHR_texture_transform": {"offset": [0, 1], "rotation": 1, "texCoord": 1}}}
    rough = {"glossinessFactor": 0.5, "specularGlossinessTexture": info, "diffuseTexture": moved}
    coat = {"clearcoatFactor": 1, "clearcoatTexture": moved, "clearcoatNormalTexture": {**info, "scale": 0.5}}
    volume = {"thicknessFactor": 1, "attenuationDistance": 2, "attenuationColor": [1, 0.5, 0]}
    first = maker.add("materials", {"extensions": {"KHR_materials_pbrSpecularGlossiness": rough, "ACME": {}}})
    extensions = {"KHR_materials_clearcoat": coat, "KHR_materials_volume": volume, "KHR_materials_unlit": {}}
    second = maker.add("materials", {"extensions": extensions, "occlusionTexture": {**info, "strength": 0.5}})
    mesh = square(maker, material=first)
    mappings = {"mappings": [{"variants": [0], "material": second}]}
    maker.tree["meshes"][mesh]["primitives"][0]["extensions"] = {"KHR_materials_variants": mappings}
    maker.tree["extensions"] = {"KHR_materials_variants": {"variants": [{"name": "a"}]}}
    places = {"TRANSLATION": maker.array(np.eye(3)), "SCALE": maker.array(np.ones((3, 3)))}
    maker.node(mesh=mesh, extensions={"EXT_mesh_gpu_instancing": {"attributes": places},
                                      "KHR_node_visibility": {"visible": True}})  # fmt: skip
    seeds = {"extensions.glb": maker.glb(), "strokes.glb": points_lines_and_plain_ktx2()}
    return {**seeds, **{f"{n}.glb": data for n, data in meshopt_models().items()}}


def points_lines_and_plain_ktx2(scheme: int = 3, pack: Callable[[bytes], bytes] = zlib.compress) -> bytes:
    """A file of points, lines and a strip, with a picture of KTX 2 in plain pixels."""
    from assets.makers.gltf_builder import Maker

    maker = Maker()
    words = struct.pack("<9I", 37, 1, 2, 2, 0, 0, 1, 1, scheme) + bytes(32)
    body = pack(bytes(16))
    ktx2 = b"\xabKTX 20\xbb\r\n\x1a\n" + words + struct.pack("<3Q", 104, len(body), 16) + body
    image = maker.add("images", {"bufferView": maker.view(ktx2)})
    texture = {"index": maker.add("textures", {"extensions": {"KHR_texture_basisu": {"source": image}}})}
    material = maker.add("materials", {"emissiveFactor": [1, 1, 1], "emissiveTexture": texture})
    for mode in (0, 1, 2, 3):
        maker.node(mesh=maker.mesh(np.eye(3), [[0, 1, 2]], uv=np.zeros((3, 2)), material=material, mode=mode))
    return maker.glb()


def peer_bytes() -> dict:
    path = Path(__file__).parents[1] / "formats" / "peer_bytes.json"
    return json.loads(path.read_text(encoding="utf-8"))


def meshopt_models() -> dict[str, bytes]:
    """A file for each mode of meshopt's compression."""
    from assets.makers.gltf_builder import Maker

    out = {}
    for name in ("triangles 2", "indices 4", "attributes 0 2", "attributes 1 2", "exponential 12"):
        case = next(case for case in peer_bytes()["meshopt"] if case["name"] == name)
        maker = Maker()
        maker.view(base64.b64decode(case["data"]))
        table = {**maker.tree["bufferViews"][0], "byteStride": case["stride"],
                 **{key: case[key] for key in ("count", "mode", "filter")}}  # fmt: skip
        size = case["count"] * case["stride"]
        maker.tree["bufferViews"][0] |= {"byteLength": size, "extensions": {"EXT_meshopt_compression": table}}
        if case["mode"] == "ATTRIBUTES":
            entry = {"bufferView": 0, "componentType": 5126, "count": case["count"], "type": "VEC3"}
            primitive = {"attributes": {"POSITION": maker.add("accessors", entry)}}
        else:
            kind = 5123 if case["stride"] == 2 else 5125
            entry = {"bufferView": 0, "componentType": kind, "count": 3, "type": "SCALAR"}
            indices = maker.add("accessors", entry)
            primitive = {"attributes": {"POSITION": maker.array(np.eye(40, 3))}, "indices": indices}
        maker.node(mesh=maker.add("meshes", {"primitives": [primitive]}))
        out[name] = maker.glb()
    return out


@target("gltf_extensions", extension_seeds, (mutate.glb_json,) * 3 + BYTES * 2, "renderer.formats.gltf")
def read_extensions(path: Path) -> None:
    from renderer.formats import gltf
    from renderer.raytracing.models.gltf_shapes import mesh_arrays

    model = gltf.load(path)
    for mesh, matrix in model.mesh_nodes[:4]:
        mesh_arrays(model, mesh, matrix, 0)
    for variant in model.variants[:1]:
        gltf.load(path, variant)


def native_seeds() -> dict[str, bytes]:
    """What the native decoders read: bytes of Draco, of ETC1S, UASTC and Zstandard in KTX 2."""
    seeds = {f"{name}.ktx2": base64.b64decode(data) for name, data in peer_bytes()["ktx2"].items()}
    with contextlib.suppress(ImportError):
        import DracoPy

        points, faces = np.eye(4, 3, dtype="f4"), np.array([[0, 1, 2], [1, 2, 3]], "u4")
        seeds["square.drc"] = DracoPy.encode(points, faces, tex_coord=np.eye(4, 2))
        seeds["square.glb"] = compressed_model(DracoPy.encode(points, faces), seeds["uastc.ktx2"])
    with contextlib.suppress(ImportError):
        import zstandard

        seeds["noise.zst"] = zstandard.compress(bytes(range(256)) * 9)
        seeds["zstandard.glb"] = points_lines_and_plain_ktx2(2, zstandard.compress)
    return seeds


def compressed_model(draco: bytes, ktx2: bytes) -> bytes:
    """A square of Draco with a picture of KTX 2."""
    from assets.makers.gltf_builder import Maker

    maker = Maker()
    image = maker.add("images", {"bufferView": maker.view(ktx2)})
    texture = maker.add("textures", {"extensions": {"KHR_texture_basisu": {"source": image}}})
    material = maker.add("materials", {"emissiveTexture": {"index": texture}})
    points = maker.add("accessors", {"componentType": 5126, "count": 4, "type": "VEC3"})
    table = {"bufferView": maker.view(draco), "attributes": {"POSITION": 0}}
    primitive = {"attributes": {"POSITION": points}, "material": material}
    primitive["extensions"] = {"KHR_draco_mesh_compression": table}
    maker.node(mesh=maker.add("meshes", {"primitives": [primitive]}))
    return maker.glb()


@target(
    "native",
    native_seeds,
    (mutate.glb_json, *BYTES),
    "renderer.formats.codecs",
    "renderer.formats.gltf",
    weight=0.01,
    least=2,
)
def read_native(path: Path) -> None:
    from renderer.formats import gltf
    from renderer.formats.codecs import Job, decode

    if path.suffix == ".glb":
        gltf.load(path)
        return
    codec = {".drc": "draco", ".zst": "zstd"}.get(path.suffix, "basis")
    decode(path, [Job(codec, "it", path.read_bytes(), 1 << 20)])


# ---- flames


def flame_seeds() -> dict[str, bytes]:
    """The bundled flames, and one of JWildfire with layers, final xforms and solid rendering."""
    xform = (
        '<xform weight="1" color="0.3" symmetry="0.5" color_type="DISTANCE" linear3D="0.5" material="1" mod_hue="0.2" '
        'mod_hue_speed="-0.5" coefs="0.6 0.2 -0.2 0.6 0.3 0" yzCoefs="1 0 0 0.5 0 1" zxPost="0 1 -1 0 0 0"/>'
    )
    final, colors = xform.replace("xform weight", "finalxform weight"), '<color index="0" rgb="9 90 200"/>'
    solid = (
        'sld_render_enabled="1" sld_render_ao_search_radius="8" sld_render_material_count="2" '
        'sld_render_material_diffuse1="0.4" sld_render_material_light_diif_func1="COSA_HALVE" '
        'sld_render_ligtht_count="1" sld_render_light_altitude0="30" sld_render_light_red0="1"'
    )
    text = (
        f'<jwf-flame version="JWildfire V7.00" size="64 48" scale="20" cam_zdimish="0.1" cam_zdimcolor="1 0 0" {solid}>'
        f'<layer weight="0.5" density="0.7">{xform}{final}{final}{colors}</layer>'
        f'<layer visible="1">{xform}{xform}{colors}</layer></jwf-flame>'
    )
    return bundled("*.flame") | {"jwildfire.flame": text.encode()}


@target("flame", flame_seeds, nested(TEXT), "renderer.pictures.flame")
def read_flame(path: Path) -> None:
    from renderer.pictures import load
    from renderer.scene.animation import settings_at

    scene = load(path)
    settings_at(scene, 0.5)


def palette_seeds() -> dict[str, bytes]:
    entries = "".join(f"00{n:02X}{255 - n:02X}80" for n in range(256))
    one = f'<palette number="0" name="ramp" data="{entries}"/>\n'
    seventh = one.replace("0", "7", 1)
    return {"palettes.xml": f"<palettes>\n{one}{seventh}</palettes>\n".encode()}


@target("palettes", palette_seeds, nested(TEXT), "renderer.flames.palettes")
def read_palettes(path: Path) -> None:
    from renderer.flames import palettes

    os.environ["flam3_palettes"] = str(path)
    palettes.flam3_palettes.cache_clear()
    for number in list(palettes.flam3_palettes()) or [0]:
        palettes.flam3_palette(number, 0.25)


# ---- C$


@target("cdollar", lambda: bundled("*.cb"), nested(TEXT), "renderer.cdollar.runtime.evaluate",
        one_line=False, weight=0.05)  # fmt: skip
def read_program(path: Path) -> None:
    from renderer.cdollar.runtime.evaluate import load_program, main_function
    from renderer.cdollar.targets.numpy.target import NumpyTarget

    main_function(load_program(path, NumpyTarget))


@target("cdollar_editor", lambda: bundled("*.cb"), nested(TEXT), "renderer.cdollar.tools.formatter", one_line=False,
        weight=0.05)  # fmt: skip
def edit_program(path: Path) -> None:
    from renderer.cdollar.runtime.evaluate import read_source
    from renderer.cdollar.tools.formatter import format_text
    from renderer.cdollar.tools.language_server import Analysis

    text = read_source(path).text
    found = Analysis(text)
    found.completions(len(text) // 2)
    found.called(len(text) // 2)
    found.rename_refusal(found.index.spans(len(text) // 3), "other")
    once = format_text(text)
    assert format_text(once) == once


@target("cdollar_set", lambda: {f"{n}.txt": text.encode() for n, text in enumerate(("5", "1.5", "true", "(1, 2, 3)"))},
        TEXT, "renderer.cdollar.runtime.parameters")  # fmt: skip
def read_number(path: Path) -> None:
    from renderer.cdollar.ir.types import BOOL, FLOAT, INT, UINT, Vector
    from renderer.cdollar.runtime.parameters import parse_assignments, parse_number

    text = path.read_bytes().decode("utf-8", "surrogateescape").replace("\0", "")
    values = parse_assignments([f"name={text}"], "--set")
    for type_ in (BOOL, FLOAT, INT, UINT, Vector("float", 3)):
        with contextlib.suppress(UserError):
            parse_number(values["name"], type_, "name")
    parse_number(values["name"], Vector("int", 2), "name")


def schedule_seeds() -> dict[str, bytes]:
    from renderer.cdollar.targets.schedule import Schedule, schedule_text

    chosen = {"3f2a": Schedule(tile_rows=64, thread_rows=4), "77": Schedule(group_size=128)}
    return {"a.schedule.toml": schedule_text(chosen, {"77": "a map"}).encode()}


@target("schedule", schedule_seeds, nested(TEXT), "renderer.cdollar.targets.schedule")
def read_schedule(path: Path) -> None:
    from renderer.cdollar.targets.schedule import read_schedules

    read_schedules(path)


# ---- light fields


def field_seeds() -> dict[str, bytes]:
    rng = np.random.default_rng(6)
    views = rng.integers(0, 256, (2, 3, 4, 5, 3), "u1")
    v, u = np.mgrid[:2, :3].astype("f8")
    return {
        "color.npy": npy(views), "gray.npy": npy(views[..., 0]), "floats.npy": npy(views.astype("f4") / 255),
        "deep.npy": npy(views.astype("u2")), "fortran.npy": npy(np.asfortranarray(views)),
        "stored.npz": npz(views=views, u=u, v=v), "packed.npz": packed(views=views, u=u, v=v),
    }  # fmt: skip


def field_array(data: bytes, rng: Random) -> bytes:
    """Changes a .npy or .npz file."""
    return rng.choice(BAND_MUTATORS if data[:2] == b"PK" else ARRAY_MUTATORS)(data, rng)


@target("field_array", field_seeds, (field_array,), "renderer.lightfields.light_field")
def read_field_array(path: Path) -> None:
    from renderer.lightfields.light_field import read_light_field

    found = read_light_field(path)
    int(np.asarray(found.pixels[:4]).sum())  # as the upload touches it
    found.grid_rms_error()


def view_zip(images: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in images.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


def view_images() -> list[bytes]:
    from renderer.formats.images import png_bytes

    rng = np.random.default_rng(7)
    return [png_bytes(rng.integers(0, 256, (4, 5, 3), "u1")) for _ in range(4)]


def zip_seeds() -> dict[str, bytes]:
    views = view_images()
    stanford = {f"out_{n // 2:02d}_{n % 2:02d}_{n // 2}.5_{-(n % 2)}.25_.png": data for n, data in enumerate(views)}
    hci = {f"input_Cam{n:03d}.png": data for n, data in enumerate(views)}
    hci["parameters.cfg"] = b"[extrinsics]\nnum_cams_x = 2\nnum_cams_y = 2\n"
    entries = "".join(f'<subaperture src="v{n}.png" u="{n % 2}" v="{n // 2}"/>' for n in range(4))
    viewer = {f"v{n}.png": data for n, data in enumerate(views)}
    viewer["light.xml"] = f"<lightfield>{entries}</lightfield>".encode()
    return {"stanford.zip": view_zip(stanford), "hci.zip": view_zip(hci), "viewer.zip": view_zip(viewer)}


INSIDE = (mutate.png_chunks, mutate.binary, mutate.text, mutate.numbers)


@target("field_zip", zip_seeds, (mutate.zip_members(INSIDE),) * 3 + BYTES, "renderer.lightfields.light_field",
        "PIL.PngImagePlugin", weight=0.5)  # fmt: skip
def read_field_zip(path: Path) -> None:
    from renderer.lightfields.light_field import read_light_field, view_resolution

    with contextlib.suppress(UserError):
        view_resolution(path)
    read_light_field(path).grid_rms_error()


def member_seeds() -> dict[str, bytes]:
    seeds = {"input_Cam002.png": view_images()[2], "parameters.cfg": b"[extrinsics]\nnum_cams_x = 2\nnum_cams_y = 2\n"}
    return seeds | {"light.xml": b'<a><subaperture src="input_Cam000.png" u="0" v="1"/></a>'}


@target("field_folder", member_seeds, (*INSIDE, *INSIDE, mutate.nesting), "renderer.lightfields.light_field",
        "PIL.PngImagePlugin", weight=0.5)  # fmt: skip
def read_field_folder(path: Path) -> None:
    """One damaged file in a folder of three good views; an .xml decides over the names."""
    from renderer.lightfields.light_field import read_light_field

    folder = path.with_suffix(".views")
    if not folder.is_dir():
        folder.mkdir()
        for n, data in enumerate(view_images()):
            (folder / f"input_Cam{n:03d}.png").write_bytes(data)
    name = {".png": "input_Cam002.png", ".cfg": "parameters.cfg", ".xml": "light.xml"}[path.suffix]
    damaged = folder / name
    damaged.write_bytes(path.read_bytes())
    try:
        read_light_field(folder).grid_rms_error()
    finally:
        if path.suffix != ".png":
            damaged.unlink()


# ---- lessons

LESSON_PARTS = b"\n=== lesson.md ===\n"  # between the two files of a lesson


def lesson_seeds() -> dict[str, bytes]:
    """The two files of each bundled lesson as one."""
    out = {}
    for folder in sorted((SCENES.parent / "assets" / "lessons").iterdir()):
        parts = [(folder / name).read_bytes() for name in ("lesson.toml", "lesson.md")]
        out[f"{folder.name}.lesson"] = LESSON_PARTS.join(parts)
    return out


@target("lesson", lesson_seeds, nested(TEXT), "renderer.lessons.page", *SCENE_MODULES, weight=0.05, least=6)
def read_lesson(path: Path) -> None:
    """Reads a lesson, and writes its page without what devices draw and measure."""
    from renderer.lessons.lesson import read_lesson
    from renderer.lessons.page import StepResult, step_words
    from renderer.pages.markdown import blocks

    folder = path.with_suffix(".folder")
    folder.mkdir(exist_ok=True)
    toml, _, words = path.read_bytes().partition(LESSON_PARTS)
    (folder / "lesson.toml").write_bytes(toml)
    (folder / "lesson.md").write_bytes(words)
    lesson = read_lesson(folder)
    for step in lesson.steps:
        blocks(step.text)
        text = step_words(lesson, step, StepResult(), folder / "x.html")
        assert "<script" not in text.lower() and "javascript:" not in re.sub(r">[^<]*<", "><", text.lower()), text


# ---- benchmarks, farms


def record_seeds() -> dict[str, bytes]:
    header = {"schema": "bench/1", "commit": "a" * 40, "dirty": False, "time": "2026-01-01"}
    row = {"case": "mirrors/depth=6", "rate": 61.5, "unit": "fps", "median_ms": 16.2, "work": 1.0, "device": "cpu",
           "commit": "", "wall_ns": [16_000_000, 17_000_000], "device_ns": [15_000_000, 15_500_000], "clock": "device",
           "counters": {"rays": 100}, "digest": "ab", "peer": {"ratio": 1.5, "name": "x"}}  # fmt: skip
    other = {**row, "case": "sum/n=1000", "rate": 5e9, "unit": "B/s", "device_ns": None, "clock": "wall"}
    records = "".join(json.dumps(each) + "\n" for each in (header, row, other, {**row, "rate": 60.0}))
    head = {"schema": "bench/1", "refs": {"base": "a" * 40, "head": "b" * 40, "dirty": False},
            "settings": {"pairs": 2, "max_pairs": 3}, "host": {"cpu": "x"}}  # fmt: skip
    rows = [head]
    for pair in range(2):
        for arm in ("base", "head"):
            rows.append({**row, "case": "mirrors", "arm": arm, "stage": "screen", "pair": pair, "attempt": 0,
                         "turns": [1, 1], "throttle": 0})  # fmt: skip
    rows.append({"case": "mirrors", "equal": True, "worst": 0})
    rows.append({"case": "fern", "arm": "base", "stage": "screen", "pair": 0, "attempt": 0, "crash": "boom"})
    return {"run.jsonl": records.encode(), "ab.jsonl": "".join(json.dumps(each) + "\n" for each in rows).encode()}


RECORD_MUTATORS = nested((mutate.json_lines,) * 6 + TEXT)
BENCH_MODULES = ("renderer.bench.report", "renderer.bench.answer")


@target("bench", record_seeds, RECORD_MUTATORS, *BENCH_MODULES, weight=0.1)
def read_records(path: Path) -> None:
    from renderer.bench import ab, report

    args = SimpleNamespace(files=[path], file=path, json=False, alpha=0.05, min_effect=0.02, fail_on_undecided=False)
    with contextlib.redirect_stdout(io.StringIO()):
        with contextlib.suppress(UserError):
            report.history(args)  # type: ignore[arg-type]
        ab.reanalyze(args)  # type: ignore[arg-type]


@target("bench_report", record_seeds, RECORD_MUTATORS, *BENCH_MODULES, weight=0.005, least=3)
def read_report(path: Path) -> None:
    from renderer.bench import report

    args = SimpleNamespace(files=[path], output=path.with_suffix(".html"), text=False, badge=None, force=True)
    with contextlib.redirect_stdout(io.StringIO()):
        report.report(args)  # type: ignore[arg-type]


def manifest_seeds() -> dict[str, bytes]:
    rows = [
        {"frame": n, "file": f"a_{n:04d}.png", "sha256": "0" * 64, "recipe": "1" * 64, "seconds": 0.5, "device": "cpu"}
        for n in range(1, 4)
    ]
    return {"a.frames.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()}


@target("manifest", manifest_seeds, RECORD_MUTATORS, "renderer.export.frames")
def read_manifest(path: Path) -> None:
    """The frames that a killed export left: `input_####.png` has its manifest in input.frames.jsonl."""
    from renderer.export.frames import Manifest

    manifest = path.with_name("input.frames.jsonl")
    if path != manifest:
        os.replace(path, manifest)
    found = Manifest(path.with_name("input_####.png"), {})
    found.missing([1, 2, 3], False)


# ---- events of the window in a browser


class Connection(SimpleNamespace):
    """A socket by its methods; a key of the server's tables."""

    __hash__ = object.__hash__


def request(body: bytes, line: bytes = b"POST /events HTTP/1.1", **headers: str) -> bytes:
    fields = {"Host": "127.0.0.1:8377", "Authorization": "Bearer a", "Content-Length": str(len(body)), **headers}
    return line + b"\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items()).encode() + b"\r\n" + body


EVENTS = [
    {"kind": "move", "x": 10, "y": 20.5}, {"kind": "button", "button": 0, "down": True}, {"kind": "wheel", "y": -1},
    {"kind": "key", "code": "KeyA", "down": True, "ctrl": True}, {"kind": "text", "text": "ab"},
    {"kind": "focus", "focused": False}, {"kind": "resize", "width": 800, "height": 600},
    {"kind": "resize", "width": 390, "height": 844, "ratio": 3.0},
]  # fmt: skip


def http_seeds() -> dict[str, bytes]:
    return {
        "post.http": request(json.dumps(EVENTS).encode()), "frame.http": request(b"", b"GET /frame?after=3 HTTP/1.1"),
        "viewer.http": request(b"", b"GET /frame?viewer=a-tab_1&after=3 HTTP/1.1"),
        "token.http": request(b"", b"GET /?token=a HTTP/1.1", Authorization="Bearer a"),
    }  # fmt: skip


@cache
def imgui_io():
    from renderer.window.controls.toolkit import imgui

    imgui.create_context()
    return imgui.get_io()


def inject_all(events: list[dict]) -> None:
    from renderer.window.remote import server

    io_ = imgui_io()
    sizes: list[tuple[int, int]] = []
    window = SimpleNamespace(frame=io_.clear_events_queue, resize=lambda size, ratio: sizes.append(size))
    for event in events:
        server.inject(window, event)  # type: ignore[arg-type]
    io_.clear_events_queue()


REMOTE = ("renderer.window.remote.server", "renderer.window.remote.handler")


@target("http", http_seeds, (*TEXT, *BYTES), *REMOTE, weight=0.3)
def read_request(path: Path) -> None:
    """A request to `rayfold serve`, as its handler reads it from a connection, and its events in the window."""
    from renderer.window.remote import handler, viewers

    viewers.LONG_POLL_SECONDS = 0.0
    shared = viewers.Viewers()
    data = io.BytesIO(path.read_bytes())
    connection = Connection(
        makefile=lambda mode, size=-1: io.BytesIO(),
        recv_into=lambda buffer, count: data.readinto(buffer[:count]),
        sendall=lambda sent: None,
        settimeout=lambda seconds: None,
        setsockopt=lambda *option: None,
    )
    connections = handler.Connections()
    connections.add(connection, "127.0.0.1")  # type: ignore[arg-type]
    access = handler.Access("a", frozenset({"localhost"}))
    server = SimpleNamespace(viewers=shared, access=access, connections=connections)
    handler.Handler(connection, ("127.0.0.1", 1), server)  # type: ignore[arg-type]
    for kept in shared.all():
        inject_all(kept.take_events())


@target("events", lambda: {"events.json": json.dumps(EVENTS).encode()},
        nested((mutate.json_tree,) * 5 + (mutate.text, mutate.numbers)), *REMOTE)  # fmt: skip
def read_events(path: Path) -> None:
    """A body of events, through the same handler."""
    path.write_bytes(request(path.read_bytes()))
    read_request(path)


def prepare(names: list[str]) -> None:
    """Imports what the readers import, so that forked processes need not; makes the files that scenes name."""
    if any(TARGETS[name].generate for name in names):
        good_files()
    for name in names:
        for module in TARGETS[name].modules:
            importlib.import_module(module)
    # A machine with room for all that a header claims: it must not be believed.
    host.available_memory = lambda: 1 << 42


# ---- variations of the user's, and formulas of .flame files


def variation_seeds() -> dict[str, bytes]:
    """Files of variations in the grammar of shaders/flames/variations."""
    return {
        "ripple": b"VARIATION(ripple, frequency = 2 [0, 9], amplitude = 0.1) {\n    return scaled(weight, x, y);\n}\n",
        "space": b"// Origin: me\nREPLACING_3D(lift) { return triple(x, y, z); }\nVARIATION_Z(lift) { return z; }\n",
        "helper": b"DEVICE real two(real x) { return x + x; }\nVARIATION(twice) {\n    return pair(two(x), y);\n}\n",
    }


@target("variations", variation_seeds, TEXT, "renderer.flames.variations.user_variations")
def read_variations(path: Path) -> None:
    """A file of variations as RAYFOLD_VARIATIONS names it."""
    from renderer.flames.variations import catalog as variations
    from renderer.flames.variations import user_variations

    text = user_variations.read_user_file(path)
    parsed = variations.parse_variations(text, "user", 1000)
    user_variations.check_user_file(path, text, {name: len(v.parameters) for name, v in parsed.items()}, {})
    list(variations.sources(parsed.values()))


def formula_seeds() -> dict[str, bytes]:
    """Formulas of plots."""
    texts = ("sin(2*x)+param_a", "pow(x,3)-sqr(y)/(1.5+cos(z))", "-fabs(x)*atan2(y, z)")
    return {str(k): text.encode() for k, text in enumerate(texts)}


@target("formula", formula_seeds, TEXT, "renderer.flames.variations.formulas")
def read_formula(path: Path) -> None:
    """A formula of a .flame file."""
    from renderer.flames.variations.formulas import program

    program(path.read_bytes().decode("utf-8", "replace"), ("x", "y", "z"), {"param_a": 1.0})


# ---- structured inputs, which are drawn if they are accepted


@cache
def good_files() -> Path:
    """The folder of the files that generated scenes name; it goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-pool-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    structured.pool(folder)
    return folder


def structured_target(
    name: str, suffix: str, generate: Callable[[Random], bytes], *modules: str, least: int = 2, **more
):
    """Enters a reader of generated inputs, which are read beside the files that they name, and drawn."""

    def enter(read: Callable[[Path], object]) -> Callable[[Path], object]:
        def read_beside_files(path: Path) -> object:
            if not (path.parent / "picture.png").exists():
                structured.pool(path.parent)
            return read(path)

        TARGETS[name] = Target(
            read_beside_files, dict, (), modules, weight=0.01, least=least, generate=generate, suffix=suffix, **more
        )
        return read

    return enter


def read_and_draw(path: Path) -> None:
    """Reads a scene, a flame, a model or a program, and draws it at two times."""
    from renderer.pictures import load

    draws.draw(load(path), (0.0, 0.7))


DRAWN = ("band_lu", "flame", "flame3d", "flame_sheet", "focus", "fractal", "laplacian", "layout", "lightfield",
         "raytrace", "reduction", "cdollar", "ink")  # fmt: skip
for kind in DRAWN:
    structured_target(
        f"draw_{kind}", ".toml", lambda rng, kind=kind: structured.scene_text(kind, rng, good_files()),
        f"renderer.pictures.{kind}", least=0 if kind == "ink" else 2,  # whose matrix takes 2 CPU-s
    )(read_and_draw)  # fmt: skip
structured_target("draw_flames", ".flame", structured.flame_text, "renderer.pictures.flame")(read_and_draw)
structured_target("draw_toys", ".glsl", structured.toy_text, "renderer.pictures.toy", one_line=False)(read_and_draw)
structured_target("draw_models", ".glb", structured.model_bytes, "renderer.pictures.raytrace")(read_and_draw)
structured_target(
    "draw_programs", ".cb", lambda rng: structured.Program(rng).text(), "renderer.pictures.cdollar", one_line=False
)(read_and_draw)


@structured_target("draw_sessions", ".json", lambda rng: structured.session_text(rng, good_files()), *SCENE_MODULES,
                   "renderer.window.state.session")  # fmt: skip
def draw_session(path: Path) -> None:
    """Restores a session, and draws every panel."""
    from renderer.window.state import session

    for scene in session.restore(path).scenes:
        draws.draw(scene, (scene.time,))


@structured_target("draw_lessons", ".lesson", lambda rng: structured.lesson_files(rng, good_files()), *SCENE_MODULES,
                   "renderer.lessons.page")  # fmt: skip
def draw_lesson(path: Path) -> None:
    """Reads a lesson, and draws the panels of every step."""
    from renderer.lessons.lesson import read_lesson

    folder = path.with_suffix(".folder")
    folder.mkdir(exist_ok=True)
    toml, _, words = path.read_bytes().partition(LESSON_PARTS)
    (folder / "lesson.toml").write_bytes(toml)
    (folder / "lesson.md").write_bytes(words)
    lesson = read_lesson(folder)
    for number in range(len(lesson.steps)):
        for name in lesson.shown(number):
            draws.draw(lesson.scene(number, name))
