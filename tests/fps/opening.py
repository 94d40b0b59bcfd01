"""Processor seconds and peak memory from a model's file to its first picture, of this program and of its peers.

    python tests/fps/opening.py FILE ... [--mitsuba PYTHON] [--blender PYTHON] [--runs N]

A picture has 256 x 256 pixels of one sample. The peers are Python interpreters that have the package mitsuba (variant
scalar_rgb, which compiles nothing; .ply and .obj only) or bpy (Cycles on processors). Each program draws each file once
untimed, then N times; this program draws it once more with empty caches of compiled kernels. `sphere.ply` stands for a
sphere of 1,048,576 triangles, which is written first. Prints a table in Markdown: the medians.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from renderer.export.warm import write_sphere  # noqa: E402

MITSUBA = """
import sys, mitsuba as mi
mi.set_variant("scalar_rgb")
bsdf = {"type": "twosided", "b": {"type": "diffuse"}}
shape = {"type": sys.argv[1].rsplit(".", 1)[1], "filename": sys.argv[1], "bsdf": bsdf}
box = mi.load_dict(shape).bbox()
center, size = box.center(), float(sum(box.max - box.min))
camera = mi.ScalarTransform4f().look_at(center + mi.ScalarVector3f(0.6, 0.4, 1) * size, center, [0, 1, 0])
scene = mi.load_dict({"type": "scene", "integrator": {"type": "path", "max_depth": 8}, "light": {"type": "constant"},
    "shape": shape, "sensor": {"type": "perspective", "fov": 38, "to_world": camera,
    "film": {"type": "hdrfilm", "width": 256, "height": 256}, "sampler": {"type": "independent", "sample_count": 1}}})
mi.util.write_bitmap(sys.argv[2], mi.render(scene))
"""
BLENDER = """
import sys, bpy
from mathutils import Vector
bpy.ops.wm.read_factory_settings(use_empty=True)
file, scene = sys.argv[1], bpy.context.scene
kind = file.rsplit(".", 1)[1]
load = {"ply": bpy.ops.wm.ply_import, "obj": bpy.ops.wm.obj_import}.get(kind, bpy.ops.import_scene.gltf)
load(filepath=file)
for o in [o for o in bpy.data.objects if o.type in ("LIGHT", "CAMERA")]:
    bpy.data.objects.remove(o)
bpy.context.view_layer.update()
corners = [o.matrix_world @ Vector(c) for o in bpy.data.objects if o.type == "MESH" for c in o.bound_box]
low, high = (Vector(f(c[i] for c in corners) for i in range(3)) for f in (min, max))
center, size = (low + high) / 2, sum(high - low)
camera = bpy.data.objects.new("c", bpy.data.cameras.new("c"))
camera.location = center + Vector((0.6, -1, 0.4)) * size
camera.rotation_euler = (center - camera.location).to_track_quat("-Z", "Y").to_euler()
camera.data.clip_end = 100 * size + 1
scene.collection.objects.link(camera)
scene.camera, scene.world = camera, bpy.data.worlds.new("w")
scene.world.color = (1, 1, 1)
scene.render.engine, scene.cycles.device, scene.cycles.samples = "CYCLES", "CPU", 1
scene.cycles.use_denoising = scene.cycles.use_adaptive_sampling = False
scene.render.resolution_x = scene.render.resolution_y = 256
scene.render.filepath = sys.argv[2]
bpy.ops.render.render(write_still=True)
"""


def measure(command: list[str], picture: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Processor seconds, and peak MiB of the process, of a command that must write a picture."""
    picture.unlink(missing_ok=True)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not picture.exists():
        raise SystemExit(f"{' '.join(command[:3])[:200]} failed: {errors.strip()[-300:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(name: str, programs: dict[str, list[str] | None], picture: Path, runs: int, folder: Path) -> str:
    """One row of the table."""
    cells = []
    for index, command in enumerate(programs.values()):
        if command is None:
            cells.append("cannot read it")
            continue
        if index == 0:
            cold = measure(command, picture, {**os.environ, "XDG_CACHE_HOME": str(folder / f"{name}.cache")})
            cells.append(f"{cold[0]:.1f} s, {cold[1]:.0f} MiB")
        measure(command, picture, dict(os.environ))
        found = [measure(command, picture, dict(os.environ)) for _ in range(runs)]
        seconds, memory = (statistics.median(column) for column in zip(*found, strict=True))
        cells.append(f"{seconds:.1f} s, {memory:.0f} MiB")
    return f"| {name} | {' | '.join(cells)} |"


def commands(file: Path, picture: Path, mitsuba: str, blender: str) -> dict[str, list[str] | None]:
    """What draws the file, by program; None for one that cannot."""
    ours = [sys.executable, str(ROOT / "main.py"), "export", str(file), "-o", str(picture)]
    found: dict[str, list[str] | None] = {"this program": [*ours, "--size", "256x256", "--samples", "1"]}
    if mitsuba:
        readable = file.suffix in (".ply", ".obj")
        found["Mitsuba"] = [mitsuba, "-c", MITSUBA, str(file), str(picture)] if readable else None
    if blender:
        found["Blender"] = [blender, "-c", BLENDER, str(file), str(picture)]
    return found


def main() -> None:
    """Runs the benchmark for the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--mitsuba", default="", help="an interpreter with the package mitsuba")
    parser.add_argument("--blender", default="", help="an interpreter with the package bpy")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        for index, file in enumerate(args.files):
            if str(file) == "sphere.ply" and not file.exists():
                file = Path(folder) / "sphere.ply"
                write_sphere(file, 512)
            programs = commands(file, picture, args.mitsuba, args.blender)
            if index == 0:
                names = ["this program, no kernels compiled", *programs]
                print(f"| file | {' | '.join(names)} |\n{'| --- ' * (len(names) + 1)}|", flush=True)
            print(row(file.name, programs, picture, args.runs, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
