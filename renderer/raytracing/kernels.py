"""The ray tracer's kernels: generated source, compile-time constants and launch parameters.

A kernel's source is a generated dispatch over all materials and distance fields, followed by a file of
shaders/raytracing. Each material is a file of its folder materials/, each distance field a file of distance_fields/.
schedules.py, and the light and photon kernels, compile the source with compile_constants() and launch it with
launch_params().
"""

import numpy as np

from renderer.gpu.kernel_source import GeneratedSource
from renderer.raytracing import microfacet
from renderer.raytracing.distance_fields import KINDS
from renderer.raytracing.film import Tile
from renderer.raytracing.light_passes import group_passes, lobe_passes
from renderer.raytracing.lights.caustic_shapes import ball_rows, sampled_meshes
from renderer.raytracing.lights.environment import has_environment
from renderer.raytracing.lights.light_buffer import has_non_area_lights
from renderer.raytracing.material_files import MATERIAL_FILES, MATERIALS, SIMD8_KINDS, material_constants
from renderer.raytracing.materials import MATERIAL, material_rows
from renderer.raytracing.ray_buffers import WORD_RAYS, WORDS_PER_WARP, block_counts
from renderer.raytracing.settings import Settings

REGENERATE_AT_MOST = 0  # a warp starts new paths when at most this number of its paths is active
KERNEL_FILES = {  # by the name of the generated source: files in shaders/raytracing that follow the dispatch
    "materials": ("raytrace.cu",),
    "layers": ("raytrace.cu", "aovs.cu"),
    "mattes": ("raytrace.cu", "film/mattes.cu"),
    "light_picks": ("raytrace.cu", "lights/light_picks.cu"),
    "photons": ("lights/photons.cu",),
    "traversal": ("traversal_cost.cu",),
}
STAGES = {  # kernels of a schedule; shaders/raytracing/raytrace.cu numbers the schedules in this order
    "wavefront": ("generate", "trace", "shade", "connect", "accumulate"),
    "regenerate": ("regenerate",),
    "megakernel": ("megakernel",),
}
NO_LIGHT_PASSES = {"LIGHT_PASSES": 0, "LIGHT_GROUPS": 0}
# for kernels of other files, which use functions of raytrace.cu but no schedule
NO_SCHEDULE = {"GUIDING": 0, "SCHEDULE": len(STAGES), **NO_LIGHT_PASSES}
PROJECTIONS = {"perspective": 0, "equirectangular": 1, "orthographic": 2, "fisheye": 3}
STENCILS = {"off": 0, "flags": 1, "bits": 2, "compact": 3}  # numbered as in schedules/stencil.h
SAMPLERS = {"random": 0, "sobol": 1}
DIRECT_LIGHTING = {"bsdf": 0, "mis": 1, "nee": 2}
# Constants that aovs.cu, the kernels of layers such as albedo, does not read: they get one value, so that scenes and
# schedules share its kernels.
UNREAD_BY_AOVS = {
    "CAUSTICS": 0, "CAUSTIC_MESHES": 0, "CLAMP_INDIRECT": 0, "DIRECT_LIGHTING": DIRECT_LIGHTING["mis"],
    "ENVIRONMENT": 0, "EQUIANGULAR": 0, "FILM": 0,
    **NO_LIGHT_PASSES,
    "LIGHT_PROFILES": 0, "NON_AREA_LIGHTS": 0, "SHADOW_CATCHER": 0, "STENCIL": STENCILS["bits"], "WHITTED": 0,
    "WORDS_PER_WARP": WORDS_PER_WARP,
}  # fmt: skip
DEFAULTS = {  # constants that only scenes with the feature set
    **dict.fromkeys(("BVH8", "DEFORMS", "DISTANCE_FIELDS", "INSTANCED_LIGHTS", "INSTANCES", "LIGHT_PICKS", "LIGHT_TREE",
                     "SPHERE_TEXTURES", "TEXTURED"), 0),
    "UV_SETS": 1,
}  # fmt: skip
# The struct LaunchParams of the kernels:
#     eye, right, up, forward        the camera (camera.h); eye.w: 0, the time of rays through pixel centers
#     horizon, zenith                radiance of the background gradient
#     inverse_irradiance             1 / irradiance of level ground by suns and environment (catch_shadows.h)
#     width, height, tile_...        the picture and its tile in pixels; blocks_x: blocks of 8 x 4 pixels along the tile
#     ray_count                      32 rays for each block of the tile
#     sample_index, first_sample     of the sample to draw, and of the first one of its range (film.py)
#     max_depth, rr_depth            rays of a path at most, and before Russian roulette may end it
#     light_count, sun_count         rows of the light table, and of them suns; light_tree_key_count: keys of the tree
#     inverse_light_power            1 / total power of the lights
#     lens_radius, focus_distance    in scene lengths; lens_shift_x, _y: fractions of the film's width and height
#     fisheye_turns                  half of the angle of view, in turns of 360 degrees
#     non_area_lights, environment, env_cdf, light_tree, light_tree_keys   first rows in `lights` (lights/light_rows.h)
#     environment_width, _height     in pixels; env_cdf_width, _height: in cells; environment_rotation: in turns
#     environment_probability, light_tree_probability   with which the light table chooses these
#     clamp_indirect, noise_threshold, seed   the settings
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
INTERFACE = (  # dispatched functions (surface.h): type, name, parameters, call of a material's function, default
    ("bool", "material_sample", "const Material m, const Surface s, Sampler sampler, uint dimension, BsdfSample *out",
     "sample(m, s, sampler, dimension, out)", "false"),
    ("float4", "eval_bsdf_pdf", "const Material m, const Surface s, float3 direction",
     "eval_pdf(m, s, direction)", "make_float4(0.0f, 0.0f, 0.0f, 0.0f)"),
    ("float3", "material_diffuse_part", "const Material m, const Surface s, float3 direction",
     "diffuse_part(m, s, direction)", "make_float3(0.0f, 0.0f, 0.0f)"),
    ("float3", "material_albedo", "const Material m, const Surface s", "albedo(m, s)", "base_color(m)"),
    ("bool", "material_is_delta", "const Material m, const Surface s", "is_delta(m, s)", "true"),
    ("float", "material_mirror_fraction", "const Material m, const Surface s", "mirror_fraction(m, s)", "0.0f"),
    ("float", "material_guided_fraction", "const Material m", "guided_fraction(m)", "0.0f"),
    ("bool", "material_is_lit_from_behind", "const Material m", "is_lit_from_behind(m)", "false"),
    ("bool", "material_has_medium", "const Material m", "has_medium(m)", "false"),
    ("float", "material_dispersion", "const Material m", "dispersion(m)", "0.0f"),
)  # fmt: skip


