"""Key frames for every setting: a scene's [animation] table, the settings at a time, and edits of the key frames.

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

read_animation() and write_animation() convert the table, settings_at() gives the settings to draw, and the other
functions are the edits of the window's timeline. An edit returns a new scene; it names a key frame by its track's path
and its time.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from decimal import Context, Decimal, localcontext
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from renderer.errors import InputError, UserError
from renderer.plain import Json
from renderer.records import dataclass, fields, is_dataclass, replace
from renderer.scene import schema
from renderer.scene.scene import Scene

Interpolation = Literal["smooth", "linear", "hold", "curve"]
INTERPOLATIONS = get_args(Interpolation)
MAX_KEYFRAMES = 100_000  # key frames of one animation
KEYFRAME_TOLERANCE = 1e-4  # seconds: edits treat key frames that are nearer than this as one
Curve = tuple[float, float, float, float]  # x and y of the two inner points of a cubic Bezier curve, 0 to 1
EASE: Curve = (0.42, 0.0, 0.58, 1.0)  # slow at both ends
DEFAULT_DURATION = 4.0  # seconds: duration of an animation that an edit begins
KeyName = tuple[str, float]  # the path of a track, and the time of the key frame in seconds


_time_of = attrgetter("time")


class Key(NamedTuple):
    """A key frame of one setting: its time in seconds, the value then, and the interpolation until the next."""

    time: float
    value: Any
    interpolation: str
    curve: Curve = EASE  # where the interpolation is "curve"


@dataclass(frozen=True)
class Track:
    """The key frames of one setting, ascending in time; `path` names the setting as --set does."""

    path: str
    keys: tuple[Key, ...]
    logarithmic: bool

    def with_keys(self, keys: Sequence[Key]) -> "Track":
        """The track of the same setting with these key frames, sorted by time."""
        return replace(self, keys=tuple(sorted(keys, key=_time_of)))


@dataclass(frozen=True)
class Animation:
    """All tracks of a scene; `duration` in seconds is 0 if nothing moves."""

    duration: float = 0.0
    loop: bool = False
    tracks: tuple[Track, ...] = ()


@dataclass(frozen=True)
class KeyframeTable:
    """A table of [[animation.keyframes]]."""

    set: dict[str, Any]
    time: float = schema.setting(0.0, 0.0)
    interpolation: Interpolation = schema.setting("smooth", help="until the next key frame")
    curve: Curve | None = schema.setting(None, 0.0, 1.0, "x and y of both inner points of the easing curve")

    def __post_init__(self) -> None:
        if self.curve is not None and self.interpolation != "curve":
            raise ValueError(f"curve is set and interpolation is {self.interpolation!r}; it must be 'curve'")


@dataclass(frozen=True)
class AnimationTable:
    """The [animation] table of a scene file; the duration is the time of the last key frame if the table has none."""

    duration: float | None = schema.setting(None, 0.0)
    loop: bool = False
    keyframes: tuple[KeyframeTable, ...] = ()


def read_animation(table: object, settings: schema.PictureSettings, context: str, folder: Path | None) -> Animation:
    """Reads the [animation] table of a scene in `folder`, and checks its values against the settings: InputError."""
    parsed = schema.from_table(AnimationTable, table, context, folder)
    if len(parsed.keyframes) > MAX_KEYFRAMES:
        raise InputError(f"{context}: {len(parsed.keyframes)} keyframes are more than the {MAX_KEYFRAMES} allowed")
    keys: dict[str, list[Key]] = {}
    for index, row in enumerate(parsed.keyframes):
        for path, value in row.set.items():
            if folder is not None and settings.is_stale(path, value):  # an older file may have it
                continue
            checked = schema.replace_in_file(settings, path, value, f"{context}: keyframes[{index}]: {path}", folder)
            key = Key(row.time, _setting_at(checked, path), row.interpolation, row.curve or EASE)
            keys.setdefault(path, []).append(key)
    last = max((time for track in keys.values() for time, *_ in track), default=0.0)
    duration = last if parsed.duration is None else parsed.duration
    if parsed.loop and duration <= 0:
        raise InputError(f"{context}: duration is {duration}; a loop needs more than 0")
    tracks = tuple(_empty_track(settings, path).with_keys(k) for path, k in keys.items())
    return Animation(duration, parsed.loop, tracks)


def write_animation(animation: Animation) -> Json:
    """Converts an animation to the [animation] table that read_animation() reads."""
    rows: dict[tuple[float, int, str, Curve], dict[str, object]] = {}
    for track in animation.tracks:
        for index, key in enumerate(track.keys):
            # Two key frames of a setting at one time are a jump, whose order matters: number 0, then 1, at that time.
            same = index - bisect_left(track.keys, key.time, key=_time_of)
            curve = key.curve if key.interpolation == "curve" else EASE
            rows.setdefault((key.time, same, key.interpolation, curve), {})[track.path] = schema.to_plain(key.value)
    keyframes = []
    for (time, _, interpolation, curve), values in sorted(rows.items(), key=lambda row: row[0]):
        row: Json = {"time": time, "interpolation": interpolation}
        keyframes.append(row | ({"curve": list(curve)} if interpolation == "curve" else {}) | {"set": values})
    return {"duration": animation.duration, "loop": animation.loop, "keyframes": keyframes}


def _setting_at(settings: Any, path: str) -> Any:
    """The value at a path of --set, such as `view.position` or `spheres[2].color`."""
    for name in schema.split_path(path):
        if is_dataclass(settings):
            settings = getattr(settings, name)
        else:
            settings = settings[int(name) if isinstance(settings, tuple) else name]
    return settings


def _empty_track(settings: object, path: str) -> Track:
    *outer, name = schema.split_path(path)
    node = _setting_at(settings, ".".join(outer)) if outer else settings
    logarithmic = is_dataclass(node) and any(f.name == name and f.metadata.get("logarithmic") for f in fields(node))
    return Track(path, (), logarithmic)


def settings_at(scene: Scene, time: float) -> Any:
    """Returns the scene's settings at `time` (seconds), with key frames applied, then PictureSettings.at_time()."""
    settings = _settings_at_instant(scene, time)
    return settings.at_time(time, lambda seconds: _settings_at_instant(scene, time + seconds))


