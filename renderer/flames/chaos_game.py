"""The chaos game on a device: iterates chains of points and sums their colors in a histogram of buckets, exactly.

renderer/pictures/flame.py runs a ChaosGame; postprocess.py turns the sums into a picture. The kernels are iterate
(shaders/flames/flame.cu) and flush (flush.cu), which adds the 32-bit histogram to the 64-bit sums and clears it.
The sums depend only on the flame, the seed and the number of chains, to the bit. A chunk is a range of the chains that
one device or process runs; the sums of all chunks are added.

Words as in flam3: an xform is one of a flame's maps, chosen at random in each step of a chain. The first steps of a
chain, its fuse steps, are not plotted, because its point may still be far from the attractor. A bucket is a cell of the
histogram; oversampled pictures have several for each pixel. A temporal sample is the flame at one time of the shutter
interval, with parameters, camera and weight. A sample is one plotted point.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from renderer.flames.genome import Flame
from renderer.flames.kernel_arguments import adjusted_opacity, pack_parameters, xform_distributions
from renderer.flames.kernel_cache import BLOCK, FLOAT_SUMS, INTEGER_SUMS, KernelCache
from renderer.flames.kernel_source import Specialization, specialize
from renderer.flames.sample_schedule import fuse_steps
from renderer.gpu import Device
from renderer.gpu.device import Buffer, Kernel
from renderer.records import dataclass, replace

FLUSH = "flames/flush.cu"
BAND_BUCKETS = 1 << 20  # buckets that sum_of_alpha() takes at a time
MAX_FLUSH_SAMPLES = 1 << 24  # limit between two flushes: 255 * 2^24 < 2^32, even if all samples fall into one bucket
FLUSH_ALWAYS, FLUSH_IF_EXACT, FLUSH_IF_INEXACT = 0, 1, 2  # as in shaders/flames/flush.cu
FLOAT_INTEGER_LIMIT = 2.0**24  # all integers below it are exact in float32
# Samples between two flushes of float sums:
# INITIAL_INTERVAL  at first
# MIN_INTERVAL      fewer are not worth the two launches of an interval
# MAX_INTERVAL      at most
INITIAL_INTERVAL, MIN_INTERVAL, MAX_INTERVAL = 1 << 22, 1 << 20, 1 << 27
MIN_PEAK_SAMPLES = 1 << 23  # samples after which the largest bucket's fraction of all samples is known well enough
MIN_FLOAT_SAMPLES = 1 << 26  # with fewer, one advance() ends sooner than the float kernel would compile
MAX_INTERVAL_COUNT = 4096  # flush intervals of one advance()
MAX_PRIVATE_BYTES = 1 << 30  # limit of the private histograms, one per CPU core
PartialResult = dict[str, np.ndarray | int]  # of partial_result(): sums, bad, and nearest and hits if there are any


@dataclass(frozen=True)
class BucketRect:
    """The rectangle of a picture's grid of buckets that a histogram covers."""

    left: int
    top: int
    columns: int
    rows: int

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return self.columns * self.rows


@dataclass(frozen=True)
class SampledSums:
    """Sums of a part of the samples, which Postprocess accepts in place of a ChaosGame after on_device().

    `sums`, `hit_sums`: (buckets, 4) uint64 as in ChaosGame, NumPy arrays at first and buffers after on_device().
    `samples`: plotted samples, `bad_values` of them replaced because they were not finite.
    """

    rect: BucketRect
    samples: int
    bad_values: int
    sums: Any
    hit_sums: Any
    bad_value_total: Any = None  # after on_device(): `bad_values` in a buffer

    def __sub__(self, first: "SampledSums") -> "SampledSums":
        """The sums without `first`, the sums of the samples plotted first."""
        bad, samples = self.bad_values - first.bad_values, self.samples - first.samples
        return SampledSums(self.rect, samples, bad, self.sums - first.sums, self.hit_sums - first.hit_sums)

    def on_device(self, device: Device) -> "SampledSums":
        """These sums in buffers of a device."""
        sums, hits = (device.buffer(array.shape, "u8").write(array) for array in (self.sums, self.hit_sums))
        bad = device.buffer(1, "u8").write(np.array([self.bad_values], "u8"))
        return SampledSums(self.rect, self.samples, self.bad_values, sums, hits, bad)


