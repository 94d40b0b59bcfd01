"""The views "nodes visited" and "primitives tested": traversal counts of camera rays as a heat map.

count_traversal() counts on the device, by shaders/raytracing/traversal_cost.cu. traversal_view() shows a count in false
color; a step of the view draws the boxes of one level of the BVH over it. pictures/raytrace.py offers the views.
"""

import numpy as np

from renderer.bvh.levels import Level, bvh_levels
from renderer.images.algorithm_view import AlgorithmView, Legend, StepPicture
from renderer.images.lines import draw_lines
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import kernel_source
from renderer.raytracing.path_trace import project
from renderer.raytracing.ray_buffers import GROUP_SIZE

VIEWS = ("nodes visited", "primitives tested")
MAX_BOXES = 2000  # largest number of boxes of a level that are drawn
SHOWN = 0.998  # quantile of the counts that gets the color scale's last color
NODE_COLOR, LEAF_COLOR = (255, 255, 255), (255, 120, 40)
EDGES = np.array([[a, a | bit] for bit in (1, 2, 4) for a in range(8) if not a & bit])  # pairs of corners 0 to 7


def count_traversal(
    geometry: Geometry, params: np.ndarray, size: tuple[int, int], constants: dict[str, object]
) -> tuple[np.ndarray, np.ndarray]:
    """Counts nodes visited and primitives tested, (height, width) uint32 each, by the ray through each pixel's center.

    `constants` are the compile-time constants of the picture's kernels. A BVH2 node has two boxes, a BVH8 node eight.
    """
    device, (width, height) = geometry.device, size
    out = [device.buffer((height, width), "u4") for _ in VIEWS]
    constants = constants | {"TRAVERSAL_COUNTS": 1}
    kernel = device.kernel(kernel_source("traversal"), "traversal_cost", group_size=GROUP_SIZE, **constants)
    kernel(width * height, params, *out, *geometry.kernel_args)
    return out[0].read(), out[1].read()


def geometry_levels(geometry: Geometry) -> list[Level]:
    """Returns the boxes, by level, of the static BVH and, with instances, of the TLAS."""
    trees = [bvh_levels(bvh) for bvh in geometry.bvhs]
    joined = []
    for depth in range(max(map(len, trees))):
        levels = [tree[depth] for tree in trees if depth < len(tree)]
        joined.append(Level(*(np.concatenate(column) for column in zip(*levels, strict=True))))
    return joined


def traversal_view(
    name: str, counts: np.ndarray, levels: list[Level], params: np.ndarray, projection: str
) -> AlgorithmView:
    """Returns the view of counts (height, width) as a heat map; step k draws the boxes of level k over it."""
    most = int(counts.max(initial=0))
    high = max(float(np.ceil(np.quantile(counts, SHOWN))), 1.0)
    from renderer.images.inspection import false_color  # imported with the first view

    heat = false_color(counts, 0.0, high)
    can_draw = projection in ("perspective", "orthographic")
    legend = Legend(0.0, high, f" {name}")
    mean = f"{name} by a camera ray: mean {counts.mean():.4g}, at most {most}"

    def step(depth: int) -> StepPicture:
        """The picture of the boxes of a level of the BVH; behind the last level, of the costs alone."""
        if depth >= len(levels):
            return StepPicture(heat, counts, mean, legend)
        level = levels[depth]
        if not can_draw:
            return StepPicture(heat, counts, f"{mean}; boxes are not drawn in a {projection} picture", legend)
        boxes, is_leaf = largest(level, MAX_BOXES)
        pixels = heat.copy()
        draw_boxes(pixels, boxes, is_leaf, params, projection == "orthographic")
        left_out = f", the largest {MAX_BOXES:,} drawn" if len(level.boxes) > MAX_BOXES else ""
        meaning = f"{mean}; the level's boxes: {len(level.boxes):,} (leaves orange){left_out}"
        return StepPicture(pixels, counts, meaning, legend)

    areas = [float(level.areas.sum()) for level in levels]
    rows = [
        {"boxes": len(level.boxes), "leaves": int(level.is_leaf.sum()), "area / root": area / (areas[0] or 1.0)}
        for level, area in zip(levels, areas, strict=True)
    ]
    return AlgorithmView("level", tuple(rows) or ({"boxes": 0},), step)


def largest(level: Level, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the `count` boxes of a level with the largest surface areas, and their leaf mask."""
    chosen = np.argsort(-level.areas, kind="stable")[:count]
    return level.boxes[chosen], level.is_leaf[chosen]


def box_edges(boxes: np.ndarray) -> np.ndarray:
    """Returns the edges (n, 12, 2, 3) of boxes (n, 2, 3)."""
    corners = np.stack([boxes[:, [k & 1, k >> 1 & 1, k >> 2], [0, 1, 2]] for k in range(8)], 1)
    return corners[:, EDGES]


def draw_boxes(
    pixels: np.ndarray, boxes: np.ndarray, is_leaf: np.ndarray, params: np.ndarray, orthographic: bool
) -> None:
    """Draws the edges of boxes (n, 2, 3), projected by the camera of launch_params, into `pixels`."""
    height, width = pixels.shape[:2]
    edges = box_edges(boxes).reshape(-1, 2, 3).astype("f8")
    edges, kept = clip_to_camera(edges, params)
    points, _ = project(params, edges.reshape(-1, 3), orthographic)
    lines = points.reshape(-1, 2, 2) * (width, height)
    colors = np.where(np.repeat(is_leaf, 12)[kept][:, None], LEAF_COLOR, NODE_COLOR).astype("u1")
    draw_lines(pixels, lines, colors, 0.75)


def clip_to_camera(lines: np.ndarray, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Clips lines (n, 2, 3) at a plane just in front of the camera; also returns the mask (n,) of the lines kept."""
    eye, forward = params["eye"][:3].astype("f8"), params["forward"][:3].astype("f8")
    depth = (lines - eye) @ forward
    near_depth = max(1e-4 * float(np.abs(depth).max(initial=0.0)), 1e-9)
    kept = (depth > near_depth).any(1)
    lines, depth = lines[kept].copy(), depth[kept]
    for end in (0, 1):
        behind = depth[:, end] < near_depth
        first, last = depth[behind, end], depth[behind, 1 - end]
        fraction = ((near_depth - first) / (last - first))[:, None]
        lines[behind, end] += fraction * (lines[behind, 1 - end] - lines[behind, end])
    return lines, kept
