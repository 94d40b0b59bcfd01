"""Edits of the key frames of a scene: moved, copied, deleted and eased, one by one or together.

A key frame is named by its track's path and its time. Each function returns a new scene.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from renderer.errors import UserError
from renderer.scene.animation import DEFAULT_DURATION, EASE, KEYFRAME_TOLERANCE, Animation, Curve, Key, Track
from renderer.scene.animation import remove_track as remove_whole_track
from renderer.scene.scene import Scene

KeyName = tuple[str, float]  # the path of a track, and the time of the key frame in seconds


def key_names(animation: Animation | None) -> list[KeyName]:
    """All key frames."""
    return [(track.path, key.time) for track in animation.tracks for key in track.keys] if animation else []


def _is_chosen(path: str, key: Key, chosen: Collection[KeyName]) -> bool:
    return any(path == other and abs(key.time - time) <= KEYFRAME_TOLERANCE for other, time in chosen)


def _with_tracks(scene: Scene, tracks: Iterable[Track]) -> Scene:
    assert scene.animation is not None
    return replace(scene, animation=replace(scene.animation, tracks=tuple(tracks)))


def _merged(track: Track, kept: Iterable[Key], new: list[Key]) -> Track:
    """The track with new keys, which take the place of kept ones at their times."""
    times = [key.time for key in new]
    free = [key for key in kept if all(abs(key.time - time) > KEYFRAME_TOLERANCE for time in times)]
    return track.with_keys([*free, *new])


def move_keys(scene: Scene, chosen: Collection[KeyName], seconds: float) -> tuple[Scene, frozenset[KeyName]]:
    """The scene with key frames moved in time, and their new names.

    They stay together, not before 0 nor behind the duration; what they are moved onto is replaced.
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
    """Key frames for paste_keys(): with their paths, and times from the first of them on."""
    tracks = scene.animation.tracks if scene.animation else ()
    found = [(track.path, key) for track in tracks for key in track.keys if _is_chosen(track.path, key, chosen)]
    start = min((key.time for _, key in found), default=0.0)
    return tuple((path, key._replace(time=key.time - start)) for path, key in found)


def paste_keys(scene: Scene, time: float, copied: Iterable[tuple[str, Key]]) -> tuple[Scene, frozenset[KeyName]]:
    """The scene with copied key frames from `time` on, and their names.

    Raises UserError if the scene has no track of one of them: settings of one scene need not be there in another.
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
    """The scene without these key frames; a setting that loses its last one keeps that value."""
    for track in scene.animation.tracks if scene.animation else ():
        kept = [key for key in track.keys if not _is_chosen(track.path, key, chosen)]
        if not kept:
            scene = remove_whole_track(scene, track.path)
        elif len(kept) < len(track.keys) and scene.animation is not None:
            changed = track.with_keys(kept)
            scene = _with_tracks(scene, (changed if t.path == track.path else t for t in scene.animation.tracks))
    return scene


def ease_keys(scene: Scene, chosen: Collection[KeyName], interpolation: str, curve: Curve = EASE) -> Scene:
    """The scene with another interpolation from these key frames to the next of their settings."""
    if scene.animation is None:
        return scene
    changes = {"interpolation": interpolation, "curve": curve if interpolation == "curve" else EASE}
    tracks = []
    for track in scene.animation.tracks:
        keys = (key._replace(**changes) if _is_chosen(track.path, key, chosen) else key for key in track.keys)
        tracks.append(replace(track, keys=tuple(keys)))
    return _with_tracks(scene, tracks)
