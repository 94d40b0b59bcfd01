"""Flat stand-ins of shapes that the last picture does not show, drawn over it while a kernel for them compiles.

That takes seconds on a GPU and minutes on a processor. The shapes show at once, by their triangles and spheres in their
materials' colors, brighter where they face the camera; without shadows, and over what stands in front of them.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from renderer.bvh.primitives import float64_columns
from renderer.raytracing.distance_fields import bounding_radius
from renderer.raytracing.settings import Settings
from renderer.scene.schema import PictureSettings
from renderer.window.controls import imgui, theme
from renderer.window.document import Item, items, picking
from renderer.window.scene_editor.gizmo import MAX_UNITS, project

MAX_TRIANGLES = 20_000  # a shape with more shows its box alone
MAX_SHAPES = 64
# Triangles are clipped at the depth NEAR, and at WIDEST times the depth to each side: a ground reaches behind the
# camera, and window coordinates of millions of units are drawn inexactly.
NEAR, WIDEST = 0.05, 8.0
Face = tuple[float, list[Any], float, tuple[float, ...]]  # squared distance, corners or center, radius or 0, color
AMBIENT = 0.3  # brightness of a surface that is seen edge on


def draw(settings: Settings, shown: PictureSettings | None, rect: theme.Rect) -> None:
    """Draws the shapes that differ, in themselves or in their material, from the displayed picture's settings `shown`.

    None: no picture is displayed.
    """
    draw_list = imgui.get_window_draw_list()
    unseen = list(islice((item for item in items.all_items(settings) if is_unseen(settings, item, shown)), MAX_SHAPES))
    faces = [face for item in unseen for face in _faces(settings, item, rect)]
    draw_list.push_draw_flag(imgui.ImDrawFlags_.aa_fill.value, False)  # acute triangles would have spikes
    for _, points, radius, color in sorted(faces, key=lambda face: -face[0]):  # the farthest first
        if radius:
            draw_list.add_circle_filled(points, radius, theme.color_u32(color))
        else:
            first, second, third = points
            draw_list.add_triangle_filled(first, second, third, theme.color_u32(color))
    draw_list.pop_draw_flag()


def is_unseen(settings: Settings, item: Item, shown: PictureSettings | None) -> bool:
    """True for a shape that the picture of settings `shown` (None: no picture) does not show as it is."""
    name: str = getattr(items.item_value(settings, item), "name", "")
    # BOXED: the lists of shapes. A shape with a name is drawn by instances alone, which get no stand-ins.
    if item.group not in picking.BOXED or name:
        return False
    changed = [item, items.material_of(settings, item)]
    slices = [(part.group, slice(part.index, part.index + 1)) for part in changed if part]
    return shown is None or any(getattr(settings, group)[at] != getattr(shown, group)[at] for group, at in slices)


def _faces(settings: Settings, item: Item, rect: theme.Rect) -> Iterator[Face]:
    """The triangles and the spheres of a shape."""
    material = items.material_of(settings, item)
    color = items.item_value(settings, material).color if material else (0.5, 0.5, 0.5)
    base = np.clip(np.array(color, float), 0, 1) ** (1 / 2.2)  # linear to about sRGB
    value = items.item_value(settings, item)
    corners, spheres = _geometry(item.group, value)
    eye, (right, up, forward) = np.array(settings.view.position), settings.view.axes()
    corners = _cut(corners - eye, forward, NEAR)
    for side in (right, -right, up, -up):
        corners = _cut(corners, WIDEST * forward + side, 0.0)
    corners += eye
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    seen = corners.mean(1) - eye
    lengths = np.linalg.norm(normals, axis=1) * np.linalg.norm(seen, axis=1)
    light = AMBIENT + (1 - AMBIENT) * np.abs((normals * seen).sum(1)) / np.maximum(lengths, 1e-30)
    colors = np.column_stack([base * light[:, None], np.ones(len(light))]).tolist()
    points = project(settings, corners.reshape(-1, 3), rect).reshape(-1, 3, 2)
    is_closed = item.group == "solids" and value.kind != "plane"  # a closed solid hides its back faces
    is_back_face = is_closed & ((normals * seen).sum(1) > 0)
    # By their farthest corners: a ground is behind what stands on it.
    for k, distance in enumerate(((corners - eye) ** 2).sum(2).max(1).tolist()):
        if np.isfinite(points[k]).all() and not is_back_face[k]:
            yield distance, points[k].tolist(), 0.0, tuple(colors[k])
    for sphere in spheres:
        middle, top = project(settings, np.array([sphere[:3], sphere[:3] + sphere[3] * up]), rect)
        radius = float(np.hypot(*(top - middle)))
        if radius < MAX_UNITS:  # not NaN
            yield float(((sphere[:3] - eye) ** 2).sum()), middle.tolist(), radius, (*base.tolist(), 1.0)


def _cut(corners: np.ndarray, normal: np.ndarray, offset: float) -> np.ndarray:
    """The triangles (n, 3, 3), without what lies behind the plane of points x with normal * x = offset."""
    above = corners @ normal - offset
    crosses = (above > 0).any(1) & (above < 0).any(1)
    pieces = []
    for triangle, heights in zip(corners[crosses], above[crosses], strict=True):
        polygon: list[np.ndarray] = []
        for k in range(3):
            here, after = heights[k], heights[(k + 1) % 3]
            polygon += [triangle[k]] if here >= 0 else []
            if here * after < 0:
                polygon.append(triangle[k] + here / (here - after) * (triangle[(k + 1) % 3] - triangle[k]))
        pieces += [[polygon[0], polygon[k], polygon[k + 1]] for k in range(1, len(polygon) - 1)]
    return np.concatenate([corners[(above >= 0).all(1)], np.array(pieces).reshape(-1, 3, 3)])


def _geometry(group: str, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """The triangles (n, 3, 3) and the spheres (m, 4), center and radius, of a shape; none of other items."""
    if group == "distance_fields":  # fields do not fill the spheres that bound them
        return np.zeros((0, 3, 3)), np.array([[*value.position, bounding_radius(value) * value.scale * 0.7]])
    rows = picking.primitives_of(group, value)
    if not 0 < len(rows) <= MAX_TRIANGLES:
        return np.zeros((0, 3, 3)), np.zeros((0, 4))
    v0, e1, e2, radii = float64_columns(rows)
    is_sphere = radii[:, 0] > 0
    return np.stack([v0, v0 + e1, v0 + e2], 1)[~is_sphere], np.column_stack([v0, radii])[is_sphere]
