"""Animations of a glTF file: key frames of nodes and of morph weights, and their values at a time.

Interpolation follows the glTF 2.0 specification, appendix C: STEP, LINEAR (slerp for rotations) and CUBICSPLINE.
`file` is a Container (container.py): its methods return checked entries and arrays, or raise an InputError.
"""

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from renderer.plain import Json, format_value
from renderer.records import dataclass

if TYPE_CHECKING:
    from renderer.formats.gltf.container import Container

INTERPOLATIONS = ("LINEAR", "STEP", "CUBICSPLINE")
PATHS = {"translation": "VEC3", "rotation": "VEC4", "scale": "VEC3", "weights": "SCALAR"}
POINTER = re.compile(r"/nodes/(0|[1-9][0-9]{0,8})/(translation|rotation|scale|weights)")
MAX_ANIMATIONS = 1 << 14  # animations of a file
MAX_CHANNELS = 1 << 17  # animation channels of a file; reading one takes 20 us
MAX_KEY_SECONDS = 1e6  # the latest time of a key frame


@dataclass(frozen=True)
class Channel:
    """The key frames of one property of a node: `path` is translation, rotation, scale or weights.

    times (k,) float32 seconds, not decreasing; values (k, w) float32, or (k, 3, w) for CUBICSPLINE: in-tangent, value,
    out-tangent. Rotations are quaternions x, y, z, w.
    """

    node: int
    path: str
    interpolation: str
    times: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Animation:
    """Channels that play together; `duration` in seconds is the time of the last key frame."""

    name: str
    channels: tuple[Channel, ...]
    duration: float

    def clip_time(self, seconds: float) -> float:
        """The time within the animation: it repeats after its last key frame."""
        return seconds % self.duration if self.duration > 0 else 0.0

    def values_at(self, clip_time: float) -> dict[int, dict[str, np.ndarray]]:
        """The values of all channels by node and path, at a time within the animation."""
        out: dict[int, dict[str, np.ndarray]] = {}
        for channel in self.channels:
            out.setdefault(channel.node, {})[channel.path] = value_at(channel, clip_time)
        return out


def value_at(channel: Channel, seconds: float) -> np.ndarray:
    """The value (w,) float64 of a channel at a time; constant before the first and after the last key frame.

    Between key frames k and `after`, `u` is the fraction of the time between them. `leave` and `arrive` are the
    tangents of a cubic Hermite spline at its start and end.
    """
    times, cubic = channel.times, channel.interpolation == "CUBICSPLINE"
    keys = channel.values[:, 1] if cubic else channel.values
    after = int(np.searchsorted(times, seconds, "right"))
    if after == 0 or after == len(times):
        value = keys[0 if after == 0 else -1].astype("f8")
        return _unit(value) if channel.path == "rotation" else value
    k = after - 1
    first, second = keys[k].astype("f8"), keys[after].astype("f8")
    span = float(times[after]) - float(times[k])
    u = (seconds - float(times[k])) / span
    if channel.interpolation == "STEP":
        value = first
    elif cubic:
        leave, arrive = channel.values[k, 2].astype("f8"), channel.values[after, 0].astype("f8")
        value = (
            (2 * u**3 - 3 * u**2 + 1) * first + span * (u**3 - 2 * u**2 + u) * leave
            + (3 * u**2 - 2 * u**3) * second + span * (u**3 - u**2) * arrive
        )  # fmt: skip
    elif channel.path == "rotation":
        return slerp(_unit(first), _unit(second), u)
    else:
        value = (1 - u) * first + u * second
    return _unit(value) if channel.path == "rotation" else value


def slerp(first: np.ndarray, second: np.ndarray, u: float) -> np.ndarray:
    """Interpolates unit quaternions (4,) spherically, at fraction `u` of the shorter arc (K. Shoemake 1985)."""
    cosine = float(first @ second)
    if cosine < 0:
        second, cosine = -second, -cosine
    if cosine > 1 - 1e-9:  # so short an arc is a line within rounding, and its sine would divide by zero
        return _unit((1 - u) * first + u * second)
    angle = math.acos(cosine)
    return _unit((math.sin((1 - u) * angle) * first + math.sin(u * angle) * second) / math.sin(angle))


def _unit(quaternion: np.ndarray) -> np.ndarray:
    """Normalizes a quaternion; length zero, which a spline may pass through, gives the identity rotation."""
    size = math.sqrt(float(quaternion @ quaternion))
    return quaternion / size if size > 1e-12 else np.array([0.0, 0.0, 0.0, 1.0])


