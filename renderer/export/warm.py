"""`rayfold warm`: compiles ahead of time what the bundled scenes, and meshes, need on this machine.

Each input is drawn in a child process, several side by side, at sizes for which drivers compile different functions.
What they compile stays in the cache folder, from which every later command loads it.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from renderer.errors import IncompleteError, UserError
from renderer.formats.meshes.ply import ply_bytes
from renderer.gpu import open_context
from renderer.gpu.cache import cache_folder
from renderer.host import available_cores, format_bytes
from renderer.paths import SCENES, find_input, temporary_directory
from renderer.plain import Json
from renderer.system import arguments
from renderer.system.trial import run_trial

# PoCL compiles another function for more than 65,534 work-items; GPUs draw large pictures by another schedule.
SIZES = (96, 64), (640, 480), (1920, 1080)
SUFFIXES = ".toml", ".flame"  # most .cb programs are no pictures
# Rows of a sphere, and whether it has normals, for which another ray tracer is compiled.
MESHES = {"mesh": (23, False), "mesh of 200,000 triangles": (224, False), "mesh with normals": (23, True)}
MAX_SECONDS = 900.0  # time limit of one input
MAX_CHILDREN = 8  # a GPU's memory holds as many contexts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold warm`."""
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help="scenes and models (default: all that come along)")
    parser.add_argument("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    jobs = "inputs that are drawn side by side (default: one for each core, at most 8)"
    parser.add_argument("--jobs", type=arguments.positive, default=0, metavar="N", help=jobs)
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def command(args: argparse.Namespace) -> int:
    """`rayfold warm`: exit code 0 when everything was drawn, 3 when something was not."""
    start = time.monotonic()
    device = open_context(args.device).device  # opens the cache of the children too
    for name in args.inputs:
        if not os.path.exists(find_input(name)):
            raise UserError(f"{name}: No such file or directory")
    files, size = cache_state(cache_folder())
    with temporary_directory("warm") as folder:
        inputs = {name: name for name in args.inputs} or bundled_inputs() | write_meshes(Path(folder))
        rows = _draw_all(inputs, args.device, args.jobs or min(available_cores(), MAX_CHILDREN), args.json)
    files_after, size_after = cache_state(cache_folder())
    new, seconds, failed = files_after - files, time.monotonic() - start, [row for row in rows if row["reason"]]
    if args.json:
        cache = {"folder": str(cache_folder()), "new_files": new, "new_bytes": size_after - size}
        print(json.dumps({"device": device.name, "seconds": seconds, "inputs": rows, "cache": cache}))
    else:
        drawn = f"{len(rows) - len(failed)} of {len(rows)} inputs drawn in {seconds:.0f} s on {device.name}"
        print(f"{drawn}; {new} new files, {format_bytes(max(size_after - size, 0))}, in {cache_folder()}")
    return IncompleteError.exit_code if failed else 0


def bundled_inputs() -> dict[str, str]:
    """Returns the paths of the bundled scenes by name, without demo.toml, whose panels repeat other scenes."""
    names = sorted(path.name for path in SCENES.iterdir() if path.suffix in SUFFIXES)
    return {name: str(SCENES / name) for name in names if name != "demo.toml"}


def write_meshes(folder: Path) -> dict[str, str]:
    """Writes .ply files of spheres, whose BVHs are built on the host and on the device, and returns their paths."""
    out = {}
    for name, (rows, has_normals) in MESHES.items():
        out[name] = str(folder / f"{rows}_{has_normals}.ply")
        write_sphere(Path(out[name]), rows, has_normals)
    return out


def write_sphere(path: Path, rows: int, has_normals: bool = False) -> None:
    """Writes a binary .ply file of a sphere of 4 rows^2 triangles."""
    columns = 2 * rows
    theta, phi = np.meshgrid(np.linspace(0, np.pi, rows + 1), np.arange(columns) * (2 * np.pi / columns), indexing="ij")
    ring = np.sin(theta)
    points = (ring * np.cos(phi), np.cos(theta), ring * np.sin(phi)) * (1 + has_normals)  # a normal is its point
    row, column = np.meshgrid(np.arange(rows) * columns, np.arange(columns), indexing="ij")
    right = (column + 1) % columns
    a, b, c, d = row + column, row + right, row + columns + right, row + columns + column
    corners = np.stack([a, b, c, a, c, d], -1).reshape(-1, 3)
    # x, y, z alone, or all six
    path.write_bytes(ply_bytes(dict(zip("x y z nx ny nz".split(), map(np.ravel, points), strict=False)), corners))


def cache_state(folder: Path) -> tuple[int, int]:
    """Returns the number of files below a folder, and the sum of their sizes in bytes."""
    sizes = []
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(path, name)).st_size)
            except OSError:  # another process has removed it
                continue
    return len(sizes), sum(sizes)


def _draw_all(inputs: dict[str, str], device: str, jobs: int, quiet: bool) -> list[Json]:
    """Draws the inputs in child processes; a row for each: input, seconds, reason why it was not drawn, or ""."""

    def draw(name: str) -> Json:
        begin = time.monotonic()
        trial = run_trial("renderer.export.warm:draw_once", inputs[name], device, seconds=MAX_SECONDS)
        row = {"input": name, "seconds": round(time.monotonic() - begin, 3), "reason": trial.reason}
        if not quiet:
            print(f"{row['seconds']:7.1f} s  {name}{': ' if trial.reason else ''}{trial.reason}", file=sys.stderr)
        return row

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(draw, inputs))


def draw_once(path: str, device: str) -> None:
    """The work of a child process: draws one sample of an input at each size, and tone maps it."""
    from renderer.export.render import RenderJob, render, tonemapped_blocks
    from renderer.pictures import load, open_picture
    from renderer.system.progress import Progress

    scene, gpu = load(Path(path)), open_context(device)
    picture = open_picture(scene, gpu)
    for size in SIZES[:2] if gpu.device.properties.scalar_threads else SIZES:
        rendered = render(picture, RenderJob(scene, size, 1), Progress(1, scene.title))
        for _ in tonemapped_blocks(rendered, scene):
            pass
    picture.report()  # compiles what reads statistics from the device
