"""Traversal costs, against a traversal in Python; the boxes of a BVH's levels and their edges in the picture."""

from types import SimpleNamespace

import numpy as np
import pytest

from renderer.bvh.build import build_bvh
from renderer.bvh.levels import Level, bvh_levels
from renderer.bvh.primitives import PRIMITIVE, HostPrimitives
from renderer.images.inspection import false_color
from renderer.images.lines import clip_lines, draw_lines
from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import launch_params
from renderer.raytracing.path_trace import project
from renderer.raytracing.settings import Material, Quad, Settings, Sphere
from renderer.raytracing.traversal_cost import box_edges, clip_to_camera, draw_boxes, largest, traversal_view
from renderer.scene.cameras import Camera


def triangles(rng, count):
    """Small triangles (count,) PRIMITIVE in a cube of side 2."""
    rows = np.zeros(count, PRIMITIVE)
    rows["v0"][:, :3] = rng.uniform(-1, 1, (count, 3))
    for edge in ("edge1", "edge2"):
        rows[edge][:, :3] = rng.normal(0, 0.1, (count, 3))
    rows["v0"].view("u4")[:, 3] = np.arange(count)
    return rows


def corners(rows):
    """The low and the high corner (n, 2, 3) of triangles."""
    a, b, c = (rows[name][:, :3].astype("f8") for name in ("v0", "edge1", "edge2"))
    points = np.stack([a, a + b, a + c])
    return np.stack([points.min(0), points.max(0)], 1)


@pytest.mark.parametrize("layout", ["bvh2", "bvh8"])
def test_levels_hold_every_primitive_in_one_leaf(device, rng, layout):
    rows = triangles(rng, 300)
    levels = bvh_levels(build_bvh(device, HostPrimitives(rows), "sah", layout))
    boxes = corners(rows)
    root = levels[0].boxes[0]
    assert len(levels[0].boxes) == 1
    assert np.allclose(root, [boxes[:, 0].min(0), boxes[:, 1].max(0)], atol=1e-5)
    for above, level in zip(levels, levels[1:], strict=False):
        parents = above.boxes[~above.is_leaf]
        for low, high in level.boxes:  # each lies in a box of the level above that is no leaf
            assert ((parents[:, 0] <= low + 1e-5) & (parents[:, 1] >= high - 1e-5)).all(1).any()
        size = level.boxes[:, 1] - level.boxes[:, 0]
        area = sum(2 * (a * b + b * c + c * a) for a, b, c in size.tolist())
        assert level.areas.sum() == pytest.approx(area, rel=1e-5)
    leaves = np.concatenate([level.boxes[level.is_leaf] for level in levels])
    inside = (leaves[None, :, 0] <= boxes[:, None, 0] + 1e-5) & (leaves[None, :, 1] >= boxes[:, None, 1] - 1e-5)
    assert inside.all(-1).any(1).all()
    assert len(leaves) <= 300


class ZeroNodes:
    """A buffer of nodes that no builder wrote: each is its own child."""

    def read(self):
        return np.zeros((500, 16), "f4")


@pytest.mark.parametrize("layout", ["bvh2", "bvh8"])
def test_levels_of_what_is_no_tree_end(layout):
    levels = bvh_levels(SimpleNamespace(nodes=ZeroNodes(), count=1, layout=layout))
    assert sum(len(level.boxes) for level in levels) < 16 * 500


@pytest.mark.parametrize("layout,slot,lines", [("bvh2", 3, 1), ("bvh8", 48, 4)])
def test_levels_end_at_a_node_that_lies_beyond_the_last(layout, slot, lines):
    lengths = []
    for target in (8 - lines, 9 - lines):  # the last node, and one that reaches beyond it
        nodes = np.zeros((8, 16), "f4")
        nodes.reshape(-1).view("u4")[slot] = target
        bvh = SimpleNamespace(nodes=SimpleNamespace(read=nodes.copy), count=1, layout=layout)
        lengths.append(len(bvh_levels(bvh)))
    assert lengths[1] == 2 < lengths[0] or layout == "bvh8" and lengths[1] == 2, lengths


