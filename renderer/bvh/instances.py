"""Two levels of trees: an upper one over placed shapes, built anew on the device whenever they move."""

import numpy as np

from renderer.bvh import build, presplit
from renderer.formats.mesh import PRIMITIVE


class Instances:
    """Copies of a few shapes, placed by matrices: an upper tree that `place` rebuilds on the device, over theirs.

    `material_of` (n,) are rows of the materials in the place of the shapes' own, -1 where these stay. A device tree has
    two primitives, so that a single instance stands there twice.
    """

    def __init__(self, device, shapes: list[np.ndarray], shape_of: np.ndarray, material_of: np.ndarray | None = None):
        material_of = np.full(len(shape_of), -1) if material_of is None else np.asarray(material_of)
        self.asked = len(shape_of)
        shape_of, material_of = self._filled(np.asarray(shape_of)), self._filled(material_of)
        self.device, self.count = device, len(shape_of)
        made = [_tree_of(device, primitives) for primitives in shapes]
        table = np.zeros((len(shapes), 2, 4), "f4")
        node = row = 0
        for entry, primitives, (tree, ordered) in zip(table, shapes, made, strict=True):
            low, high = build.boxes_of(primitives)
            entry[0, :3], entry[1, :3] = low.min(0), high.max(0)
            entry.view("i4")[:, 3] = node, row
            node, row = node + len(tree.nodes), row + len(ordered)
        nodes = np.concatenate([tree.nodes for tree, _ in made]).view("f4").reshape(-1, 16)
        self.ordered = np.concatenate([ordered for _, ordered in made])
        self.nodes = device.buffer(nodes.shape).write(nodes)
        self.primitives = device.buffer((row, 12)).write(self.ordered.view("f4").reshape(-1, 12))
        device.kernel("bvh/build_hploc.cu", "centre_nodes", group_size=build.SORT_GROUP, STRICT=1)(
            node, self.nodes, node
        )
        self._shapes = device.buffer(table.shape).write(table)
        table = np.stack([shape_of, material_of], 1).astype("i4")
        self._shape_of = device.buffer((self.count, 2), "i4").write(table)
        self.matrices, self.later = (device.buffer((self.count, 3, 4)) for _ in range(2))
        self.placed = device.buffer((self.count, 16))
        self._place = device.kernel("bvh/update_instances.cu", "place_instances", group_size=64, STRICT=1, SPHERES=0)
        self._records = device.buffer((self.count, 12))
        self.upper = None

    def _filled(self, rows: np.ndarray) -> np.ndarray:
        return rows if len(rows) > 1 else np.repeat(rows, 2, 0)

    def place(self, matrices: np.ndarray | None = None, later: np.ndarray | None = None) -> None:
        """Takes matrices (n, 3, 4) from shape to world, or those that a kernel has left in self.matrices.

        `later` are those when the shutter closes; without them nothing moves.
        """
        if matrices is not None:
            self.matrices.write(self._filled(np.ascontiguousarray(matrices, "f4")))
        if later is None:
            self.later.copy_from(self.matrices)
        else:
            self.later.write(self._filled(np.ascontiguousarray(later, "f4")))
        ends = self.matrices, self.later
        self._place(self.count, *ends, self._shape_of, self._shapes, self.count, self._records, self.placed)
        if self.upper is None:
            self.upper = build.Built(self.device, self._records, self.count)
        else:
            self.upper.rebuild()

    @property
    def rows(self) -> tuple:
        """The arguments PLACED_TAKEN of shaders/bvh/traverse_instances.h."""
        upper = self.upper.nodes, self.upper.primitives
        return *upper, self.placed, self.matrices, self.later, self.nodes, self.primitives

    def closest(self, rays, hits, instances, count: int, spheres: bool) -> None:
        """Launches the walk: rays (n, 2, 4) to hits (n, 4) and instances (n,) int32; rows are those of self.ordered."""
        kernel = self.device.kernel(
            "bvh/update_instances.cu", "closest_placed", group_size=64, STRICT=1, SPHERES=int(spheres)
        )
        kernel(count, rays, hits, instances, count, *self.rows)


def _tree_of(device, primitives: np.ndarray) -> tuple[build.Tree, np.ndarray]:
    """A shape's tree, made on the host, and its primitives in the order of leaves: in parts where these save much."""
    tree, cuts = build.build(*build.boxes_of(primitives)), None
    if len(primitives) > 1:
        cuts = presplit.budget_of(primitives, tree.cost, min(build.HOST_BUILDS, presplit.most_parts(device.properties)))
    if cuts is not None:
        parts = presplit.Parts(device, build.upload(device, primitives), cuts, *presplit.corners_of(primitives))
        boxes = parts.boxes.read()
        of_parts = build.build(boxes[:, :3], boxes[:, 4:7])
        if of_parts.cost < presplit.WORTH * tree.cost:
            return of_parts, parts.primitives.read().view(PRIMITIVE).ravel()[of_parts.order]
    return tree, primitives[tree.order]
