"""Settings of the ray tracer: materials, shapes, lights, camera and how paths are traced.

Settings is the table [settings] of a scene file, each other dataclass a table inside it; the fields are the keys.
renderer/scene/schema.py reads and checks them, and shows their ranges and help texts in the window and the reference.
pictures/raytrace.py draws Settings.
"""

import re
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, ClassVar, Literal

import numpy as np

from renderer.formats.mesh import SUFFIXES
from renderer.plain import format_names, quoted
from renderer.raytracing import procedural
from renderer.raytracing.distance_fields import MAX_FIELDS, DistanceField
from renderer.raytracing.instances import Instance, Point, Scattered
from renderer.raytracing.lights.caustic_shapes import MAX_CAUSTIC_BALLS, caustic_balls, caustic_meshes
from renderer.raytracing.lights.environment_presets import PresetName
from renderer.raytracing.material_files import MATERIAL_FILES, MATERIALS
from renderer.raytracing.material_maps import TEXTURE_KEYS, MapKeys, TextureFile, check_maps
from renderer.raytracing.models.gltf_shapes import ModelShape, materials_of
from renderer.raytracing.models.motion import follow_models, stop_following
from renderer.raytracing.solids import Solid
from renderer.raytracing.volumes import MAX_VOLUMES, RGB, Fog, Volume
from renderer.records import dataclass, field, replace
from renderer.scene.cameras import Camera
from renderer.scene.schema import PictureSettings, reference, required_file, setting

SHAPE_GROUPS = ("spheres", "quads", "solids", "meshes", "procedural", "attractors")
# A change of one of these makes a new LightSampler (lights/light_buffer.py).
LIGHT_SETTINGS = ("suns", "point_lights", "environment", "sky", "light_sampler", "fog", "volumes",
                  "light_groups", "caustics")  # fmt: skip
MAX_DEPTH = 128  # rays of a path; Russian roulette ends nearly all paths before
PANORAMAS = {"equirectangular": "an equirectangular", "fisheye": "a fisheye"}  # projections without a lens
MAX_BALLS = 1 << 21  # spheres of an attractor
OTHER_LIGHTS = "others"  # the light group of lamps that no group names
MATERIAL_HELP = "name of a material"
NAME_HELP = "a named shape is drawn only as instances"
TURN_HELP = "about y, counter-clockwise seen from above; 90 brings to -z what was at +x"


def rgb(default: RGB, largest: float, help: str) -> RGB:
    """Returns a setting that is a linear RGB color, each channel from 0 to `largest`."""
    return setting(default, 0.0, largest, help, is_color=True)


