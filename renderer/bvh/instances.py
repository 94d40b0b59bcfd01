"""Instances: a TLAS over transformed shapes, rebuilt on the device when they move, above the BLASes of the shapes."""

import numpy as np

from renderer.bvh import presplit
from renderer.bvh.build import MIN_DEVICE_PRIMS_CPU
from renderer.bvh.host_sah import HostBvh, build_host_sah, primitive_boxes
from renderer.bvh.hploc import HplocBvh2
from renderer.bvh.layouts import center_nodes, upload_primitives
from renderer.bvh.primitives import PRIMITIVE
from renderer.gpu import Buffer, Device


class Instances:
    """Instances of shapes, each with a 3 x 4 matrix: `update` rebuilds the TLAS on the device.

    `shapes` are primitives (m,) PRIMITIVE; shape_of (n,) the shape of each instance; material_of (n,) an index of the
    materials that replaces the shape's own, -1 to keep these. A TLAS has at least two instances: a single one is
    stored twice.
    """

    def __init__(
        self, device: Device, shapes: list[np.ndarray], shape_of: np.ndarray, material_of: np.ndarray | None = None
    ):
        """Builds the BLASes of the shapes and uploads them; `update` must follow."""
        material_of = np.full(len(shape_of), -1) if material_of is None else np.asarray(material_of)
        shape_of, material_of = _at_least_two(np.asarray(shape_of)), _at_least_two(material_of)
        self.device, self.count = device, len(shape_of)
        blases = [_build_blas(device, primitives) for primitives in shapes]
        table = np.zeros((len(shapes), 2, 4), "f4")
        node = row = 0
        for entry, primitives, (blas, ordered) in zip(table, shapes, blases, strict=True):
            low, high = primitive_boxes(primitives)
            entry[0, :3], entry[1, :3] = low.min(0), high.max(0)
            entry.view("i4")[:, 3] = node, row
            node, row = node + len(blas.nodes), row + len(ordered)
        nodes = np.concatenate([blas.nodes for blas, _ in blases]).view("f4").reshape(-1, 16)
        self.ordered = np.concatenate([ordered for _, ordered in blases])
        self.nodes = device.buffer(nodes.shape).write(nodes)
        self.primitives = upload_primitives(device, self.ordered)
        center_nodes(device, self.nodes)
        self._shapes = device.buffer(table.shape).write(table)
        shape_and_material = np.stack([shape_of, material_of], 1).astype("i4")
        self._shape_of = device.buffer((self.count, 2), "i4").write(shape_and_material)
        self.matrices_open, self.matrices_close = (device.buffer((self.count, 3, 4)) for _ in range(2))
        self.records = device.buffer((self.count, 16))
        self._update = device.kernel("bvh/update_instances.cu", "update_instances", group_size=64, STRICT=1, SPHERES=0)
        self._tlas_primitives = device.buffer((self.count, 12))
        self.tlas: HplocBvh2 | None = None

    def update(self, matrices: np.ndarray, matrices_close: np.ndarray | None = None) -> None:
        """Takes matrices (n, 3, 4) from shape to world.

        `matrices_close` are those when the shutter closes; without them nothing moves.
        """
        self.matrices_open.write(_at_least_two(np.ascontiguousarray(matrices, "f4")))
        if matrices_close is None:
            self.matrices_close.copy_from(self.matrices_open)
        else:
            self.matrices_close.write(_at_least_two(np.ascontiguousarray(matrices_close, "f4")))
        matrices_both = self.matrices_open, self.matrices_close
        out = self._tlas_primitives, self.records
        self._update(self.count, *matrices_both, self._shape_of, self._shapes, self.count, *out)
        if self.tlas is None:
            self.tlas = HplocBvh2(self.device, self._tlas_primitives, self.count)
        else:
            self.tlas.rebuild()

    @property
    def kernel_args(self) -> tuple[Buffer, ...]:
        """The arguments INSTANCE_PARAMS of shaders/bvh/traverse_instances.h."""
        assert self.tlas is not None, "update comes first"
        tlas = self.tlas.nodes, self.tlas.primitives
        return *tlas, self.records, self.matrices_open, self.matrices_close, self.nodes, self.primitives


def _at_least_two(rows: np.ndarray) -> np.ndarray:
    return rows if len(rows) > 1 else np.repeat(rows, 2, 0)


def _build_blas(device: Device, primitives: np.ndarray) -> tuple[HostBvh, np.ndarray]:
    """A shape's BVH, built on the host, and its primitives or references in leaf order; presplit where that pays."""
    bvh, splits = build_host_sah(*primitive_boxes(primitives)), None
    if len(primitives) > 1:
        limit = min(MIN_DEVICE_PRIMS_CPU, presplit.max_refs(device.properties))
        splits = presplit.choose_splits(primitives, bvh.cost, limit)
    if splits is not None:
        refs = presplit.PrimRefs(device, primitives, splits)
        boxes = refs.boxes.read()
        split = build_host_sah(boxes[:, :3], boxes[:, 4:7])
        if split.cost < presplit.MAX_COST_RATIO * bvh.cost:
            return split, refs.primitives.read().view(PRIMITIVE).ravel()[split.order]
    return bvh, primitives[bvh.order]
