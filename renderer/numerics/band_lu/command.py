"""The command `rayfold solve`: a band system from files, solved by the host, one device or several.

Reads the matrix (formats/matrices.py), forms the real system of a complex one or the augmented system of least squares,
solves it (systems/system.py), writes x, and reports errors, condition and seconds as text or JSON.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np

from renderer.errors import IncompleteError, InputError, UnavailableError, UserError
from renderer.formats import matrices
from renderer.formats.npy import write_arrays
from renderer.gpu import Device, list_devices, open_device
from renderer.gpu.nvidia import may_have_gpu
from renderer.host import available_cores
from renderer.numerics.band_lu.accuracy.refinement import RefinedSolution, digits_of, relative_bounds
from renderer.numerics.band_lu.block_columns import SingularMatrix
from renderer.numerics.band_lu.complex_systems import RealForm, checked_complex, real_form
from renderer.numerics.band_lu.solver import checked_block, shaped_band
from renderer.numerics.band_lu.systems.least_squares import Augmented, augmented
from renderer.numerics.band_lu.systems.reordering import narrowing_order
from renderer.numerics.band_lu.systems.system import System
from renderer.plain import Json
from renderer.records import dataclass, fields
from renderer.system import arguments, trust
from renderer.system.files import resolve
from renderer.system.outputs import check_output, check_suffix, own_outputs, writing
from renderer.system.progress import Progress

MAX_JSON_STEPS = 64  # entries of step_seconds in the JSON
PRECISIONS: dict[str, Literal["f4", "f8"]] = {"float32": "f4", "float64": "f8"}
MIN_PRODUCTS_OF_DEVICE = 1 << 25  # products of a residual for which a CPU device is opened, in 0.15 s or more
ACCURACY = ("residual", "rcond", "backward_error", "forward_bound", "forward_bounds", "correct_digits")
OPTIONS: dict[str, dict[str, Any]] = {
    "band": dict(metavar="BAND", help=".npz of ab in LAPACK layout (kl + ku + 1, n), kl, ku; Matrix Market .mtx; "
                 "SciPy's .npz; a square .npy; of real or complex numbers"),
    "rhs": dict(metavar="RHS", help="right-hand sides (n,) or (n, m): .npy or .mtx"),
    "-o --output": dict(required=True, metavar="X.npy", help="where the solution goes"),
    "--device": dict(action="append", help="repeatable: block columns are distributed cyclically over the GPUs"),
    "--block": dict(type=arguments.positive, metavar="S", help="block size (default: chosen for the band)"),
    "--precision": dict(choices=PRECISIONS, help="of the factors (default: the matrix's); float32 factors of a float64 "
                        "matrix are refined to float64"),
    "--certified": dict(metavar="RADIUS.npy", help="prove a radius r around every component of x, which the exact "
                        "component is within, -log10(r / |x|) digits: in about the time of a solution for conditions "
                        "up to 1e6 and M-matrices, else by n more solutions; with --extended for conditions up to "
                        "1e28 (guide: band_lu.md)"),
    "--refine": dict(choices=("none", "auto"), default="auto", help="auto corrects x until corrections are below its "
                     "last bit; none solves once, as LAPACK's gbsv, and bounds no error (default: auto)"),
}  # fmt: skip
FLAGS = {
    "--cholesky": "the matrix is symmetric positive definite: L L^T on the host, half the operations",
    "--extended": "factor in twice the precision of float64 too: for conditions up to 1e30, on the host, slowly",
    "--least-squares": "minimize |A x - b| for a matrix of more rows than columns, without normal equations",
    "--trans": "solve with the transposed matrix",
    "--natural-order": "keep the order of rows and columns where another one makes the band narrower",
    "--json": "print exactly one JSON object",
    "--force": arguments.FORCE,
}
LEAST_PROVEN_RCOND = 1e-15  # no proof of --certified, in float64, is to be expected for smaller ones
LEAST_EXTENDED_RCOND = 1e-30  # nor any digit of --extended
DIGITS_EXPECTED = {"float32": 2, "float64": 6}  # a warning is printed if fewer digits of the solution are correct


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold solve`."""
    for name, options in OPTIONS.items():
        parser.add_argument(*name.split(), **options)
    for name, text in FLAGS.items():
        parser.add_argument(name, action="store_true", help=text)
    trust.add_arguments(parser, ("band", "rhs", "output", "certified"))