def _settings_at_instant(scene: Scene, time: float) -> Any:
    """The settings with the value of each track at a time."""
    animation, settings = scene.animation, scene.settings
    if animation is None or not animation.tracks:
        return settings
    period = animation.duration if animation.loop else None
    if period:
        time = math.fmod(time, period)
    for track in animation.tracks:
        path = schema.split_path(track.path)
        settings = schema.replace_path(settings, path, value_at(track, time, period), f"{scene.path}: {track.path}")
    return settings


def keyframe_times(animation: Animation | None) -> list[float]:
    """Returns the times of all key frames in seconds, ascending, each once."""
    return sorted({key.time for track in animation.tracks for key in track.keys}) if animation else []


def _is_at(key: Key, time: float) -> bool:
    return abs(key.time - time) <= KEYFRAME_TOLERANCE


def insert_keyframe(scene: Scene, time: float, paths: list[str]) -> Scene:
    """Returns the scene with a key frame at `time` for each setting of `paths`, with the setting's value then."""
    settings = settings_at(scene, time)
    return _with_keys(scene, time, {path: _setting_at(settings, path) for path in paths})


def remove_track(scene: Scene, path: str) -> Scene:
    """Returns the scene without a setting's key frames; the setting keeps the value of its last key frame."""
    assert scene.animation is not None
    track = next(track for track in scene.animation.tracks if track.path == path)
    tracks = tuple(other for other in scene.animation.tracks if other is not track)
    value = schema.to_plain(track.keys[-1].value)
    settings = schema.replace_path(scene.settings, schema.split_path(path), value, str(scene.path))
    return replace(scene, settings=settings, animation=replace(scene.animation, tracks=tracks) if tracks else None)


def without_tracks(scene: Scene, path: str) -> Scene:
    """Returns the scene without the key frames of a setting and of the settings inside of it.

    --set uses this, so that its value holds at all times. The animation keeps its duration.
    """
    if scene.animation is None:
        return scene
    removed = schema.split_path(path)
    kept = tuple(track for track in scene.animation.tracks if schema.split_path(track.path)[: len(removed)] != removed)
    return scene if len(kept) == len(scene.animation.tracks) else _with_tracks(scene, kept)


