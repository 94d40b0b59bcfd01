"""Path guiding by photons: lobes that point to where light comes from, which paths sample beside the BSDF.

train_guide() traces photons from the lights (shaders/raytracing/lights/photons.cu) and records them on surfaces. A k-d
tree over the records has LOBES lobes in each leaf: spheres around the points from which its photons arrived. The result
is the guide, an array of words that shaders/raytracing/lights/guide.h describes and samples. pictures/raytrace.py calls
train_guide() if the settings have guiding_photons.

The lobes depend only on the scene, its seed and the number of photons, so they are the same for every device, tile and
view. After H. W. Jensen 1995 and L. Ruppert et al. 2020.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from renderer.gpu.device import Buffer
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import kernel_source
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.lights.photons import emit_photons
from renderer.raytracing.ray_buffers import GROUP_SIZE
from renderer.raytracing.settings import Settings

RECORDS = 4  # surfaces on a photon's path that are recorded; the same in photons.cu
LOBES = 16  # lobes of a leaf, a power of two; the same in guide.h
LOBE_PHOTONS = 8  # photons of a lobe
LEAF_PHOTONS = 128  # most photons of a leaf of the k-d tree
WIDTH = 1.0  # ratio of a lobe's squared width to the variance of its photons' directions
MIN_SPREAD2 = 1e-6  # least variance of a lobe's directions, in squared radians
TREES = 12  # one tree for each class of surfaces that guide.h numbers
HEADER_WORDS = 16  # words of the guide before its trees: one a tree, then the first word of the lobes
NO_TREE = 0xFFFFFFFF  # header word of a tree without photons
DEPTH_BITS = 5  # low bits of a tree's header word: its depth; the rest: the number of its first leaf


def train_guide(
    settings: Settings, geometry: Geometry, rows: np.ndarray, lights: LightSampler, constants: dict[str, object]
) -> Buffer:
    """Traces the photons of the settings and returns the guide's words on the device.

    `rows` are the materials (m,) MATERIAL, `constants` the compile-time constants of kernels that trace rays.
    """
    starts = emit_photons(settings, geometry, rows, lights, settings.guiding_photons)
    device, photons, count = geometry.device, np.zeros((0, 2, 4), "f4"), len(starts)
    if count:
        kernel = device.kernel(kernel_source("photons"), "trace_photons", group_size=GROUP_SIZE, **constants)
        records = device.buffer((count * RECORDS, 2, 4)).fill(0)
        sources = device.buffer(starts.shape).write(starts)
        materials = device.buffer(len(rows), rows.dtype).write(rows)
        kernel(count, count, settings.seed, settings.max_depth, sources, records, *geometry.kernel_args, materials)
        photons = records.read()
        photons = photons[(photons[:, 0, 3] > 0) & np.isfinite(photons).all((1, 2))]
    words = guide_words(photons[:, 0], photons[:, 1])
    return device.buffer(len(words), "u4").write(words)


def guide_words(points: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Returns the guide (k,) uint32, the words of guide.h, for n recorded photons.

    `points` (n, 4) are positions and powers. `sources` (n, 4) are the vectors from the points to the origins of their
    last rays, and the numbers of the photons' trees.
    """
    header = np.full(HEADER_WORDS, NO_TREE, "u4")
    trees, lobes, leaves = [], [], 0

    def build(number: int) -> tuple[np.ndarray, np.ndarray] | None:
        members = np.flatnonzero(sources[:, 3] == number)
        if not len(members):
            return None
        nodes, leaf_points, leaf_sources = _tree(points[members], sources[members, :3])
        return nodes, _lobes(leaf_points, leaf_sources)

    with ThreadPoolExecutor(TREES) as pool:  # NumPy's loops run in parallel
        for number, tree in enumerate(pool.map(build, range(TREES))):
            if tree:
                header[number] = leaves << DEPTH_BITS | (len(tree[0]).bit_length() - 1)
                leaves += len(tree[0])
                trees.append(tree[0])
                lobes.append(tree[1])
    gap = np.zeros(-(HEADER_WORDS + leaves) % LOBES, "u4")  # aligns a leaf's rows to cache lines
    header[TREES] = HEADER_WORDS + leaves + len(gap)
    return np.concatenate([header, *trees, gap, *lobes])


