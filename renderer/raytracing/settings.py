"""What a scene of the ray tracer says: materials, shapes and how paths are drawn."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from renderer.paths import SHADERS
from renderer.raytracing import instances, procedural
from renderer.raytracing.distance_fields import MOST_FIELDS, DistanceField
from renderer.raytracing.gltf_shapes import ModelShape
from renderer.raytracing.instances import Instance, Scattered
from renderer.scene.cameras import Camera
from renderer.scene.schema import PictureSettings, setting

MATERIALS = tuple(sorted(path.stem for path in (SHADERS / "raytracing" / "materials").glob("*.h")))
SHAPES = ("spheres", "quads", "meshes", "procedural", "attractors")
LIGHT_SETTINGS = ("suns", "point_lights", "environment", "sky")
MOST_BALLS = 1 << 21
NAMED = "a named shape stands only where instances place it"
Colour = tuple[float, float, float]
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Material:
    """How surfaces of this name look; every material with an emission shines from its front."""

    name: str
    kind: Literal[MATERIALS] = "diffuse"
    color: Colour = setting((0.75, 0.75, 0.75), 0.0, 1.0, "reflected share of linear red, green, blue")
    emission: Colour = setting((0.0, 0.0, 0.0), 0.0, 1e6, "radiance")
    ior: float = setting(1.5, 0.1, 10.0, "index of glass")
    color2: Colour = setting((0.1, 0.1, 0.1), 0.0, 1.0, "the checker's second colour")
    checker_size: float = setting(1.0, 1e-9, 1e9, "of the checker's cubes", logarithmic=True)
    roughness: float = setting(0.0, 0.0, 1.0, "perceptual, of glass, conductor and metallic")
    metallic: float = setting(0.0, 0.0, 1.0, "from a dielectric to a metal")


@dataclass(frozen=True)
class Sphere:
    material: str
    center: Point = (0.0, 0.0, 0.0)
    radius: float = setting(1.0, 1e-9, 1e9)
    name: str = setting("", help=NAMED)


@dataclass(frozen=True)
class Quad:
    """Four corners in order; the front is where they run counter-clockwise."""

    material: str
    corners: tuple[Point, Point, Point, Point]
    name: str = setting("", help=NAMED)


@dataclass(frozen=True)
class MeshShape:
    """A mesh file, scaled, then turned about y, then moved."""

    material: str
    file: str = setting("", file=True)
    scale: float = setting(1.0, 1e-18, 1e18, logarithmic=True)
    rotation_degrees: float = 0.0
    position: Point = (0.0, 0.0, 0.0)
    name: str = setting("", help=NAMED)


@dataclass(frozen=True)
class Procedural:
    """A shape made from a number (procedural.py), scaled, then moved; z becomes up where `z_up` says so."""

    material: str
    kind: Literal[tuple(procedural.MAKERS)]
    level: int = setting(3, 0, 50)
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    position: Point = (0.0, 0.0, 0.0)
    z_up: bool = False
    name: str = setting("", help=NAMED)

    def __post_init__(self):
        if self.level > procedural.LEVELS[self.kind]:
            raise ValueError(f"level is {self.level}; {self.kind} allows 0 to {procedural.LEVELS[self.kind]}")


@dataclass(frozen=True)
class Attractor:
    """An iterated function system as balls, one for each word of `level` maps; with a shining material it is a light.

    A map is the 3 x 4 matrix of an affine contraction of space, row by row, as in scenes of the picture flame3d.
    """

    material: str
    maps: tuple[tuple[float, float, float, float, float, float, float, float, float, float, float, float], ...]
    level: int = setting(6, 0, 20)
    radius: float = setting(0.5, 1e-9, 1e9, "of the ball of the empty word")
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    position: Point = (0.0, 0.0, 0.0)
    name: str = setting("", help=NAMED)

    def __post_init__(self):
        if not 1 <= len(self.maps) ** self.level <= MOST_BALLS:
            raise ValueError(f"{len(self.maps)} maps at level {self.level} make more than {MOST_BALLS} balls, or none")
        for index, row in enumerate(self.maps):
            stretch = np.linalg.norm(np.reshape(row, (3, 4))[:, :3], 2)
            if not stretch < 1:
                raise ValueError(f"maps[{index}] stretches by {stretch:.3g}; an attractor needs contractions, below 1")


@dataclass(frozen=True)
class Sun:
    """A light infinitely far away in `direction`, seen as a disc; `irradiance` is what falls on a surface facing it."""

    direction: Point = (0.3, 1.0, 0.2)
    irradiance: Colour = setting((3.0, 3.0, 3.0), 0.0, 1e9, "of a surface that faces it")
    angle_degrees: float = setting(0.533, 0.0, 90.0, "the disc's diameter; 0 gives hard shadows")

    def __post_init__(self):
        if not np.linalg.norm(self.direction) > 0:
            raise ValueError(f"direction is {list(self.direction)}; it must not be zero")


@dataclass(frozen=True)
class PointLight:
    """A light without size; with an outer angle below 180 degrees a spot, which fades from the inner one to it."""

    position: Point = (0.0, 1.0, 0.0)
    intensity: Colour = setting((1.0, 1.0, 1.0), 0.0, 1e12, "power per solid angle")
    direction: Point = setting((0.0, -1.0, 0.0), help="of a spot")
    inner_degrees: float = setting(0.0, 0.0, 180.0, "from the direction, where a spot begins to fade")
    outer_degrees: float = setting(180.0, 0.0, 180.0, "from the direction, where a spot ends")

    def __post_init__(self):
        if self.outer_degrees < 180:
            if not self.inner_degrees < self.outer_degrees:
                raise ValueError(
                    f"inner_degrees is {self.inner_degrees}; it must be below {self.outer_degrees}, the outer"
                )
            if not np.linalg.norm(self.direction) > 0:
                raise ValueError(f"direction is {list(self.direction)}; it must not be zero")


@dataclass(frozen=True)
class Environment:
    """A picture of the light from all directions: a latitude a row, the zenith first, -z in the middle."""

    file: str = setting("", file=True, help=".exr or .hdr, twice as wide as high")
    strength: float = setting(1.0, 0.0, 1e6, "the picture is multiplied by", logarithmic=True)
    rotation_degrees: float = setting(0.0, -360.0, 360.0, "about y; 90 shows in -z what was in -x")


@dataclass(frozen=True)
class Sky:
    """A clear sky by A. Preetham et al. 1999, with its sun; none where its strength is 0."""

    strength: float = setting(0.0, 0.0, 1e6, "radiance of 1,000 candela per square metre; 0 for no sky")
    turbidity: float = setting(3.0, 2.0, 10.0, "haze: 2 is very clear")
    elevation_degrees: float = setting(40.0, 0.0, 90.0, "of the sun")
    azimuth_degrees: float = setting(45.0, -360.0, 360.0, "of the sun; 0 is -z, 90 is +x")
    sun_scale: float = setting(1.0, 0.0, 100.0, "strength of the sun's disc; 0 for none")
    ground_albedo: Colour = setting((0.2, 0.2, 0.2), 0.0, 1.0, "reflected below the horizon")


@dataclass(frozen=True)
class Settings(PictureSettings):
    view: Camera = Camera()
    projection: Literal["perspective", "equirectangular"] = setting(
        "perspective", help="as a camera sees, or all around: 360 degrees wide and 180 high"
    )
    lens_radius: float = setting(0.0, 0.0, 1e6, "of a thin lens; 0 is a pinhole, sharp everywhere")
    focus_distance: float = setting(0.0, 0.0, 1e9, "along the view, of the plane in focus; 0 is the view's target")
    max_depth: int = setting(6, 1, 16, "rays a path may have", key="d")
    samples: int = setting(64, 1, 1 << 20, "of the finished picture", logarithmic=True)
    seed: int = setting(1, 0, 2**31 - 1, "of the random numbers")
    stencil: Literal["bits", "flags", "off"] = setting(
        "bits", help="how dead rays are told: a bit each, an int each, not", key="b"
    )
    schedule: Literal["auto", "wavefront", "regenerate", "megakernel"] = setting(
        "auto",
        help="wavefront: one launch per stage; regenerate: threads that end a path start the next; "
        "megakernel: one launch for all depths",
        key="c",
    )
    bvh: Literal["auto", "bvh2"] = setting(
        "auto", help="node layout: bvh2; or auto: quantized bvh2 on GPUs where that is faster, bvh8 on CPUs"
    )
    builder: Literal["auto", "host_sah", "sah", "hploc", "presplit"] = setting(
        "auto", help="binned SAH on the host or the device, H-PLOC there, or SAH with long triangles split first"
    )
    integrator: Literal["path", "whitted"] = setting("path", help="whitted ends paths at the first diffuse surface")
    noise_threshold: float = setting(
        0.0, 0.0, 1.0, "relative error at which a pixel takes no more samples; 0 gives all the same number"
    )
    variance: bool = setting(False, help="keep the pixels' variance, for the layers of .exr files")
    rr_depth: int = setting(3, 1, 64, "reflections after which dim paths end by chance")
    direct_lighting: Literal["mis", "bsdf", "nee"] = setting(
        "mis", help="found by shadow rays and by paths that hit them, by the latter alone, by the former alone"
    )
    sampler: Literal["sobol", "random"] = setting(
        "sobol", help="evenly spread random numbers (Owen-scrambled Sobol), or independent ones"
    )
    horizon: Colour = setting((0.0, 0.0, 0.0), 0.0, 1e6, "the sky's radiance at and below the horizon")
    zenith: Colour = setting((0.0, 0.0, 0.0), 0.0, 1e6, "the sky's radiance above")
    environment: Environment = Environment()
    sky: Sky = Sky()
    suns: tuple[Sun, ...] = ()
    point_lights: tuple[PointLight, ...] = ()
    materials: tuple[Material, ...] = (Material("plain"),)
    spheres: tuple[Sphere, ...] = ()
    quads: tuple[Quad, ...] = ()
    meshes: tuple[MeshShape, ...] = ()
    procedural: tuple[Procedural, ...] = ()
    attractors: tuple[Attractor, ...] = ()
    models: tuple[ModelShape, ...] = ()
    distance_fields: tuple[DistanceField, ...] = ()
    instances: tuple[Instance, ...] = ()
    scattered: tuple[Scattered, ...] = ()
    shutter_close: tuple[
        Instance, ...
    ] = ()  # the instances when the shutter closes, where these move; key frames fill it
    exposure_seconds: float = setting(0.0, 0.0, 1e3, "seconds that it stands open")

    def __post_init__(self):
        names = [material.name for material in self.materials]
        if len(set(names)) < len(names):
            raise ValueError(f"two materials have one name; the names are {', '.join(names)}")
        if self.projection == "equirectangular" and self.lens_radius > 0:
            raise ValueError(f"lens_radius is {self.lens_radius}; a panorama has no lens, so it must be 0")
        for group in (*SHAPES, "distance_fields"):
            for index, shape in enumerate(getattr(self, group)):
                if shape.material not in names:
                    raise ValueError(
                        f"{group}[{index}]: material is {shape.material!r}; allowed are {', '.join(names)}"
                    )
        if len(self.distance_fields) > MOST_FIELDS:
            raise ValueError(f"{len(self.distance_fields)} distance_fields are more than the {MOST_FIELDS} allowed")
        shapes = {shape.name for group in (*SHAPES, "models") for shape in getattr(self, group)}
        instances.check(self, shapes - {""}, names)
        if self.environment.file and self.sky.strength:
            raise ValueError("environment.file and sky.strength are both set; allowed is one of them")
        shining = {material.name for material in self.materials if any(material.emission)}
        for index, quad in enumerate(self.quads):
            if quad.material in shining and not _area(quad) > 0:
                raise ValueError(f"quads[{index}]: a light of zero area; its four corners must span a surface")

    @property
    def keeps_variance(self) -> bool:
        """Whether the film holds more than the mean."""
        return self.variance or self.noise_threshold > 0

    @property
    def has_instances(self) -> bool:
        """Whether shapes stand where instances place them."""
        return bool(self.instances or self.scattered)

    def with_variance(self) -> "Settings":
        """These settings with the variance of pixels among the layers."""
        return replace(self, variance=True)

    def with_shutter_close(self, settings_after) -> "Settings":
        """These settings with the instances where they are when the shutter closes, by settings_after(seconds)."""
        if not self.exposure_seconds or not self.instances:
            return self
        closing = settings_after(self.exposure_seconds).instances
        return self if closing == self.instances else replace(self, shutter_close=closing)

    def without_shutter_close(self, settings: "Settings") -> "Settings":
        """These settings without what `with_shutter_close` added to `settings`."""
        return replace(self, shutter_close=settings.shutter_close)


def _area(quad: Quad) -> float:
    a, b, c, d = np.array(quad.corners, "f8")
    return float(np.linalg.norm(np.cross(b - a, c - a)) + np.linalg.norm(np.cross(c - a, d - a))) / 2
