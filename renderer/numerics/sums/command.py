"""`rayfold sum`: sums and other aggregates of .npy files, on one device, several, or a farm of workers."""

import json
import math
import sys
import time
from functools import lru_cache

import numpy as np

from renderer.errors import InputError, UnavailableError, UserError
from renderer.formats.npy import open_npy
from renderer.gpu import open_context
from renderer.numerics.sums import aggregates
from renderer.numerics.sums.aggregates import halving
from renderer.numerics.sums.device_sums import nothing, total
from renderer.numerics.sums.gl_sums import halving_in_passes, total_in_passes


def command(args) -> int:
    """Runs `rayfold sum`."""
    files = [open_npy(path) for path in args.files]
    _check(args, files)
    in_passes = args.device == ["gl"]
    gpu = open_context(*(() if in_passes else args.device or ()))
    if in_passes:
        gpu.gl  # noqa: B018  (opened before the clock starts)
    elif not args.farm:
        gpu.devices  # noqa: B018  (opened and probed before the clock starts)
    started = time.perf_counter()
    if in_passes:
        told = _in_passes(gpu.gl, args.statistic, files)
    elif args.by:
        told = _by_key(gpu.device, args.by, files[0])
    elif args.statistic != "sum":
        told = {"value": _statistic(gpu.devices, args.statistic, files)}
    else:
        told = _sum(gpu, args, files)
    seconds = time.perf_counter() - started
    size = sum(npy.count * npy.dtype.itemsize for npy in files)
    facts = {
        **told,
        "statistic": args.statistic,
        "mode": args.mode,
        "count": sum(npy.count for npy in files),
        "dtype": str(files[0].dtype),
        "devices": told.get("devices") or [device.name for device in gpu.devices],
        "seconds": seconds,
        "bytes_per_second": size / seconds,
    }
    if args.bound:
        facts |= _halving(halving_in_passes(gpu.gl, files[0]) if in_passes else halving(gpu.device, files[0]))
    _print(facts, args)
    return 0


def _check(args, files) -> None:
    dtypes = {npy.dtype for npy in files}
    if len(dtypes) > 1 and args.statistic != "dot":
        told = ", ".join(f"{npy.path} {npy.dtype}" for npy in files)
        raise InputError(f"files of several dtypes: {told}; they must have one dtype to be added up")
    wanted = {"sum": None, "dot": 2}.get(args.statistic, 1)
    wanted = 1 if args.by or args.bound else wanted
    if wanted and len(files) != wanted:
        raise UserError(f"{len(files)} files; {wanted} wanted for this answer")
    if args.farm and (args.by or args.bound or args.statistic != "sum"):
        raise UserError("--farm adds up; it goes with neither --by nor --bound nor --statistic")
    if args.mode != "exact" and (args.by or args.statistic != "sum"):
        raise UserError(f"--mode {args.mode}: --statistic and --by are made from exact sums; allowed is exact")
    if "gl" in (args.device or ()):
        _check_passes(args, dtypes)


def _check_passes(args, dtypes) -> None:
    if len(args.device) > 1:
        raise UserError("--device gl: passes share no work with other devices; leave the others out")
    if args.mode != "exact" or args.statistic not in ("sum", "dot") or args.by or args.farm:
        raise UserError("--device gl: passes make exact sums and dot products, without --mode, --by and --farm")
    if dtypes != {np.dtype("f4")}:
        raise UserError(f"--device gl: passes add float32, but the files hold {', '.join(map(str, dtypes))}")


def _sum(gpu, args, files) -> dict:
    told = _progress(sum(npy.count for npy in files))
    devices = None
    if args.farm:
        state, devices = _on_farm(args.farm, files, args.mode, args.device)
    else:
        states = [total(gpu.devices, npy, args.mode, told=told) for npy in files]
        state = sum(states, start=nothing(args.mode, files[0].dtype))
    if files[0].dtype.kind != "f":
        return {"value": state.units, "devices": devices}
    return {"value": state.rounded(), "value_in_dtype": state.rounded(files[0].dtype), "devices": devices}


def _progress(count: int):
    """A line on a terminal's stderr that follows the numbers done."""
    if not sys.stderr.isatty():
        return None
    done = 0

    def told(more: int) -> None:
        nonlocal done
        done += more
        sys.stderr.write(f"\r{100 * done / count:5.1f}% of {count} numbers" + ("\n" if done >= count else ""))

    return told


