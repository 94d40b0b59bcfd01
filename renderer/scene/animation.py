"""Key frames for every setting: a scene's [animation] table, and the settings at a time.

    [animation]
    duration = 4.0           # seconds: of the exported video, and the period where loop is true
    loop = true
    [[animation.keyframes]]
    time = 0.0               # seconds
    interpolation = "smooth" # smooth (cubic Hermite), linear, hold or curve, until the next key frame of a setting
    curve = [0.42, 0.0, 0.58, 1.0] # with "curve": time eased by a cubic Bezier curve, as in CSS (css-easing-1)
    set = { "view.position" = [0, 1, 5], "depth" = 3 }

Numbers and lists of numbers are interpolated, logarithmically where the setting's scale is logarithmic; whole numbers
are rounded; other values hold until the next key frame.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from renderer.errors import InputError
from renderer.scene.scene import Scene
from renderer.scene.schema import from_table, replace_in_file, replace_path, setting, split_path, to_plain

Interpolation = Literal["smooth", "linear", "hold", "curve"]
INTERPOLATIONS = get_args(Interpolation)
MAX_KEYFRAMES = 100_000  # of one animation
KEYFRAME_TOLERANCE = 1e-4  # seconds within which an editor takes two key frames for one
Curve = tuple[float, float, float, float]  # x and y of the two inner points of a cubic Bezier curve, 0 to 1
EASE: Curve = (0.42, 0.0, 0.58, 1.0)  # slow at both ends
DEFAULT_DURATION = 4.0  # seconds, of an animation that begins with its first key frame


class Key(NamedTuple):
    """A key frame of one setting: its time in seconds, the value then, and the interpolation until the next."""

    time: float
    value: Any
    interpolation: str
    curve: Curve = EASE  # where the interpolation is "curve"


@dataclass(frozen=True)
class Track:
    """The key frames of one setting, ascending in time; `path` is the setting's as in --set."""

    path: str
    keys: tuple[Key, ...]
    logarithmic: bool

    def with_keys(self, keys: Sequence[Key]) -> "Track":
        """The same setting's track with other key frames, sorted by time."""
        return replace(self, keys=tuple(sorted(keys, key=lambda key: key.time)))


@dataclass(frozen=True)
class Animation:
    """All tracks of a scene; `duration` in seconds is 0 where nothing moves."""

    duration: float = 0.0
    loop: bool = False
    tracks: tuple[Track, ...] = ()


@dataclass(frozen=True)
class KeyframeTable:
    """A table of [[animation.keyframes]]."""

    set: dict[str, Any]
    time: float = setting(0.0, 0.0)
    interpolation: Interpolation = "smooth"
    curve: Curve | None = setting(None, 0.0, 1.0, "x and y of both inner points of the easing curve")

    def __post_init__(self) -> None:
        if self.curve is not None and self.interpolation != "curve":
            raise ValueError(f"curve is set and interpolation is {self.interpolation!r}; it must be 'curve'")


@dataclass(frozen=True)
class AnimationTable:
    """The [animation] table of a scene file; without a duration it is the time of the last key frame."""

    duration: float | None = setting(None, 0.0)
    loop: bool = False
    keyframes: tuple[KeyframeTable, ...] = ()


def read_animation(table: Any, settings: Any, context: str) -> Animation:
    """The Animation of a scene's [animation] table, with every value checked against the settings; or InputError."""
    parsed = from_table(AnimationTable, table, context)
    if len(parsed.keyframes) > MAX_KEYFRAMES:
        raise InputError(f"{context}: {len(parsed.keyframes)} keyframes are more than the {MAX_KEYFRAMES} allowed")
    keys: dict[str, list[Key]] = {}
    for index, row in enumerate(parsed.keyframes):
        for path, value in row.set.items():
            checked = replace_in_file(settings, path, value, f"{context}: keyframes[{index}]: {path}")
            keys.setdefault(path, []).append(
                Key(row.time, _value_of(checked, path), row.interpolation, row.curve or EASE)
            )
    last = max((time for track in keys.values() for time, *_ in track), default=0.0)
    duration = last if parsed.duration is None else parsed.duration
    if parsed.loop and duration <= 0:
        raise InputError(f"{context}: duration is {duration}; a loop needs more than 0")
    tracks = tuple(_empty_track(settings, path).with_keys(k) for path, k in keys.items())
    return Animation(duration, parsed.loop, tracks)


def write_animation(animation: Animation) -> dict[str, Any]:
    """The [animation] table that read_animation() turns back into `animation`."""
    rows: dict[tuple[float, int, str, Curve], dict] = {}
    for track in animation.tracks:
        for index, key in enumerate(track.keys):
            same = sum(other.time == key.time for other in track.keys[:index])  # a jump: the order of both matters
            curve = key.curve if key.interpolation == "curve" else EASE
            rows.setdefault((key.time, same, key.interpolation, curve), {})[track.path] = to_plain(key.value)
    keyframes = []
    for at in sorted(rows):
        row: dict[str, Any] = {"time": at[0], "interpolation": at[2]}
        keyframes.append(row | ({"curve": list(at[3])} if at[2] == "curve" else {}) | {"set": rows[at]})
    return {"duration": animation.duration, "loop": animation.loop, "keyframes": keyframes}


