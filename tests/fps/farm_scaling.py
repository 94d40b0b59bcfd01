"""Scaling of a farm of local workers: frames per second by 1, 2, 4, ... workers, whose files must be identical.

    python tests/fps/farm_scaling.py [WORKERS ...] [-- EXPORT ARGUMENTS]

Every number of workers renders the same frames, after an untimed round that starts the workers, opens their devices
and compiles kernels. Prints one JSON line for each number of workers: seconds, frames per second, the ratio of this
rate to the first one, the devices, and whether all files are identical to the first ones. Exit code 1 if they are not.
"""

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from renderer.cli import build_parser  # noqa: E402
from renderer.export.farm import render_frames  # noqa: E402
from renderer.export.frames import file_hash  # noqa: E402
from renderer.export.options import parse_options  # noqa: E402
from renderer.export.plan import make_plan  # noqa: E402
from renderer.system.farm import Farm, open_client  # noqa: E402

DEFAULT = ["scenes/mirrors.toml", "--frames", "1-16", "--size", "3840x2160", "--samples", "512"]


def main() -> int:
    """Runs the benchmark for the command line; returns the exit code."""
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    counts, export_arguments = [int(text) for text in arguments[:cut]] or [1, 2, 4], arguments[cut + 1 :] or DEFAULT
    first = None
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            seconds, devices, hashes, frames = render_with(count, export_arguments, Path(folder))
            rate = frames / seconds
            first = first or (rate, hashes)
            row = {
                "workers": count, "frames": frames, "seconds": round(seconds, 3), "frames_per_second": round(rate, 3),
                "ratio": round(rate / first[0], 3), "same_bits": hashes == first[1], "devices": devices,
            }  # fmt: skip
            print(json.dumps(row), flush=True)
            if hashes != first[1]:
                return 1
    return 0


def render_with(count: int, export_arguments: list[str], folder: Path) -> tuple[float, str, list[str], int]:
    """The seconds of a farm of `count` workers, its devices, the hashes of its files and the number of frames."""
    output = folder / str(count)
    output.mkdir()
    args = build_parser().parse_args(
        ["export", *export_arguments, "-o", str(output / "frame_####.png"), "--farm", f"local:{count}"]
    )
    options = parse_options(args)
    plan = make_plan(options)
    farm = Farm("", count, options.device)
    with open_client(farm) as client:
        warm = replace(plan, output=output / "warm_####.png", numbers=plan.numbers[: max(2 * count, 2)])
        render_frames(client, farm, warm)
        start = time.perf_counter()
        _, devices = render_frames(client, farm, plan)
        seconds = time.perf_counter() - start
    return seconds, devices, [file_hash(path) for path in sorted(output.glob("frame_*.png"))], len(plan.numbers)


if __name__ == "__main__":
    sys.exit(main())
