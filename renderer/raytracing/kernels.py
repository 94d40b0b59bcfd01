"""The ray tracer's kernels: their text with the switch over materials, their constants, and the rows they read."""

import numpy as np

from renderer.formats import gltf
from renderer.gpu.kernel_source import GeneratedSource
from renderer.raytracing import microfacet
from renderer.raytracing.distance_fields import KINDS
from renderer.raytracing.environment import is_lit
from renderer.raytracing.gltf_shapes import materials_of
from renderer.raytracing.lights import has_lamps
from renderer.raytracing.ray_buffers import WORDS
from renderer.raytracing.settings import MATERIALS, Settings

REFILL = 0  # paths of a warp that may live on while new ones are started
STAGES = {
    "wavefront": ("generate", "trace", "shade", "connect", "accumulate", "count_rays"),
    "compact": ("generate", "count_words", "list_rays", "bounce_listed", "connect_listed", "accumulate", "count_rays"),
    "regenerate": ("regenerate",),
    "megakernel": ("megakernel", "count_rays"),
}
STENCILS = {"off": 0, "flags": 1, "bits": 2}
SAMPLERS = {"random": 0, "sobol": 1}
LIGHTS = {"bsdf": 0, "mis": 1, "nee": 2}
GATHERS = {"auto": 0, "ballot": 1, "votes": 2, "tree": 3}
VIEW = np.dtype([("eye", "f4", (4,)), ("right", "f4", (4,)), ("up", "f4", (4,)), ("forward", "f4", (4,)),
                 ("horizon", "f4", (4,)), ("zenith", "f4", (4,)), ("width", "i4"), ("height", "i4"), ("left", "i4"),
                 ("top", "i4"), ("across", "i4"), ("down", "i4"), ("tiles", "i4"), ("seed", "i4"), ("sample", "i4"),
                 ("depth", "i4"), ("light_count", "i4"), ("inverse_light_power", "f4"),
                 ("rays", "i4"), ("lens_radius", "f4"), ("focus_distance", "f4"), ("roulette", "i4"), ("noise", "f4"),
                 ("lamps", "i4"), ("sun_count", "i4"), ("environment", "i4"), ("environment_width", "i4"),
                 ("environment_height", "i4"), ("environment_turn", "f4"), ("environment_share", "f4"), ("cells", "i4"),
                 ("cells_across", "i4"), ("cells_down", "i4"), ("first", "i4")])  # fmt: skip
MATERIAL = np.dtype([("color", "f4", (4,)), ("emission", "f4", (4,)), ("other", "f4", (4,)),
                     ("kind", "i4"), ("refraction", "f4"), ("size", "f4"), ("roughness", "f4"),
                     ("metallic", "f4"), ("spare", "i4", (7,))])  # fmt: skip
Tile = tuple[int, int, int, int]  # left, top, width, height in pixels


def kernel_text() -> GeneratedSource:
    """raytrace.cu behind the switches over the files of shaders/materials."""
    includes = "".join(f'#include "raytracing/materials/{name}.h"\n' for name in MATERIALS)
    scatters = "".join(
        f"    case {i}: return {name}_scatter(m, s, key, dimension, out);\n" for i, name in enumerate(MATERIALS)
    )
    evaluates = "".join(f"    case {i}: return {name}_evaluate(m, s, direction);\n" for i, name in enumerate(MATERIALS))
    fields = "".join(f'#include "raytracing/distance_fields/{name}.h"\n' for name in KINDS)
    distances = "".join(f"    case {i}: return {name}_distance(f, p);\n" for i, name in enumerate(KINDS))
    text = (
        f'#include "raytracing/surface.h"\n#if FIELDS\n#include "raytracing/sphere_trace.h"\n{fields}'
        "DEVICE float field_distance(const Field f, float3 p) {\n"
        f"    switch (f.kind) {{\n{distances}    }}\n    return INFINITE;\n}}\n#endif\n"
        f"{microfacet.header()}{includes}"
        "DEVICE bool scatter(const Material m, const Surface s, Key key, uint dimension, Scatter *out) {\n"
        f"    switch (m.kind) {{\n{scatters}    }}\n    return false;\n}}\n"
        "DEVICE float4 evaluate(const Material m, const Surface s, float3 direction) {\n"
        f"    switch (m.kind) {{\n{evaluates}    }}\n    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);\n}}\n"
        '#include "raytracing/raytrace.cu"\n'
    )
    return GeneratedSource("materials", text)


