"""Types of command-line options for argparse, shared by all commands.

Each public function parses the text of one option and returns its value; ArgumentTypeError for a faulty text.
"""

import argparse
import math
from pathlib import Path

from renderer.plain import parse_whole, printable

FORCE = "write though another process does, and replace a file that this program did not write"  # help of --force
MAX_WHOLE = (1 << 31) - 1
MAX_SECONDS = 1e9  # 32 years: float64 still has microseconds there


def size(text: str) -> tuple[int, int]:
    """Parses WIDTHxHEIGHT in pixels."""
    return _pair(text, 1 << 17, "a size; it must be WIDTHxHEIGHT")


def grid(text: str) -> tuple[int, int]:
    """Parses ROWSxCOLUMNS of cameras."""
    return _pair(text, 256, "an array of cameras; it must be ROWSxCOLUMNS")


def _pair(text: str, high: int, wanted: str) -> tuple[int, int]:
    first, second = (parse_whole(word, 1, high) for word in text.lower().partition("x")[::2])
    if first is None or second is None:
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not {wanted}, each 1 to {high}")
    return first, second


def _shown(text: str) -> str:
    return repr(printable(text, 60))


def _whole(text: str, low: int, high: int, wanted: str) -> int:
    value = parse_whole(text, low, high)
    if value is None:
        raise argparse.ArgumentTypeError(f"{_shown(text)} {wanted} {low} to {high}")
    return value


def output(text: str) -> Path:
    """Parses the path of a file to write; an empty one would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("'' names no file")
    return Path(text)


def port(text: str) -> int:
    """Parses a TCP port; 0 asks the system for a free one."""
    return _whole(text, 0, 65535, "is not a port; it must be")


def positive(text: str) -> int:
    """Parses a whole number of at least 1."""
    return _whole(text, 1, MAX_WHOLE, "must be a whole number of")


def count(text: str) -> int:
    """Parses a whole number of at least 0."""
    return _whole(text, 0, MAX_WHOLE, "must be a whole number of")


def seed(text: str) -> int:
    """Parses a seed of random numbers, 0 to 2^31 - 1."""
    return _whole(text, 0, MAX_WHOLE, "must be a whole number of")


def seconds(text: str) -> float:
    """Parses a number of seconds from -MAX_SECONDS to MAX_SECONDS."""
    value = _number(text)
    if not abs(value) <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{_shown(text)} must be a number of seconds, at most {MAX_SECONDS:g}")
    return value


def _number(text: str) -> float:
    """Parses a number; NaN for other texts."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def duration(text: str) -> float:
    """Parses a positive number of seconds."""
    if seconds(text) <= 0:
        raise argparse.ArgumentTypeError(f"{_shown(text)} must be more than 0 seconds")
    return seconds(text)


def fraction(text: str) -> float:
    """Parses a number between 0 and 1, such as 2% or 0.02."""
    value = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{_shown(text)} must be between 0 and 1, such as 2% or 0.02")
    return value
