"""Parses the settings of JWildfire's solid rendering, a flame's attributes sld_render_*, for dialects.py."""

import re
from collections.abc import Mapping
from typing import Any

from renderer.flames.solid import DIFFUSE_CURVES, MAX_LIGHTS, MAX_MATERIALS, Light, Material, Solid
from renderer.flames.xml.attributes import AttributeParser
from renderer.plain import format_value

PREFIX = "sld_render_"
COLORS = ("red", "green", "blue")
FIELDS = {  # field of Solid -> (attribute, low, high): outside values are clamped, as JWildfire clamps them
    "occlusion_intensity": ("ao_intensity", 0.0, 4.0),
    "search_radius": ("ao_search_radius", 0.25, 120.0),
    "blur_radius": ("ao_blur_radius", 0.25, 10.0),
    "radius_samples": ("ao_radius_samples", 1, 128),
    "azimuth_samples": ("ao_azimuth_samples", 1, 128),
    "falloff": ("ao_falloff", 0.0, 10.0),
    "occlusion_of_diffuse": ("ao_affect_diffuse", -1e6, 1e6),
}


def parse_solid(parser: AttributeParser, attributes: Mapping[str, str]) -> Solid | None:
    """The settings of solid rendering; None if it is off. Counts settings that are not drawn in `parser.ignored`."""
    solid = _SolidAttributes(parser, attributes)
    if solid.number("enabled", 0.0) == 0:
        return None
    values: dict[str, Any] = {"occlusion": solid.number("ao_enabled", 1.0) != 0}
    for field, (name, low, high) in FIELDS.items():
        default = getattr(Solid, field)
        values[field] = type(default)(min(max(solid.number(name, default), low), high))
    if (count := solid.count("material_count", MAX_MATERIALS)) is not None:
        values["materials"] = tuple(_material(solid, k) for k in range(count))
    if (count := solid.count("ligtht_count", MAX_LIGHTS)) is not None:  # JWildfire's spelling
        values["lights"] = tuple(_light(solid, k) for k in range(count))
    release = re.match(r"JWildfire V(\d+)", attributes.get("version", ""))
    values["light_model"] = "jwildfire 7" if release and int(release[1]) < 8 else "jwildfire 8"
    _report_ignored(parser, attributes)
    try:
        return Solid(**values)
    except ValueError as error:
        parser.fail(str(error))


class _SolidAttributes:
    """Reads the attributes sld_render_NAME of a flame by NAME."""

    def __init__(self, parser: AttributeParser, attributes: Mapping[str, str]):
        self.parser, self.attributes = parser, attributes

    def number(self, name: str, default: float) -> float:
        text = self.attributes.get(PREFIX + name)
        return default if text is None else self.parser.number(PREFIX + name, text)

    def count(self, name: str, most: int) -> int | None:
        if PREFIX + name not in self.attributes:
            return None
        count = self.number(name, 0)
        if count != int(count) or not 0 <= count <= most:
            self.parser.fail(f"{PREFIX}{name} is {count:g}; it must be 0 to {most}")
        return int(count)

    def color(self, name: str, index: int) -> tuple[float, float, float]:
        red, green, blue = (self.number(f"{name}_{each}{index}", 0.0) for each in COLORS)
        return red, green, blue


def _material(solid: _SolidAttributes, k: int) -> Material:
    """The material number `k` of the attributes."""
    defaults = Material()
    numbers = {
        name: solid.number(f"material_{name}{k}", getattr(defaults, name))
        for name in ("diffuse", "ambient", "phong", "phong_size")
    }
    curve = solid.attributes.get(f"{PREFIX}material_light_diif_func{k}", "COSA").strip().lower()
    if curve not in DIFFUSE_CURVES:
        solid.parser.warn(f"{PREFIX}material_light_diif_func{k} is {format_value(curve)}, which is unknown; using COSA")
        curve = "cosa"
    return Material(**numbers, phong_color=solid.color("material_phong", k), diffuse_curve=curve)  # type: ignore[arg-type]


def _light(solid: _SolidAttributes, k: int) -> Light:
    altitude, azimuth = (solid.number(f"light_{name}{k}", 0.0) for name in ("altitude", "azimuth"))
    return Light(altitude, azimuth, solid.number(f"light_intensity{k}", 0.5), solid.color("light", k))


def _report_ignored(parser: AttributeParser, attributes: Mapping[str, str]) -> None:
    if attributes.get(f"{PREFIX}shadow_type", "OFF").strip().upper() != "OFF":
        parser.ignored["shadows of solid rendering flames"] = 1
    if any(text.strip() for name, text in attributes.items() if name.startswith(f"{PREFIX}material_refl_map_filename")):
        parser.ignored["reflection maps flames"] = 1
    if parser.number("cam_dof", attributes.get("cam_dof", "0")) != 0:
        parser.ignored["depth of field of solid rendering flames"] = 1
