"""A material that the package does not know, added as one file to a copy of shaders/: its checks, in their own process.

`python -m tests.raytracing.witnesses.foreign_material SHADERS DEVICE_ID [guided]` prints results as JSON; SHADERS is
the copy. With `guided` only pictures with and without path guiding are drawn.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import renderer.paths

NAME = "stripes"
FUNCTIONS = (
    "sample", "eval_pdf", "albedo", "is_delta", "mirror_fraction", "guided_fraction", "is_lit_from_behind",
    "has_medium", "dispersion",
)  # fmt: skip
TEXT = """// Lambertian stripes of `color` and `color2` along x, each of width 1, sampled uniformly over the hemisphere.

// @optional
// @maps roughness

DEVICE float3 stripes_color(const Material m, const Surface s) {
    return ((int)floor(s.point.x) & 1) ? make_float3(m.color2.x, m.color2.y, m.color2.z) : base_color(m);
}

DEVICE float4 stripes_eval_pdf(const Material m, const Surface s, float3 direction) {
    float cosine = dot_fma(s.normal, direction);
    if (!(cosine > 0.0f)) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return with_w(stripes_color(m, s) * (cosine * (1.0f / PI)), 0.5f / PI);
}

DEVICE bool stripes_sample(const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out) {
    float z = get_1d(sampler, dimension), r = sqrt(1.0f - z * z);
    float2 phi = cos_sin_2pi(get_1d(sampler, dimension + 1));
    out->direction = normalize_fma(local_to_world(s.normal, r * phi.x, r * phi.y, z));
    out->pdf = 0.5f / PI;
    out->weight = stripes_color(m, s) * (2.0f * z);
    out->transmits = false;
    return true;
}

DEVICE float3 stripes_albedo(const Material m, const Surface s) { return stripes_color(m, s); }

REFLECTOR(stripes, 0.0f, 0.5f, xyz(stripes_eval_pdf(m, s, direction)))
"""
SCENE = """
picture = "raytrace"
size = [48, 16]
[settings]
samples = 64
max_depth = 2
projection = "orthographic"
horizon = [1.0, 1.0, 1.0]
zenith = [1.0, 1.0, 1.0]
view = { position = [0.0, 0.0, 5.0], target = [0.0, 0.0, 0.0], fov_degrees = 22.6198649 }
[[settings.materials]]
name = "wall"
kind = "stripes"
color = [0.8, 0.4, 0.2]
color2 = [0.1, 0.3, 0.9]
[[settings.quads]]
material = "wall"
corners = [[-9.0, -9.0, 0.0], [9.0, -9.0, 0.0], [9.0, 9.0, 0.0], [-9.0, 9.0, 0.0]]
"""


def main(shaders: Path, device_id: str, only: str = "") -> dict[str, object]:
    """Checks the material; raises AssertionError, or returns what the test compares."""
    renderer.paths.SHADERS = shaders  # before the other modules read the folder
    import numpy as np

    from renderer import cli
    from renderer.errors import KernelError
    from renderer.export import render
    from renderer.formats.images import read_exr
    from renderer.gpu import open_device
    from renderer.gpu.cuda.nvrtc import compile_cubin
    from renderer.gpu.kernel_source import clear_source_cache, preprocess
    from renderer.pictures.raytrace import Picture
    from renderer.raytracing.kernels import compile_constants, kernel_source
    from renderer.raytracing.settings import Material, Quad, Settings, Sphere
    from renderer.scene.cameras import Camera
    from tests.raytracing.test_materials import (
        Probe,
        check_samples_follow_pdf,
        check_weights_are_value_over_pdf,
        furnace,
    )  # fmt: skip

    device, rng = open_device(device_id), np.random.default_rng(3)
    if only == "guided":
        wall, ball = Material("wall", NAME, color=(0.7,) * 3, color2=(0.7,) * 3), Material("lamp", emission=(9.0,) * 3)
        floor = Quad("wall", ((-4.0, 0.0, 4.0), (4.0, 0.0, 4.0), (4.0, 0.0, -4.0), (-4.0, 0.0, -4.0)))
        side = Quad("wall", ((-4.0, 0.0, -4.0), (4.0, 0.0, -4.0), (4.0, 4.0, -4.0), (-4.0, 4.0, -4.0)))
        room = Settings(view=Camera((0.0, 3.0, 8.0)), materials=(wall, ball), quads=(floor, side),
                        spheres=(Sphere("lamp", (0.0, 2.0, 0.0), 0.5),))  # fmt: skip

        def mean(settings: Settings) -> float:
            picture = Picture(SimpleNamespace(device=device))
            for _ in range(64):
                frame = picture.draw(settings, (32, 32), 0.0)
            return float(frame.read()[..., :3].astype("f8").mean())

        return {"plain": mean(room), "guided": mean(replace(room, guiding_photons=4096))}
    colored = Material("m", NAME, color=(0.8, 0.4, 0.2), color2=(0.1, 0.3, 0.9))
    probe = Probe(device, colored)
    check_samples_follow_pdf(probe, rng, 0)
    check_weights_are_value_over_pdf(probe, rng)
    white = furnace(device, replace(colored, color=(1.0,) * 3, color2=(1.0,) * 3)).tolist()
    colored_mean = furnace(device, colored, samples=16).tolist()

    guides = {}
    sys.modules["pyoidn"] = ModuleType("pyoidn")
    render.denoise = lambda linear, albedo, normal: guides.update(albedo=albedo, normal=normal) or linear
    scene = shaders.parent / "scene.toml"
    scene.write_text(SCENE)
    out = shaders.parent / "out.exr"
    assert cli.main(["export", str(scene), "-o", str(out), "--device", device_id, "--denoise"]) == 0

    (shaders / "raytracing" / "materials" / f"{NAME}.h").write_text(TEXT[: TEXT.index("DEVICE float4")])
    clear_source_cache()
    constants = compile_constants(Settings(schedule="wavefront", materials=(colored,)), spheres=False)
    logs = []
    for compiler in (
        lambda: compile_cubin(preprocess(kernel_source("layers"), GROUP_SIZE=64, **constants), "sm_90", strict=True),
        lambda: device.kernel(kernel_source("layers"), "draw_aovs", group_size=64, **constants),
    ):
        try:
            compiler()
            logs.append("it compiles")
        except KernelError as error:
            logs.append(str(error))
    return {
        "albedo": guides["albedo"].tolist(), "normal": guides["normal"].tolist(), "picture": read_exr(out).tolist(),
        "white": white, "colored": colored_mean, "logs": logs,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), *sys.argv[2:])))
