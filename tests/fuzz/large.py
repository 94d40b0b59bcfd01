"""Inputs of the corpus that are not kept as files: large ones, made when they are read, and files that are no files.

LARGE is target -> name -> a function that makes the content. FIFO and ZERO as a content stand for a pipe that nobody
writes and for a link to /dev/zero, which never ends.
"""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from functools import partial

import numpy as np

from assets.makers.gltf_builder import Maker as ModelMaker
from assets.makers.gltf_builder import square
from tests.fuzz.targets import npy

FIFO, ZERO = b"<a pipe that nobody writes>", b"<a link to /dev/zero>"

Maker = Callable[[], bytes]


def chain(nodes: int) -> bytes:
    """A .gltf whose nodes are a chain, each the child of the one before, the last with a mesh."""
    maker = ModelMaker()
    mesh = square(maker)
    maker.tree["nodes"] = [{"children": [n + 1]} for n in range(nodes - 1)] + [{"mesh": mesh}]
    maker.tree["scenes"] = [{"nodes": [0]}]
    return maker.gltf().encode()


def diagonal_chain(nodes: int) -> bytes:
    """The same with a scale in every node, which overflows."""
    tree = json.loads(chain(nodes))
    for node in tree["nodes"]:
        node["scale"] = [10, 10, 10]
    return json.dumps(tree).encode()


def comment_of(mebibytes: int) -> bytes:
    """A .mtx.gz whose second line is one comment of that length."""
    head = gzip.compress(b"%%MatrixMarket matrix coordinate real general\n%", mtime=0)
    part = gzip.compress(b"x" * (64 << 20), mtime=0)  # gzip files may be put one after the other
    return head + part * (mebibytes >> 6) + gzip.compress(b"\n1 1 1\n1 1 1\n", mtime=0)


def member_bomb() -> bytes:
    """A .npz whose array claims what its zip member holds: 3 GiB of zeros, packed a thousandfold."""
    columns = 100_000_000
    head = npy(np.zeros((1, 1)))[:128].replace(b"(1, 1), }" + b" " * 8, f"(4, {columns}), }}".encode())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in ("kl", "ku"):
            archive.writestr(f"{name}.npy", npy(np.int64(1)))
        with archive.open("ab.npy", "w", force_zip64=True) as file:
            file.write(head)
            for _ in range(4 * 8 * columns // 1_000_000):
                file.write(bytes(1_000_000))
    return out.getvalue()


SUFFIXES = {
    "scene": (".toml",), "recipe": (".png",), "session": (".json",), "sum_npy": (".npy",), "cdollar_npy": (".npy",),
    "matrix_npy": (".npy",), "sum_npz": (".npz",), "sum_pipe": (".npy",),
    "rhs_npy": (".npy",), "band_npz": (".npz",), "mtx_band": (".mtx", ".mtx.gz"), "mtx_rhs": (".mtx",),
    "image": (".png", ".jpeg"), "exr": (".exr",), "hdr": (".hdr",), "mesh": (".obj", ".ply", ".stl"),
    "gltf": (".glb", ".gltf"), "flame": (".flame",), "palettes": (".xml",), "cdollar": (".cb",),
    "schedule": (".schedule.toml",), "field_array": (".npy", ".npz"), "field_zip": (".zip",), "bench": (".jsonl",),
    "ies": (".ies",), "density_grid": (".npy",),
}  # fmt: skip
KINDS = {"pipe": FIFO, "zero": ZERO}
LARGE: dict[str, dict[str, Maker]] = {
    name: {f"{word}{suffix}": partial(bytes, kind) for suffix in suffixes for word, kind in KINDS.items()}
    for name, suffixes in SUFFIXES.items()
}
del LARGE["sum_pipe"]["pipe.npy"]  # `rayfold sum` waits for the writer of a pipe, as it should
LARGE["gltf"] |= {
    "chain_of_60000_nodes.gltf": lambda: chain(60_000),
    "scales_overflow.gltf": lambda: diagonal_chain(400),
}
LARGE["mtx_band"]["comment_of_1500_MiB.mtx.gz"] = lambda: comment_of(1536)
LARGE["band_npz"]["zeros_of_3_GiB.npz"] = member_bomb
for target in ("scene", "schedule"):
    suffix = SUFFIXES[target][0]
    LARGE[target][f"dotted_key_of_120000_names{suffix}"] = lambda: b"a." * 120_000 + b"a = 1\n"
for target, suffix in (("session", ".json"), ("gltf", ".gltf"), ("bench", ".jsonl"), ("manifest", ".jsonl")):
    LARGE.setdefault(target, {})[f"100000_brackets{suffix}"] = lambda: b"[" * 100_000
LARGE["scene"]["100000_brackets.toml"] = lambda: b"a = " + b"[" * 100_000
LARGE["cdollar"]["100000_parentheses.cb"] = lambda: b"float main() { return " + b"(" * 100_000
LARGE["flame"]["100000_elements.flame"] = lambda: b"<flame>" + b"<a>" * 100_000
LARGE["scene"]["integer_of_5000_digits.toml"] = lambda: b"size = " + b"9" * 5000
LARGE["schedule"]["integer_of_5000_digits.schedule.toml"] = LARGE["scene"]["integer_of_5000_digits.toml"]
LARGE["session"]["integer_of_5000_digits.json"] = lambda: b'{"rayfold_session": ' + b"9" * 5000 + b"}"
LARGE["gltf"]["integer_of_5000_digits.gltf"] = lambda: b'{"asset": ' + b"9" * 5000 + b"}"
LARGE["bench"]["integer_of_5000_digits.jsonl"] = lambda: b'{"rate": ' + b"9" * 5000 + b"}\n"
LARGE["manifest"]["integer_of_5000_digits.jsonl"] = lambda: b'{"frame": ' + b"9" * 5000 + b"}\n"
LARGE["set"] = {
    "integer_of_5000_digits.txt": lambda: b"cornell\nmax_depth=" + b"9" * 5000,
    "index_of_5000_digits.txt": lambda: b"mirrors\nspheres[" + b"9" * 5000 + b"].radius=1",
}
LARGE["arguments"] = {
    "size_of_5000_digits.txt": lambda: b"export\na\n-o\nb.png\n--size\n" + b"9" * 5000 + b"x9",
    "samples_of_5000_digits.txt": lambda: b"export\na\n-o\nb.png\n--samples\n" + b"9" * 5000,
}
LARGE["events"] = {"integer_of_5000_digits.json": lambda: b'[{"kind": "move", "x": ' + b"9" * 5000 + b"}]"}
LARGE["variations"] = {  # of 400 to 800 kB
    "long_names.h": lambda: (b"DEVICE real " + b"two" * 200 + b"(real\n") * 1000,
    "functions_without_end.h": lambda: b"DEVICE real f(real x) {\n" * 30_000,
    "tables_without_end.h": lambda: b"CONSTANT real f[\n" * 30_000,
    "variations_without_end.h": lambda: b"VARIATION(a, b = 1) {\n" * 30_000,
}
LARGE["cdollar"]["lone_surrogate.cb"] = lambda: b"float main() { return 1; } // \xed\xa0\x80"
