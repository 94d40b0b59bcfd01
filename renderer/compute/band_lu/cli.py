"""`main.py solve`: files in, files out."""

import json
import sys
import time
import zipfile
from pathlib import Path

import numpy as np

from renderer import BadInput, MachineCannot, UserError
from renderer.compute.band_lu import memory
from renderer.compute.band_lu.blocks import cores
from renderer.compute.band_lu.host import STEPS
from renderer.compute.band_lu.solver import BandedLU, checked_band, checked_block
from renderer.gpu import Device, find_devices, open_device

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
SHOWN = 64  # steps of the timeline that the JSON holds at most


def solve(args) -> int:
    """Reads BAND.npz and RHS.npy, solves, writes X.npy; exit code 1 for a singular matrix."""
    began = time.perf_counter()
    checked_block(args.block)
    devices = chosen_devices(args.device)
    ab, kl, ku = read_band(Path(args.band))
    try:
        ab = checked_band(ab, kl, ku)
    except BadInput as error:
        raise BadInput(f"{args.band}: {error}") from error
    b = read_sides(Path(args.rhs), ab.shape[1])
    read = time.perf_counter() - began
    began = time.perf_counter()
    lu = BandedLU(ab, kl, ku, devices, args.block)
    factored = time.perf_counter() - began
    if lu.info:
        return tell_singular(args, lu, factored)
    began = time.perf_counter()
    x = lu.solve(b)
    solved = time.perf_counter() - began
    write_array(Path(args.output), x)
    seconds = {part: sum(step[part] for step in lu.timeline) for part in STEPS}
    seconds = {"read": read, "factor": factored, "substitute": solved, **seconds}
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
    return f"the host's {cores()} cores" if lu.where == "host" else lu.where


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


def read_band(path: Path) -> tuple[np.ndarray, int, int]:
    """ab, kl and ku of an .npz file, each array's size checked against the memory before it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            missing = [name for name in ("ab", "kl", "ku") if f"{name}.npy" not in names]
            if missing:
                there = ", ".join(name.removesuffix(".npy") for name in names[:9]) or "nothing"
                raise BadInput(
                    f"{path}: holds no {missing[0]!r}; a band file holds ab, kl and ku, and this one holds {there}"
                )
            ab = _member(path, archive, "ab")
            sizes = [_member(path, archive, name, most=64) for name in ("kl", "ku")]
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise BadInput(f"{path}: not a band file (.npz with ab, kl, ku): {error}") from error
    for name, value in zip(("kl", "ku"), sizes, strict=True):
        if value.size != 1 or value.dtype.kind not in "iu" or value.ravel()[0] < 0:
            shown = value.ravel()[0] if value.size == 1 else f"an array {value.shape}"
            raise BadInput(f"{path}: {name} is {shown} ({value.dtype}); it must be one whole number of at least 0")
    kl, ku = (int(value.ravel()[0]) for value in sizes)
    return ab, kl, ku


def _member(path: Path, archive: zipfile.ZipFile, name: str, most: int | None = None) -> np.ndarray:
    """One array of an .npz file."""
    with archive.open(f"{name}.npy") as file:
        shape, fortran, dtype = _header(path, name, file)
        needed = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if most is not None and needed > most:
            raise BadInput(f"{path}: {name} is {shape}; it must be one whole number")
        _check_room(path, name, needed)
        data = file.read(needed)
    if len(data) < needed:
        raise BadInput(f"{path}: {name} ends after {len(data)} of {needed} bytes")
    array = np.frombuffer(data, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _header(path: Path, name: str, file) -> tuple:
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise BadInput(f"{path}: {name} is a .npy of version {version}; this program reads 1.0 and 2.0")
    shape, fortran, dtype = HEADERS[version](file)
    if dtype.hasobject or dtype.kind not in "fiu" or dtype.itemsize > 8 or not dtype.isnative:
        raise BadInput(f"{path}: {name} is of {dtype}; it must be of real numbers of this machine's byte order")
    return shape, fortran, dtype


def _check_room(path: Path, name: str, needed: int) -> None:
    free = memory.available()
    if needed > free:
        told = memory.told
        raise MachineCannot(f"{path}: {name} takes {told(needed)} of memory, and {told(free)} are free here")


def read_sides(path: Path, n: int) -> np.ndarray:
    """The right-hand sides (n,) or (n, m) of a .npy file."""
    try:
        with open(path, "rb") as file:
            shape, fortran, dtype = _header(path, "the right-hand side", file)
            if len(shape) not in (1, 2) or shape[0] != n:
                raise BadInput(f"{path}: is {shape}; the matrix has {n} rows, so it must be ({n},) or ({n}, m)")
            needed = int(np.prod(shape, dtype=object)) * dtype.itemsize
            _check_room(path, "the right-hand side", needed)
            data = file.read(needed)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise BadInput(f"{path}: not a .npy file: {error}") from error
    if len(data) < needed:
        raise BadInput(f"{path}: ends after {len(data)} of {needed} bytes")
    array = np.frombuffer(data, dtype)
    array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
    wrong = ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(1, bool)
    if wrong.any():
        place = [int(k) for k in np.argwhere(wrong)[0]]
        raise BadInput(f"{path}: element {place} is {array[tuple(place)]}; it must be finite")
    return array


def write_array(path: Path, array: np.ndarray) -> None:
    """Writes a .npy file whole or not at all."""
    from renderer.image import replacing  # the one place that knows how files are replaced

    if path.suffix.lower() != ".npy":
        raise UserError(f"--output {path}: must end in .npy")
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.save(file, array, allow_pickle=False)
