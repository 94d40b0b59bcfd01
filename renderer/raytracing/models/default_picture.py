"""The default picture of models and meshes: chooses the camera, lights, ground and exposure that a file does not have.

The camera is the first of the file, else a front three-quarter view (framing.py). A file without lights gets the preset
`studio` (environment_presets.py). Lights of the file, or emissive surfaces that light it, are kept; the studio is then
dimmed to FILL of their light, so that surfaces in their shadow are not black. An incident-light meter sets the exposure
(lights/light_meter.py). A shadow catcher is the ground, unless the model has a floor.
"""

from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats import gltf
from renderer.formats.images import LUMINANCE
from renderer.raytracing.lights import light_meter
from renderer.raytracing.models.framing import bounds_of, frame, has_floor, inside_view, three_quarter
from renderer.raytracing.models.gltf_shapes import materials_of
from renderer.raytracing.settings import Environment, Material, PointLight, Quad, Settings, Sun
from renderer.records import dataclass, replace
from renderer.scene.cameras import Camera, to_point
from renderer.scene.scene import Scene, ToneMapping

TONE = ToneMapping(curve="agx")  # tone mapping of ray-traced scenes that set no other
MODEL_TONE = replace(TONE, exposure="manual", contrast=1.4)  # AgX alone is as flat as a negative
GROUND = Material("ground", "shadow_catcher")
BODY = Material("body", "metallic", color=(0.40, 0.235, 0.16), roughness=0.38)
GROUND_SIZE = 12.0  # side of the ground, in diameters of the model
FILL = 0.25  # strength of the studio beside a file's lights, as a fraction of their light
STUDIO_EV = 0.1  # exposure of a model that only the studio lights
WHITE = 0.83  # radiance, times exposure, of a white surface that has the metered irradiance
MAX_STRENGTH = 1e6  # the greatest strength of an environment
# An alpha map is read at the points of a grid of each triangle, MASK_STEPS steps along an edge. MASK_GRID holds their
# barycentric coordinates in units of 1 / MASK_STEPS.
MASK_STEPS = 16
MASK_GRID = np.array([(i, j, MASK_STEPS - i - j) for i in range(MASK_STEPS + 1) for j in range(MASK_STEPS + 1 - i)])
MASK_POINTS = MASK_GRID / MASK_STEPS  # (k, 3) barycentric coordinates in a triangle
MASK_NEIGHBORS = (np.abs(MASK_GRID[:, None] - MASK_GRID).max(-1) <= 1).astype("f4")  # (k, k)
# Most points of a primitive at which alpha is read; smallest alpha of a texel that counts as visible when blended.
MAX_MASK_POINTS, MIN_ALPHA = 1 << 21, 0.02
# In a file without lamps, emissive triangles count as lights if white surfaces in their light reach this radiance;
# dimmer triangles are decoration.
EMITTERS_LIGHT = 1.0
# Blender's exporter writes lamps of watts in lux and candela, by LUMENS_PER_WATT, and emission as it is. Its emissive
# surfaces are taken to be in watts too where they would else be black beside the lamps: dimmer than DIM of white.
LUMENS_PER_WATT, DIM = 683.0, 0.02


@dataclass(frozen=True)
class Content:
    """The geometry, lights and cameras of a file, from which the default picture is made."""

    vertices: np.ndarray  # (n, 3), of all poses
    corners: np.ndarray  # (m, 3, 3) of every step-th triangle
    emitted: np.ndarray  # (m,) luminance of the radiance of these triangles
    step: int = 1
    suns: tuple[Sun, ...] = ()
    points: tuple[PointLight, ...] = ()
    view: Camera | None = None  # the view of the file's first camera
    cameras: tuple[str, ...] = ()  # names of the file's cameras
    by_blender: bool = False  # written by Blender's exporter of glTF
    precision: str = "f4"  # dtype in which the AABB's two corners are added to find its center