def _statistic(devices, name: str, files):
    npy = files[0]
    if name == "dot":
        return aggregates.dot(devices, *files)
    if name in ("min", "max"):
        return aggregates.extremes(devices, npy)[name == "max"]
    return {"mean": aggregates.mean, "variance": aggregates.variance, "norm": aggregates.norm}[name](devices, npy)


def _by_key(device, keys: str, npy) -> dict:
    groups = aggregates.by_key(device, open_npy(keys, "keys must be integers"), npy)
    columns = {
        "keys": groups.keys.tolist(),
        "counts": groups.counts.tolist(),
        "sums": groups.sums(),
        "means": groups.means(),
        "smallest": groups.smallest.tolist(),
        "largest": groups.largest.tolist(),
    }
    return {"groups": columns, "devices": [device.name]}


def _in_passes(gl, statistic: str, files) -> dict:
    """A sum by GLSL render-to-texture passes."""
    if statistic == "dot":
        state = total_in_passes(gl, *files)
    else:
        state = sum((total_in_passes(gl, npy) for npy in files), start=nothing("exact", np.float32))
    return {"value": state.rounded(), "value_in_dtype": state.rounded(np.float32), "devices": [f"{gl.renderer} (gl)"]}


def _halving(found: aggregates.Halving) -> dict:
    return {"halving": found.value, "halving_error": found.error, "halving_bound": found.bound, "depth": found.depth}


def _print(facts: dict, args) -> None:
    if args.json:
        print(json.dumps(_in_json(facts), allow_nan=False))
        return
    if "groups" in facts:
        columns = facts["groups"]
        print("\t".join(columns))
        for row in zip(*columns.values(), strict=True):
            print("\t".join(repr(value) for value in row))
    else:
        print(repr(facts["value"]))
    if args.bound:
        words = "halving gives {halving!r}: off by {halving_error:.3g}, bound {halving_bound:.3g} at depth {depth}"
        print(words.format(**facts))
    rate = facts["bytes_per_second"] / 1e9
    told = f"{facts['count']} {facts['dtype']}, {facts['mode']}, {facts['seconds']:.3g} s, {rate:.3g} GB/s"
    print(f"{told}, {', '.join(facts['devices'])}", file=sys.stderr)


def _in_json(value):
    """The same with "nan", "inf" and "-inf" for the numbers that JSON has not."""
    if isinstance(value, dict):
        return {key: _in_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_in_json(one) for one in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


# ------------------------------------------------------------------------------------------------------------- farm
BLOCK_OF_A_TASK = 1 << 28  # bytes


def _on_farm(address: str, files, mode: str, spellings):
    """The sum of the files by a farm's workers, which see them under the same paths, and the devices they used."""
    try:
        import distributed
    except ImportError as error:
        raise UnavailableError("--farm needs the package distributed: pip install distributed") from error
    try:
        client = distributed.Client(**_where(address))
    except (OSError, ValueError) as error:
        raise UnavailableError(f"--farm {address}: no scheduler answers: {error}") from error
    with client:
        return farmed(client, files, mode, spellings)


def _where(address: str) -> dict:
    """The arguments of distributed.Client for --farm's word."""
    if address.startswith("tcp://") or address.startswith("tls://"):
        return {"address": address, "timeout": 10}
    word, _, workers = address.partition(":")
    if word != "local" or not (workers.isdigit() and 1 <= int(workers) <= 1024):
        raise UserError(f"--farm {address}: unknown; allowed are local:N and tcp://HOST:PORT")
    return {"n_workers": int(workers), "threads_per_worker": 1, "dashboard_address": None}


def farmed(client, files, mode: str, spellings=None):
    """The merged state of all blocks of the files, and the names of the devices that the workers used."""
    step = max(1, BLOCK_OF_A_TASK // files[0].dtype.itemsize)
    tasks = [(npy, first, min(first + step, npy.count)) for npy in files for first in range(0, npy.count, step)]
    futures = [client.submit(_task, *task, mode, tuple(spellings or ()), pure=False) for task in tasks]
    state, devices = nothing(mode, files[0].dtype), set()
    for part, names in client.gather(futures):
        state += part
        devices |= set(names)
    return state, sorted(devices)


@lru_cache(maxsize=4)
def _devices_of_worker(spellings: tuple[str, ...]):
    return open_context(*spellings).devices


def _task(npy, first: int, last: int, mode: str, spellings: tuple[str, ...]):
    devices = _devices_of_worker(spellings)
    state = total(devices, npy, mode, window=(first, last))
    return state, [device.name for device in devices]
