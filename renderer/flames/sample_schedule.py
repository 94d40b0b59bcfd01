"""How many chains a flame's picture has, how long they run before they are plotted, and how their steps are dealt."""

import math

from renderer.flames.genome import Flame, Xform
from renderer.flames.kernel_cache import BLOCK

FUSE = 64  # steps of a chain before it is plotted, through xforms that may draw points together
MAX_FUSE = 4096  # steps, those through turns and mirrors among them
MOST_CHAINS = 1 << 20
FIRST_DRAW = 1 << 20  # samples
LARGEST_DRAW = 1 << 24
MOST_DRAWS = 64  # beyond the first few, unless a draw would be larger than the longest
LONGEST_DRAW = 1 << 27


def chain_count(samples: int, moments: int, fuse: int = FUSE) -> int:
    """How many chains a picture of so many samples has: whole blocks, as many for each moment, about 2048 steps each,
    or 16 times the fuse where that is more.
    """
    least = max(1, 16 * FUSE // fuse)
    wanted = min(max(samples // max(2048, 16 * fuse), least * BLOCK), MOST_CHAINS)
    blocks = 1 << max(wanted // BLOCK - 1, 0).bit_length()
    return BLOCK * moments * max(1, round(min(blocks, MOST_CHAINS // BLOCK) / moments))


def fuse_steps(flames: list[Flame]) -> int:
    """Steps of a chain before it is plotted: FUSE of them, in the mean, through other xforms than those of symmetry,
    which draw no two points nearer to each other.
    """
    share = min(map(_share_of_others, flames))
    return math.ceil(FUSE / max(share, FUSE / MAX_FUSE))


def _share_of_others(flame: Flame) -> float:
    others = sum(m.weight for m in flame.xforms if not is_isometry(m))
    return others / max(sum(m.weight for m in flame.xforms), 1e-300)


def is_isometry(m: Xform) -> bool:
    """Whether the map of the plane only turns, mirrors and moves."""
    if len(m.affine) != 6 or {name for name, weight in m.variations.items() if weight != 0} != {"linear"}:
        return False
    (a, b, _, c, d, _), (p, q, _, r, s, _), w = m.affine, m.post, m.variations["linear"]
    columns = [(w * (p * x + q * y), w * (r * x + s * y)) for x, y in ((a, c), (b, d))]
    lengths = [x * x + y * y for x, y in columns]
    angle = columns[0][0] * columns[1][0] + columns[0][1] * columns[1][1]
    return max(abs(lengths[0] - 1), abs(lengths[1] - 1), abs(angle)) < 1e-3


class SampleSchedule:
    """How the steps of a picture are dealt to draws: a function of its number of samples and moments alone."""

    def __init__(self, quality: float, size: tuple[int, int], moments: int, fuse: int = FUSE):
        self.samples = max(1, math.ceil(quality * size[0] * size[1]))
        self.chains = chain_count(self.samples, moments, fuse)
        self.steps_per_chain = -(-self.samples // self.chains)
        largest = min(max(LARGEST_DRAW, self.samples // MOST_DRAWS), LONGEST_DRAW)
        first, self._largest = max(1, FIRST_DRAW // self.chains), max(1, largest // self.chains)
        self._ends = [0]  # of the draws that grow
        while self._ends[-1] < self.steps_per_chain:
            step = max(first, int(self._ends[-1] * 0.41))
            if step >= self._largest:
                break
            self._ends.append(min(self.steps_per_chain, self._ends[-1] + step))
        self.batches = len(self._ends) - 1 + -(-(self.steps_per_chain - self._ends[-1]) // self._largest)

    def replacement_steps(self, samples: int, bad: int) -> int:
        """Steps of every chain that make up for bad points among so many samples; 0 where hardly any are missing."""
        missing = self.samples - (samples - bad)
        if missing < 1e-3 * self.samples:
            return 0
        return math.ceil(missing / max((samples - bad) / samples, 0.05) / self.chains)

    def batch_steps(self, draw: int) -> int:
        """Steps of draw number `draw`; draws after the last go on like the largest."""
        if draw + 1 < len(self._ends):
            return self._ends[draw + 1] - self._ends[draw]
        done = self._ends[-1] + (draw + 1 - len(self._ends)) * self._largest
        return min(self._largest, self.steps_per_chain - done) if done < self.steps_per_chain else self._largest
