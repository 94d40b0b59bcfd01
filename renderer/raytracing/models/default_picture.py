"""The default picture of models and meshes: chooses the camera, lights, ground and exposure that a file does not have.

The camera is the first of the file, else a front three-quarter view (framing.py). A file without lights gets the preset
`studio` (environment_presets.py). Lights of the file, or emissive surfaces that light it, are kept; the studio is then
dimmed to FILL of their light, so that surfaces in their shadow are not black. An incident-light meter sets the exposure
(lights/light_meter.py). A shadow catcher is the ground, unless the model has a floor.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from renderer.formats import gltf
from renderer.raytracing.lights.environment import LUMINANCE
from renderer.raytracing.lights.light_meter import (
    EMITTER_SAMPLES,
    emitter_irradiance,
    facing,
    lamp_irradiance,
    metered,
    sample_surface,
)
from renderer.raytracing.models.framing import bounds_of, frame, has_floor, three_quarter
from renderer.raytracing.models.gltf_shapes import materials_of
from renderer.raytracing.settings import Environment, Material, PointLight, Quad, Settings, Sun
from renderer.scene.cameras import Camera, to_point
from renderer.scene.scene import Scene, ToneMapping

TONE = ToneMapping(curve="agx")  # of all scenes that are ray traced, where a scene sets no other
MODEL_TONE = replace(TONE, exposure="manual", contrast=1.4)  # AgX alone is as flat as a negative
GROUND = Material("ground", "shadow_catcher")
BODY = Material("body", "metallic", color=(0.40, 0.235, 0.16), roughness=0.38)
GROUND_SIZE = 12.0  # side of the ground, in diameters of the model
FILL = 0.25  # strength of the studio beside a file's lights, as a fraction of their light
STUDIO_EV = 0.1  # exposure of a model that only the studio lights
WHITE = 0.83  # radiance, times exposure, of a white surface that has the metered irradiance
MAX_STRENGTH = 1e6  # of an environment
# In a file without lamps, emissive triangles count as lights if white surfaces in their light reach this radiance;
# dimmer triangles are decoration.
EMITTERS_LIGHT = 1.0


@dataclass(frozen=True)
class Content:
    """The geometry, lights and cameras of a file, from which the default picture is made."""

    vertices: np.ndarray  # (n, 3), of all poses
    corners: np.ndarray  # (m, 3, 3) of every step-th triangle
    emitted: np.ndarray  # (m,) luminance of the radiance of these triangles
    step: int = 1
    suns: tuple[Sun, ...] = ()
    points: tuple[PointLight, ...] = ()
    view: Camera | None = None  # from the file's first camera
    cameras: tuple[str, ...] = ()  # names of the file's cameras
    precision: str = "f4"  # dtype in which the AABB's two corners are added to find its center


def default_scene(path: Path, content: Content, settings: Settings) -> Scene:
    """Adds camera, light, ground and exposure to `settings`, which hold only the file's shapes."""
    low, high = bounds_of(content.vertices)
    has_own_floor = has_floor(content.corners, content.step, low, high)
    center = (low.astype(content.precision) + high.astype(content.precision)).astype("f8") / 2
    view = content.view or frame(content.vertices, three_quarter(high - low, has_own_floor), center)
    own_light = _own_light(content, view)
    strength = min(float(f"{FILL * own_light:.4g}"), MAX_STRENGTH) if own_light else 1.0
    quads = () if has_own_floor else (_ground(low, high),)
    settings = replace(
        settings,
        view=view,
        environment=Environment(preset="studio", strength=strength, rotation_degrees=_azimuth_degrees(view)),
        suns=content.suns,
        point_lights=content.points,
        # A mesh has the material BODY. A model has its own materials; without a ground the settings list BODY, unused.
        materials=(*settings.materials, GROUND) if quads else settings.materials or (BODY,),
        quads=quads,
    )
    ev = float(np.round(np.log2(WHITE / own_light), 2)) if own_light else STUDIO_EV
    tone, notes = replace(MODEL_TONE, ev=ev), _notes(content, own_light, has_own_floor, ev)
    return Scene(path, path.stem, "raytrace", settings, tone, notes=notes)


def _notes(content: Content, own_light: float, has_own_floor: bool, ev: float) -> tuple[str, ...]:
    """Sentences for the user on the choices that were made for this file."""
    notes = []
    if content.cameras:
        name, count = content.cameras[0], len(content.cameras)
        notes.append(f"camera {name!r} of the file" + (f", the first of {count}" if count > 1 else ""))
    if own_light:
        lamps = len(content.suns) + len(content.points)
        light = f"{lamps} light{'s' * (lamps != 1)} of the file" if lamps else "emissive surfaces of the file"
        notes.append(f"{light} and a dim studio, exposure {ev:+.2f} EV")
    if has_own_floor:
        notes.append("no ground: the model has a floor")
    return tuple(notes)


def _own_light(content: Content, view: Camera) -> float:
    """The radiance of white surfaces in the light of the file's lights, where the view sees them; 0 without lights."""
    if not (content.suns or content.points or content.emitted.any()):
        return 0.0
    surface = facing(sample_surface(content.corners, content.emitted), np.array(view.position))
    lamps = lamp_irradiance(surface, content.suns, content.points)
    is_emitter = content.emitted > 0
    emitters = sample_surface(content.corners[is_emitter], content.emitted[is_emitter], EMITTER_SAMPLES)
    reflected = surface.emitted <= 0  # the exposure is not for the emitters
    glow = emitter_irradiance(surface, emitters)[reflected]
    total = metered(lamps[reflected] + glow) / np.pi
    return total if metered(lamps) > 0 or total >= EMITTERS_LIGHT else 0.0


def vertices_of(model: gltf.Model) -> np.ndarray:
    """The vertices (n, 3) float32 of a model's triangles, in world space, and the ends of its points and lines."""
    vertices = []
    for mesh, matrix in model.mesh_nodes:
        for part in model.meshes[mesh]:
            used = part.used_vertices.astype("f8") @ matrix[:3, :3].T + matrix[:3, 3]
            if part.faces.shape[1] == 3:
                vertices.append(used)
                continue
            radius = model.point_radius if part.faces.shape[1] == 1 else model.line_radius
            vertices += [used - radius, used + radius]
    return np.concatenate(vertices).astype("f4")


def triangles_of(model: gltf.Model, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 3, 3) float64 of every step-th triangle of a model, and the luminance (n,) of its radiance."""
    glow = [_emitted_luminance(material, model.textures) for material in materials_of(model)]
    corners, emitted = [np.zeros((0, 3, 3))], [np.zeros(0)]
    for mesh, matrix in model.mesh_nodes:
        flip = 1 if np.linalg.det(matrix[:3, :3]) >= 0 else -1
        for part in model.meshes[mesh]:
            if part.faces.shape[1] < 3:
                continue
            chosen = part.vertices[part.faces[::step, ::flip]].astype("f8")
            corners.append(chosen @ matrix[:3, :3].T + matrix[:3, 3])
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
