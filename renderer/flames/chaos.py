"""The chaos game on a device: chains, their histogram, exact sums.

Everything is a function of the flame, the seed and the number of chains: the device, launches and parts change no
bit. Parts
are ranges of chains, whose sums are added.
"""

from dataclasses import dataclass

import numpy as np

from renderer.flames.genome import Flame
from renderer.flames.kernel import choice_tables, parameters_of, structure_of, text_of, visibility
from renderer.gpu import Device

BLOCK = 256  # chains that swap points; as in shaders/flame.cu
FUSE = 64  # steps of a chain before it is plotted
MOST_CHAINS = 1 << 18
MOST_SAMPLES = 1 << 24  # between two flushes: 255 * 2^24 < 2^32, even if all of them fall into one bucket
PRIVATE_BYTES = 1 << 30  # of histograms that CPUs keep one a core of


@dataclass(frozen=True)
class Window:
    """Buckets of the whole grid that a histogram covers."""

    left: int
    top: int
    columns: int
    rows: int

    @property
    def cells(self) -> int:
        return self.columns * self.rows


def chains_for(samples: int, moments: int) -> int:
    """How many chains a picture of so many samples has: whole blocks, as many for each moment, about 2048 steps
    each.
    """
    wanted = min(max(samples // 2048, 16 * BLOCK), MOST_CHAINS)
    blocks = 1 << max(wanted // BLOCK - 1, 0).bit_length()
    return BLOCK * moments * max(1, round(min(blocks, MOST_CHAINS // BLOCK) / moments))


def seed_word(seed: int) -> int:
    """A 32-bit word of any whole number."""
    return int(np.random.SeedSequence(abs(seed) * 2 + (seed < 0)).generate_state(1)[0])


def _light(flame: Flame) -> np.ndarray:
    """(256, 4) red, green, blue, alpha of the palette, 0 to 255, times its alphas."""
    alphas = np.array(flame.alphas or (1.0,) * 256)[:, None]
    return np.concatenate([flame.palette_colors, np.full((256, 1), 255.0)], 1) * alphas


class Chaos:
    """The chains of one flame (its moments, for motion blur) and the sums of their light over a window of buckets.

    sums: (cells, 4) uint64 of red, green, blue, alpha, each in 1/255 of a sample.
    """

    def __init__(self, device: Device, sums: str = "exact"):
        self.device = device
        self._vector = sums == "fast" and device.lanes == 1
        self._allocated = None
        self._flush = device.kernel("develop.cu", "flush", group=64, STRICT=1, SUMS=2 if self._vector else 1)

    def restart(
        self, flames: list[Flame], cameras: list[np.ndarray], times, window: Window, chains: int, seed: int, part=(0, 1)
    ):
        """Begins anew. `times` (n,): temporal weights of the moments; part (k, n): only the k-th of n ranges of the
        chains.
        """
        fractional = any(m.opacity not in (0.0, 1.0) for flame in flames for m in flame.maps)
        fractional = fractional or any(0 < visibility(m.opacity) < 1 for flame in flames for m in flame.maps)
        times = np.asarray(times, "f8")
        palettes = np.stack([_light(flame) * weight for flame, weight in zip(flames, times, strict=True)])
        fractional = fractional or bool((palettes != np.floor(palettes)).any()) or bool((times != 1).any())
        self.structure = structure_of(tuple(flames), fractional)
        device = self.device
        self._iterate = device.kernel(
            text_of(self.structure),
            "iterate",
            group=1 if device.lanes > 1 else BLOCK,
            STRICT=1,
            LANES=device.lanes,
            SUMS=2 if self._vector else 1,
        )
        first, last = (chains // BLOCK * k // part[1] * BLOCK for k in (part[0], part[0] + 1))
        self.first_chain, self.chains, self.window = first, last - first, window
        self.seed, self.steps, self.moments, self.maps = seed_word(seed), 0, len(flames), len(flames[0].maps)
        self._allocate()
        blocks = [parameters_of(flame, camera, self.structure) for flame, camera in zip(flames, cameras, strict=True)]
        self._stride = len(blocks[0])
        self._parameters = device.buffer((len(blocks), self._stride)).write(np.stack(blocks))
        tables = np.stack([choice_tables(flame, self.structure) for flame in flames])
        self._table = device.buffer(tables.shape, "u4").write(tables)
        light = np.zeros((len(flames), 256, 4), "u4")  # red, alpha, blue, green, as flame.cu adds them
        unit = 256 if self.structure.fractions else 1
        for channel, place in enumerate((0, 3, 2, 1)):
            light[..., place] = np.floor(palettes[..., channel] * unit + 0.5)
        self._palettes = device.buffer(light.shape, "u4").write(light)
        self.sums.fill(0)
        self.bad_total.fill(0)

    def _allocate(self) -> None:
        device, cells = self.device, self.window.cells
        copies, stride = 1, cells
        if device.lanes > 1:
            stride = cells + 1
            copies = max(1, min(device.units, PRIVATE_BYTES // (16 * stride), self.chains // BLOCK))
        key = (cells, copies, self.chains, self.structure.planes)
        if key != self._allocated:
            self.sums = self._histogram = self._points = None  # free before taking
            self._histogram = device.buffer((copies, stride, 4), "u4").fill(0)
            self.sums = device.buffer((cells, 4), "u8")
            self._points = device.buffer((self.structure.planes, self.chains))
            self._bad, self.bad_total = device.buffer(1, "u4").fill(0), device.buffer(1, "u8")
            self._allocated = key
        self._copies, self._cell_stride = copies, stride

    def advance(self, steps: int) -> None:
        """So many more steps of every chain, plotted; before the first ones those of the fuse."""
        if self.steps == 0:
            self._launch(FUSE)
        most = max(1, MOST_SAMPLES // self.chains)
        while steps > 0:
            now = min(steps, most)
            self._launch(now)
            self._flush(
                self.window.cells, self._histogram, self._copies, self._cell_stride, self.sums, self.window.cells,
                self._bad,
                self.bad_total,
            )  # fmt: skip
            steps -= now

    def _launch(self, steps: int) -> None:
        window = self.window
        threads = self._copies if self.device.lanes > 1 else self.chains
        self._iterate(
            threads, self._points, self._parameters, self._table, self._palettes, self._histogram, self._bad, self.maps,
            self._stride, self.moments, self.first_chain, self.chains, self.steps, steps, FUSE, np.uint32(self.seed),
            window.left, window.top, window.columns, window.rows,
        )  # fmt: skip
        self.steps += steps

    @property
    def samples(self) -> int:
        """Steps plotted so far, bad points among them."""
        return max(0, self.steps - FUSE) * self.chains

    def bad(self) -> int:
        """Points that were not finite and were replaced; waits for the device."""
        return int(self.bad_total.read()[0])
