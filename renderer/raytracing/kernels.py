"""The ray tracer's kernels: generated source, compile-time constants and launch parameters."""

import numpy as np

from renderer.gpu.kernel_source import GeneratedSource
from renderer.raytracing import microfacet
from renderer.raytracing.distance_fields import KINDS
from renderer.raytracing.environment import is_lit
from renderer.raytracing.lights import has_non_area_lights
from renderer.raytracing.materials import MATERIAL, material_constants, material_rows
from renderer.raytracing.ray_buffers import WORDS_PER_WARP
from renderer.raytracing.settings import MATERIALS, Settings, catches_shadows
from renderer.raytracing.volumes import has_volumes, samples_segments

REGENERATE_BELOW = 0  # a warp starts new paths when at most so many of its paths are active
STAGES = {  # kernels of a schedule; shaders/raytracing/raytrace.cu numbers the schedules in this order
    "wavefront": ("generate", "trace", "shade", "connect", "accumulate"),
    "regenerate": ("regenerate",),
    "megakernel": ("megakernel",),
}
NO_SCHEDULE = len(STAGES)  # for kernels of other files that use the functions of raytrace.cu
PROJECTIONS = {"perspective": 0, "equirectangular": 1, "orthographic": 2, "fisheye": 3}
STENCILS = {"off": 0, "flags": 1, "bits": 2, "compact": 3}
SAMPLERS = {"random": 0, "sobol": 1}
DIRECT_LIGHTING = {"bsdf": 0, "mis": 1, "nee": 2}
UNREAD_BY_AOVS = {  # constants of light and film, with one value, so that scenes share the kernels of aovs.cu
    "CLAMP_INDIRECT": 0, "DIRECT_LIGHTING": DIRECT_LIGHTING["mis"], "ENVIRONMENT": 0, "EQUIANGULAR": 0, "FILM": 0,
    "LIGHT_PROFILES": 0, "NON_AREA_LIGHTS": 0, "SHADOW_CATCHER": 0, "STENCIL": STENCILS["bits"], "WHITTED": 0,
}  # fmt: skip
LAUNCH_PARAMS = np.dtype([
    ("eye", "f4", (4,)), ("right", "f4", (4,)), ("up", "f4", (4,)), ("forward", "f4", (4,)),
    ("horizon", "f4", (4,)), ("zenith", "f4", (4,)), ("inverse_irradiance", "f4", (4,)),
    ("width", "i4"), ("height", "i4"),
    ("tile_x", "i4"), ("tile_y", "i4"), ("tile_width", "i4"), ("tile_height", "i4"), ("blocks_x", "i4"),
    ("seed", "i4"), ("sample_index", "i4"), ("max_depth", "i4"), ("light_count", "i4"), ("inverse_light_power", "f4"),
    ("ray_count", "i4"), ("lens_radius", "f4"), ("focus_distance", "f4"), ("rr_depth", "i4"),
    ("noise_threshold", "f4"), ("non_area_lights", "i4"), ("sun_count", "i4"), ("environment", "i4"),
    ("environment_width", "i4"), ("environment_height", "i4"), ("environment_rotation", "f4"),
    ("environment_probability", "f4"), ("env_cdf", "i4"), ("env_cdf_width", "i4"), ("env_cdf_height", "i4"),
    ("first_sample", "i4"), ("lens_shift_x", "f4"), ("lens_shift_y", "f4"), ("fisheye_turns", "f4"),
    ("clamp_indirect", "f4"), ("light_tree", "i4"), ("light_tree_keys", "i4"), ("light_tree_key_count", "i4"),
    ("light_tree_probability", "f4"), ])  # fmt: skip
OPTIONAL_MATERIALS = ("conductor", "glass", "metallic", "principled", "unlit")  # compiled for scenes that have them
Tile = tuple[int, int, int, int]  # x, y of the upper left corner, width, height in pixels


def kernel_source() -> GeneratedSource:
    """raytrace.cu behind the dispatch over shaders/raytracing/materials and distance_fields."""
    return GeneratedSource("materials", f'{_materials()}#include "raytracing/raytrace.cu"\n')