def test_lines_are_those_of_bresenhams_pixels_and_end_at_the_border(rng):
    pixels = np.zeros((20, 30, 3), "u1")
    lines = rng.uniform(-20, 45, (40, 2, 2))
    lines[0] = [[3.5, 2.5], [3.5, 11.5]]
    lines[1] = [[-5.0, -5.0], [-1.0, 40.0]]
    inside, kept = clip_lines(lines, 30, 20)
    assert kept[0] and not kept[1]
    at = np.linspace(0, 1, 20001)[:, None]
    for line, is_kept in zip(lines, kept, strict=True):  # brute force: points along the line
        points = line[0] * (1 - at) + line[1] * at
        within = points[((points >= 0) & (points <= (30, 20))).all(1)]
        assert bool(len(within)) == is_kept or len(within) < 3
        pixels[:] = 0
        draw_lines(pixels, line[None], np.array([[255, 128, 0]]))
        drawn = {(int(x), int(y)) for y, x in np.argwhere(pixels[..., 0] == 255)}
        touched = {(min(int(x), 29), min(int(y), 19)) for x, y in within}
        assert drawn <= {(x + i, y + j) for x, y in touched for i in (-1, 0, 1) for j in (-1, 0, 1)}
        columns, rows = ({point[k] for point in touched} for k in (0, 1))
        steep = abs(line[1] - line[0])
        major = 0 if steep[0] >= steep[1] else 1
        found = {point[major] for point in drawn}
        assert len((columns, rows)[major] - found) <= 1  # no gap along the way


def test_box_edges_join_corners_that_differ_in_one_coordinate(rng):
    box = np.sort(rng.normal(size=(1, 2, 3)), axis=1)
    edges = box_edges(box)[0]
    assert len({tuple(edge.ravel().round(12)) for edge in edges}) == 12
    for a, b in edges:
        assert (a != b).sum() == 1
        assert all(a[k] in box[0, :, k] and b[k] in box[0, :, k] for k in range(3))


def test_boxes_lie_in_the_picture_where_their_corners_are_seen():
    camera = Camera((0.0, 0.0, 5.0), (0.0, 0.0, 0.0), fov_degrees=60.0)
    params = launch_params(Settings(view=camera), (80, 60), (0, 0, 80, 60))
    boxes = np.array([[[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]], [[-1.0, -1.0, 9.0], [1.0, 1.0, 12.0]]])
    pixels = np.zeros((60, 80, 3), "u1")
    draw_boxes(pixels, boxes, np.array([True, False]), params, False)
    drawn = np.argwhere(pixels.any(-1))
    half = 30 / np.tan(np.radians(30)) / 4  # of the nearest face, in pixels
    assert np.abs(drawn.min(0) - (30 - half, 40 - half)).max() <= 1
    assert np.abs(drawn.max(0) - (30 + half, 40 + half)).max() <= 1
    assert {tuple(color) for color in pixels[pixels.any(-1)]} == {
        (191, 90, 30)
    }  # the box behind the camera is not seen
    through = np.array([[[0.0, 0.0, 0.0], [0.0, 0.0, 10.0]]])
    cut, kept = clip_to_camera(through, params)
    assert kept.all() and 4.9 < cut[0, 1, 2] < 5.0
    points, before = project(params, np.array([[1.0, 1.0, 1.0]]))
    assert before.all() and np.allclose(points * (80, 60), (40 + half, 30 - half))


def test_a_level_of_many_boxes_is_drawn_by_its_largest(rng):
    boxes = np.sort(rng.normal(size=(50, 2, 3)), axis=1)
    kept, is_leaf = largest(Level(boxes, np.arange(50) % 2 == 0), 7)
    areas = [Level(box[None], np.zeros(1, bool)).areas[0] for box in boxes]
    assert sorted(Level(box[None], np.zeros(1, bool)).areas[0] for box in kept) == sorted(areas)[-7:]
    order = np.argsort(areas)[::-1][:7]
    assert np.array_equal(is_leaf, order % 2 == 0)


def test_heat_has_the_colors_of_its_counts(rng):
    counts = rng.integers(0, 40, (9, 16)).astype("u4")
    params = launch_params(Settings(view=Camera((0, 0, 5), (0, 0, 0))), (16, 9), (0, 0, 16, 9))
    view = traversal_view("nodes visited", counts, [], params, "perspective")
    step = view.step(0)
    assert np.array_equal(step.pixels, false_color(counts, 0.0, step.legend.high)) and step.values is counts
    assert np.quantile(counts, 0.998) <= step.legend.high <= 39
    assert f"mean {counts.mean():.4g}" in step.meaning


def scene(layout):
    """Spheres over a floor, seen by a perspective camera."""
    balls = [((x * 0.9 - 2, 0.4 + 0.2 * (x * z % 3), z * 0.8 - 2), 0.3) for x in range(6) for z in range(6)]
    spheres = tuple(Sphere("gray", center, radius) for center, radius in balls)
    floor = Quad("gray", ((-4.0, 0.0, 4.0), (4.0, 0.0, 4.0), (4.0, 0.0, -4.0), (-4.0, 0.0, -4.0)))
    view = Camera((1.0, 2.5, 6.0), (0.0, 0.3, 0.0), fov_degrees=45.0)
    return Settings(
        view=view, materials=(Material("gray"),), spheres=spheres, quads=(floor,), bvh=layout, builder="sah"
    )


