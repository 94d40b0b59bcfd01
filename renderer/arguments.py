"""Types of command-line options, shared by the commands: each parses one word or raises ArgumentTypeError."""

import argparse
import math


def size(text: str) -> tuple[int, int]:
    """WIDTHxHEIGHT in pixels."""
    return _pair(text, 1 << 17, "a size; it must be WIDTHxHEIGHT")


def grid(text: str) -> tuple[int, int]:
    """ROWSxCOLUMNS of cameras."""
    return _pair(text, 256, "an array of cameras; it must be ROWSxCOLUMNS")


def _pair(text: str, high: int, wanted: str) -> tuple[int, int]:
    one, _, two = text.lower().partition("x")
    if not (_is_whole(one, 1, high) and _is_whole(two, 1, high)):
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}, each 1 to {high}")
    return int(one), int(two)


def _is_whole(text: str, low: int, high: float) -> bool:
    return text.isascii() and text.isdigit() and low <= int(text) <= high


def port(text: str) -> int:
    """A TCP port; 0 asks the system for a free one."""
    if not _is_whole(text, 0, 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; it must be 0 to 65535")
    return int(text)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not _is_whole(text, 1, math.inf):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


def seed(text: str) -> int:
    """A seed of random numbers, 0 to 2^31 - 1."""
    if not _is_whole(text, 0, (1 << 31) - 1):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of 0 to {(1 << 31) - 1}")
    return int(text)


def seconds(text: str) -> float:
    """A finite number of seconds."""
    value = _number(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of seconds")
    return value


def _number(text: str) -> float:
    """The number, or NaN."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def duration(text: str) -> float:
    """A positive number of seconds."""
    if seconds(text) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be more than 0 seconds")
    return seconds(text)


def fraction(text: str) -> float:
    """A number between 0 and 1, such as 2% or 0.02."""
    value = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be between 0 and 1, such as 2% or 0.02")
    return value