def _value_of(settings: Any, path: str) -> Any:
    for name in split_path(path):
        if is_dataclass(settings):
            settings = getattr(settings, name)
        else:
            settings = settings[int(name) if isinstance(settings, tuple) else name]
    return settings


def _empty_track(settings: Any, path: str) -> Track:
    *outer, name = split_path(path)
    node = _value_of(settings, ".".join(outer)) if outer else settings
    logarithmic = is_dataclass(node) and any(f.name == name and f.metadata.get("logarithmic") for f in fields(node))
    return Track(path, (), logarithmic)


def settings_at(scene: Scene, time: float) -> Any:
    """The scene's settings at `time` (seconds), with what the settings themselves move: models, open shutters."""
    settings = _settings_at_instant(scene, time)
    return settings.at_time(time, lambda seconds: _settings_at_instant(scene, time + seconds))


def _settings_at_instant(scene: Scene, time: float) -> Any:
    animation, settings = scene.animation, scene.settings
    if animation is None or not animation.tracks:
        return settings
    period = animation.duration if animation.loop else None
    if period:
        time = math.fmod(time, period)
    for track in animation.tracks:
        settings = replace_path(settings, split_path(track.path), value_at(track, time, period), str(scene.path))
    return settings


def keyframe_times(animation: Animation | None) -> list[float]:
    """The times of all key frames in seconds, ascending, each once."""
    return sorted({key.time for track in animation.tracks for key in track.keys}) if animation else []


def _is_at(key: Key, time: float) -> bool:
    return abs(key.time - time) <= KEYFRAME_TOLERANCE


def interpolation_at(animation: Animation, time: float) -> str:
    """The interpolation of the key frames at `time`."""
    keys = (key for track in animation.tracks for key in track.keys)
    return next((key.interpolation for key in keys if _is_at(key, time)), INTERPOLATIONS[0])


def with_interpolation(animation: Animation, time: float, interpolation: str) -> Animation:
    """The animation with this interpolation at the key frames at `time`."""

    def changed(track: Track) -> Track:
        keys = (key._replace(interpolation=interpolation) if _is_at(key, time) else key for key in track.keys)
        return replace(track, keys=tuple(keys))

    return replace(animation, tracks=tuple(map(changed, animation.tracks)))


def insert_keyframe(scene: Scene, time: float, paths: list[str]) -> Scene:
    """The scene with a key frame at `time` for each of the settings, with the value that it has then."""
    settings = settings_at(scene, time)
    return _with_keys(scene, time, {path: _value_of(settings, path) for path in paths})


def delete_keyframe(scene: Scene, time: float) -> Scene:
    """The scene without the key frames at `time`; a setting that loses its last key frame keeps that value."""
    settings, tracks = scene.settings, []
    for track in scene.animation.tracks if scene.animation else ():
        kept = [key for key in track.keys if not _is_at(key, time)]
        if kept:
            tracks.append(track.with_keys(kept))
        else:
            settings = replace_path(settings, split_path(track.path), to_plain(track.keys[-1].value), str(scene.path))
    animation = replace(scene.animation, tracks=tuple(tracks)) if tracks else None
    return replace(scene, settings=settings, animation=animation)


def remove_track(scene: Scene, path: str) -> Scene:
    """The scene without the key frames of a setting, which keeps the value of the last."""
    assert scene.animation is not None
    track = next(track for track in scene.animation.tracks if track.path == path)
    tracks = tuple(other for other in scene.animation.tracks if other is not track)
    value = to_plain(track.keys[-1].value)
    settings = replace_path(scene.settings, split_path(path), value, str(scene.path))
    return replace(scene, settings=settings, animation=replace(scene.animation, tracks=tracks) if tracks else None)


def without_tracks_of(scene: Scene, path: str) -> Scene:
    """The scene without the key frames of a setting and of its parts: a value that was asked for holds at all times."""
    asked = split_path(path)
    tracks = scene.animation.tracks if scene.animation else ()
    kept = tuple(track for track in tracks if split_path(track.path)[: len(asked)] != asked)
    if scene.animation is None or len(kept) == len(tracks):
        return scene
    return replace(scene, animation=replace(scene.animation, tracks=kept))  # with its duration, a film's


def apply_edit(scene: Scene, time: float, after: Any) -> Scene:
    """The scene whose settings at `time` are `after`: animated settings get a key frame, the others change."""
    before = settings_at(scene, time)
    after = after.without_time(scene.settings, before)
    if scene.animation is None or not scene.animation.tracks:
        return replace(scene, settings=after)
    settings, keys = after, {}
    for path in (track.path for track in scene.animation.tracks):
        value = _value_of(scene.settings, path)  # an animated setting keeps the value that the scene file gives it
        settings = replace_path(settings, split_path(path), to_plain(value), str(scene.path))
        if _value_of(after, path) != _value_of(before, path):
            keys[path] = _value_of(after, path)
    return _with_keys(replace(scene, settings=settings), time, keys)


