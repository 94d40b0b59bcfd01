"""The choice of a builder and a node layout for the static geometry of a scene.

Builders: binned SAH on the host (host_sah.py) or on the device (device_sah.py), the latter also over presplit
references (presplit.py), and H-PLOC on the device (hploc.py), which the TLAS of instances.py uses because it rebuilds
fastest. All layouts and builders give bit-identical hits. `auto` chose between them by these recorded cases:

- presplit: hair, 20,000 triangles: SAH cost 553 -> 144, nodes visited by a ray 1,510 -> 270
- SAH over H-PLOC: terrain, 80,000 triangles: nodes visited by a ray 33.9 -> 26.1
- bvh8 over bvh2 on CPUs: see bvh8.py

Tried in pictures on an H200 and removed (tests/fps/results/h200_layouts.jsonl), with frames a second against BVH2 and
while-while scheduling: BVH2 quantized to 32-byte nodes, 0.73 to 1.04; if-if scheduling within a warp (Aila and Laine
2009), 0.89 to 1.05; CWBVH (Ylitie et al. 2017), 0.43 to 0.83; packets of a warp (Wald et al. 2001), 0.81 to 0.86.
Reinsertion of subtrees (Meister and Bittner 2018) saved at most 3 % of the nodes that rays visit.
"""

import numpy as np

from renderer.bvh import device_sah, presplit
from renderer.bvh.bvh8 import Bvh8
from renderer.bvh.host_sah import build_host_sah, primitive_boxes
from renderer.bvh.hploc import HplocBvh2
from renderer.bvh.layouts import Bvh, Bvh2, upload_bvh2, upload_primitives
from renderer.bvh.primitives import PRIMITIVE, HostPrimitives
from renderer.gpu import Buffer, Device
from renderer.host import trim_memory

MIN_DEVICE_PRIMS = 1_000  # from which `auto` builds on a GPU
MIN_DEVICE_PRIMS_MOVED = 5_000  # of a BVH for one frame: on two cores 10,000 take 0.10 s on the host, 0.07 s by `sah`
MIN_DEVICE_PRIMS_CPU = 30_000  # from which `auto` builds on a CPU's device: of 70,000 in 0.6 s, 1.7 on the host
MIN_TRIMMED_PRIMS = 200_000  # from which memory that was freed before a pass is worth its return to the system


def build_bvh(
    device: Device,
    primitives: np.ndarray | HostPrimitives,
    builder: str = "auto",
    layout: str = "auto",
    moved: bool = False,
) -> Bvh:
    """Builds the BVH of primitives (m,) PRIMITIVE on a device; HostPrimitives are freed as soon as they are there.

    `builder` is "host_sah", "sah" (on the device), "hploc", "presplit" (SAH over presplit references) or "auto":
    host_sah for small scenes and sah for others, presplit where splits are predicted to pay and its cost is below
    presplit.MAX_COST_RATIO of that. `layout` is "bvh2" or "auto": bvh8 on CPUs, bvh2 on GPUs. With `moved`, "auto"
    builds again, for a frame, what presplit did not pay for, by the builder that takes less time.
    """
    host = primitives if isinstance(primitives, HostPrimitives) else HostPrimitives(primitives)
    if host.count >= MIN_TRIMMED_PRIMS:
        trim_memory()
    if builder == "auto" and moved:
        builder = "host_sah" if host.count < MIN_DEVICE_PRIMS_MOVED else "sah"
    bvh = _auto_bvh2(device, host) if builder == "auto" else _bvh2(device, host, builder)
    host.free()
    if host.count >= MIN_TRIMMED_PRIMS:
        trim_memory()
    return Bvh8(device, bvh) if layout_for(device, layout) == "bvh8" else bvh


def layout_for(device: Device, layout: str) -> str:
    """The layout that build_bvh() gives: "bvh2" or "bvh8"."""
    return "bvh8" if layout == "auto" and device.properties.scalar_threads else "bvh2"


def _bvh2(device: Device, host: HostPrimitives, builder: str, is_last: bool = False) -> Bvh2:
    """The BVH by one builder; `is_last` says that no other needs the rows, so that they are freed before it builds."""
    if builder == "host_sah" or host.count < 2:
        return upload_bvh2(device, host.rows, build_host_sah(*primitive_boxes(host.rows)))
    if builder == "presplit":
        splits = presplit.split_potential(host.rows).splits(1)
        return _presplit_bvh2(device, host.rows, splits) or _bvh2(device, host, "sah")

    def upload() -> Buffer:
        rows = upload_primitives(device, host.rows)
        if is_last:
            host.free()
        return rows

    if builder == "sah":
        bvh, ordered = device_sah.build_device_sah(device, upload, host.count)
        return bvh or HplocBvh2(device, ordered, host.count)
    return HplocBvh2(device, upload(), host.count)


def _auto_bvh2(device: Device, host: HostPrimitives) -> Bvh2:
    """The BVH over static primitives that is traversed fastest and built before the user waits for it."""
    min_device_prims = MIN_DEVICE_PRIMS_CPU if device.properties.scalar_threads else MIN_DEVICE_PRIMS
    limit = presplit.max_refs(device.properties)
    may_split = presplit.least_refs(host.count) <= limit
    whole = _bvh2(device, host, "host_sah" if host.count < min_device_prims else "sah", is_last=not may_split)
    if host.count < 2 or not whole.cost or not may_split:
        return whole
    splits = presplit.choose_splits(host.rows, whole.cost, limit)
    split = None if splits is None else _presplit_bvh2(device, host.rows, splits, min_device_prims)
    return split if split and split.cost < presplit.MAX_COST_RATIO * whole.cost else whole


def _presplit_bvh2(device: Device, primitives: np.ndarray, splits: np.ndarray, min_device_refs: int = 2) -> Bvh2 | None:
    """SAH over references, primitive i split splits[i] times; None where the BVH is too deep to traverse.

    Fewer than `min_device_refs` are built on the host, which has no kernels to compile.
    """
    refs = presplit.PrimRefs(device, primitives, splits)
    if refs.count < min_device_refs:
        boxes, rows = refs.boxes.read(), refs.primitives.read().view(PRIMITIVE).ravel()
        return upload_bvh2(device, rows, build_host_sah(boxes[:, :3], boxes[:, 4:7]))
    return device_sah.build_device_sah(device, lambda: refs.primitives, refs.count, refs.boxes)[0]