def kernel_source(name: str = "materials") -> GeneratedSource:
    """Returns the dispatch over materials and distance fields, followed by KERNEL_FILES[name].

    The source "traversal" intersects rays with the scene and shades nothing, so it has no materials.
    """
    text = surface_source() if name == "traversal" else material_source()
    return GeneratedSource(name, text + _includes(*KERNEL_FILES[name]))


def material_source() -> str:
    """Returns surfaces, all materials, the dispatch over them, and guide.h, whose sample_bsdf() calls the dispatch."""
    return (
        surface_source()
        + microfacet.table_source()
        + _includes("microfacet.h")  # even if no material that includes it is compiled
        + "".join(_where_used(name, _includes(f"materials/{name}.h")) for name in MATERIALS)
        + "".join(
            f"DEVICE {kind} {function}({params}) {{\n{_switch('m.kind', MATERIALS, call, default)}"
            for kind, function, params, call, default in INTERFACE
        )
        + "".join(_flag(flag) for flag in ("unlit", "shadow_catcher"))
        + _includes("lights/guide.h")
    )


def _flag(flag: str) -> str:
    """Returns the text of a device function is_FLAG(material): true if the material's file declares @FLAG."""
    kinds = [index for index, file in enumerate(MATERIAL_FILES.values()) if getattr(file, flag)]
    condition = " || ".join(f"m.kind == {index}" for index in kinds) or "false"
    return f"DEVICE bool is_{flag}(const Material m) {{ return {condition}; }}\n"


def _includes(*files: str) -> str:
    return "".join(f'#include "raytracing/{file}"\n' for file in files)


def _where_used(name: str, text: str) -> str:
    """Returns the text, in an #if for scenes that use the material if the material's file declares @optional."""
    is_optional = name in MATERIAL_FILES and MATERIAL_FILES[name].optional
    return f"#if {name.upper()}\n{text}#endif\n" if is_optional else text


def _switch(kind: str, names: tuple[str, ...], call: str, otherwise: str) -> str:
    """Returns the body of a dispatched function: a switch over the number `kind` that calls NAME_`call`."""
    cases = "".join(_where_used(name, f"    case {index}: return {name}_{call};\n") for index, name in enumerate(names))
    return f"    switch ({kind}) {{\n{cases}    }}\n    return {otherwise};\n}}\n"


def surface_source() -> str:
    """Returns the text that scene.h needs: surface.h, and the dispatch over distance fields."""
    return (
        "".join(f"#define SIMD8_{kind.upper()} {index}.0f\n" for index, kind in enumerate(SIMD8_KINDS, 1))
        + '#include "common/reproducible_math.h"\n#include "raytracing/surface.h"\n'
        "#if DISTANCE_FIELDS\n"
        + _includes("sphere_trace.h", *(f"distance_fields/{kind}.h" for kind in KINDS))
        + "DEVICE float field_distance(const DistanceField f, float3 p) {\n"
        + _switch("f.kind", KINDS, "distance(f, p)", "FLT_MAX")
        + "#endif\n"
    )


