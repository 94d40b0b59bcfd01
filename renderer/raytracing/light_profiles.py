"""Point lights with photometric files: their records in the lights' buffer (shaders/raytracing/light_profile.h)."""

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError, reading
from renderer.formats.ies import IesProfile, read_ies


def load_profile(file: str) -> IesProfile:
    """The profile of a file; raises InputError."""
    with reading(file):
        state = os.stat(file)
    return _read(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)
def _read(file: str, changed: int, size: int) -> IesProfile:
    if Path(file).suffix.lower() != ".ies":
        raise InputError(f"{file}: no photometric file; allowed is .ies")
    return read_ies(Path(file))


def profile_axes(light: Any) -> np.ndarray:
    """Rows (3, 3): the direction of vertical angle 0, and those of horizontal angles 0 and 90 at vertical angle 90.

    A light that points down has its horizontal angle 0 at +x and 90 at -z, counter-clockwise seen from above; one that
    points elsewhere is turned from there by the least rotation, one that points up about x.
    """
    down = np.array(light.direction, "f8") / np.linalg.norm(light.direction)
    angle = np.radians(light.rotation_degrees)
    first = np.array([[np.cos(angle), 0, -np.sin(angle)], [-np.sin(angle), 0, -np.cos(angle)]])
    axis, cosine = np.cross([0.0, -1.0, 0.0], down), -down[1]
    if cosine < -0.9999999:
        return np.array([down, *(first * [1, -1, -1])])
    # Rodrigues's rotation by the angle between the directions: v + axis x v + axis x (axis x v) / (1 + cosine)
    turned = [v + np.cross(axis, v) + np.cross(axis, np.cross(axis, v)) / (1 + cosine) for v in first]
    return np.array([down, *turned])


def profile_rows(lights: list[Any], first: int) -> list[np.ndarray]:
    """Rows, from row `first` on, of point lights with files, 3 records each and then the data."""
    records = np.zeros((len(lights), 3, 4), "f4")
    data: list[np.ndarray] = []
    places: dict[str, int] = {}
    row = first + 3 * len(lights)
    for record, light in zip(records, lights, strict=True):
        profile = load_profile(light.file)
        if light.file not in places:
            places[light.file] = row
            values = np.concatenate([profile.vertical, profile.horizontal, profile.candela.ravel()])
            data.append(np.pad(values, (0, -len(values) % 4)).reshape(-1, 4))
            row += len(data[-1])
        record[:, :3] = profile_axes(light)
        record.view("i4")[:, 3] = places[light.file], len(profile.vertical), len(profile.horizontal)
    return [records.reshape(-1, 4), *data]
