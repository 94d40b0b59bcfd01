"""Key frames for every setting: a scene's [animation] table, and the settings of a moment.

    [animation]
    seconds = 4.0            # the film's length, and the period where loop is true
    loop = true
    [[animation.keys]]
    time = 0.0
    ease = "smooth"          # smooth (cubic through the neighbours), linear or hold, until the next key of a setting
    set = { "view.position" = [0, 1, 5], "depth" = 3 }

Numbers and lists of numbers move between their keys, logarithmically where the setting's scale is logarithmic; whole
numbers are rounded; everything else holds.
"""

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from renderer.errors import InputError, UserError
from renderer.scene.scene import Scene, assigned, plain, told

EASES = ("smooth", "linear", "hold")
LARGEST = 100_000  # keys of one animation
SAME = 1e-4  # seconds within which two keys are one for an editor
DEFAULT_SECONDS = 4.0  # of an animation that begins with its first key


@dataclass(frozen=True)
class Track:
    """The keys of one setting: `path` as --set spells it, times ascending in seconds, values, eases."""

    path: str
    times: tuple[float, ...]
    values: tuple[Any, ...]
    eases: tuple[str, ...]
    logarithmic: bool


@dataclass(frozen=True)
class Animation:
    """All tracks of a scene; `seconds` is 0 where nothing moves."""

    seconds: float = 0.0
    loop: bool = False
    tracks: tuple[Track, ...] = ()


def read_animation(table: dict, settings, where: str) -> Animation:
    """The Animation of a scene's [animation] table, every key tried on the settings; InputError tells what is wrong."""
    if not isinstance(table, dict):
        raise InputError(f"{where} is {told(table)}; it must be a table")
    for key in table:
        if key not in ("seconds", "loop", "keys"):
            raise InputError(f"{where}: unknown key {key!r}; allowed are seconds, loop, keys")
    keys = table.get("keys", [])
    if not isinstance(keys, list) or len(keys) > LARGEST:
        raise InputError(f"{where}: keys must be a list of at most {LARGEST} tables")
    tracks: dict[str, list] = {}
    for index, key in enumerate(keys):
        moment, ease, changes = _key(key, f"{where}: keys[{index}]")
        for path, value in changes.items():
            settings_there = _tried(settings, path, value, f"{where}: keys[{index}]: {path}")
            tracks.setdefault(path, []).append((moment, settings_there, ease))
    last = max((moment for track in tracks.values() for moment, *_ in track), default=0.0)
    seconds = _number(table.get("seconds", last), f"{where}: seconds")
    loop = table.get("loop", False)
    if not isinstance(loop, bool):
        raise InputError(f"{where}: loop is {told(loop)}; it must be true or false")
    if loop and seconds <= 0:
        raise InputError(f"{where}: seconds is {seconds}; a loop needs more than 0")
    made = tuple(_track(path, keys, settings) for path, keys in tracks.items())
    return Animation(seconds, loop, made)


def write_animation(animation: Animation) -> dict:
    """The [animation] table that read_animation turns back into `animation`."""
    keys: dict[tuple[float, int, str], dict] = {}
    for track in animation.tracks:
        for index, (moment, value, ease) in enumerate(zip(track.times, track.values, track.eases, strict=True)):
            same = track.times[:index].count(moment)  # two keys of one time are a jump, and their order matters
            keys.setdefault((moment, same, ease), {})[track.path] = plain(value)
    rows = [{"time": at[0], "ease": at[2], "set": keys[at]} for at in sorted(keys)]
    return {"seconds": animation.seconds, "loop": animation.loop, "keys": rows}


def _key(key, where: str) -> tuple[float, str, dict]:
    if not isinstance(key, dict) or not isinstance(key.get("set"), dict):
        raise InputError(f"{where} is {told(key)}; it must be a table with time and set")
    for name in key:
        if name not in ("time", "ease", "set"):
            raise InputError(f"{where}: unknown key {name!r}; allowed are time, ease, set")
    ease = key.get("ease", "smooth")
    if ease not in EASES:
        raise InputError(f"{where}: ease is {told(ease)}; allowed are {', '.join(EASES)}")
    return _number(key.get("time", 0.0), f"{where}: time"), ease, key["set"]


