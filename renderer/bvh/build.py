"""Builds the BVH over the static geometry of a scene: chooses a builder and a node layout for build_bvh().

Builders: binned SAH on the host (host_sah.py) or on the device (device_sah.py), either also over presplit references
(presplit.py), and H-PLOC on the device (hploc.py), which the TLAS of instances.py uses because it rebuilds
fastest. All layouts and builders give bit-identical hits. These recorded cases decided what `auto` chooses:

- presplit: hair, 20,000 triangles: SAH cost 553 -> 144, nodes visited by a ray 1,510 -> 270
- SAH over H-PLOC: terrain, 80,000 triangles: nodes visited by a ray 33.9 -> 26.1
- bvh8 over bvh2 on CPUs: see layouts.py

Tried in pictures on an H200 and removed (tests/fps/results/h200_layouts.jsonl, guides/bvh.md), with frames a second
against BVH2: BVH2 quantized to 32-byte nodes, 0.70 to 0.98; CWBVH (Ylitie et al. 2017), 0.43 to 0.83; packets of a
warp (Wald et al. 2001), 0.81 to 0.86.
Reinsertion of subtrees (Meister and Bittner 2018) saved at most 3 % of the nodes that rays visit.
"""

import numpy as np

from renderer.bvh import device_sah, presplit
from renderer.bvh.host_sah import build_host_sah, primitive_boxes, refitted
from renderer.bvh.hploc import HplocBvh2
from renderer.bvh.layouts import GROUP, Bvh, Bvh2, Bvh8, upload_bvh2, upload_primitives
from renderer.bvh.primitives import HostPrimitives
from renderer.gpu import Buffer, Device
from renderer.host import trim_memory

# Fewest primitives for which `auto` builds on the device:
MIN_DEVICE_PRIMS = 1_000  # a GPU
MIN_DEVICE_PRIMS_CPU = 30_000  # a CPU: 70,000 primitives take 0.6 s, on the host 1.7 s
# A BVH for one frame, on any device. For 10,000 primitives a CPU device of two cores takes 0.07 s, the host 0.10 s or,
# by a refit, 0.01 s.
MIN_DEVICE_PRIMS_MOVED = 5_000
MIN_TRIMMED_PRIMS = 200_000  # fewest primitives for which freed memory is given back to the system around a build


def build_bvh(
    device: Device,
    primitives: np.ndarray | HostPrimitives,
    builder: str = "auto",
    layout: str = "auto",
    last: Bvh | None = None,
) -> Bvh:
    """Builds the BVH of primitives (m,) PRIMITIVE on a device; HostPrimitives are freed once they are uploaded.

    `builder` is "host_sah", "sah" (on the device), "hploc", "presplit" (SAH over presplit references) or "auto":
    host_sah for small scenes, sah for large ones, and presplit instead of either if it is predicted to pay and its SAH
    cost is below presplit.MAX_COST_RATIO times theirs. `last` is the BVH of the previous frame of an animation: "auto"
    then never presplits, takes the builder that is faster, and the host refits. `layout` is "bvh2" or "auto"
    (uses_bvh8).
    """
    host = primitives if isinstance(primitives, HostPrimitives) else HostPrimitives(primitives)
    if not last and host.count >= MIN_DEVICE_PRIMS:
        device_sah.compile_ahead(device)
        device.compile_ahead("bvh/center_nodes.cu", GROUP, STRICT=1)  # the last step of each build on a device
    if host.count >= MIN_TRIMMED_PRIMS:
        trim_memory()
    if builder == "auto" and last:
        builder = "host_sah" if host.count < MIN_DEVICE_PRIMS_MOVED else "sah"
    bvh = _auto_bvh2(device, host) if builder == "auto" else _bvh2(device, host, builder, last)
    host.free()
    if host.count >= MIN_TRIMMED_PRIMS:
        trim_memory()
    return Bvh8(device, bvh) if uses_bvh8(device, layout) else bvh


def uses_bvh8(device: Device, layout: str) -> bool:
    """Returns True if build_bvh() makes a BVH8: `layout` is "auto" and the device a CPU."""
    return layout == "auto" and device.properties.scalar_threads


def _bvh2(device: Device, host: HostPrimitives, builder: str, last: Bvh | None = None, free_rows: bool = False) -> Bvh2:
    """Builds with one builder; the host refits `last`. `free_rows`: nothing needs host.rows after the upload."""
    if builder == "host_sah" or host.count < 2:
        boxes = primitive_boxes(host.rows)
        bvh2 = refitted(last.host if last else None, *boxes) or build_host_sah(*boxes)
        return upload_bvh2(device, host.rows, bvh2)
    if builder == "presplit":
        splits = presplit.split_potential(host.rows).splits(splits_per_prim=1)
        return _presplit_bvh2(device, host.rows, splits) or _bvh2(device, host, "sah")

    def upload() -> Buffer:
        rows = upload_primitives(device, host.rows)
        if free_rows:
            host.free()
        return rows

    if builder == "sah":
        bvh, ordered = device_sah.build_device_sah(device, upload, host.count)
        # None: the BVH is too deep for the traversal stack
        return bvh or HplocBvh2(device, ordered, host.count)
    return HplocBvh2(device, upload(), host.count)


def _auto_bvh2(device: Device, host: HostPrimitives) -> Bvh2:
    """Builds what `auto` chooses: by SAH, and again over presplit references if these are predicted to pay."""
    min_device_prims = MIN_DEVICE_PRIMS_CPU if device.properties.scalar_threads else MIN_DEVICE_PRIMS
    limit = presplit.max_refs(device.properties)
    may_split = presplit.may_pay(host.rows, limit)
    unsplit = _bvh2(device, host, "host_sah" if host.count < min_device_prims else "sah", free_rows=not may_split)
    # H-PLOC, which replaces a BVH that is too deep, has the cost 0: unknown, so nothing can be predicted.
    if not unsplit.cost or not may_split:
        return unsplit
    splits = presplit.choose_splits(host.rows, unsplit.cost, limit)
    split = None if splits is None else _presplit_bvh2(device, host.rows, splits, min_device_prims)
    return split if split and split.cost < presplit.MAX_COST_RATIO * unsplit.cost else unsplit


def _presplit_bvh2(device: Device, primitives: np.ndarray, splits: np.ndarray, min_device_refs: int = 2) -> Bvh2 | None:
    """Builds by SAH over presplit references, primitive i split splits[i] times; None if too deep to traverse.

    The host builds over fewer than `min_device_refs` references, because it has no kernels to compile; a device needs
    at least 2.
    """
    refs = presplit.PrimRefs(device, primitives, splits)
    if refs.count < min_device_refs:
        bvh, rows = refs.build_for_host()
        return upload_bvh2(device, rows, bvh)
    return device_sah.build_device_sah(device, lambda: refs.primitives, refs.count, refs.boxes)[0]
