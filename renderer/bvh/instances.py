"""Instances of shapes: a top-level BVH (TLAS) over their transformed boxes, and a BVH (BLAS) for each shape.

The host builds the BLASes of small shapes, the device the BLASes of large shapes, both once; BLASes of shapes that
deform are refitted. For CPUs the host also builds the first TLAS of few instances. The device rebuilds the TLAS
whenever instances move. raytracing/geometry.py owns the Instances of a scene; shaders/bvh/traverse_instances.h
traverses them. TLAS and BLAS are DXR's terms.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from renderer.bvh import presplit
from renderer.bvh.build import MIN_DEVICE_PRIMS_CPU, MIN_DEVICE_PRIMS_MOVED
from renderer.bvh.device_sah import build_for_host
from renderer.bvh.host_sah import HostBvh, build_host_sah, primitive_boxes, refitted
from renderer.bvh.hploc import HplocBvh2
from renderer.bvh.layouts import Bvh2, center_nodes, upload_bvh2, upload_primitives
from renderer.bvh.primitives import PRIMITIVE
from renderer.gpu import Buffer, Device

# Most instances whose first TLAS the host builds for a CPU, in 20 ms: to compile H-PLOC takes 0.7 s, which only moving
# instances repay.
MAX_HOST_INSTANCES = 1_000
MAX_BLAS_REFS = 150_000  # most references of a presplit BLAS


class Blas(NamedTuple):
    """The BVH of a shape (m,) PRIMITIVE, and `ordered` primitives or references by leaf.

    `closing` are the primitives at shutter close in the same order; None if no vertex moves. `low` and `high` (3,) are
    the corners of the root's box.
    """

    shape: np.ndarray
    bvh: HostBvh
    ordered: np.ndarray
    closing: np.ndarray | None
    low: np.ndarray
    high: np.ndarray


class Instances:
    """Instances of shapes on a device, each with a 3 x 4 matrix; update() moves them.

    `shapes` are primitives (m,) PRIMITIVE. `shape_of` (n,) is the index of each instance's shape. `material_of` (n,) is
    the index of a material that replaces the materials of the shape, -1 to keep them. A TLAS needs two instances: a
    single instance is stored twice.
    """

    def __init__(
        self,
        device: Device,
        shapes: list[np.ndarray],
        shape_of: np.ndarray,
        material_of: np.ndarray | None = None,
        closing: Sequence[np.ndarray | None] | None = None,
        before: "Instances | None" = None,
    ):
        """Builds the BLASes of the shapes and uploads them; update() must follow.

        `closing` holds, for each shape, its primitives at shutter close, to which the vertices move along lines, or
        None. `before` are the Instances of the previous frame: their BLASes are kept for shapes that are the same array
        objects, and refitted for the others.
        """
        material_of = np.full(len(shape_of), -1) if material_of is None else np.asarray(material_of)
        shape_of, material_of = _at_least_two(np.asarray(shape_of)), _at_least_two(material_of)
        self.device, self.count = device, len(shape_of)  # 2 for a single instance
        kept = {id(blas.shape): blas for blas in before.blases} if before else {}
        ends = closing or [None] * len(shapes)
        self.blases: list[Blas] = [
            kept[id(shape)] if end is None and id(shape) in kept else _build_blas(device, shape, end, last)
            for shape, end, last in zip(shapes, ends, before.blases if before else [None] * len(shapes), strict=True)
        ]
        # Rows of a shape's entry, with int32 in w: min corner and first node, max corner and first primitive, zeros and
        # first primitive in `_closing` (-1: no vertex moves).
        table = np.zeros((len(shapes), 3, 4), "f4")
        node = row = closing_row = 0
        for entry, blas in zip(table, self.blases, strict=True):
            entry[0, :3], entry[1, :3] = blas.low, blas.high
            entry.view("i4")[:, 3] = node, row, -1 if blas.closing is None else closing_row
            node, row = node + len(blas.bvh.nodes), row + len(blas.ordered)
            closing_row += 0 if blas.closing is None else len(blas.closing)
        nodes = np.concatenate([blas.bvh.nodes for blas in self.blases]).view("f4").reshape(-1, 16)
        self.ordered = np.concatenate([blas.ordered for blas in self.blases])
        moved = [blas.closing for blas in self.blases if blas.closing is not None]
        self._closing = (upload_primitives(device, np.concatenate(moved)),) if moved else ()
        self.nodes = device.buffer(nodes.shape).write(nodes)
        self.primitives = upload_primitives(device, self.ordered)
        center_nodes(device, self.nodes)  # in place: min and max corners of boxes to centers and half extents
        self._shapes = device.buffer(table.shape).write(table)
        shape_and_material = np.stack([shape_of, material_of], 1).astype("i4")
        self._shape_of = device.buffer((self.count, 2), "i4").write(shape_and_material)
        self._matrices = [device.buffer((self.count, 3, 4)) for _ in range(2)]  # at shutter open and close
        self.records = device.buffer((self.count, 16))
        self._update = device.kernel("bvh/update_instances.cu", "update_instances", group_size=64, STRICT=1, SPHERES=0)
        self._boxes = device.buffer((self.count, 12))  # the TLAS's primitives (PRIMITIVE): v0 to v0 + edge1 is a box
        self.tlas: Bvh2 | None = None

    def update(self, matrices: np.ndarray, matrices_close: np.ndarray | None = None) -> None:
        """Moves the instances: matrices (n, 3, 4) from shape to world when the shutter opens and when it closes.

        `matrices_close` is None if nothing moves while the shutter is open.
        """
        self._matrices[0].write(_at_least_two(np.ascontiguousarray(matrices, "f4")))
        if matrices_close is None:
            self._matrices[1].copy_from(self._matrices[0])
        else:
            self._matrices[1].write(_at_least_two(np.ascontiguousarray(matrices_close, "f4")))
        self._update(self.count, *self._matrices, self._shape_of, self._shapes, self.count, self._boxes, self.records)
        if self.tlas is None and self.device.properties.scalar_threads and self.count <= MAX_HOST_INSTANCES:
            rows = self._boxes.read().view(PRIMITIVE).ravel()
            self.tlas = upload_bvh2(self.device, rows, build_host_sah(*primitive_boxes(rows), max_leaf=1))
        elif isinstance(self.tlas, HplocBvh2):
            self.tlas.rebuild()
        else:
            self.tlas = HplocBvh2(self.device, self._boxes, self.count)

    @property
    def kernel_args(self) -> tuple[Buffer, ...]:
        """The arguments INSTANCE_PARAMS of shaders/bvh/traverse_instances.h."""
        assert self.tlas is not None, "update comes first"
        tlas = self.tlas.nodes, self.tlas.primitives
        return *tlas, self.records, *self._matrices, self.nodes, self.primitives, *self._closing


def _at_least_two(rows: np.ndarray) -> np.ndarray:
    return rows if len(rows) > 1 else np.repeat(rows, 2, 0)


def _build_sah(device: Device, least: int, low: np.ndarray, high: np.ndarray) -> HostBvh:
    """Builds over boxes (m, 3), for at least `least` of them on the device unless that tree is too deep."""
    found = build_for_host(device, low, high) if len(low) >= least else None
    return found or build_host_sah(low, high)


def _build_blas(device: Device, shape: np.ndarray, closing: np.ndarray | None, last: Blas | None) -> Blas:
    """Builds the BLAS of a shape, over presplit references if they pay.

    `last` is the BLAS of the shape's previous frame. This one then serves one frame of vertices that move: it is
    refitted where that is possible, and gets no presplit references.
    """
    low, high = primitive_boxes(shape)
    if closing is not None:
        other_low, other_high = primitive_boxes(closing)
        low, high = np.minimum(low, other_low), np.maximum(high, other_high)
    build = partial(_build_sah, device, MIN_DEVICE_PRIMS_MOVED if last else MIN_DEVICE_PRIMS_CPU)
    bvh, rows = refitted(last.bvh if last else None, low, high) or build(low, high), shape
    limit = min(MAX_BLAS_REFS, presplit.max_refs(device.properties))
    may_split = closing is None and not last and presplit.may_pay(shape, limit)
    if may_split and (splits := presplit.choose_splits(shape, bvh.cost, limit)) is not None:
        split, refs = presplit.PrimRefs(device, shape, splits).build_for_host(build)
        if split.cost < presplit.MAX_COST_RATIO * bvh.cost:
            bvh, rows = split, refs
    moved_rows = None if closing is None else closing[bvh.order]
    return Blas(shape, bvh, rows[bvh.order], moved_rows, low.min(0), high.max(0))