def layers_text() -> GeneratedSource:
    """The ray tracer's text with the kernel of its layers behind it."""
    colour = (
        "DEVICE float3 material_colour(const Material m, const Surface s) {\n"
        f"    return m.kind == {MATERIALS.index('checker')} ? checker_colour(m, s.point) : colour_of(m);\n}}\n"
    )
    return GeneratedSource("layers", f'{kernel_text().text}{colour}#include "raytracing/aovs.cu"\n')


def constants_of(settings: Settings, spheres: bool, alone: bool = False) -> dict:
    return {
        "STRICT": 1,
        "LANES": 1,
        "INSTANCES": 0,
        "MOTION": int(bool(settings.shutter_close)),
        "FIELDS": 0,
        "TEXTURED": 0,
        "CUT_OUT": 0,
        "ATTRIBUTE_ROWS": 4,
        "PLACED_LIGHTS": 0,
        "SPHERES": int(spheres),
        "STENCIL": STENCILS[settings.stencil if settings.schedule == "wavefront" else "bits"],
        "SCHEDULE": list(STAGES).index(settings.schedule),
        "REFILL": REFILL,
        "WORDS": 1 if settings.schedule == "megakernel" else WORDS,
        "ALONE": int(alone),
        "GATHER": GATHERS[settings.gather],
        "PANORAMA": int(settings.projection == "equirectangular"),
        "WHITTED": int(settings.integrator == "whitted"),
        "SAMPLER": SAMPLERS[settings.sampler],
        "LIGHTS": LIGHTS[settings.direct_lighting],
        "LIGHTS_HIT": LIGHTS["bsdf"],
        "LIGHTS_SAMPLED": LIGHTS["mis"],
        "LIGHTS_AIMED": LIGHTS["nee"],
        "FILM": int(settings.keeps_variance),
        "LAMPS": int(has_lamps(settings)),
        "ENVIRONMENT": int(is_lit(settings.environment, settings.sky)),
        "CROSSING": int(any(m.kind == "glass" and m.roughness > 0 for m in settings.materials)),
        "View": VIEW,
        "Material": MATERIAL,
    }


def material_rows(settings: Settings, models: list[gltf.Model] | tuple = ()) -> np.ndarray:
    """The materials (n,) MATERIAL, behind the scene's own those of the models; emission.w is 1 where one shines,
    and color.w where one only reflects evenly (shaders/raytracing/shade_diffuse_simd8.h)."""
    others = [material for model in models for material in materials_of(model)]
    rows = np.zeros(max(len(settings.materials) + len(others), 1), MATERIAL)
    for row, material in zip(rows, settings.materials, strict=False):
        row["color"][:3], row["other"][:3], row["emission"][:3] = material.color, material.color2, material.emission
        row["emission"][3] = any(material.emission)
        row["color"][3] = material.kind == "diffuse" and not any(material.emission)
        row["kind"] = MATERIALS.index(material.kind)
        row["refraction"], row["size"] = material.ior, material.checker_size
        row["roughness"], row["metallic"] = material.roughness, material.metallic
    for row, other in zip(rows[len(settings.materials) :], others, strict=False):
        row["color"][:3], row["emission"][:3], row["emission"][3] = other.color[:3], other.emission, any(other.emission)
        row["kind"] = MATERIALS.index("glass" if other.transmission > 0.5 else "metallic")
        row["refraction"], row["size"] = max(other.refraction, 1.0), 1.0
        row["roughness"], row["metallic"] = other.roughness, other.metallic
    return rows


def view_of(settings: Settings, size: tuple[int, int], tile: Tile, lights: dict | None = None) -> np.ndarray:
    """The VIEW () of a camera: right and up scaled so that the whole picture spans -1 to 1 in both.

    `lights` are the fields of a Lights.
    """
    width, height = size
    camera = settings.view
    right, up, forward = camera.axes()
    reach = np.tan(np.radians(camera.fov_degrees) / 2)
    view = np.zeros((), VIEW)
    view["eye"][:3], view["forward"][:3] = camera.position, forward
    view["right"][:3], view["up"][:3] = right * reach * width / height, up * reach
    view["lens_radius"] = settings.lens_radius
    view["focus_distance"] = settings.focus_distance or np.linalg.norm(np.subtract(camera.target, camera.position))
    view["horizon"][:3], view["zenith"][:3] = settings.horizon, settings.zenith
    view["width"], view["height"] = size
    view["left"], view["top"], view["across"], view["down"] = tile
    view["tiles"] = -(-tile[2] // 8)
    view["rays"] = view["tiles"] * -(-tile[3] // 4) * 32
    view["seed"], view["depth"] = settings.seed, settings.max_depth
    view["roulette"], view["noise"] = settings.rr_depth, settings.noise_threshold
    for field, value in (lights or {}).items():
        view[field] = value
    return view