@dataclass(frozen=True)
class Material(MapKeys):
    """A material, which shapes refer to by its name. With an emission, surfaces emit light from their front.

    `row_groups` are fields by title of a group in the window's inspector (window/controls/settings.py).
    """

    row_groups: ClassVar[dict[str, tuple[str, ...]]] = {
        "": ("name", "kind", "color", "roughness", "metallic", "ior", "emission", "transmission"),
        "maps": (*TEXTURE_KEYS, "normal_scale", "bump_scale"),
        "opacity": ("alpha", "alpha_mode", "alpha_cutoff"),
        "checker": ("color2", "checker_size"),
        "inside": (
            "thickness",
            "attenuation_color",
            "attenuation_distance",
            "dispersion",
            "multiscatter_color",
            "scatter_anisotropy",
        ),  # fmt: skip
        "reflection": ("specular", "specular_color", "anisotropy", "anisotropy_rotation_degrees"),
        "coat": ("clearcoat", "clearcoat_roughness"),
        "sheen": ("sheen_color", "sheen_roughness"),
        "thin film": ("iridescence", "iridescence_ior", "iridescence_thickness"),
        "translucence": ("diffuse_transmission", "diffuse_transmission_color"),
    }
    name: str
    kind: Literal[MATERIALS] = "diffuse"  # type: ignore[valid-type]  # known at run time: materials/*.h
    color: RGB = rgb((0.75, 0.75, 0.75), 1.0, "albedo or reflectance, linear RGB")
    emission: RGB = rgb((0.0, 0.0, 0.0), 1e6, "radiance")
    ior: float = setting(1.5, 0.1, 10.0, "index of refraction of glass and principled")
    color2: RGB = rgb((0.1, 0.1, 0.1), 1.0, "the checker's second color")
    checker_size: float = setting(1.0, 1e-9, 1e9, "side of the checker's cubes", logarithmic=True)
    roughness: float = setting(0.0, 0.0, 1.0, "perceptual, of glass, conductor, metallic and principled")
    metallic: float = setting(0.0, 0.0, 1.0, "0 is a dielectric, 1 a metal")
    specular: float = setting(1.0, 0.0, 1.0, "strength of the dielectric reflection; this and the rest: principled")
    specular_color: RGB = rgb((1.0, 1.0, 1.0), 1e3, "factor of the dielectric reflectance at normal incidence")
    transmission: float = setting(0.0, 0.0, 1.0, "fraction of the diffuse body that is clear instead")
    thickness: float = setting(0.0, 0.0, 1e9, "0 is a thin wall, which does not refract; above 0 the shape is solid")
    attenuation_color: RGB = rgb((1.0, 1.0, 1.0), 1.0, "of white light after the attenuation distance")
    attenuation_distance: float = setting(0.0, 0.0, 1e18, "in scene lengths; 0 is a clear medium", logarithmic=True)
    clearcoat: float = setting(0.0, 0.0, 1.0, "strength of a clear layer of index 1.5 over all")
    clearcoat_roughness: float = setting(0.0, 0.0, 1.0, "perceptual")
    sheen_color: RGB = rgb((0.0, 0.0, 0.0), 1.0, "of fibers over the surface, as of cloth")
    sheen_roughness: float = setting(0.0, 0.0, 1.0, "perceptual")
    iridescence: float = setting(0.0, 0.0, 1.0, "strength of a thin film")
    iridescence_ior: float = setting(1.3, 1.0, 10.0, "index of refraction of the film")
    iridescence_thickness: float = setting(400.0, 0.0, 1e5, "of the film, in nanometers")
    anisotropy: float = setting(0.0, 0.0, 1.0, "stretches highlights along the tangent")
    anisotropy_rotation_degrees: float = setting(0.0, -360.0, 360.0, "of the stretch, counterclockwise")
    dispersion: float = setting(0.0, 0.0, 10.0, "20 over the Abbe number of solid transmission: 0.36 is flint glass")
    diffuse_transmission: float = setting(0.0, 0.0, 1.0, "fraction of the diffuse body that lets light through")
    diffuse_transmission_color: RGB = rgb((1.0, 1.0, 1.0), 1.0, "of that light")
    multiscatter_color: RGB = rgb((0.0, 0.0, 0.0), 1.0, "of a dense solid whose inside scatters light; 0: clear inside")
    scatter_anisotropy: float = setting(0.0, -0.99, 0.99, "mean cosine of scattering: 0 all ways, above 0 forward")

    def __post_init__(self) -> None:
        if not any(self.multiscatter_color):
            return
        if self.kind != "principled":
            raise ValueError(f"kind is {self.kind}; a multiscatter_color needs principled")
        needed = {
            "thickness": self.thickness,
            "attenuation_distance": self.attenuation_distance,
            "diffuse_transmission": self.transmission or self.diffuse_transmission,
        }
        for key, value in needed.items():
            if not value:
                raise ValueError(f"{key} is 0; a multiscatter_color needs {key} above 0")
        if min(self.attenuation_color) >= 1:
            raise ValueError("attenuation_color is white; a multiscatter_color needs a darker one")


@dataclass(frozen=True)
class Sphere:
    """A sphere; its front face is the outside."""

    material: str = field(metadata=reference("materials", MATERIAL_HELP))
    center: Point = (0.0, 0.0, 0.0)
    radius: float = setting(1.0, 1e-9, 1e9)
    name: str = setting("", help=NAME_HELP)


@dataclass(frozen=True)
class Quad:
    """Two triangles over four corners; seen from the front face the corners run counter-clockwise."""

    material: str = field(metadata=reference("materials", MATERIAL_HELP))
    corners: tuple[Point, Point, Point, Point]
    name: str = setting("", help=NAME_HELP)


