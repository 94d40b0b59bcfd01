"""Types of command-line options, shared by the commands: each parses one word or raises ArgumentTypeError."""

import argparse
import math


def size(text: str) -> tuple[int, int]:
    """WIDTHxHEIGHT in pixels."""
    width, cross, height = text.lower().partition("x")
    if not (
        cross and width.isdigit() and height.isdigit() and 1 <= int(width) <= 1 << 17 and 1 <= int(height) <= 1 << 17
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; it must be WIDTHxHEIGHT, each 1 to {1 << 17}")
    return int(width), int(height)


def grid(text: str) -> tuple[int, int]:
    """ROWSxCOLUMNS of cameras."""
    rows, cross, columns = text.lower().partition("x")
    if not (cross and rows.isdigit() and columns.isdigit() and 1 <= int(rows) <= 256 and 1 <= int(columns) <= 256):
        raise argparse.ArgumentTypeError(f"{text!r} is not an array of cameras; it must be ROWSxCOLUMNS, each 1 to 256")
    return int(rows), int(columns)


def port(text: str) -> int:
    """A TCP port; 0 asks the system for a free one."""
    if not (text.isdigit() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; it must be 0 to 65535")
    return int(text)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not (text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


def seed(text: str) -> int:
    """A seed of random numbers, 0 to 2^31 - 1."""
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 31):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of 0 to {(1 << 31) - 1}")
    return int(text)


def seconds(text: str) -> float:
    """A finite number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of seconds")
    return value


def duration(text: str) -> float:
    """A positive number of seconds."""
    if seconds(text) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be more than 0 seconds")
    return seconds(text)


def fraction(text: str) -> float:
    """A number between 0 and 1, such as 2% or 0.02."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be between 0 and 1, such as 2% or 0.02")
    return value