def default_scene(path: Path, content: Content, settings: Settings) -> Scene:
    """Adds camera, light, ground and exposure to `settings`, which hold only the file's shapes."""
    low, high = bounds_of(content.vertices)
    has_own_floor = has_floor(content.corners, content.step, low, high)
    center = (low.astype(content.precision) + high.astype(content.precision)).astype("f8") / 2
    # inside_view() needs all triangles: step 1
    inside = inside_view(content.corners, low, high) if has_own_floor and content.step == 1 else None
    try:
        view = content.view or inside or frame(content.vertices, three_quarter(high - low, has_own_floor), center)
    except ValueError as error:
        raise InputError(f"{path}: is too small for its distance from the origin, so no camera frames it") from error
    own_light = _own_light(content, view)
    brightest = float(content.emitted.max(initial=0))
    is_in_watts = content.by_blender and bool(content.suns or content.points) and 0 < brightest < DIM * own_light
    if is_in_watts:
        content = replace(content, emitted=content.emitted * LUMENS_PER_WATT)
        shapes = tuple(replace(shape, emission_scale=LUMENS_PER_WATT) for shape in settings.models)
        settings, own_light = replace(settings, models=shapes), _own_light(content, view)
    file_light, lights = own_light, content  # the file's lights alone, for the notes
    if inside and not own_light:  # no light enters a closed room
        # Here and below: four digits, which is enough and short in a scene file.
        power = float(f"{float(((high - low) ** 2)[[0, 2]].min()) / 4:.4g}")
        content = replace(content, points=(PointLight(inside.target, (power,) * 3),))
        own_light = _own_light(content, view)
    strength = min(float(f"{FILL * own_light:.4g}"), MAX_STRENGTH) if own_light else 1.0
    quads = () if has_own_floor else (_ground(low, high),)
    settings = replace(
        settings,
        view=view,
        environment=Environment()
        if inside
        else Environment(preset="studio", strength=strength, rotation_degrees=_azimuth_degrees(view)),
        suns=content.suns,
        point_lights=content.points,
        # A mesh has the material BODY. A model has its own materials; without a ground the settings list BODY, unused.
        materials=(*settings.materials, GROUND) if quads else settings.materials or (BODY,),
        quads=quads,
    )
    ev = float(np.round(np.log2(WHITE / own_light), 2)) if own_light else STUDIO_EV
    tone, notes = replace(MODEL_TONE, ev=ev), _notes(lights, file_light, has_own_floor, ev, bool(inside))
    if is_in_watts:
        notes += (f"emission times {LUMENS_PER_WATT:g}: Blender writes lamps in lux and candela, emission in watts",)
    return Scene(path, path.stem, "raytrace", settings, tone, notes=notes)


def _notes(content: Content, own_light: float, has_own_floor: bool, ev: float, is_inside: bool) -> tuple[str, ...]:
    """Sentences for the user on the choices that were made for this file."""
    notes = []
    if content.cameras:
        name, count = content.cameras[0], len(content.cameras)
        notes.append(f"camera {name!r} of the file" + (f", the first of {count}" if count > 1 else ""))
    if own_light:
        lamps = len(content.suns) + len(content.points)
        light = f"{lamps} light{'s' * (lamps != 1)} of the file" if lamps else "emissive surfaces of the file"
        notes.append(f"{light}{'' if is_inside else ' and a dim studio'}, exposure {ev:+.2f} EV")
    if is_inside:
        lamp = "" if own_light else ", with a lamp in its middle"
        notes.append(f"a closed room, since its faces point inwards, seen from inside{lamp}")
    if has_own_floor:
        notes.append("no ground: the model has a floor")
    return tuple(notes)


def _own_light(content: Content, view: Camera) -> float:
    """The radiance of white surfaces in the light of the file's lights, where the view sees them; 0 without lights."""
    if not (content.suns or content.points or content.emitted.any()):
        return 0.0
    surface = light_meter.facing(light_meter.sample_surface(content.corners, content.emitted), np.array(view.position))
    lamps = light_meter.lamp_irradiance(surface, content.suns, content.points)
    is_emitter = content.emitted > 0
    lit = content.corners[is_emitter], content.emitted[is_emitter]
    emitters = light_meter.sample_surface(*lit, light_meter.EMITTER_SAMPLES)
    reflected = surface.emitted <= 0  # the exposure is not for the emitters
    glow = light_meter.emitter_irradiance(surface, emitters)[reflected]
    total = light_meter.metered(lamps[reflected] + glow) / np.pi
    return total if light_meter.metered(lamps) > 0 or total >= EMITTERS_LIGHT else 0.0


def vertices_of(*poses: gltf.Model) -> np.ndarray:
    """The vertices (n, 3) float32 of a model's triangles, in world space, and the ends of its points and lines.

    `poses` are several poses of one model; the triangles that alpha maps hide are found once for all of them.
    """
    vertices: list[np.ndarray] = []
    masks: dict[tuple[int, int], np.ndarray | None] = {}
    for model, (mesh, matrix) in ((pose, node) for pose in poses for node in pose.mesh_nodes):
        for key, part in enumerate(model.meshes[mesh]):
            if (mesh, key) not in masks:
                masks[mesh, key] = _seen_points(model, part)
            points, seen = part.used_vertices, masks[mesh, key]
            if seen is not None:
                corners = part.vertices[part.faces[seen.any(1)]]
                points = np.einsum("kc,ncd->nkd", MASK_POINTS, corners)[seen[seen.any(1)]]
            used = points.astype("f8") @ matrix[:3, :3].T + matrix[:3, 3]
            if part.faces.shape[1] == 3:
                vertices.append(used)
                continue
            radius = model.point_radius if part.faces.shape[1] == 1 else model.line_radius
            vertices += [used - radius, used + radius]
    return np.concatenate(vertices).astype("f4")


