"""Bilinear approximation (BLA): steps of 4, 8, 16, ... iterations, d' = A d + B c, where the difference d is small.

A pixel's iterate is Z + d for the reference orbit Z (reference.py); c is the difference of the pixel's parameter.
Source: Zhuoran (2022), as C. Heiland-Allen's notes (mathr.co.uk) have it. One iteration of z^n + c has A = n Z^(n-1),
B = 1 and the radius R of d at which the terms that are left out reach double's precision. Two steps x and y, in this
order, merge to A = Ay Ax, B = Ay Bx + By and R = min(Rx, (Ry - |Bx| max|c|) / |Ax|).
"""

from typing import NamedTuple

import numpy as np

from renderer.fractals.reference import Orbit

FIRST_STEP = 4  # iterations of the shortest step in the table: shorter ones cost more than they skip
LOG2_EPSILON = -53.0  # of double's rounding
NEVER = -1e9  # log2 of the radius of a step that is never valid
STEP = np.dtype([
    ("a", "f8", 2), ("b", "f8", 2), ("radius", "f8"), ("radius_exponent", "i4"), ("a_exponent", "i4"),
    ("b_exponent", "i4"), ("padding", "i4"), ("more_padding", "f8"),
])  # fmt: skip


class Steps(NamedTuple):
    """Steps as arrays (n,): complex mantissas and exponents of A and B, and log2 of the radius R."""

    a: np.ndarray
    a_exponent: np.ndarray
    b: np.ndarray
    b_exponent: np.ndarray
    log2_radius: np.ndarray


class StepTable(NamedTuple):
    """Level k of `steps` (STEP) has capacity >> k steps of FIRST_STEP << k iterations, which begin at iteration 1."""

    steps: np.ndarray
    levels: int
    capacity: int


def step_table(orbit: Orbit, power: int, log2_c: float, first_end: int, wide: bool) -> StepTable:
    """Builds the table of an orbit of z^power + c, where |c| of the view's points is at most 2^log2_c.

    No step leads across the end of the first of two orbits at `first_end`. -inf for log2_c: c is fixed. Unless `wide`,
    A and B are in double's range and have no exponents.
    """
    steps = _single_steps(orbit, power, first_end, np.isfinite(log2_c))
    capacity = FIRST_STEP
    while capacity < len(steps.a):
        capacity *= 2
    steps = Steps(*(np.pad(part, (0, capacity - len(part))) for part in steps))
    steps.log2_radius[len(orbit.mantissas) - 2 :] = NEVER  # the padding, which no iteration follows
    levels = []  # of steps of 2, 4, 8, ... iterations
    with np.errstate(all="ignore"):
        while len(steps.a) > 1:
            steps = _merge(steps, log2_c)
            levels.append(_records(steps, wide))
    levels = levels[FIRST_STEP.bit_length() - 2 :]  # from FIRST_STEP on
    used = sum((level["radius"] > 0).any() for level in levels)  # a level without a valid step has none above it
    return StepTable(np.concatenate(levels), int(used), capacity // FIRST_STEP)


def _single_steps(orbit: Orbit, power: int, first_end: int, moves_c: bool) -> Steps:
    """The steps of one iteration from iterates 1 to n - 1; without `moves_c` (c is fixed) B is 0."""
    z, exponents = orbit.mantissas[1:-1], orbit.exponents[1:-1].astype("i8")
    size = np.maximum(abs(z.real), abs(z.imag))
    _, shift = np.frexp(size)
    unit = np.ldexp(1.0, -np.clip(shift, -1000, 1000))  # z * unit is of size 1: its powers overflow nothing
    a, a_exponent = _normalize(power * (z * unit) ** (power - 1), (power - 1) * (exponents + shift))
    with np.errstate(divide="ignore"):
        # n (n - 1) / 2 Z^(n-2) d^2, the first term left out, is epsilon times A d where |d| = 2 epsilon |Z| / (n - 1)
        log2_radius = np.log2(abs(z * unit)) + exponents + shift + LOG2_EPSILON + 1 - np.log2(power - 1)
    log2_radius[size == 0] = NEVER
    if 0 < first_end <= len(z):
        log2_radius[first_end - 1] = NEVER  # the step from the end of the first orbit to the start of the second
    b = np.full(len(z), complex(moves_c))
    return Steps(a, a_exponent, b, np.zeros(len(z), "i8"), log2_radius)


def _normalize(numbers: np.ndarray, exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scales complex mantissas to a larger component of 0.5 to 1."""
    _, shift = np.frexp(np.maximum(abs(numbers.real), abs(numbers.imag)))
    return numbers * np.ldexp(1.0, -shift), exponents + shift


def _merge(steps: Steps, log2_c: float) -> Steps:
    """Half as many steps, twice as long: each pair of neighbors x and y becomes one, by the formulas above."""
    x, y = Steps(*(part[0::2] for part in steps)), Steps(*(part[1::2] for part in steps))
    a = _normalize(x.a * y.a, x.a_exponent + y.a_exponent)
    carried, exponent = y.a * x.b, y.a_exponent + x.b_exponent
    common = np.maximum(exponent, y.b_exponent)  # the sum carried + y.b is taken in units of 2^common
    shifts = [np.clip(e - common, -1000, 0).astype("i4") for e in (exponent, y.b_exponent)]
    b = _normalize(carried * np.ldexp(1.0, shifts[0]) + y.b * np.ldexp(1.0, shifts[1]), common)
    moved = np.log2(abs(x.b)) + x.b_exponent + log2_c - y.log2_radius  # log2 of |Bx| max|c| / Ry
    room = np.where(moved < 0, np.log2(1 - np.exp2(np.minimum(moved, 0))), NEVER)
    radius = np.minimum(x.log2_radius, y.log2_radius + room - np.log2(abs(x.a)) - x.a_exponent)
    return Steps(*a, *b, np.maximum(np.nan_to_num(radius, nan=NEVER, neginf=NEVER), NEVER))


def _records(steps: Steps, wide: bool) -> np.ndarray:
    """The steps as records of dtype STEP, for the kernels."""
    records = np.zeros(len(steps.a), STEP)
    for name, numbers, exponents in (("a", steps.a, steps.a_exponent), ("b", steps.b, steps.b_exponent)):
        scale = 1.0 if wide else np.ldexp(1.0, np.clip(exponents, -1070, 1020).astype("i4"))
        records[name] = (numbers * scale)[:, None].view("f8")
        records[f"{name}_exponent"] = exponents if wide else 0
    exponent = np.floor(steps.log2_radius)
    records["radius"] = np.where(exponent > NEVER / 2, np.exp2(steps.log2_radius - exponent), 0)
    records["radius_exponent"] = np.where(exponent > NEVER / 2, exponent, -(1 << 28))
    return records
