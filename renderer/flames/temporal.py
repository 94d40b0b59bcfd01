"""What a picture of a time is made of: its moments, dealt to passes, and how each pass is exposed, as flam3 does."""

from dataclasses import dataclass, replace

import numpy as np

from renderer.flames.filters import temporal_filter
from renderer.flames.genome import Flame
from renderer.flames.interpolation import interpolate_at
from renderer.flames.sample_schedule import SampleSchedule, fuse_steps
from renderer.scene.cameras import View2D


@dataclass(frozen=True)
class TemporalSample:
    """A flame at one moment, the view of it, and its samples a pixel."""

    flame: Flame
    view: View2D
    quality: float


@dataclass(frozen=True)
class Pass:
    """The moments of one pass; what their light weighs by time and by their number of samples, and that number, the
    largest of them 1. `flame`, `view` and `weight` (of a sample) expose it; `samples`: how many there are in flam3, for
    one of ours.
    """

    moments: list[TemporalSample]
    times: np.ndarray
    shares: np.ndarray
    flame: Flame
    view: View2D
    weight: float
    samples: float = 1.0

    @property
    def hit(self) -> float:
        """What adds as much to the count of hits, in the mean, as one sample of flam3."""
        return float((self.shares if self.needs_hit_counts else self.times).mean()) / self.samples

    @property
    def needs_hit_counts(self) -> bool:
        """Whether density estimation wants to know hits, of which the light's alpha tells too little."""
        uneven = (self.times != 1).any() or any(m.flame.alphas for m in self.moments)
        return bool(self.flame.estimator_radius > 0 and uneven)


def make_temporal_samples(settings, time: float) -> tuple[list[TemporalSample], np.ndarray]:
    """The moments that make up the picture of a time, and their weights, the largest 1. Stills have one a pass."""
    if len(settings.keyframes) < 2:
        _, weights = temporal_filter(settings, 1)
        return [TemporalSample(settings, settings.view, settings.quality)] * len(weights), weights
    keys = settings.keyframes
    time = min(max(time, keys[0].time), keys[-1].time)
    flame = interpolate_at(keys, time).flame
    offsets, weights = temporal_filter(flame, flame.temporal_samples)
    found = []
    for offset in offsets:
        key = interpolate_at(keys, time + offset)
        found.append(
            TemporalSample(key.flame, relative_view(key.view, keys[0].view, settings.view), max(key.quality, 1e-3))
        )
    return found, weights


def make_schedule(moments: list[TemporalSample], size: tuple[int, int]) -> SampleSchedule:
    """How each pass is drawn of a picture that is made of these moments."""
    passes = middle_sample(moments).flame.passes
    quality = float(np.mean([m.quality for m in moments]))
    return SampleSchedule(quality / passes, size, len(moments) // passes, fuse_steps([m.flame for m in moments]))


def make_passes(moments: list[TemporalSample], weights: np.ndarray) -> list[Pass]:
    """The passes of a picture. As flam3 has it, the last moment of a pass tells its brightness, scale and samples, and
    the first one how densities are estimated.
    """
    shown, found = average_flame([m.flame for m in moments]), []
    count = len(moments) // shown.passes
    for start in range(0, len(moments), count):
        mine = moments[start : start + count]
        first, last = mine[0].flame, mine[-1].flame
        shares = np.array([m.quality for m in mine])
        samples = float(shares.mean() / np.mean([m.quality for m in moments]))
        shares = shares / shares.max()
        flame = replace(
            shown, brightness=last.brightness, estimator_radius=first.estimator_radius,
            estimator_minimum=first.estimator_minimum, estimator_curve=first.estimator_curve,
        )  # fmt: skip
        times, weight = weights[start : start + count] * shares, float(weights.mean() * shares[-1])
        found.append(Pass(mine, times, shares, flame, mine[-1].view, weight, samples))
    return found


def middle_sample(moments: list[TemporalSample]) -> TemporalSample:
    """The moment that tells what no mean is taken of."""
    return moments[len(moments) // 2]


def average_flame(flames: list[Flame]) -> Flame:
    """The middle flame with gamma, vibrancy and background in the mean of all moments, and the last one's threshold."""
    middle, last = flames[len(flames) // 2], flames[-1]
    if all(flame is middle for flame in flames):
        return middle
    means = {name: float(np.mean([getattr(flame, name) for flame in flames])) for name in ("gamma", "vibrancy")}
    background = tuple(map(float, np.mean([flame.background for flame in flames], axis=0)))
    return replace(middle, background=background, gamma_threshold=last.gamma_threshold, **means)


def relative_view(view: View2D, home: View2D, wanted: View2D) -> View2D:
    """The view, moved as `wanted` is moved from `home`."""
    centre = tuple(v + w - h for v, w, h in zip(view.center, wanted.center, home.center, strict=True))
    turned = view.rotation_degrees + wanted.rotation_degrees - home.rotation_degrees
    return View2D(centre, view.height * wanted.height / home.height, turned)
