"""The temporal samples of a picture, their distribution over passes, and each pass's exposure, as in flam3.

Motion blur averages flames at several times. make_temporal_samples() interpolates these flames from the key frames of
Settings; make_passes() groups them for ChaosGame and Postprocess. renderer/pictures/flame.py calls both.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from renderer.flames.filters import temporal_filter
from renderer.flames.genome import Flame
from renderer.flames.interpolation import interpolate_at
from renderer.flames.sample_schedule import SampleSchedule, fuse_steps
from renderer.flames.settings import Settings
from renderer.records import dataclass, replace
from renderer.scene.cameras import Camera, View2D

View = View2D | Camera
AnyView = TypeVar("AnyView", bound=View2D)


@dataclass(frozen=True)
class TemporalSample:
    """A flame at one time, its view, and its samples per pixel."""

    flame: Flame
    view: View
    quality: float


@dataclass(frozen=True)
class Pass:
    """The temporal samples of one pass.

    `temporal_weights` (n,): temporal filter value times relative sample count. `sample_weights` (n,): relative sample
    counts, the largest 1. `flame` and `weight` (mean temporal weight of one sample) set the exposure, with the view of
    the last temporal sample. `samples`: this pass's number of samples in flam3 over its number here. flam3 plots fewer
    samples of equal weight where quality is lower; this program plots equally many samples of lower weight.
    """

    temporal_samples: list[TemporalSample]
    temporal_weights: np.ndarray
    sample_weights: np.ndarray
    flame: Flame
    weight: float
    samples: float = 1.0

    @property
    def hits_per_sample(self) -> float:
        """Mean contribution of one flam3 sample to the hit count."""
        weights = self.sample_weights if self.needs_hit_counts else self.temporal_weights
        return float(weights.mean()) / self.samples

    @property
    def needs_hit_counts(self) -> bool:
        """True if density estimation needs a histogram of hits, because the color sums' alpha does not count hits."""
        uneven = (self.temporal_weights != 1).any() or any(s.flame.alphas for s in self.temporal_samples)
        return bool(self.flame.estimator_radius > 0 and uneven)


def make_temporal_samples(settings: Settings, time: float) -> tuple[list[TemporalSample], np.ndarray]:
    """The temporal samples of the picture at `time`, and their weights (n,), the largest 1.

    Stills have one temporal sample a pass. Each layer is a temporal sample.
    """
    keyframes = settings.keyframes
    if len(keyframes) < 2:
        _, weights = temporal_filter(settings, 1)
        layers = [TemporalSample(flame, settings.view, settings.quality) for flame in settings.layer_flames]
        return layers * len(weights), np.repeat(weights, len(layers))
    time = min(max(time, keyframes[0].time), keyframes[-1].time)
    flame = interpolate_at(keyframes, time).flame
    offsets, weights = temporal_filter(flame, flame.temporal_samples)
    samples: list[TemporalSample] = []
    for offset in offsets:
        key = interpolate_at(keyframes, time + offset)
        view = relative_view(key.view, keyframes[0].view, settings.view)
        samples += [TemporalSample(flame, view, max(key.quality, 1e-3)) for flame in key.flame.layer_flames]
    return samples, np.repeat(weights, len(samples) // len(weights))


def make_schedule(samples: Sequence[TemporalSample], size: tuple[int, int]) -> SampleSchedule:
    """The schedule of each pass of a picture of `size` (width, height in pixels) with these temporal samples."""
    passes = middle_sample(samples).flame.passes
    quality = float(np.mean([s.quality for s in samples]))
    return SampleSchedule(quality / passes, size, len(samples) // passes, fuse_steps([s.flame for s in samples]))


def make_passes(samples: Sequence[TemporalSample], weights: np.ndarray) -> list[Pass]:
    """The passes of a picture, given make_temporal_samples().

    As in flam3, a pass takes brightness, scale and sample count from its last temporal sample, and the density
    estimation settings from its first.
    """
    mean_flame, passes = average_flame([s.flame for s in samples]), []
    count = len(samples) // mean_flame.passes
    for start in range(0, len(samples), count):
        pass_samples = list(samples[start : start + count])
        first, last = pass_samples[0].flame, pass_samples[-1].flame
        sample_weights = np.array([s.quality for s in pass_samples])
        relative = float(sample_weights.mean() / np.mean([s.quality for s in samples]))
        sample_weights = sample_weights / sample_weights.max()
        flame = replace(
            mean_flame, brightness=last.brightness, estimator_radius=first.estimator_radius,
            estimator_minimum=first.estimator_minimum, estimator_curve=first.estimator_curve,
        )  # fmt: skip
        temporal_weights = weights[start : start + count] * sample_weights
        weight = float(weights.mean() * sample_weights[-1])
        passes.append(Pass(pass_samples, temporal_weights, sample_weights, flame, weight, relative))
    return passes


def middle_sample(samples: Sequence[TemporalSample]) -> TemporalSample:
    """The middle temporal sample, which gives the settings that average_flame() does not average."""
    return samples[len(samples) // 2]


def average_flame(flames: list[Flame]) -> Flame:
    """The middle flame with the mean gamma, vibrancy and background of all, and the last one's gamma_threshold."""
    middle, last = flames[len(flames) // 2], flames[-1]
    if all(flame is middle for flame in flames):
        return middle
    gamma, vibrancy = (float(np.mean([getattr(flame, name) for flame in flames])) for name in ("gamma", "vibrancy"))
    red, green, blue = map(float, np.mean([flame.background for flame in flames], axis=0))
    threshold = last.gamma_threshold
    return replace(middle, gamma=gamma, vibrancy=vibrancy, background=(red, green, blue), gamma_threshold=threshold)


def relative_view(view: View2D, base: View2D, moved: AnyView) -> AnyView:
    """The view with the offset, rotation and zoom that lead from `base` to `moved`."""
    x, y = (v + m - b for v, m, b in zip(view.center, moved.center, base.center, strict=True))
    rotation = view.rotation_degrees + moved.rotation_degrees - base.rotation_degrees
    return replace(moved, center=(x, y), height=view.height * moved.height / base.height, rotation_degrees=rotation)