def photon_source() -> GeneratedSource:
    """photons.cu behind the dispatch over materials and distance fields."""
    return GeneratedSource("photons", f'{_materials()}#include "raytracing/photons.cu"\n')


def _materials() -> str:
    """The dispatch over materials: sample_material, over which guide.h has sample_bsdf, and eval_bsdf_pdf."""
    return (
        _surfaces()
        + microfacet.table_source()
        + '#include "raytracing/microfacet.h"\n'  # before the materials, of which a scene compiles some
        + "".join(_where_used(name, f'#include "raytracing/materials/{name}.h"\n') for name in MATERIALS)
        + "DEVICE bool sample_material(const Material m, const Surface s, Sampler sampler, uint dimension,\n"
        "                            BsdfSample *out) {\n"
        + _switch("m.kind", MATERIALS, "sample(m, s, sampler, dimension, out)", "false")
        + "DEVICE float4 eval_bsdf_pdf(const Material m, const Surface s, float3 direction) {\n"
        + _switch("m.kind", MATERIALS, "eval_pdf(m, s, direction)", "make_float4(0.0f, 0.0f, 0.0f, 0.0f)")
        + '#include "raytracing/guide.h"\n'
    )


def _includes(folder: str, names: tuple[str, ...]) -> str:
    return "".join(f'#include "raytracing/{folder}/{name}.h"\n' for name in names)


def _where_used(name: str, text: str) -> str:
    """The text, compiled only in scenes that have the material if it is an optional one."""
    return f"#if {name.upper()}\n{text}#endif\n" if name in OPTIONAL_MATERIALS else text


def _switch(kind: str, names: tuple[str, ...], call: str, otherwise: str) -> str:
    cases = "".join(_where_used(name, f"    case {index}: return {name}_{call};\n") for index, name in enumerate(names))
    return f"    switch ({kind}) {{\n{cases}    }}\n    return {otherwise};\n}}\n"


def _surfaces() -> str:
    """What scene.h needs before it: numbers of materials, surfaces, and the dispatch over distance fields."""
    return (
        "".join(f"#define MATERIAL_{name.upper()} {index}\n" for index, name in enumerate(MATERIALS))
        + '#include "raytracing/surface.h"\n'
        "#if DISTANCE_FIELDS || VOLUMES || LIGHT_PROFILES || ENVIRONMENT\n"
        '#include "common/reproducible_math.h"\n#endif\n'
        '#if DISTANCE_FIELDS\n#include "raytracing/sphere_trace.h"\n'
        + _includes("distance_fields", KINDS)
        + "DEVICE float field_distance(const DistanceField f, float3 p) {\n"
        + _switch("f.kind", KINDS, "distance(f, p)", "FLT_MAX")
        + "#endif\n"
    )


def traversal_source() -> GeneratedSource:
    """traversal_cost.cu: intersection with the scene and nothing of shading."""
    return GeneratedSource("traversal", f'{_surfaces()}#include "raytracing/traversal_cost.cu"\n')


def aov_source() -> GeneratedSource:
    """kernel_source with the kernels of aovs.cu behind it."""
    color = (
        "DEVICE float3 material_color(const Material m, const Surface s) {\n"
        f"    return m.kind == {MATERIALS.index('checker')} ? checker_color(m, s.point) : base_color(m);\n}}\n"
    )
    return GeneratedSource("layers", f'{kernel_source().text}{color}#include "raytracing/aovs.cu"\n')


def light_picks_source() -> GeneratedSource:
    """kernel_source with the kernel of light_picks.cu behind it."""
    return GeneratedSource("light_picks", f'{kernel_source().text}#include "raytracing/light_picks.cu"\n')


