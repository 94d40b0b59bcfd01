"""Chains of a flame's picture: how many run, how many first iterations each discards (the fuse), steps of each batch.

A chain is one point that the chaos game iterates; a batch is the work of one draw call. temporal.py makes the schedule
for renderer/pictures/flame.py. It depends only on the numbers of samples and temporal samples and on the fuse.
"""

import math

from renderer.flames.genome import Flame, Xform
from renderer.flames.kernel_cache import BLOCK

FUSE = 64  # iterations of contracting xforms that a chain discards before it is plotted
MAX_FUSE = 4096  # limit of discarded iterations, including iterations of isometries
MAX_CHAINS = 1 << 20
FIRST_BATCH = 1 << 20  # samples
TARGET_MAX_BATCH = 1 << 24  # samples; exceeded if there would be more than TARGET_BATCHES batches
TARGET_BATCHES = 64
MAX_BATCH = 1 << 27


def chain_count(samples: int, temporal_samples: int, fuse: int = FUSE) -> int:
    """The number of chains for a number of samples: whole blocks of BLOCK, equally many for each temporal sample.

    Each chain makes about 2048 steps, or 16 times the fuse if that is more.
    """
    min_blocks = max(1, 16 * FUSE // fuse)  # a small picture of flames with a long fuse runs fewer chains
    chains = min(max(samples // max(2048, 16 * fuse), min_blocks * BLOCK), MAX_CHAINS)
    blocks = 1 << max(chains // BLOCK - 1, 0).bit_length()  # the next power of two
    return BLOCK * temporal_samples * max(1, round(min(blocks, MAX_CHAINS // BLOCK) / temporal_samples))


def fuse_steps(flames: list[Flame]) -> int:
    """Iterations of a chain that are discarded before plotting.

    On average FUSE of them apply non-isometric xforms; symmetry xforms are isometries and do not contract, so they do
    not count.
    """
    fraction = min(map(_non_isometric_weight, flames))
    return math.ceil(FUSE / max(fraction, FUSE / MAX_FUSE))


def _non_isometric_weight(flame: Flame) -> float:
    """The fraction of the xforms' total weight that is not an isometry's."""
    contracting = sum(xform.weight for xform in flame.xforms if not is_isometry(xform))
    return contracting / max(sum(xform.weight for xform in flame.xforms), 1e-300)


def is_isometry(xform: Xform) -> bool:
    """True if the xform is 2D and only rotates, mirrors and translates."""
    names = {name for name, weight in xform.variations.items() if weight != 0}
    if (len(xform.affine), len(xform.post)) != (6, 6) or names != {"linear"}:
        return False
    (a, b, _, c, d, _), (p, q, _, r, s, _), w = xform.affine, xform.post, xform.variations["linear"]
    columns = [(w * (p * x + q * y), w * (r * x + s * y)) for x, y in ((a, c), (b, d))]
    lengths = [x * x + y * y for x, y in columns]
    dot = columns[0][0] * columns[1][0] + columns[0][1] * columns[1][1]
    return max(abs(lengths[0] - 1), abs(lengths[1] - 1), abs(dot)) < 1e-3


class SampleSchedule:
    """The batches of one pass of a picture: batches of growing size for a quick preview, then batches of equal size.

    `quality`: samples per pixel. `size`: width, height in pixels.
    """

    def __init__(self, quality: float, size: tuple[int, int], temporal_samples: int, fuse: int = FUSE):
        self.samples = max(1, math.ceil(quality * size[0] * size[1]))
        self.chains = chain_count(self.samples, temporal_samples, fuse)
        self.steps_per_chain = -(-self.samples // self.chains)
        largest = min(max(TARGET_MAX_BATCH, self.samples // TARGET_BATCHES), MAX_BATCH)
        first, self._largest = max(1, FIRST_BATCH // self.chains), max(1, largest // self.chains)
        self._ends = [0]  # steps after each of the growing batches
        while self._ends[-1] < self.steps_per_chain:
            step = max(first, int(self._ends[-1] * 0.41))  # two batches double the samples
            if step >= self._largest:
                break
            self._ends.append(min(self.steps_per_chain, self._ends[-1] + step))
        self.batches = len(self._ends) - 1 + -(-(self.steps_per_chain - self._ends[-1]) // self._largest)

    def replacement_steps(self, samples: int, bad_values: int) -> int:
        """Steps that every chain runs after the schedule to replace bad values (points that were not finite).

        Returns 0 if less than a thousandth of the samples is missing.
        """
        missing = self.samples - (samples - bad_values)
        if missing < 1e-3 * self.samples:
            return 0
        # As many of the new samples as of the old ones are good, and at least a twentieth.
        return math.ceil(missing / max((samples - bad_values) / samples, 0.05) / self.chains)

    def batch_steps(self, batch: int) -> int:
        """Steps of batch number `batch`; batches past the last one are as large as the largest."""
        return self.steps_after(batch + 1) - self.steps_after(batch)

    def steps_after(self, batches: int) -> int:
        """Total steps of a chain after `batches` batches, which may exceed the schedule's number of batches."""
        if batches < len(self._ends):
            return self._ends[max(batches, 0)]
        if batches > self.batches:
            return self.steps_per_chain + (batches - self.batches) * self._largest
        return min(self._ends[-1] + (batches + 1 - len(self._ends)) * self._largest, self.steps_per_chain)
