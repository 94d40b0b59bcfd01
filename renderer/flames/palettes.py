"""Palettes: 256 colours of red, green, blue, 0 to 255. Ours are gradients of a few stops in assets/palettes.json."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from renderer.flames.genome import Flame

FILE = Path(__file__).resolve().parents[2] / "assets" / "palettes.json"


@lru_cache(maxsize=1)
def stops() -> dict[str, list]:
    """Name -> [[place 0 to 1, "rrggbb"], ...]."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def names() -> list[str]:
    return list(stops())


@lru_cache(maxsize=64)
def named(name: str) -> np.ndarray:
    """(256, 3) float64 of a built-in palette: its stops joined by lines."""
    places = [place for place, _ in stops()[name]]
    colours = np.array([list(bytes.fromhex(colour)) for _, colour in stops()[name]], "f8")
    at = np.arange(256) / 255
    return np.round(np.stack([np.interp(at, places, colours[:, k]) for k in range(3)], axis=1))


def colours_of(flame: Flame) -> np.ndarray:
    """(256, 3) float64 of a flame's palette, 0 to 255."""
    return np.array(flame.colors, "f8") if flame.colors else named(flame.palette)
