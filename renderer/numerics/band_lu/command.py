"""`rayfold solve`: a banded system from files, on the host's cores, on one device or on several."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from renderer import arguments
from renderer.errors import InputError, UnavailableError, UserError
from renderer.formats.matrices import Band, band_of, check_npy_name, read_band, read_rectangular, read_rhs, write_npy
from renderer.gpu import Device, list_devices, open_device
from renderer.host import available_cores
from renderer.numerics.band_lu.complex_systems import RealForm, checked_complex, real_form
from renderer.numerics.band_lu.least_squares import Augmented, augmented
from renderer.numerics.band_lu.refinement import RefinedSolution
from renderer.numerics.band_lu.reordering import narrowing_order
from renderer.numerics.band_lu.solver import checked_block, shaped_band
from renderer.numerics.band_lu.system import System
from renderer.progress import Progress

MAX_JSON_STEPS = 64  # of step_seconds that the JSON holds
PRECISIONS = {"float32": "f4", "float64": "f8"}
MIN_ELEMENTS_OF_DEVICE = 1 << 22  # of a band; opening a CPU device takes 0.1 s or more
DIGITS_EXPECTED = {"float32": 2, "float64": 6}  # of a solution; a sentence says if there are fewer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold solve`."""
    parser.add_argument(
        "band",
        metavar="BAND",
        help=".npz of ab in LAPACK layout (kl + ku + 1, n), kl, ku; Matrix Market .mtx; SciPy's .npz; a square .npy; "
        "of real or complex numbers",
    )
    parser.add_argument("rhs", metavar="RHS", help="right-hand sides (n,) or (n, m): .npy or .mtx")
    parser.add_argument("-o", "--output", required=True, metavar="X.npy", help="where the solution goes")
    parser.add_argument(
        "--device", action="append", help="repeatable: block columns are distributed cyclically over the devices"
    )
    parser.add_argument(
        "--block", type=arguments.positive, metavar="S", help="block size (default: chosen for the band)"
    )
    parser.add_argument(
        "--cholesky",
        action="store_true",
        help="the matrix is symmetric positive definite: L L^T on the host, half the operations",
    )
    parser.add_argument(
        "--extended",
        action="store_true",
        help="factor in twice the precision of float64 too: for conditions up to 1e30, on the host, slowly",
    )
    parser.add_argument(
        "--least-squares",
        action="store_true",
        help="minimize |A x - b| for a matrix of more rows than columns, without normal equations",
    )
    parser.add_argument("--trans", action="store_true", help="solve with the transposed matrix")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        help="of the factors (default: the matrix's); float32 factors of a float64 matrix are refined to float64",
    )
    parser.add_argument(
        "--natural-order",
        action="store_true",
        help="keep the order of rows and columns where another one makes the band narrower",
    )
    parser.add_argument(
        "--certified",
        metavar="RADIUS.npy",
        help="prove a radius around every component of x, which the exact component is within; takes n more solves",
    )
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def command(args: argparse.Namespace) -> int:
    """Runs `rayfold solve`; returns its exit code: 1 for a singular matrix."""
    files = args.band, args.rhs, args.output
    choices = args.device, args.block, args.trans, args.precision, args.natural_order, args.certified, args.cholesky
    result, steps = solve_files(*files, *choices, args.least_squares, args.extended)
    if result["reordered"]:
        before, after = (f"{d['kl'] + d['ku'] + 1} diagonals" for d in (result["natural"], result))
        print(
            f"rayfold: {args.band}: reordered by reverse Cuthill-McKee: {before} before, {after} now", file=sys.stderr
        )
    if result["info"]:
        sentence = f"the pivot of column {result['singular_column']} (counted from 0) is exactly zero"
        print(
            f"rayfold: {args.band}: the matrix is singular: {sentence}; {args.output} is not written", file=sys.stderr
        )
    elif result["correct_digits"] < DIGITS_EXPECTED[result["dtype"]]:
        sentence = f"only {result['correct_digits']} digits of the solution are certain: the matrix is ill-conditioned"
        advice = "" if args.extended else "; --extended computes with twice as many"
        print(f"rayfold: {args.band}: {sentence} (rcond {result['rcond']:.1e}){advice}", file=sys.stderr)
    if args.json:
        every = -(-len(steps) // MAX_JSON_STEPS) or 1
        print(json.dumps(result if result["info"] else {**result, "step_seconds": steps[::every]}))
    elif not result["info"]:
        figures = "residual {residual:.2e}, growth {growth:.3g}, rcond {rcond:.2e}, error below {forward_bound:.1e}"
        print(f"{args.output}: {figures.format(**result)}")
        name = f"the host's {available_cores()} cores" if result["device"] == "host" else result["device"]
        seconds = result["seconds"]
        if args.certified:
            figures = "{output}: every component to {digits} digits, proven in {seconds:.3g} s"
            print(figures.format(**result["certified"]))
        print(f"factor {seconds['factor']:.3f} s, solve {seconds['solve']:.3f} s on {name}", file=sys.stderr)
    return 1 if result["info"] else 0


def solve_files(
    band: str | Path,
    rhs: str | Path,
    output: str | Path,
    devices: list[str] | None = None,
    block: int | None = None,
    trans: bool = False,
    precision: str | None = None,
    natural_order: bool = False,
    certified: str | Path | None = None,
    cholesky: bool = False,
    least_squares: bool = False,
    extended: bool = False,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Solves the system of two files and writes the solution to `output`; what `rayfold solve` reports as JSON.

    Returns the report and the seconds of each timed step. Of a singular matrix nothing is written, and `info` is
    LAPACK's: 1 + the column whose pivot is zero. `devices` are spellings as of --device; without one a GPU if there is
    one, else the host's cores. The radii of --certified go to that file; where they cannot be proven IncompleteError
    is raised after the solution was written. With `least_squares` the matrix may have more rows than columns, and the
    report is that of the augmented system (least_squares.py). `extended` factors in twice the precision too
    (extended.py). Complex systems are solved as real ones (complex_systems.py), whose kl, ku and growth the report
    has. InputError for bad files.
    """
    began = time.perf_counter()
    checked_block(block)
    if certified is not None:
        check_npy_name(Path(certified), "--certified")
        if Path(certified).resolve() == Path(output).resolve():
            raise UserError(f"--certified {certified}: the same file as -o; the radii need one of their own")
    if least_squares and (trans or cholesky or natural_order):
        raise UserError("--least-squares goes with none of --trans, --cholesky and --natural-order")
    opened = () if cholesky and devices is None else _open_devices(devices)
    found, given, system_of = _read_system(Path(band), Path(rhs), natural_order, least_squares)
    try:
        form = real_form(found, given, trans)
        found, b = (form.band, form.right_hand_side(given)) if form else (found, given)
        read = time.perf_counter() - began
        began = time.perf_counter()
        choices = block, PRECISIONS.get(precision or ""), certified is not None or extended, cholesky
        system = System(found, trans, opened, *choices, opened[0] if opened else _residual_device(found.ab.size))
    except InputError as error:
        raise InputError(f"{band}: {error}") from error
    factored, lu = time.perf_counter() - began, system.lu
    result: dict[str, Any] = {
        "info": lu.info, "growth": lu.pivot_growth, "device": lu.device_name, "kl": system.kl, "ku": system.ku,
        "equilibrated": system.scaling is not None, "reordered": found.order is not None,
        "natural": dict(zip(("kl", "ku"), found.natural, strict=True)),
    }  # fmt: skip
    if lu.info:
        return result | {
            "singular_column": (lu.info - 1) // (2 if form and form.is_matrix else 1),
            "residual": None,
            "rcond": 0.0,
            "seconds": {"factor": factored},
        }, lu.step_seconds
    began = time.perf_counter()
    x, refined = system.solve(b, extended)
    solved = time.perf_counter() - began
    part = system_of or form
    write_npy(Path(output), part.solution(x) if part else x)
    own = system.own_rhs(b)
    result |= {
        "n": lu.n, "right_hand_sides": b.size // lu.n, "dtype": str(lu.dtype), "block": lu.layout.s,
        "precision": str(lu.precision), "residual": lu.residual(refined.x, own), "rcond": lu.rcond(),
        "row_interchanges": lu.row_interchanges, "backward_error": refined.backward_error,
        "forward_bound": refined.forward_bound, "corrections": refined.corrections,
        "correct_digits": refined.correct_digits, "extended": extended,
        "seconds": {"read": read, "factor": factored, "solve": solved, **lu.seconds}, "output": str(output),
    }  # fmt: skip
    if form:
        order = lu.n // 2 if form.is_matrix else lu.n
        result |= {"n": order, "right_hand_sides": given.size // order, "complex": True}
    if system_of:
        norm = float(system_of.residual_norms(x).max())
        result["least_squares"] = {"rows": system_of.rows, "columns": system_of.columns, "residual_norm": norm}
        result |= _bounds_of_part(refined.forward_bound, x, x[system_of.rows :])
    if certified is not None:
        result["certified"] = _certify(system, b, refined, certified, part)
    return result, lu.step_seconds


def _read_system(
    band: Path, rhs: Path, natural_order: bool, least_squares: bool
) -> tuple[Band, np.ndarray, Augmented | None]:
    """The matrix and right-hand sides of two files; for least squares those of the augmented system, and that."""
    if not least_squares:
        found = read_band(band, None if natural_order else narrowing_order)
        try:
            (checked_complex if found.ab.dtype.kind == "c" else shaped_band)(found.ab, found.kl, found.ku)
        except InputError as error:
            raise InputError(f"{band}: {error}") from error
        return found, read_rhs(rhs, found.ab.shape[1]), None
    entries = read_rectangular(band)
    try:
        system = augmented(entries)
    except InputError as error:
        raise InputError(f"{band}: {error}") from error
    b = read_rhs(rhs, system.rows)
    if b.dtype.kind == "c":
        raise InputError(f"{rhs}: holds {b.dtype}; least squares take real numbers")
    return band_of(band, system.entries, narrowing_order), system.right_hand_side(b), system


def _bounds_of_part(bound: float, whole: np.ndarray, part: np.ndarray) -> dict[str, Any]:
    """The forward bound and digits of some components, of a bound that is relative to the largest of all."""
    largest, own = (np.abs(v.reshape(len(v), -1)).max(axis=0) for v in (whole, part))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.where(largest == 0, 1.0, largest / own).max())
    scaled = RefinedSolution(part, 0.0, bound * ratio, 0)
    return {"forward_bound": scaled.forward_bound, "correct_digits": scaled.correct_digits}


def _certify(
    system: System, b: np.ndarray, refined: RefinedSolution, path: str | Path, part: Augmented | RealForm | None
) -> dict[str, Any]:
    """Proves the radii of all components and writes them; what the report says of them."""
    began = time.perf_counter()
    with Progress(system.lu.n, "rows") as progress:
        radius, enclosure = system.certify(b, refined, progress.advance)
    write_npy(Path(path), part.radius(radius) if part else radius)
    seconds = time.perf_counter() - began
    digits = enclosure.certain_digits
    return {"output": str(path), "digits": digits, "norm": enclosure.norm, "seconds": seconds}


def _residual_device(elements: int) -> Device | None:
    """A CPU device for the residuals of the host's factors, where the band is so large that opening it pays."""
    is_there = elements >= MIN_ELEMENTS_OF_DEVICE and any(d.device_type == "cpu" for d in list_devices()[0])
    try:
        return open_device("cpu") if is_there else None
    except UnavailableError:  # NumPy computes the same bits
        return None


def _open_devices(spellings: list[str] | None) -> tuple[Device, ...]:
    """The devices of --device; by default a GPU where there is one, else none: the host's cores by LAPACK."""
    if spellings is None:
        spellings = ["auto"] if any(found.device_type == "gpu" for found in list_devices()[0]) else []
    return tuple(open_device(spelling) for spelling in spellings)
