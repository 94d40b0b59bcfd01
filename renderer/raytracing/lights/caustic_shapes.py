"""The shapes whose caustics are sampled (shaders/raytracing/lights/caustics.h): smooth glass and mirrors.

A chain is a path from a lamp over such a shape to a surface, found by Newton's method; `balls` are spheres. Chains pay
where the lamp is small, see LARGE. LightSampler (light_buffer.py) writes ball_rows() and mesh_rows() into its buffer.
`settings` are raytracing.settings.Settings, a module that imports this one.
"""

from typing import Any

import numpy as np

MAX_CAUSTIC_BALLS = 64  # a path samples one of them at each surface
# Steradians of a lamp, seen from a ball's center, from which on paths find its caustics sooner than chains pay: glass
# focuses the lamp, a mirror shows it small.
LARGE = {"glass": 0.02, "mirror": 0.2, "glass mesh": 0.0002, "mirror mesh": 0.1}


def caustic_balls(settings: Any) -> list[tuple[Any, Any]]:
    """Returns the spheres whose caustics can be sampled, with their materials.

    These are spheres without a name, of smooth glass denser than its surroundings or of a mirror, without maps.
    """
    materials = {material.name: material for material in settings.materials}
    pairs = [(sphere, materials[sphere.material]) for sphere in settings.spheres if not sphere.name]
    return [pair for pair in pairs if settings.caustics and _throws_caustics(pair[1])]


def caustic_meshes(settings: Any) -> dict[int, list[Any]]:
    """Returns, by material index, the meshes and solids whose caustics can be sampled, as caustic_balls()."""
    found: dict[int, list[Any]] = {}
    for index, material in enumerate(settings.materials if settings.caustics else ()):
        items = settings.items("meshes", "solids")
        shapes = [shape for _, shape in items if shape.material == material.name and not shape.name]
        if shapes and _throws_caustics(material):
            found[index] = shapes
    return found


def sampled_meshes(settings: Any) -> dict[int, list[Any]]:
    """Returns the entries of caustic_meshes() with a shape that sees a small lamp."""

    def is_sampled(index: int, shapes: list[Any]) -> bool:
        large = LARGE[f"{settings.materials[index].kind} mesh"]
        return any(_sees_small_lamp(settings, shape.position, large) for shape in shapes)

    return {index: shapes for index, shapes in caustic_meshes(settings).items() if is_sampled(index, shapes)}


def _throws_caustics(material: Any) -> bool:
    has_more = material.has_maps or any(material.emission) or material.alpha < 1 or material.attenuation_distance
    is_smooth_glass = material.kind == "glass" and not material.roughness and material.ior > 1
    return not has_more and (material.kind == "mirror" or is_smooth_glass)


def _sees_small_lamp(settings: Any, center: tuple[float, float, float], large: float) -> bool:
    """True if a lamp fills less than `large` steradians seen from `center`, or has a size that is not known.

    A point light, a delta sun and a lamp of a mesh or model count as small; other suns and the environment as large.
    """
    lamps = {material.name for material in settings.materials if any(material.emission)}
    found = [(np.array(s.center), np.pi * s.radius**2) for s in settings.spheres if s.material in lamps]
    for a, b, c, d in (np.array(quad.corners) for quad in settings.quads if quad.material in lamps):
        found.append(((a + b + c + d) / 4, float(np.linalg.norm(np.cross(c - a, d - b))) / 2))  # by its diagonals
    is_small = (area < large * ((middle - center) ** 2).sum() for middle, area in found)
    meshes = settings.items("meshes", "solids", "procedural")
    delta = settings.point_lights or settings.models or any(not sun.angle_degrees for sun in settings.suns)
    return any(is_small) or bool(delta) or any(mesh.material in lamps for _, mesh in meshes)


def caustics_hint(settings: Any) -> str:
    """Returns a sentence on the shapes of glass or a mirror whose caustics are not sampled though the setting is on."""
    casters = {m.name for m in settings.materials if m.kind in LARGE or m.kind == "principled" and m.transmission}
    shapes = settings.items("spheres", "quads", "meshes", "solids", "procedural")
    others = sum(shape.material in casters for _, shape in shapes) - len(ball_rows(settings)) // 2  # two rows a ball
    others -= sum(map(len, sampled_meshes(settings).values()))
    text = "caustics samples smooth shapes lit by small lamps; paths find the caustics of"
    text += f" {others} other shapes of glass or mirrors by chance: --set guiding_photons=25000 leads them there"
    return text if settings.caustics and others else ""


def ball_rows(settings: Any) -> np.ndarray:
    """Returns the balls as rows (2 n, 4): center, radius, then color, index of refraction, 0 for a mirror.

    A ball that sees no small lamp has no rows: paths find its caustics.
    """
    rows = [
        ((*sphere.center, sphere.radius), (*material.color, material.ior if material.kind == "glass" else 0.0))
        for sphere, material in caustic_balls(settings)
        if _sees_small_lamp(settings, sphere.center, LARGE[material.kind])
    ]
    return np.array(rows, "f4").reshape(-1, 4)


def mesh_rows(settings: Any, bounds: dict[int, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Returns the meshes of glass and mirrors as rows (2 n, 4), see shaders/raytracing/lights/mesh_caustics.h.

    These are center and radius of a sphere around the mesh, then material index, half width and half height of its box,
    and the index of refraction, negative to tell a mesh from a ball; -0.5 for a mirror. All meshes of a material count
    as one. `bounds` are the min and max corner (3,) of static primitives by material.
    """
    rows = np.zeros((0, 4), "f4")
    for index in sampled_meshes(settings):
        material, (low, high) = settings.materials[index], bounds[index]
        half, ior = (high - low) / 2, material.ior if material.kind == "glass" else 0.5
        row = np.array([(*(low + half), np.linalg.norm(half)), (0, *half[:2], -ior)], "f4")
        row[1].view("i4")[0] = index
        rows = np.concatenate([rows, row])
    return rows