@dataclass(frozen=True)
class MeshShape:
    """A mesh file, scaled, then rotated about y, then moved."""

    material: str = field(metadata=reference("materials", MATERIAL_HELP))
    file: str = required_file(SUFFIXES)
    scale: float = setting(1.0, 1e-18, 1e18, logarithmic=True)
    rotation_degrees: float = setting(0.0, help=TURN_HELP)
    position: Point = (0.0, 0.0, 0.0)
    name: str = setting("", help=NAME_HELP)


@dataclass(frozen=True)
class Procedural:
    """A procedural shape (procedural.py), scaled, then moved; `z_up` maps its z axis to y."""

    material: str = field(metadata=reference("materials", MATERIAL_HELP))
    kind: Literal[tuple(procedural.GENERATORS)]  # type: ignore[valid-type]  # known at run time
    level: int = setting(3, 0, 50)
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    position: Point = (0.0, 0.0, 0.0)
    z_up: bool = False
    name: str = setting("", help=NAME_HELP)

    def __post_init__(self) -> None:
        if self.level > procedural.MAX_LEVELS[self.kind]:
            raise ValueError(f"level is {self.level}; {self.kind} allows 0 to {procedural.MAX_LEVELS[self.kind]}")


@dataclass(frozen=True)
class Attractor:
    """The attractor of an iterated function system as spheres, one for each sequence of `level` maps.

    A map is the 3 x 4 matrix, row by row, of an affine contraction of space. Scenes of the picture flame3d have the
    same maps.
    """

    material: str = field(metadata=reference("materials", MATERIAL_HELP))
    maps: tuple[tuple[float, float, float, float, float, float, float, float, float, float, float, float], ...]
    level: int = setting(6, 0, 20)
    radius: float = setting(0.5, 1e-9, 1e9, "of the sphere of level 0")
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    position: Point = (0.0, 0.0, 0.0)
    name: str = setting("", help=NAME_HELP)

    def __post_init__(self) -> None:
        if not self.maps or len(self.maps) ** self.level > MAX_BALLS:
            raise ValueError(f"{len(self.maps)} maps at level {self.level} make more than {MAX_BALLS} spheres, or none")
        for index, row in enumerate(self.maps):
            norm = np.linalg.norm(np.reshape(row, (3, 4))[:, :3], 2)
            if not norm < 1:
                raise ValueError(f"maps[{index}] stretches by {norm:.3g}; an attractor needs contractions, below 1")


@dataclass(frozen=True)
class Sun:
    """An infinitely distant disc light, which gives `irradiance` to a surface that faces it.

    `direction` points towards the sun, from the scene: (0, 1, 0) is overhead.
    """

    direction: Point = setting((0.3, 1.0, 0.2), help="towards the sun")
    irradiance: RGB = rgb((3.0, 3.0, 3.0), 1e9, "of a surface facing the sun")
    angle_degrees: float = setting(0.533, 0.0, 90.0, "the disc's diameter; 0 gives hard shadows")

    def __post_init__(self) -> None:
        if not np.linalg.norm(self.direction) > 0:
            raise ValueError(f"direction is {list(self.direction)}; it must not be zero")


@dataclass(frozen=True)
class PointLight:
    """A point light. With an outer angle below 180 degrees it is a spot, which fades from the inner to the outer angle.

    A photometric file, IES LM-63, gives the candela by direction; its vertical angle 0 is the light's `direction`.
    """

    position: Point = (0.0, 1.0, 0.0)
    intensity: RGB = rgb((1.0, 1.0, 1.0), 1e12, "power per solid angle; a factor of the file's candela")
    direction: Point = setting((0.0, -1.0, 0.0), help="of a spot or of a file's vertical angle 0")
    inner_degrees: float = setting(0.0, 0.0, 180.0, "from the direction, where a spot begins to fade")
    outer_degrees: float = setting(180.0, 0.0, 180.0, "from the direction, where a spot ends")
    file: str = setting("", file=(".ies",), help=".ies: candela by direction")
    rotation_degrees: float = setting(
        0.0, -360.0, 360.0, "of the file about the direction; pointing down, its horizontal angle 0 is at +x, 90 at -z"
    )

    def __post_init__(self) -> None:
        if self.outer_degrees < 180 and not self.inner_degrees < self.outer_degrees:
            raise ValueError(f"inner_degrees is {self.inner_degrees}; it must be below {self.outer_degrees}, the outer")
        if (self.outer_degrees < 180 or self.file) and not np.linalg.norm(self.direction) > 0:
            raise ValueError(f"direction is {list(self.direction)}; it must not be zero")

    @property
    def falloff(self) -> tuple[float, ...]:
        """The spot falloff: clamp(w - xyz . d, 0, 1)^2 scales the intensity towards -d; (0, 0, 0, 1) without a spot."""
        if self.outer_degrees >= 180:
            return 0.0, 0.0, 0.0, 1.0
        inner, outer = np.cos(np.radians((self.inner_degrees, self.outer_degrees)))
        axis = np.array(self.direction) / np.linalg.norm(self.direction)
        return *(axis / (inner - outer)), -outer / (inner - outer)