def apply_edit(scene: Scene, time: float, after: schema.PictureSettings) -> Scene:
    """Returns the scene whose settings at `time` are `after`: animated settings get a key frame, others change."""
    before = settings_at(scene, time)
    after = after.without_time(scene.settings, before)
    if scene.animation is None or not scene.animation.tracks:
        return replace(scene, settings=after)
    settings, keys = after, dict[str, object]()
    for path in (track.path for track in scene.animation.tracks):
        value = _setting_at(scene.settings, path)  # an animated setting keeps the value that the scene file gives it
        settings = schema.replace_path(settings, schema.split_path(path), schema.to_plain(value), str(scene.path))
        if _setting_at(after, path) != _setting_at(before, path):
            keys[path] = _setting_at(after, path)
    return _with_keys(replace(scene, settings=settings), time, keys)


def changed_paths(before: object, after: object, path: str = "") -> list[str]:
    """Lists the settings that differ between `before` and `after`, as paths for --set."""
    if before == after:
        return []
    if is_dataclass(before) and type(before) is type(after):
        inner: list[tuple[str, object, object]]
        dot = "." if path else ""
        inner = [(f"{path}{dot}{f.name}", getattr(before, f.name), getattr(after, f.name)) for f in fields(before)]
    elif isinstance(before, tuple) and isinstance(after, tuple) and [*map(is_dataclass, before)] == [True] * len(after):
        # two lists of as many tables
        inner = [(f"{path}[{i}]", *pair) for i, pair in enumerate(zip(before, after, strict=True))]
    else:
        return [path]
    return [changed for name, old, new in inner for changed in changed_paths(old, new, name)]


def _with_tracks(scene: Scene, tracks: Iterable[Track]) -> Scene:
    assert scene.animation is not None
    return replace(scene, animation=replace(scene.animation, tracks=tuple(tracks)))


def _with_keys(scene: Scene, time: float, values: dict[str, object]) -> Scene:
    """The scene with key frames of these values, by path, at `time`; they replace the key frames at that time.

    A new key frame has the interpolation and curve of the one that it replaces.
    """
    animation = scene.animation or Animation(DEFAULT_DURATION)
    tracks = {track.path: track for track in animation.tracks}
    for path, value in values.items():
        track = tracks.get(path) or _empty_track(scene.settings, path)
        kept = [key for key in track.keys if not _is_at(key, time)]
        replaced = next((key for key in track.keys if _is_at(key, time)), Key(time, value, "smooth"))
        tracks[path] = track.with_keys([*kept, replaced._replace(time=time, value=value)])
    duration = max(animation.duration, time)
    return replace(scene, animation=replace(animation, duration=duration, tracks=tuple(tracks.values())))


def key_names(animation: Animation | None) -> list[KeyName]:
    """Returns the names of all key frames."""
    return [(track.path, key.time) for track in animation.tracks for key in track.keys] if animation else []


def keys_at(animation: Animation | None, time: float) -> dict[KeyName, Key]:
    """Returns the key frames at `time`, by name."""
    keys = ((track.path, key) for track in animation.tracks for key in track.keys) if animation else ()
    return {(path, key.time): key for path, key in keys if _is_at(key, time)}


def _is_chosen(path: str, key: Key, chosen: Collection[KeyName]) -> bool:
    return any(path == name and _is_at(key, time) for name, time in chosen)


def _merged(track: Track, unchanged: Iterable[Key], new: list[Key]) -> Track:
    """Returns the track of the `new` and `unchanged` keys; a new key replaces an unchanged key at its time."""
    others = [key for key in unchanged if not any(_is_at(key, replacement.time) for replacement in new)]
    return track.with_keys([*others, *new])