def changed_paths(before: Any, after: Any, path: str = "") -> list[str]:
    """The settings that differ, as paths for --set."""
    if before == after:
        return []
    if is_dataclass(before) and type(before) is type(after):
        dot = "." if path else ""
        inner = [(f"{path}{dot}{f.name}", getattr(before, f.name), getattr(after, f.name)) for f in fields(before)]
    elif _are_lists_of_tables(before, after):
        inner = [(f"{path}[{i}]", *pair) for i, pair in enumerate(zip(before, after, strict=True))]
    else:
        return [path]
    return [found for name, one, two in inner for found in changed_paths(one, two, name)]


def _are_lists_of_tables(before: Any, after: Any) -> bool:
    both = isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after)
    return both and all(map(is_dataclass, before))


def _with_keys(scene: Scene, time: float, values: dict[str, Any]) -> Scene:
    """The scene with key frames of these values at `time`, in place of the ones that are there."""
    animation = scene.animation or Animation(DEFAULT_DURATION)
    tracks = {track.path: track for track in animation.tracks}
    for path, value in values.items():
        track = tracks.get(path) or _empty_track(scene.settings, path)
        kept = [key for key in track.keys if not _is_at(key, time)]
        interpolation = next((key.interpolation for key in track.keys if _is_at(key, time)), "smooth")
        tracks[path] = track.with_keys([*kept, Key(time, value, interpolation)])
    duration = max(animation.duration, time)
    return replace(scene, animation=replace(animation, duration=duration, tracks=tuple(tracks.values())))


def value_at(track: Track, time: float, period: float | None = None) -> Any:
    """The track's value at `time`; with `period` the last key frame leads back to the first."""
    keys = track.keys
    if period is not None and len(keys) > 1:
        first, last = keys[0], keys[-1]
        keys = (last._replace(time=last.time - period), *keys, first._replace(time=first.time + period))
    if time <= keys[0].time:
        return keys[0].value
    if time >= keys[-1].time:
        return keys[-1].value
    i = max(k for k, key in enumerate(keys) if key.time <= time)
    start = keys[i]
    if start.interpolation == "hold":
        return start.value
    t = (time - start.time) / (keys[i + 1].time - start.time)
    if start.interpolation == "curve":
        t = eased(start.curve, t)
    around = [keys[k] for k in (max(i - 1, 0), i, i + 1, min(i + 2, len(keys) - 1))]
    times, values = [key.time for key in around], [key.value for key in around]
    return _interpolate(times, values, t, start.interpolation, track.logarithmic)


def _interpolate(times: list[float], values: Sequence, t: float, interpolation: str, logarithmic: bool) -> Any:
    """The value at fraction `t` between values[1] and values[2]; values[0] and values[3] are the neighbors."""
    start = values[1]
    if isinstance(start, tuple) and all(isinstance(v, tuple) and len(v) == len(start) for v in values):
        columns = zip(*values, strict=True)
        return tuple(_interpolate(times, column, t, interpolation, logarithmic) for column in columns)
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        return start
    numbers = [math.log(v) for v in values] if logarithmic and min(values) > 0 else list(values)
    if interpolation in ("linear", "curve"):
        value = numbers[1] + (numbers[2] - numbers[1]) * t
    else:
        value = _cubic_hermite(times, numbers, t)
    value = math.exp(value) if numbers[1] != start else value
    return round(value) if all(isinstance(v, int) for v in values) else float(value)


def eased(curve: Curve, t: float) -> float:
    """The height at width t of a cubic Bezier curve from (0, 0) to (1, 1), whose width never falls."""
    x1, y1, x2, y2 = curve
    low, high = 0.0, 1.0
    for _ in range(50):
        s = (low + high) / 2
        low, high = (s, high) if _bezier(x1, x2, s) < t else (low, s)
    return _bezier(y1, y2, high) if 0 < t < 1 else t


def _bezier(a: float, b: float, s: float) -> float:
    """A coordinate at parameter s of the curve whose inner points have a and b."""
    return 3 * (1 - s) ** 2 * s * a + 3 * (1 - s) * s * s * b + s**3


def _cubic_hermite(times: Sequence[float], numbers: Sequence[float], t: float) -> float:
    """Cubic Hermite from numbers[1] to numbers[2]; the slope at a key frame is that of the chord of its neighbors."""
    span = times[2] - times[1]
    before, after = times[2] - times[0], times[3] - times[1]
    start = (numbers[2] - numbers[0]) / before * span if times[0] < times[1] else 0.0
    end = (numbers[3] - numbers[1]) / after * span if times[3] > times[2] else 0.0
    t2, t3 = t * t, t**3
    return (
        (2 * t3 - 3 * t2 + 1) * numbers[1] + (t3 - 2 * t2 + t) * start
        + (3 * t2 - 2 * t3) * numbers[2] + (t3 - t2) * end
    )  # fmt: skip
