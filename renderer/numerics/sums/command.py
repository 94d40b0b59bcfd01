"""The command `rayfold sum`: a sum or statistic of .npy and .npz files, on one device, several, or Dask workers.

sum_files() does the same for Python programs. Files are read in chunks. Every statistic but a fast or reproducible sum
is made from exact sums (device_sums.py) and rounded once (aggregates.py); partial results of files and ranges merge in
any order.
"""

import argparse
import json
import math
import operator
import os
import sys
import time
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from renderer.errors import InputError, UserError
from renderer.formats.npy import COMPLEX, REAL, SUMMABLE, ArraySource, PipeSource, open_npy, open_pipe
from renderer.formats.npz_arrays import open_npz
from renderer.gpu import Device, DeviceContext, open_context
from renderer.host import available_cores
from renderer.numerics.sums import aggregates
from renderer.numerics.sums.arrow_sums import parquet_total
from renderer.numerics.sums.by_key import reduce_by_key
from renderer.numerics.sums.dask_sums import devices_of_worker
from renderer.numerics.sums.device_sums import MODES, array_sum, empty_sum, total_value
from renderer.numerics.sums.exact_sum import ExactSum, mean_of
from renderer.numerics.sums.gl_sums import array_sum_gl, pairwise_sum_gl
from renderer.numerics.sums.textbook import textbook_sums
from renderer.plain import Json
from renderer.records import astuple, dataclass
from renderer.system import arguments, trust
from renderer.system.farm import Farm, open_client, parse_farm
from renderer.system.farm_tasks import run_tasks
from renderer.system.process import supervise
from renderer.system.progress import Progress

STATISTICS = ("sum", "mean", "variance", "min", "max", "norm", "dot", "weighted-mean")
PAIRED = ("dot", "weighted-mean")  # statistics of two arrays
OF_COMPLEX = ("sum", "mean", "variance", "norm")  # statistics of complex numbers
READ_ONCE = ("sum", "mean", "min", "max")  # statistics that read every number once, as from a pipe
TASK_BYTES = 1 << 28  # bytes of the numbers of one task on a farm