@dataclass(frozen=True)
class Environment:
    """An equirectangular environment map, from a file or a preset: the top row is the zenith, -z in the middle."""

    file: str = setting("", file=(".exr", ".hdr"), help=".exr or .hdr, twice as wide as high")
    strength: float = setting(1.0, 0.0, 1e6, "factor of the radiance", logarithmic=True)
    rotation_degrees: float = setting(0.0, -360.0, 360.0, TURN_HELP)
    preset: PresetName = setting("none", help="an environment map of our own: soft boxes, clouds, or a low sun")


@dataclass(frozen=True)
class Sky:
    """The clear sky of A. Preetham et al. 1999 with its sun; strength 0 for none."""

    strength: float = setting(0.0, 0.0, 1e6, "radiance of 1,000 candela per square meter; 0 for no sky")
    turbidity: float = setting(3.0, 2.0, 10.0, "haze: 2 is very clear")
    elevation_degrees: float = setting(40.0, 0.0, 90.0, "of the sun")
    azimuth_degrees: float = setting(45.0, -360.0, 360.0, "of the sun; 0 is -z, 90 is +x")
    sun_scale: float = setting(1.0, 0.0, 100.0, "factor of the sun's disc; 0 for none")
    ground_albedo: RGB = rgb((0.2, 0.2, 0.2), 1.0, "of the ground below the horizon")


