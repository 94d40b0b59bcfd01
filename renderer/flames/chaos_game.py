"""The chaos game on a device: chains, their histogram, exact sums.

Everything is a function of the flame, the seed and the number of chains: the device, launches and parts change no bit.
Parts are ranges of chains, whose sums are added.
"""

from dataclasses import dataclass

import numpy as np

from renderer.flames.genome import Flame
from renderer.flames.kernel_cache import BLOCK, FLOAT_SUMS, KernelCache
from renderer.flames.kernel_source import adjusted_opacity, pack_parameters, specialization_of, xform_distributions
from renderer.flames.sample_schedule import fuse_steps
from renderer.gpu import Device

MOST_SAMPLES = 1 << 24  # between two flushes: 255 * 2^24 < 2^32, even if all of them fall into one bucket
ALWAYS, UNLESS_SPOILED, IF_SPOILED = 0, 1, 2  # as in shaders/flames/postprocess.cu
EXACT = 2.0**24  # whole numbers below it are exact in floats
INITIAL_INTERVAL, MIN_INTERVAL, MAX_INTERVAL = 1 << 22, 1 << 20, 1 << 27  # samples between flushes of sums in floats
TRUSTED_SAMPLES = 1 << 23  # that tell the brightest bucket's share well
MIN_FLOAT_SAMPLES = 1 << 26  # samples of one advance: fewer are over before a second kernel is compiled
MAX_INTERVAL_COUNT = 4096  # of one advance
PRIVATE_BYTES = 1 << 30  # of histograms that CPUs keep one a core of


@dataclass(frozen=True)
class BucketRect:
    """Buckets of the whole grid that a histogram covers."""

    left: int
    top: int
    columns: int
    rows: int

    @property
    def buckets(self) -> int:
        return self.columns * self.rows


def seed_to_u32(seed: int) -> int:
    """A 32-bit word of any whole number."""
    return int(np.random.SeedSequence(abs(seed) * 2 + (seed < 0)).generate_state(1)[0])


def premultiplied_palette(flame: Flame) -> np.ndarray:
    """(256, 4) red, green, blue, alpha of the palette, 0 to 255, times its alphas."""
    alphas = np.array(flame.alphas or (1.0,) * 256)[:, None]
    return np.concatenate([flame.palette_colors, np.full((256, 1), 255.0)], 1) * alphas


