"""`rayfold solve`: a banded system from files, on the host's cores, on one device or on several."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from renderer import arguments
from renderer.errors import InputError
from renderer.formats.matrices import read_band, read_rhs, write_npy
from renderer.gpu import Device, list_devices, open_device
from renderer.host import available_cores
from renderer.numerics.band_lu.refinement import solve_refined
from renderer.numerics.band_lu.solver import BandedLU, checked_band, checked_block

MAX_JSON_STEPS = 64  # of step_seconds that the JSON holds
DIGITS_EXPECTED = {"float32": 2, "float64": 6}  # of a solution; a sentence says if there are fewer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold solve`."""
    parser.add_argument(
        "band", metavar="BAND", help=".npz of ab in LAPACK layout (kl + ku + 1, n), kl, ku; or a Matrix Market .mtx"
    )
    parser.add_argument("rhs", metavar="RHS", help="right-hand sides (n,) or (n, m): .npy or .mtx")
    parser.add_argument("-o", "--output", required=True, metavar="X.npy", help="where the solution goes")
    parser.add_argument(
        "--device", action="append", help="repeatable: block columns are distributed cyclically over the devices"
    )
    parser.add_argument(
        "--block", type=arguments.positive, metavar="S", help="block size (default: chosen for the band)"
    )
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def command(args: argparse.Namespace) -> int:
    """Runs `rayfold solve`; returns its exit code: 1 for a singular matrix."""
    result, steps = solve_files(args.band, args.rhs, args.output, args.device, args.block)
    if result["info"]:
        sentence = f"the pivot of column {result['singular_column']} (counted from 0) is exactly zero"
        print(
            f"rayfold: {args.band}: the matrix is singular: {sentence}; {args.output} is not written", file=sys.stderr
        )
    elif result["correct_digits"] < DIGITS_EXPECTED[result["dtype"]]:
        sentence = f"only {result['correct_digits']} digits of the solution are certain: the matrix is ill-conditioned"
        print(f"rayfold: {args.band}: {sentence} (rcond {result['rcond']:.1e})", file=sys.stderr)
    if args.json:
        every = -(-len(steps) // MAX_JSON_STEPS) or 1
        print(json.dumps(result if result["info"] else {**result, "step_seconds": steps[::every]}))
    elif not result["info"]:
        figures = "residual {residual:.2e}, growth {growth:.3g}, rcond {rcond:.2e}, error below {forward_bound:.1e}"
        print(f"{args.output}: {figures.format(**result)}")
        name = f"the host's {available_cores()} cores" if result["device"] == "host" else result["device"]
        seconds = result["seconds"]
        print(f"factor {seconds['factor']:.3f} s, solve {seconds['solve']:.3f} s on {name}", file=sys.stderr)
    return 1 if result["info"] else 0


def solve_files(
    band: str | Path,
    rhs: str | Path,
    output: str | Path,
    devices: list[str] | None = None,
    block: int | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Solves the system of two files and writes the solution to `output`; what `rayfold solve` reports as JSON.

    Returns the report and the seconds of each timed step. Of a singular matrix nothing is written, and `info` is
    LAPACK's: 1 + the column whose pivot is zero. `devices` are spellings as of --device; without one a GPU if there is
    one, else the host's cores. InputError for bad files.
    """
    began = time.perf_counter()
    checked_block(block)
    opened = _open_devices(devices)
    ab, kl, ku = read_band(Path(band))
    try:
        ab = checked_band(ab, kl, ku)
    except InputError as error:
        raise InputError(f"{band}: {error}") from error
    b = read_rhs(Path(rhs), ab.shape[1])
    read = time.perf_counter() - began
    began = time.perf_counter()
    lu = BandedLU(ab, kl, ku, opened, block)
    factored = time.perf_counter() - began
    common: dict[str, Any] = {"info": lu.info, "growth": lu.pivot_growth, "device": lu.device_name}
    if lu.info:
        singular: dict[str, Any] = {
            "singular_column": lu.info - 1,
            "residual": None,
            "rcond": 0.0,
            "seconds": {"factor": factored},
        }
        return common | singular, lu.step_seconds
    began = time.perf_counter()
    refined = solve_refined(lu, b)
    solved = time.perf_counter() - began
    write_npy(Path(output), refined.x)
    result: dict[str, Any] = {
        "n": lu.n, "kl": kl, "ku": ku, "right_hand_sides": b.size // lu.n, "dtype": str(lu.dtype), "block": lu.layout.s,
        "residual": lu.residual(refined.x, b), "rcond": lu.rcond(), "row_interchanges": lu.row_interchanges,
        "backward_error": refined.backward_error, "forward_bound": refined.forward_bound,
        "corrections": refined.corrections, "correct_digits": refined.correct_digits,
        "seconds": {"read": read, "factor": factored, "solve": solved, **lu.seconds}, "output": str(output),
    }  # fmt: skip
    return common | result, lu.step_seconds


def _open_devices(spellings: list[str] | None) -> tuple[Device, ...]:
    """The devices of --device; by default a GPU where there is one, else none: the host's cores by LAPACK."""
    if spellings is None:
        spellings = ["auto"] if any(found.device_type == "gpu" for found in list_devices()[0]) else []
    return tuple(open_device(spelling) for spelling in spellings)