def find_animation(animations: tuple[Animation, ...], name: str) -> int | None:
    """Finds an animation's index by name, else by number ("0" is the first); None if neither matches."""
    names = [animation.name for animation in animations]
    if name in names:
        return names.index(name)
    return int(name) if re.fullmatch("[0-9]{1,6}", name) and int(name) < len(names) else None


def animation_keys(animations: tuple[Animation, ...]) -> list[str]:
    """The keys of animations for find_animation(): the name, or the number if the name is empty or not unique."""
    first = {animation.name: index for index, animation in reversed(list(enumerate(animations)))}
    return [a.name if a.name and first[a.name] == index else str(index) for index, a in enumerate(animations)]


def read_animations(file: "Container", targets: dict[int, int]) -> tuple[Animation, ...]:
    """Reads the animations of a file; `targets` counts the morph targets of each node of the scene."""
    out, total = [], 0
    for name, entry in file.objects("animations", most=MAX_ANIMATIONS):
        channels = []
        for channel_name, channel in file.objects("channels", entry, name):
            total += 1
            if total > MAX_CHANNELS:
                file.fail(name, f"raises the channels of the whole file above the {MAX_CHANNELS} allowed")
            if read := _channel(file, entry, channel, channel_name, targets):
                channels.append(read)
        title = entry.get("name", "")
        duration = max((float(channel.times[-1]) for channel in channels), default=0.0)
        out.append(Animation(title if isinstance(title, str) else "", tuple(channels), max(duration, 0.0)))
    return tuple(out)


def _channel(file: "Container", animation: Json, entry: Json, name: str, targets: dict[int, int]) -> Channel | None:
    """Reads a channel; None if it moves a node outside the scene, or a property that is counted as ignored."""
    target = file.object_at(entry, "target", name)
    node, path = target.get("node"), target.get("path")
    pointer = file.extension(target, "KHR_animation_pointer", name).get("pointer")
    if path == "pointer":
        match = POINTER.fullmatch(pointer) if isinstance(pointer, str) else None
        if not match:
            file.ignored["KHR_animation_pointer channels"] += 1
            return None
        node, path = int(match[1]), match[2]
    if node is None:
        return None  # the specification: a channel without a node is ignored
    target_node = file.item("nodes", node, name)
    if not isinstance(path, str) or path not in PATHS:
        file.fail(name, f"has the path {format_value(path)}; allowed are {', '.join(PATHS)}")
    times, values, interpolation = _sampler(file, animation, entry.get("sampler"), path, name)
    if node not in targets:  # a node outside the scene; its channel is checked all the same
        return None
    if path != "weights" and "matrix" in target_node:
        file.fail(name, f"moves nodes[{node}], which has a matrix; it must have translation, rotation and scale")
    if path == "weights" and not targets[node]:
        file.fail(name, f"moves the weights of nodes[{node}], whose mesh has no morph targets")
    tangents = 3 if interpolation == "CUBICSPLINE" else 1
    expected = len(times) * tangents * (targets[node] if path == "weights" else 1)
    if len(values) != expected:
        file.fail(name, f"has {len(values)} output values for {len(times)} key frames; it must have {expected}")
    values = values.reshape(len(times), *((3,) if tangents == 3 else ()), -1)
    if path == "rotation" and not np.abs(values if tangents == 1 else values[:, 1]).max(-1).min() > 1e-12:
        file.fail(name, "has a rotation of length zero")
    return Channel(node, path, interpolation, times, values)


def _sampler(
    file: "Container", animation: Json, index: object, path: str, channel: str
) -> tuple[np.ndarray, np.ndarray, str]:
    """Times (k,) and output values (n, w) float32 of a sampler, and its interpolation."""
    entry = file.item("samplers", index, channel, animation)
    name = f"{channel.partition('.')[0]}.samplers[{index}]"
    interpolation = file.word(entry, "interpolation", INTERPOLATIONS, name, "LINEAR")
    times = file.real(entry.get("input"), ("SCALAR",), name)[:, 0]
    if not len(times):
        file.fail(name, "has no key frames")
    falls = np.flatnonzero(times[1:] < times[:-1])
    if len(falls):
        k = falls[0]
        file.fail(name, f"has key frame {k + 1} at {times[k + 1]:g} s, before key frame {k} at {times[k]:g} s")
    if np.abs(times[[0, -1]]).max() > MAX_KEY_SECONDS:
        file.fail(name, f"has a key frame at {times[-1]:g} s; {MAX_KEY_SECONDS:g} s are allowed")
    output = entry.get("output")
    if file.accessor(output, (PATHS[path],), name).dtype.kind != "f":
        file.fail(name, "has integers for output that are not normalized")
    return times, file.real(output, (PATHS[path],), name), interpolation
