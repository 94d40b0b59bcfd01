"""What guides paths to where light comes from: photons of the lights, sorted into lobes about where they came from.

shaders/raytracing/photons.cu traces the photons, shaders/raytracing/guide.h samples the lobes and describes their
layout. All depends on the scene, its seed and the number of photons alone, so that each device, tile and view has the
same lobes.
"""

from concurrent.futures import ThreadPoolExecutor
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
LEAF_PHOTONS = 128  # a leaf has at most so many
WIDTH = 1.0  # of a lobe, over the spread of its photons
MIN_SPREAD2 = 1e-6
TREES = 12
HEADER_WORDS = 16
NO_TREE = 0xFFFFFFFF
DEPTH_BITS = 5  # of a tree's word in the header


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
    found = found[found[:, 0, 3] > 0]
    found = found[np.isfinite(found).all((1, 2))]
    return found[:, 0], found[:, 1]


def guide_words(points: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """The words of guide.h for photons: points (n, 4) with their power, vectors (n, 4) to where they came from.

    The last column of the vectors is the number of a photon's tree.
    """
    header = np.full(HEADER_WORDS, NO_TREE, "u4")
    trees, lobes, leaves = [], [], 0

    def build(number: int) -> tuple[np.ndarray, np.ndarray] | None:
        members = np.flatnonzero(sources[:, 3] == number)
        if not len(members):
            return None
        nodes, leaf_points, leaf_sources = _tree(points[members], sources[members, :3])
        return nodes, _lobes(leaf_points, leaf_sources)

    with ThreadPoolExecutor(TREES) as pool:  # NumPy's loops run beside each other
        for number, tree in enumerate(pool.map(build, range(TREES))):
            if tree:
                header[number] = leaves << DEPTH_BITS | (len(tree[0]).bit_length() - 1)
                leaves += len(tree[0])
                trees.append(tree[0])
                lobes.append(tree[1])
    gap = np.zeros(-(HEADER_WORDS + leaves) % LOBES, "u4")  # a leaf's rows lie in one line of a cache
    header[TREES] = HEADER_WORDS + leaves + len(gap)
    return np.concatenate([header, *trees, gap, *lobes])


def _tree(points: np.ndarray, sources: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nodes (n,) of a tree, a power of two with the first unused, and the photons of its n leaves.

    Photons are as in `guide_words`; those of leaves are (n, m, 4) and (n, m, 3). All leaves hold m photons: some are
    there twice, at half of their power.
    """
    depth = max(0, (-(-len(points) // LEAF_PHOTONS) - 1).bit_length())
    twice = np.linspace(0, len(points) - 1, -len(points) % (1 << depth)).astype(np.int64)
    points = points.copy()
    points[twice, 3] *= 0.5
    members = np.concatenate([np.arange(len(points)), twice])[None]
    places = np.ascontiguousarray(points[members[0], :3].T)[:, None]
    nodes = [np.zeros(1, "u4")]
    for _ in range(depth):
        order, axis, split = _halve(places)
        nodes.append(split.view("u4") & np.uint32(~3 & 0xFFFFFFFF) | axis.astype("u4"))
        members, places = members.reshape(-1)[order], places.reshape(3, -1)[:, order]
    return np.concatenate(nodes), points[members], sources[members]


def _halve(places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Splits groups of points, (3, n, m) float32, each at the median of the axis along which it is longest.

    Returns the indices (2 n, m / 2) of the points of the halves, counted over all groups, and of each group the axis
    (n,) and the coordinate (n,) of its split. Equal coordinates keep their order, on any machine.
    """
    _, groups, size = places.shape
    axis = (_last(np.maximum, places) - _last(np.minimum, places)).argmax(0)
    along = places[axis, np.arange(groups)]
    bits = along.view("u4")
    keys = np.where(bits >> 31, ~bits, bits | 0x80000000).astype("u8") << 32 | np.arange(size, dtype="u8")
    middle = np.partition(keys, size // 2)[:, size // 2]
    right = keys >= middle[:, None]
    halves = [np.flatnonzero(side).reshape(groups, size // 2) for side in (~right, right)]
    split = along[np.arange(groups), (middle & 0xFFFFFFFF).astype(np.int64)]
    return np.stack(halves, 1).reshape(2 * groups, size // 2), axis, split


def _last(extreme: np.ufunc, values: np.ndarray) -> np.ndarray:
    """The maximum or minimum over the last axis; ten times faster than `reduce` where that axis is short."""
    while (size := values.shape[-1]) > 1:
        half = (size + 1) // 2
        values = extreme(values[..., :half], values[..., size - half :])
    return values[..., 0]


def _lobes(points: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """The words of the lobes, (n, 4, LOBES) in guide.h, for the photons of n leaves as _tree returns them.

    Photons are drawn by their power and halved by direction, LOBES.bit_length() - 1 times; what is left is a lobe.
    """
    drawn = _draw(points[..., 3], LOBES * LOBE_PHOTONS)
    place, source = points.reshape(-1, 4)[drawn, :3], sources.reshape(-1, 3)[drawn]
    source += place
    offset = source - place.mean(1, keepdims=True)
    distance2 = np.maximum(np.einsum("...k,...k", offset, offset), 1e-30)
    direction = np.ascontiguousarray(np.moveaxis(offset / np.sqrt(distance2)[..., None], 2, 0))
    members = np.arange(drawn.size).reshape(drawn.shape)
    for _ in range(LOBES.bit_length() - 1):
        order, *_ = _halve(direction)
        members, direction = members.reshape(-1)[order], direction.reshape(3, -1)[:, order]
    spread2 = direction.var(2).sum(0)  # in squared radians
    size2 = np.maximum(WIDTH * spread2, MIN_SPREAD2) * distance2.reshape(-1)[members].mean(1)
    lobes = np.concatenate([source.reshape(-1, 3)[members].mean(1), size2[:, None]], 1).astype("f4")
    return np.ascontiguousarray(lobes.reshape(-1, LOBES, 4).transpose(0, 2, 1)).reshape(-1).view("u4")


def _draw(powers: np.ndarray, count: int) -> np.ndarray:
    """Indices (n, count) into powers (n, m) of n leaves, each as often as its power says (systematic resampling)."""
    sums = np.cumsum(powers.astype("f8"), 1)
    rows = np.arange(len(powers))[:, None]
    sums = sums / sums[:, -1:] + rows
    return np.searchsorted(sums.reshape(-1), rows + (np.arange(count) + 0.5) / count)
