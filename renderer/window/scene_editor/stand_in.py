"""Flat stand-ins of the selected item, drawn over the last picture while a kernel for its new kind compiles.

That takes seconds on a GPU and minutes on a processor. The shape shows at once, by its triangles and spheres in the
material's color, brighter where they face the camera; without shadows, and over what stands in front of it.
"""

from typing import Any

import numpy as np

from renderer.raytracing.distance_fields import bounding_radius
from renderer.raytracing.settings import SHAPE_GROUPS, Settings
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui
from renderer.window.document import items, picking
from renderer.window.document.items import Item
from renderer.window.scene_editor.gizmo import project

MAX_TRIANGLES = 20_000  # of a shape; a larger one shows its box alone
MAX_SHAPES = 16
MAX_UNITS = 1e5  # of the window, to each side
AMBIENT = 0.3  # of the light on a surface that is seen edge on


def is_unseen(settings: Settings, item: Item, shown: Any) -> bool:
    """True if the displayed picture is of settings `shown`, in which the item or its material differs."""
    looks = [item, items.material_of(settings, item)]
    return not isinstance(shown, Settings) or any(
        getattr(settings, look.group)[look.index] not in getattr(shown, look.group) for look in looks if look
    )


def draw(settings: Settings, item: Item, rect: theme.Rect) -> None:
    """Draws the item; of a material, the shapes that have it."""
    is_material = item.group == "materials"
    shapes = items.users(settings, "materials", items.item_value(settings, item).name) if is_material else [item]
    draw_list, eye, up = imgui.get_window_draw_list(), np.array(settings.view.position), settings.view.axes()[1]
    for shape in shapes[:MAX_SHAPES]:
        material = items.material_of(settings, shape)
        color = items.item_value(settings, material).color if material else (0.5, 0.5, 0.5)
        base = np.clip(np.array(color, float), 0, 1) ** (1 / 2.2)
        corners, spheres = _geometry(shape.group, items.item_value(settings, shape))
        sides = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        seen = corners.mean(1) - eye
        lengths = np.linalg.norm(sides, axis=1) * np.linalg.norm(seen, axis=1)
        facing = np.abs((sides * seen).sum(1)) / np.maximum(lengths, 1e-30)
        colors = np.column_stack([base * (AMBIENT + (1 - AMBIENT) * facing[:, None]), np.ones(len(facing))]).tolist()
        points = project(settings, corners.reshape(-1, 3), rect).reshape(-1, 3, 2)
        for k in np.argsort(-(seen * seen).sum(1)):  # the farthest first
            if np.abs(points[k]).max() < MAX_UNITS:  # not NaN
                draw_list.add_triangle_filled(*points[k].tolist(), theme.color_u32(colors[k]))
        for sphere in spheres:
            middle, top = project(settings, np.array([sphere[:3], sphere[:3] + sphere[3] * up]), rect)
            radius = float(np.hypot(*(top - middle)))
            if max(radius, *np.abs(middle)) < MAX_UNITS:
                draw_list.add_circle_filled(middle.tolist(), radius, theme.color_u32((*base.tolist(), 1.0)))


def _geometry(group: str, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """The triangles (n, 3, 3) and the spheres (m, 4), center and radius, of a shape; none of other items."""
    if group == "distance_fields":  # fields do not fill the spheres that bound them
        return np.zeros((0, 3, 3)), np.array([[*value.position, bounding_radius(value) * value.scale * 0.7]])
    rows = picking.primitives_of(group, value) if group in (*SHAPE_GROUPS, "models") else ()
    if not 0 < len(rows) <= MAX_TRIANGLES:
        return np.zeros((0, 3, 3)), np.zeros((0, 4))
    v0, e1, e2 = (rows[name][:, :3].astype(float) for name in ("v0", "edge1", "edge2"))
    radii = rows["edge2"][:, 3]
    return np.stack([v0, v0 + e1, v0 + e2], 1)[radii <= 0], np.column_stack([v0, radii])[radii > 0]