class ChaosGame:
    """The chains of one flame (its moments, for motion blur) and the sums of their light over a window of buckets.

    sums: (cells, 4) uint64 of red, green, blue, alpha, each in 1/255 of a sample.

    Where the device adds four floats at once, samples are added as whole numbers in floats, which is exact below 2^24.
    An interval that may have left that range is found afterwards, on the device, thrown away and played again in whole
    numbers from the points before it: twice as fast for nearly all flames, and the same sums.
    """

    def __init__(self, device: Device, compiled: KernelCache | None = None):
        self.device, self.kernels = device, compiled or KernelCache(device)
        self._allocated, self._counting = None, None
        self._flushes = [
            device.kernel("flames/postprocess.cu", "flush", group_size=64, STRICT=1, SUMS=k) for k in (1, 2)
        ]
        self._inspect = device.kernel("flames/postprocess.cu", "inspect", group_size=256, STRICT=1, SUMS=2)

    def restart(
        self, flames: list[Flame], cameras: list[np.ndarray], times, window: BucketRect, chains: int, seed: int,
        part=(0, 1), shares=None,
    ):  # fmt: skip
        """Begins anew. `times` (n,): weights of the moments' light; part (k, n): only the k-th of n ranges of the
        chains; `shares` (n,), where hits are counted besides: how many samples each moment stands for, at most 1.
        """
        light = np.stack([premultiplied_palette(flame) * weight for flame, weight in zip(flames, times, strict=True)])
        fractional = any(0 < adjusted_opacity(m.opacity) < 1 for flame in flames for m in flame.xforms)
        hits = np.zeros_like(light)
        if shares is not None:
            hits[..., 3] = 255 * np.asarray(shares)[:, None]
        fractional = fractional or any(bool((values != np.floor(values)).any()) for values in (light, hits))
        place = specialization_of(tuple(flames), fractional), flames, cameras, window, chains, seed, part
        self._begin(light, *place)
        if shares is None:
            self._counting = None
        else:
            self._counting = self._counting or ChaosGame(self.device, self.kernels)
            self._counting._begin(hits, *place)

    def _begin(
        self, palettes, specialization, flames, cameras, window: BucketRect, chains: int, seed: int, part
    ) -> None:
        """The game of the same chains whatever the palettes (moments, 256, 4)."""
        device, self.specialization, self.fuse = self.device, specialization, fuse_steps(flames)
        self._layout = (
            specialization.feature_flags,
            specialization.record_floats,
            np.uint32(specialization.random_per_step),
            np.uint32(specialization.random_per_xform),
        )
        first, last = (chains // BLOCK * k // part[1] * BLOCK for k in (part[0], part[0] + 1))
        self.first_chain, self.chains, self.window = first, last - first, window
        self.seed, self.steps, self.moments, self.xforms = seed_to_u32(seed), 0, len(flames), len(flames[0].xforms)
        self._allocate()
        blocks = [pack_parameters(flame, camera, specialization) for flame, camera in zip(flames, cameras, strict=True)]
        self._stride = len(blocks[0])
        self._parameters = device.buffer((len(blocks), self._stride)).write(np.stack(blocks))
        tables = np.stack([xform_distributions(flame, specialization) for flame in flames])
        self._table = device.buffer(tables.shape, "u4").write(tables)
        light = np.zeros((len(flames), 256, 4), "u4")  # red, alpha, blue, green, as flames/flame.cu adds them
        unit = 256 if specialization.stochastic_rounding else 1
        for channel, place in enumerate((0, 3, 2, 1)):
            light[..., place] = np.floor(palettes[..., channel] * unit + 0.5)
        self._palettes = device.buffer(light.shape, "u4").write(light)
        self.sums.fill(0)
        self.bad_total.fill(0)
        self._taken = None  # samples that others played

    @property
    def hit_sums(self):
        """(cells, 4) uint64 whose alpha counts hits, in 1/255 of a sample, whatever alpha colors and times have."""
        return (self._counting or self).sums

    def left(self) -> dict:
        """What the steps so far left: sums, bad points, and hits where they are counted; parts' are to be added."""
        part = {"sums": self.sums.read(), "bad": self.bad()}
        return part | {"hits": self.hit_sums.read()} if self._counting else part

    def take(self, merged: dict, samples: int) -> None:
        """Stands as if all parts had been played here: what they left, merged, of so many samples."""
        self.sums.write(merged["sums"])
        self.bad_total.write(np.array([merged["bad"]], "u8"))
        if self._counting:
            self.hit_sums.write(merged["hits"])
        self._taken = samples

    def _allocate(self) -> None:
        device, cells = self.device, self.window.buckets
        copies, stride = 1, cells
        if device.simd_width > 1:
            stride = cells + 1
            copies = max(1, min(device.properties.compute_units, PRIVATE_BYTES // (16 * stride), self.chains // BLOCK))
        key = (cells, copies, self.chains, self.specialization.state_floats)
        if key != self._allocated:
            self.sums = self._histogram = self._points = self._inexact = None  # free before taking
            self._histogram = device.buffer((copies, stride, 4), "u4").fill(0)
            self.sums = device.buffer((cells, 4), "u8")
            self._points = [device.buffer((self.specialization.state_floats, self.chains)) for _ in "ab"]
            self._bad, self.bad_total = device.buffer(1, "u4").fill(0), device.buffer(1, "u8")
            self._inexact, self._peak = device.buffer(MAX_INTERVAL_COUNT, "u4"), device.buffer(1, "u4")
            self._allocated = key
        self._copies, self._cell_stride = copies, stride
        self._interval, self._measured, self._trusted = INITIAL_INTERVAL, 0, False

    def advance(self, steps: int) -> None:
        """So many more steps of every chain, plotted; before the first ones those of the fuse."""
        if self._counting:
            self._counting.advance(steps)
        iterate = self.kernels.best_kernel(self.specialization)
        if self.steps == 0:
            self._launch(iterate, self.fuse)
            self._swap(self.fuse)
        if self.device.has_float4_atomics and steps * self.chains >= MIN_FLOAT_SAMPLES:
            in_floats = self.kernels.specialized_kernel(self.specialization, FLOAT_SUMS)
            steps -= self._advance_in_floats(steps, in_floats, iterate) if in_floats else 0
        most = max(1, MOST_SAMPLES // self.chains)
        while steps > 0:
            now = min(steps, most)
            self._launch(iterate, now)
            self._flush(0, ALWAYS)
            self._swap(now)
            steps -= now

    def _advance_in_floats(self, steps: int, in_floats, iterate) -> int:
        """The steps that were made in intervals of floats; none where light gathers in so few buckets that they would
        spoil.
        """
        if self._measured:
            self._choose_interval()
        most = self._interval // self.chains
        if most < 1 or self._interval < MIN_INTERVAL:
            return 0
        self._inexact.fill(0)
        self._peak.fill(0)
        done = number = 0
        while done < steps and number < MAX_INTERVAL_COUNT:
            now = min(steps - done, most)
            self._launch(in_floats, now)
            self._inspect(
                min(self.window.buckets, 1 << 18),
                self._histogram,
                self.window.buckets,
                self._inexact,
                number,
                self._peak,
            )
            self._flush(1, UNLESS_SPOILED, number)
            self._launch(iterate, now, number, True)
            self._flush(0, IF_SPOILED, number)
            self._swap(now)
            self._measured = max(self._measured, now * self.chains)
            done, number = done + now, number + 1
        return done

    def _choose_interval(self) -> None:
        """As many samples as leave the brightest bucket, by the last intervals, below what floats hold exactly."""
        if self._trusted:
            return
        peak = float(self._peak.read().view("f4")[0])
        self._trusted = self._measured >= TRUSTED_SAMPLES and peak < EXACT
        wanted = 0.9 * EXACT / max(peak, 1.0) * self._measured
        self._interval = int(min(wanted if peak < EXACT else self._interval / 4, MAX_INTERVAL))
        self._measured = 0

    def _flush(self, kind: int, when: int, interval: int = 0) -> None:
        cells = self.window.buckets
        self._flushes[kind](
            cells, self._histogram, self._copies, self._cell_stride, self.sums, cells, self._bad, self.bad_total,
            self._inexact, interval, when,
        )  # fmt: skip

    def _launch(self, kernel, steps: int, interval: int = 0, only_if_inexact: bool = False) -> None:
        window = self.window
        threads = self._copies if self.device.simd_width > 1 else self.chains
        kernel(
            threads, *self._points, self._parameters, self._table, self._palettes, self._histogram, self._bad,
            self._inexact, interval, int(only_if_inexact), self.xforms, self._stride, self.moments, self.first_chain,
            self.chains, self.steps, steps, self.fuse, np.uint32(self.seed), window.left, window.top, window.columns,
            window.rows, *self._layout,
        )  # fmt: skip

    def _swap(self, steps: int) -> None:
        """What came after the steps is what stands before the next."""
        self._points.reverse()
        self.steps += steps

    @property
    def samples(self) -> int:
        """Steps plotted so far, bad points among them."""
        if self._taken is not None:
            return self._taken
        return max(0, self.steps - self.fuse) * self.chains

    def bad(self) -> int:
        """Points that were not finite and were replaced; waits for the device."""
        return int(self.bad_total.read()[0])
