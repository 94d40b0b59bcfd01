"""What it costs to trace a picture's camera rays, as heat, with the boxes of the BVH by level drawn over it."""

from typing import Any

import numpy as np

from renderer.bvh.levels import Level, levels_of, levels_of_nodes
from renderer.gpu.device import Device
from renderer.images.algorithm_view import AlgorithmView, Legend, StepPicture
from renderer.images.inspection import false_color
from renderer.images.lines import draw_lines
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import traversal_source
from renderer.raytracing.path_trace import project
from renderer.raytracing.ray_buffers import GROUP_SIZE

VIEWS = ("nodes visited", "primitives tested")
MAX_BOXES = 2000  # drawn of a level, those of the largest surface
SHOWN = 0.998  # of the pixels have a count within the scale of colors
NODE_COLOR, LEAF_COLOR = (255, 255, 255), (255, 120, 40)
EDGES = np.array([[a, a | bit] for bit in (1, 2, 4) for a in range(8) if not a & bit])  # of the corners 0 to 7


def count_traversal(
    device: Device, geometry: Geometry, params: Any, size: tuple[int, int], constants: dict[str, object]
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes visited and primitives tested, each (height, width) uint32, by the ray through the center of each pixel.

    `constants` are the compile-time constants of the picture's kernels. A node of a BVH2 has two boxes, one of a BVH8
    eight.
    """
    width, height = size
    out = [device.buffer((height, width), "u4") for _ in VIEWS]
    kernel = device.kernel(traversal_source(), "traversal_cost", group_size=GROUP_SIZE, **constants, TRAVERSAL_COUNTS=1)
    kernel(width * height, params, *out, *geometry.kernel_args)
    return out[0].read(), out[1].read()


def geometry_levels(geometry: Geometry) -> list[Level]:
    """The boxes of the scene's BVHs by level: of the static shapes and, with instances, of the TLAS above them."""
    found = [levels_of(geometry.bvh)]
    if geometry.tlas_nodes is not None:
        found.append(levels_of_nodes(geometry.tlas_nodes))
    joined = []
    for depth in range(max(map(len, found), default=0)):
        parts = [levels[depth] for levels in found if depth < len(levels)]
        boxes, is_leaf = (np.concatenate(column) for column in zip(*parts, strict=True))
        joined.append(Level(boxes, is_leaf))
    return joined


def traversal_view(
    name: str, counts: np.ndarray, levels: list[Level], params: np.ndarray, projection: str
) -> AlgorithmView:
    """The counts (height, width) as heat; step k draws the boxes of level k over it."""
    most = int(counts.max(initial=0))
    high = max(float(np.ceil(np.quantile(counts, SHOWN))), 1.0)
    heat = false_color(counts, 0.0, high)
    can_draw = projection in ("perspective", "orthographic")
    legend = Legend(0.0, high, f" {name}")
    mean = f"{name} by a camera ray: mean {counts.mean():.4g}, at most {most}"

    def step(depth: int) -> StepPicture:
        if depth >= len(levels):
            return StepPicture(heat, counts, mean, legend)
        level = levels[depth]
        if not can_draw:
            return StepPicture(heat, counts, f"{mean}; boxes are not drawn in a {projection} picture", legend)
        boxes, is_leaf = largest(level, MAX_BOXES)
        pixels = heat.copy()
        draw_boxes(pixels, boxes, is_leaf, params, projection == "orthographic")
        left_out = f", the largest {MAX_BOXES:,} drawn" if len(level.boxes) > MAX_BOXES else ""
        meaning = f"{mean}; {len(level.boxes):,} boxes of the level (leaves orange){left_out}"
        return StepPicture(pixels, counts, meaning, legend)

    root = levels[0].area if levels else 0.0
    rows = [
        {
            "boxes": len(level.boxes),
            "leaves": int(level.is_leaf.sum()),
            "area / root": level.area / root if root else 0.0,
        }
        for level in levels
    ]
    return AlgorithmView("level", tuple(rows) or ({"boxes": 0},), step)


def largest(level: Level, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The boxes of the largest surface areas of a level, at most `count`, and which of them are leaves."""
    size = level.boxes[:, 1] - level.boxes[:, 0]
    area = size[:, 0] * size[:, 1] + size[:, 1] * size[:, 2] + size[:, 2] * size[:, 0]
    chosen = np.argsort(-area, kind="stable")[:count]
    return level.boxes[chosen], level.is_leaf[chosen]


def box_edges(boxes: np.ndarray) -> np.ndarray:
    """The edges (n, 12, 2, 3) of boxes (n, 2, 3)."""
    corners = np.stack([boxes[:, [k & 1, k >> 1 & 1, k >> 2], [0, 1, 2]] for k in range(8)], 1)
    return corners[:, EDGES]


def draw_boxes(
    pixels: np.ndarray, boxes: np.ndarray, is_leaf: np.ndarray, params: np.ndarray, orthographic: bool
) -> None:
    """Draws the edges of boxes (n, 2, 3) into pixels, as the camera of launch_params sees them."""
    height, width = pixels.shape[:2]
    edges = box_edges(boxes).reshape(-1, 2, 3).astype("f8")
    edges, kept = before_camera(edges, params)
    points, _ = project(params, edges.reshape(-1, 3), orthographic)
    lines = points.reshape(-1, 2, 2) * (width, height)
    colors = np.where(np.repeat(is_leaf, 12)[kept][:, None], LEAF_COLOR, NODE_COLOR).astype("u1")
    draw_lines(pixels, lines, colors, 0.75)


def before_camera(lines: np.ndarray, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of lines (n, 2, 3) before the camera's plane, and which lines have one."""
    eye, forward = params["eye"][:3].astype("f8"), params["forward"][:3].astype("f8")
    depth = (lines - eye) @ forward
    near = max(1e-4 * float(np.abs(depth).max(initial=0.0)), 1e-9)
    kept = (depth > near).any(1)
    lines, depth = lines[kept].copy(), depth[kept]
    for end in (0, 1):
        behind = depth[:, end] < near
        first, last = depth[behind, end], depth[behind, 1 - end]
        at = ((near - first) / (last - first))[:, None]
        lines[behind, end] += at * (lines[behind, 1 - end] - lines[behind, end])
    return lines, kept