OPTIONS: dict[str, dict[str, Any]] = {
    "files": dict(nargs="+", metavar="FILE", help=".npy, read in chunks, never at once; .npz, all arrays of it; "
                  ".parquet; - is a .npy on stdin; sums run over all of them"),
    "--mode": dict(choices=MODES, default="exact", help="default: exact"),
    "--device": dict(action="append", help="repeatable: several devices share the chunks; gl: by OpenGL "
                     "fragment passes"),
    "--statistic": dict(choices=STATISTICS, default="sum", help="made from exact sums, rounded once"),
    "--ddof": dict(type=arguments.count, default=0, metavar="N", help="of --statistic variance: divides by count - N"),
    "--by": dict(metavar="KEYS", help="aggregates by key: a .npy of integers, as many as there are numbers; of a "
                 ".parquet file the name of a column, for whose values there is a sum each"),
    "--column": dict(metavar="NAME", help="of a .parquet file: the column that is added"),
    "--farm": dict(metavar="WHERE", help="local:N processes, or a scheduler at tls://HOST:PORT or tcp://HOST:PORT"),
}  # fmt: skip
FLAGS = {
    "--bound": "also print the error of pairwise summation in the input's precision, and its a-priori bound",
    "--compare": "also print the sums of the textbooks in the input's precision, and their errors",
    "--insecure": "allow a tcp:// farm, where whoever reaches it can run code",
    "--json": "print exactly one JSON object",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `rayfold sum`."""
    for name, options in OPTIONS.items():
        parser.add_argument(name, **options)
    for name, text in FLAGS.items():
        parser.add_argument(name, action="store_true", help=text)
    trust.add_arguments(parser, ("files", "by"))


@dataclass(frozen=True)
class SumRequest:
    """The arguments of `rayfold sum`; `devices` are spellings of --device, `by` a file of keys, `farm` Dask workers.

    `ddof` (delta degrees of freedom) is subtracted from the count in the divisor of a variance.
    """

    paths: Sequence[str | Path]
    mode: str = "exact"
    statistic: str = "sum"
    by: str | None = None
    bound: bool = False
    compare: bool = False
    devices: tuple[str, ...] = ()
    farm: Farm | None = None
    ddof: int = 0
    column: str | None = None

    def check(self, files: list[ArraySource]) -> None:
        """InputError or UserError for arguments that do not go together, or not with the dtypes of the files."""
        mode, statistic, by, needs_one = self.mode, self.statistic, self.by, self.bound or self.compare
        dtypes = {npy.dtype for npy in files}
        if len(dtypes) > 1 and statistic not in PAIRED:
            listed = ", ".join(f"{npy.path} {npy.dtype}" for npy in files)
            raise InputError(f"files of several dtypes: {listed}; they must have one dtype to be added up")
        if any(dtype.kind == "c" for dtype in dtypes) and statistic not in OF_COMPLEX:
            raise UserError(f"--statistic {statistic}: the numbers are complex; allowed are {', '.join(OF_COMPLEX)}")
        wanted = 1 if by or needs_one else 2 if statistic in PAIRED else None
        if wanted and len(files) != wanted:
            raise UserError(
                f"{len(files)} arrays given; --statistic, --by, --bound or --compare takes exactly {wanted}"
            )
        if self.farm and (by or needs_one):
            raise UserError("--farm takes no --by, --bound and --compare")
        if mode != "exact" and (by or statistic != "sum"):
            raise UserError(f"--mode {mode}: --statistic and --by are made from exact sums; allowed is exact")
        if by and statistic != "sum":
            raise UserError(
                f"--by {by}: --statistic is {statistic}; the table by key has sums, means, counts and extremes"
            )
        if self.ddof and statistic != "variance":
            raise UserError(f"--ddof {self.ddof}: --statistic is {statistic}; only variance takes it")
        pipes = [npy for npy in files if isinstance(npy, PipeSource)]
        if pipes and (self.farm or needs_one or statistic not in READ_ONCE or len(pipes) > 1):
            allowed = f"one of {', '.join(READ_ONCE)}, without --farm, --bound and --compare"
            raise UserError(f"stdin can be read once; allowed is {allowed}")
        if "gl" not in self.devices:
            return
        if len(self.devices) > 1:
            raise UserError("--device gl cannot be combined with other devices")
        if mode != "exact" or statistic not in ("sum", "dot") or by or self.farm:
            raise UserError("--device gl makes exact sums and dot products only, without --mode, --by and --farm")
        if dtypes != {np.dtype("f4")}:
            raise UserError(f"--device gl adds float32, but the files hold {', '.join(map(str, dtypes))}")


def command(args: argparse.Namespace) -> int:
    """Runs `rayfold sum`; returns its exit code."""
    if args.farm:
        supervise()
    farm = parse_farm(args.farm, "", args.insecure) if args.farm else None
    options = args.mode, args.statistic, args.by, args.bound, args.compare
    result = sum_files(SumRequest(args.files, *options, tuple(args.device or ()), farm, args.ddof, args.column))
    if args.json:
        print(json.dumps(_to_json(result), allow_nan=False))
    else:
        _print(result)
    return 0


def sum_files(request: SumRequest) -> Json:
    """The report of `rayfold sum` on .npy and .npz files, as --json prints it: value, count, dtype, seconds and others.

    UserError for arguments that do not go together, InputError for bad files.
    """
    if is_table := any(str(path).lower().endswith(".parquet") for path in request.paths):
        # The request without the options that tables do not take.
        plain = SumRequest(request.paths, by=request.by, devices=request.devices, column=request.column)
        if len(request.paths) > 1 or request != plain or "gl" in request.devices:
            raise UserError("a .parquet file is added alone; it takes --column, --by, --device and --json")
    elif request.column is not None:
        raise UserError(f"--column {request.column}: only .parquet files have named columns")
    files = [] if is_table else [source for path in request.paths for source in _open_sources(path)]
    if not is_table:
        request.check(files)
    uses_gl = request.devices == ("gl",)
    gpu = open_context(*(() if uses_gl else request.devices))
    if uses_gl:
        gpu.gl  # noqa: B018  (opened before the clock starts)
    elif not request.farm:
        gpu.devices  # noqa: B018  (opened and probed before the clock starts)
    started = time.perf_counter()
    if is_table:
        result = _table_sum(gpu, request)
    else:
        result = _aggregates_by_key(request.by, files[0]) if request.by else _statistic(gpu, request, files)
        result |= {"count": sum(npy.count for npy in files), "dtype": str(files[0].dtype)}
    seconds = time.perf_counter() - started
    nbytes = os.path.getsize(request.paths[0]) if is_table else sum(npy.count * npy.dtype.itemsize for npy in files)
    result |= {
        "statistic": request.statistic,
        "mode": request.mode,
        "devices": result.get("devices") or [device.name for device in gpu.devices],
        "seconds": seconds,
        "bytes_per_second": nbytes / seconds,
    }
    if request.bound:
        pairwise = pairwise_sum_gl(gpu.gl, files[0]) if uses_gl else aggregates.pairwise_sum(gpu.device, files[0])
        result |= zip(("pairwise", "pairwise_error", "pairwise_bound", "depth"), astuple(pairwise), strict=True)
    if request.compare:
        result["compared"] = [textbook_sum._asdict() for textbook_sum in textbook_sums(gpu.device, files[0])]
    return result


def _open_sources(path: str | Path) -> list[ArraySource]:
    if str(path) == "-":
        return [open_pipe(sys.stdin.buffer, "stdin", SUMMABLE, REAL + COMPLEX)]
    if str(path).lower().endswith(".npz"):
        return open_npz(path, SUMMABLE, REAL + COMPLEX)
    return [open_npy(path, SUMMABLE, REAL + COMPLEX)]


def _table_sum(gpu: DeviceContext, request: SumRequest) -> Json:
    """The report of a column of a .parquet file, or of its sums by another column."""
    total, facts = parquet_total(gpu.devices, Path(request.paths[0]), request.column, request.by)
    if request.by is not None:
        columns = {"keys": [*total[0]], "counts": total[1], "sums": [*total[0].values()]}
        return facts | {"groups": columns, "devices": [f"the host's {available_cores()} cores"]}
    return facts | {"value": total_value(total), "count": total.count}


def _statistic(gpu: DeviceContext, request: SumRequest, files: list[ArraySource]) -> Json:
    """The value of a statistic of all numbers of the files, and the names of the devices of OpenGL or of a farm."""
    statistic, mode, names = request.statistic, request.mode, None
    if request.devices == ("gl",):
        if statistic == "dot":
            partials, statistic = [array_sum_gl(gpu.gl, files[0], files[1])], "sum"
        else:
            partials = [array_sum_gl(gpu.gl, npy) for npy in files]
        names = [f"{gpu.gl.renderer} (gl)"]
    elif request.farm:
        with open_client(request.farm) as client:
            partials, names = partials_on_farm(client, files, statistic, mode, request.devices)
    elif statistic == "sum":
        with Progress(sum(npy.count for npy in files), "numbers") as progress:
            partials = [array_sum(gpu.devices, npy, mode, progress=progress.advance) for npy in files]
    else:
        partials = _partials(gpu.devices, files, statistic)
    if statistic != "sum":
        return {"value": _merged_statistic(statistic, partials, request.ddof), "devices": names}
    total = sum(partials, start=empty_sum(mode, files[0].dtype))
    if files[0].dtype.kind not in "fc":
        return {"value": total.significand, "devices": names}  # a sum of integers has the exponent 0
    return {"value": total.rounded(), "value_in_dtype": total.rounded(files[0].dtype), "devices": names}


def _partials(
    devices: list[Device],
    files: list[ArraySource],
    statistic: str,
    mode: str = "exact",
    index_range: tuple[int, int] | None = None,
) -> list[Any]:
    """The partial results from which a statistic of the files, or of a range of each, is merged.

    One per file for a sum, minimum or maximum; else one pair of exact sums: of the numbers and of their squares, of
    the weights and of the products, or, for a dot product, of nothing and of the products.
    """
    if statistic == "sum":
        return [array_sum(devices, npy, mode, index_range=index_range) for npy in files]
    if statistic in ("min", "max"):
        nonempty = [npy for npy in files if npy.count]
        return [aggregates.minmax(devices, npy, index_range)[statistic == "max"] for npy in nonempty]
    if statistic in PAIRED:
        products = array_sum(devices, files[0], y=files[1], index_range=index_range)
        weights = ExactSum() if statistic == "dot" else array_sum(devices, files[1], index_range=index_range)
        return [(weights, products)]
    sums, squares = empty_sum("exact", files[0].dtype), ExactSum()
    for npy in files:
        if statistic != "norm":
            sums += array_sum(devices, npy, index_range=index_range)
        if statistic != "mean":
            squares += aggregates.squares_sum(devices, npy, index_range)
    return [(sums, squares)]


def _merged_statistic(statistic: str, partials: list[Any], ddof: int) -> complex:
    """The statistic, not a sum, from the partial results of all files and ranges."""
    if statistic in ("min", "max"):
        if not partials:
            raise InputError(f"no numbers: the arrays are empty; they have no --statistic {statistic}")
        if any(math.isnan(partial) for partial in partials):
            return math.nan
        extreme: float = max(partials) if statistic == "max" else min(partials)
        return extreme
    # Of a dot product or weighted mean (_partials()): the sum of the weights, and of the products.
    sums, squares = (reduce(operator.add, (pair[k] for pair in partials)) if partials else ExactSum() for k in range(2))
    match statistic:
        case "mean":
            return mean_of(sums)
        case "dot":
            return squares.rounded()
        case "weighted-mean":
            return aggregates.weighted_mean_of(squares, sums)
        case "norm":
            return aggregates.norm_of(squares)
    return aggregates.variance_of(sums, squares, ddof)


def _aggregates_by_key(keys: str, npy: ArraySource) -> Json:
    groups = reduce_by_key(open_npy(keys, "keys must be integers"), npy)
    columns = {
        "keys": groups.keys.tolist(), "counts": groups.counts.tolist(), "sums": groups.sums(),
        "means": groups.rounded_means().tolist(), "minimum": groups.minimum.tolist(),
        "maximum": groups.maximum.tolist(),
    }  # fmt: skip
    return {"groups": columns, "devices": [f"the host's {available_cores()} cores"]}


def _print(result: Json) -> None:
    """Prints the result, then what was asked for beside it; the summary goes to stderr."""
    if "groups" in result:
        columns = result["groups"]
        print("\t".join(columns))
        for row in zip(*columns.values(), strict=True):
            print(*row, sep="\t")
    else:
        print(result["value"])
    if "pairwise" in result:
        words = (
            "pairwise summation: {pairwise!r}, error {pairwise_error:.3g}, bound {pairwise_bound:.3g}, depth {depth}"
        )
        print(words.format(**result))
    for textbook_sum in result.get("compared", ()):
        print("{method:>20}: {value!r}, error {error:.3g}".format(**textbook_sum))
    rate = result["bytes_per_second"] / 1e9
    summary = f"{result['count']} {result['dtype']}, {result['mode']}, {result['seconds']:.3g} s, {rate:.3g} GB/s"
    print(f"{summary}, {', '.join(result['devices'])}", file=sys.stderr)


def _to_json(value: object) -> object:
    """A report for JSON: "nan", "inf" and "-inf" for numbers that JSON lacks, objects for complex numbers."""
    if isinstance(value, complex):
        return {"real": _to_json(value.real), "imaginary": _to_json(value.imag)}
    if isinstance(value, dict):
        return {key: _to_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_to_json(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    return value if isinstance(value, (bool, int, str, NoneType)) else str(value)  # decimals, dates


# ------------------------------------------------------------------------------------------------------------- farm
def partials_on_farm(
    client: Any, files: list[ArraySource], statistic: str, mode: str = "exact", spellings: tuple[str, ...] = ()
) -> tuple[list[Any], list[str]]:
    """The partial results of all ranges of the files, computed by the workers of a Dask client, and their devices.

    The workers open the files under the same paths; `spellings` are their devices, spelled as for --device.
    """
    step = max(1, TASK_BYTES // files[0].dtype.itemsize)
    operands = [files] if statistic in PAIRED else [[npy] for npy in files]
    tasks = [(group, start, min(start + step, group[0].count)) for group in operands
             for start in range(0, group[0].count, step)]  # fmt: skip
    answers = dict(run_tasks(client, _range_task, (statistic, mode, spellings), tasks))
    results = [answers[index] for index in range(len(tasks))]
    names = {name for _partials, used in results for name in used}
    return [partial for partials, _used in results for partial in partials], sorted(names)


def _range_task(
    common: tuple[str, str, tuple[str, ...]], task: tuple[list[ArraySource], int, int]
) -> tuple[list[Any], list[str]]:
    """A worker's task: the partial results of the numbers start to stop - 1, and the names of its devices."""
    (statistic, mode, spellings), (files, start, stop) = common, task
    devices = devices_of_worker(spellings)
    return _partials(devices, files, statistic, mode, (start, stop)), [device.name for device in devices]