def compile_constants(
    settings: Settings,
    spheres: bool,
    scalar_threads: bool = False,
    materials: np.ndarray | None = None,
    sample_in_memory: bool = False,
) -> dict[str, object]:
    """Compile-time constants and record types of the kernels.

    Those of Geometry.constants and LightSampler.constants come on top; a constant that is missing there is 0.
    `spheres` says whether the BVH holds spheres. `scalar_threads` is for devices without warps: one thread traces the
    32 paths of a stencil word. `materials` are those of material_rows; None for the settings' alone.
    With `sample_in_memory` kernels read the sample's number from a buffer.
    """
    rows = material_rows(settings) if materials is None else materials
    optional = material_constants(rows)
    by_lanes = scalar_threads and not (spheres or optional["REFRACTION"]) and bool((rows["color"][:, 3] > 0).all())
    return {
        "STRICT": 1,
        "LANES": 1,
        "MOTION": int(settings.is_blurred),
        "INSTANCED_LIGHTS": 0,
        "SPHERES": int(spheres),
        "STENCIL": STENCILS[settings.stencil if settings.schedule == "wavefront" else "bits"],
        "SCHEDULE": list(STAGES).index(settings.schedule),
        "REGENERATE_BELOW": REGENERATE_BELOW,
        "WORDS_PER_WARP": 1 if settings.schedule == "megakernel" else WORDS_PER_WARP,
        "PART": 0,  # of the wavefront's kernels: all; see schedules.py
        "SCALAR_THREADS": int(scalar_threads),
        "SAMPLE_IN_MEMORY": int(sample_in_memory),
        "VECTOR_MATERIALS": int(by_lanes),
        "PROJECTION": PROJECTIONS[settings.projection],
        "LENS_SHIFT": int(any(settings.lens_shift)),
        "CLAMP_INDIRECT": int(settings.clamp_indirect > 0),
        "WHITTED": int(settings.integrator == "whitted"),
        "SAMPLER": SAMPLERS[settings.sampler],
        "DIRECT_LIGHTING": DIRECT_LIGHTING[settings.direct_lighting],
        **{f"DIRECT_{name.upper()}": value for name, value in DIRECT_LIGHTING.items()},
        "FILM": int(settings.keeps_variance),
        "GUIDING": int(settings.guiding_photons > 0),
        "NON_AREA_LIGHTS": int(has_non_area_lights(settings)),
        "ENVIRONMENT": int(is_lit(settings.environment, settings.sky)),
        "SHADOW_CATCHER": MATERIALS.index("shadow_catcher") if catches_shadows(settings) else 0,
        "VOLUMES": int(has_volumes(settings)),
        "EQUIANGULAR": int(samples_segments(settings)),
        "LIGHT_PROFILES": int(any(light.file for light in settings.point_lights)),
        **optional,
        "LaunchParams": LAUNCH_PARAMS,
        "Material": MATERIAL,
    }


def launch_params(
    settings: Settings, size: tuple[int, int], tile: Tile, lights: dict[str, float] | None = None
) -> np.ndarray:
    """The LAUNCH_PARAMS () of a tile of a picture of `size`; `lights` are the fields of a LightSampler.

    right and up are scaled so that the whole picture spans -1 to 1 in both; those of an orthographic camera are lengths
    of the scene.
    """
    width, height = size
    camera = settings.view
    right, up, forward = camera.axes()
    half_height = np.tan(np.radians(camera.fov_degrees) / 2)
    if settings.projection == "orthographic":
        half_height = camera.target_plane_height() / 2
    half_height *= camera.fit_scale(width / height)
    params = np.zeros((), LAUNCH_PARAMS)
    params["eye"][:3], params["forward"][:3] = camera.position, forward
    params["right"][:3], params["up"][:3] = right * half_height * width / height, up * half_height
    params["lens_radius"] = settings.lens_radius
    params["focus_distance"] = settings.focus_distance or np.linalg.norm(np.subtract(camera.target, camera.position))
    params["lens_shift_x"], params["lens_shift_y"] = settings.lens_shift
    params["fisheye_turns"] = settings.fisheye_degrees / 720
    params["clamp_indirect"] = settings.clamp_indirect
    params["horizon"][:3], params["zenith"][:3] = settings.horizon, settings.zenith
    params["width"], params["height"] = size
    params["tile_x"], params["tile_y"], params["tile_width"], params["tile_height"] = tile
    params["blocks_x"] = -(-tile[2] // 8)
    params["ray_count"] = params["blocks_x"] * -(-tile[3] // 4) * 32
    params["seed"], params["max_depth"] = settings.seed, settings.max_depth
    params["rr_depth"], params["noise_threshold"] = settings.rr_depth, settings.noise_threshold
    for field, value in (lights or {}).items():
        params[field] = value
    return params
