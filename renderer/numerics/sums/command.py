"""`rayfold sum`: sums and other aggregates of .npy and .npz files, on one device, several, or Dask workers."""

import argparse
import json
import math
import operator
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

import numpy as np

from renderer import arguments
from renderer.errors import InputError, UserError
from renderer.farm import Farm, open_client, parse_farm
from renderer.formats.npy import COMPLEX, REAL, SUMMABLE, ArraySource, PipeSource, open_npy, open_pipe
from renderer.formats.npz_arrays import open_npz
from renderer.gpu import Device, DeviceContext, open_context
from renderer.gpu.gl import GlContext
from renderer.host import available_cores
from renderer.numerics.sums import aggregates
from renderer.numerics.sums.by_key import reduce_by_key
from renderer.numerics.sums.device_sums import MODES, array_sum, empty_sum
from renderer.numerics.sums.exact_sum import ExactSum, mean_of
from renderer.numerics.sums.gl_sums import array_sum_gl, pairwise_sum_gl
from renderer.numerics.sums.textbook import textbook_sums
from renderer.progress import Progress

STATISTICS = ("sum", "mean", "variance", "min", "max", "norm", "dot", "weighted-mean")
PAIRED = ("dot", "weighted-mean")  # statistics of two arrays
OF_COMPLEX = ("sum", "mean", "variance", "norm")  # statistics of complex numbers
READ_ONCE = ("sum", "mean", "min", "max")  # statistics that a pipe can give
TASK_BYTES = 1 << 28  # of numbers that one task of a farm sums


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold sum`."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE.npy",
        help="read in chunks, never at once; all arrays of a .npz; - is a .npy on stdin; sums run over all of them",
    )
    parser.add_argument("--mode", choices=MODES, default="exact", help="default: exact")
    parser.add_argument(
        "--device", action="append", help="repeatable: several devices share the chunks; gl: by OpenGL fragment passes"
    )
    parser.add_argument("--statistic", choices=STATISTICS, default="sum", help="made from exact sums, rounded once")
    parser.add_argument(
        "--ddof", type=arguments.count, default=0, metavar="N", help="of --statistic variance: divides by count - N"
    )
    parser.add_argument("--by", metavar="KEYS.npy", help="aggregates by key: integers, as many as there are numbers")
    parser.add_argument(
        "--bound",
        action="store_true",
        help="also print the error of pairwise summation in the input's precision, and its a-priori bound",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="also print the sums of the textbooks in the input's precision, and their errors",
    )
    where = "local:N processes, or a scheduler at tls://HOST:PORT or tcp://HOST:PORT"
    parser.add_argument("--farm", metavar="WHERE", help=where)
    reason = "allow a tcp:// farm, where whoever reaches it can run code"
    parser.add_argument("--insecure", action="store_true", help=reason)
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")


def command(args: argparse.Namespace) -> int:
    """Runs `rayfold sum`; returns its exit code."""
    farm = parse_farm(args.farm, "", args.insecure) if args.farm else None
    devices = tuple(args.device or ())
    result = sum_files(
        args.files, args.mode, args.statistic, args.by, args.bound, devices, farm, args.ddof, args.compare
    )
    if args.json:
        print(json.dumps(_in_json(result), allow_nan=False))
    else:
        _print(result)
    return 0


def sum_files(
    paths: Sequence[str | Path],
    mode: str = "exact",
    statistic: str = "sum",
    by: str | None = None,
    bound: bool = False,
    devices: tuple[str, ...] = (),
    farm: Farm | None = None,
    ddof: int = 0,
    compare: bool = False,
) -> dict[str, Any]:
    """What `rayfold sum` reports of .npy and .npz files, as it goes into JSON: value, count, dtype, seconds and more.

    `devices` are spellings as of --device, `by` is a file of keys, `farm` Dask workers, `ddof` what a variance's
    divisor is less than the count. UserError for combinations that do not go together, InputError for bad files.
    """
    files = [source for path in paths for source in _open_sources(path)]
    _check(files, mode, statistic, by, bound or compare, devices, farm, ddof)
    uses_gl = devices == ("gl",)
    gpu = open_context(*(() if uses_gl else devices))
    if uses_gl:
        gpu.gl  # noqa: B018  (opened before the clock starts)
    elif not farm:
        gpu.devices  # noqa: B018  (opened and probed before the clock starts)
    started = time.perf_counter()
    if uses_gl:
        result = _sum_by_gl(gpu.gl, statistic, files)
    elif by:
        result = _by_key(by, files[0])
    elif statistic != "sum":
        result = _statistic(gpu, statistic, files, devices, farm, ddof)
    else:
        result = _sum(gpu, files, mode, devices, farm)
    seconds = time.perf_counter() - started
    result |= {
        "statistic": statistic,
        "mode": mode,
        "count": sum(npy.count for npy in files),
        "dtype": str(files[0].dtype),
        "devices": result.get("devices") or [device.name for device in gpu.devices],
        "seconds": seconds,
        "bytes_per_second": sum(npy.count * npy.dtype.itemsize for npy in files) / seconds,
    }
    if bound:
        pairwise = pairwise_sum_gl(gpu.gl, files[0]) if uses_gl else aggregates.pairwise_sum(gpu.device, files[0])
        result |= zip(("pairwise", "pairwise_error", "pairwise_bound", "depth"), astuple(pairwise), strict=True)
    if compare:
        result["compared"] = [found._asdict() for found in textbook_sums(gpu.device, files[0])]
    return result


def _open_sources(path: str | Path) -> list[ArraySource]:
    if str(path) == "-":
        return [open_pipe(sys.stdin.buffer, "stdin", SUMMABLE, REAL + COMPLEX)]
    if str(path).lower().endswith(".npz"):
        return open_npz(path, SUMMABLE, REAL + COMPLEX)
    return [open_npy(path, SUMMABLE, True, REAL + COMPLEX)]


def _check(
    files: list[ArraySource],
    mode: str,
    statistic: str,
    by: str | None,
    bound: bool,
    devices: tuple[str, ...],
    farm: Farm | None,
    ddof: int,
) -> None:
    dtypes = {npy.dtype for npy in files}
    if len(dtypes) > 1 and statistic not in PAIRED:
        found = ", ".join(f"{npy.path} {npy.dtype}" for npy in files)
        raise InputError(f"files of several dtypes: {found}; they must have one dtype to be added up")
    if any(dtype.kind == "c" for dtype in dtypes) and statistic not in OF_COMPLEX:
        raise UserError(f"--statistic {statistic}: the numbers are complex; allowed are {', '.join(OF_COMPLEX)}")
    wanted = 1 if by or bound else 2 if statistic in PAIRED else None
    if wanted and len(files) != wanted:
        raise UserError(f"{len(files)} arrays given; --statistic, --by, --bound or --compare takes exactly {wanted}")
    if farm and (by or bound):
        raise UserError("--farm takes no --by, --bound and --compare")
    if mode != "exact" and (by or statistic != "sum"):
        raise UserError(f"--mode {mode}: --statistic and --by are made from exact sums; allowed is exact")
    if by and statistic != "sum":
        raise UserError(f"--by {by}: --statistic is {statistic}; the table by key has sums, means, counts and extremes")
    if ddof and statistic != "variance":
        raise UserError(f"--ddof {ddof}: --statistic is {statistic}; only variance takes it")
    pipes = [npy for npy in files if isinstance(npy, PipeSource)]
    if pipes and (farm or bound or statistic not in READ_ONCE or len(pipes) > 1):
        allowed = f"one of {', '.join(READ_ONCE)}, without --farm, --bound and --compare"
        raise UserError(f"stdin can be read once; allowed is {allowed}")
    if "gl" not in devices:
        return
    if len(devices) > 1:
        raise UserError("--device gl cannot be combined with other devices")
    if mode != "exact" or statistic not in ("sum", "dot") or by or farm:
        raise UserError("--device gl makes exact sums and dot products only, without --mode, --by and --farm")
    if dtypes != {np.dtype("f4")}:
        raise UserError(f"--device gl adds float32, but the files hold {', '.join(map(str, dtypes))}")


def _sum(
    gpu: DeviceContext, files: list[ArraySource], mode: str, devices: tuple[str, ...], farm: Farm | None
) -> dict[str, Any]:
    names = None
    if farm:
        with open_client(farm) as client:
            state, names = sum_on_farm(client, files, mode, devices)
    else:
        with Progress(sum(npy.count for npy in files), "numbers") as progress:
            states = [array_sum(gpu.devices, npy, mode, progress=progress.advance) for npy in files]
        state = sum(states, start=empty_sum(mode, files[0].dtype))
    if files[0].dtype.kind not in "fc":
        return {"value": state.significand, "devices": names}
    return {"value": state.rounded(), "value_in_dtype": state.rounded(files[0].dtype), "devices": names}


def _statistic(
    gpu: DeviceContext,
    name: str,
    files: list[ArraySource],
    spellings: tuple[str, ...],
    farm: Farm | None,
    ddof: int,
) -> dict[str, Any]:
    """The value of a statistic of all numbers of the files, and the devices of a farm."""
    if not farm:
        return {"value": _finish_statistic(name, _parts(gpu.devices, name, files), ddof)}
    with open_client(farm) as client:
        parts, names = parts_on_farm(client, files, name, spellings)
    return {"value": _finish_statistic(name, parts, ddof), "devices": names}


def _parts(
    devices: list[Device], name: str, files: list[ArraySource], index_range: tuple[int, int] | None = None
) -> list[Any]:
    """What the files, or a range of each, contribute: sums of the numbers and of squares or products, or extremes.

    Of a weighted mean the numbers are the weights.
    """
    if name in ("min", "max"):
        full = [npy for npy in files if npy.count]
        extreme = 1 if name == "max" else 0
        return [aggregates.minmax(devices, npy, index_range)[extreme] for npy in full]
    if name in PAIRED:
        products = array_sum(devices, files[0], y=files[1], index_range=index_range)
        return [(ExactSum() if name == "dot" else array_sum(devices, files[1], index_range=index_range), products)]
    sums, squares = empty_sum("exact", files[0].dtype), ExactSum()
    for npy in files:
        if name != "norm":
            sums += array_sum(devices, npy, index_range=index_range)
        if name != "mean":
            squares += aggregates.squares_sum(devices, npy, index_range)
    return [(sums, squares)]


def _finish_statistic(name: str, parts: list[Any], ddof: int) -> Any:
    """The statistic from the parts of all files and ranges."""
    if name in ("min", "max"):
        if not parts:
            raise InputError(f"no numbers: the arrays are empty; they have no --statistic {name}")
        if any(part != part for part in parts):
            return math.nan
        return max(parts) if name == "max" else min(parts)
    sums, squares = (reduce(operator.add, (part[k] for part in parts)) if parts else ExactSum() for k in range(2))
    if name == "mean":
        return mean_of(sums)
    if name == "dot":
        return squares.rounded()
    if name == "weighted-mean":
        return aggregates.weighted_mean_of(squares, sums)
    return aggregates.norm_of(squares) if name == "norm" else aggregates.variance_of(sums, squares, ddof)


def _by_key(keys: str, npy: ArraySource) -> dict[str, Any]:
    groups = reduce_by_key(open_npy(keys, "keys must be integers", any_layout=True), npy)
    columns = {
        "keys": groups.keys.tolist(),
        "counts": groups.counts.tolist(),
        "sums": groups.sums(),
        "means": groups.means(),
        "minimum": groups.minimum.tolist(),
        "maximum": groups.maximum.tolist(),
    }
    return {"groups": columns, "devices": [f"the host's {available_cores()} cores"]}


def _sum_by_gl(gl: GlContext, statistic: str, files: list[ArraySource]) -> dict[str, Any]:
    if statistic == "dot":
        state = array_sum_gl(gl, files[0], files[1])
    else:
        state = sum((array_sum_gl(gl, npy) for npy in files), start=empty_sum("exact", np.float32))
    return {"value": state.rounded(), "value_in_dtype": state.rounded(np.float32), "devices": [f"{gl.renderer} (gl)"]}


def _print(result: dict[str, Any]) -> None:
    if "groups" in result:
        columns = result["groups"]
        print("\t".join(columns))
        for row in zip(*columns.values(), strict=True):
            print("\t".join(repr(value) for value in row))
    else:
        print(repr(result["value"]))
    if "pairwise" in result:
        words = (
            "pairwise summation: {pairwise!r}, error {pairwise_error:.3g}, bound {pairwise_bound:.3g}, depth {depth}"
        )
        print(words.format(**result))
    for found in result.get("compared", ()):
        print("{method:>20}: {value!r}, error {error:.3g}".format(**found))
    rate = result["bytes_per_second"] / 1e9
    summary = f"{result['count']} {result['dtype']}, {result['mode']}, {result['seconds']:.3g} s, {rate:.3g} GB/s"
    print(f"{summary}, {', '.join(result['devices'])}", file=sys.stderr)


def _in_json(value: Any) -> Any:
    """The same with "nan", "inf" and "-inf" for numbers that JSON does not have, and complex ones by their parts."""
    if isinstance(value, complex):
        return {"real": _in_json(value.real), "imaginary": _in_json(value.imag)}
    if isinstance(value, dict):
        return {key: _in_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_in_json(one) for one in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


# ------------------------------------------------------------------------------------------------------------- farm
def sum_on_farm(
    client: Any, files: list[ArraySource], mode: str, spellings: tuple[str, ...] = ()
) -> tuple[Any, list[str]]:
    """The merged sum of all files, and the names of the devices used, by the workers of a Dask client.

    The workers find the files under the same paths.
    """
    futures = [client.submit(_task, *task, mode, spellings, pure=False) for task in _ranges(files)]
    state, devices = empty_sum(mode, files[0].dtype), set()
    for part, names in client.gather(futures):
        state += part
        devices |= set(names)
    return state, sorted(devices)


def parts_on_farm(
    client: Any, files: list[ArraySource], statistic: str, spellings: tuple[str, ...] = ()
) -> tuple[list[Any], list[str]]:
    """What each range of the files contributes to a statistic, and the names of the devices used."""
    ranges = _ranges(files[:1] if statistic in PAIRED else files)
    tasks = [(files if statistic in PAIRED else [npy], first, end) for npy, first, end in ranges]
    futures = [client.submit(_statistic_task, *task, statistic, spellings, pure=False) for task in tasks]
    found = client.gather(futures)
    names = {name for _parts_of_range, own in found for name in own}
    return [part for parts, _own in found for part in parts], sorted(names)


def _ranges(files: list[ArraySource]) -> list[tuple[ArraySource, int, int]]:
    """The ranges of numbers that one task of a farm takes."""
    step = max(1, TASK_BYTES // files[0].dtype.itemsize)
    return [(npy, first, min(first + step, npy.count)) for npy in files for first in range(0, npy.count, step)]


@lru_cache(maxsize=4)
def _devices_of_worker(spellings: tuple[str, ...]) -> list[Device]:
    return open_context(*spellings).devices


def _task(npy: ArraySource, first: int, end: int, mode: str, spellings: tuple[str, ...]) -> tuple[Any, list[str]]:
    devices = _devices_of_worker(spellings)
    state = array_sum(devices, npy, mode, index_range=(first, end))
    return state, [device.name for device in devices]


def _statistic_task(
    files: list[ArraySource], first: int, end: int, statistic: str, spellings: tuple[str, ...]
) -> tuple[list[Any], list[str]]:
    devices = _devices_of_worker(spellings)
    return _parts(devices, statistic, files, (first, end)), [device.name for device in devices]