def _number(value, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise InputError(f"{where} is {told(value)}; it must be a number of at least 0")
    return float(value)


def _tried(settings, path: str, value, where: str):
    """The value as the setting's own type."""
    try:
        return _reached(assigned(settings, _names(path), value, where), path)
    except UserError as error:  # the mistake stands in the file, not on the command line
        raise InputError(str(error)) from error


def _names(path: str) -> list[str]:
    return path.replace("[", ".").replace("]", "").split(".")


def _reached(settings, path: str):
    for name in _names(path):
        if is_dataclass(settings):
            settings = getattr(settings, name)
        else:
            settings = settings[int(name) if isinstance(settings, tuple) else name]
    return settings


def _track(path: str, keys: list, settings) -> Track:
    keys = sorted(keys, key=lambda key: key[0])
    return Track(path, *(tuple(column) for column in zip(*keys, strict=True)), _is_logarithmic(settings, path))


def _is_logarithmic(settings, path: str) -> bool:
    *outer, name = _names(path)
    node = _reached(settings, ".".join(outer)) if outer else settings
    return is_dataclass(node) and any(f.name == name and f.metadata.get("logarithmic") for f in fields(node))


def settings_at(scene: Scene, moment: float):
    """The settings of a scene at `moment`, in seconds; settings with a shutter learn what they are when it closes."""
    settings = _sharp_settings_at(scene, moment)
    if not hasattr(settings, "with_shutter_close"):
        return settings
    return settings.with_shutter_close(lambda seconds: _sharp_settings_at(scene, moment + seconds))


def _sharp_settings_at(scene: Scene, moment: float):
    animation = scene.animation
    settings = scene.settings
    if animation is None or not animation.tracks:
        return settings
    if animation.loop:
        moment = math.fmod(moment, animation.seconds)
    for track in animation.tracks:
        period = animation.seconds if animation.loop else None
        settings = assigned(settings, _names(track.path), value_at(track, moment, period), str(scene.path))
    return settings


def key_times(animation: Animation | None) -> list[float]:
    """The moments at which there are keys, ascending."""
    return sorted({moment for track in animation.tracks for moment in track.times}) if animation else []


def ease_at(animation: Animation, moment: float) -> str:
    """The ease of the keys at `moment`."""
    pairs = ((t, ease) for track in animation.tracks for t, ease in zip(track.times, track.eases, strict=True))
    return next((ease for time, ease in pairs if abs(time - moment) <= SAME), EASES[0])


def with_ease(animation: Animation, moment: float, ease: str) -> Animation:
    """The animation with this ease from the keys at `moment` on."""
    tracks = []
    for track in animation.tracks:
        pairs = zip(track.times, track.eases, strict=True)
        tracks.append(replace(track, eases=tuple(ease if abs(t - moment) <= SAME else e for t, e in pairs)))
    return replace(animation, tracks=tuple(tracks))


def keyed(scene: Scene, moment: float, paths: list[str]) -> Scene:
    """The scene with a key at `moment` for each of the settings, at the value that it has then."""
    settings = settings_at(scene, moment)
    return _with_keys(scene, moment, {path: _reached(settings, path) for path in paths})


def unkeyed(scene: Scene, moment: float) -> Scene:
    """The scene without the keys at `moment`; settings that lose their last key stay at its value."""
    settings, tracks = scene.settings, []
    for track in scene.animation.tracks if scene.animation else ():
        kept = [index for index, time in enumerate(track.times) if abs(time - moment) > SAME]
        if kept:
            columns = (tuple(column[k] for k in kept) for column in (track.times, track.values, track.eases))
            tracks.append(Track(track.path, *columns, track.logarithmic))
        else:
            settings = assigned(settings, _names(track.path), plain(track.values[-1]), str(scene.path))
    animation = replace(scene.animation, tracks=tuple(tracks)) if tracks else None
    return replace(scene, settings=settings, animation=animation)


def edited(scene: Scene, moment: float, after) -> Scene:
    """The scene whose settings at `moment` are `after`: what has keys gets one there, the rest simply changes."""
    before = settings_at(scene, moment)
    if hasattr(after, "without_shutter_close"):
        after = after.without_shutter_close(scene.settings)
    if scene.animation is None or not scene.animation.tracks:
        return replace(scene, settings=after)
    tracked = {track.path for track in scene.animation.tracks}
    settings, keys = after, {}
    for path in tracked:  # below its keys, a setting keeps the value that the scene gave it
        value = _reached(scene.settings, path)
        settings = assigned(settings, _names(path), plain(value), str(scene.path))
        if _reached(after, path) != _reached(before, path):
            keys[path] = _reached(after, path)
    return _with_keys(replace(scene, settings=settings), moment, keys)


def changed_paths(before, after, path: str = "") -> list[str]:
    """The settings that differ, as --set spells them."""
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


def _are_lists_of_tables(before, after) -> bool:
    both = isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after)
    return both and all(map(is_dataclass, before))


