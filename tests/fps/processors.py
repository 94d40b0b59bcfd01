"""Rays and whole pictures a processor second, beside Mitsuba and Embree on the same processors.

    python tests/fps/processors.py MESH ... [--mitsuba PYTHON] [--embree PYTHON] [--rounds N] [--only WORD]

Meshes are .obj files. The peers are Python interpreters that have the package mitsuba (variant llvm_ad_rgb, whose rays
are Embree's in vectors) or embreex (Embree, ray by ray). Each program is a process of its own; they work in turn for
half a processor second a round, so that what else the machine does meets all of them. Prints a table in Markdown: the
medians of the rounds, and the median of each round's ratio to the peer.

Rays: 1024 x 1024 camera rays, their diffuse bounces, closest and any hit, the same for all programs. Pictures: 256 x
256, depth 6, no roulette, box filter; a mesh on a diffuse ground in the studio's light, `diffuse` or `metallic` of
roughness 0.5 (Mitsuba: `principled`, which has no compensation of multiple scattering), and the Cornell box. `default`
is what `rayfold export mesh.obj` draws, with its roulette; the peer draws the metallic mesh.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from renderer.pictures import load  # noqa: E402
from renderer.raytracing.lights.environment_presets import preset_map  # noqa: E402
from renderer.raytracing.settings import Environment, Material  # noqa: E402
from renderer.scene.scene import Scene  # noqa: E402

SIDE, SAMPLES, DEPTH, RAYS_SIDE = 256, 8, 6, 1024
BODY = (0.70, 0.68, 0.65)
RAY_SETS = "primary", "primary-shadow", "incoherent", "incoherent-shadow"
SERVE = """
import json, sys, time
def serve(make):
    works = {}
    for line in sys.stdin:
        name, seconds = json.loads(line)
        if name not in works:
            works[name] = make(name)
            for _ in range(2): works[name][1]()
        amount, run, about = works[name]
        done, start = 0, time.process_time()
        while time.process_time() - start < seconds:
            run()
            done += 1
        rate = amount * done / (time.process_time() - start) / 1e6
        print(json.dumps([rate, about() if seconds == 0.0 else None]), file=sys.__stdout__, flush=True)
"""
MITSUBA = """
import numpy as np, drjit as dr, mitsuba as mi
mi.set_variant("llvm_ad_rgb")
folder, side, samples, depth, body = json.loads(sys.argv[1])
def picture(name):
    mesh, kind = name.split("/")
    integrator = {"type": "path", "max_depth": depth, "rr_depth": 1000}
    film = {"type": "hdrfilm", "width": side, "height": side, "rfilter": {"type": "box"}}
    if mesh == "cornell":
        box = mi.cornell_box()
        box["sensor"]["film"] |= film
        box["integrator"] = integrator
        return mi.load_dict(box)
    facts = json.load(open(f"{folder}/{mesh}.json"))
    color = {"type": "rgb", "value": body}
    bsdf = {"type": "diffuse", "reflectance": color}
    if kind != "diffuse":
        bsdf = {"type": "principled", "base_color": color, "roughness": 0.5, "specular": 0.5}
    near, far, up = (mi.ScalarPoint3f(*facts[k]) for k in ("position", "target", "up"))
    south, east, north = (np.array(facts["ground"][k]) for k in (0, 1, 3))
    place = np.eye(4)
    place[:3, 0], place[:3, 1] = (east - south) / 2, (north - south) / 2
    place[:3, 2] = np.cross(place[:3, 0], place[:3, 1])
    place[:3, 3] = (east + north) / 2
    return mi.load_dict({"type": "scene", "integrator": integrator,
        "light": {"type": "envmap", "bitmap": mi.Bitmap(np.load(f"{folder}/studio.npy")),
                  "to_world": mi.ScalarTransform4f().rotate([0, 1, 0], 180 + facts["rotation"])},
        "mesh": {"type": "obj", "filename": facts["file"], "face_normals": True, "bsdf": bsdf},
        "ground": {"type": "rectangle", "to_world": mi.ScalarTransform4f(place),
                   "bsdf": {"type": "diffuse", "reflectance": {"type": "rgb", "value": 0.5}}},
        "sensor": {"type": "perspective", "fov": facts["fov"], "fov_axis": "y", "near_clip": 1e-4 * facts["radius"],
                   "to_world": mi.ScalarTransform4f().look_at(near, far, up), "film": film}})
