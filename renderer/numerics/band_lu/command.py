"""`rayfold solve`: what it takes, does and tells."""

import json
import sys
import time
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats.matrices import read_band, read_rhs, write_npy
from renderer.gpu import Device, find_devices, open_device
from renderer.host import available_cores
from renderer.numerics.band_lu.solver import BandedLU, checked_band, checked_block

SHOWN = 64  # steps of the timeline that the JSON holds at most


def solve(args) -> int:
    """Reads BAND.npz and RHS.npy, solves, writes X.npy; exit code 1 for a singular matrix."""
    began = time.perf_counter()
    checked_block(args.block)
    devices = chosen_devices(args.device)
    ab, kl, ku = read_band(Path(args.band))
    try:
        ab = checked_band(ab, kl, ku)
    except InputError as error:
        raise InputError(f"{args.band}: {error}") from error
    b = read_rhs(Path(args.rhs), ab.shape[1])
    read = time.perf_counter() - began
    began = time.perf_counter()
    lu = BandedLU(ab, kl, ku, devices, args.block)
    factored = time.perf_counter() - began
    if lu.info:
        return tell_singular(args, lu, factored)
    began = time.perf_counter()
    x = lu.solve(b)
    solved = time.perf_counter() - began
    write_npy(Path(args.output), x)
    seconds = {"read": read, "factor": factored, "substitute": solved, **lu.seconds}
    facts = {
        "n": lu.n, "kl": kl, "ku": ku, "right_hand_sides": b.size // lu.n, "dtype": str(lu.dtype), "block": lu.layout.s,
        "residual": lu.residual(x, b), "growth": lu.growth, "rcond": lu.rcond(), "info": 0, "swaps": swaps(lu),
        "seconds": seconds, "device": lu.where, "output": str(args.output),
    }  # fmt: skip
    if args.json:
        every = -(-len(lu.timeline) // SHOWN)
        print(json.dumps({**facts, "timeline": lu.timeline[::every]}))
    else:
        print(
            f"{args.output}: residual {facts['residual']:.2e}, growth {facts['growth']:.3g}, rcond {facts['rcond']:.2e}"
        )
        print(f"factor {factored:.3f} s, solve {solved:.3f} s on {told_devices(lu)}", file=sys.stderr)
    return 0


def swaps(lu: BandedLU) -> int:
    """Rows that pivoting moved."""
    return int((lu.pivots != np.arange(lu.n)).sum())


def told_devices(lu: BandedLU) -> str:
    return f"the host's {available_cores()} cores" if lu.where == "host" else lu.where


def tell_singular(args, lu: BandedLU, seconds: float) -> int:
    column = lu.info - 1
    sentence = f"the matrix is singular: the pivot of column {column} (counted from 0) is exactly zero"
    print(f"rayfold: {args.band}: {sentence}; {args.output} is not written", file=sys.stderr)
    if args.json:
        facts = {"singular_column": column, "info": lu.info, "residual": None, "rcond": 0.0, "growth": lu.growth}
        print(json.dumps({**facts, "seconds": {"factor": seconds}, "device": lu.where}))
    return 1


def chosen_devices(spellings: list[str] | None) -> tuple[Device, ...]:
    """The devices of --device; without one a GPU where there is one, else none: the host's cores by LAPACK."""
    if spellings is None:
        spellings = ["auto"] if any(found.processor == "gpu" for found in find_devices()[0]) else []
    return tuple(open_device(spelling) for spelling in spellings)