def seed_to_u32(seed: int) -> int:
    """A 32-bit hash of any integer."""
    return int(np.random.SeedSequence(abs(seed) * 2 + (seed < 0)).generate_state(1)[0])


def plotted_colors(flame: Flame) -> np.ndarray:
    """(256, 3) float64: entry k is the color that is plotted for palette coordinates from k / 256 to (k + 1) / 256.

    JWildfire plots entry 254 x, rounded, for a coordinate x.
    """
    colors, entries = flame.palette_colors, (254 * (np.arange(256) + 0.5) / 256 + 0.5).astype(int)
    return np.asarray(colors[entries] if flame.exposure == "jwildfire" else colors)


def premultiplied_palette(flame: Flame) -> np.ndarray:
    """(256, 4) float64: red, green, blue, alpha of the plotted palette, 0 to 255, each times the entry's alpha."""
    alphas = np.array(flame.alphas or (1.0,) * 256)[:, None]
    return np.asarray(np.concatenate([plotted_colors(flame), np.full((256, 1), 255.0)], 1) * alphas)


class ChaosGame:
    """The chains of one flame (its temporal samples, for motion blur) and the sums of their colors in buckets.

    sums: (buckets, 4) uint64 of red, green, blue, alpha, each in 1/255 of a sample.

    On devices with a four-float atomic add, samples are accumulated as integers stored in float32, which is exact below
    2^24. After each flush interval a kernel finds the largest sum. If it reached 2^24, the interval is discarded and
    recomputed with integer atomics from the points before it (_advance_in_floats). The sums are the same; nearly all
    flames run twice as fast.
    """

    # restart() sets these.
    spec: Specialization
    sums: Buffer
    bad_value_total: Buffer
    nearest: Buffer  # for solid flames: by bucket, the keys of shaders/flames/point_attributes.h
    camera: np.ndarray  # camera of the first temporal sample
    _parameters: Buffer
    _table: Buffer
    _palettes: Buffer
    _histogram: Buffer
    _bad_values: Buffer
    _inexact: Buffer
    _max_sum: Buffer

    def __init__(self, device: Device, kernels: KernelCache | None = None):
        self.device, self.kernels = device, kernels or KernelCache(device)
        self._hit_counter: ChaosGame | None = None
        kinds = (INTEGER_SUMS, FLOAT_SUMS) if device.has_float4_atomics else (INTEGER_SUMS,)
        self._flushes = {sums: device.kernel(FLUSH, "flush", 64, STRICT=1, SUMS=sums) for sums in kinds}
        if device.has_float4_atomics:
            self._check_exactness = device.kernel(FLUSH, "check_exactness", 256, STRICT=1, SUMS=FLOAT_SUMS)
        self.rect = BucketRect(0, 0, 0, 0)
        self.seed = self.fuse = self.steps = self.first_chain = self.chains = 0
        self._allocated: tuple[int | bool, ...] = ()
        self._points: list[Buffer] = []  # states of the chains: before a launch and after it
        self._parameter_stride = self._temporal_samples = 0
        # _interval_samples: samples of a flush interval.
        # _measured_samples: samples of the longest interval since the last choice, which `_max_sum` measures.
        # _is_peak_known: the largest bucket's fraction of all samples is known (MIN_PEAK_SAMPLES).
        self._interval_samples, self._measured_samples, self._is_peak_known = INITIAL_INTERVAL, 0, False
        self._alpha: int | None = None  # sum_of_alpha() of sums that are freed
        self._merged_samples: int | None = None  # samples that load_result() loaded; None before

    def restart(
        self,
        flames: Sequence[Flame],
        cameras: Sequence[np.ndarray],
        temporal_weights: Sequence[float] | np.ndarray,
        rect: BucketRect,
        chains: int,
        seed: int,
        chunk: tuple[int, int] = (0, 1),
        sample_weights: np.ndarray | None = None,
    ) -> None:
        """Clear the sums and start new chains.

        `temporal_weights` (n,): factor on the color of each temporal sample. `chunk` (k, n): run only the k-th of n
        ranges of chains. `sample_weights` (n,) or None: relative sample count of each temporal sample, at most 1; if
        given, hits are counted in a second histogram, since the sums weight colors by `temporal_weights`: the number of
        hits of a bucket does not follow from them.
        """
        weights = zip(flames, temporal_weights, strict=True)
        colors = np.stack([premultiplied_palette(flame) * weight for flame, weight in weights])
        hits = np.zeros_like(colors)
        if sample_weights is not None:
            hits[..., 3] = 255 * np.asarray(sample_weights)[:, None]
        # fractions of colors and opacities need stochastic rounding
        fractions = any(0 < adjusted_opacity(x.opacity) < 1 for flame in flames for x in flame.xforms)
        fractions = fractions or any(bool((values != np.floor(values)).any()) for values in (colors, hits))
        run = (specialize(flames, fractions), flames, cameras, rect, chains, seed, chunk)
        self._start(colors, *run)
        if sample_weights is None:
            self._hit_counter = None
        else:
            self._hit_counter = self._hit_counter or ChaosGame(self.device, self.kernels)
            self._hit_counter._start(hits, *run)

    def _start(
        self,
        palettes: np.ndarray,
        spec: Specialization,
        flames: Sequence[Flame],
        cameras: Sequence[np.ndarray],
        rect: BucketRect,
        chains: int,
        seed: int,
        chunk: tuple[int, int],
    ) -> None:
        """Start chains with palettes (temporal samples, 256, 4)."""
        device = self.device
        self.spec, self.fuse, self.rect = spec, fuse_steps(list(flames)), rect
        chunk_index, chunks = chunk
        self.first_chain, end = (chains // BLOCK * i // chunks * BLOCK for i in (chunk_index, chunk_index + 1))
        self.chains = end - self.first_chain
        self.seed, self.steps = seed_to_u32(seed), 0
        self._allocate()
        packed_parameters, self._parameter_stride = pack_parameters(flames, cameras, spec)
        self._parameters = device.buffer(len(packed_parameters)).write(packed_parameters)
        self._temporal_samples = len(flames)
        tables = np.stack([xform_distributions(flame, spec) for flame in flames])
        self._table = device.buffer(tables.shape, "u4").write(tables)
        # With stochastic rounding, channels are in 1/256. rounded_color() (plot.h) multiplies them by an opacity of 16
        # bits: 255 * 256 * 2^16 plus its random number is below 2^32.
        unit = 256 if spec.stochastic_rounding else 1
        # red, alpha, blue, green as in flame.cu
        packed = np.floor(palettes[..., (0, 3, 2, 1)] * unit + 0.5).astype("u4")
        self._palettes = device.buffer(packed.shape, "u4").write(packed)
        self.sums.fill(0)
        self.nearest.fill(0)
        self.camera = cameras[0]
        self.bad_value_total.fill(0)
        self._merged_samples = self._alpha = None

    @property
    def hit_sums(self) -> Buffer:
        """(buckets, 4) uint64.

        Channel 3 counts hits in 1/255 of a sample, independent of palette alpha and temporal weights.
        """
        return (self._hit_counter or self).sums

    def cropped(self, rect: BucketRect) -> SampledSums:
        """The sums of a rectangle of the grid, which lies in this one, on the device."""
        kernel, ours = self.device.kernel(FLUSH, "crop", 64, STRICT=1, SUMS=INTEGER_SUMS), self.rect

        def crop(sums: Buffer) -> Buffer:
            cropped, corner = self.device.buffer((rect.buckets, 4), "u8"), (rect.left - ours.left, rect.top - ours.top)
            kernel(rect.buckets, sums, cropped, ours.columns, *corner, rect.columns, rect.buckets)
            return cropped

        sums = crop(self.sums)
        hits = crop(self.hit_sums) if self._hit_counter else sums
        return SampledSums(rect, self.samples, self.bad_values(), sums, hits, self.bad_value_total)

    def sum_of_alpha(self) -> int:
        """The sum of all buckets' alpha, read in bands of rows."""
        if self._alpha is not None:
            return self._alpha
        rows, rect = max(1, BAND_BUCKETS // self.rect.columns), self.rect
        bands = (replace(rect, top=rect.top + k, rows=min(rows, rect.rows - k)) for k in range(0, rect.rows, rows))
        return sum(int(self.cropped(band).sums.read()[:, 3].sum()) for band in bands)

    def end(self, frees_sums: bool = False) -> None:
        """Free the histograms: no further steps follow until restart(). `frees_sums`: nor are the sums read again."""
        self._alpha = self.sum_of_alpha() if frees_sums else None
        for game in filter(None, (self, self._hit_counter)):
            game._histogram, game._allocated = self.device.buffer(1, "u4"), (0,)  # of no size: restart() allocates
            game.sums = self.device.buffer((1, 4), "u8") if frees_sums else game.sums

    def partial_result(self) -> PartialResult:
        """The sums, bad values and, if counted, hits of the steps so far; chunks' results are added up."""
        result: PartialResult = {"sums": self.sums.read(), "bad": self.bad_values()}
        if self.spec.solid:
            result["nearest"] = self.nearest.read()
        return result | {"hits": self.hit_sums.read()} if self._hit_counter else result

    def load_result(self, merged: PartialResult, samples: int) -> None:
        """Continue as if all chunks had run here: `merged` is the sum of their partial results, `samples` in all."""
        self.sums.write(merged["sums"])
        self.bad_value_total.write(np.array([merged["bad"]], "u8"))
        if self.spec.solid:
            self.nearest.write(merged["nearest"])
        if self._hit_counter:
            self.hit_sums.write(merged["hits"])
        self._merged_samples = samples

    def _allocate(self) -> None:
        """Allocate the buffers, or keep them if their sizes are unchanged. CPUs have one private histogram per core."""
        device, buckets = self.device, self.rect.buckets
        copies, stride = 1, buckets
        if device.simd_width > 1:  # a CPU: one more bucket for samples that are not plotted (flame.cu)
            stride = buckets + 1
            max_copies = MAX_PRIVATE_BYTES // (16 * stride)  # 16 bytes a bucket
            copies = max(1, min(device.properties.compute_units, max_copies, self.chains // BLOCK))
        key = (buckets, copies, self.chains, self.spec.state_floats, self.spec.solid)
        if key != self._allocated:
            if self._allocated:
                del self.sums, self._histogram, self._inexact  # free before allocating
                self._allocated, self._points = (), []
            self._histogram = device.buffer((copies, stride, 4), "u4").fill(0)
            self.sums = device.buffer((buckets, 4), "u8")
            self.nearest = device.buffer(buckets if self.spec.solid else 1, "u8")
            self._points = [device.buffer((self.spec.state_floats, self.chains)) for _ in range(2)]
            self._bad_values, self.bad_value_total = device.buffer(1, "u4").fill(0), device.buffer(1, "u8")
            self._inexact, self._max_sum = device.buffer(MAX_INTERVAL_COUNT, "u4"), device.buffer(1, "u4")
            self._allocated = key
        self._interval_samples, self._measured_samples, self._is_peak_known = INITIAL_INTERVAL, 0, False

    def advance(self, steps: int) -> None:
        """Run and plot `steps` more steps of every chain. The first call runs the unplotted fuse steps before them."""
        if self._hit_counter:
            self._hit_counter.advance(steps)
        iterate = self.kernels.best_kernel(self.spec)
        if self.steps == 0:
            self._launch(iterate, self.fuse)
            self._end_steps(self.fuse)
        if self.device.has_float4_atomics and steps * self.chains >= MIN_FLOAT_SAMPLES:
            float_kernel = self.kernels.specialized_kernel(self.spec, FLOAT_SUMS)
            steps -= self._advance_in_floats(steps, float_kernel, iterate) if float_kernel else 0
        limit = max(1, MAX_FLUSH_SAMPLES // self.chains)
        while steps > 0:
            launched = min(steps, limit)
            self._launch(iterate, launched)
            self._flush(INTEGER_SUMS, FLUSH_ALWAYS)
            self._end_steps(launched)
            steps -= launched

    def _advance_in_floats(self, steps: int, float_kernel: Kernel, iterate: Kernel) -> int:
        """Run up to `steps` steps with float sums and return how many were run.

        Returns 0 if so few buckets are hit that an interval with exact float sums would be too short.

        The host queues both versions of every interval and never waits for a result. check_exactness writes
        inexact[interval]; if it is set, the flush after the float kernel only clears the histogram, and the integer
        kernel and its flush, which else do nothing, run the same steps again. Both kernels read the chains' states from
        the same buffer and write the other one: only _end_steps() swaps the two, after the second kernel.
        """
        if self._measured_samples:
            self._choose_interval()
        limit = self._interval_samples // self.chains
        if limit < 1 or self._interval_samples < MIN_INTERVAL:
            return 0
        self._inexact.fill(0)
        self._max_sum.fill(0)
        done, interval, buckets = 0, 0, self.rect.buckets
        while done < steps and interval < MAX_INTERVAL_COUNT:
            launched = min(steps - done, limit)
            self._launch(float_kernel, launched)
            threads = min(buckets, 1 << 18)  # each takes several buckets of larger histograms
            self._check_exactness(threads, self._histogram, buckets, self._inexact, interval, self._max_sum)
            self._flush(FLOAT_SUMS, FLUSH_IF_EXACT, interval)
            self._launch(iterate, launched, interval, only_if_inexact=True)
            self._flush(INTEGER_SUMS, FLUSH_IF_INEXACT, interval)
            self._end_steps(launched)
            self._measured_samples = max(self._measured_samples, launched * self.chains)
            done, interval = done + launched, interval + 1
        return done

    def _choose_interval(self) -> None:
        """Choose the largest interval after which the largest bucket should still be exact in float32.

        The largest sum grows in proportion to the samples, and should reach 0.9 of the limit. A sum that was inexact
        says nothing: try a fourth of the samples.
        """
        if self._is_peak_known:
            return
        peak = float(self._max_sum.read().view("f4")[0])  # its bits, as atomic_max takes integers
        self._is_peak_known = self._measured_samples >= MIN_PEAK_SAMPLES and peak < FLOAT_INTEGER_LIMIT
        samples = 0.9 * FLOAT_INTEGER_LIMIT / max(peak, 1.0) * self._measured_samples
        samples = samples if peak < FLOAT_INTEGER_LIMIT else self._interval_samples / 4
        self._interval_samples, self._measured_samples = int(min(samples, MAX_INTERVAL)), 0

    def _flush(self, sums: int, when: int, interval: int = 0) -> None:
        """Add the histogram to the sums and clear it.

        `sums`: INTEGER_SUMS or FLOAT_SUMS, the type of the histogram's numbers. `when`: FLUSH_ALWAYS, or depending on
        whether the float sums of flush interval number `interval` of this advance() were exact.
        """
        buckets = self.rect.buckets
        self._flushes[sums](
            buckets, self._histogram, *self._histogram.shape[:2], self.sums, buckets, self._bad_values,
            self.bad_value_total, self._inexact, interval, when,
        )  # fmt: skip

    def _launch(self, kernel: Kernel, steps: int, interval: int = 0, only_if_inexact: bool = False) -> None:
        """Run `steps` steps of all chains.

        With `only_if_inexact` the kernel does nothing if the float sums of flush interval number `interval` were exact.
        """
        rect, spec = self.rect, self.spec
        # A CPU: a thread for each private histogram, which runs many chains.
        threads = self._histogram.shape[0] if self.device.simd_width > 1 else self.chains
        kernel(
            threads, *self._points, self._parameters, self._table, self._palettes, self._histogram, self._bad_values,
            self.nearest, self._inexact, interval, int(only_if_inexact), self._table.shape[2], self._parameter_stride,
            self._temporal_samples, self.first_chain, self.chains, self.steps, steps, self.fuse, np.uint32(self.seed),
            rect.left, rect.top, rect.columns, rect.rows, spec.feature_flags, spec.record_floats,
            np.uint32(spec.random_per_step), np.uint32(spec.random_per_xform),
        )  # fmt: skip

    def _end_steps(self, steps: int) -> None:
        """Swap the two buffers of chain states, so that the next launch starts from the result, and count the steps."""
        self._points.reverse()
        self.steps += steps

    @property
    def samples(self) -> int:
        """Samples plotted so far, bad values among them."""
        if self._merged_samples is not None:
            return self._merged_samples
        return max(0, self.steps - self.fuse) * self.chains

    def bad_values(self) -> int:
        """The number of points that were not finite and were replaced; waits for the device."""
        return int(self.bad_value_total.read()[0])