def _with_keys(scene: Scene, moment: float, values: dict[str, Any]) -> Scene:
    """The scene with these values at `moment`, in place of keys that stand there."""
    animation = scene.animation or Animation(DEFAULT_SECONDS)
    tracks = {track.path: track for track in animation.tracks}
    for path, value in values.items():
        old = tracks.get(path, Track(path, (), (), (), _is_logarithmic(scene.settings, path)))
        keys = [key for key in zip(old.times, old.values, old.eases, strict=True) if abs(key[0] - moment) > SAME]
        ease = next((e for t, e in zip(old.times, old.eases, strict=True) if abs(t - moment) <= SAME), "smooth")
        tracks[path] = _track(path, [*keys, (moment, value, ease)], scene.settings)
    seconds = max(animation.seconds, moment)
    return replace(scene, animation=replace(animation, seconds=seconds, tracks=tuple(tracks.values())))


def value_at(track: Track, moment: float, period: float | None = None):
    """The track's value at `moment`; with `period` the last key leads back to the first."""
    times, values = list(track.times), list(track.values)
    if period is not None and len(times) > 1:
        times, values = [times[-1] - period, *times, times[0] + period], [values[-1], *values, values[0]]
        eases = [track.eases[-1], *track.eases, track.eases[0]]
    else:
        eases = list(track.eases)
    if moment <= times[0]:
        return values[0]
    if moment >= times[-1]:
        return values[-1]
    i = max(k for k, time in enumerate(times) if time <= moment)
    part = (moment - times[i]) / (times[i + 1] - times[i])
    if eases[i] == "hold":
        return values[i]
    neighbours = [(times[k], values[k]) for k in (max(i - 1, 0), i, i + 1, min(i + 2, len(times) - 1))]
    return _between(neighbours, part, eases[i], track.logarithmic)


def _between(neighbours, part: float, ease: str, logarithmic: bool):
    (_, a), (_, b), (_, c), (_, d) = neighbours
    times = [time for time, _ in neighbours]
    if isinstance(b, tuple) and all(isinstance(v, tuple) and len(v) == len(b) for v in (a, c, d)):
        parts = zip(a, b, c, d, strict=True)
        return tuple(_between(list(zip(times, four, strict=True)), part, ease, logarithmic) for four in parts)
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (a, b, c, d)):
        return b
    numbers = [math.log(v) for v in (a, b, c, d)] if logarithmic and min(a, b, c, d) > 0 else [a, b, c, d]
    value = _line(numbers, part) if ease == "linear" else _cubic(times, numbers, part)
    value = math.exp(value) if numbers[1] != b else value
    return round(value) if all(isinstance(v, int) for v in (a, b, c, d)) else float(value)


def _line(numbers, part: float) -> float:
    return numbers[1] + (numbers[2] - numbers[1]) * part


def _cubic(times, numbers, part: float) -> float:
    """Cubic Hermite through numbers[1] and numbers[2], its slopes those of the chords over both neighbours."""
    span = times[2] - times[1]
    before, after = times[2] - times[0], times[3] - times[1]
    start = (numbers[2] - numbers[0]) / before * span if times[0] < times[1] else 0.0
    end = (numbers[3] - numbers[1]) / after * span if times[3] > times[2] else 0.0
    t2, t3 = part * part, part**3
    return (
        (2 * t3 - 3 * t2 + 1) * numbers[1] + (t3 - 2 * t2 + part) * start
        + (3 * t2 - 2 * t3) * numbers[2] + (t3 - t2) * end
    )  # fmt: skip