def make(name):
    if name.split("/")[1] in ("diffuse", "metallic", "default", "box"):
        scene, seeds = picture(name), iter(range(1 << 30))
        def run():
            found = mi.render(scene, spp=samples, seed=next(seeds))
            dr.eval(found); dr.sync_thread()
            return found
        return side * side * samples, run, lambda: [
            "llvm_ad_rgb", np.mean([np.array(run()).mean((0, 1)) for _ in range(8)], 0).tolist()]
    mesh, kind = name.split("/")
    facts = json.load(open(f"{folder}/{mesh}.json"))
    scene = mi.load_dict({"type": "scene", "mesh": {"type": "obj", "filename": facts["file"], "face_normals": True}})
    rays = np.load(f"{folder}/{mesh}-{kind.removesuffix('-shadow')}.npy")
    ray = mi.Ray3f(mi.Point3f(*rays[:, 0, :3].T.copy()), mi.Vector3f(*rays[:, 1, :3].T.copy()))
    dr.eval(ray)
    find = (lambda: scene.ray_test(ray)) if kind.endswith("shadow") else (
        lambda: scene.ray_intersect_preliminary(ray, coherent=kind == "primary"))
    def run():
        found = find()
        dr.eval(found); dr.sync_thread()
        return found
    def share():
        found = run()
        return ["Embree in vectors", float(np.mean(np.array(found if kind.endswith("shadow") else found.is_valid())))]
    return len(rays), run, share
serve(make)
"""
EMBREE = """
import numpy as np
from embreex import rtcore_scene
from embreex.mesh_construction import TriangleMesh
folder = json.loads(sys.argv[1])[0]
def make(name):
    mesh, kind = name.split("/")
    if kind in ("diffuse", "metallic", "default", "box"):
        raise SystemExit("rays alone")
    scene = rtcore_scene.EmbreeScene()
    keep = TriangleMesh(scene, np.load(f"{folder}/{mesh}-triangles.npy"))
    rays = np.load(f"{folder}/{mesh}-{kind.removesuffix('-shadow')}.npy")
    origin, direction = rays[:, 0, :3].copy(), rays[:, 1, :3].copy()
    query = "OCCLUDED" if kind.endswith("shadow") else "INTERSECT"
    run = lambda: scene.run(origin, direction, query=query)
    return len(rays), run, lambda: ["rtcIntersect1", float(np.mean(run() >= 0)) if query == "INTERSECT" else None]
serve(make)
"""


def serve_this_program() -> None:
    """What the child process of this program runs."""
    folder, side, samples, depth, body = json.loads(sys.argv[2])
    names: dict = {}
    exec(SERVE, names)

    from renderer.gpu import open_context
    from tests.fps import rays as ray_bench

    gpu = open_context("cpu")

    def picture(name: str):
        from renderer.pictures.raytrace import Picture

        picture, settings = Picture(gpu), scene_of(name, Path(folder), tuple(body), depth).settings

        def run():
            picture.restart()
            for _ in range(samples):
                frame = picture.draw(settings, (side, side), 0.0)
            gpu.device.finish()
            return frame

        def about():
            for _ in range(8 * samples):
                frame = picture.draw(replace(settings, samples=8 * samples), (side, side), 0.0)
            return ["megakernel", frame.read()[..., :3].mean((0, 1)).tolist()]

        return side * side * samples, run, about

    def rays(mesh: str, kind: str):
        facts = json.loads((Path(folder) / f"{mesh}.json").read_text())
        bvhs = ray_bench.Bvhs(gpu.device, lambda: ray_bench._baseline_bvh(lambda: ray_bench._mesh(facts["file"])))
        made = ray_bench.RaySet(gpu.device, bvhs, kind, RAYS_SIDE)
        return made, bvhs

    def make(name: str):
        mesh, kind = name.split("/")
        if kind not in RAY_SETS:
            return picture(name)
        made, bvhs = rays(mesh, kind)
        if not kind.endswith("shadow"):
            np.save(Path(folder) / f"{mesh}-{kind}.npy", made.host_rays)
            p = bvhs.primitives
            first = p["v0"][:, :3]
            corners = np.stack([first, first + p["edge1"][:, :3], first + p["edge2"][:, :3]], 1)
            np.save(Path(folder) / f"{mesh}-triangles.npy", corners.astype("f4"))

        def run():
            made.run()
            gpu.device.finish()

        def about():
            found = made.hits.read()
            hit = found > 0 if made.any_hit else found[:, 3].copy().view("i4") >= 0
            return [made.query.entry, float(hit.mean())]

        return made.count, run, about

    names["serve"](make)


def scene_of(name: str, folder: Path, body: tuple[float, float, float], depth: int) -> Scene:
    """The scene that this program draws for a picture's name."""
    mesh, kind = name.split("/")
    if mesh == "cornell":
        scene = load(ROOT / "scenes/cornell.toml")
        return replace(scene, settings=replace(scene.settings, max_depth=depth, rr_depth=64))
    scene = load(Path(json.loads((folder / f"{mesh}.json").read_text())["file"]))
    if kind == "default":
        return scene
    s = scene.settings
    material = Material("body", kind, color=body, roughness=0.5)
    ground = Material("ground", "diffuse", color=(0.5, 0.5, 0.5))
    settings = replace(
        s,
        materials=(material, ground),
        max_depth=depth,
        rr_depth=64,
        environment=Environment(preset="studio", rotation_degrees=s.environment.rotation_degrees),
    )
    return replace(scene, settings=settings)