@dataclass(frozen=True)
class SolveRequest:
    """The arguments of `rayfold solve`; `device` lists spellings of --device, by default a GPU if there is one."""

    band: str | Path
    rhs: str | Path
    output: str | Path
    device: list[str] | None = None
    block: int | None = None
    trans: bool = False
    precision: str | None = None
    natural_order: bool = False
    certified: str | Path | None = None  # the file for the radii
    cholesky: bool = False
    least_squares: bool = False
    extended: bool = False
    refine: str = "auto"

    def check(self) -> None:
        """UserError or InputError for arguments that do not go together."""
        checked_block(self.block)
        taken = {resolve(path): "an input file, which it would replace" for path in (self.band, self.rhs)}
        for option, output in (("-o", self.output), ("--certified", self.certified)):
            if output is not None:
                check_output(output)
                check_suffix(option, output, ".npy")
                if reason := taken.get(resolve(output)):
                    raise UserError(f"{option} {output}: is {reason}; name another file")
                taken[resolve(output)] = "the same file as -o"
        if self.refine == "none" and (self.extended or self.certified is not None):
            raise UserError("--refine none goes with neither --extended nor --certified, which prove or refine x")
        if self.least_squares and (self.trans or self.cholesky or self.natural_order):
            raise UserError("--least-squares goes with none of --trans, --cholesky and --natural-order")


