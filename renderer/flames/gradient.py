"""Palettes (256, 3), 0 to 255, as gradients: stops that a user moves, and adjustments of all entries.

A stop is an entry, 0 to 255, with its color. Between stops a palette is linear, and constant beyond the outer ones.
"""

from collections.abc import Sequence

import numpy as np

from renderer.flames.palettes import hsv_to_rgb, interpolated, rgb_to_hsv, rotate_hue

Stop = tuple[int, tuple[float, float, float]]
ENTRIES = np.arange(256)
FIT_TOLERANCE, MAX_FITTED_STOPS = 1.5, 24  # levels of 255; more stops would hide each other in the window
RANDOM_STOPS = (3, 8)  # 3 to 7 stops
SMOOTHING = (1, 4, 6, 4, 1)  # binomial weights of 5 entries


def from_stops(stops: Sequence[Stop]) -> np.ndarray:
    """The palette (256, 3) of stops sorted by entry, rounded."""
    entries, colors = (np.array(column) for column in zip(*stops, strict=True))
    return np.round(interpolated(ENTRIES, entries, colors))


def fit_stops(palette: np.ndarray) -> list[Stop]:
    """The stops of a palette: the outer entries, then repeatedly the entry that the stops so far fit worst.

    Stops that later ones have made needless are left out.
    """
    stops = [(entry, tuple(palette[entry].tolist())) for entry in (0, 255)]
    while len(stops) < MAX_FITTED_STOPS:
        error = abs(from_stops(stops) - palette).max(1)
        worst = int(error.argmax())
        if error[worst] <= FIT_TOLERANCE:
            break
        stops = sorted([*stops, (worst, tuple(palette[worst].tolist()))])
    for stop in stops[1:-1]:
        fewer = [other for other in stops if other != stop]
        if abs(from_stops(fewer) - palette).max() <= FIT_TOLERANCE:
            stops = fewer
    return stops


def move_stops(palette: np.ndarray, before: Sequence[Stop], after: Sequence[Stop]) -> np.ndarray:
    """The palette after stops `before` became stops `after`, one for one; detail between the stops is kept."""
    detail = palette - from_stops(before)
    if abs(detail).max() <= FIT_TOLERANCE:
        return from_stops(after)
    source = np.interp(ENTRIES, [entry for entry, _ in after], [entry for entry, _ in before])
    return np.asarray(np.clip(np.round(from_stops(after) + interpolated(source, ENTRIES, detail)), 0, 255))


def delete_stop(palette: np.ndarray, stops: Sequence[Stop], index: int) -> np.ndarray:
    """The palette without one of its stops: linear between the stop's neighbors, constant beyond an outer neighbor."""
    kept = [*stops[:index], *stops[index + 1 :]]
    low = stops[index - 1][0] if index else -1
    high = stops[index + 1][0] if index + 1 < len(stops) else 256
    return np.where(((ENTRIES > low) & (ENTRIES < high))[:, None], from_stops(kept), palette)


def adjust(palette: np.ndarray, name: str, value: float) -> np.ndarray:
    """The palette rotated by `value` entries, its hues turned by degrees, its saturation or contrast by percent."""
    if name == "rotate":
        return np.roll(palette, round(value), 0)
    if name == "hue":
        return rotate_hue(palette, value / 360)
    if name == "saturation":
        hsv = rgb_to_hsv(palette / 255)
        hsv[:, 1] = np.clip(hsv[:, 1] * (1 + value / 100), 0, 1)
        return hsv_to_rgb(hsv) * 255
    return np.clip((palette - 127.5) * (1 + value / 100) + 127.5, 0, 255)


def adjust_stops(
    palette: np.ndarray, stops: list[Stop], name: str, value: float
) -> tuple[np.ndarray, list[Stop] | None]:
    """As adjust(), with the adjusted stops of a palette that is linear between `stops`; None if it has others."""
    if name == "rotate" or abs(from_stops(stops) - palette).max() > FIT_TOLERANCE:
        return adjust(palette, name, value), None
    colors = np.round(adjust(np.array([color for _, color in stops]), name, value)).tolist()
    after = [(at, tuple(color)) for (at, _), color in zip(stops, colors, strict=True)]
    return from_stops(after), after


def smooth(palette: np.ndarray) -> np.ndarray:
    """The palette with each entry a weighted mean of 5, the outer entries repeated beyond the ends."""
    padded = np.pad(palette, ((2, 2), (0, 0)), "edge")
    weighted = [weight * padded[k : k + 256] for k, weight in enumerate(SMOOTHING)]
    return np.asarray(np.sum(weighted, 0) / sum(SMOOTHING))


def random_palette(rng: np.random.Generator) -> np.ndarray:
    """The palette of a few stops with random entries, hues, saturations and values."""
    count = int(rng.integers(*RANDOM_STOPS))
    entries = [0, *sorted(rng.choice(np.arange(1, 255), count - 2, replace=False).tolist()), 255]
    colors = hsv_to_rgb(np.stack([rng.uniform(0, 6, count), rng.uniform(0.2, 1, count), rng.uniform(0, 1, count)], 1))
    return from_stops([(entry, tuple(color)) for entry, color in zip(entries, (255 * colors).tolist(), strict=True)])
