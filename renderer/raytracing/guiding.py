"""What guides paths to where light comes from: photons of the lights, sorted into lobes about where they came from.

shaders/raytracing/photons.cu traces the photons, shaders/raytracing/guide.h samples the lobes and describes their
layout. All depends on the scene, its seed and the number of photons alone, so that each device, tile and view has the
same lobes.
"""

from typing import Any

import numpy as np

from renderer.gpu.device import Buffer, Device
from renderer.raytracing.environment import environment_map, is_lit
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import photon_source
from renderer.raytracing.lights import LightSampler
from renderer.raytracing.photons import Bounds, emit_photons
from renderer.raytracing.ray_buffers import GROUP_SIZE
from renderer.raytracing.settings import Settings

RECORDS = 4  # surfaces of a photon that are recorded; the same in photons.cu
LOBES = 16  # of a leaf, a power of two; the same in guide.h
LOBE_PHOTONS = 8  # that a lobe is made of
LEAF_PHOTONS = 256  # a leaf has at most so many
WIDTH = 1.0  # of a lobe, over the spread of its photons
MIN_SPREAD2 = 1e-6
FACES = 6
HEADER_WORDS = 8
NO_TREE, LEAF = 0xFFFFFFFF, 3


def train_guide(
    device: Device, settings: Settings, geometry: Geometry, rows: np.ndarray, lights: LightSampler, constants: dict
) -> Buffer:
    """Traces the photons of the settings and returns the guide's words.

    `rows` are the materials (m,) MATERIAL, `constants` the compile-time constants of kernels that trace rays.
    """
    radiance = environment_map(settings) if is_lit(settings.environment, settings.sky) else None
    bounds = Bounds(*geometry.bounding_sphere(settings, rows))
    starts = emit_photons(lights, radiance, rows, bounds, settings.guiding_photons, settings.seed)
    words = guide_words(*_trace(device, settings, geometry, rows, starts, constants))
    return device.buffer(len(words), "u4").write(words)


def _trace(
    device: Device, settings: Settings, geometry: Geometry, rows: np.ndarray, starts: np.ndarray, constants: dict
) -> tuple[np.ndarray, np.ndarray]:
    """The recorded photons: (n, 4) points and powers, (n, 4) directions and numbers of their trees."""
    if not len(starts):
        return np.zeros((0, 4), "f4"), np.zeros((0, 4), "f4")
    kernel: Any = device.kernel(photon_source(), "trace_photons", group_size=GROUP_SIZE, PHOTONS=1, **constants)
    records = device.buffer((len(starts) * RECORDS, 2, 4)).fill(0)
    sources = device.buffer(starts.shape).write(starts)
    materials = device.buffer(len(rows), rows.dtype).write(rows)
    count, depth = len(starts), settings.max_depth
    kernel(count, count, settings.seed, depth, sources, records, *geometry.kernel_args, materials)
    found = records.read()
    found = found[(found[:, 0, 3] > 0) & np.isfinite(found).all((1, 2))]
    return found[:, 0], found[:, 1]


def guide_words(points: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """The words of guide.h for photons: points (n, 4) with their power, vectors (n, 4) to where they came from.

    The last column of the vectors is the number of a photon's tree.
    """
    columns = np.ascontiguousarray(points[:, :3].T)
    roots = np.full(FACES, NO_TREE, "u4")
    nodes: list[list[int]] = []
    leaves: list[np.ndarray] = []
    for face in range(FACES):
        members = np.flatnonzero(sources[:, 3] == face)
        if len(members):
            roots[face] = len(nodes)
            nodes.append([0, 0])
            _split(columns, members, len(nodes) - 1, nodes, leaves)
    header = np.zeros(HEADER_WORDS, "u4")
    tree = np.array(nodes, "u4").reshape(-1)
    gap = np.zeros(-(len(header) + len(tree)) % LOBES, "u4")  # a leaf's rows lie in one line of a cache
    header[:FACES], header[FACES] = roots, len(header) + len(tree) + len(gap)
    return np.concatenate([header, tree, gap, _lobes(points, sources, leaves).reshape(-1)])


def _split(
    columns: np.ndarray, members: np.ndarray, node: int, nodes: list[list[int]], leaves: list[np.ndarray]
) -> None:
    """Splits a node of photons at the median of its longest axis, until few are left; `columns` (3, n) are points."""
    right = None
    if len(members) > LEAF_PHOTONS:
        places = columns[:, members]
        axis = int((places.max(1) - places.min(1)).argmax())
        split = np.partition(places[axis], len(members) // 2)[len(members) // 2]
        right = places[axis] >= split
    if right is None or right.all():
        nodes[node] = [0, LEAF + 4 * len(leaves)]
        leaves.append(members)
        return
    child = len(nodes)
    nodes[node] = [int(split.view("u4")), axis + 4 * child]
    nodes += [[0, 0], [0, 0]]
    _split(columns, members[~right], child, nodes, leaves)
    _split(columns, members[right], child + 1, nodes, leaves)


def _lobes(points: np.ndarray, sources: np.ndarray, leaves: list[np.ndarray]) -> np.ndarray:
    """The lobes (leaves, 4, LOBES) of guide.h, as words: places and squared sizes, for the photons of each leaf.

    Photons are drawn by their power and halved by direction, LOBES.bit_length() - 1 times; what is left is a lobe.
    """
    count = LOBES * LOBE_PHOTONS
    drawn = np.array([_draw(members, points[members, 3], count) for members in leaves], np.int64).reshape(-1, count)
    place = points[drawn, :3].astype("f8")
    center = place.mean(1, keepdims=True)
    source = place + sources[drawn, :3]
    offset = source - center
    distance = np.maximum(np.linalg.norm(offset, axis=-1, keepdims=True), 1e-30)
    groups = np.concatenate([offset / distance, source, distance], -1)
    while groups.shape[1] > LOBE_PHOTONS:
        axis = groups[..., :3].var(1).argmax(-1)
        along = np.take_along_axis(groups[..., :3], axis[:, None, None], -1)[..., 0]
        order = np.argsort(along, 1, kind="stable")
        groups = np.take_along_axis(groups, order[..., None], 1).reshape(-1, groups.shape[1] // 2, 7)
    groups = groups.reshape(len(leaves), LOBES, LOBE_PHOTONS, 7)
    spread2 = groups[..., :3].var(2).sum(-1)  # of the directions, in squared radians
    size2 = np.maximum(WIDTH * spread2, MIN_SPREAD2) * (groups[..., 6] ** 2).mean(2)
    lobes = np.concatenate([groups[..., 3:6].mean(2), size2[..., None]], -1)
    return np.ascontiguousarray(lobes.transpose(0, 2, 1).astype("f4")).view("u4")


def _draw(members: np.ndarray, powers: np.ndarray, count: int) -> np.ndarray:
    """`count` of the members (n,), each as often as its power says (systematic resampling)."""
    sums = np.cumsum(powers.astype("f8"))
    return members[np.minimum(np.searchsorted(sums, (np.arange(count) + 0.5) * (sums[-1] / count)), len(members) - 1)]