class PythonTraversal:
    """The traversal of shaders/bvh/traverse_bvh2.h and traverse_bvh8.h in float64, which counts what it does."""

    def __init__(self, bvh):
        self.lines = bvh.nodes.read().reshape(-1, 16)
        self.primitives = bvh.primitives.read()[: bvh.count].view(PRIMITIVE).ravel()
        self.is_bvh8 = bvh.layout == "bvh8"

    def trace(self, origin, direction):
        """Nodes visited and primitives tested by a ray."""
        self.nodes = self.tests = 0
        self.origin, self.direction, self.best = origin, direction, np.inf
        stack = [(0, 0.0, False)]
        while stack:
            node, entered, is_leaf = stack.pop()
            if entered > self.best and self.is_bvh8:
                continue
            if is_leaf:
                self.leaf(node)
                continue
            self.nodes += 1
            met = [child for child in self.children(node) if child[1] is not None]
            met.sort(key=lambda child: child[1])
            nearest, others = met[:1], met[1:]
            stack += [(ref, at, leaf) for ref, at, leaf in (*others, *nearest)]
        return self.nodes, self.tests

    def children(self, node):
        """References, distances at which the ray enters (None where it misses), and whether each is a leaf."""
        if not self.is_bvh8:
            row = self.lines[node]
            for k in (0, 8):
                center, half = row[k : k + 3].astype("f8"), row[k + 4 : k + 7].astype("f8")
                ref = int(row[[3, 7][k // 8] : [3, 7][k // 8] + 1].view("i4")[0])
                yield ref, self.enter(center - half, center + half), ref < 0
            return
        row = self.lines[node : node + 4].reshape(-1)
        for k in range(8):
            low, high = row[[k, 16 + k, 32 + k]].astype("f8"), row[[8 + k, 24 + k, 40 + k]].astype("f8")
            ref = int(row[48 + k : 49 + k].view("u4")[0])
            yield ref & 0x7FFFFFFF, self.enter(low, high), ref >= 0x80000000

    def enter(self, low, high):
        if (low > high).any():
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (np.stack([low, high]) - self.origin) / self.direction
        near, far = max(t.min(0).max(), 0.0), min(t.max(0).min(), self.best)
        return near if near <= far else None

    def leaf(self, ref):
        if self.is_bvh8:
            indices = self.lines[ref + 4 : ref + 6].reshape(-1)[8:16].view("i4")
            chosen = indices[indices >= 0]
        else:
            chosen = np.arange(~ref >> 3, (~ref >> 3) + (~ref & 7) + 1)
        self.tests += len(chosen)
        for p in self.primitives[chosen]:
            self.best = min(self.best, self.distance(p))

    def distance(self, p):
        corner, edge1, edge2 = (p[name][:3].astype("f8") for name in ("v0", "edge1", "edge2"))
        if (radius := float(p["edge2"][3])) > 0:
            offset = self.origin - corner
            b = offset @ self.direction
            root = b * b - (offset @ offset - radius**2)
            return -b - np.sqrt(root) if root > 0 and -b - np.sqrt(root) > 0 else np.inf
        matrix = np.stack([edge1, edge2, -self.direction], 1)
        u, v, t = np.linalg.solve(matrix, self.origin - corner)
        return t if u >= 0 and v >= 0 and u + v <= 1 and t > 0 else np.inf


@pytest.mark.parametrize("layout", ["bvh2", "bvh8"])
def test_counts_are_those_of_a_traversal_in_python(device, layout):
    size, settings = (30, 20), scene(layout)
    picture = Picture(SimpleNamespace(device=device))
    nodes = picture.algorithm("nodes visited", settings, size)
    found = [nodes.step(0).values, picture.algorithm("primitives tested", settings, size).step(0).values]
    traversal = PythonTraversal(picture._geometry.bvh)
    params = launch_params(settings, size, (0, 0, *size))
    right, up, forward, eye = (params[name][:3].astype("f8") for name in ("right", "up", "forward", "eye"))
    wanted = np.zeros((2, size[1], size[0]), int)
    for y in range(size[1]):
        for x in range(size[0]):
            sx, sy = 2 * (x + 0.5) / size[0] - 1, 1 - 2 * (y + 0.5) / size[1]
            direction = forward + sx * right + sy * up
            wanted[:, y, x] = traversal.trace(eye, direction / np.linalg.norm(direction))
    for counts, python in zip(found, wanted, strict=True):
        assert (counts == python).mean() > 0.97  # the others by roundings of boxes that the ray grazes
        assert counts.sum() == pytest.approx(python.sum(), rel=0.01)
    assert nodes.rows[0]["boxes"] == 1 and len(nodes.rows) > 2
    assert not np.array_equal(nodes.step(1).pixels, false_color(found[0], 0.0, nodes.step(1).legend.high))
