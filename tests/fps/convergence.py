"""Variance times seconds of a room whose lamp is inside a ball of rough glass: plain, guided by photons, and of peers.

python -m tests.fps.convergence [--device cuda:0] [--size 128x96] [--seeds 6] [--photons 25000]
python tests/fps/convergence.py --peer mitsuba    (or cycles; where Python has that program, and not this one)

Variance is that of a pixel over seeds, its mean over all but the brightest 2 %, which are the lamp's own. Seconds are
those of a picture whose kernels are compiled, photons included: of all processors, or with --device cuda or --wall of
the clock. Their product does not depend on the number of samples, and is divided by the square of the mean: programs
differ in it, since not all scale radiance by 1 / n^2 where it leaves the glass.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

LOW, HIGH = (-2.0, 0.0, -2.0), (2.0, 2.5, 5.0)  # of the room
WHITE, RED = (0.72, 0.7, 0.66), (0.6, 0.12, 0.08)
BALLS = (((0.0, 1.6, -0.2), 0.2), ((0.6, 0.35, 0.3), 0.35))  # of glass
LAMP, LAMP_RADIUS, EMISSION = (0.0, 1.6, -0.2), 0.01, (40000.0, 32000.0, 22000.0)
ROUGHNESS, IOR = 0.5, 1.5  # perceptual: GGX's alpha is its square
EYE, TARGET, FOV, DEPTH = (0.0, 1.3, 4.6), (0.0, 1.0, 0.0), 42.0, 8
Draw = Callable[[int, int], np.ndarray]  # (samples, seed) -> (height, width)


def walls() -> list[tuple[Any, tuple[float, ...]]]:
    """Four corners of each wall, counter-clockwise seen from inside, and its color."""
    out: list[tuple[Any, tuple[float, ...]]] = []
    for axis in range(3):
        for inward, end in ((1, LOW), (-1, HIGH)):
            corners = np.tile(np.array(end), (4, 1))
            for k, (u, v) in enumerate(((0, 0), (1, 0), (1, 1), (0, 1))[::inward]):
                corners[k, (axis + 1) % 3] = (LOW, HIGH)[u][(axis + 1) % 3]
                corners[k, (axis + 2) % 3] = (LOW, HIGH)[v][(axis + 2) % 3]
            out.append((tuple(map(tuple, corners.tolist())), RED if axis == 0 and inward == 1 else WHITE))
    return out


def rayfold(size: tuple[int, int], device: str, **changes: Any) -> Draw:
    """Pictures of this program."""
    from renderer.gpu import open_context
    from renderer.pictures.raytrace import Picture
    from renderer.raytracing.settings import Material, Quad, Settings, Sphere
    from renderer.scene.cameras import Camera

    materials = (
        Material("white", color=WHITE), Material("red", color=RED), Material("lamp", "emitter", emission=EMISSION),
        Material("glass", "glass", (1.0, 1.0, 1.0), ior=IOR, roughness=ROUGHNESS),
    )  # fmt: skip
    quads = tuple(Quad("red" if color == RED else "white", corners) for corners, color in walls())
    spheres = (Sphere("lamp", LAMP, LAMP_RADIUS), *(Sphere("glass", *ball) for ball in BALLS))
    picture = Picture(open_context(device))

    def draw(samples: int, seed: int) -> np.ndarray:
        settings = Settings(
            view=Camera(EYE, TARGET, fov_degrees=FOV), max_depth=DEPTH, materials=materials, quads=quads,
            spheres=spheres, seed=seed, **changes,
        )  # fmt: skip
        picture.restart()
        for _ in range(samples):
            frame = picture.draw(settings, size, 0.0)
        return frame.read()[..., :3].mean(2).astype("f8")

    return draw


def mitsuba(size: tuple[int, int], sampler: str) -> Draw:
    """Pictures of Mitsuba 3 by its path tracer."""
    import mitsuba as mi

    mi.set_variant("llvm_ad_rgb")
    transform = mi.ScalarTransform4f
    glass = {"type": "roughdielectric", "distribution": "ggx", "alpha": ROUGHNESS**2, "int_ior": IOR, "ext_ior": 1.0}
    scene: dict[str, Any] = {"type": "scene", "integrator": {"type": "path", "max_depth": DEPTH, "rr_depth": 3}}
    scene["lamp"] = {
        "type": "sphere", "center": LAMP, "radius": LAMP_RADIUS,
        "emitter": {"type": "area", "radiance": {"type": "rgb", "value": list(EMISSION)}},
    }  # fmt: skip
    for k, (center, radius) in enumerate(BALLS):
        scene[f"ball{k}"] = {"type": "sphere", "center": center, "radius": radius, "bsdf": glass}
    for k, (corners, color) in enumerate(walls()):
        at = np.array(corners)
        middle, right, up = at.mean(0), (at[1] - at[0]) / 2, (at[3] - at[0]) / 2
        matrix = np.eye(4)
        matrix[:3] = np.stack([right, up, np.cross(right, up) / np.linalg.norm(np.cross(right, up)), middle], 1)
        bsdf = {"type": "diffuse", "reflectance": {"type": "rgb", "value": list(color)}}
        scene[f"wall{k}"] = {"type": "rectangle", "to_world": transform(matrix), "bsdf": bsdf}
    scene["sensor"] = {
        "type": "perspective", "fov": FOV, "fov_axis": "y",
        "to_world": transform().look_at(origin=EYE, target=TARGET, up=[0, 1, 0]),
        "film": {"type": "hdrfilm", "width": size[0], "height": size[1], "rfilter": {"type": "box"}},
        "sampler": {"type": sampler},
    }  # fmt: skip
    loaded = mi.load_dict(scene)
    return lambda samples, seed: np.array(mi.render(loaded, spp=samples, seed=seed)).mean(2).astype("f8")


def cycles(size: tuple[int, int], guiding: bool) -> Draw:
    """Pictures of Blender's Cycles on processors, with or without its path guiding."""
    import tempfile
    from pathlib import Path

    import bpy

    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.engine, scene.render.resolution_x, scene.render.resolution_y = "CYCLES", *size
    scene.render.image_settings.file_format, scene.render.image_settings.color_depth = "OPEN_EXR", "32"
    c = scene.cycles
    c.use_guiding, c.use_adaptive_sampling, c.use_denoising, c.pixel_filter_type = guiding, False, False, "BOX"
    c.max_bounces = c.diffuse_bounces = c.glossy_bounces = c.transmission_bounces = DEPTH - 1
    c.sample_clamp_direct = c.sample_clamp_indirect = c.blur_glossy = 0.0
    c.filter_width = 1.0
    for k, (corners, color) in enumerate(walls()):
        mesh = bpy.data.meshes.new(f"wall{k}")
        mesh.from_pydata([(x, -z, y) for x, y, z in corners], [], [(0, 1, 2, 3)])
        mesh.materials.append(_node("ShaderNodeBsdfDiffuse", Color=(*color, 1.0)))
        scene.collection.objects.link(bpy.data.objects.new(mesh.name, mesh))
    glass = _node("ShaderNodeBsdfGlass", Color=(1.0, 1.0, 1.0, 1.0), Roughness=ROUGHNESS, IOR=IOR)
    lamp = _node("ShaderNodeEmission", Color=tuple(e / EMISSION[0] for e in EMISSION) + (1.0,), Strength=EMISSION[0])
    for center, radius, material in ((LAMP, LAMP_RADIUS, lamp), *((*ball, glass) for ball in BALLS)):
        x, y, z = center
        bpy.ops.mesh.primitive_uv_sphere_add(segments=96, ring_count=48, radius=radius, location=(x, -z, y))
        bpy.ops.object.shade_smooth()
        bpy.context.object.data.materials.append(material)
    camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    camera.data.sensor_fit, camera.data.angle = "VERTICAL", np.radians(FOV)
    camera.location = EYE[0], -EYE[2], EYE[1]
    towards = np.subtract(TARGET, EYE)
    camera.rotation_euler = np.pi / 2 + np.arctan2(towards[1], -towards[2]), 0.0, 0.0
    scene.collection.objects.link(camera)
    scene.camera, scene.render.use_persistent_data = camera, True
    path = Path(tempfile.mkdtemp()) / "out.exr"
    scene.render.filepath = str(path)

    def draw(samples: int, seed: int) -> np.ndarray:
        c.samples, c.seed = samples, seed
        bpy.ops.render.render(write_still=True)
        image = bpy.data.images.load(str(path), check_existing=False)
        pixels = np.array(image.pixels[:]).reshape(size[1], size[0], -1)[..., :3].mean(2)
        bpy.data.images.remove(image)
        return pixels

    return draw