def write_scene(file: Path, folder: Path) -> None:
    """Writes what the peers need of a mesh's scene."""
    settings = load(file).settings
    view, ground = settings.view, settings.quads[0].corners
    half = np.tan(np.radians(view.fov_degrees) / 2) * view.fit_scale(1.0)
    facts = dict(
        file=str(file.resolve()),
        position=list(view.position),
        target=list(view.target),
        ground=ground,
        up=view.axes()[1].tolist(),
        fov=float(np.degrees(2 * np.arctan(half))),
        rotation=settings.environment.rotation_degrees,
        radius=float(np.linalg.norm(np.subtract(view.position, view.target))),
    )
    (folder / f"{file.stem}.json").write_text(json.dumps(facts))


class Program:
    """A process that measures works by name."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, name: str, seconds: float) -> list:
        """Millions a processor second of a work, and with 0 seconds also what it is and gives."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, seconds]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{name}: the process ended")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """Runs the benchmark for the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("meshes", nargs="+", type=Path)
    parser.add_argument("--mitsuba", default="", help="an interpreter with the package mitsuba")
    parser.add_argument("--embree", default="", help="an interpreter with the package embreex")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="", help="measures the works whose name holds this word")
    args = parser.parse_args()
    works = [f"{mesh.stem}/{kind}" for kind in (*RAY_SETS, "diffuse", "metallic", "default") for mesh in args.meshes]
    works = [work for work in (*works, "cornell/box") if args.only in work]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for mesh in args.meshes:
            write_scene(mesh, folder)
        np.save(folder / "studio.npy", preset_map("studio"))
        words = json.dumps([name, SIDE, SAMPLES, DEPTH, BODY])
        programs = {"ours": Program([sys.executable, __file__, "--serve", words])}
        if args.mitsuba:
            programs["Mitsuba"] = Program([args.mitsuba, "-c", SERVE + MITSUBA, words])
        if args.embree:
            programs["Embree"] = Program([args.embree, "-c", SERVE + EMBREE, words])
        print(
            "| work | kernel | "
            + " | ".join(f"{p}, M/CPU-s" for p in programs)
            + " | "
            + " | ".join(f"ours / {p}" for p in list(programs)[1:])
            + " | means |"
        )
        print("|" + " --- |" * (2 * len(programs) + 2))
        for work in works:
            print(row(work, programs, args.rounds, args.seconds), flush=True)
        for program in programs.values():
            program.close()


def row(work: str, programs: dict[str, Program], rounds: int, seconds: float) -> str:
    """One row of the table."""
    missing = work.split("/")[1] not in RAY_SETS and "Embree" in programs
    if missing:
        programs = {name: program for name, program in programs.items() if name != "Embree"}
    facts = {name: program.measure(work, 0.0)[1] for name, program in programs.items()}
    rates: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            rates[name].append(program.measure(work, seconds)[0])
    cells = [work, facts["ours"][0], *(f"{statistics.median(rate):.3g}" for rate in rates.values())]
    cells += ["-"] * missing
    for name in list(programs)[1:]:
        ratios = [a / b for a, b in zip(rates["ours"], rates[name], strict=True)]
        cells.append(f"{statistics.median(ratios):.2f}")
    cells += ["-"] * missing
    cells.append(", ".join(str(np.round(np.mean(fact[1]), 4)) for fact in facts.values() if fact[1] is not None))
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    serve_this_program() if sys.argv[1] == "--serve" else main()