def command(args: argparse.Namespace) -> int:
    """Runs `rayfold solve`; returns its exit code: 1 for a singular matrix, 3 if no digit is certain."""
    options = {field.name: getattr(args, field.name) for field in fields(SolveRequest)}
    request = SolveRequest(**options)
    request.check()
    with own_outputs(args.output, args.certified, force=args.force):
        result, steps = solve_files(request)
    is_estimate = args.refine == "auto" and not args.certified and not result["info"]
    if result["reordered"]:
        before, after = (f"{d['kl'] + d['ku'] + 1} diagonals" for d in (result["natural"], result))
        _warn(args, f"reordered by reverse Cuthill-McKee: {before} before, {after} now")
    if result["info"]:
        sentence = f"{SingularMatrix(result['singular_column'])}; {args.output} is not written"
        dependent = f"the first {result['singular_column'] + 1} columns depend on each other"
        _warn(args, f"{sentence}; {dependent}, or kl and ku are exchanged")
    elif is_estimate and result["correct_digits"] < DIGITS_EXPECTED[result["dtype"]]:
        _warn(args, doubt(result, "--certified", "" if args.extended else "--extended"))
    if args.json:
        every = -(-len(steps) // MAX_JSON_STEPS) or 1  # prints every so many steps
        print(json.dumps(result if result["info"] else {**result, "step_seconds": steps[::every]}))
    elif not result["info"]:
        print(f"{args.output}: {_verdict(result)}")
        if args.certified:
            zeros = " that is not 0 to {digits} digits, {zeros} of 0 to within {radius_of_zeros:.1e}"
            figures = zeros if result["certified"]["zeros"] else " to {digits} digits"
            line = f"{{output}}: every component{figures}, proven in {{seconds:.3g}} s; x{{least}} has the fewest"
            print(line.format(**result["certified"]))
        name = f"the host's {available_cores()} cores" if result["device"] == "host" else result["device"]
        seconds = result["seconds"]
        print(f"factor {seconds['factor']:.3f} s, solve {seconds['solve']:.3f} s on {name}", file=sys.stderr)
    return 1 if result["info"] else IncompleteError.exit_code if is_estimate and not result["correct_digits"] else 0


def _warn(args: argparse.Namespace, sentence: str) -> None:
    print(f"rayfold: {args.band}: {sentence}", file=sys.stderr)


def doubt(result: Json, certified: str, extended: str) -> str:
    """Says how few digits of the solution of a report are certain, and which options may help.

    `certified` and `extended` are their spellings, `extended` "" where it was given. Near a singular matrix there is no
    proof in float64; but unlike scales of the columns make rcond as small, and there is one.
    """
    is_beyond = result["rcond"] < LEAST_EXTENDED_RCOND
    help = f"helps down to an rcond of {LEAST_EXTENDED_RCOND:g}" if is_beyond else "computes with twice the digits"
    advice = f"; {extended} {help}" if extended else ""
    if result["forward_bound"] is None:
        scales = "" if result["rcond"] > LEAST_PROVEN_RCOND else ", where columns of unlike scales are the reason"
        sentence = f"no bound of the error can be shown, so no digit is certain; {certified} may prove some{scales}"
    else:
        reason = "the condition of the matrix, the growth of its factors or the spread of its scales costs the others"
        sentence = f"only {result['correct_digits']} digits of the solution are certain: {reason}"
    return f"{sentence} (rcond {result['rcond']:.1e}{_of_scaled(result)}, growth {result['growth']:.1e}){advice}"


def _of_scaled(result: Json) -> str:
    """Names the matrix whose rcond a report gives, unless it is the matrix of the file."""
    return " of the equilibrated matrix" if result.get("equilibrated") else ""


def _verdict(result: Json) -> str:
    """The figures of a solution's accuracy in one line."""
    if result["refine"] == "none":
        return "solved once, without a bound of the error"
    bound = "error below {forward_bound:.1e} of the largest component"
    bound += "" if "certified" in result else "; of small ones it says nothing: --certified R.npy bounds each"
    if result["forward_bound"] is None:
        bound = "no estimate of the error beside the proof" if "certified" in result else "no bound of the error"
    figures = "residual {residual:.2e} of n |A| |x|, growth {growth:.3g}, rcond {rcond:.2e}" + _of_scaled(result)
    return f"{figures}, {bound}".format(**result)


def solve_files(request: SolveRequest) -> tuple[Json, list[dict[str, float]]]:
    """Solves the system of two files and writes the solution; returns the report of --json and the seconds by steps.

    If the matrix is singular nothing is written, and `info` in the report is LAPACK's: 1 + the column whose pivot is
    zero. For least squares (least_squares.py) the report is about the augmented system; for complex systems
    (complex_systems.py) kl, ku and growth belong to the real form. InputError for bad files; IncompleteError, after the
    solution was written and old radii were removed, if the radii of --certified cannot be proven.
    """
    began = time.perf_counter()
    request.check()
    devices = () if request.cholesky and request.device is None else solving_devices(request.device)
    band, given, least_squares = _read_system(request)
    try:
        # the real form of a system with complex numbers (complex_systems.py); None if all are real
        form = real_form(band, given, request.trans)
        band, b = (form.band, form.right_hand_side(given)) if form else (band, given)
        read = time.perf_counter() - began
        began = time.perf_counter()
        if band.is_rounded and request.certified is not None:
            raise InputError(
                "entries of one place add up to numbers that float64 does not hold; nothing can be certified"
            )
        with np.errstate(over="ignore"):  # True if b would be rounded to the float32 of the matrix
            loses_digits = band.ab.dtype == np.float32 and not np.array_equal(b.astype("f4"), b)
        in_double = request.certified is not None or request.extended or loses_digits
        residual_device = devices[0] if devices else _residual_device(band.ab.size * max(b.size // len(b), 1))
        is_complex_form = form is not None and form.is_matrix
        # System's block, precision, in_double and cholesky
        options = request.block, PRECISIONS.get(request.precision or ""), in_double, request.cholesky
        system = System(band, request.trans, devices, *options, residual_device, is_complex_form, overwrite_ab=True)
    except InputError as error:
        raise InputError(f"{request.band}: {error}") from error
    factored, lu = time.perf_counter() - began, system.lu
    result: Json = {
        "info": lu.info, "growth": lu.pivot_growth, "device": lu.device_name, "kl": system.kl, "ku": system.ku,
        "equilibrated": system.scaling is not None, "reordered": band.order is not None,
        "natural": dict(zip(("kl", "ku"), band.natural, strict=True)),
    }  # fmt: skip
    if lu.info:
        return result | {
            "singular_column": (lu.info - 1) // (2 if is_complex_form else 1),  # two real columns for a complex one
            "residual": None,
            "rcond": 0.0,
            "seconds": {"factor": factored},
        }, lu.step_seconds
    began = time.perf_counter()
    with Progress(1, "refining the solution") as progress:
        y, refined = system.solve(b, request.extended, request.refine == "auto")
        progress.advance()
    solved = time.perf_counter() - began
    # each of the two solves for other unknowns y than the file's x; least squares of complex numbers were refused
    transformation = least_squares or form
    x, radius = transformation.solution(y, refined.error) if transformation else (y, refined.error)
    if request.certified is not None:  # old radii do not belong to the new solution, whatever becomes of the proof
        with writing(request.certified):
            resolve(Path(request.certified)).unlink(missing_ok=True)
    write_arrays(request.output, x)
    result |= {
        "n": lu.n, "right_hand_sides": b.size // lu.n, "dtype": str(lu.dtype), "block": lu.layout.s,
        "precision": str(lu.precision), "row_interchanges": lu.row_interchanges, "refine": request.refine,
        "corrections": refined.corrections, "extended": request.extended, **dict.fromkeys(ACCURACY),
        "seconds": {"read": read, "factor": factored, "solve": solved, **lu.seconds}, "output": str(request.output),
    }  # fmt: skip
    if request.refine == "auto":
        result |= accuracy(system, refined, relative_bounds(x, radius))
    if form:
        order = lu.n // 2 if form.is_matrix else lu.n
        result |= {"n": order, "right_hand_sides": given.size // order, "complex": True}
    if least_squares:
        norm = float(least_squares.residual_norms(y).max())
        shape = {"rows": least_squares.rows, "columns": least_squares.columns}
        result["least_squares"] = {**shape, "residual_norm": norm}
    if request.certified is not None:
        try:
            result["certified"] = _certify(system, b, refined, request.certified, transformation)
        except IncompleteError as error:
            more = "" if request.extended else "; --extended proves in twice the precision"
            raise IncompleteError(f"{error}; {request.output} is written without {request.certified}{more}") from error
    return result, lu.step_seconds


def _read_system(request: SolveRequest) -> tuple[matrices.Band, np.ndarray, Augmented | None]:
    """The matrix and the right-hand sides; for least squares of the augmented system, which is the third result."""
    path, rhs = Path(request.band), Path(request.rhs)
    if not request.least_squares:
        band = matrices.read_band(path, None if request.natural_order else narrowing_order)
        try:  # both functions check kl, ku and the shape of ab
            (checked_complex if band.ab.dtype.kind == "c" else shaped_band)(band.ab, band.kl, band.ku)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        return band, matrices.read_rhs(rhs, band.ab.shape[1]), None
    entries = matrices.read_rectangular(path)
    try:
        system = augmented(entries)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    b = matrices.read_rhs(rhs, system.rows)
    if b.dtype.kind == "c":
        raise InputError(f"{rhs}: holds {b.dtype}; least squares take real numbers")
    return matrices.narrowest_band(path, system.entries, narrowing_order), system.right_hand_side(b), system


def accuracy(system: System, refined: RefinedSolution, bounds: np.ndarray) -> Json:
    """Entries of the report: ACCURACY, growth, equilibrated; `bounds` are one a right-hand side, null for none."""
    lu = system.lu
    bound = float(bounds.max(initial=0.0))
    known = [float(value) if np.isfinite(value) else None for value in (bound, *bounds)]
    return {
        "residual": lu.backward_error(refined.scaled, refined.residual), "rcond": lu.rcond(),
        "backward_error": refined.backward_error, "forward_bound": known[0], "forward_bounds": known[1:],
        "correct_digits": digits_of(bound), "growth": lu.pivot_growth, "equilibrated": system.scaling is not None,
    }  # fmt: skip


def _certify(
    system: System,
    b: np.ndarray,
    refined: RefinedSolution,
    path: str | Path,
    transformation: Augmented | RealForm | None,
) -> Json:
    """Proves the radii of all components and writes them to a file; returns their entry in the report."""
    began = time.perf_counter()
    with Progress(system.lu.n, "rows of the proof") as progress:
        radius, enclosure = system.certify(b, refined, progress.advance)
    x, radii = transformation.solution(refined.x, radius) if transformation else (refined.x, radius)
    write_arrays(path, radii)
    errors = np.divide(radii, np.abs(x), out=np.zeros(x.shape), where=x != 0)
    least = [int(i) for i in np.unravel_index(errors.argmax(), x.shape)]
    seconds = time.perf_counter() - began
    digits, proof = enclosure.certain_digits, {"proof": enclosure.proof, "norm": enclosure.norm}
    zeros = radius[(refined.x == 0) & (radius > 0)]
    facts = {"digits": digits, "least": least, "zeros": zeros.size, "radius_of_zeros": float(zeros.max(initial=0))}
    return {"output": str(path), **facts, **proof, "seconds": seconds}


def _residual_device(products: int) -> Device | None:
    """A CPU device for the residuals of systems that the host factors, if that pays for `products`; else None."""
    is_there = products >= MIN_PRODUCTS_OF_DEVICE and any(d.device_type == "cpu" for d in list_devices()[0])
    try:
        return open_device("cpu") if is_there else None
    except UnavailableError:  # NumPy computes the same bits
        return None


def solving_devices(spellings: list[str] | None) -> tuple[Device, ...]:
    """The devices of --device; by default a GPU, or none if there is no GPU: the host then uses LAPACK."""
    if spellings is None:
        has_gpu = may_have_gpu() and any(found.device_type == "gpu" for found in list_devices()[0])
        spellings = ["auto"] if has_gpu else []
    return tuple(open_device(spelling) for spelling in spellings)