def move_keys(scene: Scene, chosen: Collection[KeyName], seconds: float) -> tuple[Scene, frozenset[KeyName]]:
    """Returns the scene with the `chosen` key frames moved by `seconds`, and their new names.

    All move by the same time, at most to 0 and to the duration, and replace key frames that they are moved onto.
    """
    animation = scene.animation
    if animation is None or not chosen:
        return scene, frozenset(chosen)
    times = [time for _, time in chosen]
    seconds = min(max(seconds, -min(times)), max(animation.duration - max(times), 0.0))
    tracks, names = [], set()
    for track in animation.tracks:
        moving = [key for key in track.keys if _is_chosen(track.path, key, chosen)]
        moved = [key._replace(time=round(key.time + seconds, 6)) for key in moving]
        names |= {(track.path, key.time) for key in moved}
        tracks.append(_merged(track, [key for key in track.keys if key not in moving], moved) if moving else track)
    return _with_tracks(scene, tracks), frozenset(names)


def copy_keys(scene: Scene, chosen: Collection[KeyName]) -> tuple[tuple[str, Key], ...]:
    """Returns the `chosen` key frames with their paths, for paste_keys(); times count from the first key frame."""
    tracks = scene.animation.tracks if scene.animation else ()
    keys = [(track.path, key) for track in tracks for key in track.keys if _is_chosen(track.path, key, chosen)]
    start = min((key.time for _, key in keys), default=0.0)
    return tuple((path, key._replace(time=key.time - start)) for path, key in keys)


def paste_keys(scene: Scene, time: float, copied: Iterable[tuple[str, Key]]) -> tuple[Scene, frozenset[KeyName]]:
    """Returns the scene with copied key frames inserted from `time` on, and their names.

    Raises UserError if the scene has no track for a key frame: another scene need not have the same settings.
    """
    animation = scene.animation or Animation(DEFAULT_DURATION)
    tracks = {track.path: track for track in animation.tracks}
    by_path: dict[str, list[Key]] = {}
    for path, key in copied:
        by_path.setdefault(path, []).append(key._replace(time=round(time + key.time, 6)))
    for path, keys in by_path.items():
        if path not in tracks:
            raise UserError(f"{path} has no key frames here to paste beside; insert one first")
        tracks[path] = _merged(tracks[path], tracks[path].keys, keys)
    names = frozenset((path, key.time) for path, keys in by_path.items() for key in keys)
    last = max((t for _, t in names), default=0.0)
    animation = replace(animation, duration=max(animation.duration, last), tracks=tuple(tracks.values()))
    return replace(scene, animation=animation), names


def delete_keys(scene: Scene, chosen: Collection[KeyName]) -> Scene:
    """Returns the scene without the `chosen` key frames; a setting that loses its last one keeps that value."""
    for track in scene.animation.tracks if scene.animation else ():
        kept = [key for key in track.keys if not _is_chosen(track.path, key, chosen)]
        if not kept:
            scene = remove_track(scene, track.path)
        elif len(kept) < len(track.keys) and scene.animation is not None:
            changed = track.with_keys(kept)
            scene = _with_tracks(scene, (changed if t.path == track.path else t for t in scene.animation.tracks))
    return scene


def ease_keys(scene: Scene, chosen: Collection[KeyName], interpolation: str, curve: Curve | None = None) -> Scene:
    """Returns the scene with another interpolation after the `chosen` key frames; None keeps their curves."""
    if scene.animation is None:
        return scene
    changes: dict[str, Any] = {"interpolation": interpolation} | ({"curve": curve} if curve else {})
    tracks = []
    for track in scene.animation.tracks:
        keys = (key._replace(**changes) if _is_chosen(track.path, key, chosen) else key for key in track.keys)
        tracks.append(replace(track, keys=tuple(keys)))
    return _with_tracks(scene, tracks)