def _seen_points(model: gltf.Model, part: gltf.MeshPrimitive) -> np.ndarray | None:
    """True (triangles, k) if the alpha map shows a texel near this one of MASK_POINTS; None without an alpha map."""
    material = model.materials[part.material] if part.material >= 0 else gltf.Material()
    slot = material.textures.get("base_color")
    uv = part.texcoords[slot.texcoord_set] if slot and slot.texcoord_set < len(part.texcoords) else None
    is_mesh = part.faces.shape[1] == 3 and len(part.faces) * len(MASK_POINTS) <= MAX_MASK_POINTS
    if material.alpha == "OPAQUE" or slot is None or uv is None or not is_mesh:
        return None
    texture = model.textures[slot.texture]
    coordinates = np.einsum("kc,ncd->nkd", MASK_POINTS, uv[part.faces]).reshape(-1, 2)
    matrix = np.reshape(slot.transform, (2, 3))
    coordinates = coordinates @ matrix[:, :2].T + matrix[:, 2]
    size = np.array(texture.pixels.shape[1::-1])
    wrapped = [_wrap(coordinates[:, axis], texture.wrap[axis]) for axis in (0, 1)]
    x, y = (np.minimum((w * n).astype("i8"), n - 1) for w, n in zip(wrapped, size, strict=True))
    alpha = texture.pixels[y, x, 3] / 255 * material.color[3]
    seen = alpha >= (material.cutoff if material.alpha == "MASK" else MIN_ALPHA)
    near = np.asarray(seen.reshape(-1, len(MASK_POINTS)).astype("f4") @ MASK_NEIGHBORS > 0)
    return near if near.any() else None


def _wrap(coordinate: np.ndarray, wrap: str) -> np.ndarray:
    """Texture coordinates (n,) brought to 0 to 1."""
    if wrap == "clamp":
        return np.asarray(np.clip(coordinate, 0, 1))
    return np.abs((coordinate + 1) % 2 - 1) if wrap == "mirror" else coordinate % 1


def triangles_of(model: gltf.Model, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3, 3) float64 of every step-th triangle of a model, and the luminance (n,) of its radiance."""
    glow = [_emitted_luminance(material, model.textures) for material in materials_of(model)]
    corners, emitted = [np.zeros((0, 3, 3))], [np.zeros(0)]
    for mesh, matrix in model.mesh_nodes:
        flip = 1 if np.linalg.det(matrix[:3, :3]) >= 0 else -1  # a mirrored node turns the fronts of its triangles
        for part in model.meshes[mesh]:
            if part.faces.shape[1] < 3:
                continue
            chosen = part.vertices[part.faces[::step, ::flip]].astype("f8")
            corners.append(chosen @ matrix[:3, :3].T + matrix[:3, 3])
            # Material -1 is none: the last of materials_of(), a default that does not emit
            emitted.append(np.full(len(chosen), glow[part.material]))
    return np.concatenate(corners), np.concatenate(emitted)


def _emitted_luminance(material: gltf.Material, textures: list[gltf.Texture]) -> float:
    """Luminance of the radiance that a material emits, the mean over its texture."""
    emission = np.array(material.emission)
    slot = material.textures.get("emissive")
    if slot is not None and emission.any():
        # Every eighth texel, and gamma 2.2 for sRGB: a mean needs no more.
        pixels = textures[slot.texture].pixels[::8, ::8, :3] / 255.0
        emission = emission * (pixels**2.2).mean((0, 1))
    return float(emission @ LUMINANCE)


def _azimuth_degrees(view: Camera) -> float:
    """The rotation of a preset that lights the view's camera as it lights one that looks along -z."""
    back = -view.axes()[2]
    return float(np.round(np.degrees(np.arctan2(back[0], back[2])), 3))


def _ground(low: np.ndarray, high: np.ndarray) -> Quad:
    """A level square just below the AABB of a model, so that no face of the model lies in it."""
    center, radius = (low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-6)
    y = float(low[1] - max(1e-4 * radius, 4 * float(np.spacing(np.float32(abs(low[1]))))))
    half = GROUND_SIZE * radius
    (west, east), (north, south) = ((center[axis] - half, center[axis] + half) for axis in (0, 2))
    corners = (west, south), (east, south), (east, north), (west, north)
    a, b, c, d = (to_point((x, y, z)) for x, z in corners)
    return Quad("ground", (a, b, c, d))