@dataclass(frozen=True)
class LightGroup:
    """Lamps whose light is the layer `light_NAME` of an .exr file if light_passes is true.

    A lamp is the name of a material, `suns[K]`, `point_lights[K]` or `environment`, which includes sky and background.
    """

    name: str
    lights: tuple[str, ...] = setting((), help="names of materials, suns[K], point_lights[K], environment")

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.name) or self.name == OTHER_LIGHTS:
            raise ValueError(
                f"name is {quoted(self.name)}; allowed are 1 to 64 letters, digits, _ and -, but not {OTHER_LIGHTS}"
            )


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The settings of a picture of kind `raytrace`: a scene file's [settings] table.

    `row_groups` are fields by title, as for Material; `sections` are the titles of these groups by the section of the
    window's sidebar that shows them, "" for the fields of no group.
    """

    sections: ClassVar[dict[str, tuple[str, ...]]] = {
        "World": ("world",), "Camera": ("camera",), "Render": ("", "how it is drawn"),
    }  # fmt: skip
    row_groups: ClassVar[dict[str, tuple[str, ...]]] = {
        "world": ("environment", "sky", "horizon", "zenith", "fog"),
        "camera": ("view", "projection", "fisheye_degrees", "lens_shift", "lens_radius", "focus_distance",
                   "exposure_seconds"),
        "how it is drawn": ("stencil", "schedule", "bvh", "builder", "integrator", "sampler", "variance",
                            "clamp_indirect", "rr_depth", "direct_lighting", "light_sampler", "guiding_photons",
                            "caustics"),
    }  # fmt: skip
    view: Camera = Camera()
    projection: Literal["perspective", "equirectangular", "orthographic", "fisheye"] = setting(
        "perspective",
        help="perspective; orthographic: as high as the plane of the view's target in perspective; "
        "fisheye: equidistant; equirectangular: 360 degrees wide and 180 high",
    )
    fisheye_degrees: float = setting(
        180.0, 1.0, 360.0, "angle of view of a fisheye, across the circle that touches the picture's shorter sides"
    )
    lens_shift: tuple[float, float] = setting(
        (0.0, 0.0), -10.0, 10.0, "of the film to the right and upwards, in fractions of its width and height"
    )
    lens_radius: float = setting(0.0, 0.0, 1e6, "of a thin lens; 0 is a pinhole, without depth of field")
    focus_distance: float = setting(
        0.0, 0.0, 1e9, "of the plane of focus, along the view axis; 0: the plane of the view's target"
    )
    max_depth: int = setting(12, 1, MAX_DEPTH, "rays of a path at most", key="d")
    samples: int = setting(64, 1, 1 << 20, "a pixel of the finished picture", logarithmic=True)
    seed: int = setting(1, 0, 2**31 - 1, "of the random numbers")
    stencil: Literal["bits", "flags", "compact", "off"] = setting(
        "bits",
        help="active-ray mask: bits (1 bit a ray), flags (an int a ray), compact (the active rays' indices) or off",
        key="b",
    )
    schedule: Literal["auto", "wavefront", "regenerate", "megakernel"] = setting(
        "auto",
        help="wavefront: one launch per stage; regenerate: threads that end a path start the next; "
        "megakernel: one launch for all depths",
        key="c",
    )
    bvh: Literal["auto", "bvh2"] = setting("auto", help="node layout: bvh2; or auto: bvh8 on CPUs, bvh2 on GPUs")
    builder: Literal["auto", "host_sah", "sah", "hploc", "presplit"] = setting(
        "auto", help="binned SAH on the host or the device, H-PLOC there, or SAH with long triangles split first"
    )
    integrator: Literal["path", "whitted"] = setting(
        "path", help="whitted ends paths at the first surface that is not specular"
    )
    noise_threshold: float = setting(
        0.0, 0.0, 1.0, "relative error at which a pixel stops sampling; 0: all pixels take `samples`"
    )
    variance: bool = setting(False, help="estimate the pixels' variance, for the layers of .exr files")
    light_passes: bool = setting(False, help="divide the light by lobes and light_groups, for the layers of .exr files")
    light_groups: tuple[LightGroup, ...] = ()
    cryptomatte: bool = setting(False, help="mattes of objects and materials, for the layers of .exr files")
    clamp_indirect: float = setting(
        0.0, 0.0, 1e9, "largest radiance that a path adds beyond its first surface; darkens a little; 0: unbiased"
    )
    rr_depth: int = setting(3, 1, 64, "bounces after which Russian roulette may end a path")
    direct_lighting: Literal["mis", "bsdf", "nee"] = setting(
        "mis",
        help="mis: next-event estimation and BSDF sampling, weighted; bsdf: BSDF sampling alone; "
        "nee: next-event estimation alone",
    )
    light_sampler: Literal["auto", "power", "tree"] = setting(
        "auto",
        help="choice of a light: by power, or by a tree over power, distance and direction; auto: a tree for many",
    )
    guiding_photons: int = setting(0, 0, 1 << 22, "show paths where light comes from; 0: off", logarithmic=True)
    caustics: bool = setting(
        False, help="sample lamps through smooth glass, and off it and mirrors: spheres, meshes, solids"
    )
    sampler: Literal["sobol", "random"] = setting(
        "sobol", help="Owen-scrambled Sobol points, or independent pseudorandom numbers"
    )
    horizon: RGB = rgb((0.0, 0.0, 0.0), 1e6, "radiance of the background at and below the horizon")
    zenith: RGB = rgb((0.0, 0.0, 0.0), 1e6, "radiance of the background at the zenith")
    environment: Environment = Environment()
    sky: Sky = Sky()
    fog: Fog = Fog()
    volumes: tuple[Volume, ...] = ()
    suns: tuple[Sun, ...] = ()
    point_lights: tuple[PointLight, ...] = ()
    materials: tuple[Material, ...] = (Material("plain"),)
    textures: tuple[TextureFile, ...] = ()
    spheres: tuple[Sphere, ...] = ()
    quads: tuple[Quad, ...] = ()
    solids: tuple[Solid, ...] = ()
    meshes: tuple[MeshShape, ...] = ()
    procedural: tuple[Procedural, ...] = ()
    attractors: tuple[Attractor, ...] = ()
    models: tuple[ModelShape, ...] = ()
    distance_fields: tuple[DistanceField, ...] = ()
    instances: tuple[Instance, ...] = ()
    scattered: tuple[Scattered, ...] = ()
    shutter_close: tuple[Instance, ...] = ()  # at_time() fills it: `instances` when the shutter closes; () if the same
    shutter: tuple[float, ...] = ()  # at_time() fills it for animated models: seconds of shutter opening and closing
    exposure_seconds: float = setting(0.0, 0.0, 1e3, "time that the shutter is open")

    def __post_init__(self) -> None:
        """Raises ValueError for values that do not go together, in this order."""
        names = [material.name for material in self.materials]
        if len(set(names)) < len(names):
            raise ValueError(f"two materials have one name; the names are {format_names(names)}")
        self._check_maps()
        if self.caustics:
            self._check_caustics()
        for key in ("guiding_photons", "light_passes", "caustics"):
            if getattr(self, key) and self.integrator == "whitted":
                raise ValueError(f"integrator is whitted, which takes no {key}; it must be path, or {key} off")
        if self.light_groups:
            self._check_light_groups()
        if self.projection in PANORAMAS:
            self._check_panorama(PANORAMAS[self.projection])
        self._check_materials(names)
        if len(self.distance_fields) > MAX_FIELDS:
            raise ValueError(f"{len(self.distance_fields)} distance_fields are more than the {MAX_FIELDS} allowed")
        shapes = {shape.name for _, shape in self.items(*SHAPE_GROUPS, "models")}
        self._check_instances(shapes - {""}, names)
        sources = {
            "environment.file": self.environment.file,
            "environment.preset": self.environment.preset != "none",
            "sky.strength": self.sky.strength,
        }
        environments = [name for name, value in sources.items() if value]
        if len(environments) > 1:
            raise ValueError(f"{' and '.join(environments)} are both set; allowed is one of them")
        self._check_shadow_catchers()
        self._check_volumes(environments + (["suns"] if self.suns else []))
        emissive = {material.name for material in self.materials if any(material.emission)}
        for where, quad in self.items("quads"):
            if quad.material in emissive and not np.linalg.norm(_quad_normals(quad), axis=1).sum() > 0:
                raise ValueError(f"{where}: a light of zero area; its four corners must span a surface")

    @property
    def may_have_light(self) -> bool:
        """False if the picture is black: no background, environment, lamp or surface emits. Files may bring lights."""
        world = self.environment.file, self.environment.preset != "none", self.sky.strength, *self.horizon, *self.zenith
        lamps = (any(material.emission) or material.kind == "unlit" for material in self.materials)
        return any((*world, *lamps, self.models, self.volumes, self.suns, self.point_lights))

    def items(self, *groups: str) -> Iterator[tuple[str, Any]]:
        """Yields the items of the named lists, each after its name for error messages: `quads[2]`."""
        return ((f"{group}[{i}]", item) for group in groups for i, item in enumerate(getattr(self, group)))

    def _check_maps(self) -> None:
        """Raises ValueError for maps without a texture or an effect; distance fields have no texture coordinates."""
        check_maps(self.materials, self.textures)
        mapped = {material.name for material in self.materials if material.has_maps}
        for where, shape in self.items("distance_fields"):
            if shape.material in mapped:
                raise ValueError(
                    f"{where}: material {quoted(shape.material)} has maps or an alpha, but a distance field has no "
                    "texture coordinates"
                )

    def _check_materials(self, names: list[str]) -> None:
        """Raises ValueError if a shape's material is none of `names`."""
        for where, shape in self.items(*SHAPE_GROUPS, "distance_fields"):
            if shape.material not in names:
                allowed = f"allowed are {format_names(names)}" if names else "materials is empty"
                if self.materials is Settings.materials:  # the default, one material
                    allowed = f"materials is not given, so it must be {quoted(names[0])}"
                raise ValueError(f"{where}: material is {quoted(shape.material)}; {allowed}")

    def _check_panorama(self, camera: str) -> None:
        """Raises ValueError if a panorama has a lens or a lens shift; `camera` is its name with an article."""
        if self.lens_radius > 0:
            raise ValueError(f"lens_radius is {self.lens_radius}; {camera} camera has no lens, so it must be 0")
        if any(self.lens_shift):
            raise ValueError(
                f"lens_shift is {list(self.lens_shift)}; {camera} camera has no film to shift, so it must be [0, 0]"
            )

    def _check_light_groups(self) -> None:
        """Raises ValueError if two light groups have one name or lamp, or a lamp does not exist."""
        lamps = [*self.material_names, *(where for where, _ in self.items("suns", "point_lights")), "environment"]
        taken = dict[str, str]()
        for where, group in self.items("light_groups"):
            for name in group.lights:
                if name not in lamps:
                    raise ValueError(f"{where}: lights has {quoted(name)}; allowed are {format_names(lamps)}")
            for name in (f"name {quoted(group.name)}", *(f"light {quoted(light)}" for light in group.lights)):
                if name in taken:
                    raise ValueError(f"{where} and {taken[name]} both have the {name}; allowed is one of them")
                taken[name] = where

    def _check_volumes(self, infinite: list[str]) -> None:
        """Raises ValueError if fog or volumes cannot be drawn; `infinite` names the lights at infinity that are set."""
        if not self.has_volumes:
            return
        if self.integrator == "whitted":
            raise ValueError("integrator is whitted, which draws neither fog nor volumes; it must be path")
        if self.fog.density > 0 and not self.fog.radius and infinite:
            raise ValueError(
                f"fog.density is {self.fog.density:g} and {infinite[0]} is set; fog without end lets no light from "
                "infinity through, so it needs a fog.radius above 0"
            )
        if len(self.volumes) > MAX_VOLUMES:
            raise ValueError(f"{len(self.volumes)} volumes are more than the {MAX_VOLUMES} allowed")

    def _check_caustics(self) -> None:
        """Raises ValueError if caustics cannot be sampled."""
        lacks = {
            "a direct_lighting of mis or nee": self.direct_lighting == "bsdf",
            "no fog or volumes": self.has_volumes,
            "no light_passes": self.light_passes,
        }
        if missing := [need for need, is_missing in lacks.items() if is_missing]:
            raise ValueError(f"caustics is true, which needs {missing[0]}")
        balls = len(caustic_balls(self)) + len(caustic_meshes(self))
        if not 0 < balls <= MAX_CAUSTIC_BALLS:
            raise ValueError(
                f"caustics is true with {balls} balls and materials of meshes; it needs 1 to {MAX_CAUSTIC_BALLS}, "
                "without a name, of a mirror or of glass of roughness 0, an ior above 1 and no attenuation, without "
                "maps; other shapes take guiding_photons"
            )

    def _check_shadow_catchers(self) -> None:
        """Raises ValueError if a shadow catcher is on a shape that is no level quad, or cannot take shadows."""
        catchers = {material.name for material in self.materials if MATERIAL_FILES[material.kind].shadow_catcher}
        if not catchers:
            return
        if self.direct_lighting == "bsdf":
            raise ValueError("direct_lighting is bsdf; a shadow_catcher needs mis or nee")
        for where, shape in self.items(*SHAPE_GROUPS, "distance_fields", "instances", "scattered"):
            is_ground = isinstance(shape, Quad) and not shape.name and _is_level_and_faces_up(shape)
            if shape.material in catchers and not is_ground:
                raise ValueError(
                    f"{where}: material {quoted(shape.material)} is a shadow_catcher; allowed are quads without a name "
                    "whose corners have one y and run counter-clockwise seen from above"
                )

    def _check_instances(self, shapes: set[str], materials: list[str]) -> None:
        """Raises ValueError if an instance names a shape or material that does not exist."""
        allowed_shapes = format_names(sorted(shapes)) if shapes else "none: no shape has a name"
        for where, instance in self.items("instances", "shutter_close", "scattered"):
            for name in instance.shapes:
                if name not in shapes:
                    raise ValueError(f"{where}: shape is {quoted(name)}; allowed are {allowed_shapes}")
            if instance.material and instance.material not in materials:
                allowed = format_names(materials)
                raise ValueError(f"{where}: material is {quoted(instance.material)}; allowed are {allowed}")
        opening, closing = ([i.shape for i in group] for group in (self.instances, self.shutter_close))
        if closing and closing != opening:
            raise ValueError(f"shutter_close has other shapes than instances: {len(closing)}, not {len(opening)}")

    @property
    def material_names(self) -> list[str]:
        """Names of the scene's materials, then of the models' materials: the order of the kernels' records."""
        in_files = (material.name for shape in self.models for material in materials_of(shape.load()))
        return [*(material.name for material in self.materials), *in_files]

    def light_group(self, lamp: str) -> int:
        """Returns the number of the light group that has the lamp; 0 for the lamps of none."""
        return next((number for number, group in enumerate(self.light_groups, 1) if lamp in group.lights), 0)

    @property
    def keeps_variance(self) -> bool:
        """True if the film stores the variance of each pixel, not only the mean."""
        return self.variance or self.noise_threshold > 0

    @property
    def has_instances(self) -> bool:
        """True if the scene file has instances."""
        return bool(self.instances or self.scattered)

    @property
    def has_volumes(self) -> bool:
        """True if there is fog or a volume of a density above 0."""
        return self.fog.density > 0 or any(volume.density > 0 for volume in self.volumes)

    @property
    def samples_segments(self) -> bool:
        """True if paths sample point lights (NEE) in a medium of constant density, which takes equiangular.h.

        There a shadow ray may start anywhere on the segment between two surfaces.
        """
        has_constant = any(v.density > 0 and v.field == "constant" and not v.file for v in self.volumes)
        has_constant = has_constant or self.fog.density > 0
        return has_constant and bool(self.point_lights) and self.direct_lighting != "bsdf"

    def with_schedule(self, schedule: str) -> "Settings":
        """Returns a copy with this schedule. Every frame calls this, so it skips the checks of replace()."""
        out = copy(self)
        object.__setattr__(out, "schedule", schedule)
        return out

    def with_layers(self, drawn: bool) -> "Settings":
        """Returns a copy that stores the variance of pixels, a layer of .exr files, or else no light passes."""
        if drawn:
            return replace(self, variance=True)
        return replace(self, light_passes=False) if self.light_passes else self

    @property
    def is_animated(self) -> bool:
        """True if a model plays an animation."""
        return any(shape.animation for shape in self.models)

    @property
    def is_blurred(self) -> bool:
        """True if an instance or a model moves while the shutter is open."""
        return bool(self.shutter_close) or len(set(self.shutter)) > 1

    def at_time(self, time: float, settings_after: Callable[[float], "Settings"]) -> "Settings":
        """Returns a copy for the frame at `time` (seconds): shutter times, models, instances at shutter close.

        `settings_after(seconds)` returns the settings that many seconds after `time`.
        """
        out = self
        if self.exposure_seconds and self.instances:
            closing = settings_after(self.exposure_seconds).instances
            out = self if closing == self.instances else replace(self, shutter_close=closing)
        if not self.is_animated:
            return out
        followed: Settings = follow_models(replace(out, shutter=(time, time + self.exposure_seconds)))
        return followed

    def without_time(self, original: "Settings", shown: "Settings") -> "Settings":
        """Undoes at_time(): returns a copy of these settings, an edit of `shown`, with the times of `original`.

        A view that the user moved no longer follows a model's camera.
        """
        out = replace(self, shutter_close=original.shutter_close, shutter=original.shutter)
        return stop_following(out, original, shown) if self.is_animated else out


def _is_level_and_faces_up(quad: Quad) -> bool:
    return len({corner[1] for corner in quad.corners}) == 1 and bool((_quad_normals(quad)[:, 1] > 0).all())


def _quad_normals(quad: Quad) -> np.ndarray:
    """Returns the normals (2, 3) of the quad's triangles; a normal's length is twice the triangle's area."""
    a, b, c, d = np.array(quad.corners, "f8")
    return np.cross([b - a, c - a], [c - a, d - a])