def value_at(track: Track, time: float, period: float | None = None) -> Any:
    """Returns the track's value at `time`; with a `period` (seconds) the last key frame leads back to the first.

    It does not if they are more than a period apart: the first begins again before the last is reached.
    """
    keys = track.keys
    if period is not None and len(keys) > 1 and keys[-1].time - keys[0].time <= period:
        first, last = keys[0], keys[-1]
        keys = (last._replace(time=last.time - period), *keys, first._replace(time=first.time + period))
    if time <= keys[0].time:
        return keys[0].value
    if time >= keys[-1].time:
        return keys[-1].value
    i = bisect_right(keys, time, key=_time_of) - 1
    start = keys[i]
    if start.interpolation == "hold":
        return start.value
    t = (time - start.time) / (keys[i + 1].time - start.time)
    if start.interpolation == "curve":
        t = eased(start.curve, t)
    around = [keys[k] for k in (max(i - 1, 0), i, i + 1, min(i + 2, len(keys) - 1))]
    times, values = [key.time for key in around], [key.value for key in around]
    return _interpolate(times, values, t, start.interpolation, track.logarithmic)


def _interpolate(times: list[float], values: Sequence[Any], t: float, interpolation: str, logarithmic: bool) -> Any:
    """Interpolates at fraction `t` from values[1] to values[2]; values[0] and values[3] are their neighbors."""
    start = values[1]
    if isinstance(start, tuple) and all(isinstance(v, tuple) and len(v) == len(start) for v in values):
        columns = zip(*values, strict=True)
        return tuple(_interpolate(times, column, t, interpolation, logarithmic) for column in columns)
    if isinstance(start, Decimal):
        return _interpolate_decimal(times, values, t, interpolation, logarithmic)
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        return start
    in_logarithms = logarithmic and min(values) > 0
    numbers = [math.log(v) for v in values] if in_logarithms else list(values)
    if interpolation in ("linear", "curve"):
        value = numbers[1] + (numbers[2] - numbers[1]) * t
    else:
        value = _cubic_hermite(times, numbers, t)
    value = math.exp(value) if in_logarithms else value
    return round(value) if all(isinstance(v, int) for v in values) else float(value)


def _interpolate_decimal(
    times: list[float], values: Sequence[Decimal], t: float, interpolation: str, logarithmic: bool
) -> Decimal:
    """Interpolates decimal numbers in float64: their logarithms, or their differences from the start."""
    if logarithmic and min(values) > 0:
        logarithm = _interpolate(times, [float(v.ln()) for v in values], t, interpolation, logarithmic=False)
        return Decimal(logarithm).exp(Context(prec=12))
    with localcontext(prec=schema.MAX_CHARACTERS):
        offsets = [v - values[1] for v in values]
        span = max(map(abs, offsets)) or Decimal(1)
        fractions = [float(Context().divide(v, span)) for v in offsets]
        offset = _interpolate(times, fractions, t, interpolation, logarithmic=False)
        return values[1] + Decimal(offset) * span


def eased(curve: Curve, t: float) -> float:
    """Returns y at x = t of the cubic Bezier curve from (0, 0) to (1, 1); bisection finds x, which never decreases."""
    x1, y1, x2, y2 = curve
    low, high = 0.0, 1.0
    for _ in range(50):
        s = (low + high) / 2
        low, high = (s, high) if _bezier(x1, x2, s) < t else (low, s)
    return _bezier(y1, y2, high) if 0 < t < 1 else t


def _bezier(a: float, b: float, s: float) -> float:
    """Returns a coordinate of a cubic Bezier curve at parameter s: 0, 1 at the ends, a, b at the inner points."""
    return 3 * (1 - s) ** 2 * s * a + 3 * (1 - s) * s * s * b + s**3


def _cubic_hermite(times: Sequence[float], numbers: Sequence[float], t: float) -> float:
    """Interpolates from numbers[1] to numbers[2] by cubic Hermite.

    The slope at a key frame is the slope of the chord between its two neighbors; it is 0 at the ends of the track.
    """
    span = times[2] - times[1]
    before, after = times[2] - times[0], times[3] - times[1]
    start = (numbers[2] - numbers[0]) / before * span if times[0] < times[1] else 0.0
    end = (numbers[3] - numbers[1]) / after * span if times[3] > times[2] else 0.0
    t2, t3 = t * t, t**3
    return (
        (2 * t3 - 3 * t2 + 1) * numbers[1] + (t3 - 2 * t2 + t) * start
        + (3 * t2 - 2 * t3) * numbers[2] + (t3 - t2) * end
    )  # fmt: skip