def compile_constants(
    settings: Settings,
    spheres: bool,
    scalar_threads: bool = False,
    materials: np.ndarray | None = None,
    sample_in_memory: bool = False,
) -> dict[str, object]:
    """Returns the compile-time constants and record types of the kernels, by name.

    The caller replaces the defaults of geometry and lights by Geometry.constants and LightSampler.constants.
    `spheres`: the BVH holds spheres. `scalar_threads`: the device has no warps, so one thread traces 32 paths, whose
    active-ray mask is one word. `materials` (m,) MATERIAL: materials of the scene, then of its models; None if the
    scene has no models. `sample_in_memory`: kernels read the sample index from a buffer, not from their parameters.
    """
    rows = material_rows(settings) if materials is None else materials
    optional = material_constants(rows)
    # color.w is the number of the material's eight-lane shading (materials.py); 0: the material shades path by path
    simd8 = scalar_threads and not (spheres or optional["REFRACTION"]) and bool((rows["color"][:, 3] > 0).all())
    return DEFAULTS | {
        "STRICT": 1,
        "LANES": 1,
        "MOTION": int(settings.is_blurred),
        "SPHERES": int(spheres),
        "STENCIL": STENCILS[settings.stencil if settings.schedule == "wavefront" else "bits"],
        "SCHEDULE": list(STAGES).index(settings.schedule),
        "REGENERATE_AT_MOST": REGENERATE_AT_MOST,
        "WORDS_PER_WARP": 1 if settings.schedule == "megakernel" else WORDS_PER_WARP,
        "PART": 0,  # all kernels in one program; see PARTS in schedules.py
        "SCALAR_THREADS": int(scalar_threads),
        "SAMPLE_IN_MEMORY": int(sample_in_memory),
        "VECTOR_MATERIALS": int(simd8),
        "PROJECTION": PROJECTIONS[settings.projection],
        "LENS_SHIFT": int(any(settings.lens_shift)),
        "CLAMP_INDIRECT": int(settings.clamp_indirect > 0),
        "WHITTED": int(settings.integrator == "whitted"),
        "SAMPLER": SAMPLERS[settings.sampler],
        "DIRECT_LIGHTING": DIRECT_LIGHTING[settings.direct_lighting],
        **{f"DIRECT_{name.upper()}": value for name, value in DIRECT_LIGHTING.items()},
        "FILM": int(settings.keeps_variance),
        "LIGHT_PASSES": len(lobe_passes(settings)),
        "LIGHT_GROUPS": len(group_passes(settings)),
        "GUIDING": int(settings.guiding_photons > 0),
        "NON_AREA_LIGHTS": int(has_non_area_lights(settings)),
        "ENVIRONMENT": int(has_environment(settings)),
        "VOLUMES": int(settings.has_volumes),
        "CAUSTICS": int(len(ball_rows(settings)) > 0 or bool(sampled_meshes(settings))),
        "CAUSTIC_MESHES": int(bool(sampled_meshes(settings))),
        "EQUIANGULAR": int(settings.samples_segments),
        "LIGHT_PROFILES": int(any(light.file for light in settings.point_lights)),
        **optional,
        "LaunchParams": LAUNCH_PARAMS,
        "Material": MATERIAL,
    }


def launch_params(
    settings: Settings, size: tuple[int, int], tile: Tile, lights: dict[str, float] | None = None
) -> np.ndarray:
    """Returns the LAUNCH_PARAMS () of a tile of a picture of `size` (width, height) pixels.

    `lights` are the fields that LightSampler sets. The vectors `right` and `up` are scaled so that the picture spans -1
    to 1 along both: relative to `forward` of length 1, or in scene lengths for an orthographic camera.
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
    params["fisheye_turns"] = settings.fisheye_degrees / 720  # half the angle of view, in turns
    params["clamp_indirect"] = settings.clamp_indirect
    params["horizon"][:3], params["zenith"][:3] = settings.horizon, settings.zenith
    params["width"], params["height"] = size
    params["tile_x"], params["tile_y"], params["tile_width"], params["tile_height"] = tile
    columns, rows = block_counts(tile[2:])
    params["blocks_x"], params["ray_count"] = columns, columns * rows * WORD_RAYS
    params["seed"], params["max_depth"] = settings.seed, settings.max_depth
    params["rr_depth"], params["noise_threshold"] = settings.rr_depth, settings.noise_threshold
    for field, value in (lights or {}).items():
        params[field] = value
    return params