def _node(kind: str, **inputs: Any) -> Any:
    """A material of one Blender shader node."""
    import bpy

    material = bpy.data.materials.new(kind)
    material.use_nodes = True
    tree = material.node_tree
    tree.nodes.clear()
    node, out = tree.nodes.new(kind), tree.nodes.new("ShaderNodeOutputMaterial")
    for name, value in inputs.items():
        node.inputs[name].default_value = value
    tree.links.new(node.outputs[0], out.inputs["Surface"])
    return material


def measure(draw: Draw, samples: int, seeds: int, clock: Callable[[], float]) -> tuple[float, float, float]:
    """Mean, variance and seconds of a picture, over seeds."""
    draw(1, 0)
    frames, seconds = [], []
    for seed in range(1, seeds + 1):
        begin = clock()
        frames.append(draw(samples, seed))
        seconds.append(clock() - begin)
    mean, variance = np.mean(frames, 0), np.var(frames, 0, ddof=1)
    counted = mean < np.percentile(mean, 98)
    return float(mean[counted].mean()), float(variance[counted].mean()), float(np.mean(seconds))


def main() -> None:
    """Prints a row for each way of drawing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=("mitsuba", "cycles"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", default="128x96")
    parser.add_argument("--samples", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--photons", type=int, default=25000)
    parser.add_argument("--wall", action="store_true")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    size = width, height
    ways: dict[str, Callable[[], Draw]] = {
        "rayfold": partial(rayfold, size, options.device),
        f"rayfold, {options.photons} photons": partial(rayfold, size, options.device, guiding_photons=options.photons),
    }
    if options.peer == "mitsuba":
        samplers = "independent", "multijitter", "ldsampler"
        ways = {f"mitsuba, {name}": partial(mitsuba, size, name) for name in samplers}
    if options.peer == "cycles":
        ways = {f"cycles, guiding {on}": partial(cycles, size, on) for on in (False, True)}
    clock = time.perf_counter if options.wall or options.device.startswith("cuda") else time.process_time
    for name, make in ways.items():
        mean, variance, seconds = measure(make(), options.samples, options.seeds, clock)
        figures = f"mean {mean:.4f}  variance {variance:.4g}  seconds {seconds:.3f}"
        print(f"{name:28} {figures}  product over mean^2 {variance * seconds / mean**2:.4g}")


if __name__ == "__main__":
    main()