def _tree(points: np.ndarray, sources: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Builds a k-d tree; returns its nodes (n,), n a power of two and node 0 unused, and the photons of its n leaves.

    The leaves' photons are points (n, m, 4) and sources (n, m, 3), as in guide_words(). Every leaf holds m photons, for
    which some photons occur twice, at half of their power.
    """
    depth = max(0, (-(-len(points) // LEAF_PHOTONS) - 1).bit_length())
    twice = np.linspace(0, len(points) - 1, -len(points) % (1 << depth)).astype(np.int64)
    points = points.copy()
    points[twice, 3] *= 0.5
    members = np.concatenate([np.arange(len(points)), twice])[None]
    positions = np.ascontiguousarray(points[members[0], :3].T)[:, None]
    nodes = [np.zeros(1, "u4")]
    for _ in range(depth):
        order, axis, split = _halve(positions)
        # A node is the bits of the split's coordinate, whose two lowest bits hold the axis instead.
        nodes.append(split.view("u4") & np.uint32(0xFFFFFFFC) | axis.astype("u4"))
        members, positions = members.reshape(-1)[order], positions.reshape(3, -1)[:, order]
    return np.concatenate(nodes), points[members], sources[members]


def _halve(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Splits n groups of m points, (3, n, m) float32, each at the median of its longest axis.

    Returns the indices (2 n, m / 2) of the halves' points, counted over all groups, and the axis (n,) and coordinate
    (n,) of each group's split. Equal coordinates keep their order, so every machine splits alike.
    """
    # `keys` order the points of a group by coordinate, then by position: the float as an ordered integer, the index.
    _, groups, size = positions.shape
    axis = (_extreme(np.maximum, positions) - _extreme(np.minimum, positions)).argmax(0)
    along = positions[axis, np.arange(groups)]
    bits = along.view("u4")
    keys = np.where(bits >> 31, ~bits, bits | 0x80000000).astype("u8") << 32 | np.arange(size, dtype="u8")
    middle = np.partition(keys, size // 2)[:, size // 2]
    right = keys >= middle[:, None]
    halves = [np.flatnonzero(side).reshape(groups, size // 2) for side in (~right, right)]
    split = along[np.arange(groups), (middle & 0xFFFFFFFF).astype(np.int64)]
    return np.stack(halves, 1).reshape(2 * groups, size // 2), axis, split


def _extreme(function: np.ufunc, values: np.ndarray) -> np.ndarray:
    """Reduces the last axis by np.maximum or np.minimum; ten times faster than `reduce` for a short axis."""
    while (size := values.shape[-1]) > 1:
        half = (size + 1) // 2
        values = function(values[..., :half], values[..., size - half :])
    return values[..., 0]


def _lobes(points: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Returns the words of the lobes, (n, 4, LOBES) in guide.h, for the photons of n leaves from _tree().

    LOBES * LOBE_PHOTONS photons of a leaf are drawn by power, then halved by direction until there are LOBES groups.
    """
    drawn = _draw(points[..., 3], LOBES * LOBE_PHOTONS)
    position, source = points.reshape(-1, 4)[drawn, :3], sources.reshape(-1, 3)[drawn]
    source += position
    offset = source - position.mean(1, keepdims=True)
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
    """Systematic resampling: indices (n, count) into powers (n, m) of n leaves, in proportion to the power.

    Row k of the cumulative sums is scaled to k..k + 1, so that one search serves all rows.
    """
    sums = np.cumsum(powers.astype("f8"), 1)
    rows = np.arange(len(powers))[:, None]
    sums = sums / sums[:, -1:] + rows
    return np.searchsorted(sums.reshape(-1), rows + (np.arange(count) + 0.5) / count)
