"""For the tests: key frames of files; chaos games on any SIMD width, random contractions, a small histogram."""

import copy
from pathlib import Path

import numpy as np
import pytest

from renderer.flames import chaos_game
from renderer.flames.genome import Flame, Xform
from renderer.flames.interpolation import KeyFrame
from renderer.flames.xml.attributes import AttributeParser
from renderer.flames.xml.read import FileEntry, parse_library, read_library

WINDOW = chaos_game.BucketRect(0, 0, 96, 64)
CAMERA = np.array([40.0, 0, 48, 0, -40.0, 32])


def with_simd_width(device, lanes: int):
    """The device as one on which work items carry `lanes` points."""
    if lanes > 1 and device.simd_width == 1:
        pytest.skip("GPUs carry one point a work item; their compilers have no vectors for more")
    reference = copy.copy(device)
    reference.simd_width = lanes
    return reference


def run_chaos_game(
    device, flame, steps=40, chains=1024, seed=3, chunk=(0, 1), launches=1, camera=CAMERA, window=WINDOW
):
    game = chaos_game.ChaosGame(device)
    game.restart([flame], [camera], [1.0], window, chains, seed, chunk)
    for _ in range(launches):
        game.advance(steps // launches)
    return game


def random_contraction(rng, count=3, **settings):
    """Contracting xforms with random coefficients."""
    xforms = []
    for _ in range(count):
        a = rng.normal(size=(2, 2))
        a *= rng.uniform(0.3, 0.8) / np.linalg.norm(a, 2)
        b = rng.uniform(-0.5, 0.5, 2)
        affine = (*a[0], b[0], *a[1], b[1])
        xforms.append(Xform(tuple(map(float, affine)), weight=float(rng.uniform(0.2, 2)), color=float(rng.uniform())))
    return Flame(tuple(xforms), palette="spectrum", **settings)


def read_flames(path: Path) -> tuple[list[KeyFrame], list[str]]:
    """The readable flames of a file in the file's order, and warnings, among them the errors of the other flames."""
    return _keyframes(*read_library(path))


def parse_flames(text: str | bytes, parser: AttributeParser | None = None) -> tuple[list[KeyFrame], list[str]]:
    """As read_flames(), for a text in place of a file."""
    return _keyframes(*parse_library(text, parser or AttributeParser("text")))


def _keyframes(entries: list[FileEntry], warnings: list[str]) -> tuple[list[KeyFrame], list[str]]:
    errors = [f"left out: {entry.error}" for entry in entries if not entry.keyframe]
    return [entry.keyframe for entry in entries if entry.keyframe], [*warnings, *errors]
